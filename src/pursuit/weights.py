r"""The small problems on the active set, solved exactly.

.. math:: \min_w \tfrac12 w^\top G w - c^\top w, \quad
          w_i \ge 0 \text{ where signed}, \quad \sum_{i \in b} w_i = s_b \text{ where block } b \text{ has a total}.

Free weights without a total are the span, non-negative ones the cone, non-negative ones with total 1 the hull; sums of
domains are several blocks. One primal active-set method serves all of them: the weights that are not held at zero (the
*passive* set) have a Cholesky factor that grows and shrinks with them in O(k^2), warm-started from call to call.

Two devices keep it exact and safe. A fixed sum makes any multiple of :math:`e_b e_b^\top` a constant, so the factor is
that of :math:`M = G + \sum_b \alpha_b e_b e_b^\top`, which is definite as soon as the atoms are *affinely* independent.
And every pivot is measured against its own diagonal entry: an atom that depends on the passive ones does not enter; it
is exchanged for one of them or stays at zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dtpqrt, dtrtrs

from pursuit._arrays import Small

EPS = float(np.finfo(np.float64).eps)
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Factor:
    """Lower Cholesky factor of a matrix with unit diagonal that grows and shrinks by one row."""

    def __init__(self) -> None:
        self.k = 0
        self._L = np.zeros((16, 16), order="F")

    @property
    def L(self) -> Small:
        return self._L[: self.k, : self.k]

    @property
    def pivot(self) -> float:
        """The smallest squared pivot, of a unit diagonal."""
        return float(self._L.diagonal()[: self.k].min(initial=1.0)) ** 2

    def _reserve(self, k: int) -> None:
        if k > self._L.shape[0]:
            grown = np.zeros((2 * k, 2 * k), order="F")
            grown[: self.k, : self.k] = self.L
            self._L = grown

    def build(self, M: Small) -> bool:
        """The factor of M in one go; False (and unchanged) where M is not safely definite."""
        L, info = dpotrf(M, lower=1)
        if info != 0 or (len(M) and L.diagonal().min() ** 2 <= 1e-6):
            return False
        self._reserve(len(M))
        self.k = len(M)
        self._L[: self.k, : self.k] = L
        return True

    def row(self, m: Small) -> tuple[Small, float]:
        """The row that appending a vector with inner products m would add, and its squared pivot."""
        r = self._triangular(m, 0)
        return r, 1.0 - float(r @ r)

    def append(self, r: Small, pivot: float) -> None:
        self._reserve(self.k + 1)
        self._L[self.k, : self.k] = r
        self._L[self.k, self.k] = np.sqrt(pivot)
        self.k += 1

    def drop(self, i: int) -> None:
        """Delete row and column i: the trailing triangle takes a rank-one update, which is always stable."""
        k = self.k
        v = self._L[i + 1 : k, i].copy()
        self._L[i : k - 1, :i] = self._L[i + 1 : k, :i]
        self._L[i : k - 1, i : k - 1] = self._L[i + 1 : k, i + 1 : k]
        self._L[k - 1, :k] = 0.0
        self.k = k - 1
        if len(v):  # reflections, which lose nothing even where atoms are nearly dependent
            T = self._L[i : k - 1, i : k - 1]
            R = np.triu(dtpqrt(0, min(16, len(v)), T.T, v[None, :])[0])
            T[:] = (R * np.sign(R.diagonal())[:, None]).T

    def _triangular(self, b: Small, trans: int) -> Small:
        if not self.k:
            return np.zeros(b.shape)
        return np.asarray(dtrtrs(self._L[:, : self.k], b, lower=1, trans=trans)[0])  # F order, or it copies

    def back(self, r: Small) -> Small:
        """L^-T r: for a row r of `row`, the combination of the factor's vectors nearest to the new one."""
        return self._triangular(r, 1)

    def solve(self, b: Small) -> Small:
        """M^-1 b."""
        return self.back(self._triangular(b, 0))


def tolerance(k: int, y: Small) -> float:
    """A squared pivot (of a unit diagonal) below this is rounding: it is (e - y)'M(e - y), so that grows with y."""
    return (k + 2) * EPS * max(16.0, float(np.abs(y).sum()) ** 2)


