"""The errata of the paper, executed: the claim as stated fails on the counterexample, the corrected one holds there.
That it holds in general, the claims of the executable paper try (`test_paper.py`).

Numbers are those of `docs/errata.md`. Two entries have no test, because they say nothing that could be computed: 26
(the appendix counts the variants of Algorithm 2 differently from the algorithm) and 33 (wrong cross-references, a
missing figure, a flipped sign in a definition).

Widths, gauges and constants of these tiny sets are brute force, independent of the package; everything called an
algorithm is run by the package. Errata from 20 on are in `test_errata_constants.py`.
"""

import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from errata import (
    GMP,
    MATCHING_PURSUIT,
    ROUNDING,
    SEEDS,
    TWO,
    PaperStep,
    around_the_origin,
    at_most,
    both,
    coherence,
    facets,
    gauge,
    inradius,
    largest_curvature,
    mdw,
    radius,
    rho,
    run,
    support,
    unit,
    values,
    width,
)

import pursuit as ps

# ---------------------------------------------------------------------- the document


def test_every_erratum_is_documented_and_tested_or_excused():
    document = (Path(__file__).parents[1] / "docs" / "errata.md").read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"^### (\d+)\.", document, flags=re.MULTILINE)]
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_errata*.py")]
    tested = {int(n) for n in re.findall(r"^def test_erratum_(\d\d)_", "\n".join(sources), flags=re.MULTILINE)}
    assert numbers == list(range(1, len(numbers) + 1))
    assert tested == set(numbers) - {26, 33}


# ---------------------------------------------------------------------- 1 to 5: false


def test_erratum_01_lower_bound_on_the_signed_basis_is_an_upper_bound():
    eps = values(run(ps.LeastSquares([2.0, 1.0]), ps.lin(ps.SignedBasis(2)), MATCHING_PURSUIT, 2))
    assert eps.tolist() == [2.5, 0.5, 0.0]
    assert eps[1] < (1 - 1 / 2) * eps[0]  # the corollary claims >=


def test_erratum_01_fully_corrective_from_elsewhere_ends_at_once():
    y = np.array([2.0, 1.0, -3.0])
    for update in (ps.NormCorrective(), ps.FullyCorrective()):
        eps = values(run(ps.LeastSquares(y), ps.lin(ps.SignedBasis(3)), update, 1, start=y / 2))
        assert eps[1] < 1e-20 < (1 - 1 / 3) * eps[0]


@pytest.mark.parametrize("d", range(2, 7))
def test_erratum_02_inradius_of_the_cross_polytope(d):
    A = both(np.eye(d))
    assert inradius(A) == pytest.approx(1 / math.sqrt(d))
    assert inradius(A) <= radius(A) < math.sqrt(d)  # no ball of radius sqrt(d) fits
    factor = 2 * (2 * radius(A)) ** 2 / inradius(A) ** 2  # of rho~^2 / (t + 2) in the corollary
    assert factor == pytest.approx(8 * d)  # linear in d, as the paper goes on to say


def test_erratum_03_smoothness_is_missing_from_the_corollary():
    L, y = 100.0, 1.0
    eps = values(run(ps.LeastSquares([y], weights=L), ps.lin(ps.SignedBasis(1)), MATCHING_PURSUIT, 1))
    stated = 2 * y**2 * 2.0**2 / (1.0 * (0 + 2))
    assert stated == 4.0
    assert eps[0] == 50.0 > stated
    assert eps[0] <= L * stated


def test_erratum_03_corollary_does_not_follow_from_the_theorem():
    C, delta, t = 1.0, 1.0, 1.0  # C = L rho^2 R^2 and diam = 2 R, so the corollary's constant is 4 C

    def theorem(eps0):
        return 4 * (2 * C / delta + eps0) / (delta * t + 4)

    corollary = 2 * 4 * C / (delta**2 * (t + 2))
    assert theorem(2 * C) > corollary > theorem(0.0)  # larger where eps0 is near its largest value, smaller elsewhere


