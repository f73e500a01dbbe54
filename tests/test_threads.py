"""Threads of BLAS and of our own, and of the caller; copies of what a run is made of."""

import copy
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from codes import run_python
from laws import sets
from threadpoolctl import ThreadpoolController

import pursuit as ps
from pursuit import threads
from pursuit.atoms import matrices
from pursuit.threads import at_most, in_parallel, single_threaded_blas


def blas():
    """Threads of the libraries of NumPy and SciPy; others, such as that of faiss, may be loaded later."""
    return [lib.get_num_threads() for lib in threads._libraries()]


@pytest.fixture
def two():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield blas()


def test_blas_has_one_thread_inside_and_as_many_as_before_outside_even_after_an_error(two):
    def fail():
        with single_threaded_blas, single_threaded_blas:
            assert set(blas()) == {1}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert blas() == two


def test_small_matrices_are_factored_by_one_thread(two, monkeypatch, rng):
    used = []

    def watch(module, name):
        original = getattr(module, name)

        def watched(*arguments, **options):
            used.append(max(blas()))
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, watched)

    for name in ("eigh", "svd", "qr", "lstsq", "solve", "eigvalsh", "inv", "cholesky"):
        watch(np.linalg, name)
    watch(matrices, "eigh")
    V, Y = rng.standard_normal((8, 30)), rng.standard_normal((9, 8))
    rank_one = ps.Dictionary(V[:, None, :] * V[None, :, :])
    sets = [ps.RankOne((9, 8)), ps.Orthogonal((9, 8)), ps.Spectrahedron(8), ps.Fantope(8, 3)]
    for update in (None, ps.Away()):
        ps.minimize(ps.LogDet(), ps.conv(rank_one), update, stop=ps.Stop(iterations=3))
        for A in sets:
            ps.minimize(ps.LeastSquares(Y[: A.shape[0]]), ps.conv(A), update, stop=ps.Stop(iterations=3))
    assert len(used) > 50 and set(used) == {1}


def test_atoms_slide_with_one_thread_of_blas(two):
    used, t = [], np.linspace(0.0, 1.0, 20)

    def bump(theta):
        used.append(max(blas()))
        return np.exp(-50.0 * (t - theta[0]) ** 2)

    A = ps.Parametric(bump, [(0.0, 1.0)])
    bump(np.zeros(1))
    outside, used[:] = used[-1], []
    ps.minimize(ps.LeastSquares(np.sin(9.0 * t)), ps.lin(A), stop=ps.Stop(iterations=3))
    assert outside == 2 and used.count(1) > used.count(2)  # L-BFGS factors small matrices between two questions


def test_an_interruption_on_the_way_in_leaves_blas_as_it_was(two, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threads, "_libraries", interrupt)
        with pytest.raises(KeyboardInterrupt), single_threaded_blas:
            pass
    assert blas() == two
    with single_threaded_blas:
        assert set(blas()) == {1}
    assert blas() == two


def test_other_threads_leave_blas_as_it_is(two):
    inside, leave = threading.Barrier(2), threading.Event()

    def stay():
        with single_threaded_blas:
            inside.wait()
            leave.wait()

    other = threading.Thread(target=stay)
    other.start()
    inside.wait()
    with single_threaded_blas:
        assert set(blas()) == {1}
    assert blas() == two
    leave.set()
    other.join()
    assert blas() == two


def test_work_is_spread_over_no_more_threads_than_allowed():
    seen = set()
    with at_most(1):
        in_parallel(lambda start, stop: seen.add(threading.get_ident()), 100, 1)
    assert seen == {threading.get_ident()}


def test_nobody_goes_on_after_an_error_and_it_comes_out(monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 4)
    begun, ended, failed = [], [], threading.Event()

    def work(start, stop):
        begun.append(start)
        if start == 3:
            failed.set()
            raise ZeroDivisionError
        if start > 3:
            assert failed.wait(5)
        ended.append(start)

    with pytest.raises(ZeroDivisionError):
        in_parallel(work, 1000, 1)
    assert len(begun) == len(ended) + 1  # nobody works any more
    assert len(begun) <= 3 + 2 * 4


def test_threads_have_the_callers_context_and_share_what_is_allowed():
    states, allowed, both = [], [], threading.Barrier(2)

    def work(start, stop):
        both.wait(5)
        states.append(np.geterr()["over"])
        allowed.append(threads.allowed_threads())

    with np.errstate(over="ignore"), at_most(2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "processors", lambda: 2)
        in_parallel(work, 2, 1)
    assert states == ["ignore", "ignore"]
    assert allowed == [1, 1]


def test_where_no_thread_can_be_started_the_work_is_done_all_the_same(monkeypatch):
    class Full:
        def submit(self, *work):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_pool", Full())
    monkeypatch.setattr(threads, "processors", lambda: 4)
    done = []
    in_parallel(lambda start, stop: done.append(start), 10, 1)
    assert sorted(done) == list(range(10))


def test_an_interruption_while_waiting_waits_for_the_block_that_a_helper_works_on(monkeypatch):
    main, began, waited, done = threading.get_ident(), threading.Event(), threading.Event(), []
    wait = threads.wait

    def interrupted(futures):
        if not waited.is_set():
            waited.set()
            raise KeyboardInterrupt
        return wait(futures)

    def work(start, stop):
        if threading.get_ident() == main:
            began.wait(5)  # so that the helper has the other block
        else:
            began.set()
            waited.wait(5)
        done.append(start)

    monkeypatch.setattr(threads, "wait", interrupted)
    monkeypatch.setattr(threads, "processors", lambda: 2)
    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, 2, 1)
    assert sorted(done) == [0, 1]


