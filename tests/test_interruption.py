"""How a run is ended from outside: by Ctrl-C, or because its time is over."""

import signal
import sys
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import pursuit as ps
from pursuit import refine
from pursuit.paper.problems import finished
from pursuit.run import watchers

PACKAGE = str(Path(ps.__file__).parent)


class Counted(ps.Objective):
    """Another objective, with something done at each evaluation."""

    def __init__(self, f, at_evaluation):
        self.f, self.at_evaluation = f, at_evaluation
        self.L, self.mu, self.infimum, self.space, self.quadratic = f.L, f.mu, f.infimum, f.space, f.quadratic

    def value_and_grad(self, x):
        self.at_evaluation()
        return self.f.value_and_grad(x)

    def hessian(self, x):
        return self.f.hessian(x)


class CountedSmooth(Counted):
    """The same, without a Hessian."""

    hessian = ps.Objective.hessian


def regression(rng, kind=ps.LeastSquares):
    y = rng.standard_normal(30)
    return kind(np.sign(y) if kind is ps.Logistic else y), ps.Dictionary(rng.standard_normal((30, 60)), signed=True)


def matrices(rng):
    rows, cols = np.nonzero(rng.random((40, 30)) < 0.7)
    Y = rng.standard_normal((40, 12)) @ rng.standard_normal((12, 30))
    return ps.LeastSquares(Y[rows, cols]), ps.RankOne((40, 30)).at(rows, cols)


def bumps(rng):
    A = ps.Parametric(ps.families.Gaussian(np.linspace(0, 1, 50), 0.05), [(0, 1)])
    return ps.LeastSquares(sum(A.family(np.array([c])) for c in (0.31, 0.41, 0.53)) + rng.normal(size=50) / 9), A


def tensors(rng):
    return ps.LeastSquares(rng.standard_normal((6, 6, 6))), ps.RankOneTensor((6, 6, 6))


