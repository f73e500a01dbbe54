"""Estimators: scikit-learn's contract and numbers, data frames, sparse input, and bad input told in one sentence."""

import inspect
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.decomposition
from codes import run_python
from sklearn import linear_model as theirs
from sklearn.decomposition import SparseCoder as TheirSparseCoder
from sklearn.decomposition import sparse_encode as their_sparse_encode
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_CHECK_PARAMS
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from pursuit import estimators
from pursuit.estimators import (
    OrthogonalMatchingPursuit,
    OrthogonalMatchingPursuitCV,
    SparseCoder,
    checks,
    orthogonal_mp,
    orthogonal_mp_gram,
    sparse_encode,
)
from pursuit.estimators.base import threads

# ------------------------------------------------------------------------------ scikit-learn's contract

contract = pytest.mark.filterwarnings("default")  # the checks are written for warnings that are no errors


@contract
@parametrize_with_checks([OrthogonalMatchingPursuit(), OrthogonalMatchingPursuitCV(cv=3)])
def test_check_estimator(estimator, check):
    check(estimator)


def coder_checks():
    """As scikit-learn checks its own coder: a check comes with a dictionary of as many features as its data have."""
    special = PER_ESTIMATOR_CHECK_PARAMS[TheirSparseCoder]
    usual = SparseCoder(np.random.default_rng(0).standard_normal((5, 3)))
    for _, check in estimator_checks_generator(usual):
        name = getattr(check, "func", check).__name__
        settings = special.get(name, {})
        for each in settings if isinstance(settings, list) else [settings]:
            yield pytest.param(SparseCoder(**({"dictionary": usual.dictionary} | each)), check, id=name)


@contract
@pytest.mark.parametrize(("estimator", "check"), list(coder_checks()))
def test_check_sparse_coder(estimator, check):
    check(estimator)


def data(seed=0, samples=60, features=30, targets=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, features)) + rng.standard_normal(features)
    Y = X[:, :5] @ rng.standard_normal((5, targets)) + 0.3 * rng.standard_normal((samples, targets)) + 2.0
    return X.astype(dtype), Y.astype(dtype)


def dictionary(seed=0, atoms=12, features=8):
    D = np.random.default_rng(seed).standard_normal((atoms, features))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


# ------------------------------------------------------------------------------ the numbers of scikit-learn


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("setting", [{}, {"n_nonzero_coefs": 7}, {"tol": 9.0}, {"tol": 90.0, "fit_intercept": False}])
def test_omp_has_the_coefficients_of_scikit_learn(seed, setting):
    X, Y = data(seed)
    for y in (Y, Y[:, 0]):
        ours = OrthogonalMatchingPursuit(**setting).fit(X, y)
        other = theirs.OrthogonalMatchingPursuit(**setting).fit(X, y)
        np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-10)
        np.testing.assert_allclose(ours.intercept_, other.intercept_, atol=1e-10)
        np.testing.assert_allclose(ours.predict(X), other.predict(X), atol=1e-10)
        assert ours.n_iter_ == other.n_iter_
        assert ours.n_nonzero_coefs_ == other.n_nonzero_coefs_


@pytest.mark.parametrize("setting", [{}, {"max_iter": 12, "cv": 3}, {"fit_intercept": False}])
def test_cross_validated_omp_has_the_coefficients_of_scikit_learn(setting):
    for seed in range(5):
        X, Y = data(seed)
        ours = OrthogonalMatchingPursuitCV(**setting).fit(X, Y[:, 0])
        other = theirs.OrthogonalMatchingPursuitCV(**setting).fit(X, Y[:, 0])
        assert ours.n_nonzero_coefs_ == other.n_nonzero_coefs_
        np.testing.assert_allclose(ours.coef_, other.coef_, atol=1e-10)


