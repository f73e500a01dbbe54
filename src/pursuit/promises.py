"""What the theorems promise about a finished run: the bounds that apply, as curves, and the constants they use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pursuit import geometry, rates
from pursuit.arrays import Array, Small, host
from pursuit.domains import Cone, Domain, Hull, Part, Span
from pursuit.geometry import Interval
from pursuit.objectives import Objective
from pursuit.oracles import Approximate, Exact, Lazy
from pursuit.steps import Backtracking, DiameterStep, LineSearch, OpenLoop, ShortStep
from pursuit.updates import Away, BlendedPairwise, FullyCorrective, NormCorrective, Pairwise, Plain


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


class FinishedRun(Protocol):
    """What is read of a `pursuit.Result`: the parts of the run, its first point, and what it found."""

    @property
    def f(self) -> Objective: ...
    @property
    def domain(self) -> Domain: ...
    @property
    def update(self) -> Any: ...
    @property
    def oracle(self) -> Any: ...
    @property
    def refine(self) -> Any: ...
    @property
    def trace(self) -> Any: ...
    @property
    def lower(self) -> float: ...
    @property
    def start(self) -> Array: ...


@dataclass(frozen=True)
class _Run:
    """What the theorems need to know about a run; `mdw` and `rho` are the user's, or None."""

    f: Objective
    part: Part
    update: Any
    delta: float
    lazy: bool
    t: Small
    spare: int  # atoms of the start that may be dropped
    eps0: float
    x0: Array
    mdw: Any
    rho: Any

    @property
    def swaps(self) -> bool:
        """Whether weight moves from one atom to any other, so that the atoms in S are exchanged."""
        return isinstance(self.update, Pairwise) or (isinstance(self.update, BlendedPairwise) and self.over_cone)

    @property
    def drops(self) -> bool:
        """Whether steps end where an atom loses its weight."""
        return self.swaps or isinstance(self.update, Away | BlendedPairwise)

    @property
    def over_cone(self) -> bool:
        return isinstance(self.part, Cone)

    @property
    def begins_with_own_atoms(self) -> bool:
        """Whether S has atoms of A only: a user's start may have others, such as the point itself."""
        return self.spare == 0 and (self.over_cone or self.part.A.contains(self.x0) is True)

    @property
    def steps(self) -> Small:
        """For each t, the steps among t that a sublinear rate counts."""
        if self.swaps:
            n = self.part.A.size if self.begins_with_own_atoms else None
            return np.zeros(len(self.t)) if n is None else np.asarray(rates.good_pairwise_steps(self.t, n=n))
        return np.asarray(rates.good_steps(self.t, spare=self.spare)) if self.drops else self.t


def promise(result: FinishedRun, mdw: Any = None, rho: Any = None) -> Promise:
    """The bounds that hold for a run. Its certified lower bound on f* gives eps_0; `mdw` and `rho` are computed where
    they are None."""
    f, domain, oracle, values = result.f, result.domain, result.oracle, result.trace.value
    t, eps0 = np.arange(len(values), dtype=np.float64), max(float(values[0]) - result.lower, 0.0)
    descends = getattr(result.update, "descends", False)
    delta = _quality(oracle, domain, descends)
    bounds: list[Bound] = []
    known = isinstance(result.update, Plain | Away | Pairwise | BlendedPairwise | NormCorrective | FullyCorrective)
    proved = known and f.exact and f.convex and delta > 0 and math.isfinite(eps0)
    if proved and len(domain.parts) == 1 and not domain.parts[0].price:
        part = domain.parts[0]
        spare = int(result.trace.atoms[0]) - isinstance(part, Hull)
        lazy = isinstance(oracle, Lazy)
        run = _Run(f, part, result.update, delta, lazy, t, spare, eps0, result.start, mdw, rho)
        if not (run.drops and result.refine is not None):  # a refinement changes how many atoms there are
            bounds = [*_bounds(run)]
    curves = [b.curve for b in bounds]
    if descends:
        curves.append(np.full(len(t), eps0))
    curve = np.minimum.reduce(curves) if curves else np.full(len(t), math.inf)
    return Promise(curve, eps0, bounds)


def _quality(oracle: Any, domain: Domain, descends: bool) -> float:
    """The quality with which the rates hold, 0 where they do not."""
    if isinstance(oracle, Approximate):
        return oracle.delta
    if not all(part.asked.exact for part in domain.parts):
        return 0.0
    if isinstance(oracle, Lazy) and descends and not isinstance(domain, Cone):
        return rates.lazy_quality(oracle.K)
    return float(isinstance(oracle, Exact))


def _bounds(run: _Run) -> Iterator[Bound]:
    if isinstance(run.part, Hull):
        yield from _hull_bounds(run)
    elif isinstance(run.part, Span):
        yield from _span_bounds(run)
    else:
        yield from _cone_bounds(run)


def _smoothness(run: _Run) -> float | None:
    """The L for which the update gains at least as much as the step that minimises the quadratic upper bound, if there
    is one."""
    update, step, L = run.update, getattr(run.update, "step", None), run.f.L
    if L is None:
        return None
    if isinstance(update, FullyCorrective):
        return L if run.f.quadratic else None  # elsewhere its inner problem is solved to an accuracy
    if isinstance(step, LineSearch) or (run.drops and step is None):
        return L
    if isinstance(update, NormCorrective):
        given = update.L if update.inner is None and update.metric is None else 0.0
    elif isinstance(step, ShortStep):
        given = step.L if step.metric is None else 0.0
    else:
        return None
    if isinstance(given, Backtracking):  # where f curves, the first estimate is its curvature along a line and 0.1 %
        return rates.backtracking(L=L, grow=given.grow, first=1.001 * L) if run.f.mu > 0 else None
    return L if given is None else given if given >= L else None


