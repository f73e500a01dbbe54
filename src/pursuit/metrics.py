"""Positive semidefinite maps of H: Hessians of objectives, and the metrics of norm-corrective updates.

A metric turns v into Mv and gives Gram matrices <a, M b> of atoms: `Identity(c)`, `Diagonal(h)` for weights and every
loss that is a sum over the entries of x, and `Operator` for all other maps. `h` is the number or array that multiplies
the entries of v, None for other maps; `uniform` says that it is a number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pursuit.arguments import is_number, number, real_array, require
from pursuit.arrays import Array, Space, everywhere, flat, host


@dataclass(frozen=True, slots=True, eq=False)
class Diagonal:
    """v -> h * v entrywise, for an array h of v's shape."""

    h: Any
    uniform: ClassVar[bool] = False
    top: ClassVar[None] = None

    def __post_init__(self) -> None:
        if isinstance(self.h, float) and not self.uniform:
            raise TypeError(f"h is {self.h}; give an array, or use Identity({self.h}).")

    def __call__(self, v: Array) -> Array:
        return self.h * v

    def batch(self, rows: Array, /) -> Array:
        """The map on each row of a matrix of flattened vectors."""
        return rows * flat(self.h)[None, :]


@dataclass(frozen=True, slots=True, eq=False)
class Identity(Diagonal):
    """v -> h v for a number h."""

    h: float = 1.0
    uniform: ClassVar[bool] = True

    def __call__(self, v: Array) -> Array:
        return v if self.h == 1.0 else self.h * v

    batch = __call__


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """v -> apply(v), for any linear, symmetric, positive semidefinite map; shape is that of the vectors. Where there is
    a metric `top` on their first entries or rows, the map is the identity below."""

    apply: Callable[[Array], Array]
    shape: tuple[int, ...]
    top: Metric | None = field(default=None, kw_only=True)
    h: ClassVar[Any] = None
    uniform: ClassVar[bool] = False

    @classmethod
    def above_identity(cls, top: Metric, n: int, space: Space) -> Operator:
        """`top` on the first n entries or rows of vectors of the space, and the identity below."""
        return cls(lambda v: space.xp.concat([top(v[:n, ...]), v[n:, ...]]), space.shape, top=top)

    def __call__(self, v: Array) -> Array:
        return self.apply(v)

    def batch(self, rows: Array, /) -> Array:
        """The map on each row of a matrix of flattened vectors."""
        xp, out = Space.of(rows).xp, rows * 0
        for i in range(rows.shape[0]):
            out[i, :] = flat(self.apply(xp.reshape(rows[i, :], self.shape)))
        return out


Metric = Diagonal | Operator
"""Also `Identity`, which is a `Diagonal`."""


def diagonal(h: object) -> Diagonal:
    """v -> h * v for a number or an array h."""
    return Identity(h) if isinstance(h, float) else Diagonal(h)


def as_metric(metric: object, shape: tuple[int, ...] | None = None) -> Metric:
    """A metric from a number, a positive diagonal, or a positive definite matrix; `shape` is that of the vectors, where
    it is known.

    >>> as_metric(None), as_metric(2)
    (Identity(h=1.0), Identity(h=2.0))
    """
    if metric is None:
        return Identity()
    if isinstance(metric, Metric):
        return metric
    if is_number(metric):
        positive = 0 < number(metric) < np.inf
        require(positive, "metric", metric, "a positive number, a positive diagonal or a matrix")
        return Identity(number(metric))
    m = real_array(metric, "metric")
    if m.ndim in (1, 2) and shape not in (None, (m.shape[0],)):
        raise ValueError(f"metric has shape {tuple(m.shape)}, x has {shape}; give one row or entry per entry of x.")
    if m.ndim == 1:
        if not everywhere(m > 0):
            raise ValueError("metric has an entry that is not positive; a diagonal metric must be positive everywhere.")
        return Diagonal(m)
    if m.ndim != 2 or m.shape[0] != m.shape[1]:
        raise ValueError(f"metric has shape {tuple(m.shape)}; give a diagonal (n,) or a square matrix (n, n).")
    if not everywhere(abs(m - m.T) <= 1e-10 * Space.of(m).xp.max(abs(m))):
        raise ValueError("metric is not symmetric; give a symmetric positive definite matrix.")
    smallest, largest = np.linalg.eigvalsh(host(m))[[0, -1]].tolist()
    if smallest < -1e2 * m.shape[0] * Space.of(m).eps * abs(largest):
        raise ValueError(f"metric has the eigenvalue {smallest:.3g}; give a symmetric positive definite matrix.")
    return Operator(lambda v: m @ v, (m.shape[0],))
