"""Metrics: an update in the norm of M is the Euclidean update seen through M^(1/2)."""

from itertools import islice

import numpy as np
import pytest

import pursuit as ps


def square_root(M):
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.sqrt(values)) @ vectors.T


@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize(
    "make", [lambda **k: ps.Plain(ps.ShortStep(**k)), ps.NormCorrective, lambda **k: ps.NormCorrective(inner=4, **k)]
)
def test_an_update_in_a_metric_is_the_euclidean_one_in_transformed_coordinates(make, diagonal, wrap, rng):
    d, n = 6, 15
    Q = rng.standard_normal((d, d))
    M = np.diag(rng.uniform(0.3, 3.0, d)) if diagonal else Q @ Q.T + np.eye(d)
    root = square_root(M)
    H, c, D = np.cov(rng.standard_normal((d, 30))), rng.standard_normal(d), rng.standard_normal((d, n))
    inverse = np.linalg.inv(root)
    Hu = inverse @ H @ inverse
    Hu = (Hu + Hu.T) / 2
    L = np.linalg.eigvalsh(Hu)[-1]  # smoothness of f in the norm of M
    metric = np.diag(M).copy() if diagonal else M
    here = ps.iterate(ps.Quadratic(H, c), wrap(ps.Dictionary(D)), make(L=L, metric=metric))
    there = ps.iterate(ps.Quadratic(Hu, inverse @ c), wrap(ps.Dictionary(root @ D)), make(L=L))
    for a, b in islice(zip(here, there, strict=True), 15):
        np.testing.assert_allclose(root @ a.x, b.x, atol=1e-9 * (1 + np.abs(b.x).max()))


def test_smoothness_belongs_to_the_metric_so_without_one_it_is_found_by_backtracking(rng):
    D, y = rng.standard_normal((8, 20)), rng.standard_normal(8)
    f, domain = ps.LeastSquares(y), ps.conv(ps.Dictionary(D, signed=True))
    best = ps.minimize(f, domain).value
    r = ps.minimize(f, domain, ps.NormCorrective(metric=np.full(8, 1e-4)), stop=ps.Stop(iterations=200))
    assert r.value == pytest.approx(best, rel=1e-5)


def test_in_the_kernel_metric_the_short_step_is_the_line_search_of_kernel_herding(rng):
    points = rng.standard_normal((30, 2))
    K = np.exp(-np.sum((points[:, None] - points[None]) ** 2, axis=2))
    f, domain = ps.Quadratic(K, -K @ np.full(30, 1 / 30)), ps.conv(ps.Simplex(30))
    short = ps.iterate(f, domain, ps.Plain(ps.ShortStep(L=1.0, metric=K)))
    search = ps.iterate(f, domain, ps.Plain(ps.LineSearch()))
    for a, b in islice(zip(short, search, strict=True), 20):
        np.testing.assert_allclose(a.x, b.x, atol=1e-12)


@pytest.mark.parametrize("constant", [ps.geometry.smoothness, ps.geometry.convexity])
def test_a_norm_beside_a_metric_is_refused(constant):
    with pytest.raises(ValueError, match="norm is 1 with a metric; give one of them"):
        constant(ps.LeastSquares([1.0, 2.0]), ps.SignedBasis(2), norm=1, metric=[1.0, 4.0])
