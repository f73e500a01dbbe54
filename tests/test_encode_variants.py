"""The elastic net, prices of atoms, the Lasso with an error, codes on a simplex: at the minima of their problems."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps


def problem(rng, count=30):
    D = rng.standard_normal((12, 30)) * rng.uniform(0.5, 2.0, 30)
    return D, (rng.standard_normal((count, 30)) * (rng.random((count, 30)) < 0.1)) @ D.T + rng.standard_normal(
        (count, 12)
    )


@pytest.mark.parametrize("positive", [False, True])
def test_the_elastic_net_with_prices_fulfils_its_conditions(positive, rng):
    (D, Y), prices, W = problem(rng), rng.uniform(0.5, 2.0, 30), rng.uniform(0.0, 1.0, (30, 12)).round()
    for weights in (None, W):
        how = {"method": "lasso", "penalty": 1.5, "l2": 0.3, "prices": prices, "positive": positive}
        codes, gaps = ps.encode(D, Y, weights=weights, gaps=True, **how)
        x = codes.toarray()
        r = (Y - x @ D.T) * (1.0 if weights is None else weights)
        slopes = r @ D - 0.3 * x
        np.testing.assert_allclose(slopes[x != 0], (1.5 * prices * np.sign(x))[x != 0], atol=1e-9)
        assert ((slopes if positive else abs(slopes)) <= 1.5 * prices + 1e-9).all()
        assert gaps.max() < 1e-9
        assert 0 < codes.nnz < x.size
        d, y, w = (None if a is None else a.astype(np.float32) for a in (D, Y, weights))
        single = ps.encode(d, y, weights=w, **how)
        np.testing.assert_allclose(single.toarray(), x, atol=1e-4)


@pytest.mark.parametrize("positive", [False, True])
def test_the_lasso_with_an_error_ends_at_it_with_the_smallest_sum_of_sizes(positive, rng):
    D, Y = problem(rng)
    least = np.linalg.norm(Y - ps.encode(D, Y, method="nnls") @ D.T, axis=1) if positive else 0.0
    tols = least + rng.uniform(0.05, 1.2, 30) * (np.linalg.norm(Y, axis=1) - least)
    for weights in (None, np.ones(Y.shape)):
        x = ps.encode(D, Y, method="lasso", tol=tols, positive=positive, weights=weights).toarray()
        r = Y - x @ D.T
        lengths, slopes = np.linalg.norm(r, axis=1), r @ D if positive else abs(r @ D)
        larger = np.linalg.norm(Y, axis=1) <= tols
        assert (x[larger] == 0).all()
        np.testing.assert_allclose(lengths[~larger], tols[~larger], rtol=1e-8)
        least_slope = np.where(x != 0, abs(r @ D), np.inf).min(axis=1)  # all atoms in use have the largest slope
        np.testing.assert_allclose(least_slope[~larger], slopes.max(axis=1)[~larger], rtol=1e-7)
    with pytest.raises(ValueError, match=r"tol is 0\.01 for row 0 of Y, and no code comes so near; raise it"):
        ps.encode(D[:, :3], Y, method="lasso", tol=0.01)


def test_codes_on_a_simplex_are_nearest_points_of_the_hull(rng):
    D = rng.random((12, 30))
    Y = rng.dirichlet(0.1 * np.ones(30), 30) @ D.T + 0.1 * rng.standard_normal((30, 12))
    Y[0] *= 1e3
    for weights in (None, rng.uniform(0.5, 1.0, Y.shape)):
        codes, proved = ps.encode(D, Y, method="simplex", weights=weights, gaps=True)
        x = codes.toarray()
        assert (x >= 0).all()
        np.testing.assert_allclose(x.sum(axis=1), 1.0, atol=1e-14)
        slopes = ((x @ D.T - Y) * (1.0 if weights is None else weights)) @ D
        gaps = (x * slopes).sum(axis=1) - slopes.min(axis=1)  # of Frank and Wolfe
        assert (gaps <= 1e-9 * np.square(Y).sum(axis=1)).all()
        np.testing.assert_allclose(proved, gaps, rtol=1e-6, atol=1e-12 * np.square(Y).sum(axis=1).max())
    alone = ps.minimize(ps.LeastSquares(Y[3]), ps.conv(ps.Dictionary(D)), stop=ps.Stop(rgap=1e-12))
    np.testing.assert_allclose(D @ ps.encode(D, Y, method="simplex").toarray()[3], alone.x, atol=1e-6)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"atoms": 3, "l2": 1.0}, "l2 and prices belong to method='lasso'"),
        ({"method": "lasso", "penalty": 1.0, "prices": np.ones(3)}, "a positive number for each of the 30 atoms"),
        ({"method": "lasso", "penalty": 1.0, "l2": -1.0}, "l2 is -1.0; give a number of at least 0"),
        ({"method": "lasso", "penalty": 1.0, "tol": 1.0}, "penalty is 1.0, and the Lasso with tol"),
        ({"method": "lasso", "tol": 0.0}, "the least tol is 0.0; give positive numbers"),
        ({"method": "simplex", "tol": 1.0}, "tol is 1.0, and codes on a simplex cannot have it"),
    ],
)
def test_what_the_variants_do_not_have_is_refused(how, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        ps.encode(*problem(rng), **how)


@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]), st.booleans())
def test_gaps_on_a_simplex_are_not_below_those_to_its_vertices_in_rational_numbers(seed, dtype, weighted):
    """No weights of 0 or 1, nor those of the code itself divided by their sum, are better than the gap allows."""
    rng = np.random.default_rng(seed)
    (d, n), sizes = rng.integers(1, 7, 2), 10.0 ** rng.integers(-3, 4, 2)
    D, Y = (
        (size * rng.standard_normal(shape)).astype(dtype) for size, shape in zip(sizes, ((d, n), (2, d)), strict=True)
    )
    W = (rng.integers(0, 3, Y.shape) * rng.random(Y.shape)).astype(dtype) if weighted else np.ones(Y.shape, dtype)
    codes, gaps = ps.encode(D, Y, method="simplex", weights=W if weighted else None, gaps=True)
    exactly = np.vectorize(Fraction, otypes=[object])
    A, X = exactly(D.astype(float)), exactly(codes.toarray().astype(float))
    for y, w, x, gap in zip(exactly(Y.astype(float)), exactly(W.astype(float)), X, gaps, strict=True):
        value, *others = ((w * (y - A @ b) ** 2).sum() / 2 for b in (x, x / x.sum(), *exactly(np.eye(n))))
        assert value - min(others) <= Fraction(gap)


@pytest.mark.parametrize("y", [[-1e12, -3e11], [1e16, 3e15], [1e11, 3e10]])
def test_codes_of_signals_far_from_a_simplex_are_vertices(y):
    codes, gaps = ps.encode(np.eye(2), np.array([y]), method="simplex", gaps=True)
    assert codes.toarray().tolist() == [[float(y[0] > y[1]), float(y[1] > y[0])]]
    assert gaps[0] <= 1e-9 * np.square(y).sum()
