"""Shapes: an atom set reduced to what its geometry depends on, and `shape_of`, which finds the shape of a set.

A shape is a list of atoms (`Finite`), an oracle with bounds (`OracleOnly`), or a closed form that the set states itself
(`Known`). `shape.image(T)` is the shape of T A for a linear map T. Metrics need nothing else: with T'T = M, every
quantity of A in the norm ||x||_M is the Euclidean one of T A.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms import Atoms
from pursuit.atoms.base import as_atom
from pursuit.atoms.closed import MAX_DENSE_DIMENSION, Closed, Map, contained, span, through
from pursuit.atoms.combinations import Image, unscaled
from pursuit.geometry import polytope
from pursuit.geometry.interval import Interval
from pursuit.linalg import EPS, norms

MAX_LISTED_NUMBERS = 30_000_000
"""Atoms are listed if they have at most this many entries together."""

Oracle = Callable[[Small], Small]
"""The lmo of a set on flattened host vectors."""


class Shape:
    """What every shape can be asked."""

    @property
    def n(self) -> int | None:
        """The dimension of H; None where it is unknown."""
        raise NotImplementedError

    @property
    def atoms(self) -> Small | None:
        """All atoms, as rows; None where they are not listed."""
        return None

    def radius(self) -> Interval:
        raise NotImplementedError

    def diameter(self) -> Interval:
        raise NotImplementedError

    def mdw(self) -> Interval:
        raise NotImplementedError

    def inradius(self) -> Interval:
        raise NotImplementedError

    def image(self, T: Map) -> Shape:
        raise NotImplementedError

    def pyramidal_width(self, origin: bool) -> float | None:
        """The pyramidal width of A, or of A and 0, where it has a closed form."""
        return None

    def gauge(self, x: Small) -> float | None:
        """The atomic norm of x, where it has a closed form."""
        return None

    def spans(self, d: Small) -> bool:
        """Whether d lies in lin(A), to rounding; True where that is not known."""
        return True

    def basis(self) -> Small | None:
        """An orthonormal basis of lin(A); None where it is unknown or too large."""
        return None if self.n is None or self.n > MAX_DENSE_DIMENSION else np.eye(self.n)

    def polar(self) -> Small | None:
        """The vertices v of the polar, so that ||x||_A = max_v <v, x>; None where there are too many."""
        return None


@dataclass(frozen=True, eq=False)
class Known(Shape):
    """A set with a closed form; whatever that leaves out comes from the shape that `other` makes."""

    closed: Closed
    other: Callable[[], Shape]

    @property
    def n(self) -> int:
        return self.closed.n

    @cached_property
    def computed(self) -> Shape:
        """The same set without its closed form."""
        points = self.closed.points()
        return self.other() if points is None else Finite(*points)

    @property
    def atoms(self) -> Small | None:
        return self.computed.atoms

    def radius(self) -> Interval:
        return _exact(self.closed.radius) or self.computed.radius()

    def diameter(self) -> Interval:
        return _exact(self.closed.diameter) or self.computed.diameter()

    def mdw(self) -> Interval:
        return _exact(self.closed.mdw) or self.computed.mdw()

    def inradius(self) -> Interval:
        return _exact(self.closed.inradius) or self.computed.inradius()

    def image(self, T: Map) -> Shape:
        closed = self.closed.image(T)
        return self.computed.image(T) if closed is None else Known(closed, lambda: self.computed.image(T))

    def pyramidal_width(self, origin: bool) -> float | None:
        return self.closed.pyramidal_with_origin if origin else self.closed.pyramidal

    def gauge(self, x: Small) -> float | None:
        return self.closed.gauge(x)

    def spans(self, d: Small) -> bool:
        return self.closed.spans(d) if self.closed.complete else self.computed.spans(d)

    def basis(self) -> Small | None:
        return self.closed.basis() if self.closed.complete else self.computed.basis()

    def polar(self) -> Small | None:
        return self.closed.polar() if self.closed.complete else self.computed.polar()


def _exact(value: float | None) -> Interval | None:
    return None if value is None else Interval.of(value)


@dataclass(frozen=True, eq=False)
class Finite(Shape):
    """Listed atoms, the rows of `points`, and their negatives if `signed`."""

    points: Small
    signed: bool

    MAX_PAIRED_ATOMS = 20_000  # all pairs are compared up to this many atoms; beyond, the diameter is bounded

    @property
    def n(self) -> int:
        return int(self.points.shape[1])

    @cached_property
    def atoms(self) -> Small:
        """All atoms, both signs."""
        return polytope.both(self.points) if self.signed else self.points

    @cached_property
    def width(self) -> polytope.Width:
        return polytope.mdw(self.points, self.signed)

    def radius(self) -> Interval:
        return Interval.of(norms(self.points.T).max())

    def diameter(self) -> Interval:
        if self.signed:
            return self.radius().scaled(2.0)
        if len(self.points) > self.MAX_PAIRED_ATOMS:
            far = self.points[norms((self.points - self.points[0]).T).argmax()]
            return Interval(float(norms((self.points - far).T).max()), 2 * self.radius().upper)
        return Interval.of(self._farthest())

    def _farthest(self) -> float:
        """max ||p - q||: the Gram matrix of the centred points finds the pairs, whose distances are then computed from
        the points themselves, which is more accurate."""
        centred = self.points - self.points.mean(axis=0)
        squares = np.einsum("ij,ij->i", centred, centred)
        best = 0.0
        for start in range(0, len(centred), 1024):
            block = slice(start, start + 1024)
            partner = (squares - 2 * centred[block] @ centred.T).argmax(axis=1)
            best = max(best, float(norms((self.points[block] - self.points[partner]).T).max()))
        return best

    def mdw(self) -> Interval:
        return Interval(self.width.lower, self.width.upper)

    def inradius(self) -> Interval:
        return self.mdw() if self.signed else Interval(*polytope.inradius(self.points))

    def image(self, T: Map) -> Shape:
        rows = through(T, self.points.T).T
        return Finite(rows, True) if self.signed else finite(rows)

    def spans(self, d: Small) -> bool:
        return contained(self.basis(), d)

    def basis(self) -> Small:
        scale = float(norms(self.points.T).max())
        return span(self.points / scale) if scale > 0 else np.zeros((self.n, 0))

    def polar(self) -> Small | None:
        Q, scale = self.basis(), self.radius().upper
        points = self.atoms / scale @ Q
        if Q.shape[1] == 1:
            ends = np.array([points.max(), points.min()])
            return np.outer(1 / (scale * ends), Q[:, 0]) if ends[1] < 0 < ends[0] else None
        hull = polytope.facets(points)
        return None if hull is None or not hull.certified else hull.normals / (scale * hull.inner[:, None]) @ Q.T


def finite(rows: Small) -> Finite:
    """The shape of listed atoms; symmetry is looked for in the list itself."""
    rows = rows + 0.0  # -0.0 is 0.0
    moving = rows[rows.any(axis=1)]
    if len(moving):
        lead = np.take_along_axis(moving, (moving != 0).argmax(axis=1)[:, None], axis=1)
        half = np.unique(np.sign(lead) * moving + 0.0, axis=0)
        if 2 * len(half) == len(np.unique(moving, axis=0)):
            return Finite(half, True)
    return Finite(rows, False)


@dataclass(frozen=True, eq=False)
class OracleOnly(Shape):
    """A set that is known by its oracle `lmo`, on flattened vectors, and by bounds that it states itself."""

    lmo: Oracle
    dimension: int | None
    radius_bound: float  # >= radius
    diameter_bound: float  # >= diameter
    width_bound: float  # <= mDW
    symmetric: bool

    MAX_ROUNDS = 16

    @property
    def n(self) -> int | None:
        return self.dimension

    def radius(self) -> Interval:
        longest = float(norms(np.array(self.sampled_atoms).T).max()) if self.sampled_atoms else 0.0
        return Interval(min(longest, self.radius_bound), self.radius_bound)

    def diameter(self) -> Interval:
        most = min(self.diameter_bound, 2 * self.radius_bound)
        widest = Finite(np.array(self.sampled_atoms), self.symmetric).diameter().lower if self.sampled_atoms else 0.0
        return Interval(min(widest, most), most)

    @cached_property
    def sampled_atoms(self) -> list[Small]:
        """Atoms for the axes and for random directions, each improved by z <- LMO(-z), which increases ||z||."""
        if self.n is None:
            return []
        rng, atoms = np.random.default_rng(0), []
        axes = list(np.eye(self.n)) if self.n <= 50 else []
        for g in [*axes, *(-a for a in axes), *rng.standard_normal((16, self.n))]:
            z = self.lmo(g)
            atoms.append(z)
            for _ in range(self.MAX_ROUNDS):
                better = self.lmo(-z)
                if np.linalg.norm(better) <= (1 + 1e-12) * np.linalg.norm(z):
                    break
                z = better
            atoms.append(z)
        return atoms

    def basis(self) -> Small | None:
        if self.n is None or not np.any(self.sampled_atoms):
            return None
        rank = finite(np.array(self.sampled_atoms)).basis().shape[1]
        return super().basis() if rank == self.n else None

    def _width_at(self, d: Small) -> tuple[float, Small]:
        """The width at a unit vector d of lin(A), rounded up, and the atom that has it."""
        z = self.lmo(-d)
        return float(z @ d) + EPS * len(z) * float(np.linalg.norm(z)), z

    def mdw(self) -> Interval:
        """Cutting planes: the width of the atoms found so far is a lower bound if they span H, W(d) at its minimising d
        is an upper bound, and the atom that the oracle names for d joins them. The axes and the diagonal come first:
        many sets are narrowest there."""
        if self.radius_bound == 0:
            raise ValueError(polytope.ZERO_ONLY)
        atoms, lower, upper, whole = list(self.sampled_atoms), self.width_bound, self.radius_bound, self.basis()
        if whole is not None:
            upper = min(upper, *(self._width_at(d)[0] for d in [*whole[:50], np.full(len(whole), len(whole) ** -0.5)]))
        for k in range(self.MAX_ROUNDS):
            costly = (self.n or 0) > 4 and k > 1 and lower >= 0  # where 0 is outside, only a nearest point is needed
            if costly or not np.any(atoms) or upper - lower <= 1e-9 * abs(upper):
                break
            inner = finite(np.array(atoms)).width
            wide, z = self._width_at(inner.direction)
            upper = min(upper, wide)
            lower = max(lower, min(inner.lower, 0.0) if whole is None else inner.lower)
            atoms += [z, -z] if self.symmetric else [z]
        return Interval(min(lower, upper), upper)

    def inradius(self) -> Interval:
        width = self.mdw()
        if self.symmetric:
            return width
        return Interval(max(width.lower, 0.0), min(self.radius_bound, self.diameter_bound / 2))

    def image(self, T: Map) -> Shape:
        if not isinstance(T, np.ndarray):
            bounds = abs(T) * self.radius_bound, abs(T) * self.diameter_bound, abs(T) * self.width_bound
            return OracleOnly(lambda g: T * self.lmo(T * g), self.n, *bounds, self.symmetric)
        matrix = T if T.ndim == 2 else np.diag(T)
        s = np.linalg.svd(matrix, compute_uv=False)
        high, low = float(s[0]), float(s[-1]) if len(matrix) >= matrix.shape[1] else 0.0
        width = (low if self.width_bound > 0 else high) * self.width_bound
        bounds = high * self.radius_bound, high * self.diameter_bound, width
        return OracleOnly(lambda g: matrix @ self.lmo(matrix.T @ g), len(matrix), *bounds, self.symmetric)


def oracle(A: Atoms) -> Oracle:
    """The set's lmo on flattened host vectors."""

    def lmo(g: Small) -> Small:
        lifted = lift(A, g)
        return host(as_atom(A.lmo(lifted)).dense(Space.of(lifted))).ravel()

    return lmo


