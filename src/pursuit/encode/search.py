"""The search for the column where a sum of rows is largest, as vector code.

LLVM vectorises neither an argmax nor accumulators that outlive a loop, so this is written in its vector types:
accumulators in registers, one pass over the rows, nothing stored on the way. Arguments are addresses and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pursuit._vector import BYTES, I32, I64, Emit, counting, every, multiply_add
from pursuit.encode.vector import WAVE

LANES = BYTES // 4
VECTORS = 8
BLOCK = LANES * VECTORS
"""float32 columns that one turn of `largest` handles: the rows it reads are padded to a multiple of this."""
TRUNCATED = BLOCK * 2.0**-23
"""How much smaller than they are `largest` and `largest_gain` may find magnitudes, relative to them."""
MISSES = 2
"""Searches of a signal in 16 bits that may come to nothing before there are no more: its residual has become small."""

_F32 = ir.FloatType()
_VECTOR, _INTEGERS = ir.VectorType(_F32, LANES), ir.VectorType(I32, LANES)


def _at(emit: Emit, base: Any, offset: Any) -> list[Any]:
    """The addresses of the vectors of a block."""
    return [emit.at(emit.b.add(base, offset), BYTES * q) for q in range(VECTORS)]


def _sums(emit: Emit, start: list[Any], rows: Any, weights: Any, count: Any, offset: Any) -> list[Any]:
    """start - sum_k weights[k] rows[k] in a block; addresses of rows and weights are those of one signal of a wave."""

    def row(k: Any, sums: list[Any]) -> list[Any]:
        base = emit.load(emit.item(rows, k, 8 * WAVE), I64, 8)
        w = emit.splat(emit.load(emit.item(weights, k, 4 * WAVE), _F32, 4), _VECTOR)
        parts = [emit.load(place, _VECTOR, 4) for place in _at(emit, base, offset)]
        return [emit.minus(x, w, part) for x, part in zip(sums, parts, strict=True)]

    return emit.loop(count, start, row)


Values = Callable[[Any, Any], list[Any]]
"""Vectors of a block from (signal, offset of the block in float32 rows)."""


def _size(emit: Emit, bits: Any) -> Any:
    """The magnitude without the place."""
    return emit.b.bitcast(emit.b.and_(bits, ir.Constant(I32, -BLOCK)), _F32)


def _search(emit: Emit, p: Any, blocks: Any, values: Values) -> list[Any]:
    """A vector of blocks, the best of the magnitudes of `values` with its place, and the next one.

    Magnitudes compare as integers do; the last bits of each give way to its place in its block.
    """
    b, none = emit.b, every(_INTEGERS, 0)

    def block(i: Any, before: list[Any]) -> list[Any]:
        found = values(p, b.mul(i, ir.Constant(I64, 4 * BLOCK)))
        bits = [b.and_(b.bitcast(x, _INTEGERS), every(_INTEGERS, 0x80000000 - BLOCK)) for x in found]
        field = [[b.or_(x, counting(_INTEGERS, LANES * q))] for q, x in enumerate(bits)]
        while len(field) > 1:
            field = [emit.merge(field[q], field[q + 1]) for q in range(0, len(field), 2)]
        later = b.icmp_signed(">", field[0][0], before[0])
        where = b.select(later, emit.splat(b.trunc(i, I32), _INTEGERS), before[2])
        return [*emit.merge(before[:2], field[0]), where]

    *pair, where = emit.loop(blocks, [none, none, none], block)
    best, second = emit.final(pair)
    return [where, best, _size(emit, second)]


def _find(emit: Emit, going: Any, blocks: Any, room: Any, search: Callable[[Any, Any], list[Any]]) -> None:
    """Write to `room`, as `largest` says, what search(signal, blocks) finds, as of `_search`."""
    b, zero = emit.b, ir.Constant(I64, 0)

    def signal(p: Any, nothing: list[Any]) -> list[Any]:
        busy = b.icmp_signed("!=", emit.load(emit.item(going, p, 8), I64, 8), zero)
        where, best, second = search(p, b.select(busy, blocks, zero))
        emit.store(where, emit.item(room, p, BYTES), BYTES)
        for q, value in enumerate((b.and_(best, ir.Constant(I32, BLOCK - 1)), _size(emit, best), second)):
            emit.store(value, emit.item(emit.at(room, BYTES * WAVE + 4 * WAVE * q), p, 4), 4)
        return []

    emit.loop(ir.Constant(I64, WAVE), [], signal)


def _differences(emit: Emit, starts: Any, step: Any, rows: Any, weights: Any, count: Any) -> Values:
    """start - sum_k weights[k] rows[k], in float32."""

    def values(p: Any, offset: Any) -> list[Any]:
        places = _at(emit, emit.b.add(starts, emit.b.mul(step, p)), offset)
        start = [emit.load(place, _VECTOR, 4) for place in places]
        return _sums(emit, start, emit.item(rows, p, 8), emit.item(weights, p, 4), count, offset)

    return values


@intrinsic
def largest(
    context: Any, starts: Any, step: Any, rows: Any, weights: Any, going: Any, count: Any, blocks: Any, room: Any
) -> Any:  # fmt: skip
    """For the signals of a wave that are `going`, the column of start - sum_k weights[k] rows[k], all float32, with the
    largest magnitude, and that of the runner-up.

    The starts are `step` bytes apart; `rows` holds the addresses of the rows. Into `room` go, for each signal, a vector
    of blocks of columns, and after those, the place of the best column in its block, the last bits of which say where
    in the vector the block is; the magnitude; the runner-up's. Both are too small by up to TRUNCATED of themselves, and
    where they are closer than that, the column is not to be trusted.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        starts, step, rows, weights, going, count, blocks, room = args
        emit = Emit(builder)
        values = _differences(emit, starts, step, rows, weights, count)
        _find(emit, going, blocks, room, lambda p, blocks: _search(emit, p, blocks, values))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@intrinsic
