"""Greedy models: features enter one at a time, the one that helps most first, and all coefficients are refitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, as_list, number
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.groups import Groups
from pursuit.atoms.vectors import SignedBasis, Simplex
from pursuit.domains import Domain, cone, lin
from pursuit.estimators.base import require
from pursuit.estimators.linear import (
    Array,
    Design,
    LinearModel,
    Loss,
    ModelPath,
    SparseClassifier,
    SparseRegressor,
    group_labels,
    row_of,
    without_features,
)
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
        An intercept is fitted first and is no feature.
    tol : float, optional
        Fitting ends once the objective is at most this fraction of its value without features.

    Attributes
    ----------
    coef_, intercept_ : arrays of scikit-learn's shapes
    dropped_ : array
        The names (or numbers) of features that are constant; their coefficients are 0.
    path_ : ModelPath
        The models of all sizes, from no feature to the last.
    n_iter_ : int
        The number of iterations; one feature each.
"""


class _Greedy(LinearModel):
    """One greedy run gives the models of all sizes."""

    def _check(self) -> dict[str, Any]:
        wanted = "an integer of at least 1, or None"
        require(self.n_nonzero is None or as_int_or_nan(self.n_nonzero) >= 1, "n_nonzero", self.n_nonzero, wanted)
        return {"size": self.n_nonzero, "l2": _amount(self.l2, "l2"), "update": PATH_UPDATE}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose features and fit their coefficients."""
        parameters = self._check()
        X, target, weights = self._read(X, y, sample_weight)
        found = self._path(X, target, weights, parameters)
        return self._take(found, len(found) - 1)

    def _solve(self, f: Loss, design: Design, parameters: dict[str, Any]) -> ModelPath:
        l2, tol = parameters["l2"], _amount(self.tol, "tol")
        F: Loss | Ridge = Ridge(f, design.q) if l2 and design.q else f
        first, ones = without_features(F, design, 1e-12), design.intercepts(F.space.shape)
        if not design.q or not first[1] > F.infimum:  # nothing to choose from, or nothing left to fit
            return ModelPath.of(design, [first], 1)
        labels = None if self.groups is None else group_labels(self.groups, design.p)[design.kept]
        domain, refine = self._domain(f, design, labels, l2)
        most = design.q if labels is None else len(np.unique(labels))
        size = min(parameters["size"] or most, most)
        floor = F.infimum + max(tol, SEPARATED) * (first[1] - F.infimum)
        found = path(
            F, domain if ones is None else domain + ones, atoms=range(1, size + 1),
            update=parameters["update"], refine=refine, stop=Stop(rgap=None, value=floor),
        )  # fmt: skip
        rows = [row_of(k, r, design.q) for k, r in zip(found.atoms, found.results, strict=True)]
        return ModelPath.of(design, [first, *rows], len(rows), found.results[-1] if found.results else None)

    def _domain(self, f: Loss, design: Design, labels: Array | None, l2: float) -> tuple[Domain, Any]:
        """The span or cone of the features or groups, and how coefficients within groups are refitted."""
        several = len(f.space.shape) == 2
        if labels is None and not several:
            if not l2:
                A: Any = Dictionary(design.X)._with(size=None)  # no proof for all columns at once: it takes their SVD
            else:
                A = (Simplex if self.positive else SignedBasis)(design.q).through(design.X, l2=l2)
            return (cone(A) if self.positive else lin(A)), None
        if self.positive:
            raise ValueError("positive=True needs one output and no groups; leave it out, or fit each output alone.")
        outputs = f.space.shape[1] if several else 1
        labels = np.arange(design.q) if labels is None else np.unique(labels, return_inverse=True)[1]
        units = Groups(np.repeat(labels, outputs), np.sqrt(outputs * np.bincount(labels)))
        images = units.through(design.X, columns=outputs if several else None, l2=l2)
        return lin(images), _Refit(f, design, units, labels, l2)


@dataclass(frozen=True)
class _Refit:
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
        ones, first = small.intercepts(F.space.shape), B[used].ravel()
        start = (first, [A.atom(j) for j in range(len(first))])
        whole_span = lin(A) if ones is None else lin(A) + ones
        rule = Stop(rgap=None, iterations=1 + outputs)  # until all intercepts are there
        r = minimize(F, whole_span, FullyCorrective(several=outputs), start=start, stop=rule)
        *_, B[used], c = row_of(0, r, len(used))
        own = [self.units.unit(name, B[at].ravel()) for name, at in names.items()]
        atoms = [a for a in map(domain.parts[0].asked.rebuild, own) if a is not None]
        weights = [np.linalg.norm(B[at]) / abs(a.coef) for a, at in zip(atoms, names.values(), strict=True)]
        if ones is not None:
            atoms += [domain.parts[1].A.atom(k) for k in range(outputs)]
        blocks = np.repeat([0, 1], [len(names), len(atoms) - len(names)])
        return np.array([*weights, *c][: len(atoms)]), atoms, blocks


def _amount(value: Any, name: str) -> float:
    """A finite number of at least 0; None is 0."""
    require(value is None or 0 <= number(value) < np.inf, name, value, "a number of at least 0")
    return 0.0 if value is None else float(value)


class _GreedyCV(_Greedy):
    """The size, and the ridge where several are given, with the lowest held-out loss."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the number of features by cross-validation, with one path per fold, and fit it on all data."""
        require(as_int_or_nan(self.max_nonzero) >= 1, "max_nonzero", self.max_nonzero, "an integer of at least 1")
        ridges = [_amount(l2, "l2") for l2 in as_list(self.l2)]
        X, target, weights = self._read(X, y, sample_weight)
        settings = [{"l2": l2, "size": int(self.max_nonzero), "update": FOLD_UPDATE} for l2 in ridges]
        chosen, size = self._choose(X, target, weights, settings, np.arange(int(self.max_nonzero) + 1))
        found = self._path(X, target, weights, chosen | {"size": max(int(size), 1), "update": PATH_UPDATE})
        row = found.at(size)
        self.l2_, self.n_nonzero_ = chosen["l2"], int(found.level[row])
        return self._take(found, row)


