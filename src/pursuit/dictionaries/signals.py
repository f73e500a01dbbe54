"""What a dictionary is learned from: signals with weights, at once or in batches, and how they are coded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import describe, host_array, number, require
from pursuit.coding import encode
from pursuit.coding.request import Array, read_signals
from pursuit.gpu.tensors import is_on_cuda

CODE_ARGUMENTS = ("method", "atoms", "tol", "penalty", "positive")
NONNEGATIVE_METHODS = ("nnomp", "nnls")
MIN_SHARED_WORK = 2**23
"""Signals times entries of the dictionary below which one thread has coded a batch before others have begun."""

Batches = Callable[[int], Iterator[Any]]
"""The batches of a sweep, by its number."""


@dataclass(frozen=True)
class Signals:
    """Rows of Y, 0 where an entry is missing, the weights of their entries, if any, and the arguments of `encode` that
    have a number for each row."""

    Y: Array
    W: Array | None = None
    each: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def checked(cls, Y: Any, weights: Any = None, dtype: Any = None) -> Signals:
        Y, W = read_signals(Y, weights)
        kind = dtype or (np.float32 if Y.dtype == np.float32 else np.float64)
        if W is not None:
            Y, W = np.where(W > 0, Y, 0), W.astype(kind, copy=False)
        Y = np.ascontiguousarray(Y, kind)
        peak = float(max(Y.max(initial=0), -Y.min(initial=0)))
        check_scale(peak, kind)
        return cls(Y, W)

    @classmethod
    def of_batch(cls, batch: Any, dtype: Any = None) -> Signals:
        if isinstance(batch, list) and len(batch) == 1 and getattr(batch[0], "ndim", 0) == 2:
            batch = batch[0]  # as a loader of PyTorch gives it
        Y, weights = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        return cls.checked(Y, weights, dtype)

    def __len__(self) -> int:
        return len(self.Y)

    def put(self, D: Array) -> Array:
        """A dictionary beside the signals."""
        return np.asfortranarray(D, self.Y.dtype)

    def peaks(self, nonnegative: bool) -> Array:
        """The largest entries of each row, without signs; if `nonnegative`, those above 0."""
        largest: Array = (np.maximum(self.Y, 0) if nonnegative else np.abs(self.Y)).max(axis=1)
        return largest

    @property
    def features(self) -> int:
        return int(self.Y.shape[1])

    def rows(self, which: Any) -> Signals:
        each = {name: values[which] for name, values in self.each.items()}
        return Signals(self.Y[which], None if self.W is None else self.W[which], each)

    def energy(self, R: Array) -> Array:
        """The squared norms of the rows of R, in the metric of the weights."""
        squares: Array = np.einsum("ij,ij->i", R, R) if self.W is None else np.einsum("ij,ij,ij->i", self.W, R, R)
        return squares


def check_scale(peak: float, dtype: Any) -> None:
    """Refuse signals whose largest entry is not finite, or whose squares leave the range of the dtype."""
    if not np.isfinite(peak):
        raise ValueError("Y contains NaN or infinity; give such entries weight 0 or impute them.")
    info = np.finfo(dtype)
    if peak and not float(info.tiny) / float(info.eps) ** 2 < peak * peak < float(info.max) * float(info.eps):
        raise ValueError(f"Y has entries up to {peak:.3g}, whose squares overflow; bring Y to another scale.")


@dataclass(frozen=True)
class LearningPlan:
    """How a dictionary is learned, and its objective; see `learn` for what the parameters mean."""

    code: Mapping[str, Any]
    """Arguments of `encode`."""
    update: str
    nonnegative: bool
    forgetting: float
    n_jobs: int | None

    def __post_init__(self) -> None:
        code = self.code
        if not isinstance(code, Mapping) or not set(code) <= set(CODE_ARGUMENTS):
            other = set(code) - set(CODE_ARGUMENTS) if isinstance(code, Mapping) else set()
            named = f"the argument {min(map(str, other))}" if other else describe(code)
            raise TypeError(
                f"code is {named}; give a dict of {', '.join(CODE_ARGUMENTS)} for encode, such as "
                '{"method": "lasso", "penalty": 0.1}.'
            )
        if code.get("method") == "lasso":
            if code.get("tol") is not None:
                raise ValueError(
                    "code has tol beside the Lasso, which learn does not serve; give penalty, or another method."
                )
            penalty = code.get("penalty")
            require(0 <= number(penalty) < np.inf, "the penalty of code", penalty, "one number of at least 0")

    @property
    def penalty(self) -> float:
        """lam in 1/2 ||y - D x||^2 + lam ||x||_1; 0 for all methods but the lasso."""
        return number(self.code["penalty"]) if self.code.get("method") == "lasso" else 0.0

    @property
    def stops_at_error(self) -> bool:
        """Whether codes stop at an error: they then become shorter as the dictionary gets better, not more exact."""
        return self.code.get("tol") is not None

    @property
    def descends(self) -> bool:
        """Whether the objective never rises."""
        return self.update != "online" and not self.stops_at_error

    def encode(self, D: Array, signals: Signals) -> sp.csr_array:
        threads = self.n_jobs if len(signals) * math.prod(D.shape) > MIN_SHARED_WORK else 1
        codes: sp.csr_array = encode(D, signals.Y, weights=signals.W, n_jobs=threads, **{**self.code, **signals.each})
        return codes

    def costs(self, signals: Signals, R: Array, X: sp.csr_array) -> Array:
        """1/2 ||y - D x||^2 + lam ||x||_1 of every signal, from the residuals."""
        costs = 0.5 * signals.energy(R).astype(np.float64)
        if self.penalty:
            costs += self.penalty * abs(X).sum(axis=1)
        return costs

    def shrink(self, z: Array, curvature: Any) -> Array:
        """The minimiser x of 1/2 curvature x^2 - z x + lam |x|, entry by entry; 0 where the curvature is 0."""
        if self.code.get("method") in NONNEGATIVE_METHODS or self.code.get("positive"):
            z = np.maximum(z - self.penalty, 0)
        elif self.penalty:
            z = np.sign(z) * np.maximum(np.abs(z) - self.penalty, 0)
        x: Array = np.divide(z, curvature, out=np.zeros_like(z), where=curvature > 0)
        return x


def compute_residuals(signals: Signals, X: sp.csr_array, D: Array) -> Array:
    """The rows y - D x."""
    R: Array = X @ D.T
    np.subtract(signals.Y, R, out=R)
    return R


def is_matrix(Y: Any) -> bool:
    """Whether Y holds all signals; otherwise it is an iterable of batches."""
    if sp.issparse(Y) or hasattr(Y, "__array__") or hasattr(Y, "__dlpack__"):
        return True
    if not isinstance(Y, list | tuple):
        return False
    first = Y[0] if Y else 0.0
    return np.ndim(first[0] if isinstance(first, tuple) and first else first) < 2


def for_each_signal(code: Mapping[str, Any], Y: Any) -> dict[str, Array]:
    """The entries of `code` that have a number for each row of a matrix Y."""
    each = {name: host_array(code[name], name) for name in ("atoms", "tol") if np.ndim(code.get(name, 0))}
    for name, values in each.items():
        if not is_matrix(Y) or values.shape != np.shape(Y)[:1]:
            raise ValueError(
                f"{name} of code has shape {values.shape}; give one number, or one for each row of a matrix."
            )
    return each


def read_batches(Y: Any, weights: Any, size: int, seed: int, code: Mapping[str, Any]) -> tuple[Signals, Batches, bool]:
    """The first signals, the batches of every sweep as a function of its number, and whether there can be only one.

    A matrix is the first signals as a whole, and cut into batches of this size, in an order that each sweep draws anew.
    """
    if is_matrix(Y):
        signals = replace(_kind(Y).checked(Y, weights), each=for_each_signal(code, Y))

        def cut(sweep: int) -> Iterator[Signals]:
            order = np.random.default_rng([seed, sweep]).permutation(len(signals))
            return (signals.rows(order[start : start + size]) for start in range(0, len(signals), size))

        return signals, cut, False
    for_each_signal(code, Y)
    if not isinstance(Y, Iterable):
        raise TypeError(f"Y is {describe(Y)}; give a matrix whose rows are signals, or an iterable of such matrices.")
    if weights is not None:
        raise TypeError("weights were given with batches of signals; let each batch be a pair (Y, weights).")
    batches = iter(Y)
    head = next(batches, None)
    if head is None:
        raise ValueError("Y is an iterable without batches; an iterator that was used before is at its end.")
    kind = _kind(head[0] if isinstance(head, tuple | list) and head else head)
    first = kind.of_batch(head)
    begun = [chain([head], batches)]

    def read(sweep: int) -> Iterator[Signals]:
        return (kind.of_batch(batch, first.Y.dtype) for batch in (begun.pop() if begun else Y))

    return first, read, batches is Y


def _kind(Y: Any) -> type[Signals]:
    """Signals of the host, or of a device."""
    if not is_on_cuda(Y):
        return Signals
    from pursuit.dictionaries.device import DeviceSignals

    return DeviceSignals
