"""The functions to minimise: smooth convex functions on H, with their constants where these are known.

An objective of your own must have one method, `value_and_grad(x)`. It may also know `L` and `mu` (smoothness and strong
convexity in the norm of H), `infimum` (a lower bound on f over all of H, which is a certificate at no cost),
`hessian(x)` (for exact line searches and Newton steps), `conjugate(u)` (for certificates over spans and cones) and
`space` (shape, dtype and device of the vectors of H).
"""

from pursuit.objectives.base import Objective, as_value
from pursuit.objectives.losses import Huber, Logistic, Multinomial, Poisson
from pursuit.objectives.quadratic import LeastSquares, Quadratic
from pursuit.objectives.ridge import Ridge
from pursuit.objectives.smooth import Smooth

__all__ = [
    "Huber", "LeastSquares", "Logistic", "Multinomial", "Objective", "Poisson", "Quadratic", "Ridge", "Smooth",
    "as_value",
]  # fmt: skip
