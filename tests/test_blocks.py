"""Products of domains, and updates of one summand at a time."""

import math
import sys
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps

ORDERS = ["cyclic", "random", "gap", "lazy", "full"]
WALKS = [ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.Away(), ps.Pairwise(), ps.BlendedPairwise()]
CORRECTIVE = [ps.FullyCorrective(), ps.FullyCorrective(several=4), ps.NormCorrective()]


def pieces(rng):
    """Domains of pieces of all kinds."""
    return [
        ps.conv(ps.Simplex(3)), ps.conv(2.0 * ps.Dictionary(rng.standard_normal((2, 5)), signed=True)),
        ps.conv(ps.Permutations(2)), ps.conv(ps.Ball(3, 2)), ps.cone(ps.Dictionary(rng.standard_normal((3, 2)))),
        ps.lin(ps.Dictionary(rng.standard_normal((3, 2)))), ps.penalty(0.3 * ps.SignedBasis(3)),
        ps.conv(ps.Simplex(3)) + ps.lin(ps.Dictionary(np.ones((3, 1)))), ps.conv(ps.RankOne((2, 2))),
    ]  # fmt: skip


@pytest.mark.parametrize("which", range(9))
def test_embedded_sets_satisfy_the_laws_of_atoms(which, rng):
    domain = ps.product(ps.conv(ps.Simplex(2)), pieces(rng)[which])
    for part in domain.parts:
        ps.check_atoms(part.asked, trials=5)


@given(seed=st.integers(0, 1000), first=st.integers(0, 8), second=st.integers(0, 8))
def test_a_separable_function_over_a_product_has_the_minima_of_its_pieces(seed, first, second):
    rng = np.random.default_rng(seed)
    domains = [pieces(rng)[first], pieces(rng)[second]]
    domain = ps.product(*domains)
    y = 2.0 * rng.standard_normal(sum(math.prod(s) for s in domain.shapes))
    stop = ps.Stop(gap=1e-9, rgap=1e-9, iterations=500)
    alone = [ps.minimize(ps.LeastSquares(t), d, stop=stop) for t, d in zip(domain.split(y), domains, strict=True)]
    r = ps.minimize(ps.LeastSquares(y), domain, stop=stop)
    assert r.value == pytest.approx(sum(each.value for each in alone), abs=1e-6)
    for piece, each in zip(domain.split(r.x), alone, strict=True):
        np.testing.assert_allclose(piece, each.x, atol=1e-3)
    np.testing.assert_array_equal(domain.join(domain.split(r.x)), r.x)
    assert r.check().feasible


@given(seed=st.integers(0, 1000), order=st.sampled_from(ORDERS), choice=st.integers(0, 7), kind=st.integers(0, 3))
def test_certificates_of_blocks_keep_their_promise_and_weights_make_the_point(seed, order, choice, kind):
    rng = np.random.default_rng(seed)
    D, E = rng.standard_normal((4, 6)), rng.standard_normal((4, 5))
    A, B = ps.Dictionary(D), ps.Dictionary(E, signed=True)
    update = [*WALKS, *CORRECTIVE][choice]
    domain = [
        lambda: ps.conv(A) + ps.conv(B),
        lambda: ps.product(ps.conv(A), ps.conv(B), ps.conv(ps.Simplex(3))),
        lambda: ps.conv(A) + ps.cone(B),
        lambda: ps.penalty(0.2 * B) + ps.conv(A),
    ][kind]()
    if kind == 3 and choice < 5:
        return  # walks do not serve penalties
    n = domain.parts[0].A.shape[0]
    f = ps.LeastSquares(2.0 * rng.standard_normal(n))
    best = ps.minimize(f, domain, stop=ps.Stop(gap=1e-11, rgap=1e-11, iterations=300))
    before, lower = math.inf, -math.inf
    for s in islice(ps.iterate(f, domain, ps.Blocks(update, order, certify=2)), 30):
        assert lower - 1e-9 <= s.lower <= best.value + 1e-9
        assert s.gap >= s.value - best.value - 1e-9
        assert s.value <= before + 1e-10
        before, lower = s.value, s.lower
        w, blocks = s.active.weights, s.active.blocks
        np.testing.assert_allclose(s.active.synthesize(w), s.x, atol=1e-10)
        assert domain.admits(w, blocks)