class GreedyRegressor(SparseRegressor, _Greedy):
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
    """

    def __init__(
        self,
        loss: str = "squared_error",
        n_nonzero: int | None = 10,
        l2: float = 0.0,
        groups: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        tol: float | None = None,
    ) -> None:
        self.loss = loss
        self.n_nonzero = n_nonzero
        self.l2 = l2
        self.groups = groups
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.tol = tol


class GreedyClassifier(SparseClassifier, _Greedy):
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

    def __init__(
        self,
        loss: str = "log_loss",
        n_nonzero: int | None = 10,
        l2: float = 1e-3,
        groups: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        tol: float | None = None,
        class_weight: Any = None,
    ) -> None:
        self.loss = loss
        self.n_nonzero = n_nonzero
        self.l2 = l2
        self.groups = groups
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.class_weight = class_weight


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

    def __init__(
        self,
        loss: str = "squared_error",
        max_nonzero: int = 30,
        l2: float | Iterable[float] = 0.0,
        groups: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        tol: float | None = None,
        cv: Any = None,
    ) -> None:
        self.loss = loss
        self.max_nonzero = max_nonzero
        self.l2 = l2
        self.groups = groups
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.cv = cv


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

    def __init__(
        self,
        loss: str = "log_loss",
        max_nonzero: int = 30,
        l2: float | Iterable[float] = (1e-3, 1e-1),
        groups: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        tol: float | None = None,
        class_weight: Any = None,
        cv: Any = None,
    ) -> None:
        self.loss = loss
        self.max_nonzero = max_nonzero
        self.l2 = l2
        self.groups = groups
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.class_weight = class_weight
        self.cv = cv
