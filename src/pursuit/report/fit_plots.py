"""Figures of predictions beside the truth, for regressions and classifications.

The data come in sets by name ("training", "test"), each with the truth and the predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from pursuit.report.figures import BLUE, GREY, RED, Panel
from pursuit.report.html import Figure

MAX_POINTS = 1500
"""Of more points, evenly spaced ones are drawn."""

BINS = 10
"""The number of groups of equal size in which probabilities are compared with frequencies."""

MAX_COUNTED = 12
"""Up to this many classes, the cells of a confusion matrix show their counts."""

COLOURS = {"training": BLUE, "test": RED}

Pairs = Mapping[str, tuple[Any, Any]]
"""By the name of a set of data: the truth, and the predictions."""


def regression(data: Pairs, prefix: str = "", title: str = "") -> list[Figure]:
    """Predictions against true numbers, residuals against predictions, and a histogram of residuals."""
    ahead = f"{title}: " if title else ""
    fit = Panel(f"{prefix}fit", f"{ahead}Predicted and true", xlabel="true", ylabel="predicted")
    rest = Panel(f"{prefix}residuals", f"{ahead}Residuals", xlabel="predicted", ylabel="true − predicted")
    sizes = Panel(f"{prefix}sizes", f"{ahead}Sizes of residuals", xlabel="true − predicted", ylabel="share")
    numbers = np.concatenate([np.ravel(a) for pair in data.values() for a in pair])
    ends = [float(numbers.min()), float(numbers.max())]
    fit.ax.plot(ends, ends, "--", color=GREY, linewidth=1.2)
    rest.ax.axhline(0.0, color=GREY, ls="--", linewidth=1.2)
    residuals = {name: truth - predicted for name, (truth, predicted) in data.items()}
    edges = np.histogram_bin_edges(np.concatenate(list(residuals.values())), bins=20)
    for name, (truth, predicted) in data.items():
        drawn = np.linspace(0, len(truth) - 1, min(len(truth), MAX_POINTS)).astype(np.intp)
        label = name if len(data) > 1 else None
        look: dict[str, Any] = {"color": COLOURS[name], "markersize": 4.5, "markeredgewidth": 0, "label": label}
        look["alpha"] = 0.45 if name == "training" and len(data) > 1 else 0.7
        fit.ax.plot(truth[drawn], predicted[drawn], "o", **look)
        rest.ax.plot(predicted[drawn], residuals[name][drawn], "o", **look)
        share = np.histogram(residuals[name], edges)[0] / len(truth)
        sizes.ax.stairs(share, edges, color=COLOURS[name], label=label, linewidth=1.8)
        sizes.ax.stairs(share, edges, color=COLOURS[name], alpha=0.2, fill=True)
    many = max(len(truth) for truth, _ in data.values()) > MAX_POINTS
    at_most = f" Of each set at most {MAX_POINTS:,} samples are drawn." if many else ""
    return [
        fit.done(f"On the dashed line a prediction is right.{at_most}"),
        rest.done("A pattern here is something that the model has not learnt."),
        sizes.done("The share of samples in each range of residuals."),
    ]


def binary(data: Pairs, labels: Sequence[Any]) -> list[Figure]:
    """ROC curves, calibration, and the confusion matrix of the last set; predictions are probabilities of the second
    class."""
    metrics = _sklearn_metrics()
    from sklearn.calibration import calibration_curve

    curve = Panel("roc", "ROC curve", xlabel="false positive rate", ylabel="true positive rate")
    trust = Panel("calibration", "Calibration", xlabel="predicted probability", ylabel="observed frequency")
    for panel in (curve, trust):
        panel.ax.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1.2)
    for name, (truth, probability) in data.items():
        positive = truth == labels[1]
        if 0 < positive.sum() < len(positive):
            label = f"{name}: AUC {metrics.roc_auc_score(positive, probability):.4f}"
            curve.ax.plot(*metrics.roc_curve(positive, probability)[:2], color=COLOURS[name], label=label)
        observed, expected = calibration_curve(positive, probability, n_bins=BINS, strategy="quantile", pos_label=True)
        trust.ax.plot(expected, observed, "o-", color=COLOURS[name], markersize=5, label=name)
    name, (truth, probability) = list(data.items())[-1]
    other, label = (escape(str(label)) for label in labels)
    return [
        curve.done(f"How well the score separates {label} from {other}."),
        trust.done(f"Frequencies of {label} in {BINS} groups of samples, by predicted probability."),
        confusion(name, truth, np.where(probability > 0.5, labels[1], labels[0]), labels),
    ]


def confusion(name: str, truth: Any, predicted: Any, labels: Sequence[Any]) -> Figure:
    """The confusion matrix of the samples whose class is one of the labels; the shade of a cell is its share of the
    row."""
    known = np.isin(truth, labels)
    counts = _sklearn_metrics().confusion_matrix(truth[known], predicted[known], labels=labels)
    panel = Panel(f"confusion-{name}", f"Confusion matrix, {name}", xlabel="predicted", ylabel="true")
    ax, k = panel.ax, len(labels)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    for i, j in np.ndindex(k, k):
        if counts[i, j]:
            shade = {"color": BLUE if i == j else RED, "alpha": 0.75 * float(shares[i, j]), "linewidth": 0}
            ax.fill([j, j + 1, j + 1, j], [i, i, i + 1, i + 1], **shade)
        if k <= MAX_COUNTED:
            ax.text(j + 0.5, i + 0.5, f"{counts[i, j]:,}", ha="center", va="center", fontsize=12 if k < 6 else 9)
    marks = np.arange(k) if k <= MAX_COUNTED else np.unique(np.linspace(0, k - 1, 8).astype(int))
    texts = [text if len(text) <= 14 else text[:13] + "…" for text in (str(labels[m]) for m in marks.tolist())]
    slanted = sum(map(len, texts)) > 40
    ax.set_xticks(marks + 0.5, texts, rotation=40 if slanted else 0, ha="right" if slanted else "center")
    ax.set_yticks(marks + 0.5, texts)
    ax.set(xlim=(0, k), ylim=(k, 0))
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return panel.done(f"{np.trace(counts):,} of the {counts.sum():,} {name} samples of these classes are right.")


def _sklearn_metrics() -> Any:
    try:
        from sklearn import metrics
    except ImportError as missing:
        raise ImportError("reports of classes need scikit-learn; pip install scikit-learn.") from missing
    return metrics
