"""Line 7 of Algorithms 3 and 4: moving the atoms themselves, `minimize(..., refine=...)`.

A refinement is called after each update with (f, domain, active set) and answers with new (weights, atoms, blocks), or
with None to leave things as they are. The loop obeys only if the domain is not left and f does not rise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pursuit.active import ActiveSet
from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.refine.factors import Factors
from pursuit.updates import NormCorrective, Update, default_update

__all__ = ["Factors", "Refine", "default_method"]

Refine = Callable[[Objective, Domain, ActiveSet], tuple[Any, ...] | None]
"""New (weights, atoms), with their blocks in a sum of domains, or None to leave them."""


def default_method(f: Objective, domain: Domain, sparse: bool = False) -> tuple[Update, Refine | None]:
    """The package's choice of update and refinement; `sparse`: one atom at a time.

    Where the atoms are factors that can move, moving them does the work: the update only brings in the next few
    singular vectors, and the refinement fits all factors.
    """
    refine = Factors()
    if not any(refine.serves(part) for part in domain.parts):
        return default_update(f, domain, sparse), None
    if len(domain.parts) > 1:
        return default_update(f, domain, sparse), refine
    return NormCorrective(several=1 if sparse else 8), refine
