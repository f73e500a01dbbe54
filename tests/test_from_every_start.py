"""Algorithms 3 and 4 as printed, from every start and on sets that are not symmetric, against plain NumPy; what a run
takes on the user's word; approximate and random oracles of every set."""

from itertools import islice

import numpy as np
import pytest
from scipy.optimize import nnls

import pursuit as ps
from pursuit import geometry, rates
from pursuit.arrays import Space
from pursuit.atoms.base import as_atom

STEPS = 8


def projection_on_hull(S, b):
    """The point of the hull of the columns of S nearest to b: NNLS finds the support, equations the weights."""
    w = nnls(np.vstack([S, np.full(S.shape[1], 1e3)]), np.append(b, 1e3), maxiter=1000)[0]
    support = np.flatnonzero(w > 1e-12)
    while True:
        T, ones = S[:, support], np.ones((len(support), 1))
        system = np.block([[T.T @ T, ones], [ones.T, np.zeros((1, 1))]])
        w = np.linalg.lstsq(system, np.append(T.T @ b, 1.0), rcond=None)[0][:-1]
        if (w >= -1e-13).all():
            return T @ w
        support = np.delete(support, w.argmin())


def plain_loop(f, H, c, D, x, variant):
    """Algorithm 3 or 4: `variant` makes x_{t+1} of x, z, S, grad and L."""
    S, points = x[:, None], [x]
    for _ in range(STEPS):
        grad = H @ x + c
        z = D[:, (D.T @ grad).argmin()]
        S = np.column_stack([S, z])
        x = variant(x, z, S, grad, f.L)
        points.append(x)
    return np.array(points)


ALGORITHMS = {
    "Algorithm 3, variant 0": (
        ps.conv,
        ps.Plain(ps.ShortStep()),
        lambda x, z, S, g, L: x + np.clip(-g @ (z - x) / (L * (z - x) @ (z - x) or 1.0), 0, 1) * (z - x),
    ),
    "Algorithm 3, variant 1": (
        ps.conv,
        ps.NormCorrective(),
        lambda x, z, S, g, L: projection_on_hull(np.unique(S, axis=1), x - g / L),
    ),
    "Algorithm 4, variant 0": (
        lambda A: ps.lin(A, symmetric=False),
        ps.Plain(ps.ShortStep()),
        lambda x, z, S, g, L: x - (g @ z) / (L * z @ z) * z,
    ),
    "Algorithm 4, variant 1": (
        lambda A: ps.lin(A, symmetric=False),
        ps.NormCorrective(),
        lambda x, z, S, g, L: S @ np.linalg.lstsq(S, x - g / L, rcond=1e-12)[0],
    ),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_iterates_from_any_start_are_those_of_a_plain_loop(name):
    """100 runs each, from random points of the hull or the span, on sets that are not symmetric."""
    make, update, variant = ALGORITHMS[name]
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, m = 4, 7 + seed % 3
        D, Q, c = rng.standard_normal((n, m)), rng.standard_normal((n, n)), rng.standard_normal(n)
        H = Q @ Q.T + 0.5 * np.eye(n)
        f, x0 = ps.Quadratic(H, c), D @ rng.dirichlet(np.ones(m))
        if make is not ps.conv:
            x0 = D @ rng.standard_normal(m)
        expected = plain_loop(f, H, c, D, x0, variant)
        found = [s.x for s in islice(ps.iterate(f, make(ps.Dictionary(D)), update, start=x0), STEPS + 1)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_point_is_the_first_member_of_S_and_weights_put_their_atoms_there():
    A = ps.Dictionary(np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]]))
    f, x0 = ps.LeastSquares([0.2, 0.1]), np.array([0.25, 0.25])
    as_point = next(ps.iterate(f, ps.conv(A), ps.NormCorrective(), start=x0))
    assert [a.vector.tolist() for a in as_point.active.atoms] == [x0.tolist()]
    as_atoms = next(
        ps.iterate(f, ps.conv(A), ps.NormCorrective(), start=([0.5, 0.25, 0.25], [A.atom(i) for i in range(3)]))
    )
    assert [a.source for a in as_atoms.active.atoms] == [0, 1, 2]


