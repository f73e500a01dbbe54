r"""The passive weights, which may change, and the minimum over them without the constraints on signs.

.. math:: G_{pp}\,w_p + E_p^\top \lambda = c_p, \qquad E_p w_p = s,

where row b of E marks the weights of block b and s are the totals.

A fixed sum makes any multiple of :math:`w^\top e_b e_b^\top w` a constant, so the factor is that of
:math:`M = G + \sum_b \alpha_b e_b e_b^\top`, which is positive definite where the atoms are *affinely* independent. It
is scaled to a unit diagonal, so every pivot is compared with its own diagonal entry: a short atom is not mistaken for
one that depends on the passive atoms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pursuit.arrays import Indices, Small, no_places, no_weights
from pursuit.linalg import EPS, NEARLY_SINGULAR, CholeskyFactor
from pursuit.state import Stateful

Mask = NDArray[np.bool_]

MAX_SUM_CORRECTIONS = 20
"""Corrections of the sums of a step; each multiplies their error by about EPS."""


@dataclass(eq=False)
class PassiveSet(Stateful):
    """The Gram matrix of all weights, which of them are passive, and the factor of their part of M.

    Parameters
    ----------
    totals : (blocks,) array
        The fixed sum of each block; nan for a block without one.
    """

    totals: Small
    k: int = field(default=0, init=False)
    members: Indices = field(default_factory=no_places, init=False)
    """The passive weights, in the order of the factor's rows."""
    block: Indices = field(default_factory=no_places, init=False)
    scale: Small = field(default_factory=no_weights, init=False)
    """Square roots of the diagonal of M."""
    _G: Small = field(default_factory=partial(np.zeros, (16, 16)), init=False)
    _alpha: Small = field(init=False)
    _sized: Mask = field(init=False)
    _factor: CholeskyFactor = field(default_factory=CholeskyFactor, init=False)

    def __post_init__(self) -> None:
        self.fixed = np.flatnonzero(~np.isnan(self.totals))
        """The blocks with a total."""
        self._alpha = np.where(np.isnan(self.totals), 0.0, 1.0)  # 1 until an atom shows the block's size
        self._sized = np.zeros(len(self.totals), dtype=bool)

    @property
    def G(self) -> Small:
        return self._G[: self.k, : self.k]

    # ------------------------------------------------------------------ all weights

    def extend(self, rows: Small, block: object) -> None:
        """Add weights, not passive; each row holds the inner products of one atom with all, the new ones last."""
        k, self.k = self.k, rows.shape[1]
        if self.k > self._G.shape[0]:
            grown = np.zeros((2 * self.k + 16, 2 * self.k + 16))
            grown[:k, :k] = self._G[:k, :k]
            self._G = grown
        self._G[k : self.k, : self.k] = rows
        self._G[:k, k : self.k] = rows[:, :k].T
        self.block = np.concatenate([self.block, np.asarray(block, dtype=np.intp)])
        self.scale = np.concatenate([self.scale, self._scale_from(k)])
        if len(self.fixed):
            self._fit_alpha()

    def keep(self, mask: Mask) -> None:
        """Remove the weights where the mask is False."""
        for i in self.members[~mask[self.members]]:
            self.drop(i)
        self.members = (np.cumsum(mask) - 1)[self.members]
        self._G[: mask.sum(), : mask.sum()] = self.G[np.ix_(mask, mask)]
        self.k = int(mask.sum())
        self.block, self.scale = self.block[mask], self.scale[mask]
        self._fit_alpha()

    def _scale_from(self, start: int) -> Small:
        scale = np.sqrt(self.G.diagonal()[start:] + self._alpha[self.block[start:]])
        return np.where(scale == 0.0, 1.0, scale)

    def _fit_alpha(self) -> None:
        """Keep alpha of the size of G, block by block; where it changes, the passive set becomes empty.

        The size is between those of the longest and the shortest atom: a larger one hides the lengths of short atoms, a
        smaller one hides that two long atoms of opposite signs are affinely independent.
        """
        diagonal, changed = self.G.diagonal(), False
        for b in self.fixed:
            mine = diagonal[self.block == b]
            top = float(mine.max(initial=0.0))
            if top > 0:
                size = top * max(np.sqrt(float(mine[mine > 0].min()) / top), 1e-8)
                if not (self._sized[b] and size <= 16.0 * self._alpha[b] <= 256.0 * size):
                    self._alpha[b], self._sized[b], changed = size, True, True
        if changed:
            self.scale = self._scale_from(0)
            self.clear()

    # ------------------------------------------------------------------ the passive set

    def clear(self) -> None:
        self.members, self._factor = self.members[:0], CholeskyFactor()

    def build(self, members: list[int]) -> bool:
        """Make exactly these passive, by one factorisation; False, and no change, if they are nearly dependent."""
        p = np.asarray(members, dtype=np.intp)
        block, scale = self.block[p], self.scale[p]
        same = (block[:, None] == block) * self._alpha[block][:, None]
        M = (self._G[p[:, None], p] + same) / (scale[:, None] * scale)
        if not self._factor.build(M):
            return False
        self.members = p
        return True

    def append(self, i: int) -> Small | None:
        """Make i passive and return None; or return the coefficients of atom i, if it depends on the members."""
        y = self._factor.append(self._products(i), zero=not self._G[i, i] + self._alpha[self.block[i]] > 0)
        if y is None:
            self.members = np.append(self.members, i)
            return None
        b = self.block[self.members]
        alone = (np.bincount(b, minlength=len(self.totals))[b] == 1) & ~np.isnan(self.totals[b]) & (b != self.block[i])
        y[alone] = 0.0  # exactly: the total of its block fixes a lone passive weight
        return np.asarray(y * self.scale[i] / self.scale[self.members])

    def drop(self, i: int) -> None:
        """Remove i from the passive set."""
        place = int(np.flatnonzero(self.members == i)[0])
        self._factor.drop(place)
        self.members = np.delete(self.members, place)

    def combination(self, i: int) -> Small:
        """The coefficients y of the combination sum_j y_j atom_j of the members nearest to atom i."""
        return np.asarray(self._factor.solve(self._products(i)) * self.scale[i] / self.scale[self.members])

    def _products(self, i: int) -> Small:
        """Row i of the scaled M, at the members."""
        p = self.members
        row = self._G[i, p]
        if len(self.fixed):
            row = row + self._alpha[self.block[i]] * (self.block[p] == self.block[i])
        return np.asarray(row / (self.scale[i] * self.scale[p]))

    # ------------------------------------------------------------------ the minimum over the members

    def step(self, slope: Small, w: Small) -> tuple[Small, Small]:
        """The step of the members to their minimiser, without constraints on signs, and multipliers lam of the blocks
        with slope + G step + lam = 0."""
        p = self.members
        missing = self.totals[self.fixed] - self._sums(w[p], p)
        step, nu = self._solve(-slope[p], missing)
        lam = np.zeros(len(self.totals))
        lam[self.fixed] = self._alpha[self.fixed] * self._sums(step, p) - nu
        if self._factor.smallest_pivot < NEARLY_SINGULAR:  # iterative refinement
            for _ in range(3):
                residual = slope[p] + step @ self._G[np.ix_(p, p)] + lam[self.block[p]]
                s, nu = self._solve(-residual, missing - self._sums(step, p))
                step = step + s
                lam[self.fixed] += self._alpha[self.fixed] * self._sums(s, p) - nu
        return step, lam

    def _solve(self, rhs: Small, sums: Small, careful: bool = False) -> tuple[Small, Small]:
        """w and multipliers nu with M w = rhs + E' nu, E w = sums on the members.

        Where w is far longer than the totals, as M is tiny beside rhs, its sums are lost in its rounding. Then,
        carefully: the multipliers first take up what is common to the entries of rhs in a block, and would only cancel
        in w; and the sums are corrected until they are right.
        """
        p = self.members
        scale = self.scale[p]
        if not len(self.fixed):
            return self._factor.solve(rhs / scale) / scale, np.zeros(0)
        unit = np.sqrt(self._alpha[self.fixed])  # these units give the multipliers of all blocks the same scale
        E = (self.block[p][None, :] == self.fixed[:, None]) * unit[:, None]
        nu = np.zeros(len(unit))
        if careful:
            squares = np.einsum("ij,ij->i", E, E)
            nu = -(E @ rhs) / np.where(squares > 0, squares, 1.0)
        both = (self._factor.solve(np.vstack([rhs + nu @ E, E]).T / scale[:, None]) / scale[:, None]).T
        w, Z = both[0], both[1:]
        schur, rest = E @ Z.T, unit * sums - E @ w
        for _ in range(MAX_SUM_CORRECTIONS if careful else 1):
            more = _solve_small(schur, rest)
            w, nu = w + more @ Z, nu + more
            rest = unit * sums - E @ w
            if (np.abs(rest) <= 4.0 * EPS * (E @ np.abs(w) + unit * np.abs(self.totals[self.fixed]))).all():
                return w, unit * nu
        return (w, unit * nu) if careful else self._solve(rhs, sums, careful=True)

    def keeps_totals(self, w: Small) -> bool:
        """Whether all weights together have the totals, to rounding."""
        sums, sizes = (np.bincount(self.block, v, len(self.totals))[self.fixed] for v in (w, np.abs(w)))
        return bool((np.abs(sums - self.totals[self.fixed]) <= (self.k + 16) * EPS * sizes).all())

    def _sums(self, w: Small, p: Indices) -> Small:
        """The sums of the blocks with a total."""
        if not len(self.fixed):
            return np.zeros(0)
        return np.asarray(np.bincount(self.block[p], w, len(self.totals))[self.fixed], dtype=np.float64)


def _solve_small(A: Small, b: Small) -> Small:
    """A^-1 b, by least squares where A is singular; nan where an entry is not finite."""
    if len(b) == 1 and A[0, 0] > 0:
        return np.asarray(b / A[0])
    if not (np.isfinite(A).all() and np.isfinite(b).all()):
        return np.full(len(b), np.nan)
    return np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])
