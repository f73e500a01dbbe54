"""Hull, cone and span of a set of atoms, and their sums."""

from __future__ import annotations

from pursuit.atoms.base import Atoms
from pursuit.domains.base import Answer, Direction, Domain, Part, Sum
from pursuit.domains.parts import Cone, Hull, Penalty, Span
from pursuit.domains.pieces import Product

__all__ = [
    "Answer",
    "Cone",
    "Direction",
    "Domain",
    "Hull",
    "Part",
    "Penalty",
    "Product",
    "Span",
    "Sum",
    "cone",
    "conv",
    "lin",
    "penalty",
    "product",
]


def conv(A: Atoms) -> Part:
    """The convex hull of a set of atoms: Frank-Wolfe. Its certificate is the Frank-Wolfe gap.

    >>> import pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, 0.5]), ps.conv(ps.SignedBasis(2))).x
    array([1., 0.])
    """
    return Hull(A)


def cone(A: Atoms, rho: float | None = None) -> Part:
    """The cone of a set of atoms, all combinations with non-negative weights: non-negative matching pursuit. Like it,
    `lin(A, symmetric=False)` asks A alone, but its weights are free.

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


def penalty(A: Atoms) -> Part:
    """The cone of a set of atoms, with a price: of `lam * A` the run minimises f(x) + lam ||x||_A.

    ||x||_A, the atomic norm, is the smallest sum of weights with which x is a combination of atoms: the 1-norm of the
    coefficients for `Dictionary(X, signed=True)`, the nuclear norm for `RankOne`. Values, gaps and lower bounds include
    the penalty. With conv, cone and lin it makes sums, such as `penalty(lam * A) + lin(B)`.

    Parameters
    ----------
    A : Atoms
        A set times the factor lam of the penalty.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, -1.0]), ps.penalty(2.0 * ps.SignedBasis(2)))
    >>> r.x, r.value                                    # soft thresholding; 1/2 ||x - y||^2 + 2 ||x||_1
    (array([1., 0.]), 4.5)
    """
    return Penalty(A)


def product(*domains: Domain) -> Product:
    """x in several pieces, each in a domain of its own, one after the other in one vector.

    Pieces that are matrices are flattened; `split` and `join` of the domain convert. With `Blocks(update)` one piece
    moves at a time, and only its oracle is asked.

    Parameters
    ----------
    domains : conv(A), cone(A), lin(A), penalty(A), or sums of them
        Their atoms must know their shape.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> domain = ps.product(ps.conv(ps.Simplex(3)), ps.conv(ps.Ball(2, 2)))        # the pieces p and b
    >>> f = ps.LeastSquares(np.array([0.5, 0.4, 0.4, 3.0, 4.0]))
    >>> p, b = domain.split(ps.minimize(f, domain).x)
    >>> p.round(4), b.round(4)
    (array([0.4, 0.3, 0.3]), array([0.6, 0.8]))
    """
    return Product(domains)


def lin(
    A: Atoms, rho: float | None = None, width: float | None = None, counted: bool = True, symmetric: bool = True
) -> Part:
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
    counted : bool
        False: its atoms are always present, such as an intercept beside the columns of a model. `Stop(atoms)`, traces
        and paths of sizes do not count them, and where a run begins at 0, `minimize` first fits them alone, so that the
        first atom of the other summands is chosen for what they leave.
    symmetric : bool
        False: the oracle searches A alone, as in line 3 of the paper's Algorithm 4, and an oracle of your own is asked
        once an iteration, not twice. The best atom of A may then be far worse than that of -A; the linear rate
        holds where 0 lies inside conv(A). Weights stay free: for non-negative ones use `cone(A)`.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, 0.5]), ps.lin(ps.SignedBasis(2))).x
    array([2. , 0.5])
    >>> X, ones = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]]), np.ones((3, 1))
    >>> domain = ps.lin(ps.Dictionary(X)) + ps.lin(ps.Dictionary(ones), counted=False)
    >>> r = ps.minimize(ps.LeastSquares([5.0, 7.0, 9.0]), domain, stop=ps.Stop(atoms=1))     # 3 + 2 X_0
    >>> r.coef[0].round(9) + 0.0, r.coef[1].round(9)
    (array([2., 0.]), array([3.]))
    >>> A = ps.Dictionary(np.array([[1.0, -1.0, 0.0], [0.0, -1.0, 1.0]]))                 # 0 lies inside its hull
    >>> stop = ps.Stop(iterations=1)
    >>> ps.minimize(ps.LeastSquares([-3.0, 1.0]), ps.lin(A), ps.FullyCorrective(), stop=stop).coef
    array([-3.,  0.,  0.])
    >>> ps.minimize(ps.LeastSquares([-3.0, 1.0]), ps.lin(A, symmetric=False), ps.FullyCorrective(), stop=stop).coef
    array([0., 1., 0.])
    """
    return Span(A, rho, width, counted, symmetric)
