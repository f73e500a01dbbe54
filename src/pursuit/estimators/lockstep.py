"""The compiled greedy paths: folds and ridges over one matrix, in step.

Each problem is the mean loss of some samples, with a ridge; every step adds the feature to each that correlates most
with its gradient, and refits. `forward.GreedySolver` is the plain version of one problem.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit.estimators.base import Array
from pursuit.estimators.design import ModelPath
from pursuit.estimators.tasks import Classification, Task

KINDS = {"squared_error": 0, "log_loss": 1, "poisson": 2, "huber": 3}
MULTINOMIAL = 4

FOLD_ACCURACY, ACCURACY = 1e-7, 1e-20
"""Newton's method ends where the next decrease is at most this fraction of the objective: in folds, whose held-out loss
needs fewer digits, and on all samples."""

Row = tuple[float, Array, Array]
"""The value of a model, its coefficients (features, outputs) and its intercepts."""


class Lockstep:
    """Greedy paths on all samples and on each of the folds, for each of the ridges.

    `folds` are pairs of rows to train on and rows held out. `losses` has, for each size from 0, the held-out losses
    (ridges, folds) in squares of `unit`, the unit of targets. Coefficients on all samples are kept, and with `keep`
    those in folds.
    """

    def __init__(self, samples: Any, folds: Sequence[tuple[Array, Array]], ridges: Sequence[float], **how: Any) -> None:
        self.keep, tol, threads = how.get("keep", False), how["tol"], how["threads"]
        rows, train, held = _weights(samples.weights, folds)
        self.shape, self.p = (len(ridges), len(train)), samples.X.shape[1]
        y, self.unit, kind, classes, width = _target(samples.task, samples.target[rows])
        dtype = samples.X.dtype
        dense, csc = (None, _columns(samples.X)) if sp.issparse(samples.X) else (samples.X, None)
        self.kernel = native.kernels(dtype).Greedy(
            dense=dense, csc=csc, all_rows=samples.X.shape[0], rows=rows, y=y, weights=train, held=held,
            group=np.tile(np.arange(len(train), dtype=np.int32), len(ridges)), l2=np.repeat(ridges, len(train)),
            tols=np.tile([ACCURACY, *[FOLD_ACCURACY] * len(folds)], len(ridges)), loss=kind, classes=classes,
            width=width, intercept=samples.fit_intercept, separated=tol, threads=threads,
        )  # fmt: skip
        self.outputs = classes if kind == MULTINOMIAL else len(y)
        self.infimum = samples.task.infimum(samples.target[rows], samples.weights[rows])
        count = len(ridges) * len(train)
        self.order: list[list[int]] = [[] for _ in range(count)]
        self.rows: list[list[Row]] = [[] for _ in range(count)]
        self.losses: list[Array] = []
        self._record(range(count))

    def advance(self) -> bool:
        """One more feature for each problem; False where none can use one."""
        entered = np.empty(len(self.order), np.int32)
        if not self.kernel.advance(entered=entered):
            return False
        moved = np.flatnonzero(entered >= 0)
        for k in moved:
            self.order[k].append(int(entered[k]))
        self._record(moved)
        return True

    def path(self, ridge: int, fold: int = 0) -> ModelPath:
        """The models of all sizes of one problem; fold 0 is that of all samples."""
        k = ridge * self.shape[1] + fold
        rows, order = self.rows[k], np.array(self.order[k], dtype=np.intp)
        with np.errstate(over="ignore", under="ignore"):
            value = self.unit * (self.unit * np.array([row[0] for row in rows]))
        weights = [self.unit * coef.T for _, coef, _ in rows]
        intercept = self.unit * np.array([c for _, _, c in rows])
        used, scale = [order[:size] for size in range(len(rows))], np.empty(self.p)
        self.kernel.scales(out=scale)
        gap = value - self.infimum
        return ModelPath(np.arange(float(len(rows))), value, gap, used, weights, intercept, max(len(order), 1), scale)

    def _record(self, moved: Any) -> None:
        values, losses = np.empty(len(self.order)), np.empty(len(self.order))
        self.kernel.read(values=values, losses=losses)
        for k in moved:
            if self.keep or k % self.shape[1] == 0:
                coef, intercept = np.empty((len(self.order[k]), self.outputs)), np.empty(self.outputs)
                self.kernel.coefficients(problem=int(k), coef=coef, intercept=intercept)
                self.rows[k].append((float(values[k]), coef, intercept))
        self.losses.append(losses.reshape(self.shape)[:, 1:])


def _weights(weights: Array, folds: Sequence[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
    """The rows with weights, those that a fold holds out side by side; their weights in training, on all samples and in
    each fold, and when they are held out."""
    count = len(weights)
    train, held = np.zeros((2, 1 + len(folds), count))
    train[0] = weights
    for k, (kept, out) in enumerate(folds, 1):
        train[k], held[k] = (weights * np.bincount(part, minlength=count) for part in (kept, out))
    rows = np.flatnonzero(weights > 0)
    rows = rows[np.argsort((held > 0).argmax(axis=0)[rows], kind="stable")]
    return rows, np.ascontiguousarray(train[:, rows]), np.ascontiguousarray(held[:, rows])


def _target(task: Task, target: Array) -> tuple[Array, float, int, int, float]:
    """Targets (outputs, samples), their unit, the kernel's number of the loss, how many classes, Huber's width."""
    if isinstance(task, Classification):
        classes = len(task.classes)
        return (
            np.array([target], dtype=np.float64),
            1.0,
            KINDS["log_loss"] if classes == 2 else MULTINOMIAL,
            classes,
            1.0,
        )
    y, unit = np.ascontiguousarray(np.reshape(target, (len(target), -1)).T), 1.0
    if task.loss != "poisson":  # a power of two, so that squares are numbers, and nothing is rounded
        unit = 2.0 ** min(math.frexp(float(np.abs(y).max()))[1], 1000)
    return y / unit, unit, KINDS[task.loss], 1, task.width / unit


def _columns(X: Any) -> tuple[Array, Array, Array]:
    """The values, row numbers and starts of sparse columns."""
    X = X.tocsc(copy=not X.has_canonical_format)
    X.sum_duplicates()
    return X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64, copy=False)
