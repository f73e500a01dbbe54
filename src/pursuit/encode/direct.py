"""Pursuits that all take a step together, from the residuals themselves: weighted signals, few signals, many atoms.

Every signal has its own inner product <u, v>_w = sum_t w_t u_t v_t, hence its own Gram matrix, of which only entries
between active atoms are ever formed. Correlations of a whole tile are one matrix product a turn, outside this kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, helper, kernel, part
from pursuit.encode.careful import TURNS, subtract, weight_of
from pursuit.encode.small import MP, OLS, border, choose, export, ranks, refit, solve


def workspace(count: int, n: int, width: int, dtype: Any, factors: bool) -> tuple[Any, ...]:
    """What `count` signals remember, and rooms to work in: factors, vectors over active atoms, size, turns and done."""
    square = width if factors else 1
    F = np.zeros((count, 3, square, square), dtype)
    V, atoms, taken = np.zeros((count, 3, width), dtype), np.zeros((count, width), np.int32), np.zeros((count, n), bool)
    room = np.zeros(width, dtype), np.zeros(width, dtype), np.zeros(width, np.int64), np.zeros(width, bool)
    return F, V, atoms, taken, np.zeros((count, 3), np.int64), ranks(n, dtype), room


@helper
def inner(w: Array, u: Array, v: Array) -> float:
    total = 0 * w[0]
    for t in range(len(w)):
        total += w[t] * u[t] * v[t]
    return total


@part
def correct(F: Array, w: Array, A: Array, r: Array, atoms: Array, x: Array, s: int, room: Array) -> None:
    """One step of iterative refinement: the correlations of the active atoms with the residual should be zero."""
    z, part, _, _ = room
    for i in range(s):
        part[i] = inner(w, A[atoms[i]], r)
    solve(F, part, z, s)
    for i in range(s):
        x[i] += z[i]


@part
def step(w: Array, A: Array, atoms: Array, V: Array, c: Array, norms: Array, j: int, s: int, limit: int) -> int:
    """A step of matching pursuit along atom j; the number of atoms then, or -1 if that is too many."""
    place = 0
    while place < s and atoms[place] != j:
        place += 1
    if place == limit:
        return -1
    if place == s:
        atoms[s], V[0, s], V[2, s] = j, 0, norms[j]
    V[0, place] += c[j] / inner(w, A[j], A[j])
    return max(s, place + 1)


@kernel
def advance(
    A: Array, Y: Array, W: Array, N: Array, C: Array, left: Array, active: Array, limits: Array, tols: Array,
    noise: float, method: int, R: Array, Q: Array, E: Array, work: Array,
) -> None:  # fmt: skip
    """One turn of every signal in `active`, whose correlations are the rows of C.

    Y and W are signals and weights, N the weighted norms of the atoms, R the residuals; for OLS, `left` has the squared
    norms of what the active atoms leave of each, and Q gets the last direction times the weights. E is as in `refit`.
    """
    all_F, all_V, all_atoms, all_taken, state, keys, room = work
    eps = 2.0**-52 if C.itemsize == 8 else 2.0**-23
    for row in range(len(active)):
        p = active[row]
        F, V, atoms, taken, y, r, c = all_F[p], all_V[p], all_atoms[p], all_taken[p], Y[p], R[p], C[row]
        w, norms = W[p if len(W) > 1 else 0], N[p if len(N) > 1 else 0]
        s, limit = state[p, 0], limits[p]
        mass = math.sqrt(inner(w, y, y)) + weight_of(V, s)
        over = tols[p] >= 0 and math.sqrt(inner(w, r, r)) <= tols[p]
        over |= (s == limit or state[p, 1] == 4 * limit + 16) if method != MP else state[p, 1] == TURNS * limit
        while not over:
            j = choose(
                c, left[row if method == OLS else 0], norms, taken, method, noise * mass, 16 * (s + 4) * eps, keys
            )
            grown = step(w, A, atoms, V, c, norms, j, s, limit) if method == MP and j >= 0 else s
            over = j < 0 or grown < 0
            if over or method == MP:
                s = s if over else grown
                break
            for i in range(s):
                F[0, s, i] = F[0, i, s] = inner(w, A[atoms[i]], A[j])
            F[0, s, s] = inner(w, A[j], A[j])
            taken[j] = True
            if border(F, s, eps):
                atoms[s], V[1, s], V[2, s] = j, inner(w, A[j], y), norms[j]
                s = refit(F, E, atoms, V, taken, s + 1, c[j], noise * mass, eps, room)
                break
        if over and method != MP:
            correct(F, w, A, r, atoms, V[0], s, room)
        subtract(y, A, V[0], atoms, s, r)
        if method == OLS and not over:
            for t in range(len(w)):
                q = 0 * w[t]
                for i in range(s):
                    q += F[2, s - 1, i] * A[atoms[i], t]
                Q[p, t] = q * w[t]
        state[p, 0] = s
        state[p, 1] += 1
        state[p, 2] = over


@kernel
def finish(work: Array, out_atoms: Array, out_x: Array, counts: Array) -> None:
    """The codes of a tile, their atoms in increasing order."""
    _, V, atoms, _, state, _, _ = work
    for p in range(len(state)):
        export(atoms[p], V[p, 0], state[p, 0], out_atoms[p], out_x[p])
        counts[p] = state[p, 0]