def lift(A: Atoms, flat: Small) -> Array:
    """A flattened host vector as a vector of H."""
    space = A.space or Space.default(flat.shape if A.shape is None else A.shape)
    return space.put(flat.reshape(space.shape))


def shape_of(A: object) -> Shape:
    """The shape of an atom set: the closed form that it states, its list of atoms, or its oracle."""
    if not isinstance(A, Atoms):
        raise TypeError(f"A is {type(A).__name__}; give a set of atoms, such as Dictionary(matrix).")
    closed = A.geometry()
    if closed is not None:
        return Known(closed, lambda: _computed(A))
    if isinstance(A, Image):
        return _image(A)
    return _computed(A)


def _image(A: Image) -> Shape:
    """The shape of c M A by that of A, where the image of an atom a is the vector c M a."""
    if A.c != 1.0:
        return shape_of(unscaled(A)[0]).image(A.c)
    if A.signed or (A.map is not None and not A.map.plain):
        return _computed(A)
    if A.map is None:
        return shape_of(A.base)
    M = A.map.M
    return shape_of(A.base).image(host(M @ np.eye(M.shape[1]) if A.space is None else M))


def _computed(A: Atoms) -> Shape:
    """The shape of a set without its closed form: its list of atoms, or its oracle with the bounds that it states."""
    if A.size == 0:
        raise ValueError("A lists no atoms; a set of atoms must not be empty.")
    n = None if A.shape is None else math.prod(A.shape)
    if A.size is not None and n is not None and A.size * n <= MAX_LISTED_NUMBERS:
        rows = np.stack([host(A.atom(i).vector).ravel() for i in range(A.size)])
        if not np.isfinite(rows).all():
            raise ValueError("A has an atom with NaN or infinity; remove it first.")
        return finite(rows)
    radius = math.inf if A.radius is None else float(A.radius)
    diameter = 2 * radius if A.diameter is None else float(A.diameter)
    width = (0.0 if A.symmetric else -radius) if A.width is None else float(A.width)
    return OracleOnly(oracle(A), n, radius, diameter, width, bool(A.symmetric))
