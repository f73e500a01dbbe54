"""The loop: every algorithm of the package is a choice of domain, update, oracle and refinement for it."""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from pursuit._arrays import flag, told, whole
from pursuit._deadline import Deadline
from pursuit.certificates import Certificate
from pursuit.defaults import choose
from pursuit.domains import Domain
from pursuit.guards import GuardedOracle, StallDetector, guarded, probing
from pursuit.objectives import Objective
from pursuit.oracles import Exact, Oracle
from pursuit.refine.proposals import Refine, Refinements
from pursuit.result import Result, State, Status, Stop, Trace, result_fields, trace_row
from pursuit.start import find_space, first_active_set
from pursuit.steps import UnboundedError
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
    update, oracle, refine = choose(f, domain, update, oracle, refine)
    space, f = find_space(f, domain, start), f.begin()
    value_and_grad = guarded(f, space)
    ask = GuardedOracle(oracle, update, f, domain, space)
    advance = probing(update.begin(f, domain, space), f, domain, space)
    refinements = Refinements(refine, f, domain, space)
    certificate, stall = Certificate(f, domain, space), StallDetector(update.descends)
    active = first_active_set(f, domain, space, start, ask, certificate)

    for t in count():
        value, grad = value_and_grad(active)  # with the cost of x_t where the domain has a penalty
        point_dots = active.point_dots(grad)  # <grad, x_b>, for each summand x_b of x_t in a sum of domains
        answers = ask(grad, active, point_dots)  # z_t = (approx) LMO_A(grad f(x_t)), with its quality delta
        certificate.observe(value, grad, point_dots, answers, active)
        stalled = stall.detect(value, certificate.gap, answers)
        yield State(
            t, active.x, value, grad, answers, certificate.gap, certificate.lower,
            active, ask.calls + certificate.calls, ask.cached, refinements.refused,
            certificate.stationary, stalled, certificate.contradicted, certificate.stationarity, f.convex,
        )  # fmt: skip
        advance(Now(t, value, grad, point_dots, answers), active)  # S <- S + z_t, new weights; x_{t+1} = sum_S w_a a
        refinements(active, value)  # line 7 of Algorithms 3 and 4: the atoms themselves move


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
) -> Result:
    """Minimise a smooth convex function over the hull, cone or span of atoms, or a sum of such.

    Parameters
    ----------
    f : Objective
    domain : conv(A), cone(A), lin(A), or a sum of them
    update : Update, optional
        Such as FullyCorrective() or Plain(ShortStep()).
        None: the best general choice for the domain and the objective, one atom at a time if `stop` counts them, and
        with a refinement where the atoms can move; `result.update` and `result.refine` say which they were.
    oracle : Exact, Approximate, Lazy, Screened or RandomAtom
        The search for the next atom; Exact() by default.
    refine : callable (f, domain, active) -> (weights, atoms) or None, or several of them, optional
        Line 7 of Algorithms 3 and 4: called after each update, may move atoms and weights; see `pursuit.refine`.
        A proposal that leaves the domain, or raises f by more than it may, is refused and counted.
    stop : Stop
        By default a certified relative gap of 1e-6, or 10,000 iterations.
    start : Result, (weights, atoms) or point, optional
        The first point. Without it, spans and cones begin at 0 (beside `lin(B, counted=False)`, at the minimum over
        lin(B)), and hulls at the atom that the oracle names for the gradient at 0; where f is larger there than at 0,
        at its minimum between the two, if the hull has the atoms' negatives.
    callback : callable of a State, optional
        Return True to stop.
    progress : bool
        Show a progress bar, on terminals only.
    verbose : bool or logging.Logger
        Write a line at iterations 0, 1, 2, 4, 8, ... and at the end: to stderr, or as information to a logger.

    Returns
    -------
    Result
        After Ctrl-C too, with the last complete iteration and Status.INTERRUPTED, if there is one.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 200))
    >>> y = X[:, :3] @ [2.0, -1.0, 1.0]
    >>> r = ps.minimize(ps.LeastSquares(y), ps.conv(3.5 * ps.Dictionary(X, signed=True)), stop=ps.Stop(gap=1e-8))
    >>> r.gap <= 1e-8, sorted(a.source for a in r.atoms)
    (True, [0, 1, 2])
    """
    began = time.perf_counter()
    if not isinstance(stop, Stop):
        raise TypeError(f"stop is {told(stop)}; give rules such as Stop(gap=1e-6) or Stop(iterations=100).")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is {told(callback)}; give a function of a State.")
    method = choose(f, domain, update, oracle, refine, sparse=stop.atoms is not None)
    start = _fit_uncounted(f, domain, stop) if start is None else start
    log = _logger(verbose)
    deadline = Deadline(began + (math.inf if stop.seconds is None else stop.seconds))
    rows: list[tuple[float, ...]] = []
    fields: dict[str, Any] = {}  # of the last state
    status = state = first = None
    try:
        with _progress_bar(flag(progress, "progress")) as show:
            for state in iterate(f, domain, start=start, **method._asdict()):
                state.active.deadline, seconds = deadline, time.perf_counter() - began
                rows.append(trace_row(state, seconds))
                first = state.x if first is None else first
                fields = result_fields(state)  # an interrupted update may leave the active set half changed
                show(state)
                if state.iteration & (state.iteration - 1) == 0:  # 0, 1, 2, 4, 8, ...
                    log(_line(rows[-1]))
                ended = callback is not None and callback(state)
                status = Status.CALLBACK if ended else stop.reached(state, seconds)
                if status is not None:
                    break
    except UnboundedError:
        if state is None:
            raise
        status = Status.UNBOUNDED
        # The update may have made inner steps before it raised: x and its value are those of the active set.
        fields = result_fields(state) | {"x": state.active.x, "value": f.value(state.active.x) + state.active.cost}
    except KeyboardInterrupt:
        if not fields:
            raise
        status = Status.INTERRUPTED
        del rows[fields["iterations"] + 1 :]  # of a state that was not complete
    assert status is not None
    fields |= method._asdict()
    seconds = time.perf_counter() - began
    log(f"ended after {fields['iterations']} iterations and {seconds:.3g} s: {status.value}")
    return Result(f=f, domain=domain, start=first, status=status, trace=Trace(rows), seconds=seconds, **fields)


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
    bar = tqdm(disable=None if shown else True, desc="pursuit", unit=" iterations", leave=False)

    def show(state: State) -> None:
        if shown:
            text = f"f = {state.value:.6g}, gap = {state.gap:.2g}, {state.active.count} atoms"
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
    counts = ", ".join(f"{n} {name}{'s' * (n != 1)}" for n, name in ((atoms, "atom"), (calls, "call")))
    return f"iteration {iteration}: f = {value:.6g}, gap = {gap:.2g}, {counts}, {seconds:.3g} s"
