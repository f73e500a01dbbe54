"""Atoms, signals and Gram rows as 16-bit integers: a quarter of the bytes of float64, twice the products of float32.

With `longest` at least the largest norm of an atom:

- Atoms are round(SCALE a_j / longest), signals round(t y) with t as large as 16 bits, and sums of products 32 bits,
  allow. The products of these, exact in 32 bits and rounded to their higher halves, are <y, a_j> as an integer: so many
  units of 2^16 longest / (SCALE t).
- Gram rows are r_ij = round(SHORT G_ij / (||a_i|| longest)), weights are q_i = round((2^15 / SHORT) longest ||a_i|| x_i
  / unit), and what k active atoms take away is sum_i q_i r_ij / 2^15 units, every term rounded. Sums wrap; but as no
  correlation is larger than ||y|| longest, which is 99 % of 2^15 units at most, and no error than WIDE / 2 (else the
  signal is not searched), what they come to is right.

In units, a correlation errs by at most

    grit + (k + 1) / 2 + sum_i (|q_i| / 2 + |e_i| |r_ij|) / 2^15,

where grit = (||a_j - its integers|| ||y|| + longest ||y - its integers||) / unit; (k + 1) / 2 is the rounding of k
terms and of the product; e_i is what rounding changes in q_i; and the halves are the rounding of r_ij. With `tall` the
largest |r_ij| of different atoms, and SHORT instead for the one that j itself may be, a best atom that leads by more
than

    2 grit + k + 1 + (sum_i |q_i| + 2 tall sum_i |e_i| + SHORT - tall) / 2^15

is the best; and it is not an active one, whose correlation is 0. (A sixteenth more of the last term, and a sixteenth of
a unit, make up for what is rounded in float32 before: of SHORT units, at most 2^-24 each time.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from pursuit._vector import BYTES, I32, I64, Emit, counting, every, multiply_add
from pursuit.encode.rooms import addresses, aligned, padded, several
from pursuit.encode.search import BLOCK, LANES
from pursuit.encode.vector import WAVE, lanes_of

SHORT = 2**15 - 1
"""The largest 16-bit integer."""
TINY = 1e-30
"""Takes the place of smaller numbers that something is divided by."""
SCALE, MOST = 32_700.0, 65_000.0
"""The norm of the longest atom in integers, and the largest of a signal: their product is less than 2^31."""
DEEP = 512
"""The most entries of a signal: grit grows, and correlations decrease, with the root of it, and soon too many atoms are
close. (Up to 2**16 entries, rounding would not change what was just said.)"""
GROUP = 4 * WAVE
"""Signals whose correlations are computed together: a part of the dictionary is read once for them."""
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
    out, squares = aligned((-(-d // 2), padded(n), 2), np.int16), np.zeros(n)
    for lo in range(0, d, 256):
        exact = D[lo : lo + 256] * np.float64(scale)
        near = np.rint(exact)
        for side in range(2):
            some = near[side::2]
            out[lo // 2 : lo // 2 + len(some), :n, side] = some
        squares += np.square(exact - near).sum(axis=0)
    return out, float(np.sqrt(squares.max())) / scale * (1 + 1e-6)


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
    """GROUP signals, `depth` bytes apart, of d entries and known squared norms, as integers, into rows of `width`
    bytes; after number `last`, it is this again. 1 / unit and grit go to `numbers`."""
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
        masked = cgutils.get_or_insert_function(b.module, ir.FunctionType(kind, [pointer, I32, flags, kind]), name)

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
            peak = double(b.extract_element(emit.folded([peak], emit.most), ir.Constant(I32, 0)))
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

        def group(g: Any, nothing: list[Any]) -> list[Any]:
            base = emit.item(D, g, _ACROSS * BYTES)

            def wave(w: Any, nothing: list[Any]) -> list[Any]:
                first = b.mul(w, ir.Constant(I64, WAVE))
                signals = [b.add(y, b.mul(width, emit.at(first, p))) for p in range(WAVE)]

                def pair(i: Any, sums: list[Any]) -> list[Any]:
                    at = b.add(base, b.mul(line, i))
                    atoms = [emit.load(emit.at(at, BYTES * q), _SHORTS, 4) for q in range(_ACROSS)]
                    after = []
                    for p, signal in enumerate(signals):
                        entry = b.bitcast(emit.splat(emit.load(emit.item(signal, i, 4), I32, 4), _INTEGERS), _SHORTS)
                        mine = sums[_ACROSS * p : _ACROSS * (p + 1)]
                        after += [
                            multiply_add(emit, total, atom, entry) for total, atom in zip(mine, atoms, strict=True)
                        ]
                    return after

                sums = emit.loop(depth, [every(_INTEGERS, 2**15)] * (_ACROSS * WAVE), pair)
                for k, total in enumerate(sums):
                    p, q = divmod(k, _ACROSS)
                    high = b.trunc(b.ashr(total, every(_INTEGERS, 16)), ir.VectorType(_I16, LANES))
                    place = b.add(
                        b.add(out, b.mul(row, emit.at(first, p))),
                        emit.item(ir.Constant(I64, 2 * LANES * q), g, 2 * LANES * _ACROSS),
                    )
                    emit.store(high, place, 2 * LANES)
                return []

            emit.loop(waves, [], wave)
            return []

        across = _ACROSS * LANES
        emit.loop(b.sdiv(emit.at(n, across - 1), ir.Constant(I64, across)), [], group)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate
