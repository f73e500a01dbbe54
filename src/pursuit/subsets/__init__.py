"""The best few atoms, with a proof that no other few are better: `best`.

| module | what it holds |
|---|---|
| `given` | what the user gave, as columns in units |
| `prepared` | the problem at unit scale |
| `fits`, `exact` | minima over few units and bounds on them; in rational numbers where columns are nearly equal |
| `quadratic` | least squares: the split, the boxes, the compiled relaxation of a node, exchanges of columns |
| `smooth` | relaxations for other losses, groups and several outputs |
| `wide` | more columns than data: boxes that are proved first |
| `tree` | the search |
| `results` | what `best` returns, and how its proof is computed again |
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit.arguments import as_bool, as_int_or_nan, as_list, describe, number, real_array, require
from pursuit.arrays import Indices, host
from pursuit.atoms.base import Atoms
from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.paths import Path
from pursuit.run.stop import Status, Stop
from pursuit.subsets.given import Given
from pursuit.subsets.prepared import Prepared, prepare
from pursuit.subsets.quadratic import Quadratic
from pursuit.subsets.results import BestSubset, Ended
from pursuit.subsets.tree import Search
from pursuit.subsets.wide import begin_quadratic

__all__ = ["BestSubset", "best"]


def best(
    f: Objective,
    A: Atoms | Domain,
    atoms: int | Iterable[int],
    *,
    l2: float = 0.0,
    bound: Any = None,
    within: float = 0.0,
    stop: Stop = Stop(iterations=None),
    start: BestSubset | None = None,
    progress: bool = False,
) -> BestSubset | Path:
    """The best combination of at most k atoms, with a gap that is proved against all subsets.

    It minimises f(x) + l2/2 ||b||^2 over x = sum_j b_j a_j with at most k coefficients b_j that are not zero, by branch
    and bound. The search may end at any time: what it returns is the best subset so far, and `lower`, below which no
    subset has its value.

    Parameters
    ----------
    f : LeastSquares, Logistic, Poisson or Huber
    A : Dictionary, lin(A) or cone(A)
        A set of columns, the span of one, or its cone (weights >= 0). Of `Groups(...).through(X)` the best k groups are
        chosen, also with several outputs (`columns=`). Summands that do not count, such as an intercept, are added:
        `lin(A) + lin(B, counted=False)`.
    atoms : int, or several
        k. Of several a `Path` is returned, for which the work before the search is done once.
    l2 : float
        The ridge on the coefficients. It makes every proof easier.
    bound : float or (number of columns,) array, optional
        An assumption: |b_j| <= bound. The proof is then about such coefficients only, and the result says so.
    within : float
        Ask for all subsets of k atoms whose value is at most 1 + within times the best: `result.near`.
    stop : Stop
        By default a gap of 1e-6 of the value. `iterations` counts nodes.
    start : BestSubset, optional
        A result of the same problem, whose search goes on.
    progress : bool
        Show incumbent, gap and nodes, on terminals only.

    Returns
    -------
    BestSubset
        A Result. After Ctrl-C, too, with what is proved so far.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 40))
    >>> y = X[:, [3, 7, 11]] @ [1.0, -2.0, 0.5] + 0.3 * rng.standard_normal(100)
    >>> r = ps.best(ps.LeastSquares(y), ps.Dictionary(X), atoms=3)
    >>> np.flatnonzero(r.coef), r.gap <= 1e-6 * r.value, r.status.value
    (array([ 3,  7, 11]), True, 'the certified gap is within the tolerance')
    >>> r.check().lower <= r.value                                   # all leaves of the tree, computed again
    True
    """
    given = Given.read(f, A, _ridge(l2))
    if not isinstance(stop, Stop):
        raise TypeError(f"stop is {describe(stop)}; give rules such as Stop(seconds=60) or Stop(rgap=1e-4).")
    if not (start is None or isinstance(start, BestSubset)):
        raise TypeError(f"start is {describe(start)}; give a result of best, or leave it out.")
    require(0 <= number(within) < math.inf, "within", within, "a number of at least 0")
    sizes = as_list(atoms)
    for k in sizes:
        require(as_int_or_nan(k) >= 0, "atoms", k, "an integer of at least 0, or several")
    question = Question(given, _bound(bound, given), float(within), stop, as_bool(progress, "progress"))
    if not isinstance(atoms, Iterable):
        return question.answer(int(sizes[0]), start)
    if start is not None:
        raise ValueError("start is one result, but atoms are several sizes; continue each size alone.")
    results = [question.answer(k, None) for k in sorted({int(k) for k in sizes})]
    unknown, values = np.full(len(results), np.nan), np.array([r.value for r in results])
    counts = np.array([float(len(r.chosen)) for r in results])
    return Path(unknown, unknown, values, np.array([r.gap for r in results]), counts, unknown, list(results))


def _ridge(l2: Any) -> float:
    require(0 <= number(l2) < math.inf, "l2", l2, "a number of at least 0")
    return float(l2)


def _bound(bound: Any, given: Given) -> Any:
    if bound is None:
        return None
    sizes, n = np.asarray(host(real_array(bound, "bound")), dtype=np.float64), len(given.chosen.labels)
    if sizes.shape not in ((), (n,)):
        raise ValueError(f"bound has shape {sizes.shape}; give one number, or one for each of the {n} columns.")
    require(bool((sizes > 0).all()), "the least of bound", float(sizes.min()), "positive bounds")
    return sizes


@dataclass
class Question:
    """What is asked, for one k after the other: the last problem and its best subset serve the next."""

    given: Given
    bound: Any
    within: float
    stop: Stop
    progress: bool
    prepared: Prepared | None = None
    last: Indices | None = None

    def answer(self, k: int, start: BestSubset | None) -> BestSubset:
        """The best k atoms."""
        began = time.perf_counter()
        if start is None:
            prepared = (
                prepare(self.given, k, self.bound, self.within > 0)
                if self.prepared is None
                else self.prepared.of_size(k)
            )
            self.prepared = prepared
            search = self.begin(prepared, k)
        else:
            prepared, search = start.resumed(self.given, k, self.bound)
        clock = Clock(self.stop, prepared, began, [] if start is None else list(start.trace.rows), k)
        search.tolerance, search.allowance = self._tolerance(prepared), self.within * search.value
        status = Status.GAP
        try:
            with clock.bar(self.progress):
                if not search.planted:
                    search.forget()
                    search.planted = self.plant(prepared, search, clock)
                if search.planted:
                    search.run(clock.enough)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        clock.row(search)
        self.last = search.chosen
        gap = search.value - max(search.lower, prepared.lowest / prepared.scale)
        if status is Status.GAP and clock.status is None and gap > 10.0 * search.tolerance(search.value):
            status = Status.STALLED  # rounding, or columns that differ by little more, hide the rest
        ended = Ended(prepared, search, clock.status or status, time.perf_counter() - began, self.bound)
        return BestSubset.of(self.given, k, self.bound, ended, clock.rows)

    def begin(self, prepared: Prepared, k: int) -> Search:
        """A search whose incumbent comes from exchanges."""
        P = prepared.problem
        value, places = P.improve(np.zeros(0, np.intp), k)
        if self.last is not None:
            others = P.improve(np.flatnonzero(np.isin(P.units, self.last)), k)
            value, places = min((value, tuple(places)), (others[0], tuple(others[1])))
        return Search(value, P.units[np.array(places, dtype=np.intp)], self._tolerance(prepared), self.within * value)

    def plant(self, prepared: Prepared, search: Search, clock: Clock) -> bool:
        """Make the roots of the tree; whether there was time for all."""
        P = prepared.problem.split(search.upper)
        if isinstance(P, Quadratic) and P.size:
            return begin_quadratic(search, P, clock.enough)
        search.begin(P, np.zeros(P.size, dtype=np.int8), prepared.start)
        return True

    def _tolerance(self, prepared: Prepared) -> Any:
        """What was asked, less a hundredth for rounding, which the bound that is reported has subtracted."""
        gap, rgap = (self.stop.gap or 0.0) / prepared.scale, self.stop.rgap or 0.0
        return lambda value: max(0.99 * gap, 0.99 * rgap * abs(value), prepared.rounding)


class Clock:
    """Looks at a search between its batches: the rules, the trace, the progress bar."""

    def __init__(self, stop: Stop, prepared: Prepared, began: float, rows: list[tuple[float, ...]], k: int) -> None:
        self.stop, self.scale, self.rows, self.k = stop, prepared.scale, rows, k
        self.lowest = prepared.lowest
        self.before = rows[-1][-1] if rows else 0.0
        self.began = began
        self.status: Status | None = None
        self._bar: Any = None

    def bar(self, shown: bool) -> Any:
        """The progress bar, a context."""
        from tqdm.auto import tqdm  # slow to import

        self._bar = tqdm(disable=None if shown else True, desc="best subset", unit=" nodes", leave=False)
        return self._bar

    def row(self, search: Search) -> None:
        """A row of the trace, where something is new."""
        value, gap = self.scale * search.value, self.scale * (search.value - max(search.lower, self.lowest))
        seconds = self.before + time.perf_counter() - self.began
        if not self.rows or self.rows[-1][1:3] != (value, gap):
            self.rows.append((search.nodes, value, gap, self.k, search.relaxations, seconds))

    def enough(self, search: Search) -> bool:
        """Whether a rule says that the search ends."""
        self.row(search)
        self._bar.set_postfix_str(f"f = {self.rows[-1][1]:.6g}, gap = {self.rows[-1][2]:.2g}", refresh=False)
        self._bar.update(search.nodes - self._bar.n)
        stop = self.stop
        if stop.seconds is not None and time.perf_counter() - self.began >= stop.seconds:
            self.status = Status.SECONDS
        elif stop.iterations is not None and search.nodes >= stop.iterations:
            self.status = Status.ITERATIONS
        elif stop.value is not None and self.scale * search.value <= stop.value:
            self.status = Status.VALUE
        return self.status is not None
