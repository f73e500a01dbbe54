"""`encode` of recordings: events of templates that may stand anywhere, block by block."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from pursuit.arguments import as_bool, require
from pursuit.atoms.convolutional import Convolutional
from pursuit.atoms.events import Events
from pursuit.coding.event_lasso import solve_lasso
from pursuit.coding.events import Blocks, Recording, Rules, from_table, read_rules, to_table
from pursuit.coding.request import thread_count
from pursuit.threads import at_most, in_parallel

Array = np.ndarray[Any, np.dtype[Any]]


def encode_recording(A: Convolutional, recording: Any, options: dict[str, Any]) -> Events:
    """The events of a recording; `options` are the arguments of `encode`."""
    for name in ("tol", "gram", "weights", "gaps", "joint", "prices", "l2"):
        value = options[name]
        if not (value is None or value is False or (name == "l2" and value == 0)):
            raise ValueError(f"{name} does not belong to recordings; leave it out with a Convolutional.")
    if np.ma.isMaskedArray(recording) and np.ma.is_masked(recording):
        raise ValueError(
            "the recording is a masked array; subtract or replace artefacts first: a recording has no mask."
        )
    amplitudes = options["prior"], options["bounds"], options["refractory"]
    threshold, atoms, penalty = options["threshold"], options["atoms"], options["penalty"]
    rules = read_rules(threshold, atoms, options["method"], penalty, options["positive"], amplitudes)
    require(A.axes == 1 or rules.refractory < 0, "refractory", rules.refractory, "it for recordings only")
    exact = rules.method == "lasso" or (rules.method != "mp" and options["dtype"] is None)
    source = Recording(A, recording, np.float64 if exact else options["dtype"])  # single weights add up wrongly
    blocks = Blocks.choose(source, rules, options["block"], options["halo"])
    if rules.method == "lasso":
        if options["checkpoint"] is not None:
            raise ValueError("checkpoint belongs to pursuits; the Lasso goes over a recording several times.")
        return solve_lasso(blocks)
    with at_most(thread_count(options["n_jobs"])):
        return search_blocks(blocks, options["checkpoint"], as_bool(options["progress"], "progress"))


def search_blocks(blocks: Blocks, checkpoint: Any, progress: bool) -> Events:
    """All blocks, several at a time. Events near a seam are found by both blocks, and compared."""
    axes, width = blocks.recording.A.axes, blocks.recording.A.templates.width
    stored = None if checkpoint is None else StoredBlocks(Path(checkpoint), fingerprint(blocks))
    found: dict[int, Events] = {} if stored is None else {i: from_table(t, axes) for i, t in stored.tables.items()}
    bar = tqdm(total=blocks.count, initial=len(found), disable=None if progress else True, desc="encode", leave=False)

    def work(i: int, _: int) -> None:
        if i in found:
            return
        start, stop, first, last = blocks.ends(i)
        events = blocks.search(blocks.recording.read(first, last), first)
        kept = events[(events.time >= start - width) & (events.time < stop + width)].sorted()
        if stored is not None:
            stored.append(i, to_table(kept))
        found[i] = kept
        bar.update()

    with bar, nullcontext() if stored is None else stored:
        in_parallel(work, blocks.count, 1)
    tables, unverified = [Events.empty(axes)], []
    for i in range(blocks.count):
        start, stop, *_ = blocks.ends(i)
        tables.append(found[i][(found[i].time >= start) & (found[i].time < stop)])
        if i and not agree(found[i - 1], found[i], start, width):
            unverified.append(start)
    return replace(Events.joined(tables).sorted(), unverified=np.array(unverified, np.int64))


def agree(left: Events, right: Events, seam: int, width: int) -> bool:
    """Whether two blocks found the same events within a template's width of where they meet."""
    a, b = (e[np.abs(e.time - seam + 0.5) < width] for e in (left, right))
    if len(a) != len(b) or not (np.array_equal(a.template, b.template) and np.array_equal(a.position, b.position)):
        return False
    return bool(np.allclose(a.weight, b.weight, rtol=1e-4, atol=1e-5 * np.abs(a.weight).max(initial=0.0)))


def fingerprint(blocks: Blocks) -> str:
    """What must be the same for blocks of an earlier call to be used: all but the samples themselves."""
    A, source = blocks.recording.A, blocks.recording
    t = A.templates
    digest = hashlib.blake2b(digest_size=16)
    for array in (t.starts, t.part_channels, t.part_rows, t.samples):
        digest.update(np.ascontiguousarray(array).tobytes())
    what = (source.shape, source.dtype.name, A.stride, blocks.block, blocks.halo, Rules.__dataclass_fields__.keys(),
            tuple(vars(blocks.rules).values()), digest.hexdigest())  # fmt: skip
    return hashlib.blake2b(repr(what).encode(), digest_size=16).hexdigest()


class StoredBlocks:
    """A file to which finished blocks are appended. A record that was not written as a whole is cut off."""

    HEAD = struct.Struct("<qqI")  # block, events, checksum

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.lock = path, Lock()
        self.tables: dict[int, Array] = {}
        header = json.dumps({"format": "pursuit events 1", "key": key}).encode() + b"\n"
        if not path.exists() or path.stat().st_size == 0:
            path.write_bytes(header)
            return
        data = path.read_bytes()
        if not data.startswith(header):
            raise ValueError(
                f"checkpoint {path} is of another recording, other templates or other rules; give a new one."
            )
        end = self._read(data, len(header))
        with path.open("r+b") as file:
            file.truncate(end)

    def _read(self, data: bytes, at: int) -> int:
        """Reads whole records; gives where they end."""
        while at + self.HEAD.size <= len(data):
            block, count, checksum = self.HEAD.unpack_from(data, at)
            body = data[at + self.HEAD.size : at + self.HEAD.size + 40 * max(count, 0)]
            if len(body) != 40 * count or zlib.crc32(body) != checksum:
                break
            self.tables[block] = np.frombuffer(body).reshape(-1, 5)
            at += self.HEAD.size + len(body)
        return at

    def __enter__(self) -> StoredBlocks:
        self.file = self.path.open("ab")
        return self

    def append(self, block: int, table: Array) -> None:
        """One more finished block."""
        body = np.ascontiguousarray(table, dtype=np.float64).tobytes()
        with self.lock:
            self.file.write(self.HEAD.pack(block, len(table), zlib.crc32(body)) + body)
            self.file.flush()

    def __exit__(self, *_: object) -> None:
        self.file.close()
