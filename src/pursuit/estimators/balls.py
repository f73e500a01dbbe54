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
from pursuit.domains import Domain, conv, penalty
from pursuit.estimators import checks
from pursuit.estimators.base import Array
from pursuit.estimators.descent import Descent, LeastSquaresDescent, Minima, norm_of
from pursuit.estimators.design import Design, Loss, ModelPath, Row
from pursuit.objectives import LeastSquares, Logistic, Ridge
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


NOTHING = Stop(rgap=None, iterations=0)
NEGLIGIBLE = 1e-6
"""A norm below this fraction of the radius is inside, whatever rounding does to slopes."""


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
        """Whether coordinate descent has an answer: for sizes, and for norms of small groups."""
        if self.ball not in ("l1", "group") or len(f.space.shape) > 1 or not native.is_built():
            return False
        labels = self._labels(design)
        small = labels is None or int(np.bincount(labels).max()) <= WIDEST
        return small and (self.penalised or isinstance(f, LeastSquares | Logistic))

    def _by_descent(self, f: Loss, F: Loss | Ridge, design: Design, first: Row) -> ModelPath:
        """The models of all levels, by coordinate descent."""
        kind = LeastSquaresDescent if LeastSquaresDescent.serves(f, design) else Descent
        descent, rows = kind(f, design, self.l2, self._labels(design)), [first]
        floor, last = F.infimum + FITTED * (first.value - F.infimum), None
        try:
            for level in self.levels:
                if self.penalised:
                    descent.minimise(level, 0.3 * self.tol)
                    b = descent.b
                else:
                    top = self.scale(f, design)[1] if len(rows) == 1 else descent.penalty
                    b = descent.reach(
                        level, top, (0.01 if self.proved else 0.3) * self.tol, F.infimum + 0.01 * (floor - F.infimum)
                    )
                rows.append(Row(level, descent.value, math.inf, b[:, None], np.array([descent.c])))
                if descent.value <= floor:
                    break
            if self.proved:
                rows[-1], last = self._proof(F, design, rows[-1], descent)
        except KeyboardInterrupt:
            if self.proved and len(rows) == 1:  # the model without features is one of this level, far from the minimum
                rows = [first._replace(level=self.levels[0], gap=first.value - F.infimum)]
            return replace(ModelPath.of(design, rows, descent.turns), complete=False)
        return ModelPath.of(design, rows, descent.turns, last)

    def _proof(self, F: Loss | Ridge, design: Design, row: Row, descent: Minima) -> tuple[Row, Result]:
        """This model with a proved gap, and the run that proves it, which starts at the model."""
        A, limit = self.atoms(design, F.space.shape), Stop(rgap=self.tol, iterations=self.max_iter)

        def run(ball: Domain, start: Row | Result | None, stop: Stop, update: FullyCorrective = WARM_UPDATE) -> Result:
            domain = design.with_intercepts(ball, F.space.shape)
            if isinstance(start, Row):
                begun, atoms = minimize(F, domain, stop=NOTHING), row.level * A if domain.parts[0].compact else A
                start = self._start(begun, atoms, start, descent.labels)
            return minimize(F, domain, update, stop=stop, start=start)

        if self.penalised:
            last = run(penalty(row.level * A), row, limit)
            return Row.of(row.level, last, design.q), last
        last = run(penalty(descent.penalty * A), row, Stop(rgap=None, iterations=2), FullyCorrective())  # more digits
        factor = self._steepest(F, A, last.x)
        last = run(penalty(factor * A), last, NOTHING)
        found = self._in_ball(F, Row.of(row.level, last, design.q), descent, factor)
        if found.gap > self.tol * abs(found.value) and descent.norm > NEGLIGIBLE * row.level:
            last = run(conv(row.level * A), found, limit)
            found = Row.of(row.level, last, design.q)
        return found, last

    def _start(self, begun: Result, A: Atoms, row: Row, labels: Array | None) -> Result | None:
        """The model as a result to start from; None where it has neither coefficients nor an intercept."""
        b = row.B[:, 0]
        if not np.isfinite(b).all():
            return None
        if labels is None:
            members = list(np.flatnonzero(b)[:, None])
            atoms = [A.atom(int(j) if b[j] > 0 else int(j) + len(b)) for (j,) in members]
        else:
            members = [np.flatnonzero(labels == k) for k in np.unique(labels[b != 0])]
            assert isinstance(A, Image) and isinstance(A.base, Groups)
            units = [A.base.unit(int(labels[at[0]]), b[at]) for at in members]
            atoms = [a for a in map(A.rebuild, units) if a is not None]
        weights = np.array([np.hypot.reduce(np.abs(b[at] / a.coef)) for at, a in zip(members, atoms, strict=True)])
        if (
            begun.domain.parts[0].compact and atoms
        ):  # weights of which the sum is 1: an atom and its negative take the rest
            rest = max(1.0 - weights.sum(), 0.0) / 2.0
            atoms, weights = [*atoms, atoms[0].scaled(-1.0)], np.append(weights, rest)
            weights[0] += rest
            weights /= weights.sum()
        blocks = np.zeros(len(atoms), dtype=np.intp)
        if len(begun.domain.parts) == 2:
            atoms = [*atoms, begun.domain.parts[1].A.atom(0)]
            weights, blocks = np.append(weights, row.c), np.append(blocks, 1)
        x = sum((w * a.vector for w, a in zip(weights, atoms, strict=True)), 0.0 * begun.x)
        return None if not atoms else replace(begun, x=x, weights=weights, atoms=atoms, blocks=blocks)

    def _steepest(self, F: Loss | Ridge, A: Atoms, x: Array) -> float:
        """How fast f falls at most along an atom, with room for the rounding that a proof allows for."""
        grad = F.value_and_grad(x)[1]
        steepest = A.lmo(grad).vector
        allowance = 2.0**-47 * float(np.linalg.norm(steepest) * np.linalg.norm(grad))
        return allowance - float(np.vdot(grad, steepest))

    def _in_ball(self, F: Loss | Ridge, proved: Row, descent: Minima, factor: float) -> Row:
        """The model of a proof with a penalty within the radius r, where the

            minimum >= min_b (f(b) + factor ||b||) - factor r;

        its gap includes what rounding may take from it.
        """
        radius, norm = proved.level, norm_of(proved.B[:, 0], descent.labels)
        lower = proved.value - proved.gap - factor * radius
        rounding = (len(proved.B) + 8) * 2.0**-52 * (abs(proved.value) + factor * (radius + norm))
        B = proved.B * (radius / norm) if norm > radius else proved.B
        value = descent.value_at(B[:, 0], float(proved.c[0]))
        return proved._replace(value=value, gap=min(value - lower + rounding, value - F.infimum), B=B)

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
        B = [path.coef_of(row)[0, design.kept] * design.scale for row in range(1, len(path))]
        return [norm for norm in np.unique([norm_of(b, labels) for b in B]) if norm > 0]

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
