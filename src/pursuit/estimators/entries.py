"""Observed entries of a matrix or a tensor: from tables of labels, sparse matrices, and arrays with NaN.

A table has a row for each observation: a label for each mode (user and item, say; numbers or strings), and the value.
In an array, what is not NaN is observed; in a sparse matrix, what is stored. There the labels are the indices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from pursuit.arguments import describe, number
from pursuit.estimators import checks
from pursuit.estimators.base import Array, Estimator
from pursuit.run.result import Result

NUMBERS = "biuf"
"""The kinds of dtypes of labels that are numbers. All others are strings."""


@dataclass(frozen=True)
class Entries:
    """Values and weights at places: `places[k]` are positions among the sorted `labels[k]` of mode k. No place comes
    twice: repeated observations are one, at their weighted mean, with the sum of their weights."""

    labels: list[Array]
    places: Array
    values: Array
    weights: Array
    unit: float = 1.0
    """The values are in this unit of the data."""

    @classmethod
    def of(cls, labels: list[Array], places: Array, values: Array, weights: Array | None = None) -> Entries:
        """Observations, of which some may be repeated."""
        if not len(values):
            raise ValueError("X has no observed entry; give at least one, with a positive weight.")
        order = np.lexsort(places[::-1])
        places, values = places[:, order], values[order]
        weights = np.ones(len(values)) if weights is None else weights[order]
        first = np.append(True, (np.diff(places, axis=1) != 0).any(axis=0))
        entry, low = np.cumsum(first) - 1, values[first]
        total = np.bincount(entry, weights)
        rest = np.bincount(entry, weights * (values - low[entry])) / total  # exactly 0 where all are equal
        return cls(labels, places[:, first], low + rest, total)

    @classmethod
    def of_table(cls, columns: list[Array], values: Array, weights: Array | None) -> Entries:
        """The observations of a table with these columns of labels; those of weight 0 are left out."""
        if weights is not None:
            used = weights > 0
            columns, values, weights = [column[used] for column in columns], values[used], weights[used]
        labels, places = zip(*(np.unique(column, return_inverse=True) for column in columns), strict=True)
        return cls.of(list(labels), np.array(places), values, weights)

    @classmethod
    def of_array(cls, X: Array) -> Entries:
        """The entries of an array that are not NaN."""
        seen = ~np.isnan(X)
        return cls.of([np.arange(n) for n in X.shape], np.array(np.nonzero(seen)), X[seen])

    @classmethod
    def of_sparse(cls, X: Any) -> Entries:
        """The stored entries of a sparse matrix that are not NaN, zeros among them."""
        X = X.tocoo()
        seen = ~np.isnan(X.data)
        return cls.of([np.arange(n) for n in X.shape], np.array([X.row, X.col], dtype=np.intp)[:, seen], X.data[seen])

    def labelled(self, names: list[Array]) -> Entries:
        """The same entries with these labels of the indices, sorted; a label that comes twice is one."""
        columns = [name[place] for name, place in zip(label_arrays(names), self.places, strict=True)]
        return Entries.of_table(columns, self.values, self.weights)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(labels) for labels in self.labels)

    @property
    def mean(self) -> float:
        return float(self.weights @ self.values / self.weights.sum())

    @property
    def range(self) -> Array:
        return np.array([self.values.min(), self.values.max()])

    def sums(self, mode: int, values: Any = 1.0) -> Array:
        """The weighted sum over the observations of each label: of ones, or of these values."""
        return np.bincount(self.places[mode], self.weights * values, minlength=self.shape[mode])

    def normalized(self) -> Entries:
        """The same entries in a unit in which the largest is about 1: a power of two, so that nothing is rounded."""
        unit = 2.0 ** math.frexp(float(np.abs(self.values).max()))[1]
        return replace(self, values=self.values / unit, unit=unit)

    def error(self, predicted: Array) -> float:
        """The root mean square error of predictions."""
        return math.sqrt(float(self.weights @ (predicted - self.values) ** 2 / self.weights.sum()))

    def split(self, share: float, rng: Any) -> tuple[Entries, Entries] | None:
        """Entries for training and for validation, at random; None where there are too few."""
        n = len(self.values)
        held = round(share * n)
        if not 0 < held < n:
            return None
        order = rng.permutation(n)
        return self._part(np.sort(order[held:])), self._part(np.sort(order[:held]))

    def _part(self, which: Array) -> Entries:
        return replace(self, places=self.places[:, which], values=self.values[which], weights=self.weights[which])


# ------------------------------------------------------------------------------ labels


def is_label(value: Any) -> bool:
    """Whether a value may be a label: a string or a finite number."""
    return isinstance(value, str) or math.isfinite(number(value))


def as_rows(X: Any) -> Any:
    """Lists as an array that keeps numbers beside strings what they are; anything else as it is."""
    if not isinstance(X, list | tuple):
        return X
    try:
        array = np.asarray(X)
        return np.array(X, dtype=object) if array.dtype.kind == "U" else array
    except ValueError:
        raise ValueError("X has rows of different lengths; give a table or a matrix.") from None


def label_columns(table: Array) -> list[Array]:
    """The columns of an array, each of numbers or of strings."""
    return [_labels(column, f"column {k} of X") for k, column in enumerate(table.T)]


def label_arrays(names: list[Array]) -> list[Array]:
    """The labels of a data frame's rows and columns, each of numbers or of strings."""
    return [_labels(each, kind) for each, kind in zip(names, ("the index of X", "the columns of X"), strict=True)]


