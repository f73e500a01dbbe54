"""Line 7: refinements that move the atoms. Counts of oracle calls, descent, constraints that hold."""

import math
from itertools import islice

import numpy as np
import pytest

import pursuit as ps
from pursuit.refine import Factors
from pursuit.run.method import default_method

TIGHT = ps.Stop(rgap=1e-7, iterations=60)


def completion(seed=0, shape=(100, 100), density=0.3, rank=5, fraction=0.8, noise=0.0):
    """Entries of a low-rank matrix, and a nuclear-norm ball smaller than it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    rows, cols = np.nonzero(rng.random(shape) < density)
    y = X[rows, cols] + noise * rng.standard_normal(len(rows))
    return y, fraction * np.linalg.norm(X, "nuc") * ps.RankOne(shape).at(rows, cols)


def small(seed=0, **options):
    return completion(seed, (20, 15), 0.7, 3, **options)


def test_spectrahedron_with_a_low_rank_optimum_takes_a_handful_of_calls():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((200, 5))
    X = B @ B.T / np.sum(B * B)
    rows, cols = np.nonzero(rng.random((200, 200)) < 0.3)
    whole = ps.LeastSquares(1.2 * X + 5e-4 * rng.standard_normal((200, 200))), ps.Spectrahedron(200)
    seen = ps.LeastSquares(1.2 * X[rows, cols]), ps.Spectrahedron(200).at(rows, cols)
    for f, A in (whole, seen):
        r = ps.minimize(f, ps.conv(A), stop=TIGHT)
        assert r.oracle_calls <= 12
        assert r.check().gap <= 1.01e-7 * r.value
        assert len(r.coef.s) == 5


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("fraction", [0.3, 0.9, 1.5])
def test_the_optimum_is_that_of_a_plain_run(noise, fraction):
    y, A = completion(1, (10, 8), 0.7, 2, fraction, noise)
    f = ps.LeastSquares(y)
    gap = 1e-3 * f.value(0 * y)
    moved = ps.minimize(f, ps.conv(A), stop=ps.Stop(gap=1e-4 * gap, rgap=None))
    plain = ps.minimize(f, ps.conv(A), ps.FullyCorrective(several=4), stop=ps.Stop(gap=gap, iterations=100))
    assert moved.gap <= 1e-4 * gap
    assert -moved.gap <= plain.value - moved.value <= plain.gap
    assert moved.coef.s.sum() <= A.c * (1 + 1e-9)


OBJECTIVES = {
    "logistic": lambda y: ps.Logistic(y > np.median(y)),
    "poisson": lambda y: ps.Poisson(np.random.default_rng(0).poisson(np.exp(np.clip(0.3 * y, -3, 3)))),
    "huber": lambda y: ps.Huber(y, 0.5),
    "smooth": lambda y: ps.Smooth(
        lambda x: float(np.sum(np.cosh(0.1 * (x - y)))), lambda x: 0.1 * np.sinh(0.1 * (x - y))
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_smooth_objective_descends_to_a_certified_gap(name):
    y, A = small(2, fraction=0.5)
    f = OBJECTIVES[name](y)
    r = ps.minimize(f, ps.conv(A), stop=ps.Stop(rgap=1e-5, iterations=40))
    assert r.check().gap <= 1.01e-5 * abs(r.value)
    assert (np.diff(r.trace.value) <= 1e-12 * abs(r.value)).all()
    assert r.oracle_calls <= 20


def symmetric(seed=0, n=12):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((n, n))
    return Y + Y.T


def spectral(Y, shrink):
    values, vectors = np.linalg.eigh(Y)
    return (vectors * shrink(values)) @ vectors.T


def onto_simplex(v, total):
    u = np.sort(v)[::-1]
    level = max((u[:k].sum() - total) / k for k in range(1, len(u) + 1))
    return np.maximum(v - level, 0)


def test_projections_on_matrix_domains_have_closed_forms():
    Y = symmetric()
    cases = [
        (ps.conv(4.0 * ps.Spectrahedron(12)), lambda v: onto_simplex(v, 4.0)),
        (ps.conv(-4.0 * ps.Spectrahedron(12)), lambda v: -onto_simplex(-v, 4.0)),
        (ps.conv(4.0 * ps.SymmetricRankOne(12)), lambda v: np.sign(v) * onto_simplex(np.abs(v), 4.0)),
        (ps.conv(4.0 * ps.RankOne((12, 12))), lambda v: np.sign(v) * onto_simplex(np.abs(v), 4.0)),
        (ps.cone(ps.Spectrahedron(12)), lambda v: np.maximum(v, 0)),
        (ps.lin(ps.Spectrahedron(12)), lambda v: v),
        (ps.lin(ps.RankOne((12, 12))), lambda v: v),
    ]
    for domain, shrink in cases:
        r = ps.minimize(ps.LeastSquares(Y), domain, stop=ps.Stop(gap=1e-11, iterations=50))
        np.testing.assert_allclose(r.x, spectral(Y, shrink), atol=1e-5, err_msg=repr(domain))
        assert r.oracle_calls <= 25, domain


def test_low_rank_plus_sparse_moves_the_factors_and_leaves_the_rest(rng):
    L = np.outer(rng.standard_normal(15), rng.standard_normal(12))
    S = np.zeros((15, 12))
    S.flat[rng.choice(180, 8, replace=False)] = 3.0
    domain = ps.conv(0.9 * np.linalg.norm(L) * ps.RankOne((15, 12))) + ps.conv(20.0 * Spikes(15, 12))
    r = ps.minimize(ps.LeastSquares(L + S), domain, stop=ps.Stop(rgap=1e-4, iterations=100))
    assert isinstance(r.refine, Factors)
    assert r.gap <= 1e-4 * r.value
    assert r.check().gap <= 1.01e-4 * r.value


class Spikes(ps.Atoms):
    """Matrices with one entry +-1."""

    symmetric = True

    def __init__(self, m, n):
        self.shape, self.diameter = (m, n), 2.0

    def lmo(self, g):
        place = int(np.abs(g).argmax())
        return ps.SparseAtom([place], [-1.0 if g.flat[place] > 0 else 1.0], self.shape)


def test_rank_grows_one_at_a_time_where_atoms_count(rng):
    Y = rng.standard_normal((20, 10))
    r = ps.minimize(ps.LeastSquares(Y), ps.lin(ps.RankOne((20, 10))), stop=ps.Stop(atoms=3))
    s = np.linalg.svd(Y, compute_uv=False)
    assert len(r.atoms) == 3
    np.testing.assert_allclose(r.value, 0.5 * np.sum(s[3:] ** 2), rtol=1e-6)  # Eckart and Young


def test_refinement_is_refused_where_it_raises_f():
    y, A = small(5)

    def worse(f, domain, active):
        weights, atoms, blocks = Factors()(f, domain, active)
        return weights[::-1].copy(), atoms, blocks

    r = ps.minimize(ps.LeastSquares(y), ps.conv(A), ps.NormCorrective(), refine=worse, stop=ps.Stop(iterations=10))
    assert r.refused > 0
    assert (np.diff(r.trace.value) <= 0).all()


def test_default_method_moves_factors_only_where_that_helps():
    f = ps.LeastSquares(np.zeros((3, 3)))
    assert default_method(f, ps.conv(ps.Permutations(3)))[1] is None
    assert default_method(f, ps.conv(ps.Orthogonal((3, 3))))[1] is None
    assert default_method(f, ps.cone(ps.NonnegativeRankOne((3, 3))))[1] is None
    for A in (ps.RankOne((3, 3)), ps.Spectrahedron(3), ps.SymmetricRankOne(3)):
        assert default_method(f, ps.conv(2 * A))[1] is None  # the gradient has the singular vectors of the minimum
        assert default_method(ps.LeastSquares(np.zeros((3, 3)), weights=np.eye(3) + 1), ps.conv(A))[1] == Factors()
        assert default_method(ps.LeastSquares(np.zeros(3)), ps.conv(A.at([0, 1, 2], [0, 1, 2])))[1] == Factors()
        assert default_method(f, ps.conv(A) + ps.conv(ps.Box(np.zeros((3, 3)), np.ones((3, 3)))))[1] == Factors()


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_projection_on_a_nuclear_norm_ball_takes_a_call_for_every_32_singular_vectors_and_2(share, rng):
    Y = rng.standard_normal((60, 50)) @ rng.standard_normal((50, 50))
    U, s, V = np.linalg.svd(Y, full_matrices=False)
    radius = share * s.sum()
    thresholds = (np.cumsum(s) - radius) / np.arange(1, 51)
    shrunk = np.maximum(s - thresholds[s > thresholds][-1], 0.0)
    r = ps.minimize(ps.LeastSquares(Y), ps.conv(radius * ps.RankOne(Y.shape)), stop=ps.Stop(rgap=1e-10))
    np.testing.assert_allclose(r.x, (U * shrunk) @ V, atol=1e-6 * s[0])
    assert r.oracle_calls <= 2 + math.ceil(np.count_nonzero(shrunk) / 32)


def test_large_sparse_problems_certify_by_lanczos(monkeypatch):
    monkeypatch.setattr("pursuit.atoms.matrices.MAX_LAPACK_SIDE", 0)
    y, A = completion(0, (60, 50), 0.4, 3)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(A), stop=ps.Stop(rgap=1e-7, iterations=30))
    monkeypatch.undo()
    assert r.status is ps.Status.GAP
    assert r.oracle_calls <= 12
    exact = r.check()  # LAPACK
    assert exact.gap <= r.gap * (1 + 1e-6)
    assert r.gap <= 2.5 * exact.gap + 1e-12 * r.value
    assert math.isfinite(r.gap)


def test_estimated_gradients_move_no_factors(rng):
    Y = rng.standard_normal((6, 5))
    exact = ps.LeastSquares(Y)
    f = ps.Stochastic(lambda x, rng: exact.value(x), lambda x, rng: x - Y + 0.1 * rng.standard_normal((6, 5)))
    domain = ps.conv(ps.RankOne((6, 5)))
    assert default_method(f, domain)[1] is None
    r = ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), refine=Factors(), stop=ps.Stop(iterations=5))
    assert r.refused == 0


def counts(shape, seed=0):
    """Counts whose expected values range over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    m, n = shape
    rates = rng.normal(-1.0, 2.0, (m, 1)) + rng.normal(0.0, 1.0, n) + rng.normal(size=(m, 2)) @ rng.normal(size=(2, n))
    return rng.poisson(np.exp(rates.clip(max=7))).astype(float)


