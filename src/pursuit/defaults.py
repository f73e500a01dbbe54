"""What is chosen when nothing is said: update, oracle and refinement, for a given objective and domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.oracles import Exact, Oracle
from pursuit.refine import Alternating, Factors, Refine, Regroup, Slide
from pursuit.updates import FullyCorrective, NormCorrective, Update

SEVERAL = 64
"""Atoms of one oracle call that may enter S together."""

SEVERAL_FACTORS = 8
"""The same for matrices whose factors are refined afterwards: the refinement does the work, the update only brings in
the next few singular vectors."""

PATH_UPDATE = FullyCorrective()
"""The update of a path of sizes: one atom after the other, all weights corrected; OMP for least squares."""


class Method(NamedTuple):
    """How a problem is solved: the choice of parts for the one loop."""

    update: Update
    oracle: Oracle
    refine: Refine | Sequence[Refine] | None


def choose(
    f: Objective,
    domain: Domain,
    update: Update | None,
    oracle: Oracle | None,
    refine: Refine | Sequence[Refine] | None,
    sparse: bool = False,
) -> Method:
    """What the user gave, checked, and the package's choice for what was left out.

    A refinement is chosen only together with an update: whoever names an update gets that algorithm and no other.
    """
    if not isinstance(f, Objective):
        raise TypeError(f"f is {type(f).__name__}; give an objective such as LeastSquares(y), or wrap it in Smooth.")
    if not isinstance(domain, Domain):
        raise TypeError(f"domain is {type(domain).__name__}; give conv(...) or lin(...) of a set of atoms.")
    if update is None:
        update, moving = default_method(f, domain, sparse)
        refine = moving if refine is None else refine
    oracle = Exact() if oracle is None else oracle
    if isinstance(update, type) or not hasattr(update, "descends"):
        raise TypeError(f"update is {update!r}; give an update such as FullyCorrective() or Plain(ShortStep()).")
    if isinstance(oracle, type) or not hasattr(oracle, "begin") or hasattr(oracle, "descends"):
        raise TypeError(f"oracle is {oracle!r}; give an oracle such as Exact() or Lazy().")
    several = refine if isinstance(refine, Sequence) else () if refine is None else (refine,)
    if not all(callable(each) and not isinstance(each, type) for each in several):
        raise TypeError(f"refine is {refine!r}; give a function of (f, domain, active), or several.")
    return Method(update, oracle, refine)


def default_update(f: Objective, sparse: bool = False) -> Update:
    """Minimise f over S exactly where its curvature is known, its quadratic upper bound otherwise. Several of the best
    atoms of a call enter together; one where `sparse` says that atoms count."""
    several = 1 if sparse else SEVERAL
    if type(f).hessian is Objective.hessian:
        return NormCorrective(several=several)
    return FullyCorrective(several=several)


def default_method(f: Objective, domain: Domain, sparse: bool = False) -> tuple[Update, Refine | None]:
    """The update, and the refinement where atoms can move; `sparse`: one atom at a time.

    Factors of matrices are all refined together. Tensors and atoms with parameters enter one at a time, and all of
    them move together.
    """
    if not f.exact:
        return default_update(f, sparse), None  # estimates of the gradient move nothing
    refine = Factors()
    if any(refine.serves(part) for part in domain.parts):
        few = NormCorrective(several=1 if sparse else SEVERAL_FACTORS)
        return few if len(domain.parts) == 1 else default_update(f, sparse), refine
    if any(part.asked.chart() is not None for part in domain.parts):
        return default_update(f, sparse=True), Alternating() if Alternating.serves(f, domain) else Slide()
    groups = type(f).hessian is not Objective.hessian and any(Regroup.serves(part) for part in domain.parts)
    return default_update(f, sparse), Regroup() if groups and not sparse else None
