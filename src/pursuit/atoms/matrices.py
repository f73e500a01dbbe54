"""Sets of matrices of rank one: the nuclear norm, symmetric matrices, the spectrahedron.

Rank-one atoms stay factors, and with `.at(rows, cols)` only the observed entries of the matrices are ever made. The
leading singular or eigenvector comes from LAPACK for small matrices, from a Lanczos iteration for large ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh

from pursuit import native
from pursuit.arguments import as_int_or_nan, as_list, number, require
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import Atoms, Found, Search
from pursuit.atoms.closed import Closed
from pursuit.atoms.factored import LowRank, RankOneAtom, canonical_atom, compress, read_factors
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.vectors import check_dimension
from pursuit.atoms.views import AllEntries, Matrix, ObservedEntries, View, dense, is_sparse, matrix_places
from pursuit.linalg import unit
from pursuit.linalg.lanczos import Memory, SymmetricMap, extreme_eigenvalues
from pursuit.state import Stateful
from pursuit.threads import threads_for

MAX_LAPACK_SIDE = 640
"""LAPACK, which is exact, answers for matrices whose smaller side is at most this."""

MIN_COMPILED_ENTRIES = 1 << 16
"""From this many observed entries on, the compiled kernel is faster at the Gram matrix than SciPy."""

BOUND_SHARPNESS = 0.5
"""A bound is sharp enough when its error is at most this fraction of its distance to the level."""

BOUND_ROUNDING = 1e-13
"""A bound with a relative error below this cannot be improved."""


def check_shape(shape: object) -> tuple[int, int]:
    """The shape of a matrix, checked."""
    pair = as_list(shape)
    valid = len(pair) == 2 and all(as_int_or_nan(n) >= 1 for n in pair)
    require(valid, "shape", shape, "a pair (rows, columns) of integers of at least 1")
    return int(pair[0]), int(pair[1])


class Factored(Atoms):
    """Sets of matrices u v' with unit vectors u and v, and of their negatives; a subclass defines `_search`."""

    view: View
    spherical = True
    square: bool = False
    """Whether the atoms are v v' and their negatives."""
    fixed_trace: bool = False
    """Whether all points of the hull have the same trace, so that rows without an observed entry take a part of it."""

    def __init__(self, shape: tuple[int, int], failure: float) -> None:
        require(0 <= number(failure) < 1, "failure", failure, "a probability, or 0 for bounds that never fail")
        self.view, self.failure = AllEntries(shape), float(failure)
        self.shape, self.exact = self.view.shape, min(shape) <= MAX_LAPACK_SIDE or failure == 0

    def at(self, rows: object, cols: object) -> Self:
        """The same matrices, seen only at the entries (rows[e], cols[e]): vectors of R^N.

        Entries must be within the matrix, each given once, and every row and column must have one; of symmetric
        matrices, row or column i for each i, so that a triangle is enough; of `Spectrahedron`, whose trace is fixed,
        rows may have none.
        """
        dims = self.view.dims
        view = ObservedEntries(dims, matrix_places(rows, cols, dims), self.square, not self.fixed_trace)
        return self._with(view=view, shape=view.shape)

    def _search(self, M: Matrix, several: int, level: float, memory: Memory) -> Found:
        """Atoms with small <M, a>, the best first, and a lower bound on <M, a>; the largest |M_ij| is 1."""
        raise NotImplementedError

    def begin(self, seed: int = 0) -> Search:
        return _MatrixSearch(self, Memory(np.random.default_rng(seed)))

    def _atom(self, u: Small, v: Small, sign: float) -> RankOneAtom:
        """The atom sign * u v'."""
        return canonical_atom(u, v, self.view, sign)

    def rebuild(self, a: Atom) -> Atom | None:
        if isinstance(a, RankOneAtom) and a.view is self.view:  # then nothing is left to check
            factors: tuple[Small, Small] | None = (a.u, a.v)
        else:
            factors = read_factors(a.source, self.view.dims)
        sign = -1.0 if self.symmetric and a.coef < 0 else 1.0
        return None if factors is None else self._made(*factors, sign)

    def _made(self, u: Small, v: Small, sign: float) -> RankOneAtom | None:
        """The atom of this set along u v'; None where it has none."""
        left = unit(u)
        return RankOneAtom(left, left if v is u else unit(v), self.view, sign)

    def coefficients(self, sources: Sequence[Source], values: Small) -> LowRank | None:
        """The combination as U diag(s) V'."""
        m, n = self.view.dims
        pairs = [pair for pair in (read_factors(source, (m, n)) for source in sources) if pair is not None]
        if len(pairs) < len(sources):
            return None
        A = np.reshape([c * unit(u) for (u, _), c in zip(pairs, values.tolist(), strict=True)], (-1, m)).T
        return compress(A, np.reshape([unit(v) for _, v in pairs], (-1, n)).T)

    def __repr__(self) -> str:
        seen = f".at({self.view.shape[0]} entries)" if self.view.observed else ""
        return f"{type(self).__name__}({self._size()}){seen}"

    def _size(self) -> object:
        """The argument that says the size of the matrices."""
        return self.view.dims

    def _sizes(self, width: float, diameter: float) -> Closed:
        """The geometry of unit atoms, which is also that of `geometry` where whole matrices are seen."""
        return Closed(math.prod(self.view.dims), 1.0, diameter, width, width if self.symmetric else None)

    def geometry(self) -> Closed | None:
        known = not self.view.observed and None not in (self.width, self.diameter)
        return self._sizes(self.width or 0.0, self.diameter or 0.0) if known else None


def sharp(found: float, possible: float, level: float) -> bool:
    """Whether the minimum, which lies between the bound -possible and the value -found of an atom, is known accurately
    enough to be compared with the level."""
    close = max(BOUND_SHARPNESS * (level + possible), BOUND_ROUNDING * abs(possible))
    return math.isfinite(possible) and possible - found <= close


@dataclass(eq=False)
class _MatrixSearch(Stateful):
    """The searches of one run, on gradients whose largest entry is 1."""

    A: Factored
    memory: Memory

    def __call__(self, g: Array, several: int, level: float) -> Found:
        A, scale = self.A, float(Space.of(g).xp.max(abs(g)))
        if scale == 0.0 or not math.isfinite(scale):
            return [A.sample(np.random.default_rng(0))], 0.0 if scale == 0.0 else -math.inf
        atoms, lower = A._search(A.view.matrix(g / scale), several, level / scale, self.memory)
        return atoms, scale * lower


class RankOne(Factored):
    r"""The m x n matrices :math:`u v^\top` with unit vectors u and v; their hull is the nuclear-norm ball.

    Parameters
    ----------
    shape : (m, n)
    failure : float
        The probability that the bound of one oracle call is wrong. It matters for large matrices (smaller side above
        640), whose leading singular value comes from a Golub-Kahan iteration with a random start
        (`pursuit.linalg.lanczos`). With 0, bounds never fail: LAPACK answers at every size, in a time that grows with
        the cube of the smaller side.

    `RankOne(shape).at(rows, cols)` is for matrix completion: f is given the observed entries only. `Result.coef` is the
    whole matrix as factors `U, s, V`, and `result.coef.at(rows, cols)` computes its entries anywhere.

    >>> import pursuit as ps
    >>> rows, cols = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])                # four entries of a 3 x 2 matrix
    >>> r = ps.minimize(ps.LeastSquares(np.ones(4)), ps.conv(2.0 * ps.RankOne((3, 2)).at(rows, cols)))
    >>> r.coef.s.round(6), r.coef.at([1, 2], [0, 1]).round(2), r.gap <= 1e-6     # the matrix, and its other entries
    (array([2.]), array([0.78, 0.78]), True)
    """

    symmetric = True

    def __init__(self, shape: tuple[int, int], failure: float = 1e-6) -> None:
        super().__init__(check_shape(shape), failure)
        self.take_sizes(self._sizes(1.0 / math.sqrt(min(self.view.dims)), 2.0))

    def _search(self, M: Matrix, several: int, level: float, memory: Memory) -> Found:
        transposed = M.shape[0] < M.shape[1]
        M = M.T if transposed else M
        sigma, V, upper = leading(M, several, level, memory, self.failure)
        U = M @ V
        sizes = np.linalg.norm(U, axis=0)
        order = [i for i in np.argsort(-sizes, kind="stable") if sizes[i] > 1e-7 * sizes.max()]
        left, right = (V, U) if transposed else (U, V)
        atoms = [self._atom(unit(left[:, i]), unit(right[:, i]), -1.0) for i in order]
        return atoms, -max(upper, sigma, float(sizes.max()))

    def gauge(self, x: Array) -> float | None:
        return None if self.view.observed else float(np.linalg.svd(host(x), compute_uv=False).sum())

    def sample(self, rng: np.random.Generator) -> Atom:
        m, n = self.view.dims
        return self._atom(unit(rng.standard_normal(m)), unit(rng.standard_normal(n)), 1.0)


def _gram(M: Matrix) -> Small:
    """M'M as a dense matrix; for large sparse M only its lower triangle, which is all that `eigh` reads."""
    if not is_sparse(M) or M.nnz < MIN_COMPILED_ENTRIES or not native.is_built():
        return dense(M.T @ M)
    by_rows, G = M.tocsr(), np.zeros((M.shape[1], M.shape[1]))
    places = by_rows.indptr.astype(np.int32, copy=False), by_rows.indices.astype(np.int32, copy=False)
    native.core().lower_gram(*places, by_rows.data.astype(np.float64, copy=False), G)
    return G


def leading(M: Matrix, several: int, level: float, memory: Memory, failure: float) -> tuple[float, Small, float]:
    """The largest singular value of M, which has at least as many rows as columns, the leading right singular vectors
    as columns, and an upper bound on the value."""
    n = M.shape[1]
    if n <= MAX_LAPACK_SIDE or failure == 0:
        gram, first = _gram(M), max(n - several, 0)
        with threads_for(n):
            values, V = eigh(gram, subset_by_index=(first, n - 1))
            if len(values) < n - first:  # LAPACK's subsets may miss eigenvalues that are nearly equal
                values, V = eigh(gram, driver="evd")
        sigma = _root(float(values[-1]))
        return sigma, V[:, : -several - 1 : -1].copy(), sigma

    def enough(smallest: float, largest: float, lower: float, upper: float) -> bool:
        return sharp(_root(largest), _root(upper), level)

    best = extreme_eigenvalues(SymmetricMap(lambda v: M.T @ (M @ v), n), several, memory, failure, enough)
    return _root(float(best.values[0])), best.vectors, _root(best.upper)


def _root(x: float) -> float:
    return math.sqrt(max(x, 0.0))


def symmetric_eigenvalues(a: Array) -> Small | None:
    """Eigenvalues of a symmetric matrix; None for others."""
    X = host(a)
    even = np.abs(X - X.T).max() <= 1e-10 * np.abs(X).max()
    return np.asarray(np.linalg.eigvalsh(X)) if even else None


class _Symmetric(Factored):
    """Atoms v v', and -v v' where `symmetric`. Their inner products with g depend on its symmetric part only."""

    square = True

    def __init__(self, n: int, failure: float = 1e-6) -> None:
        self.n = check_dimension(n)
        super().__init__((self.n, self.n), failure)

    def at(self, rows: object, cols: object) -> Self:
        return super().at(rows, cols)._with(width=None)  # two observed entries may be the same by symmetry

    def _search(self, M: Matrix, several: int, level: float, memory: Memory) -> Found:
        values, vectors, lower = self._spectrum(M, several, level, memory)
        signs = -np.copysign(1.0, values) if self.symmetric else np.ones(len(values))
        return [self._atom(v, v, sign) for v, sign in zip(vectors.T.copy(), signs.tolist(), strict=True)], lower

    def _spectrum(self, M: Matrix, several: int, level: float, memory: Memory) -> tuple[Small, Small, float]:
        """The best eigenvalues of the symmetric part of M, their vectors, and a lower bound on <M, a>."""
        n, both = self.n, self.symmetric
        if n <= MAX_LAPACK_SIDE or self.failure == 0:
            with threads_for(n):
                values, vectors = eigh(0.5 * dense(M + M.T))
            which = np.argsort(-np.abs(values) if both else values, kind="stable")[:several]
            lower = -float(np.abs(values).max()) if both else float(values[0])
            return values[which], vectors[:, which], lower

        def extreme(bottom: float, top: float) -> float:
            return max(top, -bottom) if both else top

        def enough(smallest: float, largest: float, lower: float, upper: float) -> bool:
            return sharp(extreme(smallest, largest), extreme(lower, upper), level)

        negated = SymmetricMap(lambda v: np.asarray(-0.5 * (M @ v + M.T @ v)), n)
        best = extreme_eigenvalues(negated, several, memory, self.failure, enough, both=both)
        return -best.values, best.vectors, -extreme(best.lower, best.upper)

    def _made(self, u: Small, v: Small, sign: float) -> RankOneAtom | None:
        atom = super()._made(u, v, sign)
        return atom if atom is not None and np.array_equal(atom.u, atom.v) else None

    def sample(self, rng: np.random.Generator) -> Atom:
        v = unit(rng.standard_normal(self.n))
        return self._atom(v, v, float(rng.choice([-1.0, 1.0])) if self.symmetric else 1.0)

    def _size(self) -> object:
        return self.n


class SymmetricRankOne(_Symmetric):
    r"""The matrices :math:`\pm v v^\top` with unit vectors v of R^n; their hull is the nuclear-norm ball of symmetric
    matrices. `failure` is that of `RankOne`.

    >>> import pursuit as ps
    >>> ps.SymmetricRankOne(2).lmo(np.diag([1.0, -3.0])).vector
    array([[0., 0.],
           [0., 1.]])
    """

    symmetric = True

    def __init__(self, n: int, failure: float = 1e-6) -> None:
        super().__init__(n, failure)
        self.take_sizes(self._sizes(1.0 / math.sqrt(n), 2.0))

    def gauge(self, x: Array) -> float | None:
        if self.view.observed:
            return None
        values = symmetric_eigenvalues(x)
        return math.inf if values is None else float(np.abs(values).sum())


class Spectrahedron(_Symmetric):
    r"""The matrices :math:`v v^\top` with unit vectors v of R^n; their hull is the set of positive semidefinite
    matrices of trace one. `failure` is that of `RankOne`.

    >>> import pursuit as ps
    >>> Y = np.diag([2.0, 1.0, -1.0])
    >>> ps.minimize(ps.LeastSquares(Y), ps.conv(2 * ps.Spectrahedron(3))).x.round(3)
    array([[1.5, 0. , 0. ],
           [0. , 0.5, 0. ],
           [0. , 0. , 0. ]])
    """

    fixed_trace = True

    def __init__(self, n: int, failure: float = 1e-6) -> None:
        super().__init__(n, failure)
        self.take_sizes(self._sizes(-1.0 / math.sqrt(n), math.sqrt(2.0) if n > 1 else 0.0))

    def symmetrised(self) -> Atoms:
        both = SymmetricRankOne(self.n, self.failure)
        return both._with(view=self.view, shape=self.shape, width=None if self.width is None else both.width)

    def gauge(self, x: Array) -> float | None:
        if self.view.observed:
            return None
        values = symmetric_eigenvalues(x)
        if values is None or values[0] < -1e-12 * max(float(np.abs(values).max()), 0.0):
            return math.inf
        return float(values.sum())
