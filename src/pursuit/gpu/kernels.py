"""Triton kernels of orthogonal matching pursuit.

Every pursuit keeps, for each signal, the coefficients M of an orthonormal basis of its active atoms: the new direction
q_t = sum_l M[t, l] a_l follows from the Gram matrix alone (`direction`). An atom a_j with products g_l = <a_l, a_j> has

    w = M g,   nu^2 = |a_j|^2 - |w|^2,   M[t] = (e_t - M'w) / nu,

and the step along q_t is c / nu with c = <r, a_j> = <y, a_j> - <x, g>: the weights x move by c M[t] / nu.

The fast way takes turns: `search` finds two atoms for all signals on the tensor cores, in float16, and `advance` takes
the better one in full precision. For a residual of norm 1 and atoms of norm at most 1, products in float16 differ from
the exact ones by at most

    e = |r - r16| + |a - a16| + (d / 16 + 16) 2^-22,

the last term for the rounding of the sums. Where a third atom is within 2 e of the best, the signal is left to
`pursue`, which updates the products of all atoms in full precision.
"""

import triton
import triton.language as tl


@triton.jit
def begin(Y, tols, limits, R16, units, errors, states, d, WIDTH: tl.constexpr):
    """The first residual of a signal: the signal, in units of a power of two and at unit length. States: 1 is under way,
    0 is done, -1 was not proved, -2 is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, WIDTH)
    y = tl.load(Y + b * d + o, mask=o < d, other=0.0)
    peak = tl.max(tl.abs(y), 0)
    finite = tl.sum((tl.abs(y) < float("inf")).to(tl.int32), 0) == WIDTH
    unit = tl.exp2(tl.floor(tl.log2(tl.where(finite & (peak > 0), peak, 1.0))))
    y = tl.where(finite, y / unit, 0.0)
    length = tl.sqrt(tl.sum(y * y, 0))
    tol = tl.load(tols + b) / unit
    under_way = (length > 0) & ((length > tol) | (tol < 0)) & (tl.load(limits + b) > 0)
    tl.store(states + b, tl.where(finite, under_way.to(tl.int32), -2))
    tl.store(units + b, unit)
    _round(y, length, R16 + b * WIDTH + o, errors + b)


@triton.jit
def _round(r, length, to, error):
    """The residual at unit length in float16, and the norm of what that loses."""
    scaled = (r / tl.where(length > 0, length, 1.0)).to(tl.float32)
    r16 = scaled.to(tl.float16)
    lost = scaled - r16.to(tl.float32)
    tl.store(to, r16)
    tl.store(error, 1.01 * tl.sqrt(tl.sum(lost * lost, 0)))


@triton.jit
def search(
    R16, D16, states, tops, atoms, signals, n, span,
    WIDTH: tl.constexpr, SIDE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """For SIDE signals and `span` columns: the largest product, the next largest one of another block of columns, and
    the largest of all others (`tops`, three numbers a signal); and the `atoms` of the first two."""
    o, place = tl.arange(0, WIDTH), tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    inside = place < signals
    if tl.max(tl.load(states + place, mask=inside, other=0), 0) > 0:
        r = tl.load(R16 + place[:, None] * WIDTH + o[None, :], mask=inside[:, None], other=0.0)
        top = tl.full((SIDE,), -1.0, tl.float32)
        second = tl.full((SIDE,), -1.0, tl.float32)
        rest = tl.full((SIDE,), -1.0, tl.float32)
        j1 = tl.zeros((SIDE,), tl.int32)
        j2 = tl.zeros((SIDE,), tl.int32)
        part = tl.program_id(1)
        for start in range(part * span, tl.minimum(part * span + span, n), COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            size = tl.abs(tl.dot(r, tl.load(D16 + columns[None, :] * WIDTH + o[:, None])))
            most, best = tl.max(size, 1, return_indices=True)
            others = tl.max(tl.where(tl.arange(0, COLUMNS)[None, :] == best[:, None], -1.0, size), 1)
            top, j1, second, j2, rest = best_two(top, j1, second, j2, rest, most, best + start, others)
        at = part.to(tl.int64) * signals + place
        tl.store(tops + at * 3, top, mask=inside)
        tl.store(tops + at * 3 + 1, second, mask=inside)
        tl.store(tops + at * 3 + 2, rest, mask=inside)
        tl.store(atoms + at * 2, j1, mask=inside)
        tl.store(atoms + at * 2 + 1, j2, mask=inside)


@triton.jit
def best_two(top, j1, second, j2, rest, most, at, others):
    """The best two of three atoms, and the largest product of all the others."""
    better = most > top
    low, at_low = tl.where(better, top, most), tl.where(better, j1, at)
    rest = tl.maximum(rest, tl.maximum(tl.minimum(low, second), others))
    j2 = tl.where(low > second, at_low, j2)
    return tl.maximum(top, most), tl.where(better, at, j1), tl.maximum(low, second), j2, rest


@triton.jit
def direction(M, known, g, of_j, j, t, row, ROWS: tl.constexpr):
    """The coefficients of the new direction, 1 / nu, nu^2 as a share of |a_j|^2, and whether a_j is active already."""
    m = tl.load(M + row[:, None] * ROWS + row[None, :], mask=row[:, None] < t, other=0.0)
    w = tl.sum(m * g[None, :], 1)
    beta = tl.sum(m * w[:, None], 0)
    square = of_j - tl.sum(w * w, 0)
    inverse = 1.0 / tl.sqrt(tl.where(square > 0, square, 1.0))
    again = tl.max(((known == j) & (row < t)).to(tl.int32), 0) > 0
    return tl.where(row == t, 1.0, -beta) * inverse, inverse, square / of_j, again


@triton.jit(do_not_specialize=["t"])
def advance(
    D, G, Y, R16, tols, limits, units, errors, states, tops, found, atoms, x, counts, M,
    t, signals, n, d, lost_in_D, least_residual, least_lead, least_distance,
    PARTS: tl.constexpr, WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One signal takes the better of its two atoms, the t-th, and has a new residual."""
    b = tl.program_id(0).to(tl.int64)
    if tl.load(states + b) > 0:
        o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
        unit = tl.load(units + b)
        y = tl.load(Y + b * d + o, mask=o < d, other=0.0) / unit
        top, second, rest = tl.load(tops + b * 3), tl.load(tops + b * 3 + 1), tl.load(tops + b * 3 + 2)
        j1, j2 = tl.load(found + b * 2), tl.load(found + b * 2 + 1)
        for part in tl.static_range(1, PARTS):
            more, also = tops + (part * signals + b) * 3, found + (part * signals + b) * 2
            others = tl.load(more + 2)
            top, j1, second, j2, rest = best_two(top, j1, second, j2, rest, tl.load(more), tl.load(also), others)
            next_most, next_atom = tl.load(more + 1), tl.load(also + 1)
            top, j1, second, j2, rest = best_two(top, j1, second, j2, rest, next_most, next_atom, others)
        j1, j2 = j1.to(tl.int64), tl.where(second < 0, j1, j2).to(tl.int64)
        known = tl.load(atoms + b * K + row, mask=row < t, other=0).to(tl.int64)
        weights = tl.load(x + b * K + row, mask=row < t, other=0.0)
        g1 = tl.load(G + known * n + j1, mask=row < t, other=0.0)
        g2 = tl.load(G + known * n + j2, mask=row < t, other=0.0)
        a1, a2 = tl.load(D + j1 * WIDTH + o), tl.load(D + j2 * WIDTH + o)
        c1 = tl.sum(y * a1, 0) - tl.sum(weights * g1, 0)
        c2 = tl.sum(y * a2, 0) - tl.sum(weights * g2, 0)
        difference = tl.abs(c2) - tl.abs(c1)
        swaps = (difference > 0) | ((difference == 0) & (j2 < j1))
        j, c, g, a = tl.where(swaps, j2, j1), tl.where(swaps, c2, c1), tl.where(swaps, g2, g1), tl.where(swaps, a2, a1)
        new, inverse, share, again = direction(M + b * K * ROWS, known, g, tl.load(G + j * n + j), j, t, row, ROWS)
        length = tl.sqrt(tl.sum(y * y, 0))
        unsure = top - rest <= 2.0 * (tl.load(errors + b) + lost_in_D)
        unsure |= (j1 != j2) & (tl.abs(difference) <= least_lead * length)
        unsure |= again | (share <= least_distance)
        if unsure:
            tl.store(states + b, -1)
        else:
            weights += c * inverse * new
            r = y - c * inverse * inverse * a
            for start in range(0, t, CHUNK):
                some = start + tl.arange(0, CHUNK)
                those = tl.load(atoms + b * K + some, mask=some < t, other=0).to(tl.int64)
                rows = tl.load(D + those[:, None] * WIDTH + o[None, :], mask=(some < t)[:, None], other=0.0)
                r -= tl.sum(tl.gather(weights, some, 0)[:, None] * rows, 0)
            tl.store(M + b * K * ROWS + t * ROWS + row, new)
            tl.store(atoms + b * K + t, j.to(tl.int32))
            tl.store(x + b * K + row, weights, mask=row <= t)
            tl.store(counts + b, t + 1)
            rest_length = tl.sqrt(tl.sum(r * r, 0))
            tol = tl.load(tols + b) / unit
            under_way = ((rest_length > tol) | (tol < 0)) & (t + 1 < tl.load(limits + b))
            tiny = under_way & (rest_length <= least_residual * length)
            tl.store(states + b, tl.where(tiny, -1, under_way.to(tl.int32)))
            _round(r, rest_length, R16 + b * WIDTH + o, errors + b)


