"""Sets made of other sets: the image c M A of a set A, with both signs on request, the union of two sets, and a set as
one piece of longer vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pursuit.arguments import describe, number
from pursuit.arrays import Array, Small, Space, flat, host, namespace
from pursuit.atoms.base import Atoms, Chart, Found, Pullback, Search, as_atom
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.maps import LinearMap
from pursuit.atoms.sparse import SparseAtom
from pursuit.state import Stateful


class Derived(Atoms):
    """Atoms made of those of other sets. A subclass says what a question g asks of each of these sets, and what becomes
    of their atoms."""

    terms: tuple[Atoms, ...]
    """The sets that are asked."""
    factor: float = 1.0
    """The ratio of an inner product with g to that in the sets asked."""
    one_each: bool = False
    """Whether only the best atom is asked of each set, and the best of these is the answer."""

    def _set_terms(self, *terms: Atoms) -> None:
        self.terms = terms
        self.symmetric, self.exact = all(A.symmetric for A in terms), all(A.exact for A in terms)
        self.failure = max(0.0 if A.exact else A.failure for A in terms)
        sizes = [A.size for A in terms]
        self.size = None if None in sizes else sum(size or 0 for size in sizes)
        self.questions = sum(A.questions for A in terms)

    def _questions(self, g: Array) -> Sequence[Array]:
        """The vector to ask each set with."""
        raise NotImplementedError

    def _answer(self, which: int, a: Atom) -> Atom:
        """The atom that an atom of one of the sets becomes."""
        raise NotImplementedError

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return DerivedSearch(self, tuple(_unproved(A) for A in self.terms))(g, several, -math.inf)[0]

    def begin(self, seed: int = 0) -> Search:
        return DerivedSearch(self, tuple(A.begin(seed) for A in self.terms))

    def scores(self, g: Array) -> Small:
        questions = zip(self.terms, self._questions(g), strict=True)
        return np.concatenate([self.factor * A.scores(h) for A, h in questions])

    def atom(self, i: int) -> Atom:
        which = 0
        while which + 1 < len(self.terms) and i >= (self.terms[which].size or 0):
            i, which = i - (self.terms[which].size or 0), which + 1
        return self._answer(which, self.terms[which].atom(i))

    def rebuild(self, a: Atom) -> Atom | None:
        atom = self.terms[0].rebuild(a)
        return None if atom is None else self._answer(0, atom)

    def sample(self, rng: np.random.Generator) -> Atom:
        which = int(rng.integers(len(self.terms))) if len(self.terms) > 1 else 0
        return self._answer(which, as_atom(self.terms[which].sample(rng)))

    def coefficients(self, sources: Sequence[Source], values: Small) -> object:
        return self.terms[0].coefficients(sources, values)


@dataclass(eq=False)
class DerivedSearch(Stateful):
    """The search in a derived set, by searches in the sets that it is made of."""

    A: Derived
    searches: tuple[Search, ...]

    def __call__(self, g: Array, several: int, level: float) -> Found:
        A = self.A
        if len(self.searches) == 1:
            answers, lower = self.searches[0](A._questions(g)[0], several, level / A.factor)
            return [A._answer(0, as_atom(a)) for a in answers], A.factor * lower
        most = 1 if A.one_each else several
        atoms: list[Atom] = []
        bounds = []
        for which, (ask, h) in enumerate(zip(self.searches, A._questions(g), strict=True)):
            answers, lower = ask(h, most, level / A.factor)
            atoms += [A._answer(which, as_atom(a)) for a in answers]
            bounds.append(A.factor * lower)
        space = Space.of(g)
        return sorted(atoms, key=lambda a: a.dot(space, g))[:most], min(bounds)


class Image(Derived):
    """The atoms c M a of a set A, and their negatives if `signed`, without forming them: the oracle asks A for c M'g
    (and -c M'g) and maps the answer."""

    def __init__(self, base: Atoms, c: float = 1.0, M: LinearMap | None = None, signed: bool = False) -> None:
        self.base, self.c, self.map, self.signed = base, number(c), M, signed
        if self.c == 0 or not math.isfinite(self.c):
            raise ValueError(f"the factor of an atom set is {describe(c)}; give a finite number other than zero.")
        self._set_terms(*[base] * (2 if signed else 1))
        self.factor, self.one_each = abs(self.c), signed
        self.symmetric, self.convex = base.symmetric or signed, base.convex and not signed
        if self.map is not None:
            self.size = None if self.map.lifted else self.size  # too many for their space to be listed
            self.shape, self.space = self.map.shape, self.map.space
            longest = None if self.map.norm is None else _times(self.map.norm, base.radius)
            self.radius = _times(self.factor, longest)
            self.diameter = _times(2.0, self.radius)
            return
        self.shape, self.space = base.shape, base.space
        self.work = _times(2.0 if signed else 1.0, base.work)
        self.radius = _times(self.factor, base.radius)
        self.diameter = _times(2.0, self.radius) if signed else _times(self.factor, base.diameter)
        self.width = None if signed else _times(self.factor, base.width)
        if base.entry_bounds is not None and not signed:
            ends = self.c * base.entry_bounds[0], self.c * base.entry_bounds[1]
            self.entry_bounds = ends if self.c > 0 else ends[::-1]

    def _questions(self, g: Array) -> Sequence[Array]:
        """The vector h of A's space with <g, c M a> = |c| <h, a>, and -h."""
        h = g if self.map is None else self.map.adjoint(g)
        h = h if self.c > 0 else -h
        return (h, -h) if self.signed else (h,)

    def _answer(self, which: int, a: Atom) -> Atom:
        """c M a, negated for the second question."""
        atom, factor = a if self.map is None else self.map(a), -self.c if which else self.c
        return atom if factor == 1.0 else atom.scaled(factor)

    def chart(self) -> Chart | None:
        base = self.base.chart()
        if base is None or self.map is None:
            return base
        return _ImageChart(base, self.map) if self.map.plain else None

    def rebuild(self, a: Atom) -> Atom | None:
        atom = super().rebuild(a if self.c > 0 else a.scaled(-1.0))
        return atom.scaled(-1.0) if self.signed and atom is not None and atom.coef * a.coef < 0 else atom

    def sample(self, rng: np.random.Generator) -> Atom:
        a = as_atom(self.base.sample(rng))
        if self.map is not None and type(a) is Atom:  # sets that know no library draw NumPy arrays
            a = Atom(self.map.inner.put(host(a.vector)), a.source, a.coef)
        return self._answer(int(self.signed and rng.choice([-1.0, 1.0]) < 0), a)

    def contains(self, a: Array) -> bool | None:
        if self.map is not None:
            return super().contains(a)
        known = self.base.contains(a / self.c)
        return _either(known, self.base.contains(-a / self.c)) if self.signed else known

    def gauge(self, x: Array) -> float | None:
        return None if self.signed or self.map is not None else self.base.gauge(x / self.c)

    def hull_contains(self, x: Array) -> bool | None:
        return None if self.signed or self.map is not None else self.base.hull_contains(x / self.c)

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else Image(self.base.symmetrised(), abs(self.c), self.map)

    def through(self, M: object, columns: int | None = None, l2: float = 0.0) -> Atoms:
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


class Union(Derived):
    """A | B: the atoms of both. Sources become (0, source) and (1, source)."""

    def __init__(self, first: Atoms, second: Atoms) -> None:
        for A in (first, second):
            if not isinstance(A, Atoms):
                raise TypeError(f"A | B joins two sets of atoms, not {describe(A)}; wrap a matrix in Dictionary(...).")
        if None not in (first.shape, second.shape) and first.shape != second.shape:
            raise ValueError(f"A | B joins atoms of shapes {first.shape} and {second.shape}; they must agree.")
        self._set_terms(first, second)
        self.shape, self.space = first.shape or second.shape, first.space or second.space
        if first.radius is not None and second.radius is not None:
            self.radius = max(first.radius, second.radius)
            self.diameter = 2.0 * self.radius

    def _questions(self, g: Array) -> Sequence[Array]:
        return g, g

    def _answer(self, which: int, a: Atom) -> Atom:
        named = a.scaled(1.0)
        named.source = None if a.source is None else (which, a.source)
        return named

    def rebuild(self, a: Atom) -> Atom | None:
        if not (isinstance(a.source, tuple) and len(a.source) == 2 and a.source[0] in (0, 1)):
            return None
        which, plain = a.source[0], a.scaled(1.0)
        plain.source = a.source[1]
        atom = self.terms[which].rebuild(plain)
        return None if atom is None else self._answer(which, atom)

    def contains(self, a: Array) -> bool | None:
        return _either(*(A.contains(a) for A in self.terms))

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else Union(*(A.symmetrised() for A in self.terms))

    def coefficients(self, sources: Sequence[Source], values: Small) -> object:
        out = []
        for which, A in enumerate(self.terms):
            places = [i for i, source in enumerate(sources) if source[0] == which]
            out.append(A.coefficients([sources[i][1] for i in places], values[places]))
        return None if any(o is None for o in out) else tuple(out)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.terms))


