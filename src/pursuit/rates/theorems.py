"""The paper's bounds: rates of order 1/t, factors by which a step reduces the error, relations between constants."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arguments import as_int_or_nan, describe, number, real_array, require
from pursuit.arrays import Array, host
from pursuit.rates.arguments import (
    Constant,
    Numbers,
    atom_count,
    float_or_array,
    lower,
    numbers,
    positive_width,
    quality,
    share,
    update_counts,
    upper,
)


def frank_wolfe(t: ArrayLike, *, L: Constant, diameter: Constant, eps0: Constant, delta: Numbers = 1.0) -> Numbers:
    r"""Theorem 1: :math:`\varepsilon_t \le 2(L\,\mathrm{diam}(A)^2/\delta + \varepsilon_0) / (\delta t + 2)`.

    For Algorithms 2 and 3, convex f that is L-smooth on conv(A), :math:`x_0` in conv(A), delta relative to x. Variants
    0 to 2 of Algorithm 2 keep it with L and the diameter in any norm. Variant 0 needs the step 2/(delta t + 2); with
    2/(t + 2), as printed, the bound fails for delta < 1/2 (erratum 5).

    >>> frank_wolfe([0, 2, 8], L=1, diameter=2, eps0=3, delta=1)
    array([7. , 3.5, 1.4])
    """
    return frank_wolfe_affine(t, C=upper("L", L) * upper("diameter", diameter) ** 2, eps0=eps0, delta=delta)


def frank_wolfe_affine(t: ArrayLike, *, C: Constant, eps0: Constant, delta: Numbers = 1.0) -> Numbers:
    r"""Theorem 11: :math:`\varepsilon_t \le 2(C_f/\delta + \varepsilon_0) / (\delta t + 2)`.

    For Algorithm 5, and all that `frank_wolfe` names; C is `geometry.curvature(f, A)` or any upper bound on it. Proof
    by induction on :math:`\varepsilon_{t+1}\le(1-\gamma\delta)\varepsilon_t+\gamma^2C/2` at :math:`\gamma=2/(\delta
    t+2)`. With additive errors of e / (delta t + 2), C + e replaces C.

    >>> frank_wolfe_affine(2, C=4, eps0=3)
    3.5
    """
    t, delta = update_counts(t), quality(delta)
    return float_or_array(2 * (upper("C", C) / delta + upper("eps0", eps0)) / (delta * t + 2))


def matching_pursuit(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant, delta: Numbers = 1.0
) -> Numbers:
    r"""Theorem 2: :math:`\varepsilon_t \le 4(2L\rho^2\mathrm{radius}(A)^2/\delta + \varepsilon_0)/(\delta t + 4)`.

    For Algorithm 4, matching pursuit and OMP on a symmetric A (erratum 23; otherwise replace 2 rho by
    :math:`\sup_t\|x^\star-x_t\|_A`), f convex and L-smooth on rho conv(A), as long as rho bounds the atomic norms of
    :math:`x^\star` and of all iterates up to t; `geometry.rho` bounds them a priori (erratum 22).

    >>> matching_pursuit([0, 4], L=1, radius=1, rho=1, eps0=2)
    array([4., 2.])
    """
    return matching_pursuit_affine(t, C=_curvature_bound(L, radius, rho), eps0=eps0, delta=delta)


def matching_pursuit_affine(t: ArrayLike, *, C: Constant, eps0: Constant, delta: Numbers = 1.0) -> Numbers:
    r"""Theorem 12: :math:`\varepsilon_t \le 4(2C/\delta + \varepsilon_0)/(\delta t + 4)`.

    For Algorithm 6 on a symmetric A; C is :math:`C^{MP}_{f,\rho A}`, `geometry.curvature(f, A, "mp", rho)`, or an upper
    bound on it. It is `frank_wolfe_affine` with delta/2 (erratum 27: the denominator is delta t + 4 throughout).

    >>> matching_pursuit_affine(4, C=1, eps0=2)
    2.0
    """
    return frank_wolfe_affine(t, C=C, eps0=eps0, delta=quality(delta) / 2)


def matching_pursuit_sharp(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant | None = None, delta: Numbers = 1.0
) -> Numbers:
    r"""Theorem 2 sharp: :math:`\varepsilon_t \le 8C/(\delta^2 t + 8C/\varepsilon_0)`, :math:`C =
    L\rho^2\mathrm{radius}(A)^2`, and :math:`\varepsilon_t\le 8C/(\delta^2t+4)` where eps0 is not given.

    Preconditions of `matching_pursuit`, and never larger. A step decreases the error by
    :math:`\delta^2\varepsilon_t^2/(8C)`, so :math:`1/\varepsilon_t` grows by at least :math:`\delta^2/(8C)`; and
    :math:`\varepsilon_0\le 2C` since the gradient at :math:`x^\star` is orthogonal to lin(A) (erratum 3).

    >>> matching_pursuit_sharp([0, 4], L=1, radius=1, rho=1, eps0=2), matching_pursuit_sharp(4, L=1, radius=1, rho=1)
    (array([2., 1.]), 1.0)
    """
    return matching_pursuit_affine_sharp(t, C=_curvature_bound(L, radius, rho), eps0=eps0, delta=delta)


def matching_pursuit_affine_sharp(
    t: ArrayLike, *, C: Constant, eps0: Constant | None = None, delta: Numbers = 1.0
) -> Numbers:
    r"""Theorem 12 sharp: :math:`\varepsilon_t\le 8C/(\delta^2t + 8C/\varepsilon_0)`, C that of Theorem 12.

    >>> matching_pursuit_affine_sharp([0, 4], C=1, eps0=2)
    array([2., 1.])
    """
    t, delta, C = update_counts(t), quality(delta), upper("C", C, strict=True)
    first = 2 * C if eps0 is None else upper("eps0", eps0)
    return float_or_array(8 * C * first / (delta**2 * t * first + 8 * C))


def _curvature_bound(L: Constant, radius: Constant, rho: Constant) -> float:
    """C = L rho^2 radius^2, the bound on the curvature of rho A."""
    return upper("L", L) * (upper("rho", rho) * upper("radius", radius)) ** 2


def least_squares(
    t: ArrayLike, *, diameter: Constant, mdw: Constant, norm: Constant, L: Constant = 1.0, delta: Numbers = 1.0
) -> Numbers:
    r"""Corollary 4, corrected: :math:`\varepsilon_t\le 2L\tilde\rho^2\,\mathrm{diam}(A)^2/(\delta^2\,\mathrm{mDW}(A)^2
    (t+2))`.

    For symmetric A and a bound :math:`\tilde\rho\ge\|x^\star\|,\|x_0\|,\dots,\|x_t\|`, the argument `norm`. The paper
    leaves out L; it follows from `matching_pursuit_sharp`, which is never larger, at
    :math:`\rho=\tilde\rho/\mathrm{mDW}` (erratum 3), the inradius around 0 (erratum 14). For f = 1/2||x - y||^2,
    :math:`\tilde\rho` may be ||y|| for OMP from ||x_0|| <= ||y|| only; matching pursuit from 0 needs 2||y||
    (erratum 4).

    >>> least_squares(2, diameter=2, mdw=0.5, norm=1)
    8.0
    """
    scale = 2 * upper("L", L) * (upper("norm", norm) * upper("diameter", diameter) / positive_width(mdw)) ** 2
    return float_or_array(scale / (quality(delta) ** 2 * (update_counts(t) + 2)))


def linear(
    t: ArrayLike, *, mu: Constant, L: Constant, mdw: Constant, radius: Constant, eps0: Constant, delta: Numbers = 1.0
) -> Numbers:
    r"""Theorem 7: :math:`\varepsilon_t\le(1-\delta^2\mu\,\mathrm{mDW}(A)^2/(L\,\mathrm{radius}(A)^2))^t\varepsilon_0`.

    For Algorithm 4, matching pursuit, OMP and variant 2 of Algorithm 6, mDW > 0; A need not be symmetric (erratum 23).
    With a line search the four constants may belong to any norm, the width to its dual (erratum 8). mDW never exceeds
    the radius, and may equal it (erratum 11).

    >>> linear([0, 1, 2], mu=1, L=1, mdw=0.5**0.5, radius=1, eps0=8.0).round(12)
    array([8., 4., 2.])
    """
    positive_width(mdw)
    return linear_affine(t, mu=lower("mu", mu) * share("mdw", mdw, "radius", radius) ** 2, C=L, eps0=eps0, delta=delta)


def linear_affine(t: ArrayLike, *, mu: Constant, C: Constant, eps0: Constant, delta: Numbers = 1.0) -> Numbers:
    r"""Theorem 13: :math:`\varepsilon_t\le(1-\delta^2\mu^{MP}_{f,\rho A}/C^{MP}_{f,\rho A})^t\varepsilon_0`.

    For Algorithm 6, rho finite; mu is `geometry.strong_convexity(f, A, rho)` (positive) or a lower bound, C is
    `geometry.curvature(f, A, "mp", rho)` or an upper bound (erratum 21: steps longer than 1 are covered too). For a
    quadratic the factor is :math:`1-\delta^2\mathrm{mDW}(H^{1/2}A)^2/\mathrm{radius}(H^{1/2}A)^2`, never worse than
    that of `linear`.

    >>> linear_affine(3, mu=1, C=2, eps0=8, delta=1)
    1.0
    """
    t, delta, low, high = update_counts(t), quality(delta), lower("mu", mu), upper("C", C, strict=True)
    if low > high * (1 + 1e-9):
        raise ValueError(f"mu is {low:g}, larger than the smoothness {high:g}; no function has that, so check both.")
    return float_or_array(upper("eps0", eps0) * np.maximum(1 - delta**2 * low / high, 0.0) ** t)


def lower_bound(eps: ArrayLike, *, width: ArrayLike, norm: ArrayLike, L: Constant, mu: Constant) -> Numbers:
    r"""Theorem 8: :math:`\varepsilon_{t+1}\ge
    (1-\frac{W_A(-\nabla f(x_t))^2}{\|z_t\|^2}\frac{2L-\mu}{\mu})\varepsilon_t`, and never below zero.

    `eps` is the error before the step, `width` is :math:`W_A(-\nabla f(x_t))`, `norm` that of the atom :math:`z_t`. For
    variant 0 of Algorithm 4 with an exact oracle, where the gradient at :math:`x^\star` vanishes in H (erratum 16:
    :math:`x^\star` in lin(A) is not enough). `lower_bound_sharp` is never smaller.

    >>> lower_bound(1.0, width=0.5, norm=1.0, L=1, mu=1)
    0.75
    """
    low = lower("mu", mu, strict=True)
    return _error_left(eps, width, norm, (2 * upper("L", L, low) - low) / low)


def lower_bound_sharp(eps: ArrayLike, *, width: ArrayLike, norm: ArrayLike, L: Constant, mu: Constant) -> Numbers:
    r"""Theorem 8 sharp: :math:`\varepsilon_{t+1}\ge
    (1-\frac{W_A(-\nabla f(x_t))^2}{\|z_t\|^2}\frac{2L-\mu}{L})\varepsilon_t`.

    The paper bounds :math:`\varepsilon_t` from below through strong convexity; for a globally L-smooth f it is at
    least :math:`\|\nabla f(x_t)\|^2/(2L)` directly (erratum 17). Preconditions of `lower_bound`; mu = 0 is allowed.

    >>> lower_bound_sharp(1.0, width=0.5, norm=1.0, L=2, mu=1), lower_bound(1.0, width=0.5, norm=1.0, L=2, mu=1)
    (0.625, 0.25)
    """
    low = lower("mu", mu)
    high = upper("L", L, low, strict=low == 0)
    return _error_left(eps, width, norm, (2 * high - low) / high)


def _error_left(eps: ArrayLike, width: ArrayLike, norm: ArrayLike, factor: float) -> Numbers:
    """(1 - width^2 / norm^2 factor) eps, at least zero."""
    error, w, z = numbers(eps, "eps"), numbers(width, "width"), numbers(norm, "norm")
    require(bool((error >= 0).all()), "eps", error.min(initial=np.inf), "errors, which are not negative")
    require(
        not np.isnan(w).any(), "width", w.max(initial=-np.inf), "the width of the atoms along the negative gradient"
    )
    require(bool((z > 0).all()), "norm", z.min(initial=np.inf), "the norm of an atom, which is positive")
    return float_or_array(np.maximum(1 - (w / z) ** 2 * factor, 0.0) * error)


def signed_basis(t: ArrayLike, *, residual: ArrayLike) -> Numbers:
    r"""Corollary 9, corrected: on the signed basis vectors, matching pursuit for f = 1/2||x - y||^2 leaves
    exactly :math:`\varepsilon_t = \frac12` times the sum of the d - t smallest squares of the residual :math:`y - x_0`.

    The paper's factor 1 - 1/(d - t) is reached where all remaining residuals have the same size; otherwise the error
    falls faster, so the stated inequality is reversed (erratum 1).

    >>> signed_basis([0, 1, 2, 3], residual=[2.0, 1.0])
    array([2.5, 0.5, 0. , 0. ])
    """
    steps, squares = update_counts(t), np.sort(host(real_array(residual, "residual")).ravel() ** 2)
    require(np.array_equal(steps, np.floor(steps)), "t", t, "integers, after which the exact error is known")
    left = np.concatenate([[0.0], np.cumsum(squares)]) / 2
    return float_or_array(left[np.maximum(len(squares) - steps.astype(np.intp), 0)])


def coherence(*, n: int, mdw: Constant) -> float:
    r"""Theorem 10: :math:`\mu(B, n-1)\ge 1 - n\,\mathrm{mDW}(\pm B)^2` for n unit atoms B.

    Holds for dependent atoms too, and says nothing where the right side is negative (erratum 19).

    >>> coherence(n=2, mdw=0.5)
    0.5
    """
    return 1 - atom_count(n) * upper("mdw", mdw, strict=True) ** 2


def mdw_from_coherence(*, n: int, coherence: Constant) -> float:
    r"""Theorem 10, solved for the width: :math:`\mathrm{mDW}(\pm B)\ge\sqrt{\max(0, 1-\mu(B,n-1))/n}`.

    >>> mdw_from_coherence(n=4, coherence=0.0)
    0.5
    """
    return math.sqrt(max(0.0, 1 - upper("coherence", coherence)) / atom_count(n))


def frank_wolfe_limit(*, L: float, grad: Array, x: Array, z: Array) -> float:
    r"""Theorem 14, its constant: one step of Frank-Wolfe on alpha A and one of matching pursuit, from the
    same x, differ by :math:`\alpha\|x^{FW}-x^{MP}\|\to\|(\langle g,x\rangle+2a\langle
    z,x\rangle/\|z\|^2)z-ax\|/(L\|z\|^2)` as alpha grows, with :math:`a=\langle-g,z\rangle`.

    For Algorithm 2 variant 3, which is Algorithm 3 variant 0, against Algorithm 4 variant 0; other variants
    have other limits or none (erratum 24).

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
    return float(np.linalg.norm(along * atom - a * here)) / (upper("L", L, strict=True) * square)


