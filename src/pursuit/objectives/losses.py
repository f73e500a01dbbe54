"""Losses of statistics: Huber, logistic, Poisson, multinomial."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import number, require
from pursuit.arrays import Array, Indices, Small, Space, everywhere, host
from pursuit.linalg.vectors import EPS
from pursuit.metrics import Diagonal, Metric, Operator
from pursuit.objectives.base import DataLoss, total, x_log_x

TIED = 1e2
"""A sum of probabilities is right if its error is below this, in units of roundoff."""

KINK = 1e-7
"""Residuals whose distance from the width of Huber's loss is below this fraction of it lie at a kink."""


class Huber(DataLoss):
    r"""Least squares that is linear beyond `width`: :math:`f(x)=\sum_i s_i h(x_i-y_i)` with
    :math:`h(r) = r^2/2` for :math:`|r|\le w` and :math:`w|r| - w^2/2` beyond. L is the largest weight :math:`s_i`, 1
    without `weights`.

    >>> import pursuit as ps
    >>> ps.Huber([0.0], width=1.0).value_and_grad(np.array([3.0]))
    (2.5, array([1.]))
    """

    infimum = 0.0
    target = "numbers"
    _words = "Huber's loss of the data ({size} entries{weighted}), quadratic up to {f.width:.6g}"

    def __init__(self, y: object, width: float, weights: object = None) -> None:
        positive = 0 < number(width) < math.inf
        require(positive, "width", width, "the positive residual beyond which the loss is linear")
        self.width = float(width)
        super().__init__(y, weights)

    def _set_constants(self) -> None:
        self.L, self.dual_range = self._largest_weight, (-self.width * self.weights, self.width * self.weights)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        r = x - self.y
        clipped = self.space.xp.clip(r, -self.width, self.width)
        grad = self.weights * clipped
        return self.space.dot(grad, r) - 0.5 * self.space.dot(grad, clipped), grad

    def hessian(self, x: Array) -> Metric:
        xp = self.space.xp
        return Diagonal(self.weights * xp.astype(xp.abs(x - self.y) <= self.width, self.space.dtype))

    def _conjugate_terms(self, u: Array) -> tuple[Array, ...]:
        return 0.5 * u * (u / self.weights), u * self.y

    def dual_room(self, u: Small) -> Small:
        share = u / (self.width * self._host_weights)
        return np.asarray(self.width * self._host_weights * np.maximum(1.0 - share * share, 0.0))

    def data_slopes(self, x: Array) -> Small:
        quadratic = np.abs(host(x) - host(self.y)) <= self.width
        return np.asarray(-self._host_weights * quadratic, dtype=np.float64)

    def twice_differentiable(self, x: Array) -> bool:
        beyond = np.abs(host(x) - host(self.y)) - self.width
        return not (np.abs(beyond) <= KINK * self.width).any()

    def __repr__(self) -> str:
        return self._repr(f"width={self.width:g}")


