"""Events: where which template stands in a recording, with which weight."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Events:
    """A table of events, a row for each: its template, its position, its weight, and the score it had when it entered.

    Position t means the samples t to t + width - 1; in a picture positions have two entries, row and column. `score` is
    what the event lowered the objective by when it was found (of the Lasso, its correlation).

    >>> import numpy as np
    >>> e = Events(np.array([1, 0]), np.array([7, 2]), np.array([0.5, 2.0]), np.array([0.2, 4.0]))
    >>> e[e.weight > 1]
    Events(1 event)
    >>> e.sorted().position
    array([2, 7])
    """

    template: Array
    position: Array
    weight: Array
    score: Array
    unverified: Array = field(default_factory=lambda: np.empty(0, np.int64))
    """Positions where two blocks meet whose events near there differ: one block could have given another answer."""
    gap: float = np.inf
    """Of the Lasso: a proved upper bound on the objective minus its minimum."""

    @classmethod
    def empty(cls, axes: int) -> Events:
        """No events; positions have this many axes."""
        position = np.empty((0, 2) if axes == 2 else 0, np.int64)
        return cls(np.empty(0, np.int64), position, np.empty(0), np.empty(0))

    @classmethod
    def joined(cls, tables: list[Events]) -> Events:
        """The rows of all tables, of which there is at least one."""
        columns = zip(*((t.template, t.position, t.weight, t.score) for t in tables), strict=True)
        template, position, weight, score = map(np.concatenate, columns)
        return cls(template, position, weight, score)

    def __len__(self) -> int:
        return len(self.template)

    def __getitem__(self, which: Any) -> Events:
        """The rows of a mask, a slice or a list of places."""
        rows = (np.atleast_1d(column[which]) for column in (self.template, self.weight, self.score))
        template, weight, score = rows
        position = self.position[which].reshape(len(template), *self.position.shape[1:])
        return replace(self, template=template, position=position, weight=weight, score=score)

    @property
    def time(self) -> Array:
        """The position along the last axis."""
        return self.position if self.position.ndim == 1 else self.position[:, 1]

    @property
    def row(self) -> Array:
        """The position along the rows of a picture; else 0."""
        return np.zeros(len(self), np.int64) if self.position.ndim == 1 else self.position[:, 0]

    def shifted(self, by: int) -> Events:
        """The same events so many positions later."""
        offset = by if self.position.ndim == 1 else np.array([0, by])
        return replace(self, position=self.position + offset)

    def sorted(self) -> Events:
        """In the order of positions, then of templates; events at one place in the order in which they were found."""
        return self[np.lexsort((self.template, self.row, self.time))]

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        import pandas as pd

        places = (
            {"position": self.position}
            if self.position.ndim == 1
            else dict(zip(("row", "column"), self.position.T, strict=True))
        )
        return pd.DataFrame({"template": self.template, **places, "weight": self.weight, "score": self.score})

    def __repr__(self) -> str:
        n = len(self)
        gap = "" if np.isinf(self.gap) else f", gap {self.gap:.3g}"
        seams = f", {len(self.unverified)} seams not verified" if len(self.unverified) else ""
        return f"Events({n} event{'' if n == 1 else 's'}{gap}{seams})"
