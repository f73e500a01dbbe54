"""Unit balls of norms made of sorted entries, and ellipsoids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg

from pursuit.arguments import floating_array, real_array, require
from pursuit.arrays import Array, Small, Space, flat, host
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.atoms.matrices import symmetric_eigenvalues
from pursuit.atoms.sparse import SparseAtom
from pursuit.linalg import EPS


class OrderedWeights(Atoms):
    r"""The unit ball of the ordered weighted L1 norm (OWL, SLOPE) :math:`\sum_i w_i |x|_{(i)}`, with
    :math:`|x|_{(1)} \ge |x|_{(2)} \ge \ldots`

    The dual norm is :math:`\max_k \frac{|g|_{(1)} + \ldots + |g|_{(k)}}{w_1 + \ldots + w_k}`, and the oracle answers
    :math:`-\operatorname{sign}(g_i) / (w_1 + \ldots + w_k)` at the k largest entries of the best k.

    Equal weights give the L1 ball, (1, 0, ..., 0) the box, and k ones followed by zeros the ball of the largest-k norm
    (k-norm), the sum of the k largest entries in size. The largest-k norm is dual to the gauge of `KSparse(n, k)`.
    The weights are decreasing, at least 0, and the first one positive.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.OrderedWeights([3.0, 2.0, 1.0])
    >>> A.lmo(np.array([4.0, -5.0, 0.0])).vector, A.gauge(np.array([4.0, -5.0, 0.0]))
    (array([-0.2,  0.2,  0. ]), 23.0)
    >>> ps.minimize(ps.LeastSquares([4.0, -5.0, 1.0]), ps.conv(10 * A)).x.round(6)  # equal sizes: clustered
    array([ 2., -2.,  0.])
    """

    symmetric = True
    convex = True

    def __init__(self, weights: object) -> None:
        self.weights = host(real_array(weights, "weights"))
        vector = self.weights.ndim == 1 and len(self.weights) > 0
        require(vector, "weights", self.weights, "a number for each entry of x")
        if not (self.weights[0] > 0 and self.weights[-1] >= 0 and (np.diff(self.weights) <= 0).all()):
            raise ValueError("weights must decrease from a positive one to at least 0; sort them downwards.")
        self.n = len(self.weights)
        self.shape = (self.n,)
        self._sums = np.cumsum(self.weights)
        self.radius = float((np.sqrt(np.arange(1.0, self.n + 1.0)) / self._sums).max())
        self.diameter = 2.0 * self.radius
        self.width = 1.0 / Space.of(self.weights).norm(self.weights)

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """The vertices of the best numbers of entries k."""
        values = host(flat(floating_array(g, "g")))
        sizes = np.abs(values)
        order = np.argsort(-sizes, kind="stable")
        top = float(sizes[order[0]]) or 1.0  # scaled, so that sums stay in range
        merit = np.cumsum(sizes[order] / top) / self._sums
        return [self._vertex(order[: k + 1], values) for k in np.argsort(-merit, kind="stable")[:several].tolist()]

    def _vertex(self, chosen: Any, values: Small) -> Atom:
        places = np.sort(chosen)
        signs = np.where(values[places] > 0, -1.0, 1.0)
        return SparseAtom(places, signs / self._sums[len(places) - 1], (self.n,))

    def gauge(self, x: Array) -> float:
        return float(np.sort(np.abs(host(x)))[::-1] @ self.weights)


class Ellipsoid(Atoms):
    r"""The ellipsoid :math:`\{x : (x - c)^\top H (x - c) \le 1\}`. The oracle answers
    :math:`c - H^{-1} g / \sqrt{g^\top H^{-1} g}`.

    Ellipsoids that are flat or given by a map are images of the ball: `Ball(n, 2).through(M)`.
    H is symmetric and positive definite; the center c is 0 by default.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.Ellipsoid(np.diag([1.0, 0.25]))
    >>> A.lmo(np.array([0.0, 3.0])).vector, A.gauge(np.array([0.0, 3.0]))
    (array([ 0., -2.]), 1.5)
    >>> ps.minimize(ps.LeastSquares([5.0, 0.0]), ps.conv(ps.Ellipsoid(np.eye(2), center=[1.0, 1.0]))).x.round(2)
    array([1.97, 0.76])
    """

    convex = True

    def __init__(self, H: object, center: object = None) -> None:
        self.H = host(real_array(H, "H"))
        square = self.H.ndim == 2 and self.H.shape[0] == self.H.shape[1] and len(self.H) > 0
        require(square, "H", self.H, "a square matrix")
        self.n = len(self.H)
        self.shape = (self.n,)
        values = symmetric_eigenvalues(self.H)
        if values is None:
            raise ValueError("H is not symmetric; give (H + H.T) / 2.")
        positive = values[0] > self.n * EPS * values[-1]
        require(positive, "the least eigenvalue of H", values[0], "a positive definite matrix")
        self.center = np.zeros(self.n) if center is None else host(real_array(center, "center"))
        require(self.center.shape == self.shape, "center", self.center, f"a number for each of {self.n} entries")
        self._factor = np.linalg.cholesky(self.H)  # H = L L'
        self.symmetric = not self.center.any()
        longest = (1.0 + 1e-12) / math.sqrt(float(values[0]))
        self.radius, self.diameter = float(np.linalg.norm(self.center)) + longest, 2.0 * longest
        self._inside = 1.0 - float(np.linalg.norm(self._factor.T @ self.center))
        self.width = (1.0 - 1e-12) * self._inside / math.sqrt(float(values[-1])) if self._inside > 1e-8 else None

    def lmo(self, g: Array) -> Atom:
        g = floating_array(g, "g")
        v = scipy.linalg.solve_triangular(self._factor, self._direction(host(g)), lower=True)  # L^-1 g
        return self._boundary(-v, Space.of(g))

    def _direction(self, g: Small) -> Small:
        top = float(np.abs(g).max())  # only the direction counts, and squares must stay in range
        return g / top if top > 0 else np.eye(1, self.n)[0]

    def _boundary(self, v: Small, space: Space) -> Atom:
        u = v / np.linalg.norm(v)
        return Atom(space.put(self.center + scipy.linalg.solve_triangular(self._factor.T, u, lower=False)))

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        x = host(a)
        error = float(np.linalg.norm(np.abs(self._factor.T) @ (np.abs(x) + np.abs(self.center))))
        distance = float(np.linalg.norm(self._factor.T @ (x - self.center)))
        return distance <= 1.0 + tolerance * (1.0 + error)

    def gauge(self, x: Array) -> float | None:
        """The least t >= 0 with (x - t c)' H (x - t c) <= t^2; None where 0 is not inside."""
        if self.width is None:
            return None
        v, c = self._factor.T @ host(x), self._factor.T @ self.center
        size, slope, rest = float(np.linalg.norm(v)), float(v @ c), 1.0 - float(c @ c)
        root = math.hypot(slope, math.sqrt(rest) * size)
        return size * (size / (root + slope)) if slope > 0 else (root - slope) / rest
