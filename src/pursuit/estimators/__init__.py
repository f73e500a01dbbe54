"""scikit-learn's estimators on pursuit: the same names, parameters and attributes, and models of our own.

    from sklearn.decomposition import SparseCoder       # before
    from pursuit.estimators import SparseCoder          # after

docs/sklearn.md has the names side by side. Ours are sparse linear models, by size or by radius:

>>> import numpy as np
>>> from pursuit.estimators import GreedyClassifier
>>> X = np.random.default_rng(0).standard_normal((80, 500))
>>> y = np.where(X[:, 3] - X[:, 7] > 0, "yes", "no")
>>> model = GreedyClassifier(n_nonzero=2).fit(X, y)
>>> np.flatnonzero(model.coef_), model.score(X, y) > 0.9
(array([3, 7]), True)
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as missing:
    raise ImportError("pursuit.estimators needs scikit-learn; pip install scikit-learn.") from missing

from pursuit.estimators.atomic import AtomicClassifier, AtomicClassifierCV, AtomicRegressor, AtomicRegressorCV
from pursuit.estimators.coder import SparseCoder
from pursuit.estimators.completion import LowRankCompletion
from pursuit.estimators.dictionaries import (
    DictionaryLearning,
    MiniBatchDictionaryLearning,
    dict_learning,
    dict_learning_online,
)
from pursuit.estimators.functions import orthogonal_mp, orthogonal_mp_gram, sparse_encode
from pursuit.estimators.greedy import GreedyClassifier, GreedyClassifierCV, GreedyRegressor, GreedyRegressorCV
from pursuit.estimators.pca import ExponentialFamilyPCA
from pursuit.estimators.pursuits import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV
from pursuit.estimators.tensors import TensorCompletion

__all__ = [
    "AtomicClassifier", "AtomicClassifierCV", "AtomicRegressor", "AtomicRegressorCV", "DictionaryLearning",
    "ExponentialFamilyPCA", "GreedyClassifier", "GreedyClassifierCV", "GreedyRegressor", "GreedyRegressorCV",
    "LowRankCompletion", "MiniBatchDictionaryLearning", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV",
    "SparseCoder", "TensorCompletion", "dict_learning", "dict_learning_online", "orthogonal_mp", "orthogonal_mp_gram",
    "sparse_encode",
]  # fmt: skip
