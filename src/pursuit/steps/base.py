"""The contract of a step rule: a function of a move, and what its steps guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pursuit.arguments import describe, number
from pursuit.arrays import Array, Space
from pursuit.domains import Domain, Part
from pursuit.objectives import Objective
from pursuit.state import Stateful


@dataclass(slots=True)
class Move:
    """The input of a step rule: x + gamma * direction, gamma in [0, reach], slope = <grad f(x), direction> < 0.

    `value` is f(x), `delta` the quality of the oracle's answer. A function of a Move is a step rule; what it returns is
    moved into [0, reach]:

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(lambda move: 1 / (move.iteration + 2)), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.025 , 0.025 , 0.0125])
    """

    iteration: int
    x: Array
    value: float
    direction: Array
    slope: float
    reach: float
    delta: float


Length = Callable[[Move], float]
"""A step rule for one run: the step length gamma."""


@dataclass(frozen=True)
class Decrease:
    r"""What a step along d guarantees: f falls at least as much as by the step that minimises the upper bound
    :math:`f(x) + \gamma\langle\nabla f(x), d\rangle + \frac{\gamma^2}2 c(d)`. Rates of convergence follow from it.

    :math:`c(d) = L\|d\|^2` in the norm of `metric`, with `L` or, where that is None and L is found by backtracking,
    `grow` times the smoothness of f; or c(d) is the constant `C`. `exact`: f falls as much as with any upper bound, as
    it is minimised along d. `toward_only`: this holds for steps d = z - x over a hull. `moves` says what ends a step
    early: nothing ("toward"), an atom that loses its weight ("away"), or an atom that gives all of it to another one
    ("pairwise").

    Whether L or C are as large as f and the set need, `pursuit.promises` checks.
    """

    L: float | None = None
    exact: bool = False
    toward_only: bool = False
    metric: Any = None
    grow: float | None = None
    C: float | None = None
    moves: Literal["toward", "away", "pairwise"] = "toward"


class StepRule:
    """The contract of a step rule: `begin` returns the step length for one run; `monotone`: f never increases.

    >>> import pursuit as ps
    >>> class Constant(ps.StepRule):
    ...     monotone = False
    ...     def begin(self, f, domain, space):
    ...         return lambda move: 0.1
    >>> f, domain = ps.LeastSquares([0.5, 0.5]), ps.conv(ps.Simplex(2))
    >>> ps.minimize(f, domain, ps.Plain(Constant()), stop=ps.Stop(iterations=2)).x
    array([0.81, 0.19])
    """

    monotone: ClassVar[bool] = True

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        """The step lengths of one run: a function of a Move, or a `Stateful` object with this call."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(f, domain, space).")

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        """The decrease of f that is guaranteed along the directions of this domain; None: nothing is."""
        return None


def clip(gamma: float, reach: float) -> float:
    return max(0.0, min(gamma, reach))


Step = StepRule | Length


@dataclass(frozen=True)
class _OwnRule(StepRule):
    """The function of a Move that a user gave."""

    length: Length
    monotone: ClassVar[bool] = False

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        return self.length


def as_rule(step: object) -> StepRule:
    """A step rule, or a function of a Move as one; anything else is refused."""
    if isinstance(step, StepRule):
        return step
    if isinstance(step, type) or not callable(step):
        raise TypeError(f"step is {describe(step)}; give a step rule such as ShortStep(), or a function of a Move.")
    return _OwnRule(step)


def begin_step(step: Step, f: Objective, domain: Domain, space: Space) -> Length:
    """A step rule for one run: no step is longer than it may be."""
    return _Clipped(as_rule(step).begin(f, domain, space))


@dataclass(eq=False)
class _Clipped(Stateful):
    rule: Length

    def __call__(self, move: Move) -> float:
        length = self.rule(move)
        gamma = length if type(length) is float else number(length)
        if math.isnan(gamma):
            raise TypeError(f"step returned {describe(length)}; return a number, the length along move.direction.")
        return clip(gamma, move.reach)