class Embedded(Derived):
    """The atoms of a set, flattened, at the entries start, start + 1, ... of vectors of length n; zeros elsewhere."""

    def __init__(self, base: Atoms, start: int, n: int) -> None:
        assert base.shape is not None
        self._set_terms(base)
        self.base, self.start, self.n = base, start, n
        self.stop = start + math.prod(base.shape)
        self.shape, self.convex = (n,), base.convex
        self.radius, self.diameter, self.width, self.work = base.radius, base.diameter, base.width, base.work
        if base.space is not None:
            self.space = replace(base.space, shape=self.shape)

    def _questions(self, g: Array) -> Sequence[Array]:
        return (namespace(g).reshape(g[self.start : self.stop], self.base.shape),)

    def embed(self, atom: object) -> Atom:
        """An atom of the piece as an atom of the longer vectors."""
        return self._answer(0, as_atom(atom))

    def _answer(self, which: int, a: Atom) -> Atom:
        if isinstance(a, SparseAtom):
            return SparseAtom(self.start + a.positions, a.values, (self.n,), a.source, a.coef)
        return SparseAtom(np.arange(self.start, self.stop), host(flat(a.vector)), (self.n,), a.source, a.coef)

    def _alone(self, x: Array) -> bool:
        """Whether x is zero outside the piece."""
        if tuple(x.shape) != self.shape:
            return False
        nonzero = namespace(x).any
        return not (bool(nonzero(x[: self.start] != 0)) or bool(nonzero(x[self.stop :] != 0)))

    def contains(self, a: Array) -> bool | None:
        return self.base.contains(self._questions(a)[0]) if self._alone(a) else False

    def gauge(self, x: Array) -> float | None:
        return self.base.gauge(self._questions(x)[0]) if self._alone(x) else math.inf

    def hull_contains(self, x: Array) -> bool | None:
        return self.base.hull_contains(self._questions(x)[0]) if self._alone(x) else False

    def symmetrised(self) -> Atoms:
        return Embedded(self.base.symmetrised(), self.start, self.n)

    def __repr__(self) -> str:
        return repr(self.base)


def _unproved(A: Atoms) -> Search:
    """The answers of `A.best`, with no bound."""
    return lambda g, several, level: (A.best(g, several), -math.inf)


def _either(*answers: bool | None) -> bool | None:
    """Whether one of the answers is yes; None where that is not known."""
    return True if any(answers) else None if None in answers else False


def _times(c: float, value: float | None) -> float | None:
    """c * value where it is known."""
    return None if value is None else c * value
