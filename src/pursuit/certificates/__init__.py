"""Certificates of runs: an estimate of the lower bound on f* at every iteration, and a proof at the end.

| module | what it has |
|---|---|
| `estimate` | `Certificate`: bounds by the oracle's answer, strong convexity, the infimum and the conjugate of f |
| `dual` | dual points for domains with spans, cones and penalties, and the bound by the conjugate of f there |
| `spans`, `cones` | how a dual point becomes nearly feasible for them |
| `enclosure` | real vectors near a dual point that are exactly orthogonal to spans and in the domain of f* |
| `proof` | the bound at such a vector, with all rounding outwards |

A run stops by the estimate, `State.lower`; `Result.lower` and `Result.gap` are proved. The errors of sums and products
are those of `linalg.rounding`.
"""

from pursuit.certificates.estimate import Bound, Certificate

__all__ = ["Bound", "Certificate"]
