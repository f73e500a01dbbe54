"""Orthogonal matching pursuit, and least squares, over a shared Gram matrix: fast, and aware of what is not sure.

The correlations after s atoms are c = D^T y - sum_i x_i G_i, with G_i the Gram rows of the active atoms: a turn reads s
rows, and nothing of the size of D or of a signal. T is lower triangular, T^T T the inverse of the Gram matrix of the
active atoms. An atom j with Gram entries h enters by u = T h, beta = (-T^T u, 1) and pivot = G_jj - ||u||^2: the next
row of T is beta / sqrt(pivot), and the weights move by (c_j / pivot) beta. Orthogonal least squares takes the atom of
the largest c_j^2 / v_j, with v_j the squared norm of what the active atoms leave of atom j: as one enters, t, the sum
of their Gram rows weighted by the new row of T, gives c - t c_j / sqrt(pivot) and v - t^2.

Signals go in waves, all of a wave in step: what follows the search for an atom is a chain of short sums, in which a
processor mostly waits, and which costs about as much for the vectors of a wave as for the numbers of one signal.

Selection reads 16-bit integers (OMP of many signals on a processor that has the instructions: `short` says how), or
float32 numbers, and is still that of float64: either can tell where it is not sure, and then something finer is asked.

In float32, with u = 2^-24, D^T y is summed over parts of at most DEPTH entries of y; rounding the factors, the terms of
a part and the sum of the parts moves a product by at most e = u (DEPTH + d / DEPTH + 3) ||a_j|| ||y||, to first order.
The correlation of an atom j that is not active is a sum of s + 1 terms, and no partial sum is larger than
M = max_j ||a_j|| ||y|| + sum_i |x_i| max_j |G_ij|. Rounding Gram entries, weights, their products and the partial sums
moves it by at most u (3 sum_i |x_i G_ij| + s M) <= u (s + 3) M more: a best atom that leads by 2 e + 2 u (s + 4) M is
the best. Where the lead is smaller, the atoms that could be best are told apart by correlations in float64; that of the
one that enters is computed so in any case.

For OLS, t errs by at most u (s + 4) max_i (|G_ij| / ||a_i||) sum_i |T_si| ||a_i||, as above; c and v by what adds up of
that, times the step and 2 ||a_j||, and of the rounding of every sum: `more` and `less`. An atom whose
(|c| - more)^2 / (v + less) is larger than (|c| + more)^2 / (v - less) of all others is the best.

Whatever is still not clear (too many such atoms, a nearly dependent one) gives the signal up: `careful` does it again
from the start. At the brink of `tol`, the residual itself decides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, kernel, part
from pursuit.encode.rooms import (
    CHOSEN,
    GOING,
    LEAST,
    LEFT,
    LENGTH,
    LESS,
    MASS,
    MORE,
    MOVE,
    PEAK,
    PRODUCT,
    ROOT,
    SIGNAL,
    SPAN,
    STEP,
    TOLD,
    WEIGHT,
    WORST,
    addresses,
    aligned,
    padded,
)
from pursuit.encode.search import BLOCK, TRUNCATED, gains, largest, largest_gain, magnitudes
from pursuit.encode.short import GROUP, SHORT, Kit, project, quantise
from pursuit.encode.sift import largest_in_short, shorten
from pursuit.encode.lines import dot
from pursuit.encode.vector import WAVE, dots, enter, prefetch_entries, remainder, seat, spread, write

MARGIN = 32
"""Columns between the padded rows of copies of the Gram matrix, so that rows do not fall on the same lines of the cache
(of which there are some in a row of 16-bit numbers, too)."""
GIVEN_UP, UNSURE = np.int64(-1), np.int64(-2)
ROUGHLY = 1e-5
"""More than the rounding of a few operations in float32, relative to what they make."""
CLEAR = 1e-3, 1 / 300
"""A squared pivot beyond this part of its diagonal entry loses few digits by itself (float64, float32)."""
LOST = 1e4, 300.0
"""How much the inverse Gram matrix of atoms of norm 1 may have on its diagonal (float64, float32): many pivots, each of
them clear, can lose more digits than one."""
DEPTH = 256
"""Entries of a signal that are summed in float32 before the sum is added to those of others."""
NEAR = 2**20
"""Bytes of a Gram matrix of which no row is worth asking for ahead of its use."""
OFTEN = 2
"""Turns in which atoms are told apart in full precision for OLS, which takes as long as the careful way does."""
CLOSE = 64
"""Atoms that are told apart in full precision before a signal is given up."""


def single(G: Any) -> Any:
    """The Gram matrix in float32, its rows padded with zeros for `largest`."""
    n = len(G)
    S = aligned((n, padded(n) + MARGIN), np.float32)
    S[:, :n] = G
    return S


def bounds(S: Any, norms: Any) -> tuple[float, float]:
    """The largest |G_ij| / ||a_i|| over different atoms i and j, and over all (at least the largest norm: a Gram matrix
    may be one to a few digits only), rounded up."""
    n, diagonal = len(S), S.diagonal().copy()
    np.fill_diagonal(S[:, :n], 0)
    largest = np.maximum(S.max(axis=1), -S.min(axis=1))
    np.fill_diagonal(S[:, :n], diagonal)
    mu = float((largest / norms).max())
    return mu * (1 + 1e-6), max(mu, float((diagonal / norms).max()), float(norms.max())) * (1 + 1e-6)


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


@part
def contest(
    G: Array, at_A: int, d: int, at_y: int, atoms: Array, x: Array, p: int, s: int, margin: float, r: Array
) -> int:  # fmt: skip
    """The best atom, told in full precision from those whose magnitudes in float32, r, are within `margin` of the best;
    -1 if they are many. The atoms, of d entries, are one after the other from address `at_A` on."""
    best = r[0]
    for k in range(len(G)):
        best = max(best, r[k])
    found, tried, most = -1, CLOSE if best > margin else 0, 0.0
    for k in range(len(G)):
        if r[k] >= best - margin:
            tried -= 1
            if tried < 0:
                return -1
            c = dot(at_A + k * d * G.itemsize, at_y, d, x[0, p])
            for i in range(s):
                c -= x[i, p] * G[atoms[i, p], k]
            if abs(c) > most:
                found, most = k, abs(c)
    return found


@part
def gain(c: float, v: float, more: float, less: float) -> float:
    """(|c| + more)^2 / (v - less) in float64, where no square is out of range."""
    size, rest = abs(np.float64(c)) + more, np.float64(v) - less
    return max(size, 0.0) ** 2 / rest if rest > 0 else np.inf


@part
def contest_of_gains(
    low: float, G: Array, T: Array, at_A: int, d: int, at_y: int, norms: Array, v32: Array, atoms: Array, x: Array,
    p: int, s: int, floor: float, least: float, r: Array,
) -> int:  # fmt: skip
    """As `contest`, for c^2 / v, of which r may be as large, and `low` is one that is as large in any case. Atoms that
    are dependent on the active ones are marked by an infinite v32."""
    found, tried, most = -1, 0, 0.0
    for k in range(len(G)):
        tried += r[k] >= low
    for k in range(len(G) if tried <= CLOSE else 0):
        if r[k] >= low and v32[k] < np.inf:
            c, v = dot(at_A + k * d * G.itemsize, at_y, d, x[0, p]), G[k, k]
            for i in range(s):
                u = 0 * c
                for m in range(i + 1):
                    u += T[i * (i + 1) // 2 + m, p] * G[atoms[m, p], k]
                c, v = c - x[i, p] * G[atoms[i, p], k], v - u * u
            value = gain(c, v, 0.0, 0.0)
            if not v > least * G[k, k]:
                v32[k] = np.inf
            elif abs(c) > floor * norms[k] and value > most:
                found, most = k, value
    return found


@part
def fetch(G: Array, S: Array, j: int, s: int) -> bool:
    """Row j of G to row s of S; whether all of it is finite."""
    total = 0 * G[j, 0]
    for t in range(G.shape[1]):
        S[s, t] = G[j, t]
        total += G[j, t]
    return abs(total) < np.inf


def pursue(
    G: Array, S: Array, kit: Kit | None, A: Array, norms: Array, bounds: tuple[float, float, float], Y: Array,
    C: Array | None, ols: Any, squares: Array, limits: Array, tols: Array, noise: float, work: Any, rooms_of_16: Any,
    out_atoms: Array, out_x: Array, counts: Array,
) -> None:  # fmt: skip
    """Codes of the signals Y with `correlations` C and squared norms `squares`, or GIVEN_UP as their count.

    S is G in float32, padded as C is (or room for the rows of the active atoms, filled as they enter, one signal after
    the other), `bounds` are its `bounds` (or more) and the `doubt` of the atoms, which are the rows of A. With a kit,
    and rooms, signals are searched in 16 bits, without C, and the count is UNSURE where these are not enough. `ols` are
    `lefts`, or None for OMP. `tols` are minus infinity where there is none; `noise` is the rounding of a correlation
    relative to the norms of its factors.
    """
    ours, more, places = work
    at = addresses(Y if C is None else C, S, G, A, Y, norms, squares, counts, out_atoms, out_x)
    sizes = len(Y), *A.shape[::-1], padded(len(A)), S.shape[1], G.shape[1], out_x.shape[1], len(S) < len(G)
    more = None if kit else (G, S, C, norms, *more)
    shorts, off = (rooms_of_16[1], kit.off) if kit else (None, 0.0)
    omp = None if kit or ols else True  # in float32
    numbers = G.dtype.type(0), *bounds, noise
    waves(at, sizes, *numbers, shorts, off, more, omp, ols, squares, limits, tols, ours, places, counts)


@kernel
def waves(  # noqa: PLR0915  only what is seldom is a part: arrays that are handed to one count references
    at: Array, sizes: Array, like: float, mu: float, longest: float, rough: float, noise: float, shorts: Array,
    off: float, more: Array, omp: Array, ols: Array, squares: Array, limits: Array, tols: Array, ours: Array,
    places: Array, counts: Array,
) -> None:  # fmt: skip
    """As `pursue`, with addresses instead of arrays, which take long to compile, and None for what has no use: numba
    compiles nothing of that."""
    at_C, at_S, at_G, at_A, at_Y, at_norms, at_squares, at_counts, at_out_atoms, at_out_x = at
    signals, d, n, padded_columns, stride, row, columns, made = sizes
    floats, doubles, whole = ours
    at_T, at_x, at_sizes, at_sums, at_beta, at_h, at_x32, at_row32, at_atoms, at_ranks = places[:10]
    at_lines, at_floats, at_chosen, at_going, at_signals, at_rows, at_columns, at_doubles, at_field, at_r = places[10:]
    item, blocks = floats.itemsize, padded_columns // BLOCK
    eps, unit, kind = (2.0**-52, 2.0**-23, 0) if item == 8 else (2.0**-23, 0.0, 1)
    clear, lost = CLEAR[kind], LOST[kind]
    stride, row, depth, step = 4 * stride, item * row, item * d, 4 * padded_columns
    far, wave, last = row * n > NEAR, 1 if made else WAVE, signals - 1
    slot = WAVE * item  # bytes of a vector
    at_least, at_roots, at_mass = at_floats + LEAST * slot, at_floats + ROOT * slot, at_floats + MASS * slot
    if shorts is not None:
        at_factors, at_y, at_products, at_weights, at_16, at_tops, at_leads, at_short, at_D, width, pairs = shorts
        shift, tall = at_short - at_S // 2, min(SHORT * mu / longest + 1, SHORT)
        exact = at_A, at_G, at_signals, at_atoms, at_x, depth, row, d
    if more is not None:
        G, S, C, norms, x, atoms, r, best, found, T = more
    if ols is not None:
        v, numbers, (at_v, at_numbers, at_whole) = ols
    unsure = 0
    for start in range(0, signals, wave):
        if 2 * unsure > start + GROUP:  # nor will the others be
            for b in range(start, signals):
                counts[b] = UNSURE
            break
        if shorts is not None and start % GROUP == 0:
            quantise(
                at_Y + start * depth, depth, d, at_squares + start * item, last - start, longest, off, at_y, width,
                at_factors, like,
            )  # fmt: skip
            project(at_D, n, blocks, at_y, width, pairs, GROUP // WAVE, at_products)
        for p in range(WAVE):
            b = min(start + p, last)
            length = math.sqrt(squares[b])
            whole[GOING, p], whole[SIGNAL, p] = p < wave and start + p <= last, at_Y + b * depth
            doubles[LEFT, p], doubles[LENGTH, p], doubles[WEIGHT, p] = squares[b], length, 0
            floats[MASS, p], floats[PEAK, p] = 0, 0
            if ols is not None:  # how far rounding moves correlations and squared norms to begin with
                numbers[MOVE, p], numbers[TOLD, p] = 0, 0
                numbers[MORE, p], numbers[LESS, p] = rough * length, unit * longest * longest
        s, new = np.int64(0), at_T
        while True:
            busy, here = 0, at_C + start * step
            for p in range(wave):
                b, left, mass = min(start + p, last), doubles[LEFT, p], doubles[LENGTH, p] + doubles[WEIGHT, p]
                goal, near = tols[b] * abs(tols[b]), 16 * (s + 4) * eps * mass * mass
                done = s == limits[b] or squares[b] == 0
                if whole[GOING, p] and not done and left <= goal + near:
                    rest = remainder(whole[SIGNAL, p], at_A, depth, at_atoms + 4 * p, at_x + item * p, s, d, like)
                    done = left < goal - near or math.sqrt(rest) <= tols[b]
                if whole[GOING, p] and done:
                    counts[b], whole[GOING, p] = s, 0
                busy += whole[GOING, p]
            if busy == 0:
                break
            if shorts is not None:
                at_factor, at_mine = at_factors + 8 * (start % GROUP), at_products + start % GROUP * (step // 2)
                shorten(at_x, at_sizes, at_factor, at_mass, s, longest, tall, at_weights, at_leads, like)
                largest_in_short(
                    at_mine, at_lines, shift, at_weights, at_leads, at_going, s, blocks, at_16, at_tops, exact,
                    at_chosen, like,
                )  # fmt: skip
                for p in range(WAVE):
                    if whole[GOING, p] and whole[CHOSEN, p] < 0:
                        b, mass = start + p, doubles[LENGTH, p] + doubles[WEIGHT, p]
                        rest = remainder(whole[SIGNAL, p], at_A, depth, at_atoms + 4 * p, at_x + item * p, s, d, like)
                        counts[b], whole[GOING, p] = s if math.sqrt(rest) <= noise * mass else UNSURE, 0
                        unsure += counts[b] < 0
            if more is not None:
                at_w = at_x32 if item == 8 else at_x
                if omp is not None:
                    largest(here, step, at_lines, at_w, at_going, s, blocks, at_field)
                if ols is not None:
                    row32 = at_row32 if item == 8 else new
                    largest_gain(here, step, at_lines, row32, at_going, s, blocks, at_field, at_whole, at_v, at_numbers)
                for p in range(WAVE):
                    b, j, first, second = start + p, np.int64(best[p]), found[0, p], found[1, p]
                    length, weight = doubles[LENGTH, p], doubles[WEIGHT, p]
                    if omp is not None and whole[GOING, p]:
                        margin = TRUNCATED * first + rough * length
                        margin += unit * (s + 4) * (longest * length + mu * weight)
                        if not first - second > margin:
                            magnitudes(here + p * step, at_lines + 8 * p, at_w + 4 * p, s, blocks, at_r)
                            j = contest(G, at_A, d, whole[SIGNAL, p], atoms, x, p, s, margin, r)
                        if j >= 0 and item == 4:
                            floats[PRODUCT, p] = C[b, j]
                    if ols is not None and whole[GOING, p]:
                        spare, less = numbers[MORE, p], numbers[LESS, p]
                        if not gain(C[b, j], v[p, j], -spare, -less) > second * (1 + 2 * TRUNCATED + ROUGHLY):
                            numbers[TOLD, p] += 1
                            j = np.int64(-1)
                            if numbers[TOLD, p] <= OFTEN:
                                least = 16 * (s + 4) * eps
                                dead = least if less == 0 else -np.inf  # the rest of an atom is known up to `less`
                                ends = here + p * step, at_v + p * step
                                low = gains(ends[0], ends[1], at_whole, at_numbers, p, dead, blocks, at_r)
                                j = contest_of_gains(
                                    low * (1 - ROUGHLY), G, T, at_A, d, whole[SIGNAL, p], norms, v[p], atoms, x, p, s,
                                    noise * (length + weight), least, r,
                                )  # fmt: skip
                        if j >= 0:
                            v[p, j] = np.inf
                    whole[CHOSEN, p] = j if whole[GOING, p] else -1
            for p in range(WAVE if far else 0):
                if whole[CHOSEN, p] >= 0:
                    prefetch_entries(at_G + whole[CHOSEN, p] * row, item, at_atoms + 4 * p, s)
            tables = at_S + (s * stride if made else 0), 0 if made else stride, at_G, row, at_A, depth
            seats = (
                at_atoms + 4 * s * WAVE, at_ranks + 4 * s * WAVE, at_sizes + s * slot, at_lines + 8 * s * WAVE,
                at_rows, at_columns, at_least,
            )  # fmt: skip
            seat(at_chosen, at_norms, at_doubles + 8 * WAVE, noise, tables, seats, like)
            if more is not None and made and not fetch(G, S, whole[CHOSEN, 0], s):
                floats[LEAST, 0] = np.inf
            if item == 8 or ols is not None or more is None:
                dots(at_columns, at_signals, d, at_floats, like)
            enter(at_T, at_rows, at_atoms, at_h, at_x, at_beta, at_floats, clear, s, like)
            new = at_T + s * (s + 1) // 2 * WAVE * item
            trouble = spread(
                new, at_beta, at_roots, at_x, at_x32, at_row32, at_sums, at_sizes, at_atoms, at_ranks, at_mass,
                at_doubles, s, lost, like,
            )  # fmt: skip
            if ols is not None:  # how far it moves what `largest_gain` computes next
                for p in range(wave):
                    root, tick, entry = floats[ROOT, p], unit * longest, unit * (s + 4) * mu * floats[SPAN, p]
                    move = floats[STEP, p] / root if root > 0 else root
                    numbers[MOVE, p] = move
                    numbers[MORE, p] += abs(move) * (entry + tick) + tick * doubles[LENGTH, p]
                    numbers[LESS, p] += (2 * longest + entry) * entry + tick * longest
            for p in range(wave if trouble else 0):
                if whole[GOING, p] and (floats[ROOT, p] == 0 or not floats[WORST, p] <= lost):
                    rest = remainder(whole[SIGNAL, p], at_A, depth, at_atoms + 4 * p, at_x + item * p, s, d, like)
                    spent = math.sqrt(rest) <= noise * (doubles[LENGTH, p] + doubles[WEIGHT, p])  # all is rounding
                    counts[start + p], whole[GOING, p] = s if floats[ROOT, p] == 0 and spent else GIVEN_UP, 0
            s += 1
        write(
            at_x, at_atoms, at_ranks, at_counts + 8 * start, min(wave, signals - start), columns,
            at_out_atoms + 4 * start * columns, at_out_x + item * start * columns, like,
        )  # fmt: skip
