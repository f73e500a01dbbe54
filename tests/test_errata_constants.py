"""The errata of the paper from number 20 on, executed: constants, the two algorithms, slips and traps."""

import math
from itertools import islice, pairwise, product

import numpy as np
import pytest
from errata import (
    MATCHING_PURSUIT,
    ROUNDING,
    SEEDS,
    TWO,
    at_most,
    both,
    coherence,
    gauge,
    mdw,
    quadratic,
    radius,
    rho,
    run,
    support,
    unit,
    values,
    width,
)
from scipy.optimize import brentq

import pursuit as ps

# ---------------------------------------------------------------------- 20 to 23: constants


def pairwise_curvature(H, A):
    """C^AW of a quadratic: max over atoms of (s - v)' H (s - v)."""
    return max(float((s - v) @ H @ (s - v)) for s, v in product(A.T, A.T))


def pursuit_curvature(H, A):
    """C^MP of a quadratic: max over atoms of s' H s."""
    return max(float(s @ H @ s) for s in A.T)


def test_erratum_20_pursuit_curvature_above_the_away_curvature():
    A, H = np.array([[10.0, 11.0]]), np.eye(1)
    assert pursuit_curvature(H, A) == 121.0
    assert pairwise_curvature(H, A) == 1.0  # the paper claims that it is the larger one


def test_erratum_21_normalised_step_may_be_two():
    f, C, scale = ps.LeastSquares([1.0]), 1.0, 1.0  # A = {1, -1}, rho = 1
    s0, s1 = run(f, ps.lin(ps.SignedBasis(1)), ps.Plain(ps.CurvatureStep(C, rho=scale)), 1, start=np.array([-1.0]))
    assert scale * float(-s0.grad @ s0.atom.vector) / C == 2.0  # not in [0, 1]
    assert (s1.x, s1.value) == (np.ones(1), 0.0)  # and yet x_1 is in rho conv(A), and the rate 1 - mu_f / C = 0 holds


def test_erratum_22_rho_is_circular():
    # f = x^4/12 + x^2/2 - 12 x, A = {1, -1}: f'' = 1 + x^2, so C^MP of rho A is at most rho^2 (1 + 4 rho^2). f'(3) = 0.
    f = ps.Smooth(lambda x: float(x[0] ** 4 / 12 + x[0] ** 2 / 2 - 12 * x[0]), lambda x: x**3 / 3 + x - 12)
    optimum = f.value(np.array([3.0]))

    def guess(bound, steps):
        step = ps.CurvatureStep(bound**2 * (1 + 4 * bound**2), rho=bound)
        return run(f, ps.lin(ps.SignedBasis(1)), ps.Plain(step), steps)

    s0, s1 = guess(0.1, 1)
    assert s1.x[0] > 10  # the step that rho allows leads to an iterate that rho does not allow
    assert s1.value > s0.value
    level = brentq(lambda x: x**3 / 12 + x / 2 - 12, 3, 12)  # f(level) = f(0): the a-priori rho
    states, T = guess(level, 200), np.arange(201)
    eps, C = values(states, optimum), level**2 * (1 + 4 * level**2)
    assert states[1].x[0] == pytest.approx(level**2 * 12 / C)
    assert max(abs(float(s.x[0])) for s in states) <= level
    assert at_most(np.diff(eps), 0.0)
    assert at_most(eps, 8 * C / (T + 8 * C / eps[0]))


def test_erratum_22_rho_grows_with_the_horizon():
    y, A = np.array([2.0, 1.0]), both(TWO)
    xs = [y] + [s.x for s in run(ps.LeastSquares(y), ps.lin(ps.Dictionary(TWO)), MATCHING_PURSUIT, 2)]
    assert [rho(A, xs[: T + 2]) for T in range(3)] == pytest.approx([2.5, 2.5, 2.8])


def test_erratum_22_no_minimiser_of_largest_atomic_norm():
    f, A = ps.Quadratic(np.diag([1.0, 0.0])), both(np.eye(2))
    minimisers = [np.array([0.0, s]) for s in (0.0, 1.0, 1e3, 1e6)]
    assert all(f.value(x) == 0.0 for x in minimisers)
    assert [gauge(A, x) for x in minimisers] == pytest.approx([0.0, 1.0, 1e3, 1e6])  # unbounded; the smallest is 0
    states = run(f, ps.lin(ps.SignedBasis(2)), MATCHING_PURSUIT, 1, start=np.array([1.0, 0.0]))
    eps, C = values(states), 1.0  # rho = 1 with the smallest
    assert at_most(eps, 8 * C / (np.arange(2) + 8 * C / eps[0]))


