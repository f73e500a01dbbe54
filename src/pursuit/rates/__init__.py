"""Convergence rates: one function for each theorem of the paper, with its corrections.

Every bound is on eps_t = f(x_t) - f*, where x_t is the iterate after t updates, and is vectorised over t. Constants
may be numbers or `pursuit.geometry.Interval`s; an interval is read at its safe end, so a bound computed from
intervals holds.

| theorem | function | domain |
|---|---|---|
| inexactFW, sublinearFWAffineInvariant | `frank_wolfe`, `frank_wolfe_affine` | conv |
| inexactMP, sublinearMPAffineInvariant | `matching_pursuit`, `matching_pursuit_affine` | lin |
| the sharper forms | `matching_pursuit_sharp`, `matching_pursuit_affine_sharp` | lin |
| Corollary sublinleastsq | `least_squares`, `least_squares_sharp` | lin |
| linearRateMPinexact, LinearMPAffineInvariant | `linear`, `linear_affine` | lin |
| lowerBoundLinearRateMPinexact | `lower_bound`, `lower_bound_sharp` | lin |
| Corollary lowerBoundEx | `signed_basis` | lin |
| coherenceVSdw | `coherence`, `mdw_from_coherence` | |
| stepFWMPshort | `frank_wolfe_limit`; oracle qualities: `delta_fw`, `delta_mp` | |

Errata 6, 8: the norm of L, mu, radius, diameter and mdw is that of the algorithm, a Hilbert norm; other norms only
through the affine-invariant forms.
"""

from pursuit.rates.contraction import linear, linear_affine, lower_bound, lower_bound_sharp, signed_basis
from pursuit.rates.relations import coherence, delta_fw, delta_mp, frank_wolfe_limit, mdw_from_coherence
from pursuit.rates.sublinear import (
    frank_wolfe,
    frank_wolfe_affine,
    least_squares,
    least_squares_sharp,
    matching_pursuit,
    matching_pursuit_affine,
    matching_pursuit_affine_sharp,
    matching_pursuit_sharp,
)

__all__ = [
    "coherence",
    "delta_fw",
    "delta_mp",
    "frank_wolfe",
    "frank_wolfe_affine",
    "frank_wolfe_limit",
    "least_squares",
    "least_squares_sharp",
    "linear",
    "linear_affine",
    "lower_bound",
    "lower_bound_sharp",
    "matching_pursuit",
    "matching_pursuit_affine",
    "matching_pursuit_affine_sharp",
    "matching_pursuit_sharp",
    "mdw_from_coherence",
    "signed_basis",
]
