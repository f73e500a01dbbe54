"""How the columns of a table become those of a matrix: numbers as they are, texts one-hot, missing values filled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pursuit.cli.manners import Problem, names
from pursuit.cli.tables import Array, pl

MOST_CATEGORIES = 100
"""A text column with more different values than this is more likely a name or a date than a category."""


@dataclass(frozen=True)
class Column:
    """A column of a table: numbers, or (with `values`) categories, which become a column of zeros and ones each. `fill`
    takes the place of missing values; without it they are refused."""

    name: str
    values: tuple[str, ...] | None = None
    fill: float | str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [self.name] if self.values is None else [f"{self.name}={value}" for value in self.values]

    @classmethod
    def of(cls, column: pl.Series, path: Path) -> Column:
        """What this column is, or a Problem."""
        leave_out = f"or leave it out with --without {column.name!r}"
        if column.null_count() == len(column):
            raise Problem(f"the column {column.name} of {path} is empty; fill it, {leave_out}.")
        if column.dtype != pl.String:
            require_numbers(column, path, f"give numbers or text, {leave_out}")
            return cls(column.name)
        numbers, given = column.cast(pl.Float64, strict=False), len(column) - column.null_count()
        if 2 * (len(column) - numbers.null_count()) > given:
            require_numbers(column, path, f"correct it, {leave_out}")
        found = column.drop_nulls().unique().sort()
        if len(found) > MOST_CATEGORIES:
            raise Problem(
                f"the column {column.name} of {path} has {len(found)} different texts, too many for categories "
                f"(at most {MOST_CATEGORIES}); group them, {leave_out}."
            )
        return cls(column.name, tuple(found))

    def filled_from(self, column: pl.Series) -> Column:
        """With the median, or the most frequent value, for missing ones."""
        if self.values is None:
            return replace(self, fill=float(column.cast(pl.Float64).median()))
        counts = column.drop_nulls().value_counts(sort=True)
        most = counts.filter(pl.col("count") == counts["count"].max())[self.name]
        return replace(self, fill=str(most.sort()[0]))


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become those of a matrix."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, frame: pl.DataFrame, path: Path, impute: bool) -> Encoding:
        """The encoding of all columns of a table; with `impute` missing values are filled, here and in other tables."""
        columns = [Column.of(column, path) for column in frame]
        return cls(tuple(c.filled_from(frame[c.name]) if impute else c for c in columns))

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for column in self.columns for name in column.names]

    @property
    def texts(self) -> list[str]:
        """The columns to read as texts."""
        return [column.name for column in self.columns if column.values is not None]

    def used(self, coef: Array) -> set[str]:
        """The columns of the table in which a model with these coefficients, one per column of the matrix, looks."""
        ends = np.cumsum([0, *(len(column.names) for column in self.columns)])
        spans = zip(self.columns, pairwise(ends), strict=True)
        return {column.name for column, (start, end) in spans if coef[..., start:end].any()}

    def matrix(self, frame: pl.DataFrame, path: Path, needed: set[str] | None = None) -> tuple[Array, dict[str, int]]:
        """The matrix, and how many values of each column are unknown categories, which are zero in all its columns.
        Columns that are not needed are 0."""
        given = set(frame.columns)
        looked_at = [column for column in self.columns if needed is None or column.name in needed]
        if missing := [column.name for column in looked_at if column.name not in given]:
            advice = "add it" if len(missing) == 1 else "add them"
            raise Problem(f"{path} has no column {names(missing)}, which the model needs; {advice}.")
        empty = {c.name: n for c in looked_at if (n := frame[c.name].null_count()) and c.fill is None}
        if empty:
            told = names(f"{name} ({count})" for name, count in empty.items())
            raise Problem(f"{path} has missing values: {told}; fill them, or fit with --impute.")
        X, unknown, at = np.zeros((frame.height, len(self.names)), order="F"), {}, 0
        for column in self.columns:
            if column not in looked_at:
                at += len(column.names)
                continue
            found = frame[column.name]
            if column.values is None:
                require_numbers(found, path, "the model was fitted on numbers: correct it")
                found = found.cast(pl.Float64)
            found = found if column.fill is None else found.fill_null(column.fill)
            if column.values is None:
                X[:, at] = found.to_numpy()
            else:
                for j, value in enumerate(column.values):
                    X[:, at + j] = (found == value).to_numpy()
                if strange := frame.height - int(found.is_in(column.values).sum()):
                    unknown[column.name] = strange
            at += len(column.names)
        return X, unknown

    def plain(self) -> dict[str, Any]:
        """What a file keeps: the categories of each column, or None for numbers, and what fills missing values."""
        values = {c.name: None if c.values is None else list(c.values) for c in self.columns}
        return {"columns": values, "fill": {c.name: c.fill for c in self.columns if c.fill is not None}}

    @classmethod
    def from_plain(cls, plain: Any) -> Encoding:
        """The encoding that a file kept; ValueError, TypeError, KeyError or AttributeError where it is none."""
        columns, fills = [], dict(plain["fill"])
        for name, values in plain["columns"].items():
            fill = fills.pop(name, None)
            known = isinstance(fill, float | None) if values is None else isinstance(fill, str | None)
            if not isinstance(name, str) or not known or not all(isinstance(value, str) for value in values or ()):
                raise ValueError
            columns.append(Column(name, None if values is None else tuple(values), fill))
        return cls(tuple(columns))


def require_numbers(column: pl.Series, path: Path, advice: str) -> None:
    """Refuse a column that holds anything but finite numbers (or booleans) and missing values."""
    if column.dtype == pl.String:
        bad = (column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()).to_numpy()
        fault = "text"
    elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
        bad = np.isinf(column.cast(pl.Float64).to_numpy())
        fault = "an infinite number"
    else:
        raise Problem(f"the column {column.name} of {path} has the type {column.dtype}; {advice}.")
    if bad.any():
        row = int(np.argmax(bad))
        shown = repr(column[row]) if len(str(column[row])) <= 40 else f"{column[row][:40]!r}..."
        raise Problem(f"the column {column.name} of {path} has {fault}, {shown}, in row {row + 1}; {advice}.")
