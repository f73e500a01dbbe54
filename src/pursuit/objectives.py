"""The functions to minimise: smooth convex functions on H, with their constants where these are known.

An objective of your own must have one method, `value_and_grad(x)`. It may also know `L` and `mu` (smoothness and strong
convexity in the norm of H), `infimum` (a lower bound on f over all of H, which is a certificate at no cost),
`hessian(x)` (for exact line searches and Newton steps), `conjugate(u)` (for certificates over spans and cones) and
`space` (shape, dtype and device of the vectors of H).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from pursuit._arrays import (
    Array,
    Space,
    check_function,
    everywhere,
    host,
    is_number,
    number,
    real_array,
    sparse_matrix,
    told,
    whole,
)
from pursuit.linalg.lanczos import Memory, extreme_eigenvalues
from pursuit.metrics import Diagonal, Metric, Operator, Stacked

MAX_EXACT_CHECK = 512
"""All eigenvalues of a sparse matrix with at most this many rows are computed, to see that none is negative."""

LANCZOS_ROUNDS = 8
"""Rounds of four Lanczos steps that look for a negative eigenvalue of a larger one."""


class Objective:
    """A smooth convex function on H. Subclass it and write `value_and_grad`.

    >>> import numpy as np, pursuit as ps
    >>> class Quartic(ps.Objective):
    ...     def value_and_grad(self, x):
    ...         return float(np.sum(x**4)) / 4, x**3
    >>> ps.minimize(Quartic(), ps.conv(ps.Simplex(2))).x.round(3)
    array([0.5, 0.5])
    """

    L: float | None = None
    """Smoothness: f(y) <= f(x) + <grad f(x), y-x> + L/2 ||y-x||^2; None where infinite or unknown."""
    mu: float = 0.0
    """Strong convexity: the same with >= and mu; 0 where there is none or it is unknown."""
    infimum: float = -math.inf
    """A lower bound on f over all of H."""
    quadratic: bool = False
    """Whether the Hessian is constant."""
    space: Space | None = None
    """H, where the objective determines it."""
    exact: bool = True
    """Whether values and gradients are exact. From estimates nothing can be proved."""
    dual_range: tuple[Any, Any] | None = None
    """Bounds (low, high) on the entries of every u with a finite conjugate; None: there are none."""

    def begin(self) -> Objective:
        """The objective for one run: itself, or a fresh copy where it has a memory."""
        return self

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        """f(x) and the gradient at x, a new array of x's shape."""
        raise NotImplementedError(f"{type(self).__name__} must define value_and_grad(x).")

    def value(self, x: Array) -> float:
        """f(x)."""
        return self.value_and_grad(x)[0]

    def hessian(self, x: Array) -> Metric | None:
        """The second derivative at x as a linear map, or None where it is not known."""
        return None

    def conjugate(self, u: Array) -> float | None:
        """The conjugate f*(u) = sup_x <u, x> - f(x), or an upper bound on it; infinite outside its domain, and None
        where it is not known. Every u proves that f(x) >= <u, x> - f*(u)."""
        return None

    def __repr__(self) -> str:
        return _repr(self)


def smallest_eigenvalue(H: sp.csc_array) -> float:
    """The smallest eigenvalue of a sparse symmetric matrix of norm at most 1; of a large one an upper bound on it, from
    a few Lanczos steps."""
    if H.shape[0] <= MAX_EXACT_CHECK:
        return float(np.linalg.eigvalsh(H.toarray())[0])
    rounds = iter(range(LANCZOS_ROUNDS))

    def enough(*_: float) -> bool:
        return next(rounds, None) is None

    return -float(extreme_eigenvalues(lambda v: -(H @ v), H.shape[0], 1, Memory(), 0.5, enough).values[0])


def as_value(value: Any, name: str = "the value of f") -> float:
    """What a function of the user returned, as a number."""
    if not is_number(value):
        raise TypeError(f"{name} is {told(value)}; return one real number.")
    return float(value)


