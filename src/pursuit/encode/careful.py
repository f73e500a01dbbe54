"""Pursuits over a shared Gram matrix, the careful way: all methods, every correlation in full precision.

The signals that `fast` gave up, and whole tiles for the other methods. Where rounding could decide, the residual itself
is formed from the atoms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, kernel, part
from pursuit._vector import numbers
from pursuit.encode.lines import add, best, border, copy, dot, export, gather, solve, subtract, weigh
from pursuit.encode.rooms import addresses, several
from pursuit.encode.small import MP, NNOMP, OLS, factors, refit, refit_nonnegative

UNCLEAR = 100.0
"""Beyond this `lost`, weights are corrected by their residual."""
TURNS = 10
"""Matching pursuit takes at most so many steps for each atom that it may use."""


class Rooms:
    """For one signal: factors, vectors over active atoms (three, and one), active atoms, vectors over atoms (two), a
    residual; and what one method needs. The kernels are told their addresses."""

    def __init__(self, d: int, n: int, width: int, dtype: Any, method: int) -> None:
        active, over_atoms = ((width,), dtype), ((n,), dtype)
        self.held = several(
            ((3, width, width), dtype), ((3, width), dtype), active, ((width,), np.int32), over_atoms, over_atoms,
            ((d,), dtype),
        )  # fmt: skip
        special = {MP: [((n,), np.int64)], OLS: [over_atoms] * 3}.get(method, [])
        self.special = factors(width, dtype) if method == NNOMP else several(*special)
        at = addresses(*self.special)
        self.width, self.at = width, addresses(*self.held)
        self.place, self.ols, self.nonnegative = (at if method == each else None for each in (MP, OLS, NNOMP))


@part
def lost(U: int, depth: int, sizes: Any, s: int, like: float) -> float:
    """The largest diagonal entry of the inverse Gram matrix of the active atoms, were they of norm 1."""
    most = 0.0
    for i in range(s):
        total = 0.0
        for k in range(i, s):
            entry = numbers(U + k * depth, like)[i]
            total += entry * entry
        most = max(most, total * sizes[i] * sizes[i])
    return most


@part
def turn_away(
    F: int, V: int, width: int, depth: int, s: int, at_G: int, row: int, n: int, at_atoms: int, at_c: int, ols: Array,
    like: float,
) -> None:  # fmt: skip
    """Correlations, and squared norms of what is left of atoms, as the last direction q is projected out."""
    at_v, at_t, at_zeros = ols
    c, v, t, new = numbers(at_c, like), numbers(at_v, like), numbers(at_t, like), F + (2 * width + s - 1) * depth
    subtract(at_zeros, at_G, row, at_atoms, new, s, n, at_t, like, like)  # t_j = -<q, a_j>
    a = dot(new, V + depth, s, like)
    for k in range(n):
        c[k] += a * t[k]
        v[k] -= t[k] * t[k]


@part
def polish(
    L: int, V: int, depth: int, s: int, at_A: int, long: int, d: int, at_atoms: int, y: int, at_r: int, at_z: int,
    like: float,
) -> None:  # fmt: skip
    """Two steps of iterative refinement: coherent atoms lose digits in their Gram matrix, not in their residual."""
    z, atoms = numbers(at_z, like), numbers(at_atoms, np.int32(0))
    for _ in range(2):
        subtract(y, at_A, long, at_atoms, V, s, d, at_r, like, like)
        for i in range(s):
            z[i] = dot(at_A + atoms[i] * long, at_r, d, like)
        solve(L, depth, at_z, s, like)
        add(V, 1.0, at_z, s, V, like)


@part
def reached(
    left: float, tol: float, slack: float, y: int, at_A: int, long: int, d: int, at_atoms: int, V: int, s: int,
    at_r: int, like: float,
) -> bool:  # fmt: skip
    """Whether the residual's norm is at most tol; `left`, the square from the weights, decides where it is sure to."""
    if tol < 0 or left > tol * tol + slack:
        return False
    return math.sqrt(subtract(y, at_A, long, at_atoms, V, s, d, at_r, like, like)) <= tol


