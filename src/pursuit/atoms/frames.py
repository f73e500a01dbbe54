"""Atoms, and frames, which store the active atoms of one kind in the form that is cheapest to compute with.

An atom is a vector of H and its *source*, which says where it came from. A frame can synthesise (w -> sum_a w_a a),
analyse (g -> <g, a> for every atom a) and give inner products of its atoms in a metric. A kind of atom names its frame
and the arguments that make it (`Atom.frame`, `Atom.fields`); nothing else lists the kinds.

| atoms | frame | serves |
|---|---|---|
| `Atom` | `DenseFrame` | vectors |
| `SparseAtom` | `SparseFrame` | vectors with few nonzeros (`pursuit.atoms.sparse`) |
| `LiftedAtom` | `LiftedFrame` | images of sparse atoms, with these below them |
| `RankOneAtom` | `FactoredFrame` | rank-one matrices (`pursuit.atoms.factored`) |
| `TensorAtom` | `TensorFrame` | rank-one tensors (`pursuit.atoms.factored`) |
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from pursuit.arrays import Array, Indices, Small, Space, flat, host
from pursuit.metrics import Metric

Source = Any
"""Where an atom came from: a column number, a path, parameters; None: not known."""


class Frame:
    """Active atoms of one kind. A subclass adds `analyze` and `synthesize`, and shortcuts for inner products."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.atoms: list[Any] = []

    def holds(self, atom: Atom) -> bool:
        """Whether the atom is of the kind that this frame stores."""
        return type(self) is atom.frame

    def append(self, atom: Atom) -> None:
        """Store one more atom."""
        self.atoms.append(atom)

    def keep(self, which: Indices) -> None:
        """Drop all atoms but these, given in increasing order."""
        self.atoms = [self.atoms[i] for i in which]

    def analyze(self, g: Array) -> Small:
        """<g, a> for every atom a."""
        raise NotImplementedError

    def synthesize(self, w: Small) -> Array:
        """sum_a w_a a."""
        raise NotImplementedError

    def inner(self, metric: Metric, atom: Atom) -> Small:
        """<a, M atom> for every atom a of the frame."""
        return self.analyze(metric(atom.dense(self.space)))

    def gram(self, metric: Metric, which: Indices) -> Small:
        """<a, M b> for all pairs of the atoms at these places."""
        return np.stack([self.inner(metric, self.atoms[i])[which] for i in which])

    def rows_from(self, metric: Metric, start: int) -> Small:
        """<a, M b> for every atom a, a row for each atom b from place `start` on."""
        if not start:
            return self.gram(metric, np.arange(len(self.atoms)))
        return np.stack([self.inner(metric, atom) for atom in self.atoms[start:]])


