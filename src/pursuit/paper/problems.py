"""The problems on which the theorems are tried: small sets of atoms, and objectives with known constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

import pursuit as ps
from pursuit import geometry
from pursuit.arrays import Small, Space
from pursuit.atoms import Atoms
from pursuit.domains import Domain
from pursuit.geometry import Interval, polytope
from pursuit.linalg import unit_columns
from pursuit.metrics import Diagonal
from pursuit.objectives import Objective
from pursuit.paper.claims import Case, Plan

DELTAS = (1.0, 0.6, 0.25)
"""Oracle qualities: exact, and two adversaries."""

ERROR_FLOOR = 1e-7
"""Errors f(x) - f* below this fraction of the first one are left out, as they consist of rounding."""

SHORT_STEP = ps.Plain(ps.ShortStep())  # Algorithm 2 variant 3, Algorithms 3 and 4 variant 0
LINE_SEARCH = ps.Plain(ps.LineSearch())  # Algorithm 2 variant 1; Algorithm 1
PURSUITS = {
    "matching pursuit": LINE_SEARCH,
    "Alg. 4 v0": SHORT_STEP,
    "Alg. 4 v1": ps.NormCorrective(),
    "OMP": ps.FullyCorrective(),
}


@dataclass(frozen=True)
class Problem:
    """f over the hull or span of A, its minimum there, and where to start."""

    name: str
    f: Objective
    A: Atoms
    optimum: float
    start: Any = None
    minimiser: Small = field(default_factory=lambda: np.empty(0))  # known over spans

    @property
    def first(self) -> Small:
        """x_0 over a span."""
        return np.zeros(len(self.minimiser)) if self.start is None else np.asarray(self.start)

    @property
    def L(self) -> float:
        """The smoothness of f."""
        return self.f.L or 0.0

    def states(self, domain: Domain, update: Any, steps: int, delta: float = 1.0) -> list[ps.State]:
        """The states x_0, ..., x_steps; for delta < 1 under the adversary."""
        oracle = ps.Approximate(delta, worst=True) if delta < 1 else ps.Exact()
        return list(islice(ps.iterate(self.f, domain, update, oracle=oracle, start=self.start), steps + 1))

    def errors(self, states: list[ps.State]) -> Small:
        """eps_t = f(x_t) - f*."""
        return np.array([s.value for s in states]) - self.optimum

    def trials(
        self, domain: Domain, updates: Iterable[Any], steps: int
    ) -> Iterator[tuple[float, list[ps.State], Small]]:
        """The quality of the oracle, the states and the errors, for every update and every oracle."""
        for update in updates:
            for delta in DELTAS:
                states = self.states(domain, update, steps, delta)
                yield delta, states, self.errors(states)

    def below(self, eps: Small, bound: Any, delta: float) -> Case:
        """The claim eps_t <= bound_t for t >= 1; at t = 0 the bound contains eps_0 itself."""
        return Case(self.name, eps[1:], bound[1:], delta=delta, floor=ERROR_FLOOR * eps[0])

    def shrinks(self, eps: Small, factor: float, delta: float) -> Case:
        """The claim eps_{t+1} <= factor eps_t."""
        return Case(self.name, eps[1:], factor * eps[:-1], delta=delta, floor=ERROR_FLOOR * eps[0])


Values = dict[str, Any]
"""Constants of a rate by name."""
Rate = Callable[..., Any]
"""A function of `pursuit.rates`, of t and constants."""
Constants = Callable[[Problem], Values]
"""The constants of a rate on a problem."""


def keeps(
    rate: Rate, constants: Constants, problems: Iterable[Problem], over: Any, updates: Any, steps: int
) -> Iterator[Case]:
    """The claim that no run exceeds a rate, for every problem, update and oracle; `updates` are a list, or a function
    of the problem."""
    for p in problems:
        size = constants(p)
        for delta, _, eps in p.trials(over(p.A), updates(p) if callable(updates) else updates, steps):
            yield p.below(eps, rate(np.arange(steps + 1), **size, eps0=eps[0], delta=delta), delta)


def shrinks(
    rate: Rate, constants: Constants, problems: Iterable[Problem], over: Any, updates: Any, steps: int
) -> Iterator[Case]:
    """The claim that each step shrinks the error by the factor of a linear rate, in the same cases."""
    for p in problems:
        size = constants(p)
        for delta, _, eps in p.trials(over(p.A), updates(p) if callable(updates) else updates, steps):
            yield p.shrinks(eps, rate(1, **size, eps0=1, delta=delta), delta)


def quadratic(rng: np.random.Generator, n: int, minimiser: Small, condition: float = 8.0) -> tuple[Objective, float]:
    """A quadratic with this minimiser, and its minimum."""
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H = (Q * np.geomspace(1.0, condition, n)) @ Q.T
    H = (H + H.T) / 2
    return ps.Quadratic(H, -H @ minimiser), -0.5 * float(minimiser @ H @ minimiser)


class LogCosh(ps.Objective):
    """sum log cosh(x - y) + mu/2 ||x - y||^2: not quadratic, smooth with 1 + mu, strongly convex with mu, minimum 0."""

    def __init__(self, y: Small, mu: float = 0.2) -> None:
        self.y, self.L, self.mu, self.space = y, 1 + mu, mu, Space.of(y)

    def value_and_grad(self, x: Small) -> tuple[float, Small]:
        r = x - self.y
        size = np.abs(r)
        value = (size + np.log1p(np.exp(-2 * size)) - np.log(2)).sum() + self.mu / 2 * (r @ r)
        return float(value), np.tanh(r) + self.mu * r

    def hessian(self, x: Small) -> Diagonal:
        return Diagonal(self.L - np.tanh(x - self.y) ** 2)


def objective(rng: np.random.Generator, kind: int, target: Small) -> tuple[Objective, float]:
    """An objective with minimiser `target` in the whole space, and its minimum."""
    if kind == 0:
        return ps.LeastSquares(target, weights=float(rng.uniform(0.3, 3.0))), 0.0
    return quadratic(rng, len(target), target) if kind == 1 else (LogCosh(target), 0.0)


def finished(result: ps.Result) -> ps.Result:
    """The result; one that Ctrl-C has cut short ends the paper."""
    if result.status is ps.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def hull(plan: Plan, i: int) -> Problem:
    """A problem over a hull: six kinds of sets, three kinds of objectives, minimisers inside and outside. It starts
    at the atom that points most along the gradient."""
    rng, n = plan.rng(1, i), 2 + (i + i // 6) % 3
    lengths = rng.uniform(0.5, 2.0, n + 3)
    A = (
        1.5 * ps.SignedBasis(n),
        ps.Simplex(n + 1),
        ps.Dictionary(unit_columns(rng.standard_normal((n, n + 3))) * lengths, signed=True),
        ps.Dictionary(rng.standard_normal((n, 2 * n + 2))),
        ps.Box(-rng.uniform(0.2, 1.0, n), rng.uniform(0.2, 1.0, n)),
        ps.Ball(n, 2),
    )[i % 6]
    dimension = n + 1 if i % 6 == 1 else n
    target = rng.standard_normal(dimension) * (0.3 if i % 4 == 0 else 1.2)
    f, _ = objective(rng, i // 6 % 3, target)
    best = finished(ps.minimize(f, ps.conv(A), stop=ps.Stop(gap=1e-11, rgap=None, iterations=400))).lower
    first = A.lmo(-f.value_and_grad(np.zeros(dimension))[1])
    return Problem(f"{type(A).__name__} {i}", f, A, best, ([1.0], [first]))


def span(plan: Plan, i: int) -> Problem:
    """A problem over the span of a symmetric set that spans the space, from 0 or from elsewhere."""
    rng, n = plan.rng(2, i), 2 + (i + i // 3) % 3
    A = (
        ps.SignedBasis(n),
        ps.Dictionary(unit_columns(rng.standard_normal((n, n + 2))), signed=True),
        ps.Dictionary(unit_columns(rng.standard_normal((n, n + 3))) * rng.uniform(0.5, 2.0, n + 3), signed=True),
    )[i // 3 % 3]
    target = rng.standard_normal(n)
    f, optimum = objective(rng, i % 3, target)
    return Problem(f"span {i}", f, A, optimum, rng.standard_normal(n) if i % 2 else None, target)


@cache
def spans(plan: Plan, count: int) -> list[Problem]:
    return [span(plan, i) for i in range(count)]


def hull_constants(p: Problem, norm: float = 2.0) -> Values:
    """Those of Theorem 1, in a p-norm."""
    return {"L": geometry.smoothness(p.f, p.A, norm=norm), "diameter": geometry.diameter(p.A, norm=norm)}


def span_constants(p: Problem, norm: float = 2.0) -> Values:
    """Those of Theorem 7, in a p-norm."""
    mu, L = (constant(p.f, p.A, norm=norm) for constant in (geometry.convexity, geometry.smoothness))
    return {"mu": mu, "L": L, **width_and_radius(p.A, norm)}


def width_and_radius(A: Atoms, norm: float = 2.0) -> Values:
    return {"mdw": geometry.mdw(A, norm=norm), "radius": geometry.radius(A, norm=norm)}


def rho_and_curvature(p: Problem) -> tuple[float, Interval]:
    """rho, known before the run, and the curvature of rho A."""
    rho = geometry.rho(p.A, p.f, p.first).upper
    return rho, geometry.curvature(p.f, p.A, "mp", rho)


def algorithm_6(p: Problem) -> list[ps.Update]:
    """Both variants of Algorithm 6."""
    rho, C = rho_and_curvature(p)
    return [ps.Plain(ps.CurvatureStep(C.upper, rho)), ps.FullyCorrective()]


def asymmetric(plan: Plan, i: int) -> Problem:
    """A problem over the span of a set without symmetry whose hull has 0 inside."""
    rng, n = plan.rng(3, i), 2 + i % 2
    while True:
        D = rng.standard_normal((n, 2 * n + 2))
        if polytope.mdw(D.T, False).lower > 0.05:
            break
    target = rng.standard_normal(n)
    f, optimum = objective(rng, i % 3, target)
    return Problem(f"no symmetry {i}", f, ps.Dictionary(D), optimum, None, target)


def narrowest(D: Small) -> Small:
    """The unit direction in which the atoms +-D are narrowest."""
    return polytope.mdw(D.T, True).direction


def narrow_sets(plan: Plan, key: int) -> Iterator[tuple[str, Small, Small, float]]:
    """A name, a regular matrix, unit atoms, and the quality of an oracle, below 1 with an atom that it may name in the
    narrowest direction."""
    for i in range(plan.problems // 3):
        rng, r = plan.rng(key, i), 2 + i % 4
        root = rng.standard_normal((r, r)) + 2 * np.eye(r)
        for delta in DELTAS:
            B = unit_columns(rng.standard_normal((r, r + 2)))
            yield f"narrowest {i}", root, B if delta == 1 else with_worst_atom(rng, B, delta), delta


def with_worst_atom(rng: np.random.Generator, D: Small, delta: float) -> Small:
    """D with one more unit atom, which an adversary of quality delta may name for the narrowest direction, and which
    leaves the width as it is."""
    width = polytope.mdw(D.T, True)
    d, side = width.direction, rng.standard_normal(len(D))
    side -= (side @ d) * d
    along = delta * width.upper
    return np.column_stack([D, along * d + np.sqrt(1 - along**2) * side / np.linalg.norm(side)])


def just_below(delta: float) -> float:
    """A quality so little below delta that rounding does not exclude an answer of quality exactly delta."""
    return delta if delta == 1 else delta * (1 - 1e-10)
