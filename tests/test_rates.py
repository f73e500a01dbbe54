"""Rates: formulas pinned by identities, qualities of oracles, safe ends of intervals, preconditions. That runs keep
them, and where they are attained, `test_paper.py` tries."""

from __future__ import annotations

import math
from itertools import islice, permutations

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
times = st.integers(0, 10_000)


def errors(f, domain, update, steps, optimum=0.0, **how):
    return np.array([s.value - optimum for s in islice(ps.iterate(f, domain, update, **how), steps + 1)])


# ---------------------------------------------------------------------- the paper's bounds


@law
@given(constants, constants, qualities, times)
def test_sharp_bound_never_exceeds_the_stated_one_nor_that_of_the_largest_error(C, share, delta, t):
    eps0 = 2 * C * min(share / 100, 1.0)  # no error is larger than 2 C
    sharp = rates.matching_pursuit_affine_sharp(t, C=C, eps0=eps0, delta=delta)
    largest = rates.matching_pursuit_affine_sharp(t, C=C, delta=delta)
    assert sharp <= rates.matching_pursuit_affine(t, C=C, eps0=eps0, delta=delta) * (1 + 1e-12)
    assert sharp <= largest * (1 + 1e-12)
    assert largest == pytest.approx(8 * C / (delta**2 * t + 4))


@law
@given(constants, st.floats(0.0, 1.0), st.floats(1.0, 10.0), st.floats(0.1, 1.0))
def test_sharp_lower_bound_loses_L_where_the_stated_one_loses_mu(eps, width, L, mu):
    sharp, stated = (
        bound(eps, width=width * 1e-3, norm=1.0, L=L, mu=mu) for bound in (rates.lower_bound_sharp, rates.lower_bound)
    )
    assert (eps - sharp) * L == pytest.approx((eps - stated) * mu, abs=1e-13 * eps * L)
    assert eps - sharp == pytest.approx(eps * (width * 1e-3) ** 2 * (2 * L - mu) / L, abs=1e-13 * eps)
    assert 0 <= stated <= sharp


@law
@given(constants, constants, constants, constants, qualities, times)
def test_norm_forms_are_the_affine_forms_at_L_times_the_squared_size(L, size, rho, eps0, delta, t):
    common = {"eps0": eps0, "delta": delta}
    fw = rates.frank_wolfe(t, L=L, diameter=size, **common)
    assert fw == pytest.approx(rates.frank_wolfe_affine(t, C=L * size**2, **common))
    for plain, affine in (
        (rates.matching_pursuit, rates.matching_pursuit_affine),
        (rates.matching_pursuit_sharp, rates.matching_pursuit_affine_sharp),
    ):
        bound = plain(t, L=L, radius=size, rho=rho, **common)
        assert bound == pytest.approx(affine(t, C=L * rho**2 * size**2, **common))


@law
@given(st.integers(1, 50), st.floats(0.0, 1.0))
def test_the_two_forms_of_the_coherence_theorem_are_inverse(n, coherence):
    width = rates.mdw_from_coherence(n=n, coherence=coherence)
    if width > 0:
        assert rates.coherence(n=n, mdw=width) == pytest.approx(coherence, abs=1e-9)
    assert rates.mdw_from_coherence(n=n, coherence=1 + coherence) == 0.0  # which says nothing
    assert rates.mdw_from_coherence(n=n, coherence=Interval(coherence / 2, coherence)) == width


@law
@given(qualities, st.floats(0.0, 0.99), constants)
def test_conversion_of_qualities_is_attained_by_the_worst_point(delta, share, alpha):
    rho = share * alpha * delta
    if rho < alpha * delta:
        # A = {+-1, +-delta} and g = 1: the worst allowed answer is -delta, the worst point -rho
        reached = (-alpha * delta + rho) / (-alpha + rho)
        assert rates.delta_fw(delta, alpha, rho) == pytest.approx(reached, rel=1e-9)
    if (1 - delta) * rho < delta * alpha:
        # at the point +rho the answer z with <g, alpha z - x> = delta min <g, alpha z - x>
        answer = (rho + delta * (-alpha - rho)) / alpha
        assert rates.delta_mp(delta, alpha, rho) == pytest.approx(-answer, rel=1e-6, abs=1e-9)


