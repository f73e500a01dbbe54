"""The dictionary as kernels read it, the orthonormal basis of active atoms, and codes as a CSR matrix."""

import triton
import triton.language as tl


@triton.jit
def prepare(
    D, norms, shortest, longest, scale, sound, atoms, squares, half, losses, d, n, down, across, stride,
    WIDTH: tl.constexpr, COLUMNS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """Some columns of D as rows, times the power of two by which the longest gets a norm from 1/2 to 1. In HALF also in
    float16, in rows of `stride` entries beyond which there are zeros, and the norms of what that loses. A dictionary is
    sound if no column is zero and all are finite."""
    least, most = tl.load(shortest), tl.load(longest)
    factor = tl.exp2(-tl.ceil(tl.log2(most.to(tl.float64)))).to(most.dtype)
    if tl.program_id(0) == 0:
        tl.store(scale, factor)
        tl.store(sound, ((least > 0) & (most < float("inf"))).to(tl.uint8))
    o, column = tl.arange(0, WIDTH), tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < n
    scaled = tl.load(norms + column, mask=inside, other=0.0) * factor
    tl.store(squares + column, scaled * scaled, mask=inside)
    lost = tl.zeros((COLUMNS,), atoms.dtype.element_ty)
    for start in range(0, stride, WIDTH):
        here = start + o < d
        at = (start + o).to(tl.int64)[:, None] * down + column[None, :] * across
        a = tl.trans(tl.load(D + at, mask=here[:, None] & inside[None, :], other=0.0)) * factor
        tl.store(atoms + column[:, None] * d + start + o[None, :], a, mask=inside[:, None] & here[None, :])
        if HALF:
            a16 = a.to(tl.float16)
            tl.store(half + column[:, None] * stride + start + o[None, :], a16, mask=(start + o < stride)[None, :])
            away = a - a16.to(a.dtype)
            lost += tl.sum(away * away, 1)
    if HALF:
        tl.store(losses + column, tl.sqrt(lost), mask=inside)


@triton.jit
def through(M, g, count, row, ROWS: tl.constexpr, PART: tl.constexpr):
    """M'M g and |M g|^2, of the first rows of M, a lower triangle."""
    if PART == ROWS:
        below = (row[:, None] < count) & (row[None, :] <= row[:, None])
        m = tl.load(M + row[:, None] * ROWS + row[None, :], mask=below, other=0.0)
        w = tl.sum(m * g[None, :], 1)
        to, square = tl.sum(m * w[:, None], 0), tl.sum(w * w, 0)
    else:
        to, squares = g * 0.0, g * 0.0
        for start in range(0, count, PART):
            part = start + tl.arange(0, PART)
            m = tl.load(M + part.to(tl.int64)[:, None] * ROWS + row[None, :], mask=part[:, None] < count, other=0.0)
            w = tl.sum(m * g[None, :], 1)
            to += tl.sum(m * w[:, None], 0)
            squares += tl.sum(w * w, 0)
        square = tl.max(squares, 0)
    return to, square


@triton.jit
def direction(M, known, g, of_j, j, t, row, ROWS: tl.constexpr, PART: tl.constexpr):
    """The coefficients of the new direction, 1 / nu, nu^2 as a share of |a_j|^2, and whether a_j is active already."""
    beta, lost = through(M, g, t, row, ROWS, PART)
    square = of_j - lost
    inverse = 1.0 / tl.sqrt(tl.where(square > 0, square, 1.0))
    again = tl.max(((known == j) & (row < t)).to(tl.int32), 0) > 0
    return tl.where(row == t, 1.0, -beta) * inverse, inverse, square / of_j, again


@triton.jit
def better(merit, p, start, o, top, second, j, c):
    """The best of the atoms seen so far and of those from `start` on: its merit, the next one, its place and product."""
    most, i = tl.max(merit, 0, return_indices=True)
    here = o == i
    second = tl.maximum(tl.maximum(second, tl.max(tl.where(here, -1.0, merit), 0)), tl.minimum(top, most))
    c = tl.where(most > top, tl.sum(tl.where(here, p, 0.0), 0), c)
    j = tl.where(most > top, (start + i).to(tl.int64), j)
    return tl.maximum(top, most), second, j, c


@triton.jit(do_not_specialize=["k"])
def pack(atoms, x, units, scale, starts, counts, columns, values, k, ROWS: tl.constexpr):
    """Writes the code of a signal, in the order of its atoms, to its place in a CSR matrix."""
    b = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)
    here = row < tl.load(counts + b)
    keys = tl.load(atoms + b * k + row, mask=here, other=2147483647).to(tl.int64) * ROWS + row
    keys = tl.sort(keys)
    value = tl.load(x + b * k + keys % ROWS, mask=here, other=0.0) * (tl.load(units + b) * tl.load(scale))
    tl.store(columns + tl.load(starts + b) + row, keys // ROWS, mask=here)
    tl.store(values + tl.load(starts + b) + row, value, mask=here)
