"""Pursuits that all take a step together, from the residuals themselves: weighted signals, few signals, many atoms.

Every signal has its own inner product <u, v>_w = sum_t w_t u_t v_t, hence its own Gram matrix, of which only entries
between active atoms are ever formed. Correlations of a whole tile are one matrix product a turn, outside this kernel.
"""

from __future__ import annotations

import math

import numpy as np

from pursuit._compiled import Array, kernel
from pursuit._vector import numbers
from pursuit.encode.careful import TURNS
from pursuit.encode.lines import add, best, border, copy, solve, subtract, weigh, weighted
from pursuit.encode.rooms import addresses, several
from pursuit.encode.small import MP, NNOMP, OLS, factors, nonnegative, refit

SIZE, TURN, OVER = range(3)
"""What is known of each signal: the number of its atoms, of its turns, whether it is done."""


class Rooms:
    """What the signals of a tile remember: factors, vectors over active atoms, those atoms, the norms N of all, infinite
    for those that are taken, and three numbers. And rooms to work in."""

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


@kernel
def turn(
    at: Array, sizes: Array, like: float, noise: float, rooms: Array, mp: Array, ols: Array, positive: Array
) -> None:  # fmt: skip
    """As `advance`, with addresses instead of arrays, and None for what has no use: numba compiles nothing of that."""
    at_A, at_Y, at_W, at_N, at_C, at_active, at_limits, at_tols, at_R = at
    signals, d, n, width, size, own_weights, own_norms = sizes
    all_F, all_V, all_atoms, all_free, at_state, at_z = rooms
    active, limits, tols, z = numbers(at_active, n), numbers(at_limits, n), numbers(at_tols, like), numbers(at_z, like)
    eps = 2.0**-52 if size == 8 else 2.0**-23
    depth, row, long = width * size, n * size, d * size
    for number in range(signals):
        p = active[number]
        F, V, at_atoms, at_free = all_F + 3 * p * width * depth, all_V + 3 * p * depth, all_atoms + 4 * p * width, all_free + p * row
        x, b, sizes_of = numbers(V, like), numbers(V + depth, like), numbers(V + 2 * depth, like)
        atoms, free, state = numbers(at_atoms, np.int32(0)), numbers(at_free, like), numbers(at_state + 24 * p, n)
        y, r, w = at_Y + p * long, at_R + p * long, at_W + (p * long if own_weights else 0)
        norms, at_c = numbers(at_N + (p * row if own_norms else 0), like), at_C + number * row
        c = numbers(at_c, like)
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
                place = 0
                while place < s and atoms[place] != j:
                    place += 1
                over = place == limit
                if over:
                    break
                if place == s:
                    atoms[s], x[s], sizes_of[s] = j, 0, norms[j]
                    s += 1
                x[place] += c[j] / square
                break
            if mp is None:
                h = numbers(F + s * depth, like)
                for i in range(s):
                    h[i] = weighted(w, at_A + atoms[i] * long, a, d, like)
                h[s], free[j] = square, np.inf
                if border(F, depth, s, like):
                    atoms[s], b[s], sizes_of[s] = j, weighted(w, a, y, d, like), norms[j]
                    s += 1
                    if positive is None:
                        refit(F, V, width, depth, s, c[j], V, like)
                    if positive is not None:
                        if refit(F, V, width, depth, s, c[j], at_z, like) > 0:
                            copy(at_z, V, s, like)
                        else:
                            s = nonnegative(F, V, atoms, free, width, depth, s, noise * mass, eps, positive, like)
                    break
        if mp is None and over:  # a step of iterative refinement: correlations of active atoms should be zero
            for i in range(s):
                z[i] = weighted(w, at_A + atoms[i] * long, r, d, like)
            solve(F + width * depth, depth, at_z, s, like)
            add(V, 1.0, at_z, s, V, like)
        subtract(y, at_A, long, at_atoms, V, s, d, r, like)
        if ols is not None and not over:
            at_q = ols[1] + p * long
            q, weights = numbers(at_q, like), numbers(w, like)
            subtract(ols[2], at_A, long, at_atoms, F + (2 * width + s - 1) * depth, s, d, at_q, like)
            for t in range(d):
                q[t] *= -weights[t]
        state[SIZE], state[OVER] = s, over
        state[TURN] += 1


def finish(rooms: Rooms, out_atoms: Array, out_x: Array, counts: Array) -> None:
    """The codes of a tile, their atoms in increasing order."""
    counts[:] = rooms.state[:, SIZE]
    used = np.arange(rooms.atoms.shape[1]) < counts[:, None]
    order = np.argsort(np.where(used, rooms.atoms, np.iinfo(np.int32).max), axis=1)
    out_atoms[:] = np.take_along_axis(rooms.atoms, order, axis=1)
    out_x[:] = np.take_along_axis(rooms.V[:, 0], order, axis=1)
