"""Orthogonal matching pursuit as scikit-learn's estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data

from pursuit.estimators import checks
from pursuit.estimators.base import FLOATS, SPARSE, Array, Estimator, dense, threads
from pursuit.estimators.functions import answer, check_precompute, most_atoms
from pursuit.estimators.omp import codes_of, path, pursue, stacked
from pursuit.predictions import LinearRegressor


class _Pursuit(LinearRegressor, MultiOutputMixin, RegressorMixin, Estimator):
    """A linear model X coef' + intercept, of one target or several, by orthogonal matching pursuit."""

    _checks = checks.table(fit_intercept=checks.boolean)

    def _read(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse=SPARSE, dtype=FLOATS, reset=False)

    def _fit(self, X: Array, y: Array, limit: int, tol: Any = None, n_jobs: int | None = None) -> Self:
        """Fit coefficients and intercept by a pursuit of at most `limit` features."""
        X, Y, x_means, y_means = self._centred(X, y.reshape(len(y), -1).astype(X.dtype, copy=False))
        codes = pursue(X, Y, limit, tol, n_jobs)
        coef, self.n_iter_ = answer(codes.toarray().T, np.diff(codes.indptr), True)
        self.coef_ = np.ascontiguousarray(coef.T)
        self.n_nonzero_coefs_ = None if tol is not None else limit
        self.intercept_ = y_means.reshape(y.shape[1:])[()] - x_means @ self.coef_.T if self.fit_intercept else 0.0
        return self

    def _centred(self, X: Array, Y: Array) -> tuple[Array, Array, Array, Array]:
        """X and Y less the means of their columns where there is an intercept, and what was subtracted."""
        if not self.fit_intercept:
            return X, Y, np.zeros(X.shape[1], X.dtype), np.zeros(Y.shape[1], X.dtype)
        (X, x_means), (Y, y_means) = centred(X), centred(Y)
        return X, Y, x_means, y_means

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def centred(X: Array) -> tuple[Array, Array]:
    """X less the mean of each column, and the means. Constant columns become exactly zero."""
    means = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    differences = X - means
    differences[:, (X[0] == X).all(axis=0)] = 0
    return differences, means


@dataclass(eq=False, repr=False, kw_only=True)
class OrthogonalMatchingPursuit(_Pursuit):
    """A linear model of few features, chosen one by one: that which correlates most with the residual enters.

    `n_nonzero_coefs` features (by default a tenth of all, at least one), or as many as it takes until the squared norm
    of the residual is at most `tol`. Parameters and attributes are scikit-learn's; `precompute` is of no effect.

    >>> import numpy as np
    >>> from pursuit.estimators import OrthogonalMatchingPursuit
    >>> X = np.random.default_rng(0).standard_normal((50, 100))
    >>> model = OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, 3 * X[:, 7] - 2 * X[:, 40] + 1)
    >>> model.coef_[[7, 40]].round(6), round(float(model.intercept_), 6)
    (array([ 3., -2.]), 1.0)
    """

    n_nonzero_coefs: int | None = None
    tol: float | None = None
    fit_intercept: bool = True
    precompute: Any = "auto"

    _checks = checks.table(
        n_nonzero_coefs=checks.optional_count, tol=checks.optional_amount, precompute=check_precompute
    )

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to X of shape (n_samples, n_features), dense or sparse, and y with one target or several."""
        self._check()
        X, y = validate_data(self, X, y, accept_sparse=SPARSE, multi_output=True, y_numeric=True, dtype=FLOATS)
        return self._fit(dense(X), y, most_atoms(self.n_nonzero_coefs, self.tol, X.shape[1]), self.tol)


@dataclass(eq=False, repr=False, kw_only=True)
class OrthogonalMatchingPursuitCV(_Pursuit):
    """OrthogonalMatchingPursuit of the size that predicts best in cross-validation, from one path for each fold.

    Sizes up to `max_iter` are tried, by default a tenth of the features, at least 5 where there are as many. Parameters
    and attributes are scikit-learn's; `n_nonzero_coefs_` is the size. `copy` and `verbose` are of no effect.

    >>> import numpy as np
    >>> from pursuit.estimators import OrthogonalMatchingPursuitCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> y = 3 * X[:, 7] - 2 * X[:, 20] + 0.1 * rng.standard_normal(100)
    >>> OrthogonalMatchingPursuitCV().fit(X, y).n_nonzero_coefs_
    2
    """

    copy: bool = True
    fit_intercept: bool = True
    max_iter: int | None = None
    cv: Any = None
    n_jobs: int | None = None
    verbose: Any = False

    _checks = checks.table(max_iter=checks.optional_iterations)

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Choose the size on the folds, then fit to all of X and y; metadata routing sends `fit_params` to `cv`."""
        if fit_params and not get_config()["enable_metadata_routing"]:
            name = next(iter(fit_params))
            raise ValueError(f"{name} was passed to fit; call sklearn.set_config(enable_metadata_routing=True) first.")
        self._check()
        X, y = validate_data(self, X, y, accept_sparse=SPARSE, y_numeric=True, dtype=FLOATS, ensure_min_features=2)
        routed = process_routing(self, "fit", **fit_params)
        X, y, jobs = dense(X), y.astype(X.dtype, copy=False), threads(self.n_jobs)
        limit = most_atoms(self.max_iter or min(max(X.shape[1] // 10, 5), X.shape[1]), None, X.shape[1])
        errors = []
        for train, test in check_cv(self.cv).split(X, **routed.splitter.split):
            A, b, x_means, y_means = self._centred(X[train], y[train, None])
            code = codes_of(A, b.T, atoms=limit, n_jobs=jobs)
            coef = stacked([path(A, b[:, 0], code)], X.shape[1], X.dtype)[:, 0]
            errors.append(np.square((X[test] - x_means) @ coef + y_means - y[test, None]).mean(axis=0))
        shortest = min(map(len, errors))
        best = 1 + int(np.argmin(np.mean([error[:shortest] for error in errors], axis=0)))
        return self._fit(X, y, best, n_jobs=jobs)

    def get_metadata_routing(self) -> MetadataRouter:
        """Which methods of the splitter the arguments of `fit` go to."""
        mapping = MethodMapping().add(caller="fit", callee="split")
        return MetadataRouter(owner=self).add(splitter=self.cv, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
