"""Dictionary learning: descent, exact updates, missing entries, batches, resumption."""

import pickle
import tracemalloc

import numpy as np
import pytest

import pursuit as ps
from pursuit.dictionaries import Statistics
from pursuit.dictionaries.learning import Fit
from pursuit.dictionaries.signals import LearningPlan, Signals, compute_residuals
from pursuit.dictionaries.updates import impute, rank_one_sweep
from pursuit.run.stop import Status

CODES = [
    {"atoms": 3},
    {"atoms": 3, "method": "nnomp"},
    {"atoms": 4, "method": "mp"},
    {"method": "lasso", "penalty": 0.2},
    {"method": "lasso", "penalty": 0.2, "positive": True},
    {"method": "nnls"},
]
codes = pytest.mark.parametrize("code", CODES, ids=lambda code: "-".join(map(str, code.values())))


def planted(seed=0, signals=400, features=12, atoms=20, k=3, noise=0.05):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((features, atoms))
    D /= np.linalg.norm(D, axis=0)
    X = np.zeros((signals, atoms))
    for row in X:
        row[rng.choice(atoms, k, replace=False)] = rng.standard_normal(k)
    return D, X @ D.T + noise * rng.standard_normal((signals, features))


def objective(learned, Y, weights=None, penalty=0.0):
    squares = np.square(Y - learned.codes @ learned.dictionary.T) * (1.0 if weights is None else weights)
    return (0.5 * squares.sum() + penalty * abs(learned.codes).sum()) / len(Y)


# ---------------------------------------------------------------------- descent


