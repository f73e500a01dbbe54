"""Models with a penalty on the sum of absolute coefficients: Newton's method with coordinate descent on few columns.

For the penalty lam, the objective is f(X b + c) + lam ||b||_1 + l2/2 ||b||^2. Every turn takes the columns in use and
those along which it falls, minimises quadratic models of f over them, and bounds by the conjugate of f how far the
minimum is below: with the gradient g of f and u = g min(1, lam / max |X'g|), where sum(u) = 0 for the intercept's sake,

    minimum >= -f*(u)                                    without a ridge,
    minimum >= -f*(g) - sum (|X'g| - lam)_+^2 / (2 l2)   with one.

The bound is an estimate in floats; `atomic.BallSolver` has the result proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit.estimators.base import Array
from pursuit.estimators.design import Design, Loss

TURNS, MODELS, PASSES = 100, 12, 200
"""The most turns, quadratic models in a turn, and passes of coordinate descent for each."""
LEAST_CURVATURE = 1e-4
"""Curvatures of samples are raised to this fraction of the largest, so that no column is flat in a model."""


@dataclass(eq=False)
class Descent:
    """The minimum for one penalty after the other; each starts at the last."""

    f: Loss
    design: Design
    l2: float
    b: Array = field(init=False)
    c: float = 0.0
    gap: float = math.inf
    """The estimate of how far the objective is above its minimum."""
    value: float = math.inf
    turns: int = 0

    def __post_init__(self) -> None:
        self.b, self.eta = np.zeros(self.design.q), self.f.space.zeros()
        X: Any = self.design.X
        self.X: Any = X.tocsc() if bool(sp.issparse(X)) else np.asfortranarray(X)
        self.one = float(self.design.fit_intercept)

    def minimise(self, penalty: float, tol: float) -> None:
        """Lower the objective until the estimated gap is at most `tol` times it."""
        for _ in range(TURNS):
            self.turns += 1
            loss, grad = self.f.value_and_grad(self.eta)
            slopes = np.asarray(self.X.T @ grad)
            self.value = loss + self._price(self.b, penalty)
            self.gap = max(self.value - self._lower(grad, slopes, penalty), 0.0)
            outside = np.flatnonzero((self.b == 0) & (np.abs(slopes) > penalty))
            if self.gap <= tol * abs(self.value) or (not self.gap < math.inf and not len(outside)):
                return
            used = np.flatnonzero(self.b)
            most = max(100, 2 * len(used))
            if len(outside) > most:
                outside = outside[np.argpartition(-np.abs(slopes[outside]), most)[:most]]
            if not self._improve(np.union1d(used, outside), penalty, 1e-3 * min(tol * self.value, self.gap)):
                return

    def _price(self, b: Array, penalty: float) -> float:
        return float(penalty * np.abs(b).sum() + 0.5 * self.l2 * (b @ b))

    def _lower(self, grad: Array, slopes: Array, penalty: float) -> float:
        """A lower bound on the minimum, up to rounding."""
        u = grad - self.one * grad.mean()
        largest = float(np.abs(slopes).max())
        if self.l2:
            excess = np.maximum(np.abs(slopes) - penalty, 0.0)
            conjugate = self.f.conjugate(u)
            beyond = float(excess @ excess) / (2.0 * self.l2)
        else:
            conjugate, beyond = self.f.conjugate(u * min(1.0, penalty / largest) if largest > 0 else u), 0.0
        return -math.inf if conjugate is None else -conjugate - beyond

    def _improve(self, columns: Array, penalty: float, enough: float) -> bool:
        """Minimise over these columns and the intercept; False where nothing falls any more."""
        X: Any = self._with_ones(columns)
        count = len(columns)
        b = np.append(self.b[columns], self.c)
        prices, ridges = np.full(count + 1, penalty), np.full(count + 1, self.l2)
        prices[-1] = ridges[-1] = 0.0
        sparse = bool(sp.issparse(X))
        entries = (X.data, X.indices, X.indptr.astype(np.int64)) if sparse else (X.ravel(order="F"), None, None)
        fell = False
        for _ in range(MODELS):
            loss, grad = self.f.value_and_grad(self.eta)
            metric = self.f.hessian(self.eta)
            curvature = np.broadcast_to(metric(np.ones(len(grad))), grad.shape)
            h = np.maximum(curvature, LEAST_CURVATURE * curvature.max())
            new, v = b.copy(), grad.copy()
            native.core().descend(
                *entries, prices=prices, ridges=ridges, h=h, tol=0.1 * enough, most=PASSES, v=v, b=new
            )
            step, value = new - b, loss + self._price(b[:-1], penalty)
            along = np.asarray(X @ step)
            promised = float(grad @ along) + self._price(new[:-1], penalty) - self._price(b[:-1], penalty)
            t = 1.0
            while t > 1e-10:
                moved = b + t * step
                now = self.f.value(self.eta + t * along) + self._price(moved[:-1], penalty)
                if now <= value + 1e-3 * t * promised:
                    break
                t *= 0.5
            else:
                break
            b, self.eta, fell = moved, self.eta + t * along, fell or now < value
            if not value - now > enough:
                break
        self.b[columns], self.c = b[:-1], float(b[-1])
        return fell

    def _with_ones(self, columns: Array) -> Any:
        """These columns, and one for the intercept: of ones, or of zeros where there is none."""
        ones: Any = np.full((self.X.shape[0], 1), self.one)
        if bool(sp.issparse(self.X)):
            return sp.hstack([self.X[:, columns], sp.csc_array(ones)], format="csc")
        return np.asfortranarray(np.hstack([self.X[:, columns], ones]))
