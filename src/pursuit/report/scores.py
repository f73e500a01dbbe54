"""Scores of a model's predictions (scikit-learn's metrics), and the loss that cross-validation measured."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pursuit.arrays import Small

LOSSES = {
    "squared_error": "half the mean squared error",
    "huber": "the mean of Huber's loss",
    "poisson": "the mean Poisson loss",
    "log_loss": "the mean log loss",
}
"""What models minimise, by the name of their loss."""


def model_scores(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Scores by name, the most important first; NaN where one is not defined (R² of one sample, one class).

    >>> from pursuit.estimators import GreedyRegressor
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]
    >>> model_scores(GreedyRegressor(n_nonzero=1).fit(X, y), X, np.array(y))["R²"]
    1.0
    """
    from sklearn import metrics

    with np.errstate(over="ignore"):
        predicted = model.predict(X)
    if not hasattr(model, "classes_"):
        poisson = model.loss == "poisson" and y.ndim == 1
        deviance = {"deviance explained": _defined(metrics.d2_tweedie_score, y, predicted, power=1)} if poisson else {}
        return deviance | {
            "R²": _defined(metrics.r2_score, y, predicted),
            "root mean squared error": _defined(metrics.root_mean_squared_error, y.ravel(), predicted.ravel()),
            "mean absolute error": _defined(metrics.mean_absolute_error, y, predicted),
        }
    classes = model.classes_
    scores = {"accuracy": float(metrics.accuracy_score(y, predicted))}
    if len(classes) == 2:
        scores["ROC AUC"] = _defined(metrics.roc_auc_score, y == classes[1], model.decision_function(X))
    unknown = not np.isin(y, classes).all()  # a class of probability 0
    loss = math.inf if unknown else _defined(metrics.log_loss, y, model.predict_proba(X), labels=classes)
    return scores | {"log loss": loss, "share of the most frequent class": _largest_share(y)}


def _defined(metric: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(metric(*arguments, **options))
        except ValueError:  # a prediction that is not finite, or 0 where the Poisson loss needs more
            return math.nan


def _largest_share(y: Any) -> float:
    return float(np.unique(y, return_counts=True)[1].max() / len(y))


class HeldOut(NamedTuple):
    """The held-out losses of a model that cross-validation chose."""

    mean: Small
    """The mean over the folds, for each ridge and each level."""
    error: Small
    """The standard error of that mean."""
    ridges: list[float]
    chosen: tuple[int, int]
    """The ridge and the level of the model."""
    folds: int
    loss: str

    @property
    def plain(self) -> dict[str, Any]:
        """The cross-validated loss of the chosen model."""
        loss, error = (float(table[self.chosen]) for table in (self.mean, self.error))
        return {"loss": loss, "standard_error": error, "folds": self.folds, "of": self.loss}

    @classmethod
    def of(cls, model: Any) -> HeldOut | None:
        """Those of a model; None where it was not chosen by cross-validation."""
        losses = getattr(model, "cv_losses_", None)
        if losses is None:
            return None
        folds, greedy = losses.shape[2], hasattr(model, "n_nonzero_")
        ridges = [float(l2) for l2 in model.ridges_] if greedy else [0.0]
        ridge = ridges.index(model.l2_) if greedy else 0
        level = np.argmin(np.abs(np.asarray(model.levels_) - (model.n_nonzero_ if greedy else model.radius_)))
        errors = losses.std(axis=2) / math.sqrt(folds)
        return cls(losses.mean(axis=2), errors, ridges, (ridge, int(level)), folds, LOSSES[model.loss])
