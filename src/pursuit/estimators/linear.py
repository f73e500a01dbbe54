"""What the greedy and the atomic models share: data, losses, the columns they choose from, predictions, folds.

A model is eta = X B + c with one column of B per output or class. It minimises the weighted *mean* of a loss, so that
penalties mean the same for every number of samples. Columns are divided by their standard deviation inside (without an
intercept: by their root mean square), so that neither the choice of columns nor a radius depends on units; dense
columns are centred, too, and sparse ones stay sparse. The coefficients are those of the columns as they were given.
Columns that are constant (without an intercept: zero) get the coefficient 0; `dropped_` names them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.sparsefuncs import mean_variance_axis
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pursuit.arguments import describe
from pursuit.atoms.factored import LowRank
from pursuit.atoms.vectors import Dictionary
from pursuit.domains import Domain, lin
from pursuit.estimators.base import Estimator, require
from pursuit.objectives import Huber, LeastSquares, Logistic, Multinomial, Poisson, Ridge
from pursuit.run.result import Result
from pursuit.run.stop import Status, Stop
from pursuit.solve import minimize

Array = np.ndarray[Any, np.dtype[Any]]

HUBER_WIDTH = 1.345
"""The width of Huber's loss in standard deviations of the noise at which it is 95 % as efficient as least squares."""

NORMAL_MAD = 0.6745
"""The median absolute deviation of a normal variable, in standard deviations."""

Loss = Huber | LeastSquares | Logistic | Multinomial | Poisson

REGRESSION_LOSSES = ("squared_error", "huber", "poisson")


@dataclass(frozen=True)
class Design:
    """The columns that a model may use: `X` at unit scale, from the columns `kept` of p."""

    X: Any
    kept: Array
    scale: Array
    mean: Array
    p: int
    fit_intercept: bool

    @classmethod
    def of(cls, X: Any, weights: Array, fit_intercept: bool) -> Design:
        """The columns of X without those that are constant (or zero, without an intercept), at unit scale."""
        sparse = bool(sp.issparse(X))
        if sparse:
            X = X.tocsc()
            low, high = (np.asarray(extreme(axis=0).todense()).ravel() for extreme in (X.min, X.max))
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        kept = np.flatnonzero(low != high if fit_intercept else (low != 0) | (high != 0))
        p, X, share = X.shape[1], X[:, kept], weights / weights.sum()
        mean = np.zeros(len(kept))
        if not len(kept):
            return cls(X, kept, np.ones(0), mean, p, fit_intercept)
        if sparse:
            middle, variance = mean_variance_axis(X, axis=0, weights=share)
            scale = np.sqrt(variance if fit_intercept else variance + middle**2)
            X = X.multiply(1.0 / scale).tocsc()
        else:
            mean = share @ X if fit_intercept else mean
            X = X - mean
            largest = np.abs(X).max(axis=0)
            X /= largest
            spread = np.sqrt(share @ (X * X))
            X /= spread
            scale = largest * spread
        return cls(X, kept, scale, mean, p, fit_intercept)

    @property
    def q(self) -> int:
        """The number of columns kept."""
        return len(self.kept)

    def intercepts(self, shape: tuple[int, ...]) -> Domain | None:
        """The span of the intercepts, one per column of x of this shape; rows below those of X are zero."""
        if not self.fit_intercept:
            return None
        ones = (np.arange(shape[0]) < self.X.shape[0]).astype(np.float64)
        columns = ones[:, None] if len(shape) == 1 else ones[:, None, None] * np.eye(shape[1])
        return lin(Dictionary(columns), counted=False)

    def model(self, B: Array, c: Array) -> tuple[Array, Array]:
        """Coefficients (outputs, p) and intercepts of the columns as given, from those (q, outputs) at unit scale."""
        coef = np.zeros((B.shape[1], self.p))
        coef[:, self.kept] = (B / self.scale[:, None]).T
        return coef, c - (self.mean / self.scale) @ B


