"""Updates that correct the weights of all atoms of S: `NormCorrective` minimises the quadratic upper bound over S
(variant 1 of Algorithms 3 and 4), `FullyCorrective` minimises f itself (OMP, variant 2 of Algorithm 6)."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pursuit._memory import Remembers, WithMemory
from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, describe, number, use_python_numbers
from pursuit.arrays import Array, Small, Space
from pursuit.domains import Domain
from pursuit.line_search import line_search, tilted
from pursuit.metrics import Metric
from pursuit.objectives import Objective, inside
from pursuit.steps import Smoothness, UpperBound, check_smoothness
from pursuit.threads import single_threaded_blas
from pursuit.updates.base import Advance, Now
from pursuit.updates.learned import LearnedHessian
from pursuit.updates.newton import DampedHessian, newton_step, slopes
from pursuit.weights import projected_gradient

SINGLE_THREADED_NUMBERS = 1 << 23
"""Numbers in the active atoms below which a correction uses one thread of BLAS."""


MAX_UNUSED_ATOMS = 128
"""Atoms of weight zero that S may hold, beside two per atom with weight; beyond it the least promising are dropped."""

AMPLE_WORK = 5e8
"""Multiplications of small problems, about half a second, up to which a run only counts oracle calls."""

EXCHANGES_PER_ATOM = 6
"""Changes of the passive set for every active atom, from which on most of the atoms that enter soon leave again."""

MAX_INNER_STEPS = 50
"""Steps of a fully corrective update per oracle call."""

MAX_SLOPE_LEFT = 0.1
"""The share of its slope that a line search may leave where the user asks for few digits: the next step corrects it."""


def with_single_threaded_blas(advance: Advance, space: Space) -> Advance:
    """The same update, with one thread of BLAS while the active atoms are small."""

    def advance_single_threaded(now: Now, active: ActiveSet) -> None:
        small = space.numpy and space.size * len(active.atoms) < SINGLE_THREADED_NUMBERS
        with single_threaded_blas if small else nullcontext(), np.errstate(over="ignore", invalid="ignore"):
            advance(now, active)  # models that leave the range of floats are found and replaced

    return WithMemory(advance_single_threaded, advance)


class _Admission(Remembers):
    """How many atoms of one oracle call enter S: one more than twice the number that got weight last time.

    Where weights are non-negative, superfluous atoms get weight zero, so the first call may add `several`. Over a span
    every atom gets weight, so the first call adds at most 4.
    """

    remembers = ("several", "limit")

    def __init__(self, several: int, domain: Domain) -> None:
        self.several = several
        self.limit = several if any(part.nonnegative for part in domain.parts) else min(several, 4)
        self._places: list[int] = []

    def enter(self, now: Now, active: ActiveSet) -> None:
        """Add atoms of the oracle's answers to S."""
        self._places = now.enter(active, self.limit)

    def adapt(self, active: ActiveSet) -> None:
        """Set the limit for the next call, once the new weights are known."""
        if self._places:
            used = sum(bool(active.weights[i]) for i in self._places)
            self.limit = active.wanted = min(self.several, 2 * used + 1)
            self._places = []  # places change when atoms are dropped


