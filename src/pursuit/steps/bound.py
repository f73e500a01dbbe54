"""The quadratic upper bound f(x + d) <= f(x) + <grad f(x), d> + L/2 ||d||^2, with a fixed L or one that is found."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pursuit.arguments import describe, number, require, use_python_numbers
from pursuit.arrays import Array, Space
from pursuit.metrics import as_metric
from pursuit.objectives import Objective, inside
from pursuit.state import Stateful
from pursuit.steps.base import Decrease

T = TypeVar("T")


@dataclass(frozen=True)
class Backtracking:
    """Finds L during the run: tries the last L times `shrink`, and multiplies by `grow` while the upper bound fails.

    L_0 is `first`, or measured along the first direction, by one more gradient. f is evaluated at most
    (1 - log shrink / log grow) (t + 1) + log_grow(grow L / L_0) times in t steps.

    >>> import numpy as np, pursuit as ps
    >>> f = ps.Smooth(lambda x: float(np.sum(x**4)) / 4, lambda x: x**3)    # its L depends on where x is
    >>> update = ps.Plain(ps.ShortStep(L=ps.Backtracking()))
    >>> ps.minimize(f, ps.conv(ps.Simplex(2)), update).x.round(3)
    array([0.5, 0.5])
    """

    shrink: float = 0.9
    grow: float = 2.0
    first: float | None = None

    def __post_init__(self) -> None:
        first = self.first is None or 0 < number(self.first) < math.inf
        require(first, "first", self.first, "the first L, a positive number, or None")
        if not (0 < number(self.shrink) <= 1 < number(self.grow) < math.inf):
            given = f"{describe(self.shrink)} and {describe(self.grow)}"
            raise ValueError(f"Backtracking needs 0 < shrink <= 1 < grow, not {given}.")
        use_python_numbers(self)


DEFAULT_RULE = Backtracking()

Smoothness = float | Backtracking | None


def check_smoothness(L: Smoothness) -> None:
    """Refuse an L that is neither a positive number, Backtracking nor None."""
    valid = L is None or isinstance(L, Backtracking) or 0 < number(L) < math.inf
    require(valid, "L", L, "a positive number, Backtracking(), or None for the objective's own")


def guaranteed(L: Smoothness, metric: object, f: Objective) -> Decrease:
    """The decrease of a step that minimises the upper bound with this L and metric."""
    L = f.L if L is None and metric is None else L
    if isinstance(L, float | int):
        return Decrease(float(L), metric=metric)
    grow = max((Backtracking() if L is None else L).grow, 1.001)  # the first estimate is a curvature and 0.1 %
    return Decrease(metric=metric, grow=grow)


@dataclass(eq=False)
class UpperBound(Stateful):
    """The quadratic upper bound of one run, in a metric, with a fixed L or one found by backtracking."""

    f: Objective
    space: Space
    smoothness: Smoothness
    metric: Any
    L: float | None = field(init=False)

    def __post_init__(self) -> None:
        known = self.smoothness if self.smoothness is not None else (self.f.L if self.metric is None else None)
        self.metric = as_metric(self.metric, self.space.shape)
        self.rule, self.L = (known, None) if isinstance(known, Backtracking) else (DEFAULT_RULE, known)
        self.fixed = self.L is not None
        if not self.fixed and self.rule.first is not None:
            self.L = self.rule.first / self.rule.shrink

    def square(self, d: Array) -> float:
        """||d||^2 in the metric."""
        return self.space.dot(d, self.metric(d))

    def curvature(self, x: Array, d: Array, slope: float) -> float | None:
        """A first L: the curvature over the first thousandth of d; where there is none, or f is not finite there, the L
        for which d itself is the shortest step. None: f is level along d."""
        square, h = self.square(d), 1e-3
        value, grad = self.f.value_and_grad(x + h * d)
        rise = self.space.dot(grad, d) - slope if inside(self.space, value, grad) else math.inf
        if square > 0 and 16.0 * self.space.eps * abs(slope) < rise < math.inf:
            return 1.001 * rise / (h * square)  # for a quadratic the bound is an equality, not to be broken by rounding
        return -slope / square if square > 0 > slope else None

    def minimise(
        self,
        x: Array,
        value: float,
        along: tuple[Array, float],
        propose: Callable[[float], tuple[T, Array, float, float]],
    ) -> T | None:
        """The result of propose(L) for the first L whose bound holds at x + d; None where there is none.

        propose(L) minimises the bound with this L, plus a cost, and returns (result, d, <grad, d>, change of the cost).
        `along` is the direction towards the oracle's atoms, and its slope; the first L is guessed along it.
        """
        if self.L is None:
            guess = self.curvature(x, *along)
            if guess is None:
                return None
            self.L = guess / self.rule.shrink
        if self.fixed:
            return propose(self.L)[0]
        L, slack = self.L * self.rule.shrink, 8.0 * self.space.eps * abs(value)
        while math.isfinite(L):
            result, d, slope, cost = propose(L)
            rise = slope + 0.5 * L * self.square(d)
            if rise + cost > slack:  # rounding hides the minimum of the bound
                return None
            if self.f.value(x + d) <= value + rise + slack:
                self.L = L
                return result
            L *= self.rule.grow
        return None
