"""Convergence rates: one function for each theorem of the paper, with its corrections.

Every bound is on eps_t = f(x_t) - f*, where x_t is the iterate after t updates, and is vectorised over t. Constants
may be numbers or `pursuit.geometry.Interval`s; an interval is read at its safe end, so a bound computed from
intervals holds.

| theorem | function | domain |
|---|---|---|
| inexactFW, sublinearFWAffineInvariant | `frank_wolfe`, `frank_wolfe_affine` | conv |
| inexactMP, sublinearMPAffineInvariant | `matching_pursuit`, `matching_pursuit_affine` | lin |
| the sharper forms | `matching_pursuit_sharp`, `matching_pursuit_affine_sharp` | lin |
| Corollary sublinleastsq | `least_squares`, `least_squares_sharp` | lin |
| linearRateMPinexact, LinearMPAffineInvariant | `linear`, `linear_affine` | lin |
| lowerBoundLinearRateMPinexact | `lower_bound`, `lower_bound_sharp` | lin |
| Corollary lowerBoundEx | `signed_basis` | lin |
| coherenceVSdw | `coherence`, `mdw_from_coherence` | |
| stepFWMPshort | `frank_wolfe_limit`; oracle qualities: `delta_fw`, `delta_mp` | |

Errata 6, 8: the norm of L, mu, radius, diameter and mdw is that of the algorithm, a Hilbert norm; other norms only
through the affine-invariant forms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pursuit._arrays import Array, Small, host, real_array
from pursuit.geometry import Interval

Constant = float | Interval
"""A constant of a bound: a number, or an interval of which the safe end is used."""


def frank_wolfe(t: ArrayLike, *, L: Constant, diameter: Constant, eps0: Constant, delta: float = 1.0) -> Any:
    r"""Theorem inexactFW: :math:`\varepsilon_t \le 2(L\,\mathrm{diam}(A)^2/\delta + \varepsilon_0) / (\delta t + 2)`.

    Holds for convex f that is L-smooth on conv(A), :math:`x_0` in conv(A) and an oracle of quality delta relative to
    x, for Algorithms 2 (variants 1 to 3) and 3. Variant 0 needs the step 2/(delta t + 2); with 2/(t + 2), as printed,
    the bound fails for delta < 1/2 (erratum 5).

    Parameters
    ----------
    t : number or array, >= 0
        Updates made.
    L, diameter, eps0 : float or Interval
    delta : float in (0, 1]

    Returns
    -------
    float or array of t's shape

    Examples
    --------
    >>> frank_wolfe([0, 2, 8], L=1, diameter=2, eps0=3, delta=1)
    array([7. , 3.5, 1.4])
    """
    return frank_wolfe_affine(t, C=_most("L", L, 0) * _most("diameter", diameter, 0) ** 2, eps0=eps0, delta=delta)


def frank_wolfe_affine(t: ArrayLike, *, C: Constant, eps0: Constant, delta: float = 1.0) -> Any:
    r"""Theorem sublinearFWAffineInvariant: :math:`\varepsilon_t \le 2(C_f/\delta + \varepsilon_0) / (\delta t + 2)`.

    For Algorithm 5, and all that `frank_wolfe` names; C is `geometry.curvature(f, A)` or any upper bound on it. Proof
    by induction on :math:`\varepsilon_{t+1}\le(1-\gamma\delta)\varepsilon_t+\gamma^2C/2` at :math:`\gamma=2/(\delta
    t+2)`.

    Parameters
    ----------
    t : number or array, >= 0
    C, eps0 : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> frank_wolfe_affine(2, C=4, eps0=3)
    3.5
    """
    t, delta = _updates(t), _quality(delta)
    return _plain(2 * (_most("C", C, 0) / delta + _most("eps0", eps0, 0)) / (delta * t + 2))


def matching_pursuit(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant, delta: float = 1.0
) -> Any:
    r"""Theorem inexactMP: :math:`\varepsilon_t \le 4(2L\rho^2\mathrm{radius}(A)^2/\delta + \varepsilon_0)/(\delta t +
    4)`.

    Holds for Algorithm 4, matching pursuit and OMP on a symmetric A (erratum 23; otherwise replace 2 rho by
    :math:`\sup_t\|x^\star-x_t\|_A`), f convex and L-smooth on rho conv(A), an oracle of quality delta relative to 0,
    as long as rho bounds the atomic norms of :math:`x^\star` and of all iterates up to t; `geometry.rho` bounds them
    a priori (erratum 22). `matching_pursuit_sharp` is never larger.

    Parameters
    ----------
    t : number or array, >= 0
    L, radius, rho, eps0 : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> matching_pursuit([0, 4], L=1, radius=1, rho=1, eps0=2)
    array([4., 2.])
    """
    return matching_pursuit_affine(t, C=_reach(L, radius, rho), eps0=eps0, delta=delta)


def matching_pursuit_affine(t: ArrayLike, *, C: Constant, eps0: Constant, delta: float = 1.0) -> Any:
    r"""Theorem sublinearMPAffineInvariant: :math:`\varepsilon_t \le 4(2C/\delta + \varepsilon_0)/(\delta t + 4)`.

    For Algorithm 6 on a symmetric A; C is :math:`C^{MP}_{f,\rho A}`, `geometry.curvature(f, A, "mp", rho)`, or an
    upper bound on it. It is `frank_wolfe_affine` with delta/2 (erratum 27: the denominator is delta t + 4
    throughout).

    Parameters
    ----------
    t : number or array, >= 0
    C, eps0 : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> matching_pursuit_affine(4, C=1, eps0=2)
    2.0
    """
    t, delta = _updates(t), _quality(delta)
    return _plain(4 * (2 * _most("C", C, 0) / delta + _most("eps0", eps0, 0)) / (delta * t + 4))


def matching_pursuit_sharp(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant | None = None, delta: float = 1.0
) -> Any:
    r"""The sharper form of Theorem inexactMP, :math:`\varepsilon_t \le 8C/(\delta^2 t + 8C/\varepsilon_0)` with
    :math:`C = L\rho^2\mathrm{radius}(A)^2`, and :math:`\varepsilon_t\le 8C/(\delta^2t+4)` where eps0 is not given.

    Same preconditions as `matching_pursuit`, and never larger. A step decreases the error by
    :math:`\delta^2\varepsilon_t^2/(8C)`, so :math:`1/\varepsilon_t` grows by at least :math:`\delta^2/(8C)`; and
    :math:`\varepsilon_0\le 2C` since the gradient at :math:`x^\star` is orthogonal to lin(A).

    Parameters
    ----------
    t : number or array, >= 0
    L, radius, rho : float or Interval
    eps0 : float or Interval, optional
    delta : float in (0, 1]

    Examples
    --------
    >>> matching_pursuit_sharp([0, 4], L=1, radius=1, rho=1, eps0=2), matching_pursuit_sharp(4, L=1, radius=1, rho=1)
    (array([2., 1.]), 1.0)
    """
    return matching_pursuit_affine_sharp(t, C=_reach(L, radius, rho), eps0=eps0, delta=delta)


def matching_pursuit_affine_sharp(
    t: ArrayLike, *, C: Constant, eps0: Constant | None = None, delta: float = 1.0
) -> Any:
    r"""The sharper form of Theorem sublinearMPAffineInvariant: :math:`\varepsilon_t\le 8C/(\delta^2t +
    8C/\varepsilon_0)`.

    Preconditions of `matching_pursuit_affine`; see `matching_pursuit_sharp`.

    Parameters
    ----------
    t : number or array, >= 0
    C : float or Interval
    eps0 : float or Interval, optional
    delta : float in (0, 1]

    Examples
    --------
    >>> matching_pursuit_affine_sharp([0, 4], C=1, eps0=2)
    array([2., 1.])
    """
    t, delta, C = _updates(t), _quality(delta), _most("C", C, 0, strict=True)
    first = 2 * C if eps0 is None else _most("eps0", eps0, 0)
    return _plain(8 * C * first / (delta**2 * t * first + 8 * C))


def least_squares(
    t: ArrayLike, *, diameter: Constant, mdw: Constant, norm: Constant, L: Constant = 1.0, delta: float = 1.0
) -> Any:
    r"""Corollary sublinleastsq, corrected:
    :math:`\varepsilon_t\le 2L\tilde\rho^2\,\mathrm{diam}(A)^2/(\delta^2\,\mathrm{mDW}(A)^2(t+2))`.

    For symmetric A and :math:`\tilde\rho\ge\|x^\star\|,\|x_0\|,\dots,\|x_t\|`. The paper leaves out L, and its
    derivation does not give it; it follows from `matching_pursuit_sharp` with :math:`\rho\le\tilde\rho/\mathrm{mDW}`
    (erratum 3), where the width is the inradius around 0 (erratum 14). For f = 1/2||x - y||^2 (L = 1),
    :math:`\tilde\rho` may be ||y|| for OMP from ||x_0|| <= ||y|| only; matching pursuit from 0 needs 2||y|| (erratum
    4).

    Parameters
    ----------
    t : number or array, >= 0
    diameter, mdw : float or Interval
    norm : float or Interval
        The bound :math:`\tilde\rho` on norms of iterates.
    L : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> least_squares(2, diameter=2, mdw=0.5, norm=1)
    8.0
    """
    t, delta = _updates(t), _quality(delta)
    return _plain(_corollary(L, diameter, mdw, norm) / (delta**2 * (t + 2)))


def least_squares_sharp(
    t: ArrayLike, *, diameter: Constant, mdw: Constant, norm: Constant, L: Constant = 1.0, delta: float = 1.0
) -> Any:
    r"""The sharper form of Corollary sublinleastsq:
    :math:`\varepsilon_t\le 2L\tilde\rho^2\,\mathrm{diam}(A)^2/(\mathrm{mDW}(A)^2(\delta^2t+4))`.

    Preconditions of `least_squares`.

    Parameters
    ----------
    t : number or array, >= 0
    diameter, mdw, norm, L : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> least_squares_sharp(4, diameter=2, mdw=0.5, norm=1)
    4.0
    """
    t, delta = _updates(t), _quality(delta)
    return _plain(_corollary(L, diameter, mdw, norm) / (delta**2 * t + 4))


def linear(
    t: ArrayLike, *, mu: Constant, L: Constant, mdw: Constant, radius: Constant, eps0: Constant, delta: float = 1.0
) -> Any:
    r"""Theorem linearRateMPinexact:
    :math:`\varepsilon_t\le(1-\delta^2\mu\,\mathrm{mDW}(A)^2/(L\,\mathrm{radius}(A)^2))^t\varepsilon_0`.

    Holds for Algorithm 4 (both variants), matching pursuit, OMP and variant 2 of Algorithm 6, f L-smooth and
    mu-strongly convex, mDW > 0 (A need not be symmetric, erratum 23) and an oracle of quality delta relative to 0.
    mDW never exceeds the radius, and may equal it (erratum 11).

    Parameters
    ----------
    t : number or array, >= 0
    mu, L, mdw, radius, eps0 : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> linear([0, 1, 2], mu=1, L=1, mdw=0.5**0.5, radius=1, eps0=8.0).round(12)
    array([8., 4., 2.])
    """
    width = _width(mdw)
    ratio = width / _most("radius", radius, 0, strict=True)
    if ratio > 1 + 1e-9:
        raise ValueError(f"mdw is {mdw} with radius {radius}; no set is wider than its radius, so check both.")
    low, high = _least("mu", mu, 0), _most("L", L, 0, strict=True)
    return linear_affine(t, mu=low * ratio**2, C=high, eps0=eps0, delta=delta)


def linear_affine(t: ArrayLike, *, mu: Constant, C: Constant, eps0: Constant, delta: float = 1.0) -> Any:
    r"""Theorem LinearMPAffineInvariant: :math:`\varepsilon_t\le(1-\delta^2\mu^{MP}_{f,\rho A}/C^{MP}_{f,\rho
    A})^t\varepsilon_0`.

    For Algorithm 6, rho finite; mu is `geometry.strong_convexity(f, A, rho)` (positive) or a lower bound, C is
    `geometry.curvature(f, A, "mp", rho)` or an upper bound (erratum 21: steps longer than 1 are covered too). For a
    quadratic the factor is :math:`1-\delta^2\mathrm{mDW}(H^{1/2}A)^2/\mathrm{radius}(H^{1/2}A)^2`, never worse than
    that of `linear`.

    Parameters
    ----------
    t : number or array, >= 0
    mu, C, eps0 : float or Interval
    delta : float in (0, 1]

    Examples
    --------
    >>> linear_affine(3, mu=1, C=2, eps0=8, delta=1)
    1.0
    """
    t, delta = _updates(t), _quality(delta)
    low, high = _least("mu", mu, 0), _most("C", C, 0, strict=True)
    if low > high * (1 + 1e-9):
        raise ValueError(f"mu is {low:g}, larger than the smoothness {high:g}; no function has that, so check both.")
    return _plain(_most("eps0", eps0, 0) * max(1 - delta**2 * low / high, 0.0) ** t)


def lower_bound(eps: ArrayLike, *, width: ArrayLike, norm: ArrayLike, L: Constant, mu: Constant) -> Any:
    r"""Theorem lowerBoundLinearRateMPinexact: :math:`\varepsilon_{t+1}\ge
    (1-\frac{W_A(-\nabla f(x_t))^2}{\|z_t\|^2}\frac{2L-\mu}{\mu})\varepsilon_t`, and never below zero.

    For variant 0 of Algorithm 4 with an exact oracle, where the gradient at :math:`x^\star` vanishes in H (erratum 16:
    :math:`x^\star` in lin(A) is not enough). `lower_bound_sharp` is never smaller.

    Parameters
    ----------
    eps : number or array, >= 0
        The error before the step.
    width : number or array
        :math:`W_A(-\nabla f(x_t))`.
    norm : number or array, > 0
        The norm of the atom :math:`z_t`.
    L, mu : float or Interval

    Examples
    --------
    >>> lower_bound(1.0, width=0.5, norm=1.0, L=1, mu=1)
    0.75
    """
    low = _least("mu", mu, 0, strict=True)
    return _after(eps, width, norm, (2 * _most("L", L, low) - low) / low)


def lower_bound_sharp(eps: ArrayLike, *, width: ArrayLike, norm: ArrayLike, L: Constant, mu: Constant) -> Any:
    r"""The sharper form of Theorem lowerBoundLinearRateMPinexact: :math:`\varepsilon_{t+1}\ge
    (1-\frac{W_A(-\nabla f(x_t))^2}{\|z_t\|^2}\frac{2L-\mu}{L})\varepsilon_t`.

    The paper bounds :math:`\varepsilon_t` from below through strong convexity; for a globally L-smooth f it is at
    least :math:`\|\nabla f(x_t)\|^2/(2L)` directly (erratum 17). Preconditions and parameters of `lower_bound`; mu =
    0 is allowed.

    Examples
    --------
    >>> lower_bound_sharp(1.0, width=0.5, norm=1.0, L=2, mu=1), lower_bound(1.0, width=0.5, norm=1.0, L=2, mu=1)
    (0.625, 0.25)
    """
    low = _least("mu", mu, 0)
    high = _most("L", L, low, strict=low == 0)
    return _after(eps, width, norm, (2 * high - low) / high)


def signed_basis(t: ArrayLike, *, residual: ArrayLike) -> Any:
    r"""Corollary lowerBoundEx, corrected: on the signed basis vectors, matching pursuit for f = 1/2||x - y||^2 leaves
    exactly :math:`\varepsilon_t = \frac12` times the sum of the d - t smallest squares of the residual :math:`y - x_0`.

    The paper's factor 1 - 1/(d - t) is reached where all remaining residuals have the same size; otherwise the error
    falls faster, so the stated inequality is reversed (erratum 1).

    Parameters
    ----------
    t : integers >= 0, number or array
    residual : (d,) array
        y - x_0.

    Examples
    --------
    >>> signed_basis([0, 1, 2, 3], residual=[2.0, 1.0])
    array([2.5, 0.5, 0. , 0. ])
    """
    steps, squares = _updates(t), np.sort(host(real_array(residual, "residual")).ravel() ** 2)
    if not np.array_equal(steps, np.floor(steps)):
        raise ValueError(f"t is {t!r}; the exact error is known after whole numbers of updates, so give integers.")
    left = np.concatenate([[0.0], np.cumsum(squares)]) / 2
    return _plain(left[np.maximum(len(squares) - steps.astype(np.intp), 0)])


def coherence(*, n: int, mdw: Constant) -> float:
    r"""Theorem coherenceVSdw: :math:`\mu(B, n-1)\ge 1 - n\,\mathrm{mDW}(\pm B)^2` for n unit atoms B.

    Holds for dependent atoms too, and says nothing where the right side is negative (erratum 19).

    Parameters
    ----------
    n : int
        Number of atoms, one of each sign.
    mdw : float or Interval
        Positive; an interval is read at its upper end.

    Examples
    --------
    >>> coherence(n=2, mdw=0.5)
    0.5
    """
    width = _most("mdw", mdw, 0, strict=True)
    return 1 - _count(n) * width**2


def mdw_from_coherence(*, n: int, coherence: Constant) -> float:
    r"""Theorem coherenceVSdw, solved for the width: :math:`\mathrm{mDW}(\pm B)\ge\sqrt{\max(0, 1-\mu(B,n-1))/n}`.

    Parameters
    ----------
    n : int
        Number of unit atoms, one of each sign.
    coherence : float or Interval
        `geometry.coherence(D, n - 1)`.

    Examples
    --------
    >>> mdw_from_coherence(n=4, coherence=0.0)
    0.5
    """
    return math.sqrt(max(0.0, 1 - _most("coherence", coherence, 0)) / _count(n))


def frank_wolfe_limit(*, L: float, grad: Array, x: Array, z: Array) -> float:
    r"""Theorem stepFWMPshort, its constant: one step of Frank-Wolfe on alpha A and one of matching pursuit, from the
    same x, differ by :math:`\alpha\|x^{FW}-x^{MP}\|\to\|(\langle g,x\rangle+2a\langle
    z,x\rangle/\|z\|^2)z-ax\|/(L\|z\|^2)` as alpha grows, with :math:`a=\langle-g,z\rangle`.

    For Algorithm 2 variant 3, which is Algorithm 3 variant 0, against Algorithm 4 variant 0; other variants
    have other limits or none (erratum 24).

    Parameters
    ----------
    L : float
    grad, x, z : arrays of one shape
        The gradient at x, x, and the atom of A that the oracle names.

    Examples
    --------
    >>> frank_wolfe_limit(L=1, grad=[-1.0, 0.0], x=[0.0, 2.0], z=[1.0, 0.0])
    2.0
    """
    g, here, atom = (host(real_array(v, name)).ravel() for v, name in ((grad, "grad"), (x, "x"), (z, "z")))
    if not len(g) == len(here) == len(atom):
        raise ValueError(f"grad, x, z have {len(g)}, {len(here)}, {len(atom)} entries; give vectors of one shape.")
    square, a = float(atom @ atom), -float(g @ atom)
    if square == 0:
        raise ValueError("z is zero; give the atom that the oracle names, which has a direction.")
    along = float(g @ here) + 2 * a * float(atom @ here) / square
    return float(np.linalg.norm(along * atom - a * here)) / (_most("L", L, 0, strict=True) * square)


def delta_fw(delta_mp: float, alpha: float, rho: float) -> float:
    r"""The Frank-Wolfe quality on alpha A of an oracle of matching-pursuit quality `delta_mp` on A:
    :math:`\delta_{FW} = (\alpha\delta_{MP}-\rho)/(\alpha-\rho)`.

    For symmetric A and points with :math:`\|x\|_A\le\rho<\alpha`. The paper announces this relation and does not give
    it (erratum 25). It is positive from :math:`\alpha>\rho/\delta_{MP}` on, and tends to `delta_mp` as alpha grows.

    Parameters
    ----------
    delta_mp : float in (0, 1]
    alpha, rho : float

    Examples
    --------
    >>> delta_fw(0.5, alpha=4.0, rho=1.0)
    0.3333333333333333
    """
    delta, scale, reach = _scales("delta_mp", delta_mp, alpha, rho)
    if not scale * delta > reach:
        raise ValueError(f"alpha is {alpha} with rho {rho} and delta_mp {delta_mp}; give alpha > rho / delta_mp.")
    return (scale * delta - reach) / (scale - reach)


def delta_mp(delta_fw: float, alpha: float, rho: float) -> float:
    r"""The matching-pursuit quality on A of an oracle of Frank-Wolfe quality `delta_fw` on alpha A, the other way
    round: :math:`\delta_{MP} = \delta_{FW}-(1-\delta_{FW})\rho/\alpha`.

    For symmetric A and points with :math:`\|x\|_A\le\rho<\alpha`: :math:`\langle g,x\rangle` is at least
    :math:`-\rho h_A(-g)`. It is not the inverse of `delta_fw`: each direction takes the worst point.

    Parameters
    ----------
    delta_fw : float in (0, 1]
    alpha, rho : float

    Examples
    --------
    >>> delta_mp(0.5, alpha=4.0, rho=1.0)
    0.375
    """
    delta, scale, reach = _scales("delta_fw", delta_fw, alpha, rho)
    if not scale * delta > (1 - delta) * reach:
        raise ValueError(f"alpha is {alpha} with rho {rho}; give alpha > rho (1 - delta_fw) / delta_fw.")
    return delta - (1 - delta) * reach / scale


# ---------------------------------------------------------------------- preconditions


def _updates(t: ArrayLike) -> Small:
    steps = np.asarray(t, dtype=np.float64)
    if not (steps >= 0).all():
        raise ValueError(f"t holds {steps.min()}; a number of updates must not be negative, so give t >= 0.")
    return steps


def _quality(delta: float) -> float:
    if not 0 < delta <= 1:
        raise ValueError(f"delta is {delta}; the quality of an oracle lies in (0, 1].")
    return float(delta)


def _number(name: str, value: float, least: float, strict: bool) -> float:
    if not (value > least if strict else value >= least):
        raise ValueError(f"{name} is {value}; give a number {'above' if strict else 'of at least'} {least:g}.")
    return value


def _most(name: str, value: Constant, least: float, strict: bool = False) -> float:
    """A constant that makes the bound larger: the upper end of an interval."""
    return _number(name, value.upper if isinstance(value, Interval) else float(value), least, strict)


def _least(name: str, value: Constant, least: float, strict: bool = False) -> float:
    """A constant that makes the bound smaller: the lower end of an interval."""
    return _number(name, value.lower if isinstance(value, Interval) else float(value), least, strict)


def _width(mdw: Constant) -> float:
    width = mdw.lower if isinstance(mdw, Interval) else float(mdw)
    if not width > 0:
        raise ValueError(f"mdw is {mdw}; this rate needs mDW > 0, so 0 inside conv(A): add the atoms' negatives.")
    return width


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n is {n!r}; give the number of atoms, at least 1.")
    return int(n)


def _scales(name: str, delta: float, alpha: float, rho: float) -> tuple[float, float, float]:
    if not 0 < delta <= 1:
        raise ValueError(f"{name} is {delta}; the quality of an oracle lies in (0, 1].")
    if not 0 <= rho < alpha < math.inf:
        raise ValueError(f"alpha is {alpha} with rho {rho}; the conversion needs 0 <= rho < alpha.")
    return float(delta), float(alpha), float(rho)


def _reach(L: Constant, radius: Constant, rho: Constant) -> float:
    """C = L rho^2 radius^2, the bound on the curvature of rho A."""
    return _most("L", L, 0) * (_most("rho", rho, 0) * _most("radius", radius, 0)) ** 2


def _corollary(L: Constant, diameter: Constant, mdw: Constant, norm: Constant) -> float:
    """2 L (norm diameter / mdw)^2."""
    return 2 * _most("L", L, 0) * (_most("norm", norm, 0) * _most("diameter", diameter, 0) / _width(mdw)) ** 2


def _after(eps: ArrayLike, width: ArrayLike, norm: ArrayLike, factor: float) -> Any:
    """(1 - width^2 / norm^2 factor) eps, at least zero."""
    error, w, z = (np.asarray(v, dtype=np.float64) for v in (eps, width, norm))
    if not (error >= 0).all():
        raise ValueError(f"eps holds {error.min()}; errors are not negative, so give eps >= 0.")
    if not (z > 0).all():
        raise ValueError(f"norm holds {z.min()}; the atom that the oracle names is not zero, so give norm > 0.")
    return _plain(np.maximum(1 - (w / z) ** 2 * factor, 0.0) * error)


def _plain(values: Any) -> Any:
    """A float for a scalar t, an array for an array."""
    return float(values) if np.ndim(values) == 0 else values
