"""What all estimators share: parameters checked by a table, arrays, threads, saving."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator

from pursuit import models
from pursuit.arguments import as_int_or_nan, require
from pursuit.estimators.checks import Check

Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = (np.float64, np.float32)
"""The types that the kernels know. Other numbers become the first."""
SPARSE = ("csr", "csc")
"""The sparse formats that are read as they are."""


class Estimator(BaseEstimator):
    """An estimator of scikit-learn's whose parameters are dataclass fields, and that can be saved to a JSON file."""

    _checks: ClassVar[Mapping[str, Check]] = {}
    """The checks of parameters that `fit` makes first; each class has those of the parameters it knows."""
    _saved: ClassVar[tuple[str, ...]] = ()
    """Private attributes that belong to the model and go into its file."""
    _not_saved: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes that only describe the fit and stay out of it."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and fitted attributes to a JSON file that `pursuit.load` reads."""
        models.save(self, path)

    def _check(self) -> None:
        for cls in type(self).__mro__:
            for name, check in vars(cls).get("_checks", {}).items():
                check(vars(self)[name], name)


def dense(X: Any) -> Array:
    """A validated matrix as an array."""
    return np.asarray(X.toarray() if bool(sp.issparse(X)) else X)


def threads(n_jobs: Any) -> int | None:
    """scikit-learn's n_jobs for `encode`, where None is all processors that this process may use."""
    if n_jobs is None:
        return None
    require(abs(as_int_or_nan(n_jobs)) >= 1, "n_jobs", n_jobs, "a number of threads, or None or -1 for all")
    return int(effective_n_jobs(n_jobs))
