"""Reading what users give: numbers, arrays, sparse matrices; or refusing it in a sentence that names the argument."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from numbers import Real
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp

from pursuit.arrays import Array


def require(holds: bool, name: str, value: object, what: str) -> None:
    """Refuse the argument `name` unless a condition holds; `what` says what to give.

    >>> require(0 < 0.5 <= 1, "delta", 0.5, "a number in (0, 1]")
    """
    if not holds:
        raise ValueError(f"{name} is {describe(value)}; give {what}.")


def require_kind(value: object, kind: Any, name: str, what: str) -> None:
    """Refuse the argument `name` unless it is of this type; `what` says what to give."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {describe(value)}; give {what}.")


def quantity(n: float, noun: str) -> str:
    """A number of things in words.

    >>> quantity(1, "atom"), quantity(2, "atom")
    ('1 atom', '2 atoms')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def describe(value: object) -> str:
    """A value as an error message quotes it: a few words on one line."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 and "\n" not in text else f"an object of type {type(value).__name__}"


def is_array(a: object) -> bool:
    """Whether something is an array of a library with the array API."""
    return bool(compat.is_array_api_obj(a)) and not isinstance(a, type)


def is_number(value: Any) -> bool:
    """Whether the value is one real number: Python's, NumPy's, or an array without axes; booleans are none."""
    if type(value) is float or type(value) is int:
        return True
    if np.ma.isMaskedArray(value):
        return False
    if is_array(value) and not isinstance(value, np.generic):
        kinds = ("real floating", "integral")
        return value.ndim == 0 and bool(compat.array_namespace(value).isdtype(value.dtype, kinds))
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_)


def number(value: Any) -> float:
    """A real number as a float; NaN for everything else, so that no comparison with a bound holds.

    >>> number(np.float32(2)), number("2"), number(None), 0 < number(True)
    (2.0, nan, nan, False)
    """
    try:
        return float(value) if is_number(value) else math.nan
    except OverflowError:  # an integer beyond the range of floats
        return math.inf if value > 0 else -math.inf


def as_int_or_nan(value: Any) -> float:
    """An integer of up to 63 bits as a float; NaN for everything else, so that no comparison with a bound holds.

    >>> as_int_or_nan(3), as_int_or_nan(3.0), as_int_or_nan("3")
    (3.0, nan, nan)
    """
    try:
        integer = operator.index(value)
    except TypeError:
        return math.nan
    return math.nan if isinstance(value, bool | np.bool_) or abs(integer) >> 63 else float(integer)


def use_python_numbers(parameters: Any) -> None:
    """Make Python's of the numbers in a frozen dataclass: those of other types have a precision of their own."""
    for name, value in vars(parameters).items():
        if not isinstance(value, int | float | None) and is_number(value):
            object.__setattr__(parameters, name, int(value) if as_int_or_nan(value) == value else number(value))


def check_seed(seed: object) -> None:
    """Refuse a seed of random numbers that is no integer of at least 0."""
    integer = isinstance(seed, int | np.integer) and as_int_or_nan(seed) >= 0
    require(integer, "seed", seed, "an integer of at least 0")


def as_list(values: Any) -> list[Any]:
    """What an iterable holds; the value alone where it is none."""
    try:
        return list(values)
    except TypeError:  # some matrices have __iter__, but cannot be iterated
        return [values]


def as_bool(value: object, name: str) -> bool:
    """A boolean, also written as 0 or 1."""
    if not (isinstance(value, bool | np.bool_) or as_int_or_nan(value) in (0, 1)):
        raise TypeError(f"{name} is {describe(value)}; give True or False.")
    return bool(value)


def check_function(given: object, name: str, of: str) -> None:
    """Refuse an argument that cannot be called; `of` says what it is a function of."""
    if not callable(given):
        raise TypeError(f"{name} is {describe(given)}; give a function of {of}.")


def host_array(a: Any, name: str) -> np.ndarray:
    """`a` as a NumPy array in native byte order, of any dtype, or an error that names the argument."""
    if np.ma.isMaskedArray(a):
        raise TypeError(f"{name} is a masked array; fill it, or leave the masked entries out.")
    if sp.issparse(a):
        raise TypeError(f"{name} is a sparse matrix, which is not supported here; give a dense array (toarray()).")
    try:
        if compat.is_torch_array(a):
            a = a.detach().cpu().numpy()
        array = np.asarray(a.get() if compat.is_cupy_array(a) else a)
    except (TypeError, ValueError, RuntimeError):  # in the words of the library
        kind = getattr(a, "dtype", None)
        what = f"is ragged or mixed ({type(a).__name__})" if kind is None else f"has dtype {kind}"
        raise TypeError(f"{name} {what}; give an array of real numbers.") from None
    if array.dtype == object and array.ndim == 0:
        raise TypeError(f"{name} is {describe(a)}; give an array of real numbers.")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_array(a: Any, name: str) -> Array:
    """`a` as an array of any dtype in its own library, NumPy for lists, or an error that names the argument."""
    if compat.is_torch_array(a):
        return a.detach()
    return host_array(a, name) if isinstance(a, np.ndarray) or not is_array(a) else a


def numeric_array(a: Any, name: str) -> Array:
    """`a` as an array of real floating-point numbers in its own library, or an error that names the argument.

    Integers and booleans become float64. The values are not looked at.
    """
    a = as_array(a, name)
    if isinstance(a, np.ndarray) and a.dtype.kind == "f":
        return a
    xp = compat.array_namespace(a)
    if xp.isdtype(a.dtype, "complex floating"):
        raise TypeError(f"{name} is complex; `encode` takes it, else stack real and imaginary parts (docs/signals.md).")
    if not xp.isdtype(a.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} has dtype {a.dtype}; give an array of real numbers.")
    return a if xp.isdtype(a.dtype, "real floating") else xp.astype(a, xp.float64)


def floating_array(a: Any, name: str) -> Array:
    """A numeric array of at least single precision. The values are not looked at."""
    a = numeric_array(a, name)
    if compat.is_jax_array(a):
        raise TypeError(f"{name} is an array of JAX, which cannot be written to; convert it by np.asarray.")
    if compat.array_namespace(a).finfo(a.dtype).bits < 32:
        raise TypeError(f"{name} has dtype {a.dtype}, too coarse to prove anything; convert to float32 or float64.")
    return a


def real_array(a: object, name: str) -> Array:
    """A floating array that is finite everywhere, or an error that names the argument."""
    a = floating_array(a, name)
    xp = compat.array_namespace(a)
    if not bool(xp.all(xp.isfinite(a))):
        raise ValueError(f"{name} contains NaN or infinity; remove or impute those entries first.")
    return a


def sparse_matrix(M: Any, name: str) -> sp.csc_array:
    """A SciPy sparse matrix of any format as float64 columns, each entry once; the caller's arrays stay as they are."""
    if len(M.shape) != 2:
        raise ValueError(f"{name} has shape {tuple(M.shape)}; give a matrix.")
    columns = sp.csc_array(M)
    numeric_array(columns.data[:0], name)  # its dtype
    columns = columns.astype(np.float64, copy=False)
    if not columns.has_canonical_format:
        columns = columns.copy()  # the caller's arrays are shared
        columns.sum_duplicates()
    return columns
