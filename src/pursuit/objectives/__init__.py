"""The functions to minimise: smooth convex functions on H, with their constants where these are known.

An objective of your own must have one method, `value_and_grad(x)`. It may also know `L` and `mu` (smoothness and strong
convexity in the norm of H), `infimum` (a lower bound on f over all of H, which is a certificate at no cost),
`hessian(x)` (for exact line searches and Newton steps), `conjugate(u)` (for certificates over spans and cones) and
`space` (shape, dtype and device of the vectors of H). Where f is not defined, its value is infinite.
"""

from pursuit.objectives.base import DataLoss as DataLoss
from pursuit.objectives.base import Objective
from pursuit.objectives.base import as_value as as_value
from pursuit.objectives.base import inside as inside
from pursuit.objectives.losses import Huber, Logistic, Multinomial, Poisson
from pursuit.objectives.quadratic import LeastSquares, Quadratic
from pursuit.objectives.smooth import Smooth
from pursuit.objectives.spectral import LogDet, TraceInverse
from pursuit.objectives.wrapped import Ridge
from pursuit.objectives.wrapped import Shifted as Shifted
from pursuit.objectives.wrapped import Tilted as Tilted
from pursuit.objectives.wrapped import Wrapped as Wrapped
from pursuit.objectives.wrapped import adapted as adapted

__all__ = [
    "Huber",
    "LeastSquares",
    "LogDet",
    "Logistic",
    "Multinomial",
    "Objective",
    "Poisson",
    "Quadratic",
    "Ridge",
    "Smooth",
    "TraceInverse",
]
