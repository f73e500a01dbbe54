"""A ridge on the coefficients of a linear model."""

from __future__ import annotations

import math
from dataclasses import replace

from pursuit.arguments import as_int_or_nan, describe
from pursuit.arrays import Array, Space
from pursuit.metrics import Metric, Stacked
from pursuit.objectives.base import Objective, repr_of, sum_above


class Ridge(Objective):
    r"""A loss of coefficients with a ridge: :math:`f(x_1) + \frac12\|x_2\|^2` of vectors x whose first n entries (or
    rows) are :math:`x_1`, where f lives, and whose last p are :math:`x_2`.

    Over atoms `A.through(X, l2=l2)`, which are :math:`(X b, \sqrt{l2}\, b)`, it is
    :math:`f(X b) + \frac{l2}{2}\|b\|^2`.

    Parameters
    ----------
    f : Objective that knows its space
    p : int
        The number of coefficients (per column).

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> f = ps.Ridge(ps.LeastSquares([1.0, 2.0]), 1)
    >>> f, f.value_and_grad(np.array([1.0, 2.0, 3.0]))
    (Ridge(LeastSquares(y of 2 entries), 1), (4.5, array([0., 0., 3.])))
    """

    space: Space

    def __init__(self, f: Objective, p: int) -> None:
        if not isinstance(f, Objective) or f.space is None or not f.space.shape:
            raise TypeError(f"f is {describe(f)}; give an objective with data, such as LeastSquares(y).")
        if not as_int_or_nan(p) >= 1:
            raise ValueError(f"p is {describe(p)}; give the number of coefficients, an integer of at least 1.")
        self.f, self.p, (self.n, *across) = f, int(p), f.space.shape
        self.space = replace(f.space, shape=(self.n + self.p, *across))
        self.L, self.mu = None if f.L is None else max(f.L, 1.0), min(f.mu, 1.0)
        self.infimum, self.quadratic, self.exact, self.convex = f.infimum, f.quadratic, f.exact, f.convex
        if f.dual_range is not None:
            low, high = (0.0 * f.space.zeros() + bound for bound in f.dual_range)
            free = self.space.zeros()[self.n :, ...] + math.inf
            self.dual_range = self.space.xp.concat([low, -free]), self.space.xp.concat([high, free])

    def on(self, space: Space) -> Objective:
        inner = self.f.on(space)
        return self if inner is self.f else Ridge(inner, self.p)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        value, grad = self.f.value_and_grad(x[: self.n, ...])
        below = x[self.n :, ...]
        return value + 0.5 * self.space.dot(below, below), self.space.xp.concat([grad, below])

    def hessian(self, x: Array) -> Metric | None:
        top = self.f.hessian(x[: self.n, ...])
        return None if top is None else Stacked.above_identity(top, self.n, self.space)

    @property
    def has_hessian(self) -> bool:
        return self.f.has_hessian

    def conjugate(self, u: Array) -> float | None:
        top, below = self.f.conjugate(u[: self.n, ...]), u[self.n :, ...]
        return None if top is None else top + sum_above(self.space, 0.5 * below * below)

    def __repr__(self) -> str:
        return repr_of(self, repr(self.f), str(self.p))
