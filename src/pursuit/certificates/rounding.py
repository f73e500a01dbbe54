"""The rounding errors that certificates allow for, in one place."""

from __future__ import annotations

import numpy as np

from pursuit.arrays import Small, Space

PROJECTION = 4.0
"""The error of a projection, relative to that of an inner product."""

BLOCK = 1 << 19
"""Entries over which BLAS keeps the error of an inner product at a few units of roundoff."""

PRIME = (1 << 31) - 1


def product_error(space: Space) -> float:
    """A bound on the error of <a, b>, relative to ||a|| ||b||, as BLAS computes it in pieces."""
    return space.eps * (4.0 + space.size // BLOCK)


def rank_of(columns: Small) -> int:
    """The rank of a matrix of floats, exactly: they are integers times powers of two, and elimination modulo a prime
    finds the rank of such a matrix, or, for one prime in a billion, less.

    >>> rank_of(np.array([[1.0, 0.1, 1.1], [1.0, 0.2, 1.2]])), rank_of(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]]))
    (2, 2)
    """
    fractions, exponents = np.frexp(columns)
    exponents = exponents - exponents.min()
    powers = np.array([pow(2, e, PRIME) for e in range(int(exponents.max()) + 1)])
    M = np.ldexp(fractions, 53).astype(np.int64) % PRIME * powers[exponents] % PRIME
    rank = 0
    for column in range(M.shape[1]):
        places = np.flatnonzero(M[rank:, column])
        if len(places):
            pivot = rank + int(places[0])
            M[[rank, pivot]] = M[[pivot, rank]]
            factors = M[rank + 1 :, column] * pow(int(M[rank, column]), -1, PRIME) % PRIME
            M[rank + 1 :] = (M[rank + 1 :] - factors[:, None] * M[rank]) % PRIME
            rank += 1
    return rank
