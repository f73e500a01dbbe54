"""What the greedy and the atomic models share: reading samples, cross-validation, predictions.

A model is eta = X B + c with one column of B per output or class. It minimises the weighted *mean* of a loss, so that
penalties mean the same for every number of samples. `tasks` has the losses, `design` the columns of X at unit scale;
coefficients are those of the columns as they were given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pursuit.estimators import checks
from pursuit.estimators.base import SPARSE, Array, Estimator
from pursuit.estimators.design import Design, Loss, ModelPath
from pursuit.estimators.tasks import Classification, Regression, Task

Solver = Callable[[Loss, Design], ModelPath]
"""How the models of a path are found."""


@dataclass(frozen=True)
class Samples:
    """Data, targets and weights of samples, for a task."""

    task: Task
    X: Any
    target: Array
    weights: Array
    fit_intercept: bool

    def rows(self, which: Array) -> Samples:
        """The samples `which`, without those of weight 0."""
        which = which[self.weights[which] > 0]
        return replace(self, X=self.X[which], target=self.target[which], weights=self.weights[which])

    def problem(self) -> tuple[Loss, Design]:
        """The mean loss, and the columns to choose from; samples of weight 0 have no part in them."""
        if not self.weights.all():
            return self.rows(np.arange(len(self.weights))).problem()
        share = self.weights / self.weights.sum()
        equal = (self.weights == self.weights[0]).all()
        f = self.task.objective(self.target, float(share[0]) if equal else share)
        return f, Design.of(self.X, self.weights, self.fit_intercept)

    def path(self, solver: Solver) -> ModelPath:
        """The models of all levels."""
        return solver(*self.problem())

    def cross_validate(self, solvers: Sequence[Solver], levels: Array, cv: Any) -> tuple[Array, int, float]:
        """The held-out losses (solvers, levels, folds), and the solver and the level of the lowest mean loss."""
        folds = self._folds(cv)
        losses = np.empty((len(solvers), len(levels), len(folds)))
        for (i, solver), (j, (train, held)) in product(enumerate(solvers), enumerate(folds)):
            path, test = self.rows(train).path(solver), self.rows(held)
            if not path.complete:
                raise KeyboardInterrupt
            loss = [self.task.held_out_loss(test.target, test.weights, eta) for eta in path.scores(test.X)]
            losses[i, :, j] = [loss[path.at(level)] for level in levels]
        sizes = [self.weights[held].sum() for _, held in folds]
        i, best = divmod(int(np.argmin(losses @ sizes)), len(levels))
        return losses, i, float(levels[best])

    def _folds(self, cv: Any) -> list[tuple[Array, Array]]:
        """Rows for training and for validation, but for folds without a class to train on, or without weight."""
        discrete = isinstance(self.task, Classification)
        splitter = check_cv(cv, self.target, classifier=discrete)
        if cv is None or isinstance(cv, int):  # no more folds than samples
            most = int(np.bincount(self.target).max()) if discrete else len(self.target)
            splitter = check_cv(max(2, min(splitter.get_n_splits(), most)), self.target, classifier=discrete)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer samples than folds: see below
            folds = list(splitter.split(self.X, self.target))
        weighted = self.weights > 0
        usable = [
            (train, held)
            for train, held in folds
            if weighted[held].any() and self.task.trainable(self.target[train][weighted[train]])
        ]
        if not usable:
            raise ValueError("no fold has every class to train on; give more samples of each class, or other folds.")
        return usable


class LinearModel(Estimator):
    """eta = X coef' + intercept."""

    _checks = checks.table(fit_intercept=checks.boolean)
    _not_saved = ("path_",)

    def _samples(self, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Data, targets and weights, checked."""
        numeric = not is_classifier(self)
        X, y = validate_data(
            self, X, y, accept_sparse=("csr",), dtype=np.float64,
            multi_output=numeric, y_numeric=numeric, ensure_min_samples=2,
        )  # fmt: skip
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if np.count_nonzero(weights) < 2:
            raise ValueError(f"sample_weight leaves {np.count_nonzero(weights)} sample(s); give two positive weights.")
        task, target, weights = self._task(y, weights)
        return Samples(task, X, target, weights, bool(self.fit_intercept))

    def _task(self, y: Array, weights: Array) -> tuple[Task, Array, Array]:
        """What shall be predicted, with its targets and weights."""
        raise NotImplementedError

    def _take(self, task: Task, path: ModelPath, row: int) -> Self:
        """Make this row of the path the model."""
        self.path_, self.n_iter_ = path, path.n_iter
        self.dropped_ = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))[path.dropped]
        self.coef_, self.intercept_ = task.shaped(path.coef[row], path.intercept[row])
        return self

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=SPARSE, dtype=np.float64, reset=False)
        return np.asarray(X @ np.atleast_2d(self.coef_).T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SparseRegressor(MultiOutputMixin, RegressorMixin, LinearModel):
    """Predictions of one target or several."""

    _checks = checks.table(loss=checks.one_of("squared_error", "huber", "poisson"))

    def _task(self, y: Array, weights: Array) -> tuple[Task, Array, Array]:
        return *Regression.of(self.loss, y, weights), weights

    def predict(self, X: Any) -> Array:
        """The predicted targets (of the Poisson loss, the rates)."""
        eta = self._scores(X)
        eta = eta[:, 0] if np.ndim(self.coef_) == 1 else eta
        return np.exp(eta) if self.loss == "poisson" else eta


class SparseClassifier(ClassifierMixin, LinearModel):
    """Predictions of classes by logistic models: one score for two classes, one per class for more."""

    _checks = checks.table(loss=checks.one_of("log_loss"))

    def _task(self, y: Array, weights: Array) -> tuple[Task, Array, Array]:
        task, target, weights = Classification.of(self._norm, y, weights, self.class_weight)
        self.classes_ = task.classes
        return task, target, weights

    def decision_function(self, X: Any) -> Array:
        """The scores: (samples,) for two classes, (samples, classes) for more."""
        eta = self._scores(X)
        return eta[:, 0] if eta.shape[1] == 1 else eta

    def predict(self, X: Any) -> Array:
        """The most probable class of each sample."""
        eta = self.decision_function(X)
        return np.asarray(self.classes_[(eta > 0).astype(np.intp) if eta.ndim == 1 else eta.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class."""
        eta = self.decision_function(X)
        return np.column_stack([expit(-eta), expit(eta)]) if eta.ndim == 1 else softmax(eta, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities."""
        eta = self.decision_function(X)
        return np.column_stack([log_expit(-eta), log_expit(eta)]) if eta.ndim == 1 else log_softmax(eta, axis=1)
