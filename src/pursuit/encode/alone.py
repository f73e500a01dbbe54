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

from pursuit._compiled import Array, helper, kernel, part, scalar
from pursuit._kernels import enclose, shorten
from pursuit._ranking import PAUSE, rounding
from pursuit.atoms.screening import NO_CODES, TENTH, Codes
from pursuit.encode.atomic import claim, give_way, increase, pause, publish, read
from pursuit.encode.careful import subtract
from pursuit.encode.fast import CLEAR, GIVEN_UP, LOST
from pursuit.encode.rooms import aligned
from pursuit.encode.small import export

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


def board() -> Any:
    """The words, each on a cache line of its own."""
    return aligned((DONE + PIECES, 8), np.int64)


def copies(codes: Codes) -> tuple[Any, ...]:
    """What the kernels read of the 8-bit copy."""
    n = len(codes.scale)
    return codes.coarse, NO_CODES, np.arange(n), codes.error, codes.norm, codes.scale


def bounds(codes: Codes, m: int) -> tuple[float, float, int, int]:
    """Rounding of a product, room for squares, and the exponents of residuals with which no product over- or
    underflows."""
    limits, size = np.finfo(np.float64), codes.span[1] * (math.sqrt(codes.room) + math.sqrt(m))
    least = math.log2(1e4 * m) + math.log2(limits.tiny) - math.log2(codes.span[0])
    most = math.log2(limits.max) - math.log2(1e2 * size)
    return rounding(m, np.float64), codes.room, math.ceil(least), math.floor(most)


def rooms(codes: Codes, m: int) -> tuple[Any, ...]:
    """What helpers read in a turn: the residual, the same in 16 bits, measures of it (its length and rest, and whether
    the copy is read)."""
    return np.zeros(m), np.zeros(codes.coarse.shape[1], np.int16), np.zeros(3)


def findings(codes: Codes, count: int) -> tuple[Any, ...]:
    """What is found in a turn, by the caller (number 0) and `count` - 1 helpers: ends of intervals (or products), and
    the best lower end of each piece."""
    return np.empty((count, len(codes.scale))), np.empty((count, len(codes.scale))), np.empty((count, PIECES))


def workspace(width: int) -> tuple[Any, ...]:
    """Rooms for one signal: the matrix T, vectors over active atoms, the atoms."""
    return np.zeros((width, width)), np.zeros((5, width)), np.zeros(width, np.int32)


@helper
def inner(u: Array, v: Array) -> float:
    total = 0.0
    for i in range(len(u)):
        total += np.float64(u[i]) * np.float64(v[i])
    return total


@scalar
def evaluate(k: int, who: int, A: Array, copy: Array, shared: Array, found: Array) -> None:
    """Intervals, or products, for the columns of piece k."""
    coarse, none, everyone, error, norm, scale = copy
    r, p, measures = shared
    lower, upper, bests = found[0][who], found[1][who], found[2]
    start, stop = k * len(scale) // PIECES, (k + 1) * len(scale) // PIECES
    if measures[2] > 0:
        bests[who, k] = enclose(
            coarse, none, everyone, start, stop, p, error, norm, scale, measures[0], measures[1], True, lower, upper
        )
    else:
        for j in range(start, stop):
            lower[j] = inner(A[j], r)


@kernel
def assist(board: Array, A: Array, copy: Array, shared: Array, found: Array) -> None:
    """Do pieces until all is over."""
    at = board.ctypes.data
    who, idle = increase(at + 64 * HELPERS) + 1, 0
    while read(at + 64 * OVER) == 0:
        ticket = read(at + 64 * CLAIMED)
        if ticket < read(at + 64 * OPEN) and claim(at + 64 * CLAIMED, ticket):
            evaluate(ticket % PIECES, who, A, copy, shared, found)
            publish(at + 64 * (DONE + ticket % PIECES), ticket * CROWD + who)
            idle = 0
        else:
            idle += 1
            if idle > BUSY:
                give_way()
            else:
                pause()