def test_erratum_23_key_step_needs_symmetry():
    A, f = np.array([[-1.0, 3.0]]), ps.LeastSquares([-1.0])
    x, target = np.array([3.0]), np.array([-1.0])
    grad = f.value_and_grad(x)[1]
    assert max(gauge(A, x), gauge(A, target)) == pytest.approx(1.0)
    assert float(grad @ (x - target)) == 16.0 > 2 * 1.0 * support(A, -grad) == 8.0
    assert gauge(A, target - x) * support(A, -grad) == pytest.approx(16.0)  # the corrected step, attained


# ---------------------------------------------------------------------- 24, 25: Frank-Wolfe and matching pursuit


def one_step(rng, lengths):
    """A problem, a point as (weights, atoms), and a function: the next iterate of Frank-Wolfe on alpha A."""
    A = ps.Dictionary(unit(rng.standard_normal((3, 4))) * lengths, signed=True)
    f = quadratic(rng, 3)[0]
    start = (np.array([0.3, 0.2, 0.4]), [A.atom(i) for i in (0, 5, 2)])
    return A, f, start, lambda step, alpha: run(f, ps.conv(alpha * A), ps.Plain(step), 1, start=start)[1].x


@pytest.mark.parametrize("seed", SEEDS)
def test_erratum_24_other_variants_have_other_limits(seed):
    A, f, start, frank_wolfe = one_step(np.random.default_rng(seed), 1.0)
    s0, s1 = run(f, ps.lin(A), MATCHING_PURSUIT, 1, start=start)
    exact = run(f, ps.lin(A), ps.Plain(ps.LineSearch()), 1, start=start)[1].x
    alpha, near = 1e7, 1e-5
    assert np.allclose(frank_wolfe(ps.ShortStep(), alpha), s1.x, atol=near)
    assert np.allclose(frank_wolfe(ps.DiameterStep(), alpha), s0.x + (s1.x - s0.x) / 4, atol=near)
    assert np.allclose(frank_wolfe(ps.LineSearch(), alpha), exact, atol=near)
    assert np.linalg.norm(exact - s1.x) > 100 * near
    assert np.allclose(frank_wolfe(ps.OpenLoop(), alpha) / alpha, s0.atom.vector)  # diverges with alpha


def test_erratum_24_clip_at_zero():
    alpha, x, target = 1.0, 10.0, 20.0  # A = {1, -1}, f = (x - 20)^2 / 2, x outside alpha conv(A)
    z = 1.0
    gamma = (target - x) * (alpha * z - x) / (alpha * z - x) ** 2
    assert gamma < 0  # "<= 1", so the theorem's formula takes this step; Algorithm 2 clips it to 0 and stays at x
    assert x + gamma * (alpha * z - x) == pytest.approx(target)


def test_erratum_25_quality_of_a_pursuit_oracle_for_frank_wolfe():
    rng = np.random.default_rng(0)
    for delta, bound, alpha in [(1.0, 1.0, 1.5), (0.5, 1.0, 3.0), (0.3, 2.0, 20.0)]:
        converted = (alpha * delta - bound) / (alpha - bound)
        assert 0 < converted <= delta
        A = both(rng.standard_normal((3, 6)))
        for d in rng.standard_normal((50, 3)):
            scores = A.T @ d
            worst = scores[scores <= delta * scores.min()].max()
            for x in (bound * A[:, scores.argmin()], *(bound * A @ w for w in rng.dirichlet(np.ones(12), 5))):
                assert alpha * worst - d @ x <= converted * (alpha * scores.min() - d @ x) + ROUNDING
        A, d, x = both(np.array([[1.0, delta]])), -np.ones(1), np.array([bound])  # an atom of quality exactly delta
        answer, best = (alpha * score - float(d @ x) for score in (-delta, (A.T @ d).min()))
        assert answer == pytest.approx(converted * best)
        assert bound / delta * delta - bound == 0.0  # for alpha = rho / delta, which the paper allows, answer is 0


# ---------------------------------------------------------------------- 27 to 35: slips, ambiguities, traps


