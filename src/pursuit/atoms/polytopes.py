"""Polytopes with very many vertices, whose oracle sorts or solves an assignment problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import scipy  # its parts are imported when they are first used

from pursuit.arguments import as_int_or_nan, require
from pursuit.arrays import Array, Indices, Small, everywhere, flat, host, namespace
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.atoms.sparse import SparseAtom
from pursuit.atoms.vectors import check_dimension

ASSIGNMENTS_PER_CALL = 5
"""Assignment problems that a call of the oracle of permutations solves at most; more save few calls and take longer."""


def check_selection(n: int, k: int) -> tuple[int, int]:
    """The arguments of "k of n entries", checked."""
    n = check_dimension(n)
    require(1 <= as_int_or_nan(k) <= n, "k", k, f"a number of entries from 1 to n = {n}")
    return n, int(k)


class Selection(Atoms):
    """Polytopes whose vertices choose k of n entries: the best vertex takes the k entries of largest merit."""

    n: int
    k: int
    spherical = True

    def _set_size(self, n: int, k: int) -> None:
        self.n, self.k = check_selection(n, k)
        self.shape, self.work = (self.n,), self.n * math.log2(self.n + 1.0)

    def _merit(self, g: Array) -> Small:
        """What each entry would contribute to -<g, a>."""
        raise NotImplementedError

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        """The vertex with these entries."""
        raise NotImplementedError

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """The best vertex, then vertices that exchange m of its k entries for others, for m = k, 1, 2, 4, ... in turn:
        its m worst entries for the m best of the others, then the m entries before these for the next m, and so on.
        m = k is useful where x is inside the hull, small m on a face."""
        values, order = host(flat(g)), np.argsort(-self._merit(g), kind="stable")
        vertices = [order[: self.k]]
        for m, j in islice(self._exchanges(), several - 1):
            chosen, end = order[: self.k].copy(), self.k - m * j % self.k
            chosen[end - m : end] = order[self.k + m * j : self.k + m * (j + 1)]
            vertices.append(chosen)
        return [self._vertex(chosen, values) for chosen in vertices]

    def _exchanges(self) -> Iterator[tuple[int, int]]:
        """The numbers (m, j) for which there is a j-th exchange of m entries; small exchanges end after k entries."""
        spare = self.n - self.k
        limits = {self.k: spare} | {1 << i: min(self.k, spare) for i in range((self.k - 1).bit_length())}
        for j in range(spare):
            yield from ((m, j) for m, limit in limits.items() if m * (j + 1) <= limit)


class KSparse(Selection):
    r"""Vectors of R^n with k entries :math:`\pm 1` and zeros elsewhere: the K-sparse polytope, whose gauge is
    :math:`\max(\|x\|_\infty, \|x\|_1/k)`.

    >>> import pursuit as ps
    >>> ps.KSparse(4, 2).lmo(np.array([3.0, -1.0, 0.5, -2.0])).vector
    array([-1.,  0.,  0.,  1.])
    """

    symmetric = True

    def __init__(self, n: int, k: int) -> None:
        self._set_size(n, k)
        self.radius, self.diameter = math.sqrt(self.k), 2.0 * math.sqrt(self.k)
        self.width = min(1.0, self.k / math.sqrt(self.n))

    def _merit(self, g: Array) -> Small:
        return np.abs(host(flat(g)))

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        places = np.sort(chosen)
        signs = np.where(g[places] > 0, -1.0, 1.0)
        return SparseAtom(places, signs, (self.n,), tuple(zip(places.tolist(), signs.tolist(), strict=True)))

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
        self._set_size(n, k)
        self.radius, self.diameter = math.sqrt(self.k), math.sqrt(2.0 * min(self.k, self.n - self.k))
        self.width, self.entry_bounds = -self.k / math.sqrt(self.n), (0.0, 1.0)

    def _merit(self, g: Array) -> Small:
        return -host(flat(g))

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        places = np.sort(chosen)
        return SparseAtom(places, np.ones(self.k), (self.n,), tuple(places.tolist()))

    def gauge(self, x: Array) -> float:
        xp = namespace(x)
        level = float(xp.sum(x)) / self.k
        inside = everywhere(x >= 0) and float(xp.max(x)) <= level * (1.0 + 1e-12)
        return level if inside else math.inf


class Permutations(Atoms):
    r"""The n x n permutation matrices; their hull is the Birkhoff polytope of doubly stochastic matrices. The oracle is
    an assignment problem; asked for several atoms, it solves up to five.

    >>> import pursuit as ps
    >>> ps.Permutations(3).lmo(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0], [2.0, 1.0, 0.0]])).source
    (1, 0, 2)
    """

    spherical = True

    def __init__(self, n: int) -> None:
        self.n = check_dimension(n)
        self.shape, self.work = (self.n, self.n), float(self.n**3)
        self.radius = math.sqrt(self.n)
        self.diameter = math.sqrt(2.0 * self.n) if self.n > 1 else 0.0
        self.width, self.entry_bounds = -1.0, (0.0, 1.0)

    def _atom(self, columns: Indices) -> Atom:
        places = np.arange(self.n) * self.n + columns
        return SparseAtom(places, np.ones(self.n), self.shape or (), tuple(columns.tolist()))

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """The optimal assignment, then the best one that shares no pair with it, then one that shares none with both,
        and so on. There always is one: every row and column of the pairs left has the same number of them."""
        costs = np.array(host(g), dtype=np.float64)
        require(costs.shape == self.shape, "g", costs, f"a square of costs, {self.n} x {self.n}")
        costs, atoms = np.ldexp(costs, -math.frexp(float(np.abs(costs).max()))[1]), []  # so that no sum overflows
        for _ in range(min(several, self.n, ASSIGNMENTS_PER_CALL)):
            rows, columns = scipy.optimize.linear_sum_assignment(costs)
            atoms.append(self._atom(columns))
            costs[rows, columns] = np.inf
        return atoms

    def sample(self, rng: np.random.Generator) -> Atom:
        return self._atom(rng.permutation(self.n))

    def gauge(self, x: Array) -> float:
        X = host(x)
        level = float(X.sum()) / self.n
        sums = np.concatenate([X.sum(axis=0), X.sum(axis=1)])
        inside = bool((X >= 0).all()) and bool((np.abs(sums - level) <= 1e-12 * self.n * max(level, 0.0)).all())
        return level if inside else math.inf
