r"""Views of matrices and tensors of low rank: which entries make up the vector of H.

A tensor of rank r is r weights and one factor matrix per mode, :math:`U_k` of shape (n_k, r):
:math:`X = \sum_i w_i\, u_{1i} \circ \dots \circ u_{Ni}`; a matrix has two modes, and X = A B'. Of a tensor one sees all
entries (`AllEntries`: H is the space of tensors), or N observed ones (`ObservedEntries`: H is R^N, and no dense tensor
is ever made). A view turns factors into a vector of H, and says how a gradient in H acts on the factors of one mode
(the MTTKRP, "matricised tensor times Khatri-Rao product").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit.arguments import host_array
from pursuit.arrays import Array, Indices, Small, Space, flat, host
from pursuit.metrics import Metric
from pursuit.threads import in_parallel

ENTRIES_PER_BLOCK = 1 << 11
"""Entries of a matrix that are computed together, so few that their products stay in the cache."""

MIN_COMPILED_PRODUCTS = 1 << 17
"""From this many multiplications on, the compiled kernel is faster than NumPy."""

Gradient = Callable[[Sequence[Small], int], Small]
"""(factors, k) -> the (n_k, r) derivatives of <g, sum_i u_1i o ... o u_Ni> in the factors of mode k."""


class DeviceMatrix:
    """A matrix of another array library; its products with small NumPy arrays are NumPy arrays."""

    def __init__(self, a: Array) -> None:
        self.a, self.shape = a, tuple(a.shape)
        self._space = Space.of(a)

    @property
    def T(self) -> DeviceMatrix:
        return DeviceMatrix(self._space.xp.permute_dims(self.a, (1, 0)))

    def __matmul__(self, other: object) -> Small:
        right = other.a if isinstance(other, DeviceMatrix) else self._space.put(other)
        return host(self._space.xp.matmul(self.a, right))

    def __add__(self, other: DeviceMatrix) -> Small:
        return host(self.a + other.a)


Matrix = Any
"""A gradient as a matrix M, dense, sparse or a `DeviceMatrix`: `M @ B` and `M.T @ A` are NumPy arrays."""


def is_sparse(M: Matrix) -> bool:
    """Whether M is a sparse matrix."""
    return bool(sp.issparse(M))


def dense(M: Matrix) -> Small:
    """M as an array of the host."""
    if is_sparse(M):
        return np.asarray(M.toarray())
    return host(M.a) if isinstance(M, DeviceMatrix) else np.asarray(M)


class Mode(NamedTuple):
    """The vector x of H as a linear function of one factor matrix V: the function V -> x, its transpose, which maps g
    to an (n_k, r) matrix, and the Hessian of V -> 1/2 <x, h x>, an r x r matrix for each row of V (or one for all)."""

    apply: Callable[[Small], Small]
    transpose: Callable[[Small], Small]
    curvature: Callable[[float | Small], Small]


class AllEntries:
    """All entries of a tensor are the vector of H."""

    observed = False

    def __init__(self, dims: Sequence[int]) -> None:
        self.dims = self.shape = tuple(dims)

    def synthesize(self, factors: Sequence[Small], w: Small) -> Small:
        """sum_i w_i u_1i o ... o u_Ni."""
        return np.asarray((factors[0] * w) @ khatri_rao(factors[1:]).T).reshape(self.dims)

    def unfoldings(self, g: Small) -> list[Matrix]:
        """G_(k), one per mode: (n_k, the rest)."""
        g = g.reshape(self.dims)
        return [np.moveaxis(g, k, 0).reshape(n, -1) for k, n in enumerate(self.dims)]

    def gradient(self, g: Small) -> Gradient:
        """The derivatives of <g, .> in the factors of each mode."""
        unfoldings = self.unfoldings(g)
        return lambda factors, k: np.asarray(unfoldings[k] @ khatri_rao(_without(factors, k)))

    def mode(self, factors: Sequence[Small], k: int) -> Mode:
        """The tensor as a linear function of the factors of mode k."""
        others, rest = _without(factors, k), _without(self.dims, k)
        K = khatri_rao(others)

        def curvature(h: float | Small) -> Small:
            if isinstance(h, float):
                return np.asarray(h * math.prod(U.T @ U for U in others))[None]
            H = self.unfoldings(h)[k]
            return np.stack([(H * K[:, i]) @ K for i in range(K.shape[1])], axis=1)

        return Mode(
            lambda V: np.moveaxis((V @ K.T).reshape(-1, *rest), 0, k),
            lambda g: np.asarray(self.unfoldings(g)[k] @ K),
            curvature,
        )

    def largest_entry(self, g: Small) -> tuple[int, ...]:
        """The index at which |g| is largest."""
        return tuple(int(i) for i in np.unravel_index(int(np.abs(g).argmax()), self.dims))

    # ------------------------------------------------------------------ matrices

    def matrix(self, g: Array) -> Matrix:
        """g as a matrix."""
        return g if isinstance(g, np.ndarray) else DeviceMatrix(g)

    def image(self, space: Space, A: Small, B: Small) -> Array:
        """A B' as a vector of H."""
        return space.put(A) @ space.put(B.T)

    def norm(self, u: Small, v: Small) -> float:
        """The norm of u v' in H."""
        return float(np.linalg.norm(u) * np.linalg.norm(v))

    def gram(self, metric: Metric, A: Small, B: Small) -> Small | None:
        """Inner products of the matrices a_i b_i', from their factors; None where the metric allows no formula."""
        return np.asarray(metric.h * (A.T @ A) * (B.T @ B)) if metric.uniform else None


