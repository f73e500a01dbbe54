"""Threads: `in_parallel` for NumPy and BLAS calls that release the interpreter lock, and BLAS kept to one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ContextDecorator, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import count
from threading import Lock, current_thread, main_thread
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

Array = np.ndarray

_pool: ThreadPoolExecutor | None = None
_lock = Lock()
_limit: ContextVar[int] = ContextVar("limit", default=1 << 30)
_stop: ContextVar[Array] = ContextVar("stop", default=np.zeros(1, np.int32))  # noqa: B039 (never written to)


@cache
def processors() -> int:
    """The number of processors that this process may use, at most OMP_NUM_THREADS where that is set."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    setting = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(setting)) if setting.isdigit() and int(setting) > 0 else available


def _reset_after_fork() -> None:
    global _pool, _lock  # threads do not survive a fork: the child starts new ones
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _start_helper(work: Callable[[], None]) -> Future[None] | None:
    """Run `work` in a thread of the pool, in the context of the caller; None if the system starts no more threads.

    The process has one pool, because starting a thread costs more than a small product. It is created at the first
    call: most programs never need it.
    """
    global _pool  # noqa: PLW0603
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, processors() - 1), "pursuit")
    try:
        return _pool.submit(copy_context().run, work)
    except RuntimeError:
        return None


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Within this context, `in_parallel` uses at most this many threads."""
    token = _limit.set(threads)
    try:
        yield
    finally:
        _limit.reset(token)


def allowed_threads() -> int:
    """The number of threads that a kernel may use in this context."""
    return min(processors(), _limit.get())


def stop_flag() -> Array:
    """One number, not 0 once the results of the `in_parallel` that this thread works for are no longer wanted."""
    return _stop.get()


def in_parallel(work: Callable[[int, int], None], n: int, size: int) -> None:
    """Call work(start, stop) on consecutive blocks of range(n), each of the given size, in several threads.

    A thread that has finished its block takes the next one, so a thread on a busy processor does not delay the others.
    After an exception, Ctrl-C included, `stop_flag` is set and no thread takes another block. The exception comes out
    when all threads have ended.

    >>> seen = [0] * 10
    >>> def mark(start, stop):
    ...     seen[start:stop] = [1] * (stop - start)
    >>> in_parallel(mark, 10, 3)
    >>> sum(seen)
    10
    """
    next_block, allowed, stop = count(), allowed_threads(), np.zeros(1, np.int32)
    helpers = max(0, min(allowed, -(-n // size)) - 1)
    problems: list[BaseException] = []
    futures: list[Future[None]] = []

    def end(problem: BaseException) -> None:
        problems.append(problem)  # the first is the cause: others may come of the flag
        stop[0] = 1

    def run() -> None:
        _limit.set(max(1, allowed // (helpers + 1)))  # for calls of in_parallel inside `work`
        _stop.set(stop)
        try:
            while not stop[0] and (start := size * next(next_block)) < n:
                work(start, min(start + size, n))
        except BaseException as problem:
            end(problem)

    def wait_for_helpers() -> None:
        wait([future for future in futures if not future.cancel()])  # no work is left for those that have not begun

    try:
        while len(futures) < helpers and (future := _start_helper(run)):
            futures.append(future)
        copy_context().run(run)
        if futures:
            wait_for_helpers()
    except BaseException as problem:
        end(problem)
    while any(future.running() for future in futures):  # after an interrupt in the lines above
        try:
            wait_for_helpers()
        except BaseException as problem:
            end(problem)
    if problems:
        raise problems[0]


class _SingleThreadedBlas(ContextDecorator):
    """Keeps BLAS to one thread inside: a context, and a decorator.

    Threads that share a product of a few thousand numbers spend most of the time waiting for each other; on a busy
    machine the product takes a hundred times as long. Entering and leaving costs microseconds. The setting belongs to
    the process, so only the main thread changes it: two threads that set and restore it could leave it changed.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        if current_thread() is not main_thread():
            return
        self._inside += 1
        try:
            if self._inside == 1:
                self._before = [(blas, threads) for blas in _libraries() if (threads := blas.get_num_threads()) != 1]
                for blas, _ in self._before:
                    blas.set_num_threads(1)
        except BaseException:  # an interruption: `with` does not call __exit__
            self.__exit__()
            raise

    def __exit__(self, *exception: object) -> None:
        if current_thread() is not main_thread():
            return
        self._inside -= 1
        if self._inside == 0:
            before, self._before = self._before, []
            for blas, threads in before:
                blas.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    return [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]


single_threaded_blas = _SingleThreadedBlas()

SMALL_SIDE = 256
"""Rows up to which a matrix is factored by one thread."""


def threads_for(rows: int) -> AbstractContextManager[None]:
    """The context in which to factor a matrix of this many rows: one thread of BLAS where it is small."""
    return single_threaded_blas if rows <= SMALL_SIDE else nullcontext()