class Logistic(DataLoss):
    r"""Logistic loss of labels y in {-1, 1}: :math:`f(x) = \sum_i s_i \log(1 + e^{-y_i x_i})`. L is a quarter of the
    largest weight :math:`s_i`, 1/4 without `weights`.

    Labels may be -1 and 1, 0 and 1, or booleans; both classes must occur. They take the dtype of the atoms.

    >>> import pursuit as ps
    >>> f = ps.Logistic([0, 1])
    >>> round(f.value(np.zeros(2)), 4), f.value(np.array([1e3, 1e3]))
    (1.3863, 1000.0)
    """

    infimum = 0.0
    target = "labels"
    _logarithmic = True
    _words = "the logistic loss of {size} labels{weighted}"

    def _check_data(self) -> None:
        xp = self.space.xp
        low, high = float(xp.min(self.y)), float(xp.max(self.y))
        if low == high:
            raise ValueError(f"y holds the single class {low:g}; logistic regression needs two.")
        if (low, high) not in {(-1.0, 1.0), (0.0, 1.0)} or not everywhere((self.y == low) | (self.y == high)):
            raise ValueError(f"y holds labels from {low:g} to {high:g}; give -1 and 1, 0 and 1, or booleans.")
        self.y, self._labels = self.y if low == -1.0 else 2.0 * self.y - 1.0, True

    def _set_constants(self) -> None:
        xp, s, self.L = self.space.xp, self.weights, 0.25 * self._largest_weight
        self.dual_range = s * xp.where(self.y > 0, -1.0, 0.0 * self.y), s * xp.where(self.y > 0, 0.0 * self.y, 1.0)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        xp = self.space.xp
        margin = self.y * x
        decay = xp.exp(-xp.abs(margin))
        s, negative = self.weights, xp.where(margin < 0, margin, 0.0 * margin)
        wrong = xp.where(margin < 0, 1.0 / (1.0 + decay), decay / (1.0 + decay))  # the probability of the other label
        return total(xp, s * (xp.log1p(decay) - negative)), -s * self.y * wrong

    def hessian(self, x: Array) -> Metric:
        xp = self.space.xp
        decay = xp.exp(-xp.abs(x))
        return Diagonal(self.weights * (decay / ((1.0 + decay) * (1.0 + decay))))

    def _conjugate_terms(self, u: Array) -> tuple[Array, ...]:
        xp, s = self.space.xp, self.weights
        p = -self.y * (u / s)  # the probability of the other label
        rest = xp.where(p < 1, (1.0 - p) * xp.log1p(-xp.where(p < 1, p, 0.0 * p)), 0.0 * p)
        return s * x_log_x(xp, p), s * rest

    def dual_room(self, u: Small) -> Small:
        p = np.abs(u) / self._host_weights
        return np.asarray(self._host_weights * np.maximum(p * (1.0 - p), 0.0))

    def data_slopes(self, x: Array) -> Small:
        margin = host(self.y) * host(x)
        wrong = 1.0 / (1.0 + np.exp(np.clip(margin, -700.0, 700.0)))
        return np.asarray(-self._host_weights * wrong * (1.0 - margin * (1.0 - wrong)))


class Poisson(DataLoss):
    r"""Poisson loss with log link: :math:`f(x) = \sum_i s_i (e^{x_i} - y_i x_i)`, for counts :math:`y_i\ge 0` and
    `weights` :math:`s_i`, 1 where they are left out.

    It is convex, but smooth only on bounded sets: L is None, and updates that need it find it by backtracking.

    >>> import pursuit as ps
    >>> f = ps.Poisson([0, 2])
    >>> f.value_and_grad(np.zeros(2)), round(f.infimum, 4)
    ((2.0, array([ 1., -1.])), 0.6137)
    """

    _logarithmic = True
    _words = "the Poisson loss of {size} counts{weighted}"

    def _check_data(self) -> None:
        if not everywhere(self.y >= 0):
            raise ValueError("y holds a negative count; Poisson needs y >= 0.")

    def _set_constants(self) -> None:
        # From just below the root of the largest number on, e^x goes on along its tangent: convex and huge, and its
        # square and its products with x are not infinite.
        self._ceiling = 0.45 * math.log(float(self.space.xp.finfo(self.y.dtype).max))
        self._linear = self.weights * self.y
        self.dual_range = -self._linear, self.weights * math.exp(self._ceiling) - self._linear
        self.infimum = -(self.conjugate_above(np.zeros(self.y.shape), np.zeros(self.y.shape)) or 0.0)

    def _clip(self, x: Array) -> Array:
        return self.space.xp.clip(x, -math.inf, self._ceiling)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        xp, clipped = self.space.xp, self._clip(x)
        rate = self.weights * xp.exp(clipped)
        value = total(xp, rate) + self.space.dot(rate, x - clipped) - self.space.dot(self._linear, x)
        return value, rate - self._linear

    def hessian(self, x: Array) -> Metric:
        return Diagonal(self.weights * self.space.xp.exp(self._clip(x)))

    def _conjugate_terms(self, u: Array) -> tuple[Array, ...]:
        rate, s = u + self._linear, self.weights
        return s * x_log_x(self.space.xp, rate / s), -rate

    def dual_point(self, u: Small) -> Small:
        return np.clip(u, *_inside(host(self._linear), self._host_range))

    def dual_room(self, u: Small) -> Small:
        return np.maximum(u + host(self._linear), 0.0)

    def conjugate_above(self, u: Small, radius: Small) -> float | None:
        return super().conjugate_above(u, radius + _shift_error(u, host(self._linear)))


def _inside(linear: Small, ends: tuple[Small, Small]) -> tuple[Small, Small]:
    """The range -linear <= u of a conjugate without the points that may be in it by the rounding of `linear` only."""
    return ends[0] + 4.0 * EPS * linear, ends[1]


def _shift_error(u: Small, linear: Small) -> Small:
    """The rounding error of u + linear, where a logarithm magnifies it."""
    return np.where(linear > 0, 2.0 * EPS * (np.abs(u) + linear), 0.0)