@law
@given(st.integers(0, 10_000), st.floats(0.3, 1.0), st.floats(1.5, 20.0))
def test_converted_qualities_hold_for_every_answer_that_the_oracle_may_give(seed, delta, factor):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((3, 5))
    atoms, rho = np.hstack([D, -D]).T, 1.0
    alpha = factor * rho / delta
    x, g = rho * rng.dirichlet(np.ones(10)) @ atoms, rng.standard_normal(3)
    scores = atoms @ g
    for z in scores[scores <= delta * scores.min()]:
        assert alpha * z - g @ x <= rates.delta_fw(delta, alpha, rho) * (alpha * scores.min() - g @ x) + 1e-9
    for z in scores[alpha * scores - g @ x <= delta * (alpha * scores.min() - g @ x)]:
        assert z <= rates.delta_mp(delta, alpha, rho) * scores.min() + 1e-9


# ---------------------------------------------------------------------- later methods


@law
@given(constants, shares, shares, qualities, st.integers(0, 200), st.integers(0, 5))
def test_away_rate_is_geometric_in_the_good_steps(L, mu, slim, delta, t, spare):
    bound = rates.away_steps(t, mu=mu * L, L=L, width=3 * slim, diameter=3, eps0=2, delta=delta, spare=spare)
    good = max(math.ceil((t - spare) / 2), 0)
    assert rates.good_steps(t, spare=spare) == good
    assert bound == pytest.approx(2 * (1 - (delta / (1 + delta)) ** 2 * mu * slim**2) ** good, rel=1e-9)


@law
@given(constants, shares, shares, qualities, st.integers(0, 400), st.integers(1, 4))
def test_pairwise_rate_is_geometric_in_the_good_steps(L, mu, slim, delta, t, n):
    bound = rates.pairwise_steps(t, mu=mu * L, L=L, width=3 * slim, diameter=3, eps0=2, n=n, delta=delta)
    arrangements = sum(1 for r in range(n + 1) for _ in permutations(range(n), r))  # without a good step
    good = t // arrangements
    assert rates.good_pairwise_steps(t, n=n) == good
    assert bound == pytest.approx(2 * (1 - delta**2 * mu * slim**2) ** good, rel=1e-9, abs=1e-12)


@law
@given(constants, st.floats(1.1, 4.0), constants, st.floats(1.0, 100.0))
def test_backtracking_multiplies_the_smoothness_unless_the_first_estimate_is_larger(L, grow, first, K):
    assert rates.backtracking(L=L, grow=grow, first=first) == max(grow * L, first)
    assert rates.backtracking(L=Interval(L / 2, L), grow=grow) == grow * L
    assert rates.lazy_quality(K) * K == pytest.approx(1.0)


@law
@given(constants, constants, constants, st.integers(0, 200))
def test_accelerated_rate_is_the_potential_over_beta(L, nu, distance, t):
    alpha = beta = 1 / (L * nu)
    for _ in range(t):
        alpha = (1 + math.sqrt(1 + 4 * L * nu * beta)) / (2 * L * nu)
        beta += alpha
    bound = rates.accelerated_pursuit(t + 1, L=L, nu=nu, distance=distance)
    exact = distance**2 / (2 * beta)
    assert bound == pytest.approx(exact) if t == 0 else exact <= bound <= 1.3 * exact


def test_away_over_a_cone_leaves_the_worst_atom_although_x_is_large():
    """Along -x the slope is that of the worst atom times its weight: compared as it is, a large x would win."""
    A = ps.Dictionary(np.eye(3))
    f, start = ps.LeastSquares([100.0, 100.0, 1.0]), ([100.0, 100.0, 2.0], [A.atom(i) for i in range(3)])
    eps = errors(f, ps.cone(A), ps.Away(), 1, start=start)
    assert eps == pytest.approx([0.5, 0.0], abs=1e-12)


# ---------------------------------------------------------------------- intervals, shapes, preconditions

FW = {"L": 1, "diameter": 2, "eps0": 1}
LINEAR = {"mu": 1, "L": 1, "mdw": 0.5, "radius": 1, "eps0": 1}
WALK = {"mu": 1, "L": 1, "width": 1, "diameter": 2, "eps0": 1}


