"""What the theorems promise about a finished run: the bounds that apply, as curves, and the constants they use.

All rates follow from two numbers. c, a *charge*: a step along d of slope -s lowers f by at least s^2 / (2 c), where no
constraint cuts it short. And a bound on the error by s: over hulls eps <= s; over spans eps <= 2 rho s, and
eps <= s^2 / (2 m), where m is a *convexity*. Both are known in the norm of the algorithm, in that of the Hessian, and
as affine-invariant constants; the smallest charge and the largest convexity give the strongest promise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pursuit import geometry, rates
from pursuit.arrays import Array, Small, host
from pursuit.atoms import SignedBasis
from pursuit.atoms.combinations import unscaled
from pursuit.domains import Part
from pursuit.geometry import Interval
from pursuit.geometry.constants import least_convexity
from pursuit.objectives import Objective
from pursuit.oracles import Lazy
from pursuit.refine.proposals import as_refinements, share_given_back
from pursuit.updates import Decrease, Plain


@dataclass(frozen=True)
class Bound:
    """One theorem's bound on f(x_t) - f* for every t of a run, and the constants that it was computed from."""

    theorem: str
    curve: Small
    constants: str


@dataclass(frozen=True)
class Promise:
    """Bounds on f(x_t) - f*, t = 0, 1, ...: `bounds` are all that apply, `curve` is the smallest of them at each t.

    `eps0` is the bound on f(x_0) - f* that they start from: f(x_0) less the certified lower bound of the run.
    """

    curve: Small
    eps0: float
    bounds: list[Bound]

    def __str__(self) -> str:
        lines = [f"f(x_0) - f* <= {self.eps0:.4g}, f(x_{len(self.curve) - 1}) - f* <= {self.curve[-1]:.4g}"]
        lines += [f"  {b.theorem}: {b.curve[-1]:.4g}, with {b.constants}" for b in self.bounds]
        return "\n".join(lines if self.bounds else [*lines, "  no theorem applies: only f(x_t) <= f(x_0) is known"])


class Constant(NamedTuple):
    """A constant of a rate and what it was computed from; `norm` is the norm that it belongs to, None for one that is
    affine invariant."""

    value: float
    words: str
    norm: str | None = None


class Norm(NamedTuple):
    """A norm in which f is L-smooth and mu-strongly convex."""

    name: str
    metric: Any
    L: float
    mu: float


