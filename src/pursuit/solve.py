"""The loop: every algorithm of the package is a choice of domain, update, oracle and refinement for it."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from pursuit.active import Deadline
from pursuit.arguments import as_bool, require_kind
from pursuit.domains import Domain
from pursuit.line_search import UnboundedError
from pursuit.objectives import Objective
from pursuit.oracles import Exact, Oracle
from pursuit.refine.proposals import Refine
from pursuit.run.begin import Run, begin
from pursuit.run.method import Given, Problem, choose
from pursuit.run.result import Result, State
from pursuit.run.stop import Status, Stop
from pursuit.run.watchers import Bar, Callback, Log, Recorder, Rules, Saver, Watcher
from pursuit.updates import Update


def iterate(
    f: Objective,
    domain: Domain,
    update: Update | None = None,
    *,
    oracle: Oracle | None = Exact(),
    refine: Refine | Sequence[Refine] | None = None,
    start: object = None,
) -> Iterator[State]:
    """The loop itself: an infinite generator of states. Parameters are those of `minimize`.

    >>> from itertools import islice
    >>> import pursuit as ps
    >>> states = ps.iterate(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective())
    >>> [s.value for s in islice(states, 3)]
    [5.0, 0.5, 0.0]
    """
    run = start if isinstance(start, Run) else begin(choose(f, domain, Given(update, oracle, refine)), start)
    S = run.active
    for t in count(run.t):
        value, grad = run.evaluate(S)  # f(x_t), with the cost of x_t where the domain has a penalty, and grad f(x_t)
        z = run.ask(grad, S)  # z_t = (approx) LMO_A(grad f(x_t)): an Answer for each summand, with its quality delta
        bound = run.certify(value, grad, z, S)  # f* >= bound.lower
        now = State(t, value, grad, z, bound, S, run)
        yield now
        run.advance(now, S)  # S <- S + z_t, new weights; x_{t+1} = sum over S of w_a a
        run.refine(now, S)  # line 7 of Algorithms 3 and 4: the atoms themselves move


def minimize(
    f: Objective,
    domain: Domain,
    update: Update | None = None,
    *,
    oracle: Oracle | None = Exact(),
    refine: Refine | Sequence[Refine] | None = None,
    stop: Stop = Stop(),
    start: object = None,
    callback: Callable[[State], Any] | None = None,
    progress: bool = False,
    verbose: bool | logging.Logger = False,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
    keep: bool = False,
) -> Result:
    """Minimise a smooth convex function over the hull, cone or span of atoms, or a sum of such.

    Parameters
    ----------
    f : Objective
        Of the package, or yours: `Smooth(value, grad)`.
    domain : conv(A), cone(A), lin(A), penalty(A), a sum of them, or product(...) of them
    update : Update, optional
        Such as FullyCorrective() or Plain(ShortStep()).
        None: the best general choice for the domain and the objective, one atom at a time if `stop` counts them, and
        with a refinement where moving the atoms helps; `result.update` and `result.refine` say which they were.
    oracle : Exact, Approximate, Lazy or RandomAtom
        The search for the next atom; Exact() by default.
    refine : callable (f, domain, active) -> (weights, atoms) or None, or several of them, optional
        Line 7 of Algorithms 3 and 4: called after each update, may move atoms and weights; see `pursuit.refine`.
        A proposal that leaves the domain, or raises f by more than it may, is refused and counted.
    stop : Stop
        By default a certified relative gap of 1e-6, or 10,000 iterations.
    start : Result, (weights, atoms), point, "first", or a list of them, optional
        The first point of the run: over a product, the vector x or a list with a start for each piece; over most other
        sums, a Result. x has its library and dtype where neither f nor the atoms have one. A point x_0 becomes the
        first member of S, as in the paper; 0 is the zero vector; (weights, atoms) puts these atoms into S. That a point
        lies in the domain is proved where the set or `geometry.contains` can, else it is taken on your word, and
        `Result.assumed` says so. A Result over a hull of another radius, whose point lies outside this one, is scaled:
        the weights of each hull sum to 1 again. "first" is the first atom that each hull lists. A Result of the same
        problem and method that was made with `keep=True` is continued instead, as if its run had not stopped: 50
        iterations and then 50 are the 100, bit for bit, with the trace and all counts. Without it, spans and cones
        begin at 0 (beside `lin(B, counted=False)`, at the minimum over lin(B)), and hulls at the atom that the oracle
        names for the gradient at 0; where f is larger there than at 0, at its minimum between the two, if the hull has
        the atoms' negatives. That depends on where the origin is: affine-invariant algorithms are invariant from a
        given start, or from "first". Where f is infinite there, a run begins at a mean of atoms.
    callback : callable of a State, optional
        Return True to stop.
    progress : bool
        Show a progress bar, on terminals and in notebooks only.
    verbose : bool or logging.Logger
        Write a line at iterations 0, 1, 2, 4, 8, ..., where a run is continued, and at the end: to stderr, or as
        information to a logger.
    checkpoint : path, optional
        A file, such as "run.npz", in which the run is kept: at its first state, every `every` seconds, and at its end.
        If the file is there already, the run in it goes on, and `start` is not looked at; that of another problem or
        method is refused. It is replaced as a whole, the last but one stays as "run.previous.npz", and nothing in it
        is pickled.
    every : float
        Seconds between two checkpoints.
    keep : bool
        Keep the state of the run in the Result, for `start=` and `Result.save`.

    Returns
    -------
    Result
        After Ctrl-C too, with the last complete iteration and Status.INTERRUPTED, if there is one. If it was kept it
        can be continued, but an update with a state begins anew.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 200))
    >>> y = X[:, :3] @ [2.0, -1.0, 1.0]
    >>> r = ps.minimize(ps.LeastSquares(y), ps.conv(3.5 * ps.Dictionary(X, signed=True)), stop=ps.Stop(gap=1e-8))
    >>> r.gap <= 1e-8, sorted(a.source for a in r.atoms)
    (True, [0, 1, 2])

    A result that was kept is continued:

    >>> f, domain, update = ps.LeastSquares(y), ps.conv(3.5 * ps.Dictionary(X, signed=True)), ps.Plain(ps.OpenLoop())
    >>> half = ps.minimize(f, domain, update, stop=ps.Stop(iterations=50), keep=True)
    >>> whole = ps.minimize(f, domain, update, stop=ps.Stop(iterations=100), start=half)
    >>> whole.iterations, len(whole.trace), whole.value < half.value
    (100, 101, True)
    """
    began = time.perf_counter()
    require_kind(stop, Stop, "stop", "rules such as Stop(gap=1e-6) or Stop(iterations=100)")
    called = None if callback is None else Callback(callback)
    problem = choose(f, domain, Given(update, oracle, refine), sparse=stop.atoms is not None)
    saver = None if checkpoint is None else Saver(checkpoint, every, problem)
    kept = None if saver is None else saver.resume()
    first = _fit_uncounted(problem, stop) if start is None and kept is None else kept or start
    deadline = Deadline(began + (math.inf if stop.seconds is None else stop.seconds))
    evaluations, run = tuple(problem.f.evaluations), begin(problem, first, deadline)
    recorder = Recorder(began, run, as_bool(keep, "keep"), evaluations)
    log = Log.of(verbose, recorder) if verbose is not False else None
    bar = Bar() if as_bool(progress, "progress") else None
    watchers = [each for each in (recorder, bar, log, called, Rules(stop, began)) if each is not None]
    with nullcontext() if bar is None else closing(bar):
        status = _follow(run, recorder, watchers, saver)
    result = recorder.result(status)
    if log is not None:
        log.end(result)
    return result


def _follow(run: Run, recorder: Recorder, watchers: Sequence[Watcher], saver: Saver | None) -> Status:
    """Go through the states until a watcher ends the run, f falls for ever, or Ctrl-C is pressed."""
    state = None
    try:
        for state in iterate(*run.problem[:2], start=run):
            status = next(filter(None, [watcher.watch(state) for watcher in watchers]), None)
            if saver is not None:
                saver.save(recorder, state, status is not None)
            if status is not None:
                recorder.end(state)
                return status
    except UnboundedError:
        if state is None:
            raise
        recorder.end_unbounded(state)
        return Status.UNBOUNDED
    except KeyboardInterrupt:
        if recorder.last is None:
            raise
        recorder.end_interrupted(*recorder.last)
        return Status.INTERRUPTED
    raise AssertionError("the loop does not end")


def _fit_uncounted(problem: Problem, stop: Stop) -> Result | None:
    """The minimum over the uncounted summands, from which the others begin at 0; None where there are none or where the
    others do not begin at 0."""
    f, domain, _ = problem
    places = np.array([b for b, part in enumerate(domain.parts) if not part.counted], dtype=np.intp)
    if len(places) in (0, len(domain.parts)) or any(part.compact for part in domain.parts):
        return None
    alone = sum((domain.parts[b] for b in places[1:]), domain.parts[places[0]])
    fit = minimize(f, alone, stop=Stop(rgap=1e-12, seconds=stop.seconds))
    return replace(fit, domain=domain, blocks=places[fit.blocks])