class _SmallProblem(Remembers):
    """The small problem of a run, kept up to date with the active set: Gram matrix in a metric, constraints, factor."""

    remembers = ("admission", "problem", "members", "_calls")

    def __init__(self, domain: Domain, metric: Metric, several: int) -> None:
        self.domain, self.metric, self.admission = domain, metric, _Admission(several, domain)
        self.problem = domain.weight_problem()
        self.members: list[Any] = []
        works = [part.asked.work for part in domain.parts]
        self._oracle_work = math.inf if None in works else sum(work or 0.0 for work in works)
        self._calls = 0

    def _wastes_work(self, active: ActiveSet) -> bool:
        """Whether the small problems take far longer than the oracle, while most of the atoms that enter soon leave."""
        work, ample = self.problem.work, max(AMPLE_WORK, 10.0 * self._calls * self._oracle_work)
        return work > ample and self.problem.rounds > EXCHANGES_PER_ATOM * len(active)

    def enter(self, now: Now, active: ActiveSet) -> None:
        """Add atoms of the oracle's answers to S and to the Gram matrix."""
        self.admission.enter(now, active)
        known = len(self.members)
        if self.members != active.atoms[:known]:  # a refinement has replaced atoms
            self.problem, self.members, known = self.domain.weight_problem(), [], 0
        if known < len(active.atoms):
            blocks = active.blocks[known:]
            nonnegative = np.array([part.nonnegative for part in self.domain.parts])[blocks]
            self.problem.extend(active.rows(self.metric, known), nonnegative, blocks)
            self.problem.eps = active.space.eps
            self.members.extend(active.atoms[known:])

    def set_weights(self, active: ActiveSet, weights: Small, correlations: Small) -> None:
        """Set the weights of S and compute its point; drop unused atoms, the least promising, if there are too many."""
        active.weights = weights
        self._calls += 1
        several, unused, kept = self.admission.several, np.flatnonzero(weights == 0), MAX_UNUSED_ATOMS
        if several > 1 and self._wastes_work(active):
            self.admission.several, kept = 1, 0  # one atom a call from now on, and a small problem of those with weight
        self.admission.adapt(active)
        if several > 1 and (not kept or len(unused) > kept + 2 * (len(weights) - len(unused))):
            keep = np.ones(len(weights), dtype=bool)
            keep[unused[np.argsort(correlations[unused], kind="stable")[kept // 2 :]]] = False
            active.keep(keep)
            self.problem.keep(keep)
            self.members = list(active.atoms)
        active.refresh()


@dataclass(frozen=True)
class NormCorrective:
    """Variant 1 of Algorithms 3 and 4: the projection of b = x - grad f(x) / L on conv(S) or lin(S).

    Parameters
    ----------
    inner : int, optional
        None: the projection is exact. A number: this many projected-gradient steps on the weights, the paper's cheaper
        alternative.
    several : int
        The number of atoms of one oracle call that may enter S together, where the set can name several.
    L : float, Backtracking or None
        Smoothness; None: the objective's, or backtracking where it has none.
    metric : positive definite matrix or diagonal, optional
        The norm of the projection; L then belongs to that norm.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> D = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> ps.minimize(ps.LeastSquares([1.0, 2.0]), ps.lin(ps.Dictionary(D)), ps.NormCorrective()).coef.round(12)
    array([-1.,  2.])
    """

    inner: int | None = None
    several: int = 1
    L: Smoothness = None
    metric: Any = None
    blends: ClassVar[bool] = False
    descends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        if self.inner is not None and not as_int_or_nan(self.inner) >= 1:
            raise ValueError(f"inner is {describe(self.inner)}; give at least 1 step, or None for the exact minimum.")
        _check_several(self.several)
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        bound = UpperBound(f, space, self.L, self.metric)
        small = _SmallProblem(domain, bound.metric, self.several)

        def advance(now: Now, active: ActiveSet) -> None:
            small.enter(now, active)
            correlations = active.slopes(now.grad)
            tolerance = 0.0 if self.several == 1 else 1e-3 * abs(domain.slope(now.answers))
            weights = self._minimise_bound(bound, small, active, now, now.value - active.cost, correlations, tolerance)
            small.set_weights(active, weights, correlations)

        return with_single_threaded_blas(WithMemory(advance, bound, small), space)

    def _minimise_bound(
        self,
        bound: UpperBound,
        small: _SmallProblem,
        active: ActiveSet,
        now: Now,
        value: float,
        correlations: Small,
        tolerance: float = 0.0,
    ) -> Small:
        """Weights that minimise the upper bound at x over S, where f has this value, plus their cost. Zeros with a
        slope above -tolerance stay zero."""
        start, problem = active.weights, small.problem

        def propose(L: float) -> tuple[Small, Array, float, float]:
            if self.inner is None:
                w = problem.descend(correlations / L, start, tolerance / L)
            else:
                w = projected_gradient(problem, correlations / L, start, self.inner)
            if bound.fixed:  # the displacement is not used
                return w, None, 0.0, 0.0
            d, cost = w - start, active.cost_of(w - start)
            return w, active.synthesize(d), float(correlations @ d) - cost, cost

        along = _toward_answers(small.domain, active, now, correlations) if bound.L is None else (active.x, 0.0)
        weights = bound.minimise(active.x, value, along, propose)
        if weights is None:
            return start
        if problem.ray is not None:  # raises UnboundedError if f falls for ever along it
            ray, slope = active.synthesize(problem.ray), float(correlations @ problem.ray)
            priced = tilted(bound.f, bound.space, ray, active.cost_of(problem.ray))
            line_search(priced, bound.space, active.x, ray, slope, math.inf)
        return weights


@dataclass(frozen=True)
class FullyCorrective:
    """argmin of f over conv(S) or lin(S): OMP, fully corrective Frank-Wolfe, variant 2 of Algorithm 6.

    For quadratic f this is one small problem, solved exactly. For other f with a Hessian it is Newton's method on the
    weights, damped where the Hessian misleads, each model solved exactly under the constraints, with an exact line
    search. Without a Hessian, or without convexity, the model is learned from gradients.

    Parameters
    ----------
    several : int
        The number of atoms of one oracle call that may enter S together, where the set can name several.
    accuracy : float, optional
        Where f is not quadratic, the gap over S is reduced to this fraction of the gap over the domain. None: 0.1 over
        hulls, elsewhere 1e-12, or 0.01 without a Hessian.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((20, 50))
    >>> y = D[:, [3, 7]] @ [1.0, -2.0]
    >>> r = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), ps.FullyCorrective(), stop=ps.Stop(atoms=5))
    >>> sorted(a.source for a in r.atoms), r.status.name
    ([3, 7], 'STATIONARY')
    """

    several: int = 1
    accuracy: float | None = None
    blends: ClassVar[bool] = False
    descends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_several(self.several)
        if self.accuracy is not None and not 0 < number(self.accuracy) < 1:
            raise ValueError(f"accuracy is {describe(self.accuracy)}; give a fraction between 0 and 1.")
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        if f.quadratic:
            exact = NormCorrective(several=self.several, L=1.0, metric=f.hessian(space.zeros()))
            return exact.begin(f, domain, space)
        return with_single_threaded_blas(self._newton_steps(f, domain, space), space)

    def _goal(self, domain: Domain, now: Now, exact: bool) -> float:
        hulls = all(part.compact or part.price for part in domain.parts)
        accuracy = self.accuracy or (0.1 if hulls else 1e-12 if exact else 0.01)
        return accuracy * abs(domain.slope(now.answers))

    def _newton_steps(self, f: Objective, domain: Domain, space: Space) -> Advance:
        admission = _Admission(self.several, domain)
        learns = not (f.has_hessian and f.convex)
        model = LearnedHessian(space) if learns else DampedHessian(f)
        left = 0.0 if self.accuracy is None and not learns else MAX_SLOPE_LEFT

        def advance(now: Now, active: ActiveSet) -> None:
            admission.enter(now, active)
            goal, value, grad = self._goal(domain, now, f.has_hessian), now.value, now.grad
            if isinstance(model, LearnedHessian):
                model.begin(f, active.x, grad, *_toward_answers(domain, active, now, slopes(domain, active, grad)))
            lowest = closest = math.inf
            for step in range(MAX_INNER_STEPS):
                q = slopes(domain, active, grad)
                inner = domain.inner_gap(active, q)
                if step and (inner <= goal or not (value < lowest or inner < closest)):  # or only rounding is left
                    break
                if step and active.deadline.passed:
                    break
                lowest, closest = value, inner if step else math.inf
                before = active.weights, active.x
                if not newton_step(f, domain, active, value, q, goal, model, left):
                    break
                last, slope = value, grad  # of the last point: at this one it may be huge because f has risen
                value, grad = f.value_and_grad(active.x)
                value += active.cost
                if not inside(space, value, grad) or not (
                    value <= last or value <= last + 4.0 * space.eps * (abs(last) + space.norm(slope) * active.terms)
                ):  # rounding in x, where long atoms cancel, changes f by so much
                    active.weights, active.x = before
                    break
                model.observe(active.x, grad)
            admission.adapt(active)

        return WithMemory(advance, admission, model)


def _toward_answers(domain: Domain, active: ActiveSet, now: Now, correlations: Small) -> tuple[Array, float]:
    """The direction from x to the oracle's atoms, which are in S already, and its slope: z_b - x_b for hulls, z_b for
    cones and spans, added up."""
    hulls = np.array([part.compact for part in domain.parts])
    d = np.where(hulls[active.blocks], -active.weights, 0.0)
    for block, answer in enumerate(now.answers):
        place, sign = active.enter(answer.atoms[0], block)
        d[place] += sign
    return active.synthesize(d), float(correlations @ d) - active.cost_of(d)


def _check_several(several: int) -> None:
    if not as_int_or_nan(several) >= 1:
        raise ValueError(f"several is {describe(several)}; give the number of atoms per oracle call, at least 1.")
