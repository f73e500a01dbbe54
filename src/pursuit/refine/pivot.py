"""As few atoms as Caratheodory's theorem allows, at the same point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Indices, Small, flat, host
from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.refine.proposals import Proposal
from pursuit.weights import Mask

MAX_NUMBERS = 1 << 24
"""Numbers in the atoms of S up to which their dependences are computed."""

DEPENDENT = 1e-10
"""Singular values below this fraction of the largest one count as zero."""


@dataclass(frozen=True)
class Pivot:
    r"""Caratheodory's theorem: the same x with affinely independent atoms, at most the dimension of the hull plus 1.

    Where the atoms :math:`a_i` of S depend on each other, :math:`\sum_i n_i a_i = 0` with :math:`\sum_i n_i = 0` in
    every hull, the weights may move along n without moving x, until one of them is 0 and its atom leaves. Over cones
    and spans linear dependence is enough. Use it with updates that collect atoms, such as `Pairwise`.

    >>> import numpy as np, pursuit as ps
    >>> Y = np.random.default_rng(0).random((5, 5)) / 2
    >>> f, domain, stop = ps.LeastSquares(Y), ps.conv(ps.Permutations(5)), ps.Stop(gap=1e-9)
    >>> runs = [ps.minimize(f, domain, ps.Away(), refine=refine, stop=stop) for refine in (None, ps.refine.Pivot())]
    >>> len(runs[1].atoms) <= (5 - 1) ** 2 + 1, bool(abs(runs[0].x - runs[1].x).max() < 1e-4)
    (True, True)
    """

    share: ClassVar[float] = 1.0
    """f changes by rounding only; that much of the update's decrease may be given back."""

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        places = active.support
        if len(places) < 2 or len(places) * active.space.size > MAX_NUMBERS:
            return None
        blocks, w = active.blocks[places], active.weights[places].copy()
        null = _dependences(domain, active, places)
        free = ~domain.signs[blocks]
        alive = np.ones(len(w), dtype=bool)
        for j in range(null.shape[1]):
            n = null[:, j]
            out = _leaving(w, n, free)
            if out is None:
                continue
            w -= w[out] / n[out] * n
            w[out], alive[out] = 0.0, False
            w[~free] = np.maximum(w[~free], 0.0)
            later = null[:, j + 1 :]
            later -= np.outer(n, later[out] / n[out])  # the other dependences without this atom
            later[out] = 0.0
        if alive.all():
            return None
        domain.normalise(w, blocks)
        stay = np.flatnonzero(alive)
        return Proposal(w[stay], [active.atoms[i] for i in places[stay]], blocks[stay])


def _dependences(domain: Domain, active: ActiveSet, places: Indices) -> Small:
    """A basis of the weights that change neither x nor the sums of hulls, one per column."""
    columns = np.stack([host(flat(active.atoms[i].dense(active.space))) for i in places], axis=1).astype(np.float64)
    lengths = np.linalg.norm(columns, axis=0)
    size = float(lengths.max()) or 1.0
    hulls = [b for b, part in enumerate(domain.parts) if part.compact]
    sums = np.stack([size * (active.blocks[places] == b) for b in hulls] or [lengths * 0])
    _, s, right = np.linalg.svd(np.vstack([columns, sums]), full_matrices=True)
    rank = int((s > DEPENDENT * s[0]).sum()) if s[0] > 0 else 0
    return right[rank:].T.copy()


def _leaving(w: Small, n: Small, free: Mask) -> int | None:
    """The atom that first loses its weight along n or -n, whichever is nearer; None where no weight does."""
    moves = np.abs(n) > 1e-8 * np.abs(n).max(initial=0.0)
    moves &= w != 0
    if not moves.any():
        return None
    ratios = np.where(moves, w / np.where(moves, n, 1.0), np.inf)
    best = None
    for sign in (1.0, -1.0):
        able = moves & (free | (sign * n > 0))  # a non-negative weight only limits the direction in which it falls
        if able.any():
            out = int(np.where(able, np.abs(ratios), np.inf).argmin())
            if best is None or abs(ratios[out]) < abs(ratios[best]):
                best = out
    return best
