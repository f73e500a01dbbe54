"""Triton kernels of the pursuits.

Orthogonal pursuits keep, for each signal, the coefficients M of an orthonormal basis of its active atoms: the new
direction q_t = sum_l M[t, l] a_l follows from their products alone (`direction`). An atom a_j with products g_l = <a_l,
a_j> has

    w = M g,   nu^2 = |a_j|^2 - |w|^2,   M[t] = (e_t - M'w) / nu,

and the step along q_t is c / nu with c = <r, a_j>: the weights x move by c M[t] / nu.

By searches: `search` finds the best atom of every block of columns for all signals on the tensor cores, in float16, and
`advance` takes the best of these in full precision. For a residual of norm 1 and atoms of norm at most 1, products in
float16 differ from the exact ones by at most

    e = |r - r16| + |a - a16| + (d / 16 + 16) 2^-22,

the last term for the rounding of the sums: only atoms within 2 e of the best need be compared.

By updates: `pursue`, `match` and `descend` keep the products of all atoms with a signal, and update them by rows of the
Gram matrix in one program a signal: few launches, for few signals or few columns.

Vectors of any length are read in pieces: WIDTH entries of a signal or products of a dictionary, PART rows of M.
"""

import triton
import triton.language as tl


@triton.jit
def begin(
    Y, tols, limits, R, R16, units, lengths, errors, states, d, stride, WIDTH: tl.constexpr,
):  # fmt: skip
    """The first residual of a signal: the signal, in units of a power of two. States: 1 is under way, 0 is done, -1 was
    not proved, -2 needs more atoms than there is room for, -3 is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, WIDTH)
    peak, finite = tl.zeros((WIDTH,), R.dtype.element_ty), o >= 0
    for start in range(0, d, WIDTH):
        y = tl.abs(tl.load(Y + b * d + start + o, mask=start + o < d, other=0.0))
        finite = finite & (y < float("inf"))
        peak = tl.maximum(peak, tl.where(y < float("inf"), y, 0.0))
    finite = tl.min(finite.to(tl.int32), 0) == 1
    highest = tl.max(peak, 0)
    unit = tl.exp2(tl.floor(tl.log2(tl.where(finite & (highest > 0), highest, 1.0))))
    square = tl.zeros((WIDTH,), R.dtype.element_ty)
    for start in range(0, d, WIDTH):
        y = tl.load(Y + b * d + start + o, mask=start + o < d, other=0.0)
        y = tl.where(finite, y / unit, 0.0)
        square += y * y
        tl.store(R + b * d + start + o, y, mask=start + o < d)
    length = tl.sqrt(tl.sum(square, 0))
    tol = tl.load(tols + b) / unit
    under_way = (length > 0) & ((length > tol) | (tol < 0)) & (tl.load(limits + b) > 0)
    tl.store(states + b, tl.where(finite, under_way.to(tl.int32), -3))
    tl.store(units + b, unit)
    tl.store(lengths + b, length)
    tl.debug_barrier()
    _round(R + b * d, length, R16 + b * stride, errors + b, d, WIDTH)


@triton.jit
def _round(R, length, R16, error, d, WIDTH: tl.constexpr):
    """The residual at unit length in float16, and the norm of what that loses."""
    o = tl.arange(0, WIDTH)
    square = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, d, WIDTH):
        square += _round_piece(tl.load(R + start + o, mask=start + o < d, other=0.0), length, R16 + start, d - start, o)
    tl.store(error, 1.01 * tl.sqrt(tl.sum(square, 0)))


@triton.jit
def _round_piece(r, length, R16, left, o):
    """Stores a piece of a residual in float16, and returns the squares of what that loses."""
    scaled = (r / tl.where(length > 0, length, 1.0)).to(tl.float32)
    r16 = scaled.to(tl.float16)
    lost = scaled - r16.to(tl.float32)
    tl.store(R16 + o, r16, mask=o < left)
    return lost * lost


@triton.jit
def _keep(products, columns, place, inside, block, tops, seconds, found, signals, COLUMNS: tl.constexpr):
    """Of the products of some signals with a block of atoms: the largest, the next one, the atom `found` with the largest."""
    size = tl.abs(products)
    most, best = tl.max(size, 1, return_indices=True)
    others = tl.max(tl.where(tl.arange(0, COLUMNS)[None, :] == best[:, None], -1.0, size), 1)
    at = tl.cast(block, tl.int64) * signals + place
    tl.store(tops + at, most, mask=inside)
    tl.store(seconds + at, others, mask=inside)
    tl.store(found + at, columns + best, mask=inside)


@triton.jit(do_not_specialize=["signals", "span"])
def search_short(
    R16, D16, states, tops, seconds, found, signals, n, stride, span,
    WIDTH: tl.constexpr, SIDE: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """SIDE signals of up to WIDTH entries and each block of COLUMNS atoms among `span` of them: signals stay where they
    are, and atoms pass by."""
    o, place = tl.arange(0, WIDTH), tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    inside = place < signals
    if tl.max(tl.load(states + place, mask=inside, other=0), 0) > 0:
        r = tl.load(R16 + place[:, None] * stride + o[None, :], mask=inside[:, None], other=0.0)
        first = tl.program_id(1) * span
        for start in range(first, tl.minimum(first + span, n), COLUMNS):
            columns = start + tl.arange(0, COLUMNS)
            products = tl.dot(r, tl.load(D16 + columns[None, :] * stride + o[:, None]))
            _keep(products, start, place, inside, start // COLUMNS, tops, seconds, found, signals, COLUMNS)


@triton.jit(do_not_specialize=["signals", "sides", "blocks"])
def search(
    R16, D16, states, tops, seconds, found, signals, sides, blocks, stride,
    WIDTH: tl.constexpr, SIDE: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """SIDE signals and a block of COLUMNS atoms of any length, WIDTH entries at a time. Programs that run at the same time
    share GROUP sides, which the second-level cache holds."""
    group = tl.program_id(0) // (GROUP * blocks)
    turn = tl.program_id(0) % (GROUP * blocks)
    size = tl.minimum(sides - group * GROUP, GROUP)
    side, block = group * GROUP + turn % size, turn // size
    place = side.to(tl.int64) * SIDE + tl.arange(0, SIDE)
    inside = place < signals
    if tl.max(tl.load(states + place, mask=inside, other=0), 0) > 0:
        o = tl.arange(0, WIDTH)
        rows = R16 + tl.minimum(place, signals - 1)[:, None] * stride + o[None, :]
        columns = block.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
        atoms = D16 + columns[None, :] * stride + o[:, None]
        products = tl.zeros((SIDE, COLUMNS), tl.float32)
        for _ in range(0, stride, WIDTH):
            products = tl.dot(tl.load(rows), tl.load(atoms), products)
            rows += WIDTH
            atoms += WIDTH
        _keep(products, block * COLUMNS, place, inside, block, tops, seconds, found, signals, COLUMNS)


@triton.jit
def through(M, g, count, row, ROWS: tl.constexpr, PART: tl.constexpr):
    """M'M g and |M g|^2, of the first rows of M."""
    to, square = g * 0.0, g * 0.0
    for start in range(0, count, PART):
        part = start + tl.arange(0, PART)
        m = tl.load(M + part.to(tl.int64)[:, None] * ROWS + row[None, :], mask=part[:, None] < count, other=0.0)
        w = tl.sum(m * g[None, :], 1)
        to += tl.sum(m * w[:, None], 0)
        square += tl.sum(w * w, 0)
    return to, tl.max(square, 0)


