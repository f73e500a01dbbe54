"""Closed forms of the geometry of atom sets, which `Atoms.geometry()` returns.

A closed form states what is known exactly: sizes and widths, the atomic norm, the image under a linear map. Whatever it
leaves out, `pursuit.geometry` computes from the list of atoms or bounds by the oracle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pursuit.arrays import Small
from pursuit.linalg import EPS, norm

Map = float | Small
"""A linear map of flattened vectors: a number, a diagonal (n,) or a matrix (m, n)."""

MAX_DENSE_DIMENSION = 3000
"""Matrices of size dim H x dim H are formed up to this dimension of H."""

MAX_CORNER_DIMENSION = 10
"""The corners of a box are listed up to this dimension."""

MAX_SIGN_DIMENSION = 16
"""The facets of a cross-polytope are listed up to this dimension."""


def through(T: Map, columns: Small) -> Small:
    """T times each column."""
    if isinstance(T, np.ndarray):
        return np.asarray(T @ columns if T.ndim == 2 else T[:, None] * columns)
    return T * columns


def signs(n: int) -> Small:
    """All 2^n sign vectors, as rows; the first half has +1 in the last place."""
    return np.asarray(1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Closed:
    """Known sizes of a set of atoms in dimension n; None where there is no closed form.

    `mdw` is the minimal directional width, `inradius` that of the largest ball inside, `pyramidal` the pyramidal width
    of A, `pyramidal_with_origin` that of A and 0. Subclasses know the rest, too.

    >>> import math, numpy as np, pursuit as ps
    >>> class Corners(ps.Atoms):                     # the vertices of [-1, 1]^n
    ...     symmetric = True
    ...     def __init__(self, n):
    ...         self.n, self.shape = n, (n,)
    ...     def lmo(self, g):
    ...         return ps.Atom(np.where(g > 0, -1.0, 1.0))
    ...     def geometry(self):
    ...         return Closed(self.n, radius=math.sqrt(self.n), mdw=1.0, pyramidal=2 / math.sqrt(self.n))
    >>> ps.geometry.mdw(3 * Corners(5)), ps.geometry.pyramidal_width(Corners(4))
    (Interval(3, exact), Interval(1, exact))
    """

    n: int
    radius: float | None = None
    diameter: float | None = None
    mdw: float | None = None
    inradius: float | None = None
    pyramidal: float | None = None
    pyramidal_with_origin: float | None = None

    complete: ClassVar[bool] = False
    """Whether lin(A) and the polar are known, too."""

    def gauge(self, x: Small) -> float | None:
        """The atomic norm of x."""
        return None

    def image(self, T: Map) -> Closed | None:
        """The closed form of T A; None where it has none."""
        if np.ndim(T):
            return None
        sizes = (self.radius, self.diameter, self.mdw, self.inradius, self.pyramidal, self.pyramidal_with_origin)
        return Closed(self.n, *(None if size is None else abs(float(T)) * size for size in sizes))

    def points(self) -> tuple[Small, bool] | None:
        """The vertices, as rows, and whether their negatives are vertices, too; None where they are too many."""
        return None

    def spans(self, d: Small) -> bool:
        """Whether d lies in lin(A), to rounding."""
        return True

    def basis(self) -> Small | None:
        """An orthonormal basis of lin(A); None where it is too large."""
        return None if self.n > MAX_DENSE_DIMENSION else np.eye(self.n)

    def polar(self) -> Small | None:
        """The vertices v of the polar, so that ||x||_A = max_v <v, x>; None where there are too many."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Orthogonal(Closed):
    """w_i e_i with w_i != 0, and -w_i e_i if `signed`: a simplex or a cross-polytope. A number w stands for all w_i."""

    w: Small
    signed: bool
    complete: ClassVar[bool] = True

    @classmethod
    def of(cls, n: int, w: Map, signed: bool) -> Orthogonal:
        lengths = np.abs(np.asarray(w))
        longest, width, pyramidal = float(lengths.max()), _harmonic(lengths, n), _pyramidal(lengths, n, signed)
        if signed:
            return cls(n, longest, 2 * longest, width, width, *pyramidal, w=lengths, signed=True)
        second = longest if lengths.ndim == 0 else float(np.partition(lengths, -2)[-2]) if n > 1 else 0.0
        diameter = math.hypot(second, longest) if n > 1 else 0.0
        return cls(n, longest, diameter, -width, 0.0, *pyramidal, w=np.asarray(w), signed=False)

    def image(self, T: Map) -> Closed | None:
        return Orthogonal.of(self.n, T * self.w, self.signed) if np.ndim(T) < 2 else None

    def points(self) -> tuple[Small, bool]:
        return np.diag(np.broadcast_to(self.w, (self.n,))), self.signed

    def polar(self) -> Small | None:
        return signs(self.n) / self.w if self.signed and self.n <= MAX_SIGN_DIMENSION else None


