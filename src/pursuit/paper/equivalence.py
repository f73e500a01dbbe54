"""Where two algorithms agree: Frank-Wolfe and matching pursuit (Theorem 14, oracle qualities), and one algorithm in two
coordinate systems (affine invariance)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse.linalg import LinearOperator

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Small
from pursuit.linalg import EPS, unit_columns
from pursuit.paper.claims import Case, Plan, claim
from pursuit.paper.problems import DELTAS, SHORT_STEP, Problem, just_below, quadratic


class StepComparison:
    """One step of Frank-Wolfe on alpha A and one of matching pursuit on A, from the same x."""

    def __init__(self, plan: Plan, i: int) -> None:
        rng, n = plan.rng(15, i), 3
        D = unit_columns(rng.standard_normal((n, 4))) * rng.uniform(0.5, 2.0, 4)
        self.A = ps.Dictionary(D, signed=True)
        self.f = quadratic(rng, n, rng.standard_normal(n))[0]
        self.start = (np.array([0.3, 0.2, 0.4]), [self.A.atom(j) for j in (0, 5, 2)])
        now, after = Problem("", self.f, self.A, 0.0, self.start).states(ps.lin(self.A), SHORT_STEP, 1)
        self.x, self.grad, self.z, self.pursued = now.x, now.grad, now.atom.vector, after.x

    def distance(self, alpha: float) -> float:
        """||x^FW - x^MP||."""
        p = Problem("", self.f, self.A, 0.0, self.start)
        return float(np.linalg.norm(p.states(ps.conv(alpha * self.A), SHORT_STEP, 1)[1].x - self.pursued))

    @property
    def limit(self) -> float:
        """What alpha times the distance tends to."""
        return rates.frank_wolfe_limit(L=self.f.L or 0.0, grad=self.grad, x=self.x, z=self.z)


@claim("Theorem 14", "FW tends to MP", "α ‖x<sup>FW</sup> − x<sup>MP</sup>‖ → a known limit as α → ∞")
def theorem_14(plan: Plan) -> Iterator[Case]:
    """One step of variant 3 of Algorithm 2 on αA and of variant 0 of Algorithm 4 on A, from the same x (erratum 24).
    Equalities: the limit, terms in 1/α and 1/α² removed; and, where a small α clips the step, the distance
    ‖αz − x<sup>MP</sup>‖ (erratum 38)."""
    for i in range(plan.problems):
        m = StepComparison(plan, i)
        near, mid, far = (alpha * m.distance(alpha) for alpha in (2e3, 4e3, 8e3))
        limit = (8 * far - 6 * mid + near) / 3
        size = max(m.limit, float(np.linalg.norm(m.x)))  # a limit far below the size of x is known to its rounding only
        yield Case(f"random {i}", limit, m.limit, "==", delta=1.0, tolerance=1e-6, scale=size)
        y = 20 * plan.rng(16, i).standard_normal(3)  # far away, so that the step is clipped
        p = Problem(f"clipped {i}", ps.LeastSquares(y), ps.SignedBasis(3), 0.0, 0.1 * y / np.abs(y).sum())
        now, after = p.states(ps.lin(p.A), SHORT_STEP, 1)
        clipped = p.states(ps.conv(p.A), SHORT_STEP, 1)[1].x
        promised = np.linalg.norm(now.atom.dense(ps.LeastSquares(y).space) - after.x)
        yield Case(p.name, np.linalg.norm(clipped - after.x), promised, "==", delta=1.0)


@claim("Section 7", "oracle qualities", "δ<sub>FW</sub> ≥ (α δ<sub>MP</sub> − ρ) / (α − ρ)")
def oracle_qualities(plan: Plan) -> Iterator[Case]:
    """The worst answer of quality δ<sub>MP</sub> on A, taken as an answer on αA at points with atomic norm at most ρ;
    the paper promises this relation and does not give it (erratum 25). Equality: the atoms ±1, ±δ at the worst
    point."""
    for i in range(plan.problems):
        rng = plan.rng(17, i)
        A = ps.Dictionary(rng.standard_normal((3, 30)), signed=True)
        w = rng.dirichlet(np.full(60, 0.1))
        x = sum(w[j] * A.atom(j).vector for j in range(60))
        for delta in DELTAS[1:]:
            alpha = rng.uniform(1.1, 4.0) / delta
            promised = rates.delta_fw(delta, alpha, 1.0)
            p = Problem(f"random {i}", ps.LeastSquares(rng.standard_normal(3)), A, 0.0, x)
            yield Case(p.name, _converted(p, delta, alpha), promised, ">=", delta=delta)
    for delta in DELTAS[1:]:
        A = ps.Dictionary(np.array([[1.0, delta]]), signed=True)
        p = Problem(f"a line, {delta}", ps.LeastSquares([3.0]), A, 0.0, np.ones(1))
        found = _converted(p, just_below(delta), 2 / delta)
        yield Case(p.name, found, rates.delta_fw(delta, 2 / delta, 1.0), "==", delta=delta)


def _converted(p: Problem, delta: float, alpha: float) -> float:
    """The Frank-Wolfe quality on alpha A of the atom that the adversary names on A."""
    now = p.states(ps.lin(p.A), SHORT_STEP, 0, delta)[0]
    best, worst = p.A.lmo(now.grad).vector, now.atom.vector
    return float(now.grad @ (alpha * worst - now.x)) / float(now.grad @ (alpha * best - now.x))


@claim("Section 6", "affine invariance", "f(x<sub>t</sub>) is the same in all coordinates x = M x̂")
def affine_invariance(plan: Plan, count: int = 50) -> Iterator[Case]:
    """Algorithms 5 and 6 on random linear reparametrisations with condition numbers up to a million: equal values to
    rounding, which the condition number multiplies."""
    for i in range(count):
        rng, n = plan.rng(18, i), 2 + i % 4
        U, V = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
        condition = 10.0 ** (6 * i / (count - 1))
        M = (U * np.geomspace(1.0, 1 / condition, n)) @ V.T
        D, y = unit_columns(rng.standard_normal((n, n + 3))), rng.standard_normal(n)
        here = _values(D, y, np.eye(n))
        there = _values(np.linalg.solve(M, D), y, M)
        for a, b in zip(here, there, strict=True):
            yield Case(f"coordinates {i}", b, a, "==", delta=1.0, tolerance=1e3 * EPS * condition)


def _values(B: Small, y: Small, M: Small) -> list[Small]:
    """Values of Algorithm 5 and both variants of Algorithm 6 for f(u) = 1/2||M u - y||^2 over the atoms +-B."""
    n, A = len(y), ps.Dictionary(B, signed=True)
    H = LinearOperator((n, n), matvec=lambda u: M.T @ (M @ u), dtype=np.float64)
    f = ps.Quadratic(H, -M.T @ y)
    seen = ps.Dictionary(M @ B, signed=True)  # where f is 1/2||x - y||^2
    plain = ps.LeastSquares(y)
    C, Cmp = geometry.curvature(plain, seen).upper, geometry.curvature(plain, seen, "mp").upper
    first = ([1.0], [A.atom(0)])
    constant = 0.5 * float(y @ y)
    runs = (
        Problem("", f, A, -constant, first).states(ps.conv(A), ps.Plain(ps.CurvatureStep(C)), 12),
        Problem("", f, A, -constant).states(ps.lin(A), ps.Plain(ps.CurvatureStep(Cmp)), 12),
        Problem("", f, A, -constant).states(ps.lin(A), ps.FullyCorrective(), n - 1),
    )
    return [np.array([s.value for s in states]) + constant for states in runs]
