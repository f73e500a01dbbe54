"""Threads: `in_parallel` for NumPy and BLAS calls that release the interpreter lock, and BLAS kept to one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import count
from threading import Lock, current_thread, main_thread
from typing import Any

from threadpoolctl import ThreadpoolController

_pool: ThreadPoolExecutor | None = None
_lock = Lock()
_limit: ContextVar[int] = ContextVar("limit", default=1 << 30)


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


def _start_helpers(work: Callable[[], None], helpers: int, futures: list[Future[None]]) -> None:
    """Run `work` in up to `helpers` threads of the pool, in the context of the caller, and add them to `futures`.

    The process has one pool, because starting a thread costs more than a small product. It is created at the first
    call: most programs never need it.
    """
    global _pool  # noqa: PLW0603
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, processors() - 1), "pursuit")
    while len(futures) < helpers:
        try:
            futures.append(_pool.submit(copy_context().run, work))
        except RuntimeError:  # the system starts no more threads: the work is done with fewer
            break


def _wait_for_helpers(futures: list[Future[None]]) -> None:
    """Wait for the helpers that have started, and raise their exceptions; cancel the others, as no work is left."""
    started = [future for future in futures if not future.cancel()]
    wait(started)
    for future in started:
        future.result()


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


def in_parallel(work: Callable[[int, int], None], n: int, size: int) -> None:
    """Call work(start, stop) on consecutive blocks of range(n), each of the given size, in several threads.

    A thread that has finished its block takes the next one, so a thread on a busy processor does not delay the others.

    >>> seen = [0] * 10
    >>> def mark(start, stop):
    ...     seen[start:stop] = [1] * (stop - start)
    >>> in_parallel(mark, 10, 3)
    >>> sum(seen)
    10
    """
    next_block, allowed = count(), allowed_threads()
    helpers = max(0, min(allowed, -(-n // size)) - 1)
    stopped = False

    def run() -> None:
        nonlocal stopped
        with at_most(max(1, allowed // (helpers + 1))):  # for calls of in_parallel inside `work`
            try:
                while not stopped and (start := size * next(next_block)) < n:
                    work(start, min(start + size, n))
            except BaseException:
                stopped = True
                raise

    futures: list[Future[None]] = []
    try:
        _start_helpers(run, helpers, futures)
        run()
        _wait_for_helpers(futures)
    except BaseException:  # an interruption, perhaps while waiting: no helper shall go on when the caller does
        stopped = True
        wait([future for future in futures if not future.cancel()])
        raise


class _SingleThreadedBlas:
    """Keeps BLAS to one thread inside.

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
