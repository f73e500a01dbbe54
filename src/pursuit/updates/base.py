"""The contract of an update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pursuit._arrays import Array, Space
from pursuit.active import ActiveSet
from pursuit.domains import Answer, Domain, Part
from pursuit.objectives import Objective


@dataclass(frozen=True, slots=True)
class Now:
    """What the loop knows when it asks for an update: one answer and one <grad, x_b> per summand of the domain."""

    iteration: int
    value: float
    grad: Array
    point_dots: list[float]
    answers: list[Answer]

    def enter(self, active: ActiveSet, most: int) -> list[int]:
        """Admit the oracles' best atoms to S, at most so many of each; their places."""
        return [
            active.enter(atom, block)[0] for block, answer in enumerate(self.answers) for atom in answer.atoms[:most]
        ]


Advance = Callable[[Now, ActiveSet], None]
"""Changes the active set: atoms, weights and point."""


class Update(Protocol):
    """`several`: how many atoms of one oracle call it can use; `blends`: whether it moves weight among atoms of S as
    well as to new ones; `descends`: whether f never increases."""

    @property
    def several(self) -> int: ...
    @property
    def blends(self) -> bool: ...
    @property
    def descends(self) -> bool: ...
    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance: ...


def single(domain: Domain, update: object) -> Part:
    """The domain as a plain one, for updates that walk along one direction."""
    if len(domain.parts) > 1:
        name = type(update).__name__
        raise ValueError(
            f"{name} walks along one direction; over a sum of domains use FullyCorrective or NormCorrective."
        )
    return domain.parts[0]
