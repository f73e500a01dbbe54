"""How the columns of a table become those of a matrix: numbers as they are, texts one-hot, missing values filled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pursuit.cli.errors import UsageError, listed
from pursuit.cli.tables import Array, pl

MAX_CATEGORIES, FEW = 100, 10
"""A text column with more different values than the first is more likely a name or a date than a category; so is one
with more than half as many as there are rows, unless they are few."""


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
        fill = {
            name: frame[name].drop_nulls().mode().min() if texts else float(frame[name].cast(pl.Float64).median())
            for name, texts in columns.items()
        }
        return cls(columns, fill if impute else {})

    @property
    def places(self) -> list[tuple[str, str]]:
        """The columns of the matrix: the column of the table, and the name."""
        return [
            (name, name if value is None else f"{name}={value}")
            for name, values in self.columns.items()
            for value in ([None] if values is None else values)
        ]

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [name for _, name in self.places]

    @property
    def texts(self) -> list[str]:
        """The columns to read as texts."""
        return [name for name, values in self.columns.items() if values is not None]

    def used(self, coef: Array) -> set[str]:
        """The columns of the table that a model with these coefficients uses."""
        return {self.places[j][0] for j in np.flatnonzero(np.atleast_2d(coef).any(axis=0))}

    def matrix(self, frame: pl.DataFrame, path: Path, needed: set[str] | None = None) -> tuple[Array, dict[str, int]]:
        """The matrix, and how many values of each column are unknown categories, which are zero in all its columns.
        Columns that are not needed are 0."""
        wanted = [name for name in self.columns if needed is None or name in needed]
        self._check_complete(frame, path, wanted)
        blocks, unknown = [], {}
        for name, values in self.columns.items():
            if name not in wanted:
                blocks.append(np.zeros((frame.height, 1 if values is None else len(values))))
                continue
            column = frame[name]
            if values is None:
                require_numbers(column, path, "the model was fitted on numbers: correct it")
                column = column.cast(pl.Float64)
            column = column.fill_null(self.fill[name]) if name in self.fill else column
            parts = [column] if values is None else [column == value for value in values]
            blocks.append(np.column_stack([part.to_numpy() for part in parts]))
            if values is not None and (count := int((~blocks[-1].any(axis=1)).sum())):
                unknown[name] = count
        return np.asfortranarray(np.hstack(blocks), dtype=np.float64), unknown

    def _check_complete(self, frame: pl.DataFrame, path: Path, wanted: list[str]) -> None:
        """Refuse a table without these columns, or with missing values in them that cannot be filled."""
        if missing := [name for name in wanted if name not in frame.columns]:
            advice = "add it" if len(missing) == 1 else "add them"
            raise UsageError(f"{path} has no column {listed(missing)}, which the model needs; {advice}.")
        empty = {name: frame[name].null_count() for name in wanted if name not in self.fill}
        if counts := [f"{name} ({count})" for name, count in empty.items() if count]:
            raise UsageError(f"{path} has missing values: {listed(counts)}; fill them, or fit with --impute.")


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
    most = min(MAX_CATEGORIES, max(FEW, len(known) // 2))
    if len(values) > most:
        many = f"{len(values)} different texts in {len(known)} rows, too many for categories (at most {most})"
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
