"""Orthogonal matching pursuit, and least squares, of one signal on a large dictionary: all turns in one kernel.

A turn asks which atom correlates best with the residual r. `ScreenedDictionary` says how an 8-bit copy proves that it
is one of a few, which are then told apart by products in full precision; where the copy leaves too many (more than a
tenth), the next turns (1, 3, 7, ... 63 as long as this goes on) compute all products. The atom enters as in `fast`,
with Gram entries computed as they are needed. All arithmetic is in float64.

Orthogonal least squares asks for the largest c_j^2 / v_j, with v_j = ||a_j||^2 - sum_i <q_i, a_j>^2 the squared norm of
what the active atoms leave of atom j, for an orthonormal basis q_i of theirs. The copy encloses <q_i, a_j> as it does
c_j = <a_j, r>: one more direction a turn, whose squares add up to bounds of v_j. Atoms whose largest ratio reaches the
largest of the least ones are told apart in full precision, with the directions that came since they last were; the
bounds of v_j are what it is then. Where that takes too many products, the signal is given up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, kernel, part
from pursuit._kernels import shorten
from pursuit._ranking import PAUSE
from pursuit._vector import numbers
from pursuit.atoms.screening import TENTH
from pursuit.encode.atomic import publish
from pursuit.encode.fast import CLEAR, GIVEN_UP, LOST
from pursuit.encode.lines import best, copy, export, mixed_dot, project, subtract
from pursuit.encode.rooms import addresses
from pursuit.encode.team import OVER, PIECES, SELDOM, Team, together

DEAR = 0.25
"""Products in full precision that OLS may spend, of those that it would take without a copy: more are not worth it."""
NEARLY = 1 - 1e-9
"""What rounding leaves of a bound."""


def chase(team: Team, y: Array, limit: int, tol: float, noise: float, out_atoms: Array, out_x: Array) -> int:
    """The code of one signal y, in float64; the number of its atoms, or GIVEN_UP where they are nearly dependent (or
    one and the same, as an active atom has no correlation beyond rounding); `noise` and `tol` as in `fast`."""
    at = team.board.ctypes.data, *addresses(y, out_atoms, out_x)
    rest = team.copies, team.shared, team.rooms, (limit, tol, noise, *team.bounds), team.r, team.p
    like = team.like, out_x.dtype.type(0)
    if team.second is None:
        return int(turns(at, team.sizes, *like, *rest))
    return int(turns_by_gain(at, team.sizes, *like, *rest, team.second, team.left, team.q, team.p_of_q))


@part
def sift(sizes: Array, like: float, at_A: int, norms: Any, floor: float, shared: Array) -> Any:
    """The atom of largest |<a, r>| > floor ||a|| among those that the copy leaves, -1 if there is none; that product;
    whether they were not too many."""
    d, n, _, size = sizes
    upper, bests, tried, found, value = numbers(shared[4], 0.0), numbers(shared[5], 0.0), 0, -1, 0.0
    bar = bests[0]
    for k in range(PIECES):
        bar = max(bar, bests[k])
    for j in range(n):
        if upper[j] >= bar:
            tried += 1
            if tried > n // TENTH:
                return -1, 0.0, False
            c = mixed_dot(at_A + j * d * size, shared[0], d, like, 0.0)
            if abs(c) > abs(value) and abs(c) > floor * norms[j]:
                found, value = j, c
    return found, value, True


@part
def sift_gains(
    s: int, spent: int, sizes: Array, like: float, at_A: int, norms: Any, floor: float, least: float, shared: Array,
    second: Array, left: Array,
) -> Any:  # fmt: skip
    """The atom of the largest c^2 / v after s directions, -1 if there is none; c; how many products were `spent` so
    far, -1 if too many. Atoms that are taken, or dependent on those, have infinite bounds of v; one that is nearly so
    is too much."""
    d, n, _, size = sizes
    at_Q, at_low, at_high, at_exact, at_whole, at_seen, _ = left
    low, high = numbers(at_low, 0.0), numbers(at_high, 0.0)
    exact, whole = numbers(at_exact, 0.0), numbers(at_whole, 0.0)
    seen, unit = numbers(at_seen, np.int32(0)), numbers(second[1], 0.0)[2]
    lower, upper = numbers(shared[3], 0.0), numbers(shared[4], 0.0)
    below, above = numbers(second[2], 0.0), numbers(second[3], 0.0)
    bar, found, value, most = 0.0, -1, 0.0, 0.0
    for j in range(n):
        more, fewer, c = unit * above[j], unit * max(below[j], 0.0), max(lower[j], 0.0)
        low[j] -= more * more
        high[j] -= fewer * fewer
        bar = max(bar, c * c / high[j] if high[j] > 0 else 0.0)
    for j in range(n):
        if upper[j] * upper[j] >= NEARLY * bar * low[j] or low[j] <= CLEAR[0] * whole[j]:
            a = at_A + j * d * size
            if seen[j] < 0:
                exact[j], seen[j] = mixed_dot(a, a, d, like, like), 0
            spent += 1 + s - seen[j]
            for i in range(seen[j], s):
                t = mixed_dot(a, at_Q + 8 * i * d, d, like, 0.0)
                exact[j] -= t * t
            seen[j] = s
            low[j] = high[j] = exact[j] if exact[j] > least * whole[j] else np.inf
            if spent > DEAR * n * (s + 1) or low[j] <= CLEAR[0] * whole[j]:
                return -1, 0.0, -1
            c = mixed_dot(a, shared[0], d, like, 0.0)
            if abs(c) > floor * norms[j] and c * c > most * low[j]:
                found, value, most = j, c, c * c / low[j]
    return found, value, spent


@part
def admitted(
    j: int, c: float, norm: float, whole: float, s: int, at_A: int, long: int, d: int, like: float, T: int, depth: int,
    at_x: int, atoms: Any,
) -> float:  # fmt: skip
    """Atom j, of correlation c with the residual, enters after s others; the norm of the signal, `whole`, plus the sum
    of weights times norms then, or -1 where it is nearly dependent."""
    at_beta, at_h, a = at_x + depth, at_x + 4 * depth, at_A + j * long
    x, beta, sizes, sums, h = (
        numbers(at_x, 0.0), numbers(at_beta, 0.0), numbers(at_x + 2 * depth, 0.0), numbers(at_x + 3 * depth, 0.0),
        numbers(at_h, 0.0),
    )  # fmt: skip
    diagonal = mixed_dot(a, a, d, like, like)
    for i in range(s):
        h[i], beta[i] = mixed_dot(at_A + atoms[i] * long, a, d, like, like), 0
    pivot = diagonal - project(T, depth, at_h, at_beta, s, 0.0)
    if not pivot > CLEAR[0] * diagonal:
        return -1.0
    atoms[s], sizes[s], x[s], sums[s], beta[s], mass = j, norm, 0, 0, -1, whole
    root, step, new = 1 / math.sqrt(pivot), c / pivot, numbers(T + s * depth, 0.0)
    for i in range(s + 1):
        new[i] = -root * beta[i]
        x[i] -= step * beta[i]
        sums[i] += new[i] * new[i]
        mass += abs(x[i]) * sizes[i]
    return mass


@part
def concluded(
    s: int, at_A: int, long: int, d: int, like: float, T: int, depth: int, at_x: int, at_atoms: int, at_r: int,
    at_out_atoms: int, at_out_x: int, out: float,
) -> Any:  # fmt: skip
    """The code is written, where it is sure; the number of its atoms, or GIVEN_UP."""
    atoms, h, sizes = numbers(at_atoms, np.int32(0)), numbers(at_x + 4 * depth, 0.0), numbers(at_x + 2 * depth, 0.0)
    for i in range(s):
        h[i] = mixed_dot(at_A + atoms[i] * long, at_r, d, like, 0.0)  # of an active atom, it should be zero
        if numbers(at_x + 3 * depth, 0.0)[i] * sizes[i] * sizes[i] > LOST[0]:
            return GIVEN_UP
    project(T, depth, at_x + 4 * depth, at_x, s, 0.0)
    export(at_atoms, at_x, s, at_out_atoms, at_out_x, 0.0, out)
    return s


@kernel
def turns(
    at: Array, sizes: Array, like: float, out: float, copies: Array, shared: Array, rooms: Array, ends: Array, r: Array,
    p: Array,
) -> Any:  # fmt: skip
    """OMP, as `chase`, with addresses."""
    (board, at_y, at_out_atoms, at_out_x), (d, n, _, size), at_A, at_r = at, sizes, copies[0], shared[0]
    width, count, at_norms, T, at_x, at_atoms = rooms
    limit, tol, noise, gamma, room, least, most = ends
    long, depth, team = d * size, 8 * width, count > 1
    atoms, norms, measures = numbers(at_atoms, np.int32(0)), numbers(at_norms, 0.0), numbers(shared[2], 0.0)
    s, without, longest, vain = np.int64(0), 0, 0, 0
    square = subtract(at_y, at_A, long, at_atoms, at_x, s, d, at_r, like, 0.0)
    whole = mass = math.sqrt(square)
    while s < limit and whole > 0 and not math.sqrt(square) <= tol:
        j, c, without = -1, 0.0, without - 1
        for way in range(2):
            measures[2] = 0
            if way == 0 and without < 0:
                exponent, length, rest = shorten(r, room, p)
                measures[0], measures[1] = length, rest + gamma * (length + rest)
                measures[2] = length > 0 and least <= exponent <= most
            if j >= 0 or (way == 0 and measures[2] == 0):
                continue
            vain += not together(board, team, sizes, like, copies, shared, None)
            if team and vain > SELDOM + s // 16:
                team = False
                publish(board + 64 * OVER, 1)
            if way == 0:
                j, c, useful = sift(sizes, like, at_A, norms, noise * mass, shared)
                longest = 0 if useful else min(2 * longest + 1, PAUSE)
                without = longest
            else:  # the copy was of no use, or left no good atom: all of them have the last word
                j = best(shared[3], None, at_norms, n, False, noise * mass, 0.0, 0.0)
                c = numbers(shared[3], 0.0)[max(j, 0)]
        if j < 0:
            break
        mass = admitted(j, c, norms[j], whole, s, at_A, long, d, like, T, depth, at_x, atoms)
        if mass < 0:
            return GIVEN_UP
        s += 1
        square = subtract(at_y, at_A, long, at_atoms, at_x, s, d, at_r, like, 0.0)
    return concluded(s, at_A, long, d, like, T, depth, at_x, at_atoms, at_r, at_out_atoms, at_out_x, out)


@kernel
def turns_by_gain(
    at: Array, sizes: Array, like: float, out: float, copies: Array, shared: Array, rooms: Array, ends: Array, r: Array,
    p: Array, second: Array, left: Array, q: Array, p_of_q: Array,
) -> Any:  # fmt: skip
    """OLS, as `chase`, with addresses."""
    (board, at_y, at_out_atoms, at_out_x), (d, n, _, size), at_A, at_r = at, sizes, copies[0], shared[0]
    width, count, at_norms, T, at_x, at_atoms = rooms
    limit, tol, noise, gamma, room, least, most = ends
    at_Q, at_low, at_high, _, at_whole, at_seen, at_zeros = left
    long, depth, team = d * size, 8 * width, count > 1
    atoms, norms, measures = numbers(at_atoms, np.int32(0)), numbers(at_norms, 0.0), numbers(shared[2], 0.0)
    low, high, directions = numbers(at_low, 0.0), numbers(at_high, 0.0), numbers(second[1], 0.0)
    for j in range(n):
        norm = numbers(copies[5], 0.0)[j] * numbers(copies[4], 0.0)[j]  # rounded up, by less than its share below
        high[j] = numbers(at_whole, 0.0)[j] = norm * norm
        low[j], numbers(at_seen, np.int32(0))[j] = high[j] * (1 - 8 * (d + 1024) * 2.0**-52), -1
    s, vain, spent, directions[2] = np.int64(0), 0, 0, 0
    square = subtract(at_y, at_A, long, at_atoms, at_x, s, d, at_r, like, 0.0)
    whole = mass = math.sqrt(square)
    while s < limit and math.sqrt(square) > noise * mass and not math.sqrt(square) <= tol:
        exponent, length, rest = shorten(r, room, p)
        measures[0], measures[1] = length, rest + gamma * (length + rest)
        measures[2] = length > 0 and least <= exponent <= most
        if s > 0:
            subtract(at_zeros, at_A, long, at_atoms, T + (s - 1) * depth, s, d, at_Q + 8 * (s - 1) * d, like, 0.0)
            copy(at_Q + 8 * (s - 1) * d, q.ctypes.data, d, 0.0)
            exponent, length, rest = shorten(q, room, p_of_q)
            directions[0], directions[1] = length, rest + gamma * (length + rest)
            directions[2] = math.ldexp(1.0, exponent)
            measures[2] *= length > 0 and least <= exponent <= most
        if measures[2] == 0:
            return GIVEN_UP
        vain += not together(board, team, sizes, like, copies, shared, second)
        if team and vain > SELDOM + s // 16:
            team = False
            publish(board + 64 * OVER, 1)
        dead = 16 * (s + 4) * 2.0**-52
        j, c, spent = sift_gains(s, spent, sizes, like, at_A, norms, noise * mass, dead, shared, second, left)
        if spent < 0:
            return GIVEN_UP
        if j < 0:
            break
        mass = admitted(j, c, norms[j], whole, s, at_A, long, d, like, T, depth, at_x, atoms)
        if mass < 0:
            return GIVEN_UP
        s, low[j], high[j] = s + 1, np.inf, np.inf
        square = subtract(at_y, at_A, long, at_atoms, at_x, s, d, at_r, like, 0.0)
    return concluded(s, at_A, long, d, like, T, depth, at_x, at_atoms, at_r, at_out_atoms, at_out_x, out)
