"""Paths: the same problem over growing hulls, or one greedy run seen at each size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from pursuit._arrays import Small
from pursuit.atoms.base import Atoms
from pursuit.defaults import PATH_UPDATE
from pursuit.domains import conv, lin
from pursuit.objectives import Objective
from pursuit.refine import Refine
from pursuit.result import Result, State, Stop
from pursuit.solve import minimize
from pursuit.updates import Update


@dataclass(frozen=True)
class Path:
    """A table with a row per radius or size: columns radius (nan on a path of sizes), value, gap, atoms, score (nan
    where none was asked for), as arrays; `results` holds the full results, which may be indexed.

    `best` is the row with the lowest score, or the lowest value where there is no score.
    """

    radius: Small
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
    def best(self) -> int:
        return int(np.argmin(self.value if np.isnan(self.score).all() else self.score))

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in ("radius", "value", "gap", "atoms", "score")})


def path(
    f: Objective,
    A: Atoms,
    *,
    radii: Iterable[float] | None = None,
    atoms: Iterable[int] | None = None,
    update: Update | None = None,
    refine: Refine | Sequence[Refine] | None = None,
    stop: Stop = Stop(),
    score: Callable[[Result], float] | None = None,
) -> Path:
    """Minimise f over conv(r A) for growing radii r, each warm-started from the last; or over lin(A) at each size.

    Parameters
    ----------
    f : Objective
    A : Atoms
    radii : increasing positive numbers
        The hulls conv(r A). A must be symmetric or contain 0 in its hull, so that they grow.
    atoms : increasing integers >= 1
        The sizes at which one greedy run over lin(A) is seen.
    update : Update, optional
        For radii the default of `minimize`; for sizes FullyCorrective(), which is OMP for least squares.
    refine : refinement, or several, optional
        That of `minimize`.
    stop : Stop, optional
        For each radius; for sizes, what may end the run early.
    score : callable of a Result, optional
        A held-out score, the lower the better.

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
    """
    if (radii is None) == (atoms is None):
        raise ValueError("path needs either radii=... or atoms=...; give exactly one of them.")
    if update is None and atoms is not None:
        update = PATH_UPDATE
    options = {"update": update, "refine": refine, "stop": stop}
    if radii is not None:
        levels = _increasing("radii", [float(r) for r in radii], 0.0)
        return _table(levels, _by_radius(f, A, levels, options), score)
    sizes = _increasing("atoms", [float(k) for k in atoms or ()], 0.5)
    results = _by_size(f, A, {int(k) for k in sizes}, options)
    return _table([math.nan] * len(results), results, score)


def _increasing(name: str, values: list[float], least: float) -> list[float]:
    rising = all(a < b for a, b in pairwise(values))
    if not values or not rising or not values[0] > least or not math.isfinite(values[-1]):
        raise ValueError(
            f"{name} must be positive and increasing; it is {values[:4]}{'...' if len(values) > 4 else ''}."
        )
    return values


def _by_radius(f: Objective, A: Atoms, radii: list[float], options: dict[str, Any]) -> list[Result]:
    results: list[Result] = []
    for r in radii:
        results.append(minimize(f, conv(r * A), start=results[-1] if results else None, **options))
    return results


def _by_size(f: Objective, A: Atoms, sizes: set[int], options: dict[str, Any]) -> list[Result]:
    """One greedy run; a result is cut out of it whenever the number of active atoms is asked for."""
    snapshots: dict[int, dict[str, Any]] = {}

    def watch(state: State) -> bool:
        size = len(state.active)
        if size in sizes and size not in snapshots:
            snapshots[size] = state.known()
        return size >= max(sizes)

    run = minimize(f, lin(A), callback=watch, **options)
    return [replace(run, **known) for known in snapshots.values()]


def _table(radii: list[float], results: list[Result], score: Callable[[Result], float] | None) -> Path:
    return Path(
        np.array(radii),
        np.array([r.value for r in results]),
        np.array([r.gap for r in results]),
        np.array([float(len(r.atoms)) for r in results]),
        np.array([math.nan if score is None else float(score(r)) for r in results]),
        results,
    )
