"""`encode` with "lasso" and "nnls": the minimum, to rounding, and gaps that are proved."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from codes import problem, run_python
from plain_codes import lasso

from pursuit import encode

DICTIONARIES = {
    "random": lambda rng, d, n: rng.standard_normal((d, n)) * np.exp(0.5 * rng.standard_normal(n)),
    "non-negative": lambda rng, d, n: np.abs(rng.standard_normal((d, n))),
    "coherent": lambda rng, d, n: rng.standard_normal((d, 1)) + 1e-3 * rng.standard_normal((d, n)),
    "nearly parallel": lambda rng, d, n: np.abs(rng.standard_normal((d, 1))) + 1e-5 * rng.random((d, n)),
    "almost one atom": lambda rng, d, n: rng.standard_normal((d, 1)) + 1e-6 * rng.standard_normal((d, n)),
    "of low rank": lambda rng, d, n: rng.standard_normal((d, d // 2)) @ rng.standard_normal((d // 2, n)),
    "with copies": lambda rng, d, n: rng.standard_normal((d, n))[:, rng.integers(0, n, n)] * rng.choice([-1, 1], n),
    "of whole numbers": lambda rng, d, n: np.rint(rng.standard_normal((d, n))) + np.eye(d, n),
    "smooth": lambda _, d, n: np.cos(np.outer(np.arange(d) + 0.5, np.linspace(0.0, 2.0, n))) + 1e-3,
}
SHAPES = [(20, 50), (20, 12), (1, 7)]


def dictionary(kind, shape, seed):
    rng = np.random.default_rng([seed, *shape])
    D = DICTIONARIES[kind](rng, *shape)
    D[0, (D == 0).all(axis=0)] = 1.0
    return D, rng


def objective(D, Y, codes, penalty, weights=1.0):
    x = codes.toarray().astype(float)
    known = np.where(np.broadcast_to(weights, Y.shape) > 0, Y, 0.0)
    return 0.5 * (weights * np.square(known - x @ D.T)).sum(axis=1) + penalty * np.abs(x).sum(axis=1)


def violations(D, Y, codes, penalty, positive):
    """How far each signal is from the conditions of its minimum, relative to the sizes of the terms."""
    x = codes.toarray()
    norms = np.linalg.norm(D, axis=0)
    c, size = (Y - x @ D.T) @ D, np.linalg.norm(Y, axis=1) + np.abs(x) @ norms
    beyond = (c if positive else np.abs(c)) - penalty[:, None]
    off = np.where(x != 0, np.abs(c - np.sign(x) * penalty[:, None]), np.maximum(beyond, 0.0))
    return (off / norms).max(axis=1) / size


# -------------------------------------------------------------------------------------- the minimum


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", DICTIONARIES)
@pytest.mark.parametrize("positive", [False, True])
def test_lasso_codes_meet_the_conditions_of_the_minimum(kind, shape, positive):
    D, rng = dictionary(kind, shape, 1)
    Y = rng.standard_normal((40, shape[0])) * np.exp(rng.standard_normal((40, 1)))
    penalty = np.abs(Y @ D).max(axis=1) * 10.0 ** rng.uniform(-3.0, 0.1, 40)
    codes = encode(D, Y, method="lasso", penalty=penalty, positive=positive)
    assert violations(D, Y, codes, penalty, positive).max() < 1e-13
    assert (np.diff(codes.indptr) <= np.linalg.matrix_rank(D)).all()
    assert not positive or (codes.data > 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", DICTIONARIES)
def test_nnls_codes_have_the_residuals_of_scipy(kind, shape):
    D, rng = dictionary(kind, shape, 2)
    Y = rng.standard_normal((40, shape[0])) + rng.choice([0.0, 1.0])
    codes = encode(D, Y, method="nnls")
    assert (codes.data > 0).all()
    found = np.linalg.norm(Y - codes @ D.T, axis=1)
    others = [scipy.optimize.nnls(D, y)[1] for y in Y]
    np.testing.assert_allclose(found**2, np.square(others), rtol=0, atol=1e-13 * np.square(Y).sum(axis=1).max())


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("way", ["gram", "few", "weights", "missing"])
def test_lasso_codes_are_those_of_the_plain_method(way, positive):
    D, Y, rng = problem(4, 2 if way == "few" else 60, 20, 45)
    penalty, weights = np.exp(rng.standard_normal(len(Y))), None
    if way == "weights":
        weights = rng.exponential(size=Y.shape) * np.exp(5.0 * rng.standard_normal((len(Y), 1)))
    if way == "missing":
        weights = (rng.random(Y.shape) < 0.7).astype(float)
        Y[weights == 0] = np.nan
    codes = encode(D, Y, method="lasso", penalty=penalty, positive=positive, weights=weights).toarray()
    for i, y in enumerate(Y):
        x = lasso(D, y, penalty[i], positive, None if weights is None else weights[i])
        np.testing.assert_allclose(codes[i], x, atol=1e-11 * np.abs(x).max(initial=1.0))


def test_a_penalty_at_the_largest_correlation_leaves_no_atom():
    D, Y, _ = problem(6, 50, 16, 30)
    top = np.abs(Y @ D).max(axis=1)
    assert encode(D, Y, method="lasso", penalty=1.0001 * top).nnz == 0
    assert (np.diff(encode(D, Y, method="lasso", penalty=0.999 * top).indptr) > 0).all()


# ------------------------------------------------------------------------------ dependent and copied atoms


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("positive", [False, True])
def test_hundreds_of_atoms_of_the_same_slope_all_enter(positive, dtype):
    Y = np.random.default_rng(6).choice([-1.0, 1.0], (5, 200)).astype(dtype)
    codes = encode(np.eye(200, dtype=dtype), Y, method="lasso", penalty=0.25, positive=positive).toarray()
    np.testing.assert_array_equal(codes, np.where(Y > 0, 0.75, 0.0 if positive else -0.75))


def test_an_atom_replaces_a_dependent_combination_that_is_longer():
    D = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.9]])  # the third takes the place of 0.9 of both, at half the price
    codes, gaps = encode(D, np.array([[3.0, 2.9]] * 20), method="lasso", penalty=0.1, gaps=True)
    assert codes.indices[:2].tolist() == [0, 2]
    assert gaps.max() < 1e-14


@pytest.mark.parametrize("method", ["lasso", "nnls"])
def test_copies_of_an_atom_do_not_enter_together(method):
    D, Y, _ = problem(8, 100, 12, 20)
    twice = np.hstack([D, D, -D] if method == "lasso" else [D, 2 * D])
    call = {"method": method, **({"penalty": 0.3} if method == "lasso" else {})}
    codes, once = encode(twice, Y, **call), encode(D, Y, **call)
    np.testing.assert_allclose(codes @ twice.T, once @ D.T, atol=1e-11)
    assert (np.diff(codes.indptr) <= 12).all()


# ------------------------------------------------------------------------------------------- gaps


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", DICTIONARIES)
@pytest.mark.parametrize("call", ["lasso", "positive", "nnls"])
def test_gaps_are_bounds_and_small(call, kind, weighted):
    D, rng = dictionary(kind, (20, 50), 9)
    Y = rng.standard_normal((30, 20))
    weights = rng.exponential(size=Y.shape) if weighted else None
    w = 1.0 if weights is None else weights
    penalty = 0.0 if call == "nnls" else 0.05 * np.abs((w * Y) @ D).max(axis=1)
    arguments = {"method": "nnls"} if call == "nnls" else {"method": "lasso", "penalty": penalty}
    codes, gaps = encode(D, Y, weights=weights, gaps=True, positive=call == "positive", **arguments)
    value = objective(D, Y, codes, penalty, w)
    least = [
        objective(D, y[None], sp.csr_array(x[None]), p, v)[0]
        for y, p, v in zip(Y, np.broadcast_to(penalty, 30), np.broadcast_to(w, Y.shape), strict=True)
        for x in [lasso(D, y, float(p), call != "lasso", v)]
    ]
    assert (value - least <= gaps + 1e-15 * value).all()
    proved = call != "nnls" or kind in ("random", "non-negative", "nearly parallel")
    assert not proved or (gaps <= 1e-8 * 0.5 * (w * np.square(Y)).sum(axis=1)).all()


def test_the_gap_of_a_rounded_code_covers_its_rounding():
    D, Y, _ = problem(10, 200, 20, 50)
    exact, rounded = (
        encode(D, Y, method="lasso", penalty=0.5),
        encode(D.astype(np.float32), Y.astype(np.float32), method="lasso", penalty=0.5, gaps=True),
    )
    D4, Y4 = D.astype(np.float32).astype(float), Y.astype(np.float32).astype(float)
    least = objective(D4, Y4, encode(D4, Y4, method="lasso", penalty=0.5), 0.5)
    assert rounded[0].dtype == np.float32 and exact.dtype == np.float64
    assert (objective(D4, Y4, rounded[0], 0.5) - least <= rounded[1]).all()
    assert (rounded[1] <= 1e-5 * least).all()


# ---------------------------------------------------------------------------------------- interface


def test_signals_of_zeros_and_no_signals_at_all_have_empty_codes():
    D, Y, _ = problem(13, 3, 8, 12)
    Y[1] = 0.0
    codes, gaps = encode(D, Y, method="nnls", gaps=True)
    assert codes[[1]].nnz == 0
    assert gaps[1] == 0.0
    codes, gaps = encode(D, Y[:0], method="lasso", penalty=1.0, gaps=True)
    assert codes.shape == (0, 12)
    assert gaps.shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"method": "lasso"}, "penalty is None"),
        ({"method": "lasso", "penalty": -1.0}, "penalty is negative"),
        ({"method": "lasso", "penalty": np.nan}, "penalty is negative or not finite"),
        ({"method": "lasso", "penalty": [1.0, 2.0]}, "penalty has shape"),
        ({"method": "lasso", "penalty": 1.0, "atoms": 3}, "atoms and tol do not belong to"),
        ({"method": "nnls", "tol": 0.1}, "atoms and tol do not belong to"),
        ({"method": "nnls", "penalty": 1.0}, "penalty belongs to method='lasso'"),
        ({"atoms": 3, "penalty": 1.0}, "penalty belongs to method='lasso'"),
        ({"atoms": 3, "positive": True}, "positive=True belongs to method='lasso'"),
        ({"atoms": 3, "gaps": True}, "gaps belong to"),
    ],
)
def test_arguments_of_other_methods_are_refused(arguments, word):
    D, Y, _ = problem(14, 5, 8, 12)
    with pytest.raises(ValueError, match=word):
        encode(D, Y, **arguments)


@pytest.mark.parametrize("level", ["v2", "v3"])
def test_older_processors_find_the_same_codes(level):
    printed = run_python(
        "import numpy as np\nfrom codes import problem\nfrom pursuit import encode\n"
        "D, Y, _ = problem(15, 40, 20, 50)\n"
        "print(repr(float(encode(D, Y, method='lasso', penalty=0.5).sum())))",
        PURSUIT_LEVEL=level,
    )
    D, Y, _ = problem(15, 40, 20, 50)
    assert float(printed) == pytest.approx(float(encode(D, Y, method="lasso", penalty=0.5).sum()), rel=1e-11)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nnls_over_a_rank_deficient_dictionary_stays_within_its_arrays(dtype, weighted):
    """Atoms that became dependent leave all at once; then more members wait than may enter together."""
    rng = np.random.default_rng(1)
    D = (rng.random((30, 15)) @ rng.random((15, 200))).astype(dtype)
    D /= np.linalg.norm(D, axis=0)
    Y = (rng.random((400, 200)) @ D.T / 200).astype(dtype)
    weights = (rng.random(Y.shape) < 0.7).astype(dtype) if weighted else None
    codes = encode(D, Y, method="nnls", weights=weights).toarray()
    assert codes.min() >= 0
    root = np.ones_like(Y) if weights is None else np.sqrt(weights)
    best = [scipy.optimize.nnls(np.float64(r[:, None] * D), np.float64(r * y))[1] for r, y in zip(root, Y, strict=True)]
    errors = np.linalg.norm(root * (Y - codes @ D.T), axis=1)
    np.testing.assert_allclose(errors, best, atol=1e-9 if dtype == "float64" else 2e-4)
