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

from pursuit._vector import BYTES, I32, I64, Emit, counting, every
from pursuit.encode.vector import WAVE

LANES = BYTES // 4
VECTORS = 8
BLOCK = LANES * VECTORS
"""float32 columns that one turn of `largest` handles: the rows it reads are padded to a multiple of this."""
TRUNCATED = BLOCK * 2.0**-23
"""How much smaller than they are `largest` and `largest_gain` may find magnitudes, relative to them."""

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


def _search(emit: Emit, p: Any, blocks: Any, values: Values, room: Any) -> list[Any]:
    """The column with the largest magnitude of `values`, that, and the next one; `room` is for a vector.

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
    emit.store(where, room, BYTES)
    lane, place = (b.and_(best, ir.Constant(I32, count - 1)) for count in (LANES, BLOCK))
    column = b.mul(emit.load(emit.item(room, b.zext(lane, I64), 4), I32, 4), ir.Constant(I32, BLOCK))
    return [b.add(column, place), *(_size(emit, bits) for bits in (best, second))]


def _find(emit: Emit, going: Any, blocks: Any, room: Any, values: Values) -> None:
    """Write to `room`, as `largest` says, what `_search` finds."""
    b, zero = emit.b, ir.Constant(I64, 0)

    def signal(p: Any, nothing: list[Any]) -> list[Any]:
        busy = b.icmp_signed("!=", emit.load(emit.item(going, p, 8), I64, 8), zero)
        for q, value in enumerate(_search(emit, p, b.select(busy, blocks, zero), values, room)):
            emit.store(value, emit.item(emit.at(room, BYTES + 4 * WAVE * q), p, 4), 4)
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

    The starts are `step` bytes apart; `rows` holds the addresses of the rows. Into `room` go, after a vector that is
    nobody's, the columns of all signals, the magnitudes, the runners-up's. Both are too small by up to TRUNCATED of
    themselves, and where they are closer than that, the column is not to be trusted.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        starts, step, rows, weights, going, count, blocks, room = args
        emit = Emit(builder)
        _find(emit, going, blocks, room, _differences(emit, starts, step, rows, weights, count))
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

        _find(emit, going, blocks, room, values)
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
        return b.extract_element(emit.folded([most], emit.most), ir.Constant(I32, 0))

    return types.float32(*[types.int64] * 5, types.float32, types.int64, types.int64), generate
