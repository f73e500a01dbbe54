"""The arguments of `encode`, checked and in one form, or an error that says what to change."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from pursuit.arguments import as_bool, as_int_or_nan, describe, host_array, numeric_array, require
from pursuit.arrays import column_squares, whole_strides
from pursuit.coding.scale import Scale
from pursuit.threads import processors

Array = np.ndarray[Any, np.dtype[Any]]

UNSCALED = 2.0**-32, 2.0**32
"""Squared norms of columns between these need no scaling."""
GRAM_NOT_FINITE = "gram contains NaN or infinity; give D.T @ D."
METHODS = ("omp", "mp", "ols", "nnomp", "lasso", "nnls")
CONVEX = ("lasso", "nnls")
ON_OPERATORS = ("omp", "nnomp", "lasso", "nnls")
FLOATS = (np.float32, np.float64)


@dataclass(frozen=True)
class Arguments:
    """The arguments of `encode` besides D and Y, as the user gave them."""

    atoms: Any = None
    tol: Any = None
    method: Any = "omp"
    gram: Any = None
    n_jobs: Any = None
    dtype: Any = None
    progress: Any = False
    weights: Any = None
    penalty: Any = None
    positive: Any = False
    gaps: Any = False
    joint: Any = None
    l2: Any = 0.0
    prices: Any = None


@dataclass(frozen=True)
class Rules:
    """When each code is finished: a limit on its atoms, a tolerance (negative: none) and a penalty for each signal."""

    limits: Array
    tols: Array
    penalties: Array
    method: str
    """As the kernels call it: the Lasso and NNLS over non-negative weights are "positive_lasso"."""

    @classmethod
    def from_arguments(cls, arguments: Arguments, shape: tuple[int, ...], count: int) -> Rules:
        """The rules for `count` signals on a dictionary of this shape."""
        method, positive = arguments.method, as_bool(arguments.positive, "positive")
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(
                f"method is {describe(method)}; give one of {', '.join(map(repr, (*METHODS, 'simplex')))}."
            )
        if as_bool(arguments.gaps, "gaps") and method not in CONVEX:
            raise ValueError(
                f"gaps belong to convex problems, 'lasso', 'nnls' and 'simplex'; leave them out with {method!r}."
            )
        if positive and method not in CONVEX:
            raise ValueError(f"positive=True belongs to method='lasso', not {method!r}; see also 'nnls' and 'nnomp'.")
        limits, tols = _stopping_rules(arguments, shape, count)
        penalties = _penalties(arguments, count)
        return cls(limits, tols, penalties, "positive_lasso" if positive or method == "nnls" else method)

    @property
    def is_lasso(self) -> bool:
        return self.method in ("lasso", "positive_lasso")

    @property
    def nonnegative(self) -> bool:
        """Whether no weight may be negative."""
        return self.method in ("nnomp", "positive_lasso")

    @property
    def width(self) -> int:
        """The most atoms of a code."""
        return int(self.limits.max(initial=1))


@dataclass
class Request:
    """One call of `encode`, checked: rows of Y on columns of D."""

    D: Any
    """A NumPy matrix, or a SciPy LinearOperator."""
    Y: Array
    gram: Array | None
    weights: Array | None
    rules: Rules
    code_dtype: Any
    threads: int
    progress: bool
    gaps: bool
    norms: Array = field(default_factory=lambda: np.empty(0))
    """Of the columns of D, scaled; of an operator they are not known."""
    scale: Scale = field(default_factory=Scale)
    """The powers of two by which the columns of D are divided."""

    @classmethod
    def from_arguments(cls, D: Any, Y: Any, arguments: Arguments) -> Request:
        """The request of a call, or an error that says which argument to change."""
        Y, weights = read_signals(Y, arguments.weights)
        D = D if isinstance(D, LinearOperator) else matrix(D, "D")
        if D.shape[0] != Y.shape[1]:
            raise ValueError(f"Y has shape {Y.shape} and D {D.shape}; signals are rows of Y, as long as columns of D.")
        gram = None if arguments.gram is None else matrix(arguments.gram, "gram")
        dtype = common_dtype({"D": D, "Y": Y, "gram": gram, "weights": weights}, arguments.dtype)
        rules = Rules.from_arguments(arguments, D.shape, len(Y))
        threads, progress = thread_count(arguments.n_jobs), as_bool(arguments.progress, "progress")
        request = cls(D, Y, gram, weights, rules, dtype, threads, progress, bool(arguments.gaps))
        if isinstance(D, LinearOperator):
            _check_operator(request, arguments.method)
        else:
            norms, request.scale = _measure_atoms(request)
            request.norms = norms.astype(request.dtype, copy=False)
        return request

    @property
    def dtype(self) -> Any:
        """The dtype of the computation: weights of the Lasso may be far larger than a signal, and are rounded last."""
        return np.dtype(np.float64) if self.rules.is_lasso else self.code_dtype

    @property
    def finds_few_atoms(self) -> bool:
        """Whether all codes have fewer than half as many atoms as D, so that no Gram matrix should be read."""
        return 2 * int(self.rules.limits.sum()) < int(self.D.shape[1])


def read_signals(Y: Any, weights: Any) -> tuple[Array, Array | None]:
    """Signals as a matrix, and the weights of their entries, if any; masked entries have weight 0."""
    present = None
    if np.ma.isMaskedArray(Y):
        present = ~np.ma.getmaskarray(Y) if Y.mask.any() else None
        Y = Y.data
    Y = matrix(Y, "Y")
    if weights is not None:
        weights = matrix(weights, "weights")
        if weights.shape != Y.shape:
            raise ValueError(f"weights have shape {weights.shape}, Y has {Y.shape}; give one weight per entry of Y.")
        if weights.size and not (weights.min() >= 0 and weights.max() < np.inf):
            raise ValueError("weights contain negative numbers, NaN or infinity; give finite ones, 0: a missing entry.")
    if present is not None:
        weights = present.astype(Y.dtype) if weights is None else np.where(present, weights, 0)
    return Y, weights


def matrix(value: Any, name: str) -> Array:
    """An argument as a NumPy matrix of real numbers, not yet of one dtype."""
    sparse = bool(sp.issparse(value))  # a type guard, which would take `toarray` away
    a = host_array(numeric_array(value.toarray() if sparse else value, name), name)
    if a.ndim != 2:
        write = f"{name}[None, :]" if a.ndim < 2 else f"{name}.reshape(-1, {a.shape[-1]})"
        raise ValueError(f"{name} has shape {a.shape}; give a matrix, one signal a row: {write}.")
    if a.shape[1] == 0 or (name == "D" and a.shape[0] == 0):
        raise ValueError(f"{name} has shape {a.shape}; give at least one atom, and signals of at least one entry.")
    rows: Array = whole_strides(a)
    return rows


def common_dtype(arrays: dict[str, Any], dtype: Any) -> Any:
    """The dtype that was asked for, or the one that all arrays have."""
    if dtype is not None:
        try:
            asked = np.dtype(dtype)
        except TypeError:
            asked = np.dtype(object)
        if asked not in FLOATS:
            raise TypeError(f"dtype is {describe(dtype)}; give numpy.float32 or numpy.float64.")
        return asked
    dtypes = {name: _floating(a.dtype) for name, a in arrays.items() if a is not None}
    if len(set(dtypes.values())) > 1:
        listed = ", ".join(f"{name} {dtype}" for name, dtype in dtypes.items())
        raise TypeError(f"D and Y should have one dtype, not {listed}; convert one of them or give dtype.")
    if dtypes["D"] not in FLOATS:
        raise TypeError(f"D has dtype {dtypes['D']}; convert to float32 or float64, or give dtype.")
    return dtypes["D"]


def _floating(dtype: Any) -> Any:
    """The dtype of an array, or of an operator, whose integers count as float64."""
    return np.dtype(np.float64) if np.dtype(dtype).kind in "biu" else np.dtype(dtype)


def column_norms(D: Array, dtype: Any) -> tuple[Array, Scale]:
    """Norms of the columns of D divided by a power of two, so that no square over- or underflows."""
    with np.errstate(all="ignore"):
        squares = column_squares(D)
    if _needs_no_scaling(squares):
        return np.sqrt(squares), Scale()
    peaks = np.maximum(D.max(axis=0), -D.min(axis=0))  # np.abs(D) would be a copy
    if not np.isfinite(peaks).all():
        j = int(np.flatnonzero(~np.isfinite(peaks))[0])
        raise ValueError(f"column {j} of D contains NaN or infinity; remove or impute those entries first.")
    if not peaks.all():
        j = int(np.flatnonzero(peaks == 0)[0])
        raise ValueError(f"column {j} of D is zero; drop it, since a zero atom has no direction.")
    scale = Scale(math.frexp(float(peaks.max()))[1])
    squares = column_squares(scale.atoms(D))
    limits = np.finfo(dtype)
    if not float(squares.min()) > float(limits.tiny) / float(limits.eps):
        j = int(squares.argmin())
        raise ValueError(f"column {j} of D is too short beside others for {dtype}; bring the columns to similar norms.")
    return np.sqrt(squares), scale


def check_gram_rows(D: Array, gram: Array, used: Array) -> None:
    """The rows of the atoms `used`, where `gram` was not looked at as a whole: finite, and those of D."""
    if not all(np.isfinite(gram[j].sum()) for j in used):
        raise ValueError(GRAM_NOT_FINITE)
    _check_diagonal(gram[used, used], np.square(np.linalg.norm(D[:, used], axis=0)))


def check_finite_rows(peaks: Array, first: int = 0) -> None:
    """Refuse signals whose largest entries, `peaks`, are not finite; `first` is the number of the first of them."""
    if not np.isfinite(peaks).all():
        row = first + int(np.flatnonzero(~np.isfinite(peaks))[0])
        raise ValueError(f"row {row} of Y contains NaN or infinity; give such entries weight 0 or impute them.")


def _measure_atoms(request: Request) -> tuple[Array, Scale]:
    """The norms of the atoms, scaled. Where few are used, a given Gram matrix tells them without a pass over D."""
    D, gram, few = request.D, request.gram, request.finds_few_atoms
    if gram is None:
        return column_norms(D, request.dtype)
    n = D.shape[1]
    if request.weights is not None:
        raise ValueError("gram was given with weights, or a mask; leave it out, since these give each signal its own.")
    if gram.shape != (n, n):
        raise ValueError(f"gram has shape {gram.shape}; give D.T @ D, of shape {(n, n)}.")
    squares = gram.diagonal()
    if not np.isfinite(squares).all():
        raise ValueError(GRAM_NOT_FINITE)
    if few and _needs_no_scaling(squares):
        return np.sqrt(squares), Scale()  # the atoms that are used are checked later
    norms, scale = column_norms(D, request.dtype)
    _check_diagonal(squares, np.ldexp(np.square(norms), 2 * scale.atom))
    if not few and not np.isfinite(gram.sum()):
        raise ValueError(GRAM_NOT_FINITE)
    return norms, scale


def _needs_no_scaling(squares: Array) -> bool:
    """Whether squared norms are far from over- and underflow (and none is NaN)."""
    return float(squares.min()) > UNSCALED[0] and float(squares.max()) < UNSCALED[1]


def _check_diagonal(diagonal: Array, squares: Array) -> None:
    if not np.allclose(diagonal, squares, rtol=1e-3, atol=0.0):
        raise ValueError("gram is not that of D: its diagonal differs from the columns' squared norms; give D.T @ D.")


def _check_operator(request: Request, method: str) -> None:
    """Refuse what the codes on a LinearOperator cannot have."""
    for name, value in (("gram", request.gram), ("weights", request.weights)):
        if value is not None:
            raise ValueError(f"{name} was given with a LinearOperator as D; leave it out, or give D as an array.")
    if method not in ON_OPERATORS:
        raise ValueError(f"method is {method!r}; on a LinearOperator give one of {', '.join(map(repr, ON_OPERATORS))}.")


def _stopping_rules(arguments: Arguments, shape: tuple[int, ...], count: int) -> tuple[Array, Array]:
    """Limits on the atoms and on the residual's norm, one of each per signal."""
    atoms, tol, method = arguments.atoms, arguments.tol, arguments.method
    if method in CONVEX and (atoms is not None or tol is not None):
        raise ValueError(f"atoms and tol do not belong to method={method!r} here; leave them out.")
    if method not in CONVEX and atoms is None and tol is None:
        raise ValueError("atoms and tol are both None; give the number of atoms, or the norm of the residual to reach.")
    most = shape[1] if method == "mp" else min(shape)  # at most min(d, n) atoms are independent
    limits, tols = np.full(count, most), np.full(count, -np.inf)
    if atoms is not None:
        asked = _per_signal(atoms, "atoms", count)
        if asked.dtype.kind not in "iu":
            raise TypeError(f"atoms has dtype {asked.dtype}; give whole numbers.")
        if asked.size and asked.min() < 1:
            raise ValueError(f"atoms is {asked.min()} for some signal; give at least 1.")
        limits = np.minimum(asked, most).astype(np.int64)
    if tol is not None:
        tols = amounts(tol, "tol", count)
    return limits, tols


