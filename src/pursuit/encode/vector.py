"""The arithmetic of a wave of signals as vector code: what is a number for one of them is a vector for the wave.

Arguments are addresses and counts; `like` tells the type of the numbers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import UniTuple
from numba.core.types.misc import NoneType
from numba.extending import intrinsic

from pursuit._vector import BYTES, FLAGS, I32, I64, Emit, every, routine
from pursuit.encode.lines import F32, inner, number_of, residual

WAVE = 8
"""Signals that are pursued in step."""


def lanes_of(like: Any) -> tuple[Any, int]:
    """The vector type of a numba scalar type, one number for each signal of a wave, and the bytes of one number."""
    element, size = number_of(like)
    return ir.VectorType(element, WAVE), size


@intrinsic
def dots(context: Any, left: Any, right: Any, length: Any, out: Any, like: Any) -> Any:
    """Inner products of vectors, one for each signal of a wave; left and right hold their addresses. All in step, so
    that more is asked for at once of what comes from afar."""
    wave, size = lanes_of(like)
    kind = ir.VectorType(wave.element, BYTES // size)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, right, length, out, _ = args
        emit, b, lanes = Emit(builder), builder, ir.Constant(I64, kind.count)
        rows = [[emit.load(emit.at(side, 8 * p), I64, 8) for side in (left, right)] for p in range(WAVE)]
        whole = b.sdiv(length, lanes)

        def turn(i: Any, sums: list[Any]) -> list[Any]:
            at = b.mul(i, ir.Constant(I64, BYTES))
            factors = [[emit.load(b.add(row, at), kind, size) for row in pair] for pair in rows]
            return [emit.plus(total, *pair) for total, pair in zip(sums, factors, strict=True)]

        def last(i: Any, sums: list[Any]) -> list[Any]:
            at = b.mul(b.add(b.mul(whole, lanes), i), ir.Constant(I64, size))
            sides = [[b.add(pair[side], at) for pair in rows] for side in range(2)]
            return [emit.plus(sums[0], *(emit.gather(side, wave, size) for side in sides))]

        sums = emit.loop(whole, [ir.Constant(kind, [0.0] * kind.count)] * WAVE, turn)
        (total,) = emit.loop(b.srem(length, lanes), [emit.totals(sums)], last)
        emit.store(total, out, WAVE * size)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4, like), generate


@routine
def remainder(
    context: Any, y: Any, A: Any, depth: Any, atoms: Any, x: Any, count: Any, length: Any, like: Any
) -> Any:  # fmt: skip
    """||y - sum_i x_i a_i||^2 for one signal of a wave; the atoms are rows of A, which are `depth` bytes apart."""

    def body(emit: Emit, *args: Any) -> Any:
        return residual(emit, like, like, WAVE, *args[:7])

    return like(*[types.int64] * 7, like), body


def product(emit: Emit, like: Any, a: Any, y: Any, length: Any, row: Any, atoms: Any, x: Any, count: Any) -> Any:
    """<a, y> - sum_i x_i row[atoms_i] for one signal of a wave."""
    b, (number, size) = emit.b, number_of(like)

    def less(i: Any, c: list[Any]) -> list[Any]:
        atom = b.sext(emit.load(emit.item(atoms, i, 4 * WAVE), I32, 4), I64)
        weight = emit.load(emit.item(x, i, size * WAVE), number, size)
        return [emit.minus(c[0], weight, emit.load(emit.item(row, atom, size), number, size))]

    return emit.loop(count, [inner(emit, a, y, length, like, like, like)], less)[0]


@routine
def correlation(
    context: Any, a: Any, y: Any, length: Any, row: Any, atoms: Any, x: Any, count: Any, like: Any
) -> Any:  # fmt: skip
    """<a, y> - sum_i x_i row[atoms_i] for one signal of a wave."""

    def body(emit: Emit, *args: Any) -> Any:
        return product(emit, like, *args[:7])

    return like(*[types.int64] * 7, like), body


@intrinsic
def seat(context: Any, chosen: Any, norms: Any, lengths: Any, noise: Any, tables: Any, seats: Any, like: Any) -> Any:
    """For each signal of a wave, the new atom that is `chosen` (where there is none, 0, and no correlation suffices).

    `lengths` are the norm of the signal and the sum of weights times norms, one after the other. `tables` are pairs of
    an address and the bytes from one atom to the next: rows in float32, the Gram matrix, the atoms. Into the `seats` go
    the atom, its place in increasing order, 0 for now, its norm, three addresses, and how large a correlation must be.
    """
    kind, size = lanes_of(like)
    width, whole = WAVE * size, ir.VectorType(I64, WAVE)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        chosen, norms, lengths, noise, tables, seats, _ = args
        emit, b = Emit(builder), builder
        tables, (names, places, sizes, *addresses, least) = (cgutils.unpack_tuple(b, each) for each in (tables, seats))
        atom, none = emit.load(chosen, whole, 8 * WAVE), every(whole, 0)
        there = b.icmp_signed(">=", atom, none)
        atom = b.select(there, atom, none)
        emit.store(atom, chosen, 8 * WAVE)
        emit.store(b.trunc(atom, ir.VectorType(I32, WAVE)), names, 4 * WAVE)
        emit.store(every(ir.VectorType(I32, WAVE), 0), places, 4 * WAVE)
        for base, step, out in zip(tables[0::2], tables[1::2], addresses, strict=True):
            emit.store(b.add(emit.splat(base, whole), b.mul(atom, emit.splat(step, whole))), out, 8 * WAVE)
        lanes = [b.extract_element(atom, ir.Constant(I32, lane)) for lane in range(WAVE)]
        norm = emit.gather([emit.item(norms, lane, size) for lane in lanes], kind, size)
        emit.store(norm, sizes, width)
        doubles = ir.VectorType(ir.DoubleType(), WAVE)
        mass = b.fadd(*(emit.load(emit.at(lengths, 8 * WAVE * q), doubles, 8 * WAVE) for q in range(2)))
        mass = mass if size == 8 else b.fptrunc(mass, kind)
        enough = b.fmul(b.fmul(emit.splat(noise, kind), mass), norm)
        emit.store(b.select(there, enough, ir.Constant(kind, [float("inf")] * WAVE)), least, width)
        return context.get_dummy_value()

    signature = types.void(*[types.int64] * 3, like, UniTuple(types.int64, 6), UniTuple(types.int64, 7), like)
    return signature, generate


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
    kind, size = lanes_of(like)
    width = WAVE * size

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        T, rows, atoms, h, x, beta, numbers, clear, count, _ = args
        emit, b = Emit(builder), builder
        bases = [emit.load(emit.at(rows, 8 * lane), I64, 8) for lane in range(WAVE)]

        def vector(address: Any, i: Any) -> Any:
            return emit.load(emit.item(address, i, width), kind, width)

        def gather(i: Any) -> Any:
            names = [emit.load(emit.at(emit.item(atoms, i, 4 * WAVE), 4 * lane), I32, 4) for lane in range(WAVE)]
            places = [emit.item(base, b.sext(atom, I64), size) for base, atom in zip(bases, names, strict=True)]
            return emit.gather(places, kind, size)

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
    context: Any, row: Any, beta: Any, moves: Any, x: Any, single: Any, sums: Any, sizes: Any, atoms: Any, places: Any,
    masses: Any, lefts: Any, count: Any, lost: Any, like: Any,
) -> Any:  # fmt: skip
    """For each signal of a wave, row = root beta, x += step beta, with `moves` the vectors root and step, which are 0
    for a signal that is done; x and row in float32, too, where `single` has rooms for that; sums_k += row_k^2. Of the
    last of count + 1 atoms, x and sums begin with 0, and it finds its own among the `places` of the atoms in increasing
    order.

    masses are sum_k |x_k| sizes_k, and so for the row; after those, max_k sums_k sizes_k^2 and max_k |x_k| sizes_k. Of
    `lefts`, the first, squared residuals, decrease, and the third become the first of those. Whether there is a signal
    with root 0, or the third of those larger than `lost`, is returned.
    """
    kind, size = lanes_of(like)
    width, short, whole = WAVE * size, ir.VectorType(F32, WAVE), ir.VectorType(I32, WAVE)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row, beta, moves, x, rooms, sums, sizes, atoms, places, masses, lefts, count, lost, _ = args
        emit, b = Emit(builder), builder
        singles = [] if size == 4 or isinstance(single, NoneType) else cgutils.unpack_tuple(b, rooms)
        zero, none = ir.Constant(kind, [0.0] * WAVE), every(whole, 0)
        root, step = (emit.load(emit.at(moves, width * q), kind, width) for q in range(2))
        new = emit.load(emit.item(atoms, count, 4 * WAVE), whole, 4 * WAVE)
        entered = b.fcmp_unordered("!=", root, zero)

        def turn(k: Any, carried: list[Any]) -> list[Any]:
            at = b.mul(k, ir.Constant(I64, width))
            address = {name: b.add(base, at) for name, base in zip("rbxsn", (row, beta, x, sums, sizes), strict=True)}
            direction, weight, total, norm = (emit.load(address[name], kind, width) for name in "bxsn")
            first = b.icmp_signed("==", k, count)
            weight, total = (b.select(first, zero, value) for value in (weight, total))
            part, weight = b.fmul(root, direction, flags=FLAGS), emit.plus(weight, step, direction)
            total = emit.plus(total, part, part)
            for value, name in ((part, "r"), (weight, "x"), (total, "s")):
                emit.store(value, address[name], width)
            for value, room in zip((weight, part), singles, strict=False):  # none, or both
                emit.store(b.fptrunc(value, short), emit.item(room, k, 4 * WAVE), 4 * WAVE)
            other = emit.load(emit.item(atoms, k, 4 * WAVE), whole, 4 * WAVE)
            place = emit.item(places, k, 4 * WAVE)
            later = b.zext(b.and_(entered, b.icmp_signed(">", other, new)), whole)
            emit.store(b.add(emit.load(place, whole, 4 * WAVE), later), place, 4 * WAVE)
            before = b.zext(b.icmp_signed("<", other, new), whole)
            heavy, long = (b.fmul(emit.absolute(value), norm) for value in (weight, part))
            more = [b.fadd(carried[q], value, flags=FLAGS) for q, value in enumerate((heavy, long))]
            worst = emit.most(carried[2], b.fmul(total, b.fmul(norm, norm)))
            return [*more, worst, emit.most(carried[3], heavy), b.add(carried[4], before)]

        *found, place = emit.loop(emit.at(count, 1), [zero, zero, zero, zero, none], turn)
        for q, total in enumerate(found):
            emit.store(total, emit.at(masses, width * q), width)
        emit.store(place, emit.item(places, count, 4 * WAVE), 4 * WAVE)
        doubles, bytes_ = ir.VectorType(ir.DoubleType(), WAVE), 8 * WAVE
        loss, mass = (
            value if size == 8 else b.fpext(value, doubles)
            for value in (emit.load(emit.at(moves, 2 * width), kind, width), found[0])
        )
        emit.store(b.fsub(emit.load(lefts, doubles, bytes_), loss), lefts, bytes_)
        emit.store(mass, emit.at(lefts, 2 * bytes_), bytes_)
        well = b.and_(entered, b.fcmp_ordered("<=", found[2], emit.splat(lost, kind)))
        all_ = ir.Constant(ir.IntType(WAVE), -1)
        return b.zext(b.icmp_unsigned("!=", b.bitcast(well, all_.type), all_), I64)

    return types.int64(*[types.int64] * 4, single, *[types.int64] * 7, like, like), generate


@intrinsic
def write(
    context: Any, x: Any, atoms: Any, places: Any, counts: Any, signals: Any, width: Any, out_atoms: Any, out_x: Any,
    like: Any,
) -> Any:  # fmt: skip
    """The codes of some signals of a wave, of `counts` atoms (none, where that is negative) in increasing order, into
    rows of `width` entries."""
    number, size = lanes_of(like)[0].element, lanes_of(like)[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, atoms, places, counts, signals, width, out_atoms, out_x, _ = args
        emit, b = Emit(builder), builder

        def signal(p: Any, nothing: list[Any]) -> list[Any]:
            row = b.mul(width, p)

            def entry(i: Any, nothing: list[Any]) -> list[Any]:
                k = b.add(b.mul(i, ir.Constant(I64, WAVE)), p)
                place = b.add(row, b.sext(emit.load(emit.item(places, k, 4), I32, 4), I64))
                emit.store(emit.load(emit.item(atoms, k, 4), I32, 4), emit.item(out_atoms, place, 4), 4)
                emit.store(emit.load(emit.item(x, k, size), number, size), emit.item(out_x, place, size), size)
                return []

            emit.loop(emit.load(emit.item(counts, p, 8), I64, 8), [], entry)
            return []

        emit.loop(signals, [], signal)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8, like), generate


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
