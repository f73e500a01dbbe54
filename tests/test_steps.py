"""Steps and updates beyond the paper's: powers of open loops, monotone steps, functions, faces, pivots."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps


def lengths(step, iterations=6, delta=1.0):
    """The first lengths of a step rule, from the weights of a run that begins at one vertex of a simplex."""
    move = ps.Move(0, np.zeros(2), 0.0, np.ones(2), -1.0, 1.0, delta)
    length = step.begin(ps.LeastSquares([1.0, 2.0]), ps.conv(ps.Simplex(2)), ps.Space.default((2,)))
    from dataclasses import replace

    return [length(replace(move, iteration=t)) for t in range(iterations)]


@pytest.mark.parametrize("power", [1, 2, 3.5, 10])
def test_an_open_loop_of_power_l_has_the_lengths_l_over_t_plus_l(power):
    np.testing.assert_allclose(lengths(ps.OpenLoop(power)), [power / (t + power) for t in range(6)], rtol=1e-15)
    halves = [power / (0.5 * t + power) for t in range(6)]
    np.testing.assert_allclose(lengths(ps.OpenLoop(power), delta=0.5), halves, rtol=1e-15)


def test_only_the_power_of_the_theorem_has_its_promise(rng):
    f, domain, stop = ps.LeastSquares(rng.standard_normal(4)), ps.conv(ps.Simplex(4)), ps.Stop(iterations=5)
    bounds = [len(ps.minimize(f, domain, ps.Plain(ps.OpenLoop(p)), stop=stop).promise().bounds) for p in (2, 3, "log")]
    assert bounds == [1, 0, 0]


@given(seed=st.integers(0, 1000), power=st.sampled_from([2, 5, "log"]))
def test_monotone_steps_never_raise_f_and_halve_no_less_than_before(seed, power):
    rng = np.random.default_rng(seed)
    D, y = rng.standard_normal((5, 12)), rng.standard_normal(5)
    f, update = ps.LeastSquares(y), ps.Plain(ps.Monotone(ps.OpenLoop(power)))
    assert update.descends and not ps.Plain(ps.OpenLoop(power)).descends
    values = [s.value for s in islice(ps.iterate(f, ps.conv(ps.Dictionary(D)), update), 40)]
    assert (np.diff(values) <= 0).all()


def test_monotone_steps_stay_in_the_domain_of_f(rng):
    V = rng.standard_normal((3, 30))
    domain = ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :]))
    r = ps.minimize(ps.LogDet(), domain, ps.Plain(ps.Monotone(ps.OpenLoop())), stop=ps.Stop(rgap=1e-2))
    assert r.status is ps.Status.GAP


def test_a_secant_search_finds_the_minimum_along_a_line_by_gradients_alone(rng):
    D = np.abs(rng.standard_normal((20, 30)))
    f, domain, stop = ps.Poisson(rng.poisson(3.0, 20)), ps.conv(ps.Dictionary(D)), ps.Stop(iterations=15)

    class Blind(ps.Poisson):
        def hessian(self, x):
            raise AssertionError

    newton = ps.minimize(f, domain, ps.Plain(ps.LineSearch()), stop=stop)
    secant = ps.minimize(Blind(f.y), domain, ps.Plain(ps.LineSearch(secant=True)), stop=stop)
    np.testing.assert_allclose(secant.trace.value, newton.trace.value, rtol=1e-9)


def test_a_step_may_be_a_function_of_the_move(rng):
    f, domain, stop = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3)), ps.Stop(iterations=9)
    own = ps.minimize(f, domain, ps.Plain(lambda move: 2 / (move.iteration + 2)), stop=stop)
    np.testing.assert_array_equal(
        own.trace.value, ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=stop).trace.value
    )
    far = ps.minimize(f, domain, ps.Plain(lambda move: 1e9), stop=ps.Stop(iterations=1))
    assert far.weights.min() >= 0  # clipped to the reach
    assert not own.update.descends
    away = ps.minimize(f, domain, ps.Away(lambda move: -move.slope / (move.direction @ move.direction)))
    assert away.status is ps.Status.GAP


# ---------------------------------------------------------------------------------------- faces


def with_faces(rng):
    lower = -rng.random(6)
    return [ps.Simplex(6), ps.Hypersimplex(6, 2), ps.Hypersimplex(6, 6), ps.Permutations(3), ps.Box(lower, lower + 1.0),
            2.5 * ps.Simplex(6), -2.0 * ps.Hypersimplex(6, 3), ps.Box(-np.ones((2, 2)), np.ones((2, 2)))]  # fmt: skip


@given(seed=st.integers(0, 1000), which=st.integers(0, 7))
def test_decomposition_invariant_steps_reach_the_minimum_of_away_steps_with_true_certificates(seed, which):
    rng = np.random.default_rng(seed)
    A = with_faces(rng)[which]
    ps.check_atoms(A)
    f = ps.LeastSquares(rng.standard_normal(A.shape), weights=rng.uniform(0.5, 2.0, A.shape))
    best = ps.minimize(f, ps.conv(A), stop=ps.Stop(gap=1e-11, rgap=1e-11))
    stop = ps.Stop(gap=1e-8, rgap=1e-8, iterations=3000)
    r = ps.minimize(f, ps.conv(A), ps.DecompositionInvariant(), stop=stop)
    assert r.status in (ps.Status.GAP, ps.Status.STATIONARY)
    assert r.lower <= best.value + 1e-9
    assert best.lower <= r.value + 1e-9
    assert (np.diff(r.trace.value) <= 1e-12).all()
    gauge = A.gauge(r.x)
    assert gauge is None or gauge <= 1 + 1e-9
    assert r.check().feasible


@given(seed=st.integers(0, 1000), which=st.integers(0, 7))
def test_the_second_atom_of_an_answer_is_the_worst_vertex_of_the_face(seed, which):
    rng = np.random.default_rng(seed)
    A = with_faces(rng)[which]
    f = ps.LeastSquares(rng.standard_normal(A.shape))
    space = ps.Space.default(A.shape)
    for s in islice(ps.iterate(f, ps.conv(A), ps.DecompositionInvariant()), 1, 8):
        low, high = (np.broadcast_to(b, A.shape) for b in A.entry_bounds)
        v = s.answers[0].atoms[1].dense(space)
        assert (v[(s.x <= low)] <= low[s.x <= low] + 1e-12).all()
        assert (v[(s.x >= high)] >= high[s.x >= high] - 1e-12).all()
        assert (s.grad * v).sum() >= (s.grad * s.x).sum() - 1e-9
        assert s.answers[0].calls == 2


# --------------------------------------------------------------------------------------- pivots


@given(seed=st.integers(0, 1000), kind=st.sampled_from(["conv", "cone", "lin", "sum"]))
def test_pivots_keep_the_point_and_leave_independent_atoms(seed, kind):
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(1, 5)), int(rng.integers(2, 20))
    D = rng.integers(-2, 3, (m, k)).astype(float)
    D[0, ~D.any(axis=0)] = 1.0
    A = ps.Dictionary(D)
    domain = {"conv": ps.conv(A), "cone": ps.cone(A), "lin": ps.lin(A), "sum": ps.conv(A) + ps.cone(A)}[kind]
    space = ps.Space.default((m,))
    active = domain.active_set(space)
    blocks = rng.integers(0, len(domain.parts), k)
    blocks[: len(domain.parts)] = range(len(domain.parts))
    w = rng.random(k) if kind != "lin" else rng.standard_normal(k)
    for b, part in enumerate(domain.parts):
        if part.compact:
            w[blocks == b] /= w[blocks == b].sum()
    active.replace(w, [A.atom(i) for i in range(k)], blocks)
    f = ps.LeastSquares(np.zeros(m))
    proposal = ps.refine.Pivot()(f, domain, active)
    weights, atoms, owners = proposal or (active.weights, active.atoms, active.blocks)
    made = sum(wi * a.vector for wi, a in zip(weights, atoms, strict=True))
    np.testing.assert_allclose(made, active.x, atol=1e-9 * (1 + np.abs(D).max() * np.abs(w).sum()))
    assert domain.admits(np.asarray(weights), np.asarray(owners))
    assert len(atoms) <= m + sum(part.compact for part in domain.parts)


def test_a_run_with_pivots_keeps_at_most_dimension_plus_one_atoms(rng):
    Y = rng.random((6, 6)) / 3
    f, domain = ps.LeastSquares(Y), ps.conv(ps.Permutations(6))
    r = ps.minimize(f, domain, ps.Away(), refine=ps.refine.Pivot(), stop=ps.Stop(rgap=1e-6))
    assert r.status is ps.Status.GAP
    assert r.trace.atoms.max() <= 26 + 1
    assert r.refused <= 5


def test_a_step_rule_of_the_user_stays_in_the_hull():
    class TooLong(ps.StepRule):
        def begin(self, f, domain, space):
            return lambda move: 5.0

    f, domain = ps.LeastSquares([0.5, 0.4, 0.1]), ps.conv(ps.Simplex(3))
    for update in (ps.Plain(TooLong()), ps.Away(TooLong())):
        r = ps.minimize(f, domain, update, stop=ps.Stop(iterations=3))
        assert (r.weights >= 0).all() and r.check().feasible
