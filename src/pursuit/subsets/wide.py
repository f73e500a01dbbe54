"""More columns than data, where H has no split: boxes that are proved first.

Let tau = max_j |b_j| / M_j for boxes M of our choice (a few times the weights of the incumbent). If tau <= 1, b lies in
the boxes, and the tree searches there. If tau >= 1 is attained at column j with sign s, the others have |b_i| <= tau
M_i, and for every u, with w = c - Hu,

    f(b) >= constant - u'Hu / 2 - tau [s M_j w_j + (sum of the k - 1 largest M_i |w_i|)],

so that where the bracket is not positive the bound holds for all tau >= 1 with tau = 1. One such `cone` for each column
and sign: nearly all are refuted by two rounds of coordinate descent, the others become roots of the tree. The rounds
begin at the price up to which no column enters that explains only what the incumbent leaves: at lower ones hundreds
fit noise, and each round takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pursuit.arrays import Indices, Small
from pursuit.subsets.fits import NOTHING
from pursuit.subsets.quadratic import LARGEST, Point, Quadratic
from pursuit.subsets.tree import Search
from pursuit.threads import allowed_threads

FACTOR = 2.75
"""The box of a column of the incumbent is so many times its weight there: a larger one is refuted by what it adds."""
OTHERS = 1.5
"""The boxes of the others are so many times the largest weight of the incumbent, of columns of norm 1."""
LOOSE = 10.0
"""Boxes are loose beyond so many times the largest weight."""
PIECE = 16
"""Columns whose cones are tried before the clock is looked at."""


def begin_quadratic(search: Search, P: Quadratic, enough: Callable[[Search], bool]) -> bool:
    """Add the roots of a problem: one, or, where its boxes are loose, the cones that are not refuted at once and the
    smaller boxes. Whether there was time for all."""
    places = np.flatnonzero(np.isin(P.units, search.chosen))
    weights = np.linalg.lstsq(P.H[np.ix_(places, places)], P.c[places], rcond=None)[0] if len(places) else np.ones(0)
    largest = float(np.abs(weights * P.root[places]).max(initial=0.0)) or 1.0
    P = P.within(search.upper)
    boxed = P
    if np.median(P.M * P.root) > LOOSE * largest and (P.d <= np.maximum(P.floor, NOTHING)).any():
        boxes = OTHERS * largest / P.root
        boxes[places] = np.maximum(boxes[places], FACTOR * np.abs(weights))
        boxed = replace(P, M=np.minimum(P.M, boxes), split_at=P.size)
        search.outside = cones = Cones.of(boxed, P, places, search.cut)
        for i in range(0, len(cones.columns), PIECE):
            if enough(search):
                return False
            columns = cones.columns[i : i + PIECE]
            bounds = cones.bounds(columns, search.cut)
            search.relaxations += len(bounds)
            search.floor = min(search.floor, float(bounds[bounds >= search.cut].min(initial=np.inf)))
            for e in np.flatnonzero(bounds < search.cut):
                j, sign = int(columns[e // 2]), -1.0 if e % 2 else 1.0
                state, b = np.zeros(P.size, dtype=np.int8), cones.start.b.copy()
                state[j], b[j] = LARGEST, sign * boxed.M[j]
                search.begin(cones.P, state, Point(b, cones.start.price), (int(P.units[j]), sign))
    search.begin(boxed, np.zeros(P.size, dtype=np.int8), Point(np.zeros(P.size)))
    return True


@dataclass(frozen=True, eq=False)
class Cones:
    """What all cones share: a point near the minimum in the boxes at a high price of a column, and w there."""

    P: Quadratic
    columns: np.ndarray[tuple[int], np.dtype[np.int32]]
    start: Point
    w: Small

    @classmethod
    def of(cls, boxed: Quadratic, P: Quadratic, places: Indices, cut: float) -> Cones:
        """The cones of the columns whose box was not known to hold; the incumbent has the columns `places`."""
        bare = replace(boxed, d=np.full(P.size, NOTHING), split_at=0)
        b = np.zeros(P.size)
        b[places] = np.linalg.lstsq(P.H[np.ix_(places, places)], P.c[places], rcond=None)[0]
        price = float(np.delete(np.abs(P.c - P.H @ b) * boxed.M, places).max(initial=0.0))
        start = bare.relax(np.zeros(P.size, dtype=np.int8), Point(np.zeros(P.size), price), cut, 1).point
        return cls(bare, np.flatnonzero(boxed.M < P.M).astype(np.int32), start, bare.c - bare.H @ start.b)

    def bounds(self, columns: np.ndarray[tuple[int], np.dtype[np.int32]], cut: float) -> Small:
        """The bounds of the cones of some columns, the positive sign first."""
        out = np.full(2 * len(columns), np.inf)
        few = max(self.P.k - 1, 0)
        self.P.kernel.cones(columns, few, self.start.b, self.w, self.start.price, cut, allowed_threads(), out)
        return out


def refuted(search: Search) -> float:
    """The least bound of all cones that are no roots, computed again."""
    cones = search.outside
    bounds = cones.bounds(cones.columns, search.cut)
    roots = {cone for cone in search.cones if cone is not None}
    for i, j in enumerate(cones.columns):
        for e, sign in enumerate((1.0, -1.0)):
            if (int(cones.P.units[j]), sign) in roots:
                bounds[2 * i + e] = np.inf
    return float(bounds.min(initial=np.inf))
