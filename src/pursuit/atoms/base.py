"""The contract of an atom set, and what can be built from any: scaling, union, symmetrisation, maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol, SupportsFloat

import numpy as np
import scipy.sparse as sp

from pursuit._arrays import Array, Indices, Small, Space, flat, host, real_array
from pursuit.atoms.frames import Atom, SparseAtom
from pursuit.atoms.maps import operator

Session = Callable[[Array, int, float], tuple[Sequence[Atom], float]]
"""(g, several, level) -> (atoms, the best first; a proved lower bound on min <g, a>, -inf where nothing is proved).

What counts is how far the minimum lies below `level` (<g, x> over a hull, 0 elsewhere): a set whose bound costs work
makes it accurate to a fraction of that."""

Pullback = Callable[[Array], tuple[Small, Small]]
"""g -> (<g, a_i> for every atom, the gradients of those numbers in the parameters, one row per atom)."""


class Chart(Protocol):
    """Coordinates in which atoms move smoothly: what a source becomes as a vector of parameters, and back."""

    bounds: Small
    """(p, 2): the range of each parameter."""

    def parameters(self, source: Any) -> Small:
        """The parameters of a source."""

    def source(self, theta: Small) -> tuple[Any, float]:
        """The source with these parameters, and the sign of a(theta) against it, for sources that know none."""

    def combine(self, thetas: Small, coefs: Small) -> tuple[Array, Pullback]:
        """sum_i coefs_i a(theta_i), and how its atoms answer to a gradient."""


class Atoms:
    """A set of atoms A in H, known through one question: which atom has the smallest inner product with g?

    The contract for a set of your own is the method `lmo`. The rest is what a set may know about itself; None means
    that it does not.

    >>> import numpy as np, pursuit as ps
    >>> class Corners(ps.Atoms):                     # the vertices of [-1, 1]^n
    ...     def lmo(self, g):
    ...         return ps.Atom(-np.sign(g))
    >>> ps.minimize(ps.LeastSquares([0.5, -2.0]), ps.conv(Corners())).x.round(6)
    array([ 0.5, -1. ])
    """

    shape: tuple[int, ...] | None = None
    """Shape of the atoms."""
    space: Space | None = None
    """Where the atoms live, for sets that are made of arrays."""
    symmetric: bool = False
    """Whether -a is an atom whenever a is."""
    convex: bool = False
    """Whether every point of the hull counts as an atom, as in a ball."""
    exact: bool = True
    """Whether `lmo` finds the minimum, to rounding, and not only an atom near it."""
    size: int | None = None
    """Number of atoms, for sets that can list them (`scores`, `atom`)."""
    radius: float | None = None
    """max ||a||, or an upper bound on it."""
    diameter: float | None = None
    """max ||a - b||, or an upper bound on it."""
    width: float | None = None
    """The minimal intrinsic directional width, or a lower bound on it."""

    def lmo(self, g: Array) -> Atom:
        """The linear minimisation oracle: an atom that minimises <g, a>. Ties go to the lowest index; g may be zero."""
        raise NotImplementedError(f"{type(self).__name__} must define lmo(g).")

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """Up to `several` atoms with small <g, a>, the answer of `lmo` first."""
        return [self.lmo(g)]

    def session(self, seed: int = 0) -> Session:
        """A function that answers for one run, and may remember its answers to do so faster; sets whose answers take
        random numbers draw them from this seed."""

        def answer(g: Array, several: int, level: float) -> tuple[Sequence[Atom], float]:
            atoms = self.best(g, several)
            return atoms, as_atom(atoms[0]).dot(Space.of(g), g) if self.exact else -math.inf

        return answer

    def chart(self) -> Chart | None:
        """Coordinates in which the atoms move smoothly, for refinements that move them; None: there are none."""
        return None

    def scores(self, g: Array) -> Small:
        """<g, a> for every atom, in the order of the list."""
        raise NotImplementedError(f"{type(self).__name__} cannot list its atoms.")

    def atom(self, i: int) -> Atom:
        """The i-th atom of the list."""
        raise NotImplementedError(f"{type(self).__name__} cannot list its atoms.")

    def rebuild(self, a: Atom) -> Atom | None:
        """This set's own atom with the source and sign of `a`, or None where sources do not name atoms."""
        return None

    def sample(self, rng: np.random.Generator) -> Atom:
        """A random atom; of a convex set an extreme one."""
        if self.size is None:
            raise NotImplementedError(f"{type(self).__name__} cannot draw atoms; define sample(rng).")
        return self.atom(int(rng.integers(self.size)))

    def contains(self, a: Array) -> bool | None:
        """Whether the array is an atom, to rounding; None where that cannot be told."""
        if self.size is None:
            return None
        space = Space.of(a)
        if self.shape not in (None, space.shape):
            return False
        norm, tolerance = space.norm(a), ROUNDING * space.eps
        scores = self.scores(a / norm if norm > 0 else a)
        near = np.flatnonzero(np.abs(scores - norm) <= tolerance * norm)  # an atom b = a has <a, b> = <a, a>
        return any(space.norm(self.atom(int(i)).dense(space) - a) <= tolerance * norm for i in near)

    def gauge(self, x: Array) -> float | None:
        """The atomic norm inf{c >= 0 : x in c conv(A)}, where there is a closed form."""
        return None

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        """A combination of atoms in the set's own coordinates (one entry per column or basis vector), or None."""
        return None

    def symmetrised(self) -> Atoms:
        """A together with its negative, whose span is that of A and whose oracle answers for both signs."""
        return self if self.symmetric else Symmetrised(self)

    def screened(self) -> Atoms:
        """The same set with a screened oracle, for dictionaries."""
        raise TypeError(f"{self!r} cannot be screened; give a Dictionary of a dense NumPy array.")

    def through(self, M: Any) -> Atoms:
        """The atoms M a, for a matrix, a sparse matrix or an operator: SciPy's LinearOperator, PyLops', or any object
        with shape, matvec and rmatvec, whose adjoint is checked once."""
        return Mapped(self, M)

    __array_ufunc__ = None  # so that numpy_number * A is A's business

    def __rmul__(self, c: float) -> Atoms:
        return Scaled(self, c)

    def __mul__(self, c: float) -> Atoms:
        return c * self

    def __or__(self, other: Atoms) -> Atoms:
        return Union(self, other)


