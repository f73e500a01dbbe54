"""The certificate: the best lower bound on f* so far. A reported gap is an upper bound on f(x) - f*, or it is infinite.

Three facts prove a bound, and the best bound counts: the oracle's answer (the domain has the formula), strong
convexity of f over all of H, f* >= f(x) - ||grad f(x)||^2 / (2 mu), and the objective's own infimum. Each bound is
lowered by the error that rounding may have made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pursuit._arrays import Array, Space
from pursuit.active import ActiveSet
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective


class Certificate:
    """The best lower bound of one run, and the scale of its rounding errors."""

    def __init__(self, f: Objective, domain: Domain, space: Space) -> None:
        self.f, self.domain, self.space = f, domain, space
        self.lower = f.infimum if f.exact else -math.inf
        self.gap = math.inf
        self.stationary = False
        self._scale = 0.0  # the largest norm of a gradient, the unit of rounding errors
        self._first = 0.0  # the norm of the first gradient

    def observe_gradient(self, grad_norm: float) -> None:
        """Adjust the scale of rounding errors to the norm of a gradient.

        Where the curvature of f has no bound, a bad point may have a huge gradient, which says nothing about rounding
        at other points. Then only the first gradient (over a hull, that at 0) and the current one count.
        """
        self._first = self._first or grad_norm
        self._scale = max(self._first if self.f.L is None else self._scale, grad_norm)

    def observe(
        self, value: float, grad: Array, point_dots: Sequence[float], answers: Sequence[Answer], active: ActiveSet
    ) -> None:
        """Update the lower bound and the gap by what this iteration proves."""
        eps, norm = self.space.eps, self.space.norm(grad)
        self.observe_gradient(norm)
        if not self.f.exact:
            return
        reach = self.space.norm(active.x) + sum(self._error_norm(a) for a in answers)
        slack = 4.0 * eps * (abs(value) + norm * reach)  # the rounding errors of the inner products
        bound = self.domain.lower(value, answers, point_dots, self.f.mu) - slack
        if self.f.mu > 0:
            bound = max(bound, value - norm * norm / (2.0 * self.f.mu) - slack)
        self.lower = max(self.lower, bound)
        self.gap = max(value - self.lower, 0.0)
        self.stationary = self._at_rounding(point_dots, answers, active)

    def _error_norm(self, answer: Answer) -> float:
        """The norm by which rounding errors enter the bound of an answer; the division by delta magnifies them."""
        return answer.atoms[0].norm(self.space) / ((answer.delta or 1.0) if answer.lower is None else 1.0)

    def _at_rounding(self, point_dots: Sequence[float], answers: Sequence[Answer], active: ActiveSet) -> bool:
        """Whether no atom correlates with the gradient beyond rounding."""
        size = sum(a.atoms[0].norm(self.space) for a in answers)
        factor, scale, length = 1.0, self._scale, self.space.norm(active.x)
        if self.domain.bounded:
            size += length
        else:
            factor = 32.0
            scale = max(scale, (self.f.L or 0.0) * length)
            size += length * any(p.nonnegative for p in self.domain.parts)
        return -self.domain.steepest(answers, point_dots) <= factor * self.space.eps * scale * size
