"""Kernels of the 8-bit screening and of the entries of factored matrices: free functions of arrays, compiled when this
module is first imported.

Everything lets go of the interpreter lock, so that threads can share the columns. Integer sums may wrap on the way (the
final sums fit into 32 bits, the callers see to that), and the order of floating-point sums is the compiler's: the
bounds hold for any.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
FAST = {"reassoc", "contract"}
FINE = 254.0  # the second code divides the unit of the first by this; half a unit is then 127


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


@compiled("Tuple((i8,f8,f8))(f8[::1],f8,i2[::1])")
def shorten(g: Any, room: float, p: Any) -> tuple[int, float, float]:
    """p with g = 2^e (p + rest) and |p|^2 < room: e, |p|^2 and |rest|^2; the second is 0 where g is zero, infinite, NaN
    or far out of range."""
    largest, finite = 0.0, True
    for i in range(len(g)):
        size = abs(g[i])
        finite &= size < np.inf
        largest = max(largest, size)
    if not (finite and 1e-270 < largest < 1e270):
        return 0, 0.0, 0.0
    exponent = math.frexp(largest)[1] - 14  # |g| / 2^e < 2^14
    while True:
        inverse, squared, left = 2.0**-exponent, 0.0, 0.0
        for i in range(len(g)):
            scaled = g[i] * inverse
            rounded = np.rint(scaled)
            p[i] = np.int16(rounded)
            squared += rounded * rounded  # exact: integers below 2^53
            left += (scaled - rounded) * (scaled - rounded)
        if squared < room:
            return exponent, squared, left
        exponent += 1


@compiled("f8(i1[:,::1],i1[:,::1],i8[::1],i8,i8,i2[::1],f8[::1],f8[::1],f8[::1],f8,f8,b1,f8[::1],f8[::1])")
def enclose(
    coarse: Any, fine: Any, which: Any, start: int, stop: int, p: Any, error: Any, norm: Any, scale: Any,
    length: float, rest: float, signed: bool, lower: Any, upper: Any,
) -> float:  # fmt: skip
    """Intervals for the merits of the named columns (from `start` to `stop`), from the first code or, if `fine` has
    rows, from both; the largest lower end."""
    m, twice, best = coarse.shape[1], len(fine) > 0, -np.inf
    for k in range(start, stop):
        j = which[k]
        q = coarse[j]
        total = np.int32(0)
        for i in range(m):
            total = np.int32(total + np.int32(q[i]) * np.int32(p[i]))
        merit = np.float64(total)
        if twice:
            r = fine[j]
            total = np.int32(0)
            for i in range(m):
                total = np.int32(total + np.int32(r[i]) * np.int32(p[i]))
            merit += total / FINE
        merit = abs(merit) if signed else -merit
        radius = error[j] * length + norm[j] * rest + 1e-3
        lower[k] = (merit - radius) * scale[j]
        upper[k] = (merit + radius) * scale[j]
        best = max(best, lower[k])
    return best


WINNER = "Tuple((i8,f8,i8))({0}[:,::1],f8[::1],f8,f8[::1],b1,f8,f8,i8)"


@compiled(WINNER.format("f8"), WINNER.format("f4"))
def winner(
    rows: Any, upper: Any, bar: float, g: Any, signed: bool, gamma: float, tiny: float, many: int
) -> tuple[int, float, int]:
    """The row of largest merit among those whose upper end reaches the bar, -1 where rounding leaves a doubt; its
    product with g; how many were tried (it ends with more than `many`)."""
    found, value, tried, best, doubt, others = -1, 0.0, 0, -np.inf, 0.0, -np.inf
    for j in range(len(upper)):
        if upper[j] >= bar:
            tried += 1
            if tried > many:
                break
            a = rows[j]
            total = absolute = 0.0
            for i in range(len(g)):
                product = a[i] * g[i]
                total += product
                absolute += abs(product)
            merit = abs(total) if signed else -total
            around = gamma * absolute + tiny
            if merit > best:
                others = max(others, best + doubt)
                found, value, best, doubt = j, total, merit, around
            else:
                others = max(others, merit + around)
    sure = best - doubt > others and not (signed and best <= doubt)
    return found if sure else -1, value, tried


QUANTISE = "void({0}[:,::1],f8[::1],i1[:,::1],f8[:,::1])"


@compiled(QUANTISE.format("f8"), QUANTISE.format("f4"))
def quantise(rows: Any, scale: Any, coarse: Any, sums: Any) -> None:
    """Each row a as scale (coarse + rest), scale = max|a| / 127; sums of squares of rest and a / scale."""
    n, m = rows.shape
    for j in range(n):
        a = rows[j]
        largest = 0.0
        for i in range(m):
            largest = max(largest, abs(np.float64(a[i])))
        scale[j] = largest / 127.0
        inverse = 1.0 / scale[j]
        e2 = z2 = 0.0
        for i in range(m):
            z = a[i] * inverse
            q = np.rint(z)
            rest = z - q
            coarse[j, i] = np.int8(q)
            e2 += rest * rest
            z2 += z * z
        sums[0, j] = e2
        sums[1, j] = z2


@compiled(QUANTISE.format("f8"), QUANTISE.format("f4"))
def refine(rows: Any, scale: Any, fine: Any, sums: Any) -> None:
    """What the first code leaves of each row as scale (fine / 254 + rest); sums of squares of rest."""
    n, m = rows.shape
    for j in range(n):
        a = rows[j]
        inverse = 1.0 / scale[j]
        e2 = 0.0
        for i in range(m):
            z = a[i] * inverse
            rest = z - np.rint(z)
            r = np.rint(FINE * rest)
            left = rest - r * (1.0 / FINE)
            fine[j, i] = np.int8(r)
            e2 += left * left
        sums[0, j] = e2


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


@compiled("void(f8[:,::1],f8[:,::1],i4[::1],i4[::1],f8[::1])")
def row_products(A: Any, B: Any, rows: Any, cols: Any, out: Any) -> None:
    """<A[rows[e]], B[cols[e]]> for every e."""
    for e in range(len(rows)):
        i, j, total = rows[e], cols[e], 0.0
        for k in range(A.shape[1]):
            total += A[i, k] * B[j, k]
        out[e] = total


@compiled("void(i4[::1],i4[::1],f8[::1],f8[:,::1])")
def lower_gram(pointers: Any, indices: Any, data: Any, G: Any) -> None:
    """Adds M'M to the lower triangle of G, for a sparse matrix M by rows with increasing indices."""
    for r in range(len(pointers) - 1):
        for a in range(pointers[r], pointers[r + 1]):
            i, x = indices[a], data[a]
            for b in range(pointers[r], a + 1):
                G[i, indices[b]] += x * data[b]
