"""Triton kernels of the pursuits.

Orthogonal pursuits keep, for each signal, the coefficients M of an orthonormal basis of its active atoms: the new direction
q_t = sum_l M[t, l] a_l follows from the Gram matrix alone (`direction`). An atom a_j with products g_l = <a_l, a_j> has

    w = M g,   nu^2 = |a_j|^2 - |w|^2,   M[t] = (e_t - M'w) / nu,

and the step along q_t is c / nu with c = <r, a_j> = <y, a_j> - <x, g>: the weights x move by c M[t] / nu.

The fast way takes turns: `search` finds the best atom of every block of columns for all signals on the tensor cores, in
float16, and `advance` takes the best of these in full precision. For a residual of norm 1 and atoms of norm at most 1, products in float16 differ from
the exact ones by at most

    e = |r - r16| + |a - a16| + (d / 16 + 16) 2^-22,

the last term for the rounding of the sums: only atoms within 2 e of the best need be compared. Longer signals take
`pursue`, which updates the products of all atoms from step to step.
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
    R16, D16, states, tops, seconds, found, signals, n, span,
    WIDTH: tl.constexpr, SIDE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """For SIDE signals and each block of COLUMNS atoms among `span` of them: the largest product, the next one, and the
    atom `found` with the largest."""
    o, place = tl.arange(0, WIDTH), tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    inside = place < signals
    if tl.max(tl.load(states + place, mask=inside, other=0), 0) > 0:
        r = tl.load(R16 + place[:, None] * WIDTH + o[None, :], mask=inside[:, None], other=0.0)
        first = tl.program_id(1) * span
        for start in range(first, tl.minimum(first + span, n), COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            size = tl.abs(tl.dot(r, tl.load(D16 + columns[None, :] * WIDTH + o[:, None])))
            most, best = tl.max(size, 1, return_indices=True)
            others = tl.max(tl.where(tl.arange(0, COLUMNS)[None, :] == best[:, None], -1.0, size), 1)
            at = (start // COLUMNS) * signals.to(tl.int64) + place
            tl.store(tops + at, most, mask=inside)
            tl.store(seconds + at, others, mask=inside)
            tl.store(found + at, start + best, mask=inside)


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


@triton.jit
def residual(y, D, atoms, x, count, o, WIDTH: tl.constexpr, CHUNK: tl.constexpr):
    """What the active atoms leave of a signal."""
    for start in range(0, count, CHUNK):
        some = start + tl.arange(0, CHUNK)
        those = tl.load(atoms + some, mask=some < count, other=0).to(tl.int64)
        weights = tl.load(x + some, mask=some < count, other=0.0)
        rows = tl.load(D + those[:, None] * WIDTH + o[None, :], mask=(some < count)[:, None], other=0.0)
        y -= tl.sum(weights[:, None] * rows, 0)
    return y


@triton.jit
def best_of_block(r, D, first, n, o, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr):
    """Of the atoms of a block, the one of largest product with a residual, that product, and the next largest size."""
    top, next_size, j, c = tl.sum(r * 0.0, 0) - 1.0, tl.sum(r * 0.0, 0) - 1.0, first, tl.sum(r * 0.0, 0)
    for start in range(0, COLUMNS, CHUNK):
        some = first + start + tl.arange(0, CHUNK)
        rows = tl.load(D + some[:, None] * WIDTH + o[None, :], mask=(some < n)[:, None], other=0.0)
        products = tl.sum(r[None, :] * rows, 1)
        sizes = tl.where(some < n, tl.abs(products), -1.0)
        most, best = tl.max(sizes, 0, return_indices=True)
        here = tl.arange(0, CHUNK) == best
        next_size = tl.maximum(tl.minimum(top, most), tl.maximum(next_size, tl.max(tl.where(here, -1.0, sizes), 0)))
        c = tl.where(most > top, tl.sum(tl.where(here, products, 0.0), 0), c)
        j = tl.where(most > top, first + start + best, j)
        top = tl.maximum(top, most)
    return j, c, next_size


@triton.jit(do_not_specialize=["t"])
def advance(
    D, G, Y, R16, tols, limits, units, errors, states, tops, seconds, found, atoms, x, counts, M,
    t, signals, n, d, blocks, lost_in_D, least_residual, least_lead, least_distance,
    COLUMNS: tl.constexpr, BLOCKS: tl.constexpr,
    WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One signal takes its best atom, the t-th, and has a new residual. In full precision it compares the best atoms
    of all blocks that float16 does not exclude; and all atoms of such a block, if it does not exclude its next one."""
    b = tl.program_id(0).to(tl.int64)
    if tl.load(states + b) > 0:
        o, row, block = tl.arange(0, WIDTH), tl.arange(0, ROWS), tl.arange(0, BLOCKS)
        atoms += b * K
        x += b * K
        M += b * K * ROWS
        unit = tl.load(units + b)
        y = tl.load(Y + b * d + o, mask=o < d, other=0.0) / unit
        known = tl.load(atoms + row, mask=row < t, other=0).to(tl.int64)
        weights = tl.load(x + row, mask=row < t, other=0.0)
        most = tl.load(tops + block.to(tl.int64) * signals + b, mask=block < blocks, other=-1.0)
        threshold = tl.max(most, 0) - 2.0 * (tl.load(errors + b) + tl.load(lost_in_D))
        possible = (most >= threshold) & (block < blocks)
        best, second, c = tl.sum(y * 0.0, 0) - 1.0, tl.sum(y * 0.0, 0) - 1.0, tl.sum(y * 0.0, 0)
        j = tl.zeros((), tl.int64)
        for _ in range(tl.sum(possible.to(tl.int32), 0)):
            i = tl.argmax(tl.where(possible, most, -2.0), 0).to(tl.int64)
            possible = possible & (block != i)
            if tl.load(seconds + i * signals + b) < threshold:
                new_j = tl.load(found + i * signals + b).to(tl.int64)
                g = tl.load(G + known * n + new_j, mask=row < t, other=0.0)
                new_c = tl.sum(y * tl.load(D + new_j * WIDTH + o), 0) - tl.sum(weights * g, 0)
                new_second = second
            else:
                r = residual(y, D, atoms, x, t, o, WIDTH, CHUNK)
                new_j, new_c, new_second = best_of_block(r, D, i * COLUMNS, n, o, WIDTH, COLUMNS, CHUNK)
            size = tl.abs(new_c)
            second = tl.maximum(tl.maximum(second, new_second), tl.minimum(best, size))
            better = (size > best) | ((size == best) & (new_j < j))
            j, c, best = tl.where(better, new_j, j), tl.where(better, new_c, c), tl.maximum(best, size)
        g = tl.load(G + known * n + j, mask=row < t, other=0.0)
        new, inverse, share, again = direction(M, known, g, tl.load(G + j * n + j), j, t, row, ROWS)
        length = tl.sqrt(tl.sum(y * y, 0))
        if (best - second < least_lead * length) | again | (share <= least_distance):
            tl.store(states + b, -1)
        else:
            weights += c * inverse * new
            tl.store(M + t * ROWS + row, new)
            tl.store(atoms + t, j.to(tl.int32))
            tl.store(x + row, weights, mask=row <= t)
            tl.store(counts + b, t + 1)
            tl.debug_barrier()
            r = residual(y, D, atoms, x, t + 1, o, WIDTH, CHUNK)
            rest = tl.sqrt(tl.sum(r * r, 0))
            tol = tl.load(tols + b) / unit
            under_way = ((rest > tol) | (tol < 0)) & (t + 1 < tl.load(limits + b))
            tiny = under_way & (rest <= least_residual * length)
            tl.store(states + b, tl.where(tiny, -1, under_way.to(tl.int32)))
            _round(r, rest, R16 + b * WIDTH + o, errors + b)