def delta_fw(delta_mp: float, alpha: float, rho: float) -> float:
    r"""Section 7, the Frank-Wolfe quality on alpha A of an oracle of matching-pursuit quality `delta_mp` on A:
    :math:`\delta_{FW} = (\alpha\delta_{MP}-\rho)/(\alpha-\rho)`.

    For symmetric A and points with :math:`\|x\|_A\le\rho<\alpha`. The paper announces this relation and does not give
    it (erratum 25). It is positive from :math:`\alpha>\rho/\delta_{MP}` on, and tends to `delta_mp` as alpha grows.

    >>> delta_fw(0.5, alpha=4.0, rho=1.0)
    0.3333333333333333
    """
    delta = _converted(delta_mp, "delta_mp", alpha, rho)
    if not alpha * delta > rho:
        raise ValueError(f"alpha is {alpha} with rho {rho} and delta_mp {delta_mp}; give alpha > rho / delta_mp.")
    return float((alpha * delta - rho) / (alpha - rho))


def delta_mp(delta_fw: float, alpha: float, rho: float) -> float:
    r"""Section 7, the matching-pursuit quality on A of an oracle of Frank-Wolfe quality `delta_fw` on alpha A:
    :math:`\delta_{MP} = \delta_{FW}-(1-\delta_{FW})\rho/\alpha`.

    For symmetric A and points with :math:`\|x\|_A\le\rho<\alpha`: :math:`\langle g,x\rangle` is at least
    :math:`-\rho h_A(-g)`. It is not the inverse of `delta_fw`: each of the two assumes its own worst point.

    >>> delta_mp(0.5, alpha=4.0, rho=1.0)
    0.375
    """
    delta = _converted(delta_fw, "delta_fw", alpha, rho)
    if not alpha * delta > (1 - delta) * rho:
        raise ValueError(f"alpha is {alpha} with rho {rho}; give alpha > rho (1 - delta_fw) / delta_fw.")
    return float(delta - (1 - delta) * rho / alpha)