def magnitudes(context: Any, start: Any, rows: Any, weights: Any, count: Any, blocks: Any, out: Any) -> Any:
    """|start - sum_k weights[k] rows[k]| of one signal, as of `largest`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        start, rows, weights, count, blocks, out = args
        emit, zero = Emit(builder), ir.Constant(I64, 0)
        values = _differences(emit, start, zero, rows, weights, count)

        def block(i: Any, nothing: list[Any]) -> list[Any]:
            offset = builder.mul(i, ir.Constant(I64, 4 * BLOCK))
            for value, place in zip(values(zero, offset), _at(emit, out, offset), strict=True):
                emit.store(emit.absolute(value), place, 4)
            return []

        emit.loop(blocks, [], block)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), generate


def _unpacked(emit: Emit, x: Any, y: Any, high: int) -> Any:
    """Numbers of x and y in turn, from the lower or the higher half of every 128 bits: one instruction."""
    picks = [g + 4 * high + i + side * 2 * LANES for g in range(0, 2 * LANES, 8) for i in range(4) for side in range(2)]
    return emit.b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, 2 * LANES), picks))


def _short_differences(
    emit: Emit, starts: Any, step: Any, rows: Any, shift: Any, pairs: Any, scales: Any, count: Any
) -> Values:
    """As `_differences`, from the 16-bit rows and the `pairs` of weights of `shorten`.

    The address of such a row is half of that of the float32 row, plus `shift`.
    """
    b, kind = emit.b, ir.VectorType(ir.IntType(16), 2 * LANES)
    one, two = (ir.Constant(I64, number) for number in (1, 2))

    def values(p: Any, offset: Any) -> list[Any]:
        lines, mine = emit.item(rows, p, 8), emit.item(pairs, p, 4)
        half = b.add(b.ashr(offset, one), shift)

        def pair(i: Any, sums: list[Any]) -> list[Any]:
            k = b.mul(i, two)
            first, other = (emit.load(emit.item(lines, emit.at(k, q), 8 * WAVE), I64, 8) for q in range(2))
            other = b.select(b.icmp_signed("<", emit.at(k, 1), count), other, first)  # its weight is 0
            w = b.bitcast(emit.splat(emit.load(emit.item(mine, i, 4 * WAVE), I32, 4), _INTEGERS), kind)
            bases = [b.add(b.ashr(row, one), half) for row in (first, other)]
            after = []
            for q in range(VECTORS // 2):
                x, y = (emit.load(emit.at(base, BYTES * q), kind, 2) for base in bases)
                after += [multiply_add(emit, sums[2 * q + high], _unpacked(emit, x, y, high), w) for high in range(2)]
            return after

        sums = emit.loop(b.ashr(emit.at(count, 1), one), [every(_INTEGERS, 0)] * VECTORS, pair)
        scale = emit.splat(emit.load(emit.item(scales, p, 4), _F32, 4), _VECTOR)
        places = _at(emit, b.add(starts, b.mul(step, p)), offset)
        return [
            emit.minus(emit.load(place, _VECTOR, 4), scale, b.sitofp(total, _VECTOR))
            for place, total in zip(places, sums, strict=True)
        ]

    return values


@intrinsic
def largest_in_short(
    context: Any, starts: Any, step: Any, rows: Any, weights: Any, going: Any, count: Any, blocks: Any, room: Any,
    shift: Any, pairs: Any, numbers: Any, misses: Any,
) -> Any:  # fmt: skip
    """As `largest`, from 16-bit rows where these suffice: where the best leads by more than the blur of the signal,
    which is then added to the runner-up's magnitude. `numbers` are scale and blur of all signals, as of `shorten`.

    A signal that needed more than 16 bits MISSES times is not searched in short any more.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        starts, step, rows, weights, going, count, blocks, room, shift, pairs, numbers, misses = args
        emit, b, zero = Emit(builder), builder, ir.Constant(I64, 0)
        fresh = b.icmp_signed("==", count, zero)
        exact = _differences(emit, starts, step, rows, weights, count)
        short = _short_differences(emit, starts, step, rows, shift, pairs, numbers, count)

        def search(p: Any, blocks: Any) -> list[Any]:
            place = emit.item(misses, p, 8)
            missed = b.select(fresh, zero, emit.load(place, I64, 8))
            tried = b.and_(b.not_(fresh), b.icmp_signed("<", missed, ir.Constant(I64, MISSES)))
            nothing = [every(_INTEGERS, 0), ir.Constant(I32, 0), ir.Constant(_F32, 0.0)]
            where, best, second = emit.loop(
                b.zext(tried, I64), nothing, lambda _, found: _search(emit, p, blocks, short)
            )
            blur = emit.load(emit.item(emit.at(numbers, 4 * WAVE), p, 4), _F32, 4)
            second = b.fadd(second, blur)
            sure = b.fcmp_ordered(">", b.fmul(_size(emit, best), ir.Constant(_F32, 1 - TRUNCATED)), second)
            again = b.zext(b.not_(b.and_(tried, sure)), I64)
            emit.store(b.add(missed, b.select(tried, again, zero)), place, 8)
            return emit.loop(again, [where, best, second], lambda _, found: _search(emit, p, blocks, exact))

        _find(emit, going, blocks, room, search)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


