"""Codes of many signals at once: equal to a plain pursuit by least squares, one signal at a time."""

import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from pursuit.atoms import screening
from pursuit.encode import alone, encode, engine, fast, rooms, short, sift, vector
from pursuit.encode.inputs import Request
from pursuit.encode.team import CLAIMED, Team

METHODS = ["omp", "mp", "ols", "nnomp"]
DTYPES = [np.float64, np.float32]


# ------------------------------------------------------------------------------- the plain pursuit


def fit(D, S, y, method):
    if method == "nnomp":
        return nnls(D[:, S], y)[0]
    return np.linalg.lstsq(D[:, S], y, rcond=None)[0]


def keys_of(D, S, y, r, method):
    """What each method compares: the larger, the better; atoms that cannot be taken have -inf."""
    c = D.T @ r
    if method == "nnomp":
        keys = c
    elif method == "ols":
        keys = np.full(len(c), -np.inf)
        for j in set(range(len(c))) - set(S):
            basis = D[:, [*S, j]]
            if np.linalg.matrix_rank(basis, tol=1e-9 * np.linalg.norm(basis)) == len(S) + 1:
                keys[j] = r @ r - np.sum((y - basis @ fit(D, [*S, j], y, "ols")) ** 2)
        return keys
    else:
        keys = np.abs(c)
    if method != "mp":
        keys[S] = -np.inf
    return keys


def plain(D, y, atoms, tol=-1.0, method="omp", w=None):
    """Weights of one signal, and how clear every decision was: the least lead of a choice, relative to its key."""
    if w is not None:
        y, D = np.sqrt(w) * np.where(w > 0, y, 0.0), np.sqrt(w)[:, None] * D
    x, clear, whole, turns = np.zeros(D.shape[1]), 1.0, np.linalg.norm(y), 0
    while True:
        S, r = [int(j) for j in np.flatnonzero(x)], y - D @ x
        norm = np.linalg.norm(r)
        if tol >= 0:
            clear = min(clear, abs(norm - tol) / (whole or 1.0))
        if norm <= tol or norm <= 1e-12 * whole or (method != "mp" and len(S) == atoms) or turns == 10 * atoms:
            return x, clear
        keys = keys_of(D, S, y, r, method)
        j = int(np.argmax(keys))
        if not keys[j] > 1e-12 * whole * np.linalg.norm(D[:, j]) ** (method != "ols"):
            return x, clear
        lead = np.partition(keys, -2)[-2] if len(keys) > 1 else 0.0
        clear, turns = min(clear, (keys[j] - max(lead, 0.0)) / keys[j]), turns + 1
        if method == "mp":
            if not x[j] and len(S) == atoms:
                return x, clear
            x[j] += D[:, j] @ r / (D[:, j] @ D[:, j])
        else:
            x[[*S, j]] = fit(D, [*S, j], y, method)


def agree(codes, D, Y, atoms, tols, method, weights=None, dtype=np.float64):
    """Every clear signal has the plain pursuit's atoms and weights; how many were clear."""
    eps, clear_ones = float(np.finfo(dtype).eps), 0
    dense, D64, Y64 = codes.toarray(), D.astype(float), Y.astype(float)
    assert np.isfinite(dense).all()
    for i, y in enumerate(Y64):
        w = None if weights is None else weights[i].astype(float)
        x, clear = plain(D64, y, atoms[i], tols[i], method, w)
        S = np.flatnonzero(x)
        seen = D64[:, S] if w is None else np.sqrt(w)[:, None] * D64[:, S]
        condition = np.linalg.cond(seen) if len(S) else 1.0
        if clear < 1e3 * eps or condition**2 * eps > 1e-4:
            continue
        clear_ones += 1
        np.testing.assert_array_equal(np.flatnonzero(dense[i]), S)
        np.testing.assert_allclose(dense[i], x, rtol=0, atol=1e3 * eps * condition**2 * np.abs(x).max(initial=0.0))
    return clear_ones


