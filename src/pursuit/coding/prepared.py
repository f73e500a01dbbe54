"""A dictionary prepared once, for signals that come one at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pursuit import native
from pursuit.arguments import describe, host_array
from pursuit.coding.request import Arguments, Array, Request, matrix
from pursuit.coding.strategies import MAX_GRAM_BYTES, FullPrecision, gram_matrix
from pursuit.coding.tiles import Codes, Tile


class Coder:
    """`encode` for signals that come one at a time: D is checked, and D.T @ D computed, only once.

    A call takes a signal of d entries and returns its atoms, in increasing order, and their weights, in the dtype of
    D. They are those of `encode(D, y[None], gram=D.T @ D, ...)`, without the checks and the sparse matrix, which take
    ten times as long for a small dictionary; where rounding decides, those of many signals in one call may differ.
    Calls may come from several threads at once.

    Parameters
    ----------
    D : (d, n) array
        Columns are atoms. D.T @ D is kept, so n is at most some thousands.
    atoms, tol, method, penalty, positive
        As for `encode`, the same numbers for all signals. Codes on a simplex and the Lasso with a tolerance are
        `encode`'s alone.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> code = ps.Coder(np.array([[1.0, 0.0, 0.6], [0.0, 2.0, 0.8]]), atoms=1, method="ols")
    >>> code([3.0, 0.0])
    (array([0], dtype=int32), array([3.]))
    >>> atoms, weights = code(np.array([1.2, 1.6]))
    >>> atoms, weights.round(12)
    (array([2], dtype=int32), array([2.]))
    """

    def __init__(
        self,
        D: Any,
        *,
        atoms: Any = None,
        tol: Any = None,
        method: str = "omp",
        penalty: Any = None,
        positive: bool = False,
    ) -> None:
        if str(method) == "simplex" or (str(method) == "lasso" and tol is not None):
            raise ValueError("codes on a simplex and the Lasso with tol are no prepared problems; call encode.")
        self._given = {"atoms": atoms, "tol": tol, "method": method, "penalty": penalty, "positive": positive}
        D = matrix(D, "D").copy()  # which the caller may change
        arguments = Arguments(**self._given, n_jobs=1)
        self._request = Request.from_arguments(D, np.zeros((1, len(D)), D.dtype), arguments)
        dtype, n = self._request.dtype, D.shape[1]
        if n * n * dtype.itemsize > MAX_GRAM_BYTES:
            raise ValueError(f"D has {n} columns, too many to keep D.T @ D; call encode, many signals at a time.")
        D = np.ascontiguousarray(self._request.scale.atoms(D), dtype)
        by_rows = native.kernels(dtype).Atoms(np.ascontiguousarray(D.T), self._request.norms, gram_matrix(D))
        self._solver = FullPrecision(D, by_rows, self._request.rules.method, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Coder, **self._given), (self._request.D,)

    def __call__(self, y: Any) -> tuple[Array, Array]:
        """The atoms and the weights of one signal."""
        y, request = host_array(y, "y"), self._request
        if y.dtype.kind not in "iuf" or y.shape != request.Y.shape[1:] or not np.isfinite(y).all():
            raise ValueError(f"y is {describe(y)}; give one signal of {request.Y.shape[1]} finite real numbers.")
        with np.errstate(all="ignore"):  # squares out of range are found and scaled away
            tile = Tile(replace(request, Y=y[None]), 0, Codes.empty(request.rules.limits, request.dtype))
            self._solver.solve(tile)
            _, atoms, weights = tile.pack()
        order = atoms.argsort()
        return atoms[order], weights[order].astype(request.code_dtype, copy=False)
