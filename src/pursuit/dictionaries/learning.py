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
from pursuit.dictionaries.signals import LearningPlan, Signals, compute_residuals
from pursuit.dictionaries.updates import Statistics, impute, rank_one_sweep
from pursuit.run.trace import Trace

MIN_MEAN_USES = 10
"""Online, no atom is replaced before the average atom has been used this often."""
MIN_USE_SHARE = 0.01
"""Online, an atom is replaced that is used less often than this share of the average."""
BLOCK_PASSES = 2
"""Passes of block coordinate descent over the atoms for one coding of all signals."""
EXCHANGE_PERIOD = 2
"""Sweeps from one attempt to exchange atoms to the next."""


class LearningTrace(Trace):
    """One row per sweep, or per batch online: columns sweep, objective, error, used, seconds, as arrays.

    `objective` is the mean over signals of 1/2 ||y - D x||^2 + penalty ||x||_1, `error` is ||Y - X D'|| / ||Y||, and
    `used` the number of atoms that some code uses. In a row of a sweep they hold for the dictionary and the codes after
    the sweep; in a row of a batch for the dictionary as it was before it has seen the batch.
    """

    COLUMNS = ("sweep", "objective", "error", "used", "seconds")

    def __repr__(self) -> str:
        if not self.rows:
            return "LearningTrace(0 rows)"
        (_, objective, error, _, _), (_, end, end_error, used, _) = self.rows[0], self.rows[-1]
        values = f"objective {objective:.6g} to {end:.6g}, error {error:.3g} to {end_error:.3g}"
        return f"LearningTrace({quantity(len(self), 'row')}, {values}, {quantity(used, 'atom')} used)"


@dataclass(frozen=True)
class Fit:
    """Signals, a dictionary, codes on it, their residuals y - D x, and the cost of every signal."""

    signals: Signals
    D: Array
    X: sp.csr_array
    R: Array
    costs: Array

    @classmethod
    def of(cls, plan: LearningPlan, signals: Signals, D: Array, X: sp.csr_array | None = None) -> Fit:
        """Signals coded on a dictionary, with new codes unless there are some."""
        X = plan.encode(D, signals) if X is None else X
        R = compute_residuals(signals, X, D)
        return cls(signals, D, X, R, plan.costs(signals, R, X))

    @property
    def objective(self) -> float:
        """The mean cost of a signal."""
        return float(self.costs.mean()) if len(self.costs) else 0.0

    @property
    def uses(self) -> Array:
        """The number of codes that use each atom."""
        return np.bincount(self.X.indices, minlength=self.X.shape[1])

    @property
    def summary(self) -> tuple[float, ...]:
        """Objective, relative error and number of used atoms."""
        squares = (self.signals.energy(V).sum(dtype=np.float64) for V in (self.signals.Y, self.R))
        size, error = (float(np.sqrt(square)) for square in squares)
        return self.objective, error / size if size else 0.0, int(np.count_nonzero(self.uses))

    @property
    def statistics(self) -> Statistics:
        imputed, weight = impute(self.signals, self.R)
        statistics = Statistics.of(imputed, self.X)
        return statistics if weight == 1 else statistics * weight

    def replace_atoms(self, plan: LearningPlan, D: Array, atoms: Array, seed: int) -> Array:
        """Put residuals in the place of these atoms of D; returns the atoms that were replaced."""
        R, W = self.R, self.signals.W

        def read_residuals(rows: Array) -> Array:
            return R[rows] if W is None else np.where(W[rows] > 0, R[rows], 0)

        return put_residuals(plan, D, atoms, self.signals.energy(R), read_residuals, seed)


def put_residuals(
    plan: LearningPlan, D: Array, atoms: Array, energies: Array, read_residuals: Callable[[Array], Array], seed: int
) -> Array:
    """Put residuals in the place of atoms of D, large ones more likely; returns the atoms that were replaced.

    A residual is drawn with a probability proportional to its squared norm, its energy, so that an exchange that was
    tried in vain is not tried for ever. `read_residuals` gives residuals by number.
    """
    energies = energies.astype(np.float64)
    number = min(len(atoms), int(np.count_nonzero(energies)))
    if not number:
        return atoms[:0]
    rows = np.random.default_rng(seed).choice(len(energies), number, replace=False, p=energies / energies.sum())
    proposals = read_residuals(rows)
    if plan.nonnegative:
        proposals = np.maximum(proposals, 0)
    norms = np.linalg.norm(proposals, axis=1)
    usable = np.flatnonzero(norms > 0)
    replaced = atoms[: len(usable)]
    D[:, replaced] = (proposals[usable] / norms[usable, None]).T
    return replaced


@dataclass(frozen=True)
class Step:
    """Where a run stands: codes after a sweep, or statistics after a batch; `row` is objective, error, used atoms."""

    D: Array
    X: Any
    statistics: Statistics | None
    sweep: int
    row: tuple[float, ...]


