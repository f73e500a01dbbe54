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

MAX_COUNTED = 12
"""Up to this many classes, the cells of a confusion matrix show their counts."""

COLOURS = {"training": BLUE, "test": RED}

Pairs = Mapping[str, tuple[Any, Any]]
"""By the name of a set of data: the truth, and the predictions."""


def regression(data: Pairs, title: str = "") -> list[Figure]:
    """Predictions against true numbers, and residuals against predictions."""
    panels = [
        Panel(f"fit{title}", f"Predicted and true{title}", xlabel="true", ylabel="predicted"),
        Panel(f"residuals{title}", f"Residuals{title}", xlabel="predicted", ylabel="true − predicted"),
    ]
    for name, (truth, predicted) in data.items():
        drawn = np.linspace(0, len(truth) - 1, min(len(truth), MAX_POINTS)).astype(np.intp)
        y, z = truth[drawn], predicted[drawn]
        look: Any = {"color": COLOURS[name], "label": name, "markersize": 4.5, "markeredgewidth": 0, "alpha": 0.6}
        panels[0].ax.plot(y, z, "o", **look)
        panels[1].ax.plot(z, y - z, "o", **look)
    panels[0].ax.axline((y[0], y[0]), slope=1.0, color=GREY, ls="--", linewidth=1.2)
    panels[1].ax.axhline(0.0, color=GREY, ls="--", linewidth=1.2)
    words = ("On the dashed line a prediction is right.", "A pattern here is something that the model has not learnt.")
    return [panel.done(text) for panel, text in zip(panels, words, strict=True)]


def binary(data: Pairs, labels: Sequence[Any]) -> list[Figure]:
    """ROC curves, calibration, and the confusion matrix of the last set; predictions are probabilities of the second
    class."""
    metrics = _sklearn_metrics()
    from sklearn.calibration import CalibrationDisplay

    curve, trust = Panel("roc", "ROC curve"), Panel("calibration", "Calibration")
    for name, (truth, probability) in data.items():
        positive = truth == labels[1]
        if 0 < positive.sum() < len(positive):
            metrics.RocCurveDisplay.from_predictions(positive, probability, name=name, ax=curve.ax)
        options: Any = {"pos_label": True, "n_bins": 10, "strategy": "quantile"}
        CalibrationDisplay.from_predictions(positive, probability, **options, name=name, ax=trust.ax)
    name, (truth, probability) = list(data.items())[-1]
    other, label = (escape(str(label)) for label in labels)
    return [
        curve.done(f"How well the score separates {label} from {other}."),
        trust.done(f"Frequencies of {label} in groups of samples, by predicted probability."),
        confusion(name, truth, np.where(probability > 0.5, labels[1], labels[0]), labels),
    ]


def confusion(name: str, truth: Any, predicted: Any, labels: Sequence[Any]) -> Figure:
    """The confusion matrix of the samples whose class is one of the labels."""
    known = np.isin(truth, labels)
    metrics = _sklearn_metrics()
    counts = metrics.confusion_matrix(truth[known], predicted[known], labels=labels)
    panel = Panel(f"confusion-{name}", f"Confusion matrix, {name}")
    display = metrics.ConfusionMatrixDisplay(counts, display_labels=[str(label)[:14] for label in labels])
    display.plot(ax=panel.ax, cmap="Blues", colorbar=False, include_values=len(labels) <= MAX_COUNTED)
    panel.ax.grid(False)
    return panel.done(f"{np.trace(counts):,} of the {counts.sum():,} {name} samples of these classes are right.")


def _sklearn_metrics() -> Any:
    try:
        from sklearn import metrics
    except ImportError as missing:
        raise ImportError("reports of classes need scikit-learn; pip install scikit-learn.") from missing
    return metrics
