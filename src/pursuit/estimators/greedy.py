"""Greedy models: features enter one at a time, the one that helps most first, and all coefficients are refitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_list, require
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.groups import Groups
from pursuit.atoms.vectors import SignedBasis, Simplex
from pursuit.domains import Domain, cone, lin
from pursuit.estimators import checks
from pursuit.estimators.base import Array
from pursuit.estimators.design import Design, Loss, ModelPath, Row
from pursuit.estimators.linear import LinearModel, SparseClassifier, SparseRegressor
from pursuit.estimators.subsets import SubsetSolver
from pursuit.objectives import Objective, Ridge
from pursuit.paths import path
from pursuit.run.method import PATH_UPDATE
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.updates import FullyCorrective

SEPARATED = 1e-7
"""A path ends once the objective is below this fraction of its value without features: every sample is fitted."""

FOLD_UPDATE = FullyCorrective(accuracy=1e-3)
"""The update in folds: a held-out loss needs fewer digits than a model."""

PARAMETERS = """
    Parameters
    ----------
    loss : {losses}
    n_nonzero : int or None
        The number of features to choose (of groups, where `groups` are given). None: as many as `tol` needs.
    l2 : float
        The ridge l2/2 ||b||^2 beside the mean loss, b being the coefficients of columns at unit scale.
    groups : (n_features,) labels, optional
        Features of one label enter together.
    positive : bool
        Whether coefficients must not be negative (one output, no groups).
    fit_intercept : bool
    tol : float, optional
        Fitting ends once the objective is at most this fraction of its value without features.

    After `fit`, `coef_` and `intercept_` have scikit-learn's shapes, `path_` has the models of all sizes, `n_iter_` is
    their number, and `dropped_` has the names (or numbers) of constant features, whose coefficients are 0.
"""


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


class _Greedy(LinearModel):
    _checks = checks.table(positive=checks.boolean, tol=checks.optional_amount)
    _norm: ClassVar[str] = "group"  # by which one of the equal models of several classes is chosen

    def _solver(self, size: int | None, l2: float | None, update: FullyCorrective) -> GreedySolver:
        return GreedySolver(size, float(l2 or 0.0), update, self.groups, bool(self.positive), float(self.tol or 0.0))


@dataclass(eq=False, repr=False)
class _GreedyOfSize(_Greedy):
    _checks = checks.table(n_nonzero=checks.optional_count, l2=checks.optional_amount)

    loss: str = "squared_error"
    n_nonzero: int | None = 10
    l2: float = 0.0
    groups: Any = None
    positive: bool = False
    fit_intercept: bool = True
    tol: float | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit their coefficients."""
        self._check()
        samples = self._samples(X, y, sample_weight)
        models = samples.path(self._solver(self.n_nonzero, self.l2, PATH_UPDATE))
        return self._take(samples.task, models, len(models) - 1)


@dataclass(eq=False, repr=False)
class _GreedyCV(_Greedy):
    """The size, and the ridge where several are given, with the lowest held-out loss."""

    _checks = checks.table(max_nonzero=checks.count)

    loss: str = "squared_error"
    max_nonzero: int = 30
    l2: float | Iterable[float] = 0.0
    groups: Any = None
    positive: bool = False
    fit_intercept: bool = True
    tol: float | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the number of features by cross-validation, with one path per fold, and fit it on all data."""
        self._check()
        ridges = as_list(self.l2)
        for l2 in ridges:
            checks.optional_amount(l2, "l2")
        samples = self._samples(X, y, sample_weight)
        solvers = [self._solver(int(self.max_nonzero), l2, FOLD_UPDATE) for l2 in ridges]
        levels = np.arange(int(self.max_nonzero) + 1)
        losses, best, size = samples.cross_validate(solvers, levels, self.cv)
        models = samples.path(replace(solvers[best], size=max(int(size), 1), update=PATH_UPDATE))
        row = models.at(size)
        self.cv_losses_, self.levels_ = losses, levels
        self.l2_, self.n_nonzero_ = solvers[best].l2, int(models.level[row])
        return self._take(samples.task, models, row)


@dataclass(eq=False, repr=False)
class GreedyRegressor(SparseRegressor, _GreedyOfSize):
    __doc__ = f"""Regression by the features that help most: orthogonal matching pursuit for every loss.

    With several targets a feature is chosen for all of them.
    {PARAMETERS.format(losses="'squared_error', 'huber' or 'poisson' (log link)")}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import GreedyRegressor
    >>> X = np.random.default_rng(0).standard_normal((50, 300))
    >>> model = GreedyRegressor(n_nonzero=2).fit(X, 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9])
    >>> np.flatnonzero(model.coef_), model.coef_[[5, 9]].round(6), round(model.intercept_, 6)
    (array([5, 9]), array([ 3., -2.]), 4.0)

    `search="swaps"` lets features change places afterwards; `search="exact"` finds the best `n_nonzero` features, and
    proves that no others are better (Ctrl-C ends it with what is proved so far). Both have attributes `gap_` and
    `lower_`: no model of that size has an objective below `lower_`.

    >>> model = GreedyRegressor(n_nonzero=2, search="exact").fit(X, X[:, 5] - X[:, 9] + 0.1 * X[:, 7])
    >>> np.flatnonzero(model.coef_), bool(model.lower_ <= model.path_.value[-1]), model.gap_ < 1e-6
    (array([5, 9]), True, True)
    """

    search: str = "greedy"
    _checks = checks.table(search=checks.one_of("greedy", "swaps", "exact"))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit their coefficients."""
        if self.search == "greedy":
            return super().fit(X, y, sample_weight)
        self._check()
        require(self.n_nonzero is not None, "n_nonzero", None, f"a number of features with search={self.search!r}")
        samples, exact = self._samples(X, y, sample_weight), self.search == "exact"
        solver = SubsetSolver(int(self.n_nonzero or 0), self.l2, self.groups, bool(self.positive), exact)
        models = samples.path(solver)
        self.gap_, self.lower_ = float(models.gap[-1]), float(models.value[-1] - models.gap[-1])
        return self._take(samples.task, models, len(models) - 1)


@dataclass(eq=False, repr=False)
class GreedyClassifier(SparseClassifier, _GreedyOfSize):
    __doc__ = f"""Logistic classification by the features that help most; several classes share their features.

    Where there are more features than samples, a few features separate the classes, and without a ridge their
    coefficients grow without bound; so the default has a small one. With `l2=0` the path ends where the classes are
    separated.
    {PARAMETERS.format(losses="'log_loss'")}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import GreedyClassifier
    >>> X = np.random.default_rng(0).standard_normal((90, 300))
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 5], [-0.5, 0.5])]
    >>> model = GreedyClassifier(n_nonzero=1).fit(X, y)
    >>> np.flatnonzero(model.coef_.any(axis=0)), model.predict_proba(X[:2]).shape
    (array([5]), (2, 3))
    """

    loss: str = "log_loss"
    l2: float = 1e-3
    class_weight: Any = None


@dataclass(eq=False, repr=False)
class GreedyRegressorCV(SparseRegressor, _GreedyCV):
    """`GreedyRegressor` with the number of features of the lowest held-out loss, from one path per fold.

    `max_nonzero` bounds the number of features; `l2` may be a list, of which the best is chosen, too; `cv` is as
    everywhere in scikit-learn. After `fit`, `n_nonzero_` and `l2_` are the choice, and `cv_losses_` has the losses of
    all ridges, numbers of features (from 0) and folds.

    >>> import numpy as np
    >>> from pursuit.estimators import GreedyRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9]
    >>> model = GreedyRegressorCV(max_nonzero=6).fit(X, y)
    >>> model.n_nonzero_, np.flatnonzero(model.coef_)
    (2, array([5, 9]))
    """

    cv: Any = None


@dataclass(eq=False, repr=False)
class GreedyClassifierCV(SparseClassifier, _GreedyCV):
    """`GreedyClassifier` with the number of features and the ridge of the lowest held-out loss, from one path per fold
    and ridge; parameters and attributes as for `GreedyRegressorCV`.

    >>> import numpy as np
    >>> from pursuit.estimators import GreedyClassifierCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = np.where(X[:, 5] - X[:, 9] > 0, "yes", "no")
    >>> model = GreedyClassifierCV(max_nonzero=4).fit(X, y)
    >>> model.n_nonzero_, np.flatnonzero(model.coef_)
    (2, array([5, 9]))
    """

    loss: str = "log_loss"
    l2: float | Iterable[float] = (1e-3, 1e-1)
    class_weight: Any = None
    cv: Any = None