@triton.jit
def pursue(
    P, G, lengths, tols, limits, atoms, x, counts, M, n,
    least_square, least_lead, least_distance, WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The whole pursuit of one signal, from its products P with all atoms; `lengths` are the norms of the signals.
    `counts` is -1 where rounding decides or K atoms are not enough, and -2 where a signal is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    atoms += b * K
    M += b * K * ROWS
    p = tl.load(P + b * n + o, mask=o < n, other=0.0)
    length = tl.load(lengths + b)
    tol, limit = tl.load(tols + b), tl.load(limits + b)
    square = length * length
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0)
    count = 0
    weights = tl.zeros((ROWS,), p.dtype)
    for t in range(K):
        if under_way:
            j = tl.argmax(tl.abs(p), 0)
            c = tl.sum(tl.where(o == j, p, 0.0), 0)
            others = tl.max(tl.where(o == j, -1.0, tl.abs(p)), 0)
            known = tl.load(atoms + row, mask=row < t, other=0).to(tl.int64)
            g = tl.load(G + known * n + j, mask=row < t, other=0.0)
            new, inverse, share, again = direction(M, known, g, tl.load(G + j.to(tl.int64) * n + j), j, t, row, ROWS)
            near0 = square <= least_square * length * length
            if (tl.abs(c) - others <= least_lead * length) | (share <= least_distance) | again | near0:
                count = -1
                under_way = False
            else:
                step = c * inverse
                weights += step * new
                square -= step * step
                tl.store(M + t * ROWS + row, new)
                tl.store(atoms + t, j.to(tl.int32))
                tl.debug_barrier()
                for i in range(t + 1):
                    a = tl.load(atoms + i).to(tl.int64)
                    p -= step * tl.load(M + t * ROWS + i) * tl.load(G + a * n + o, mask=o < n, other=0.0)
                count = t + 1
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), tl.where(under_way, -1, count), -2))
    tl.store(x + b * K + row, weights, mask=row < K)


@triton.jit
def pack(atoms, x, units, starts, counts, columns, values, signals, K: tl.constexpr, SIDE: tl.constexpr):
    """Writes codes in the order of their atoms to their places in a CSR matrix."""
    place = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    inside = place < signals
    count = tl.load(counts + place, mask=inside, other=0)
    start = tl.load(starts + place, mask=inside, other=0)
    unit = tl.load(units + place, mask=inside, other=1.0)
    for t in range(K):
        here = t < count
        a = tl.load(atoms + place * K + t, mask=here, other=0)
        rank = tl.zeros((SIDE,), tl.int64)
        for i in range(K):
            other = tl.load(atoms + place * K + i, mask=here & (i < count), other=2147483647)
            rank += (other < a).to(tl.int64)
        tl.store(columns + start + rank, a.to(tl.int64), mask=here)
        tl.store(values + start + rank, tl.load(x + place * K + t, mask=here, other=0.0) * unit, mask=here)
