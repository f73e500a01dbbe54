"""Rates of methods that are later than the paper, with the proofs in `pursuit.rates.later`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Small
from pursuit.domains import Domain
from pursuit.linalg import unit_columns
from pursuit.paper.claims import Case, Plan, claim
from pursuit.paper.problems import (
    DELTAS,
    ERROR_FLOOR,
    LINE_SEARCH,
    SHORT_STEP,
    Constants,
    Problem,
    Rate,
    Values,
    algorithm_6,
    finished,
    hull,
    hull_constants,
    keeps,
    objective,
    shrinks,
    span_constants,
    spans,
)
from pursuit.updates.pursuits import leverage

STEPS = 30


@cache
def finite_hulls(plan: Plan) -> list[Problem]:
    """Problems over the hulls of finitely many atoms."""
    return [hull(plan, 6 * (i // 4) + i % 4) for i in range(plan.problems // 2)]


@cache
def cones(plan: Plan) -> list[Problem]:
    """Problems over cones of atoms on one side of the origin, with a minimiser inside or on the boundary, not 0."""
    return [cone(plan, i) for i in range(plan.problems // 2)]


def cone(plan: Plan, i: int) -> Problem:
    rng, n = plan.rng(20, i), 2 + i % 3
    side, D = rng.standard_normal(n), rng.standard_normal((n, n + 2))
    A = ps.Dictionary(D * np.sign(side @ D) + 0.5 * side[:, None])
    while True:
        f, _ = objective(rng, i // 2 % 3, rng.standard_normal(n) + (side if i % 2 else 0.0))
        best = finished(ps.minimize(f, ps.cone(A), ps.FullyCorrective(), stop=ps.Stop(rgap=None, iterations=60)))
        if best.x.any():
            return Problem(f"cone {i}", f, A, best.value, None, best.x)


def unclipped(p: Problem, states: list[ps.State]) -> Small:
    """Which steps were not cut short: the slope at their end is zero, or their length is that of the short step."""
    found = []
    for now, after in pairwise(states):
        d = after.x - now.x
        begin, end = float(now.grad @ d), float(after.grad @ d)
        found.append(min(abs(end), abs(p.L * float(d @ d) + begin)) <= 1e-6 * abs(begin))
    return np.array(found)


def constants(p: Problem, over_cone: bool, along_atoms: bool = False) -> Values:
    """Strong convexity, smoothness, pyramidal width, and the length of the longest direction."""
    size = geometry.radius(p.A).upper
    if not along_atoms:
        size = max(geometry.diameter(p.A).upper, size if over_cone else 0.0)
    width = geometry.pyramidal_width(p.A, origin=over_cone)
    return {"mu": p.f.mu, "L": p.f.L, "width": width, "diameter": size}


def walks(
    rate: Rate, shape: Constants, first: Callable[[Problem], float], problems: Iterable[Problem], over: Any,
    updates: list[Any],
) -> Iterator[Case]:  # fmt: skip
    """The rate of a run, and the factor by which a step that is not cut short shrinks the error, which is the rate
    after `first(p)` steps, one of which is good."""
    for p in problems:
        size = shape(p)
        for delta, states, eps in p.trials(over(p.A), updates, STEPS):
            yield p.below(eps, rate(np.arange(STEPS + 1), **size, eps0=eps[0], delta=delta), delta)
            good, kept = unclipped(p, states), rate(first(p), **size, eps0=1, delta=delta)
            yield Case(p.name, eps[1:][good], kept * eps[:-1][good], floor=ERROR_FLOOR * eps[0])


def half_of_a_simplex(n: int) -> tuple[Problem, float]:
    """Least squares on a simplex with an even number n of atoms, from the centre of one half of them towards the
    centre of the other, which is the direction in which the pyramidal width is attained; and the width."""
    A, d = ps.Simplex(n), np.repeat([1.0, -1.0], n // 2) / np.sqrt(n)
    weights = np.full(n // 2, 2.0 / n)
    x0 = np.repeat([0.0, 2.0 / n], n // 2)
    p = Problem(f"half of {n}", ps.LeastSquares(x0 + d / n), A, 0.0, (weights, [A.atom(i) for i in range(n // 2, n)]))
    return p, geometry.pyramidal_width(A).upper


def segment() -> Problem:
    """f = -x on {0, 1}, taken for a function with L = 5/3: a step to 0.6, and one that drops the atom 0."""
    f = ps.Smooth(lambda x: -float(x[0]), lambda x: -np.ones(1), L=5 / 3)
    A = ps.Dictionary(np.array([[1.0, 2.0]]))
    return Problem("a segment", f, A, -2.0, ([1.0], [A.atom(0)]))


def triangle() -> Problem:
    """Least squares on an equilateral triangle, from near a corner: the slopes towards the best atom and away from the
    worst one are nearly equal, and each is half of the pairwise one."""
    A = ps.Dictionary(np.array([[2.0, 1.5, 2.5], [3.0, 3.0 - 0.75**0.5, 3.0 - 0.75**0.5]]))
    corner, worst, best = (A.atom(i).vector for i in range(3))
    x0 = 0.999 * corner + 0.001 * worst
    target = x0 + 5e-4 * (best - worst)
    return Problem("a triangle", ps.LeastSquares(target), A, 0.0, ([0.999, 0.001], [A.atom(0), A.atom(1)]))


@claim("Away steps", "linear", "ε<sub>t</sub> ≤ (1 − (δ/(1+δ))² μ W² / (L diam(A)²))<sup>t/2</sup> ε<sub>0</sub>")
def away_steps(plan: Plan) -> Iterator[Case]:
    """Lacoste-Julien and Jaggi (2015), Tsuji, Tanaka and Pokutta (2022): away steps and blended pairwise ones, over
    hulls; W is the pyramidal width. Equalities: half of the steps are good where every second one drops an atom; W is
    attained on simplices, from one half to the other; and the decrease is that of a pairwise step over (1 + δ)²."""

    def shape(p: Problem) -> Values:
        return constants(p, over_cone=False) | {"spare": len(p.start[0]) - 1}

    updates = [walk(step) for walk in (ps.Away, ps.BlendedPairwise) for step in (None, ps.ShortStep())]
    problems = [triangle(), *finite_hulls(plan)]
    yield from walks(rates.away_steps, shape, lambda p: len(p.start[0]), problems, ps.conv, updates)
    for update in updates[1::2]:
        p = segment()
        good = np.cumsum(unclipped(p, p.states(ps.conv(p.A), update, 2)))
        yield Case(p.name, good, rates.good_steps(np.arange(1, 3)), "==", delta=1.0)
    for n in (2, 4, 6, 8):
        p, width = half_of_a_simplex(n)
        (state,) = p.states(ps.conv(p.A), ps.Away(), 0)
        slope = state.grad[n - 1] - state.grad.min()  # of z - v
        yield Case(p.name, slope, width * np.linalg.norm(state.grad), "==", delta=1.0)
    size: Values = {"mu": 0.7, "L": 2.0, "width": 1.5, "diameter": 3.0, "eps0": 1.0}
    for delta in DELTAS:
        away = 1 - rates.away_steps(1, **size, delta=delta)
        swap = 1 - rates.pairwise_steps(5, **size, n=2, delta=delta)
        yield Case("", away * (1 + delta) ** 2, swap, "==")


@claim("Pairwise steps", "linear", "ε<sub>t+1</sub> ≤ (1 − δ² μ W² / (L diam(A)²)) ε<sub>t</sub> in good steps")
def pairwise_steps(plan: Plan) -> Iterator[Case]:
    """Lacoste-Julien and Jaggi (2015), over hulls and cones; at least every ⌊e n!⌋-th step is good. Equalities: the
    first step on a simplex, from one half towards the other; the first step over a cone of two atoms that are close to
    each other; and ⌊e n!⌋."""
    for over, problems in ((ps.conv, finite_hulls(plan)), (ps.cone, cones(plan))):

        def shape(p: Problem, over_cone: bool = over is ps.cone) -> Values:
            return constants(p, over_cone) | {"n": p.A.size}

        yield from walks(rates.pairwise_steps, shape, _arrangements, problems, over, [ps.Pairwise()])
    for n in (2, 4, 6, 8):
        p, _ = half_of_a_simplex(n)
        yield _first_pairwise_step(p, ps.conv(p.A), constants(p, over_cone=False))
    for angle in (0.2, 0.5, 1.0):
        A = ps.Dictionary(np.array([[1.0, np.cos(angle)], [0.0, np.sin(angle)]]))
        p = Problem(f"angle {angle}", ps.LeastSquares([2.0, 0.1]), A, 0.0, ([2.0], [A.atom(0)]))
        yield _first_pairwise_step(p, ps.cone(A), constants(p, over_cone=True))
    first = [np.argmax(rates.good_pairwise_steps(np.arange(100), n=n) >= 1) for n in range(1, 5)]
    yield Case("", first, [np.floor(np.e * m) for m in (1, 2, 6, 24)], "==")


def _arrangements(p: Problem) -> float:
    """⌊e n!⌋, after which a pairwise step among n atoms has been good."""
    return float(np.floor(np.e * math.factorial(p.A.size or 0)))


def _first_pairwise_step(p: Problem, domain: Domain, shape: Values) -> Case:
    eps = p.errors(p.states(domain, ps.Pairwise(), 1))
    return Case(p.name, eps[1], rates.pairwise_steps(5, **shape, eps0=eps[0], n=2), "==", delta=1.0, scale=eps[0])


@claim("Cone pursuit", "sublinear", "ε<sub>t</sub> ≤ 8C / (δ²t + 8C/ε<sub>0</sub>), C = L ρ² radius(A)²")
def cone_pursuit(plan: Plan) -> Iterator[Case]:
    """Locatello, Tschannen, Rätsch and Jaggi (2017): non-negative matching pursuit and the variants of Algorithm 4 over
    cones, ρ the largest ‖x<sub>t</sub>‖ over the distance of 0 from the hull, which bounds the sums of weights; and the
    linear rate of away steps, W that of A and 0. Equalities: over the non-negative orthant, half the sum of the squares
    of the d − t smallest positive residuals is left; and one over the bound grows by δ²/(8C) a step."""
    t = np.arange(STEPS + 1)
    for p in cones(plan):
        outside = -geometry.mdw(p.A).upper
        for delta, states, eps in p.trials(ps.cone(p.A), [LINE_SEARCH, SHORT_STEP, ps.NormCorrective()], STEPS):
            rho = max(float(np.linalg.norm(x)) for x in (p.minimiser, *(s.x for s in states))) / outside
            bound = rates.cone_pursuit(t, L=p.L, radius=geometry.radius(p.A), rho=rho, eps0=eps[0], delta=delta)
            yield p.below(eps, bound, delta)

    away = partial(constants, over_cone=True, along_atoms=True)
    yield from walks(rates.away_steps, away, lambda p: 1, cones(plan), ps.cone, [ps.Away()])
    for i in range(plan.problems // 2):
        d = 2 + i % 6
        y = plan.rng(21, i).standard_normal(d)
        A, negative = ps.Dictionary(np.eye(d)), float(np.minimum(y, 0.0) @ np.minimum(y, 0.0)) / 2
        p = Problem(f"orthant {i}", ps.LeastSquares(y), A, negative)
        eps = p.errors(p.states(ps.cone(A), LINE_SEARCH, d))
        exact = rates.signed_basis(np.arange(d + 1), residual=np.maximum(y, 0.0))
        yield Case(p.name, eps, exact, "==", delta=1.0, scale=float(y @ y))
    for C, delta in ((1.0, 1.0), (3.0, 0.6), (0.2, 0.25)):
        inverse = 1 / rates.cone_pursuit(t, L=C, radius=2, rho=0.5, eps0=C, delta=delta)
        yield Case("", np.diff(inverse), np.full(STEPS, delta**2 / (8 * C)), "==")


@claim("Lazy oracle", "FW and MP", "every rate for errors with δ = 1/K")
def lazy_oracle(plan: Plan) -> Iterator[Case]:
    """Braun, Pokutta and Zink (2017): Frank-Wolfe and blended pairwise steps over hulls, matching pursuit over spans,
    for two values of K. Equality: where two residuals of one size are halved a step, the first answer from the active
    set has exactly 1/K of the best correlation for K = 2, 4, 8."""
    t = np.arange(STEPS + 1)
    for p, q in zip(finite_hulls(plan), spans(plan, plan.problems // 2), strict=True):
        for K in (1.5, 5.0):
            delta = rates.lazy_quality(K)
            for update, steps in ((LINE_SEARCH, t), (SHORT_STEP, t), (ps.BlendedPairwise(), rates.good_steps(t))):
                eps = p.errors(_lazy(p, ps.conv(p.A), update, K))
                bound = rates.frank_wolfe(steps, **hull_constants(p), eps0=eps[0], delta=delta)
                yield p.below(eps, bound, 1.0)
            factor = rates.linear(1, **span_constants(q), eps0=1, delta=delta)
            for pursuit in (LINE_SEARCH, ps.NormCorrective()):
                yield q.shrinks(q.errors(_lazy(q, ps.lin(q.A), pursuit, K)), factor, 1.0)
    for k in (1, 2, 3):
        K = 2.0**k
        p = Problem(f"K = {K:g}", ps.LeastSquares([1.0, 1.0]), ps.SignedBasis(2), 0.0)
        states = _lazy(p, ps.lin(p.A), ps.Plain(ps.ShortStep(L=2.0)), K)
        quality = [s.answers[0].dot / -np.abs(s.grad).max() for s in states]
        yield Case(p.name, quality[k], rates.lazy_quality(K), "==", delta=1.0)


def _lazy(p: Problem, domain: Domain, update: Any, K: float) -> list[ps.State]:
    return list(islice(ps.iterate(p.f, domain, update, oracle=ps.Lazy(K), start=p.start), STEPS + 1))


@claim("Backtracking", "FW and MP", "every rate with L → τL")
def backtracking(plan: Plan) -> Iterator[Case]:
    """Pedregosa, Negiar, Askari and Jaggi (2020): Frank-Wolfe over hulls, matching pursuit over spans, and the
    estimates of L themselves. Equality: the estimate τL where the one before was just too small."""
    rule = ps.Backtracking()

    step, few = [ps.Plain(ps.ShortStep(rule))], spans(plan, plan.problems // 2)

    def times_grow(constants: Constants, p: Problem) -> Values:
        return constants(p) | {"L": rates.backtracking(L=p.L, grow=rule.grow)}

    over_hull, over_span = partial(times_grow, hull_constants), partial(times_grow, span_constants)
    yield from keeps(rates.frank_wolfe, over_hull, finite_hulls(plan), ps.conv, step, STEPS)
    yield from shrinks(rates.linear, over_span, few, ps.lin, step, STEPS)
    for q in few:
        yield Case(q.name, _estimates(q, rule, 12), over_span(q)["L"], delta=1.0)
    for grow in (1.5, 2.0, 4.0):
        near = ps.Backtracking(shrink=(1 - 1e-7) / 1.001, grow=grow)  # the first estimate is 1.001 L
        p = Problem(f"τ = {grow:g}", ps.LeastSquares([1.0, 2.0, 4.0], weights=3.0), ps.SignedBasis(3), 0.0)
        promised = rates.backtracking(L=3.0, grow=grow)
        yield Case(p.name, _estimates(p, near, 2)[1], promised, "==", delta=1.0, tolerance=1e-6)


def _estimates(p: Problem, rule: ps.Backtracking, steps: int) -> list[float]:
    """The estimates of L in the first steps over a span, from the lengths of those that are not mostly rounding."""
    states = p.states(ps.lin(p.A), ps.Plain(ps.ShortStep(rule)), steps)
    moves = [(now.grad, after.x, after.x - now.x) for now, after in pairwise(states)]
    return [-float(g @ d) / float(d @ d) for g, x, d in moves if float(d @ d) > 1e-10 * float(x @ x)]


@claim("Atomic norm", "affine MP", "ε<sub>t</sub> ≤ 2 L<sub>A</sub> R<sub>A</sub>² / (δ² (t + 2))")
def atomic_norm(plan: Plan) -> Iterator[Case]:
    """Locatello et al. (2018): R<sub>A</sub> is the largest atomic norm of x<sub>t</sub> − x* in the run. Equality: at
    R<sub>A</sub> = 2ρ it is Theorem 2 sharp, but for δ²(t + 2) in place of δ²t + 4."""
    for p in spans(plan, plan.problems // 2):
        L = geometry.curvature(p.f, p.A, "mp")
        for delta, states, eps in p.trials(ps.lin(p.A), algorithm_6(p), 10):
            reach = max(geometry.gauge(p.A, s.x - p.minimiser).upper for s in states)
            yield p.below(eps, rates.affine_pursuit(np.arange(11), L=L, reach=reach, delta=delta), delta)
    t = np.arange(30.0)
    for delta in DELTAS:
        sharp = rates.matching_pursuit_sharp(t, L=7.0, radius=1.0, rho=3.0, delta=delta)
        stated = sharp * (delta**2 * t + 4) / (delta**2 * (t + 2))
        yield Case("", rates.affine_pursuit(t, L=7.0, reach=6.0, delta=delta), stated, "==")


@claim(
    "Random pursuit", "MP, expected", "E ε<sub>t+1</sub> ≤ (1 − s μ/L) ε<sub>t</sub>, s least eigenvalue of E zz′/‖z‖²"
)
def random_pursuit(plan: Plan) -> Iterator[Case]:
    """Stich, Müller and Gärtner (2013), Locatello et al. (2018): the mean over all unit atoms of the error after a line
    search along each. Equality: the same on a basis for all atoms that `RandomAtom` draws, 1 − 1/n."""
    for i in range(plan.problems):
        rng, n = plan.rng(25, i), 2 + i % 4
        D = unit_columns(rng.standard_normal((n, n + 3)))
        f, optimum = objective(rng, i % 3, rng.standard_normal(n))
        each = [Problem("", f, ps.Dictionary(D[:, [k]]), optimum) for k in range(n + 3)]
        eps = np.mean([p.errors(p.states(ps.lin(p.A), LINE_SEARCH, 1)) for p in each], axis=0)
        share = float(np.linalg.eigvalsh(D @ D.T / (n + 3))[0])
        bound = rates.random_pursuit(1, mu=f.mu, L=f.L or 0.0, share=share, eps0=eps[0])
        yield Case(f"random {i}", eps[1], bound, delta=1.0)
    for n in (1, 2, 3):
        f, drawn = ps.LeastSquares(plan.rng(26, n).standard_normal(n)), {}
        for seed in range(40):
            run = ps.iterate(f, ps.lin(ps.SignedBasis(n)), LINE_SEARCH, oracle=ps.RandomAtom(seed))
            now, after = next(run), next(run)
            drawn[int(np.abs(after.x).argmax())] = after.value
        assert len(drawn) == n
        kept = rates.random_pursuit(1, mu=1, L=1, share=1 / n, eps0=now.value)
        yield Case(f"basis {n}", np.mean([*drawn.values()]), kept, "==", delta=1.0, scale=now.value)


@claim("Acceleration", "MP, expected", "E ε<sub>t</sub> ≤ 2 L ν ‖x<sub>0</sub> − x*‖<sub>P</sub>² / (t + 1)²")
def acceleration(plan: Plan, seeds: int = 12) -> Iterator[Case]:
    """Locatello et al. (2018): the mean error of twelve runs on each problem. Equality: on the signed basis, where all
    residuals have one size, the first step leaves ε<sub>1</sub> + Lν E‖v<sub>1</sub> − x*‖<sub>P</sub>²/2 +
    L‖x<sub>0</sub> − x*‖²/2, which is the bound; E by the draws of every atom."""
    t = np.arange(1, STEPS + 1)
    for i in range(plan.problems // 2):
        rng, n = plan.rng(22, i), 2 + i % 4
        D, x0, target = unit_columns(rng.standard_normal((n, n + 2))), rng.standard_normal(n), rng.standard_normal(n)
        f, optimum = objective(rng, i % 3, target)
        A = ps.Dictionary(D, signed=True)
        p = Problem(f"mean {i}", f, A, optimum, x0, target)
        nu = leverage(A, f.space or ps.LeastSquares(target).space)
        distance = float(np.sqrt((x0 - target) @ np.linalg.solve(D @ D.T / D.shape[1], x0 - target)))
        mean = np.mean([_greedy(p, seed)[0] for seed in range(seeds)], axis=0)
        yield Case(p.name, mean, rates.accelerated_pursuit(t, L=p.L, nu=nu, distance=distance), delta=1.0)
    for n, L in ((1, 1.0), (2, 3.0), (3, 0.5)):
        signs = np.sign(plan.rng(23, n).standard_normal(n))
        p = Problem(f"basis {n}", ps.LeastSquares(signs, weights=L), ps.SignedBasis(n), 0.0, None, signs)
        drawn = {}
        for seed in range(20):
            eps, v = _greedy(p, seed)
            drawn[int(np.abs(v).argmax())] = float((v - signs) @ (v - signs)) * n  # P = n I
        assert len(drawn) == n
        reached = eps[0] + L * n * float(np.mean([*drawn.values()])) / 2 + L * n / 2
        yield Case(p.name, reached, rates.accelerated_pursuit(1, L=L, nu=n, distance=n), "==", delta=1.0)


def _greedy(p: Problem, seed: int) -> tuple[Small, Small]:
    """The errors of the greedy points x_1, x_2, ..., and v_1; the states are the points y between x and v."""
    states = p.states(ps.lin(p.A), ps.AcceleratedPursuit(seed=seed), STEPS - 1)
    points = [s.x - s.answers[0].dot / (p.L * float(z @ z)) * z for s in states for z in [s.atom.dense(s.active.space)]]
    tau = 2 / (1 + np.sqrt(5))  # alpha / beta of the second step
    v = points[0] + (states[1].x - points[0]) / tau
    return np.array([p.f.value(x) for x in points]) - p.optimum, v
