"""Words of memory that threads in compiled code talk through. Arguments are addresses of 64-bit integers."""

from __future__ import annotations

import sys
from typing import Any

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_I64 = ir.IntType(64)
_WORD = types.int64


def _pointer(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _I64.as_pointer())


@intrinsic
def read(context: Any, address: Any) -> Any:
    """The word, and everything written before it was published."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_pointer(builder, args[0]), "acquire", 8)

    return _WORD(_WORD), generate


@intrinsic
def publish(context: Any, address: Any, value: Any) -> Any:
    """The word becomes `value`, after everything written before."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _pointer(builder, args[0]), "release", 8)
        return context.get_dummy_value()

    return types.void(_WORD, _WORD), generate


@intrinsic
def increase(context: Any, address: Any) -> Any:
    """The word, which is then one more."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _pointer(builder, args[0]), ir.Constant(_I64, 1), "acq_rel")

    return _WORD(_WORD), generate


@intrinsic
def claim(context: Any, address: Any, value: Any) -> Any:
    """Whether the word was `value`, and is now one more: of several threads that try, one succeeds."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        after = builder.add(args[1], ir.Constant(_I64, 1))
        pair = builder.cmpxchg(_pointer(builder, args[0]), args[1], after, "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(_WORD, _WORD), generate


@intrinsic
def pause(context: Any) -> Any:
    """A moment for whoever shares the core."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if binding.get_process_triple().startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(context: Any) -> Any:
    """Whoever waits for this core may have it for a while."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if sys.platform != "win32":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate
