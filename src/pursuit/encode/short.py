"""The search for atoms in 16-bit integers: a quarter of the bytes of float64, and twice the products of float32.

For a signal y and atoms a_j, with `longest` at least the largest norm and s = SCALE:

- Atoms are round(s a_j / longest), signals round(t y) with t as large as 16 bits, and sums of products 32 bits, allow;
  the products of these, exact in 32 bits and rounded to their higher halves, are <y, a_j> as integers: so many `units`
  of 2^16 longest / (s t).
- Gram rows are r_ij = round(SHORT G_ij / (||a_i|| longest)), weights q_i = round(x_i ||a_i|| (2^15 / SHORT) longest /
  unit), and what they take away is sum_i q_i r_ij / 2^15 units, every term rounded: sums wrap, and as no correlation is
  larger than ||y|| longest, which is less than 2^15 units, what they come to is right.

In units, a correlation errs by at most

    grit + (s + 1) / 2 + sum_i (|q_i| / 2 + |e_i| |r_ij|) / 2^15,

where grit = (||a_j - its integers|| ||y|| + longest ||y - its integers||) / unit, (s + 1) / 2 is the rounding of s terms
and of the product, e_i is what rounding changes in q_i, and the halves are the rounding of r_ij. With `tall` the largest
|r_ij| of different atoms, and SHORT instead for the one that j itself may be, a best atom that leads by more than

    2 grit + s + 1 + (sum_i |q_i| + 2 tall sum_i |e_i| + SHORT - tall) / 2^15

is the best; and it is not an active one, whose correlation is 0. (A sixteenth more of the last term, and a sixteenth of
a unit, make up for the roundings in float32, of at most 2^-24 of SHORT units each, that G and norms went through.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from pursuit._vector import BYTES, I32, I64, Emit, counting, every, high_product, multiply_add
from pursuit.encode.rooms import addresses, aligned, padded, several
from pursuit.encode.search import BLOCK, LANES, VECTORS
from pursuit.encode.vector import WAVE, inner, lanes_of

SHORT = 2**15 - 1
"""The largest 16-bit integer."""
TINY = 1e-30
"""Takes the place of smaller numbers that something is divided by."""
SCALE, MOST = 32_700.0, 65_000.0
"""The norm of the longest atom in integers, and the largest of a signal: their product is less than 2^31."""
GROUP = 4 * WAVE
"""Signals whose correlations are computed together: a part of the dictionary is read once for them."""
FEW = 16
"""Atoms that 16 bits do not tell apart and full precision does, one by one; more of them are left to float32."""
_I16, _F64 = ir.IntType(16), ir.DoubleType()
_INTEGERS, _SHORTS = ir.VectorType(I32, LANES), ir.VectorType(_I16, 2 * LANES)
_ACROSS = 2 if BYTES == 64 else 1  # vectors of columns in `project`: as many as there are registers for


def rows(S: Any, norms: Any, longest: float) -> Any:
    """The Gram rows S as 16-bit integers."""
    scale, shorts = (SHORT / (norms * longest)).astype(np.float32)[:, None], aligned(S.shape, np.int16)
    for lo in range(0, len(S), 256):  # not all at once, for which there may be no room
        some = slice(lo, lo + 256)
        shorts[some] = np.rint(S[some] * scale[some])
    return shorts


def columns(D: Any, longest: float) -> tuple[Any, float]:
    """The atoms as 16-bit integers, two entries of each side by side; the largest norm of what rounding changes."""
    (d, n), scale = D.shape, SCALE / longest
    out, worst = aligned((-(-d // 2), padded(n), 2), np.int16), np.zeros(n)
    for t in range(d):
        exact = scale * D[t].astype(np.float64)
        near = np.rint(exact)
        out[t // 2, :n, t % 2] = near
        worst += np.square(exact - near)
    return out, float(np.sqrt(worst.max())) / scale * (1 + 1e-6)


@dataclass
class Kit:
    """What all threads read: Gram rows and atoms as integers, the largest norm of what that changes in an atom."""

    rows: Any
    atoms: Any
    off: float

    @classmethod
    def of(cls, S: Any, D: Any, norms: Any, longest: float) -> Kit:
        return cls(rows(S, norms, longest), *columns(D, longest))


def workspace(kit: Kit, d: int, n: int, width: int) -> tuple[Any, tuple[int, ...]]:
    """Rooms of one thread, for n padded columns and codes of `width` atoms: 1 / unit and grit of a group of signals,
    these as integers, their products, weights, magnitudes, vectors of the largest, and leads; and what the kernel asks
    for: the addresses of all these, how long an integer signal is, addresses of the kit, and pairs of entries."""
    entries = -(-d // (2 * LANES)) * 2 * LANES
    shapes = (GROUP, entries), (GROUP, n), (width, WAVE), (WAVE, n), (WAVE, 2 * LANES)
    found = several(((2, GROUP), np.float64), *((shape, np.int16) for shape in shapes), ((WAVE,), np.int32))
    return found, (*addresses(*found, kit.rows, kit.atoms), 2 * entries, len(kit.atoms))


@intrinsic
def quantise(
    context: Any, y: Any, depth: Any, d: Any, squares: Any, last: Any, longest: Any, off: Any, out: Any, width: Any,
    numbers: Any, like: Any,
) -> Any:  # fmt: skip
    """GROUP signals, `depth` bytes apart, of d entries and norms of which `squares` are there, as integers, into rows of
    `width` bytes; after number `last`, it is this again. 1 / unit and grit go to `numbers`."""
    wave, size = lanes_of(like)
    kind = ir.VectorType(wave.element, BYTES // size)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        signals, depth, d, squares, last, longest, off, outs, width, numbers, _ = args
        emit, b, count = Emit(builder), builder, kind.count
        zero, places = ir.Constant(kind, [0.0] * count), ir.VectorType(I64, count)
        turns = b.sdiv(emit.at(d, count - 1), ir.Constant(I64, count))
        pointer = ir.IntType(8).as_pointer()
        flags = ir.VectorType(ir.IntType(1), count)
        name = f"llvm.masked.load.v{count}f{8 * size}.p0"
        masked = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(kind, [pointer, I32, flags, kind]), name
        )

        def entries(y: Any, i: Any) -> Any:
            start = b.mul(i, ir.Constant(I64, count))
            inside = b.icmp_signed("<", b.add(emit.splat(start, places), counting(places, 0)), emit.splat(d, places))
            address = b.inttoptr(emit.item(y, i, BYTES), pointer)
            return b.call(masked, [address, ir.Constant(I32, size), inside, zero])

        def double(value: Any) -> Any:
            return value if size == 8 else b.fpext(value, _F64)

        def signal(p: Any, nothing: list[Any]) -> list[Any]:
            number = b.select(b.icmp_signed("<", p, last), p, last)
            y, out = b.add(signals, b.mul(depth, number)), b.add(outs, b.mul(width, p))
            length = emit.root(double(emit.load(emit.item(squares, number, size), wave.element, size)))
            (peak,) = emit.loop(turns, [zero], lambda i, most: [emit.most(emit.absolute(entries(y, i)), most[0])])
            while peak.type.count > 1:
                peak = emit.most(*emit.halves(peak))
            peak = double(b.extract_element(peak, ir.Constant(I32, 0)))
            most = [
                b.fdiv(ir.Constant(_F64, value), emit.most(size_, ir.Constant(_F64, TINY)))
                for value, size_ in ((MOST, length), (SCALE, peak))
            ]
            t = emit.least(*most)
            t = t if size == 8 else b.fptrunc(t, wave.element)
            several = emit.splat(t, kind)

            def turn(i: Any, off: list[Any]) -> list[Any]:
                exact = b.fmul(entries(y, i), several)
                near = emit.nearest(exact)
                whole = b.trunc(b.fptosi(near, ir.VectorType(I32, count)), ir.VectorType(_I16, count))
                emit.store(whole, emit.item(out, i, 2 * count), 2)
                change = b.fsub(exact, near)
                return [emit.plus(off[0], change, change)]

            (rest,) = emit.loop(turns, [zero], turn)
            rest = emit.root(double(b.extract_element(emit.totals([rest]), ir.Constant(I32, 0))))
            factor = b.fmul(double(t), b.fdiv(ir.Constant(_F64, SCALE / 2**16), longest))
            change = b.fmul(b.fadd(longest, off), b.fdiv(rest, double(t)))
            place = emit.item(numbers, p, 8)
            emit.store(factor, place, 8)
            emit.store(b.fmul(factor, emit.plus(change, off, length)), emit.at(place, 8 * GROUP), 8)
            return []

        emit.loop(ir.Constant(I64, GROUP), [], signal)
        return context.get_dummy_value()

    doubles = [types.float64] * 2
    return types.void(*[types.int64] * 5, *doubles, *[types.int64] * 3, like), generate


@intrinsic
def project(context: Any, D: Any, n: Any, blocks: Any, y: Any, width: Any, depth: Any, waves: Any, out: Any) -> Any:
    """Products of `waves` of signals with n atoms, from `columns` of atoms, of `depth` pairs of entries, and of signals
    that are `width` bytes apart, in units."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        D, n, blocks, y, width, depth, waves, out = args
        emit, b = Emit(builder), builder
        line, row = (b.mul(blocks, ir.Constant(I64, size * BLOCK)) for size in (4, 2))
        both = ir.VectorType(_I16, 2 * LANES)

        def group(g: Any, nothing: list[Any]) -> list[Any]:
            base = emit.item(D, g, _ACROSS * BYTES)

            def wave(w: Any, nothing: list[Any]) -> list[Any]:
                first = b.mul(w, ir.Constant(I64, WAVE))
                signals = [b.add(y, b.mul(width, emit.at(first, p))) for p in range(WAVE)]

                def pair(i: Any, sums: list[Any]) -> list[Any]:
                    at = b.add(base, b.mul(line, i))
                    atoms = [emit.load(emit.at(at, BYTES * q), both, 4) for q in range(_ACROSS)]
                    after = []
                    for p, signal in enumerate(signals):
                        entry = b.bitcast(
                            emit.splat(emit.load(emit.item(signal, i, 4), I32, 4), _INTEGERS), both
                        )
                        mine = sums[_ACROSS * p : _ACROSS * (p + 1)]
                        after += [multiply_add(emit, total, atom, entry) for total, atom in zip(mine, atoms, strict=True)]
                    return after

                sums = emit.loop(depth, [every(_INTEGERS, 2**15)] * (_ACROSS * WAVE), pair)
                for k, total in enumerate(sums):
                    p, q = divmod(k, _ACROSS)
                    high = b.trunc(b.ashr(total, every(_INTEGERS, 16)), ir.VectorType(_I16, LANES))
                    place = b.add(b.add(out, b.mul(row, emit.at(first, p))), emit.item(ir.Constant(I64, 2 * LANES * q), g, 2 * LANES * _ACROSS))
                    emit.store(high, place, 2 * LANES)
                return []

            emit.loop(waves, [], wave)
            return []

        across = _ACROSS * LANES
        emit.loop(b.sdiv(emit.at(n, across - 1), ir.Constant(I64, across)), [], group)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


