r"""Which atoms are best, proved from intervals: what screening and incremental correlations share.

The plain way computes :math:`\hat c = D^\top g` in floating point and takes the largest merits, :math:`|\hat c_j|` or
:math:`-\hat c_j`, ties to the lowest index. A cheaper way knows of each merit only an interval that contains the
*computed* number. Here is how to find the same atoms all the same: first leave out who cannot be among the best
(`contenders`), then recompute the rest and see whether their order is beyond doubt (`order`). Where it is not, nobody
but the plain product itself can tell, and it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit._arrays import Indices, Small

CHUNK = 64
PAUSE = 63  # calls, at most, that pass without a new attempt after one has failed


@dataclass
class Trust:
    """Whether to try: after a failure 1, 3, 7, ... calls are left to the plain product, after a success none."""

    pause: int = 0
    left: int = 0

    def tries(self) -> bool:
        self.left -= 1
        return self.left < 0

    def learn(self, succeeded: bool) -> None:
        self.pause = 0 if succeeded else min(2 * self.pause + 1, PAUSE)
        self.left = self.pause


def rounding(m: int, dtype: Any) -> float:
    r"""A factor gamma for which any order of summation gives :math:`|\hat c - a^\top g| \le \gamma |a|^\top |g|`.

    The classical bound is m u / (1 - m u) with unit roundoff u; this is more than twice that, which also pays for the
    rounding of whatever is computed from it.
    """
    return (m + 32) * float(np.finfo(dtype).eps)


def contenders(lower: Small, upper: Small, best: float, several: int) -> Indices:
    """Places whose interval reaches the `several`-th best lower end (`best` is the first): no other can be among the
    `several` best.

    The `several`-th largest of the maxima of chunks stands in for that of all: it is no larger, so nobody is lost, and
    it costs a fraction of a partition of everything.
    """
    chunks = len(lower) // CHUNK
    if several == 1:
        bar = best
    elif several < chunks:
        maxima = lower[: chunks * CHUNK].reshape(chunks, CHUNK).max(axis=1)
        bar = np.partition(maxima, chunks - several)[chunks - several]
    else:
        several = min(several, len(lower))
        bar = np.partition(lower, len(lower) - several)[len(lower) - several]
    return np.flatnonzero(upper >= bar)


def order(merit: Small, doubt: Small, several: int) -> Indices | None:
    """Places of the `several` largest merits, best first, or None where an error of `doubt` in each could change that.

    >>> order(np.array([1.0, 3.0, 2.0]), np.full(3, 0.1), 2)
    array([1, 2])
    >>> order(np.array([1.0, 3.0, 2.0]), np.full(3, 0.6), 2) is None
    True
    """
    places = np.argsort(-merit, kind="stable")
    low, high = (merit - doubt)[places], (merit + doubt)[places]
    others = np.maximum.accumulate(high[::-1])[::-1][1:]  # the most that anyone further down may have
    sure = low[: len(others)][:several] > others[:several]
    return places[:several] if bool(sure.all()) else None