@triton.jit
def direction(M, known, g, of_j, j, t, row, ROWS: tl.constexpr, PART: tl.constexpr):
    """The coefficients of the new direction, 1 / nu, nu^2 as a share of |a_j|^2, and whether a_j is active already."""
    beta, lost = through(M, g, t, row, ROWS, PART)
    square = of_j - lost
    inverse = 1.0 / tl.sqrt(tl.where(square > 0, square, 1.0))
    again = tl.max(((known == j) & (row < t)).to(tl.int32), 0) > 0
    return tl.where(row == t, 1.0, -beta) * inverse, inverse, square / of_j, again


@triton.jit
def product(R, a, d, o, WIDTH: tl.constexpr):
    """The product of two vectors."""
    total = tl.load(R + o, mask=o < d, other=0.0) * tl.load(a + o, mask=o < d, other=0.0)
    for start in range(WIDTH, d, WIDTH):
        here = start + o < d
        total += tl.load(R + start + o, mask=here, other=0.0) * tl.load(a + start + o, mask=here, other=0.0)
    return tl.sum(total, 0)


@triton.jit
def products(R, D, which, inside, d, o, WIDTH: tl.constexpr):
    """The products of a vector with some atoms."""
    rows = D + which[:, None] * d + o[None, :]
    total = tl.load(R + o, mask=o < d, other=0.0)[None, :] * tl.load(rows, inside[:, None] & (o < d)[None, :], 0.0)
    for start in range(WIDTH, d, WIDTH):
        here = start + o < d
        r = tl.load(R + start + o, mask=here, other=0.0)
        total += r[None, :] * tl.load(rows + start, mask=inside[:, None] & here[None, :], other=0.0)
    return tl.sum(total, 1)


