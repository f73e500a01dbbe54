"""Line 7 of Algorithms 3 and 4: moving the atoms themselves, `minimize(..., refine=...)`.

`Factors` moves the factors of matrices, `Alternating` those of tensors, `Regroup` the directions of groups, `Slide` all
atoms that depend smoothly on parameters; `Merge` and `Prune` make do with fewer atoms. A refinement is called after
each update with (f, domain, active set) and answers with new (weights, atoms, blocks), or None to leave things as they
are; several are called in turn. The loop obeys only if the domain is not left and f does not rise; `Merge` and `Prune`
may give back a share of what the update has gained.
"""

from __future__ import annotations

from pursuit.refine.alternating import Alternating
from pursuit.refine.factors import Factors
from pursuit.refine.fewer import Merge, Prune
from pursuit.refine.proposals import Refine
from pursuit.refine.regroup import Regroup
from pursuit.refine.slide import Slide

__all__ = ["Alternating", "Factors", "Merge", "Prune", "Refine", "Regroup", "Slide"]
