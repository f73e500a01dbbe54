"""Minima over few units, from the data: values, and lower bounds on them that hold whatever rounding does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize, nnls

from pursuit.arrays import Indices, Small
from pursuit.objectives import Huber, Logistic
from pursuit.subsets.given import with_data

NOTHING = 1e-300
"""A curvature that is as good as 0."""
CANDIDATES = 4
"""Units that an exchange tries in the place of another."""
KINK = 1e-6
"""Data are near a kink of Huber's loss within this part of its width."""


class Fits(Protocol):
    """Minima over few units, which are numbered in the whole problem, from the data."""

    def value(self, units: Indices) -> float:
        """The least value, but for rounding."""
        ...

    def lower(self, units: Indices) -> float:
        """A lower bound on it."""
        ...

    def scores(self, units: Indices) -> Small:
        """How much each unit might help beside some: the norm of its part of the gradient."""
        ...

    def exchange(self, fixed: Indices, units: Indices, places: Indices, k: int) -> tuple[float, Indices]:
        """From the units at some places on, beside fixed ones: others enter, by their part of the gradient, up to k in
        all; then they change places while that helps."""
        S = [int(j) for j in places]

        def ranked(T: list[int]) -> Indices:
            scores = self.scores(np.concatenate([fixed, units[T]]).astype(np.intp))[units]
            scores[T] = -1.0
            return np.argsort(-scores, kind="stable")[: min(CANDIDATES, len(units) - len(T))]

        def least(T: list[int]) -> float:
            return self.value(np.concatenate([fixed, units[T]]).astype(np.intp))

        while len(S) < min(k, len(units)):
            S.append(int(ranked(S)[0]))
        value, better = least(S), True
        while better and len(S) < len(units):
            better = False
            for i in range(len(S)):
                rest = S[:i] + S[i + 1 :]
                tries = [(least([*rest, int(j)]), [*rest, int(j)]) for j in ranked(rest)]
                best, T = min(tries)
                if best < value - 1e-10 * abs(value):
                    value, S, better = best, T, True
        return value, np.array(sorted(S), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class LinearFits(Fits):
    """Least squares with a ridge over some units; `exact(places, positive ones)` is the least value in rationals."""

    X: Small
    y: Small
    ridge: Small
    labels: Indices
    positive: bool
    noise: float
    worse: Small
    M: Small
    exact: Callable[..., float]

    def solve(self, units: Indices) -> tuple[Indices, Small]:
        """Places of columns and their coefficients."""
        places = np.flatnonzero(np.isin(self.labels, units))
        A, target = self._rows(places), np.append(self.y, np.zeros(len(places)))
        if not len(places):  # which SciPy's nnls would crash on
            return places, np.zeros(0)
        b = nnls(A, target)[0] if self.positive else np.linalg.lstsq(A, target, rcond=None)[0]
        return places, np.asarray(b)

    def _rows(self, places: Indices) -> Small:
        return np.concatenate([self.X[:, places], np.diag(np.sqrt(self.ridge[places]))])

    def residual(self, units: Indices) -> tuple[Small, float]:
        """What is left of y, and the value."""
        places, b = self.solve(units)
        r = self.y - self.X[:, places] @ b
        return r, float(r @ r + self.ridge[places] @ (b * b)) / 2

    def value(self, units: Indices) -> float:
        """The least value, but for rounding."""
        return self.residual(units)[1]

    def lower(self, units: Indices) -> float:
        """A lower bound on the least value: the value at b less what the gradient there allows."""
        places, b = self.solve(units)
        r = self.y - self.X[:, places] @ b
        worse, ridge, M = self.worse[places], self.ridge[places], self.M[places]
        size, rest = 1.0 + float(np.abs(b) @ worse), float(np.linalg.norm(r))
        slope = self.X[:, places].T @ r - ridge * b
        slope = np.where(b > 0, slope, np.maximum(slope, 0.0)) if self.positive else slope
        slope = np.abs(slope) + self.noise * (worse * rest + 2.0 * size)
        least = np.linalg.svd(self._rows(places), compute_uv=False).min(initial=1.0)
        least -= self.noise * float(np.linalg.norm(worse))
        error = float(slope @ slope) / (2.0 * least**2) if least > 0 else math.inf
        error = min(error, float(slope @ (M + np.abs(b)))) + self.noise * size * (rest + self.noise * size)
        value = float(r @ r + ridge @ (b * b)) / 2
        error += 4.0 * self.noise * value
        if error <= 32.0 * self.noise * float(worse.max(initial=1.0)) + 1e-10 * value:
            return value - error
        return self.exact(places, places[b > 0]) if self.positive else self.exact(places)

    def scores(self, units: Indices) -> Small:
        """The norm of each unit's part of the gradient."""
        c = self.X.T @ self.residual(units)[0]
        c = np.maximum(c, 0.0) if self.positive else c
        return np.sqrt(np.bincount(self.labels, c * c))


@dataclass(eq=False)
class ConvexFits(Fits):
    """A smooth loss with a ridge over some units and all uncounted columns: Newton's method, its steps halved."""

    f: Any
    C: Small
    ridge: Small
    """With zeros for the uncounted columns."""
    M: Small
    """Boxes, infinite for the uncounted columns."""
    labels: Indices
    positive: bool
    noise: float
    independent: Callable[[Indices, Indices], Small]
    """Columns on some rows, with the uncounted ones and without those that depend on others there."""
    known: dict[tuple[int, ...], tuple[Small, float, Small]] = field(default_factory=dict)

    def _value(self, A: Small, ridge: Small, b: Small) -> tuple[float, Small, Small]:
        value, slope, h = curved(self.f, A @ b)
        return value + float(ridge @ (b * b)) / 2, A.T @ slope + ridge * b, h

    def _newton(self, A: Small, ridge: Small) -> Small:
        """Newton's steps, halved where they must be, in turn with those of a quadratic that lies above Huber's loss,
        which is flat between Newton's steps where all data are beyond its width."""
        b, failed = np.zeros(A.shape[1]), 0
        value, grad, h = self._value(A, ridge, b)
        for turn in range(200):
            if isinstance(self.f, Huber):
                beyond = np.abs(np.ravel(A @ b) - self.f.y.ravel()) / self.f.width
                above = np.ravel(self.f.weights) / np.maximum(beyond, 1.0)
                h = h + 1e-8 * above if turn % 2 else above
            H = A.T @ (h[:, None] * A) + np.diag(ridge)
            H[np.diag_indices_from(H)] += 1e-10 * np.trace(H) / max(len(b), 1) + NOTHING
            step = np.linalg.solve(H, -grad)
            slope, t = float(grad @ step), 1.0
            new = self._value(A, ridge, b + step)
            rounding = 1e-15 * abs(value)
            while not new[0] <= value + 1e-4 * t * slope + rounding and t > 1e-10:
                t *= 0.5
                new = self._value(A, ridge, b + t * step)
            failed = 0 if new[0] <= value + rounding else failed + 1
            if not failed:
                b, (value, grad, h) = b + t * step, new
            if failed == 2 or -slope <= 1e-24 * abs(value):
                break
        return b

    def whole(self, units: Indices) -> Small:
        """The coefficients of all columns."""
        return self._solved(units)[0]

    def _solved(self, units: Indices) -> tuple[Small, float, Small]:
        key = tuple(sorted(map(int, units)))
        if len(self.known) > 20_000:
            self.known.clear()
        if key not in self.known:
            p = len(self.labels)
            at = np.append(np.flatnonzero(np.isin(self.labels, units)), np.arange(p, self.C.shape[1]))
            A, ridge, whole = self.C[:, at], self.ridge[at], np.zeros(self.C.shape[1])
            if self.positive and len(at):
                box = [(0.0 if j < p else None, None) for j in at]
                options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1000}
                solver: Any = minimize
                whole[at] = solver(
                    lambda v: self._value(A, ridge, v)[:2], np.zeros(len(at)), jac=True, bounds=box, options=options
                ).x
            elif len(at):
                whole[at] = self._newton(A, ridge)
            value, slope, _ = curved(self.f, self.C @ whole)
            scores = -(self.C[:, :p].T @ slope)
            scores = np.maximum(scores, 0.0) if self.positive else scores
            value += float(self.ridge @ (whole * whole)) / 2
            self.known[key] = whole, value, np.sqrt(np.bincount(self.labels, scores * scores))
        return self.known[key]

    def value(self, units: Indices) -> float:
        """The least value, but for rounding."""
        return self._solved(units)[1]

    def lower(self, units: Indices) -> float:
        """A lower bound on the least value.

        Where columns depend on each other, or the minimum is at infinity as some data are separated from the others, it
        is that of the columns that do not and of the other data, each of the former having its least loss.
        """
        f, p, whole = self.f, len(self.labels), self.whole(units)
        at = np.append(np.flatnonzero(np.isin(self.labels, units)), np.arange(p, self.C.shape[1]))
        least = self._lower(at, whole)
        if least > -math.inf or self.positive or self.ridge[at].any():
            return least
        h = curved(f, self.C @ whole)[2]
        rows = np.flatnonzero((h > 1e-9 * h.max()) | isinstance(f, Huber))
        y = np.ravel(f.y)[rows]
        if isinstance(f, Logistic) and (y == y[:1]).all():
            return float(f.infimum)
        weights = np.broadcast_to(np.ravel(f._host_weights), f.y.size)[rows]
        part, A = with_data(f, y, weights), self.independent(at[at < p], rows)
        none = np.zeros(A.shape[1])
        fit = replace(self, f=part, C=A, ridge=none, M=none + math.inf, labels=np.arange(len(none)), known={})
        return fit._lower(fit.labels, fit._newton(A, none)) + float(f.infimum - part.infimum)

    def _lower(self, at: Indices, whole: Small) -> float:
        """The value at b, less what the gradient g there allows.

        With boxes, sum of |g_j| (M_j + |b_j|). Otherwise, in the norm of the Hessian H, with l = |g| in the dual norm
        and |a_i| <= R for the rows a_i of A: l^2, where the Hessian changes by at most a factor exp(|a_i'd|) along d
        (Logistic, Poisson) and lR <= 1/2; l^2 / 2, where it stays as it is for |a_i'd| <= m (Huber, of the data that
        are not near a kink) and 2lR <= m.
        """
        f, A, b, ridge = self.f, self.C[:, at], whole[at], self.ridge[at]
        value, slope, h = curved(f, A @ b)
        size, length = float(np.linalg.norm(slope)), float(np.abs(b).sum())
        g = A.T @ slope + ridge * b
        if self.positive:
            g = np.where((b <= 0) & (at < len(self.labels)), np.minimum(g, 0.0), g)
        g = np.abs(g) + self.noise * (size + float(h.max(initial=0.0)) * length)
        reach = 0.5
        if isinstance(f, Huber):
            reach = 0.5 * KINK * f.width
            h = h * (np.abs(np.ravel(A @ b) - f.y.ravel()) < (1.0 - KINK) * f.width)
        error = float(g @ (self.M[at] + np.abs(b)))
        inverse, pivot = inverse_factor(A.T @ (h[:, None] * A) + np.diag(ridge)) if len(at) else (None, 0.0)
        if inverse is not None and pivot > 1e3 * self.noise:
            dual, R = float(np.linalg.norm(inverse) * np.linalg.norm(g)), np.linalg.norm(A @ inverse.T, axis=1).max()
            error = min(error, dual * dual) if 1.01 * dual * R <= reach else error
        rounding = self.noise * (abs(value) + size * (1.0 + length))
        return value + float(ridge @ (b * b)) / 2 - error - rounding if error < math.inf else -math.inf

    def scores(self, units: Indices) -> Small:
        """The norm of each unit's part of the gradient."""
        return self._solved(units)[2].copy()


def curved(f: Any, x: Small) -> tuple[float, Small, Small]:
    """f, its gradient and the diagonal of its Hessian."""
    x = np.reshape(x, f.space.shape)
    value, slope = f.value_and_grad(x)
    return value, np.ravel(slope), np.ravel(f.hessian(x).h * np.ones_like(x))


def inverse_factor(H: Small) -> tuple[Small | None, float]:
    """The inverse of the Cholesky factor, and the least square of the factor's diagonal relative to that of H; None
    where there is none."""
    factor, invert = lapack.get_lapack_funcs(("potrf", "trtri"), (H,))
    L, bad = factor(H.T, lower=1, clean=1)
    if bad:
        return None, 0.0
    pivot = float((np.diag(L) ** 2 / np.diag(H)).min())
    inverse, bad = invert(L, lower=1, overwrite_c=1)
    return (None, 0.0) if bad else (inverse, pivot)
