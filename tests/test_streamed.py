"""More than memory: dictionaries in pieces, and codes from files to files."""

import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import pursuit as ps
from pursuit.atoms.pieces import Piece
from pursuit.atoms.streamed import StoredCopy
from pursuit.coding import files


def mapped(folder, a, name="array"):
    """The array as a memory map."""
    file = np.memmap(folder / name, a.dtype, "w+", shape=a.shape)
    file[:] = a
    file.flush()
    return np.memmap(folder / name, a.dtype, "r", shape=a.shape)


def in_zarr(folder, a):
    zarr = pytest.importorskip("zarr", reason="needs pursuit[files]")
    return zarr.create_array(folder / "zarr", data=a, chunks=tuple(max(1, n // 3) for n in a.shape))


def in_hdf5(folder, a):
    h5py = pytest.importorskip("h5py", reason="needs pursuit[files]")
    with h5py.File(folder / "array.h5", "w") as file:
        file["array"] = a
    return h5py.File(folder / "array.h5", "r")["array"]


STORES = {"memmap": mapped, "zarr": in_zarr, "hdf5": in_hdf5}


def functions(D, count):
    return [lambda part=part: part for part in np.array_split(D, count, axis=1)]


# ---------------------------------------------------------------------- dictionaries


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("domain", [ps.lin, lambda A: ps.conv(4.0 * A), ps.cone], ids=["lin", "conv", "cone"])
def test_a_dictionary_on_disk_gives_the_answer_of_one_in_memory(tmp_path, rng, store, domain):
    D = rng.standard_normal((20, 500)).astype(np.float32)
    y = D[:, [3, 333, 444]] @ np.array([1.0, -2.0, 0.5], np.float32)
    A = ps.Streamed(STORES[store](tmp_path, D), piece=8000)
    assert A.count >= 5
    here, there = (ps.minimize(ps.LeastSquares(y), domain(B), stop=ps.Stop(atoms=4)) for B in (ps.Dictionary(D), A))
    assert [a.source for a in here.atoms] == [a.source for a in there.atoms]
    np.testing.assert_allclose(there.weights, here.weights, rtol=1e-5)


def test_a_memory_map_is_never_copied(tmp_path, rng):
    D = mapped(tmp_path, rng.standard_normal((500, 20))).T
    A = ps.Streamed(D, piece=8000)
    assert all(np.shares_memory(A.read(i).columns.D, D) for i in range(A.count))
    assert np.shares_memory(A.lmo(D[:, 0]).vector, D)
    ps.check_atoms(A)


def test_pieces_that_are_loaded_are_not_kept(rng):
    D = rng.standard_normal((20, 500))
    calls = Counter()

    def load(i):
        calls[i] += 1
        return D[:, 100 * i : 100 * i + 100]

    A = ps.Streamed([lambda i=i: load(i) for i in range(5)])
    atoms = A.best(D[:, 0], 9)
    assert set(calls.values()) == {2}  # once to check them, once to search
    assert not any(np.shares_memory(a.vector, D) for a in atoms)  # an atom does not keep its piece in memory


@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("signed", [False, True])
def test_the_answer_does_not_depend_on_the_pieces_even_where_columns_are_equal(rng, count, signed):
    half = rng.standard_normal((30, 50)).astype(np.float32)
    D = np.concatenate([half, half[:, ::-1], np.nextafter(half, np.float32(9))], axis=1)
    whole = ps.Streamed(functions(D, 1), signed=signed)
    A = ps.Streamed(functions(D, count), signed=signed)
    for k in (0, 17, 49):
        g = -half[:, k]
        first = A.lmo(g)
        assert first.source == whole.lmo(g).source
        assert repr(A.best(g, 9)) == repr(whole.best(g, 9))
    first, second = np.array([[1.0], [1e8]], np.float32), np.array([[1.0], [1e8 + 8]], np.float32)
    near = np.concatenate([np.repeat(first, 9, axis=1), second], axis=1)  # in float32 their products with g are equal
    assert ps.Streamed(functions(near, min(count, 10)), signed=signed).lmo(np.array([1e8, -1], np.float32)).source == 9
    equal = ps.Streamed(functions(np.repeat(half[:, :1], 100, axis=1), count), signed=signed)
    assert [a.source for a in equal.best(half[:, 0], 3)] == [0, 1, 2]


def test_only_the_columns_of_the_winners_travel_where_they_are_large(rng, monkeypatch):
    D = rng.standard_normal((20, 300))
    A, fetched, atoms = ps.Streamed(functions(D, 6)), [], Piece.atoms
    A.bytes_with_answers = 0
    monkeypatch.setattr(Piece, "atoms", lambda piece, places: fetched.extend(places) or atoms(piece, places))
    r = ps.minimize(ps.LeastSquares(D[:, ::30].sum(axis=1)), ps.lin(A), stop=ps.Stop(atoms=8))
    assert {a.source % 50 for a in r.atoms} <= set(fetched)
    assert len(fetched) == r.oracle_calls


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"D": 3}, "D is 3"),
        ({"D": []}, "D is empty"),
        ({"D": np.ones(3)}, "D has shape"),
        ({"D": np.ones((3, 0))}, "D has shape"),
        ({"D": np.zeros((3, 4))}, "in piece 0, column 0 of D is zero"),
        ({"D": np.full((3, 4), np.nan)}, "in piece 0, column 0 of D contains NaN"),
        ({"D": np.ones((3, 4)), "piece": 0}, "piece is 0"),
        ({"D": np.ones((3, 4)), "signed": 2}, "signed is 2"),
    ],
)
def test_what_cannot_be_streamed_is_refused_in_one_sentence(arguments, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ps.Streamed(**arguments)


# ---------------------------------------------------------------------- their 8-bit copies


class Counting:
    """An array whose columns are counted when they are read."""

    def __init__(self, D):
        self.D, self.shape, self.dtype, self.columns = D, D.shape, D.dtype, 0

    def __getitem__(self, where):
        part = self.D[where]
        self.columns += part.shape[-1]
        return part


def awkward_columns(rng, dtype):
    """Columns of all sizes, some equal, some nearly so, and one that is no 8-bit number times anything."""
    D = rng.standard_normal((4, 10, 600))
    D[..., 100:200] = D[..., :100]
    D[..., 200:300] = D[..., :100] * (1 + 1e-6 * rng.standard_normal(100))
    D[..., 300:400] *= 10.0 ** rng.integers(-30, 30, 100)
    D[..., 400:450] = 0.01 * D[..., 400:450] + np.eye(40).reshape(4, 10, 40)[..., rng.integers(0, 40, 50)]
    if dtype == np.float64:
        D[..., 500], D[..., 501], D[..., 502] = 1e-200 * D[..., 500], 1e-320, 1e150 * D[..., 502]
    return D.astype(dtype)


def in_functions(folder, a):
    return [lambda part=part: part for part in np.array_split(a, 5, axis=-1)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("store", [*STORES, "functions"])
def test_the_answers_with_a_copy_on_disk_are_those_without(tmp_path, rng, dtype, signed, store):
    D = awkward_columns(rng, dtype)
    source = (STORES | {"functions": in_functions})[store](tmp_path, D)
    plain = ps.Streamed(source, signed=signed, piece=30_000)
    A = ps.Streamed(source, signed=signed, piece=2000, screen=tmp_path / "copy")  # many blocks
    search, by_copy = A.begin(), 0
    for k in range(40):
        g = rng.standard_normal((4, 10)) + 3 * (k % 2) * D[..., k]
        g = (g * 10.0 ** (rng.integers(-60, 30) if dtype == np.float64 else 0)).astype(dtype)
        for several in (1, 7):
            here, there = plain.best(g, several), search(g, several, 0.0)[0]
            assert repr(here) == repr(there)
            assert all(np.array_equal(a.vector, b.vector) for a, b in zip(here, there, strict=True))
            by_copy += search.attempts.pause == 0
    assert by_copy == 80 or dtype == np.float64  # few columns of all sizes are as large as the largest


@pytest.mark.parametrize("signed", [False, True])
def test_the_margin_of_the_copy_covers_the_worst_errors(tmp_path, signed):
    fillers, g = np.eye(101)[:, 1:], -np.ones(101)
    g[0] = 0.0
    lost, exact = np.full((2, 101), 127.0)
    lost[1:], exact[1:] = 0.49, np.arange(100) < 45  # 49 in truth, 0 by its 8-bit integers; 45 by both
    D = np.column_stack([fillers, exact, lost])
    assert ps.Streamed(D, signed=signed, screen=tmp_path / "rounded").lmo(g).source == 101
    pair, others = np.array([5.9e-8, 5.9e-8]), np.array([6.1e-8, 5.0e-8])  # to 0 and 0, to 1.2e-7 and 0, next to 1
    g = -np.concatenate([1.0 + pair, 1.0 + others, np.zeros(97)])
    first, second = 127.0 * (np.arange(101) < 2), 127.0 * ((np.arange(101) // 2) == 1)
    D = np.column_stack([second, fillers, first])
    assert ps.Streamed(D, signed=signed, screen=tmp_path / "float32").lmo(g).source == 101


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_with_a_copy_on_disk_a_question_reads_a_quarter_or_an_eighth(tmp_path, rng, dtype):
    D = rng.standard_normal((400, 20_000)).astype(dtype)
    source = Counting(D)
    A = ps.Streamed(source, piece=1 << 20, screen=tmp_path / "copy")
    source.columns = 0
    assert A.lmo(D[:, 3]).source == ps.Dictionary(D).lmo(D[:, 3]).source
    assert 0 < source.columns < 200
    read = source.columns * D[:, 0].nbytes + (tmp_path / "copy").stat().st_size
    assert read < 1.1 * D.nbytes / D.itemsize


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts the bytes that a process reads.")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_system_counts_a_quarter_or_an_eighth_of_the_bytes_too(tmp_path, rng, dtype):
    h5py = pytest.importorskip("h5py", reason="needs pursuit[files]")
    D = rng.standard_normal((400, 20_000)).astype(dtype)
    with h5py.File(tmp_path / "array.h5", "w") as file:
        file.create_dataset("D", data=D, chunks=(400, 20))
    with h5py.File(tmp_path / "array.h5", "r") as file:
        plain, A = ps.Streamed(file["D"]), ps.Streamed(file["D"], screen=tmp_path / "copy")
        read = [int(Path("/proc/self/io").read_text().split()[1])]
        for each in (plain, A):
            each.lmo(D[:, 3])
            read.append(int(Path("/proc/self/io").read_text().split()[1]))
    before, after = np.diff(read)
    assert before >= D.nbytes
    assert after < 1.1 * D.nbytes / D.itemsize


def test_where_the_copy_excludes_few_columns_the_dictionary_is_read_at_once_the_next_time(tmp_path, rng, monkeypatch):
    D = np.repeat(rng.standard_normal((30, 50)), 40, axis=1)  # each column 40 times
    asked, contenders = [], StoredCopy.contenders
    monkeypatch.setattr(StoredCopy, "contenders", lambda *question: asked.append(1) or contenders(*question))
    A, g = ps.Streamed(D, screen=tmp_path / "copy"), rng.standard_normal(30)
    assert [a.source for a in A.best(-D[:, 80], 3)] == [80, 81, 82]
    assert A.lmo(1e-300 * g).source == A.lmo(g).source  # out of range
    assert A.best(g, 199)[0].source == A.lmo(g).source
    search = ps.Streamed(np.repeat(D[:, :1], 900, axis=1), screen=tmp_path / "equal").begin()
    asked.clear()
    assert [search(-g, 1, 0.0)[0][0].source for _ in range(3)] == [0, 0, 0]
    assert len(asked) == 2  # tried, not tried, tried


def test_a_copy_on_disk_is_written_once_and_as_a_whole(tmp_path, rng):
    D = rng.standard_normal((20, 500))

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ps.Streamed([*functions(D, 2), broken], screen=tmp_path / "copy")
    with pytest.raises(ValueError, match="piece 1 has columns of shape"):
        ps.Streamed([lambda: D, lambda: D[:9]], screen=tmp_path / "copy")
    assert not list(tmp_path.iterdir())
    ps.Streamed(functions(D, 3), screen=tmp_path / "copy")
    (written,) = tmp_path.iterdir()
    then, bytes_then = written.stat(), written.read_bytes()
    for pieces_of_D in (functions(D, 3), functions(D, 7), D):
        assert ps.Streamed(pieces_of_D, screen=str(written)).lmo(D[:, 7]) is not None
    assert (written.stat().st_mtime_ns, written.stat().st_ino) == (then.st_mtime_ns, then.st_ino)
    assert written.read_bytes() == bytes_then and len(list(tmp_path.iterdir())) == 1


CHANGES = {
    "signs": lambda D: -D,
    "order of the rows": lambda D: D[::-1],
    "order of the columns": lambda D: D[:, ::-1],
    "one entry": lambda D: D + (np.arange(D.size) == 777).reshape(D.shape),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("piece", [2000, 1 << 23])
def test_where_the_copy_is_that_of_another_dictionary_the_dictionary_answers(tmp_path, rng, change, piece):
    D = rng.standard_normal((20, 500))
    ps.Streamed(D, screen=tmp_path / "copy")
    other = CHANGES[change](D)
    A = ps.Streamed(other, screen=tmp_path / "copy", piece=piece)
    with pytest.warns(UserWarning, match="is damaged or the copy of another D, and D is read instead"):
        assert A.lmo(-other[:, 38]).source == 38


@pytest.mark.parametrize("block", [2000, 1 << 23])
@pytest.mark.parametrize("opened", ["before", "after"])
def test_where_records_of_the_copy_are_damaged_the_dictionary_answers(tmp_path, rng, block, opened):
    D, path = rng.standard_normal((20, 500)), tmp_path / "copy"
    A = ps.Streamed(D, screen=path, piece=block)
    content, record = bytearray(path.read_bytes()), 8 + 4 + 20
    content[123 * record : 124 * record] = bytes(record)  # as a lost block of a file system
    path.write_bytes(content)
    A = A if opened == "before" else ps.Streamed(D, screen=path, piece=block)
    for _ in range(2):
        with pytest.warns(UserWarning, match="is damaged or the copy of another D, and D is read instead"):
            assert A.lmo(-D[:, 123]).source == 123
    path.write_bytes(content[:-8])
    with pytest.warns(UserWarning, match="is damaged"):
        assert A.lmo(-D[:, 123]).source == 123


def test_a_file_of_another_size_is_no_copy(tmp_path, rng):
    D, path = rng.standard_normal((20, 500)), tmp_path / "copy"
    ps.Streamed(D, screen=path)
    before = path.read_bytes()
    for other, screen in ((D[:, :-1], path), (D.astype(np.float32), path), (D, tmp_path)):
        with pytest.raises(ValueError, match="no copy of this D; give another name, or remove the file"):
            ps.Streamed(other, screen=screen)
    assert path.read_bytes() == before


def test_runs_over_a_copy_on_disk_are_those_over_a_dictionary(tmp_path, rng):
    D = rng.standard_normal((30, 2000)).astype(np.float32)
    y = D[:, [3, 333, 444]] @ np.array([1.0, -2.0, 0.5], np.float32)
    A = ps.Streamed(mapped(tmp_path, D), piece=20_000, screen=tmp_path / "copy")
    for domain in (ps.lin, lambda B: ps.conv(4.0 * B.symmetrised())):
        runs = [ps.minimize(ps.LeastSquares(y), domain(B)) for B in (ps.Dictionary(D).screened(), A)]
        assert [a.source for a in runs[0].atoms] == [a.source for a in runs[1].atoms]
        np.testing.assert_allclose(runs[1].x, runs[0].x, atol=1e-5)
    ps.check_atoms(A)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"screen": 3}, "screen is 3"),
        ({"screen": "nowhere/copy"}, "in a folder that does not exist"),
        ({"D": [lambda: sp.csc_array(np.eye(3))]}, "D is .* an 8-bit copy needs a dense NumPy array"),
        ({"D": np.eye(3, dtype=np.longdouble)}, "D is .* an 8-bit copy needs a dense NumPy array"),
    ],
)
def test_what_cannot_have_a_copy_on_disk_is_refused_in_one_sentence(tmp_path, arguments, words):
    with pytest.raises((TypeError, ValueError, FileNotFoundError), match=words):
        ps.Streamed(**({"D": np.eye(3), "screen": tmp_path / "copy"} | arguments))
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- codes


def contents(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.fixture
def signals(rng):
    pytest.importorskip("zarr", reason="needs pursuit[files]")
    return rng.standard_normal((10, 30)), rng.standard_normal((1000, 10))


@pytest.mark.parametrize("store", STORES)
def test_codes_from_files_to_files_are_those_of_encode(tmp_path, signals, store):
    D, Y = signals
    codes = ps.encode_to(tmp_path / "codes", D, STORES[store](tmp_path, Y), block=300, atoms=3)
    expected = ps.encode(D, Y, atoms=3)
    assert (len(codes), codes.shape, [len(part.indptr) - 1 for part in codes]) == (4, (1000, 30), [300, 300, 300, 100])
    np.testing.assert_array_equal(codes.matrix().indices, expected.indices)
    np.testing.assert_allclose(codes.matrix().data, expected.data, rtol=1e-9)
    assert repr(ps.StoredCodes(tmp_path / "codes")) == "StoredCodes(1000 x 30 in 4 blocks)"


def test_an_iterator_gives_its_blocks_and_rules_for_each_signal_are_cut_as_the_signals_are(tmp_path, signals):
    D, Y = signals
    codes = ps.encode_to(tmp_path / "codes", D, (Y[k : k + 250] for k in range(0, 1000, 250)), atoms=3)
    assert (len(codes), codes.shape) == (4, (1000, 30))
    np.testing.assert_array_equal(codes.matrix().indices, ps.encode(D, Y, atoms=3).indices)
    masked = np.ma.masked_array(Y, Y > 1)
    codes = ps.encode_to(tmp_path / "masked", D, masked, block=300, atoms=3)
    np.testing.assert_array_equal(codes.matrix().indices, ps.encode(D, masked, atoms=3).indices)
    limits = np.arange(1000) % 5 + 1
    codes = ps.encode_to(tmp_path / "other", D, Y, block=300, atoms=limits)
    np.testing.assert_array_equal(np.diff(codes.matrix().indptr), limits)


def test_a_run_that_was_killed_is_gone_on_with_and_leaves_the_same_bytes(tmp_path, signals, monkeypatch):
    D, Y = signals
    ps.encode_to(tmp_path / "undisturbed", D, Y, block=100, atoms=3)
    write, written = files.write_block, []

    def killed_at_four(path, i, *rest):
        if i == 4 and 4 not in written:
            written.append(4)
            shutil.copytree(path / "00000003", path / ".0123abcd.00000004")  # as a kill leaves it
            raise KeyboardInterrupt
        written.append(i)
        return write(path, i, *rest)

    monkeypatch.setattr(files, "write_block", killed_at_four)
    with pytest.raises(KeyboardInterrupt):
        ps.encode_to(tmp_path / "killed", D, Y, block=100, atoms=3)
    with pytest.raises(ValueError, match="not complete"):
        ps.StoredCodes(tmp_path / "killed")
    written.append("again")
    ps.encode_to(tmp_path / "killed", D, Y, block=100, atoms=3)
    assert written[written.index("again") + 1 :] == [4, 5, 6, 7, 8, 9]
    assert contents(tmp_path / "killed") == contents(tmp_path / "undisturbed")


@pytest.mark.parametrize("change", [{"atoms": 2}, {"block": 50}, {"D": 1}, {"Y": 1}])
def test_codes_of_another_request_are_not_gone_on_with(tmp_path, signals, change):
    D, Y = signals
    arguments = {"D": D, "Y": Y, "block": 500, "atoms": 3}
    ps.encode_to(tmp_path / "codes", **arguments)
    change = {"D": {"D": 2 * D}, "Y": {"Y": Y[:999]}}.get(next(iter(change)), change)
    with pytest.raises(ValueError, match="other arguments"):
        ps.encode_to(tmp_path / "codes", **(arguments | change))


@pytest.mark.parametrize("form", [*STORES, "iterator", "masked", "sparse"])
def test_codes_of_other_signals_are_not_gone_on_with(tmp_path, signals, form):
    def given(folder, Y):
        (tmp_path / folder).mkdir()
        if form in STORES:
            return STORES[form](tmp_path / folder, Y)
        if form == "masked":
            return np.ma.masked_array(Y, Y > 1)
        return (sp.csr_array(Y[k : k + 100]) if form == "sparse" else Y[k : k + 100] for k in range(0, 1000, 100))

    D, Y = signals
    block = None if form in ("iterator", "sparse") else 100
    ps.encode_to(tmp_path / "codes", D, given("one", Y), block=block, atoms=3)
    shutil.rmtree(tmp_path / "codes" / "00000004")
    changed = np.where(np.arange(1000)[:, None] < 200, Y, Y[::-1])
    with pytest.raises(ValueError, match=r"block [23] has codes of other signals; remove it, or give another path"):
        ps.encode_to(tmp_path / "codes", D, given("two", changed), block=block, atoms=3)
    codes = ps.encode_to(tmp_path / "codes", D, given("three", Y), block=block, atoms=3)
    assert codes.shape == (1000, 30)


def test_rules_for_each_signal_that_have_changed_are_not_gone_on_with(tmp_path, signals):
    D, Y = signals
    limits = np.arange(1000) % 5 + 1
    ps.encode_to(tmp_path / "codes", D, Y, block=300, atoms=limits)
    with pytest.raises(ValueError, match=r"block 0 has codes of other signals"):
        ps.encode_to(tmp_path / "codes", D, Y, block=300, atoms=limits[::-1].copy())


def test_few_rows_are_read_to_compare_signals(tmp_path, signals):
    class Counted:
        def __init__(self, Y):
            self.Y, self.shape, self.dtype, self.rows = Y, Y.shape, Y.dtype, 0

        def __getitem__(self, places):
            self.rows += len(self.Y[places])
            return self.Y[places]

    D, Y = signals
    ps.encode_to(tmp_path / "codes", D, Y, block=10, atoms=3)
    counted = Counted(Y)
    ps.encode_to(tmp_path / "codes", D, counted, block=10, atoms=3)
    assert counted.rows <= 3 * 8


def test_workers_write_the_bytes_of_one_process(tmp_path, signals):
    distributed = pytest.importorskip("distributed", reason="needs pursuit[cluster]")
    D, Y = signals
    ps.encode_to(tmp_path / "here", D, Y, block=100, atoms=3, n_jobs=1)
    with distributed.Client(processes=False, n_workers=2, dashboard_address=":0") as client:
        for name, stored in STORES.items():
            (tmp_path / "in" / name).mkdir(parents=True)
            signals = stored(tmp_path / "in" / name, Y)
            ps.encode_to(tmp_path / name, D, signals, block=100, client=client, atoms=3)
            assert contents(tmp_path / name) == contents(tmp_path / "here")
        with pytest.raises(TypeError, match="workers read files"):
            ps.encode_to(tmp_path / "memory", D, Y, client=client, atoms=3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block": 0}, "block is 0"),
        ({"gaps": True, "method": "lasso", "penalty": 1.0, "atoms": None}, "gaps is no argument"),
        ({"Y": np.ones((5, 3))}, "Y has shape"),
        ({"Y": 3}, "Y is 3"),
        ({"Y": "signals.zarr"}, "Y is 'signals.zarr'; open it as an array"),
        ({"atoms": np.ones(3, int)}, "atoms has shape"),
        ({"client": 3}, "needs a dask client"),
    ],
)
def test_what_cannot_be_coded_to_files_is_refused_in_one_sentence(tmp_path, signals, change, words):
    D, Y = signals
    with pytest.raises((TypeError, ValueError), match=words):
        ps.encode_to(tmp_path / "codes", **({"D": D, "Y": Y, "atoms": 2} | change))


def test_wrong_arguments_do_not_take_the_path_from_the_right_ones(tmp_path, signals):
    with pytest.raises(ValueError, match="atoms and tol are both None"):
        ps.encode_to(tmp_path / "codes", *signals)
    assert ps.encode_to(tmp_path / "codes", *signals, atoms=1).matrix().nnz == len(signals[1])


def test_a_zarr_array_is_not_taken_for_codes(tmp_path, signals):
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "signals", data=signals[1])
    with pytest.raises(ValueError, match="holds something else"):
        ps.encode_to(tmp_path / "signals", *signals, atoms=1)
    with pytest.raises(FileNotFoundError, match="has no codes"):
        ps.StoredCodes(tmp_path / "signals")


def test_a_folder_with_something_else_is_left_alone(tmp_path, signals):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else"):
        ps.encode_to(tmp_path, *signals, atoms=1)
    with pytest.raises(FileNotFoundError, match="has no codes"):
        ps.StoredCodes(tmp_path)


def test_without_zarr_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match=r"pip install zarr"):
        ps.encode_to(tmp_path / "codes", np.eye(3), np.eye(3), atoms=1)
    assert not Path(tmp_path / "codes").exists()