@dataclass(frozen=True, repr=False)
class ModelPath:
    """Models along a path, one row each: the `level` (number of features, or radius), the objective's `value`, its
    certified `gap` (infinite where nothing is proved), `coef` (rows, outputs, features) and `intercept`."""

    level: Array
    value: Array
    gap: Array
    coef: Array
    intercept: Array
    n_iter: int
    dropped: Array
    """Columns that are constant (without an intercept: zero) and were left out."""
    complete: bool
    """False where Ctrl-C ended the path."""

    @classmethod
    def of(cls, design: Design, rows: Sequence[Row], n_iter: int, last: Result | None = None) -> ModelPath:
        """The path of these rows."""
        models = [design.model(B, c) for *_, B, c in rows]
        level, value, gap = (np.array([row[i] for row in rows]) for i in range(3))
        coef, intercept = (np.array([model[i] for model in models]) for i in range(2))
        dropped = np.setdiff1d(np.arange(design.p), design.kept)
        complete = last is None or last.status is not Status.INTERRUPTED
        return cls(level, value, gap, coef, intercept, max(n_iter, 1), dropped, complete)

    def __len__(self) -> int:
        return len(self.level)

    def __repr__(self) -> str:
        return f"ModelPath({len(self)} models, levels {self.level[0]:g} to {self.level[-1]:g})"

    def along(self) -> tuple[Array, str]:
        """The levels as numbers, and what they are, for figures."""
        sizes = bool((self.level == np.arange(len(self.level))).all())
        return np.asarray(self.level, dtype=float), "features" if sizes else "radius"

    def coefficients(self) -> Array:
        """A row for each level, a column for each feature: its coefficient, or the norm of several, for figures."""
        return np.stack([np.linalg.norm(B, axis=0) if len(B) > 1 else B.ravel() for B in self.coef])

    def scores(self, X: Any) -> Array:
        """X B + c of every row: (rows, samples, outputs)."""
        return np.stack([X @ B.T + c for B, c in zip(self.coef, self.intercept, strict=True)])

    def at(self, level: float) -> int:
        """The last row at or below this level; the first row where there is none."""
        return max(int(np.searchsorted(self.level, level * (1.0 + 1e-12), side="right")) - 1, 0)


Row = tuple[float, float, float, Array, Array]
"""Level, value, gap, coefficients (q, outputs) at unit scale, and intercepts of a model."""


def without_features(f: Loss | Ridge, design: Design, tol: float) -> Row:
    """The model of intercepts only."""
    ones = design.intercepts(f.space.shape)
    B = np.zeros((design.q, math.prod(f.space.shape[1:])))
    if ones is None:
        value = f.value(f.space.zeros())
        return 0.0, value, value - f.infimum, B, np.zeros(B.shape[1])
    fit = minimize(f, ones, stop=Stop(rgap=tol))
    return 0.0, fit.value, fit.gap, B, np.reshape(fit.coef, B.shape[1])


def row_of(level: float, r: Result, q: int) -> Row:
    """The row of a result over q features, and over intercepts where its domain has them."""
    B, *c = r.coef if len(r.domain.parts) == 2 else (r.coef,)
    B = B.U @ (B.s[:, None] * B.V.T) if isinstance(B, LowRank) else np.reshape(B, (q, -1))
    return level, r.value, r.gap, B, np.reshape(c, -1) if c else np.zeros(B.shape[1])


def _medians(columns: Array, weights: Array) -> Array:
    """The weighted median of each column: a weight counts as a repetition."""
    weights = np.broadcast_to(weights[:, None], columns.shape)
    return np.quantile(columns, 0.5, axis=0, weights=weights, method="inverted_cdf")


def group_labels(groups: Any, p: int) -> Array:
    """The group of every feature, from labels of any kind."""
    labels = np.asarray(groups)
    require(labels.shape == (p,), "groups", groups, f"one label for each of the {p} features")
    return np.unique(labels, return_inverse=True)[1]


