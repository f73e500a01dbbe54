"""Dictionaries in pieces: each piece names its best columns, and the best of these are the answer.

The answer does not depend on how the columns are divided. A piece finds the columns that may be among the best by its
product or by its 8-bit copy. Whatever rounding leaves in doubt is decided by a sum in float64 whose order depends on
the length of a column only, and equal numbers by the lower index.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pursuit._ranking import rounding
from pursuit.arguments import describe, quantity
from pursuit.arrays import Array, Indices, Small, Space, flat, host, largest
from pursuit.atoms.base import Found, Search
from pursuit.atoms.frames import Atom
from pursuit.atoms.screening import Payment, Screen, can_be_screened
from pursuit.atoms.vectors import Dictionary, Listed

BYTES_WITH_ANSWERS = 1 << 20
"""Columns come with the answers of the pieces if those of all pieces together have at most this size."""
CACHE_BYTES = 1 << 28
"""Columns that a run keeps, so that those of active atoms are not asked for again."""
ROWS_AT_ONCE = 64
"""Columns whose products are recomputed together."""


@dataclass(frozen=True)
class Candidates:
    """The best columns of one piece: their numbers in the whole dictionary, products with g, and perhaps the atoms."""

    numbers: Indices
    products: Small
    atoms: list[Atom] | None


@dataclass(frozen=True)
class Facts:
    """Of a piece: the number of columns, their largest norm, the space of arrays (None: sparse), and their shape."""

    n: int
    radius: float
    space: Space | None
    shape: tuple[int, ...]


@dataclass(frozen=True)
class How:
    """How a piece answers: whether it may make an 8-bit copy, makes it at once, and sends the atoms with the answer."""

    copies: bool = True
    copies_now: bool = False
    with_atoms: bool = False


@dataclass
class Piece:
    """Some columns of a dictionary. In the whole, its first column has the number `start`, which questions tell."""

    columns: Dictionary
    screen: Screen | None = None
    paid: Payment = field(default_factory=Payment)

    @classmethod
    def of(cls, D: Any, number: int) -> Piece:
        """A piece of the columns of D; `number` is quoted if they are refused."""
        try:
            return cls(Dictionary(D))
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"in piece {number}, {problem}") from None

    def facts(self, number: int) -> Facts:
        """What the whole dictionary must know of the piece."""
        A = self.columns
        assert A.radius is not None
        assert A.shape is not None
        return Facts(A.n, A.radius, A.space, A.shape)

    def correlations(self, start: int, g: Array) -> Small:
        """The products of all columns with g."""
        return host(self.columns.correlations(g))

    def atoms(self, start: int, numbers: Sequence[int]) -> list[Atom]:
        """The columns with these numbers."""
        return self._named([int(j) - start for j in numbers], numbers)

    def _named(self, places: Sequence[int], numbers: Sequence[int]) -> list[Atom]:
        """The columns at these places of the piece, with these numbers."""
        found = [self.columns.column(int(j), 1.0) for j in places]
        for atom, number in zip(found, numbers, strict=True):
            atom.source = int(number)
        return found

    def best(self, start: int, g: Array, several: int, signed: bool, how: How) -> Candidates:
        """The `several` best columns."""
        several = min(several, self.columns.n)
        which = self._by_copy(g, several, signed, how)
        if which is None:
            which = self._contenders(g, several, signed)
        return self.ranked(which, which + start, g, several, signed, how.with_atoms)

    def ranked(
        self, which: Indices, numbers: Indices, g: Array, several: int, signed: bool, with_atoms: bool
    ) -> Candidates:
        """The `several` best of the columns at the places `which`, which have these numbers."""
        products = self._products(which, g)
        order = np.lexsort((numbers, -(np.abs(products) if signed else -products)))[:several]
        atoms = self._named(which[order].tolist(), numbers[order].tolist()) if with_atoms else None
        return Candidates(numbers[order], products[order], atoms)

    def _by_copy(self, g: Array, several: int, signed: bool, how: How) -> Indices | None:
        """The best columns, where the 8-bit copy exists and proves which they are."""
        matrix = getattr(self.columns, "_matrix", None)
        if self.screen is None and how.copies and can_be_screened(matrix):
            assert matrix is not None
            if how.copies_now or self.paid.covers(matrix):
                self.screen = Screen(matrix)
        self.paid.add(several)
        found = None if self.screen is None else self.screen.best(flat(g), several, signed)
        return None if found is None else np.asarray(found[0])

    def _contenders(self, g: Array, several: int, signed: bool) -> Indices:
        """The columns that may be among the best, by the product D'g and the bound on its rounding errors."""
        c = self.correlations(0, g)
        merit, space = np.abs(c) if signed else -c, Space.of(g)
        assert self.columns.radius is not None
        doubt = 2.0 * rounding(space.size, space.dtype) * self.columns.radius * space.norm(g)
        last = merit.max() if several == 1 else largest(merit, several)[1][-1]
        found = np.flatnonzero(merit >= last - 2.0 * doubt)
        return found if len(found) else np.arange(several)  # a NaN in g, which is refused later

    def _products(self, which: Indices, g: Array) -> Small:
        """The products of these columns with g in float64, each by the same sum wherever the column is stored."""
        v, matrix = host(flat(g)), getattr(self.columns, "_matrix", None)
        if not isinstance(matrix, np.ndarray):
            sparse = [self.columns.column(int(j), 1.0) for j in which]
            return np.array([np.add.reduce(v[a.positions] * a.values) for a in sparse])  # type: ignore[attr-defined]
        parts = [matrix.T[which[k : k + ROWS_AT_ONCE]] for k in range(0, len(which), ROWS_AT_ONCE)]
        return np.concatenate([np.add.reduce(np.ascontiguousarray(rows, np.float64) * v, axis=1) for rows in parts])


