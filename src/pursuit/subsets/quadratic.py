"""Least squares over few columns, as a quadratic function of their coefficients: what a node of the search relaxes.

    f(b) = constant - c'b + b'Hb / 2,   H = X'X + l2 I,  c = X'y,  constant = |y|^2 / 2,

with columns and y scaled to norm 1. Of the columns that are in, the exact minimum is subtracted (a Schur complement of
H); columns that are out are deleted. What is left is split: H = Q + diag(d), d >= 0, Q positive semidefinite, and
boxes |b_j| <= M_j hold for every b that is good enough. `native/subset.h` has the bound that follows, and finds it.

- **The split.** d = t s with s_j = 1 / (H^-1)_jj and the largest t for which Q is positive semidefinite: it does not
  depend on the scales of columns. A Cholesky factorisation proves it, with room for the rounding errors of H (of many
  columns t is found in single precision, and proved in double). d = l2 always holds. With fewer columns t grows, so
  every smaller problem is split anew.
- **The boxes.** f(b) <= U implies |b_j - (H^-1 c)_j| <= sqrt(2 (U - min f) (H^-1)_jj).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.sparse.linalg import LinearOperator, eigsh

from pursuit import native
from pursuit.arrays import Indices, Small
from pursuit.subsets.fits import NOTHING, Fits, inverse_factor

MANY = 1000
"""Columns from which on H is inverted in single precision."""
FEW = 80
"""Columns up to which a split is found from all eigenvalues; of more, from the largest alone."""
WORST_CONDITION = 1e10
"""Of H, beyond which nothing is derived from its inverse."""
SAFE_PIVOT = 1e-6
"""The least part of a column's square outside the columns that are in, for these to be projected out."""

States = np.ndarray[Any, np.dtype[np.int8]]
FREE, IN, OUT, LARGEST = 0, 1, -1, 2


class Point(NamedTuple):
    """Where a relaxation begins: coefficients, and the price of a column (not positive: unknown)."""

    b: Small
    price: float = -1.0


class Dual(NamedTuple):
    """What proves the bound of a node: the columns that are left and those projected out, the split, and u."""

    units: Indices
    fixed: Indices
    d: Small
    places: Indices
    values: Small


class Relaxed(NamedTuple):
    """What a relaxation proves: the bound, the state with the columns that it decides, and the column to branch on."""

    bound: float
    point: Point
    screened: States
    branch: int


