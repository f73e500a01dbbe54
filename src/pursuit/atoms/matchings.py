"""Matchings of a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy  # its parts are imported when they are first used
import scipy.sparse as sp
from scipy.sparse import csgraph

from pursuit.arguments import as_bool
from pursuit.arrays import Array, Indices, host
from pursuit.atoms.base import Found, Search
from pursuit.atoms.frames import Atom
from pursuit.atoms.graphs import EdgeSets
from pursuit.atoms.programs import Polytope


class Matchings(EdgeSets):
    r"""The matchings of an undirected graph, sets of edges without a common node, as vectors of zeros and ones on its
    edges.

    In a bipartite graph the oracle is an assignment problem on a dense matrix of the two sides. In other graphs it is
    an integer program (HiGHS), which is exact but slow beyond some hundred edges. With `perfect` the matchings meet
    every node; in a bipartite graph, every node of the smaller side.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.Matchings([(0, 2), (0, 3), (1, 2), (1, 3), (1, 4)])
    >>> A.lmo(np.array([-2.0, -3.0, -4.0, 1.0, -1.0])).source                      # its edges
    (1, 2)
    >>> ps.Matchings([(0, 1), (1, 2), (2, 0)]).lmo(np.array([-1.0, -2.0, -3.0])).source
    (2,)
    """

    def __init__(self, edges: object, perfect: bool = False) -> None:
        self._set_graph(edges)
        self.perfect = as_bool(perfect, "perfect")
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if len(loops):
            raise ValueError(f"edges join node {self.edges[loops[0], 0]} to itself; leave such edges out.")
        met, ends = np.unique(self.edges, return_inverse=True)
        ends = ends.reshape(self.edges.shape)
        self._sides = _two_sides(ends, len(met))
        self._program: Polytope | None = None
        if self._sides is None:
            most = len(met) // 2
            self._program = self._integer_program(ends, len(met))
        else:
            flipped = self._sides[ends[:, 0]] == 1
            row, col = np.where(flipped, ends.T[::-1], ends.T)
            self._row, self._col = (np.unique(side, return_inverse=True)[1] for side in (row, col))
            self._size = int(self._row.max()) + 1, int(self._col.max()) + 1
            most = min(self._size)
            joined = sp.csr_array((np.ones(len(self.edges)), (self._row, self._col)), shape=self._size)
            if self.perfect and (csgraph.maximum_bipartite_matching(joined) >= 0).sum() < most:
                raise ValueError("edges have no matching that meets all nodes of the smaller side; give perfect=False.")
        self.radius, self.diameter = math.sqrt(most), math.sqrt(min(2 * most, len(self.edges)))

    def _integer_program(self, ends: Indices, nodes: int) -> Polytope:
        m = len(ends)
        meets = sp.csc_array((np.ones(2 * m), (ends.ravel(), np.repeat(np.arange(m), 2))), shape=(nodes, m))
        rows = (meets, np.ones(nodes))
        try:
            if not self.perfect:
                return Polytope(*rows, bounds=(0, 1), integrality=1)
            return Polytope(A_eq=rows[0], b_eq=rows[1], bounds=(0, 1), integrality=1)
        except ValueError:
            raise ValueError("edges have no matching that meets every node; give perfect=False.") from None

    def begin(self, seed: int = 0) -> Search:
        """The function that answers the questions of one run."""
        if self._program is None:
            return super().begin(seed)
        solve = self._program.begin(seed)

        def search(g: Array, several: int, level: float) -> Found:
            self._costs(g)
            found, lower = solve(g, several, level)
            return [self._chosen(np.flatnonzero(host(found[0].vector)))], lower

        return search

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """The cheapest matching."""
        if self._program is not None:
            return self.begin()(g, several, -math.inf)[0]
        costs = self._costs(g)
        order = np.argsort(costs, kind="stable")[::-1]
        cheapest = np.zeros(self._size, dtype=np.intp)
        matrix = np.full(self._size, math.inf if self.perfect else 0.0)
        cheapest[self._row[order], self._col[order]] = order  # the last one stays
        matrix[self._row[order], self._col[order]] = costs[order] if self.perfect else np.minimum(costs[order], 0.0)
        pairs = scipy.optimize.linear_sum_assignment(matrix)
        return [self._chosen(cheapest[pairs] if self.perfect else cheapest[pairs][matrix[pairs] < 0.0])]

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        places = self._indicated(a, tolerance)
        if places is None:
            return False
        met = np.bincount(self.edges[places].ravel(), minlength=self.nodes)
        needed = self.radius or 0.0
        return bool((met <= 1).all() and (not self.perfect or len(places) >= needed**2 - 0.5))


def _two_sides(ends: Indices, nodes: int) -> Indices | None:
    """0 or 1 for each node, so that every edge joins a 0 and a 1; None where the graph is not bipartite.

    Each node has two copies, and an edge joins the first copy of one end to the second copy of the other. In a
    bipartite graph no path joins the two copies of a node.
    """
    tails, heads = np.concatenate([ends, ends[:, ::-1]]).T
    copies = sp.csr_array((np.ones(len(tails)), (tails, heads + nodes)), shape=(2 * nodes, 2 * nodes))
    labels = csgraph.connected_components(copies, directed=False)[1]
    first, second = labels[:nodes], labels[nodes:]
    return None if (first == second).any() else (first > second).astype(np.intp)
