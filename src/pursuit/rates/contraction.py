"""Factors by which a step over a span reduces the error: linear rates, lower bounds, and the exact error on a basis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arguments import as_int_or_nan, real_array, require
from pursuit.arrays import host
from pursuit.rates.arguments import (
    Constant,
    float_or_array,
    lower,
    numbers,
    positive_width,
    quality,
    share,
    update_counts,
    upper,
)


def linear(
    t: ArrayLike, *, mu: Constant, L: Constant, mdw: Constant, radius: Constant, eps0: Constant, delta: Any = 1.0
) -> Any:
    r"""Theorem 7: :math:`\varepsilon_t\le(1-\delta^2\mu\,\mathrm{mDW}(A)^2/(L\,\mathrm{radius}(A)^2))^t\varepsilon_0`.

    For Algorithm 4, matching pursuit, OMP and variant 2 of Algorithm 6, mDW > 0; A need not be symmetric (erratum 23).
    With a line search the four constants may belong to any norm, the width to its dual (erratum 8). mDW never exceeds
    the radius, and may equal it (erratum 11).

    >>> linear([0, 1, 2], mu=1, L=1, mdw=0.5**0.5, radius=1, eps0=8.0).round(12)
    array([8., 4., 2.])
    """
    positive_width(mdw)
    low, high = lower("mu", mu, 0), upper("L", L, 0, strict=True)
    return linear_affine(t, mu=low * share("mdw", mdw, "radius", radius) ** 2, C=high, eps0=eps0, delta=delta)


def linear_affine(t: ArrayLike, *, mu: Constant, C: Constant, eps0: Constant, delta: Any = 1.0) -> Any:
    r"""Theorem 13: :math:`\varepsilon_t\le(1-\delta^2\mu^{MP}_{f,\rho A}/C^{MP}_{f,\rho
    A})^t\varepsilon_0`.

    For Algorithm 6, rho finite; mu is `geometry.strong_convexity(f, A, rho)` (positive) or a lower bound, C is
    `geometry.curvature(f, A, "mp", rho)` or an upper bound (erratum 21: steps longer than 1 are covered too). For a
    quadratic the factor is :math:`1-\delta^2\mathrm{mDW}(H^{1/2}A)^2/\mathrm{radius}(H^{1/2}A)^2`, never worse than
    that of `linear`.

    >>> linear_affine(3, mu=1, C=2, eps0=8, delta=1)
    1.0
    """
    t, delta = update_counts(t), quality(delta)
    low, high = lower("mu", mu, 0), upper("C", C, 0, strict=True)
    if low > high * (1 + 1e-9):
        raise ValueError(f"mu is {low:g}, larger than the smoothness {high:g}; no function has that, so check both.")
    return float_or_array(upper("eps0", eps0, 0) * np.maximum(1 - delta**2 * low / high, 0.0) ** t)


def lower_bound(eps: ArrayLike, *, width: ArrayLike, norm: ArrayLike, L: Constant, mu: Constant) -> Any:
    r"""Theorem 8: :math:`\varepsilon_{t+1}\ge
    (1-\frac{W_A(-\nabla f(x_t))^2}{\|z_t\|^2}\frac{2L-\mu}{\mu})\varepsilon_t`, and never below zero.

    `eps` is the error before the step, `width` is :math:`W_A(-\nabla f(x_t))`, `norm` that of the atom :math:`z_t`. For
    variant 0 of Algorithm 4 with an exact oracle, where the gradient at :math:`x^\star` vanishes in H (erratum 16:
    :math:`x^\star` in lin(A) is not enough). `lower_bound_sharp` is never smaller.

    >>> lower_bound(1.0, width=0.5, norm=1.0, L=1, mu=1)
    0.75
    """
    low = lower("mu", mu, 0, strict=True)
    return _error_left(eps, width, norm, (2 * upper("L", L, low) - low) / low)


def lower_bound_sharp(eps: ArrayLike, *, width: ArrayLike, norm: ArrayLike, L: Constant, mu: Constant) -> Any:
    r"""Theorem 8 sharp: :math:`\varepsilon_{t+1}\ge
    (1-\frac{W_A(-\nabla f(x_t))^2}{\|z_t\|^2}\frac{2L-\mu}{L})\varepsilon_t`.

    The paper bounds :math:`\varepsilon_t` from below through strong convexity; for a globally L-smooth f it is at
    least :math:`\|\nabla f(x_t)\|^2/(2L)` directly (erratum 17). Preconditions of `lower_bound`; mu = 0 is allowed.

    >>> lower_bound_sharp(1.0, width=0.5, norm=1.0, L=2, mu=1), lower_bound(1.0, width=0.5, norm=1.0, L=2, mu=1)
    (0.625, 0.25)
    """
    low = lower("mu", mu, 0)
    high = upper("L", L, low, strict=low == 0)
    return _error_left(eps, width, norm, (2 * high - low) / high)


def incoherent_pursuit(t: ArrayLike, *, m: int, coherence: Constant, beyond: Constant, eps0: Constant) -> Any:
    r"""Gribonval and Vandergheynst (2006): :math:`\varepsilon_t\le(1-\frac{1-\mu(B,m-1)}m)^t\varepsilon_0` for
    matching pursuit and OMP, least squares, unit atoms B, a target that combines m of them.

    `coherence` is :math:`\mu(B, m-1)`, `beyond` is :math:`\mu(B, m)`; where their sum is below 1, no wrong atom is
    taken. It may be better than Theorem 7, which knows nothing of m (erratum 41).

    >>> incoherent_pursuit([0, 1, 2], m=2, coherence=0.0, beyond=0.0, eps0=1.0)
    array([1.  , 0.5 , 0.25])
    """
    require(as_int_or_nan(m) >= 1, "m", m, "the number of atoms of the target, at least 1")
    low = upper("coherence", coherence, 0)
    both = low + upper("beyond", beyond, 0)
    require(both < 1, "beyond", beyond, "a coherence mu(B, m) with mu(B, m - 1) + mu(B, m) < 1")
    return linear_affine(t, mu=(1 - low) / int(m), C=1.0, eps0=eps0)


def signed_basis(t: ArrayLike, *, residual: ArrayLike) -> Any:
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


def _error_left(eps: ArrayLike, width: ArrayLike, norm: ArrayLike, factor: float) -> Any:
    """(1 - width^2 / norm^2 factor) eps, at least zero."""
    error, w, z = numbers(eps, "eps"), numbers(width, "width"), numbers(norm, "norm")
    require(bool((error >= 0).all()), "eps", error.min(initial=np.inf), "errors, which are not negative")
    require(
        not np.isnan(w).any(), "width", w.max(initial=-np.inf), "the width of the atoms along the negative gradient"
    )
    require(bool((z > 0).all()), "norm", z.min(initial=np.inf), "the norm of an atom, which is positive")
    return float_or_array(np.maximum(1 - (w / z) ** 2 * factor, 0.0) * error)
