"""What a linear model predicts, numbers or classes: its targets, its loss, and the shapes of its coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets

from pursuit.arguments import describe
from pursuit.estimators.base import Array
from pursuit.estimators.design import Loss
from pursuit.objectives import Huber, LeastSquares, Logistic, Multinomial, Poisson

HUBER_WIDTH = 1.345
"""The width of Huber's loss in standard deviations of the noise at which it is 95 % as efficient as least squares."""

NORMAL_MAD = 0.6745
"""The median absolute deviation of a normal variable, in standard deviations."""


@dataclass(frozen=True)
class Regression:
    """One target (`single`, where y has one axis) or several. `width` is that of Huber's loss."""

    loss: str
    single: bool
    width: float

    @classmethod
    def of(cls, loss: str, y: Any, weights: Array) -> tuple[Regression, Array]:
        """The task, and its targets: one column is a vector."""
        y = np.asarray(y, dtype=np.float64)
        if loss == "poisson" and not (y >= 0).all():
            raise ValueError("y holds negative values; the Poisson loss needs counts or rates of at least 0.")
        target = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        width = _huber_width(target.reshape(len(y), -1), weights) if loss == "huber" else 0.0
        return cls(loss, y.ndim == 1, width), target

    def objective(self, target: Array, weights: Any) -> Loss:
        """The mean loss, for weights that sum to 1: one number, or one for each sample."""
        if target.ndim == 2 and not isinstance(weights, float):
            weights = np.repeat(weights[:, None], target.shape[1], axis=1)
        if self.loss == "huber":
            return Huber(target, self.width, weights)
        return (Poisson if self.loss == "poisson" else LeastSquares)(target, weights)

    def held_out_loss(self, target: Array, weights: Array, eta: Array) -> float:
        """The mean loss of scores eta (samples, outputs)."""
        return self.objective(target, weights / weights.sum()).value(eta.reshape(target.shape))

    def infimum(self, target: Array, weights: Array) -> float:
        """A lower bound on the mean loss of all predictions."""
        return self.objective(target, weights / weights.sum()).infimum if self.loss == "poisson" else 0.0

    def trainable(self, target: Array) -> bool:
        """Whether these targets suffice for a model."""
        return len(target) > 1

    def shaped(self, coef: Array, intercept: Array) -> tuple[Array, Any]:
        """Coefficients and intercept in scikit-learn's shapes."""
        return (coef[0], float(intercept[0])) if self.single else (coef, intercept)


def without_offset(loss: str, y: Any, weights: Array, offset: Array) -> tuple[Array, Array]:
    """Targets and weights whose model has the scores of y less the offset o: y - o and, of Poisson's loss, where
    exp(eta + o) - y eta = exp(o) (exp(eta) - y exp(-o) eta), y exp(-o) with the factors exp(o) of weights."""
    y = np.asarray(y, dtype=np.float64)
    across = np.reshape(offset, (-1,) + (1,) * (y.ndim - 1))
    return (y * np.exp(-across), weights * np.exp(offset)) if loss == "poisson" else (y - across, weights)


def _huber_width(columns: Array, weights: Array) -> float:
    """A width for noise of the size of the deviations from the median."""
    deviations = np.abs(columns - _medians(columns, weights))
    typical = _medians(deviations, weights).mean() or np.average(deviations, axis=0, weights=weights).mean()
    return HUBER_WIDTH / NORMAL_MAD * float(typical or 1.0)


def _medians(columns: Array, weights: Array) -> Array:
    """The weighted median of each column: a weight counts as a repetition."""
    weights = np.broadcast_to(weights[:, None], columns.shape)
    return np.quantile(columns, 0.5, axis=0, weights=weights, method="inverted_cdf")


@dataclass(frozen=True)
class Classification:
    """Classes by logistic models: one score for two classes, one per class for more.

    A shift of the scores of all classes changes nothing; the coefficients are shifted to the smallest norm `ball`.
    """

    classes: Array
    ball: str

    @classmethod
    def of(cls, ball: str, y: Any, weights: Array, class_weight: Any) -> tuple[Classification, Array, Array]:
        """The task, the number of each sample's class, and weights; a class without weight is not learned."""
        check_classification_targets(y)
        weights = weights * compute_sample_weight(class_weight, y)
        classes = np.unique(y[weights > 0])
        if len(classes) < 2:
            one = describe(classes[0]) if len(classes) else "and no weight"
            raise ValueError(f"y has one class, {one}; a classifier needs two classes.")
        return cls(classes, ball), np.searchsorted(classes[:-1], y), weights

    def objective(self, target: Array, weights: Any) -> Loss:
        """The mean loss, for weights that sum to 1: one number, or one for each sample."""
        classes = len(self.classes)
        return Logistic(target, weights) if classes == 2 else Multinomial(np.eye(classes)[target], weights)

    def held_out_loss(self, target: Array, weights: Array, eta: Array) -> float:
        """The mean loss of scores eta (samples, 1 or classes)."""
        eta = np.column_stack([np.zeros(len(eta)), eta]) if eta.shape[1] == 1 else eta
        return Multinomial(np.eye(len(self.classes))[target], weights / weights.sum()).value(eta)

    def infimum(self, target: Array, weights: Array) -> float:
        """A lower bound on the mean loss of all predictions."""
        return 0.0

    def trainable(self, target: Array) -> bool:
        """Whether every class is there."""
        return len(np.unique(target)) == len(self.classes)

    def shaped(self, coef: Array, intercept: Array) -> tuple[Array, Any]:
        """Of the equal models that of the smallest coefficients, and intercepts of mean 0."""
        if len(coef) == 1:
            return coef, intercept
        if self.ball == "l1":
            ordered, half = np.sort(coef, axis=0), len(coef) // 2
            coef = coef - np.clip(0.0, ordered[(len(coef) - 1) // 2], ordered[half])
        elif self.ball != "ksupport":
            coef = coef - coef.mean(axis=0)
        return coef, intercept - intercept.mean()


Task = Regression | Classification
