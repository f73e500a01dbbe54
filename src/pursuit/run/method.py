"""The defaults: update, oracle and refinement for an objective and a domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pursuit.arguments import describe, require_kind
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.matrices import Factored
from pursuit.domains import Domain
from pursuit.objectives import Objective, adapted
from pursuit.oracles import Exact, Oracle
from pursuit.refine import Alternating, Factors, Refine, Regroup, Slide
from pursuit.refine.proposals import as_refinements
from pursuit.steps import OpenLoop
from pursuit.updates import FullyCorrective, NormCorrective, Plain, Update

ATOMS_PER_CALL = 64
"""Atoms of one oracle call that may enter S together."""

PATH_UPDATE = FullyCorrective()
"""The update of a path of sizes: one atom at a time, all weights corrected; OMP for least squares."""

SEVERAL_AT_ONCE = FullyCorrective(several=ATOMS_PER_CALL)
"""The update where the number of atoms does not matter."""

MATRICES = NormCorrective(several=8)
"""For matrices whose factors are refined afterwards: the update only adds the next few singular vectors."""

ALIGNED_MATRICES = NormCorrective(several=32)
"""The same where atoms need not move, since the gradient has the singular vectors of the minimum."""


class Method(NamedTuple):
    """An algorithm: the parts of the loop."""

    update: Update
    oracle: Oracle
    refine: Refine | Sequence[Refine] | None


class Problem(NamedTuple):
    """What one run solves, and how."""

    f: Objective
    domain: Domain
    method: Method


class Given(NamedTuple):
    """The parts that a user names; None: the default."""

    update: Update | None
    oracle: Oracle | None
    refine: Refine | Sequence[Refine] | None


def choose(f: Objective, domain: Domain, given: Given, sparse: bool = False) -> Problem:
    """The problem with the user's parts, checked; a part that is None becomes its default. Where the data of f have no
    dtype of their own, f moves to the array library, dtype and device of the atoms.

    A refinement is chosen by default only where the update is, too: a user who names an update gets that algorithm.
    """
    update, oracle, refine = given
    require_kind(f, Objective, "f", "an objective such as LeastSquares(y), or wrap it in Smooth")
    require_kind(domain, Domain, "domain", "conv(...) or lin(...) of a set of atoms")
    if update is None:
        update, default_refine = default_method(f, domain, sparse)
        refine = default_refine if refine is None else refine
    oracle = Exact() if oracle is None else oracle
    require_kind(update, Update, "update", "an update such as FullyCorrective() or Plain(ShortStep())")
    require_kind(oracle, Oracle, "oracle", "an oracle such as Exact() or Lazy()")
    if not all(callable(each) and not isinstance(each, type) for each in as_refinements(refine)):
        raise TypeError(f"refine is {describe(refine)}; give a function of (f, domain, active), or several.")
    spaces = [part.A.space for part in domain.parts if part.A.space not in (None, f.space)]
    f = adapted(f, spaces[0]) if spaces else f
    return Problem(f, domain, Method(update, oracle, refine))


def default_update(f: Objective, sparse: bool = False) -> Update:
    """The update that minimises f over S, and its quadratic upper bound where values are estimates. Several atoms of a
    call enter S together; with `sparse`, one."""
    if not f.exact:
        return NormCorrective(several=1 if sparse else ATOMS_PER_CALL)
    return PATH_UPDATE if sparse else SEVERAL_AT_ONCE


def default_method(f: Objective, domain: Domain, sparse: bool = False) -> tuple[Update, Refine | None]:
    """The update, and the refinement where atoms can move; with `sparse`, one atom enters at a time.

    Factors of matrices are refined together, unless they need not move. Tensors and atoms with parameters enter one at
    a time and move together.
    """
    if not f.exact and len(domain.parts) == 1 and domain.parts[0].compact:
        return Plain(OpenLoop()), None  # a step that needs neither values nor L, of which there are estimates only
    if not f.exact or any(part.price for part in domain.parts):
        return default_update(f, sparse), None  # a refinement needs exact values, and knows nothing of penalties
    if Factors.serves(f, domain):
        aligned, several = _aligned(f, domain), len(domain.parts) > 1
        update = NormCorrective() if sparse else ALIGNED_MATRICES if aligned else MATRICES
        return default_update(f, sparse) if several else update, None if aligned else Factors()
    if Slide.serves(f, domain):
        return default_update(f, sparse=True), Alternating() if Alternating.serves(f, domain) else Slide()
    return default_update(f, sparse), Regroup() if not sparse and Regroup.serves(f, domain) else None


def _aligned(f: Objective, domain: Domain) -> bool:
    """Whether f is a squared distance of whole matrices, times a constant, whose singular vectors are found exactly:
    then all gradients of a run share those of the minimum, and there is nothing to refine."""
    A, distance = unscaled(domain.parts[0].asked)[0], f.mu == f.L
    return distance and len(domain.parts) == 1 and A.exact and isinstance(A, Factored) and not A.view.observed
