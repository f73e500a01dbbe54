"""Sets of columns: b_0, ..., b_{n-1}, and their negatives where a set has both signs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import as_bool, floating_array, real_array, sparse_matrix
from pursuit.arrays import Array, Small, Space, column_squares, flat, host, largest, namespace, whole_strides
from pursuit.atoms.base import Atoms, Found, Search
from pursuit.atoms.copies import MIN_SCREENED_ENTRIES, Attempts, EightBitCopy, check_can_be_copied, entries_to_copy
from pursuit.atoms.frames import Atom
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

    def signed_columns(self, places: Sequence[int] | np.ndarray, correlations: Small) -> list[Atom]:
        """The columns at these places, each with the sign for which its inner product with g is smallest."""
        signs = [-1.0 if self.symmetric and c > 0 else 1.0 for c in correlations.tolist()]
        return [self.column(j, sign) for j, sign in zip(np.asarray(places).tolist(), signs, strict=True)]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        c = self.correlations(g)
        return self.signed_columns(*largest(c if self.symmetric else -c, several, sizes=self.symmetric))

    def scores(self, g: Array) -> Small:
        c = host(self.correlations(g))
        return np.concatenate([c, -c]) if self.symmetric else c

    def atom(self, i: int) -> Atom:
        return self.column(i % self.n, 1.0 if i < self.n else -1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        if isinstance(a.source, int | np.integer) and 0 <= a.source < self.n:
            return self.column(int(a.source), -1.0 if self.symmetric and a.coef < 0 else 1.0)
        return None

    def coefficients(self, sources: Sequence[object], values: Small) -> object:
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
    matrix: Array | None = None
    """D as an array with two axes; None for sparse matrices and operators."""
    eight_bit: EightBitCopy | None = None
    """The copy that `screened` has made."""

    def __init__(self, D: object, signed: bool = False) -> None:
        self.D: Any
        as_operator = operator(D, "D")
        self._operator = as_operator is not None
        self._sparse = sp.issparse(D)
        if self._sparse:
            self.D = sparse_matrix(D, "D")
        else:  # NaN and infinity in an array are found later, together with the norms
            self.D = as_operator if self._operator else whole_strides(floating_array(D, "D"))
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
            self.matrix = self.D if self.D.ndim == 2 else self.space.xp.reshape(self.D, (-1, self.n))
        norms = self._norms()
        if not norms.all():
            j = int(np.argmin(norms))
            raise ValueError(f"column {j} of D is zero; remove it, or for {{x >= 0, sum x <= 1}} give Polytope.")
        self.radius = float(norms.max())
        self.diameter = 2.0 * self.radius

    def _norms(self) -> Small:
        """Norms of the columns, finding NaN and infinity in the same pass over D."""
        matrix = self.matrix
        with np.errstate(all="ignore"):
            if matrix is None:
                squares = np.asarray(self.D.multiply(self.D).sum(axis=0)).ravel()
            elif isinstance(matrix, np.ndarray):
                squares = column_squares(matrix).astype(np.float64)
            else:
                squares = host(namespace(matrix).sum(matrix * matrix, axis=0))
            norms = np.sqrt(squares)
        for j in np.flatnonzero(~((squares > 1e-280) & (squares < 1e280))):  # NaN, or squares out of range
            column = self.D[:, [int(j)]].toarray() if matrix is None else matrix[:, int(j)]
            norms[j] = Space.of(column).norm(real_array(column, f"column {j} of D"))
        return np.asarray(norms)

    def correlations(self, g: Array) -> Array:
        if self.matrix is not None:
            return self.matrix.T @ flat(g)
        return self.D.rmatvec(g) if self._operator else self.D.T @ g

    def column(self, j: int, sign: float) -> Atom:
        if self._sparse:
            start, stop = self.D.indptr[j], self.D.indptr[j + 1]
            return SparseAtom(self.D.indices[start:stop], sign * self.D.data[start:stop], (self.D.shape[0],), j, sign)
        if self._operator:
            basis = np.zeros(self.n)
            basis[j] = sign
            return Atom(self.D.matvec(basis), j, sign)
        return Atom(self.D[..., j] if sign > 0 else -self.D[..., j], j, sign)

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return super().best(g, several) if self.eight_bit is None else self._search(0)(g, several, -math.inf)[0]

    def begin(self, seed: int = 0) -> Search:
        """The function that answers the questions of one run. A large dense dictionary answers by full products at
        first. Once these have taken as long as making an 8-bit copy does, the copy is made and read first: the answers
        stay the same, and less memory is read."""
        if type(self) is not Dictionary:  # a subclass may answer by a `best` of its own
            return super().begin(seed)
        large = self.matrix is not None and self.matrix.shape[0] * self.n >= self.min_screened
        return self._search(entries_to_copy(self.matrix) if large else 0)

    def _search(self, entries: int) -> DictionarySearch:
        made = self.eight_bit is not None
        attempts = Attempts.begin(entries, self.min_screened, made) if made or entries >= self.min_screened else None
        return DictionarySearch(self, self.eight_bit, attempts)

    def screened(self) -> Dictionary:
        """The same set with an oracle that reads an 8-bit copy of D first; made once, it may serve many solves."""
        check_can_be_copied(self.matrix)
        return self._with(eight_bit=EightBitCopy(self.matrix))

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else self._with(symmetric=True, size=2 * self.n)

    def without_columns(self) -> Dictionary:
        """The same set without its arrays: only their number, shape, dtype and largest norm."""
        return self._with(D=None, matrix=None, eight_bit=None)

    def with_columns(self, D: Array) -> Dictionary:
        """The same set with other columns of the same shape and dtype, which are not checked."""
        n = D.shape[-1]
        return self._with(D=D, matrix=D.reshape(-1, n), n=n, size=2 * n if self.symmetric else n)

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, self.D.shape))
        screened = "" if self.eight_bit is None else ".screened()"
        return f"Dictionary({sizes}{', signed=True' if self.symmetric else ''}){screened}"


@dataclass
class DictionarySearch:
    """The questions of one run to a dictionary: by its 8-bit copy where that is due, else by the product with D."""

    A: Dictionary
    copy: EightBitCopy | None
    attempts: Attempts | None
    """None: there will be no copy."""

    def __call__(self, g: Array, several: int, level: float) -> Found:
        attempts, atoms = self.attempts, None
        if attempts is not None and attempts.due(several, self.A.n):
            atoms = self._by_copy(g, several, attempts)
        elif attempts is not None:
            attempts.count_product(several)
        if atoms is None:
            atoms = Listed.best(self.A, g, several)
        return atoms, atoms[0].dot(self.A.space or Space.of(g), g) if atoms else -math.inf  # none where g is not finite

    def _by_copy(self, g: Array, several: int, attempts: Attempts) -> Sequence[Atom] | None:
        """The best atoms, where the copy proves which they are."""
        if self.copy is None:
            self.copy = EightBitCopy(self.A.matrix)
        answer = self.copy.best(flat(g), several, self.A.symmetric) if isinstance(g, np.ndarray) else None
        attempts.record(answer is not None)
        return None if answer is None else self.A.signed_columns(*answer)
