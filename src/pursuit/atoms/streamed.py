"""A dictionary that is larger than memory, read in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from pursuit._arrays import flag, told, whole
from pursuit.atoms.base import Atoms
from pursuit.atoms.pieces import How, Piece, Pieces

PIECE_BYTES = 1 << 26


class Streamed(Pieces):
    """A `Dictionary` that is larger than memory: each question reads it once, in pieces that fit.

    D stays where it is, on disk, and only pieces of it are in memory: while one is searched, the next one is read. Of
    a memory map nothing is copied; the system keeps in memory what has room there. The answers are those of a
    `Dictionary` of all columns, where rounding does not decide. (`Dictionary` takes memory maps, too, and makes an
    8-bit copy in memory. That is faster where the copy fits: it takes a quarter of a float32 array.)

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

    how = How(copies=False)

    def __init__(self, D: Any, signed: bool = False, piece: int = PIECE_BYTES) -> None:
        signed = flag(signed, "signed")
        if not whole(piece) >= 1:
            raise ValueError(f"piece is {told(piece)}; give the bytes of a piece as an integer of at least 1.")
        self._loads = _loads(D, int(piece))
        self._in_place = isinstance(D, np.ndarray)
        self._pieces: list[Piece] = []
        facts = []
        for i, load in enumerate(self._loads):
            each = Piece.of(load(), i)
            facts.append(each.facts(i))
            keep = self._in_place or not hasattr(each.columns, "_matrix")
            self._pieces.append(each if keep else Piece(each.columns._with(D=None, _matrix=None)))
        self._describe(facts, signed)

    def _read(self, i: int) -> Piece:
        if self._in_place:
            return self._pieces[i]
        known, D = self._pieces[i].columns, self._loads[i]()
        if not hasattr(known, "_matrix"):  # sparse
            return Piece.of(D, i)
        D = np.asarray(D)
        return Piece(known._with(D=D, _matrix=D.reshape(-1, known.n)))

    def ask(self, which: Sequence[int], function: Callable[..., Any], each: Sequence[Any], *shared: Any) -> list[Any]:
        if self._in_place:
            return [function(self._read(i), e, *shared) for i, e in zip(which, each, strict=True)]
        answers = []
        with ThreadPoolExecutor(1, "pursuit-reader") as reader:
            coming = reader.submit(self._read, which[0])
            for place, e in enumerate(each):
                piece = coming.result()
                if place + 1 < len(which):
                    coming = reader.submit(self._read, which[place + 1])
                answers.append(function(piece, e, *shared))
        return answers

    def screened(self) -> Pieces:
        return Atoms.screened(self)  # type: ignore[return-value]  # which refuses: copies would not fit


def _loads(D: Any, size: int) -> list[Callable[[], Any]]:
    """Functions that read the pieces of D."""
    if isinstance(D, Sequence) and all(map(callable, D)):
        if not D:
            raise ValueError("D is empty; give at least one function that returns columns.")
        return list(D)
    shape = getattr(D, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(D, "dtype") or not hasattr(D, "__getitem__"):
        raise TypeError(f"D is {told(D)}; give an array on disk, or functions that return columns.")
    if len(shape) < 2 or 0 in shape:
        raise ValueError(f"D has shape {shape}; give a matrix whose columns are the atoms, at least one.")
    columns, chunks = (
        max(1, size // (np.dtype(D.dtype).itemsize * int(np.prod(shape[:-1])))),
        getattr(D, "chunks", None),
    )
    if chunks and columns > chunks[-1]:
        columns -= columns % chunks[-1]  # a chunk of the file is read once
    return [partial(_slice, D, start, start + columns) for start in range(0, shape[-1], columns)]


def _slice(D: Any, start: int, stop: int) -> Any:
    return D[..., start:stop]
