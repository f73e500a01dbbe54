"""What `pursuit fit` tells about a model: weights, scores, the certificate in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pursuit.cli.manners import names
from pursuit.cli.tasks import Loss, Task

if TYPE_CHECKING:
    from rich.table import Table

    from pursuit.cli.tables import Array

MOST_CLASS_COLUMNS = 4
"""Weights of more classes than this do not fit a terminal."""


@dataclass(frozen=True)
class Findings:
    """What there is to tell about a fitted model."""

    task: Task
    model: str
    weights: Array
    """(columns, classes or 1), in the units of the data."""
    effects: Array
    """The same for columns at unit standard deviation."""
    intercept: list[float]
    classes: list[Any]
    scores: dict[str, dict[str, float]]
    gap: float
    """Proved: no model of this kind has a loss that is lower by more than this part of it; infinite: nothing is."""
    dropped: list[str]

    @classmethod
    def of(cls, model: Any, task: Task, tested: tuple[Array, Array] | None) -> Findings:
        """Of this model."""
        weights = np.atleast_2d(model.coef_).T
        scores = {"fit": score(model, task.loss, task.X, task.y)}
        if tested is not None:
            scores["test"] = score(model, task.loss, *tested)
        value, gap = float(model.path_.value[-1]), float(getattr(model, "dual_gap_", math.inf))
        part = math.nextafter(gap / value, math.inf) if gap < value else math.inf if gap else 0.0
        classes = model.classes_.tolist() if task.loss.of_classes else []
        with np.errstate(over="ignore", invalid="ignore"):  # of columns in extreme units
            effects = weights * task.X.std(axis=0)[:, None]
        intercept = np.atleast_1d(model.intercept_).tolist()
        dropped = [task.encoding.names[j] for j in model.dropped_]
        return cls(task, type(model).__name__, weights, effects, intercept, classes, scores, part, dropped)

    @property
    def chosen(self) -> list[int]:
        """The columns with weights, the strongest first."""
        used = np.flatnonzero(self.weights.any(axis=1))
        return [int(j) for j in used[np.argsort(-np.linalg.norm(self.effects[used], axis=1), kind="stable")]]

    @property
    def certificate(self) -> str | None:
        """The proved bound in words; rounded upwards, so that it is still true."""
        from pursuit.report.words import rounded

        if not math.isfinite(self.gap):
            return None
        return f"no model of this kind is better by more than {rounded(100 * self.gap, 2, up=True)} %"

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        task, all_names = self.task, self.task.encoding.names
        several = len(self.intercept) > 1
        per_class = [str(c) for c in self.classes]
        return {
            "model": self.model,
            "target": task.target,
            "loss": {"name": str(task.loss), "because": task.why},
            "rows": len(task.y),
            "columns": len(all_names),
            "classes": self.classes,
            "weights": [
                {
                    "column": all_names[j],
                    "weight": dict(zip(per_class, self.weights[j].tolist(), strict=True))
                    if several
                    else self.weights[j, 0].item(),
                }
                for j in self.chosen
            ],
            "intercept": dict(zip(per_class, self.intercept, strict=True)) if several else self.intercept[0],
            "scores": self.scores,
            "certificate": None if self.certificate is None else {"relative_gap": self.gap, "words": self.certificate},
            "constant_columns": self.dropped,
        }

    def show(self, files: dict[str, Path | None]) -> None:
        """On a terminal."""
        from rich.console import Console
        from rich.markup import escape

        console, task = Console(highlight=False), self.task
        chosen = f"{len(self.chosen)} of {len(task.encoding.names)} columns"
        by = ", chosen by cross-validation" if self.model.endswith("CV") else ""
        console.print(f"[bold]{escape(task.target)}[/] from {chosen}{by}, {len(task.y)} rows")
        console.print(f"loss: {task.loss} ({escape(task.why)})")
        if len(self.classes) == 2:
            console.print(f"weights are for {escape(str(self.classes[1]))}, against {escape(str(self.classes[0]))}")
        for table in (self._weights_table(), self._scores_table()):
            console.print()
            console.print(table)
        console.print()
        if len(self.intercept) > MOST_CLASS_COLUMNS:
            console.print(f"--json has the weights for each of the {len(self.classes)} classes.")
        if self.certificate is not None:
            console.print(f"proved: {self.certificate}.")
        if self.dropped:
            console.print(f"constant, and so left out: {escape(names(self.dropped))}.")
        for what, path in files.items():
            if path is not None:
                console.print(f"wrote {what}: {escape(str(path))}", soft_wrap=True)

    def _weights_table(self) -> Table:
        table, outputs = terminal_table(), len(self.intercept)
        wide = outputs <= MOST_CLASS_COLUMNS
        heads = [str(c) for c in self.classes] if outputs > 1 else ["weight"]
        table.add_column("column")
        for head in [*(heads if wide else []), "weight x std" if outputs == 1 else "norm of weights x std"]:
            table.add_column(escaped(head), justify="right", no_wrap=True)
        for j in self.chosen:
            effect = self.effects[j, 0] if outputs == 1 else np.linalg.norm(self.effects[j])
            shown = [f"{w:.5g}" for w in self.weights[j]] if wide else []
            table.add_row(escaped(self.task.encoding.names[j]), *shown, f"{effect:.3g}")
        if wide:
            table.add_row("intercept", *(f"{c:.5g}" for c in self.intercept), "")
        return table

    def _scores_table(self) -> Table:
        table = terminal_table()
        for head in ("score", *("the data" if part == "fit" else "test" for part in self.scores)):
            table.add_column(head, justify="left" if head == "score" else "right", no_wrap=True)
        for name in self.scores["fit"]:
            table.add_row(name, *(f"{part[name]:.4g}" for part in self.scores.values()))
        return table


def score(model: Any, loss: Loss, X: Array, y: Array) -> dict[str, float]:
    """How good the predictions are, by the measures that belong to a loss."""
    from sklearn import metrics

    with np.errstate(over="ignore"):
        guessed = model.predict(X)
    if not loss.of_classes:
        error = np.abs(guessed - y)
        spread = float(np.sum((y - y.mean()) ** 2))
        found = {"R2": 1.0 - float(np.sum(error**2)) / spread if spread else math.nan}
        if loss is Loss.poisson:
            found = {"deviance explained": float(metrics.d2_tweedie_score(y, guessed, power=1)) if spread else math.nan}
        return found | {"root mean square error": float(np.sqrt(np.mean(error**2))), "mean error": float(error.mean())}
    chances = model.predict_proba(X)
    at = np.searchsorted(model.classes_, y)
    found = {
        "accuracy": float(np.mean(guessed == y)),
        "log loss": float(-model.predict_log_proba(X)[np.arange(len(y)), at].mean()),
    }
    if len(model.classes_) == 2 and 0 < at.sum() < len(at):
        found["area under ROC"] = float(metrics.roc_auc_score(at, chances[:, 1]))
    return found


def escaped(text: str) -> str:
    """Text that rich prints as it is."""
    from rich.markup import escape

    return escape(text)


def terminal_table() -> Table:
    """A table without frames."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False)
