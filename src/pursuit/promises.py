"""What the theorems promise about a finished run: the bounds that apply, as curves, and the constants they use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pursuit import geometry, rates
from pursuit.arrays import Array, Small, host
from pursuit.domains import Domain, Part
from pursuit.geometry import Interval
from pursuit.objectives import Objective
from pursuit.oracles import Approximate, Exact, Lazy, Oracle
from pursuit.updates import Decrease, Update


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
    def update(self) -> Update: ...
    @property
    def oracle(self) -> Oracle: ...
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
    decrease: Decrease
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
        return self.decrease.moves == "pairwise"

    @property
    def over_cone(self) -> bool:
        return not self.part.compact

    @property
    def begins_with_own_atoms(self) -> bool:
        """Whether S has atoms of A only: a user's start may have others, such as the point itself."""
        return self.spare == 0 and (self.over_cone or self.part.A.contains(self.x0) is True)

    @property
    def steps(self) -> Small:
        """For each t, the steps among t that a sublinear rate counts."""
        if self.decrease.moves == "toward":
            return self.t
        if not self.swaps:
            return np.asarray(rates.good_steps(self.t, spare=self.spare))
        n = self.part.A.size if self.begins_with_own_atoms else None
        return np.zeros(len(self.t)) if n is None else np.asarray(rates.good_pairwise_steps(self.t, n=n))


def promise(result: FinishedRun, mdw: Any = None, rho: Any = None) -> Promise:
    """The bounds that hold for a run. Its certified lower bound on f* gives eps_0; `mdw` and `rho` are computed where
    they are None."""
    f, domain, update, values = result.f, result.domain, result.update, result.trace.value
    t, eps0 = np.arange(len(values), dtype=np.float64), max(float(values[0]) - result.lower, 0.0)
    part, delta = domain.parts[0], _quality(result.oracle, domain, update.descends)
    covered = len(domain.parts) == 1 and not part.price and f.exact and f.convex and delta > 0 and math.isfinite(eps0)
    decrease = update.decrease(f, part) if covered else None
    if decrease is not None and decrease.moves != "toward" and result.refine is not None:
        decrease = None  # a refinement changes how many atoms there are
    bounds: list[Bound] = []
    if decrease is not None:
        spare, lazy = int(result.trace.atoms[0]) - part.compact, isinstance(result.oracle, Lazy)
        run = _Run(f, part, decrease, delta, lazy, t, spare, eps0, result.start, mdw, rho)
        bounds = [*(_hull_bounds if part.compact else _span_bounds if part.signless else _cone_bounds)(run)]
    curves = [b.curve for b in bounds]
    if update.descends:
        curves.append(np.full(len(t), eps0))
    curve = np.minimum.reduce(curves) if curves else np.full(len(t), math.inf)
    return Promise(curve, eps0, bounds)


def _quality(oracle: Oracle, domain: Domain, descends: bool) -> float:
    """The quality with which the rates hold, 0 where they do not."""
    if isinstance(oracle, Approximate):
        return oracle.delta
    if not all(part.asked.exact for part in domain.parts):
        return 0.0
    if isinstance(oracle, Lazy) and descends and all(part.compact or part.signless for part in domain.parts):
        return rates.lazy_quality(oracle.K)
    return float(isinstance(oracle, Exact))


def _hull_bounds(run: _Run) -> Iterator[Bound]:
    """The sublinear rates of Frank-Wolfe, and the linear ones of away and pairwise steps."""
    f, A, decrease = run.f, run.part.A, run.decrease
    if decrease.L is not None:
        D = geometry.diameter(A) if decrease.diameter is None else Interval.of(decrease.diameter)
        if math.isfinite(D.upper):
            curve = rates.frank_wolfe(run.steps, L=decrease.L, diameter=D, eps0=run.eps0, delta=run.delta)
            constants = f"L = {decrease.L:.4g}, diameter <= {D.upper:.4g}, delta = {run.delta:g}"
            yield Bound("Theorem inexactFW", curve, constants)
            if D.lower > 0:
                yield from _pyramidal_bounds(run, decrease.L, D)
    if f.quadratic and decrease.exact:
        C = geometry.curvature(f, A)
        curve = rates.frank_wolfe_affine(run.steps, C=C, eps0=run.eps0, delta=run.delta)
        yield Bound("Theorem sublinearFWAffineInvariant", curve, f"C_f <= {C.upper:.4g}, delta = {run.delta:g}")


def _pyramidal_bounds(run: _Run, L: float, size: Interval) -> Iterator[Bound]:
    """The linear rates of away and pairwise steps along directions of at most this size."""
    f, A = run.f, run.part.A
    covered = run.decrease.moves != "toward" and not run.lazy and f.mu > 0 and run.begins_with_own_atoms
    if not covered or A.size is None:
        return
    width = geometry.pyramidal_width(A, origin=run.over_cone)
    if not width.lower > 0:
        return
    known: dict[str, Any] = {"mu": f.mu, "L": L, "width": width, "diameter": size, "eps0": run.eps0, "delta": run.delta}
    if run.swaps:
        name, curve = "Rate of pairwise steps", rates.pairwise_steps(run.t, **known, n=A.size)
    else:
        name, curve = "Rate of away steps", rates.away_steps(run.t, **known)
    constants = f"mu = {f.mu:.4g}, L = {L:.4g}, pyramidal width >= {width.lower:.4g}, steps <= {size.upper:.4g}"
    yield Bound(name, curve, f"{constants}, delta = {run.delta:g}")


def _cone_bounds(run: _Run) -> Iterator[Bound]:
    """The sublinear rate of cone pursuits, and the linear ones of away and pairwise steps."""
    L, A = run.decrease.L, run.part.A
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
    f, A, delta, L = run.f, run.part.asked, run.delta, run.decrease.L
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