@pytest.mark.parametrize("rank_deficient", [False, True])
@pytest.mark.parametrize("targets", [1, 100])  # few targets use the Gram matrix itself, many a factor of it
@pytest.mark.parametrize("how", [{"n_nonzero_coefs": 6}, {"tol": 30.0}])
def test_a_gram_matrix_gives_what_the_data_give(rank_deficient, targets, how):
    X, Y = data(3, samples=25 if rank_deficient else 60, features=35, targets=targets)
    norms = {"norms_squared": np.square(Y).sum(axis=0)} if "tol" in how else {}
    from_gram, steps = orthogonal_mp_gram(X.T @ X, X.T @ Y, **how, **norms, return_n_iter=True)
    from_data, expected = orthogonal_mp(X, Y, **how, return_n_iter=True)
    np.testing.assert_allclose(from_gram, from_data, atol=1e-9)
    assert steps == expected
    if "tol" in how:  # of one target, the squared norm may be a number
        alone = orthogonal_mp_gram(X.T @ X, X.T @ Y[:, 0], **how, norms_squared=float(norms["norms_squared"][0]))
        np.testing.assert_allclose(alone, from_data if targets == 1 else from_data[:, 0], atol=1e-9)


@pytest.mark.parametrize("targets", [1, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_more_atoms_enter_than_the_rank_of_a_gram_matrix(targets, dtype):
    X, Y = data(3, samples=10, features=35, targets=targets)
    how = {} if targets > 1 else {"return_path": True}  # the one way and the other
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        coef, steps = orthogonal_mp_gram(
            (X.T @ X).astype(dtype), (X.T @ Y).astype(dtype), n_nonzero_coefs=35, return_n_iter=True, **how
        )
    assert np.max(steps) <= 10
    last = coef[:, [-1]] if targets == 1 else coef
    np.testing.assert_allclose(X @ last, Y, atol=1e-6 if dtype == np.float64 else 0.3)


@pytest.mark.parametrize("targets", [1, 40])
def test_a_gram_matrix_of_zero_rank_has_no_atoms(targets):
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        assert not orthogonal_mp_gram(np.zeros((35, 35)), np.zeros((35, targets))).any()


def test_every_step_of_a_path_is_a_pursuit_of_that_size():
    X, Y = data()
    for path in (
        orthogonal_mp(X, Y, n_nonzero_coefs=9, return_path=True),
        orthogonal_mp_gram(X.T @ X, X.T @ Y, n_nonzero_coefs=9, return_path=True),
    ):
        assert path.shape == (30, 4, 9)
        for size in range(1, 10):
            alone = orthogonal_mp(X, Y, n_nonzero_coefs=size)
            np.testing.assert_allclose(path[:, :, size - 1], alone, atol=1e-10)


def test_a_path_that_ends_early_repeats_its_last_step():
    X = np.eye(30) + 0.1
    Y = X[:, [7, 9]] @ np.array([[3.0, 2.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    for path, steps in (
        orthogonal_mp(X, Y, tol=1e-8, return_path=True, return_n_iter=True),
        orthogonal_mp_gram(
            X.T @ X, X.T @ Y, tol=1e-8, norms_squared=np.square(Y).sum(axis=0), return_path=True, return_n_iter=True
        ),
    ):
        assert path.shape == (30, 4, 2) and steps == [1, 2, 0, 0]
        np.testing.assert_allclose(path[7, 0], [3.0, 3.0])
        np.testing.assert_allclose(path[[7, 9], 1, 1], [2.0, 5.0])
        assert not path[:, 2:].any()


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
def test_no_threshold_depends_on_the_units_of_the_data(scale):
    X, Y = data()
    plain = OrthogonalMatchingPursuit(n_nonzero_coefs=5).fit(X, Y)
    scaled = OrthogonalMatchingPursuit(n_nonzero_coefs=5).fit(scale * X, Y)
    np.testing.assert_allclose(scale * scaled.coef_, plain.coef_, rtol=1e-9)
    gram = orthogonal_mp_gram(scale * scale * (X.T @ X), scale * (X.T @ Y), n_nonzero_coefs=5)
    np.testing.assert_allclose(scale * gram, orthogonal_mp(X, Y, n_nonzero_coefs=5), rtol=1e-9)


@pytest.mark.parametrize("algorithm", ["omp", "lars", "threshold"])
def test_codes_are_those_of_scikit_learn(algorithm):
    D, X = dictionary(), np.random.default_rng(1).standard_normal((50, 8))
    how = {"algorithm": algorithm, "n_nonzero_coefs": 3, "alpha": 0.4}
    np.testing.assert_allclose(sparse_encode(X, D, **how), their_sparse_encode(X, D, **how), atol=1e-12)
    with_products = sparse_encode(X, D, gram=D @ D.T, cov=D @ X.T, **how)
    np.testing.assert_allclose(with_products, sparse_encode(X, D, **how), atol=1e-12)
    if algorithm == "threshold":
        how["positive"] = True
        np.testing.assert_allclose(sparse_encode(X, D, **how), their_sparse_encode(X, D, **how), atol=1e-12)


@pytest.mark.parametrize("algorithm", ["lasso_lars", "lasso_cd"])
@pytest.mark.parametrize("positive", [False, True])
def test_lasso_codes_are_those_of_coordinate_descent(algorithm, positive):
    D, X = dictionary(), np.random.default_rng(1).standard_normal((50, 8))  # their lasso_lars is wrong with `positive`
    codes = their_sparse_encode(X, D, algorithm="lasso_cd", alpha=0.2, positive=positive)
    np.testing.assert_allclose(sparse_encode(X, D, algorithm=algorithm, alpha=0.2, positive=positive), codes, atol=1e-6)


def test_zero_atoms_get_coefficient_zero():
    D, X = dictionary(), np.random.default_rng(1).standard_normal((50, 8))
    padded = np.insert(D, [0, 5], 0.0, axis=0)
    codes = sparse_encode(X, padded, algorithm="omp", n_nonzero_coefs=3, gram=padded @ padded.T)
    assert not codes[:, [0, 6]].any()
    expected = sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=3)
    np.testing.assert_allclose(np.delete(codes, [0, 6], axis=1), expected, atol=1e-12)
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        assert not sparse_encode(X, 0 * D, algorithm="omp").any()


# ------------------------------------------------------------------------------ data as they come


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_and_zero_columns_get_coefficient_zero(fit_intercept):
    X, Y = data()
    X[:, 3], X[:, 11] = 0.1, 0.0
    chosen = {"n_nonzero_coefs": 8} if fit_intercept else {"n_nonzero_coefs": 8, "fit_intercept": False}
    coef = OrthogonalMatchingPursuit(**chosen).fit(X, Y).coef_
    assert not coef[:, 11].any()
    assert not (fit_intercept and coef[:, 3].any())
    assert (OrthogonalMatchingPursuitCV(fit_intercept=fit_intercept).fit(X, Y[:, 0]).coef_[11]) == 0


def test_columns_whose_mean_is_rounded_are_constant():
    X, Y = data(samples=49, features=5)
    constants = np.random.default_rng(0).random(100)
    assert (np.full((49, 100), constants).mean(axis=0) != constants).any()
    X = np.hstack([X, np.full((49, 100), constants)])
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=20).fit(X, Y[:, 0] + 1e8)  # whose mean is rounded, too
    assert model.n_iter_ == 5 and not model.coef_[5:].any()


def test_a_constant_target_is_its_mean():
    X, _ = data()
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        model = OrthogonalMatchingPursuit().fit(X, np.full(60, 0.1))
    assert not model.coef_.any() and model.n_iter_ == 0
    np.testing.assert_allclose(model.predict(X), 0.1)
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        model = OrthogonalMatchingPursuitCV().fit(X, np.full(60, 0.1))
    np.testing.assert_allclose(model.predict(X), 0.1)


def test_more_atoms_than_samples_ends_at_the_rank():
    X, Y = data(samples=10)
    with pytest.warns(RuntimeWarning, match="ended prematurely"):
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=30, fit_intercept=False).fit(X, Y[:, 0])
    assert model.n_iter_ == 10
    np.testing.assert_allclose(model.predict(X), Y[:, 0])


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array])
def test_sparse_data_give_the_model_of_dense_data(form):
    X, Y = data()
    X[np.abs(X) < 1] = 0
    for model, y in (
        (OrthogonalMatchingPursuit(n_nonzero_coefs=5), Y),
        (OrthogonalMatchingPursuitCV(), Y[:, 0]),
    ):
        expected = model.fit(X, y).predict(X)
        np.testing.assert_allclose(model.fit(form(X), y).predict(X), expected)
        np.testing.assert_allclose(model.predict(form(X)), expected)
    coder = SparseCoder(dictionary(features=30), transform_n_nonzero_coefs=3)
    codes = coder.fit_transform(form(X))
    np.testing.assert_allclose(codes, coder.fit_transform(X))
    np.testing.assert_allclose(coder.inverse_transform(form(codes)), codes @ coder.dictionary)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("split_sign", [False, True])
