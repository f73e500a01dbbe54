"""Threads of BLAS and of our own."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from pursuit import _threads
from pursuit._threads import at_most, in_parallel, single_threaded_blas


def blas():
    return [lib.get_num_threads() for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]


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


def test_work_that_is_spread_may_spread_its_own():
    done = []

    def inner(start, stop):
        done.extend(range(start, stop))

    in_parallel(lambda start, stop: [in_parallel(inner, 50, 1) for _ in range(start, stop)], 20, 1)
    assert sorted(done) == sorted(20 * list(range(50)))


def test_nobody_goes_on_after_an_error_and_it_comes_out():
    seen = []

    def work(start, stop):
        seen.append(start)
        if start == 3:
            raise ZeroDivisionError
        gate.wait(0.05)

    gate = threading.Event()
    with pytest.raises(ZeroDivisionError):
        in_parallel(work, 1000, 1)
    count = len(seen)
    gate.wait(0.1)
    assert len(seen) == count < 1000


def test_threads_have_the_callers_context_and_share_what_is_allowed():
    states, allowed, both = [], [], threading.Barrier(2)

    def work(start, stop):
        both.wait(5)
        states.append(np.geterr()["over"])
        allowed.append(_threads.allowed_threads())

    with np.errstate(over="ignore"), at_most(2), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_threads, "processors", lambda: 2)
        in_parallel(work, 2, 1)
    assert states == ["ignore", "ignore"]
    assert allowed == [1, 1]


def test_where_no_thread_can_be_started_the_work_is_done_all_the_same(monkeypatch):
    class Full:
        def submit(self, *work):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_threads, "_pool", Full())
    monkeypatch.setattr(_threads, "processors", lambda: 4)
    done = []
    in_parallel(lambda start, stop: done.append(start), 10, 1)
    assert sorted(done) == list(range(10))
