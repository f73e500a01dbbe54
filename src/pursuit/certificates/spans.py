"""Dual points nearly orthogonal to spans, for estimates."""

from __future__ import annotations

import numpy as np

from pursuit.arrays import Array, Small, Space, flat, host
from pursuit.linalg.vectors import EPS
from pursuit.metrics import Metric

SMALL = 1e3
"""Units of roundoff of a vector up to which its products with a basis are zero but for rounding."""


class Spans:
    """The span of columns, one flattened vector each, as given: what is nearly dependent is independent."""

    def __init__(self, space: Space, columns: Small) -> None:
        self.space, self.columns = space, columns[:, columns.any(axis=0)]
        exponents = np.frexp(np.abs(self.columns).max(axis=0, initial=0.0))[1]
        self.columns = np.ldexp(self.columns, -exponents)  # the same span, without a rounding error
        U, s, _ = np.linalg.svd(self.columns / np.linalg.norm(self.columns, axis=0), full_matrices=False)
        U[~self.columns.any(axis=1)] = 0.0  # entries of a dual point at a bound of 0 stay there
        kept = s > EPS * s.max(initial=0.0)
        self.Q = space.put(U[:, kept])
        self.error = 4.0 * space.eps / s[kept].min(initial=1.0)
        """How far a vector of length 1 is from orthogonal to the span after a projection, as a rule."""

    def without(self, rows: np.ndarray) -> Spans:
        """The span of the columns with these entries set to 0."""
        return Spans(self.space, np.where(rows[:, None], 0.0, self.columns))

    def project(self, vectors: Array) -> Array:
        """Flattened vectors made orthogonal to the span, twice for the rounding error of once."""
        for _ in range(2):
            vectors = vectors - self.Q @ (self.Q.T @ vectors)
        return vectors

    def nearest(self, g: Array, hessian: Metric | None) -> Array:
        """g - H Q (Q'HQ)^-1 Q'g, in the curvature of f* the nearest point to g that is orthogonal to the span; without
        a Hessian H, or where f is flat along the span, that for H = I."""
        u = flat(g)
        if self.Q.shape[1] and hessian is not None and not hessian.uniform:
            HQ = hessian.batch(self.Q.T).T
            values, V = np.linalg.eigh(host(self.Q.T @ HQ))
            curved = values > 1e-12 * values[-1]
            for _ in range(3):
                rest = V[:, curved].T @ host(self.Q.T @ u)
                u = u - HQ @ self.space.put(V[:, curved] @ (rest / values[curved]))
            if float(np.linalg.norm(host(self.Q.T @ u))) <= SMALL * self.space.eps * self.space.norm(u):
                return self.space.xp.reshape(u, self.space.shape)
            u = flat(g)
        return self.space.xp.reshape(self.project(u), self.space.shape)
