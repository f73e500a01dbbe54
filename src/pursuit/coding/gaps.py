r"""Proved duality gaps of codes of the Lasso, of NNLS and on simplices, in float64, whoever found the codes.

For :math:`p(x) = \tfrac12\|y - Dx\|^2 + \lambda\|x\|_1`, every u with :math:`|\langle a_j, u\rangle| \le \lambda` (over
:math:`x \ge 0`: :math:`\langle a_j, u\rangle \le \lambda`) for all atoms proves
:math:`\min p \ge \langle u, y\rangle - \tfrac12\|u\|^2`. Two such u are tried:

- :math:`u = \theta r` with r = y - Dx and the largest :math:`\theta \le 1` that the atoms allow. Then
  :math:`p(x) - \min p \le \tfrac12 (1 - \theta)^2 \|r\|^2 + \sum_i (\lambda |x_i| - \theta \langle a_i, r\rangle x_i)`.
- over :math:`x \ge 0`, :math:`u = r - \epsilon v` where v has a positive product with every atom, and the smallest
  :math:`\epsilon \ge 0` that does: the bound is :math:`\tfrac12\epsilon^2\|v\|^2 + \sum_i x_i (\lambda - \langle a_i, u
  \rangle)`. There is such a v where 0 is not in the hull of the atoms at unit length; it is then the nearest point of
  the hull to 0. With weights, the same v serves where it has positive products with all atoms.

The least bound counts; :math:`p(x)` itself is one, since :math:`\min p \ge 0`.

Over :math:`x \ge 0` with the sum s, every :math:`\lambda` gives a lower bound, the minimum of the Lasso less
:math:`\lambda s`. With the largest :math:`\langle a_j, r\rangle`, for which u = r will do, this is the gap of Frank
and Wolfe.

**Rounding.** r as computed, :math:`\hat r`, is taken as it is: only products with it are rounded, a sum of d terms by
at most :math:`e_j = (d + 4) \epsilon \|a_j\| \|\hat r\|`, and :math:`\delta = (s + 4) \epsilon (\|y\| + \sum_i |x_i|
\|a_i\|)` bounds its distance to r. With u computed from :math:`\hat r`, the gap exceeds the formulas by no more than
:math:`\|\hat r - u\| \delta + \delta^2`, the rounding of the products and that of the sums.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from pursuit.coding.request import Array, Request

EPS = 2.0**-52
BLOCK = 2**22
"""Numbers of a block of products."""


def duality_gaps(request: Request, codes: sp.csr_array) -> Array:
    """An upper bound on p(x) - min p for every signal."""
    rules = request.rules
    kind = "positive" if rules.nonnegative else "free"
    return gaps_of((request.D, request.Y, request.weights), codes, kind, rules.penalties)


def gaps_of(
    data: tuple[Array, Array, Array | None], codes: sp.csr_array, kind: str, penalties: Array | None = None
) -> Array:
    """The gaps of codes of D, Y and weights of this kind, free, positive or simplex, by blocks of signals."""
    D, Y, W = data
    unit = exponent(D.ravel())
    D = np.ldexp(np.ascontiguousarray(D, dtype=np.float64), -unit)
    v = interior(D) if kind == "positive" else None
    gaps, size = np.empty(len(Y)), max(1, BLOCK // max(D.shape))
    for start in range(0, len(gaps), size):
        rows = slice(start, start + size)
        x, y = codes[rows].astype(np.float64), Y[rows].astype(np.float64)
        w = None if W is None else W[rows].astype(np.float64)
        y = y if w is None else np.where(w > 0, y, 0.0)
        e, f = exponent(y), 0 if w is None else exponent(w)  # powers of two, so that no square over- or underflows
        with np.errstate(all="ignore"):
            x.data = exactly(x.data, np.repeat(unit - e, np.diff(x.indptr)))
            y, w = np.ldexp(y, -e[:, None]), None if w is None else np.ldexp(w, -np.asarray(f)[:, None])
            amounts = np.ldexp(1.0, unit - e) if penalties is None else exactly(penalties[rows], -unit - e - f)
            bounds = block_gaps((D, y, w), x, amounts, kind, v)
            gaps[rows] = np.where(bounds > 0, np.maximum(np.ldexp(bounds, 2 * e + f), np.finfo(float).tiny), bounds)
    return np.where(np.isnan(gaps), np.inf, gaps)


def exponent(a: Array) -> Array:
    """The smallest e with |a| < 2^e for the entries along the last axis."""
    exponents: Array = np.frexp(np.abs(a).max(axis=-1, initial=0.0))[1]
    return exponents


def exactly(a: Array, exponents: Array) -> Array:
    """a 2^exponents; NaN where that is rounded."""
    scaled = np.ldexp(a, exponents)
    same: Array = np.where(np.ldexp(scaled, -exponents) == a, scaled, np.nan)
    return same


def block_gaps(
    data: tuple[Array, Array, Array | None], x: sp.csr_array, amounts: Array, kind: str, v: Array | None
) -> Array:
    """The gaps of some signals with these penalties, or sums on a simplex."""
    (D, y, w), on_simplex = data, kind == "simplex"
    d = len(D)

    def weighted(a: Array) -> Array:
        return a if w is None else a * w

    def length(a: Array) -> Array:
        return np.asarray(np.sqrt((weighted(a) * a).sum(axis=1)) * (1 + (d + 4) * EPS))

    norms = (np.sqrt(np.square(D).sum(axis=0))[None] if w is None else np.sqrt(w @ np.square(D))) * (1 + (d + 4) * EPS)
    r = y - x @ D.T
    c, size = weighted(r) @ D, length(r)
    terms = np.diff(x.indptr)
    row = np.repeat(np.arange(len(y)), terms)
    weight, entry = np.abs(x.data), (row if w is not None else 0 * row, x.indices)

    def total(values: Array) -> Array:
        return np.bincount(row, values, minlength=len(y))

    path = total(weight * norms[entry])
    delta = (terms + 4) * EPS * (length(y) + path)
    errors = (d + 4) * EPS * size[:, None] * norms
    most, sums = ((np.abs(c) if kind == "free" else c) + errors).max(axis=1), total(weight)
    penalties, prices = (most, 0.0 * sums) if on_simplex else (amounts, amounts * sums)
    primal = (0.5 * (size + delta) ** 2 + prices) * (1 + (terms + d + 8) * EPS)
    rest = most * (amounts - sums) + (terms + 8) * EPS * np.abs(most) * (amounts + sums) if on_simplex else 0.0

    theta = np.where(most > penalties, penalties / most * (1 - 4 * EPS), 1.0)
    fit = c[row, x.indices] * x.data
    slack = penalties[row] * weight - theta[row] * fit
    rounding = (d + 4) * EPS * size * path + (terms + 8) * EPS * total(np.abs(penalties[row] * weight) + np.abs(fit))
    scaled = 0.5 * ((1 - theta) * size) ** 2 * (1 + 8 * EPS) + total(slack) + rounding
    bounds = [primal, scaled + (1 - theta) * size * delta + delta**2 + rest]
    if v is not None:
        products, reach = weighted(np.broadcast_to(v, y.shape)) @ D, length(np.broadcast_to(v, y.shape))
        products -= (d + 4) * EPS * reach[:, None] * norms
        beyond = c + errors - penalties[:, None]
        share = np.where(beyond > 0, beyond / products, 0.0).max(axis=1) * (1 + 4 * EPS)
        allowed = ((products > 0) | (norms == 0)).all(axis=1)
        moved = share * reach
        gain = fit - share[row] * products[row, x.indices] * x.data
        rounding += (2 * d + 8) * EPS * moved * path + (terms + 8) * EPS * total(np.abs(gain))
        shifted = 0.5 * moved**2 * (1 + 8 * EPS) + total(penalties[row] * weight - gain) + rounding
        bounds.append(np.where(allowed, shifted + moved * delta + delta**2, np.inf))
    least: Array = np.fmin.reduce(bounds)
    return np.maximum(least, 0.0) if on_simplex else least  # sums of codes are rounded


def interior(D: Array) -> Array | None:
    """The nearest point to 0 of the hull of the columns at unit length; None where that is 0, or nearly.

    The residual of the non-negative least squares of (0, 1) on the columns (a_j, 1) has no positive product with them.
    """
    units = D / np.linalg.norm(D, axis=0)
    weights = nnls(np.vstack([units, np.ones(D.shape[1])]), np.eye(1, len(D) + 1, len(D))[0])[0]
    v: Array = units @ weights
    return v if float((v @ units).min()) > 1e-6 * float(np.linalg.norm(v)) else None
