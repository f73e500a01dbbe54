"""Rates of later methods: formulas pinned by identities, equality cases reproduced by runs, bounds held by runs."""

from __future__ import annotations

import math
from itertools import islice, pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pursuit as ps
from pursuit import geometry, rates
from pursuit.geometry import Interval

law = settings(deadline=None, derandomize=True, max_examples=40)
constants = st.floats(0.01, 100.0)
shares = st.floats(0.01, 1.0)
qualities = st.floats(0.05, 1.0)
times = st.integers(0, 200)
seeds = st.integers(0, 10_000)
MP = ps.Plain(ps.LineSearch())


def errors(f, domain, update, steps, optimum=0.0, **how):
    return np.array([s.value - optimum for s in islice(ps.iterate(f, domain, update, **how), steps + 1)])


# ---------------------------------------------------------------------- formulas


@law
@given(constants, shares, shares, qualities, times, st.integers(0, 5))
def test_away_rate_is_geometric_in_the_good_steps(L, mu, slim, delta, t, spare):
    bound = rates.away_steps(t, mu=mu * L, L=L, width=3 * slim, diameter=3, eps0=2, delta=delta, spare=spare)
    good = max(math.ceil((t - spare) / 2), 0)
    assert rates.good_steps(t, spare=spare) == good
    assert bound == pytest.approx(2 * (1 - (delta / (1 + delta)) ** 2 * mu * slim**2) ** good, rel=1e-9)


