"""The trace of a run: one row per iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, ClassVar

import numpy as np

COUNTS = ("iteration", "atoms", "oracle_calls", "sweep", "used")
"""Columns of whole numbers."""

MAX_SHOWN_ROWS = 20
"""Of a longer table, rows in the middle are left out where it is printed."""


def html_table(rows: Sequence[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """A table of texts for a notebook, without its middle where it is long.

    >>> html_table([["a<b", "1"]])
    '<table><tr><td>a&lt;b</td><td>1</td></tr></table>'
    """
    rows, half = list(rows), MAX_SHOWN_ROWS // 2
    if len(rows) > MAX_SHOWN_ROWS:
        rows = [*rows[:half], ["..."] * len(rows[0]), *rows[-half:]]
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in ([head] if head else []) + lines) + "</table>"


@dataclass(eq=False, repr=False)
class Trace:
    """One row per iteration, as arrays: iteration, value, gap, atoms, oracle_calls, seconds; delta, the quality that
    the oracle proved for its answer (of a sum, the smallest; 0: none); stationarity, the Frank-Wolfe gap; step, the
    length of the step that led there, of updates along one direction; values and gradients, how often a `Smooth` has
    been asked for them. NaN where there is no number.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective())
    >>> r.trace.value, r.trace.atoms
    (array([5. , 0.5, 0. ]), array([0, 1, 2]))
    >>> r.trace
    Trace(3 iterations, value 5 to 0, gap 5 to 0, 3 oracle calls)
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "iteration", "value", "gap", "atoms", "oracle_calls", "seconds", "delta", "stationarity", "step", "values",
        "gradients",
    )  # fmt: skip

    rows: Sequence[tuple[float, ...]]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        if not self.rows:
            return "Trace(0 iterations)"
        (_, value, gap, *_), (_, end, end_gap, _, calls, *_) = self.rows[0], self.rows[-1]
        values = f"value {value:.6g} to {end:.6g}, gap {gap:.3g} to {end_gap:.3g}"
        return f"Trace({len(self)} iterations, {values}, {calls} oracle calls)"

    def __getattr__(self, name: str) -> Any:
        if name not in self.COLUMNS:
            raise AttributeError(f"a trace has the columns {', '.join(self.COLUMNS)}; not {name!r}.")
        dtype = np.int64 if name in COUNTS else np.float64
        place = self.COLUMNS.index(name)
        return np.array([row[place] if place < len(row) else np.nan for row in self.rows], dtype=dtype)

    def to_pandas(self) -> Any:
        """The trace as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self.COLUMNS})

    def plot(self, ax: Any = None) -> Any:
        """Certified gap against oracle calls on log axes; returns the matplotlib axes."""
        from pursuit.plots import plot_traces

        return plot_traces(self, ax=ax)

    def _repr_html_(self) -> str:
        rows = [[f"{number:.6g}" for number in row] for row in self.rows]
        return html_table(rows, [name.replace("_", " ") for name in self.COLUMNS])
