"""Dictionary learning under scikit-learn's names: objectives, shapes, mini-batches, saved models."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition as theirs
from sklearn.utils.estimator_checks import estimator_checks_generator

import pursuit as ps
from pursuit.estimators import (
    DictionaryLearning,
    MiniBatchDictionaryLearning,
    dict_learning,
    dict_learning_online,
    sparse_encode,
)


def data(samples=200, features=10, seed=0):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((15, features))
    X = sp.random_array((samples, 15), density=0.2, rng=rng, data_sampler=rng.standard_normal) @ D
    return X + 0.05 * rng.standard_normal(X.shape)


def objective(X, code, dictionary, alpha):
    return 0.5 * np.square(X - code @ dictionary).sum() + alpha * np.abs(code).sum()


def lasso_objective(X, dictionary, alpha):
    return objective(X, sparse_encode(X, dictionary, algorithm="lasso_cd", alpha=alpha), dictionary, alpha)


def checks():
    models = DictionaryLearning(max_iter=20), MiniBatchDictionaryLearning(batch_size=20, max_iter=10)
    named = [(type(model).__name__, *pair) for model in models for pair in estimator_checks_generator(model)]
    return [pytest.param(model, check, id=f"{name}-{check.func.__name__}") for name, model, check in named]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("model", "check"), checks())
def test_scikit_learns_checks_pass(model, check):
    check(model)


def test_errors_are_objectives_that_never_rise_and_the_last_is_that_of_the_answer():
    X = data()
    code, dictionary, errors, n_iter = dict_learning(X, 12, alpha=0.3, random_state=0, max_iter=30, return_n_iter=True)
    assert len(errors) == n_iter
    assert (np.diff(errors) <= 1e-12 * errors[0]).all()
    assert errors[-1] == pytest.approx(objective(X, code, dictionary, 0.3))
    np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1.0)


def test_a_run_ends_where_the_objective_falls_by_less_than_tol():
    model = DictionaryLearning(12, alpha=0.3, tol=1e-2, random_state=0).fit(data())
    falls = -np.diff(model.error_) / model.error_[1:]
    assert model.n_iter_ < 1000
    assert falls[-1] < 1e-2 <= falls[:-1].min()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of scikit-learn's classes
def test_objectives_are_not_above_those_of_scikit_learn():
    X, test = data(), data(seed=1)
    ours = DictionaryLearning(12, alpha=0.3, random_state=0, max_iter=50).fit(X)
    other = theirs.DictionaryLearning(12, alpha=0.3, random_state=0, max_iter=50, fit_algorithm="cd").fit(X)
    assert ours.error_[-1] < 1.02 * other.error_[-1]
    options = {"alpha": 0.3, "random_state": 0, "max_iter": 20, "batch_size": 20, "fit_algorithm": "cd"}
    ours, other = (
        cls(12, **options).fit(X) for cls in (MiniBatchDictionaryLearning, theirs.MiniBatchDictionaryLearning)
    )
    assert lasso_objective(test, ours.components_, 0.3) < 1.05 * lasso_objective(test, other.components_, 0.3)


def test_fit_transform_is_fit_then_transform():
    X = data()
    for model in (DictionaryLearning(8, max_iter=3), MiniBatchDictionaryLearning(8, max_iter=3)):
        model.set_params(random_state=0, transform_n_nonzero_coefs=2)
        np.testing.assert_array_equal(model.fit_transform(X), model.fit(X).transform(X))


def test_both_inits_are_a_start_and_one_alone_is_none():
    X = data()
    V = np.random.default_rng(3).standard_normal((8, 10))
    options = {"n_components": 8, "alpha": 0.3, "max_iter": 1, "random_state": 0}
    plain, lone = (dict_learning(X, **options)[1], dict_learning(X, dict_init=V, **options)[1])
    np.testing.assert_array_equal(plain, lone)
    both = dict_learning(X, dict_init=V, code_init=np.zeros((200, 8)), **options)[1]
    assert np.abs(both - plain).max() > 0.1


def test_callbacks_are_called_as_often_as_in_scikit_learn():
    X, iterations, steps = data(), [], []
    DictionaryLearning(8, max_iter=12, tol=0.0, callback=lambda told: iterations.append(told["ii"])).fit(X)
    assert iterations == [0, 5, 10]
    model = MiniBatchDictionaryLearning(8, batch_size=60, max_iter=2, tol=0.0, max_no_improvement=None)
    model.set_params(callback=lambda told: steps.append((told["i"], told["X_batch"].shape))).fit(X)
    assert steps == [(i, (20 if i % 4 == 3 else 60, 10)) for i in range(8)]
    assert (model.n_steps_, model.n_iter_) == (8, 2)


def test_mini_batches_end_where_the_dictionary_or_the_mean_cost_settles():
    X = data()
    by_change = MiniBatchDictionaryLearning(8, batch_size=50, tol=0.05, max_no_improvement=None, random_state=0).fit(X)
    by_cost = MiniBatchDictionaryLearning(8, batch_size=50, tol=0.0, max_no_improvement=2, random_state=0).fit(X)
    assert by_change.n_iter_ < 1000
    assert by_cost.n_iter_ < 1000


def test_partial_fits_of_a_saved_model_go_on_where_it_was(tmp_path):
    X = data()
    model = MiniBatchDictionaryLearning(8, alpha=0.3, random_state=0).partial_fit(X[:100])
    model.save(tmp_path / "m.json")
    loaded = ps.load(tmp_path / "m.json").partial_fit(X[100:])
    np.testing.assert_array_equal(loaded.components_, model.partial_fit(X[100:]).components_)
    assert loaded.n_steps_ == 2


def test_sparse_samples_are_those_of_a_dense_array():
    X = np.where(np.abs(data()) < 0.5, 0.0, data())
    for cls in (DictionaryLearning, MiniBatchDictionaryLearning):
        model = cls(8, max_iter=2, random_state=0, transform_algorithm="threshold")
        np.testing.assert_allclose(model.fit(sp.csr_array(X)).transform(sp.csc_array(X)), model.fit(X).transform(X))


def test_online_codes_are_lasso_codes_on_the_dictionary():
    X = data()
    code, dictionary = dict_learning_online(X, 8, alpha=0.3, max_iter=2, random_state=0)
    np.testing.assert_allclose(code, sparse_encode(X, dictionary, alpha=0.3), atol=1e-9)


@pytest.mark.parametrize("cls", [DictionaryLearning, MiniBatchDictionaryLearning])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"max_iter": None}, "max_iter is None; give an integer of at least 0"),
        ({"tol": None}, "tol is None; give a number of at least 0"),
        ({"positive_code": True}, "Positive constraint not supported for 'lars' coding method."),
    ],
)
def test_wrong_parameters_are_refused_in_a_sentence_that_names_them(cls, change, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cls(**change).fit(data())
