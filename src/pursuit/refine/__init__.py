"""Line 7 of Algorithms 3 and 4: the atoms themselves move, `minimize(..., refine=...)`.

`Factors` moves the factors of matrices, `Alternating` those of tensors, `Regroup` the directions of groups, `Slide` all
atoms that depend smoothly on parameters; `Merge`, `Prune` and `Pivot` reduce the number of atoms. A refinement is
called after each update with (f, domain, active set) and proposes new (weights, atoms, blocks), or returns None to
change nothing; several are called in turn. A proposal is accepted if it stays in the domain and f does not increase;
`Merge`, `Prune` and `Pivot` may give back a share of the decrease of f in the update.

>>> import numpy as np, pursuit as ps
>>> M = np.outer([1.0, 2.0, 3.0], [1.0, -1.0]) + np.outer([1.0, 0.0, -1.0], [1.0, 1.0])
>>> domain, stop = ps.lin(ps.RankOne((3, 2))), ps.Stop(iterations=3)
>>> r = ps.minimize(ps.LeastSquares(M), domain, ps.Plain(ps.ShortStep(L=2.0)), refine=ps.refine.Factors(), stop=stop)
>>> r.value < 1e-9, r.refused
(True, 0)
"""

from __future__ import annotations

from pursuit.refine.alternating import Alternating
from pursuit.refine.factors import Factors
from pursuit.refine.fewer import Merge, Prune
from pursuit.refine.pivot import Pivot
from pursuit.refine.proposals import Refine
from pursuit.refine.regroup import Regroup
from pursuit.refine.slide import Slide

__all__ = ["Alternating", "Factors", "Merge", "Pivot", "Prune", "Refine", "Regroup", "Slide"]
