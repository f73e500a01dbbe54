"""The pyramidal width of a finite set: how far each face of its hull is from the atoms outside that face."""

from __future__ import annotations

import numpy as np

from pursuit.arguments import as_bool
from pursuit.arrays import Small
from pursuit.atoms import Atoms
from pursuit.atoms.closed import span
from pursuit.geometry import polytope
from pursuit.geometry.inputs import shape_in_metric
from pursuit.geometry.interval import Interval
from pursuit.geometry.shapes import Finite, Known
from pursuit.linalg import EPS, norms
from pursuit.weights import Mask, WeightProblem

MAX_FACES = 4000
"""Faces are enumerated where there are at most this many."""

ON_FACET = 1e-10
"""An atom this near to the plane of a facet, relative to the size of the set, lies on the facet."""


def pyramidal_width(A: Atoms, *, origin: bool = False, metric: object = None) -> Interval:
    r"""The pyramidal width of Lacoste-Julien and Jaggi (2015), which equals the facial distance of Peña and Rodríguez
    (2016): :math:`\min_F \mathrm{dist}(F, \mathrm{conv}(A\setminus F))` over the faces F of conv(A), except conv(A).

    It is the largest W with :math:`\langle-g, z-v\rangle\ge W\langle-g,u-x\rangle/\|u-x\|` for all g, all points x and
    u of conv(A) and all sets S of atoms that x is a combination of with positive weights, where z is the best atom of
    A and v the worst of S. Away and pairwise steps have linear rates because of it.

    Exact for sets whose hulls have at most 4000 faces, where atoms within a relative 1e-10 of a facet lie on it.
    Otherwise, and for sets that cannot list their atoms, the lower end is 0.

    With `origin`, 0 counts as one more atom, as it does for pursuits over cone(A). The `metric` is that of `radius`.

    >>> import pursuit as ps
    >>> pyramidal_width(ps.Simplex(4)), pyramidal_width(ps.SignedBasis(1)), pyramidal_width(ps.Ball(2, 2))
    (Interval(1, exact), Interval(2, exact), Interval(0, 2))
    """
    shape, origin = shape_in_metric(A, metric), as_bool(origin, "origin")
    closed = shape.pyramidal_width(origin)
    if closed is not None:
        return Interval.of(closed)
    atoms = None if A.convex and isinstance(shape, Known) else shape.atoms  # a box has more atoms than its corners
    if atoms is None:
        return Interval(0.0, shape.diameter().upper)
    points = np.concatenate([atoms, np.zeros((1, atoms.shape[1]))]) if origin else atoms
    points = np.unique(points + 0.0, axis=0)
    centred = points - points.mean(axis=0)
    scale = float(norms(centred.T).max())
    if scale == 0:
        raise ValueError("A is a single point; a pyramidal width needs two atoms that differ.")
    lower, upper = _facial_distance(centred / scale @ span(centred / scale))
    if lower == 0:
        upper = min(upper, Finite(centred / scale, False).diameter().upper)
    return Interval(scale * lower, scale * upper)


def _facial_distance(points: Small) -> tuple[float, float]:
    """Bounds on the least distance of a face from the other points, which have norms of at most 1."""
    planes = _facets(points)
    faces = None if planes is None else _faces(planes[1])
    if planes is None or faces is None:
        return 0.0, 2.0
    normals, on = planes
    lower = upper = 2.0
    for bits in faces:
        face = np.array([bits >> i & 1 for i in range(len(points))], dtype=bool)
        inside, outside = points[face], points[~face]
        if _separation(inside, outside, normals[on[:, face].all(axis=1)].sum(axis=0)) >= upper:
            continue  # another face is nearer
        gap = _shortest(inside, outside)
        upper = min(upper, float(np.linalg.norm(gap)))
        lower = min(lower, max(_separation(inside, outside, gap) - 32 * EPS * points.shape[1], 0.0))
    return min(lower, upper), upper


def _shortest(inside: Small, outside: Small) -> Small:
    """The shortest difference of a point of one hull and a point of another."""
    rows, block = np.concatenate([inside, -outside]), np.repeat([0, 1], [len(inside), len(outside)])
    problem = WeightProblem.of(rows @ rows.T, True, block, [1.0, 1.0])
    start = np.zeros(len(rows))
    start[[0, len(inside)]] = 1.0
    return np.asarray(problem.solve(np.zeros(len(rows)), start) @ rows)


def _separation(inside: Small, outside: Small, u: Small) -> float:
    """How far the direction u proves two sets of points to be apart."""
    length = float(np.linalg.norm(u))
    return float((inside @ u).min() - (outside @ u).max()) / length if length > 0 else 0.0


def _facets(points: Small) -> tuple[Small, Mask] | None:
    """The normals of the facets and, row by row, which points lie on each; None where they cannot be found."""
    n, r = points.shape
    if r == 1:
        ends = np.array([[points.max()], [points.min()]])
        return np.array([[1.0], [-1.0]]), points[:, 0] == ends
    hull = polytope.facets(points) if polytope.most_facets(n, r) <= MAX_FACES else None
    if hull is None or not hull.certified:
        return None
    rows, first = np.unique(points @ hull.normals.T >= hull.offsets - ON_FACET, axis=1, return_index=True)
    return hull.normals[first], rows.T


def _faces(on: Mask) -> list[int] | None:
    """All proper faces, the intersections of facets, as the bits of their points; None where there are too many."""
    facets = [_bits(row) for row in on]
    faces, level = set(facets), set(facets)
    while level and len(faces) <= MAX_FACES:
        level = {face & facet for face in level for facet in facets} - faces - {0}
        faces |= level
    return sorted(faces) if len(faces) <= MAX_FACES else None


def _bits(row: Mask) -> int:
    return sum(1 << int(i) for i in np.flatnonzero(row))
