"""The pyramidal width: against all subsets, closed forms, and the inequality that it is for."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from geometries import Listed, law, seeds
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import pursuit as ps
from pursuit import geometry as geo


def is_face(inside, outside):
    """Whether a plane touches the hull of all points in exactly the hull of `inside`."""
    r = inside.shape[1]
    same = np.hstack([inside - inside[0], np.zeros((len(inside), 1))])
    apart = np.hstack([outside - inside[0], np.ones((len(outside), 1))])  # <u, p - f> + margin <= 0
    bounds = [(-1, 1)] * r + [(None, 1)]
    margin = np.append(np.zeros(r), -1.0)
    program = linprog(margin, A_ub=apart, b_ub=np.zeros(len(outside)), A_eq=same, b_eq=same[:, -1], bounds=bounds)
    return program.fun < -1e-7


def facial_distance(points):
    """The least distance of a face from the other points, by trying all subsets."""
    best = math.inf
    for mask in product([False, True], repeat=len(points)):
        inside, outside = points[np.array(mask)], points[~np.array(mask)]
        if len(inside) and len(outside) and is_face(inside, outside):
            difference = ps.conv(Listed(inside)) + ps.conv(Listed(-outside))
            f = ps.LeastSquares(np.zeros(points.shape[1]))
            r = ps.minimize(f, difference, ps.FullyCorrective(), stop=ps.Stop(iterations=30, rgap=None))
            best = min(best, math.sqrt(2 * r.value))
    return best


@law
@given(seeds, st.integers(1, 3), st.integers(2, 5), st.booleans(), st.booleans())
def test_pyramidal_width_is_the_facial_distance_over_all_subsets(seed, r, n, whole, origin):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (n, r)).astype(float) if whole else rng.standard_normal((n, r))
    points = np.unique(np.concatenate([rows, np.zeros((1, r))]) if origin else rows, axis=0)
    if len(points) > 1:
        width = geo.pyramidal_width(Listed(rows), origin=origin)
        assert width.exact
        assert width.upper == pytest.approx(facial_distance(points), rel=1e-6)


@law
@given(seeds, st.integers(1, 3), st.integers(2, 7), st.booleans(), st.booleans())
def test_slope_between_the_best_atom_and_the_worst_active_one_is_at_least_the_pyramidal_width(
    seed, r, n, whole, origin
):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (n, r)).astype(float) if whole else rng.standard_normal((n, r))
    points = np.concatenate([rows, np.zeros((1, r))]) if origin else rows
    if len(np.unique(points, axis=0)) == 1:
        return
    width = geo.pyramidal_width(Listed(rows), origin=origin).lower
    for _ in range(20):
        S, T = (rng.choice(len(points), rng.integers(1, len(points) + 1), replace=False) for _ in range(2))
        S = np.union1d(S, [len(points) - 1]) if origin else S
        x, u = rng.dirichlet(np.ones(len(S))) @ points[S], rng.dirichlet(np.full(len(T), 0.3)) @ points[T]
        g = x - u if rng.random() < 0.5 else rng.standard_normal(r)
        slope = (points[S] @ g).max() - (points @ g).min()
        assert slope * np.linalg.norm(u - x) >= width * (g @ (x - u)) - 1e-9


@law
@given(st.lists(st.floats(0.2, 5.0), min_size=2, max_size=5), st.booleans(), st.booleans())
def test_pyramidal_width_of_orthogonal_atoms_has_a_closed_form(w, signed, origin):
    A = (ps.SignedBasis if signed else ps.Simplex)(len(w)).through(np.diag(w))
    D = np.diag(w)
    closed, listed = (geo.pyramidal_width(B, origin=origin) for B in (A, ps.Dictionary(D, signed=signed)))
    assert closed.lower <= listed.upper * (1 + 1e-9)
    assert closed.upper >= listed.lower * (1 - 1e-9)
    equal = geo.pyramidal_width((ps.SignedBasis if signed else ps.Simplex)(len(w)), origin=origin)
    assert equal.exact
    assert equal.upper == pytest.approx(
        geo.pyramidal_width(ps.Dictionary(np.eye(len(w)), signed=signed), origin=origin).upper
    )


@pytest.mark.parametrize("n", [2, 3, 4])
def test_pyramidal_width_of_known_sets(n):
    corners = np.array(list(product([1.0, 2.0], repeat=n)))
    assert geo.pyramidal_width(Listed(corners)).upper == pytest.approx(1 / math.sqrt(n))
    assert geo.pyramidal_width(ps.Simplex(2 * n)).upper == pytest.approx(2 / math.sqrt(2 * n))
    assert geo.pyramidal_width(ps.SignedBasis(n)).upper == pytest.approx(1 / math.sqrt(n - 1))
    assert geo.pyramidal_width(3.0 * ps.SignedBasis(n)).upper == pytest.approx(3 / math.sqrt(n - 1))
    assert geo.pyramidal_width(ps.Simplex(n), origin=True).upper == pytest.approx(1 / math.sqrt(n))


def test_pyramidal_width_of_sets_beyond_the_budget_has_no_lower_bound():
    many = ps.Dictionary(np.random.default_rng(0).standard_normal((8, 30)))
    for A in (many, ps.Ball(3, 2), ps.RankOne((2, 2))):
        width = geo.pyramidal_width(A)
        assert width.lower == 0
        assert 0 < width.upper <= geo.diameter(A).upper


@pytest.mark.parametrize("A", [ps.Simplex(1), ps.Dictionary(np.ones((2, 3)))], ids=repr)
def test_pyramidal_width_needs_two_atoms(A):
    with pytest.raises(ValueError, match="single point"):
        geo.pyramidal_width(A)