@dataclass(frozen=True, eq=False)
class _Run:
    """What the theorems need to know about a run; `given` are the constants of the user, by name."""

    f: Objective
    part: Part
    decrease: Decrease
    delta: Small
    additive: float
    lazy: bool
    t: Small
    spare: int  # atoms of the start that may be dropped
    eps0: float
    x0: Array
    along_atoms: bool  # steps on an orthogonal basis change one weight each
    given: dict[str, Any]

    @property
    def A(self) -> Any:
        return self.part.asked

    @property
    def swaps(self) -> bool:
        return self.decrease.moves == "pairwise"

    @property
    def over_cone(self) -> bool:
        return not (self.part.compact or self.part.signless)

    @cached_property
    def begins_with_own_atoms(self) -> bool:
        """Whether S has atoms of A only: a user's start may have others, such as the point itself."""
        return self.spare == 0 and (self.over_cone or self.part.A.contains(self.x0) is True)

    @property
    def reach(self) -> tuple[float, str]:
        """A bound on the atomic norm of x* - x_t, and what it was computed from."""
        if "reach" in self.given:
            reach = _interval(self.given["reach"]).upper
            return reach, f"reach <= {reach:.4g}"
        if not self.A.symmetric:
            return math.inf, ""
        given = self.given.get("rho")
        rho = (geometry.rho(self.A, self.f, self.x0) if given is None else _interval(given)).upper
        return 2 * rho, f"rho <= {rho:.4g}"

    @property
    def steps(self) -> Small:
        """For each t, the steps among t that a sublinear rate counts."""
        if self.decrease.moves == "toward":
            return self.t
        if not self.swaps:
            return np.asarray(rates.good_steps(self.t, spare=self.spare))
        n = self.part.A.size if self.begins_with_own_atoms else None
        return np.zeros(len(self.t)) if n is None else np.asarray(rates.good_pairwise_steps(self.t, n=n))

    @cached_property
    def norms(self) -> list[Norm]:
        """The norms in which constants of f are known: the Euclidean one, that of the step, and that of the Hessian."""
        f, found = self.f, [Norm("", None, math.inf if self.f.L is None else self.f.L, self.f.mu)]
        M = self.decrease.metric
        if M is not None:
            L, mu = (constant(f, self.A, metric=M) for constant in (geometry.smoothness, geometry.convexity))
            found.append(Norm(" in the metric", M, L.upper, mu.lower))
        H = f.hessian(self.x0) if f.quadratic and 0 < f.mu < (f.L or 0.0) else None  # not a multiple of the first
        return found if H is None else [*found, Norm(" in the norm of the Hessian", H, 1.0, 1.0)]

    def charges(self, size: Any, kind: Any) -> Iterator[Constant]:
        """Charges of the directions of a kind of curvature, whose largest norm is `size(A, metric)`."""
        d, name = self.decrease, "diameter" if kind == "fw" else "radius"
        exact = self._curvature(kind)
        label = "C_f" if kind == "fw" else "C^MP"
        if d.C is not None:
            if exact is not None and exact.upper * (1 - 1e-9) <= d.C:
                how = f"L = {d.L:.4g}, {name} <= {math.sqrt(d.C / d.L):.4g}" if d.L else f"{label} <= {d.C:.4g}"
                yield Constant(d.C, how, None if d.L is None else "")
            return
        for norm in self.norms:
            L = self._smoothness(norm)
            if L is not None:
                D = size(self.A, metric=norm.metric)
                if math.isfinite(D.upper):
                    yield Constant(L * D.upper**2, f"L = {L:.4g}, {name} <= {D.upper:.4g}{norm.name}", norm.name)
        if d.exact and exact is not None:
            yield Constant(exact.upper, f"{label} <= {exact.upper:.4g}")

    def _curvature(self, kind: Any) -> Interval | None:
        """The affine-invariant curvature, where it is given or can be computed."""
        if "curvature" in self.given:
            return _interval(self.given["curvature"])
        known = self.f.quadratic or self.decrease.C is not None
        return geometry.curvature(self.f, self.A, kind) if known else None

    def _smoothness(self, norm: Norm) -> float | None:
        """The L of a step in this norm; None where the step does not descend by it."""
        d = self.decrease
        if d.exact and d.metric is None:
            return norm.L if math.isfinite(norm.L) and not norm.name else None
        if norm.metric is not d.metric or not math.isfinite(norm.L):
            return None
        if d.grow is not None:
            return d.grow * norm.L if norm.mu > 0 else None
        return d.L if d.L is not None and d.L >= norm.L * (1 - 1e-12) else None

    def convexities(self) -> Iterator[Constant]:
        """Lower bounds on the affine-invariant convexity of f over A."""
        for norm in self.norms[: 1 + (self.decrease.metric is not None)]:
            if norm.mu > 0:
                given = self.given.get("mdw") if norm.metric is None else None
                width = geometry.mdw(self.A, metric=norm.metric) if given is None else _interval(given)
                if width.lower > 0:
                    words = f"mu = {norm.mu:.4g}, width >= {width.lower:.4g}{norm.name}"
                    yield Constant(norm.mu * width.lower**2, words, norm.name)
        given, bent = self.given.get("convexity"), self.f.quadratic and self.f.mu != self.f.L
        low = _interval(given).lower if given is not None else least_convexity(self.f, self.A) if bent else 0.0
        if low > 0:
            yield Constant(low, f"mu^MP >= {low:.4g}")


