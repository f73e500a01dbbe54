"""The arguments of `encode`, checked and in one form, or an error that says what to change."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_int_or_nan, describe, host_array, numeric_array
from pursuit.arrays import column_squares, whole_strides
from pursuit.threads import processors

Array = np.ndarray[Any, np.dtype[Any]]

UNSCALED = 2.0**-32, 2.0**32
"""Squared norms of columns between these need no scaling."""
UNSOUND_GRAM = "gram contains NaN or infinity; give D.T @ D."
METHODS = ("omp", "mp", "ols", "nnomp", "lasso", "nnls")
LASSO = ("lasso", "positive_lasso")
"""What the kernels call the Lasso, and the Lasso over weights that are not negative, NNLS with it."""
NONNEGATIVE = ("nnomp", "positive_lasso")


@dataclass(frozen=True)
class Inputs:
    """The arrays of a call, checked but not converted; `dtype` is that of the computation."""

    D: Array
    Y: Array
    gram: Array | None
    weights: Array | None
    dtype: Any

    @classmethod
    def checked(cls, D: Any, Y: Any, gram: Any, weights: Any, dtype: Any) -> Inputs:
        Y, present = unmasked(Y)
        D, Y = matrix(D, "D"), matrix(Y, "Y")
        if D.shape[0] != Y.shape[1]:
            raise ValueError(
                f"Y has shape {Y.shape} and D {D.shape}; signals are rows of Y, as long as the columns of D."
            )
        gram = None if gram is None else matrix(gram, "gram")
        weights = None if weights is None else matrix(weights, "weights")
        kind = one_dtype({"D": D, "Y": Y, "gram": gram, "weights": weights}, dtype)
        check_weights(weights, Y)
        if present is not None:
            weights = present.astype(Y.dtype) if weights is None else np.where(present, weights, 0)
        return cls(D, Y, gram, weights, kind)


@dataclass(frozen=True)
class Request:
    """One call: rows of Y on columns of D, with a limit, a tolerance (negative: none) and a penalty for each signal."""

    inputs: Inputs
    limits: Array
    tols: Array
    penalties: Array
    method: str
    """As the kernels call it."""
    threads: int
    norms: Array
    """Of the columns of D divided by 2^exponent, so that no square over- or underflows."""
    exponent: int

    @property
    def finds_few_atoms(self) -> bool:
        """Whether all codes together have so few atoms that nothing as large as the Gram matrix should be read."""
        return few_atoms(self.limits, self.inputs.D.shape[1])

    @property
    def is_lasso(self) -> bool:
        return self.method in LASSO

    @classmethod
    def checked(
        cls, inputs: Inputs, limits: Array, tols: Array, penalties: Array, method: str, threads: int
    ) -> Request:
        if method in LASSO:  # whose weights may be far larger than the signal: codes are rounded at the end
            inputs = replace(inputs, dtype=np.dtype(np.float64))
        D, gram, kind = inputs.D, inputs.gram, inputs.dtype
        squares, few = gram_diagonal(inputs), few_atoms(limits, D.shape[1])
        if squares is not None and few and needs_no_scaling(squares):
            norms, exponent = np.sqrt(squares), 0  # not worth a pass over D: the atoms that are used are checked later
        else:
            norms, exponent = check_columns(D, kind)
            check_gram(squares, norms, exponent)
        if gram is not None and not few and not np.isfinite(gram.sum()):
            raise ValueError(UNSOUND_GRAM)
        return cls(inputs, limits, tols, penalties, method, threads, norms.astype(kind, copy=False), exponent)


def unmasked(Y: Any) -> tuple[Any, Array | None]:
    """The entries of a masked array and where they are present; anything else as it is, and None."""
    if not np.ma.isMaskedArray(Y):
        return Y, None
    return Y.data, None if not Y.mask.any() else ~np.ma.getmaskarray(Y)


def matrix(given: Any, name: str) -> Array:
    """`given` as a NumPy matrix of real numbers, not yet of one dtype."""
    sparse = bool(sp.issparse(given))
    a = host_array(numeric_array(given.toarray() if sparse else given, name), name)
    if a.ndim != 2:
        raise ValueError(f"{name} has shape {a.shape}; give a matrix (one signal: Y[None, :]).")
    if a.shape[1] == 0 or (name == "D" and a.shape[0] == 0):
        raise ValueError(f"{name} has shape {a.shape}; give at least one atom, and signals of at least one entry.")
    rows: Array = whole_strides(a)
    return rows


def one_dtype(arrays: dict[str, Array | None], dtype: Any) -> Any:
    """The dtype of the kernels: the one asked for, or the one that all arrays have."""
    if dtype is not None:
        try:
            kind = np.dtype(dtype)
        except TypeError:
            kind = np.dtype(object)
        if kind not in (np.float32, np.float64):
            raise TypeError(f"dtype is {describe(dtype)}; give numpy.float32 or numpy.float64.")
        return kind
    found = {name: a.dtype for name, a in arrays.items() if a is not None}
    kinds = set(found.values())
    if len(kinds) > 1:
        listed = ", ".join(f"{name} {kind}" for name, kind in found.items())
        raise TypeError(f"D and Y should have one dtype, not {listed}; convert one of them or give dtype.")
    kind = kinds.pop()
    if kind not in (np.float32, np.float64):
        raise TypeError(f"D has dtype {kind}; convert to float32 or float64, or give dtype.")
    return kind


def few_atoms(limits: Array, n: int) -> bool:
    """Whether the codes, of at most `limits` atoms, have fewer than half as many atoms in all as the dictionary has."""
    return 2 * int(limits.sum()) < n


def needs_no_scaling(squares: Array) -> bool:
    """Whether squared norms are far from over- and underflow (and none is NaN)."""
    return float(squares.min()) > UNSCALED[0] and float(squares.max()) < UNSCALED[1]


def check_columns(D: Array, kind: Any) -> tuple[Array, int]:
    """Norms of the columns of D divided by a power of two, so that no square over- or underflows; its exponent."""
    with np.errstate(all="ignore"):
        squares = column_squares(D)
    if needs_no_scaling(squares):
        return np.sqrt(squares), 0
    peaks = np.maximum(D.max(axis=0), -D.min(axis=0))  # np.abs(D) would be a copy
    if not np.isfinite(peaks).all():
        j = int(np.flatnonzero(~np.isfinite(peaks))[0])
        raise ValueError(f"column {j} of D contains NaN or infinity; remove or impute those entries first.")
    if not peaks.all():
        j = int(np.flatnonzero(peaks == 0)[0])
        raise ValueError(f"column {j} of D is zero; drop it, since a zero atom has no direction.")
    exponent = math.frexp(float(peaks.max()))[1]
    squares = column_squares(np.ldexp(D, -exponent))
    limits = np.finfo(kind)
    if not float(squares.min()) > float(limits.tiny) / float(limits.eps):
        j = int(squares.argmin())
        raise ValueError(f"column {j} of D is too short beside others for {kind}; bring the columns to similar norms.")
    return np.sqrt(squares), exponent


def gram_diagonal(inputs: Inputs) -> Array | None:
    """Squared norms of the columns according to the Gram matrix, if there is one."""
    gram, n = inputs.gram, inputs.D.shape[1]
    if gram is None:
        return None
    if inputs.weights is not None:
        raise ValueError(
            "gram was given with weights, or with a mask; leave it out, since these give each signal its own."
        )
    if gram.shape != (n, n):
        raise ValueError(f"gram has shape {gram.shape}; give D.T @ D, of shape {(n, n)}.")
    squares: Array = gram.diagonal()
    if not np.isfinite(squares).all():
        raise ValueError(UNSOUND_GRAM)
    return squares


def check_gram(squares: Array | None, norms: Array, exponent: int) -> None:
    if squares is not None and not np.allclose(squares, np.ldexp(np.square(norms), 2 * exponent), rtol=1e-3, atol=0.0):
        raise ValueError(
            "gram is not that of D: its diagonal differs from the squared norms of the columns; give D.T @ D."
        )


def check_used_rows(D: Array, gram: Array, used: Array) -> None:
    """The rows of the atoms `used`, where `gram` was not looked at as a whole: finite, and those of D."""
    if not all(np.isfinite(gram[j].sum()) for j in used):
        raise ValueError(UNSOUND_GRAM)
    check_gram(gram[used, used], np.linalg.norm(D[:, used], axis=0), 0)


def check_weights(weights: Array | None, Y: Array) -> None:
    if weights is None:
        return
    if weights.shape != Y.shape:
        raise ValueError(f"weights have shape {weights.shape}, Y has {Y.shape}; give one weight per entry of Y.")
    if weights.size and not (weights.min() >= 0 and weights.max() < np.inf):
        raise ValueError("weights contain negative numbers, NaN or infinity; give finite ones, 0 for a missing entry.")


def stopping_rules(atoms: Any, tol: Any, method: str, shape: tuple[int, ...], count: int) -> tuple[Array, Array]:
    """Limits on the atoms and on the residual's norm, one of each per signal."""
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"method is {describe(method)}; give one of {', '.join(map(repr, METHODS))}.")
    if method in ("lasso", "nnls"):
        if atoms is not None or tol is not None:
            raise ValueError(f"atoms and tol belong to the pursuits; leave them out with method={method!r}.")
    elif atoms is None and tol is None:
        raise ValueError("atoms and tol are both None; give the number of atoms, or the norm of the residual to reach.")
    most = shape[1] if method == "mp" else min(shape)  # more independent atoms than that there are not
    limits, tols = np.full(count, most), np.full(count, -np.inf)
    if atoms is not None:
        asked = per_signal(atoms, "atoms", count)
        if asked.dtype.kind not in "iu":
            raise TypeError(f"atoms has dtype {asked.dtype}; give whole numbers.")
        if asked.size and asked.min() < 1:
            raise ValueError(f"atoms is {asked.min()} for some signal; give at least 1.")
        limits = np.minimum(asked, most).astype(np.int64)
    if tol is not None:
        tols = per_signal(tol, "tol", count).astype(np.float64)
        if tols.size and not (tols.min() >= 0 and tols.max() < np.inf):
            raise ValueError("tol is negative or not finite for some signal; give norms of residuals, 0 or more.")
    return limits, tols


