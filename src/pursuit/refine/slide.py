"""Sliding: joint descent on the parameters and the weights of all active atoms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, require, use_python_numbers
from pursuit.arrays import Array, Indices, Small, flat, host
from pursuit.atoms.frames import Atom
from pursuit.domains import Domain, Part
from pursuit.linalg.lbfgs import lbfgs
from pursuit.objectives import Objective
from pursuit.refine.proposals import Proposal, rebuilt


@dataclass(frozen=True)
class Slide:
    """Line 7 for atoms that move smoothly with parameters (`Parametric`, `RankOneTensor`, also scaled or seen through a
    matrix): L-BFGS on all parameters and weights together, the sliding step of sliding Frank-Wolfe.

    The weights stay in the domain: they are free over a span, non-negative over a cone, and over a hull w = s / sum(s)
    with s >= 0. Atoms of other sets in a sum of domains do not move, but their weights change, too. `steps` is the
    largest number of L-BFGS steps per call.

    >>> import pursuit as ps
    >>> A = ps.Parametric(ps.families.Gaussian(np.linspace(0, 1, 50), 0.05), [(0, 1)])
    >>> y = A.family(np.array([0.41])) + A.family(np.array([0.53]))           # the bumps overlap
    >>> r = ps.minimize(ps.LeastSquares(y), ps.cone(A), refine=ps.refine.Slide(), stop=ps.Stop(value=1e-16))
    >>> sorted(r.coef.parameters.ravel().round(6).tolist())
    [0.41, 0.53]
    """

    steps: int = 200

    def __post_init__(self) -> None:
        require(as_int_or_nan(self.steps) >= 1, "steps", self.steps, "the number of descent steps, at least 1")
        use_python_numbers(self)

    @staticmethod
    def serves(f: Objective, domain: Domain) -> bool:
        """Whether the atoms of a summand of the domain depend smoothly on parameters."""
        return any(part.asked.chart() is not None for part in domain.parts)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        places = [active.of(b) for b in range(len(domain.parts))]
        summands = [_Summand(part, active, of) for part, of in zip(domain.parts, places, strict=True) if len(of)]
        if not any(len(summand.moving) for summand in summands):
            return None
        ends = np.cumsum([len(summand.start) for summand in summands])[:-1]
        origin = f.value(active.x)
        scale = 1.0

        def value_and_grad(z: Small) -> tuple[float, Small]:
            pieces = list(zip(summands, np.split(z, ends), strict=True))
            if not all(summand.has_weights(piece) for summand, piece in pieces):
                return math.inf, np.zeros(len(z))  # a trial step too far; the line search takes a shorter one
            points = [summand.point(piece) for summand, piece in pieces]
            x = sum(x for x, _ in points)
            if not math.isfinite(active.space.norm(x)):
                return math.inf, np.zeros(len(z))
            value, grad = f.value_and_grad(x)
            if not math.isfinite(value):  # beyond the domain of f
                return math.inf, np.zeros(len(z))
            return (value - origin) / scale, np.concatenate([gradient(grad) for _, gradient in points]) / scale

        start = np.concatenate([summand.start for summand in summands])
        scale = float(np.abs(value_and_grad(start)[1]).max())
        if not 0 < scale < np.inf:
            return None
        bounds = np.concatenate([summand.bounds for summand in summands])
        options = {"maxiter": self.steps, "maxfun": 2 * self.steps, "maxcor": 30}
        lowest = lbfgs(value_and_grad, start, bounds, lambda: active.deadline.passed, **options)
        if not lowest.fun < 0:
            return None
        moved = [summand.moved(piece) for summand, piece in zip(summands, np.split(lowest.x, ends), strict=True)]
        weights, atoms = np.concatenate([w for w, _ in moved]), [a for _, atoms in moved for a in atoms]
        return Proposal(weights, atoms, active.blocks[np.concatenate(places)])


class _Summand:
    """The atoms of one summand as one vector z: weights in units of the largest, then parameters in units of the box.

    Atoms without parameters, such as a point that the run started from, do not move.
    """

    def __init__(self, part: Part, active: ActiveSet, places: Indices) -> None:
        self.part, self.space, self.chart = part, active.space, part.asked.chart()
        self.atoms = [active.atoms[i] for i in places]
        moves = np.array([self.chart is not None and part.asked.rebuild(a) is not None for a in self.atoms])
        self.moving, self.fixed = np.flatnonzero(moves), np.flatnonzero(~moves)
        self.coefs = np.array([a.coef for a in self.atoms])[self.moving]
        weights = active.weights[places]
        self.unit = float(np.abs(weights).max())
        low, high = self.chart.bounds.T if self.chart is not None else np.zeros((2, 0))
        boxed = np.isfinite(high - low)
        self.low, self.span = np.where(boxed, low, 0.0), np.where(boxed, high - low, 1.0)
        self.start = np.concatenate([weights / self.unit, ((self._thetas() - self.low) / self.span).ravel()])
        ranges = np.column_stack([(low - self.low) / self.span, (high - self.low) / self.span])
        signs = [(0.0 if part.nonnegative else -np.inf, np.inf)] * len(self.atoms)
        self.bounds = np.concatenate([np.array(signs), np.tile(ranges, (len(self.moving), 1))])
        if len(self.fixed):
            rest = [flat(self.atoms[i].dense(self.space)) for i in self.fixed]
            self.rows = self.space.xp.stack(rest)

    def _thetas(self) -> Small:
        if self.chart is None:
            return np.zeros((0, 0))
        thetas = [self.chart.parameters(self.atoms[i].source) for i in self.moving]
        return np.array(thetas).reshape(len(self.moving), len(self.low))

    def has_weights(self, z: Small) -> bool:
        """Whether z has weights in the domain: over a hull, not all s may be 0."""
        return not self.part.compact or z[: len(self.atoms)].sum() > 0

    def _read(self, z: Small) -> tuple[Small, Small]:
        s, u = z[: len(self.atoms)], z[len(self.atoms) :].reshape(len(self.moving), len(self.low))
        weights = s * (self.part.total / s.sum()) if self.part.compact else s * self.unit
        return weights, self.low + u * self.span

    def point(self, z: Small) -> tuple[Array, Callable[[Array], Small]]:
        """The point, and the map from the gradient of f to the gradient in z."""
        weights, thetas = self._read(z)
        scaled = weights[self.moving] * self.coefs
        x = self.space.zeros()
        if self.chart is not None and len(self.moving):
            moved, slopes_of = self.chart.combine(thetas, scaled)
            x = x + self.space.put(moved)
        if len(self.fixed):
            x = x + self.space.xp.reshape(self.space.put(weights[self.fixed]) @ self.rows, self.space.shape)

        def gradient_in_z(grad: Array) -> Small:
            in_weights, in_parameters = np.empty(len(weights)), np.zeros(0)
            if len(self.moving):
                dots, slopes = slopes_of(grad)
                in_weights[self.moving] = dots * self.coefs
                in_parameters = (slopes * scaled[:, None] * self.span).ravel()
            if len(self.fixed):
                in_weights[self.fixed] = host(self.rows @ flat(grad))
            if self.part.compact:  # w = total s / sum(s)
                in_weights = (in_weights * self.part.total - float(in_weights @ weights)) / z[: len(weights)].sum()
            else:
                in_weights = in_weights * self.unit
            return np.concatenate([in_weights, in_parameters])

        return x, gradient_in_z

    def moved(self, z: Small) -> tuple[Small, list[Atom]]:
        """The weights and atoms at z."""
        weights, thetas = self._read(z)
        atoms = list(self.atoms)
        for i, theta in zip(self.moving, thetas, strict=True):
            assert self.chart is not None
            source, sign = self.chart.source(theta)
            atoms[i] = rebuilt(self.part, Atom(np.zeros(0), source, sign * atoms[i].coef))
        return weights, atoms