class DenseFrame(Frame):
    """Atoms as the rows of one matrix in the user's array library, on the user's device."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._buffer = self._empty(8)
        self.rows = self._buffer[:0, :]

    def _empty(self, capacity: int) -> Array:
        return self.space.xp.zeros((capacity, self.space.size), dtype=self.space.dtype, device=self.space.device)

    def append(self, atom: Atom) -> None:
        k = len(self.atoms)
        if k == self._buffer.shape[0]:
            self._buffer = self._empty(2 * k)
            self._buffer[:k, :] = self.rows
        self._buffer[k, :] = flat(atom.dense(self.space))
        self.atoms.append(atom)
        self.rows = self._buffer[: k + 1, :]

    def keep(self, which: Indices) -> None:
        for new, old in enumerate(which):
            if new != old:
                self._buffer[new, :] = self._buffer[int(old), :]
        super().keep(which)
        self.rows = self._buffer[: len(which), :]

    def analyze(self, g: Array) -> Small:
        return host(self.rows @ flat(g))

    def synthesize(self, w: Small) -> Array:
        return self.space.xp.reshape(self.space.put(w) @ self.rows, self.space.shape)

    def rows_from(self, metric: Metric, start: int) -> Small:
        xp = self.space.xp
        return host(xp.matmul(metric.batch(self.rows[start:, :]), xp.permute_dims(self.rows, (1, 0))))

    def gram(self, metric: Metric, which: Indices) -> Small:
        xp = self.space.xp
        rows = xp.take(self.rows, xp.asarray(which, device=self.space.device), axis=0)
        return host(xp.matmul(rows, xp.permute_dims(metric.batch(rows), (1, 0))))


class Atom:
    """A vector of H with its source: vector = coef * (the vector that the source names).

    Parameters
    ----------
    vector : array of H's shape
    source : anything, optional
        Where the atom came from: a column number, a path, parameters. Atoms with equal hashable sources and equal
        `coef` are the same entry of the active set; atoms without a hashable source are compared by their vectors.
    coef : float
        The factor between what the source names and the vector: the sign and the scale. It enters `Result.coef`. Two
        different atoms of one source must differ in it.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> a = ps.Atom(np.array([0.0, -2.0]), source=1, coef=-2.0)             # -2 times what 1 names
    >>> a, a.scaled(3.0).vector
    (Atom(source=1, coef=-2), array([ 0., -6.]))
    """

    __slots__ = ("coef", "source", "vector")

    frame: ClassVar[type[Frame]] = DenseFrame
    """The frame that stores atoms of this kind."""
    fields: ClassVar[tuple[str, ...]] = ("vector", "source", "coef")
    """The attributes from which an atom of this kind is made, in the order of its arguments."""

    def __init__(self, vector: Array, source: Source = None, coef: float = 1.0) -> None:
        self.vector = vector
        self.source = source
        self.coef = coef

    def __reduce__(self) -> tuple[type[Atom], tuple[Any, ...]]:
        return type(self), self.arguments

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What the constructor takes to make this atom again."""
        return tuple(getattr(self, name) for name in self.fields)

    def dense(self, space: Space) -> Array:
        """The atom as an array of the space."""
        return self.vector

    def dot(self, space: Space, g: Array) -> float:
        """<g, atom>."""
        return space.dot(g, self.vector)

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        """x + c * atom, a new array."""
        return x + c * self.dense(space)

    def scaled(self, c: float) -> Atom:
        """c * atom."""
        return Atom(c * self.vector, self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        """The norm of the atom."""
        return space.norm(self.vector)

    def distance(self, space: Space, other: Atom) -> float:
        """||atom - other||."""
        return space.norm(other.dense(space) - self.dense(space))

    def mismatch(self, space: Space) -> str | None:
        """What is wrong with this atom as a vector of the space; None where nothing is."""
        v = self.vector
        if tuple(v.shape) != space.shape:
            return f"shape {tuple(v.shape)} where f lives on {space.shape}"
        return None if v.dtype == space.dtype else f"dtype {v.dtype} where f lives on {space.dtype}"

    def key(self, signless: bool) -> Hashable:
        """A key that equal atoms share; with `signless`, an atom and its negative share it, too."""
        if self.source is not None:
            try:
                hash(self.source)
            except TypeError:
                pass
            else:
                return (self.source, abs(self.coef) if signless else self.coef)
        data = flat(host(self.vector)) + 0.0  # -0.0 is 0.0
        if signless and data[np.flatnonzero(data)[:1]].sum() < 0:
            data = 0.0 - data
        return hashlib.blake2b(data.tobytes(), digest_size=16).digest()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(source={self.source!r}, coef={self.coef:g})"


class CompactAtom(Atom):
    """An atom that is stored without its vector. A subclass adds its shape, `dense`, `dot`, `scaled` and `norm`."""

    __slots__ = ()

    def __init__(self, source: Source, coef: float) -> None:
        self.source = source
        self.coef = coef

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the vector."""
        raise NotImplementedError

    @property
    def vector(self) -> Array:
        return self.dense(Space.default(self.shape))

    def mismatch(self, space: Space) -> str | None:
        return None if self.shape == space.shape else f"shape {self.shape} where f lives on {space.shape}"


def kinds() -> dict[str, type[Atom]]:
    """The kinds of atoms that state their fields, by name."""
    found: list[type[Atom]] = [Atom]
    for kind in found:
        found.extend(kind.__subclasses__())
    return {kind.__name__: kind for kind in found if "fields" in vars(kind)}
