"""The loop, its observers, and hard cases."""

import io
import logging
import math
import pickle
import re
import sys
import tracemalloc
from itertools import islice

import numpy as np
import pytest
from conftest import sparse_regression

import pursuit as ps
from pursuit.domains import Answer

# ------------------------------------------------------------------ counts on the standard problem


def test_default_update_certifies_least_squares_to_1e_10_in_80_oracle_calls():
    D, y, coef = sparse_regression(0)
    A = 0.8 * np.abs(coef).sum() * ps.Dictionary(D, signed=True)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(A), stop=ps.Stop(gap=1e-10, rgap=None))
    assert r.status is ps.Status.GAP
    assert r.gap <= 1e-10
    assert r.oracle_calls <= 80
    assert r.check().gap <= 1e-10


# ------------------------------------------------------------------ stopping


def problem(rng, m=20, n=50):
    D, y = rng.standard_normal((m, n)), rng.standard_normal(m)
    return ps.LeastSquares(y), ps.conv(0.5 * ps.Dictionary(D, signed=True)), ps.Plain(ps.ShortStep())


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (ps.Stop(gap=1.0, rgap=None), ps.Status.GAP),
        (ps.Stop(rgap=0.5), ps.Status.GAP),
        (ps.Stop(atoms=3, rgap=None), ps.Status.ATOMS),
        (ps.Stop(iterations=4, rgap=None), ps.Status.ITERATIONS),
        (ps.Stop(seconds=0.0, rgap=None), ps.Status.SECONDS),
        (ps.Stop(value=1e9, rgap=None), ps.Status.VALUE),
    ],
)
def test_the_first_rule_met_stops(stop, status, rng):
    r = ps.minimize(*problem(rng), stop=stop)
    assert r.status is status
    assert len(r.trace) == r.iterations + 1


def test_a_callback_sees_every_state_and_may_stop(rng):
    seen = []

    def callback(state):
        seen.append(state.iteration)
        return state.iteration == 5

    r = ps.minimize(*problem(rng), callback=callback, stop=ps.Stop(rgap=None))
    assert r.status is ps.Status.CALLBACK
    assert seen == list(range(6))


def test_verbose_writes_a_line_per_power_of_two_and_one_at_the_end(rng, capsys):
    r = ps.minimize(*problem(rng), verbose=True, stop=ps.Stop(rgap=None, iterations=9))
    out = capsys.readouterr()
    assert out.out == ""
    *lines, last = out.err.splitlines()
    for line, t in zip(lines, [0, 1, 2, 4, 8], strict=True):
        value, gap = r.trace.value[t], r.trace.gap[t]
        assert line.startswith(f"iteration {t}: f = {value:.6g}, gap = {gap:.2g}, {r.trace.atoms[t]} atom")
        assert len(line) <= 80
    assert last.startswith("ended after 9 iterations") and last.endswith(ps.Status.ITERATIONS.value)
    ps.minimize(*problem(rng), verbose=False)
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ClosedPipe(Terminal):
    def write(self, text):
        raise BrokenPipeError


def test_the_bar_fits_a_terminal_of_80_columns_and_is_only_shown_there(rng, monkeypatch, capsys):
    ps.minimize(*problem(rng), progress=True, stop=ps.Stop(iterations=3))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    f, domain, update = problem(rng)
    ps.minimize(f, domain, update, progress=True, verbose=True, stop=ps.Stop(iterations=300, rgap=None))
    shown = re.split(r"[\r\n]+", sys.stderr.getvalue())
    assert max(map(len, shown)) <= 80, max(shown, key=len)
    assert any(re.match(r"pursuit: .*, [0-9]+ atoms?\]", line) for line in shown)


def test_a_log_that_nobody_reads_any_more_does_not_end_a_run(rng, monkeypatch):
    monkeypatch.setattr(sys, "stderr", ClosedPipe())
    assert ps.minimize(*problem(rng), verbose=True, stop=ps.Stop(iterations=3)).iterations == 3


