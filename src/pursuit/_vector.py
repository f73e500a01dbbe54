"""Loops in LLVM's own vector types, for what it does not find by itself: how they are written, and one for products.

Arguments of what is made of this are addresses and counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.codegen import get_host_cpu_features
from numba.core.types.containers import UniTuple
from numba.core.types.misc import CPointer, unliteral
from numba.extending import intrinsic


def _has(feature: str) -> bool:
    """Whether the processor that numba compiles for has a feature."""
    features = get_host_cpu_features() if config.CPU_FEATURES is None else config.CPU_FEATURES
    return f"+{feature}" in features.split(",")


BYTES = 64 if _has("avx512bw") else 32
"""Of a vector."""
SHORTS = BYTES // 2
"""16-bit numbers in a vector."""
PAIRS = _has("avx2") or _has("avx512bw")
"""Whether there is an instruction that multiplies 16-bit numbers and adds neighbours."""
WHOLE = 2 * SHORTS
"""Numbers that a turn of `products` handles."""
FLAGS = ("nnan", "nsz", "contract")  # not "reassoc": it breaks chains of fused operations
I32, I64 = ir.IntType(32), ir.IntType(64)


def every(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count)


def counting(kind: Any, start: int) -> Any:
    return ir.Constant(kind, list(range(start, start + kind.count)))


class Emit:
    """The few instructions the loops are made of, over one IR builder."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def at(self, address: Any, offset: int) -> Any:
        return self.b.add(address, ir.Constant(I64, offset))

    def item(self, address: Any, i: Any, size: int) -> Any:
        return self.b.add(address, self.b.mul(i, ir.Constant(I64, size)))

    def splat(self, x: Any, kind: Any) -> Any:
        undefined = ir.Constant(kind, ir.Undefined)
        first = self.b.insert_element(undefined, x, ir.Constant(I32, 0))
        return self.b.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, kind.count), [0] * kind.count))

    def load(self, address: Any, kind: Any, align: int) -> Any:
        value = self.b.load(self.b.inttoptr(address, kind.as_pointer()))
        value.align = align
        return value

    def store(self, value: Any, address: Any, align: int) -> None:
        self.b.store(value, self.b.inttoptr(address, value.type.as_pointer())).align = align

    def ask(self, address: Any) -> None:
        """A prefetch of the cache line of an address."""
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
        function = cgutils.get_or_insert_function(self.b.module, kind, "llvm.prefetch.p0")
        hints = [ir.Constant(I32, hint) for hint in (0, 2, 1)]  # to read, into the second cache, data
        self.b.call(function, [self.b.inttoptr(address, pointer), *hints])

    def larger(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed(">", x, y), x, y)

    def smaller(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def least(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.fcmp_ordered("<", x, y), x, y)

    def most(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.fcmp_ordered(">", x, y), x, y)

    def merge(self, one: list[Any], two: list[Any]) -> list[Any]:
        """(best, runner-up) of two such pairs, or of two that have no runner-up."""
        losers = [self.smaller(one[0], two[0]), *one[1:], *two[1:]]
        while len(losers) > 1:
            losers = [self.larger(losers[0], losers[1]), *losers[2:]]
        return [self.larger(one[0], two[0]), losers[0]]

    def halves(self, vector: Any) -> tuple[Any, Any]:
        count = vector.type.count // 2
        picks = [counting(ir.VectorType(I32, count), start) for start in (0, count)]
        low, high = (self.b.shuffle_vector(vector, vector, pick) for pick in picks)
        return low, high

    def final(self, pair: list[Any]) -> list[Any]:
        """The best and the runner-up of a vector of pairs."""
        while pair[0].type.count > 1:
            low, high = zip(*(self.halves(vector) for vector in pair), strict=True)
            pair = self.merge(list(low), list(high))
        return [self.b.extract_element(vector, ir.Constant(I32, 0)) for vector in pair]

    def totals(self, vectors: list[Any]) -> Any:
        """The sums of the numbers of each of several vectors, of which there are a power of two, in one vector."""
        return self.folded(vectors, lambda x, y: self.b.fadd(x, y, flags=FLAGS))

    def folded(self, vectors: list[Any], operation: Callable[[Any, Any], Any]) -> Any:
        """What an operation makes of the numbers of each of several vectors, as `totals`.

        Groups of numbers of one vector, side by side with those of others, are halved and put together.
        """
        width = vectors[0].type.count
        while width > 1:
            count = vectors[0].type.count
            width //= 2
            two = len(vectors) > 1
            firsts = [start + k for start in range(0, (1 + two) * count, 2 * width) for k in range(width)]
            picks = [ir.Constant(ir.VectorType(I32, len(firsts)), [k + shift for k in firsts]) for shift in (0, width)]
            pairs = zip(vectors[0::2], vectors[1::2], strict=True) if two else [(vectors[0], vectors[0])]
            vectors = [operation(*(self.b.shuffle_vector(x, y, pick) for pick in picks)) for x, y in pairs]
        return self.joined(vectors)

    def joined(self, vectors: list[Any]) -> Any:
        """One vector of the numbers of several, of which there are a power of two."""
        while len(vectors) > 1:
            pick = counting(ir.VectorType(I32, 2 * vectors[0].type.count), 0)
            vectors = [self.b.shuffle_vector(x, y, pick) for x, y in zip(vectors[0::2], vectors[1::2], strict=True)]
        return vectors[0]

    def gather(self, places: list[Any], kind: Any, align: int) -> Any:
        """A vector of the numbers at some addresses."""
        value = ir.Constant(kind, ir.Undefined)
        for lane, place in enumerate(places):
            value = self.b.insert_element(value, self.load(place, kind.element, align), ir.Constant(I32, lane))
        return value

    def absolute(self, vector: Any) -> Any:
        return self._each("fabs", vector)

    def root(self, vector: Any) -> Any:
        return self._each("sqrt", vector)

    def nearest(self, vector: Any) -> Any:
        """Numbers rounded to integers."""
        return self._each("rint", vector)

    def magnitude(self, vector: Any) -> Any:
        """The absolute values of 16-bit integers."""
        flag = ir.IntType(1)
        kind = ir.FunctionType(vector.type, [vector.type, flag])
        function = cgutils.get_or_insert_function(self.b.module, kind, f"llvm.abs.v{vector.type.count}i16")
        return self.b.call(function, [vector, ir.Constant(flag, 0)])

    def lowest(self, bits: Any) -> Any:
        """The place of the lowest bit."""
        return self.b.cttz(bits, ir.Constant(ir.IntType(1), 0))

    def _each(self, name: str, x: Any) -> Any:
        """A function of LLVM's on a number, or each number of a vector."""
        vector = isinstance(x.type, ir.VectorType)
        number, count = (x.type.element, f"v{x.type.count}") if vector else (x.type, "")
        name = f"llvm.{name}.{count}{'f64' if number == ir.DoubleType() else 'f32'}"
        kind = ir.FunctionType(x.type, [x.type])
        return self.b.call(cgutils.get_or_insert_function(self.b.module, kind, name), [x])

    def plus(self, x: Any, y: Any, z: Any) -> Any:
        """x + y z."""
        return self.b.fadd(x, self.b.fmul(y, z, flags=FLAGS), flags=FLAGS)

    def minus(self, x: Any, y: Any, z: Any) -> Any:
        """x - y z."""
        return self.b.fsub(x, self.b.fmul(y, z, flags=FLAGS), flags=FLAGS)

    def loop(self, count: Any, start: list[Any], turn: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """The values of `start` carried through `count` turns."""
        b = self.b
        entry = b.basic_block
        head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
        b.branch(head)
        b.position_at_end(head)
        i, carried = b.phi(I64), [b.phi(x.type) for x in start]
        for phi, x in zip([i, *carried], [ir.Constant(I64, 0), *start], strict=True):
            phi.add_incoming(x, entry)
        b.cbranch(b.icmp_signed("<", i, count), body, done)
        b.position_at_end(body)
        after = turn(i, carried)
        for phi, x in zip([i, *carried], [self.at(i, 1), *after], strict=True):
            phi.add_incoming(x, b.basic_block)
        self._settled(b.branch(head))
        b.position_at_end(done)
        return carried

    def _settled(self, branch: Any) -> None:
        """The loop that ends here stays as it is: LLVM would take its time to unroll it, and it would not be faster."""
        module = self.b.module
        says = (
            ir.MetaDataString(module, "llvm.loop.unroll.disable"),
            ir.MetaDataString(module, "llvm.loop.vectorize.enable"),
        )
        advice = [module.add_metadata([says[0]]), module.add_metadata([says[1], ir.Constant(ir.IntType(1), 0)])]
        name = ir.values.MDValue(module, [], str(len(module.metadata)))  # a loop is named by a node that holds itself
        name.operands = (name, *advice)
        branch.set_metadata("llvm.loop", name)


def multiply_add(emit: Emit, total: Any, x: Any, y: Any) -> Any:
    """total + products of 16-bit integers, in 32 bits; where there is an instruction for it, with neighbours added."""
    if not PAIRS:
        return emit.b.add(total, emit.b.mul(emit.b.sext(x, total.type), emit.b.sext(y, total.type)))
    name = "llvm.x86.avx512.pmaddw.d.512" if BYTES == 64 else "llvm.x86.avx2.pmadd.wd"
    kind = ir.FunctionType(total.type, [x.type, y.type])
    return emit.b.add(total, emit.b.call(cgutils.get_or_insert_function(emit.b.module, kind, name), [x, y]))


def high_product(emit: Emit, x: Any, y: Any) -> Any:
    """x y / 2^15 of 16-bit integers, rounded; needs PAIRS."""
    name = "llvm.x86.avx512.pmul.hr.sw.512" if BYTES == 64 else "llvm.x86.avx2.pmul.hr.sw"
    kind = ir.FunctionType(x.type, [x.type, y.type])
    return emit.b.call(cgutils.get_or_insert_function(emit.b.module, kind, name), [x, y])


def routine(definition: Callable[..., Any]) -> Any:
    """An intrinsic with a body of its own, which is compiled once in a module, however often it is called.

    Like that of an intrinsic, the definition gives a signature, and a function that writes the body; which is told an
    `Emit` and the arguments.
    """

    @functools.wraps(definition)
    def typed(context: Any, *kinds: Any) -> Any:
        signature, body = definition(context, *kinds)
        name = "_".join([definition.__name__, *map(str, kinds)])

        def call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made, result = builder.module.globals, signature.return_type
            if name not in made:
                kind = ir.VoidType() if result == types.void else context.get_value_type(result)
                function = ir.Function(builder.module, ir.FunctionType(kind, [x.type for x in args]), name)
                function.linkage = "internal"
                function.attributes.add("noinline")
                inside = ir.IRBuilder(function.append_basic_block())
                value = body(Emit(inside), *function.args)
                inside.ret_void() if result == types.void else inside.ret(value)
            value = builder.call(made[name], args)
            return context.get_dummy_value() if result == types.void else value

        return signature, call

    return intrinsic(typed)


@intrinsic
def numbers(context: Any, address: Any, like: Any) -> Any:
    """The numbers from an address on, by their index: what an array is, in less time to compile."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return CPointer(unliteral(like))(types.int64, like), generate


def _emit_products(builder: Any, args: Any) -> list[Any]:
    *rows, p, count = args
    emit, chains = Emit(builder), WHOLE // SHORTS
    bytes_, shorts = ir.VectorType(ir.IntType(8), SHORTS), ir.VectorType(ir.IntType(16), SHORTS)
    totals = ir.VectorType(I32, SHORTS // 2 if PAIRS else SHORTS)
    ahead = builder.mul(count, ir.Constant(I64, len(rows)))

    def turn(i: Any, sums: list[Any]) -> list[Any]:
        at = builder.mul(i, ir.Constant(I64, WHOLE))
        after = []
        for row in rows:  # the next ones mostly follow these, which is more streams than processors foresee
            emit.ask(builder.add(builder.add(row, at), ahead))
        for k in range(chains):
            place = emit.at(at, k * SHORTS)
            y = emit.load(emit.item(p, place, 2), shorts, 2)
            x = [builder.sext(emit.load(builder.add(row, place), bytes_, 1), shorts) for row in rows]
            after += [multiply_add(emit, total, each, y) for total, each in zip(sums[k::chains], x, strict=True)]
        return [after[k * len(rows) + r] for r in range(len(rows)) for k in range(chains)]

    none = [every(totals, 0)] * (chains * len(rows))
    sums = emit.loop(builder.sdiv(count, ir.Constant(I64, WHOLE)), none, turn)
    found = [functools.reduce(builder.add, sums[r * chains : (r + 1) * chains]) for r in range(len(rows))]
    while found[0].type.count > 1:
        found = [builder.add(*emit.halves(total)) for total in found]
    return [builder.extract_element(total, ir.Constant(I32, 0)) for total in found]


@intrinsic
def products(context: Any, q: Any, r: Any, s: Any, t: Any, p: Any, count: Any) -> Any:
    """sum_i q[i] p[i], and so for r, s and t, in 32 bits, where sums may wrap on the way; p has 16 bits, the others 8.

    count is a multiple of WHOLE.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, signature.return_type, _emit_products(builder, args))

    return UniTuple(types.int32, 4)(*[types.int64] * 6), generate