def _labels(column: Array, name: str) -> Array:
    """An array of labels, of numbers or of strings, from one that may be of objects."""
    if column.dtype.kind not in "Of" or (column.dtype.kind == "f" and np.isfinite(column).all()):
        return column
    values, strings = column.ravel().tolist(), isinstance(column.flat[0], str) if column.size else False
    for value in values:
        if not is_label(value) or isinstance(value, str) != strings:
            raise TypeError(
                f"{name} holds {describe(value)}; each argument must be a string or a number, all of one kind."
            )
    return np.array(values).reshape(column.shape)


def positions(known: Array, labels: Any, name: str) -> Array:
    """Where labels stand among the known ones, which are sorted; -1 for new labels."""
    wanted = _labels(np.asarray(as_rows(labels)), name)
    if (wanted.dtype.kind in NUMBERS) != (known.dtype.kind in NUMBERS):
        kinds = ("numbers", "strings") if wanted.dtype.kind in NUMBERS else ("strings", "numbers")
        raise ValueError(f"{name} has labels that are {kinds[0]}, and those of fit are {kinds[1]}; give {kinds[1]}.")
    places = np.searchsorted(known, wanted).clip(max=len(known) - 1)
    return np.where(known[places] == wanted, places, -1)


def is_table(X: Any) -> bool:
    """Whether X, given without y, is a table (row label, column label, value) and not a matrix: it has three columns (a
    data frame may have more), and the labels are strings; or they are whole numbers and no value is missing."""
    columns, frame = np.asarray(X), hasattr(X, "columns")
    if columns.ndim != 2 or columns.shape[1] < 3 or (columns.shape[1] > 3 and not frame):
        return False
    if columns.dtype.kind == "O":
        if any(isinstance(label, str) for label in columns[:, :2].flat):
            return True
        columns = np.array([[number(value) for value in row] for row in columns[:, :3]])
    whole = columns.dtype.kind in "biu" or (columns.dtype.kind == "f" and (columns[:, :2] % 1 == 0).all())
    return bool(whole and not np.isnan(columns[:, :3]).any())


# ------------------------------------------------------------------------------ estimators of entries


class Completion(RegressorMixin, Estimator):
    """A model of the entries of a matrix or a tensor: a regressor on labels."""

    _checks = checks.table(
        rank=checks.optional_count,
        validation=checks.rule(lambda share: 0 <= number(share) < 1, "a share of the entries, from 0 to 1"),
        tol=checks.positive,
        max_iter=checks.count,
        clip=checks.boolean,
    )
    labels_: list[Array]

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Entries:
        """The observations that `fit` or `score` is given."""
        raise NotImplementedError

    def _read_table(self, X: Any, y: Any, sample_weight: Any, modes: int | None) -> Entries:
        """The observations of a table: labels in the first columns of X (`modes` of them, or all) and values in y;
        where y is None, values in the column after the labels."""
        least = (modes or 2) + (y is None)
        if y is None:
            table = validate_data(self, as_rows(X), dtype=None, ensure_min_features=least, ensure_all_finite=False)
            modes = modes or table.shape[1] - 1
            y = check_array(table[:, [modes]], dtype=np.float64, input_name="y")[:, 0]
        else:
            table, y = validate_data(self, as_rows(X), y, dtype=None, y_numeric=True, ensure_min_features=least)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
        return Entries.of_table(label_columns(table[:, :modes]), np.asarray(y, dtype=np.float64), weights)

    def _take(self, entries: Entries, result: Result | None) -> None:
        """Keep what both models know of a fit; the result is None where the answer is zero."""
        unit = entries.unit
        self.labels_, self.range_ = entries.labels, unit * entries.range
        self.dual_gap_ = 0.0 if result is None else unit * result.gap * unit
        self.n_iter_ = 1 if result is None else result.iterations + 1

    def _within_range(self, entry: Array) -> Array:
        return np.asarray(np.clip(entry, *self.range_) if self.clip else entry)

    def _places(self, labels: tuple[Any, ...]) -> list[Array]:
        """Positions of labels, given as one array per mode or as a table of them; -1 for new labels."""
        check_is_fitted(self)
        modes = len(self.labels_)
        if len(labels) == modes:
            names = [f"argument {k + 1}" for k in range(modes)]
            places = [positions(*mode) for mode in zip(self.labels_, labels, names, strict=True)]
            try:
                return list(np.broadcast_arrays(*places))
            except ValueError:
                shapes = " and ".join(str(array.shape) for array in places)
                raise ValueError(f"the labels have shapes {shapes}; give one of each mode per entry.") from None
        if len(labels) > 1:
            raise ValueError(f"predict has {len(labels)} arguments; give one table, or {modes} lists of labels.")
        X = as_rows(labels[0])
        table = check_array(X, dtype=None)
        if table.shape[1] != modes or self.n_features_in_ == modes:  # else they are the labels alone
            validate_data(self, X, skip_check_array=True, reset=False)
        columns = label_columns(table[:, :modes])
        return [positions(known, column, "X") for known, column in zip(self.labels_, columns, strict=True)]

    def predict(self, *labels: Any) -> Array:
        """Predictions at labels."""
        raise NotImplementedError

    def toarray(self) -> Array:
        """Predictions of all entries, as an array with an axis of labels for each mode."""
        check_is_fitted(self)
        return self.predict(*np.meshgrid(*self.labels_, indexing="ij", sparse=True))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions of y at the labels X; without y, X holds labels and values as `fit` reads them."""
        check_is_fitted(self)
        if y is None:
            entries = type(self)(**self.get_params())._read(X, None, sample_weight)
            labels = [known[k] for known, k in zip(entries.labels, entries.places, strict=True)]
            return float(r2_score(entries.values, self.predict(*labels), sample_weight=entries.weights))
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True  # the data of scikit-learn's checks hold no label twice
        tags.input_tags.string = True
        return tags