@codes
@pytest.mark.parametrize("update", ["ksvd", "block"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_no_sweep_raises_the_objective_and_the_trace_is_that_of_the_result(code, update, weighted, nonnegative):
    _, Y = planted(1)
    Y = np.abs(Y) if nonnegative else Y
    weights = np.random.default_rng(2).choice([0.0, 0.5, 3.0], Y.shape) if weighted else None
    options = {"code": code, "update": update, "weights": weights, "nonnegative": nonnegative}
    learned = ps.learn(Y, 15, sweeps=12, **options)
    assert learned.descends
    assert (np.diff(learned.trace.objective) <= 1e-12 * learned.trace.objective[0]).all()
    assert learned.trace.objective[-1] < 0.95 * learned.trace.objective[0]
    assert learned.trace.objective[-1] == pytest.approx(
        objective(learned, Y, weights, code.get("penalty", 0.0)), rel=1e-9
    )
    np.testing.assert_allclose(np.linalg.norm(learned.dictionary, axis=0), 1.0)
    if nonnegative:
        assert learned.dictionary.min() >= 0
    if code.get("method") in ("nnomp", "nnls") or code.get("positive"):
        assert learned.codes.data.min() > 0


def test_codes_that_stop_at_an_error_and_batches_promise_no_descent():
    _, Y = planted()
    assert not ps.learn(Y, 15, code={"tol": 0.5}, sweeps=1).descends
    assert not ps.learn(Y, 15, code={"atoms": 2}, update="online", sweeps=1).descends
    assert "may rise" in repr(ps.learn(Y, 15, code={"tol": 0.5}, sweeps=1))


def test_without_a_rule_codes_have_a_tenth_as_many_atoms_as_signals_have_entries():
    _, Y = planted(features=24)
    default, explicit = ps.learn(Y, 30, sweeps=2), ps.learn(Y, 30, code={"atoms": 2}, sweeps=2)
    np.testing.assert_array_equal(default.dictionary, explicit.dictionary)
    assert np.diff(ps.learn(Y[:, :5], 8, sweeps=1).codes.indptr).max() == 1


@pytest.mark.parametrize("update", ["ksvd", "block"])
def test_a_planted_dictionary_is_recovered(update):
    D, Y = planted(3, signals=1500, features=20, atoms=50, noise=0.04)
    learned = ps.learn(Y, 50, code={"atoms": 3}, update=update, sweeps=80)
    assert np.mean(np.abs(D.T @ learned.dictionary).max(axis=1) > 0.99) > 0.9


# ---------------------------------------------------------------------- updates


def plan(code, update="ksvd", nonnegative=False):
    return LearningPlan(code, update, nonnegative, 1.0, 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_sweep_of_k_svd_is_that_of_a_plain_loop_over_dense_matrices(weighted, nonnegative):
    D, Y = planted(4)
    W = np.random.default_rng(5).choice([0.0, 1.0, 2.0], Y.shape) if weighted else np.ones_like(Y)
    D = np.abs(D) if nonnegative else D
    D /= np.linalg.norm(D, axis=0)
    signals = Signals.checked(Y, W if weighted else None)
    X = ps.encode(D, signals.Y, atoms=3, weights=signals.W)
    d, x = np.asfortranarray(D), X.toarray()
    for k in np.flatnonzero(x.any(axis=0)):
        users = np.flatnonzero(x[:, k])
        E = signals.Y[users] - x[users] @ D.T + np.outer(x[users, k], D[:, k])
        weight = W[users]
        atom = (weight * E).T @ x[users, k] / (weight.T @ x[users, k] ** 2)
        atom = np.maximum(atom, 0) if nonnegative else atom
        D[:, k] = atom / np.linalg.norm(atom)
        x[users, k] = (weight * E) @ D[:, k] / (weight @ D[:, k] ** 2)
    R = compute_residuals(signals, X, d)
    rank_one_sweep(plan({"atoms": 3}, nonnegative=nonnegative), signals, d, X, R)
    np.testing.assert_allclose(d, D, atol=1e-12)
    np.testing.assert_allclose(X.toarray(), x, atol=1e-12)
    np.testing.assert_allclose(R, signals.Y - x @ D.T, atol=1e-12)


def test_with_a_penalty_atoms_are_projected_onto_the_ball_and_weights_never_grow():
    D, Y = planted(7)
    X = ps.encode(D, Y, atoms=3) * 0.5  # too small, so that longer atoms would be better
    _, factors = Statistics.of(Y, X).improve(D, penalised=True)
    assert factors.max() <= 1 + 1e-12
    assert Statistics.of(Y, X).improve(D)[1].max() > 1.5


def test_the_factors_keep_the_product_of_codes_and_dictionary():
    D, Y = planted(7)
    X = ps.encode(D, Y, atoms=3)
    statistics = Statistics.of(Y, X)
    improved, factors = statistics.improve(D)
    X.data *= factors[X.indices]
    np.testing.assert_allclose(Statistics.of(Y, X).XX, statistics.rescale(factors).XX)
    np.testing.assert_allclose(Statistics.of(Y, X).YX, statistics.rescale(factors).YX)
    assert np.linalg.norm(Y - X @ improved.T) < np.linalg.norm(Y - ps.encode(D, Y, atoms=3) @ D.T)


def test_statistics_of_parts_add_up_to_those_of_all_signals():
    D, Y = planted()
    X = ps.encode(D, Y, atoms=3)
    whole = Statistics.of(Y, X)
    parts = sum(
        (Statistics.of(Y[i : i + 100], X[i : i + 100]) for i in range(100, 400, 100)), Statistics.of(Y[:100], X[:100])
    )
    for name in ("XX", "YX", "uses", "signals"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-12)
    np.testing.assert_allclose(parts.improve(D)[0], whole.improve(D)[0])


def test_imputed_signals_majorise_the_error_with_weights():
    rng = np.random.default_rng(8)
    signals = Signals.checked(rng.standard_normal((20, 6)), rng.choice([0.0, 0.3, 2.0], (20, 6)))
    M = rng.standard_normal((20, 6))
    filled, weight = impute(signals, signals.Y - M)

    def difference(other):
        return weight * np.square(filled - other).sum() - (signals.W * np.square(signals.Y - other)).sum()

    assert all(difference(M + rng.standard_normal(M.shape)) >= difference(M) for _ in range(100))


def test_unused_atoms_give_way_to_residuals_and_used_ones_stay():
    rng = np.random.default_rng(9)
    Y = np.hstack([rng.standard_normal((50, 3)), np.zeros((50, 3))])
    start = np.eye(6)
    learned = ps.learn(Y, 6, code={"atoms": 1}, start=start, sweeps=1)
    assert learned.trace.used[0] == 3
    assert np.abs(learned.dictionary[3:]).max() == 0  # no atom is orthogonal to all signals any more
    assert ps.learn(Y, 6, code={"atoms": 1}, start=learned, sweeps=1).trace.used[-1] == 6


def test_replaced_atoms_have_no_share_in_missing_entries_and_none_where_all_is_coded():
    signals = Signals.checked(np.ones((3, 4)), np.array([[1.0, 1.0, 0.0, 0.0]] * 3))
    D = np.asfortranarray(np.eye(4))
    for residuals, replaced in ((np.ones((3, 4)), 1), (np.zeros((3, 4)), 0)):
        fit = Fit(signals, D, ps.encode(D, signals.Y, atoms=1), residuals, np.zeros(3))
        assert len(fit.replace_atoms(plan({"atoms": 1}), D, np.array([3]), 0)) == replaced
        np.testing.assert_allclose(D[:, 3], [0.5**0.5, 0.5**0.5, 0, 0])


# ---------------------------------------------------------------------- missing entries


@pytest.mark.parametrize("update", ["ksvd", "block", "online"])
def test_missing_entries_do_not_matter_whatever_they_hold(update):
    _, Y = planted(10)
    missing = np.random.default_rng(11).random(Y.shape) < 0.3
    options = {"code": {"atoms": 2}, "update": update, "sweeps": 3, "batch": 128}
    one = ps.learn(np.where(missing, np.nan, Y), 15, weights=(~missing).astype(float), **options)
    other = ps.learn(np.ma.masked_array(np.where(missing, 1e6, Y), missing), 15, **options)
    np.testing.assert_array_equal(one.dictionary, other.dictionary)


# ---------------------------------------------------------------------- start


def test_a_start_of_data_random_directions_or_a_dictionary():
    D, Y = planted()
    options = {"code": {"atoms": 2}, "sweeps": 0}
    unit = (Y / np.linalg.norm(Y, axis=1)[:, None]).T
    assert np.abs(unit.T @ ps.learn(Y, 15, **options).dictionary).max(axis=0) == pytest.approx(np.ones(15))
    assert np.abs(unit.T @ ps.learn(Y, 15, start="random", **options).dictionary).max(axis=0).min() < 1 - 1e-6
    np.testing.assert_allclose(ps.learn(Y, 20, start=7 * D, **options).dictionary, D)
    assert (ps.learn(Y, 15, seed=1, **options).dictionary != ps.learn(Y, 15, **options).dictionary).any()


def test_nothing_that_was_given_is_written_to():
    D, Y = planted()
    weights = np.ones_like(Y)
    copies = D.copy(), Y.copy(), weights.copy()
    learned = ps.learn(Y, 20, code={"atoms": 2}, start=D, weights=weights, sweeps=2)
    before = learned.dictionary.copy(), learned.codes.copy()
    for update in ("ksvd", "block"):
        ps.learn(Y, 20, code={"atoms": 2}, update=update, start=learned, sweeps=2)
    for one, other in zip((D, Y, weights, learned.dictionary), (*copies, before[0]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert (learned.codes != before[1]).nnz == 0


def test_single_precision_stays_single_precision_and_the_unit_of_the_data_does_not_matter():
    _, Y = planted()
    single = ps.learn(Y.astype(np.float32), 15, code={"atoms": 2}, sweeps=3)
    assert single.dictionary.dtype == single.codes.dtype == np.float32
    one, other = (ps.learn(scale * Y, 15, code={"atoms": 2}) for scale in (1.0, 2.0**30))
    np.testing.assert_array_equal(one.dictionary, other.dictionary)


# ---------------------------------------------------------------------- batches


def test_batches_of_an_iterator_are_read_one_at_a_time():
    _, Y = planted()
    read = []

    def batches():
        for i in range(0, 400, 100):
            read.append(i)
            yield Y[i : i + 100]

    seen = []
    learned = ps.learn(
        batches(), 15, code={"atoms": 2}, callback=lambda state: seen.append((len(read), len(state.trace)))
    )
    assert seen == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert learned.update == "online"
    assert learned.codes is None
    again = ps.learn([Y[i : i + 100] for i in range(0, 400, 100)], 15, code={"atoms": 2}, sweeps=1)
    np.testing.assert_array_equal(learned.dictionary, again.dictionary)


def test_online_learning_approaches_what_sweeps_over_all_signals_reach():
    _, Y = planted(14, signals=2000)
    reached = ps.learn(Y, 20, code={"atoms": 3}, update="block", sweeps=10).trace.objective[-1]
    online = ps.learn(Y, 20, code={"atoms": 3}, update="online", sweeps=10, batch=250)
    X = ps.encode(online.dictionary, Y, atoms=3)
    assert 0.5 * np.square(Y - X @ online.dictionary.T).sum() / len(Y) < 1.5 * reached
    assert len(online.trace) == 80


@pytest.mark.parametrize("forgetting", [0.0, 1.0, 3.0])
def test_older_signals_count_less_the_more_is_forgotten(forgetting):
    D, Y = planted(16)
    first = ps.learn(Y[:100], 20, code={"atoms": 2}, update="online", start=D, sweeps=1)
    both = ps.learn(
        Y[100:], 20, code={"atoms": 2}, update="online", start=first, sweeps=1, batch=300, forgetting=forgetting
    )
    X = ps.encode(first.dictionary, Y[100:], atoms=2)
    expected = 0.25**forgetting * first.statistics.uses + np.bincount(X.indices, minlength=20)
    np.testing.assert_allclose(both.statistics.uses, expected)
    assert both.statistics.signals == 400


def test_the_statistics_after_a_batch_describe_the_fit_by_the_new_dictionary():
    D, Y = planted(16)
    learned = ps.learn(Y, 20, code={"atoms": 2}, update="online", start=D, sweeps=1, batch=400)
    X = ps.encode(D, Y, atoms=2)
    _, factors = Statistics.of(Y, X).improve(D)
    X.data *= factors[X.indices]
    np.testing.assert_allclose(learned.statistics.XX, (X.T @ X).toarray(), atol=1e-9)
    np.testing.assert_allclose(learned.statistics.YX, (X.T @ Y).T, atol=1e-9)


def test_pairs_of_batches_and_weights_are_missing_entries():
    _, Y = planted()
    weights = (np.random.default_rng(17).random(Y.shape) < 0.8).astype(float)
    pairs = [(Y[:200], weights[:200]), (Y[200:], weights[200:])]
    masked = [np.ma.masked_array(y, w == 0) for y, w in pairs]
    one, other = (ps.learn(batches, 15, code={"atoms": 2}, sweeps=2) for batches in (pairs, masked))
    np.testing.assert_array_equal(one.dictionary, other.dictionary)


def test_memory_does_not_grow_with_the_number_of_batches():
    def peak(batches):
        rng = np.random.default_rng(18)
        signals = (rng.standard_normal((500, 32)) for _ in range(batches))
        tracemalloc.start()
        ps.learn(signals, 40, code={"atoms": 3}, n_jobs=1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(30) < 1.1 * peak(5)


# ---------------------------------------------------------------------- going on


@pytest.mark.parametrize("update", ["ksvd", "block"])
def test_sweeps_in_two_parts_are_those_of_one_run(update):
    _, Y = planted(19)
    options = {"code": {"atoms": 2}, "update": update}
    whole = ps.learn(Y, 15, sweeps=6, **options)
    parts = ps.learn(Y, 15, sweeps=3, start=ps.learn(Y, 15, sweeps=3, **options), **options)
    np.testing.assert_allclose(parts.dictionary, whole.dictionary, atol=1e-9)
    np.testing.assert_allclose(parts.trace.objective, whole.trace.objective)
    assert list(parts.trace.sweep) == list(whole.trace.sweep)


def test_online_sweeps_in_two_parts_are_those_of_one_run_also_after_pickling():
    _, Y = planted(19)
    options = {"code": {"atoms": 2}, "update": "online", "batch": 64}
    whole = ps.learn(Y, 15, sweeps=4, **options)
    half = pickle.loads(pickle.dumps(ps.learn(Y, 15, sweeps=2, **options)))
    np.testing.assert_array_equal(ps.learn(Y, 15, sweeps=2, start=half, **options).dictionary, whole.dictionary)


def test_the_callback_ends_a_run_and_so_does_an_interruption():
    _, Y = planted()
    stopped = ps.learn(Y, 15, code={"atoms": 2}, callback=lambda state: len(state.trace) == 3)
    assert (len(stopped.trace), stopped.status) == (3, Status.CALLBACK)

    def interrupt(state):
        if len(state.trace) == 2:
            raise KeyboardInterrupt

    interrupted = ps.learn(Y, 15, code={"atoms": 2}, callback=interrupt)
    assert (len(interrupted.trace), interrupted.status) == (2, Status.INTERRUPTED)
    assert interrupted.trace.objective[-1] == pytest.approx(objective(interrupted, Y))


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"atoms": 0}, ValueError, "atoms is 0; give an integer of at least 1"),
        ({"atoms": 2.0}, ValueError, "atoms is 2.0; give an integer"),
        ({"code": 5}, TypeError, "code is 5; give a dict of method, atoms"),
        ({"code": {"n_jobs": 2}}, TypeError, "give a dict of method, atoms"),
        ({"code": {}}, ValueError, "atoms and tol are both None"),
        ({"code": {"atoms": [1, 2]}}, ValueError, "atoms of code has shape .*give one number, or one for each row"),
        ({"code": {"method": "lasso"}}, ValueError, "the penalty of code is None"),
        ({"code": {"method": "lasso", "penalty": -1}}, ValueError, "the penalty of code is -1"),
        ({"update": "mod"}, ValueError, "update is 'mod'; give one of 'ksvd', 'block', 'online'"),
        ({"Y": iter([np.ones((2, 3))]), "update": "ksvd"}, ValueError, "needs all signals at once"),
        ({"Y": iter([np.ones((2, 3))]), "sweeps": 2}, ValueError, "sweeps is 2, and Y is an iterator"),
        ({"Y": iter([])}, ValueError, "without batches"),
        ({"Y": [np.ones((2, 3)), np.ones((2, 4))]}, ValueError, "Y has shape"),
        ({"Y": [np.ones((2, 3))], "weights": np.ones((2, 3))}, TypeError, "let each batch be a pair"),
        ({"Y": 5}, TypeError, "Y is 5; give a matrix"),
        ({"Y": np.ones(3)}, ValueError, "Y has shape"),
        ({"Y": np.ones((0, 3))}, ValueError, "give at least one signal"),
        ({"Y": np.array([[1.0, np.nan]])}, ValueError, "Y contains NaN"),
        ({"Y": np.full((2, 3), 1e200)}, ValueError, "bring Y to another scale"),
        ({"Y": np.full((2, 3), 1e-200)}, ValueError, "bring Y to another scale"),
        ({"weights": np.ones(3)}, ValueError, "weights"),
        ({"weights": -np.ones((4, 3))}, ValueError, "negative"),
        ({"sweeps": -1}, ValueError, "sweeps is -1"),
        ({"batch": 0}, ValueError, "batch is 0"),
        ({"forgetting": -1}, ValueError, "forgetting is -1"),
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"callback": 3}, TypeError, "callback is 3"),
        ({"nonnegative": "yes"}, TypeError, "nonnegative is 'yes'"),
        ({"start": "svd"}, ValueError, "start is 'svd'"),
        ({"start": np.ones((2, 2))}, ValueError, "start has shape"),
        ({"start": np.zeros((3, 2))}, ValueError, "column 0 of start is zero"),
        ({"start": np.full((3, 2), np.inf)}, ValueError, "start contains NaN or infinity"),
        ({"start": -np.ones((3, 2)), "nonnegative": True}, ValueError, "start has entries down to -1.0"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence_that_names_them(change, kind, words):
    given = {"Y": np.random.default_rng(0).standard_normal((4, 3)), "atoms": 2, "code": {"atoms": 1}} | change
    with pytest.raises(kind, match=words):
        ps.learn(given.pop("Y"), given.pop("atoms"), **given)


@pytest.mark.parametrize("update", ["ksvd", "online"])
def test_each_signal_may_have_a_tolerance_and_a_number_of_atoms(update, rng):
    Y = rng.standard_normal((300, 10))
    tols, atoms = rng.uniform(0.5, 3.0, 300), rng.integers(1, 5, 300)
    learned = ps.learn(Y, 20, code={"tol": tols}, update=update, sweeps=3, batch=64)
    codes = ps.encode(learned.dictionary, Y, tol=tols)
    assert (np.linalg.norm(Y - codes @ learned.dictionary.T, axis=1) <= tols + 1e-9).all()
    limited = ps.learn(Y, 20, code={"atoms": atoms}, update=update, sweeps=3, batch=64).codes
    assert (np.diff(limited.indptr) <= atoms).all()
    with pytest.raises(ValueError, match="one for each row of a matrix"):
        ps.learn([Y, Y], 20, code={"tol": tols})


def test_many_signals_are_learned_online_by_default_which_ends_lower(rng):
    D = rng.standard_normal((16, 32))
    Y = (rng.standard_normal((3000, 32)) * (rng.random((3000, 32)) < 0.1)) @ D.T
    sizes = {}
    for update in (None, "ksvd"):
        learned = ps.learn(Y, 32, code={"atoms": 3}, update=update, sweeps=5, batch=256)
        sizes[learned.update] = np.linalg.norm(Y - learned.codes @ learned.dictionary.T)
    assert sizes["online"] < sizes["ksvd"]
