"""Certificates by the conjugate: hulls with an intercept, spans and cones are proved to rounding."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from operator import mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import BOUNDED, KINDS, dictionary, objective
from scipy.optimize import nnls

import pursuit as ps
from pursuit import verify
from pursuit.arrays import Space
from pursuit.certificates import Certificate
from pursuit.run import result

ONE = np.ones((60, 1))


@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_fenchel_and_young_hold_with_equality_at_the_gradient(kind, seed):
    rng = np.random.default_rng(seed)
    f = objective(kind, rng, 7)
    shape = (7, 3) if "multinomial" in kind else (7,)
    x, other = 2.0 * rng.standard_normal((2, *shape))
    value, u = f.value_and_grad(x)
    conjugate = f.conjugate(u)
    size = abs(value) + float(np.abs(u * x).sum()) + abs(conjugate)
    assert -1e-15 * size <= value + conjugate - float(np.vdot(u, x)) <= 1e-11 * size
    assert f.value(other) >= float(np.vdot(u, other)) - conjugate - 1e-12 * size


@pytest.mark.parametrize("kind", BOUNDED)
def test_conjugates_are_infinite_outside_their_domain(kind):
    f = objective(kind, np.random.default_rng(0), 9)
    u = f.value_and_grad(np.zeros((9, 3) if "multinomial" in kind else 9))[1]
    low, _ = f.dual_range
    assert math.isfinite(f.conjugate(u))
    assert math.isinf(f.conjugate(0 * u + low - 1e-9))
    if "multinomial" in kind:
        assert math.isinf(f.conjugate(u + 1e-9))  # rows that do not sum to 0


def proved(state):
    """The bound that a result has if the run ends here."""
    return state.run.certify.proved(state.value)


def law(f, domain, **options):
    """Run to the end and check that every lower bound of the run lies below every value that any method reaches."""
    lowers, values = [], []
    for update in (None, ps.FullyCorrective(), ps.NormCorrective()):
        for state in ps.iterate(f, domain, update, **options):
            lowers.append(proved(state))
            assert state.lower <= state.value
            if ps.Stop(rgap=1e-9, iterations=60).met(state, 0.0):
                break
        values.append(state.value)
    assert max(lowers) <= min(values) + 1e-14 * abs(min(values))
    return state


@given(
    kind=st.sampled_from(KINDS),
    parts=st.lists(st.sampled_from(["conv", "cone", "lin"]), min_size=1, max_size=3),
    seed=st.integers(0, 10**6),
    oracle=st.sampled_from([ps.Exact(), ps.Approximate(0.6), ps.Approximate(0.5, worst=False), ps.Lazy()]),
)
@settings(max_examples=150, deadline=None)
def test_lower_bounds_are_below_the_minimum(kind, parts, seed, oracle):
    rng = np.random.default_rng(seed)
    n, build = 12, {"conv": ps.conv, "cone": ps.cone, "lin": ps.lin}
    domains = [
        build[p](dictionary(rng.standard_normal((n, int(rng.integers(1, 4)))), kind, bool(rng.integers(2))))
        for p in parts
    ]
    domain = domains[0]
    for other in domains[1:]:
        domain = domain + other
    law(objective(kind, rng, n), domain, oracle=oracle)


@pytest.mark.parametrize("kind", ["squares", *BOUNDED])
def test_a_hull_with_an_intercept_is_certified_as_fast_as_the_hull_alone_on_centred_data(kind):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 8)) + 3.0
    f = objective(kind, rng, 60)
    with_intercept = ps.minimize(f, ps.conv(2.0 * dictionary(X, kind, signed=True)) + ps.lin(dictionary(ONE, kind)))
    assert with_intercept.status is ps.Status.GAP
    assert with_intercept.gap <= 1e-6 * with_intercept.value
    check = with_intercept.check()
    assert check.gap <= 1e-6 * with_intercept.value
    assert check.feasible
    if kind in ("squares", "huber", "narrow"):
        f.y = f.y - np.median(f.y)
    centred = ps.minimize(f, ps.conv(2.0 * dictionary(X - X.mean(axis=0), kind, signed=True)))
    assert with_intercept.iterations <= centred.iterations + 2


@pytest.mark.parametrize("kind", ["squares", "weighted", *BOUNDED])
@pytest.mark.parametrize("build", [ps.lin, ps.cone])
def test_spans_and_cones_of_few_atoms_are_certified(kind, build):
    rng = np.random.default_rng(4)
    if "multinomial" in kind and build is ps.cone:
        pytest.skip("moving into the cone leaves the domain of the conjugate, whose rows sum to 0")
    X = rng.standard_normal((60, 8))
    r = ps.minimize(objective(kind, rng, 60), build(dictionary(X, kind)))
    assert r.status is ps.Status.GAP, (r.status, r.gap)
    assert r.gap <= 1e-6 * abs(r.value)


def test_cones_that_cannot_list_their_atoms_are_certified():
    rng = np.random.default_rng(5)
    Y = rng.uniform(0.0, 1.0, (6, 6))
    cases = [ps.NonnegativeRankOne((6, 6)), ps.Spectrahedron(6)]
    for A, target in zip(cases, [Y, Y + Y.T], strict=True):
        r = ps.minimize(ps.LeastSquares(target - 0.4), ps.cone(A), stop=ps.Stop(rgap=1e-5, iterations=300))
        assert r.status is ps.Status.GAP, (A, r.gap, r.value)


def test_a_cone_of_rectangular_matrices_without_the_ones_inside_claims_nothing():
    class TwoAtoms(ps.Atoms):
        shape, radius = (2, 3), 4.0
        atoms = np.array([[[-1.0, 2, 0], [0, 0, -3]], [[0, -1, -1], [1, 0, -1]]])

        def lmo(self, g):
            return min(self.atoms, key=lambda a: float(np.vdot(a, g)))

    r = ps.minimize(ps.LeastSquares(np.array([[-1.0, 1, 0], [3, 0, -2]])), ps.cone(TwoAtoms()))
    assert (r.lower, r.status) == (0.0, ps.Status.STATIONARY)


def test_a_cone_that_fills_the_space_together_with_a_span_has_no_false_certificate():
    D = np.array([[3.3, 2.5, 6.3, 6.0], [3.5, 0.2, 5.1, 1.4]])
    domain = ps.cone(ps.Dictionary(D)) + ps.lin(ps.Dictionary(np.ones((2, 1))))
    law(ps.LeastSquares([2.0, 0.0], weights=np.array([1.03, 1.27])), domain)  # f* = 0


def test_dependent_and_badly_scaled_columns_of_a_span_do_no_harm():
    rng = np.random.default_rng(6)
    y = rng.standard_normal(40) + 5.0
    classes = np.eye(4)[rng.integers(0, 4, 40)]
    B = np.column_stack([np.ones(40), classes * [1e-8, 1.0, 1e8, 3.0]])  # the classes sum to the intercept
    X = rng.standard_normal((40, 5))
    end = law(ps.LeastSquares(y), ps.conv(ps.Dictionary(X, signed=True)) + ps.lin(ps.Dictionary(B)))
    assert end.gap <= 1e-9 * end.value


def test_rounding_counts_in_units_of_the_gradient_where_the_dual_point_is_nearly_0():
    for y in np.random.default_rng(0).normal(-2.0, 1.0, (50, 1)):  # the intercept is all of the space, and f* is 0
        domain = ps.lin(ps.Dictionary(np.ones((1, 1)))) + ps.conv(2000 * ps.Dictionary(y[:, None]))
        for state in islice(ps.iterate(ps.LeastSquares(y), domain), 3):
            assert proved(state) <= 0.0


@pytest.mark.parametrize("seed", [108, 134, 380, 473])
def test_what_is_left_of_a_huge_gradient_after_a_projection_proves_nothing(seed):
    rng = np.random.default_rng(seed)
    f = ps.Poisson(np.zeros(7))  # whose infimum, 0, is not attained: the intercept goes to minus infinity
    domain = ps.conv(5 * ps.Dictionary(np.exp(3 * rng.standard_normal((7, 4))))) + ps.lin(
        ps.Dictionary(np.ones((7, 1)))
    )
    for state in islice(ps.iterate(f, domain, ps.NormCorrective(several=8)), 5):
        assert proved(state) <= 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("small", [1e-6, 1e-12, 1e-17])
def test_a_dual_point_on_the_boundary_proves_nothing_beside_a_span(small, dtype):
    """The classes are separated by huge weights, so that the infimum is 0; a dual point with the entry 0 of the long
    coordinate is orthogonal to the span but for rounding, and all that are so exactly lie beyond the boundary."""
    labels = np.array([1, 1, 1, 1, -1, -1, -1, -1])
    a = np.where(np.arange(8) == 0, 1.0, small * labels).astype(dtype)[:, None]
    one = np.ones((8, 1), dtype)
    for domain in (ps.lin(ps.Dictionary(a)) + ps.lin(ps.Dictionary(one)), ps.lin(ps.Dictionary(np.hstack([a, one])))):
        for update in (None, ps.FullyCorrective(), ps.NormCorrective()):
            assert all(proved(s) <= 0.0 for s in islice(ps.iterate(ps.Logistic(labels), domain, update), 8))


def saturated(kind, rng):
    """A hull with an intercept or groups, and an objective with entries at the boundary of its dual range."""
    X, b = rng.standard_normal((120, 30)), 2.0 * (np.arange(30) < 4)
    groups = np.eye(4)[np.arange(120) % 4]
    free = groups if "group" in kind else np.ones((120, 1))
    labels = np.where(X @ b + rng.logistic(size=120) > 0, 1.0, -1.0)
    counts = rng.poisson(np.exp(0.3 * X @ b)) * (groups[:, 3] == 0)
    radius = {"separable": 100.0, "large ball": 200.0, "long rows": 10.0}.get(kind, 3.0)
    if kind == "separable":
        labels = np.sign(X @ b)
    elif kind == "long rows":
        X[:20] *= 100.0
        labels[:20] = np.sign(X[:20] @ b)
    elif kind == "pure group":
        labels[groups[:, 3] > 0] = 1.0
    f = ps.Poisson(counts) if kind == "group of zeros" else ps.Logistic(labels)
    return f, ps.conv(radius * ps.Dictionary(X, signed=True)) + ps.lin(ps.Dictionary(free))


@pytest.mark.parametrize("kind", ["separable", "large ball", "long rows", "pure group", "group of zeros"])
def test_entries_at_the_boundary_of_the_dual_range_are_no_obstacle(kind, rng):
    r = ps.minimize(*saturated(kind, rng))
    assert r.status is ps.Status.GAP
    assert r.iterations <= 6
    assert (r.value - r.lower) <= 1e-6 * abs(r.value)


def test_a_dual_point_that_was_moved_is_looked_at_again_beside_cones():
    """The atoms are nearly opposite, so that feasible dual points are few, and a mixture of two leaves them by
    rounding."""
    rng = np.random.default_rng(55)
    a, v = rng.standard_normal(3), rng.standard_normal(3)
    v -= a * (a @ v) / (a @ a)
    v /= np.abs(v).max()
    e, far, offset = v * 10.0 ** rng.uniform(-5, -4), 10.0 ** rng.uniform(6, 12), 10.0 ** rng.uniform(0.5, 3)
    f = ps.Huber(far * a - offset * v, 1.0)
    state = next(ps.iterate(f, ps.cone(ps.Dictionary(np.stack([a, e - a], axis=1)))))
    assert proved(state) <= 4.84  # f at a multiple of a, in exact arithmetic


@pytest.mark.parametrize(("dtype", "short"), [(np.float32, 1e-9), (np.float64, 1e-18)])
def test_slopes_of_long_atoms_that_are_positive_by_rounding_prove_nothing_of_short_ones(dtype, short):
    """Over a cone the weights of short atoms may be huge, so that they lower f although <grad, a> is below rounding."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        D = rng.standard_normal((8, 4)) * [1, 1, 1, short]
        f, domain = (
            ps.LeastSquares((100 * rng.standard_normal(8)).astype(dtype)),
            ps.cone(ps.Dictionary(D.astype(dtype))),
        )
        least = 0.5 * nnls(D / np.linalg.norm(D, axis=0), f.y.astype(float))[1] ** 2
        for update in (None, ps.FullyCorrective()):
            lower = max(proved(s) for s in islice(ps.iterate(f, domain, update), 6))
            assert lower <= least + 1e3 * np.finfo(dtype).eps * f.value(np.zeros(8, dtype))


