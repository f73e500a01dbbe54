"""Rank-one matrices and tensors kept as factors, frames of them, and sums of a few of them (`LowRank`, `CP`).

Inner products of such tensors are Hadamard products of the small matrices U_k' V_k of their factors.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from pursuit.arguments import real_array
from pursuit.arrays import Array, Indices, Small, Space, host
from pursuit.atoms.frames import Atom, CompactAtom, Frame, Source
from pursuit.atoms.views import AllEntries, View, matrix_places, row_products, tensor_places
from pursuit.linalg import unit
from pursuit.metrics import Metric


class _FactoredFrame(Frame):
    """Atoms as matrices of factors, a column each, made again after a change."""

    _columns: tuple[Array, Array] | None = None

    def append(self, atom: Atom) -> None:
        super().append(atom)
        self._columns = None

    def keep(self, which: Indices) -> None:
        super().keep(which)
        self._columns = None


class FactoredFrame(_FactoredFrame):
    """Rank-one matrices of one view as two matrices of factors."""

    def holds(self, atom: Atom) -> bool:
        return super().holds(atom) and isinstance(atom, RankOneAtom) and atom.view is self.view

    @property
    def view(self) -> View:
        view: View = self.atoms[0].view
        return view

    @property
    def factors(self) -> tuple[Small, Small]:
        """A and B with one column per atom, the coefficients in A."""
        if self._columns is None:
            self._columns = columns(self.atoms)
        return self._columns

    def analyze(self, g: Array) -> Small:
        A, B = self.factors
        return np.asarray(np.einsum("ij,ij->j", A, self.view.matrix(g) @ B))

    def synthesize(self, w: Small) -> Array:
        A, B = self.factors
        return self.view.image(self.space, A * w, B)

    def inner(self, metric: Metric, atom: Atom) -> Small:
        if self.view.observed or not metric.uniform or not isinstance(atom, RankOneAtom):
            return super().inner(metric, atom)
        A, B = self.factors
        return np.asarray(metric.h * (atom.coef * (A.T @ atom.u) * (B.T @ atom.v)))

    def gram(self, metric: Metric, which: Indices) -> Small:
        A, B = self.factors
        G = self.view.gram(metric, A[:, which], B[:, which])
        return super().gram(metric, which) if G is None else G


class RankOneAtom(CompactAtom):
    """coef * u v', kept as u and v; equal for equal factors."""

    __slots__ = ("u", "v", "view")
    frame = FactoredFrame
    fields = ("u", "v", "view", "coef", "source")

    def __init__(self, u: Small, v: Small, view: View, coef: float = 1.0, source: Source = None) -> None:
        super().__init__((u, v) if source is None else source, coef)
        self.u, self.v, self.view = u, v, view

    @property
    def shape(self) -> tuple[int, ...]:
        return self.view.shape

    def dense(self, space: Space) -> Array:
        return self.view.image(space, self.coef * self.u[:, None], self.v[:, None])

    def dot(self, space: Space, g: Array) -> float:
        return float(self.coef * (self.u @ (self.view.matrix(g) @ self.v)))

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


def columns(atoms: Sequence[RankOneAtom]) -> tuple[Small, Small]:
    """The factors of some atoms as the columns of A and B, the coefficients in A."""
    A = np.column_stack([a.coef * a.u for a in atoms])
    return A, np.column_stack([a.v for a in atoms])


class LowRank(NamedTuple):
    """The matrix U diag(s) V', with orthonormal columns and s decreasing."""

    U: Small
    s: Small
    V: Small

    def at(self, rows: object, cols: object) -> Small:
        """The entries (rows[e], cols[e]).

        >>> LowRank(np.eye(3)[:, :1], np.array([2.0]), np.eye(2)[:, 1:]).at([0, 0, 1], [0, 1, 1])
        array([0., 2., 0.])
        """
        return row_products(self.U * self.s, self.V, *matrix_places(rows, cols, (len(self.U), len(self.V))))

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