@scalar
def fetched(k: int, ticket: int, patience: int, at: int, found: Array) -> bool:
    """Whether the helper who took piece k has done it; what it found is then where all is."""
    place, waited = at + 64 * (DONE + k), 0
    word = read(place)
    while word // CROWD != ticket:
        if waited > BUSY:
            give_way()
        else:
            pause()
        waited += 1
        if waited > patience:
            return False
        word = read(place)
    who, n = word % CROWD, found[0].shape[1]
    for j in range(k * n // PIECES, (k + 1) * n // PIECES):
        found[0][0, j], found[1][0, j] = found[0][who, j], found[1][who, j]
    found[2][0, k] = found[2][who, k]
    return True


@scalar
def together(at: int, helped: bool, A: Array, copy: Array, shared: Array, found: Array) -> bool:
    """All pieces of a turn; whether nobody was waited for in vain."""
    caller = np.int64(0)  # not the literal 0, for which `evaluate` would be compiled apart
    if not helped:
        for k in range(PIECES):
            evaluate(k, caller, A, copy, shared, found)
        return True
    first, mine, well = read(at + 64 * OPEN), 0, True
    size = A.size * A.itemsize if shared[2][2] == 0 else A.size
    patience = BUSY + 100 + size // (PIECES * SLOW)
    publish(at + 64 * OPEN, first + PIECES)
    while True:
        ticket = read(at + 64 * CLAIMED)
        if ticket == first + PIECES:
            break
        if claim(at + 64 * CLAIMED, ticket):
            evaluate(ticket % PIECES, caller, A, copy, shared, found)
            mine |= 1 << ticket % PIECES
    for k in range(PIECES):
        if not mine >> k & 1 and not fetched(k, first + k, patience, at, found):
            evaluate(k, caller, A, copy, shared, found)
            well = False
    return well


@part
def prepared(r: Array, p: Array, measures: Array, bounds: Array) -> bool:
    """The residual in 16 bits; whether the bounds hold for it."""
    gamma, room, least, most = bounds
    exponent, length, rest = shorten(r, room, p)
    measures[0], measures[1] = length, rest + gamma * (length + rest)
    return length > 0 and least <= exponent <= most


@part
def sift(A: Array, norms: Array, r: Array, floor: float, found: Array) -> Any:
    """The atom of largest |<a, r>| > floor ||a|| among those that the copy leaves, -1 if there is none; that product;
    whether they were not too many."""
    upper, bar, tried, best, value = found[1][0], found[2][0, 0], 0, -1, 0.0
    for k in range(PIECES):
        bar = max(bar, found[2][0, k])
    for j in range(len(upper)):
        if upper[j] >= bar:
            tried += 1
            if tried > len(upper) // TENTH:
                return -1, 0.0, False
            c = inner(A[j], r)
            if abs(c) > abs(value) and abs(c) > floor * norms[j]:
                best, value = j, c
    return best, value, True


@part
def search(norms: Array, floor: float, products: Array) -> Any:
    """As `sift`, among all atoms, whose products are there."""
    best, value = -1, 0.0
    for j in range(len(products)):
        c = products[j]
        if abs(c) > abs(value) and abs(c) > floor * norms[j]:
            best, value = j, c
    return best, value


@helper
def projected(T: Array, s: int, v: Array, out: Array) -> float:
    """out += T^T T v, for the first s atoms; ||T v||^2."""
    square = 0.0
    for i in range(s):
        u = 0.0
        for k in range(i + 1):
            u += T[i, k] * v[k]
        for k in range(i + 1):
            out[k] += T[i, k] * u
        square += u * u
    return square


@kernel
def chase(
    A: Array, norms: Array, y: Array, limit: int, tol: float, noise: float, bounds: Array, copy: Array, shared: Array,
    found: Array, board: Array, work: Array, out_atoms: Array, out_x: Array,
) -> Any:  # fmt: skip
    """The code of one signal y, the number of its atoms, or GIVEN_UP where they are nearly dependent (or one and the
    same, as an active atom has no correlation beyond rounding).

    The rows of A are the atoms; `bounds` are those of the copy; `noise` and `tol` as in `fast`.
    """
    T, vectors, atoms = work
    x, beta, sizes, sums, h = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    r, p, measures = shared
    at, team = board.ctypes.data, len(found[0]) > 1
    s, without, longest, vain = np.int64(0), 0, 0, 0
    for t in range(len(y)):
        r[t] = y[t]
    whole = math.sqrt(inner(r, r))
    mass = whole
    while s < limit and whole > 0 and not math.sqrt(inner(r, r)) <= tol:
        j, c, without = -1, 0.0, without - 1
        for way in range(2):
            measures[2] = way == 0 and without < 0 and prepared(r, p, measures, bounds)
            if j >= 0 or (way == 0 and measures[2] == 0):
                continue
            vain += not together(at, team, A, copy, shared, found)
            if team and vain > SELDOM + s // 16:
                team = False
                publish(at + 64 * OVER, 1)
            if way == 0:
                j, c, useful = sift(A, norms, r, noise * mass, found)
                longest = 0 if useful else min(2 * longest + 1, PAUSE)
                without = longest
            else:  # the copy was of no use, or left no good atom: all of them have the last word
                j, c = search(norms, noise * mass, found[0][0])
        if j < 0:
            break
        square = inner(A[j], A[j])
        for i in range(s):
            h[i], beta[i] = inner(A[atoms[i]], A[j]), 0
        pivot = square - projected(T, s, h, beta)
        if not pivot > CLEAR[0] * square:
            return GIVEN_UP
        atoms[s], sizes[s], x[s], sums[s], beta[s], mass = j, norms[j], 0, 0, -1, whole
        root, step = 1 / math.sqrt(pivot), c / pivot
        s += 1
        for i in range(s):
            T[s - 1, i] = -root * beta[i]
            x[i] -= step * beta[i]
            sums[i] += T[s - 1, i] * T[s - 1, i]
            mass += abs(x[i]) * sizes[i]
        subtract(y, A, x, atoms, s, r)
    for i in range(s):
        h[i] = inner(A[atoms[i]], r)  # of an active atom, it should be zero
        if sums[i] * sizes[i] * sizes[i] > LOST[0]:
            return GIVEN_UP
    projected(T, s, h, x)
    export(atoms, x, s, out_atoms, out_x)
    return s
