"""Kernels of the 8-bit screening and of the entries of factored matrices: free functions of arrays.

Everything lets go of the interpreter lock, so that threads can share the columns. Integer sums may wrap on the way (the
final sums fit into 32 bits, the callers see to that). The order of floating-point sums is the compiler's, and where it
fuses a product with a sum: the bounds hold for any, and nothing relies on two kernels rounding alike.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import helper, kernel, part
from pursuit._vector import numbers, products

FINE = 254.0  # the second code divides the unit of the first by this; half a unit is then 127


@kernel
def shorten(g: Any, room: float, p: Any) -> tuple[int, float, float]:
    """p with g = 2^e (p + rest) and |p|^2 < room: e, |p| and |rest|, rounded up; the second is 0 where g is zero,
    infinite, NaN or far out of range."""
    largest, finite = 0.0, True
    for i in range(len(g)):
        size = abs(g[i])
        finite &= size < np.inf
        largest = max(largest, size)
    if not (finite and 1e-270 < largest < 1e270):
        return 0, 0.0, 0.0
    exponent = math.frexp(largest)[1] - 14  # |g| / 2^e < 2^14
    while True:
        inverse, squared, left = math.ldexp(1.0, -exponent), 0.0, 0.0
        for i in range(len(g)):
            scaled = g[i] * inverse
            rounded = np.rint(scaled)
            p[i] = np.int16(rounded)
            squared += rounded * rounded  # exact: integers below 2^53
            left += (scaled - rounded) * (scaled - rounded)
        if squared < room:
            slack = 1.0 + (len(g) + 8) * 2.0**-52
            return exponent, math.sqrt(squared) * slack, math.sqrt(left) * slack + 1e-12
        exponent += 1


@part
def intervals(
    coarse: int, fine: int, twice: bool, at_which: int, start: int, stop: int, at_p: int, m: int, at_error: int,
    at_norm: int, at_scale: int, length: float, rest: float, signed: bool, at_lower: int, at_upper: int,
) -> float:  # fmt: skip
    """As `enclose`, with addresses instead of arrays, for codes of m entries."""
    which, best = numbers(at_which, m), -np.inf
    error, norm, scale = numbers(at_error, length), numbers(at_norm, length), numbers(at_scale, length)
    lower, upper = numbers(at_lower, length), numbers(at_upper, length)
    for k in range(start, stop, 4):
        last = stop - 1
        rows = which[k], which[min(k + 1, last)], which[min(k + 2, last)], which[min(k + 3, last)]
        q, r, s, t = rows[0] * m, rows[1] * m, rows[2] * m, rows[3] * m
        found = products(coarse + q, coarse + r, coarse + s, coarse + t, at_p, m)
        more = products(fine + q, fine + r, fine + s, fine + t, at_p, m) if twice else found
        for i in range(min(4, stop - k)):
            j = rows[i]
            merit = found[i] + more[i] / FINE if twice else np.float64(found[i])
            merit = abs(merit) if signed else -merit
            radius = error[j] * length + norm[j] * rest + 1e-3
            lower[k + i] = (merit - radius) * scale[j]
            upper[k + i] = (merit + radius) * scale[j]
            best = max(best, lower[k + i])
    return best


@kernel
def enclose(
    coarse: Any, fine: Any, which: Any, start: int, stop: int, p: Any, error: Any, norm: Any, scale: Any,
    length: float, rest: float, signed: bool, lower: Any, upper: Any,
) -> float:  # fmt: skip
    """Intervals for the merits of the named columns (from `start` to `stop`), from the first code or, if `fine` has
    rows, from both; the largest lower end."""
    codes, ends = (coarse.ctypes.data, fine.ctypes.data), (lower.ctypes.data, upper.ctypes.data)
    facts = error.ctypes.data, norm.ctypes.data, scale.ctypes.data
    return intervals(
        codes[0], codes[1], len(fine) > 0, which.ctypes.data, start, stop, p.ctypes.data, coarse.shape[1], facts[0],
        facts[1], facts[2], length, rest, signed, ends[0], ends[1],
    )  # fmt: skip


@helper
def measure(a: Any, g: Any) -> tuple[float, float]:
    """<a, g> and <|a|, |g|> in float64."""
    total = absolute = 0.0
    for i in range(len(g)):
        product = a[i] * g[i]
        total += product
        absolute += abs(product)
    return total, absolute


@kernel
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
            total, absolute = measure(rows[j], g)
            merit = abs(total) if signed else -total
            around = gamma * absolute + tiny
            if merit > best:
                others = max(others, best + doubt)
                found, value, best, doubt = j, total, merit, around
            else:
                others = max(others, merit + around)
    sure = best - doubt > others and not (signed and best <= doubt)
    return found if sure else -1, value, tried


@kernel
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


@kernel
def refine(rows: Any, scale: Any, coarse: Any, fine: Any, sums: Any) -> None:
    """What the first code leaves of each row as scale (fine / 254 + rest); sums of squares of rest."""
    n, m = rows.shape
    for j in range(n):
        a = rows[j]
        inverse = 1.0 / scale[j]
        e2 = 0.0
        for i in range(m):
            z = a[i] * inverse
            rest = z - coarse[j, i]  # not rint(z), which may be rounded another way here than there
            r = np.rint(FINE * rest)
            left = rest - r * (1.0 / FINE)
            fine[j, i] = np.int8(r)
            e2 += left * left
        sums[0, j] = e2


@kernel
def dots(rows: Any, which: Any, g: Any, value: Any, size: Any) -> None:
    """<a, g> and <|a|, |g|> in float64 for some of the rows a."""
    for k in range(len(which)):
        value[k], size[k] = measure(rows[which[k]], g)


@kernel
def row_products(A: Any, B: Any, rows: Any, cols: Any, out: Any) -> None:
    """<A[rows[e]], B[cols[e]]> for every e."""
    for e in range(len(rows)):
        i, j, total = rows[e], cols[e], 0.0
        for k in range(A.shape[1]):
            total += A[i, k] * B[j, k]
        out[e] = total


@kernel
def lower_gram(pointers: Any, indices: Any, data: Any, G: Any) -> None:
    """Adds M'M to the lower triangle of G, for a sparse matrix M by rows with increasing indices."""
    for r in range(len(pointers) - 1):
        for a in range(pointers[r], pointers[r + 1]):
            i, x = indices[a], data[a]
            for b in range(pointers[r], a + 1):
                G[i, indices[b]] += x * data[b]