def walk(
    G: Array, A: Array, norms: Array, Y: Array, C: Array, squares: Array, limits: Array, tols: Array, noise: float,
    which: Array, rooms: Rooms, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """OMP, OLS or NNOMP, as the rooms say, for the signals numbered `which`; the rows of A are the atoms."""
    at = addresses(G, A, norms, Y, C, squares, limits, tols, which, out_atoms, out_x, counts)
    sizes = len(which), *A.shape[::-1], out_x.shape[1], rooms.width, A.itemsize
    steps(at, sizes, G.dtype.type(0), noise, rooms.at, rooms.ols, rooms.nonnegative)


@kernel
def steps(at: Array, sizes: Array, like: float, noise: float, rooms: Array, ols: Array, positive: Array) -> None:
    """As `walk`, with addresses instead of arrays, and None for what has no use: numba compiles nothing of that."""
    at_G, at_A, at_norms, at_Y, at_C, at_squares, at_limits, at_tols, at_which, at_out_atoms, at_out_x, at_counts = at
    signals, d, n, columns, width, size = sizes
    F, V, at_z, at_atoms, at_c, at_free, at_r = rooms
    squares, tols, norms = numbers(at_squares, like), numbers(at_tols, like), numbers(at_norms, like)
    limits, which, counts = numbers(at_limits, n), numbers(at_which, n), numbers(at_counts, n)
    depth, row, long = width * size, n * size, d * size
    b, norm, atoms = numbers(V + depth, like), numbers(V + 2 * depth, like), numbers(at_atoms, np.int32(0))
    c, free = numbers(at_c, like), numbers(at_free, like)
    eps = 2.0**-52 if size == 8 else 2.0**-23
    at_v = None
    if ols is not None:
        at_v = ols[0]
    for number in range(signals):
        p = which[number]
        y, start = at_Y + p * long, at_C + p * row
        s, whole = np.int64(0), math.sqrt(squares[p])
        copy(at_norms, at_free, n, like)
        if ols is not None:
            for j in range(n):
                numbers(at_v, like)[j] = norms[j] * norms[j]
        for _ in range(4 * limits[p] + n + 16):
            mass = whole + weigh(V, V + 2 * depth, s, like)
            left, slack = squares[p] - dot(V, V + depth, s, like), 16 * (s + 4) * eps * mass * mass
            if s == limits[p] or reached(left, tols[p], slack, y, at_A, long, d, at_atoms, V, s, at_r, like):
                break
            if ols is None or s == 0:
                subtract(start, at_G, row, at_atoms, V, s, n, at_c, like, like)
            j = best(at_c, at_v, at_free, n, positive is not None, noise * mass, 16 * (s + 4) * eps, like)
            if j < 0:
                break
            free[j] = np.inf
            gather(at_G + j * row, at_atoms, s, F + s * depth, like)
            numbers(F + s * depth, like)[s] = numbers(at_G + j * row, like)[j]
            if not border(F, depth, s, like):
                continue
            atoms[s], b[s], norm[s] = j, numbers(start, like)[j], norms[j]
            s += 1
            if positive is None:
                refit(F, V, width, depth, s, c[j], V, like)
            if positive is not None:
                s = refit_nonnegative(F, V, atoms, free, width, depth, s, c[j], noise * mass, eps, positive, like)
            if ols is not None:
                turn_away(F, V, width, depth, s, at_G, row, n, at_atoms, at_c, ols, like)
        if lost(F + 2 * width * depth, depth, norm, s, like) > UNCLEAR:
            polish(F + width * depth, V, depth, s, at_A, long, d, at_atoms, y, at_r, at_z, like)
        export(at_atoms, V, s, at_out_atoms + 4 * p * columns, at_out_x + size * p * columns, like, like)
        counts[p] = s


def match(
    G: Array, A: Array, norms: Array, Y: Array, C: Array, squares: Array, limits: Array, tols: Array, noise: float,
    rooms: Rooms, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """Matching pursuit: one weight moves a step. Ends where a step would need one atom more than the limit."""
    at = addresses(G, A, norms, Y, C, squares, limits, tols, out_atoms, out_x, counts)
    sizes = len(Y), *A.shape[::-1], out_x.shape[1], rooms.width, A.itemsize
    hops(at, sizes, G.dtype.type(0), noise, rooms.at, rooms.place)


@kernel
def hops(at: Array, sizes: Array, like: float, noise: float, rooms: Array, more: Array) -> None:
    """As `match`, with addresses."""
    at_G, at_A, at_norms, at_Y, at_C, at_squares, at_limits, at_tols, at_out_atoms, at_out_x, at_counts = at
    signals, d, n, columns, width, size = sizes
    _, V, _, at_atoms, at_c, _, at_r = rooms
    squares, tols, norms = numbers(at_squares, like), numbers(at_tols, like), numbers(at_norms, like)
    limits, counts, place = numbers(at_limits, n), numbers(at_counts, n), numbers(more[0], n)
    depth, row, long = width * size, n * size, d * size
    x, norm = numbers(V, like), numbers(V + 2 * depth, like)
    atoms, c = numbers(at_atoms, np.int32(0)), numbers(at_c, like)
    eps = 2.0**-52 if size == 8 else 2.0**-23
    for p in range(signals):
        s, left, whole, y = np.int64(0), squares[p], math.sqrt(squares[p]), at_Y + p * long
        copy(at_C + p * row, at_c, n, like)
        for turn in range(TURNS * limits[p]):
            mass = whole + weigh(V, V + 2 * depth, s, like)
            slack = 16 * (turn + 4) * eps * mass * mass
            if reached(left, tols[p], slack, y, at_A, long, d, at_atoms, V, s, at_r, like):
                break
            j = best(at_c, None, at_norms, n, False, noise * mass, 0.0, like)
            if j < 0 or (place[j] == 0 and s == limits[p]):
                break
            if place[j] == 0:
                atoms[s], x[s], norm[s] = j, 0, norms[j]
                s += 1
                place[j] = s
            step = c[j] / numbers(at_G + j * row, like)[j]
            left -= c[j] * step
            x[place[j] - 1] += step
            add(at_c, -step, at_G + j * row, n, at_c, like)
        for i in range(s):
            place[atoms[i]] = 0
        export(at_atoms, V, s, at_out_atoms + 4 * p * columns, at_out_x + size * p * columns, like, like)
        counts[p] = s