def test_verbose_takes_a_logger(rng, capsys, caplog):
    logger = logging.getLogger("a run of ours")
    with caplog.at_level(logging.INFO, logger=logger.name):
        ps.minimize(*problem(rng), verbose=logger, stop=ps.Stop(rgap=None, iterations=2))
    assert [record.getMessage().split(":")[0] for record in caplog.records][:3] == [f"iteration {t}" for t in range(3)]
    assert {(record.name, record.levelno) for record in caplog.records} == {(logger.name, logging.INFO)}
    assert len(caplog.records) == 4
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="verbose is 'yes'"):
        ps.minimize(*problem(rng), verbose="yes")


def test_results_print_as_a_block_and_survive_pickling(rng):
    f, domain, _ = problem(rng)
    r = ps.minimize(f, domain)
    assert "the certified gap is within the tolerance" in str(r)
    assert str(r) == repr(r)
    again = pickle.loads(pickle.dumps(r))
    assert (again.x == r.x).all()
    assert again.check().gap == r.check().gap


def test_the_default_update_says_what_it_is(rng):
    f, domain, _ = problem(rng)
    assert ps.minimize(f, domain).update == ps.FullyCorrective(several=64)
    smooth = ps.Smooth(f.value, lambda x: f.value_and_grad(x)[1])
    assert ps.minimize(smooth, domain).update == ps.FullyCorrective(several=64)
    noisy = ps.Stochastic(lambda x, rng: f.value(x), lambda x, rng: f.value_and_grad(x)[1])
    assert ps.minimize(noisy, domain, stop=ps.Stop(iterations=2)).update == ps.Plain(ps.OpenLoop())


# ------------------------------------------------------------------ starts


class WorstOfAll(ps.Oracle):
    """An oracle that names the worst atom of a list, and proves nothing."""

    def begin(self, part, space, update):
        def ask(grad, active, gx):
            scores = part.asked.scores(grad)
            return Answer([part.asked.atom(int(scores.argmax()))], float(scores.max()), 0.0)

        return ask


def test_the_first_atom_of_a_hull_is_the_one_that_the_users_oracle_names(rng):
    f, domain, update = problem(rng)
    A = domain.A
    scores = A.scores(-f.y)
    allowed = scores[scores <= 0.3 * scores.min()].max()
    for oracle, score in ((WorstOfAll(), scores.max()), (ps.Approximate(0.3), allowed), (ps.Lazy(), scores.min())):
        first = next(iter(ps.iterate(f, domain, update, oracle=oracle)))
        assert -f.y @ first.active.atoms[0].vector == pytest.approx(score)
        assert first.oracle_calls == 2
    at_random = [next(iter(ps.iterate(f, domain, update, oracle=ps.RandomAtom(s)))).x for s in range(5)]
    assert len({x.tobytes() for x in at_random}) > 1
    both = next(iter(ps.iterate(f, domain + domain, ps.FullyCorrective(), oracle=WorstOfAll())))
    assert [-f.y @ both.active.atoms[i].vector for i in (0, 2)] == pytest.approx([scores.max()] * 2)  # each with -z
    assert both.oracle_calls == 4


@pytest.mark.parametrize("worst", [True, False])
def test_an_approximate_oracle_begins_inside_a_hull_that_does_not_contain_zero(worst):
    box = ps.Box([1.0, 2.0], [3.0, 4.0])
    states = ps.iterate(
        ps.LeastSquares([2.0, 2.5]), ps.conv(box), ps.Plain(ps.ShortStep()), oracle=ps.Approximate(0.3, worst)
    )
    for s in islice(states, 20):
        assert (s.x >= [1.0 - 1e-12, 2.0 - 1e-12]).all() and (s.x <= [3.0 + 1e-12, 4.0 + 1e-12]).all()
        assert s.lower <= 1e-12


def test_a_run_begins_each_set_once_and_its_check_with_other_random_numbers(rng):
    """Bounds by chance need random numbers on which x does not depend: a run never uses them twice."""
    begun = []

    class Seen(ps.RankOne):
        def begin(self, seed=0):
            begun.append(seed)
            return super().begin(seed)

    r = ps.minimize(ps.LeastSquares(rng.standard_normal((5, 4))), ps.conv(Seen((5, 4))), ps.FullyCorrective())
    assert len(begun) == 1
    r.check()
    assert len(begun) == len(set(begun)) == 2


