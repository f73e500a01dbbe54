"""Dictionaries in pieces: each piece names its best columns, and the best of these are the answer.

The answer does not depend on how the columns are divided. A piece finds the columns that can be among the best by its
product or by its 8-bit copy. These are ranked by a sum in float64 whose order depends on the length of a column only,
and equal numbers by the lower index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pursuit.arguments import describe, quantity, require
from pursuit.arrays import Array, Indices, Small, Space, flat, host, largest
from pursuit.atoms.base import Found, Search
from pursuit.atoms.columns import Dictionary, Listed
from pursuit.atoms.copies import (
    MIN_SCREENED_ENTRIES,
    Attempts,
    EightBitCopy,
    entries_to_copy,
)
from pursuit.atoms.frames import Atom
from pursuit.linalg.ranking import rounding

ROWS_AT_ONCE = 64
"""Columns whose products are recomputed together."""


@dataclass(frozen=True)
class Question:
    """Which columns have the `several` largest |<a, g>| (or smallest <a, g>, if not `signed`)?"""

    g: Array
    several: int
    signed: bool
    by_copy: bool = False
    """Whether the 8-bit copy is read first."""
    with_atoms: bool = False
    """Whether the columns come with the answer."""

    def ranked(self, products: Small, numbers: Indices) -> Indices:
        """The places of the `several` best products, equal ones by their numbers."""
        return np.lexsort((numbers, -(np.abs(products) if self.signed else -products)))[: self.several]


@dataclass(frozen=True)
class Candidates:
    """The best columns of a piece: their numbers, their products with g, the columns themselves if they were asked for,
    and whether an 8-bit copy has found them."""

    numbers: Indices
    products: Small
    atoms: Sequence[Atom]
    by_copy: bool = True


@dataclass(frozen=True)
class Piece:
    """Some columns of a dictionary, counted from 0."""

    columns: Dictionary
    temporary: bool = False
    """Whether the columns are in memory for one question only; then its atoms are copies, which do not keep them."""

    @classmethod
    def of(cls, D: object, number: int) -> Piece:
        """A piece of the columns of D; `number` is quoted if they are refused."""
        try:
            columns = Dictionary(D)
            require(columns.radius is not None, "D", D, "an array or a sparse matrix")
            return cls(columns)
        except (TypeError, ValueError) as problem:
            raise type(problem)(f"in piece {number}, {problem}") from None

    @cached_property
    def eight_bit(self) -> EightBitCopy | None:
        """The 8-bit copy, made when it is first asked for; None where there is none."""
        matrix = self.columns.matrix
        return EightBitCopy(matrix) if entries_to_copy(matrix) else None

    def description(self) -> Dictionary:
        """What the whole dictionary must know of the piece: the set without its columns."""
        return self.columns.without_columns()

    def correlations(self, g: Array) -> Small:
        """The products of all columns with g."""
        return host(self.columns.correlations(g))

    def atoms(self, places: Sequence[int]) -> list[Atom]:
        """The columns at these places."""
        atoms = [self.columns.column(int(j), 1.0) for j in places]
        return deepcopy(atoms) if self.temporary else atoms

    def best(self, question: Question) -> Candidates:
        """The best columns."""
        several = min(question.several, self.columns.n)
        copy = self.eight_bit if question.by_copy else None
        which = None if copy is None else copy.contenders(flat(question.g), several, question.signed)
        if which is None:
            return replace(self.ranked(self._contenders(question, several), question), by_copy=False)
        return self.ranked(which, question)

    def _contenders(self, question: Question, several: int) -> Indices:
        """The columns that can be among the best, by the product D'g and the bound on its rounding errors."""
        c, space = self.correlations(question.g), Space.of(question.g)
        merit = np.abs(c) if question.signed else -c
        assert self.columns.radius is not None
        error = 2.0 * rounding(space.size, space.dtype) * self.columns.radius * space.norm(question.g)
        last = merit.max() if several == 1 else largest(merit, several)[1][-1]
        which = np.flatnonzero(merit >= last - 2.0 * error)
        return which if len(which) else np.arange(several)  # a NaN in g, which is refused later

    def ranked(self, which: Indices, question: Question) -> Candidates:
        """The best of the columns at the places `which`."""
        products = self._products(which, question.g)
        places = question.ranked(products, which)
        atoms = self.atoms(which[places].tolist()) if question.with_atoms else ()
        return Candidates(which[places], products[places], atoms)

    def _products(self, which: Indices, g: Array) -> Small:
        """The products of these columns with g in float64, each by the same sum wherever the column is stored."""
        v, matrix = host(flat(g)), self.columns.matrix
        if matrix is None:
            D = self.columns.D
            spans = [slice(D.indptr[j], D.indptr[j + 1]) for j in which]
            return np.array([np.add.reduce(v[D.indices[span]] * D.data[span]) for span in spans])
        parts = [matrix.T[which[k : k + ROWS_AT_ONCE]] for k in range(0, len(which), ROWS_AT_ONCE)]
        return np.concatenate([np.add.reduce(np.ascontiguousarray(rows, np.float64) * v, axis=1) for rows in parts])


