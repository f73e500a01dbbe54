"""A problem ready to be searched: scaled columns, without those that do not count, and minima over few of them.

Least squares is scaled to columns and data of norm 1, and projected off the uncounted columns; so no threshold depends
on units. Other losses have scaled columns only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import orth
from scipy.optimize import minimize, nnls

from pursuit.arrays import Indices, Small
from pursuit.objectives import LeastSquares, Objective
from pursuit.subsets.given import Given
from pursuit.subsets.quadratic import NOTHING, Fits, Point, Quadratic
from pursuit.subsets.smooth import REACH, Gram, Loss, Smooth, widest

EPS = float(np.finfo(np.float64).eps)


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


def prepare(given: Given, k: int, bound: Any) -> Prepared:
    """The problem of the user, scaled."""
    wide = np.broadcast_to(math.inf if bound is None else bound, given.chosen.labels.shape)
    if isinstance(given.loss, LeastSquares):
        return _least_squares(given, k, wide)
    return _other(given, k, wide)


def _least_squares(given: Given, k: int, bound: Small) -> Prepared:
    f, labels = given.loss, given.chosen.labels
    s = np.sqrt(np.broadcast_to(np.asarray(f._host_weights, dtype=np.float64), f.y.shape)).ravel()
    C, Z, y = s[:, None] * given.chosen.matrix, s[:, None] * given.uncounted, s * f.y.ravel()
    n, first = C.shape[0], np.linalg.norm(C, axis=0)
    length = float(np.linalg.norm(y))
    if Z.shape[1]:
        basis = orth(Z / np.linalg.norm(Z, axis=0))
        for _ in range(2):
            C, y = C - basis @ (basis.T @ C), y - basis @ (basis.T @ y)
    norms, scale = np.linalg.norm(C, axis=0), float(np.linalg.norm(y))
    noise = (n + 8) * EPS / 2
    left = np.flatnonzero(norms > 100.0 * noise * first) if scale > 100.0 * noise * length else np.zeros(0, np.intp)
    worse = first[left] / norms[left]
    C, norms, labels, scale = C[:, left], norms[left], labels[left], scale or 1.0
    X, target, ridge = C / norms, y / scale, given.l2 / norms**2
    H = X.T @ X
    H[np.diag_indices_from(H)] += ridge
    noise *= max(1.0, length / scale)
    positive = given.positive
    fit = _Linear(X, target, ridge, labels, positive, 16.0 * noise)
    units, places = np.unique(labels, return_inverse=True)
    single, nothing = len(units) == len(labels), np.zeros(0, np.intp)
    P = Quadratic(
        H, X.T @ target, float(target @ target) / 2, k, labels if single else np.arange(len(labels)), nothing,
        worse * np.sqrt(np.diag(H)), ridge, noise, Fits(fit.value, fit.scores), n, positive,
        np.maximum(ridge, NOTHING), bound[left] * norms / scale, len(left),
    )  # fmt: skip

    def coefficients(units: Indices) -> tuple[Small, Small]:
        b = np.zeros(len(bound))
        places, values = fit.solve(units)
        b[left[places]] = values * scale / norms[places]
        rest = s * (f.y.ravel() - given.chosen.matrix @ b)
        return b, np.linalg.lstsq(s[:, None] * given.uncounted, rest, rcond=None)[0] if Z.shape[1] else np.zeros(0)

    problem = P if single else Smooth(Gram(P), k, units, places, Fits(fit.value, fit.scores), nothing, positive)
    return Prepared(problem, scale**2, coefficients, 16.0 * noise, 0.0)


class _Linear:
    """Least squares with a ridge over some units."""

    def __init__(self, X: Small, y: Small, ridge: Small, labels: Indices, positive: bool, error: float) -> None:
        self.X, self.y, self.ridge, self.labels, self.positive, self.error = X, y, ridge, labels, positive, error

    def solve(self, units: Indices) -> tuple[Indices, Small]:
        """Places of columns and their coefficients."""
        places = np.flatnonzero(np.isin(self.labels, units))
        A = np.concatenate([self.X[:, places], np.diag(np.sqrt(self.ridge[places]))])
        target = np.append(self.y, np.zeros(len(places)))
        if not len(places):  # which SciPy's nnls would crash on
            return places, np.zeros(0)
        b = nnls(A, target)[0] if self.positive else np.linalg.lstsq(A, target, rcond=None)[0]
        return places, np.asarray(b)

    def residual(self, units: Indices) -> tuple[Small, float]:
        """What is left of y, and the value."""
        places, b = self.solve(units)
        r = self.y - self.X[:, places] @ b
        return r, float(r @ r + self.ridge[places] @ (b * b)) / 2

    def value(self, units: Indices) -> tuple[float, float]:
        """The least value, and by how much it may be lower."""
        return self.residual(units)[1], self.error

    def scores(self, units: Indices) -> Small:
        """The norm of each unit's part of the gradient."""
        c = self.X.T @ self.residual(units)[0]
        c = np.maximum(c, 0.0) if self.positive else c
        return np.sqrt(np.bincount(self.labels, c * c))


