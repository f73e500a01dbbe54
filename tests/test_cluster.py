"""Many machines: on two worker processes everything is as in one process, also when one of them is killed."""

import os
import pickle
import signal
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import pursuit as ps
from pursuit.cluster import workers
from pursuit.dictionaries.learning import Fit

distributed = pytest.importorskip("distributed", reason="needs pursuit[cluster]")
da = pytest.importorskip("dask.array")


def two_workers():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


client = pytest.fixture(two_workers, scope="module", name="client")
mortal = pytest.fixture(two_workers, name="mortal")  # a cluster of its own, for tests that kill a worker


def columns(seed, n=300, d=30, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((d, n)).astype(dtype)


def loads(count, **kind):
    return [lambda i=i: columns(i, **kind) for i in range(count)]


def together(count, **kind):
    return np.concatenate([columns(i, **kind) for i in range(count)], axis=1)


# ---------------------------------------------------------------------- encode

D, Y = columns(0, 50, 12), columns(1, 12, 103)


@pytest.mark.parametrize(
    "options",
    [
        {"atoms": 3},
        {"atoms": 3, "method": "nnomp"},
        {"tol": 0.5},
        {"method": "lasso", "penalty": 0.3},
        {"atoms": np.arange(103) % 4 + 1},
        {"atoms": 2, "weights": np.abs(columns(2, 12, 103))},
        {"method": "lasso", "penalty": da.from_array(np.linspace(0.1, 1, 103), chunks=50)},
        {"atoms": 3, "dtype": np.float32},
    ],
    ids=str,
)
def test_codes_of_a_dask_array_are_those_of_one_array(options):
    codes = ps.encode(D, da.from_array(Y, chunks=(20, 5)), **options)
    assert codes.shape == (103, 50)
    found = codes.compute(scheduler="threads")
    plain = {name: np.asarray(a) if hasattr(a, "compute") else a for name, a in options.items()}
    expected = ps.encode(D, Y, **plain)
    assert isinstance(found, sp.csr_array)
    assert codes.dtype == found.dtype == expected.dtype
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(
        found.toarray(), expected.toarray(), rtol=1e-5 if "dtype" in options else 1e-12, atol=1e-12
    )


@pytest.mark.parametrize("method", ["to_zarr", "to_hdf5", "store"])
def test_sparse_codes_that_are_to_be_written_as_a_dense_array_say_what_to_do(method, tmp_path):
    D, Y = np.eye(4), da.from_array(np.ones((6, 4)), chunks=(3, 4))
    codes = ps.encode(D, Y, atoms=1)
    assert codes.compute().nnz == 6
    with pytest.raises(TypeError, match=r"codes have sparse blocks; write them with encode_to\(path, D, Y, \.\.\.\)"):
        getattr(codes, method)(str(tmp_path / "codes"))
    dense = codes.map_blocks(lambda block: block.toarray(), dtype=codes.dtype, meta=np.empty((0, 0)))
    stored = np.zeros((6, 4))
    da.store(dense, stored)
    np.testing.assert_array_equal(stored, codes.compute().toarray())


def test_the_dictionary_is_in_the_graph_once_however_many_blocks_there_are():
    big = columns(3, 5000, 12)
    codes = ps.encode(big, da.zeros((100, 12), chunks=(1, 12)), atoms=1)
    assert len(pickle.dumps(dict(codes.__dask_graph__()))) < 2 * big.nbytes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"atoms": 0}, "atoms is 0"),
        ({"atoms": [1, 2]}, "atoms has shape"),
        ({}, "atoms and tol are both None"),
        ({"atoms": 1, "weights": np.ones((3, 3))}, "weights has shape"),
        ({"atoms": 1, "progress": True}, "progress"),
    ],
)
def test_what_encode_refuses_it_refuses_before_anything_is_computed(options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        ps.encode(D, da.from_array(Y, chunks=20), **options)
    with pytest.raises(TypeError, match="give Y as a dask array"):
        ps.encode(da.from_array(D), Y, atoms=1)


# ---------------------------------------------------------------------- Sharded

DOMAINS = {"lin": ps.lin, "conv": lambda A: ps.conv(4.0 * A), "cone": ps.cone}


@pytest.mark.parametrize(
    ("screened", "stop"),
    [(False, ps.Stop(atoms=6)), (False, ps.Stop()), (True, ps.Stop())],
    ids=["one", "several", "screened"],
)
@pytest.mark.parametrize("domain", DOMAINS)
def test_columns_on_workers_give_the_answer_of_one_dictionary(client, domain, screened, stop):
    D = together(3)
    y = D[:, [3, 310, 620, 650]] @ [1.0, -2.0, 0.5, 1.0]
    sets = [ps.Dictionary(D), ps.Sharded(loads(3))]
    sets = [A.screened() for A in sets] if screened else sets
    here, there = (ps.minimize(ps.LeastSquares(y), DOMAINS[domain](A), stop=stop) for A in sets)
    assert [a.source for a in here.atoms] == [a.source for a in there.atoms]
    np.testing.assert_allclose(there.weights, here.weights, rtol=1e-9, atol=1e-12)
    assert there.status == here.status
    assert there.oracle_calls == here.oracle_calls


def test_a_dask_array_is_one_piece_for_each_worker_and_the_same_dictionary(client):
    D = together(2, dtype=np.float32)
    A, B = ps.Sharded(da.from_array(D, chunks=(7, 100)), signed=True), ps.Dictionary(D, signed=True)
    assert repr(A) == "Sharded(30 x 600 in 2 pieces, signed=True)"
    assert (A.shape, A.n, A.size, A.symmetric, A.space) == (B.shape, B.n, B.size, B.symmetric, B.space)
    assert A.radius == pytest.approx(B.radius)
    g = columns(9, 1, dtype=np.float32)[:, 0]
    assert repr(A.best(g, 7)) == repr(B.best(g, 7))
    np.testing.assert_allclose(A.scores(g), B.scores(g), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(A.atom(700).vector, B.atom(700).vector)
    assert A.contains(B.atom(3).vector)
    ps.check_atoms(A)


def has_copy(piece):
    return "eight_bit" in vars(piece)


def test_workers_make_8_bit_copies_once_a_run_has_paid_for_them(client):
    A, D, made = ps.Sharded(loads(2)), together(2), []
    A.min_screened = 1
    search = A.begin()
    for g in columns(9, 5).T:
        assert search(g, 1, 0.0)[0][0].source == ps.Dictionary(D).lmo(g).source
        made.append(A.map(has_copy, range(2)))
    assert made == [[False, False]] * 2 + [[True, True]] * 3


def test_sparse_columns_stay_sparse(client):
    def load(seed):
        return (
            sp.random_array((30, 200), density=0.2, rng=seed).tocsc()
            + sp.eye_array(30, 200).tocsc()
            + sp.csc_array((np.ones(200), (np.arange(200) % 30, np.arange(200))), shape=(30, 200))
        )

    A = ps.Sharded([lambda: load(0), lambda: load(1)])
    B = ps.Dictionary(sp.hstack([load(0), load(1)]))
    g = columns(5, 1)[:, 0]
    assert repr(A.best(g, 5)) == repr(B.best(g, 5))
    assert isinstance(A.lmo(g), ps.SparseAtom)


def test_a_worker_that_is_killed_costs_its_columns_to_be_loaded_again_and_not_the_answer(mortal):
    D = together(2)
    y = D[:, ::40].sum(axis=1)
    A = ps.Sharded(loads(2))
    pids = list(mortal.run(os.getpid).values())

    def kill(state):
        if state.iteration == 5:
            os.kill(pids[0], signal.SIGKILL)

    here = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), stop=ps.Stop(atoms=15))
    there = ps.minimize(ps.LeastSquares(y), ps.lin(A), stop=ps.Stop(atoms=15), callback=kill)
    assert [a.source for a in there.atoms] == [a.source for a in here.atoms]
    np.testing.assert_allclose(there.weights, here.weights)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ps.Sharded([]), "columns is empty"),
        (lambda: ps.Sharded([lambda: np.zeros((3, 4))]), "in piece 0, column 0 of D is zero"),
        (lambda: ps.Sharded([lambda: columns(0), lambda: columns(0, 5, 7)]), "piece 1 has columns of shape"),
        (lambda: ps.ShardedSum([lambda: 3]), "function 0 of terms returned 3"),
        (lambda: ps.ShardedSum([lambda: (ps.LeastSquares(np.ones(3)), np.ones((2, 4)))]), "they must fit"),
        (
            lambda: ps.ShardedSum([lambda: ps.LeastSquares(np.ones(3)), lambda: ps.LeastSquares(np.ones(4))]),
            "term 1 is",
        ),
        (lambda: ps.learn(da.from_array(Y, chunks=20), 5, code={"atoms": 1}, update="ksvd"), "update is 'ksvd'"),
    ],
)
def test_what_cannot_be_spread_is_refused_in_one_sentence(client, make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


# ---------------------------------------------------------------------- sums


LOSSES = {
    "squares": ps.LeastSquares,
    "logistic": lambda y: ps.Logistic(y > 0),
    "huber": lambda y: ps.Huber(y, 0.5),
}


def samples(seed):
    X = columns(seed, 8, 60)
    return X, X[:, :2] @ [1.0, -2.0] + columns(seed + 50, 60, 1)[0]


def term(seed, kind):
    X, y = samples(seed)
    return LOSSES[kind](y), X


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("domain", ["lin", "conv"])
def test_a_sum_on_workers_is_the_loss_of_all_samples(client, kind, domain):
    f = ps.ShardedSum([lambda i=i: term(i, kind) for i in range(3)])
    X, y = (np.concatenate(parts) for parts in zip(*map(samples, range(3)), strict=True))
    g = LOSSES[kind](y)
    stop = ps.Stop(atoms=3)
    there = ps.minimize(f, DOMAINS[domain](ps.SignedBasis(8)), stop=stop)
    here = ps.minimize(g, DOMAINS[domain](ps.Dictionary(X, signed=True)), stop=stop)
    assert [a.source for a in there.atoms] == [a.source for a in here.atoms]
    np.testing.assert_allclose(there.coef, here.coef, atol=1e-8)
    x, v = columns(7, 1, 8)[:, 0], columns(8, 8, 8)
    np.testing.assert_allclose(f.hessian(x).batch(v), np.stack([X.T @ g.hessian(X @ x)(X @ u) for u in v]), atol=1e-12)
    np.testing.assert_allclose(f.hessian(x)(v[0]), f.hessian(x).batch(v)[0], atol=1e-12)
    assert f.value(x) == pytest.approx(f.value_and_grad(x)[0])
    ps.check_objective(f)


class NotConvex(ps.LeastSquares):
    """A term that claims no convexity."""

    convex = False


def test_a_sum_with_a_term_that_is_not_convex_proves_nothing(client):
    f = ps.ShardedSum([lambda: ps.LeastSquares(np.ones(3)), lambda: NotConvex(np.zeros(3))])
    r = ps.minimize(f, ps.conv(ps.Simplex(3)))
    assert not f.convex
    assert r.status is ps.Status.NEARLY_STATIONARY and r.lower == 0.0


# ---------------------------------------------------------------------- learn


@pytest.mark.parametrize("code", [{"atoms": 2}, {"method": "lasso", "penalty": 0.1}], ids=["omp", "lasso"])
def test_statistics_of_blocks_give_the_dictionary_of_all_signals(client, code, monkeypatch):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((2000, 15)) * (rng.random((2000, 15)) < 0.15) @ rng.standard_normal((15, 8))
    start = rng.standard_normal((8, 20))
    start[:, 17:] = start[:, :1]  # never used, since ties go to the first: they will be replaced
    replaced, replace = [], Fit.replace_atoms
    monkeypatch.setattr(Fit, "replace_atoms", lambda *a: replaced.append(replace(*a)) or replaced[-1])
    here = ps.learn([Y], 20, code=code, start=start, sweeps=4)
    assert sum(map(len, replaced)) > 0
    there = ps.learn(da.from_array(Y, chunks=(300, 3)), 20, code=code, start=start, sweeps=4)
    np.testing.assert_allclose(there.dictionary, here.dictionary, atol=1e-9)
    np.testing.assert_allclose(there.trace.objective, here.trace.objective)
    np.testing.assert_allclose(there.trace.error, here.trace.error)
    np.testing.assert_array_equal(there.trace.used, here.trace.used)
    longer = ps.learn(da.from_array(Y, chunks=(300, 3)), 20, code=code, start=there, sweeps=1)
    assert longer.trace.sweep[-1] == 5


# ---------------------------------------------------------------------- the cluster's work


def wait_for(event):
    event.wait(60)


def test_ctrl_c_cancels_the_work_of_the_cluster(client, monkeypatch):
    def interrupt(futures):
        raise KeyboardInterrupt

    leave = distributed.Event(client=client)
    futures = [client.submit(wait_for, leave, pure=False) for _ in range(4)]
    monkeypatch.setattr(client, "gather", interrupt)
    with pytest.raises(KeyboardInterrupt):
        workers.gathered(client, futures)
    assert all(future.cancelled() for future in futures)
    leave.set()


def test_a_question_that_fails_on_a_worker_raises_its_error_here(client):
    A = ps.Sharded(loads(2))
    A.lmo(columns(5, 1)[:, 0])
    with pytest.raises(ValueError, match=r"matmul|mismatch"):
        A.scores(np.ones(7))


def no_client():
    raise ValueError("No clients found")


def test_without_a_client_or_without_dask_one_sentence_says_what_to_do(monkeypatch):
    monkeypatch.setattr(distributed, "default_client", no_client)
    with pytest.raises(TypeError, match=r"start one with distributed.Client\(\)"):
        ps.Sharded(loads(1))
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install distributed"):
        ps.Sharded(loads(1))
    with pytest.raises(ImportError, match=r"pip install distributed"):
        ps.ShardedSum([lambda: ps.LeastSquares(np.ones(3))])
