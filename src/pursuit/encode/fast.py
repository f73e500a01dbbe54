"""Orthogonal matching pursuit over a shared Gram matrix, the fast way, which knows when it cannot be sure.

The correlations after s atoms are c = D^T y - sum_i x_i G_i, with G_i the Gram rows of the active atoms: a turn reads s
rows, and nothing of the size of D or of a signal. The weights x come from U = L^-1, where L L^T is the Gram matrix of
the active atoms: an atom adds a row to U, by two products with a triangle. T is the transpose of U.

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

from pursuit.encode.compiled import Array, helper, kernel, scalar
from pursuit.encode.vector import BLOCK, PAIR, combine, largest, prefetch, spread

MARGIN = 16
"""Columns between the padded rows of the float32 copy, so that rows do not fall on the same lines of the cache."""
GIVEN_UP = np.int64(-1)
CLEAR = 0.01
"""A squared pivot beyond this part of its diagonal entry leaves no digits to care about."""


DEPTH = 256
"""Entries of a signal that are summed in float32 before the sum is added to those of others."""
TRIED = 64
"""Atoms that are told apart in full precision before a signal is given up."""


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros from a boundary of cache lines on: vectors that straddle two lines cost twice."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size].view(dtype).reshape(shape)


def single(G: Any) -> Any:
    """The Gram matrix in float32, its rows padded with zeros for `largest`."""
    n = len(G)
    S = aligned((n, -(-n // BLOCK) * BLOCK + MARGIN), np.float32)
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


def doubt(D: Any, norms: Any) -> float:
    """2 e / ||y||: how far `correlations` may move the lead of an atom. Where all is float32, they are what counts."""
    d = len(D)
    return 2.0**-23 * (min(d, DEPTH) + d / DEPTH + 4) * float(norms.max()) if D.itemsize == 8 else 0.0


def workspace(columns: int, width: int, dtype: Any) -> tuple[Any, ...]:
    """Rooms for one signal of `columns` padded columns: inverse Gram matrix, identity, vectors over active atoms."""
    item = np.dtype(dtype).itemsize
    pad = -(-width * item // PAIR) * PAIR // item
    P, identity, vectors = aligned((width, pad), dtype), aligned((width, pad), dtype), aligned((4, pad), dtype)
    np.fill_diagonal(identity, 1)
    rows = P.ctypes.data + np.arange(width, dtype=np.int64) * pad * item
    singles = (
        aligned((columns,), np.float32),
        aligned((columns,), np.float32),
        aligned((pad,), np.float32),
        np.zeros(2, np.float32),
    )
    return P, identity, vectors, rows, np.zeros(width, np.int64), np.zeros(width, np.int32), *singles


@scalar
def gather(G: Array, atoms: Array, x: Array, h: Array, c: float, j: int, s: int) -> tuple[float, bool]:
    """h = Gram entries of atom j with the active ones; its correlation with the residual; whether it is a new one."""
    fresh = True
    for i in range(s):
        g = G[atoms[i], j]
        h[i] = g
        c -= x[i] * g
        fresh &= atoms[i] != j
    return c, fresh


@helper
def contest(
    G: Array, S: Array, A: Array, Y: Array, C: Array, b: int, atoms: Array, x: Array, s: int, margin: float, r: Array,
) -> int:  # fmt: skip
    """The best atom, told in full precision from those within `margin` of the best in float32; -1 if they are many."""
    n = len(A)
    for k in range(n):
        r[k] = C[b, k]
    for i in range(s):
        j, w = atoms[i], np.float32(x[i])
        for k in range(n):
            r[k] -= w * S[j, k]
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


@kernel
def pursue(
    G: Array, S: Array, A: Array, norms: Array, mu: float, rough: float, Y: Array, C: Array, squares: Array,
    limits: Array, tols: Array, noise: float, work: Array, out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """Codes of the signals Y with `correlations` C and squared norms `squares`, or GIVEN_UP as their count.

    S is G in float32, padded, `mu` its `coherence`; the rows of A are the atoms; `rough` is their `doubt`. `tols` are
    negative where there is none; `noise` is the rounding of a correlation relative to the norms of its factors.
    Addresses are taken once: asking an array for its address counts references. What is called in one place only is
    compiled into it: `contest` repeats a few lines, since a call with so many arrays costs as much as a turn.
    """
    P, identity, vectors, rows, lines, atoms, start, r, x32, top = work
    x, h, beta, sizes = vectors[0], vectors[1], vectors[2], vectors[3]
    n, item, like = len(norms), G.itemsize, G[0, 0]
    eps, unit = (2.0**-52, 2.0**-23) if item == 8 else (2.0**-23, 0.0)
    base, stride, blocks = S.ctypes.data, 4 * S.shape[1], len(start) // BLOCK
    at_start, at_lines, at_x32, at_top = start.ctypes.data, lines.ctypes.data, x32.ctypes.data, top.ctypes.data
    at_rows, at_x, at_h, at_beta = rows.ctypes.data, x.ctypes.data, h.ctypes.data, beta.ctypes.data
    units = identity.ctypes.data
    for b in range(len(C)):
        s, left, whole = np.int64(0), squares[b], math.sqrt(squares[b])
        mass, first, goal, slack = whole, whole, tols[b] * abs(tols[b]), 16 * eps * squares[b]
        for j in range(n):
            start[j] = C[b, j]
        for i in range(len(x)):
            x[i] = 0
        for k in range(len(P)):
            for i in range(len(x)):
                P[k, i] = 0
        while s < limits[b] and squares[b] > 0:
            if left <= goal + (s + 4) * slack:
                s = s if left < goal - (s + 4) * slack else GIVEN_UP
                break
            j = largest(at_start, at_lines, at_x32, s, blocks, at_top)
            if s == 0:
                first = top[0] * (1 + 2.0**-19)
            margin = 2.0**-20 * top[0] + rough * whole + unit * (s + 4) * (first + mu * (mass - whole))
            if not top[0] - top[1] > margin:
                j = contest(G, S, A, Y, C, b, atoms, x, s, margin, r)
                if j < 0:
                    s = GIVEN_UP
                    break
            c = like * 0 if item == 8 else C[b, j]
            for t in range(A.shape[1] if item == 8 else 0):
                c += A[j, t] * Y[b, t]
            c, fresh = gather(G, atoms, x, h, c, j, s)
            prefetch(base + j * stride, stride // 64)
            turns = ((s + 1) * item + PAIR - 1) // PAIR
            combine(at_beta, units + s * len(x) * item, at_rows, at_h, s, turns, like)
            pivot = G[j, j]
            for i in range(s):
                pivot += h[i] * beta[i]
            if not (fresh and abs(c) > noise * mass * norms[j] and pivot > CLEAR * G[j, j]):
                s = GIVEN_UP
                break
            step = c / pivot
            spread(at_rows, at_beta, at_x, at_x32, s, turns, G.dtype.type(1 / pivot), G.dtype.type(step))
            left -= c * step
            atoms[s], sizes[s], lines[s] = j, norms[j], base + j * stride
            mass = whole
            for i in range(s + 1):
                mass += abs(x[i]) * sizes[i]
            s += 1
        counts[b] = s
        for i in range(s):
            place = 0
            for k in range(s):
                place += atoms[k] < atoms[i]
            out_atoms[b, place], out_x[b, place] = atoms[i], x[i]
