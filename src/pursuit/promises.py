"""What the theorems promise of a run: the strongest bound that applies, as a curve, with the preconditions it used."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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
    """One theorem's bound on f(x_t) - f* for every t of a run."""

    theorem: str
    curve: Small
    needs: str


@dataclass(frozen=True)
class Promise:
    """Bounds on f(x_t) - f*, t = 0, 1, ...: `curve` is the smallest at each t, `bounds` all that apply.

    `eps0` is the bound on f(x_0) - f* that they start from: f(x_0) less the certified lower bound of the run.
    """

    curve: Small
    eps0: float
    bounds: list[Bound]

    def __str__(self) -> str:
        lines = [f"f(x_0) - f* <= {self.eps0:.4g}, f(x_{len(self.curve) - 1}) - f* <= {self.curve[-1]:.4g}"]
        lines += [f"  {b.theorem}: {b.curve[-1]:.4g}, with {b.needs}" for b in self.bounds]
        return "\n".join(lines if self.bounds else [*lines, "  no theorem applies: only f(x_t) <= f(x_0) is known"])


@dataclass(frozen=True)
class _Run:
    """A finished run as the theorems see it."""

    f: Objective
    part: Part
    update: Any
    delta: float
    t: Small
    eps0: float
    x0: Array
    mdw: Any
    rho: Any


def promise(
    f: Objective, domain: Domain, update: Any, oracle: Any, values: Small, lower: float, x0: Array, mdw: Any, rho: Any
) -> Promise:
    """The bounds that hold for a run with these parts, whose values and certified lower bound on f* are known."""
    t, eps0 = np.arange(len(values), dtype=np.float64), max(float(values[0]) - lower, 0.0)
    exact = isinstance(oracle, Exact) and all(part.asked.exact for part in domain.parts)
    delta = 1.0 if exact else oracle.delta if isinstance(oracle, Approximate) else 0.0
    bounds: list[Bound] = []
    if len(domain.parts) == 1 and delta > 0 and math.isfinite(eps0) and f.exact:
        run = _Run(f, domain.parts[0], update, delta, t, eps0, x0, mdw, rho)
        bounds = [*_hull(run)] if isinstance(run.part, Hull) else [*_span(run)] if isinstance(run.part, Span) else []
    curves = [b.curve for b in bounds]
    if getattr(update, "descends", False):
        curves.append(np.full(len(t), eps0))
    curve = np.minimum.reduce(curves) if curves else np.full(len(t), math.inf)
    return Promise(curve, eps0, bounds)


def _smooth(run: _Run) -> bool:
    """Whether the update minimises an upper bound of f in the norm of H that is valid and no looser than f.L's."""
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


def _hull(run: _Run) -> Iterator[Bound]:
    A, step = run.part.A, getattr(run.update, "step", None)
    plain = isinstance(run.update, Plain)
    fixed = plain and isinstance(step, DiameterStep) and step.L in (None, run.f.L) and run.f.L is not None
    if run.f.L is not None and (_smooth(run) or fixed or (plain and isinstance(step, OpenLoop))):
        given = step.diameter if isinstance(step, DiameterStep) else None
        D = Interval.of(given) if given is not None else geometry.diameter(A)
        if math.isfinite(D.upper):
            curve = rates.frank_wolfe(run.t, L=run.f.L, diameter=D, eps0=run.eps0, delta=run.delta)
            needs = f"L = {run.f.L:.4g}, diameter <= {D.upper:.4g}, delta = {run.delta:g}"
            yield Bound("Theorem inexactFW", curve, needs)
    exact = isinstance(step, LineSearch) or isinstance(run.update, FullyCorrective)
    if run.f.quadratic and exact:
        C = geometry.curvature(run.f, A)
        curve = rates.frank_wolfe_affine(run.t, C=C, eps0=run.eps0, delta=run.delta)
        yield Bound("Theorem sublinearFWAffineInvariant", curve, f"C_f <= {C.upper:.4g}, delta = {run.delta:g}")


def _span(run: _Run) -> Iterator[Bound]:
    if not _smooth(run):
        return
    f, A, delta = run.f, run.part.asked, run.delta
    assert f.L is not None
    radius = geometry.radius(A)
    if f.mu > 0:
        width = geometry.mdw(A) if run.mdw is None else _interval(run.mdw)
        if width.lower > 0:
            curve = rates.linear(run.t, mu=f.mu, L=f.L, mdw=width, radius=radius, eps0=run.eps0, delta=delta)
            needs = f"mu = {f.mu:.4g}, L = {f.L:.4g}, width >= {width.lower:.4g}, radius <= {radius.upper:.4g}"
            yield Bound("Theorem linearRateMPinexact", curve, f"{needs}, delta = {delta:g}")
    bound = geometry.rho(A, f, run.x0) if run.rho is None else _interval(run.rho)
    if math.isfinite(bound.upper):
        curve = rates.matching_pursuit_sharp(run.t, L=f.L, radius=radius, rho=bound, eps0=run.eps0, delta=delta)
        needs = f"L = {f.L:.4g}, rho <= {bound.upper:.4g}, radius <= {radius.upper:.4g}, delta = {delta:g}"
        yield Bound("Theorem inexactMP, sharp form", curve, needs)


def _interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else Interval.of(float(value))
