"""Pursuits over a shared Gram matrix, the careful way: all methods, every correlation in full precision.

The signals that `fast` gave up, and whole tiles for the other methods. Where rounding could decide, the residual itself
is formed from the atoms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, helper, kernel, part
from pursuit.encode.small import MP, OLS, border, choose, export, ranks, refit, solve

UNCLEAR = 100.0
"""Beyond this `lost`, weights are corrected by their residual."""
TURNS = 10
"""Matching pursuit takes at most so many steps for each atom that it may use."""


def workspace(d: int, n: int, width: int, dtype: Any) -> tuple[Any, ...]:
    """Rooms for one signal: factors, vectors over atoms, a residual, vectors over active atoms."""
    F, V = np.zeros((3, width, width), dtype), np.zeros((3, width), dtype)
    room = np.zeros(width, dtype), np.zeros(width, dtype), np.zeros(width, np.int64), np.zeros(width, bool)
    over_atoms = np.zeros((4, n), dtype), np.zeros(n, bool), np.full(n, -1)
    return F, V, np.zeros(width, np.int32), *over_atoms, ranks(n, dtype), np.zeros(d, dtype), room


@helper
def subtract(start: Array, rows: Array, x: Array, atoms: Array, s: int, out: Array) -> None:
    """out = start - sum_i x_i rows[atoms_i]."""
    for k in range(len(out)):
        out[k] = start[k]
    for i in range(0, s - 3, 4):  # four rows at a time, for a quarter of the stores
        a, b, c, d = atoms[i], atoms[i + 1], atoms[i + 2], atoms[i + 3]
        p, q, u, v = x[i], x[i + 1], x[i + 2], x[i + 3]
        for k in range(len(out)):
            out[k] -= p * rows[a, k] + q * rows[b, k] + u * rows[c, k] + v * rows[d, k]
    for i in range(s - s % 4, s):
        j, w = atoms[i], x[i]
        for k in range(len(out)):
            out[k] -= w * rows[j, k]


@helper
def dot(u: Array, v: Array, count: int) -> float:
    total = 0 * u[0]
    for i in range(count):
        total += u[i] * v[i]
    return total


@part
def weight_of(V: Array, s: int) -> float:
    """sum_i |x_i| ||a_i||."""
    total = 0.0
    for i in range(s):
        total += abs(V[0, i]) * V[2, i]
    return total


@part
def lost(F: Array, V: Array, s: int) -> float:
    """The largest diagonal entry of the inverse Gram matrix of the active atoms, were they of norm 1."""
    most = 0.0
    for i in range(s):
        total = 0.0
        for k in range(i, s):
            total += F[2, k, i] * F[2, k, i]
        most = max(most, total * V[2, i] * V[2, i])
    return most


@part
def polish(F: Array, y: Array, A: Array, atoms: Array, x: Array, s: int, r: Array, room: Array) -> None:
    """Two steps of iterative refinement: coherent atoms lose digits in their Gram matrix, not in their residual."""
    z, part, _, _ = room
    for _ in range(2):
        subtract(y, A, x, atoms, s, r)
        for i in range(s):
            part[i] = dot(A[atoms[i]], r, len(r))
        solve(F, part, z, s)
        for i in range(s):
            x[i] += z[i]


@part
def reached(
    left: float, tol: float, slack: float, y: Array, A: Array, atoms: Array, x: Array, s: int, r: Array
) -> bool:
    """Whether the residual's norm is at most tol; `left`, the square from the weights, decides where it is sure to."""
    if tol < 0 or left > tol * tol + slack:
        return False
    subtract(y, A, x, atoms, s, r)
    return math.sqrt(dot(r, r, len(r))) <= tol


@part
def turn_away(t: Array, a: float, c: Array, v: Array) -> None:
    """Correlations and squared norms after a direction q with <q, r> = a and <q, a_j> = -t_j is projected out."""
    for k in range(len(t)):
        c[k] += a * t[k]
        v[k] -= t[k] * t[k]


@kernel
def walk(
    G: Array, A: Array, norms: Array, Y: Array, C: Array, squares: Array, limits: Array, tols: Array, noise: float,
    method: int, which: Array, E: Array, work: Array, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """OMP, OLS or NNOMP for the signals numbered `which`; the rows of A are the atoms, E is as in `refit`."""
    F, V, atoms, over, taken, _, keys, r, room = work
    n, eps, c, v, x, b = len(norms), 2.0**-52 if G.itemsize == 8 else 2.0**-23, over[0], over[1], V[0], V[1]
    for number in range(len(which)):
        p = which[number]
        s, whole, y = np.int64(0), math.sqrt(squares[p]), Y[p]
        for j in range(n):
            taken[j], v[j] = False, norms[j] * norms[j]
        for _ in range(4 * limits[p] + n + 16):
            mass = whole + weight_of(V, s)
            slack = 16 * (s + 4) * eps * mass * mass
            if s == limits[p] or reached(squares[p] - dot(x, b, s), tols[p], slack, y, A, atoms, x, s, r):
                break
            if method != OLS or s == 0:
                subtract(C[p], G, x, atoms, s, c)
            j = choose(c, v, norms, taken, method, noise * mass, 16 * (s + 4) * eps, keys)
            if j < 0:
                break
            for i in range(s):
                F[0, s, i] = F[0, i, s] = G[atoms[i], j]
            F[0, s, s] = G[j, j]
            taken[j] = True
            if not border(F, s, eps):
                continue
            atoms[s], b[s], V[2, s] = j, C[p, j], norms[j]
            s = refit(F, E, atoms, V, taken, s + 1, c[j], noise * mass, eps, room)
            if method == OLS:
                subtract(over[3], G, F[2, s - 1], atoms, s, over[2])
                turn_away(over[2], dot(F[2, s - 1], b, s), c, v)
        if lost(F, V, s) > UNCLEAR:
            polish(F, y, A, atoms, x, s, r, room)
        export(atoms, x, s, out_atoms[p], out_x[p])
        counts[p] = s


@kernel
def match(
    G: Array, A: Array, norms: Array, Y: Array, C: Array, squares: Array, limits: Array, tols: Array, noise: float,
    work: Array, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """Matching pursuit: one weight moves a step. Ends where a step would need one atom more than the limit."""
    _, V, atoms, over, taken, place, keys, r, _ = work
    n, eps, c, x = len(norms), 2.0**-52 if G.itemsize == 8 else 2.0**-23, over[0], V[0]
    for p in range(len(Y)):
        s, left, whole = np.int64(0), squares[p], math.sqrt(squares[p])
        for k in range(n):
            c[k] = C[p, k]
        for turn in range(TURNS * limits[p]):
            mass = whole + weight_of(V, s)
            slack = 16 * (turn + 4) * eps * mass * mass
            if reached(left, tols[p], slack, Y[p], A, atoms, x, s, r):
                break
            j = choose(c, c, norms, taken, MP, noise * mass, 0.0, keys)
            if j < 0 or (place[j] < 0 and s == limits[p]):
                break
            if place[j] < 0:
                place[j], atoms[s], x[s], V[2, s] = s, j, 0, norms[j]
                s += 1
            step = c[j] / G[j, j]
            left -= c[j] * step
            x[place[j]] += step
            for k in range(n):
                c[k] -= step * G[j, k]
        for i in range(s):
            place[atoms[i]] = -1
        export(atoms, x, s, out_atoms[p], out_x[p])
        counts[p] = s
