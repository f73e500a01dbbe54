"""The columns of a matrix that have the largest products with a vector, found with an 8-bit copy of the matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit import native
from pursuit._ranking import Backoff, contenders, order, rounding
from pursuit.arrays import Array, Indices, Small
from pursuit.threads import allowed_threads

MIN_SCREENED_ENTRIES = 1 << 21
"""A matrix with fewer entries fits into the processor's cache, where an 8-bit copy saves no time."""

COPY_COST_IN_PRODUCTS = 2
"""Making the copy takes as long as this many products with the matrix."""

SEVERAL_GAIN = 1 / 3
"""What the copy gains in a question for several columns, relative to one for the best: more are recomputed."""

COLUMNS_PER_RECOMPUTED = 10
"""The plain product is as fast where more than one column in this many must be recomputed."""


@dataclass
class Tally:
    """Counts of calls, of calls that were left to the plain product, and of columns recomputed in the others."""

    calls: int = 0
    plain: int = 0
    recomputed: int = 0


def can_be_screened(matrix: Any) -> bool:
    """Whether there can be an 8-bit copy of the matrix."""
    dense = isinstance(matrix, np.ndarray) and matrix.dtype in (np.float32, np.float64)
    return dense and native.is_built()


@dataclass
class Payment:
    """Whether the plain products so far have taken as long as making the 8-bit copy does, after which it is made."""

    min_entries: int = MIN_SCREENED_ENTRIES
    products: float = 0.0

    def covers(self, matrix: Array) -> bool:
        """Whether the copy of this matrix is worth making."""
        large = can_be_screened(matrix) and matrix.size >= self.min_entries
        return large and self.products >= COPY_COST_IN_PRODUCTS

    def add(self, several: int) -> None:
        """Count a question for this many columns."""
        self.products += 1.0 if several == 1 else SEVERAL_GAIN


class Screen:
    """Finds the best columns of a matrix; the docstring of `ScreenedDictionary` has the proof.

    Parameters
    ----------
    matrix : (m, n) NumPy array in float32 or float64, in any memory order
    """

    def __init__(self, matrix: Array) -> None:
        self.matrix, self.trust, self.tally = matrix, Backoff(), Tally()
        kernels, n = native.kernels(matrix.dtype), matrix.shape[1]
        self._copy = kernels.Screen(kernels.Atoms(matrix.T, np.ones(n, matrix.dtype)), allowed_threads())

    def __reduce__(self) -> tuple[Any, ...]:
        return Screen, (self.matrix,)

    def best(self, g: Array, several: int, signed: bool) -> tuple[Indices, Small] | None:
        """The columns with the `several` largest |<a, g>| (or smallest <a, g>, if not `signed`), best first, and their
        products with g; None where only the plain product can tell."""
        self.tally.calls += 1
        found, n = None, self.matrix.shape[1]
        if several * COLUMNS_PER_RECOMPUTED <= n and self.trust.attempts():
            found = self._find(np.ascontiguousarray(g, dtype=np.float64), several, signed)
            self.trust.record(found is not None)
        self.tally.plain += found is None
        return found

    def _find(self, g: Small, several: int, signed: bool) -> tuple[Indices, Small] | None:
        n = self.matrix.shape[1]
        remaining = self._contenders(g, None, several, signed)
        if remaining is not None and len(remaining) > n // COLUMNS_PER_RECOMPUTED**2 + several:  # worth the second code
            places = self._contenders(g, remaining, several, signed)
            remaining = None if places is None else remaining[places]
        if remaining is None or len(remaining) * COLUMNS_PER_RECOMPUTED > n:
            return None
        return self._recompute(remaining, g, several, signed)

    def _contenders(self, g: Small, which: Indices | None, several: int, signed: bool) -> Indices | None:
        """The places of the columns whose intervals reach the best ones: among all columns, by the first code, or among
        the columns `which`, by the second; None where g is out of range."""
        lower, upper = np.empty((2, self.matrix.shape[1] if which is None else len(which)))
        inside = self._copy.intervals(g, which, signed, allowed_threads(), lower, upper)
        return contenders(lower, upper, several) if inside else None

    def _recompute(self, which: Indices, g: Small, several: int, signed: bool) -> tuple[Indices, Small] | None:
        """The best of the columns `which` by products in float64; None where rounding leaves their order in doubt."""
        dtype, value, size = self.matrix.dtype, np.empty(len(which)), np.empty(len(which))
        self._copy.products(g, which, value, size)
        merit = np.abs(value) if signed else -value
        doubt = 2.0 * rounding(len(g), dtype) * size + len(g) * float(np.finfo(dtype).tiny)
        winners = order(merit, doubt, several)
        if winners is None or (signed and bool((merit <= doubt)[winners].any())):  # a place or a sign is in doubt
            return None
        self.tally.recomputed += len(which)
        return which[winners], value[winners]
