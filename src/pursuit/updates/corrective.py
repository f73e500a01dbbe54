"""Updates that correct the weights of all atoms of S: `NormCorrective` minimises the quadratic upper bound over S
(variant 1 of Algorithms 3 and 4), `FullyCorrective` minimises f itself (OMP, variant 2 of Algorithm 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, number, require, use_python_numbers
from pursuit.arrays import Array, Small, Space
from pursuit.atoms.frames import Atom
from pursuit.domains import Domain, Part
from pursuit.line_search import line_search, tilted
from pursuit.metrics import Identity, Metric
from pursuit.objectives import Objective, inside
from pursuit.state import Stateful
from pursuit.steps import Decrease, Smoothness, UpperBound, check_smoothness, clip, guaranteed
from pursuit.threads import single_threaded_blas
from pursuit.updates.base import Advance, Now, Update
from pursuit.updates.learned import LearnedHessian
from pursuit.updates.newton import DampedHessian, Slope, newton_step, slopes
from pursuit.weights import WeightProblem, projected_gradient

SINGLE_THREADED_NUMBERS = 1 << 23
"""Numbers in the active atoms below which a correction uses one thread of BLAS."""


MAX_COHERENCE = 0.5
"""The largest cosine between two atoms of one call that enter a span together."""

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


def _small_products(active: ActiveSet) -> AbstractContextManager[None]:
    """The context of a correction: one thread of BLAS while the active atoms are small."""
    small = active.space.numpy and active.space.size * len(active.atoms) < SINGLE_THREADED_NUMBERS
    return single_threaded_blas if small else nullcontext()


@dataclass(eq=False)
class _Admission(Stateful):
    """How many atoms of one oracle call enter S: one more than twice the number that got weight last time.

    Where weights are non-negative, superfluous atoms get weight zero, so the first call may add `most`. Over a span
    every atom gets weight, so the first call adds at most 4.
    """

    most: int
    domain: Domain
    several: int = field(init=False)
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.several = self.most
        self.limit = self.most if self.domain.signs.any() else min(self.most, 4)
        self._places: list[int] = []

    def enter(self, now: Now, active: ActiveSet) -> None:
        """Add atoms of the oracle's answers to S."""
        parts = zip(self.domain.parts, now.answers, strict=True)
        answers = [(b, answer.atoms if part.nonnegative or self.most == 1 else _apart(active.space, answer.atoms))
                   for b, (part, answer) in enumerate(parts)]  # fmt: skip
        self._places = [active.enter(atom, b)[0] for b, atoms in answers for atom in atoms[: self.limit]]

    def adapt(self, active: ActiveSet) -> None:
        """Set the limit for the next call, once the new weights are known."""
        if self._places:
            used = sum(bool(active.weights[i]) for i in self._places)
            self.limit = active.wanted = min(self.several, 2 * used + 1)
            self._places = []  # places change when atoms are dropped


def _apart(space: Space, atoms: Sequence[Atom]) -> Sequence[Atom]:
    """Those of some atoms that are not like a better one: over a span, all neighbours of one event would get weight."""
    if len(atoms) == 1:
        return atoms
    some = ActiveSet(space, [False])
    for atom in atoms:
        some.enter(atom)
    G = some.gram(Identity(), np.arange(len(some.atoms)))
    G, kept = abs(G) / np.sqrt(np.outer(G.diagonal(), G.diagonal())), [0]
    for i in range(1, len(G)):
        if not G[i, kept].max() > MAX_COHERENCE:
            kept.append(i)
    return [some.atoms[i] for i in kept]


