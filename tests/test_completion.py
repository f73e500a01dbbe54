"""Estimators of low rank: completion of matrices and tensors, components of an exponential family."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import pursuit
from pursuit.estimators import ExponentialFamilyPCA, LowRankCompletion, TensorCompletion
from pursuit.estimators.completion import Biases
from pursuit.estimators.entries import Entries, is_table
from pursuit.estimators.pca import Profile, cumulant, least_losses, solve_rows


def low_rank(rng, m=40, n=30, rank=2, share=0.5, noise=0.0):
    """A matrix of low rank with biases, and the same with NaN where it is not observed."""
    M = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    M += rng.standard_normal((m, 1)) + rng.standard_normal(n) + 3.0
    return M, np.where(rng.random(M.shape) < share, M + noise * rng.standard_normal(M.shape), np.nan)


def table_of(X, rows=None, cols=None):
    """The entries of a NaN array as a table of labels and values."""
    i, j = np.nonzero(~np.isnan(X))
    rows, cols = np.arange(X.shape[0]) if rows is None else rows, np.arange(X.shape[1]) if cols is None else cols
    return pd.DataFrame({"user": np.asarray(rows)[i], "item": np.asarray(cols)[j], "stars": X[i, j]})


# ------------------------------------------------------------------------------ scikit-learn's contract


@pytest.mark.parametrize(
    "model",
    [LowRankCompletion(radius=5.0, damping=5.0, power=0.0), TensorCompletion(), ExponentialFamilyPCA(loss="poisson")],
    ids=repr,
)
def test_check_estimator(model):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        check_estimator(model)


def test_ratings_can_be_cross_validated(rng):
    table = table_of(low_rank(rng, noise=0.1)[1])
    pairs, stars = table[["user", "item"]], table["stars"]
    scores = cross_val_score(LowRankCompletion(random_state=0), pairs, stars, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.min() > 0.7


# ------------------------------------------------------------------------------ one model, many forms of data


def forms(X):
    i, j = np.nonzero(~np.isnan(X))
    coo = sp.coo_array((X[i, j], (i, j)), shape=X.shape)
    table = table_of(X)
    polars = pytest.importorskip("polars")
    return {
        "array": (X,),
        "coo": (coo,),
        "csr": (coo.tocsr(),),
        "csr matrix": (sp.csr_matrix(coo),),
        "table": (table,),
        "table with more": (table.assign(time=range(len(table))),),
        "rows": ([tuple(row) for row in table.to_numpy()],),
        "polars": (polars.from_pandas(table),),
        "labels and values": (table[["user", "item"]], table["stars"]),
        "shuffled": (table.sample(frac=1.0, random_state=0),),
    }


def test_every_form_of_the_same_data_gives_the_same_model(rng):
    X = low_rank(rng, noise=0.1)[1]
    expected = None
    for name, data in forms(X).items():
        model = LowRankCompletion(random_state=0).fit(*data)
        expected = model.toarray() if expected is None else expected
        np.testing.assert_array_equal(model.toarray(), expected, err_msg=name)
        score = model.score(*data)
        assert score > 0.9, name


def test_labels_may_be_strings_and_predictions_are_broadcast(rng):
    X = low_rank(rng, noise=0.1)[1]
    users, items = np.array([f"u{i:02d}" for i in range(40)]), np.arange(30) * 7 - 11
    model = LowRankCompletion(random_state=0).fit(table_of(X, users, items))
    plain = LowRankCompletion(random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(users[:, None], items), plain.toarray())
    assert model.predict("u03", -11).shape == ()
    np.testing.assert_array_equal(model.predict("u03", items), plain.predict(3, np.arange(30)))
    pairs = pd.DataFrame({"user": users[[1, 2]], "item": items[[5, 6]]})
    np.testing.assert_array_equal(model.predict(pairs), plain.predict([1, 2], [5, 6]))
    np.testing.assert_array_equal(model.predict(pairs.assign(stars=0.0)), plain.predict([1, 2], [5, 6]))
    frame = pytest.importorskip("polars").DataFrame({"user": list(users[[1, 2]]), "item": items[[5, 6]]})
    np.testing.assert_array_equal(model.predict(frame), plain.predict([1, 2], [5, 6]))


def test_labels_may_be_booleans(rng):
    pairs, values = np.array([[False, True], [True, True], [True, False]]), np.array([1.0, 2.0, 4.0])
    for model in (LowRankCompletion(rank=1), TensorCompletion(rank=1)):
        fitted = model.set_params(random_state=0).fit(pairs, values)
        np.testing.assert_array_equal(fitted.toarray()[[0, 1, 1], [1, 1, 0]], fitted.predict(pairs))


def test_stored_zeros_are_observed_and_stored_nans_are_not():
    X = sp.csr_array(
        (np.array([0.0, 0.0, 4.0, np.nan]), (np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1]))), shape=(2, 2)
    )
    assert LowRankCompletion(damping=0.0, power=0.0, radius=0.0).fit(X).mean_ == pytest.approx(4.0 / 3.0)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[1, 2, 3.5], [4, 5, 1.0]], True),
        ([["a", "b", 3.0]], True),
        ([["a", "b", np.nan]], True),  # and refused as one
        ([[1.0, 2.0, np.nan], [1.0, 3.0, 2.0]], False),
        ([[0.5, 2.0, 1.0], [1.0, 3.0, 2.0]], False),
        ([[1, 2, 3, 4]], False),
        ([[1, 2]], False),
    ],
)
def test_three_columns_are_a_table_where_the_first_two_are_labels(X, expected):
    assert is_table(np.array(X, dtype=object)) is expected
    if not any(isinstance(v, str) for row in X for v in row):
        assert is_table(np.array(X)) is expected
    frame = pd.DataFrame(X)
    assert is_table(frame) is (expected or len(X[0]) > 3)


def test_repeated_observations_count_as_their_mean_with_their_number_as_weight(rng):
    table = table_of(low_rank(rng, 12, 10, noise=0.3)[1])
    pairs, stars = table[["user", "item"]].to_numpy(), table["stars"].to_numpy()
    count = rng.integers(0, 4, len(stars))
    how = {"random_state": 0, "damping": 2.0, "power": -0.25, "radius": 5.0, "tol": 1e-8}
    repeated = LowRankCompletion(**how).fit(np.repeat(pairs, count, axis=0), np.repeat(stars, count))
    weighted = LowRankCompletion(**how).fit(pairs, stars, sample_weight=count.astype(float))
    np.testing.assert_allclose(weighted.predict(pairs), repeated.predict(pairs), rtol=1e-9)
    spread = LowRankCompletion(**how).fit([("a", "x", 1.0), ("a", "x", 3.0), ("b", "y", 2.0)])
    merged = LowRankCompletion(**how).fit([["a", "x"], ["b", "y"]], [2.0, 2.0], sample_weight=[2.0, 1.0])
    np.testing.assert_array_equal(spread.toarray(), merged.toarray())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_merging_keeps_every_weighted_sum(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    columns, values, weights = (
        [rng.integers(0, 4, n), rng.integers(0, 3, n)],
        rng.standard_normal(n),
        rng.random(n) + 0.1,
    )
    merged = Entries.of_table(columns, values, weights)
    assert len({tuple(place) for place in merged.places.T}) == len(merged.values)
    for mode in (0, 1):
        by_hand = [weights[columns[mode] == label] @ values[columns[mode] == label] for label in merged.labels[mode]]
        np.testing.assert_allclose(merged.sums(mode, merged.values), by_hand, atol=1e-12)
    assert merged.mean == pytest.approx(weights @ values / weights.sum())


# ------------------------------------------------------------------------------ what is fitted


@pytest.mark.parametrize("biases", [True, False])
def test_a_matrix_of_low_rank_is_recovered_without_any_argument(rng, biases):
    M, X = low_rank(rng, 60, 50, rank=2, share=0.5)
    model = LowRankCompletion(biases=biases, random_state=0).fit(X)
    hidden = np.isnan(X)
    assert np.linalg.norm((model.toarray() - M)[hidden]) < 0.03 * np.linalg.norm(M[hidden])


def test_noise_alone_is_left_to_the_biases(rng):
    X = np.where(rng.random((60, 50)) < 0.3, 2.0 + rng.standard_normal((60, 50)), np.nan)
    model = LowRankCompletion(random_state=0).fit(X)
    assert model.rank_ == 0 and model.radius_ == 0.0 and not model.toarray().std() > 0.5


def test_biases_are_ridge_regression(rng):
    X = low_rank(rng, 15, 12, noise=0.5)[1]
    entries = Entries.of_array(X)
    found = Biases.of(entries, 3.0)
    i, j = entries.places
    A = np.zeros((len(i), 27))
    A[np.arange(len(i)), i] = A[np.arange(len(i)), 15 + j] = 1.0
    exact = np.linalg.solve(A.T @ A + 3.0 * np.eye(27), A.T @ (entries.values - entries.values.mean()))
    np.testing.assert_allclose(np.concatenate([found.row, found.column]), exact, atol=1e-3)


@pytest.mark.parametrize("power", [0.0, -0.5])
def test_the_radius_bounds_the_scaled_nuclear_norm_and_the_gap_is_proved(rng, power):
    X = low_rank(rng, noise=0.3)[1]
    entries = Entries.of_array(X)
    values = {}
    for radius in (8.0, 16.0):
        how = {"radius": radius, "damping": 3.0, "power": power, "clip": False}
        exact = LowRankCompletion(tol=1e-7, **how).fit(X)
        rough = LowRankCompletion(tol=0.3, **how).fit(X)
        scale = (exact.counts_[0] / exact.counts_[0].mean()) ** power
        for model in (exact, rough):
            matrix = (model.U_ * model.s_) @ model.V_.T
            assert np.linalg.norm(matrix / scale[:, None], "nuc") <= radius * (1 + 1e-9)
            np.testing.assert_allclose(model.U_.T @ model.U_, np.eye(model.rank_), atol=1e-9)
        assert np.linalg.norm((exact.U_ * exact.s_) @ exact.V_.T / scale[:, None], "nuc") > 0.999 * radius
        value = {
            model: 0.5 * np.sum((model.predict(*entries.places) - entries.values) ** 2) for model in (exact, rough)
        }
        assert -1e-6 * value[exact] <= value[rough] - value[exact] <= rough.dual_gap_
        assert exact.dual_gap_ <= 1.1e-7 * value[exact]
        values[radius] = value[exact]
    assert values[16.0] < values[8.0]


def test_a_rank_bounds_the_rank(rng):
    X = low_rank(rng, noise=0.1)[1]
    for how in ({"rank": 2}, {"rank": 2, "radius": 20.0}):
        assert 1 <= LowRankCompletion(random_state=0, **how).fit(X).rank_ <= 2


def test_predictions_beyond_the_range_are_clipped(rng):
    X = low_rank(rng, noise=0.5)[1]
    free, clipped = (
        LowRankCompletion(rank=5, radius=1e3, clip=clip, damping=3.0, power=0.0).fit(X).toarray()
        for clip in (False, True)
    )
    low, high = np.nanmin(X), np.nanmax(X)
    assert free.max() > high or free.min() < low
    np.testing.assert_array_equal(clipped, np.clip(free, low, high))


@pytest.mark.parametrize("model", [LowRankCompletion(random_state=0), TensorCompletion(random_state=0)], ids=repr)
@pytest.mark.parametrize("scale", [2.0**-600, 2.0**500])
def test_the_units_of_the_data_do_not_matter(rng, model, scale):
    X = low_rank(rng, 10, 8, noise=0.1)[1]
    X = X if isinstance(model, LowRankCompletion) else np.stack([X, 2 * X, X - 1], axis=2)
    plain = model.fit(X).toarray()
    np.testing.assert_array_equal(model.fit(scale * X).toarray(), scale * plain)
    np.testing.assert_array_equal(model.fit(-X).toarray(), -plain)


def test_what_is_given_is_not_chosen_and_what_is_chosen_was_the_best(rng):
    X = low_rank(rng, noise=0.3)[1]
    model = LowRankCompletion(random_state=0).fit(X)
    tried = model.validation_error_
    best = int(np.argmin(tried["error"]))
    assert tried["damping"][best] == model.damping_ and tried["power"][best] == model.power_
    assert tried["error"].min() < tried["error"][tried["level"] == 0].min()
    given_all = LowRankCompletion(radius=9.0, damping=4.0, power=-0.3).fit(X)
    assert (given_all.radius_, given_all.damping_, given_all.power_) == (9.0, 4.0, -0.3)
    assert given_all.validation_error_ == {}


# ------------------------------------------------------------------------------ new labels and hard starts


def test_new_labels_and_empty_rows_fall_back_on_what_is_known(rng):
    X = low_rank(rng, noise=0.2)[1]
    X[7], X[:, 4] = np.nan, np.nan
    model = LowRankCompletion(random_state=0, clip=False).fit(X)
    mean, row, column = model.mean_, model.row_bias_, model.column_bias_
    np.testing.assert_allclose(
        model.predict([7, 7, 99, -1], [3, 4, 3, 4]), [mean + column[3], mean, mean + column[3], mean]
    )
    np.testing.assert_allclose(model.predict(2, [4, 30]), mean + row[2])
    assert not model.U_[7].any() and not model.V_[4].any() and row[7] == 0.0 == column[4]
    alone = LowRankCompletion(biases=False, random_state=0).fit(X)
    assert alone.predict(7, 3) == alone.predict(99, 99) == alone.mean_ == pytest.approx(np.nanmean(X))


@pytest.mark.parametrize("how", [{}, {"biases": False}, {"rank": 2}, {"radius": 1.0}])
def test_hard_starts(how):
    model = LowRankCompletion(random_state=0, **how)
    assert model.fit([("a", "x", 3.0)]).predict("a", "x") == 3.0
    assert model.fit([("a", "x", 3.0)]).predict("b", "y") == 3.0
    constant = np.where(np.random.default_rng(0).random((20, 10)) < 0.5, 4.0, np.nan)
    np.testing.assert_allclose(model.fit(constant).toarray(), 4.0)
    assert not model.fit(np.zeros((5, 4))).toarray().any()
    for one in (np.array([[1.0, 2.0, np.nan, 4.0]]), np.array([[1.0], [np.nan], [3.0], [2.0]])):
        found = model.fit(one).toarray()
        assert found.shape == one.shape and np.isfinite(found).all()


# ------------------------------------------------------------------------------ tensors


def tensor(rng, shape=(10, 9, 8), rank=2):
    return np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((n, rank)) for n in shape))


def test_a_tensor_of_low_rank_is_recovered_without_any_argument(rng):
    T = tensor(rng)
    X = np.where(rng.random(T.shape) < 0.4, T, np.nan)
    model = TensorCompletion(random_state=0, clip=False).fit(X)
    assert model.rank_ == 2 and len(model.validation_error_) == 3
    np.testing.assert_allclose(model.toarray(), T, atol=1e-2)
    where = np.argwhere(~np.isnan(X))
    labels = np.array([f"s{i:02d}" for i in range(10)])
    rows = [(labels[i], j, k, X[i, j, k]) for i, j, k in where]
    table = TensorCompletion(random_state=0, clip=False).fit(rows)
    np.testing.assert_array_equal(
        table.predict(labels[:, None, None], np.arange(9)[:, None], np.arange(8)), model.toarray()
    )
    np.testing.assert_array_equal(table.predict(pd.DataFrame(rows)), model.predict(*where.T))
    new = table.predict("unknown", 3, 5)
    assert new == pytest.approx(table.toarray()[:, 3, 5].mean())
    assert model.score(X) > 0.999


def test_tensors_of_more_modes_and_of_two(rng):
    T = np.einsum("ir,jr,kr,lr->ijkl", *(rng.standard_normal((6, 1)) for _ in range(4)))
    X = np.where(rng.random(T.shape) < 0.4, T, np.nan)
    np.testing.assert_allclose(TensorCompletion(rank=1, clip=False).fit(X).toarray(), T, atol=1e-2)
    M = np.outer(rng.standard_normal(8), rng.standard_normal(7))
    i, j = np.nonzero(rng.random(M.shape) < 0.7)
    matrix = TensorCompletion(rank=1, clip=False).fit(np.stack([i, j], axis=1), M[i, j])
    np.testing.assert_allclose(matrix.toarray(), M, atol=1e-3)


def test_a_ball_of_tensors_is_certified(rng):
    T = tensor(rng) + 0.1 * rng.standard_normal((10, 9, 8))
    model = TensorCompletion(radius=5.0, clip=False).fit(T)
    assert np.abs(model.weights_).sum() <= 5.0 * (1 + 1e-9)
    assert 0.5 * np.sum((model.toarray() - T) ** 2) > model.dual_gap_ > 0


def test_counts_in_a_tensor_have_a_log_link(rng):
    eta = 1.0 + np.einsum("i,j,k->ijk", *(0.8 * rng.standard_normal(n) + 0.5 for n in (10, 9, 8)))
    X = np.where(rng.random(eta.shape) < 0.7, rng.poisson(np.exp(eta)), np.nan)
    model = TensorCompletion(loss="poisson", rank=2).fit(X)
    assert (model.toarray() >= 0).all()
    assert np.corrcoef(np.log(model.toarray() + 0.1).ravel(), eta.ravel())[0, 1] > 0.9


def test_hard_tensors():
    model = TensorCompletion(random_state=0)
    assert model.fit([("a", "x", "p", 3.0)]).predict("a", "x", "p") == pytest.approx(3.0)
    assert not model.fit(np.zeros((2, 3, 2))).toarray().any()
    np.testing.assert_allclose(model.fit(np.full((3, 2, 2), 5.0)).toarray(), 5.0)
    gap = np.full((3, 3, 3), 2.0)
    gap[1] = np.nan
    np.testing.assert_allclose(model.fit(gap).toarray(), 2.0)


# ------------------------------------------------------------------------------ components


def natural(rng, n=50, p=20, rank=2):
    return 0.8 * rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + 0.3 * rng.standard_normal(p)


def observed(loss, theta, rng):
    mean = cumulant(loss, theta)[1]
    draw = {"gaussian": rng.normal, "poisson": rng.poisson, "bernoulli": lambda p: rng.random(p.shape) < p}
    return draw[loss](mean).astype(float)


LOSSES = ["gaussian", "poisson", "bernoulli"]


def test_gaussian_components_are_pca(rng):
    X = natural(rng) + 5.0 + 0.1 * rng.standard_normal((50, 20))
    ours, theirs = ExponentialFamilyPCA(3).fit(X), PCA(3).fit(X)
    np.testing.assert_allclose(np.abs(ours.components_ @ theirs.components_.T), np.eye(3), atol=1e-6)
    np.testing.assert_allclose(ours.offsets_, theirs.mean_)
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_)
    np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-6)
    far = ExponentialFamilyPCA(3).fit(X + 1e7)
    np.testing.assert_allclose(np.abs(far.components_ @ theirs.components_.T), np.eye(3), atol=1e-6)
    reconstructed = ours.inverse_transform(ours.transform(X))
    np.testing.assert_allclose(reconstructed, theirs.inverse_transform(theirs.transform(X)))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_profile_has_its_gradient_and_the_best_offsets(rng, loss):
    Y = observed(loss, natural(rng, 12, 6), rng)
    Y[:2] = [[0.0] * 6, [1.0] * 6]
    Y[rng.random(Y.shape) < 0.2] = np.nan
    f = Profile(loss, Y, 0.05, np.zeros(6))
    X, direction = rng.standard_normal(Y.shape), rng.standard_normal(Y.shape)
    value, grad = f.value_and_grad(X)
    h = 1e-5
    slope = (f.value(X + h * direction) - f.value(X - h * direction)) / (2 * h)
    assert np.vdot(grad, direction) == pytest.approx(slope, rel=1e-6)
    seen = ~np.isnan(Y)

    def loss_at(offsets):
        losses = cumulant(loss, X + offsets)[0] - Y * (X + offsets) - least_losses(loss, Y)
        return np.sum(losses, where=seen) + 0.025 * np.sum(X * X)

    best = f.offsets(X)
    assert value == pytest.approx(loss_at(best))
    for _ in range(5):
        assert loss_at(best + 0.1 * rng.standard_normal(6)) > value
    theta = np.linspace(-9.0, 9.0, 20_001)
    for y in (0.0, 0.3, 1.0):
        losses = cumulant(loss, theta)[0] - y * theta - least_losses(loss, np.array(y))
        assert -1e-12 <= losses.min() < 1e-3


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.floats(0.1, 3.0))
def test_codes_are_minima_from_any_start(seed, loss, size):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((8, 2))
    Y = observed(loss, natural(rng, 6, 8), rng) * (20.0 if loss == "poisson" else 1.0)
    Y[rng.random(Y.shape) < 0.3] = np.nan
    base, ridge = np.zeros(Y.shape), np.array([0.1, 0.2])
    C = solve_rows(loss, Y, D, base, ridge, np.zeros((6, 2)))
    slope = np.where(np.isnan(Y), 0.0, cumulant(loss, C @ D.T)[1] - Y) @ D + ridge * C
    assert np.abs(slope).max() <= 1e-6 * (1 + np.nanmax(np.abs(Y), initial=0.0))
    np.testing.assert_allclose(solve_rows(loss, Y, D, base, ridge, size * rng.standard_normal((6, 2))), C, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("how", [{"n_components": 2}, {"n_components": None, "radius": 25.0}])
def test_the_codes_of_the_data_are_those_of_the_fit(rng, loss, how):
    Y = observed(loss, natural(rng), rng)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    model = ExponentialFamilyPCA(loss=loss, tol=1e-7, **how).fit(Y)
    codes = model.transform(Y)
    np.testing.assert_allclose(np.linalg.norm(codes, axis=0), model.singular_values_, rtol=1e-2, atol=1e-2)
    if "radius" in how:
        assert model.singular_values_.sum() == pytest.approx(25.0) and (model.penalty_ > 0.1).all()
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(len(codes.T)), atol=1e-9)


@pytest.mark.parametrize("loss", ["poisson", "bernoulli"])
def test_hidden_entries_are_predicted_better_than_by_their_columns(rng, loss):
    theta = 2.0 * natural(rng, 100, 40, 1) if loss == "bernoulli" else natural(rng, 100, 40, 1)
    Y = observed(loss, theta, rng)
    hidden = rng.random(Y.shape) < 0.2
    X = np.where(hidden, np.nan, Y)
    model = ExponentialFamilyPCA(1, loss=loss).fit(X)
    mean = model.inverse_transform(model.transform(X))
    truth = cumulant(loss, theta)[1]
    columns = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
    assert np.mean((mean - truth)[hidden] ** 2) < 0.5 * np.mean((columns - truth)[hidden] ** 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_that_say_nothing_have_no_component(rng, loss):
    Y = observed(loss, natural(rng), rng)
    Y[:, 3], Y[:, 5], Y[4] = np.nan, 0.0, np.nan
    if loss == "bernoulli":
        Y[:, 6] = 1.0
    model = ExponentialFamilyPCA(2, loss=loss).fit(Y)
    assert not model.components_[:, [3] if loss == "gaussian" else [3, 5]].any()
    codes = model.transform(Y)
    assert not codes[4].any() and np.isfinite(codes).all()
    means = model.inverse_transform(codes)
    assert np.isfinite(means).all() and np.abs(means[:, 5]).max() < 0.1
    if loss == "bernoulli":
        assert means[:, 6].min() > 0.9
    constant = ExponentialFamilyPCA(2).fit(np.full((7, 3), 0.1))
    assert constant.components_.shape == (0, 3)
    np.testing.assert_allclose(constant.inverse_transform(constant.transform(np.full((7, 3), 0.1))), 0.1)
    nothing = ExponentialFamilyPCA(2, loss=loss).fit(np.full((4, 3), np.nan))
    assert nothing.transform(np.full((4, 3), np.nan)).shape == (4, 0)


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**500])
def test_gaussian_components_do_not_depend_on_units(rng, scale):
    X = natural(rng) + 1.0
    plain, scaled = ExponentialFamilyPCA(2).fit(X), ExponentialFamilyPCA(2).fit(scale * X)
    np.testing.assert_array_equal(scaled.components_, plain.components_)
    np.testing.assert_array_equal(scaled.offsets_, scale * plain.offsets_)


def test_names_come_out(rng):
    frame = pd.DataFrame(natural(rng), columns=[f"gene {i}" for i in range(20)])
    codes = ExponentialFamilyPCA(2).set_output(transform="pandas").fit_transform(frame)
    assert list(codes.columns) == ["exponentialfamilypca0", "exponentialfamilypca1"]


# ------------------------------------------------------------------------------ manners


@pytest.mark.parametrize("labels", ["strings", "numbers"])
def test_a_saved_model_predicts_the_same(rng, labels, tmp_path):
    X = low_rank(rng, noise=0.2)[1]
    names = [f"ä{i}" for i in range(40)] if labels == "strings" else None
    model = LowRankCompletion(random_state=0).fit(table_of(X, names))
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(pursuit.load(tmp_path / "m.json").toarray(), model.toarray())


def test_nothing_is_written_to(rng):
    X = low_rank(rng)[1]
    counts = rng.poisson(1.0, (20, 10)).astype(float)
    before = X.copy(), counts.copy()
    X.setflags(write=False)
    counts.setflags(write=False)
    LowRankCompletion(random_state=0).fit(X)
    ExponentialFamilyPCA(1, loss="poisson").fit_transform(counts)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(counts, before[1])


L, T, P = LowRankCompletion, TensorCompletion, ExponentialFamilyPCA
TABLE = [("a", "x", 1.0), ("b", "x", 2.0), ("b", "y", 4.0)]
CUBE = np.arange(8.0).reshape(2, 2, 2)
BAD = [
    (lambda: L(radius=np.inf).fit(TABLE), "radius is inf; give a number"),
    (lambda: L(power=2.0).fit(TABLE), "power is 2.0; give a number from -1 to 1"),
    (lambda: L(validation=1.0).fit(TABLE), "validation is 1.0; give a share of the entries"),
    (lambda: L().fit(np.full((3, 2), np.nan)), "X has no observed entry"),
    (lambda: L().fit([("a", "x"), ("b", "y")]), "X holds strings; give a table of row labels"),
    (lambda: L().fit([("a", "x", 1.0), (1, "x", 2.0)]), "column 0 of X holds 1; each argument must be a string or"),
    (lambda: L().fit([("a", None, 1.0)]), "column 1 of X holds None; each argument must be a string or a number"),
    (lambda: L().fit([("a", "x", 1.0), ("b",)]), "X has rows of different lengths"),
    (lambda: L().fit([("a", "x", np.nan)]), "Input y contains NaN."),
    (lambda: L().fit(np.eye(4), sample_weight=[1, 1, 1]), "sample_weight is [1, 1, 1]; give None, as X is no table"),
    (lambda: L().fit(TABLE, sample_weight=[0, 0, 0]), "Sample weights must contain at least one non-zero"),
    (lambda: L().fit(TABLE).predict([1, 2], ["x", "y"]), "argument 1 has labels that are numbers, and those of fit"),
    (lambda: L().fit(np.eye(4)).predict(["a"], [0]), "argument 1 has labels that are strings, and those of fit are"),
    (lambda: L().fit(TABLE).predict(["a", "b"], ["x", "y", "x"]), "the labels have shapes (2,) and (3,); give one of"),
    (lambda: T(radius=0.0).fit(CUBE), "radius is 0.0; give a positive number, or None"),
    (lambda: T(loss="poisson").fit(-CUBE), "the values are negative for some entries; loss='poisson' needs"),
    (lambda: T().fit(np.full((2, 2, 2), np.inf)), "X contains infinity; give numbers, and NaN where"),
    (lambda: T().fit(np.full((2, 2, 2), "a")), "X has dtype <U1; give an array of real numbers"),
    (lambda: T(rank=1).fit(CUBE).predict(0, 1), "predict has 2 arguments; give one table, or 3 lists of labels"),
    (lambda: P(n_components=None).fit(np.eye(3)), "radius is None; give a positive number, or None with n_components"),
    (lambda: P(tol=1.0).fit(np.eye(3)), "tol is 1.0; give a number between 0 and 1"),
    (lambda: P(loss="poisson").fit(-np.eye(3)), "Negative values in data passed to ExponentialFamilyPCA"),
    (lambda: P(loss="bernoulli").fit(2 * np.eye(3)), "X holds values from 0 to 2; loss='bernoulli' needs numbers from"),
    (lambda: P(1).fit(np.eye(3)).inverse_transform(np.eye(3)), "X is ndarray of shape (3, 3); give 1 columns, one per"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_is_told_in_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as info:
        call()
    assert "\n" not in str(info.value) and str(info.value).endswith(".")


def test_a_pivoted_table_keeps_its_labels_and_a_new_row_needs_no_new_fit(rng):
    rows, columns = [f"u{i}" for i in rng.permutation(60)], [f"f{j}" for j in rng.permutation(30)]
    U, V = rng.standard_normal((61, 2)), rng.standard_normal((30, 2))
    whole = 3.0 + U @ V.T
    seen = rng.random((60, 30)) < 0.6
    pivoted = pd.DataFrame(np.where(seen, whole[:60], np.nan), index=rows, columns=columns)
    model = LowRankCompletion(random_state=0).fit(pivoted)
    table = pivoted.stack().dropna().reset_index()
    again = LowRankCompletion(random_state=0).fit(table.iloc[:, :2], table.iloc[:, 2])
    np.testing.assert_allclose(model.predict("u3", columns), again.predict("u3", columns))
    i = rows.index("u3")
    best = model.recommend("u3", 30)
    assert set(best) == {c for c, known in zip(columns, seen[i], strict=True) if not known}
    assert (np.diff(model.predict("u3", best)) <= 0).all() and len(model.recommend("u3", 2)) == 2
    assert len(model.recommend("a new user", 5)) == 5
    known = rng.choice(30, 15, replace=False)
    predicted = model.fold_in(np.array(columns)[known], whole[60, known])
    assert np.abs(predicted - whole[60, np.argsort(columns)]).mean() < 0.2 * whole[60].std()
    assert model.fold_in([], []).shape == (30,)
    with pytest.raises(ValueError, match="n is 0"):
        model.recommend("u3", 0)
