"""Vectors of one signal, as vector code: sums of them, triangular systems, the best entry of one.

A loop takes numba ten times as long to compile as it takes LLVM, so the loops of a pursuit are written for LLVM.
Arguments are addresses and counts, `like` tells the type of the numbers; rows of a matrix are `depth` bytes apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.misc import NoneType
from numba.extending import intrinsic

from pursuit._vector import BYTES, FLAGS, I32, I64, Emit, counting, routine

F32, F64 = ir.FloatType(), ir.DoubleType()


def number_of(like: Any) -> tuple[Any, int]:
    """LLVM's type of a numba scalar type, and the bytes of one number."""
    return (F64, 8) if like == types.float64 else (F32, 4)


def many(kind: Any, lanes: int) -> Any:
    """The type of so many numbers side by side."""
    return kind if lanes == 1 else ir.VectorType(kind, lanes)


def constant(kind: Any, value: float) -> Any:
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def take(emit: Emit, base: Any, i: Any, lanes: int, like: Any, number: Any = None) -> Any:
    """Numbers from entry i on, of another type where one is given."""
    own, size = number_of(like)
    value = emit.load(emit.item(base, i, size), many(own, lanes), size)
    return value if number in (None, own) else emit.b.fpext(value, many(number, lanes))


def put(emit: Emit, value: Any, base: Any, i: Any, like: Any) -> None:
    size = number_of(like)[1]
    emit.store(value, emit.item(base, i, size), size)


def spread(emit: Emit, x: Any, lanes: int) -> Any:
    return x if lanes == 1 else emit.splat(x, ir.VectorType(x.type, lanes))


Values = list[Any]
Turn = Callable[[Any, int, Values], Values]
"""What becomes of some values with an entry and the next ones: of (entry, how many, values)."""
Join = Callable[[Values, Values], Values]


