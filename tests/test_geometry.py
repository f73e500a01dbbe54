"""Geometry of atom sets: closed forms against brute force, certified intervals against exact values, laws."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from geometries import Listed, OracleOnly, law, positive_definite, seeds, unit_columns
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

import pursuit as ps
from pursuit import geometry as geo
from pursuit.atoms.closed import Closed
from pursuit.geometry import Interval, polytope

QUANTITIES = (geo.radius, geo.diameter, geo.mdw, geo.inradius)


# ---------------------------------------------------------------------- brute force, by definitions


def brute_radius(points):
    return max(np.linalg.norm(p) for p in points)


def brute_diameter(points):
    return max(np.linalg.norm(p - q) for p in points for q in points)


def brute_distance(points):
    """Distance from 0 to the hull: the nearest point lies in the hull of some affinely independent subset."""
    best = math.inf
    for k in range(1, points.shape[1] + 2):
        for some in combinations(points, min(k, len(points))):
            P = np.array(some)
            kkt = np.block([[P @ P.T, np.ones((len(P), 1))], [np.ones((1, len(P))), np.zeros((1, 1))]])
            w = np.linalg.lstsq(kkt, np.append(np.zeros(len(P)), 1.0), rcond=None)[0][:-1]
            if abs(w.sum() - 1) < 1e-9 and (w > -1e-9).all():
                best = min(best, float(np.linalg.norm(w @ P)))
    return best


def brute_mdw(points):
    """The trichotomy, with facets found by trying every hyperplane through r of the points."""
    r = points.shape[1]
    outside = brute_distance(points)
    if outside > 1e-9:
        return -outside
    best = math.inf
    for some in combinations(points, r):
        P = np.array(some)
        _, s, Vt = np.linalg.svd(P[1:] - P[0]) if r > 1 else (None, np.ones(0), np.eye(1))
        if r > 1 and s[-1] < 1e-9:
            continue
        for u in (Vt[-1], -Vt[-1]):
            if (points @ u).max() <= P[0] @ u + 1e-9:
                best = min(best, float(P[0] @ u))
    return best


def brute_gauge(points, x):
    """Least total weight over all bases: a linear program is solved at a vertex."""
    best = math.inf
    for some in combinations(points, points.shape[1]):
        P = np.array(some).T
        if abs(np.linalg.det(P)) > 1e-9 and ((w := np.linalg.solve(P, x)) > -1e-9).all():
            best = min(best, float(w.sum()))
    return best


def corners(lower, upper):
    return np.array(list(product(*zip(lower, upper, strict=True))))


BOXES = {
    "inside": (lambda n: -np.arange(1.0, n + 1), lambda n: np.linspace(0.5, 2.0, n)),
    "boundary": (lambda n: np.append(0.0, -np.ones(n - 1)), lambda n: np.arange(1.0, n + 1)),
    "outside": (lambda n: np.append([1.0, 0.5][: min(n, 2)], -np.ones(max(n - 2, 0))), lambda n: np.full(n, 3.0)),
    "symmetric": (lambda n: -np.arange(1.0, n + 1), lambda n: np.arange(1.0, n + 1)),
}


def polytopes(n):
    """Every set of section 5 with finitely many vertices that the package has, and its vertices."""
    eye = np.eye(n)
    yield ps.SignedBasis(n), np.vstack([eye, -eye])
    yield ps.Simplex(n), eye
    yield ps.Ball(n, 1), np.vstack([eye, -eye])
    yield ps.Ball(n, np.inf), corners(-np.ones(n), np.ones(n))
    for lower, upper in BOXES.values():
        yield ps.Box(lower(n), upper(n)), corners(lower(n), upper(n))


CASES = [(A, P, c) for n in range(2, 7) for A, P in polytopes(n) for c in (1.0, 2.5, -0.4)]


@pytest.mark.parametrize(("A", "P", "c"), CASES, ids=lambda v: repr(v) if isinstance(v, ps.Atoms) else "")
def test_closed_forms_agree_with_the_listed_vertices(A, P, c):
    scaled, listed = c * A, Listed(c * P)
    assert geo.radius(scaled).upper == pytest.approx(brute_radius(c * P), rel=1e-12)
    assert geo.diameter(scaled).upper == pytest.approx(brute_diameter(c * P), rel=1e-12)
    for quantity in QUANTITIES:
        closed, found = quantity(scaled), quantity(listed)
        assert closed.lower == closed.upper
        assert found.lower <= closed.upper + 1e-13
        assert found.upper >= closed.lower - 1e-13
        assert found.upper - found.lower <= 1e-11
    x = np.random.default_rng(1).standard_normal(P.shape[1])
    for point in (x, np.abs(x), c * P.mean(axis=0), c * P[0]):
        closed, found = geo.gauge(scaled, point), geo.gauge(listed, point)
        assert closed.exact
        assert found.upper == pytest.approx(closed.upper, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_balls_are_narrowest_along_an_axis_or_the_diagonal(n, p):
    A, rng = ps.Ball(n, p), np.random.default_rng(0)
    directions = [*np.eye(n), np.ones(n), *rng.standard_normal((200, n))]
    widths = [geo.directional_width(A, d).upper for d in directions]
    assert min(widths) == pytest.approx(geo.mdw(A).upper, rel=1e-12)
    lengths = [np.linalg.norm(A.lmo(d).vector) for d in directions]
    assert max(lengths) == pytest.approx(geo.radius(A).upper, rel=1e-12)
    assert geo.diameter(A).upper == pytest.approx(2 * geo.radius(A).upper)
    assert geo.inradius(A) == geo.mdw(A)


def test_flat_boxes_live_in_their_own_span():
    A = ps.Box([-1.0, 0.0, -2.0], [3.0, 0.0, 2.0])
    assert geo.mdw(A) == Interval(1.0, 1.0)
    assert geo.inradius(A) == Interval(2.0, 2.0)
    assert geo.inradius(ps.Box([-1.0, 1.0], [1.0, 1.0])) == Interval(0.0, 0.0)
    assert geo.mdw(ps.Box([-1.0, 1.0], [1.0, 1.0])) == Interval(-1.0, -1.0)


# ---------------------------------------------------------------------- the width of finite sets


@law
@given(seeds, st.integers(2, 4), st.integers(0, 3))
def test_mdw_of_signed_dictionaries_is_the_nearest_facet(seed, r, more):
    D = np.random.default_rng(seed).standard_normal((r, r + more))
    width = geo.mdw(ps.Dictionary(D, signed=True))
    assert width.exact
    assert brute_mdw(np.vstack([D.T, -D.T])) == pytest.approx(width.upper, rel=1e-8)


@law
@given(seeds, st.integers(2, 3), st.integers(1, 5), st.floats(0.0, 2.0))
def test_mdw_of_any_list_follows_the_trichotomy(seed, r, more, shift):
    P = np.random.default_rng(seed).standard_normal((r + more, r)) + shift
    width = geo.mdw(Listed(P))
    assert brute_mdw(P) == pytest.approx(width.upper, rel=1e-7, abs=1e-9)
    assert width.upper - width.lower <= 1e-11 * brute_radius(P)


@law
@given(seeds, st.integers(2, 5), st.integers(1, 9), st.booleans())
def test_no_direction_is_narrower_and_the_minimising_one_is_as_narrow(seed, r, n, signed):
    rng = np.random.default_rng(seed)
    A = ps.Dictionary(rng.standard_normal((r, n)), signed=signed)
    width = geo.mdw(A)
    for w in rng.standard_normal((20, n)):
        assert geo.directional_width(A, A.D @ w).upper >= width.lower - 1e-12
    best = polytope.mdw(A.D.T, signed).direction
    assert geo.directional_width(A, best).upper == pytest.approx(width.upper, abs=1e-12)


def test_zero_and_repeated_and_dependent_atoms_change_nothing():
    D = unit_columns(0, 3, 4)
    width = geo.mdw(ps.Dictionary(D, signed=True))
    again = np.column_stack([D, D[:, :2], -D[:, 1], 0.3 * D[:, 0], D @ np.full(4, 0.1)])
    assert geo.mdw(ps.Dictionary(again, signed=True)).upper == pytest.approx(width.upper, rel=1e-12)
    assert geo.mdw(Listed(np.vstack([D.T, -D.T, np.zeros(3)]))).upper == pytest.approx(width.upper, rel=1e-12)
    high = np.linalg.qr(np.random.default_rng(1).standard_normal((9, 3)))[0] @ D  # the same set in a subspace of R^9
    assert geo.mdw(ps.Dictionary(high, signed=True)).upper == pytest.approx(width.upper, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e-9, 1e9, 1e150])
def test_quantities_scale_with_the_set(scale):
    D = unit_columns(1, 4, 7)
    for quantity, signed in product(QUANTITIES, (True, False)):
        plain, scaled = quantity(ps.Dictionary(D, signed=signed)), quantity(ps.Dictionary(scale * D, signed=signed))
        assert scaled.upper == pytest.approx(scale * plain.upper, rel=1e-9)
        assert scaled.lower == pytest.approx(scale * plain.lower, rel=1e-9)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_signs_and_facets_give_the_same_width(n, monkeypatch):
    D = np.random.default_rng(n).standard_normal((n, n))
    by_signs = geo.mdw(ps.Dictionary(D, signed=True))
    monkeypatch.setattr(polytope, "MAX_SIGNS", 0)
    by_facets = geo.mdw(ps.Dictionary(D, signed=True))
    assert by_signs.exact
    assert by_facets.exact
    assert by_signs.upper == pytest.approx(by_facets.upper, rel=1e-10)


@pytest.mark.parametrize("r", [2, 4, 6])
def test_intervals_beyond_the_budget_contain_the_exact_width(r, monkeypatch):
    exact = []
    for seed in range(4):
        D = unit_columns(seed, r, r + 2 * seed)
        exact += [(ps.Dictionary(D, signed=True), geo.mdw(ps.Dictionary(D, signed=True)), 1.35)]
        inside = np.column_stack([D, -D @ np.random.default_rng(seed).dirichlet(np.ones(r + 2 * seed))])
        exact += [(ps.Dictionary(inside), geo.mdw(ps.Dictionary(inside)), math.inf)]
    monkeypatch.setattr(polytope, "MAX_FACETS", 0)
    monkeypatch.setattr(polytope, "MAX_SIGNS", 0)
    monkeypatch.setattr(polytope, "MAX_PROGRAMS", 60)
    for A, width, ratio in exact:
        assert width.upper - width.lower < 1e-12
        found = geo.mdw(A)
        assert found.lower <= width.upper
        assert found.upper >= width.lower
        assert found.upper <= 1.07 * width.upper + 1e-12
        assert found.lower > 0 or width.lower < 1e-12 or math.isinf(ratio)
        assert found.upper <= ratio * found.lower or math.isinf(ratio)


@law
@given(seeds, st.integers(2, 5), st.integers(0, 5))
def test_lower_bounds_are_ordered_coherence_sigma_design_width(seed, r, more):
    n = r + more
    D = unit_columns(seed, r, n)
    coherence = math.sqrt(max(0.0, 1 - geo.coherence(D, n - 1).upper) / n)
    sigma = np.linalg.svd(D)[1][-1] / math.sqrt(n)
    design, w = polytope.design(D.T)
    assert coherence <= sigma + 1e-12
    assert sigma <= design + 1e-12
    assert design <= geo.mdw(ps.Dictionary(D, signed=True)).upper
    assert w.sum() == pytest.approx(1.0)
    assert design**2 <= np.linalg.eigvalsh(D @ np.diag(w) @ D.T)[0]


def test_certified_width_of_100_signed_atoms_in_dimension_50_within_a_ratio_of_1_35():
    width = geo.mdw(ps.Dictionary(unit_columns(0, 50, 100), signed=True))
    assert 0 < width.lower <= width.upper <= 1.35 * width.lower


def test_a_surface_with_a_hole_or_around_another_point_certifies_nothing():
    P = np.vstack([np.eye(3), -np.eye(3)])
    simplices = ConvexHull(P).simplices
    assert polytope._closed(simplices)
    assert not polytope._closed(simplices[1:])
    assert polytope._winds_around_origin(P, simplices)
    assert not polytope._winds_around_origin(P + 2.0, simplices)
    assert polytope.facets(P).certified
    assert not polytope.facets(P + 2.0).certified


# ---------------------------------------------------------------------- inradius


@law
@given(seeds)
def test_inradius_of_a_triangle_is_twice_its_area_over_its_perimeter(seed):
    P = np.random.default_rng(seed).standard_normal((3, 2)) + 3
    sides = [np.linalg.norm(P[i] - P[i - 1]) for i in range(3)]
    area = abs(np.linalg.det(P[1:] - P[0])) / 2
    found = geo.inradius(Listed(P))
    assert found.upper == pytest.approx(2 * area / sum(sides), rel=1e-8)
    assert found.upper - found.lower <= 1e-10


@law
@given(seeds, st.integers(2, 4), st.integers(2, 8))
def test_inradius_is_the_width_around_the_best_centre(seed, r, more):
    P = np.random.default_rng(seed).standard_normal((r + more, r))
    A = Listed(P)
    inner = geo.inradius(A)
    assert inner.upper >= geo.mdw(A).lower - 1e-12
    for centre in np.random.default_rng(seed).dirichlet(np.ones(len(P)), 5) @ P:
        assert geo.mdw(Listed(P - centre)).lower <= inner.upper + 1e-12
    monkey = pytest.MonkeyPatch()
    with monkey.context() as m:
        m.setattr(polytope, "MAX_FACETS", 0)
        m.setattr(polytope, "MAX_PROGRAMS", 20)
        loose = geo.inradius(A)
    assert loose.lower <= inner.upper
    assert loose.upper >= inner.lower


# ---------------------------------------------------------------------- metrics


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_metric_is_the_euclidean_geometry_of_the_image(quantity, n):
    M = positive_definite(n, n)
    T = np.linalg.cholesky(M).T
    for A, P in polytopes(n):
        found, image = quantity(A, metric=M), quantity(Listed(P @ T.T))
        assert found.upper == pytest.approx(image.upper, rel=1e-9, abs=1e-12)
        assert found.lower == pytest.approx(image.lower, rel=1e-9, abs=1e-12)
        diagonal = quantity(A, metric=np.arange(1.0, n + 1))
        image = quantity(Listed(P * np.sqrt(np.arange(1.0, n + 1))))
        assert diagonal.upper == pytest.approx(image.upper, rel=1e-9, abs=1e-12)
        assert quantity(A, metric=4.0).upper == pytest.approx(2 * quantity(A).upper)


@pytest.mark.parametrize("seed", range(4))
def test_width_in_a_metric_divides_by_the_dual_norm(seed):
    rng, M = np.random.default_rng(seed), positive_definite(seed, 3)
    A = ps.Dictionary(rng.standard_normal((3, 6)), signed=True)
    T = np.linalg.cholesky(M).T
    best = polytope.mdw((T @ A.D).T, True)
    functional = T.T @ best.direction
    assert geo.directional_width(A, functional, metric=M).upper == pytest.approx(geo.mdw(A, metric=M).upper, rel=1e-10)
    for d in rng.standard_normal((50, 3)):
        dual = math.sqrt(d @ np.linalg.solve(M, d))
        width = geo.directional_width(A, d, metric=M)
        assert width.upper == pytest.approx(np.abs(d @ A.D).max() / dual, rel=1e-12)
        assert width.upper >= geo.mdw(A, metric=M).lower
        assert d @ A.D[:, 0] <= dual * math.sqrt(A.D[:, 0] @ M @ A.D[:, 0]) + 1e-12  # the pairing that makes it dual


def test_balls_in_a_metric_are_ellipsoids():
    M = positive_definite(0, 4)
    values = np.sqrt(np.linalg.eigvalsh(M))
    A = 2 * ps.Ball(4, 2)
    assert geo.radius(A, metric=M).upper == pytest.approx(2 * values[-1])
    assert geo.diameter(A, metric=M).upper == pytest.approx(4 * values[-1])
    assert geo.mdw(A, metric=M).upper == pytest.approx(2 * values[0])
    rank_two = np.random.default_rng(0).standard_normal((3, 2)) @ np.random.default_rng(1).standard_normal((2, 4))
    image = ps.Ball(4, 2).through(rank_two)
    assert geo.mdw(image).upper == pytest.approx(np.linalg.svd(rank_two)[1][1])
    assert geo.gauge(image, rank_two @ np.ones(4)).upper <= 2.0
    assert geo.gauge(image, np.linalg.svd(rank_two)[0][:, 2]).lower == math.inf


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_other_balls_in_a_metric_get_bounds_that_hold(p):
    A, M, rng = ps.Ball(3, p), positive_definite(1, 3), np.random.default_rng(0)
    width, radius = geo.mdw(A, metric=M), geo.radius(A, metric=M)
    sampled = [geo.directional_width(A, d, metric=M).upper for d in rng.standard_normal((300, 3))]
    assert 0 < width.lower <= min(sampled)
    assert min(sampled) / width.upper > 0.99
    lengths = [math.sqrt((z := A.lmo(d).vector) @ M @ z) for d in rng.standard_normal((300, 3))]
    assert max(lengths) <= radius.upper
    assert radius.lower >= 0.999 * max(lengths)


# ---------------------------------------------------------------------- the atomic norm


@law
@given(seeds, st.integers(2, 4), st.integers(0, 4), st.booleans())
def test_gauge_is_the_least_weight_over_all_bases(seed, r, more, signed):
    rng = np.random.default_rng(seed)
    D, x = rng.standard_normal((r, r + more)), rng.standard_normal(r)
    P = np.vstack([D.T, -D.T]) if signed else D.T
    found = geo.gauge(ps.Dictionary(D, signed=signed), x)
    assert found.exact
    assert found.upper == pytest.approx(brute_gauge(P, x), rel=1e-8)


@law
@given(seeds, st.integers(2, 5), st.floats(0.1, 10.0))
def test_gauge_of_a_symmetric_set_is_a_norm_between_its_radius_and_its_width(seed, r, c):
    rng = np.random.default_rng(seed)
    A = ps.Dictionary(rng.standard_normal((r, r + 3)), signed=True)
    x, y = rng.standard_normal((2, r))
    size, slack = geo.gauge(A, x).upper, 1e-9
    assert geo.gauge(A, c * x).upper == pytest.approx(c * size, rel=1e-8)
    assert geo.gauge(A, -x).upper == pytest.approx(size, rel=1e-8)
    assert geo.gauge(A, x + y).lower <= (size + geo.gauge(A, y).upper) * (1 + slack)
    assert np.linalg.norm(x) <= geo.radius(A).upper * size * (1 + slack)
    assert size * geo.mdw(A).lower <= np.linalg.norm(x) * (1 + slack)


ORACLES = [ps.SignedBasis(4), ps.Simplex(3), ps.Box([-1.0, -2.0], [3.0, 1.0]), ps.Ball(3, 2), ps.Ball(3, 3)]


@pytest.mark.parametrize("A", ORACLES, ids=repr)
def test_an_oracle_alone_bounds_every_quantity(A):
    blind, rng = OracleOnly(A), np.random.default_rng(0)
    for quantity in QUANTITIES:
        known, found = quantity(A), quantity(blind)
        assert found.lower <= known.upper + 1e-12
        assert found.upper >= known.lower - 1e-12
    assert geo.radius(blind).exact
    assert geo.mdw(blind).upper == pytest.approx(geo.mdw(A).upper, rel=0.05)
    for x in (rng.standard_normal(A.shape), np.abs(rng.standard_normal(A.shape))):
        known, found = geo.gauge(A, x), geo.gauge(blind, x)
        assert found.lower <= known.upper * (1 + 1e-9)
        assert found.upper >= known.lower * (1 - 1e-9)
        assert found.upper == pytest.approx(found.lower, rel=1e-4)
        assert geo.directional_width(blind, x) == geo.directional_width(A, x)


@pytest.mark.parametrize("tilt", [1e-3, 1e-6, 1e-9, 1e-12])
def test_bounds_for_nearly_dependent_atoms_widen_and_hold(tilt):
    A = ps.Dictionary(np.array([[1.0, 1.0], [0.0, tilt]]), signed=True)  # e_2 = (b_2 - b_1) / tilt
    found, width = geo.gauge(A, [0.0, 1.0]), geo.mdw(A)
    assert 2 / tilt in found
    assert found.upper <= (1 + 1e-13 / tilt) * found.lower
    assert 1 / math.hypot(2 / tilt, 1.0) in width
    assert width.upper <= width.lower + 1e-13


@law
@given(st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=4, max_size=8), st.integers(0, 26))
def test_degenerate_sets_of_integer_points_are_exact_too(rows, code):
    P = np.array(rows, dtype=float)
    if np.linalg.matrix_rank(P) < 3:
        return
    A, x = Listed(P), np.array([code % 3, code // 3 % 3, code // 9]) - 1.0
    width = geo.mdw(A)
    assert width.lower - 1e-9 <= brute_mdw(P) <= width.upper + 1e-9
    assert width.upper - width.lower <= 1e-12
    if x.any():
        assert geo.gauge(A, x).exact
        assert geo.gauge(A, x).upper == pytest.approx(brute_gauge(P, x), rel=1e-9)


class Selections(ps.Atoms):
    """Sign vectors with k nonzeros: a set of the user's own that says what it knows about itself."""

    symmetric = True

    def __init__(self, n, k):
        self.k, self.shape, self.radius, self.width = k, (n,), math.sqrt(k), min(1.0, k / math.sqrt(n))

    def lmo(self, g):
        z, top = np.zeros(g.shape), np.argsort(-np.abs(g), kind="stable")[: self.k]
        z[top] = np.where(g[top] > 0, -1.0, 1.0)
        return ps.Atom(z)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (5, 2), (6, 4), (20, 3), (4, 4)])
