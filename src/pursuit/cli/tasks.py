"""The input of `pursuit fit`: a table, its target and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pursuit.cli.errors import UsageError, listed, note

if TYPE_CHECKING:
    import polars as pl

    from pursuit.cli.encoding import Encoding
    from pursuit.cli.tables import Array

SMALLEST = 1e-100
"""The smallest magnitude of a target, so that squares of errors are numbers; its inverse is the largest."""
MAX_CLASSES = 100

Loss = StrEnum("Loss", ["squared", "huber", "poisson", "logistic", "multinomial"])
"""The loss, averaged over the rows."""


@dataclass(frozen=True)
class Task:
    """The table to fit, as arrays, and its loss; `is_text` says whether the target is text in the table."""

    target: str
    is_text: bool
    encoding: Encoding
    X: Array
    y: Array
    loss: Loss
    why: str
    """Why it is this loss."""

    @classmethod
    def read(cls, path: Path, target: str, without: list[str], impute: bool, loss: Loss | None) -> Task:
        """From a file."""
        from pursuit.cli.encoding import Encoding
        from pursuit.cli.tables import pl, read_table

        frame = read_table(path)
        if absent := [name for name in [target, *without] if name not in frame.columns]:
            option = "--target" if absent[0] == target else "--without"
            columns = listed(frame.columns)
            raise UsageError(f"{option} is {absent[0]!r}, and {path} has the columns {columns}; name one of them.")
        if target in without:
            raise UsageError(f"--without names the target, {target!r}; name other columns.")
        frame, y = _rows_with_target(frame, target, path)
        rest = frame.drop(target, *without)
        if not rest.width:
            raise UsageError(f"{path} has no column besides {target}; give columns to predict it from.")
        if len(y) < 2 or (y == y[0]).all():
            raise UsageError(f"the target {target} of {path} has one value, {y[0]}; there is nothing to predict.")
        loss, why = guess(y, target) if loss is None else (loss, "as asked for")
        check_loss(loss, y, f"the target {target} of {path}")
        encoding = Encoding.of(rest, path, impute)
        X, _ = encoding.matrix(rest, path)
        return cls(target, frame[target].dtype == pl.String, encoding, X, y, loss, why)

    @property
    def classes(self) -> bool:
        """Whether the target is a class."""
        return self.loss in (Loss.logistic, Loss.multinomial)

    def read_test(self, path: Path) -> tuple[Array, Array]:
        """The matrix and the target of another table."""
        from pursuit.cli.tables import read_table

        frame = read_table(path, [*self.encoding.texts, *([self.target] if self.is_text else [])])
        if self.target not in frame.columns:
            raise UsageError(f"{path} has no column {self.target}, the target; add it.")
        frame, y = _rows_with_target(frame, self.target, path)
        X, unknown = self.encoding.matrix(frame, path)
        note_unknown(unknown, path)
        where = f"the target {self.target} of {path}"
        if self.y.dtype.kind != "U" and y.dtype.kind == "U":
            raise UsageError(f"{where} has text; give numbers.")
        if self.classes and (new := set(y.tolist()) - set(self.y.tolist())):
            raise UsageError(f"{where} has the new class {listed(sorted(map(str, new)))}; remove its rows.")
        return X, y


def _rows_with_target(frame: pl.DataFrame, target: str, path: Path) -> tuple[pl.DataFrame, Array]:
    """The rows that have a target, which are counted where others have none, and the targets: numbers or texts."""
    from pursuit.cli.encoding import require_numbers
    from pursuit.cli.tables import pl

    missing = frame[target].is_null().to_numpy()
    if missing.all():
        raise UsageError(f"the target {target} of {path} is empty; give a column with values.")
    if missing.any():
        rows = f"{missing.sum()} row(s) without {target}, the first of them row {missing.argmax() + 1}"
        note(f"{path} has {rows}; they are left out.")
    frame = frame.filter(~missing)
    column = frame[target]
    if column.dtype in (pl.String, pl.Boolean):
        return frame, np.array(column.cast(pl.String).to_list())
    require_numbers(column, path, "give numbers or text")
    return frame, column.to_numpy()


def note_unknown(unknown: dict[str, int], path: Path) -> None:
    """Say which columns have categories that the model does not know."""
    if unknown:
        counts = listed(f"{name} ({count})" for name, count in unknown.items())
        note(f"{path} has categories that are new to the model and count as none: {counts}.")


def guess(y: Array, target: str) -> tuple[Loss, str]:
    """The loss that such a target asks for, and why."""
    values = np.unique(y)
    if len(values) == 2:
        return Loss.logistic, f"{target} has the two values {values[0]} and {values[1]}"
    if y.dtype.kind == "U":
        return Loss.multinomial, f"{target} has {len(values)} different texts"
    return Loss.squared, f"{target} has {len(values)} different numbers"


def check_loss(loss: Loss, y: Array, where: str) -> None:
    """Refuse a target that a loss does not fit."""
    count = len(np.unique(y))
    if loss in (Loss.logistic, Loss.multinomial):
        if count > MAX_CLASSES:
            values = f"{count} different values, too many for classes"
            raise UsageError(f"{where} has {values}; give numbers and --loss squared.")
        if (loss is Loss.logistic) != (count == 2):
            other = Loss.logistic if count == 2 else Loss.multinomial
            raise UsageError(f"--loss is {loss}, and {where} has {count} classes; give --loss {other}.")
    elif y.dtype.kind == "U":
        raise UsageError(f"--loss is {loss}, and {where} has text; give numbers, or --loss logistic or multinomial.")
    elif not SMALLEST <= (largest := float(np.abs(y).max())) <= 1 / SMALLEST:
        raise UsageError(f"{where} has values up to {largest:.3g}, whose squares are no numbers; use other units.")
    elif loss is Loss.poisson and (y < 0).any():
        raise UsageError(f"--loss is poisson, and {where} has negative values; give counts, or another loss.")