class Pieces(Listed):
    """A dictionary in pieces, which `ask` reaches."""

    space: Space
    shape: tuple[int, ...]
    radius: float
    how = How()

    def ask(self, which: Sequence[int], function: Callable[..., Any], each: Sequence[Any], *shared: Any) -> list[Any]:
        """``function(piece, e, *shared)`` of the pieces with these numbers; e is the entry of `each` for a piece."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self.starts) - 1

    def _ask_all(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        return self.ask(range(self.count), function, self.starts[:-1].tolist(), *shared)

    def _describe(self, facts: list[Facts], signed: bool) -> None:
        """Take what the pieces say of themselves."""
        first = facts[0]
        for i, other in enumerate(facts):
            if other.shape != first.shape or (other.space is None) != (first.space is None):
                raise ValueError(
                    f"piece {i} has columns of shape {other.shape}, piece 0 of {first.shape}, or only one is sparse."
                )
            if other.space is not None and first.space is not None and other.space.dtype != first.space.dtype:
                kinds = f"piece {i} has dtype {other.space.dtype}, piece 0 {first.space.dtype}"
                raise TypeError(f"{kinds}; convert one of them.")
        self.shape = first.shape
        self.space = first.space or Space.default(self.shape)
        self.starts = np.cumsum([0, *(each.n for each in facts)])
        self.n, self.radius = int(self.starts[-1]), max(each.radius for each in facts)
        self.symmetric, self.diameter = signed, 2.0 * self.radius
        self.size = 2 * self.n if signed else self.n

    def correlations(self, g: Array) -> Array:
        return np.concatenate(self._ask_all(Piece.correlations, g))

    def column(self, j: int, sign: float) -> Atom:
        return _with_sign(self._columns([j])[0], sign)

    def _columns(self, numbers: Sequence[int]) -> list[Atom]:
        """The columns with these numbers; only they travel."""
        owners = (np.searchsorted(self.starts, numbers, side="right") - 1).tolist()
        found: dict[int, Atom] = {}
        for owner in sorted(set(owners)):
            mine = [j for j, i in zip(numbers, owners, strict=True) if i == owner]
            (atoms,) = self.ask([owner], Piece.atoms, [int(self.starts[owner])], mine)
            found |= dict(zip(mine, atoms, strict=True))
        return [found[j] for j in numbers]

    def lmo(self, g: Array) -> Atom:
        return self.best(g, 1)[0]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return self._best(g, several, OrderedDict())

    def _best(self, g: Array, several: int, cache: OrderedDict[int, Atom]) -> list[Atom]:
        """The best atoms; `cache` has columns by number, the least recently used first."""
        if not isinstance(g, np.ndarray):
            raise TypeError(f"g is {describe(g)}; dictionaries in pieces work on NumPy arrays.")
        size = self.space.size * self.space.dtype.itemsize
        small = self.count * several * size <= BYTES_WITH_ANSWERS
        found = self._candidates(g, several, replace(self.how, with_atoms=small))
        numbers = np.concatenate([part.numbers for part in found])
        products = np.concatenate([part.products for part in found])
        winners = np.lexsort((numbers, -(np.abs(products) if self.symmetric else -products)))[:several]
        cache.update((atom.source, atom) for part in found for atom in part.atoms or ())
        wanted = numbers[winners].tolist()
        missing = [j for j in wanted if j not in cache]
        if missing:
            cache.update(zip(missing, self._columns(missing), strict=True))
        atoms = [cache[j] for j in wanted]
        for j in wanted:
            cache.move_to_end(j)
        while len(cache) > max(several, CACHE_BYTES // size):
            cache.popitem(last=False)
        signs = np.where(products[winners] > 0, -1.0, 1.0) if self.symmetric else np.ones(len(winners))
        return [_with_sign(atom, sign) for atom, sign in zip(atoms, signs.tolist(), strict=True)]

    def _candidates(self, g: Array, several: int, how: How) -> list[Candidates]:
        """Columns of all pieces, the `several` best among them."""
        return self._ask_all(Piece.best, g, several, self.symmetric, how)

    def begin(self, seed: int = 0) -> Search:
        cache: OrderedDict[int, Atom] = OrderedDict()

        def search(g: Array, several: int, level: float) -> Found:
            atoms = self._best(g, several, cache)
            return atoms, atoms[0].dot(Space.of(g), g)

        return search

    def symmetrised(self) -> Pieces:
        return self if self.symmetric else self._with(symmetric=True, size=2 * self.n)

    def screened(self) -> Pieces:
        """The same set whose pieces make their 8-bit copies when they are first asked."""
        return self._with(how=replace(self.how, copies_now=True))

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, (*self.shape, self.n)))
        signed = ", signed=True" if self.symmetric else ""
        return f"{type(self).__name__}({sizes} in {quantity(self.count, 'piece')}{signed})"


def _with_sign(atom: Atom, sign: float) -> Atom:
    return atom if sign > 0 else atom.scaled(-1.0)