def test_erratum_04_matching_pursuit_leaves_the_ball_of_y():
    y = np.array([2.0, 1.0])
    states = run(ps.LeastSquares(y), ps.lin(ps.Dictionary(TWO)), MATCHING_PURSUIT, 2)
    assert np.linalg.norm(states[2].x) ** 2 == pytest.approx(6.56)  # and ||y||^2 = 5
    omp = run(ps.LeastSquares(y), ps.lin(ps.Dictionary(TWO)), ps.FullyCorrective(), 2)
    assert all(np.linalg.norm(s.x) <= np.linalg.norm(y) + ROUNDING for s in omp)


def test_erratum_04_bound_with_y_fails_from_a_far_start():
    for update in (*GMP, ps.FullyCorrective()):
        eps = values(run(ps.LeastSquares([1.0]), ps.lin(ps.SignedBasis(1)), update, 1, start=np.array([10.0])))
        assert eps[0] == 40.5 > 2 * 1.0**2 * 2.0**2 / 2  # with ||y|| in place of rho~
        assert eps[0] <= 2 * 10.0**2 * 2.0**2 / 2  # with max(||x_0||, ||y||)


@pytest.mark.parametrize("seed", SEEDS)
def test_erratum_04_norms_of_iterates(seed):
    rng = np.random.default_rng(seed)
    B, y, x0 = unit(rng.standard_normal((3, 3))), rng.standard_normal(3), rng.standard_normal(3)
    size, far = np.linalg.norm(y), np.linalg.norm(y - x0)
    f, span = ps.LeastSquares(y), ps.lin(ps.Dictionary(B))
    assert all(np.linalg.norm(s.x) <= 2 * size + ROUNDING for s in run(f, span, MATCHING_PURSUIT, 10))
    assert all(np.linalg.norm(s.x) <= size + far + ROUNDING for s in run(f, span, MATCHING_PURSUIT, 10, start=x0))
    corrective = run(f, span, ps.NormCorrective(), 4, start=x0)
    assert all(np.linalg.norm(s.x) <= size + ROUNDING for s in corrective[1:])
    s = corrective[0]
    assert np.allclose(s.x - s.grad / f.L, y)  # b = y; the appendix says x_t - b = y


def test_erratum_05_open_loop_step_with_delta_below_half():
    f = ps.Smooth(lambda x: -float(x[0]), lambda x: -np.ones(1), L=1e-300)
    segment, start, delta, T = ps.conv(ps.Box([0.0], [1.0])), ([1.0], [ps.Atom(np.zeros(1))]), 0.25, 5000
    t = np.arange(T + 1)
    bound = 2 * (0 + 1) / (delta * t + 2)  # L = 0, eps_0 = 1
    oracle = ps.Approximate(delta, worst=True)
    stated = values(run(f, segment, ps.Plain(PaperStep()), T, oracle=oracle, start=start), -1.0) / bound
    assert int(np.argmax(stated > 1)) == 35
    assert (stated[35:] > 1).all()
    assert stated[-1] > 9.5
    corrected = values(run(f, segment, ps.Plain(ps.OpenLoop()), T, oracle=oracle, start=start), -1.0) / bound
    assert at_most(corrected, 1.0)
    exact = values(run(f, segment, ps.Plain(PaperStep()), 3, start=start), -1.0)
    assert exact.tolist() == [1.0, 0.0, 0.0, 0.0]  # delta = 1 is not affected


# ---------------------------------------------------------------------- 6 to 9: norms and curvature


def test_erratum_06_smoothness_must_belong_to_the_norm_of_the_algorithm():
    n, T = 10, 30
    H = 0.9 * np.ones((n, n)) + 0.1 * np.eye(n)
    assert np.abs(H).max() == 1.0  # L = 1 for the L1 norm, whose dual norm is the largest entry
    c = np.arange(1.0, n + 1)
    c /= math.sqrt(c @ H @ c)
    f, optimum, basis, t = ps.Quadratic(H, -H @ c), -0.5, ps.SignedBasis(n), np.arange(T + 1)
    stated = values(run(f, ps.lin(basis), ps.NormCorrective(L=1.0), T), optimum)
    assert stated[0] == pytest.approx(0.5)
    assert stated[-1] > 1e10
    A = both(np.eye(n))

    def promised(states, L):
        C = L * rho(A, [c, *(s.x for s in states)]) ** 2
        return 8 * C / (t + 8 * C / 0.5)

    states = run(f, ps.lin(basis), ps.NormCorrective(), T)  # L of the Hilbert norm, 9.1
    assert math.isclose(f.L, 9.1)
    assert at_most(values(states, optimum), promised(states, f.L))
    states = run(f, ps.lin(basis), ps.Plain(ps.CurvatureStep(1.0)), T)  # Algorithm 6 may use the L1 norm
    assert at_most(values(states, optimum), promised(states, 1.0))
    assert values(states, optimum)[-1] < 0.05


