"""Projections on simplices."""

from __future__ import annotations

import numpy as np

from pursuit.arrays import Small


def project_simplex(v: Small, total: float) -> Small:
    r"""The point of :math:`\{u \ge 0, \sum_i u_i = s\}` nearest to v, for a total :math:`s \ge 0`.

    All entries fall by the same level, down to zero:

    .. math:: u_i = \max(v_i - \theta, 0), \qquad \theta = \Big(\sum_{i \le k} v_{(i)} - s\Big) / k,

    where :math:`v_{(1)} \ge v_{(2)} \ge \dots` and k is the largest number with :math:`v_{(k)}` above its own level
    (Held, Wolfe and Crowder, 1974). Sorting costs O(n log n). The entries are first shifted by their maximum, which
    changes nothing but keeps the digits that tell large entries apart.

    >>> project_simplex(np.array([0.9, 0.5, -1.0]), 1.0)
    array([0.7, 0.3, 0. ])
    """
    if not len(v):
        return np.zeros(0)
    shifted = v - v.max()
    descending = np.sort(shifted)[::-1]
    levels = (np.cumsum(descending) - total) / np.arange(1, len(v) + 1)
    above = np.flatnonzero(descending > levels)
    return np.maximum(shifted - levels[above[-1]], 0.0) if len(above) else np.zeros(len(v))


def project_solid_simplex(v: Small, total: float) -> Small:
    r"""The point of :math:`\{u \ge 0, \sum_i u_i \le s\}` nearest to v.

    The positive part of v where its sum is at most s, else the projection on the face of sum s. With signs put back it
    projects on the L1 ball, on singular values on the nuclear-norm ball, on norms of groups on the group ball.

    >>> project_solid_simplex(np.array([0.5, -1.0]), 1.0), project_solid_simplex(np.array([0.9, 0.5]), 1.0)
    (array([0.5, 0. ]), array([0.7, 0.3]))
    """
    positive = np.maximum(v, 0.0)
    return positive if positive.sum() <= total else project_simplex(v, total)