def test_what_a_set_says_about_itself_is_confirmed_from_the_other_side(n, k):
    A = Selections(n, k)
    assert geo.radius(A).exact
    assert geo.diameter(A).upper == pytest.approx(2 * math.sqrt(k))
    assert geo.diameter(A).exact
    assert geo.mdw(A).upper == pytest.approx(min(1.0, k / math.sqrt(n)))
    assert geo.mdw(A).exact
    x = np.random.default_rng(n).standard_normal(n)
    if n < 10:
        assert geo.gauge(A, x).upper == pytest.approx(max(np.abs(x).max(), np.abs(x).sum() / k), rel=1e-8)


class Pairs(Listed):
    """Listed atoms whose set states some closed forms of its geometry, and leaves out the others."""

    def __init__(self, rows, **stated):
        super().__init__(rows)
        self.stated = stated

    def geometry(self):
        return Closed(self.shape[0], **self.stated)


def test_a_closed_form_that_a_set_states_is_used_and_whatever_it_leaves_out_is_computed():
    rows = polytope.both(np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))  # they span a plane
    listed, stated = Listed(rows), Pairs(rows, radius=2.0, mdw=0.125, pyramidal=0.25)
    M = positive_definite(0, 3)
    for quantity in (geo.diameter, geo.inradius):
        assert quantity(stated) == quantity(listed)
    for quantity in QUANTITIES:
        assert quantity(stated, metric=M) == quantity(listed, metric=M)
    for scale in (1.0, -3.0):
        assert geo.radius(scale * stated) == Interval.of(2 * abs(scale))
        assert geo.mdw(scale * stated) == Interval.of(0.125 * abs(scale))
        assert geo.pyramidal_width(scale * stated) == Interval.of(0.25 * abs(scale))
        assert geo.pyramidal_width(scale * stated, origin=True) == geo.pyramidal_width(scale * listed, origin=True)
    x = np.array([1.0, 0.5, 0.0])
    assert geo.gauge(stated, x) == geo.gauge(listed, x)
    assert geo.rho(stated, ps.LeastSquares(x), 0 * x) == geo.rho(listed, ps.LeastSquares(x), 0 * x)
    with pytest.raises(ValueError, match="outside lin"):
        geo.directional_width(stated, [0.0, 0.0, 1.0])


