"""Orthogonal matching pursuit of many signals: searches on the tensor cores, and turns in full precision."""

import triton
import triton.language as tl

from pursuit.gpu.kernels.basis import better, direction


@triton.jit
def begin(
    Y, tols, limits, R, R16, units, lengths, errors, states, counts, d, stride, WIDTH: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The first residual of a signal: the signal, in units of a power of two. The state is 1 while a signal is under way.
    Counts of atoms: -1 was not proved, -2 needs more atoms than there is room for, -3 is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, WIDTH)
    peak, finite = tl.zeros((WIDTH,), R.dtype.element_ty), o >= 0
    for start in range(0, d, WIDTH):
        size = tl.abs(tl.load(Y + b * d + start + o, mask=start + o < d, other=0.0))
        finite = finite & (size < float("inf"))
        peak = tl.maximum(peak, tl.where(size < float("inf"), size, 0.0))
    finite = tl.min(finite.to(tl.int32), 0) == 1
    highest = tl.max(peak, 0)
    unit = tl.exp2(tl.floor(tl.log2(tl.where(finite & (highest > 0), highest, 1.0))))
    square, y = tl.zeros((WIDTH,), R.dtype.element_ty), tl.zeros((WIDTH,), R.dtype.element_ty)
    for start in range(0, d, WIDTH):
        y = tl.load(Y + b * d + start + o, mask=start + o < d, other=0.0)
        y = tl.where(finite, y / unit, 0.0)
        square += y * y
        if not WHOLE:
            tl.store(R + b * d + start + o, y, mask=start + o < d)
    length = tl.sqrt(tl.sum(square, 0))
    tol = tl.load(tols + b) / unit
    under_way = (length > 0) & ((length > tol) | (tol < 0)) & (tl.load(limits + b) > 0)
    tl.store(states + b, (finite & under_way).to(tl.int32))
    tl.store(counts + b, tl.where(finite, 0, -3))
    tl.store(units + b, unit)
    tl.store(lengths + b, length)
    if WHOLE:
        tl.store(errors + b, 1.01 * tl.sqrt(tl.sum(_round_piece(y, length, R16 + b * stride, stride, o), 0)))
    else:
        tl.debug_barrier()
        _round(R + b * d, length, R16 + b * stride, errors + b, d, stride, WIDTH)


@triton.jit
def _round(R, length, R16, error, d, stride, WIDTH: tl.constexpr):
    """The residual at unit length in float16, with zeros beyond its entries, and the norm of what rounding loses."""
    o = tl.arange(0, WIDTH)
    square = tl.zeros((WIDTH,), tl.float32)
    for start in range(0, stride, WIDTH):
        r = tl.load(R + start + o, mask=start + o < d, other=0.0)
        square += _round_piece(r, length, R16 + start, stride - start, o)
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
def piece(at, o, left, FULL: tl.constexpr):
    """A piece of a vector, `left` entries before its end, and zeros beyond it. A FULL piece does not reach so far."""
    if FULL:
        return tl.load(at + o)
    return tl.load(at + o, mask=o < left, other=0.0)


@triton.jit
def pieces(D, which, inside, o, d, first, FULL: tl.constexpr):
    """The pieces from entry `first` on of some atoms; of those that are not inside, zeros."""
    at = D + which[:, None] * d + (first + o)[None, :]
    if FULL:
        return tl.load(at, mask=inside[:, None], other=0.0)
    return tl.load(at, mask=inside[:, None] & (first + o < d)[None, :], other=0.0)


@triton.jit
def product(R, a, d, o, WIDTH: tl.constexpr, FULL: tl.constexpr):
    """The product of two vectors."""
    total = tl.zeros((WIDTH,), R.dtype.element_ty)
    for start in range(0, d, WIDTH):
        total += piece(R + start, o, d - start, FULL) * piece(a + start, o, d - start, FULL)
    return tl.sum(total, 0)