def _other(given: Given, k: int, bound: Small) -> Prepared:
    f, labels = given.loss, given.chosen.labels
    norms, unorms = np.linalg.norm(given.chosen.matrix, axis=0), np.linalg.norm(given.uncounted, axis=0)
    C = np.concatenate([given.chosen.matrix / norms, given.uncounted / unorms], axis=1)
    ridge, p = given.l2 / norms**2, len(labels)
    fit = _Convex(f, C, ridge, labels, given.positive)
    noise = (C.shape[0] + 8) * EPS / 2
    upper = fit.value(np.zeros(0, np.intp))[0]
    M = bound * norms
    with np.errstate(divide="ignore"):
        M = np.minimum(M, np.sqrt(2.0 * max(upper - f.infimum, 0.0) / ridge))
    if not np.isfinite(M).all() and C.shape[1] <= C.shape[0]:
        M = np.minimum(M, widest(f, C, fit.solve(np.unique(labels))[1], upper)[:p])
    curvature = f.L if f.L is not None else float(np.max(f._host_weights * f.y)) + float(np.max(f._host_weights))
    L = curvature * float(np.linalg.norm(C, 2)) ** 2
    units, places = np.unique(labels, return_inverse=True)
    model = Loss(f, C, np.maximum(ridge, NOTHING), M, noise, L)
    problem = Smooth(
        model, k, units, places, Fits(fit.value, fit.scores), np.zeros(0, np.intp), given.positive, C.shape[1] - p
    )

    def coefficients(chosen: Indices) -> tuple[Small, Small]:
        at, b = fit.solve(chosen)
        out = np.zeros(C.shape[1])
        out[at] = b
        return out[:p] / norms, out[p:] / unorms

    return Prepared(problem, 1.0, coefficients, 1e-12 * abs(upper), f.infimum)


class _Convex:
    """A smooth loss with a ridge over some units and all uncounted columns: Newton's method, its steps halved."""

    def __init__(self, f: Objective, C: Small, ridge: Small, labels: Indices, positive: bool) -> None:
        self.f, self.C, self.ridge, self.labels, self.positive = f, C, ridge, labels, positive
        self.known: dict[tuple[int, ...], tuple[Indices, Small, float, Small]] = {}

    def _value(self, A: Small, ridge: Small, b: Small) -> tuple[float, Small, Small]:
        assert self.f.space is not None
        x = np.reshape(A @ b, self.f.space.shape)
        value, slope = self.f.value_and_grad(x)
        metric: Any = self.f.hessian(x)
        return (
            value + float(ridge @ (b * b)) / 2,
            A.T @ np.ravel(slope) + ridge * b,
            np.ravel(metric.h * np.ones_like(x)),
        )

    def _newton(self, A: Small, ridge: Small) -> Small:
        b = np.zeros(A.shape[1])
        value, grad, h = self._value(A, ridge, b)
        for _ in range(100):
            H = A.T @ (h[:, None] * A) + np.diag(ridge)
            H[np.diag_indices_from(H)] += 1e-10 * np.trace(H) / max(len(b), 1) + NOTHING
            step = np.linalg.solve(H, -grad)
            slope, t = float(grad @ step), 1.0
            new = self._value(A, ridge, b + step)
            rounding = 1e-15 * abs(value)
            while not new[0] <= value + 1e-4 * t * slope + rounding and t > 1e-10:
                t *= 0.5
                new = self._value(A, ridge, b + t * step)
            if not new[0] <= value + rounding:
                break
            b, (value, grad, h) = b + t * step, new
            if -slope <= 1e-24 * abs(value):
                break
        return b

    def solve(self, units: Indices) -> tuple[Indices, Small]:
        """Places of columns and their coefficients."""
        return self._solved(units)[:2]

    def _solved(self, units: Indices) -> tuple[Indices, Small, float, Small]:
        key = tuple(sorted(map(int, units)))
        if len(self.known) > 20_000:
            self.known.clear()
        if key not in self.known:
            p = len(self.labels)
            at = np.append(np.flatnonzero(np.isin(self.labels, units)), np.arange(p, self.C.shape[1]))
            A, ridge = self.C[:, at], np.append(self.ridge, np.zeros(self.C.shape[1] - p))[at]
            if not len(at):
                b = np.zeros(0)
            elif self.positive:
                box = [(0.0 if j < p else None, None) for j in at]
                options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1000}
                solver: Any = minimize
                b = solver(
                    lambda v: self._value(A, ridge, v)[:2], np.zeros(len(at)), jac=True, bounds=box, options=options
                ).x
            else:
                b = self._newton(A, ridge)
            value, grad, _ = self._value(A, ridge, b)
            whole = np.zeros(self.C.shape[1])
            whole[at] = b
            assert self.f.space is not None
            slope = self.f.value_and_grad(np.reshape(A @ b, self.f.space.shape))[1]
            scores = -(self.C[:, :p].T @ np.ravel(slope))
            scores = np.maximum(scores, 0.0) if self.positive else scores
            inner = np.where((b <= 0) & (at < p), np.minimum(grad, 0.0), grad) if self.positive else grad
            error = REACH * float(np.abs(inner) @ (np.abs(b) + 1e-3)) + 1e-13 * abs(value)
            self.known[key] = at, b, value, np.append(np.sqrt(np.bincount(self.labels, scores * scores)), error)
        return self.known[key]

    def value(self, units: Indices) -> tuple[float, float]:
        """The least value, and by how much it may be lower."""
        _, _, value, scores = self._solved(units)
        return value, float(scores[-1])

    def scores(self, units: Indices) -> Small:
        """The norm of each unit's part of the gradient."""
        return self._solved(units)[3][:-1].copy()
