"""Figures. matplotlib is imported where it is used: it is an extra, `pip install pursuit[plot]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def plot_traces(
    traces: Mapping[str, Any],
    *,
    column: str = "gap",
    against: str = "oracle_calls",
    offset: float = 0.0,
    ax: Any = None,
) -> Any:
    """One line per trace, `column - offset` against `against`, on log axes; returns the matplotlib axes.

    Parameters
    ----------
    traces : mapping from labels to traces
    column, against : str
        Columns of the traces.
    offset : float
        Subtracted from the column: with column="value" and offset = f*, the suboptimality.
    ax : matplotlib axes, optional
    """
    import matplotlib.pyplot as plt

    if ax is None:
        ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    for i, (label, trace) in enumerate(traces.items()):
        x, y = getattr(trace, against), getattr(trace, column) - offset
        shown = np.isfinite(y) & (y > 0)
        line = ("-", "--", "-.", ":")[i % 4]  # equal curves stay visible, one below the other
        ax.plot(np.maximum(x[shown], 1), y[shown], line, marker="." if shown.sum() < 30 else None, label=label)
    ax.set(xscale="log", yscale="log", xlabel=against.replace("_", " "), ylabel=column)
    ax.grid(alpha=0.3)
    if len(traces) > 1:
        ax.legend(frameon=False, fontsize="small")
    return ax
