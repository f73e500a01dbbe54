"""The contract of an atom set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Protocol, Self

import numpy as np

from pursuit.arguments import describe, is_array
from pursuit.arrays import Array, Small, Space
from pursuit.atoms.closed import Closed
from pursuit.atoms.frames import Atom, CompactAtom, Source

Found = tuple[Sequence[Atom], float]
"""Atoms with small <g, a>, the best first, and a lower bound on min <g, a> that is proved, or -inf."""

Search = Callable[[Array, int, float], Found]
"""(g, several, level) -> up to `several` atoms, and the bound.

The level is <g, x> over a hull and 0 elsewhere. A set whose bound takes work to compute may stop once the error of the
bound is a fraction of its distance to the level. A level of -inf asks for all the accuracy that rounding allows."""

Pullback = Callable[[Array], tuple[Small, Small]]
"""g -> (<g, a_i> for every atom, the gradients of these numbers in the parameters, one row per atom)."""


class Chart(Protocol):
    """Parameters in which atoms move smoothly, so that a refinement can move them."""

    bounds: Small
    """(p, 2): the range of each parameter."""

    def parameters(self, source: Source) -> Small:
        """The parameters of a source."""

    def source(self, theta: Small) -> tuple[Source, float]:
        """The source with these parameters, and the sign s for which a(theta) is s times the atom of that source."""

    def combine(self, thetas: Small, coefs: Small) -> tuple[Array, Pullback]:
        """sum_i coefs_i a(theta_i), and the map from a gradient to the gradients in the parameters."""


class Atoms:
    """A set of atoms A in H, known through one question: which atom has the smallest inner product with g?

    A set defines one method: `lmo(g)`; or `best(g, several)`, where it can name several good atoms for one g; or
    `begin()`, where it proves a lower bound, or remembers something from one question of a run to the next. The base
    class derives the others. All other methods and attributes are optional; None means "not known".

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
    """Shape, dtype, device and array library of the atoms, for sets that are made of arrays."""
    symmetric: bool = False
    """Whether -a is an atom whenever a is."""
    convex: bool = False
    """Whether every point of the hull counts as an atom, as in a ball."""
    spherical: bool = False
    """Whether all atoms have the norm `radius`, and all points of the hull with this norm are atoms."""
    exact: bool = True
    """Whether `lmo` finds the minimum, to rounding; False where it may find only a local one."""
    failure: float = 0.0
    """The probability that the bound of one oracle call is wrong, where the set is not `exact`."""
    size: int | None = None
    """Number of atoms, for sets that can list them (`scores`, `atom`)."""
    radius: float | None = None
    """max ||a||, or an upper bound on it."""
    diameter: float | None = None
    """max ||a - b||, or an upper bound on it."""
    width: float | None = None
    """The minimal intrinsic directional width, or a lower bound on it."""
    questions: int = 1
    """How often a set is asked for one answer: twice where its negatives have to be asked for, too."""
    work: float | None = None
    """Multiplications and comparisons of a question to the oracle, about; None: not known, and taken as many."""
    entry_bounds: tuple[Array, Array] | None = None
    """(low, high), numbers or arrays, where the hull has all points of an affine space with entries between these, and
    every vertex has only such entries: then faces are given by the entries of x at a bound."""

    def __repr__(self) -> str:
        sizes = (str(vars(self)[name]) for name in ("n", "k") if name in vars(self))
        return f"{type(self).__name__}({', '.join(sizes)})"

    def lmo(self, g: Array) -> Atom:
        """The linear minimisation oracle: an atom that minimises <g, a>. Ties go to the lowest index; g may be zero."""
        return self.best(g, 1)[0]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        """Up to `several` atoms with small <g, a>, the answer of `lmo` first."""
        return [self.lmo(g)] if type(self).lmo is not Atoms.lmo else self.begin()(g, several, -math.inf)[0]

    def begin(self, seed: int = 0) -> Search:
        """The function that answers the questions of one run. What it remembers belongs to that run; a set that needs
        random numbers draws them from this seed."""
        if type(self).lmo is Atoms.lmo and type(self).best is Atoms.best:
            raise NotImplementedError(f"{type(self).__name__} must define lmo(g).")

        def search(g: Array, several: int, level: float) -> Found:
            atoms = self.best(g, several)
            if not len(atoms):
                raise ValueError(f"the oracle of {self!r} named no atom; it must name one for every g.")
            if not self.exact:
                return atoms, -math.inf
            first, space = as_atom(atoms[0]), Space.of(g)
            check_vector(first, space)
            return atoms, first.dot(space, g)

        return search

    def _with(self, **changes: Any) -> Self:
        """A copy of the set that shares its arrays, with these attributes changed."""
        other = copy(self)
        vars(other).update(changes)
        return other

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
        """A random atom, of a convex set an extreme one: by default one of the list, or the best for a random g."""
        if self.size is not None:
            return self.atom(int(rng.integers(self.size)))
        if self.shape is None:
            raise NotImplementedError(f"{type(self).__name__} cannot draw atoms; set shape, or define sample(rng).")
        return as_atom(self.lmo((self.space or Space.default(self.shape)).put(rng.standard_normal(self.shape))))

    def contains(self, a: Array) -> bool | None:
        """Whether the array is an atom, to rounding; None where that is not known."""
        space = Space.of(a)
        return self._is_atom(a, MEMBERSHIP_ULPS * space.eps) if self.shape in (None, space.shape) else False

    def _is_atom(self, a: Array, tolerance: float) -> bool | None:
        """The same for an array of the shape of the atoms; the tolerance is relative to their entries."""
        space = Space.of(a)
        norm = space.norm(a)
        gauge = self.gauge(a) if self.convex or self.spherical else None
        if gauge is not None:
            radius = norm if self.convex or self.radius is None else self.radius
            return gauge <= 1.0 + tolerance and abs(norm - radius) <= tolerance * radius
        if self.size is None:
            return None
        scores = self.scores(a / norm if norm > 0 else a)
        near = np.flatnonzero(np.abs(scores - norm) <= tolerance * norm)  # an atom b = a has <a, b> = <a, a>
        return any(space.norm(self.atom(int(i)).dense(space) - a) <= tolerance * norm for i in near)

    def gauge(self, x: Array) -> float | None:
        """The atomic norm inf{c >= 0 : x in c conv(A)}, where there is a closed form; of points that rounding has moved
        out of the cone, that of a point nearby."""
        return None

    def hull_contains(self, x: Array) -> bool | None:
        """Whether the point lies in conv(A), of sets without a gauge that can tell; None where that is not known."""
        return None

    def geometry(self) -> Closed | None:
        """The closed form of its geometry, where it has one; `pursuit.geometry` computes all that it leaves out."""
        return None

    def take_sizes(self, closed: Closed) -> None:
        """Take the attributes radius, diameter and width from a closed form."""
        self.radius, self.diameter, self.width = closed.radius, closed.diameter, closed.mdw

    def coefficients(self, sources: Sequence[Source], values: Small) -> object:
        """The combination sum_i values_i (atom of source i) in the set's own coordinates (for a dictionary, one entry
        per column), or None where it has none."""
        return None

    def symmetrised(self) -> Atoms:
        """The union of A and -A, which has the same span; its oracle answers for both signs."""
        from pursuit.atoms.combinations import Image

        return self if self.symmetric else Image(self, signed=True)

    def through(self, M: object, columns: int | None = None, l2: float = 0.0) -> Atoms:
        """The atoms M a, for a matrix, a sparse matrix or an operator: SciPy's LinearOperator, PyLops', or any object
        with shape, matvec and rmatvec, whose adjoint is checked once.

        With `columns` = K the atoms are read as matrices B of K columns, and their images are the matrices M B: a model
        with K outputs or classes. With `l2` > 0 an image has the atom itself below it, times sqrt(l2), so that
        `Ridge(f, p)` is f(M b) + l2/2 ||b||^2.

        >>> import numpy as np, pursuit as ps
        >>> X, y = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 3.0, 5.0])
        >>> A = ps.SignedBasis(2).through(X, l2=1e-9)
        >>> ps.minimize(ps.Ridge(ps.LeastSquares(y), 2), ps.lin(A)).coef.round(6)
        array([1., 2.])
        """
        from pursuit.atoms.combinations import Image
        from pursuit.atoms.maps import LinearMap

        return Image(self, M=LinearMap(M, self.shape, columns, l2))

    __array_ufunc__ = None  # so that NumPy leaves numpy_number * A to A

    def __rmul__(self, c: float) -> Atoms:
        from pursuit.atoms.combinations import Image

        return Image(self, c)

    def __mul__(self, c: float) -> Atoms:
        return self.__rmul__(c)

    def __add__(self, c: object) -> Atoms:
        if not (is_array(c) or isinstance(c, int | float | list)):
            return NotImplemented
        raise TypeError(
            f"{type(self).__name__} + {describe(c)} is no set of atoms; minimise f(x + c) over conv(A), or f over "
            f"conv(A) + conv(Dictionary(c[..., None]))."
        )

    __radd__ = __sub__ = __add__

    def __or__(self, other: Atoms) -> Atoms:
        from pursuit.atoms.combinations import Union

        return Union(self, other)

    def __ror__(self, other: Atoms) -> Atoms:
        return self.__or__(other)  # which is refused: a set on the left is asked first


