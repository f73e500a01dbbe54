"""Atoms with few nonzeros, and their images with the atoms below them: 100 atoms of `SignedBasis(10_000_000)` take 100
indices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from operator import index

import numpy as np
import scipy.sparse as sp

from pursuit.arrays import Array, Indices, Small, Space, flat
from pursuit.atoms.frames import Atom, CompactAtom, DenseFrame, Frame, Source
from pursuit.metrics import Identity, Metric

BATCH_ENTRIES = 1 << 23
"""Entries of the dense vectors to which a metric is applied at once."""


class SparseFrame(Frame):
    """Atoms as the columns of one sparse matrix, kept as positions and values on the host."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._pack()

    def _pack(self) -> None:
        self._positions = np.concatenate([np.empty(0, np.intp), *(a.positions for a in self.atoms)])
        self._values = np.concatenate([np.empty(0), *(a.values for a in self.atoms)])
        self._counts = np.array([len(a.positions) for a in self.atoms], dtype=np.intp)
        self._starts = np.cumsum(self._counts) - self._counts

    def append(self, atom: Atom) -> None:
        assert isinstance(atom, SparseAtom)
        self._starts = np.append(self._starts, len(self._positions))
        self._counts = np.append(self._counts, len(atom.positions))
        self._positions = np.concatenate([self._positions, atom.positions])
        self._values = np.concatenate([self._values, atom.values])
        super().append(atom)

    def keep(self, which: Indices) -> None:
        super().keep(which)
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
        if dense or metric.h is None or not isinstance(atom, SparseAtom):
            return super().inner(metric, atom)
        values, places = self._weigh(metric, atom.positions, atom.values), atom.positions
        if not len(places):
            return np.zeros(len(self._counts))
        at = np.minimum(np.searchsorted(places, self._positions), len(places) - 1)
        hits = np.where(places[at] == self._positions, values[at], 0.0)
        return self._sums(hits * self._values)

    def _weigh(self, metric: Metric, positions: Indices, values: Small) -> Small:
        return values * (metric.h if metric.uniform else self.space.gather(metric.h, positions))

    def _images(self, metric: Metric, which: Indices) -> Iterator[Array]:
        """M a for the atoms at these places: many at once, since that may be one question to a cluster."""
        step = max(1, BATCH_ENTRIES // self.space.size)
        for batch in (which[start : start + step] for start in range(0, len(which), step)):
            images = metric.batch(self.space.xp.stack([flat(self.atoms[i].dense(self.space)) for i in batch]))
            yield from (images[i, :] for i in range(len(batch)))

    def gram(self, metric: Metric, which: Indices) -> Small:
        if metric.h is None:
            return np.stack([self.analyze(image)[which] for image in self._images(metric, which)])
        places, rows = np.unique(self._positions, return_inverse=True)
        pointers = np.append(self._starts, len(self._positions))
        shape = (len(places), len(self._counts))  # which SciPy cannot infer where all atoms are zero
        plain = sp.csc_array((self._values, rows, pointers), shape)
        weighed = sp.csc_array((self._weigh(metric, self._positions, self._values), rows, pointers), shape)
        return np.asarray((plain[:, which].T @ weighed[:, which]).todense())


class SparseAtom(CompactAtom):
    """An atom with few nonzeros: values at flat positions of an array of the given shape.

    >>> import numpy as np, pursuit as ps
    >>> a = ps.SparseAtom([1, 5], [2.0, -1.0], shape=(2, 3))
    >>> a.dense(ps.Space.default((2, 3)))
    array([[ 0.,  2.,  0.],
           [ 0.,  0., -1.]])
    """

    __slots__ = ("positions", "shape", "values")
    shape: tuple[int, ...]
    frame = SparseFrame
    fields = ("positions", "values", "shape", "source", "coef")

    def __init__(
        self, positions: object, values: object, shape: tuple[int, ...], source: Source = None, coef: float = 1.0
    ) -> None:
        super().__init__(source, coef)
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

    def dense(self, space: Space) -> Array:
        return space.scatter(self.positions, self.values)

    def dot(self, space: Space, g: Array) -> float:
        return float(space.gather(g, self.positions).dot(self.values))

    def add_to(self, space: Space, x: Array, c: float) -> Array:
        if not space.numpy:
            return super().add_to(space, x, c)
        y = x.copy()
        np.add.at(y.reshape(-1), self.positions, c * self.values)
        return y

    @classmethod
    def of(cls, positions: Indices, values: Small, shape: tuple[int, ...], source: Source, coef: float) -> SparseAtom:
        """The atom of positions that are known to be sorted and within the shape: nothing is checked."""
        atom = cls.__new__(cls)
        atom.positions, atom.values, atom.shape, atom.source, atom.coef = positions, values, shape, source, coef
        return atom

    def scaled(self, c: float) -> SparseAtom:
        return SparseAtom.of(self.positions, c * self.values, self.shape, self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        return math.sqrt(self.values.dot(self.values))


class LiftedFrame(Frame):
    """Images of sparse atoms in a dense frame, and the atoms themselves in a sparse one."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._images: DenseFrame
        self._tails: SparseFrame
        self._below = np.zeros((0, 0))  # inner products of the lower parts

    def append(self, atom: Atom) -> None:
        assert isinstance(atom, LiftedAtom)
        if not self.atoms:
            self.n = int(atom.image.shape[0])
            self._images = DenseFrame(replace(self.space, shape=(self.n, *self.space.shape[1:])))
            self._tails = SparseFrame(replace(self.space, shape=atom.tail.shape))
        self._images.append(Atom(atom.image))
        self._tails.append(atom.tail)
        row = self._tails.inner(Identity(), atom.tail)
        self._below = np.block([[self._below, row[:-1, None]], [row]])
        super().append(atom)

    def keep(self, which: Indices) -> None:
        super().keep(which)
        self._below = self._below[np.ix_(which, which)]
        self._images.keep(which)
        self._tails.keep(which)

    def analyze(self, g: Array) -> Small:
        return self._images.analyze(g[: self.n, ...]) + self._tails.analyze(g[self.n :, ...])

    def synthesize(self, w: Small) -> Array:
        return self.space.xp.concat([self._images.synthesize(w), self._tails.synthesize(w)])

    def inner(self, metric: Metric, atom: Atom) -> Small:
        if metric.top is not None and isinstance(atom, LiftedAtom):
            return self._images.inner(metric.top, Atom(atom.image)) + self._tails.inner(Identity(), atom.tail)
        return super().inner(metric, atom)

    def gram(self, metric: Metric, which: Indices) -> Small:
        if metric.top is not None:
            return self._images.gram(metric.top, which) + self._below[np.ix_(which, which)]
        if not metric.uniform:
            return super().gram(metric, which)
        return np.asarray(self._images.gram(metric, which) + metric.h * self._below[np.ix_(which, which)])


class LiftedAtom(CompactAtom):
    """The image of a sparse atom, and below it the sparse atom: two arrays, one above the other."""

    __slots__ = ("image", "tail")
    frame = LiftedFrame
    fields = ("image", "tail", "source", "coef")

    def __init__(self, image: Array, tail: SparseAtom, source: Source = None, coef: float = 1.0) -> None:
        super().__init__(source, coef)
        self.image, self.tail = image, tail

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.image.shape[0] + self.tail.shape[0], *self.image.shape[1:])

    @property
    def vector(self) -> Array:
        return self.dense(Space.of(self.image))

    def dense(self, space: Space) -> Array:
        return space.xp.concat([self.image, self.tail.dense(replace(space, shape=self.tail.shape))])

    def dot(self, space: Space, g: Array) -> float:
        n, below = self.image.shape[0], replace(space, shape=self.tail.shape)
        return space.dot(g[:n, ...], self.image) + self.tail.dot(below, g[n:, ...])

    def scaled(self, c: float) -> LiftedAtom:
        return LiftedAtom(c * self.image, self.tail.scaled(c), self.source, c * self.coef)

    def norm(self, space: Space) -> float:
        return math.hypot(space.norm(self.image), self.tail.norm(space))
