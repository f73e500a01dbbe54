"""A dictionary that is larger than memory, read in pieces."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pursuit.arguments import as_bool, as_int_or_nan, describe
from pursuit.arrays import Array, Indices, flat
from pursuit.atoms.copies import StoredCopy, copied
from pursuit.atoms.pieces import Candidates, How, Piece, Pieces

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
    screen : path, optional
        A file for an 8-bit copy of D. It is written when D is first read, and used again if it is the copy of this D.
        Then a question reads the copy, a quarter of a float32 D, and those columns of D that the copy cannot prove to
        be worse than others. The answers stay the same.

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

    def __init__(
        self,
        D: Any,
        signed: bool = False,
        piece: int = PIECE_BYTES,
        screen: str | os.PathLike[str] | None = None,
    ) -> None:
        signed = as_bool(signed, "signed")
        if not as_int_or_nan(piece) >= 1:
            raise ValueError(f"piece is {describe(piece)}; give the bytes of a piece as an integer of at least 1.")
        path = None if screen is None else _file(screen)
        self._loads = _loads(D, int(piece))
        self._in_place = isinstance(D, np.ndarray)
        self._array = None if isinstance(D, Sequence) else D
        self._pieces: list[Piece] = []
        facts, pieces = [], (Piece.of(load(), i) for i, load in enumerate(self._loads))
        for i, each in enumerate(pieces if path is None else copied(path, pieces)):
            facts.append(each.facts(i))
            keep = self._in_place or not hasattr(each.columns, "_matrix")
            self._pieces.append(each if keep else Piece(each.columns._with(D=None, _matrix=None)))
        self._describe(facts, signed)
        self._copy = None if path is None else StoredCopy(path, self)

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

    def _candidates(self, g: Array, several: int, how: How) -> list[Candidates]:
        numbers = None if self._copy is None else self._copy.contenders(flat(g), several, self.symmetric)
        if numbers is None:
            return super()._candidates(g, several, how)
        found, owners = [], np.searchsorted(self.starts, numbers, side="right") - 1
        for i in np.unique(owners).tolist():
            mine = numbers[owners == i]
            piece = self._some(i, mine)
            found.append(piece.ranked(np.arange(len(mine)), mine, g, several, self.symmetric, with_atoms=True))
        return found

    def _some(self, i: int, numbers: Indices) -> Piece:
        """A piece of these columns of piece i, and as little else as possible is read."""
        if self._array is None:
            D = np.asarray(self._loads[i]())[..., numbers - self.starts[i]]
        else:
            width = (getattr(self._array, "chunks", None) or (1,))[-1]  # of a chunk, which is read as a whole
            chunks = numbers // width * width
            parts = [
                np.asarray(_slice(self._array, k, k + width))[..., numbers[chunks == k] - k] for k in np.unique(chunks)
            ]
            D = np.concatenate(parts, axis=-1)
        return Piece(self._pieces[i].columns._with(D=D, _matrix=D.reshape(-1, len(numbers)), n=len(numbers)))

    def screened(self) -> Pieces:
        if self._copy is not None:
            return self
        raise TypeError(f"{self!r} cannot be screened; give Streamed a file for the copy, screen=...")


def _file(screen: Any) -> Path:
    """The name of the file for the copy, checked."""
    if not isinstance(screen, str | os.PathLike):
        raise TypeError(f"screen is {describe(screen)}; give the name of a file for the 8-bit copy.")
    path = Path(screen).resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(f"screen is {path}, in a folder that does not exist; make the folder first.")
    return path


def _loads(D: Any, size: int) -> list[Callable[[], Any]]:
    """Functions that read the pieces of D."""
    if isinstance(D, Sequence) and all(map(callable, D)):
        if not D:
            raise ValueError("D is empty; give at least one function that returns columns.")
        return list(D)
    shape = getattr(D, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(D, "dtype") or not hasattr(D, "__getitem__"):
        raise TypeError(f"D is {describe(D)}; give an array on disk, or functions that return columns.")
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
