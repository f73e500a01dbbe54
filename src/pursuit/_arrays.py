"""The space H: array namespace, shape, dtype and device, looked up once per solve.

Vectors of H stay where the user put them (NumPy, PyTorch, CuPy, JAX, any array API library); scalars and small arrays
(weights, Gram matrices) are Python floats and NumPy float64 on the host. This is the only module that imports
`array_api_compat`.

Arguments are read here, too: `number`, `whole`, `real_array` and their neighbours take what a user may bring, or refuse
it in a sentence that names the argument.
"""

from __future__ import annotations

import importlib
import math
import operator
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import Any

import array_api_compat as compat
import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit._threads import allowed_threads

Array = Any
"""An array of H in the user's library; the array API has no common static type."""

Small = np.ndarray[Any, np.dtype[np.float64]]
"""A small float64 array on the host: weights, correlations, Gram matrices."""

Indices = np.ndarray[Any, np.dtype[np.intp]]
"""Places in a list of atoms or weights."""


@dataclass(frozen=True, slots=True)
class Space:
    """H: the array library, shape, dtype and device that all vectors of one run share.

    >>> import numpy as np, pursuit as ps
    >>> H = ps.Space.of(np.ones((2, 3), dtype=np.float32))
    >>> H.shape, H.dtype, H.size
    ((2, 3), dtype('float32'), 6)
    """

    xp: Any
    shape: tuple[int, ...]
    dtype: Any
    device: Any
    numpy: bool
    eps: float
    """Unit roundoff of the dtype."""
    safe: tuple[float, float]
    """A sum of squares between these bounds has neither overflowed nor lost digits."""

    @classmethod
    def of(cls, x: Array) -> Space:
        """The space of the array x."""
        xp = compat.array_namespace(x)
        return cls(xp, tuple(x.shape), x.dtype, compat.device(x), compat.is_numpy_array(x), *_precision(xp, x.dtype))

    @classmethod
    def default(cls, shape: tuple[int, ...]) -> Space:
        """The space of NumPy float64 arrays of this shape."""
        return cls.of(np.empty(shape))

    def __reduce__(self) -> Any:  # namespaces are modules, which do not pickle
        return _restore, (self.xp.__name__, self.shape, self.dtype, self.device, self.numpy, self.eps, self.safe)

    @property
    def size(self) -> int:
        """The number of entries of a vector."""
        return math.prod(self.shape)

    def zeros(self) -> Array:
        """The zero vector."""
        return self.xp.zeros(self.shape, dtype=self.dtype, device=self.device)

    def put(self, a: Any) -> Array:
        """A host array as an array of this library, dtype and device."""
        if self.numpy:
            return np.asarray(a, dtype=self.dtype)
        return self.xp.asarray(np.asarray(a), dtype=self.dtype, device=self.device)

    def dot(self, a: Array, b: Array) -> float:
        """The inner product of H."""
        if self.numpy:
            return float(np.vdot(a, b))
        return float(flat(a) @ flat(b))

    def dots(self, *pairs: tuple[Array, Array]) -> list[float]:
        """The inner products of pairs, in one transfer from the device."""
        if self.numpy or len(pairs) == 1:
            return [self.dot(a, b) for a, b in pairs]
        return [float(c) for c in host(self.xp.stack([flat(a) @ flat(b) for a, b in pairs]))]

    def norm(self, a: Array, squared: float | None = None) -> float:
        """The norm of H, without overflow or underflow of squares; `squared` is <a, a>, if it is known."""
        squared = self.dot(a, a) if squared is None else squared
        if self.safe[0] < squared < self.safe[1]:
            return math.sqrt(squared)
        largest = float(self.xp.max(self.xp.abs(a))) if self.size else 0.0
        if largest == 0.0 or not math.isfinite(largest):
            return largest
        scaled = a / largest
        return largest * math.sqrt(self.dot(scaled, scaled))

    def scatter(self, positions: np.ndarray[Any, Any], values: Small) -> Array:
        """The vector with `values` added at flat `positions`, zero elsewhere."""
        if self.numpy:
            sums = np.bincount(positions, weights=values, minlength=self.size)
            return np.asarray(sums, dtype=self.dtype).reshape(self.shape)
        where, inverse = np.unique(positions, return_inverse=True)
        sums = np.bincount(inverse, weights=values, minlength=len(where))
        x = self.xp.zeros((self.size,), dtype=self.dtype, device=self.device)
        if compat.is_torch_namespace(self.xp):
            x[self.xp.asarray(where, device=self.device)] = self.put(sums)
        else:  # the standard has no assignment with an index array
            for i, value in zip(where, sums, strict=True):
                x[int(i)] = float(value)
        return self.xp.reshape(x, self.shape)

    def gather(self, x: Array, positions: np.ndarray[Any, Any]) -> Small:
        """x at flat positions, on the host."""
        if self.numpy:
            return np.asarray(x.reshape(-1)[positions], dtype=np.float64)
        return host(self.xp.take(flat(x), self.xp.asarray(positions, device=self.device), axis=0))


