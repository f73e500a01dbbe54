"""The certificate of a run: an estimate at every iteration, which says when to stop, and a proof at the end.

Four facts bound f* from below, and the best bound counts: the oracle's answer (the domain has the formula), strong
convexity of f over all of H, f* >= f(x) - ||grad f(x)||^2 / (2 mu), the objective's own infimum, and its conjugate at
a point that is nearly feasible (`dual`). During the run they are computed in floating-point arithmetic, and nothing is
subtracted for rounding: `lower` is an estimate. `Certificate.proved` makes a proof of the best of them (`proof`).

A bound needs a convex f with a true gradient, and an oracle that answers as it says. Where two points of the run, or a
bound above f(x), contradict that, nothing is proved. Of an f that is not convex only the infimum is a bound; the
Frank-Wolfe gap, max <grad f(x), x - u> over the domain, then says how nearly x is stationary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Space
from pursuit.atoms.frames import Atom
from pursuit.certificates.dual import DualBound
from pursuit.certificates.proof import Proof
from pursuit.domains import Answer, Domain
from pursuit.linalg.rounding import product_error
from pursuit.objectives import Objective
from pursuit.state import Stateful

CERTIFICATE_SEED = 2
"""The seed of searches at other points than the run's. Bounds that hold with high probability need random numbers on
which x does not depend."""

STALL_ITERATIONS = 30
"""Iterations without a lower value or a smaller gap after which a descending update has stalled."""

ESTIMATE = itemgetter(0)

Evaluation = tuple[Array, float, Array, float, float]
"""A point, the value there, the gradient, and the norms of the point and of the gradient."""


class Bound(NamedTuple):
    """What one iteration says: f* >= lower and gap >= f(x) - f*, but for rounding.

    `stationarity` is the Frank-Wolfe gap, max <grad, x - u> over the u of the domain, or a bound on it: 0 where x is
    stationary. `stationary` says that no atom correlates with the gradient beyond rounding, `contradicted` that f or
    the oracle contradicts itself or convexity, `stalled` that the update no longer lowers f or the gap. `calls` counts
    oracle calls beside those of the run.
    """

    lower: float
    gap: float
    stationarity: float
    stationary: bool
    contradicted: bool
    calls: int
    stalled: bool = False


@dataclass(eq=False)
class Certificate(Stateful):
    """The best lower bound of one run, as an estimate, and what a proof of it needs."""

    f: Objective
    domain: Domain
    space: Space
    descends: bool = False
    """Whether the update never raises f, so that a run without progress has stalled."""
    lower: float = field(init=False)
    gap: float = field(default=math.inf, init=False)
    stationarity: float = field(default=math.inf, init=False)
    stationary: bool = field(default=False, init=False)
    contradicted: bool = field(default=False, init=False)
    dual: DualBound = field(init=False)
    _best: tuple[float, Array | None, list[float], float] = field(default=(-math.inf, None, [], 0.0), init=False)
    """The best bound by the conjugate, as estimated, the point that gives it, lower bounds on <u, a> there over the
    atoms of each summand, and the norm of the gradient from whose products they are known."""
    _trusted: float = field(default=-math.inf, init=False)
    """The best bound by the oracle and by strong convexity, lowered by rounding errors as they usually are. For an f
    without a conjugate it is all that is known."""
    _reach: float = field(default=0.0, init=False)
    """The largest norm of x."""
    _scale: float = field(default=0.0, init=False)
    """The largest norm of a gradient, the unit of rounding errors."""
    _first: float = field(default=0.0, init=False)
    """The norm of the first gradient."""
    _last: Evaluation | None = field(default=None, init=False)
    _largest: float = field(default=0.0, init=False)
    """The largest |f(x)|."""
    _length: float = field(default=0.0, init=False)
    """The norm of x."""
    _longest: list[float] = field(init=False)
    """The norm of the longest atom of each summand, as far as it is known."""

    _lowest: float = field(default=math.inf, init=False)
    _smallest_gap: float = field(default=math.inf, init=False)
    _stalled: int = field(default=0, init=False)
    """Successive iterations without a lower value or a smaller gap."""

    def __post_init__(self) -> None:
        self.lower = self.f.infimum if self.f.exact else -math.inf
        self.dual = DualBound(self.f, self.domain, self.space, CERTIFICATE_SEED)
        self._longest = [part.A.radius or 0.0 for part in self.domain.parts]
        self._error, self._L = product_error(self.space), self.f.L or 0.0
        self._proof: tuple[object, float, float] | None = None  # the best point, the trusted bound, and what they prove

    @property
    def dual_point(self) -> Array | None:
        """The point at which the conjugate gives the best bound, a hint for a proof; None where there is none."""
        return self._best[1]

    def observe_point(self, x: Array, value: float, grad: Array, *vectors: Array) -> list[float]:
        """Compare f at x with f at the last point, and adjust the scale of rounding errors to the gradient. Returns its
        norm and those of other vectors, in one transfer from a device.

        Where the curvature of f has no bound, a bad point may have a huge gradient, which says nothing about rounding
        at other points. Then only the first gradient (over a hull, that at 0) and the current one count.
        """
        vectors = grad, x, *vectors
        pairs = [(v, v) for v in vectors]
        if self._last is not None:
            step = x - self._last[0]
            pairs += [(self._last[2], step), (grad, step)]
        products = self.space.dots(*pairs)
        slopes = products[len(vectors) :]
        norm, self._length, *others = [self.space.norm(v, p) for v, p in zip(vectors, products, strict=False)]
        self._first = self._first or norm
        self._scale = max(self._first if self.f.L is None else self._scale, norm)
        if self.f.exact:
            now = x, value, grad, self._length, norm
            if self._last is not None and self.f.convex:
                unit = self._largest + self._L * self._length * self._length
                self.contradicted |= _contradict(self._last, now, slopes, self.space.eps, unit)
            self._last, self._largest = now, max(self._largest, abs(value))
        return [norm, *others]

    @np.errstate(over="ignore", invalid="ignore")  # a bound that is not finite is none
    def __call__(self, value: float, grad: Array, answers: Sequence[Answer], active: ActiveSet) -> Bound:
        """The best bound so far, with what this iteration proves. The count of iterations without progress starts again
        after an answer from memory, or a random one: the next answer may still help."""
        self._observe(value, grad, answers, active)
        better = value < self._lowest or self.gap < self._smallest_gap or active.turn is not None
        better = better or any(answer.calls == 0 or (answer.lower is None and answer.delta <= 0) for answer in answers)
        self._lowest = min(value, self._lowest)
        self._smallest_gap = min(self.gap, self._smallest_gap)
        self._stalled = 0 if better else self._stalled + 1
        return self.bound

    @property
    def bound(self) -> Bound:
        """What is proved so far."""
        stalled = self.descends and self._stalled >= STALL_ITERATIONS
        state = self.stationarity, self.stationary, self.contradicted
        return Bound(self.lower, self.gap, *state, self.dual.calls, stalled)

    def _observe(self, value: float, grad: Array, answers: Sequence[Answer], active: ActiveSet) -> None:
        alone = value - active.cost  # f(x) without a penalty
        norm, longest, size = self._measure(alone, grad, answers, active)
        if not self.f.exact or self.contradicted:
            self.lower, self.gap = -math.inf, math.inf
            return
        whole = active.turn is None  # else few were asked
        terms = norm + self._L * self._length  # those of the gradient, which may cancel
        slack = self._error * (abs(value) + terms * (self._length + sum(longest)))  # the errors of the inner products
        doubt = 1e3 * (slack + self.space.eps * (self._largest + self._L * self._length * self._length))
        noise = [self._error * norm * length for length in longest]
        lows, gap, slope = self.domain.gaps(answers, noise) if whole else ([], math.inf, -math.inf)
        self.stationarity, self.stationary = gap, whole and self._at_rounding(slope, size)
        if not self.f.convex:
            self.gap = value - self.lower
            return
        if self._best[0] > value + doubt:  # an estimate that was false
            self._best, self.lower = (-math.inf, None, [], 0.0), self.f.infimum
        best = value - gap
        if whole:
            self._best = max(self._best, (best, grad, lows, norm), key=ESTIMATE)
        if self.f.mu > 0:
            if whole and self.domain.has_strong_gap:
                best = max(best, value - self.domain.strong_gap(answers, self.f.mu, noise))
            best = max(best, alone - norm * (norm / (2.0 * self.f.mu)))
        self._trusted, self.lower = max(self._trusted, best - slack), max(self.lower, best)
        beyond = self._trusted - value  # or the oracle misses better atoms
        if beyond > doubt and beyond > 1e3 * self.space.eps * norm * active.terms:
            self.contradicted, self.lower, self.gap = True, -math.inf, math.inf
            return
        if whole and self.dual.possible:
            bound = self.dual(value, grad, answers, active, self.lower, self.stationary)
            if bound <= value + doubt:
                self._best = max(self._best, (bound, self.dual.u, self.dual.lows, norm), key=ESTIMATE)
                self.lower = max(self.lower, bound)
        self.lower = min(self.lower, value)
        self.gap = max(value - self.lower, 0.0)

    def _measure(
        self, value: float, grad: Array, answers: Sequence[Answer], active: ActiveSet
    ) -> tuple[float, list[float], float]:
        """The norm of the gradient; the norms by which rounding errors enter, one for each summand; and the sum of
        those of the atoms that this iteration names. The norms are one product where they can be. An error of an
        answer that proves no bound of its own is divided by its quality, too."""
        asked = range(len(answers)) if active.turn is None else active.turn
        named = [answers[b].atoms[0] for b in asked]
        norm, *lengths = self.observe_point(active.x, value, grad, *[a.vector for a in named if type(a) is Atom])
        if len(lengths) < len(named):
            lengths = [a.norm(self.space) for a in named]
        for b, length in zip(asked, lengths, strict=True):
            self._longest[b] = max(self._longest[b], length)
        self._reach = max(self._reach, self._length)
        if active.turn is not None:
            return norm, self._longest, sum(lengths)
        pairs = zip(self._longest, answers, strict=True)
        return norm, [length / ((a.delta or 1.0) if a.lower is None else 1.0) for length, a in pairs], sum(lengths)

    def proved(self, value: float) -> float:
        """A lower bound on f* that is proved: by the conjugate at the best point of the run, or at 0; for an f without
        a conjugate as far as its values, its gradients and the oracle are right."""
        if not self.f.exact or self.contradicted:
            return -math.inf
        if not self.f.convex:
            return self.f.infimum
        if self._proof is None or self._proof[0] is not self._best or self._proof[1] != self._trusted:
            self._proof = self._best, self._trusted, self._prove(value)
        return self._proof[2]

    def _prove(self, value: float) -> float:
        known, (estimated, u, lows, norm) = self.f.infimum, self._best
        points = [] if u is None else [(u, lows, norm)]
        if known == -math.inf:
            points.append((self.space.zeros(), [0.0] * len(self._longest), 0.0))
        if not points:
            return max(known, self._trusted) if self.f.singular else known
        proof, wanted = Proof(self.dual, self._longest, self._reach), estimated - 0.01 * max(value - estimated, 0.0)
        bounds = [known, *(proof.lower(*point, wanted) for point in points)]
        return max([*bounds, self._trusted]) if proof.trusting else max(bounds)

    def _at_rounding(self, slope: float, size: float) -> bool:
        """Whether the steepest slope is rounding: no atom correlates with the gradient; `size` is the sum of the atoms'
        norms."""
        factor, scale, length = 1.0, self._scale, self._length
        if self.domain.bounded:
            size += length
        else:
            factor = 32.0
            scale = max(scale, self._L * length)
            size += length * any(p.nonnegative for p in self.domain.parts)
        return -slope <= factor * self.space.eps * scale * size


def _contradict(one: Evaluation, other: Evaluation, slopes: Sequence[float], eps: float, unit: float) -> bool:
    """Whether values and gradients at two points x and y cannot be those of a convex function; `slopes` are the
    gradients' products with y - x, `unit` is the unit of rounding errors.

    A convex f has f(y) - f(x) between <grad f(x), y - x> and <grad f(y), y - x>. Errors of a thousandth of these
    numbers, and rounding, are allowed.
    """
    (_, fx, _, length_x, slope_x), (_, fy, _, length_y, slope_y) = one, other
    (low, high), rise = slopes, fy - fx
    sizes = unit + abs(fy) + (slope_x + slope_y) * (length_x + length_y)
    allowed = 1e-3 * (abs(low) + abs(high) + abs(rise)) + 1e3 * eps * sizes
    return low - rise > allowed or rise - high > allowed
