"""A problem ready to be searched: scaled columns, without those that do not count, and minima over few of them.

Least squares is scaled to columns and data of norm 1, and projected off the uncounted columns; so no threshold depends
on units. Other losses have scaled columns only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pursuit.arrays import Indices, Small
from pursuit.objectives import LeastSquares
from pursuit.subsets.exact import Exact
from pursuit.subsets.fits import NOTHING, ConvexFits, LinearFits, curved
from pursuit.subsets.given import Given
from pursuit.subsets.quadratic import Point, Quadratic
from pursuit.subsets.smooth import Gram, Loss, Smooth, widest

EPS = float(np.finfo(np.float64).eps)
SHORTEST = 1e-250
"""Shorter columns have coefficients beyond the range of numbers."""
USELESS = 1e24
"""A ridge, of columns of norm 1, with which a column explains nothing."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """`problem` is what is searched, in units of `scale`; `coefficients` minimises over some units, and gives those of
    all columns of the user and of the uncounted ones."""

    problem: Any
    scale: float
    coefficients: Callable[[Indices], tuple[Small, Small]]
    rounding: float
    """By how much a value may be wrong."""
    lowest: float
    """No value is below this."""

    def of_size(self, k: int) -> Prepared:
        """The same problem for another k."""
        return replace(self, problem=replace(self.problem, k=k))

    @property
    def start(self) -> Point:
        """Where the first relaxation begins."""
        P = self.problem
        return Point(np.zeros(P.size if isinstance(P, Quadratic) else len(P.labels) + P.uncounted))


def prepare(given: Given, k: int, bound: Any, copies: bool = True) -> Prepared:
    """The problem of the user, scaled; columns that others are multiples of are left out if `copies` may be."""
    wide = np.broadcast_to(math.inf if bound is None else bound, given.chosen.labels.shape)
    if isinstance(given.loss, LeastSquares):
        return _least_squares(given, k, wide, copies or given.l2 > 0 or bound is not None)
    return _other(given, k, wide)


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Columns of norm 1, projected off the uncounted ones, without those that depend on these."""

    C: Small
    norms: Small
    left: Indices
    worse: Small
    """By how much the projection magnifies rounding errors of each column."""
    basis: Small
    """Of the uncounted columns."""
    exact: Exact

    @classmethod
    def of(cls, given: Given, weights: Small) -> _Scaled:
        """The columns of a problem, times the square roots of the weights."""
        s, matrix, uncounted = np.sqrt(weights)[:, None], given.chosen.matrix, given.uncounted
        exact = Exact(uncounted, matrix, given.loss.y.ravel(), weights, given.l2)
        C, norms = _units(matrix if (s == 1.0).all() else s * matrix)
        some = Exact(uncounted[:, :0], uncounted, weights, weights, 0.0).independent(range(uncounted.shape[1]))
        Z = _units(s * uncounted[:, some])[0]
        basis, certain = np.linalg.qr(Z)[0], float(np.linalg.svd(Z, compute_uv=False).min(initial=1.0))
        kept = (norms > 0) * 1.0
        if len(some):
            for _ in range(2):
                C = C - basis @ (basis.T @ C)
            C, kept = _units(C)
        doubtful = np.flatnonzero(kept < 1e-10)
        gone = [j for j in doubtful if not exact.independent([int(j)])]
        left = np.setdiff1d(np.arange(len(norms)), gone)
        if (norms[left] < SHORTEST).any():
            raise ValueError(
                f"A holds a column of length {norms[left].min():.3g}; give columns longer than {SHORTEST:g}."
            )
        worse = 1.0 / (np.maximum(kept, EPS) * max(certain, EPS))
        C = C if len(left) == len(norms) else C[:, left]
        return cls(C, (norms * np.maximum(kept, EPS))[left], left, worse[left], basis, exact)


def _units(C: Small) -> tuple[Small, Small]:
    """Columns of norm 1, and their norms; zeros stay."""
    peaks = np.maximum(C.max(axis=0, initial=0.0), -C.min(axis=0, initial=0.0))
    C = C / np.where(peaks > 0, peaks, 1.0)
    norms = np.sqrt(np.einsum("ij,ij->j", C, C))
    C /= np.where(norms > 0, norms, 1.0)
    with np.errstate(over="ignore"):
        return C, peaks * norms


