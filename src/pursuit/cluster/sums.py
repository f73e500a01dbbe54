"""An objective whose samples are spread over the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pursuit.arguments import describe, quantity
from pursuit.arrays import Array, Space
from pursuit.cluster.workers import WorkerValues, add, check_functions, current_client
from pursuit.metrics import Metric, Operator
from pursuit.objectives import Objective, adapted


@dataclass(frozen=True)
class TermConstants:
    """What the sum must know of a term."""

    space: Space
    L: float | None
    mu: float
    infimum: float
    quadratic: bool
    exact: bool
    convex: bool


@dataclass
class Term:
    """f(M x), or f(x) where M is None; `last` is the point of the last Hessian, with it."""

    f: Objective
    M: Any
    last: tuple[Array, Metric] | None = None

    @classmethod
    def loaded(cls, load: Callable[[], Any], number: int) -> Term:
        """What function `number` of the user returns, checked."""
        loaded, who = load(), f"function {number} of terms returned"
        f, M = loaded if isinstance(loaded, tuple) and len(loaded) == 2 else (loaded, None)
        if not isinstance(f, Objective) or f.space is None or not f.space.numpy:
            advice = "return an objective of NumPy arrays, or a pair of one and a matrix"
            raise TypeError(f"{who} {describe(loaded)}; {advice}.")
        if type(f).hessian is Objective.hessian:
            raise TypeError(f"{who} {f!r}, which has no Hessian; define hessian(x).")
        if M is not None and (len(np.shape(M)) != 2 or (M.shape[0], *f.space.shape[1:]) != f.space.shape):
            raise ValueError(f"{who} a matrix of {np.shape(M)} for {f!r}; they must fit.")
        if M is not None and M.dtype.kind == "f":
            f = adapted(f, Space.of(np.empty(0, M.dtype)))  # labels take the dtype of the matrix
        return cls(f, M)

    def constants(self) -> TermConstants:
        f, space = self.f, self.f.space
        assert space is not None
        if self.M is None:
            return TermConstants(space, f.L, f.mu, f.infimum, f.quadratic, f.exact, f.convex)
        space = Space.of(np.empty((self.M.shape[1], *space.shape[1:]), space.dtype))
        return TermConstants(space, None, 0.0, f.infimum, f.quadratic, f.exact, f.convex)

    def _image(self, x: Array) -> Array:
        return x if self.M is None else self.M @ x

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        value, grad = self.f.value_and_grad(self._image(x))
        return value, grad if self.M is None else self.M.T @ grad

    def value(self, x: Array) -> float:
        return self.f.value(self._image(x))

    def curvature(self, x: Array, rows: Array) -> Array:
        """M' H M v for each row v, with the Hessian H of f at M x."""
        if self.last is None or not np.array_equal(self.last[0], x):
            H = self.f.hessian(self._image(x))
            assert H is not None
            self.last = x.copy(), H
        H = self.last[1]
        if self.M is None:
            return H.batch(rows)
        m, n = self.M.shape
        images = np.stack([(self.M @ v.reshape(n, -1)).ravel() for v in rows])
        return np.stack([(self.M.T @ h.reshape(m, -1)).ravel() for h in H.batch(images)])


class ShardedSum(Objective):
    r"""A sum of objectives that the workers of a dask cluster hold: :math:`f(x) = \sum_i f_i(M_i x)`.

    Each worker has some rows :math:`M_i` of the data and the loss :math:`f_i` of their labels. An evaluation sends x to
    every worker and adds up values and gradients, or products with the Hessian, in the order of the terms: the sum does
    not depend on how many workers there are. A worker that dies takes its terms with it; another one loads them again.

    Parameters
    ----------
    terms : sequence of functions without arguments
        Each runs on a worker and returns an objective :math:`f_i` of x itself, or a pair of an objective and a matrix
        :math:`M_i`, dense or sparse. It runs again if that worker dies, and must return the same. A vector of the size
        of x travels for each term: give as many as there are workers, or a few times as many.
    client : distributed.Client, optional
        By default the current one.

    Examples
    --------
    >>> import pytest
    >>> distributed = pytest.importorskip("distributed")
    >>> import numpy as np, pursuit as ps
    >>> def samples(seed):
    ...     X = np.random.default_rng(seed).standard_normal((100, 5))
    ...     return ps.Logistic(X[:, 1] > 0.1), X
    >>> with distributed.Client(processes=False, n_workers=2, dashboard_address=None):
    ...     f = ps.ShardedSum([lambda: samples(0), lambda: samples(1)])
    ...     r = ps.minimize(f, ps.conv(3.0 * ps.SignedBasis(5)))
    >>> int(abs(r.x).argmax()), r.gap <= 1e-6 * r.value
    (1, True)
    """

    space: Space

    def __init__(self, terms: Sequence[Callable[[], Any]], client: Any = None) -> None:
        check_functions(terms, "terms", "objectives")
        tasks = [partial(Term.loaded, load, i) for i, load in enumerate(terms)]
        self._values = WorkerValues(current_client(client, "ShardedSum"), tasks)
        constants: list[TermConstants] = self._map(Term.constants)
        self.space = constants[0].space
        for i, term in enumerate(constants):
            if (term.space.shape, term.space.dtype) != (self.space.shape, self.space.dtype):
                spaces = f"term {i} is a function of {term.space.dtype} arrays of shape {term.space.shape}"
                raise ValueError(f"{spaces}, term 0 of {self.space.dtype}, {self.space.shape}; they must agree.")
        self.L = None if any(term.L is None for term in constants) else sum(term.L or 0.0 for term in constants)
        self.mu = sum(term.mu for term in constants)
        self.infimum = sum(term.infimum for term in constants)
        self.quadratic = all(term.quadratic for term in constants)
        self.exact = all(term.exact for term in constants)
        self.convex = all(term.convex for term in constants)

    def _map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return self._values.map(function, range(len(self._values)), *arguments)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        values, grads = zip(*self._map(Term.value_and_grad, x), strict=True)
        return sum(values), add(grads)

    def value(self, x: Array) -> float:
        return float(sum(self._map(Term.value, x)))

    def hessian(self, x: Array) -> Metric:
        return SummedHessian(lambda v: self._curvature(x, v.reshape(1, -1)).reshape(v.shape), self.space.shape, self, x)

    def _curvature(self, x: Array, rows: Array) -> Array:
        return add(self._map(Term.curvature, x, np.ascontiguousarray(rows)))

    def __repr__(self) -> str:
        return f"ShardedSum({quantity(len(self._values), 'term')})"


@dataclass(frozen=True, slots=True, eq=False)
class SummedHessian(Operator):
    """The Hessian of a sum at x; many vectors take one question."""

    f: ShardedSum
    x: Array

    def batch(self, rows: Array) -> Array:
        return self.f._curvature(self.x, rows)
