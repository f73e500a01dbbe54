"""Updates and oracles beyond the paper, over hulls, cones, spans and sums: minima, certificates, oracle calls."""

import importlib.util
import math
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

import pursuit as ps

# ------------------------------------------------------------------ cones


CONE = [
    ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.Away(), ps.Pairwise(), ps.BlendedPairwise(),
    ps.NormCorrective(), ps.FullyCorrective(), ps.FullyCorrective(several=4),
]  # fmt: skip


@pytest.mark.parametrize("update", CONE, ids=repr)
@given(seed=st.integers(0, 200))
def test_over_a_cone_certificates_hold_and_weights_stay_non_negative(update, seed):
    rng = np.random.default_rng(seed)
    D, y = rng.standard_normal((7, 10)), rng.standard_normal(7)
    coef, norm = nnls(D, y)
    minimum = 0.5 * norm**2
    rho = coef.sum() * (1 + 1e-9) + 1e-9
    before = math.inf
    for s in islice(ps.iterate(ps.LeastSquares(y), ps.cone(ps.Dictionary(D), rho=rho), update), 30):
        assert s.lower <= minimum + 1e-10
        assert math.isfinite(s.gap)
        assert s.gap >= s.value - minimum - 1e-10
        assert (s.active.weights >= 0).all()
        assert s.value <= before + 1e-12
        before = s.value


def test_pairwise_over_a_cone_may_move_from_and_to_the_origin():
    """From 0 every step begins at the origin; a start that is too large must shrink back to it."""
    domain = ps.cone(ps.Dictionary(np.eye(3)))
    y = np.array([-1.0, 0.5, -2.0])
    start = ([5.0, 5.0, 5.0], [domain.A.atom(i) for i in range(3)])
    for begin in (None, start):
        r = ps.minimize(ps.LeastSquares(y), domain, ps.Pairwise(), start=begin)
        np.testing.assert_allclose(r.x, [0.0, 0.5, 0.0], atol=1e-12)


# ------------------------------------------------------------------ away and pairwise steps