def test_gauge_is_infinite_outside_the_cone_and_zero_at_zero():
    line = ps.Dictionary(np.array([[1.0], [1.0]]))
    assert geo.gauge(line, [1.0, 0.5]) == Interval(math.inf, math.inf)
    assert geo.gauge(line, [-1.0, -1.0]) == Interval(math.inf, math.inf)
    assert geo.gauge(line, [2.0, 2.0]).upper == pytest.approx(2.0)
    assert geo.gauge(line, [0.0, 0.0]) == Interval(0.0, 0.0)
    assert geo.gauge(OracleOnly(line), [1.0, 0.5]).lower == math.inf
    assert geo.gauge(ps.Box([1.0, 1.0], [2.0, 2.0]), [1.0, 3.0]).lower == math.inf
    assert geo.gauge(ps.Box([1.0, 1.0], [2.0, 2.0]), [1.0, 2.0]) == Interval(1.0, 1.0)


# ---------------------------------------------------------------------- intervals and bad input


def test_interval_knows_whether_it_is_exact_and_what_it_contains():
    assert Interval(1.0, 1.0).exact
    assert Interval(1.0, 1.0 + 1e-10).exact
    assert not Interval(1.0, 1.1).exact
    assert not Interval(0.0, math.inf).exact
    assert Interval(math.inf, math.inf).exact
    assert 1.05 in Interval(1.0, 1.1)
    assert 1.2 not in Interval(1.0, 1.1)
    assert 0.3 in Interval(0.1 + 0.2, 0.1 + 0.2)
    assert repr(Interval(0.25, 0.5)) == "Interval(0.25, 0.5)"
    assert repr(Interval(2.0, 2.0)) == "Interval(2, exact)"
    with pytest.raises(ValueError, match="lower <= upper"):
        Interval(2.0, 1.0)
    with pytest.raises(AttributeError):
        Interval(1.0, 2.0).lower = 0.0


