"""The sublinear rates: Theorems 1, 2, 11 and 12 and Corollary 4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Small
from pursuit.paper.claims import Case, Plan, claim
from pursuit.paper.problems import (
    DELTAS,
    LINE_SEARCH,
    PURSUITS,
    SHORT_STEP,
    Problem,
    Values,
    algorithm_6,
    hull,
    hull_constants,
    keeps,
    rho_and_curvature,
    spans,
)

SUBLINEAR_STEPS = 20


def induction(bound: Callable[[Small, float, float, float], Any], share: float) -> Iterator[Case]:
    """The bound satisfies the induction of its proof: with half = share delta and gamma = 2/(half t + 2),
    (1 - gamma half) B_t + gamma^2/2 (C + half eps_0) = (1 - half/(half t + 2)) B_t, which is at most B_{t+1}."""
    t = np.arange(200.0)
    for C, eps0, delta in ((4.0, 1.0, 1.0), (1.0, 3.0, 0.6), (0.3, 0.1, 0.25)):
        half, now = share * delta, bound(t, C, eps0, delta)
        gamma = 2 / (half * t + 2)
        step = (1 - gamma * half) * now + gamma**2 / 2 * (C + half * eps0)
        yield Case("", now * (1 - half / (half * t + 2)), step, "==")


def nearly_tight() -> Problem:
    """f = 1/2 (x - 1.001)^2 on {1, 2} from 1: the first open-loop step jumps to the far end, to 3/4 of the bound."""
    A = ps.Dictionary(np.array([[1.0, 2.0]]))
    return Problem("the far end", ps.LeastSquares([1.001]), A, 0.0, ([1.0], [A.atom(0)]))


@cache
def hulls(plan: Plan) -> list[Problem]:
    return [nearly_tight(), *(hull(plan, i) for i in range(plan.problems))]


@claim("Theorem 1", "Frank-Wolfe", "ε<sub>t</sub> ≤ 2 (L diam(A)² / δ + ε<sub>0</sub>) / (δt + 2)")
def theorem_1(plan: Plan) -> Iterator[Case]:
    """All variants of Algorithms 2 and 3. The equality is the induction of the proof, which no run attains. Erratum 5:
    with a poor oracle the open-loop step 2/(t + 2) of the printed algorithm breaks the bound; 2/(δt + 2) keeps it."""

    def variants(p: Problem) -> list[ps.Update]:
        across = ps.Plain(ps.DiameterStep(diameter=geometry.diameter(p.A).upper))
        return [ps.Plain(ps.OpenLoop()), LINE_SEARCH, across, SHORT_STEP, ps.NormCorrective()]

    yield from keeps(rates.frank_wolfe, hull_constants, hulls(plan), ps.conv, variants, SUBLINEAR_STEPS)
    yield from induction(lambda t, C, e, d: rates.frank_wolfe(t, L=C / 9, diameter=3, eps0=e, delta=d), 1.0)
    f = ps.Smooth(lambda x: -float(x[0]), lambda x: -np.ones(1), L=1e-300)
    segment = Problem("a segment", f, ps.Box([0.0], [1.0]), -1.0, ([1.0], [ps.Atom(np.zeros(1))]))
    bound = rates.frank_wolfe(np.arange(101), L=0, diameter=1, eps0=1, delta=0.25)
    steps: list[tuple[Any, bool]] = [(lambda move: 2.0 / (move.iteration + 2.0), True), (ps.OpenLoop(), False)]
    for step, printed in steps:
        eps = segment.errors(segment.states(ps.conv(segment.A), ps.Plain(step), 100, 0.25))
        yield Case(segment.name, eps[1:], bound[1:], delta=0.25, printed=printed)


@claim("Theorem 11", "affine Frank-Wolfe", "ε<sub>t</sub> ≤ 2 (C<sub>f</sub> / δ + ε<sub>0</sub>) / (δt + 2)")
def theorem_11(plan: Plan) -> Iterator[Case]:
    """Algorithm 5. Equalities: the induction of the proof, and C<sub>f</sub> = L diam(A)² for multiples of the squared
    norm."""

    def curvature(p: Problem) -> Values:
        return {"C": geometry.curvature(p.f, p.A)}

    def update(p: Problem) -> list[ps.Update]:
        return [ps.Plain(ps.CurvatureStep(curvature(p)["C"].upper))]

    yield from keeps(rates.frank_wolfe_affine, curvature, hulls(plan)[1:], ps.conv, update, SUBLINEAR_STEPS)
    for p in hulls(plan)[1:]:
        if isinstance(p.f, ps.LeastSquares):
            yield Case(p.name, curvature(p)["C"].upper, p.L * geometry.diameter(p.A).upper ** 2, "==")
    yield from induction(lambda t, C, e, d: rates.frank_wolfe_affine(t, C=C, eps0=e, delta=d), 1.0)


@claim("Additive errors", "Frank-Wolfe", "ε<sub>t</sub> ≤ 2 ((C<sub>f</sub> + e) / δ + ε<sub>0</sub>) / (δt + 2)")
def additive_errors(plan: Plan) -> Iterator[Case]:
    """Jaggi (2013), Lacoste-Julien et al. (2013): answers that are worse by e / (δt + 2) than δ allows, the adversary's
    worst. Equality: the induction of the proof, with C + e in place of C."""
    t = np.arange(SUBLINEAR_STEPS + 1)
    for p in hulls(plan)[1:]:
        C = geometry.curvature(p.f, p.A).upper
        for delta in DELTAS:
            oracle = ps.Approximate(delta, additive=C)
            states = ps.iterate(p.f, ps.conv(p.A), LINE_SEARCH, oracle=oracle, start=p.start)
            eps = p.errors(list(islice(states, SUBLINEAR_STEPS + 1)))
            yield p.below(eps, rates.frank_wolfe_affine(t, C=2 * C, eps0=eps[0], delta=delta), min(delta, 0.999))
    yield from induction(lambda t, C, e, d: rates.frank_wolfe_affine(t, C=C / 2 + C / 2, eps0=e, delta=d), 1.0)


def opposite() -> tuple[Problem, dict[str, float]]:
    """f = 7/2 (x - 3)^2 on the atoms +-2 from -3: the largest error that smoothness allows, eps_0 = 2 L rho^2 R^2."""
    A, L = 2.0 * ps.SignedBasis(1), 7.0
    p = Problem("x0 = -x*", ps.LeastSquares([3.0], weights=L), A, 0.0, np.array([-3.0]), np.array([3.0]))
    return p, {"L": L, "radius": geometry.radius(A).upper, "rho": geometry.gauge(A, [3.0]).upper}


@dataclass(frozen=True)
class Pursuit:
    """A run over a span: its errors, and the largest atomic norm and norm of the minimiser and of the iterates."""

    p: Problem
    delta: float
    eps: Small
    rho: float
    norm: float


@cache
def pursuits(plan: Plan) -> list[Pursuit]:
    """Every algorithm over spans with every oracle, on half of the problems, as atomic norms take linear programs."""
    found = []
    for p in spans(plan, plan.problems // 2):
        for delta, states, eps in p.trials(ps.lin(p.A), PURSUITS.values(), 12):
            points = [p.minimiser, *(s.x for s in states)]
            rho = max(geometry.gauge(p.A, x).upper for x in points)
            found.append(Pursuit(p, delta, eps, rho, max(float(np.linalg.norm(x)) for x in points)))
    return found


def _theorem_2(bound: Callable[..., Any], plan: Plan) -> Iterator[Case]:
    for r in pursuits(plan):
        constants: Values = {"L": r.p.f.L, "radius": geometry.radius(r.p.A), "rho": r.rho}
        promised = bound(np.arange(len(r.eps)), **constants, eps0=r.eps[0], delta=r.delta)
        yield r.p.below(r.eps, promised, r.delta)


@claim("Theorem 2", "matching pursuit", "ε<sub>t</sub> ≤ 4 (2 L ρ² radius(A)² / δ + ε<sub>0</sub>) / (δt + 4)")
def theorem_2(plan: Plan) -> Iterator[Case]:
    """Matching pursuit, OMP and both variants of Algorithm 4, on symmetric sets; ρ is the largest atomic norm of the
    run. The equality is the induction of the proof."""
    yield from _theorem_2(rates.matching_pursuit, plan)
    yield from induction(lambda t, C, e, d: rates.matching_pursuit(t, L=C, radius=0.5, rho=2, eps0=e, delta=d), 0.5)


@claim("Theorem 2 sharp", "matching pursuit", "ε<sub>t</sub> ≤ 8C / (δ²t + 8C/ε<sub>0</sub>), C = L ρ² radius(A)²")
def theorem_2_sharp(plan: Plan) -> Iterator[Case]:
    """Never larger than Theorem 2 (erratum 3). Equalities: one over the bound grows by δ²/(8C) a step, and
    ε<sub>0</sub> = 2C if the minimiser is −x<sub>0</sub> on a single pair of atoms."""
    yield from _theorem_2(rates.matching_pursuit_sharp, plan)
    for C, delta in ((1.0, 1.0), (3.0, 0.6), (0.2, 0.25)):
        inverse = 1 / rates.matching_pursuit_sharp(np.arange(50), L=C, radius=2, rho=0.5, eps0=C, delta=delta)
        yield Case("", np.diff(inverse), np.full(49, delta**2 / (8 * C)), "==")
    p, constants = opposite()
    eps = p.errors(p.states(ps.lin(p.A), SHORT_STEP, 0))
    yield Case(p.name, eps, rates.matching_pursuit_sharp(np.zeros(1), **constants), "==", delta=1.0)


@claim("Corollary 4", "rate without ρ", "ε<sub>t</sub> ≤ 2 L ρ̃² diam(A)² / (δ² mDW(A)² (t + 2))")
def corollary_4(plan: Plan) -> Iterator[Case]:
    """ρ̃ is the largest norm of the run. Erratum 3: the paper leaves out L, and then f = 50 (x − 1)² breaks the bound.
    Equality: with δ²t + 4 for δ²(t + 2) it is Theorem 2 sharp at ρ = ρ̃/mDW(A)."""
    for r in pursuits(plan):
        size: Values = {"diameter": geometry.diameter(r.p.A), "mdw": geometry.mdw(r.p.A)}
        bound = rates.least_squares(np.arange(len(r.eps)), **size, norm=r.norm, L=r.p.L, delta=r.delta)
        yield r.p.below(r.eps, bound, r.delta)
    t = np.arange(30.0)
    for delta in DELTAS:
        sharp = rates.matching_pursuit_sharp(t, L=7.0, radius=2.0, rho=3.0 / 0.5, delta=delta)
        stated = rates.least_squares(t, diameter=4.0, mdw=0.5, norm=3.0, L=7.0, delta=delta)
        yield Case("", stated, sharp * (delta**2 * t + 4) / (delta**2 * (t + 2)), "==")
    steep = Problem("steep", ps.LeastSquares([1.0], weights=100.0), ps.SignedBasis(1), 0.0)
    eps = steep.errors(steep.states(ps.lin(steep.A), SHORT_STEP, 0))
    for L, printed in ((1.0, True), (100.0, False)):
        bound = rates.least_squares(np.zeros(1), diameter=2, mdw=geometry.mdw(steep.A), norm=1, L=L)
        yield Case(steep.name, eps, bound, delta=None if printed else 1.0, printed=printed)


@claim(
    "Theorem 12",
    "affine MP",
    "ε<sub>t</sub> ≤ 4 (2 C / δ + ε<sub>0</sub>) / (δt + 4), C = C<sub>f</sub><sup>MP</sup> of ρA",
)
def theorem_12(plan: Plan) -> Iterator[Case]:
    """Both variants of Algorithm 6, with the ρ that is known before the run. Equalities: the induction of the proof,
    with δt + 4 throughout (erratum 27); for multiples of the squared norm C = L ρ² radius(A)², a quarter of
    C<sub>f</sub>."""

    def curvature(p: Problem) -> Values:
        return {"C": rho_and_curvature(p)[1]}

    problems = spans(plan, plan.problems)
    yield from keeps(rates.matching_pursuit_affine, curvature, problems, ps.lin, algorithm_6, SUBLINEAR_STEPS)
    for p in problems:
        if isinstance(p.f, ps.LeastSquares):
            rho, C = rho_and_curvature(p)
            bound = p.L * (rho * geometry.radius(p.A).upper) ** 2
            yield Case(p.name, [C.upper, geometry.curvature(p.f, p.A, "fw", rho).upper / 4], [bound, bound], "==")
    yield from induction(lambda t, C, e, d: rates.matching_pursuit_affine(t, C=C, eps0=e, delta=d), 0.5)


@claim(
    "Equation of ρ",
    "known before the run",
    "‖x<sub>t</sub>‖<sub>A</sub> ≤ sup {‖x‖<sub>A</sub> : f(x) ≤ f(x<sub>0</sub>)}",
)
def equation_rho(plan: Plan) -> Iterator[Case]:
    """The paper reads ρ off the run it is to bound; a bound that depends on the start only replaces it (erratum 22).
    Equality: least squares on the signed basis, where the farthest point of the level set is known."""
    for r in pursuits(plan):
        yield Case(r.p.name, r.rho, geometry.rho(r.p.A, r.p.f, r.p.first).upper, delta=r.delta)
    for n in range(1, 6):
        y = plan.rng(4, n).standard_normal(n)
        farthest = y + np.linalg.norm(y) * np.sign(y) / np.sqrt(n)
        A, f = ps.SignedBasis(n), ps.LeastSquares(y)
        yield Case(f"basis {n}", geometry.gauge(A, farthest).upper, geometry.rho(A, f, np.zeros(n)).upper, "==")
