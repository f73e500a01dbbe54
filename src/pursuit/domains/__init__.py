"""Hull, cone and span of a set of atoms, and their sums."""

from __future__ import annotations

from pursuit.atoms.base import Atoms
from pursuit.domains.base import Answer, Direction, Domain, Part, Sum
from pursuit.domains.parts import Cone, Hull, Span

__all__ = ["Answer", "Cone", "Direction", "Domain", "Hull", "Part", "Span", "Sum", "cone", "conv", "lin"]


def conv(A: Atoms) -> Part:
    """The convex hull of a set of atoms: Frank-Wolfe. Its certificate is the Frank-Wolfe gap.

    >>> import pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, 0.5]), ps.conv(ps.SignedBasis(2))).x
    array([1., 0.])
    """
    return Hull(A)


def cone(A: Atoms, rho: float | None = None) -> Part:
    """The cone of a set of atoms, all combinations with non-negative weights: non-negative matching pursuit.

    Parameters
    ----------
    A : Atoms
    rho : float, optional
        A bound on the atomic norm (the sum of weights) of a minimiser. It makes certificates possible where the
        conjugate of f cannot: f* >= f(x) - <g, x> + rho min(0, min_a <g, a>).

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, -1.0]), ps.cone(ps.Dictionary(np.eye(2)))).x
    array([2., 0.])
    """
    return Cone(A, rho)


def lin(A: Atoms, rho: float | None = None, width: float | None = None) -> Part:
    """The linear span of a set of atoms: matching pursuit. The oracle searches the atoms and their negatives.

    Parameters
    ----------
    A : Atoms
        Need not be symmetric.
    rho : float, optional
        A bound on the atomic norm of a minimiser. It makes certificates possible where the conjugate of f cannot:
        f* >= f(x) - <g, x> - rho h(-g).
    width : float, optional
        A lower bound on the minimal intrinsic directional width of the atoms with their negatives, where you know a
        better one than the set; with strong convexity, f* >= f(x) - h(-g)^2 / (2 mu width^2).

    Examples
    --------
    >>> import pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, 0.5]), ps.lin(ps.SignedBasis(2))).x
    array([2. , 0.5])
    """
    return Span(A, rho, width)
