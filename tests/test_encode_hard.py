"""Codes where rounding matters: ties, dependent and nearly parallel atoms, bad scales, tolerances near rounding."""

import numpy as np
import pytest
import scipy.sparse as sp
from codes import DTYPES, METHODS, ChainRun, agree, problem
from plain_codes import pursue

from pursuit import encode
from pursuit.coding import strategies


def given(way, D, Y):
    """An argument that leads a request one way: over the Gram matrix, or from the residuals."""
    return {"gram": D.T @ D} if way == "gram" else {"weights": np.ones_like(Y)}


WAYS = pytest.mark.parametrize("way", ["gram", "weights"])

# ------------------------------------------------------------------------------------------- ties


@pytest.mark.parametrize("method", METHODS)
@WAYS
def test_ties_go_to_the_lowest_index(method, way):
    D = np.tile(np.eye(3), (1, 90))
    Y = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [0.0, 0.0, 3.0], [1.0, 0.0, 1.0]])
    codes = encode(D, Y, atoms=3, method=method, **given(way, D, Y))
    np.testing.assert_array_equal(codes.toarray()[:, :3], Y)
    assert codes.nnz == 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_of_atoms_that_occur_twice_the_first_is_taken(method, dtype, weighted):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d, n = rng.integers(2, 70, 2)
        B, Y = rng.standard_normal((d, n)).astype(dtype), rng.standard_normal((20, d)).astype(dtype)
        copies = B[:, rng.permutation(n)]  # elsewhere in the blocks of a matrix product, which adds up in other orders
        copies *= 1 if method == "nnomp" else rng.choice([-1, 1], n).astype(dtype)
        weights = rng.random(Y.shape).astype(dtype) if weighted else None
        assert encode(np.hstack([B, copies]), Y, atoms=8, method=method, weights=weights).indices.max() < n


@pytest.mark.parametrize("search", ["int16", "float32"])
def test_of_more_equal_atoms_than_are_compared_none_is_preferred_without_proof(search):
    B, Y, _ = problem(0, 200, 12, 15)
    for times, solved in ((16, 200), (17, 0)):
        found = ChainRun(np.tile(B, (1, times)), Y, 1, only=search)
        assert found.counts == {search: solved} and (found.codes.indices < 15).all()


# ------------------------------------------------------------------------------ dependent atoms


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["omp", "ols", "nnomp"])
@WAYS
def test_dependent_atoms_and_more_atoms_than_the_rank_do_no_harm(method, dtype, way):
    rng = np.random.default_rng(6)
    B = rng.standard_normal((10, 4))
    mixed = B @ rng.standard_normal((4, 20)) * np.exp(3 * rng.standard_normal(20))
    D = np.hstack([B, B, 1e3 * B, -B, mixed]).astype(dtype)
    Y = np.vstack([rng.standard_normal((30, 10)), rng.standard_normal((30, 4)) @ B.T]).astype(dtype)
    codes = encode(D, Y, atoms=9, method=method, **given(way, D, Y))
    assert np.isfinite(codes.data).all()
    assert (np.diff(codes.indptr) <= 4).all()
    best = Y @ np.linalg.pinv(B.astype(dtype).T) @ B.T
    if method != "nnomp":
        np.testing.assert_allclose(codes @ D.T, best, atol=2e3 * np.finfo(dtype).eps * np.abs(Y).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["omp", "ols", "nnomp"])
@WAYS
def test_exactly_sparse_signals_get_their_atoms_and_no_more(method, dtype, way):
    rng = np.random.default_rng(7)
    D = rng.standard_normal((60, 80))
    D /= np.linalg.norm(D, axis=0)
    truth = np.zeros((40, 80))
    for row in truth:
        row[rng.choice(80, 3, replace=False)] = rng.uniform(1, 2, 3)
    D = D.astype(dtype)
    Y = (truth @ D.T).astype(dtype)
    codes = encode(D, Y, atoms=20, method=method, **given(way, D, Y))
    exact = np.diff(codes.indptr) == 3
    assert exact.mean() > 0.9  # the others took a wrong atom on their way
    np.testing.assert_allclose(codes.toarray()[exact], truth[exact], atol=1e3 * np.finfo(dtype).eps)
    np.testing.assert_allclose(codes @ D.T, Y, atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["gram", "weights", "plain"])
