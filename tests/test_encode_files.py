"""Codes in files: rules given as lists, and two processes that write to one path."""

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest

import pursuit as ps

zarr = pytest.importorskip("zarr", reason="needs pursuit[files]")


@pytest.fixture
def signals(rng):
    return rng.standard_normal((8, 20)), rng.standard_normal((200, 8))


def test_rules_in_a_list_belong_to_the_signals_and_not_to_each_block(tmp_path, signals):
    limits = [1] * 100 + [3] * 100
    codes = ps.encode_to(tmp_path / "codes", *signals, block=60, atoms=limits)
    np.testing.assert_array_equal(np.diff(codes.matrix().indptr), limits)
    with pytest.raises(ValueError, match=r"atoms has shape \(60,\), Y has \(200, 8\)"):
        ps.encode_to(tmp_path / "other", *signals, block=60, atoms=limits[:60])


def test_two_processes_may_write_to_one_path(tmp_path, signals, monkeypatch):
    """While a block is half written, another call writes all of them."""
    create, calls = zarr.Group.create_array, []

    def interleaved(self, name, **options):
        calls.append(name)
        if len(calls) == 5:
            ps.encode_to(tmp_path / "codes", *signals, block=50, atoms=2)
        return create(self, name, **options)

    monkeypatch.setattr(zarr.Group, "create_array", interleaved)
    codes = ps.encode_to(tmp_path / "codes", *signals, block=50, atoms=2)
    monkeypatch.undo()
    np.testing.assert_array_equal(codes.matrix().indices, ps.encode(*signals, atoms=2).indices)
    names = sorted(file.name for file in (tmp_path / "codes").iterdir())
    assert names == ["00000000", "00000001", "00000002", "00000003", "zarr.json"]


def test_a_damaged_block_is_refused_and_can_be_written_again(tmp_path, signals):
    codes = ps.encode_to(tmp_path / "codes", *signals, block=50, atoms=2)
    whole, block = codes.matrix(), tmp_path / "codes" / "00000001"
    for file in filter(Path.is_file, block.rglob("*")):
        good = file.read_bytes()
        for place in range(0, len(good), max(1, len(good) // 9)):
            file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
            with contextlib.suppress(ValueError):  # a flipped bit may change nothing, such as a name that nobody reads
                assert abs(codes[1] - whole[50:100]).max() == 0
        file.write_bytes(good)
    chunk = next(file for file in (block / "data").rglob("*") if file.is_file() and file.suffix != ".json")
    chunk.write_bytes(bytes(len(chunk.read_bytes())))
    with pytest.raises(ValueError, match=r"block 1 of the codes in .* is damaged: .*; remove the folder"):
        codes.matrix()
    shutil.rmtree(block)
    assert abs(ps.encode_to(tmp_path / "codes", *signals, block=50, atoms=2).matrix() - whole).max() == 0