def test_frames_come_in_with_names_and_go_out_with_names(library, split_sign):
    frames = pytest.importorskip(library)
    X, Y = data(features=8)
    X[:, 0] = 2 * Y[:, 0]
    names = [f"feature {i}" for i in range(8)]
    frame = pd.DataFrame(X, columns=names) if library == "pandas" else frames.DataFrame(X, schema=names)
    model = OrthogonalMatchingPursuit().fit(frame, Y[:, 0])
    assert list(model.feature_names_in_) == names
    np.testing.assert_allclose(model.predict(frame), Y[:, 0])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[names[::-1]])
    coder = SparseCoder(dictionary(), split_sign=split_sign).set_output(transform=library)
    codes = coder.fit_transform(frame)
    assert isinstance(codes, frames.DataFrame)
    assert list(codes.columns) == [f"sparsecoder{i}" for i in range(24 if split_sign else 12)]
    assert list(codes.columns) == list(coder.get_feature_names_out())
    np.testing.assert_allclose(
        coder.inverse_transform(codes), sparse_encode(X, dictionary(), algorithm="omp") @ dictionary()
    )


def test_split_codes_are_their_positive_and_negative_parts():
    X = np.random.default_rng(0).standard_normal((20, 8))
    codes = SparseCoder(dictionary()).transform(X)
    halves = SparseCoder(dictionary(), split_sign=True).transform(X)
    assert (halves >= 0).all()
    np.testing.assert_array_equal(halves[:, :12] - halves[:, 12:], codes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_stays_float32(dtype):
    X, Y = data(dtype=dtype)
    assert OrthogonalMatchingPursuit().fit(X, Y).coef_.dtype == dtype
    assert OrthogonalMatchingPursuitCV().fit(X, Y[:, 0]).predict(X).dtype == dtype
    assert SparseCoder(dictionary(features=30), split_sign=True).transform(X).dtype == dtype


def test_nothing_is_written_to():
    X, Y = data()
    G, B, D = X.T @ X, X.T @ Y, dictionary(features=30)
    arrays = [X, Y, G, B, D]
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    OrthogonalMatchingPursuit().fit(X, Y)
    OrthogonalMatchingPursuitCV(copy=False).fit(X, Y[:, 0])
    orthogonal_mp(X, Y, n_nonzero_coefs=3, copy_X=False, return_path=True)
    orthogonal_mp_gram(G, B, n_nonzero_coefs=3, copy_Gram=False, copy_Xy=False)
    orthogonal_mp_gram(G, B[:, 0], n_nonzero_coefs=2, copy_Gram=False, copy_Xy=False)
    for algorithm in ("omp", "threshold"):
        sparse_encode(X, D, algorithm=algorithm, copy_cov=False, cov=D @ X.T)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------------------ manners


def test_a_pipeline_searches_parameters():
    X, Y = data()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), OrthogonalMatchingPursuit()),
        {"orthogonalmatchingpursuit__n_nonzero_coefs": [1, 5]},
    ).fit(X, Y)
    assert search.best_params_ == {"orthogonalmatchingpursuit__n_nonzero_coefs": 5}