@pytest.mark.parametrize(("d", "n", "signals"), [(1, 1, 2), (1, 5, 4), (1, 5, 60), (5, 1, 4), (3, 2, 0), (2, 2, 9)])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_smallest_problems_work(method, dtype, way, d, n, signals, layout):
    D, Y, _ = problem(8, signals, d, n, dtype)
    D, Y[:1] = np.array(D, order=layout), 0
    codes = encode(D, Y, atoms=4, method=method, **({} if way == "plain" else given(way, D, Y)))
    assert isinstance(codes, sp.csr_array) and codes.shape == (signals, n) and codes.dtype == dtype
    if method == "ols" and n > d:  # the last atom of a full basis is a tie
        np.testing.assert_allclose(codes @ D.T, Y, atol=1e-5)
    else:
        assert agree(codes, D, Y, 4, method=method) >= 0.9 * signals


@pytest.mark.parametrize(("dtype", "apart"), [(np.float64, 1e-4), (np.float32, 1e-2)])
@pytest.mark.parametrize("method", ["omp", "ols", "nnomp"])
@WAYS
def test_weights_of_nearly_parallel_atoms_keep_their_digits(method, dtype, apart, way):
    rng = np.random.default_rng(21)
    B = np.repeat(rng.standard_normal((40, 6)), 3, axis=1)
    D = (B + apart * rng.standard_normal(B.shape)).astype(dtype)
    Y = (rng.standard_normal((100, 18)) @ D.T / apart**0.5).astype(dtype)
    codes = encode(D, Y, atoms=10, method=method, **given(way, D, Y))
    assert codes.nnz > (900 if method != "nnomp" else 250)
    for i in range(100):
        S = codes[[i]].indices
        A = D[:, S].astype(float)
        best = np.linalg.lstsq(A, Y[i].astype(float), rcond=None)[0]
        tolerance = 100 * np.finfo(dtype).eps * np.linalg.cond(A) * np.abs(best).max()
        np.testing.assert_allclose(codes[[i]].data, best, rtol=0, atol=tolerance)


@pytest.mark.parametrize("shared", [0.0, 1.0, 3.0])
@WAYS
def test_non_negative_weights_are_best_also_where_atoms_leave_and_come_back(shared, way):
    clear = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(4, 9)), int(rng.integers(3, 12))
        D = rng.standard_normal((d, n)) + shared * rng.standard_normal((d, 1)) * rng.choice([-1, 1], n)
        Y = rng.exponential(1, (10, n)) @ D.T + rng.standard_normal((10, d))
        codes = encode(D, Y, atoms=d, method="nnomp", **given(way, D, Y))
        assert (codes.data >= 0).all()
        clear += agree(codes, D, Y, d, method="nnomp")
    assert clear > 400


# ------------------------------------------------------------------------------- close contests


def test_atoms_that_differ_beyond_single_precision_are_told_apart():
    rng = np.random.default_rng(9)
    A, Y = rng.standard_normal((20, 30)), rng.standard_normal((400, 20))
    better = np.repeat(rng.integers(0, 2, 30), 2) ^ np.tile([0, 1], 30)  # of each pair, one is longer by 1e-10
    D = np.repeat(A, 2, axis=1) * (1 + 1e-10 * better)
    codes = encode(D, Y, atoms=5, gram=D.T @ D)
    assert codes.nnz == 2000 and better[codes.indices].all()


