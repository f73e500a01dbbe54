"""Dual points orthogonal to spans: the first step of a bound by the conjugate."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arrays import Array, Small, Space, flat, host
from pursuit.certificates.rounding import PROJECTION, product_error, rank_of
from pursuit.metrics import Identity, Metric

CLEARLY_INDEPENDENT = 1e-10
"""Columns of unit length whose smallest singular value is above this need no exact rank."""

TWICE_AND_AGAIN = 3
"""Projections in a row: the second and the third remove the rounding errors of the first."""


class Spans:
    """The span of columns, one flattened vector each, as given: what is nearly dependent is independent.

    `Q` is an orthonormal basis, and `smallest` the smallest singular value of the columns at unit length; errors of
    orthogonality to Q grow by its inverse. `trusted` is false where the columns are independent but floating-point
    numbers do not show it, as those of a constant and of time stamps in nanoseconds: then Q is not a basis.
    """

    def __init__(self, space: Space, columns: Small) -> None:
        self.space, self.columns = space, columns[:, columns.any(axis=0)]
        lengths = np.abs(self.columns).max(axis=0, initial=0.0)
        unit = self.columns / lengths
        unit /= np.linalg.norm(unit, axis=0)
        U, s, _ = np.linalg.svd(unit, full_matrices=False)
        U[~self.columns.any(axis=1)] = 0.0  # exactly, as in the columns: entries at a bound of 0 stay there
        independent = not len(s) or s[-1] > CLEARLY_INDEPENDENT
        rank = len(s) if independent else rank_of(self.columns)
        self.smallest = min(float(s[rank - 1]), 1.0) if rank else 1.0
        self.trusted = self.smallest > 4.0 * np.finfo(np.float64).eps * max(columns.shape)
        self.Q = space.put(U[:, :rank])
        self._row_norms = space.put(np.linalg.norm(U[:, :rank], axis=1).reshape(space.shape))
        self._error = PROJECTION * product_error(space)

    def without(self, rows: np.ndarray) -> Spans:
        """The span of the columns with these entries set to 0."""
        return Spans(self.space, np.where(rows[:, None], 0.0, self.columns))

    def project(self, vectors: Array) -> Array:
        """Flattened vectors made orthogonal to the span."""
        for _ in range(TWICE_AND_AGAIN):
            vectors = vectors - self.Q @ (self.Q.T @ vectors)
        return vectors

    def nearest(self, g: Array, hessian: Metric | None) -> Array | None:
        """g - H Q (Q'HQ)^-1 Q'g, in the curvature of f* the nearest point to g that is orthogonal to the span; without
        a Hessian H, or where f is flat along the span, that for H = I."""
        for HQ in [] if hessian is None or isinstance(hessian, Identity) else [hessian.batch(self.Q.T).T]:
            values, V = np.linalg.eigh(host(self.Q.T @ HQ))
            curved = values > 1e-12 * values[-1]
            inverse = (V[:, curved] / values[curved]) @ V[:, curved].T
            u = flat(g)
            for _ in range(TWICE_AND_AGAIN):
                u = u - HQ @ self.space.put(inverse @ host(self.Q.T @ u))
            if self.admits(u):
                return self.space.xp.reshape(u, self.space.shape)
        u = self.project(flat(g))
        return self.space.xp.reshape(u, self.space.shape) if self.admits(u) else None

    def admits(self, u: Array) -> bool:
        """Whether a flattened vector is orthogonal to the span, but for the rounding of its own length."""
        return float(np.abs(host(self.Q.T @ u)).max(initial=0.0)) <= self._error * self.space.norm(u)

    def margin(self, u: Array) -> Array:
        """How far the entries of the nearest point that is exactly orthogonal to the span may be from those of u."""
        moved = 2.0 * self._error * math.sqrt(self.Q.shape[1]) * self.space.norm(u)
        return (moved / self.smallest) * self._row_norms
