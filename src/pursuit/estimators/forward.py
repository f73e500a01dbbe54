"""The plain greedy path of one problem: the specification of the compiled ones, and groups and signs beside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pursuit.active import ActiveSet
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.groups import Groups
from pursuit.atoms.vectors import SignedBasis, Simplex
from pursuit.domains import Domain, cone, lin
from pursuit.estimators.base import Array
from pursuit.estimators.design import Design, Loss, ModelPath, Row
from pursuit.objectives import Objective, Ridge
from pursuit.paths import path
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.updates import FullyCorrective

SEPARATED = 1e-7
"""A path ends once the objective is below this fraction of its value without features: every sample is fitted."""


@dataclass(frozen=True)
class GreedySolver:
    """The models of all sizes up to `size`, from one greedy run."""

    size: int | None
    l2: float
    update: FullyCorrective
    groups: Any
    positive: bool
    tol: float

    def __call__(self, f: Loss, design: Design) -> ModelPath:
        F: Loss | Ridge = Ridge(f, design.q) if self.l2 and design.q else f
        first = design.without_features(F, 1e-12)
        if not design.q or not first.value > F.infimum:  # nothing to choose from, or nothing left to fit
            return ModelPath.of(design, [first], 1)
        labels = None if self.groups is None else design.groups(self.groups)
        domain, refine = self._domain(f, design, labels)
        most = design.q if labels is None else int(labels.max()) + 1
        floor = F.infimum + max(self.tol, SEPARATED) * (first.value - F.infimum)
        models = path(
            F, design.with_intercepts(domain, F.space.shape), atoms=range(1, min(self.size or most, most) + 1),
            update=self.update, refine=refine, stop=Stop(rgap=None, value=floor),
        )  # fmt: skip
        rows = [Row.of(k, r, design.q) for k, r in zip(models.atoms, models.results, strict=True)]
        return ModelPath.of(design, [first, *rows], len(rows), models.results[-1] if models.results else None)

    def _domain(self, f: Loss, design: Design, labels: Array | None) -> tuple[Domain, Refit | None]:
        """The span or cone of the features or groups, and how coefficients within groups are refitted."""
        several = len(f.space.shape) == 2
        if labels is None and not several:
            if not self.l2:
                A: Any = Dictionary(design.X)._with(size=None)  # no proof for all columns at once: it takes their SVD
            else:
                A = (Simplex if self.positive else SignedBasis)(design.q).through(design.X, l2=self.l2)
            return (cone(A) if self.positive else lin(A)), None
        if self.positive:
            raise ValueError("positive=True needs one output and no groups; leave it out, or fit each output alone.")
        outputs = f.space.shape[1] if several else 1
        labels = np.arange(design.q) if labels is None else labels
        units = Groups(np.repeat(labels, outputs), np.sqrt(outputs * np.bincount(labels)))
        images = units.through(design.X, columns=outputs if several else None, l2=self.l2)
        return lin(images), Refit(f, design, units, labels, self.l2)


@dataclass(frozen=True)
class Refit:
    """A refinement: the minimum over all coefficients of the active groups and the intercepts.

    An atom is one direction within a group, so that the update alone corrects one coefficient per group.
    """

    f: Loss
    design: Design
    units: Groups
    labels: Array
    l2: float

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> tuple[Any, ...] | None:
        shape = self.f.space.shape
        columns, outputs = (None, 1) if len(shape) == 1 else (shape[1], shape[1])
        B = np.zeros((self.design.q, outputs))
        names: dict[int, Array] = {}
        for i in active.support[active.blocks[active.support] == 0]:
            name, direction = active.atoms[i].source
            features = names.setdefault(name, np.flatnonzero(self.labels == name))
            B[features] += active.weights[i] * active.atoms[i].coef * np.reshape(direction, (-1, outputs))
        if not names:
            return None
        used = np.concatenate(list(names.values()))
        small = replace(self.design, X=self.design.X[:, used], kept=used)
        A = SignedBasis(len(used) * outputs).through(small.X, columns=columns, l2=self.l2)
        F: Loss | Ridge = Ridge(self.f, len(used)) if self.l2 else self.f
        first = B[used].ravel()
        start = (first, [A.atom(j) for j in range(len(first))])
        span = small.with_intercepts(lin(A), F.space.shape)
        rule = Stop(rgap=None, iterations=1 + outputs)  # until all intercepts are there
        r = minimize(F, span, FullyCorrective(several=outputs), start=start, stop=rule)
        *_, B[used], c = Row.of(0, r, len(used))
        directions = [self.units.unit(name, B[at].ravel()) for name, at in names.items()]
        atoms = [a for a in map(domain.parts[0].asked.rebuild, directions) if a is not None]
        weights = [np.linalg.norm(B[at]) / abs(a.coef) for a, at in zip(atoms, names.values(), strict=True)]
        if small.fit_intercept:
            atoms += [domain.parts[1].A.atom(k) for k in range(outputs)]
        blocks = np.repeat([0, 1], [len(names), len(atoms) - len(names)])
        return np.array([*weights, *c][: len(atoms)]), atoms, blocks
