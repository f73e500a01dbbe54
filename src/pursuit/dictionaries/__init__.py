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

from pursuit.arguments import as_bool, as_int_or_nan, check_function, check_seed, describe, number, quantity, require
from pursuit.arrays import host
from pursuit.cluster.workers import is_dask_array
from pursuit.coding.request import Array, thread_count
from pursuit.dictionaries.device import DeviceFit, DeviceSignals
from pursuit.dictionaries.distributed import DistributedFit, DistributedSignals
from pursuit.dictionaries.learning import Fit, LearningTrace, Step, batch_steps, sweep_steps
from pursuit.dictionaries.signals import Batches, LearningPlan, for_each_signal, is_matrix, read_batches
from pursuit.dictionaries.start import initial_dictionary
from pursuit.dictionaries.templates import LearnedTemplates, learn_templates
from pursuit.dictionaries.updates import Statistics
from pursuit.gpu.tensors import is_on_cuda
from pursuit.run.stop import Status

__all__ = ["Learned", "LearnedTemplates", "LearningTrace", "Statistics", "learn"]

UPDATES = ("ksvd", "block", "online")
HOST_BATCH, DEVICE_BATCH = 1024, 65_536
"""Signals of a batch, where nothing is said."""
MANY_BATCHES = 4
"""Batches of a matrix of signals from which online learning is the better default."""


@dataclass(frozen=True, eq=False)
class Learned:
    """A dictionary that was learned; `learn(Y, atoms, start=learned, ...)` goes on where it ended.

    `dictionary` has the atoms as columns, all of norm 1, and `codes` are those of the signals, Y ~ codes @ dictionary.T
    (None where signals came in batches). `descends` says whether it is promised that the objective never rises from a
    row of the trace to the next: by sweeps over all signals, unless codes stop at an error (`tol`); not online.
    `statistics` is what is remembered of batches (None for sweeps over all signals).

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
        return [host(self.dictionary[:, :most])]

    def __repr__(self) -> str:
        last = self.trace.rows[-1] if len(self.trace) else (0, np.nan, np.nan, 0, 0.0)
        d, n = self.dictionary.shape
        lines = {
            "dictionary": f"{d} x {n}, {quantity(last[3], 'atom')} used",
            "objective": f"{last[1]:.10g}",
            "error": f"{last[2]:.3g}",
            "sweeps": f"{last[0]}",
            "seconds": f"{last[4]:.3g}",
            "update": self.update if self.descends else f"{self.update} (the objective may rise)",
            "status": self.status.value,
        }
        return "\n".join(f"{name:<14}{text}" for name, text in lines.items())


def learn(
    Y: Any,
    atoms: int | None = None,
    *,
    code: Mapping[str, Any] | None = None,
    update: str | None = None,
    sweeps: int | None = None,
    start: Any = "data",
    nonnegative: bool = False,
    weights: Any = None,
    batch: int | None = None,
    forgetting: float = 6.0,
    seed: int = 0,
    callback: Callable[[Learned], Any] | None = None,
    progress: bool = False,
    n_jobs: int | None = None,
    convolutional: bool = False,
    templates: int | None = None,
    length: int | None = None,
    rank: int | None = None,
) -> Any:
    r"""Learn a dictionary D of unit vectors on which the rows of Y have sparse codes X, by alternating between the two.

    .. math:: \min_{D, X} \tfrac12 \|Y - X D^\top\|_F^2 + \lambda \|X\|_1

    over codes with a limit on their atoms (:math:`\lambda = 0`), or with a penalty; `encode` finds them.

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
        Rows are signals. Masked entries are missing. Batches of an iterable, each an array or a pair (Y, weights), are
        in memory one at a time; an iterator, which ends, allows one sweep. A dask array is learned from online on its
        cluster, as one batch: the workers code its blocks, and only X'X and Y'X of the blocks travel. Each sweep makes
        the blocks anew; `Y.persist()` keeps them in the workers' memory. Torch tensors on a CUDA device, one or an
        iterable of them, are learned from online and without weights there; dictionary and codes are tensors.
    atoms : int
    code : dict, optional
        `method`, `atoms`, `tol`, `penalty` and `positive` of `encode`: ``{"atoms": 5}``, ``{"method": "nnls"}``,
        ``{"method": "lasso", "penalty": 0.1}``, ...
        By default ``{"atoms": max(1, n_features // 10)}``. `atoms` and `tol` may be one for each row of a matrix Y.
    update : {"ksvd", "block", "online"}, optional
        By default ``ksvd``, and ``online`` for an iterable and for more than four batches of signals: there it finds
        the better dictionary in the same time, and only promises nothing from sweep to sweep.
    sweeps : int, optional
        Passes over all signals: by default 10, for an iterable that ends 1, and 20 for templates.
    start : "data", "random", array of shape (n_features, n_atoms), or Learned
        Signals chosen at random, random directions, a dictionary, or an earlier result to resume.
    nonnegative : bool
        Whether the entries of the dictionary must be at least 0.
    weights : array of Y's shape, optional
        Non-negative; 0 marks a missing entry, where Y may hold anything, NaN too.
    batch : int, optional
        The number of signals of a batch, where ``online`` cuts Y into batches: by default 1,024, on a device 65,536.
    forgetting : float
        Online, after n signals the i-th has the weight :math:`(i/n)^\text{forgetting}`; 0 forgets nothing.
    seed : int
    callback : callable, optional
        Called with a `Learned` after every sweep, or batch; learning ends where it returns True.
    progress : bool
        Show a bar where there is a terminal.
    n_jobs : int, optional
        Threads, as for `encode`.
    convolutional : bool
        Learn templates that repeat in one recording Y, (samples,) or (channels, samples): atoms are their translates.
    templates, length : int
        Their number and their samples, instead of `atoms`.
    rank : 1, optional
        Templates are a weight for each channel times one stretch of samples.

    Returns
    -------
    Learned, or LearnedTemplates
        With `convolutional`: templates of norm 1, and the events of the recording. Of the other arguments, `code`
        (method, with threshold or penalty, as for `encode`), `sweeps`, `start`, `seed`, `callback`, `progress` and
        `n_jobs` count. The objective, half the squared error and half the threshold for each event (or the penalty
        times the sizes of weights), never rises from sweep to sweep; `seed` decides which events are searched again:
        several seeds give several minima. Without `code`, `method` is "omp" and the threshold 4 times the mean energy
        of the loudest hundredth of the samples. The recording is real, and in memory.

    Notes
    -----
    Sweeps over all signals hold three arrays of the size of Y besides Y, and the codes twice. Online, memory is that of
    a batch, its codes, four arrays of the size of the dictionary and four of the size of X'X; each batch adds a row to
    the trace. Weights between 0 and 1 are handled exactly by ``ksvd`` without a penalty; the others take the missing
    part from the current approximation, which never raises the objective, but takes more sweeps.

    Examples
    --------
    >>> import numpy as np
    >>> import pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.standard_normal((500, 3)) @ rng.standard_normal((3, 8))        # signals of rank 3
    >>> learned = ps.learn(Y, 3, code={"atoms": 3})
    >>> np.allclose(learned.codes @ learned.dictionary.T, Y), bool(learned.trace.error[-1] < 1e-12)
    (True, True)
    >>> ps.learn(Y, 3, code={"atoms": 3}, start=learned, sweeps=2).trace.sweep
    array([ 1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12])
    """
    if as_bool(convolutional, "convolutional"):
        options = {"code": code, "sweeps": sweeps, "start": start, "seed": seed, "callback": callback,
                   "progress": as_bool(progress, "progress"), "n_jobs": n_jobs, "rank": rank}  # fmt: skip
        others = {"atoms": atoms, "update": update, "weights": weights, "nonnegative": nonnegative or None}
        refuse_others(others, "atoms are the translates of templates")
        return learn_templates(Y, templates, length, options)
    refuse_others({"templates": templates, "length": length, "rank": rank}, "give convolutional=True with it")
    distributed, on_device = is_dask_array(Y), is_on_cuda(Y)
    if batch is None:
        batch = DEVICE_BATCH if on_device else HOST_BATCH
    check_arguments(atoms, batch, forgetting, seed, callback)
    at_once = not distributed and is_matrix(Y)
    rows = len(Y) if isinstance(Y, list | tuple) else (getattr(Y, "shape", None) or (0,))[0]
    if update is None and at_once and (on_device or rows > MANY_BATCHES * batch):
        update = "online"
    plan = LearningPlan(
        {"atoms": 1} if code is None else code, choose_update(update, at_once and not on_device),
        as_bool(nonnegative, "nonnegative"), float(forgetting), thread_count(n_jobs),
    )  # fmt: skip
    signals, batches, once = _read(Y, weights, int(batch), int(seed), plan.code)
    fit = _fit_of(signals, distributed)
    if code is None:
        plan = replace(plan, code={"atoms": max(1, signals.features // 10)})
    limit = count_sweeps(sweeps, once)
    first = _first(start, signals, int(atoms or 0), int(seed), plan)
    steps = _steps(plan, signals, batches, first, limit, fit)
    learned = run(first, steps, callback, as_bool(progress, "progress"))
    if plan.update == "online" and at_once and learned.status is not Status.INTERRUPTED:
        return replace(learned, codes=plan.encode(learned.dictionary, signals))
    return learned


def _read(Y: Any, weights: Any, batch: int, seed: int, code: Mapping[str, Any]) -> tuple[Any, Batches, bool]:
    """The signals, their batches in each sweep, and whether they can be read only once."""
    if not is_dask_array(Y):
        return read_batches(Y, weights, batch, seed, code)
    if weights is not None:
        raise TypeError("weights were given with a dask array, which is learned from without; leave them out.")
    for_each_signal(code, ())  # refuses them
    blocks = DistributedSignals(Y)
    return blocks.first, blocks.batches, False


def _steps(
    plan: LearningPlan, signals: Any, batches: Batches, first: Learned, limit: int, fit: Callable[..., Any]
) -> Iterator[Step]:
    """The steps of so many sweeps after those of the earlier result."""
    past = int(first.trace.rows[-1][0]) if len(first.trace) else 0
    if plan.update == "online":
        passes = ((sweep, batches(sweep)) for sweep in range(past, past + limit))
        return batch_steps(plan, passes, first.dictionary, first.statistics, fit)
    codes = None if first.codes is None or first.codes.shape[0] != len(signals) else first.codes
    return islice(sweep_steps(plan, signals, first.dictionary, codes, past), limit)


def _fit_of(signals: Any, distributed: bool) -> Callable[..., Any]:
    """What sums the products of codes and signals: on a device, on a cluster or here."""
    if isinstance(signals, DeviceSignals):
        return DeviceFit.of
    return DistributedFit.of if distributed else Fit.of


def _first(start: Any, signals: Any, atoms: int, seed: int, plan: LearningPlan) -> Learned:
    """What learning begins with: a dictionary, or an earlier result."""
    old = start if isinstance(start, Learned) else None
    D = initial_dictionary(start if old is None else old.dictionary, signals, atoms, seed, plan.nonnegative)
    first = Learned(D, None, None, LearningTrace([]), Status.ITERATIONS, plan.update, plan.descends)
    if old is None:
        return first
    if type(D) is not type(old.dictionary):
        raise TypeError("start and Y are not both on the host or both on a device; give start=learned.dictionary.")
    D = D if D.dtype != old.dictionary.dtype else old.dictionary  # to the last digit
    return replace(first, dictionary=D, codes=old.codes, statistics=old.statistics, trace=old.trace)


def run(first: Learned, steps: Iterator[Step], callback: Any, progress: bool) -> Learned:
    """The result after all steps, or after those up to where the callback or Ctrl-C ends them."""
    rows, status, step = list(first.trace.rows), Status.ITERATIONS, None
    began = time.perf_counter() - (rows[-1][-1] if rows else 0.0)

    def result() -> Learned:
        if step is None:
            return replace(first, status=status)
        trace = LearningTrace(rows[:])
        return replace(first, dictionary=step.D, codes=step.X, statistics=step.statistics, trace=trace, status=status)

    try:
        for step in tqdm(steps, disable=None if progress else True, desc="learn", leave=False):
            rows.append((step.sweep, *step.row, time.perf_counter() - began))
            if callback is not None and callback(result()):
                status = Status.CALLBACK
                break
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return result()


def refuse_others(given: Mapping[str, Any], why: str) -> None:
    """Refuse arguments of the other kind of learning."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} is {describe(value)}; {why}, or leave it out.")


def check_arguments(atoms: Any, batch: Any, forgetting: Any, seed: Any, callback: Any) -> None:
    for name, value in (("atoms", atoms), ("batch", batch)):
        require(as_int_or_nan(value) >= 1, name, value, "an integer of at least 1")
    require(0 <= number(forgetting) < np.inf, "forgetting", forgetting, "a number of at least 0")
    check_seed(seed)
    if callback is not None:
        check_function(callback, "callback", "a Learned")


def choose_update(update: Any, all_at_once: bool) -> str:
    """The update, by default the best one for all signals at once, or for batches."""
    if update is None:
        return "ksvd" if all_at_once else "online"
    known = isinstance(update, str) and update in UPDATES
    require(known, "update", update, f"one of {', '.join(map(repr, UPDATES))}")
    if not all_at_once and update != "online":
        raise ValueError(
            f"update is {update!r}, which needs all signals at once and on the host, and Y gives batches or is on a "
            'device; give "online".'
        )
    return str(update)


def count_sweeps(sweeps: Any, once: bool) -> int:
    """The number of sweeps; `once` says that the signals can be read only once."""
    if sweeps is None:
        return 1 if once else 10
    require(as_int_or_nan(sweeps) >= 0, "sweeps", sweeps, "an integer of at least 0")
    if once and sweeps > 1:
        raise ValueError(
            f"sweeps is {sweeps}, and Y is an iterator, which ends; give 1, or an iterable such as a list."
        )
    return int(sweeps)
