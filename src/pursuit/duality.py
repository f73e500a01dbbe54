"""Lower bounds by the conjugate, for domains with spans and cones, where the Frank-Wolfe bound is infinite.

For every u, f(x) >= <u, x> - f*(u), so that over a sum of domains C_b

    min f >= -f*(u) + sum_b min over C_b of <u, .>.

The minimum over a hull is an oracle's answer at u. Over a span it is 0 where u is orthogonal to the atoms, over a cone
where no atom has a negative product with u, and -inf elsewhere. Near the end of a run the gradient g nearly is such a
u. It becomes one in four steps:

1. Spans: u = g - H Q (Q'HQ)^-1 Q'g, with an orthonormal basis Q of the spans and the Hessian H of f. In the curvature
   of f* this is the nearest feasible point.
2. Cones: u + eps v with the smallest eps, where <v, a> >= ||a|| for all atoms a of the cones.
3. The domain of f*: u moves towards a feasible point, as little as it must. Beside spans it keeps a distance to the
   boundary, since only a point near u is exactly orthogonal to them, and f* may be infinite there; or, where the
   boundary is 0, entries near it become exactly 0 and the spans' atoms count without them.
4. Penalties lam ||.||_A: u is multiplied by min(1, lam / max_a <-u, a>), so that <u, .> + lam ||.||_A >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Small, Space, everywhere, flat, host
from pursuit.atoms.base import Search
from pursuit.domains import Answer, Cone, Domain, Hull, Part, Span
from pursuit.metrics import Identity
from pursuit.objectives import Objective
from pursuit.state import Stateful
from pursuit.weights import WeightProblem

MAX_ATOMS = 1024
"""Atoms of the spans, and of the cones, up to which they are listed."""

CHEAP_PRODUCT = 1 << 21
"""Multiplications of a projection up to which every iteration is tried; beyond it 0 and the powers of two are."""

ROUNDING = 16.0
"""The rounding errors of a product or of a projection, in units of roundoff."""

PIN_ROUNDS = 4
"""Rounds in which entries of a dual point that are 0 but for rounding become exactly 0."""


class Basis:
    """An orthonormal basis Q of the span of columns of unit length, one flattened vector per column, and the smallest
    singular value of these columns: errors of orthogonality to the basis grow by its inverse."""

    def __init__(self, space: Space, columns: Small) -> None:
        self.space = space
        U, s, _ = np.linalg.svd(columns, full_matrices=False)
        U[~columns.any(axis=1)] = 0.0  # exactly, as in the columns: entries at a bound of 0 stay there
        rank = int((s > 4 * np.finfo(np.float64).eps * max(columns.shape) * s[0]).sum())
        self.Q, self.smallest = space.put(U[:, :rank]), min(float(s[rank - 1]), 1.0)
        self._row_norms = space.put(np.linalg.norm(U[:, :rank], axis=1).reshape(space.shape))

    def project(self, vectors: Array) -> Array:
        """Flattened vectors made orthogonal to the span."""
        return vectors - self.Q @ (self.Q.T @ vectors)

    def margin(self, u: Array) -> Array:
        """How far the entries of the nearest point that is exactly orthogonal to the span may be from those of u."""
        moved = 2.0 * ROUNDING * self.space.eps * math.sqrt(self.Q.shape[1]) * self.space.norm(u)
        return (moved / self.smallest) * self._row_norms


@dataclass(eq=False)
class ConjugateBound(Stateful):
    """The conjugate bounds of one run. `calls` counts oracle calls at points that are not gradients."""

    f: Objective
    domain: Domain
    space: Space
    seed: int
    calls: int = field(default=0, init=False)
    _iterations: int = field(default=0, init=False)
    possible: bool = field(init=False)
    _feasible: Array = field(init=False)
    """The last feasible point; f* is finite at 0 wherever f has an infimum."""
    _anchor: Array = field(init=False)
    """The first feasible point that was not moved, far from the boundary."""
    _searches: tuple[Search, ...] = field(default=(), init=False)
    _interiors: list[Array | None] = field(default_factory=list, init=False)
    """The interior point, once the sets were asked for it."""

    def __post_init__(self) -> None:
        self.parts = self.domain.parts
        self._spans = [p for p in self.parts if _is_linear(p)]
        self._cones = [p for p in self.parts if _is_free_cone(p) and not p.A.symmetric]
        sizes = [MAX_ATOMS + 1 if p.A.size is None else p.A.size for p in self._spans]
        concerned = bool(sizes or self._cones or any(p.price for p in self.parts))
        self.possible = self.f.exact and concerned and sum(sizes) <= min(MAX_ATOMS, self.space.size)
        self._feasible = self._anchor = self.space.zeros()
        if self.possible:
            self._searches = tuple(p.asked.begin(self.seed) for p in self.parts)

    def __call__(
        self, value: float, grad: Array, answers: Sequence[Answer], active: ActiveSet, lower: float, last: bool
    ) -> float:
        """A lower bound on f over the domain, or -inf. The sets are asked at u only if that is likely to halve the gap
        `value - lower`; `last` says that the run is about to end."""
        if not (self._due() or last):
            return -math.inf
        u = self._orthogonal(grad, active.x)
        u = None if u is None else self._into_cones(u, answers if u is grad else None)
        if u is None:
            return -math.inf
        moved, smallest = self._into_range(u)
        if not (self._is_orthogonal(flat(moved)) and (moved is u or self._in_cones(moved))):
            return -math.inf
        u = moved
        conjugate = self.f.conjugate(u)
        if conjugate is None or not math.isfinite(conjugate):
            self.possible = conjugate is not None
            return -math.inf
        self._feasible = u
        longest = [
            max(a.atoms[0].norm(self.space), p.A.radius or 0.0) for p, a in zip(self.parts, answers, strict=True)
        ]
        noise = ROUNDING * self.space.eps * self.space.norm(u)
        reach = self.space.norm(active.x) + sum(a for p, a in zip(self.parts, longest, strict=True) if p.compact)
        slack = (noise * reach + ROUNDING * self.space.eps * abs(value)) / smallest
        errors = [0.0 if p.compact else noise * a for p, a in zip(self.parts, longest, strict=True)]

        def bound_from(lowest: Sequence[float]) -> float:
            return self._at(u, conjugate, [low - error for low, error in zip(lowest, errors, strict=True)]) - slack

        bound = bound_from(self._at_no_cost(u, grad, answers))
        hoped = bound_from([a.dot - p.price for p, a in zip(self.parts, answers, strict=True)])
        if value - hoped <= 0.5 * (value - max(lower, bound)):
            bound = max(bound, bound_from(self._ask(u, active)))
        return bound

    def _at(self, u: Array, conjugate: float, lowest: Sequence[float]) -> float:
        """The bound at u, given f*(u) and lower bounds on <u, a> over the atoms of each summand. First, u becomes so
        short that no atom of a penalty has <u, a> below minus its price."""
        shares = [p.price / -low for p, low in zip(self.parts, lowest, strict=True) if p.price and low < -p.price]
        if not shares:
            return self._minima(lowest) - conjugate
        share = (1.0 - 4.0 * self.space.eps) * min(shares)
        shortened = self.f.conjugate(share * u)
        return -math.inf if shortened is None else share * self._minima(lowest) - shortened

    def _at_no_cost(self, u: Array, grad: Array, answers: Sequence[Answer]) -> list[float]:
        """Lower bounds on <u, a> over the atoms of every summand, from those on <grad, a>, whose rounding errors are
        in proportion to the gradient's norm, however short u is."""
        moved = self.space.norm(u - grad)
        moved += ROUNDING * self.space.eps * (moved + self.space.norm(grad)) if moved else 0.0
        radii = [math.inf if p.A.radius is None else p.A.radius for p in self.parts]
        known = [_proved(a) - p.price for p, a in zip(self.parts, answers, strict=True)]
        return [low - moved * radius if moved else low for low, radius in zip(known, radii, strict=True)]

    def _due(self) -> bool:
        """Whether this iteration is one to try."""
        t, columns = self._iterations, sum(p.A.size or 0 for p in self._spans)
        self._iterations += 1
        return self.space.size * columns * columns <= CHEAP_PRODUCT or t & (t - 1) == 0

    def _minima(self, lowest: Sequence[float]) -> float:
        """The sum of the minima of <u, .> over the summands, from lower bounds on <u, a> over their atoms."""
        total = 0.0
        for part, low in zip(self.parts, lowest, strict=True):
            if isinstance(part, Hull):
                total += low
            elif isinstance(part, Cone | Span) and part.rho is not None:
                total += part.rho * min(low, 0.0)
        return total

    def _ask(self, u: Array, active: ActiveSet) -> list[float]:
        """Lower bounds on <u, a> over the atoms of the summands that need one."""
        levels = [p.origin(level) - p.price for p, level in zip(self.parts, active.levels(u), strict=True)]
        settled = [*self._spans, *self._cones]
        return [0.0 if p in settled else self._ask_part(b, u, levels[b]) for b, p in enumerate(self.parts)]

    def _ask_part(self, b: int, u: Array, level: float) -> float:
        """A lower bound on <u, a> over the atoms of summand b, by a search of the set's own."""
        self.calls += 1
        return self._searches[b](u, 1, level)[1]

    @cached_property
    def _span_columns(self) -> Small:
        """All atoms of the spans at unit length. In float64 whatever the space: atoms that are nearly equal in float32
        still span their difference."""
        return host(self._unit_columns(self._spans)).astype(np.float64)

    @cached_property
    def _basis(self) -> Basis | None:
        """A basis of the spans; None where there are none."""
        return Basis(self.space, self._span_columns) if self._spans else None

    def _unit_columns(self, parts: Sequence[Part]) -> Array:
        """All atoms of the summands, flattened, at unit length."""
        space, columns = self.space, []
        for A in (p.A for p in parts):
            for i in range(A.size or 0):
                a = flat(A.atom(i).dense(space))
                norm = space.norm(a)
                if norm > 0:
                    columns.append(a / norm)
        return space.xp.stack(columns, axis=1)

    def _orthogonal(self, g: Array, x: Array) -> Array | None:
        """g made orthogonal to the spans, in the metric of the Hessian where that works."""
        if self._basis is None:
            return g
        Q, hessian = self._basis.Q, self.f.hessian(x)
        images = [] if hessian is None or isinstance(hessian, Identity) else [hessian.batch(Q.T).T]
        for HQ in [*images, Q]:
            u, (values, V) = flat(g), np.linalg.eigh(host(Q.T @ HQ))
            curved = values > 1e-12 * values[-1]  # f may be flat along Q
            inverse = (V[:, curved] / values[curved]) @ V[:, curved].T
            for _ in range(3):  # again, for the rounding errors of the first time
                u = u - HQ @ self.space.put(inverse @ host(Q.T @ u))
            if self._is_orthogonal(u):
                return self.space.xp.reshape(u, self.space.shape)
        return None

    def _is_orthogonal(self, u: Array) -> bool:
        """Whether a flattened vector is orthogonal to the spans, but for the rounding of its own length."""
        if self._basis is None:
            return True
        return float(np.abs(host(self._basis.Q.T @ u)).max()) <= ROUNDING * self.space.eps * self.space.norm(u)

    def _into_range(self, u: Array) -> tuple[Array, float]:
        """u, moved into the entries' bounds towards a feasible point, the nearest of three; 0, which is exactly
        orthogonal to the spans, where there is none. And the smallest singular value of the spans' atoms.

        Beside spans, the nearest point that is exactly orthogonal to them must lie within the bounds, too.
        """
        if self.f.dual_range is None:
            return u, 1.0 if self._basis is None else self._basis.smallest
        (low, high), basis = self.f.dual_range, self._basis
        if basis is not None:
            u, basis = self._pinned(u, basis, low, high)
        smallest, margin = (1.0, 0.0) if basis is None else (basis.smallest, basis.margin(u))
        low, high = low + margin, high - margin

        def within(v: Array) -> bool:
            return everywhere((v >= low) & (v <= high))

        if within(u):
            self._anchor = self._anchor if within(self._anchor) else u
            return u, smallest
        near = [v for v in (self._feasible, self._anchor, 0.0 * u) if within(v)]
        if not near:
            return 0.0 * u, smallest
        share, nearest = min(((self._share(u, v, low, high), v) for v in near), key=lambda pair: pair[0])
        return self.space.xp.clip((1.0 - share) * u + share * nearest, low, high), smallest

    def _pinned(self, u: Array, basis: Basis | None, low: Array, high: Array) -> tuple[Array, Basis | None]:
        """u with entries of exactly 0 where it is within rounding of a bound of 0. The others become orthogonal to the
        spans' atoms without these entries, of which a basis is returned, too; None where nothing is left of them."""
        xp, pinned = self.space.xp, None
        at_zero = (low + 0.0 * u == 0) | (high + 0.0 * u == 0)
        for _ in range(PIN_ROUNDS):
            now = host(flat(at_zero & (xp.abs(u) <= (0.0 if basis is None else basis.margin(u))))) > 0
            if not now.any() or (pinned is not None and (now == pinned).all()):
                break
            pinned = now
            columns = np.where(pinned[:, None], 0.0, self._span_columns)
            norms = np.linalg.norm(columns, axis=0)
            basis = Basis(self.space, columns[:, norms > 0] / norms[norms > 0]) if norms.any() else None
            v = xp.where(self.space.put(pinned) > 0, 0.0 * flat(u), flat(u))
            for _ in range(3):  # again, for the rounding errors of the first time
                v = v if basis is None else basis.project(v)
            u = xp.reshape(v, self.space.shape)
        return u, basis

    def _share(self, u: Array, inside: Array, low: Array, high: Array) -> float:
        """The smallest share of `inside` in a mixture with u that is within the bounds."""
        xp, share = self.space.xp, 0.0
        for beyond, room in ((u - high, high - inside), (low - u, inside - low)):
            over = xp.where(beyond > 0, beyond, 0.0 * u)
            share = max(share, float(xp.max(over / xp.where(over > 0, over + room, 0.0 * u + 1.0))))
        return share

    @cached_property
    def _cone_atoms(self) -> Array | None:
        """The atoms of the cones at unit length, one per column, or None where they are too many to list."""
        few = all(p.A.size is not None and p.A.size <= MAX_ATOMS for p in self._cones)
        return self._unit_columns(self._cones) if few else None

    @property
    def _interior(self) -> Array | None:
        if not self._interiors:
            self._interiors = [self._find_interior()]
        return self._interiors[0]

    def _find_interior(self) -> Array | None:
        """v, orthogonal to the spans, with <v, a> >= ||a|| for listed atoms and <v, a> >= 1 for others; or None."""
        xp, D = self.space.xp, self._cone_atoms
        if D is not None:  # the point of smallest norm in the hull of the atoms has the largest smallest product
            apart, start = self._project(D), np.eye(1, D.shape[1])[0]
            small = WeightProblem.of(host(apart.T @ apart), nonnegative=True, totals=[1.0])
            v = self._project(apart @ self.space.put(small.solve(np.zeros(len(start)), start)))
            return self._scaled(v, 1.0, float(xp.min(D.T @ v)))
        shape = self.space.shape
        for candidate in [np.ones(shape), *([np.eye(shape[0])] if len(shape) == 2 and shape[0] == shape[1] else [])]:
            whole = flat(self.space.put(candidate))
            v = self._project(self._project(whole))
            products = [self._ask_part(b, xp.reshape(v, shape), -math.inf) for b in self._cone_places()]
            if min(products) > 0:
                return self._scaled(v, self.space.norm(whole), min(products))
        return None

    def _scaled(self, v: Array, unit: float, smallest: float) -> Array | None:
        """v of H, divided by its smallest product with an atom; None where v is small, or the product, which may be
        rounding only."""
        v, least = self.space.xp.reshape(v, self.space.shape), 1e-6
        length = self.space.norm(v)
        return v / smallest if length > least * unit and smallest > least * length else None

    def _cone_places(self) -> list[int]:
        return [b for b, part in enumerate(self.parts) if part in self._cones]

    def _project(self, vectors: Array) -> Array:
        """Flattened vectors made orthogonal to the spans."""
        return vectors if self._basis is None else self._basis.project(vectors)

    def _into_cones(self, u: Array, answers: Sequence[Answer] | None) -> Array | None:
        """u + eps v, which has no negative product with an atom of a cone; None where no v is known. `answers` are
        the oracle's at u, where there are any."""
        if not self._cones:
            return u
        if self._interior is None:
            return None
        if self._cone_atoms is None and answers is not None:
            smallest = min(_proved(answers[b]) for b in self._cone_places())
        else:
            smallest = self._smallest_product(u)
        missing = self._cone_margin(u) - smallest
        return u + max(0.0, missing) * self._interior if missing < math.inf else None

    def _in_cones(self, u: Array) -> bool:
        """Whether no atom of a cone has a negative product with u, not even by rounding."""
        return not self._cones or self._smallest_product(u) >= 0.5 * self._cone_margin(u)

    def _smallest_product(self, u: Array) -> float:
        """A lower bound on <u, a> over the atoms of the cones, at unit length where they are listed."""
        if self._cone_atoms is not None:
            return float(self.space.xp.min(self._cone_atoms.T @ flat(u)))
        return min(self._ask_part(b, u, 0.0) for b in self._cone_places())

    def _cone_margin(self, u: Array) -> float:
        """The rounding error of these products."""
        longest = 1.0 if self._cone_atoms is not None else max(p.A.radius or math.inf for p in self._cones)
        return ROUNDING * self.space.eps * self.space.norm(u) * longest


def _proved(answer: Answer) -> float:
    """The lower bound on <grad, a> over all atoms that the answer proves, or -inf."""
    return -math.inf if answer.lower is None else answer.lower


def _is_linear(part: Part) -> bool:
    """Whether the summand is a linear space without a known bound on its weights."""
    return (isinstance(part, Span) and part.rho is None) or (_is_free_cone(part) and part.A.symmetric)


def _is_free_cone(part: Part) -> bool:
    """Whether the summand is a cone whose weights have neither a known bound nor a price."""
    return isinstance(part, Cone) and part.rho is None and not part.price