def test_groups_are_routed_to_the_splitter():
    X, Y = data()
    groups = np.arange(60) // 10
    with sklearn.config_context(enable_metadata_routing=True):
        model = OrthogonalMatchingPursuitCV(cv=GroupKFold(3)).fit(X, Y[:, 0], groups=groups)
    folds = list(GroupKFold(3).split(X, groups=groups))
    np.testing.assert_array_equal(model.coef_, OrthogonalMatchingPursuitCV(cv=folds).fit(X, Y[:, 0]).coef_)
    with pytest.raises(ValueError, match="groups was passed to fit; call sklearn"):
        OrthogonalMatchingPursuitCV(cv=GroupKFold(3)).fit(X, Y[:, 0], groups=groups)


@pytest.mark.parametrize(
    "model", [OrthogonalMatchingPursuit(n_nonzero_coefs=7), OrthogonalMatchingPursuitCV(max_iter=7)]
)
def test_a_model_shows_itself_as_html(model):
    page = model._repr_html_()
    assert type(model).__name__ in page and ">7<" in page


@pytest.mark.parametrize(("n_jobs", "expected"), [(None, None), (1, 1), (-10_000, 1)])
def test_n_jobs_is_that_of_scikit_learn(n_jobs, expected):
    assert threads(n_jobs) == expected
    D, X = dictionary(), np.random.default_rng(1).standard_normal((50, 8))
    codes = sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=3)
    np.testing.assert_array_equal(sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=3, n_jobs=n_jobs), codes)


