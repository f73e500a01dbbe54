"""Non-negative rank-one matrices: non-negative matrix factorisation as a pursuit."""

from __future__ import annotations

import math

import numpy as np

from pursuit.arguments import as_int_or_nan, require
from pursuit.arrays import Array, Small, everywhere
from pursuit.atoms.base import Found
from pursuit.atoms.factored import RankOneAtom
from pursuit.atoms.frames import Atom
from pursuit.atoms.matrices import Factored, RankOne, check_shape, leading
from pursuit.atoms.views import Matrix, dense, is_sparse
from pursuit.linalg import unit, unit_columns
from pursuit.linalg.lanczos import Memory


class NonnegativeRankOne(Factored):
    r"""The m x n matrices :math:`u v^\top` with unit vectors :math:`u, v \ge 0`; best used with `cone`.

    The best atom is hard to find: the oracle alternates :math:`u \leftarrow (-Gv)_+` and
    :math:`v \leftarrow (-G^\top u)_+` from several starts (Perron vectors of the negative part of G, its smallest
    entry, random ones) and finds a local optimum. The bound
    :math:`\langle G, uv^\top\rangle \ge -\|(-G)_+\|_2` is proved, and exact for :math:`G \le 0`. Gaps are computed from
    it: they are valid, but may stay positive at a minimum. `starts` counts the random ones; `failure` is that of
    `RankOne`, for the bound.

    >>> import pursuit as ps
    >>> Y = np.array([[2.0, 4.0], [1.0, 2.0]])                                     # non-negative and of rank one
    >>> r = ps.minimize(ps.LeastSquares(Y), ps.cone(ps.NonnegativeRankOne((2, 2))))
    >>> r.x.round(6), len(r.atoms)
    (array([[2., 4.],
           [1., 2.]]), 1)
    """

    def __init__(self, shape: tuple[int, int], starts: int = 4, failure: float = 1e-6) -> None:
        require(as_int_or_nan(starts) >= 0, "starts", starts, "a number of random starts")
        m, n = check_shape(shape)
        super().__init__((m, n), failure)
        self.starts, self.exact = int(starts), False
        self.radius, self.diameter = 1.0, math.sqrt(2.0) if m * n > 1 else 0.0
        self.width = -1.0 / math.sqrt(m * n)

    def _search(self, M: Matrix, several: int, level: float, memory: Memory) -> Found:
        M = M if is_sparse(M) else dense(M)
        negative = (-M).maximum(0) if is_sparse(M) else np.maximum(-M, 0.0)
        row, col, least = _smallest(M)
        if least >= 0:  # <M, u v'> >= least |u|_1 |v|_1 >= least
            u, v = np.eye(1, M.shape[0], row)[0], np.eye(1, M.shape[1], col)[0]
            return [self._atom(u, v, 1.0)], least
        transposed = M.shape[0] < M.shape[1]
        _, perron, upper = leading(negative.T if transposed else negative, 1, level, memory, self.failure)
        first = np.abs(negative.T @ perron[:, :1] if transposed else perron[:, :1])
        random = np.abs(np.random.default_rng(0).standard_normal((M.shape[1], self.starts)))
        V = np.column_stack([first, np.eye(1, M.shape[1], col)[0], random])
        return self._alternate(M, V, several), -upper

    def _alternate(self, M: Matrix, V: Small, several: int) -> list[RankOneAtom]:
        """Alternate from all columns of V at once: the local optima that they lead to, the best first, each once."""
        U, merits = V, np.full(V.shape[1], -np.inf)
        for _ in range(100):
            U = _clipped(-(M @ V))
            V, before = _clipped(-(M.T @ U)), merits
            merits = -np.einsum("ij,ij->j", U, M @ V)
            if (merits - before <= 1e-12 * merits.max()).all():
                break
        atoms: list[RankOneAtom] = []
        for i in np.argsort(-merits, kind="stable"):
            u, v = unit(U[:, i].copy()), unit(V[:, i].copy())
            new = all((a.u @ u) * (a.v @ v) < 1.0 - 1e-6 for a in atoms)
            if merits[i] > 0 and new and len(atoms) < several:
                atoms.append(self._atom(u, v, 1.0))
        return atoms

    def _made(self, u: Small, v: Small, sign: float) -> RankOneAtom | None:
        return super()._made(u, v, sign) if (u >= 0).all() and (v >= 0).all() else None

    def gauge(self, x: Array) -> float | None:
        return None if everywhere(x >= 0) else math.inf

    def sample(self, rng: np.random.Generator) -> Atom:
        u, v = (unit(np.abs(rng.standard_normal(k))) for k in self.view.dims)
        return self._atom(u, v, 1.0)

    def _is_atom(self, a: Array, tolerance: float) -> bool | None:
        return (
            RankOne(check_shape(self.view.dims)).contains(a) and everywhere(a >= 0) if not self.view.observed else None
        )


def _clipped(A: Small) -> Small:
    """The positive part, columns scaled to norm 1; a column without a positive entry becomes the basis vector of its
    largest entry."""
    out = np.maximum(A, 0.0)
    for j in np.flatnonzero(~out.any(axis=0)):
        out[int(A[:, j].argmax()), j] = 1.0
    return unit_columns(out)


def _smallest(M: Matrix) -> tuple[int, int, float]:
    """The place and value of the smallest entry; a sparse matrix is zero where it has none."""
    if not is_sparse(M):
        place = divmod(int(M.argmin()), int(M.shape[1]))
        return *place, float(M[place])
    coo = M.tocoo()
    e = int(coo.data.argmin())
    if coo.data[e] < 0 or M.nnz == M.shape[0] * M.shape[1]:
        return int(coo.row[e]), int(coo.col[e]), float(coo.data[e])
    row = int(np.diff(M.indptr).argmin())  # the row with fewest entries
    missing = np.setdiff1d(np.arange(M.shape[1]), M.indices[M.indptr[row] : M.indptr[row + 1]])
    return row, int(missing[0]), 0.0
