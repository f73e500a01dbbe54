r"""Rank-one tensors kept as factors, and sums of a few of them: the algebra of the CP decomposition.

A tensor of rank r is r weights and one factor matrix per mode, :math:`U_k` of shape (n_k, r):
:math:`X = \sum_i w_i\, u_{1i} \circ \dots \circ u_{Ni}`. Inner products of such tensors are Hadamard products of the
small matrices :math:`U_k^\top V_k`. A *view* says which entries of a tensor make up the vector of H, all or
the observed ones, and how a gradient there acts on the factors of one mode (the MTTKRP, "matricised tensor times
Khatri-Rao product").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import host_array
from pursuit.arrays import Array, Indices, Small, Space, host
from pursuit.atoms.frames import Atom
from pursuit.linalg import EPS, unit
from pursuit.metrics import Identity, Metric

MAX_GRAM_SIDE = 512
"""Up to this length of the shorter side, the norm of an unfolding comes from the eigenvalues of its Gram matrix."""


class Factors(tuple[Small, ...]):
    """The unit vectors of a rank-one tensor, one per mode, each with its largest entry positive; hashable."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(u.tobytes() for u in self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factors) and all(map(np.array_equal, self, other))

    @classmethod
    def of(cls, vectors: Sequence[Small]) -> tuple[Factors, float]:
        """Factors along any vectors, one per mode, and the product of the signs that were taken out of them."""
        signs = [-1.0 if u[np.abs(u).argmax()] < 0 else 1.0 for u in vectors]
        return cls(c * unit(u) for u, c in zip(vectors, signs, strict=True)), math.prod(signs)