def penalty_rule(penalty: Any, positive: bool, method: str, count: int) -> tuple[Array, str]:
    """The penalty of each signal, and what the kernels call the method."""
    if method == "lasso" and penalty is None:
        raise ValueError("penalty is None; give the factor of the sum of |x|, a number or one per signal.")
    if method != "lasso" and penalty is not None:
        raise ValueError(f"penalty belongs to method='lasso'; leave it out with method={method!r}.")
    if positive and method not in ("lasso", "nnls"):
        raise ValueError(f"positive=True belongs to method='lasso', not to {method!r}; see also 'nnls' and 'nnomp'.")
    penalties = per_signal(0.0 if penalty is None else penalty, "penalty", count).astype(np.float64)
    if penalties.size and not (penalties.min() >= 0 and penalties.max() < np.inf):
        raise ValueError("penalty is negative or not finite for some signal; give 0 or more.")
    return penalties, "positive_lasso" if positive or method == "nnls" else method


def per_signal(a: Any, name: str, count: int) -> Array:
    a = host_array(a, name)
    if a.dtype.kind not in "iuf":
        raise TypeError(f"{name} is {a.dtype}; give a number, or one per signal.")
    if a.shape not in {(), (count,)}:
        raise ValueError(f"{name} has shape {a.shape}; give one number, or one for each of the {count} signals.")
    return np.broadcast_to(a, (count,))


def thread_count(n_jobs: Any) -> int:
    if n_jobs is None or as_int_or_nan(n_jobs) == -1:
        return processors()
    if not as_int_or_nan(n_jobs) >= 1:
        raise ValueError(f"n_jobs is {describe(n_jobs)}; give the number of threads, or None for all cores.")
    return min(int(n_jobs), processors())