def _penalties(arguments: Arguments, count: int) -> Array:
    """The penalty of each signal."""
    penalty, method = arguments.penalty, arguments.method
    if method == "lasso" and penalty is None:
        raise ValueError("penalty is None; give the factor of the sum of |x|, a number or one per signal.")
    if method != "lasso" and penalty is not None:
        raise ValueError(f"penalty belongs to method='lasso'; leave it out with method={method!r}.")
    return amounts(0.0 if penalty is None else penalty, "penalty", count)


def amounts(value: Any, name: str, count: int) -> Array:
    """Finite numbers of at least 0, one per signal."""
    amounts = _per_signal(value, name, count).astype(np.float64)
    if amounts.size and not (amounts.min() >= 0 and amounts.max() < np.inf):
        raise ValueError(f"{name} is negative or not finite for some signal; give 0 or more.")
    return amounts


def _per_signal(value: Any, name: str, count: int) -> Array:
    a = host_array(value, name)
    if a.dtype.kind not in "iuf":
        raise TypeError(f"{name} is {a.dtype}; give a number, or one per signal.")
    if a.shape not in {(), (count,)}:
        raise ValueError(
            f"{name} has shape {a.shape}; give one number, or one for each of the {count} signals (with joint: labels)."
        )
    return a if a.shape else np.full(count, a)


def thread_count(n_jobs: Any) -> int:
    """The number of threads that `n_jobs` asks for, no more than there are processors."""
    if n_jobs is None or as_int_or_nan(n_jobs) == -1:
        return processors()
    require(as_int_or_nan(n_jobs) >= 1, "n_jobs", n_jobs, "the number of threads, or None for all cores")
    return min(int(n_jobs), processors())
