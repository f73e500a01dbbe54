"""How the columns of a table become those of a matrix: numbers as they are, texts one-hot, missing values filled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pursuit.cli.errors import UsageError, listed
from pursuit.cli.tables import Array, pl

MAX_CATEGORIES = 100
"""A text column with more different values than this is more likely a name or a date than a category."""


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become those of a matrix."""

    columns: dict[str, list[str] | None]
    """By name: the categories of a column of texts, each a column of zeros and ones; None for numbers."""
    fill: dict[str, float | str]
    """What takes the place of missing values; in other columns they are refused."""

    @classmethod
    def of(cls, frame: pl.DataFrame, path: Path, impute: bool) -> Encoding:
        """The encoding of a table; with `impute` missing values are filled by the median or the most frequent text,
        here and in other tables."""
        columns: dict[str, list[str] | None] = {}
        faults: list[str] = []
        for column in frame:
            try:
                columns[column.name] = _categories(column, path)
            except UsageError as fault:
                faults.append(str(fault))
        if faults:
            raise UsageError("\n".join(faults))
        encoding = cls(columns, {})
        for name, values in encoding.columns.items() if impute else ():
            column = frame[name]
            numeric = values is None
            encoding.fill[name] = (
                float(column.cast(pl.Float64).median()) if numeric else column.drop_nulls().mode().min()
            )
        return encoding

    @classmethod
    def from_file(cls, columns: Any, fill: Any) -> Encoding:
        """The encoding of a saved model, where the parts have the right types; otherwise ValueError."""
        columns, fill = dict(columns), dict(fill)
        for name, values in columns.items():
            kind = float if values is None else str
            if not isinstance(name, str) or not all(isinstance(value, str) for value in values or ()):
                raise ValueError
            if not isinstance(fill.get(name, kind()), kind):
                raise ValueError
        return cls(columns, fill)

    def places(self) -> Iterator[tuple[str, list[str]]]:
        """The columns of the table, and the names of their columns in the matrix."""
        for name, values in self.columns.items():
            yield name, [name] if values is None else [f"{name}={value}" for value in values]

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for _, names in self.places() for name in names]

    @property
    def texts(self) -> list[str]:
        """The columns to read as texts."""
        return [name for name, values in self.columns.items() if values is not None]

    def used(self, coef: Array) -> set[str]:
        """The columns of the table that a model with these coefficients uses."""
        sources = np.array([column for column, names in self.places() for _ in names])
        return set(sources[np.atleast_2d(coef).any(axis=0)].tolist())

    def matrix(self, frame: pl.DataFrame, path: Path, needed: set[str] | None = None) -> tuple[Array, dict[str, int]]:
        """The matrix, and how many values of each column are unknown categories, which are zero in all its columns.
        Columns that are not needed are 0."""
        needed = set(self.columns) if needed is None else needed
        if missing := [name for name in self.columns if name in needed and name not in frame.columns]:
            advice = "add it" if len(missing) == 1 else "add them"
            raise UsageError(f"{path} has no column {listed(missing)}, which the model needs; {advice}.")
        empty = {name: frame[name].null_count() for name in self.columns if name in needed and name not in self.fill}
        if counts := [f"{name} ({count})" for name, count in empty.items() if count]:
            raise UsageError(f"{path} has missing values: {listed(counts)}; fill them, or fit with --impute.")
        blocks, unknown = [], {}
        for name, names in self.places():
            block = np.zeros((frame.height, len(names)))
            if name in needed:
                block = self._block(frame[name], path)
                if self.columns[name] is not None and (count := int((~block.any(axis=1)).sum())):
                    unknown[name] = count
            blocks.append(block)
        return np.asfortranarray(np.hstack(blocks), dtype=np.float64), unknown

    def _block(self, column: pl.Series, path: Path) -> Array:
        """The columns of the matrix for one of the table."""
        name, values = column.name, self.columns[column.name]
        if values is None:
            require_numbers(column, path, "the model was fitted on numbers: correct it")
            column = column.cast(pl.Float64)
        column = column.fill_null(self.fill[name]) if name in self.fill else column
        return np.column_stack([column.to_numpy()] if values is None else [column == value for value in values])


def _categories(column: pl.Series, path: Path) -> list[str] | None:
    """The different texts of a column, None for numbers; or a UsageError."""
    leave_out = f"or leave it out with --without {column.name!r}"
    known = column.drop_nulls()
    if not len(known):
        raise UsageError(f"the column {column.name} of {path} is empty; fill it, {leave_out}.")
    if column.dtype != pl.String:
        require_numbers(column, path, f"give numbers or text, {leave_out}")
        return None
    if 2 * known.cast(pl.Float64, strict=False).null_count() < len(known):  # most are numbers
        require_numbers(column, path, f"correct it, {leave_out}")
    values: list[str] = known.unique().sort().to_list()
    if len(values) > MAX_CATEGORIES:
        many = f"{len(values)} different texts, too many for categories (at most {MAX_CATEGORIES})"
        raise UsageError(f"the column {column.name} of {path} has {many}; group them, {leave_out}.")
    return values


def require_numbers(column: pl.Series, path: Path, advice: str) -> None:
    """Refuse a column that holds anything but finite numbers (or booleans) and missing values."""
    if column.dtype == pl.String:
        bad = (column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()).to_numpy()
        fault = "text"
    elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
        bad = np.isinf(column.cast(pl.Float64).to_numpy())
        fault = "an infinite number"
    else:
        raise UsageError(f"the column {column.name} of {path} has the type {column.dtype}; {advice}.")
    if bad.any():
        row = int(np.argmax(bad))
        shown = repr(column[row]) if len(str(column[row])) <= 40 else f"{column[row][:40]!r}..."
        raise UsageError(f"the column {column.name} of {path} has {fault}, {shown}, in row {row + 1}; {advice}.")
