"""Every strategy alone: it gives the plain codes, leaves what it cannot prove, and solves as many signals as it should.

What each costs is measured by how many signals it solves, never by time.
"""

import numpy as np
import pytest
from codes import DTYPES, METHODS, ChainRun, agree, problem, unit_atoms

from pursuit import encode
from pursuit.coding import scheduling, strategies

WHO = {
    "int16": ["omp"],
    "float32": ["omp", "ols"],
    "full": METHODS,
    "residuals": METHODS,
    "single": ["omp", "ols"],
}
PAIRS = [(name, method) for name, methods in WHO.items() for method in methods]


@pytest.fixture
def use(monkeypatch):
    """Makes a request of any size have a strategy in its chain."""

    def prepare(name):
        if name == "residuals":
            monkeypatch.setattr(strategies, "MAX_GRAM_BYTES", 0)
        if name == "single":
            monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
            monkeypatch.setattr(strategies, "MIN_SCREENED_ATOMS", 1)
        return 5 if name == "single" else 60  # signals

    return prepare


# --------------------------------------------------------------------------- right, each of them


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_every_strategy_alone_has_the_plain_codes(use, name, method, dtype):
    signals = use(name)
    D, Y, rng = unit_atoms(1, signals, 60, 100, dtype)
    limits, tol = rng.integers(1, 9, signals), rng.choice([0.0, 0.5], signals) * np.linalg.norm(Y, axis=1)
    found = ChainRun(D, Y, limits, tol, method, only=name)
    rows = found.solved[name]
    assert len(rows) == signals
    assert agree(found.codes, D, Y, limits, tol, method) > 0.7 * signals


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["coherent", "close", "dependent", "almost exact"])
@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_what_a_strategy_cannot_prove_it_leaves(use, name, method, kind, dtype):
    signals = use(name)
    D, Y, rng = unit_atoms(2, signals, 30, 200)
    if kind == "coherent":
        D += 3 * D[:, :1]
    if kind == "close":
        D[:, 1::2] = D[:, ::2] + 1e-4 * D[:, 1::2]
    if kind == "dependent":
        D[:, 10:] = D[:, :10] @ rng.standard_normal((10, 190))
    if kind == "almost exact":
        Y = rng.uniform(1, 2, (signals, 4)) @ D[:, :4].T + 1e-5 * Y
    D, Y = (D / np.linalg.norm(D, axis=0)).astype(dtype), Y.astype(dtype)
    found = ChainRun(D, Y, 8, method=method, only=name)
    rows = found.solved[name]
    clear = agree(found.codes[rows], D, Y[rows], 8, method=method)
    last = name in ("full", "residuals")
    assert len(rows) == signals or not last
    assert clear > 0 or dtype == np.float32 or not last


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_the_full_precision_of_few_signals_is_that_of_many(method, dtype):
    D, Y, _ = problem(43, 4, 30, 200, dtype)
    D += D[:, :1]  # atoms of which others leave less and less
    few = ChainRun(D, Y, 12, gram=D.T @ D, method=method)
    assert few.counts == {"full": 4}
    assert agree(few.codes, D, Y, 12, method=method) >= 3
    many = ChainRun(D, np.tile(Y, (30, 1)), 12, method=method, only="full")
    assert (few.codes.indices == many.codes[:4].indices).all()


# --------------------------------------------------------------------- who is asked, and how often


def test_the_order_in_which_strategies_are_tried(monkeypatch):
    D, Y, _ = unit_atoms(3, 300, 40, 100)
    long, few, shared = np.vstack([D] * 13), Y[:2], {"gram": D.T @ D}
    assert list(ChainRun(D, Y, 5).solved) == ["int16", "float32", "full"]
    assert list(ChainRun(long, np.hstack([Y] * 13), 5).solved) == ["float32", "full"]  # 520 entries
    assert list(ChainRun(D, Y, 5, method="ols").solved) == ["float32", "full"]
    assert list(ChainRun(D, Y, 5, method="mp").solved) == list(ChainRun(D, Y, 5, method="nnomp").solved) == ["full"]
    assert list(ChainRun(D, Y, 5, weights=np.ones_like(Y)).solved) == ["residuals"]
    assert list(ChainRun(D, few, 5).solved) == ["residuals"]
    assert list(ChainRun(D, few, 5, **shared).solved) == ["full"]
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    assert list(ChainRun(D, few, 16).solved) == ["single", "residuals"]
    assert list(ChainRun(D, few, 15).solved) == list(ChainRun(D, few, 16, method="nnomp").solved) == ["residuals"]