def test_extra_oracle_calls_are_few_and_counted():
    rng = np.random.default_rng(11)  # a run with one such call
    X, asked = rng.standard_normal((60, 20)), []

    class Counting(ps.Dictionary):
        def best(self, g, several):
            asked.append(g)
            return super().best(g, several)

    r = ps.minimize(ps.Logistic(rng.integers(0, 2, 60)), ps.conv(Counting(X, signed=True)) + ps.lin(ps.Dictionary(ONE)))
    assert r.status is ps.Status.GAP
    assert r.oracle_calls == len(asked) + r.iterations + 1  # the span is asked once per iteration
    assert len(asked) <= 2 * (r.iterations + 2)


CONTRADICTIONS = {
    "wrong sign": (lambda x: 0.5 * float((x - 2) @ (x - 2)), lambda x: 2 - x),
    "concave": (lambda x: -float(x @ x), lambda x: -2 * x),
    "another scale": (lambda x: float(x @ x - x.sum()), lambda x: 0.1 * (2 * x - 1)),
}


@pytest.mark.parametrize("which", CONTRADICTIONS)
@pytest.mark.parametrize("A", [ps.SignedBasis(4), ps.Simplex(4), ps.Dictionary(np.eye(4) + 1.0)])
def test_what_contradicts_convexity_is_not_certified(which, A):
    r = ps.minimize(ps.Smooth(*CONTRADICTIONS[which], L=2.0), ps.conv(A), stop=ps.Stop(iterations=50))
    assert r.status is ps.Status.CONTRADICTION, r
    assert math.isinf(r.gap)
    assert math.isinf(r.check().gap)


