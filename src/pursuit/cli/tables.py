"""Tables from CSV and Parquet files, and to them: columns of numbers and texts, with names."""

from __future__ import annotations

import codecs
import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pursuit.cli.errors import UsageError, check_file, listed
from pursuit.files import replacing

try:
    import polars as pl
except ImportError as missing:
    raise ImportError("reading tables needs polars; pip install polars.") from missing

__all__ = ["MISSING", "PARQUET", "Array", "first_line", "pl", "read_table", "write_table"]

Array = np.ndarray[Any, np.dtype[Any]]

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None")
"""Entries that stand for a missing value."""
PARQUET = (".parquet", ".pq")
LONGEST_LINE = 1 << 22
SEPARATORS = ",;\t|"
CHUNK = 1 << 20
MICROSECONDS = 86_400e6
"""In a day."""
GROUPED, COMMAS = r"^[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?$", r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?$"
"""Numbers with separators of thousands, and with decimal commas; a column that may be either has the former."""
DATE = r"^\d{4}-\d\d-\d\d$"
SMALL_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


def read_table(path: Path, texts: Collection[str] = (), header: bool = True) -> pl.DataFrame:
    """The table of a CSV or Parquet file. Columns are numbers (float64 or int64), booleans or texts, and missing values
    are null; the columns `texts` are read as texts, whatever they look like. Numbers may have separators of thousands
    (12,345.6) or decimal commas (12.345,6), dates are days since 1970; CSV may be compressed (gzip), in UTF-16 or in
    Latin-1."""
    check_file(path, "give a CSV or Parquet file")
    if path.suffix in PARQUET:
        frame = _read_parquet(path)
    else:
        with _in_utf8(path) as plain:
            frame = _read_csv(plain, set(texts), header)
    frame = frame.with_columns(_normalise(column, column.name in texts) for column in frame)
    if not frame.height:
        raise UsageError(f"{path} has no rows; give at least one below the column names.")
    return frame


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as Parquet or CSV, according to the name of the file."""
    with replacing(path) as new:
        (frame.write_parquet if path.suffix in PARQUET else frame.write_csv)(new)


def first_line(path: Path) -> list[str]:
    """The entries of the first line of a CSV file."""
    with _in_utf8(path) as plain:
        return _first_line(plain)


def _first_line(path: Path) -> list[str]:
    separator = _separator(path)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return next(csv.reader(file, delimiter=separator))


@contextmanager
def _in_utf8(path: Path) -> Iterator[Path]:
    """The file itself or, where it is compressed or in another encoding, a copy in UTF-8, whose name is in no error."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    read: Any = gzip.open if packed else open
    try:
        encoding = _encoding(read, path)
    except (OSError, EOFError, zlib.error):
        raise UsageError(f"{path} is a damaged gzip file; write it again.") from None
    if encoding is None or (encoding == "utf-8" and not packed):
        yield path
        return
    with TemporaryDirectory() as folder:
        plain = Path(folder, "table.csv")
        with (
            read(path, "rt", encoding=encoding, newline="") as source,
            plain.open("w", encoding="utf-8", newline="") as to,
        ):
            while chunk := source.read(CHUNK):
                to.write(chunk)
        try:
            yield plain
        except UsageError as error:
            raise UsageError(str(error).replace(str(plain), str(path))) from None


def _encoding(read: Any, path: Path) -> str | None:
    """UTF-8, UTF-16 with its mark at the beginning, or else Latin-1; None for bytes that are no text."""
    decoder, is_utf8, is_binary = codecs.getincrementaldecoder("utf-8")(), True, False
    with read(path, "rb") as file:
        first = chunk = file.read(CHUNK)
        while chunk:
            is_binary |= b"\0" in chunk
            try:
                decoder.decode(chunk if is_utf8 else b"")
            except UnicodeDecodeError:
                is_utf8 = False
            chunk = file.read(CHUNK)
    if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    return "utf-8" if is_utf8 else None if is_binary else "latin-1"


def _read_parquet(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        start = file.read(4)
    if start != b"PAR1":
        raise UsageError(f"{path} is not a Parquet file, whatever its name says; give one, or a CSV file as .csv.")
    try:
        return pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError):
        raise UsageError(f"{path} is a damaged Parquet file; write it again.") from None


def _separator(path: Path) -> str:
    """The character between entries, after a look at the first line."""
    with path.open("rb") as file:
        first, more = file.readline(LONGEST_LINE), file.read(4096)
    line = first.decode("utf-8-sig", errors="replace").splitlines()[0]
    if b"\0" in first + more or "\ufffd" in line:
        raise UsageError(f"{path} is not a text file in UTF-8; save the table as CSV in UTF-8, or as Parquet.")
    if b"\r" in first.rstrip(b"\r\n"):
        raise UsageError(f"{path} has the line ends of old Macs (CR); save the table as CSV once more.")
    return max(SEPARATORS, key=line.count)


def _read_csv(path: Path, texts: set[str], header: bool) -> pl.DataFrame:
    separator = _separator(path)
    heads = _heads(path) if header else []
    try:
        frame = pl.read_csv(
            path,
            separator=separator,
            has_header=header,
            null_values=list(MISSING),
            schema_overrides={head: pl.String for head in heads if head.strip() in texts},
            infer_schema_length=None,  # the types of all rows, not of the first
            glob=False,
        )
    except pl.exceptions.PolarsError:
        raise UsageError(_fault(path, separator)) from None
    frame.columns = [head.strip() for head in heads] or frame.columns
    blank = frame.select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    return frame.head(len(blank) - int(np.argmin(blank[::-1]))) if len(blank) and blank[-1] else frame  # at the end


def _heads(path: Path) -> list[str]:
    """The column names, as they stand in the first line."""
    heads = _first_line(path)
    bare = [name.strip() for name in heads]
    if "" in bare:
        raise UsageError(f"{path} has no name for column {bare.index('') + 1}; name every column in the first line.")
    if twice := [name for name, times in Counter(bare).items() if times > 1]:
        raise UsageError(f"{path} has the column {listed(twice)} more than once; give every column another name.")
    return heads


def _fault(path: Path, separator: str) -> str:
    """The fault of a CSV file that cannot be read."""
    advice = "correct it, or save the table as CSV in UTF-8 once more"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=separator)
            width = len(next(rows))
            if long := next((row for row in rows if len(row) > width), None):
                return f"{path} has {len(long)} entries in line {rows.line_num} and {width} in the first; {advice}."
    except UnicodeDecodeError:
        return f"{path} is not a text file in UTF-8; save the table as CSV in UTF-8, or as Parquet."
    except csv.Error:
        pass
    return f"{path} is not a CSV file: its quotes or its rows do not match; {advice}."


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
    undotted = column.str.replace_all(".", "", literal=True)
    for reading in (
        column,
        _where(column, GROUPED, column.str.replace_all(",", "")),
        _where(column, COMMAS, undotted.str.replace(",", ".")),
        _where(column, DATE, column).str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32),
    ):
        numbers = reading.cast(pl.Float64, strict=False)
        if numbers.null_count() == column.null_count():
            return numbers
    return column


def _where(column: pl.Series, pattern: str, reading: pl.Series) -> pl.Series:
    """The reading of the entries of this form; null elsewhere."""
    return reading.set(~column.str.contains(pattern), None)