@pytest.mark.parametrize(
    ("kind", "shorter"),
    [(np.float64, 10.0**-e) for e in range(2, 13)] + [(np.float32, 10.0**-e) for e in range(2, 5)],
)
def test_a_slightly_shorter_copy_of_an_atom_is_never_chosen(kind, shorter):
    rng = np.random.default_rng(12)
    D, Y = rng.standard_normal((30, 80)).astype(kind), rng.standard_normal((200, 30)).astype(kind)
    codes = encode(np.concatenate([(1 - kind(shorter)) * D, D], axis=1), Y, atoms=8)
    assert (codes.indices >= 80).all() and (np.diff(codes.indptr) == 8).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
@WAYS
def test_no_code_of_nearly_equal_atoms_is_worse_than_none(method, dtype, way):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        (d, n), apart = ((4, 4), (8, 8), (16, 12))[seed % 3], 10.0 ** rng.uniform(-9, 0)
        base, Y = rng.standard_normal((d, n // 2)), rng.standard_normal((4, d)).astype(dtype)
        D = (np.hstack([base, base]) + apart * rng.standard_normal((d, n))).astype(dtype)
        X = encode(D, Y, tol=0.0, method=method, **given(way, D, Y)).toarray()
        size = np.linalg.norm(Y, axis=1) + np.abs(X) @ np.linalg.norm(D, axis=0)
        residual = np.linalg.norm(Y - X.astype(float) @ D.T, axis=1)
        assert (residual <= np.linalg.norm(Y, axis=1) + 10 * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "close", "exact"])
def test_few_signals_with_a_given_gram_matrix_have_the_plain_codes(kind, dtype):
    D, Y, rng = problem(41, 4, 50, 700, dtype)
    if kind == "close":
        D[:, 1::2] = D[:, ::2] * (1 - 10.0 ** (rng.integers(-9, -1, 350) / (1 if dtype == np.float64 else 4))).astype(
            dtype
        )
    if kind == "exact":
        Y = (D[:, :90:10] @ np.ones((9, 4), dtype)).T
    codes = encode(D, Y, atoms=20, gram=D.T @ D)
    least = {np.float64: 4, np.float32: {"random": 3, "close": 2, "exact": 3}[kind]}[dtype]
    assert agree(codes, D, Y, 20) >= least


# --------------------------------------------------------------- tolerances, scales, conditions


@pytest.mark.parametrize(
    ("dtype", "tol"), [(np.float64, 10.0**-e) for e in (3, 5, 7, 9, 11)] + [(np.float32, 10.0**-e) for e in (2, 3, 4)]
)
def test_tolerances_near_rounding_are_told_from_the_residual_itself(tol, dtype):
    rng = np.random.default_rng(4)
    D = rng.standard_normal((30, 60)).astype(dtype)
    Y = encode(D, rng.standard_normal((80, 30)).astype(dtype), atoms=4) @ D.T
    norms, noise = np.linalg.norm(Y, axis=1), rng.standard_normal(Y.shape)
    Y = (Y + tol * norms[:, None] * noise / np.linalg.norm(noise, axis=1)[:, None]).astype(dtype)

    def left(codes):
        return np.linalg.norm(Y - codes.toarray().astype(float) @ D.T.astype(float), axis=1)

    codes = encode(D, Y, tol=0.8 * tol * norms)  # 1 is what the four atoms leave, which a few more have to lower
    counts = np.diff(codes.indptr)
    assert (left(codes) <= (0.8 * tol + 8 * np.finfo(dtype).eps) * norms).all()  # weights are rounded to the dtype
    assert (left(encode(D, Y, atoms=counts - 1)) > 0.8 * tol * norms * (1 - 1e-3)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_atoms_have_their_chance_in_ols_where_squares_underflow(dtype):
    D, Y, _ = problem(37, 10, 8, 20)
    scale = np.where(np.arange(20) % 3, 1.0, 1e-14)
    weights = np.ones_like(Y).astype(dtype)
    codes = encode(D, Y, atoms=4, method="ols")
    small = encode((D * scale).astype(dtype), (1e-8 * Y).astype(dtype), atoms=4, method="ols", weights=weights)
    np.testing.assert_array_equal(codes.indices, small.indices)


def kahan(k, dtype):
    """Kahan's matrix, in which no pivot is small and the condition is enormous, short atoms that do not matter, and a
    signal that takes the atoms one after the other."""
    i, s = np.arange(k), 0.011 ** (0.5 / (k - 1))
    R = s ** i[:, None] * (np.triu(np.full((k, k), -np.sqrt(1 - s * s)), 1) + np.eye(k)) * 0.7**i
    noise = 1e-12 * 0.7**k * np.random.default_rng(0).standard_normal((k, 300))
    return np.hstack([R, noise]).astype(dtype), np.ones((1, k), dtype)


@pytest.mark.parametrize(
    ("strategy", "dtype", "k", "lost"),
    [
        ("int16", np.float64, 40, 1e6),
        ("float32", np.float64, 40, 1e6),
        ("float32", np.float32, 16, 1e5),
        ("single", np.float64, 40, 1e6),
    ],
)
def test_clear_pivots_that_lose_digits_together_are_noticed(monkeypatch, strategy, dtype, k, lost):
    D, Y = kahan(k, dtype)
    if strategy == "single":
        monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    else:
        Y = np.repeat(Y, 300, axis=0)  # or signals count as few
    found = ChainRun(D, Y, k - 4)
    assert found.counts[strategy] == (strategy == "single")  # which refines its weights
    code = found.codes[[0]]
    A = D[:, code.indices].astype(float)
    assert code.nnz == k - 4
    assert (np.abs(A.T @ (Y[0] - A @ code.data)) <= lost * np.finfo(dtype).eps * np.linalg.norm(A, axis=0)).all()
    if dtype == np.float64:
        assert pursue(D, Y[0], k - 4).active == list(code.indices)


def test_ols_of_a_signal_alone_leaves_digits_that_are_lost_to_the_residual(monkeypatch):
    k = 20
    R = kahan(k, np.float64)[0][:, :k] / 0.7 ** np.arange(k)
    D, Y = np.zeros((40, 320)), np.zeros((1, 40))
    D[:k, :k], D[k:, k:] = R, problem(0, 0, 20, 300)[0]  # of which the signal has nothing
    Y[0, :k] = R @ 0.5 ** np.arange(k)
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    found = ChainRun(D, Y, 16, method="ols")
    assert found.counts == {"single": 0, "residuals": 1}
    assert pursue(D, Y[0], 16, method="ols").active == list(found.codes.indices)


@pytest.mark.parametrize("method", ["omp", "ols"])
def test_errors_of_weights_on_nearly_parallel_atoms_do_not_pass_for_correlations(method):
    rng = np.random.default_rng(0)
    a, b = np.array([-1.0, 4, 0, -4]), np.array([-1.0, 3, 0, -3])
    D = np.column_stack([a, b, rng.integers(-3, 4, (4, 10))])[:, :11].astype(float)
    Y, W = np.tile(a - 2 * b, (2000, 1)), rng.exponential(size=(2000, 4))
    codes = encode(D, Y, atoms=3, method=method, weights=W)
    assert agree(codes, D, Y, 3, method=method, weights=W) > 1500


@pytest.mark.parametrize(("share", "clear"), [(0.6, False), (0.1, True)])
def test_an_atom_that_rounding_may_tell_from_another_makes_the_code_of_ols_unclear(share, clear):
    tilt = (share * 16 * 5 * np.finfo(float).eps) ** 0.5  # of an atom beside another one: b = a + tilt e_2
    D = np.array([[1.0, 1.0, 0.0], [0.0, tilt, 0.0], [0.0, 0.0, 1.0]])
    code = pursue(D, np.array([1.0, 0.5, 0.1]), 2, method="ols")
    assert code.active[-1] == 2  # as if a were b, which leaves e_2
    assert (code.lead > 0) == clear