def test_poisson_over_a_nuclear_ball_begins_below_zero_and_reaches_a_certified_gap():
    """At an atom of a large ball exp(x) is astronomical, and nothing is certified from there."""
    Y = counts((30, 20))
    f = ps.Poisson(Y)
    r = ps.minimize(f, ps.conv(100.0 * ps.RankOne(Y.shape)), stop=ps.Stop(rgap=1e-5, iterations=60))
    assert r.status is ps.Status.GAP
    assert r.trace.value[0] <= f.value(0 * Y)
    assert (np.diff(r.trace.value) <= 0).all()


def test_factors_in_units_of_their_curvature_come_further(monkeypatch):
    Y = counts((60, 40))
    f, domain, refine = ps.Poisson(Y), ps.lin(ps.RankOne(Y.shape)), ps.refine.Factors(steps=20)

    def fit():
        return ps.minimize(f, domain, ps.NormCorrective(), refine=refine, stop=ps.Stop(atoms=3)).value - f.infimum

    ours = fit()
    monkeypatch.setattr("pursuit.refine.factors._Fit._units", lambda self, split, w: np.ones_like(w))
    assert ours < 0.8 * fit()


@pytest.mark.filterwarnings("error")
def test_a_cone_of_matrices_may_fall_to_0():
    domain = ps.cone(ps.Spectrahedron(3))
    *_, last = islice(ps.iterate(ps.LeastSquares(np.eye(3)), domain), 5)
    active = last.active
    weights, _, _ = ps.refine.Factors()(ps.LeastSquares(-np.eye(3)), domain, active)
    assert not np.any(weights)