MEMBERSHIP_ULPS = 1e3
"""`contains` accepts relative differences of this many units of roundoff."""


class OwnAtoms(Atoms):
    """The atoms of an oracle of the user, a function of g."""

    def __init__(self, oracle: Callable[[Array], Array], name: str) -> None:
        self._oracle, self._name = oracle, name

    def lmo(self, g: Array) -> Atom:
        return as_atom(self._oracle(g))

    def __repr__(self) -> str:
        return self._name


def own_atoms(oracle: object) -> Atoms:
    """The atoms of a function g -> atom, or of an object with a method `lmo`."""
    lmo = getattr(oracle, "lmo", oracle)
    if isinstance(oracle, type) or not callable(lmo):
        what = f"the class {oracle.__name__}; make one" if isinstance(oracle, type) else describe(oracle)
        advice = "give a set of atoms, a function g -> atom, or wrap a matrix in Dictionary(...)"
        raise TypeError(f"a domain is made of atoms, and A is {what}; {advice}.")
    return OwnAtoms(lmo, getattr(oracle, "__name__", type(oracle).__name__))


def as_atom(answer: object) -> Atom:
    """An oracle's answer as an Atom; a bare array is an atom without a source."""
    atom = answer if isinstance(answer, Atom) else Atom(answer)
    if not (isinstance(atom, CompactAtom) or is_array(atom.vector)):
        kind = type(atom.vector).__name__
        raise TypeError(f"an oracle answered with {kind}; return an Atom, or an array of the shape of g.")
    return atom


def check_vector(a: Atom, space: Space) -> None:
    """Refuse an atom that has another shape than the vectors of the space, or is not real."""
    problem = a.mismatch(space)
    if problem is not None and (problem.startswith("shape") or getattr(a.vector.dtype, "kind", "f") not in "fiub"):
        raise ValueError(f"an atom has {problem}; atoms must be vectors of the space of f.")
