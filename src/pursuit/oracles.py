"""Who answers: exact and approximate linear minimisation oracles. An answer carries its quality delta.

The paper has two notions of quality (its equations for Algorithms 3 and 4): relative to x over a hull,
<g, z~ - x> <= delta min_z <g, z - x>; relative to 0 over a span, <g, z~> <= delta min_z <g, z>.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pursuit._arrays import Array, Space
from pursuit.active import ActiveSet
from pursuit.atoms.base import as_atom
from pursuit.atoms.frames import Atom
from pursuit.domains import Answer, Hull, Part

Ask = Callable[[Array, ActiveSet, float], Answer]
"""(grad, active set, <grad, x>) -> Answer."""


class Oracle(Protocol):
    """The contract: `begin` gives the function that answers for one summand of the domain during one run."""

    def begin(self, part: Part, space: Space, several: int) -> Ask: ...


@dataclass(frozen=True)
class Exact:
    """Asks the set itself: delta = 1."""

    def begin(self, part: Part, space: Space, several: int) -> Ask:
        def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
            atoms = [as_atom(a) for a in part.asked.best(grad, several)]
            return Answer(atoms, atoms[0].dot(space, grad), 1.0)

        return ask


@dataclass(frozen=True)
class Approximate:
    """An oracle that is only as good as delta: the paper's approximate LMO, for experiments and for tests.

    Parameters
    ----------
    delta : float in (0, 1]
    worst : bool
        True: the adversary, which returns the worst atom that delta still allows. False: a random allowed one.
    seed : int
        For the random choice.

    Notes
    -----
    Sets that list their atoms are searched. Over the hull of a convex set (balls, boxes), the point x + delta (z - x)
    is an atom of exactly this quality. Other sets raise TypeError.
    """

    delta: float
    worst: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.delta <= 1:
            raise ValueError(f"delta is {self.delta}; the quality of an oracle lies in (0, 1].")

    def begin(self, part: Part, space: Space, several: int) -> Ask:
        asked, rng = part.asked, np.random.default_rng(self.seed)
        if asked.size is None and not (asked.convex and isinstance(part, Hull)):
            raise TypeError(f"{asked!r} cannot list its atoms, so Approximate cannot choose among them; use Exact().")

        def degrade(grad: Array, active: ActiveSet) -> Atom:
            quality = self.delta if self.worst else float(rng.uniform(self.delta, 1.0))
            z = as_atom(asked.lmo(grad)).dense(space)
            return Atom(active.x + quality * (z - active.x))

        def choose(grad: Array, gx: float) -> Atom:
            scores = asked.scores(grad)
            origin, best = part.origin(gx), float(scores.min())
            allowed = np.flatnonzero(scores - origin <= self.delta * min(best - origin, 0.0))
            if not len(allowed):  # nothing improves: only the best will do
                allowed = np.flatnonzero(scores == best)
            i = allowed[scores[allowed].argmax()] if self.worst else rng.choice(allowed)
            return asked.atom(int(i))

        def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
            atom = degrade(grad, active) if asked.size is None else choose(grad, gx)
            return Answer([atom], atom.dot(space, grad), self.delta)

        return ask
