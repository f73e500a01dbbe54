"""Shapes whose geometry has a closed form, and `shape_of`, which finds the shape of an atom set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from pursuit.arguments import real_array
from pursuit.arrays import Array, Small, host
from pursuit.atoms import Atoms, Ball, Box, SignedBasis, Simplex
from pursuit.atoms.combinations import Image, unscaled
from pursuit.geometry import polytope
from pursuit.geometry.interval import Interval
from pursuit.geometry.shapes import Finite, Map, OracleOnly, Shape, finite, inside, oracle_only, through
from pursuit.linalg import EPS
from pursuit.metrics import Diagonal, Identity, Metric, as_metric
from pursuit.objectives import Objective

MAX_LISTED_NUMBERS = 30_000_000
"""Atoms are listed if they have at most this many entries together."""

MAX_CORNER_DIMENSION = 10
"""Images of boxes are computed from the list of their corners up to this dimension."""


@dataclass(frozen=True, eq=False)
class CrossPolytope(Shape):
    """+-w_i e_i, with w > 0."""

    w: Small

    @property
    def n(self) -> int:
        return len(self.w)

    def radius(self) -> Interval:
        return Interval.of(self.w.max())

    def diameter(self) -> Interval:
        return Interval.of(2 * self.w.max())

    def mdw(self) -> Interval:
        return Interval.of(harmonic(self.w))

    inradius = mdw

    def image(self, T: Map) -> Shape:
        return CrossPolytope(np.abs(T) * self.w) if np.ndim(T) < 2 else Finite(through(T, np.diag(self.w)).T, True)

    def polar(self) -> Small | None:
        return polytope.signs(self.n) / self.w if self.n <= 16 else None


@dataclass(frozen=True, eq=False)
class ScaledSimplex(Shape):
    """w_i e_i, with w_i != 0: the scaled simplex."""

    w: Small

    @property
    def n(self) -> int:
        return len(self.w)

    def radius(self) -> Interval:
        return Interval.of(np.abs(self.w).max())

    def diameter(self) -> Interval:
        return Interval.of(math.hypot(*np.sort(np.abs(self.w))[-2:])) if self.n > 1 else Interval.of(0.0)

    def mdw(self) -> Interval:
        return Interval.of(-harmonic(np.abs(self.w)))

    def inradius(self) -> Interval:
        return Interval.of(0.0)

    def image(self, T: Map) -> Shape:
        return ScaledSimplex(T * self.w) if np.ndim(T) < 2 else finite(through(T, np.diag(self.w)).T)


def harmonic(w: Small) -> float:
    """(sum w^-2)^(-1/2), the distance from 0 to the hull of w_i e_i; scaled, so that squares stay in range."""
    least = float(w.min())
    return least / math.sqrt(float(((least / w) ** 2).sum()))


@dataclass(frozen=True, eq=False)
class BoxShape(Shape):
    """{x : lower <= x <= upper}."""

    lower: Small
    upper: Small

    @property
    def n(self) -> int:
        return len(self.lower)

    def radius(self) -> Interval:
        return Interval.of(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    def diameter(self) -> Interval:
        return Interval.of(np.linalg.norm(self.upper - self.lower))

    @property
    def nonzero(self) -> Any:
        """A mask of the coordinates in which some point of the box is not zero: those that lin(A) has."""
        return (self.lower != 0) | (self.upper != 0)

    def mdw(self) -> Interval:
        lower, upper = self.lower[self.nonzero], self.upper[self.nonzero]
        if not len(lower):
            raise ValueError("A contains the zero vector only; a width needs an atom that is not zero.")
        if (lower < 0).all() and (upper > 0).all():
            return Interval.of(min(upper.min(), -lower.max()))
        return Interval.of(0.0 - np.linalg.norm(np.clip(0.0, lower, upper)))

    def inradius(self) -> Interval:
        return Interval.of((self.upper - self.lower)[self.nonzero].min() / 2 if self.nonzero.any() else 0.0)

    def spans(self, d: Small) -> bool:
        return not d[~self.nonzero].any()

    def basis(self) -> Small | None:
        whole = super().basis()
        return None if whole is None else whole[:, self.nonzero]

    def image(self, T: Map) -> Shape:
        if np.ndim(T) < 2:
            ends = T * self.lower, T * self.upper
            return BoxShape(np.minimum(*ends), np.maximum(*ends))
        symmetric = bool((self.lower == -self.upper).all())
        if self.n <= MAX_CORNER_DIMENSION:
            signs = polytope.signs(self.n)[: 2 ** (self.n - 1) if symmetric else None]  # one of each pair
            return Finite(through(T, np.where(signs > 0, self.upper, self.lower).T).T, symmetric)
        width = self.mdw().lower if self.nonzero.all() else min(self.mdw().lower, 0.0)
        return OracleOnly(self._corner, self.n, self.radius().upper, self.diameter().upper, width, symmetric).image(T)

    def _corner(self, g: Small) -> Small:
        return np.where(g > 0, self.lower, self.upper)

    def polar(self) -> Small | None:
        if not self.mdw().lower > 0 or not self.nonzero.all():
            return None
        return np.concatenate([np.diag(1 / self.upper), np.diag(1 / self.lower)])


@dataclass(frozen=True, eq=False)
class Ellipsoid(Shape):
    """{T x : ||x||_2 <= 1}; its axes are the singular values of T."""

    T: Small

    @property
    def n(self) -> int:
        return len(self.T)

    @cached_property
    def axes(self) -> Small:
        s = np.linalg.svd(self.T, compute_uv=False)
        if not s[0] > 0:
            raise ValueError("A contains the zero vector only; a width needs an atom that is not zero.")
        return np.asarray(s[s > max(self.T.shape) * EPS * s[0]])

    def radius(self) -> Interval:
        return Interval.of(self.axes[0])

    def diameter(self) -> Interval:
        return Interval.of(2 * self.axes[0])

    def mdw(self) -> Interval:
        return Interval.of(self.axes[-1])

    inradius = mdw

    def spans(self, d: Small) -> bool:
        return inside(polytope.span(self.T.T), d)

    def basis(self) -> Small | None:
        return polytope.span(self.T.T)

    def image(self, T: Map) -> Shape:
        return Ellipsoid(through(T, self.T))


@dataclass(frozen=True, eq=False)
class LpBall(Shape):
    """c times the unit ball of the norm ||x||_p, c > 0."""

    ball: Ball
    c: float = 1.0

    @property
    def n(self) -> int:
        return self.ball.n

    def radius(self) -> Interval:
        return Interval.of(self.c * (self.ball.radius or 0.0))

    def diameter(self) -> Interval:
        return Interval.of(self.c * (self.ball.diameter or 0.0))

    def mdw(self) -> Interval:
        return Interval.of(self.c * (self.ball.width or 0.0))

    inradius = mdw

    def image(self, T: Map) -> Shape:
        if np.ndim(T) == 0:
            return replace(self, c=abs(float(T)) * self.c)
        if self.ball.p == 1:
            return CrossPolytope(np.full(self.n, self.c)).image(T)
        if self.ball.p == 2:
            return Ellipsoid(through(T, self.c * np.eye(self.n)))
        if math.isinf(self.ball.p):
            return BoxShape(np.full(self.n, -self.c), np.full(self.n, self.c)).image(T)
        return oracle_only(self.ball).image(self.c).image(T)


# ---------------------------------------------------------------------- which set has which shape


@singledispatch
def shape_of(A: Any) -> Shape:
    """The shape of an atom set: a closed form, its list of atoms, or its oracle."""
    if not isinstance(A, Atoms):
        raise TypeError(f"A is {type(A).__name__}; give a set of atoms, such as Dictionary(matrix).")
    return _unknown(A)


def _unknown(A: Atoms) -> Shape:
    """The shape of a set without a closed form: its list of atoms, or its oracle where there is none."""
    if A.size == 0:
        raise ValueError("A lists no atoms; a set of atoms must not be empty.")
    if A.size is None or A.shape is None or A.size * math.prod(A.shape) > MAX_LISTED_NUMBERS:
        return oracle_only(A)
    rows = np.stack([host(A.atom(i).vector).ravel() for i in range(A.size)])
    if not np.isfinite(rows).all():
        raise ValueError("A has an atom with NaN or infinity; remove it first.")
    return finite(rows)


@shape_of.register
def _(A: SignedBasis) -> Shape:
    return CrossPolytope(np.ones(A.n))


@shape_of.register
def _(A: Simplex) -> Shape:
    return ScaledSimplex(np.ones(A.n))


@shape_of.register
def _(A: Box) -> Shape:
    return BoxShape(host(A.lower).ravel(), host(A.upper).ravel())


@shape_of.register
def _(A: Ball) -> Shape:
    return LpBall(A)


@shape_of.register
def _(A: Image) -> Shape:
    if A.c != 1.0:
        return shape_of(unscaled(A)[0]).image(A.c)
    if A.signed:
        return _unknown(A)
    if A.map is None:
        return shape_of(A.base)
    if not A.map.plain:
        return _unknown(A)
    M = A.map.M
    return shape_of(A.base).image(host(M @ np.eye(M.shape[1]) if A.space is None else M))


# ---------------------------------------------------------------------- metrics and vectors


def root(metric: Metric, n: int | None, definite: bool = True) -> Map:
    """T with T'T = M, as a number, a diagonal or a matrix; `definite`: M must have an inverse."""
    if isinstance(metric, Identity):
        return math.sqrt(metric.h)
    if isinstance(metric, Diagonal):
        h = host(metric.h).ravel()
        _fits(len(h), n)
        return np.asarray(np.sqrt(h) if h.all() else np.diag(np.sqrt(h)))  # the shapes take diagonals without zeros
    size = math.prod(metric.shape)
    _fits(size, n)
    M = host(metric.batch(np.eye(size)))
    if float(np.abs(M - M.T).max()) > 1e-10 * float(np.abs(M).max()):
        raise ValueError("metric is not symmetric; give (M + M.T) / 2.")
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    noise = size * EPS * float(np.abs(values).max())
    if definite and not values[0] > noise:
        raise ValueError(f"metric has the eigenvalue {values[0]:.3g}; give a positive definite matrix.")
    return np.asarray(np.sqrt(np.where(values > noise, values, 0.0))[:, None] * vectors.T)


