"""Matrices u v' whose factors come from sets of vectors: low rank with sparse, grouped or listed factors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pursuit.arguments import as_int_or_nan, require
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import Atoms, Found, as_atom
from pursuit.atoms.factored import LowRank, RankOneAtom, compress, read_factors
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.matrices import Factored, leading
from pursuit.atoms.views import DeviceMatrix, Matrix
from pursuit.linalg.lanczos import Memory


class Outer(Factored):
    r"""The matrices :math:`u v^\top` with u from a set A of vectors and v from a set B, such as `KSupport` for sparse
    factors, `Groups`, a `Dictionary`, or ``Ball(n, 2)`` for free ones.

    The best pair is hard to find: the oracle alternates :math:`u \leftarrow \mathrm{LMO}_A(Gv)` and
    :math:`v \leftarrow \mathrm{LMO}_B(G^\top u)` from the leading singular vector and from `starts` random ones, and
    finds a local optimum. Proved is :math:`\langle G, uv^\top\rangle \ge -\mathrm{radius}(A)\,\mathrm{radius}(B)\,
    \|G\|_2`. `failure` is that of `RankOne`, for this bound.

    >>> import pursuit as ps
    >>> Y = np.outer([0.0, 3.0, 4.0], [1.0, 0.0, 0.0, 1.0])                        # sparse factors
    >>> A = ps.Outer(ps.KSupport(3, 2), ps.KSupport(4, 2))
    >>> r = ps.minimize(ps.LeastSquares(Y + 0.1), ps.lin(A), stop=ps.Stop(atoms=1))
    >>> abs(r.coef.U).round(1).ravel(), abs(r.coef.V).round(1).ravel()
    (array([0. , 0.6, 0.8]), array([0.7, 0. , 0. , 0.7]))
    """

    spherical = False

    def __init__(self, A: Atoms, B: Atoms, starts: int = 8, failure: float = 1e-6) -> None:
        for name, S in (("A", A), ("B", B)):
            vectors = isinstance(S, Atoms) and S.shape is not None and len(S.shape) == 1
            require(vectors, name, S, "a set of vectors, such as KSupport(n, k)")
        require(as_int_or_nan(starts) >= 0, "starts", starts, "a number of random starts")
        super().__init__((A.shape[0], B.shape[0]), failure)  # type: ignore[index]
        self.A, self.B, self.starts, self.exact = A, B, int(starts), False
        self.symmetric = A.symmetric or B.symmetric
        if A.radius is not None and B.radius is not None:
            self.radius = A.radius * B.radius
            self.diameter = 2.0 * self.radius
        if A.symmetric and B.symmetric and A.width and B.width:  # |u'Gv| >= width width ||G||_2 for some u and v
            self.width = A.width * B.width / math.sqrt(min(self.view.dims))

    def _search(self, M: Matrix, several: int, level: float, memory: Memory) -> Found:
        M = host(M.a) if isinstance(M, DeviceMatrix) else M
        transposed = M.shape[0] < M.shape[1]
        _, V, norm = leading(M.T if transposed else M, 1, level, memory, self.failure)
        first = M.T @ V if transposed else V
        random = np.random.default_rng(0).standard_normal((M.shape[1], self.starts))
        found = [self._alternate(M, v) for v in np.column_stack([first, -first, random]).T]
        atoms: list[RankOneAtom] = []
        for _, u, v in sorted(found, key=lambda answer: answer[0]):
            new = all((a.u @ u) * (a.v @ v) < (1.0 - 1e-6) * (u @ u) * (v @ v) for a in atoms)
            if new and len(atoms) < several:
                atoms.append(self._atom(u, v, 1.0))
        return atoms, -math.inf if self.radius is None else -self.radius * norm

    def _alternate(self, M: Matrix, v: Small) -> tuple[float, Small, Small]:
        """A local minimum of u'Mv, and its u and v."""
        best = math.inf, v, v
        for _ in range(100):
            u = _best(self.A, M @ v)
            v = _best(self.B, M.T @ u)
            value = float(u @ (M @ v))
            if value >= best[0] - 1e-12 * abs(best[0]):
                break
            best = value, u, v
        return best

    def _atom(self, u: Small, v: Small, sign: float) -> RankOneAtom:
        return RankOneAtom(u, v, self.view, sign)

    def _made(self, u: Small, v: Small, sign: float) -> RankOneAtom | None:
        return None if self.A.contains(u) is False or self.B.contains(v) is False else self._atom(u, v, sign)

    def coefficients(self, sources: Sequence[Source], values: Small) -> LowRank | None:
        pairs = [read_factors(source, self.view.dims) for source in sources]
        if None in pairs:
            return None
        m, n = self.view.dims
        left = np.reshape([c * pair[0] for pair, c in zip(pairs, values, strict=True) if pair], (-1, m))
        return compress(left.T, np.reshape([pair[1] for pair in pairs if pair], (-1, n)).T)

    def sample(self, rng: np.random.Generator) -> Atom:
        u, v = (_dense(S, as_atom(S.sample(rng))) for S in (self.A, self.B))
        return self._atom(u, v, 1.0)

    def _is_atom(self, a: Array, tolerance: float) -> bool | None:
        if self.view.observed:
            return None
        sizes = np.linalg.svd(host(a), compute_uv=False)
        return None if sizes[1:].max(initial=0.0) <= tolerance * sizes[0] else False  # factors have no scale

    def _size(self) -> object:
        return f"{self.A!r}, {self.B!r}"


def _best(S: Atoms, g: Small) -> Small:
    return _dense(S, as_atom(S.lmo((S.space or Space.of(g)).put(g))))


def _dense(S: Atoms, a: Atom) -> Small:
    return host(a.dense(S.space or Space.default(S.shape or ()))).astype(np.float64)