@dataclass(eq=False)
class _SmallProblem(Stateful):
    """The small problem of a run, kept up to date with the active set: Gram matrix in a metric, constraints, factor."""

    domain: Domain
    metric: Metric
    admission: _Admission
    problem: WeightProblem = field(init=False)
    members: list[Atom] = field(default_factory=list, init=False)
    _calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.problem = self.domain.weight_problem()
        works = [part.asked.work for part in self.domain.parts]
        self._oracle_work = math.inf if None in works else sum(work or 0.0 for work in works)

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
            self.problem.extend(active.rows(self.metric, known), self.domain.signs[blocks], blocks)
            self.problem.eps = active.space.eps
            self.members.extend(active.atoms[known:])

    def set_weights(self, active: ActiveSet, weights: Small, correlations: Small) -> None:
        """Set the weights of S and compute its point; drop unused atoms, the least promising, if there are too many."""
        active.weights = weights
        self._calls += 1
        several, unused, kept = self.admission.several, np.flatnonzero(weights == 0), MAX_UNUSED_ATOMS
        if several > 1 and self._wastes_work(active):
            self.admission.several, kept = 1, 0  # one atom a call from now on, and a small problem of those with weight
        if several > 1:
            self.admission.adapt(active)
        if several > 1 and (not kept or len(unused) > kept + 2 * (len(weights) - len(unused))):
            keep = np.ones(len(weights), dtype=bool)
            keep[unused[np.argsort(correlations[unused], kind="stable")[kept // 2 :]]] = False
            active.keep(keep)
            self.problem.keep(keep)
            self.members = list(active.atoms)
        active.refresh()


@dataclass(frozen=True)
class NormCorrective(Update):
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

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        valid = self.inner is None or as_int_or_nan(self.inner) >= 1
        require(valid, "inner", self.inner, "at least 1 step, or None for the exact minimum")
        _check_several(self.several)
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        return _projection(UpperBound(f, space, self.L, self.metric), domain, self.several, self.inner)

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        return guaranteed(self.L, self.metric, f) if self.inner is None else None


@dataclass(eq=False)
class _Projection(Stateful):
    """The minimum of the upper bound over S in one run. With the Hessian of a quadratic f as its metric and L = 1 the
    bound is f itself, and over a span this is OMP: one more row of a Cholesky factor, and a triangular solve."""

    bound: UpperBound
    small: _SmallProblem
    inner: int | None

    @np.errstate(over="ignore", invalid="ignore")  # models that leave the range of floats are found and replaced
    def __call__(self, now: Now, active: ActiveSet) -> None:
        with _small_products(active):
            self.small.enter(now, active)
            q = active.slopes(now.grad)
            one_atom = self.small.admission.most == 1
            share = 1e-3 / len(now.answers)  # of each block
            tolerance = 0.0 if one_atom else share * abs(self.small.domain.slope(now.answers))
            problem, L = self.small.problem, self.bound.L
            if not self.bound.fixed:
                weights = self._backtrack(now, q, active, tolerance)
            elif self.inner is None and L is not None:
                weights = problem.descend(q / L, active.weights, tolerance / L)
            else:
                weights = self._weights(L, q, active, tolerance)
            if weights is not None and problem.ray is not None:
                self._follow(problem.ray, q, active)
            self.small.set_weights(active, active.weights if weights is None else weights, q)

    def _weights(self, L: float | None, q: Small, active: ActiveSet, tolerance: float) -> Small:
        """The weights that minimise the bound with this L; zeros with a slope above -tolerance stay zero."""
        assert L is not None
        if self.inner is not None:
            return projected_gradient(self.small.problem, q / L, active.weights, self.inner)
        return self.small.problem.descend(q / L, active.weights, tolerance / L)

    def _backtrack(self, now: Now, q: Small, active: ActiveSet, tolerance: float) -> Small | None:
        """The weights for the first L whose bound holds; None where there is none."""

        def propose(L: float) -> tuple[Small, Array, float, float]:
            w = self._weights(L, q, active, tolerance)
            d = w - active.weights
            cost = active.cost_of(d)
            return w, active.synthesize(d), float(q @ d) - cost, cost

        first = self.bound.L is None
        along = _toward_answers(self.small.domain, active, now, q) if first else (active.x, 0.0)
        return self.bound.minimise(active.x, now.value - active.cost, along, propose)

    def _follow(self, weights: Small, q: Small, active: ActiveSet) -> None:
        """Raise UnboundedError if f falls for ever along a direction without curvature."""
        ray = active.synthesize(weights)
        priced = tilted(self.bound.f, self.bound.space, ray, active.cost_of(weights))
        line_search(priced, active.x, ray, float(q @ weights), math.inf)


def _projection(bound: UpperBound, domain: Domain, several: int, inner: int | None = None) -> _Projection:
    return _Projection(bound, _SmallProblem(domain, bound.metric, _Admission(several, domain)), inner)


@dataclass(frozen=True)
class FullyCorrective(Update):
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

    def __post_init__(self) -> None:
        _check_several(self.several)
        valid = self.accuracy is None or 0 < number(self.accuracy) < 1
        require(valid, "accuracy", self.accuracy, "a fraction between 0 and 1")
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        if f.quadratic:
            return _projection(UpperBound(f, space, 1.0, f.hessian(space.zeros())), domain, self.several)
        learns = not (f.has_hessian and f.convex)
        model = LearnedHessian(space) if learns else DampedHessian(f)
        return _NewtonSteps(f, domain, self.accuracy, model, _Admission(self.several, domain))

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        return Decrease(f.L, exact=f.quadratic) if f.quadratic or f.L is not None else None


@dataclass(eq=False)
class _NewtonSteps(Stateful):
    """Newton steps on the weights of S in one run, with the Hessian of f or a learned one."""

    f: Objective
    domain: Domain
    accuracy: float | None
    model: DampedHessian | LearnedHessian
    admission: _Admission

    @np.errstate(over="ignore", invalid="ignore")
    def __call__(self, now: Now, active: ActiveSet) -> None:
        with _small_products(active):
            self.admission.enter(now, active)
            if isinstance(self.model, LearnedHessian):
                q = slopes(self.domain, active, now.grad)
                self.model.begin(self.f, active.x, now.grad, *_toward_answers(self.domain, active, now, q))
            before = active.weights, active.x
            value = self._descend(active, now.value, now.grad, self._goal(now))
            if self.f.L is not None and len(self.domain.parts) == 1 and not self.domain.parts[0].price:
                self._keep_up(now, active, value, *before)
            self.admission.adapt(active)

    def _goal(self, now: Now) -> float:
        """The gap over S at which the steps end."""
        hulls = all(part.compact or part.price for part in self.domain.parts)
        accuracy = self.accuracy or (0.1 if hulls else 1e-12 if self.f.has_hessian else 0.01)
        return accuracy * abs(self.domain.slope(now.answers))

    def _keep_up(self, now: Now, active: ActiveSet, value: float, weights: Small, x: Array) -> None:
        """A short step from the weights and the point before, where it is proved to lower f further: rates rest on it,
        and f is minimised to an accuracy only."""
        part, answer, after, L = self.domain.parts[0], now.answers[0], (active.weights, active.x), self.f.L or 0.0
        active.weights, active.x = weights, x
        d = part.toward(active, answer, answer.level)
        curvature = L * active.space.norm(d.vector) ** 2
        gamma = clip(-d.slope / curvature, d.reach) if curvature > 0 else 0.0
        promised = now.value + gamma * (d.slope + 0.5 * gamma * curvature)
        if value <= promised or self._by_rounding(value, promised, now.grad, active):
            active.weights, active.x = after
        else:
            d.move(gamma)
            active.refresh()

    def _descend(self, active: ActiveSet, value: float, grad: Array, goal: float) -> float:
        """Newton steps until the gap over S is below the goal, or only rounding is left. Returns f there."""
        f, domain = self.f, self.domain
        exact = self.accuracy is None and isinstance(self.model, DampedHessian)
        lowest = closest = math.inf
        for step in range(MAX_INNER_STEPS):
            q = slopes(domain, active, grad)
            gap = domain.inner_gap(active.weights, q, active.blocks)
            if step and (gap <= goal or not (value < lowest or gap < closest) or active.deadline.passed):
                break
            lowest, closest = value, gap if step else math.inf
            before = active.weights, active.x
            if not newton_step(f, domain, active, Slope(value, q, goal, 0.0 if exact else MAX_SLOPE_LEFT), self.model):
                break
            last, last_grad = value, grad
            value, grad = f.value_and_grad(active.x)
            value += active.cost
            if not inside(active.space, value, grad) or not (
                value <= last or self._by_rounding(value, last, last_grad, active)
            ):
                active.weights, active.x = before
                return last
            self.model.observe(active.x, grad)
        return value

    @staticmethod
    def _by_rounding(value: float, last: float, last_grad: Array, active: ActiveSet) -> bool:
        """Whether rounding in x, where long atoms cancel, may have raised f so far. The gradient is that of the last
        point: at this one it may be huge because f has risen."""
        space = active.space
        return value <= last + 4.0 * space.eps * (abs(last) + space.norm(last_grad) * active.terms)


def _toward_answers(domain: Domain, active: ActiveSet, now: Now, correlations: Small) -> tuple[Array, float]:
    """The direction from x to the oracle's atoms, which are in S already, and its slope: z_b - x_b for hulls, z_b for
    cones and spans, added up."""
    d = np.where(domain.hulls[active.blocks], -active.weights, 0.0)
    for block, answer in enumerate(now.answers):
        place, sign = active.enter(answer.atoms[0], block)
        d[place] += sign
    return active.synthesize(d), float(correlations @ d) - active.cost_of(d)


def _check_several(several: int) -> None:
    require(as_int_or_nan(several) >= 1, "several", several, "the number of atoms per oracle call, at least 1")
