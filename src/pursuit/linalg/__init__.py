"""Linear algebra that several modules need. It does not depend on atoms, domains or objectives.

| module | content |
|---|---|
| `vectors` | norms without overflow, unit vectors |
| `rounding` | sums and products of floats that are exact but for a bounded error: what proofs rest on |
| `cholesky` | a Cholesky factor that grows and shrinks by one row |
| `simplex` | projections on simplices |
| `accelerated` | Nesterov's accelerated gradient method with restart |
| `lanczos` | the extreme eigenvalues of a large symmetric map, with bounds |
| `operators` | linear operators of any library, with a test of their adjoints |
| `ranking` | which columns have the largest products, proved from intervals |
"""

from pursuit.linalg.accelerated import accelerated_gradient
from pursuit.linalg.cholesky import NEARLY_SINGULAR, CholeskyFactor, pivot_rounding
from pursuit.linalg.operators import operator
from pursuit.linalg.simplex import project_simplex, project_solid_simplex
from pursuit.linalg.vectors import EPS, norm, norms, unit, unit_columns, units_and_norms

__all__ = [
    "EPS",
    "NEARLY_SINGULAR",
    "CholeskyFactor",
    "accelerated_gradient",
    "norm",
    "norms",
    "operator",
    "pivot_rounding",
    "project_simplex",
    "project_solid_simplex",
    "unit",
    "unit_columns",
    "units_and_norms",
]
