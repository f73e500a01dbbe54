"""Functions of the user."""

from __future__ import annotations

import math
from collections.abc import Callable

from pursuit._arrays import Array, check_function, number, told
from pursuit.objectives.base import Objective, as_value, repr_of


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
        return repr_of(self, "L=None" if self.L is None else f"L={self.L:g}", f"mu={self.mu:g}")