def test_warm_start_from_a_result_costs_no_progress(rng):
    f, domain, _ = problem(rng)
    r = ps.minimize(f, domain, keep=True)
    again = ps.minimize(f, domain, start=r)
    assert again.iterations == r.iterations
    np.testing.assert_allclose(again.x, r.x, atol=1e-12)
    anew = ps.minimize(f, domain, start=ps.minimize(f, domain))  # not kept: the same point, a new run
    assert anew.iterations <= 1
    np.testing.assert_allclose(anew.x, r.x, atol=1e-12)


@pytest.mark.parametrize("symmetric_set", ["dictionary", "basis", "ball"])
def test_a_result_on_a_smaller_hull_starts_a_larger_one(symmetric_set, rng):
    D, y = rng.standard_normal((8, 20)), 10 * rng.standard_normal(8)
    A = {"dictionary": ps.Dictionary(D, signed=True), "basis": ps.SignedBasis(8), "ball": ps.Ball(8, 3)}[symmetric_set]
    small = ps.minimize(ps.LeastSquares(y), ps.conv(A))
    first = next(iter(ps.iterate(ps.LeastSquares(y), ps.conv(2 * A), start=small)))
    np.testing.assert_allclose(first.x, small.x, atol=1e-12)
    assert first.active.weights.sum() == pytest.approx(1)
    large = ps.minimize(ps.LeastSquares(y), ps.conv(2 * A), start=small)
    cold = ps.minimize(ps.LeastSquares(y), ps.conv(2 * A))
    assert large.value == pytest.approx(cold.value, rel=1e-5)


def test_a_start_with_its_decomposition_is_kept_in_S(rng):
    D, y = rng.standard_normal((6, 12)), rng.standard_normal(6)
    A = ps.Dictionary(D)
    start = ([0.25, 0.75], [A.atom(3), A.atom(5)])
    states = ps.iterate(ps.LeastSquares(y), ps.conv(A), ps.NormCorrective(), start=start)
    first = next(states)
    np.testing.assert_allclose(first.x, 0.25 * D[:, 3] + 0.75 * D[:, 5])
    next(states)
    assert [a.source for a in first.active.atoms[:2]] == [3, 5]


def test_a_bare_point_is_the_first_element_of_S_and_the_start_is_not_written_to(rng):
    y, x0 = rng.standard_normal(5), rng.standard_normal(5)
    x0 *= 0.3 / np.abs(x0).sum()
    kept = x0.copy()
    r = ps.minimize(ps.LeastSquares(y), ps.conv(ps.SignedBasis(5)), start=x0)
    assert (x0 == kept).all()
    cold = ps.minimize(ps.LeastSquares(y), ps.conv(ps.SignedBasis(5)))
    assert r.value == pytest.approx(cold.value, rel=1e-5)


# ------------------------------------------------------------------ refinement


def test_a_refinement_that_helps_is_obeyed(rng):
    y = rng.standard_normal(6)

    def jump(f, domain, active):  # straight to the answer
        return y / 1.0, [ps.SparseAtom([i], [1.0], (6,), i) for i in range(6)]

    states = ps.iterate(ps.LeastSquares(y), ps.lin(ps.SignedBasis(6)), ps.Plain(ps.ShortStep()), refine=jump)
    next(states)
    after = next(states)
    assert after.value == pytest.approx(0, abs=1e-28)
    assert after.refused == 0


@pytest.mark.parametrize("bad", ["raises f", "leaves the hull", "foreign atom"])
def test_a_refinement_that_raises_f_or_leaves_the_domain_is_refused_and_counted(bad, rng):
    y = rng.standard_normal(4)
    A = ps.SignedBasis(4)
    worst = A.lmo(y)  # against the target
    proposals = {
        "raises f": ([1.0], [worst]),
        "leaves the hull": ([2.0], [A.lmo(-y)]),
        "foreign atom": ([1.0], [ps.Atom(y * 3 / np.abs(y).sum())]),
    }

    def refine(f, domain, active):
        return proposals[bad]

    plain = ps.minimize(ps.LeastSquares(y), ps.conv(A), stop=ps.Stop(iterations=5, rgap=None))
    r = ps.minimize(ps.LeastSquares(y), ps.conv(A), refine=refine, stop=ps.Stop(iterations=5, rgap=None))
    assert r.refused == r.iterations
    np.testing.assert_allclose(r.x, plain.x, atol=1e-14)


