"""Sets made of other sets: the image c M A of a set A, with both signs on request, and the union of two sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit._memory import WithMemory
from pursuit.arguments import as_int_or_nan, describe, number, real_array, sparse_matrix
from pursuit.arrays import Array, Indices, Small, Space, column_squares, flat, host
from pursuit.atoms.base import Atoms, Chart, Found, Pullback, Search, as_atom
from pursuit.atoms.frames import Atom, LiftedAtom, SparseAtom
from pursuit.linalg import operator

SLACK = 1e-3
"""More than the rounding of a Frobenius norm, relative to it."""


class LinearMap:
    """A matrix, sparse matrix or operator M that maps atoms of the given shape to vectors: a -> M a.

    With `columns` = K atoms are read as matrices of K columns, and their images are matrices, too. With `l2` > 0 the
    image of a is M a with sqrt(l2) a below it.
    """

    def __init__(self, M: Any, shape: tuple[int, ...] | None, columns: int | None = None, l2: float = 0.0) -> None:
        if columns is not None and not as_int_or_nan(columns) >= 1:
            raise ValueError(f"columns is {describe(columns)}; give the number of columns of the matrices, at least 1.")
        if not 0 <= number(l2) < math.inf:
            raise ValueError(f"l2 is {describe(l2)}; give a number of at least 0.")
        self.M: Any
        self._operator, self._sparse = operator(M, "M"), sp.issparse(M)
        if self._sparse:
            self.M = sparse_matrix(M, "M")
            real_array(self.M.data, "M")
        else:
            self.M = real_array(M, "M") if self._operator is None else self._operator
        if len(self.M.shape) != 2 or 0 in self.M.shape:
            raise ValueError(f"M has shape {tuple(self.M.shape)}; give a matrix (rows, length of an atom).")
        self.n, self.p = map(int, self.M.shape)
        if shape is not None and math.prod(shape) != self.p * (columns or 1):
            by = "" if columns is None else f" for each of {columns} columns"
            raise ValueError(f"M has {self.p} columns{by}, the atoms have {math.prod(shape)} entries.")
        self._across = () if columns is None else (int(columns),)
        self._root = math.sqrt(number(l2))
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
        """An upper bound on ||image|| / ||a||, by the Frobenius norm of M; None for an operator."""
        if self._operator is not None:
            return None
        entries = self.M.data if self._sparse else flat(self.M)
        return (1.0 + SLACK) * math.hypot(Space.of(entries).norm(entries), self._root)

    @cached_property
    def column_norm(self) -> float | None:
        """The same for atoms with one entry: by the longest column of M."""
        if self._operator is not None or self._sparse:
            return self.norm
        xp, (low, high) = self.inner.xp, self.inner.safe
        squares = column_squares(self.M) if self.inner.numpy else xp.sum(self.M * self.M, axis=0)
        longest = float(xp.max(squares))
        return (1.0 + SLACK) * math.hypot(math.sqrt(longest), self._root) if low < longest < high else self.norm

    def __repr__(self) -> str:
        columns = f", columns={self._across[0]}" if self._across else ""
        return f"{self.n} x {self.p}{columns}{f', l2={self._root**2:g}' if self.lifted else ''}"

    def _columns(self, which: Indices) -> Any:
        if self._sparse or self.inner.numpy:
            return self.M[:, which]
        xp = self.inner.xp
        return xp.take(self.M, xp.asarray(which, device=self.inner.device), axis=1)


class Image(Atoms):
    """The atoms c M a of a set A, and their negatives if `signed`, without forming them: the oracle asks A for c M'g
    (and -c M'g) and maps the answer."""

    def __init__(self, base: Atoms, c: float = 1.0, M: LinearMap | None = None, signed: bool = False) -> None:
        self.base, self.c, self.signed = base, number(c), signed
        if self.c == 0 or not math.isfinite(self.c):
            raise ValueError(f"the factor of an atom set is {describe(c)}; give a finite number other than zero.")
        self.map = M
        self.symmetric, self.exact = base.symmetric or signed, base.exact
        self.convex, self.size = base.convex and not signed, _times(2 if signed else 1, base.size)
        if self.map is not None:
            self.size = None if self.map.lifted else self.size  # too many for their space to be listed
            self.shape, self.space = self.map.shape, self.map.space
            longest = self.map.column_norm if base.one_entry else self.map.norm
            self.radius = _times(abs(self.c), _times(longest, base.radius))
            self.diameter = _times(2.0, self.radius)
            return
        self.shape, self.space = base.shape, base.space
        factor = abs(self.c)
        self.work = _times(2.0 if signed else 1.0, base.work)
        self.radius = _times(factor, base.radius)
        self.diameter = _times(2.0, self.radius) if signed else _times(factor, base.diameter)
        self.width = None if signed else _times(factor, base.width)
        if base.entry_bounds is not None and not signed:
            ends = self.c * base.entry_bounds[0], self.c * base.entry_bounds[1]
            self.entry_bounds = ends if self.c > 0 else ends[::-1]

    def _ask(self, g: Array) -> Array:
        """The vector h of A's space with <g, c M a> = |c| <h, a>."""
        h = g if self.map is None else self.map.adjoint(g)
        return h if self.c > 0 else -h

    def _answer(self, a: Any, sign: float = 1.0) -> Atom:
        """sign c M a."""
        atom, factor = as_atom(a) if self.map is None else self.map(as_atom(a)), sign * self.c
        return atom if factor == 1.0 else atom.scaled(factor)

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return self._search(_unproved(self.base), _unproved(self.base))(g, several, -math.inf)[0]

    def begin(self, seed: int = 0) -> Search:
        plus = self.base.begin(seed)
        return self._search(plus, self.base.begin(seed) if self.signed else plus)

    def _search(self, plus: Search, minus: Search) -> Search:
        """The search in the image, by searches in A for either sign."""
        factor = abs(self.c)

        def search(g: Array, several: int, level: float) -> Found:
            h, level = self._ask(g), level / factor
            if not self.signed:
                atoms, lower = plus(h, several, level)
                return [self._answer(a) for a in atoms], factor * lower
            (above, lower), (below, bound) = plus(h, 1, level), minus(-h, 1, level)
            both = [self._answer(above[0]), self._answer(below[0], -1.0)]
            return _sorted(both, g, 1), factor * min(lower, bound)

        return WithMemory(search, plus, minus)

    def chart(self) -> Chart | None:
        base = self.base.chart()
        if base is None or self.map is None:
            return base
        return _ImageChart(base, self.map) if self.map.plain else None

    def scores(self, g: Array) -> Small:
        scores = abs(self.c) * self.base.scores(self._ask(g))
        return np.concatenate([scores, -scores]) if self.signed else scores

    def atom(self, i: int) -> Atom:
        n = self.base.size or 0
        return self._answer(self.base.atom(i % n), 1.0 if i < n else -1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        own = self.base.rebuild(a if self.c > 0 else a.scaled(-1.0))
        if own is None:
            return None
        own = self._answer(own)
        return own.scaled(-1.0) if self.signed and own.coef * a.coef < 0 else own

    def sample(self, rng: np.random.Generator) -> Atom:
        a = as_atom(self.base.sample(rng))
        if self.map is not None and type(a) is Atom:  # sets that know no library draw NumPy arrays
            a = Atom(self.map.inner.put(host(a.vector)), a.source, a.coef)
        return self._answer(a, float(rng.choice([-1.0, 1.0])) if self.signed else 1.0)

    def contains(self, a: Array) -> bool | None:
        if self.map is not None:
            return super().contains(a)
        known = self.base.contains(a / self.c)
        return _either(known, self.base.contains(-a / self.c)) if self.signed else known

    def gauge(self, x: Array) -> float | None:
        return None if self.signed or self.map is not None else self.base.gauge(x / self.c)

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        return self.base.coefficients(sources, values)

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else Image(self.base.symmetrised(), abs(self.c), self.map)

    def through(self, M: Any, columns: int | None = None, l2: float = 0.0) -> Atoms:
        inner, c = unscaled(self)
        if isinstance(inner, Image):
            return Image(inner, c, LinearMap(M, inner.shape, columns, l2))
        return c * inner.through(M, columns, l2)

    def __rmul__(self, c: float) -> Atoms:
        return Image(self.base, number(c) * self.c if math.isfinite(number(c)) else c, self.map, self.signed)

    def __repr__(self) -> str:
        text = f"Symmetrised({self.base!r})" if self.signed else repr(self.base)
        text += "" if self.map is None else f".through({self.map!r})"
        return text if self.c == 1.0 else f"{self.c:g} * {text}"


def unscaled(A: Atoms) -> tuple[Atoms, float]:
    """A set without its factor, and the factor."""
    if not isinstance(A, Image):
        return A, 1.0
    plain = A.map is None and not A.signed
    return A.base if plain else Image(A.base, 1.0, A.map, A.signed), A.c


class _ImageChart:
    """The chart of the atoms M a, with the parameters of a."""

    def __init__(self, base: Chart, M: LinearMap) -> None:
        self.base, self.map, self.bounds = base, M, base.bounds
        self.parameters, self.source = base.parameters, base.source

    def combine(self, thetas: Small, coefs: Small) -> tuple[Array, Pullback]:
        x, pull = self.base.combine(thetas, coefs)
        return self.map.M @ flat(x), lambda g: pull(self.map.adjoint(g))


class Union(Atoms):
    """A | B: the atoms of both. Sources become (0, source) and (1, source)."""

    def __init__(self, first: Atoms, second: Atoms) -> None:
        for part in (first, second):
            if not isinstance(part, Atoms):
                raise TypeError(
                    f"A | B joins two sets of atoms, not {describe(part)}; wrap a matrix in Dictionary(...)."
                )
        if None not in (first.shape, second.shape) and first.shape != second.shape:
            raise ValueError(f"A | B joins atoms of shapes {first.shape} and {second.shape}; they must agree.")
        self.parts = (first, second)
        self.shape, self.space = first.shape or second.shape, first.space or second.space
        self.symmetric = first.symmetric and second.symmetric
        self.exact = first.exact and second.exact
        if first.size is not None and second.size is not None:
            self.size = first.size + second.size
        if first.radius is not None and second.radius is not None:
            self.radius = max(first.radius, second.radius)
            self.diameter = 2.0 * self.radius

    @staticmethod
    def _named(which: int, a: Atom) -> Atom:
        named = as_atom(a).scaled(1.0)
        named.source = None if named.source is None else (which, named.source)
        return named

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return self._search(*map(_unproved, self.parts))(g, several, -math.inf)[0]

    def begin(self, seed: int = 0) -> Search:
        return self._search(*(part.begin(seed) for part in self.parts))

    def _search(self, *searches: Search) -> Search:
        """The search in the union, by one in each set."""

        def search(g: Array, several: int, level: float) -> Found:
            answers = [ask(g, several, level) for ask in searches]
            found = [self._named(i, a) for i, (atoms, _) in enumerate(answers) for a in atoms]
            return _sorted(found, g, several), min(lower for _, lower in answers)

        return WithMemory(search, *searches)

    def scores(self, g: Array) -> Small:
        return np.concatenate([part.scores(g) for part in self.parts])

    def atom(self, i: int) -> Atom:
        n = self.parts[0].size or 0
        return self._named(0, self.parts[0].atom(i)) if i < n else self._named(1, self.parts[1].atom(i - n))

    def rebuild(self, a: Atom) -> Atom | None:
        if not (isinstance(a.source, tuple) and len(a.source) == 2 and a.source[0] in (0, 1)):
            return None
        plain = a.scaled(1.0)
        plain.source = a.source[1]
        own = self.parts[a.source[0]].rebuild(plain)
        return None if own is None else self._named(a.source[0], own)

    def sample(self, rng: np.random.Generator) -> Atom:
        which = int(rng.integers(2))
        return self._named(which, self.parts[which].sample(rng))

    def contains(self, a: Array) -> bool | None:
        return _either(*(part.contains(a) for part in self.parts))

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else Union(self.parts[0].symmetrised(), self.parts[1].symmetrised())

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        out = []
        for which, part in enumerate(self.parts):
            mine = [i for i, source in enumerate(sources) if source[0] == which]
            out.append(part.coefficients([sources[i][1] for i in mine], values[mine]))
        return None if any(o is None for o in out) else tuple(out)

    def __repr__(self) -> str:
        return f"{self.parts[0]!r} | {self.parts[1]!r}"


def _unproved(A: Atoms) -> Search:
    """The answers of `A.best`, with no bound."""
    return lambda g, several, level: (A.best(g, several), -math.inf)


def _sorted(atoms: list[Atom], g: Array, several: int) -> list[Atom]:
    """The first `several` atoms in the order of <g, a>."""
    space = Space.of(g)
    return sorted(atoms, key=lambda a: a.dot(space, g))[:several]


def _either(*answers: bool | None) -> bool | None:
    """Whether one of the answers is yes; None where that is not known."""
    return True if any(answers) else None if None in answers else False


def _times(c: Any, value: Any) -> Any:
    """c * value where both are known."""
    return None if c is None or value is None else c * value
