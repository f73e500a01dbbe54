"""The shared linear algebra: laws, and answers against NumPy, SciPy and an interior-point solver."""

from itertools import islice

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursuit.linalg import (
    CholeskyFactor,
    accelerated_gradient,
    norm,
    norms,
    project_simplex,
    project_solid_simplex,
    unit,
    units_and_norms,
)

LAW = settings(max_examples=150, deadline=None, derandomize=True)
SEED = st.integers(0, 2**32 - 1)
SCALES = [5e-324, 1e-310, 1e-200, 1.0, 1e200, 1e306]


# ---------------------------------------------------------------------- the Cholesky factor


def unit_gram(n, k, seed, copies=0, distance=0.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, k))
    for _ in range(copies):
        A[:, rng.integers(k)] = A[:, rng.integers(k)] + distance * rng.normal(size=n)
    A /= np.linalg.norm(A, axis=0)
    return A.T @ A


def append(factor, M, members, i):
    assert factor.append(M[i, members]) is None
    members.append(i)


@LAW
@given(SEED, st.integers(1, 60))
def test_factor_after_any_appends_and_drops_equals_a_fresh_cholesky(seed, operations):
    M, rng = unit_gram(80, 40, seed), np.random.default_rng(seed)
    factor, members = CholeskyFactor(), []
    for _ in range(operations):
        outside = sorted(set(range(40)) - set(members))
        if members and (not outside or rng.random() < 0.35):
            place = int(rng.integers(len(members)))
            factor.drop(place)
            del members[place]
        else:
            append(factor, M, members, int(rng.choice(outside)))
    assert factor.k == len(members)
    fresh = np.linalg.cholesky(M[np.ix_(members, members)])
    np.testing.assert_allclose(factor.L, fresh, rtol=0, atol=1e-12)
    v = rng.normal(size=len(members))
    np.testing.assert_allclose(M[np.ix_(members, members)] @ factor.solve(v), v, rtol=0, atol=1e-11)