class Gains(NamedTuple):
    """By how much `each` column lowers the value `base`, what rounding hides, and how wrong `base` and the values with
    each column may be."""

    each: Small
    base: float
    doubtful: np.ndarray[Any, np.dtype[np.bool_]]
    error: float
    errors: Small

    @classmethod
    def hidden(cls, p: int) -> Gains:
        """Nothing is known."""
        return cls(np.zeros(p), math.inf, np.ones(p, dtype=np.bool_), math.nan, np.zeros(p))


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A best-subset problem: at most `k` of the columns, whose numbers in the whole problem are `units`, beside the
    columns `fixed`, which are in and projected out."""

    H: Small
    c: Small
    constant: float
    k: int
    units: Indices
    fixed: Indices
    root: Small
    """The square roots of the diagonal of the first H, the unit of rounding errors."""
    floor: Small
    """A diagonal that always splits H: the ridge."""
    noise: float
    """The relative rounding error of the entries of H."""
    fits: Fits
    rows: int
    """Of the data: where there are hardly more than columns, only the ridge splits H."""
    positive: bool = False
    d: Small = field(default_factory=lambda: np.zeros(0))
    M: Small = field(default_factory=lambda: np.zeros(0))
    split_at: int = 0
    """How many columns there were when d was computed."""
    whole: Quadratic | None = None
    """The problem before any column was projected out; None: this one."""

    @property
    def size(self) -> int:
        """The number of columns."""
        return len(self.c)

    @property
    def kernel(self) -> Any:
        """The compiled relaxation."""
        kept = self.__dict__.get("_kernel")
        if kept is None:
            arrays = self.H, self.c, self.d, self.M, self.root
            kept = native.core().Subset(*arrays, self.constant, self.noise, self.positive)
            object.__setattr__(self, "_kernel", kept)
        return kept

    def relax(self, state: States, start: Point, cut: float, rounds: int = 60) -> Relaxed:
        """The relaxation of a node, until its bound reaches the cut or gains little."""
        b, out, screened = start.b.copy(), np.empty((2, self.size)), np.empty_like(state)
        m = self.k - int(np.count_nonzero(state > 0))
        bound, price, branch, _ = self.kernel.relax(state, m, b, start.price, cut, rounds, out, screened)
        return Relaxed(bound, Point(out[1], price), screened, branch)

    def restrict(self, state: States, point: Point) -> tuple[Quadratic, States, Point]:
        """Without the columns that are out, and with those that are in projected out, as far as rounding allows."""
        inside = np.flatnonzero(state == IN)
        inverse, pivot = (
            inverse_factor(self.H[np.ix_(inside, inside)]) if len(inside) and not self.positive else (None, 0)
        )
        if inverse is None or pivot < SAFE_PIVOT or (state == LARGEST).any():
            inside = inside[:0]
        keep = state != OUT
        keep[inside] = False
        rest = np.flatnonzero(keep)
        H, c, constant, noise = self.H[np.ix_(rest, rest)], self.c[rest], self.constant, self.noise
        if len(inside):
            assert inverse is not None
            W = inverse @ self.H[np.ix_(inside, rest)]
            v = inverse @ self.c[inside]
            H = H - W.T @ W
            c, constant = c - W.T @ v, constant - float(v @ v) / 2
            noise = self._noise_after(inside, inverse)
        smaller = replace(
            self, H=H, c=c, constant=constant, k=self.k - len(inside), units=self.units[rest], noise=noise,
            fixed=np.concatenate([self.fixed, self.units[inside]]), root=self.root[rest], floor=self.floor[rest],
            d=self.d[rest], M=self.M[rest], whole=self.whole or self,
        )  # fmt: skip
        return smaller, state[rest].copy(), Point(point.b[rest], point.price)

    def _noise_after(self, inside: Indices, inverse: Small) -> float:
        """The rounding error of H with these columns projected out as well: that of the first H and of each projection,
        which all the columns that are out of it magnify together. The errors of one projection after the other would
        be counted again in each."""
        whole = self.whole or self
        fixed = np.concatenate([self.fixed, self.units[inside]])
        order = np.argsort(whole.units)
        at = order[np.searchsorted(whole.units, fixed, sorter=order)]
        together, pivot = inverse_factor(whole.H[np.ix_(at, at)])
        if together is None or pivot < SAFE_PIVOT:
            return self.noise * (1.0 + float(np.sum(inverse * inverse)))
        return whole.noise * (1.0 + len(fixed)) * (1.0 + float(np.sum(together * together)))

    def split(self, upper: float) -> Quadratic:
        """With a d and an M of its own, for all b with f(b) <= upper."""
        p, H = self.size, self.H
        inverse, spread = self._inverse() if 1.2 * p <= self.rows else (None, self.c)
        if inverse is None:
            return replace(self, split_at=p)
        shift = (8.0 * p * float(np.finfo(np.float64).eps) + p * self.noise) * self.root**2
        d = _strongest(inverse, spread) / spread
        for _ in range(50):
            d = np.maximum(d, self.floor)
            Q = H.copy()
            Q[np.diag_indices(p)] -= d + shift
            if lapack.dpotrf(Q.T, lower=1, overwrite_a=1)[1] == 0:
                break
            d = 0.97 * d
        else:
            d = self.floor
        if (self.d >= d).all():
            d = self.d
        some = replace(self, d=np.maximum(d, NOTHING), split_at=p)
        return replace(some, M=np.minimum(some.boxes(upper, inverse, spread), self.M))

    def _inverse(self) -> tuple[Small | None, Small]:
        """The inverse of the Cholesky factor of H, and the diagonal of H^-1; None where rounding hides it. Of many
        columns in single precision, where that does: what follows from H^-1 is proved by other means."""
        p = self.size
        for number in ((np.float32, np.float64) if p > MANY else (np.float64,)) if p else ():
            inverse, _ = inverse_factor(np.asarray(self.H, dtype=number))
            if inverse is not None:
                spread = np.einsum("ij,ij->j", inverse, inverse)
                if spread.max() * np.diag(self.H).max() < WORST_CONDITION * (1e-6 if number is np.float32 else 1.0):
                    return inverse, spread
        return None, np.zeros(0)

    def boxes(self, upper: float, inverse: Small | None = None, spread: Small | None = None) -> Small:
        """Bounds on |b_j| for all b with f(b) <= upper.

        For u near the minimum, g = c - Hu and e = b - u: e_j^2 <= s_j e'He with s_j = (H^-1)_jj <= 1 / d_j, and so
        (e'He)^(1/2) <= t + (t^2 + 2 (upper - f(u)))^(1/2) with t = sum of |g_j| s_j^(1/2)."""
        if inverse is None or spread is None:
            inverse, spread = self._inverse()
        if inverse is None:
            return np.full(self.size, np.inf)
        u = np.asarray(inverse.T @ (inverse @ self.c), dtype=np.float64)
        g, size = self.c - self.H @ u, 1.0 + float(np.abs(u) @ self.root)
        room = max(upper - self.constant + float(u @ (self.c + g)) / 2, 0.0) + 4.0 * self.noise * size**2
        loose = 1.0 + 1e-9 + 4.0 * self.size * (self.noise + 1e-16) * float(spread.max())
        reach = np.sqrt(1.0 / self.d if inverse.dtype == np.float32 else loose * spread)
        t = float((np.abs(g) + self.noise * size * self.root) @ reach)
        return np.asarray(loose * (np.abs(u) + (t + np.sqrt(t * t + 2.0 * room)) * reach))

    def within(self, upper: float) -> Quadratic:
        """With the boxes that the ridge proves for all b with f(b) <= upper: it costs no more than that."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            ridge = (1.0 + 1e-9) * np.sqrt(2.0 * max(upper, 0.0) / self.floor)
        return replace(self, M=np.minimum(self.M, ridge))

    def sizes(self, b: Small) -> Small:
        """The sizes of the coefficients of each unit."""
        return np.abs(b)

    def dual(self, point: Point) -> Dual:
        """What proves the bound at this point."""
        places = np.flatnonzero(point.b)
        return Dual(self.units, self.fixed, self.d, places, point.b[places])

    def exact(self, places: Indices) -> tuple[float, float]:
        """The least value with the columns `places`, and a lower bound on it."""
        some = self.gains(places)
        if some.error <= 1e-9 * some.base + 16.0 * self.noise:
            return some.base, some.base - some.error
        units = np.concatenate([self.fixed, self.units[places]])
        return self.fits.value(units), self.fits.lower(units)

    enough_to_try = 1 << 30
    """Subsets that are tried one by one rather than relaxed."""

    @property
    def stale(self) -> bool:
        """Whether d was computed for many more columns."""
        return self.size < 0.93 * self.split_at or (self.size < self.split_at and self.size <= 600)

    def best_with_one_more(self, places: Indices, among: Indices) -> tuple[float, Indices, float]:
        """The least value with the columns `places` and one of the columns `among`, which these are, and a lower bound;
        nan where rounding hides it."""
        some = self.gains(places)
        if some.doubtful[among].any() or not some.error <= 1e-7 * some.base + 64.0 * self.noise:
            return math.nan, places, -math.inf
        lower = float((some.base - some.each - some.errors)[among].min(initial=some.base - some.error))
        j = among[int(some.each[among].argmax())] if len(among) else -1
        if j < 0 or not some.each[j] > 0:
            return some.base, places, lower
        return some.base - float(some.each[j]), np.append(places, j), lower

    def gains(self, places: Indices) -> Gains:
        """By how much each column lowers the value of the columns `places`.

        The value of columns T is in error by at most noise (1 + sum over T of |b_j| root_j)^2, in which there is room
        for the errors of the factor."""
        diagonal, base, c, size = np.diag(self.H), self.constant, self.c, 1.0
        further = self.root
        if self.positive:
            return Gains.hidden(self.size)
        if len(places):
            inverse, pivot = inverse_factor(self.H[np.ix_(places, places)])
            if inverse is None or pivot < SAFE_PIVOT:
                return Gains.hidden(self.size)
            W, v = inverse @ self.H[places], inverse @ self.c[places]
            squares = np.einsum("ij,ij->j", W, W)
            size += float(np.abs(inverse.T @ v) @ self.root[places])
            further = further + np.linalg.norm(inverse @ np.diag(self.root[places])) * np.sqrt(len(places) * squares)
            diagonal = diagonal - squares
            c, base = c - v @ W, base - float(v @ v) / 2
        own = diagonal > SAFE_PIVOT * self.root**2
        steps = np.where(own, c / np.where(own, diagonal, 1.0), 0.0)
        each = steps * c / 2
        each[places] = 0.0
        own[places] = True
        errors = 4.0 * self.noise * (size + np.abs(steps) * further) ** 2
        return Gains(each, base, ~own, 4.0 * self.noise * size**2, errors)

    def improve(self, places: Indices, k: int) -> tuple[float, Indices]:
        """Columns enter one at a time, the best first; then single columns change places while that helps."""
        if self.positive:
            return self.fits.exchange(self.fixed, self.units, places, k)
        S = [int(j) for j in places]
        gains, value, *_ = self.gains(np.array(S, dtype=np.intp))
        while len(S) < min(k, self.size) and gains.max() > 0:
            S.append(int(gains.argmax()))
            gains, value, *_ = self.gains(np.array(S, dtype=np.intp))
        while S:
            tries = []
            for i in range(len(S)):
                gains, base, *_ = self.gains(np.array(S[:i] + S[i + 1 :], dtype=np.intp))
                tries.append((base - float(gains.max()), i, int(gains.argmax())))
            best, i, j = min(tries)
            if not best < value - 1e-10 * abs(self.constant - value):
                break
            value, S[i] = best, j
        return value, np.array(sorted(S), dtype=np.intp)


def _strongest(inverse: Small, spread: Small) -> float:
    """A little less than the largest t for which H - t diag(1 / spread) is positive semidefinite; `inverse` is that of
    the Cholesky factor of H."""
    s, p = 1.0 / np.sqrt(spread), len(spread)
    if p <= FEW:
        K = inverse * s
        return float((1.0 - 1e-4) / np.linalg.eigvalsh(K @ K.T)[-1])
    accuracy = 1e-2 if inverse.dtype == np.float32 else 1e-3
    whole = LinearOperator((p, p), matvec=lambda v: s * (inverse.T @ (inverse @ (s * v.ravel()))), dtype=inverse.dtype)
    start = np.ones(p, dtype=inverse.dtype)
    largest = eigsh(whole, 1, which="LA", tol=accuracy, ncv=12, v0=start, return_eigenvectors=False)[0]
    return float((1.0 - accuracy) / largest)


def conjugate(slope: Small, d: Small, M: Small) -> Small:
    """psi: the maximum over |t| <= M of slope t - d t^2 / 2; slopes are not negative."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.where(slope <= d * M, slope * slope / (2.0 * d), slope * M - 0.5 * d * M * M)


def reversals(bound: float, psi: Small, states: States, m: int) -> tuple[Small, Small]:
    """The bounds of a node with each of the free units in, and out, where m of them may be used."""
    order = np.sort(psi[states == FREE])[::-1]
    if not 0 < m < len(order):
        return np.full(len(psi), -np.inf), np.full(len(psi), -np.inf)
    return bound + np.maximum(order[m - 1] - psi, 0.0), bound + np.maximum(psi - order[m], 0.0)