def _fits(size: int, n: int | None) -> None:
    if n is not None and size != n:
        raise ValueError(f"metric acts on vectors of length {size}, the atoms have {n} entries; they must agree.")


def shape_in_metric(A: Atoms, metric: Any) -> Shape:
    """The shape of T A with T'T = M, so that its Euclidean quantities are those of A in the norm of the metric M."""
    shape = shape_of(A)
    return shape if metric is None else shape.image(root(as_metric(metric), shape.n))


def vector(A: Atoms, x: Array, name: str) -> Small:
    """A vector of H, checked and flattened."""
    x = real_array(x, name)
    if A.shape is not None and tuple(x.shape) != A.shape:
        raise ValueError(f"{name} has shape {tuple(x.shape)}, the atoms have shape {A.shape}; they must agree.")
    return host(x).ravel()


def check_objective(f: Any, A: Atoms) -> None:
    """f is an objective on the space of the atoms."""
    if not isinstance(f, Objective):
        raise TypeError(f"f is {type(f).__name__}; give an objective such as LeastSquares(y), or wrap it in Smooth.")
    if f.space is not None and A.shape is not None and f.space.shape != A.shape:
        raise ValueError(
            f"f lives on vectors of shape {f.space.shape}, the atoms have shape {A.shape}; they must agree."
        )
