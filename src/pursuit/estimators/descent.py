"""Models with a penalty on the norms of blocks of coefficients: Newton's method with coordinate descent on few blocks.
Least squares on dense columns are a kernel, `LeastSquaresDescent`.

For the penalty lam, the objective is f(X b + c) + lam sum_k w_k ||b_k|| + l2/2 ||b||^2. A block is one coefficient
(w is 1) or those of a group (w is the root of its size). Every turn takes the blocks in use and those along which it
falls, minimises quadratic models of f over them, and bounds by the conjugate of f how far the minimum is below: with
the gradient g of f, s_k = ||X_k'g|| / w_k and u = g min(1, lam / max s), where sum(u) = 0 for the intercept's sake,

    minimum >= -f*(u)                                          without a ridge,
    minimum >= -f*(g) - sum w_k^2 (s_k - lam)_+^2 / (2 l2)     with one.

The bound is an estimate in floats; `balls.BallSolver` has the result proved.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit.estimators.base import Array
from pursuit.estimators.design import Design, Loss
from pursuit.objectives import LeastSquares

TURNS, MODELS, PASSES = 100, 12, 1000
"""The most turns, quadratic models in a turn, and passes of coordinate descent for each."""
LEAST_CURVATURE = 1e-4
"""Curvatures of samples are raised to this fraction of the largest, so that no column is flat in a model."""


def norm_of(b: Array, labels: Array | None) -> float:
    """The sum of sizes, or that of the weighted norms of groups."""
    if labels is None:
        return float(np.abs(b).sum())
    return float(np.sqrt(np.bincount(labels, b * b)) @ np.sqrt(np.bincount(labels)))


@dataclass(eq=False)
class Minima:
    """The minimum for one penalty after the other; each starts at the last. `labels` are the numbers of groups."""

    f: Loss
    design: Design
    l2: float
    labels: Array | None = None
    b: Array = field(init=False)
    c: float = 0.0
    gap: float = math.inf
    """The estimate of how far the objective is above its minimum."""
    value: float = math.inf
    turns: int = 0
    penalty: float = 0.0
    """That of the last minimum, whose coefficients have this norm; and how penalties change with it."""
    norm: float = 0.0
    rate: float = 0.0

    def minimise(self, penalty: float, tol: float) -> None:
        """Lower the objective until the estimated gap is at most `tol` times it."""
        raise NotImplementedError

    def reach(self, radius: float, penalty: float, tol: float, fitted: float) -> Array:
        """The minimum over the ball of this radius: that with the penalty at which the norm is the radius, from a
        penalty at which it is smaller. The norm falls along the path of penalties, and between two of its points both
        coefficients and norms are nearly linear. A loss below `fitted` is not lowered."""
        high, norm_high, low, norm_low, last = penalty, self.norm, 0.0, math.inf, 0.0
        for turn in itertools.count():
            guess = penalty + self.rate * (radius - self.norm) if self.rate else 0.8 * penalty
            share = 0.1 if guess < 0 else 0.3  # of a radius that may be beyond all norms
            least = low + 1e-4 * (high - low) if low else max(share * high, min(0.3 * high, last))
            if low and turn % 4 == 3:
                guess = math.sqrt(low * high)
            before, norm_before, penalty = penalty, self.norm, min(max(guess, least), high - 1e-4 * (high - low))
            self.minimise(penalty, 1e-2 * tol)
            self.value -= penalty * self.norm
            near = penalty * abs(radius - self.norm) <= tol * abs(self.value)
            last = 0.5 * tol * abs(self.value) / radius  # the smallest penalty that may be needed
            lost = not math.isfinite(self.value + self.norm)  # beyond the range of floats
            if lost or near or (self.norm <= radius and self.value <= fitted) or high - low <= 1e-9 * high:
                break
            if self.norm < radius:
                high, norm_high = penalty, self.norm
            else:
                low, norm_low = penalty, self.norm
            if low:
                self.rate = (low - high) / (norm_low - norm_high)
            elif self.norm != norm_before:
                self.rate = (penalty - before) / (self.norm - norm_before)
        if self.norm <= radius:
            self.minimise(penalty, 1e-16)  # slopes, to more digits
            self.value -= penalty * self.norm
            return self.b
        b = self.b * (radius / self.norm)
        self.value = self.value_at(b, self.c)
        return b

    def value_at(self, b: Array, c: float) -> float:
        """The loss and the ridge."""
        return self.f.value(self.design.X @ b + c) + 0.5 * self.l2 * float(b @ b)


@dataclass(eq=False)
class Descent(Minima):
    """Minima of any loss, by Newton's steps on a working set."""

    def __post_init__(self) -> None:
        q = self.design.q
        self.b, self.eta = np.zeros(q), self.f.space.zeros()
        X: Any = self.design.X
        X = self.X = X.tocsc() if bool(sp.issparse(X)) else np.asfortranarray(X)
        sparse = bool(sp.issparse(X))
        self.entries = (X.data, X.indices, X.indptr.astype(np.int64)) if sparse else (X.T.reshape(-1), None, None)
        labels = np.arange(q) if self.labels is None else self.labels
        self.order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
        self.starts, self.weight = np.r_[0, np.cumsum(sizes)], np.sqrt(sizes)
        self._look()

    def minimise(self, penalty: float, tol: float) -> None:
        likely, self.penalty = min(penalty, max(2 * penalty - self.penalty, 0.0)), penalty  # the strong rule
        for turn in range(TURNS):
            self.turns += 1
            sizes = self._norms(self.b)
            self.norm, self.value = float(sizes @ self.weight), self._loss + self._price(self.b, penalty)
            self.gap = max(self.value - self._lower(penalty), 0.0)
            outside = np.flatnonzero((sizes == 0) & (self._steepness > likely))
            more = bool(((sizes == 0) & (self._steepness > penalty)).any())
            if turn and (self.gap <= tol * abs(self.value) or (not self.gap < math.inf and not more)):
                return
            used = np.flatnonzero(sizes)
            most = max(100, 2 * len(used))
            if len(outside) > most:
                outside = outside[np.argpartition(-self._steepness[outside], most)[:most]]
            enough = 0.1 ** (1 + 2 * turn) * min(tol * self.value, self.gap)
            if not self._improve(np.union1d(used, outside), penalty, enough):
                return
            self._look()
            likely = penalty

    def _look(self) -> None:
        """The loss, its gradient, and how steep it is along each block, beside the block's weight."""
        self._loss, self._grad = self.f.value_and_grad(self.eta)
        self._steepness = self._norms(np.asarray(self.X.T @ self._grad)) / self.weight

    def _norms(self, b: Array) -> Array:
        """The norm of each block."""
        if self.labels is None:
            return np.abs(b)
        return np.sqrt(np.add.reduceat(b[self.order] ** 2, self.starts[:-1]))

    def _price(self, b: Array, penalty: float) -> float:
        return float(penalty * (self._norms(b) @ self.weight) + 0.5 * self.l2 * (b @ b))

    def _lower(self, penalty: float) -> float:
        """A lower bound on the minimum, up to rounding."""
        u = self._grad
        if self.design.fit_intercept:  # shrunk until its sum is 0, so that the conjugate remains finite
            up, down = np.maximum(u, 0.0), np.maximum(-u, 0.0)
            most = max(min(up.sum(), down.sum()), 1e-300)
            u = up * (most / max(up.sum(), most)) - down * (most / max(down.sum(), most))
        largest = float(self._steepness.max())
        if self.l2:
            excess = self.weight * np.maximum(self._steepness - penalty, 0.0)
            conjugate = self.f.conjugate(u)
            beyond = float(excess @ excess) / (2.0 * self.l2)
        else:
            conjugate, beyond = self.f.conjugate(u * min(1.0, penalty / largest) if largest > 0 else u), 0.0
        return -math.inf if conjugate is None else -conjugate - beyond

    def _improve(self, blocks: Array, penalty: float, enough: float) -> bool:
        """Minimise over these blocks and the intercept; False where nothing falls any more."""
        q, sizes = self.design.q, np.diff(self.starts)[blocks]
        columns = np.concatenate([self.order[:0], *(self.order[self.starts[k] : self.starts[k + 1]] for k in blocks)])
        prices, ridges = penalty * self.weight[blocks], np.full(len(blocks), self.l2)
        if self.design.fit_intercept:  # column q is of ones
            columns, sizes = np.append(columns, q), np.append(sizes, 1)
            prices, ridges = np.append(prices, 0.0), np.append(ridges, 0.0)
        everything, fell = np.append(self.b, self.c), False
        price = self._price(self.b, penalty)
        for _ in range(MODELS):
            loss, v = self.f.value_and_grad(self.eta)
            curvature = np.broadcast_to(self.f.hessian(self.eta)(np.ones(len(v))), v.shape)
            h = np.maximum(curvature, LEAST_CURVATURE * curvature.max())
            b, new, slope, along = everything[columns], everything[columns], v.copy(), np.zeros(len(v))
            native.core().descend(
                *self.entries, columns=columns, starts=np.r_[0, np.cumsum(sizes)], prices=prices, ridges=ridges, h=h,
                tol=0.1 * enough, most=PASSES, v=slope, b=new, along=along,
            )  # fmt: skip
            moved = everything.copy()
            moved[columns] = new
            promised = float(v @ along) + self._price(moved[:q], penalty) - price
            t, value = 1.0, loss + price
            while t > 1e-10:
                moved[columns] = b + t * (new - b)
                cost = self._price(moved[:q], penalty)
                now = self.f.value(self.eta + t * along) + cost
                if now <= value + 1e-3 * t * promised:
                    break
                t *= 0.5
            else:
                break
            everything, price, self.eta, fell = moved, cost, self.eta + t * along, fell or now < value
            if not value - now > enough or isinstance(self.f, LeastSquares):  # whose model is exact
                break
        self.b, self.c = everything[:q], float(everything[q])
        return fell


