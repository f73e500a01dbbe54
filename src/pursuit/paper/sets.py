"""Statements on atom sets and constants: Theorem 10 and Lemmas 15 to 18."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Small
from pursuit.atoms import Atoms
from pursuit.linalg import unit_columns
from pursuit.objectives import Objective
from pursuit.paper.claims import Case, Plan, Relation, claim
from pursuit.paper.problems import LogCosh, narrowest, quadratic, span

POINTS_PER_SET = 40


def dictionaries(plan: Plan, key: int) -> Iterator[tuple[str, Small]]:
    """n <= r unit atoms near an orthonormal basis, where the coherence bound is positive."""
    for i in range(plan.problems):
        rng, r = plan.rng(key, i), 2 + i % 5
        n = int(rng.integers(2, r + 1))
        Q = np.linalg.qr(rng.standard_normal((r, r)))[0][:, :n]
        yield f"near orthonormal {i}", unit_columns(Q + rng.uniform(0.0, 0.6) / n * rng.standard_normal((r, n)))


def pairs() -> Iterator[tuple[str, Small]]:
    """Two unit atoms at an angle."""
    for theta in np.linspace(0.1, 1.5, 8):
        yield f"a pair at {theta:.2f}", np.array([[1.0, np.cos(theta)], [0.0, np.sin(theta)]])


@claim("Theorem 10", "coherence and width", "μ(B, n−1) ≥ 1 − n mDW(±B)²")
def theorem_10(plan: Plan) -> Iterator[Case]:
    """Dictionaries near an orthonormal one, where the right side is positive (erratum 19), as stated and solved for the
    width. Equality: orthonormal atoms, and any two unit atoms."""
    for name, D in [*dictionaries(plan, 9), *pairs()]:
        n = D.shape[1]
        coherence, width = geometry.coherence(D, n - 1), geometry.mdw(ps.Dictionary(D, signed=True))
        relation: Relation = "==" if "pair" in name else ">="
        yield Case(name, coherence.upper, rates.coherence(n=n, mdw=width), relation, floor=1e-9)
        promised = rates.mdw_from_coherence(n=n, coherence=coherence)
        yield Case(name, width.upper, promised, relation, floor=1e-9)
    for n in range(1, 7):
        Q = np.linalg.qr(plan.rng(10, n).standard_normal((n, n)))[0]
        promised = rates.mdw_from_coherence(n=n, coherence=geometry.coherence(Q, n - 1))
        yield Case(f"orthonormal {n}", geometry.mdw(ps.Dictionary(Q, signed=True)).upper, promised, "==")


def bregman(f: Objective, y: Small, x: Small) -> float:
    """D(y, x) = f(y) - f(x) - <grad f(x), y - x>."""
    value, grad = f.value_and_grad(x)
    return f.value(y) - value - float(grad @ (y - x))


def listed(A: Atoms) -> Small:
    """All atoms, as rows."""
    return np.array([A.atom(j).dense(ps.LeastSquares(np.zeros(A.shape or ())).space) for j in range(A.size or 0)])


def points(rng: np.random.Generator, A: Atoms, rho: float = 1.0) -> Iterator[Small]:
    """Points of rho conv(A)."""
    atoms = listed(A)
    for w in rng.dirichlet(np.full(len(atoms), 0.3), POINTS_PER_SET):
        yield rho * (w @ atoms)


@claim("Lemma 15", "curvature", "C<sub>f</sub><sup>MP</sup> ≤ L radius(A)²")
def lemma_15(plan: Plan) -> Iterator[Case]:
    """Sampled curvature 2 D(x + γs, x)/γ², L on 2 conv(A), against the constant and the constant against the bound.
    Equality: the constant of a quadratic, attained by an atom. Erratum 7: L on conv(A), as printed, is not enough."""
    for i in range(plan.problems):
        p, rng = span(plan, i), plan.rng(11, i)
        C, atoms = geometry.curvature(p.f, p.A, "mp"), listed(p.A)
        bound = (p.f.L or 0.0) * geometry.radius(p.A).upper ** 2
        found = [
            2 / gamma**2 * bregman(p.f, x + gamma * s, x)
            for x, gamma in zip(points(rng, p.A), rng.uniform(0.05, 1.0, POINTS_PER_SET), strict=True)
            for s in atoms
        ]
        yield Case(p.name, [*found, max(found)], [C.upper] * len(found) + [bound])
        if p.f.quadratic:
            yield Case(p.name, max(found), C.upper, "==")
    quartic = ps.Smooth(lambda x: float((x**4).sum()) / 12, lambda x: x**3 / 3)  # Hessian diag(x^2): L = 1 on conv(A)
    e = np.array([1.0, 0.0])
    for L, printed in ((1.0, True), (4.0, False)):
        bound = L * geometry.radius(ps.SignedBasis(2)).upper ** 2
        yield Case("quartic", 2 * bregman(quartic, 2 * e, e), bound, printed=printed)


@claim("Lemma 16", "strong convexity", "μ<sub>f</sub><sup>MP</sup> ≥ μ mDW(A)²")
def lemma_16(plan: Plan) -> Iterator[Case]:
    """Sampled 2 D(x*, x)/γ(x, x*)² against the constant and the bound, in the Euclidean norm (erratum 8). Equality:
    multiples of the squared norm, at the direction in which the set is narrowest (erratum 9)."""
    for i in range(plan.problems):
        rng, n = plan.rng(12, i), 2 + i % 3
        B = unit_columns(rng.standard_normal((n, n + 2)))
        A = ps.Dictionary(B, signed=True)
        width = geometry.mdw(A)
        centre = 0.5 * width.lower * unit_columns(rng.standard_normal((n, 1)))[:, 0]  # inside conv(A)
        f = (quadratic(rng, n, centre)[0], LogCosh(centre), ps.LeastSquares(centre, weights=3.0))[i % 3]
        promised = geometry.strong_convexity(f, A).lower
        found = [ratio(f, A, x, centre) for x in points(rng, A)]
        yield Case(f"random {i}", [*found, min(found)], [promised] * len(found) + [f.mu * width.lower**2], ">=")
        if i % 3 == 2:
            x = centre - 0.4 * width.lower * narrowest(B)
            yield Case(f"narrowest {i}", [ratio(f, A, x, centre), promised], [f.mu * width.lower**2] * 2, "==")


def ratio(f: Objective, A: Atoms, x: Small, target: Small) -> float:
    """2 D(x*, x) / gamma(x, x*)^2."""
    grad = f.value_and_grad(x)[1]
    gamma = float(-grad @ (target - x)) / float(-grad @ A.lmo(grad).vector)
    return 2 * bregman(f, target, x) / gamma**2


@claim("Lemma 17", "smallest eigenvalue", "γ<sub>min</sub>(G) ≥ 1 − μ(B, m−1)")
def lemma_17(plan: Plan) -> Iterator[Case]:
    """Equality: any two unit atoms, and orthonormal ones, where the printed > fails (erratum 18)."""
    for name, D in [*dictionaries(plan, 13), *pairs(), ("orthonormal", np.eye(3))]:
        smallest = float(np.linalg.eigvalsh(D.T @ D)[0])
        promised = 1 - geometry.coherence(D, D.shape[1] - 1).upper
        yield Case(name, smallest, promised, ">=" if "near" in name else "==", floor=1e-9)
    smallest = float(np.linalg.eigvalsh(np.eye(3))[0])
    strictly = np.nextafter(1 - geometry.coherence(np.eye(3), 2).upper, np.inf)
    yield Case("orthonormal", smallest, strictly, ">=", tolerance=0.0, printed=True)


@claim("Lemma 18", "largest correlation", "max<sub>j</sub> |⟨p, s<sub>j</sub>⟩| ≥ ‖p‖² / ‖v‖<sub>1</sub>, p = Bv")
def lemma_18(plan: Plan) -> Iterator[Case]:
    """Random combinations. Equality: orthonormal atoms and weights of one size."""
    for i in range(plan.problems):
        rng, r = plan.rng(14, i), 2 + i % 5
        Q = np.linalg.qr(rng.standard_normal((r, r)))[0]
        tries: list[tuple[Small, Small, Relation]] = [
            (unit_columns(rng.standard_normal((r, r + i % 4))), rng.standard_normal(r + i % 4), ">="),
            (Q, np.sign(rng.standard_normal(r)), "=="),
        ]
        for D, v, relation in tries:
            p = D @ v
            size = float(np.linalg.norm(p))
            found = size * geometry.directional_width(ps.Dictionary(D, signed=True), p).upper
            yield Case(f"{relation} {i}", found, size**2 / np.abs(v).sum(), relation)
