"""The active-set method of the package's docstring for the small problem, and projected gradients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pursuit.arrays import Indices, Small
from pursuit.linalg import EPS, pivot_rounding, project_simplex
from pursuit.state import Stateful
from pursuit.weights.passive import Mask, PassiveSet


@dataclass(eq=False)
class WeightProblem(Stateful):
    """The small problem, with a memory between calls: Gram matrix, passive set, factor.

    Parameters
    ----------
    totals : sequence of float
        The fixed sum of each block; nan for a block without one.

    Examples
    --------
    >>> problem = WeightProblem.of(np.eye(2), nonnegative=True)
    >>> problem.solve(np.array([3.0, -1.0]), start=np.zeros(2))              # the cone
    array([3., 0.])
    >>> problem = WeightProblem.of(np.eye(2), nonnegative=True, totals=[1.0])
    >>> problem.solve(np.array([0.5, 0.0]), start=np.array([1.0, 0.0]))      # the hull
    array([0.75, 0.25])
    """

    totals: Any = (np.nan,)
    nonnegative: Mask = field(init=False)
    passive: PassiveSet = field(init=False)
    eps: float = field(default=EPS, init=False)
    """The roundoff with which the Gram matrix and the slopes were computed."""
    rounds: int = field(default=0, init=False)
    """Changes of the passive set so far."""
    work: int = field(default=0, init=False)
    """The multiplications of these changes, about."""
    ray: Small | None = field(default=None, init=False)
    """After a call: a direction without curvature in which the objective falls, if there is one."""

    def __post_init__(self) -> None:
        self.totals = np.asarray(self.totals, dtype=np.float64)
        self.nonnegative = np.zeros(0, dtype=bool)
        self.passive = PassiveSet(self.totals)

    @classmethod
    def of(cls, G: Small, nonnegative: object, block: object = 0, totals: object = (np.nan,)) -> WeightProblem:
        """The problem with this Gram matrix."""
        problem = cls(totals)
        problem.extend(np.asarray(G), np.full(len(G), nonnegative), np.full(len(G), block))
        return problem

    def extend(self, rows: Small, nonnegative: object, block: object) -> None:
        """Add weights; each row holds the inner products of one atom with all atoms, the new ones last."""
        self.nonnegative = np.concatenate([self.nonnegative, np.asarray(nonnegative, dtype=bool)])
        self.passive.extend(rows, block)

    def keep(self, mask: Mask) -> None:
        """Remove the weights where the mask is False; they must be zero."""
        self.nonnegative = self.nonnegative[mask]
        self.passive.keep(mask)

    def solve(self, c: Small, start: Small) -> Small:
        """The minimiser of w'Gw/2 - c'w, from a feasible start."""
        return self.descend(self.passive.G @ start - c, start)

    def descend(self, q: Small, start: Small, tolerance: float = 0.0) -> Small:
        """The minimiser of q'(w - start) + (w - start)'G(w - start)/2, from a feasible start; feasible, never worse.

        The problem is that of `solve`, given by its slope q at the start: near a minimum q is small and accurate, and
        so is the answer. Weights at zero with a slope above -tolerance stay zero.
        """
        w = start.copy()
        self._warm_start(w)
        passive, G = self.passive, self.passive.G
        if len(passive.fixed):
            q = self._centred(q, start)
        left_out = ~self.nonnegative
        left_out[passive.members] = False
        self.ray = self._falling_ray(q, left_out) if left_out.any() else None
        if self.nonnegative.any():
            self._minimise(w, q, start, tolerance)
        else:
            w[passive.members] += passive.step(q, w)[0]
            self._refine(q, w, start)
        d = w - start
        rounding = 2.0 * self.eps * float(np.square(np.sqrt(G.diagonal()) @ np.abs(d)))  # of d'Gd, where atoms cancel
        descends = float(q @ d) + 0.5 * float(d @ (G @ d)) <= -rounding
        return w if descends and (not len(passive.fixed) or passive.keeps_totals(w)) else start.copy()

    # ------------------------------------------------------------------ the method

    def _minimise(self, w: Small, q: Small, start: Small, tolerance: float) -> None:
        """Steps 1 to 4 of the method, in place."""
        slope = q + self.passive.G @ (w - start)  # recomputed where a weight enters, else updated on the passive set
        stuck: set[int] = set()  # weights that could not change; they may enter again once the objective has fallen
        lowest = 0.0
        for _ in range(10 * self.passive.k + 50):
            p = self.passive.members
            self.rounds, self.work = self.rounds + 1, self.work + self.passive.k * self.passive.k + 3 * len(p) * len(p)
            step, lam = self.passive.step(slope, w)
            target = w[p] + step
            if not np.isfinite(target).all():
                break
            blocking = self.nonnegative[p] & (target <= 0)
            if blocking.any():
                theta, unmoved = self._cut(w, p, target, blocking)
                stuck |= unmoved
                slope[p] -= theta * (slope[p] + lam[self.passive.block[p]])  # as slope + G step + lam = 0 there
                continue
            w[p] = target
            slope = q + self.passive.G @ (w - start)
            value = 0.5 * float((q + slope) @ (w - start))
            if value < lowest - 1e-9 * abs(lowest):
                lowest = value
                stuck.clear()
            i = self._entering(slope, q, w - start, lam, tolerance, stuck)
            if i is None:
                self._refine(q, w, start)
                break
            y = self.passive.append(i)
            if y is not None:
                stuck.add(i)
                self._exchange(w, i, y)
                slope = q + self.passive.G @ (w - start)

    def _cut(self, w: Small, p: Indices, target: Small, blocking: Mask) -> tuple[float, set[int]]:
        """Move w towards the target until weights are zero, and drop these. Returns the step, and those zero before."""
        old = w[p]
        ratios = np.where(blocking, old / np.where(blocking & (old > 0), old - target, 1.0), np.inf)
        theta = float(ratios.min())
        w[p] = old + theta * (target - old)
        w[p] = np.where(self.nonnegative[p], np.maximum(w[p], 0.0), w[p])
        for i in p[blocking & (ratios <= theta)]:
            w[i] = 0.0
            self.passive.drop(int(i))
        return theta, {int(i) for i in p[blocking & (ratios <= 0)]}

    def _entering(self, slope: Small, q: Small, d: Small, lam: Small, tolerance: float, stuck: set[int]) -> int | None:
        """The weight at zero whose increase lowers the objective fastest; None if none does beyond rounding."""
        held = self.nonnegative.copy()
        held[self.passive.members] = False
        held[list(stuck)] = False
        if not held.any():
            return None
        level = lam[self.passive.block]
        sizes = np.sqrt(self.passive.G.diagonal())  # |G_ij| <= sizes_i sizes_j
        noise = np.maximum(8.0 * EPS * (sizes * float(sizes @ np.abs(d)) + np.abs(q) + np.abs(level)), tolerance)
        merit = np.where(held & (slope + level < -noise), (slope + level) / self.passive.scale, 0.0)
        i = int(merit.argmin())
        return i if merit[i] < 0 else None

    def _exchange(self, w: Small, i: int, y: Small) -> None:
        """Increase w_i along e_i - y, where M vanishes, until a passive weight is zero; i replaces it."""
        p = self.passive.members
        z = y * self.passive.scale[p] / self.passive.scale[i]
        partners = self.nonnegative[p] & (z**2 > pivot_rounding(z))  # if there is none, atom i is independent
        theta, out = _longest_step(w[p], -y, partners)
        if out is None or not np.isfinite(theta):
            return  # no weight limits the step: the dependence is rounding
        w[p] = np.where(self.nonnegative[p], np.maximum(w[p] - theta * y, 0.0), w[p] - theta * y)
        w[i] += theta
        w[p[out]] = 0.0
        self.passive.drop(int(p[out]))
        self._make_passive(w, [i])

    def _refine(self, q: Small, w: Small, start: Small) -> None:
        """One step of iterative refinement at the end, unless a non-negative weight would become negative."""
        p = self.passive.members
        refined = w[p] + self.passive.step(q + self.passive.G @ (w - start), w)[0]
        if np.isfinite(refined).all() and not (self.nonnegative[p] & (refined <= 0)).any():
            w[p] = refined

    # ------------------------------------------------------------------ the start

    def _warm_start(self, w: Small) -> None:
        """Make the free and the nonzero weights passive; the weight of dependent atoms moves to the others."""
        passive, free = self.passive, ~self.nonnegative
        wanted = free | (w != 0)
        for i in passive.members[~wanted[passive.members]]:
            passive.drop(i)
        wanted[passive.members] = False
        if (wanted & free).any() and self.nonnegative[passive.members].any():
            wanted[passive.members] = True  # free weights first: the dependent ones left out are non-negative
            passive.clear()
        missing = [int(i) for i in (*np.flatnonzero(wanted & free), *np.flatnonzero(wanted & ~free))]
        if missing and not len(passive.members) and passive.build(missing):
            return
        if missing:
            self._make_passive(w, missing)

    def _make_passive(self, w: Small, missing: list[int]) -> None:
        """Make these passive; the weight of dependent atoms moves to the others."""
        while missing:
            i = missing.pop(0)
            y = self.passive.append(i)
            if y is None:
                continue
            # atom_i = sum y_j atom_j: move w_i to these, as far as the signs allow
            p = self.passive.members
            theta, out = _longest_step(w[p], w[i] * y, self.nonnegative[p])
            w[p] += min(theta, 1.0) * w[i] * y
            if out is not None and theta < 1.0:
                w[i] -= theta * w[i]
                w[p[out]] = 0.0
                self.passive.drop(int(p[out]))
                missing.insert(0, i)
            else:
                w[i] = 0.0

    def _centred(self, q: Small, start: Small) -> Small:
        """q minus a constant per block with a total: the same problem, without cancellation in q'(w - start)."""
        mean = np.zeros(len(self.totals))
        for b in self.passive.fixed:
            mine = self.passive.block == b
            mean[b] = float(q[mine] @ start[mine]) / self.totals[b] if self.totals[b] else 0.0
        return q - mean[self.passive.block]

    def _falling_ray(self, q: Small, left_out: Mask) -> Small | None:
        """A direction without curvature along which the objective falls, or None: e_i - y or its negative, where i is a
        free weight left out, whose atom depends on the passive ones with coefficients y."""
        p, ray = self.passive.members, None
        for i in np.flatnonzero(left_out):
            if np.isnan(self.totals[self.passive.block[i]]):
                y = self.passive.combination(int(i))
                slope = float(q[i] - y @ q[p])
                if abs(slope) > 1e-6 * (abs(float(q[i])) + float(np.abs(y) @ np.abs(q[p]))):
                    ray = np.zeros(self.passive.k)
                    ray[p], ray[i] = y * np.sign(slope), -np.sign(slope)
        return ray


