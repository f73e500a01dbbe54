"""What the theorems promise about a finished run: the bounds that apply, as curves, and the constants they use."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pursuit import geometry, rates
from pursuit._arrays import Array, Small
from pursuit.domains import Domain, Hull, Part, Span
from pursuit.geometry import Interval
from pursuit.objectives import Objective
from pursuit.oracles import Approximate, Exact
from pursuit.steps import DiameterStep, LineSearch, OpenLoop, ShortStep
from pursuit.updates import FullyCorrective, NormCorrective, Plain


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
    t: Small
    eps0: float
    x0: Array
    mdw: Any
    rho: Any


def promise(result: FinishedRun, mdw: Any = None, rho: Any = None) -> Promise:
    """The bounds that hold for a run. Its certified lower bound on f* gives eps_0; `mdw` and `rho` are computed where
    they are None."""
    f, domain, oracle, values = result.f, result.domain, result.oracle, result.trace.value
    t, eps0 = np.arange(len(values), dtype=np.float64), max(float(values[0]) - result.lower, 0.0)
    exact = isinstance(oracle, Exact) and all(part.asked.exact for part in domain.parts)
    delta = 1.0 if exact else oracle.delta if isinstance(oracle, Approximate) else 0.0
    bounds: list[Bound] = []
    if len(domain.parts) == 1 and delta > 0 and math.isfinite(eps0) and f.exact:
        run = _Run(f, domain.parts[0], result.update, delta, t, eps0, result.start, mdw, rho)
        if isinstance(run.part, Hull):
            bounds = [*_hull_bounds(run)]
        elif isinstance(run.part, Span):
            bounds = [*_span_bounds(run)]
    curves = [b.curve for b in bounds]
    if getattr(result.update, "descends", False):
        curves.append(np.full(len(t), eps0))
    curve = np.minimum.reduce(curves) if curves else np.full(len(t), math.inf)
    return Promise(curve, eps0, bounds)


def _minimises_upper_bound(run: _Run) -> bool:
    """Whether the update gains at least as much as the step that minimises the quadratic upper bound with f.L."""
    if run.f.L is None:
        return False
    update, step = run.update, getattr(run.update, "step", None)
    if isinstance(update, FullyCorrective):
        return run.f.quadratic  # elsewhere its inner problem is solved to an accuracy
    if isinstance(update, NormCorrective):
        return update.inner is None and update.metric is None and update.L in (None, run.f.L)
    if isinstance(step, ShortStep):
        return step.metric is None and step.L in (None, run.f.L)
    return isinstance(step, LineSearch)


def _hull_bounds(run: _Run) -> Iterator[Bound]:
    """The sublinear rates of Frank-Wolfe."""
    A, step = run.part.A, getattr(run.update, "step", None)
    plain = isinstance(run.update, Plain)
    fixed = plain and isinstance(step, DiameterStep) and step.L in (None, run.f.L) and run.f.L is not None
    if run.f.L is not None and (_minimises_upper_bound(run) or fixed or (plain and isinstance(step, OpenLoop))):
        given = step.diameter if isinstance(step, DiameterStep) else None
        D = Interval.of(given) if given is not None else geometry.diameter(A)
        if math.isfinite(D.upper):
            curve = rates.frank_wolfe(run.t, L=run.f.L, diameter=D, eps0=run.eps0, delta=run.delta)
            constants = f"L = {run.f.L:.4g}, diameter <= {D.upper:.4g}, delta = {run.delta:g}"
            yield Bound("Theorem inexactFW", curve, constants)
    exact = isinstance(step, LineSearch) or isinstance(run.update, FullyCorrective)
    if run.f.quadratic and exact:
        C = geometry.curvature(run.f, A)
        curve = rates.frank_wolfe_affine(run.t, C=C, eps0=run.eps0, delta=run.delta)
        yield Bound("Theorem sublinearFWAffineInvariant", curve, f"C_f <= {C.upper:.4g}, delta = {run.delta:g}")


def _span_bounds(run: _Run) -> Iterator[Bound]:
    """The linear and the sublinear rate of matching pursuit."""
    if not _minimises_upper_bound(run):
        return
    f, A, delta = run.f, run.part.asked, run.delta
    assert f.L is not None
    radius = geometry.radius(A)
    if f.mu > 0:
        width = geometry.mdw(A) if run.mdw is None else _interval(run.mdw)
        if width.lower > 0:
            curve = rates.linear(run.t, mu=f.mu, L=f.L, mdw=width, radius=radius, eps0=run.eps0, delta=delta)
            constants = f"mu = {f.mu:.4g}, L = {f.L:.4g}, width >= {width.lower:.4g}, radius <= {radius.upper:.4g}"
            yield Bound("Theorem linearRateMPinexact", curve, f"{constants}, delta = {delta:g}")
    bound = geometry.rho(A, f, run.x0) if run.rho is None else _interval(run.rho)
    if math.isfinite(bound.upper):
        curve = rates.matching_pursuit_sharp(run.t, L=f.L, radius=radius, rho=bound, eps0=run.eps0, delta=delta)
        constants = f"L = {f.L:.4g}, rho <= {bound.upper:.4g}, radius <= {radius.upper:.4g}, delta = {delta:g}"
        yield Bound("Theorem inexactMP, sharp form", curve, constants)


def _interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)  # which refuses what is no number
