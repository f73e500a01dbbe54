"""Projected gradient on the small problem: the paper's cheaper alternative to its exact solution."""

from __future__ import annotations

import numpy as np

from pursuit.arrays import Small
from pursuit.linalg import project_simplex
from pursuit.weights.passive import Mask
from pursuit.weights.problem import WeightProblem


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
