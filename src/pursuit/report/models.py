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

MAX_OUTPUTS = 3
"""How many outputs of a regression are drawn."""

MAX_NAMES = 8
"""How many constant features are named."""


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
        self.samples = len(sets["training"][1])
        self.deviations = _deviations(sets["training"][0])
        self.scores = {name: model_scores(model, X, y) for name, (X, y) in sets.items()}
        self.numbers, self.bound = self._proved()

    def page(self, title: str | None) -> str:
        """The report."""
        kind = "classifies samples" if self.classes is not None else "predicts numbers"
        count = f"{len(self.used):,} of {self.coef.shape[1]:,} features"
        lead = f"A linear model that {kind} by {count}, fitted to {self.samples:,} samples."
        title = f"{type(self.model).__name__}: {count}" if title is None else title
        sections = [self._scores(), self._certificate(), self._features(), self._fit(), *self._along_path()]
        return page(title, lead, [*sections, self._facts()], text.footer())

    def _scores(self) -> Section:
        rows = [
            [Cell(measure), *(Cell(_score(scores[measure]), "number") for scores in self.scores.values())]
            for measure in self.scores["training"]
        ]
        heads = ["Score", *(f"{name.capitalize()}, {len(y):,} samples" for name, (_, y) in self.sets.items())]
        warning = [] if "test" in self.sets else ["The model has seen these samples: expect less on new ones."]
        return Section("Scores", warning, Table(heads, rows, "narrow"))

    # ------------------------------------------------------------------ certificate

    def _proved(self) -> tuple[tuple[float, float, float], str | None]:
        """The objective, its gap and a bound on the objective that holds for all models; and the proved bound.

        A greedy model without features was compared with other constants only, and a loaded one has no path."""
        if self.path is None:
            return (math.nan, math.inf, 0.0), None
        row = int(self.path.at(getattr(self.model, "n_nonzero_", getattr(self.model, "radius_", math.inf))))
        infimum = -math.inf if self.model.loss == "poisson" else 0.0
        numbers = float(self.path.value[row]), float(self.path.gap[row]), infimum
        return numbers, None if self.greedy and self.path.level[row] == 0 else text.proved_bound(*numbers)

    def _certificate(self) -> Section:
        if self.path is None:
            words = ["This model was loaded from a file, which does not keep its certificate."]
        elif self.greedy:
            words = [
                "Each feature is the one along which the objective fell fastest; then all coefficients were fitted "
                "anew. <b>Nothing is proved about other choices of as many features.</b>"
            ]
            if self.bound is not None:
                signs = " with coefficients of at least 0" if self.model.positive else ""
                subject = f"linear model of these {self.coef.shape[1]:,} features{signs}, however many it uses,"
                words.append(escape(text.certificate(*self.numbers, subject)))
        else:
            words = [f"<b>{escape(text.certificate(*self.numbers, 'model of this kind'))}</b>"]
            words.append("Models of this kind minimise the same objective over the same ball, or with the same price.")
        return Section("How good it is", words)

    # ------------------------------------------------------------------ features

    def _features(self) -> Section:
        effects = self.coef * self.deviations
        several, norms = len(self.coef) > 1, np.linalg.norm(effects, axis=0)
        order = self.used[np.argsort(-norms[self.used], kind="stable")]
        notes = [f"{len(order) - MAX_ROWS:,} more features have smaller effects."] if len(order) > MAX_ROWS else []
        if not several and self.model.fit_intercept:
            notes.append(f"The intercept is {format_number(float(np.ravel(self.model.intercept_)[0]))}.")
        dropped = [] if self.path is None else [self.names[j] for j in self.path.dropped]
        if dropped:
            more = f" and {len(dropped) - MAX_NAMES:,} more" if len(dropped) > MAX_NAMES else ""
            notes.append(f"Constant features were left out: {escape(', '.join(dropped[:MAX_NAMES]))}{more}.")
        if not len(order):
            return Section("Features", ["The model uses no feature."], note=" ".join(notes))
        words = "The effect is the coefficient times the standard deviation of the feature"
        words += ": the norm over all outputs or classes." if several else "; blue is positive, orange negative."
        sizes = norms if several else effects[0]
        rows = [
            (escape(self.names[j]), [format_number(float(c), 5) for c in self.coef[:1, j]][several:], float(sizes[j]))
            for j in order[:MAX_ROWS]
        ]
        rows = [(name, [*numbers, format_number(size, 4)], size) for name, numbers, size in rows]
        heads = ["Feature", "Effect"] if several else ["Feature", "Coefficient", "Effect"]
        return Section("Features", [words], bar_table(heads, rows), note=" ".join(notes))

    # ------------------------------------------------------------------ path

    def _along_path(self) -> Iterator[Section]:
        held_out = HeldOut.of(self.model)
        figures = [] if held_out is None else [self._held_out(held_out)]
        if self.path is not None and len(self.path) > 2:
            panel = Panel("effects", "Effects")
            scaled = self.path.at_unit_scale()
            plot_path(scaled, names=self.names, labels=6, ax=panel.ax)
            panel.ax.set(xlabel=self.level, ylabel="effect")
            figures.append(panel.done("The six largest at the end of the path are named."))
        if figures:
            words = []
            if held_out is not None:
                cv = held_out.plain
                number = f"{cv['loss']:.4g} ± {cv['standard_error']:.2g} ({cv['of']}, ± standard error)"
                words.append(f"Cross-validation had {cv['folds']} folds. The cross-validated loss is {number}.")
            yield Section("The path", words, figures=figures)

    def _held_out(self, held_out: HeldOut) -> Figure:
        levels, (chosen, level) = np.asarray(self.model.levels_, dtype=float), held_out.chosen
        panel = Panel("held-out", "Held-out loss", xlabel=self.level, ylabel="mean loss")
        for i, mean in enumerate(held_out.mean):
            label = f"ridge {held_out.ridges[i]:g}" if len(held_out.ridges) > 1 else "mean of the folds"
            panel.ax.plot(levels, mean, color=BLUE if i == chosen else GREY, label=label, marker=".")
        mean, error = held_out.mean[chosen], held_out.error[chosen]
        panel.ax.fill_between(levels, mean - error, mean + error, color=BLUE, alpha=0.18, lw=0)
        panel.ax.plot(levels[level], mean[level], "o", color=RED, markersize=9, fillstyle="none", label="chosen")
        if not self.greedy:
            panel.ax.set_xscale("log")  # which leaves radius 0 out
        return panel.done("The band is one standard error to each side.")

    # ------------------------------------------------------------------ fit

    def _fit(self) -> Section:
        if self.classes is None:
            outputs, figures = len(self.coef), []
            both = {name: (y, self.model.predict(X)) for name, (X, y) in self.sets.items()}
            for k in range(min(outputs, MAX_OUTPUTS)):
                data = {name: (_column(y, k), _column(predicted, k)) for name, (y, predicted) in both.items()}
                figures += fit_plots.regression(data, f", output {k}" if outputs > 1 else "")
        elif len(self.classes) == 2:
            sets = {name: (y, self.model.predict_proba(X)[:, 1]) for name, (X, y) in self.sets.items()}
            figures = fit_plots.binary(sets, self.classes)
        else:
            predicted = {name: self.model.predict(X) for name, (X, _) in self.sets.items()}
            figures = [fit_plots.confusion(n, y, predicted[n], self.classes) for n, (_, y) in self.sets.items()]
        return Section("Fit", figures=figures)

    def _facts(self) -> Section:
        model = self.model
        facts = [("Model", type(model).__name__), ("Loss", LOSSES[model.loss])]
        if self.path is not None:
            facts.append(("Objective", format_number(self.numbers[0], 10)))
            gap = format_number(self.numbers[1], 10)
            facts.append(("Gap", gap if self.bound is not None else "not certified"))
        facts.append(("Iterations", f"{model.n_iter_:,}"))
        chosen = {name: getattr(model, name) for name in ("n_nonzero_", "l2_", "radius_") if hasattr(model, name)}
        parameters = dict(sorted(model.get_params().items())) | chosen
        facts.append(("Parameters", ", ".join(f"{name}={describe(value)}" for name, value in parameters.items())))
        return Section("The model", table=fact_table(facts))


def _score(value: float, digits: int = 5) -> str:
    return "–" if math.isnan(value) else "∞" if math.isinf(value) else format_number(value, digits)


def _column(y: Any, k: int) -> Any:
    return y.reshape(len(y), -1)[:, k]


def _deviations(X: Any) -> Small:
    """The standard deviation of each column."""
    if isinstance(X, np.ndarray):
        return np.asarray(X.std(axis=0))
    mean, square = np.ravel(X.mean(axis=0)), np.ravel(X.multiply(X).mean(axis=0))
    return np.asarray(np.sqrt(np.maximum(square - mean**2, 0.0)))
