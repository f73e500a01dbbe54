"""Codes of more signals than memory holds: from files, to files, block by block."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit.arguments import as_bool, as_int_or_nan, describe, host_array, quantity, require
from pursuit.cluster.arrays import EACH_SIGNAL
from pursuit.cluster.workers import current_client
from pursuit.coding.request import matrix
from pursuit.files import locked

BLOCK_BYTES = 1 << 26
"""Bytes of a block of signals, where the user does not say how many signals it has."""
COMPARED_BLOCKS = 8
"""Finished blocks whose signals are compared with those of the array, when a run is resumed."""
ARRAYS = ("data", "indices", "indptr")
"""The arrays of a block."""
OPTIONS = ("atoms", "tol", "method", "gram", "n_jobs", "dtype", "weights", "penalty", "positive")
"""Arguments of `encode` that codes in files may have."""


class StoredCodes:
    """Codes in a Zarr group, a sequence of sparse blocks; `encode_to` writes them.

    Block i is the group of that number, with the arrays `data`, `indices` and `indptr` of a CSR matrix and a checksum,
    which is compared whenever the block is read.

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
            raise ValueError(f"the codes in {self.path} are not complete; call encode_to again to resume.")

    def __len__(self) -> int:
        return int(self.attributes["blocks"])

    @property
    def shape(self) -> tuple[int, int]:
        """The number of signals and of atoms."""
        return int(self.attributes["signals"]), int(self.attributes["atoms"])

    def __getitem__(self, i: int) -> sp.csr_array:
        if not 0 <= as_int_or_nan(i) < len(self):
            raise IndexError(f"block {describe(i)} was asked for; there are blocks 0 to {len(self) - 1}.")
        try:
            group = self._zarr.open_group(self.path / _name(i), mode="r")
            data, indices, indptr = arrays = [np.asarray(group[name][:]) for name in ARRAYS]
            intact = group.attrs["checksum"] == _checksum(arrays)
        except Exception:  # a flipped bit may raise anything in Zarr and json
            intact = False
        if not intact:
            advice = f"remove the folder {self.path / _name(i)} and call encode_to again"
            raise ValueError(f"block {i} of the codes in {self.path} is damaged: its checksum is wrong; {advice}.")
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
    """`encode`, from files to files: signals are read, coded and written in blocks, and a run can be resumed.

    A block is written as a whole or not at all. Called again with the same arguments, after Ctrl-C, a kill or a crash,
    it codes the blocks that are missing; the files are then the same, byte for byte, as those of one undisturbed run.
    Two processes may write to one path at the same time. Other arguments are refused. Of the signals, and of arguments
    with an entry for each of them, the shape, the dtype and a few rows of finished blocks are compared.

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
        Arguments of `encode`, but for `l2`, `prices`, `joint`, `gaps`; one with an entry for each signal may be a file.

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
    _check_options(options, block)
    client = None if client is None else current_client(client, "encode_to with a client")
    D = matrix(D, "D")
    job = _job(D, Y, block, options, client is not None)
    path.resolve().parent.mkdir(parents=True, exist_ok=True)
    with locked(path):
        _begin(zarr, path, {"blocks": job.blocks, "atoms": int(D.shape[1]), "request": job.request})
    done = sorted(int(file.name) for file in path.iterdir() if file.name.isdigit())
    if job.signals is not None:
        for i in done[:: -(-len(done) // COMPARED_BLOCKS) or 1]:
            _compare(zarr, path, i, job.fingerprint(i))
    hidden = None if as_bool(progress, "progress") else True
    with tqdm(total=job.blocks, initial=len(done), disable=hidden, desc="encode") as bar:
        if client is None:
            blocks = _write_blocks(zarr, path, D, job, bar)
        else:
            blocks = _write_on_cluster(client, path, D, job, bar)
    signals = job.signals
    if signals is None:
        signals = sum(zarr.open_array(path / _name(i) / "indptr", mode="r").shape[0] - 1 for i in range(blocks))
    with locked(path):
        zarr.open_group(path, mode="r+").attrs.update({"blocks": blocks, "signals": int(signals)})
        for leftover in path.glob(".*"):  # of processes that were killed; others find all blocks written
            shutil.rmtree(leftover, ignore_errors=True)
        return StoredCodes(path)


def _check_options(options: dict[str, Any], block: int | None) -> None:
    for name in options:
        if name not in OPTIONS:
            raise TypeError(f"{name} is no argument for codes in files; give some of {', '.join(OPTIONS)}.")
    require(block is None or as_int_or_nan(block) >= 1, "block", block, "the number of signals in a block, at least 1")


Opener = Callable[[], Any]
"""A function that opens an array, in another process, too, where that codes the blocks."""


@dataclass(frozen=True)
class Job:
    """The signals to code, how they are cut into blocks, and the arguments of `encode`."""

    arrays: Mapping[str, Opener]
    """Y, and arguments with an entry for each signal. Where Y is an iterable of blocks, there are none."""
    batches: Any
    """An iterable of blocks, or None."""
    signals: int | None
    block: int
    fixed: Mapping[str, Any]
    request: str

    @property
    def blocks(self) -> int | None:
        return None if self.signals is None else -(-self.signals // self.block)

    def reads(self) -> Iterator[tuple[int, Callable[[], dict[str, Any]]]]:
        """The numbers of the blocks, and functions that read Y and the other arguments of a block."""
        if self.signals is None:
            yield from ((i, partial(dict, Y=rows)) for i, rows in enumerate(self.batches))
        for i in range(self.blocks or 0):
            yield i, partial(_read, self.arrays, i * self.block, (i + 1) * self.block)

    def fingerprint(self, i: int) -> str:
        """The fingerprint of block i, of which only the rows that it is made of are read."""
        start = i * self.block
        arrays = [opener() for opener in self.arrays.values()]
        return fingerprint(arrays, start, min(start + self.block, self.signals or 0))


def _per_signal(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that hold for all signals, and those that have an entry, or a row, for each."""
    lists = {name: host_array(value, name) for name, value in options.items() if isinstance(value, list | tuple)}
    options = options | {name: value for name, value in lists.items() if name in EACH_SIGNAL}
    each = [name for name in sorted(options) if name in EACH_SIGNAL and len(getattr(options[name], "shape", ()))]
    fixed = {name: value for name, value in options.items() if name not in each}
    return fixed, {name: options[name] for name in each}


