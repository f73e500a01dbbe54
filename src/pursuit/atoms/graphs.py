"""Sets of edges of a graph as vectors with an entry for each edge: routes, flows, spanning trees, matchings.

A graph is its list of edges, pairs of nodes 0, 1, 2, ...; several edges may join the same nodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from pursuit import native
from pursuit.arguments import as_int_or_nan, floating_array, host_array, quantity, real_array, require, sparse_matrix
from pursuit.arrays import Array, Indices, Small, Space, host
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.atoms.sparse import SparseAtom
from pursuit.threads import allowed_threads


def check_edges(edges: object) -> Indices:
    """A list of edges, checked: an integer matrix with the rows (tail, head)."""
    pairs = host_array(edges, "edges")
    paired = pairs.ndim == 2 and pairs.shape[1] == 2 and len(pairs) > 0
    require(paired, "edges", pairs, "a pair of nodes for each edge")
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"edges have dtype {pairs.dtype}; give the nodes as integers.")
    if pairs.min() < 0 or pairs.max() >= 1 << 31:
        raise ValueError(f"edges name nodes from {pairs.min()} to {pairs.max()}; number them 0, 1, 2, and so on.")
    return np.asarray(pairs, dtype=np.intp)


class EdgeSets(Atoms):
    """Vectors with an entry for each edge of a graph."""

    edges: Indices

    def _set_graph(self, edges: object) -> None:
        self.edges = check_edges(edges)
        self.nodes = int(self.edges.max()) + 1
        self.shape = (len(self.edges),)

    def _costs(self, g: Array) -> Small:
        costs = host(floating_array(g, "g"))
        require(costs.shape == self.shape, "g", costs, f"a number for each of the {len(self.edges)} edges")
        return costs

    def _chosen(self, places: Indices) -> Atom:
        """The indicator of these edges."""
        places = np.sort(places)
        return SparseAtom(places, np.ones(len(places)), self.shape or (), tuple(places.tolist()))

    def _indicated(self, a: Array, tolerance: float) -> Indices | None:
        """The edges whose indicator `a` is; None where it is none."""
        values = host(a)
        chosen = values > 0.5
        return np.flatnonzero(chosen) if (np.abs(values - chosen) <= tolerance).all() else None

    def rebuild(self, a: Atom) -> Atom | None:
        """The indicator of the edges that the source names."""
        named = isinstance(a.source, tuple) and all(0 <= as_int_or_nan(i) < len(self.edges) for i in a.source)
        atom = self._chosen(np.array(a.source, dtype=np.intp)) if named else None
        return atom if atom is not None and self.contains(atom.vector) else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.nodes} nodes, {quantity(len(self.edges), 'edge')})"


class Network:
    """The shortest routes in a directed graph, for changing costs of its edges."""

    def __init__(self, edges: Indices, nodes: int) -> None:
        self.nodes = nodes
        self._pairs, self._pair, counts = np.unique(
            edges[:, 0] * nodes + edges[:, 1], return_inverse=True, return_counts=True
        )
        self._first = np.cumsum(counts) - counts
        starts = np.searchsorted(self._pairs, np.arange(nodes + 1) * nodes)
        self._layout = (self._pairs % nodes).astype(np.int32), starts.astype(np.int32)

    def cheapest(self, costs: Small) -> Indices:
        """For each pair of joined nodes the cheapest edge between them."""
        return np.asarray(np.lexsort((costs, self._pair))[self._first])

    def routes(self, costs: Small, origins: Any) -> tuple[Small, Indices]:
        """The distances from each origin to every node, and the node before it on a shortest route, negative where
        there is none. The costs are those of the pairs of joined nodes."""
        graph = sp.csr_array((costs, *self._layout), shape=(self.nodes, self.nodes))
        search = csgraph.dijkstra if costs.min() >= 0 else csgraph.johnson
        try:
            distances, before = search(graph, indices=origins, return_predecessors=True)
        except csgraph.NegativeCycleError:
            advice = "give costs of at least 0, or a graph without cycles"
            raise ValueError(f"g is negative around a cycle, so that no route is the shortest; {advice}.") from None
        return distances, before.astype(np.intp)

    def distances(self, origins: object) -> Small:
        """The numbers of edges from each origin to every node."""
        return self.routes(np.ones(len(self._pairs)), origins)[0]

    def places(self, tails: Indices, heads: Indices) -> Indices:
        """The places of pairs of nodes among the joined ones."""
        return np.searchsorted(self._pairs, tails * self.nodes + heads)

    def assign(self, costs: Small, origins: Indices, arriving: Small) -> Small:
        """How much goes over each pair of joined nodes, where `arriving` goes from each origin to every node over
        shortest routes: on all threads in compiled code, which needs costs of at least 0."""
        if not native.is_built() or costs.min() < 0:
            return self.loads(self.routes(costs, origins)[1], arriving)
        heads, starts = self._layout
        loads = np.empty(len(heads))
        native.core().all_or_nothing(starts, heads, costs, origins, arriving, allowed_threads(), loads)
        return loads

    def loads(self, before: Indices, arriving: Small) -> Small:
        """How much goes over each pair of joined nodes, where `arriving` leaves the tree of each origin at every node.

        A node is passed by what leaves at it and behind it. Round t adds what leaves from 2^t to 2^(t+1) - 1 edges
        behind it. The last place is the node before every root.
        """
        size = arriving.size
        offsets = np.arange(len(before))[:, None] * self.nodes
        ancestors = np.append(np.where(before < 0, size, before + offsets).ravel(), size)
        used = np.flatnonzero(ancestors[:-1] < size)
        through = np.append(arriving.ravel(), 0.0)
        while (ancestors < size).any():
            through = through + np.bincount(ancestors, through, size + 1)
            through[size] = 0.0
            ancestors = ancestors[ancestors]
        pairs = before.ravel()[used] * self.nodes + used % self.nodes
        passing = np.bincount(pairs, through[used], self.nodes**2)
        return np.asarray(passing[self._pairs])


class Paths(EdgeSets):
    """The paths from the node `start` of a directed graph to the node `end`, as vectors of zeros and ones on its edges
    (tail, head); their hull is the set of unit flows without cycles. The oracle is a shortest path.

    A cycle of negative cost has no shortest path, and is refused: give costs of at least 0, or a graph without cycles,
    where every cost is allowed.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.Paths([(0, 1), (0, 2), (1, 3), (2, 3), (0, 3)], start=0, end=3)
    >>> A.lmo(np.array([1.0, 2.0, 1.0, 0.5, 2.2])).source                          # its edges
    (0, 2)
    >>> ps.minimize(ps.LeastSquares(np.zeros(5)), ps.conv(A)).x.round(6)           # the flow of least energy
    array([0.25, 0.25, 0.25, 0.25, 0.5 ])
    """

    def __init__(self, edges: object, start: int, end: int) -> None:
        self._set_graph(edges)
        for name, node in (("start", start), ("end", end)):
            require(0 <= as_int_or_nan(node) < self.nodes, name, node, f"one of the nodes 0 to {self.nodes - 1}")
        self.start, self.end = int(start), int(end)
        if self.start == self.end:
            raise ValueError(f"start and end are both {self.end}; give two nodes.")
        self._network = Network(self.edges, self.nodes)
        if not math.isfinite(self._network.distances(self.start)[self.end]):
            ends = f"from start = {self.start} to end = {self.end}"
            raise ValueError(f"no path leads {ends}; edges go from tail to head.")
        longest = min(self.nodes - 1, len(self.edges))
        self.radius, self.diameter = math.sqrt(longest), math.sqrt(min(2 * longest, len(self.edges)))

    def lmo(self, g: Array) -> Atom:
        costs = self._costs(g)
        cheapest = self._network.cheapest(costs)
        before = self._network.routes(costs[cheapest], self.start)[1]
        nodes = [self.end]
        while nodes[-1] != self.start:
            nodes.append(int(before[nodes[-1]]))
        path = np.array(nodes[::-1])
        return self._chosen(cheapest[self._network.places(path[:-1], path[1:])])

    def sample(self, rng: np.random.Generator) -> Atom:
        return self.lmo(rng.exponential(size=len(self.edges)))

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        places = self._indicated(a, tolerance)
        if places is None:
            return False
        onward = dict(self.edges[places].tolist())
        node, steps = self.start, 0
        while node in onward and node != self.end and steps < len(onward):
            node, steps = onward[node], steps + 1
        return node == self.end and steps == len(places)


class Flows(EdgeSets):
    r"""The flows that carry a demand between pairs of nodes over the edges of a directed graph, each pair on one route;
    their hull is the set of flows along routes that pass no node twice.

    The oracle sends each demand over its shortest route (all-or-nothing assignment): :math:`\min_a \langle g, a\rangle
    = \sum_{o,d} D_{od}\, \mathrm{dist}_g(o, d)`, one search for each origin. Cycles of negative cost are refused:
    give costs of at least 0, as travel times are, or a graph without cycles. Routes are not kept: atoms have no source.

    Parameters
    ----------
    edges : (m, 2) integers
        Tail and head of each edge. To forbid routes through a node, give it two numbers: one for the edges that leave
        it and the demand from it, one for the edges that enter it and the demand to it.
    demand : (n, n) array or sparse matrix
        What goes from the node of the row to the node of the column; at least 0. The diagonal is ignored.

    >>> import numpy as np, pursuit as ps
    >>> edges, demand = [(0, 1), (1, 2), (0, 2)], np.array([[0, 0, 6.0], [0, 0, 1.0], [0, 0, 0]])
    >>> A = ps.Flows(edges, demand)
    >>> A.lmo(np.array([1.0, 1.0, 3.0])).vector
    array([6., 7., 0.])
    >>> ps.minimize(ps.LeastSquares(np.zeros(3)), ps.conv(A)).x.round(6)
    array([1.666667, 2.666667, 4.333333])
    """

    def __init__(self, edges: object, demand: object) -> None:
        self._set_graph(edges)
        trips: Any = sparse_matrix(demand, "demand") if sp.issparse(demand) else host(real_array(demand, "demand"))
        square = trips.ndim == 2 and trips.shape[0] == trips.shape[1] >= self.nodes
        require(square, "demand", trips, f"a row and a column for each of {self.nodes} nodes")
        trips = sp.coo_array(trips)
        given = real_array(trips.data, "demand") != 0
        origin, end, amount = trips.row[given], trips.col[given], trips.data[given]
        require(bool((amount >= 0).all()), "the least of demand", amount.min(initial=0.0), "numbers of at least 0")
        self.nodes, apart = int(trips.shape[0]), origin != end
        if not apart.any():
            raise ValueError("demand is zero between all nodes; give a positive one.")
        self._network = Network(self.edges, self.nodes)
        self._origins, row = np.unique(origin[apart].astype(np.int64), return_inverse=True)
        self._arriving = np.zeros((len(self._origins), self.nodes))
        np.add.at(self._arriving, (row, end[apart]), amount[apart])
        distances = self._network.distances(self._origins)
        missing = np.argwhere((self._arriving > 0) & np.isinf(distances))
        if len(missing):
            here, there = self._origins[missing[0, 0]], missing[0, 1]
            ends = f"from node {here} to node {there}"
            raise ValueError(f"demand goes {ends}, but no route does; edges go from tail to head.")
        total, longest = float(self._arriving.sum()), min(self.nodes - 1, len(self.edges))
        self.radius = total * math.sqrt(longest)
        self.diameter = total * math.sqrt(min(2 * longest, len(self.edges)))

    def lmo(self, g: Array) -> Atom:
        costs, flow = self._costs(g), np.zeros(len(self.edges))
        cheapest = self._network.cheapest(costs)
        flow[cheapest] = self._network.assign(costs[cheapest], self._origins, self._arriving)
        return Atom(Space.of(floating_array(g, "g")).put(flow))

    def sample(self, rng: np.random.Generator) -> Atom:
        return self.lmo(rng.exponential(size=len(self.edges)))

    def _is_atom(self, a: Array, tolerance: float) -> bool | None:
        """False where flow is negative, or more leaves a node than enters and starts there; else not known: the single
        demands cannot be read off their sum."""
        x = host(a)
        surplus = np.bincount(self.edges[:, 0], x, self.nodes) - np.bincount(self.edges[:, 1], x, self.nodes)
        surplus += self._arriving.sum(axis=0)
        np.subtract.at(surplus, self._origins, self._arriving.sum(axis=1))
        slack = tolerance * (float(np.abs(x).sum()) + float(self._arriving.sum()))
        return None if bool((x >= -slack).all() and (np.abs(surplus) <= slack).all()) else False


class SpanningTrees(EdgeSets):
    r"""The spanning trees of an undirected graph, as vectors of zeros and ones on its edges; their hull is
    :math:`\{x \ge 0 : \sum_e x_e = n - 1, \sum_{e \subset S} x_e \le |S| - 1 \text{ for all } S\}`. The oracle is a
    minimum spanning tree; costs of every sign are allowed. The graph must be connected.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.SpanningTrees([(0, 1), (1, 2), (0, 2), (2, 3)])
    >>> A.lmo(np.array([3.0, 1.0, 2.0, 5.0])).source                               # its edges
    (1, 2, 3)
    >>> ps.minimize(ps.LeastSquares(np.zeros(4)), ps.conv(A)).x.round(6)
    array([0.666667, 0.666667, 0.666667, 1.      ])
    """

    def __init__(self, edges: object) -> None:
        self._set_graph(edges)
        low, high = self.edges.min(axis=1), self.edges.max(axis=1)
        self._pair = low * self.nodes + high
        if not self._connected(np.arange(len(self.edges))):
            raise ValueError(f"edges leave some of the {self.nodes} nodes apart; give a connected graph.")
        chosen, m = self.nodes - 1, len(self.edges)
        self.radius, self.diameter = math.sqrt(chosen), math.sqrt(2 * min(chosen, m - chosen))

    def _graph(self, values: Small, places: Indices) -> Any:
        """The graph with these edges, of which the first stays where several join two nodes."""
        pairs, first = np.unique(self._pair[places], return_index=True)
        where = pairs // self.nodes, pairs % self.nodes
        return sp.csr_array((values[first], where), shape=(self.nodes, self.nodes))

    def _connected(self, places: Indices) -> bool:
        graph = self._graph(np.ones(len(places)), places)
        return int(csgraph.connected_components(graph, directed=False)[0]) == 1

    def lmo(self, g: Array) -> Atom:
        order = np.argsort(self._costs(g), kind="stable")
        ranks = np.arange(1.0, len(order) + 1.0)  # only the order of costs counts, and SciPy drops edges of cost 0
        tree = csgraph.minimum_spanning_tree(self._graph(ranks, order))
        return self._chosen(order[tree.data.astype(np.intp) - 1])

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        places = self._indicated(a, tolerance)
        return places is not None and len(places) == self.nodes - 1 and self._connected(places)