@intrinsic
def shorten(
    context: Any, x: Any, sizes: Any, factors: Any, masses: Any, count: Any, longest: Any, tall: Any, out: Any,
    leads: Any, like: Any,
) -> Any:  # fmt: skip
    """For each signal of a wave, the weights x_k sizes_k as integers, from `factors`, 1 / unit and, a GROUP later, grit; and by how many units the
    best atom must lead to be the best: by more than there are where weights are out of range."""
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
        lead = b.select(fits, emit.least(lead, number(2 * SHORT)), number(2 * SHORT))
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
            c = correlation(j)
            size = b.select(b.fcmp_ordered("<", c, zero), b.fneg(c), c)
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
    rows; `sizes` and `tops` are rooms. `exact` is a tuple: addresses of the atoms, of the Gram matrix and of the signals; of names and of weights of
    active atoms; bytes of an atom and of a Gram row; entries of a signal.
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

            def correlation(j: Any) -> Any:
                y = emit.load(emit.item(signals, p, 8), I64, 8)
                total = inner(emit, [[b.add(A, b.mul(j, depth)), y]], d, kind.element, size)
                at = b.add(G, b.mul(j, ir.Constant(I64, size)))

                def less(k: Any, c: list[Any]) -> list[Any]:
                    atom = b.sext(emit.load(emit.item(emit.item(atoms, p, 4), k, 4 * WAVE), I32, 4), I64)
                    weight = emit.load(emit.item(emit.item(x, p, size), k, size * WAVE), kind.element, size)
                    return [emit.minus(c[0], weight, emit.load(b.add(at, b.mul(atom, line)), kind.element, size))]

                return emit.loop(count, [b.extract_element(total, ir.Constant(I32, 0))], less)[0]

            def told(_: Any, before: list[Any]) -> list[Any]:
                return [_best_above(emit, mine, low, chunks, correlation, kind.element)]

            (column,) = emit.loop(b.zext(b.and_(few, b.not_(sure)), I64), [column], told)
            emit.store(b.select(few, column, ir.Constant(I64, -1)), emit.item(chosen, p, 8), 8)
            return []

        emit.loop(ir.Constant(I64, WAVE), [], signal)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 10, UniTuple(types.int64, 8), types.int64, like), generate
