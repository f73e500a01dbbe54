"""Signals on a cluster: blocks of a dask array, coded where they are; only sums of their statistics travel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from pursuit.cluster.workers import add_all, current_client, gathered
from pursuit.coding.request import Array
from pursuit.dictionaries.learning import Fit, put_residuals
from pursuit.dictionaries.signals import LearningPlan, Signals
from pursuit.dictionaries.updates import Statistics


@dataclass(frozen=True)
class BlockSums:
    """Statistics, costs and squared norms of the signals of a block; they add up to those of all signals."""

    statistics: Statistics
    cost: float
    size: float
    """The sum of the squared entries of the signals."""
    error: float
    """The same of the residuals."""

    def __add__(self, other: BlockSums) -> BlockSums:
        statistics = self.statistics + other.statistics
        return BlockSums(statistics, self.cost + other.cost, self.size + other.size, self.error + other.error)


class DistributedSignals:
    """The rows of a dask array: one batch, whose blocks are coded at the same time."""

    def __init__(self, Y: Any) -> None:
        if Y.ndim != 2:
            raise ValueError(f"Y has shape {Y.shape}; give a matrix whose rows are signals.")
        self.client = current_client(None, "learn of a dask array")
        self.blocks = list(Y.rechunk({1: -1}).to_delayed().ravel())
        self.first = Signals.checked(gathered(self.client, [self.client.compute(self.blocks[0])])[0])

    def __len__(self) -> int:
        return len(self.blocks)

    def batches(self, sweep: int) -> Iterator[DistributedSignals]:
        return iter([self])

    def submit(self, function: Callable[..., Any], D: Array, numbers: list[int], *arguments: Any) -> list[Any]:
        """Futures of function(signals, D, *arguments of the block) of the blocks with these numbers.

        `arguments` are lists with an entry for each block. D goes to each worker once.
        """
        import dask
        from dask.delayed import delayed

        shared, task, dtype = delayed(D, traverse=False), delayed(_of_block, pure=False), self.first.Y.dtype
        tasks = [task(self.blocks[i], dtype, shared, function, *a) for i, *a in zip(numbers, *arguments, strict=True)]
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}):  # D is meant to be sent
            return list(self.client.compute(tasks))


@dataclass(frozen=True)
class DistributedFit:
    """The batch, coded on a dictionary: what `batch_steps` asks of a `Fit`. Only small results leave the workers."""

    signals: DistributedSignals
    D: Array
    energies: list[Any]
    """Futures of the squared norms of the residuals of each block."""
    sums: BlockSums

    @classmethod
    def of(cls, plan: LearningPlan, signals: DistributedSignals, D: Array) -> DistributedFit:
        client, numbers = signals.client, list(range(len(signals)))
        pairs = signals.submit(_code, D, numbers, [plan] * len(numbers))
        try:
            energies = [client.submit(itemgetter(1), pair, pure=False) for pair in pairs]
            sums = add_all(client, [client.submit(itemgetter(0), pair, pure=False) for pair in pairs])
        except BaseException:
            client.cancel(pairs)  # Ctrl-C ends the work of the cluster, too
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

    def replace_atoms(self, plan: LearningPlan, D: Array, atoms: Array, seed: int) -> Array:
        """Put residuals in the place of these atoms of D; returns the atoms that were replaced."""
        if not len(atoms):
            return atoms
        client = self.signals.client
        energies = gathered(client, self.energies)
        starts = np.cumsum([0, *map(len, energies)])

        def read_residuals(rows: Array) -> Array:
            owners = np.searchsorted(starts, rows, side="right") - 1
            blocks = sorted(set(owners.tolist()))
            places = [rows[owners == i] - starts[i] for i in blocks]
            futures = self.signals.submit(_residuals, self.D, blocks, [plan] * len(blocks), places)
            residuals = np.empty((len(rows), len(self.D)), self.D.dtype)
            for i, part in zip(blocks, gathered(client, futures), strict=True):
                residuals[owners == i] = part
            return residuals

        return put_residuals(plan, D, atoms, np.concatenate(energies), read_residuals, seed)


def _of_block(block: Any, dtype: Any, D: Array, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(Signals.checked(block, None, dtype), D, *arguments)


def _code(signals: Signals, D: Array, plan: LearningPlan) -> tuple[BlockSums, Array]:
    fit = Fit.of(plan, signals, D)
    size, error = (float(signals.energy(V).sum(dtype=np.float64)) for V in (signals.Y, fit.R))
    return BlockSums(fit.statistics, float(fit.costs.sum()), size, error), signals.energy(fit.R)


def _residuals(signals: Signals, D: Array, plan: LearningPlan, rows: Array) -> Array:
    """Residuals of a few signals; coding them again is cheaper than keeping all."""
    return Fit.of(plan, signals.rows(rows), D).R