def _numbers(emit: Emit, numbers: Any, p: Any) -> list[Any]:
    """Move, more and less of one signal."""
    places = [emit.item(emit.at(numbers, 4 * WAVE * q), p, 4) for q in range(3)]
    return [emit.splat(emit.load(place, _F32, 4), _VECTOR) for place in places]


def _gain(emit: Emit, size: Any, rest: Any) -> Any:
    """size^2 / rest, infinite where the rest is not positive."""
    b, infinite = emit.b, ir.Constant(_VECTOR, [float("inf")] * LANES)
    gain = b.fmul(size, b.fdiv(size, rest))  # a square could be out of range
    return b.select(b.fcmp_ordered(">", rest, ir.Constant(_VECTOR, [0.0] * LANES)), gain, infinite)


@intrinsic
def largest_gain(
    context: Any, starts: Any, step: Any, rows: Any, weights: Any, going: Any, count: Any, blocks: Any, room: Any,
    norms: Any, lefts: Any, numbers: Any,
) -> Any:  # fmt: skip
    """As `largest`, for (|c| + more)^2 / (v - less), with c and v what starts and lefts become as a direction leaves.

    With t = sum_k weights[k] rows[k], c is start - move t, and v is left - t^2; the first lefts are the `norms`.
    `numbers` are move, more and less of all signals. Where v is not larger than `less`, the value is infinite.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        starts, step, rows, weights, going, count, blocks, room, norms, lefts, numbers = args
        emit, b = Emit(builder), builder
        fresh = b.icmp_signed("==", count, ir.Constant(I64, 0))
        zero = ir.Constant(_VECTOR, [0.0] * LANES)

        def values(p: Any, offset: Any) -> list[Any]:
            shift = b.mul(step, p)
            of_c, of_v = (_at(emit, b.add(base, shift), offset) for base in (starts, lefts))
            before = _at(emit, b.select(fresh, norms, b.add(lefts, shift)), offset)
            move, more, less = _numbers(emit, numbers, p)
            found = []
            for q, t in enumerate(
                _sums(emit, [zero] * VECTORS, emit.item(rows, p, 8), emit.item(weights, p, 4), count, offset)
            ):
                c = emit.plus(emit.load(of_c[q], _VECTOR, 4), move, t)  # t has the sign of a difference here
                v = emit.minus(emit.load(before[q], _VECTOR, 4), t, t)
                emit.store(c, of_c[q], 4)
                emit.store(v, of_v[q], 4)
                found.append(_gain(emit, b.fadd(emit.absolute(c), more), b.fsub(v, less)))
            return found

        _find(emit, going, blocks, room, lambda p, blocks: _search(emit, p, blocks, values))
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), generate


@intrinsic
def gains(
    context: Any, correlations: Any, lefts: Any, norms: Any, numbers: Any, p: Any, least: Any, blocks: Any, out: Any
) -> Any:  # fmt: skip
    """For signal p of a wave, the largest (|c| - more)^2 / (v + less) of atoms with v > less; into `out` go all
    (|c| + more)^2 / (v - less), as of `largest_gain`. A v not larger than `least` of the norm becomes infinite before.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        correlations, lefts, norms, numbers, p, least, blocks, out = args
        emit, b = Emit(builder), builder
        zero, infinite = (ir.Constant(_VECTOR, [number] * LANES) for number in (0.0, float("inf")))
        _, more, less = _numbers(emit, numbers, p)
        least = emit.splat(least, _VECTOR)

        def block(i: Any, most: list[Any]) -> list[Any]:
            offset = b.mul(i, ir.Constant(I64, 4 * BLOCK))
            rooms = [_at(emit, base, offset) for base in (correlations, lefts, norms, out)]
            for of_c, of_v, of_norm, place in zip(*rooms, strict=True):
                c, v, norm = (emit.load(address, _VECTOR, 4) for address in (of_c, of_v, of_norm))
                v = b.select(b.fcmp_ordered(">", v, b.fmul(least, norm)), v, infinite)
                emit.store(v, of_v, 4)
                size = emit.absolute(c)
                emit.store(_gain(emit, b.fadd(size, more), b.fsub(v, less)), place, 4)
                sure = _gain(emit, emit.most(b.fsub(size, more), zero), b.fadd(v, less))
                most = [emit.most(b.select(b.fcmp_ordered(">", v, less), sure, zero), most[0])]
            return most

        (most,) = emit.loop(blocks, [zero], block)
        while most.type.count > 1:
            most = emit.most(*emit.halves(most))
        return b.extract_element(most, ir.Constant(I32, 0))

    return types.float32(*[types.int64] * 5, types.float32, types.int64, types.int64), generate
