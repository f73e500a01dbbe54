r"""An 8-bit copy of a dictionary in a file, of which a question reads all, and of the dictionary only what is in doubt.

A column a is stored as its largest modulus m, 8-bit integers q near a/s with s = m/127, and a margin. For a question g
let t be a power of two near max :math:`|g_i|`, h = g/t, and p the same in float32. Then

.. math:: a^\top g = st \left( q^\top p + q^\top (h - p) + (a/s - q)^\top h \right),

and the sum that float32 gives for :math:`q^\top p` errs by at most :math:`\gamma \|q\| \|p\|`. So :math:`a^\top g` lies
within :math:`st\,(E + \gamma (\|q\| + E)) \|h\|` of st times that sum, with :math:`E = \|a/s - q\|`. Here
:math:`\gamma` is `rounding` for float32, more than twice what float32 needs: that covers the rounding of p, of the
bound itself, and of the sum in float64 by which the columns that remain are compared. The margin is
:math:`E + \gamma (\|q\| + E)`, rounded up; infinite for columns of extreme size, which are never excluded.

The file is a header with the shape and the dtype of the columns, a record for each column, a fingerprint of D, and a
checksum (CRC-32) for each block of records. The fingerprint is for each column the sum of its entries, taken as
integers, times random odd numbers: it changes with every bit of an entry. Where a checksum is wrong, D answers.
"""

from __future__ import annotations

import json
import math
import warnings
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from pursuit._ranking import Backoff, contenders, rounding
from pursuit.arrays import Array, Indices
from pursuit.atoms.pieces import Piece
from pursuit.atoms.screening import COLUMNS_PER_RECOMPUTED
from pursuit.atoms.vectors import Listed
from pursuit.files import replacing

HEADER_BYTES = 4096
BLOCK_BYTES = 1 << 23
"""Bytes of the copy that are read together, with one checksum; two such blocks are in memory at a time."""
ENTRIES_AT_ONCE = 1 << 19
"""Entries that are converted to float32 together, so that they stay in the cache."""
ENTRIES_CODED_AT_ONCE = 1 << 14
"""The same where the copy is made, which takes several arrays of float64."""
RANGE = (1e-140, 1e140)
"""Sizes of columns and of g whose products neither over- nor underflow."""
MAX_ENTRIES = 1 << 20
"""Entries of a column up to which sums in float32 bound anything."""


def _records(A: Any) -> np.dtype[Any]:
    """The type of the record of a column of A."""
    return np.dtype([("largest", A.space.dtype), ("margin", np.float32), ("code", np.int8, A.shape)])


def _header(A: Any) -> bytes:
    words = {"format": "an 8-bit copy of pursuit, 2", "shape": A.shape, "dtype": A.space.dtype.str}
    return json.dumps(words).encode().ljust(HEADER_BYTES)


def _columns_in_block(records: np.dtype[Any]) -> int:
    return BLOCK_BYTES // records.itemsize + 1


class _Checksums:
    """The checksums of the blocks of the records that are written one after the other."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._count = 0

    def add(self, made: np.ndarray[Any, Any]) -> None:
        size = _columns_in_block(made.dtype)
        while len(made):
            if self._count % size == 0:
                self.values.append(0)
            some = made[: size - self._count % size]
            self.values[-1] = zlib.crc32(some.data.cast("B"), self.values[-1])
            self._count += len(some)
            made = made[len(some) :]


def _slices(matrix: Array) -> Iterator[Array]:
    """The columns, a few at a time."""
    step = ENTRIES_CODED_AT_ONCE // len(matrix) + 1
    return (matrix[:, k : k + step] for k in range(0, matrix.shape[1], step))


def _coded(columns: Array, records: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The records of some columns."""
    rows, made = np.ascontiguousarray(columns.T, np.float64), np.empty(columns.shape[1], records)
    d, largest, unit = rows.shape[1], np.abs(rows).max(axis=1), float(np.finfo(np.float64).eps)
    usable = (largest > RANGE[0]) & (largest < RANGE[1]) & (d < MAX_ENTRIES)
    made["largest"] = np.where(usable, largest, 1.0)
    scaled = rows * np.where(usable, 1.0 / (made["largest"].astype(np.float64) / 127), 0.0)[:, None]
    code = np.rint(scaled)
    scaled -= code
    rest, length = (np.sqrt(np.einsum("ij,ij->i", a, a)) for a in (scaled, code))
    error = rest * (1 + (d + 8) * unit) + 512 * unit * math.sqrt(d)
    margin = error + rounding(d, np.float32) * (length + error)
    made["margin"] = np.where(usable, np.nextafter(margin.astype(np.float32), np.float32(np.inf)), np.inf)
    made["code"] = code.reshape(made["code"].shape)
    return made


