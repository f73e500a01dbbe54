"""Constants of f over a set of atoms: rho, curvature and strong convexity; and the coherence of atoms."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from geometries import Listed, OracleOnly, law, positive_definite, seeds, unit_columns
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit import geometry as geo
from pursuit.geometry import Interval, polytope
from pursuit.geometry.shapes import shape_of

# ---------------------------------------------------------------------- rho


@pytest.mark.parametrize("seed", range(4))
def test_rho_is_the_largest_gauge_in_the_sublevel_set_of_a_quadratic(seed):
    rng = np.random.default_rng(seed)
    A, H = ps.Dictionary(unit_columns(seed, 3, 5), signed=True), positive_definite(seed, 3)
    f, x0 = ps.Quadratic(H, rng.standard_normal(3)), rng.standard_normal(3)
    found = geo.rho(A, f, x0)
    assert found.exact
    centre = -np.linalg.solve(H, f.c)
    reach = math.sqrt(2 * (f.value(x0) - f.value(centre)))
    rim = np.linalg.solve(np.linalg.cholesky(H).T, rng.standard_normal((3, 1500)))
    rim *= reach / np.sqrt(np.einsum("ij,ik,kj->j", rim, H, rim))
    vertices = np.linalg.norm(shape_of(A).polar(), axis=1)
    assert vertices.max() == pytest.approx(1 / geo.mdw(A).upper, rel=1e-9)
    gauges = (shape_of(A).polar() @ (centre[:, None] + rim)).max(axis=0)
    assert found.upper >= gauges.max()
    assert gauges.max() >= 0.97 * found.lower
    states = ps.minimize(f, ps.lin(A), ps.Plain(ps.LineSearch()), start=x0, stop=ps.Stop(iterations=20))
    assert geo.gauge(A, states.x).upper <= found.upper


def test_rho_of_the_signed_basis_adds_the_l1_norm_and_the_spread():
    y = np.array([3.0, -4.0, 1.0])
    found = geo.rho(ps.SignedBasis(3), ps.LeastSquares(y), np.zeros(3))
    assert found.upper == pytest.approx(np.abs(y).sum() + np.linalg.norm(y) * math.sqrt(3), rel=1e-10)
    big = geo.rho(ps.SignedBasis(20), ps.LeastSquares(np.ones(20)), np.zeros(20))  # too many vertices: bounds
    assert big.upper == pytest.approx(40.0, rel=1e-9)
    assert big.lower == 0.0  # the norm of the start


def test_rho_uses_strong_convexity_of_other_functions_and_is_infinite_without_it():
    A = ps.Dictionary(unit_columns(0, 2, 4), signed=True)
    bend = ps.Smooth(lambda x: float(x @ x) + float(np.logaddexp(0, x).sum()),
                     lambda x: 2 * x + 1 / (1 + np.exp(-x)), L=2.25, mu=2.0)  # fmt: skip
    x0 = np.array([1.0, -2.0])
    found, level = geo.rho(A, bend, x0), bend.value(x0)
    inside = [x for x in np.random.default_rng(0).uniform(-3, 3, (400, 2)) if bend.value(x) <= level]
    assert max(geo.gauge(A, x).upper for x in inside) <= found.upper < math.inf
    assert geo.gauge(A, x0).lower <= found.lower
    assert geo.rho(A, ps.Logistic([0, 1]), x0).upper == math.inf
    assert geo.rho(ps.SignedBasis(2), ps.Quadratic(np.diag([1.0, 0.0])), x0) == Interval(math.inf, math.inf)


# ---------------------------------------------------------------------- coherence


@law
@given(seeds, st.integers(2, 5), st.integers(0, 4))
def test_cumulative_coherence_is_the_largest_sum_of_products(seed, n, m):
    D, m = unit_columns(seed, 3, n), min(m, n - 1)
    G = np.abs(D.T @ D)
    sums = [sum(G[i, j] for j in some) for i in range(n) for some in combinations(set(range(n)) - {i}, m)]
    assert geo.coherence(D, m).upper == pytest.approx(max(sums))
    assert geo.coherence(ps.Dictionary(D), m) == geo.coherence(D, m)


# ---------------------------------------------------------------------- curvature and strong convexity


def bregman(f, y, x):
    value, grad = f.value_and_grad(x)
    return f.value(y) - value - grad @ (y - x)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rho", [1.0, 2.5])
def test_curvature_of_a_quadratic_is_attained_at_atoms(seed, rho):
    rng = np.random.default_rng(seed)
    D, H = rng.standard_normal((3, 5)), positive_definite(seed, 3)
    A, f = ps.Dictionary(D), ps.Quadratic(H, rng.standard_normal(3))
    atoms = rho * D.T
    pairs = [(s, v) for s in atoms for v in atoms]
    attained = {
        "fw": max(2 * bregman(f, s, v) for s, v in pairs),  # x = v, gamma = 1
        "away": max(2 * bregman(f, s, v) for s, v in pairs),  # x = v, y = v + (s - v)
        "mp": max(2 * bregman(f, v + s, v) for s, v in pairs),
    }
    for kind, value in attained.items():
        found = geo.curvature(f, A, kind, rho)
        assert found.exact
        assert found.upper == pytest.approx(value, rel=1e-9)
        bound = geo.curvature(ps.Smooth(f.value, lambda x: f.value_and_grad(x)[1], L=f.L), A, kind, rho)
        size = geo.radius(A).upper if kind == "mp" else geo.diameter(A).upper
        assert bound.lower == 0 and found.upper <= bound.upper == pytest.approx(f.L * rho**2 * size**2)


def test_symmetric_sets_have_four_times_the_curvature_for_frank_wolfe():
    A, f = ps.Dictionary(unit_columns(0, 3, 5), signed=True), ps.Quadratic(positive_definite(0, 3))
    fw, mp = geo.curvature(f, A, "fw"), geo.curvature(f, A, "mp")
    assert fw.upper == pytest.approx(4 * mp.upper)
    assert geo.curvature(f, A, "away") == fw
    far = Listed([[10.0], [11.0]])  # without 0 in the hull C^MP may exceed C^AW
    assert geo.curvature(ps.LeastSquares([0.0]), far, "mp").upper == pytest.approx(121.0)
    assert geo.curvature(ps.LeastSquares([0.0]), far, "away").upper == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_strong_convexity_of_a_quadratic_is_the_squared_width_in_its_norm(seed):
    rng = np.random.default_rng(seed)
    D, H, rho = unit_columns(seed, 3, 5), positive_definite(seed, 3), 1.7
    A = ps.Dictionary(D, signed=True)
    f = ps.Quadratic(H, -H @ (0.1 * D @ rng.dirichlet(np.ones(5))))
    found, root = geo.strong_convexity(f, A, rho), np.linalg.cholesky(H).T
    assert found.exact
    assert found.upper == pytest.approx((rho * geo.mdw(A, metric=H).upper) ** 2, rel=1e-9)
    assert found.lower >= f.mu * (rho * geo.mdw(A).lower) ** 2
    # attained: a step from the minimiser against the narrowest direction, and back
    centre = -np.linalg.solve(H, f.c)
    x = centre - 1e-3 * np.linalg.solve(root, polytope.mdw((root @ D).T, True).direction)
    grad = f.value_and_grad(x)[1]
    gamma = -grad @ (centre - x) / (rho * np.abs(D.T @ grad).max())
    assert 2 / gamma**2 * bregman(f, centre, x) == pytest.approx(found.upper, rel=1e-6)
    # a minimiser outside rho conv(A): the lower bound stands
    away = geo.strong_convexity(ps.Quadratic(H, -H @ np.full(3, 50.0)), A, rho)
    assert found.lower == pytest.approx(away.lower, rel=1e-9) and away.upper == math.inf


def test_strong_convexity_of_a_quadratic_that_falls_for_ever_is_zero():
    flat = ps.Quadratic(np.diag([1.0, 0.0]), [0.0, 1.0])  # its minimum over lin(A) does not exist
    assert geo.strong_convexity(flat, ps.SignedBasis(2)).lower == 0.0
    line = ps.SignedBasis(1).through(np.array([[1.0], [0.0]]))
    assert geo.strong_convexity(flat, line).exact  # nor is it needed here


def test_large_sets_need_no_matrices():
    n = 200_000
    A, f = ps.SignedBasis(n), ps.LeastSquares(np.zeros(n))
    assert geo.mdw(A, metric=np.full(n, 4.0)).upper == pytest.approx(2 / math.sqrt(n))
    assert geo.curvature(f, A).upper == pytest.approx(4.0)
    assert geo.strong_convexity(ps.LeastSquares(np.zeros(5000)), ps.SignedBasis(5000)).lower == pytest.approx(1 / 5000)
    assert geo.gauge(A, np.ones(n)).upper == n
    assert geo.rho(A, f, np.ones(n)).lower == n


def test_an_oracle_that_may_not_span_the_space_promises_nothing_beyond_its_span():
    line = OracleOnly(ps.Dictionary(np.array([[1.0], [0.0]]), signed=True))
    f = ps.Quadratic(np.diag([1.0, 0.0]))
    assert geo.rho(line, f, [2.0, 0.0]).upper == math.inf
    assert geo.rho(line, f, [2.0, 0.0]).lower == pytest.approx(2.0)
    assert geo.strong_convexity(f, line).lower == 0.0
    assert geo.mdw(line).lower == 0.0
    assert geo.mdw(line).upper == pytest.approx(1.0)


def test_strong_convexity_of_other_functions_lies_above_the_lemma():
    A = ps.SignedBasis(3)
    f = ps.Smooth(lambda x: float(np.cosh(x).sum()), np.sinh, L=2.0, mu=1.0)
    found = geo.strong_convexity(f, A)
    assert found.lower == pytest.approx(1 / 3)
    assert found.upper == geo.curvature(ps.Poisson([1.0, 2.0]), ps.SignedBasis(2)).upper == math.inf
    assert geo.strong_convexity(f, ps.Simplex(3)).lower == 0.0
    assert geo.strong_convexity(ps.Logistic([0, 1, 1]), A).lower == 0.0
