"""The geometry of atom sets that convergence rates depend on, each quantity as an `Interval`.

| function | quantity |
|---|---|
| `radius`, `diameter` | how large the set is |
| `directional_width`, `mdw`, `inradius` | how wide it is at its narrowest |
| `pyramidal_width` | how far its faces are from the other atoms |
| `gauge`, `contains`, `rho` | the atomic norm, membership, and an a-priori bound on the norms of all iterates |
| `coherence` | cumulative coherence of unit atoms |
| `curvature`, `strong_convexity` | affine-invariant smoothness and strong convexity of f over the set |
| `smoothness`, `convexity` | L and mu of f in the norm of a metric, or in a p-norm |

>>> import pursuit as ps
>>> A = ps.SignedBasis(4)
>>> ps.geometry.diameter(A), ps.geometry.mdw(A), ps.geometry.gauge(A, [1.0, -2.0, 0.0, 0.0])
(Interval(2, exact), Interval(0.5, exact), Interval(3, exact))
"""

from pursuit.geometry.constants import convexity, curvature, smoothness, strong_convexity
from pursuit.geometry.faces import pyramidal_width
from pursuit.geometry.interval import Interval
from pursuit.geometry.norm import contains, gauge, rho
from pursuit.geometry.width import coherence, diameter, directional_width, inradius, mdw, radius

__all__ = [
    "Interval",
    "coherence",
    "contains",
    "convexity",
    "curvature",
    "diameter",
    "directional_width",
    "gauge",
    "inradius",
    "mdw",
    "pyramidal_width",
    "radius",
    "rho",
    "smoothness",
    "strong_convexity",
]