def test_an_oracle_that_misses_better_atoms_is_found_out_where_its_bounds_contradict_f():
    rng = np.random.default_rng(0)
    V, b = rng.standard_normal((30, 80)), rng.standard_normal(30)

    def lmo(g):  # a solver that is stopped early, half of the time
        return V[:, np.argmin(g @ V) if rng.random() < 0.5 else rng.integers(80)]

    results = [ps.minimize(ps.Quadratic(np.eye(30), b), ps.conv(lmo)) for _ in range(20)]
    assert all(r.lower <= r.value and r.gap >= r.value - r.lower for r in results)
    found_out = [r for r in results if r.status is ps.Status.CONTRADICTION]
    assert len(found_out) >= 10 and all(np.isinf(r.gap) for r in found_out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_convex_functions_are_never_called_contradictory(kind, scale):
    rng = np.random.default_rng(1)
    A = scale * dictionary(rng.standard_normal((10, 15)), kind, signed=True)
    r = ps.minimize(objective(kind, rng, 10), ps.conv(A), stop=ps.Stop(rgap=1e-14, iterations=15))
    assert r.status is not ps.Status.CONTRADICTION


def test_columns_that_differ_little_in_float32_still_span_their_difference():
    rng = np.random.default_rng(0)
    a = 13 + rng.standard_normal(6)
    D = np.column_stack([a, a + 1e-5 * rng.standard_normal(6), rng.standard_normal(6)]).astype(np.float32)
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    lowest = ps.minimize(ps.Logistic(y), ps.lin(ps.Dictionary(D.astype(float)))).value
    states = islice(ps.iterate(ps.Logistic(y.astype(np.float32)), ps.lin(ps.Dictionary(D))), 5)
    assert all(proved(s) <= lowest + 1e-5 for s in states)


def two_columns(d, h):
    """A constant and a column that differs from it by h, and a target whose least squares need their difference."""
    rng = np.random.default_rng(d)
    D = np.stack([np.ones(d), 1.0 + h * rng.standard_normal(d)], axis=1)
    b = D[:, 1] - D[:, 0]
    return D, 1.0 + 10.0 * b / np.linalg.norm(b)


TIMES = 1.7e18 + np.sort(np.random.default_rng(0).integers(0, 50_000_000, 500)).astype(float)  # in nanoseconds
NEARLY_DEPENDENT = {
    "nearly equal": two_columns(10, 5e-15),
    "nearly equal, long": two_columns(1000, 5e-13),
    "one huge row": (np.array([[9.97e36, 2 * 9.97e36], [1.0, -1.0]]), np.array([0.0, 3.0])),
    "one tiny row": (np.array([[1e-33, -3e-33], [-1.0, -2.0]]), np.array([1.0, 2.0])),
    "an intercept beside time stamps": (np.stack([np.ones(500), TIMES], axis=1), (TIMES - 1.7e18) / 1e7),
}


@pytest.mark.parametrize("which", NEARLY_DEPENDENT)
@pytest.mark.parametrize("apart", [False, True])
def test_columns_that_are_nearly_dependent_span_their_difference(which, apart):
    D, y = NEARLY_DEPENDENT[which]
    exact = [[Fraction(v) for v in column] for column in (*D.T.tolist(), y.tolist())]
    (a, b, p), (_, c, q), (_, _, r) = ([sum(map(mul, u, v)) for v in exact] for u in exact)
    least = (r - (c * p * p - 2 * b * p * q + a * q * q) / (a * c - b * b)) / 2  # the residual of least squares
    parts = [ps.lin(ps.Dictionary(E)) for E in ((D[:, :1], D[:, 1:]) if apart else (D,))]
    for update in (None, ps.FullyCorrective()):
        run = ps.minimize(ps.LeastSquares(y), sum(parts), update)
        assert run.lower <= least * (1 + Fraction(1, 10**12)) + Fraction(1, 10**9)


def test_a_line_through_time_stamps_in_nanoseconds_is_proved_to_be_better_than_the_mean():
    columns = np.stack([np.ones(500), TIMES], axis=1)
    s = (TIMES - 1.7e18) / 1e7
    y = 1.0 + s + np.random.default_rng(1).standard_normal(500)
    least = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(np.stack([np.ones(500), s - s.mean()], axis=1))))
    r = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(columns)))
    assert 0.999999 * least.value <= r.lower <= least.value  # the same line
    assert r.check().lower <= least.value