def _job(D: Any, Y: Any, block: int | None, options: dict[str, Any], on_cluster: bool) -> Job:
    fixed, each = _per_signal(options)
    digest = hashlib.sha256(np.ascontiguousarray(D).tobytes())
    rules = sorted((name, value) for name, value in fixed.items() if name != "n_jobs")
    digest.update(json.dumps([str(D.dtype), D.shape, rules, list(each)], default=str).encode())
    if sp.issparse(Y):
        raise TypeError(f"Y is {describe(Y)}; give a dense array on disk, or an iterable of sparse blocks.")
    if not isinstance(getattr(Y, "shape", None), tuple):
        if not isinstance(Y, Iterable) or isinstance(Y, str | bytes) or on_cluster or each:
            raise TypeError(f"Y is {describe(Y)}; open it as an array, or give an iterable of arrays without a client.")
        return Job({}, Y, None, 1, fixed, digest.hexdigest())
    if len(Y.shape) != 2 or Y.shape[1] != D.shape[0]:
        raise ValueError(f"Y has shape {Y.shape} and D {D.shape}; signals are rows of Y, as long as the columns of D.")
    rows = int(block or max(1, BLOCK_BYTES // max(1, np.dtype(Y.dtype).itemsize * Y.shape[1])))
    for name, shape in ((name, value.shape) for name, value in each.items()):
        if shape[0] != Y.shape[0]:
            raise ValueError(f"{name} has shape {shape}, Y has {Y.shape}; give one entry, or row, for each signal.")
    digest.update(json.dumps([str(Y.dtype), Y.shape, rows]).encode())
    arrays = {name: _opener(a, name, on_cluster) for name, a in {"Y": Y, **each}.items()}
    return Job(arrays, None, int(Y.shape[0]), rows, fixed, digest.hexdigest())


def _opener(a: Any, name: str, on_cluster: bool) -> Opener:
    """A function that opens the array; on a cluster, it does not carry the content of Y."""
    if on_cluster and isinstance(a, np.memmap) and isinstance(a.base, mmap.mmap) and a.flags.c_contiguous:
        return partial(np.memmap, a.filename, a.dtype, "r", a.offset, a.shape)
    if on_cluster and type(a).__module__.startswith("h5py"):
        return partial(_open_hdf5, a.file.filename, a.name)
    if on_cluster and isinstance(a, np.ndarray) and name == "Y":
        raise TypeError(f"Y is {describe(a)} in memory; workers read files: give a memmap, a Zarr array or a dataset.")
    return partial(_same, a)  # Zarr arrays travel as the name of their store


def _same(a: Any) -> Any:
    return a


def _open_hdf5(file: str, name: str) -> Any:
    import h5py

    return h5py.File(file, "r")[name]


def _read(arrays: Mapping[str, Opener], start: int, stop: int) -> dict[str, Any]:
    return {name: _in_memory(opener()[start:stop]) for name, opener in arrays.items()}


def _in_memory(rows: Any) -> Any:
    rows = rows.toarray() if hasattr(rows, "toarray") else rows  # a sparse matrix
    return rows if np.ma.isMaskedArray(rows) else np.asarray(rows)


def fingerprint(arrays: list[Any], start: int, stop: int) -> str:
    """A hash of the first, the middle and the last of these rows of the arrays."""
    digest, length = hashlib.sha256(), stop - start
    places = sorted({0, length // 2, length - 1} & set(range(length)))
    for a in arrays:
        for place in places:
            row = _in_memory(a[start + place : start + place + 1])
            digest.update(np.ascontiguousarray(np.ma.getmaskarray(row)).tobytes())
            digest.update(np.ascontiguousarray(np.ma.filled(row, 0)).tobytes())
    return digest.hexdigest()


def _compare(zarr: Any, path: Path, i: int, now: str) -> None:
    """Refuse to go on where block i was made of other signals."""
    if _attributes(zarr, path / _name(i)).get("signals") != now:
        other = f"block {i} has codes of other signals"
        raise ValueError(f"path is {path}, where {other}; remove it, or give another path.")


def _begin(zarr: Any, path: Path, attributes: dict[str, Any]) -> None:
    """Make the group, or check that the one that exists is of the same request."""
    if "request" not in _attributes(zarr, path):
        if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
            raise ValueError(f"path is {path}, which holds something else; give the name of a new folder.")
        zarr.open_group(path, mode="a", attributes=attributes)  # "w" would remove what another process has written
    if _attributes(zarr, path)["request"] != attributes["request"]:
        raise ValueError(f"path is {path}, where codes with other arguments are; remove them, or give another path.")


def write_block(path: Path, i: int, D: Any, read: Callable[[], dict[str, Any]], fixed: Mapping[str, Any]) -> None:
    """Code a block and write it as a whole."""
    from pursuit.coding import encode

    zarr, arrays = _zarr(), read()
    codes = encode(D, **arrays, **fixed)
    temporary = path / f".{secrets.token_hex(4)}.{_name(i)}"
    try:
        made_of = fingerprint(list(arrays.values()), 0, codes.shape[0])
        content = [codes.data, codes.indices, codes.indptr.astype(np.int64)]
        words = {"signals": made_of, "checksum": _checksum(content)}
        group = zarr.open_group(temporary, mode="w", attributes=words)
        for name, a in zip(ARRAYS, content, strict=True):
            group.create_array(name, data=a, chunks=(max(1, len(a)),), compressors=None)
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb+") as opened:
                    os.fsync(opened.fileno())
        temporary.replace(path / _name(i))
    except OSError:
        if not (path / _name(i)).is_dir():  # else another process has written it
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_blocks(zarr: Any, path: Path, D: Any, job: Job, bar: Any) -> int:
    """Write the missing blocks; returns the number of all blocks."""
    blocks = 0
    try:
        for i, read in job.reads():
            if not (path / _name(i)).is_dir():
                write_block(path, i, D, read, job.fixed)
                bar.update()
            elif job.signals is None:
                rows = read()["Y"]
                _compare(zarr, path, i, fingerprint([rows], 0, np.shape(rows)[0]))
            blocks = i + 1
    except Exception:
        if not any(file.name.isdigit() for file in path.iterdir()):  # wrong arguments: right ones may have this path
            (path / "zarr.json").unlink()
        raise
    return blocks


def _write_on_cluster(client: Any, path: Path, D: Any, job: Job, bar: Any) -> int:
    """The same by the workers of a cluster."""
    import dask
    from distributed import as_completed

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):  # D is meant to be sent
        dictionary = client.submit(_same, D, pure=False)
    path, fixed = path.resolve(), {"n_jobs": 1, **job.fixed}
    futures = [
        client.submit(write_block, path, i, dictionary, read, fixed, pure=False)
        for i, read in job.reads()
        if not (path / _name(i)).is_dir()
    ]
    try:
        for future in as_completed(futures):
            future.result()
            bar.update()
    except BaseException:
        client.cancel(futures)  # Ctrl-C ends the work of the cluster, too
        raise
    return int(job.blocks or 0)


def _checksum(arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """A hash of arrays and their dtypes."""
    digest = hashlib.sha256()
    for a in arrays:
        digest.update(f"{a.dtype.str}{a.shape}".encode())
        digest.update(np.ascontiguousarray(a).tobytes())
    return digest.hexdigest()


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
        raise ImportError("codes in files need Zarr; pip install zarr.") from None
    return zarr
