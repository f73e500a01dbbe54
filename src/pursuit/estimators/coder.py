"""Sparse coding on a dictionary as a transformer of scikit-learn's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from pursuit.estimators import checks
from pursuit.estimators.base import FLOATS, SPARSE, Array, Estimator, dense
from pursuit.estimators.functions import check_algorithm, check_features, sparse_encode


@dataclass(eq=False, repr=False, kw_only=True)
class Coder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Codes of rows on the dictionary that a subclass has: `sparse_encode` as a transformer."""

    transform_algorithm: str = "omp"
    transform_n_nonzero_coefs: int | None = None
    transform_alpha: float | None = None
    split_sign: bool = False
    n_jobs: int | None = None
    positive_code: bool = False
    transform_max_iter: int = 1000

    _checks = checks.table(
        transform_algorithm=check_algorithm,
        transform_n_nonzero_coefs=checks.optional_count,
        transform_alpha=checks.optional_amount,
        transform_max_iter=checks.iterations,
        split_sign=checks.boolean,
        positive_code=checks.boolean,
    )

    def transform(self, X: Any, y: Any = None) -> Array:
        """The codes of the rows of X, one in a row."""
        dictionary = self._dictionary()
        code = sparse_encode(
            validate_data(self, X, accept_sparse=SPARSE, dtype=FLOATS, reset=False), dictionary,
            algorithm=self.transform_algorithm, n_nonzero_coefs=self.transform_n_nonzero_coefs, alpha=self._penalty(),
            max_iter=self.transform_max_iter, n_jobs=self.n_jobs, positive=self.positive_code,
        )  # fmt: skip
        return np.hstack([np.maximum(code, 0), np.maximum(-code, 0)]) if self.split_sign else code

    def inverse_transform(self, X: Any) -> Array:
        """The combinations of atoms that these codes are."""
        dictionary = self._dictionary()
        X = check_array(X, accept_sparse=True, dtype=FLOATS, input_name="X")
        n, expected = len(dictionary), self._n_features_out
        if X.shape[1] != expected:
            raise ValueError(f"X has codes of the wrong number of components. Expected {expected}, got {X.shape[1]}.")
        return np.asarray((X[:, :n] - X[:, n:] if self.split_sign else X) @ dictionary)

    def _dictionary(self) -> Array:
        """The dictionary, its atoms as rows."""
        raise NotImplementedError

    def _penalty(self) -> float | None:
        return self.transform_alpha

    @property
    def _n_features_out(self) -> int:
        return len(self._dictionary()) * (2 if self.split_sign else 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False)
class SparseCoder(Coder):
    """Rows of X as combinations of few rows of a given dictionary: `sparse_encode` as a transformer.

    Parameters and attributes are scikit-learn's; atoms may have any norm. With `split_sign` the positive parts of the
    codes are returned, and beside them their negative parts.

    >>> import numpy as np
    >>> from pursuit.estimators import SparseCoder
    >>> coder = SparseCoder(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), transform_n_nonzero_coefs=1)
    >>> coder.fit_transform([[3.0, 4.0], [-2.0, 0.0]])
    array([[ 0.,  0.,  5.],
           [-2.,  0.,  0.]])
    """

    dictionary: Any

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look whether X and the dictionary fit; there is nothing to learn."""
        self._check()
        X, dictionary = validate_data(self, X, accept_sparse=SPARSE, dtype=FLOATS), self._dictionary()
        check_features(X, dictionary)
        self.n_components_ = len(dictionary)
        return self

    def _dictionary(self) -> Array:
        return dense(check_array(self.dictionary, accept_sparse=True, dtype=FLOATS, input_name="dictionary"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags
