"""Relaxations for every other case: losses with a conjugate, groups of columns, several outputs.

The value is q(b) + sum_j d_j b_j^2 / 2 with q smooth and convex, over at most k units, each a set of columns. For least
squares q is what the split of `quadratic` leaves; for other losses q(b) = f(Cb) and d = l2, with boxes |b_j| <= M_j
that hold wherever the value is at most U. As q lies above its tangent at u, with w = -grad q(u),

    value >= q(u) + <w, u> - (sum of psi over the units in) - (sum of the m largest over the free ones),

psi of a unit being the sum over its columns of max over |t| <= M_j of w_j t - d_j t^2 / 2. For f(Cb) this is the bound
by the conjugate of f at its gradient. u comes from accelerated proximal gradient steps on the perspective relaxation.

Columns that do not count (an intercept) are minimised over, so w vanishes there but for the accuracy of u: what is left
counts as far as their coefficients may reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pursuit.arrays import Indices, Small
from pursuit.objectives import Objective
from pursuit.subsets.fits import CANDIDATES, Fits, curved
from pursuit.subsets.quadratic import FREE, IN, OUT, Dual, Point, Quadratic, Relaxed, States, conjugate, reversals


@dataclass(frozen=True, eq=False)
class Loss:
    """f(Cb), b having the counted columns first."""

    f: Objective
    C: Small
    d: Small
    M: Small
    far: Small
    """Bounds on the coefficients of the uncounted columns."""
    noise: float
    L: float

    def __call__(self, b: Small) -> tuple[float, Small, Small, float]:
        """q, its gradient, and the rounding errors of the gradient and of q."""
        value, slope, h = curved(self.f, self.C @ b)
        size, length = float(np.linalg.norm(slope)), float(np.abs(b).sum())
        error = self.noise * (size + float(h.max(initial=0.0)) * length)
        return value, self.C.T @ slope, np.full(len(b), error), self.noise * (abs(value) + size * (1.0 + length))

    def keeps(self, states: States) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The counted columns that `restrict` leaves."""
        return np.asarray(states != OUT)

    def restrict(self, states: States, b: Small) -> tuple[Loss, Small]:
        """Without the columns that are out."""
        kept = self.keeps(states)
        whole = np.append(kept, np.ones(len(b) - len(kept), dtype=np.bool_))
        return replace(self, C=self.C[:, whole], d=self.d[kept], M=self.M[kept]), b[whole]

    def split(self, upper: float) -> Loss:
        """The same: d is the ridge."""
        return self


@dataclass(frozen=True, eq=False)
class Gram:
    """What the split of a quadratic leaves."""

    P: Quadratic

    @property
    def d(self) -> Small:
        """The split."""
        return self.P.d

    @property
    def M(self) -> Small:
        """The boxes."""
        return self.P.M

    @property
    def L(self) -> float:
        """A bound on the curvature."""
        return float(np.abs(self.P.H).sum(axis=1).max(initial=1e-300))

    @property
    def far(self) -> Small:
        """Of no columns: all count."""
        return np.zeros(0)

    def __call__(self, b: Small) -> tuple[float, Small, Small, float]:
        """q, its gradient, and the rounding errors of the gradient and of q."""
        P, size = self.P, 1.0 + float(np.abs(b) @ self.P.root)
        image = P.H @ b - P.d * b
        value = P.constant + float(b @ (image / 2 - P.c))
        return value, image - P.c, P.noise * size * P.root, 2.0 * P.noise * size**2

    def keeps(self, states: States) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The columns that `restrict` leaves."""
        left = self.P.restrict(states, Point(np.zeros(self.P.size)))[0].units
        return np.isin(self.P.units, left)

    def restrict(self, states: States, b: Small) -> tuple[Gram, Small]:
        """Without the columns that are out, and with those that are in projected out."""
        smaller, _, point = self.P.restrict(states, Point(b))
        return Gram(smaller), point.b

    def split(self, upper: float) -> Gram:
        """With a d and an M of its own."""
        return Gram(self.P.split(upper))


Model = Loss | Gram
"""q, d and M over the columns that are left; uncounted ones come last, without d and M."""


@dataclass(frozen=True, eq=False)
class Smooth:
    """A best-subset problem over units; `labels` has the place of the unit of each counted column."""

    model: Any
    """A `Model`."""
    k: int
    units: Indices
    labels: Indices
    fits: Fits
    fixed: Indices
    positive: bool = False
    uncounted: int = 0
    """How many columns do not count; they come last."""
    enough_to_try = CANDIDATES
    """Subsets that are tried one by one rather than relaxed."""

    @property
    def size(self) -> int:
        """The number of units."""
        return len(self.units)

    @property
    def stale(self) -> bool:
        """Whether d should be computed anew: it costs little beside a relaxation."""
        return True

    def split(self, upper: float) -> Smooth:
        """With a d of its own."""
        return replace(self, model=self.model.split(upper))

    def restrict(self, state: States, point: Point) -> tuple[Smooth, States, Point]:
        """Without the units that are out, and those that are in where they can be projected out."""
        kept = self.model.keeps(state[self.labels])
        model, b = self.model.restrict(state[self.labels], point.b)
        there = np.zeros(self.size, dtype=np.bool_)
        there[self.labels[kept]] = True
        gone, labels = self.units[~there & (state == IN)], (np.cumsum(there) - 1)[self.labels[kept]]
        fixed = np.concatenate([self.fixed, gone])
        smaller = replace(
            self, model=model, k=self.k - len(gone), units=self.units[there], labels=labels, fixed=fixed
        )  # fmt: skip
        return smaller, state[there].copy(), Point(b, point.price)

    def dual(self, point: Point) -> Dual:
        """What proves the bound at this point."""
        if isinstance(self.model, Gram):
            return self.model.P.dual(point)
        return Dual(self.units, self.fixed, self.model.d, np.arange(len(point.b)), point.b)

    def sizes(self, b: Small) -> Small:
        """The norm of the coefficients of each unit."""
        p = len(self.labels)
        return np.sqrt(np.bincount(self.labels, b[:p] ** 2, minlength=self.size))

    def psi(self, w: Small, error: Small) -> Small:
        """psi of each unit; `error` bounds the rounding of w."""
        slope = np.maximum((w if self.positive else np.abs(w)) + error, 0.0)
        each = conjugate(slope, self.model.d, self.model.M)
        return np.asarray(np.bincount(self.labels, each, minlength=self.size), dtype=np.float64)

    def prove(self, b: Small, state: States, m: int) -> tuple[float, Small, Small]:
        """The bound at b, psi, and the gradient of q."""
        p = len(self.labels)
        value, grad, error, rounding = self.model(b)
        psi = self.psi(-grad[:p], error[:p])
        free = np.sort(psi[state == FREE])[::-1]
        spent = float(psi[state == IN].sum() + free[:m].sum())
        loose = float((np.abs(grad[p:]) + error[p:]) @ (self.model.far + np.abs(b[p:])))
        return value - float(grad @ b) - spent - loose - rounding - float(error @ np.abs(b)), psi, grad

    def relax(self, state: States, start: Point, cut: float, rounds: int = 60) -> Relaxed:
        """The relaxation of a node: accelerated steps, restarted where they turn back, the price corrected by each."""
        m = self.k - int(np.count_nonzero(state > 0))
        b = start.b.copy()
        b[: len(self.labels)][(state == OUT)[self.labels]] = 0.0
        y, momentum, price, L = b, 1.0, start.price, self.model.L
        best, best_b, best_psi = -math.inf, b, np.zeros(self.size)
        before = -math.inf
        for turn in range(10 * rounds):
            bound, psi, grad = self.prove(y, state, m)
            if bound > best or turn == 0:
                best, best_b, best_psi = bound, y, psi
            if best >= cut or not math.isfinite(bound):
                break
            if turn % 20 == 19:
                if best - before < 2e-3 * (cut - best):
                    break
                before = best
            if price <= 0:
                order = np.sort(psi[state == FREE])[::-1]
                price = max(float(order[min(m, len(order)) - 1]) if m and len(order) else 1.0, 1e-300)
                price = price if math.isfinite(price) else 1.0
            new, used = self._shrunk(y - grad / L, L, price, state)
            step = new - b
            if float((y - new) @ step) > 0:
                momentum = 1.0
            following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            y, b = new + (momentum - 1.0) / following * step, new
            momentum = following
            if m:
                price *= min(max(used / m, 0.7), 1.4)
        return self._decided(state, best, Point(best_b, price), best_psi, cut)

    def _decided(self, state: States, bound: float, point: Point, psi: Small, cut: float) -> Relaxed:
        screened, free = state.copy(), state == FREE
        inside, outside = reversals(bound, psi, state, self.k - int(np.count_nonzero(state > 0)))
        screened[free & (inside >= cut)] = OUT
        screened[free & (outside >= cut)] = IN
        sizes = np.where(screened == FREE, self.sizes(point.b), -1.0)
        return Relaxed(bound, point, screened, int(sizes.argmax()) if (sizes >= 0).any() else -1)

    def _shrunk(self, v: Small, L: float, price: float, state: States) -> tuple[Small, float]:
        """The proximal map at the price, and how many free units it uses."""
        p, labels = len(self.labels), self.labels
        inner = np.maximum(v[:p], 0.0) if self.positive else v[:p]
        d, M = self.model.d, self.model.M
        count = np.bincount(labels, minlength=self.size)
        curvature = np.bincount(labels, d, minlength=self.size) / count
        box = np.sqrt(np.bincount(labels, M * M, minlength=self.size))
        norms = np.sqrt(np.bincount(labels, inner * inner, minlength=self.size))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            whole = curvature * box * box >= 2.0 * price
            low = np.where(whole, np.sqrt(2.0 * curvature * price), 0.5 * curvature * box + price / box)
            t = np.maximum(L * norms - low, 0.0) / L
            t = np.where(whole & (t > np.sqrt(2.0 * price / curvature)), L * norms / (L + curvature), t)
            t = np.where(state == IN, L * norms / (L + curvature), np.where(state == OUT, 0.0, np.minimum(t, box)))
            share = np.minimum(1.0, np.maximum(t * np.sqrt(curvature / (2.0 * price)), t / box))
            factor = np.where(norms > 0, t / norms, 0.0)
        new = np.append(inner * factor[labels], v[p:])
        new[:p] = np.clip(new[:p], -M, M)
        return new, float(share[state == FREE].sum())

    def best_with_one_more(self, places: Indices, among: Indices) -> tuple[float, Indices, float]:
        """Not known at once."""
        return math.nan, places, -math.inf

    def exact(self, places: Indices) -> tuple[float, float]:
        """The least value with the units at these places, and a lower bound on it."""
        units = np.concatenate([self.fixed, self.units[places]])
        return self.fits.value(units), self.fits.lower(units)

    def improve(self, places: Indices, k: int) -> tuple[float, Indices]:
        """Units enter one at a time, by their part of the gradient; then units change places while that helps."""
        return self.fits.exchange(self.fixed, self.units, places, k)


def widest(f: Objective, dual: Small, grad: Small, upper: float, further: Callable[[Small], float]) -> Small:
    """Bounds on the size of each coefficient wherever f <= upper, from a gradient that is orthogonal to all columns.

    For v_j with C'v_j = e_j (the columns of `dual`) and every t, t b_j = <grad + t v_j, Cb> <= upper + f*(grad + t
    v_j), and `further` has what other columns add to the product.
    """
    out = np.zeros(dual.shape[1])
    for j, v in enumerate(np.reshape(dual.T, (-1, *grad.shape))):
        scale = float(np.linalg.norm(grad) or 1.0) / float(np.linalg.norm(v))
        for sign in (1.0, -1.0):
            bounds = []
            for t in scale * np.geomspace(1e-3, 1e3, 40):
                u = grad + sign * t * v
                conjugate = f.conjugate(u)
                if conjugate is not None and math.isfinite(conjugate):
                    bounds.append((upper + conjugate + further(u)) / t)
            out[j] = max(out[j], min(bounds, default=math.inf))
    return out * (1.0 + 1e-6)
