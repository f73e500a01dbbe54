"""Orthogonal matching pursuit of several targets, columns of Y, on the columns of X: what the drop-ins call.

`encode` does the work, except where X is not known, only G = X'X and B = X'Y.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from sklearn.utils import check_array

from pursuit.coding import encode
from pursuit.estimators.base import Array
from pursuit.linalg.cholesky import CholeskyFactor
from pursuit.linalg.vectors import EPS

Step = tuple[Array, Array]
"""Active atoms and their weights."""
PREMATURE = (  # in scikit-learn's words, which programs may filter by
    "Orthogonal matching pursuit ended prematurely due to linear dependence in the dictionary. The requested precision"
    " might not have been met."
)


def pursue(X: Array, Y: Array, limit: int, tol: Any = None, n_jobs: int | None = None) -> sp.csr_array:
    """Codes of the columns of Y on the columns of X, one in a row; `tol` bounds squared norms of residuals."""
    root = None if tol is None else np.sqrt(np.maximum(tol, 0))
    codes = codes_of(X, Y.T, atoms=limit, tol=root, n_jobs=n_jobs)
    if tol is None:
        premature = np.diff(codes.indptr) < limit
    else:
        premature = np.square(Y - X @ codes.T).sum(axis=0) > np.maximum(tol, 0) * (1 + 1e-6)
    warn_if(premature.any(), stacklevel=4)
    return codes


def codes_of(D: Array, Y: Array, gram: Any = None, **how: Any) -> sp.csr_array:
    """`encode`, for dictionaries that may have zero columns: these get coefficient 0."""
    columns = np.flatnonzero(D.any(axis=0))
    if not len(columns):
        return sp.csr_array((len(Y), D.shape[1]), dtype=D.dtype)
    gram = None if gram is None else check_array(gram, dtype=D.dtype, input_name="gram")
    if len(columns) == D.shape[1]:
        codes: sp.csr_array = encode(D, Y, gram=gram, **how)
        return codes
    gram = None if gram is None else gram[np.ix_(columns, columns)]
    codes = encode(D[:, columns], Y, gram=gram, **how)
    return sp.csr_array((codes.data, columns[codes.indices], codes.indptr), shape=(len(Y), D.shape[1]))


def path(X: Array, y: Array, code: sp.csr_array) -> list[Step]:
    """The steps of a pursuit of y that ended with this code, a matrix of one row.

    Its atoms enter in the same order if there are no others.
    """
    A = X[:, code.indices].astype(np.float64)
    steps = [(code.indices[order], x) for order, x in gram_pursuit(A.T @ A, A.T @ y, code.nnz - 1)]
    return [*steps, (code.indices, code.data)]


def stacked(paths: list[list[Step]], n_features: int, dtype: Any) -> Array:
    """Paths as an array (n_features, n_targets, n_steps), of at least one step."""
    coef = np.zeros((n_features, len(paths), max([1, *map(len, paths)])), dtype)
    for target, path in enumerate(paths):
        for step, (atoms, x) in enumerate(path):
            coef[atoms, target, step] = x
        if path:
            coef[:, target, len(path) :] = coef[:, target, [len(path) - 1]]
    return coef


def pursue_gram(G: Array, B: Array, limit: int, decrease: Array | None, whole_path: bool) -> tuple[Array, Array]:
    """Coefficients of each target from G = X'X and B = X'Y, or their paths, and the numbers of steps.

    A target is done where its squared norm has decreased by its entry of `decrease`.
    """
    kind, (n, targets), eps = G.dtype, B.shape, float(np.finfo(G.dtype).eps)
    G, B = G.astype(np.float64), B.astype(np.float64)
    expected = limit if decrease is None else max(n // 10, 1)
    if not whole_path and 3 * targets * expected**2 > n**2:  # then a factor of G costs less than it saves
        D, Y = factored(G, B, eps)
        codes = pursue(D, Y, limit, None if decrease is None else np.square(Y).sum(axis=0) - decrease)
        return codes.toarray().T.astype(kind), np.diff(codes.indptr)
    goals = np.full(targets, np.inf) if decrease is None else decrease
    paths = [gram_pursuit(G, b, limit, goal, eps) for b, goal in zip(B.T, goals, strict=True)]
    steps = np.array([len(path) for path in paths])
    reached = [path[-1][1] @ b[path[-1][0]] if path else 0.0 for b, path in zip(B.T, paths, strict=True)]
    warn_if((steps < limit).any() if decrease is None else (np.array(reached) < decrease).any())
    coef = stacked(paths, n, kind)
    return coef if whole_path else coef[..., -1], steps


def gram_pursuit(G: Array, b: Array, limit: int, decrease: float = np.inf, eps: float = EPS) -> list[Step]:
    """OMP of one target from G = X'X and b = X'y: the active atoms and their weights after every step.

    It ends with `limit` atoms, where the squared norm of the residual has decreased by `decrease`, which is b'x, or
    where no other atom correlates with the residual beyond rounding; G and b have a relative error of `eps`.
    """
    norms, order, x = np.sqrt(G.diagonal()), np.zeros(0, np.intp), np.zeros(0)
    closed, steps, factor = norms == 0, [], CholeskyFactor()  # closed: atoms that may not enter (again)
    c, length = b.copy(), np.abs(b[~closed] / norms[~closed]).max(initial=0.0)
    while len(order) < limit and b[order] @ x < decrease:
        c[closed] = 0
        j = int(np.argmax(np.abs(c)))
        if abs(c[j]) <= 4 * len(G) ** 0.5 * eps * norms[j] * (length + np.abs(x) @ norms[order]):
            break
        closed[j] = True
        if factor.append(G[order, j] / (norms[order] * norms[j]), eps / EPS) is not None:
            continue  # it is a combination of the active atoms
        order = np.append(order, j)
        x = factor.solve(b[order] / norms[order]) / norms[order]
        c = b - G[:, order] @ x
        steps.append((order, x))
    return steps


def factored(G: Array, B: Array, eps: float) -> tuple[Array, Array]:
    """D and Y with D'D = G and D'Y = B, by a Cholesky factor with pivots: D has as many rows as G has rank."""
    R, pivots, rank, _ = dpstrf(G, tol=len(G) * eps * G.diagonal().max())
    D, Y = np.zeros((max(rank, 1), len(G))), np.zeros((max(rank, 1), B.shape[1]))
    D[:rank, pivots - 1] = np.triu(R)[:rank]
    if rank:
        Y[:] = solve_triangular(R[:rank, :rank], B[pivots[:rank] - 1], trans=1, check_finite=False)
    return D, Y


def warn_if(premature: Any, stacklevel: int = 3) -> None:
    """Warn that a pursuit ended with fewer atoms than asked for, or a larger residual."""
    if premature:
        warnings.warn(PREMATURE, RuntimeWarning, stacklevel=stacklevel)
