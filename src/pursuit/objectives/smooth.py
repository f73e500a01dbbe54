"""Functions of the user."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pursuit.arguments import as_bool, check_function, describe, number, require
from pursuit.arrays import Array
from pursuit.metrics import Diagonal, Metric, Operator
from pursuit.objectives.base import Objective, as_value, repr_of


class Smooth(Objective):
    """Your own smooth convex function, from its value and its gradient.

    The value may be infinite: that is where f is not defined, and there the gradient is not asked for. A run begins and
    stays where f is finite.

    Parameters
    ----------
    value, grad : callables of x
        Without `grad`, `value` returns the pair (value, gradient). x has the library and dtype of the atoms, else of
        `start=`, else it is NumPy's: over `Simplex(n)`, functions of PyTorch want `start=` a tensor. The gradient may
        be one buffer that is written to at every call: then it is copied.
    L : float, optional
        Smoothness in the norm of H; None: found by backtracking.
    mu : float
        Strong convexity, if any.
    infimum : float
        A lower bound on f, if you know one.
    conjugate : callable of u, optional
        f*(u) = sup_x <u, x> - f(x), or an upper bound on it; infinite outside its domain. It makes certificates over
        spans and cones possible.
    hessian : callable of x, optional
        The second derivative at x: an array of x's shape, which is its diagonal, a square matrix, or a function
        v -> Hv. Without it, updates that use second derivatives learn them from gradients.
    convex : bool
        False: f need not be convex. Then the gap is infinite, unless an infimum is known, and `stationarity` of states
        and results has the Frank-Wolfe gap, max <grad f(x), x - u> over the u of the domain, which is 0 where x is
        stationary. `Stop(gap=..., rgap=...)` compares that number.

    Examples
    --------
    A portfolio with the largest mean logarithm of its return, which is infinitely bad where a return is not positive:

    >>> import numpy as np, pursuit as ps
    >>> returns = np.array([[1.3, 0.6, 1.5], [0.8, 1.6, 0.4]]).T                   # two assets in three years
    >>> def utility(x):
    ...     return -np.log(x).mean() if (x > 0).all() else np.inf
    >>> f = ps.Smooth(utility, lambda x: -1 / (len(x) * x), hessian=lambda x: 1 / (len(x) * x**2))
    >>> r = ps.minimize(f, ps.conv(ps.Dictionary(returns)))
    >>> r.coef.round(3), r.status.name
    (array([0.81, 0.19]), 'GAP')
    """

    def __init__(
        self,
        value: Callable[[Array], Any],
        grad: Callable[[Array], Array] | None = None,
        L: float | None = None,
        mu: float = 0.0,
        infimum: float = -math.inf,
        conjugate: Callable[[Array], float] | None = None,
        hessian: Callable[[Array], Any] | None = None,
        convex: bool = True,
    ) -> None:
        check_function(value, "value", "x")
        for name, function, of in (("grad", grad, "x"), ("hessian", hessian, "x"), ("conjugate", conjugate, "u")):
            if function is not None:
                check_function(function, name, of)
        known = L is None or 0 < number(L) < math.inf
        require(known, "L", L, "a positive smoothness constant, or None to have it found")
        if not 0 <= number(mu) < math.inf or (L is not None and mu > L):
            raise ValueError(f"mu is {describe(mu)} with L = {L}; strong convexity lies between 0 and L.")
        require(number(infimum) < math.inf, "infimum", infimum, "a lower bound on f, or leave it out")
        self.convex = as_bool(convex, "convex")
        if not self.convex and mu > 0:
            text = f"mu is {describe(mu)} with convex=False"
            raise ValueError(f"{text}; a strongly convex f is convex, leave one of them out.")
        self._value, self._grad, self._conjugate, self._hessian = value, grad, conjugate, hessian
        self._last: Any = None
        self.evaluations: list[int] = [0, 0]
        self.L, self.mu, self.infimum = None if L is None else float(L), float(mu), float(infimum)

    def value(self, x: Array) -> float:
        if self._grad is None:
            return self.value_and_grad(x)[0]
        self.evaluations[0] += 1
        return as_value(self._value(x))

    def value_and_grad(self, x: Array) -> tuple[float, Array]:
        if self._grad is None:
            pair = self._value(x)
            self.evaluations[0] += 1
            self.evaluations[1] += 1
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(f"value returned {describe(pair)}; without grad=, return the pair (value, gradient).")
            return as_value(pair[0]), self._own(pair[1])
        value = self.value(x)
        self.evaluations[1] += math.isfinite(value)
        return value, self._own(self._grad(x)) if math.isfinite(value) else math.nan * x

    def _own(self, grad: Any) -> Any:
        """A gradient that the next call does not change: a copy where it is, or may be, a buffer of the user's."""
        known, self._last = self._last, grad
        return grad.copy() if isinstance(grad, np.ndarray) and (known is None or known is grad) else grad

    @property
    def has_hessian(self) -> bool:
        return self._hessian is not None

    def hessian(self, x: Array) -> Metric | None:
        H = None if self._hessian is None else self._hessian(x)
        if H is None or isinstance(H, Metric):
            return H
        if callable(H):
            return Operator(H, tuple(x.shape))
        shape = tuple(getattr(H, "shape", ()))
        if shape == tuple(x.shape):
            return Diagonal(H)
        if x.ndim != 1 or shape != (x.shape[0], x.shape[0]):
            what = f"an array of shape {shape}" if shape else describe(H)
            raise ValueError(
                f"hessian returned {what}; return a diagonal of x's shape, a matrix, or a function v -> Hv."
            )
        return Operator(lambda v: H @ v, shape[:1])

    def conjugate(self, u: Array) -> float | None:
        return None if self._conjugate is None else as_value(self._conjugate(u), "the conjugate of f")

    def __repr__(self) -> str:
        kind = [] if self.convex else ["convex=False"]
        return repr_of(self, "L=None" if self.L is None else f"L={self.L:g}", f"mu={self.mu:g}", *kind)