# ------------------------------------------------------------------ runs in several threads, and copies


def quartic(x):
    return float(((x - 1.0) ** 4).sum())


def quartic_slope(x):
    return 4.0 * (x - 1.0) ** 3


def bits(r):
    """All that a run computed, as bytes."""
    numbers = [r.x, r.weights, r.trace.value, r.trace.gap, np.array([r.value, r.lower, r.gap])]
    return b"".join(np.ascontiguousarray(each).tobytes() for each in numbers), [repr(a.source) for a in r.atoms]


def problems(rng):
    """Objectives and domains, of each kind of set: hulls, spans, and sums with cones."""
    for A in sets(rng):
        y = rng.standard_normal(A.shape)
        yield ps.LeastSquares(y), ps.conv(1.5 * A)
        yield ps.Huber(y, 0.5), ps.conv(A) + ps.lin(A)
    D = rng.standard_normal((20, 30))
    y, A = rng.standard_normal(20), ps.Dictionary(D, signed=True)
    yield ps.Logistic(np.sign(y)), ps.conv(2.0 * A)
    yield ps.Poisson(np.arange(20) % 5), ps.cone(A | ps.SignedBasis(20))
    yield ps.LeastSquares(y, weights=np.arange(20) + 1.0), ps.lin(A.screened())
    yield ps.Quadratic(D @ D.T, y), ps.conv(A) + ps.cone(ps.Simplex(20))
    yield ps.Smooth(quartic, quartic_slope), ps.conv(A)
    yield ps.Multinomial(np.arange(6) % 3), ps.conv(ps.Dictionary(rng.standard_normal((6, 3, 9)), signed=True))
    gauss = ps.families.Gaussian(np.linspace(0, 1, 20), 0.1)
    yield ps.LeastSquares(y), ps.cone(ps.Parametric(gauss, [(0, 1)]))


def solve(problem):
    return ps.minimize(*problem, stop=ps.Stop(iterations=6))


def test_runs_in_two_threads_give_the_bits_of_one_after_the_other(rng):
    given = list(problems(rng))
    alone = [bits(solve(problem)) for problem in given]
    with ThreadPoolExecutor(2) as pool:  # every problem twice, next to itself: they share sets and objectives
        together = list(pool.map(solve, [problem for problem in given for _ in range(2)]))
    assert [bits(r) for r in together] == [each for each in alone for _ in range(2)]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_copies_of_objectives_domains_and_results_give_the_same_bits(copied, rng):
    for f, domain in problems(rng):
        expected = solve((f, domain))
        r = copied(solve((copied(f), copied(domain))))
        assert bits(r) == bits(expected)
        assert r.check() == expected.check()
        assert repr((r.f, r.domain, r.update, r.status)) == repr((f, domain, expected.update, expected.status))
        continued = ps.minimize(f, domain, start=r, stop=ps.Stop(iterations=1))
        assert np.isclose(continued.trace.value, r.value, rtol=1e-9, atol=1e-9).any()


def test_an_interrupt_while_the_caller_waits_ends_the_helpers_first(ctrl_c, monkeypatch):
    monkeypatch.setattr(threads, "processors", lambda: 2)
    begun, ended, caller, both = [], [], threading.get_ident(), threading.Barrier(2)
    pause = threading.Event()  # never set: a wait is a pause

    def work(start, stop):
        begun.append(start)
        both.wait(5)
        if threading.get_ident() != caller:
            signal.pthread_kill(caller, signal.SIGINT)
            if any(threads.stop_flag()[0] or pause.wait(0.01) for _ in range(1000)):
                ended.append(start)

    with pytest.raises(KeyboardInterrupt):
        in_parallel(work, 2, 1)
    assert len(begun) == 2
    assert len(ended) == 1


INTERRUPTED = """
import faulthandler, os, signal, threading, time
import numpy as np
import pursuit as ps
from pursuit.threads import single_threaded_blas

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
faulthandler.dump_traceback_later(120, exit=True)
rng = np.random.default_rng(0)
D, Y = rng.standard_normal((1000, 1000)), rng.standard_normal((2000, 1000))
wide, few = rng.standard_normal((1000, 4000)), rng.standard_normal((2, 1000))
long = {  # most would take minutes
    "omp": lambda: ps.encode(D, Y, atoms=1000),
    "nnomp": lambda: ps.encode(D, Y, atoms=1000, method="nnomp", gram=gram),
    "weights": lambda: ps.encode(D, Y, atoms=1000, method="ols", weights=np.ones_like(Y)),
    "alone": lambda: [ps.encode(wide, few, atoms=800) for _ in range(100)],
    "one thread": lambda: ps.encode(D, Y, atoms=1000, n_jobs=1),
}
gram = D.T @ D
expected = ps.encode(D, Y[:9], atoms=7)
for name, call in long.items():
    try:  # whenever the signal comes, it comes in here
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        call()
        print(name, "was not interrupted")
    except KeyboardInterrupt:
        pass
    codes = ps.encode(D, Y[:9], atoms=7)
    for _ in range(100):  # a thread that is left running uses the processor in every interval
        before = time.process_time()
        time.sleep(0.1)
        if time.process_time() - before < 0.05:
            break
    else:
        print(name, "left a thread running")
    if single_threaded_blas._inside or (codes != expected).nnz:
        print(name, "left a trace")
"""


def test_ctrl_c_ends_encode_and_leaves_nothing_behind():
    assert run_python(INTERRUPTED) == ""
