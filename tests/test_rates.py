"""Rates: formulas pinned by identities, equality cases reproduced by runs, bounds held by adversarial oracles."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pursuit as ps
from pursuit import geometry, rates
from pursuit.geometry import Interval, polytope

law = settings(deadline=None, derandomize=True, max_examples=40)
constants = st.floats(0.01, 100.0)
qualities = st.floats(0.05, 1.0)
times = st.integers(0, 10_000)
MP = ps.Plain(ps.LineSearch())
SHORT = ps.Plain(ps.ShortStep())


def unit_columns(seed: int, r: int, n: int) -> np.ndarray:
    D = np.random.default_rng(seed).standard_normal((r, n))
    return D / np.linalg.norm(D, axis=0)


def errors(f, domain, update, steps, start=None, oracle=None, optimum=0.0):
    states = ps.iterate(f, domain, update, start=start, oracle=oracle)
    return np.array([s.value - optimum for s in islice(states, steps + 1)])


# ---------------------------------------------------------------------- the sublinear bounds, by their induction steps


@law
@given(constants, constants, qualities, times)
def test_frank_wolfe_bound_is_the_fixed_point_of_its_induction_step(C, eps0, delta, t):
    bound = rates.frank_wolfe_affine(t, C=C, eps0=eps0, delta=delta)
    gamma = 2 / (delta * t + 2)
    step = (1 - gamma * delta) * bound + gamma**2 / 2 * (C + delta * eps0)
    assert step == pytest.approx(bound * (1 - delta / (delta * t + 2)), rel=1e-12)
    assert step <= rates.frank_wolfe_affine(t + 1, C=C, eps0=eps0, delta=delta) * (1 + 1e-12)


@law
@given(constants, constants, qualities, times)
def test_matching_pursuit_bound_is_the_fixed_point_of_its_induction_step_with_half_delta(C, eps0, delta, t):
    bound = rates.matching_pursuit_affine(t, C=C, eps0=eps0, delta=delta)
    half, gamma = delta / 2, 2 / (delta / 2 * t + 2)
    step = (1 - gamma * half) * bound + gamma**2 / 2 * (C + half * eps0)
    assert step == pytest.approx(bound * (1 - half / (half * t + 2)), rel=1e-12)
    assert step <= rates.matching_pursuit_affine(t + 1, C=C, eps0=eps0, delta=delta) * (1 + 1e-12)


@law
@given(constants, constants, qualities, times)
def test_sharp_bound_grows_its_inverse_by_delta_squared_over_eight_C_a_step(C, eps0, delta, t):
    now, after = rates.matching_pursuit_affine_sharp(np.array([t, t + 1]), C=C, eps0=eps0, delta=delta)
    assert 1 / after - 1 / now == pytest.approx(delta**2 / (8 * C), abs=1e-11 / now)
    assert rates.matching_pursuit_affine_sharp(0, C=C, eps0=eps0, delta=delta) == pytest.approx(eps0, rel=1e-12)


@law
@given(constants, constants, qualities, times)
def test_sharp_bound_never_exceeds_the_stated_one(C, share, delta, t):
    eps0 = 2 * C * min(share / 100, 1.0)
    sharp = rates.matching_pursuit_affine_sharp(t, C=C, eps0=eps0, delta=delta)
    assert sharp <= rates.matching_pursuit_affine(t, C=C, eps0=eps0, delta=delta) * (1 + 1e-12)
    assert sharp <= rates.matching_pursuit_affine_sharp(t, C=C, delta=delta) * (1 + 1e-12)


@law
@given(constants, qualities, times)
def test_sharp_bound_without_eps0_takes_the_largest_error_that_smoothness_allows(C, delta, t):
    assert rates.matching_pursuit_affine_sharp(t, C=C, delta=delta) == pytest.approx(8 * C / (delta**2 * t + 4))
    assert rates.matching_pursuit_affine_sharp(0, C=C) == pytest.approx(2 * C)


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
@given(constants, constants, constants, st.floats(0.01, 1.0), qualities, times)
def test_least_squares_corollary_is_the_sharp_bound_at_rho_over_the_width(L, radius, norm, share, delta, t):
    mdw = share * radius
    sharp = rates.least_squares_sharp(t, L=L, diameter=2 * radius, mdw=mdw, norm=norm, delta=delta)
    assert sharp == pytest.approx(rates.matching_pursuit_sharp(t, L=L, radius=radius, rho=norm / mdw, delta=delta))
    stated = rates.least_squares(t, L=L, diameter=2 * radius, mdw=mdw, norm=norm, delta=delta)
    assert stated * delta**2 * (t + 2) == pytest.approx(sharp * (delta**2 * t + 4))
    assert sharp <= stated * (1 + 1e-12)


def test_the_bounds_of_the_design_document():
    assert rates.frank_wolfe(0, L=1, diameter=2, eps0=3, delta=1) == 7.0
    assert rates.frank_wolfe(np.array([0, 2, 8]), L=1, diameter=2, eps0=3).tolist() == [7.0, 3.5, 1.4]
    assert rates.matching_pursuit(4, L=1, radius=1, rho=1, eps0=2) == 2.0


# ---------------------------------------------------------------------- runs stay below


@pytest.mark.parametrize("delta", [1.0, 0.5, 0.2])
@pytest.mark.parametrize(
    "update", [ps.Plain(ps.OpenLoop()), MP, SHORT, ps.Plain(ps.DiameterStep()), ps.NormCorrective()]
)
def test_frank_wolfe_variants_keep_the_bound_under_the_worst_oracle(update, delta):
    A = ps.Dictionary(unit_columns(3, 4, 7), signed=True)
    f = ps.LeastSquares(np.array([0.9, -0.7, 0.4, 0.2]))
    best = ps.minimize(f, ps.conv(A), stop=ps.Stop(gap=1e-12)).lower
    eps = errors(f, ps.conv(A), update, 60, oracle=ps.Approximate(delta), optimum=best)
    bound = rates.frank_wolfe(np.arange(61), L=1, diameter=geometry.diameter(A), eps0=eps[0], delta=delta)
    assert (eps <= bound).all()


@pytest.mark.parametrize("delta", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("update", [MP, SHORT, ps.NormCorrective()])
def test_matching_pursuit_keeps_sharp_and_linear_bounds_under_the_worst_oracle(update, delta):
    A = ps.Dictionary(unit_columns(5, 4, 6), signed=True)
    y = np.array([1.0, -2.0, 0.5, 1.5])
    f, t = ps.LeastSquares(y), np.arange(41)
    eps = errors(f, ps.lin(A), update, 40, oracle=ps.Approximate(delta))
    rho = geometry.rho(A, f, np.zeros(4))
    width, radius = geometry.mdw(A), geometry.radius(A)
    bounds = [
        rates.matching_pursuit_sharp(t, L=1, radius=radius, rho=rho, eps0=eps[0], delta=delta),
        rates.matching_pursuit(t, L=1, radius=radius, rho=rho, eps0=eps[0], delta=delta),
        rates.linear(t, mu=1, L=1, mdw=width, radius=radius, eps0=eps[0], delta=delta),
        rates.least_squares(t, diameter=2 * radius.upper, mdw=width, norm=2 * np.linalg.norm(y), delta=delta),
    ]
    assert all((eps <= bound * (1 + 1e-9) + 1e-28).all() for bound in bounds)


# ---------------------------------------------------------------------- the linear rate, with equality


@pytest.mark.parametrize("seed", range(6))
def test_first_step_at_the_minimising_direction_reaches_the_linear_rate(seed):
    r, n = 2 + seed % 4, 4 + seed
    D = unit_columns(seed, r, n)
    A = ps.Dictionary(D, signed=True)
    d = polytope.mdw(D.T, True).direction
    eps = errors(ps.LeastSquares(d), ps.lin(A), MP, 1)
    factor = rates.linear(1, mu=1, L=1, mdw=geometry.mdw(A), radius=geometry.radius(A), eps0=1)
    assert eps[1] / eps[0] == pytest.approx(factor, rel=1e-10)
    assert eps[1] / eps[0] == pytest.approx(1 - geometry.mdw(A).upper ** 2, rel=1e-10)


@pytest.mark.parametrize("delta", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_first_step_of_the_adversarial_oracle_reaches_the_linear_rate_with_delta_squared(seed, delta):
    D = unit_columns(seed, 3, 5)
    width = polytope.mdw(D.T, True)
    d = width.direction
    side = np.cross(d, [0.3, -0.5, 0.8])
    along = delta * width.upper
    worst = along * d + np.sqrt(1 - along**2) * side / np.linalg.norm(side)  # the worst atom that delta allows
    A = ps.Dictionary(np.column_stack([D, worst]), signed=True)
    assert geometry.mdw(A).upper == pytest.approx(
        width.upper, rel=1e-12
    )  # more atoms never narrow a set within its span
    eps = errors(ps.LeastSquares(d), ps.lin(A), MP, 1, oracle=ps.Approximate(delta * (1 - 1e-12)))
    factor = rates.linear(1, mu=1, L=1, mdw=geometry.mdw(A), radius=geometry.radius(A), eps0=1, delta=delta)
    assert eps[1] / eps[0] == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_affine_linear_rate_is_reached_at_the_minimising_direction_of_the_hessian_norm(seed):
    rng = np.random.default_rng(seed)
    D, root = unit_columns(seed, 3, 5), rng.standard_normal((3, 3)) + 2 * np.eye(3)
    D = D / np.linalg.norm(root @ D, axis=0)  # atoms of norm 1 in the Hessian's norm
    A, H = ps.Dictionary(D, signed=True), root.T @ root
    d = np.linalg.solve(root, polytope.mdw((root @ D).T, True).direction)
    f = ps.Quadratic(H, -H @ d)
    rho = 1.01 * geometry.gauge(A, d).upper  # the minimiser lies inside rho conv(A)
    mu, C = geometry.strong_convexity(f, A, rho), geometry.curvature(f, A, "mp", rho)
    assert mu.exact
    assert C.exact
    eps = errors(f, ps.lin(A), MP, 1, optimum=f.value(d))
    assert eps[1] / eps[0] == pytest.approx(rates.linear_affine(1, mu=mu, C=C, eps0=1), rel=1e-9)
    plain = rates.linear(1, mu=f.mu, L=f.L, mdw=geometry.mdw(A), radius=geometry.radius(A), eps0=1)
    assert rates.linear_affine(1, mu=mu, C=C, eps0=1) <= plain


@law
@given(st.floats(0.05, 1.0), st.floats(0.05, 1.0), constants, qualities, st.integers(0, 50))
def test_linear_rate_is_geometric_with_the_factor_of_the_theorem(share, mu_share, L, delta, t):
    factor = 1 - delta**2 * mu_share * share**2
    bound = rates.linear(t, mu=mu_share * L, L=L, mdw=3 * share, radius=3, eps0=2, delta=delta)
    assert bound == pytest.approx(2 * factor**t, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("theta", [0.2, 0.7, 1.2, np.pi / 2])
def test_experiment_contracts_by_cos_squared_theta_after_the_first_step(theta):
    D = np.array([[1.0, np.cos(theta)], [0.0, np.sin(theta)]])
    A = ps.Dictionary(D, signed=True)
    assert geometry.mdw(A).upper == pytest.approx(np.sin(theta / 2), rel=1e-12)
    target = np.array([-1.0, 1.0])
    f = ps.Quadratic(2 * np.eye(2), -2 * target)  # ||x - target||^2 up to a constant: L = mu = 2
    bound = rates.linear(1, mu=2, L=2, mdw=geometry.mdw(A), radius=1, eps0=1)
    assert bound == pytest.approx(np.cos(theta / 2) ** 2, rel=1e-12)
    weights = np.random.default_rng(0).dirichlet(np.ones(4))
    start = (weights, [A.atom(i) for i in range(4)])
    eps = errors(f, ps.lin(A), SHORT, 5, start=start, optimum=-float(target @ target))
    assert eps[1] <= bound * eps[0]
    assert eps[2:] == pytest.approx(np.cos(theta) ** 2 * eps[1:-1], abs=1e-12)


# ---------------------------------------------------------------------- lower bounds


@pytest.mark.parametrize("seed", range(4))
def test_lower_bound_is_an_equality_where_L_is_mu(seed):
    A = ps.Dictionary(unit_columns(seed, 3, 6), signed=True)
    y = np.random.default_rng(seed).standard_normal(3)
    states = list(islice(ps.iterate(ps.LeastSquares(y), ps.lin(A), SHORT), 4))
    for now, after in pairwise(states):
        width = geometry.directional_width(A, -now.grad).upper
        for bound in (rates.lower_bound, rates.lower_bound_sharp):
            assert bound(now.value, width=width, norm=1.0, L=1, mu=1) == pytest.approx(
                after.value, rel=1e-10, abs=1e-15
            )


@law
@given(constants, st.floats(0.0, 1.0), st.floats(1.0, 10.0), st.floats(0.1, 1.0))
def test_sharp_lower_bound_loses_L_where_the_stated_one_loses_mu(eps, width, L, mu):
    sharp, stated = (
        bound(eps, width=width * 1e-3, norm=1.0, L=L, mu=mu) for bound in (rates.lower_bound_sharp, rates.lower_bound)
    )
    assert (eps - sharp) * L == pytest.approx((eps - stated) * mu, abs=1e-13 * eps * L)
    assert eps - sharp == pytest.approx(eps * (width * 1e-3) ** 2 * (2 * L - mu) / L, abs=1e-13 * eps)
    assert 0 <= stated <= sharp


@pytest.mark.parametrize("seed", range(4))
def test_no_step_falls_below_the_sharp_lower_bound(seed):
    rng = np.random.default_rng(seed)
    D, scales, c = rng.standard_normal((3, 7)), np.array([1.0, 1.5, 2.0]), rng.standard_normal(3)
    A, f = ps.Dictionary(D, signed=True), ps.Quadratic(np.diag(scales), c)
    best = f.value(-c / scales)
    states = list(islice(ps.iterate(f, ps.lin(A), SHORT), 6))
    for now, after in pairwise(states):
        width, norm = geometry.directional_width(A, -now.grad).upper, np.linalg.norm(now.atom.vector)
        bound = rates.lower_bound_sharp(now.value - best, width=width, norm=norm, L=f.L, mu=f.mu)
        assert after.value - best >= bound - 1e-14


@law
@given(st.lists(st.floats(-10, 10), min_size=1, max_size=6))
def test_matching_pursuit_on_the_signed_basis_leaves_the_smallest_residuals(residual):
    residual = np.array(residual)
    eps = errors(ps.LeastSquares(residual), ps.lin(ps.SignedBasis(len(residual))), MP, len(residual) + 1)
    exact = rates.signed_basis(np.arange(len(residual) + 2), residual=residual)
    assert exact == pytest.approx(eps, rel=1e-12, abs=1e-28)


@pytest.mark.parametrize("d", [2, 5])
def test_equal_residuals_contract_by_one_over_what_is_left(d):
    exact = rates.signed_basis(np.arange(d + 1), residual=[3.0, -3.0] * (d // 2) + [3.0] * (d % 2))
    assert exact[1:] == pytest.approx([(1 - 1 / (d - t)) * exact[t] for t in range(d)])


# ---------------------------------------------------------------------- coherence


@pytest.mark.parametrize("seed", range(5))
def test_coherence_theorem_on_random_unit_atoms(seed):
    r, n = 4, 2 + seed
    D = unit_columns(seed, r, n)
    width, coherence = geometry.mdw(ps.Dictionary(D, signed=True)), geometry.coherence(D, n - 1)
    assert coherence.upper >= rates.coherence(n=n, mdw=width) - 1e-12
    assert rates.mdw_from_coherence(n=n, coherence=coherence) <= width.upper


@pytest.mark.parametrize("n", [1, 2, 5])
def test_coherence_theorem_is_an_equality_for_orthonormal_atoms(n):
    width = geometry.mdw(ps.SignedBasis(n))
    assert rates.coherence(n=n, mdw=width) == pytest.approx(0.0, abs=1e-12)
    assert rates.mdw_from_coherence(n=n, coherence=geometry.coherence(np.eye(n), n - 1)) == pytest.approx(width.upper)


@law
@given(st.integers(1, 50), st.floats(0.0, 1.0))
def test_the_two_forms_of_the_coherence_theorem_are_inverse(n, coherence):
    width = rates.mdw_from_coherence(n=n, coherence=coherence)
    if width > 0:
        assert rates.coherence(n=n, mdw=width) == pytest.approx(coherence, abs=1e-9)


def test_coherence_above_one_says_nothing():
    assert rates.mdw_from_coherence(n=3, coherence=1.7) == 0.0


# ---------------------------------------------------------------------- Frank-Wolfe and matching pursuit are one


@pytest.mark.parametrize("seed", range(5))
def test_frank_wolfe_step_approaches_matching_pursuit_as_one_over_alpha(seed):
    rng = np.random.default_rng(seed)
    A, x = 3.0 * ps.SignedBasis(4), rng.standard_normal(4)  # atoms of norm 3: their size enters the constant
    root = rng.standard_normal((4, 4))
    f = ps.Quadratic(root @ root.T + np.eye(4), rng.standard_normal(4))

    def after(domain):
        states = islice(ps.iterate(f, domain, SHORT, start=x), 2)
        return [(s.x, s.grad, s.atom.vector) for s in states]

    (_, grad, z), (mp, _, _) = after(ps.lin(A))
    limit = rates.frank_wolfe_limit(L=f.L, grad=grad, x=x, z=z)
    scaled = [alpha * np.linalg.norm(after(ps.conv(alpha * A))[1][0] - mp) for alpha in (1e5, 2e5)]
    assert 2 * scaled[1] - scaled[0] == pytest.approx(limit, rel=1e-6)  # the 1/alpha^2 term removed


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


def test_exact_oracles_stay_exact_and_large_sets_keep_the_quality():
    assert rates.delta_fw(1.0, 3.0, 2.0) == 1.0 == rates.delta_mp(1.0, 3.0, 2.0)
    assert rates.delta_fw(0.3, 1e12, 1.0) == pytest.approx(0.3)
    assert rates.delta_mp(0.3, 1e12, 1.0) == pytest.approx(0.3)


# ---------------------------------------------------------------------- intervals, shapes, preconditions


def test_intervals_are_read_at_their_safe_end():
    wide = Interval(1.0, 2.0)
    assert rates.frank_wolfe(3, L=wide, diameter=wide, eps0=wide) == rates.frank_wolfe(3, L=2, diameter=2, eps0=2)
    assert rates.matching_pursuit(3, L=wide, radius=wide, rho=wide, eps0=wide) == rates.matching_pursuit(
        3, L=2, radius=2, rho=2, eps0=2
    )
    assert rates.linear(3, mu=wide, L=4, mdw=wide, radius=Interval(2, 3), eps0=wide) == rates.linear(
        3, mu=1, L=4, mdw=1, radius=3, eps0=2
    )
    assert rates.least_squares(3, diameter=4, mdw=wide, norm=wide) == rates.least_squares(3, diameter=4, mdw=1, norm=2)
    assert rates.coherence(n=2, mdw=wide) == rates.coherence(n=2, mdw=2)


@pytest.mark.parametrize(
    "bound",
    [
        lambda t: rates.frank_wolfe(t, L=1, diameter=1, eps0=1, delta=0.5),
        lambda t: rates.matching_pursuit(t, L=1, radius=1, rho=1, eps0=1, delta=0.5),
        lambda t: rates.matching_pursuit_sharp(t, L=1, radius=1, rho=1, eps0=1, delta=0.5),
        lambda t: rates.least_squares(t, diameter=1, mdw=0.5, norm=1, delta=0.5),
        lambda t: rates.least_squares_sharp(t, diameter=1, mdw=0.5, norm=1, delta=0.5),
        lambda t: rates.linear(t, mu=1, L=2, mdw=0.5, radius=1, eps0=1, delta=0.5),
        lambda t: rates.signed_basis(t, residual=[1.0, 2.0]),
    ],
)
def test_bounds_are_vectorised_over_t_and_fall(bound):
    t = np.arange(6).reshape(2, 3)
    assert bound(t).shape == (2, 3)
    assert isinstance(bound(4), float)
    assert bound(t)[1, 1] == bound(4)
    assert (np.diff(bound(np.arange(20))) <= 0).all()


def refuse(call, *words):
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert message.count(". ") == 0
    assert all(word in message for word in words), message


def test_every_precondition_is_named_when_it_fails():
    fw = {"L": 1, "diameter": 2, "eps0": 1}
    ln = {"mu": 1, "L": 1, "mdw": 0.5, "radius": 1, "eps0": 1}
    refuse(lambda: rates.frank_wolfe(-1, **fw), "t holds -1")
    refuse(lambda: rates.frank_wolfe([0, np.nan], **fw), "t holds nan")
    for delta in (0.0, -0.5, 1.5, np.nan):
        refuse(lambda delta=delta: rates.frank_wolfe(1, **fw, delta=delta), "delta", "(0, 1]")
        refuse(lambda delta=delta: rates.linear(1, **ln, delta=delta), "delta", "(0, 1]")
        refuse(lambda delta=delta: rates.delta_fw(delta, 2, 1), "delta_mp", "(0, 1]")
        refuse(lambda delta=delta: rates.delta_mp(delta, 2, 1), "delta_fw", "(0, 1]")
    refuse(lambda: rates.frank_wolfe(1, L=-1, diameter=2, eps0=1), "L is -1")
    refuse(lambda: rates.frank_wolfe(1, L=1, diameter=-2, eps0=1), "diameter is -2")
    refuse(lambda: rates.frank_wolfe(1, L=1, diameter=2, eps0=-1), "eps0 is -1")
    refuse(lambda: rates.linear(1, **{**ln, "mdw": 0.0}), "mdw is 0", "mDW > 0")
    refuse(lambda: rates.linear(1, **{**ln, "mdw": geometry.mdw(ps.Simplex(3))}), "mdw", "mDW > 0")
    refuse(lambda: rates.linear(1, **{**ln, "mdw": 2.0}), "mdw is 2", "radius 1")
    refuse(lambda: rates.linear(1, **{**ln, "mu": 9.0, "mdw": 1.0}), "mu is 9")
    refuse(lambda: rates.linear(1, **{**ln, "radius": 0.0}), "radius is 0")
    refuse(lambda: rates.least_squares(1, diameter=2, mdw=-0.1, norm=1), "mdw is -0.1")
    refuse(lambda: rates.matching_pursuit_affine_sharp(1, C=0), "C is 0")
    refuse(lambda: rates.lower_bound(1.0, width=0.1, norm=1.0, L=1, mu=0), "mu is 0")
    refuse(lambda: rates.lower_bound(-1.0, width=0.1, norm=1.0, L=1, mu=1), "eps is -1")
    refuse(lambda: rates.lower_bound(1.0, width=0.1, norm=0.0, L=1, mu=1), "norm is 0")
    refuse(lambda: rates.signed_basis(0.5, residual=[1.0]), "t is 0.5")
    refuse(lambda: rates.coherence(n=0, mdw=0.1), "n is 0")
    refuse(lambda: rates.mdw_from_coherence(n=2, coherence=-0.1), "coherence is -0.1")
    refuse(lambda: rates.frank_wolfe_limit(L=1, grad=[1.0], x=[1.0], z=[0.0]), "z is zero")
    refuse(lambda: rates.frank_wolfe_limit(L=1, grad=[1.0], x=[1.0, 2.0], z=[1.0]), "one shape")
    refuse(lambda: rates.delta_fw(0.5, 2, 3), "alpha is 2", "rho 3")
    refuse(lambda: rates.delta_fw(0.5, 2, 1.5), "alpha is 2", "rho / delta_mp")
    refuse(lambda: rates.delta_mp(0.1, 2, 1), "alpha is 2", "rho 1")
