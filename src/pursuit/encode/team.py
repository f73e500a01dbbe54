"""A large dictionary, its copy in 8 bits, and the threads that look through it together, for one signal.

Reading the copy, or the dictionary, is most of the work, and shared: the columns are divided into PIECES, and helpers
in `assist` take those that are open. They wait busily, as a turn takes less than waking them up would. On a busy
machine a helper may be stopped at any time: it writes into rooms of its own, and who has waited for it in vain does its
piece again; where that happens often, the helpers are sent home. What a late helper makes of numbers that have changed
meanwhile is never looked at.
"""

from __future__ import annotations

import math

import numpy as np

from pursuit._compiled import Array, kernel, part, scalar
from pursuit._kernels import intervals
from pursuit._ranking import rounding
from pursuit._vector import numbers
from pursuit.atoms.screening import Codes
from pursuit.encode.atomic import claim, give_way, increase, pause, publish, read
from pursuit.encode.lines import copy, mixed_dot
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
NEAR = 64
"""Rows of the copy that are read for one vector, and then for another."""


def bounds(codes: Codes, m: int) -> tuple[float, float, int, int]:
    """Rounding of a product, room for squares, and the exponents of residuals with which no product over- or
    underflows."""
    limits, size = np.finfo(np.float64), codes.span[1] * (math.sqrt(codes.room) + math.sqrt(m))
    least = math.log2(1e4 * m) + math.log2(limits.tiny) - math.log2(codes.span[0])
    most = math.log2(limits.max) - math.log2(1e2 * size)
    return rounding(m, np.float64), codes.room, math.ceil(least), math.floor(most)


class Team:
    """A dictionary, whose atoms are the rows of A, its copy in 8 bits, and rooms for those who pursue a signal on it:
    the caller, number 0, and `count` - 1 helpers; and what only OLS needs. Kernels are told their addresses."""

    def __init__(self, A: Array, norms: Array, codes: Codes, count: int, width: int, ols: bool) -> None:
        n, d = A.shape
        line, lines, short = ((d,), np.float64), ((count, n), np.float64), ((codes.coarse.shape[1],), np.int16)
        self.bounds, self.board = bounds(codes, d), aligned((DONE + PIECES, 8), np.int64)  # a cache line for each word
        self.board[DONE:] = -1  # no ticket, of which 0 is the first
        # what is read in a turn: the residual, the same in 16 bits, and measures of it (length, rest, whether the copy
        # is read); what is found: ends of intervals (or products), and the best lower end of each piece
        self.r, self.p, *shared = several(line, short, ((3,), np.float64), lines, lines, ((count, PIECES), np.float64))
        T, vectors, atoms = several(((width, width), np.float64), ((5, width), np.float64), ((width,), np.int32))
        self.everyone, self.held = np.arange(n), (A, norms, codes, atoms)
        self.like, self.sizes = A.dtype.type(0), (d, n, self.p.size, A.itemsize)
        self.copies = addresses(A, codes.coarse, self.everyone, codes.error, codes.norm, codes.scale)
        self.shared = addresses(self.r, self.p, *shared)
        self.rooms = width, count, *addresses(norms, T, vectors, atoms)
        self.second = self.left = None
        if ols:  # the same for the last direction, with its unit; all directions, and what they leave of atoms
            self.q, self.p_of_q, *second = several(line, short, ((3,), np.float64), lines, lines)
            self.lefts = several(
                ((width, d), np.float64), *[((n,), np.float64)] * 4, ((n,), np.int32), ((d,), np.float64)
            )
            self.second, self.left = addresses(self.p_of_q, *second), addresses(*self.lefts)


def assist(team: Team) -> None:
    """Do pieces until all is over."""
    help_out(team.board.ctypes.data, team.sizes, team.like, team.copies, team.shared, team.second)


@scalar
def evaluate(k: int, who: int, sizes: Array, like: float, copies: Array, shared: Array, second: Array) -> None:
    """Intervals, or products, for the columns of piece k; intervals for two vectors where there is a second."""
    d, n, m, size = sizes
    at_A, coarse, everyone, error, norm, scale = copies
    at_r, at_p, at_measures, at_lower, at_upper, at_bests = shared
    start, stop, mine = k * n // PIECES, (k + 1) * n // PIECES, 8 * who * n
    if second is None:
        measures = numbers(at_measures, 0.0)
        if measures[2] > 0:
            numbers(at_bests, 0.0)[who * PIECES + k] = intervals(
                coarse, coarse, False, everyone, start, stop, at_p, m, error, norm, scale, measures[0], measures[1],
                True, at_lower + mine, at_upper + mine,
            )  # fmt: skip
        else:
            for j in range(start, stop):
                numbers(at_lower + mine, 0.0)[j] = mixed_dot(at_A + j * d * size, at_r, d, like, 0.0)
    if second is not None:
        vectors = (
            (at_p, at_measures, at_lower + mine, at_upper + mine),
            (second[0], second[1], second[2] + mine, second[3] + mine),
        )
        for first in range(start, stop, NEAR):  # rows that are near by when the second vector is asked for
            for at_short, at_numbers, low, high in vectors:
                measures = numbers(at_numbers, 0.0)
                if measures[2] > 0:
                    last = min(first + NEAR, stop)
                    intervals(
                        coarse, coarse, False, everyone, first, last, at_short, m, error, norm, scale, measures[0],
                        measures[1], True, low, high,
                    )  # fmt: skip


@kernel
def help_out(board: int, sizes: Array, like: float, copies: Array, shared: Array, second: Array) -> None:
    """As `assist`, with addresses."""
    who, idle = increase(board + 64 * HELPERS) + 1, 0
    while read(board + 64 * OVER) == 0:
        ticket = read(board + 64 * CLAIMED)
        if ticket < read(board + 64 * OPEN) and claim(board + 64 * CLAIMED, ticket):
            evaluate(ticket % PIECES, who, sizes, like, copies, shared, second)
            publish(board + 64 * (DONE + ticket % PIECES), ticket * CROWD + who)
            idle = 0
        else:
            idle += 1
            if idle > BUSY:
                give_way()
            else:
                pause()


@part
def fetched(k: int, n: int, ticket: int, patience: int, board: int, shared: Array, second: Array) -> bool:
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
    theirs, mine, columns = 8 * (who * n + start), 8 * start, stop - start
    copy(shared[3] + theirs, shared[3] + mine, columns, 0.0)
    copy(shared[4] + theirs, shared[4] + mine, columns, 0.0)
    bests[k] = bests[who * PIECES + k]
    if second is not None:
        copy(second[2] + theirs, second[2] + mine, columns, 0.0)
        copy(second[3] + theirs, second[3] + mine, columns, 0.0)
    return True


@part
def together(
    board: int, helped: bool, sizes: Array, like: float, copies: Array, shared: Array, second: Array
) -> bool:  # fmt: skip
    """All pieces of a turn; whether nobody was waited for in vain."""
    d, n, m, size = sizes
    first, well, done, next_piece = 0, True, 0, 0
    bytes_ = n * (2 * m if numbers(shared[2], 0.0)[2] > 0 else d * size)  # or less, if there is no second vector
    patience = BUSY + 100 + bytes_ // (PIECES * SLOW)
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
            if done >> k & 1 or (helped and fetched(k, n, first + k, patience, board, shared, second)):
                continue
            well &= not helped
        elif not claim(board + 64 * CLAIMED, ticket):
            continue
        evaluate(k, np.int64(0), sizes, like, copies, shared, second)
        done |= 1 << k
    return well