X, Y = data()
D = dictionary(features=30)
BAD = [
    (lambda: OrthogonalMatchingPursuit(n_nonzero_coefs=31).fit(X, Y), "n_nonzero_coefs is 31; give at most the"),
    (lambda: OrthogonalMatchingPursuitCV(n_jobs=0).fit(X, Y[:, 0]), "n_jobs is 0; give a number of threads"),
    (lambda: orthogonal_mp(X, Y, n_nonzero_coefs=0), "n_nonzero_coefs is 0; give an integer of at least 1, or None"),
    (lambda: orthogonal_mp(X, Y[:5]), "y is ndarray of shape (5, 4); give one row for each of the 60 rows of X"),
    (lambda: orthogonal_mp_gram(X, Y), "Gram is ndarray of shape (60, 30); give X.T @ X, a square matrix"),
    (lambda: orthogonal_mp_gram(-np.eye(60), Y), "Gram is ndarray of shape (60, 60); give X.T @ X, a square matrix"),
    (lambda: orthogonal_mp_gram(np.eye(30), Y), "Xy is ndarray of shape (60, 4); give one row for each of the 30 rows"),
    (lambda: orthogonal_mp_gram(np.eye(60), Y, tol=1.0), "norms_squared is None; give the squared norm of y with tol"),
    (lambda: orthogonal_mp_gram(np.eye(60), Y, tol=1.0, norms_squared=[1.0]), "norms_squared is [1.0]; give 4 numbers"),
    (lambda: sparse_encode(X, D, algorithm="cd"), "algorithm is 'cd'; give one of"),
    (lambda: sparse_encode(X, D, alpha=-1.0), "alpha is -1.0; give a number of at least 0"),
    (lambda: sparse_encode(X, D, max_iter=None), "max_iter is None; give an integer of at least 0"),
    (lambda: sparse_encode(X, D, algorithm="omp", n_nonzero_coefs=13), "n_nonzero_coefs is 13; give at most the"),
    (lambda: sparse_encode(X, D, algorithm="threshold", cov=X @ D.T), "cov is ndarray of shape (60, 12); give"),
    (lambda: sparse_encode(X, D[:, :5], algorithm="omp"), "Dictionary and X have different numbers of features"),
    (lambda: sparse_encode(X, D, algorithm="omp", positive=True), "Positive constraint not supported for 'omp'"),
    (lambda: SparseCoder(D).inverse_transform(X), "X has codes of the wrong number of components. Expected 12, got 30"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_input_is_told_in_one_sentence(call, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as info:
        call()
    assert "\n" not in str(info.value) and str(info.value).endswith(".")


CLASSES = {name: cls for name, cls in vars(estimators).items() if inspect.isclass(cls)}
NOT_CHECKED = {
    "callback", "class_weight", "code_init", "copy", "cv", "dict_init", "dictionary", "groups", "k", "n_jobs",
    "random_state", "verbose",
}  # fmt: skip
"""Read by scikit-learn or NumPy, of no effect, or read where they are used."""
PARAMETERS = [(name, p) for name in CLASSES for p in inspect.signature(CLASSES[name]).parameters]


@pytest.mark.parametrize(("name", "parameter"), [pair for pair in PARAMETERS if pair[1] not in NOT_CHECKED])
def test_every_parameter_that_is_wrong_is_named_with_what_to_give_instead(name, parameter):
    settings = {"dictionary": D} if name == "SparseCoder" else {}
    target = Y[:, 0] > 0 if "Classifier" in name else Y[:, 0]
    with pytest.raises((ValueError, TypeError), match=f"^{parameter} is <object.*>; give .*[.]$"):
        CLASSES[name](**settings, **{parameter: object()}).fit(X, target)


CHECKS = [
    (checks.count, [1, np.int32(5)], [0, 2.5, True, None, "1"]),
    (checks.optional_count, [1, None], [0, 2.5, "1"]),
    (checks.iterations, [0, 3], [-1, 0.5, None]),
    (checks.optional_iterations, [0, None], [-1, 0.5]),
    (checks.amount, [0, 0.5, np.float32(2)], [-1.0, np.inf, np.nan, None, "small"]),
    (checks.optional_amount, [0.0, None], [-1.0, np.inf, np.nan]),
    (checks.positive, [1e-9, 3], [0.0, -1, np.nan, None]),
    (checks.between(-1.0, 1.0), [-1, 0.0, 1.0, None], [-1.1, 2, np.nan, "1"]),
    (checks.between(0.0, np.inf), [0, 1e300], [np.inf, -1]),
    (checks.one_of("auto", True, False), ["auto", True, np.bool_(False)], ["yes", 1, None, np.zeros(2)]),
    (checks.one_of("cd"), ["cd"], ["lars", np.bool_(True)]),
]


@pytest.mark.parametrize(("check", "right", "wrong"), CHECKS)
def test_a_check_passes_what_is_right_and_refuses_what_is_wrong(check, right, wrong):
    for value in right:
        check(value, "name")
    for value in wrong:
        with pytest.raises(ValueError, match=r"^name is .*; give .*[.]$"):
            check(value, "name")


@pytest.mark.parametrize(
    "other",
    [
        theirs.OrthogonalMatchingPursuit,
        theirs.OrthogonalMatchingPursuitCV,
        sklearn.decomposition.SparseCoder,
        sklearn.decomposition.DictionaryLearning,
        sklearn.decomposition.MiniBatchDictionaryLearning,
    ],
)
def test_parameters_and_defaults_are_those_of_scikit_learn(other):
    ours, expected = (
        {name: (p.kind, p.default) for name, p in inspect.signature(cls).parameters.items()}
        for cls in (CLASSES[other.__name__], other)
    )
    assert ours == expected


def test_the_package_does_not_import_scikit_learn():
    assert run_python("import sys, pursuit; print('sklearn' in sys.modules)") == "False"


def test_without_scikit_learn_one_sentence_says_what_to_install():
    code = """
import sys
sys.modules["sklearn"] = None
try:
    import pursuit.estimators
except ImportError as error:
    print(error)
"""
    assert run_python(code) == "pursuit.estimators needs scikit-learn; pip install scikit-learn."