def test_a_tile_that_16_bits_mostly_leave_is_not_tried_to_its_end():
    D, Y, rng = unit_atoms(14, 640, 64, 256)
    hard = np.arange(640) < 320
    Y[hard] = rng.uniform(1, 2, (320, 6)) @ D[:, :6].T + 1e-4 * Y[hard]
    assert ChainRun(D, Y[~hard], 10, only="int16").counts == {"int16": 320}
    assert ChainRun(D, Y, 10, only="int16").counts == {"int16": 0}
    assert ChainRun(D, Y[::-1], 10, only="int16").counts == {"int16": 320}
    assert ChainRun(D, Y, 10).counts["float32"] >= 320


def test_few_signals_that_16_bits_leave_are_not_worth_the_float32_tables():
    D, Y, rng = unit_atoms(9, 640, 60, 80)
    for count, asked in ((20, False), (21, True)):  # a thirty-second of the tile
        hard = rng.permutation(640)[:count]
        some = Y.copy()
        some[hard] = rng.uniform(1, 2, (count, 3)) @ D[:, :3].T + 1e-4 * some[hard]
        found = ChainRun(D, some, 5)
        assert found.counts["int16"] == 640 - count
        assert (found.counts["float32"] > 0) == asked


@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.9])
def test_signals_for_which_16_bits_do_not_suffice_have_the_plain_codes_among_others(share):
    rng = np.random.default_rng(9)
    D, Y = rng.standard_normal((30, 80)), rng.standard_normal((400, 30))
    almost = rng.random(400) < share
    Y[almost] = (D[:, :4] @ rng.uniform(1, 2, (4, 400))).T[almost] + 1e-7 * Y[almost]
    limits = rng.integers(5, 9, 400)
    found = ChainRun(D, Y, limits)
    assert agree(found.codes, D, Y, limits) > 390
    assert found.counts["int16"] <= (~almost).sum()
    assert found.counts["int16"] > 0.9 * (~almost).sum() or share > 0.5


@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_signals_that_are_combinations_of_fewer_atoms_are_not_done_twice(method, dtype):
    D, _, rng = problem(31, 0, 40, 60, dtype, spread=0.2)
    weights = np.zeros((300, 60), dtype)
    for row in weights:
        row[rng.permutation(60)[:3]] = rng.choice([-1, 1], 3) * rng.uniform(1, 2, 3)
    Y = weights @ D.T
    found = ChainRun(D, Y, 12, method=method)
    assert found.counts["int16" if method == "omp" else "float32"] == 300
    codes = encode(D, Y, atoms=12, method=method)
    assert np.mean(np.diff(codes.indptr) == 3) > 0.3  # the others have a wrong atom among them, and some more
    rest = np.linalg.norm(Y - codes @ D.T, axis=1)
    assert (rest <= 100 * np.finfo(dtype).eps * np.linalg.norm(Y, axis=1)).all()


@pytest.mark.parametrize("ridge", [0.0, 2e-5, 1e-4, 9e-4])
def test_a_gram_matrix_that_is_one_to_a_few_digits_costs_no_time(ridge):
    D, Y, _ = unit_atoms(32, 200, 40, 150)
    found = ChainRun(D, Y, 10, gram=D.T @ D + ridge * np.eye(150))
    assert found.counts == {"int16": 200, "float32": 0, "full": 0}
    assert (np.diff(found.codes.indptr) == 10).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_ols_of_atoms_of_all_norms_is_left_to_nobody_else(dtype):
    D, Y, rng = unit_atoms(3, 300, 30, 80, dtype)
    D = np.ldexp(D, rng.integers(-12, 13, 80))
    found = ChainRun(D, Y, 6, method="ols")
    assert found.counts == {"float32": 300, "full": 0}
    assert agree(found.codes, D, Y, 6, method="ols") > 280


def test_a_dictionary_too_large_for_its_gram_matrix_is_used_without_it(monkeypatch):
    D, Y, _ = problem(19, 300, 16, 60)
    codes = {method: encode(D, Y, atoms=5, method=method).toarray() for method in METHODS}
    monkeypatch.setattr(strategies, "MAX_GRAM_BYTES", 1000)
    monkeypatch.setattr(scheduling, "TILE_BYTES", 2**16)  # and tiles of few signals
    for method in METHODS:
        assert list(ChainRun(D, Y, 5, method=method).solved) == ["residuals"]
        np.testing.assert_allclose(encode(D, Y, atoms=5, method=method).toarray(), codes[method], atol=1e-11)


