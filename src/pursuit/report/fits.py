"""How predictions agree with the truth: scores and figures of regressions and classifications.

The data come in sets by name ("training", "test"), each with the truth and what was predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from pursuit.arrays import Small
from pursuit.report.figures import BLUE, GREY, RED, Panel
from pursuit.report.page import Figure

MAX_POINTS = 1500
"""Of more points, evenly spaced ones are drawn."""

BINS = 10
"""The number of groups of equal size in which probabilities are compared with frequencies."""

MAX_COUNTED = 12
"""Up to this many classes, the cells of a confusion matrix show their counts."""

COLOURS = {"training": BLUE, "test": RED}

Pairs = Mapping[str, tuple[Any, Any]]
"""By the name of a set of data: the truth, and what was predicted."""


def auc(positive: Any, score: Any) -> float:
    """The area under the ROC curve: the share of pairs of a positive and a negative sample that the score orders
    rightly, ties counting half; nan where one of the classes is missing.

    >>> auc([False, True, True], [0.1, 0.1, 0.7])
    0.75
    """
    positive = np.asarray(positive, dtype=bool)
    false, true = roc(positive, score)
    return float(np.trapezoid(true, false)) if 0 < positive.sum() < len(positive) else float("nan")


def roc(positive: Any, score: Any) -> tuple[Small, Small]:
    """False and true positive rates, for all thresholds from the largest score to the smallest.

    >>> roc([False, True, True], [0.1, 0.1, 0.7])
    (array([0., 0., 1.]), array([0. , 0.5, 1. ]))
    """
    positive, score = np.asarray(positive, dtype=bool), np.asarray(score)
    order = np.argsort(-score, kind="stable")
    last = np.append(np.diff(score[order]) != 0, True)  # of several equal scores, the last one
    rates = [np.cumsum(hit[order])[last] / max(hit.sum(), 1) for hit in (~positive, positive)]
    return np.append(0.0, rates[0]), np.append(0.0, rates[1])


def confusion(truth: Any, predicted: Any, classes: Any) -> Small:
    """Counts, a row for each true class and a column for each predicted one."""
    classes = np.asarray(classes)
    known = np.isin(truth, classes) & np.isin(predicted, classes)
    order = np.argsort(classes)
    rows, columns = (order[np.searchsorted(classes, a[known], sorter=order)] for a in (truth, predicted))
    counts = np.bincount(rows * len(classes) + columns, minlength=len(classes) ** 2)
    return np.asarray(counts.reshape(len(classes), -1), dtype=np.float64)


def regression(data: Pairs, prefix: str = "", title: str = "") -> list[Figure]:
    """Predicted against true numbers, residuals against predictions, and how large residuals are."""
    ahead = f"{title}: " if title else ""
    fit = Panel(f"{prefix}fit", f"{ahead}Predicted and true", xlabel="true", ylabel="predicted")
    rest = Panel(f"{prefix}residuals", f"{ahead}Residuals", xlabel="predicted", ylabel="true − predicted")
    sizes = Panel(f"{prefix}sizes", f"{ahead}How large residuals are", xlabel="true − predicted", ylabel="share")
    everything = np.concatenate([np.ravel(a) for pair in data.values() for a in pair])
    ends = [float(everything.min()), float(everything.max())]
    fit.ax.plot(ends, ends, "--", color=GREY, linewidth=1.2)
    rest.ax.axhline(0.0, color=GREY, ls="--", linewidth=1.2)
    residuals = {name: truth - predicted for name, (truth, predicted) in data.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(residuals.values())), bins=20)
    drawn = True
    for name, (truth, predicted) in data.items():
        some = _some(len(truth))
        drawn &= len(some) == len(truth)
        label = name if len(data) > 1 else None
        look: dict[str, Any] = {"color": COLOURS[name], "markersize": 4.5, "markeredgewidth": 0}
        look["alpha"] = 0.45 if name == "training" and len(data) > 1 else 0.7
        fit.ax.plot(truth[some], predicted[some], "o", label=label, **look)
        rest.ax.plot(predicted[some], residuals[name][some], "o", label=label, **look)
        share = np.histogram(residuals[name], edges)[0] / len(truth)
        sizes.ax.stairs(share, edges, color=COLOURS[name], label=label, linewidth=1.8)
        sizes.ax.stairs(share, edges, color=COLOURS[name], alpha=0.2, fill=True)
    some_only = "" if drawn else f" Of each set at most {MAX_POINTS:,} samples are drawn."
    return [
        fit.done(f"On the dashed line a prediction is right.{some_only}"),
        rest.done("A pattern here is something that the model has not learnt."),
        sizes.done("The share of samples in each range of residuals."),
    ]


def binary(data: Pairs, labels: Sequence[Any]) -> list[Figure]:
    """ROC curves, calibration, and the confusion matrix; what was predicted is the probability of the second class."""
    curve = Panel("roc", "ROC curve", xlabel="false positive rate", ylabel="true positive rate")
    curve.ax.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1.2)
    trust = Panel("calibration", "Calibration", xlabel="predicted probability", ylabel="observed frequency")
    trust.ax.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1.2)
    for name, (truth, probability) in data.items():
        positive = truth == labels[1]
        if 0 < positive.sum() < len(positive):
            label = f"{name}: AUC {auc(positive, probability):.4f}"
            curve.ax.plot(*roc(positive, probability), color=COLOURS[name], label=label)
        groups = np.array_split(np.argsort(probability, kind="stable"), min(BINS, len(probability)))
        said, seen = ([float(np.mean(v[g])) for g in groups] for v in (probability, positive))
        trust.ax.plot(said, seen, "o-", color=COLOURS[name], markersize=5, label=name)
    name, (truth, probability) = list(data.items())[-1]
    predicted = np.where(probability > 0.5, labels[1], labels[0])
    return [
        curve.done(f"How well the score separates {escape(str(labels[1]))} from {escape(str(labels[0]))}."),
        trust.done(f"Frequencies of {escape(str(labels[1]))} in {BINS} groups of samples, by predicted probability."),
        confusion_figure(name, confusion(truth, predicted, labels), labels),
    ]


def confusion_figure(name: str, counts: Small, labels: Sequence[Any]) -> Figure:
    """A confusion matrix; the shade of a cell is its share of the row."""
    panel = Panel(f"confusion-{name}", f"Confusion matrix, {name}", xlabel="predicted", ylabel="true")
    ax, k, texts = panel.ax, len(labels), [_clip(str(label)) for label in labels]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    for i, j in np.ndindex(k, k):
        if counts[i, j]:
            shade = {"color": BLUE if i == j else RED, "alpha": 0.75 * float(shares[i, j]), "linewidth": 0}
            ax.fill([j, j + 1, j + 1, j], [i, i, i + 1, i + 1], **shade)
        if k <= MAX_COUNTED:
            ax.text(j + 0.5, i + 0.5, f"{counts[i, j]:,.0f}", ha="center", va="center", fontsize=12 if k < 6 else 9)
    marks = np.arange(k) if k <= MAX_COUNTED else np.unique(np.linspace(0, k - 1, 8).astype(int))
    long = sum(len(texts[m]) for m in marks) > 40
    ax.set_xticks(marks + 0.5, [texts[m] for m in marks], rotation=40 if long else 0, ha="right" if long else "center")
    ax.set_yticks(marks + 0.5, [texts[m] for m in marks])
    ax.set(xlim=(0, k), ylim=(k, 0))
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return panel.done(f"{np.trace(counts):,.0f} of the {counts.sum():,.0f} {name} samples of these classes are right.")


def _some(n: int) -> Any:
    return np.arange(n) if n <= MAX_POINTS else np.linspace(0, n - 1, MAX_POINTS).astype(np.intp)


def _clip(text: str) -> str:
    return text if len(text) <= 14 else text[:13] + "…"
