"""Orthogonal matching pursuit and sparse coding as scikit-learn's functions. `pursuit.encode` does the work.

Parameters and answers are those of the functions of the same names in scikit-learn; docs/sklearn.md lists differences.
There `tol` bounds a *squared* norm, and a dictionary has its atoms in rows. Of no effect are `precompute` (`encode`
forms X'X where that is faster), `init` (Lasso codes are exact from any start), `verbose`, `check_input` and `copy_X`,
...: input is always checked, and never written to.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lars
from sklearn.utils import check_array

from pursuit.arguments import as_bool, require
from pursuit.estimators import checks
from pursuit.estimators.base import FLOATS, Array, dense, threads
from pursuit.estimators.omp import codes_of, path, pursue, pursue_gram, stacked, warn_if

check_algorithm = checks.one_of("lasso_lars", "lasso_cd", "lars", "omp", "threshold")
check_precompute = checks.one_of(True, False, "auto")


def orthogonal_mp(
    X: Any,
    y: Any,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    precompute: Any = False,
    copy_X: bool = True,
    return_path: bool = False,
    return_n_iter: bool = False,
) -> Any:
    """Orthogonal matching pursuit: y as a combination of few columns of X, for each column of y.

    `n_nonzero_coefs` columns (by default a tenth of all, at least one), or as many as it takes until the squared norm
    of the residual is at most `tol`. `return_path` gives the coefficients after each step, along a last axis; where
    targets take different numbers of steps, the last coefficients are repeated.

    >>> from pursuit.estimators import orthogonal_mp
    >>> orthogonal_mp([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [3.0, 0.5], n_nonzero_coefs=2)
    array([2.5, 0. , 0.5])
    """
    check_precompute(precompute, "precompute")
    as_bool(copy_X, "copy_X")
    X = dense(check_array(X, accept_sparse=True, dtype=FLOATS, input_name="X"))
    y = check_array(y, dtype=X.dtype, ensure_2d=False, input_name="y")
    require(y.shape[0] == X.shape[0], "y", y, f"one row for each of the {X.shape[0]} rows of X")
    Y = y.reshape(len(y), -1)
    codes = pursue(X, Y, most_atoms(n_nonzero_coefs, tol, X.shape[1]), tol)
    steps = np.diff(codes.indptr)
    if not as_bool(return_path, "return_path"):
        return answer(codes.toarray().T, steps, return_n_iter)
    paths = [path(X, y, codes[[target]]) for target, y in enumerate(Y.T)]
    return answer(stacked(paths, X.shape[1], X.dtype), steps, return_n_iter)


def orthogonal_mp_gram(
    Gram: Any,
    Xy: Any,
    *,
    n_nonzero_coefs: int | None = None,
    tol: float | None = None,
    norms_squared: Any = None,
    copy_Gram: bool = True,
    copy_Xy: bool = True,
    return_path: bool = False,
    return_n_iter: bool = False,
) -> Any:
    """`orthogonal_mp` from Gram = X'X and Xy = X'y alone; `tol` needs the squared norms of the targets.

    >>> import numpy as np
    >>> from pursuit.estimators import orthogonal_mp_gram
    >>> X, y = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]), np.array([3.0, 0.5])
    >>> orthogonal_mp_gram(X.T @ X, X.T @ y, n_nonzero_coefs=1).round(12)
    array([0.  , 0.  , 1.75])
    """
    as_bool(copy_Gram, "copy_Gram")
    as_bool(copy_Xy, "copy_Xy")
    Gram = check_array(Gram, dtype=FLOATS, input_name="Gram")
    n = len(Gram)
    require(Gram.shape == (n, n) and Gram.diagonal().min() >= 0, "Gram", Gram, "X.T @ X, a square matrix")
    Xy = check_array(Xy, dtype=Gram.dtype, ensure_2d=False, input_name="Xy")
    require(Xy.shape[0] == n, "Xy", Xy, f"one row for each of the {n} rows of Gram")
    B, limit, decrease = Xy.reshape(n, -1), most_atoms(n_nonzero_coefs, tol, n), None
    if tol is not None:
        require(norms_squared is not None, "norms_squared", None, "the squared norm of y with tol, one for each target")
        any_shape = {"ensure_2d": False, "ensure_min_samples": 0}
        squares = check_array(norms_squared, dtype=np.float64, input_name="norms_squared", **any_shape)
        wanted = f"{B.shape[1]} numbers, one for each target"
        require(squares.size == B.shape[1], "norms_squared", norms_squared, wanted)
        decrease = squares.ravel() - tol
    coef, steps = pursue_gram(Gram, B, limit, decrease, as_bool(return_path, "return_path"))
    return answer(coef, steps, return_n_iter)


def sparse_encode(
    X: Any,
    dictionary: Any,
    *,
    gram: Any = None,
    cov: Any = None,
    algorithm: str = "lasso_lars",
    n_nonzero_coefs: int | None = None,
    alpha: float | None = None,
    copy_cov: bool = True,
    init: Any = None,
    max_iter: int = 1000,
    n_jobs: int | None = None,
    check_input: bool = True,
    verbose: Any = 0,
    positive: bool = False,
) -> Array:
    r"""Sparse codes: every row of X as a combination of few rows of the dictionary. Rows of zeros get coefficient 0.

    ======================== ===========================================================================
    algorithm                a code c of the row x, with D the dictionary
    ======================== ===========================================================================
    ``omp``                  orthogonal matching pursuit: `n_nonzero_coefs` atoms
    ``lasso_lars, lasso_cd`` the minimiser of :math:`\frac12\|x - D^\top c\|^2 + \alpha\|c\|_1`, exactly
    ``lars``                 least angle regression, scikit-learn's own: `n_nonzero_coefs` atoms
    ``threshold``            Dx, moved towards 0 by alpha
    ======================== ===========================================================================

    By default a tenth of the features, at least one, is the number of atoms, and alpha is 1. `gram` and `cov` are D D'
    and D X', if you have them. Where a Lasso code has more than `max_iter` atoms, a ConvergenceWarning says so; the
    code is exact nevertheless. `positive` codes have no negative entries; `omp` and `lars` have none such.

    >>> from pursuit.estimators import sparse_encode
    >>> sparse_encode([[3.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], algorithm="omp")
    array([[3., 0.]])
    """
    check_algorithm(algorithm, "algorithm")
    X = dense(check_array(X, accept_sparse=True, dtype=FLOATS, input_name="X"))
    dictionary = dense(check_array(dictionary, accept_sparse=True, dtype=X.dtype, input_name="dictionary"))
    check_features(X, dictionary)
    check_sign(algorithm, positive)
    checks.optional_count(n_nonzero_coefs, "n_nonzero_coefs")
    checks.optional_amount(alpha, "alpha")
    checks.iterations(max_iter, "max_iter")
    jobs, alpha = threads(n_jobs), 1.0 if alpha is None else float(alpha)
    if algorithm in ("omp", "lars"):
        atoms = n_nonzero_coefs or max(1, min(X.shape[1] // 10, len(dictionary)))
        if algorithm == "lars":
            return least_angles(X, dictionary, atoms, gram, cov)
        codes = codes_of(dictionary.T, X, atoms=most_atoms(atoms, None, len(dictionary)), gram=gram, n_jobs=jobs)
        warn_if((np.diff(codes.indptr) < atoms).any())
        return np.asarray(codes.toarray())
    if algorithm == "threshold":
        products: Array = X @ dictionary.T if cov is None else check_array(cov, dtype=X.dtype, input_name="cov").T
        require(products.shape == (len(X), len(dictionary)), "cov", cov, "dictionary @ X.T")
        return np.maximum(products - alpha, 0) if positive else products - np.clip(products, -alpha, alpha)
    codes = codes_of(dictionary.T, X, method="lasso", penalty=alpha, positive=positive, gram=gram, n_jobs=jobs)
    longest = int(np.diff(codes.indptr).max(initial=0))
    if longest > max_iter:
        message = f"a code has {longest} atoms, more than max_iter={max_iter}; it is exact nevertheless."
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return np.asarray(codes.toarray())


def least_angles(X: Array, dictionary: Array, atoms: int, gram: Any, cov: Any) -> Array:
    """Codes by scikit-learn's Lars."""
    with np.errstate(all="ignore"):  # as there
        lars = Lars(
            fit_intercept=False, precompute="auto" if gram is None else gram, n_nonzero_coefs=atoms, fit_path=False
        )
        lars.fit(dictionary.T, X.T, Xy=cov)
    return np.asarray(lars.coef_, X.dtype).reshape(len(X), len(dictionary))


def check_features(X: Array, dictionary: Array) -> None:
    """Refuse atoms and signals of different lengths, in scikit-learn's words."""
    if dictionary.shape[1] != X.shape[1]:
        raise ValueError(
            "Dictionary and X have different numbers of features: dictionary.shape is"
            f" {dictionary.shape}, X.shape is {X.shape}; atoms are rows of the dictionary."
        )


def check_sign(algorithm: str, positive: Any) -> None:
    """Refuse non-negative codes where the algorithm has none, in scikit-learn's words."""
    if as_bool(positive, "positive") and algorithm in ("omp", "lars"):
        raise ValueError(f"Positive constraint not supported for '{algorithm}' coding method.")


def most_atoms(n_nonzero_coefs: Any, tol: Any, n_features: int) -> int:
    """The number of atoms at which a pursuit ends."""
    checks.optional_count(n_nonzero_coefs, "n_nonzero_coefs")
    checks.optional_amount(tol, "tol")
    if tol is not None:
        return n_features
    most = max(n_features // 10, 1) if n_nonzero_coefs is None else int(n_nonzero_coefs)
    require(most <= n_features, "n_nonzero_coefs", most, f"at most the number of features, {n_features}")
    return most


def answer(coef: Array, steps: Array, return_n_iter: Any) -> Any:
    """As scikit-learn returns it: no axis for a single target, and perhaps the numbers of steps."""
    alone = coef.shape[1] == 1
    coef, n_iter = (coef[:, 0], int(steps[0])) if alone else (coef, steps.tolist())
    return (coef, n_iter) if as_bool(return_n_iter, "return_n_iter") else coef
