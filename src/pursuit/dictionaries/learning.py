"""The loops of dictionary learning: sweeps over all signals, and batches one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.arguments import quantity
from pursuit.coding.request import Array
from pursuit.dictionaries.signals import Coder, Method, Signals, residuals
from pursuit.dictionaries.updates import Statistics, imputed, rank_one_sweep

MIN_MEAN_USES = 10
"""Online, no atom is replaced before the average atom has been used so often: a chance to be used by then."""
MIN_USE_SHARE = 0.01
"""Online, an atom is replaced that is used less often than this share of the average."""
BLOCK_PASSES = 2
"""Passes of block coordinate descent over the atoms for one coding of all signals."""
EXCHANGE_PERIOD = 2
"""Sweeps from one attempt to exchange atoms to the next."""


class LearningTrace:
    """One row per sweep, or per batch online: columns sweep, objective, error, used, seconds, as arrays.

    `objective` is the mean over signals of 1/2 ||y - D x||^2 + penalty ||x||_1, `error` is ||Y - X D'|| / ||Y||, and
    `used` the number of atoms that some code uses. In a row of a sweep they hold for the dictionary and the codes after
    the sweep; in a row of a batch for the dictionary as it was before it has seen the batch.
    """

    COLUMNS = ("sweep", "objective", "error", "used", "seconds")

    def __init__(self, rows: list[tuple[float, ...]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> Any:
        if name not in LearningTrace.COLUMNS:
            raise AttributeError(f"a trace has the columns {', '.join(LearningTrace.COLUMNS)}; not {name!r}.")
        dtype = np.int64 if name in ("sweep", "used") else np.float64
        return np.array([row[LearningTrace.COLUMNS.index(name)] for row in self.rows], dtype=dtype)

    def __repr__(self) -> str:
        if not self.rows:
            return "LearningTrace(0 rows)"
        (_, objective, error, _, _), (_, end, end_error, used, _) = self.rows[0], self.rows[-1]
        values = f"objective {objective:.6g} to {end:.6g}, error {error:.3g} to {end_error:.3g}"
        return f"LearningTrace({quantity(len(self), 'row')}, {values}, {quantity(used, 'atom')} used)"

    def to_pandas(self) -> Any:
        """The trace as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in LearningTrace.COLUMNS})


@dataclass(frozen=True)
class Fit:
    """A dictionary, codes on it, their residuals y - D x, and the cost of every signal."""

    D: Array
    X: sp.csr_array
    R: Array
    costs: Array

    @property
    def objective(self) -> float:
        """The mean cost of a signal."""
        return float(self.costs.mean()) if len(self.costs) else 0.0


@dataclass(frozen=True)
class Step:
    """Where a run stands: codes after a sweep, or statistics after a batch; `row` is objective, error, used atoms."""

    D: Array
    X: Any
    statistics: Statistics | None
    sweep: int
    row: tuple[float, ...]


def fitted(coder: Coder, signals: Signals, D: Array, X: sp.csr_array) -> Fit:
    """Codes on a dictionary, with what they cost."""
    R = residuals(signals, X, D)
    return Fit(D, X, R, coder.costs(signals, R, X))


def recoded(coder: Coder, signals: Signals, D: Array, old: Fit | None) -> Fit:
    """The better of a new code and the old one, for every signal."""
    new = fitted(coder, signals, D, coder.codes(D, signals))
    if old is None or coder.bounds_error:
        return new
    kept = np.flatnonzero(old.costs < new.costs)
    if not len(kept):
        return new
    source = np.arange(len(signals))
    source[kept] += len(signals)
    new.R[kept], new.costs[kept] = old.R[kept], old.costs[kept]
    return replace(new, X=sp.csr_array(sp.vstack([new.X, old.X], format="csr")[source]))


def uses(X: sp.csr_array) -> Array:
    """The number of codes that use each atom."""
    return np.bincount(X.indices, minlength=X.shape[1])


def summary(signals: Signals, fit: Fit) -> tuple[float, ...]:
    """Objective, relative error and number of used atoms."""
    size, error = (float(np.sqrt(signals.energy(V).sum(dtype=np.float64))) for V in (signals.Y, fit.R))
    return fit.objective, error / size if size else 0.0, int(np.count_nonzero(uses(fit.X)))


def sweep_steps(method: Method, signals: Signals, D: Array, X: sp.csr_array | None, first: int) -> Iterator[Step]:
    """Without end: code all signals, then improve the dictionary. X are codes to start with, or None.

    The objective never rises: a signal keeps its code where the new one is worse, no update raises it, and atoms that
    are in use are exchanged only where it falls. Codes that stop at an error (`tol`) are the exception, since they
    become shorter at the cost of a larger error.
    """
    fit = None if X is None else fitted(method.coder, signals, D, X)
    for sweep in count(first):
        trial = None
        if fit is not None and method.descends and sweep % EXCHANGE_PERIOD == EXCHANGE_PERIOD - 1:
            trial = exchanged(method, signals, fit, sweep)
        fit = improved(method, signals, trial or recoded(method.coder, signals, D, fit))
        D = fit.D
        replace_atoms(method, D, np.flatnonzero(uses(fit.X) == 0), signals, fit.R, sweep)
        yield Step(D, fit.X, None, sweep + 1, summary(signals, fit))


