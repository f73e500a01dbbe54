"""Tables from CSV and Parquet files, and to them: columns of numbers and texts, with names."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
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
MICROSECONDS = 86_400e6
"""In a day."""
GROUPED, COMMAS = r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$", r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?$"
"""Numbers with separators of thousands, and with decimal commas; a column that may be either has the former."""
DATES = "%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"
"""Forms of dates that can mean only one day."""
SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


def read_table(path: Path, texts: Collection[str] = (), header: bool = True) -> pl.DataFrame:
    """The table of a CSV or Parquet file: columns of float64, int64, booleans or texts, missing values as null.

    The columns `texts` are read as texts, whatever they look like. CSV may be compressed (gzip), in UTF-16 or Latin-1,
    with separators of thousands (12,345.6) or decimal commas (12.345,6); dates become days since 1970. Unless it has
    to have a `header`, it may begin with numbers.
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
    with path.open("rb") as file:
        start = file.read(4)
    if start != b"PAR1":
        raise UsageError(f"{path} is not a Parquet file, whatever its name says; give one, or a CSV file as .csv.")
    try:
        return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError):
        raise UsageError(f"{path} is a damaged Parquet file; write it again.") from None


def _read_csv(path: Path, texts: Collection[str], header: bool) -> pl.DataFrame:
    text = _read_text(path)
    separator = max(SEPARATORS, key=text.partition("\n")[0].count)
    heads = next(csv.reader(io.StringIO(text), delimiter=separator))
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
        raise UsageError(_fault(path, text, separator)) from None
    if header:
        frame.columns = _names(heads, path)
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    return frame.head(len(blank) - int(np.argmin(blank[::-1]))) if len(blank) and blank[-1] else frame  # at the end


def _read_text(path: Path) -> str:
    """The text of a file, which may be compressed, in UTF-8, UTF-16 with its mark, or else Latin-1."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise UsageError(f"{path} is a damaged gzip file; write it again.") from None
    encoding = "utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if "\0" in text:
        raise UsageError(f"{path} is not a text file in UTF-8; save the table as CSV in UTF-8, or as Parquet.")
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")


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


def _fault(path: Path, text: str, separator: str) -> str:
    """The fault of a CSV file that cannot be read."""
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    width = len(next(rows))
    if long := next((row for row in rows if len(row) > width), None):
        fault = f"has {len(long)} entries in line {rows.line_num} and {width} in the first"
    else:
        fault = "is not a CSV file: its quotes or its rows do not match"
    return f"{path} {fault}; correct it, or save the table as CSV in UTF-8 once more."


def _normalise(column: pl.Series, text: bool) -> pl.Series:
    """The column as float64, int64, boolean or text where it is one of them, missing values as null."""
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum) or (text and kind != pl.String):
        column = column.cast(pl.String)
    elif kind in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us")).cast(pl.Int64) / MICROSECONDS
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
    for reading in _readings(column):
        numbers = reading.cast(pl.Float64, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


def _readings(column: pl.Series) -> Iterator[pl.Series]:
    """What texts may mean: numbers in three forms, and dates, in days since 1970; null where they do not."""
    yield column
    yield _where(column, GROUPED, column.str.replace_all(",", ""))
    yield _where(column, COMMAS, column.str.replace_all(".", "", literal=True).str.replace(",", "."))
    for form in DATES:
        yield column.str.replace("T", " ").str.to_datetime(form, strict=False).cast(pl.Int64) / MICROSECONDS


def _where(column: pl.Series, pattern: str, reading: pl.Series) -> pl.Series:
    """The reading of the entries of this form; null elsewhere."""
    return reading.set(~column.str.contains(pattern), None)
