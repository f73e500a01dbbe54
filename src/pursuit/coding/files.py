"""Codes of more signals than memory holds: from files, to files, block by block."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit.arguments import as_bool, as_int_or_nan, describe, quantity
from pursuit.cluster.arrays import EACH_SIGNAL
from pursuit.cluster.workers import current_client
from pursuit.coding.request import matrix

BLOCK_BYTES = 1 << 26
"""Bytes of a block of signals, where the user does not say how many signals it has."""
COMPARED_BLOCKS = 8
"""Finished blocks of an array on disk whose signals are compared with the array's, when a run goes on."""
OPTIONS = ("atoms", "tol", "method", "gram", "n_jobs", "dtype", "weights", "penalty", "positive")
"""Arguments of `encode` that codes in files may have."""


class StoredCodes:
    """Codes in a Zarr group, a sequence of sparse blocks; `encode_to` writes them.

    Block i is the group of that number, with the arrays `data`, `indices` and `indptr` of a CSR matrix.

    >>> import pytest, tempfile
    >>> _ = pytest.importorskip("zarr")
    >>> import numpy as np, pursuit as ps
    >>> rng, folder = np.random.default_rng(0), tempfile.TemporaryDirectory()
    >>> D, Y = rng.standard_normal((8, 20)), rng.standard_normal((50, 8))
    >>> _ = ps.encode_to(f"{folder.name}/codes", D, Y, block=20, atoms=2)
    >>> codes = ps.StoredCodes(f"{folder.name}/codes")
    >>> codes.shape, len(codes), codes[2].shape, codes.matrix().nnz
    ((50, 20), 3, (10, 20), 100)
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._zarr, self.path = _zarr(), _folder(path)
        self.attributes = _attributes(self._zarr, self.path)
        if "request" not in self.attributes:
            raise FileNotFoundError(f"{self.path} has no codes; write them with encode_to.")
        if "signals" not in self.attributes:
            raise ValueError(f"the codes in {self.path} are not complete; call encode_to again to go on.")

    def __len__(self) -> int:
        return int(self.attributes["blocks"])

    @property
    def shape(self) -> tuple[int, int]:
        """The number of signals and of atoms."""
        return int(self.attributes["signals"]), int(self.attributes["atoms"])

    def __getitem__(self, i: int) -> sp.csr_array:
        if not 0 <= as_int_or_nan(i) < len(self):
            raise IndexError(f"block {describe(i)} was asked for; there are blocks 0 to {len(self) - 1}.")
        group = self._zarr.open_group(self.path / _name(i), mode="r")
        data, indices, indptr = (np.asarray(group[name][:]) for name in ("data", "indices", "indptr"))
        return sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1, self.shape[1]))

    def __iter__(self) -> Iterator[sp.csr_array]:
        return (self[i] for i in range(len(self)))

    def matrix(self) -> sp.csr_array:
        """All codes as one sparse array in memory."""
        return sp.csr_array(sp.vstack(list(self), format="csr"))

    def __repr__(self) -> str:
        return f"StoredCodes({self.shape[0]} x {self.shape[1]} in {quantity(len(self), 'block')})"


def encode_to(
    path: str | os.PathLike[str],
    D: Any,
    Y: Any,
    *,
    block: int | None = None,
    client: Any = None,
    progress: bool = False,
    **options: Any,
) -> StoredCodes:
    """`encode`, from files to files: signals are read, coded and written in blocks, and a run can be gone on with.

    A block is written as a whole or not at all. Called again with the same arguments, after Ctrl-C, a kill or a crash,
    it codes the blocks that are missing; the files are then the same, byte for byte, as those of one undisturbed run.
    Other arguments are refused. Of the signals, and of arguments with an entry for each of them, the shape, the dtype
    and a few rows of finished blocks are compared.

    Parameters
    ----------
    path : str or path
        The folder of the codes, a Zarr group; see `StoredCodes`.
    D : array of shape (n_features, n_atoms)
    Y : array on disk of shape (n_signals, n_features), or iterable of arrays of such rows
        A `numpy.memmap`, a Zarr array, an HDF5 dataset of h5py, a dask array, which is computed a block at a time, or
        an array in memory. An iterable gives the blocks itself.
    block : int, optional
        The number of signals in a block; by default as many as take 64 MB.
    client : distributed.Client, optional
        Its workers code the blocks, each with one thread. They must reach the files by the same names.
    progress : bool
        Show a bar where there is a terminal.
    **options
        `atoms`, `tol`, `method` and other arguments of `encode`; those with an entry for each signal may be files, too.

    Examples
    --------
    >>> import pytest, tempfile
    >>> zarr = pytest.importorskip("zarr")
    >>> import numpy as np, pursuit as ps
    >>> rng, folder = np.random.default_rng(0), tempfile.TemporaryDirectory()
    >>> D, Y = rng.standard_normal((8, 20)), rng.standard_normal((1000, 8))
    >>> signals = zarr.create_array(f"{folder.name}/signals", data=Y, chunks=(100, 8))
    >>> codes = ps.encode_to(f"{folder.name}/codes", D, signals, block=300, atoms=2)
    >>> codes, bool(abs(codes.matrix() - ps.encode(D, Y, atoms=2)).max() < 1e-12)
    (StoredCodes(1000 x 20 in 4 blocks), True)
    >>> folder.cleanup()
    """
    zarr, path = _zarr(), _folder(path)
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise TypeError(f"{unknown[0]} is no argument for codes in files; give some of {', '.join(OPTIONS)}.")
    if block is not None and not as_int_or_nan(block) >= 1:
        raise ValueError(f"block is {describe(block)}; give the number of signals in a block, at least 1.")
    client = None if client is None else current_client(client, "encode_to with a client")
    D = matrix(D, "D")
    job = _job(D, Y, block, options, client is not None)
    _begin(zarr, path, {"blocks": job.blocks, "atoms": int(D.shape[1]), "request": job.request})
    done = {int(each.name) for each in path.iterdir() if each.name.isdigit()}
    if job.signals is not None:
        for i in sorted(done)[:: -(-len(done) // COMPARED_BLOCKS) or 1]:
            _compare(zarr, path, i, job.fingerprint(i))
    bar = tqdm(
        total=job.blocks, initial=len(done), disable=None if as_bool(progress, "progress") else True, desc="encode"
    )
    with bar:
        if client is None:
            blocks = 0
            try:
                for i, read in job.reads():
                    if i not in done:
                        write_block(path, i, D, read, job.options(i))
                        bar.update()
                    elif job.signals is None:
                        _compare(zarr, path, i, fingerprint(read()))
                    blocks = i + 1
            except Exception:
                if blocks == 0 and not done:  # wrong arguments: the right ones may have this path
                    (path / "zarr.json").unlink()
                raise
        else:
            _on_cluster(client, path, D, job, done, bar)
            blocks = int(job.blocks or 0)
    signals = job.signals
    if signals is None:
        signals = sum(zarr.open_array(path / _name(i) / "indptr", mode="r").shape[0] - 1 for i in range(blocks))
    zarr.open_group(path, mode="r+").attrs.update({"blocks": blocks, "signals": int(signals)})
    return StoredCodes(path)


@dataclass(frozen=True)
class Job:
    """What is to be coded: where blocks are read, and the arguments of `encode` for each of them."""

    source: Any
    """A function that opens the signals, or an iterable of blocks."""
    signals: int | None
    block: int
    each: Mapping[str, Any]
    """Arguments with an entry for each signal, as functions that open them."""
    fixed: Mapping[str, Any]
    request: str

    @property
    def blocks(self) -> int | None:
        return None if self.signals is None else -(-self.signals // self.block)

    def reads(self) -> Iterator[tuple[int, Callable[[], Any]]]:
        """The numbers of the blocks, and functions that read them."""
        if self.signals is None:
            yield from ((i, partial(_same, rows)) for i, rows in enumerate(self.source))
        else:
            yield from ((i, partial(_rows, self.source, *self.range(i))) for i in range(self.blocks or 0))

    def range(self, i: int) -> tuple[int, int]:
        return i * self.block, (i + 1) * self.block

    def fingerprint(self, i: int) -> str:
        """The fingerprint of block i, of which only the rows that it is made of are read."""
        start, stop = self.range(i)
        length = min(stop, self.signals or 0) - start
        opened = [self.source, *(self.each[name] for name in sorted(self.each))]
        sampled = [
            [_rows(open_, start + place, start + place + 1) for place in _sampled_places(length)] for open_ in opened
        ]
        return _digest(sampled)

    def options(self, i: int) -> dict[str, Any]:
        """The arguments for block i; those for each signal as functions that read them."""
        return {**self.fixed, **{name: partial(_rows, opened, *self.range(i)) for name, opened in self.each.items()}}


def _job(D: Any, Y: Any, block: int | None, options: dict[str, Any], spread: bool) -> Job:
    each = {name: value for name, value in options.items() if name in EACH_SIGNAL and len(getattr(value, "shape", ()))}
    fixed = {name: value for name, value in options.items() if name not in each}
    digest = hashlib.sha256(np.ascontiguousarray(D).tobytes())
    rules = sorted((name, value) for name, value in fixed.items() if name != "n_jobs")
    digest.update(json.dumps([str(D.dtype), D.shape, rules, sorted(each)], default=str).encode())
    if sp.issparse(Y):
        raise TypeError(f"Y is {describe(Y)}; give a dense array on disk, or an iterable of sparse blocks.")
    if not isinstance(getattr(Y, "shape", None), tuple):
        if not isinstance(Y, Iterable) or isinstance(Y, str | bytes) or spread or each:
            raise TypeError(
                f"Y is {describe(Y)}; open it as an array, or, without a client, give an iterable of arrays."
            )
        return Job(Y, None, 1, {}, fixed, digest.hexdigest())
    if len(Y.shape) != 2 or Y.shape[1] != D.shape[0]:
        raise ValueError(f"Y has shape {Y.shape} and D {D.shape}; signals are rows of Y, as long as the columns of D.")
    rows = int(block or max(1, BLOCK_BYTES // max(1, np.dtype(Y.dtype).itemsize * Y.shape[1])))
    for name, value in each.items():
        if value.shape[0] != Y.shape[0]:
            raise ValueError(
                f"{name} has shape {value.shape}, Y has {Y.shape}; give one entry, or row, for each signal."
            )
    digest.update(json.dumps([str(Y.dtype), Y.shape, rows]).encode())
    opened = {name: _opener(value, name, spread) for name, value in each.items()}
    return Job(_opener(Y, "Y", spread), int(Y.shape[0]), rows, opened, fixed, digest.hexdigest())


def _opener(a: Any, name: str, spread: bool) -> Callable[[], Any]:
    """A function that gives the array; if it is `spread`, other processes can call it, too, without its content."""
    if not spread:
        return partial(_same, a)
    if isinstance(a, np.memmap) and isinstance(a.base, type(getattr(a, "_mmap", None))) and a.flags.c_contiguous:
        return partial(np.memmap, a.filename, a.dtype, "r", a.offset, a.shape)
    if isinstance(a, np.ndarray) and name != "Y":
        return partial(_same, a)
    if type(a).__module__.startswith("h5py"):
        return partial(_open_hdf5, a.file.filename, a.name)
    if isinstance(a, np.ndarray):
        raise TypeError(
            f"{name} is {describe(a)} in memory; workers read files: give a memmap, a Zarr array or a dataset."
        )
    return partial(_same, a)  # Zarr arrays travel as the name of their store


def _same(a: Any) -> Any:
    return a


def _open_hdf5(file: str, name: str) -> Any:
    import h5py

    return h5py.File(file, "r")[name]


def _rows(opened: Callable[[], Any], start: int, stop: int) -> Any:
    rows = opened()[start:stop]
    return rows if np.ma.isMaskedArray(rows) else np.asarray(rows)


def _sampled_places(length: int) -> list[int]:
    """The first, the middle and the last row of a block."""
    return sorted({0, length // 2, length - 1} & set(range(length)))


def fingerprint(*arrays: Any) -> str:
    """A hash of three rows of a block of signals, and of the entries of other arguments for these signals."""
    places = _sampled_places(np.shape(arrays[0])[0])
    return _digest([[a[place : place + 1] for place in places] for a in arrays])


def _digest(sampled: list[list[Any]]) -> str:
    digest = hashlib.sha256()
    for row in (row for rows in sampled for row in rows):
        dense: Any = row.toarray() if sp.issparse(row) else row  # type: ignore[attr-defined]
        digest.update(np.ascontiguousarray(np.ma.getmaskarray(dense)).tobytes())
        digest.update(np.ascontiguousarray(np.ma.filled(dense, 0)).tobytes())
    return digest.hexdigest()


def _compare(zarr: Any, path: Path, i: int, now: str) -> None:
    """Refuse to go on where block i was made of other signals."""
    if _attributes(zarr, path / _name(i)).get("signals") != now:
        raise ValueError(
            f"path is {path}, where block {i} has codes of other signals; remove it, or give another path."
        )


def _begin(zarr: Any, path: Path, attributes: dict[str, Any]) -> None:
    """Make the group, or check that the one that exists is of the same request and remove what a kill left there."""
    request = _attributes(zarr, path).get("request")
    if request is not None:
        if request != attributes["request"]:
            raise ValueError(
                f"path is {path}, where codes with other arguments are; remove them, or give another path."
            )
        for leftover in path.glob(".*"):
            shutil.rmtree(leftover, ignore_errors=True)
    elif path.exists() and any(path.iterdir() if path.is_dir() else [path]):
        raise ValueError(f"path is {path}, which holds something else; give the name of a new folder.")
    else:
        zarr.open_group(path, mode="w", attributes=attributes)


def write_block(path: Path, i: int, D: Any, read: Callable[[], Any], options: dict[str, Any]) -> int:
    """Code a block and write it as a whole."""
    from pursuit.coding import encode

    zarr = _zarr()
    rows, each = read(), {name: value() for name, value in options.items() if callable(value)}
    codes = encode(D, rows, **(options | each))
    temporary = path / f".{secrets.token_hex(4)}.{_name(i)}"
    try:
        made_of = fingerprint(rows, *(each[name] for name in sorted(each)))
        group = zarr.open_group(temporary, mode="w", attributes={"signals": made_of})
        for name in ("data", "indices", "indptr"):
            a = getattr(codes, name).astype(np.int64) if name == "indptr" else getattr(codes, name)
            group.create_array(name, data=a, chunks=(max(1, len(a)),), compressors=None)
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb+") as opened:
                    os.fsync(opened.fileno())
        temporary.replace(path / _name(i))
    except OSError:
        if not (path / _name(i)).is_dir():  # else another worker, believed dead, has written it
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return i


def _on_cluster(client: Any, path: Path, D: Any, job: Job, done: set[int], bar: Any) -> None:
    import dask
    from distributed import as_completed

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):  # D is meant to be sent
        dictionary = client.submit(_same, D, pure=False)
    path = path.resolve()
    futures = [
        client.submit(write_block, path, i, dictionary, read, {"n_jobs": 1} | job.options(i), pure=False)
        for i, read in job.reads()
        if i not in done
    ]
    try:
        for future in as_completed(futures):
            future.result()
            bar.update()
    except BaseException:
        client.cancel(futures)  # Ctrl-C ends the work of the cluster, too
        raise


def _attributes(zarr: Any, path: Path) -> dict[str, Any]:
    """The attributes of the Zarr group or array in this folder; none where there is neither."""
    return dict(zarr.open(path, mode="r").attrs) if (path / "zarr.json").is_file() else {}


def _folder(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {describe(path)}; give the name of a folder.")
    return Path(path)


def _name(i: int) -> str:
    return f"{i:08d}"


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError("codes in files need Zarr; install pursuit[files].") from None
    return zarr
