"""Values that the workers of a cluster hold, and functions of all of them at once.

A value is the result of a task, so the scheduler knows how it is made. When a worker dies, another one makes the value
again. A function does not go through the scheduler's list of tasks, which takes 10 to 20 ms: it is sent to the workers
directly, which takes 3 ms. Where a worker does not answer, or no longer holds the value, the function becomes a task
that waits until the value has been made again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from pursuit.arguments import describe

ATTEMPTS = 5
"""How often a function is sent again, as a task, to values whose workers die while they answer."""
POLL_SECONDS = 0.5
"""Seconds without an answer after which the scheduler is asked whether the worker is still there: a connection to one
that is gone is tried for 30 seconds."""
FAN_IN = 8
"""Values that one task of a reduction adds."""


def current_client(client: Any, name: str) -> Any:
    """The given client of dask.distributed, or the current one; `name` is what asks for it."""
    try:
        from distributed import Client, default_client
    except ImportError:
        raise ImportError(f"{name} needs dask.distributed; pip install distributed.") from None
    if client is None:
        try:
            return default_client()
        except ValueError:
            pass
    if not isinstance(client, Client):
        raise TypeError(f"{name} needs a dask client; start one with distributed.Client().")
    return client


def is_dask_array(a: Any) -> bool:
    """Whether `a` is a dask array; dask is not imported for that."""
    return type(a).__module__.startswith("dask.array") and hasattr(a, "to_delayed")


def check_functions(functions: Any, name: str, what: str) -> None:
    """Refuse an argument that is no list of functions; `what` says what they return."""
    if not isinstance(functions, Sequence) or not all(map(callable, functions)):
        raise TypeError(f"{name} is {describe(functions)}; give functions that return {what}.")
    if not functions:
        raise ValueError(f"{name} is empty; give at least one function that returns {what}.")


class WorkerValues:
    """Values on the workers of a cluster, one for each task, spread evenly.

    Parameters
    ----------
    client : distributed.Client
    tasks : sequence of functions without arguments, or of dask's delayed objects
        They make the values, and make them again after a worker has died: they must give the same each time.
    """

    def __init__(self, client: Any, tasks: Sequence[Any]) -> None:
        self.client = client
        workers = sorted(client.nthreads())
        if not workers:
            raise ValueError("the cluster of the client has no workers; add some before work is spread over them.")
        self.futures = []
        for i, task in enumerate(tasks):
            place = {"workers": [workers[i * len(workers) // len(tasks)]], "allow_other_workers": True}
            delayed = hasattr(task, "dask")
            self.futures.append(client.compute(task, **place) if delayed else client.submit(task, **place, pure=False))
        self._places: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.futures)

    def map(self, function: Callable[..., Any], which: Sequence[int], *arguments: Any) -> list[Any]:
        """function(value, *arguments) of the values with these numbers, computed where they are."""
        futures = [self.futures[i] for i in which]
        answers = self.client.sync(self._directly, futures, function, arguments) if self._places else {}
        late = [future for future in futures if future.key not in answers]
        if late:
            keys = [future.key for future in late]
            answers.update(zip(keys, self._as_tasks(late, function, arguments), strict=True))
            holders = self.client.who_has(self.futures)
            self._places = {key: workers[0] for key, workers in holders.items() if workers}
        return [answers[future.key] for future in futures]

    async def _directly(self, futures: list[Any], function: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """The answers of the workers that hold the values and are alive, by key."""
        groups: dict[str, list[str]] = defaultdict(list)
        for future in futures:
            if future.key in self._places:
                groups[self._places[future.key]].append(future.key)

        async def ask(worker: str, keys: list[str]) -> dict[str, Any]:
            reply = asyncio.ensure_future(self.client.run(_answer, keys, function, arguments, workers=[worker]))
            try:
                while not (await asyncio.wait([reply], timeout=POLL_SECONDS))[0]:
                    holders = await self.client.scheduler.who_has(keys=keys)
                    if not any(worker in places for places in holders.values()):
                        return {}
                answers, problem = reply.result()[worker]
            except OSError:  # the worker is gone
                return {}
            finally:
                reply.cancel()
            if problem is not None:
                raise problem
            return dict(answers)

        parts = await asyncio.gather(*(ask(worker, keys) for worker, keys in groups.items()))
        return {key: answer for part in parts for key, answer in part.items()}

    def _as_tasks(self, futures: list[Any], function: Any, arguments: tuple[Any, ...]) -> list[Any]:
        """The answers by tasks, which wait for values that are being made again."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        for remaining in reversed(range(ATTEMPTS)):
            tasks = [self.client.submit(function, future, *arguments, pure=False) for future in futures]
            try:
                return gathered(self.client, tasks)
            except (KilledWorker, FutureCancelledError, OSError):
                if not remaining:
                    raise
        raise AssertionError("unreachable")


async def _answer(
    keys: list[str], function: Any, arguments: tuple[Any, ...], dask_worker: Any = None
) -> tuple[dict[str, Any], Exception | None]:
    """Runs on a worker: the answers for the values that it holds, and the error that one of them raised."""

    def compute() -> tuple[dict[str, Any], Exception | None]:
        answers = {}
        for key in keys:
            if key in dask_worker.data:
                try:
                    answers[key] = function(dask_worker.data[key], *arguments)
                except Exception as problem:
                    return answers, problem
        return answers, None

    return await asyncio.get_running_loop().run_in_executor(None, compute)


def gathered(client: Any, futures: list[Any]) -> list[Any]:
    """The results of futures; after an exception, Ctrl-C included, those that have not run are cancelled."""
    try:
        results: list[Any] = client.gather(futures)
    except BaseException:
        client.cancel(futures)
        raise
    return results


def add_all(client: Any, futures: list[Any]) -> Any:
    """The sum of the results, in an order that depends on their number only; the cluster adds all but the last few."""
    while len(futures) > FAN_IN:
        groups = [futures[start : start + FAN_IN] for start in range(0, len(futures), FAN_IN)]
        futures = [client.submit(add, group, pure=False) for group in groups]
    return add(gathered(client, futures))


def add(terms: Sequence[Any]) -> Any:
    """The sum of the terms, from the first to the last."""
    return reduce(lambda a, b: a + b, terms)
