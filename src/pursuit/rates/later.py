r"""Rates of later methods: cone pursuits, away and pairwise steps, lazy oracles, backtracking, random and accelerated
pursuits.

The proofs share one step. A step along d with slope -s < 0 that no constraint cuts short decreases f by at least
:math:`s^2/(2L\|d\|^2)`; each method bounds the error by s. Away and pairwise steps are cut short where an atom loses
all its weight; the others are *good*, and as f never increases, their number replaces t: ``frank_wolfe(good_steps(t),
...)`` is the sublinear rate of away steps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arguments import as_int_or_nan, number, require
from pursuit.rates.arguments import (
    Constant,
    Numbers,
    atom_count,
    float_or_array,
    lower,
    quality,
    share,
    update_counts,
    upper,
)
from pursuit.rates.theorems import linear_affine, matching_pursuit_sharp


def good_steps(t: ArrayLike, *, spare: int = 0) -> Numbers:
    r"""The least number of good steps among t steps of `Away` or `BlendedPairwise`, :math:`\lceil(t-s)/2\rceil`: every
    other step drops an atom, a good one adds one at most, and the start can spare s atoms: one less than it has over a
    hull, all of them over a cone.

    >>> good_steps([0, 1, 2, 3, 10]), good_steps(10, spare=3)
    (array([0., 1., 1., 2., 5.]), 4.0)
    """
    require(as_int_or_nan(spare) >= 0, "spare", spare, "the number of atoms that the start can spare, at least 0")
    return float_or_array(np.maximum(np.ceil((update_counts(t) - spare) / 2), 0.0))


def good_pairwise_steps(t: ArrayLike, *, n: int) -> Numbers:
    r"""The least number of good steps among t steps of `Pairwise` with n atoms: :math:`\lfloor t/\lfloor e\,n!\rfloor
    \rfloor`. Other steps permute r weights among n atoms until two meet; f falls, so none of the n!/(n - r)!
    arrangements comes back, and fewer than :math:`\sum_r n!/(n-r)! = \lfloor e\,n!\rfloor` are in a row.

    >>> good_pairwise_steps([0, 4, 5, 16], n=2)
    array([0., 0., 1., 3.])
    """
    n = min(atom_count(n), 150)  # 150 atoms have more arrangements than a run has steps
    return float_or_array(np.floor(update_counts(t) / float(sum(math.perm(n, r) for r in range(n + 1)))))


def away_steps(
    t: ArrayLike, *, mu: Constant, L: Constant, width: Constant, diameter: Constant, eps0: Constant,
    delta: Numbers = 1.0, spare: int = 0,
) -> Numbers:  # fmt: skip
    r"""The linear rate of `Away` and `BlendedPairwise`: :math:`\varepsilon_t\le\left(1-\frac{\delta^2}{(1+\delta)^2}
    \frac{\mu W^2}{L D^2}\right)^{k}\varepsilon_0` with the pyramidal width W, the diameter D and k = `good_steps(t)`.

    Lacoste-Julien and Jaggi (2015), Tsuji, Tanaka and Pokutta (2022), with delta = 1. For the best atom z and the worst
    active one v, the slope -s has :math:`s\ge\frac{\delta}{1+\delta}\langle-g,z-v\rangle`, and :math:`\varepsilon_t\le
    \langle-g,z-v\rangle^2/(2\mu W^2)`. Holds over the hull or cone of finitely many atoms, with line searches or short
    steps. Over a cone, W is that of A and 0, and `Away` moves along atoms, so D is the radius.

    >>> away_steps([0, 1, 2, 3], mu=1, L=1, width=1, diameter=1, eps0=16.0)
    array([16., 12., 12.,  9.])
    """
    mu, delta = lower("mu", mu) * share("width", width, "diameter", diameter) ** 2, quality(delta)
    return linear_affine(good_steps(t, spare=spare), mu=mu, C=L, eps0=eps0, delta=delta / (1 + delta))


def pairwise_steps(
    t: ArrayLike, *, mu: Constant, L: Constant, width: Constant, diameter: Constant, eps0: Constant,
    n: int, delta: Numbers = 1.0,
) -> Numbers:  # fmt: skip
    r"""The linear rate of `Pairwise`: :math:`\varepsilon_t\le(1-\delta^2\mu W^2/(LD^2))^k\varepsilon_0`, k =
    `good_pairwise_steps(t, n=n)`; Lacoste-Julien and Jaggi (2015).

    A good step attains the factor where the gradient at x has the direction in which W is attained. Preconditions of
    `away_steps`; over a cone, W and D are those of A and 0.

    >>> pairwise_steps([0, 4, 5, 10], mu=1, L=2, width=1, diameter=1, eps0=8.0, n=2)
    array([8., 8., 4., 2.])
    """
    mu = lower("mu", mu) * share("width", width, "diameter", diameter) ** 2
    return linear_affine(good_pairwise_steps(t, n=n), mu=mu, C=L, eps0=eps0, delta=delta)


def cone_pursuit(
    t: ArrayLike, *, L: Constant, radius: Constant, rho: Constant, eps0: Constant, delta: Numbers = 1.0
) -> Numbers:
    r"""Non-negative matching pursuit: :math:`\varepsilon_t\le 8C/(\delta^2t+8C/\varepsilon_0)` with :math:`C =
    L\rho^2\mathrm{radius}(A)^2`, the sharper form of :math:`4(2C/\delta+\varepsilon_0)/(\delta t+4)` of Locatello,
    Tschannen, Rätsch and Jaggi (2017b).

    The step along z, or along -x over the sum w of the weights, has :math:`s\ge\delta m` and :math:`\varepsilon_t\le
    (\|x^\star\|_A+w)m\le 2\rho m`. From a start at which f is above f(0) a single step may be cut short, the one that
    leads to 0: then t - 1 replaces t. For `Plain` with a line search or short steps, `NormCorrective` and
    `FullyCorrective` over cone(A); rho bounds the atomic norm of the minimiser and the sums of weights of all iterates.

    >>> cone_pursuit([0, 4], L=1, radius=1, rho=1, eps0=2)
    array([2., 1.])
    """
    return matching_pursuit_sharp(t, L=L, radius=radius, rho=rho, eps0=upper("eps0", eps0), delta=delta)


def lazy_quality(K: float) -> float:
    r"""The quality delta = 1/K that rates have with `Lazy(K)` (Braun, Pokutta and Zink, 2017).

    An answer from the active set descends by at least :math:`\phi/K`, :math:`\phi` the descent of the best atom at an
    earlier iterate, which is large where the error was. So rates that compare the descent with the *error* hold: those
    of `frank_wolfe`, `matching_pursuit`, `least_squares` and `linear`, not those of `away_steps`.

    >>> lazy_quality(2.0), float(linear_affine(1, mu=1, C=1, eps0=1, delta=lazy_quality(2.0)))
    (0.5, 0.75)
    """
    require(1 <= number(K) < math.inf, "K", K, "the laziness factor, a number of at least 1")
    return 1.0 / K


def backtracking(*, L: Constant, grow: float = 2.0, first: float = 0.0) -> float:
    r"""The smoothness constant with which every rate holds under `Backtracking`: :math:`\max(\tau L, L_1)`.

    Pedregosa, Negiar, Askari and Jaggi (2020). An estimate is multiplied by :math:`\tau` where the upper bound fails,
    which it does not from L on; the decrease that the proofs need is what was tested.

    >>> backtracking(L=3.0), backtracking(L=3.0, grow=1.5, first=10.0)
    (6.0, 10.0)
    """
    require(1 < number(grow) < math.inf, "grow", grow, "a factor above 1")
    return max(grow * upper("L", L, strict=True), lower("first", first))


def random_pursuit(t: ArrayLike, *, mu: Constant, L: Constant, share: float, eps0: Constant) -> Numbers:
    r"""Random pursuit, in expectation: :math:`E\varepsilon_t\le(1-s\mu/L)^t\varepsilon_0` with the smallest eigenvalue
    s of :math:`E\,zz^\top/\|z\|^2` on lin(A), the argument `share`: 1/n for a basis or directions of a sphere of R^n.

    Stich, Müller and Gärtner (2013); Locatello et al. (2018) for atoms. A step of `RandomAtom` with a line search
    decreases f by :math:`\langle g,z\rangle^2/(2L\|z\|^2)`, in the mean :math:`s\|g\|^2/(2L)\ge s\mu\varepsilon_t/L`.

    >>> random_pursuit([0, 1, 2], mu=1, L=1, share=0.5, eps0=4.0)
    array([4., 2., 1.])
    """
    require(0 < number(share) <= 1, "share", share, "the least mean square of a direction along the atoms, in (0, 1]")
    return linear_affine(t, mu=lower("mu", mu) * share, C=upper("L", L, strict=True), eps0=eps0)


def affine_pursuit(t: ArrayLike, *, L: Constant, reach: Constant, delta: Numbers = 1.0) -> Numbers:
    r"""Affine-invariant matching pursuit: :math:`\varepsilon_t\le 2L_AR_A^2/(\delta^2(t+2))`.

    Locatello et al. (2018): :math:`L_A` is the smoothness in the atomic norm, `geometry.curvature(f, A, "mp")`, and
    the argument `reach` :math:`R_A\ge\|x_t-x^\star\|_A` where :math:`f(x)\le f(x_0)`: sharper than the detour by rho of
    `matching_pursuit_sharp` where :math:`R_A<2\rho`. Its linear form is `linear_affine`.

    >>> affine_pursuit([0, 2], L=1, reach=2)
    array([4., 2.])
    """
    scale = upper("L", L) * upper("reach", reach) ** 2
    return float_or_array(2 * scale / (quality(delta) ** 2 * (update_counts(t) + 2)))


def accelerated_pursuit(t: ArrayLike, *, L: Constant, nu: Constant, distance: Constant) -> Numbers:
    r"""Accelerated matching pursuit, in expectation: :math:`E\varepsilon_t\le 2L\nu\|x_0-x^\star\|_P^2/(t+1)^2`.

    Locatello et al. (2018), with the constants of `AcceleratedPursuit`, whose docstring defines P and nu; x_t is the
    greedy sequence. In expectation the potential :math:`\beta_t\varepsilon_t+\frac12\|v_t-x^\star\|_P^2` does not
    increase. A single run may be above the bound, so `Result.promise` does not quote it.

    >>> accelerated_pursuit([1, 3], L=1, nu=2, distance=2)
    array([4., 1.])
    """
    scale = upper("L", L) * upper("nu", nu) * upper("distance", distance) ** 2
    return float_or_array(2 * scale / (update_counts(t) + 1) ** 2)
