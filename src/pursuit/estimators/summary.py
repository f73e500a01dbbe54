"""A fitted linear model as text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MAX_ROWS, MAX_OUTPUTS = 40, 4
"""More features than this are counted only; of more outputs the norm is shown."""


def described(model: Any) -> str:
    """What `LinearModel.summary` returns."""
    coef, names = np.atleast_2d(model.coef_), np.asarray(model._names())
    used, path = np.flatnonzero(coef.any(axis=0)), getattr(model, "path_", None)
    scale = np.full(coef.shape[1], math.nan) if path is None else path.scale
    sizes = np.linalg.norm(coef[:, used] * scale[used], axis=0)
    order = used[np.argsort(-sizes, kind="stable")] if path is not None else used
    outputs = [str(c) for c in getattr(model, "classes_", range(len(coef)))] if len(coef) > 1 else ["coefficient"]
    wide = len(outputs) <= MAX_OUTPUTS
    rows = [["feature", *(outputs if wide else ["norm"]), "at unit scale"]]
    for j in order[:MAX_ROWS]:
        numbers = coef[:, j] if wide else [np.linalg.norm(coef[:, j])]
        effect = coef[0, j] * scale[j] if len(coef) == 1 else np.linalg.norm(coef[:, j]) * scale[j]
        rows.append([str(names[j]), *(f"{b:.5g}" for b in numbers), f"{effect:.4g}"])
    if wide:
        rows.append(["intercept", *(f"{c:.5g}" for c in np.broadcast_to(model.intercept_, len(coef))), ""])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    title = f"{type(model).__name__}: {len(used):,} of {coef.shape[1]:,} features, loss {model.loss!r}"
    table = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    more = [f"... and {len(order) - MAX_ROWS:,} more features"] if len(order) > MAX_ROWS else []
    return "\n".join([title, *table, *more, *_quality(model)])


def _quality(model: Any) -> list[str]:
    """What is known of a model: its size, held-out loss and certificate."""
    lines = []
    if (losses := getattr(model, "cv_losses_", None)) is not None:
        folds, what = losses.shape[2], "loss" if model.scoring is None else f"score ({model.scoring})"
        held_out = losses.reshape(-1, folds)[model.best_index_] * (1 if model.scoring is None else -1)
        error = held_out.std() / math.sqrt(folds)
        lines.append(f"held-out {what}: {held_out.mean():.4g} ± {error:.2g}, {folds} folds")
    for name, words in (("l2_", "ridge"), ("radius_", "radius"), ("penalty_", "penalty")):
        if getattr(model, name, None) is not None:
            lines.append(f"{words}: {getattr(model, name):.4g}")
    if hasattr(model, "dual_gap_"):
        lines.append(f"proved: the objective is at most {model.dual_gap_:.2g} above its minimum")
    if len(model.dropped_):
        lines.append(f"constant features, left out: {len(model.dropped_):,}")
    return lines
