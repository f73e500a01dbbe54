"""Sets of dense matrices: with orthonormal columns (the spectral norm), and orthogonal projections (the Fantope)."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import floating_array, require
from pursuit.arrays import Array, Space, host, namespace
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.atoms.matrices import check_shape, symmetric_eigenvalues
from pursuit.atoms.polytopes import check_selection
from pursuit.threads import threads_for


class Orthogonal(Atoms):
    r"""The m x n matrices with orthonormal columns (rows, where m < n); their hull is the ball of the spectral norm.
    The oracle is the polar factor :math:`-U V^\top` of g, a dense matrix.

    >>> import pursuit as ps
    >>> ps.Orthogonal((2, 2)).lmo(np.diag([3.0, -2.0])).vector
    array([[-1.,  0.],
           [ 0.,  1.]])
    """

    symmetric = True
    spherical = True

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = check_shape(shape)
        self.radius = math.sqrt(min(self.shape))
        self.diameter, self.width = 2.0 * self.radius, 1.0

    def lmo(self, g: Array) -> Atom:
        xp = Space.of(g).xp
        with threads_for(max(g.shape)):
            U, _, Vt = xp.linalg.svd(g, full_matrices=False)
        return Atom(-xp.matmul(U, Vt) + 0.0)

    def gauge(self, x: Array) -> float:
        return float(np.linalg.norm(host(x), 2))

    def __repr__(self) -> str:
        return f"Orthogonal({self.shape})"


class Fantope(Atoms):
    r"""The projections of R^n on subspaces of dimension k, as n x n matrices; their hull, the Fantope, is
    :math:`\{X : 0 \preceq X \preceq I, \operatorname{tr} X = k\}`. The oracle projects on the eigenvectors of the k
    smallest eigenvalues of g; it computes all of them, and its atoms are dense. `Fantope(n, 1)` has the atoms of
    `Spectrahedron(n)`, which is faster.

    >>> import pursuit as ps
    >>> ps.Fantope(3, 2).lmo(np.diag([1.0, -3.0, 0.5])).vector
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    spherical = True

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = check_selection(n, k)
        self.shape = (self.n, self.n)
        self.radius, self.diameter = math.sqrt(self.k), math.sqrt(2.0 * min(self.k, self.n - self.k))
        self.width = -self.k / math.sqrt(self.n)

    def lmo(self, g: Array) -> Atom:
        g = floating_array(g, "g")
        require(tuple(g.shape) == self.shape, "g", g, f"an array of the shape {self.shape} of the atoms")
        xp = namespace(g)
        if self.k == self.n:
            return Atom(xp.eye(self.n, dtype=g.dtype))
        top = float(xp.max(abs(g))) or 1.0  # only the direction counts, and sums must stay in range
        with threads_for(self.n):
            V = xp.linalg.eigh(0.5 * (g / top + (g / top).T))[1][:, : self.k]
        return Atom(xp.matmul(V, V.T) + 0.0)

    def gauge(self, x: Array) -> float:
        values = symmetric_eigenvalues(x)
        level = math.inf if values is None else float(values.sum()) / self.k
        slack = max(1e-12, 16.0 * Space.of(x).eps) * self.n * abs(level)
        inside = values is not None and bool(values[0] >= -slack and values[-1] <= level + slack)
        return level if inside else math.inf
