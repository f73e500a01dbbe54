"""A dictionary that is larger than memory, read in pieces, or through an 8-bit copy in a file."""

from __future__ import annotations

import math
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from pursuit.arguments import as_bool, as_int_or_nan, describe, require
from pursuit.arrays import Array, Indices, Small, flat
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.copies import COLUMNS_PER_RECOMPUTED, check_can_be_copied
from pursuit.atoms.pieces import Candidates, Piece, Pieces, Question, check_alike
from pursuit.files import replacing
from pursuit.linalg.ranking import contenders, rounding

ENTRIES_AT_ONCE = 1 << 19
"""Entries of a copy that are converted to float32 together, so that they stay in the cache."""
ENTRIES_CODED_AT_ONCE = 1 << 14
"""The same where the copy is made, which takes several arrays of float64."""
SAFE_SIZES = (1e-140, 1e140)
"""Sizes of columns and of g whose products neither over- nor underflow."""
MAX_ENTRIES = 1 << 20
"""Entries of a column up to which sums in float32 bound anything."""

Records = np.ndarray[Any, np.dtype[np.void]]
T = TypeVar("T")


@runtime_checkable
class ArrayOnDisk(Protocol):
    """An array whose slices are arrays in memory."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, where: Any) -> Any: ...


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
    screen : path, optional
        A file for an 8-bit copy of D, written when D is first read and used again by the next process. A question reads
        the copy, a quarter of a float32 D, and those columns of D that the copy cannot prove to be worse than others.

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

    def __init__(
        self, D: Any, signed: bool = False, piece: int = 1 << 26, screen: str | os.PathLike[str] | None = None
    ) -> None:
        signed = as_bool(signed, "signed")
        require(as_int_or_nan(piece) >= 1, "piece", piece, "the bytes of a piece as an integer of at least 1")
        self._copy = None if screen is None else StoredCopy(_file(screen), min(int(piece), 1 << 23))
        self.copies_made = screen is not None
        self._array = None if isinstance(D, Sequence) else D
        self._loads = _loads(D, int(piece))
        pieces: list[Dictionary] = []
        with nullcontext(None) if self._copy is None else self._copy.written() as add:
            for i, load in enumerate(self._loads):
                A = Piece.of(load(), i).columns
                pieces.append(A.without_columns())
                check_alike(pieces[0], A, i)
                if add is not None:
                    check_can_be_copied(A.matrix)
                    add(A.D)
        self._describe(pieces, signed)
        self._known = pieces[0]._with(radius=self.radius)

    def map(self, function: Callable[..., T], which: Sequence[int], *arguments: Any) -> list[T]:
        return [function(piece, *arguments) for piece in read_ahead(self.read, which)]

    def read(self, i: int) -> Piece:
        """Piece i, whose columns were checked when the dictionary was made."""
        D = self._loads[i]()
        columns = self._known.with_columns(np.asarray(D)) if self.dense else Piece.of(D, i).columns
        return Piece(columns, temporary=not isinstance(self._array, np.ndarray))

    def candidates(self, question: Question) -> list[Candidates]:
        numbers = None
        if self._copy is not None and question.by_copy:
            numbers = self._copy.contenders(flat(question.g), question.several, self.symmetric)
        if numbers is None:
            return super().candidates(replace(question, by_copy=False))
        answers, owners = [], np.searchsorted(self.starts, numbers, side="right") - 1
        for i in np.unique(owners).tolist():
            wanted = numbers[owners == i]
            piece = Piece(self._known.with_columns(self._columns_of(i, wanted)), temporary=True)
            answer = piece.ranked(np.arange(len(wanted)), replace(question, with_atoms=True))
            answers.append(replace(answer, numbers=wanted[answer.numbers]))
        return answers

    def _columns_of(self, i: int, numbers: Indices) -> Array:
        """Some columns of piece i, and as little else as possible is read."""
        if self._array is None:
            return np.asarray(self._loads[i]())[..., numbers - self.starts[i]]
        width = _chunk_width(self._array)
        chunks = numbers // width * width
        parts = [_slice(self._array, k, k + width)[..., numbers[chunks == k] - k] for k in np.unique(chunks)]
        return np.concatenate(parts, axis=-1)


def _file(screen: str | os.PathLike[str]) -> Path:
    """The name of the file for the copy, checked."""
    if not isinstance(screen, str | os.PathLike):
        raise TypeError(f"screen is {describe(screen)}; give the name of a file for the 8-bit copy.")
    path = Path(screen).resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(f"screen is {path}, in a folder that does not exist; make the folder first.")
    return path


def _loads(D: Any, piece_bytes: int) -> list[Callable[[], Any]]:
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


def _chunk_width(D: Any) -> int:
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


@dataclass
class StoredCopy:
    """An 8-bit copy in a file: for each column a its largest modulus, 8-bit integers q near a/s, and a margin, which
    bounds the error of q'g in float32 relative to |g| (docs/speed.md).

    The checksums of blocks of records are those of the columns that were added. So a block of the file that is damaged,
    or belongs to another matrix, is noticed when it is read, and D answers.
    """

    path: Path
    block_bytes: int
    """Bytes that are read together, with one checksum; two such blocks are in memory at a time."""
    n: int = 0
    records: np.dtype[np.void] = field(default_factory=lambda: np.dtype([]))
    checksums: list[int] = field(default_factory=list)

    @property
    def columns_in_block(self) -> int:
        """The number of columns with one checksum."""
        return self.block_bytes // self.records.itemsize + 1

    @contextmanager
    def written(self) -> Iterator[Callable[[Array], None]]:
        """A function that adds the columns of an array of shape (..., n) to the copy. The file appears as a whole at
        the end, or not at all; one that is there stays, if its size is that of this copy."""
        exists = self.path.exists()
        with ExitStack() as stack:
            file = None if exists else stack.enter_context(stack.enter_context(replacing(self.path)).open("wb"))

            def add(D: Array) -> None:
                parts = [("largest", D.dtype), ("margin", np.float32), ("code", np.int8, D.shape[:-1])]
                self.records, matrix = np.dtype(parts), D.reshape(-1, D.shape[-1])
                step = ENTRIES_CODED_AT_ONCE // len(matrix) + 1
                for k in range(0, matrix.shape[1], step):
                    made = _coded(matrix[:, k : k + step], self.records)
                    self._add_checksum(made)
                    if file is not None:
                        file.write(made.tobytes())

            yield add
        if not self.path.is_file() or self.path.stat().st_size != self.n * self.records.itemsize:
            raise ValueError(f"screen is {self.path}, no copy of this D; give another name, or remove the file.")

    def _add_checksum(self, made: Records) -> None:
        while len(made):
            place = self.n % self.columns_in_block
            if place == 0:
                self.checksums.append(0)
            same_block, made = np.split(made, [self.columns_in_block - place])
            self.checksums[-1] = zlib.crc32(same_block.data.cast("B"), self.checksums[-1])
            self.n += len(same_block)

    def contenders(self, g: Array, several: int, signed: bool) -> Indices | None:
        """The columns that can be among the best; None where they are too many, the file is damaged, or g is out of
        range."""
        size = float(np.abs(g).max())
        if not SAFE_SIZES[0] < size < SAFE_SIZES[1]:
            return None
        unit = math.ldexp(1.0, math.frexp(size)[1])
        h = g.astype(np.float64) / unit
        ends = []  # the contenders of each block: their numbers, lower and upper ends
        for b, block in enumerate(read_ahead(self._read, range(len(self.checksums)))):
            if block is None:
                words = "is damaged or the copy of another D, and D is read instead; remove the file"
                warnings.warn(f"{self.path} {words}.", stacklevel=2)
                return None
            merit, radius = _merits(block, h, signed)
            scale = block["largest"].astype(np.float64) / 127 * unit
            lower, upper = (merit - radius) * scale, (merit + radius) * scale
            which = contenders(lower, upper, several)
            ends.append((which + b * self.columns_in_block, lower[which], upper[which]))
        numbers, lower, upper = (np.concatenate(parts) for parts in zip(*ends, strict=True))
        numbers = numbers[contenders(lower, upper, several)]
        return numbers if len(numbers) * COLUMNS_PER_RECOMPUTED <= self.n else None

    def _read(self, number: int) -> Records | None:
        """The records of a block; None where the checksum is wrong."""
        offset = number * self.columns_in_block * self.records.itemsize
        block = np.fromfile(self.path, self.records, self.columns_in_block, offset=offset)
        return block if zlib.crc32(block.data.cast("B")) == self.checksums[number] else None


def _coded(columns: Array, records: np.dtype[np.void]) -> Records:
    """The records of some columns."""
    rows, u = np.ascontiguousarray(columns.T, np.float64), float(np.finfo(np.float64).eps)
    made, d, largest = np.empty(len(rows), records), rows.shape[1], np.abs(rows).max(axis=1)
    usable = (largest > SAFE_SIZES[0]) & (largest < SAFE_SIZES[1]) & (d < MAX_ENTRIES)
    made["largest"] = np.where(usable, largest, 1.0)
    scaled = rows * np.where(usable, 1.0 / (made["largest"].astype(np.float64) / 127), 0.0)[:, None]
    code = np.rint(scaled)
    scaled -= code
    rest, length = (np.sqrt(np.einsum("ij,ij->i", a, a)) for a in (scaled, code))
    error = rest * (1 + (d + 8) * u) + 512 * u * math.sqrt(d)
    margin = error + rounding(d, np.float32) * (length + error)
    made["margin"] = np.where(usable, np.nextafter(margin.astype(np.float32), np.float32(np.inf)), np.inf)
    made["code"] = code.reshape(made["code"].shape)
    return made


def _merits(block: Records, h: Small, signed: bool) -> tuple[Small, Small]:
    """The merits of the columns of a block for h, in units of their scale, and bounds on their errors."""
    codes, p = block["code"].reshape(len(block), -1), h.astype(np.float32)
    step = ENTRIES_AT_ONCE // len(p) + 1
    products = [codes[k : k + step].astype(np.float32) @ p for k in range(0, len(codes), step)]
    merit = np.concatenate(products).astype(np.float64)
    radius = float(np.linalg.norm(h)) * (1 + 1e-6) * block["margin"].astype(np.float64)
    return np.abs(merit) if signed else -merit, radius
