"""The columns that a linear model may use, and the models of a path.

Columns are divided by their standard deviation (without an intercept: by their root mean square), so that neither the
choice of columns nor a radius depends on units, unless they are wanted as they are (`standardize=False`); dense columns
are centred, too, and sparse ones stay sparse. Columns
that are constant (without an intercept: zero) are dropped: their coefficient is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.sparsefuncs import mean_variance_axis

from pursuit.arguments import require
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.factored import LowRank
from pursuit.domains import Domain, lin
from pursuit.estimators.base import Array
from pursuit.objectives import Huber, LeastSquares, Logistic, Multinomial, Poisson, Ridge
from pursuit.run.result import Result
from pursuit.run.stop import Status, Stop
from pursuit.solve import minimize

Loss = Huber | LeastSquares | Logistic | Multinomial | Poisson


@dataclass(frozen=True)
class Design:
    """The columns that a model may use: `X` at unit scale, from the columns `kept` of p."""

    X: Any
    kept: Array
    scale: Array
    mean: Array
    p: int
    fit_intercept: bool

    @classmethod
    def of(
        cls, X: Any, weights: Array, fit_intercept: bool, standardize: bool = True, factors: Array | None = None
    ) -> Design:
        """The columns of X without those that are constant (or zero, without an intercept), at unit scale or as they
        are, divided by `factors`."""
        sparse = bool(sp.issparse(X))
        if sparse:
            X = X.tocsc()
            low, high = (np.asarray(extreme(axis=0).todense()).ravel() for extreme in (X.min, X.max))
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        kept = np.flatnonzero(low != high if fit_intercept else (low != 0) | (high != 0))
        p, share = X.shape[1], weights / weights.sum()
        X = X[:, kept] if sparse or len(kept) < p else X
        mean = share @ X if fit_intercept and not sparse else np.zeros(len(kept))
        X = X if sparse else X - mean
        scale = np.ones(len(kept))
        if standardize and len(kept):
            scale = np.maximum(high[kept] - mean, mean - low[kept])
            _divide(X, scale)  # so that squares are numbers
            if sparse:
                means, variances = mean_variance_axis(X, axis=0, weights=share)
                deviation = np.sqrt(variances if fit_intercept else variances + means**2)
            else:
                deviation = np.sqrt(share @ (X * X))
            _divide(X, deviation)
            scale = scale * deviation
        if factors is not None:
            _divide(X, factors[kept])
            scale = scale * factors[kept]
        return cls(X, kept, scale, mean, p, fit_intercept)

    @property
    def q(self) -> int:
        """The number of columns kept."""
        return len(self.kept)

    def intercepts(self, shape: tuple[int, ...]) -> Domain | None:
        """The span of the intercepts, one per column of x of this shape; rows below those of X are zero."""
        if not self.fit_intercept:
            return None
        ones = (np.arange(shape[0]) < self.X.shape[0]).astype(np.float64)
        columns = ones[:, None] if len(shape) == 1 else ones[:, None, None] * np.eye(shape[1])
        return lin(Dictionary(columns), counted=False)

    def with_intercepts(self, domain: Domain, shape: tuple[int, ...]) -> Domain:
        """The sum of a domain of features and of the intercepts, where the model has some."""
        ones = self.intercepts(shape)
        return domain if ones is None else domain + ones

    def groups(self, labels: Any) -> Array:
        """The group of every kept column, from a label of any kind for each of the p columns."""
        array = np.asarray(labels)
        require(array.shape == (self.p,), "groups", labels, f"one label for each of the {self.p} features")
        return np.unique(np.unique(array, return_inverse=True)[1][self.kept], return_inverse=True)[1]

    def without_features(self, f: Loss | Ridge, tol: float) -> Row:
        """The model of intercepts only."""
        ones = self.intercepts(f.space.shape)
        B = np.zeros((self.q, math.prod(f.space.shape[1:])))
        if ones is None:
            value = f.value(f.space.zeros())
            return Row(0.0, value, value - f.infimum, B, np.zeros(B.shape[1]))
        fit = minimize(f, ones, stop=Stop(rgap=tol))
        return Row(0.0, fit.value, fit.gap, B, np.reshape(fit.coef, B.shape[1]))


def _divide(X: Any, by: Array) -> None:
    """Divide the columns of X, dense or CSC."""
    if bool(sp.issparse(X)):
        X.data /= np.repeat(by, np.diff(X.indptr))
    else:
        X /= by


class Row(NamedTuple):
    """A model at unit scale: coefficients B (q, outputs) and intercepts c."""

    level: float
    value: float
    gap: float
    B: Array
    c: Array

    @classmethod
    def of(cls, level: float, r: Result, q: int) -> Row:
        """The model of a result over q features, and over intercepts where its domain has them."""
        B, *c = r.coef if len(r.domain.parts) == 2 else (r.coef,)
        B = B.U @ (B.s[:, None] * B.V.T) if isinstance(B, LowRank) else np.reshape(B, (q, -1))
        return cls(level, r.value, r.gap, B, np.reshape(c, -1) if c else np.zeros(B.shape[1]))


@dataclass(frozen=True, repr=False)
class ModelPath:
    """Models along a path, one row each: the `level` (number of features, radius, or penalty), the objective's `value`,
    its certified `gap` (infinite where nothing is proved), and the coefficients that are not 0: `weights` (outputs,
    features used) of the features `used`, and `intercept`."""

    level: Array
    value: Array
    gap: Array
    used: list[Array]
    weights: list[Array]
    intercept: Array
    n_iter: int
    scale: Array
    """The deviation of each feature, 0 where it is constant (without an intercept: zero) and was left out."""
    complete: bool = True
    """False where Ctrl-C ended the path."""

    @classmethod
    def of(cls, design: Design, rows: Sequence[Row], n_iter: int, last: Result | None = None) -> ModelPath:
        """The path of these rows."""
        level, value, gap = (np.array([row[i] for row in rows]) for i in range(3))
        used = [np.flatnonzero(row.B.any(axis=1)) for row in rows]
        weights = [(row.B[at] / design.scale[at, None]).T for row, at in zip(rows, used, strict=True)]
        intercept = np.array([row.c - (design.mean / design.scale) @ row.B for row in rows])
        scale = np.zeros(design.p)
        scale[design.kept] = design.scale
        complete = last is None or last.status is not Status.INTERRUPTED
        used = [design.kept[at] for at in used]
        return cls(level, value, gap, used, weights, intercept, max(n_iter, 1), scale, complete)

    def __len__(self) -> int:
        return len(self.level)

    def __repr__(self) -> str:
        return f"ModelPath({len(self)} models, levels {self.level[0]:g} to {self.level[-1]:g})"

    @property
    def dropped(self) -> Array:
        """The features that are constant (without an intercept: zero) and were left out."""
        return np.flatnonzero(self.scale == 0)

    @property
    def coef(self) -> Array:
        """All coefficients: (rows, outputs, features)."""
        return np.stack([self.coef_of(row) for row in range(len(self))])

    def coef_of(self, row: int) -> Array:
        """The coefficients of one row: (outputs, features)."""
        coef = np.zeros((len(self.weights[row]), len(self.scale)))
        coef[:, self.used[row]] = self.weights[row]
        return coef

    def at_unit_scale(self) -> ModelPath:
        """The path with the coefficients of features that are divided by their deviations."""
        scaled = [w * self.scale[at] for w, at in zip(self.weights, self.used, strict=True)]
        return replace(self, weights=scaled)

    def along(self) -> tuple[Array, str]:
        """The levels as numbers, and what they are, for figures."""
        sizes = bool((self.level == np.arange(len(self.level))).all())
        kind = "features" if sizes else "penalty" if self.level[0] == np.inf else "radius"
        return np.asarray(self.level, dtype=float), kind

    def coefficients(self) -> Array:
        """A row for each level, a column for each feature: its coefficient, or the norm of several, for figures."""
        return np.stack([np.linalg.norm(B, axis=0) if len(B) > 1 else B.ravel() for B in self.coef])

    def scores(self, X: Any) -> Array:
        """X B + c of every row: (rows, samples, outputs)."""
        rows = zip(self.used, self.weights, self.intercept, strict=True)
        return np.stack([X[:, at] @ w.T + c for at, w, c in rows])

    def at(self, level: float) -> int:
        """The last row that is not beyond this level; the first row where there is none. (Penalties fall on a path.)"""
        levels, wanted = (-self.level, -level) if self.level[0] == np.inf else (self.level, level)
        wanted += 1e-12 * abs(wanted) if np.isfinite(wanted) else 0.0
        return max(int(np.searchsorted(levels, wanted, side="right")) - 1, 0)
