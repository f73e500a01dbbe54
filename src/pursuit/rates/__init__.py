"""Convergence rates: one function for each theorem of the paper, with its corrections, and for later methods.

Every bound is on eps_t = f(x_t) - f*, where x_t is the iterate after t updates. t >= 0 is a number or an array, and so
is the bound; delta in (0, 1] is the quality of the oracle, or an array of the smallest before each t. Constants may be
numbers or `pursuit.geometry.Interval`s: of an interval, the end is used that makes the bound weaker, so it holds
whichever number of the interval is the true one.

| paper | function | domain |
|---|---|---|
| Theorems 1, 11 | `frank_wolfe`, `frank_wolfe_affine` | conv |
| Theorems 2, 12 | `matching_pursuit`, `matching_pursuit_affine` | lin |
| Theorems 2, 12 sharp | `matching_pursuit_sharp`, `matching_pursuit_affine_sharp` | lin |
| Corollary 4 | `least_squares` | lin |
| Theorems 7, 13 | `linear`, `linear_affine` | lin |
| Theorem 8, and sharp; Corollary 9 | `lower_bound`, `lower_bound_sharp`; `signed_basis` | lin |
| Theorem 10 | `coherence`, `mdw_from_coherence` | |
| Theorem 14; Section 7 | `frank_wolfe_limit`; `delta_fw`, `delta_mp` | |
| Gribonval and Vandergheynst (2006) | `incoherent_pursuit` | lin |
| Stich et al. (2013) | `random_pursuit` | lin |
| Lacoste-Julien and Jaggi (2015), Tsuji et al. (2022) | `away_steps`, `pairwise_steps`, `good_steps` | conv, cone |
| Locatello et al. (2017b, 2018) | `cone_pursuit`; `affine_pursuit`, `accelerated_pursuit` | cone; lin |
| Braun et al. (2017), Pedregosa et al. (2020) | `lazy_quality`; `backtracking` | |

L, mu, radius, diameter and mdw must be measured in the norm of the algorithm, which is a Hilbert norm for projections
and short steps; line searches and open-loop steps allow any norm, and the affine-invariant forms need none (errata 6
and 8).

>>> import pursuit as ps
>>> ps.rates.frank_wolfe([0, 1, 10, 100], L=1.0, diameter=2.0, eps0=3.0).round(3)
array([7.   , 4.667, 1.167, 0.137])
"""

from pursuit.rates.later import (
    accelerated_pursuit,
    affine_pursuit,
    away_steps,
    backtracking,
    cone_pursuit,
    good_pairwise_steps,
    good_steps,
    lazy_quality,
    pairwise_steps,
    random_pursuit,
)
from pursuit.rates.theorems import (
    coherence,
    delta_fw,
    delta_mp,
    frank_wolfe,
    frank_wolfe_affine,
    frank_wolfe_limit,
    incoherent_pursuit,
    least_squares,
    linear,
    linear_affine,
    lower_bound,
    lower_bound_sharp,
    matching_pursuit,
    matching_pursuit_affine,
    matching_pursuit_affine_sharp,
    matching_pursuit_sharp,
    mdw_from_coherence,
    signed_basis,
)

__all__ = [
    "accelerated_pursuit",
    "affine_pursuit",
    "away_steps",
    "backtracking",
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