class Pieces(Listed):
    """A dictionary in pieces, which `map` reaches."""

    space: Space
    shape: tuple[int, ...]
    radius: float
    dense: bool
    copies_made = False
    """Whether a run reads 8-bit copies from its first question on."""
    min_screened: float = MIN_SCREENED_ENTRIES
    """The number of entries of a piece from which on a run makes 8-bit copies."""
    bytes_with_answers = 1 << 20
    """Columns come with the answers of the pieces if those of all pieces together have at most this size."""

    def map(self, function: Callable[..., Any], which: Sequence[int], *arguments: object) -> list[Any]:
        """What `function` makes of the pieces with these numbers, and of the arguments."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The number of pieces."""
        return len(self.starts) - 1

    def _describe(self, pieces: list[Dictionary], signed: bool) -> None:
        """Take what the pieces say of themselves."""
        for i, other in enumerate(pieces):
            check_alike(pieces[0], other, i)
        self.dense, self.shape = pieces[0].space is not None, pieces[0].shape or ()
        self.space = pieces[0].space or Space.default(self.shape)
        self.starts = np.cumsum([0, *(piece.n for piece in pieces)])
        self.n, self.radius = int(self.starts[-1]), max(piece.radius or 0.0 for piece in pieces)
        self.symmetric, self.diameter = signed, 2.0 * self.radius
        self.size = 2 * self.n if signed else self.n

    def correlations(self, g: Array) -> Array:
        return np.concatenate(self.map(Piece.correlations, range(self.count), g))

    def column(self, j: int, sign: float) -> Atom:
        (atom,) = self.columns([j])
        return atom if sign > 0 else atom.scaled(-1.0)

    def columns(self, numbers: Sequence[int], answers: Sequence[Candidates] = ()) -> list[Atom]:
        """The columns with these numbers; those that have not come with the answers of pieces are asked for."""
        columns: dict[int, Atom] = {}
        for answer in answers:
            columns |= zip(answer.numbers.tolist(), answer.atoms, strict=False)
        missing = np.array([j for j in numbers if j not in columns], dtype=np.intp)
        owners = np.searchsorted(self.starts, missing, side="right") - 1
        for i in np.unique(owners).tolist():
            wanted = missing[owners == i]
            (atoms,) = self.map(Piece.atoms, [i], (wanted - self.starts[i]).tolist())
            columns |= zip(wanted.tolist(), atoms, strict=True)
        for j in numbers:
            columns[j].source = j
        return [columns[j] for j in numbers]

    def candidates(self, question: Question) -> list[Candidates]:
        """Columns of all pieces, the best ones among them."""
        answers = self.map(Piece.best, range(self.count), question)
        return [replace(a, numbers=a.numbers + start) for a, start in zip(answers, self.starts[:-1], strict=True)]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        return self._search(0)(g, several, 0.0)[0]

    def begin(self, seed: int = 0) -> Search:
        return self._search(self.space.size * self.n // self.count if self.dense else 0)

    def _search(self, entries: int) -> PieceSearch:
        return PieceSearch(self, Attempts.begin(entries, self.min_screened, self.copies_made))

    def symmetrised(self) -> Pieces:
        return self if self.symmetric else self._with(symmetric=True, size=2 * self.n)

    def __repr__(self) -> str:
        sizes = " x ".join(map(str, (*self.shape, self.n)))
        signed = ", signed=True" if self.symmetric else ""
        return f"{type(self).__name__}({sizes} in {quantity(self.count, 'piece')}{signed})"


@dataclass
class PieceSearch:
    """The questions of one run to a dictionary in pieces."""

    A: Pieces
    attempts: Attempts

    def __call__(self, g: Array, several: int, level: float) -> Found:
        if not isinstance(g, np.ndarray):
            raise TypeError(f"g is {describe(g)}; dictionaries in pieces work on NumPy arrays.")
        A, by_copy = self.A, self.attempts.due(several, self.A.n)
        with_atoms = A.count * several * A.space.size * A.space.dtype.itemsize <= A.bytes_with_answers
        question = Question(g, several, A.symmetric, by_copy, with_atoms)
        answers = A.candidates(question)
        if by_copy:
            self.attempts.record(all(answer.by_copy for answer in answers))
        else:
            self.attempts.count_product(several)
        numbers = np.concatenate([answer.numbers for answer in answers])
        products = np.concatenate([answer.products for answer in answers])
        winners = question.ranked(products, numbers)
        columns = A.columns(numbers[winners].tolist(), answers)
        flip = A.symmetric & (products[winners] > 0)
        atoms = [a.scaled(-1.0) if negative else a for a, negative in zip(columns, flip, strict=True)]
        return atoms, atoms[0].dot(Space.of(g), g)


def check_alike(first: Dictionary, other: Dictionary, i: int) -> None:
    """Refuse piece i if its columns have another kind than those of piece 0."""
    if other.shape != first.shape or (other.space is None) != (first.space is None):
        shapes = f"piece {i} has columns of shape {other.shape}, piece 0 of {first.shape}"
        raise ValueError(f"{shapes}, or only one is sparse.")
    if other.space is not None and first.space is not None and other.space.dtype != first.space.dtype:
        kinds = f"piece {i} has dtype {other.space.dtype}, piece 0 {first.space.dtype}"
        raise TypeError(f"{kinds}; convert one of them.")
