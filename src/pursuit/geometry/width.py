"""Size and width of an atom set: radius, diameter, directional width, mDW, inradius."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pursuit.arguments import as_int_or_nan, describe, number, real_array
from pursuit.arrays import Array, Small, host
from pursuit.atoms import Atoms, Dictionary
from pursuit.geometry import polytope
from pursuit.geometry.inputs import root, shape_in_metric, vector
from pursuit.geometry.interval import Interval
from pursuit.geometry.shapes import Finite, Shape, oracle, shape_of
from pursuit.linalg import norms
from pursuit.metrics import as_metric


def radius(A: Atoms, *, metric: object = None, norm: float = 2.0) -> Interval:
    r"""The radius :math:`\max_{z\in A}\|z\|`.

    Here and below, a `metric` M is a positive definite matrix, a positive diagonal or a positive number, for the norm
    :math:`\|x\|_M = \langle x, Mx\rangle^{1/2}`; with `norm` = p it is :math:`\|x\|_p`, exact for listed atoms.

    >>> import pursuit as ps
    >>> radius(3 * ps.SignedBasis(4)), radius(ps.Ball(2, 2), metric=[1.0, 9.0])
    (Interval(3, exact), Interval(3, exact))
    """
    return _in_norm(A, metric, norm, lambda shape: shape.radius(), _radius)


def diameter(A: Atoms, *, metric: object = None, norm: float = 2.0) -> Interval:
    r"""The diameter :math:`\max_{z,v\in A}\|z-v\|`.

    Exact for closed forms and for up to 20,000 listed atoms, of which all pairs are compared; an interval for more. The
    attribute `A.diameter` may be an upper bound only.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.Dictionary(np.array([[1.0, 1.0], [0.0, 0.5]]))
    >>> diameter(A), A.diameter > 2
    (Interval(0.5, exact), True)
    """
    return _in_norm(A, metric, norm, lambda shape: shape.diameter(), _diameter)


Size = Callable[[Shape], Interval]
SizeInNorm = Callable[[Shape, float], Interval]


def _in_norm(A: Atoms, metric: object, norm: object, size: Size, size_in_norm: SizeInNorm) -> Interval:
    """A size in the norm of a metric, or in a p-norm."""
    p = exponent(norm, metric)
    if p == 2:
        return size(shape_in_metric(A, metric))
    return size_in_norm(shape_of(A), p)


def directional_width(A: Atoms, d: Array, *, metric: object = None) -> Interval:
    r"""The directional width :math:`W_A(d) = \max_{z\in A}\langle d, z\rangle / \|d\|` of a direction d in lin(A).

    In a metric M, d is a linear functional, as a gradient is, and is measured in the dual norm :math:`\|d\|_* =
    \langle d, M^{-1}d\rangle^{1/2}`; that is what the paper's proofs use (its definition divides by the norm itself,
    which is the same for the Euclidean one only). The vector that d stands for, :math:`M^{-1}d`, is then what has to
    lie in lin(A). For sets that have only an oracle, lin(A) is unknown and this is not checked.

    >>> import numpy as np, pursuit as ps
    >>> directional_width(ps.SignedBasis(2), [1.0, 1.0]), directional_width(ps.Simplex(2), [-1.0, -1.0])
    (Interval(0.7071067812, exact), Interval(-0.7071067812, exact))
    """
    shape = shape_of(A)
    flat = vector(A, d, "d")
    scale = float(np.abs(flat).max(initial=0.0))
    if scale == 0:
        raise ValueError("d is zero; a width needs a direction, so give a vector that is not zero.")
    unit, dual = flat / scale, flat / scale
    if metric is not None:
        T = root(as_metric(metric), shape.n)
        shape = shape.image(T)
        dual = np.asarray(np.linalg.solve(T.T, unit) if isinstance(T, np.ndarray) and T.ndim == 2 else unit / T)
    if not shape.spans(dual):
        raise ValueError("d lies outside lin(A); the width is intrinsic, so project d on the span of the atoms first.")
    return Interval.of(float(unit @ oracle(A)(-unit)) / float(np.linalg.norm(dual)))


def mdw(A: Atoms, *, metric: object = None, norm: float = 2.0) -> Interval:
    r"""The minimal intrinsic directional width :math:`\mathrm{mDW}(A) = \min_{0\ne d\in\mathrm{lin}(A)} W_A(d)`.

    It is the distance from 0 to the relative boundary of conv(A) if 0 lies inside (positive), zero if 0 lies on that
    boundary, and minus the distance from 0 to conv(A) if 0 lies outside. ``mdw(c * A)`` is ``c * mdw(A)``.

    Bases, simplices, boxes and balls have closed forms. Listed atoms are treated exactly within this budget: n
    independent pairs :math:`\pm b_i` by all signs up to n = 26, other sets by their facets where McMullen's theorem
    allows at most a million of them (pairs: 700 in dimension 4, 92 in dimension 6, 37 in dimension 8, 23 in dimension
    10), and sets that do not contain 0 in their hull always. Beyond it, the lower bound is an E-optimal design (never
    worse than :math:`\sigma_{\min}/\sqrt n`, which is never worse than the coherence bound), the upper bound the best
    of several successive linear programs. Sets with only an oracle are bounded by cutting planes. Singular values of
    the atoms at the level of rounding count as zero. With `norm` = p, W divides by the dual norm of d (erratum 8):
    the size of the largest ball of :math:`\|x\|_p` around 0 in conv(A).

    >>> import numpy as np, pursuit as ps
    >>> mdw(ps.SignedBasis(4), norm=1), mdw(ps.SignedBasis(4), norm=float("inf"))
    (Interval(1, exact), Interval(0.25, exact))
    >>> mdw(ps.SignedBasis(4)), mdw(ps.Simplex(4))
    (Interval(0.5, exact), Interval(-0.5, exact))
    >>> theta = np.pi / 3
    >>> D = np.array([[1.0, np.cos(theta)], [0.0, np.sin(theta)]])
    >>> mdw(ps.Dictionary(D, signed=True))                     # sin(theta / 2)
    Interval(0.5, exact)
    """
    return _in_norm(A, metric, norm, lambda shape: shape.mdw(), _mdw)


def inradius(A: Atoms, *, metric: object = None) -> Interval:
    r"""The effective inradius: the largest ball of dimension dim lin(A) inside conv(A), wherever its centre is.

    It equals `mdw` for symmetric sets. In general it is larger: only `mdw`, whose ball is centred at 0, bounds the
    atomic norm, :math:`\|x\|_A\le\|x\|/\mathrm{mDW}` (the paper's Corollary on least squares needs that one).

    >>> import pursuit as ps
    >>> interval = ps.Box([-1.0], [3.0])
    >>> inradius(interval), mdw(interval)
    (Interval(2, exact), Interval(1, exact))
    """
    return shape_in_metric(A, metric).inradius()


def coherence(D: object, m: int) -> Interval:
    r"""The cumulative coherence
    :math:`\mu(B, m) = \max_i \max_{|I|=m,\,i\notin I}\sum_{j\in I}|\langle b_i, b_j\rangle|`.

    m = 1 is the usual mutual coherence. With m = n - 1 it bounds the width of the atoms with both signs:
    :math:`\mu(B, n-1)\ge 1 - n\,\mathrm{mDW}^2` (Theorem 10).

    >>> import numpy as np
    >>> coherence(np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 1.0]]), 2)
    Interval(1.4, exact)
    """
    columns = _columns(D)
    n = columns.shape[1]
    if not 0 <= as_int_or_nan(m) < n:
        raise ValueError(f"m is {describe(m)}; give a number of atoms from 0 to {n - 1}.")
    lengths = np.linalg.norm(columns, axis=0)
    worst = int(np.abs(lengths - 1).argmax())
    if abs(lengths[worst] - 1) > 1e-6:
        raise ValueError(
            f"column {worst} of D has norm {lengths[worst]:.6g}; coherence is for unit atoms, so divide by it."
        )
    products = np.abs(columns.T @ columns)
    np.fill_diagonal(products, 0.0)
    return Interval.of(float(np.sort(products, axis=1)[:, n - m :].sum(axis=1).max()) if m else 0.0)


def _columns(D: object) -> Small:
    if isinstance(D, Atoms) and not isinstance(D, Dictionary):
        raise ValueError(f"D is {type(D).__name__}; give a matrix or a Dictionary, whose columns are the atoms.")
    if isinstance(D, Dictionary):
        return np.stack([host(D.column(j, 1.0).vector).ravel() for j in range(D.n)], axis=1)
    matrix = host(real_array(D, "D"))
    if matrix.ndim < 2 or matrix.size == 0:
        raise ValueError(f"D has shape {matrix.shape}; give a matrix whose columns are the atoms.")
    return matrix.reshape(math.prod(matrix.shape[:-1]), -1)


# ---------------------------------------------------------------------- in p-norms


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


def _radius(shape: Shape, p: float) -> Interval:
    """max ||z||_p."""
    if shape.atoms is not None:
        return Interval.of(np.linalg.norm(shape.atoms, p, axis=1).max())
    return _times(shape.radius(), *ratios(p, shape.n))


def _diameter(shape: Shape, p: float) -> Interval:
    """max ||z - v||_p."""
    points = shape.atoms
    if points is None or len(points) > Finite.MAX_PAIRED_ATOMS // 10:
        return _times(shape.diameter(), *ratios(p, shape.n))
    return Interval.of(max(np.linalg.norm(points - z, p, axis=1).max() for z in points))


def _mdw(shape: Shape, p: float) -> Interval:
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
