"""Sets of vectors: basis vectors, boxes and balls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit.arguments import as_int_or_nan, number, real_array, require
from pursuit.arrays import (
    Array,
    Space,
    everywhere,
    flat,
    host,
    namespace,
)
<<<<<<< HEAD
from pursuit.atoms.base import Atoms
from pursuit.atoms.closed import Closed, Cuboid, LpBall, Orthogonal
from pursuit.atoms.columns import Dictionary, Listed
from pursuit.atoms.frames import Atom
from pursuit.atoms.sparse import SparseAtom
=======
from pursuit.atoms.base import Atoms, Found, Search
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.screening import MIN_SCREENED_ENTRIES, Payment, can_be_screened
from pursuit.atoms.sparse import SparseAtom
from pursuit.linalg import operator


class Listed(Atoms):
    """n vectors b_j, taken as they are or, if `symmetric`, with both signs: atoms b_0, ..., b_{n-1}, -b_0, ..."""

    n: int

    def correlations(self, g: Array) -> Array:
        """<g, b_j> for all j, on g's device."""
        raise NotImplementedError

    def column(self, j: int, sign: float) -> Atom:
        """sign * b_j."""
        raise NotImplementedError

    def pick(self, c: Array, several: int) -> Sequence[Atom]:
        """The atoms that are best for correlations c, best first."""
        places, entries = largest(c if self.symmetric else -c, several, sizes=self.symmetric)
        signs = np.where(self.symmetric & (entries > 0), -1.0, 1.0)
        return [self.column(int(j), float(sign)) for j, sign in zip(places, signs, strict=True)]

    def lmo(self, g: Array) -> Atom:
        return self.pick(self.correlations(g), 1)[0]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return self.pick(self.correlations(g), several)

    def scores(self, g: Array) -> Small:
        c = host(self.correlations(g))
        return np.concatenate([c, -c]) if self.symmetric else c

    def atom(self, i: int) -> Atom:
        return self.column(i % self.n, 1.0 if i < self.n else -1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        if isinstance(a.source, int | np.integer) and 0 <= a.source < self.n:
            return self.column(int(a.source), -1.0 if self.symmetric and a.coef < 0 else 1.0)
        return None

    def coefficients(self, sources: Sequence[Source], values: Small) -> Any:
        if not all(isinstance(source, int | np.integer) for source in sources):
            return None
        out = np.zeros(self.n)
        np.add.at(out, np.asarray(sources, dtype=np.intp), values)
        return out


class Dictionary(Listed):
    r"""The columns of D, in their order: sparse regression and coding, "the basis seen through D".

    Parameters
    ----------
    D : (..., n) array, sparse matrix or operator (SciPy's, PyLops')
        Column j is the atom :math:`D_{\cdot j}`; leading axes are the shape of H. Nothing is copied.
    signed : bool
        Whether :math:`-D_{\cdot j}` are atoms too; `conv(t * Dictionary(D, signed=True))` is the image of the L1 ball
        of radius t. `lin` does not need it.

    Examples
    --------
    >>> import pursuit as ps
    >>> A = ps.Dictionary(np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> A.lmo(np.array([-1.0, 1.0]))
    Atom(source=0, coef=1)
    """

    min_screened = MIN_SCREENED_ENTRIES
    """The number of entries from which on a run makes an 8-bit copy."""

    def __init__(self, D: Any, signed: bool = False) -> None:
        self.D: Any
        given = operator(D, "D")
        self._operator = given is not None
        self._sparse = sp.issparse(D)
        if self._sparse:
            self.D = sparse_matrix(D, "D")
        else:  # NaN and infinity in an array are found later, together with the norms
            self.D = given if self._operator else whole_strides(floating_array(D, "D"))
        if len(self.D.shape) < 2:
            raise ValueError(f"D has shape {tuple(self.D.shape)}; give a matrix whose columns are the atoms.")
        self.shape, self.n = tuple(map(int, self.D.shape[:-1])), int(self.D.shape[-1])
        if self.n == 0 or math.prod(self.shape) == 0:
            raise ValueError(f"D has shape {tuple(self.D.shape)}; a set of atoms must not be empty.")
        self.symmetric = as_bool(signed, "signed")
        self.size = 2 * self.n if self.symmetric else self.n
        if self._operator:
            return
        if not self._sparse:
            self.space = Space.of(self.D[..., 0])
            self._matrix = self.D if self.D.ndim == 2 else self.space.xp.reshape(self.D, (-1, self.n))
        norms = self._norms()
        if not norms.all():
            j = int(np.argmin(norms))
            raise ValueError(f"column {j} of D is zero; a zero atom has no direction, so remove it.")
        self.radius = float(norms.max())
        self.diameter = 2.0 * self.radius

    def _norms(self) -> Small:
        """Norms of the columns, finding NaN and infinity in the same pass over D."""
        with np.errstate(all="ignore"):
            if self._sparse:
                squares = np.asarray(self.D.multiply(self.D).sum(axis=0)).ravel()
            elif isinstance(self._matrix, np.ndarray):
                squares = column_squares(self._matrix).astype(np.float64)
            else:
                squares = host(namespace(self._matrix).sum(self._matrix * self._matrix, axis=0))
            norms = np.sqrt(squares)
        for j in np.flatnonzero(~((squares > 1e-280) & (squares < 1e280))):  # NaN, or squares out of range
            column = self.D[:, [int(j)]].toarray() if self._sparse else self._matrix[:, int(j)]
            norms[j] = Space.of(column).norm(real_array(column, f"column {j} of D"))
        return np.asarray(norms)

    def correlations(self, g: Array) -> Array:
        if self._operator:
            return self.D.rmatvec(g)
        return self.D.T @ g if self._sparse else self._matrix.T @ flat(g)

    def column(self, j: int, sign: float) -> Atom:
        if self._sparse:
            start, stop = self.D.indptr[j], self.D.indptr[j + 1]
            return SparseAtom(self.D.indices[start:stop], sign * self.D.data[start:stop], (self.D.shape[0],), j, sign)
        if self._operator:
            basis = np.zeros(self.n)
            basis[j] = sign
            return Atom(self.D.matvec(basis), j, sign)
        return Atom(self.D[..., j] if sign > 0 else -self.D[..., j], j, sign)

    def begin(self, seed: int = 0) -> Search:
        """The function that answers the questions of one run. A large dense dictionary answers by full products at
        first. Once these have taken as long as making an 8-bit copy does, the copy is made and read first: the answers
        stay the same, and less memory is read."""
        search, paid = super().begin(seed), Payment(self.min_screened)
        if type(self) is not Dictionary or not can_be_screened(self.D) or self.D.size < self.min_screened:
            return search
        screened: Search | None = None

        def answer(g: Array, several: int, level: float) -> Found:
            nonlocal screened
            if screened is None and paid.covers(self.D):
                screened = self.screened().begin(seed)
            paid.add(several)
            return (screened or search)(g, several, level)

        return answer

    def screened(self) -> Atoms:
        """The same set with an oracle that reads an 8-bit copy of D first; made once, it may serve many solves."""
        from pursuit.atoms.screened import ScreenedDictionary

        return ScreenedDictionary(self)

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else self._with(symmetric=True, size=2 * self.n)

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, self.D.shape))
        return f"Dictionary({sizes}{', signed=True' if self.symmetric else ''})"
>>>>>>> sets


class _Basis(Listed):
    """Basis vectors of R^n, kept as indices."""

    def __init__(self, n: int) -> None:
        self.n = check_dimension(n)
        self.shape, self.work = (self.n,), float(self.n)
        self.size = 2 * self.n if self.symmetric else self.n

    def correlations(self, g: Array) -> Array:
        return flat(g)

    def column(self, j: int, sign: float) -> Atom:
        return SparseAtom([j], [sign], (self.n,), j, sign)

    def through(self, M: Any, columns: int | None = None, l2: float = 0.0) -> Atoms:
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
        self._state(self.geometry())

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
        self._state(self.geometry())
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

    def __init__(self, lower: Any, upper: Any) -> None:
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
        self._state(self.geometry())
        if not everywhere((self.lower != 0) | (self.upper != 0)):  # flat: the box does not span H
            self.width = min(self.width or 0.0, 0.0)

    def geometry(self) -> Cuboid:
        return Cuboid.of(host(self.lower).ravel(), host(self.upper).ravel())

    def lmo(self, g: Array) -> Atom:
        return Atom(self.space.xp.where(g > 0, self.lower, self.upper))

    def sample(self, rng: np.random.Generator) -> Atom:
        return self.lmo(self.space.put(rng.choice([-1.0, 1.0], self.space.shape)))

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
        self._state(self.geometry())

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

    def sample(self, rng: np.random.Generator) -> Atom:
        if self.p == 1.0:
            return SignedBasis(self.n).sample(rng)
        v = rng.standard_normal(self.n)
        return Atom(np.sign(v)) if math.isinf(self.p) else Atom(v / self.gauge(v))

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        return self.gauge(a) <= 1.0 + tolerance

    def gauge(self, x: Array) -> float:
        xp = namespace(x)
        largest = float(xp.max(abs(x)))
        if math.isinf(self.p) or largest == 0.0:
            return largest
        return largest * math.pow(float(xp.sum((abs(x) / largest) ** self.p)), 1.0 / self.p)

    def __repr__(self) -> str:
        return f"Ball({self.n}, {self.p:g})"
