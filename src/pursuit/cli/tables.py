"""Tables from CSV and Parquet files, and to them: columns of numbers and texts, with names."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import zlib
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from pursuit.cli.errors import UsageError, check_file, listed
from pursuit.files import replacing

try:
    import polars as pl
except ImportError as missing:
    raise ImportError("reading tables needs polars; pip install polars.") from missing

__all__ = ["Array", "pl", "read_table", "write_table"]

Array = np.ndarray[Any, np.dtype[Any]]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None")
"""Entries that stand for a missing value."""
PARQUET = (".parquet", ".pq")
SEPARATORS = ",;\t|"
DATES = "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"
DAY = 86_400e6
"""In microseconds."""
SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


def read_table(path: Path, texts: Collection[str] = (), header: bool = True) -> pl.DataFrame:
    """The table of a CSV or Parquet file: columns of float64, int64, booleans or texts, missing values as null.

    The columns `texts` are read as texts, whatever they look like. CSV may be compressed (gzip); dates (2026-01-31,
    with a time or without) become days since 1970. Unless it has to have a `header`, it may begin with numbers.
    """
    check_file(path, "give a CSV or Parquet file")
    frame = _read_parquet(path) if path.suffix in PARQUET else _read_csv(path, texts, header)
    frame = frame.with_columns(_normalise(column, column.name in texts) for column in frame)
    if not frame.height:
        raise UsageError(f"{path} has no rows; give at least one below the column names.")
    return frame


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as Parquet or CSV, according to the name of the file."""
    with replacing(path) as new:
        (frame.write_parquet if path.suffix in PARQUET else frame.write_csv)(new)


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError):
        raise UsageError(f"{path} is not a Parquet file, or a damaged one; write it again, or CSV as .csv.") from None


def _read_csv(path: Path, texts: Collection[str], header: bool) -> pl.DataFrame:
    text = _read_text(path)
    first = text.partition("\n")[0]
    separator = max(SEPARATORS, key=first.count)
    heads = next(csv.reader([first], delimiter=separator))
    header = header or not all(map(_is_number, heads))
    try:
        frame = pl.read_csv(
            text.encode(),
            separator=separator,
            has_header=header,
            null_values=list(MISSING),
            schema_overrides={head: pl.String for head in heads if head.strip() in texts},
            infer_schema_length=None,  # the types of all rows, not of the first
        )
    except pl.exceptions.PolarsError:
        fault = "its quotes do not match, or a row is longer than the first"
        raise UsageError(f"{path} is not a CSV file: {fault}; correct it, or save the table once more.") from None
    if header:
        frame.columns = _names(heads, path)
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    return frame.head(len(blank) - int(np.argmin(blank[::-1]))) if len(blank) and blank[-1] else frame  # at the end


def _read_text(path: Path) -> str:
    """The text of a file in UTF-8, which may be compressed."""
    content = path.read_bytes()
    try:
        text = (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error):
        raise UsageError(f"{path} is a damaged gzip file; write it again.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8; save the table as CSV in UTF-8, or as Parquet.") from None
    return text.replace("\r\n", "\n").lstrip("\n")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _names(heads: list[str], path: Path) -> list[str]:
    """The column names without the spaces around them."""
    names = [head.strip() for head in heads]
    if "" in names:
        raise UsageError(f"{path} has no name for column {names.index('') + 1}; name every column in the first line.")
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise UsageError(f"{path} has the column {listed(twice)} more than once; give every column another name.")
    return names


def _normalise(column: pl.Series, text: bool) -> pl.Series:
    """The column as float64, int64, boolean or text where it is one of them, missing values as null."""
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum) or (text and kind != pl.String):
        column = column.cast(pl.String)
    elif kind in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us")).cast(pl.Int64) / DAY
    elif kind.is_float():
        return column.cast(pl.Float64).fill_nan(None)
    elif kind.is_numeric():
        return column.cast(pl.Int64 if kind in SMALL_INTEGERS else pl.Float64)
    if column.dtype != pl.String:
        return column
    column = column.str.strip_chars()
    column = column.set(column.is_in(MISSING), None)
    if text or column.null_count() == len(column):
        return column
    spaced = column.str.replace("T", " ")
    dates = (spaced.str.to_datetime(form, strict=False).cast(pl.Int64) / DAY for form in DATES)
    readings = itertools.chain([column.cast(pl.Float64, strict=False)], dates)
    return next((numbers for numbers in readings if numbers.null_count() == column.null_count()), column)