@triton.jit
def better(merit, p, start, o, top, second, j, c):
    """The best of the atoms seen so far and of those from `start` on: its merit, the next one, its place and product."""
    most, i = tl.max(merit, 0, return_indices=True)
    here = o == i
    second = tl.maximum(tl.maximum(second, tl.max(tl.where(here, -1.0, merit), 0)), tl.minimum(top, most))
    c = tl.where(most > top, tl.sum(tl.where(here, p, 0.0), 0), c)
    j = tl.where(most > top, (start + i).to(tl.int64), j)
    return tl.maximum(top, most), second, j, c


@triton.jit
def residual(Y, unit, D, atoms, x, count, first, d, o, CHUNK: tl.constexpr):
    """What the active atoms leave of a piece of a signal."""
    here = first + o < d
    y = tl.load(Y + first + o, mask=here, other=0.0) / unit
    for start in range(0, count, CHUNK):
        some = start + tl.arange(0, CHUNK)
        which = tl.load(atoms + some, mask=some < count, other=0).to(tl.int64)
        weights = tl.load(x + some, mask=some < count, other=0.0)
        at = which[:, None] * d + first + o[None, :]
        a = tl.load(D + at, mask=(some < count)[:, None] & here[None, :], other=0.0)
        y -= tl.sum(weights[:, None] * a, 0)
    return y


@triton.jit
def best_of_block(R, D, first, n, d, o, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr):
    """Of the atoms of a block, the one of largest product with a residual, that product, and the next largest size."""
    zero = tl.load(R) * 0.0
    top, second, j, c = zero - 1.0, zero - 1.0, first, zero
    for start in range(0, COLUMNS, CHUNK):
        some = first + start + tl.arange(0, CHUNK)
        found = products(R, D, some, some < n, d, o, WIDTH)
        sizes = tl.where(some < n, tl.abs(found), -1.0)
        top, second, j, c = better(sizes, found, first + start, tl.arange(0, CHUNK), top, second, j, c)
    return j, c, second


