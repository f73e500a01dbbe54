"""Disjoint groups and the k-support norm: oracles against brute force, gauges against cvxpy, the group lasso."""

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.active import ActiveSet
from pursuit.arrays import Space
from pursuit.refine.regroup import GroupBall

LISTS = [[0, 4], [1], [2, 3, 5]]
LABELS = np.array([0, 1, 2, 2, 0, 2])
WEIGHTS = np.array([0.5, 2.0, 1.0])


def gaussian(seed, shape=6):
    return np.random.default_rng(seed).standard_normal(shape)


def group_lasso(seed, rows=60, groups=20, size=5, true=4, noise=0.1):
    rng = np.random.default_rng(seed)
    X, beta = rng.standard_normal((rows, groups * size)), np.zeros((groups, size))
    beta[rng.choice(groups, true, replace=False)] = rng.standard_normal((true, size))
    y = X @ beta.ravel()
    y += noise * np.linalg.norm(y) / math.sqrt(rows) * rng.standard_normal(rows)
    return X, y, np.arange(groups * size) // size, float(np.linalg.norm(beta, axis=1).sum())


# ------------------------------------------------------------------ oracles and gauges


@given(seed=st.integers(0, 200))
def test_the_oracle_of_groups_is_the_best_of_all_groups(seed):
    g = gaussian(seed)
    A = ps.Groups(LISTS, WEIGHTS)
    merits = [np.linalg.norm(g[G]) / w for G, w in zip(LISTS, WEIGHTS, strict=True)]
    best = A.lmo(g)
    assert best.vector @ g == pytest.approx(-max(merits))
    assert best.source[0] == int(np.argmax(merits))
    assert [a.source[0] for a in A.best(g, 3)] == np.argsort(-np.array(merits)).tolist()


@given(seed=st.integers(0, 200), k=st.integers(1, 6))
def test_the_oracle_of_the_k_support_norm_is_the_best_of_all_supports(seed, k):
    g = gaussian(seed)
    supports = [list(places) for places in itertools.combinations(range(6), k)]
    best = ps.KSupport(6, k).lmo(g)
    assert best.vector @ g == pytest.approx(-max(np.linalg.norm(g[places]) for places in supports))
    assert np.count_nonzero(best.vector) <= k


