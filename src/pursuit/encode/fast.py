"""Orthogonal matching pursuit over a shared Gram matrix, the fast way, which knows when it cannot be sure.

The correlations after s atoms are c = D^T y - sum_i x_i G_i, with G_i the Gram rows of the active atoms: a turn reads s
rows, and nothing of the size of D or of a signal. T is lower triangular, T^T T the inverse of the Gram matrix of the
active atoms. An atom j with Gram entries h enters by u = T h, beta = (-T^T u, 1) and pivot = G_jj - ||u||^2: the next
row of T is beta / sqrt(pivot), and the weights move by (c_j / pivot) beta.

Signals go in waves, all of a wave in step: what follows the search for an atom is a chain of short sums, in which a
processor mostly waits, and which costs about as much for the vectors of a wave as for the numbers of one signal.

Selection reads float32 numbers, half the work and half the memory traffic, and is still that of float64. With
u = 2^-24: D^T y is summed in float32, over parts of at most DEPTH entries of y; rounding the factors, the terms of a
part and the sum of the parts moves a product by at most e = u (DEPTH + d / DEPTH + 3) ||a_j|| ||y||, to first order.
The correlation of an atom j that is not active is a sum of s + 1 terms, and no partial sum is larger than
M = max_j |<y, a_j>| + sum_i |x_i| max_j |G_ij|. Rounding Gram entries, weights, their products and the partial sums
moves it by at most u (3 sum_i |x_i G_ij| + s M) <= u (s + 3) M more: a best atom that leads by 2 e + 2 u (s + 4) M is
the best. Where the lead is smaller, the atoms that could be best are told apart by correlations in float64; that of the
one that enters is computed so in any case. Whatever is still not clear (too many such atoms, a nearly dependent one, a
residual at the brink of `tol`) gives the signal up: `careful` does it again from the start.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, kernel, part
from pursuit.encode.vector import BLOCK, LANES, TRUNCATED, WAVE, dots, enter, largest, prefetch_entries, spread

MARGIN = 16
"""Columns between the padded rows of the float32 copy, so that rows do not fall on the same lines of the cache."""
GIVEN_UP = np.int64(-1)
CLEAR = 0.01
"""A squared pivot beyond this part of its diagonal entry loses few digits by itself."""
LOST = 1e4, 300.0
"""How much the inverse Gram matrix of atoms of norm 1 may have on its diagonal (float64, float32): many pivots, each of
them clear, can lose more digits than one."""
DEPTH = 256
"""Entries of a signal that are summed in float32 before the sum is added to those of others."""
NEAR = 2**20
"""Bytes of a Gram matrix of which no row is worth asking for ahead of its use."""
TRIED = 64
"""Atoms that are told apart in full precision before a signal is given up."""
X, SIZES, SUMS = range(3)
"""Vectors over active atoms: weights, norms, the diagonal of T^T T (and directions and Gram entries after them)."""
ATOMS, RANKS = range(2)
"""And of integers: the atoms, their places in increasing order."""
PRODUCT, LEAST, ROOT, STEP, LOSS, MASS = range(6)
"""Numbers of the atom that enters: see `enter`; and the sum of weights times norms."""
LEFT, SLACK, GOAL, LENGTH, FIRST, WEIGHT = range(6)
"""Numbers of a signal: its squared residual, rounding of that, and where to stop; its norm; its largest correlation;
the sum of weights times norms."""
CHOSEN, GOING, SIGNAL, ROW, COLUMN = range(5)
"""The atom that enters, whether the signal is not done; addresses of the signal, of Gram row and column of the atom."""


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros from a boundary of cache lines on: vectors that straddle two lines cost twice."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size].view(dtype).reshape(shape)


def padded(n: int) -> int:
    """Columns of rows that `largest` reads."""
    return -(-n // BLOCK) * BLOCK


def single(G: Any) -> Any:
    """The Gram matrix in float32, its rows padded with zeros for `largest`."""
    n = len(G)
    S = aligned((n, padded(n) + MARGIN), np.float32)
    S[:, :n] = G
    return S


def coherence(S: Any, norms: Any) -> float:
    """max |G_ij| / ||a_i|| over different atoms i and j, rounded up."""
    n, diagonal = len(S), S.diagonal().copy()
    np.fill_diagonal(S[:, :n], 0)
    largest = np.maximum(S.max(axis=1), -S.min(axis=1))
    np.fill_diagonal(S[:, :n], diagonal)
    return float((largest / norms).max()) * (1 + 1e-6)


def correlations(y: Any, D: Any, out: Any) -> Any:
    """out = y D for D in float32, parts of DEPTH entries at a time."""
    y = y.astype(np.float32, copy=False)
    np.matmul(y[:, :DEPTH], D[:DEPTH], out=out)
    for lo in range(DEPTH, len(D), DEPTH):
        out += y[:, lo : lo + DEPTH] @ D[lo : lo + DEPTH]
    return out


def doubt(D: Any, norms: Any, whole: bool) -> float:
    """2 e / ||y||: how far `correlations` (or, `whole`, rounding a float64 product) may move the lead of an atom.

    Where all is float32, they are what counts.
    """
    d = len(D)
    terms = 1 if whole else min(d, DEPTH) + d / DEPTH + 4
    return 2.0**-23 * terms * (1 + 1e-6) * float(norms.max()) if D.itemsize == 8 else 0.0


def workspace(columns: int, width: int, dtype: Any) -> tuple[Any, ...]:
    """Rooms for a wave, with one number of each signal side by side: vectors over active atoms, of floats, of indices
    and of addresses; single numbers, as floats, in float64, and as integers; correlations of one signal, of `columns`
    padded columns; what `largest` finds. Last, what only vector code reads, and the addresses of all that it reads."""
    vectors, x32 = aligned((5, width, WAVE), dtype), aligned((width, WAVE), np.float32)
    indices, lines = aligned((2, width, WAVE), np.int32), aligned((width, WAVE), np.int64)
    floats, doubles, whole = (
        aligned((size, WAVE), kind) for size, kind in ((6, dtype), (6, np.float64), (5, np.int64))
    )
    T, field = aligned((width * (width + 1) // 2, WAVE), dtype), aligned((3 * WAVE, LANES), np.int32)
    best = field[WAVE:].reshape(-1, WAVE)
    x32 = x32 if vectors.itemsize == 8 else vectors[X]
    read = T, *vectors, x32, *indices, lines, floats, floats[ROOT], floats[MASS], *whole[GOING:], field
    rooms = vectors, indices, lines, floats, doubles, whole, aligned((columns,), np.float32)
    return *rooms, (field, best, best[1:].view(np.float32)), (T, x32), tuple(room.ctypes.data for room in read)


@part
def begin(
    start: int, wave: int, squares: Array, tols: Array, eps: float, at: int, depth: int, vectors: Array, doubles: Array,
    whole: Array,
) -> None:  # fmt: skip
    """A wave from signal `start` on."""
    for i in range(vectors.shape[1]):
        for p in range(WAVE):
            vectors[X, i, p] = vectors[SUMS, i, p] = 0
    for p in range(WAVE):
        b = min(start + p, len(squares) - 1)
        length = math.sqrt(squares[b])
        whole[CHOSEN, p], whole[GOING, p], whole[SIGNAL, p] = 0, p < wave and start + p < len(squares), at + b * depth
        doubles[LEFT, p], doubles[SLACK, p], doubles[GOAL, p] = (
            squares[b],
            16 * eps * squares[b],
            tols[b] * abs(tols[b]),
        )
        doubles[LENGTH, p], doubles[FIRST, p], doubles[WEIGHT, p] = length, length, 0


@part
def busy(
    start: int, wave: int, s: int, squares: Array, limits: Array, doubles: Array, whole: Array, counts: Array
) -> int:
    """How many signals are still going; those that are done have a count now."""
    total = 0
    for p in range(wave):
        b, near = min(start + p, len(squares) - 1), (s + 4) * doubles[SLACK, p]
        left, goal, done = doubles[LEFT, p], doubles[GOAL, p], s == limits[b] or squares[b] == 0
        if whole[GOING, p] and (done or left <= goal + near):
            counts[b], whole[GOING, p] = s if done or left < goal - near else GIVEN_UP, 0
        total += whole[GOING, p]
    return total


@part
def contest(
    G: Array, S: Array, A: Array, Y: Array, C: Array, b: int, atoms: Array, x: Array, p: int, s: int, margin: float,
    r: Array,
) -> int:  # fmt: skip
    """The best atom, told in full precision from those within `margin` of the best in float32; -1 if they are many."""
    n = len(A)
    for k in range(n):
        r[k] = C[b, k]
    for i in range(s):
        row, w = atoms[i, p] if len(S) == n else i, np.float32(x[i, p])
        for k in range(n):
            r[k] -= w * S[row, k]
    best = abs(r[0])
    for k in range(n):
        best = max(best, abs(r[k]))
    found, tried, most = -1, TRIED if best > margin else 0, 0.0
    for k in range(n):
        if abs(r[k]) >= best - margin:
            tried -= 1
            if tried < 0:
                return -1
            c = 0 * x[0, p]
            for t in range(A.shape[1]):
                c += A[k, t] * Y[b, t]
            for i in range(s):
                c -= x[i, p] * G[atoms[i, p], k]
            if abs(c) > most:
                found, most = k, abs(c)
    return found


@part
def margin(s: int, p: int, lead: float, mu: float, rough: float, unit: float, doubles: Array) -> float:
    """By how much an atom must lead to be the best."""
    if s == 0:
        doubles[FIRST, p] = lead * (1 + 2 * TRUNCATED)
    most = doubles[FIRST, p] + mu * doubles[WEIGHT, p]
    return TRUNCATED * lead + rough * doubles[LENGTH, p] + unit * (s + 4) * most


@part
def write(
    start: int, wave: int, most_lost: float, vectors: Array, indices: Array, out_atoms: Array, out_x: Array,
    counts: Array,
) -> None:  # fmt: skip
    """The codes of a wave, unless digits were lost: vectors[SUMS] is the diagonal of the inverse Gram matrix."""
    for b in range(start, min(start + wave, len(counts))):
        p, most = b - start, 0.0
        for i in range(counts[b]):
            most = max(most, vectors[SUMS, i, p] * vectors[SIZES, i, p] * vectors[SIZES, i, p])
        counts[b] = counts[b] if most <= most_lost else GIVEN_UP
        for i in range(counts[b]):
            place = indices[RANKS, i, p]
            out_atoms[b, place], out_x[b, place] = indices[ATOMS, i, p], vectors[X, i, p]


@kernel
def pursue(
    G: Array, S: Array, A: Array, norms: Array, mu: float, rough: float, Y: Array, C: Array, squares: Array,
    limits: Array, tols: Array, noise: float, work: Array, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """Codes of the signals Y with `correlations` C and squared norms `squares`, or GIVEN_UP as their count.

    S is G in float32, padded as C is (or room for the rows of the active atoms, filled as they enter, one signal after
    the other), `mu` its `coherence` (or more); the rows of A are the atoms; `rough` is their `doubt`.
    `tols` are negative where there is none; `noise` is the rounding of a correlation relative to the norms of its
    factors. Addresses are taken once: asking an array for its address counts references.
    """
    vectors, indices, lines, floats, doubles, whole, r, (field, best, leads), _, places = work
    at_T, at_x, at_sizes, at_sums, at_beta, at_h, at_x32, at_atoms, at_ranks = places[:9]
    at_lines, at_floats, at_roots, at_mass, at_going, at_signals, at_rows, at_columns, at_field = places[9:]
    at_C, at_S, at_G, at_A, at_Y = C.ctypes.data, S.ctypes.data, G.ctypes.data, A.ctypes.data, Y.ctypes.data
    item, like, clear = G.itemsize, G[0, 0], G.dtype.type(CLEAR)
    eps, unit, most_lost = (2.0**-52, 2.0**-23, LOST[0]) if item == 8 else (2.0**-23, 0.0, LOST[1])
    stride, row, depth, step = 4 * S.shape[1], item * G.shape[1], item * A.shape[1], 4 * C.shape[1]
    far, made = row * len(G) > NEAR, len(S) < len(G)
    wave = 1 if made else WAVE
    for start in range(0, len(Y), wave):
        begin(start, wave, squares, tols, eps, at_Y, depth, vectors, doubles, whole)
        s = np.int64(0)
        while busy(start, wave, s, squares, limits, doubles, whole, counts) > 0:
            largest(at_C + start * step, step, at_lines, at_x32, at_going, s, C.shape[1] // BLOCK, at_field)
            for p in range(WAVE):
                b, j, going = start + p, whole[CHOSEN, p], whole[GOING, p]
                if going:
                    place, lead = best[0, p], leads[0, p]
                    needed = margin(s, p, lead, mu, rough, unit, doubles)
                    j = np.int64(field[p, place & (LANES - 1)] * BLOCK + place)
                    if not lead - leads[1, p] > needed:
                        j = contest(G, S, A, Y, C, b, indices[ATOMS], vectors[X], p, s, needed, r)
                    if j < 0:
                        counts[b], whole[GOING, p], going, j = GIVEN_UP, 0, 0, 0
                if far and going:
                    prefetch_entries(at_G + j * row, item, at_atoms + 4 * p, s)
                if item == 4 and going:
                    floats[PRODUCT, p] = C[b, j]
                indices[ATOMS, s, p], indices[RANKS, s, p], vectors[SIZES, s, p] = j, 0, norms[j]
                lines[s, p] = at_S + (s if made else j) * stride
                whole[CHOSEN, p], whole[ROW, p], whole[COLUMN, p] = j, at_G + j * row, at_A + j * depth
                mass = doubles[LENGTH, p] + doubles[WEIGHT, p]
                floats[LEAST, p] = noise * mass * norms[j] if going else np.inf
            if made:
                total, j = like * 0, whole[CHOSEN, 0]
                for t in range(len(norms)):
                    S[s, t] = G[j, t]
                    total += G[j, t]
                floats[LEAST, 0] = floats[LEAST, 0] if abs(total) < np.inf else np.inf
            if item == 8:
                dots(at_columns, at_signals, A.shape[1], at_floats)
            enter(at_T, at_rows, at_atoms, at_h, at_x, at_beta, at_floats, clear, s, like)
            new = at_T + s * (s + 1) // 2 * WAVE * item
            spread(new, at_beta, at_roots, at_x, at_x32, at_sums, at_sizes, at_atoms, at_ranks, at_mass, s, like)
            for p in range(wave):
                doubles[LEFT, p], doubles[WEIGHT, p] = doubles[LEFT, p] - floats[LOSS, p], floats[MASS, p]
                if whole[GOING, p] and floats[ROOT, p] == 0:
                    counts[start + p], whole[GOING, p] = GIVEN_UP, 0
            s += 1
        write(start, wave, most_lost, vectors, indices, out_atoms, out_x, counts)