def test_erratum_27_the_two_displays_of_the_induction():
    C, eps0, t = 3.0, 2.0, np.arange(50)
    for delta in (1.0, 0.5, 0.1):
        half, constant = delta / 2, 2 * C / delta + eps0

        def proves(bound, half=half):
            """Whether the recursion of the proof leads from bound(t) to bound(t + 1)."""
            gamma = 2 / (half * t + 2)
            return at_most((1 - gamma * half) * bound(t) + gamma**2 * C / 2, bound(t + 1))

        def stated(t, constant=constant):
            return 4 * constant / (t + 4)

        def corrected(t, constant=constant, delta=delta):
            return 4 * constant / (delta * t + 4)

        assert proves(stated) == (delta == 1.0)
        assert proves(corrected)
        assert corrected(t) == pytest.approx(2 * constant / (half * t + 2))  # the display beside it


def test_erratum_28_equality_after_an_approximate_answer():
    rng = np.random.default_rng(0)
    B, delta = rng.standard_normal((3, 8)), 0.4
    f = quadratic(rng, 3)[0]
    states = run(f, ps.lin(ps.Dictionary(B)), MATCHING_PURSUIT, 20, oracle=ps.Approximate(delta, worst=False))
    best = np.array([support(both(B), -s.grad) for s in states])
    got = np.array([float(-s.grad @ s.atom.vector) for s in states])
    assert at_most(best**2, got**2 / delta**2)
    assert (best**2 < 0.9 * got**2 / delta**2).any()


def test_erratum_29_number_of_updates():
    rng, T = np.random.default_rng(0), 4
    problem = ps.LeastSquares(rng.standard_normal(10)), ps.lin(ps.Dictionary(rng.standard_normal((10, 20))))
    states = run(*problem, ps.FullyCorrective(), T + 1)  # t = 0, ..., T makes T + 1 updates
    assert len(states[-1].active) == T + 1
    r = ps.minimize(*problem, ps.FullyCorrective(), stop=ps.Stop(iterations=T, rgap=None))
    assert (r.iterations, len(r.atoms)) == (T, T)


def test_erratum_30_the_start_stays_in_the_active_set():
    y = np.ones(3)
    x0 = y + np.array([0.1, -0.1, 0.0])
    f, span = ps.LeastSquares(y), ps.lin(ps.SignedBasis(3))
    s0, s1 = run(f, span, ps.NormCorrective(), 1, start=x0)
    assert s0.value == pytest.approx(0.01)
    assert s1.value <= s0.value
    z = s0.atom.vector
    dropped = (y @ z) / (z @ z) * z  # the projection on lin(z_0) alone
    assert f.value(dropped) == pytest.approx(1.0)
    textbook = run(f, span, ps.NormCorrective(), 2)  # x_0 = 0 adds nothing to the span
    assert [s.value for s in textbook] == [1.5, 1.0, 0.5]


@pytest.mark.parametrize("theta", [0.3, 0.8, 1.4])
def test_erratum_31_half_the_smoothness_makes_a_reflection(theta):
    target = np.array([-1.0, 1.0])
    A = ps.lin(ps.Dictionary(np.array([[1.0, math.cos(theta)], [0.0, math.sin(theta)]])))
    f = ps.Smooth(lambda x: float((x - target) @ (x - target)), lambda x: 2 * (x - target))
    start = np.array([0.1, 0.05])
    stated = values(run(f, A, ps.Plain(ps.ShortStep(L=1.0)), 50, start=start))
    assert np.allclose(stated, stated[0])
    assert stated[0] > 1
    eps = values(run(f, A, ps.Plain(ps.ShortStep(L=2.0)), 8, start=start))
    assert np.allclose(eps[2:], math.cos(theta) ** 2 * eps[1:-1], rtol=1e-9, atol=1e-14)


def test_erratum_32_gauge_of_the_origin():
    A = np.eye(2)  # the simplex: 0 is in c conv(A) for no c > 0
    assert all(np.abs(c * A @ [w, 1 - w]).sum() > 0 for c in (1e-9, 1.0) for w in np.linspace(0, 1, 11))
    assert gauge(A, np.zeros(2)) == 0.0
    assert ps.Simplex(2).gauge(np.zeros(2)) == ps.SignedBasis(2).gauge(np.zeros(2)) == 0.0


