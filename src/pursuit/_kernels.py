"""Kernels of the 8-bit screening: free functions of arrays, compiled when this module is first imported.

Everything lets go of the interpreter lock, so that threads can share the columns. Integer sums may wrap on the way (the
final sums fit into 32 bits, the callers see to that), and the order of floating-point sums is the compiler's: the
bounds hold for any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
FAST = {"reassoc", "contract"}


def compiled(*signatures: str) -> Callable[[F], F]:
    """numba.njit with explicit signatures, cached on disk where that can be written to."""

    def compiled_as(function: F, cache: bool) -> Any:
        return numba.njit(list(signatures), cache=cache, nogil=True, error_model="numpy", fastmath=FAST)(function)

    def compile_(function: F) -> F:
        try:
            kernel: F = compiled_as(function, cache=True)
        except (RuntimeError, OSError):  # no place for a cache
            kernel = compiled_as(function, cache=False)
        return kernel

    return compile_


@compiled("void(i1[:,::1],i8[::1],i2[::1],i4[::1])")
def products(codes: Any, which: Any, p: Any, out: Any) -> None:
    """<q_j, p> for the named rows q_j of the codes."""
    m = codes.shape[1]
    for k in range(len(which)):
        q = codes[which[k]]
        total = np.int32(0)
        for i in range(m):
            total = np.int32(total + np.int32(q[i]) * np.int32(p[i]))
        out[k] = total


QUANTISE = "void({0}[:,::1],f8[::1],i1[:,::1],i1[:,::1],f8[:,::1])"


@compiled(QUANTISE.format("f8"), QUANTISE.format("f4"))
def quantise(rows: Any, scale: Any, coarse: Any, fine: Any, sums: Any) -> None:
    """Each row a as scale (coarse + fine / 254 + rest); sums of squares of coarse, fine, both rests and a / scale."""
    n, m = rows.shape
    for j in range(n):
        a = rows[j]
        inverse = 1.0 / scale[j]
        q1 = q2 = e1 = e2 = z2 = 0.0
        for i in range(m):
            z = a[i] * inverse
            q = np.rint(z)
            rest = z - q
            r = np.rint(254.0 * rest)
            left = rest - r * (1.0 / 254.0)
            coarse[j, i] = np.int8(q)
            fine[j, i] = np.int8(r)
            q1 += q * q
            q2 += r * r
            e1 += rest * rest
            e2 += left * left
            z2 += z * z
        sums[0, j] = q1
        sums[1, j] = q2
        sums[2, j] = e1
        sums[3, j] = e2
        sums[4, j] = z2


DOTS = "void({0}[:,::1],i8[::1],f8[::1],f8[::1],f8[::1])"


@compiled(DOTS.format("f8"), DOTS.format("f4"))
def dots(rows: Any, which: Any, g: Any, value: Any, size: Any) -> None:
    """<a, g> and <|a|, |g|> in float64 for some of the rows a."""
    m = rows.shape[1]
    for k in range(len(which)):
        a = rows[which[k]]
        total = absolute = 0.0
        for i in range(m):
            product = a[i] * g[i]
            total += product
            absolute += abs(product)
        value[k] = total
        size[k] = absolute
