"""Affine-invariant constants of f over an atom set: curvature and strong convexity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np

from pursuit.arguments import describe, number
from pursuit.arrays import Small, host
from pursuit.atoms import Atoms
from pursuit.atoms.closed import MAX_DENSE_DIMENSION, Map, through
from pursuit.geometry.inputs import check_objective, root
from pursuit.geometry.interval import Interval
from pursuit.geometry.norm import gauge
from pursuit.geometry.shapes import Shape, lift, oracle, shape_of
from pursuit.linalg import EPS
from pursuit.metrics import Operator
from pursuit.objectives import Objective

Kind = Literal["fw", "mp", "away"]

CURVATURE_SAMPLES = 400
"""The constants of a function that is not quadratic are estimated from this many points."""


def curvature(f: Objective, A: Atoms, kind: Kind = "fw", rho: float = 1.0) -> Interval:
    r"""The curvature constant of f over rho A: :math:`\sup \frac{2}{\gamma^2} D(x+\gamma\,dir,\,x)` with
    :math:`D(y,x) = f(y)-f(x)-\langle\nabla f(x), y-x\rangle`, x in rho conv(A) and gamma in (0, 1].

    ========== ======= ================= ===============================
    kind       dir     constant          bound
    ========== ======= ================= ===============================
    "fw"       s - x   :math:`C_f`       :math:`L\,\mathrm{diam}^2`
    "mp"       s       :math:`C_f^{MP}`  :math:`L\,\mathrm{radius}^2`
    "away"     s - v   :math:`C_f^{AW}`  :math:`L\,\mathrm{diam}^2`
    ========== ======= ================= ===============================

    Exact for quadratics: the squared diameter or radius of rho A in the norm of the Hessian. For other f the lower
    end is an *estimate from samples*, which only bounds the constant from below, and the upper end is the bound of
    the table, or infinite where f has no L.

    >>> import pursuit as ps
    >>> f, A = ps.LeastSquares([0.0, 0.0]), ps.SignedBasis(2)
    >>> curvature(f, A), curvature(f, A, "mp"), curvature(f, A, "mp", rho=3.0)
    (Interval(4, exact), Interval(1, exact), Interval(9, exact))
    """
    shape, rho = _check(f, A, rho)
    if not isinstance(kind, str) or kind not in {"fw", "mp", "away"}:
        raise ValueError(f"kind is {describe(kind)}; give 'fw', 'mp' or 'away'.")
    T = _hessian_root(f, A, shape)
    if T is not None:
        return _size(shape.image(T), kind).squared().scaled(rho * rho)
    upper = f.L * (rho * _size(shape, kind).upper) ** 2 if f.L is not None else math.inf
    return Interval(min(_sampled_curvature(f, A, kind, rho), upper), upper)


def strong_convexity(f: Objective, A: Atoms, rho: float = 1.0) -> Interval:
    r"""The affine-invariant strong convexity of f over rho A: :math:`\mu_f^{MP} = \inf \frac{2}{\gamma(x,x^\star)^2}
    D(x^\star, x)` over points of rho conv(A) with :math:`\langle\nabla f(x), x^\star-x\rangle<0`, where
    :math:`\gamma(x,x^\star) = \langle-\nabla f(x), x^\star-x\rangle / \langle-\nabla f(x), s(x)\rangle` and s(x) is
    the atom that the oracle names.

    It is at least :math:`\mu\,\mathrm{mDW}(\rho A)^2` where mDW > 0 (Lemma 16; the width in the dual norm).
    For a quadratic that is strictly convex on lin(A) it is at least the squared mDW of rho A in the norm of the
    Hessian, with equality where the minimiser over lin(A) lies in the relative interior of rho conv(A). Otherwise the
    upper end is an *estimate from samples*, which only bounds the constant from above.

    >>> import pursuit as ps
    >>> strong_convexity(ps.LeastSquares([0.1, 0.0]), ps.SignedBasis(2))
    Interval(0.5, exact)
    """
    shape, rho = _check(f, A, rho)
    width, centre = _convexity(f, A, shape)
    bounds = width.scaled(rho).squared()
    if centre is not None and bounds.lower > 0 and gauge(A, lift(A, centre)).upper < rho * (1 - 1e-9):
        return bounds
    upper = _sampled_convexity(f, A, rho)
    return Interval(min(bounds.lower, upper), upper)


def least_convexity(f: Objective, A: Atoms) -> float:
    """A lower bound on mu_f^MP of A; rho^2 times it is one for rho A."""
    return _convexity(f, A, _check(f, A, 1.0)[0])[0].squared().lower


def _convexity(f: Objective, A: Atoms, shape: Shape) -> tuple[Interval, Small | None]:
    """The root of mu_f^MP: a width of A, and where it is exact for all large rho A, the minimiser of f on lin(A)."""
    T = _hessian_root(f, A, shape)
    if T is None:
        width = shape.mdw().scaled(math.sqrt(f.mu)) if f.mu > 0 else Interval.of(0.0)
        return Interval(max(width.lower, 0.0), math.inf), None
    centre = _minimiser(f, A, shape, T)
    if centre is None and np.ndim(T) == 2:  # the Hessian may vanish along lin(A), and f fall there
        return Interval(0.0, math.inf), None
    width = shape.image(T).mdw()
    return Interval(max(width.lower, 0.0), max(width.upper, 0.0)), centre


def _check(f: Objective, A: Atoms, rho: float) -> tuple[Shape, float]:
    shape = shape_of(A)
    check_objective(f, A)
    if not 0 < number(rho) < math.inf:
        raise ValueError(f"rho is {describe(rho)}; give a positive scale of the set.")
    return shape, float(rho)


def _size(shape: Shape, kind: Kind) -> Interval:
    return shape.radius() if kind == "mp" else shape.diameter()


def _hessian_root(f: Objective, A: Atoms, shape: Shape) -> Map | None:
    """T with T'T = H for a quadratic f, or None."""
    if not f.quadratic or shape.n is None:
        return None
    H = f.hessian(lift(A, np.zeros(shape.n)))
    if H is None or (isinstance(H, Operator) and shape.n > MAX_DENSE_DIMENSION):
        return None
    return root(H, shape.n, definite=False)


