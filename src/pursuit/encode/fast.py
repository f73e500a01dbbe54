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
from pursuit._vector import numbers
from pursuit.encode.rooms import LEAST, MASS, PEAK, PRODUCT, ROOT, SPAN, STEP, WORST, addresses, aligned, padded
from pursuit.encode.search import BLOCK, LANES, TRUNCATED, gains, largest, largest_gain, magnitudes
from pursuit.encode.short import GROUP, SHORT, Kit, project, quantise
from pursuit.encode.sift import largest_in_short, shorten
from pursuit.encode.vector import WAVE, correlation, dots, enter, prefetch_entries, remainder, seat, spread, write

MARGIN = 32
"""Columns between the padded rows of copies of the Gram matrix, so that rows do not fall on the same lines of the cache
(of which there are some in a row of 16-bit numbers, too)."""
SINGLE = np.float32(0)
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
    n: int, exact: Array, at_y: int, at_atoms: int, at_x: int, s: int, margin: float, at_r: int, like: float
) -> int:
    """The best of n atoms, told in full precision from those whose magnitudes in float32, r, are within `margin` of the
    best; -1 if they are many. `exact` are addresses of atoms and Gram rows, bytes of each, entries of a signal."""
    at_A, at_G, depth, row, d = exact
    r = numbers(at_r, SINGLE)
    best = r[0]
    for k in range(n):
        best = max(best, r[k])
    found, tried, most = -1, CLOSE if best > margin else 0, 0.0
    for k in range(n):
        if r[k] >= best - margin:
            tried -= 1
            if tried < 0:
                return -1
            c = correlation(at_A + k * depth, at_y, d, at_G + k * row, at_atoms, at_x, s, like)
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
    low: float, n: int, exact: Array, at_T: int, at_y: int, at_norms: int, v32: Any, at_atoms: int, at_x: int, s: int,
    floor: float, least: float, at_r: int, slot: int, like: float,
) -> int:  # fmt: skip
    """As `contest`, for c^2 / v, of which r may be as large, and `low` is one that is as large in any case. Atoms that
    are dependent on the active ones are marked by an infinite v32."""
    at_A, at_G, depth, row, d = exact
    r, norms, found, tried, most = numbers(at_r, SINGLE), numbers(at_norms, like), -1, 0, 0.0
    for k in range(n):
        tried += r[k] >= low
    for k in range(n if tried <= CLOSE else 0):
        if r[k] >= low and v32[k] < np.inf:
            line, at = at_G + k * row, at_T
            c = correlation(at_A + k * depth, at_y, d, line, at_atoms, at_x, s, like)
            whole = numbers(line, like)[k]
            v = whole
            for i in range(s):
                u = correlation(line, line, 0, line, at_atoms, at, i + 1, like)
                v, at = v - u * u, at + (i + 1) * slot
            value = gain(c, v, 0.0, 0.0)
            if not v > least * whole:
                v32[k] = np.inf
            elif abs(c) > floor * norms[k] and value > most:
                found, most = k, value
    return found


@part
def fetch(G: Any, S: Any, n: int) -> bool:
    """A row of G to one of S; whether all of it is finite."""
    total = 0 * G[0]
    for t in range(n):
        S[t] = G[t]
        total += G[t]
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
    at = addresses(Y if C is None else C, S, G, A, Y, norms, squares, limits, tols, counts, out_atoms, out_x)
    sizes = len(Y), *A.shape[::-1], padded(len(A)), S.shape[1], G.shape[1], out_x.shape[1], A.itemsize, len(S) < len(G)
    shorts, off = (rooms_of_16[1], kit.off) if kit else (None, 0.0)
    single = None if kit else work[1][6:8]  # weights and rows of T that a search in float32 reads
    omp = None if kit or ols else True
    like = G.dtype.type(0)
    waves(at, sizes, like, *bounds, noise, shorts, off, single, omp, ols[1] if ols else None, work[1])


