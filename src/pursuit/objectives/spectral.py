"""Functions of the eigenvalues of a symmetric positive definite matrix, for optimal designs."""

from __future__ import annotations

import math

from pursuit.arrays import Array, Space
from pursuit.metrics import Metric, Operator
from pursuit.objectives.base import ROUNDING, Objective, total
from pursuit.threads import threads_for


class _Spectral(Objective):
    """f(X) for square matrices X, by the eigenvalues of (X + X')/2; infinite unless all of them are positive."""

    def _eigen(self, X: Array) -> tuple[Space, Array, Array, float]:
        """The space, eigenvalues in increasing order, eigenvectors, and a bound on the eigenvalues' rounding errors."""
        space = Space.of(X)
        if X.ndim != 2 or X.shape[0] != X.shape[1]:
            raise ValueError(f"x has shape {tuple(X.shape)}; {type(self).__name__} is a function of square matrices.")
        with threads_for(X.shape[0]):
            values, vectors = space.xp.linalg.eigh(0.5 * (X + X.T))
        size = float(space.xp.max(space.xp.abs(values)))
        return space, values, vectors, ROUNDING * X.shape[0] * space.eps * size

    def _power(self, X: Array, *exponents: int) -> list[Array]:
        """Powers of a positive definite matrix."""
        _, values, vectors, _ = self._eigen(X)
        return [(vectors * values[None, :] ** p) @ vectors.T for p in exponents]

    def _terms(self, space: Space, values: Array) -> tuple[Array, Array]:
        """The term of f for each eigenvalue, and its derivative."""
        raise NotImplementedError

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        space, values, vectors, error = self._eigen(x)
        if not float(values[0]) > error:
            return math.inf, math.nan * x
        terms, slopes = self._terms(space, values)
        return total(space.xp, terms), (vectors * slopes[None, :]) @ vectors.T


class LogDet(_Spectral):
    r"""The logarithmic barrier of positive definite matrices, :math:`f(X) = -\log\det X`, and infinity elsewhere.

    Over :math:`\mathrm{conv}\{a_i a_i^\top\}` a minimum is the D-optimal design of experiments :math:`a_i`, and the
    ellipsoid of smallest volume around :math:`\pm a_i`. f is self-concordant, and not smooth: L is None. Its conjugate
    is :math:`f^*(U) = -n - \log\det(-U)` for negative definite U.

    >>> import numpy as np, pursuit as ps
    >>> V = np.random.default_rng(0).standard_normal((3, 40))                     # 40 experiments in 3 dimensions
    >>> r = ps.minimize(ps.LogDet(), ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :])))
    >>> variances = np.einsum("ik,ij,jk->k", V, np.linalg.inv(r.x), V)
    >>> r.status.name, round(float(variances.max()), 3), len(r.atoms) <= 6        # Kiefer and Wolfowitz: at most 3
    ('GAP', 3.0, True)
    """

    def _terms(self, space: Space, values: Array) -> tuple[Array, Array]:
        return -space.xp.log(values), -1.0 / values

    def hessian(self, x: Array) -> Metric:
        (inverse,) = self._power(x, -1)
        return Operator(lambda V: inverse @ (0.5 * (V + V.T)) @ inverse, tuple(x.shape))

    def conjugate(self, u: Array) -> float:
        space, values, _, error = self._eigen(-u)
        if not _is_symmetric(space, u) or not float(values[0]) > 2.0 * error:
            return math.inf
        return total(space.xp, -space.xp.log(values - error)) - float(u.shape[0])


class TraceInverse(_Spectral):
    r"""The trace of the inverse of a positive definite matrix, :math:`f(X) = \mathrm{tr}\,X^{-1}`; infinity elsewhere.

    Over :math:`\mathrm{conv}\{a_i a_i^\top\}` a minimum is the A-optimal design of experiments :math:`a_i`, which has
    the smallest mean variance. f is not smooth: L is None. Its infimum is 0, its conjugate is
    :math:`f^*(U) = -2\,\mathrm{tr}\,(-U)^{1/2}` for negative semidefinite U.

    >>> import numpy as np, pursuit as ps
    >>> V = np.eye(2)
    >>> r = ps.minimize(ps.TraceInverse(), ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :] * [1.0, 4.0])))
    >>> r.x.round(4), round(r.value, 4)                                        # weights in the ratio 2 : 1
    (array([[0.6667, 0.    ],
           [0.    , 1.3333]]), 2.25)
    """

    infimum = 0.0

    def _terms(self, space: Space, values: Array) -> tuple[Array, Array]:
        return 1.0 / values, -1.0 / (values * values)

    def hessian(self, x: Array) -> Metric:
        inverse, square = self._power(x, -1, -2)

        def apply(V: Array) -> Array:
            V = 0.5 * (V + V.T)
            return inverse @ V @ square + square @ V @ inverse

        return Operator(apply, tuple(x.shape))

    def conjugate(self, u: Array) -> float:
        space, values, _, error = self._eigen(-u)
        if not _is_symmetric(space, u) or not float(values[0]) >= -error:
            return math.inf
        lowered = space.xp.clip(values - error, 0.0, math.inf)
        return total(space.xp, -2.0 * space.xp.sqrt(lowered))


def _is_symmetric(space: Space, u: Array) -> bool:
    return space.norm(u - u.T) <= ROUNDING * space.eps * space.norm(u)