def groups(rng):
    X = rng.standard_normal((30, 48))
    return ps.LeastSquares(X[:, :12] @ np.ones(12)), ps.Groups(np.arange(48) // 6).through(X)


# ------------------------------------------------------------------ Ctrl-C


def interrupted_at(which, run):
    """run(), with a KeyboardInterrupt at the line of the package that is executed as this one; and how many were."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code.co_name in ("__enter__", "__exit__"):
            return None
        if event == "line":
            lines += 1
            if lines == which:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run(), lines
    finally:
        sys.settrace(before)


CASES = {
    "dictionary": (regression, lambda A: ps.conv(3 * A), None),
    "Newton steps": (lambda rng: regression(rng, ps.Logistic), lambda A: ps.conv(9 * A), ps.FullyCorrective()),
    "walk": (regression, lambda A: ps.conv(3 * A), ps.Pairwise()),
    "factors": (matrices, lambda A: ps.conv(40 * A), None),
    "tensors": (tensors, ps.lin, None),
    "groups": (groups, lambda A: ps.conv(9 * A), None),
}


@pytest.mark.parametrize("case", CASES)
def test_wherever_a_run_is_interrupted_its_last_complete_iteration_is_the_result(case, rng):
    make, wrap, update = CASES[case]
    (f, A), seen, interrupted = make(rng), [], 0
    domain = wrap(A)

    def run():
        seen.clear()
        return ps.minimize(f, domain, update, callback=lambda s: seen.append(s.value), stop=ps.Stop(iterations=4))

    run()  # what is computed once for a set is known afterwards
    lines = interrupted_at(None, run)[1]
    for line in np.linspace(1, lines - 100, 20).astype(int):  # the last ones belong to the return
        try:
            r, _ = interrupted_at(line, run)
        except KeyboardInterrupt:
            assert not seen
            continue
        interrupted += 1
        check = r.check()
        assert r.status is ps.Status.INTERRUPTED
        assert check.error <= 1e-13 and check.feasible and check.value == pytest.approx(r.value, rel=1e-12)
        assert len(r.trace) == r.iterations + 1 and r.trace.value[-1] == r.value
        assert len(seen) == r.iterations or r.value == seen[-1]  # the first: before the callback saw the state
    assert interrupted >= 8


def test_ctrl_c_ends_a_run_and_a_second_one_raises(ctrl_c, rng, monkeypatch):
    evaluations = count()

    def press():
        if next(evaluations) == 12:
            signal.raise_signal(signal.SIGINT)

    f, A = regression(rng)
    r = ps.minimize(Counted(f, press), ps.conv(3 * A), ps.Plain(ps.LineSearch()))
    assert r.status is ps.Status.INTERRUPTED
    assert "Ctrl-C" in str(r)
    evaluations = count()
    monkeypatch.setattr(watchers, "Trace", lambda rows: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        ps.minimize(Counted(f, press), ps.conv(3 * A), ps.Plain(ps.LineSearch()))


def test_sigterm_ends_a_run_like_ctrl_c_where_a_program_says_so(rng):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        f, A = regression(rng)
        stop = {"callback": lambda s: s.iteration == 4 and signal.raise_signal(signal.SIGTERM)}
        r = ps.minimize(f, ps.conv(3 * A), ps.Plain(ps.LineSearch()), **stop)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert r.status is ps.Status.INTERRUPTED and r.iterations == 4


def test_before_the_first_state_an_interruption_is_raised(rng):
    def press():
        raise KeyboardInterrupt

    f, A = regression(rng)
    with pytest.raises(KeyboardInterrupt):
        ps.minimize(Counted(f, press), ps.conv(A))


def test_a_state_that_was_not_complete_is_not_in_the_trace(rng, monkeypatch):
    copied, states = watchers.copied_members, count()

    def press(active):
        if next(states) == 3:
            raise KeyboardInterrupt
        return copied(active)

    monkeypatch.setattr(watchers, "copied_members", press)
    f, A = regression(rng)
    r = ps.minimize(f, ps.conv(A), ps.Plain(ps.LineSearch()))
    assert r.status is ps.Status.INTERRUPTED and r.iterations == 2 and len(r.trace) == 3


def test_ctrl_c_ends_the_executable_paper_which_would_be_wrong_with_a_result_that_is_not_complete(rng):
    evaluations = count()

    def press():
        if next(evaluations) == 2:  # after the first state
            raise KeyboardInterrupt

    f, A = regression(rng)
    with pytest.raises(KeyboardInterrupt):
        finished(ps.minimize(Counted(f, press), ps.conv(3 * A)))


def test_an_interrupted_path_ends_with_the_radius_that_was_interrupted(rng):
    f, A = regression(rng)

    def press():
        if next(evaluations) == 20:
            raise KeyboardInterrupt

    evaluations = count()
    path = ps.path(Counted(f, press), A, radii=[0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    assert 0 < len(path) < 6
    assert [r.status is ps.Status.INTERRUPTED for r in path.results] == [False] * (len(path) - 1) + [True]
    assert list(path.radius) == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0][: len(path)]


# ------------------------------------------------------------------ the time limit


LONG = {
    "Newton steps": (lambda rng: regression(rng, ps.Logistic), Counted, ps.lin, ps.FullyCorrective(several=30), None),
    "corrections": (
        lambda rng: regression(rng, ps.Logistic),
        CountedSmooth,
        ps.lin,
        ps.FullyCorrective(several=30),
        None,
    ),
    "Factors": (matrices, Counted, ps.lin, ps.NormCorrective(several=8), refine.Factors(accuracy=1e-12)),
    "core": (matrices, Counted, lambda A: ps.conv(40 * A), ps.NormCorrective(several=8), refine.Factors(core=200)),
    "Slide": (bumps, Counted, ps.lin, ps.FullyCorrective(), refine.Slide()),
    "Alternating": (tensors, Counted, ps.lin, ps.FullyCorrective(), refine.Alternating(accuracy=0.0)),
    "Prune": (regression, Counted, ps.lin, ps.FullyCorrective(several=30), refine.Prune(share=1.0)),
    "several": (bumps, Counted, ps.lin, ps.FullyCorrective(), [refine.Slide(steps=1)] * 40),
}


@pytest.mark.parametrize("case", LONG)
def test_the_time_limit_is_seen_inside_an_iteration(case, rng, monkeypatch):
    make, counted, wrap, update, moved = LONG[case]
    (f, A), clock = make(rng), 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: clock)

    def tick():  # an evaluation takes a second
        nonlocal clock
        clock += 1.0

    def run(**limit):
        nonlocal clock
        clock = 0.0
        stop = ps.Stop(rgap=None, **limit)
        return ps.minimize(counted(f, tick), wrap(A), update, refine=moved, stop=stop), clock

    free = run(iterations=4)[0]
    lengths = np.diff(free.trace.seconds)
    longest = int(lengths.argmax())
    limit = float(free.trace.seconds[longest] + 0.4 * lengths[longest])  # in the midst of the longest iteration
    r, taken = run(seconds=limit)
    assert r.status is ps.Status.SECONDS and r.iterations == longest + 1
    assert limit <= taken <= limit + 0.3 * lengths[longest]
    check = r.check()
    assert check.error <= 1e-12 and check.feasible
    assert r.value < free.trace.value[longest]  # what was done in time is kept


def test_the_small_problem_of_groups_looks_at_the_clock(rng, monkeypatch):
    from pursuit.linalg import accelerated
    from pursuit.refine import regroup

    steps, clock = count(), 0.0
    plain = accelerated.accelerated_gradient

    def ticking(step, x):
        nonlocal clock
        for y in plain(step, x):
            clock += 1.0
            next(steps)
            yield y

    monkeypatch.setattr(time, "perf_counter", lambda: clock)
    monkeypatch.setattr(regroup, "accelerated_gradient", ticking)
    f, A = groups(rng)
    ps.minimize(f, ps.conv(9 * A), refine=refine.Regroup(accuracy=1e-13), stop=ps.Stop(rgap=None, iterations=1))
    without = next(steps)
    r = ps.minimize(f, ps.conv(9 * A), refine=refine.Regroup(accuracy=1e-13), stop=ps.Stop(seconds=15.0))
    assert r.status is ps.Status.SECONDS
    assert next(steps) - without - 1 <= 20 < without


@pytest.mark.parametrize(("name", "at"), [("GreedyRegressor", 4), ("AtomicRegressor", 5)])
def test_nothing_is_chosen_from_paths_that_ctrl_c_ended(name, at, ctrl_c, rng, monkeypatch):
    estimators = pytest.importorskip("pursuit.estimators")
    X = rng.standard_normal((40, 20))
    y = X[:, :5] @ [5.0, 4.0, 3.0, 2.0, 1.0] + rng.standard_normal(40)
    original, evaluations = ps.LeastSquares.value_and_grad, count()

    def value_and_grad(self, x):
        if next(evaluations) == at:
            signal.raise_signal(signal.SIGINT)
        return original(self, x)

    monkeypatch.setattr(ps.LeastSquares, "value_and_grad", value_and_grad)
    options = {"radius": 9.0} if name == "AtomicRegressor" else {"n_nonzero": 5}
    for kind in ("GreedyRegressor", "GreedyRegressorCV"):
        monkeypatch.setattr(getattr(estimators, kind), "_plain", True)
    model = getattr(estimators, name)(**options, fit_intercept=False).fit(X, y)
    assert next(evaluations) > at and not model.path_.complete  # the last complete model
    evaluations = count()
    with pytest.raises(KeyboardInterrupt):
        getattr(estimators, f"{name}CV")(fit_intercept=False).fit(X, y)


def test_a_path_of_sizes_that_ctrl_c_ends_before_the_first_size_has_nothing_to_return(rng):
    evaluations = count()

    def press():
        if next(evaluations) == 2:
            raise KeyboardInterrupt

    f, A = regression(rng)
    with pytest.raises(KeyboardInterrupt):
        ps.path(Counted(f, press), A, atoms=[5, 6])