@cache
def _precision(xp: Any, dtype: Any) -> tuple[float, tuple[float, float]]:
    """The unit roundoff of a dtype, and the bounds between which a sum of squares is safe."""
    info = xp.finfo(dtype)
    eps = float(info.eps)
    return eps, (float(info.smallest_normal) / eps, float(info.max) * eps)


def _restore(name: str, *rest: Any) -> Space:
    return Space(importlib.import_module(name), *rest)


def namespace(a: Array) -> Any:
    """The array API namespace of the array."""
    return compat.array_namespace(a)


def flat(a: Array) -> Array:
    """The array as a vector, without a copy where the library allows it."""
    if a.ndim == 1:
        return a
    return a.reshape(-1) if isinstance(a, np.ndarray) else compat.array_namespace(a).reshape(a, (-1,))


def everywhere(condition: Array) -> bool:
    """Whether a condition holds at every entry."""
    if isinstance(condition, np.ndarray):
        return bool(condition.all())
    return bool(compat.array_namespace(condition).all(condition))


def largest(c: Array, several: int, sizes: bool = False) -> tuple[Indices, Small]:
    """Places of the largest entries of a vector (`sizes`: the largest absolute values), the largest first, ties by
    index; and the entries there. On the host."""
    merit = abs(c) if sizes else c
    if several == 1:
        j = int(merit.argmax() if isinstance(c, np.ndarray) else compat.array_namespace(c).argmax(merit))
        return np.array([j]), np.array([float(c[j])])
    if compat.is_torch_array(c) and several < len(c):  # a short list of a long vector, which stays on its device
        candidates = (merit >= merit.topk(several).values[-1]).nonzero().ravel()
        places, entries = host(candidates).astype(np.intp), host(c[candidates])
    else:
        entries = host(c)
        places, merit = np.arange(len(entries)), host(merit)
        if several < len(entries):
            threshold = np.partition(merit, len(merit) - several)[len(merit) - several]
            places = np.flatnonzero(merit >= threshold)
            entries = entries[places]
    order = np.argsort(-(abs(entries) if sizes else entries), kind="stable")[:several]
    return places[order], entries[order]


def host(a: Array) -> Small:
    """A small array as NumPy float64."""
    if isinstance(a, np.ndarray):
        return a.astype(np.float64, copy=False)
    if compat.is_torch_array(a):
        a = a.detach().cpu().numpy()
    elif compat.is_cupy_array(a):
        a = a.get()
    return np.asarray(a, dtype=np.float64)


# ---------------------------------------------------------------------- arguments


