"""Codes in files: rules given as lists, and two processes that write to one path."""

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