def read_factors(source: Source, shape: tuple[int, ...]) -> tuple[Small, Small] | None:
    """The vectors of a source (u, v), checked; None for a source of another kind."""
    if not (isinstance(source, tuple) and len(source) == 2 and all(isinstance(x, np.ndarray) for x in source)):
        return None
    if (source[0].shape, source[1].shape) != ((shape[0],), (shape[1],)):
        return None
    u, v = (real_array(x, "a factor of an atom") for x in source)
    return u, u if source[1] is source[0] else v


# ---------------------------------------------------------------------- tensors


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

    @staticmethod
    def stack(sources: Sequence[Sequence[Small]], dims: Sequence[int]) -> list[Small]:
        """The factors of some tensors as the columns of one matrix per mode."""
        return [np.array([source[k] for source in sources]).reshape(-1, n).T for k, n in enumerate(dims)]


class TensorFrame(_FactoredFrame):
    """Rank-one tensors, all entries, as one factor matrix per mode, on the host."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._entries = AllEntries(space.shape)

    @property
    def factors(self) -> tuple[list[Small], Small]:
        """The factor matrices, and the coefficients."""
        if self._columns is None:
            units = Factors.stack([a.factors for a in self.atoms], self.space.shape)
            self._columns = [np.ascontiguousarray(U) for U in units], np.array([a.coef for a in self.atoms])
        return self._columns

    def analyze(self, g: Array) -> Small:
        factors, coefs = self.factors
        products = self._entries.gradient(host(g))(factors, 0)
        return np.asarray(coefs * np.einsum("ir,ir->r", products, factors[0]))

    def synthesize(self, w: Small) -> Array:
        factors, coefs = self.factors
        return self.space.put(self._entries.synthesize(factors, w * coefs))

    def inner(self, metric: Metric, atom: Atom) -> Small:
        if not metric.uniform or not isinstance(atom, TensorAtom):
            return super().inner(metric, atom)
        factors, coefs = self.factors
        cosines = math.prod(U.T @ u for U, u in zip(factors, atom.factors, strict=True))
        return np.asarray(metric.h * atom.coef * coefs * cosines)

    def gram(self, metric: Metric, which: Indices) -> Small:
        if not metric.uniform:
            return super().gram(metric, which)
        factors, coefs = self.factors
        cosines = math.prod(U[:, which].T @ U[:, which] for U in factors)
        return np.asarray(metric.h * cosines * np.outer(*2 * [coefs[which]]))


class TensorAtom(CompactAtom):
    """coef * u_1 o ... o u_N, kept as its factors."""

    __slots__ = ("factors",)
    frame = TensorFrame
    fields = ("factors", "coef", "source")

    def __init__(self, factors: Factors, coef: float, source: Source = None) -> None:
        super().__init__(factors if source is None else source, coef)
        self.factors = factors

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.factors))

    def dense(self, space: Space) -> Array:
        return space.put(AllEntries(self.shape).synthesize([u[:, None] for u in self.factors], np.array([self.coef])))

    def dot(self, space: Space, g: Array) -> float:
        out = host(g)
        for u in reversed(self.factors):
            out = out @ u
        return self.coef * float(out)

    def scaled(self, c: float) -> TensorAtom:
        return TensorAtom(self.factors, c * self.coef, self.source)

    def norm(self, space: Space) -> float:
        return abs(self.coef)


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

    def at(self, indices: object) -> Small:
        """The entries at (N, order) indices, or at one array of indices per mode."""
        where = tensor_places(indices, [len(U) for U in self.factors])
        return np.asarray(math.prod(U[i] for U, i in zip(self.factors, where, strict=True)) @ self.weights)

    def curves(self, most: int) -> list[Small]:
        """The vectors of the largest components, for figures."""
        order = np.argsort(-np.abs(self.weights), kind="stable")[:most]
        return [U[:, order] for U in self.factors]