class CP(NamedTuple):
    """A tensor of low rank: `weights` (r,) and one matrix (n_k, r) of unit columns per mode.

    >>> T = CP(np.array([2.0]), [np.ones((2, 1)), np.ones((3, 1)), np.eye(2)[:, :1]])
    >>> T.at([(0, 0, 0), (1, 2, 1)]), T.full().shape
    (array([2., 0.]), (2, 3, 2))
    """

    weights: Small
    factors: list[Small]

    def full(self) -> Small:
        """All entries."""
        return AllEntries([len(U) for U in self.factors]).synthesize(self.factors, self.weights)

    def at(self, indices: Any) -> Small:
        """The entries at (N, order) indices, or at one array of indices per mode."""
        where = by_mode(indices)
        return np.asarray(math.prod(U[i] for U, i in zip(self.factors, where, strict=True)) @ self.weights)

    def curves(self, most: int) -> list[Small]:
        """The vectors of the largest components, for figures."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:most]
        return [U[:, order] for U in self.factors]


class TensorAtom(Atom):
    """coef * u_1 o ... o u_N, kept as its factors."""

    __slots__ = ()
    source: Factors

    def __init__(self, factors: Factors, coef: float) -> None:
        super().__init__(None, factors, coef)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.source))

    @property
    def vector(self) -> Array:
        return self.dense(Space.default(self.shape))

    def dense(self, space: Space) -> Array:
        return space.put(AllEntries(self.shape).synthesize([u[:, None] for u in self.source], np.array([self.coef])))

    def dot(self, space: Space, g: Array) -> float:
        out = host(g)
        for u in reversed(self.source):
            out = out @ u
        return self.coef * float(out)

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        return x + c * self.dense(space)

    def scaled(self, c: float) -> TensorAtom:
        return TensorAtom(self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        return abs(self.coef)

    def mismatch(self, space: Space) -> str | None:
        return None if self.shape == space.shape else f"shape {self.shape} where f lives on {space.shape}"


class TensorFrame:
    """Rank-one tensors as one factor matrix per mode, on the host."""

    kind: ClassVar[type[Atom]] = TensorAtom
    view: ClassVar[Any] = None  # a tensor has the shape of H, so all share one frame

    def __init__(self, space: Space) -> None:
        self.space, self._entries = space, AllEntries(space.shape)
        self.coefs = np.zeros(0)
        self.factors = [np.zeros((n, 0)) for n in space.shape]

    def append(self, atom: Atom) -> None:
        assert isinstance(atom, TensorAtom)
        self.coefs = np.append(self.coefs, atom.coef)
        columns = zip(self.factors, atom.source, strict=True)
        self.factors = [np.ascontiguousarray(np.column_stack([U, u])) for U, u in columns]

    def keep(self, which: Indices) -> None:
        self.coefs = self.coefs[which]
        self.factors = [np.ascontiguousarray(U[:, which]) for U in self.factors]  # in the order that `append` makes

    def analyze(self, g: Array) -> Small:
        products = self._entries.gradient(host(g))(self.factors, 0)
        return np.asarray(self.coefs * np.einsum("ir,ir->r", products, self.factors[0]))

    def synthesize(self, w: Small) -> Array:
        return self.space.put(self._entries.synthesize(self.factors, w * self.coefs))

    def inner(self, metric: Metric, atom: Atom) -> Small:
        if not (isinstance(atom, TensorAtom) and isinstance(metric, Identity)):
            return self.analyze(metric(atom.dense(self.space)))
        cosines = math.prod(U.T @ u for U, u in zip(self.factors, atom.source, strict=True))
        return np.asarray(metric.h * atom.coef * self.coefs * cosines)

    def gram(self, metric: Metric, which: Indices) -> Small:
        units = [U[:, which] for U in self.factors]
        if isinstance(metric, Identity):
            return np.asarray(metric.h * math.prod(U.T @ U for U in units) * np.outer(*2 * [self.coefs[which]]))
        atoms = [TensorAtom(Factors(U[:, i] for U in units), c) for i, c in enumerate(self.coefs[which])]
        return np.stack([self.inner(metric, a)[which] for a in atoms])


def by_mode(indices: Any) -> np.ndarray[Any, Any]:
    """(N, order) indices, or a tuple of one array per mode, as an (order, N) array."""
    by_mode = isinstance(indices, tuple)
    where = host_array(list(indices) if by_mode else indices, "indices")
    return where if by_mode else where.T


def khatri_rao(matrices: Sequence[Small]) -> Small:
    """Columnwise Kronecker products: (n_1, r), (n_2, r), ... to (n_1 n_2 ..., r)."""
    out = matrices[0]
    for U in matrices[1:]:
        out = (out[:, None, :] * U[None, :, :]).reshape(-1, out.shape[1])
    return out


def labels(indices: Indices, dims: Sequence[int]) -> Indices:
    """One number for each column of an index array; equal columns have equal numbers, which run from 0 without gaps."""
    label = np.zeros(indices.shape[1], dtype=np.intp)
    for i, n in zip(indices, dims, strict=True):  # one mode after the other, so that nothing overflows
        label = np.unique(label * int(n) + i, return_inverse=True)[1]
    return label


def spectral_bound(G: Any) -> tuple[float, Small | None]:
    """An upper bound on the spectral norm of a dense or sparse matrix, and a leading left singular vector or None.

    Where one side is small, the bound is the norm from the eigenvalues of a Gram matrix, enlarged by their rounding
    error, and the vector comes with it; else the root of the largest row sum times the largest column sum of |G|.
    """
    rows, columns = G.shape
    if min(rows, columns) > MAX_GRAM_SIDE:
        sizes = abs(G)
        return math.sqrt(float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max())), None
    square = G @ G.T if rows <= columns else G.T @ G
    values, vectors = np.linalg.eigh(square if isinstance(square, np.ndarray) else square.todense())
    slack = 1.0 + 8.0 * EPS * (rows + columns)
    lead = vectors[:, -1] if rows <= columns else G @ vectors[:, -1]
    return math.sqrt(max(float(values[-1]), 0.0)) * slack, lead


class Mode(NamedTuple):
    """The vector x of H as a linear function of one factor matrix V: the function V -> x, its transpose, which maps g
    to an (n_k, r) matrix, and the Hessian of V -> 1/2 <x, h x>, an r x r matrix for each row of V (or one for all)."""

    apply: Callable[[Small], Small]
    transpose: Callable[[Small], Small]
    curvature: Callable[[Any], Small]


class AllEntries:
    """The view of a tensor that makes all its entries the vector of H."""

    def __init__(self, dims: Sequence[int]) -> None:
        self.dims = self.shape = tuple(dims)

    def synthesize(self, factors: Sequence[Small], w: Small) -> Small:
        """sum_i w_i u_1i o ... o u_Ni."""
        return np.asarray((factors[0] * w) @ khatri_rao(factors[1:]).T).reshape(self.dims)

    def unfoldings(self, g: Small) -> list[Small]:
        """G_(k), one per mode: (n_k, the rest)."""
        g = g.reshape(self.dims)
        return [np.moveaxis(g, k, 0).reshape(n, -1) for k, n in enumerate(self.dims)]

    def gradient(self, g: Small) -> Any:
        """(factors, k) -> the (n_k, r) derivatives of <g, sum_i u_1i o ... o u_Ni> in the factors of mode k."""
        unfoldings = self.unfoldings(g)
        return lambda factors, k: unfoldings[k] @ khatri_rao([U for j, U in enumerate(factors) if j != k])

    def mode(self, factors: Sequence[Small], k: int) -> Mode:
        """The tensor as a linear function of the factors of mode k."""
        others = [U for j, U in enumerate(factors) if j != k]
        K, rest = khatri_rao(others), [n for j, n in enumerate(self.dims) if j != k]

        def curvature(h: Any) -> Small:
            if isinstance(h, float):
                return np.asarray(h * math.prod(U.T @ U for U in others))[None]
            H = self.unfoldings(h)[k]
            return np.stack([(H * K[:, i]) @ K for i in range(K.shape[1])], axis=1)

        return Mode(
            lambda V: np.moveaxis((V @ K.T).reshape(-1, *rest), 0, k),
            lambda g: self.unfoldings(g)[k] @ K,
            curvature,
        )

    def largest_entry(self, g: Small) -> tuple[int, ...]:
        """The index at which |g| is largest."""
        return tuple(int(i) for i in np.unravel_index(int(np.abs(g).argmax()), self.dims))


class ObservedEntries:
    """The view of a tensor that makes N of its entries the vector of H."""

    def __init__(self, dims: Sequence[int], indices: Indices) -> None:
        self.dims, self.shape, self.indices = tuple(dims), (indices.shape[1],), indices
        self._sorted = [np.argsort(i, kind="stable") for i in indices]
        self._ends = [
            np.concatenate([[0], np.bincount(i, minlength=n).cumsum()]) for i, n in zip(indices, dims, strict=True)
        ]
        self._columns = [self._column(k) for k in range(len(dims))]

    def _column(self, k: int) -> Indices:
        """The column of each entry in the k-th unfolding, empty columns left out."""
        return labels(np.delete(self.indices, k, axis=0), [n for j, n in enumerate(self.dims) if j != k])

    def gather(self, factors: Sequence[Small], skip: int | None = None) -> Small:
        """(N, r): at each entry the product of the factors, without those of one mode."""
        first, *rest = (j for j in range(len(factors)) if j != skip)
        out = factors[first].take(self.indices[first], 0)
        for j in rest:
            out *= factors[j].take(self.indices[j], 0)
        return np.asarray(out)

    def synthesize(self, factors: Sequence[Small], w: Small) -> Small:
        return np.asarray(self.gather(factors) @ w)

    def _rows(self, g: Small, k: int) -> Any:
        """The (n_k, N) matrix R with (R z)_i = sum of g_e z_e over the entries e in slice i of mode k."""
        order = self._sorted[k]
        return sp.csr_array((g[order], order, self._ends[k]), shape=(self.dims[k], len(g)))

    def unfoldings(self, g: Small) -> list[Any]:
        return [sp.csr_array((g, (i, c))) for i, c in zip(self.indices, self._columns, strict=True)]

    def gradient(self, g: Small) -> Any:
        rows = [self._rows(g, k) for k in range(len(self.dims))]
        return lambda factors, k: rows[k] @ self.gather(factors, k)

    def mode(self, factors: Sequence[Small], k: int) -> Mode:
        P, place = self.gather(factors, k), self.indices[k]

        def curvature(h: Any) -> Small:
            rows = self._rows(np.full(self.shape, h) if isinstance(h, float) else h, k)
            return np.stack([rows @ (P * P[:, [i]]) for i in range(P.shape[1])], axis=1)

        return Mode(
            lambda V: np.einsum("nr,nr->n", P, V.take(place, 0)),
            lambda g: self._rows(g, k) @ P,
            curvature,
        )

    def largest_entry(self, g: Small) -> tuple[int, ...]:
        return tuple(int(i) for i in self.indices[:, int(np.abs(g).argmax())])


View = AllEntries | ObservedEntries