def promise(result: Any, **given: Any) -> Promise:
    """The bounds that hold for a run. Its certified lower bound on f* gives eps_0; the constants `given` are computed
    where they are None."""
    update, values, delta = result.update, result.trace.value, _qualities(result)
    t, eps0 = np.arange(len(values), dtype=np.float64), max(float(values[0]) - result.lower, 0.0)
    decrease = _decrease(result) if math.isfinite(eps0) else None
    bounds: list[Bound] = []
    if decrease is not None and delta[:2].all():
        part, oracle = result.domain.parts[0], result.oracle
        spare, lazy = int(result.trace.atoms[0]) - part.compact, isinstance(oracle, Lazy)
        known = {name: value for name, value in given.items() if value is not None}
        along = result.refine is None and (isinstance(update, Plain) or not host(result.start).any())
        run = _Run(result.f, part, decrease, delta, oracle.additive, lazy, t, spare, eps0, result.start, along, known)
        found = (_hull_bounds if part.compact else _span_bounds if part.signless else _cone_bounds)(run)
        bounds = [
            Bound(name, np.where(delta > 0, curve, math.inf), f"{words}, delta = {delta[-1]:.6g}")
            for name, curve, words in found
        ]
    curves = [b.curve for b in bounds]
    if update.descends and (values <= values[0]).all():
        curves.append(np.full(len(t), eps0))
    curve = np.minimum.reduce(curves) if curves else np.full(len(t), math.inf)
    return Promise(curve, eps0, bounds)


def _decrease(result: Any) -> Decrease | None:
    """What the steps of a run guarantee; None where nothing, or where a refinement changes how many atoms there are, or
    gives back some of the decrease."""
    f, parts = result.f, result.domain.parts
    covered = len(parts) == 1 and not parts[0].price and f.exact and f.convex
    decrease: Decrease | None = result.update.decrease(f, parts[0]) if covered else None
    if decrease is None:
        return None
    refinements = [refine for refine in as_refinements(result.refine) if refine is not None]
    spoiled = any(decrease.moves != "toward" or share_given_back(refine) > 0 for refine in refinements)
    return None if spoiled else decrease


def _qualities(result: Any) -> Small:
    """For each t, the smallest quality of the answers before x_t, 0 where nothing is proved of one of them."""
    oracle, each = result.oracle, np.array(result.trace.delta)
    if isinstance(oracle, Lazy):  # answers from S have a share of the last one's descent
        blind = any(not (part.compact or part.signless) for part in result.domain.parts)
        each = np.where(each > 0, each, 1.0) * rates.lazy_quality(oracle.K) * (result.update.descends and not blind)
    return np.minimum.accumulate(np.concatenate([[1.0], each[:-1]]))


Found = Iterator[tuple[str, Small, str]]
"""Theorem, curve, constants."""


def _by_norm(constants: Iterator[Constant], best: Any) -> tuple[Constant | None, Constant | None]:
    """The best constant in the norm of the algorithm, and the best of all where that is another."""
    found = list(constants)
    own = [c for c in found if c.norm is not None]
    one, other = (best(some, key=lambda c: c.value) if some else None for some in (own, found))
    return one, other


def _hull_bounds(run: _Run) -> Found:
    """The sublinear rates of Frank-Wolfe, and the linear ones of away and pairwise steps."""
    delta = np.where(run.delta > 0, run.delta, 1.0)
    own, best = _by_norm(run.charges(geometry.diameter, "fw"), min)
    names = ("Theorem 1", "Theorem 11")
    for name, charge in zip(names, (own, None if best == own else best), strict=True):
        if charge is not None:
            C, more = charge.value + run.additive, f", errors of {run.additive:g}" if run.additive else ""
            curve = rates.frank_wolfe_affine(run.steps, C=C, eps0=run.eps0, delta=delta)
            yield name, curve, charge.words + more
    if best is not None and not run.additive:
        yield from _pyramidal_bounds(run, best, delta)


def _pyramidal_bounds(run: _Run, charge: Constant, delta: Small) -> Found:
    """The linear rates of away and pairwise steps along directions of this charge."""
    A, n = run.part.A, run.part.A.size
    if run.decrease.moves == "toward" or run.lazy or not run.f.mu > 0 or n is None or not run.begins_with_own_atoms:
        return
    found = []
    for norm in run.norms:
        width = geometry.pyramidal_width(A, origin=run.over_cone, metric=norm.metric)
        if width.lower > 0 and norm.mu > 0:
            words = f"mu = {norm.mu:.4g}, pyramidal width >= {width.lower:.4g}{norm.name}"
            found.append(Constant(norm.mu * width.lower**2, words))
    if found and charge.value > 0:
        best = max(found, key=lambda c: c.value)
        known: dict[str, Any] = {"mu": best.value, "L": charge.value, "width": 1.0, "diameter": 1.0}
        words = f"{best.words}, {charge.words}"
        if run.swaps:
            yield "Rate of pairwise steps", rates.pairwise_steps(run.t, **known, eps0=run.eps0, delta=delta, n=n), words
        else:
            yield "Rate of away steps", rates.away_steps(run.t, **known, eps0=run.eps0, delta=delta), words


