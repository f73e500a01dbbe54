"""How good: the best lower bound on f* seen so far. A reported gap is an upper bound on f(x) - f*, or it is infinite.

Three things can prove a bound, and the best counts: the oracle's answer of quality delta (the domain says how), strong
convexity of f over all of H, f* >= f(x) - ||grad f(x)||^2 / (2 mu), and the objective's own infimum. Each bound is
lowered by what rounding may have added.
"""

from __future__ import annotations

import math

from pursuit._arrays import Array, Space
from pursuit.active import ActiveSet
from pursuit.domains import Domain, Hull
from pursuit.objectives import Objective
from pursuit.oracles import Answer


class Certificate:
    """The memory of bounds of one run, and its measure of rounding."""

    def __init__(self, f: Objective, domain: Domain, space: Space) -> None:
        self.f, self.domain, self.space = f, domain, space
        self.lower = f.infimum
        self.gap = math.inf
        self.stationary = False
        self._scale = 0.0  # the size of gradients, in whose units rounding is measured

    def notice(self, grad_norm: float) -> None:
        """Take note of the size of a gradient."""
        self._scale = max(self._scale, grad_norm)

    def see(self, value: float, grad: Array, gx: float, answer: Answer, active: ActiveSet) -> None:
        """What this iteration proves."""
        eps, norm = self.space.eps, self.space.norm(grad)
        self.notice(norm)
        slack = 4.0 * eps * (abs(value) + abs(gx) + abs(answer.dot))
        bound = self.domain.lower(value, answer.dot, gx, answer.delta, self.f.mu) - slack
        if self.f.mu > 0:
            bound = max(bound, value - norm * norm / (2.0 * self.f.mu) - slack)
        self.lower = max(self.lower, bound)
        self.gap = max(value - self.lower, 0.0)
        self.stationary = self._at_rounding(gx, answer, active)

    def _at_rounding(self, gx: float, answer: Answer, active: ActiveSet) -> bool:
        """Whether no atom correlates with the gradient beyond rounding."""
        size = answer.atoms[0].norm(self.space)
        scale = self._scale
        if isinstance(self.domain, Hull):
            size += self.space.norm(active.x)
        elif self.f.L is not None:
            scale = max(scale, self.f.L * self.space.norm(active.x))
        noise = (1.0 if isinstance(self.domain, Hull) else 32.0) * self.space.eps * scale * size
        return -self.domain.slope(answer.dot, gx) <= noise
