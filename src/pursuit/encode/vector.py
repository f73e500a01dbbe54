"""The inner loops of a pursuit as vector code: sums of rows, and the column where such a sum is largest.

LLVM vectorises neither an argmax nor accumulators that outlive a loop, so two functions are written in its vector
types: accumulators in registers, one pass over the rows, nothing stored on the way. Arguments are addresses and counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic


def _vector_bytes() -> int:
    """The width of the vectors of the processor that numba compiles for."""
    features = os.environ.get("NUMBA_CPU_FEATURES")
    if features is None and os.environ.get("NUMBA_CPU_NAME"):
        return 32
    wide = binding.get_host_cpu_features().get("avx512f") if features is None else "+avx512f" in features
    return 64 if wide else 32


BYTES = _vector_bytes()
LANES = BYTES // 4
VECTORS = 8
BLOCK = LANES * VECTORS
"""float32 columns that one turn of `largest` handles: the rows it reads are padded to a multiple of this."""
PAIR = 2 * BYTES
"""Bytes that one turn of `combine` handles: the rows it reads are padded to a multiple of this."""

_FLAGS = ("nnan", "nsz", "contract")  # not "reassoc": it breaks chains of fused operations
_I32, _I64, _F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
_VECTOR, _INTEGERS = ir.VectorType(_F32, LANES), ir.VectorType(_I32, LANES)


class _Emit:
    """The few instructions the loops are made of, over one IR builder."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def at(self, address: Any, offset: int) -> Any:
        return self.b.add(address, ir.Constant(_I64, offset))

    def item(self, address: Any, i: Any, size: int) -> Any:
        return self.b.add(address, self.b.mul(i, ir.Constant(_I64, size)))

    def splat(self, x: Any, kind: Any) -> Any:
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.b.insert_element(undefined, x, ir.Constant(_I32, 0))
        return self.b.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_I32, kind.count), [0] * kind.count))

    def load(self, address: Any, kind: Any, align: int) -> Any:
        value = self.b.load(self.b.inttoptr(address, kind.as_pointer()))
        value.align = align
        return value

    def store(self, value: Any, address: Any, align: int) -> None:
        self.b.store(value, self.b.inttoptr(address, value.type.as_pointer())).align = align

    def larger(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed(">", x, y), x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def merge(self, one: list[Any], two: list[Any]) -> list[Any]:
        """(best, runner-up) of two such pairs, either of which may lack the runner-up."""
        losers = [self.smaller(one[0], two[0]), *one[1:], *two[1:]]
        while len(losers) > 1:
            losers = [self.larger(losers[0], losers[1]), *losers[2:]]
        return [self.larger(one[0], two[0]), losers[0]]

    def reduce(self, name: str, vector: Any) -> Any:
        full = f"llvm.vector.reduce.{name}.v{LANES}i32"
        kind = ir.FunctionType(_I32, [_INTEGERS])
        return self.b.call(cgutils.get_or_insert_function(self.b.module, kind, full), [vector])

    def first(self, flags: Any) -> Any:
        """The number of the first flag that is set."""
        bits = self.b.zext(self.b.bitcast(flags, ir.IntType(LANES)), _I32)
        return self.b.cttz(bits, ir.Constant(ir.IntType(1), 1))

    def loop(self, count: Any, start: list[Any], turn: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """The values of `start` carried through `count` turns."""
        b = self.b
        entry = b.basic_block
        head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
        b.branch(head)
        b.position_at_end(head)
        i, carried = b.phi(_I64), [b.phi(x.type) for x in start]
        for phi, x in zip([i, *carried], [ir.Constant(_I64, 0), *start], strict=True):
            phi.add_incoming(x, entry)
        b.cbranch(b.icmp_signed("<", i, count), body, done)
        b.position_at_end(body)
        after = turn(i, carried)
        for phi, x in zip([i, *carried], [self.at(i, 1), *after], strict=True):
            phi.add_incoming(x, b.basic_block)
        b.branch(head)
        b.position_at_end(done)
        return carried

    def subtract_rows(self, sums: list[Any], rows: Any, offset: Any, weights: Any, count: Any) -> list[Any]:
        """sums - sum_k weights[k] * rows[k], for the vectors that lie one after the other from byte `offset` on."""
        kind = sums[0].type
        size = BYTES // kind.count

        def row(k: Any, sums: list[Any]) -> list[Any]:
            base = self.b.add(self.load(self.item(rows, k, 8), _I64, 8), offset)
            w = self.splat(self.load(self.item(weights, k, size), kind.element, size), kind)
            terms = [
                self.b.fmul(w, self.load(self.at(base, BYTES * q), kind, size), flags=_FLAGS) for q in range(len(sums))
            ]
            return [self.b.fsub(x, term, flags=_FLAGS) for x, term in zip(sums, terms, strict=True)]

        return self.loop(count, sums, row)


def _every(number: int) -> Any:
    return ir.Constant(_INTEGERS, [number] * LANES)


_LANE = ir.Constant(_INTEGERS, list(range(LANES)))


def _emit_largest(builder: Any, args: Any) -> Any:
    start, rows, weights, count, blocks, top = args
    emit, b = _Emit(builder), builder

    odd = b.trunc(count, ir.IntType(1))

    def block(turn: Any, before: list[Any]) -> list[Any]:
        i = b.select(odd, b.sub(emit.at(blocks, -1), turn), turn)  # to and fro: the cache still has the last blocks
        offset = b.mul(i, ir.Constant(_I64, 4 * BLOCK))
        base = b.add(start, offset)
        sums = [emit.load(emit.at(base, BYTES * q), _VECTOR, 4) for q in range(VECTORS)]
        sums = emit.subtract_rows(sums, rows, offset, weights, count)
        bits = [b.and_(b.bitcast(x, _INTEGERS), _every(0x7FFFFFF8)) for x in sums]
        field = [[b.or_(x, _every(q))] for q, x in enumerate(bits)]
        while len(field) > 1:
            field = [emit.merge(field[q], field[q + 1]) for q in range(0, len(field), 2)]
        later = b.icmp_signed(">", field[0][0], before[0])
        where = b.select(later, emit.splat(b.trunc(i, _I32), _INTEGERS), before[2])
        return [*emit.merge(before[:2], field[0]), where]

    best, second, where = emit.loop(blocks, [_every(-1), _every(-1), _every(0)], block)
    first = emit.reduce("smax", best)
    winners = b.icmp_signed("==", best, emit.splat(first, _INTEGERS))
    lane = emit.first(winners)
    others = b.select(b.icmp_signed("==", emit.splat(lane, _INTEGERS), _LANE), second, best)
    for q, key in enumerate((first, emit.reduce("smax", others))):
        emit.store(b.and_(key, ir.Constant(_I32, -8)), emit.at(top, 4 * q), 4)
    vector = b.add(
        b.mul(b.extract_element(where, lane), ir.Constant(_I32, VECTORS)), b.and_(first, ir.Constant(_I32, 7))
    )
    return b.sext(b.add(b.mul(vector, ir.Constant(_I32, LANES)), lane), _I64)


@intrinsic
def largest(context: Any, start: Any, rows: Any, weights: Any, count: Any, blocks: Any, top: Any) -> Any:
    """The column of start - sum_k weights[k] rows[k], all float32, with the largest magnitude.

    `rows` holds the addresses of the rows. Magnitudes compare as integers do, and the last three bits of each give way
    to the number of its vector: the largest and the runner-up stored at `top` are too small by up to 2^-20 of
    themselves, and where they are closer than that, the column is not to be trusted.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _emit_largest(builder, args)

    return types.int64(*[types.int64] * 6), generate


def _floats(like: Any) -> tuple[Any, int]:
    """The vector type of a numba scalar type, and the bytes of one number."""
    element, size = (ir.DoubleType(), 8) if like == types.float64 else (_F32, 4)
    return ir.VectorType(element, BYTES // size), size


@intrinsic
def combine(context: Any, out: Any, start: Any, rows: Any, weights: Any, count: Any, turns: Any, like: Any) -> Any:
    """out = start - sum_k weights[k] rows[k] over `turns` pairs of vectors, in the floating type of `like`."""
    kind, size = _floats(like)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, start, rows, weights, count, turns, _ = args
        emit = _Emit(builder)

        def turn(i: Any, nothing: list[Any]) -> list[Any]:
            offset = builder.mul(i, ir.Constant(_I64, PAIR))
            base, end = builder.add(start, offset), builder.add(out, offset)
            sums = [emit.load(emit.at(base, BYTES * q), kind, size) for q in range(2)]
            for q, total in enumerate(emit.subtract_rows(sums, rows, offset, weights, count)):
                emit.store(total, emit.at(end, BYTES * q), size)
            return []

        emit.loop(turns, [], turn)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6, like), generate


@intrinsic
def spread(context: Any, rows: Any, b: Any, x: Any, x32: Any, count: Any, turns: Any, inverse: Any, step: Any) -> Any:
    """rows[k] += inverse b[k] b for k < count, rows[count] = inverse b, x += step b, x32 = x in float32.

    Vectors are stored as they will be loaded: one that is loaded across numbers just stored apart has to wait for them.
    """
    kind, size = _floats(inverse)
    narrow = ir.VectorType(_F32, kind.count)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows, b, x, x32, count, turns, inverse, step = args
        emit, every, many = _Emit(builder), builder.mul, builder.fmul

        def turn(i: Any, nothing: list[Any]) -> list[Any]:
            offset = every(i, ir.Constant(_I64, PAIR))
            pair = [builder.add(offset, ir.Constant(_I64, BYTES * q)) for q in range(2)]
            scale, move = emit.splat(inverse, kind), emit.splat(step, kind)
            part = [emit.load(builder.add(b, place), kind, size) for place in pair]
            scaled = [many(scale, value, flags=_FLAGS) for value in part]

            def row(k: Any, nothing: list[Any]) -> list[Any]:
                base = emit.load(emit.item(rows, k, 8), _I64, 8)
                weight = emit.splat(emit.load(emit.item(b, k, size), kind.element, size), kind)
                for place, value in zip(pair, scaled, strict=True):
                    at = builder.add(base, place)
                    total = builder.fadd(emit.load(at, kind, size), many(weight, value, flags=_FLAGS), flags=_FLAGS)
                    emit.store(total, at, size)
                return []

            emit.loop(count, [], row)
            last = emit.load(emit.item(rows, count, 8), _I64, 8)
            for place, value, new in zip(pair, part, scaled, strict=True):
                emit.store(new, builder.add(last, place), size)
                at = builder.add(x, place)
                total = builder.fadd(emit.load(at, kind, size), many(move, value, flags=_FLAGS), flags=_FLAGS)
                emit.store(total, at, size)
                short = total if size == 4 else builder.fptrunc(total, narrow)
                emit.store(short, builder.add(x32, builder.udiv(place, ir.Constant(_I64, size // 4))), 4)
            return []

        emit.loop(turns, [], turn)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6, inverse, inverse), generate


@intrinsic
def prefetch(context: Any, address: Any, lines: Any) -> Any:
    """Ask for `lines` cache lines from an address on, and go on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit, pointer = _Emit(builder), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        hints = [ir.Constant(_I32, hint) for hint in (0, 3, 1)]  # to read, keep near, data

        def line(i: Any, nothing: list[Any]) -> list[Any]:
            builder.call(function, [builder.inttoptr(emit.item(args[0], i, 64), pointer), *hints])
            return []

        emit.loop(args[1], [], line)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate
