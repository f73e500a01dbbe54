"""The inner loops of a pursuit as vector code: sums of rows, and the column where such a sum is largest.

LLVM vectorises neither an argmax nor accumulators that outlive a loop, so these functions are written in its vector
types: accumulators in registers, one pass over the rows, nothing stored on the way. Arguments are addresses and counts.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.types.containers import Tuple
from numba.extending import intrinsic

from pursuit._vector import BYTES, FLAGS, I32, I64, Emit, counting, every

LANES = BYTES // 4
VECTORS = 8
BLOCK = LANES * VECTORS
"""float32 columns that one turn of `largest` handles: the rows it reads are padded to a multiple of this."""
PAIR = 2 * BYTES
"""Bytes that one turn of `enter` and `spread` handles: the rows they read are padded to a multiple of this."""
TRUNCATED = BLOCK * 2.0**-23
"""How much smaller than it is `largest` may find a magnitude, relative to it."""

_F32 = ir.FloatType()
_VECTOR, _INTEGERS = ir.VectorType(_F32, LANES), ir.VectorType(I32, LANES)


def _emit_largest(builder: Any, args: Any) -> list[Any]:
    start, rows, weights, count, first, step, blocks = args
    emit, b = Emit(builder), builder

    def block(turn: Any, before: list[Any]) -> list[Any]:
        i = b.add(first, b.mul(step, turn))
        offset = b.mul(i, ir.Constant(I64, 4 * BLOCK))

        def row(k: Any, sums: list[Any]) -> list[Any]:
            base = b.add(emit.load(emit.item(rows, k, 8), I64, 8), offset)
            w = emit.splat(emit.load(emit.item(weights, k, 4), _F32, 4), _VECTOR)
            return [emit.minus(x, w, emit.load(emit.at(base, BYTES * q), _VECTOR, 4)) for q, x in enumerate(sums)]

        base = b.add(start, offset)
        sums = emit.loop(count, [emit.load(emit.at(base, BYTES * q), _VECTOR, 4) for q in range(VECTORS)], row)
        bits = [b.and_(b.bitcast(x, _INTEGERS), every(_INTEGERS, 0x80000000 - BLOCK)) for x in sums]
        field = [[b.or_(x, counting(_INTEGERS, LANES * q))] for q, x in enumerate(bits)]
        while len(field) > 1:
            field = [emit.merge(field[q], field[q + 1]) for q in range(0, len(field), 2)]
        later = b.icmp_signed(">", field[0][0], before[0])
        where = b.select(later, emit.splat(b.trunc(i, I32), _INTEGERS), before[2])
        return [*emit.merge(before[:2], field[0]), where]

    none = every(_INTEGERS, -1)
    best, second, where = emit.loop(blocks, [none, none, every(_INTEGERS, 0)], block)
    keys = emit.final([best, second])
    place = b.and_(keys[0], ir.Constant(I32, BLOCK - 1))
    number = b.extract_element(where, b.and_(place, ir.Constant(I32, LANES - 1)))
    column = b.sext(b.add(b.mul(number, ir.Constant(I32, BLOCK)), place), I64)
    return [column, *(b.bitcast(b.and_(key, ir.Constant(I32, -BLOCK)), _F32) for key in keys)]


@intrinsic
def largest(context: Any, start: Any, rows: Any, weights: Any, count: Any, first: Any, step: Any, blocks: Any) -> Any:
    """The column of start - sum_k weights[k] rows[k], all float32, with the largest magnitude; that; the runner-up's.

    `rows` holds the addresses of the rows. It looks at `blocks` blocks of columns, those numbered first, first + step
    and so on. Magnitudes compare as integers do, and the last bits of each give way to its place in the block: both are
    too small by up to TRUNCATED of themselves, and where they are closer than that, the column is not to be trusted.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, signature.return_type, _emit_largest(builder, args))

    return Tuple([types.int64, types.float32, types.float32])(*[types.int64] * 7), generate