def _cone_bounds(run: _Run) -> Found:
    """The sublinear rate of cone pursuits, and the linear ones of away and pairwise steps."""
    if not run.begins_with_own_atoms:
        return
    delta = np.where(run.delta > 0, run.delta, 1.0)

    def size(A: Any, metric: Any) -> Interval:
        radius = geometry.radius(A, metric=metric)
        return Interval.of(max(radius.upper, geometry.diameter(A, metric=metric).upper)) if run.swaps else radius

    charges = [c for c in run.charges(size, "mp") if c.norm is not None or not run.swaps]  # C^MP knows no differences
    if not charges:
        return
    best = min(charges, key=lambda c: c.value)
    rho = _interval(run.given["rho"]).upper if "rho" in run.given else _largest_sum(run)
    if 0 < rho < math.inf and best.value > 0:
        curve = rates.cone_pursuit(run.steps, L=best.value, radius=1, rho=rho, eps0=run.eps0, delta=delta)
        yield "Rate of cone pursuits", curve, f"rho <= {rho:.4g}, {best.words}"
    yield from _pyramidal_bounds(run, best, delta)


def _largest_sum(run: _Run) -> float:
    """A bound on the sums of weights of all points x of the cone with f(x) <= f(x_0): strong convexity bounds ||x||,
    and the sum of the weights is at most ||x|| over the distance from 0 to the hull of the atoms."""
    width = geometry.mdw(run.part.A).upper if run.f.mu > 0 else 0.0
    if width >= 0:
        return math.inf
    grad, x = (float(np.linalg.norm(host(v))) for v in (run.f.value_and_grad(run.x0)[1], run.x0))
    return (x + 2 * grad / run.f.mu) / -width


def _span_bounds(run: _Run) -> Found:
    """The linear and the sublinear rates of matching pursuit."""
    delta = np.where(run.delta > 0, run.delta, 1.0)
    charges, convexities = _by_norm(run.charges(geometry.radius, "mp"), min), _by_norm(run.convexities(), max)
    pairs = zip(charges, convexities, strict=True)
    linear = [(c, m) for c, m in pairs if c is not None and m is not None and c.value > 0]
    for c, m in dict.fromkeys(linear):
        name = "Theorem 13" if c.norm is None or m.norm is None else "Theorem 7"
        curve = rates.linear_affine(run.t, mu=min(m.value, c.value), C=c.value, eps0=run.eps0, delta=delta)
        yield name, curve, f"{m.words}, {c.words}"
    if charges[1] is not None:
        yield from _signed_basis(run, charges[1])
    yield from _sublinear_bounds(run, charges, delta)


def _sublinear_bounds(run: _Run, charges: Sequence[Constant | None], delta: Small) -> Found:
    """The rate of matching pursuit that needs no strong convexity."""
    reach, words = run.reach
    if not 0 < reach < math.inf:
        return
    for charge in dict.fromkeys(c for c in charges if c is not None and c.value > 0):
        C = charge.value * (0.5 * reach) ** 2
        curve = rates.matching_pursuit_affine_sharp(run.t, C=C, eps0=min(run.eps0, 2 * C), delta=delta)
        yield f"Theorem {2 if charge.norm is not None else 12} sharp", curve, f"{words}, {charge.words}"


def _signed_basis(run: _Run, charge: Constant) -> Found:
    """The exact errors of least squares on the signed basis, where steps are line searches along single atoms."""
    f, basis, radius = run.f, isinstance(unscaled(run.A)[0], SignedBasis), run.A.radius or 0.0
    searched = f.quadratic and f.mu > 0 and charge.value <= f.mu * radius**2 * (1 + 1e-12)
    if basis and searched and run.along_atoms and (run.delta == 1).all():
        residual = host(f.value_and_grad(run.x0)[1]) / f.mu
        yield "Corollary 9", f.mu * rates.signed_basis(run.t, residual=residual), "the residual at x_0"


def _interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)  # which refuses what is no number
