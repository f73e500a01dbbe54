"""Sizes of sets and constants of functions in p-norms: intervals, from enumeration or from the Euclidean norm."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import describe, number
from pursuit.arrays import Small, host
from pursuit.atoms import Atoms
from pursuit.atoms.closed import MAX_DENSE_DIMENSION
from pursuit.geometry import polytope
from pursuit.geometry.inputs import check_objective, root
from pursuit.geometry.interval import Interval
from pursuit.geometry.shapes import Finite, Shape, lift, shape_of
from pursuit.linalg import norms
from pursuit.metrics import as_metric
from pursuit.objectives import Objective

MAX_SIGNS = 18
"""A quadratic form is maximised over all sign vectors up to this dimension."""


def exponent(norm: object, metric: object) -> float:
    """The p of a p-norm, 2 where there is a metric."""
    p = number(norm)
    if not p >= 1:
        raise ValueError(f"norm is {describe(norm)}; give p >= 1 for the norm ||x||_p, such as 1, 1.5, 2 or math.inf.")
    if metric is not None and p != 2:
        raise ValueError(f"norm is {describe(norm)} with a metric; give one of them.")
    return p


def ratios(p: float, n: int | None) -> tuple[float, float]:
    """The least and the largest ||x||_p / ||x||_2 in dimension n."""
    if n is None and p != 2:
        raise ValueError(
            "A does not know the shape of its atoms, on which p-norms depend; set `shape` on the atom set."
        )
    most = float(n or 1) ** (1 / p - 0.5)
    return min(1.0, most), max(1.0, most)


def radius(shape: Shape, p: float) -> Interval:
    """max ||z||_p."""
    if shape.atoms is not None:
        return Interval.of(np.linalg.norm(shape.atoms, p, axis=1).max())
    return _times(shape.radius(), *ratios(p, shape.n))


def diameter(shape: Shape, p: float) -> Interval:
    """max ||z - v||_p."""
    points = shape.atoms
    if points is None or len(points) > Finite.MAX_PAIRED_ATOMS // 10:
        return _times(shape.diameter(), *ratios(p, shape.n))
    return Interval.of(max(np.linalg.norm(points - z, p, axis=1).max() for z in points))


def mdw(shape: Shape, p: float) -> Interval:
    """min over d of max <d, z> / ||d||_q with the dual q: min over the facets <u, x> <= b of b / ||u||_q."""
    euclid, q = shape.mdw(), 1 / (1 - 1 / p) if p > 1 else math.inf
    points, whole = shape.atoms, shape.basis()
    if points is not None and whole is not None and points.shape[1] == whole.shape[1] > 1 and euclid.lower > 0:
        scale = float(norms(points.T).max())
        hull = polytope.facets(points / scale)
        if hull is not None and hull.certified:
            sizes = np.linalg.norm(hull.normals, q, axis=1)
            return Interval(
                scale * float((hull.inner / sizes).min()) * (1 - 1e-12), scale * float((hull.offsets / sizes).min())
            )
    low, high = ratios(q, shape.n)
    return _times(euclid, 1 / high, 1 / low)


def _times(size: Interval, low: float, high: float) -> Interval:
    """A size times a number in [low, high]."""
    return Interval(size.lower * (low if size.lower > 0 else high), size.upper * (high if size.upper > 0 else low))


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
