"""Objectives whose values and gradients are estimates, from minibatches or a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pursuit.arguments import check_function, check_seed
from pursuit.arrays import Array
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