def test_erratum_34_steps_of_the_two_algorithms_differ():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((3, 4)) * [0.3, 0.5, 2.0, 1.0]
    f, _, _, optimum = quadratic(rng, 3)
    A, span, T = both(B), ps.lin(ps.Dictionary(B)), 30
    C = f.L * radius(A) ** 2  # an upper bound on C^MP, by the lemma
    fourth, sixth = (run(f, span, u, T) for u in (MATCHING_PURSUIT, ps.Plain(ps.CurvatureStep(C))))
    lengths = [np.linalg.norm(s.atom.vector) for s in fourth]
    assert min(lengths) < 0.9 * radius(A)
    assert not np.allclose(fourth[-1].x, sixth[-1].x, atol=1e-6)
    for states, curvature in ((fourth, lambda z: f.L * float(z @ z)), (sixth, lambda z: C)):
        for s, after in pairwise(states):
            gain = float(s.grad @ s.atom.vector) ** 2 / 2
            assert after.value <= s.value - gain / curvature(s.atom.vector) + ROUNDING
            assert f.L * float(s.atom.vector @ s.atom.vector) <= C + ROUNDING  # the bound of Algorithm 4 is tighter
        eps = values(states, optimum)
        assert at_most(eps[1:], (1 - f.mu * mdw(A) ** 2 / C) * eps[:-1])


def test_erratum_35_corrections_must_not_raise_f():
    y = np.array([0.3, -0.2, 0.1])
    f, A, T = ps.LeastSquares(y), ps.SignedBasis(3), 60
    first = ([1.0], [A.atom(4)])
    options = {"update": ps.Plain(ps.ShortStep()), "start": first}
    eps0 = f.value(A.atom(4).vector)
    bound = 2 * (4.0 + eps0) / (np.arange(T + 1) + 2)

    def restart(f, domain, active):
        return first

    undone = []
    for _ in range(T + 1):  # each correction obeyed: back to the first atom
        s0, s1 = islice(ps.iterate(f, ps.conv(A), **options), 2)
        assert s1.value < s0.value
        undone.append(s0.value)
    assert (undone > bound).any()
    states = list(islice(ps.iterate(f, ps.conv(A), refine=restart, **options), T + 1))
    assert states[-1].refused == T
    assert at_most(values(states), bound)


def test_erratum_35_corrections_must_stay_feasible_and_in_the_span_of_the_active_set():
    y = np.array([3.0, 0.0])
    f, A = ps.LeastSquares(y), ps.SignedBasis(2)
    outside = ([1.0], [ps.Atom(y)])
    assert f.value(y) < 2.0  # f* over the hull: obeyed, eps would be negative
    states = run(f, ps.conv(A), ps.NormCorrective(), 3, refine=lambda f, domain, active: outside)
    assert states[-1].refused == 3
    assert states[-1].value == pytest.approx(2.0)
    # Variant 1 projects on lin(S): from a better point outside lin(S) the next update goes up again.
    y = np.ones(3)
    corrected, S = y + np.array([0.1, -0.1, 0.0]), np.eye(3)[:, :1]
    z = np.eye(3)[:, int(np.abs(y - corrected).argmax())]
    basis = np.linalg.qr(np.column_stack([S, z]))[0]
    f = ps.LeastSquares(y)
    assert f.value(basis @ (basis.T @ y)) > 10 * f.value(corrected)
    kept = np.linalg.qr(np.column_stack([S, z, corrected]))[0]
    assert f.value(kept @ (kept.T @ y)) <= f.value(corrected)


# ---------------------------------------------------------------------- 36 onwards: found on the way


def test_erratum_36_duality_gap_of_an_approximate_atom():
    f = ps.Smooth(lambda x: -float(x[0]), lambda x: -np.ones(1), L=1.0)
    delta, start = 0.25, ([1.0], [ps.Atom(np.zeros(1))])
    segment, update = ps.conv(ps.Box([0.0], [1.0])), ps.Plain(ps.OpenLoop())
    states = run(f, segment, update, 20, oracle=ps.Approximate(delta, worst=True), start=start)
    for s in states:
        eps, gap = s.value + 1.0, float(-s.grad @ (s.atom.vector - s.x))
        assert eps > gap  # the proof begins with eps <= gap
        assert eps <= gap / delta + ROUNDING
        assert s.gap >= eps - ROUNDING


def test_erratum_37_small_width_does_not_mean_coherence_near_one():
    for angle in (1e-1, 1e-2, 1e-3):
        B = np.array([[math.cos(k * angle) for k in range(4)], [math.sin(k * angle) for k in range(4)]])
        assert mdw(both(B)) < 2 * angle
        assert coherence(B) > 3 - 10 * angle  # tends to n - 1 = 3, not to 1
        assert coherence(B) >= 1 - 4 * mdw(both(B)) ** 2  # the theorem bounds it from below only


