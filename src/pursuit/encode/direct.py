"""Pursuits that all take a step together, from the residuals themselves: weighted signals, few signals, many atoms.

Every signal has its own inner product <u, v>_w = sum_t w_t u_t v_t, hence its own Gram matrix, of which only entries
between active atoms are ever formed. Correlations of a whole tile are one matrix product a turn, outside this kernel.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, kernel, part
from pursuit._vector import numbers
from pursuit.encode.careful import TURNS
from pursuit.encode.lines import add, best, border, solve, subtract, weigh, weighted
from pursuit.encode.rooms import addresses, several
from pursuit.encode.small import MP, NNOMP, OLS, factors, refit, refit_nonnegative

SIZE, TURN, OVER = range(3)
"""What is known of each signal: the number of its atoms, of its turns, whether it is done."""


class Rooms:
    """What the signals of a tile remember: factors, vectors over active atoms, those atoms; the norms of all atoms,
    infinite for the active ones; three numbers. And rooms to work in."""

    def __init__(self, N: Array, count: int, d: int, width: int, method: int) -> None:
        n, kind, square = N.shape[1], N.dtype, width if method != MP else 1
        self.F, self.V, self.atoms, self.free, self.state, self.z = several(
            ((count, 3, square, square), kind), ((count, 3, width), kind), ((count, width), np.int32),
            ((count, n), kind), ((count, 3), np.int64), ((width,), kind),
        )  # fmt: skip
        self.free[:] = N
        self.special = factors(width, kind) if method == NNOMP else []
        self.zeros = np.zeros(d if method == OLS else 0, kind)
        self.at = addresses(self.F, self.V, self.atoms, self.free, self.state, self.z)


def advance(
    A: Array, Y: Array, W: Array, N: Array, C: Array, left: Array, active: Array, limits: Array, tols: Array,
    noise: float, method: int, R: Array, Q: Array, rooms: Rooms,
) -> None:  # fmt: skip
    """One turn of every signal in `active`, whose correlations are the rows of C.

    Y and W are signals and weights, N the weighted norms of the atoms, R the residuals; for OLS, `left` has the squared
    norms of what the active atoms leave of each, and Q gets the last direction times the weights.
    """
    at = addresses(A, Y, W, N, C, active, limits, tols, R)
    sizes = len(active), *A.shape[::-1], rooms.z.size, A.itemsize, len(W) > 1, len(N) > 1
    mp, ols = True if method == MP else None, addresses(left, Q, rooms.zeros) if method == OLS else None
    turn(at, sizes, A.dtype.type(0), noise, rooms.at, mp, ols, addresses(*rooms.special) if rooms.special else None)


@part
def correct(
    L: int, V: int, depth: int, s: int, w: int, at_A: int, long: int, d: int, atoms: Any, r: int, at_z: int, like: float
) -> None:  # fmt: skip
    """One step of iterative refinement: the correlations of the active atoms with the residual should be zero."""
    for i in range(s):
        numbers(at_z, like)[i] = weighted(w, at_A + atoms[i] * long, r, d, like)
    solve(L, depth, at_z, s, like)
    add(V, 1.0, at_z, s, V, like)


@part
def entered(
    F: int, V: int, depth: int, s: int, w: int, at_A: int, long: int, d: int, atoms: Any, a: int, square: float, y: int,
    like: float,
) -> bool:  # fmt: skip
    """Whether the atom a, of squared norm `square`, is independent of the active ones; its row of factors then."""
    h = numbers(F + s * depth, like)
    for i in range(s):
        h[i] = weighted(w, at_A + atoms[i] * long, a, d, like)
    h[s], numbers(V + depth, like)[s] = square, weighted(w, a, y, d, like)
    return border(F, depth, s, like)


@part
def step(atoms: Any, x: Any, sizes: Any, j: int, norm: float, s: int, limit: int, by: float) -> int:
    """A step of matching pursuit along atom j; the number of atoms then, or -1 if that is too many."""
    place = 0
    while place < s and atoms[place] != j:
        place += 1
    if place == limit:
        return -1
    if place == s:
        atoms[s], x[s], sizes[s] = j, 0, norm
    x[place] += by
    return max(s, place + 1)


@kernel
def turn(
    at: Array, sizes: Array, like: float, noise: float, rooms: Array, mp: Array, ols: Array, positive: Array
) -> None:  # fmt: skip
    """As `advance`, with addresses instead of arrays, and None for what has no use: numba compiles nothing of that."""
    at_A, at_Y, at_W, at_N, at_C, at_active, at_limits, at_tols, at_R = at
    signals, d, n, width, size, own_weights, own_norms = sizes
    all_F, all_V, all_atoms, all_free, at_state, at_z = rooms
    active, limits, tols = numbers(at_active, n), numbers(at_limits, n), numbers(at_tols, like)
    eps = 2.0**-52 if size == 8 else 2.0**-23
    depth, row, long = width * size, n * size, d * size
    for number in range(signals):
        p = active[number]
        F, V = all_F + 3 * p * width * depth, all_V + 3 * p * depth
        at_atoms, at_free = all_atoms + 4 * p * width, all_free + p * row
        x, own, free = numbers(V, like), numbers(V + 2 * depth, like), numbers(at_free, like)
        atoms, state = numbers(at_atoms, np.int32(0)), numbers(at_state + 24 * p, n)
        y, r, w, at_c = at_Y + p * long, at_R + p * long, at_W + (p * long if own_weights else 0), at_C + number * row
        norms, c = numbers(at_N + (p * row if own_norms else 0), like), numbers(at_c, like)
        at_left = None
        if ols is not None:
            at_left = ols[0] + number * row
        s, limit = state[SIZE], limits[p]
        mass = math.sqrt(weighted(w, y, y, d, like)) + weigh(V, V + 2 * depth, s, like)
        over = tols[p] >= 0 and math.sqrt(weighted(w, r, r, d, like)) <= tols[p]
        over |= (s == limit or state[TURN] == 4 * limit + 16) if mp is None else state[TURN] == TURNS * limit
        while not over:
            j = best(at_c, at_left, at_free, n, positive is not None, noise * mass, 16 * (s + 4) * eps, like)
            over = j < 0
            if over:
                break
            a = at_A + j * long
            square = weighted(w, a, a, d, like)
            if mp is not None:
                grown = step(atoms, x, own, j, norms[j], s, limit, c[j] / square)
                over, s = grown < 0, max(s, grown)
                break
            if mp is None:
                free[j] = np.inf
                if entered(F, V, depth, s, w, at_A, long, d, atoms, a, square, y, like):
                    atoms[s], own[s] = j, norms[j]
                    s += 1
                    if positive is None:
                        refit(F, V, width, depth, s, c[j], V, like)
                    if positive is not None:
                        s = refit_nonnegative(
                            F, V, atoms, free, width, depth, s, c[j], noise * mass, eps, positive, like
                        )
                    break
        if mp is None and over:
            correct(F + width * depth, V, depth, s, w, at_A, long, d, atoms, r, at_z, like)
        subtract(y, at_A, long, at_atoms, V, s, d, r, like, like)
        if ols is not None and not over:
            at_q = ols[1] + p * long
            subtract(ols[2], at_A, long, at_atoms, F + (2 * width + s - 1) * depth, s, d, at_q, like, like)
            for t in range(d):
                numbers(at_q, like)[t] *= -numbers(w, like)[t]
        state[SIZE], state[TURN], state[OVER] = s, state[TURN] + 1, over


def finish(rooms: Rooms, out_atoms: Array, out_x: Array, counts: Array) -> None:
    """The codes of a tile, their atoms in increasing order."""
    counts[:] = rooms.state[:, SIZE]
    used = np.arange(rooms.atoms.shape[1]) < counts[:, None]
    order = np.argsort(np.where(used, rooms.atoms, np.iinfo(np.int32).max), axis=1)
    out_atoms[:] = np.take_along_axis(rooms.atoms, order, axis=1)
    out_x[:] = np.take_along_axis(rooms.V[:, 0], order, axis=1)
