"""Looking ahead: which atoms a pursuit will want next, and how many of them it pays to prepare for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs

from pursuit._arrays import Indices, Small

SIZES = (8, 16, 24, 32)  # columns per fetch; up to 8 cost hardly more than one


@dataclass
class Economy:
    """What fetching ahead costs and brings, in units of a plain product, and so how many columns to fetch.

    Whatever is spent beyond the plain way comes out of a budget: what the first fetch takes (one product, or 1.75 where
    D is in row order), 1/25 more with each call, and what was saved before. So, as far as `cost` is true, the whole
    never costs more than 1.04 times the plain way and that first fetch. `hits` and `tries` count, for foreseen atoms by
    rank, who was needed; both fade, as runs change character. `overhead` is what a call costs on top of its arithmetic.
    """

    contiguous: bool
    overhead: float = 0.0
    balance: float = field(init=False)
    hits: Small = field(default_factory=lambda: np.zeros(len(SIZES)))
    tries: Small = field(default_factory=lambda: np.zeros(len(SIZES)))

    def __post_init__(self) -> None:
        self.balance = 1.0 if self.contiguous else 1.75

    def cost(self, q: int, missing: int) -> float:
        """A fetch of q columns of which `missing` are needed and the others foreseen: measured, on one thread."""
        ahead = self.overhead * (2.7 + 0.2 * q) if q > missing else 0.0
        if q <= 1:
            return q + ahead
        return ahead + (max(1.15 + 0.025 * q, 0.2 + 0.125 * q) if self.contiguous else 1.8 + 0.1 * q)

    def share(self, columns: int, d: int) -> float:
        """A call that combines so many columns."""
        return columns / d + self.overhead

    def size(self, missing: int, share: float, most: int) -> int:
        """How many columns to fetch, at most `most`, where `missing` are needed; 0 for none.

        A fetch serves 1 + (expected hits) calls, each of which costs `share`; the least cost per call is chosen.
        """
        affordable = 1.0 + self.balance - share
        best, price, served, rate = missing, self.cost(missing, missing), 1.0, 0.7
        for full, hits, tries in zip(SIZES, self.hits, self.tries, strict=True):
            q = min(full, most)
            rate = min((hits + 1.7 * rate) / (tries + 2.0), 1.0)  # before it is tried: a bit less than the rank before
            served += rate * max(q - max(full - 8, 1), 0)
            cost = self.cost(q, missing)
            if q > missing and cost <= affordable and cost / served < price:
                best, price = q, cost / served
        return best if self.cost(best, missing) <= affordable else 0

    def pay(self, q: int, missing: int, share: float) -> None:
        self.balance -= max(0.0, self.cost(q, missing) + share - 1.0)

    def foreseen(self, ranks: Indices) -> None:
        self.hits *= 0.97
        self.tries *= 0.97
        np.add.at(self.tries, ranks, 1.0)


def foresee(G: Small, across: Small, inside: Small, c: Small, m: int, signed: bool) -> Indices:
    """The next m atoms of a pursuit among L candidates, given the active atoms: places, in their order.

    Parameters
    ----------
    G : (L, L) Gram matrix of the candidates
    across : (k, L) inner products of active atoms and candidates
    inside : (k, k) Gram matrix of the active atoms
    c : (L,) correlations with the gradient
    """
    P, c = np.array(G, dtype=np.float64), np.array(c, dtype=np.float64)
    floor = 1e-8 * P.diagonal()
    factor, info = dpotrf(np.asarray(inside, dtype=np.float64), lower=1)
    if info == 0 and len(factor):
        X = dtrtrs(factor, across.astype(np.float64), lower=1)[0]
        P -= X.T @ X
    chosen: list[int] = []
    for _ in range(m):
        merit = np.where(P.diagonal() > floor, np.abs(c) if signed else -c, 0.0)
        i = int(merit.argmax())
        if not merit[i] > 0:
            break
        chosen.append(i)
        t = P[i] / math.sqrt(P[i, i])
        c -= (c[i] / math.sqrt(P[i, i])) * t
        P -= np.outer(t, t)
    return np.asarray(chosen, dtype=np.intp)
