"""Least squares and other quadratic functions."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from pursuit.arguments import real_array, sparse_matrix
from pursuit.arrays import Array, Small, Space, host
from pursuit.linalg import EPS
from pursuit.linalg.lanczos import Memory, SymmetricMap, extreme_eigenvalues
from pursuit.metrics import Metric, Operator, diagonal
from pursuit.objectives.base import ROUNDING, DataLoss, Objective, repr_of, size_above, size_of, sum_above, total

MAX_EXACT_CHECK = 512
"""All eigenvalues of a sparse matrix with at most this many rows are computed, to see that none is negative."""

LANCZOS_ROUNDS = 8
"""Rounds of four Lanczos steps that look for a negative eigenvalue of a larger one."""


class LeastSquares(DataLoss):
    r"""Half the squared distance to y: :math:`f(x) = \frac12 \sum_i s_i (x_i - y_i)^2`.

    Without weights L = mu = 1, so a norm-corrective update is an exact one: matching pursuit and OMP.

    y is the target, of the shape of H; integers take the dtype of the atoms. The :math:`s_i` are `weights`, a positive
    array of y's shape or a positive number.

    >>> import pursuit as ps
    >>> f = ps.LeastSquares([3.0, 4.0])
    >>> f, f.value_and_grad(np.zeros(2))
    (LeastSquares(y of 2 entries), (12.5, array([-3., -4.])))
    """

    quadratic = True
    infimum = 0.0
    target = "numbers"
    _words = "half the squared distance to the data ({size} entries{weighted})"

    def _set_constants(self) -> None:
        s = self.weights
        self.metric = diagonal(s)
        self.L = self._largest_weight
        self.mu = float(host(s).min())

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        r = x - self.y
        grad = self.metric(r)
        return 0.5 * self.space.dot(r, grad), grad

    def hessian(self, x: Array) -> Metric:
        return self.metric

    def _conjugate_terms(self, u: Array) -> tuple[Array, ...]:
        return 0.5 * u * (u / self.weights), u * self.y

    def dual_room(self, u: Small) -> Small:
        return np.asarray(np.broadcast_to(self._host_weights, u.shape))


class Quadratic(Objective):
    r"""A convex quadratic :math:`f(x) = \frac12\langle x, Hx\rangle + \langle c, x\rangle`.

    H is a symmetric and positive semidefinite array, sparse matrix or LinearOperator. Arrays, and sparse matrices of up
    to 512 rows, are checked; of larger ones a negative eigenvalue is found if a few Lanczos steps find it, and an
    operator is taken on trust. c is zero if left out.

    >>> import pursuit as ps
    >>> f = ps.Quadratic(np.diag([1.0, 4.0]), [-1.0, 0.0])
    >>> f.L, round(f.mu, 12), f.value(np.array([1.0, 0.0]))                    # mu is rounded down
    (4.0, 1.0, -0.5)
    """

    quadratic = True
    space: Space

    def __init__(self, H: Any, c: Any = None) -> None:
        dense = not (sp.issparse(H) or isinstance(H, LinearOperator))
        self.H: Any = real_array(H, "H") if dense else sparse_matrix(H, "H") if sp.issparse(H) else H
        if self.H.ndim != 2 or self.H.shape[0] != self.H.shape[1] or self.H.shape[0] == 0:
            raise ValueError(f"H has shape {tuple(self.H.shape)}; give a square matrix.")
        if sp.issparse(H):
            self._check_sparse()
        n = int(self.H.shape[0])
        self.space = Space.of(self.H[:, 0]) if dense else Space.default((n,))
        self.c = self.space.zeros() if c is None else self.space.put(host(real_array(c, "c")))
        if tuple(self.c.shape) != (n,):
            raise ValueError(f"c has shape {tuple(self.c.shape)}, H has {tuple(self.H.shape)}; give c of length {n}.")
        if dense:
            self._read_spectrum()

    def _check_sparse(self) -> None:
        """Refuse a sparse H that is not finite or not symmetric, or for which a v with <v, Hv> < 0 is found: among all
        eigenvectors where H is small, among the vectors of a few Lanczos steps where it is large."""
        real_array(self.H.data, "H")
        if abs(self.H - self.H.T).max() > 1e-12 * abs(self.H).max():
            raise ValueError("H is not symmetric; give (H + H.T) / 2, which defines the same function.")
        n, size, smallest = self.H.shape[0], float(abs(self.H).sum(axis=0).max()), float(self.H.diagonal().min())
        if smallest >= 0 and size > 0:
            smallest = size * smallest_eigenvalue(self.H / size)
        if smallest < -1e-13 * n * size:
            raise ValueError(f"H has an eigenvalue of at most {smallest:.3g}; a convex quadratic needs H >= 0.")

    def _read_spectrum(self) -> None:
        """Find L and mu from the eigenvalues; refuse an H that is not symmetric and positive semidefinite."""
        xp, noise = self.space.xp, 1e2 * self.space.eps
        if float(xp.max(xp.abs(self.H - self.H.T))) > noise * float(xp.max(xp.abs(self.H))):
            raise ValueError("H is not symmetric; give (H + H.T) / 2, which defines the same function.")
        spectrum = xp.linalg.eigvalsh(self.H)
        smallest, largest = float(spectrum[0]), float(spectrum[-1])
        if smallest < -noise * self.H.shape[0] * abs(largest):
            raise ValueError(f"H has the eigenvalue {smallest:.3g}; a convex quadratic needs H >= 0.")
        self.L = largest if largest > 0 else None
        self.mu = max(smallest - noise * largest, 0.0)
        self.singular = not self.mu > 2.0 * self.H.shape[0] * self.space.eps * largest

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        Hx = self.H @ x
        return 0.5 * self.space.dot(x, Hx) + self.space.dot(self.c, x), Hx + self.c

    def hessian(self, x: Array) -> Metric:
        return Operator(lambda v: self.H @ v, (int(self.H.shape[0]),))

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of a dense H."""
        return tuple(self.space.xp.linalg.eigh(self.H))

    def conjugate(self, u: Array) -> float | None:
        """1/2 <u - c, H^+ (u - c)> on c + range(H), for a dense H. Where H is singular that is so but for rounding."""
        if self.L is None:
            return None
        xp, (spectrum, V) = self.space.xp, self._eigen
        noise = 1e2 * self.space.eps * self.L
        coordinates = V.T @ (u - self.c)
        flat, size = spectrum <= noise, self.space.norm(u) + self.space.norm(self.c)
        if self.space.norm(xp.where(flat, coordinates, 0.0 * coordinates)) > ROUNDING * self.space.eps * size:
            return math.inf
        return 0.5 * total(xp, coordinates * (coordinates / xp.where(flat, math.inf, spectrum)))

    def conjugate_above(self, u: Small, radius: Small) -> float | None:
        """With any z and its gradient g = Hz + c, f*(u) <= <u, z> - f(z) + |u - g|^2 / (2 mu), since f is at least its
        tangent at z and mu/2 times the squared distance."""
        if self.L is None:
            return None
        if self.singular:
            return math.inf
        H, c, n = host(self.H), host(self.c), len(u)
        if (u == c).all() and not radius.any():
            return 0.0  # -f(0), where c is the gradient
        H, mu = 0.5 * (H + H.T), self.mu - n * self.space.eps * self.L
        z = np.linalg.solve(H, u - c)
        g, sizes = H @ z + c, np.abs(H) @ np.abs(z) + np.abs(c)
        away = np.abs(u - g) + radius + (n + 4.0) * EPS * sizes
        terms = np.stack([u * z, -0.5 * z * (g - c), -c * z, away * (away / (2.0 * mu))])
        wide = radius * np.abs(z) + (n + 4.0) * EPS * sizes * np.abs(z)
        return sum_above([terms, wide], size_above(terms, wide))

    def data_slopes(self, x: Array) -> Small:
        return np.ones(self.c.shape)

    @property
    def words(self) -> str:
        return f"a quadratic function of {self.c.shape[0]:,} variables"

    def __repr__(self) -> str:
        return repr_of(self, size_of("H", self.H))


def smallest_eigenvalue(H: sp.csc_array) -> float:
    """The smallest eigenvalue of a sparse symmetric matrix of norm at most 1; of a large one an upper bound on it, from
    a few Lanczos steps."""
    if H.shape[0] <= MAX_EXACT_CHECK:
        return float(np.linalg.eigvalsh(H.toarray())[0])
    rounds = iter(range(LANCZOS_ROUNDS))

    def enough(*_: float) -> bool:
        return next(rounds, None) is None

    return -float(extreme_eigenvalues(SymmetricMap(lambda v: -(H @ v), H.shape[0]), 1, Memory(), 0.5, enough).values[0])