def l1_problem(seed=0):
    """60 x 40, where copt's pairwise method keeps dropped atoms at weight zero and stalls at a gap of 1.9."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((60, 40))
    coef = np.zeros(40)
    coef[:8] = rng.standard_normal(8)
    y = D @ coef + 0.1 * rng.standard_normal(60)
    return ps.LeastSquares(y), ps.conv(0.5 * np.abs(coef).sum() * ps.Dictionary(D, signed=True))


@pytest.mark.parametrize("update", [ps.Away(), ps.Pairwise(), ps.BlendedPairwise()], ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_away_and_pairwise_do_not_stall_where_copt_pairwise_does(update, seed):
    f, domain = l1_problem(seed)
    r = ps.minimize(f, domain, update, stop=ps.Stop(gap=1e-10, rgap=None, iterations=300))
    assert r.status is ps.Status.GAP
    assert r.gap <= 1e-10
    assert (r.weights > 0).all()


@pytest.mark.parametrize("update", [ps.Away(), ps.Pairwise(), ps.BlendedPairwise()], ids=repr)
def test_convergence_on_a_polytope_is_linear(update):
    """The gap falls by a constant factor per step, also at the end: as much again in the second half of the run."""
    f, domain = l1_problem()
    gaps = ps.minimize(f, domain, update, stop=ps.Stop(gap=1e-9, rgap=None)).trace.gap
    half = len(gaps) // 2
    first, second = math.log(gaps[0] / gaps[half]), math.log(gaps[half] / gaps[-1])
    assert second > 0.4 * first
    plain = ps.minimize(f, domain, ps.Plain(ps.LineSearch()), stop=ps.Stop(gap=1e-9, rgap=None, iterations=len(gaps)))
    assert plain.gap > 1e3 * gaps[-1]


def test_drop_steps_really_drop():
    f, domain = l1_problem()
    rng = np.random.default_rng(0)
    atoms = [domain.A.atom(i) for i in range(40)]
    start = (rng.dirichlet(np.ones(40)), atoms)
    for update in (ps.Away(), ps.Pairwise(), ps.BlendedPairwise()):
        sizes = []
        for s in islice(ps.iterate(f, domain, update, start=start), 150):
            assert (s.active.weights > 0).all()  # S holds no atom at weight zero
            sizes.append(len(s.active.atoms))
        assert sizes[0] == 40
        assert sizes[-1] <= 10


# ------------------------------------------------------------------ lazy and random oracles


def test_lazy_answers_cost_no_call_and_prove_nothing():
    f, domain = l1_problem()
    proved, seen = 0, 0
    for s in islice(ps.iterate(f, domain, ps.BlendedPairwise(), oracle=ps.Lazy()), 60):
        seen += 1
        answer = s.answers[0]
        assert (answer.calls == 0) == (answer.delta == 0.0)
        proved += answer.calls
        assert s.oracle_calls == proved + 1
        assert s.oracle_calls + s.cached == seen + 1
        if not answer.calls:  # its own promise is not the gap that is reported
            assert any(a is answer.atoms[0] for a in s.active.atoms)
            assert not s.stationary
    assert 0 < proved < seen


@pytest.mark.parametrize("seed", range(3))
def test_lazy_blended_pairwise_asks_less_and_reaches_the_same_minimum(seed):
    f, domain = l1_problem(seed)
    stop = ps.Stop(gap=1e-8, rgap=None)
    eager = ps.minimize(f, domain, ps.BlendedPairwise(), stop=stop)
    lazy = ps.minimize(f, domain, ps.BlendedPairwise(), oracle=ps.Lazy(), stop=stop)
    assert lazy.status is ps.Status.GAP
    assert lazy.oracle_calls < eager.oracle_calls
    assert lazy.value == pytest.approx(eager.value, abs=1e-7)
    assert lazy.cached > 0
    assert eager.cached == 0


# ------------------------------------------------------------------ pursuits over a span


def test_matching_pursuit_on_the_signed_basis_is_steepest_coordinate_descent(rng):
    Q = rng.standard_normal((8, 8))
    H, c = Q @ Q.T + np.eye(8), rng.standard_normal(8)
    f = ps.Quadratic(H, c)
    x = np.zeros(8)
    for s in islice(ps.iterate(f, ps.lin(ps.SignedBasis(8)), ps.Plain(ps.LineSearch())), 30):
        np.testing.assert_allclose(s.x, x, atol=1e-12)
        g = H @ x + c
        i = int(np.abs(g).argmax())
        x[i] -= g[i] / H[i, i]


@pytest.mark.parametrize("kind", ["basis", "dictionary"])
def test_accelerated_pursuit_keeps_its_rate_in_expectation(kind):
    """E f(x_t) - f* <= 2 L nu |x0 - x*|_P^2 / (t + 1)^2; y_t lies between x and v, so a factor of 4 is allowed."""
    rng = np.random.default_rng(0)
    n = 15
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H = (Q * np.logspace(-4, 0, n)) @ Q.T
    H = (H + H.T) / 2
    target = rng.standard_normal(n)
    f, minimum = ps.Quadratic(H, -H @ target), -0.5 * target @ H @ target
    D = np.eye(n) if kind == "basis" else rng.standard_normal((n, 40))
    unit = D / np.linalg.norm(D, axis=0)
    P = np.linalg.inv(unit @ unit.T / unit.shape[1])
    nu = max(z @ P @ z for z in unit.T)
    domain, steps = ps.lin(ps.Dictionary(D)), 150
    runs = []
    for seed in range(10):
        states = ps.iterate(f, domain, ps.AcceleratedPursuit(seed=seed))
        runs.append([s.value - minimum for s in islice(states, steps)])
    t = np.arange(1, steps)
    bound = 2 * f.L * nu * (target @ P @ target) / (t + 1) ** 2
    assert (np.mean(runs, axis=0)[1:] <= 4 * bound).all()


# ------------------------------------------------------------------ sums of domains


def test_an_l1_ball_with_an_intercept_equals_its_least_squares_elimination(rng):
    D, y = rng.standard_normal((50, 30)), rng.standard_normal(50) + 5
    ones = np.ones((50, 1))
    domain = ps.conv(2 * ps.Dictionary(D, signed=True)) + ps.lin(ps.Dictionary(ones), width=np.sqrt(50))
    r = ps.minimize(ps.LeastSquares(y), domain, stop=ps.Stop(gap=1e-9, rgap=None))
    centred = ps.minimize(
        ps.LeastSquares(y - y.mean()),
        ps.conv(2 * ps.Dictionary(D - D.mean(axis=0), signed=True)),
        stop=ps.Stop(rgap=1e-12),
    )
    assert r.gap <= 1e-9
    assert r.value == pytest.approx(centred.value, rel=1e-10)
    np.testing.assert_allclose(r.coef[0], centred.coef, atol=1e-6)
    assert r.coef[1] == pytest.approx(np.mean(y - D @ r.coef[0]))
    assert r.check().gap <= 1e-8


@given(seed=st.integers(0, 200), kind=st.sampled_from(["conv + conv", "conv + lin", "cone + lin", "conv + conv + lin"]))
def test_the_certificate_of_a_sum_keeps_its_promise(seed, kind):
    rng = np.random.default_rng(seed)
    A, B, C = rng.standard_normal((8, 6)), rng.standard_normal((8, 5)), rng.standard_normal((8, 1))
    y = 3 * rng.standard_normal(8)
    parts = {
        "conv": [ps.conv(ps.Dictionary(A, signed=True)), ps.conv(0.5 * ps.Dictionary(B))],
        "cone": [ps.cone(ps.Dictionary(A), rho=100.0)],
        "lin": [ps.lin(ps.Dictionary(C), width=float(np.linalg.norm(C)), rho=100.0)],
    }
    domain = None
    for name in kind.split(" + "):
        part = parts[name].pop(0)
        domain = part if domain is None else domain + part
    f = ps.LeastSquares(y)
    best = ps.minimize(f, domain, ps.FullyCorrective(several=3), stop=ps.Stop(rgap=1e-12, iterations=200))
    for update in (ps.FullyCorrective(), ps.NormCorrective(), ps.NormCorrective(inner=5)):
        for s in islice(ps.iterate(f, domain, update), 20):
            assert s.lower <= best.value + 1e-9
            assert s.gap >= s.value - best.value - 1e-9
            made = sum((w * a.vector for w, a in zip(s.active.weights, s.active.atoms, strict=True)), np.zeros(8))
            np.testing.assert_allclose(s.x, made, atol=1e-10)
            assert domain.admits(s.active.weights, s.active.blocks)


@pytest.mark.parametrize("update", [ps.Plain(ps.LineSearch()), ps.Away(), ps.Pairwise(), ps.BlendedPursuit()], ids=repr)
def test_updates_that_walk_say_that_a_sum_is_not_for_them(update):
    domain = ps.conv(ps.SignedBasis(3)) + ps.conv(ps.Simplex(3))
    with pytest.raises(ValueError, match="over a penalty FullyCorrective or NormCorrective"):
        ps.minimize(ps.LeastSquares(np.ones(3)), domain, update)


# ------------------------------------------------------------------ unbounded problems, duals, streams


@pytest.mark.parametrize(
    "update", [None, ps.Plain(ps.LineSearch()), ps.NormCorrective(), ps.FullyCorrective()], ids=repr
)
@pytest.mark.parametrize("wrap", [ps.cone, ps.lin])
@pytest.mark.parametrize("kind", ["smooth", "quadratic"])
def test_an_unbounded_problem_is_said_to_be_so_within_50_iterations(kind, wrap, update):
    slope = np.array([1.0, -2.0, 0.0])
    f = (
        ps.Smooth(lambda x: float(slope @ x), lambda x: slope)
        if kind == "smooth"
        else ps.Quadratic(np.diag([0.0, 0.0, 1.0]), slope)
    )
    r = ps.minimize(f, wrap(ps.Dictionary(np.eye(3))), update)
    assert r.status is ps.Status.UNBOUNDED
    assert r.iterations <= 50
    assert np.isfinite(r.x).all()
    assert math.isinf(r.gap)


def test_dual_multipliers_are_the_derivative_of_the_minimum_in_the_radius(rng):
    D, y = rng.standard_normal((30, 50)), rng.standard_normal(30)
    f, h = ps.LeastSquares(y), 1e-4

    def minimum(radius):
        return ps.minimize(f, ps.conv(radius * ps.Dictionary(D, signed=True)), stop=ps.Stop(rgap=1e-13))

    r = minimum(0.5)
    slope = (minimum(0.5 + h).value - minimum(0.5 - h).value) / (2 * h)
    assert -r.dual.multipliers[0] / 0.5 == pytest.approx(slope, rel=1e-5)
    np.testing.assert_allclose(r.dual.reduced, 0, atol=1e-8)
    assert r.dual.atoms[0].vector @ r.dual.grad == pytest.approx(-r.dual.multipliers[0])


def test_a_stochastic_run_is_repeatable_converges_and_certifies_nothing(rng):
    X, y = rng.standard_normal((2000, 10)), rng.standard_normal(2000)
    y += X[:, 0]

    def batch(r):
        rows = r.integers(2000, size=20)
        return X[rows], y[rows]

    def value(x, r):
        A, b = batch(r)
        return 0.5 * float(np.mean((A @ x - b) ** 2))

    def grad(x, r):
        A, b = batch(r)
        return A.T @ (A @ x - b) / len(b)

    f, domain = ps.Stochastic(value, grad), ps.conv(0.7 * ps.SignedBasis(10))
    runs = [ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=800)) for _ in range(2)]
    assert (runs[0].x == runs[1].x).all()
    assert math.isinf(runs[0].gap)
    assert math.isinf(runs[0].check().gap)
    exact = ps.Quadratic(X.T @ X / 2000, -X.T @ y / 2000)
    best = ps.minimize(exact, domain).value
    assert exact.value(runs[0].x) - best <= 0.05 * (exact.value(np.zeros(10)) - best)


SPANS = [
    ps.Plain(ps.LineSearch()), ps.NormCorrective(), ps.FullyCorrective(), ps.FullyCorrective(several=16),
    ps.BlendedPursuit(), ps.AcceleratedPursuit(),
]  # fmt: skip
RETREATS = [ps.Away(), ps.Pairwise(), ps.BlendedPairwise()]
SUMS = [ps.NormCorrective(), ps.NormCorrective(several=8), ps.FullyCorrective(), ps.FullyCorrective(several=8)]


@pytest.mark.parametrize(
    ("domain", "updates"),
    [
        (lambda D: ps.lin(ps.Dictionary(D)), SPANS),
        (lambda D: ps.cone(ps.Dictionary(D)), [*SPANS[:4], *RETREATS]),
        (lambda D: ps.conv(ps.Dictionary(D)), [*SPANS[1:4], *RETREATS]),
        (lambda D: ps.conv(ps.Dictionary(D)) + ps.lin(ps.Dictionary(np.ones((20, 1)))), SUMS),
    ],
    ids=["span", "cone", "hull", "sum"],
)
@pytest.mark.parametrize("loss", ["squares", "huber"])
def test_minima_are_equal_across_all_updates_of_a_domain(domain, updates, loss, rng):
    D, y = rng.standard_normal((20, 8)), 3 * rng.standard_normal(20)
    f = ps.LeastSquares(y) if loss == "squares" else ps.Huber(y, 1.0)
    stop = ps.Stop(rgap=1e-9, iterations=4000)
    values = [ps.minimize(f, domain(D), update, stop=stop).value for update in updates]
    assert max(values) - min(values) <= 1e-7 * max(values)


# ---------------------------------------------------------------------- how often the oracle is asked


def published(name):
    """The problem of this name in the benchmark."""
    path = Path(__file__).parent.parent / "benchmarks" / "updates.py"
    spec = importlib.util.spec_from_file_location("updates", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next((f, domain) for each, f, domain in module.problems() if each == name)


CALLS = {  # default; lazy blended pairwise: the fewest known, times 1.5 and 1.2
    "simplex least squares 500 x 700": (4, 93),
    "Birkhoff 30": (63, 417),
    "K-sparse 1400, K = 5, interior": (19, 1497),
    "K-sparse 1400, K = 40, on a face": (26, 322),
    "L1 ball least squares 500 x 2000": (10, 249),
    "L1 ball logistic 1000 x 5000": (10, 171),
}


@pytest.mark.parametrize("name", CALLS)
def test_published_problems_need_few_oracle_calls(name):
    f, domain = published(name)
    best = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-9))
    goal = ps.Stop(rgap=None, gap=1e-7 * (float(best.trace.value[0]) - best.lower))
    default = ps.minimize(f, domain, stop=goal)
    lazy = ps.minimize(f, domain, ps.BlendedPairwise(), oracle=ps.Lazy(), stop=goal)
    assert default.status is lazy.status is ps.Status.GAP
    assert default.oracle_calls <= CALLS[name][0]
    assert lazy.oracle_calls <= CALLS[name][1]


@pytest.mark.parametrize("tiny", [1e-3, 1e-9, 1e-13])
@pytest.mark.parametrize("share", [0.1, 0.7, 1.0])
def test_a_long_step_away_keeps_the_sum_of_the_weights(tiny, share):
    A, rng = ps.Simplex(4), np.random.default_rng(0)
    start = ([1.0 - 3.0 * tiny, tiny, tiny, tiny], [A.atom(j) for j in range(4)])
    state = next(ps.iterate(ps.LeastSquares(rng.standard_normal(4)), ps.conv(A), ps.Away(), start=start))
    active, slopes = state.active, np.array([2.0, 0.3, 0.2, 0.1])
    away = ps.conv(A).parts[0].away(active, slopes, float(slopes @ active.weights))
    away.move(share * away.reach)
    assert active.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert active.weights[0] == pytest.approx(1.0 - share, abs=0.02)
    np.testing.assert_allclose(active.weights[1:], share / 3, atol=0.02)


class Swaps(ps.Permutations):
    """Permutations whose oracle names the optimal one and those that swap two of its rows, cheapest first."""

    def best(self, g, several):
        ((columns, optimal),) = ((list(a.source), a) for a in super().best(g, 1))
        first, second = np.triu_indices(self.n, 1)
        swapped = g[:, columns]
        rise = (swapped + swapped.T - swapped.diagonal()[:, None] - swapped.diagonal())[first, second]
        atoms = [optimal]
        for s in np.argsort(rise, kind="stable")[: several - 1]:
            other = np.array(columns)
            other[[first[s], second[s]]] = other[[second[s], first[s]]]
            atoms.append(self._atom(other))
        return atoms


def test_small_problems_in_which_atoms_come_and_go_end_at_one_atom_a_call(rng):
    """Where the oracle costs next to nothing, most of the atoms that enter together soon leave again, and a run has
    done much work for them, it admits one atom a call. This depends on counts only, so that runs are repeatable."""
    f, domain = ps.LeastSquares(rng.random((45, 45))), ps.conv(Swaps(45))
    wanted, states = [], []
    stop = ps.Stop(rgap=1e-6)

    def watch(state):
        wanted.append(state.active.wanted)
        states.append(len(state.active.atoms) - len(state.active))

    r = ps.minimize(f, domain, stop=stop, callback=watch)
    assert r.status is ps.Status.GAP
    assert wanted[3] > 1 and wanted[-1] == 1
    assert states[-1] < max(states) / 4  # atoms of weight zero
    assert (ps.minimize(f, domain, stop=stop).trace.value == r.trace.value).all()
