"""The space H: array namespace, shape, dtype and device, looked up once per solve.

Vectors of H stay where the user put them (NumPy, PyTorch, CuPy, any array API library); scalars and small arrays
(weights, Gram matrices) are Python floats and NumPy float64 on the host. Only this module and `arguments` import
`array_api_compat`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any

import array_api_compat as compat
import numpy as np
from numpy.typing import NDArray

from pursuit import native
from pursuit.threads import allowed_threads

Array = Any
"""An array of H in the user's library; the array API has no common static type."""

Small = NDArray[np.float64]
"""A small float64 array on the host: weights, correlations, Gram matrices."""

Indices = NDArray[np.intp]
"""Places in a list of atoms or weights."""


no_weights: Callable[[], Small] = partial(np.zeros, 0)
no_places: Callable[[], Indices] = partial(np.zeros, 0, np.intp)  # type: ignore[assignment]
LONG = 1 << 10
"""Entries of float32 vectors beyond which their inner products are summed in float64, piece by piece."""


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
    size: int = field(init=False)
    """The number of entries of a vector."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", math.prod(self.shape))

    @classmethod
    def of(cls, x: Array) -> Space:
        """The space of the array x."""
        if type(x) is np.ndarray:
            return _numpy_space(x.shape, x.dtype)
        xp = compat.array_namespace(x)
        return cls(xp, tuple(x.shape), x.dtype, compat.device(x), compat.is_numpy_array(x), *_precision(xp, x.dtype))

    @classmethod
    def default(cls, shape: tuple[int, ...]) -> Space:
        """The space of NumPy float64 arrays of this shape."""
        return cls.of(np.empty(shape))

    def __reduce__(self) -> Any:  # namespaces are modules, which do not pickle
        return _restore, (self.xp.__name__, self.shape, self.dtype, self.device, self.numpy, self.eps, self.safe)

    def zeros(self) -> Array:
        """The zero vector."""
        return self.xp.zeros(self.shape, dtype=self.dtype, device=self.device)

    def put(self, a: object) -> Array:
        """A host array as an array of this library, dtype and device."""
        if self.numpy:
            return np.asarray(a, dtype=self.dtype)
        return self.xp.asarray(np.asarray(a), dtype=self.dtype, device=self.device)

    def dot(self, a: Array, b: Array) -> float:
        """The inner product of H."""
        if not self.numpy:
            return float(flat(a) @ flat(b))
        if a.size <= LONG or self.eps < 1e-9:
            return float(np.vdot(a, b))  # `dot` is faster, but warns where squares overflow
        a, b = a.ravel(), b.ravel()
        return sum(float(np.vdot(a[i : i + LONG], b[i : i + LONG])) for i in range(0, a.size, LONG))

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

    def scatter(self, positions: np.ndarray, values: Small) -> Array:
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

    def gather(self, x: Array, positions: np.ndarray) -> Small:
        """x at flat positions, on the host."""
        if self.numpy:
            return np.asarray(x.take(positions), dtype=np.float64)
        return host(self.xp.take(flat(x), self.xp.asarray(positions, device=self.device), axis=0))


@cache
def _precision(xp: Any, dtype: Any) -> tuple[float, tuple[float, float]]:
    """The unit roundoff of a dtype, and the bounds between which a sum of squares is safe."""
    info = xp.finfo(dtype)
    eps = float(info.eps)
    return eps, (float(info.smallest_normal) / eps, float(info.max) * eps)


@lru_cache
def _numpy_space(shape: tuple[int, ...], dtype: Any) -> Space:
    x = np.empty(0, dtype)
    xp = compat.array_namespace(x)
    return Space(xp, shape, dtype, compat.device(x), True, *_precision(xp, dtype))


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
    if several == 1 and compat.is_torch_array(c):  # in one transfer
        place = merit.argmax().reshape(1)
        j, entry = host(compat.array_namespace(c).stack([place.double(), c.take(place).double()]))
        return j.astype(np.intp), entry
    if several == 1:
        j = int(merit.argmax() if isinstance(c, np.ndarray) else compat.array_namespace(c).argmax(merit))
        return np.array([j]), host(c[j : j + 1])
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
