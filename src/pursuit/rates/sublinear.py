"""Rates of order 1/t: Frank-Wolfe over a hull, matching pursuit over a span, least squares."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from pursuit.rates.arguments import Constant, float_or_array, positive_width, quality, update_counts, upper


def frank_wolfe(t: ArrayLike, *, L: Constant, diameter: Constant, eps0: Constant, delta: Any = 1.0) -> Any:
    r"""Theorem 1: :math:`\varepsilon_t \le 2(L\,\mathrm{diam}(A)^2/\delta + \varepsilon_0) / (\delta t + 2)`.

    For Algorithms 2 and 3, convex f that is L-smooth on conv(A), :math:`x_0` in conv(A), delta relative to x. Variants
    0 to 2 of Algorithm 2 keep it with L and the diameter in any norm. Variant 0 needs the step 2/(delta t + 2); with
    2/(t + 2), as printed, the bound fails for delta < 1/2 (erratum 5).

    >>> frank_wolfe([0, 2, 8], L=1, diameter=2, eps0=3, delta=1)
    array([7. , 3.5, 1.4])
    """
    return frank_wolfe_affine(t, C=upper("L", L, 0) * upper("diameter", diameter, 0) ** 2, eps0=eps0, delta=delta)


def frank_wolfe_affine(t: ArrayLike, *, C: Constant, eps0: Constant, delta: Any = 1.0) -> Any:
    r"""Theorem 11: :math:`\varepsilon_t \le 2(C_f/\delta + \varepsilon_0) / (\delta t + 2)`.

    For Algorithm 5, and all that `frank_wolfe` names; C is `geometry.curvature(f, A)` or any upper bound on it. Proof
    by induction on :math:`\varepsilon_{t+1}\le(1-\gamma\delta)\varepsilon_t+\gamma^2C/2` at :math:`\gamma=2/(\delta
    t+2)`. With additive errors of e / (delta t + 2), C + e replaces C.

    >>> frank_wolfe_affine(2, C=4, eps0=3)
    3.5
    """
    t, delta = update_counts(t), quality(delta)
    return float_or_array(2 * (upper("C", C, 0) / delta + upper("eps0", eps0, 0)) / (delta * t + 2))


def matching_pursuit(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant, delta: Any = 1.0
) -> Any:
    r"""Theorem 2: :math:`\varepsilon_t \le 4(2L\rho^2\mathrm{radius}(A)^2/\delta + \varepsilon_0)/(\delta t + 4)`.

    For Algorithm 4, matching pursuit and OMP on a symmetric A (erratum 23; otherwise replace 2 rho by
    :math:`\sup_t\|x^\star-x_t\|_A`), f convex and L-smooth on rho conv(A), as long as rho bounds the atomic norms of
    :math:`x^\star` and of all iterates up to t; `geometry.rho` bounds them a priori (erratum 22).
    `matching_pursuit_sharp` is never larger.

    >>> matching_pursuit([0, 4], L=1, radius=1, rho=1, eps0=2)
    array([4., 2.])
    """
    return matching_pursuit_affine(t, C=_curvature_bound(L, radius, rho), eps0=eps0, delta=delta)


def matching_pursuit_affine(t: ArrayLike, *, C: Constant, eps0: Constant, delta: Any = 1.0) -> Any:
    r"""Theorem 12: :math:`\varepsilon_t \le 4(2C/\delta + \varepsilon_0)/(\delta t + 4)`.

    For Algorithm 6 on a symmetric A; C is :math:`C^{MP}_{f,\rho A}`, `geometry.curvature(f, A, "mp", rho)`, or an upper
    bound on it. It is `frank_wolfe_affine` with delta/2 (erratum 27: the denominator is delta t + 4 throughout).

    >>> matching_pursuit_affine(4, C=1, eps0=2)
    2.0
    """
    return frank_wolfe_affine(t, C=C, eps0=eps0, delta=quality(delta) / 2)


def matching_pursuit_sharp(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant | None = None, delta: Any = 1.0
) -> Any:
    r"""Theorem 2 sharp: :math:`\varepsilon_t \le 8C/(\delta^2 t + 8C/\varepsilon_0)` with :math:`C =
    L\rho^2\mathrm{radius}(A)^2`, and :math:`\varepsilon_t\le 8C/(\delta^2t+4)` where eps0 is not given.

    Preconditions of `matching_pursuit`. A step decreases the error by :math:`\delta^2\varepsilon_t^2/(8C)`, so
    :math:`1/\varepsilon_t` grows by at least :math:`\delta^2/(8C)`; and :math:`\varepsilon_0\le 2C` since the gradient
    at :math:`x^\star` is orthogonal to lin(A) (erratum 3).

    >>> matching_pursuit_sharp([0, 4], L=1, radius=1, rho=1, eps0=2), matching_pursuit_sharp(4, L=1, radius=1, rho=1)
    (array([2., 1.]), 1.0)
    """
    return matching_pursuit_affine_sharp(t, C=_curvature_bound(L, radius, rho), eps0=eps0, delta=delta)


def matching_pursuit_affine_sharp(t: ArrayLike, *, C: Constant, eps0: Constant | None = None, delta: Any = 1.0) -> Any:
    r"""Theorem 12 sharp: :math:`\varepsilon_t\le 8C/(\delta^2t + 8C/\varepsilon_0)`.

    >>> matching_pursuit_affine_sharp([0, 4], C=1, eps0=2)
    array([2., 1.])
    """
    t, delta, C = update_counts(t), quality(delta), upper("C", C, 0, strict=True)
    first = 2 * C if eps0 is None else upper("eps0", eps0, 0)
    return float_or_array(8 * C * first / (delta**2 * t * first + 8 * C))


def least_squares(
    t: ArrayLike, *, diameter: Constant, mdw: Constant, norm: Constant, L: Constant = 1.0, delta: Any = 1.0
) -> Any:
    r"""Corollary 4, corrected: :math:`\varepsilon_t\le 2L\tilde\rho^2\,\mathrm{diam}(A)^2/(\delta^2\,\mathrm{mDW}(A)^2
    (t+2))`.

    For symmetric A and a bound :math:`\tilde\rho\ge\|x^\star\|,\|x_0\|,\dots,\|x_t\|`, the argument `norm`. The paper
    leaves out L; it follows from `matching_pursuit_sharp` with :math:`\rho\le\tilde\rho/\mathrm{mDW}` (erratum 3), the
    inradius around 0 (erratum 14). For f = 1/2||x - y||^2, :math:`\tilde\rho` may be ||y|| for OMP from ||x_0|| <=
    ||y|| only; matching pursuit from 0 needs 2||y|| (erratum 4).

    >>> least_squares(2, diameter=2, mdw=0.5, norm=1)
    8.0
    """
    t, delta = update_counts(t), quality(delta)
    return float_or_array(_numerator(L, diameter, mdw, norm) / (delta**2 * (t + 2)))


def least_squares_sharp(
    t: ArrayLike, *, diameter: Constant, mdw: Constant, norm: Constant, L: Constant = 1.0, delta: Any = 1.0
) -> Any:
    r"""Corollary 4 sharp: :math:`\varepsilon_t\le 2L\tilde\rho^2\,\mathrm{diam}(A)^2/(\mathrm{mDW}(A)^2(\delta^2t+4))`.

    >>> least_squares_sharp(4, diameter=2, mdw=0.5, norm=1)
    4.0
    """
    t, delta = update_counts(t), quality(delta)
    return float_or_array(_numerator(L, diameter, mdw, norm) / (delta**2 * t + 4))


def _curvature_bound(L: Constant, radius: Constant, rho: Constant) -> float:
    """C = L rho^2 radius^2, the bound on the curvature of rho A."""
    return upper("L", L, 0) * (upper("rho", rho, 0) * upper("radius", radius, 0)) ** 2


def _numerator(L: Constant, diameter: Constant, mdw: Constant, norm: Constant) -> float:
    """2 L (norm diameter / mdw)^2."""
    return 2 * upper("L", L, 0) * (upper("norm", norm, 0) * upper("diameter", diameter, 0) / positive_width(mdw)) ** 2