def _hull_bounds(run: _Run) -> Iterator[Bound]:
    """The sublinear rates of Frank-Wolfe, and the linear ones of away and pairwise steps."""
    f, A, step, L = run.f, run.part.A, getattr(run.update, "step", None), _smoothness(run)
    if L is None and isinstance(run.update, Plain) and f.L is not None:
        fixed = isinstance(step, DiameterStep) and step.L in (None, f.L)
        L = f.L if fixed or step == OpenLoop() else None
    if L is not None:
        given = step.diameter if isinstance(step, DiameterStep) else None
        D = Interval.of(given) if given is not None else geometry.diameter(A)
        if math.isfinite(D.upper):
            curve = rates.frank_wolfe(run.steps, L=L, diameter=D, eps0=run.eps0, delta=run.delta)
            constants = f"L = {L:.4g}, diameter <= {D.upper:.4g}, delta = {run.delta:g}"
            yield Bound("Theorem inexactFW", curve, constants)
            if D.lower > 0:
                yield from _pyramidal_bounds(run, L, D)
    exact = isinstance(step, LineSearch) or isinstance(run.update, FullyCorrective) or (run.drops and step is None)
    if f.quadratic and exact:
        C = geometry.curvature(f, A)
        curve = rates.frank_wolfe_affine(run.steps, C=C, eps0=run.eps0, delta=run.delta)
        yield Bound("Theorem sublinearFWAffineInvariant", curve, f"C_f <= {C.upper:.4g}, delta = {run.delta:g}")


def _pyramidal_bounds(run: _Run, L: float, size: Interval) -> Iterator[Bound]:
    """The linear rates of away and pairwise steps along directions of at most this size."""
    f, A = run.f, run.part.A
    if not run.drops or run.lazy or not f.mu > 0 or A.size is None or not run.begins_with_own_atoms:
        return
    width = geometry.pyramidal_width(A, origin=run.over_cone)
    if not width.lower > 0:
        return
    given: dict[str, Any] = {"mu": f.mu, "L": L, "width": width, "diameter": size, "eps0": run.eps0, "delta": run.delta}
    if run.swaps:
        name, curve = "Rate of pairwise steps", rates.pairwise_steps(run.t, **given, n=A.size)
    else:
        name, curve = "Rate of away steps", rates.away_steps(run.t, **given)
    constants = f"mu = {f.mu:.4g}, L = {L:.4g}, pyramidal width >= {width.lower:.4g}, steps <= {size.upper:.4g}"
    yield Bound(name, curve, f"{constants}, delta = {run.delta:g}")


def _cone_bounds(run: _Run) -> Iterator[Bound]:
    """The sublinear rate of cone pursuits, and the linear ones of away and pairwise steps."""
    L, A = _smoothness(run), run.part.A
    if L is None or not run.begins_with_own_atoms:
        return
    radius = geometry.radius(A)
    size = Interval.of(max(radius.upper, geometry.diameter(A).upper)) if run.swaps else radius
    bound = _largest_sum(run) if run.rho is None else _interval(run.rho)
    if 0 < bound.upper < math.inf and math.isfinite(size.upper):
        curve = rates.cone_pursuit(run.steps, L=L, radius=size, rho=bound, eps0=run.eps0, delta=run.delta)
        constants = f"L = {L:.4g}, rho <= {bound.upper:.4g}, steps <= {size.upper:.4g}, delta = {run.delta:g}"
        yield Bound("Rate of cone pursuits", curve, constants)
    if math.isfinite(size.upper):
        yield from _pyramidal_bounds(run, L, size)


def _largest_sum(run: _Run) -> Interval:
    """A bound on the sums of weights of all points x of the cone with f(x) <= f(x_0): strong convexity bounds ||x||,
    and the sum of the weights is at most ||x|| over the distance from 0 to the hull of the atoms."""
    width = geometry.mdw(run.part.A).upper if run.f.mu > 0 else 0.0
    if width >= 0:
        return Interval.of(math.inf)
    grad, x = (float(np.linalg.norm(host(v))) for v in (run.f.value_and_grad(run.x0)[1], run.x0))
    return Interval.of((x + 2 * grad / run.f.mu) / -width)


def _span_bounds(run: _Run) -> Iterator[Bound]:
    """The linear and the sublinear rate of matching pursuit."""
    f, A, delta, L = run.f, run.part.asked, run.delta, _smoothness(run)
    if L is None:
        return
    radius = geometry.radius(A)
    if f.mu > 0:
        width = geometry.mdw(A) if run.mdw is None else _interval(run.mdw)
        if width.lower > 0:
            curve = rates.linear(run.t, mu=f.mu, L=L, mdw=width, radius=radius, eps0=run.eps0, delta=delta)
            constants = f"mu = {f.mu:.4g}, L = {L:.4g}, width >= {width.lower:.4g}, radius <= {radius.upper:.4g}"
            yield Bound("Theorem linearRateMPinexact", curve, f"{constants}, delta = {delta:g}")
    bound = geometry.rho(A, f, run.x0) if run.rho is None else _interval(run.rho)
    if 0 < bound.upper < math.inf:
        curve = rates.matching_pursuit_sharp(run.t, L=L, radius=radius, rho=bound, eps0=run.eps0, delta=delta)
        constants = f"L = {L:.4g}, rho <= {bound.upper:.4g}, radius <= {radius.upper:.4g}, delta = {delta:g}"
        yield Bound("Theorem inexactMP, sharp form", curve, constants)


def _interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)  # which refuses what is no number
