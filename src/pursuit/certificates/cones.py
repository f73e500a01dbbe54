"""Dual points without a negative product with an atom of a cone: the second step of a bound by the conjugate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pursuit.arrays import Array, Space, flat, host
from pursuit.atoms.base import Atoms
from pursuit.certificates.spans import Spans
from pursuit.linalg.rounding import product_error
from pursuit.state import Stateful
from pursuit.weights import WeightProblem

MAX_ATOMS = 1024
"""Atoms of the spans, and of the cones, up to which they are listed."""

INSIDE = 1e-6
"""Relative lengths and products below which a point may be inside the dual cone by rounding only."""


def columns_of(space: Space, sets: Sequence[Atoms]) -> Array:
    """All atoms of the sets, flattened, one per column."""
    return space.xp.stack([flat(A.atom(i).dense(space)) for A in sets for i in range(A.size or 0)], axis=1)


def _unchanged(v: Array) -> Array:
    return v


@dataclass(eq=False)
class Cones(Stateful):
    """The cones of some sets, beside spans. `ask` gives a lower bound on <u, a> over the atoms of all sets."""

    space: Space
    sets: Sequence[Atoms]
    spans: Spans | None
    ask: Callable[[Array], float]
    interiors: list[Array | None] = field(default_factory=list, init=False)
    """The point inside the dual cones, once it was looked for."""

    def __post_init__(self) -> None:
        self.listed = all(A.size is not None and A.size <= MAX_ATOMS for A in self.sets)

    @cached_property
    def _atoms(self) -> Array:
        """The listed atoms at unit length."""
        columns = columns_of(self.space, self.sets)
        norms = np.array([self.space.norm(columns[:, j]) for j in range(columns.shape[1])])
        places = np.flatnonzero(norms)
        return self.space.xp.stack([columns[:, int(j)] / float(norms[j]) for j in places], axis=1)

    def smallest(self, u: Array) -> float:
        """A lower bound on <u, a> over the atoms, at unit length where they are listed."""
        return float(self.space.xp.min(self._atoms.T @ flat(u))) if self.listed else self.ask(u)

    @property
    def interior(self) -> Array | None:
        """v; None where none is known."""
        if not self.interiors:
            self.interiors = [self._find_interior()]
        return self.interiors[0]

    def enter(self, u: Array, smallest: float | None) -> Array | None:
        """u + eps v with an eps for which no product is below its own rounding error, twice; None where no v is known.
        `smallest` is the smallest product with u, where that is known."""
        if self.interior is None:
            return None
        missing = 2.0 * self.error(u) - (self.smallest(u) if smallest is None or self.listed else smallest)
        return u + max(0.0, missing) * self.interior if missing < math.inf else None

    def error(self, u: Array) -> float:
        """The rounding error of the products with u."""
        longest = 1.0 if self.listed else max(A.radius or math.inf for A in self.sets)
        return 2.0 * product_error(self.space) * self.space.norm(u) * longest

    def _find_interior(self) -> Array | None:
        """v, orthogonal to the spans, with <v, a> >= ||a|| for listed atoms and <v, a> >= 1 for others; or None."""
        shape = self.space.shape
        project = _unchanged if self.spans is None else self.spans.project
        if self.listed:  # the point of smallest norm in the hull of the atoms has the largest smallest product
            apart, start = project(self._atoms), np.eye(1, self._atoms.shape[1])[0]
            small = WeightProblem.of(host(apart.T @ apart), nonnegative=True, totals=[1.0])
            v = project(apart @ self.space.put(small.solve(np.zeros(len(start)), start)))
            candidates = [(v, 1.0)]
        else:
            tries = [np.ones(shape), *([np.eye(shape[0])] if len(shape) == 2 and shape[0] == shape[1] else [])]
            vectors = [flat(self.space.put(v)) for v in tries]
            candidates = [(project(v), self.space.norm(v)) for v in vectors]
        for vector, unit in candidates:
            v = self.space.xp.reshape(vector, shape)
            length, product = self.space.norm(v), self.smallest(v)
            if length > INSIDE * unit and product > INSIDE * length:
                return v / product
        return None
