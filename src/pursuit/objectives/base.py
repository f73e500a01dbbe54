"""What every objective has, and what losses with data share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from pursuit.arguments import as_array, describe, is_number, real_array
from pursuit.arrays import Array, Indices, Small, Space, everywhere, host
from pursuit.linalg.rounding import column_sums
from pursuit.linalg.vectors import EPS
from pursuit.metrics import Metric

ROUNDING = 8.0
"""The rounding errors of the terms of a conjugate, in EPS of their sizes: a few operations and a logarithm."""


class Objective:
    """A smooth convex function on H. Subclass it and write `value_and_grad`; the rest is optional.

    Where f is not defined its value is infinite, and the gradient there is never used: a run keeps to the domain of f.

    >>> import numpy as np, pursuit as ps
    >>> class Quartic(ps.Objective):
    ...     def value_and_grad(self, x):
    ...         return float(np.sum(x**4)) / 4, x**3
    >>> ps.minimize(Quartic(), ps.conv(ps.Simplex(2))).x.round(3)
    array([0.5, 0.5])
    """

    L: float | None = None
    """Smoothness: f(y) <= f(x) + <grad f(x), y-x> + L/2 ||y-x||^2; None where infinite or unknown."""
    mu: float = 0.0
    """Strong convexity: the same with >= and mu; 0 where there is none or it is unknown."""
    infimum: float = -math.inf
    """A lower bound on f over all of H."""
    quadratic: bool = False
    """Whether the Hessian is constant."""
    space: Space | None = None
    """H, where the objective determines it."""
    exact: bool = True
    """Whether values and gradients are exact. From estimates nothing can be proved."""
    convex: bool = True
    """Whether f is convex. Elsewhere nothing is proved but that x is nearly stationary."""
    singular: bool = False
    """Whether the domain of the conjugate is known but for rounding, so that it proves nothing of x without bounds."""
    evaluations: Sequence[float] = (math.nan, math.nan)
    """How often the functions of a `Smooth` have been called for a value and for a gradient; of others NaN."""
    cites: ClassVar[Sequence[str]] = ()
    """Works to cite for it: keys of references.bib, or BibTeX entries."""
    dual_range: tuple[Array, Array] | None = None
    """Bounds (low, high) on the entries of every u with a finite conjugate; None: there are none."""

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        """f(x) and the gradient at x, a new array of x's shape."""
        raise NotImplementedError(f"{type(self).__name__} must define value_and_grad(x).")

    def value(self, x: Array) -> float:
        """f(x)."""
        return self.value_and_grad(x)[0]

    def hessian(self, x: Array) -> Metric | None:
        """The second derivative at x as a linear map, or None where it is not known."""
        return None

    def conjugate(self, u: Array) -> float | None:
        """The conjugate f*(u) = sup_x <u, x> - f(x), or an upper bound on it; infinite outside its domain, and None
        where it is not known. Every u proves that f(x) >= <u, x> - f*(u)."""
        return None

    @property
    def has_hessian(self) -> bool:
        """Whether `hessian` answers with a linear map."""
        return type(self).hessian is not Objective.hessian

    def conjugate_above(self, u: Small, radius: Small) -> float | None:
        """An upper bound, rounded upwards, on f* at every point of its domain whose entries are within `radius` of
        those of u, on the host; None where that is not known."""
        return None

    def dual_point(self, u: Small) -> Small:
        """A point near u in the domain of f*, on the host."""
        return u

    def dual_room(self, u: Small) -> Small:
        """How far the entries of a point of the domain of f* may move: u + room * t is in it for |t| <= 1/2."""
        return np.ones(u.shape)

    def tied_entries(self, u: Small) -> Indices | None:
        """For each flat entry of u, the one that is minus the sum of the others of its row; None: none is tied."""
        return None

    def data_slopes(self, x: Array) -> Small | None:
        """d grad f(x)_i / d y_i for the data y of f, by which `differentiate` differentiates; None: no such data."""
        return None

    def twice_differentiable(self, x: Array) -> bool:
        """Whether the Hessian at x is the second derivative there."""
        return True

    @property
    def words(self) -> str:
        """What f is, for reports."""
        return f"the smooth{' convex' if self.convex else ''} function {self!r}"

    def __repr__(self) -> str:
        return repr_of(self)


