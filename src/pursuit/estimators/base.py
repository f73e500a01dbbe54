"""What all estimators share: arguments checked in one sentence, dense centred data, predictions, saving."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pursuit import models
from pursuit.arguments import as_int_or_nan, describe, number

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = (np.float64, np.float32)
"""The types that the kernels know. Other numbers become the first."""


class Estimator(BaseEstimator):
    """An estimator of scikit-learn's that can be saved to a JSON file."""

    _saved: ClassVar[tuple[str, ...]] = ()
    """Private attributes that belong to the model and go into its file."""
    _not_saved: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes that only describe the fit and stay out of it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and fitted attributes to a JSON file that `pursuit.load` reads."""
        models.save(self, path)


class LinearRegressor(MultiOutputMixin, RegressorMixin, Estimator):
    """Predictions X coef' + intercept, of one target or several."""

    coef_: Array
    intercept_: Any

    def predict(self, X: Any) -> Array:
        """The predicted targets: shape (n_samples,), or (n_samples, n_targets) where `fit` was given several."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def dense(X: Any) -> Array:
    """A validated matrix as an array."""
    return np.asarray(X.toarray() if bool(sp.issparse(X)) else X)


def centred(X: Array) -> tuple[Array, Array]:
    """X less the mean of each column, and the means. Constant columns become zero, without a rest of rounding."""
    means = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    rest = X - means
    rest[:, (X[0] == X).all(axis=0)] = 0
    return rest, means


def threads(n_jobs: Any) -> int | None:
    """scikit-learn's n_jobs for `encode`, where None is all processors that this process may use."""
    if n_jobs is None:
        return None
    require(
        as_int_or_nan(n_jobs) == as_int_or_nan(n_jobs) != 0,
        "n_jobs",
        n_jobs,
        "a number of threads, or None or -1 for all",
    )
    return int(effective_n_jobs(n_jobs))


def require(condition: bool, name: str, value: Any, wanted: str) -> None:
    """Refuse a parameter in one sentence."""
    if not condition:
        raise ValueError(f"{name} is {describe(value)}; give {wanted}.")


def require_count(value: Any, name: str, least: int = 1) -> None:
    """Refuse what is neither None nor an integer of at least `least`."""
    require(value is None or as_int_or_nan(value) >= least, name, value, f"an integer of at least {least}, or None")


def require_amount(value: Any, name: str) -> None:
    """Refuse what is neither None nor a finite number of at least 0."""
    require(value is None or 0 <= number(value) < np.inf, name, value, "a number of at least 0, or None")


def require_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Refuse what is none of the choices."""
    known = any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)
    require(known or (isinstance(value, np.bool_) and True in choices), name, value, f"one of {choices}")
