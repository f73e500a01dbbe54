"""Dual points: estimates of the bound by the conjugate, where spans, cones and penalties leave no other.

For every u, f(x) >= <u, x> - f*(u), so that over a sum of domains C_b

    min f >= -f*(u) + sum_b min over C_b of <u, .>.

The minimum over a hull is an oracle's answer at u. Over a span it is 0 where u is orthogonal to the atoms, over a cone
where no atom has a negative product with u, and -inf elsewhere. Near the end of a run the gradient g nearly is such a
u. It becomes one, but for rounding, in four steps:

1. Spans: u = g - H Q (Q'HQ)^-1 Q'g, with an orthonormal basis Q of the spans and the Hessian H of f (`Spans.nearest`).
2. Cones: u + eps v with the smallest eps, where <v, a> >= ||a|| for all atoms a of the cones (`Cones.enter`).
3. The domain of f*: u moves towards a feasible point, as little as it must (`_into_range`). Entries within rounding of
   a bound of 0 become exactly 0, and the spans' atoms count without them (`_pin`).
4. Penalties lam ||.||_A: u is multiplied by min(1, lam / max_a <-u, a>), so that <u, .> + lam ||.||_A >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Space, everywhere, flat, host
from pursuit.atoms.base import Search
from pursuit.atoms.combinations import unscaled
from pursuit.certificates.cones import MAX_ATOMS, Cones, columns_of
from pursuit.certificates.spans import Spans
from pursuit.domains import Answer, Domain, Part
from pursuit.objectives import Objective
from pursuit.state import Stateful

CHEAP_PRODUCT = 1 << 21
"""Multiplications of a projection up to which every iteration is tried; beyond it 0 and the powers of two are."""

PIN_ROUNDS = 4
"""Rounds in which entries of a dual point that are 0 but for rounding become exactly 0."""

ZERO = 64.0
"""Such entries are below this, in units of roundoff of the norm."""


@dataclass(eq=False)
class DualBound(Stateful):
    """The conjugate bounds of one run. `calls` counts oracle calls at points that are not gradients."""

    f: Objective
    domain: Domain
    space: Space
    seed: int
    calls: int = field(default=0, init=False)
    possible: bool = field(init=False)
    u: Array = field(init=False)
    """The last feasible point; f* is finite at 0 wherever f has an infimum."""
    lows: list[float] = field(default_factory=list, init=False)
    """Lower bounds on <u, a> over the atoms of every summand."""
    _iterations: int = field(default=0, init=False)
    _anchor: Array = field(init=False)
    """The first feasible point that was not moved, far from the boundary."""
    _searches: tuple[Search, ...] = field(default=(), init=False)
    cones: Cones | None = field(default=None, init=False)
    """Where there are free cones."""

    def __post_init__(self) -> None:
        self.parts, self.spans = self.domain.parts, None
        linear = [p.A for p in self.parts if p.linear]
        self.free_cones = [b for b, p in enumerate(self.parts) if p.free_cone]
        columns = sum(MAX_ATOMS + 1 if A.size is None else A.size for A in linear)
        free = bool(linear or self.free_cones)
        hopeless = (free and self.f.singular) or columns > min(MAX_ATOMS, self.space.size)
        self.possible = self.f.exact and not hopeless and (free or any(p.price for p in self.parts))
        """Whether conjugates are needed and may be finite."""
        self._cheap = self.space.size * columns * columns <= CHEAP_PRODUCT
        self.u = self._anchor = self.space.zeros()
        if self.possible or self.free_cones:
            self._searches = tuple(p.asked.begin(self.seed) for p in self.parts)
        if self.possible and linear:
            scaleless = [unscaled(A)[0] for A in linear]  # the same spans, without a rounding error
            self.spans = Spans(self.space, host(columns_of(self.space, scaleless)).astype(np.float64))
        if self.free_cones:
            sets = [self.parts[b].A for b in self.free_cones]
            self.cones = Cones(self.space, sets, self.spans, self._ask_cones)

    def __call__(
        self, value: float, grad: Array, answers: Sequence[Answer], active: ActiveSet, lower: float, last: bool
    ) -> float:
        """An estimate of a lower bound on f over the domain, or -inf. The sets are asked at u only if that is likely to
        halve the gap `value - lower`; `last` says that the run is about to end."""
        t, self._iterations = self._iterations, self._iterations + 1
        due = self._cheap or t & (t - 1) == 0 or last
        u = self._feasible_point(grad, answers, active.x) if due else None
        conjugate = -math.inf if u is None else self.f.conjugate(u)
        if conjugate is None or not math.isfinite(conjugate):
            self.possible = conjugate is not None
            return -math.inf
        self.u, self.lows = u, self._from_answers(u, grad, answers)
        if self.spans is not None:
            reach = self.space.norm(active.x) + (self.space.norm(u - grad) / self.f.mu if self.f.mu > 0 else 0.0)
            conjugate += self.spans.error * self.space.norm(u) * reach
        bound = self._shortened(conjugate)
        hoped = self._shortened(conjugate, [a.dot - p.price for p, a in zip(self.parts, answers, strict=True)])
        if value - hoped <= 0.5 * (value - max(lower, bound)):
            self.lows = list(map(max, self.lows, self._ask_all(u, active)))
            bound = self._shortened(conjugate)
        return bound

    def _feasible_point(self, grad: Array, answers: Sequence[Answer], x: Array) -> Array | None:
        """The gradient after the first three steps, None where it did not become feasible."""
        cones = self.cones if self.free_cones else None
        u = grad if self.spans is None else self.spans.nearest(grad, self.f.hessian(x))
        if cones is not None:
            known = min(proved(answers[b]) for b in self.free_cones) if u is grad else None
            u = cones.enter(u, known)
        if u is None or self.f.dual_range is None:
            return u
        moved = self._into_range(u, *self.f.dual_range)
        if cones is not None and moved is not u and cones.smallest(moved) < cones.error(moved):
            return None
        return moved

    def _into_range(self, u: Array, low: Array, high: Array) -> Array:
        """u, moved into the entries' bounds towards a feasible point, the nearest of three; 0, which is exactly
        orthogonal to the spans, where there is none."""
        if self.spans is not None:
            u = self._pin(u, self.spans, (low + 0.0 * u == 0) | (high + 0.0 * u == 0))

        def within(v: Array) -> bool:
            return everywhere((v >= low) & (v <= high))

        if within(u):
            self._anchor = self._anchor if within(self._anchor) else u
            return u
        near = [v for v in (self.u, self._anchor) if within(v)]
        if not near:
            return 0.0 * u
        share, nearest = min(((self._share(u, v, low, high), v) for v in near), key=lambda pair: pair[0])
        return self.space.xp.clip((1.0 - share) * u + share * nearest, low, high)

    def _pin(self, u: Array, spans: Spans, at_zero: Array) -> Array:
        """u with entries of exactly 0 where it is within rounding of a bound of 0. The others become orthogonal to the
        spans' atoms without these entries."""
        pinned, xp = None, self.space.xp
        for _ in range(PIN_ROUNDS):
            tiny = ZERO * self.space.eps * self.space.norm(u)
            now = host(flat(xp.astype(at_zero & (xp.abs(u) <= tiny), self.space.dtype))) > 0
            if not now.any() or (pinned is not None and (now == pinned).all()):
                break
            pinned, zero = now, xp.reshape(self.space.put(now), self.space.shape) > 0
            u = spans.without(now).nearest(xp.where(zero, 0.0 * u, u), None)
        return u

    def _share(self, u: Array, inside: Array, low: Array, high: Array) -> float:
        """The smallest share of `inside` in a mixture with u that is within the bounds."""
        xp, share = self.space.xp, 0.0
        for beyond, room in ((u - high, high - inside), (low - u, inside - low)):
            over = xp.where(beyond > 0, beyond, 0.0 * u)
            share = max(share, float(xp.max(over / xp.where(over > 0, over + room, 0.0 * u + 1.0))))
        return share

    def _shortened(self, conjugate: float, lows: Sequence[float] | None = None) -> float:
        """The bound at u, given f*(u) and lower bounds on <u, a>; u becomes as short as penalties want it."""
        share, minima = share_and_minima(self.parts, self.lows if lows is None else lows)
        shortened = conjugate if share == 1.0 else self.f.conjugate(share * self.u)
        return -math.inf if shortened is None else share * sum(minima) - shortened

    def _from_answers(self, u: Array, grad: Array, answers: Sequence[Answer]) -> list[float]:
        """Lower bounds on <u, a> over the atoms of every summand, from those on <grad, a>."""
        known = [proved(a) - p.price for p, a in zip(self.parts, answers, strict=True)]
        moved = self.space.norm(u - grad)
        radii = [math.inf if p.A.radius is None else p.A.radius for p in self.parts]
        return [low - moved * radius for low, radius in zip(known, radii, strict=True)] if moved else known

    def _ask_all(self, u: Array, active: ActiveSet) -> list[float]:
        """Lower bounds on <u, a> over the atoms of the summands that need one."""
        levels = [p.origin(level) - p.price for p, level in zip(self.parts, active.levels(u), strict=True)]
        feasible = [p.linear or p.free_cone for p in self.parts]
        return [0.0 if feasible[b] else self.ask_part(b, u, level) for b, level in enumerate(levels)]

    def ask_part(self, b: int, u: Array, level: float) -> float:
        """A lower bound on <u, a> over the atoms of summand b, by a search of the set's own."""
        self.calls += 1
        return self._searches[b](u, 1, level)[1]

    def _ask_cones(self, u: Array) -> float:
        return min(self.ask_part(b, u, 0.0) for b in self.free_cones)


def share_and_minima(parts: Sequence[Part], lows: Sequence[float]) -> tuple[float, list[float]]:
    """Given lower bounds on <u, a>, the factor by which u becomes so short that no atom of a penalty has <u, a> below
    minus its price, and the minima of <u, .> over the other summands, where they are not 0."""
    pairs = list(zip(parts, lows, strict=True))
    limited = [part.rho * min(low, 0.0) for part, low in pairs if part.rho is not None]
    shares = [part.price / -low for part, low in pairs if part.price and low < -part.price]
    return min(shares, default=1.0), limited + [low for part, low in pairs if part.compact]


def proved(answer: Answer) -> float:
    """The lower bound on <grad, a> over all atoms that the answer proves, or -inf."""
    return -math.inf if answer.lower is None else answer.lower
