"""Objectives of which a run sees estimates: from minibatches or a stream, or of terms that it smooths."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import check_function, check_seed, number, real_array, require, require_kind, sparse_matrix
from pursuit.arrays import Array
from pursuit.linalg import operator
from pursuit.objectives import Objective, as_value
from pursuit.state import Stateful


class Stochastic(Objective):
    r"""A smooth convex function whose value and gradient are estimates, from minibatches or a stream.

    A run averages the gradients it sees, :math:`d_t = (1-\rho_t) d_{t-1} + \rho_t \tilde g_t` with
    :math:`\rho_t = 4/(t+8)^{2/3}` (Mokhtari, Hassani and Karbasi, 2020), so that Frank-Wolfe with the open-loop step
    converges although the single gradients do not. Nothing can be proved from estimates, so the gap of such a run is
    infinite, also with `check()`.

    Parameters
    ----------
    value, grad : callables (x, rng) -> estimate
        `rng` is a NumPy generator, fresh for each run, so that runs are repeatable.
    seed : int

    Examples
    --------
    >>> import pursuit as ps
    >>> Y = np.random.default_rng(1).normal([0.7, 0.3], 1.0, (10_000, 2))          # data whose mean is sought
    >>> batch = lambda rng: Y[rng.integers(len(Y), size=50)].mean(axis=0)
    >>> f = ps.Stochastic(lambda x, rng: 0.5 * sum((x - batch(rng)) ** 2), lambda x, rng: x - batch(rng))
    >>> r = ps.minimize(f, ps.conv(ps.Simplex(2)), ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=500))
    >>> bool(abs(r.x - [0.7, 0.3]).max() < 0.05), r.gap
    (True, inf)
    """

    exact = False
    cites: ClassVar[tuple[str, ...]] = ("mokhtari2020stochastic",)

    def __init__(
        self,
        value: Callable[[Array, np.random.Generator], float],
        grad: Callable[[Array, np.random.Generator], Array],
        seed: int = 0,
    ) -> None:
        check_function(value, "value", "(x, rng)")
        check_function(grad, "grad", "(x, rng)")
        check_seed(seed)
        self._value, self._grad, self.seed = value, grad, seed

    def begin(self) -> Objective:
        """The objective of one run, which averages the gradients it sees."""
        return _Averaging(self)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        rng = np.random.default_rng(self.seed)
        return as_value(self._value(x, rng)), self._grad(x, rng)

    def __repr__(self) -> str:
        return f"Stochastic(seed={self.seed})"


@dataclass(eq=False)
class _Averaging(Objective, Stateful):
    """One run of a stochastic objective: its generator and its running average."""

    _source: Stochastic
    _rng: np.random.Generator = field(init=False)
    _average: Array | None = field(default=None, init=False)
    _t: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.exact = False
        self._rng = np.random.default_rng(self._source.seed)

    def value(self, x: Array) -> float:
        return as_value(self._source._value(x, self._rng))

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        grad, rho = self._source._grad(x, self._rng), 4.0 / (self._t + 8.0) ** (2.0 / 3.0)
        self._average = grad if self._average is None else (1.0 - rho) * self._average + rho * grad
        self._t += 1
        return self.value(x), self._average


class Homotopy(Stochastic):
    r"""f(x) + g(M x) for a g without gradients, such as a constraint, which is smoothed less and less in a run.

    The t-th gradient is that of f plus that of the Moreau envelope, :math:`M^\top (v - \mathrm{prox}(v, \beta_t))
    / \beta_t` with v = M x and :math:`\beta_t = \beta / \sqrt{t + 2}`. With `Plain(OpenLoop())` this is homotopy
    conditional gradients (Yurtsever et al., 2018), whose error falls as :math:`t^{-1/2}`; with a `Stochastic` f and
    `OpenLoop(9)` it is its stochastic form (Locatello et al., 2019), with :math:`t^{-1/3}`. Values are those of the
    smoothed sum; nothing is proved.

    Parameters
    ----------
    f : Objective or Stochastic
    prox : callable (v, beta) -> argmin of g(p) + ||p - v||^2 / (2 beta)
        Of a constraint M x in K the projection on K, whatever beta is.
    M : matrix, sparse matrix or operator, optional
        It acts on x as one long vector.
    g : callable v -> value, optional
        None: a constraint.
    beta : positive float

    Examples
    --------
    >>> import pursuit as ps
    >>> f = ps.Homotopy(ps.LeastSquares([1.0, 0.0, 0.0]), lambda v, beta: np.array([0.5]), M=np.eye(1, 3))  # x_0 = 1/2
    >>> r = ps.minimize(f, ps.conv(ps.Simplex(3)), ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=5000))
    >>> r.x.round(2), r.gap
    (array([0.51, 0.24, 0.24]), inf)
    """

    cites = ("yurtsever2018conditional", "locatello2019stochastic")

    def __init__(
        self,
        f: Objective,
        prox: Callable[[Array, float], Array],
        M: object = None,
        g: Callable[[Array], float] | None = None,
        beta: float = 1.0,
    ) -> None:
        require_kind(f, Objective, "f", "an objective such as LeastSquares(y), or wrap it in Smooth")
        check_function(prox, "prox", "(v, beta)")
        if g is not None:
            check_function(g, "g", "v")
        require(0 < number(beta) < math.inf, "beta", beta, "a positive number")
        if M is not None:
            M = operator(M, "M") or (sparse_matrix(M, "M") if sp.issparse(M) else real_array(M, "M"))
            require(len(M.shape) == 2, "M", M, "a matrix (rows, length of x)")
        self.f, self.prox, self.M, self.g, self.beta, self.space = f, prox, M, g, float(beta), f.space

    def begin(self) -> Objective:
        return _Smoothed(self, self.f.begin() if isinstance(self.f, Stochastic) else self.f)

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        return self.begin().value_and_grad(x)

    def __repr__(self) -> str:
        return f"Homotopy({self.f!r}, beta={self.beta:g})"


@dataclass(eq=False)
class _Smoothed(Objective, Stateful):
    """One run of a homotopy: the number of gradients so far."""

    _source: Homotopy
    _f: Objective
    _t: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.exact, self.space = False, self._source.space

    def _envelope(self, x: Array) -> tuple[float, Array]:
        """The Moreau envelope of g at M x, and its gradient in x."""
        source, beta = self._source, self._source.beta / math.sqrt(self._t + 2.0)
        v = x if source.M is None else source.M @ x.reshape(-1)
        p = source.prox(v, beta)
        pull = (v - p) / beta
        value = 0.5 * beta * float((pull * pull).sum()) + (0.0 if source.g is None else as_value(source.g(p), "g(p)"))
        return value, pull if source.M is None else (source.M.T @ pull).reshape(x.shape)

    def value(self, x: Array) -> float:
        return self._f.value(x) + self._envelope(x)[0]

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        (value, grad), (more, slope) = self._f.value_and_grad(x), self._envelope(x)
        self._t += 1
        return value + more, grad + slope