def sweep_steps(plan: LearningPlan, signals: Signals, D: Array, X: sp.csr_array | None, first: int) -> Iterator[Step]:
    """Without end: code all signals, then improve the dictionary. X are codes to start with, or None.

    The objective never rises: a signal keeps its code where the new one is worse, no update raises it, and atoms that
    are in use are exchanged only where it falls. Codes that stop at an error (`tol`) are the exception, since they
    become shorter at the cost of a larger error.
    """
    fit = None if X is None else Fit.of(plan, signals, D, X)
    for sweep in count(first):
        trial = None
        if fit is not None and plan.descends and sweep % EXCHANGE_PERIOD == EXCHANGE_PERIOD - 1:
            trial = exchange(plan, fit, sweep)
        fit = improve(plan, trial or recode(plan, signals, D, fit))
        D = fit.D
        fit.replace_atoms(plan, D, np.flatnonzero(fit.uses == 0), sweep)
        yield Step(D, fit.X, None, sweep + 1, fit.summary)


def recode(plan: LearningPlan, signals: Signals, D: Array, old: Fit | None) -> Fit:
    """The better of a new code and the old one, for every signal."""
    new = Fit.of(plan, signals, D)
    if old is None or plan.stops_at_error:
        return new
    worse = np.flatnonzero(old.costs < new.costs)
    if not len(worse):
        return new
    source = np.arange(len(signals))
    source[worse] += len(signals)
    new.R[worse], new.costs[worse] = old.R[worse], old.costs[worse]
    return replace(new, X=sp.csr_array(sp.vstack([new.X, old.X], format="csr")[source]))


def improve(plan: LearningPlan, fit: Fit) -> Fit:
    """A better dictionary for the same supports of codes. Writes to the codes and residuals of `fit`."""
    signals, X, R = fit.signals, fit.X, fit.R
    if plan.update == "ksvd":
        D = np.array(fit.D, order="F")
        rank_one_sweep(plan, signals, D, X, R)
    else:
        imputed, _ = impute(signals, R)
        D, factors = Statistics.of(imputed, X).improve(fit.D, plan.penalty > 0, plan.nonnegative, BLOCK_PASSES)
        X.data *= factors[X.indices]
        R = compute_residuals(signals, X, D)
    X.eliminate_zeros()
    return Fit(signals, D, X, R, plan.costs(signals, R, X))


def exchange(plan: LearningPlan, fit: Fit, sweep: int) -> Fit | None:
    """Signals coded after the least valuable atoms gave way to residuals; None where that does not lower the objective.

    The value of an atom is the growth of the error if its weights go to the atom most like it: the sum of its squared
    weights times 1 - (their largest correlation)^2.
    """
    D, X, signals = np.array(fit.D, order="F"), fit.X, fit.signals
    G = np.abs(D.T @ D)
    np.fill_diagonal(G, 0)
    values = np.bincount(X.indices, np.square(X.data), minlength=len(G)) * (1 - np.square(G.max(axis=0)))
    least = np.argsort(values, kind="stable")[: max(1, len(G) // (5 * sweep))]
    replaced = np.zeros(len(G), bool)
    replaced[fit.replace_atoms(plan, D, least, sweep)] = True
    owners = np.repeat(np.arange(len(signals)), np.diff(X.indptr))
    lost = np.bincount(owners[replaced[X.indices]], minlength=len(signals)) > 0
    new = recode(plan, signals, D, replace(fit, costs=np.where(lost, np.inf, fit.costs)))
    return new if new.objective < fit.objective else None


def batch_steps(
    plan: LearningPlan,
    passes: Iterator[tuple[int, Iterator[Any]]],
    D: Array,
    statistics: Statistics | None,
    fit: Callable[[LearningPlan, Any, Array], Any] = Fit.of,
) -> Iterator[Step]:
    """One step per batch (Mairal, Bach, Ponce, Sapiro 2010): code it, add its statistics, improve the dictionary.

    `passes` are the batches of each sweep, with its number; `fit` codes one, and returns a `Fit` or a `DistributedFit`.
    Nothing is promised about the objective: a batch is coded once a sweep, and counts with that code while the
    dictionary changes.
    """
    for sweep, batch in ((sweep, batch) for sweep, batches in passes for batch in batches if len(batch)):
        coded = fit(plan, batch, D)
        statistics = add(statistics, coded.statistics, plan.forgetting)
        D, factors = statistics.improve(D, plan.penalty > 0, plan.nonnegative)
        statistics = statistics.rescale(factors)
        mean = float(statistics.uses.mean())
        if mean >= MIN_MEAN_USES:
            rare = np.flatnonzero(statistics.uses < MIN_USE_SHARE * mean)
            replaced = coded.replace_atoms(plan, D, rare, statistics.signals)
            statistics = statistics.without(replaced, mean) if len(replaced) else statistics
        yield Step(D, None, statistics, sweep + 1, coded.summary)


def add(old: Statistics | None, new: Statistics, forgetting: float) -> Statistics:
    """The statistics with those of a batch: after n signals, the i-th has the weight (i / n)^forgetting."""
    if old is None:
        return new
    share = old.signals / (old.signals + new.signals)
    return old * float(share**forgetting) + new