class Multinomial(DataLoss):
    r"""Softmax loss: :math:`f(x) = \sum_i s_i (\log\sum_k e^{x_{ik}} - \langle y_i, x_i\rangle)` on matrices x of n
    rows and K columns, one score per class. L is half the largest weight :math:`s_i`, 1/2 without weights.

    y are n labels 0..K-1, or (n, K) one-hot rows (or probabilities that sum to 1); there is one weight per row.

    >>> import pursuit as ps
    >>> round(ps.Multinomial([0, 1, 2]).value(np.zeros((3, 3))), 4)
    3.2958
    """

    infimum = 0.0
    target = "classes"
    _logarithmic = True
    _words = "the softmax loss of {f.space.shape[0]:,} labels of {f.space.shape[1]:,} classes{weighted}"
    _per_row = True

    def _check_data(self) -> None:
        y, xp = self.y, self.space.xp
        if y.ndim == 1:
            labels = np.asarray([int(v) for v in y])
            if not (labels == np.asarray([float(v) for v in y])).all() or labels.min() < 0:
                raise ValueError("y holds labels that are not 0, 1, 2, ...; encode the classes as integers from 0.")
            if len(set(labels)) < 2:
                raise ValueError(f"y holds the single class {labels[0]}; a multinomial model needs two or more.")
            y, self._labels = self.space.put(np.eye(labels.max() + 1)[labels]), True
        if y.ndim != 2 or y.shape[1] < 2:
            raise ValueError(f"y has shape {tuple(y.shape)}; give (n,) labels or (n, K) one-hot rows with K >= 2.")
        if not everywhere(y >= 0) or float(xp.max(xp.abs(xp.sum(y, axis=1) - 1.0))) > 1e-5:
            raise ValueError("y has a row that is not a probability distribution; rows must be >= 0 and sum to 1.")
        self.y, self.space = y, Space.of(y)

    def _set_constants(self) -> None:
        self.L, self._linear = 0.5 * self._largest_weight, self.weights * self.y
        self.dual_range = -self._linear, self.weights - self._linear

    def _softmax(self, x: Array) -> tuple[Array, Array, Array]:
        xp = self.space.xp
        shifted = x - xp.max(x, axis=1, keepdims=True)
        powers = xp.exp(shifted)
        sums = xp.sum(powers, axis=1, keepdims=True)
        return shifted, sums, powers / sums

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        (shifted, sums, p), s, xp = self._softmax(x), self.weights, self.space.xp
        return total(xp, s * xp.log(sums)) - self.space.dot(self._linear, shifted), s * p - self._linear

    def hessian(self, x: Array) -> Metric:
        xp = self.space.xp
        _, _, p = self._softmax(x)
        weighed = self.weights * p
        return Operator(lambda v: weighed * (v - xp.sum(p * v, axis=1, keepdims=True)), self.space.shape)

    def _conjugate_terms(self, u: Array) -> tuple[Array, ...]:
        return (self.weights * x_log_x(self.space.xp, (u + self._linear) / self.weights),)

    def conjugate(self, u: Array) -> float:
        sums = self.space.xp.sum(u, axis=1, keepdims=True) / self.weights
        return (
            super().conjugate(u)
            if float(self.space.xp.max(self.space.xp.abs(sums))) <= TIED * self.space.eps
            else math.inf
        )

    def dual_point(self, u: Small) -> Small:
        """Rows that sum to 0: their largest probability takes up what is missing, so that it stays one."""
        u = np.clip(u, *_inside(host(self._linear), self._host_range))
        rows, largest = np.arange(len(u)), (u + host(self._linear)).argmax(axis=1)
        u[rows, largest] = 0.0
        u[rows, largest] = -u.sum(axis=1)
        return u

    def dual_room(self, u: Small) -> Small:
        return np.asarray(np.maximum(u + host(self._linear), 0.0) / u.shape[1])

    def tied_entries(self, u: Small) -> Indices:
        classes = u.shape[1]
        largest = (u + host(self._linear)).argmax(axis=1) + classes * np.arange(len(u))
        return np.repeat(largest, classes)

    def conjugate_above(self, u: Small, radius: Small) -> float | None:
        linear = host(self._linear)
        largest = (u + linear).max(axis=1, keepdims=True)  # stays a probability however the others move
        if not everywhere(largest * u.shape[1] >= 0.9 * self._host_weights):
            return math.inf
        return super().conjugate_above(u, radius + _shift_error(u, linear))