def refuse(call, *words):
    with pytest.raises(ValueError) as caught:
        call()
    message = str(caught.value)
    assert message.endswith(".")
    assert ". " not in message
    assert all(word in message for word in words), message


def test_bad_input_is_refused_in_one_sentence_that_names_the_argument():
    A, plane = ps.SignedBasis(2), ps.Dictionary(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), signed=True)
    empty = Listed(np.zeros((0, 2)))
    for quantity in QUANTITIES:
        refuse(lambda quantity=quantity: quantity(empty), "A lists no atoms")
        with pytest.raises(TypeError, match="Dictionary"):
            quantity(np.eye(2))
        refuse(lambda quantity=quantity: quantity(A, metric=np.eye(3)), "metric", "length 3")
        refuse(lambda quantity=quantity: quantity(A, metric=np.diag([1.0, -1.0])), "metric", "eigenvalue -1")
        refuse(lambda quantity=quantity: quantity(A, metric=[[1.0, 2.0], [0.0, 1.0]]), "metric", "symmetric")
    refuse(lambda: geo.mdw(Listed(np.zeros((2, 2)))), "A contains the zero vector only")
    refuse(lambda: geo.radius(Listed([[np.nan, 1.0]])), "A has an atom with NaN")
    refuse(lambda: geo.directional_width(A, [0.0, 0.0]), "d is zero")
    refuse(lambda: geo.directional_width(plane, [1.0, 0.0, 0.1]), "d lies outside lin(A)")
    refuse(lambda: geo.directional_width(ps.Box([-1.0, 0.0], [1.0, 0.0]), [1.0, 1.0]), "d lies outside lin(A)")
    refuse(lambda: geo.rho(plane, ps.LeastSquares(np.ones(3)), [0.0, 0.0, 1.0]), "x0 lies outside lin(A)")
    refuse(lambda: geo.rho(A, ps.LeastSquares(np.ones(3)), [0.0, 1.0]), "f lives on vectors of shape (3,)")
    refuse(lambda: geo.coherence(2 * np.eye(2), 1), "column 0 of D has norm 2")
    refuse(lambda: geo.coherence(np.eye(2), 2), "m is 2")
    refuse(lambda: geo.coherence(np.ones(3), 1), "D has shape (3,)")
    refuse(lambda: geo.coherence(A, 1), "D is SignedBasis")
    refuse(lambda: geo.curvature(ps.LeastSquares([0.0, 0.0]), A, "pairwise"), "kind is 'pairwise'")
    refuse(lambda: geo.curvature(ps.LeastSquares([0.0, 0.0]), A, rho=0.0), "rho is 0")


