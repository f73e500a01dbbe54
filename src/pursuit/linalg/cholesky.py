"""A Cholesky factor of a Gram matrix to which vectors are added and from which they are removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.linalg.lapack import dpotrf, dtpqrt, dtrtrs

from pursuit.arrays import Small
from pursuit.linalg.vectors import EPS
from pursuit.state import Stateful

NEARLY_SINGULAR = 1e-6
"""With a squared pivot below this, solutions lose half of their digits and need iterative refinement."""


@dataclass(eq=False)
class CholeskyFactor(Stateful):
    r"""The lower triangular L with :math:`L L^\top = M`, for the Gram matrix M of a changing list of unit vectors.

    One more vector, with inner products m with the others, appends the row
    :math:`(r, \sqrt{p})` with :math:`L r = m` and the squared pivot :math:`p = 1 - \|r\|^2`, its squared distance to
    their span; :math:`y = L^{-\top} r` are the coefficients of the point of the span nearest to it. Without vector i,
    rows below i keep all but their entry in column i, v, and the triangle T that begins there becomes the factor of
    :math:`T T^\top + v v^\top`. Both cost O(k^2).

    >>> factor = CholeskyFactor()
    >>> factor.build(np.array([[1.0, 0.6], [0.6, 1.0]]))
    True
    >>> factor.append(np.array([0.0, 0.48]))
    >>> factor.L
    array([[1. , 0. , 0. ],
           [0.6, 0.8, 0. ],
           [0. , 0.6, 0.8]])
    >>> factor.drop(0)
    >>> (factor.L @ factor.L.T).round(12)
    array([[1.  , 0.48],
           [0.48, 1.  ]])
    """

    k: int = field(default=0, init=False)
    _L: Small = field(default_factory=partial(np.zeros, (16, 16), order="F"), init=False)

    @property
    def L(self) -> Small:
        return self._L[: self.k, : self.k]

    @property
    def smallest_pivot(self) -> float:
        """The smallest squared pivot; 1 for an empty factor."""
        return float(self._L.diagonal()[: self.k].min(initial=1.0)) ** 2

    def _reserve(self, k: int) -> None:
        grown = np.zeros((2 * k, 2 * k), order="F")
        grown[: self.k, : self.k] = self.L
        self._L = grown

    def build(self, M: Small) -> bool:
        """Factor M at once; False, and the factor is unchanged, where M is nearly singular or not definite."""
        L, info = dpotrf(M, lower=1)
        if info != 0 or (len(M) and L.diagonal().min() ** 2 <= NEARLY_SINGULAR):
            return False
        if len(M) > len(self._L):
            self._reserve(len(M))
        self.k = len(M)
        self._L[: self.k, : self.k] = L
        return True

    def append(self, m: Small, rounding: float = 1.0, zero: bool = False) -> Small | None:
        """Append a vector with inner products m; or return the coefficients y of the point nearest to it, where its
        squared pivot may be rounding (times this factor) or the vector is known to be zero."""
        k, r = self.k, self._triangular(m, 0)
        y, pivot = self._triangular(r, 1), 1.0 - float(r @ r)
        if zero or not pivot > rounding * pivot_rounding(y):
            return y
        if k == len(self._L):
            self._reserve(k + 1)
        self._L[k, :k] = r
        self._L[k, k] = np.sqrt(pivot)
        self.k += 1
        return None

    def drop(self, i: int) -> None:
        """Delete row and column i of M."""
        k = self.k
        v = self._L[i + 1 : k, i].copy()
        self._L[i : k - 1, :i] = self._L[i + 1 : k, :i]
        self._L[i : k - 1, i : k - 1] = self._L[i + 1 : k, i + 1 : k]
        self._L[k - 1, :k] = 0.0
        self.k = k - 1
        if len(v):  # by reflections, which are stable also where vectors are nearly dependent
            T = self._L[i : k - 1, i : k - 1]
            R = np.triu(dtpqrt(0, min(16, len(v)), T.T, v[None, :])[0])
            T[:] = (R * np.sign(R.diagonal())[:, None]).T

    def _triangular(self, b: Small, trans: int) -> Small:
        if not self.k:
            return np.zeros(b.shape)
        return np.asarray(dtrtrs(self._L[:, : self.k], b, lower=1, trans=trans)[0])  # F order, or it copies

    def solve(self, b: Small) -> Small:
        """M^-1 b."""
        return self._triangular(self._triangular(b, 0), 1)


def pivot_rounding(y: Small) -> float:
    """The largest squared pivot that may be rounding; y are the coefficients of the nearest combination.

    The squared pivot is the squared distance (e - y)'M(e - y), so its error grows with the square of the sum of |y|.
    """
    return (len(y) + 2) * EPS * max(16.0, float(np.abs(y).sum()) ** 2)
