"""The contract of a refinement, and the acceptance of its proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Indices, Small, Space
from pursuit.atoms.base import as_atom
from pursuit.atoms.frames import Atom
from pursuit.domains import Domain, Part
from pursuit.objectives import Objective
from pursuit.oracles import check_fits
from pursuit.state import Stateful
from pursuit.updates import Now


class Proposal(NamedTuple):
    """New weights and atoms, and the summand of each atom."""

    weights: Small
    atoms: list[Atom]
    blocks: Indices


class Refine(Protocol):
    """The contract of a refinement: (f, domain, active) -> new (weights, atoms), or None to change nothing.

    In a sum of domains it returns (weights, atoms, blocks). A refinement must not raise f above `active.ceiling`: f at
    the point of S, or more where the refinement has an attribute `share`, the share of the update's decrease of f that
    it may give back. One that takes long looks at `active.deadline`.

    >>> import pursuit as ps
    >>> def rescale(f, domain, active):                       # the best multiple of x
    ...     return active.weights * (active.x @ f.y) / (active.x @ active.x), active.atoms
    >>> f, domain, small_steps = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.Plain(ps.ShortStep(L=4.0))
    >>> [ps.minimize(f, domain, small_steps, refine=r, stop=ps.Stop(iterations=1)).value for r in (None, rescale)]
    [3.03125, 0.5]
    """

    def __call__(
        self, f: Objective, domain: Domain, active: ActiveSet, /
    ) -> Proposal | tuple[Small, Sequence[Atom]] | None: ...


def as_refinements(refine: Refine | Sequence[Refine] | None) -> tuple[Refine, ...]:
    """None, one or several as a tuple."""
    return tuple(refine) if isinstance(refine, Sequence) else () if refine is None else (refine,)


def share_given_back(refine: Refine) -> float:
    """The share of the update's decrease of f that a refinement may give back."""
    return float(getattr(refine, "share", 0.0))


@dataclass(eq=False)
class Refinements(Stateful):
    """Line 7 of Algorithms 3 and 4 in one run: the refinements propose in turn. A proposal is accepted if its point
    stays in the domain, its atoms are atoms, and f is not above the allowed value; `refused` counts the others."""

    refinements: tuple[Refine, ...]
    f: Objective
    domain: Domain
    space: Space
    refused: int = field(default=0, init=False)
    assumed: list[str] = field(default_factory=list, init=False)
    """What nobody could check about the points and atoms of the run."""

    def __call__(self, now: Now, active: ActiveSet) -> None:
        """Refine the active set after the update of this iteration."""
        for refine in self.refinements:
            if active.deadline.passed:
                return
            self.refused += not self._accept(refine, active, now.value)

    def _accept(self, refine: Refine, active: ActiveSet, before: float) -> bool:
        """Whether the proposal of this refinement is accepted; None counts as accepted. `before` is f before
        the update."""
        f, domain = self.f, self.domain
        ceiling = f.value(active.x) + active.cost
        ceiling += share_given_back(refine) * max(before - ceiling, 0.0)
        active.ceiling = ceiling - active.cost
        proposal = refine(f, domain, active)
        if proposal is None:
            return True
        weights, atoms, blocks = _read(proposal)
        if not self._feasible(weights, atoms, blocks, active):
            return False
        trial = domain.active_set(self.space)
        trial.replace(weights, atoms, blocks)
        if not f.value(trial.x) + trial.cost <= ceiling:
            return False
        active.replace(weights, atoms, blocks)
        return True

    def _feasible(self, weights: Small, atoms: list[Atom], blocks: Indices, active: ActiveSet) -> bool:
        """Whether these weights and atoms give a point of the domain, and no vector that is no atom enters S: over a
        span or a cone that would make x sparse in name only. Members of S, such as the start, may stay."""
        if weights.shape != (len(atoms),) or not np.isfinite(weights).all():
            return False
        for a in atoms:
            check_fits(a, self.space)
        members = set(map(id, active.atoms))
        for a, part in ((a, self.domain.parts[b]) for a, b in zip(atoms, blocks, strict=True) if id(a) not in members):
            free = not part.compact and part.asked.rebuild(a) is None
            known = part.asked.contains(a.dense(self.space)) if free else part.owns(self.space, a)
            if known is False:
                return False
            if known is None and (unchecked := f"the refinement's atoms are atoms of {part!r}") not in self.assumed:
                self.assumed.append(unchecked)
        return self.domain.admits(weights, blocks)


def rebuilt(part: Part, a: Atom) -> Atom:
    """The atom of a summand with this source; `a` need not have a vector."""
    atom = part.asked.rebuild(a)
    assert atom is not None
    return atom


def _read(proposal: object) -> Proposal:
    """A proposal of the user."""
    if not isinstance(proposal, tuple) or len(proposal) not in (2, 3):
        kind = type(proposal).__name__
        raise TypeError(f"refine returned {kind}; return (weights, atoms), or None to change nothing.")
    weights, atoms = np.asarray(proposal[0], dtype=np.float64), [as_atom(a) for a in proposal[1]]
    return Proposal(weights, atoms, np.broadcast_to(proposal[2] if len(proposal) > 2 else 0, (len(atoms),)))