def _harmonic(w: Small, n: int) -> float:
    """(sum w^-2)^(-1/2), the distance from 0 to the hull of w_i e_i; scaled, so that squares stay in range."""
    least = float(w.min())
    return least / math.sqrt(n if w.ndim == 0 else float(((least / w) ** 2).sum()))


def _pyramidal(w: Small, n: int, signed: bool) -> tuple[float | None, float | None]:
    """The pyramidal width of n orthogonal atoms of length w, with both signs or one, and that with 0 as an atom.

    The hull of k such atoms is w / sqrt(k) away from 0, and its point nearest to 0 is orthogonal to all other atoms. If
    0 is an atom, the nearest face is that of all atoms. Otherwise a simplex is cut in two faces, at worst in halves; of
    a cross-polytope, the nearest face leaves out one pair, or is a facet, opposite to another.
    """
    whole = _harmonic(w, n)
    if w.ndim:
        return None, whole
    length = float(w)
    if signed:
        return min(2 * whole, _harmonic(w, n - 1) if n > 1 else math.inf), whole
    return (length * math.sqrt(1 / (n - n // 2) + 1 / (n // 2)) if n > 1 else None), whole


@dataclass(frozen=True, eq=False, kw_only=True)
class Cuboid(Closed):
    """{x : lower <= x <= upper}."""

    lower: Small
    upper: Small
    complete: ClassVar[bool] = True

    @classmethod
    def of(cls, lower: Small, upper: Small) -> Cuboid:
        nonzero = (lower != 0) | (upper != 0)
        half = float((upper - lower)[nonzero].min()) / 2 if nonzero.any() else 0.0
        sizes = norm(np.maximum(np.abs(lower), np.abs(upper))), norm(upper - lower), _box_width(lower, upper), half
        return cls(len(lower), *sizes, lower=lower, upper=upper)

    @property
    def nonzero(self) -> np.ndarray:
        """A mask of the coordinates in which some point of the box is not zero: those that lin(A) has."""
        return np.asarray((self.lower != 0) | (self.upper != 0))

    def gauge(self, x: Small) -> float:
        """inf{c >= 0 : c lower <= x <= c upper}, coordinate by coordinate."""
        lower, upper = self.lower, self.upper
        if (x[upper == 0] > 0).any() or (x[lower == 0] < 0).any():
            return math.inf
        low, high = lower != 0, upper != 0
        ratios = np.append(x[low] / lower[low], x[high] / upper[high])
        bounds = np.append(-lower[low], upper[high])
        least, most = ratios[bounds > 0].max(initial=0.0), ratios[bounds < 0].min(initial=math.inf)
        return float(least) if least <= most * (1 + 8 * EPS) else math.inf

    def image(self, T: Map) -> Closed | None:
        if np.ndim(T) == 2:
            return None
        ends = T * self.lower, T * self.upper
        return Cuboid.of(np.minimum(*ends), np.maximum(*ends))

    def points(self) -> tuple[Small, bool] | None:
        if self.n > MAX_CORNER_DIMENSION:
            return None
        symmetric = bool((self.lower == -self.upper).all())
        corners = signs(self.n)[: 2 ** (self.n - 1) if symmetric else None]  # one of each pair
        return np.where(corners > 0, self.upper, self.lower), symmetric

    def spans(self, d: Small) -> bool:
        return not d[~self.nonzero].any()

    def basis(self) -> Small | None:
        identity = super().basis()
        return None if identity is None else identity[:, self.nonzero]

    def polar(self) -> Small | None:
        if not (self.mdw or 0.0) > 0 or not self.nonzero.all():
            return None
        return np.concatenate([np.diag(1 / self.upper), np.diag(1 / self.lower)])


def _box_width(lower: Small, upper: Small) -> float | None:
    """The distance from 0 to the nearest facet, or minus the distance to the box; None for the box {0}."""
    nonzero = (lower != 0) | (upper != 0)
    if not nonzero.any():
        return None
    lower, upper = lower[nonzero], upper[nonzero]
    if (lower < 0).all() and (upper > 0).all():
        return min(float(upper.min()), -float(lower.max()))
    return 0.0 - norm(np.clip(0.0, lower, upper))


@dataclass(frozen=True, eq=False, kw_only=True)
class LpBall(Closed):
    """c times the unit ball of the norm ||x||_p, c > 0."""

    p: float
    c: float
    complete: ClassVar[bool] = True

    @classmethod
    def of(cls, n: int, p: float, c: float = 1.0) -> LpBall:
        shift = 0.5 - 1.0 / p
        radius, width = c * float(n) ** max(0.0, shift), c * float(n) ** min(0.0, shift)
        return cls(n, radius, 2.0 * radius, width, width, p=p, c=c)

    def image(self, T: Map) -> Closed | None:
        if np.ndim(T) == 0:
            return LpBall.of(self.n, self.p, abs(float(T)) * self.c)
        alike = self._alike()
        return None if alike is None else alike.image(T)

    def points(self) -> tuple[Small, bool] | None:
        alike = self._alike()
        return None if alike is None else alike.points()

    def _alike(self) -> Closed | None:
        """The same set in a form that knows its images under other maps than numbers."""
        if self.p == 1:
            return Orthogonal.of(self.n, np.asarray(self.c), signed=True)
        if self.p == 2:
            return Ellipsoid.of(self.c * np.eye(self.n))
        return Cuboid.of(np.full(self.n, -self.c), np.full(self.n, self.c)) if math.isinf(self.p) else None


@dataclass(frozen=True, eq=False, kw_only=True)
class Ellipsoid(Closed):
    """{T x : ||x||_2 <= 1}; its axes are the singular values of T."""

    T: Small
    complete: ClassVar[bool] = True

    @classmethod
    def of(cls, T: Small) -> Ellipsoid:
        axes = np.linalg.svd(T, compute_uv=False)
        longest = float(axes[0])
        if longest == 0:
            return cls(len(T), 0.0, 0.0, T=T)
        width = float(axes[axes > max(T.shape) * EPS * longest][-1])
        return cls(len(T), longest, 2 * longest, width, width, T=T)

    def gauge(self, x: Small) -> float:
        return float(np.linalg.norm(np.linalg.lstsq(self.T, x)[0])) if self.spans(x) else math.inf

    def image(self, T: Map) -> Closed:
        return Ellipsoid.of(through(T, self.T))

    def spans(self, d: Small) -> bool:
        return contained(self.basis(), d)

    def basis(self) -> Small:
        return span(self.T.T)


def span(points: Small) -> Small:
    """An orthonormal basis of the span of the rows, as columns. Singular values of the size of rounding are 0."""
    _, s, Vt = np.linalg.svd(points, full_matrices=False)
    return np.asarray(Vt[: int((s > max(points.shape) * EPS * s[0]).sum())].T)


def contained(Q: Small, d: Small) -> bool:
    """Whether d lies in the span of the orthonormal columns of Q, to rounding."""
    return float(np.linalg.norm(d - Q @ (Q.T @ d))) <= 1e-9 * float(np.linalg.norm(d))
