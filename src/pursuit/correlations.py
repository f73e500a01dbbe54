r"""Correlations with the gradient of a quadratic, through Gram columns that are fetched several at a time.

For a quadratic f with Hessian M, the gradient at :math:`x = \sum_j w_j D_j` is :math:`\nabla f(0) + M x`, so

.. math:: D^\top \nabla f(x) = c_0 + \sum_j w_j\, D^\top M D_j, \qquad c_0 = D^\top \nabla f(0).

With the Gram columns :math:`D^\top M D_j` of the k active atoms at hand this costs n k operations, the plain product
n d, each reading as many numbers from memory. Fetching one column costs as much as the plain product, but fetching
eight costs little more than one, as D is read once. So the game is to fetch, along with the column that is needed,
those that will be: `foresee` runs the pursuit ahead on a few candidates, `Economy` says how many to trust it with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit._arrays import Array, Indices, Small, flat
from pursuit._ranking import Trust, order, rounding
from pursuit._threads import spread
from pursuit.foresight import Economy, foresee
from pursuit.metrics import Metric

FEW = 16  # runs of fewer atoms are left to the plain way: there is nothing to win
CACHED = 1 << 21  # entries of a D that is served from the processor's cache, where a plain product takes no time
OVERHEAD = 3e5  # what a call costs on top of its arithmetic, in entries of D that a plain product reads meanwhile
GROUP = 16  # columns of one small product
SMALL = 500_000  # multiplications that a BLAS does on one thread, without packing its arguments


@dataclass
class Tally:
    """Calls; products with all of D (plain ones and fetches); columns fetched; calls served from the cache alone."""

    calls: int = 0
    passes: int = 0
    columns: int = 0
    hits: int = 0


class Correlations:
    r"""D' grad f(x) for a quadratic f along a run, with the same best atoms as the plain product at a fraction of it.

    What comes back is D' grad up to rounding, with this guarantee: the `several` best entries (largest modulus, or
    smallest value if not `signed`), their order and their signs are those of the floating-point product `D.T @ grad`.
    Every answer is made from :math:`c_0` and the weights, never from the answer before, so errors do not pile up; they
    are at most

    .. math:: \varepsilon = 4 \gamma\, \max_j \|D_j\| \left( \|g\| + 2 \sum_i |w_i| \|M D_i\| \right), \qquad
              \gamma = 2 (d + k + 32) u,

    which covers :math:`c_0`, the Gram columns, their sum, and the caller's own rounding of x and of g. Entries within
    :math:`2\varepsilon` of the best are recomputed from g itself. If one of them is off by more than
    :math:`\varepsilon` (a metric that rounds worse than its norm suggests, a g that does not belong to the weights), if
    there are too many, or if their order is within the rounding of a plain product, the plain product is returned.

    Parameters
    ----------
    D : (d, n) NumPy array
        In column order (F) fetching is cheapest; row order works.
    metric : Diagonal or Operator
        M, the constant Hessian of f.
    c0 : (n,) array
        D' grad f(0), as the plain product computes it: it is the answer where there are no sources.
    gram : (n, n) array, optional
        D' M D, if it is there already: then nothing is ever fetched.
    several : int
        How many of the best entries are promised.
    signed : bool
        Whether the best are the largest in modulus (lin, signed dictionaries) or the smallest.
    atoms : int, optional
        How many atoms the run will take, where known: below 16 every answer is a plain product, as it is where D has
        less than two million entries.
    radius : float, optional
        max ||D_j||; computed if left out, which costs about a plain product.

    Notes
    -----
    Memory: n numbers for each Gram column held, at most max(d / 2, 32) of them, so at most half the memory of D (beyond
    that a plain product is no slower). Columns that nobody asked for go first.

    Examples
    --------
    >>> import pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((50, 400))
    >>> y = D[:, 3] + D[:, 5]
    >>> C = Correlations(D, ps.LeastSquares(y).metric, D.T @ -y)
    >>> c = C.correlations(D[:, 3] - y, [3], [1.0])
    >>> int(np.abs(c).argmax()), bool(np.allclose(c, D.T @ (D[:, 3] - y)))
    (5, True)
    """

    def __init__(
        self,
        D: Array,
        metric: Metric,
        c0: Array,
        *,
        gram: Array | None = None,
        several: int = 1,
        signed: bool = True,
        atoms: int | None = None,
        radius: float | None = None,
    ) -> None:
        self.D, self.metric, self.gram = D, metric, gram
        self.c0 = np.asarray(c0, dtype=D.dtype)
        self.several, self.signed = several, signed
        self.radius = float(np.sqrt(np.einsum("ij,ij->j", D, D).max())) if radius is None else radius
        few = D.size < CACHED or (atoms is not None and atoms < FEW)
        self.atoms, self.plain, self._trust = atoms, gram is None and few, Trust()
        self._eps, self._tiny = rounding(0, D.dtype) / 32, D.shape[0] * float(np.finfo(D.dtype).tiny)
        in_pieces = bool(D.flags.f_contiguous) and D.shape[0] * GROUP <= SMALL
        self.tally, self.economy = Tally(), Economy(in_pieces, OVERHEAD / max(D.size, CACHED))
        self._columns = _Columns(D, max(D.shape[0] // 2, 32))
        self._last: Small = self.c0

    def correlations(self, grad: Array, sources: Sequence[int] | Indices, coefs: Any) -> Small:
        """D' grad, where grad = grad f(sum_j coefs_j D_j), j over the sources; a new array."""
        self.tally.calls += 1
        g, which, w = flat(grad), *_merged(sources, coefs)
        self._last = self._answer(g, which, w)
        return self._last

    def _answer(self, g: Array, which: Indices, w: Small) -> Small:
        if not len(which):
            return self.c0.copy()
        self.economy.balance += 0.04
        if self.plain or not self._trust.tries() or not self._ready(g, which):
            return self._product(g)
        c = self._columns.combine(self.c0, which, w)
        settled = self._settled(c, g, which, w)
        self._trust.learn(settled)
        if settled:
            return c
        self.economy.balance -= 1.0
        return self._product(g)

    def _product(self, g: Array) -> Small:
        self.tally.passes += 1
        return np.asarray(self.D.T @ g)

    # ------------------------------------------------------------------ which columns

    def _ready(self, g: Array, which: Indices) -> bool:
        """Whether the Gram columns of all the sources are there, after fetching what is worth it."""
        held = self._columns
        held.tidy(which)
        share = self.economy.share(max(held.used, len(which)), self.D.shape[0])
        missing = which[held.place[which] < 0]
        for r in held.greet(which):
            self.economy.hits[r] += 1.0
        if not len(missing):
            self.tally.hits += 1
            self.economy.balance += 1.0 - share
            return True
        if self.gram is not None:
            if held.room(len(missing), which):
                held.add(missing, self._norms(missing))[:] = self.gram[missing]
                held.greet(which)
            return bool((held.place[which] >= 0).all())
        left = self.D.shape[1] if self.atoms is None else max(self.atoms - len(which) - 1, 0)
        q = self.economy.size(len(missing), share, len(missing) + left)
        if q == 0 or not held.room(q, which):
            return False
        ahead = self._foresee(g, which, missing, q - len(missing)) if q > len(missing) else missing[:0]
        self._fetch(np.concatenate([missing, ahead]), which, len(missing))
        self.economy.pay(len(missing) + len(ahead), len(missing), share)
        return True

    def _norms(self, columns: Indices) -> Small:
        return np.asarray(np.linalg.norm(self.metric.batch(np.ascontiguousarray(self.D.T[columns])), axis=1))

    def _fetch(self, columns: Indices, which: Indices, needed: int) -> None:
        """The Gram columns: the needed ones, then those foreseen, in the order of their rank."""
        V = self.metric.batch(np.ascontiguousarray(self.D.T[columns]))
        ranks = np.minimum((np.arange(len(columns)) + 1 - needed) // 8, 3)
        ranks[:needed] = -1
        self.economy.foreseen(ranks[needed:])
        self._columns.rank[columns] = ranks
        _gram_columns(self.D, V, self.economy.contiguous, self._columns.add(columns, np.linalg.norm(V, axis=1)))
        self._columns.greet(which)
        self.tally.passes += 1
        self.tally.columns += len(columns)

    def _foresee(self, g: Array, which: Indices, missing: Indices, m: int) -> Indices:
        """The m columns that are most likely needed next: the pursuit itself, run on the best 2 m + 8 candidates."""
        merit = np.abs(self._last) if self.signed else -self._last
        free = self._columns.place < 0
        free[missing] = False
        merit = np.where(free, merit, -np.inf)
        count = min(2 * m + 8, int(free.sum()))
        if count == 0:
            return missing[:0]
        near = np.argpartition(-merit, count - 1)[:count]
        B, N = (np.ascontiguousarray(self.D.T[j]) for j in (near, missing))
        MB = self.metric.batch(B)
        old = which[self._columns.place[which] >= 0]
        S = np.concatenate([old, missing])
        across, inside = np.empty((len(S), count)), np.empty((len(S), len(S)))
        across[: len(old)], across[len(old) :] = self._columns.entries(old, near), N @ MB.T
        inside[: len(old)] = self._columns.entries(old, S)
        inside[len(old) :, : len(old)] = inside[: len(old), len(old) :].T
        inside[len(old) :, len(old) :] = N @ self.metric.batch(N).T
        return near[foresee(B @ MB.T, across, inside, B @ g, m, self.signed)]

    # ------------------------------------------------------------------ the best entries

    def _settled(self, c: Small, g: Array, which: Indices, w: Small) -> bool:
        """Put the best entries right; False where they cannot be told from the rest."""
        d, n = self.D.shape
        several, length = min(self.several, n), math.sqrt(float(g @ g))
        gamma = (d + len(which) + 32) * self._eps
        error = 4.0 * gamma * self.radius * (length + 2.0 * float(np.abs(w) @ self._columns.norm[which]))
        doubt = 2.0 * gamma * self.radius * length + self._tiny
        merit = np.abs(c) if self.signed else -c
        bar = merit.max() if several == 1 else np.partition(merit, n - several)[n - several]
        best = np.flatnonzero(merit >= bar - 2.0 * error)
        if not math.isfinite(error) or len(best) > 2 * several + n // 20:
            return False
        values = self.D.T[best].astype(np.float64, copy=False) @ g
        if np.abs(values - c[best]).max() > error:
            return False
        exact = np.abs(values) if self.signed else -values
        winners = order(exact, np.full(len(best), doubt), several)
        c[best] = values
        return winners is not None and (not self.signed or bool(exact[winners].min() > doubt))


def _merged(sources: Sequence[int] | Indices, coefs: Any) -> tuple[Indices, Small]:
    """Each column once, with its whole coefficient, those at zero left out; in the order of entry if there are none."""
    which, w = np.asarray(sources, dtype=np.intp), np.asarray(coefs, dtype=np.float64)
    if len(set(which.tolist())) < len(which):
        which, inverse = np.unique(which, return_inverse=True)
        w = np.bincount(inverse, weights=w).astype(np.float64)
    some = w != 0
    return which[some], w[some]


def _gram_columns(D: Array, V: Array, contiguous: bool, out: Small) -> None:
    """out = V D, a row for each vector of V, in one reading of D.

    A BLAS packs its arguments first, which for a few rows costs more than the product. Below a certain size it does not
    (nor does it start threads), so D is taken in pieces of that size, by threads of our own.
    """
    if not contiguous or len(V) == 1:
        np.matmul(V, D, out=out)
        return
    V = np.asfortranarray(V)
    step = max(1, SMALL // (min(len(V), GROUP) * D.shape[0]))

    groups = [(V[i : i + GROUP], out[i : i + GROUP]) for i in range(0, len(V), GROUP)]

    def work(start: int, stop: int) -> None:
        for a in range(start, stop, step):
            b = min(a + step, stop)
            for v, o in groups:
                np.matmul(v, D[:, a:b], out=o[:, a:b])

    spread(work, D.shape[1], 16 * step)


class _Columns:
    """Gram columns as the rows of one growing array: first those that were ever needed, then those only foreseen."""

    def __init__(self, D: Array, capacity: int) -> None:
        n = D.shape[1]
        self.capacity, self.used, self.filled = capacity, 0, 0
        self._rows = np.empty((min(64, capacity), n), dtype=D.dtype)
        self._name = np.empty(capacity, dtype=np.intp)
        self.place, self.rank = np.full(n, -1), np.full(n, -1)
        self.norm = np.zeros(n)

    def entries(self, which: Indices, at: Indices) -> Small:
        return np.asarray(self._rows[np.ix_(self.place[which], at)])

    def greet(self, which: Indices) -> list[int]:
        """Move columns that are needed for the first time to the front; the ranks at which they were foreseen."""
        held = self.place[which]
        ranks = []
        for i in np.sort(held[held >= self.used]):
            ranks.append(int(self.rank[self._name[i]]))
            self._swap(int(i), self.used)
            self.used += 1
        return [r for r in ranks if r >= 0]

    def _swap(self, i: int, j: int) -> None:
        if i != j:
            kept = self._rows[j].copy()
            self._rows[j], self._rows[i] = self._rows[i], kept
            self._name[[i, j]] = self._name[[j, i]]
        self.place[self._name[[i, j]]] = i, j

    def tidy(self, which: Indices) -> None:
        """Forget those that were needed once, where they have come to outnumber the columns of `which`."""
        if self.used > 2 * len(which) + 64:
            self._keep(which)

    def room(self, q: int, which: Indices) -> bool:
        """Make room for q more; all but the columns of `which` may go."""
        if self.filled + q > self.capacity:
            self._keep(which)
        return self.filled + q <= self.capacity

    def _keep(self, which: Indices) -> None:
        kept = which[self.place[which] >= 0]
        rows = self._rows[self.place[kept]]
        self.place[self._name[: self.filled]] = -1
        self._rows[: len(kept)], self._name[: len(kept)] = rows, kept
        self.place[kept], self.used, self.filled = np.arange(len(kept)), len(kept), len(kept)

    def add(self, columns: Indices, norms: Small) -> Small:
        """Places for these columns, for the caller to fill; there must be room."""
        start, end = self.filled, self.filled + len(columns)
        if end > len(self._rows):
            size = min(max(2 * len(self._rows), end), self.capacity), self._rows.shape[1]
            grown = np.empty(size, dtype=self._rows.dtype)
            grown[:start] = self._rows[:start]
            self._rows = grown
        self._name[start:end], self.filled = columns, end
        self.place[columns], self.norm[columns] = np.arange(start, end), norms
        return self._rows[start:end]

    def combine(self, c0: Small, which: Indices, w: Small) -> Small:
        """c0 + sum_j w_j (column j)."""
        weights = np.zeros(self.used, dtype=self._rows.dtype)
        weights[self.place[which]] = w
        return np.asarray(c0 + weights @ self._rows[: self.used])
