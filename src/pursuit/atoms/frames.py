"""Atoms, and frames, which store the active atoms of one kind in the form that is cheapest to compute with.

An atom is a vector of H and its *source*, which says where it came from. A frame can synthesise (w -> sum_a w_a a),
analyse (g -> <g, a> for every atom a) and give inner products of its atoms in a metric.

| atoms | frame | serves |
|---|---|---|
| `Atom` | `DenseFrame` | vectors |
| `SparseAtom` | `SparseFrame` | vectors with few nonzeros: 100 atoms of `SignedBasis(10_000_000)` take 100 indices |
| `LiftedAtom` | `LiftedFrame` | images of sparse atoms, with these below them (`A.through(M, l2=...)`) |
| `RankOneAtom` | `FactoredFrame` | rank-one matrices (`pursuit.atoms.factored`) |
| `TensorAtom` | `TensorFrame` | rank-one tensors (`pursuit.atoms.cp`) |
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from operator import index
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from pursuit.arrays import Array, Indices, Small, Space, flat, host
from pursuit.metrics import Diagonal, Identity, Metric, Stacked

BATCH_ENTRIES = 1 << 23
"""Entries of the dense vectors to which a metric is applied at once."""


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

    __slots__ = ("_vector", "coef", "source")

    view: Any = None
    """Which entries of a structured atom make up the vector; atoms of one kind and one view share a frame."""

    def __init__(self, vector: Array, source: Any = None, coef: float = 1.0) -> None:
        self._vector = vector
        self.source = source
        self.coef = coef

    @property
    def vector(self) -> Array:
        """The atom as an array of H."""
        return self._vector

    def dense(self, space: Space) -> Array:
        """The atom as an array of the space."""
        return self._vector

    def dot(self, space: Space, g: Array) -> float:
        """<g, atom>."""
        return space.dot(g, self._vector)

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        """x + c * atom, a new array."""
        return x + c * self._vector

    def scaled(self, c: float) -> Atom:
        """c * atom."""
        return Atom(c * self._vector, self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        """The norm of the atom."""
        return space.norm(self._vector)

    def distance(self, space: Space, other: Atom) -> float:
        """||atom - other||."""
        return space.norm(other.dense(space) - self.dense(space))

    def mismatch(self, space: Space) -> str | None:
        """What is wrong with this atom as a vector of the space; None where nothing is."""
        v = self._vector
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


class SparseAtom(Atom):
    """An atom with few nonzeros: values at flat positions of an array of the given shape.

    >>> import numpy as np, pursuit as ps
    >>> a = ps.SparseAtom([1, 5], [2.0, -1.0], shape=(2, 3))
    >>> a.dense(ps.Space.default((2, 3)))
    array([[ 0.,  2.,  0.],
           [ 0.,  0., -1.]])
    """

    __slots__ = ("positions", "shape", "values")

    def __init__(
        self, positions: Any, values: Any, shape: tuple[int, ...], source: Any = None, coef: float = 1.0
    ) -> None:
        super().__init__(None, source, coef)
        try:
            self.positions: Indices = np.asarray(positions, dtype=np.intp)
            self.values: Small = np.asarray(values, dtype=np.float64)
            self.shape = tuple(map(index, shape))
        except (TypeError, ValueError, OverflowError):  # in the words of NumPy
            kinds = "positions must be integers, values real numbers, and shape a tuple of integers"
            raise TypeError(f"{kinds}; see SparseAtom.") from None
        if self.positions.shape != self.values.shape or self.positions.ndim != 1:
            raise ValueError(
                f"positions and values have shapes {self.positions.shape} and {self.values.shape}; give pairs."
            )
        if len(self.positions) and not 0 <= self.positions.min() <= self.positions.max() < math.prod(shape):
            raise ValueError(
                f"positions reach from {self.positions.min()} to {self.positions.max()} in an array of {shape}."
            )
        if len(self.positions) > 1 and (np.diff(self.positions) <= 0).any():  # sorted, each position once
            self.positions, owner = np.unique(self.positions, return_inverse=True)
            self.values = np.asarray(np.bincount(owner, self.values), dtype=np.float64)

    @property
    def vector(self) -> Array:
        return self.dense(Space.default(self.shape))

    def dense(self, space: Space) -> Array:
        return space.scatter(self.positions, self.values)

    def dot(self, space: Space, g: Array) -> float:
        return float(space.gather(g, self.positions) @ self.values)

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        if not space.numpy:
            return x + c * self.dense(space)
        y = x.copy()
        np.add.at(y.reshape(-1), self.positions, c * self.values)
        return y

    def scaled(self, c: float) -> SparseAtom:
        return SparseAtom(self.positions, c * self.values, self.shape, self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        return float(np.linalg.norm(self.values))

    def mismatch(self, space: Space) -> str | None:
        return None if self.shape == space.shape else f"shape {self.shape} where f lives on {space.shape}"


class LiftedAtom(Atom):
    """The image of a sparse atom, and below it the sparse atom: two arrays, one above the other."""

    __slots__ = ("image", "tail")

    def __init__(self, image: Array, tail: SparseAtom, source: Any = None, coef: float = 1.0) -> None:
        super().__init__(None, source, coef)
        self.image, self.tail = image, tail

    @property
    def vector(self) -> Array:
        return self.dense(Space.of(self.image))

    def dense(self, space: Space) -> Array:
        return space.xp.concat([self.image, self.tail.dense(below(space, self.tail))])

    def dot(self, space: Space, g: Array) -> float:
        n = self.image.shape[0]
        return space.dot(g[:n, ...], self.image) + self.tail.dot(below(space, self.tail), g[n:, ...])

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        return x + c * self.dense(space)

    def scaled(self, c: float) -> LiftedAtom:
        return LiftedAtom(c * self.image, self.tail.scaled(c), self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        return math.hypot(space.norm(self.image), self.tail.norm(space))

    def mismatch(self, space: Space) -> str | None:
        shape = (self.image.shape[0] + self.tail.shape[0], *self.image.shape[1:])
        return None if shape == space.shape else f"shape {shape} where f lives on {space.shape}"


def below(space: Space, tail: SparseAtom) -> Space:
    """The space of the lower parts of lifted atoms."""
    return replace(space, shape=tail.shape)


class DenseFrame:
    """Atoms as the rows of one matrix in the user's array library, on the user's device."""

    kind: ClassVar[type[Atom]] = Atom
    view: ClassVar[Any] = None

    def __init__(self, space: Space) -> None:
        self.space, self.k = space, 0
        self._rows = self._empty(8)

    def _empty(self, capacity: int) -> Array:
        return self.space.xp.zeros((capacity, self.space.size), dtype=self.space.dtype, device=self.space.device)

    @property
    def rows(self) -> Array:
        return self._rows[: self.k, :]

    def append(self, atom: Atom) -> None:
        if self.k == self._rows.shape[0]:
            grown = self._empty(2 * self.k)
            grown[: self.k, :] = self._rows
            self._rows = grown
        self._rows[self.k, :] = flat(atom.dense(self.space))
        self.k += 1

    def keep(self, which: Indices) -> None:
        """Drop all atoms but these, given in increasing order."""
        for new, old in enumerate(which):
            if new != old:
                self._rows[new, :] = self._rows[int(old), :]
        self.k = len(which)

    def analyze(self, g: Array) -> Small:
        return host(self.rows @ flat(g))

    def synthesize(self, w: Small) -> Array:
        return self.space.xp.reshape(self.space.put(w) @ self.rows, self.space.shape)

    def inner(self, metric: Metric, atom: Atom) -> Small:
        """<a, M atom> for every atom a of the frame."""
        return self.analyze(metric(atom.dense(self.space)))

    def rows_from(self, metric: Metric, start: int) -> Small:
        """<a, M b> for every atom a, a row for each atom b from place `start` on: one product for all."""
        xp = self.space.xp
        return host(xp.matmul(metric.batch(self.rows[start:, :]), xp.permute_dims(self.rows, (1, 0))))

    def gram(self, metric: Metric, which: Indices) -> Small:
        """<a, M b> for all pairs of the atoms at these places."""
        xp = self.space.xp
        rows = xp.take(self.rows, xp.asarray(which, device=self.space.device), axis=0)
        return host(xp.matmul(rows, xp.permute_dims(metric.batch(rows), (1, 0))))


class SparseFrame:
    """Atoms as the columns of one sparse matrix, kept as positions and values on the host."""

    kind: ClassVar[type[Atom]] = SparseAtom
    view: ClassVar[Any] = None

    def __init__(self, space: Space) -> None:
        self.space = space
        self._atoms: list[SparseAtom] = []
        self._pack()

    def _pack(self) -> None:
        none: list[Any] = [np.empty(0)]
        self._positions = np.concatenate([a.positions for a in self._atoms] or none).astype(np.intp)
        self._values = np.concatenate([a.values for a in self._atoms] or none)
        self._counts = np.array([len(a.positions) for a in self._atoms], dtype=np.intp)
        self._starts = np.cumsum(self._counts) - self._counts

    def append(self, atom: Atom) -> None:
        assert isinstance(atom, SparseAtom)
        self._starts = np.append(self._starts, len(self._positions))
        self._counts = np.append(self._counts, len(atom.positions))
        self._positions = np.concatenate([self._positions, atom.positions])
        self._values = np.concatenate([self._values, atom.values])
        self._atoms.append(atom)

    def keep(self, which: Indices) -> None:
        self._atoms = [self._atoms[i] for i in which]
        self._pack()

    def analyze(self, g: Array) -> Small:
        return self._sums(self.space.gather(g, self._positions) * self._values)

    def _sums(self, products: Small) -> Small:
        owner = np.repeat(np.arange(len(self._counts)), self._counts)
        return np.asarray(np.bincount(owner, products, len(self._counts)), dtype=np.float64)

    def synthesize(self, w: Small) -> Array:
        return self.space.scatter(self._positions, self._values * np.repeat(w, self._counts))

    def inner(self, metric: Metric, atom: Atom) -> Small:
        dense = self.space.size <= len(self._positions)  # then it is faster to read values from a dense vector
        if dense or not (isinstance(atom, SparseAtom) and isinstance(metric, Diagonal)):
            return self.analyze(metric(atom.dense(self.space)))
        values, places = self._weigh(metric, atom.positions, atom.values), atom.positions
        if not len(places):
            return np.zeros(len(self._counts))
        at = np.minimum(np.searchsorted(places, self._positions), len(places) - 1)
        hits = np.where(places[at] == self._positions, values[at], 0.0)
        return self._sums(hits * self._values)

    def _weigh(self, metric: Diagonal, positions: Indices, values: Small) -> Small:
        return values * (metric.h if isinstance(metric, Identity) else self.space.gather(metric.h, positions))

    def _images(self, metric: Metric, which: Indices) -> Iterator[Array]:
        """M a for the atoms at these places: many at once, since that may be one question to a cluster."""
        step = max(1, BATCH_ENTRIES // self.space.size)
        for batch in (which[start : start + step] for start in range(0, len(which), step)):
            images = metric.batch(self.space.xp.stack([flat(self._atoms[i].dense(self.space)) for i in batch]))
            yield from (images[i, :] for i in range(len(batch)))

    def gram(self, metric: Metric, which: Indices) -> Small:
        if not isinstance(metric, Diagonal):
            return np.stack([self.analyze(image)[which] for image in self._images(metric, which)])
        places, rows = np.unique(self._positions, return_inverse=True)
        pointers = np.append(self._starts, len(self._positions))
        shape = (len(places), len(self._counts))  # which SciPy cannot infer where all atoms are zero
        plain = sp.csc_array((self._values, rows, pointers), shape)
        weighed = sp.csc_array((self._weigh(metric, self._positions, self._values), rows, pointers), shape)
        return np.asarray((plain[:, which].T @ weighed[:, which]).todense())


class LiftedFrame:
    """Images of sparse atoms in a dense frame, and the atoms themselves in a sparse one."""

    kind: ClassVar[type[Atom]] = LiftedAtom
    view: ClassVar[Any] = None

    def __init__(self, space: Space) -> None:
        self.space, self.n = space, 0
        self._images: DenseFrame
        self._tails: SparseFrame
        self._below = np.zeros((0, 0))  # inner products of the lower parts

    def append(self, atom: Atom) -> None:
        assert isinstance(atom, LiftedAtom)
        if not self.n:
            self.n = int(atom.image.shape[0])
            self._images = DenseFrame(replace(self.space, shape=(self.n, *self.space.shape[1:])))
            self._tails = SparseFrame(below(self.space, atom.tail))
        self._images.append(Atom(atom.image))
        self._tails.append(atom.tail)
        row = self._tails.inner(Identity(), atom.tail)
        self._below = np.block([[self._below, row[:-1, None]], [row]])

    def keep(self, which: Indices) -> None:
        self._below = self._below[np.ix_(which, which)]
        self._images.keep(which)
        self._tails.keep(which)

    def analyze(self, g: Array) -> Small:
        return self._images.analyze(g[: self.n, ...]) + self._tails.analyze(g[self.n :, ...])

    def synthesize(self, w: Small) -> Array:
        return self.space.xp.concat([self._images.synthesize(w), self._tails.synthesize(w)])

    def inner(self, metric: Metric, atom: Atom) -> Small:
        if isinstance(atom, LiftedAtom) and isinstance(metric, Stacked):
            return self._images.inner(metric.top, Atom(atom.image)) + self._tails.inner(Identity(), atom.tail)
        return self.analyze(metric(atom.dense(self.space)))

    def gram(self, metric: Metric, which: Indices) -> Small:
        if isinstance(metric, Stacked | Identity):
            top, h = (metric.top, 1.0) if isinstance(metric, Stacked) else (metric, metric.h)
            return self._images.gram(top, which) + h * self._below[np.ix_(which, which)]
        units = np.eye(self._images.k)[which]
        return np.stack([self.analyze(metric(self.synthesize(w)))[which] for w in units])