def _least_squares(given: Given, k: int, bound: Small, copies: bool) -> Prepared:
    f = given.loss
    weights = np.broadcast_to(np.asarray(f._host_weights, dtype=np.float64), f.y.shape).ravel()
    columns, s = _Scaled.of(given, weights), np.sqrt(weights)
    y, basis = s * f.y.ravel(), columns.basis
    n, length = len(y), float(np.linalg.norm(y))
    for _ in range(2):
        y = y - basis @ (basis.T @ y)
    scale, noise = float(np.linalg.norm(y)), (n + 8) * EPS / 2
    with np.errstate(over="ignore"):
        ridge = (math.sqrt(given.l2) / columns.norms) ** 2
    used = (ridge < USELESS) & (scale > 100.0 * noise * length)
    if not copies and len(np.unique(given.chosen.labels)) == len(used):
        used[np.flatnonzero(used)] &= _is_first(columns.C[:, used], given.positive)
    left, norms, worse, ridge = columns.left[used], columns.norms[used], columns.worse[used], ridge[used]
    labels, scale = given.chosen.labels[left], scale or 1.0
    X = columns.C if used.all() else columns.C[:, used]
    target = y / scale
    H = X.T @ X
    H[np.diag_indices_from(H)] += ridge
    noise *= max(1.0, length / scale)
    with np.errstate(over="ignore"):
        M = bound[left] * norms / scale

    def least(*places: Indices) -> float:
        return float(columns.exact.least(*(left[each] for each in places)) / Fraction(scale) ** 2)

    fit = LinearFits(X, target, ridge, labels, given.positive, noise, worse, M, least)
    units, places = np.unique(labels, return_inverse=True)
    single, nothing = len(units) == len(labels), np.zeros(0, np.intp)
    P = Quadratic(
        H, X.T @ target, float(target @ target) / 2, k, labels if single else np.arange(len(labels)), nothing,
        worse * np.sqrt(np.diag(H)), ridge, noise, fit, n, given.positive, np.maximum(ridge, NOTHING), M, len(left),
    )  # fmt: skip

    def coefficients(units: Indices) -> tuple[Small, Small]:
        b = np.zeros(len(bound))
        places, values = fit.solve(units)
        b[left[places]] = values * scale / norms[places]
        return b, _uncounted(given, s, s * (f.y.ravel() - given.chosen.matrix @ b))

    problem = P if single else Smooth(Gram(P), k, units, places, fit, nothing, given.positive)
    return Prepared(problem, scale**2, coefficients, 16.0 * noise, 0.0)


def _is_first(C: Small, positive: bool) -> Any:
    """Which columns are no copies of earlier ones (nor their negatives, where weights have both signs)."""
    signs = 1.0 if positive else np.sign(C[np.abs(C).argmax(axis=0), np.arange(C.shape[1])])
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(v.tobytes(), j) == j for j, v in enumerate((C * signs + 0.0).T)], dtype=np.bool_)


def _uncounted(given: Given, s: Small, rest: Small) -> Small:
    """The coefficients of the uncounted columns that leave the least of the rest."""
    Z, norms = _units(s[:, None] * given.uncounted)
    return np.linalg.lstsq(Z, rest, rcond=None)[0] / np.where(norms > 0, norms, 1.0)


def _other(given: Given, k: int, bound: Small) -> Prepared:
    f: Any = given.loss
    columns = _Scaled.of(given, np.ones(f.y.size))
    left, norms, labels, p = columns.left, columns.norms, given.chosen.labels[columns.left], len(columns.left)
    C = np.concatenate([columns.C, columns.basis], axis=1)
    with np.errstate(over="ignore"):
        ridge, M = np.minimum((math.sqrt(given.l2) / norms) ** 2, USELESS), bound[left] * norms
    noise = (C.shape[0] + 8) * EPS / 2 * float(columns.worse.max(initial=1.0))
    more = np.zeros(C.shape[1] - p)

    def independent(at: Indices, rows: Indices) -> Small:
        raw, Z, ones = given.chosen.matrix[rows][:, left[at]], given.uncounted[rows], np.ones(len(rows))
        both = np.concatenate([Z, raw], axis=1)
        return _units(both[:, Exact(both[:, :0], both, ones, ones, 0.0).independent(range(both.shape[1]))])[0]

    fit = ConvexFits(
        f, C, np.append(ridge, more), np.append(M, more + math.inf), labels, given.positive, noise, independent
    )
    none = np.zeros(0, np.intp)
    upper = fit.value(none)
    M[ridge > 0] = np.minimum(M, np.sqrt(2.0 * max(upper - f.infimum, 0.0)) / np.sqrt(np.maximum(ridge, NOTHING)))[
        ridge > 0
    ]
    if not np.isfinite(M).all() and np.linalg.svd(C, compute_uv=False).min(initial=0.0) > 1e-9 and p < len(C):
        slope = curved(f, C @ fit.whole(np.unique(labels)))[1]
        M = np.minimum(M, widest(f, np.linalg.pinv(C).T, slope, upper, lambda _: 0.0)[:p])
    far = more + math.inf
    if np.isfinite(M).all():
        slope = curved(f, C @ fit.whole(none))[1]
        far = widest(f, columns.basis, slope, upper, lambda u: float(np.abs(columns.C.T @ u) @ M))
    fit.M[:p] = M
    curvature = f.L if f.L is not None else float(np.max(f._host_weights * f.y)) + float(np.max(f._host_weights))
    L = curvature * float(np.linalg.norm(C, 2)) ** 2
    units, places = np.unique(labels, return_inverse=True)
    model = Loss(f, C, np.maximum(ridge, NOTHING), M, far, noise, L)
    problem = Smooth(model, k, units, places, fit, none, given.positive, C.shape[1] - p)

    def coefficients(chosen: Indices) -> tuple[Small, Small]:
        b, out = fit.whole(chosen), np.zeros(len(bound))
        out[left] = b[:p] / norms
        return out, _uncounted(given, np.ones(len(C)), C @ b - given.chosen.matrix @ out)

    return Prepared(problem, 1.0, coefficients, 1e-12 * abs(upper), f.infimum)
