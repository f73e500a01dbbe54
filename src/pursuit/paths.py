"""Paths: one problem over growing hulls, at falling penalties, or one greedy run at increasing numbers of atoms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from pursuit.arguments import as_int_or_nan, as_list, check_function, describe, is_number, number, require_kind
from pursuit.arrays import Small
from pursuit.atoms.base import Atoms
from pursuit.domains import Domain, Part, conv, lin, penalty
from pursuit.domains.parts import Penalty
from pursuit.objectives import Objective
from pursuit.refine import Refine
from pursuit.run.method import PATH_UPDATE
from pursuit.run.result import Result, State, result_fields
from pursuit.run.stop import Status, Stop
from pursuit.run.trace import MAX_SHOWN_ROWS, html_table
from pursuit.solve import minimize
from pursuit.updates import Update


@dataclass(frozen=True, repr=False)
class Path:
    """A table with one row per radius, penalty or number of atoms. It prints as such.

    Its columns are arrays: `radius` and `penalty` (nan on other paths), `value`, `gap`, `atoms` and `score` (nan
    without a score). `results` are the full results; `path[i]` is the i-th.

    >>> import pursuit as ps
    >>> path = ps.path(ps.LeastSquares([3.0, 1.0]), ps.SignedBasis(2), radii=[1.0, 2.0, 4.0])
    >>> path.radius, path.value, path[-1].x
    (array([1., 2., 4.]), array([2.5, 1. , 0. ]), array([3., 1.]))
    """

    radius: Small
    penalty: Small
    value: Small
    gap: Small
    atoms: Small
    score: Small
    results: list[Result]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, i: int) -> Result:
        return self.results[i]

    @property
    def _columns(self) -> dict[str, Small]:
        return {name: value for name, value in vars(self).items() if name != "results"}

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """The names of the columns that have numbers, and the texts of the rows."""
        shown = {name: column for name, column in self._columns.items() if not np.isnan(column).all()}
        table = zip(*shown.values(), strict=True)
        return ["", *shown], [[str(i), *(f"{number:.6g}" for number in row)] for i, row in enumerate(table)]

    def __repr__(self) -> str:
        names, rows = self._cells()
        lines = [f"{i:>5}" + "".join(f"{cell:>14}" for cell in cells) for i, *cells in [names, *rows]]
        if len(self) > MAX_SHOWN_ROWS:
            lines[1 + MAX_SHOWN_ROWS // 2 : -MAX_SHOWN_ROWS // 2] = ["  ..."]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names, rows = self._cells()
        return html_table(rows, names)

    @property
    def best(self) -> int:
        """The index of the row with the lowest score, or with the lowest value where there is no score."""
        return int(np.argmin(self.value if np.isnan(self.score).all() else self.score))

    def along(self) -> tuple[Small, str]:
        """The radii, penalties or numbers of atoms, and what they are, for figures."""
        named = [(self.radius, "radius"), (self.penalty, "penalty"), (self.atoms, "atoms")]
        return next((values, name) for values, name in named if not np.isnan(values).all())

    def coefficients(self) -> Small:
        """A row for each result, a column for each coefficient of its first summand, for figures."""
        rows = [r.coef[0] if r.coef is not None and len(r.domain.parts) > 1 else r.coef for r in self.results]
        if not all(isinstance(coef, np.ndarray) for coef in rows):
            raise TypeError("path has atoms without coefficients of columns; give column='value'.")
        return np.stack([np.linalg.norm(c, axis=0) if c.ndim == 2 and len(c) > 1 else c.ravel() for c in rows])

    def report(self, path: object, *, names: object = None, title: str | None = None) -> FilePath:
        """Write the report of the best row as `Result.report` does, with figures of the path.

        >>> import tempfile, pursuit as ps
        >>> found = ps.path(ps.LeastSquares([3.0, 1.0]), ps.SignedBasis(2), atoms=[1, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = found.report(f"{folder}/report.html")
        ...     "2 sizes; this is number 1." in page.read_text(encoding="utf-8")
        True
        """
        from pursuit.report import write_result_report

        return write_result_report(path, self[self.best], names=names, title=title, along=self)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame(self._columns)


def path(
    f: Objective,
    A: Atoms | Domain,
    *,
    radii: Iterable[float] | None = None,
    penalties: Iterable[float] | None = None,
    atoms: Iterable[int] | None = None,
    update: Update | None = None,
    refine: Refine | Sequence[Refine] | None = None,
    stop: Stop = Stop(),
    score: Callable[[Result], float] | None = None,
) -> Path:
    """Minimise f over conv(r A) for increasing radii r, with penalty(c A) for falling penalties c, or greedily over
    lin(A) at increasing numbers of atoms.

    Each run starts at the last result or, over hulls that need not have 0, at its multiple in the next hull. Over the
    span there is one run, from which the results are taken.

    Parameters
    ----------
    f : Objective
    A : Atoms, or a domain
        A stands for `conv(A)` on a path of radii, `penalty(A)` on one of penalties, `lin(A)` on one of sizes. A domain
        may have more summands: `conv(A) + lin(B)`, whose hulls grow with the radius while lin(B) stays,
        `penalty(A) + lin(B)`, or `lin(A) + lin(B, counted=False)` and `cone(A)` on a path of sizes.
    radii : increasing positive numbers
        The hulls conv(r A) grow with r where A is symmetric or has 0 in its hull.
    penalties : falling positive numbers
        Factors of the prices of penalties.
    atoms : increasing integers >= 1
        The numbers of counted active atoms at which results are taken from one greedy run.
    update, refine
        As for `minimize`; the default for sizes is FullyCorrective(), which is OMP for least squares.
    stop : Stop, optional
        For each radius; on a path of sizes, rules that may end the run early.
    score : callable of a Result, optional
        A held-out score; lower is better.

    Examples
    --------
    >>> import pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 100))
    >>> y = X[:, :3] @ [3.0, -2.0, 1.0] + 0.1 * rng.standard_normal(60)
    >>> by_size = ps.path(ps.LeastSquares(y), ps.Dictionary(X), atoms=range(1, 6))
    >>> [int(k) for k in by_size.atoms], sorted(a.source for a in by_size[2].atoms)
    ([1, 2, 3, 4, 5], [0, 1, 2])
    >>> by_radius = ps.path(ps.LeastSquares(y), ps.Dictionary(X, signed=True), radii=[1.0, 3.0, 6.0])
    >>> bool((by_radius.gap <= 1e-6 * by_radius.value).all())
    True
    >>> by_penalty = ps.path(ps.LeastSquares(y), ps.Dictionary(X, signed=True), penalties=[100.0, 50.0, 10.0])
    >>> [int(k) for k in by_penalty.atoms]
    [2, 2, 3]
    >>> by_radius
                 radius         value           gap         atoms
        0             1       ...
    """
    if sum(given is not None for given in (radii, penalties, atoms)) != 1:
        raise ValueError("path needs radii=..., penalties=... or atoms=...; give exactly one of them.")
    require_kind(A, Atoms | Domain, "A", "a set of atoms, or a domain")
    meant = conv if radii is not None else penalty if penalties is not None else lin
    domain = A if isinstance(A, Domain) else meant(A)
    hulls = any(part.compact for part in domain.parts)
    if radii is not None and not hulls:
        raise ValueError(f"A is {domain!r}, in which nothing grows with the radius; give a hull, penalties= or atoms=.")
    if penalties is not None and not any(isinstance(part, Penalty) for part in domain.parts):
        raise ValueError(f"A is {domain!r}, in which nothing has a price; give a set, or a domain with penalty(A).")
    if atoms is not None and hulls:
        raise ValueError(f"A is {domain!r}, in which a size says little; give spans or cones, or radii=.")
    if score is not None:
        check_function(score, "score", "a Result")
    run = partial(minimize, f, update=update, refine=refine, stop=stop)
    if radii is not None:
        levels = _monotone("radii", radii, number)
        return _table(_by_level(run, domain, levels, _grown, _in_next_hull), score, radius=levels)
    if penalties is not None:
        levels = _monotone("penalties", penalties, number)
        return _table(_by_level(run, domain, levels, _priced, lambda last, _: last), score, penalty=levels)
    run = run if update is not None else partial(run, update=PATH_UPDATE)
    return _table(_by_size(partial(run, domain), {int(k) for k in _monotone("atoms", atoms, as_int_or_nan)}), score)


def _monotone(name: str, given: object, read: Callable[[Any], float]) -> list[float]:
    """Increasing levels, or falling penalties."""
    values = as_list(given)
    levels = [read(value) for value in values] if isinstance(given, Iterable) else []
    order = levels[::-1] if name == "penalties" else levels
    if not levels or not all(a < b for a, b in pairwise([0.0, *order, math.inf])):
        kind = f"{'falling' if order is not levels else 'increasing'} {'integers' if name == 'atoms' else 'numbers'}"
        shown = describe(given) if len(values) == 1 else f"{describe(values[:4])}{'...' if len(values) > 4 else ''}"
        raise ValueError(f"{name} must be positive and {kind}; it is {shown}.")
    return levels


def _by_level(
    run: Callable[..., Result],
    domain: Domain,
    levels: list[float],
    at: Callable[[Part, float], Part],
    moved: Callable[[Result, float], Result | None],
) -> list[Result]:
    """A result for each level, with the summands that belong to it, from the last result as it is moved there."""
    results: list[Result] = []
    for before, level in pairwise([0.0, *levels]):
        first, *others = (at(part, level) for part in domain.parts)
        start = moved(results[-1], level / before) if results else None
        results.append(run(sum(others, first), start=start))
        if results[-1].status is Status.INTERRUPTED:
            break
    return results


def _grown(part: Part, r: float) -> Part:
    return conv(r * part.A) if part.compact else part


def _priced(part: Part, c: float) -> Part:
    return penalty(c * part.price * part.A) if isinstance(part, Penalty) else part


def _in_next_hull(result: Result, growth: float) -> Result | None:
    """The result, in which the atoms of hulls that are not symmetric, and may not have 0, grow with the radius; None
    where f is infinite there."""
    grows = [part.compact and not part.A.symmetric for part in result.domain.parts]
    if not any(grows):
        return result
    atoms = [a.scaled(growth) if grows[b] else a for a, b in zip(result.atoms, result.blocks, strict=True)]
    x = sum(w * a.vector for w, a in zip(result.weights, atoms, strict=True))
    return replace(result, x=x, atoms=atoms) if math.isfinite(result.f.value(x)) else None


def _by_size(run: Callable[..., Result], sizes: set[int]) -> list[Result]:
    """The results of one greedy run at these numbers of active atoms."""
    snapshots: dict[int, dict[str, Any]] = {}

    def take_results(state: State) -> bool:
        size = state.active.count
        if size in sizes and size not in snapshots:
            snapshots[size] = result_fields(state)
        return size >= max(sizes)

    last = run(callback=take_results)
    if last.status is Status.INTERRUPTED and not snapshots:  # there is nothing to return
        raise KeyboardInterrupt
    return [replace(last, **fields) for fields in snapshots.values()]


def _scored(score: Callable[[Result], float], result: Result) -> float:
    value = score(result)
    if not is_number(value):
        raise TypeError(f"score returned {describe(value)}; return one real number.")
    return float(value)


def _table(results: list[Result], score: Callable[[Result], float] | None, **levels: list[float]) -> Path:
    radii, prices = (levels.get(name, [math.nan] * len(results)) for name in ("radius", "penalty"))
    return Path(
        np.array(radii[: len(results)]),
        np.array(prices[: len(results)]),
        np.array([r.value for r in results]),
        np.array([r.gap for r in results]),
        np.array([float(sum(r.domain.parts[b].counted for b in r.blocks)) for r in results]),
        np.array([math.nan if score is None else _scored(score, r) for r in results]),
        results,
    )
