"""Attacks on the error bounds of the cheap searches: contests so close that too small a bound names a wrong atom.

`native/fast.h` says how atoms, signals, Gram rows and weights are rounded. Each attack makes the errors that one term
of a bound is for as large as they can be, and lets two atoms be nearly equal. One search is asked at a time.
"""

import numpy as np
import pytest
from codes import ChainRun, unit_atoms

ATOM_SCALE, SIGNAL_NORM, SHORT_MAX = 32700, 65000, 32767
LONGEST = 1 + 1e-6  # what the kernel takes for the norm of the longest atom, where that is 1
UNIT = LONGEST / ATOM_SCALE  # of atoms in 16 bits


def with_longest_atom(whole, signal):
    """A dictionary of `whole` numbers of units, one more atom of norm 1, and a signal that 16 bits hold as it is: an
    entry in which no atom is fills its norm up to the largest that is allowed."""
    d, n = whole.shape
    D = np.zeros((d + 2, n + 1))
    D[:d, :n], D[d, n] = whole * UNIT, 1
    filled = np.sqrt(float(SIGNAL_NORM) ** 2 - np.square(signal).sum(axis=-1, keepdims=True))
    return D, np.concatenate([signal, np.zeros_like(filled), filled], axis=-1)


def many(y, rng):
    """Signals that differ from y by factors only, so that a pursuit meets the same contest each time."""
    return y * rng.uniform(0.1, 10, (40, 1)) * rng.choice([-1, 1], (40, 1))


def in_integers(D, y):
    """Products of atoms and signal as rounded to 16 bits."""
    return np.abs(np.rint(y) @ np.rint(D / UNIT))


@pytest.mark.parametrize("k", [700, 1200, 1600])
@pytest.mark.parametrize("swapped", [False, True])
def test_atoms_that_lose_by_rounding_to_16_bits_are_found(k, swapped):
    rng = np.random.default_rng(k)
    signs, better = rng.choice([-1, 1], 400), np.full(400, k + 0.49)  # all entries are rounded down
    worse = np.where(np.arange(400) < 391, k + 0.51, k - 0.49)  # all are rounded up; their mean is k + 0.4875
    order = [1, 0] if swapped else [0, 1]
    D, y = with_longest_atom(signs[:, None] * np.column_stack([better, worse])[:, order], 3249.0 * signs)
    best, second = np.argsort(order)
    assert abs(D[:, best] @ y) > abs(D[:, second] @ y)
    lead = in_integers(D, y)[[second, best]] / 2**16
    assert lead[0] - lead[1] > 18  # units by which the wrong atom leads in 16 bits
    found = ChainRun(D, many(y, rng), 1, only="int16")
    assert found.counts == {"int16": 40} and set(found.codes.indices) == {best}


@pytest.mark.parametrize("swapped", [False, True])
def test_signals_that_lose_by_rounding_to_16_bits_are_coded_right(swapped):
    rng, half = np.random.default_rng(0), np.arange(400) < 200
    better, worse = np.where(half, 2300.0, 0.0), np.where(half, 0.0, 2300.0)
    worse[-4:] -= 1
    order = [1, 0] if swapped else [0, 1]
    D, y = with_longest_atom(np.column_stack([better, worse])[:, order], np.where(half, 3000.49, 3000.51))
    best, second = np.argsort(order)
    assert abs(D[:, best] @ y) > abs(D[:, second] @ y)
    lead = in_integers(D, y)[[second, best]] / 2**16
    assert lead[0] - lead[1] > 6
    found = ChainRun(D, many(y, rng), 1, only="int16")
    assert found.counts == {"int16": 40} and set(found.codes.indices) == {best}


def close_triples(rng, count):
    """Three atoms in whole numbers: the other two are nearly parallel to the first, and their products with it are half
    way between the 16-bit integers that stand for them."""
    A = rng.standard_normal((400 * count, 3, 3))
    A /= np.linalg.norm(A, axis=1)[:, None]
    share = rng.uniform(0.9, 0.97, (len(A), 1, 1))
    A[:, :, 1:] = share * A[:, :, :1] * rng.choice([-1, 1], (len(A), 1, 2)) + np.sqrt(1 - share**2) * A[:, :, 1:]
    A *= ATOM_SCALE * np.array([0.985, 0.97, 0.97]) / np.linalg.norm(A, axis=1)[:, None]
    A = np.rint(A)
    first = A[:, :, 0] / np.linalg.norm(A[:, :, 0], axis=1)[:, None]
    products = SHORT_MAX / ATOM_SCALE * np.einsum("ki,kij->kj", first, A[:, :, 1:])
    return A[np.argsort(np.abs(products % 1 - 0.5).max(axis=1))[:count]]