@pytest.mark.parametrize("seed", range(4))
def test_the_gauge_of_groups_is_the_dual_of_the_oracle(seed):
    x, d = gaussian(seed), cp.Variable(6)
    dual = cp.Problem(cp.Maximize(x @ d), [cp.norm(d[G]) <= w for G, w in zip(LISTS, WEIGHTS, strict=True)])
    assert ps.Groups(LABELS, WEIGHTS).gauge(x) == pytest.approx(dual.solve(cp.CLARABEL), rel=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_the_k_support_norm_is_the_least_sum_over_decompositions(seed, k):
    x = gaussian(seed) * 10.0 ** -(np.arange(6.0)[:: 1 - 2 * (seed % 2)] ** (seed / 2))
    supports = [list(places) for places in itertools.combinations(range(6), k)]
    parts = [cp.Variable(k) for _ in supports]
    total = sum(np.eye(6)[:, places] @ v for places, v in zip(supports, parts, strict=True))
    least = cp.Problem(cp.Minimize(sum(cp.norm(v) for v in parts)), [total == x]).solve(cp.CLARABEL)
    assert ps.KSupport(6, k).gauge(x) == pytest.approx(least, rel=1e-6)


def test_the_widths_are_attained():
    A, d = ps.Groups(LABELS, WEIGHTS), WEIGHTS[LABELS] / np.sqrt(np.bincount(LABELS))[LABELS]
    assert -(A.lmo(d).vector @ d) == pytest.approx(A.width * np.linalg.norm(d))
    B = ps.KSupport(6, 2)
    assert -(B.lmo(np.ones(6)).vector @ np.ones(6)) == pytest.approx(B.width * math.sqrt(6))


# ------------------------------------------------------------------ atoms


@pytest.mark.parametrize("A", [ps.Groups(LABELS, WEIGHTS), ps.KSupport(6, 3)], ids=repr)
def test_the_active_set_tells_directions_apart_and_knows_equal_atoms(A, rng):
    g = rng.standard_normal(6)
    g[[2, 3, 5]] *= 10.0
    turned = g + 0.1 * np.eye(6)[2]
    hull, span = ActiveSet(Space.default((6,)), [False]), ActiveSet(Space.default((6,)), [True])
    assert hull.enter(A.lmo(g)) == hull.enter(A.lmo(4.0 * g))
    assert A.lmo(g).source[0] == A.lmo(turned).source[0]
    assert hull.enter(A.lmo(turned))[0] == 1
    assert hull.enter(A.lmo(-g))[0] == 2
    place, factor = span.enter(A.lmo(g))
    assert span.enter(A.lmo(-g)) == (place, -factor)
    assert span.enter(A.lmo(turned))[0] == 1


# ------------------------------------------------------------------ the group lasso


@pytest.mark.parametrize("refine", [None, ps.refine.Regroup()])
def test_the_group_lasso_agrees_with_cvxpy(refine):
    X, y, labels, t = group_lasso(1)
    weights = np.sqrt(np.arange(1.0, 21.0))
    A = ps.Groups(labels, weights)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(t * A.through(X)), refine=refine, stop=ps.Stop(rgap=1e-7))
    b = cp.Variable(100)
    norm = sum(w * cp.norm(b[labels == j]) for j, w in enumerate(weights))
    least = cp.Problem(cp.Minimize(cp.sum_squares(X @ b - y) / 2), [norm <= t]).solve(cp.CLARABEL)
    assert r.status is ps.Status.GAP
    assert r.value == pytest.approx(least, rel=1e-6)
    assert A.gauge(r.coef) <= t * (1 + 1e-12)
    np.testing.assert_allclose(X @ r.coef, r.x, atol=1e-10)
    assert r.check().gap == pytest.approx(r.gap, rel=1e-3, abs=1e-12 * r.value)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_moving_the_groups_together_needs_few_oracle_calls(share):
    X, y, labels, t = group_lasso(0, rows=200, groups=100, size=10, true=10)
    domain = ps.conv(share * t * ps.Groups(labels).through(X))
    r = ps.minimize(ps.LeastSquares(y), domain, refine=ps.refine.Regroup())
    assert r.status is ps.Status.GAP
    assert r.oracle_calls <= 10  # 11, 50 and 103 without
    assert r.refused == 0
    assert (np.diff(r.trace.value) <= 0).all()
    assert len({a.source[0] for a in r.atoms}) == len(r.atoms)


def test_regroup_serves_other_losses_sums_and_negative_factors():
    X, y, labels, t = group_lasso(3)
    A = -0.7 * t * ps.Groups(labels).through(X)
    ones = ps.Dictionary(np.ones((60, 1)))
    for f in (ps.Logistic(y > 0.3), ps.LeastSquares(y + 2.0), ps.Huber(y + 2.0, 0.5)):
        plain, moved = (ps.minimize(f, ps.conv(A) + ps.lin(ones, rho=1e3), refine=re, stop=ps.Stop(iterations=60))
                        for re in (None, ps.refine.Regroup()))  # fmt: skip
        assert moved.value <= plain.value * (1 + 1e-9)
        assert (np.diff(moved.trace.value) <= 1e-12 * moved.value).all()
        assert moved.check().feasible


def test_a_minimiser_inside_the_hull_leaves_weight_over():
    X, y, labels, t = group_lasso(4, rows=150)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(20 * t * ps.Groups(labels).through(X)), refine=ps.refine.Regroup())
    least = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    assert r.value == pytest.approx(least @ least / 2, rel=1e-6)
    assert r.check().feasible
    assert r.weights.sum() == pytest.approx(1.0)