@pytest.mark.parametrize("order", ["cyclic", "random", "gap", "lazy"])
def test_only_the_block_whose_turn_it_is_is_asked_and_the_bound_stays_until_all_are(order, rng):
    domain = ps.product(*(ps.conv(ps.Simplex(4)) for _ in range(5)))
    f = ps.LeastSquares(rng.standard_normal(20))
    bounds = []
    for s in islice(ps.iterate(f, domain, ps.Blocks(ps.Away(), order, certify=3)), 40):
        asked = [b for b, answer in enumerate(s.answers) if answer.calls]
        everyone = s.iteration % 15 == 0
        assert len(asked) == (5 if everyone else 1)
        assert all(answer.delta == 0 and answer.lower is None for answer in s.answers if not answer.calls)
        if not everyone:
            assert s.lower == bounds[-1]
            assert s.stationarity == math.inf
        bounds.append(s.lower)
    assert bounds[14] < bounds[15]


def calls_of_turns(count, turns=7):
    """The functions that a few turns of one block go through, each as often as it is called."""
    f = ps.LeastSquares(np.random.default_rng(0).standard_normal(4 * count))
    domain = ps.product(*(ps.conv(ps.Simplex(4)) for _ in range(count)))
    calls = Counter()

    def note(frame, event, _):
        own = not any(name in frame.f_code.co_filename for name in ("hypothesis", "jax"))  # they watch the collector
        calls[frame.f_code.co_qualname] += event == "call" and own

    def measure(s):
        sys.setprofile({count: note, count + turns: None}.get(s.iteration, sys.getprofile()))

    stop = ps.Stop(iterations=count + turns + 1, rgap=None)
    ps.minimize(f, domain, ps.Blocks(ps.Plain(ps.ShortStep())), stop=stop, callback=measure)
    return calls


def test_a_turn_of_one_block_takes_the_same_calls_however_many_blocks_there_are():
    few, many = calls_of_turns(8), calls_of_turns(80)
    assert many == few
    assert few["GuardedOracle.ask"] == 7  # one oracle a turn
    assert few["SparseAtom.norm"] <= 7


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("update", [*WALKS[2:], *CORRECTIVE], ids=repr)
def test_blocks_reach_the_minimum(order, update, rng):
    domain = ps.product(*(ps.conv(ps.Dictionary(rng.standard_normal((3, 6)))) for _ in range(3)))
    Q = rng.standard_normal((9, 9))
    f = ps.Quadratic(Q @ Q.T + 0.5 * np.eye(9), rng.standard_normal(9))
    r = ps.minimize(f, domain, ps.Blocks(update, order), stop=ps.Stop(rgap=1e-6, iterations=20_000))
    assert r.status is ps.Status.GAP
    assert r.check().gap <= 1e-6 * abs(r.value) * (1 + 1e-6)


def test_blocks_without_a_hessian_and_with_a_domain(rng):
    D = rng.uniform(0.5, 2.0, (6, 8))
    domain = ps.conv(ps.Dictionary(D)) + ps.conv(ps.Dictionary(D[:, ::-1] ** 2))
    f = ps.Smooth(lambda x: -float(np.log(x).sum()) if (x > 0).all() else math.inf, lambda x: -1 / x)
    for update in (ps.FullyCorrective(), ps.Away()):
        r = ps.minimize(f, domain, ps.Blocks(update))
        assert r.status is ps.Status.GAP


def test_an_open_loop_in_blocks_counts_rounds(rng):
    domain = ps.product(ps.conv(ps.Simplex(2)), ps.conv(ps.Simplex(2)))
    seen = []

    def step(move):
        seen.append(move.iteration)
        return 2 / (move.iteration + 2)

    ps.minimize(
        ps.LeastSquares(rng.random(4)), domain, ps.Blocks(ps.Plain(step)), stop=ps.Stop(iterations=6, rgap=None)
    )
    assert seen == [0, 0, 1, 1, 2, 2]


