"""What the greedy and the atomic models share: reading samples, cross-validation, predictions.

A model is eta = X B + c with one column of B per output or class. It minimises the weighted *mean* of a loss, so that
penalties mean the same for every number of samples. `tasks` has the losses, `design` the columns of X at unit scale;
coefficients are those of the columns as they were given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pursuit.arguments import require
from pursuit.estimators import checks
from pursuit.estimators.base import FLOATS, SPARSE, Array, Estimator
from pursuit.estimators.design import Design, Loss, ModelPath
from pursuit.estimators.summary import described
from pursuit.estimators.tasks import Classification, Regression, Task, without_offset
from pursuit.predictions import Linear, LinearClassifier, LinearRegressor

Solver = Callable[[Loss, Design], ModelPath]
"""How the models of a path are found."""

Score = Callable[[Task, ModelPath, int, "Samples"], float]
"""The score of a row of a path on samples."""


@dataclass(frozen=True)
class Samples:
    """Data, targets and weights of samples, for a task. `y` are the targets as they were given."""

    task: Task
    X: Any
    y: Array
    target: Array
    weights: Array
    fit_intercept: bool
    standardize: bool = True
    factors: Array | None = None

    def rows(self, which: Array) -> Samples:
        """The samples `which`, without those of weight 0."""
        which = which[self.weights[which] > 0]
        X, y, target, weights = (each[which] for each in (self.X, self.y, self.target, self.weights))
        return replace(self, X=X, y=y, target=target, weights=weights)

    def problem(self) -> tuple[Loss, Design]:
        """The mean loss, and the columns to choose from; samples of weight 0 have no part in them."""
        if not self.weights.all():
            return self.rows(np.arange(len(self.weights))).problem()
        share = self.weights / self.weights.sum()
        equal = (self.weights == self.weights[0]).all()
        f = self.task.objective(self.target, float(share[0]) if equal else share)
        if math.isinf(f.value(f.space.zeros())):
            raise ValueError(
                f"y has numbers up to {np.abs(self.target).max():.1g}, whose loss overflows; divide y by it."
            )
        X = self.X.astype(np.float64, copy=False)
        return f, Design.of(X, self.weights, self.fit_intercept, self.standardize, self.factors)

    def path(self, solver: Solver) -> ModelPath:
        """The models of all levels."""
        return solver(*self.problem())

    def losses(self, path: ModelPath, levels: Array, score: Score | None) -> list[float]:
        """The mean loss of the models of these levels on these samples, or minus their score."""
        rows = [path.at(level) for level in levels]
        if score is not None:
            found = {row: -score(self.task, path, row, self) for row in set(rows)}
        else:
            scores = enumerate(path.scores(self.X))
            found = {row: self.task.held_out_loss(self.target, self.weights, eta) for row, eta in scores}
        return [found[row] for row in rows]


@dataclass(frozen=True)
class Validation:
    """Held-out losses (solvers, levels, folds), the first level being that of the simplest model, in squares of `unit`,
    and the weight of the samples of each fold."""

    losses: Array
    sizes: Array
    unit: float = 1.0

    def choice(self, rule: str) -> tuple[int, int]:
        """The solver and the level of the lowest mean loss; with the rule '1se' the simplest model of this solver whose
        loss is at most one standard error higher."""
        mean = self.losses @ self.sizes / self.sizes.sum()
        solver, best = divmod(int(np.argmin(mean)), mean.shape[1])
        if rule == "1se" and len(self.sizes) > 1:
            error = self.losses[solver, best].std(ddof=1) / math.sqrt(len(self.sizes))
            best = int(np.argmax(mean[solver] <= mean[solver, best] + error))
        return solver, best


class LinearModel(Linear, Estimator):
    """eta = X coef' + intercept."""

    _checks = checks.table(fit_intercept=checks.boolean)
    _not_saved = ("path_", "_made_for")

    def _samples(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Samples:
        """Data, targets and weights, checked; targets are those without the offset."""
        numeric = not is_classifier(self)
        X, y = validate_data(
            self, X, y, accept_sparse=SPARSE, dtype=FLOATS,
            multi_output=numeric, y_numeric=numeric, ensure_min_samples=2,
        )  # fmt: skip
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if np.count_nonzero(weights) < 2:
            raise ValueError(f"sample_weight leaves {np.count_nonzero(weights)} sample(s); give two positive weights.")
        if offset is not None:
            require(numeric, "offset", offset, "None for classes")
            y, weights = without_offset(self.loss, y, weights, checks.vector(offset, "offset", len(weights)))
        task, target, weights = self._task(y, weights)
        standardize, factors = bool(getattr(self, "standardize", True)), getattr(self, "factors", None)
        if factors is not None:
            factors = checks.vector(factors, "factors", X.shape[1], least=np.finfo(float).tiny)
        return Samples(task, X, np.asarray(y), target, weights, bool(self.fit_intercept), standardize, factors)

    def _task(self, y: Array, weights: Array) -> tuple[Task, Array, Array]:
        """What shall be predicted, with its targets and weights."""
        raise NotImplementedError

    def _take(self, task: Task, path: ModelPath, row: int) -> Self:
        """Make this row of the path the model."""
        self._made_for, self.path_, self.n_iter_ = task, path, path.n_iter
        self.dropped_ = self._names()[path.dropped]
        self.coef_, self.intercept_ = task.shaped(path.coef_of(row), path.intercept[row])
        return self

    def _names(self) -> Array:
        """The names of the features, or their numbers."""
        return np.asarray(getattr(self, "feature_names_in_", np.arange(self.n_features_in_)))

    @property
    def features_(self) -> Array:
        """The names of the features that the model uses, or their numbers."""
        check_is_fitted(self)
        return self._names()[np.atleast_2d(self.coef_).any(axis=0)]

    def _at(self, level: float) -> Self:
        """A copy of the model with the coefficients of another level of its path."""
        check_is_fitted(self)
        if not hasattr(self, "path_"):
            raise ValueError(f"this {type(self).__name__} was loaded from a file, which keeps no path; fit it again.")
        return copy(self)._take(self._made_for, self.path_, self.path_.at(level))

    def summary(self) -> str:
        """The model as text: the features it uses with their coefficients, those of features at unit scale beside them
        (the largest first), and what is known of its quality."""
        check_is_fitted(self)
        return described(self)

    def _read(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse=SPARSE, dtype=FLOATS, reset=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SparseRegressor(LinearRegressor, MultiOutputMixin, RegressorMixin, LinearModel):
    """Predictions of one target or several."""

    _checks = checks.table(loss=checks.one_of("squared_error", "huber", "poisson"))

    def _task(self, y: Array, weights: Array) -> tuple[Task, Array, Array]:
        return *Regression.of(self.loss, y, weights), weights


class SparseClassifier(LinearClassifier, ClassifierMixin, LinearModel):
    """Predictions of classes by logistic models: one score for two classes, one per class for more."""

    _checks = checks.table(loss=checks.one_of("log_loss"))

    def _task(self, y: Array, weights: Array) -> tuple[Task, Array, Array]:
        task, target, weights = Classification.of(self._norm, y, weights, self.class_weight)
        self.classes_ = task.classes
        return task, target, weights
