"""The linear rates: Theorems 7, 8 and 13 and Corollary 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Small
from pursuit.linalg import unit_columns
from pursuit.paper.claims import Case, Plan, Relation, claim
from pursuit.paper.problems import (
    ERROR_FLOOR,
    LINE_SEARCH,
    PURSUITS,
    SHORT_STEP,
    Problem,
    Values,
    algorithm_6,
    asymmetric,
    hull,
    hull_constants,
    just_below,
    keeps,
    narrow_sets,
    narrowest,
    quadratic,
    rho_and_curvature,
    shrinks,
    span_constants,
    spans,
    width_and_radius,
)

LINEAR_STEPS = 12


@claim("Theorem 7", "MP, linear", "ε<sub>t+1</sub> ≤ (1 − δ² μ mDW(A)² / (L radius(A)²)) ε<sub>t</sub>")
def theorem_7(plan: Plan) -> Iterator[Case]:
    """Matching pursuit, OMP and both variants of Algorithm 4; sets with and without symmetry (erratum 23). Equality:
    the first step towards the direction in which the set is narrowest shrinks the error by exactly
    1 − δ² mDW(A)², exact oracle and adversary alike."""
    sided = [asymmetric(plan, i) for i in range(plan.problems // 4)]
    for over, problems in ((ps.lin, spans(plan, plan.problems)), (partial(ps.lin, symmetric=False), sided)):
        yield from shrinks(rates.linear, span_constants, problems, over, PURSUITS.values(), LINEAR_STEPS)
    for name, _, B, delta in narrow_sets(plan, 5):
        A = ps.Dictionary(B, signed=True)
        p = Problem(name, ps.LeastSquares(narrowest(B)), A, 0.0)
        eps = p.errors(p.states(ps.lin(A), LINE_SEARCH, 1, just_below(delta)))
        promised = rates.linear(1, mu=1, L=1, **width_and_radius(A), eps0=eps[0], delta=delta)
        yield Case(p.name, eps[1], promised, "==", delta=delta)


@claim(
    "Theorem 13",
    "affine MP, linear",
    "ε<sub>t+1</sub> ≤ (1 − δ² μ<sub>f</sub><sup>MP</sup> / C<sub>f</sub><sup>MP</sup>) ε<sub>t</sub>, both of ρA",
)
def theorem_13(plan: Plan) -> Iterator[Case]:
    """Both variants of Algorithm 6. Steps longer than 1 are covered too (erratum 21). Equality: as for Theorem 7, in
    the norm of the Hessian."""

    def affine(p: Problem) -> Values:
        rho, C = rho_and_curvature(p)
        return {"mu": geometry.strong_convexity(p.f, p.A, rho), "C": C}

    yield from shrinks(rates.linear_affine, affine, spans(plan, plan.problems), ps.lin, algorithm_6, LINEAR_STEPS)
    for name, root, B, delta in narrow_sets(plan, 6):
        A, H = ps.Dictionary(np.linalg.solve(root, B), signed=True), root.T @ root
        target = np.linalg.solve(root, narrowest(B))
        p = Problem(name, ps.Quadratic(H, -H @ target), A, -0.5 * float(target @ H @ target))
        rho = 1.01 * geometry.gauge(A, target).upper  # the minimiser lies inside rho conv(A)
        mu, C = geometry.strong_convexity(p.f, A, rho), geometry.curvature(p.f, A, "mp", rho)
        eps = p.errors(p.states(ps.lin(A), ps.Plain(ps.CurvatureStep(C.upper, rho)), 1, just_below(delta)))
        yield Case(p.name, eps[1], rates.linear_affine(1, mu=mu, C=C, eps0=eps[0], delta=delta), "==", delta=delta)


@claim("p-norms", "Theorems 1 and 7", "the rates with L, μ, diam, radius and mDW of ‖x‖<sub>p</sub>, p = 1, 1.5, 3, ∞")
def other_norms(plan: Plan) -> Iterator[Case]:
    """Theorem 1 for variants 0 and 1 of Algorithm 2, Theorem 7 with the width in the dual norm for line searches
    (errata 6 and 8). Equality: least squares on the signed basis with residuals of one size, in the norm of p = 1."""
    few = max(plan.problems // 6, 1)
    over_spans = [p for p in spans(plan, plan.problems) if p.f.quadratic][:few]
    over_hulls = [p for p in (hull(plan, i) for i in range(plan.problems)) if p.f.quadratic][:few]
    free = [ps.Plain(ps.OpenLoop()), LINE_SEARCH]
    for norm in (1.0, 1.5, 3.0, np.inf):
        of_span, of_hull = (partial(constants, norm=norm) for constants in (span_constants, hull_constants))
        yield from shrinks(rates.linear, of_span, over_spans, ps.lin, [LINE_SEARCH], LINEAR_STEPS)
        yield from keeps(rates.frank_wolfe, of_hull, over_hulls, ps.conv, free, LINEAR_STEPS)
    for n in range(1, 7):
        p = Problem(f"basis {n}", ps.LeastSquares(np.ones(n)), ps.SignedBasis(n), 0.0)
        kept = rates.linear(1, **span_constants(p, 1.0), eps0=n / 2)
        yield Case(p.name, p.errors(p.states(ps.lin(p.A), LINE_SEARCH, 1))[1], kept, "==", delta=1.0, scale=n / 2)


@claim("Section 5", "coherence", "ε<sub>t+1</sub> ≤ (1 − (1 − μ(B, m−1))/m) ε<sub>t</sub> for m-sparse targets")
def sparse_targets(plan: Plan) -> Iterator[Case]:
    """Gribonval and Vandergheynst (2006), with which the paper compares its width; for sparse targets it may promise
    more (erratum 41). Equality: a target with m equal weights on an orthonormal basis, in the first step."""
    for i in range(plan.problems):
        rng, n, m = plan.rng(24, i), 8, 1 + i % 3
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        for B, relation in ((unit_columns(Q + 0.01 * rng.standard_normal((n, n))), "<="), (Q, "==")):
            weights = np.sign(rng.standard_normal(m)) * (rng.uniform(0.5, 2.0, m) if relation == "<=" else 1.0)
            one, two = (geometry.coherence(B, k) for k in (m - 1, m))
            factor = rates.incoherent_pursuit(1, m=m, coherence=one, beyond=two, eps0=1.0)
            p = Problem(f"{m} of {n}, {i}", ps.LeastSquares(B[:, :m] @ weights), ps.Dictionary(B, signed=True), 0.0)
            eps = p.errors(p.states(ps.lin(p.A), LINE_SEARCH, 1 if relation == "==" else m))
            if relation == "<=":
                yield p.shrinks(eps, factor, 1.0)
            else:
                yield Case(p.name, eps[1], factor * eps[0], "==", delta=1.0, scale=eps[0])


def _lower(bound: Callable[..., Any], p: Problem, relation: Relation = ">=") -> Iterator[Case]:
    """The claim that each step of Algorithm 4, variant 0, leaves at least the error of a lower bound."""
    states = p.states(ps.lin(p.A), SHORT_STEP, 6)
    eps = p.errors(states)
    kept = [
        bound(
            e,
            width=geometry.directional_width(p.A, -now.grad).upper,
            norm=np.linalg.norm(now.atom.vector),
            L=p.f.L,
            mu=p.f.mu,
        )
        for e, now in zip(eps, states, strict=True)
        if e > ERROR_FLOOR * eps[0]
    ]
    after = eps[1 : len(kept) + 1]
    yield Case(p.name, after, kept[: len(after)], relation, delta=1.0, floor=ERROR_FLOOR * eps[0])


def _theorem_8(bound: Callable[..., Any], plan: Plan) -> Iterator[Case]:
    for p in spans(plan, plan.problems):
        yield from _lower(bound, p, "==" if isinstance(p.f, ps.LeastSquares) else ">=")
    for i in range(plan.problems):
        rng, n = plan.rng(7, i), 2 + i % 4
        y = rng.standard_normal(n)
        f, optimum = quadratic(rng, n, y, condition=1.0 + 0.5 * rng.random())
        B = unit_columns(rng.standard_normal((n, n)))  # few atoms make a narrow set, for which the bound is strong
        A = ps.Dictionary(B, signed=True)
        yield from _lower(bound, Problem(f"narrow {i}", f, A, optimum, None, y))


@claim(
    "Theorem 8",
    "lower bound",
    "ε<sub>t+1</sub> ≥ (1 − W<sub>A</sub>(−g<sub>t</sub>)² / ‖z<sub>t</sub>‖² · (2L − μ)/μ) ε<sub>t</sub>",
)
def theorem_8(plan: Plan) -> Iterator[Case]:
    """Variant 0 of Algorithm 4, exact oracle. Equality: least squares. Erratum 16: the gradient at x* has to vanish in
    the whole space; x* in lin(A), as printed, is not enough."""
    yield from _theorem_8(rates.lower_bound, plan)
    p = Problem("a line", ps.LeastSquares([1.0, 10.0]), ps.Dictionary(np.eye(2)[:, :1], signed=True), 50.0)
    now, after = p.states(ps.lin(p.A), SHORT_STEP, 1)
    width = float(-now.grad @ now.atom.vector) / np.linalg.norm(now.grad)  # of the gradient, which leaves lin(A)
    bound = rates.lower_bound(now.value - p.optimum, width=width, norm=1.0, L=1, mu=1)
    yield Case(p.name, after.value - p.optimum, bound, ">=", delta=1.0, printed=True)


@claim(
    "Theorem 8 sharp",
    "lower bound",
    "ε<sub>t+1</sub> ≥ (1 − W<sub>A</sub>(−g<sub>t</sub>)² / ‖z<sub>t</sub>‖² · (2L − μ)/L) ε<sub>t</sub>",
)
def theorem_8_sharp(plan: Plan) -> Iterator[Case]:
    """L in place of μ (erratum 17), so never smaller than Theorem 8. Equality: least squares."""
    yield from _theorem_8(rates.lower_bound_sharp, plan)


@claim("Corollary 9", "MP, signed basis", "ε<sub>t+1</sub> ≤ (1 − 1/(d − t)) ε<sub>t</sub>")
def corollary_9(plan: Plan) -> Iterator[Case]:
    """Erratum 1: printed with ≥, which fails unless all residuals have one size. Equalities: the exact error, half the
    sum of the d − t smallest squared residuals; and the factor itself where residuals have one size."""
    for i in range(plan.problems):
        rng, d = plan.rng(8, i), 2 + i % 7
        x0, y = rng.standard_normal((2, d))
        level = [geometry.mdw(ps.SignedBasis(d - t)) for t in range(d)]  # of the coordinates that are left
        factor = np.array([rates.linear(1, mu=1, L=1, mdw=width, radius=1, eps0=1) for width in level])
        tries: list[tuple[Small, Relation]] = [(y - x0, "<="), (np.sign(y), "==")]
        for residual, relation in tries:
            p = Problem(f"{relation} {i}", ps.LeastSquares(x0 + residual), ps.SignedBasis(d), 0.0, x0)
            eps = p.errors(p.states(ps.lin(p.A), LINE_SEARCH, d, 1.0))
            exact = rates.signed_basis(np.arange(d + 1), residual=residual)
            yield Case(p.name, eps, exact, "==", delta=1.0)
            yield Case(p.name, eps[1:], factor * eps[:-1], relation, floor=ERROR_FLOOR * eps[0])
            if relation == "<=":
                yield Case(p.name, eps[1:], factor * eps[:-1], ">=", floor=ERROR_FLOOR * eps[0], printed=True)
