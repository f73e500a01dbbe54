"""A range of columns, worked off by a few threads: for kernels and BLAS calls that let go of the interpreter lock."""

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
_most: ContextVar[int] = ContextVar("most", default=1 << 30)


@cache
def processors() -> int:
    """How many threads may run at once: the processors of this process, or fewer where OMP_NUM_THREADS says so."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(mine, int(asked)) if asked.isdigit() and int(asked) > 0 else mine


def _forget() -> None:
    global _pool, _lock  # threads do not survive a fork: a child starts its own
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _begin(work: Callable[[], None], helpers: int) -> list[Future[None]]:
    """`work` in so many threads of the pool, in the context of the caller; in fewer where no more can be started.

    One pool for the process: starting threads costs more than a small product.
    """
    global _pool  # noqa: PLW0603  made when first needed: most programs never are
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, processors() - 1), "pursuit")
    futures: list[Future[None]] = []
    while len(futures) < helpers:
        try:
            futures.append(_pool.submit(copy_context().run, work))
        except RuntimeError:  # can't start new thread: helpers are welcome, not needed
            break
    return futures


def _end(futures: list[Future[None]]) -> None:
    """Wait for those that have begun; the others, whose threads are busy elsewhere, have nothing left to do."""
    begun = [future for future in futures if not future.cancel()]
    wait(begun)
    for future in begun:
        future.result()


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Within this context, `spread` uses no more than so many threads."""
    token = _most.set(threads)
    try:
        yield
    finally:
        _most.reset(token)


def allowed_threads() -> int:
    """How many threads a kernel may use here."""
    return min(processors(), _most.get())


def spread(work: Callable[[int, int], None], n: int, grain: int) -> None:
    """Call work(start, stop) on pieces of `grain` that make up range(n), in threads where there are several pieces.

    Whoever is free takes the next piece, so that a processor that others keep busy holds nobody up.

    >>> seen = [0] * 10
    >>> def mark(start, stop):
    ...     seen[start:stop] = [1] * (stop - start)
    >>> spread(mark, 10, 3)
    >>> sum(seen)
    10
    """
    next_piece, allowed = count(), allowed_threads()
    helpers = max(0, min(allowed, -(-n // grain)) - 1)
    stopped = False

    def run() -> None:
        nonlocal stopped
        with at_most(max(1, allowed // (helpers + 1))):  # for what the pieces spread themselves
            try:
                while not stopped and (start := grain * next(next_piece)) < n:
                    work(start, min(start + grain, n))
            except BaseException:
                stopped = True
                raise

    futures = _begin(run, helpers)
    try:
        run()
    finally:
        _end(futures)


class _SingleThreadedBlas:
    """Keeps BLAS to one thread inside.

    Threads that share a product of a few thousand numbers wait for each other longer than they work, on a busy machine
    a hundred times as long. Entering and leaving costs microseconds. The setting is that of the process, so only its
    main thread changes it: two at a time could leave it changed.
    """

    def __init__(self) -> None:
        self._inside = 0
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        if current_thread() is not main_thread():
            return
        self._inside += 1
        if self._inside == 1:
            self._before = [(blas, threads) for blas in _libraries() if (threads := blas.get_num_threads()) != 1]
            for blas, _ in self._before:
                blas.set_num_threads(1)

    def __exit__(self, *exception: object) -> None:
        if current_thread() is not main_thread():
            return
        self._inside -= 1
        if self._inside == 0:
            for blas, threads in self._before:
                blas.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    return [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]


single_threaded_blas = _SingleThreadedBlas()
