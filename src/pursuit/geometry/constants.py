"""Constants of f over an atom set: affine-invariant ones, and smoothness and strong convexity in a norm."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from pursuit.arguments import describe, number
from pursuit.arrays import Small, host
from pursuit.atoms import Atoms
from pursuit.atoms.closed import MAX_DENSE_DIMENSION, Map, through
from pursuit.geometry import polytope
from pursuit.geometry.inputs import check_objective, root
from pursuit.geometry.interval import Interval
from pursuit.geometry.norm import gauge
from pursuit.geometry.shapes import Shape, lift, shape_of
from pursuit.geometry.width import exponent, ratios
from pursuit.metrics import as_metric
from pursuit.objectives import Objective

Kind = Literal["fw", "mp", "away"]

MAX_SIGNS = 18
"""A quadratic form is maximised over all sign vectors up to this dimension."""


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

    Exact for quadratics: the squared diameter or radius of rho A in the norm of the Hessian. For other f the upper end
    is the bound of the table, infinite where f has no L.

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
    return Interval(0.0, math.inf if f.L is None else f.L * (rho * _size(shape, kind).upper) ** 2)


def strong_convexity(f: Objective, A: Atoms, rho: float = 1.0) -> Interval:
    r"""The affine-invariant strong convexity of f over rho A: :math:`\mu_f^{MP} = \inf \frac{2}{\gamma(x,x^\star)^2}
    D(x^\star, x)` over points of rho conv(A) with :math:`\langle\nabla f(x), x^\star-x\rangle<0`, where
    :math:`\gamma(x,x^\star) = \langle-\nabla f(x), x^\star-x\rangle / \langle-\nabla f(x), s(x)\rangle` and s(x) is
    the atom that the oracle names.

    It is at least :math:`\mu\,\mathrm{mDW}(\rho A)^2` where mDW > 0 (Lemma 16; the width in the dual norm).
    For a quadratic that is strictly convex on lin(A) it is at least the squared mDW of rho A in the norm of the
    Hessian, with equality where the minimiser over lin(A) lies in the relative interior of rho conv(A). Otherwise the
    upper end is infinite.

    >>> import pursuit as ps
    >>> strong_convexity(ps.LeastSquares([0.1, 0.0]), ps.SignedBasis(2))
    Interval(0.5, exact)
    """
    shape, rho = _check(f, A, rho)
    width, centre = _convexity(f, A, shape)
    bounds = width.scaled(rho).squared()
    inside = centre is not None and bounds.lower > 0 and gauge(A, lift(A, centre)).upper < rho * (1 - 1e-9)
    return bounds if inside else Interval(bounds.lower, math.inf)


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
    if H is None or (H.h is None and shape.n > MAX_DENSE_DIMENSION):
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


# ---------------------------------------------------------------------- in a norm


def smoothness(f: Objective, A: Atoms, *, norm: float = 2.0, metric: object = None) -> Interval:
    r"""The smoothness L of f in a norm, :math:`\sup_h \langle h, Hh\rangle/\|h\|^2` over its Hessians H.

    The norm is :math:`\|h\|_p` with `norm` = p, or that of a `metric`. Exact for quadratics in a Hilbert norm, for
    p = 1, and up to dimension 18 for p = inf; elsewhere an interval, by interpolation and by comparison with the
    Euclidean norm. For other f the upper end comes from its Euclidean L.

    >>> import pursuit as ps
    >>> f, A = ps.Quadratic([[2.0, 1.0], [1.0, 3.0]], [0.0, 0.0]), ps.SignedBasis(2)
    >>> smoothness(f, A, norm=1), smoothness(f, A, norm=float("inf")), smoothness(f, A, metric=[[2.0, 1.0], [1.0, 3.0]])
    (Interval(3, exact), Interval(7, exact), Interval(1, exact))
    """
    return _constants(f, A, norm, metric)[1]


def convexity(f: Objective, A: Atoms, *, norm: float = 2.0, metric: object = None) -> Interval:
    r"""The strong convexity mu of f in a norm: :math:`\inf_h \langle h, Hh\rangle/\|h\|^2`, as for `smoothness`.

    >>> import pursuit as ps
    >>> f, A = ps.LeastSquares([0.0, 0.0]), ps.SignedBasis(2)
    >>> convexity(f, A, norm=1), convexity(f, A, norm=float("inf"))
    (Interval(0.5, exact), Interval(1, exact))
    """
    return _constants(f, A, norm, metric)[0]


def _constants(f: Objective, A: Atoms, norm: object, metric: object) -> tuple[Interval, Interval]:
    """mu and L in a norm."""
    shape, p = shape_of(A), exponent(norm, metric)
    check_objective(f, A)
    H = _hessian(f, A, shape)
    if metric is not None:
        T = root(as_metric(metric), shape.n)
        sizes = np.linalg.svd(T, compute_uv=False) if np.ndim(T) == 2 else np.atleast_1d(T)
        low, high = float(sizes.min()), float(sizes.max())
        if H is not None:
            half = np.linalg.inv(T) if np.ndim(T) == 2 else np.diag(1 / np.broadcast_to(T, (len(H),)))
            H = half.T @ H @ half
    elif H is None:
        low, high = ratios(p, shape.n)
    if H is None:
        both = Interval(f.mu / high**2, (math.inf if f.L is None else f.L) / low**2)
        return both, both
    return _least(H, p), _largest(H, p)


def _hessian(f: Objective, A: Atoms, shape: Shape) -> Small | None:
    """The Hessian of a quadratic as a matrix."""
    if not f.quadratic or shape.n is None or shape.n > MAX_DENSE_DIMENSION:
        return None
    H = f.hessian(lift(A, np.zeros(shape.n)))
    return None if H is None else host(H.batch(np.eye(shape.n)))


def _largest(H: Small, p: float) -> Interval:
    """max h'Hh for ||h||_p <= 1."""
    n, top = len(H), float(np.linalg.eigvalsh(H)[-1])
    first, bound = float(np.diag(H).max()), float(np.abs(H).sum())
    if p <= 2:
        share = 2 - 2 / p  # 1/p = (1 - share) + share / 2: Riesz and Thorin, for H^(1/2) from l_p to l_2
        return Interval(first if p < 2 else top, max(first ** (1 - share) * top**share, first if p < 2 else top))
    corners = polytope.max_quadratic(H)[1] if 1 < n <= MAX_SIGNS else first if n == 1 else None
    upper = bound if corners is None else corners
    if math.isinf(p):
        return Interval(min(top, upper) if corners is None else corners, upper)
    return Interval(top, max(top, min(upper, float(n) ** (1 - 2 / p) * top)))


def _least(H: Small, p: float) -> Interval:
    """min h'Hh for ||h||_p = 1, by duality from H^-1."""
    values = np.linalg.eigvalsh(H)
    low = float(values[0])
    if not low > len(H) * 1e-15 * float(values[-1]):
        return Interval.of(0.0)
    inverse = np.asarray(np.linalg.inv(H), dtype=np.float64)
    corners = _largest(inverse, math.inf)  # of the dual ball of ||h||_1
    if p < 2:
        least = Interval(1 / corners.upper, 1 / corners.lower)
        return least if p == 1 else Interval(least.lower, low)
    axis = 1 / float(np.diag(inverse).max())
    return Interval.of(low) if p == 2 else Interval.of(axis) if math.isinf(p) else Interval(low, max(low, axis))