@dataclass(eq=False)
class LeastSquaresDescent(Minima):
    """Minima of least squares on dense columns: `native/lasso_path.h`.

    Samples are multiplied by the roots of their weights, and the columns of a group are rotated until they are
    orthogonal to one another. Centred columns leave the intercept to the mean of the targets.
    """

    def __post_init__(self) -> None:
        y, X, weights = self.f.y, self.design.X, self.f.weights
        self.unit = weights if isinstance(weights, float) else 1.0
        if self.design.fit_intercept:
            self.c = float(np.average(y, weights=np.broadcast_to(weights, y.shape)))
            y = y - self.c
        if not isinstance(weights, float):
            X, y = X * np.sqrt(weights)[:, None], y * np.sqrt(weights)
        columns, prices = np.ascontiguousarray(X.T), np.ones(self.design.q)
        self.b, self.starts = np.zeros(self.design.q), np.arange(self.design.q + 1)
        self.turned: list[tuple[Array, Array]] = []
        if self.labels is not None:
            columns, prices = self._rotate(columns, self.labels)
        self.prices = prices
        self.kernel = native.core().LassoPath(
            columns=columns, starts=self.starts, prices=prices, y=np.ascontiguousarray(y), l2=self.l2 / self.unit
        )

    @staticmethod
    def serves(f: Loss, design: Design) -> bool:
        """Whether these are least squares on dense columns."""
        return isinstance(f, LeastSquares) and not sp.issparse(design.X)

    def _rotate(self, columns: Array, labels: Array) -> tuple[Array, Array]:
        """The columns of each group, orthogonal to one another, groups of one size side by side; and their prices."""
        sizes = np.bincount(labels)
        order, first = np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes
        rotated, counts = [], []
        for size in np.unique(sizes):
            at = order[first[sizes == size][:, None] + np.arange(size)]
            parts = columns[at]
            turn = np.linalg.eigh(parts @ parts.transpose(0, 2, 1))[1]
            rotated.append((turn.transpose(0, 2, 1) @ parts).reshape(at.size, -1))
            counts.append(np.full(len(at), size))
            self.turned.append((at, turn))
        each = np.concatenate(counts)
        self.starts = np.r_[0, np.cumsum(each)]
        return np.concatenate(rotated), np.sqrt(each)

    def minimise(self, penalty: float, tol: float) -> None:
        turns, value, gap = self.kernel.minimise(penalty=penalty / self.unit, tol=tol, most=TURNS)
        self.turns, self.value, self.gap = self.turns + 1 + turns, self.unit * value, self.unit * gap
        found = np.empty(len(self.b))
        self.kernel.coefficients(out=found)
        norms = np.abs(np.hypot.reduceat(found, self.starts[:-1]))
        self.penalty, self.norm, self.b, first = penalty, float(norms @ self.prices), found, 0
        if self.turned:
            self.b = np.empty(len(found))
        for at, turn in self.turned:
            part, first = found[first : first + at.size].reshape(*at.shape, 1), first + at.size
            self.b[at] = (turn @ part)[..., 0]
