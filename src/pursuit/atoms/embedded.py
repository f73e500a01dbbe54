"""A set of atoms as one piece of a longer vector: products of domains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pursuit._memory import WithMemory
from pursuit.arrays import Array, Small, flat, host, namespace
from pursuit.atoms.base import Atoms, Found, Search, as_atom
from pursuit.atoms.frames import Atom, SparseAtom


class Embedded(Atoms):
    """The atoms of a set, flattened, at the entries start, start + 1, ... of vectors of length n; zeros elsewhere."""

    def __init__(self, base: Atoms, start: int, n: int) -> None:
        assert base.shape is not None
        self.base, self.start, self.n = base, start, n
        self.stop = start + math.prod(base.shape)
        self.shape = (n,)
        self.symmetric, self.convex, self.exact, self.size = base.symmetric, base.convex, base.exact, base.size
        self.radius, self.diameter, self.width, self.work = base.radius, base.diameter, base.width, base.work
        if base.space is not None:
            self.space = replace(base.space, shape=self.shape)

    def _piece(self, g: Array) -> Array:
        return namespace(g).reshape(g[self.start : self.stop], self.base.shape)

    def embed(self, given: Any) -> Atom:
        """An atom of the piece as an atom of the longer vectors."""
        a = as_atom(given)
        if isinstance(a, SparseAtom):
            return SparseAtom(self.start + a.positions, a.values, (self.n,), a.source, a.coef)
        return SparseAtom(np.arange(self.start, self.stop), host(flat(a.vector)), (self.n,), a.source, a.coef)

    def begin(self, seed: int = 0) -> Search:
        search = self.base.begin(seed)

        def embedded(g: Array, several: int, level: float) -> Found:
            atoms, lower = search(self._piece(g), several, level)
            return [self.embed(a) for a in atoms], lower

        return WithMemory(embedded, search)

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return [self.embed(a) for a in self.base.best(self._piece(g), several)]

    def scores(self, g: Array) -> Small:
        return self.base.scores(self._piece(g))

    def atom(self, i: int) -> Atom:
        return self.embed(self.base.atom(i))

    def rebuild(self, a: Atom) -> Atom | None:
        own = self.base.rebuild(a)
        return None if own is None else self.embed(own)

    def sample(self, rng: np.random.Generator) -> Atom:
        return self.embed(self.base.sample(rng))

    def _alone(self, x: Array) -> bool:
        """Whether x is zero outside the piece."""
        return tuple(x.shape) == self.shape and not (
            bool(namespace(x).any(x[: self.start] != 0)) or bool(namespace(x).any(x[self.stop :] != 0))
        )

    def contains(self, a: Array) -> bool | None:
        return self.base.contains(self._piece(a)) if self._alone(a) else False

    def gauge(self, x: Array) -> float | None:
        return self.base.gauge(self._piece(x)) if self._alone(x) else math.inf

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        return self.base.coefficients(sources, values)

    def symmetrised(self) -> Atoms:
        return Embedded(self.base.symmetrised(), self.start, self.n)

    def __repr__(self) -> str:
        return repr(self.base)
