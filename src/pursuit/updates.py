"""Where to: how the weights on the active set change once the oracle has named an atom.

`Plain` moves towards the new atom only (the paper's variant 0), `NormCorrective` minimises the quadratic upper bound
over all of S (variant 1 of Algorithms 3 and 4), `FullyCorrective` minimises f itself over S (OMP, Algorithm 6 variant
2). An update is a frozen value and does not know which domain it serves; `begin` gives the function that serves one
run, and with it the memory of the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from pursuit._arrays import Array, Small, Space
from pursuit.active import ActiveSet
from pursuit.atoms.frames import Indices
from pursuit.domains import Domain, Hull
from pursuit.metrics import Metric
from pursuit.objectives import Objective
from pursuit.oracles import Answer
from pursuit.steps import Move, Smoothness, Step, UpperBound, check_smoothness, line_search
from pursuit.weights import WeightProblem, projected_gradient


@dataclass(frozen=True, slots=True)
class Now:
    """What the loop knows when it asks for an update."""

    iteration: int
    value: float
    grad: Array
    gx: float
    answer: Answer


Advance = Callable[[Now, ActiveSet], None]
"""Changes the active set: atoms, weights and point."""


class Update(Protocol):
    """The contract: `several`, how many atoms of one oracle call it can use; `descends`, whether f never increases."""

    @property
    def several(self) -> int: ...
    @property
    def descends(self) -> bool: ...
    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance: ...


# ---------------------------------------------------------------------- one atom


@dataclass(frozen=True)
class Plain:
    """x + gamma (z - x) over a hull, x + gamma z over a span: the new atom only.

    Parameters
    ----------
    step : OpenLoop, LineSearch, ShortStep, DiameterStep or CurvatureStep

    Examples
    --------
    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.Plain(ps.LineSearch()))
    >>> r.x, r.oracle_calls                                    # matching pursuit on an orthonormal basis
    (array([3., 1.]), 3)
    """

    step: Step
    several: ClassVar[int] = 1

    REFRESH: ClassVar[int] = 64  # x is kept incrementally and made anew from the weights this often

    def __post_init__(self) -> None:
        if not hasattr(self.step, "begin"):
            raise TypeError(f"step is {self.step!r}; give a step rule such as ShortStep() or LineSearch().")

    @property
    def descends(self) -> bool:
        return type(self.step).__name__ != "OpenLoop"

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        length = self.step.begin(f, domain, space)

        def advance(now: Now, active: ActiveSet) -> None:
            z = now.answer.atoms[0]
            d = domain.direction(space, active.x, z)
            slope = domain.slope(now.answer.dot, now.gx)
            gamma = length(Move(now.iteration, active.x, now.value, d, slope, domain.reach, now.answer.delta))
            if gamma == 0.0:
                return
            x = active.x + gamma * d
            domain.move(active, z, gamma)
            active.keep(active.weights != 0)
            active.x = x
            if now.iteration % self.REFRESH == self.REFRESH - 1:
                if isinstance(domain, Hull):
                    active.weights /= active.weights.sum()
                active.refresh()

        return advance


# ---------------------------------------------------------------------- all atoms


class _Small:
    """The small problem of a run, kept in step with the active set: Gram matrix in a metric, constraints, factor."""

    RESTING = 512  # atoms at weight zero that S may hold before the least promising are forgotten

    def __init__(self, domain: Domain, metric: Metric) -> None:
        self.domain, self.metric = domain, metric
        self.problem = domain.weight_problem()
        self.members: list[Any] = []

    def enter(self, now: Now, active: ActiveSet) -> None:
        """Admit the oracle's atoms and bring the Gram matrix up to date."""
        for atom in now.answer.atoms:
            active.enter(atom)
        known = len(self.members)
        if self.members != active.atoms[:known]:  # moved atoms, or a new start
            self.problem, self.members, known = self.domain.weight_problem(), [], 0
        for i in range(known, len(active.atoms)):
            self.problem.append(active.inner(self.metric, i)[: i + 1], self.domain.nonneg)
            self.members.append(active.atoms[i])

    def settle(self, active: ActiveSet, weights: Small, correlations: Small) -> None:
        """The new weights and their point; if too many atoms rest, those that promise least are forgotten."""
        active.weights = weights
        resting = np.flatnonzero(weights == 0)
        if len(resting) > self.RESTING + 2 * (len(weights) - len(resting)):
            keep = np.ones(len(weights), dtype=bool)
            keep[resting[np.argsort(correlations[resting], kind="stable")[self.RESTING // 2 :]]] = False
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
    descends: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_smoothness(self.L)
        if self.inner is not None and self.inner < 1:
            raise ValueError(f"inner is {self.inner}; give at least 1 step, or None for the exact minimum.")
        _check_several(self.several)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        bound = UpperBound(f, space, self.L, self.metric)
        small = _Small(domain, bound.metric)

        def advance(now: Now, active: ActiveSet) -> None:
            small.enter(now, active)
            correlations = active.analyze(now.grad)
            small.settle(active, self.project(bound, small, active, now.value, correlations), correlations)

        return advance

    def project(self, bound: UpperBound, small: _Small, active: ActiveSet, value: float, correlations: Small) -> Small:
        """Weights that minimise the upper bound at x over S."""
        start, problem = active.weights, small.problem

        def propose(L: float) -> tuple[Small, Array, float]:
            if self.inner is None:
                w = problem.descend(correlations / L, start)
            else:
                w = projected_gradient(problem, correlations / L, start, self.inner)
            if bound.fixed:  # nobody looks at the displacement
                return w, None, 0.0
            return w, active.synthesize(w - start), float(correlations @ (w - start))

        return bound.minimise(active.x, value, propose)


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
    descends: ClassVar[bool] = True

    LIMIT: ClassVar[int] = 50  # Newton steps per oracle call

    def __post_init__(self) -> None:
        _check_several(self.several)
        if self.accuracy is not None and not 0 < self.accuracy < 1:
            raise ValueError(f"accuracy is {self.accuracy}; give a fraction between 0 and 1.")

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        if f.quadratic:
            return NormCorrective(L=1.0, metric=f.hessian(space.zeros())).begin(f, domain, space)
        if type(f).hessian is Objective.hessian:
            return self._repeat(f, domain, space)
        return self._newton(f, domain, space)

    def _goal(self, domain: Domain, now: Now) -> float:
        hull = isinstance(domain, Hull)
        accuracy = self.accuracy or (0.1 if hull else 1e-12)
        return accuracy * abs(domain.slope(now.answer.dot, now.gx))

    def _repeat(self, f: Objective, domain: Domain, space: Space) -> Advance:
        bound = UpperBound(f, space, None, None)
        small, projection = _Small(domain, bound.metric), NormCorrective()

        def advance(now: Now, active: ActiveSet) -> None:
            small.enter(now, active)
            goal, value, correlations = self._goal(domain, now), now.value, active.analyze(now.grad)
            for _ in range(self.LIMIT):
                small.settle(active, projection.project(bound, small, active, value, correlations), correlations)
                value, grad = f.value_and_grad(active.x)
                correlations = active.analyze(grad)
                if _inner_gap(domain, active.weights, correlations) <= goal:
                    break

        return advance

    def _newton(self, f: Objective, domain: Domain, space: Space) -> Advance:
        def advance(now: Now, active: ActiveSet) -> None:
            for atom in now.answer.atoms:
                active.enter(atom)
            goal, value, grad = self._goal(domain, now), now.value, now.grad
            lowest = closest = math.inf
            for step in range(self.LIMIT):
                correlations = active.analyze(grad)
                inner = _inner_gap(domain, active.weights, correlations)
                if step and (inner <= goal or not (value < lowest or inner < closest)):  # done, or down to rounding
                    break
                lowest, closest = value, inner if step else math.inf
                d = self._direction(f, domain, active, correlations, goal)
                slope = float(correlations @ d)
                if not slope < 0:
                    break
                gamma = line_search(f, space, active.x, active.synthesize(d), slope, domain.reach)
                before = active.weights, active.x
                active.weights = active.weights + gamma * d
                active.refresh()
                ceiling = value + 4.0 * space.eps * abs(value)
                value, grad = f.value_and_grad(active.x)
                if not value <= ceiling:
                    active.weights, active.x = before
                    break

        return advance

    def _direction(self, f: Objective, domain: Domain, active: ActiveSet, q: Small, goal: float) -> Small:
        """The Newton direction on the weights: support, and resting atoms that could help."""
        w = active.weights
        which = _useful(domain, w, q, goal)
        hessian = f.hessian(active.x)
        assert hessian is not None
        G = active.gram(hessian, which)
        ridge = 1e-12 * float(np.trace(G)) / max(len(which), 1)
        G[np.diag_indices_from(G)] += ridge if ridge > 0 else 1.0
        small = WeightProblem.of(G, domain.nonneg, 0, [domain.total])
        d = np.zeros_like(w)
        d[which] = small.descend(q[which], w[which]) - w[which]
        return d


def _useful(domain: Domain, w: Small, q: Small, goal: float) -> Indices:
    if not domain.nonneg:
        return np.arange(len(w))
    return np.flatnonzero((w != 0) | (float(q @ w) - q > 0.5 * goal))


def _inner_gap(domain: Domain, w: Small, q: Small) -> float:
    """How much f could still fall over S: the Frank-Wolfe gap on conv(S), the largest correlation on lin(S)."""
    return float(q @ w - q.min()) if isinstance(domain, Hull) else float(np.abs(q).max())


def _check_several(several: int) -> None:
    if isinstance(several, bool) or not isinstance(several, int) or several < 1:
        raise ValueError(f"several is {several!r}; give the number of atoms per oracle call, at least 1.")


def default_update(f: Objective, domain: Domain) -> Update:
    """The package's choice: minimise f over S exactly where its curvature is known, its upper bound otherwise; over a
    hull the best 16 atoms of a call enter together, over a span (where sparsity is the point) one at a time."""
    several = 16 if isinstance(domain, Hull) else 1
    if type(f).hessian is Objective.hessian:
        return NormCorrective(several=several)
    return FullyCorrective(several=several)
