"""The report of a fitted sparse linear model: certificate, scores, features, path and fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np

from pursuit.arguments import describe
from pursuit.arrays import Small
from pursuit.plots import plot_path
from pursuit.report import fit_plots, text
from pursuit.report.figures import BLUE, GREY, RED, Panel
from pursuit.report.html import Cell, Figure, Section, Table, bar_table, fact_table, page
from pursuit.report.results import MAX_ROWS
from pursuit.report.scores import LOSSES, HeldOut, model_scores
from pursuit.report.text import format_number

MAX_COLUMNS = 6
"""Coefficients of more outputs or classes than this are shown by their norm."""

MAX_OUTPUTS = 3
"""How many outputs of a regression are drawn."""

MAX_NAMES = 8
"""How many constant features are named."""

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
        self.level = "features" if self.greedy else "radius"
        self.path: Any = getattr(model, "path_", None)  # models that were loaded have none
        self.X = sets["training"][0]
        self.deviations = _deviations(self.X)
        self.scores = {name: model_scores(model, X, y) for name, (X, y) in sets.items()}

    def page(self, title: str | None) -> str:
        """The report."""
        kind = "classifies samples" if self.classes is not None else "predicts numbers"
        count, p = len(self.used), self.coef.shape[1]
        lead = f"A linear model that {kind} by {count:,} of {p:,} features, fitted to {self.X.shape[0]:,} samples"
        lead += f" and tested on {self.sets['test'][0].shape[0]:,} others." if "test" in self.sets else "."
        title = f"{type(self.model).__name__}: {count:,} of {p:,} features" if title is None else title
        sections = [self._scores(), self._certificate(), self._features(), self._fit(), *self._along_path()]
        return page(title, lead, [*sections, self._facts()], text.footer(), list(self._tiles()))

    def _tiles(self) -> Iterator[tuple[str, str]]:
        yield f"{len(self.used):,}", f"features of {self.coef.shape[1]:,}"
        for name, scores in reversed(self.scores.items()):
            measure, value = next(iter(scores.items()))
            yield _score(value, 4), f"{_capital(measure)}, {name}"
        if self._bound is not None and not self.greedy:
            yield f"≤ {self._bound}", "above the best model of this kind, proved"

    def _scores(self) -> Section:
        rows = [
            [Cell(_capital(measure)), *(Cell(_score(scores[measure]), "number") for scores in self.scores.values())]
            for measure in self.scores["training"]
        ]
        heads = ["Score", *(f"{name.capitalize()}, {X.shape[0]:,} samples" for name, (X, _) in self.sets.items())]
        warning = [] if "test" in self.sets else ["The model has seen these samples: expect less on new ones."]
        return Section("Scores", warning, Table(heads, rows, "narrow"))

    # ------------------------------------------------------------------ certificate

    @property
    def _row(self) -> int:
        """The place of the model on its path."""
        return int(self.path.at(getattr(self.model, "n_nonzero_", getattr(self.model, "radius_", math.inf))))

    @property
    def _numbers(self) -> tuple[float, float, float]:
        """The objective, its gap, and a bound on the objective that holds for all models."""
        infimum = -math.inf if self.model.loss == "poisson" else 0.0
        return float(self.path.value[self._row]), float(self.path.gap[self._row]), infimum

    @property
    def _bound(self) -> str | None:
        """The proved bound; a greedy model without features was compared with other constants only, which says
        little."""
        if self.path is None or (self.greedy and self.path.level[self._row] == 0):
            return None
        return text.proved_bound(*self._numbers)

    @property
    def _loss(self) -> str:
        several = self.classes is None and len(self.coef) > 1
        return LOSSES[self.model.loss] + (", summed over the outputs" if several else "")

    def _certificate(self) -> Section:
        if self.path is None:
            paragraphs = ["This model was loaded from a file, which does not keep its certificate."]
        elif not self.greedy:
            proof = text.certificate(*self._numbers, "model of this kind")
            paragraphs = [f"<b>{escape(proof)}</b>", escape(self._kind())]
        else:
            paragraphs = [
                "The features were chosen one after another, each time the one along which the objective falls "
                "fastest, and all coefficients were fitted anew. <b>Nothing is proved about other choices of as many "
                "features.</b>"
            ]
            if self._bound is not None:
                signs = " with coefficients of at least 0" if self.model.positive else ""
                subject = f"linear model of these {self.coef.shape[1]:,} features{signs}, however many it uses,"
                paragraphs.append(escape(text.certificate(*self._numbers, subject)))
        return Section("How good it is", paragraphs)

    def _kind(self) -> str:
        """The objective, and the models with which the certificate compares."""
        loss = f"The objective is {self._loss}, in training"
        norm = f"{BALLS[self.model.ball]}, for features at unit scale"
        if getattr(self.model, "penalty", None) is not None:
            price = format_number(self.model.penalty)
            return f"{loss}, plus {price} times {norm}. Models of this kind are all linear ones of these features."
        radius = format_number(float(self.path.level[self._row]))
        return f"{loss}. Models of this kind are linear, and {norm}, is at most {radius}."

    # ------------------------------------------------------------------ features

    def _features(self) -> Section:
        effects = self.coef * self.deviations
        norms = np.linalg.norm(effects, axis=0)
        order = self.used[np.argsort(-norms[self.used], kind="stable")]
        note = f"{len(order) - MAX_ROWS:,} more features have smaller effects." if len(order) > MAX_ROWS else ""
        note += self._constant_features()
        if not len(order):
            return Section("Features", ["The model uses no feature."], note=note)
        rows = {escape(self.names[j]): j for j in order[:MAX_ROWS]}
        meaning = "The effect is the coefficient times the standard deviation of the feature: units are comparable."
        outputs = len(self.coef)
        if outputs == 1:
            meaning += " Blue is positive, orange negative."
            numbers = {name: (float(self.coef[0, j]), float(effects[0, j])) for name, j in rows.items()}
            bars = [(name, [format_number(c, 5), format_number(e, 4)], e) for name, (c, e) in numbers.items()]
            intercept = format_number(float(np.ravel(self.model.intercept_)[0]))
            note = (
                f"{f'The intercept is {intercept}.' if self.model.fit_intercept else 'There is no intercept.'} {note}"
            )
            table = bar_table(["Feature", "Coefficient", "Effect"], bars)
        elif outputs > MAX_COLUMNS:
            what = "outputs" if self.classes is None else "classes"
            meaning = f"Coefficients of {outputs} {what}: the norm of a feature's effects. {meaning}"
            bars = [(name, [format_number(float(norms[j]), 4)], float(norms[j])) for name, j in rows.items()]
            table = bar_table(["Feature", "Norm of effects"], bars)
        else:
            largest = float(np.abs(effects).max()) or 1.0
            cells = [[Cell(name), *(_shaded(e, largest) for e in effects[:, j].tolist())] for name, j in rows.items()]
            labels = [f"output {k}" for k in range(outputs)] if self.classes is None else map(str, self.classes)
            table = Table(["Effect on", *labels], cells, "narrow" if outputs <= 3 else "")
        return Section("Features", [meaning], table, note=note)

    def _constant_features(self) -> str:
        dropped = [] if self.path is None else [self.names[j] for j in self.path.dropped]
        if not dropped:
            return ""
        more = f" and {len(dropped) - MAX_NAMES:,} more" if len(dropped) > MAX_NAMES else ""
        return f" Constant features were left out: {escape(', '.join(dropped[:MAX_NAMES]))}{more}."

    # ------------------------------------------------------------------ path

    def _along_path(self) -> Iterator[Section]:
        held_out = HeldOut.of(self.model)
        figures = [] if held_out is None else [self._held_out(held_out)]
        if self.path is not None and len(self.path) > 2:
            figures += [self._objective(), self._effects()]
        if figures:
            level = "number of features" if self.greedy else "radius"
            tried = (
                [] if held_out is None else [f"Each {level} was tried on {held_out.folds} folds. {held_out.sentence}"]
            )
            yield Section("The path", tried, figures=figures)

    def _held_out(self, held_out: HeldOut) -> Figure:
        levels, (chosen, level) = np.asarray(self.model.levels_, dtype=float), held_out.chosen
        panel = Panel("held-out", "Held-out loss", xlabel=self.level, ylabel="mean loss")
        marker = "." if len(levels) < 40 else None
        for i, mean in enumerate(held_out.mean):
            label = f"ridge {held_out.ridges[i]:g}" if len(held_out.ridges) > 1 else "mean of the folds"
            panel.ax.plot(levels, mean, color=BLUE if i == chosen else GREY, label=label, marker=marker)
        mean, error = held_out.mean[chosen], held_out.error[chosen]
        panel.ax.fill_between(levels, mean - error, mean + error, color=BLUE, alpha=0.18, lw=0)
        panel.ax.plot(levels[level], mean[level], "o", color=RED, markersize=9, fillstyle="none", label="chosen")
        if not self.greedy:
            panel.ax.set_xscale("log")  # which leaves radius 0 out
        return panel.done("The band is one standard error to each side.")

    def _objective(self) -> Figure:
        path, row = self.path, self._row
        panel = Panel("training", "Objective in training", xlabel=self.level, ylabel="objective")
        panel.ax.plot(path.level, path.value, color=BLUE, marker="." if len(path) < 40 else None)
        panel.ax.plot(path.level[row], path.value[row], "o", color=RED, markersize=9, fillstyle="none")
        return panel.done("On all training samples. The circle is the model of this report.")

    def _effects(self) -> Figure:
        panel = Panel("effects", "Effects")
        scaled = self.path.at_unit_scale()
        plot_path(scaled, names=self.names, labels=6, ax=panel.ax)
        panel.ax.set(xlabel=self.level, ylabel="norm of the effects" if len(self.coef) > 1 else "effect")
        return panel.done("The six largest at the end of the path are named.", legend_below=True)

    # ------------------------------------------------------------------ fit

    def _fit(self) -> Section:
        model = self.model
        if self.classes is None:
            return self._regression()
        if len(self.classes) == 2:
            data = {name: (y, model.predict_proba(X)[:, 1]) for name, (X, y) in self.sets.items()}
            return Section("Fit", figures=fit_plots.binary(data, self.classes))
        figures = [fit_plots.confusion(name, y, model.predict(X), self.classes) for name, (X, y) in self.sets.items()]
        return Section("Fit", figures=figures)

    def _regression(self) -> Section:
        outputs, figures = len(self.coef), []
        for k in range(min(outputs, MAX_OUTPUTS)):
            data = {
                name: (y.reshape(len(y), -1)[:, k], self.model.predict(X).reshape(len(y), -1)[:, k])
                for name, (X, y) in self.sets.items()
            }
            prefix, title = (f"output-{k}-", f"output {k}") if outputs > 1 else ("", "")
            figures += fit_plots.regression(data, prefix, title)
        drawn = [f"The first {MAX_OUTPUTS} of {outputs} outputs."] if outputs > MAX_OUTPUTS else []
        return Section("Fit", drawn, figures=figures)

    def _facts(self) -> Section:
        model = self.model
        facts = [("Model", type(model).__name__), ("Objective", self._loss)]
        if self.path is not None:
            value, gap, _ = self._numbers
            facts.append(("Value", format_number(value, 10)))
            facts.append(("Gap", format_number(gap, 10) if self._bound is not None else "not certified"))
        facts.append(("Iterations", f"{model.n_iter_:,}"))
        chosen = {name: getattr(model, name) for name in ("n_nonzero_", "l2_", "radius_") if hasattr(model, name)}
        parameters = dict(sorted(model.get_params().items())) | chosen
        facts.append(("Parameters", ", ".join(f"{name}={describe(value)}" for name, value in parameters.items())))
        return Section("The model", table=fact_table(facts))


def _score(value: float, digits: int = 5) -> str:
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else format_number(value, digits)


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _deviations(X: Any) -> Small:
    """The standard deviation of each column."""
    if isinstance(X, np.ndarray):
        return np.asarray(X.std(axis=0))
    mean, square = np.ravel(X.mean(axis=0)), np.ravel(X.multiply(X).mean(axis=0))
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))


def _shaded(value: float, largest: float) -> Cell:
    look = f"--tone:var({'--red' if value < 0 else '--blue'});--share:{60 * abs(value) / largest:.0f}%"
    return Cell(f'<span class="tone" style="{look}">{format_number(value, 3)}</span>', "number")