def _floats(like: Any) -> tuple[Any, Any, int]:
    """The vector type of a numba scalar type, that of integers as long, and the bytes of one number."""
    element, size = (ir.DoubleType(), 8) if like == types.float64 else (_F32, 4)
    return ir.VectorType(element, BYTES // size), ir.VectorType(ir.IntType(8 * size), BYTES // size), size


@intrinsic
def enter(context: Any, beta: Any, rows: Any, atoms: Any, gram: Any, x: Any, count: Any, turns: Any, like: Any) -> Any:
    """beta = e - sum_k h[k] rows[k], with h[k] = gram[atoms[k]] for k < count, and e the unit vector number `count`.

    Returns sum_k h[k] beta[k] and sum_k h[k] x[k]. Vectors go over `turns` pairs, in the floating type of `like`.
    """
    kind, whole, size = _floats(like)
    pair = [(BYTES * q, counting(whole, kind.count * q)) for q in range(2)]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        beta, rows, atoms, gram, x, count, turns, _ = args
        emit, b = Emit(builder), builder
        zero, one = (ir.Constant(kind, [number] * kind.count) for number in (0.0, 1.0))

        def turn(i: Any, sums: list[Any]) -> list[Any]:
            offset = b.mul(i, ir.Constant(I64, PAIR))
            begin = b.mul(i, ir.Constant(I64, 2 * kind.count))

            def here(k: Any) -> list[Any]:
                """Where, in the pair, the numbers of place k are."""
                place = b.sub(k, begin)
                place = emit.splat(place if size == 8 else b.trunc(place, I32), whole)
                return [b.icmp_signed("==", place, places) for _, places in pair]

            def row(k: Any, carried: list[Any]) -> list[Any]:
                atom = b.sext(emit.load(emit.item(atoms, k, 4), I32, 4), I64)
                h = emit.splat(emit.load(emit.item(gram, atom, size), kind.element, size), kind)
                base = b.add(emit.load(emit.item(rows, k, 8), I64, 8), offset)
                parts = [emit.load(emit.at(base, at), kind, size) for at, _ in pair]
                new = [emit.minus(v, h, part) for v, part in zip(carried[:2], parts, strict=True)]
                return [*new, *(b.select(mine, h, v) for mine, v in zip(here(k), carried[2:], strict=True))]

            start = [b.select(mine, one, zero) for mine in here(count)]
            found = emit.loop(count, [*start, zero, zero], row)
            for (at, _), value, h in zip(pair, found[:2], found[2:], strict=True):
                place = emit.at(offset, at)
                emit.store(value, b.add(beta, place), size)
                known = emit.load(b.add(x, place), kind, size)
                sums = [emit.plus(sums[0], h, value), emit.plus(sums[1], h, known)]
            return sums

        sums = emit.loop(turns, [zero, zero], turn)
        return context.make_tuple(builder, signature.return_type, [emit.total(each) for each in sums])

    return Tuple([like, like])(*[types.int64] * 7, like), generate


@intrinsic
def spread(
    context: Any, rows: Any, b: Any, x: Any, x32: Any, sizes: Any, count: Any, turns: Any, turns_of_last: Any,
    inverse: Any, step: Any,
) -> Any:  # fmt: skip
    """rows[k] += inverse b[k] b for k < count, rows[count] = inverse b, x += step b, x32 = x in float32.

    Returns sum_k |x[k]| sizes[k]. The last row is filled up with zeros for `turns_of_last` pairs of vectors. Vectors
    are stored as they will be loaded: one that is loaded across numbers just stored apart has to wait for them.
    """
    kind, _, size = _floats(inverse)
    narrow = ir.VectorType(_F32, kind.count)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, b, x, x32, sizes, count, turns, turns_of_last, inverse, step = args
        emit, many = Emit(builder), builder.fmul
        zero = ir.Constant(kind, [0.0] * kind.count)
        last = emit.load(emit.item(rows, count, 8), I64, 8)
        scale, move = emit.splat(inverse, kind), emit.splat(step, kind)

        def places(i: Any) -> list[Any]:
            offset = builder.mul(i, ir.Constant(I64, PAIR))
            return [builder.add(offset, ir.Constant(I64, BYTES * q)) for q in range(2)]

        def turn(i: Any, mass: list[Any]) -> list[Any]:
            pair = places(i)
            part = [emit.load(builder.add(b, place), kind, size) for place in pair]
            scaled = [many(scale, value, flags=FLAGS) for value in part]

            def row(k: Any, nothing: list[Any]) -> list[Any]:
                base = emit.load(emit.item(rows, k, 8), I64, 8)
                weight = emit.splat(emit.load(emit.item(b, k, size), kind.element, size), kind)
                for place, value in zip(pair, scaled, strict=True):
                    at = builder.add(base, place)
                    emit.store(emit.plus(emit.load(at, kind, size), weight, value), at, size)
                return []

            for place, value, new in zip(pair, part, scaled, strict=True):
                emit.store(new, builder.add(last, place), size)
                at = builder.add(x, place)
                total = emit.plus(emit.load(at, kind, size), move, value)
                emit.store(total, at, size)
                short = total if size == 4 else builder.fptrunc(total, narrow)
                emit.store(short, builder.add(x32, builder.udiv(place, ir.Constant(I64, size // 4))), 4)
                norms = emit.load(builder.add(sizes, place), kind, size)
                mass = [emit.plus(mass[0], emit.absolute(total), norms)]
            emit.loop(count, [], row)
            return mass

        def clear(i: Any, nothing: list[Any]) -> list[Any]:
            for place in places(builder.add(turns, i)):
                emit.store(zero, builder.add(last, place), size)
            return []

        (mass,) = emit.loop(turns, [zero], turn)
        emit.loop(builder.sub(turns_of_last, turns), [], clear)
        return emit.total(mass)

    return inverse(*[types.int64] * 8, inverse, inverse), generate


@intrinsic
def below(context: Any, atoms: Any, atom: Any, turns: Any) -> Any:
    """How many of the int32 numbers in `turns` vectors are smaller than `atom`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        atoms, atom, turns = args
        emit, bits = Emit(builder), ir.IntType(LANES)
        limit = emit.splat(builder.trunc(atom, I32), _INTEGERS)

        def turn(i: Any, found: list[Any]) -> list[Any]:
            smaller = builder.icmp_signed("<", emit.load(emit.item(atoms, i, BYTES), _INTEGERS, 4), limit)
            count = builder.ctpop(builder.bitcast(smaller, bits))
            return [builder.add(found[0], builder.zext(count, I64))]

        return emit.loop(turns, [ir.Constant(I64, 0)], turn)[0]

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def prefetch(context: Any, address: Any, size: Any) -> Any:
    """Ask for `size` bytes from an address on, and go on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(builder)

        def line(i: Any, nothing: list[Any]) -> list[Any]:
            emit.ask(emit.item(args[0], i, 64))
            return []

        emit.loop(builder.lshr(emit.at(args[1], 63), ir.Constant(I64, 6)), [], line)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def prefetch_entries(context: Any, row: Any, size: Any, atoms: Any, count: Any) -> Any:
    """Ask for the numbers of `size` bytes in a row that atoms[k] names, k < count, and go on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, size, atoms, count = args
        emit = Emit(builder)

        def entry(k: Any, nothing: list[Any]) -> list[Any]:
            atom = builder.sext(emit.load(emit.item(atoms, k, 4), I32, 4), I64)
            emit.ask(builder.add(row, builder.mul(atom, size)))
            return []

        emit.loop(count, [], entry)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate
