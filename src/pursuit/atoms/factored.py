"""Rank-one matrices kept as factors: atoms c u v', frames of them, and the two views of a matrix.

A view says which entries of a matrix make up the vector of H: all of them (`AllEntries`: H is the space of m x n
matrices), or N observed ones (`ObservedEntries`: H is R^N, and no m x n array is ever made). A view turns factors into
a vector of H, and a vector of H into a matrix that multiplies factors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit.arguments import host_array, real_array
from pursuit.arrays import Array, Indices, Small, Space, flat, host
from pursuit.atoms.frames import Atom
from pursuit.linalg import unit
from pursuit.metrics import Diagonal, Identity, Metric
from pursuit.threads import in_parallel


def is_sparse(M: Any) -> bool:
    """Whether M is a sparse matrix."""
    return bool(sp.issparse(M))


ENTRIES_PER_BLOCK = 1 << 11
"""Entries of a matrix that are computed together, so few that their products stay in the cache."""

MIN_COMPILED_PRODUCTS = 1 << 17
"""From this many multiplications on, the compiled kernel is faster than NumPy."""


class DeviceMatrix:
    """A matrix of another array library; its products with small NumPy arrays are NumPy arrays."""

    def __init__(self, a: Array) -> None:
        self.a, self.shape = a, tuple(a.shape)
        self._space = Space.of(a)

    @property
    def T(self) -> DeviceMatrix:
        return DeviceMatrix(self._space.xp.permute_dims(self.a, (1, 0)))

    def __matmul__(self, other: Any) -> Small:
        right = other.a if isinstance(other, DeviceMatrix) else self._space.put(other)
        return host(self._space.xp.matmul(self.a, right))

    def __add__(self, other: DeviceMatrix) -> Small:
        return host(self.a + other.a)


class AllEntries:
    """Matrices of shape (m, n), all entries."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = self.image_shape = shape

    def matrix(self, g: Array) -> Any:
        """g as a matrix M: `M @ B` and `M.T @ A` are NumPy arrays."""
        return g if isinstance(g, np.ndarray) else DeviceMatrix(g)

    def image(self, space: Space, A: Small, B: Small) -> Array:
        """A B' as a vector of H."""
        return space.put(A) @ space.put(B.T)

    def norm(self, u: Small, v: Small) -> float:
        return float(np.linalg.norm(u) * np.linalg.norm(v))

    def gram(self, metric: Metric, A: Small, B: Small) -> Small | None:
        """Inner products of the matrices a_i b_i', from their factors; None where the metric allows no formula."""
        if isinstance(metric, Identity):
            return np.asarray(metric.h * (A.T @ A) * (B.T @ B))
        return None


class ObservedEntries:
    """Matrices of shape (m, n) at the entries (rows[e], cols[e]); entry (j, i) of a `symmetric` matrix is (i, j)."""

    def __init__(self, shape: tuple[int, int], rows: Any, cols: Any, symmetric: bool = False) -> None:
        self.shape, (m, n) = shape, shape
        self.rows, self.cols = _places(rows, cols, shape)
        if not len(self.rows):
            raise ValueError("rows and cols are empty; give at least one observed entry.")
        self.image_shape = self.rows.shape
        for name, places, size in (("row", self.rows, m), ("column", self.cols, n)):
            seen = np.concatenate([self.rows, self.cols]) if symmetric else places
            empty = np.bincount(seen, minlength=size) == 0
            if empty.any():
                raise ValueError(
                    f"{name} {int(empty.argmax())} has no observed entry, so nothing determines it; leave it out."
                )
        flat_places = self.rows.astype(np.int64) * n + self.cols
        order = np.argsort(flat_places, kind="stable")
        repeated = np.flatnonzero(np.diff(flat_places[order]) == 0)
        if len(repeated):
            e = order[repeated[0] + 1]
            raise ValueError(f"entry ({self.rows[e]}, {self.cols[e]}) is observed twice; give each entry once.")
        self._order = None if (np.diff(order) == 1).all() else order
        self._indices = self.cols[order]
        self._pointers = np.concatenate([[0], np.cumsum(np.bincount(self.rows, minlength=m))]).astype(np.int32)

    def matrix(self, g: Array) -> Any:
        """g as a sparse matrix; the arrays of its indices are shared by all such matrices."""
        data = host(g)
        data = data if self._order is None else data[self._order]
        return sp.csr_array((data, self._indices, self._pointers), shape=self.shape)

    def image(self, space: Space, A: Small, B: Small) -> Array:
        """A B' at the entries."""
        return space.put(row_products(A, B, self.rows, self.cols))

    def norm(self, u: Small, v: Small) -> float:
        return float(np.linalg.norm(u[self.rows] * v[self.cols]))

    def gram(self, metric: Metric, A: Small, B: Small) -> Small | None:
        """Inner products of the matrices a_i b_i' over the observed entries, in blocks of entries; None for metrics
        that are not diagonal."""
        if not isinstance(metric, Diagonal):
            return None
        h: Any = metric.h if isinstance(metric, Identity) else host(flat(metric.h))[:, None]
        A, B, G = np.ascontiguousarray(A), np.ascontiguousarray(B), np.zeros((A.shape[1], A.shape[1]))
        for b in _blocks(len(self.rows)):
            Z = A.take(self.rows[b], axis=0) * B.take(self.cols[b], axis=0)
            G += Z.T @ ((h if isinstance(h, float) else h[b]) * Z)
        return G


View = AllEntries | ObservedEntries


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, ENTRIES_PER_BLOCK):
        yield slice(start, start + ENTRIES_PER_BLOCK)


def row_products(A: Small, B: Small, rows: Any, cols: Any) -> Small:
    """<A[rows[e]], B[cols[e]]> for every e: entries of A B', without the matrix."""
    out = np.empty(len(rows))
    if len(rows) * A.shape[1] < MIN_COMPILED_PRODUCTS or not native.is_built():
        for b in _blocks(len(rows)):
            np.einsum("ij,ij->i", A[rows[b]], B[cols[b]], out=out[b])
        return out
    kernel = native.core().row_products
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    rows, cols = rows.astype(np.int32, copy=False), cols.astype(np.int32, copy=False)

    def work(start: int, stop: int) -> None:
        kernel(A, B, rows[start:stop], cols[start:stop], out[start:stop])

    in_parallel(work, len(rows), 1 << 16)
    return out


def _places(rows: Any, cols: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Rows and columns of some entries, checked."""
    rows, cols = _indices("rows", rows, shape[0]), _indices("cols", cols, shape[1])
    if rows.shape != cols.shape:
        raise ValueError(f"rows and cols have shapes {rows.shape} and {cols.shape}; give one of each per entry.")
    return rows, cols


def _indices(name: str, given: Any, size: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    places = host_array(given, name)
    if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer):
        raise TypeError(f"{name} is an array of {places.dtype} and shape {places.shape}; give a list of integers.")
    if len(places) and not 0 <= places.min() <= places.max() < size:
        raise ValueError(f"{name} reach from {places.min()} to {places.max()}; they must lie between 0 and {size - 1}.")
    return places.astype(np.int32)


class RankOneAtom(Atom):
    """coef * u v', kept as u and v; equal for equal factors."""

    __slots__ = ("u", "v", "view")

    def __init__(self, u: Small, v: Small, view: View, coef: float = 1.0, source: Any = None) -> None:
        super().__init__(None, (u, v) if source is None else source, coef)
        self.u, self.v, self.view = u, v, view

    @property
    def vector(self) -> Array:
        return self.dense(Space.default(self.view.image_shape))

    def dense(self, space: Space) -> Array:
        return self.view.image(space, self.coef * self.u[:, None], self.v[:, None])

    def dot(self, space: Space, g: Array) -> float:
        return float(self.coef * (self.u @ (self.view.matrix(g) @ self.v)))

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        return x + c * self.dense(space)

    def scaled(self, c: float) -> RankOneAtom:
        return RankOneAtom(self.u, self.v, self.view, c * self.coef, self.source)

    def norm(self, space: Space) -> float:
        return float(abs(self.coef) * self.view.norm(self.u, self.v))

    def distance(self, space: Space, other: Atom) -> float:
        if isinstance(other, RankOneAtom) and other.u is self.u and other.v is self.v:
            if other.coef == self.coef:
                return 0.0
            return abs(other.coef - self.coef) / (abs(self.coef) or 1.0) * self.norm(space)
        return super().distance(space, other)

    def mismatch(self, space: Space) -> str | None:
        seen = self.view.image_shape
        return None if seen == space.shape else f"shape {seen} where f lives on {space.shape}"

    def key(self, signless: bool) -> Hashable:
        digest = hashlib.blake2b(self.u.tobytes(), digest_size=16)
        digest.update(self.v.tobytes())
        return digest.digest(), abs(self.coef) if signless else self.coef


def canonical_atom(u: Small, v: Small, view: View, sign: float) -> RankOneAtom:
    """The atom sign * u v', with factors whose largest entry is positive, so that equal atoms have equal factors."""
    flip = 1.0
    same = u is v
    if u[np.abs(u).argmax()] < 0:
        u, flip = -u, -flip
    if same:
        return RankOneAtom(u, u, view, sign)
    if v[np.abs(v).argmax()] < 0:
        v, flip = -v, -flip
    return RankOneAtom(np.ascontiguousarray(u), np.ascontiguousarray(v), view, sign * flip)


class FactoredFrame:
    """Rank-one atoms of one view as two matrices of factors, a column each."""

    kind: ClassVar[type[Atom]] = RankOneAtom

    def __init__(self, space: Space) -> None:
        self.space = space
        self._atoms: list[RankOneAtom] = []
        self._factors: tuple[Small, Small] | None = None

    @property
    def view(self) -> View:
        view: View = self._atoms[0].view
        return view

    @property
    def factors(self) -> tuple[Small, Small]:
        """A and B with one column per atom, the coefficients in A."""
        if self._factors is None:
            self._factors = columns(self._atoms)
        return self._factors

    def append(self, atom: Atom) -> None:
        assert isinstance(atom, RankOneAtom)
        self._atoms.append(atom)
        self._factors = None

    def keep(self, which: Indices) -> None:
        self._atoms = [self._atoms[i] for i in which]
        self._factors = None

    def analyze(self, g: Array) -> Small:
        A, B = self.factors
        return np.asarray(np.einsum("ij,ij->j", A, self.view.matrix(g) @ B))

    def synthesize(self, w: Small) -> Array:
        A, B = self.factors
        return self.view.image(self.space, A * w, B)

    def inner(self, metric: Metric, atom: Atom) -> Small:
        if isinstance(metric, Identity) and isinstance(atom, RankOneAtom) and isinstance(self.view, AllEntries):
            A, B = self.factors
            return np.asarray(metric(atom.coef * (A.T @ atom.u) * (B.T @ atom.v)))
        return self.analyze(metric(atom.dense(self.space)))

    def gram(self, metric: Metric, which: Indices) -> Small:
        A, B = self.factors
        G = self.view.gram(metric, A[:, which], B[:, which])
        return np.stack([self.inner(metric, self._atoms[i])[which] for i in which]) if G is None else G


def columns(atoms: Sequence[RankOneAtom]) -> tuple[Small, Small]:
    """The factors of some atoms as the columns of A and B, the coefficients in A."""
    A = np.column_stack([a.coef * a.u for a in atoms])
    return A, np.column_stack([a.v for a in atoms])


class LowRank(NamedTuple):
    """The matrix U diag(s) V', with orthonormal columns and s decreasing."""

    U: Small
    s: Small
    V: Small

    def at(self, rows: Any, cols: Any) -> Small:
        """The entries (rows[e], cols[e]).

        >>> LowRank(np.eye(3)[:, :1], np.array([2.0]), np.eye(2)[:, 1:]).at([0, 0, 1], [0, 1, 1])
        array([0., 2., 0.])
        """
        places = _places(rows, cols, (len(self.U), len(self.V)))
        return row_products(self.U * self.s, self.V, *places)

    def toarray(self) -> Small:
        """The matrix itself."""
        return np.asarray((self.U * self.s) @ self.V.T)

    def curves(self, most: int) -> list[Small]:
        """The vectors of the first components, for figures."""
        return [self.U[:, :most], self.V[:, :most]]


def compress(A: Small, B: Small, drop: float = 1e-14) -> LowRank:
    """A B' as U diag(s) V', without singular values below `drop` times the largest."""
    (QA, RA), (QB, RB) = np.linalg.qr(A), np.linalg.qr(B)
    u, s, vt = np.linalg.svd(RA @ RB.T, full_matrices=False)
    k = max(int((s > drop * s[0]).sum()), 1) if len(s) else 0
    return LowRank(QA @ u[:, :k], s[:k], QB @ vt[:k].T)


def factors_of(source: Any, shape: tuple[int, int]) -> tuple[Small, Small] | None:
    """Unit vectors along u and v for a source (u, v); None for a source of another kind."""
    if not (isinstance(source, tuple) and len(source) == 2 and all(isinstance(x, np.ndarray) for x in source)):
        return None
    if (source[0].shape, source[1].shape) != ((shape[0],), (shape[1],)):
        return None
    u, v = (real_array(x, "a factor of an atom") for x in source)
    return unit_factors(u, u if source[1] is source[0] else v)


def unit_factors(u: Small, v: Small) -> tuple[Small, Small]:
    """Unit vectors along u and v, one array if they are one."""
    left = unit(u)
    return left, left if v is u else unit(v)