@triton.jit
def pursue(
    P, G, lengths, tols, limits, atoms, x, counts, M, n,
    least_square, least_lead, least_distance,
    WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, OLS: tl.constexpr,
):  # fmt: skip
    """The whole pursuit of one signal, from its products P with all atoms; `lengths` are the norms of the signals. For
    OLS, `squares` are those of the atoms' distances to the span of the active ones. `counts` is -1 where rounding
    decides or K atoms are not enough, and -2 where a signal is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    atoms += b * K
    M += b * K * ROWS
    p = tl.load(P + b * n + o, mask=o < n, other=0.0)
    own = tl.load(G + o.to(tl.int64) * n + o, mask=o < n, other=1.0)
    squares = own
    length = tl.load(lengths + b)
    tol, limit = tl.load(tols + b), tl.load(limits + b)
    square = length * length
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0)
    count = 0
    weights = tl.zeros((ROWS,), p.dtype)
    for t in range(K):
        if under_way:
            merit = tl.abs(p)
            if OLS:
                apart = squares > least_distance * own
                merit = tl.where(apart, merit / tl.sqrt(tl.where(apart, squares, 1.0)), 0.0)
            j = tl.argmax(merit, 0)
            here = o == j
            c = tl.sum(tl.where(here, p, 0.0), 0)
            lead = tl.max(merit, 0) - tl.max(tl.where(here, -1.0, merit), 0)
            known = tl.load(atoms + row, mask=row < t, other=0).to(tl.int64)
            g = tl.load(G + known * n + j, mask=row < t, other=0.0)
            new, inverse, share, again = direction(M, known, g, tl.load(G + j.to(tl.int64) * n + j), j, t, row, ROWS)
            near0 = square <= least_square * length * length
            if (lead <= least_lead * length) | (share <= least_distance) | again | near0:
                count = -1
                under_way = False
            else:
                step = c * inverse
                weights += step * new
                square -= step * step
                tl.store(M + t * ROWS + row, new)
                tl.store(atoms + t, j.to(tl.int32))
                tl.debug_barrier()
                q = tl.zeros((WIDTH,), p.dtype)
                for i in range(t + 1):
                    a = tl.load(atoms + i).to(tl.int64)
                    q += tl.load(M + t * ROWS + i) * tl.load(G + a * n + o, mask=o < n, other=0.0)
                p -= step * q
                squares -= q * q
                count = t + 1
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), tl.where(under_way, -1, count), -2))
    tl.store(x + b * K + row, weights, mask=row < K)


@triton.jit
def settle(P, G, M, known, side, weights, penalty, count, n, row, ROWS: tl.constexpr):
    """The minimum over weights of active atoms that keep their sides, from weights that have them. On the atoms A it is
    z = (A'A)^-1 b with b = A'y - penalty side, and (A'A)^-1 = M'M. Where z has another sign, weights move towards z
    until the first is 0, and that atom leaves. Also returns the least |z_i| |a_i| of all z."""
    least = tl.sum(weights * 0.0, 0) + float("inf")
    moving = True
    while moving:
        tl.debug_barrier()
        inside = row < count
        m = tl.load(M + row[:, None] * ROWS + row[None, :], mask=inside[:, None], other=0.0)
        target = tl.where(inside, tl.load(P + known, mask=inside, other=0.0) - penalty * side, 0.0)
        z = tl.sum(m * tl.sum(m * target[None, :], 1)[:, None], 0)
        norms = tl.sqrt(tl.load(G + known * n + known, mask=inside, other=1.0))
        least = tl.minimum(least, tl.min(tl.where(inside, tl.abs(z) * norms, float("inf")), 0))
        wrong = inside & (side * z <= 0)
        moving = tl.max(wrong.to(tl.int32), 0) > 0
        if moving:
            share, i = tl.min(tl.where(wrong, weights / tl.where(wrong, weights - z, 1.0), 2.0), 0, return_indices=True)
            source = tl.minimum(row + (row >= i).to(tl.int32), ROWS - 1)
            weights = tl.gather(weights + share * (z - weights), source, 0)
            known, side = tl.gather(known, source, 0), tl.gather(side, source, 0)
            count -= 1
            for t in range(i, count):
                a = tl.sum(tl.where(row == t, known, 0), 0)
                g = tl.load(G + known * n + a, mask=row < t, other=0.0)
                new, _, _, _ = direction(M, known, g, tl.load(G + a * n + a), a, t, row, ROWS)
                tl.store(M + t * ROWS + row, new)
                tl.debug_barrier()
        else:
            weights = tl.where(inside, z, 0.0)
    return known, side, weights, count, least


@triton.jit
def descend(
    P, G, lengths, tols, limits, penalties, atoms, x, counts, M, n, noise, least_slope, least_square, least_lead,
    least_distance, WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, TURNS: tl.constexpr,
    POSITIVE: tl.constexpr, PURSUIT: tl.constexpr,
):  # fmt: skip
    """The method of Lawson and Hanson for one signal: the minimum of |y - Dx|^2 / 2 + penalty |x|_1, over x >= 0 if
    POSITIVE; or, in a PURSUIT, of the first term over x >= 0 on the active atoms, one more after each minimum. An atom
    enters with the sign of its product with the residual, its `side`. `counts` as in `pursue`."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P, atoms, x, M = P + b * n, atoms + b * K, x + b * K, M + b * K * ROWS
    p = tl.load(P + o, mask=o < n, other=0.0)
    norms = tl.sqrt(tl.load(G + o.to(tl.int64) * n + o, mask=o < n, other=1.0))
    length, tol, limit, penalty = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b), tl.load(penalties + b)
    weights, side, known = tl.zeros((ROWS,), p.dtype), tl.zeros((ROWS,), p.dtype), tl.zeros((ROWS,), tl.int64)
    count, turn = 0, 0
    under_way = (length > 0) & (length < float("inf")) & (limit > 0) & ((length > tol) | (tol < 0))
    while under_way:
        c, size, free = p, length, o < n
        for i in range(count):
            a, weight = tl.load(atoms + i).to(tl.int64), tl.load(x + i)
            c -= weight * tl.load(G + a * n + o, mask=o < n, other=0.0)
            size += tl.abs(weight) * tl.sqrt(tl.load(G + a * n + a))
            free = free & (o != a)
        slope = (c if POSITIVE else tl.abs(c)) - penalty
        merit = tl.where(free & (slope > noise * size * norms), slope, -1.0)
        top, j = tl.max(merit, 0, return_indices=True)
        here = o == j
        near = PURSUIT & (top - tl.max(tl.where(here, -1.0, merit), 0) <= least_lead * length)
        if top <= 0:
            under_way = False
            error = tl.where(free | (o >= n), 0.0, tl.abs(slope) / norms)  # active atoms have slope 0 at the minimum
            unsettled = (not PURSUIT) & (tl.max(error, 0) > least_slope * size)
            count = tl.where(unsettled, -1, count)
        elif (count == K) | (turn == TURNS) | near:
            under_way = False
            count = -1
        else:
            turn += 1
            g = tl.load(G + known * n + j, mask=row < count, other=0.0)
            new, _, share, _ = direction(M, known, g, tl.load(G + j.to(tl.int64) * n + j), j, count, row, ROWS)
            tl.store(M + count * ROWS + row, new)
            known = tl.where(row == count, j.to(tl.int64), known)
            side = tl.where(row == count, tl.where(tl.sum(tl.where(here, c, 0.0), 0) < 0, -1.0, 1.0), side)
            known, side, weights, count, least = settle(P, G, M, known, side, weights, penalty, count + 1, n, row, ROWS)
            tl.store(atoms + row, known.to(tl.int32), mask=row < count)
            tl.store(x + row, weights, mask=row < count)
            tl.debug_barrier()
            near = share <= least_distance
            if PURSUIT:
                fitted = tl.load(P + known, mask=row < count, other=0.0) * weights
                square = length * length - tl.sum(tl.where(row < count, fitted, 0.0), 0)
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
                near = near | (least <= least_lead * length)
                near = near | (under_way & (square <= least_square * length * length))
            under_way = under_way & (not near)
            count = tl.where(near, -1, count)
    tl.store(counts + b, tl.where(length < float("inf"), count, -2))


@triton.jit
def match(
    P, G, lengths, tols, limits, atoms, x, counts, n, least_square, least_lead,
    WIDTH: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Matching pursuit of one signal, as `pursue`; STEPS for each atom of its limit, at most."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    p = tl.load(P + b * n + o, mask=o < n, other=0.0)
    length = tl.load(lengths + b)
    tol, limit = tl.load(tols + b), tl.load(limits + b)
    square = length * length
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0)
    count, step = 0, 0
    weights, known = tl.zeros((ROWS,), p.dtype), tl.full((ROWS,), -1, tl.int32)
    while under_way:
        merit = tl.abs(p)
        j = tl.argmax(merit, 0)
        here = o == j
        c = tl.sum(tl.where(here, p, 0.0), 0)
        lead = tl.max(merit, 0) - tl.max(tl.where(here, -1.0, merit), 0)
        new = tl.max((known == j).to(tl.int32), 0) == 0
        if (
            (lead <= least_lead * length)
            | (square <= least_square * length * length)
            | (new & (count == K) & (K < limit))
        ):
            count = -1
            under_way = False
        elif new & (count == limit):
            under_way = False
        else:
            known = tl.where(new & (row == count), j.to(tl.int32), known)
            count += new.to(tl.int32)
            of_j = tl.load(G + j.to(tl.int64) * n + j)
            weights += tl.where(known == j, c / of_j, 0.0)
            p -= c / of_j * tl.load(G + j.to(tl.int64) * n + o, mask=o < n, other=0.0)
            square -= c * c / of_j
            step += 1
            under_way = (step < STEPS * limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), count, -2))
    tl.store(atoms + b * K + row, known, mask=row < K)
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
