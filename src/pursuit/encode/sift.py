"""The search for the best atoms of a wave of signals, in the integers of `short`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from pursuit._vector import BYTES, I32, I64, Emit, every, high_product
from pursuit.encode.search import BLOCK, LANES, VECTORS
from pursuit.encode.short import GROUP, SHORT
from pursuit.encode.vector import WAVE, lanes_of, product

FEW = 16
"""Atoms that 16 bits do not tell apart and full precision does, one by one; more of them are left to float32."""
WIDE = 400
"""The most units by which an atom is asked to lead: with errors of half of that, correlations are still in range."""
_I16, _F64 = ir.IntType(16), ir.DoubleType()
_SHORTS = ir.VectorType(_I16, 2 * LANES)


@intrinsic
def shorten(
    context: Any, x: Any, sizes: Any, factors: Any, masses: Any, count: Any, longest: Any, tall: Any, out: Any,
    leads: Any, like: Any,
) -> Any:  # fmt: skip
    """For each signal of a wave, the weights x_k sizes_k as integers, and by how many units the best atom must lead to
    be the best: by more than there are, where weights, or correlations and their errors, could be out of range.
    `factors` are 1 / unit and, a GROUP on, grit.
    """
    kind, size = lanes_of(like)
    width, whole, shorts = WAVE * size, ir.VectorType(I32, WAVE), ir.VectorType(_I16, WAVE)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, sizes, factors, masses, count, longest, tall, out, leads, _ = args
        emit, b = Emit(builder), builder

        def number(value: float) -> Any:
            return ir.Constant(kind, [value] * WAVE)

        def double(address: Any) -> Any:
            value = emit.load(address, ir.VectorType(_F64, WAVE), 8 * WAVE)
            return value if size == 8 else b.fptrunc(value, kind)

        longest, tall = emit.splat(longest, kind), emit.splat(tall, kind)
        t = b.fmul(double(factors), b.fmul(longest, number(2.0**15 / SHORT)))

        def shorter(k: Any, off: list[Any]) -> list[Any]:
            weight = b.fmul(*(emit.load(emit.item(base, k, width), kind, width) for base in (x, sizes)))
            exact = b.fmul(t, weight)
            near = emit.nearest(exact)
            emit.store(b.trunc(b.fptosi(near, whole), shorts), emit.item(out, k, 2 * WAVE), 2 * WAVE)
            return [b.fadd(off[0], emit.absolute(b.fsub(near, exact)))]

        (off,) = emit.loop(count, [number(0.0)], shorter)
        mass, peak = (emit.load(emit.at(masses, width * q), kind, width) for q in (0, 3))
        blur = emit.plus(emit.plus(b.fsub(number(SHORT), tall), t, mass), b.fmul(number(2.0), off), tall)
        several = emit.splat(b.sitofp(emit.at(count, 2), kind.element), kind)  # one more than it may not lead by
        lead = emit.plus(b.fadd(several, number(1 / 16)), blur, number(2.0**-15 * (1 + 1 / 16)))
        lead = emit.plus(lead, number(2.0), double(emit.at(factors, 8 * GROUP)))
        fits = b.fcmp_ordered("<=", b.fmul(t, peak), number(SHORT))
        fits = b.and_(fits, b.fcmp_ordered("<=", lead, number(WIDE)))
        lead = b.select(fits, lead, number(2 * SHORT))
        emit.store(b.fptosi(lead, whole), leads, 4 * WAVE)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 5, like, like, types.int64, types.int64, like), generate


def _at_half(emit: Emit, base: Any, i: Any) -> list[Any]:
    """The addresses of the vectors of a block."""
    return [emit.at(emit.item(base, i, 2 * BLOCK), BYTES * q) for q in range(VECTORS // 2)]


def _sizes(
    emit: Emit, starts: Any, lines: Any, shift: Any, weights: Any, count: Any, blocks: Any, room: Any
) -> Any:  # fmt: skip
    """The magnitudes of starts - sum_k weights[k] rows[k] / 2^15, into `room`; a vector of the largest.

    A row begins at half of the address of the float32 row, plus `shift`.
    """
    b, one = emit.b, ir.Constant(I64, 1)

    def block(i: Any, top: list[Any]) -> list[Any]:
        def row(k: Any, sums: list[Any]) -> list[Any]:
            base = b.add(b.ashr(emit.load(emit.item(lines, k, 8 * WAVE), I64, 8), one), shift)
            w = emit.splat(emit.load(emit.item(weights, k, 2 * WAVE), _I16, 2), _SHORTS)
            parts = [emit.load(place, _SHORTS, 2) for place in _at_half(emit, base, i)]
            return [b.sub(x, high_product(emit, part, w)) for x, part in zip(sums, parts, strict=True)]

        start = [emit.load(place, _SHORTS, BYTES) for place in _at_half(emit, starts, i)]
        sizes = [emit.magnitude(x) for x in emit.loop(count, start, row)]
        for size, place in zip(sizes, _at_half(emit, room, i), strict=True):
            emit.store(size, place, BYTES)
        while len(sizes) > 1:
            sizes = [emit.larger(*sizes[q : q + 2]) for q in range(0, len(sizes), 2)]
        return [emit.larger(sizes[0], top[0])]

    (top,) = emit.loop(blocks, [every(_SHORTS, 0)], block)
    return top


def _above(emit: Emit, sizes: Any, low: Any, i: Any) -> Any:
    """Which of 64 columns have a size larger than `low`, as bits."""
    places = [emit.at(emit.item(sizes, i, 128), at) for at in range(0, 128, BYTES)]
    larger = [emit.b.icmp_signed(">", emit.load(place, _SHORTS, BYTES), low) for place in places]
    return emit.b.bitcast(emit.joined(larger), I64)


def _count_above(emit: Emit, sizes: Any, low: Any, chunks: Any) -> list[Any]:
    """How many columns of `chunks` of 64 have a size larger than `low`; the column, where it is one."""
    b, zero = emit.b, ir.Constant(I64, 0)

    def chunk(i: Any, before: list[Any]) -> list[Any]:
        where, bits, count = before
        mine = _above(emit, sizes, low, i)
        where = b.select(b.icmp_signed("!=", mine, zero), i, where)
        return [where, b.or_(bits, mine), b.add(count, b.ctpop(mine))]

    where, bits, count = emit.loop(chunks, [zero] * 3, chunk)
    return [count, b.add(b.mul(where, ir.Constant(I64, 64)), emit.lowest(bits))]


def _best_above(emit: Emit, sizes: Any, low: Any, chunks: Any, correlation: Any, kind: Any) -> Any:
    """Of the columns with a size larger than `low`, that of the largest magnitude of correlation(column)."""
    b, zero, sixty_four = emit.b, ir.Constant(kind, 0.0), ir.Constant(I64, 64)

    def chunk(i: Any, found: list[Any]) -> list[Any]:
        bits = _above(emit, sizes, low, i)

        def column(_: Any, carried: list[Any]) -> list[Any]:
            bits, best, most = carried
            j = b.add(b.mul(i, sixty_four), emit.lowest(bits))
            size = emit.absolute(correlation(j))
            leads = b.fcmp_ordered(">", size, most)
            return [b.and_(bits, emit.at(bits, -1)), b.select(leads, j, best), b.select(leads, size, most)]

        return emit.loop(b.ctpop(bits), [bits, *found], column)[1:]

    return emit.loop(chunks, [ir.Constant(I64, 0), zero], chunk)[0]


@intrinsic
def largest_in_short(
    context: Any, starts: Any, rows: Any, shift: Any, weights: Any, leads: Any, going: Any, count: Any, blocks: Any,
    sizes: Any, tops: Any, exact: Any, chosen: Any, like: Any,
) -> Any:  # fmt: skip
    """For the signals of a wave that are `going`, the atom of the largest correlation: FEW that are closer to it than
    the signal's lead are told apart in full precision; where there are more, minus 1.

    `starts` are products of `project`, `weights` and `leads` those of `shorten`, `rows` the addresses of the float32
    rows; `sizes` and `tops` are rooms. `exact` is a tuple: addresses of the atoms, of the Gram matrix and of those of
    the signals; of names and of weights of active atoms; bytes of an atom and of a Gram row; entries of a signal.
    """
    kind, size = lanes_of(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        starts, rows, shift, weights, leads, going, count, blocks, sizes, tops, exact, chosen, _ = args
        emit, b, zero = Emit(builder), builder, ir.Constant(I64, 0)
        A, G, signals, atoms, x, depth, line, d = cgutils.unpack_tuple(builder, exact)
        wave, row = ir.VectorType(I32, WAVE), b.mul(blocks, ir.Constant(I64, 2 * BLOCK))

        def busy(p: Any) -> Any:
            return b.icmp_signed("!=", emit.load(emit.item(going, p, 8), I64, 8), zero)

        def top(p: Any, nothing: list[Any]) -> list[Any]:
            mine, some = b.mul(row, p), b.select(busy(p), blocks, zero)
            found = _sizes(
                emit, b.add(starts, mine), emit.item(rows, p, 8), shift, emit.item(weights, p, 2), count, some,
                b.add(sizes, mine),
            )  # fmt: skip
            emit.store(found, emit.item(tops, p, BYTES), BYTES)
            return []

        emit.loop(ir.Constant(I64, WAVE), [], top)  # one after the other, reductions would have to wait for each other
        best = emit.folded([emit.load(emit.at(tops, BYTES * p), _SHORTS, BYTES) for p in range(WAVE)], emit.larger)
        low = b.sub(b.zext(best, wave), emit.load(leads, wave, 4 * WAVE))
        emit.store(emit.larger(low, every(wave, -1)), tops, 4 * WAVE)  # with which all columns are close

        def signal(p: Any, nothing: list[Any]) -> list[Any]:
            low = emit.splat(b.trunc(emit.load(emit.item(tops, p, 4), I32, 4), _I16), _SHORTS)
            chunks = b.select(busy(p), b.mul(blocks, ir.Constant(I64, BLOCK // 64)), zero)
            mine = b.add(sizes, b.mul(row, p))
            close, column = _count_above(emit, mine, low, chunks)
            sure, few = (b.icmp_unsigned("<=", emit.at(close, -1), ir.Constant(I64, most)) for most in (0, FEW - 1))

            def correlation(j: Any) -> Any:  # of the best, all that is read here is read again when it enters
                y, mine = emit.load(emit.item(signals, p, 8), I64, 8), (emit.item(atoms, p, 4), emit.item(x, p, size))
                a, row = (b.add(base, b.mul(j, bytes_)) for base, bytes_ in ((A, depth), (G, line)))
                return product(emit, like, a, y, d, row, *mine, count)

            def told(_: Any, before: list[Any]) -> list[Any]:
                return [_best_above(emit, mine, low, chunks, correlation, kind.element)]

            (column,) = emit.loop(b.zext(b.and_(few, b.not_(sure)), I64), [column], told)
            emit.store(b.select(few, column, ir.Constant(I64, -1)), emit.item(chosen, p, 8), 8)
            return []

        emit.loop(ir.Constant(I64, WAVE), [], signal)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 10, UniTuple(types.int64, 8), types.int64, like), generate