class LinearModel(Estimator):
    """eta = X coef' + intercept. A subclass says how targets become an objective (`_target`, `_objective`, `_held_out`)
    and how the models of a path are found (`_solve`)."""

    _saved: ClassVar[tuple[str, ...]] = ("_single", "_width")
    _not_saved: ClassVar[tuple[str, ...]] = ("path_",)

    def _target(self, y: Array, weights: Array) -> tuple[Array, Array]:
        """The target in the form that `_objective` takes, and the weights of samples."""
        raise NotImplementedError

    def _objective(self, target: Array, weights: Any) -> Loss:
        """The objective of these targets, for weights that sum to 1."""
        raise NotImplementedError

    def _held_out(self, target: Array, weights: Array, eta: Array) -> float:
        """The mean loss of scores eta (samples, outputs)."""
        raise NotImplementedError

    def _solve(self, f: Loss, design: Design, parameters: dict[str, Any]) -> ModelPath:
        """The models for these parameters."""
        raise NotImplementedError

    def _check(self) -> dict[str, Any]:
        """The parameters of `_solve`, checked."""
        raise NotImplementedError

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array]:
        """Data, targets and weights, checked."""
        numeric = isinstance(self, RegressorMixin)
        X, y = validate_data(
            self, X, y, accept_sparse=("csr",), dtype=np.float64,
            multi_output=numeric, y_numeric=numeric, ensure_min_samples=2,
        )  # fmt: skip
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if np.count_nonzero(weights) < 2:
            raise ValueError(f"sample_weight leaves {np.count_nonzero(weights)} sample(s); give two positive weights.")
        return X, *self._target(y, weights)

    def _path(self, X: Any, target: Array, weights: Array, parameters: dict[str, Any]) -> ModelPath:
        """The models of all levels on these data, of which samples of weight zero are left out."""
        used = np.flatnonzero(weights)
        if len(used) < len(weights):
            X, target, weights = X[used], target[used], weights[used]
        share = weights / weights.sum()
        share = float(share[0]) if (weights == weights[0]).all() else share
        f = self._objective(target, share)
        return self._solve(f, Design.of(X, weights, self.fit_intercept), parameters)

    def _take(self, path: ModelPath, row: int) -> Self:
        """Make this row of the path the model."""
        self.path_, self.n_iter_ = path, path.n_iter
        self.dropped_ = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))[path.dropped]
        self.coef_, self.intercept_ = self._shaped(path.coef[row], path.intercept[row])
        return self

    def _shaped(self, coef: Array, intercept: Array) -> tuple[Array, Any]:
        raise NotImplementedError

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csc", "csr"), dtype=np.float64, reset=False)
        return np.asarray(X @ np.atleast_2d(self.coef_).T + self.intercept_)

    def _choose(
        self, X: Any, target: Array, weights: Array, settings: Sequence[dict[str, Any]], levels: Array
    ) -> tuple[dict[str, Any], float]:
        """The setting and the level of the lowest held-out loss; the losses (settings, levels, folds) are kept."""
        folds = self._folds(X, target, weights)
        losses = np.empty((len(settings), len(levels), len(folds)))
        for (i, setting), (j, (train, held)) in product(enumerate(settings), enumerate(folds)):
            path = self._path(X[train], target[train], weights[train], setting)
            if not path.complete:
                raise KeyboardInterrupt
            used = held[weights[held] > 0]
            loss = [self._held_out(target[used], weights[used], eta) for eta in path.scores(X[used])]
            losses[i, :, j] = [loss[path.at(level)] for level in levels]
        self.cv_losses_, self.levels_ = losses, levels
        sizes = [weights[held].sum() for _, held in folds]
        i, best = divmod(int(np.argmin(losses @ sizes)), len(levels))
        return settings[i], float(levels[best])

    def _folds(self, X: Any, target: Array, weights: Array) -> list[tuple[Array, Array]]:
        """Rows for training and for validation. Folds without a class to train on, or without weight, are left out."""
        discrete = isinstance(self, ClassifierMixin)
        splitter = check_cv(self.cv, target, classifier=discrete)
        if self.cv is None or isinstance(self.cv, int):  # no more folds than samples
            most = int(np.bincount(target).max()) if discrete else len(target)
            splitter = check_cv(max(2, min(splitter.get_n_splits(), most)), target, classifier=discrete)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer samples than folds: see below
            folds = list(splitter.split(X, target))
        usable = [
            (train, held)
            for train, held in folds
            if weights[held].any()
            and (
                len(np.unique(target[train][weights[train] > 0])) == len(self.classes_)
                if discrete
                else np.count_nonzero(weights[train]) > 1
            )
        ]
        if not usable:
            raise ValueError("no fold has every class to train on; give more samples of each class, or other folds.")
        return usable

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SparseRegressor(MultiOutputMixin, RegressorMixin, LinearModel):
    """Predictions of one target or several."""

    def _target(self, y: Array, weights: Array) -> tuple[Array, Array]:
        require(self.loss in REGRESSION_LOSSES, "loss", self.loss, f"one of {REGRESSION_LOSSES}")
        y = np.asarray(y, dtype=np.float64)
        if self.loss == "poisson" and not (y >= 0).all():
            raise ValueError("y holds negative values; the Poisson loss needs counts or rates of at least 0.")
        self._single = y.ndim == 1
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if self.loss == "huber":
            columns = y.reshape(len(y), -1)
            deviations = np.abs(columns - _medians(columns, weights))
            typical = _medians(deviations, weights).mean() or np.average(deviations, axis=0, weights=weights).mean()
            self._width = HUBER_WIDTH / NORMAL_MAD * float(typical or 1.0)
        return y, weights

    def _objective(self, target: Array, weights: Any) -> Loss:
        if target.ndim == 2 and not isinstance(weights, float):
            weights = np.repeat(weights[:, None], target.shape[1], axis=1)
        if self.loss == "huber":
            return Huber(target, self._width, weights)
        return (Poisson if self.loss == "poisson" else LeastSquares)(target, weights)

    def _held_out(self, target: Array, weights: Array, eta: Array) -> float:
        return self._objective(target, weights / weights.sum()).value(eta.reshape(target.shape))

    def _shaped(self, coef: Array, intercept: Array) -> tuple[Array, Any]:
        return (coef[0], float(intercept[0])) if self._single else (coef, intercept)

    def predict(self, X: Any) -> Array:
        """The predicted targets (of the Poisson loss, the rates)."""
        eta = self._scores(X)
        eta = eta[:, 0] if np.ndim(self.coef_) == 1 else eta
        return np.exp(eta) if self.loss == "poisson" else eta