def test_regroup_leaves_other_sets_and_unknown_curvature_alone(rng):
    f, y = ps.LeastSquares(rng.standard_normal(6)), rng.standard_normal(6)
    for domain in (ps.conv(ps.SignedBasis(6)), ps.lin(ps.KSupport(6, 2))):
        plain, same = (ps.minimize(f, domain, refine=refine) for refine in (None, ps.refine.Regroup()))
        np.testing.assert_array_equal(plain.trace.value, same.trace.value)
    blind = ps.Smooth(lambda x: float((x - y) @ (x - y)), lambda x: 2 * (x - y), L=2.0, mu=2.0)
    assert ps.minimize(blind, ps.conv(ps.Groups(LABELS)), refine=ps.refine.Regroup()).status is ps.Status.GAP


@pytest.mark.parametrize("seed", range(5))
def test_the_projection_on_the_group_ball_is_the_nearest_point(seed):
    v = gaussian(seed, 9) * 10.0 ** (seed - 2)
    starts = np.array([0, 2, 3, 7])
    u = cp.Variable(9)
    ball = sum(cp.norm(part) for part in (u[:2], u[2:3], u[3:7], u[7:])) <= 1
    cp.Problem(cp.Minimize(cp.sum_squares(u - v)), [ball]).solve(cp.CLARABEL)
    np.testing.assert_allclose(GroupBall(starts).project(v), u.value, atol=1e-5)


def test_k_support_regression_agrees_with_cvxpy():
    X, y, _, _ = group_lasso(5, rows=30, groups=2, size=3, true=2)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(1.5 * ps.KSupport(6, 2).through(X)), stop=ps.Stop(rgap=1e-8))
    supports = [list(places) for places in itertools.combinations(range(6), 2)]
    parts = [cp.Variable(2) for _ in supports]
    b = sum(np.eye(6)[:, places] @ v for places, v in zip(supports, parts, strict=True))
    least = cp.Problem(
        cp.Minimize(cp.sum_squares(X @ b - y) / 2), [sum(cp.norm(v) for v in parts) <= 1.5]
    ).solve(cp.CLARABEL)  # fmt: skip
    assert r.value == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(X @ r.coef, r.x, atol=1e-10)


def test_foreign_sources_name_nothing():
    A, B = ps.Groups(LABELS), ps.KSupport(6, 2)
    for source in (None, 3, (0, 1), (7, (1.0, 0.0)), (0, (1.0,)), (0, (0, (1.0,))), ((0, 9), (1.0, 0.0)), "ab"):
        assert A.rebuild(ps.Atom(np.zeros(6), source)) is None
        assert B.rebuild(ps.Atom(np.zeros(6), source)) is None
        assert A.coefficients([source], np.ones(1)) is None


@pytest.mark.parametrize("wrap", [ps.lin, ps.cone])
def test_over_a_span_or_cone_the_active_groups_are_fitted_freely(wrap):
    X, y, labels, _ = group_lasso(2)
    A = ps.Groups(labels).through(X)
    r = ps.minimize(
        ps.LeastSquares(y), wrap(A), ps.FullyCorrective(), refine=ps.refine.Regroup(), stop=ps.Stop(iterations=4)
    )
    used = np.isin(labels, sorted({a.source[0] for a in r.atoms}))
    best = np.linalg.lstsq(X[:, used], y, rcond=None)[0]
    np.testing.assert_allclose(r.coef[used], best, atol=1e-8)  # group matching pursuit
    assert used.sum() == 20


def test_groups_serve_torch_and_single_precision():
    torch = pytest.importorskip("torch")
    X, y, labels, t = group_lasso(6)
    expected = ps.minimize(
        ps.LeastSquares(y), ps.conv(0.5 * t * ps.Groups(labels).through(X)), refine=ps.refine.Regroup()
    )
    for dtype, tolerance in ((torch.float64, 1e-6), (torch.float32, 1e-3)):
        A = 0.5 * t * ps.Groups(labels).through(torch.asarray(X, dtype=dtype))
        f = ps.LeastSquares(torch.asarray(y, dtype=dtype))
        for refine in (None, ps.refine.Regroup()):
            r = ps.minimize(f, ps.conv(A), refine=refine, stop=ps.Stop(rgap=tolerance))
            assert r.status is ps.Status.GAP
            assert float(r.value) == pytest.approx(expected.value, rel=2 * tolerance)