def test_intervals_are_read_at_their_safe_end():
    wide = Interval(1.0, 2.0)
    linear, walk = {"mu": wide, "L": 4, "eps0": wide}, {"mu": 1, "L": 4, "eps0": 2}
    grows = {  # the bounds that grow with these constants
        rates.frank_wolfe: ("L", "diameter", "eps0"),
        rates.matching_pursuit: ("L", "radius", "rho", "eps0"),
        rates.cone_pursuit: ("L", "radius", "rho", "eps0"),
        rates.accelerated_pursuit: ("L", "nu", "distance"),
        rates.affine_pursuit: ("L", "reach"),
    }
    for bound, names in grows.items():
        assert bound(3, **dict.fromkeys(names, wide)) == bound(3, **dict.fromkeys(names, 2))
    safe = rates.linear(3, mdw=1, radius=3, **walk)
    assert rates.linear(3, mdw=wide, radius=Interval(2, 3), **linear) == safe
    for bound, more in ((rates.away_steps, {}), (rates.pairwise_steps, {"n": 2})):
        safe = bound(30, width=1, diameter=3, **walk, **more)
        assert bound(30, width=wide, diameter=Interval(2, 3), **linear, **more) == safe
    assert rates.least_squares(3, diameter=4, mdw=wide, norm=wide) == rates.least_squares(3, diameter=4, mdw=1, norm=2)
    assert rates.coherence(n=2, mdw=wide) == rates.coherence(n=2, mdw=2)


@pytest.mark.parametrize(
    "bound",
    [
        lambda t: rates.frank_wolfe(t, **FW, delta=0.5),
        lambda t: rates.matching_pursuit_sharp(t, L=1, radius=1, rho=1, eps0=1, delta=0.5),
        lambda t: rates.linear(t, **{**LINEAR, "L": 2}, delta=0.5),
        lambda t: rates.signed_basis(t, residual=[1.0, 2.0]),
    ],
)
def test_bounds_are_vectorised_over_t_and_fall(bound):
    t = np.arange(6).reshape(2, 3)
    assert bound(t).shape == (2, 3)
    assert isinstance(bound(4), float)
    assert bound(t)[1, 1] == bound(4)
    assert (np.diff(bound(np.arange(20))) <= 0).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rates.frank_wolfe(-1, **FW), "t holds -1"),
        (lambda: rates.frank_wolfe([0, np.nan], **FW), "t holds nan"),
        (lambda: rates.frank_wolfe(1, L=-1, diameter=2, eps0=1), "L is -1"),
        (lambda: rates.linear(1, **{**LINEAR, "mdw": geometry.mdw(ps.Simplex(3))}), "mDW > 0"),
        (lambda: rates.linear(1, **{**LINEAR, "mdw": 2.0}), "mdw is 2.0 with radius 1"),
        (lambda: rates.linear(1, **{**LINEAR, "mu": 9.0, "mdw": 1.0}), "mu is 9"),
        (lambda: rates.matching_pursuit_affine_sharp(1, C=0), "C is 0"),
        (lambda: rates.lower_bound(-1.0, width=0.1, norm=1.0, L=1, mu=1), "eps is -1"),
        (lambda: rates.lower_bound(1.0, width=0.1, norm=0.0, L=1, mu=1), "norm is 0"),
        (lambda: rates.signed_basis(0.5, residual=[1.0]), "t is 0.5"),
        (lambda: rates.coherence(n=0, mdw=0.1), "n is 0"),
        (lambda: rates.frank_wolfe_limit(L=1, grad=[1.0], x=[1.0], z=[0.0]), "z is zero"),
        (lambda: rates.frank_wolfe_limit(L=1, grad=[1.0], x=[1.0, 2.0], z=[1.0]), "one shape"),
        (lambda: rates.delta_fw(0.5, 2, 1.5), "rho / delta_mp"),
        (lambda: rates.delta_mp(0.1, 2, 1), "alpha is 2 with rho 1"),
        (lambda: rates.away_steps(1, **WALK, spare=-1), "spare is -1"),
        (lambda: rates.lazy_quality(0.5), "K is 0.5"),
        (lambda: rates.backtracking(L=1, grow=1.0), "grow is 1"),
        (lambda: rates.random_pursuit(1, mu=1, L=1, share=0.0, eps0=1), "share is 0"),
        (lambda: rates.incoherent_pursuit(1, m=2, coherence=0.5, beyond=0.5, eps0=1), "beyond is 0.5"),
        *(
            (lambda bad=bad: rates.frank_wolfe(1, **FW, delta=bad), f"delta is {bad}; give the quality of an oracle")
            for bad in (0.0, 1.5, np.nan)
        ),
    ],
)
def test_every_precondition_is_named_when_it_fails(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert words in message
    assert message.endswith(".")
    assert message.count(". ") == 0


def test_many_atoms_have_more_arrangements_than_a_run_has_steps():
    assert rates.good_pairwise_steps(1e18, n=100_000) == 0.0