def test_ols_from_residuals_keeps_its_digits_over_many_turns(monkeypatch):
    D, Y, _ = unit_atoms(45, 2, 120, 130)
    monkeypatch.setattr(strategies, "MAX_GRAM_BYTES", 0)
    assert agree(encode(D, Y, atoms=80, method="ols"), D, Y, 80, method="ols") == 2


# -------------------------------------------------------------- one signal on a large dictionary


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["omp", "ols"])
@pytest.mark.parametrize("signals", [1, 5])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("kind", ["random", "duplicates", "exact", "coherent", "heavy"])
def test_few_signals_on_a_large_dictionary_get_the_same_codes_through_its_copy(
    monkeypatch, kind, layout, signals, method, dtype
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
    D = np.array(D, order=layout)
    tol = np.array([0.0, 0.3, 0.5, 0.9, 2.0])[:signals] * np.linalg.norm(Y, axis=1)
    expected = ChainRun(D, Y, 20, tol, method)
    assert expected.counts == {"residuals": signals}
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    found = ChainRun(D, Y, 20, tol, method)
    proved = found.counts["single"] == signals
    assert proved or (kind, method) in {("coherent", "ols"), ("heavy", "ols"), ("coherent", "omp")}
    codes, expected = found.codes, expected.codes
    same = 1 + (kind == "duplicates")  # of two atoms that are one, either will do
    assert (codes.indptr == expected.indptr).all() and (codes.indices // same == expected.indices // same).all()
    rounding = (100 if kind != "coherent" else 1e5) * np.finfo(dtype).eps
    np.testing.assert_allclose(codes.data, expected.data, rtol=rounding, atol=rounding * np.abs(expected.data).max())


def nearly_dependent(signals, n, which):
    """A problem in which the signal numbered `which` takes two atoms that are nearly parallel."""
    D, Y, _ = problem(31, signals, 40, n, spread=0.0)
    D[:2], D[:, :2] = 0, 0
    D[0, :2], D[1, 1] = 1, 0.02
    Y[which] = [1, 0.3, *(1e-4 * Y[which, 2:])]
    return D, Y


@pytest.mark.parametrize("method", ["omp", "ols"])
def test_one_signal_with_a_nearly_dependent_atom_is_done_again_from_the_residual(monkeypatch, method):
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    D, Y = nearly_dependent(1, 400, 0)
    found = ChainRun(D, Y, 20, method=method)
    assert found.counts == {"single": 0, "residuals": 1}
    assert agree(found.codes, D, Y, 20, method=method) == 1


def test_a_signal_that_is_done_again_may_have_a_smaller_limit_than_its_neighbours(monkeypatch):
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    D, Y = nearly_dependent(7, 900, 1)
    limits = [20, 16, 20, 16, 20, 20, 20]
    found = ChainRun(D, Y, limits)
    assert list(found.solved["residuals"]) == [1]
    assert agree(found.codes, D, Y, limits) == 7


@pytest.mark.parametrize(
    ("method", "apart"), [("omp", 1e-2), ("omp", 1e-4), ("omp", 1e-6), ("ols", 0.1), ("ols", 0.03)]
)
def test_a_signal_alone_meets_close_contests_and_many_turns(monkeypatch, method, apart):
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    rng = np.random.default_rng(46)
    A, Y = rng.standard_normal((120, 150)), rng.standard_normal((7, 120))
    D = np.repeat(A, 2, axis=1) + apart * rng.standard_normal((120, 300))
    assert agree(encode(D, Y, atoms=30, method=method), D, Y, 30, method=method) >= 5


@pytest.mark.parametrize("method", ["omp", "ols"])
def test_a_residual_of_exactly_zero_is_an_end(monkeypatch, method):
    D, _, _ = problem(39, 1, 60, 300)
    D[:, 1::2] = 50 * np.eye(60)[:, np.arange(150) % 60]
    Y = D[:, [3, 7, 31]].sum(axis=1)[None]
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    found = ChainRun(D, Y, 20, method=method)
    assert list(found.codes.indices) == [3, 7, 31] and found.counts["single"] == 1


def test_ols_of_noise_on_columns_that_8_bits_do_not_tell_apart_is_left_to_products(monkeypatch):
    D, Y, _ = problem(40, 1, 200, 1000)
    D[0] += 200  # next to which 8 bits know little of the other entries
    Y[0, 0] = 0
    monkeypatch.setattr(strategies, "MIN_SCREENED_ENTRIES", 1)
    found = ChainRun(D, Y, 40, method="ols")
    assert found.counts == {"single": 0, "residuals": 1}
    assert agree(found.codes, D, Y, 40, method="ols") == 1
