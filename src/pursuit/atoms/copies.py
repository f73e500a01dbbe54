r"""The columns with the largest products with a vector, from an 8-bit copy of a matrix in memory.

Column a is kept as s q with q of 8-bit integers and :math:`s = \max|a_i| / 127`, and g is rounded to t p, p of 16-bit
integers and t a power of two. With the norms :math:`E = \|a/s - q\|` and :math:`Z = \|a/s\|`, known from the time the
copy was made, and :math:`\rho = \|g/t - p\|`, Cauchy-Schwarz gives

.. math:: |a^\top g - s t\, q^\top p| \le st \left( E \|p\| + Z \rho \right),

and the integer :math:`q^\top p` is exact. Columns that this does not exclude are compared by a second code, of
:math:`254 (a/s - q)`, and the few that remain by products in float64. docs/speed.md has the bounds of all rounding
errors, and why the answers are those of the plain product :math:`D^\top g`, bit for bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pursuit import native
from pursuit.arguments import describe
from pursuit.arrays import Array, Indices, Small
from pursuit.linalg.ranking import contenders, order, rounding
from pursuit.threads import allowed_threads

MIN_SCREENED_ENTRIES = 1 << 21
"""A matrix with fewer entries fits into the processor's cache, where an 8-bit copy saves no time."""
COPY_COST_IN_PRODUCTS = 2
"""Making the copy takes as long as this many products with the matrix."""
SEVERAL_GAIN = 1 / 3
"""What the copy gains in a question for several columns, relative to one for the best: more are recomputed."""
COLUMNS_PER_RECOMPUTED = 10
"""The plain product is as fast where more than one column in this many must be recomputed."""
LONGEST_PAUSE = 63
"""The largest number of questions after a failure that do not read the copy."""


def entries_to_copy(matrix: Array | None) -> int:
    """The number of entries of a matrix of which there can be an 8-bit copy; 0 for others."""
    dense = isinstance(matrix, np.ndarray) and matrix.dtype in (np.float32, np.float64)
    return matrix.size if dense and matrix is not None and native.is_built() else 0


def check_can_be_copied(matrix: Array | None) -> None:
    """Refuse a matrix of which there is no 8-bit copy."""
    if not (isinstance(matrix, np.ndarray) and matrix.dtype in (np.float32, np.float64)):
        kind = "no array" if matrix is None else f"{describe(matrix)} and dtype {matrix.dtype}"
        raise TypeError(f"D is {kind}; an 8-bit copy needs a dense NumPy array in float32 or float64.")


@dataclass
class Attempts:
    """When a run reads the 8-bit copy before the matrix: once plain products have taken as long as making the copy
    does; then always, but for 1, 3, 7, ... 63 products after successive attempts that have excluded too few columns.
    """

    wait: float
    """Plain products until the next attempt."""
    pause: int = 0

    @classmethod
    def begin(cls, entries: int, least: float, made: bool) -> Attempts:
        """For a matrix of which there is a copy, or is one to be made if it has at least so many entries."""
        return cls(0.0 if made else COPY_COST_IN_PRODUCTS if entries >= least else math.inf)

    def due(self, several: int, n: int) -> bool:
        """Whether to read the copy for the `several` best of n columns."""
        return self.wait <= 0.0 and several * COLUMNS_PER_RECOMPUTED <= n

    def count_product(self, several: int) -> None:
        """Count a question that the plain product has answered."""
        self.wait -= 1.0 if several == 1 else SEVERAL_GAIN

    def record(self, succeeded: bool) -> None:
        """Record the outcome of an attempt."""
        self.pause = 0 if succeeded else min(2 * self.pause + 1, LONGEST_PAUSE)
        self.wait = self.pause


class EightBitCopy:
    """An 8-bit copy of a matrix in memory: one byte an entry, with columns padded to a multiple of 64 entries, and as
    much again for the second code, once it is needed.

    Parameters
    ----------
    matrix : (m, n) NumPy array in float32 or float64, in any memory order; it is shared
    """

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        kernels = native.kernels(matrix.dtype)
        unscaled = kernels.Atoms(matrix.T, np.ones(matrix.shape[1], matrix.dtype))
        self.kernel = kernels.Screen(unscaled, allowed_threads())

    def __reduce__(self) -> tuple[type[EightBitCopy], tuple[Array]]:
        return EightBitCopy, (self.matrix,)

    def best(self, g: Array, several: int, signed: bool) -> tuple[Indices, Small] | None:
        """The columns with the `several` largest |<a, g>| (or smallest <a, g>, if not `signed`), best first, and their
        products with g; None where only the plain product can tell."""
        which = self.contenders(g, several, signed)
        if which is None:
            return None
        dtype, value, size = self.matrix.dtype, np.empty(len(which)), np.empty(len(which))
        self.kernel.products(np.ascontiguousarray(g, dtype=np.float64), which, value, size)
        merit = np.abs(value) if signed else -value
        error = 2.0 * rounding(len(g), dtype) * size + len(g) * float(np.finfo(dtype).tiny)
        winners = order(merit, error, several)
        if winners is None or (signed and bool((merit <= error)[winners].any())):  # a place or a sign is in doubt
            return None
        return which[winners], value[winners]

    def contenders(self, g: Array, several: int, signed: bool) -> Indices | None:
        """The columns that can be among the best; None where they are too many, or g is out of range."""
        g, n = np.ascontiguousarray(g, dtype=np.float64), self.matrix.shape[1]
        which = self._reaching(g, None, several, signed)
        if which is not None and len(which) > n // COLUMNS_PER_RECOMPUTED**2 + several:  # worth the second code
            places = self._reaching(g, which, several, signed)
            which = None if places is None else which[places]
        return None if which is None or len(which) * COLUMNS_PER_RECOMPUTED > n else which

    def _reaching(self, g: Small, which: Indices | None, several: int, signed: bool) -> Indices | None:
        """The places of the columns whose intervals reach the best ones: among all columns, by the first code, or among
        the columns `which`, by the second; None where g is out of range."""
        lower, upper = np.empty((2, self.matrix.shape[1] if which is None else len(which)))
        inside = self.kernel.intervals(g, which, signed, allowed_threads(), lower, upper)
        return contenders(lower, upper, several) if inside else None
