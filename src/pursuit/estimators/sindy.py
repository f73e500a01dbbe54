"""Sparse dynamics: the best few terms of each equation, as an optimiser for PySINDy (extra `sindy`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pysindy.optimizers import BaseOptimizer

from pursuit.arguments import as_int_or_nan, require
from pursuit.atoms.columns import Dictionary
from pursuit.estimators.base import Array
from pursuit.objectives import LeastSquares
from pursuit.run.stop import Stop
from pursuit.subsets import best


class BestTerms(BaseOptimizer):
    """The best `terms` terms of a library, in all equations together, by least squares.

    For each equation the best 0, 1, 2, ... terms are found, with a proof that no others are better; then the terms are
    divided among the equations so that the sum of squares, each relative to that of its equation, is least.

    Parameters
    ----------
    terms : int
        Of all equations together.
    most : int
        Of one equation.
    l2 : float
        The ridge l2/2 ||b||^2 while terms are chosen.
    seconds : float, optional
        The time for one number of terms in one equation; what is proved by then is in `gap_`.
    normalize_columns, copy_X, unbias
        As for every optimiser of PySINDy.
    verbose : bool
        Show incumbent, gap and nodes of each search, on terminals only.

    After `fit`, `lower_` has a row for each equation: no choice of 0, 1, ..., `most` terms has a smaller half sum of
    squares than its entries; `value_` has those that were found, and `gap_` is the difference.

        import pysindy
        from pursuit.estimators.sindy import BestTerms

        model = pysindy.SINDy(optimizer=BestTerms(terms=7), feature_library=pysindy.PolynomialLibrary(degree=5))
    """

    def __init__(
        self, terms: int = 10, most: int = 5, l2: float = 0.0, seconds: float | None = 10.0,
        normalize_columns: bool = False, copy_X: bool = True, unbias: bool = True, verbose: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(normalize_columns=normalize_columns, copy_X=copy_X, unbias=unbias)
        self.terms, self.most, self.l2, self.seconds, self.verbose = terms, most, l2, seconds, verbose

    def _reduce(self, x: Any, y: Any) -> None:
        for name in ("terms", "most"):
            value = getattr(self, name)
            require(as_int_or_nan(value) >= 0, name, value, "an integer of at least 0")
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        kept = np.flatnonzero(x.any(axis=0))
        sizes, stop = range(min(int(self.most), len(kept)) + 1), Stop(iterations=None, seconds=self.seconds)
        A = Dictionary(x[:, kept])
        paths: list[Any] = [
            best(LeastSquares(column), A, sizes, l2=self.l2, stop=stop, progress=self.verbose) for column in y.T
        ]
        self.value_ = np.array([path.value for path in paths])
        self.gap_ = np.array([path.gap for path in paths])
        self.lower_ = self.value_ - self.gap_
        self.coef_ = np.zeros((y.shape[1], x.shape[1]))
        for i, size in enumerate(
            divided(self.value_ / (self.value_[:, :1] + (self.value_[:, :1] == 0)), int(self.terms))
        ):
            self.coef_[i, kept] = paths[i][size].coef
        self.history_.append(self.coef_)


def divided(losses: Array, total: int) -> list[int]:
    """At most `total` terms divided among equations so that the sum of their losses is least; row i of `losses` has
    those of equation i with 0, 1, 2, ... terms.

    >>> divided(np.array([[9.0, 5.0, 0.0], [9.0, 4.0, 3.0]]), 3)
    [2, 1]
    """
    best_of: list[tuple[float, list[int]]] = [(0.0, [])] * (total + 1)
    for row in losses:
        tries = [
            [(best_of[t - k][0] + float(loss), [*best_of[t - k][1], k]) for k, loss in enumerate(row) if k <= t]
            for t in range(total + 1)
        ]
        best_of = [min(each, default=(math.inf, [])) for each in tries]
    return best_of[total][1]
