"""The inner loops of a pursuit as vector code: sums of rows, and the column where such a sum is largest.

LLVM vectorises neither an argmax nor accumulators that outlive a loop, so these functions are written in its vector
types: accumulators in registers, one pass over the rows, nothing stored on the way. Arguments are addresses and counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.types.containers import Tuple
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
"""Bytes that one turn of `enter` and `spread` handles: the rows they read are padded to a multiple of this."""
TRUNCATED = BLOCK * 2.0**-23
"""How much smaller than it is `largest` may find a magnitude, relative to it."""

_FLAGS = ("nnan", "nsz", "contract")  # not "reassoc": it breaks chains of fused operations
_I32, _I64, _F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
_VECTOR, _INTEGERS = ir.VectorType(_F32, LANES), ir.VectorType(_I32, LANES)


def _every(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)


def _counting(kind: Any, start: int) -> Any:
    return ir.Constant(kind, list(range(start, start + kind.count)))


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

    def halves(self, vector: Any) -> tuple[Any, Any]:
        count = vector.type.count // 2
        picks = [_counting(ir.VectorType(_I32, count), start) for start in (0, count)]
        low, high = (self.b.shuffle_vector(vector, vector, pick) for pick in picks)
        return low, high

    def final(self, pair: list[Any]) -> list[Any]:
        """The best and the runner-up of a vector of pairs."""
        while pair[0].type.count > 1:
            low, high = zip(*(self.halves(vector) for vector in pair), strict=True)
            pair = self.merge(list(low), list(high))
        return [self.b.extract_element(vector, ir.Constant(_I32, 0)) for vector in pair]

    def total(self, vector: Any) -> Any:
        """The sum of the numbers of a vector."""
        while vector.type.count > 1:
            vector = self.b.fadd(*self.halves(vector), flags=_FLAGS)
        return self.b.extract_element(vector, ir.Constant(_I32, 0))

    def absolute(self, vector: Any) -> Any:
        name = f"llvm.fabs.v{vector.type.count}{'f64' if vector.type.element == ir.DoubleType() else 'f32'}"
        kind = ir.FunctionType(vector.type, [vector.type])
        return self.b.call(cgutils.get_or_insert_function(self.b.module, kind, name), [vector])

    def plus(self, x: Any, y: Any, z: Any) -> Any:
        """x + y z."""
        return self.b.fadd(x, self.b.fmul(y, z, flags=_FLAGS), flags=_FLAGS)

    def minus(self, x: Any, y: Any, z: Any) -> Any:
        """x - y z."""
        return self.b.fsub(x, self.b.fmul(y, z, flags=_FLAGS), flags=_FLAGS)

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


def _emit_largest(builder: Any, args: Any) -> list[Any]:
    start, rows, weights, count, first, step, blocks = args
    emit, b = _Emit(builder), builder

    def block(turn: Any, before: list[Any]) -> list[Any]:
        i = b.add(first, b.mul(step, turn))
        offset = b.mul(i, ir.Constant(_I64, 4 * BLOCK))

        def row(k: Any, sums: list[Any]) -> list[Any]:
            base = b.add(emit.load(emit.item(rows, k, 8), _I64, 8), offset)
            w = emit.splat(emit.load(emit.item(weights, k, 4), _F32, 4), _VECTOR)
            return [emit.minus(x, w, emit.load(emit.at(base, BYTES * q), _VECTOR, 4)) for q, x in enumerate(sums)]

        base = b.add(start, offset)
        sums = emit.loop(count, [emit.load(emit.at(base, BYTES * q), _VECTOR, 4) for q in range(VECTORS)], row)
        bits = [b.and_(b.bitcast(x, _INTEGERS), _every(_INTEGERS, 0x80000000 - BLOCK)) for x in sums]
        field = [[b.or_(x, _counting(_INTEGERS, LANES * q))] for q, x in enumerate(bits)]
        while len(field) > 1:
            field = [emit.merge(field[q], field[q + 1]) for q in range(0, len(field), 2)]
        later = b.icmp_signed(">", field[0][0], before[0])
        where = b.select(later, emit.splat(b.trunc(i, _I32), _INTEGERS), before[2])
        return [*emit.merge(before[:2], field[0]), where]

    none = _every(_INTEGERS, -1)
    best, second, where = emit.loop(blocks, [none, none, _every(_INTEGERS, 0)], block)
    keys = emit.final([best, second])
    place = b.and_(keys[0], ir.Constant(_I32, BLOCK - 1))
    number = b.extract_element(where, b.and_(place, ir.Constant(_I32, LANES - 1)))
    column = b.sext(b.add(b.mul(number, ir.Constant(_I32, BLOCK)), place), _I64)
    return [column, *(b.bitcast(b.and_(key, ir.Constant(_I32, -BLOCK)), _F32) for key in keys)]


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
    pair = [(BYTES * q, _counting(whole, kind.count * q)) for q in range(2)]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        beta, rows, atoms, gram, x, count, turns, _ = args
        emit, b = _Emit(builder), builder
        zero, one = (ir.Constant(kind, [number] * kind.count) for number in (0.0, 1.0))

        def turn(i: Any, sums: list[Any]) -> list[Any]:
            offset = b.mul(i, ir.Constant(_I64, PAIR))
            begin = b.mul(i, ir.Constant(_I64, 2 * kind.count))

            def here(k: Any) -> list[Any]:
                """Where, in the pair, the numbers of place k are."""
                place = b.sub(k, begin)
                place = emit.splat(place if size == 8 else b.trunc(place, _I32), whole)
                return [b.icmp_signed("==", place, places) for _, places in pair]

            def row(k: Any, carried: list[Any]) -> list[Any]:
                atom = b.sext(emit.load(emit.item(atoms, k, 4), _I32, 4), _I64)
                h = emit.splat(emit.load(emit.item(gram, atom, size), kind.element, size), kind)
                base = b.add(emit.load(emit.item(rows, k, 8), _I64, 8), offset)
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
        emit, many = _Emit(builder), builder.fmul
        zero = ir.Constant(kind, [0.0] * kind.count)
        last = emit.load(emit.item(rows, count, 8), _I64, 8)
        scale, move = emit.splat(inverse, kind), emit.splat(step, kind)

        def places(i: Any) -> list[Any]:
            offset = builder.mul(i, ir.Constant(_I64, PAIR))
            return [builder.add(offset, ir.Constant(_I64, BYTES * q)) for q in range(2)]

        def turn(i: Any, mass: list[Any]) -> list[Any]:
            pair = places(i)
            part = [emit.load(builder.add(b, place), kind, size) for place in pair]
            scaled = [many(scale, value, flags=_FLAGS) for value in part]

            def row(k: Any, nothing: list[Any]) -> list[Any]:
                base = emit.load(emit.item(rows, k, 8), _I64, 8)
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
                emit.store(short, builder.add(x32, builder.udiv(place, ir.Constant(_I64, size // 4))), 4)
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
        emit, bits = _Emit(builder), ir.IntType(LANES)
        limit = emit.splat(builder.trunc(atom, _I32), _INTEGERS)

        def turn(i: Any, found: list[Any]) -> list[Any]:
            smaller = builder.icmp_signed("<", emit.load(emit.item(atoms, i, BYTES), _INTEGERS, 4), limit)
            count = builder.ctpop(builder.bitcast(smaller, bits))
            return [builder.add(found[0], builder.zext(count, _I64))]

        return emit.loop(turns, [ir.Constant(_I64, 0)], turn)[0]

    return types.int64(types.int64, types.int64, types.int64), generate


def _ask(emit: _Emit, address: Any) -> None:
    """A prefetch of the cache line of an address."""
    pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(emit.b.module, kind, "llvm.prefetch.p0")
    hints = [ir.Constant(_I32, hint) for hint in (0, 2, 1)]  # to read, into the second cache, data
    emit.b.call(function, [emit.b.inttoptr(address, pointer), *hints])


@intrinsic
def prefetch(context: Any, address: Any, size: Any) -> Any:
    """Ask for `size` bytes from an address on, and go on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(builder)

        def line(i: Any, nothing: list[Any]) -> list[Any]:
            _ask(emit, emit.item(args[0], i, 64))
            return []

        emit.loop(builder.lshr(emit.at(args[1], 63), ir.Constant(_I64, 6)), [], line)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def prefetch_entries(context: Any, row: Any, size: Any, atoms: Any, count: Any) -> Any:
    """Ask for the numbers of `size` bytes in a row that atoms[k] names, k < count, and go on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, size, atoms, count = args
        emit = _Emit(builder)

        def entry(k: Any, nothing: list[Any]) -> list[Any]:
            atom = builder.sext(emit.load(emit.item(atoms, k, 4), _I32, 4), _I64)
            _ask(emit, builder.add(row, builder.mul(atom, size)))
            return []

        emit.loop(count, [], entry)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate
