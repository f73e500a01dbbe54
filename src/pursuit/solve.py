"""The loop: every algorithm of the package is a choice of domain, update, oracle and refinement for it."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from pursuit._arrays import flag, quantity, told, whole
from pursuit._deadline import Deadline
from pursuit._memory import Memory, memory_of
from pursuit.certificates import Certificate
from pursuit.checkpoints import Checkpoint, Run
from pursuit.defaults import choose
from pursuit.domains import Domain
from pursuit.guards import GuardedOracle, StallDetector, guarded, probing
from pursuit.line_search import UnboundedError
from pursuit.objectives import Objective
from pursuit.oracles import Exact, Oracle
from pursuit.refine.proposals import Refine, Refinements
from pursuit.result import Result, State, Status, Stop, Trace, result_fields, trace_row
from pursuit.start import adapted, find_space, run_to_continue, set_first_atoms
from pursuit.updates import Now, Update


def iterate(
    f: Objective,
    domain: Domain,
    update: Update | None = None,
    *,
    oracle: Oracle | None = Exact(),
    refine: Refine | Sequence[Refine] | None = None,
    start: Any = None,
) -> Iterator[State]:
    """The loop itself: an infinite generator of states. Parameters are those of `minimize`.

    >>> from itertools import islice
    >>> import pursuit as ps
    >>> states = ps.iterate(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective())
    >>> [s.value for s in islice(states, 3)]
    [5.0, 0.5, 0.0]
    """
    update, oracle, refine = method = choose(f, domain, update, oracle, refine)
    f = adapted(f, domain)
    kept, space, f = run_to_continue(start, f, domain, method), find_space(f, domain, start), f.begin()
    value_and_grad = guarded(f, space)
    ask = GuardedOracle(oracle, update, f, domain, space)
    advance = probing(update.begin(f, domain, space), f, domain, space)
    refinements = Refinements(refine, f, domain, space)
    certificate, stall = Certificate(f, domain, space), StallDetector(update.descends)
    active = domain.active_set(space)
    run = Memory(
        t=0, now=None, active=active, f=value_and_grad, ask=ask, advance=advance,
        refinements=refinements, certificate=certificate, stall=stall,
    )  # fmt: skip
    if kept is None:
        set_first_atoms(active, f, domain, start, ask, certificate)
    else:
        run.recall(kept.memory)

    while True:
        if run.now is None:  # else a run goes on from its last state
            value, grad = value_and_grad(active, run.t)  # with the cost of x_t where the domain has a penalty
            point_dots = active.point_dots(grad)  # <grad, x_b>, for each summand x_b of x_t in a sum of domains
            answers = ask(grad, active, point_dots, run.t)  # z_t = (approx) LMO_A(grad f(x_t)), with its quality delta
            certificate.observe(value, grad, point_dots, answers, active)
            stall.observe(value, certificate.gap, answers)
            run.now = Now(run.t, value, grad, point_dots, answers)
        now = run.now
        yield State(
            run.t, active.x, now.value, now.grad, now.answers, certificate.gap, certificate.lower,
            active, ask.calls + certificate.calls, ask.cached, refinements.refused,
            certificate.stationary, stall.stalled, certificate.contradicted, certificate.stationarity, f.convex, run,
        )  # fmt: skip
        advance(now, active)  # S <- S + z_t, new weights; x_{t+1} = sum_S w_a a
        refinements(active, now.value)  # line 7 of Algorithms 3 and 4: the atoms themselves move
        run.t, run.now = run.t + 1, None


def minimize(
    f: Objective,
    domain: Domain,
    update: Update | None = None,
    *,
    oracle: Oracle | None = Exact(),
    refine: Refine | Sequence[Refine] | None = None,
    stop: Stop = Stop(),
    start: Any = None,
    callback: Callable[[State], Any] | None = None,
    progress: bool = False,
    verbose: bool | logging.Logger = False,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 60.0,
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
    oracle : Exact, Approximate, Lazy, Screened or RandomAtom
        The search for the next atom; Exact() by default.
    refine : callable (f, domain, active) -> (weights, atoms) or None, or several of them, optional
        Line 7 of Algorithms 3 and 4: called after each update, may move atoms and weights; see `pursuit.refine`.
        A proposal that leaves the domain, or raises f by more than it may, is refused and counted.
    stop : Stop
        By default a certified relative gap of 1e-6, or 10,000 iterations.
    start : Result, (weights, atoms), point, or a list of them, optional
        A result of the same problem and method is continued as if the run had not stopped: 50 iterations and then 50
        are the 100, bit for bit, and so are the trace and all counts. Everything else is the first point of a run that
        begins: over a product, the vector x or a list with a start for each piece; over most other sums, a Result.
        Without it, spans and cones begin at 0 (beside `lin(B, counted=False)`, at the minimum over lin(B)), and hulls
        at the atom that the oracle names for the gradient at 0; where f is larger there than at 0, at its minimum
        between the two, if the hull has the atoms' negatives. Where f is infinite there, a run begins at a mean of
        atoms.
    callback : callable of a State, optional
        Return True to stop.
    progress : bool
        Show a progress bar, on terminals only.
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

    Returns
    -------
    Result
        After Ctrl-C too, with the last complete iteration and Status.INTERRUPTED, if there is one. It can be continued,
        but an update that remembers something begins anew.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 200))
    >>> y = X[:, :3] @ [2.0, -1.0, 1.0]
    >>> r = ps.minimize(ps.LeastSquares(y), ps.conv(3.5 * ps.Dictionary(X, signed=True)), stop=ps.Stop(gap=1e-8))
    >>> r.gap <= 1e-8, sorted(a.source for a in r.atoms)
    (True, [0, 1, 2])

    A result is continued:

    >>> f, domain, update = ps.LeastSquares(y), ps.conv(3.5 * ps.Dictionary(X, signed=True)), ps.Plain(ps.OpenLoop())
    >>> half = ps.minimize(f, domain, update, stop=ps.Stop(iterations=50))
    >>> whole = ps.minimize(f, domain, update, stop=ps.Stop(iterations=100), start=half)
    >>> whole.iterations, len(whole.trace), whole.value < half.value
    (100, 101, True)
    """
    began = time.perf_counter()
    if not isinstance(stop, Stop):
        raise TypeError(f"stop is {told(stop)}; give rules such as Stop(gap=1e-6) or Stop(iterations=100).")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is {told(callback)}; give a function of a State.")
    method = choose(f, domain, update, oracle, refine, sparse=stop.atoms is not None)
    f = adapted(f, domain)
    file = None if checkpoint is None else Checkpoint(checkpoint, every)
    kept = (file and file.resume(f, domain, method)) or run_to_continue(start, f, domain, method)
    start = kept or (_fit_uncounted(f, domain, stop) if start is None else start)
    rows, first, past = (kept.rows[:-1], kept.first, kept.seconds) if kept else ([], None, 0.0)
    log = _logger(verbose)
    deadline = Deadline(began + (math.inf if stop.seconds is None else stop.seconds))
    fields: dict[str, Any] = {}  # of the last state
    memory: dict[str, Any] = {}  # of the parts of the run
    status = state = None
    try:
        with _progress_bar(flag(progress, "progress")) as show:
            for state in iterate(f, domain, start=start, **method._asdict()):
                state.active.deadline, seconds = deadline, time.perf_counter() - began
                rows.append(trace_row(state, past + seconds))
                first = state.x if first is None else first
                fields = result_fields(state)  # an interrupted update may leave the active set half changed
                show(state)
                continued = kept is not None and len(rows) == len(kept.rows)
                if continued or state.iteration & (state.iteration - 1) == 0:  # 0, 1, 2, 4, 8, ...
                    log(_line(rows[-1]))
                ended = callback is not None and callback(state)
                status = Status.CALLBACK if ended else stop.reached(state, seconds)
                if status is not None or (file and file.due):
                    memory = state.run.memory()
                    if file:
                        file.write(Run(memory, rows, first, past + seconds), f, domain, method)
                if status is not None:
                    break
    except UnboundedError:
        if state is None:
            raise
        status = Status.UNBOUNDED
        # The update may have made inner steps before it raised: x and its value are those of the active set.
        memory, fields = (
            {},
            result_fields(state) | {"x": state.active.x, "value": f.value(state.active.x) + state.active.cost},
        )
    except KeyboardInterrupt:
        if not fields:
            raise
        status, memory = Status.INTERRUPTED, _memory_of_interrupted(state, fields)
        del rows[fields["iterations"] + 1 :]  # of a state that was not complete
    assert status is not None
    fields |= method._asdict() | {"memory": memory}
    seconds = past + time.perf_counter() - began
    log(f"ended after {fields['iterations']} iterations and {seconds:.3g} s: {status.value}")
    return Result(f=f, domain=domain, start=first, status=status, trace=Trace(rows), seconds=seconds, **fields)


def _memory_of_interrupted(state: State | None, fields: dict[str, Any]) -> dict[str, Any]:
    """What a run remembers that was interrupted in the middle of an iteration: the atoms of its last state and what all
    parts but the update know, which may be left half changed."""
    assert state is not None
    active = {name: fields[name] for name in ("atoms", "weights", "blocks", "x")}
    active |= {"wanted": state.active.wanted, "frames": list(range(len(fields["atoms"])))}
    parts = {name: memory_of(getattr(state.run, name)) for name in ("f", "ask", "refinements", "certificate", "stall")}
    return {"t": fields["iterations"], "now": None, "active": active, **parts}


def _fit_uncounted(f: Objective, domain: Domain, stop: Stop) -> Result | None:
    """The minimum over the uncounted summands, from which the others begin at 0; None where there are none or where the
    others do not begin at 0."""
    places = np.array([b for b, part in enumerate(domain.parts) if not part.counted], dtype=np.intp)
    if len(places) in (0, len(domain.parts)) or any(part.compact for part in domain.parts):
        return None
    alone = sum((domain.parts[b] for b in places[1:]), domain.parts[places[0]])
    fit = minimize(f, alone, stop=Stop(rgap=1e-12, seconds=stop.seconds))
    return replace(fit, blocks=places[fit.blocks])


