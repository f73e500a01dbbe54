"""What the loop calls, wrapped once before it begins: f and the oracle are checked and counted, and a run that goes
nowhere, or to minus infinity, is noticed. So the loop itself shows the algorithm only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count

from pursuit._arrays import Array, Space
from pursuit.active import ActiveSet
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective
from pursuit.oracles import Oracle, check_fits
from pursuit.steps import line_search
from pursuit.updates import Now, Update
from pursuit.updates.base import Advance

PATIENCE = 30
"""Iterations without a lower value or a smaller gap after which a descending update has stalled."""

PROBES = (0, 8, 16, 32)
"""Iterations at which a function that nobody knows to be bounded below is followed to infinity."""


def guarded(f: Objective, space: Space) -> Callable[[Array], tuple[float, Array]]:
    """f.value_and_grad for the loop, which calls it once in each iteration: a number, and a gradient of x's shape."""
    iterations = count()

    def value_and_grad(x: Array) -> tuple[float, Array]:
        t, (value, grad) = next(iterations), f.value_and_grad(x)
        check_shape(grad, space)
        check_number(float(value), "f", t)
        return float(value), grad

    return value_and_grad


class GuardedOracle:
    """The oracle of one run, asked for each summand of the domain. `calls` counts how often a set was asked, `cached`
    the answers that took no such call."""

    def __init__(self, oracle: Oracle, update: Update, f: Objective, domain: Domain, space: Space) -> None:
        alone = f if len(domain.parts) == 1 else None
        self._asks = [oracle.begin(part, space, update.several, update.blends, alone) for part in domain.parts]
        self._space, self._iterations = space, count()
        self.calls = self.cached = 0

    def __call__(self, grad: Array, active: ActiveSet, shares: Sequence[float]) -> list[Answer]:
        """One answer per summand, given <grad, x_b> for the summands' points; once in each iteration."""
        t = next(self._iterations)
        check_number(sum(shares), "f", t)  # a NaN in its gradient
        answers = [self.ask(b, grad, active, gx) for b, gx in enumerate(shares)]
        check_number(sum(answer.dot for answer in answers), "the oracle", t)
        return answers

    def ask(self, b: int, grad: Array, active: ActiveSet, gx: float) -> Answer:
        """The answer for the summand b, counted."""
        answer = self._asks[b](grad, active, gx)
        check_fits(answer.atoms[0], self._space)
        self.calls += answer.calls
        self.cached += not answer.calls
        return answer


def check_shape(grad: Array, space: Space) -> None:
    """A gradient has the shape of x."""
    if tuple(grad.shape) != space.shape:
        raise ValueError(f"the gradient of f has shape {tuple(grad.shape)}, x has {space.shape}; they must agree.")


def check_number(total: float, who: str, t: int) -> None:
    """A sum of what f or the oracle returned is no NaN."""
    if math.isnan(total):
        raise ValueError(f"{who} returned NaN at iteration {t}; check the objective and the atoms.")


def probing(advance: Advance, f: Objective, domain: Domain, space: Space) -> Advance:
    """The same update, but at a few iterations it looks first whether f falls for ever along the oracle's atom or along
    x, and raises UnboundedError if so: where the domain has no bound and nobody knows one of f."""
    if domain.bounded or f.infimum > -math.inf or f.mu > 0 or not f.exact:
        return advance

    def probe(now: Now, active: ActiveSet) -> None:
        for part, answer in zip(domain.parts, now.answers, strict=True):
            if not part.compact and answer.dot < 0:
                line_search(f, space, active.x, answer.atoms[0].dense(space), answer.dot, math.inf)
        if len(domain.parts) == 1 and now.shares[0] < 0:
            line_search(f, space, active.x, active.x, now.shares[0], math.inf)

    def probe_and_advance(now: Now, active: ActiveSet) -> None:
        if now.iteration in PROBES:
            probe(now, active)
        advance(now, active)

    return probe_and_advance


class Patience:
    """Counts iterations in which a descending update improved neither the value nor the gap."""

    def __init__(self, descends: bool) -> None:
        self.descends, self.value, self.gap, self.idle = descends, math.inf, math.inf, 0

    def ends(self, value: float, gap: float, answers: Sequence[Answer]) -> bool:
        """Whether the run has stalled. Only answers of a set that was asked for its best atom count: after others,
        from memory or at random, the next one may still help."""
        asked = all(answer.calls > 0 and (answer.lower is not None or answer.delta > 0) for answer in answers)
        better = value < self.value or gap < self.gap or not asked
        self.value, self.gap = min(value, self.value), min(gap, self.gap)
        self.idle = 0 if better else self.idle + 1
        return self.descends and self.idle >= PATIENCE
