"""The certificate of a run: the best lower bound on f* so far, in floating-point arithmetic.

| module | what it has |
|---|---|
| `bound` | `Certificate`: bounds by the oracle's answer, by strong convexity, by the infimum of f, by its conjugate |
| `conjugate` | the bound by the conjugate of f at a dual point, for domains with spans, cones and penalties |
| `spans`, `cones` | how a dual point becomes feasible for them |
| `rounding` | the errors of inner products and projections, which every bound allows for |

The bounds decide when a run stops, and are what a `Result` reports. `Result.certificate` has the proof in exact
arithmetic (`pursuit.verify`).
"""

from pursuit.certificates.bound import Bound, Certificate

__all__ = ["Bound", "Certificate"]