def _repr(f: Objective, *arguments: str) -> str:
    return f"{type(f).__name__}({', '.join(arguments)})"


def _size(name: str, a: Array) -> str:
    return f"{name} of {' x '.join(map(str, a.shape)) or 1} entries"


def _sum(xp: Any, a: Array) -> float:
    return float(xp.sum(a, dtype=xp.float64))


def _sum_above(space: Space, *terms: Array) -> float:
    """The sum of all entries, rounded up by more than the error that rounding may have made."""
    xp = space.xp
    return sum(_sum(xp, t) + ROUNDING * space.eps * _sum(xp, xp.abs(t)) for t in terms)


ROUNDING = 8.0
"""The rounding errors of a sum, in units of roundoff of the sum of absolute values."""


def _x_log_x(xp: Any, p: Array) -> Array:
    """p log p for p >= 0, and 0 at 0."""
    return p * xp.log(xp.where(p > 0, p, xp.ones_like(p)))


class _OnData(Objective):
    """A loss with data y of x's shape, and with weights s."""

    space: Space
    y: Array
    weights: Any = 1.0
    """The weights s: a number, or an array that multiplies with x."""

    def _read_weights(self, given: Any, shape: tuple[int, ...], each: str) -> None:
        """Take the user's weights, one for `each` part of y; `shape` is that of an array of them."""
        if given is None:
            return
        s = real_array(given, "weights")
        if s.ndim and s.shape != shape:
            shapes = f"{tuple(s.shape)}, y has {tuple(self.y.shape)}"
            raise ValueError(f"weights have shape {shapes}; give one weight per {each}, or one number.")
        if not everywhere(s > 0):
            raise ValueError("weights must be positive; leave out entries of weight zero instead.")
        self.weights = self.space.put(host(s)) if s.ndim else float(s)

    @property
    def _largest_weight(self) -> float:
        s = self.weights
        return s if isinstance(s, float) else float(self.space.xp.max(s))

    def _told(self, *arguments: str) -> str:
        """The repr, with the size of y, these arguments and the weights, if there are any."""
        s = self.weights
        weights = [] if isinstance(s, float) and s == 1.0 else [f"weights={s:g}" if isinstance(s, float) else "weights"]
        return _repr(self, _size("y", self.y), *arguments, *weights)

    def __repr__(self) -> str:
        return self._told()

    def _in_range(self, u: Array) -> bool:
        low, high = self.dual_range or (-math.inf, math.inf)
        return everywhere((u >= low) & (u <= high))


class _Entrywise(_OnData):
    """f(x) = sum_i s_i phi_i(x_i), with data y and weights s of x's shape. f*(u) = sum_i s_i phi_i*(u_i / s_i)."""

    def __init__(self, y: Any, weights: Any = None) -> None:
        self.y = real_array(y, "y")
        if self.y.size == 0:
            raise ValueError("y is empty; give at least one observation.")
        self.space = Space.of(self.y)
        self._read_weights(weights, self.y.shape, "entry")


class LeastSquares(_Entrywise):
    r"""Half the squared distance to y: :math:`f(x) = \frac12 \sum_i s_i (x_i - y_i)^2`.

    Without weights L = mu = 1, so a norm-corrective update is an exact one: matching pursuit and OMP.

    Parameters
    ----------
    y : array
        The target; its shape is that of H.
    weights : positive array of y's shape or a positive number, optional
        The :math:`s_i`.

    Examples
    --------
    >>> import pursuit as ps
    >>> f = ps.LeastSquares([3.0, 4.0])
    >>> f, f.value_and_grad(np.zeros(2))
    (LeastSquares(y of 2 entries), (12.5, array([-3., -4.])))
    """

    quadratic = True
    infimum = 0.0

    def __init__(self, y: Any, weights: Any = None) -> None:
        super().__init__(y, weights)
        s = self.weights
        self.metric = Diagonal(s)
        self.L = self._largest_weight
        self.mu = s if isinstance(s, float) else float(self.space.xp.min(s))

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        r = x - self.y
        grad = self.metric(r)
        return 0.5 * self.space.dot(r, grad), grad

    def hessian(self, x: Array) -> Metric:
        return self.metric

    def conjugate(self, u: Array) -> float:
        return _sum_above(self.space, 0.5 * u * (u / self.weights), u * self.y)


