"""The account of rounding errors: sums and products of floats that are exact but for a bounded error.

All proofs of certificates rest on two facts of IEEE arithmetic. Without overflow, the error of a sum and that of a
product of two floats are floats, too (Knuth; Dekker). And in floating-point arithmetic of unit roundoff `EPS / 2` every
sum of n numbers is within n EPS sum |a_i| of the exact one, in whatever order, for n EPS < 1/4 (Higham, section 4.2).
So sums of the errors, which are smaller by EPS already, leave an error in proportion to EPS squared.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from pursuit.arrays import Small, Space
from pursuit.linalg.vectors import EPS

SPLIT = 134217729.0
"""2^27 + 1: a float times this splits into two halves of 26 digits."""

SMALLEST = 1e-320
"""More than the error of a term by underflow."""

BLOCK = 1 << 19
"""Entries over which a BLAS keeps the error of an inner product at a few units of roundoff, as measured."""

PIECE = 1 << 16
"""Rows of longer matrices that are added at a time."""

PRIMES = (2147483629, 2147483587, 2147483563)

F = TypeVar("F", float, Small)


def product_error(space: Space) -> float:
    """The error of <a, b> that oracles of the library and of users are trusted with, relative to ||a|| ||b||."""
    return space.eps * (4.0 + space.size // BLOCK)


def two_sum(a: F, b: F) -> tuple[F, F]:
    """s = fl(a + b) and its error: a + b = s + e."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: F, b: F) -> tuple[F, F]:
    """p = fl(a b) and its error: a b = p + e.

    >>> two_product(1.0 + 2.0**-30, 1.0 + 2.0**-30) == (1.0 + 2.0**-29, 2.0**-60)
    True
    """
    p, c, d = a * b, SPLIT * a, SPLIT * b
    high, most = c - (c - a), d - (d - b)
    low, least = a - high, b - most
    return p, low * least - (((p - high * most) - low * most) - high * least)


def column_sums(a: Small) -> tuple[Small, Small]:
    """The sums over the first axis as floats, and bounds on their errors.

    >>> sums, errors = column_sums(np.array([[1e16], [1.0], [-1e16], [1.0]]))
    >>> float(sums[0]), bool(errors[0] < 1e-13)
    (2.0, True)
    """
    n = len(a)
    if n > PIECE:  # so that little memory is needed
        pieces = [column_sums(a[i : i + PIECE]) for i in range(0, n, PIECE)]
        sums, errors = column_sums(np.stack([total for total, _ in pieces]))
        return sums, errors + (1.0 + n * EPS) * sum(error for _, error in pieces)
    size, rest = np.abs(a).sum(axis=0), np.zeros(a.shape[1:])
    while len(a) > 1:
        half = len(a) // 2
        s, e = two_sum(a[:half], a[half : 2 * half])
        rest, a = rest + e.sum(axis=0), np.concatenate([s, a[2 * half :]])
    total = a[0] + rest if n else rest
    return total, EPS * np.abs(total) + 2.0 * n * (n.bit_length() + 1) * EPS * EPS * size + n * SMALLEST


def column_products(A: Small, u: Small) -> tuple[Small, Small]:
    """A'u, and bounds on the errors of its entries."""
    p, e = two_product(A, u[:, None])
    return column_sums(np.concatenate([p, e]))


def rank_of(columns: Small) -> int:
    """The rank of a matrix of floats, exactly: they are integers times powers of two, and elimination modulo a prime
    finds the rank of such a matrix, or less where the prime divides minors. Three primes divide them once in 1e27.

    >>> rank_of(np.array([[1.0, 0.1, 1.1], [1.0, 0.2, 1.2]])), rank_of(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]]))
    (2, 2)
    """
    rank = 0
    for prime in PRIMES:
        rank = rank if rank == min(columns.shape) else max(rank, _rank_modulo(columns, prime))
    return rank


def _rank_modulo(columns: Small, prime: int) -> int:
    fractions, exponents = np.frexp(columns)
    exponents = exponents - exponents.min(initial=0)
    powers = np.array([pow(2, e, prime) for e in range(int(exponents.max(initial=0)) + 1)])
    M = np.ldexp(fractions, 53).astype(np.int64) % prime * powers[exponents] % prime
    rank = 0
    for column in range(M.shape[1]):
        places = np.flatnonzero(M[rank:, column])
        if len(places):
            pivot = rank + int(places[0])
            M[[rank, pivot]] = M[[pivot, rank]]
            factors = M[rank + 1 :, column] * pow(int(M[rank, column]), -1, prime) % prime
            M[rank + 1 :] = (M[rank + 1 :] - factors[:, None] * M[rank]) % prime
            rank += 1
    return rank


def below(value: float, error: float) -> float:
    """A float below value - error; minus infinity where one of them is not a number."""
    out = math.nextafter(value - error * (1.0 + EPS), -math.inf)
    return out if out < math.inf else -math.inf