def test_factor_stays_exact_over_thousands_of_updates():
    M, rng = unit_gram(60, 30, 1), np.random.default_rng(1)
    factor, members = CholeskyFactor(), []
    for i in range(20):
        append(factor, M, members, i)
    for _ in range(2000):
        place = int(rng.integers(20))
        factor.drop(place)
        del members[place]
        append(factor, M, members, int(rng.choice(sorted(set(range(30)) - set(members)))))
    np.testing.assert_allclose(factor.L @ factor.L.T, M[np.ix_(members, members)], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_factor_reproduces_its_matrix_after_drops_among_nearly_equal_atoms(seed):
    M = unit_gram(20, 12, seed, copies=4, distance=1e-6)
    factor, members = CholeskyFactor(), []
    for i in range(12):
        if factor.append(M[i, members]) is None:
            members.append(i)
    while members:
        np.testing.assert_allclose(factor.L @ factor.L.T, M[np.ix_(members, members)], rtol=0, atol=1e-14 * 12)
        factor.drop(0)
        del members[0]


def test_factor_gets_the_distance_to_the_span_of_the_others_and_refuses_what_depends_on_them():
    M = unit_gram(10, 6, 0)
    factor = CholeskyFactor()
    assert factor.build(M[:5, :5])
    np.testing.assert_allclose(factor.append(M[0, :5]), np.eye(5)[0], atol=1e-12)
    assert factor.append(M[5, :5]) is None
    pivot = 1.0 - M[5, :5] @ np.linalg.solve(M[:5, :5], M[:5, 5])
    assert factor.L[5, 5] ** 2 == pytest.approx(pivot, rel=1e-12)


def test_factor_of_a_singular_matrix_is_refused_and_the_old_one_kept():
    factor = CholeskyFactor()
    assert factor.build(unit_gram(10, 4, 0))
    before = factor.L.copy()
    assert not factor.build(np.ones((3, 3)))
    assert not factor.build(np.diag([1.0, 0.0]))
    assert not factor.build(unit_gram(3, 20, 0))
    assert not factor.build(np.array([[1.0, 1.0 - 1e-15], [1.0 - 1e-15, 1.0]]))  # definite, but only by rounding
    np.testing.assert_array_equal(factor.L, before)


def test_factor_built_at_once_equals_the_one_appended_row_by_row():
    M = unit_gram(60, 40, 3)  # larger than the room it begins with
    at_once, by_row, members = CholeskyFactor(), CholeskyFactor(), []
    assert at_once.build(M)
    for i in range(40):
        append(by_row, M, members, i)
    np.testing.assert_allclose(at_once.L, by_row.L, rtol=0, atol=1e-13)


# ---------------------------------------------------------------------- norms and unit vectors


@pytest.mark.parametrize("scale", SCALES)
def test_norms_are_right_at_every_scale(scale, rng):
    V = np.ldexp(rng.integers(1, 9, (7, 5)).astype(float), 1) * scale
    reference = np.linalg.norm(V / scale, axis=0)
    np.testing.assert_allclose(norms(V) / scale, reference, rtol=0.5 if scale < 1e-320 else 1e-14)
    np.testing.assert_allclose([norm(v) for v in V.T], norms(V), rtol=1e-15)


@pytest.mark.parametrize("scale", SCALES[1:])
def test_unit_vectors_have_norm_one_and_the_direction_of_the_vector(scale, rng):
    v = rng.standard_normal(30) * scale
    u = unit(v)
    assert abs(norm(u) - 1.0) <= 1e-15
    np.testing.assert_allclose(u * norm(v), v, rtol=1e-13, atol=1e-323)


@pytest.mark.parametrize("v", [[0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]])
def test_what_has_no_direction_becomes_the_first_basis_vector(v):
    np.testing.assert_array_equal(unit(np.array(v)), [1.0, 0.0])
    with np.errstate(invalid="ignore"):
        U, sizes = units_and_norms(np.array([v, [3.0, 4.0]]).T)
    np.testing.assert_array_equal(U, [[1.0, 0.6], [0.0, 0.8]])
    assert sizes[1] == 5.0


# ---------------------------------------------------------------------- simplices


@LAW
@given(SEED, st.integers(1, 12), st.sampled_from([1e-100, 1e-3, 1.0, 50.0]), st.sampled_from([0.0, 0.5, 4.0]))
def test_the_projection_on_a_simplex_is_the_nearest_point(seed, k, spread, total):
    v = spread * np.random.default_rng(seed).normal(size=k)
    u = project_simplex(v, total)
    assert (u >= 0).all()
    assert abs(u.sum() - total) <= 1e-12 * total
    d = v - u
    assert d.max() * total - d @ u <= 1e-13 * (total + spread) ** 2 * k  # <v - u, z - u> <= 0 at every vertex z


@pytest.mark.parametrize("total", [0.5, 3.0, 100.0])
def test_the_projection_on_a_solid_simplex_agrees_with_an_interior_point_solver(total, rng):
    v = 2.0 * rng.normal(size=9)
    u = cp.Variable(9)
    cp.Problem(cp.Minimize(cp.sum_squares(u - v)), [u >= 0, cp.sum(u) <= total]).solve(cp.CLARABEL)
    np.testing.assert_allclose(project_solid_simplex(v, total), u.value, rtol=0, atol=1e-6)


# ---------------------------------------------------------------------- accelerated gradient


def quadratic_step(condition, n=40):
    """A gradient step on a quadratic of this condition number with its minimum at 1."""
    H = np.geomspace(1.0 / condition, 1.0, n)
    return lambda y: y - H * (y - 1.0)


def error(step, steps):
    return max(float(np.abs(x - 1.0).max()) for x in islice(accelerated_gradient(step, np.zeros(40)), steps, steps + 1))


def test_accelerated_gradient_needs_the_square_root_of_the_condition_number_of_steps():
    assert error(quadratic_step(1e2), 200) < 1e-4
    assert error(quadratic_step(1e4), 2000) < 1e-4


def test_the_first_two_accelerated_steps_are_plain_ones():
    step, start = quadratic_step(10.0), np.zeros(40)
    first, second = islice(accelerated_gradient(step, start), 2)
    np.testing.assert_array_equal(first, step(start))
    np.testing.assert_array_equal(second, step(first))


def test_accelerated_gradient_with_a_projection_ends_at_the_constrained_minimum(rng):
    A, b = rng.normal(size=(30, 8)), rng.normal(size=30)
    G, c = A.T @ A, A.T @ b
    L = float(np.linalg.eigvalsh(G)[-1])
    *_, w = islice(accelerated_gradient(lambda y: project_simplex(y - (G @ y - c) / L, 1.0), np.full(8, 1 / 8)), 500)
    slope = G @ w - c
    assert float(slope @ w) - float(slope.min()) <= 1e-12 * L
