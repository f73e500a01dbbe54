"""Polytopes with very many vertices, whose oracle sorts or solves an assignment problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import scipy  # its parts are imported when they are first used

from pursuit._arrays import Array, Indices, Small, Space, everywhere, flat, host, namespace, told, whole
from pursuit.atoms.base import MEMBERSHIP_ULPS, Atoms
from pursuit.atoms.frames import Atom, SparseAtom
from pursuit.atoms.vectors import check_dimension


def check_selection(n: int, k: int) -> tuple[int, int]:
    """The arguments of "k of n entries", checked."""
    n = check_dimension(n)
    if not 1 <= whole(k) <= n:
        raise ValueError(f"k is {told(k)} with n = {n}; give a number of entries from 1 to n.")
    return n, int(k)


def rounded_signs(a: Array) -> Small | None:
    """The entries rounded to integers, where all of them are -1, 0 or 1 to rounding."""
    values, tolerance = host(a), MEMBERSHIP_ULPS * Space.of(a).eps
    signs = np.rint(values)
    return signs if bool((np.abs(values - signs) <= tolerance).all() and (np.abs(signs) <= 1.0).all()) else None


class Selection(Atoms):
    """Polytopes whose vertices choose k of n entries: the best vertex takes the k entries of largest merit."""

    n: int
    k: int

    def _merit(self, g: Array) -> Small:
        """What each entry would contribute to -<g, a>."""
        raise NotImplementedError

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        """The vertex with these entries."""
        raise NotImplementedError

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """The best vertex, then vertices of two kinds in turn. Those of the first kind share no entry with it: they
        take the next k entries in the order of merit, the k after these, and so on (useful where x is inside the hull).
        Those of the second kind exchange its 1, 2, 4, ... worst entries for the next ones (useful on a face)."""
        values, order = host(flat(g)), np.argsort(-self._merit(g), kind="stable")
        k = self.k
        blocks = [order[start : start + k] for start in range(k, self.n - k + 1, k)]
        powers = [1 << i for i in range(min(k - 1, self.n - k).bit_length())]
        swaps = [np.concatenate([order[: k - m], order[k : k + m]]) for m in powers]
        others = [v for pair in zip_longest(blocks[: several - 1], swaps) for v in pair if v is not None]
        return [self._vertex(chosen, values) for chosen in (order[:k], *others)[:several]]

    def sample(self, rng: np.random.Generator) -> Atom:
        return self._vertex(rng.choice(self.n, self.k, replace=False), rng.standard_normal(self.n))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n}, {self.k})"


class KSparse(Selection):
    r"""Vectors of R^n with k entries :math:`\pm 1` and zeros elsewhere: the K-sparse polytope, whose gauge is
    :math:`\max(\|x\|_\infty, \|x\|_1/k)`.

    >>> import pursuit as ps
    >>> ps.KSparse(4, 2).lmo(np.array([3.0, -1.0, 0.5, -2.0])).vector
    array([-1.,  0.,  0.,  1.])
    """

    symmetric = True

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = check_selection(n, k)
        self.shape, self.work = (self.n,), self.n * math.log2(self.n + 1.0)
        self.radius, self.diameter = math.sqrt(self.k), 2.0 * math.sqrt(self.k)
        self.width = min(1.0, self.k / math.sqrt(self.n))

    def _merit(self, g: Array) -> Small:
        return np.abs(host(flat(g)))

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        places = np.sort(chosen)
        signs = np.where(g[places] > 0, -1.0, 1.0)
        return SparseAtom(places, signs, (self.n,), tuple(zip(places.tolist(), signs.tolist(), strict=True)))

    def contains(self, a: Array) -> bool:
        signs = rounded_signs(a)
        return tuple(a.shape) == self.shape and signs is not None and np.count_nonzero(signs) == self.k

    def gauge(self, x: Array) -> float:
        xp = namespace(x)
        return max(float(xp.max(abs(x))), float(xp.sum(abs(x))) / self.k)


class Hypersimplex(Selection):
    r"""Vectors of R^n with k ones and zeros elsewhere; the hull is :math:`\{0 \le x \le 1, \sum_i x_i = k\}`.

    >>> import pursuit as ps
    >>> ps.Hypersimplex(4, 2).lmo(np.array([3.0, -1.0, 0.5, -2.0])).vector
    array([0., 1., 0., 1.])
    """

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = check_selection(n, k)
        self.shape, self.work = (self.n,), self.n * math.log2(self.n + 1.0)
        self.radius, self.diameter = math.sqrt(self.k), math.sqrt(2.0 * min(self.k, self.n - self.k))
        self.width, self.entry_bounds = -self.k / math.sqrt(self.n), (0.0, 1.0)

    def _merit(self, g: Array) -> Small:
        return -host(flat(g))

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        places = np.sort(chosen)
        return SparseAtom(places, np.ones(self.k), (self.n,), tuple(places.tolist()))

    def contains(self, a: Array) -> bool:
        ones = rounded_signs(a)
        return tuple(a.shape) == self.shape and ones is not None and bool((ones >= 0).all() and ones.sum() == self.k)

    def gauge(self, x: Array) -> float:
        xp = namespace(x)
        level = float(xp.sum(x)) / self.k
        inside = everywhere(x >= 0) and float(xp.max(x)) <= level * (1.0 + 1e-12)
        return level if inside else math.inf


class Permutations(Atoms):
    r"""The n x n permutation matrices; their hull is the Birkhoff polytope of doubly stochastic matrices. The oracle is
    an assignment problem.

    >>> import pursuit as ps
    >>> ps.Permutations(3).lmo(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [2.0, 1.0, 0.0]])).source
    (1, 0, 2)
    """

    def __init__(self, n: int) -> None:
        self.n = check_dimension(n)
        self.shape, self.work = (self.n, self.n), float(self.n**3)
        self.radius = math.sqrt(self.n)
        self.diameter = math.sqrt(2.0 * self.n) if self.n > 1 else 0.0
        self.width, self.entry_bounds = -1.0, (0.0, 1.0)

    def _atom(self, columns: Indices) -> Atom:
        places = np.arange(self.n) * self.n + columns
        return SparseAtom(places, np.ones(self.n), self.shape or (), tuple(columns.tolist()))

    def _assign(self, g: Array) -> tuple[Small, Indices]:
        costs = host(g)
        if costs.shape != self.shape:
            raise ValueError(f"g has shape {costs.shape}; the assignment needs a square of costs, {self.n} x {self.n}.")
        return costs, scipy.optimize.linear_sum_assignment(costs)[1]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """The optimal assignment, followed by the assignments that swap two of its rows, cheapest first."""
        costs, columns = self._assign(g)
        atoms = [self._atom(columns)]
        if several > 1:
            now = costs[np.arange(self.n), columns]
            swapped = costs[:, columns]  # [i, j]: row i takes the column of row j
            rise = swapped + swapped.T - now[:, None] - now[None, :]
            first, second = np.triu_indices(self.n, 1)
            for s in np.argsort(rise[first, second], kind="stable")[: several - 1]:
                i, j = first[s], second[s]
                other = columns.copy()
                other[i], other[j] = columns[j], columns[i]
                atoms.append(self._atom(other))
        return atoms

    def sample(self, rng: np.random.Generator) -> Atom:
        return self._atom(rng.permutation(self.n))

    def contains(self, a: Array) -> bool:
        ones = rounded_signs(a)
        if tuple(a.shape) != self.shape or ones is None:
            return False
        lines = np.concatenate([ones.sum(axis=0), ones.sum(axis=1)])
        return bool((ones >= 0).all() and (lines == 1.0).all())

    def gauge(self, x: Array) -> float:
        X = host(x)
        level = float(X.sum()) / self.n
        sums = np.concatenate([X.sum(axis=0), X.sum(axis=1)])
        inside = bool((X >= 0).all()) and bool((np.abs(sums - level) <= 1e-12 * self.n * max(level, 0.0)).all())
        return level if inside else math.inf

    def __repr__(self) -> str:
        return f"Permutations({self.n})"
