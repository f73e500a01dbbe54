"""Principal components of numbers, of counts and of zeros and ones: natural parameters of low rank."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, xlogy
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pursuit.arguments import number, require
from pursuit.arrays import Space
from pursuit.atoms.factored import LowRank
from pursuit.atoms.matrices import RankOne
from pursuit.domains import conv, lin
from pursuit.estimators import checks
from pursuit.estimators.base import Array, Estimator
from pursuit.objectives import Objective
from pursuit.refine import Factors
from pursuit.run.result import Result
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.threads import single_threaded_blas
from pursuit.updates import NormCorrective

SMOOTHNESS = {"gaussian": 1.0, "poisson": None, "bernoulli": 0.25}
LARGEST_EXPONENT = 500.0
"""Beyond it, e^x is replaced by its tangent, so that a long trial step has a finite value."""
DEFAULT_L2 = 1e-2
"""The ridge of counts and of zeros and ones, whose likelihood may grow for ever."""
NOISE = 1e-13
"""Below this fraction of the data, deviations from the means are rounding errors."""
NEWTON_STEPS = 100
NEWTON_ACCURACY = 1e-10


def cumulant(loss: str, theta: Array) -> tuple[Array, Array, Array]:
    """b(theta) and its first two derivatives, the mean and the variance; the loss of y is b(theta) - y theta."""
    if loss == "gaussian":
        return 0.5 * theta * theta, theta, np.ones_like(theta)
    if loss == "bernoulli":
        p = expit(theta)
        return -log_expit(-theta), p, p * (1.0 - p)
    held = np.minimum(theta, LARGEST_EXPONENT)
    rate = np.exp(held)
    return rate * (1.0 + theta - held), rate, rate


def least_losses(loss: str, Y: Array) -> Array:
    """The least value of b(theta) - y theta over all theta."""
    if loss == "gaussian":
        return -0.5 * Y * Y
    return np.asarray(Y - xlogy(Y, Y) if loss == "poisson" else -xlogy(Y, Y) - xlogy(1.0 - Y, 1.0 - Y))


def solve_rows(loss: str, Y: Array, D: Array, base: Array, ridge: Array, C: Array) -> Array:
    r"""For each row y of Y (NaN: not observed), the code c with the least loss of base + D c, plus ridge c^2 / 2.

    Newton's method from C, with steps of length log(1 + d) / d, where d is the largest change of a natural parameter:
    as :math:`|b'''| \le b''`, the loss falls with every such step. (For the Gaussian loss the step is 1.)
    """
    seen = ~np.isnan(Y)
    rows = np.arange(len(Y))  # those whose code still moves
    C = C.copy()
    for _ in range(NEWTON_STEPS):
        theta, open_rows = base[rows] + C[rows] @ D.T, seen[rows]
        _, mean, variance = cumulant(loss, theta)
        slope = np.where(open_rows, mean - Y[rows], 0.0) @ D + ridge * C[rows]
        H = np.einsum("nj,jk,jl->nkl", np.where(open_rows, variance, 0.0), D, D, optimize=True)
        diagonal = np.einsum("nkk->nk", H)
        diagonal += ridge
        diagonal += 1e-14 * diagonal.max(axis=1, keepdims=True, initial=0.0) + np.finfo(float).tiny
        step = -np.linalg.solve(H, slope[..., None])[..., 0]
        change = np.abs(np.where(open_rows, step @ D.T, 0.0)).max(axis=1, initial=0.0)
        if loss != "gaussian":
            step *= np.where(change > 0, np.log1p(change) / np.where(change > 0, change, 1.0), 1.0)[:, None]
        C[rows] += step
        rows = rows[change > NEWTON_ACCURACY * np.maximum(1.0, np.abs(theta).max(axis=1, initial=0.0))]
        if not len(rows) or loss == "gaussian":
            break
    return C


class Profile(Objective):
    r"""The loss of natural parameters :math:`X + 1 o^\top` as a function of X: the best offset of each column is found.

    :math:`F(X) = \min_o \sum_{ij} b(X_{ij} + o_j) - y_{ij}(X_{ij} + o_j) + \frac{l2}{2}\|X\|^2`, with the sum over the
    observed entries, less its least possible value. F is convex, and at the best offsets its gradient is that of the
    sum.
    """

    infimum = 0.0
    space: Space

    def __init__(self, loss: str, Y: Array, l2: float, start: Array) -> None:
        self.loss, self.Y, self.l2, self._offsets = loss, Y, l2, start
        self.seen, self.space = ~np.isnan(Y), Space.of(Y)
        self._filled, L = np.where(self.seen, Y, 0.0), SMOOTHNESS[loss]
        self.L = None if L is None else L + l2
        self._least = least_losses(loss, self._filled)

    def begin(self) -> Profile:
        return Profile(self.loss, self.Y, self.l2, self._offsets)

    def offsets(self, X: Array) -> Array:
        """The best offsets, which are finite: no column is all zeros (Poisson), or all equal (Bernoulli)."""
        total, n = self._filled.sum(axis=0), self.seen.sum(axis=0)
        if self.loss == "gaussian":
            return np.asarray((total - np.sum(X, axis=0, where=self.seen)) / n)
        if self.loss == "poisson":
            top = np.max(X, axis=0, where=self.seen, initial=-np.inf)
            return np.asarray(np.log(total / np.sum(np.exp(X - top), axis=0, where=self.seen)) - top)
        one, start = np.ones((len(X), 1)), self._offsets[:, None]  # the last ones are near
        self._offsets = solve_rows(self.loss, self.Y.T, one, X.T, np.zeros(1), start)[:, 0]
        return self._offsets

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        theta = x + self.offsets(x)
        b, mean, _ = cumulant(self.loss, theta)
        value = float(np.sum(b - self._filled * theta - self._least, where=self.seen))
        grad = np.where(self.seen, mean - self._filled, 0.0)
        return value + 0.5 * self.l2 * float(np.vdot(x, x)), grad + self.l2 * x


@dataclass(eq=False, repr=False)
class ExponentialFamilyPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    r"""Principal components of data that are not Gaussian: a matrix of natural parameters of low rank.

    An entry :math:`y_{ij}` has the natural parameter :math:`\theta_{ij} = o_j + \langle c_i, v_j\rangle`: its mean is
    :math:`\theta` (Gaussian), :math:`e^\theta` (Poisson) or :math:`1 / (1 + e^{-\theta})` (Bernoulli). Offsets o, codes
    c and components V minimise the negative log-likelihood of the entries that are not NaN, plus half of `l2` times the
    squared norm of :math:`C V^\top`; this is generalised matching pursuit over rank-one matrices with moved factors,
    or, within a nuclear-norm ball, Frank-Wolfe. The offsets are the best ones at every step. For the Gaussian loss
    without NaN it is PCA.

    Parameters
    ----------
    n_components : int, optional
        The largest number of components; None leaves it to the radius.
    loss : 'gaussian', 'poisson' (numbers of at least 0) or 'bernoulli' (numbers from 0 to 1)
    radius : float, optional
        A bound on the nuclear norm of the matrix C V'.
    l2 : float, optional
        By default 0 for 'gaussian', and 0.01 for the others, whose likelihood may grow for ever.
    tol, max_iter : float, int
        The accuracy of the factors or, with a radius, of the certified gap, relative to the objective; and the most
        oracle calls with a radius.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal rows. Columns of X that are not observed, of counts that are all 0, and of zeros and ones that are
        all equal, have the entry 0.
    offsets_ : array of shape (n_features,)
        Natural parameters at the code 0.
    singular_values_, penalty_ : arrays of shape (n_components,)
        The norms of the codes of X on each component; and the ridge of codes: `l2`, and the multiplier of the radius
        over the singular values.
    dual_gap_ : float
        A proved bound on how far the objective is above its minimum within the radius; without one, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import ExponentialFamilyPCA
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.exp(rng.standard_normal((60, 1)) @ rng.standard_normal((1, 20)))).astype(float)
    >>> model = ExponentialFamilyPCA(1, loss="poisson").fit(counts)
    >>> codes = model.transform(counts)
    >>> codes.shape, model.inverse_transform(codes).shape
    ((60, 1), (60, 20))
    """

    _checks = checks.table(
        n_components=checks.optional_count,
        loss=checks.one_of("gaussian", "poisson", "bernoulli"),
        l2=checks.optional_amount,
        tol=checks.rule(lambda tol: 0 < number(tol) < 1, "a number between 0 and 1"),
        max_iter=checks.count,
    )

    n_components: int | None = 2
    loss: str = "gaussian"
    radius: float | None = None
    l2: float | None = None
    tol: float = 1e-4
    max_iter: int = 100

    @single_threaded_blas  # the products are short
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find components and offsets."""
        self._check()
        free = self.radius is None and self.n_components is not None
        wanted = "a positive number, or None with n_components"
        require(free or 0 < number(self.radius) < math.inf, "radius", self.radius, wanted)
        Y = self._read(X, reset=True)
        unit = 2.0 ** math.frexp(np.nanmax(np.abs(Y), initial=0.0))[1] if self.loss == "gaussian" else 1.0
        Y = Y / unit
        self.offsets_, kept = _margins(self.loss, Y)
        base = self.offsets_ if self.loss == "gaussian" else np.zeros(len(kept))  # so that no digits are lost
        f = Profile(self.loss, (Y - base)[:, kept], self._l2, (self.offsets_ - base)[kept])
        rounding = NOISE**2 * float(np.nansum(Y * Y)) if self.loss == "gaussian" else 0.0
        result = self._solve(f, unit) if kept.any() and f.value(f.space.zeros()) > rounding else None
        m, n = f.space.shape
        matrix = LowRank(np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0))) if result is None else result.coef
        self.components_ = np.zeros((len(matrix.s), Y.shape[1]))
        self.components_[:, kept] = _upright(matrix.V).T
        self.singular_values_, self.penalty_ = unit * matrix.s, self._l2 + _multiplier(f, result) / matrix.s
        self.offsets_[kept] = base[kept] + (f.offsets(matrix.toarray()) if kept.any() else 0.0)
        self.offsets_ *= unit
        self.dual_gap_, self.n_iter_ = (0.0, 1) if result is None else (unit * unit * result.gap, result.iterations + 1)
        return self

    def transform(self, X: Any) -> Array:
        """The codes of rows: those of the least loss on the components. Entries that are NaN have no part in it."""
        check_is_fitted(self)
        Y = self._read(X, reset=False)
        base, start = np.broadcast_to(self.offsets_, Y.shape), np.zeros((len(Y), len(self.components_)))
        return solve_rows(self.loss, Y, self.components_.T, base, self.penalty_, start)

    def inverse_transform(self, X: Any) -> Array:
        """The means of the entries whose codes are the rows of X."""
        check_is_fitted(self)
        C = check_array(X, dtype=np.float64, ensure_min_features=0)
        wanted = f"{len(self.components_)} columns, one per component"
        require(C.shape[1] == len(self.components_), "X", C, wanted)
        return cumulant(self.loss, self.offsets_ + C @ self.components_)[1]

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    @property
    def _l2(self) -> float:
        return float(self.l2) if self.l2 is not None else 0.0 if self.loss == "gaussian" else DEFAULT_L2

    def _read(self, X: Any, reset: bool) -> Array:
        Y = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        low, high = np.nanmin(Y, initial=0.0), np.nanmax(Y, initial=0.0)
        if self.loss == "poisson" and low < 0:
            raise ValueError("Negative values in data passed to ExponentialFamilyPCA; loss='poisson' needs counts.")
        if self.loss == "bernoulli" and not 0 <= low <= high <= 1:
            raise ValueError(f"X holds values from {low:g} to {high:g}; loss='bernoulli' needs numbers from 0 to 1.")
        return np.asarray(Y)

    def _solve(self, f: Profile, unit: float) -> Result:
        A, rank = RankOne((f.space.shape[0], f.space.shape[1])), self.n_components
        if self.radius is None:
            stop, update = Stop(atoms=rank, iterations=rank), NormCorrective()
            return minimize(f, lin(A), update, refine=Factors(accuracy=self.tol), stop=stop)
        stop = Stop(atoms=rank, rgap=self.tol, iterations=self.max_iter)
        ball = conv(float(self.radius) / unit * A)
        return minimize(f, ball, None if rank is None else NormCorrective(), refine=Factors(), stop=stop)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.positive_only = self.loss == "poisson"
        return tags


def _upright(V: Array) -> Array:
    """The same columns, the largest entry of each positive."""
    return V * np.sign(V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]) if V.size else V


def _margins(loss: str, Y: Array) -> tuple[Array, Array]:
    """The offset of each column alone, and which columns can have components. The others are constant: their offsets
    are those of half an observation of each kind besides the column's own."""
    seen = ~np.isnan(Y)
    n, total = seen.sum(axis=0), np.where(seen, Y, 0.0).sum(axis=0)
    if loss == "gaussian":
        return np.asarray(total / np.maximum(n, 1)), n > 0
    if loss == "poisson":
        return np.log((total + 0.5) / (n + 0.5)), total > 0
    return np.log((total + 0.5) / (n - total + 0.5)), (total > 0) & (total < n)


def _multiplier(f: Profile, result: Result | None) -> float:
    """The multiplier of the nuclear norm at a solution: its gradient is this times a matrix of spectral norm 1."""
    if result is None or not result.domain.parts[0].compact:
        return 0.0
    return max(-float(np.vdot(f.value_and_grad(result.x)[1], result.x)) / float(result.coef.s.sum()), 0.0)