# ------------------------------------------------------------------ hard dictionaries


@pytest.mark.parametrize("scale", [1e-150, 1e-75, 1.0, 1e75, 1e150])
@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
@pytest.mark.parametrize("update", [None, ps.FullyCorrective(), ps.NormCorrective()], ids=repr)
def test_scales_from_1e_150_to_1e150_give_the_same_point(scale, wrap, update, rng):
    D, y = rng.standard_normal((10, 25)), rng.standard_normal(10)
    stop = ps.Stop(atoms=5)
    plain = ps.minimize(ps.LeastSquares(y), wrap(ps.Dictionary(D)), update, stop=stop)
    A = ps.Dictionary(scale * D)
    r = ps.minimize(ps.LeastSquares(y), wrap(A if wrap is ps.lin else (1 / scale) * A), update, stop=stop)
    np.testing.assert_allclose(r.x, plain.x, rtol=1e-9, atol=1e-12)
    if wrap is ps.lin:
        np.testing.assert_allclose(scale * r.coef, plain.coef, rtol=1e-9, atol=1e-12)


def test_nothing_is_certified_over_a_span_when_nothing_is_known():
    f = ps.Smooth(lambda x: float(np.sum((x - 1) ** 4)), lambda x: 4 * (x - 1) ** 3)
    r = ps.minimize(f, ps.lin(ps.SignedBasis(3)), stop=ps.Stop(iterations=20))
    assert math.isinf(r.gap)
    assert "not certified" in str(r)


def test_ties_go_to_the_lowest_index():
    A = ps.Dictionary(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).T @ np.ones((3, 3)), signed=True)
    assert A.lmo(np.array([1.0, 1.0, 1.0])).source == 0
    assert ps.SignedBasis(4).lmo(np.array([0.0, 2.0, -2.0, 2.0])).source == 1
    assert [a.source for a in ps.SignedBasis(5).best(np.array([1.0, 2.0, 2.0, 1.0, 1.0]), 4)] == [1, 2, 0, 3]


def test_own_atoms_need_one_method_and_may_return_a_bare_array(rng):
    class Sphere(ps.Atoms):
        def lmo(self, g):
            return -g / (np.linalg.norm(g) or 1.0)

    y = rng.standard_normal(4)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(Sphere()), ps.Plain(ps.ShortStep()))
    np.testing.assert_allclose(r.x, y / max(1, np.linalg.norm(y)), atol=1e-3)
    span = ps.minimize(ps.LeastSquares(y), ps.lin(Sphere()))
    np.testing.assert_allclose(span.x, y, atol=1e-12)


def test_span_of_a_set_that_is_not_symmetric_asks_for_both_signs(rng):
    class Orthant(ps.Atoms):  # basis vectors, only ever with a plus sign
        def lmo(self, g):
            i = int(np.argmin(g))
            return ps.Atom(np.eye(4)[i], source=i)

    y = np.array([-3.0, 1.0, -2.0, 0.5])
    r = ps.minimize(ps.LeastSquares(y), ps.lin(Orthant()))
    np.testing.assert_allclose(r.x, y, atol=1e-12)


def test_unhashable_sources_are_recognised_by_their_vectors(rng):
    class Lists(ps.Atoms):
        def lmo(self, g):
            i = int(np.argmin(g))
            return ps.Atom(np.eye(3)[i], source=[i])

    r = ps.minimize(
        ps.LeastSquares([0.5, 0.3, 0.2]), ps.conv(Lists()), ps.Plain(ps.ShortStep()), stop=ps.Stop(iterations=50)
    )
    assert len(r.atoms) == 3


# ------------------------------------------------------------------ memory


def test_two_million_basis_vectors_need_less_than_twelve_vectors_of_memory():
    n = 2_000_000
    y = np.random.default_rng(0).standard_normal(n)
    f, domain = ps.LeastSquares(y), ps.conv(100 * ps.SignedBasis(n))
    tracemalloc.start()
    try:
        r = ps.minimize(f, domain, stop=ps.Stop(iterations=200, rgap=1e-12))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * y.nbytes
    assert r.iterations > 5
    assert r.gap <= 1e-9 * r.value