class WeightProblem:
    """The small problem and its memory from call to call: Gram matrix, passive set, factor.

    Parameters
    ----------
    totals : sequence of float
        The fixed sum of each block; nan for a block without one.
    """

    def __init__(self, totals: Any = (np.nan,)) -> None:
        self.totals = np.asarray(totals, dtype=np.float64)
        self.k = 0
        self._G = np.zeros((16, 16))
        self.nonneg: Mask = np.zeros(0, dtype=bool)
        self.block = np.zeros(0, dtype=np.intp)
        self._alpha = np.where(np.isnan(self.totals), 0.0, 1.0)  # 1 until an atom shows the block's size
        self._sized = np.zeros(len(self.totals), dtype=bool)
        self._fixed = np.flatnonzero(~np.isnan(self.totals))
        self._scale = np.zeros(0)  # square roots of the diagonal of M
        self._passive: list[int] = []
        self._factor = Factor()
        self.ray: Small | None = None
        """After a call: a direction without curvature in which the objective falls, if there is one."""

    @classmethod
    def of(cls, G: Small, nonneg: Any, block: Any = 0, totals: Any = (np.nan,)) -> WeightProblem:
        """The problem with this Gram matrix."""
        problem = cls(totals)
        problem.k = len(G)
        problem._G = np.array(G, dtype=np.float64)
        problem.nonneg = np.broadcast_to(np.asarray(nonneg, dtype=bool), (len(G),)).copy()
        problem.block = np.broadcast_to(np.asarray(block, dtype=np.intp), (len(G),)).copy()
        problem._scale = np.array([problem._norm(i) for i in range(problem.k)])
        problem._follow()
        return problem

    @property
    def G(self) -> Small:
        return self._G[: self.k, : self.k]

    def append(self, row: Small, nonneg: bool, block: int = 0) -> None:
        """One more weight; row holds its inner products with all the others and, last, with itself."""
        self.extend(np.asarray(row)[None, :], [nonneg], [block])

    def extend(self, rows: Small, nonneg: Any, block: Any) -> None:
        """More weights; each row holds the inner products of one with all, the new ones last."""
        k, self.k = self.k, rows.shape[1]
        if self.k > self._G.shape[0]:
            grown = np.zeros((2 * self.k + 16, 2 * self.k + 16))
            grown[:k, :k] = self._G[:k, :k]
            self._G = grown
        self._G[k : self.k, : self.k] = rows
        self._G[:k, k : self.k] = rows[:, :k].T
        self.nonneg = np.concatenate([self.nonneg, np.asarray(nonneg, dtype=bool)])
        self.block = np.concatenate([self.block, np.asarray(block, dtype=np.intp)])
        self._scale = np.concatenate([self._scale, [self._norm(i) for i in range(k, self.k)]])
        self._follow()

    def keep(self, mask: Mask) -> None:
        """Forget the weights where the mask is False; they must be zero."""
        for i in [i for i in self._passive if not mask[i]]:
            self._leave(i)
        new_place = np.cumsum(mask) - 1
        self._passive = [int(new_place[i]) for i in self._passive]
        self._G[: mask.sum(), : mask.sum()] = self.G[np.ix_(mask, mask)]
        self.k = int(mask.sum())
        self.nonneg, self.block, self._scale = self.nonneg[mask], self.block[mask], self._scale[mask]
        self._follow()

    def _norm(self, i: int) -> float:
        return float(np.sqrt(self._G[i, i] + self._alpha[self.block[i]])) or 1.0

    def _follow(self) -> None:
        """Keep alpha of the size of G, block by block; where it had to change, the factor starts anew."""
        diagonal, changed = self.G.diagonal(), False
        for b in self._fixed:
            top = float(diagonal[self.block == b].max(initial=0.0))
            if top > 0 and not (self._sized[b] and top <= 16.0 * self._alpha[b] <= 256.0 * top):
                self._alpha[b], self._sized[b], changed = top, True, True
        if changed:
            self._scale = np.array([self._norm(i) for i in range(self.k)])
            self._passive, self._factor = [], Factor()

    # ------------------------------------------------------------------ the factor of the passive set

    def _products(self, i: int) -> Small:
        """Row i of the scaled M against the passive set."""
        p = self._passive
        same = self._alpha[self.block[i]] * (self.block[p] == self.block[i])
        return np.asarray((self._G[i, p] + same) / (self._scale[i] * self._scale[p]))

    def _join(self, i: int) -> Small | None:
        """Make i passive. Where it depends on them: not done, and the combination that makes it is returned."""
        m = self._products(i)
        r, pivot = self._factor.row(m)
        y = self._factor.back(r)
        if pivot > tolerance(len(r), y) and self._G[i, i] + self._alpha[self.block[i]] > 0:
            self._factor.append(r, pivot)
            self._passive.append(i)
            return None
        b = self.block[self._passive]
        alone = (np.bincount(b, minlength=len(self.totals))[b] == 1) & ~np.isnan(self.totals[b]) & (b != self.block[i])
        y[alone] = 0.0  # exactly, by the sum of that block: it may not lose its last atom
        return np.asarray(y * self._scale[i] / self._scale[self._passive])

    def _leave(self, i: int) -> None:
        place = self._passive.index(i)
        self._factor.drop(place)
        del self._passive[place]

    def _solve(self, rhs: Small, sums: Small) -> tuple[Small, Small]:
        """w and multipliers with M w = rhs + E' nu, E w = sums on the passive set."""
        p = self._passive
        scale = self._scale[p]
        if not len(self._fixed):
            return self._factor.solve(rhs / scale) / scale, np.zeros(0)
        unit = np.sqrt(self._alpha[self._fixed])  # in these units the multipliers of all blocks are alike
        E = (self.block[p][None, :] == self._fixed[:, None]) * unit[:, None]
        both = (self._factor.solve(np.vstack([rhs, E]).T / scale[:, None]) / scale[:, None]).T
        w, Z = both[0], both[1:]
        schur, rest = E @ Z.T, unit * sums - E @ w
        nu = rest / schur[0] if len(rest) == 1 and schur[0, 0] > 0 else np.linalg.lstsq(schur, rest, rcond=None)[0]
        return w + nu @ Z, unit * nu

    def _step(self, slope: Small, w: Small, p: Any) -> tuple[Small, Small]:
        """The step on the passive set p to the minimiser with sign constraints left out, and its multipliers lam, where
        slope + G step + lam = 0."""
        missing = self.totals[self._fixed] - self._totals(w[p], p)
        step, nu = self._solve(-slope[p], missing)
        lam = np.zeros(len(self.totals))
        lam[self._fixed] = self._alpha[self._fixed] * self._totals(step, p) - nu
        if self._factor.pivot < 1e-6:  # nearly dependent atoms: refine
            for _ in range(3):
                residual = slope[p] + step @ self._G[np.ix_(p, p)] + lam[self.block[p]]
                s, nu = self._solve(-residual, missing - self._totals(step, p))
                step = step + s
                lam[self._fixed] += self._alpha[self._fixed] * self._totals(s, p) - nu
        return step, lam

    def _totals(self, w: Small, p: Any) -> Small:
        return np.asarray(np.bincount(self.block[p], w, len(self.totals))[self._fixed], dtype=np.float64)

    # ------------------------------------------------------------------ the active-set method

    def solve(self, c: Small, start: Small) -> Small:
        """The minimiser of w'Gw/2 - c'w, from a feasible start."""
        return self.descend(self.G @ start - c, start)

    def descend(self, q: Small, start: Small, tolerance: float = 0.0) -> Small:
        """The minimiser of q'(w - start) + (w - start)'G(w - start)/2, from a feasible start; never worse than it.

        The same problem as `solve`, told by its slope q at the start: near a minimum q is small and exact, and so is
        the answer. With a tolerance, weights at zero whose increase promises less than that stay there.
        """
        w = start.copy()
        self.ray = None
        self._warm(w)
        q = self._centred(q, start)
        self._seek(q)
        if self.nonneg.any():
            self._walk(w, q, start, tolerance)
        else:
            p = np.asarray(self._passive, dtype=np.intp)
            w[p] += self._step(q, w, p)[0]
            self._polish(q, w, start, p)
        d = w - start
        return w if float(q @ d) + 0.5 * float(d @ (self.G @ d)) <= 0 else start.copy()

    def _walk(self, w: Small, q: Small, start: Small, tolerance: float) -> None:
        """From minimiser to minimiser without signs: a weight at zero leaves, the most promising one joins."""
        slope = q + self.G @ (w - start)  # exact where a new weight is chosen, elsewhere kept up on the passive set
        tried: set[int] = set()  # weights that could not move; they may try again once the objective has fallen
        lowest = 0.0
        for _ in range(10 * self.k + 50):
            p = np.asarray(self._passive, dtype=np.intp)
            step, lam = self._step(slope, w, p)
            target = w[p] + step
            if not np.isfinite(target).all():
                break
            blocking = self.nonneg[p] & (target <= 0)
            if blocking.any():
                theta, stuck = self._retreat(w, p, target, blocking)
                tried |= stuck
                slope[p] -= theta * (slope[p] + lam[self.block[p]])  # as slope + G step + lam = 0 there
                continue
            w[p] = target
            slope = q + self.G @ (w - start)
            value = 0.5 * float((q + slope) @ (w - start))
            if value < lowest - 1e-9 * abs(lowest):
                lowest = value
                tried.clear()
            i = self._violated(slope, q, w - start, lam, tolerance, tried)
            if i is None:
                self._polish(q, w, start, p)
                break
            y = self._join(i)
            if y is not None:
                tried.add(i)
                self._exchange(w, i, y)
                slope = q + self.G @ (w - start)

    def _seek(self, q: Small) -> None:
        """A free weight that depends on the passive ones, with a slope of its own, makes a ray."""
        p = np.asarray(self._passive, dtype=np.intp)
        left_out = ~self.nonneg
        left_out[p] = False
        for i in np.flatnonzero(left_out):
            if np.isnan(self.totals[self.block[i]]):
                y = self._factor.solve(self._products(int(i))) * self._scale[i] / self._scale[p]
                slope = float(q[i] - y @ q[p])
                if abs(slope) > 1e-6 * (abs(float(q[i])) + float(np.abs(y) @ np.abs(q[p]))):
                    self.ray = np.zeros(self.k)
                    self.ray[p], self.ray[i] = y * np.sign(slope), -np.sign(slope)

    def _polish(self, q: Small, w: Small, start: Small, p: Any) -> None:
        """One step of iterative refinement at the end, unless it would cross a sign."""
        refined = w[p] + self._step(q + self.G @ (w - start), w, p)[0]
        if np.isfinite(refined).all() and not (self.nonneg[p] & (refined <= 0)).any():
            w[p] = refined

    def _centred(self, q: Small, start: Small) -> Small:
        """q less a constant per block with a total: the same problem, without the cancellation in q'(w - start)."""
        mean = np.zeros(len(self.totals))
        for b in self._fixed:
            mine = self.block == b
            mean[b] = float(q[mine] @ start[mine]) / self.totals[b] if self.totals[b] else 0.0
        return q - mean[self.block]

    def _warm(self, w: Small) -> None:
        """Make just the free and the nonzero weights passive, moving the weight of dependent ones onto the others."""
        wanted = ~self.nonneg | (w != 0)
        for i in [i for i in self._passive if not wanted[i]]:
            self._leave(i)
        wanted[self._passive] = False
        if (wanted & ~self.nonneg).any() and self.nonneg[self._passive].any():
            wanted[self._passive] = True  # free weights come first: a signed one must not stand in for them
            self._passive, self._factor = [], Factor()
        missing = [int(i) for i in (*np.flatnonzero(wanted & ~self.nonneg), *np.flatnonzero(wanted & self.nonneg))]
        if missing and not self._passive and self._build(missing):
            return
        self._admit(w, missing)

    def _admit(self, w: Small, missing: list[int]) -> None:
        """Make these passive, moving the weight of dependent ones onto the others."""
        while missing:
            i = missing.pop(0)
            y = self._join(i)
            if y is None:
                continue
            # atom_i = sum y_j atom_j: move w_i over, as far as the signs allow
            p = np.asarray(self._passive, dtype=np.intp)
            theta, out = _reach(w[p], w[i] * y, self.nonneg[p])
            w[p] += min(theta, 1.0) * w[i] * y
            if out is not None and theta < 1.0:
                w[i] -= theta * w[i]
                w[p[out]] = 0.0
                self._leave(int(p[out]))
                missing.insert(0, i)
            else:
                w[i] = 0.0

    def _build(self, members: list[int]) -> bool:
        p = np.asarray(members, dtype=np.intp)
        same = (self.block[p][:, None] == self.block[p][None, :]) * self._alpha[self.block[p]][:, None]
        M = (self._G[np.ix_(p, p)] + same) / np.outer(self._scale[p], self._scale[p])
        if self._factor.build(M):
            self._passive = list(members)
            return True
        return False

    def _retreat(self, w: Small, p: Any, target: Small, blocking: Mask) -> tuple[float, set[int]]:
        """Walk towards the target until the first weight is zero. Those at zero leave; how far, and who never moved."""
        now = w[p]
        ratios = np.where(blocking, now / np.where(blocking & (now > 0), now - target, 1.0), np.inf)
        theta = float(ratios.min())
        w[p] = now + theta * (target - now)
        for i in p[blocking & (ratios <= theta)]:
            w[i] = 0.0
            self._leave(int(i))
        return theta, {int(i) for i in p[blocking & (ratios <= 0)]}

    def _violated(self, slope: Small, q: Small, d: Small, lam: Small, tolerance: float, tried: set[int]) -> int | None:
        """The weight at zero whose increase lowers the objective fastest, if any does beyond rounding."""
        held = self.nonneg.copy()
        held[self._passive] = False
        held[list(tried)] = False
        if not held.any():
            return None
        level = lam[self.block]
        sizes = np.sqrt(self.G.diagonal())  # |G_ij| <= sizes_i sizes_j
        noise = np.maximum(8.0 * EPS * (sizes * float(sizes @ np.abs(d)) + np.abs(q) + np.abs(level)), tolerance)
        merit = np.where(held & (slope + level < -noise), (slope + level) / self._scale, 0.0)
        i = int(merit.argmin())
        return i if merit[i] < 0 else None

    def _exchange(self, w: Small, i: int, y: Small) -> None:
        """Let i in along the direction e_i - y in which M vanishes; a passive weight that reaches zero makes room."""
        p = np.asarray(self._passive, dtype=np.intp)
        z = y * self._scale[p] / self._scale[i]
        partners = self.nonneg[p] & (z**2 > tolerance(len(p), z))  # without one of these, i is independent
        theta, out = _reach(w[p], -y, partners)
        if out is None or not np.isfinite(theta):
            return  # nothing limits the direction: it is rounding
        w[p] = np.where(self.nonneg[p], np.maximum(w[p] - theta * y, 0.0), w[p] - theta * y)
        w[i] += theta
        w[p[out]] = 0.0
        self._leave(int(p[out]))
        self._admit(w, [i])