class ObservedEntries:
    """N entries of a tensor are the vector of H; `indices[k]` holds their places in mode k.

    An entry is given once, and, if `whole`, every slice of every mode has one: a slice without would be undetermined.
    Entry (j, i) of a `symmetric` matrix is (i, j), so that a triangle is enough.
    """

    observed = True

    def __init__(
        self, dims: Sequence[int], indices: Sequence[Indices], symmetric: bool = False, whole: bool = True
    ) -> None:
        self.dims, self.shape = tuple(dims), indices[0].shape
        kind = np.int32 if len(dims) == 2 else np.intp  # the kernels for matrices read 32 bits
        self.indices: Indices = np.stack(indices).astype(kind)
        if not len(indices[0]):
            raise ValueError("no entry is given; give at least one observed entry.")
        for k, n in enumerate(dims):
            empty = np.bincount(np.concatenate(indices) if symmetric else indices[k], minlength=n) == 0
            if whole and empty.any():
                line = ("row", "column")[k] if len(dims) == 2 else f"mode {k}: slice"
                raise ValueError(
                    f"{line} {int(empty.argmax())} has no observed entry, so nothing determines it; leave it out."
                )
        place = labels(self.indices, dims)
        order = np.argsort(place, kind="stable")
        repeated = np.flatnonzero(np.diff(place[order]) == 0)
        if len(repeated):
            entry = tuple(self.indices[:, order[repeated[0] + 1]].tolist())
            raise ValueError(f"entry {entry} is observed twice; give each entry once.")
        self._order = None if (np.diff(order) == 1).all() else order

    @cached_property
    def _slices(self) -> list[tuple[Indices, Indices]]:
        """For each mode the entries in the order of its slices, and where these begin and end."""
        return [
            (np.argsort(i, kind="stable"), np.concatenate([[0], np.bincount(i, minlength=n).cumsum()]))
            for i, n in zip(self.indices, self.dims, strict=True)
        ]

    @cached_property
    def _columns(self) -> list[Indices]:
        """The column of each entry in each unfolding, empty columns left out."""
        modes = range(len(self.dims))
        return [labels(np.delete(self.indices, k, axis=0), _without(self.dims, k), gaps=False) for k in modes]

    def gather(self, factors: Sequence[Small], skip: int | None = None) -> Small:
        """(N, r): at each entry the product of the factors, without those of one mode."""
        first, *rest = (j for j in range(len(factors)) if j != skip)
        out = factors[first].take(self.indices[first], 0)
        for j in rest:
            out *= factors[j].take(self.indices[j], 0)
        return np.asarray(out)

    def synthesize(self, factors: Sequence[Small], w: Small) -> Small:
        return np.asarray(self.gather(factors) @ w)

    def _rows(self, g: Small, k: int) -> Matrix:
        """The (n_k, N) matrix R with (R z)_i = sum of g_e z_e over the entries e in slice i of mode k."""
        order, ends = self._slices[k]
        return sp.csr_array((g[order], order, ends), shape=(self.dims[k], len(g)))

    def unfoldings(self, g: Small) -> list[Matrix]:
        return [sp.csr_array((g, (i, c))) for i, c in zip(self.indices, self._columns, strict=True)]

    def gradient(self, g: Small) -> Gradient:
        rows = [self._rows(g, k) for k in range(len(self.dims))]
        return lambda factors, k: np.asarray(rows[k] @ self.gather(factors, k))

    def mode(self, factors: Sequence[Small], k: int) -> Mode:
        P, place = self.gather(factors, k), self.indices[k]

        def curvature(h: float | Small) -> Small:
            rows = self._rows(np.full(self.shape, h) if isinstance(h, float) else h, k)
            return np.stack([rows @ (P * P[:, [i]]) for i in range(P.shape[1])], axis=1)

        return Mode(
            lambda V: np.einsum("nr,nr->n", P, V.take(place, 0)),
            lambda g: np.asarray(self._rows(g, k) @ P),
            curvature,
        )

    def largest_entry(self, g: Small) -> tuple[int, ...]:
        return tuple(int(i) for i in self.indices[:, int(np.abs(g).argmax())])

    # ------------------------------------------------------------------ matrices

    @cached_property
    def _layout(self) -> tuple[Indices, Indices]:
        rows, cols = self.indices
        ends = np.cumsum(np.bincount(rows, minlength=self.dims[0]))
        return cols if self._order is None else cols[self._order], np.concatenate([[0], ends]).astype(np.int32)

    def matrix(self, g: Array) -> Matrix:
        """g as a sparse matrix; the arrays of its indices are shared by all such matrices."""
        data = host(g)
        data = data if self._order is None else data[self._order]
        return sp.csr_array((data, *self._layout), shape=(self.dims[0], self.dims[1]))

    def image(self, space: Space, A: Small, B: Small) -> Array:
        return space.put(row_products(A, B, *self.indices))

    def norm(self, u: Small, v: Small) -> float:
        rows, cols = self.indices
        return float(np.linalg.norm(u[rows] * v[cols]))

    def gram(self, metric: Metric, A: Small, B: Small) -> Small | None:
        """The same, in blocks of entries; None for metrics that are not diagonal."""
        if metric.h is None:
            return None
        rows, cols = self.indices
        weights = None if metric.uniform else host(flat(metric.h))[:, None]
        A, B, G = np.ascontiguousarray(A), np.ascontiguousarray(B), np.zeros((A.shape[1], A.shape[1]))
        for b in _blocks(len(rows)):
            Z = A.take(rows[b], axis=0) * B.take(cols[b], axis=0)
            G += Z.T @ ((metric.h if weights is None else weights[b]) * Z)
        return G