@triton.jit
def products(
    R, D, which, inside, d, o, CHUNK: tl.constexpr, WIDTH: tl.constexpr, WHOLE: tl.constexpr, FULL: tl.constexpr
):
    """The products of a vector with some atoms."""
    if WHOLE:  # without a loop, which would take as many registers again
        total = piece(R, o, d, FULL)[None, :] * pieces(D, which, inside, o, d, 0, FULL)
    else:
        total = tl.zeros((CHUNK, WIDTH), R.dtype.element_ty)
        for start in range(0, d, WIDTH):
            total += piece(R + start, o, d - start, FULL)[None, :] * pieces(D, which, inside, o, d, start, FULL)
    return tl.sum(total, 1)


@triton.jit
def residual(y, D, atoms, x, count, first, d, o, CHUNK: tl.constexpr, FULL: tl.constexpr):
    """What the active atoms leave of a piece of a signal."""
    for start in range(0, count, CHUNK):
        some = start + tl.arange(0, CHUNK)
        which = tl.load(atoms + some, mask=some < count, other=0).to(tl.int64)
        weights = tl.load(x + some, mask=some < count, other=0.0)
        y -= tl.sum(weights[:, None] * pieces(D, which, some < count, o, d, first, FULL), 0)
    return y


@triton.jit
def best_of_block(
    R, D, first, n, d, o, WIDTH: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr, WHOLE: tl.constexpr,
    FULL: tl.constexpr,
):  # fmt: skip
    """Of the atoms of a block, the one of largest product with a residual, that product, and the next largest size."""
    zero = tl.load(R) * 0.0
    top, second, j, c = zero - 1.0, zero - 1.0, first, zero
    for start in range(0, COLUMNS, CHUNK):
        some = first + start + tl.arange(0, CHUNK)
        found = products(R, D, some, some < n, d, o, CHUNK, WIDTH, WHOLE, FULL)
        sizes = tl.where(some < n, tl.abs(found), -1.0)
        top, second, j, c = better(sizes, found, first + start, tl.arange(0, CHUNK), top, second, j, c)
    return j, c, second


