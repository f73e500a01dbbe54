"""What `best` returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from pursuit.arrays import Indices, Small
from pursuit.promises import Promise
from pursuit.run.result import Check, Result
from pursuit.run.stop import Status
from pursuit.run.trace import Trace
from pursuit.subsets.given import Columns, Given
from pursuit.subsets.prepared import Prepared
from pursuit.subsets.replay import replay
from pursuit.subsets.tree import Search
from pursuit.updates import Update


@dataclass(frozen=True)
class BranchAndBound(Update):
    """How `best` found its result. `assuming` is the user's bound on the sizes of coefficients, None where there is
    none.

    >>> import pursuit as ps
    >>> ps.best(ps.LeastSquares([3.0, 1.0]), ps.SignedBasis(2), atoms=1).update
    BranchAndBound(assuming=None)
    """

    assuming: float | None = None
    cites = ()


@dataclass(frozen=True)
class Ended:
    """A search that has ended."""

    prepared: Prepared
    search: Search
    status: Status
    seconds: float
    bound: Any


@dataclass(frozen=True, eq=False)
class BestSubset(Result):
    """The best few atoms, as `best` returns them: a Result whose `gap` is proved against all subsets of k atoms.

    `chosen` are the numbers of the atoms (or groups). `value` includes the ridge. The columns of `trace` are those of
    every run, with the nodes as iterations and the relaxations as oracle calls. `near` are all subsets whose value is
    at most 1 + within times the best, with their values, where the search ended by itself; `assumption` says under
    which assumption the proof holds.

    >>> import numpy as np, pursuit as ps
    >>> r = ps.best(ps.LeastSquares([3.0, 1.0, 2.9]), ps.SignedBasis(3), atoms=1, within=0.2)
    >>> r.chosen, r.value, [(s.tolist(), round(v, 3)) for s, v in r.near]
    (array([0]), 4.705, [([0], 4.705), ([2], 5.0)])
    """

    k: int = 0
    l2: float = 0.0
    chosen: Indices = field(default_factory=lambda: np.zeros(0, np.intp))
    near: Sequence[tuple[Indices, float]] = ()
    ended: Ended | None = None
    asked: Given | None = None
    _subject = "combination of so few atoms"
    _grounds = (
        "The bound is that of the leaves of a search tree, which cover all subsets. <code>result.check()</code> "
        "computes them anew."
    )

    @classmethod
    def of(cls, given: Given, k: int, bound: Any, ended: Ended, rows: list[tuple[float, ...]]) -> BestSubset:
        """The result of a search."""
        prepared, search = ended.prepared, ended.search
        b, c = prepared.coefficients(search.chosen)
        atoms, weights, blocks = _atoms(given, b, c)
        x = np.reshape(given.chosen.matrix @ b + given.uncounted @ c, given.loss.y.shape)
        value = given.loss.value(x) + _ridge(given.l2, b)
        lower = min(value, prepared.scale * max(search.lower, prepared.lowest))
        near = sorted(
            ((v * prepared.scale, s) for s, v in search.near.items() if v <= search.upper), key=lambda e: e[0]
        )
        assuming = None if bound is None else float(np.max(bound))
        x = given.f.space.put(x)
        return cls(
            f=given.f, domain=given.domain, update=BranchAndBound(assuming), oracle=None, refine=None,
            x=x, value=value, gap=value - lower, lower=lower, status=ended.status,
            iterations=search.nodes, oracle_calls=search.relaxations, cached=0, seconds=ended.seconds,
            weights=weights, atoms=atoms, blocks=blocks, answers=[], trace=Trace(rows), start=x, refused=0,
            stationarity=math.inf, assumed=(), k=k, l2=given.l2, chosen=search.chosen,
            near=[(np.array(s, dtype=np.intp), v) for v, s in near], ended=ended, asked=given,
        )  # fmt: skip

    @property
    def bound(self) -> Any:
        """The bound on coefficients that the proof assumes; infinite where there is none."""
        return math.inf if self.ended is None or self.ended.bound is None else self.ended.bound

    @property
    def assumption(self) -> str | None:
        """What the proof assumes, in words; None: nothing."""
        bound = self.update.assuming
        return None if bound is None else f"no coefficient is larger than the bound given, {bound:g}"

    def check(self) -> Check:
        """Compute the proof again: every leaf of the tree, in the coordinates of the whole problem, and that the leaves
        cover all subsets."""
        assert self.ended is not None and self.asked is not None
        prepared = self.ended.prepared
        lower = prepared.scale * max(replay(prepared, self.ended.search), prepared.lowest)
        b, c = prepared.coefficients(self.chosen)
        x = np.reshape(self.asked.chosen.matrix @ b + self.asked.uncounted @ c, self.asked.loss.y.shape)
        value = self.asked.loss.value(x) + _ridge(self.l2, b)
        error = float(np.linalg.norm(x - self.x)) / (float(np.linalg.norm(x)) or 1.0)
        feasible = len(self.chosen) <= self.k and self.domain.admits(self.weights, self.blocks)
        return Check(value, max(value - lower, 0.0), min(lower, value), error, feasible)

    def resumed(self, given: Given, k: int, bound: Any) -> tuple[Prepared, Search]:
        """The search of this result, for a question that must be the same."""
        asked = self.asked
        assert asked is not None and self.ended is not None
        f, g = asked.loss, given.loss
        same = type(f) is type(g) and getattr(f, "width", None) == getattr(g, "width", None)
        same = same and (k, given.l2, given.positive) == (self.k, self.l2, asked.positive)
        pairs = [(f.y, g.y), (f.weights, g.weights), (asked.chosen.matrix, given.chosen.matrix)]
        pairs += [(asked.uncounted, given.uncounted), (asked.chosen.labels, given.chosen.labels)]
        pairs.append((np.asarray(math.inf if bound is None else bound), np.asarray(self.bound)))
        if not same or not all(np.array_equal(a, b) for a, b in pairs):
            raise ValueError("start is the result of another problem; give the same f, A, atoms, l2 and bound.")
        return self.ended.prepared, self.ended.search

    def save(self, path: Any) -> NoReturn:
        """Refused: the tree of a search is not written to files."""
        raise TypeError("a search for the best subset is kept in its result, not in files; continue it by start=.")

    @cached_property
    def certificate(self) -> NoReturn:
        """Refused: no file holds the tree."""
        raise TypeError("the proof of a best subset is the tree of its search; check() computes it again.")

    def promise(self, **constants: object) -> Promise:
        """No theorem bounds the number of nodes: only that the incumbents get no worse."""
        first = float(self.trace.value[0]) - self.lower
        return Promise(np.full(len(self.trace), first), first, [])

    def _lines(self) -> list[tuple[str, str]]:
        names = {"iterations": "nodes", "oracle calls": "relaxations"}
        lines = [(names.get(name, name), text) for name, text in super()._lines()]
        return lines if self.assumption is None else [*lines, ("assuming", self.assumption)]


def _ridge(l2: float, b: Small) -> float:
    """l2 |b|^2 / 2, in which b may be so large that its square is not a number."""
    size = math.sqrt(l2) * b
    return 0.5 * float(size @ size)


def _atoms(given: Given, b: Small, c: Small) -> tuple[list[Any], Small, Indices]:
    atoms: list[Any] = []
    weights: list[float] = []
    blocks: list[int] = []
    first = 0
    for place, part in enumerate(given.domain.parts):
        columns = given.chosen if place == given.place else Columns.of(part.A)
        values = b if place == given.place else c[first : first + len(columns.labels)]
        first += 0 if place == given.place else len(columns.labels)
        for unit in np.unique(columns.labels[values != 0]):
            new, sizes = columns.atoms(int(unit), values[columns.labels == unit])
            atoms, weights, blocks = atoms + new, weights + sizes, blocks + [place] * len(new)
    return atoms, np.array(weights), np.array(blocks, dtype=np.intp)