class SparseClassifier(ClassifierMixin, LinearModel):
    """Predictions of classes by logistic models: one score for two classes, one per class for more."""

    def _target(self, y: Array, weights: Array) -> tuple[Array, Array]:
        require(self.loss == "log_loss", "loss", self.loss, "'log_loss'")
        check_classification_targets(y)
        weights = weights * compute_sample_weight(self.class_weight, y)
        self.classes_ = np.unique(y[weights > 0])  # a class without weight is not learned
        if len(self.classes_) < 2:
            one = describe(self.classes_[0]) if len(self.classes_) else "and no weight"
            raise ValueError(f"y has one class, {one}; a classifier needs two classes.")
        return np.searchsorted(self.classes_[:-1], y), weights

    def _objective(self, target: Array, weights: Any) -> Loss:
        classes = len(self.classes_)
        return Logistic(target, weights) if classes == 2 else Multinomial(np.eye(classes)[target], weights)

    def _held_out(self, target: Array, weights: Array, eta: Array) -> float:
        eta = np.column_stack([np.zeros(len(eta)), eta]) if eta.shape[1] == 1 else eta
        return Multinomial(np.eye(len(self.classes_))[target], weights / weights.sum()).value(eta)

    def _shaped(self, coef: Array, intercept: Array) -> tuple[Array, Any]:
        """One of the equal models: where a shift of the scores of all classes changes nothing, a feature's coefficients
        are shifted to the smallest norm, and the intercepts to mean 0."""
        if len(coef) == 1:
            return coef, intercept
        ball = getattr(self, "ball", "group")
        if ball == "l1":
            ordered, half = np.sort(coef, axis=0), len(coef) // 2
            coef = coef - np.clip(0.0, ordered[(len(coef) - 1) // 2], ordered[half])
        elif ball != "ksupport":
            coef = coef - coef.mean(axis=0)
        return coef, intercept - intercept.mean()

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
