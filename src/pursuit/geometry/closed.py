"""The sets whose geometry has a closed form, and how a set is recognised as one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, singledispatch
from typing import Any

import numpy as np

from pursuit._arrays import Array, Small, host, real_array
from pursuit.atoms import Atoms, Ball, Box, SignedBasis, Simplex
from pursuit.atoms.combinations import Image, unscaled
from pursuit.geometry import polytope
from pursuit.geometry.interval import Interval
from pursuit.geometry.shapes import Finite, Map, Opaque, Shape, finite, inside, opaque, through
from pursuit.linalg import EPS
from pursuit.metrics import Diagonal, Metric, as_metric
from pursuit.objectives import Objective

MAX_LISTED_NUMBERS = 30_000_000
"""Sets are listed up to this many numbers."""

MAX_CORNER_DIMENSION = 10
"""Boxes are listed by their corners up to this dimension, where a formula does not do."""


@dataclass(frozen=True, eq=False)
class Cross(Shape):
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
        return Interval.of(_harmonic(self.w))

    inradius = mdw

    def image(self, T: Map) -> Shape:
        return Cross(np.abs(T) * self.w) if np.ndim(T) < 2 else Finite(through(T, np.diag(self.w)).T, True)

    def polar(self) -> Small | None:
        return polytope.signs(self.n) / self.w if self.n <= 16 else None


@dataclass(frozen=True, eq=False)
class Corner(Shape):
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
        return Interval.of(-_harmonic(np.abs(self.w)))

    def inradius(self) -> Interval:
        return Interval.of(0.0)

    def image(self, T: Map) -> Shape:
        return Corner(T * self.w) if np.ndim(T) < 2 else finite(through(T, np.diag(self.w)).T)


def _harmonic(w: Small) -> float:
    """(sum w^-2)^(-1/2), the distance from 0 to the hull of w_i e_i; scaled, so that squares stay in range."""
    least = float(w.min())
    return least / math.sqrt(float(((least / w) ** 2).sum()))


@dataclass(frozen=True, eq=False)
class Boxed(Shape):
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
    def live(self) -> Any:
        """Coordinates that lin(A) has; the others are always zero."""
        return (self.lower != 0) | (self.upper != 0)

    def mdw(self) -> Interval:
        lower, upper = self.lower[self.live], self.upper[self.live]
        if not len(lower):
            raise ValueError("A contains the zero vector only; a width needs an atom that is not zero.")
        if (lower < 0).all() and (upper > 0).all():
            return Interval.of(min(upper.min(), -lower.max()))
        return Interval.of(0.0 - np.linalg.norm(np.clip(0.0, lower, upper)))

    def inradius(self) -> Interval:
        return Interval.of((self.upper - self.lower)[self.live].min() / 2 if self.live.any() else 0.0)

    def spans(self, d: Small) -> bool:
        return not d[~self.live].any()

    def basis(self) -> Small | None:
        whole = super().basis()
        return None if whole is None else whole[:, self.live]

    def image(self, T: Map) -> Shape:
        if np.ndim(T) < 2:
            ends = T * self.lower, T * self.upper
            return Boxed(np.minimum(*ends), np.maximum(*ends))
        symmetric = bool((self.lower == -self.upper).all())
        if self.n <= MAX_CORNER_DIMENSION:
            signs = polytope.signs(self.n)[: 2 ** (self.n - 1) if symmetric else None]  # one of each pair
            return Finite(through(T, np.where(signs > 0, self.upper, self.lower).T).T, symmetric)
        width = self.mdw().lower if self.live.all() else min(self.mdw().lower, 0.0)
        return Opaque(self._corner, self.n, self.radius().upper, self.diameter().upper, width, symmetric).image(T)

    def _corner(self, g: Small) -> Small:
        return np.where(g > 0, self.lower, self.upper)

    def polar(self) -> Small | None:
        if not self.mdw().lower > 0 or not self.live.all():
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
            return Cross(np.full(self.n, self.c)).image(T)
        if self.ball.p == 2:
            return Ellipsoid(through(T, self.c * np.eye(self.n)))
        if math.isinf(self.ball.p):
            return Boxed(np.full(self.n, -self.c), np.full(self.n, self.c)).image(T)
        return opaque(self.ball).image(self.c).image(T)


# ---------------------------------------------------------------------- recognition


@singledispatch
def shape(A: Any) -> Shape:
    """The shape of an atom set: a closed form, its list of atoms, or its oracle."""
    if not isinstance(A, Atoms):
        raise TypeError(f"A is {type(A).__name__}; give a set of atoms, such as Dictionary(matrix).")
    return _unknown(A)


def _unknown(A: Atoms) -> Shape:
    """The shape of a set without a closed form: its list of atoms, or its oracle where there is none."""
    if A.size == 0:
        raise ValueError("A lists no atoms; a set of atoms must not be empty.")
    if A.size is None or A.shape is None or A.size * math.prod(A.shape) > MAX_LISTED_NUMBERS:
        return opaque(A)
    rows = np.stack([host(A.atom(i).vector).ravel() for i in range(A.size)])
    if not np.isfinite(rows).all():
        raise ValueError("A has an atom with NaN or infinity; remove it first.")
    return finite(rows)


@shape.register
def _(A: SignedBasis) -> Shape:
    return Cross(np.ones(A.n))


@shape.register
def _(A: Simplex) -> Shape:
    return Corner(np.ones(A.n))


@shape.register
def _(A: Box) -> Shape:
    return Boxed(host(A.lower).ravel(), host(A.upper).ravel())


@shape.register
def _(A: Ball) -> Shape:
    return LpBall(A)


@shape.register
def _(A: Image) -> Shape:
    if A.c != 1.0:
        return shape(unscaled(A)[0]).image(A.c)
    if A.signed:
        return _unknown(A)
    if A.map is None:
        return shape(A.base)
    M = A.map.M
    return shape(A.base).image(host(M @ np.eye(M.shape[1]) if A.space is None else M))


# ---------------------------------------------------------------------- metrics and vectors


def root(metric: Metric, n: int | None, definite: bool = True) -> Map:
    """T with T'T = M, as a number, a diagonal or a matrix; `definite`: M must have an inverse."""
    if isinstance(metric, Diagonal) and np.ndim(metric.h) == 0:
        return math.sqrt(float(metric.h))
    if isinstance(metric, Diagonal):
        h = host(metric.h).ravel()
        _fits(len(h), n)
        return np.asarray(np.sqrt(h) if h.all() else np.diag(np.sqrt(h)))  # shapes want diagonals without zeros
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


def seen(A: Atoms, metric: Any) -> Shape:
    """The shape of A in the norm of a metric."""
    own = shape(A)
    return own if metric is None else own.image(root(as_metric(metric), own.n))


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
