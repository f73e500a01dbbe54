"""How good: the best lower bound on f* seen so far. A reported gap is an upper bound on f(x) - f*, or it is infinite.

Three things can prove a bound, and the best counts: the oracle's answer (the domain says how), strong
convexity of f over all of H, f* >= f(x) - ||grad f(x)||^2 / (2 mu), and the objective's own infimum. Each bound is
lowered by what rounding may have added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pursuit._arrays import Array, Space
from pursuit.active import ActiveSet
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective


class Certificate:
    """The memory of bounds of one run, and its measure of rounding."""

    def __init__(self, f: Objective, domain: Domain, space: Space) -> None:
        self.f, self.domain, self.space = f, domain, space
        self.lower = f.infimum if f.exact else -math.inf
        self.gap = math.inf
        self.stationary = False
        self._scale = 0.0  # the size of gradients, in whose units rounding is measured
        self._first = 0.0

    def notice(self, grad_norm: float) -> None:
        """Take note of the size of a gradient. Where nothing bounds the curvature of f, a bad point may have an
        astronomical one, which says nothing about rounding elsewhere: only the first, at 0 over hulls, and this count.
        """
        self._first = self._first or grad_norm
        self._scale = max(self._first if self.f.L is None else self._scale, grad_norm)

    def see(
        self, value: float, grad: Array, shares: Sequence[float], answers: Sequence[Answer], active: ActiveSet
    ) -> None:
        """What this iteration proves."""
        eps, norm = self.space.eps, self.space.norm(grad)
        self.notice(norm)
        if not self.f.exact:
            return
        reach = self.space.norm(active.x) + sum(self._reach(a) for a in answers)
        slack = 4.0 * eps * (abs(value) + norm * reach)  # what the inner products may have lost
        bound = self.domain.lower(value, answers, shares, self.f.mu) - slack
        if self.f.mu > 0:
            bound = max(bound, value - norm * norm / (2.0 * self.f.mu) - slack)
        self.lower = max(self.lower, bound)
        self.gap = max(value - self.lower, 0.0)
        self.stationary = self._at_rounding(shares, answers, active)

    def _reach(self, answer: Answer) -> float:
        """The factor of rounding in the bound that an answer proves; dividing by delta magnifies it."""
        return answer.atoms[0].norm(self.space) / (answer.delta or 1.0 if answer.lower is None else 1.0)

    def _at_rounding(self, shares: Sequence[float], answers: Sequence[Answer], active: ActiveSet) -> bool:
        """Whether no atom correlates with the gradient beyond rounding."""
        size = sum(a.atoms[0].norm(self.space) for a in answers)
        factor, scale, length = 1.0, self._scale, self.space.norm(active.x)
        if self.domain.bounded:
            size += length
        else:
            factor = 32.0
            scale = max(scale, (self.f.L or 0.0) * length)
            size += length * any(p.nonnegative for p in self.domain.parts)
        return -self.domain.steepest(answers, shares) <= factor * self.space.eps * scale * size
