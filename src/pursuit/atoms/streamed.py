"""A dictionary that is larger than memory, read in pieces."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pursuit.arguments import as_bool, as_int_or_nan, describe, require
from pursuit.arrays import Array
from pursuit.atoms.pieces import Piece, Pieces

T = TypeVar("T")


@runtime_checkable
class ArrayOnDisk(Protocol):
    """An array whose slices are arrays in memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, where: object) -> Any: ...


class Streamed(Pieces):
    """A `Dictionary` that is larger than memory: each question reads it once, in pieces that fit.

    While one piece is searched, the next one is read; of a memory map nothing is copied. The answers are those of a
    `Dictionary` of all columns, where rounding does not decide. (`Dictionary` takes memory maps, too, and makes an
    8-bit copy in memory, which is faster where it fits.)

    Parameters
    ----------
    D : array on disk of shape (..., n), or sequence of functions
        A `numpy.memmap`, a Zarr array, an HDF5 dataset of h5py, or anything else with a shape and a dtype whose slices
        ``D[..., start:stop]`` are arrays. A function has no arguments and returns the next columns each time it is
        called. Columns are read fastest where they are contiguous, as in the transpose of an array of shape (n, d).
    signed : bool
        Whether the negatives of the columns are atoms, too.
    piece : int
        The bytes of a piece; two are in memory at a time.

    Examples
    --------
    >>> import tempfile, numpy as np, pursuit as ps
    >>> folder = tempfile.TemporaryDirectory()
    >>> D = np.memmap(f"{folder.name}/atoms", np.float32, "w+", shape=(1000, 20)).T
    >>> D[:] = np.random.default_rng(0).standard_normal(D.shape)
    >>> A = ps.Streamed(D, piece=10_000)
    >>> r = ps.minimize(ps.LeastSquares(D[:, 3] - 2 * D[:, 700]), ps.lin(A), stop=ps.Stop(atoms=2))
    >>> A, sorted(a.source for a in r.atoms)
    (Streamed(20 x 1000 in 8 pieces), [3, 700])
    >>> folder.cleanup()
    """

    bytes_with_answers = 1 << 28  # pieces are near, and reading one again costs more
    min_screened = math.inf  # a copy would not outlive the question

    def __init__(self, D: object, signed: bool = False, piece: int = 1 << 26) -> None:
        signed = as_bool(signed, "signed")
        require(as_int_or_nan(piece) >= 1, "piece", piece, "the bytes of a piece as an integer of at least 1")
        self._array = None if isinstance(D, Sequence) else D
        self._loads = _loads(D, int(piece))
        pieces = [Piece.of(load(), i).description() for i, load in enumerate(self._loads)]
        self._describe(pieces, signed)
        self._known = pieces[0]._with(radius=self.radius)

    def map(self, function: Callable[..., T], which: Sequence[int], *arguments: object) -> list[T]:
        return [function(piece, *arguments) for piece in read_ahead(self.read, which)]

    def read(self, i: int) -> Piece:
        """Piece i, whose columns were checked when the dictionary was made."""
        D = self._loads[i]()
        columns = self._known.with_columns(np.asarray(D)) if self.dense else Piece.of(D, i).columns
        return Piece(columns, temporary=not isinstance(self._array, np.ndarray))


def _loads(D: object, piece_bytes: int) -> list[Callable[[], Any]]:
    """Functions that read the pieces of D."""
    if isinstance(D, Sequence) and all(map(callable, D)):
        if not D:
            raise ValueError("D is empty; give at least one function that returns columns.")
        return list(D)
    if not isinstance(D, ArrayOnDisk):
        raise TypeError(f"D is {describe(D)}; give an array on disk, or functions that return columns.")
    shape = tuple(D.shape)
    if len(shape) < 2 or 0 in shape:
        raise ValueError(f"D has shape {shape}; give a matrix whose columns are the atoms, at least one.")
    width, chunk = max(1, piece_bytes // (np.dtype(D.dtype).itemsize * math.prod(shape[:-1]))), _chunk_width(D)
    if width > chunk:
        width -= width % chunk  # a chunk of the file is read once
    return [partial(_slice, D, start, start + width) for start in range(0, shape[-1], width)]


def _chunk_width(D: object) -> int:
    """The columns of a chunk of an array on disk, which is read as a whole."""
    return int((getattr(D, "chunks", None) or (1,))[-1])


def _slice(D: Any, start: int, stop: int) -> Array:
    return np.asarray(D[..., start:stop])


def read_ahead(read: Callable[[int], T], which: Sequence[int]) -> Iterator[T]:
    """read(i) for each i in turn; the next one is read in a thread meanwhile."""
    with ThreadPoolExecutor(1, "pursuit-reader") as reader:
        coming = reader.submit(read, which[0])
        for i in which[1:]:
            value = coming.result()
            coming = reader.submit(read, i)
            yield value
        yield coming.result()