def as_value(value: Any, name: str = "the value of f") -> float:
    """What a function of the user returned, as a number."""
    if type(value) is not float and not is_number(value):
        raise TypeError(f"{name} is {describe(value)}; return one real number.")
    return float(value)


def inside(space: Space, value: float, grad: Array) -> bool:
    """Whether f is defined at a point with this value and this gradient: both are finite."""
    return math.isfinite(value) and math.isfinite(space.norm(grad))


def repr_of(f: Objective, *arguments: str) -> str:
    return f"{type(f).__name__}({', '.join(arguments)})"


def size_of(name: str, a: Array) -> str:
    return f"{name} of {' x '.join(map(str, a.shape)) or 1} entries"


def total(xp: Any, a: Array) -> float:
    return float(xp.sum(a, dtype=xp.float64))


def sum_above(arrays: Sequence[Small], size: float) -> float:
    """The sum of all entries, rounded up; `size` is the sum of the sizes that they were computed from."""
    parts = [column_sums(a.reshape(-1, 1)) for a in arrays]
    sizes = sum(float(abs(s[0]) + e[0]) for s, e in parts) + size
    return math.nextafter(sum(float(s[0] + e[0]) for s, e in parts) + ROUNDING * EPS * sizes, math.inf)


def size_above(*arrays: Small) -> float:
    """An upper bound on the sum of the absolute values of all entries."""
    return sum(float(np.abs(a).sum()) * (1.0 + (a.size + 2) * EPS) for a in arrays)


def x_log_x(xp: Any, p: Array) -> Array:
    """p log p for p >= 0, and 0 at 0."""
    return p * xp.log(xp.where(p > 0, p, xp.ones_like(p)))


