r"""Correlations with the gradient of a quadratic, from a Gram matrix that the user has.

For a quadratic f with Hessian M, the gradient at :math:`x = \sum_j w_j D_j` is :math:`\nabla f(0) + M x`, so

.. math:: D^\top \nabla f(x) = c_0 + \sum_j w_j\, D^\top M D_j, \qquad c_0 = D^\top \nabla f(0):

k rows of the Gram matrix :math:`D^\top M D` instead of a pass over all of D.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit._arrays import Array, Indices, Small, flat
from pursuit._ranking import Backoff, order, rounding
from pursuit.metrics import Metric


@dataclass
class Tally:
    """The number of calls, and of products with all of D."""

    calls: int = 0
    passes: int = 0


class Correlations:
    r"""D' grad f(x) for a quadratic f along a run, with the same best atoms as the plain product at a lower cost.

    The answer is D' grad up to rounding, with this guarantee: the `several` best entries (largest modulus, or smallest
    value if not `signed`), their order and their signs are those of the floating-point product `D.T @ grad`. Every
    answer is computed from :math:`c_0` and the weights, not from the answer before, so errors do not accumulate. They
    are at most

    .. math:: \varepsilon = 4 \gamma\, \max_j \|D_j\| \left( \|g\| + 2 \sum_i |w_i| \|M D_i\| \right), \qquad
              \gamma = 2 (d + k + 32) u,

    which covers :math:`c_0`, the Gram matrix, the sum, and the caller's rounding of x and of g. Entries within
    :math:`2\varepsilon` of the best are recomputed from g itself. The plain product is returned if one of them errs by
    more than :math:`\varepsilon` (the Gram matrix or g does not belong to D and the weights), if there are too many of
    them, or if the rounding of a plain product could change their order.

    Parameters
    ----------
    D : (d, n) NumPy array
    metric : Diagonal or Operator
        M, the constant Hessian of f.
    c0 : (n,) array
        D' grad f(0), as the plain product computes it; the answer at x = 0.
    gram : (n, n) array
        D' M D.
    several : int
        The number of best entries that are guaranteed.
    signed : bool
        Whether the best are the largest in modulus (lin, signed dictionaries) or the smallest.
    radius : float
        max ||D_j||.

    Examples
    --------
    >>> import pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((50, 400))
    >>> y = D[:, 3] + D[:, 5]
    >>> C = Correlations(D, ps.LeastSquares(y).metric, D.T @ -y, D.T @ D, radius=ps.Dictionary(D).radius)
    >>> c = C.correlations(D[:, 3] - y, [3], [1.0])
    >>> int(np.abs(c).argmax()), bool(np.allclose(c, D.T @ (D[:, 3] - y))), C.tally.passes
    (5, True, 0)
    """

    def __init__(
        self,
        D: Array,
        metric: Metric,
        c0: Array,
        gram: Array,
        *,
        several: int = 1,
        signed: bool = True,
        radius: float,
    ) -> None:
        self.D, self.metric, self.gram = D, metric, gram
        self.c0 = np.asarray(c0, dtype=D.dtype)
        self.several, self.signed, self.radius = several, signed, radius
        self.tally, self._backoff = Tally(), Backoff()
        self._eps, self._tiny = rounding(0, D.dtype) / 32, D.shape[0] * float(np.finfo(D.dtype).tiny)
        self._rows = np.empty((0, len(self.c0)), dtype=self.c0.dtype)
        self._place: dict[int, tuple[int, float]] = {}  # column j -> the place of its row, ||M D_j||

    def correlations(self, grad: Array, sources: Sequence[int] | Indices, coefs: Any) -> Small:
        """D' grad, where grad = grad f(sum_j coefs_j D_j), j over the sources; a new array."""
        self.tally.calls += 1
        g, which, w = flat(grad), *_merged(sources, coefs)
        if not len(which):
            return self.c0.copy()
        if self._backoff.attempts():
            c = self._combine(which, w)
            proved = self._correct_best(c, g, which, w)
            self._backoff.record(proved)
            if proved:
                return c
        self.tally.passes += 1
        return np.asarray(self.D.T @ g)

    def _combine(self, which: Indices, w: Small) -> Small:
        """c0 + sum_j w_j gram_j: one product with stored copies of the rows in use."""
        if len(self._place) > 4 * len(which) + 64:  # most rows are no longer in use
            self._place.clear()
        for j in which.tolist():
            if j not in self._place:
                self._add(j)
        coefs = np.zeros(len(self._place), dtype=self.c0.dtype)
        coefs[[self._place[j][0] for j in which.tolist()]] = w
        return np.asarray(self.c0 + coefs @ self._rows[: len(coefs)])

    def _add(self, j: int) -> None:
        used = len(self._place)
        if used == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty((used + 16, len(self.c0)), dtype=self.c0.dtype)])
        self._rows[used] = self.gram[j]
        norm = float(np.linalg.norm(flat(self.metric(np.ascontiguousarray(self.D[:, j])))))
        self._place[j] = used, norm

    def _correct_best(self, c: Small, g: Array, which: Indices, w: Small) -> bool:
        """Recompute the best entries of c in place; False where it is not proved which entries are the best."""
        d, n = self.D.shape
        several, length = min(self.several, n), math.sqrt(float(g @ g))
        gamma = (d + len(which) + 32) * self._eps
        lengths = sum(abs(weight) * self._place[j][1] for j, weight in zip(which.tolist(), w.tolist(), strict=True))
        error = 4.0 * gamma * self.radius * (length + 2.0 * lengths)
        rounding_error = 2.0 * gamma * self.radius * length + self._tiny
        merit = np.abs(c) if self.signed else -c
        threshold = merit.max() if several == 1 else np.partition(merit, n - several)[n - several]
        best = np.flatnonzero(merit >= threshold - 2.0 * error)
        if not math.isfinite(error) or not 0 < len(best) <= 2 * several + n // 20:
            return False
        values = self.D.T[best].astype(np.float64, copy=False) @ g
        if not np.abs(values - c[best]).max() <= error:  # NaN too
            return False
        exact = np.abs(values) if self.signed else -values
        winners = order(exact, np.full(len(best), rounding_error), several)
        c[best] = values
        return winners is not None and (not self.signed or bool(exact[winners].min() > rounding_error))


def _merged(sources: Sequence[int] | Indices, coefs: Any) -> tuple[Indices, Small]:
    """Each column once, with the sum of its coefficients; columns with the sum 0 are left out."""
    which, w = np.asarray(sources, dtype=np.intp), np.asarray(coefs, dtype=np.float64)
    if len(set(which.tolist())) < len(which):
        which, inverse = np.unique(which, return_inverse=True)
        w = np.bincount(inverse, weights=w).astype(np.float64)
    some = w != 0
    return which[some], w[some]