def _minimiser(f: Objective, A: Atoms, shape: Shape, T: Map) -> Small | None:
    """The minimiser of a quadratic over lin(A); None where lin(A) is unknown or its Hessian there is not definite."""
    assert shape.n is not None
    Q = shape.basis()
    if Q is None:
        return None
    half = through(T, Q)
    H, slope = half.T @ half, Q.T @ host(f.value_and_grad(lift(A, np.zeros(shape.n)))[1]).ravel()
    return np.asarray(-Q @ np.linalg.solve(H, slope)) if np.linalg.cond(H) < 1e12 else None


# ---------------------------------------------------------------------- samples


def _atoms(A: Atoms, f: Objective, rng: np.random.Generator, count: int) -> list[Small]:
    """Atoms that the oracle names for random directions."""
    shaped = A.shape or (None if f.space is None else f.space.shape)
    if shaped is None:
        raise ValueError("neither A nor f knows the shape of a vector; set `shape` on the atom set.")
    lmo = oracle(A)
    return [lmo(g) for g in rng.standard_normal((count, math.prod(shaped)))]


def _points(atoms: list[Small], rho: float, rng: np.random.Generator) -> Iterator[Small]:
    """Points of rho conv(A): vertices, edges and the inside."""
    stack = np.array(atoms)
    for i in range(CURVATURE_SAMPLES):
        few = rng.integers(0, len(stack), 1 + i % 4)
        yield rho * rng.dirichlet(np.full(len(few), 0.7)) @ stack[few]


def _bregman(f: Objective, A: Atoms, y: Small, x: Small) -> tuple[float, float, Small]:
    """D(y, x), what rounding may have added to it, and the gradient at x."""
    value, g = f.value_and_grad(lift(A, x))
    grad, new = host(g).ravel(), f.value(lift(A, y))
    slope = float(grad @ (y - x))
    return new - value - slope, 16 * EPS * (abs(new) + abs(value) + abs(slope)), grad


def _sampled_curvature(f: Objective, A: Atoms, kind: Kind, rho: float) -> float:
    rng = np.random.default_rng(0)
    atoms, best = _atoms(A, f, rng, 64), 0.0
    for i, x in enumerate(_points(atoms, rho, rng)):
        s, v = (rho * atoms[j] for j in rng.integers(0, len(atoms), 2))
        direction = {"fw": s - x, "mp": s, "away": s - v}[kind]
        gamma = (1.0, 0.3, 0.03)[i % 3]
        D, noise, _ = _bregman(f, A, x + gamma * direction, x)
        found = 2 / gamma**2 * (D - noise)
        best = max(best, found if math.isfinite(found) else 0.0)
    return best


def _sampled_convexity(f: Objective, A: Atoms, rho: float) -> float:
    rng, lmo = np.random.default_rng(0), oracle(A)
    atoms, best = _atoms(A, f, rng, 64), math.inf
    points = list(_points(atoms, rho, rng))
    for x, other in zip(points, rng.permutation(len(points)), strict=True):
        y = points[other]
        D, noise, grad = _bregman(f, A, y, x)
        fall, most = -float(grad @ (y - x)), rho * float(-grad @ lmo(grad))
        if fall > 1e-6 * float(np.linalg.norm(grad) * np.linalg.norm(y - x)) and math.isfinite(D):
            best = min(best, 2 * (max(D, 0.0) + noise) * (most / fall) ** 2)
    return best