def _reach(w: Small, d: Small, nonneg: Mask) -> tuple[float, int | None]:
    """The largest step along d that keeps signed weights non-negative, and the weight that stops it."""
    falling = nonneg & (d < -1e-10 * np.abs(d).max(initial=0.0))  # smaller coefficients are rounding
    if not falling.any():
        return np.inf, None
    ratios = np.where(falling, w / np.where(falling, -d, 1.0), np.inf)
    out = int(ratios.argmin())
    return max(float(ratios[out]), 0.0), out


# ---------------------------------------------------------------------- the paper's cheaper alternative


def project(v: Small, nonneg: Mask, block: Any, totals: Small) -> Small:
    """The nearest feasible weights: free, non-negative, or on a simplex, block by block.

    >>> project(np.array([0.9, 0.5, -1.0]), np.ones(3, bool), np.zeros(3, int), np.array([1.0]))
    array([0.7, 0.3, 0. ])
    """
    out = np.where(nonneg, np.maximum(v, 0.0), v)
    for b in np.flatnonzero(~np.isnan(totals)):
        mine = block == b
        if nonneg[mine].all():
            near = v[mine] - v[mine].max()  # a common shift changes nothing, but small numbers are exact
            u = np.sort(near)[::-1]
            excess = (np.cumsum(u) - totals[b]) / np.arange(1, len(u) + 1)
            kept = np.flatnonzero(u > excess)
            out[mine] = np.maximum(near - excess[kept[-1]], 0.0) if len(kept) else 0.0
        else:
            raise NotImplementedError("a block with a total must be non-negative throughout.")
    return out


def projected_gradient(problem: WeightProblem, q: Small, start: Small, steps: int) -> Small:
    """A fixed number of projected-gradient steps on the small problem, step 1 / (largest row sum of |G|)."""
    G, w = problem.G, start
    bound = float(np.abs(G).sum(axis=1).max(initial=0.0))
    for _ in range(steps if bound > 0 else 0):
        w = project(w - (q + G @ (w - start)) / bound, problem.nonneg, problem.block, problem.totals)
    return w
