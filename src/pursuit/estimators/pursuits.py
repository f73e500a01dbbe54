"""Orthogonal matching pursuit and sparse coding as scikit-learn's estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import validate_data

from pursuit.arguments import as_bool
from pursuit.estimators.base import (
    FLOATS,
    Array,
    Estimator,
    LinearRegressor,
    centred,
    dense,
    require_choice,
    require_count,
    threads,
)
from pursuit.estimators.functions import ALGORITHMS, answer, check_features, most_atoms, sparse_encode
from pursuit.estimators.omp import codes_of, path, pursue, stacked


class OrthogonalMatchingPursuit(LinearRegressor):
    """A linear model of few features, chosen one by one: that which correlates most with the residual enters.

    Parameters
    ----------
    n_nonzero_coefs : int, optional
        The number of coefficients; by default a tenth of the features, at least one.
    tol : float, optional
        Enter features until the squared norm of the residual is at most this, however many that are.
    fit_intercept : bool
    precompute : {"auto", True, False}
        Of no effect: `encode` forms X'X where that is faster.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
        Constant features have coefficient 0.
    intercept_ : float or array of shape (n_targets,)
    n_iter_ : int or list of one for each target
        The number of features that entered.
    n_nonzero_coefs_ : int or None
        The number asked for; None with `tol`.
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import OrthogonalMatchingPursuit
    >>> X = np.random.default_rng(0).standard_normal((50, 100))
    >>> model = OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, 3 * X[:, 7] - 2 * X[:, 40] + 1)
    >>> model.coef_[[7, 40]].round(6), round(float(model.intercept_), 6)
    (array([ 3., -2.]), 1.0)
    """

    n_nonzero_coefs_: int | None
    n_iter_: Any

    def __init__(
        self,
        *,
        n_nonzero_coefs: int | None = None,
        tol: float | None = None,
        fit_intercept: bool = True,
        precompute: Any = "auto",
    ) -> None:
        self.n_nonzero_coefs = n_nonzero_coefs
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.precompute = precompute

    def fit(self, X: Any, y: Any) -> OrthogonalMatchingPursuit:
        """Fit to X of shape (n_samples, n_features), dense or sparse, and y with one target or several."""
        require_choice(self.precompute, "precompute", (True, False, "auto"))
        X, y = validate_data(self, X, y, accept_sparse=("csr", "csc"), multi_output=True, y_numeric=True, dtype=FLOATS)
        _fit(self, dense(X), y, most_atoms(self.n_nonzero_coefs, self.tol, X.shape[1]), self.tol)
        return self


class OrthogonalMatchingPursuitCV(LinearRegressor):
    """OrthogonalMatchingPursuit of the size that predicts best in cross-validation, from one path for each fold.

    Parameters
    ----------
    copy : bool
        Of no effect: X is never written to.
    fit_intercept : bool
    max_iter : int, optional
        The largest size to try; by default a tenth of the features, at least 5 where there are as many.
    cv : int, splitter or iterable of (train, test), optional
        By default five folds.
    n_jobs : int, optional
        Threads; None or -1: all processors that this process may use.
    verbose : bool or int
        Of no effect.

    Attributes
    ----------
    n_nonzero_coefs_ : int
        The size chosen.
    coef_, intercept_, n_iter_, n_features_in_, feature_names_in_
        As in OrthogonalMatchingPursuit, of the model of that size on all data.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import OrthogonalMatchingPursuitCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 30))
    >>> y = 3 * X[:, 7] - 2 * X[:, 20] + 0.1 * rng.standard_normal(100)
    >>> OrthogonalMatchingPursuitCV().fit(X, y).n_nonzero_coefs_
    2
    """

    n_nonzero_coefs_: int
    n_iter_: int

    def __init__(
        self,
        *,
        copy: bool = True,
        fit_intercept: bool = True,
        max_iter: int | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ) -> None:
        self.copy = copy
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **fit_params: Any) -> OrthogonalMatchingPursuitCV:
        """Choose the size on the folds, then fit to all of X and y; metadata routing sends `fit_params` to `cv`."""
        if fit_params and not get_config()["enable_metadata_routing"]:
            name = next(iter(fit_params))
            raise ValueError(f"{name} was passed to fit; call sklearn.set_config(enable_metadata_routing=True) first.")
        require_count(self.max_iter, "max_iter", 0)
        X, y = validate_data(
            self, X, y, accept_sparse=("csr", "csc"), y_numeric=True, dtype=FLOATS, ensure_min_features=2
        )
        routed = process_routing(self, "fit", **fit_params)
        X, y, jobs = dense(X), y.astype(X.dtype, copy=False), threads(self.n_jobs)
        limit = most_atoms(self.max_iter or min(max(X.shape[1] // 10, 5), X.shape[1]), None, X.shape[1])
        errors = []
        for train, test in check_cv(self.cv).split(X, **routed.splitter.split):
            A, b, x_means, y_means = _centred(self, X[train], y[train, None])
            code = codes_of(A, b.T, atoms=limit, n_jobs=jobs)
            coef = stacked([path(A, b[:, 0], code)], X.shape[1], X.dtype)[:, 0]
            errors.append(np.square((X[test] - x_means) @ coef + y_means - y[test, None]).mean(axis=0))
        shortest = min(map(len, errors))
        self.n_nonzero_coefs_ = 1 + int(np.argmin(np.mean([error[:shortest] for error in errors], axis=0)))
        _fit(self, X, y, self.n_nonzero_coefs_, None, jobs)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Which methods of the splitter the arguments of `fit` go to."""
        mapping = MethodMapping().add(caller="fit", callee="split")
        return MetadataRouter(owner=self).add(splitter=self.cv, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


class SparseCoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Rows of X as combinations of few rows of a given dictionary: `sparse_encode` as a transformer.

    Parameters
    ----------
    dictionary : array of shape (n_components, n_features)
        Rows are atoms, of any norm.
    transform_algorithm : {"lasso_lars", "lasso_cd", "lars", "omp", "threshold"}
    transform_n_nonzero_coefs, transform_alpha, transform_max_iter, positive_code, n_jobs
        `n_nonzero_coefs`, `alpha`, `max_iter`, `positive` and `n_jobs` of `sparse_encode`.
    split_sign : bool
        Return the positive parts of the codes, and beside them their negative parts.

    Attributes
    ----------
    n_components_ : int
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import SparseCoder
    >>> coder = SparseCoder(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), transform_n_nonzero_coefs=1)
    >>> coder.fit_transform([[3.0, 4.0], [-2.0, 0.0]])
    array([[ 0.,  0.,  5.],
           [-2.,  0.,  0.]])
    """

    n_components_: int

    def __init__(
        self,
        dictionary: Any,
        *,
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        split_sign: bool = False,
        n_jobs: int | None = None,
        positive_code: bool = False,
        transform_max_iter: int = 1000,
    ) -> None:
        self.dictionary = dictionary
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.split_sign = split_sign
        self.n_jobs = n_jobs
        self.positive_code = positive_code
        self.transform_max_iter = transform_max_iter

    def fit(self, X: Any, y: Any = None) -> SparseCoder:
        """Look whether X and the dictionary fit; there is nothing to learn."""
        require_choice(self.transform_algorithm, "transform_algorithm", ALGORITHMS)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS)
        dictionary = self._dictionary()
        check_features(X, dictionary)
        self.n_components_ = len(dictionary)
        return self

    def transform(self, X: Any, y: Any = None) -> Array:
        """The codes of the rows of X, one in a row."""
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=False)
        code = sparse_encode(
            X, self._dictionary(), algorithm=self.transform_algorithm, n_nonzero_coefs=self.transform_n_nonzero_coefs,
            alpha=self.transform_alpha, max_iter=self.transform_max_iter, n_jobs=self.n_jobs,
            positive=self.positive_code,
        )  # fmt: skip
        return np.hstack([np.maximum(code, 0), np.maximum(-code, 0)]) if self.split_sign else code

    def inverse_transform(self, X: Any) -> Array:
        """The combinations of atoms that these codes are."""
        X, dictionary = check_array(X, accept_sparse=True, dtype=FLOATS, input_name="X"), self._dictionary()
        expected = len(dictionary) * (2 if self.split_sign else 1)
        if X.shape[1] != expected:
            raise ValueError(f"X has codes of the wrong number of components. Expected {expected}, got {X.shape[1]}.")
        half = len(dictionary)
        return np.asarray((X[:, :half] - X[:, half:] if self.split_sign else X) @ dictionary)

    def _dictionary(self) -> Array:
        return dense(check_array(self.dictionary, accept_sparse=True, dtype=FLOATS, input_name="dictionary"))

    @property
    def _n_features_out(self) -> int:
        return self.n_components_ * (2 if self.split_sign else 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _centred(model: Any, X: Array, Y: Array) -> tuple[Array, Array, Array, Array]:
    """X and Y, and what the model has to subtract from their columns: the means where it has an intercept."""
    if not as_bool(model.fit_intercept, "fit_intercept"):
        return X, Y, np.zeros(X.shape[1], X.dtype), np.zeros(Y.shape[1], X.dtype)
    (X, x_means), (Y, y_means) = centred(X), centred(Y)
    return X, Y, x_means, y_means


def _fit(model: Any, X: Array, y: Array, limit: int, tol: Any, n_jobs: int | None = None) -> None:
    """Fit coefficients and intercept by a pursuit of at most `limit` features."""
    X, Y, x_means, y_means = _centred(model, X, y.reshape(len(y), -1).astype(X.dtype, copy=False))
    codes = pursue(X, Y, limit, tol, n_jobs)
    coef, model.n_iter_ = answer(codes.toarray().T, np.diff(codes.indptr), True)
    model.coef_ = np.ascontiguousarray(coef.T)
    model.n_nonzero_coefs_ = None if tol is not None else limit
    model.intercept_ = y_means.reshape(y.shape[1:])[()] - x_means @ model.coef_.T if model.fit_intercept else 0.0