def problem(seed, signals, d, n, dtype, spread=1.0):
    """Random signals, and atoms whose norms differ by up to a factor of about exp(3 spread)."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((d, n)) * np.exp(0.5 * spread * rng.standard_normal(n))
    return D.astype(dtype), rng.standard_normal((signals, d)).astype(dtype), rng


# --------------------------------------------------------------------------------- same as plain


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True], ids=["shared gram", "weights"])
def test_codes_are_those_of_a_plain_pursuit(method, dtype, weighted):
    signals = 150 if method == "ols" else 400
    D, Y, rng = problem(1, signals, 20, 45, dtype)
    atoms = rng.integers(1, 9, signals)
    tols = np.where(rng.random(signals) < 0.5, 0.0, rng.uniform(0.5, 4.0, signals))
    weights = None
    if weighted:
        weights = (rng.exponential(size=Y.shape) * (rng.random(Y.shape) < 0.8)).astype(dtype)
    codes = encode(D, Y, atoms=atoms, tol=tols, method=method, weights=weights)
    assert codes.dtype == dtype and codes.shape == (signals, 45)
    assert agree(codes, D, Y, atoms, tols, method, weights, dtype) > 0.9 * signals


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6), d=st.integers(1, 12), n=st.integers(1, 30), signals=st.integers(1, 12),
    method=st.sampled_from(METHODS), dtype=st.sampled_from(DTYPES), kind=st.sampled_from(["plain", "gram", "weights"]),
    spread=st.sampled_from([0.0, 1.0, 3.0]), relative=st.sampled_from([None, 1e-3, 0.3, 2.0]),
)  # fmt: skip
def test_any_shape_and_any_way_through_gives_the_plain_codes(
    seed, d, n, signals, method, dtype, kind, spread, relative
):
    D, Y, rng = problem(seed, signals, d, n, dtype, spread)
    atoms = rng.integers(1, 7, signals)
    tol = None if relative is None else relative * np.linalg.norm(Y, axis=1)
    gram = D.T @ D if kind == "gram" else None
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], Y.shape).astype(dtype) if kind == "weights" else None
    codes = encode(D, Y, atoms=atoms, tol=tol, method=method, gram=gram, weights=weights)
    agree(codes, D, Y, np.minimum(atoms, n), np.full(signals, -1.0) if tol is None else tol, method, weights, dtype)


def test_thousands_of_signals_have_the_codes_of_a_plain_omp():
    D, Y, _ = problem(2, 2500, 24, 80, np.float64)
    assert agree(encode(D, Y, atoms=7), D, Y, np.full(2500, 7), np.full(2500, -1.0), "omp") > 2490


@pytest.mark.parametrize("method", METHODS)
def test_residuals_first_reach_tol_with_the_last_atom(method):
    D, Y, _ = problem(3, 200, 16, 40, np.float64)
    codes = encode(D, Y, tol=1.5, method=method)
    reached = np.linalg.norm(Y - codes @ D.T, axis=1)
    if method != "nnomp":  # whose cone need not come so close
        assert (reached <= 1.5 * (1 + 1e-12)).all()
    counts = np.diff(codes.indptr)
    shorter = encode(D, Y, atoms=np.maximum(counts - 1, 1), method=method)
    longer = (counts > 1) & (reached <= 1.5)
    assert (np.linalg.norm(Y - shorter @ D.T, axis=1)[longer] > 1.5).all()


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
    assert (left(codes) <= 0.8 * tol * norms).all()
    assert (left(encode(D, Y, atoms=counts - 1)) > 0.8 * tol * norms * (1 - 1e-3)).all()


def test_both_rules_together_are_whichever_comes_first():
    D, Y, _ = problem(5, 300, 16, 40, np.float64)
    few, close, both = encode(D, Y, atoms=4), encode(D, Y, tol=2.2), encode(D, Y, atoms=4, tol=2.2)
    shorter = np.diff(close.indptr) < 4
    assert 10 < shorter.sum() < 290
    np.testing.assert_allclose(both.toarray(), np.where(shorter[:, None], close.toarray(), few.toarray()), atol=1e-12)


# ------------------------------------------------------------------------------------ hard cases


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["gram", "weights"])
def test_ties_go_to_the_lowest_index(method, way):
    D = np.tile(np.eye(3), (1, 90))
    extra = {"gram": D.T @ D} if way == "gram" else {"weights": np.ones((4, 3))}
    Y = np.array([[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [0.0, 0.0, 3.0], [1.0, 0.0, 1.0]])
    codes = encode(D, Y, atoms=3, method=method, **extra)
    np.testing.assert_array_equal(codes.toarray()[:, :3], Y)
    assert codes.nnz == 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_of_atoms_that_occur_twice_the_first_is_taken(method, dtype):
    rng = np.random.default_rng(0)
    for _ in range(20):
        B, Y = (rng.integers(-9, 10, shape).astype(dtype) for shape in ((12, 15), (40, 12)))
        B = B[:, B.any(axis=0)]
        assert encode(np.hstack([B, B]), Y, atoms=3, method=method).indices.max() < B.shape[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_ols_does_not_depend_on_the_norms_of_atoms(monkeypatch, dtype):
    D, Y, rng = problem(3, 300, 30, 80, dtype, spread=0.0)
    powers = rng.integers(-12, 13, 80)
    gave_up = watch(monkeypatch, engine.careful, "walk")
    one, other = encode(D, Y, atoms=6, method="ols"), encode(np.ldexp(D, powers), Y, atoms=6, method="ols")
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(one.data, np.ldexp(other.data, powers[other.indices]), rtol=100 * np.finfo(dtype).eps)
    assert not gave_up


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["omp", "ols", "nnomp"])
@pytest.mark.parametrize("way", ["gram", "weights"])
def test_dependent_atoms_and_more_atoms_than_the_rank_do_no_harm(method, dtype, way):
    rng = np.random.default_rng(6)
    B = rng.standard_normal((10, 4))
    mixed = B @ rng.standard_normal((4, 20)) * np.exp(3 * rng.standard_normal(20))
    D = np.hstack([B, B, 1e3 * B, -B, mixed]).astype(dtype)
    Y = np.vstack([rng.standard_normal((30, 10)), rng.standard_normal((30, 4)) @ B.T]).astype(dtype)
    extra = {"gram": D.T @ D} if way == "gram" else {"weights": np.ones_like(Y)}
    codes = encode(D, Y, atoms=9, method=method, **extra)
    assert np.isfinite(codes.data).all()
    assert (np.diff(codes.indptr) <= 4).all()
    best = Y @ np.linalg.pinv(B.astype(dtype).T) @ B.T
    if method != "nnomp":
        np.testing.assert_allclose(codes @ D.T, best, atol=2e3 * np.finfo(dtype).eps * np.abs(Y).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["omp", "ols", "nnomp"])
@pytest.mark.parametrize("way", ["gram", "weights"])
def test_exactly_sparse_signals_get_their_atoms_and_no_more(method, dtype, way):
    rng = np.random.default_rng(7)
    D = rng.standard_normal((60, 80))
    D /= np.linalg.norm(D, axis=0)
    truth = np.zeros((40, 80))
    for row in truth:
        row[rng.choice(80, 3, replace=False)] = rng.uniform(1, 2, 3)
    D = D.astype(dtype)
    Y = (truth @ D.T).astype(dtype)
    extra = {"gram": D.T @ D} if way == "gram" else {"weights": np.ones_like(Y)}
    codes = encode(D, Y, atoms=20, method=method, **extra)
    exact = np.diff(codes.indptr) == 3
    assert exact.mean() > 0.9  # the others took a wrong atom on their way
    np.testing.assert_allclose(codes.toarray()[exact], truth[exact], atol=1e3 * np.finfo(dtype).eps)
    np.testing.assert_allclose(codes @ D.T, Y, atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["gram", "weights"])
def test_the_smallest_problems_work(method, dtype, way):
    for d, n, signals in [(1, 1, 1), (1, 5, 3), (5, 1, 3), (3, 2, 0)]:
        D, Y, _ = problem(8, signals, d, n, dtype)
        Y = np.vstack([Y, np.zeros((min(signals, 1), d), dtype)])
        extra = {"gram": D.T @ D} if way == "gram" else {"weights": np.ones_like(Y)}
        codes = encode(D, Y, atoms=4, method=method, **extra)
        assert isinstance(codes, sp.csr_array) and codes.shape == (len(Y), n) and codes.dtype == dtype
        agree(codes, D, Y, np.full(len(Y), min(4, n)), np.full(len(Y), -1.0), method, None, dtype)


@pytest.mark.parametrize(("dtype", "apart"), [(np.float64, 1e-4), (np.float32, 1e-2)])
@pytest.mark.parametrize("method", ["omp", "ols", "nnomp"])
@pytest.mark.parametrize("way", ["gram", "weights"])
def test_weights_of_nearly_parallel_atoms_keep_their_digits(method, dtype, apart, way):
    rng = np.random.default_rng(21)
    B = np.repeat(rng.standard_normal((40, 6)), 3, axis=1)
    D = (B + apart * rng.standard_normal(B.shape)).astype(dtype)
    Y = (rng.standard_normal((100, 18)) @ D.T / apart**0.5).astype(dtype)
    extra = {"gram": D.T @ D} if way == "gram" else {"weights": np.ones_like(Y)}
    codes = encode(D, Y, atoms=10, method=method, **extra)
    for i in range(100):
        S = codes[[i]].indices
        A = D[:, S].astype(float)
        best = np.linalg.lstsq(A, Y[i].astype(float), rcond=None)[0]
        tolerance = 100 * np.finfo(dtype).eps * np.linalg.cond(A) * np.abs(best).max()
        np.testing.assert_allclose(codes[[i]].data, best, rtol=0, atol=tolerance)


def test_non_negative_codes_on_coherent_atoms_that_come_and_go_are_the_plain_ones():
    rng = np.random.default_rng(22)
    D, Y = rng.random((12, 60)) ** 2 + 0.3, rng.random((400, 12)) ** 3
    for extra in ({"gram": D.T @ D}, {"weights": np.ones_like(Y)}):
        codes = encode(D, Y, atoms=8, method="nnomp", **extra)
        assert agree(codes, D, Y, np.full(400, 8), np.full(400, -1.0), "nnomp") > 350


def test_atoms_that_differ_beyond_single_precision_are_told_apart():
    rng = np.random.default_rng(9)
    A, Y = rng.standard_normal((20, 30)), rng.standard_normal((400, 20))
    better = np.repeat(rng.integers(0, 2, 30), 2) ^ np.tile([0, 1], 30)  # of each pair, one is longer by 1e-10
    D = np.repeat(A, 2, axis=1) * (1 + 1e-10 * better)
    codes = encode(D, Y, atoms=5, gram=D.T @ D)
    assert codes.nnz == 2000 and better[codes.indices].all()


@pytest.mark.parametrize("d", [1, 40, 256, 257, 900])
def test_correlations_in_single_precision_err_no_more_than_they_may(d):
    rng = np.random.default_rng(23)
    Y = rng.choice([1.0, -1.0], (50, d)) * np.exp(3 * rng.standard_normal((50, d)))
    D = np.concatenate([rng.standard_normal((d, 20)), np.sign(Y.T), Y.T], axis=1)  # the last sum without cancelling
    norms = np.linalg.norm(D, axis=0)
    C = fast.correlations(Y, D.astype(np.float32), np.empty((50, D.shape[1]), np.float32))
    assert (np.abs(C - Y @ D).max(axis=1) <= fast.doubt(D, norms, whole=False) / 2 * np.linalg.norm(Y, axis=1)).all()


def one_wave(D, Y, limits, ols=False):
    """What the fast kernel leaves behind of one wave of signals: the codes and all that it worked in."""
    (d, n), k, columns, kind = D.shape, max(limits), rooms.padded(D.shape[1]), D.dtype
    G, norms = D.T @ D, np.linalg.norm(D, axis=0)
    C, S = rooms.aligned((len(Y), columns), np.float32), fast.single(G)
    mu, longest = fast.bounds(S, norms)
    kit, known = (None, rooms.lefts(G, columns)) if ols else (short.Kit.of(S, D, norms, longest), None)
    rooms_of_16 = None if ols else short.workspace(kit, d, columns, k)
    bounds, work = (mu, longest, fast.doubt(D, norms, whole=False)), rooms.workspace(columns, k, kind)
    codes = np.empty((len(Y), k), np.int32), np.empty((len(Y), k), kind), np.zeros(len(Y), np.int64)
    noise, numbers = kind.type(4 * np.finfo(kind).eps * d**0.5), None
    for limit in limits:  # the numbers are those that the next turn would use
        numbers = known[0][1].copy() if ols else None
        fast.correlations(Y, D.astype(np.float32), C[:, :n])
        ends = (Y * Y).sum(axis=1), np.full(len(Y), limit), np.full(len(Y), -np.inf, kind), noise
        matrices = G if kind == np.float64 else S, S, kit, np.ascontiguousarray(D.T), norms
        fast.pursue(*matrices, bounds, Y, C if ols else None, known, *ends, work, rooms_of_16, *codes)
    if ols:
        return work[0], C, known[0][0], numbers, codes[2]
    return work[0], kit, rooms_of_16[0], codes[2]


def drawn_together(coherence, d, n, kind=np.float64):
    """Atoms of various norms that share a direction, and a wave of signals."""
    rng = np.random.default_rng(4)
    D = (1 - coherence) * rng.standard_normal((d, n)) + coherence * rng.standard_normal((d, 1))
    D, Y = D * np.exp(0.3 * rng.standard_normal(n)), rng.standard_normal((vector.WAVE, d))
    return D.astype(kind), Y.astype(kind)


@pytest.mark.parametrize("coherence", [0.0, 0.5])
def test_what_ols_knows_in_single_precision_errs_no_more_than_it_may(coherence):
    n, k = 200, 20
    D, Y = drawn_together(coherence, 60, n)
    atoms, C, left, (_, more, less, _), counts = one_wave(D, Y, (k - 1, k), ols=True)
    assert (counts == k).all()
    for p, y in enumerate(Y):
        before = atoms[: k - 1, p]  # what was computed last is from before the last atom
        Q, free = np.linalg.qr(D[:, before])[0], np.setdiff1d(np.arange(n), atoms[:, p])
        rest = D - Q @ (Q.T @ D)
        assert (np.abs(C[p, :n] - rest.T @ y)[free] <= more[p]).all()
        assert (np.abs(left[p, :n] - (rest * rest).sum(axis=0))[free] <= less[p]).all()
        assert more[p] < 1e-2 * np.abs(rest.T @ y).max() and np.isinf(left[p, before]).all()


in_16_bits = pytest.mark.skipif(not engine.PAIRS, reason="needs an instruction that this processor does not have")


def errors_in_16_bits(D, Y, k):
    """For a wave of signals, in units: errors of the last correlations, after k atoms, and what they may be."""
    atoms, _, (factors, _, _, _, sizes, _, leads), counts = one_wave(D, Y, (k + 1,))
    D, Y, errors = D.astype(np.float64), Y.astype(np.float64), np.zeros(len(Y))
    for p in np.flatnonzero(counts == k + 1):
        active = D[:, atoms[:k, p]]
        exact = np.abs((Y[p] - active @ np.linalg.lstsq(active, Y[p], rcond=None)[0]) @ D) * factors[0, p]
        errors[p] = np.abs(sizes[p, : D.shape[1]] - exact).max()
    assert (errors > 0).sum() >= len(Y) // 2
    return errors, leads / 2


@in_16_bits
@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("coherence", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("k", [0, 1, 2, 10, 25])
def test_correlations_in_16_bits_err_no_more_than_they_may(kind, coherence, k):
    D, Y = drawn_together(coherence, 61, 150, kind)
    errors, allowed = errors_in_16_bits(D, Y, k)
    assert (errors <= allowed + 0.2 * (kind == np.float32)).all()  # where weights are rounded, too
    assert (allowed[errors > 0] < 6 + 2 * k).all()  # and these are useful


@in_16_bits
@pytest.mark.parametrize("k", [0, 1, 10])
def test_the_best_atom_in_16_bits_must_lead_by_what_the_bound_says(k):
    D, Y = drawn_together(0.3, 60, 150)
    atoms, kit, (factors, _, _, weights, _, _, leads), _ = one_wave(D, Y, (k + 1,))
    norms = np.linalg.norm(D, axis=0)
    mu, longest = fast.bounds(fast.single(D.T @ D), norms)
    tall = short.SHORT * mu / longest + 1
    for p, y in enumerate(Y):
        active = D[:, atoms[:k, p]]
        exact = np.linalg.lstsq(active, y, rcond=None)[0] * norms[atoms[:k, p]] * factors[0, p] * longest
        q = weights[:k, p].astype(np.int64)
        assert (np.abs(q - exact * 2**15 / short.SHORT) < 0.501).all()
        rounding = 2 * tall * np.abs(q - exact * 2**15 / short.SHORT).sum()
        terms = np.abs(exact).sum() * 2**15 / short.SHORT + rounding + short.SHORT - tall
        bound = 2 * factors[1, p] + k + 1 + 17 / 16 * terms / 2**15 + 1 / 16
        assert leads[p] == np.floor(bound) + 1
        assert factors[1, p] / factors[0, p] > kit.off * np.linalg.norm(y)


@in_16_bits
@pytest.mark.parametrize("k", [0, 1, 2])
def test_correlations_in_16_bits_may_err_by_little_more_than_they_do(k):
    rng, reached = np.random.default_rng(13), []
    for _ in range(150):
        D = rng.standard_normal((4, 4))
        errors, allowed = errors_in_16_bits(D, rng.standard_normal((vector.WAVE, 4)), k)
        assert (errors <= allowed).all()
        reached.append((errors / allowed).max())
    assert max(reached) > 0.5


@in_16_bits
@pytest.mark.parametrize(("d", "n"), [(1, 1), (2, 31), (7, 33), (64, 256), (65, 300)])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_products_in_16_bits_are_those_of_the_integers(d, n, kind):
    rng = np.random.default_rng(d)
    D, Y = rng.standard_normal((d, n)).astype(kind), rng.standard_normal((vector.WAVE, d)).astype(kind)
    Y[0], Y[1, 1:] = D[:, np.argmax(np.linalg.norm(D, axis=0))], 0  # nothing is larger; a single peak
    _, kit, (factors, y, products, *_), _ = one_wave(D, Y, (1,))
    atoms = kit.atoms.transpose(0, 2, 1).reshape(-1, kit.atoms.shape[1])[:d, :n].astype(np.int64)
    sums = y[: vector.WAVE, :d].astype(np.int64) @ atoms
    assert (products[: vector.WAVE, :n] == (sums + 2**15) >> 16).all() and (np.abs(sums) < 2**31 - 2**15).all()
    assert not y[:, d:].any() and not products[:, n:].any()
    longest = np.linalg.norm(D.astype(np.float64), axis=0).max()
    rounded = atoms * (longest * (1 + 1e-6) / short.SCALE)
    assert np.linalg.norm(rounded - D, axis=0).max() <= kit.off * (1 + 1e-3) + 3e-6 * longest
    exact = Y.astype(np.float64) @ D * factors[0, : vector.WAVE, None]
    assert (factors[1, : vector.WAVE] + 0.51 >= np.abs(products[: vector.WAVE, :n] - exact).T).all()


@in_16_bits
def test_16_bits_suffice_for_most_signals_and_are_left_where_they_do_not():
    rng = np.random.default_rng(8)
    D = rng.standard_normal((64, 256))
    D /= np.linalg.norm(D, axis=0)
    assert (one_wave(D, rng.standard_normal((200, 64)), (10,))[-1] == 10).all()
    almost = D[:, rng.permutation(256)[:240].reshape(40, 6)].sum(axis=2).T + 1e-5 * rng.standard_normal((40, 64))
    assert (one_wave(D, almost, (10,))[-1] == fast.UNSURE).all()
    D = np.eye(60)[:, [0, 1, 2]] + np.eye(60)[:, [1, 0, 3]] * [0.9, 0.9, 0]  # weights 6 and -5 make a short signal
    assert (one_wave(D, np.tile(D @ [6, -5, 0.05], (8, 1)), (3,))[-1] == fast.UNSURE).all()


@in_16_bits
def test_16_bits_that_do_not_suffice_are_tried_for_ever_fewer_tiles(monkeypatch):
    rng = np.random.default_rng(14)
    D = rng.standard_normal((64, 256))
    D /= np.linalg.norm(D, axis=0)
    Y = rng.uniform(1, 2, (640, 6)) @ D[:, :6].T
    kits, pursue = [], fast.pursue
    monkeypatch.setattr(fast, "pursue", lambda *a: kits.append(a[2] is not None) or pursue(*a))
    monkeypatch.setattr(engine, "WORKSPACE", 64 * (8 * (64 + 256) + 12 * 10))  # ten tiles of 64 signals
    encode(D, Y + 1e-4 * rng.standard_normal((640, 64)), atoms=10, n_jobs=1)
    assert sum(kits) == 3 and len(kits) == 13  # the first tile, the third, the seventh


@in_16_bits
def test_the_largest_integers_are_in_range_for_signals_of_all_lengths_that_are_tried():
    most = short.DEEP**0.5 / 2  # what rounding adds to a norm
    largest = (short.SCALE + most) * (short.MOST + most)
    assert largest < 2**31 - 2**15 and largest / 2**16 + sift.WIDE / 2 < 2**15 - 100
    d, kits = short.DEEP, []
    for extra in range(2):
        D = np.eye(d + extra)[:, :9]
        kits.append(engine.Shared(D, np.ones(9), np.eye(9), "omp", False, np.zeros(9, np.intc)).kit)
    assert kits[0] is not None and kits[1] is None


@in_16_bits
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.9])
def test_signals_for_which_16_bits_do_not_suffice_have_the_plain_codes_among_others(share, monkeypatch):
    rng = np.random.default_rng(9)
    D, Y = rng.standard_normal((30, 80)), rng.standard_normal((400, 30))
    almost = rng.random(400) < share
    Y[almost] = (D[:, :4] @ rng.uniform(1, 2, (4, 400))).T[almost] + 1e-7 * Y[almost]
    calls, pursue = [], fast.pursue
    monkeypatch.setattr(fast, "pursue", lambda *a: calls.append(len(a[6]) if a[2] is None else 0) or pursue(*a))
    limits = rng.integers(3, 9, 400)
    assert agree(encode(D, Y, atoms=limits, n_jobs=1), D, Y, limits, np.full(400, -1.0), "omp") > 350
    assert 0 in calls and (sum(calls) > 0) == (share > 0)


@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_signals_that_are_combinations_of_fewer_atoms_are_not_done_twice(method, dtype, monkeypatch):
    D, _, rng = problem(31, 0, 40, 60, dtype, spread=0.2)
    weights = np.zeros((300, 60), dtype)
    for row in weights:
        row[rng.permutation(60)[:3]] = rng.choice([-1, 1], 3) * rng.uniform(1, 2, 3)
    monkeypatch.setattr(engine.careful, "walk", lambda *_: pytest.fail("the careful way was taken"))
    kits, pursue = [], fast.pursue
    monkeypatch.setattr(fast, "pursue", lambda *a: kits.append(a[2]) or pursue(*a))
    codes = encode(D, weights @ D.T, atoms=12, method=method)
    assert len(set(map(type, kits))) == 1  # in 16 bits or in float32
    assert np.mean(np.diff(codes.indptr) == 3) > 0.3  # the others have a wrong atom among them, and some more
    rest = np.linalg.norm(weights @ D.T - codes @ D.T, axis=1)
    assert (rest <= 100 * np.finfo(dtype).eps * np.linalg.norm(weights @ D.T, axis=1)).all()


@pytest.mark.parametrize("ridge", [0.0, 2e-5, 1e-4, 9e-4])
def test_a_gram_matrix_that_is_one_to_a_few_digits_costs_no_time(ridge, monkeypatch):
    D, Y, _ = problem(32, 200, 40, 150, np.float64, spread=0.0)
    D /= np.linalg.norm(D, axis=0)
    monkeypatch.setattr(engine.careful, "walk", lambda *_: pytest.fail("the careful way was taken"))
    codes = encode(D, Y, atoms=10, gram=D.T @ D + ridge * np.eye(150))
    assert (np.diff(codes.indptr) == 10).all()


def test_the_copy_in_16_bits_takes_no_more_memory_than_it_is():
    S, norms = fast.single(np.eye(2000)), np.ones(2000)
    tracemalloc.start()
    shorts = short.rows(S, norms, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.8 * shorts.nbytes


@pytest.mark.parametrize(
    ("kind", "shorter"),
    [(np.float64, 10.0**-e) for e in range(2, 13)] + [(np.float32, 10.0**-e) for e in range(2, 5)],
)
def test_a_slightly_shorter_copy_of_an_atom_is_never_chosen(kind, shorter):
    rng = np.random.default_rng(12)
    D, Y = rng.standard_normal((30, 80)).astype(kind), rng.standard_normal((200, 30)).astype(kind)
    codes = encode(np.concatenate([(1 - kind(shorter)) * D, D], axis=1), Y, atoms=8)
    assert (codes.indices >= 80).all() and (np.diff(codes.indptr) == 8).all()


def test_long_signals_with_close_contests_have_the_plain_codes_and_few_are_given_up(monkeypatch):
    rng = np.random.default_rng(24)
    A, Y = rng.standard_normal((700, 40)), rng.standard_normal((300, 700))
    D = np.repeat(A, 2, axis=1) + 1e-6 * rng.standard_normal((700, 80))
    given_up, walk = [], engine.careful.walk
    monkeypatch.setattr(engine.careful, "walk", lambda *a: given_up.extend(a[10]) or walk(*a))
    assert agree(encode(D, Y, atoms=3), D, Y, np.full(300, 3), np.full(300, -1.0), "omp") > 290
    assert len(given_up) < 30


@pytest.mark.parametrize("dtype", DTYPES)
def test_short_atoms_have_their_chance_in_ols_where_squares_underflow(dtype):
    D, Y, _ = problem(37, 10, 8, 20, np.float64)
    scale = np.where(np.arange(20) % 3, 1.0, 1e-14)
    weights = np.ones_like(Y).astype(dtype)
    codes = encode(D, Y, atoms=4, method="ols")
    small = encode((D * scale).astype(dtype), (1e-8 * Y).astype(dtype), atoms=4, method="ols", weights=weights)
    np.testing.assert_array_equal(codes.indices, small.indices)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_scales_change_nothing_but_the_scale(method, weighted):
    D, Y, rng = problem(10, 60, 12, 30, np.float64)
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
    D, Y, rng = problem(11, 40, 15, 30, np.float64)
    seen = rng.random(Y.shape) < 0.6
    seen[0] = False
    codes = encode(D, np.where(seen, Y, np.nan), atoms=3, method=method, weights=seen)
    assert codes[[0]].nnz == 0
    for i in range(1, 40):
        alone = encode(D[seen[i]], Y[i, seen[i]][None], atoms=3, method=method)
        np.testing.assert_allclose(codes[[i]].toarray(), alone.toarray(), atol=1e-11)


@pytest.mark.parametrize("method", METHODS)
def test_an_entry_of_weight_two_is_an_entry_that_occurs_twice(method):
    D, Y, rng = problem(12, 30, 10, 20, np.float64)
    times = rng.integers(1, 4, 10)
    codes = encode(D, Y, atoms=4, method=method, weights=np.broadcast_to(times, Y.shape).astype(float))
    again = encode(np.repeat(D, times, axis=0), np.repeat(Y, times, axis=1), atoms=4, method=method)
    np.testing.assert_allclose(codes.toarray(), again.toarray(), atol=1e-11)


def test_non_negative_codes_are_positive_and_optimal_on_their_atoms():
    D, Y, _ = problem(13, 300, 20, 60, np.float64)
    codes = encode(D, Y, atoms=8, method="nnomp")
    assert (codes.data > 0).all()
    slopes = (Y - codes @ D.T) @ D
    assert np.abs(slopes[codes.toarray() > 0]).max() < 1e-11


def test_matching_pursuit_spends_at_most_ten_steps_an_atom():
    a = np.array([[1.0, 0.999], [0.0, np.sqrt(1 - 0.999**2)]])  # nearly parallel: steps go to and fro
    y = np.array([[0.3, 1.0]])
    left = [np.linalg.norm(y - encode(a, y, atoms=k, method="mp") @ a.T) for k in (1, 2)]
    x, _ = plain(a, y[0], 2, method="mp")
    np.testing.assert_allclose(left[1], np.linalg.norm(y[0] - a @ x), rtol=1e-12)
    assert left[1] > 1e-3 * left[0]


# ----------------------------------------------------------------------- arrays, threads, memory


def test_a_given_gram_matrix_changes_nothing_and_nothing_is_written_to():
    D, Y, rng = problem(14, 200, 16, 40, np.float64)
    G, weights, atoms, tol = D.T @ D, rng.random(Y.shape), np.full(200, 5), np.full(200, 0.1)
    for a in (D, Y, G, weights, atoms, tol):
        a.setflags(write=False)
    with_gram = encode(D, Y, gram=G, atoms=atoms, tol=tol)
    without = encode(D, Y, atoms=atoms, tol=tol)
    np.testing.assert_allclose(with_gram.toarray(), without.toarray(), atol=1e-12)
    for method in METHODS:
        encode(D, Y, atoms=atoms, method=method)
        encode(D, Y, atoms=atoms, method=method, weights=weights)


def test_one_signal_reads_only_the_rows_of_a_given_gram_matrix_that_it_needs():
    D, Y, _ = problem(25, 1, 30, 1500, np.float64)
    G, alone = D.T @ D, encode(D, Y, atoms=4)
    encode(D, Y, atoms=4, gram=G)  # compiled
    tracemalloc.start()
    codes = encode(D, Y, atoms=4, gram=G)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(codes.toarray(), alone.toarray(), atol=1e-12)
    assert peak < G.nbytes / 8
    G[codes.indices[0], 0 if codes.indices[0] else 1] = np.nan
    with pytest.raises(ValueError, match="gram contains NaN"):
        encode(D, Y, atoms=4, gram=G)


def test_layout_and_library_of_the_input_do_not_matter():
    D, Y, _ = problem(15, 100, 16, 40, np.float64)
    codes = encode(D, Y, atoms=5).toarray()
    np.testing.assert_array_equal(encode(np.asfortranarray(D), Y[::-1], atoms=5).toarray()[::-1], codes)
    np.testing.assert_array_equal(encode(D.tolist(), np.repeat(Y, 2, axis=1)[:, ::2], atoms=5).toarray(), codes)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_nothing(method, weighted):
    D, Y, rng = problem(16, 1500, 12, 30, np.float64)
    weights = rng.random(Y.shape) if weighted else None
    one, three = (encode(D, Y, atoms=4, method=method, n_jobs=jobs, weights=weights) for jobs in (1, 3))
    np.testing.assert_array_equal(one.indptr, three.indptr)
    np.testing.assert_array_equal(one.indices, three.indices)
    np.testing.assert_allclose(one.data, three.data, rtol=1e-9)


@given(seed=st.integers(0, 10**6), signals=st.integers(2, 40), dtype=st.sampled_from(DTYPES))
def test_a_code_does_not_depend_on_the_neighbours_of_its_signal(seed, signals, dtype):
    D, Y, rng = problem(seed, signals, 13, 40, dtype)
    D[:, 7], Y[rng.integers(signals)] = 2 * D[:, 3], 0  # some signals end early, some are given up
    Y[rng.random(signals) < 0.2] = D[:, 3]
    atoms, tol = rng.integers(1, 9, signals), rng.choice([0.0, 1.0, 3.0], signals)
    order = rng.permutation(signals)
    one, other = encode(D, Y, atoms=atoms, tol=tol)[order], encode(D, Y[order], atoms=atoms[order], tol=tol[order])
    np.testing.assert_array_equal(one.indptr, other.indptr)
    np.testing.assert_array_equal(one.indices, other.indices)
    np.testing.assert_allclose(one.data, other.data, rtol=1e4 * np.finfo(dtype).eps, atol=0)


def test_indices_are_sorted_and_the_format_is_sound():
    D, Y, _ = problem(17, 500, 16, 200, np.float64)
    codes = encode(D, Y, atoms=8, progress=True)
    codes.check_format(full_check=True)
    again = sp.csr_array((codes.data, codes.indices, codes.indptr), shape=codes.shape)
    assert again.has_sorted_indices and again.has_canonical_format


@pytest.mark.parametrize("weighted", [False, True])
def test_memory_does_not_grow_with_the_number_of_signals(weighted):
    D, Y, _ = problem(18, 1, 32, 400, np.float64)

    def extra(signals):
        many = np.broadcast_to(Y, (signals, 32))
        weights = np.broadcast_to(np.float64(1), many.shape) if weighted else None
        tracemalloc.start()
        codes = encode(D, many, atoms=3, weights=weights, n_jobs=2)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert codes.nnz == 3 * signals
        return peak - 3 * (codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes)

    extra(100)  # compiles
    small, large = extra(8_000), extra(40_000)
    assert large < 1.1 * small + 2**21
    assert large < 2 * D.nbytes + 12 * 400**2 + 2 * 2 * engine.WORKSPACE


def test_a_dictionary_too_large_for_its_gram_matrix_is_used_without_it(monkeypatch):
    D, Y, _ = problem(19, 300, 16, 60, np.float64)
    codes = {method: encode(D, Y, atoms=5, method=method).toarray() for method in METHODS}
    monkeypatch.setattr(engine, "GRAM", 1000)
    monkeypatch.setattr(engine, "WORKSPACE", 2**16)  # and tiles of few signals
    for method in METHODS:
        np.testing.assert_allclose(encode(D, Y, atoms=5, method=method).toarray(), codes[method], atol=1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["random", "close", "exact"])
def test_few_signals_with_a_given_gram_matrix_have_the_plain_codes(kind, dtype):
    D, Y, rng = problem(41, 4, 50, 700, dtype)
    if kind == "close":
        D[:, 1::2] = D[:, ::2] + (1e-5 * rng.standard_normal((50, 350))).astype(dtype)
    if kind == "exact":
        Y = (D[:, :90:10] @ np.ones((9, 4), dtype)).T
    codes = encode(D, Y, atoms=20, gram=D.T @ D)
    assert agree(codes, D, Y, np.full(4, 20), np.full(4, -1.0), "omp", dtype=dtype) + 4 * (kind != "random") >= 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_the_careful_way_of_every_method_has_the_plain_codes(method, dtype):
    D, Y, _ = problem(43, 4, 30, 200, dtype)
    D += D[:, :1]  # atoms of which others leave less and less
    codes = encode(D, Y, atoms=12, gram=D.T @ D, method=method)
    assert agree(codes, D, Y, np.full(4, 12), np.full(4, -1.0), method, dtype=dtype) >= 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast, "pursue", lambda *args: args[-1].fill(fast.GIVEN_UP))
        slow = encode(D, Y, atoms=12, gram=D.T @ D, method=method)
    assert (codes.indices == slow.indices).all()


def test_few_signals_notice_a_wrong_gram_matrix_by_the_atoms_they_use():
    D, Y, _ = problem(42, 1, 30, 300, np.float64)
    with pytest.raises(ValueError, match="gram is not that of D"):
        encode(D, Y, atoms=5, gram=1.1 * (D.T @ D))
    G = D.T @ D
    D[3, 17] = np.nan
    with pytest.raises(ValueError, match="column 17 of D contains NaN"):
        encode(D, Y, atoms=5, gram=G)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("signals", [1, 5])
@pytest.mark.parametrize("kind", ["random", "duplicates", "exact", "coherent", "heavy"])
def test_few_signals_on_a_large_dictionary_get_the_same_codes_through_its_copy(
    monkeypatch, kind, signals, method, dtype
):
    D, Y, rng = problem(8, signals, 60, 900, dtype)
    if kind == "duplicates":
        D[:, 1::2] = D[:, ::2]
    if kind == "exact":
        Y = (D[:, :90:10] @ np.ones((9, signals), dtype)).T
    if kind == "coherent":  # a copy in 8 bits rules nobody out
        D = (D[:, :1] + 1e-3 * D).astype(dtype)
    if kind == "heavy":
        D = (D * rng.standard_t(1, D.shape)).astype(dtype)
    tol = np.array([0.0, 0.3, 0.5, 0.9, 2.0])[:signals] * np.linalg.norm(Y, axis=1)
    assert isinstance(engine.begin(Request.of(D, Y, 20, tol, method, None, None, None, None))[0], engine.Direct)
    expected = encode(D, Y, atoms=20, tol=tol, method=method)
    monkeypatch.setattr(engine, "CACHED", 1)
    seen = watch(monkeypatch, engine.alone, "chase")
    codes = encode(D, Y, atoms=20, tol=tol, method=method)
    assert len(seen) == signals and (method == "omp" or kind in ("coherent", "heavy") or fast.GIVEN_UP not in seen)
    same = 1 + (kind == "duplicates")  # of two atoms that are one, either will do
    assert (codes.indptr == expected.indptr).all() and (codes.indices // same == expected.indices // same).all()
    far = 100 if kind != "coherent" else 1e5
    rounding = far * np.finfo(dtype).eps
    np.testing.assert_allclose(codes.data, expected.data, rtol=rounding, atol=rounding * (kind == "exact"))


def watch(monkeypatch, module, name):
    """What a function returned, call by call."""
    found, function = [], getattr(module, name)

    def call(*args):
        found.append(function(*args))
        return found[-1]

    monkeypatch.setattr(module, name, call)
    return found


def nearly_dependent(signals, n, which):
    """A problem in which the signal numbered `which` takes two atoms that are nearly parallel."""
    D, Y, _ = problem(31, signals, 40, n, np.float64, spread=0.0)
    D[:2], D[:, :2] = 0, 0
    D[0, :2], D[1, 1] = 1, 0.02
    Y[which] = [1, 0.3, *(1e-4 * Y[which, 2:])]
    return D, Y


@pytest.mark.parametrize("method", ["omp", "ols"])
def test_one_signal_with_a_nearly_dependent_atom_is_done_again_from_the_residual(monkeypatch, method):
    monkeypatch.setattr(engine, "CACHED", 1)
    D, Y = nearly_dependent(1, 400, 0)
    seen = watch(monkeypatch, engine.alone, "chase")
    assert agree(encode(D, Y, atoms=20, method=method), D, Y, [20], [-1.0], method) == 1
    assert seen == [engine.fast.GIVEN_UP]


def test_a_signal_that_is_done_again_may_have_a_smaller_limit_than_its_neighbours(monkeypatch):
    monkeypatch.setattr(engine, "CACHED", 1)
    D, Y = nearly_dependent(7, 900, 1)
    limits = [20, 16, 20, 16, 20, 20, 20]
    seen = watch(monkeypatch, engine.alone, "chase")
    assert agree(encode(D, Y, atoms=limits, n_jobs=1), D, Y, limits, np.full(7, -1.0), "omp") == 7
    assert engine.fast.GIVEN_UP in seen


@pytest.mark.parametrize(
    ("way", "dtype", "k", "lost"),
    [("alone", np.float64, 40, 1e6), ("gram", np.float64, 40, 1e6), ("gram", np.float32, 16, 1e5)],
)
def test_clear_pivots_that_lose_digits_together_are_noticed(monkeypatch, way, dtype, k, lost):
    monkeypatch.setattr(engine, "CACHED", 1)
    i, s = np.arange(k), 0.011 ** (0.5 / (k - 1))  # Kahan's matrix: no pivot is small, the condition is enormous
    R = s ** i[:, None] * (np.triu(np.full((k, k), -np.sqrt(1 - s * s)), 1) + np.eye(k)) * 0.7**i
    noise = 1e-12 * 0.7**k * np.random.default_rng(0).standard_normal((k, 300))
    D, Y = np.hstack([R, noise]).astype(dtype), np.ones((1, k), dtype)
    alone, shared = (watch(monkeypatch, *of) for of in ((engine.alone, "chase"), (engine.careful, "walk")))
    codes = encode(D, Y, atoms=k - 4, **({"gram": D.T @ D} if way == "gram" else {}))
    assert alone == [engine.fast.GIVEN_UP] if way == "alone" else len(shared) == 1
    A = D[:, codes.indices].astype(float)
    r = Y[0] - A @ codes.data
    assert codes.nnz == k - 4
    assert (np.abs(A.T @ r) <= lost * np.finfo(dtype).eps * np.linalg.norm(A, axis=0)).all()


@pytest.mark.parametrize("method", ["omp", "ols"])
@given(seed=st.integers(0, 10**6), d=st.integers(20, 70), n=st.integers(40, 400), threads=st.integers(1, 2))
def test_a_signal_alone_has_the_plain_code(method, seed, d, n, threads):
    D, Y, _ = problem(seed, 1, d, n if method == "omp" else n // 4 + 30, np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CACHED", 1)
        assert isinstance(engine.begin(Request.of(D, Y, 16, None, method, None, None, None, None))[0], engine.Alone)
        agree(encode(D, Y, atoms=16, n_jobs=threads, method=method), D, Y, [16], [-1.0], method)


@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("claimed", [1, 2])
def test_a_helper_who_takes_the_first_pieces_and_is_not_heard_of_again_changes_nothing(claimed, method):
    D, Y, _ = problem(36, 1, 40, 400, np.float64)
    Y += 10 * D[:, 3]  # the first atom is in the first piece
    found = []
    for taken in (0, claimed):
        team = Team(np.ascontiguousarray(D.T), np.linalg.norm(D, axis=0), screening.copy(D), 2, 16, method == "ols")
        team.board[CLAIMED, 0] = taken
        atoms, x = np.zeros(16, np.int32), np.zeros(16)
        assert alone.chase(team, Y[0], 16, -np.inf, 1e-14, atoms, x) == 16
        found.append([atoms, x])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_helpers_change_nothing_nor_do_many_columns(monkeypatch, method, dtype):
    D, Y, _ = problem(38, 4, 300, 3000, dtype)
    expected = encode(D, Y, atoms=25, method=method)
    monkeypatch.setattr(engine, "CACHED", 1)
    for y, code in zip(Y, expected, strict=True):
        one, two = (encode(D, y[None], atoms=25, method=method, n_jobs=jobs) for jobs in (1, 2))
        assert (one != two).nnz == 0 and set(one.indices) == set(code.nonzero()[-1])


@pytest.mark.parametrize("method", ["omp", "ols"])
def test_a_residual_of_exactly_zero_is_an_end(monkeypatch, method):
    D, _, _ = problem(39, 1, 60, 300, np.float64)
    D[:, 1::2] = 50 * np.eye(60)[:, np.arange(150) % 60]
    Y = D[:, [3, 7, 31]].sum(axis=1)[None]
    monkeypatch.setattr(engine, "CACHED", 1)
    seen = watch(monkeypatch, engine.alone, "chase")
    assert list(encode(D, Y, atoms=20, method=method).indices) == [3, 7, 31] and seen == [3]


def test_ols_of_noise_on_columns_that_8_bits_do_not_tell_apart_is_left_to_products(monkeypatch):
    D, Y, _ = problem(40, 1, 200, 1000, np.float64)
    D[0] += 200  # next to which 8 bits know little of the other entries
    Y[0, 0] = 0
    expected = encode(D, Y, atoms=40, method="ols")
    monkeypatch.setattr(engine, "CACHED", 1)
    seen = watch(monkeypatch, engine.alone, "chase")
    assert (encode(D, Y, atoms=40, method="ols").indices == expected.indices).all() and seen == [fast.GIVEN_UP]


def test_what_the_copy_knows_of_the_rest_of_an_atom_holds_it():
    D, Y, _ = problem(35, 1, 60, 1500, np.float64)
    A, norms = np.ascontiguousarray(D.T), np.linalg.norm(D, axis=0)
    team = Team(A, norms, screening.copy(D), 1, 20, ols=True)
    atoms, x = np.zeros(20, np.int32), np.zeros(20)
    assert alone.chase(team, Y[0], 20, -np.inf, 1e-14, atoms, x) == 20
    Q, low, high, exact, whole, seen, _ = team.lefts  # of the time before the last atom
    others = np.setdiff1d(np.arange(1500), atoms)
    assert np.abs(Q[:19] @ Q[:19].T - np.eye(19)).max() < 1e-12
    squares = np.vstack([np.zeros(1500), np.cumsum((Q[:19] @ D) ** 2, axis=0)])
    rest = norms**2 - squares[19]
    assert ((low < rest) & (rest < high))[others[seen[others] < 19]].all() and np.isinf(low[atoms]).all()
    known = others[seen[others] >= 0]
    np.testing.assert_allclose(exact[known], norms[known] ** 2 - squares[seen[known], known], rtol=1e-12)
    assert (high[others] - low[others] < 0.3 * whole[others]).all() and 0 < len(known) < 100


@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_a_signal_alone_of_any_scale(monkeypatch, scale, method):
    monkeypatch.setattr(engine, "CACHED", 1)
    D, Y, _ = problem(33, 1, 50, 300, np.float64)
    codes, like = (encode(D * by, Y / by, atoms=16, method=method) for by in (scale, 1.0))
    assert (codes.indices == like.indices).all()
    np.testing.assert_allclose(codes.data * scale * scale, like.data, rtol=1e-12)


def test_dtype_says_what_is_computed():
    D, Y, _ = problem(20, 50, 16, 40, np.float64)
    assert encode(D, Y, atoms=3, dtype="float32").dtype == np.float32
    assert encode(D.astype(np.float32), Y, atoms=3, dtype=np.float64).dtype == np.float64
    whole = encode(np.eye(3, dtype=int), np.arange(6).reshape(2, 3), atoms=3)
    np.testing.assert_array_equal(whole.toarray(), np.arange(6).reshape(2, 3))


# -------------------------------------------------------------------------------------- numba


def run(code, **environment):
    import os

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SAME = """
import numpy as np
from pursuit.encode import encode
rng = np.random.default_rng(0)
D, Y = rng.standard_normal((16, 100)), rng.standard_normal((300, 16))
print(encode(D, Y, atoms=5).indices.sum())
print([encode(D, Y, atoms=5, method=method).indices.sum() for method in ("ols", "nnomp", "mp")])
print(encode(D, Y, atoms=5, method="nnomp", weights=rng.uniform(0, 1, Y.shape)).indices.sum())
from pursuit.encode import engine
engine.CACHED = 1
D, Y = rng.standard_normal((50, 300)), rng.standard_normal((1, 50))
print(encode(D, Y, atoms=20).indices, encode(D, Y, atoms=20, method="ols").indices)
"""


def test_numba_is_imported_by_the_first_call_and_not_before():
    code = "import sys, pursuit, pursuit.encode; print('numba' in sys.modules)"
    assert run(code) == "False"


def test_it_runs_where_nothing_can_be_kept_on_disk_and_on_narrow_vectors(tmp_path):
    here = run(SAME)
    nowhere = "import numba.core.caching as c\nc.CacheImpl._locator_classes = []\n" + SAME
    assert run(nowhere) == here
    narrow = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(SAME, **narrow) == here
    assert run(SAME, NUMBA_ENABLE_AVX="0", NUMBA_CACHE_DIR=str(tmp_path / "plain")) == here


# ------------------------------------------------------------------------------------ bad input

D2, Y2 = np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones((3, 2))


def spoiled(a, value):
    bad = a.copy()
    bad[1, 1] = value
    return bad


CASES = {
    "no rule": (lambda: encode(D2, Y2), ValueError, "atoms and tol are both None"),
    "no atoms": (lambda: encode(D2, Y2, atoms=0), ValueError, "atoms is 0"),
    "half an atom": (lambda: encode(D2, Y2, atoms=1.5), TypeError, "atoms has dtype float64"),
    "atoms by name": (lambda: encode(D2, Y2, atoms="all"), TypeError, "atoms is <U3"),
    "atoms of two": (lambda: encode(D2, Y2, atoms=[1, 2]), ValueError, "atoms has shape (2,)"),
    "negative tol": (lambda: encode(D2, Y2, tol=[1, -1, 1]), ValueError, "tol is negative"),
    "nan tol": (lambda: encode(D2, Y2, tol=np.nan), ValueError, "tol is negative or not finite"),
    "method": (lambda: encode(D2, Y2, atoms=1, method="lars"), ValueError, "method is 'lars'"),
    "one signal": (lambda: encode(D2, Y2[0], atoms=1), ValueError, "Y has shape (2,)"),
    "shapes": (lambda: encode(D2, Y2.T, atoms=1), ValueError, "Y has shape (2, 3) and D (2, 2)"),
    "no columns": (lambda: encode(D2[:, :0], Y2, atoms=1), ValueError, "D has shape (2, 0)"),
    "nan in D": (lambda: encode(spoiled(D2, np.nan), Y2, atoms=1), ValueError, "column 1 of D contains NaN"),
    "zero atom": (lambda: encode(D2 * [1, 0], Y2, atoms=1), ValueError, "column 1 of D is zero"),
    "nan in Y": (lambda: encode(D2, spoiled(Y2, np.nan), atoms=1), ValueError, "row 1 of Y contains NaN"),
    "infinity in Y": (lambda: encode(D2, spoiled(Y2, np.inf), atoms=1), ValueError, "row 1 of Y contains NaN or inf"),
    "complex": (lambda: encode(D2 * 1j, Y2, atoms=1), TypeError, "D is complex"),
    "strings": (lambda: encode(D2, Y2.astype(str), atoms=1), TypeError, "Y has dtype <U32"),
    "mixed": (lambda: encode(D2, Y2.astype(np.float32), atoms=1), TypeError, "D and Y should have one dtype"),
    "half precision": (lambda: encode(D2.astype("f2"), Y2.astype("f2"), atoms=1), TypeError, "D has dtype float16"),
    "dtype": (lambda: encode(D2, Y2, atoms=1, dtype=int), TypeError, "dtype is <class 'int'>"),
    "no dtype": (lambda: encode(D2, Y2, atoms=1, dtype="many"), TypeError, "dtype is 'many'"),
    "gram shape": (lambda: encode(D2, Y2, atoms=1, gram=np.eye(3)), ValueError, "gram has shape (3, 3)"),
    "gram of another": (lambda: encode(D2, Y2, atoms=1, gram=2 * np.eye(2)), ValueError, "gram is not that of D"),
    "nan in gram": (lambda: encode(D2, Y2, atoms=1, gram=np.full((2, 2), np.nan)), ValueError, "gram contains NaN"),
    "gram and weights": (
        lambda: encode(D2, Y2, atoms=1, gram=D2.T @ D2, weights=Y2),
        ValueError,
        "gram was given with",
    ),
    "weights shape": (lambda: encode(D2, Y2, atoms=1, weights=np.ones(2)), ValueError, "weights has shape (2,)"),
    "weights of fewer": (lambda: encode(D2, Y2, atoms=1, weights=np.ones((2, 2))), ValueError, "weights have shape"),
    "negative weights": (lambda: encode(D2, Y2, atoms=1, weights=-Y2), ValueError, "weights contain negative"),
    "no threads": (lambda: encode(D2, Y2, atoms=1, n_jobs=0), ValueError, "n_jobs is 0"),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_told_in_one_sentence(case):
    call, kind, words = CASES[case]
    with pytest.raises(kind, match=re.escape(words)) as told:
        call()
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 160
