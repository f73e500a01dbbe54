"""What `pursuit fit` is given: a table, its target and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pursuit.cli.manners import Problem, names, note

if TYPE_CHECKING:
    import polars as pl

    from pursuit.cli.encoding import Encoding
    from pursuit.cli.tables import Array


SMALLEST = 1e-100
"""Of the largest value of a target, so that squares of errors are numbers; its inverse is the largest."""


class Loss(StrEnum):
    """What is minimised, on average over the rows."""

    squared = "squared"
    huber = "huber"
    poisson = "poisson"
    logistic = "logistic"
    multinomial = "multinomial"

    @property
    def of_classes(self) -> bool:
        """Whether the target is a class."""
        return self in (Loss.logistic, Loss.multinomial)


@dataclass(frozen=True)
class Task:
    """The table to fit, as arrays, and its loss."""

    target: str
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
        from pursuit.cli.tables import read_table

        frame = read_table(path)
        if absent := [name for name in [target, *without] if name not in frame.columns]:
            option = "--target" if absent[0] == target else "--without"
            raise Problem(
                f"{option} is {absent[0]!r}, and {path} has the columns {names(frame.columns)}; name one of them."
            )
        if target in without:
            raise Problem(f"--without names the target, {target!r}; name other columns.")
        rest = frame.drop(target, *without)
        if not rest.width:
            raise Problem(f"{path} has no column besides {target}; give columns to predict it from.")
        y = labels(frame[target], path)
        if len(y) < 2 or (y == y[0]).all():
            raise Problem(f"the target {target} of {path} has one value, {y[0]}; there is nothing to predict.")
        loss, why = guess(y, target) if loss is None else (loss, "as asked for")
        check_loss(loss, y, target, path)
        encoding = Encoding.of(rest, path, impute)
        return cls(target, encoding, encoding.matrix(rest, path)[0], y, loss, why)

    def other(self, path: Path) -> tuple[Array, Array]:
        """The matrix and the target of another table."""
        from pursuit.cli.tables import read_table

        text = self.y.dtype.kind == "U"
        frame = read_table(path, [*self.encoding.texts, *([self.target] if text else [])])
        if self.target not in frame.columns:
            raise Problem(f"{path} has no column {self.target}, the target; add it.")
        X, unknown = self.encoding.matrix(frame, path)
        note_unknown(unknown, path)
        y = labels(frame[self.target], path)
        if not text and y.dtype.kind == "U":
            raise Problem(f"the target {self.target} of {path} has text; give numbers.")
        if self.loss.of_classes and (new := sorted(set(y.tolist()) - set(self.y.tolist()))):
            raise Problem(
                f"the target {self.target} of {path} has the new class {names(map(str, new))}; remove its rows."
            )
        return X, y


def note_unknown(unknown: dict[str, int], path: Path) -> None:
    """Say which columns have categories that the model does not know."""
    if unknown:
        told = names(f"{name} ({count})" for name, count in unknown.items())
        note(f"{path} has categories that are new to the model and count as none: {told}.")


def labels(column: pl.Series, path: Path) -> Array:
    """The target as an array of numbers or texts."""
    import polars as pl

    if column.null_count():
        row = int(column.is_null().to_numpy().argmax()) + 1
        raise Problem(
            f"the target {column.name} of {path} has {column.null_count()} missing values, the first in row {row}; "
            "remove those rows."
        )
    if column.dtype in (pl.String, pl.Boolean):
        return np.array(column.cast(pl.String).to_list())
    from pursuit.cli.encoding import require_numbers

    require_numbers(column, path, "give numbers or text")
    return np.asarray(column.to_numpy())


def guess(y: Array, target: str) -> tuple[Loss, str]:
    """The loss that such a target asks for, and why."""
    found = np.unique(y)
    if len(found) == 2:
        return Loss.logistic, f"{target} has the two values {found[0]} and {found[1]}"
    if y.dtype.kind == "U":
        return Loss.multinomial, f"{target} has {len(found)} different texts"
    return Loss.squared, f"{target} has {len(found)} different numbers"


def check_loss(loss: Loss, y: Array, target: str, path: Path) -> None:
    """Refuse a target that a loss does not fit."""
    from pursuit.cli.encoding import MOST_CATEGORIES

    classes, where = len(np.unique(y)), f"the target {target} of {path}"
    if loss.of_classes:
        if classes > MOST_CATEGORIES:
            raise Problem(
                f"{where} has {classes} different values, too many for classes; give numbers and --loss squared."
            )
        if (loss is Loss.logistic) != (classes == 2):
            other = Loss.logistic if classes == 2 else Loss.multinomial
            raise Problem(f"--loss is {loss}, and {where} has {classes} classes; give --loss {other}.")
    elif y.dtype.kind == "U":
        raise Problem(f"--loss is {loss}, and {where} has text; give numbers, or --loss logistic or multinomial.")
    elif not SMALLEST <= (largest := float(np.abs(y).max())) <= 1 / SMALLEST:
        raise Problem(f"{where} has values up to {largest:.3g}, whose squares are no numbers; use other units.")
    elif loss is Loss.poisson and (y < 0).any():
        raise Problem(f"--loss is poisson, and {where} has negative values; give counts, or another loss.")