ROUNDING = 1e3
"""Membership is judged to this many units of roundoff."""


def either(*answers: bool | None) -> bool | None:
    """Whether one of the answers is yes; None where that cannot be told."""
    return True if any(answers) else None if None in answers else False


def times(c: float, value: float | None) -> float | None:
    """c * value where known."""
    return None if value is None else c * value


class Scaled(Atoms):
    """c * A."""

    def __init__(self, base: Atoms, c: float) -> None:
        if isinstance(c, bool) or not isinstance(c, SupportsFloat) or not math.isfinite(c) or float(c) == 0:
            raise ValueError(f"the factor of an atom set is {c!r}; give a finite number other than zero.")
        self.base, self.c = base, float(c)
        self.shape, self.space, self.symmetric = base.shape, base.space, base.symmetric
        self.convex, self.exact, self.size = base.convex, base.exact, base.size
        self.radius, self.diameter = times(abs(self.c), base.radius), times(abs(self.c), base.diameter)
        self.width = times(abs(self.c), base.width)

    def _sign(self, g: Array) -> Array:
        return g if self.c > 0 else -g

    def lmo(self, g: Array) -> Atom:
        return as_atom(self.base.lmo(self._sign(g))).scaled(self.c)

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return [as_atom(a).scaled(self.c) for a in self.base.best(self._sign(g), several)]

    def session(self, seed: int = 0) -> Session:
        base, factor = self.base.session(seed), abs(self.c)

        def answer(g: Array, several: int, level: float) -> tuple[Sequence[Atom], float]:
            atoms, lower = base(self._sign(g), several, level / factor)
            return [as_atom(a).scaled(self.c) for a in atoms], factor * lower

        return answer

    def chart(self) -> Chart | None:
        return self.base.chart()

    def scores(self, g: Array) -> Small:
        return self.c * self.base.scores(g)

    def atom(self, i: int) -> Atom:
        return self.base.atom(i).scaled(self.c)

    def rebuild(self, a: Atom) -> Atom | None:
        twin = self.base.rebuild(a if self.c > 0 else a.scaled(-1.0))
        return None if twin is None else twin.scaled(self.c)

    def sample(self, rng: np.random.Generator) -> Atom:
        return as_atom(self.base.sample(rng)).scaled(self.c)

    def contains(self, a: Array) -> bool | None:
        return self.base.contains(a / self.c)

    def gauge(self, x: Array) -> float | None:
        return self.base.gauge(x / self.c)

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        return self.base.coefficients(sources, values)

    def screened(self) -> Atoms:
        return Scaled(self.base.screened(), self.c)

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else Scaled(self.base.symmetrised(), abs(self.c))

    def through(self, M: Any) -> Atoms:
        return Scaled(self.base.through(M), self.c)

    def __rmul__(self, c: float) -> Atoms:
        return Scaled(self.base, c * self.c)

    def __repr__(self) -> str:
        return f"{self.c:g} * {self.base!r}"