@pytest.mark.parametrize(
    ("A", "inside", "outside"),
    [
        (ps.Dictionary(np.array([[1.0, 2.0, 1.0], [0.0, 1.0, 1.0]])), [1.4, 0.6], [0.4, 0.3]),  # 0 is not in the hull
        (2 * ps.Permutations(2), [[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.9], [1.0, 1.0]]),
        (ps.RankOneTensor((2, 2, 2)), np.full((2, 2, 2), 0.2), np.full((2, 2, 2), 0.5)),
    ],
    ids=repr,
)
def test_a_start_is_proved_to_lie_in_the_hull_where_that_is_possible(A, inside, outside):
    f = ps.LeastSquares(np.zeros(A.shape))
    stop = ps.Stop(iterations=2, rgap=None)
    assert ps.minimize(f, ps.conv(A), start=np.array(inside), stop=stop).assumed == ()
    with pytest.raises(ValueError, match="start lies outside"):
        ps.minimize(f, ps.conv(A), start=np.array(outside), stop=stop)


def test_where_nothing_can_be_proved_the_user_is_believed_and_the_result_says_so():
    def corner(g):
        return np.where(g > 0, -1.0, 1.0)

    r = ps.minimize(ps.LeastSquares([0.5, 0.2]), ps.conv(corner), start=np.array([0.1, 0.1]))
    assert r.assumed == ("start lies in conv(corner)",)
    assert "assumed       start lies in conv(corner)" in str(r)
    assert ps.minimize(ps.LeastSquares([0.5, 0.2]), ps.conv(corner)).assumed == ()


def test_every_call_of_an_oracle_is_counted():
    calls = []

    def corner(g):
        calls.append(g)
        return np.where(g > 0, -1.0, 1.0)

    stop = ps.Stop(iterations=5, rgap=None)
    for symmetric, questions in ((True, 2), (False, 1)):
        calls.clear()
        f = ps.LeastSquares(np.arange(1.0, 9.0))
        r = ps.minimize(f, ps.lin(corner, symmetric=symmetric), ps.Plain(ps.LineSearch()), stop=stop)
        assert r.oracle_calls == len(calls) == questions * (r.iterations + 1)


def test_a_set_of_one_side_is_never_called_stationary_where_another_atom_descends():
    """A = {e1, e2}, target (0, -1): the best atom of A alone has <g, e1> = 0, and Algorithm 4 stands still."""
    f, A = ps.LeastSquares([0.0, -1.0]), ps.Dictionary(np.eye(2))
    stop = ps.Stop(iterations=3, rgap=None)
    r = ps.minimize(f, ps.lin(A, symmetric=False), ps.Plain(ps.ShortStep()), stop=stop)
    assert (r.value, r.status) == (0.5, ps.Status.ITERATIONS)
    assert ps.minimize(f, ps.lin(A), ps.Plain(ps.ShortStep())).value == 0.0


def test_line_7_puts_no_vector_into_S_that_is_no_atom():
    f, A, y = ps.LeastSquares([3.0, 1.0]), ps.SignedBasis(2), np.array([3.0, 1.0])
    stop = ps.Stop(iterations=1, rgap=None, value=-1.0)
    cheat = ps.minimize(f, ps.lin(A), refine=lambda *_: ([1.0], [ps.Atom(y)]), stop=stop)
    assert cheat.refused == 1
    assert all(A.contains(a.vector) for a in cheat.atoms)
    by_word = ps.minimize(f, ps.lin(lambda g: -np.sign(g)), refine=lambda *_: ([1.0], [ps.Atom(y)]), stop=stop)
    assert (by_word.refused, by_word.value) == (0, 0.0)
    assert by_word.assumed == ("the refinement's atoms are atoms of lin(<lambda>)",)


def test_the_start_stays_a_member_of_S_through_refinements():
    f = ps.LeastSquares([3.0, 1.0])
    r = ps.minimize(
        f, ps.lin(ps.SignedBasis(2)), ps.NormCorrective(), start=np.array([1.0, 1.0]),
        refine=lambda f, domain, active: (active.weights, active.atoms), stop=ps.Stop(iterations=2, rgap=None),
    )  # fmt: skip
    assert r.refused == 0