def test_gram_rows_and_weights_in_16_bits_are_not_believed():
    rng, solved = np.random.default_rng(0), 0
    for A in close_triples(rng, 600):
        Q = np.linalg.qr(A[:, :1], mode="complete")[0][:, 1:]
        r = Q @ np.linalg.solve((Q.T @ A[:, 1:]).T, [1.0, rng.choice([-1, 1])])  # with which both correlate as much
        r = rng.uniform(0.05, 0.3, (5000, 1)) * (r / np.linalg.norm(r))
        first = A[:, 0] / np.linalg.norm(A[:, 0]) * np.sqrt(1 - np.square(r).sum(axis=1, keepdims=True))
        D, Y = with_longest_atom(A, np.rint(0.9998 * SIGNAL_NORM * (first + r)))
        found, exact = (ChainRun(D, Y, 2, only=name) for name in ("int16", "full"))
        rows = found.solved["int16"]
        assert (found.codes[rows].indices == exact.codes[rows].indices).all()
        solved += len(rows)
    assert solved > 0.98 * 600 * 5000


def test_weights_that_16_bits_cannot_hold_are_not_rounded_to_them():
    D = np.eye(60)[:, [0, 1, 2]] + np.eye(60)[:, [1, 0, 3]] * [0.9, 0.9, 0]
    Y = np.outer(np.arange(1.0, 9), D @ [6, -5, 0.05])  # a short signal of long parts
    assert ChainRun(D, Y, 3, only="int16").counts == {"int16": 0}
    codes = ChainRun(D, Y, 3).codes.toarray()
    np.testing.assert_allclose(codes, np.outer(np.arange(1.0, 9), [6, -5, 0.05]), rtol=1e-12)


@pytest.mark.parametrize("d", [2, 7, 64, 400, 512])
def test_the_largest_products_do_not_leave_32_bits(d):
    D, _, _ = unit_atoms(d, 0, d, 40)
    D[:, 20:] = 0.85 * D[:, :20]  # products that wrap would be smaller than these
    D = D[:, ::-1].copy()
    found = ChainRun(D, D.T.copy(), 1, only="int16")  # no product is larger than that of an atom with itself
    assert found.counts == {"int16": 40}
    assert (found.codes.indices == np.abs(D.T @ D).round(9).argmax(axis=1)).all()


def test_sums_in_float32_that_round_one_way_are_not_believed():
    d, tick = 1001, 2.0**-23
    y, better, worse = (np.empty(d) for _ in range(3))
    y[0], y[1:] = 1, 2.0**-12
    better[0], better[1:] = 1 + 2**-10, 0.49 * 2**-11  # every product is below half a tick of the sum, and is lost
    worse[0], worse[1:] = 1 + 2**-10 - 25 * tick, 0.51 * 2**-11  # every one counts as a tick
    for order in ([0, 1], [1, 0]):
        D = np.column_stack([better, worse, np.zeros(d)])[:, [*order, 2]]
        D[5, 2] = 0.5
        best = order.index(0)
        assert np.argmax(np.abs(y @ D)) == best
        found = ChainRun(D, np.outer([1, -2, 4, -8, 16, 32, -64, 0.5], y), 1, only="float32")
        assert found.counts == {"float32": 8} and set(found.codes.indices) == {best}


def equal_merits(rng, method, coherence, small, near):
    """Two atoms, then two more whose merits differ by about `near`, and signals of which the first two leave little."""
    A = rng.standard_normal((4, 4)) + coherence * rng.standard_normal((4, 1))
    A /= np.linalg.norm(A, axis=0)
    Q = np.linalg.qr(A[:, :2], mode="complete")[0][:, 2:]
    B = Q.T @ A[:, 2:]
    if method == "ols":
        B /= np.linalg.norm(B, axis=0)
    merits = np.array([np.ones(2000), rng.choice([-1, 1]) * (1 + near * rng.standard_normal(2000))])
    r = (Q @ np.linalg.solve(B.T, merits)).T
    first = rng.standard_normal((2000, 2)) @ A[:, :2].T
    return A, first / np.linalg.norm(first, axis=1)[:, None] + small * r / np.linalg.norm(r, axis=1)[:, None]


@pytest.mark.parametrize(
    ("method", "coherence", "small", "near"), [("omp", 6, 0.1, 1e-5), ("ols", 3, 1e-3, 1e-4), ("ols", 3, 1e-4, 1e-3)]
)
def test_correlations_in_float32_after_some_atoms_are_not_believed(method, coherence, small, near):
    solved = 0
    for seed in range(100):
        D, Y = equal_merits(np.random.default_rng(seed), method, coherence, small, near)
        found, exact = (ChainRun(D, Y, 3, method=method, only=name) for name in ("float32", "full"))
        rows = found.solved["float32"]
        assert (found.codes[rows].indices == exact.codes[rows].indices).all()
        solved += len(rows)
    assert solved > 0.9 * 100 * 2000