def unscaled(A: Atoms) -> tuple[Atoms, float]:
    """A set without its factor, and the factor."""
    c = 1.0
    while isinstance(A, Scaled):
        c, A = c * A.c, A.base
    return A, c


class Union(Atoms):
    """A | B: the atoms of both. Sources become (0, source) and (1, source)."""

    def __init__(self, first: Atoms, second: Atoms) -> None:
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

    def lmo(self, g: Array) -> Atom:
        return self.best(g, 1)[0]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        space = Space.of(g)
        found = [self._named(i, a) for i, part in enumerate(self.parts) for a in part.best(g, several)]
        return sorted(found, key=lambda a: a.dot(space, g))[:several]

    def session(self, seed: int = 0) -> Session:
        asks = [part.session(seed) for part in self.parts]

        def answer(g: Array, several: int, level: float) -> tuple[Sequence[Atom], float]:
            space, answers = Space.of(g), [ask(g, several, level) for ask in asks]
            found = [self._named(i, a) for i, (atoms, _) in enumerate(answers) for a in atoms]
            return sorted(found, key=lambda a: a.dot(space, g))[:several], min(lower for _, lower in answers)

        return answer

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
        twin = self.parts[a.source[0]].rebuild(plain)
        return None if twin is None else self._named(a.source[0], twin)

    def sample(self, rng: np.random.Generator) -> Atom:
        which = int(rng.integers(2))
        return self._named(which, self.parts[which].sample(rng))

    def contains(self, a: Array) -> bool | None:
        return either(*(part.contains(a) for part in self.parts))

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


