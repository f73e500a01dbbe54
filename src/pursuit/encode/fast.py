"""Orthogonal matching pursuit over a shared Gram matrix, the fast way, which knows when it cannot be sure.

The correlations after s atoms are c = D^T y - sum_i x_i G_i, with G_i the Gram rows of the active atoms: a turn reads s
rows, and nothing of the size of D or of a signal. P is the inverse of the Gram matrix of the active atoms. An atom j
with Gram entries h enters by beta = (-P h, 1) and pivot = G_jj + h^T beta[:s]: P grows by beta beta^T / pivot, and the
weights move by (c_j / pivot) beta.

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
from pursuit.encode.vector import (
    BLOCK,
    LANES,
    PAIR,
    TRUNCATED,
    below,
    enter,
    largest,
    prefetch,
    prefetch_entries,
    spread,
)

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


def inverse(width: int, dtype: Any) -> tuple[Any, Any]:
    """Room for an inverse Gram matrix, its rows padded for `enter` and `spread`; the addresses of the rows."""
    item = np.dtype(dtype).itemsize
    P = aligned((width, -(-width * item // PAIR) * PAIR // item), dtype)
    return P, P.ctypes.data + np.arange(width, dtype=np.int64) * P.strides[0]


def workspace(columns: int, width: int, dtype: Any) -> tuple[Any, ...]:
    """Rooms for one signal of `columns` padded columns: inverse Gram matrix, vectors over active atoms."""
    P, rows = inverse(width, dtype)
    pad = P.shape[1]
    atoms, lines = aligned((-(-width // LANES) * LANES,), np.int32), np.zeros(width, np.int64)
    singles = aligned((columns,), np.float32), aligned((pad,), np.float32)
    return P, aligned((3, pad), dtype), rows, lines, atoms, *singles


@part
def lost(P: Array, sizes: Array, s: int) -> float:
    """The largest diagonal entry of the inverse Gram matrix of the first s atoms, were they of norm 1."""
    most = 0.0
    for i in range(s):
        most = max(most, P[i, i] * sizes[i] * sizes[i])
    return most


@part
def contest(
    G: Array, A: Array, Y: Array, C: Array, b: int, atoms: Array, x: Array, s: int, margin: float, r: Array
) -> int:
    """The best atom, told in full precision from those within `margin` of the best in float32; -1 if they are many."""
    n = len(A)
    for k in range(n):
        r[k] = C[b, k]
    for i in range(s):
        j, w = atoms[i], np.float32(x[i])
        for k in range(n):
            r[k] -= w * np.float32(G[j, k])
    best = abs(r[0])
    for k in range(n):
        best = max(best, abs(r[k]))
    found, tried, most = -1, TRIED if best > margin else 0, 0.0
    for k in range(n):
        if abs(r[k]) >= best - margin:
            tried -= 1
            if tried < 0:
                return -1
            c = 0 * x[0]
            for t in range(A.shape[1]):
                c += A[k, t] * Y[b, t]
            for i in range(s):
                c -= x[i] * G[atoms[i], k]
            if abs(c) > most:
                found, most = k, abs(c)
    return found


@part
def leader(
    start: int, lines: int, weights: int, s: int, blocks: int, gram: int, row: int, item: int, atoms: int
) -> tuple[Any, Any, Any]:
    """What `largest` finds in all blocks, to and fro from turn to turn: the cache still has the last ones.

    Where Gram rows lie far (`row` bytes apart), the entries of the atom that leads after three quarters of the columns,
    and will mostly win, are asked for then.
    """
    j, lead, second, done = np.int64(-1), np.float32(-1), np.float32(-1), np.int64(0)
    while done < blocks:
        part = blocks - blocks // 4 if done == 0 else blocks - done
        first, way = (done, 1) if s % 2 == 0 else (blocks - 1 - done, -1)
        found, best, other = largest(start, lines, weights, s, first, way, part)
        done += part
        if best > lead:
            j, lead, second = found, best, max(lead, other)
            if row > 0:
                prefetch_entries(gram + j * row, item, atoms, s)
        else:
            second = max(second, best)
    return j, lead, second


@kernel
def pursue(
    G: Array, S: Array, A: Array, norms: Array, mu: float, rough: float, Y: Array, C: Array, squares: Array,
    limits: Array, tols: Array, noise: float, work: Array, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """Codes of the signals Y with `correlations` C and squared norms `squares`, or GIVEN_UP as their count.

    S is G in float32, padded as C is (or room for the rows of the active atoms, filled as they enter), `mu` its
    `coherence` (or more); the rows of A are the atoms; `rough` is their `doubt`.
    `tols` are negative where there is none; `noise` is the rounding of a correlation relative to the norms of its
    factors. Addresses are taken once: asking an array for its address counts references.
    """
    P, vectors, rows, lines, atoms, r, x32 = work
    x, beta, sizes = vectors[0], vectors[1], vectors[2]
    item, like, most = G.itemsize, G[0, 0], np.int32(2**31 - 1)
    eps, unit, most_lost = (2.0**-52, 2.0**-23, LOST[0]) if item == 8 else (2.0**-23, 0.0, LOST[1])
    stride, row, blocks, pads = 4 * S.shape[1], item * G.shape[1], C.shape[1] // BLOCK, len(x) * item // PAIR
    at_C, at_S, at_G, at_A, depth = C.ctypes.data, S.ctypes.data, G.ctypes.data, A.ctypes.data, item * A.shape[1]
    at_rows, at_lines, at_atoms = rows.ctypes.data, lines.ctypes.data, atoms.ctypes.data
    far, made = row * len(G) > NEAR, len(S) < len(G)
    at_x, at_beta, at_sizes, at_x32 = x.ctypes.data, beta.ctypes.data, sizes.ctypes.data, x32.ctypes.data
    for b in range(len(Y)):
        prefetch(at_C + (b + 1) * 4 * C.shape[1], 4 * C.shape[1])
        s, left, whole = np.int64(0), squares[b], math.sqrt(squares[b])
        mass, first, goal, slack = whole, whole, tols[b] * abs(tols[b]), 16 * eps * squares[b]
        for i in range(len(x)):
            x[i] = 0
        for i in range(len(atoms)):
            atoms[i] = most
        while s < limits[b] and squares[b] > 0:
            if left <= goal + (s + 4) * slack:
                s = s if left < goal - (s + 4) * slack else GIVEN_UP
                break
            start = at_C + b * 4 * C.shape[1]
            j, lead, second = leader(start, at_lines, at_x32, s, blocks, at_G, row if far else 0, item, at_atoms)
            if s == 0:
                first = lead * (1 + 2 * TRUNCATED)
            margin = TRUNCATED * lead + rough * whole + unit * (s + 4) * (first + mu * (mass - whole))
            if not lead - second > margin:
                j = contest(G, A, Y, C, b, atoms, x, s, margin, r)
                if j < 0:
                    s = GIVEN_UP
                    break
            if far:
                prefetch(at_A + j * depth, depth if item == 8 else 0)
                prefetch(at_S + j * stride, stride if s + 1 < limits[b] and not made else 0)
            turns = ((s + 1) * item + PAIR - 1) // PAIR
            less, moved = enter(at_beta, at_rows, at_atoms, at_G + j * row, at_x, s, turns, like)
            c = like * 0 if item == 8 else C[b, j]
            for t in range(A.shape[1] if item == 8 else 0):
                c += A[j, t] * Y[b, t]
            c, pivot, total = c - moved, G[j, j] + less, like * 0
            for t in range(len(norms) if made else 0):
                S[s, t] = G[j, t]
                total += G[j, t]
            if not (abs(c) > noise * mass * norms[j] and pivot > CLEAR * G[j, j] and abs(total) < np.inf):
                s = GIVEN_UP
                break
            inverse, step = G.dtype.type(1 / pivot), G.dtype.type(c / pivot)
            atoms[s], sizes[s], lines[s] = j, norms[j], at_S + (s if made else j) * stride
            mass = whole + spread(at_rows, at_beta, at_x, at_x32, at_sizes, s, turns, pads, inverse, step)
            left -= c * step
            s += 1
        counts[b] = s = s if lost(P, sizes, s) <= most_lost else GIVEN_UP
        for i in range(s):
            place = below(at_atoms, atoms[i], len(atoms) // LANES)
            out_atoms[b, place], out_x[b, place] = atoms[i], x[i]