def test_a_conjugate_is_rounded_upwards():
    rng = np.random.default_rng(0)
    for _ in range(50):
        y, s, u = 10.0 ** rng.uniform(-8, 8) * rng.standard_normal((3, 7))
        s = np.abs(s) + 1e-3
        exact = sum(
            Fraction(a) ** 2 / Fraction(c) / 2 + Fraction(a) * Fraction(b)
            for a, b, c in zip(*map(np.ndarray.tolist, (u, y, s)), strict=True)
        )
        for radius in (0.0, 1e-9):
            above = ps.LeastSquares(y, s).conjugate_above(u, np.full(7, radius))
            assert Fraction(above) >= exact
        assert ps.LeastSquares(y, s).conjugate_above(u, np.zeros(7)) - float(exact) <= 1e-14 * float(
            np.abs(u * u / s).sum() + np.abs(u * y).sum()
        )


def test_the_infimum_of_counts_is_rounded_downwards():
    for y in np.random.default_rng(0).integers(0, 7, (20, 5)):
        exact = verify.Loss({"kind": "poisson", "y": [float(v) for v in y]}, lambda v, _: ((len(v),), v))
        low = Fraction(ps.Poisson(y).infimum)
        assert low <= -exact.conjugate_up(verify.Vector([0] * 5)) <= low + Fraction(1, 10**12)


