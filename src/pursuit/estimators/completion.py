"""Matrix completion as an estimator: biases of rows and columns, and a matrix of small nuclear norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pursuit.arguments import as_int_or_nan, require
from pursuit.atoms.factored import LowRank, compress
from pursuit.atoms.matrices import RankOne
from pursuit.atoms.views import row_products
from pursuit.domains import conv, lin
from pursuit.estimators import checks
from pursuit.estimators.base import Array
from pursuit.estimators.entries import Completion, Entries, as_rows, is_table, positions
from pursuit.linalg import EPS
from pursuit.objectives import LeastSquares
from pursuit.refine import Factors
from pursuit.run.result import Result
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.threads import single_threaded_blas
from pursuit.updates import NormCorrective

DAMPINGS = (1.0, 2.0, 3.0, 5.0, 8.0)
POWERS = (0.0, -0.25, -0.5)
LARGER, SMALLER = ([2.0**k for k in range(1, 7)], [2.0**-k for k in range(1, 7)])
MAX_RANK = 20
"""The candidates. Levels are radii over the norm of what the matrix shall explain. The powers are compared at level 1,
which then grows, or else shrinks, until the error grows. So do ranks."""
TRIAL_TOL = 10.0
"""How much larger the gap may be while a radius is chosen."""
BIAS_ROUNDS = 10
SEVERAL = 16
"""Atoms of an oracle call that enter together, where the rank is not bounded."""
ACCURACY = 0.3
"""The accuracy of the factors after an oracle call."""
NOISE = 1e-12
"""Below this fraction of the data, the residuals of the biases are rounding errors."""


class Trial(NamedTuple):
    """Parameters of a model (level infinity: no radius), and the root mean square error on the validation part."""

    damping: float | None = 3.0
    power: float = 0.0
    level: float = 1.0
    rank: int | None = None
    error: float = math.inf


class Biases(NamedTuple):
    """An additive model: entry (i, j) is mean + row[i] + column[j]."""

    mean: float
    row: Array
    column: Array

    @classmethod
    def of(cls, entries: Entries, damping: float | None) -> Biases:
        """Ridge regression on row and column, in rounds of taking turns; zero where the damping is None."""
        row, column = (np.zeros(n) for n in entries.shape)
        if damping is None:
            return cls(0.0, row, column)
        (i, j), mean = entries.places, entries.mean
        by_row, by_column = (np.maximum(entries.sums(mode) + damping, EPS) for mode in (0, 1))
        for _ in range(BIAS_ROUNDS):
            column = entries.sums(1, entries.values - mean - row[i]) / by_column
            row = entries.sums(0, entries.values - mean - column[j]) / by_row
        return cls(mean, row, column)

    def at(self, i: Array, j: Array) -> Array:
        return self.mean + self.row[i] + self.column[j]


class MatrixProblem:
    """What the matrix shall explain: the observed entries less their biases, with a scale for each row."""

    def __init__(self, entries: Entries, damping: float | None, power: float) -> None:
        self.shape, self.unit, (i, j) = entries.shape, entries.unit, entries.places
        self.biases = Biases.of(entries, damping)
        (self.rows, rows), (self.columns, columns) = (np.unique(k, return_inverse=True) for k in (i, j))
        counts = entries.sums(0)[self.rows]
        self.scale = (counts / counts.mean()) ** power
        rest, s, w = entries.values - self.biases.at(i, j), self.scale[rows], entries.weights
        size, of_data = (math.sqrt(float(w @ (array * array))) for array in (rest, entries.values))
        self.size = size if size > NOISE * of_data else 0.0
        self.range = entries.range
        self.f = LeastSquares(rest / s, weights=w * s * s)
        self.A = RankOne((len(self.rows), len(self.columns))).at(rows, columns)

    def matrix(self, result: Result | None) -> LowRank:
        """The matrix of a result; rows and columns without an observation are zero."""
        m, n = self.shape
        rank = 0 if result is None else len(result.coef.s)
        U, V = np.zeros((m, rank)), np.zeros((n, rank))
        if result is None or not rank:
            return LowRank(U, np.zeros(0), V)
        small = result.coef
        U[self.rows], V[self.columns] = self.scale[:, None] * small.U * small.s, small.V
        return compress(U, V)

    def error(self, result: Result | None, entries: Entries, clip: bool) -> float:
        """The root mean square error at other entries of the same matrix."""
        X, (i, j) = self.matrix(result), entries.places
        predicted = self.biases.at(i, j) + row_products(X.U * X.s, X.V, i, j)
        return entries.error(np.clip(predicted, *self.range) if clip else predicted)


@dataclass(eq=False, repr=False)
class LowRankCompletion(Completion):
    r"""Matrix completion, for recommendations say: an entry is a mean, plus a bias of its row, plus a bias of its
    column, plus an entry of a matrix of small nuclear norm.

    Minimises :math:`\frac12\sum_{ij} w_{ij} (b_{ij} + X_{ij} - y_{ij})^2` over the observed entries (i, j), where the
    biases b are those of a ridge regression, and X is a matrix in the ball :math:`\|S^{-1} X\|_* \le r` (or any matrix
    of the given rank) with :math:`S = \mathrm{diag}(c_i^p)` for the numbers c of observations of the rows over their
    mean. A power p < 0 lets rows with few observations learn more from others. Frank-Wolfe with moved factors, to a
    certified gap.

    What is None is chosen on a random part of the observations: `damping`, `power`, and a radius or a rank, or a radius
    for the given rank. Then all observations are fitted.

    Parameters
    ----------
    rank : int, optional
        At most this rank. Without `radius`, a radius is chosen, or none.
    radius : float, optional
        The bound on the nuclear norm, in units of the data.
    biases : bool
        Without them, the matrix alone makes the entries.
    damping : float, optional
        The ridge of the biases, as a number of observations of the mean that each label has besides its own.
    power : float, optional
        The p of above, from -1 to 1.
    clip : bool
        Keep predictions within the range of the values that were fitted.
    validation, random_state : float; int or RandomState, optional
        The share of the observations to choose on, and the seed that draws them.
    tol, max_iter : float, int
        The certified gap at which fitting ends, relative to the objective; and the most oracle calls for one radius.

    Attributes
    ----------
    U_, s_, V_, mean_, row_bias_, column_bias_ : arrays and a float
        The matrix X is U diag(s) V'.
    labels_, counts_ : lists of two arrays
        The labels of rows and columns, sorted (of a pivoted data frame, its index and columns; of a matrix, indices),
        and the weight of the observations of each.
    observed_, noise_ : (2, observations) array and float
        The positions of the observations among the labels, and the root mean square of what the model leaves of them.
    rank_, radius_, damping_, power_ : int and floats
        As given or chosen (None where they have no part).
    dual_gap_ : float
        A proved bound on how far the objective is above its minimum for this radius; without a radius, above 0.
    validation_error_ : dict of arrays `damping`, `power`, `level`, `rank` and `error`
        The trials, if there were any: the level is the radius over the norm of what the matrix shall explain, and the
        error is the root mean square on the validation part.

    Notes
    -----
    `fit` reads three kinds of observations: SciPy sparse matrices (what is stored is observed, zeros too), arrays with
    NaN where nothing is known, and tables. A table is X with labels in its first two columns and y with the values, or,
    without y, labels and values in the first three columns of X; the labels are strings or numbers. Without y, an array
    of three columns is read as a table if nothing is missing and the labels are strings or whole numbers. Repeated
    observations of an entry count as their mean, with their number as weight. `score` is R^2, as for all regressors.

    Examples
    --------
    >>> from pursuit.estimators import LowRankCompletion
    >>> ratings = [("ann", "Alien", 5), ("ann", "Heat", 4), ("bob", "Alien", 2), ("bob", "Heat", 1), ("eve", "Heat", 5)]
    >>> model = LowRankCompletion(random_state=0).fit(ratings)
    >>> bool(model.predict("eve", "Alien") > model.predict("bob", "Alien"))
    True
    """

    _not_saved = ("validation_error_",)
    _checks = checks.table(
        radius=checks.between(0.0, math.inf),
        damping=checks.between(0.0, math.inf),
        power=checks.between(-1.0, 1.0),
        biases=checks.boolean,
    )

    rank: int | None = None
    radius: float | None = None
    biases: bool = True
    damping: float | None = None
    power: float | None = None
    clip: bool = True
    validation: float = 0.1
    tol: float = 1e-2
    max_iter: int = 50
    random_state: Any = None

    @single_threaded_blas  # the products are short
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the observed entries; `sample_weight` is for tables."""
        self._check()
        entries = self._read(X, y, sample_weight).normalized()
        trial, errors = self._choose(entries)
        problem, unit = MatrixProblem(entries, trial.damping, trial.power), entries.unit
        radius, result = self._radius(problem, trial), self._solve(problem, trial, float(self.tol))
        matrix = problem.matrix(result)
        self._take(entries, result)
        self.counts_ = [entries.sums(mode) for mode in (0, 1)]
        self.U_, self.s_, self.V_ = matrix.U, unit * matrix.s, matrix.V
        self.mean_ = unit * entries.mean
        self.row_bias_, self.column_bias_ = unit * problem.biases.row, unit * problem.biases.column
        self.rank_, self.radius_ = len(matrix.s), None if math.isinf(radius) else unit * radius
        self.damping_, self.power_, self.validation_error_ = trial.damping, trial.power, errors
        self.observed_ = entries.places
        self.noise_ = unit * problem.error(result, entries, clip=False)
        return self

    def recommend(self, row: Any, n: int = 10) -> Array:
        """The labels of the n columns with the largest predictions among those that were not observed in this row, the
        largest first."""
        check_is_fitted(self)
        require(as_int_or_nan(n) >= 1, "n", n, "how many columns are wanted, an integer of at least 1")
        place = int(positions(self.labels_[0], [row], "row")[0])
        values = np.array(self.predict(row, self.labels_[1]), dtype=np.float64)
        start, stop = np.searchsorted(self.observed_[0], [place, place + 1]) if place >= 0 else (0, 0)
        values[self.observed_[1][start:stop]] = -np.inf
        best = np.argsort(-values, kind="stable")[: int(n)]
        return np.asarray(self.labels_[1][best[values[best] > -np.inf]])

    def fold_in(self, columns: Any, values: Any) -> Array:
        r"""The predictions of all of `labels_[1]` for a new row with these values at these columns, without a new fit.

        The row's bias is that of the ridge regression; its entry of the matrix is V u with the u of the largest
        probability, where the rows of U diag(s) are draws of a normal variable, and values have errors of the size
        `noise_`.
        """
        check_is_fitted(self)
        y = check_array(values, dtype=np.float64, ensure_2d=False, ensure_min_samples=0)
        at = positions(self.labels_[1], columns, "columns") if len(columns) else np.zeros(0, np.intp)
        require(at.ndim == 1 and at.shape == y.shape, "values", values, "a value for each of the columns")
        at, y = at[at >= 0], y[at >= 0]
        rest = y - self.mean_ - self.column_bias_[at]
        bias = 0.0 if self.damping_ is None or not len(at) else rest.sum() / (len(at) + self.damping_)
        if self.damping_ is None:
            rest = y
        V = self.V_ * (self.s_ / math.sqrt(len(self.U_)))
        A = V[at]
        kernel = A @ A.T + max(self.noise_, NOISE * float(np.abs(y).max(initial=1.0))) ** 2 * np.eye(len(at))
        entry = V @ (A.T @ np.linalg.solve(kernel, rest - bias)) if len(at) else np.zeros(len(V))
        base = 0.0 if self.damping_ is None else self.mean_ + bias + self.column_bias_
        return self._within_range(base + entry)

    def predict(self, rows: Any, cols: Any = None) -> Array:
        """Predictions at labels of rows and of columns, which are broadcast; or at a table of such pairs.

        New labels, and those without an observation, have no bias and no part in the matrix.
        """
        places = self._places((rows,) if cols is None else (rows, cols))
        known = [(k >= 0) & (counts[k] > 0) for k, counts in zip(places, self.counts_, strict=True)]
        both = known[0] & known[1]
        rows_of_both, columns_of_both = (np.where(both, k, 0).ravel() for k in places)
        entry = row_products(self.U_ * self.s_, self.V_, rows_of_both, columns_of_both).reshape(both.shape)
        if self.damping_ is None:
            entry = np.where(both, entry, self.mean_)
        else:
            row, column = np.where(known[0], self.row_bias_[places[0]], 0.0), self.column_bias_[places[1]]
            entry = self.mean_ + row + np.where(known[1], column, 0.0) + np.where(both, entry, 0.0)
        return self._within_range(entry)

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Entries:
        X = as_rows(X)
        if y is not None or (not sp.issparse(X) and is_table(X)):
            return self._read_table(X, y, sample_weight, 2)
        require(sample_weight is None, "sample_weight", sample_weight, "None, as X is no table")
        if not sp.issparse(X) and any(isinstance(value, str) for value in np.asarray(X).flat):
            raise ValueError("X holds strings; give a table of row labels, column labels and values, or a matrix.")
        frame, labels = X, (getattr(X, "index", None), getattr(X, "columns", None))
        X = validate_data(self, X, accept_sparse=("coo", "csr"), dtype=np.float64, ensure_all_finite="allow-nan")
        entries = Entries.of_sparse(X) if sp.issparse(X) else Entries.of_array(X)
        named = hasattr(frame, "iloc")  # a data frame of pandas: a row and a column for each label
        return entries.labelled([np.asarray(names) for names in labels]) if named else entries

    def _solve(self, problem: MatrixProblem, trial: Trial, tol: float, start: Result | None = None) -> Result | None:
        """The best matrix within the bounds; None where it is zero."""
        radius = self._radius(problem, trial)
        if radius == 0.0 or problem.size == 0.0:
            return None
        domain = lin(problem.A) if math.isinf(radius) else conv(radius * problem.A)
        update = NormCorrective(several=SEVERAL if trial.rank is None else 1)
        least = 0.5 * (tol * problem.size) ** 2  # for data that are fitted exactly
        stop = Stop(rgap=tol, gap=least, iterations=self.max_iter, atoms=trial.rank)
        return minimize(problem.f, domain, update, refine=Factors(accuracy=ACCURACY), stop=stop, start=start)

    def _radius(self, problem: MatrixProblem, trial: Trial) -> float:
        """The radius in the unit of the problem."""
        return trial.level * problem.size if self.radius is None else float(self.radius) / problem.unit

    def _choose(self, entries: Entries) -> tuple[Trial, dict[str, Array]]:
        """The parameters that are given, and for the others those of the lowest error on the validation part: first the
        damping, of biases alone; then the power, at one radius; then the radius or the rank. With the errors of all
        that was tried."""
        free, chosen = self.radius is None, self._given()
        powers = POWERS if self.power is None else (float(self.power),)
        dampings = DAMPINGS if self.damping is None else (float(self.damping),)
        parts = entries.split(float(self.validation), check_random_state(self.random_state))
        if parts is None or not (free or self.power is None or (self.biases and self.damping is None)):
            return chosen, {}
        trials = []
        for damping in dampings if self.biases else [None]:
            error = MatrixProblem(parts[0], damping, 0.0).error(None, parts[1], self.clip)
            trials.append(chosen._replace(damping=damping, level=0.0, error=error))
        chosen = chosen._replace(damping=_best(trials).damping)
        first = chosen._replace(level=Trial().level) if free else chosen
        fits = [self._path(parts, [first._replace(power=power)])[0] for power in powers]
        if free:
            fits += self._sizes(parts, chosen, _best(fits), entries.shape)
        columns = zip(*trials, *fits, strict=True)
        errors = {name: np.array(column, dtype=np.float64) for name, column in zip(Trial._fields, columns, strict=True)}
        errors["error"] *= entries.unit
        return _best(trials + fits if free else fits), errors

    def _given(self) -> Trial:
        """The parameters that are given, and where none is, the default."""
        default = Trial(rank=self.rank)
        damping = default.damping if self.damping is None else float(self.damping)
        return default._replace(
            damping=damping if self.biases else None,
            power=default.power if self.power is None else float(self.power),
            level=default.level if self.radius is None and self.rank is None else math.inf,
        )

    def _sizes(
        self, parts: tuple[Entries, Entries], chosen: Trial, at_one: Trial, shape: tuple[int, ...]
    ) -> list[Trial]:
        """Other radii than that of a fit, and all ranks."""
        larger = self._path(parts, [at_one._replace(level=level) for level in LARGER])
        smaller = [at_one._replace(level=level) for level in SMALLER] if larger[0].error > at_one.error else []
        ranks = range(1, 1 + min(MAX_RANK, *shape)) if self.rank is None else [self.rank]
        plain = [chosen._replace(power=0.0, level=math.inf, rank=rank) for rank in ranks]
        return [*larger, *(self._path(parts, smaller) if smaller else ()), *self._path(parts, plain)]

    def _path(self, parts: tuple[Entries, Entries], trials: list[Trial]) -> list[Trial]:
        """Fits with their errors, until one has a larger error than the last. A trial that comes with an error is like
        one that has been tried, but for its level."""
        problem, result, done = MatrixProblem(parts[0], trials[0].damping, trials[0].power), None, [trials[0]]
        for trial in trials:
            tol = float(self.tol) * (TRIAL_TOL if trial.rank is None else 1.0)
            grows = trial.level >= done[-1].level  # and the last result lies within the bounds
            result = self._solve(problem, trial, tol, result if grows else None)
            done.append(trial._replace(error=problem.error(result, parts[1], self.clip)))
            if done[-1].error > done[-2].error:
                break
        return done[1:]


def _best(trials: list[Trial]) -> Trial:
    return min(trials, key=lambda trial: trial.error)
