"""Checks around the loop, so that the loop itself shows the algorithm only.

The values of f and the answers of the oracle are checked and counted. A run that stalls is detected, and an f that is
unbounded below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pursuit._memory import Remembers, WithMemory, has_memory, remembering
from pursuit.active import ActiveSet
from pursuit.arguments import describe
from pursuit.arrays import Array, Space
from pursuit.atoms.frames import Atom
from pursuit.certificates import Bound, Certificate
from pursuit.domains import Answer, Domain
from pursuit.line_search import line_search
from pursuit.objectives import Objective, as_value
from pursuit.oracles import Oracle, ask_in_face, check_fits
from pursuit.updates import Now, Update
from pursuit.updates.base import Advance

STALL_ITERATIONS = 30
"""Iterations without a lower value or a smaller gap after which a descending update has stalled."""

PROBE_ITERATIONS = (0, 8, 16, 32)
"""Iterations at which a function without a known lower bound is followed to infinity along a direction."""


class GuardedObjective(Remembers):
    """f.value_and_grad at the point of an active set, its results checked, and with the cost of the weights. `t` counts
    the evaluations, one each iteration."""

    remembers = ("t", "_averages")

    def __init__(self, f: Objective, space: Space) -> None:
        self._f, self._space = f, space
        self.t = 0
        self._averages = (f,) if has_memory(f) else ()  # of a stochastic f

    def __call__(self, active: ActiveSet) -> tuple[float, Array]:
        value, grad = self._f.value_and_grad(active.x)
        value, t = as_value(value), self.t
        self.t += 1
        check_number(value, "f", t)
        if value == math.inf:
            where = "at the start" if t == 0 else f"at iteration {t}, beyond its domain"
            advice = (
                "give start= a point where it is finite" if t == 0 else "use a step that descends, or Monotone(step)"
            )
            raise ValueError(f"f is infinite {where}; {advice}.")
        check_shape(grad, self._space)
        return value + active.cost, grad


class GuardedOracle(Remembers):
    """The oracle of one run, called for each summand of the domain. `calls` counts the calls of the sets' own oracles,
    `cached` the answers that needed none."""

    remembers = ("_asks", "_last", "calls", "cached", "t")

    def __init__(self, oracle: Oracle, update: Update, f: Objective, domain: Domain, space: Space) -> None:
        alone = f if len(domain.parts) == 1 else None
        begun = (oracle.begin(part, space, update.several, update.blends, alone) for part in domain.parts)
        if getattr(update, "faces", False):
            begun = (ask_in_face(ask, part, space) for ask, part in zip(begun, domain.parts, strict=True))
        self._asks, self._space = tuple(map(remembering, begun)), space
        self._last: list[Atom] = []  # of the last answers, one for each summand
        self.calls = self.cached = self.t = 0

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused below
    def __call__(self, grad: Array, active: ActiveSet) -> list[Answer]:
        """One answer per summand, each with its level <grad, x_b>."""
        levels, t = active.levels(grad), self.t
        self.t += 1
        check_number(sum(levels), "f", t)  # a NaN in its gradient
        turn = range(len(levels)) if active.turn is None or not self._last else active.turn
        answers = [
            self.ask(b, grad, active, gx) if b in turn else _not_asked(self._last[b], grad, active, b, gx)
            for b, gx in enumerate(levels)
        ]
        self._last = [answer.atoms[0] for answer in answers]
        check_number(sum(answer.dot for answer in answers), "the oracle", t)
        return answers

    def ask(self, b: int, grad: Array, active: ActiveSet, gx: float) -> Answer:
        """The answer for summand b, checked and counted."""
        answer: Answer = self._asks[b](grad, active, gx)
        check_fits(answer.atoms[0], self._space)
        self.calls += answer.calls
        self.cached += not answer.calls
        return Answer(answer.atoms, answer.dot, answer.delta, answer.calls, answer.lower, gx)


def _not_asked(atom: Atom, grad: Array, active: ActiveSet, b: int, level: float) -> Answer:
    """The answer for a summand whose turn it is not: its last atom, of which nothing is proved now."""
    return Answer([atom], atom.dot(active.space, grad) + float(active.prices[b]), 0.0, 0, level=level)


def check_shape(grad: Array, space: Space) -> None:
    """Refuse a gradient whose shape is not that of x."""
    if not hasattr(grad, "shape"):
        raise TypeError(f"the gradient of f is {describe(grad)}; return an array of the shape of x, {space.shape}.")
    if tuple(grad.shape) != space.shape:
        raise ValueError(f"the gradient of f has shape {tuple(grad.shape)}, x has {space.shape}; they must agree.")


def check_number(total: float, source: str, t: int) -> None:
    """Refuse a NaN; `total` is a sum of numbers that f or the oracle returned."""
    if math.isnan(total):
        raise ValueError(f"{source} returned NaN at iteration {t}; check the objective and the atoms.")


def probing(advance: Advance, f: Objective, domain: Domain, space: Space) -> Advance:
    """The update `advance`, which at a few iterations first tests whether f falls for ever along the oracle's atom or
    along x, and raises UnboundedError if so. Nothing is tested where the domain is bounded or f has a known bound."""
    if domain.bounded or f.infimum > -math.inf or f.mu > 0 or not f.exact:
        return advance

    def probe(now: Now, active: ActiveSet) -> None:
        for part, answer in zip(domain.parts, now.answers, strict=True):
            if not part.compact and not part.price and answer.dot < 0:
                line_search(f, space, active.x, answer.atoms[0].dense(space), answer.dot, math.inf)
        if len(domain.parts) == 1 and not active.cost and now.answers[0].level < 0:
            line_search(f, space, active.x, active.x, now.answers[0].level, math.inf)

    def probe_and_advance(now: Now, active: ActiveSet) -> None:
        if now.iteration in PROBE_ITERATIONS:
            probe(now, active)
        advance(now, active)

    return WithMemory(probe_and_advance, advance)


class StallDetector(Remembers):
    """The certificate of one run, which also counts successive iterations in which a descending update improved neither
    the value nor the gap."""

    remembers = ("certificate", "_lowest", "_smallest_gap", "_count")

    def __init__(self, certificate: Certificate, descends: bool) -> None:
        self.certificate, self._descends = certificate, descends
        self._lowest = self._smallest_gap = math.inf
        self._count = 0

    def __call__(self, value: float, grad: Array, answers: Sequence[Answer], active: ActiveSet) -> Bound:
        """The bound at this iteration. After an answer from memory, or a random one, the count starts again: the next
        answer may still help."""
        gap = self.certificate(value, grad, answers, active).gap
        searched = all(answer.calls > 0 and (answer.lower is not None or answer.delta > 0) for answer in answers)
        better = value < self._lowest or gap < self._smallest_gap or not searched
        self._lowest = min(value, self._lowest)
        self._smallest_gap = min(gap, self._smallest_gap)
        self._count = 0 if better else self._count + 1
        return self.bound

    @property
    def bound(self) -> Bound:
        """The last bound, and whether the run has stalled."""
        return self.certificate.bound._replace(stalled=self._descends and self._count >= STALL_ITERATIONS)