@triton.jit(do_not_specialize=["t", "signals", "blocks", "k"])
def advance(
    D, G, squares, Y, R, R16, tols, limits, units, lengths, errors, states, tops, seconds, found, atoms, x, counts, M,
    t, signals, n, d, stride, k, blocks, lost, noise, least_residual, least_lead, least_distance,
    COLUMNS: tl.constexpr, BLOCKS: tl.constexpr, ROUNDS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr,
    PART: tl.constexpr, CHUNK: tl.constexpr, GRAM: tl.constexpr, WHOLE: tl.constexpr, FULL: tl.constexpr,
):  # fmt: skip
    """One signal takes its best atom, the t-th, and has a new residual. In full precision it compares the best atoms
    of all blocks that float16 does not exclude; and all atoms of such a block, if it does not exclude its next one.
    Products of atoms come from the Gram matrix, or are made. A WHOLE residual stays in registers, and R is not kept."""
    b = tl.program_id(0).to(tl.int64)
    if tl.load(states + b) > 0:
        o, row, block = tl.arange(0, WIDTH), tl.arange(0, ROWS), tl.arange(0, BLOCKS)
        atoms, x, M, R, Y = atoms + b * k, x + b * k, M + b * k * ROWS, R + b * d, Y + b * d
        unit, length, error = tl.load(units + b), tl.load(lengths + b), tl.load(errors + b) + tl.load(lost) + noise
        y = piece(Y, o, d, FULL) / unit
        known = tl.load(atoms + row, mask=row < t, other=0).to(tl.int64)
        weights = tl.load(x + row, mask=row < t, other=0.0)
        highest = tl.full((BLOCKS,), -1.0, tl.float32)
        for turn in tl.static_range(ROUNDS):
            at = (turn * BLOCKS + block).to(tl.int64) * signals + b
            most = tl.load(tops + at, mask=turn * BLOCKS + block < blocks, other=-1.0)
            highest = tl.maximum(highest, most)
        threshold = tl.max(highest, 0) - 2.0 * error
        zero = tl.zeros((), Y.dtype.element_ty)
        best, second, c, j = zero - 1.0, zero - 1.0, zero, tl.zeros((), tl.int64)
        g = tl.zeros((ROWS,), Y.dtype.element_ty)
        for turn in tl.static_range(ROUNDS):
            if ROUNDS > 1:
                at = (turn * BLOCKS + block).to(tl.int64) * signals + b
                most = tl.load(tops + at, mask=turn * BLOCKS + block < blocks, other=-1.0)
            possible = (most >= threshold) & (turn * BLOCKS + block < blocks)
            for _ in range(tl.sum(possible.to(tl.int32), 0)):
                i = tl.argmax(possible.to(tl.int32), 0)
                possible = possible & (block != i)
                i = (turn * BLOCKS + i).to(tl.int64)
                new_j, next_size = tl.load(found + i * signals + b).to(tl.int64), tl.load(seconds + i * signals + b)
                new_g, new_second = g, second
                if next_size < threshold:
                    if WHOLE:
                        new_g = tl.load(G + known * n + new_j, mask=row < t, other=0.0)
                        new_c = tl.sum(y * piece(D + new_j * d, o, d, FULL), 0) - tl.sum(weights * new_g, 0)
                    else:
                        new_c = product(R, D + new_j * d, d, o, WIDTH, FULL)
                else:
                    if WHOLE:
                        tl.store(R + o, residual(y, D, atoms, x, t, 0, d, o, CHUNK // 2, FULL), mask=o < d)
                        tl.debug_barrier()
                    new_j, new_c, new_second = best_of_block(
                        R, D, i * COLUMNS, n, d, o, WIDTH, COLUMNS, CHUNK // 2, WHOLE, FULL
                    )
                    if WHOLE:
                        new_g = tl.load(G + known * n + new_j, mask=row < t, other=0.0)
                size = tl.abs(new_c)
                second = tl.maximum(tl.maximum(second, new_second), tl.minimum(best, size))
                is_better = (size > best) | ((size == best) & (new_j < j))
                j, c, best = tl.where(is_better, new_j, j), tl.where(is_better, new_c, c), tl.maximum(best, size)
                g = tl.where(is_better, new_g, g)
        if not WHOLE:
            if GRAM:
                g = tl.load(G + known * n + j, mask=row < t, other=0.0)
            else:  # by way of the next row of M
                for start in range(0, t, CHUNK):
                    some = start + tl.arange(0, CHUNK)
                    which = tl.load(atoms + some, mask=some < t, other=0).to(tl.int64)
                    made = products(D + j * d, D, which, some < t, d, o, CHUNK, WIDTH, WHOLE, FULL)
                    tl.store(M + t * ROWS + some, made, mask=some < t)
                tl.debug_barrier()
                g = tl.load(M + t * ROWS + row, mask=row < t, other=0.0)
                tl.debug_barrier()
        new, inverse, share, again = direction(M, known, g, tl.load(squares + j), j, t, row, ROWS, PART)
        if (best - second < least_lead * length) | again | (share <= least_distance):
            tl.store(states + b, 0)
            tl.store(counts + b, -1)
        else:
            weights += c * inverse * new
            tl.store(M + t * ROWS + row, new)
            tl.store(atoms + t, j.to(tl.int32))
            tl.store(x + row, weights, mask=row <= t)
            tl.debug_barrier()
            if WHOLE:
                r = residual(y, D, atoms, x, t + 1, 0, d, o, CHUNK, FULL)
                rest = tl.sqrt(tl.sum(r * r, 0))
                tl.store(errors + b, 1.01 * tl.sqrt(tl.sum(_round_piece(r, rest, R16 + b * stride, d, o), 0)))
            else:
                square = tl.zeros((WIDTH,), Y.dtype.element_ty)
                for first in range(0, d, WIDTH):
                    y = piece(Y + first, o, d - first, FULL) / unit
                    r = residual(y, D, atoms, x, t + 1, first, d, o, CHUNK, FULL)
                    square += r * r
                    tl.store(R + first + o, r, mask=first + o < d)
                rest = tl.sqrt(tl.sum(square, 0))
                tl.debug_barrier()
                _round(R, rest, R16 + b * stride, errors + b, d, d, WIDTH)
            tol, limit = tl.load(tols + b) / unit, tl.load(limits + b)
            under_way = ((rest > tol) | (tol < 0)) & (t + 1 < limit)
            tiny = under_way & (rest <= least_residual * length)
            full = under_way & (t + 1 == k)
            tl.store(states + b, (under_way & ((tiny | full) == 0)).to(tl.int32))
            tl.store(counts + b, tl.where(tiny, -1, tl.where(full, -2, t + 1)))
