"""The step rules of the paper: open loop, line search, and the minimum of an upper bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pursuit.arguments import as_bool, describe, number, require, use_python_numbers
from pursuit.arrays import Array, Space
from pursuit.domains import Domain, Part
from pursuit.line_search import line_search
from pursuit.objectives import Objective, Smooth
from pursuit.state import Stateful
from pursuit.steps.base import Decrease, Length, Move, StepRule, as_rule, begin_step, clip
from pursuit.steps.bound import Smoothness, UpperBound, check_smoothness, guaranteed

MAX_HALVINGS = 60
"""Halvings of a step that is to be monotone; beyond them rounding decides, and the step is 0."""


@dataclass(eq=False)
class _Shortest(Stateful):
    """The step that minimises slope gamma + L/2 ||d||^2 gamma^2; `square` may bound ||d||^2."""

    bound: UpperBound
    square: float | None = None

    def __call__(self, move: Move) -> float:
        bound, square = self.bound, self.bound.square(move.direction) if self.square is None else self.square
        if bound.fixed and bound.L is not None:
            return -move.slope / (bound.L * square) if square > 0 else 0.0

        def propose(L: float) -> tuple[float, Array, float, float]:
            gamma = clip(-move.slope / (L * square), move.reach) if square > 0 else 0.0
            return gamma, gamma * move.direction, gamma * move.slope, 0.0

        return bound.minimise(move.x, move.value, (move.direction, move.slope), propose) or 0.0


@dataclass(frozen=True)
class OpenLoop(StepRule):
    r"""Algorithm 2, variant 0: gamma = 2 / (delta t + 2), the step that the proof covers for every delta.

    With another `power` l it is :math:`\gamma = l/(\delta t + l)`, which is faster on strongly convex sets and where
    the minimum is inside (Wirth, Kerdreux and Pokutta, 2023); with ``"log"``, :math:`l = 2 + \log(t + 1)`, which is
    nearly as fast as the best power without knowing it (Pokutta, 2024). f may increase; see `Monotone`. delta is the
    smallest quality of an answer so far. Where nothing is proved of one (delta = 0) it does not count, and no rate is
    promised.

    Parameters
    ----------
    power : float of at least 1, or "log"

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.325 , 0.0361, 0.0861])
    >>> f, ball = ps.LeastSquares([2.0, 1.0, 0.5], weights=[1.0, 4.0, 9.0]), ps.conv(ps.Ball(3, 2))
    >>> [ps.minimize(f, ball, ps.Plain(ps.OpenLoop(power))).iterations for power in (2, 4, "log")]
    [2420, 180, 87]
    """

    power: float | str = 2.0
    monotone: ClassVar[bool] = False

    def __post_init__(self) -> None:
        valid = str(self.power) == "log" or 1 <= number(self.power) < math.inf
        require(valid, "power", self.power, 'a number of at least 1, or "log"')
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        if not domain.bounded:
            raise ValueError(f"OpenLoop is a step inside a hull; over {domain!r} use LineSearch() or ShortStep().")
        return _Harmonic(self.power)

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        return Decrease(f.L, exact=True, toward_only=True) if self == OpenLoop() else None  # whatever the constant is


@dataclass(eq=False)
class _Harmonic(Stateful):
    """power / (delta t + power) for the smallest delta so far: a rate with this delta held before it fell, too."""

    power: float | str
    _delta: float = field(default=1.0, init=False)

    def __call__(self, move: Move) -> float:
        self._delta = min(self._delta, move.delta or 1.0)
        power = 2.0 + math.log1p(move.iteration) if isinstance(self.power, str) else self.power
        return power / (self._delta * move.iteration + power)


@dataclass(frozen=True)
class Monotone(StepRule):
    r"""A step that is halved until f does not increase, and stays within the domain of f (Carderera, Besancon and
    Pokutta, 2021): :math:`\gamma_t = 2^{-r_t} \bar\gamma_t` with the length :math:`\bar\gamma_t` of the given rule.
    The number of halvings :math:`r_t` never falls.

    Parameters
    ----------
    step : OpenLoop or another step rule

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.Monotone(ps.OpenLoop())), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.025 , 0.025 , 0.0125])
    """

    step: Any

    def __post_init__(self) -> None:
        as_rule(self.step)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        return _Halving(f, begin_step(self.step, f, domain, space))


@dataclass(eq=False)
class _Halving(Stateful):
    f: Objective
    inner: Length
    _share: float = field(default=1.0, init=False)

    def __call__(self, move: Move) -> float:
        gamma = self.inner(move)
        for halvings in range(MAX_HALVINGS):
            trial = 0.5**halvings * self._share
            if self.f.value(move.x + trial * gamma * move.direction) <= move.value:
                self._share = trial
                return trial * gamma
        return 0.0


@dataclass(frozen=True)
class LineSearch(StepRule):
    """Algorithm 2, variant 1, and matching pursuit: the exact minimiser of f along the direction.

    Parameters
    ----------
    secant : bool
        True: secant steps on the derivative, by gradients only. False: Newton steps where f has a Hessian.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.0017, 0.0017])
    """

    secant: bool = False

    def __post_init__(self) -> None:
        as_bool(self.secant, "secant")

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        f = Smooth(f.value_and_grad, convex=f.convex) if self.secant else f
        return lambda move: line_search(f, move.x, move.direction, move.slope, move.reach)

    def decrease(self, f: Objective, part: Part) -> Decrease:
        return Decrease(f.L, exact=True)


@dataclass(frozen=True)
class ShortStep(StepRule):
    """Algorithm 2, variant 3, and variant 0 of Algorithms 3 and 4: gamma = <-g, d> / (L ||d||^2), clipped.

    Parameters
    ----------
    L : float, Backtracking or None
        Smoothness; None: the objective's, or backtracking where it has none.
    metric : positive definite matrix or diagonal, optional
        The norm of the bound; L then belongs to that norm.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.ShortStep()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.0017, 0.0017])
    """

    L: Smoothness = None
    metric: Any = None

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        return _Shortest(UpperBound(f, space, self.L, self.metric))

    def decrease(self, f: Objective, part: Part) -> Decrease:
        return guaranteed(self.L, self.metric, f)


@dataclass(frozen=True)
class DiameterStep(StepRule):
    """Algorithm 2, variant 2: gamma = <-g, z - x> / (L diam(A)^2), clipped. The diameter may be an upper bound.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.Plain(ps.DiameterStep()), stop=ps.Stop(iterations=3))
    >>> r.trace.value.round(4)
    array([0.225 , 0.0225, 0.003 , 0.002 ])
    """

    L: Smoothness = None
    diameter: float | None = None

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        valid = self.diameter is None or 0 < number(self.diameter) < math.inf
        require(valid, "diameter", self.diameter, "a positive bound on it, or None for the set's own")
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        if not domain.bounded:
            raise ValueError(f"DiameterStep is a step inside a hull; over {domain!r} use ShortStep().")
        A = domain.parts[0].A
        diameter = self.diameter if self.diameter is not None else A.diameter
        if diameter is None:
            raise ValueError(f"the diameter of {A!r} is not known; give DiameterStep(diameter=...).")
        return _Shortest(UpperBound(f, space, self.L, None), float(diameter) * float(diameter))

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        L, diameter = guaranteed(self.L, None, f).L, self.diameter or part.A.diameter
        return None if L is None or diameter is None else Decrease(L, toward_only=True, C=L * diameter**2)


@dataclass(frozen=True)
class CurvatureStep(StepRule):
    """Algorithm 5: gamma = <-g, z - x> / C_f, clipped; Algorithm 6, variant 1: gamma = rho^2 <-g, z> / C.

    Parameters
    ----------
    C : float
        Over a hull the curvature constant C_f of f over conv(A); over a span that of rho conv(A), C^MP. Any upper bound
        will do.
    rho : float
        The bound on atomic norms that C belongs to, over a span.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, A = ps.LeastSquares([0.5, 0.4, 0.2]), ps.Simplex(3)
    >>> C = ps.geometry.curvature(f, A).upper
    >>> r = ps.minimize(f, ps.conv(A), ps.Plain(ps.CurvatureStep(C)), stop=ps.Stop(iterations=3))
    >>> round(C, 6), r.trace.value.round(4)
    (2.0, array([0.225 , 0.0225, 0.003 , 0.002 ]))
    """

    C: float
    rho: float = 1.0

    def __post_init__(self) -> None:
        for name, constant in (("C", self.C), ("rho", self.rho)):
            if not 0 < number(constant) < math.inf:
                raise ValueError(f"{name} is {describe(constant)}; CurvatureStep needs a positive number.")
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        scale = 1.0 if domain.bounded else self.rho * self.rho
        return lambda move: -move.slope * scale / self.C

    def decrease(self, f: Objective, part: Part) -> Decrease:
        return Decrease(toward_only=part.compact, C=self.C if part.compact else self.C / self.rho**2)


@dataclass(frozen=True)
class AutoConditioned(StepRule):
    r"""Auto-conditioned steps (Giang-Tran, Shafiee and Ho-Nguyen, 2026), :math:`\gamma = \langle-g, d\rangle /
    (M\|d\|^2)`, clipped, where M is the largest curvature seen: :math:`2(f(x_{t+1}) - f(x_t) - \langle g_t, x_{t+1} -
    x_t\rangle) / \|x_{t+1} - x_t\|^2` of the steps before, and that along the first direction.

    No L is needed, no line search, and after the first step no value of f beyond those of the run. f may increase in a
    step that is longer than f curves; the next ones are shorter. For matching pursuit, away and pairwise steps, too.

    >>> import numpy as np, pursuit as ps
    >>> f = ps.Smooth(lambda x: float(np.sum(x**4)) / 4, lambda x: x**3)    # its L depends on where x is
    >>> ps.minimize(f, ps.conv(ps.Simplex(2)), ps.Plain(ps.AutoConditioned())).x.round(3)
    array([0.5, 0.5])
    """

    monotone: ClassVar[bool] = False

    def begin(self, f: Objective, domain: Domain, space: Space) -> Length:
        return _Conditioned(UpperBound(f, space, None, None))


@dataclass(eq=False)
class _Conditioned(Stateful):
    bound: UpperBound
    _M: float = field(default=0.0, init=False)
    _last: list[float] = field(default_factory=list, init=False)
    """f before the last step, the change of f to first order, and half of its squared length."""

    def __call__(self, move: Move) -> float:
        if self._last:
            before, slope, half = self._last
            above, noise = move.value - before - slope, 64 * self.bound.space.eps * (abs(before) + abs(move.value))
            if half > 0 and noise < above < math.inf:
                self._M = max(self._M, above / half)
        elif self._M == 0.0:
            self._M = self.bound.curvature(move.x, move.direction, move.slope) or 0.0
        square = self.bound.square(move.direction)
        gamma = clip(-move.slope / (self._M * square), move.reach) if self._M * square > 0 else 0.0
        self._last = [move.value, gamma * move.slope, 0.5 * gamma**2 * square]
        return gamma