@law
@given(constants, shares, shares, qualities, st.integers(0, 400), st.integers(1, 4))
def test_pairwise_rate_is_geometric_in_the_good_steps(L, mu, slim, delta, t, n):
    bound = rates.pairwise_steps(t, mu=mu * L, L=L, width=3 * slim, diameter=3, eps0=2, n=n, delta=delta)
    good = t // math.floor(math.e * math.factorial(n))
    assert rates.good_pairwise_steps(t, n=n) == good
    assert bound == pytest.approx(2 * (1 - delta**2 * mu * slim**2) ** good, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_there_are_as_many_arrangements_of_weights_as_pairwise_steps_without_a_good_one(n):
    arrangements = sum(1 for r in range(n + 1) for _ in permutations(range(n), r))
    good = [rates.good_pairwise_steps(t, n=n) for t in (arrangements - 1, arrangements)]
    assert good == [0.0, 1.0]


def test_many_atoms_have_more_arrangements_than_a_run_has_steps():
    assert rates.good_pairwise_steps(1e18, n=100_000) == 0.0


@law
@given(constants, constants, constants, constants, qualities, times)
def test_cone_rate_grows_its_inverse_by_the_constant_of_the_proof(L, radius, rho, eps0, delta, t):
    bound = rates.cone_pursuit(np.array([0, t, t + 1]), L=L, radius=radius, rho=rho, eps0=eps0, delta=delta)
    assert bound[0] == pytest.approx(eps0)
    assert 1 / bound[2] - 1 / bound[1] == pytest.approx(
        delta**2 / (8 * L * (rho * radius) ** 2), abs=1e-11 / bound[1], rel=1e-6
    )


@law
@given(st.floats(1.0, 100.0))
def test_lazy_quality_is_one_over_K(K):
    assert rates.lazy_quality(K) * K == pytest.approx(1.0)


@law
@given(constants, st.floats(1.1, 4.0), shares, st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_evaluations_follow_from_the_estimates(first, grow, shrink, tries):
    L = first / shrink
    for count in tries:
        L *= shrink * grow ** (count - 1)
    found = rates.backtracking_evaluations(len(tries), first=first, last=L, shrink=shrink, grow=grow)
    assert found == pytest.approx(sum(tries), rel=1e-9)


@law
@given(constants, st.floats(1.1, 4.0), constants)
def test_backtracking_multiplies_the_smoothness_unless_the_first_estimate_is_larger(L, grow, first):
    assert rates.backtracking(L=L, grow=grow, first=first) == max(grow * L, first)
    assert rates.backtracking(L=Interval(L / 2, L), grow=grow) == grow * L


@law
@given(constants, constants, constants, times)
def test_accelerated_rate_is_the_potential_over_beta(L, nu, distance, t):
    alpha = beta = 1 / (L * nu)
    for _ in range(t):
        alpha = (1 + math.sqrt(1 + 4 * L * nu * beta)) / (2 * L * nu)
        beta += alpha
    bound = rates.accelerated_pursuit(t + 1, L=L, nu=nu, distance=distance)
    exact = distance**2 / (2 * beta)
    assert bound == pytest.approx(exact) if t == 0 else exact <= bound <= 1.3 * exact


# ---------------------------------------------------------------------- equality


@pytest.mark.parametrize("n", [2, 4, 6])
def test_pairwise_step_on_a_simplex_attains_its_rate(n):
    A, d = ps.Simplex(n), np.repeat([1.0, -1.0], n // 2) / np.sqrt(n)
    x0 = np.repeat([0.0, 2.0 / n], n // 2)
    start = (x0[n // 2 :], [A.atom(i) for i in range(n // 2, n)])
    eps = errors(ps.LeastSquares(x0 + d / n), ps.conv(A), ps.Pairwise(), 1, start=start)
    width, size = geometry.pyramidal_width(A), geometry.diameter(A)
    factor = rates.pairwise_steps(5, mu=1, L=1, width=width, diameter=size, eps0=1, n=2)
    assert eps[1] / eps[0] == pytest.approx(factor, abs=1e-12)
    assert factor == pytest.approx(1 - 2 / n, abs=1e-12)


@pytest.mark.parametrize("angle", [0.3, 0.9])
def test_pairwise_step_over_a_narrow_cone_attains_its_rate(angle):
    A = ps.Dictionary(np.array([[1.0, np.cos(angle)], [0.0, np.sin(angle)]]))
    start = ([2.0], [A.atom(0)])
    eps = errors(ps.LeastSquares([2.0, 0.1]), ps.cone(A), ps.Pairwise(), 1, start=start)
    width = geometry.pyramidal_width(A, origin=True)
    assert width.upper == pytest.approx(np.sin(angle))
    factor = rates.pairwise_steps(5, mu=1, L=1, width=width, diameter=1, eps0=1, n=2)
    assert eps[1] / eps[0] == pytest.approx(factor, rel=1e-12)


@law
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=6))
def test_cone_pursuit_over_the_orthant_leaves_the_smallest_positive_residuals(y):
    y, t = np.array(y), np.arange(len(y) + 1)
    below = float(np.minimum(y, 0) @ np.minimum(y, 0)) / 2
    eps = errors(ps.LeastSquares(y), ps.cone(ps.Dictionary(np.eye(len(y)))), MP, len(y), below)
    assert rates.signed_basis(t, residual=np.maximum(y, 0)) == pytest.approx(eps, rel=1e-9, abs=1e-12)


@law
@given(seeds)
def test_a_step_that_is_not_cut_short_falls_by_its_slope_squared_over_twice_the_curvature(seed):
    rng = np.random.default_rng(seed)
    root, D = rng.standard_normal((3, 3)), rng.standard_normal((3, 6))
    f = ps.Quadratic(root @ root.T + np.eye(3), rng.standard_normal(3))
    for update in (ps.Away(), ps.Pairwise(), ps.BlendedPairwise()):
        for now, after in pairwise(islice(ps.iterate(f, ps.conv(ps.Dictionary(D)), update), 12)):
            d = after.x - now.x
            slope, curvature = now.grad @ d, d @ (after.grad - now.grad)
            if abs(after.grad @ d) < 1e-9 * abs(slope):
                assert now.value - after.value == pytest.approx(slope**2 / (2 * curvature), rel=1e-6, abs=1e-12)


# ---------------------------------------------------------------------- cones: directions per unit of weight


def test_away_over_a_cone_leaves_the_worst_atom_although_x_is_large():
    """Along -x the slope is that of the worst atom times its weight: compared as it is, a large x would win."""
    A = ps.Dictionary(np.eye(3))
    f, start = ps.LeastSquares([100.0, 100.0, 1.0]), ([100.0, 100.0, 2.0], [A.atom(i) for i in range(3)])
    eps = errors(f, ps.cone(A), ps.Away(), 1, start=start)
    assert eps == pytest.approx([0.5, 0.0], abs=1e-12)


# ---------------------------------------------------------------------- arguments


def test_intervals_are_read_at_their_safe_end():
    wide = Interval(1.0, 2.0)
    given = {"mu": wide, "L": 4, "width": wide, "diameter": Interval(2, 3), "eps0": wide}
    safe = {"mu": 1, "L": 4, "width": 1, "diameter": 3, "eps0": 2}
    assert rates.away_steps(3, **given) == rates.away_steps(3, **safe)
    assert rates.pairwise_steps(30, **given, n=2) == rates.pairwise_steps(30, **safe, n=2)
    assert rates.cone_pursuit(3, L=wide, radius=wide, rho=wide, eps0=wide) == rates.cone_pursuit(
        3, L=2, radius=2, rho=2, eps0=2
    )
    assert rates.accelerated_pursuit(3, L=wide, nu=wide, distance=wide) == rates.accelerated_pursuit(
        3, L=2, nu=2, distance=2
    )


SHAPE = {"mu": 1, "L": 1, "width": 1, "diameter": 2, "eps0": 1}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rates.away_steps(-1, **SHAPE), "t holds -1"),
        (lambda: rates.away_steps(1, **SHAPE, delta=0.0), "delta is 0"),
        (lambda: rates.away_steps(1, **SHAPE, spare=-1), "spare is -1"),
        (lambda: rates.away_steps(1, **{**SHAPE, "width": 3}), "width is 3 with diameter 2"),
        (lambda: rates.away_steps(1, **{**SHAPE, "diameter": 0}), "diameter is 0"),
        (lambda: rates.pairwise_steps(1, **SHAPE, n=0), "n is 0"),
        (lambda: rates.cone_pursuit(1, L=1, radius=1, rho=0, eps0=1), "C is 0"),
        (lambda: rates.cone_pursuit(1, L=1, radius=1, rho=1, eps0=-1), "eps0 is -1"),
        (lambda: rates.lazy_quality(0.5), "K is 0.5"),
        (lambda: rates.backtracking(L=0), "L is 0"),
        (lambda: rates.backtracking(L=1, grow=1.0), "grow is 1"),
        (lambda: rates.backtracking_evaluations(1, first=0, last=1), "first is 0"),
        (lambda: rates.backtracking_evaluations(1, first=1, last=1, shrink=1.5), "shrink is 1.5"),
        (lambda: rates.accelerated_pursuit(1, L=-1, nu=1, distance=1), "L is -1"),
    ],
)
def test_every_precondition_is_named_when_it_fails(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert words in message
    assert message.endswith(".")
    assert message.count(". ") == 0
