"""Orthogonal matching pursuit of one signal on a large dictionary: all turns in one kernel, the dictionary in 8 bits.

A turn asks which atom correlates best with the residual r. `ScreenedDictionary` says how an 8-bit copy proves that it
is one of a few, which are then told apart by products in full precision; where the copy leaves too many (more than a
tenth), the next turns (1, 3, 7, ... 63 as long as this goes on) compute all products. The atom enters as in `fast`,
with Gram entries computed as they are needed. All arithmetic is in float64.

Reading the copy, or the dictionary, is most of the work, and shared: the columns are divided into PIECES, and threads
in `assist` take those that are open. They wait busily, as a turn takes less than waking them up would.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, helper, kernel, part, scalar
from pursuit._kernels import enclose, shorten
from pursuit._ranking import rounding
from pursuit.atoms.screening import NO_CODES, TENTH, Codes
from pursuit.encode.atomic import claim, increase, pause, publish, read
from pursuit.encode.careful import subtract
from pursuit.encode.fast import CLEAR, GIVEN_UP, LOST, aligned, inverse, lost
from pursuit.encode.small import export
from pursuit.encode.vector import PAIR, enter, spread

PIECES = 8
"""Parts of the columns that threads take in a turn."""
LONGEST = 63
"""Turns, at most, that go without the copy after it was of no use."""
OPEN, CLAIMED, FINISHED, OVER = range(4)
"""What the words of a board count or say: pieces that may be taken, were taken, are finished; that all is done."""


def board() -> Any:
    """Four words, each on a cache line of its own."""
    return aligned((4, 8), np.int64)


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
    """What threads share in a turn: the residual, the same in 16 bits, measures of it (its length and rest, and whether
    the copy is read), ends of intervals (or products), the best of pieces."""
    n, width = codes.coarse.shape
    return np.zeros(m), np.zeros(width, np.int16), np.zeros(3), np.empty(n), np.empty(n), np.empty(PIECES)


def workspace(width: int) -> tuple[Any, ...]:
    """Rooms for one signal: inverse Gram matrix, vectors over active atoms (one in float32, which `spread` writes and
    nobody reads)."""
    P, rows = inverse(width, np.float64)
    vectors, number = aligned((5, P.shape[1]), np.float64), np.arange(width, dtype=np.int32)
    return P, vectors, rows, number, np.zeros(width, np.int32), aligned((P.shape[1],), np.float32)


@helper
def inner(u: Array, v: Array) -> float:
    total = 0.0
    for i in range(len(u)):
        total += np.float64(u[i]) * np.float64(v[i])
    return total


@scalar
def take(at: int, A: Array, copy: Array, shared: Array) -> None:
    """Intervals, or products, for the columns of pieces, as long as there are open ones."""
    coarse, none, everyone, error, norm, scale = copy
    r, p, measures, lower, upper, bests = shared
    n = len(scale)
    while True:
        piece = read(at + 64 * CLAIMED)
        if piece >= read(at + 64 * OPEN):
            return
        if claim(at + 64 * CLAIMED, piece):
            k = piece % PIECES
            start, stop = k * n // PIECES, (k + 1) * n // PIECES
            if measures[2] > 0:
                bests[k] = enclose(
                    coarse, none, everyone, start, stop, p, error, norm, scale, measures[0], measures[1], True,
                    lower, upper,
                )  # fmt: skip
            else:
                for j in range(start, stop):
                    lower[j] = inner(A[j], r)
            increase(at + 64 * FINISHED)


@kernel
def assist(board: Array, A: Array, copy: Array, shared: Array) -> None:
    """Take pieces until all is over."""
    at = board.ctypes.data
    while read(at + 64 * OVER) == 0:
        take(at, A, copy, shared)
        pause()


@scalar
def together(at: int, A: Array, copy: Array, shared: Array) -> None:
    """All pieces of a turn."""
    goal = read(at + 64 * OPEN) + PIECES
    publish(at + 64 * OPEN, goal)
    take(at, A, copy, shared)
    while read(at + 64 * FINISHED) < goal:
        pause()


@part
def sift(A: Array, norms: Array, floor: float, bounds: Array, copy: Array, shared: Array, at: int) -> Any:
    """The atom of largest |<a, r>| > floor ||a|| among those that the copy leaves, -1 if there is none; that
    product; whether the copy was of use, as it left not too many."""
    r, p, measures, _, upper, bests = shared
    gamma, room, least, most = bounds
    found, value, tried, many = -1, 0.0, 0, len(norms) // TENTH
    exponent, squared, left = shorten(r, room, p)
    if not (squared > 0 and least <= exponent <= most):
        return found, value, False
    slack = 1 + (len(r) + 8) * 2.0**-52
    length, rest = math.sqrt(squared) * slack, math.sqrt(left) * slack + 1e-12
    measures[0], measures[1], measures[2] = length, rest + gamma * (length + rest), 1
    together(at, A, copy, shared)
    bar = bests[0]
    for k in range(PIECES):
        bar = max(bar, bests[k])
    for j in range(len(upper)):
        if upper[j] >= bar:
            tried += 1
            if tried > many:
                return -1, 0.0, False
            c = inner(A[j], r)
            if abs(c) > abs(value) and abs(c) > floor * norms[j]:
                found, value = j, c
    return found, value, True


@part
def search(A: Array, norms: Array, floor: float, copy: Array, shared: Array, at: int) -> Any:
    """As `sift`, among all atoms."""
    _, _, measures, products, _, _ = shared
    found, value = -1, 0.0
    measures[2] = 0
    together(at, A, copy, shared)
    for j in range(len(products)):
        c = products[j]
        if abs(c) > abs(value) and abs(c) > floor * norms[j]:
            found, value = j, c
    return found, value


@part
def refined(A: Array, P: Array, r: Array, atoms: Array, x: Array, z: Array, s: int) -> None:
    """One step of iterative refinement: the correlations of active atoms should be zero."""
    for i in range(s):
        z[i] = inner(A[atoms[i]], r)
    for i in range(s):
        for k in range(s):
            x[i] += P[i, k] * z[k]


@kernel
def chase(
    A: Array, norms: Array, y: Array, limit: int, tol: float, noise: float, bounds: Array, copy: Array, shared: Array,
    board: Array, work: Array, out_atoms: Array, out_x: Array,
) -> Any:  # fmt: skip
    """The code of one signal y, the number of its atoms, or GIVEN_UP where they are nearly dependent (or one and the
    same, as an active atom has no correlation beyond rounding).

    The rows of A are the atoms; `bounds` are those of the copy; `noise` and `tol` as in `fast`.
    """
    P, vectors, rows, number, atoms, x32 = work
    x, beta, sizes, h, z = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    r, pads, at = shared[0], len(x) * 8 // PAIR, board.ctypes.data
    at_x, at_beta, at_sizes, at_h = x.ctypes.data, beta.ctypes.data, sizes.ctypes.data, h.ctypes.data
    at_rows, at_number, at_x32 = rows.ctypes.data, number.ctypes.data, x32.ctypes.data
    s, without, longest = np.int64(0), 0, 0
    for i in range(len(x)):
        x[i] = 0
    for t in range(len(y)):
        r[t] = y[t]
    whole = math.sqrt(inner(r, r))
    mass = whole
    while s < limit and whole > 0 and not math.sqrt(inner(r, r)) <= tol:
        j, c, without = -1, 0.0, without - 1
        if without < 0:
            j, c, useful = sift(A, norms, noise * mass, bounds, copy, shared, at)
            longest = 0 if useful else min(2 * longest + 1, LONGEST)
            without = longest
        if j < 0:  # the copy was of no use, or left no good atom: all of them have the last word
            j, c = search(A, norms, noise * mass, copy, shared, at)
            if j < 0:
                break
        for i in range(s):
            h[i] = inner(A[atoms[i]], A[j])
        turns = ((s + 1) * 8 + PAIR - 1) // PAIR
        less, _ = enter(at_beta, at_rows, at_number, at_h, at_x, s, turns, 0.0)
        square = inner(A[j], A[j])
        pivot = square + less
        if not pivot > CLEAR * square:
            return GIVEN_UP
        atoms[s], sizes[s] = j, norms[j]
        mass = whole + spread(at_rows, at_beta, at_x, at_x32, at_sizes, s, turns, pads, 1 / pivot, c / pivot)
        s += 1
        subtract(y, A, x, atoms, s, r)
    if lost(P, sizes, s) > LOST[0]:
        return GIVEN_UP
    refined(A, P, r, atoms, x, z, s)
    export(atoms, x, s, out_atoms, out_x)
    return s