@triton.jit(do_not_specialize=["t", "signals", "blocks", "k"])
def advance(
    D, G, squares, Y, R, R16, tols, limits, units, lengths, errors, states, tops, seconds, found, atoms, x, counts, M,
    t, signals, n, d, stride, k, blocks, lost_in_D, least_residual, least_lead, least_distance,
    COLUMNS: tl.constexpr, BLOCKS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr,
    CHUNK: tl.constexpr, GRAM: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """One signal takes its best atom, the t-th, and has a new residual. In full precision it compares the best atoms
    of all blocks that float16 does not exclude; and all atoms of such a block, if it does not exclude its next one.
    Products of atoms come from the Gram matrix, or are made. A WHOLE residual stays in registers, and R is not kept."""
    b = tl.program_id(0).to(tl.int64)
    if tl.load(states + b) > 0:
        o, row, place = tl.arange(0, WIDTH), tl.arange(0, ROWS), tl.arange(0, BLOCKS)
        atoms, x, M, R, Y = atoms + b * k, x + b * k, M + b * k * ROWS, R + b * d, Y + b * d
        unit, length = tl.load(units + b), tl.load(lengths + b)
        known = tl.load(atoms + row, mask=row < t, other=0).to(tl.int64)
        weights = tl.load(x + row, mask=row < t, other=0.0)
        highest = tl.zeros((BLOCKS,), tl.float32)
        for start in range(0, blocks, BLOCKS):
            at = (start + place).to(tl.int64) * signals + b
            highest = tl.maximum(highest, tl.load(tops + at, mask=start + place < blocks, other=-1.0))
        threshold = tl.max(highest, 0) - 2.0 * (tl.load(errors + b) + tl.load(lost_in_D))
        zero = tl.load(R) * 0.0
        best, second, c, j = zero - 1.0, zero - 1.0, zero, tl.zeros((), tl.int64)
        for start in range(0, blocks, BLOCKS):
            at = (start + place).to(tl.int64) * signals + b
            most = tl.load(tops + at, mask=start + place < blocks, other=-1.0)
            possible = (most >= threshold) & (start + place < blocks)
            for _ in range(tl.sum(possible.to(tl.int32), 0)):
                i = tl.argmax(possible.to(tl.int32), 0).to(tl.int64)
                possible = possible & (place != i)
                i += start
                if tl.load(seconds + i * signals + b) < threshold:
                    new_j = tl.load(found + i * signals + b).to(tl.int64)
                    if WHOLE:
                        g = tl.load(G + known * n + new_j, mask=row < t, other=0.0)
                        new_c = product(Y, D + new_j * d, d, o, WIDTH) / unit - tl.sum(weights * g, 0)
                    else:
                        new_c = product(R, D + new_j * d, d, o, WIDTH)
                    new_second = second
                else:
                    if WHOLE:
                        tl.store(R + o, residual(Y, unit, D, atoms, x, t, 0, d, o, CHUNK), mask=o < d)
                        tl.debug_barrier()
                    new_j, new_c, new_second = best_of_block(R, D, i * COLUMNS, n, d, o, WIDTH, COLUMNS, CHUNK)
                size = tl.abs(new_c)
                second = tl.maximum(tl.maximum(second, new_second), tl.minimum(best, size))
                better = (size > best) | ((size == best) & (new_j < j))
                j, c, best = tl.where(better, new_j, j), tl.where(better, new_c, c), tl.maximum(best, size)
        if GRAM:
            g = tl.load(G + known * n + j, mask=row < t, other=0.0)
        else:  # by way of the next row of M
            for start in range(0, t, CHUNK):
                some = start + tl.arange(0, CHUNK)
                which = tl.load(atoms + some, mask=some < t, other=0).to(tl.int64)
                tl.store(M + t * ROWS + some, products(D + j * d, D, which, some < t, d, o, WIDTH), mask=some < t)
            tl.debug_barrier()
            g = tl.load(M + t * ROWS + row, mask=row < t, other=0.0)
            tl.debug_barrier()
        new, inverse, share, again = direction(M, known, g, tl.load(squares + j), j, t, row, ROWS, PART)
        if (best - second < least_lead * length) | again | (share <= least_distance):
            tl.store(states + b, -1)
        else:
            weights += c * inverse * new
            tl.store(M + t * ROWS + row, new)
            tl.store(atoms + t, j.to(tl.int32))
            tl.store(x + row, weights, mask=row <= t)
            tl.store(counts + b, t + 1)
            tl.debug_barrier()
            if WHOLE:
                r = residual(Y, unit, D, atoms, x, t + 1, 0, d, o, CHUNK)
                rest = tl.sqrt(tl.sum(r * r, 0))
                tl.store(errors + b, 1.01 * tl.sqrt(tl.sum(_round_piece(r, rest, R16 + b * stride, d, o), 0)))
            else:
                square = tl.zeros((WIDTH,), Y.dtype.element_ty)
                for first in range(0, d, WIDTH):
                    r = residual(Y, unit, D, atoms, x, t + 1, first, d, o, CHUNK)
                    square += r * r
                    tl.store(R + first + o, r, mask=first + o < d)
                rest = tl.sqrt(tl.sum(square, 0))
                tl.debug_barrier()
                _round(R, rest, R16 + b * stride, errors + b, d, WIDTH)
            tol, limit = tl.load(tols + b) / unit, tl.load(limits + b)
            under_way = ((rest > tol) | (tol < 0)) & (t + 1 < limit)
            tiny = under_way & (rest <= least_residual * length)
            full = under_way & (t + 1 == k)
            tl.store(states + b, tl.where(tiny, -1, tl.where(full, -2, under_way.to(tl.int32))))


@triton.jit(do_not_specialize=["k"])
def pursue(
    P, S, G, squares, lengths, tols, limits, atoms, x, counts, M, n, k,
    least_square, least_lead, least_distance,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, OLS: tl.constexpr,
):  # fmt: skip
    """The whole pursuit of one signal, from its products P with all atoms; `lengths` are the norms of the signals. For
    OLS, S are the squared distances of the atoms to the span of the active ones. `counts` is -1 where rounding decides,
    -2 where k atoms are not enough, -3 where a signal is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P, S, atoms, M = P + b * n, S + b * n, atoms + b * k, M + b * k * ROWS
    length, tol, limit = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b)
    square, step = length * length, tol * 0.0
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0) & (length < float("inf"))
    count = 0
    weights = tl.zeros((ROWS,), P.dtype.element_ty)
    for _ in range(k + 1):
        if under_way:
            top, second, c, j = length * 0.0 - 1.0, length * 0.0 - 1.0, length * 0.0, tl.zeros((), tl.int64)
            for start in range(0, n, WIDTH):
                here = start + o < n
                p = tl.load(P + start + o, mask=here, other=0.0)
                q = tl.zeros((WIDTH,), P.dtype.element_ty)
                for i in range(count):
                    a = tl.load(atoms + i).to(tl.int64)
                    q += tl.load(M + (count - 1) * ROWS + i) * tl.load(G + a * n + start + o, mask=here, other=0.0)
                p -= step * q
                merit = tl.abs(p)
                if OLS:
                    s = tl.load(S + start + o, mask=here, other=1.0) - q * q
                    tl.store(S + start + o, s, mask=here)
                    apart = s > least_distance * tl.load(squares + start + o, mask=here, other=1.0)
                    merit = tl.where(apart, merit / tl.sqrt(tl.where(apart, s, 1.0)), 0.0)
                tl.store(P + start + o, p, mask=here)
                top, second, j, c = better(tl.where(here, merit, -1.0), p, start, o, top, second, j, c)
            known = tl.load(atoms + row, mask=row < count, other=0).to(tl.int64)
            g = tl.load(G + known * n + j, mask=row < count, other=0.0)
            new, inverse, share, again = direction(M, known, g, tl.load(squares + j), j, count, row, ROWS, PART)
            near0 = square <= least_square * length * length
            if (top - second <= least_lead * length) | (share <= least_distance) | again | near0:
                count = -1
                under_way = False
            elif count == k:
                count = -2
                under_way = False
            else:
                step = c * inverse
                weights += step * new
                square -= step * step
                tl.store(M + count * ROWS + row, new)
                tl.store(atoms + count, j.to(tl.int32))
                tl.debug_barrier()
                count += 1
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), count, -3))
    tl.store(x + b * k + row, weights, mask=row < k)


@triton.jit
def settle(P, G, squares, M, known, side, weights, penalty, count, n, row, ROWS: tl.constexpr, PART: tl.constexpr):
    """The minimum over weights of active atoms that keep their sides, from weights that have them. On the atoms A it is
    z = (A'A)^-1 b with b = A'y - penalty side, and (A'A)^-1 = M'M. Where z has another sign, weights move towards z
    until the first is 0, and that atom leaves. Also returns the least |z_i| |a_i| of all z."""
    least = tl.sum(weights * 0.0, 0) + float("inf")
    moving = True
    while moving:
        tl.debug_barrier()
        inside = row < count
        target = tl.where(inside, tl.load(P + known, mask=inside, other=0.0) - penalty * side, 0.0)
        z, _size = through(M, target, count, row, ROWS, PART)
        norms = tl.sqrt(tl.load(squares + known, mask=inside, other=1.0))
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
                new, _, _, _ = direction(M, known, g, tl.load(squares + a), a, t, row, ROWS, PART)
                tl.store(M + t * ROWS + row, new)
                tl.debug_barrier()
        else:
            weights = tl.where(inside, z, 0.0)
    return known, side, weights, count, least


@triton.jit(do_not_specialize=["k"])
def descend(
    P, G, squares, lengths, tols, limits, penalties, atoms, x, counts, M, n, k, noise, least_slope, least_square,
    least_lead, least_distance, WIDTH: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr,
    POSITIVE: tl.constexpr, PURSUIT: tl.constexpr,
):  # fmt: skip
    """The method of Lawson and Hanson for one signal: the minimum of |y - Dx|^2 / 2 + penalty |x|_1, over x >= 0 if
    POSITIVE; or, in a PURSUIT, of the first term over x >= 0 on the active atoms, one more after each minimum. An atom
    enters with the sign of its product with the residual, its `side`. `counts` as in `pursue`; -1 also where a code has
    as many atoms as its limit, and one more would lower the objective: it depends on them."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P, atoms, x, M = P + b * n, atoms + b * k, x + b * k, M + b * k * ROWS
    length, tol, limit, penalty = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b), tl.load(penalties + b)
    dtype = P.dtype.element_ty
    weights, side, known = tl.zeros((ROWS,), dtype), tl.zeros((ROWS,), dtype), tl.zeros((ROWS,), tl.int64)
    count, turn = 0, 0
    under_way = (length > 0) & (length < float("inf")) & (limit > 0) & ((length > tol) | (tol < 0))
    while under_way:
        active = tl.load(squares + known, mask=row < count, other=0.0)
        size = length + tl.sum(tl.abs(weights) * tl.sqrt(active), 0)
        top, second, c, error, j = (
            length * 0.0 - 1.0,
            length * 0.0 - 1.0,
            length * 0.0,
            length * 0.0,
            tl.zeros((), tl.int64),
        )
        for start in range(0, n, WIDTH):
            here = start + o < n
            p, free = tl.load(P + start + o, mask=here, other=0.0), here
            for i in range(count):
                a = tl.load(atoms + i).to(tl.int64)
                p -= tl.load(x + i) * tl.load(G + a * n + start + o, mask=here, other=0.0)
                free = free & (start + o != a)
            slope = (p if POSITIVE else tl.abs(p)) - penalty
            norms = tl.sqrt(tl.load(squares + start + o, mask=here, other=1.0))
            merit = tl.where(free & (slope > noise * size * norms), slope, -1.0)
            top, second, j, c = better(merit, p, start, o, top, second, j, c)
            at_minimum = tl.where(here & (free == 0), tl.abs(slope) / norms, 0.0)  # active atoms have slope 0 there
            error = tl.maximum(error, tl.max(at_minimum, 0))
        near = PURSUIT & (top - second <= least_lead * length)
        under_way = count < 0
        if top <= 0:
            unsettled = (not PURSUIT) & (error > least_slope * size)
            count = tl.where(unsettled, -1, count)
        elif near | (turn == 64 + 2 * k):
            count = -1
        elif count == k:  # as many atoms as there may be, or as there is room for
            count = tl.where(k < limit, -2, -1)
        else:
            turn += 1
            g = tl.load(G + known * n + j, mask=row < count, other=0.0)
            new, _, share, _ = direction(M, known, g, tl.load(squares + j), j, count, row, ROWS, PART)
            tl.store(M + count * ROWS + row, new)
            known = tl.where(row == count, j, known)
            side = tl.where(row == count, tl.where(c < 0, -1.0, 1.0), side)
            count += 1
            known, side, weights, count, least = settle(
                P, G, squares, M, known, side, weights, penalty, count, n, row, ROWS, PART
            )
            tl.store(atoms + row, known.to(tl.int32), mask=row < count)
            tl.store(x + row, weights, mask=row < count)
            tl.debug_barrier()
            near = share <= least_distance
            under_way = True
            if PURSUIT:
                fitted = tl.load(P + known, mask=row < count, other=0.0) * weights
                square = length * length - tl.sum(tl.where(row < count, fitted, 0.0), 0)
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
                near = near | (least <= least_lead * length)
                near = near | (under_way & (square <= least_square * length * length))
            under_way = under_way & (near == 0)
            count = tl.where(near, -1, count)
    tl.store(counts + b, tl.where(length < float("inf"), count, -3))


@triton.jit(do_not_specialize=["k", "steps"])
def match(
    P, G, squares, lengths, tols, limits, atoms, x, counts, n, k, steps, least_square, least_lead,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Matching pursuit of one signal, as `pursue`; `steps` for each atom of its limit, at most."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P += b * n
    length, tol, limit = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b)
    square, change, last = length * length, tol * 0.0, tl.zeros((), tl.int64)
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0) & (length < float("inf"))
    count, step = 0, 0
    weights, known = tl.zeros((ROWS,), P.dtype.element_ty), tl.full((ROWS,), -1, tl.int32)
    while under_way:
        top, second, c, j = length * 0.0 - 1.0, length * 0.0 - 1.0, length * 0.0, tl.zeros((), tl.int64)
        for start in range(0, n, WIDTH):
            here = start + o < n
            p = tl.load(P + start + o, mask=here, other=0.0)
            p -= change * tl.load(G + last * n + start + o, mask=here, other=0.0)
            tl.store(P + start + o, p, mask=here)
            top, second, j, c = better(tl.where(here, tl.abs(p), -1.0), p, start, o, top, second, j, c)
        new = tl.max((known == j).to(tl.int32), 0) == 0
        under_way = count < 0
        if (top - second <= least_lead * length) | (square <= least_square * length * length):
            count = -1
        elif new & (count == k) & (k < limit):
            count = -2
        elif (new & (count == limit)) == 0:
            known = tl.where(new & (row == count), j.to(tl.int32), known)
            count += new.to(tl.int32)
            change, last = c / tl.load(squares + j), j
            weights += tl.where(known == j, change, 0.0)
            square -= c * change
            step += 1
            under_way = (step < steps * limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), count, -3))
    tl.store(atoms + b * k + row, known, mask=row < k)
    tl.store(x + b * k + row, weights, mask=row < k)


@triton.jit(do_not_specialize=["k"])
def pack(atoms, x, units, starts, counts, columns, values, k, ROWS: tl.constexpr):
    """Writes the code of a signal, in the order of its atoms, to its place in a CSR matrix."""
    b = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    here = row < tl.load(counts + b)
    keys = tl.load(atoms + b * k + row, mask=here, other=2147483647).to(tl.int64) * ROWS + row
    keys = tl.sort(keys)
    value = tl.load(x + b * k + keys % ROWS, mask=here, other=0.0) * tl.load(units + b)
    tl.store(columns + tl.load(starts + b) + row, keys // ROWS, mask=here)
    tl.store(values + tl.load(starts + b) + row, value, mask=here)
