"""Greedy and atomic estimators: scikit-learn's manners, and what is claimed about the models themselves."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge, orthogonal_mp
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import pursuit.estimators as E
from pursuit.estimators import (
    AtomicClassifier,
    AtomicClassifierCV,
    AtomicRegressor,
    AtomicRegressorCV,
    GreedyClassifier,
    GreedyClassifierCV,
    GreedyRegressor,
    GreedyRegressorCV,
)
from pursuit.estimators.descent import Descent

pytestmark = pytest.mark.filterwarnings("ignore:.*was the best one")  # two or three levels are few
N, P = 60, 15
SMALL = {
    "AtomicClassifierCV": {"radii": [0.5, 1.0], "cv": 2},
    "AtomicRegressorCV": {"radii": 3, "cv": 2},
    "GreedyClassifierCV": {"max_nonzero": 3, "l2": 0.01, "cv": 2},
    "GreedyRegressorCV": {"max_nonzero": 3, "cv": 2},
}
NAMES = [name for name in E.__all__ if name.startswith(("Greedy", "Atomic"))]
REGRESSORS = [GreedyRegressor(n_nonzero=4), AtomicRegressor(radius=4.0, tol=1e-10)]
CLASSIFIERS = [GreedyClassifier(n_nonzero=4, l2=0.01), AtomicClassifier(radius=4.0, tol=1e-10)]
BALLS = ["l1", "group", "ksupport", "l2", "nuclear"]


def model_of(name):
    return getattr(E, name)(**SMALL.get(name, {}))


def data(rng, classes=None, outputs=None):
    X = rng.standard_normal((N, P)) * np.geomspace(0.1, 10.0, P) + np.arange(P)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    eta = Z[:, [2, 5, 9]] @ np.array([[2.0, -1.0, 0.5], [1.0, 2.0, -2.0], [0.5, 1.0, 2.0]])
    if classes is not None:
        noisy = eta + rng.standard_normal(eta.shape)
        return X, np.array(["a", "b", "c"])[(noisy[:, 0] > 0).astype(int) if classes == 2 else noisy.argmax(axis=1)]
    y = 3.0 + eta + 0.3 * rng.standard_normal(eta.shape)
    return X, y[:, 0] if outputs is None else y[:, :outputs]


def inseparable(rng):
    X, y = data(rng, classes=2)
    return X, np.where(rng.random(N) < 0.2, "a", y)


def small_problem(model, rng):
    return data(rng, classes=2) if hasattr(model, "predict_proba") else data(rng)


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learn_finds_no_fault(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(model_of(name), on_skip=None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("many", [False, True])
def test_sparse_columns_give_the_same_model(name, many, rng):
    model = model_of(name)
    if "tol" in model.get_params() and name.startswith("Atomic"):
        model.set_params(tol=1e-12)
    X, y = data(rng, 3 if many else 2) if "Classifier" in name else data(rng, outputs=3 if many else None)
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    dense, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-4 * np.abs(dense.coef_).max())
    np.testing.assert_array_equal(sparse.predict(sp.csc_matrix(X)).shape, dense.predict(X).shape)


@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=lambda m: type(m).__name__)
def test_units_and_offsets_of_columns_do_not_matter(model, rng):
    X, y = small_problem(model, rng)
    units = np.geomspace(1e-6, 1e6, P)
    plain, scaled = clone(model).fit(X, y), clone(model).fit(X * units - 7.0 * units, y)
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, rtol=1e-4, atol=1e-7)
    assert scaled.predict(X * units - 7.0 * units)[0] == plain.predict(X)[0] or not hasattr(model, "predict_proba")


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_an_atomic_model_may_have_any_size(sparse, rng):
    X, y = data(rng)
    units = 10.0 ** np.linspace(-200, 200, P)
    coefs = [AtomicRegressor(penalty=0.1).fit(sp.csr_array(Z) if sparse else Z, y).coef_ for Z in (X, X * units)]
    np.testing.assert_allclose(coefs[1] * units, coefs[0], atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_constant_and_zero_columns_get_coefficient_zero(name, rng):
    model = model_of(name)
    X, y = small_problem(model, rng)
    X[:, 3], X[:, 7] = 5.0, 0.0
    without = np.delete(X, [3, 7], axis=1)
    fitted, plain = clone(model).fit(X, y), clone(model).fit(without, y)
    coef = np.atleast_2d(fitted.coef_)
    assert (coef[:, [3, 7]] == 0.0).all()
    np.testing.assert_array_equal(fitted.dropped_, [3, 7])
    np.testing.assert_allclose(np.delete(coef, [3, 7], axis=1), np.atleast_2d(plain.coef_), atol=1e-10)
    lonely = clone(model).fit(np.ones((N, 2)), y)
    assert not np.any(lonely.coef_)
    if not hasattr(model, "predict_proba"):
        assert lonely.intercept_ == pytest.approx(y.mean())


LOSSES = [(REGRESSORS, loss) for loss in ("squared_error", "huber", "poisson")] + [(CLASSIFIERS, "log_loss")]


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize(("models", "loss"), LOSSES, ids=[loss for _, loss in LOSSES])
def test_a_weight_is_a_repetition_and_zero_leaves_out(models, loss, greedy, rng):
    model = clone(models[0 if greedy else 1]).set_params(loss=loss)
    X, y = small_problem(model, rng)
    y = rng.poisson(np.exp(0.3 * (X[:, 4] - X[:, 4].mean()) / X[:, 4].std())) if loss == "poisson" else y
    counts = rng.integers(0, 4, N)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_an_offset_is_added_to_the_scores(model, rng):
    X, y = data(rng)
    offset, free = 0.3 * rng.standard_normal(N), X[:, 4] / X[:, 4].std()
    moved = clone(model).fit(X, y + offset, offset=offset)
    np.testing.assert_allclose(moved.coef_, clone(model).fit(X, y).coef_, atol=1e-6)
    np.testing.assert_allclose(moved.predict(X, offset), moved.predict(X) + offset)
    counts = rng.poisson(np.exp(0.3 * free + offset))
    fitted = clone(model).set_params(loss="poisson").fit(X, counts, offset=offset)
    slopes = X.T @ (fitted.predict(X, offset) - counts) / X.std(axis=0)
    used = np.abs(slopes[fitted.coef_ != 0])
    assert abs(np.sum(fitted.predict(X, offset) - counts)) < 1e-3 and used.min() == pytest.approx(used.max(), abs=1e-3)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_class_weights_are_sample_weights(model, rng):
    X, y = data(rng, classes=3)
    weights = {"a": 1.0, "b": 3.0, "c": 0.5}
    by_class = clone(model).set_params(class_weight=weights).fit(X, y)
    by_sample = clone(model).fit(X, y, sample_weight=[weights[label] for label in y])
    np.testing.assert_allclose(by_class.coef_, by_sample.coef_, atol=1e-8)
    np.testing.assert_array_equal(by_class.classes_, ["a", "b", "c"])
    clone(model).set_params(class_weight="balanced").fit(X, y)


def test_names_of_a_frame_are_kept(rng):
    X, y = data(rng, classes=2)
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(P)])
    model = GreedyClassifier(n_nonzero=3).fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(GreedyClassifier().fit(frame.assign(empty=0.0), y).dropped_) == ["empty"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"gene 0": "another"}))


def test_greedy_least_squares_is_orthogonal_matching_pursuit(rng):
    X, y = data(rng)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model = GreedyRegressor(n_nonzero=5).fit(X, y)
    np.testing.assert_allclose(
        model.coef_ * X.std(axis=0), orthogonal_mp(Z, y - y.mean(), n_nonzero_coefs=5), atol=1e-9
    )
    assert [np.count_nonzero(coef) for coef in model.path_.coef[:, 0]] == list(range(6))
    np.testing.assert_array_equal(model.path_.level, range(6))
    assert model.n_iter_ == 5


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_greedy_row_is_the_minimum_over_its_features(classes, sparse, rng):
    X, y = data(rng, classes)
    l2 = 0.02
    model = GreedyClassifier(n_nonzero=4, l2=l2).fit(sp.csr_array(X) if sparse else X, y)
    scale = X.std(axis=0)
    for k in range(1, 5):
        coef = model.path_.coef[k]
        chosen = np.flatnonzero(coef.any(axis=0))
        assert len(chosen) == k
        full = LogisticRegression(C=1.0 / (l2 * N), tol=1e-12, max_iter=10_000).fit(X[:, chosen] / scale[chosen], y)
        np.testing.assert_allclose((coef * scale)[:, chosen], full.coef_, atol=2e-4)


def test_groups_of_features_enter_together(rng):
    X, y = data(rng)
    groups = np.arange(P) // 3
    model = GreedyRegressor(n_nonzero=2, groups=[f"g{g}" for g in groups]).fit(X, y)
    used = np.bincount(groups, model.coef_ != 0)
    assert sorted(used) == [0, 0, 0, 3, 3]
    chosen = model.coef_ != 0
    A = np.column_stack([np.ones(N), X[:, chosen]])
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_[chosen]], np.linalg.lstsq(A, y)[0], atol=1e-8)


def test_positive_models_have_no_negative_coefficient(rng):
    X, y = data(rng)
    for l2 in (0.0, 0.1):
        model = GreedyRegressor(n_nonzero=5, positive=True, l2=l2).fit(X, -y)
        assert (model.coef_ >= 0).all() and model.coef_.any()
    with pytest.raises(ValueError, match="positive=True needs one output"):
        GreedyRegressor(positive=True).fit(X, np.column_stack([y, y]))


def test_several_targets_share_their_features(rng):
    X, y = data(rng, outputs=2)
    model = GreedyRegressor(n_nonzero=3).fit(X, y)
    assert model.coef_.shape == (2, P) and model.predict(X).shape == (N, 2)
    assert (model.coef_ != 0).all(axis=0).sum() == 3 == (model.coef_ != 0).any(axis=0).sum()
    chosen = model.coef_[0] != 0
    A = np.column_stack([np.ones(N), X[:, chosen]])
    np.testing.assert_allclose(model.coef_[:, chosen], np.linalg.lstsq(A, y)[0][1:].T, atol=1e-8)


def test_more_features_than_samples_or_columns_end_early(rng):
    X, y = data(rng)
    full = GreedyRegressor(n_nonzero=100).fit(X[:8], y[:8])
    np.testing.assert_allclose(full.predict(X[:8]), y[:8], atol=1e-5 * np.abs(y).max())
    assert np.count_nonzero(full.coef_) <= 8
    labels = np.where(X[:, 5] > X[:, 5].mean(), "up", "down")
    separated = GreedyClassifier(l2=0.0).fit(X, labels)
    assert separated.score(X, labels) == 1.0
    assert np.isfinite(separated.coef_).all()


def test_tol_ends_the_path(rng):
    X, y = data(rng)
    model = GreedyRegressor(n_nonzero=None, tol=0.1).fit(X, y)
    assert model.score(X, y) >= 0.9
    before = model.path_.value[-2] / model.path_.value[0]
    assert before > 0.1


@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("ball", BALLS)
def test_atomic_models_are_proved_to_be_near_their_minimum(ball, outputs, rng):
    X, y = data(rng, outputs=outputs)
    model = AtomicRegressor(radius=2.0, ball=ball, tol=1e-7).fit(X, y)
    value = 0.5 * np.mean((model.predict(X) - y) ** 2) * (outputs or 1)
    assert 0.0 <= model.dual_gap_ <= 1e-7 * value
    labels = data(rng, classes=3)[1] if outputs else data(rng, classes=2)[1]
    classifier = AtomicClassifier(radius=2.0, ball=ball, tol=1e-5).fit(X, labels)
    assert classifier.dual_gap_ <= 1e-5
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    coef = np.atleast_2d(model.coef_ * X.std(axis=0))
    norms = {"l1": np.abs(coef).sum(), "nuclear": np.linalg.svd(coef)[1].sum(), "l2": np.linalg.norm(coef)}
    norms["group"] = np.linalg.norm(coef, axis=0).sum()
    assert norms.get(ball, 0.0) <= 2.0 * (1.0 + 1e-8)


def test_balls_are_the_lasso_and_the_ridge_by_their_radius(rng):
    X, y = data(rng)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    for ball, other, p in (("l1", Lasso(alpha=0.3, tol=1e-12), 1), ("l2", Ridge(alpha=20.0, tol=1e-12), 2)):
        other.fit(Z, y)
        model = AtomicRegressor(radius=np.linalg.norm(other.coef_, p), ball=ball, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(model.coef_ * X.std(axis=0), other.coef_, atol=1e-5)


def test_groups_of_a_ball_vanish_together(rng):
    X, y = data(rng)
    model = AtomicRegressor(radius=1.5, ball="group", groups=np.arange(P) // 3).fit(X, y)
    used = np.bincount(np.arange(P) // 3, model.coef_ != 0)
    assert set(used) == {0, 3}


def test_cross_validation_chooses_a_size_and_a_radius(rng):
    X, y = data(rng)
    model = GreedyRegressorCV(max_nonzero=10).fit(X, y)
    assert 3 <= model.n_nonzero_ <= 6
    assert model.cv_losses_.shape == (1, 11, 5)
    assert np.count_nonzero(model.coef_) == model.n_nonzero_
    X, labels = data(rng, classes=2)
    greedy = GreedyClassifierCV(max_nonzero=8, l2=(1e-3, 1e-1)).fit(X, labels)
    assert greedy.l2_ in (1e-3, 1e-1) and greedy.cv_losses_.shape == (2, 9, 5)
    mean = greedy.cv_losses_.mean(axis=2)
    assert mean.min() == pytest.approx(mean[[1e-3, 1e-1].index(greedy.l2_), greedy.n_nonzero_], rel=1e-2)
    atomic = AtomicRegressorCV().fit(*data(rng))
    assert atomic.radius_ in atomic.levels_ and len(atomic.levels_) == 21
    assert atomic.score(*data(np.random.default_rng(12345))) > 0.8
    fixed = AtomicClassifierCV(radii=[1.0, 3.0]).fit(X, labels)
    assert fixed.radius_ in (1.0, 3.0) and fixed.dual_gap_ < 1e-3


def test_noise_gets_few_features_and_rare_classes_a_sentence(rng):
    X, y = rng.standard_normal((N, P)), rng.standard_normal(N)
    assert GreedyRegressorCV().fit(X, y).n_nonzero_ <= 2
    labels = np.where(np.arange(N) == 0, "rare", "common")
    with pytest.raises(ValueError, match="no fold has every class"):
        GreedyClassifierCV(cv=[(np.arange(1, N), np.arange(1))]).fit(X, labels)
    assert len(GreedyClassifierCV(cv=5, max_nonzero=2).fit(X, labels).classes_) == 2


def test_two_blobs_with_many_labels_are_told_apart():
    X, y = make_blobs(n_samples=90, centers=4, random_state=0, n_features=5, cluster_std=0.5)
    for kind in (y, y + 10, np.array(["w", "x", "y", "z"])[y], y == 2, y.astype(float)):
        for model in CLASSIFIERS:
            assert clone(model).fit(X, kind).score(X, kind) > 0.95


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda X, y: GreedyRegressor(l2=-1.0).fit(X, y), "l2 is -1.0"),
        (lambda X, y: GreedyRegressor(groups=[1, 2]).fit(X, y), r"groups is \[1, 2\]"),
        (lambda X, y: GreedyRegressor(loss="poisson").fit(X, y - 100.0), "negative values"),
        (lambda X, y: GreedyRegressor().fit(X[:1], y[:1]), "1 sample"),
        (lambda X, y: GreedyRegressor().fit(X, y, sample_weight=np.eye(N)[0]), "leaves 1 sample"),
        (lambda X, y: GreedyClassifier().fit(X, y > -np.inf), "one class"),
        (lambda X, y: GreedyClassifier(loss="hinge").fit(X, y > 3), "loss is 'hinge'; give 'log_loss'"),
        (lambda X, y: GreedyRegressorCV(l2=[0.1, -1.0]).fit(X, y), "l2 is -1.0"),
        (lambda X, y: AtomicRegressor(radius=0.0).fit(X, y), "radius is 0.0"),
        (lambda X, y: AtomicRegressor(ball="ksupport", k=0).fit(X, y), "k is 0"),
        (lambda X, y: AtomicRegressorCV(radii=[0.0, 1.0]).fit(X, y), "radii is"),
        (
            lambda X, y: AtomicRegressor(factors=np.zeros(P)).fit(X, y),
            "give 15 finite numbers, all positive",
        ),
        (lambda X, y: AtomicRegressor(penalty=1.0).fit(X, 1e200 * y), "y has numbers up to .*; divide y by it"),
        (lambda X, y: GreedyRegressor().fit(X, y, offset=[1.0]), r"offset is \[1.0\]; give 60 finite numbers"),
        (
            lambda X, y: GreedyRegressor().fit(X, y).predict(X[:1], [1.0, 2.0]),
            "offset is .*one for each of the 1 samples",
        ),
        (lambda X, y: GreedyClassifier().fit(X, y > 3, offset=y), "give None for classes"),
        (lambda X, y: GreedyRegressorCV().fit(X[:2], y[:2]), "no fold has two samples"),
        (lambda X, y: AtomicRegressorCV(n_jobs=0).fit(X, y), "n_jobs is 0"),
    ],
)
def test_bad_parameters_are_one_helpful_sentence(call, words, rng):
    with pytest.raises(ValueError, match=words):
        call(*data(rng))


@pytest.mark.parametrize("intercept", [False, True])
def test_a_penalised_model_is_the_lasso_of_columns_at_unit_scale(intercept, rng):
    X, y = rng.standard_normal((60, 30)) * np.geomspace(0.1, 10.0, 30) + 1.0, rng.standard_normal(60)
    scale = X.std(axis=0) if intercept else np.sqrt((X**2).mean(axis=0))
    model = AtomicRegressor(penalty=0.1, fit_intercept=intercept, tol=1e-10).fit(X, y)
    lasso = Lasso(alpha=0.1, fit_intercept=intercept, tol=1e-12, max_iter=100_000).fit(X / scale, y)
    np.testing.assert_allclose(model.coef_ * scale, lasso.coef_, atol=1e-6)
    assert model.dual_gap_ <= 1e-9
    prices = np.geomspace(0.5, 2.0, 30)
    priced = AtomicRegressor(penalty=0.1, fit_intercept=intercept, factors=prices, tol=1e-10).fit(X, y)
    lasso.fit(X / (scale * prices), y)
    np.testing.assert_allclose(priced.coef_ * scale * prices, lasso.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="penalty"):
        AtomicRegressor(penalty=-1.0).fit(X, y)


@pytest.mark.parametrize("ratio", [0.3, 0.9])
def test_an_elastic_net_of_columns_as_they_are_is_that_of_scikit_learn(ratio, rng):
    X, y = rng.standard_normal((60, 30)) * np.geomspace(0.3, 3.0, 30) + 1.0, rng.standard_normal(60)
    for data in (X, sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))):
        for a in (0.02, 0.2):
            model = AtomicRegressor(penalty=a * ratio, l2=a * (1 - ratio), standardize=False, tol=1e-10).fit(data, y)
            theirs = ElasticNet(alpha=a, l1_ratio=ratio, tol=1e-12, max_iter=100_000).fit(data, y)
            np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-5)
            assert model.dual_gap_ <= 1e-9


@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson", "log_loss"])
@pytest.mark.parametrize("l2", [0.0, 0.05])
@pytest.mark.parametrize("grouped", [True, False])
def test_descent_finds_the_minimum_that_the_loop_finds(loss, l2, grouped, rng, monkeypatch):
    X, y = data(rng, classes=2 if loss == "log_loss" else None)
    y = rng.poisson(np.exp(0.3 * (y - y.mean()))) if loss == "poisson" else y
    options = {"penalty": 0.05, "l2": l2, "fit_intercept": bool(l2) or grouped, "tol": 1e-9}
    if grouped:
        options |= {"ball": "group", "groups": np.arange(P) % 4}
    model = AtomicClassifier(**options) if loss == "log_loss" else AtomicRegressor(loss=loss, **options)
    fast = clone(model).fit(X, y)
    monkeypatch.setattr("pursuit.native.is_built", lambda: False)
    slow = clone(model).fit(X, y)
    np.testing.assert_allclose(fast.path_.value[-1], slow.path_.value[-1], rtol=1e-8)
    np.testing.assert_allclose(fast.coef_ * X.std(axis=0), slow.coef_ * X.std(axis=0), atol=2e-3)
    assert fast.dual_gap_ <= 1e-9 * max(1.0, abs(fast.path_.value[-1]))


HARD = {
    "copies": lambda X: np.hstack([X[:, :20], X[:, :20], -X[:, :10]]),
    "nearly dependent": lambda X: X[:, :1] + 1e-3 * X,
    "constant columns": lambda X: np.where(np.arange(X.shape[1]) % 3 == 0, 2.0, X),
    "any unit": lambda X: X * np.geomspace(1e-200, 1e200, X.shape[1]),
    "few samples": lambda X: X[:3],
    "rank 2": lambda X: X[:, :2] @ np.cos(np.outer([1.0, 2.0], np.arange(X.shape[1]))),
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("options", [{}, {"l2": 0.05}, {"ball": "group"}], ids=str)
def test_the_kernel_of_paths_finds_the_minima_of_the_plain_loop_on_hard_data(kind, options, rng, monkeypatch):
    X, y = data(rng)
    X = HARD[kind](X)
    y, weights = y[: len(X)], rng.uniform(size=len(X)).round(1) + (np.arange(len(X)) < 3)
    if "ball" in options:
        options = options | {"groups": np.arange(X.shape[1]) % 7 // 2}
    top = AtomicRegressorCV(penalties=2, cv=2, **options)._levels(AtomicRegressor()._samples(X, y, weights))[0]
    levels = list(top * np.geomspace(1.0, 0.05, 12))
    solver = AtomicRegressor(tol=1e-7, **options)._solver(levels, True)
    samples = AtomicRegressor(**options)._samples(X, y, weights)
    fast = samples.path(solver)
    monkeypatch.setattr("pursuit.native.is_built", lambda: False)
    slow = samples.path(solver)
    both = min(len(fast), len(slow))
    np.testing.assert_allclose(fast.value[:both], slow.value[:both], rtol=2e-7)
    assert fast.gap[-1] <= 1e-7 * fast.value[-1]


@pytest.mark.parametrize("options", [{}, {"l2": 0.05}, {"ball": "group", "groups": np.arange(P) // 3}], ids=str)
@pytest.mark.parametrize("radius", [0.3, 2.0, 5.0, 1e3])
@pytest.mark.parametrize("kind", [AtomicRegressor, AtomicClassifier])
def test_the_kernel_reaches_a_radius_as_the_plain_loop_does(kind, radius, options, rng, monkeypatch):
    X, y = inseparable(rng) if kind is AtomicClassifier else data(rng)
    model = kind(radius=radius, tol=1e-8, **options)
    fast = clone(model).fit(X, y)
    monkeypatch.setattr("pursuit.native.is_built", lambda: False)
    slow = clone(model).fit(X, y)
    np.testing.assert_allclose(fast.path_.value[-1], slow.path_.value[-1], rtol=2e-8)
    assert fast.dual_gap_ <= 1e-8 * fast.path_.value[-1]


def test_a_radius_beyond_all_norms_is_no_work(rng):
    X, y = inseparable(rng)
    near, far = (AtomicClassifier(radius=radius).fit(X, y) for radius in (1e3, 1e12))
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-4)
    assert near.dual_gap_ <= 1e-6 * near.path_.value[-1] and far.n_iter_ < 100
    assert far.dual_gap_ < 0.1 * far.path_.value[-1]  # proved in floats: rounding times the radius


def test_penalties_are_chosen_by_cross_validation(rng):
    X, y = data(rng)
    model = AtomicRegressorCV(penalties=12).fit(X, y)
    assert model.levels_[0] == np.inf and (np.diff(model.levels_[1:]) < 0).all() and model.radius_ is None
    assert model.cv_losses_.shape == (1, 13, 5) and model.penalty_ in model.levels_
    np.testing.assert_allclose(AtomicRegressor(penalty=model.penalty_).fit(X, y).coef_, model.coef_, atol=1e-2)
    assert model.score(*data(np.random.default_rng(12345))) > 0.8
    given = AtomicClassifierCV(penalties=[0.001, 0.1, 0.01], cv=2).fit(*data(rng, classes=2))
    np.testing.assert_array_equal(given.levels_, [np.inf, 0.1, 0.01, 0.001])


@pytest.mark.parametrize("ball", ["l1", "group"])
def test_default_radii_are_the_norms_of_a_path_of_penalties(ball, rng):
    X, y = data(rng)
    options = {"ball": ball, "groups": np.arange(P) // 3 if ball == "group" else None, "tol": 1e-7, "cv": 2}
    by_radius = AtomicRegressorCV(radii=6, **options).fit(X, y)
    by_penalty = AtomicRegressorCV(penalties=6, **options).fit(X, y)
    levels = by_penalty.levels_[1:]
    for radius, penalty in zip(by_radius.levels_[1:], levels, strict=True):
        fits = [AtomicRegressor(ball=ball, groups=options["groups"], tol=1e-9, **level).fit(X, y).coef_
                for level in ({"radius": radius}, {"penalty": penalty})]  # fmt: skip
        np.testing.assert_allclose(*fits, atol=1e-3 * np.abs(fits).max())


def test_the_simplest_model_within_one_standard_error_is_no_larger(rng):
    X, y = data(rng)
    for kind in (GreedyRegressorCV(l2=[0.0, 1e-3]), AtomicRegressorCV(penalties=8), AtomicRegressorCV(radii=8)):
        best, simple = (clone(kind).set_params(rule=rule).fit(X, y) for rule in ("min", "1se"))
        assert simple.best_index_ <= best.best_index_
        losses = best.cv_losses_.reshape(-1, 5)
        error = losses[best.best_index_].std(ddof=1) / 5**0.5
        assert losses[simple.best_index_].mean() <= losses[best.best_index_].mean() + error
        assert (losses[: simple.best_index_].mean(axis=1) > losses[best.best_index_].mean() + error).all()
    with pytest.raises(ValueError, match="rule is 'max'"):
        GreedyRegressorCV(rule="max").fit(X, y)
    with pytest.warns(UserWarning, match="not well-defined"), pytest.raises(ValueError, match="scoring='r2' is NaN"):
        GreedyRegressorCV(cv=[(np.arange(50), np.arange(50, 51))], scoring="r2").fit(X, y)


@pytest.mark.parametrize("model", [GreedyClassifierCV(), AtomicClassifierCV(penalties=4)], ids=["greedy", "atomic"])
def test_folds_scores_and_jobs_are_those_of_scikit_learn(model, rng):
    X, y = data(rng, classes=2)
    groups = np.arange(N) // 6
    by_group = clone(model).set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
    listed = clone(model).set_params(cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_array_equal(by_group.cv_losses_, listed.cv_losses_)
    shuffled = clone(model).set_params(random_state=0).fit(X, y)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    np.testing.assert_array_equal(shuffled.cv_losses_, clone(model).set_params(cv=splitter).fit(X, y).cv_losses_)
    np.testing.assert_allclose(
        clone(model).set_params(n_jobs=2).fit(X, y).cv_losses_, clone(model).fit(X, y).cv_losses_
    )
    by_auc = clone(model).set_params(scoring="roc_auc").fit(X, y)
    table = pd.DataFrame(by_auc.cv_results_)
    assert table.mean_test_score.max() == table.mean_test_score[by_auc.best_index_] > 0.9
    assert table.rank_test_score[by_auc.best_index_] == 1 and {"split0_test_score", "std_test_score"} <= set(table)


def test_a_ridge_of_classifiers_fades_as_samples_are_added(rng):
    X = rng.standard_normal((20_000, 3))
    y = rng.random(20_000) < 1 / (1 + np.exp(-3.0 * X[:, 0]))
    assert GreedyClassifier(n_nonzero=1).fit(X, y).coef_[0, 0] == pytest.approx(3.0, abs=0.1)
    assert 0.0 in GreedyClassifierCV(cv=2).fit(X[:200], y[:200]).ridges_


def test_sizes_are_tried_until_the_best_is_far_behind_and_edges_are_told(rng):
    X = rng.standard_normal((300, 60))
    y = X[:, :40] @ rng.choice([-1.0, 1.0], 40) + 0.1 * rng.standard_normal(300)
    model = GreedyRegressorCV().fit(X, y)
    assert 40 <= model.n_nonzero_ < len(model.levels_) - 1
    with pytest.warns(UserWarning, match="largest number of features, 5, was the best one; give a larger max_nonzero"):
        GreedyRegressorCV(max_nonzero=5).fit(X, y)
    with pytest.warns(UserWarning, match="largest of the radii"):
        AtomicRegressorCV(radii=[0.1, 0.2, 0.3], cv=2).fit(X, y)


def test_a_selector_keeps_what_a_greedy_model_chose_inside_a_search(rng):
    X, y = data(rng, classes=2)
    selector = SelectFromModel(GreedyClassifier(n_nonzero=5)).fit(X, y)
    assert selector.get_support().sum() == 5
    steps = make_pipeline(StandardScaler(), SelectFromModel(GreedyClassifier()), LogisticRegression())
    steps.set_output(transform="pandas")
    search = GridSearchCV(steps, {"selectfrommodel__estimator__n_nonzero": [1, 4]}, cv=3, n_jobs=2)
    assert search.fit(pd.DataFrame(X, columns=[f"g{j}" for j in range(P)]), y).best_score_ > 0.8


def test_a_model_tells_its_features_and_other_sizes(rng):
    X, y = data(rng)
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(P)])
    model = GreedyRegressorCV(max_nonzero=8).fit(frame, y)
    assert set(model.features_) == set(frame.columns[model.coef_ != 0])
    text = model.summary()
    assert all(name in text for name in model.features_) and "held-out loss" in text and "5 folds" in text
    for k in range(6):
        small = model.at_size(k)
        assert len(small.features_) == k and small.n_features_in_ == P
        np.testing.assert_allclose(
            small.predict(frame), GreedyRegressor(n_nonzero=k).fit(X, y).predict(X) if k else y.mean()
        )
    many = GreedyClassifier(n_nonzero=2).fit(*data(rng, classes=3))
    assert "at unit scale" in many.summary() and "2 of 15 features" in many.summary()
    assert "proved" in AtomicRegressor(penalty=0.1).fit(X, y).summary()


def test_hulls_too_small_for_atoms_and_tables_without_columns_have_models(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    assert np.abs(E.AtomicRegressor(radius=1e-13).fit(X, y).coef_).max() <= 1e-12
    tiny = E.AtomicRegressor(penalty=0.01e-160, standardize=False).fit(1e-160 * X, y)
    assert np.isfinite(tiny.coef_).all() and tiny.coef_.any()
    assert not E.AtomicRegressorCV(ball="group").fit(np.ones((30, 4)), y).coef_.any()


@pytest.mark.parametrize("how", [{"radius": 3.0}, {"penalty": 0.01}])
def test_a_fit_that_is_interrupted_at_once_does_not_claim_the_gap_of_another_level(how, monkeypatch, rng):
    X = rng.standard_normal((100, 6))
    y = (X[:, 0] > 0).astype(int)
    best = AtomicClassifier(**how).fit(X, y)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Descent, "minimise", interrupted)
    none = AtomicClassifier(**how).fit(X, y)
    assert not none.coef_.any() and none.dual_gap_ > 0.1 > best.dual_gap_
