"""Rates of methods that are later than the paper, with the proofs in `pursuit.rates.variants`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
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
    Problem,
    algorithm_6,
    finished,
    hull,
    objective,
    spans,
    width_and_radius,
)
from pursuit.updates.pursuits import leverage

STEPS = 30


@cache
def finite_hulls(plan: Plan) -> list[Problem]:
    """Problems over the hulls of finitely many atoms."""
    return [hull(plan, 6 * (i // 4) + i % 4) for i in range(plan.problems // 2)]


@cache
def cones(plan: Plan) -> list[Problem]:
    return [cone(plan, i) for i in range(plan.problems // 2)]


def cone(plan: Plan, i: int) -> Problem:
    """A problem over the cone of atoms on one side of the origin, with a minimiser inside or on the boundary, not 0."""
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
        found.append(min(abs(end), abs((p.f.L or 0.0) * float(d @ d) + begin)) <= 1e-6 * abs(begin))
    return np.array(found)


def good(p: Problem, states: list[ps.State], factor: float) -> Case:
    """The claim eps_{t+1} <= factor eps_t for the steps that were not cut short."""
    eps, which = p.errors(states), unclipped(p, states)
    return Case(p.name, eps[1:][which], factor * eps[:-1][which], floor=ERROR_FLOOR * eps[0])


def constants(p: Problem, over_cone: bool, along_atoms: bool = False) -> dict[str, Any]:
    """Strong convexity, smoothness, pyramidal width, and the length of the longest direction."""
    size = geometry.radius(p.A).upper
    if not along_atoms:
        size = max(geometry.diameter(p.A).upper, size if over_cone else 0.0)
    width = geometry.pyramidal_width(p.A, origin=over_cone)
    return {"mu": p.f.mu, "L": p.f.L, "width": width, "diameter": size}


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


def _drops(update: Any) -> Iterator[Case]:
    """The two steps on the segment, one of which is good."""
    p = segment()
    states = p.states(ps.conv(p.A), update, 2)
    yield Case(p.name, np.cumsum(unclipped(p, states)), rates.good_steps(np.arange(1, 3)), "==", delta=1.0)


def _linear_over_hulls(plan: Plan, updates: list[Any]) -> Iterator[Case]:
    t = np.arange(STEPS + 1)
    for p in [triangle(), *finite_hulls(plan)]:
        shape, spare = constants(p, over_cone=False), len(p.start[0]) - 1
        for delta, states, eps in p.trials(ps.conv(p.A), updates, STEPS):
            yield p.below(eps, rates.away_steps(t, **shape, eps0=eps[0], delta=delta, spare=spare), delta)
            yield good(p, states, rates.away_steps(1, **shape, eps0=1, delta=delta))


@claim("Away steps", "linear", "ε<sub>t</sub> ≤ (1 − (δ/(1+δ))² μ W² / (L diam(A)²))<sup>t/2</sup> ε<sub>0</sub>")
def away_steps(plan: Plan) -> Iterator[Case]:
    """Lacoste-Julien and Jaggi (2015), over hulls; W is the pyramidal width. Equalities: half of the steps are good
    where every second one drops an atom; W is attained on simplices, from one half to the other; and the decrease is
    that of a pairwise step over (1 + δ)²."""
    yield from _linear_over_hulls(plan, [ps.Away(), ps.Away(ps.ShortStep())])
    yield from _drops(ps.Away(ps.ShortStep()))
    for n in (2, 4, 6, 8):
        p, width = half_of_a_simplex(n)
        (state,) = p.states(ps.conv(p.A), ps.Away(), 0)
        slope = state.grad[n - 1] - state.grad.min()  # of z - v
        yield Case(p.name, slope, width * np.linalg.norm(state.grad), "==", delta=1.0)
    shape: dict[str, Any] = {"mu": 0.7, "L": 2.0, "width": 1.5, "diameter": 3.0, "eps0": 1.0}
    for delta in DELTAS:
        away = 1 - rates.away_steps(1, **shape, delta=delta)
        swap = 1 - rates.pairwise_steps(5, **shape, n=2, delta=delta)
        yield Case("", away * (1 + delta) ** 2, swap, "==")


@claim("Blended pairwise", "linear", "ε<sub>t</sub> ≤ (1 − (δ/(1+δ))² μ W² / (L diam(A)²))<sup>t/2</sup> ε<sub>0</sub>")
def blended_pairwise(plan: Plan) -> Iterator[Case]:
    """Tsuji, Tanaka and Pokutta (2022), over hulls. Equality: half of the steps are good where every second one drops
    an atom."""
    yield from _linear_over_hulls(plan, [ps.BlendedPairwise(), ps.BlendedPairwise(ps.ShortStep())])
    yield from _drops(ps.BlendedPairwise(ps.ShortStep()))


@claim("Pairwise steps", "linear", "ε<sub>t+1</sub> ≤ (1 − δ² μ W² / (L diam(A)²)) ε<sub>t</sub> in good steps")
def pairwise_steps(plan: Plan) -> Iterator[Case]:
    """Lacoste-Julien and Jaggi (2015), over hulls and cones; at least every ⌊e n!⌋-th step is good. Equalities: the
    first step on a simplex, from one half towards the other; the first step over a cone of two atoms that are close to
    each other; and ⌊e n!⌋."""
    yield from _pairwise(finite_hulls(plan), ps.conv)
    yield from _pairwise(cones(plan), ps.cone)
    for n in (2, 4, 6, 8):
        p, _ = half_of_a_simplex(n)
        yield from _first_pairwise_step(p, ps.conv(p.A), constants(p, over_cone=False))
    for angle in (0.2, 0.5, 1.0):
        A = ps.Dictionary(np.array([[1.0, np.cos(angle)], [0.0, np.sin(angle)]]))
        p = Problem(f"angle {angle}", ps.LeastSquares([2.0, 0.1]), A, 0.0, ([2.0], [A.atom(0)]))
        yield from _first_pairwise_step(p, ps.cone(A), constants(p, over_cone=True))
    first = [np.argmax(rates.good_pairwise_steps(np.arange(100), n=n) >= 1) for n in range(1, 5)]
    yield Case("", first, [np.floor(np.e * m) for m in (1, 2, 6, 24)], "==")


def _pairwise(problems: list[Problem], over: Any) -> Iterator[Case]:
    t = np.arange(STEPS + 1)
    for p in problems:
        shape = constants(p, over_cone=over is ps.cone)
        for delta, states, eps in p.trials(over(p.A), [ps.Pairwise()], STEPS):
            bound = rates.pairwise_steps(t, **shape, eps0=eps[0], n=p.A.size or 0, delta=delta)
            yield p.below(eps, bound, delta)
            yield good(p, states, rates.pairwise_steps(5, **shape, eps0=1, n=2, delta=delta))


def _first_pairwise_step(p: Problem, domain: Domain, shape: dict[str, Any]) -> Iterator[Case]:
    eps = p.errors(p.states(domain, ps.Pairwise(), 1))
    yield Case(p.name, eps[1], rates.pairwise_steps(5, **shape, eps0=eps[0], n=2), "==", delta=1.0, scale=eps[0])


@claim("Cone pursuit", "sublinear", "ε<sub>t</sub> ≤ 8C / (δ²t + 8C/ε<sub>0</sub>), C = L ρ² radius(A)²")
def cone_pursuit(plan: Plan) -> Iterator[Case]:
    """Locatello, Tschannen, Rätsch and Jaggi (2017): non-negative matching pursuit and the variants of Algorithm 4 over
    cones, ρ the largest sum of weights of the run; and the linear rate of away steps, W that of A and 0. Equalities:
    over the non-negative orthant, half the sum of the squares of the d − t smallest positive residuals is left; and
    one over the bound grows by δ²/(8C) a step."""
    t = np.arange(STEPS + 1)
    for p in cones(plan):
        rho_of_target, radius = geometry.gauge(p.A, p.minimiser).upper, geometry.radius(p.A)
        for update in (LINE_SEARCH, SHORT_STEP, ps.NormCorrective()):
            for delta in DELTAS:
                sums, eps = _sums_and_errors(p, ps.cone(p.A), update, delta)
                size: dict[str, Any] = {"L": p.f.L or 0.0, "radius": radius, "rho": max(sums, rho_of_target)}
                yield p.below(eps, rates.cone_pursuit(t, **size, eps0=eps[0], delta=delta), delta)
        shape = constants(p, over_cone=True, along_atoms=True)
        for delta, states, eps in p.trials(ps.cone(p.A), [ps.Away()], STEPS):
            yield p.below(eps, rates.away_steps(t, **shape, eps0=eps[0], delta=delta), delta)
            yield good(p, states, rates.away_steps(1, **shape, eps0=1, delta=delta))
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


def _sums_and_errors(p: Problem, domain: Domain, update: Any, delta: float) -> tuple[float, Small]:
    """The largest sum of weights of a run, and its errors."""
    oracle = ps.Approximate(delta) if delta < 1 else ps.Exact()
    states = islice(ps.iterate(p.f, domain, update, oracle=oracle), STEPS + 1)
    rows = np.array([(s.active.weights.sum(), s.value) for s in states])  # weights change with the next state
    return float(rows[:, 0].max()), rows[:, 1] - p.optimum


@claim("Lazy oracle", "FW and MP", "every rate for errors with δ = 1/K")
def lazy_oracle(plan: Plan) -> Iterator[Case]:
    """Braun, Pokutta and Zink (2017): Frank-Wolfe and blended pairwise steps over hulls, matching pursuit over spans,
    for two values of K. Equalities: where two residuals of one size are halved a step, the first answer from the
    active set has exactly 1/K of the best correlation for K = 2, 4, 8; and the set is asked again exactly where the
    correlation has fallen by more than K."""
    t = np.arange(STEPS + 1)
    for p, q in zip(finite_hulls(plan), spans(plan, plan.problems // 2), strict=True):
        D, shape = geometry.diameter(p.A), width_and_radius(q.A)
        for K in (1.5, 5.0):
            delta = rates.lazy_quality(K)
            for update, steps in ((LINE_SEARCH, t), (SHORT_STEP, t), (ps.BlendedPairwise(), rates.good_steps(t))):
                eps = p.errors(_lazy(p, ps.conv(p.A), update, K))
                bound = rates.frank_wolfe(steps, L=p.f.L or 0.0, diameter=D, eps0=eps[0], delta=delta)
                yield p.below(eps, bound, 1.0)
            factor = rates.linear(1, mu=q.f.mu, L=q.f.L or 0.0, **shape, eps0=1, delta=delta)
            for pursuit in (LINE_SEARCH, ps.NormCorrective()):
                yield q.shrinks(q.errors(_lazy(q, ps.lin(q.A), pursuit, K)), factor, 1.0)
    for k in (1, 2, 3):
        K = 2.0**k
        p = Problem(f"K = {K:g}", ps.LeastSquares([1.0, 1.0]), ps.SignedBasis(2), 0.0)
        states = _lazy(p, ps.lin(p.A), ps.Plain(ps.ShortStep(L=2.0)), K)
        quality = [s.answers[0].dot / -np.abs(s.grad).max() for s in states]
        yield Case(p.name, quality[k], rates.lazy_quality(K), "==", delta=1.0)
        line = Problem(f"one atom, K = {K:g}", ps.LeastSquares([1.0]), ps.SignedBasis(1), 0.0)
        calls = [s.oracle_calls for s in _lazy(line, ps.lin(line.A), ps.Plain(ps.ShortStep(L=2.0)), K)]
        yield Case(line.name, calls, 1 + t // (k + 1), "==", delta=1.0)


def _lazy(p: Problem, domain: Domain, update: Any, K: float) -> list[ps.State]:
    return list(islice(ps.iterate(p.f, domain, update, oracle=ps.Lazy(K), start=p.start), STEPS + 1))


class Counted(ps.Objective):
    """An objective whose values, without gradients, are counted."""

    def __init__(self, f: ps.Objective) -> None:
        self.f, self.L, self.mu, self.space, self.count = f, f.L, f.mu, f.space, 0

    def value_and_grad(self, x: Small) -> tuple[float, Small]:
        return self.f.value_and_grad(x)

    def value(self, x: Small) -> float:
        self.count += 1
        return self.f.value(x)


@claim(
    "Backtracking", "FW and MP", "every rate with L → τL; t + log<sub>τ</sub>(L<sub>t</sub>/L<sub>1</sub>) + … values"
)
def backtracking(plan: Plan) -> Iterator[Case]:
    """Pedregosa, Negiar, Askari and Jaggi (2020): Frank-Wolfe over hulls, matching pursuit over spans, and the
    estimates of L themselves. Equalities: how often f is evaluated; and the estimate τL where the one before was just
    too small."""
    t, rule = np.arange(STEPS + 1), ps.Backtracking()
    step, few = [ps.Plain(ps.ShortStep(rule))], spans(plan, plan.problems // 2)
    for p in finite_hulls(plan):
        most, D = rates.backtracking(L=p.f.L or 0.0, grow=rule.grow), geometry.diameter(p.A)
        for delta, _, eps in p.trials(ps.conv(p.A), step, STEPS):
            yield p.below(eps, rates.frank_wolfe(t, L=most, diameter=D, eps0=eps[0], delta=delta), delta)
    for q in few:
        most, shape = rates.backtracking(L=q.f.L or 0.0, grow=rule.grow), width_and_radius(q.A)
        for delta, _, eps in q.trials(ps.lin(q.A), step, STEPS):
            yield q.shrinks(eps, rates.linear(1, mu=q.f.mu, L=most, **shape, eps0=1, delta=delta), delta)
        L, values = _estimates(q, rule, 12)
        yield Case(q.name, L, rates.backtracking(L=q.f.L or 0.0, grow=rule.grow), delta=1.0)
        first = L[0] / rule.grow ** (values[0] - 1)
        exact = [rates.backtracking_evaluations(k + 1, first=first, last=end) for k, end in enumerate(L)]
        yield Case(q.name, values, exact, "==")
    for grow in (1.5, 2.0, 4.0):
        near = ps.Backtracking(shrink=(1 - 1e-7) / 1.001, grow=grow)  # the first estimate is 1.001 L
        p = Problem(f"τ = {grow:g}", ps.LeastSquares([1.0, 2.0, 4.0], weights=3.0), ps.SignedBasis(3), 0.0)
        L, _ = _estimates(p, near, 2)
        yield Case(p.name, L[1], rates.backtracking(L=3.0, grow=grow), "==", delta=1.0, tolerance=1e-6)


def _estimates(p: Problem, rule: ps.Backtracking, steps: int) -> tuple[Small, Small]:
    """The estimates of L in the first steps over a span, from their lengths, and how often f was evaluated by then."""
    f = Counted(p.f)
    states = ps.iterate(f, ps.lin(p.A), ps.Plain(ps.ShortStep(rule)), start=p.start)
    rows, before = [], next(states)
    for after in islice(states, steps):
        d = after.x - before.x
        if not float(d @ d) > 1e-10 * float(after.x @ after.x):  # the length of the step is known to rounding only
            break
        rows.append((-float(before.grad @ d) / float(d @ d), f.count))
        before = after
    L, counts = np.array(rows).T
    return L, counts


@claim("Atomic norm", "affine MP", "ε<sub>t</sub> ≤ 2 L<sub>A</sub> R<sub>A</sub>² / (δ² (t + 2))")
def atomic_norm(plan: Plan) -> Iterator[Case]:
    """Locatello et al. (2018): R<sub>A</sub> is the largest atomic norm of x<sub>t</sub> − x* in the run. Equality: at
    R<sub>A</sub> = 2ρ it is Theorem 2 sharp, but for δ²(t + 2) in place of δ²t + 4."""
    for p in spans(plan, plan.problems // 2):
        L = geometry.curvature(p.f, p.A, "mp")
        for delta, states, eps in p.trials(ps.lin(p.A), algorithm_6(p)[2], 10):
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
        nu, L = leverage(A, f.space or ps.LeastSquares(target).space), f.L or 0.0
        distance = float(np.sqrt((x0 - target) @ np.linalg.solve(D @ D.T / D.shape[1], x0 - target)))
        mean = np.mean([_greedy(p, L, seed)[0] for seed in range(seeds)], axis=0)
        yield Case(p.name, mean, rates.accelerated_pursuit(t, L=L, nu=nu, distance=distance), delta=1.0)
    for n, L in ((1, 1.0), (2, 3.0), (3, 0.5)):
        signs = np.sign(plan.rng(23, n).standard_normal(n))
        p = Problem(f"basis {n}", ps.LeastSquares(signs, weights=L), ps.SignedBasis(n), 0.0, None, signs)
        drawn = {}
        for seed in range(20):
            eps, v = _greedy(p, L, seed)
            drawn[int(np.abs(v).argmax())] = float((v - signs) @ (v - signs)) * n  # P = n I
        assert len(drawn) == n
        reached = eps[0] + L * n * float(np.mean([*drawn.values()])) / 2 + L * n / 2
        yield Case(p.name, reached, rates.accelerated_pursuit(1, L=L, nu=n, distance=n), "==", delta=1.0)


def _greedy(p: Problem, L: float, seed: int) -> tuple[Small, Small]:
    """The errors of the greedy points x_1, x_2, ..., and v_1; the states are the points y between x and v."""
    states = p.states(ps.lin(p.A), ps.AcceleratedPursuit(seed=seed), STEPS - 1)
    points = [s.x - s.answers[0].dot / (L * float(z @ z)) * z for s in states for z in [s.atom.dense(s.active.space)]]
    tau = 2 / (1 + np.sqrt(5))  # alpha / beta of the second step
    v = points[0] + (states[1].x - points[0]) / tau
    return np.array([p.f.value(x) for x in points]) - p.optimum, v
