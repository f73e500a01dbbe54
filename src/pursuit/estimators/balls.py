"""The minima over balls of an atomic norm, or with a penalty on it, from one level to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pursuit import native
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.combinations import Image
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.matrices import RankOne
from pursuit.atoms.vectors import SignedBasis
from pursuit.domains import conv, penalty
from pursuit.estimators import checks
from pursuit.estimators.base import Array
from pursuit.estimators.descent import Descent, LeastSquaresDescent
from pursuit.estimators.design import Design, Loss, ModelPath, Row
from pursuit.objectives import Ridge
from pursuit.run.method import default_method
from pursuit.run.result import Result
from pursuit.run.stop import Status, Stop
from pursuit.solve import minimize
from pursuit.updates import FullyCorrective

FITTED = 1e-3
"""A path of radii ends once the mean loss is below this fraction of its value at radius 0."""

WIDEST = 200
"""Groups of more columns are not for coordinate descent, which has a Hessian for each."""

WARM_UPDATE = FullyCorrective(several=8, accuracy=1e-2)
"""The update from the second radius of a path on: most atoms are there already, and only few are new."""


@dataclass(frozen=True)
class BallSolver:
    """Minima over a ball of coefficients, with free intercepts, for each level: a radius, or the factor of a penalty;
    by coordinate descent where `_descends`, else by Frank-Wolfe."""

    levels: list[float]
    penalised: bool
    ball: str
    groups: Any
    k: int
    l2: float
    tol: float
    max_iter: int
    proved: bool = True
    """Whether the last gap shall be proved."""

    def __call__(self, f: Loss, design: Design) -> ModelPath:
        F: Loss | Ridge = Ridge(f, design.q) if self.l2 and design.q else f
        first = design.without_features(F, self.tol)
        if self.penalised:
            first = first._replace(level=np.inf)
        if not design.q or not first.value > F.infimum:  # nothing to choose from, or nothing left to fit
            return ModelPath.of(design, [first], 1)
        if self._descends(f, design):
            return self._by_descent(f, F, design, first)
        A, rule = self.atoms(design, f.space.shape), Stop(rgap=self.tol, iterations=self.max_iter)
        floor = F.infimum + FITTED * (first.value - F.infimum)
        rows, n_iter = [first], 0
        last: Result | None = None
        for level in self.levels:
            ball = penalty(level * A) if self.penalised else conv(level * A)
            domain = design.with_intercepts(ball, F.space.shape)
            update, refine = default_method(F, domain)
            if last is not None and refine is None and isinstance(update, FullyCorrective):
                update = WARM_UPDATE
            last = minimize(F, domain, update, refine=refine, stop=rule, start=last)
            rows.append(Row.of(level, last, design.q))
            n_iter += last.iterations + 1
            if last.value <= floor or last.status is Status.INTERRUPTED:
                break
        return ModelPath.of(design, rows, n_iter, last)

    def _labels(self, design: Design) -> Array | None:
        """The number of each column's group; None where the ball has no groups."""
        if self.ball != "group":
            return None
        return np.arange(design.q) if self.groups is None else design.groups(self.groups)

    def _descends(self, f: Loss, design: Design) -> bool:
        """Whether coordinate descent has an answer: for penalties on sizes, or on norms of small groups; and for radii
        of least squares on dense columns."""
        if self.ball not in ("l1", "group") or len(f.space.shape) > 1 or not native.is_built():
            return False
        labels = self._labels(design)
        small = labels is None or int(np.bincount(labels).max()) <= WIDEST
        return small and (self.penalised or LeastSquaresDescent.serves(f, design))

    def _by_descent(self, f: Loss, F: Loss | Ridge, design: Design, first: Row) -> ModelPath:
        """The models of all levels, by coordinate descent."""
        kind = LeastSquaresDescent if LeastSquaresDescent.serves(f, design) else Descent
        descent, rows = kind(f, design, self.l2, self._labels(design)), [first]
        floor, last = F.infimum + FITTED * (first.value - F.infimum), None
        try:
            for level in self.levels:
                if self.penalised:
                    descent.minimise(level, 0.3 * self.tol)
                else:
                    assert isinstance(descent, LeastSquaresDescent)
                    top = self.scale(f, design)[1] if len(rows) == 1 else descent.penalty
                    descent.reach(level, top, 0.3 * self.tol, 0.01 * floor)
                rows.append(Row(level, descent.value, math.inf, descent.b[:, None], np.array([descent.c])))
                if descent.value <= floor:
                    break
            if self.proved:
                last = self._proof(F, design, rows[-1])
                rows[-1] = Row.of(rows[-1].level, last, design.q)
        except KeyboardInterrupt:
            return replace(ModelPath.of(design, rows, descent.turns), complete=False)
        return ModelPath.of(design, rows, descent.turns, last)

    def _proof(self, F: Loss | Ridge, design: Design, row: Row) -> Result:
        """A run from this model on, which ends at once where its gap is small enough."""
        A = self.atoms(design, F.space.shape)
        A, part = (A, penalty(row.level * A)) if self.penalised else (row.level * A, conv(row.level * A))
        domain = design.with_intercepts(part, F.space.shape)
        stop = Stop(rgap=self.tol, iterations=self.max_iter)
        b, labels = row.B[:, 0], self._labels(design)
        if not (b.any() and np.isfinite(b).all()):  # in a hull, no atoms make no start
            return minimize(F, domain, stop=stop)
        if labels is None:
            members = list(np.flatnonzero(b)[:, None])
            atoms = [A.atom(int(j) if b[j] > 0 else int(j) + design.q) for (j,) in members]
        else:
            members = [np.flatnonzero(labels == k) for k in np.unique(labels[b != 0])]
            assert isinstance(A, Image) and isinstance(A.base, Groups)
            units = [A.base.unit(int(labels[at[0]]), b[at]) for at in members]
            atoms = [a for a in map(A.rebuild, units) if a is not None]
        weights = np.array([np.hypot.reduce(np.abs(b[at] / a.coef)) for at, a in zip(members, atoms, strict=True)])
        if not self.penalised and atoms:  # of which the sum is 1: an atom and its negative take the rest
            rest = max(1.0 - weights.sum(), 0.0) / 2.0
            atoms, weights = [*atoms, atoms[0].scaled(-1.0)], np.append(weights, rest)
            weights[0] += rest
            weights /= weights.sum()
        blocks = np.zeros(len(atoms), dtype=np.intp)
        if design.fit_intercept:
            atoms = [*atoms, domain.parts[1].A.atom(0)]
            weights, blocks = np.append(weights, row.c), np.append(blocks, 1)
        x = sum((w * a.vector for w, a in zip(weights, atoms, strict=True)), F.space.zeros())
        begun = minimize(F, domain, stop=Stop(rgap=None, iterations=0))
        start = replace(begun, x=x, weights=weights, atoms=atoms, blocks=blocks)
        return minimize(F, domain, WARM_UPDATE, stop=stop, start=start)

    def atoms(self, design: Design, shape: tuple[int, ...]) -> Atoms:
        """The extreme points of the unit ball, seen through X."""
        q, several = design.q, len(shape) == 2
        outputs = shape[1] if several else 1
        if self.ball == "l1" and not several and not self.l2:
            return Dictionary(design.X, signed=True)
        ball: Atoms
        if (names := self._labels(design)) is not None:
            labels = np.repeat(names, outputs)
            ball = Groups(labels, np.sqrt(np.bincount(labels) / outputs))
        elif self.ball == "ksupport":
            checks.count(self.k, "k")
            ball = KSupport(q * outputs, min(int(self.k), q * outputs))
        elif self.ball == "nuclear" and several:
            ball = RankOne((q, outputs))
        else:
            m = q * outputs
            ball = SignedBasis(m) if self.ball == "l1" else KSupport(m, m)  # unit vectors of all directions
        return ball.through(design.X, columns=outputs if several else None, l2=self.l2)

    def radii(self, f: Loss, design: Design, penalties: list[float]) -> list[float]:
        """The norms of the models with these penalties, in increasing order; none where that takes Frank-Wolfe."""
        solver = replace(self, levels=penalties, penalised=True, proved=False)
        if not design.q or not solver._descends(f, design):
            return []
        path, labels = solver(f, design), self._labels(design)
        labels = np.arange(design.q) if labels is None else labels
        B = [path.coef_of(row)[0, design.kept] * design.scale for row in range(1, len(path))]
        norms = [np.sqrt(np.bincount(labels, b * b)) @ np.sqrt(np.bincount(labels)) for b in B]
        return [float(norm) for norm in np.unique(norms) if norm > 0]

    def scale(self, f: Loss, design: Design) -> tuple[float, float]:
        """The radius at which the loss would be at its infimum, if it fell for ever as it falls at radius 0; and how
        fast it falls there, which is the smallest penalty of the model without features."""
        ones = design.intercepts(f.space.shape)
        x = f.space.zeros() if ones is None else minimize(f, ones, stop=Stop(rgap=self.tol)).x
        value, grad = f.value_and_grad(x)
        if not design.q:
            return 1.0, 1.0
        steepest = replace(self, l2=0.0).atoms(design, f.space.shape).lmo(grad)
        slope = -float(np.vdot(grad, steepest.vector))
        return ((value - f.infimum) / slope, slope) if slope > 0 else (1.0, 1.0)