@kernel
def waves(  # noqa: PLR0915  only what is seldom is a part, which takes longer to compile than what is in it
    at: Array, sizes: Array, like: float, mu: float, longest: float, rough: float, noise: float, shorts: Array,
    off: float, single: Array, omp: Array, ols: Array, places: Array,
) -> None:  # fmt: skip
    """As `pursue`, with addresses instead of arrays, which take long to compile, and None for what has no use: numba
    compiles nothing of that."""
    at_C, at_S, at_G, at_A, at_Y, at_norms, at_squares, at_limits, at_tols, at_counts, at_out_atoms, at_out_x = at
    signals, d, n, padded_columns, stride, row, columns, item, made = sizes
    at_T, at_x, at_sizes, at_sums, at_beta, at_h, _, _, at_atoms, at_ranks = places[:10]
    at_lines, at_floats, at_chosen, at_going, at_signals, at_rows, at_columns, at_doubles, at_field, at_r = places[10:]
    blocks, slot = padded_columns // BLOCK, WAVE * item  # bytes of a vector
    eps, unit, kind = (2.0**-52, 2.0**-23, 0) if item == 8 else (2.0**-23, 0.0, 1)
    clear, lost = CLEAR[kind], LOST[kind]
    stride, row, depth, step = 4 * stride, item * row, item * d, 4 * padded_columns
    far, wave, last = row * n > NEAR, 1 if made else WAVE, signals - 1
    at_least, at_roots, at_mass = at_floats + LEAST * slot, at_floats + ROOT * slot, at_floats + MASS * slot
    squares, tols, limits, counts = (
        numbers(at_squares, like), numbers(at_tols, like), numbers(at_limits, n), numbers(at_counts, n),
    )  # fmt: skip
    chosen, going, where = numbers(at_chosen, n), numbers(at_going, n), numbers(at_signals, n)
    left, length, weight = (
        numbers(at_doubles, 0.0), numbers(at_doubles + 8 * WAVE, 0.0), numbers(at_doubles + 16 * WAVE, 0.0),
    )  # fmt: skip
    roots, worst = numbers(at_roots, like), numbers(at_floats + WORST * slot, like)
    if shorts is not None:
        at_factors, at_y, at_products, at_weights, at_16, at_tops, at_leads, at_short, at_D, width, pairs = shorts
        shift, tall = at_short - at_S // 2, min(SHORT * mu / longest + 1, SHORT)
        exact_16 = at_A, at_G, at_signals, at_atoms, at_x, depth, row, d
    if single is not None:
        at_x32, at_row32 = single
        exact = at_A, at_G, depth, row, d
        best, found = numbers(at_field + 4 * LANES, np.int32(0)), numbers(at_field + 4 * (LANES + WAVE), SINGLE)
    if ols is not None:
        at_v, at_numbers, at_whole = ols
        move, more, less, told = (
            numbers(at_numbers, SINGLE), numbers(at_numbers + 4 * WAVE, SINGLE), numbers(at_numbers + 8 * WAVE, SINGLE),
            numbers(at_numbers + 12 * WAVE, SINGLE),
        )  # fmt: skip
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
            going[p], where[p] = p < wave and start + p <= last, at_Y + b * depth
            left[p], length[p], weight[p] = squares[b], math.sqrt(squares[b]), 0
            numbers(at_mass, like)[p], numbers(at_floats + PEAK * slot, like)[p] = 0, 0
            if ols is not None:  # how far rounding moves correlations and squared norms to begin with
                move[p], told[p], more[p], less[p] = 0, 0, rough * length[p], unit * longest * longest
        s, new = np.int64(0), at_T
        while True:
            busy, here = 0, at_C + start * step
            for p in range(wave):
                b, mass = min(start + p, last), length[p] + weight[p]
                goal, near = tols[b] * abs(tols[b]), 16 * (s + 4) * eps * mass * mass
                done = s == limits[b] or squares[b] == 0
                if going[p] and not done and left[p] <= goal + near:
                    rest = remainder(where[p], at_A, depth, at_atoms + 4 * p, at_x + item * p, s, d, like)
                    done = left[p] < goal - near or math.sqrt(rest) <= tols[b]
                if going[p] and done:
                    counts[b], going[p] = s, 0
                busy += going[p]
            if busy == 0:
                break
            if shorts is not None:
                at_factor, at_mine = at_factors + 8 * (start % GROUP), at_products + start % GROUP * (step // 2)
                shorten(at_x, at_sizes, at_factor, at_mass, s, longest, tall, at_weights, at_leads, like)
                largest_in_short(
                    at_mine, at_lines, shift, at_weights, at_leads, at_going, s, blocks, at_16, at_tops, exact_16,
                    at_chosen, like,
                )  # fmt: skip
                for p in range(WAVE):
                    if going[p] and chosen[p] < 0:
                        b, mass = start + p, length[p] + weight[p]
                        rest = remainder(where[p], at_A, depth, at_atoms + 4 * p, at_x + item * p, s, d, like)
                        counts[b], going[p] = s if math.sqrt(rest) <= noise * mass else UNSURE, 0
                        unsure += counts[b] < 0
            if single is not None:
                at_w = at_x32 if item == 8 else at_x
                if omp is not None:
                    largest(here, step, at_lines, at_w, at_going, s, blocks, at_field)
                if ols is not None:
                    row32 = at_row32 if item == 8 else new
                    largest_gain(here, step, at_lines, row32, at_going, s, blocks, at_field, at_whole, at_v, at_numbers)
                for p in range(WAVE):
                    j, first, second, c = np.int64(best[p]), found[p], found[WAVE + p], numbers(here + p * step, SINGLE)
                    mine = at_atoms + 4 * p, at_x + item * p
                    if omp is not None and going[p]:
                        margin = TRUNCATED * first + rough * length[p]
                        margin += unit * (s + 4) * (longest * length[p] + mu * weight[p])
                        if not first - second > margin:
                            magnitudes(here + p * step, at_lines + 8 * p, at_w + 4 * p, s, blocks, at_r)
                            j = contest(n, exact, where[p], mine[0], mine[1], s, margin, at_r, like)
                        if j >= 0 and item == 4:
                            numbers(at_floats + PRODUCT * slot, like)[p] = c[j]
                    if ols is not None and going[p]:
                        v = numbers(at_v + p * step, SINGLE)
                        if not gain(c[j], v[j], -more[p], -less[p]) > second * (1 + 2 * TRUNCATED + ROUGHLY):
                            told[p] += 1
                            j = np.int64(-1)
                            if told[p] <= OFTEN:
                                least = 16 * (s + 4) * eps
                                dead = least if less[p] == 0 else -np.inf  # the rest of an atom is known up to `less`
                                ends = here + p * step, at_v + p * step
                                low = gains(ends[0], ends[1], at_whole, at_numbers, p, dead, blocks, at_r)
                                j = contest_of_gains(
                                    low * (1 - ROUGHLY), n, exact, at_T + item * p, where[p], at_norms, v, mine[0],
                                    mine[1], s, noise * (length[p] + weight[p]), least, at_r, slot, like,
                                )  # fmt: skip
                        if j >= 0:
                            v[j] = np.inf
                    chosen[p] = j if going[p] else -1
            for p in range(WAVE if far else 0):
                if chosen[p] >= 0:
                    prefetch_entries(at_G + chosen[p] * row, item, at_atoms + 4 * p, s)
            tables = at_S + (s * stride if made else 0), 0 if made else stride, at_G, row, at_A, depth
            seats = (
                at_atoms + 4 * s * WAVE, at_ranks + 4 * s * WAVE, at_sizes + s * slot, at_lines + 8 * s * WAVE,
                at_rows, at_columns, at_least,
            )  # fmt: skip
            seat(at_chosen, at_norms, at_doubles + 8 * WAVE, noise, tables, seats, like)
            if single is not None and made:
                line = numbers(at_G + chosen[0] * row, like)
                if not fetch(line, numbers(at_S + s * stride, SINGLE), n):
                    numbers(at_least, like)[0] = np.inf
            if item == 8 or ols is not None or single is None:
                dots(at_columns, at_signals, d, at_floats, like)
            enter(at_T, at_rows, at_atoms, at_h, at_x, at_beta, at_floats, clear, s, like)
            new = at_T + s * (s + 1) // 2 * WAVE * item
            trouble = spread(
                new, at_beta, at_roots, at_x, single, at_sums, at_sizes, at_atoms, at_ranks, at_mass,
                at_doubles, s, lost, like,
            )  # fmt: skip
            if ols is not None:  # how far it moves what `largest_gain` computes next
                for p in range(wave):
                    tick, entry = unit * longest, unit * (s + 4) * mu * numbers(at_floats + SPAN * slot, like)[p]
                    by = numbers(at_floats + STEP * slot, like)[p] / roots[p] if roots[p] > 0 else roots[p]
                    move[p] = by
                    more[p] += abs(by) * (entry + tick) + tick * length[p]
                    less[p] += (2 * longest + entry) * entry + tick * longest
            for p in range(wave if trouble else 0):
                if going[p] and (roots[p] == 0 or not worst[p] <= lost):
                    rest = remainder(where[p], at_A, depth, at_atoms + 4 * p, at_x + item * p, s, d, like)
                    spent = math.sqrt(rest) <= noise * (length[p] + weight[p])  # all is rounding
                    counts[start + p], going[p] = s if roots[p] == 0 and spent else GIVEN_UP, 0
            s += 1
        write(
            at_x, at_atoms, at_ranks, at_counts + 8 * start, min(wave, signals - start), columns,
            at_out_atoms + 4 * start * columns, at_out_x + item * start * columns, like,
        )  # fmt: skip
