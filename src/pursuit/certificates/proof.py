"""The proof of a lower bound on f*, once at the end of a run, with all rounding outwards.

For every u in the domain of f*, min f >= -f*(u) + the sum of the minima of <u, .> over the summands of the domain. The
run gives a u that nearly is feasible for spans and cones. `enclose` finds a real vector near it that is so exactly, and
says how far its entries are from floats. Then

- f* is convex and, but for ties, a sum over entries: its largest value over an interval is that at an end of it;
- <u, a> over listed atoms (`Dictionary`, basis vectors, other sets of few atoms): floating-point products, whose error
  is below d EPS ||a|| ||u||, and error-free ones for the atoms that may have the least;
- <u, a> over other sets is their own oracle's word, which is trusted to a few units of roundoff (`product_error`);
- for cones no such bound may be negative: u moves on into the dual cone until that is so;
- u shrinks where a penalty wants it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.vectors import SignedBasis, Simplex
from pursuit.certificates.cones import MAX_ATOMS, columns_of
from pursuit.certificates.dual import DualBound, share_and_minima
from pursuit.certificates.enclosure import Enclosure, enclose
from pursuit.linalg.rounding import below, column_products, product_error
from pursuit.linalg.vectors import EPS

ENTRIES = 1 << 20
"""Entries of matrices that are converted to float64 at a time, and of sets that are listed for a proof."""

CONTENDERS = 32
"""Atoms whose products are computed without an error, those that may be the least first."""

PUSHES = (0.0, 1.0, 2.0**8, 2.0**16)
"""How far a dual point is moved into the cone, in units of the rounding errors of its products."""


class Proof:
    """Proofs for the dual points of one run. `longest` has the norm of the longest atom of each summand, and `reach`
    bounds that of x, for conjugates of the user."""

    def __init__(self, dual: DualBound, longest: Sequence[float], reach: float) -> None:
        self.dual, self.f, self.space, self.parts = dual, dual.f, dual.space, dual.parts
        self.longest, self.reach = longest, reach
        self.trust = product_error(dual.space)
        self.trusting = self.f.singular
        """Whether the values and gradients of f are trusted, since there is no better bound."""
        self.linear = any(part.linear for part in self.parts)

    @np.errstate(all="ignore")
    def lower(self, u: Array, lows: Sequence[float], norm: float, wanted: float) -> float:
        """A proved lower bound on f*, given lower bounds on <u, a> over the atoms of each summand that the run found,
        from products with a gradient of this norm; where these are not enough for `wanted`, the listed ones are
        computed anew."""
        cones = self.dual.cones if self.dual.possible and self.dual.free_cones else None
        for push in PUSHES[:1] if cones is None else PUSHES:
            moved: Array = u
            if cones is not None and push:
                if cones.interior is None:
                    break
                moved = u + (push * cones.error(u)) * cones.interior
            point = self._enclose(host(moved))
            if point is None:
                return -math.inf
            if all(self._inside(b, point) for b in self.dual.free_cones):
                return self._bound(point, self._known(point, u, lows, norm), wanted)
        return -math.inf

    def _enclose(self, u: Small) -> Enclosure | None:
        spans = self.dual.spans
        if self.linear and spans is None and u.any():
            return None
        return enclose(self.f, np.zeros((u.size, 0)) if spans is None or not u.any() else spans.columns, u)

    def _inside(self, b: int, point: Enclosure) -> bool:
        """Whether no atom of this cone has a negative product with the point."""
        if not (point.mid.any() or point.radius.any()) or not self.dual.possible:
            return not point.mid.any()
        low = least(self.space, self.parts[b].asked, point)
        if low is None:
            norm = float(np.linalg.norm(point.mid)) * self.trust + float(np.linalg.norm(point.radius))
            asked = self.dual.ask_part(b, self.space.put(point.mid), 0.0)
            low = asked - norm * (self.parts[b].A.radius or math.inf)
        return low >= 0.0

    def _known(self, point: Enclosure, u: Array, lows: Sequence[float], norm: float) -> list[float]:
        """The bounds at u, lowered by the distance to the point and by the rounding errors of their products."""
        moved = float(np.linalg.norm(np.abs(point.mid - host(u).reshape(self.space.shape)) + point.radius))
        error = self.trust * (norm + float(np.linalg.norm(point.mid))) + moved * (1.0 + 1e-9)
        known = [low - error * longest for low, longest in zip(lows, self.longest, strict=True)]
        return [low if self._counts(b) else 0.0 for b, low in enumerate(known)]

    def _counts(self, b: int) -> bool:
        """Whether a bound on <u, a> is needed for this summand: over spans it is 0, over cones not negative."""
        return not (self.parts[b].linear or self.parts[b].free_cone)

    def _bound(self, point: Enclosure, lows: list[float], wanted: float) -> float:
        bounds = [self._at(point, lows)]
        for b, part in enumerate(self.parts):
            if bounds[-1] < wanted and self._counts(b):
                exact = least(self.space, part.asked, point)
                lows[b] = lows[b] if exact is None else exact
                bounds.append(self._at(point, lows))
        return max(bounds)

    def _at(self, point: Enclosure, lows: Sequence[float]) -> float:
        """The bound of a feasible point, from lower bounds on its products."""
        share, minima = share_and_minima(self.parts, lows)
        mid, radius = point
        if share < 1.0:
            share *= 1.0 - 8.0 * EPS
            mid, radius = share * mid, share * radius * (1.0 + 4.0 * EPS) + EPS * np.abs(share * mid)
        conjugate = self.f.conjugate_above(mid, radius)
        if conjugate is None:
            self.trusting, conjugate = True, self._trusted_conjugate(mid, radius)
        size = sum(map(abs, minima)) + abs(conjugate)
        if size == 0.0:
            return 0.0
        return below(share * math.fsum(minima) - conjugate, 8.0 * EPS * size) if size < math.inf else -math.inf

    def _trusted_conjugate(self, mid: Small, radius: Small) -> float:
        """The conjugate of a function that has no bound on its own rounding errors."""
        conjugate, norm = self.f.conjugate(self.space.put(mid)), float(np.linalg.norm(mid))
        if conjugate is None:
            return math.inf
        moved = float(np.linalg.norm(radius))
        return conjugate + 2.0 * (self.trust * (abs(conjugate) + norm * self.reach) + moved * self.reach)


def least(space: Space, A: Atoms, point: Enclosure) -> float | None:
    """A lower bound on <u, a> over the atoms of a set that can be listed; None of another."""
    mid, radius = point.mid.ravel(), point.radius.ravel()
    base, c = unscaled(A)
    if isinstance(base, SignedBasis):
        return below(-abs(c) * float(np.max(np.abs(mid) + radius)), 4.0 * EPS * abs(c) * float(np.max(np.abs(mid))))
    if isinstance(base, Simplex):
        low = float(np.min(c * mid - abs(c) * radius))
        return below(low, 4.0 * EPS * abs(c) * float(np.max(np.abs(mid))))
    if type(base) is Dictionary and (isinstance(base.matrix, np.ndarray) or sp.issparse(base.D)):
        D = base.matrix if base.matrix is not None else base.D
        low = abs(c) * _least_column(D, 0.0 if base.symmetric else c, mid, radius, base.radius or math.inf)
        return below(low, EPS * abs(low))
    if base.size is not None and base.size <= MAX_ATOMS and base.size * space.size <= ENTRIES:
        D = host(columns_of(space, [base]))
        low = abs(c) * _least_column(D, c, mid, radius, float(np.linalg.norm(D, axis=0).max()) * (1.0 + 1e-9))
        return below(low, EPS * abs(low))
    return None


def _least_column(D: Any, sign: float, mid: Small, radius: Small, longest: float) -> float:
    """A lower bound on <u, b> over the columns b of D, on <u, -b> for a negative sign, on both for a sign of 0."""

    def smaller(products: Small) -> Small:
        return -np.abs(products) if sign == 0.0 else math.copysign(1.0, sign) * products

    d, n = D.shape
    step = max(1, ENTRIES // d) if getattr(D, "dtype", None) != np.float64 else n
    products = smaller(np.concatenate([_columns(D, slice(j, j + step)).T @ mid for j in range(0, n, step)]))
    norm = float(np.linalg.norm(mid)) * (1.0 + 1e-9)
    error = 1.01 * longest * (d * EPS * norm + float(np.linalg.norm(radius)) * (1.0 + 1e-9)) + d * 1e-320
    if d > ENTRIES:
        return below(float(products.min()), error)
    order = np.argsort(products)[: CONTENDERS + 1] if n <= CONTENDERS else np.argpartition(products, CONTENDERS)
    rest = float(products[order[CONTENDERS]]) if n > CONTENDERS else math.inf
    B = _columns(D, np.sort(order[:CONTENDERS]))
    B = B.toarray() if hasattr(B, "toarray") else B
    sums, errors = column_products(B, mid)
    errors = errors + (np.abs(B).T @ radius) * (1.0 + (d + 2.0) * EPS)
    return min(below(rest, error), float(np.min(smaller(sums) - errors * (1.0 + 4.0 * EPS))))


def _columns(D: Any, which: Any) -> Any:
    """Columns of a dense or sparse matrix, in float64."""
    return D[:, which].astype(np.float64, copy=False)
