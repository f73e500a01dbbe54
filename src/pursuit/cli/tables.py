"""Tables from CSV and Parquet files: numbers and texts, with names; and how they become the columns of a matrix."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pursuit._files import replacing
from pursuit.cli.manners import Problem, check_file, names

try:
    import polars as pl
except ImportError as missing:
    raise ImportError("reading tables needs polars; install pursuit[cli].") from missing

Array = np.ndarray[Any, np.dtype[Any]]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None")
"""Entries that stand for a missing value."""
PARQUET = (".parquet", ".pq")
SEPARATORS = ",;\t|"
SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)
FIRST_ROWS = 10_000
"""Types are guessed from these; from all rows, which takes longer, where another row does not fit."""
MOST_CATEGORIES = 100
"""A text column with more different values than this is more likely a name or a date than a category."""


def read_table(path: Path, texts: Iterable[str] = (), header: bool = True) -> pl.DataFrame:
    """The table of a CSV or Parquet file. Columns are numbers (float64 or int64), booleans or texts, and missing values
    are null; the columns `texts` are read as texts, whatever they look like."""
    check_file(path, "give a CSV or Parquet file")
    asked = set(texts)
    frame = _read_parquet(path) if path.suffix in PARQUET else _read_csv(path, asked, header)
    frame = frame.with_columns(_tidied(column, column.name in asked) for column in frame)
    if not frame.height:
        raise Problem(f"{path} has no rows; give at least one below the column names.")
    return frame


def table_of(columns: dict[str, Array]) -> pl.DataFrame:
    """A table of these columns."""
    return pl.DataFrame(columns)


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as Parquet or CSV, whichever the name of the file says."""
    with replacing(path) as new:
        (frame.write_parquet if path.suffix in PARQUET else frame.write_csv)(new)


def _read_parquet(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        start = file.read(4)
    if start != b"PAR1":
        raise Problem(f"{path} is not a Parquet file, whatever its name says; give one, or a CSV file as .csv.")
    try:
        return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError):
        raise Problem(f"{path} is a damaged Parquet file; write it again.") from None


def first_line(path: Path) -> list[str]:
    """The entries of the first line of a CSV file."""
    separator = _separator(path)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return next(csv.reader(file, delimiter=separator))


def _separator(path: Path) -> str:
    """The character between entries, after a look at the first line."""
    with path.open("rb") as file:
        start = file.read(4096)
    line = start.decode("utf-8-sig", errors="replace").splitlines()[0]
    if b"\0" in start or "\ufffd" in line:
        raise Problem(f"{path} is not a text file in UTF-8; save the table as CSV in UTF-8, or as Parquet.")
    return max(SEPARATORS, key=line.count)


def _read_csv(path: Path, texts: set[str], header: bool) -> pl.DataFrame:
    separator = _separator(path)
    heads = _heads(path) if header else []
    asked = {raw: pl.String for raw in heads if raw.strip() in texts}

    def read(rows: int | None) -> pl.DataFrame:
        return pl.read_csv(
            path, separator=separator, has_header=header, null_values=list(MISSING), schema_overrides=asked,
            infer_schema_length=rows, glob=False,
        )  # fmt: skip

    try:
        frame = read(FIRST_ROWS)
    except pl.exceptions.PolarsError:
        try:
            frame = read(None)
        except pl.exceptions.PolarsError:
            raise Problem(_fault(path, separator)) from None
    frame.columns = [name.strip() for name in heads] or frame.columns
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    return frame.head(len(blank) - int(np.argmin(blank[::-1]))) if len(blank) and blank[-1] else frame  # at the end


def _heads(path: Path) -> list[str]:
    """The column names, as they stand in the first line."""
    heads = first_line(path)
    bare = [name.strip() for name in heads]
    if "" in bare:
        raise Problem(f"{path} has no name for column {bare.index('') + 1}; name every column in the first line.")
    if twice := sorted({name for name in bare if bare.count(name) > 1}):
        raise Problem(f"{path} has the column {names(twice)} more than once; give every column a name of its own.")
    return heads


def _fault(path: Path, separator: str) -> str:
    """What is wrong with a CSV file that cannot be read."""
    advice = "correct it, or save the table as CSV in UTF-8 once more"
    width = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.reader(file, delimiter=separator):
                width = width or len(row)
                if len(row) > width:
                    return f"{path} has a row of {len(row)} entries and {width} columns, the row {row}; {advice}."
    except UnicodeDecodeError:
        return f"{path} is not a text file in UTF-8; save the table as CSV in UTF-8, or as Parquet."
    except csv.Error:
        pass
    return f"{path} is not a CSV file: its quotes or its rows do not match; {advice}."


def _tidied(column: pl.Series, text: bool) -> pl.Series:
    """The column as float64, int64, boolean or text where it is one of them, missing values as null."""
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum) or (text and kind != pl.String):
        column = column.cast(pl.String)
    elif kind.is_float():
        return column.cast(pl.Float64).fill_nan(None)
    elif kind.is_numeric():
        return column.cast(pl.Int64 if kind in SMALL_INTEGERS else pl.Float64)
    if column.dtype != pl.String:
        return column
    column = column.str.strip_chars()
    column = column.set(column.is_in(MISSING), None)
    numbers = column.cast(pl.Float64, strict=False)
    return (
        column if text or numbers.null_count() > column.null_count() or column.null_count() == len(column) else numbers
    )


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

    def matrix(self, frame: pl.DataFrame, path: Path) -> tuple[Array, dict[str, int]]:
        """The matrix, and how many values of each column are unknown categories, which are zero in all its columns."""
        if missing := [column.name for column in self.columns if column.name not in frame.columns]:
            raise Problem(f"{path} has no column {names(missing)}, which the model needs; add it.")
        empty = {c.name: n for c in self.columns if (n := frame[c.name].null_count()) and c.fill is None}
        if empty:
            told = names(f"{name} ({count})" for name, count in empty.items())
            raise Problem(f"{path} has missing values: {told}; fill them, or fit with --impute.")
        X, unknown, at = np.zeros((frame.height, len(self.names)), order="F"), {}, 0
        for column in self.columns:
            found = frame[column.name]
            found = found if column.fill is None else found.fill_null(column.fill)
            if column.values is None:
                require_numbers(found, path, "the model was fitted on numbers: correct it")
                X[:, at] = found.cast(pl.Float64).to_numpy()
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
        bad = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
        fault = "text"
    elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
        bad = column.cast(pl.Float64).is_infinite().fill_null(False)
        fault = "an infinite number"
    else:
        raise Problem(f"the column {column.name} of {path} has the type {column.dtype}; {advice}.")
    if bad.any():
        row = int(np.argmax(bad.to_numpy()))
        shown = repr(column[row]) if len(str(column[row])) <= 40 else f"{column[row][:40]!r}..."
        raise Problem(f"the column {column.name} of {path} has {fault}, {shown}, in row {row + 1}; {advice}.")