def _fingerprint(matrix: Array) -> np.ndarray[Any, Any]:
    """A number for each column; the order of summation does not change it, as integers wrap around."""
    factors = np.random.default_rng(0).integers(0, 1 << 63, len(matrix), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    bits = matrix.view(f"u{matrix.itemsize}")
    sums = []
    for columns in _slices(bits):
        some = columns.astype(np.uint64)
        some ^= some >> np.uint64(32)  # else even numbers of changes of the highest bit, the sign, could be lost
        sums.append(np.einsum("ij,i->j", some, factors))
    return np.concatenate(sums)


class StoredCopy:
    """The 8-bit copy of the columns of A, in a file that `copied` has written."""

    def __init__(self, path: Path, A: Listed) -> None:
        self.path, self.n, self._records, self._trust = path, A.n, _records(A), Backoff()
        self._checksums = np.fromfile(path, np.uint32, offset=HEADER_BYTES + A.n * (self._records.itemsize + 8))
        self._damaged = False

    def contenders(self, g: Array, several: int, signed: bool) -> Indices | None:
        """The columns that can be among the `several` with the largest |<a, g>| (or smallest <a, g>, if not `signed`);
        None where they are too many to be read one by one, or g is out of range."""
        size = float(np.abs(g).max())
        usable = RANGE[0] < size < RANGE[1] and several * COLUMNS_PER_RECOMPUTED <= self.n and not self._damaged
        if not usable or not self._trust.attempts():
            return None
        unit = math.ldexp(1.0, math.frexp(size)[1])
        h = g.astype(np.float64) / unit
        p, length = h.astype(np.float32), float(np.linalg.norm(h)) * (1 + 1e-6)
        found = []
        for start, block in self._blocks():
            if block is None:
                warnings.warn(f"{self.path} is damaged, and D is read instead; remove the file.", stacklevel=2)
                self._damaged = True
                return None
            codes, step = block["code"].reshape(len(block), -1), ENTRIES_AT_ONCE // len(p) + 1
            products = [codes[k : k + step].astype(np.float32) @ p for k in range(0, len(codes), step)]
            merit = np.concatenate(products).astype(np.float64)
            merit = np.abs(merit) if signed else -merit
            scale, radius = block["largest"].astype(np.float64) / 127 * unit, length * block["margin"].astype(float)
            lower, upper = (merit - radius) * scale, (merit + radius) * scale
            which = contenders(lower, upper, several)
            found.append((which + start, lower[which], upper[which]))
        numbers, lower, upper = (np.concatenate(each) for each in zip(*found, strict=True))
        numbers = numbers[contenders(lower, upper, several)]
        few = len(numbers) * COLUMNS_PER_RECOMPUTED <= self.n
        self._trust.record(few)
        return numbers if few else None

    def _blocks(self) -> Iterator[tuple[int, np.ndarray[Any, Any] | None]]:
        """The records, block by block, None for one with a wrong checksum, and the number of the first of each. The
        next block is read meanwhile."""
        count = _columns_in_block(self._records)

        def read(columns: int) -> tuple[np.ndarray[Any, Any], int]:
            block = np.fromfile(file, self._records, columns)
            return block, zlib.crc32(block.data.cast("B"))

        with self.path.open("rb") as file, ThreadPoolExecutor(1, "pursuit-reader") as reader:
            file.seek(HEADER_BYTES)
            coming = reader.submit(read, min(count, self.n))
            for start in range(0, self.n, count):
                block, checksum = coming.result()
                coming = reader.submit(read, max(0, min(count, self.n - start - count)))
                if len(block) < min(count, self.n - start):
                    raise ValueError(f"{self.path} was cut short after it was opened; remove it and open D again.")
                yield start, block if checksum == self._checksums[start // count] else None


def copied(path: Path, pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces of a dictionary, one after the other; meanwhile their copy is written to the file, which appears as a
    whole after the last one, or not at all. A file that is there already must be the copy of these pieces."""
    header, fingerprint, checksums = b"", [], _Checksums()
    with ExitStack() as stack:
        file = None if path.exists() else stack.enter_context(stack.enter_context(replacing(path)).open("wb"))
        for i, piece in enumerate(pieces):
            A = piece.columns
            matrix = getattr(A, "_matrix", None)
            if not isinstance(matrix, np.ndarray) or matrix.dtype not in (np.float32, np.float64):
                raise TypeError("screen is given, but D is sparse or neither float32 nor float64; leave screen out.")
            if _header(A) != (header or _header(A)):
                raise ValueError(f"piece {i} has another shape or dtype than piece 0; convert one of them.")
            if file:
                file.write(b"" if header else _header(A))
                for columns in _slices(matrix):
                    made = _coded(columns, _records(A))
                    checksums.add(made)
                    file.write(made.tobytes())
            header = _header(A)
            fingerprint.append(_fingerprint(matrix))
            yield piece
        if file:
            file.write(np.concatenate(fingerprint).tobytes())
            file.write(np.array(checksums.values, np.uint32).tobytes())
        elif not _matches(path, A, np.concatenate(fingerprint)):
            raise ValueError(f"screen is {path}, which is no copy of this D; give another name, or remove the file.")


def _matches(path: Path, A: Any, fingerprint: np.ndarray[Any, Any]) -> bool:
    """Whether the file is the complete copy of columns with this fingerprint, and with the shape and dtype of A."""
    end = HEADER_BYTES + len(fingerprint) * _records(A).itemsize
    blocks = -(-len(fingerprint) // _columns_in_block(_records(A)))
    if not path.is_file() or path.stat().st_size != end + fingerprint.nbytes + 4 * blocks:
        return False
    with path.open("rb") as file:
        same = file.read(HEADER_BYTES) == _header(A)
    stored = np.fromfile(path, fingerprint.dtype, len(fingerprint), offset=end)
    return same and np.array_equal(stored, fingerprint)