def test_algorithm_5_is_invariant_under_translations_from_the_first_atom_only():
    """The default start asks for the gradient at the origin of the coordinates, which a translation moves."""
    alike = {"default": 0, "first": 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        D, shift, y = rng.standard_normal((3, 8)), 3 * rng.standard_normal(3), rng.standard_normal(3)
        C = geometry.curvature(ps.LeastSquares(y), ps.Dictionary(D)).upper
        update, stop = ps.Plain(ps.CurvatureStep(C)), ps.Stop(iterations=10, rgap=None)
        for name, start in (("default", None), ("first", "first")):
            here, there = (
                ps.minimize(
                    ps.LeastSquares(y + s), ps.conv(ps.Dictionary(D + s[:, None])), update, start=start, stop=stop
                )
                for s in (np.zeros(3), shift)
            )
            alike[name] += np.allclose(here.trace.value, there.trace.value, rtol=1e-7, atol=1e-9)
    assert alike["first"] == 20 > alike["default"]


def test_first_needs_a_list():
    with pytest.raises(ValueError, match="cannot list its atoms"):
        ps.minimize(ps.LeastSquares(np.zeros((2, 2))), ps.conv(ps.RankOne((2, 2))), start="first")
    with pytest.raises(ValueError, match="start is 'last'"):
        ps.minimize(ps.LeastSquares(np.zeros(2)), ps.conv(ps.Simplex(2)), start="last")
    r = ps.minimize(ps.LeastSquares(np.zeros(2)), ps.conv(ps.Simplex(2)) + ps.lin(ps.SignedBasis(2)), start="first")
    assert r.start.tolist() == [1.0, 0.0]


# ---------------------------------------------------------------------- oracles


def own(g):
    return -g / max(np.linalg.norm(g), 1e-300)


SETS = {
    "rank one": (ps.RankOne((4, 3)), True),
    "symmetric rank one": (ps.SymmetricRankOne(3), False),
    "spectrahedron": (ps.Spectrahedron(3), False),
    "sphere": (ps.Ball(5, 2), True),
    "own oracle": (own, True),
    "tensor": (ps.RankOneTensor((3, 3, 3)), False),
    "permutations": (ps.Permutations(4), False),
    "box": (ps.Box(-np.ones(5), np.ones(5)), False),
}


@pytest.mark.parametrize("worst", [True, False])
@pytest.mark.parametrize("make", [ps.conv, ps.lin])
@pytest.mark.parametrize("name", SETS)
def test_every_set_has_answers_of_every_quality(name, make, worst):
    A, connected = SETS[name]
    rng, domain = np.random.default_rng(0), make(A)
    y = 0.4 * rng.standard_normal(domain.A.shape or (5,))
    f = ps.LeastSquares(y + y.T if "symmetric" in name or name == "spectrahedron" else y)
    states = ps.iterate(f, domain, ps.Plain(ps.LineSearch()), oracle=ps.Approximate(0.4, worst=worst))
    for s in islice(states, 1 if make is ps.conv else 0, 5):
        answer, origin = s.answers[0], domain.origin(s.answers[0].level)
        best = as_atom(domain.asked.lmo(s.grad)).dot(Space.of(s.grad), s.grad) - origin
        quality = (answer.dot - origin) / best if best < -1e-9 else 1.0
        assert quality >= 0.4 * (1 - 1e-6)
        if worst and connected and best < -1e-9:
            assert quality == pytest.approx(0.4, rel=1e-6)
        assert domain.A.contains(answer.atoms[0].dense(Space.of(s.grad))) is not False or make is ps.lin


def test_an_adversary_of_matrices_keeps_the_linear_rate_and_no_more():
    """diag(1, 1): the width is attained, and a rotated factor loses exactly delta."""
    f, A = ps.LeastSquares(np.eye(2)), ps.RankOne((2, 2))
    stop = ps.Stop(iterations=1, rgap=None)
    r = ps.minimize(f, ps.lin(A), ps.Plain(ps.LineSearch()), oracle=ps.Approximate(0.5), stop=stop)
    promised = rates.linear(1, mu=1, L=1, mdw=geometry.mdw(A), radius=1, eps0=1.0, delta=0.5)
    assert r.value == pytest.approx(promised)
    assert r.promise().curve[1] == pytest.approx(promised)


@pytest.mark.parametrize("seed", [0, 21, 36])
def test_additive_errors_keep_their_rate(seed):
    """Jaggi (2013), Lacoste-Julien et al. (2013): errors of e / (delta t + 2) cost C + e in place of C. Open-loop steps
    take the delta that the rate has: with the quality of each answer, which the errors spoil, f would rise again."""
    rng = np.random.default_rng(seed)
    n, m = 2 + seed % 3, 3 + seed % 6
    A, f = ps.Dictionary(rng.standard_normal((n, m)), signed=True), ps.LeastSquares(0.2 * rng.standard_normal(n))
    optimum = ps.minimize(f, ps.conv(A), stop=ps.Stop(gap=1e-12, rgap=None)).lower
    for delta in (1.0, 0.5):
        oracle = ps.Approximate(delta, additive=2.0)
        for update in (ps.Plain(ps.LineSearch()), ps.Plain(ps.OpenLoop())):
            r = ps.minimize(f, ps.conv(A), update, oracle=oracle, stop=ps.Stop(iterations=200, rgap=None, gap=None))
            p, C, t = r.promise(), geometry.curvature(f, A).upper, np.arange(len(r.trace))
            bound = rates.frank_wolfe_affine(t, C=C + 2.0, eps0=p.eps0, delta=delta)
            np.testing.assert_allclose({b.theorem: b.curve for b in p.bounds}["Theorem 1"][1:], bound[1:])
            assert (r.trace.value - optimum <= bound * (1 + 1e-9)).all()
            assert r.lower <= optimum + 1e-9
            assert r.delta == delta
    with pytest.raises(ValueError, match="additive errors belong to hulls"):
        next(ps.iterate(f, ps.lin(A), oracle=ps.Approximate(additive=1.0)))


@pytest.mark.parametrize("A", [ps.Ball(6, 2), ps.RankOne((3, 2)), ps.SignedBasis(6)], ids=repr)
def test_random_pursuit_and_acceleration_keep_their_rates_over_continuous_sets(A):
    """In expectation: means of 40 runs. Random directions of R^n lose a factor 1 - mu / (n L) a step."""
    shape = A.shape
    h, y = np.geomspace(1, 3, 6).reshape(shape), np.random.default_rng(0).standard_normal(shape)
    f, t = ps.LeastSquares(y, weights=h), np.arange(30)

    def mean(update, oracle):
        runs = [islice(ps.iterate(f, ps.lin(A), update(k), oracle=oracle(k)), 30) for k in range(40)]
        return np.mean([[s.value for s in run] for run in runs], axis=0)

    found = mean(lambda k: ps.Plain(ps.LineSearch()), ps.RandomAtom)
    assert (found <= 1.1 * rates.random_pursuit(t, mu=f.mu, L=f.L, share=1 / 6, eps0=found[0])).all()
    found = mean(lambda k: ps.AcceleratedPursuit(seed=k), lambda k: ps.Exact())
    distance = np.sqrt(6) * np.linalg.norm(y)
    assert (found[1:] <= rates.accelerated_pursuit(t[1:], L=f.L, nu=6, distance=distance)).all()


def test_acceleration_over_a_set_without_a_list_asks_for_nu():
    f, A = ps.LeastSquares(np.ones(3)), ps.RankOne((2, 2)).at([0, 1, 0], [0, 1, 1])
    with pytest.raises(TypeError, match="give AcceleratedPursuit\\(nu="):
        ps.minimize(f, ps.lin(A), ps.AcceleratedPursuit())
    assert ps.minimize(f, ps.lin(A), ps.AcceleratedPursuit(nu=8.0), stop=ps.Stop(iterations=300)).value < 0.1


# ---------------------------------------------------------------------- auto-conditioned steps


@pytest.mark.parametrize("seed", range(4))
def test_auto_conditioned_steps_are_short_steps_with_the_largest_curvature_seen(seed):
    rng = np.random.default_rng(seed)
    D, h, y = rng.standard_normal((4, 9)), np.geomspace(1, 5, 4), rng.standard_normal(4)
    f = ps.LeastSquares(y, weights=h)
    x, M, points = np.zeros(4), 0.0, [np.zeros(4)]
    for _ in range(8):
        g = h * (x - y)
        z = D[:, np.abs(D.T @ g).argmax()]
        z = -np.sign(g @ z) * z
        M = M or 1.001 * (h * z) @ z / (z @ z)
        gamma = -(g @ z) / (M * z @ z)
        x = x + gamma * z
        M = max(M, (h * z) @ z / (z @ z))
        points.append(x)
    found = [s.x for s in islice(ps.iterate(f, ps.lin(ps.Dictionary(D)), ps.Plain(ps.AutoConditioned())), 9)]
    np.testing.assert_allclose(found, points, rtol=0, atol=1e-7)


@pytest.mark.parametrize("update", [ps.Plain, ps.Away, ps.Pairwise, ps.BlendedPairwise])
def test_auto_conditioned_steps_need_no_L_and_evaluate_f_once_a_step(update):
    counts = [0]

    def value(x):
        counts[0] += 1
        return float(np.sum((x - 0.3) ** 4) + 0.5 * np.sum((x - 0.3) ** 2))

    f = ps.Smooth(value, lambda x: 4 * (x - 0.3) ** 3 + (x - 0.3))
    r = ps.minimize(f, ps.conv(ps.Dictionary(np.eye(3))), update(ps.AutoConditioned()), stop=ps.Stop(gap=1e-3))
    assert r.status is ps.Status.GAP
    assert counts[0] <= r.iterations + 8
