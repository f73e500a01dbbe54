"""The summary of a model by `pursuit fit`: weights, scores, the certificate in words."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pursuit.cli.errors import listed, terminal_table
from pursuit.cli.tasks import Task
from pursuit.report.scores import HeldOut, model_scores
from pursuit.report.text import certificate, proved_bound

if TYPE_CHECKING:
    from rich.table import Table

    from pursuit.cli.tables import Array

MAX_CLASS_COLUMNS = 4
"""Weights of more classes than this do not fit a terminal."""


class FitSummary:
    """A fitted model, as the user reads it.

    `weights` (columns, classes or 1) are in the units of the data, `effects` for columns at unit standard deviation;
    `chosen` are the columns with weights, the strongest first; `scores` are by data, "fit" or "test".
    """

    def __init__(self, model: Any, task: Task, test: tuple[Array, Array] | None) -> None:
        self.model, self.task, self.names = model, task, task.encoding.names
        self.weights = np.atleast_2d(model.coef_).T
        with np.errstate(over="ignore", invalid="ignore"):  # columns in extreme units
            self.effects = np.linalg.norm(self.weights, axis=1) * task.X.std(axis=0)
        used = np.flatnonzero(self.weights.any(axis=1))
        self.chosen: list[int] = used[np.argsort(-self.effects[used], kind="stable")].tolist()
        self.intercept: list[float] = np.atleast_1d(model.intercept_).tolist()
        self.classes: list[Any] = model.classes_.tolist() if task.classes else []
        sets = {"fit": (task.X, task.y)} | ({} if test is None else {"test": test})
        self.scores = {name: model_scores(model, X, y) for name, (X, y) in sets.items()}
        self.dropped = [self.names[j] for j in model.dropped_]
        held_out = HeldOut.of(model)
        self.cross_validation = None if held_out is None else held_out.plain

    @property
    def certificate(self) -> dict[str, Any] | None:
        """The proved gap, relative to the objective, and in words; None where nothing is proved."""
        value, gap = float(self.model.path_.value[-1]), float(getattr(self.model, "dual_gap_", math.inf))
        infimum = -math.inf if self.model.loss == "poisson" else 0.0
        if proved_bound(value, gap, infimum) is None:
            return None
        words = certificate(value, gap, infimum, "model of this kind").replace("\u00a0", " ")
        return {"relative_gap": math.nextafter(gap / value, math.inf) if gap < value else None, "words": words}

    def plain(self) -> dict[str, Any]:
        """For JSON."""

        def by_class(numbers: list[float]) -> Any:
            return dict(zip(map(str, self.classes), numbers, strict=True)) if len(numbers) > 1 else numbers[0]

        return {
            "model": type(self.model).__name__,
            "target": self.task.target,
            "loss": {"name": str(self.task.loss), "because": self.task.why},
            "rows": len(self.task.y),
            "columns": len(self.names),
            "classes": self.classes,
            "weights": [{"column": self.names[j], "weight": by_class(self.weights[j].tolist())} for j in self.chosen],
            "intercept": by_class(self.intercept),
            "scores": self.scores,
            "cross_validation": self.cross_validation,
            "certificate": self.certificate,
            "constant_columns": self.dropped,
        }

    def show(self, files: dict[str, Path | None]) -> None:
        """On a terminal."""
        from rich.console import Console

        console, task, cv = Console(highlight=False, markup=False), self.task, self.cross_validation
        by = ", chosen by cross-validation" if cv else ""
        columns = f"{len(self.chosen)} of {len(self.names)} columns"
        console.print(f"{task.target} from {columns}{by}, {len(task.y)} rows", style="bold")
        console.print(f"loss: {task.loss} ({task.why})")
        if len(self.classes) == 2:
            console.print(f"weights are for {self.classes[1]}, against {self.classes[0]}")
        console.print("", self._weights_table(), "", self._scores_table(), "", sep="\n")
        if cv:
            number = f"{cv['loss']:.4g} ± {cv['standard_error']:.2g}"
            console.print(f"cross-validated loss: {number} ({cv['of']}, {cv['folds']} folds)")
        if len(self.intercept) > MAX_CLASS_COLUMNS:
            console.print(f"--json has the weights for each of the {len(self.classes)} classes.")
        if self.certificate is not None:
            console.print(f"proved: {self.certificate['words']}")
        if self.dropped:
            console.print(f"constant, and so left out: {listed(self.dropped)}.")
        for what, path in files.items():
            if path is not None:
                console.print(f"wrote {what}: {path}", soft_wrap=True)

    def _weights_table(self) -> Table:
        """A row for each column; of many classes only the norms of the weights."""
        outputs = len(self.intercept)
        wide = outputs <= MAX_CLASS_COLUMNS
        heads = [str(c) for c in self.classes] if outputs > 1 else ["weight"]
        effect = "weight x std" if outputs == 1 else "norm of weights x std"
        table = terminal_table(("column", "wrap"), *((head, "right") for head in [*(heads if wide else []), effect]))
        for j in self.chosen:
            size = self.effects[j] * (np.sign(self.weights[j, 0]) if outputs == 1 else 1)
            table.add_row(self.names[j], *(f"{w:.5g}" for w in self.weights[j] if wide), f"{size:.3g}")
        if wide:
            table.add_row("intercept", *(f"{c:.5g}" for c in self.intercept), "")
        return table

    def _scores_table(self) -> Table:
        sets = ("the data" if name == "fit" else name for name in self.scores)
        table = terminal_table(("score", "left"), *((name, "right") for name in sets))
        for name in self.scores["fit"]:
            table.add_row(name, *(f"{scores[name]:.4g}" for scores in self.scores.values()))
        return table