def improved(method: Method, signals: Signals, fit: Fit) -> Fit:
    """A better dictionary for the same supports of codes. Writes to the codes and residuals of `fit`."""
    X = fit.X
    if method.update == "ksvd":
        D, R = np.array(fit.D, order="F"), fit.R
        rank_one_sweep(method, signals, D, X, R)
    else:
        filled, _ = imputed(signals, fit.R)
        D, factors = Statistics.of(filled, X).improve(fit.D, method.penalised, method.nonnegative, BLOCK_PASSES)
        X.data *= factors[X.indices]
        R = residuals(signals, X, D)
    X.eliminate_zeros()
    return Fit(D, X, R, method.coder.costs(signals, R, X))


def exchanged(method: Method, signals: Signals, fit: Fit, sweep: int) -> Fit | None:
    """Signals coded after the least valuable atoms gave way to residuals; None where that does not lower the objective.

    An atom is worth what the error grows by if its weights go to the atom most like it: the sum of its squared weights
    times 1 - (their largest correlation)^2.
    """
    D = np.array(fit.D, order="F")
    G = np.abs(D.T @ D)
    np.fill_diagonal(G, 0)
    worth = np.bincount(fit.X.indices, np.square(fit.X.data), minlength=len(G)) * (1 - np.square(G.max(axis=0)))
    least = np.argsort(worth, kind="stable")[: max(1, len(G) // (5 * sweep))]
    replaced = replace_atoms(method, D, least, signals, fit.R, sweep)
    gone = np.zeros(len(G), bool)
    gone[replaced] = True
    owners = np.repeat(np.arange(len(signals)), np.diff(fit.X.indptr))
    lost = np.bincount(owners[gone[fit.X.indices]], minlength=len(signals)) > 0
    new = recoded(method.coder, signals, D, replace(fit, costs=np.where(lost, np.inf, fit.costs)))
    return new if new.objective < fit.objective else None


def replace_atoms(method: Method, D: Array, atoms: Array, signals: Signals, R: Array, seed: int) -> Array:
    """Put residuals in the place of these atoms of D, large ones more likely; returns the atoms that were replaced.

    A residual is drawn with a probability proportional to its squared norm: an exchange that was tried in vain is not
    tried for ever.
    """

    def residuals(rows: Array) -> Array:
        return R[rows] if signals.W is None else np.where(signals.W[rows] > 0, R[rows], 0)

    return put_residuals(method, D, atoms, signals.energy(R), residuals, seed)


def put_residuals(
    method: Method, D: Array, atoms: Array, energy: Array, residuals: Callable[[Array], Array], seed: int
) -> Array:
    """The same, given the squared norms of all residuals, and a function that gives some of them by number."""
    energy = energy.astype(np.float64)
    number = min(len(atoms), int(np.count_nonzero(energy)))
    if not number:
        return atoms[:0]
    rows = np.random.default_rng(seed).choice(len(energy), number, replace=False, p=energy / energy.sum())
    proposals = residuals(rows)
    if method.nonnegative:
        proposals = np.maximum(proposals, 0)
    norms = np.linalg.norm(proposals, axis=1)
    usable = np.flatnonzero(norms > 0)
    replaced = atoms[: len(usable)]
    D[:, replaced] = (proposals[usable] / norms[usable, None]).T
    return replaced


@dataclass(frozen=True)
class CodedBatch:
    """A batch of signals, coded on a dictionary: what `batch_steps` asks of it."""

    signals: Signals
    fit: Fit

    @classmethod
    def of(cls, method: Method, signals: Signals, D: Array) -> CodedBatch:
        return cls(signals, recoded(method.coder, signals, D, None))

    @property
    def statistics(self) -> Statistics:
        filled, weight = imputed(self.signals, self.fit.R)
        statistics = Statistics.of(filled, self.fit.X)
        return statistics if weight == 1 else statistics * weight

    @property
    def summary(self) -> tuple[float, ...]:
        return summary(self.signals, self.fit)

    def replace_atoms(self, method: Method, D: Array, atoms: Array, seed: int) -> Array:
        return replace_atoms(method, D, atoms, self.signals, self.fit.R, seed)


def batch_steps(
    method: Method,
    passes: Iterator[tuple[int, Iterator[Any]]],
    D: Array,
    statistics: Statistics | None,
    code: Callable[[Method, Any, Array], Any] = CodedBatch.of,
) -> Iterator[Step]:
    """One step per batch (Mairal, Bach, Ponce, Sapiro 2010): code it, add its statistics, improve the dictionary.

    `passes` are the batches of each sweep, with its number; `code` makes a `CodedBatch` of one, or what has the same
    methods. Nothing is promised about the objective: a batch is coded once a sweep, and counts with that code while the
    dictionary changes.
    """
    for sweep, batch in ((sweep, batch) for sweep, batches in passes for batch in batches if len(batch)):
        coded = code(method, batch, D)
        statistics = added(statistics, coded.statistics, method.forgetting)
        D, factors = statistics.improve(D, method.penalised, method.nonnegative)
        statistics = statistics.rescaled(factors)
        mean = float(statistics.uses.mean())
        if mean >= MIN_MEAN_USES:
            rare = np.flatnonzero(statistics.uses < MIN_USE_SHARE * mean)
            replaced = coded.replace_atoms(method, D, rare, statistics.signals)
            statistics = statistics.without(replaced, mean) if len(replaced) else statistics
        yield Step(D, None, statistics, sweep + 1, coded.summary)


def added(old: Statistics | None, new: Statistics, forgetting: float) -> Statistics:
    """The statistics with those of a batch: after n signals, the i-th has the weight (i / n)^forgetting."""
    if old is None:
        return new
    share = old.signals / (old.signals + new.signals)
    return old * float(share**forgetting) + new