class Quadratic(Objective):
    r"""A convex quadratic :math:`f(x) = \frac12\langle x, Hx\rangle + \langle c, x\rangle`.

    Parameters
    ----------
    H : (n, n) array, sparse matrix or LinearOperator
        Symmetric and positive semidefinite. Arrays, and sparse matrices of up to 512 rows, are checked; of larger ones
        a negative eigenvalue is found if a few Lanczos steps find it, and an operator is taken on trust.
    c : (n,) array, optional
        Zero if left out.

    Examples
    --------
    >>> import pursuit as ps
    >>> f = ps.Quadratic(np.diag([1.0, 4.0]), [-1.0, 0.0])
    >>> f.L, round(f.mu, 12), f.value(np.array([1.0, 0.0]))                    # mu is rounded down
    (4.0, 1.0, -0.5)
    """

    quadratic = True
    space: Space

    def __init__(self, H: Any, c: Any = None) -> None:
        dense = not (sp.issparse(H) or isinstance(H, LinearOperator))
        self.H: Any = real_array(H, "H") if dense else sparse_matrix(H, "H") if sp.issparse(H) else H
        if self.H.ndim != 2 or self.H.shape[0] != self.H.shape[1] or self.H.shape[0] == 0:
            raise ValueError(f"H has shape {tuple(self.H.shape)}; give a square matrix.")
        if sp.issparse(H):
            self._check_sparse()
        n = int(self.H.shape[0])
        self.space = Space.of(self.H[:, 0]) if dense else Space.default((n,))
        self.c = self.space.zeros() if c is None else self.space.put(host(real_array(c, "c")))
        if tuple(self.c.shape) != (n,):
            raise ValueError(f"c has shape {tuple(self.c.shape)}, H has {tuple(self.H.shape)}; give c of length {n}.")
        if dense:
            self._read_spectrum()

    def _check_sparse(self) -> None:
        """Refuse a sparse H that is not finite or not symmetric, or for which a v with <v, Hv> < 0 is found: among all
        eigenvectors where H is small, among the vectors of a few Lanczos steps where it is large."""
        real_array(self.H.data, "H")
        if abs(self.H - self.H.T).max() > 1e-12 * abs(self.H).max():
            raise ValueError("H is not symmetric; give (H + H.T) / 2, which defines the same function.")
        n, size, smallest = self.H.shape[0], float(abs(self.H).sum(axis=0).max()), float(self.H.diagonal().min())
        if smallest >= 0 and size > 0:
            smallest = size * smallest_eigenvalue(self.H / size)
        if smallest < -1e-13 * n * size:
            raise ValueError(f"H has an eigenvalue of at most {smallest:.3g}; a convex quadratic needs H >= 0.")

    def _read_spectrum(self) -> None:
        """Find L and mu from the eigenvalues; refuse an H that is not symmetric and positive semidefinite."""
        xp, noise = self.space.xp, 1e2 * self.space.eps
        if float(xp.max(xp.abs(self.H - self.H.T))) > noise * float(xp.max(xp.abs(self.H))):
            raise ValueError("H is not symmetric; give (H + H.T) / 2, which defines the same function.")
        spectrum = xp.linalg.eigvalsh(self.H)
        smallest, largest = float(spectrum[0]), float(spectrum[-1])
        if smallest < -noise * self.H.shape[0] * abs(largest):
            raise ValueError(f"H has the eigenvalue {smallest:.3g}; a convex quadratic needs H >= 0.")
        self.L = largest if largest > 0 else None
        self.mu = max(smallest - noise * largest, 0.0)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        Hx = self.H @ x
        return 0.5 * self.space.dot(x, Hx) + self.space.dot(self.c, x), Hx + self.c

    def hessian(self, x: Array) -> Metric:
        return Operator(lambda v: self.H @ v, (int(self.H.shape[0]),))

    @cached_property
    def _eigen(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of a dense H."""
        return tuple(self.space.xp.linalg.eigh(self.H))

    def conjugate(self, u: Array) -> float | None:
        """1/2 <u - c, H^+ (u - c)> on c + range(H), for a dense H."""
        if self.L is None:
            return None
        xp, (spectrum, V) = self.space.xp, self._eigen
        noise = 1e2 * self.space.eps * self.L
        coordinates = V.T @ (u - self.c)
        flat, size = spectrum <= noise, self.space.norm(u) + self.space.norm(self.c)
        if self.space.norm(xp.where(flat, coordinates, 0.0 * coordinates)) > ROUNDING * self.space.eps * size:
            return math.inf
        curved = xp.where(flat, math.inf, spectrum - noise)  # lowered by its error
        return _sum_above(self.space, 0.5 * coordinates * (coordinates / curved))

    def __repr__(self) -> str:
        return _repr(self, _size("H", self.H))


class Huber(_Entrywise):
    r"""Least squares that is linear beyond `width`: :math:`f(x)=\sum_i s_i h(x_i-y_i)` with
    :math:`h(r) = r^2/2` for :math:`|r|\le w` and :math:`w|r| - w^2/2` beyond. L is the largest weight :math:`s_i`, 1
    without `weights`.

    >>> import pursuit as ps
    >>> ps.Huber([0.0], width=1.0).value_and_grad(np.array([3.0]))
    (2.5, array([1.]))
    """

    infimum = 0.0

    def __init__(self, y: Any, width: float, weights: Any = None) -> None:
        super().__init__(y, weights)
        if not 0 < number(width) < math.inf:
            raise ValueError(f"width is {told(width)}; give the positive residual beyond which the loss is linear.")
        self.width = float(width)
        self.L, self.dual_range = self._largest_weight, (-self.width * self.weights, self.width * self.weights)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        r = x - self.y
        held = self.space.xp.clip(r, -self.width, self.width)
        grad = self.weights * held
        return self.space.dot(grad, r) - 0.5 * self.space.dot(grad, held), grad

    def hessian(self, x: Array) -> Metric:
        xp = self.space.xp
        return Diagonal(self.weights * xp.astype(xp.abs(x - self.y) <= self.width, self.space.dtype))

    def conjugate(self, u: Array) -> float:
        return _sum_above(self.space, 0.5 * u * (u / self.weights), u * self.y) if self._in_range(u) else math.inf

    def __repr__(self) -> str:
        return self._told(f"width={self.width:g}")


class Logistic(_Entrywise):
    r"""Logistic loss of labels y in {-1, 1}: :math:`f(x) = \sum_i s_i \log(1 + e^{-y_i x_i})`. L is a quarter of the
    largest weight :math:`s_i`, 1/4 without `weights`.

    Labels may be -1 and 1, 0 and 1, or booleans; both classes must occur.

    >>> import pursuit as ps
    >>> f = ps.Logistic([0, 1])
    >>> round(f.value(np.zeros(2)), 4), f.value(np.array([1e3, 1e3]))
    (1.3863, 1000.0)
    """

    infimum = 0.0

    def __init__(self, y: Any, weights: Any = None) -> None:
        super().__init__(y, weights)
        xp, s, self.L = self.space.xp, self.weights, 0.25 * self._largest_weight
        low, high = float(xp.min(self.y)), float(xp.max(self.y))
        if low == high:
            raise ValueError(f"y holds the single class {low:g}; logistic regression needs two.")
        if (low, high) not in {(-1.0, 1.0), (0.0, 1.0)} or not everywhere((self.y == low) | (self.y == high)):
            raise ValueError(f"y holds labels from {low:g} to {high:g}; give -1 and 1, 0 and 1, or booleans.")
        self.y = self.y if low == -1.0 else 2.0 * self.y - 1.0
        self.dual_range = s * xp.where(self.y > 0, -1.0, 0.0 * self.y), s * xp.where(self.y > 0, 0.0 * self.y, 1.0)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        xp = self.space.xp
        margin = self.y * x
        decay = xp.exp(-xp.abs(margin))
        s, held = self.weights, xp.where(margin < 0, margin, 0.0 * margin)
        wrong = xp.where(margin < 0, 1.0 / (1.0 + decay), decay / (1.0 + decay))  # the probability of the other label
        return _sum(xp, s * xp.log1p(decay)) - _sum(xp, s * held), -s * self.y * wrong

    def hessian(self, x: Array) -> Metric:
        xp = self.space.xp
        decay = xp.exp(-xp.abs(x))
        return Diagonal(self.weights * (decay / ((1.0 + decay) * (1.0 + decay))))

    def conjugate(self, u: Array) -> float:
        xp, s = self.space.xp, self.weights
        p = -self.y * (u / s)  # the probability of the other label
        inside = self._in_range(u)
        return _sum_above(self.space, s * _x_log_x(xp, p), s * _x_log_x(xp, 1.0 - p)) if inside else math.inf


class Poisson(_Entrywise):
    r"""Poisson loss with log link: :math:`f(x) = \sum_i s_i (e^{x_i} - y_i x_i)`, for counts :math:`y_i\ge 0` and
    `weights` :math:`s_i`, 1 where they are left out.

    It is convex, but smooth only on bounded sets: L is None, and updates that need it find it by backtracking.

    >>> import pursuit as ps
    >>> f = ps.Poisson([0, 2])
    >>> f.value_and_grad(np.zeros(2)), round(f.infimum, 4)
    ((2.0, array([ 1., -1.])), 0.6137)
    """

    def __init__(self, y: Any, weights: Any = None) -> None:
        super().__init__(y, weights)
        xp = self.space.xp
        if not everywhere(self.y >= 0):
            raise ValueError("y holds a negative count; Poisson needs y >= 0.")
        # From just below the root of the largest number on, e^x goes on along its tangent: convex and huge, and its
        # square and its products with x are not infinite.
        self._ceiling = 0.45 * math.log(float(xp.finfo(self.y.dtype).max))
        self._linear = self.weights * self.y
        self.dual_range = -self._linear, self.weights * math.exp(self._ceiling) - self._linear
        self.infimum = -self.conjugate(0.0 * self.y)

    def _held(self, x: Array) -> Array:
        return self.space.xp.clip(x, -math.inf, self._ceiling)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        xp, held = self.space.xp, self._held(x)
        rate = self.weights * xp.exp(held)
        return _sum(xp, rate) + self.space.dot(rate, x - held) - self.space.dot(self._linear, x), rate - self._linear

    def hessian(self, x: Array) -> Metric:
        return Diagonal(self.weights * self.space.xp.exp(self._held(x)))

    def conjugate(self, u: Array) -> float:
        rate, s = u + self._linear, self.weights
        return _sum_above(self.space, s * _x_log_x(self.space.xp, rate / s), -rate) if self._in_range(u) else math.inf


class Multinomial(_OnData):
    r"""Softmax loss: :math:`f(x) = \sum_i s_i (\log\sum_k e^{x_{ik}} - \langle y_i, x_i\rangle)` on matrices x of n
    rows and K columns, one score per class. L is half the largest weight :math:`s_i`, 1/2 without weights.

    Parameters
    ----------
    y : (n,) integer labels 0..K-1, or (n, K) one-hot rows (or probabilities that sum to 1)
    weights : (n,) positive array or a positive number, optional
        The :math:`s_i`, one per row.

    Examples
    --------
    >>> import pursuit as ps
    >>> round(ps.Multinomial([0, 1, 2]).value(np.zeros((3, 3))), 4)
    3.2958
    """

    infimum = 0.0

    def __init__(self, y: Any, weights: Any = None) -> None:
        y = real_array(y, "y")
        if 0 in y.shape:
            raise ValueError("y is empty; give at least one observation.")
        if y.ndim == 1:
            labels = np.asarray([int(v) for v in y])
            if not (labels == np.asarray([float(v) for v in y])).all() or labels.min() < 0:
                raise ValueError("y holds labels that are not 0, 1, 2, ...; encode the classes as integers from 0.")
            if len(set(labels)) < 2:
                raise ValueError(f"y holds the single class {labels[0]}; a multinomial model needs two or more.")
            space = Space.of(y)
            one_hot = np.eye(labels.max() + 1)[labels]
            y = space.xp.asarray(one_hot, dtype=space.dtype, device=space.device)
        xp = Space.of(y).xp
        if y.ndim != 2 or y.shape[1] < 2:
            raise ValueError(f"y has shape {tuple(y.shape)}; give (n,) labels or (n, K) one-hot rows with K >= 2.")
        if not everywhere(y >= 0) or float(xp.max(xp.abs(xp.sum(y, axis=1) - 1.0))) > 1e-5:
            raise ValueError("y has a row that is not a probability distribution; rows must be >= 0 and sum to 1.")
        self.y = y
        self.space = Space.of(y)
        self._read_weights(weights, y.shape[:1], "row")
        if not isinstance(self.weights, float):
            self.weights = self.weights[:, None]
        self.L, self._linear = 0.5 * self._largest_weight, self.weights * y
        self.dual_range = -self._linear, self.weights - self._linear

    def _softmax(self, x: Array) -> tuple[Array, Array, Array]:
        xp = self.space.xp
        shifted = x - xp.max(x, axis=1, keepdims=True)
        powers = xp.exp(shifted)
        sums = xp.sum(powers, axis=1, keepdims=True)
        return shifted, sums, powers / sums

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        (shifted, sums, p), s, xp = self._softmax(x), self.weights, self.space.xp
        return _sum(xp, s * xp.log(sums)) - self.space.dot(self._linear, shifted), s * p - self._linear

    def hessian(self, x: Array) -> Metric:
        xp = self.space.xp
        _, _, p = self._softmax(x)
        weighed = self.weights * p
        return Operator(lambda v: weighed * (v - xp.sum(p * v, axis=1, keepdims=True)), self.space.shape)

    def conjugate(self, u: Array) -> float:
        xp, s = self.space.xp, self.weights
        sums = xp.sum(u, axis=1, keepdims=True) / s
        inside = self._in_range(u) and float(xp.max(xp.abs(sums))) <= ROUNDING * self.space.eps
        return _sum_above(self.space, s * _x_log_x(xp, (u + self._linear) / s)) if inside else math.inf


class Ridge(Objective):
    r"""A loss of coefficients with a ridge: :math:`f(x_1) + \frac12\|x_2\|^2` of vectors x whose first n entries (or
    rows) are :math:`x_1`, where f lives, and whose last p are :math:`x_2`.

    Over atoms `A.through(X, l2=l2)`, which are :math:`(X b, \sqrt{l2}\, b)`, it is
    :math:`f(X b) + \frac{l2}{2}\|b\|^2`.

    Parameters
    ----------
    f : Objective that knows its space
    p : int
        The number of coefficients (per column).

    Examples
    --------
    >>> import pursuit as ps
    >>> f = ps.Ridge(ps.LeastSquares([1.0, 2.0]), 1)
    >>> f, f.value_and_grad(np.array([1.0, 2.0, 3.0]))
    (Ridge(LeastSquares(y of 2 entries), 1), (4.5, array([0., 0., 3.])))
    """

    space: Space

    def __init__(self, f: Objective, p: int) -> None:
        if not isinstance(f, Objective) or f.space is None or not f.space.shape:
            raise TypeError(f"f is {told(f)}; give an objective with data, such as LeastSquares(y).")
        if not whole(p) >= 1:
            raise ValueError(f"p is {told(p)}; give the number of coefficients, an integer of at least 1.")
        self.f, self.p, (self.n, *across) = f, int(p), f.space.shape
        self.space = replace(f.space, shape=(self.n + self.p, *across))
        self.L, self.mu = None if f.L is None else max(f.L, 1.0), min(f.mu, 1.0)
        self.infimum, self.quadratic, self.exact = f.infimum, f.quadratic, f.exact
        if f.dual_range is not None:
            low, high = (0.0 * f.space.zeros() + bound for bound in f.dual_range)
            free = self.space.zeros()[self.n :, ...] + math.inf
            self.dual_range = self.space.xp.concat([low, -free]), self.space.xp.concat([high, free])

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        value, grad = self.f.value_and_grad(x[: self.n, ...])
        below = x[self.n :, ...]
        return value + 0.5 * self.space.dot(below, below), self.space.xp.concat([grad, below])

    def hessian(self, x: Array) -> Metric | None:
        top = self.f.hessian(x[: self.n, ...])
        return None if top is None else Stacked.above_identity(top, self.n, self.space)

    def conjugate(self, u: Array) -> float | None:
        top, below = self.f.conjugate(u[: self.n, ...]), u[self.n :, ...]
        return None if top is None else top + _sum_above(self.space, 0.5 * below * below)

    def __repr__(self) -> str:
        return _repr(self, repr(self.f), str(self.p))


class Smooth(Objective):
    """Your own smooth convex function, from its value and its gradient.

    Parameters
    ----------
    value, grad : callables of x
    L : float, optional
        Smoothness in the norm of H; None: found by backtracking.
    mu : float
        Strong convexity, if any.
    infimum : float
        A lower bound on f, if you know one.
    conjugate : callable of u, optional
        f*(u) = sup_x <u, x> - f(x), or an upper bound on it; infinite outside its domain. It makes certificates over
        spans and cones possible.

    Examples
    --------
    >>> import pursuit as ps
    >>> f = ps.Smooth(lambda x: float(x @ x), lambda x: 2 * x, L=2.0, mu=2.0)
    >>> round(ps.minimize(f, ps.conv(ps.Simplex(4))).value, 12)
    0.25
    """

    def __init__(
        self,
        value: Callable[[Array], float],
        grad: Callable[[Array], Array],
        L: float | None = None,
        mu: float = 0.0,
        infimum: float = -math.inf,
        conjugate: Callable[[Array], float] | None = None,
    ) -> None:
        check_function(value, "value", "x")
        check_function(grad, "grad", "x")
        if L is not None and not 0 < number(L) < math.inf:
            raise ValueError(f"L is {told(L)}; give a positive smoothness constant, or None to have it found.")
        if not 0 <= number(mu) < math.inf or (L is not None and mu > L):
            raise ValueError(f"mu is {told(mu)} with L = {L}; strong convexity lies between 0 and L.")
        if not number(infimum) < math.inf:
            raise ValueError(f"infimum is {told(infimum)}; give a lower bound on f, or leave it out.")
        if conjugate is not None:
            check_function(conjugate, "conjugate", "u")
        self._value, self._grad, self._conjugate = value, grad, conjugate
        self.L, self.mu, self.infimum = None if L is None else float(L), float(mu), float(infimum)

    def value(self, x: Array) -> float:
        return as_value(self._value(x))

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        return as_value(self._value(x)), self._grad(x)

    def conjugate(self, u: Array) -> float | None:
        return None if self._conjugate is None else as_value(self._conjugate(u), "the conjugate of f")

    def __repr__(self) -> str:
        return _repr(self, "L=None" if self.L is None else f"L={self.L:g}", f"mu={self.mu:g}")
