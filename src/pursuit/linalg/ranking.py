r"""Which columns are best, proved from intervals; used by dictionaries with an 8-bit copy.

The plain way computes :math:`\hat c = D^\top g` in floating point and takes the largest merits, :math:`|\hat c_j|` or
:math:`-\hat c_j`, ties to the lowest index. A cheaper way knows for each merit only an interval that contains the
*computed* number. It finds the same columns in two steps: `contenders` leaves out the columns that cannot be among the
best, and `order` ranks the others by recomputed merits, if rounding cannot change their order. If it can, only the
plain product decides, and the caller computes it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from pursuit.arrays import Indices, Small

CHUNK_SIZE = 64
"""Intervals per chunk in `contenders`."""


def rounding(m: int, dtype: DTypeLike) -> float:
    r"""A factor gamma for which any order of summation gives :math:`|\hat c - a^\top g| \le \gamma |a|^\top |g|`.

    The classical bound is m u / (1 - m u) with unit roundoff u. This is more than twice that, which also covers the
    rounding errors of bounds that are computed from it.
    """
    return (m + 32) * float(np.finfo(dtype).eps)


def contenders(lower: Small, upper: Small, several: int) -> Indices:
    """Places whose upper end reaches the `several`-th largest lower end: only these can be among the `several` best.

    Instead of the `several`-th largest of all lower ends it takes that of the maxima of chunks. It is no larger, so no
    place is lost, and it costs a fraction of a partition of all.
    """
    chunks = len(lower) // CHUNK_SIZE
    if several == 1:
        threshold = lower.max()
    elif several < chunks:
        maxima = lower[: chunks * CHUNK_SIZE].reshape(chunks, CHUNK_SIZE).max(axis=1)
        threshold = np.partition(maxima, chunks - several)[chunks - several]
    else:
        several = min(several, len(lower))
        threshold = np.partition(lower, len(lower) - several)[len(lower) - several]
    return np.flatnonzero(upper >= threshold)


def order(merit: Small, error: Small, several: int) -> Indices | None:
    """Places of the `several` largest merits, best first; None where errors of at most `error` could change them.

    >>> order(np.array([1.0, 3.0, 2.0]), np.full(3, 0.1), 2)
    array([1, 2])
    >>> order(np.array([1.0, 3.0, 2.0]), np.full(3, 0.6), 2) is None
    True
    """
    places = np.argsort(-merit, kind="stable")
    low, high = (merit - error)[places], (merit + error)[places]
    largest_later = np.maximum.accumulate(high[::-1])[::-1][1:]  # the largest merit that a later place may have
    sure = low[: len(largest_later)][:several] > largest_later[:several]
    return places[:several] if bool(sure.all()) else None