def test_erratum_07_curvature_needs_smoothness_beyond_the_hull():
    f = ps.Smooth(
        lambda x: 7 * max(0.0, abs(float(x[0])) - 1) ** 2,
        lambda x: 14 * np.sign(x) * np.maximum(0.0, np.abs(x) - 1),
    )
    grid = np.linspace(-1, 1, 21)[:, None]
    assert all(np.all(f.value_and_grad(x)[1] == 0) for x in grid)  # L = 0 on conv(A), A = {1, -1}
    C = largest_curvature(f, grid, [np.ones(1), -np.ones(1)], np.linspace(0.05, 1, 20))
    assert math.isclose(C, 14.0)  # the lemma claims C <= L = 0; L = 14 on 2 conv(A)


def test_erratum_07_algorithms_need_smoothness_on_the_iterates_hull_only():
    c = np.array([0.4, -0.3, 0.2])
    h = np.array([1.0, 2.0, 4.0])

    def excess(x):
        return np.maximum(0.0, np.abs(x) - 1)

    f = ps.Smooth(
        lambda x: float(h @ (x - c) ** 2) / 2 + 700 * float((excess(x) ** 2).sum()),
        lambda x: h * (x - c) + 1400 * np.sign(x) * excess(x),
    )
    states = run(f, ps.lin(ps.SignedBasis(3)), ps.Plain(ps.ShortStep(L=4.0)), 20)
    eps = values(states)
    assert max(np.abs(s.x).sum() for s in states) < 1  # rho = 1, where the large curvature is not seen
    assert at_most(eps[1:], (1 - 1 / 4 / 3) * eps[:-1])


def strong_convexity(H, A, x, target):
    """2 D(x*, x) / gamma(x, x*)^2 for the quadratic with Hessian H and minimiser 0."""
    g, v = H @ x, target - x
    gamma = -float(g @ v) / support(A, -g)
    return float(v @ H @ v) / gamma**2


def test_erratum_08_width_needs_the_dual_norm():
    n, rng = 5, np.random.default_rng(0)
    A, H = both(np.eye(n)), np.eye(n)  # f = ||x||^2 / 2 is 1-strongly convex in the largest-entry norm
    samples = rng.standard_normal((200, n))
    assert all(support(A, d) / np.abs(d).max() == pytest.approx(1.0) for d in samples)  # the stated width is 1
    attained = strong_convexity(H, A, np.full(n, 0.1), np.zeros(n))
    assert attained == pytest.approx(1 / n)
    assert attained < 1.0  # the stated bound
    corrected = min(support(A, d) / np.abs(d).sum() for d in [*samples, np.ones(n)]) ** 2
    assert corrected == pytest.approx(1 / n**2)
    for x in samples:
        assert strong_convexity(H, A, x, np.zeros(n)) >= max(1 / n, corrected) - ROUNDING


