"""The inner loops of a pursuit as vector code: sums of rows, and the column where such a sum is largest.

LLVM vectorises neither an argmax nor accumulators that outlive a loop, so these functions are written in its vector
types: accumulators in registers, one pass over the rows, nothing stored on the way. Arguments are addresses and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pursuit._vector import BYTES, FLAGS, I32, I64, Emit, counting, every

LANES = BYTES // 4
VECTORS = 8
BLOCK = LANES * VECTORS
"""float32 columns that one turn of `largest` handles: the rows it reads are padded to a multiple of this."""
WAVE = 8
"""Signals that are pursued in step: what is a number for one of them is a vector for a wave."""
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


def _find(builder: Any, going: Any, blocks: Any, room: Any, values: Callable[[Emit, Any, Any], list[Any]]) -> None:
    """Write to `room` where the magnitudes of values(emit, signal, offset of a block) are largest, as `largest` says.

    They compare as integers do; the last bits of each give way to its place in its block.
    """
    emit, b = Emit(builder), builder
    zero, none = ir.Constant(I64, 0), every(_INTEGERS, 0)
    low, high = ir.Constant(I32, BLOCK - 1), ir.Constant(I32, -BLOCK)

    def signal(p: Any, nothing: list[Any]) -> list[Any]:
        def block(i: Any, before: list[Any]) -> list[Any]:
            found = values(emit, p, b.mul(i, ir.Constant(I64, 4 * BLOCK)))
            bits = [b.and_(b.bitcast(x, _INTEGERS), every(_INTEGERS, 0x80000000 - BLOCK)) for x in found]
            field = [[b.or_(x, counting(_INTEGERS, LANES * q))] for q, x in enumerate(bits)]
            while len(field) > 1:
                field = [emit.merge(field[q], field[q + 1]) for q in range(0, len(field), 2)]
            later = b.icmp_signed(">", field[0][0], before[0])
            where = b.select(later, emit.splat(b.trunc(i, I32), _INTEGERS), before[2])
            return [*emit.merge(before[:2], field[0]), where]

        busy = b.icmp_signed("!=", emit.load(emit.item(going, p, 8), I64, 8), zero)
        *pair, where = emit.loop(b.select(busy, blocks, zero), [none, none, none], block)
        emit.store(where, emit.item(room, p, BYTES), BYTES)
        best, second = emit.final(pair)
        for q, value in enumerate((b.and_(best, low), b.and_(best, high), b.and_(second, high))):
            emit.store(value, emit.item(emit.at(room, BYTES * WAVE + 4 * WAVE * q), p, 4), 4)
        return []

    emit.loop(ir.Constant(I64, WAVE), [], signal)


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

        def values(emit: Emit, p: Any, offset: Any) -> list[Any]:
            places = _at(emit, builder.add(starts, builder.mul(step, p)), offset)
            start = [emit.load(place, _VECTOR, 4) for place in places]
            return _sums(emit, start, emit.item(rows, p, 8), emit.item(weights, p, 4), count, offset)

        _find(builder, going, blocks, room, values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


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
        b = builder
        fresh = b.icmp_signed("==", count, ir.Constant(I64, 0))
        zero = ir.Constant(_VECTOR, [0.0] * LANES)

        def values(emit: Emit, p: Any, offset: Any) -> list[Any]:
            shift = b.mul(step, p)
            of_c, of_v = (_at(emit, b.add(base, shift), offset) for base in (starts, lefts))
            before = _at(emit, b.select(fresh, norms, b.add(lefts, shift)), offset)
            places = [emit.item(emit.at(numbers, 4 * WAVE * q), p, 4) for q in range(3)]
            move, more, less = (emit.splat(emit.load(place, _F32, 4), _VECTOR) for place in places)
            found = []
            for q, t in enumerate(
                _sums(emit, [zero] * VECTORS, emit.item(rows, p, 8), emit.item(weights, p, 4), count, offset)
            ):
                c = emit.plus(emit.load(of_c[q], _VECTOR, 4), move, t)  # t has the sign of a difference here
                v = emit.minus(emit.load(before[q], _VECTOR, 4), t, t)
                emit.store(c, of_c[q], 4)
                emit.store(v, of_v[q], 4)
                size, rest = b.fadd(emit.absolute(c), more), b.fsub(v, less)
                gain = b.fmul(size, b.fdiv(size, rest))  # a square could be out of range
                found.append(
                    b.select(b.fcmp_ordered(">", rest, zero), gain, ir.Constant(_VECTOR, [float("inf")] * LANES))
                )
            return found

        _find(builder, going, blocks, room, values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 11), generate


def _lanes(like: Any) -> tuple[Any, int]:
    """The vector type of a numba scalar type, one number for each signal of a wave, and the bytes of one number."""
    element, size = (ir.DoubleType(), 8) if like == types.float64 else (_F32, 4)
    return ir.VectorType(element, WAVE), size


@intrinsic
def dots(context: Any, left: Any, right: Any, length: Any, out: Any, like: Any) -> Any:
    """Inner products of vectors, one for each signal of a wave; left and right hold their addresses."""
    size = _lanes(like)[1]
    kind = ir.VectorType(_lanes(like)[0].element, BYTES // size)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, right, length, out, _ = args
        emit, b, lanes = Emit(builder), builder, ir.Constant(I64, kind.count)
        whole, rest = b.sdiv(length, lanes), b.srem(length, lanes)

        def signal(p: Any, nothing: list[Any]) -> list[Any]:
            rows = [emit.load(emit.item(side, p, 8), I64, 8) for side in (left, right)]
            ends = [emit.item(row, b.mul(whole, lanes), size) for row in rows]

            def turn(i: Any, sums: list[Any]) -> list[Any]:
                return [emit.plus(sums[0], *(emit.load(emit.item(row, i, BYTES), kind, size) for row in rows))]

            def last(i: Any, sums: list[Any]) -> list[Any]:
                return [emit.plus(sums[0], *(emit.load(emit.item(end, i, size), kind.element, size) for end in ends))]

            (total,) = emit.loop(whole, [ir.Constant(kind, [0.0] * kind.count)], turn)
            (total,) = emit.loop(rest, [emit.total(total)], last)
            emit.store(total, emit.item(out, p, size), size)
            return []

        emit.loop(ir.Constant(I64, WAVE), [], signal)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4, like), generate


@intrinsic
def enter(
    context: Any, T: Any, rows: Any, atoms: Any, h: Any, x: Any, beta: Any, numbers: Any, clear: Any, count: Any,
    like: Any,
) -> Any:  # fmt: skip
    """An atom enters each signal of a wave, beside the `count` that are there.

    h_i = row[atoms_i] for i <= count, from the addresses `rows` of Gram rows. With u = T h[:count], its direction is
    beta = (-T^T u, 1) and its pivot h_count - ||u||^2. T is lower triangular, one row after the other.

    `numbers` are, for each signal, the atom's product with it, how large a correlation c must be, and, written here,
    1 / sqrt(pivot), c / pivot and c^2 / pivot: 0 where |c| is not larger, or the pivot not `clear` of zero.
    """
    kind, size = _lanes(like)
    width = WAVE * size

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        T, rows, atoms, h, x, beta, numbers, clear, count, _ = args
        emit, b = Emit(builder), builder
        bases = [emit.load(emit.at(rows, 8 * lane), I64, 8) for lane in range(WAVE)]

        def vector(address: Any, i: Any) -> Any:
            return emit.load(emit.item(address, i, width), kind, width)

        def gather(i: Any) -> Any:
            value = ir.Constant(kind, ir.Undefined)
            for lane, base in enumerate(bases):
                atom = b.sext(emit.load(emit.at(emit.item(atoms, i, 4 * WAVE), 4 * lane), I32, 4), I64)
                entry = emit.load(emit.item(base, atom, size), kind.element, size)
                value = b.insert_element(value, entry, ir.Constant(I32, lane))
            return value

        def row(i: Any, carried: list[Any]) -> list[Any]:
            pivot, c, at = carried
            mine, last = gather(i), vector(at, i)
            emit.store(mine, emit.item(h, i, width), width)
            start = b.fmul(last, mine, flags=FLAGS)
            (u,) = emit.loop(i, [start], lambda k, sums: [emit.plus(sums[0], vector(at, k), vector(h, k))])

            def less(k: Any, nothing: list[Any]) -> list[Any]:
                emit.store(emit.minus(vector(beta, k), vector(at, k), u), emit.item(beta, k, width), width)
                return []

            emit.loop(i, [], less)
            emit.store(b.fneg(b.fmul(last, u, flags=FLAGS)), emit.item(beta, i, width), width)
            return [emit.minus(pivot, u, u), emit.minus(c, mine, vector(x, i)), emit.item(at, emit.at(i, 1), width)]

        zero, one = (ir.Constant(kind, [number] * WAVE) for number in (0.0, 1.0))
        square = gather(count)
        c, least = (emit.load(emit.at(numbers, width * q), kind, width) for q in range(2))
        pivot, c, _ = emit.loop(count, [square, c, T], row)
        emit.store(one, emit.item(beta, count, width), width)
        good = b.fcmp_ordered(">", pivot, b.fmul(emit.splat(clear, kind), square))
        good = b.and_(good, b.fcmp_ordered(">", emit.absolute(c), least))
        root = b.fdiv(one, emit.root(pivot))
        step = b.fmul(b.fmul(c, root), root)
        for q, value in enumerate((root, step, b.fmul(c, step))):
            emit.store(b.select(good, value, zero), emit.at(numbers, width * (2 + q)), width)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7, like, types.int64, like), generate


@intrinsic
def spread(
    context: Any, row: Any, beta: Any, moves: Any, x: Any, x32: Any, row32: Any, sums: Any, sizes: Any, atoms: Any,
    places: Any, masses: Any, count: Any, like: Any,
) -> Any:  # fmt: skip
    """For each signal of a wave, row = root beta, x += step beta, with `moves` the vectors root and step, which are 0
    for a signal that is done; both in float32 too; sums_k += row_k^2; masses = sum_k |x_k| sizes_k, and so for the row.

    `places` are those of the atoms in increasing order; the last of count + 1 atoms finds its own.
    """
    kind, size = _lanes(like)
    width, short, whole = WAVE * size, ir.VectorType(_F32, WAVE), ir.VectorType(I32, WAVE)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, beta, moves, x, x32, row32, sums, sizes, atoms, places, masses, count, _ = args
        emit, b = Emit(builder), builder
        zero, none = ir.Constant(kind, [0.0] * WAVE), every(whole, 0)
        root, step = (emit.load(emit.at(moves, width * q), kind, width) for q in range(2))
        new = emit.load(emit.item(atoms, count, 4 * WAVE), whole, 4 * WAVE)
        entered = b.fcmp_unordered("!=", root, zero)

        def turn(k: Any, carried: list[Any]) -> list[Any]:
            at = b.mul(k, ir.Constant(I64, width))
            address = {name: b.add(base, at) for name, base in zip("rbxsn", (row, beta, x, sums, sizes), strict=True)}
            direction, weight, total, norm = (emit.load(address[name], kind, width) for name in "bxsn")
            part, weight = b.fmul(root, direction, flags=FLAGS), emit.plus(weight, step, direction)
            emit.store(part, address["r"], width)
            emit.store(weight, address["x"], width)
            emit.store(emit.plus(total, part, part), address["s"], width)
            for value, room in ((weight, x32), (part, row32)) if size == 8 else ():
                emit.store(b.fptrunc(value, short), emit.item(room, k, 4 * WAVE), 4 * WAVE)
            other = emit.load(emit.item(atoms, k, 4 * WAVE), whole, 4 * WAVE)
            place = emit.item(places, k, 4 * WAVE)
            later = b.zext(b.and_(entered, b.icmp_signed(">", other, new)), whole)
            emit.store(b.add(emit.load(place, whole, 4 * WAVE), later), place, 4 * WAVE)
            before = b.zext(b.icmp_signed("<", other, new), whole)
            more = [emit.plus(carried[q], emit.absolute(value), norm) for q, value in enumerate((weight, part))]
            return [*more, b.add(carried[2], before)]

        *totals, place = emit.loop(emit.at(count, 1), [zero, zero, none], turn)
        for q, total in enumerate(totals):
            emit.store(total, emit.at(masses, width * q), width)
        emit.store(place, emit.item(places, count, 4 * WAVE), 4 * WAVE)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12, like), generate


@intrinsic
def prefetch_entries(context: Any, row: Any, size: Any, atoms: Any, count: Any) -> Any:
    """Ask for the numbers of `size` bytes in a row that the atoms of one signal of a wave name, and go on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, size, atoms, count = args
        emit = Emit(builder)

        def entry(k: Any, nothing: list[Any]) -> list[Any]:
            atom = builder.sext(emit.load(emit.item(atoms, k, 4 * WAVE), I32, 4), I64)
            emit.ask(builder.add(row, builder.mul(atom, size)))
            return []

        emit.loop(count, [], entry)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate
