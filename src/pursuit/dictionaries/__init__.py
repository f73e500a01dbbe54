"""Dictionary learning: atoms on which given signals have sparse codes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit.arguments import as_bool, as_int_or_nan, check_function, check_seed, describe, number, quantity
from pursuit.cluster.workers import is_dask_array
from pursuit.coding.request import Array, thread_count
from pursuit.dictionaries.learning import CodedBatch, LearningTrace, Step, batch_steps, sweep_steps
from pursuit.dictionaries.signals import Coder, Method, is_matrix, passes_over
from pursuit.dictionaries.spread import SpreadBatch, SpreadSignals
from pursuit.dictionaries.start import initial_dictionary
from pursuit.dictionaries.updates import Statistics
from pursuit.run.stop import Status

__all__ = ["Learned", "LearningTrace", "Statistics", "learn"]

UPDATES = ("ksvd", "block", "online")


@dataclass(frozen=True, eq=False)
class Learned:
    """A dictionary that was learned; `learn(Y, atoms, start=learned, ...)` goes on where it ended.

    `dictionary` has the atoms as columns, all of norm 1, and `codes` are those of the signals, Y ~ codes @ dictionary.T
    (None online). `descends` says whether it is promised that the objective never rises from a row of the trace to the
    next: by sweeps over all signals, unless codes stop at an error (`tol`); not online. `statistics` is what is
    remembered of batches (None for sweeps over all signals).

    >>> import numpy as np, pursuit as ps
    >>> Y = np.random.default_rng(0).standard_normal((200, 8))
    >>> learned = ps.learn(Y, 12, code={"atoms": 2}, sweeps=5)
    >>> learned.dictionary.shape, learned.codes.shape, learned.descends
    ((8, 12), (200, 12), True)
    """

    dictionary: Array
    codes: sp.csr_array | None
    statistics: Statistics | None
    trace: LearningTrace
    status: Status
    update: str
    descends: bool

    def curves(self, most: int) -> list[Any]:
        """The first atoms as columns, for figures."""
        return [np.asarray(self.dictionary[:, :most], dtype=np.float64)]

    def __repr__(self) -> str:
        last = self.trace.rows[-1] if len(self.trace) else (0, np.nan, np.nan, 0, 0.0)
        d, n = self.dictionary.shape
        return "\n".join(
            [
                f"dictionary    {d} x {n}, {quantity(last[3], 'atom')} used",
                f"objective     {last[1]:.10g}",
                f"error         {last[2]:.3g}",
                f"sweeps        {last[0]}",
                f"seconds       {last[4]:.3g}",
                f"update        {self.update}{'' if self.descends else ' (the objective may rise)'}",
                f"status        {self.status.value}",
            ]
        )


def learn(
    Y: Any,
    atoms: int,
    *,
    code: Mapping[str, Any],
    update: str | None = None,
    sweeps: int | None = None,
    start: Any = "data",
    nonnegative: bool = False,
    weights: Any = None,
    batch: int = 1024,
    forgetting: float = 6.0,
    seed: int = 0,
    callback: Callable[[Learned], Any] | None = None,
    progress: bool = False,
    n_jobs: int | None = None,
) -> Learned:
    r"""Learn a dictionary D of unit vectors on which the rows of Y have sparse codes X, by alternating between the two.

    .. math:: \min_{D, X} \tfrac12 \|Y - X D^\top\|_F^2 + \lambda \|X\|_1

    over the codes that `encode` may give: at most so many atoms each (:math:`\lambda = 0`), or any with a penalty.

    ========== =========================================================================================================
    update     after the signals have been coded
    ========== =========================================================================================================
    ``ksvd``   each atom in turn with its weights, by one step of a rank-one approximation (approximate K-SVD)
    ``block``  each atom in turn while all weights stay: block coordinate descent to the least-squares dictionary (MOD)
    ``online`` the same from X'X and Y'X of all batches so far, older ones with less weight, after every batch
    ========== =========================================================================================================

    ``ksvd`` and ``block`` never raise the objective: a signal keeps its code where the new one is worse. Atoms that no
    signal uses are replaced by the residuals of the signals that are coded worst; every other sweep, the least valuable
    atoms are, too, if the objective falls.

    Parameters
    ----------
    Y : array of shape (n_signals, n_features), or iterable of such arrays
        Rows are signals. Masked entries are missing. Batches of an iterable are learned from one after the other, and
        only one of them is in memory; each may be a pair (Y, weights). An iterator, which ends, allows one sweep. A
        dask array is learned from online on its cluster: all its signals are one batch, whose blocks are coded by the
        workers, and only X'X and Y'X of the blocks travel.
    atoms : int
    code : dict
        Arguments of `encode`: ``{"atoms": 5}``, ``{"method": "lasso", "penalty": 0.1}``, ``{"method": "nnls"}``, ...
    update : {"ksvd", "block", "online"}, optional
        By default ``ksvd``, and ``online`` for an iterable.
    sweeps : int, optional
        How often all signals are gone through: 10 times by default, once for an iterable that ends.
    start : "data", "random", array of shape (n_features, n_atoms), or Learned
        Signals chosen at random, random directions, a dictionary, or an earlier result that is gone on with.
    nonnegative : bool
        Whether the entries of the dictionary must be at least 0.
    weights : array of Y's shape, optional
        Non-negative; 0 marks a missing entry, where Y may hold anything, NaN too.
    batch : int
        The number of signals of a batch, where ``online`` cuts Y into batches.
    forgetting : float
        Online, after n signals the i-th has the weight :math:`(i/n)^\text{forgetting}`; 0 forgets nothing.
    seed : int
    callback : callable, optional
        Called with a `Learned` after every sweep, or batch; learning ends where it returns True.
    progress : bool
        Show a bar where there is a terminal.
    n_jobs : int, optional
        Threads, as for `encode`.

    Returns
    -------
    Learned
        `dictionary`, `codes`, `trace` and more.

    Notes
    -----
    Sweeps over all signals hold three arrays of the size of Y besides Y, and the codes twice. Online, memory is that of
    a batch, its codes, four arrays of the size of the dictionary and four of the size of X'X, however many signals
    there are; each batch adds a row to the trace.

    Entries with weights between 0 and 1 are handled exactly by ``ksvd``; ``block`` and ``online``, and ``ksvd`` with a
    penalty, take the missing part from the current approximation, which never raises the objective, but takes more
    sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> import pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 8))        # signals of rank 3
    >>> learned = ps.learn(Y, 3, code={"atoms": 3})
    >>> bool(learned.trace.error[-1] < 1e-12), learned.descends
    (True, True)
    >>> np.allclose(learned.codes @ learned.dictionary.T, Y)
    True
    >>> longer = ps.learn(Y, 3, code={"atoms": 3}, start=learned, sweeps=2)
    >>> longer.trace.sweep
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12])
    """
    check_arguments(atoms, batch, forgetting, seed, callback)
    coder, kind = (
        Coder.checked(code, thread_count(n_jobs)),
        chosen_update(update, not is_dask_array(Y) and is_matrix(Y)),
    )
    method = Method(coder, kind, as_bool(nonnegative, "nonnegative"), float(forgetting))
    spread = SpreadSignals(Y) if is_dask_array(Y) else None
    if spread is not None and weights is not None:
        raise TypeError("weights were given with a dask array, which is learned from without; leave them out.")
    batches: Callable[[int], Iterator[Any]]
    if spread is None:
        signals, batches, once = passes_over(Y, weights, int(batch), int(seed))
    else:
        signals, batches, once = spread.first, spread.passes, False
    limit = checked_sweeps(sweeps, once)
    old = start if isinstance(start, Learned) else None
    D = initial_dictionary(start if old is None else old.dictionary, signals, int(atoms), int(seed), method.nonnegative)
    D = D if old is None or D.dtype != old.dictionary.dtype else old.dictionary  # to the last digit
    trace = LearningTrace([]) if old is None else old.trace
    past = int(trace.rows[-1][0]) if len(trace) else 0
    if kind == "online":
        passes = ((sweep, batches(sweep)) for sweep in range(past, past + limit))
        coded: Callable[..., Any] = CodedBatch.of if spread is None else SpreadBatch.of
        steps = batch_steps(method, passes, D, None if old is None else old.statistics, coded)
    else:
        codes = None if old is None or old.codes is None or old.codes.shape[0] != len(signals) else old.codes
        steps = islice(sweep_steps(method, signals, D, codes, past), limit)
    begin = Learned(D, None, None, trace, Status.ITERATIONS, kind, method.descends)
    begin = begin if old is None else replace(begin, codes=old.codes, statistics=old.statistics)
    return followed(begin, steps, callback, as_bool(progress, "progress"))


def followed(begin: Learned, steps: Iterator[Step], callback: Any, progress: bool) -> Learned:
    """The result after all steps, or after those up to where the callback or Ctrl-C ends them."""
    rows, status, step = list(begin.trace.rows), Status.ITERATIONS, None
    began = time.perf_counter() - (rows[-1][-1] if rows else 0.0)

    def result() -> Learned:
        if step is None:
            return replace(begin, status=status)
        trace = LearningTrace(rows[:])
        return replace(begin, dictionary=step.D, codes=step.X, statistics=step.statistics, trace=trace, status=status)

    try:
        for step in tqdm(steps, disable=None if progress else True, desc="learn", leave=False):
            rows.append((step.sweep, *step.row, time.perf_counter() - began))
            if callback is not None and callback(result()):
                status = Status.CALLBACK
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return result()


def check_arguments(atoms: Any, batch: Any, forgetting: Any, seed: Any, callback: Any) -> None:
    for name, value in (("atoms", atoms), ("batch", batch)):
        if not as_int_or_nan(value) >= 1:
            raise ValueError(f"{name} is {describe(value)}; give an integer of at least 1.")
    if not 0 <= number(forgetting) < np.inf:
        raise ValueError(f"forgetting is {describe(forgetting)}; give a number of at least 0.")
    check_seed(seed)
    if callback is not None:
        check_function(callback, "callback", "a Learned")


def chosen_update(update: Any, at_once: bool) -> str:
    """The update, by default the best one for all signals at once, or for batches."""
    if update is None:
        return "ksvd" if at_once else "online"
    if not isinstance(update, str) or update not in UPDATES:
        raise ValueError(f"update is {describe(update)}; give one of {', '.join(map(repr, UPDATES))}.")
    if not at_once and update != "online":
        raise ValueError(f'update is {update!r}, which needs all signals at once, and Y gives batches; give "online".')
    return update


def checked_sweeps(sweeps: Any, once: bool) -> int:
    if sweeps is None:
        return 1 if once else 10
    if not as_int_or_nan(sweeps) >= 0:
        raise ValueError(f"sweeps is {describe(sweeps)}; give an integer of at least 0.")
    if once and sweeps > 1:
        raise ValueError(
            f"sweeps is {sweeps}, and Y is an iterator, which ends; give 1, or an iterable such as a list."
        )
    return int(sweeps)
