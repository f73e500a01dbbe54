"""How numba compiles here: helpers into their callers, entry points kept on disk where there is one to write.

What takes it long: 10 ms for an array as an argument (2 for an address), 12 ms for a loop (1 for a `routine`, which is
written for LLVM), 4 ms for an entry of a matrix (3 for one of `numbers`). Where the argument x of a kernel is None, it
compiles nothing of what follows `if x is not None`; but a `part` is written out before that is known.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

Array = Any
"""Kernels are compiled for concrete array types; statically they take anything."""


_ENTRY: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER = _ENTRY | {"no_cpython_wrapper": True}
_ANY_ORDER = {"reassoc", "contract", "nsz"}


def scalar(function: Callable[..., Any]) -> Any:
    """`function` compiled into its caller: without the interpreter lock, C's division."""
    return numba.njit(**_INNER)(function)


def helper(function: Callable[..., Any]) -> Any:
    """As `scalar`, with sums in any order, so that they become vector code, which takes longer to compile."""
    return numba.njit(**_INNER, fastmath=_ANY_ORDER)(function)


def part(function: Callable[..., Any]) -> Any:
    """`function` written out in its caller, in whose way it is compiled: half the time for what is called once."""
    return numba.njit(**_INNER, inline="always")(function)


@functools.cache
def digest() -> str:
    """A name for the state of all kernels: numba itself notices only changes of the file an entry point is in."""
    here = Path(__file__).parent
    names = "_compiled.py", "_vector.py", "_kernels.py", "_ranking.py", "atoms/screening.py"
    sources = [*(here / name for name in names), *sorted(here.glob("encode/*.py"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def kernel(function: Callable[..., Any]) -> Any:
    """An entry point: as `helper`, and its machine code is kept on disk between processes."""
    function.__qualname__ += "_" + digest()
    dispatcher = numba.njit(**_ENTRY, fastmath=_ANY_ORDER)(function)
    with contextlib.suppress(RuntimeError):  # nowhere to write: every process compiles for itself
        dispatcher.enable_caching()
    return dispatcher