class Symmetrised(Atoms):
    """A with its negative: the oracle is asked for both signs and the better answer taken."""

    symmetric = True

    def __init__(self, base: Atoms) -> None:
        self.base = base
        self.shape, self.space, self.radius = base.shape, base.space, base.radius
        self.diameter, self.exact = times(2.0, base.radius), base.exact
        self.size = None if base.size is None else 2 * base.size

    def lmo(self, g: Array) -> Atom:
        space = Space.of(g)
        plus, minus = as_atom(self.base.lmo(g)), as_atom(self.base.lmo(-g)).scaled(-1.0)
        return plus if plus.dot(space, g) <= minus.dot(space, g) else minus

    def session(self, seed: int = 0) -> Session:
        asks = self.base.session(seed), self.base.session(seed)

        def answer(g: Array, several: int, level: float) -> tuple[Sequence[Atom], float]:
            space, (plus, below), (minus, above) = Space.of(g), asks[0](g, 1, level), asks[1](-g, 1, level)
            both = [as_atom(plus[0]), as_atom(minus[0]).scaled(-1.0)]
            return [min(both, key=lambda a: a.dot(space, g))], min(below, above)

        return answer

    def chart(self) -> Chart | None:
        return self.base.chart()

    def scores(self, g: Array) -> Small:
        scores = self.base.scores(g)
        return np.concatenate([scores, -scores])

    def atom(self, i: int) -> Atom:
        n = self.base.size or 0
        return self.base.atom(i) if i < n else self.base.atom(i - n).scaled(-1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        twin = self.base.rebuild(a)
        return twin if twin is None or twin.coef * a.coef > 0 else twin.scaled(-1.0)

    def sample(self, rng: np.random.Generator) -> Atom:
        return as_atom(self.base.sample(rng)).scaled(float(rng.choice([-1.0, 1.0])))

    def contains(self, a: Array) -> bool | None:
        return either(self.base.contains(a), self.base.contains(-a))

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        return self.base.coefficients(sources, values)

    def __repr__(self) -> str:
        return f"Symmetrised({self.base!r})"


class Mapped(Atoms):
    """{M a : a in A}, without forming it: the oracle asks A for M'g and maps the one answer. Sparse atoms meet only
    their columns of M."""

    def __init__(self, base: Atoms, M: Any) -> None:
        self.M: Any
        self._operator, self._sparse = operator(M, "M"), sp.issparse(M)
        if self._sparse:
            real_array(M.data, "M")
            self.M = sp.csc_array(M)
        else:
            self.M = real_array(M, "M") if self._operator is None else self._operator
        shaped = self._sparse or self._operator is not None
        if len(self.M.shape) != 2:
            raise ValueError(f"M has shape {tuple(self.M.shape)}; give a matrix (rows, length of an atom).")
        if base.shape is not None and math.prod(base.shape) != self.M.shape[1]:
            raise ValueError(f"M has {self.M.shape[1]} columns, the atoms have {math.prod(base.shape)} entries.")
        self.base, self.shape = base, (int(self.M.shape[0]),)
        self.space = None if shaped else Space.of(self.M[:, 0])
        self._inner = Space.default((1,)) if shaped else Space.of(self.M[0, :])
        self._inner = replace(self._inner, shape=base.shape or (int(self.M.shape[1]),))
        self.symmetric, self.convex, self.size = base.symmetric, base.convex, base.size
        self.exact = base.exact

    def _back(self, g: Array) -> Array:
        product = self.M.T @ g if self._operator is None else self.M.rmatvec(g)
        return self._inner.xp.reshape(product, self._inner.shape)

    def _image(self, a: Any) -> Atom:
        a = as_atom(a)
        if isinstance(a, SparseAtom) and self._operator is None and 4 * len(a.positions) < self.M.shape[1]:
            return Atom(self._columns(a.positions) @ self._inner.put(a.values), a.source, a.coef)
        return Atom(self.M @ flat(a.dense(self._inner)), a.source, a.coef)

    def _columns(self, which: Indices) -> Any:
        if self._sparse or self._inner.numpy:
            return self.M[:, which]
        xp = self._inner.xp
        return xp.take(self.M, xp.asarray(which, device=self._inner.device), axis=1)

    def lmo(self, g: Array) -> Atom:
        return self._image(self.base.lmo(self._back(g)))

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return [self._image(a) for a in self.base.best(self._back(g), several)]

    def session(self, seed: int = 0) -> Session:
        base = self.base.session(seed)

        def answer(g: Array, several: int, level: float) -> tuple[Sequence[Atom], float]:
            atoms, lower = base(self._back(g), several, level)
            return [self._image(a) for a in atoms], lower

        return answer

    def chart(self) -> Chart | None:
        base = self.base.chart()
        return None if base is None else _Through(base, self)

    def scores(self, g: Array) -> Small:
        return self.base.scores(self._back(g))

    def atom(self, i: int) -> Atom:
        return self._image(self.base.atom(i))

    def rebuild(self, a: Atom) -> Atom | None:
        twin = self.base.rebuild(a)
        return None if twin is None else self._image(twin)

    def sample(self, rng: np.random.Generator) -> Atom:
        a = as_atom(self.base.sample(rng))
        if type(a) is Atom:  # sets that know no library draw NumPy arrays
            a = Atom(self._inner.put(host(a.vector)), a.source, a.coef)
        return self._image(a)

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else Mapped(self.base.symmetrised(), self.M)

    def coefficients(self, sources: Sequence[Any], values: Small) -> Any:
        return self.base.coefficients(sources, values)

    def __repr__(self) -> str:
        return f"{self.base!r}.through({self.M.shape[0]} x {self.M.shape[1]})"


class _Through:
    """The chart of atoms that are seen through a matrix."""

    def __init__(self, base: Chart, image: Mapped) -> None:
        self.base, self.image, self.bounds = base, image, base.bounds
        self.parameters, self.source = base.parameters, base.source

    def combine(self, thetas: Small, coefs: Small) -> tuple[Array, Pullback]:
        x, pull = self.base.combine(thetas, coefs)
        return self.image.M @ flat(x), lambda g: pull(self.image._back(g))


def as_atom(a: Any) -> Atom:
    """An oracle's answer as an Atom; a bare array is an atom without a source."""
    if isinstance(a, Atom):
        return a
    if not hasattr(a, "shape") or not hasattr(a, "dtype"):
        raise TypeError(f"an oracle answered with {type(a).__name__}; return an Atom, or an array of the shape of g.")
    return Atom(a)
