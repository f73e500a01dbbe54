"""Updates that correct the weights of all atoms of S: `NormCorrective` minimises the quadratic upper bound over S
(variant 1 of Algorithms 3 and 4), `FullyCorrective` minimises f itself (OMP, variant 2 of Algorithm 6)."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pursuit._arrays import Array, Indices, Small, Space
from pursuit._threads import single_threaded_blas
from pursuit.active import ActiveSet
from pursuit.domains import Domain
from pursuit.metrics import Metric
from pursuit.objectives import Objective
from pursuit.steps import Smoothness, UpperBound, check_smoothness, line_search
from pursuit.updates.base import Advance, Now
from pursuit.weights import WeightProblem, projected_gradient

SINGLE_THREADED_NUMBERS = 1 << 23
"""Numbers in the active atoms below which a correction is not worth more than one thread of BLAS."""


def calmly(advance: Advance, space: Space) -> Advance:
    """The same, on one thread of BLAS while the active atoms are small."""

    def quiet(now: Now, active: ActiveSet) -> None:
        small = space.numpy and space.size * len(active.atoms) < SINGLE_THREADED_NUMBERS
        with single_threaded_blas if small else nullcontext():
            advance(now, active)

    return quiet


class Appetite:
    """How many atoms of one oracle call are worth admitting: twice as many as found a use last time, and one.

    Where weights have signs or a sum, superfluous atoms get weight zero, so the first call may bring as many as it
    likes; over a span every atom gets a weight, so the first brings few.
    """

    def __init__(self, several: int, domain: Domain) -> None:
        self.several = several
        self.most = several if any(part.nonnegative for part in domain.parts) else min(several, 4)
        self._places: list[int] = []

    def enter(self, now: Now, active: ActiveSet) -> None:
        self._places = now.enter(active, self.most)

    def digest(self, active: ActiveSet) -> None:
        if self._places:
            used = sum(bool(active.weights[i]) for i in self._places)
            self.most = active.wanted = min(self.several, 2 * used + 1)
            self._places = []  # once forgotten atoms are gone, places mean others


class _Small:
    """The small problem of a run, kept in step with the active set: Gram matrix in a metric, constraints, factor."""

    MAX_RESTING = 128  # atoms at weight zero that S may hold before the least promising are forgotten

    def __init__(self, domain: Domain, metric: Metric, several: int) -> None:
        self.domain, self.metric, self.appetite = domain, metric, Appetite(several, domain)
        self.problem = domain.weight_problem()
        self.members: list[Any] = []

    def enter(self, now: Now, active: ActiveSet) -> None:
        """Admit the oracle's atoms and bring the Gram matrix up to date."""
        self.appetite.enter(now, active)
        known = len(self.members)
        if self.members != active.atoms[:known]:  # moved atoms, or a new start
            self.problem, self.members, known = self.domain.weight_problem(), [], 0
        if known < len(active.atoms):
            blocks = active.blocks[known:]
            nonnegative = np.array([part.nonnegative for part in self.domain.parts])[blocks]
            self.problem.extend(active.rows(self.metric, known), nonnegative, blocks)
            self.members.extend(active.atoms[known:])

    def settle(self, active: ActiveSet, weights: Small, correlations: Small) -> None:
        """The new weights and their point; if too many atoms rest, those that promise least are forgotten."""
        active.weights = weights
        self.appetite.digest(active)
        resting = np.flatnonzero(weights == 0)
        if self.appetite.several > 1 and len(resting) > self.MAX_RESTING + 2 * (len(weights) - len(resting)):
            keep = np.ones(len(weights), dtype=bool)
            keep[resting[np.argsort(correlations[resting], kind="stable")[self.MAX_RESTING // 2 :]]] = False
            active.keep(keep)
            self.problem.keep(keep)
            self.members = list(active.atoms)
        active.refresh()


@dataclass(frozen=True)
class NormCorrective:
    """Variant 1 of Algorithms 3 and 4: project b = x - grad f(x) / L on conv(S) or lin(S).

    Parameters
    ----------
    inner : int, optional
        None: the projection is exact. A number: that many projected-gradient steps on the weights instead, the paper's
        cheaper alternative.
    several : int
        How many atoms of one oracle call may enter S together, where the set can name them.
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
        if self.inner is not None and (not isinstance(self.inner, int) or self.inner < 1):
            raise ValueError(f"inner is {self.inner!r}; give at least 1 step, or None for the exact minimum.")
        _check_several(self.several)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        bound = UpperBound(f, space, self.L, self.metric)
        small = _Small(domain, bound.metric, self.several)

        def advance(now: Now, active: ActiveSet) -> None:
            small.enter(now, active)
            correlations = active.analyze(now.grad)
            tolerance = 0.0 if self.several == 1 else 1e-3 * abs(domain.slope(now.answers, now.point_dots))
            weights = self.project(bound, small, active, now, now.value, correlations, tolerance)
            small.settle(active, weights, correlations)

        return calmly(advance, space)

    def project(
        self,
        bound: UpperBound,
        small: _Small,
        active: ActiveSet,
        now: Now,
        value: float,
        correlations: Small,
        tolerance: float = 0.0,
    ) -> Small:
        """Weights that minimise the upper bound at x over S; atoms that promise less than the tolerance rest."""
        start, problem = active.weights, small.problem

        def propose(L: float) -> tuple[Small, Array, float]:
            if self.inner is None:
                w = problem.descend(correlations / L, start, tolerance / L)
            else:
                w = projected_gradient(problem, correlations / L, start, self.inner)
            if bound.fixed:  # nobody looks at the displacement
                return w, None, 0.0
            return w, active.synthesize(w - start), float(correlations @ (w - start))

        toward = small.domain.parts[0].toward(active, now.answers[0], now.point_dots[0]) if bound.L is None else None
        along = (active.x, 0.0) if toward is None else (toward.vector, toward.slope)
        weights = bound.minimise(active.x, value, along, propose)
        if problem.ray is not None:  # raises, if f really falls for ever along it
            slope = float(correlations @ problem.ray)
            line_search(bound.f, bound.space, active.x, active.synthesize(problem.ray), slope, math.inf)
        return weights


@dataclass(frozen=True)
class FullyCorrective:
    """argmin of f over conv(S) or lin(S): OMP, fully corrective Frank-Wolfe, variant 2 of Algorithm 6.

    For quadratic f one exact small problem; otherwise Newton's method on the weights, each model solved exactly under
    the constraints, with an exact line search; where f knows no Hessian, repeated norm-corrective steps.

    Parameters
    ----------
    several : int
        How many atoms of one oracle call may enter S together, where the set can name them.
    accuracy : float, optional
        Where f is not quadratic, the inner gap is brought below this fraction of the outer one; None: 0.1 over a hull,
        and over a span until the gradient is orthogonal to S to 1e-12.

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

    MAX_INNER_STEPS: ClassVar[int] = 50  # per oracle call

    def __post_init__(self) -> None:
        _check_several(self.several)
        if self.accuracy is not None and not 0 < self.accuracy < 1:
            raise ValueError(f"accuracy is {self.accuracy}; give a fraction between 0 and 1.")

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        if f.quadratic:
            exact = NormCorrective(several=self.several, L=1.0, metric=f.hessian(space.zeros()))
            return exact.begin(f, domain, space)
        if type(f).hessian is Objective.hessian:
            return calmly(self._repeat(f, domain, space), space)
        return calmly(self._newton(f, domain, space), space)

    def _goal(self, domain: Domain, now: Now) -> float:
        accuracy = self.accuracy or (0.1 if domain.bounded else 1e-12)
        return accuracy * abs(domain.slope(now.answers, now.point_dots))

    def _repeat(self, f: Objective, domain: Domain, space: Space) -> Advance:
        bound = UpperBound(f, space, None, None)
        small, projection = _Small(domain, bound.metric, self.several), NormCorrective()

        def advance(now: Now, active: ActiveSet) -> None:
            small.enter(now, active)
            goal, value, correlations = self._goal(domain, now), now.value, active.analyze(now.grad)
            for _ in range(self.MAX_INNER_STEPS):
                weights = projection.project(bound, small, active, now, value, correlations)
                small.settle(active, weights, correlations)
                value, grad = f.value_and_grad(active.x)
                correlations = active.analyze(grad)
                if domain.inner_gap(active, correlations) <= goal:
                    break

        return advance

    def _newton(self, f: Objective, domain: Domain, space: Space) -> Advance:
        nonnegative, appetite = any(part.nonnegative for part in domain.parts), Appetite(self.several, domain)

        def advance(now: Now, active: ActiveSet) -> None:
            appetite.enter(now, active)
            goal, value, grad = self._goal(domain, now), now.value, now.grad
            lowest = closest = math.inf
            for step in range(self.MAX_INNER_STEPS):
                correlations = active.analyze(grad)
                inner = domain.inner_gap(active, correlations)
                if step and (inner <= goal or not (value < lowest or inner < closest)):  # done, or down to rounding
                    break
                lowest, closest = value, inner if step else math.inf
                d = self._direction(f, domain, active, correlations, goal)
                slope = float(correlations @ d)
                if not slope < 0:
                    break
                gamma = line_search(f, space, active.x, active.synthesize(d), slope, 1.0 if nonnegative else math.inf)
                before = active.weights, active.x
                active.weights = active.weights + gamma * d
                active.refresh()
                ceiling = value + 4.0 * space.eps * abs(value)
                value, grad = f.value_and_grad(active.x)
                if not value <= ceiling:
                    active.weights, active.x = before
                    break
            appetite.digest(active)

        return advance

    def _direction(self, f: Objective, domain: Domain, active: ActiveSet, q: Small, goal: float) -> Small:
        """The Newton direction on the weights: support, and resting atoms that could help."""
        which = self._useful(domain, active, q, goal)
        hessian = f.hessian(active.x)
        assert hessian is not None
        G, w, blocks = active.gram(hessian, which), active.weights[which], active.blocks[which]
        ridge = 1e-12 * float(np.trace(G)) / max(len(which), 1)
        G[np.diag_indices_from(G)] += ridge if ridge > 0 else float(np.abs(q).max()) or 1.0
        nonnegative = np.array([part.nonnegative for part in domain.parts])[blocks]
        small = WeightProblem.of(G, nonnegative, blocks, [part.total for part in domain.parts])
        d = np.zeros(len(active.weights))
        d[which] = small.descend(q[which], w) - w
        return d

    @staticmethod
    def _useful(domain: Domain, active: ActiveSet, q: Small, goal: float) -> Indices:
        useful = active.weights != 0
        for b, part in enumerate(domain.parts):
            mine = active.blocks == b
            level = float(q[mine] @ active.weights[mine]) if part.compact else 0.0
            useful |= mine & ((level - q > 0.5 * goal) if part.nonnegative else True)
        return np.flatnonzero(useful)


def _check_several(several: int) -> None:
    if isinstance(several, bool) or not isinstance(several, int) or several < 1:
        raise ValueError(f"several is {several!r}; give the number of atoms per oracle call, at least 1.")
