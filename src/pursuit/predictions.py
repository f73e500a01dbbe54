"""What linear models predict from their coefficients: numbers, rates, classes and probabilities, by NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax

from pursuit.arguments import describe, real_array, require

Array = np.ndarray[Any, np.dtype[Any]]


class Linear:
    """A model whose scores are X coef' + intercept."""

    coef_: Array
    intercept_: Any

    def _read(self, X: Any) -> Any:
        """The samples, checked."""
        names = getattr(self, "feature_names_in_", None)
        columns = getattr(X, "columns", None)
        if names is not None and columns is not None and list(columns) != list(names):
            raise ValueError(f"X has the columns {describe(list(columns))}; give those of the fit, in their order.")
        X = X if sp.issparse(X) else real_array(X, "X")
        if X.ndim != 2 or X.shape[1] != self.coef_.shape[-1]:
            raise ValueError(f"X is {describe(X)}; give a matrix of {self.coef_.shape[-1]} columns.")
        return X

    def _scores(self, X: Any) -> Array:
        return np.asarray(self._read(X) @ np.atleast_2d(self.coef_).T + self.intercept_)


class LinearRegressor(Linear):
    """Predictions of one target or several."""

    def predict(self, X: Any, offset: Any = 0.0) -> Array:
        """The predicted targets (of the Poisson loss, the rates); an `offset` is added to the scores of each sample."""
        eta = self._scores(X)
        shift = np.asarray(offset)
        fits = shift.dtype.kind in "iuf" and shift.shape in {(), (len(eta),)} and bool(np.isfinite(shift).all())
        require(fits, "offset", offset, f"a finite number, or one for each of the {len(eta)} samples")
        eta += shift.astype(eta.dtype).reshape(-1, 1)
        eta = eta[:, 0] if np.ndim(self.coef_) == 1 else eta
        return np.exp(eta) if getattr(self, "loss", None) == "poisson" else eta


class LinearClassifier(Linear):
    """Predictions of classes by logistic models: one score for two classes, one per class for more."""

    classes_: Array

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


def stored(name: str, state: dict[str, Any]) -> LinearRegressor | LinearClassifier | None:
    """The predictor of a stored estimator with this name; None where it is no linear model that was fitted."""
    linear = name.startswith(("Greedy", "Atomic", "OrthogonalMatchingPursuit")) and "coef_" in state
    if not linear:
        return None
    predictor = LinearClassifier() if "classes_" in state else LinearRegressor()
    vars(predictor).update(state)
    return predictor