def test_blocks_ask_less_often_than_full_updates_where_one_block_is_hard(rng):
    """Nine blocks are solved by one vertex each; the gap finds the tenth."""
    hard = ps.conv(ps.Dictionary(rng.standard_normal((20, 60))))
    domain = ps.product(*(ps.conv(ps.Simplex(3)) for _ in range(9)), hard)
    y = np.concatenate([np.tile([5.0, 0.0, 0.0], 9), 0.3 * rng.standard_normal(20)])
    stop = ps.Stop(rgap=1e-4)
    calls = {
        o: ps.minimize(ps.LeastSquares(y), domain, ps.Blocks(ps.Pairwise(), o), stop=stop).oracle_calls for o in ORDERS
    }
    assert calls["gap"] < 0.5 * calls["full"]
    assert calls["lazy"] < 0.5 * calls["full"]


def test_a_run_by_blocks_goes_on_over_a_sum_with_atoms_in_common(rng):
    D = rng.standard_normal((5, 8))
    domain = ps.conv(ps.Dictionary(D)) + ps.conv(ps.Dictionary(D[:, :3]))
    f = ps.LeastSquares(rng.standard_normal(5))
    first = ps.minimize(f, domain, ps.Blocks(ps.Away()), stop=ps.Stop(iterations=4, rgap=None), keep=True)
    again = ps.minimize(f, domain, ps.Blocks(ps.Away()), start=first)
    assert again.trace.value[first.iterations] == first.value
    assert again.status is ps.Status.GAP


@pytest.mark.parametrize("order", ORDERS)
def test_a_block_whose_best_weights_are_all_zero_stays_empty(order):
    """The atoms of the cone have almost no slope, and none of them may enter: there are no weights to correct."""
    cone = ps.cone(ps.Spectrahedron(3))
    for seed in (0, 10, 28, 29):
        f = ps.Huber(np.random.default_rng(seed).standard_normal((3, 3)), 0.3)
        r = ps.minimize(f, ps.conv(ps.Spectrahedron(3)) + cone, ps.Blocks(ps.FullyCorrective(), order=order))
        assert r.status is ps.Status.GAP
        assert (r.blocks == 0).all()


def test_a_run_over_a_product_begins_at_the_points_of_its_pieces(rng):
    domain = ps.product(ps.conv(ps.Simplex(2)), ps.conv(ps.Ball(2, 2)), ps.conv(ps.Permutations(2)))
    f = ps.LeastSquares(rng.standard_normal(8))
    p, b, m = np.array([0.25, 0.75]), np.array([0.1, 0.2]), np.full((2, 2), 0.5)
    piece = ps.minimize(ps.LeastSquares(p), ps.conv(ps.Simplex(2)))
    best = ps.minimize(f, domain)
    for start in ([p, b, m], (p, b, m), domain.join([p, b, m]), [piece, b, m], [([0.25, 0.75], np.eye(2)), b, m]):
        r = ps.minimize(f, domain, start=start)
        np.testing.assert_allclose(r.start, domain.join([p, b, m]), atol=1e-6)
        assert r.value == pytest.approx(best.value, abs=2e-6)
        assert r.check().feasible
    other = ps.product(ps.conv(2.0 * ps.Ball(2, 1)), ps.conv(2.0 * ps.Ball(2, 2)), ps.conv(ps.Permutations(2)))
    np.testing.assert_allclose(ps.minimize(f, other, start=best).start, best.x)  # only its point can be used


@pytest.mark.parametrize("sum_of_hulls", [False, True])
def test_many_blocks_end_at_a_gap_by_default(sum_of_hulls):
    """Each of 40 blocks has a fortieth of the slope, and none of its atoms was worth a weight."""
    rng, n = np.random.default_rng(0), 40
    if sum_of_hulls:
        hulls = [ps.conv(ps.Dictionary(rng.standard_normal((20, 6)))) for _ in range(n)]
        f, domain = ps.Huber(50 * rng.standard_normal(20), 1.0), sum(hulls[1:], hulls[0])
    else:
        cost, domain = rng.random((n, 6)), ps.product(*[ps.conv(ps.Simplex(6))] * n)

        def value_and_grad(x):
            away = x.reshape(n, 6) - x.reshape(n, 6).mean(axis=0)
            return float((cost * x.reshape(n, 6) + away**2).sum()), (cost + 2 * away).ravel()

        f = ps.Smooth(value_and_grad)
    r = ps.minimize(f, domain, stop=ps.Stop(iterations=60))
    assert r.status is ps.Status.GAP