def test_a_gap_is_reported_once_it_is_proved():
    rng = np.random.default_rng(0)
    f = ps.LeastSquares(1e8 + rng.standard_normal(50))
    r = ps.minimize(f, ps.conv(ps.Dictionary(rng.standard_normal((50, 20)), signed=True)), stop=ps.Stop(rgap=1e-30))
    assert r.status is not ps.Status.GAP or r.gap <= 1e-30 * r.value
    assert r.lower <= r.value and r.gap == r.value - r.lower


@pytest.mark.parametrize(("curvature", "slope"), [(1e-14, 1e-15), (1e-30, 1e-16), (1e-300, 1e-16), (0.0, 1e-15)])
@pytest.mark.parametrize("domain", [ps.lin(ps.Dictionary(np.eye(2))), ps.cone(ps.Dictionary(-np.eye(2)))])
def test_directions_in_which_a_quadratic_is_flat_but_for_rounding_prove_nothing(curvature, slope, domain):
    f = ps.Quadratic(np.diag([1.0, curvature]), [1.0, slope])
    lowest = -0.5 - slope**2 / (2 * curvature) if curvature else -math.inf
    assert ps.minimize(f, domain).lower <= lowest + 1e-9


@pytest.mark.parametrize("h", [1e-8, 1e-12, 3e-14])
def test_the_bound_of_a_quadratic_at_0_allows_for_the_rounding_of_its_dual_point(h):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        D, c = rng.standard_normal((4, 1)) + h * rng.standard_normal((4, 2)), rng.standard_normal(4)
        exact = [[Fraction(v) for v in column] for column in (*D.T.tolist(), c.tolist())]
        (a, b, p), (_, e, q), _ = ([sum(map(mul, u, v)) for v in exact] for u in exact)
        least = -(e * p * p - 2 * b * p * q + a * q * q) / (a * e - b * b) / 2
        assert ps.minimize(ps.Quadratic(np.eye(4), c), ps.lin(ps.Dictionary(D))).lower <= least * (
            1 - Fraction(1, 10**12)
        )