@contextmanager
def _progress_bar(shown: bool) -> Iterator[Callable[[State], None]]:
    """A function that shows a state in a progress bar, on terminals only."""
    if not shown:
        yield lambda state: None
        return
    bar = tqdm(disable=None, desc="pursuit", unit=" iterations", leave=False)

    def show(state: State) -> None:
        text = f"f = {state.value:.6g}, gap = {state.gap:.2g}, {quantity(state.active.count, 'atom')}"
        bar.set_postfix_str(text, refresh=False)
        bar.update()

    try:
        yield show
    finally:
        bar.close()


def _logger(verbose: Any) -> Callable[[str], None]:
    """A function that writes a line to stderr or to a logger, or nowhere."""
    if isinstance(verbose, logging.Logger):
        return lambda line: verbose.info("%s", line)
    if not (isinstance(verbose, bool | np.bool_) or whole(verbose) in (0, 1)):
        raise TypeError(f"verbose is {told(verbose)}; give True, False or a logging.Logger.")
    return (lambda line: tqdm.write(line, file=sys.stderr)) if verbose else lambda line: None  # above a progress bar


def _line(row: tuple[float, ...]) -> str:
    """A row of the trace in words."""
    iteration, value, gap, atoms, calls, seconds = row
    counts = f"{quantity(int(atoms), 'atom')}, {quantity(int(calls), 'call')}"
    return f"iteration {iteration}: f = {value:.6g}, gap = {gap:.2g}, {counts}, {seconds:.3g} s"