View = AllEntries | ObservedEntries


def _without(items: Sequence[Any], k: int) -> list[Any]:
    return [item for j, item in enumerate(items) if j != k]


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, ENTRIES_PER_BLOCK):
        yield slice(start, start + ENTRIES_PER_BLOCK)


def row_products(A: Small, B: Small, rows: Indices, cols: Indices) -> Small:
    """<A[rows[e]], B[cols[e]]> for every e: entries of A B', without the matrix."""
    out = np.empty(len(rows))
    if len(rows) * A.shape[1] < MIN_COMPILED_PRODUCTS or not native.is_built():
        for b in _blocks(len(rows)):
            np.einsum("ij,ij->i", A[rows[b]], B[cols[b]], out=out[b])
        return out
    kernel = native.core().row_products
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    i, j = rows.astype(np.int32, copy=False), cols.astype(np.int32, copy=False)

    def work(start: int, stop: int) -> None:
        kernel(A, B, i[start:stop], j[start:stop], out[start:stop])

    in_parallel(work, len(rows), 1 << 16)
    return out


def matrix_places(rows: object, cols: object, dims: Sequence[int]) -> tuple[Indices, Indices]:
    """The rows and columns of some entries of a matrix, checked."""
    i, j = check_places("rows", rows, dims[0]), check_places("cols", cols, dims[1])
    if i.shape != j.shape:
        raise ValueError(f"rows and cols have shapes {i.shape} and {j.shape}; give one of each per entry.")
    return i, j


def tensor_places(indices: Any, dims: Sequence[int]) -> list[Indices]:
    """(N, order) indices, or a tuple of one array per mode, as one array per mode, checked."""
    by_mode = isinstance(indices, tuple)
    where = host_array(list(indices) if by_mode else indices, "indices")
    where = where if by_mode else where.T
    if where.ndim != 2 or where.shape[0] != len(dims) or where.dtype.kind not in "iu":
        raise ValueError(f"indices have shape {where.T.shape} and dtype {where.dtype}; give (N, {len(dims)}) integers.")
    return [check_places(f"indices of mode {k}", where[k], n) for k, n in enumerate(dims)]


def check_places(name: str, given: object, size: int) -> Indices:
    """A list of integers from 0 to size - 1, checked."""
    places = host_array(given, name)
    if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer):
        raise TypeError(f"{name} is an array of {places.dtype} and shape {places.shape}; give a list of integers.")
    if len(places) and not 0 <= places.min() <= places.max() < size:
        raise ValueError(f"{name} reach from {places.min()} to {places.max()}; they must lie between 0 and {size - 1}.")
    return places.astype(np.intp)


def khatri_rao(matrices: Sequence[Small]) -> Small:
    """Columnwise Kronecker products: (n_1, r), (n_2, r), ... to (n_1 n_2 ..., r)."""
    out = matrices[0]
    for U in matrices[1:]:
        out = (out[:, None, :] * U[None, :, :]).reshape(-1, out.shape[1])
    return out


def labels(indices: Indices, dims: Sequence[int], gaps: bool = True) -> Indices:
    """One number for each column of an index array, in lexicographic order; without gaps they run from 0 on."""
    if gaps and math.prod(dims) < 1 << 62:
        return np.asarray(np.ravel_multi_index(tuple(indices), tuple(dims)))
    label = np.zeros(indices.shape[1], dtype=np.intp)
    for i, n in zip(indices, dims, strict=True):  # one mode after the other, so that nothing overflows
        label = np.unique(label * int(n) + i, return_inverse=True)[1]
    return label