def test_inner_products_of_long_float32_vectors_are_exact_to_a_few_units_of_roundoff():
    a = np.full(4_000_000, 1.0 + 2.0**-10, np.float32)
    space = Space.of(a)
    assert abs(space.dot(a, a) / (len(a) * (1.0 + 2.0**-10) ** 2) - 1.0) <= 4 * space.eps


def test_rounding_far_out_on_a_flat_line_is_no_contradiction():
    a = np.array([0.8, 0.6])
    f = ps.Quadratic(0.3 * np.outer(a, a), -a)  # constant along (0.6, -0.8), where x may lie anywhere
    certificate = Certificate(f, domain := ps.lin(ps.Dictionary(np.eye(2))), space := Space.of(a))
    lowest = -0.5 / 0.3
    for far, rounding in ((0.0, 0.0), (1e4, 1e-9)):
        active = domain.active_set(space)
        active.replace(np.array([1.0]), [ps.Atom(a / 0.3 + far * np.array([0.6, -0.8]))], 0)
        grad = np.full(2, 1e-16)
        answers = [ps.Exact().begin(domain, space, ps.FullyCorrective())(grad, active, 0.0)]
        certificate(lowest - rounding, grad, [replace(answers[0], level=active.levels(grad)[0])], active)
    assert not certificate.contradicted
    assert math.isinf(certificate.gap)  # H may have a negative eigenvalue by rounding: nothing is known of the infimum


@pytest.mark.parametrize("seed", [0, 3, 5, 6])
def test_large_weights_that_cancel_leave_the_span_by_rounding_which_is_no_contradiction(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, 8))
    D = np.stack([a, b, b + 1e-6 * rng.standard_normal(8)], axis=1)
    X = rng.standard_normal((12, 8))
    f = ps.Quadratic(X.T @ X, 30 * rng.standard_normal(8))
    r = ps.minimize(f, ps.lin(ps.Dictionary(D)), stop=ps.Stop(rgap=1e-9, iterations=10))
    assert r.status is not ps.Status.CONTRADICTION
    assert r.gap <= 1e-6 * abs(r.value)


def test_a_singular_quadratic_where_long_atoms_cancel_is_bounded_as_its_products_are():
    H = np.array([[2, 2, -4], [2, 4, -6], [-4, -6, 10]], np.float32)
    c, a = np.array([8, 14, -22], np.float32), np.array([1000000.875, 999999.125, 999999.875], np.float32)
    x = [Fraction(float(v)) for v in a]
    Hx = [sum(map(mul, map(int, row), x)) for row in H]
    least = sum(map(mul, x, Hx)) / 2 + sum(map(mul, map(int, c), x))
    r = ps.minimize(ps.Quadratic(H, c), ps.conv(ps.Dictionary(a[:, None])))
    assert max(r.lower, r.check().lower) <= least < r.value  # the only point of the domain


