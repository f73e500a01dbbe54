"""Checks around the loop, so that the loop itself shows the algorithm only.

The values of f and the answers of the oracle are checked and counted, and an f that is unbounded below is detected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import describe, is_array
from pursuit.arrays import Array, Space
from pursuit.domains import Answer, Domain
from pursuit.line_search import line_search
from pursuit.objectives import Objective, as_value
from pursuit.oracles import Ask, check_fits
from pursuit.state import Stateful
from pursuit.updates import Now
from pursuit.updates.base import Advance

PROBE_ITERATIONS = (0, 8, 16, 32)
"""Iterations at which a function without a known lower bound is followed to infinity along a direction."""


@dataclass(eq=False)
class GuardedObjective(Stateful):
    """f.value_and_grad at the point of an active set, its results checked, and with the cost of the weights. `t` counts
    the evaluations, one each iteration."""

    f: Objective
    space: Space
    t: int = field(default=0, init=False)

    def __call__(self, active: ActiveSet) -> tuple[float, Array]:
        value, grad = self.f.value_and_grad(active.x)
        value, t = value if type(value) is float else as_value(value), self.t
        self.t += 1
        if math.isnan(value):
            raise not_a_number("f", t)
        if value == math.inf:
            where = "at the start" if t == 0 else f"at iteration {t}, beyond its domain"
            advice = (
                "give start= a point where it is finite" if t == 0 else "use a step that descends, or Monotone(step)"
            )
            raise ValueError(f"f is infinite {where}; {advice}.")
        if getattr(grad, "shape", None) != self.space.shape or grad.dtype != self.space.dtype:
            check_gradient(grad, self.space)
        return value + active.cost, grad


@dataclass(eq=False)
class GuardedOracle(Stateful):
    """The oracle of one run, called for each summand of the domain. `calls` counts the calls of the sets' own oracles,
    `cached` the answers that needed none."""

    space: Space
    asks: tuple[Ask, ...]
    calls: int = field(default=0, init=False)
    cached: int = field(default=0, init=False)
    t: int = field(default=0, init=False)
    _last: list[Answer] = field(default_factory=list, init=False)
    """The last answer of each summand."""
    _asked: list[int] | None = field(default=None, init=False)
    """The summands that were asked last; None: all."""

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is refused below
    def __call__(self, grad: Array, active: ActiveSet) -> list[Answer]:
        """One answer per summand, each with its level <grad, x_b>. Where it is the turn of a few, the others keep their
        last atom, of which nothing is proved now: a turn costs the same however many summands there are."""
        if active.turn is None:
            answers = [self.ask(b, grad, active, level) for b, level in enumerate(active.levels(grad))]
            self._asked = None
        else:
            answers = self._last.copy()
            for b in range(len(answers)) if self._asked is None else self._asked:
                answers[b] = Answer(answers[b].atoms[:1], math.nan, 0.0, 0, level=math.nan)
            for b, alone in active.turn.items():
                answers[b] = self.ask(b, grad, active, alone(active).levels(grad)[0])
            self._asked = list(active.turn)
        self._last = answers
        self.t += 1
        return answers

    def ask(self, b: int, grad: Array, active: ActiveSet, gx: float) -> Answer:
        """The answer for summand b, checked and counted."""
        if math.isnan(gx):
            raise not_a_number("f", self.t)
        answer = self.asks[b](grad, active, gx)
        if math.isnan(answer.dot):
            raise not_a_number("the oracle", self.t)
        if answer.atoms[0].mismatch(self.space) is not None:
            check_fits(answer.atoms[0], self.space)
        self.calls += answer.calls
        self.cached += not answer.calls
        return answer if answer.level == gx else replace(answer, level=gx)


def check_gradient(grad: Array, space: Space) -> None:
    """Refuse a gradient whose shape is not that of x, or that has fewer digits."""
    if not is_array(grad):
        raise TypeError(f"the gradient of f is {describe(grad)}; return an array of the shape of x, {space.shape}.")
    if isinstance(grad, np.ndarray) != space.numpy:
        kind = type(grad).__module__.partition(".")[0]
        x = "NumPy array" if space.numpy else f"tensor of {space.xp.__name__}"
        raise TypeError(f"the gradient of f is an array of {kind}, x is a {x}; return one of its kind (docs/gpu.md).")
    if tuple(grad.shape) != space.shape:
        raise ValueError(f"the gradient of f has shape {tuple(grad.shape)}, x has {space.shape}; they must agree.")
    if "float32" in str(grad.dtype) and "float64" in str(space.dtype):
        raise TypeError(
            "the gradient of f has dtype float32, x has float64; compute it in float64, or give a start of float32."
        )


def not_a_number(source: str, t: int) -> ValueError:
    """The refusal of a NaN that f, in its value or its gradient, or the oracle returned."""
    return ValueError(f"{source} returned NaN at iteration {t}; check the objective and the atoms.")


@dataclass(eq=False)
class Probing(Stateful):
    """An update that at a few iterations first tests whether f falls for ever along the oracle's atom or along x, and
    raises UnboundedError if so."""

    advance: Advance
    f: Objective
    domain: Domain

    def __call__(self, now: Now, active: ActiveSet) -> None:
        if now.iteration in PROBE_ITERATIONS:
            self._probe(now, active)
        self.advance(now, active)

    def _probe(self, now: Now, active: ActiveSet) -> None:
        f, space, parts = self.f, active.space, self.domain.parts
        for part, answer in zip(parts, now.answers, strict=True):
            if not part.compact and not part.price and answer.dot < 0:
                line_search(f, active.x, answer.atoms[0].dense(space), answer.dot, math.inf)
        if len(parts) == 1 and not active.cost and now.answers[0].level < 0:
            line_search(f, active.x, active.x, now.answers[0].level, math.inf)