@pytest.mark.parametrize("seed", SEEDS)
def test_erratum_09_strong_convexity_constant_is_attained(seed):
    rng = np.random.default_rng(seed)
    A, mu = both(rng.standard_normal((3, 4))), 2.5
    H, rows = mu * np.eye(3), facets(A)
    narrow = rows[rows[:, -1].argmin(), :-1]
    d = np.linalg.svd(A, full_matrices=False)[0] @ narrow  # back from coordinates of lin(A)
    assert width(A, d) == pytest.approx(mdw(A))
    assert strong_convexity(H, A, -0.01 * d, np.zeros(3)) == pytest.approx(mu * mdw(A) ** 2)
    for x, target in rng.standard_normal((100, 2, 3)):
        if x @ (target - x) < 0:
            assert strong_convexity(H, A, x, target) >= mu * mdw(A) ** 2 - ROUNDING
    x, f = rng.standard_normal(3), ps.LeastSquares(np.zeros(3), weights=mu)
    bregman = f.value(np.zeros(3)) - f.value(x) + float(f.value_and_grad(x)[1] @ x)
    assert bregman == pytest.approx(mu / 2 * float(x @ x))  # the lemma's proof has mu ||x||^2
    assert bregman < mu * float(x @ x)


# ---------------------------------------------------------------------- 10 to 15: geometry of atom sets


def test_erratum_10_symmetric_sets_need_finite_dimension():
    for d in (2, 10, 1000):
        assert support(both(np.eye(d)), np.ones(d)) / math.sqrt(d) == pytest.approx(1 / math.sqrt(d))
    assert [ps.SignedBasis(d).width for d in (4, 10**4, 10**8)] == pytest.approx([0.5, 1e-2, 1e-4])  # infimum 0
    with pytest.raises(ValueError, match="column 0 of D is zero"):
        ps.Dictionary(np.zeros((2, 1)))
    rng = np.random.default_rng(0)
    assert all(mdw(both(rng.standard_normal((n, m)))) > 0 for n, m in product((2, 3, 4), (1, 3, 6)))


def test_erratum_11_width_may_equal_radius():
    A = both(np.eye(1))
    assert mdw(A) == radius(A) == 1.0
    ball = ps.Ball(4, 2)
    assert ball.width == ball.radius == 1.0
    eps = values(run(ps.LeastSquares([3.0]), ps.lin(ps.SignedBasis(1)), MATCHING_PURSUIT, 1))
    assert eps[1] == (1 - mdw(A) ** 2 / radius(A) ** 2) * eps[0] == 0.0
    rng = np.random.default_rng(0)
    assert all(mdw(A) <= radius(A) for A in (both(rng.standard_normal((3, m))) for m in (1, 2, 3, 8)))


def test_erratum_12_one_atom_can_make_the_width_zero():
    basis, third = np.eye(3)[:, :2], np.eye(3)[:, 2:]
    assert mdw(both(basis)) == pytest.approx(1 / math.sqrt(2))
    assert mdw(np.hstack([both(basis), third])) == pytest.approx(0.0, abs=1e-12)
    assert mdw(both(np.eye(3))) == pytest.approx(1 / math.sqrt(3))  # positive, but smaller


