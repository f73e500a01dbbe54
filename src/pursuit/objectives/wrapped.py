"""Objectives made of another one: `Ridge`, and those that updates and line searches work on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pursuit.arguments import as_int_or_nan, describe, require
from pursuit.arrays import Array, Indices, Small, Space
from pursuit.metrics import Metric, Operator
from pursuit.objectives.base import DataLoss, Objective, repr_of, size_above, sum_above, total


class Wrapped(Objective):
    """Another objective f, with all its constants. A subclass says what it changes."""

    def __init__(self, f: Objective, space: Space | None = None) -> None:
        self.f, self.space = f, space or f.space
        self.L, self.mu, self.infimum, self.quadratic = f.L, f.mu, f.infimum, f.quadratic
        self.exact, self.convex, self.singular = f.exact, f.convex, f.singular

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        return self.f.value_and_grad(x)

    def value(self, x: Array) -> float:
        return self.f.value(x)

    def hessian(self, x: Array) -> Metric | None:
        return self.f.hessian(x)

    @property
    def has_hessian(self) -> bool:
        return self.f.has_hessian


class Shifted(Wrapped):
    """u -> f(rest + u)."""

    def __init__(self, f: Objective, space: Space) -> None:
        super().__init__(f, space)
        self.rest = space.zeros()

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        return self.f.value_and_grad(self.rest + x)

    def value(self, x: Array) -> float:
        return self.f.value(self.rest + x)

    def hessian(self, x: Array) -> Metric | None:
        return self.f.hessian(self.rest + x)


class Tilted(Wrapped):
    """f(x) + <t, x>, of which a line search knows neither L nor a lower bound."""

    space: Space

    def __init__(self, f: Objective, t: Array, space: Space) -> None:
        super().__init__(f, space)
        self.t, self.L, self.infimum = t, None, -math.inf

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        value, grad = self.f.value_and_grad(x)
        return value + self.space.dot(self.t, x), grad + self.t

    def value(self, x: Array) -> float:
        return self.value_and_grad(x)[0]


class Ridge(Wrapped):
    r"""A loss of coefficients with a ridge: :math:`f(x_1) + \frac12\|x_2\|^2` of vectors x whose first n entries (or
    rows) are :math:`x_1`, where f lives, and whose last p are :math:`x_2`.

    Over atoms `A.through(X, l2=l2)`, which are :math:`(X b, \sqrt{l2}\, b)`, it is
    :math:`f(X b) + \frac{l2}{2}\|b\|^2`. f is an objective that knows its space, p the number of coefficients (per
    column).

    >>> import numpy as np, pursuit as ps
    >>> f = ps.Ridge(ps.LeastSquares([1.0, 2.0]), 1)
    >>> f, f.value_and_grad(np.array([1.0, 2.0, 3.0]))
    (Ridge(LeastSquares(y of 2 entries), 1), (4.5, array([0., 0., 3.])))
    """

    space: Space

    def __init__(self, f: Objective, p: int) -> None:
        if not isinstance(f, Objective) or f.space is None or not f.space.shape:
            raise TypeError(f"f is {describe(f)}; give an objective with data, such as LeastSquares(y).")
        require(as_int_or_nan(p) >= 1, "p", p, "the number of coefficients, an integer of at least 1")
        self.p, (self.n, *across) = int(p), f.space.shape
        super().__init__(f, replace(f.space, shape=(self.n + self.p, *across)))
        self.L, self.mu = None if f.L is None else max(f.L, 1.0), min(f.mu, 1.0)
        if f.dual_range is not None:
            low, high = (0.0 * f.space.zeros() + bound for bound in f.dual_range)
            free = self.space.zeros()[self.n :, ...] + math.inf
            self.dual_range = self.space.xp.concat([low, -free]), self.space.xp.concat([high, free])

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        value, grad = self.f.value_and_grad(x[: self.n, ...])
        below = x[self.n :, ...]
        return value + 0.5 * self.space.dot(below, below), self.space.xp.concat([grad, below])

    def value(self, x: Array) -> float:
        return self.value_and_grad(x)[0]

    def hessian(self, x: Array) -> Metric | None:
        top = self.f.hessian(x[: self.n, ...])
        return None if top is None else Operator.above_identity(top, self.n, self.space)

    def conjugate(self, u: Array) -> float | None:
        top, below = self.f.conjugate(u[: self.n, ...]), u[self.n :, ...]
        return None if top is None else top + 0.5 * total(self.space.xp, below * below)

    def conjugate_above(self, u: Small, radius: Small) -> float | None:
        top, below = self.f.conjugate_above(u[: self.n], radius[: self.n]), np.abs(u[self.n :]) + radius[self.n :]
        return (
            None
            if top is None
            else math.nextafter(top + sum_above([0.5 * below * below], size_above(below * below)), math.inf)
        )

    def dual_point(self, u: Small) -> Small:
        return np.concatenate([self.f.dual_point(u[: self.n]), u[self.n :]])

    def dual_room(self, u: Small) -> Small:
        return np.concatenate([self.f.dual_room(u[: self.n]), np.ones_like(u[self.n :])])

    def tied_entries(self, u: Small) -> Indices | None:
        tied = self.f.tied_entries(u[: self.n])
        return None if tied is None else np.concatenate([tied, np.full(u[self.n :].size, -1)])

    def data_slopes(self, x: Array) -> Small | None:
        return self.f.data_slopes(x[: self.n, ...])

    def twice_differentiable(self, x: Array) -> bool:
        return self.f.twice_differentiable(x[: self.n, ...])

    @property
    def words(self) -> str:
        return f"{self.f.words}, and a ridge on {self.p:,} coefficients"

    def __repr__(self) -> str:
        return repr_of(self, repr(self.f), str(self.p))


def adapted(f: Objective, space: Space) -> Objective:
    """The same function of arrays of this library, dtype and device, where its data are labels or integers, which have
    no precision of their own; itself where they are floating-point numbers, which are never converted."""
    if isinstance(f, DataLoss):
        return f.on(space)
    if not isinstance(f, Ridge):
        return f
    inner = adapted(f.f, space)
    return f if inner is f.f else Ridge(inner, f.p)
