"""The search for the best subset: branch and bound, the node with the lowest bound first.

A node is a problem (`quadratic.Quadratic`, or `smooth.Smooth` for all that is not plain), a state of its units
(columns or groups: in, out or free) and the point where its parent's relaxation ended. Its two children have the unit
with the largest coefficient in and out. The relaxation of a child proves a bound; where that reaches the cut, no
subset of the child is better than the incumbent, and it is a leaf. Otherwise the bound decides further units, the
problem shrinks, and what is left is relaxed again or waits. Nodes are expanded in batches whose size does not depend
on the number of threads, so that neither does the result.

Every step is kept (`Step`): the leaves are the certificate, which `replay` computes again.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pursuit.arrays import Indices
from pursuit.subsets.quadratic import FREE, IN, OUT, Point, Relaxed, States
from pursuit.threads import in_parallel, single_threaded_blas

BATCH = 8
"""Nodes that are expanded before the heap and the incumbent are looked at again."""
WORTH_A_THREAD = 200
"""Units from which on nodes are expanded in several threads: smaller ones take turns at the interpreter."""
POLISH = 16
"""Of so many nodes, one proposes an incumbent."""


@dataclass(eq=False)
class Step:
    """One step of the proof that a set of subsets holds no better one: all that contain the units decided as in so far,
    and none of those decided as out.

    With a `dual` and no children, its bound proves it. With a dual and
    decisions `ins` and `outs`, the bound with one of them reversed proves that they hold, and one child has the rest.
    With a `unit` the two children have it in and out. Without any of these the few subsets are tried one by one.
    """

    dual: Any = None
    unit: int = -1
    ins: Indices = field(default_factory=lambda: np.zeros(0, np.intp))
    outs: Indices = field(default_factory=lambda: np.zeros(0, np.intp))
    children: tuple[Step, ...] = ()


@dataclass(eq=False)
class Node:
    """A node that waits: its problem, its state, the end of its relaxation, and the column to branch on."""

    bound: float
    problem: Any
    state: States
    relaxed: Relaxed
    step: Step


@dataclass(eq=False)
class Expansion:
    """What came of a node: nodes that wait, subsets that were found, how low the leaves are, and the steps."""

    nodes: list[Node] = field(default_factory=list)
    found: list[tuple[float, Indices]] = field(default_factory=list)
    floor: float = math.inf
    relaxations: int = 0


@dataclass(eq=False)
class Search:
    """The state of a search; `run` goes on with it.

    `tolerance(U)` is the gap that is good enough for an incumbent of value U; `allowance(U)` how much worse than U
    subsets may be that are wanted, too (they are kept in `near`).
    """

    value: float
    chosen: Indices
    tolerance: Callable[[float], float]
    allowance: float = 0.0
    heap: list[tuple[float, int, Node]] = field(default_factory=list)
    floor: float = math.inf
    nodes: int = 0
    relaxations: int = 0
    near: dict[tuple[int, ...], float] = field(default_factory=dict)
    roots: list[Step] = field(default_factory=list)
    cones: list[tuple[int, float] | None] = field(default_factory=list)
    """For each root, the unit that is the largest beside its box and its sign; None where all are within the boxes."""
    outside: Any = None
    """The `wide.Cones` that prove the boxes; None where there are none."""
    planted: bool = False
    """Whether all roots are there."""
    batch: list[tuple[float, int, Node]] = field(default_factory=list)
    """Nodes that are being expanded."""
    _ticks: Any = field(default_factory=itertools.count)

    @property
    def upper(self) -> float:
        """The value up to which subsets are wanted."""
        return self.value + self.allowance

    @property
    def cut(self) -> float:
        """The bound from which on a node is a leaf."""
        return self.upper if self.allowance else self.value - self.tolerance(self.value)

    @property
    def lower(self) -> float:
        """What is proved: no subset has a lower value."""
        waiting = min((entry[0] for entry in [*self.heap[:1], *self.batch]), default=math.inf)
        return min(self.value, self.floor, waiting) if self.planted else -math.inf

    def forget(self) -> None:
        """Begin anew, with the incumbent."""
        self.floor = math.inf
        for kept in (self.heap, self.batch, self.roots, self.cones):
            kept.clear()

    def offer(self, value: float, chosen: Indices) -> None:
        """A subset that was found."""
        if value < self.value:
            self.value, self.chosen = value, np.sort(chosen)

    def begin(self, problem: Any, state: States, start: Point, cone: tuple[int, float] | None = None) -> None:
        """Add a root."""
        step = Step()
        self.roots.append(step)
        self.cones.append(cone)
        work = _Work(self)
        work.open(problem, state, start, -math.inf, step)
        work.polish(1)
        self._merge([work.out])

    def run(self, look: Callable[[Search], bool]) -> None:
        """Expand nodes until none waits below the cut, or `look` says that it is enough."""
        for entry in self.batch:  # of a run that was interrupted
            heapq.heappush(self.heap, entry)
        self.batch.clear()
        while self.heap and self.heap[0][0] < self.cut and not look(self):
            while self.heap and len(self.batch) < BATCH:
                self.batch.append(self.heap[0])  # before it leaves the heap, so that Ctrl-C loses no node
                heapq.heappop(self.heap)
            works = [_Work(self) for _ in self.batch]

            def expand(start: int, stop: int, works: list[_Work] = works) -> None:
                for i in range(start, stop):
                    works[i].expand(self.batch[i][2], (self.nodes + i) % POLISH == 0)

            large = max(node.problem.size for _, _, node in self.batch) >= WORTH_A_THREAD
            with single_threaded_blas:
                in_parallel(expand, len(works), 1 if large else len(works))
            for (_, _, node), work in zip(self.batch, works, strict=True):
                node.step.unit, node.step.children = work.unit, work.steps
            self._merge([work.out for work in works])
            self.nodes += len(works)
            self.batch.clear()

    def _merge(self, expansions: list[Expansion]) -> None:
        for expansion in expansions:
            for value, chosen in expansion.found:
                self.offer(value, chosen)
                if self.allowance:
                    self.near[tuple(map(int, np.sort(chosen)))] = value
            self.floor = min(self.floor, expansion.floor)
            self.relaxations += expansion.relaxations
            for node in expansion.nodes:
                heapq.heappush(self.heap, (node.bound, next(self._ticks), node))


class _Work:
    """The expansion of one node; it reads the search and changes nothing but its own steps."""

    def __init__(self, search: Search) -> None:
        self.cut, self.upper, self.enumerates = search.cut, search.upper, search.allowance > 0
        self.out = Expansion()
        self.unit, self.steps = -1, (Step(), Step())

    def expand(self, node: Node, polish: bool) -> None:
        problem, j = node.problem, node.relaxed.branch
        self.unit = int(problem.units[j])
        for step, decision in zip(self.steps, (IN, OUT), strict=True):
            state = node.state.copy()
            state[j] = decision
            self.open(problem, state, node.relaxed.point, node.bound, step)
        self.polish(int(polish))

    def polish(self, count: int) -> None:
        """Subsets from the coefficients of the first nodes."""
        for node in self.out.nodes[:count]:
            P, b = node.problem, node.problem.sizes(node.relaxed.point.b)
            inside = np.flatnonzero(node.state > 0)
            order = np.argsort(-np.where(node.state == FREE, b, 0.0), kind="stable")[: max(P.k - len(inside), 0)]
            value, places = P.improve(np.concatenate([inside, order[b[order] > 0]]), P.k)
            self.out.found.append((value, np.concatenate([P.fixed, P.units[places]])))

    def open(self, problem: Any, state: States, point: Point, bound: float, step: Step) -> None:
        """Relax a node, decide what the bound decides, and again, until it is a leaf or waits."""
        while not self.close(problem, state, step):
            self.out.relaxations += 1
            relaxed = problem.relax(state, point, self.cut)
            bound = max(bound, relaxed.bound)
            if relaxed.bound >= self.cut:
                step.dual = problem.dual(relaxed.point)
                self.out.floor = min(self.out.floor, relaxed.bound)
                return
            decided = np.flatnonzero(relaxed.screened != state)
            point = relaxed.point
            if not len(decided):
                smaller, state, point = self.shrink(problem, state, point)
                if smaller is problem:
                    step.dual = problem.dual(point)  # for as long as it waits
                    self.out.nodes.append(Node(bound, problem, state, relaxed, step))
                    return
                problem = smaller
                continue
            self.out.floor = min(self.out.floor, self.cut)
            step.dual, state = problem.dual(point), relaxed.screened
            step.ins = problem.units[decided[state[decided] == IN]]
            step.outs = problem.units[decided[state[decided] == OUT]]
            step.children = (Step(),)
            step = step.children[0]
            if np.count_nonzero(state > 0) > problem.k:
                return  # no subset is left
            problem, state, point = self.shrink(problem, state, point)

    def shrink(self, problem: Any, state: States, point: Point) -> tuple[Any, States, Point]:
        """The problem without what is decided, if that is worth it."""
        inside, free = np.count_nonzero(state == IN), np.count_nonzero(state == FREE)
        if free < 0.8 * len(state) or (inside and len(state) <= 400):
            smaller, state, point = problem.restrict(state, point)
            if smaller.size < problem.size:
                problem = smaller.split(self.upper) if smaller.stale and smaller.size > smaller.k else smaller
        return problem, state, point

    def close(self, problem: Any, state: States, step: Step) -> bool:
        """Try the subsets one by one where few are left."""
        inside, free = np.flatnonzero(state > 0), np.flatnonzero(state == FREE)
        m = problem.k - len(inside)
        if len(free) > m and (m > 1 or (m == 1 and len(free) > problem.enough_to_try)):
            return False
        if len(free) <= m or m == 0:
            tried = [np.concatenate([inside, free]) if m > 0 else inside]
            if self.enumerates and len(free) < m:
                return True
        else:
            tried = self._with_one_more(problem, inside, free)
        for places in tried:
            value, lower = problem.exact(places)
            self.record(problem, value, lower, places)
        return True

    def _with_one_more(self, problem: Any, inside: Indices, free: Indices) -> list[Indices]:
        """The subsets with one more of the free units that are still to be tried."""
        known = (math.nan, inside, math.nan) if self.enumerates else problem.best_with_one_more(inside, free)
        value, places, lower = known
        if math.isnan(value):
            return [np.append(inside, j) for j in free]
        self.record(problem, value, lower, places)
        return []

    def record(self, problem: Any, value: float, lower: float, places: Indices) -> None:
        if not self.enumerates or value <= self.upper:
            self.out.found.append((value, np.concatenate([problem.fixed, problem.units[places]])))
        self.out.floor = min(self.out.floor, lower)