def quantity(n: float, noun: str) -> str:
    """A number of things in words.

    >>> quantity(1, "atom"), quantity(2, "atom")
    ('1 atom', '2 atoms')
    """
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def told(value: Any) -> str:
    """A value as an error message quotes it: a few words on one line."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {tuple(shape)}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 and "\n" not in text else f"an object of type {type(value).__name__}"


def _is_array(a: Any) -> bool:
    return bool(compat.is_array_api_obj(a)) and not isinstance(a, type)


def is_number(value: Any) -> bool:
    """Whether the value is one real number: Python's, NumPy's, or an array without axes; booleans are none."""
    if np.ma.isMaskedArray(value):
        return False
    if _is_array(value) and not isinstance(value, np.generic):
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


def whole(value: Any) -> float:
    """An integer of up to 63 bits as a float; NaN for everything else, so that no comparison with a bound holds.

    >>> whole(3), whole(3.0), whole("3")
    (3.0, nan, nan)
    """
    try:
        integer = operator.index(value)
    except TypeError:
        return math.nan
    return math.nan if isinstance(value, bool | np.bool_) or abs(integer) >> 63 else float(integer)


def use_python_numbers(parameters: Any) -> None:
    """Make Python's of the numbers in a frozen dataclass: those of other types have a precision of their own."""
    for field in fields(parameters):
        value = getattr(parameters, field.name)
        if is_number(value) and not isinstance(value, int | float):
            object.__setattr__(parameters, field.name, int(value) if whole(value) == value else number(value))


def check_seed(seed: Any) -> None:
    """Refuse a seed of random numbers that is no integer of at least 0."""
    if not isinstance(seed, int | np.integer) or not whole(seed) >= 0:
        raise ValueError(f"seed is {told(seed)}; give an integer of at least 0.")


def items(values: Any) -> list[Any]:
    """What an iterable holds; the value alone where it is none."""
    try:
        return list(values)
    except TypeError:  # some matrices have __iter__, but cannot be iterated
        return [values]


def flag(value: Any, name: str) -> bool:
    """A boolean, also written as 0 or 1."""
    if not (isinstance(value, bool | np.bool_) or whole(value) in (0, 1)):
        raise TypeError(f"{name} is {told(value)}; give True or False.")
    return bool(value)


def check_function(given: Any, name: str, of: str) -> None:
    """Refuse an argument that cannot be called; `of` says what it is a function of."""
    if not callable(given):
        raise TypeError(f"{name} is {told(given)}; give a function of {of}.")


def host_array(a: Any, name: str) -> np.ndarray[Any, Any]:
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
        raise TypeError(f"{name} is {told(a)}; give an array of real numbers.")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def as_array(a: Any, name: str) -> Array:
    """`a` as an array of any dtype in its own library, NumPy for lists, or an error that names the argument."""
    if compat.is_torch_array(a):
        return a.detach()
    return host_array(a, name) if isinstance(a, np.ndarray) or not _is_array(a) else a


def numeric_array(a: Any, name: str) -> Array:
    """`a` as an array of real floating-point numbers in its own library, or an error that names the argument.

    Integers and booleans become float64. The values are not looked at.
    """
    a = as_array(a, name)
    xp = compat.array_namespace(a)
    if xp.isdtype(a.dtype, "complex floating"):
        raise TypeError(f"{name} is complex; pursuit works over real spaces, so stack real and imaginary parts.")
    if not xp.isdtype(a.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} has dtype {a.dtype}; give an array of real numbers.")
    return a if xp.isdtype(a.dtype, "real floating") else xp.astype(a, xp.float64)


def floating_array(a: Any, name: str) -> Array:
    """A numeric array of at least single precision. The values are not looked at."""
    a = numeric_array(a, name)
    if compat.array_namespace(a).finfo(a.dtype).bits < 32:
        raise TypeError(f"{name} has dtype {a.dtype}, too coarse to prove anything; convert to float32 or float64.")
    return a


def real_array(a: Any, name: str) -> Array:
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


def whole_strides(a: Array) -> Array:
    """The array itself, or a copy where its entries lie fractions of an entry apart, as in fields of a NumPy record."""
    return a.copy() if isinstance(a, np.ndarray) and any(stride % a.itemsize for stride in a.strides) else a


def column_squares(D: Array) -> Array:
    """Squared norms of the columns of a NumPy matrix, in one pass over its memory."""
    if D.dtype not in (np.float32, np.float64) or not native.is_built():
        return np.einsum("ij,ij->j", D, D)
    squares = np.empty(D.shape[1], D.dtype)
    native.kernels(D.dtype).squared_norms(D.T, squares, allowed_threads())
    return squares
