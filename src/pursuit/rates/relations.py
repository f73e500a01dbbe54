"""Relations between the constants of rates: coherence and width; Frank-Wolfe and matching pursuit."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import number, real_array
from pursuit.arrays import Array, host
from pursuit.rates.arguments import Constant, atom_count, quality, scales, upper


def coherence(*, n: int, mdw: Constant) -> float:
    r"""Theorem 10: :math:`\mu(B, n-1)\ge 1 - n\,\mathrm{mDW}(\pm B)^2` for n unit atoms B.

    Holds for dependent atoms too, and says nothing where the right side is negative (erratum 19).

    >>> coherence(n=2, mdw=0.5)
    0.5
    """
    width = upper("mdw", mdw, 0, strict=True)
    return 1 - atom_count(n) * width**2


def mdw_from_coherence(*, n: int, coherence: Constant) -> float:
    r"""Theorem 10, solved for the width: :math:`\mathrm{mDW}(\pm B)\ge\sqrt{\max(0, 1-\mu(B,n-1))/n}`.

    >>> mdw_from_coherence(n=4, coherence=0.0)
    0.5
    """
    return math.sqrt(max(0.0, 1 - upper("coherence", coherence, 0)) / atom_count(n))


def frank_wolfe_limit(*, L: float, grad: Array, x: Array, z: Array) -> float:
    r"""Theorem 14, its constant: one step of Frank-Wolfe on alpha A and one of matching pursuit, from the
    same x, differ by :math:`\alpha\|x^{FW}-x^{MP}\|\to\|(\langle g,x\rangle+2a\langle
    z,x\rangle/\|z\|^2)z-ax\|/(L\|z\|^2)` as alpha grows, with :math:`a=\langle-g,z\rangle`.

    For Algorithm 2 variant 3, which is Algorithm 3 variant 0, against Algorithm 4 variant 0; other variants
    have other limits or none (erratum 24).

    >>> frank_wolfe_limit(L=1, grad=[-1.0, 0.0], x=[0.0, 2.0], z=[1.0, 0.0])
    2.0
    """
    g, here, atom = (host(real_array(v, name)).ravel() for v, name in ((grad, "grad"), (x, "x"), (z, "z")))
    if not len(g) == len(here) == len(atom):
        raise ValueError(f"grad, x, z have {len(g)}, {len(here)}, {len(atom)} entries; give vectors of one shape.")
    square, a = float(atom @ atom), -float(g @ atom)
    if square == 0:
        raise ValueError("z is zero; give the atom that the oracle names, which has a direction.")
    along = float(g @ here) + 2 * a * float(atom @ here) / square
    return float(np.linalg.norm(along * atom - a * here)) / (upper("L", L, 0, strict=True) * square)


def delta_fw(delta_mp: float, alpha: float, rho: float) -> float:
    r"""The Frank-Wolfe quality on alpha A of an oracle of matching-pursuit quality `delta_mp` on A:
    :math:`\delta_{FW} = (\alpha\delta_{MP}-\rho)/(\alpha-\rho)`.

    For symmetric A and points with :math:`\|x\|_A\le\rho<\alpha`. The paper announces this relation and does not give
    it (erratum 25). It is positive from :math:`\alpha>\rho/\delta_{MP}` on, and tends to `delta_mp` as alpha grows.

    >>> delta_fw(0.5, alpha=4.0, rho=1.0)
    0.3333333333333333
    """
    delta, (scale, reach) = quality(number(delta_mp), "delta_mp"), scales(alpha, rho)
    if not scale * delta > reach:
        raise ValueError(f"alpha is {alpha} with rho {rho} and delta_mp {delta_mp}; give alpha > rho / delta_mp.")
    return float((scale * delta - reach) / (scale - reach))


def delta_mp(delta_fw: float, alpha: float, rho: float) -> float:
    r"""The matching-pursuit quality on A of an oracle of Frank-Wolfe quality `delta_fw` on alpha A, the other way
    round: :math:`\delta_{MP} = \delta_{FW}-(1-\delta_{FW})\rho/\alpha`.

    For symmetric A and points with :math:`\|x\|_A\le\rho<\alpha`: :math:`\langle g,x\rangle` is at least
    :math:`-\rho h_A(-g)`. It is not the inverse of `delta_fw`: each of the two assumes its own worst point.

    >>> delta_mp(0.5, alpha=4.0, rho=1.0)
    0.375
    """
    delta, (scale, reach) = quality(number(delta_fw), "delta_fw"), scales(alpha, rho)
    if not scale * delta > (1 - delta) * reach:
        raise ValueError(f"alpha is {alpha} with rho {rho}; give alpha > rho (1 - delta_fw) / delta_fw.")
    return float(delta - (1 - delta) * reach / scale)