@pytest.mark.parametrize("seed", SEEDS)
def test_erratum_12_width_grows_with_atoms_of_the_span(seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((4, 3))
    A, inside, outside = both(B), B @ rng.standard_normal((3, 1)), rng.standard_normal((4, 1))
    assert mdw(np.hstack([A, inside])) >= mdw(A) - ROUNDING
    assert mdw(np.hstack([A, outside])) < 1e-10
    assert mdw(np.hstack([A, both(outside)])) > 1e-3


def test_erratum_13_rho_is_not_monotone_in_the_width():
    long, square, x = both(np.diag([2.0, 0.5])), both(np.eye(2)), np.array([1.0, 0.0])
    assert mdw(long) == pytest.approx((1 / 4 + 4) ** -0.5)
    assert mdw(long) < mdw(square)
    assert gauge(long, x) == pytest.approx(0.5)
    assert gauge(long, x) < gauge(square, x)  # smaller width and smaller rho
    rng = np.random.default_rng(0)
    for A in (long, square, both(rng.standard_normal((2, 5)))):
        for x in rng.standard_normal((20, 2)):
            assert gauge(A, x) <= np.linalg.norm(x) / mdw(A) + ROUNDING  # only this bound is monotone


def test_erratum_14_largest_ball_is_not_centred():
    A, x = np.array([[-1.0, 3.0]]), np.array([-1.0])
    assert inradius(A) == pytest.approx(2.0)
    assert gauge(A, x) == pytest.approx(1.0)
    assert gauge(A, x) > 1 / inradius(A)
    assert gauge(A, x) <= 1 / mdw(A)


def test_erratum_15_relative_quality_is_infeasible_on_the_simplex():
    A, d, delta = np.eye(3), np.ones(3), 0.5
    assert not (A.T @ d <= delta * (A.T @ d).min()).any()  # no atom will do, not even the best
    x = np.full(3, 1 / 3)
    assert (A.T @ d - d @ x <= delta * (A.T @ d - d @ x).min() + ROUNDING).all()  # relative to x they all do
    rng = np.random.default_rng(0)
    A = around_the_origin(rng, 3, 8)
    for d in rng.standard_normal((50, 3)):
        assert (A.T @ d).min() <= 0
        assert (A.T @ d <= delta * (A.T @ d).min()).any()


# ---------------------------------------------------------------------- 16 to 19: lower bounds and coherence


def lower_factor(A, g, z, numerator, denominator):
    return 1 - (width(A, -g) / np.linalg.norm(z)) ** 2 * numerator / denominator


def test_erratum_16_lower_bound_needs_a_vanishing_gradient():
    B, y = np.array([[1.0], [0.0]]), np.array([1.0, 10.0])
    s0, s1 = run(ps.LeastSquares(y), ps.lin(ps.Dictionary(B)), MATCHING_PURSUIT, 1)
    optimum = 50.0  # at (1, 0), in the span
    stated = lower_factor(both(B), s0.grad, s0.atom.vector, 1, 1) * (s0.value - optimum)
    assert stated == pytest.approx(0.5 * (1 - 1 / 101))
    assert s1.value - optimum == 0.0
    assert s1.value - optimum < stated
    projected = lower_factor(both(B), B @ (B.T @ s0.grad), s0.atom.vector, 1, 1) * (s0.value - optimum)
    assert s1.value - optimum >= projected - ROUNDING


def test_erratum_17_square_of_the_cosine():
    f = ps.Quadratic(np.diag([1.0, 4.0]))
    angles = np.linspace(0, np.pi, 10001)
    cosines = []
    for x in np.stack([np.cos(angles), np.sin(angles)]).T:  # the minimiser is 0
        g = f.value_and_grad(x)[1]
        cosines.append(float(g @ x) / np.linalg.norm(g))
    ratio = f.mu / f.L
    assert min(cosines) >= ratio > ratio**2  # the proof squares this, and goes on with ratio instead of ratio^2
    assert min(cosines) ** 2 == pytest.approx(4 * ratio / (1 + ratio) ** 2)  # what it needs is true for another reason
    assert min(cosines) ** 2 >= ratio


def test_erratum_18_smallest_eigenvalue_bound_is_not_strict():
    B = np.eye(4)
    assert np.linalg.eigvalsh(B.T @ B)[0] == 1 - coherence(B) == 1.0  # the lemma claims >
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 6):
        B = unit(rng.standard_normal((4, n)))
        assert np.linalg.eigvalsh(B.T @ B)[0] >= 1 - coherence(B) - ROUNDING


def test_erratum_19_root_of_a_negative_number_and_dependent_atoms():
    rng = np.random.default_rng(0)
    dictionaries = [unit(rng.standard_normal((n, m))) for n, m in product((2, 3, 4), (1, 2, 3, 5)) for _ in range(5)]
    assert sum(coherence(B) > 1 for B in dictionaries) >= 20  # the proof takes sqrt(1 - mu)
    dependent = [B for B in dictionaries if B.shape[1] > B.shape[0]]
    assert all(np.linalg.eigvalsh(B.T @ B)[0] < 1e-12 for B in dependent)  # and its lemma says 0 >= 1 - mu
    for B in dictionaries:  # spanning or not, dependent or not
        n = B.shape[1]
        assert mdw(both(B)) ** 2 >= max(0.0, 1 - coherence(B)) / n - ROUNDING
        assert coherence(B) >= 1 - n * mdw(both(B)) ** 2 - ROUNDING
    for n in (1, 2, 4):
        assert coherence(np.eye(n)) == pytest.approx(1 - n * mdw(both(np.eye(n))) ** 2, abs=1e-12)  # attained
