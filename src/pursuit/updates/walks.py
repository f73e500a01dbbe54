"""Updates along one direction: towards the new atom, away from an active one, or from an active one to the new one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from pursuit.active import ActiveSet
from pursuit.arrays import Small, Space
from pursuit.domains import Direction, Domain, Part
from pursuit.domains.base import LONG_STEP, exchange
from pursuit.objectives import Objective
from pursuit.state import Stateful
from pursuit.steps import (
    Decrease,
    Length,
    LineSearch,
    Move,
    ShortStep,
    Step,
    as_rule,
    begin_step,
)
from pursuit.updates.base import Advance, Now, Update, single

REFRESH_PERIOD = 64
"""Iterations after which x, which is updated incrementally, is computed from the weights again."""


class Walk(Update):
    """One direction per iteration, chosen by `_direction`, with the length of the step rule."""

    step: Step | None

    def __post_init__(self) -> None:
        if self.step is not None:
            as_rule(self.step)

    @property
    def descends(self) -> bool:  # type: ignore[override]
        return self.step is None or as_rule(self.step).monotone

    def _direction(self, part: Part, now: Now, active: ActiveSet) -> Direction:
        raise NotImplementedError

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        return _Steps(self, single(domain, self), self._length(f, domain, space))

    def _length(self, f: Objective, domain: Domain, space: Space) -> Length:
        return begin_step(self.step or (LineSearch() if f.has_hessian else ShortStep()), f, domain, space)

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        return as_rule(self.step or LineSearch()).decrease(f, part)


@dataclass(eq=False)
class _Steps(Stateful):
    """The steps of one run."""

    walk: Walk
    part: Part
    length: Length

    def __call__(self, now: Now, active: ActiveSet) -> None:
        d = self.walk._direction(self.part, now, active)
        gamma = self.length(Move(now.iteration, active.x, now.value, d.vector, d.slope, d.reach, now.answers[0].delta))
        active.step = gamma
        if gamma == 0.0:
            return
        x = active.x + gamma * d.vector
        d.move(gamma)
        if len(active) < len(active.atoms):
            active.keep(active.weights != 0)
        active.x = x
        if now.iteration % REFRESH_PERIOD == REFRESH_PERIOD - 1 or gamma >= LONG_STEP:
            if self.part.compact:
                active.weights /= active.weights.sum()
            active.refresh()


@dataclass(frozen=True)
class Plain(Walk):
    """A step towards the new atom z: along z - x over a hull, along z over a span, along z or -x over a cone.

    Parameters
    ----------
    step : OpenLoop, LineSearch, ShortStep, DiameterStep, CurvatureStep, Monotone, or a function of a Move

    Examples
    --------
    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.Plain(ps.LineSearch()))
    >>> r.x, r.oracle_calls                                    # matching pursuit on an orthonormal basis
    (array([3., 1.]), 3)
    """

    step: Step

    def _direction(self, part: Part, now: Now, active: ActiveSet) -> Direction:
        return part.toward(active, now.answers[0], now.answers[0].level)


class _Retreating(Walk):
    """Updates that take weight from active atoms: over hulls and cones only."""

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        part = single(domain, self)
        if part.signless:
            name = type(self).__name__
            raise ValueError(
                f"{name} takes weight from atoms, but the weights of {part!r} are free; use FullyCorrective."
            )
        return super().begin(f, domain, space)

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        guaranteed = super().decrease(f, part)
        return None if guaranteed is None or guaranteed.toward_only else replace(guaranteed, moves=self._moves(part))

    def _moves(self, part: Part) -> Literal["away", "pairwise"]:
        return "away"


@dataclass(frozen=True)
class Away(_Retreating):
    """Away-step Frank-Wolfe (Lacoste-Julien and Jaggi, 2015), and away-step non-negative matching pursuit: towards the
    oracle's atom or away from the worst active one, whichever descends faster. Linear convergence on polytopes.

    Parameters
    ----------
    step : LineSearch or ShortStep, optional
        None: an exact line search where f has a Hessian, a short step elsewhere.

    Examples
    --------
    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([0.4, 0.3, -1.0]), ps.conv(ps.Simplex(3)), ps.Away())
    >>> r.x.round(6), r.gap <= 1e-6 * r.value
    (array([0.55, 0.45, 0.  ]), True)
    """

    cites: ClassVar[tuple[str, ...]] = ("lacostejulien2015global",)
    step: Step | None = None

    def _direction(self, part: Part, now: Now, active: ActiveSet) -> Direction:
        toward = part.toward(active, now.answers[0], now.answers[0].level)
        if not len(active):
            return toward
        away = part.away(active, active.analyze(now.grad), now.answers[0].level)
        return toward if toward.slope <= away.slope else away


@dataclass(frozen=True)
class Pairwise(_Retreating):
    """Pairwise Frank-Wolfe, and pairwise non-negative matching pursuit: weight moves from the worst active atom to the
    oracle's. Linear convergence on polytopes.

    Parameters
    ----------
    step : LineSearch or ShortStep, optional
        None: an exact line search where f has a Hessian, a short step elsewhere.

    Examples
    --------
    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([0.4, 0.3, -1.0]), ps.conv(ps.Simplex(3)), ps.Pairwise())
    >>> r.x.round(6), r.gap <= 1e-6 * r.value
    (array([0.55, 0.45, 0.  ]), True)
    """

    cites: ClassVar[tuple[str, ...]] = ("lacostejulien2015global",)
    step: Step | None = None

    def _direction(self, part: Part, now: Now, active: ActiveSet) -> Direction:
        return part.pairwise(active, now.answers[0], active.analyze(now.grad))

    def _moves(self, part: Part) -> Literal["away", "pairwise"]:
        return "pairwise"


@dataclass(frozen=True)
class BlendedPairwise(_Retreating):
    """Blended pairwise conditional gradients (Tsuji, Tanaka and Pokutta, 2022): weight moves between active atoms while
    this descends at least as fast as the step towards the oracle's atom.

    With `oracle=Lazy()` the set is asked only where the active atoms do not descend fast enough.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.4, 0.3, -1.0]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.BlendedPairwise(), oracle=ps.Lazy())
    >>> r.x.round(6), r.gap <= 1e-6 * r.value
    (array([0.55, 0.45, 0.  ]), True)
    """

    cites: ClassVar[tuple[str, ...]] = ("tsuji2022pairwise",)
    step: Step | None = None
    blends = True

    def _direction(self, part: Part, now: Now, active: ActiveSet) -> Direction:
        answer, q = now.answers[0], active.analyze(now.grad)
        if not part.compact:
            return part.pairwise(active, answer, q)
        best, local = self._local_pair(active, q)
        if local >= now.answers[0].level - answer.dot:
            return exchange(active, active.atoms[best], float(q[best]), q)
        return part.toward(active, answer, now.answers[0].level)

    @staticmethod
    def _local_pair(active: ActiveSet, q: Small) -> tuple[int, float]:
        """The place of the best active atom, and the difference of <grad, a> between the worst and the best."""
        support = active.support
        best = int(support[q[support].argmin()])
        return best, float(q[support].max() - q[best])

    def _moves(self, part: Part) -> Literal["away", "pairwise"]:
        return "away" if part.compact else "pairwise"