# ---------------------------------------------------------------------- p-norms


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("seed", range(3))
def test_sizes_and_constants_in_p_norms_are_those_of_dense_samples(p, seed):
    """Widths divide by the dual norm: a ball of that norm touches the nearest facet."""
    rng = np.random.default_rng(seed)
    D, Q = rng.standard_normal((3, 6)), rng.standard_normal((3, 3))
    A, H = ps.Dictionary(D, signed=True), Q @ Q.T + 0.1 * np.eye(3)
    f, q = ps.Quadratic(H, np.zeros(3)), np.inf if p == 1 else 1 / (1 - 1 / p)
    points = np.hstack([D, -D])
    pairs = (points[:, :, None] - points[:, None, :]).reshape(3, -1)
    assert geo.radius(A, norm=p).upper == pytest.approx(np.linalg.norm(points, p, axis=0).max())
    assert geo.diameter(A, norm=p).upper == pytest.approx(np.linalg.norm(pairs, p, axis=0).max())
    h = rng.standard_normal((40_000, 3))
    widths = (h @ points).max(axis=1) / np.linalg.norm(h, q, axis=1)
    width = geo.mdw(A, norm=p)
    assert width.exact
    assert width.lower <= widths.min() <= 1.02 * width.upper
    bends = np.einsum("ij,jk,ik->i", h, H, h) / np.linalg.norm(h, p, axis=1) ** 2
    L, mu = geo.smoothness(f, A, norm=p), geo.convexity(f, A, norm=p)
    assert 0.98 * L.lower <= bends.max() <= L.upper * (1 + 1e-9)
    assert mu.lower * (1 - 1e-9) <= bends.min() <= 1.05 * mu.upper


def test_constants_of_other_functions_and_sets_come_from_the_euclidean_ones():
    f = ps.Logistic([1.0, -1.0, 1.0])
    assert geo.smoothness(f, ps.SignedBasis(3), norm=1).upper == f.L
    assert geo.smoothness(f, ps.SignedBasis(3), norm=np.inf).upper == pytest.approx(3 * f.L)
    assert geo.radius(ps.Ball(4, 2), norm=1) == Interval(1.0, 2.0)
    assert geo.mdw(ps.Ball(4, 2), norm=np.inf).lower == pytest.approx(0.5)
    with pytest.raises(ValueError, match="set `shape`"):
        geo.radius(ps.conv(lambda g: -g).A, norm=1)
    with pytest.raises(ValueError, match="give one of them"):
        geo.radius(ps.Ball(4, 2), norm=1, metric=2.0)


def test_matrices_of_rank_one_have_closed_widths():
    for A, width in ((ps.RankOne((3, 3)), 3**-0.5), (ps.RankOne((2, 5)), 2**-0.5), (ps.SymmetricRankOne(3), 3**-0.5)):
        assert geo.mdw(A).exact
        assert geo.mdw(A).lower == pytest.approx(width, rel=1e-15)
