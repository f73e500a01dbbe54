"""The compiled greedy paths equal the plain ones, on every loss and on hard data."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from pursuit.estimators import GreedyClassifier, GreedyClassifierCV, GreedyRegressor, GreedyRegressorCV
from pursuit.estimators.lockstep import Lockstep

LOSSES = ["squared_error", "huber", "poisson", "two classes", "four classes", "two targets", "two huber", "two poisson"]
pytestmark = pytest.mark.filterwarnings("ignore:.*was the best one")


def targets(loss, eta, rng):
    noisy = eta + 0.5 * rng.standard_normal(eta.shape)
    if "classes" in loss:
        return (noisy[:, 0] > 0).astype(int) if loss == "two classes" else noisy.argmax(axis=1)
    if "poisson" in loss:
        noisy = rng.poisson(np.exp(0.4 * eta)).astype(float)
    return noisy[:, :2] if "two" in loss else noisy[:, 0]


def model_of(loss, **how):
    if "classes" in loss:
        return GreedyClassifier(**how)
    return GreedyRegressor(loss=loss.replace("two targets", "squared_error").replace("two ", ""), **how)


class Plain:
    """Within this context, models take the plain path."""

    def __enter__(self):
        self.patch = pytest.MonkeyPatch()
        for kind in (GreedyClassifier, GreedyClassifierCV, GreedyRegressor, GreedyRegressorCV):
            self.patch.setattr(kind, "_plain", True)

    def __exit__(self, *_):
        self.patch.undo()


def problem(loss, rng, n=40, p=12):
    X = rng.standard_normal((n, p)) + 0.6 * rng.standard_normal((n, 1))
    return X, targets(loss, X[:, [1, 4, 7]] @ rng.standard_normal((3, 4)), rng)


def both(model, X, y, **fit):
    compiled = model.fit(X, y, **fit).path_
    with Plain():
        plain = model.fit(X, y, **fit).path_
    return compiled, plain


def assert_same(compiled, plain, rtol=1e-6):
    """The same features at every size, and the same models as far as the plain one is exact."""
    shown = min(len(compiled), len(plain))
    assert shown > 1 or len(compiled) == len(plain)
    for row in range(shown):
        assert set(compiled.used[row]) == set(plain.used[row]), row
        if plain.value[row] > 1e-6 * plain.value[0]:
            np.testing.assert_allclose(compiled.value[row], plain.value[row], rtol=1e-3 * rtol, atol=1e-12)
            largest = np.abs(plain.coef_of(row)).max(initial=1e-300)
            np.testing.assert_allclose(compiled.coef_of(row) / largest, plain.coef_of(row) / largest, atol=rtol)


@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10_000), intercept=st.booleans(), l2=st.sampled_from([1e-3, 0.1]), weighted=st.booleans())
@settings(max_examples=4, deadline=None)
def test_the_kernel_chooses_and_fits_as_the_plain_path_does(loss, seed, intercept, l2, weighted):
    rng = np.random.default_rng(seed)
    X, y = problem(loss, rng)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], len(X)) if weighted else None
    assert_same(*both(model_of(loss, n_nonzero=5, l2=l2, fit_intercept=intercept), X, y, sample_weight=weights))


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_and_dense_columns_and_every_order_in_memory_give_the_same_path(loss, rng):
    X, y = problem(loss, rng)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = model_of(loss, n_nonzero=5, l2=0.01)
    dense = model.fit(X, y).path_
    wide = np.zeros((len(X), 2 * X.shape[1]))
    wide[:, ::2] = X
    for other in (sp.csr_array(X), sp.csc_array(X), np.asfortranarray(X), wide[:, ::2]):
        assert_same(model.fit(other, y).path_, dense)


@pytest.mark.parametrize("loss", LOSSES)
def test_in_float32_the_same_features_are_found(loss, rng):
    X, y = problem(loss, rng)
    X = X.astype(np.float32)
    model = model_of(loss, n_nonzero=4, l2=0.01)
    for data in (X, sp.csr_array(X)):
        assert_same(model.fit(data, y).path_, model.fit(X.astype(float), y).path_, rtol=1e-4)


@pytest.mark.parametrize("loss", ["squared_error", "two classes", "four classes"])
@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_any_size_are_at_unit_scale_first(loss, sparse, rng):
    X, y = problem(loss, rng)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    units = 10.0 ** rng.permutation(np.linspace(-200, 200, X.shape[1]).round())
    model = model_of(loss, n_nonzero=5, l2=0.01)
    plain, scaled = (model.fit(sp.csr_array(Z) if sparse else Z, y).path_ for Z in (X, X * units))
    for row in range(len(plain)):
        assert set(plain.used[row]) == set(scaled.used[row])
        with np.errstate(over="ignore", under="ignore"):
            np.testing.assert_allclose(scaled.coef_of(row) * units, plain.coef_of(row), rtol=1e-7, atol=1e-12)


def hard_data(rng):
    X, y = problem("two classes", rng, n=30)
    yield "separable", np.c_[X, 10.0 * y + 0.1 * rng.standard_normal(30)]
    yield "copies", np.c_[X, X, X[:, :1]]
    yield "collinear", np.c_[X[:, :4], X[:, :2] @ [[1.0], [1.0]], X[:, :3] @ rng.standard_normal((3, 5))]
    yield "nearly collinear", np.c_[X, X + 1e-7 * rng.standard_normal(X.shape)]
    yield "constant", np.c_[np.ones(30), X, np.full(30, 1e9), np.zeros(30)]
    yield "far from zero", X + 1e6
    yield "one sample differs", np.c_[np.eye(30)[:, :3], X[:, :3]]
    yield "one feature", X[:, :1]
    yield "two samples' features", X[:, [1]] * (np.arange(30) < 2)[:, None] + np.zeros((1, 40))


@pytest.mark.parametrize("loss", LOSSES)
def test_on_hard_data_values_are_as_low_as_on_the_plain_path(loss, rng):
    for name, X in hard_data(rng):
        y = targets(loss, (X - X.mean(axis=0))[:, :3] @ rng.standard_normal((min(3, X.shape[1]), 4)), rng)
        if len(np.unique(y)) < (4 if loss == "four classes" else 2):
            continue
        compiled, plain = both(model_of(loss, n_nonzero=6, l2=1e-3), X, y)
        assert np.isfinite(compiled.coef).all(), name
        for row in range(min(len(plain), len(compiled))):
            np.testing.assert_allclose(compiled.value[row], plain.value[row], rtol=1e-5, err_msg=f"{name}, {row}")
        assert (np.diff(compiled.value) <= 1e-12).all(), name


@pytest.mark.parametrize("loss", LOSSES)
def test_without_a_ridge_paths_of_separable_or_exact_data_end(loss, rng):
    X, y = problem(loss, rng, n=12, p=30)
    path = model_of(loss, n_nonzero=None, l2=0.0).fit(X, y).path_
    assert len(path) <= 13 and np.isfinite(path.coef).all()
    assert (np.diff(path.value) <= 1e-12).all()


def test_two_samples_and_one_feature_suffice():
    for X in ([[0.0], [1.0]], [[3.0, 3.0], [3.0, 3.0]], [[0.0, 1.0], [0.0, 1.0]]):
        assert np.isfinite(GreedyRegressor().fit(X, [1.0, 2.0]).coef_).all()
        assert np.isfinite(GreedyClassifier().fit(X, [1, 2]).coef_).all()
    tall = GreedyRegressor(n_nonzero=1).fit(np.arange(1500.0)[:, None], 3.0 * np.arange(1500.0) + 2.0)
    assert tall.coef_[0] == pytest.approx(3.0) and tall.intercept_ == pytest.approx(2.0)


def test_targets_of_any_size_are_fitted(rng):
    X, y = problem("squared_error", rng)
    for size in (1e-200, 1e200):
        for loss in ("squared_error", "huber"):
            with np.errstate(over="ignore"):  # the value of the loss
                plain, scaled = (GreedyRegressor(n_nonzero=4, loss=loss).fit(X, c * y).coef_ for c in (1.0, size))
            np.testing.assert_allclose(scaled / size, plain, atol=1e-9)
    chosen = [GreedyRegressorCV().fit(X, c * y).n_nonzero_ for c in (1e-200, 1.0, 1e200)]
    assert chosen[0] == chosen[1] == chosen[2] > 0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_losses_are_those_of_one_path_for_each_fold(loss, weighted, rng):
    X, y = problem(loss, rng, n=60)
    weights = rng.choice([0.0, 1.0, 3.0], 60) if weighted else None
    single = model_of(loss)
    kind = GreedyClassifierCV if "classes" in loss else GreedyRegressorCV
    model = kind(max_nonzero=4, l2=[1e-3, 0.1], loss=single.loss, cv=3)
    compiled = model.fit(X, y, sample_weight=weights).cv_losses_
    with Plain():
        plain = model.fit(X, y, sample_weight=weights).cv_losses_
    np.testing.assert_allclose(compiled, plain, rtol=2e-3)


def test_any_splitter_may_leave_out_or_repeat_samples(rng):
    X, y = problem("squared_error", rng, n=50)
    folds = [(rng.integers(0, 40, 45), np.arange(40, 50)), (np.arange(10, 50, 2), np.array([1, 3, 5]))]
    model = GreedyRegressorCV(max_nonzero=3, cv=folds)
    compiled = model.fit(X, y).cv_losses_
    with Plain():
        np.testing.assert_allclose(compiled, model.fit(X, y).cv_losses_, rtol=1e-4)


def test_the_number_of_threads_changes_nothing(rng):
    X, y = problem("four classes", rng, n=80, p=300)
    one, two = (GreedyClassifierCV(max_nonzero=5, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.cv_losses_, two.cv_losses_)


@pytest.mark.parametrize("name", ["GreedyRegressor", "GreedyRegressorCV"])
def test_ctrl_c_keeps_the_models_so_far_and_chooses_from_none(name, rng, monkeypatch):
    X, y = problem("squared_error", rng)
    plain = Lockstep.advance

    def advance(self):
        if len(self.losses) == 3:
            raise KeyboardInterrupt
        return plain(self)

    monkeypatch.setattr(Lockstep, "advance", advance)
    if name.endswith("CV"):
        with pytest.raises(KeyboardInterrupt):
            GreedyRegressorCV().fit(X, y)
    else:
        model = GreedyRegressor(n_nonzero=5).fit(X, y)
        assert not model.path_.complete and np.count_nonzero(model.coef_) == 2
