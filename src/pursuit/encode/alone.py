"""Orthogonal matching pursuit of one signal on a large dictionary: all turns in one kernel, the dictionary in 8 bits.

A turn asks which atom correlates best with the residual r. `ScreenedDictionary` says how an 8-bit copy proves that it
is one of a few, which are then told apart by products in full precision; where the copy leaves too many (more than a
tenth), the next turns (1, 3, 7, ... 63 as long as this goes on) compute all products. The atom enters as in `fast`,
with Gram entries computed as they are needed. All arithmetic is in float64.

Reading the copy, or the dictionary, is most of the work, and shared: the columns are divided into PIECES, and helpers
in `assist` take those that are open. They wait busily, as a turn takes less than waking them up would. On a busy
machine a helper may be stopped at any time: it writes into rooms of its own, and who has waited for it in vain does its
piece again; where that happens often, the helpers are sent home. What a late helper makes of numbers that have changed
meanwhile is never looked at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, kernel, part, scalar
from pursuit._kernels import intervals, shorten
from pursuit._ranking import PAUSE, rounding
from pursuit._vector import numbers
from pursuit.atoms.screening import TENTH, Codes
from pursuit.encode.atomic import claim, give_way, increase, pause, publish, read
from pursuit.encode.fast import CLEAR, GIVEN_UP, LOST
from pursuit.encode.lines import best, copy, export, mixed_dot, mixed_subtract, project
from pursuit.encode.rooms import addresses, aligned, several

PIECES = 16
"""Parts of the columns that threads take in a turn."""
BUSY = 500
"""Pauses, of some 20 ns, before who waits gives way to others."""
SLOW = 2500
"""Bytes that a helper reads, however slow it is, in the time that giving way takes: with more than that, it was waited
for in vain."""
SELDOM = 2
"""Turns in which that may happen, and one more in 16."""
OPEN, CLAIMED, OVER, HELPERS, DONE = range(5)
"""Words of a board: tickets of pieces that may be taken, that were taken; whether all is over; how many helpers there
are; and from DONE on, for each piece, its last ticket times CROWD, plus the number of the helper who did it."""
CROWD = 1024
"""More than there are helpers."""


def bounds(codes: Codes, m: int) -> tuple[float, float, int, int]:
    """Rounding of a product, room for squares, and the exponents of residuals with which no product over- or
    underflows."""
    limits, size = np.finfo(np.float64), codes.span[1] * (math.sqrt(codes.room) + math.sqrt(m))
    least = math.log2(1e4 * m) + math.log2(limits.tiny) - math.log2(codes.span[0])
    most = math.log2(limits.max) - math.log2(1e2 * size)
    return rounding(m, np.float64), codes.room, math.ceil(least), math.floor(most)


class Team:
    """A dictionary, whose atoms are the rows of A, its copy in 8 bits, and rooms for those who pursue a signal on it:
    the caller, number 0, and `count` - 1 helpers. Kernels are told their addresses."""

    def __init__(self, A: Array, norms: Array, codes: Codes, count: int, width: int) -> None:
        n, d = A.shape
        self.bounds, self.board = bounds(codes, d), aligned((DONE + PIECES, 8), np.int64)  # a cache line for each word
        # what is read in a turn: the residual, the same in 16 bits, and measures of it (length, rest, whether the copy
        # is read); what is found: ends of intervals (or products), and the best lower end of each piece
        self.r, self.p, measures, lower, upper, bests = several(
            ((d,), np.float64), ((codes.coarse.shape[1],), np.int16), ((3,), np.float64), ((count, n), np.float64),
            ((count, n), np.float64), ((count, PIECES), np.float64),
        )  # fmt: skip
        T, vectors, atoms = several(((width, width), np.float64), ((5, width), np.float64), ((width,), np.int32))
        self.held = A, norms, codes, np.arange(n), atoms
        self.like, self.sizes = A.dtype.type(0), (d, n, self.p.size, A.itemsize)
        self.copies = addresses(A, codes.coarse, self.held[3], codes.error, codes.norm, codes.scale)
        self.shared = addresses(self.r, self.p, measures, lower, upper, bests)
        self.rooms = width, count, *addresses(norms, T, vectors, atoms)


def assist(team: Team) -> None:
    """Do pieces until all is over."""
    help_out(team.board.ctypes.data, team.sizes, team.like, team.copies, team.shared)


def chase(team: Team, y: Array, limit: int, tol: float, noise: float, out_atoms: Array, out_x: Array) -> int:
    """The code of one signal y, in float64; the number of its atoms, or GIVEN_UP where they are nearly dependent (or
    one and the same, as an active atom has no correlation beyond rounding); `noise` and `tol` as in `fast`."""
    ends = limit, tol, noise, *team.bounds
    pair = team.r, team.p
    at = team.board.ctypes.data, *addresses(y, out_atoms, out_x)
    return int(turns(at, team.sizes, team.like, team.copies, team.shared, team.rooms, ends, *pair, out_x.dtype.type(0)))


@scalar
def evaluate(k: int, who: int, sizes: Array, like: float, copies: Array, shared: Array) -> None:
    """Intervals, or products, for the columns of piece k."""
    d, n, m, size = sizes
    at_A, coarse, everyone, error, norm, scale = copies
    at_r, at_p, at_measures, at_lower, at_upper, at_bests = shared
    measures, lower = numbers(at_measures, 0.0), at_lower + 8 * who * n
    start, stop = k * n // PIECES, (k + 1) * n // PIECES
    if measures[2] > 0:
        numbers(at_bests, 0.0)[who * PIECES + k] = intervals(
            coarse, coarse, False, everyone, start, stop, at_p, m, error, norm, scale, measures[0], measures[1], True,
            lower, at_upper + 8 * who * n,
        )  # fmt: skip
    else:
        for j in range(start, stop):
            numbers(lower, 0.0)[j] = mixed_dot(at_A + j * d * size, at_r, d, like, 0.0)


@kernel
def help_out(board: int, sizes: Array, like: float, copies: Array, shared: Array) -> None:
    """As `assist`, with addresses."""
    who, idle = increase(board + 64 * HELPERS) + 1, 0
    while read(board + 64 * OVER) == 0:
        ticket = read(board + 64 * CLAIMED)
        if ticket < read(board + 64 * OPEN) and claim(board + 64 * CLAIMED, ticket):
            evaluate(ticket % PIECES, who, sizes, like, copies, shared)
            publish(board + 64 * (DONE + ticket % PIECES), ticket * CROWD + who)
            idle = 0
        else:
            idle += 1
            if idle > BUSY:
                give_way()
            else:
                pause()


@part
def fetched(k: int, n: int, ticket: int, patience: int, board: int, shared: Array) -> bool:
    """Whether the helper who took piece k has done it; what it found is then where all is."""
    place, waited = board + 64 * (DONE + k), 0
    word = read(place)
    while word // CROWD != ticket and waited <= patience:
        if waited > BUSY:
            give_way()
        else:
            pause()
        waited += 1
        word = read(place)
    if word // CROWD != ticket:
        return False
    who, start, stop, bests = word % CROWD, k * n // PIECES, (k + 1) * n // PIECES, numbers(shared[5], 0.0)
    copy(shared[3] + 8 * (who * n + start), shared[3] + 8 * start, stop - start, 0.0)
    copy(shared[4] + 8 * (who * n + start), shared[4] + 8 * start, stop - start, 0.0)
    bests[k] = bests[who * PIECES + k]
    return True


@part
def together(board: int, helped: bool, sizes: Array, like: float, copies: Array, shared: Array) -> bool:
    """All pieces of a turn; whether nobody was waited for in vain."""
    d, n, m, size = sizes
    first, well, done, next_piece = 0, True, 0, 0
    patience = BUSY + 100 + n * (m if numbers(shared[2], 0.0)[2] > 0 else d * size) // (PIECES * SLOW)
    if helped:
        first = read(board + 64 * OPEN)
        publish(board + 64 * OPEN, first + PIECES)
    while True:
        ticket = read(board + 64 * CLAIMED) if helped else first + PIECES
        k = ticket % PIECES
        if ticket == first + PIECES:  # all are taken
            k = next_piece
            next_piece += 1
            if k == PIECES:
                break
            if done >> k & 1 or (helped and fetched(k, n, first + k, patience, board, shared)):
                continue
            well &= not helped
        elif not claim(board + 64 * CLAIMED, ticket):
            continue
        evaluate(k, np.int64(0), sizes, like, copies, shared)
        done |= 1 << k
    return well


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


@kernel
def turns(
    at: Array, sizes: Array, like: float, copies: Array, shared: Array, rooms: Array, ends: Array, r: Array, p: Array,
    out: float,
) -> Any:  # fmt: skip
    """As `chase`, with addresses."""
    (board, at_y, at_out_atoms, at_out_x), (d, n, _, size), at_A = at, sizes, copies[0]
    width, count, at_norms, T, at_x, at_atoms = rooms
    limit, tol, noise, gamma, room, least, most = ends
    long, depth, team = d * size, 8 * width, count > 1
    at_beta, at_sizes, at_sums, at_h = at_x + depth, at_x + 2 * depth, at_x + 3 * depth, at_x + 4 * depth
    x, beta, own, sums, h = (
        numbers(at_x, 0.0), numbers(at_beta, 0.0), numbers(at_sizes, 0.0), numbers(at_sums, 0.0), numbers(at_h, 0.0),
    )  # fmt: skip
    atoms, norms, measures = numbers(at_atoms, np.int32(0)), numbers(at_norms, 0.0), numbers(shared[2], 0.0)
    s, without, longest, vain = np.int64(0), 0, 0, 0
    square = mixed_subtract(at_y, at_A, long, at_atoms, at_x, s, d, shared[0], like)
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
            vain += not together(board, team, sizes, like, copies, shared)
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
        a = at_A + j * long
        diagonal = mixed_dot(a, a, d, like, like)
        for i in range(s):
            h[i], beta[i] = mixed_dot(at_A + atoms[i] * long, a, d, like, like), 0
        pivot = diagonal - project(T, depth, at_h, at_beta, s, 0.0)
        if not pivot > CLEAR[0] * diagonal:
            return GIVEN_UP
        atoms[s], own[s], x[s], sums[s], beta[s], mass = j, norms[j], 0, 0, -1, whole
        root, step, new = 1 / math.sqrt(pivot), c / pivot, numbers(T + s * depth, 0.0)
        s += 1
        for i in range(s):
            new[i] = -root * beta[i]
            x[i] -= step * beta[i]
            sums[i] += new[i] * new[i]
            mass += abs(x[i]) * own[i]
        square = mixed_subtract(at_y, at_A, long, at_atoms, at_x, s, d, shared[0], like)
    for i in range(s):
        h[i] = mixed_dot(at_A + atoms[i] * long, shared[0], d, like, 0.0)  # of an active atom, it should be zero
        if sums[i] * own[i] * own[i] > LOST[0]:
            return GIVEN_UP
    project(T, depth, at_h, at_x, s, 0.0)
    export(at_atoms, at_x, s, at_out_atoms, at_out_x, 0.0, out)
    return s
