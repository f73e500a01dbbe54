"""Sets of vectors: basis vectors, boxes and balls."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import as_int_or_nan, number, real_array, require
from pursuit.arrays import Array, Space, everywhere, flat, host, largest, namespace
from pursuit.atoms.base import Atoms, Found, Search
from pursuit.atoms.closed import Closed, Cuboid, LpBall, Orthogonal
from pursuit.atoms.columns import Dictionary, Listed
from pursuit.atoms.frames import Atom
from pursuit.atoms.sparse import SparseAtom


class _Basis(Listed):
    """Basis vectors of R^n, kept as indices."""

    def __init__(self, n: int) -> None:
        self.n = check_dimension(n)
        self.shape, self.work = (self.n,), float(self.n)
        self.size = 2 * self.n if self.symmetric else self.n

    def correlations(self, g: Array) -> Array:
        return flat(g)

    def begin(self, seed: int = 0) -> Search:
        return self._search if type(self) in (SignedBasis, Simplex) else super().begin(seed)  # a subclass may differ

    def _search(self, g: Array, several: int, level: float) -> Found:
        c = flat(g)
        places, merits = largest(c if self.symmetric else -c, several, sizes=self.symmetric)
        best = abs(merits[0]) if self.symmetric else merits[0]
        return self.signed_columns(places, merits), -float(best)

    def column(self, j: int, sign: float) -> Atom:
        return SparseAtom.of(np.array([j]), np.array([sign]), (self.n,), j, sign)

    def through(self, M: object, columns: int | None = None, l2: float = 0.0) -> Atoms:
        if columns is not None or number(l2) != 0:
            from pursuit.atoms.combinations import Image
            from pursuit.atoms.maps import LinearMap

            return Image(self, M=LinearMap(M, self.shape, columns, l2, one_entry=True))
        images = Dictionary(M, signed=self.symmetric)
        if images.n != self.n:
            raise ValueError(f"M has {images.n} columns, the atoms have {self.n} entries.")
        return images


def check_dimension(n: int) -> int:
    """A dimension, checked."""
    require(as_int_or_nan(n) >= 1, "n", n, "the dimension as an integer of at least 1")
    return int(n)


class SignedBasis(_Basis):
    r"""The signed basis vectors :math:`\pm e_i` of R^n; their hull is the L1 ball.

    `SignedBasis(n).through(X)` is `Dictionary(X, signed=True)`.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 0.0, -1.0]), ps.conv(2 * ps.SignedBasis(3)))
    >>> r.x
    array([2., 0., 0.])
    """

    symmetric = True

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.take_sizes(self.geometry())

    def geometry(self) -> Closed:
        return Orthogonal.of(self.n, 1.0, signed=True)

    def gauge(self, x: Array) -> float:
        return float(namespace(x).sum(abs(x)))


class Simplex(_Basis):
    r"""The basis vectors :math:`e_i` of R^n; their hull is the probability simplex.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([0.6, 0.5, -1.0]), ps.conv(ps.Simplex(3)))
    >>> r.x.round(6)
    array([0.55, 0.45, 0.  ])
    """

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.take_sizes(self.geometry())
        self.entry_bounds = (0.0, 1.0)

    def geometry(self) -> Closed:
        return Orthogonal.of(self.n, 1.0, signed=False)

    def gauge(self, x: Array) -> float:
        return float(namespace(x).sum(x)) if everywhere(x >= 0) else math.inf

    def symmetrised(self) -> Atoms:
        return SignedBasis(self.n)


class Box(Atoms):
    r"""The box :math:`\{x : l_i \le x_i \le u_i\}` with finite bounds; the oracle names corners.

    >>> import pursuit as ps
    >>> ps.Box([0, 0], [1, 2]).lmo(np.array([1.0, -1.0])).vector
    array([0., 2.])
    """

    convex = True
    space: Space

    def __init__(self, lower: object, upper: object) -> None:
        self.lower, self.upper = real_array(lower, "lower"), real_array(upper, "upper")
        if self.lower.shape != self.upper.shape:
            shapes = f"{tuple(self.lower.shape)} and {tuple(self.upper.shape)}"
            raise ValueError(f"lower and upper have shapes {shapes}; give one bound of each per entry.")
        if self.lower.size == 0:
            raise ValueError("lower is empty; a set of atoms must not be empty.")
        self.space = Space.of(self.lower)
        self.upper = self.space.put(host(self.upper))
        if not everywhere(self.lower <= self.upper):
            raise ValueError("lower exceeds upper somewhere; the box is empty.")
        self.shape = self.space.shape
        self.symmetric = everywhere(self.lower == -self.upper)
        self.entry_bounds = (self.lower, self.upper)
        self.take_sizes(self.geometry())
        if not everywhere((self.lower != 0) | (self.upper != 0)):  # flat: the box does not span H
            self.width = min(self.width or 0.0, 0.0)

    def geometry(self) -> Cuboid:
        return Cuboid.of(host(self.lower).ravel(), host(self.upper).ravel())

    def lmo(self, g: Array) -> Atom:
        return Atom(self.space.xp.where(g > 0, self.lower, self.upper))

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        slack = tolerance * float(self.space.xp.max(abs(self.lower) + abs(self.upper)))
        return everywhere((a >= self.lower - slack) & (a <= self.upper + slack))

    def gauge(self, x: Array) -> float | None:
        if self.width is None or self.width <= 0:
            return None  # no closed form where 0 is not inside
        return self.geometry().gauge(host(x).ravel())

    def __repr__(self) -> str:
        return f"Box({'x'.join(map(str, self.shape or ()))})"


class Ball(Atoms):
    r"""The unit ball of the norm :math:`\|x\|_p` in R^n, for p from 1 to infinity.

    The oracle is the duality map of the conjugate norm q: :math:`-\operatorname{sign}(g)|g|^{q-1}/\|g\|_q^{q-1}`.

    >>> import pursuit as ps
    >>> ps.Ball(2, 2).lmo(np.array([3.0, -4.0])).vector
    array([-0.6,  0.8])
    """

    symmetric = True
    convex = True

    def __init__(self, n: int, p: float) -> None:
        require(number(p) >= 1, "p", p, "a number from 1 to infinity, where the ball is convex")
        self.n, self.p, self.shape = check_dimension(n), number(p), (int(n),)
        self.take_sizes(self.geometry())

    def geometry(self) -> Closed:
        return LpBall.of(self.n, self.p)

    def lmo(self, g: Array) -> Atom:
        xp = namespace(g)
        size = abs(g)
        largest = float(xp.max(size))
        if self.p == 1.0 or largest == 0.0:
            return SignedBasis(self.n).lmo(g)
        if math.isinf(self.p):
            return Atom(xp.where(g > 0, -xp.ones_like(g), xp.ones_like(g)))
        power = (size / largest) ** (1.0 / (self.p - 1.0))  # |g|^(q-1), q - 1 = 1/(p-1)
        norm = float(xp.sum(power**self.p)) ** (1.0 / self.p)
        return Atom(-xp.sign(g) * power / norm)

    def gauge(self, x: Array) -> float:
        xp = namespace(x)
        largest = float(xp.max(abs(x)))
        if math.isinf(self.p) or largest == 0.0:
            return largest
        return largest * math.pow(float(xp.sum((abs(x) / largest) ** self.p)), 1.0 / self.p)

    def __repr__(self) -> str:
        return f"Ball({self.n}, {self.p:g})"