class DataLoss(Objective):
    """A loss f(x) = sum_i s_i phi_i(x_i), with data y of x's shape and weights s. f*(u) = sum_i s_i phi_i*(u_i / s_i).

    A new loss defines `_set_constants` (L, `dual_range` and whatever else depends on y and s), `value_and_grad`,
    `hessian`, `_conjugate_terms` and `dual_room`, and may refuse data in `_check_data`.
    """

    space: Space
    y: Array
    weights: Array = 1.0
    """The weights s: a number, or an array that multiplies with x."""
    target: Literal["numbers", "labels", "classes"] | None = None
    """What x predicts, for the figures of reports."""
    weighted: bool = False
    """Whether entries or rows have weights of their own."""
    _per_row: bool = False
    """Whether there is one weight for each row of y, not for each entry."""
    _logarithmic: bool = False
    """Whether f* has logarithms of u, whose errors are in units of u."""
    _labels: bool = False
    """Whether y holds labels or integers, which have no precision of their own."""
    _words: str = "the loss {f!r}"
    """What the loss is, for reports; {size} is that of y, {weighted} says whether there are weights."""

    def __init__(self, y: object, weights: object = None) -> None:
        given = as_array(y, "y")
        self.y = real_array(given, "y")
        if 0 in self.y.shape:
            raise ValueError("y is empty; give at least one observation.")
        self.space, self._labels = Space.of(self.y), self.y.dtype != given.dtype
        self._check_data()
        if weights is not None:
            self.weights = self._read_weights(weights)
        self._set_constants()

    def _check_data(self) -> None:
        """Refuse a y that does not suit this loss, or recode it."""

    def _read_weights(self, weights: object) -> Array:
        s, shape = real_array(weights, "weights"), self.y.shape[:1] if self._per_row else self.y.shape
        if s.ndim and s.shape != shape:
            shapes, each = f"{tuple(s.shape)}, y has {tuple(self.y.shape)}", "row" if self._per_row else "entry"
            raise ValueError(f"weights have shape {shapes}; give one weight per {each}, or one number.")
        if not everywhere(s > 0):
            raise ValueError("weights must be positive; leave out entries of weight zero instead.")
        self.weighted = s.ndim > 0
        if not self.weighted:
            return float(s)
        s = self.space.put(host(s))
        return s[:, None] if self._per_row else s

    def _set_constants(self) -> None:
        """Compute what depends on y and the weights."""
        raise NotImplementedError

    def on(self, space: Space) -> Self:
        """The same loss of arrays of this library, dtype and device, where y holds labels; else itself."""
        space = replace(space, shape=self.space.shape)
        if not self._labels or space == self.space:
            return self
        if abs(host(self.y)).max() > 2.0 / space.eps:
            kind = f"{space.dtype}, the dtype of the atoms"
            raise ValueError(f"y holds integers too large to be exact in {kind}; convert y or the atoms.")
        return self._moved(space)

    def _moved(self, space: Space) -> Self:
        """The same loss of arrays of this space."""
        other = copy(self)
        other.space, other.y = space, space.put(host(self.y))
        if self.weighted:
            other.weights = space.put(host(self.weights))
        other._set_constants()
        return other

    @property
    def _largest_weight(self) -> float:
        return float(self.space.xp.max(self.weights)) if self.weighted else self.weights

    @property
    def _host_weights(self) -> Small:
        return host(self.weights)

    def _in_range(self, u: Array) -> bool:
        low, high = self.dual_range or (-math.inf, math.inf)
        return everywhere((u >= low) & (u <= high))

    def _conjugate_terms(self, u: Array) -> tuple[Array, ...]:
        """Arrays whose entries sum to f*(u), for a u in its domain."""
        raise NotImplementedError

    def conjugate(self, u: Array) -> float:
        xp = self.space.xp
        return sum(total(xp, t) for t in self._conjugate_terms(u)) if self._in_range(u) else math.inf

    @property
    def _on_host(self) -> Self:
        """The same loss of NumPy arrays of float64."""
        space = Space.default(self.space.shape)
        return self if self.space == space else self._moved(space)

    @property
    def _host_range(self) -> tuple[Small, Small]:
        """The bounds of dual points, products with the weights, in float64 and rounded inwards."""
        low, high = self._on_host.dual_range or (-math.inf, math.inf)
        whole = np.zeros(self.space.shape)
        low, high = whole + host(low), whole + host(high)
        exact = not self.weighted and self.weights == 1.0
        return (low, high) if exact else (np.nextafter(low, 0.0), np.nextafter(high, 0.0))

    def conjugate_above(self, u: Small, radius: Small) -> float | None:
        """The terms are convex functions of the entries, so that they are largest at an end of an interval."""
        if type(self)._conjugate_terms is DataLoss._conjugate_terms:
            return None
        f, (low, high), own = self._on_host, self._host_range, (u,) if self._logarithmic else ()
        if not radius.any():
            terms = f._conjugate_terms(u)
            return sum_above(terms, size_above(*own, *terms))
        sides = [np.nextafter(u + side * radius, side * math.inf) for side in (-1.0, 1.0)]
        pairs = [f._conjugate_terms(np.clip(np.where(radius > 0, end, u), low, high)) for end in sides]
        worst = np.maximum(sum(pairs[0]), sum(pairs[1]))
        return sum_above([worst], size_above(*own, *pairs[0], *pairs[1]))

    def dual_point(self, u: Small) -> Small:
        return np.clip(u, *self._host_range)

    def data_slopes(self, x: Array) -> Small:
        return np.asarray(-self._host_weights * np.ones(self.y.shape))

    @property
    def words(self) -> str:
        size = " x ".join(f"{n:,}" for n in self.space.shape)
        weighted = ", weighted" if self.weighted else ""
        return self._words.format(f=self, size=size, weighted=weighted)

    def _repr(self, *arguments: str) -> str:
        """The repr, with the size of y, these arguments and the weights, if there are any."""
        weights = ["weights"] if self.weighted else [] if self.weights == 1.0 else [f"weights={self.weights:g}"]
        return repr_of(self, size_of("y", self.y), *arguments, *weights)

    def __repr__(self) -> str:
        return self._repr()
