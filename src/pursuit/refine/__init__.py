"""Line 7 of Algorithms 3 and 4: moving the atoms themselves, `minimize(..., refine=...)`.

`Factors` moves the factors of matrices, `Alternating` those of tensors, `Regroup` the directions of groups, `Slide` all
atoms that depend smoothly on parameters; `Merge` and `Prune` make do with fewer atoms. A refinement is called after
each update with (f, domain, active set) and answers with new (weights, atoms, blocks), or None to leave things as they
are; several are called in turn. The loop obeys only if the domain is not left and f does not rise; `Merge` and `Prune`
may give back a share of what the update has gained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.refine.alternating import Alternating
from pursuit.refine.factors import Factors
from pursuit.refine.fewer import Merge, Prune
from pursuit.refine.regroup import Regroup
from pursuit.refine.slide import Slide
from pursuit.updates import NormCorrective, Update, default_update

__all__ = ["Alternating", "Factors", "Merge", "Prune", "Refine", "Regroup", "Slide", "default_method"]

Refine = Callable[..., tuple[Any, ...] | None]
"""(f, domain, active) -> new (weights, atoms), with their blocks in a sum of domains, or None to leave them.

One that has an attribute `share` may give back that share of what the update has gained, and is told how high f may be
as a fourth argument; all others must not raise f."""


def default_method(f: Objective, domain: Domain, sparse: bool = False) -> tuple[Update, Refine | None]:
    """The package's choice of update and refinement; `sparse`: one atom at a time.

    Where the atoms are factors that can move, moving them does the work: the update only brings in the next few
    singular vectors, and the refinement fits all factors. Tensors and atoms with parameters enter one at a time, and
    all move together.
    """
    if not f.exact:
        return default_update(f, domain, sparse), None  # estimates of the gradient move nothing
    refine = Factors()
    if any(refine.serves(part) for part in domain.parts):
        few = NormCorrective(several=1 if sparse else 8)
        return few if len(domain.parts) == 1 else default_update(f, domain, sparse), refine
    if any(part.asked.chart() is not None for part in domain.parts):
        return default_update(f, domain, sparse=True), Alternating() if Alternating.serves(f, domain) else Slide()
    groups = type(f).hessian is not Objective.hessian and any(Regroup.serves(part) for part in domain.parts)
    return default_update(f, domain, sparse), Regroup() if groups and not sparse else None