def test_columns_whose_minors_one_prime_divides_are_not_dependent():
    """2^31 - 1 is a prime, and what a whole number that is missing looks like."""
    D = np.array([[2.0**85, 2.0**85], [0.0, 2.0**31 - 1.0], [1.0, 1.0]])
    r = ps.minimize(ps.LeastSquares(np.array([1.0, 3.0, 0.0])), ps.lin(ps.Dictionary(D)))
    assert r.lower <= 1e-50  # f* is 3.4e-52, and the value of the first column alone 4.5


def test_products_with_atoms_of_penalties_are_no_terms_of_the_bound():
    D = np.array([[1e7, 1.0], [-1e7, 2.0]])
    r = ps.minimize(ps.LeastSquares(np.array([1e-8, 3e-8])), ps.penalty(5.0 * ps.Dictionary(D)))
    assert r.value > 0 and r.gap <= 1e-13 * r.value


def test_a_multiple_of_atoms_spans_what_they_span():
    """Atoms times 5 are rounded in float32, so that theirs is another span."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        D, y = rng.standard_normal((4, 2)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
        r = ps.minimize(ps.LeastSquares(y), ps.lin(5 * ps.Dictionary(D)))
        wide = ps.minimize(ps.LeastSquares(y.astype(float)), ps.lin(ps.Dictionary(D.astype(float))))
        assert r.lower <= wide.value * (1 + 1e-14)


@pytest.mark.parametrize("f", [
    ps.Huber(np.array([5.0, 4.0, -4.0, -5.0]), 0.5), ps.Multinomial(np.arange(4) % 3)
])  # fmt: skip
def test_spans_are_proved_at_kinks_and_for_dependent_columns_of_classes(f):
    one = np.ones((4, 1)) if isinstance(f, ps.Huber) else np.random.default_rng(0).standard_normal((4, 3, 1))
    domain = ps.lin(ps.Dictionary(np.concatenate([one, -2.0 * one], axis=-1)))
    r = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-10))
    assert r.gap <= 1e-10 * r.value


def test_a_small_problem_whose_bound_in_floats_is_loose_is_proved_in_rational_numbers(monkeypatch):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((4, 3))[:, [0, 0, 1]] * (1 + 1e-4 * rng.standard_normal((4, 3)))
    X[:, 0] *= 1e18
    atoms = ps.Dictionary(np.stack([X * scale for scale in rng.standard_normal(3)], axis=1))
    domain = ps.penalty(atoms) + ps.lin(ps.Dictionary(np.ones((4, 3, 1))))
    f, stop = ps.Multinomial(np.eye(3)[[0, 1, 2, 0]]), ps.Stop(rgap=1e-9, iterations=10)
    assert ps.minimize(f, domain, stop=stop).gap < 1e-9
    monkeypatch.setattr(result, "MAX_EXACT", 0)
    assert ps.minimize(f, domain, stop=stop).gap > 1.0


def test_a_quadratic_that_ends_where_it_begins_has_no_gap(monkeypatch):
    monkeypatch.setattr(result, "MAX_EXACT", 0)
    f = ps.Quadratic([[2.0, 0.3], [0.3, 1.0]], [0.1, -0.7])
    r = ps.minimize(f, ps.penalty(5.0 * ps.SignedBasis(2)))
    assert r.gap == r.value == r.lower == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_ends_of_the_domain_of_a_conjugate_are_rounded_inwards(seed):
    rng = np.random.default_rng(seed)
    y, s = rng.standard_normal(4).astype(np.float32), rng.random(4).astype(np.float32)
    r = ps.minimize(ps.Huber(y, 2.18e-5 * (1 + seed), s), ps.conv(0.001 * ps.Dictionary(np.eye(4, dtype=np.float32))))
    assert r.lower <= r.certificate.value