def test_erratum_38_distance_of_the_clipped_step():
    rng = np.random.default_rng(0)
    y, x = 10 * rng.standard_normal(3), 0.1 * rng.standard_normal(3)
    f, A, alpha = ps.LeastSquares(y), ps.SignedBasis(3), 1.0
    clipped = run(f, ps.conv(alpha * A), ps.Plain(ps.ShortStep()), 1, start=x)[1].x
    s0, s1 = run(f, ps.lin(A), MATCHING_PURSUIT, 1, start=x)
    g, z = s0.grad, s0.atom.vector
    assert np.allclose(clipped, alpha * z)
    distance, slope = np.linalg.norm(clipped - s1.x), float(g @ z) / float(z @ z)
    assert np.linalg.norm(alpha * z + slope * z) != pytest.approx(distance, rel=1e-3)  # as printed
    assert np.linalg.norm(alpha * z - x + slope * z) == pytest.approx(distance)


@pytest.mark.parametrize("d", [2, 10, 50])
def test_erratum_39_linear_rate_depends_on_the_dimension(d):
    eps = values(run(ps.LeastSquares(np.ones(d)), ps.lin(ps.SignedBasis(d)), MATCHING_PURSUIT, d))
    assert eps[1] / eps[0] == pytest.approx(1 - 1 / d)  # the promised factor, attained
    assert int(np.argmax(eps <= eps[0] / 2)) == d // 2  # iterations to halve the error


def test_erratum_40_width_over_all_directions():
    A = np.array([[1.0], [0.0]])  # does not span the plane
    angles = np.linspace(0, 2 * np.pi, 721)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    assert min(width(A, d) for d in circle.T) == pytest.approx(-1.0)  # the paper says zero
    assert min(width(both(A), d) for d in circle.T) == pytest.approx(0.0, abs=1e-12)  # right where 0 is in conv(A)


def test_erratum_41_the_coherence_of_a_sparse_target_may_promise_more_than_the_width():
    rng = np.random.default_rng(0)
    near = unit(np.linalg.qr(rng.standard_normal((8, 8)))[0] + 0.02 * rng.standard_normal((8, 8)))
    for B, by_coherence, by_width in ((np.eye(8), 0.5, 0.875), (near, 0.535, 0.884)):
        one, two = (ps.geometry.coherence(B, m).upper for m in (1, 2))
        factor = ps.rates.incoherent_pursuit(1, m=2, coherence=one, beyond=two, eps0=1.0)
        assert factor == pytest.approx(by_coherence, abs=1e-3)
        assert 1 - mdw(both(B)) ** 2 == pytest.approx(by_width, abs=1e-3)
        f = ps.LeastSquares(B[:, :2] @ [1.0, 0.7])
        eps = values(run(f, ps.lin(ps.Dictionary(B)), MATCHING_PURSUIT, 5))
        assert at_most(eps[1:], factor * eps[:-1])


def test_erratum_42_corrected_weights_stay_non_negative_over_hulls_however_large():
    A = ps.Dictionary(np.array([[1.0, 0.0, 1.0], [2.0, 2.0, 0.0], [2.0, 1.0, 0.0]]), signed=True)
    f, zero = ps.LeastSquares([0.0, 3.0, 1.0]), np.zeros(3)
    pursued = run(f, ps.lin(A), ps.NormCorrective(), 2, start=zero)[-1].x
    assert pursued == pytest.approx(-2 / 9 * np.array([1.0, 2.0, 2.0]) + 5 / 3 * np.array([0.0, 2.0, 1.0]))
    for alpha in (1e2, 1e5):
        over_hull = run(f, ps.conv(alpha * A), ps.NormCorrective(), 2, start=zero)[-1].x
        assert over_hull == pytest.approx(7 / 5 * np.array([0.0, 2.0, 1.0]))
    over_cone = run(f, ps.cone(A), ps.NormCorrective(), 2)[-1].x
    assert over_cone == pytest.approx(7 / 5 * np.array([0.0, 2.0, 1.0]))


def test_erratum_43_a_bounded_set_may_have_no_best_atom():
    k = np.arange(2.0, 2000.0)
    atoms = 1 - 1 / k
    assert (np.diff(atoms) > 0).all()  # every atom is beaten by the next
    assert atoms[-1] < 1.0  # and their supremum is no atom
