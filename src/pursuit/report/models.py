"""The report of a fitted sparse linear model: certificate, scores, features, path and fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from pursuit.arguments import as_list, describe
from pursuit.arrays import Small
from pursuit.plots import plot_path
from pursuit.report import fits, words
from pursuit.report.figures import BLUE, GREY, RED, Panel
from pursuit.report.page import Cell, Figure, Section, Table, Tile, page
from pursuit.report.results import MAX_ROWS, bar_table, fact_table
from pursuit.report.words import shown

MAX_COLUMNS = 6
"""Coefficients of more outputs or classes than this are shown by their norm."""

MAX_OUTPUTS = 3
"""How many outputs of a regression are drawn."""

LOSSES = {
    "squared_error": "half the mean squared error",
    "huber": "the mean of Huber's loss",
    "poisson": "the mean Poisson loss",
    "log_loss": "the mean log loss",
}

BALLS = {
    "l1": "the sum of absolute coefficients",
    "group": "the sum of the norms of groups of coefficients, each times the square root of its number of features",
    "ksupport": "the k-support norm of the coefficients",
    "l2": "the Euclidean norm of the coefficients",
    "nuclear": "the nuclear norm of the coefficients",
}


class ModelReport:
    """A model, and the data that its report is about."""

    def __init__(self, model: Any, sets: dict[str, tuple[Any, Any]], names: Sequence[str]) -> None:
        self.model, self.sets, self.names = model, sets, names
        self.coef: Small = np.atleast_2d(model.coef_)
        self.used = np.flatnonzero(self.coef.any(axis=0))
        self.classes = getattr(model, "classes_", None)
        self.greedy = not hasattr(model, "ball")
        self.path: Any = getattr(model, "path_", None)  # models that were loaded have none
        self.X = sets["training"][0]

    @property
    def row(self) -> int:
        """The place of the model on its path."""
        return int(self.path.at(getattr(self.model, "n_nonzero_", getattr(self.model, "radius_", math.inf))))

    def page(self, title: str | None) -> str:
        """The report."""
        kind = "classifies samples" if self.classes is not None else "predicts numbers"
        count, p = len(self.used), self.coef.shape[1]
        lead = f"A linear model that {kind} by {count:,} of {p:,} features, fitted to {self.X.shape[0]:,} samples"
        lead += f" and tested on {self.sets['test'][0].shape[0]:,} others." if "test" in self.sets else "."
        title = f"{type(self.model).__name__}: {count:,} of {p:,} features" if title is None else title
        sections = [self._scores(), self._certificate(), self._features(), self._fit(), *self._along_path()]
        return page(title, lead, [*sections, self._facts()], words.footer(), list(self._tiles()))

    # ------------------------------------------------------------------ scores

    def _measures(self, X: Any, y: Any) -> Iterator[tuple[str, float]]:
        """The names and values of scores, the most important first."""
        if self.classes is None:
            residuals = y - self.model.predict(X)
            yield "R²", float(self.model.score(X, y)) if len(y) > 1 else math.nan
            yield "Root mean squared error", float(np.sqrt(np.mean(residuals**2)))
            yield "Mean absolute error", float(np.mean(np.abs(residuals)))
            return
        yield "Accuracy", float(self.model.score(X, y))
        if len(self.classes) == 2:
            yield "AUC", fits.auc(y == self.classes[1], self.model.decision_function(X))
        logs = self.model.predict_log_proba(X)
        known = np.isin(y, self.classes)
        place = np.searchsorted(self.classes[:-1], y)
        yield "Log loss", float(np.mean(np.where(known, -logs[np.arange(len(y)), place], math.inf)))
        yield "Share of the most frequent class", float(np.unique(y, return_counts=True)[1].max() / len(y))

    def _tiles(self) -> Iterator[Tile]:
        yield Tile(f"{len(self.used):,}", f"features of {self.coef.shape[1]:,}")
        for name, (X, y) in reversed(self.sets.items()):
            measure, value = next(self._measures(X, y))
            yield Tile(_score(value, 4), f"{measure}, {name}")
        if self._bound is not None and not self.greedy:
            yield Tile(f"≤ {self._bound}", "above the best model of this kind, proved")

    @property
    def _bound(self) -> str | None:
        """What is proved; a greedy model without features was compared with other constants only, which says little."""
        if self.path is None or (self.greedy and self.path.level[self.row] == 0):
            return None
        return words.proved(*self._numbers)

    @property
    def _loss(self) -> str:
        several = self.classes is None and len(self.coef) > 1
        return LOSSES[self.model.loss] + (", summed over the outputs" if several else "")

    @property
    def _numbers(self) -> tuple[float, float, float]:
        """The objective, its gap, and a bound on the objective that holds for all models."""
        infimum = -math.inf if self.model.loss == "poisson" else 0.0
        return float(self.path.value[self.row]), float(self.path.gap[self.row]), infimum

    def _scores(self) -> Section:
        found = {name: dict(self._measures(X, y)) for name, (X, y) in self.sets.items()}
        rows = [
            [Cell(measure), *(Cell(_score(found[name][measure]), "number") for name in found)]
            for measure in found["training"]
        ]
        heads = ["Score", *(f"{name.capitalize()}, {self.sets[name][0].shape[0]:,} samples" for name in found)]
        text = "" if "test" in self.sets else "The model has seen these samples: expect less on new ones."
        return Section("Scores", [text] if text else [], Table(heads, rows, narrow=True))

    # ------------------------------------------------------------------ features

    def _features(self) -> Section:
        effect = self.coef * _deviations(self.X)
        sizes = np.linalg.norm(effect, axis=0)
        order = self.used[np.argsort(-sizes[self.used], kind="stable")]
        shown_ones, left = order[:MAX_ROWS], len(order) - MAX_ROWS
        note = f"{left:,} more features have smaller effects." if left > 0 else ""
        dropped = [str(name) for name in np.asarray(self.names)[self._constant()]]
        if dropped:
            some = ", ".join(dropped[:8]) + (f" and {len(dropped) - 8:,} more" if len(dropped) > 8 else "")
            note += f" Constant features were left out: {escape(some)}."
        if not len(order):
            return Section("Features", ["The model uses no feature."], note=note)
        names = [escape(str(self.names[j])) for j in shown_ones]
        text = (
            "The effect is the coefficient times the standard deviation of the feature, which makes units comparable."
        )
        if len(self.coef) == 1:
            text += " Blue is positive, orange negative."
            rows: list[tuple[str, Sequence[str], float]] = [
                (name, (shown(float(self.coef[0, j]), 5), shown(float(effect[0, j]), 4)), float(effect[0, j]))
                for name, j in zip(names, shown_ones, strict=True)
            ]
            table = bar_table(["Feature", "Coefficient", "Effect"], rows)
            return Section("Features", [text], table, note=f"{self._intercept()} {note}")
        if len(self.coef) > MAX_COLUMNS:
            text = f"Coefficients of {len(self.coef)} {self._what}: the norm of a feature's effects. {text}"
            rows = [
                (name, (shown(float(sizes[j]), 4),), float(sizes[j])) for name, j in zip(names, shown_ones, strict=True)
            ]
            return Section("Features", [text], bar_table(["Feature", "Norm of effects"], rows), note=note)
        top = float(np.abs(effect).max()) or 1.0
        cells = [
            [Cell(name), *(_shaded(float(effect[k, j]), top) for k in range(len(self.coef)))]
            for name, j in zip(names, shown_ones, strict=True)
        ]
        heads = ["Effect on", *self._outputs()]
        return Section("Features", [text], Table(heads, cells, narrow=len(self.coef) <= 3), note=note)

    @property
    def _what(self) -> str:
        return "outputs" if self.classes is None else "classes"

    def _outputs(self) -> list[str]:
        if self.classes is not None:
            return [str(label) for label in self.classes]
        return [f"output {k}" for k in range(len(self.coef))]

    def _constant(self) -> Any:
        dropped = getattr(self.path, "dropped", None)
        return np.zeros(0, dtype=np.intp) if dropped is None else dropped

    def _intercept(self) -> str:
        value = float(np.ravel(self.model.intercept_)[0])
        return f"The intercept is {shown(value)}." if self.model.fit_intercept else "There is no intercept."

    # ------------------------------------------------------------------ path

    def _along_path(self) -> Iterator[Section]:
        figures = [*self._losses(), *self._lines()]
        if figures:
            level = "number of features" if self.greedy else "radius"
            text = f"Each {level} was tried on {self._folds} folds of the data."
            yield Section("The path", [text] if self._folds else [], figures=figures)

    @property
    def _folds(self) -> int:
        losses = getattr(self.model, "cv_losses_", None)
        return 0 if losses is None else int(losses.shape[2])

    def _losses(self) -> Iterator[Figure]:
        """The held-out loss of every level, and the loss in training."""
        kind = "features" if self.greedy else "radius"
        if self._folds:
            losses, levels = self.model.cv_losses_, np.asarray(self.model.levels_, dtype=float)
            best = float(self.model.n_nonzero_ if self.greedy else self.model.radius_)
            panel = Panel("held-out", "Held-out loss", xlabel=kind, ylabel="mean loss")
            ridges = [float(l2) for l2 in as_list(self.model.l2)] if self.greedy else [0.0]
            for i, l2 in enumerate(ridges):
                mean, error = losses[i].mean(axis=1), losses[i].std(axis=1) / math.sqrt(self._folds)
                chosen = not self.greedy or l2 == self.model.l2_
                label = f"ridge {l2:g}" if len(ridges) > 1 else "mean of the folds"
                panel.ax.plot(
                    levels, mean, color=BLUE if chosen else GREY, label=label, marker="." if len(levels) < 40 else None
                )
                if chosen:
                    panel.ax.fill_between(levels, mean - error, mean + error, color=BLUE, alpha=0.18, lw=0)
                    at = int(np.argmin(np.abs(levels - best)))
                    panel.ax.plot(levels[at], mean[at], "o", color=RED, markersize=9, fillstyle="none", label="chosen")
            if not self.greedy:
                panel.ax.set_xscale("log")  # which leaves radius 0 out
            yield panel.done("The band is one standard error to each side.")
        if self.path is not None and len(self.path) > 2:
            panel = Panel("training", "Objective in training", xlabel=kind, ylabel="objective")
            panel.ax.plot(self.path.level, self.path.value, color=BLUE, marker="." if len(self.path) < 40 else None)
            panel.ax.plot(
                self.path.level[self.row], self.path.value[self.row], "o", color=RED, markersize=9, fillstyle="none"
            )
            yield panel.done("On all training samples. The circle is the model of this report.")

    def _lines(self) -> Iterator[Figure]:
        if self.path is not None and len(self.path) > 2:
            panel = Panel("effects", "Effects")
            scaled = replace(self.path, coef=self.path.coef * _deviations(self.X))
            plot_path(scaled, names=self.names, labels=6, ax=panel.ax)
            norm = "norm of the effects" if len(self.coef) > 1 else "effect"
            panel.ax.set(xlabel="features" if self.greedy else "radius", ylabel=norm)
            yield panel.done("The six largest at the end of the path are named.", legend_below=True)

    # ------------------------------------------------------------------ fit

    def _fit(self) -> Section:
        model = self.model
        if self.classes is None:
            data = {
                name: (y.reshape(len(y), -1), model.predict(X).reshape(len(y), -1))
                for name, (X, y) in self.sets.items()
            }
            outputs = data["training"][0].shape[1]
            figures = []
            for k in range(min(outputs, MAX_OUTPUTS)):
                column = {name: (y[:, k], predicted[:, k]) for name, (y, predicted) in data.items()}
                title = f"output {k}" if outputs > 1 else ""
                figures += fits.regression(column, f"output-{k}-" if outputs > 1 else "", title)
            text = f"The first {MAX_OUTPUTS} of {outputs} outputs." if outputs > MAX_OUTPUTS else ""
            return Section("Fit", [text] if text else [], figures=figures)
        if len(self.classes) == 2:
            data = {name: (y, model.predict_proba(X)[:, 1]) for name, (X, y) in self.sets.items()}
            return Section("Fit", figures=fits.binary(data, self.classes))
        tables = {name: fits.confusion(y, model.predict(X), self.classes) for name, (X, y) in self.sets.items()}
        figures = [fits.confusion_figure(name, counts, self.classes) for name, counts in tables.items()]
        return Section("Fit", figures=figures)

    # ------------------------------------------------------------------ certificate and facts

    def _certificate(self) -> Section:
        if self.path is None:
            return Section(
                "How good it is", ["This model was loaded from a file, which does not keep its certificate."]
            )
        if not self.greedy:
            text = words.certificate(*self._numbers, "model of this kind")
            return Section("How good it is", [f"<b>{escape(text)}</b>", escape(self._kind())])
        texts = [
            "The features were chosen one after another, each time the one along which the objective falls fastest, "
            "and all coefficients were fitted anew. <b>Nothing is proved about other choices of as many features.</b>"
        ]
        if self._bound is not None:
            signs = " with coefficients of at least 0" if self.model.positive else ""
            subject = f"linear model of these {self.coef.shape[1]:,} features{signs}, however many it uses,"
            texts.append(escape(words.certificate(*self._numbers, subject)))
        return Section("How good it is", texts)

    def _kind(self) -> str:
        """The objective, and the models with which the certificate compares."""
        loss = f"The objective is {self._loss}, in training"
        norm = f"{BALLS[self.model.ball]}, for features at unit scale"
        if getattr(self.model, "penalty", None) is not None:
            price = shown(self.model.penalty)
            return f"{loss}, plus {price} times {norm}. Models of this kind are all linear ones of these features."
        radius = shown(float(self.path.level[self.row]))
        return f"{loss}. Models of this kind are linear, and {norm}, is at most {radius}."

    def _facts(self) -> Section:
        model = self.model
        facts = [("Model", type(model).__name__), ("Objective", self._loss)]
        if self.greedy:
            l2 = getattr(model, "l2_", model.l2)
            facts.append(("Ridge", shown(float(l2)) if l2 else "none"))
        elif getattr(model, "penalty", None) is not None:
            facts.append(("Penalty", f"{shown(model.penalty)} times {BALLS[model.ball]}"))
        else:
            radius = float(getattr(model, "radius_", getattr(model, "radius", math.nan)))
            facts.append(("Constraint", f"{BALLS[model.ball]} is at most {shown(radius)}"))
        if self.path is not None:
            value, gap, _ = self._numbers
            facts.append(("Value", shown(value, 10)))
            facts.append(("Gap", shown(gap, 10) if self._bound is not None else "not certified"))
        facts.append(("Intercept", "yes" if model.fit_intercept else "no"))
        facts.append(("Iterations", f"{model.n_iter_:,}"))
        facts.append(("Parameters", ", ".join(f"{k}={describe(v)}" for k, v in sorted(model.get_params().items()))))
        return Section("What was fitted", table=fact_table(facts))


def _score(value: float, digits: int = 5) -> str:
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else shown(value, digits)


def _deviations(X: Any) -> Small:
    """The standard deviation of each column."""
    if isinstance(X, np.ndarray):
        return np.asarray(X.std(axis=0))
    mean, square = np.ravel(X.mean(axis=0)), np.ravel(X.multiply(X).mean(axis=0))
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))


def _shaded(value: float, top: float) -> Cell:
    tone = "--red" if value < 0 else "--blue"
    share = f"{60 * abs(value) / top:.0f}%"
    return Cell(f'<span class="tone" style="--tone:var({tone});--share:{share}">{shown(value, 3)}</span>', "number")
