"""Codes of many signals at once are those of the plain pursuit, one signal at a time."""

import numpy as np
import pytest
from codes import DTYPES, METHODS, agree, problem
from plain_codes import pursue
from scipy.optimize import nnls

from pursuit import encode

# ---------------------------------------------------------------------- the plain pursuit itself


def test_the_merit_of_ols_is_the_decrease_after_a_refit_with_each_atom():
    D, Y, _ = problem(0, 20, 8, 15)
    for y in Y:
        active = []
        for _ in range(4):
            left = [refit_error(D, y, [*active, j]) if j not in active else np.inf for j in range(15)]
            active.append(int(np.argmin(left)))
            assert pursue(D, y, len(active), method="ols").active == sorted(active)


def refit_error(D, y, active):
    return np.linalg.norm(y - D[:, active] @ np.linalg.lstsq(D[:, active], y, rcond=None)[0])


def test_the_plain_pursuit_takes_the_atoms_it_says_and_fits_them_best():
    D, Y, _ = problem(1, 30, 10, 25)
    for y in Y:
        omp = pursue(D, y, 3)
        assert int(np.argmax(np.abs(D.T @ y))) in omp.active and len(omp.active) == 3
        assert np.abs(D[:, omp.active].T @ (y - D @ omp.x)).max() < 1e-12
        nonnegative = pursue(D, y, 10, method="nnomp")
        expected = nnls(D[:, nonnegative.active], y)[0]
        np.testing.assert_allclose(nonnegative.x[nonnegative.active], expected, rtol=1e-9)
        assert (expected > 0).all()


def test_a_lead_tells_how_close_a_contest_was():
    for gap in (1e-3, 1e-6, 1e-9):
        D = np.array([[1.0, 1.0 - gap], [0.0, 0.0]])
        assert pursue(D, np.array([2.0, 0.0]), 1).lead == pytest.approx(gap)
        at_the_end = pursue(np.eye(2), np.array([2.0, gap]), 2, tol=2 * gap)
        assert at_the_end.active == [0] and at_the_end.lead == pytest.approx(gap / 4)


# ---------------------------------------------------------------------------------- same as plain


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True], ids=["shared gram", "weights"])
def test_codes_are_those_of_a_plain_pursuit(method, dtype, weighted):
    D, Y, rng = problem(1, 300, 20, 45, dtype)
    atoms = rng.integers(1, 9, 300)
    tols = np.where(rng.random(300) < 0.5, 0.0, rng.uniform(0.5, 4.0, 300))
    weights = None
    if weighted:
        weights = (rng.exponential(size=Y.shape) * (rng.random(Y.shape) < 0.8)).astype(dtype)
    codes = encode(D, Y, atoms=atoms, tol=tols, method=method, weights=weights)
    assert codes.dtype == dtype and codes.shape == (300, 45)
    assert agree(codes, D, Y, atoms, tols, method, weights) > 270


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["plain", "gram", "weights"])
def test_any_shape_and_any_way_through_gives_the_plain_codes(method, dtype, kind):
    signals = clear = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d, n, count, spread = rng.integers(1, 13), rng.integers(1, 31), rng.integers(1, 13), rng.choice([0, 1, 3])
        D, Y, rng = problem(seed, int(count), int(d), int(n), dtype, spread)
        D = D if rng.random() < 0.5 else np.asfortranarray(D)
        atoms, relative = rng.integers(1, 7, len(Y)), rng.choice([-1, 1e-3, 0.3, 2.0])
        tol = None if relative < 0 else relative * np.linalg.norm(Y, axis=1)
        gram = D.T @ D if kind == "gram" else None
        weights = rng.choice([0.0, 0.5, 1.0, 3.0], Y.shape).astype(dtype) if kind == "weights" else None
        codes = encode(D, Y, atoms=atoms, tol=tol, method=method, gram=gram, weights=weights)
        clear += agree(codes, D, Y, atoms, -1.0 if tol is None else tol, method, weights)
        signals += len(Y)
    assert clear > (0.9 if method != "ols" else 0.6) * signals  # the last atom of a full basis is a tie for OLS


@pytest.mark.parametrize("method", METHODS)
def test_residuals_first_reach_tol_with_the_last_atom(method):
    D, Y, _ = problem(3, 200, 16, 40)
    codes = encode(D, Y, tol=1.5, method=method)
    reached = np.linalg.norm(Y - codes @ D.T, axis=1)
    if method != "nnomp":  # whose cone need not come so close
        assert (reached <= 1.5 * (1 + 1e-12)).all()
    counts = np.diff(codes.indptr)
    shorter = encode(D, Y, atoms=np.maximum(counts - 1, 1), method=method)
    longer = (counts > 1) & (reached <= 1.5)
    assert longer.sum() > 100
    assert (np.linalg.norm(Y - shorter @ D.T, axis=1)[longer] > 1.5).all()


