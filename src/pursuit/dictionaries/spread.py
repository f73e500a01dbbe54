"""Signals on a cluster: blocks of a dask array, coded where they are; only sums of their statistics travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit.cluster.workers import add_all, current_client, gathered
from pursuit.coding.request import Array
from pursuit.dictionaries.learning import CodedBatch, put_residuals
from pursuit.dictionaries.signals import Method, Signals
from pursuit.dictionaries.updates import Statistics


@dataclass(frozen=True)
class BlockSums:
    """What a batch must know of its signals; the sums of blocks are those of all their signals."""

    statistics: Statistics
    cost: float
    size: float
    """The sum of the squared entries of the signals."""
    error: float
    """The same of the residuals."""

    def __add__(self, other: BlockSums) -> BlockSums:
        statistics = self.statistics + other.statistics
        return BlockSums(statistics, self.cost + other.cost, self.size + other.size, self.error + other.error)


class SpreadSignals:
    """The rows of a dask array: one batch, whose blocks are coded at the same time."""

    def __init__(self, Y: Any) -> None:
        if Y.ndim != 2:
            raise ValueError(f"Y has shape {Y.shape}; give a matrix whose rows are signals.")
        self.client = current_client(None, "learn of a dask array")
        self.blocks = list(Y.rechunk({1: -1}).to_delayed().ravel())
        self.first = Signals.checked(gathered(self.client, [self.client.compute(self.blocks[0])])[0])

    def __len__(self) -> int:
        return len(self.blocks)

    def passes(self, sweep: int) -> Iterator[SpreadSignals]:
        return iter([self])

    def ask(self, function: Callable[..., Any], D: Array, numbers: list[int], *each: Any) -> list[Any]:
        """Futures of function(signals, D, *e) of the blocks with these numbers; D goes to each worker once."""
        import dask
        from dask.delayed import delayed

        shared, task = delayed(D, traverse=False), delayed(_of_block, pure=False)
        dtype = self.first.Y.dtype
        tasks = [task(self.blocks[i], dtype, shared, function, *e) for i, *e in zip(numbers, *each, strict=True)]
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):  # D is meant to be sent
            return list(self.client.compute(tasks))


@dataclass(frozen=True)
class SpreadBatch:
    """The batch, coded on a dictionary; it has the methods of `CodedBatch`. Only small results stay on the workers."""

    signals: SpreadSignals
    D: Array
    energies: list[Any]
    """Futures of the squared norms of the residuals of each block."""
    sums: BlockSums

    @classmethod
    def of(cls, method: Method, signals: SpreadSignals, D: Array) -> SpreadBatch:
        client, every = signals.client, list(range(len(signals)))
        coded = signals.ask(_code, D, every, [method] * len(every))
        try:
            energies = [client.submit(_entry, pair, 1, pure=False) for pair in coded]
            sums = add_all(client, [client.submit(_entry, pair, 0, pure=False) for pair in coded])
        except BaseException:
            client.cancel(coded)  # Ctrl-C ends the work of the cluster, too
            raise
        return cls(signals, D, energies, sums)

    @property
    def statistics(self) -> Statistics:
        return self.sums.statistics

    @property
    def summary(self) -> tuple[float, ...]:
        sums, size = self.sums, self.sums.size**0.5
        used = int(np.count_nonzero(sums.statistics.uses))
        return sums.cost / max(sums.statistics.signals, 1), sums.error**0.5 / size if size else 0.0, used

    def replace_atoms(self, method: Method, D: Array, atoms: Array, seed: int) -> Array:
        if not len(atoms):
            return atoms
        energies = gathered(self.signals.client, self.energies)
        starts = np.cumsum([0, *map(len, energies)])

        def residuals(rows: Array) -> Array:
            owners = np.searchsorted(starts, rows, side="right") - 1
            blocks = sorted(set(owners.tolist()))
            wanted = [rows[owners == i] - starts[i] for i in blocks]
            asked = self.signals.ask(_residuals, self.D, blocks, [method] * len(blocks), wanted)
            found = np.empty((len(rows), len(self.D)), self.D.dtype)
            for i, part in zip(blocks, gathered(self.signals.client, asked), strict=True):
                found[owners == i] = part
            return found

        return put_residuals(method, D, atoms, np.concatenate(energies), residuals, seed)


def _of_block(block: Any, dtype: Any, D: Array, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(Signals.checked(block, None, dtype), D, *arguments)


def _code(signals: Signals, D: Array, method: Method) -> tuple[BlockSums, Array]:
    batch = CodedBatch.of(method, signals, D)
    R, costs = batch.fit.R, batch.fit.costs
    size, error = (float(signals.energy(V).sum(dtype=np.float64)) for V in (signals.Y, R))
    return BlockSums(batch.statistics, float(costs.sum()), size, error), signals.energy(R)


def _residuals(signals: Signals, D: Array, method: Method, rows: Array) -> Array:
    """Residuals of a few signals; coding them again is cheaper than keeping all."""
    return CodedBatch.of(method, signals.rows(rows), D).fit.R


def _entry(pair: tuple[Any, Any], which: int) -> Any:
    return pair[which]