def _longest_step(w: Small, d: Small, nonnegative: Mask) -> tuple[float, int | None]:
    """The longest step along d that keeps non-negative weights non-negative, and the weight that stops it."""
    falling = nonnegative & (d < -1e-10 * np.abs(d).max(initial=0.0))  # smaller entries are rounding
    if not falling.any():
        return np.inf, None
    ratios = np.where(falling, w / np.where(falling, -d, 1.0), np.inf)
    out = int(ratios.argmin())
    return max(float(ratios[out]), 0.0), out


def nearest_feasible(v: Small, nonnegative: Mask, block: object, totals: Small) -> Small:
    """The feasible weights nearest to v: free, non-negative, or on a simplex, block by block.

    >>> nearest_feasible(np.array([0.9, 0.5, -1.0]), np.ones(3, bool), np.array([0, 0, 1]), np.array([1.0, np.nan]))
    array([0.7, 0.3, 0. ])
    """
    out = np.where(nonnegative, np.maximum(v, 0.0), v)
    for b in np.flatnonzero(~np.isnan(totals)):
        mine = block == b
        if not nonnegative[mine].all():
            raise NotImplementedError("a block with a total must be non-negative throughout.")
        out[mine] = project_simplex(v[mine], totals[b])
    return out


def projected_gradient(problem: WeightProblem, q: Small, start: Small, steps: int) -> Small:
    """A fixed number of projected-gradient steps on the small problem, step 1 / (largest row sum of |G|).

    >>> problem = WeightProblem.of(np.eye(2), nonnegative=True, totals=[1.0])
    >>> projected_gradient(problem, np.array([-0.4, 0.0]), np.array([0.5, 0.5]), 1)
    array([0.7, 0.3])
    """
    G, w, block = problem.passive.G, start, problem.passive.block
    bound = float(np.abs(G).sum(axis=1).max(initial=0.0))
    for _ in range(steps if bound > 0 else 0):
        w = nearest_feasible(w - (q + G @ (w - start)) / bound, problem.nonnegative, block, problem.totals)
    return w
