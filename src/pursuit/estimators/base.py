"""What all estimators share: parameters checked by a table, arrays, threads, saving."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator

from pursuit import models
from pursuit.arguments import as_int_or_nan, number, require

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = (np.float64, np.float32)
"""The types that the kernels know. Other numbers become the first."""
SPARSE = ("csr", "csc")
"""The sparse formats that are read as they are."""

Check = Callable[[Any, str], Any]
"""A function of a value and the name of its parameter: it raises the sentence that refuses a wrong value."""


class Estimator(BaseEstimator):
    """An estimator of scikit-learn's whose parameters are dataclass fields, and that can be saved to a JSON file."""

    _checks: ClassVar[Mapping[str, Check]] = {}
    """The parameters that `fit` looks at first; base classes have tables of their own."""
    _saved: ClassVar[tuple[str, ...]] = ()
    """Private attributes that belong to the model and go into its file."""
    _not_saved: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes that only describe the fit and stay out of it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and fitted attributes to a JSON file that `pursuit.load` reads."""
        models.save(self, path)

    def _check(self) -> None:
        """Refuse a wrong parameter."""
        for cls in type(self).__mro__:
            for name, check in vars(cls).get("_checks", {}).items():
                check(vars(self)[name], name)


def check_count(value: Any, name: str) -> None:
    """Refuse a value that is no integer of at least 1."""
    require(as_int_or_nan(value) >= 1, name, value, "an integer of at least 1")


def check_optional_count(value: Any, name: str) -> None:
    """Refuse a value that is neither None nor an integer of at least 1."""
    require(value is None or as_int_or_nan(value) >= 1, name, value, "an integer of at least 1, or None")


def check_iterations(value: Any, name: str) -> None:
    """Refuse a value that is no integer of at least 0."""
    require(as_int_or_nan(value) >= 0, name, value, "an integer of at least 0")


def check_amount(value: Any, name: str) -> None:
    """Refuse a value that is no finite number of at least 0."""
    require(0 <= number(value) < np.inf, name, value, "a number of at least 0")


def check_optional_amount(value: Any, name: str) -> None:
    """Refuse a value that is neither None nor a finite number of at least 0."""
    require(value is None or 0 <= number(value) < np.inf, name, value, "a number of at least 0, or None")


def check_positive(value: Any, name: str) -> None:
    """Refuse a value that is no positive number."""
    require(number(value) > 0, name, value, "a positive number")


def one_of(*choices: Any) -> Check:
    """The check that a value is one of the choices."""
    wanted = repr(choices[0]) if len(choices) == 1 else f"one of {choices}"

    def check(value: Any, name: str) -> None:
        known = any(value is choice or (isinstance(value, str) and value == choice) for choice in choices)
        require(known or (isinstance(value, np.bool_) and True in choices), name, value, wanted)

    return check


def dense(X: Any) -> Array:
    """A validated matrix as an array."""
    return np.asarray(X.toarray() if bool(sp.issparse(X)) else X)


def threads(n_jobs: Any) -> int | None:
    """scikit-learn's n_jobs for `encode`, where None is all processors that this process may use."""
    if n_jobs is None:
        return None
    require(abs(as_int_or_nan(n_jobs)) >= 1, "n_jobs", n_jobs, "a number of threads, or None or -1 for all")
    return int(effective_n_jobs(n_jobs))
