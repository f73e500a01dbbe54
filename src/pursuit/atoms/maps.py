"""Linear maps of atoms: a -> M a, for `A.through(M)`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_int_or_nan, number, real_array, require, sparse_matrix
from pursuit.arrays import Array, Indices, Space, column_squares, flat
from pursuit.atoms.frames import Atom
from pursuit.atoms.sparse import LiftedAtom, SparseAtom
from pursuit.linalg import operator

SLACK = 1e-3
"""More than the rounding of a Frobenius norm, relative to it."""


def _read_matrix(M: object) -> Array:
    """An array, or a sparse matrix by columns, of finite numbers."""
    if not sp.issparse(M):
        return real_array(M, "M")
    columns = sparse_matrix(M, "M")
    real_array(columns.data, "M")
    return columns


class LinearMap:
    """A matrix, sparse matrix or operator M that maps atoms of the given shape to vectors: a -> M a.

    With `columns` = K atoms are read as matrices of K columns, and their images are matrices, too. With `l2` > 0 the
    image of a is M a with sqrt(l2) a below it. `one_entry` says that the atoms have a single nonzero entry.
    """

    def __init__(
        self, M: object, shape: tuple[int, ...] | None, columns: int | None, l2: float, one_entry: bool = False
    ) -> None:
        one_or_more = columns is None or as_int_or_nan(columns) >= 1
        require(one_or_more, "columns", columns, "the number of columns of the matrices, at least 1")
        require(0 <= number(l2) < math.inf, "l2", l2, "a number of at least 0")
        self._operator, self._sparse = operator(M, "M"), sp.issparse(M)
        self.M: Any = _read_matrix(M) if self._operator is None else self._operator
        matrix = len(self.M.shape) == 2 and 0 not in self.M.shape
        require(matrix, "M", self.M, "a matrix (rows, length of an atom)")
        self.n, self.p = map(int, self.M.shape)
        if shape is not None and math.prod(shape) != self.p * (columns or 1):
            by = "" if columns is None else f" for each of {columns} columns"
            raise ValueError(f"M has {self.p} columns{by}, the atoms have {math.prod(shape)} entries.")
        self._across = () if columns is None else (int(columns),)
        self._root, self._one_entry = math.sqrt(number(l2)), one_entry
        self.lifted = self._root > 0
        self.plain = columns is None and not self.lifted
        """Whether the image of an atom a is the vector M a."""
        self.shape = (self.n + self.p if self.lifted else self.n, *self._across)
        arrays = not self._sparse and self._operator is None
        self.space = replace(Space.of(self.M[:, 0]), shape=self.shape) if arrays else None
        inner = Space.of(self.M[0, :]) if arrays else Space.default((1,))
        self.inner = replace(inner, shape=shape or (self.p, *self._across))

    def __call__(self, a: Atom) -> Atom:
        """The image of an atom. Of a sparse atom only the columns at its positions are read."""
        image = self._product(a)
        if not self.lifted:
            return Atom(image, a.source, a.coef)
        below = (self.p, *self._across)
        if isinstance(a, SparseAtom):
            return LiftedAtom(image, SparseAtom(a.positions, self._root * a.values, below), a.source, a.coef)
        xp = self.inner.xp
        return Atom(xp.concat([image, self._root * xp.reshape(a.dense(self.inner), below)]), a.source, a.coef)

    def _product(self, a: Atom) -> Array:
        """M a."""
        if not (isinstance(a, SparseAtom) and self._operator is None and 4 * len(a.positions) < self.p):
            return self.M @ self.inner.xp.reshape(a.dense(self.inner), (self.p, *self._across))
        if not self._across:
            return self._columns(a.positions) @ self.inner.put(a.values)
        rows, at = np.unique(a.positions // self._across[0], return_inverse=True)
        values = np.zeros((len(rows), *self._across))
        values[at, a.positions % self._across[0]] = a.values
        return self._columns(rows) @ self.inner.put(values)

    def adjoint(self, g: Array) -> Array:
        """The adjoint of the map at g, in the shape of an atom."""
        top = g[: self.n, ...] if self.lifted else g
        if self._operator is None:
            product = self.M.T @ top
        else:
            product = self.M.rmatmat(top) if self._across else self.M.rmatvec(top)
        if self.lifted:
            product = product + self._root * g[self.n :, ...]
        return self.inner.xp.reshape(product, self.inner.shape)

    @cached_property
    def norm(self) -> float | None:
        """An upper bound on ||image|| / ||a||, by the Frobenius norm of M, or by its longest column for atoms with one
        entry; None for an operator."""
        if self._operator is not None:
            return None
        if self._one_entry and not self._sparse:
            xp, (low, high) = self.inner.xp, self.inner.safe
            squares = column_squares(self.M) if self.inner.numpy else xp.sum(self.M * self.M, axis=0)
            longest = float(xp.max(squares))
            if low < longest < high:
                return (1.0 + SLACK) * math.hypot(math.sqrt(longest), self._root)
        entries = self.M.data if self._sparse else flat(self.M)
        return (1.0 + SLACK) * math.hypot(Space.of(entries).norm(entries), self._root)

    def __repr__(self) -> str:
        columns = f", columns={self._across[0]}" if self._across else ""
        return f"{self.n} x {self.p}{columns}{f', l2={self._root**2:g}' if self.lifted else ''}"

    def _columns(self, which: Indices) -> Array:
        if self._sparse or self.inner.numpy:
            return self.M[:, which]
        xp = self.inner.xp
        return xp.take(self.M, xp.asarray(which, device=self.inner.device), axis=1)