# --------------------------------------------------------------------------- what follows from it


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scales_change_nothing_but_the_scale(method, weighted):
    D, Y, rng = problem(10, 60, 12, 30)
    weights = rng.uniform(0, 2, Y.shape) if weighted else None
    norms = 0.3 * np.linalg.norm(Y, axis=1)
    codes = encode(D, Y, atoms=6, tol=norms, method=method, weights=weights).toarray()
    for a, b, c in [(2.0**-400, 2.0**500, 2.0**-300), (2.0**300, 2.0**-500, 2.0**200), (1.0, 2.0**-400, 1.0)]:
        scaled = None if weights is None else c * weights
        tol = b * norms * (1.0 if weights is None else c**0.5)
        found = encode(a * D, b * Y, atoms=6, tol=tol, method=method, weights=scaled).toarray()
        np.testing.assert_allclose(found * (a / b), codes, rtol=1e-12, atol=1e-13)
    same = encode(D, Y * np.exp2(np.arange(60) * 10.0 - 300)[:, None], atoms=6, method=method, weights=weights)
    once = encode(D, Y, atoms=6, method=method, weights=weights)
    np.testing.assert_array_equal(same.indices, once.indices)


@pytest.mark.parametrize("method", METHODS)
def test_missing_entries_are_left_out(method):
    D, Y, rng = problem(11, 40, 15, 30)
    seen = rng.random(Y.shape) < 0.6
    seen[0] = False
    codes = encode(D, np.where(seen, Y, np.nan), atoms=3, method=method, weights=seen)
    assert codes[[0]].nnz == 0
    for i in range(1, 40):
        alone = encode(D[seen[i]], Y[i, seen[i]][None], atoms=3, method=method)
        np.testing.assert_allclose(codes[[i]].toarray(), alone.toarray(), atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_an_entry_of_weight_two_is_an_entry_that_occurs_twice(method):
    D, Y, rng = problem(12, 30, 10, 20)
    times = rng.integers(1, 4, 10)
    codes = encode(D, Y, atoms=4, method=method, weights=np.broadcast_to(times, Y.shape).astype(float))
    again = encode(np.repeat(D, times, axis=0), np.repeat(Y, times, axis=1), atoms=4, method=method)
    np.testing.assert_allclose(codes.toarray(), again.toarray(), atol=1e-11)


def test_non_negative_codes_are_positive_and_optimal_on_their_atoms():
    D, Y, _ = problem(13, 300, 20, 60)
    codes = encode(D, Y, atoms=8, method="nnomp")
    assert (codes.data > 0).all()
    slopes = (Y - codes @ D.T) @ D
    assert np.abs(slopes[codes.toarray() > 0]).max() < 1e-11


def test_matching_pursuit_spends_at_most_ten_steps_an_atom():
    a = np.array([[1.0, 0.999], [0.0, np.sqrt(1 - 0.999**2)]])  # nearly parallel: steps go to and fro
    y = np.array([[0.3, 1.0]])
    left = [np.linalg.norm(y - encode(a, y, atoms=k, method="mp") @ a.T) for k in (1, 2)]
    x = pursue(a, y[0], 2, method="mp").x
    np.testing.assert_allclose(left[1], np.linalg.norm(y[0] - a @ x), rtol=1e-12)
    assert left[1] > 1e-3 * left[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("signals", [1, 4, 40])
def test_a_code_does_not_depend_on_the_neighbours_of_its_signal(signals, dtype):
    for seed in range(40):
        D, Y, rng = problem(seed, signals, 13, 40, dtype)
        D[:, 7], Y[rng.integers(signals)] = 2 * D[:, 3], 0  # some signals end early, some are left to another strategy
        Y[rng.random(signals) < 0.2] = D[:, 3]
        atoms, tol = rng.integers(1, 9, signals), rng.choice([0.0, 1.0, 3.0], signals)
        order = rng.permutation(signals)
        one, other = encode(D, Y, atoms=atoms, tol=tol)[order], encode(D, Y[order], atoms=atoms[order], tol=tol[order])
        np.testing.assert_array_equal(one.indptr, other.indptr)
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_allclose(one.data, other.data, rtol=1e4 * np.finfo(dtype).eps, atol=0)