def along(emit: Emit, length: Any, size: int, turn: Turn, start: Values, join: Join, wide: int = 1) -> Values:
    """What `turn` makes of `start` along a vector of numbers of `size` bytes.

    Entries are taken by several (`wide`) vectors, by one and by themselves, each lane with values of its own, joined in
    the end.
    """
    b, done, values = emit.b, ir.Constant(I64, 0), start
    for lanes in dict.fromkeys((wide * BYTES // size, BYTES // size, 1)):
        step = ir.Constant(I64, lanes)

        def some(i: Any, own: Values, before: Any = done, step: Any = step) -> Values:
            return turn(b.add(before, b.mul(i, step)), step.constant, own)

        turns = b.sdiv(b.sub(length, done), step)
        own = emit.loop(turns, [constant(many(x.type, lanes), x.constant) for x in start], some)
        for _ in range(lanes.bit_length() - 1 if own else 0):
            low, high = zip(*(emit.halves(x) for x in own), strict=True)
            own = join(list(low), list(high))
        ends = own if lanes == 1 else [b.extract_element(x, ir.Constant(I32, 0)) for x in own]
        values, done = join(values, ends), b.add(done, b.mul(turns, step))
    return values


def each(emit: Emit, length: Any, like: Any, entry: Callable[[Any, int], None]) -> None:
    """Something that is done along a vector, of (entry, how many)."""

    def turn(i: Any, lanes: int, nothing: Values) -> Values:
        entry(i, lanes)
        return nothing

    along(emit, length, number_of(like)[1], turn, [], lambda x, y: x)


def total(emit: Emit, length: Any, like: Any, turn: Callable[[Any, int, Any], Any], wide: int = 1) -> Any:
    """A sum along a vector; `turn` adds to it, of (entry, how many, sum)."""
    number, size = number_of(like)

    def add(x: Values, y: Values) -> Values:
        return [emit.b.fadd(x[0], y[0], flags=FLAGS)]

    def more(i: Any, lanes: int, values: Values) -> Values:
        return [turn(i, lanes, values[0])]

    return along(emit, length, size, more, [ir.Constant(number, 0.0)], add, wide)[0]


def inner(emit: Emit, u: Any, v: Any, length: Any, like: Any, of_u: Any, of_v: Any, wide: int = 1) -> Any:
    """<u, v>, as a number like `like`, of vectors of types that `of_u` and `of_v` tell."""
    number = number_of(like)[0]

    def turn(i: Any, lanes: int, sum_: Any) -> Any:
        return emit.plus(sum_, take(emit, u, i, lanes, of_u, number), take(emit, v, i, lanes, of_v, number))

    return total(emit, length, like, turn, wide)


def residual(
    emit: Emit, like: Any, of_rows: Any, stride: int, start: Any, rows: Any, depth: Any, atoms: Any, x: Any, count: Any,
    length: Any, out: Any = None,
) -> Any:  # fmt: skip
    """out = start - sum_i x_i rows[atoms_i], unless out is None; its squared norm. Entries of x and `atoms` are
    `stride` apart."""
    b, (number, size) = emit.b, number_of(like)

    def turn(k: Any, lanes: int, square: Any) -> Any:
        def less(i: Any, rest: Values) -> Values:
            atom = b.sext(emit.load(emit.item(atoms, i, 4 * stride), I32, 4), I64)
            weight = emit.load(emit.item(x, i, size * stride), number, size)
            entries = take(emit, b.add(rows, b.mul(atom, depth)), k, lanes, of_rows, number)
            return [emit.minus(rest[0], spread(emit, weight, lanes), entries)]

        (rest,) = emit.loop(count, [take(emit, start, k, lanes, like)], less)
        if out is not None:
            put(emit, rest, out, k, like)
        return emit.plus(square, rest, rest)

    return total(emit, length, like, turn, wide=4)


def forward(emit: Emit, L: Any, depth: Any, v: Any, x: Any, count: Any, like: Any) -> None:
    """L x = v, for lower triangular L."""
    b = emit.b

    def row(i: Any, at: Values) -> Values:
        rest = b.fsub(take(emit, v, i, 1, like), inner(emit, at[0], x, i, like, like, like))
        put(emit, b.fdiv(rest, take(emit, at[0], i, 1, like)), x, i, like)
        return [b.add(at[0], depth)]

    emit.loop(count, [L], row)


def backward(emit: Emit, L: Any, depth: Any, x: Any, count: Any, like: Any) -> None:
    """L^T x = v, for lower triangular L; x is v to begin with."""
    b = emit.b

    def row(t: Any, nothing: Values) -> Values:
        i = b.sub(b.sub(count, ir.Constant(I64, 1)), t)
        at = b.add(L, b.mul(i, depth))
        value = b.fdiv(take(emit, x, i, 1, like), take(emit, at, i, 1, like))
        put(emit, value, x, i, like)

        def less(k: Any, lanes: int) -> None:
            rest = emit.minus(take(emit, x, k, lanes, like), spread(emit, value, lanes), take(emit, at, k, lanes, like))
            put(emit, rest, x, k, like)

        each(emit, i, like, less)
        return []

    emit.loop(count, [], row)


@routine
def dot(context: Any, u: Any, v: Any, length: Any, like: Any) -> Any:
    """<u, v>."""

    def body(emit: Emit, u: Any, v: Any, length: Any, _: Any) -> Any:
        return inner(emit, u, v, length, like, like, like, wide=4)

    return like(*[types.int64] * 3, like), body


@routine
def mixed_dot(context: Any, u: Any, v: Any, length: Any, of_u: Any, of_v: Any) -> Any:
    """<u, v> in float64; `of_u` and `of_v` tell their types."""

    def body(emit: Emit, u: Any, v: Any, length: Any, *_: Any) -> Any:
        return inner(emit, u, v, length, types.float64, of_u, of_v, wide=4)

    return types.float64(*[types.int64] * 3, of_u, of_v), body


@routine
def weighted(context: Any, w: Any, u: Any, v: Any, length: Any, like: Any) -> Any:
    """sum_t w_t u_t v_t."""

    def body(emit: Emit, w: Any, u: Any, v: Any, length: Any, _: Any) -> Any:
        def turn(t: Any, lanes: int, sum_: Any) -> Any:
            weight, one, two = (take(emit, base, t, lanes, like) for base in (w, u, v))
            return emit.plus(sum_, emit.b.fmul(weight, one, flags=FLAGS), two)

        return total(emit, length, like, turn, wide=4)

    return like(*[types.int64] * 4, like), body


@routine
def subtract(
    context: Any, start: Any, rows: Any, depth: Any, atoms: Any, x: Any, count: Any, length: Any, out: Any,
    of_rows: Any, like: Any,
) -> Any:  # fmt: skip
    """out = start - sum_i x_i rows[atoms_i]; ||out||^2. The rows may be of another type, which `of_rows` tells."""

    def body(emit: Emit, *args: Any) -> Any:
        return residual(emit, like, of_rows, 1, *args[:8])

    return like(*[types.int64] * 8, of_rows, like), body


@routine
def solve(context: Any, L: Any, depth: Any, x: Any, count: Any, like: Any) -> Any:
    """L L^T x = v, for lower triangular L; x is v to begin with."""

    def body(emit: Emit, L: Any, depth: Any, x: Any, count: Any, _: Any) -> None:
        forward(emit, L, depth, x, x, count, like)
        backward(emit, L, depth, x, count, like)

    return types.void(*[types.int64] * 4, like), body


@routine
def project(context: Any, T: Any, depth: Any, v: Any, out: Any, count: Any, like: Any) -> Any:
    """out += T^T T v, for lower triangular T; ||T v||^2."""

    def body(emit: Emit, T: Any, depth: Any, v: Any, out: Any, count: Any, _: Any) -> Any:
        def row(i: Any, carried: Values) -> Values:
            square, at = carried
            length = emit.at(i, 1)
            u = inner(emit, at, v, length, like, like, like)

            def more(k: Any, lanes: int) -> None:
                before, entries = (take(emit, base, k, lanes, like) for base in (out, at))
                put(emit, emit.plus(before, entries, spread(emit, u, lanes)), out, k, like)

            each(emit, length, like, more)
            return [emit.plus(square, u, u), emit.b.add(at, depth)]

        return emit.loop(count, [ir.Constant(number_of(like)[0], 0.0), T], row)[0]

    return like(*[types.int64] * 5, like), body


@routine
def border(context: Any, F: Any, depth: Any, s: Any, like: Any) -> Any:
    """Row s of L and of U = L^-1 from row s of H = L L^T; whether the atom is independent of the others.

    F are H, L and U, one after the other, with room for `depth` bytes in a row. The pivot is
    ||a - sum_k beta_k a_k||^2 at the best beta, from a Gram matrix whose entries are rounded: it is known to within a
    few eps (||a|| + sum_k |beta_k| ||a_k||)^2, and an atom with no more left than that is dependent.
    """
    number, size = number_of(like)
    eps = 2.0**-52 if size == 8 else 2.0**-23

    def body(emit: Emit, F: Any, depth: Any, s: Any, _: Any) -> Any:
        b = emit.b
        square, at = b.mul(depth, b.sdiv(depth, ir.Constant(I64, size))), b.mul(s, depth)
        L = b.add(F, square)
        h, w, beta = (b.add(base, at) for base in (F, L, b.add(L, square)))
        forward(emit, L, depth, h, w, s, like)
        diagonal = take(emit, h, s, 1, like)
        pivot = b.fsub(diagonal, inner(emit, w, w, s, like, like, like))
        duplicate(emit, size, w, beta, s)
        backward(emit, L, depth, beta, s, like)

        def weigh(k: Any, mass: Values) -> Values:
            norm = emit.root(take(emit, b.add(F, b.mul(k, depth)), k, 1, like))
            return [emit.plus(mass[0], emit.absolute(take(emit, beta, k, 1, like)), norm)]

        (mass,) = emit.loop(s, [emit.root(diagonal)], weigh)
        root = emit.root(pivot)
        inverse = b.fdiv(ir.Constant(number, 1.0), root)
        put(emit, root, w, s, like)
        put(emit, inverse, beta, s, like)

        def divide(k: Any, lanes: int) -> None:
            put(emit, b.fneg(b.fmul(take(emit, beta, k, lanes, like), spread(emit, inverse, lanes))), beta, k, like)

        each(emit, s, like, divide)
        room = b.fmul(b.sitofp(b.add(s, ir.Constant(I64, 2)), number), ir.Constant(number, 4 * eps))
        return b.fcmp_ordered(">", pivot, b.fmul(room, b.fmul(mass, mass)))

    return types.boolean(*[types.int64] * 3, like), body


@routine
def weigh(context: Any, x: Any, sizes: Any, count: Any, like: Any) -> Any:
    """sum_i |x_i| sizes_i."""

    def body(emit: Emit, x: Any, sizes: Any, count: Any, _: Any) -> Any:
        def turn(i: Any, lanes: int, sum_: Any) -> Any:
            return emit.plus(sum_, emit.absolute(take(emit, x, i, lanes, like)), take(emit, sizes, i, lanes, like))

        return total(emit, count, like, turn)

    return like(*[types.int64] * 3, like), body


@routine
def add(context: Any, x: Any, step: Any, row: Any, count: Any, out: Any, like: Any) -> Any:
    """out = x + step row; its least entry."""
    number, size = number_of(like)

    def body(emit: Emit, x: Any, step: Any, row: Any, count: Any, out: Any, _: Any) -> Any:
        def turn(i: Any, lanes: int, least: Values) -> Values:
            value = emit.plus(take(emit, x, i, lanes, like), spread(emit, step, lanes), take(emit, row, i, lanes, like))
            put(emit, value, out, i, like)
            return join(least, [value])

        def join(one: Values, two: Values) -> Values:
            return [emit.least(one[0], two[0])]

        return along(emit, count, size, turn, [ir.Constant(number, float("inf"))], join, wide=4)[0]

    return like(types.int64, like, *[types.int64] * 3, like), body


def duplicate(emit: Emit, size: int, source: Any, target: Any, count: Any) -> None:
    """A copy of so many numbers of `size` bytes."""
    pointer = ir.IntType(8).as_pointer()
    target, source = (emit.b.inttoptr(address, pointer) for address in (target, source))
    cgutils.raw_memcpy(emit.b, target, source, count, size)


@intrinsic
def copy(context: Any, source: Any, target: Any, count: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        duplicate(Emit(builder), number_of(like)[1], *args[:3])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3, like), generate


@routine
def gather(context: Any, row: Any, places: Any, count: Any, out: Any, like: Any) -> Any:
    """out_i = row[places_i]."""

    def body(emit: Emit, row: Any, places: Any, count: Any, out: Any, _: Any) -> None:
        def entry(i: Any, nothing: Values) -> Values:
            place = emit.b.sext(emit.load(emit.item(places, i, 4), I32, 4), I64)
            put(emit, take(emit, row, place, 1, like), out, i, like)
            return []

        emit.loop(count, [], entry)

    return types.void(*[types.int64] * 4, like), body


@routine
def best(
    context: Any, c: Any, left: Any, sizes: Any, count: Any, signed: Any, floor: Any, least: Any, like: Any
) -> Any:  # fmt: skip
    """The atom that a pursuit takes next, -1 if none is left; ties go to the lowest index.

    The one of the largest |c_j|, c_j where that is `signed`, or c_j^2 / left_j where `left`, the squared norms of what
    the active atoms leave of each, is not None; of those with a |c_j| (or c_j) beyond floor sizes_j, and left_j beyond
    least sizes_j^2. Sizes of atoms that are taken are infinite.
    """
    number, size = number_of(like)
    whole, of_left = I64 if size == 8 else I32, types.none if isinstance(left, NoneType) else types.int64

    def body(
        emit: Emit, c: Any, left: Any, sizes: Any, count: Any, signed: Any, floor: Any, least: Any, _: Any
    ) -> Any:  # fmt: skip
        b = emit.b

        def turn(i: Any, lanes: int, found: Values) -> Values:
            key, norm = (take(emit, base, i, lanes, like) for base in (c, sizes))
            key = b.select(signed, key, emit.absolute(key))
            good = b.fcmp_ordered(">", key, b.fmul(spread(emit, floor, lanes), norm))
            if of_left != types.none:
                rest = take(emit, left, i, lanes, like)
                enough = b.fmul(spread(emit, least, lanes), b.fmul(norm, norm))
                good = b.and_(good, b.fcmp_ordered(">", rest, enough))
                key = b.fmul(key, b.fdiv(key, rest, flags=FLAGS[1:]), flags=FLAGS[1:])  # a square might underflow
            place = spread(emit, i if whole == I64 else b.trunc(i, I32), lanes)
            place = place if lanes == 1 else b.add(place, counting(place.type, 0))
            better = b.and_(good, b.fcmp_ordered(">", key, found[0]))
            return [b.select(better, value, old) for value, old in zip((key, place), found, strict=True)]

        def join(one: Values, two: Values) -> Values:
            first = b.and_(b.fcmp_ordered("==", one[0], two[0]), b.icmp_signed("<", two[1], one[1]))
            better = b.or_(b.fcmp_ordered(">", two[0], one[0]), first)
            return [b.select(better, value, old) for value, old in zip(two, one, strict=True)]

        start = [ir.Constant(number, 0.0), ir.Constant(whole, -1)]
        place = along(emit, count, size, turn, start, join, wide=4)[1]
        return place if whole == I64 else b.sext(place, I64)

    return types.int64(types.int64, of_left, *[types.int64] * 2, types.boolean, like, like, like), body


@routine
def export(context: Any, atoms: Any, x: Any, count: Any, out_atoms: Any, out_x: Any, like: Any, other: Any) -> Any:
    """The code of one signal, its atoms in increasing order; weights of the type of `like` become those of `other`."""

    def body(emit: Emit, atoms: Any, x: Any, count: Any, out_atoms: Any, out_x: Any, *_: Any) -> None:
        b, number = emit.b, number_of(other)[0]

        def entry(i: Any, nothing: Values) -> Values:
            mine = emit.load(emit.item(atoms, i, 4), I32, 4)

            def before(k: Any, place: Values) -> Values:
                earlier = b.icmp_signed("<", emit.load(emit.item(atoms, k, 4), I32, 4), mine)
                return [b.add(place[0], b.zext(earlier, I64))]

            (place,) = emit.loop(count, [ir.Constant(I64, 0)], before)
            weight = take(emit, x, i, 1, like)
            weight = weight if weight.type == number else b.fptrunc(weight, number)
            emit.store(mine, emit.item(out_atoms, place, 4), 4)
            put(emit, weight, out_x, place, other)
            return []

        emit.loop(count, [], entry)

    return types.void(*[types.int64] * 5, like, other), body
