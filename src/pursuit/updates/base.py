"""The contract of an update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Space
from pursuit.domains import Answer, Domain, Part
from pursuit.objectives import Objective
from pursuit.steps import Decrease


@dataclass(slots=True)
class Now:
    """What an update sees of iteration t: f(x_t), its gradient, and the oracle's answer for each summand."""

    iteration: int
    value: float
    grad: Array
    answers: list[Answer]


Advance = Callable[[Now, ActiveSet], None]
"""An update for one run: changes the active set, its atoms, weights and point."""


class Update:
    """The contract of an update: `begin` returns the function that changes the active set in one run.

    `descends` says whether f never increases, `several` how many atoms of one oracle call it can use, `blends` whether
    it also moves weight among active atoms, and `faces` whether it needs the worst vertex of the face that has x, too,
    as the second atom of an answer. `cites` names the works to cite for it: keys of references.bib, or BibTeX entries.

    >>> import pursuit as ps
    >>> class Halfway(ps.Update):
    ...     descends = False
    ...     def begin(self, f, domain, space):
    ...         def advance(now, active):                         # half of all weight goes to the oracle's atom
    ...             i, _ = active.enter(now.answers[0].atoms[0])
    ...             active.weights *= 0.5
    ...             active.weights[i] += 0.5
    ...             active.refresh()
    ...         return advance
    >>> f, domain = ps.LeastSquares([0.6, 0.4]), ps.conv(ps.Simplex(2))
    >>> ps.minimize(f, domain, Halfway(), stop=ps.Stop(iterations=2)).x
    array([0.75, 0.25])
    """

    cites: ClassVar[tuple[str, ...]] = ()

    several: int = 1
    blends: bool = False
    faces: bool = False
    descends: bool = True

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        """The update for one run: a function of (now, active), or a `Stateful` object with this call. Raises a
        ValueError or TypeError for a problem that it does not serve."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(f, domain, space).")

    def decrease(self, f: Objective, part: Part) -> Decrease | None:
        """The decrease of f that each step over this domain guarantees, by which `Result.promise` finds the rates that
        hold; None: nothing is guaranteed."""
        return None


def single(domain: Domain, update: object) -> Part:
    """The only summand of the domain, for updates along one direction; refuse a sum of domains."""
    if len(domain.parts) > 1 or domain.parts[0].price:
        name = type(update).__name__
        raise ValueError(
            f"{name} walks along one direction; over a sum or a product give Blocks({name}(...)), one part at "
            f"a time, and over a penalty FullyCorrective or NormCorrective."
        )
    return domain.parts[0]
