"""scikit-learn's estimators on pursuit: the same names, parameters and attributes, and models of our own.

    from sklearn.decomposition import SparseCoder       # before
    from pursuit.estimators import SparseCoder          # after

docs/sklearn.md has the names side by side.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as missing:
    raise ImportError("pursuit.estimators needs scikit-learn; install pursuit[estimators].") from missing

from pursuit.estimators.pursuits import (
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    SparseCoder,
    orthogonal_mp,
    orthogonal_mp_gram,
    sparse_encode,
)

__all__ = [
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "SparseCoder",
    "orthogonal_mp",
    "orthogonal_mp_gram",
    "sparse_encode",
]