def _converted(delta: float, name: str, alpha: float, rho: float) -> float:
    """A quality that is to be converted at these scales, checked."""
    if not 0 <= number(rho) < number(alpha) < math.inf:
        raise ValueError(f"alpha is {describe(alpha)} with rho {describe(rho)}; the conversion needs 0 <= rho < alpha.")
    return float(quality(number(delta), name))


def incoherent_pursuit(t: ArrayLike, *, m: int, coherence: Constant, beyond: Constant, eps0: Constant) -> Numbers:
    r"""Section 5 compares with Gribonval and Vandergheynst (2006):
    :math:`\varepsilon_t\le(1-\frac{1-\mu(B,m-1)}m)^t\varepsilon_0` for matching pursuit and OMP, least squares, unit
    atoms B, a target that combines m of them.

    `coherence` is :math:`\mu(B, m-1)`, `beyond` is :math:`\mu(B, m)`; where their sum is below 1, no wrong atom is
    taken. It may be better than Theorem 7, which knows nothing of m (erratum 41).

    >>> incoherent_pursuit([0, 1, 2], m=2, coherence=0.0, beyond=0.0, eps0=1.0)
    array([1.  , 0.5 , 0.25])
    """
    require(as_int_or_nan(m) >= 1, "m", m, "the number of atoms of the target, at least 1")
    low = upper("coherence", coherence)
    holds = low + upper("beyond", beyond) < 1
    require(holds, "beyond", beyond, "a coherence mu(B, m) with mu(B, m - 1) + mu(B, m) < 1")
    return linear_affine(t, mu=(1 - low) / int(m), C=1.0, eps0=eps0)
