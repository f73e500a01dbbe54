"""Convergence rates: one function for each theorem of the paper, with its corrections, and for later methods.

Every bound is on eps_t = f(x_t) - f*, where x_t is the iterate after t updates. t >= 0 is a number or an array, and so
is the bound; delta in (0, 1] is the quality of the oracle. Constants may be numbers or `pursuit.geometry.Interval`s: of
an interval, the end is used that makes the bound weaker, so it holds whichever number of the interval is the true one.

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
| Lacoste-Julien and Jaggi (2015), Tsuji et al. (2022) | `away_steps`, `pairwise_steps`, `good_steps` | conv, cone |
| Locatello et al. (2017) | `cone_pursuit` | cone |
| Gribonval and Vandergheynst (2006) | `incoherent_pursuit` | lin |
| Braun, Pokutta and Zink (2017) | `lazy_quality` | conv, lin |
| Pedregosa et al. (2020) | `backtracking`, `backtracking_evaluations` | |
| Locatello et al. (2018) | `accelerated_pursuit` | lin |

L, mu, radius, diameter and mdw must be measured in the norm of the algorithm, which is a Hilbert norm; for other norms
there are the affine-invariant forms (errata 6 and 8).

>>> import pursuit as ps
>>> ps.rates.frank_wolfe([0, 1, 10, 100], L=1.0, diameter=2.0, eps0=3.0).round(3)
array([7.   , 4.667, 1.167, 0.137])
"""

from pursuit.rates.contraction import (
    incoherent_pursuit,
    linear,
    linear_affine,
    lower_bound,
    lower_bound_sharp,
    signed_basis,
)
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
from pursuit.rates.variants import (
    accelerated_pursuit,
    affine_pursuit,
    away_steps,
    backtracking,
    backtracking_evaluations,
    cone_pursuit,
    good_pairwise_steps,
    good_steps,
    lazy_quality,
    pairwise_steps,
    random_pursuit,
)

__all__ = [
    "accelerated_pursuit",
    "affine_pursuit",
    "away_steps",
    "backtracking",
    "backtracking_evaluations",
    "coherence",
    "cone_pursuit",
    "delta_fw",
    "delta_mp",
    "frank_wolfe",
    "frank_wolfe_affine",
    "frank_wolfe_limit",
    "good_pairwise_steps",
    "good_steps",
    "incoherent_pursuit",
    "lazy_quality",
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
    "pairwise_steps",
    "random_pursuit",
    "signed_basis",
]
