"""What `minimize` does at each state of a run. A watcher has one method, which may end the run by a status."""

from __future__ import annotations

import logging
import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from pursuit.arguments import as_bool, describe, quantity
from pursuit.arrays import Array
from pursuit.run.method import Problem
from pursuit.run.result import Result, State, copied_members, result_fields, sharpened
from pursuit.run.stop import Status, Stop
from pursuit.run.stored import Checkpoint, Kept
from pursuit.run.trace import Trace
from pursuit.state import Fields

if TYPE_CHECKING:
    from pursuit.run.begin import Run


class Watcher(Protocol):
    def watch(self, state: State) -> Status | None: ...


class Recorder:
    """Keeps the rows of the trace, the first point, and the last state with its weights and atoms: an interrupted
    update may leave the active set half changed. `evaluations` are those of f before the run."""

    def __init__(self, began: float, run: Run, keep: bool, evaluations: Sequence[float]) -> None:
        kept = run.resumed
        self.rows = kept.rows[:-1] if kept else []
        self._resumed = kept.rows[-1] if kept and kept.rows else None
        self.first: Array | None = kept.first if kept else None
        self.last: tuple[State, Fields] | None = None
        self.fields: Fields = {}
        self._run, self._keep = run, keep
        self._before = tuple(evaluations)
        self._began = began - (kept.seconds if kept else 0.0)

    @property
    def seconds(self) -> float:
        """The time of the run so far, that of the run before it included."""
        return time.perf_counter() - self._began

    def watch(self, state: State) -> None:
        active = state.active
        delta = min(answer.delta or 0.0 for answer in state.answers) if active.turn is None else 0.0
        row = state.iteration, state.value, state.gap, active.count, state.oracle_calls, self.seconds, delta
        (values, gradients), before = self._run.problem.f.evaluations, self._before
        if self._resumed is not None:  # the run goes on from the state of this row
            self.rows, self._resumed = [*self.rows, (*row, *self._resumed[len(row) :])], None
            self._before = values - self.rows[-1][-2], gradients - self.rows[-1][-1]
        else:
            calls = float(values - before[0]), float(gradients - before[1])
            self.rows.append((*row, state.stationarity, active.step, *calls))
        active.step = math.nan
        self.first = state.x if self.first is None else self.first
        self.last = state, copied_members(active)

    def end(self, state: State) -> None:
        """The run ends at this state: prove its bound."""
        self._prove(result_fields(state), self._run.memory(state) if self._keep else {})

    def end_unbounded(self, state: State) -> None:
        """The run ends while f falls for ever, where the update has come to: it may have made inner steps before."""
        active = state.active
        value = self._run.problem.f.value(active.x) + active.cost
        self.fields = result_fields(state) | {"x": active.x, "value": value, "lower": -math.inf, "gap": math.inf}

    def end_interrupted(self, state: State, members: Fields) -> None:
        """The run ends at the last complete state: the row of one that was interrupted is dropped."""
        del self.rows[state.iteration + 1 :]
        fields = result_fields(state, members)
        kept = {name: fields[name] for name in ("atoms", "weights", "blocks", "x")}
        self._prove(fields, self._run.memory_without_update(state.iteration, kept) if self._keep else {})

    def _prove(self, fields: Fields, memory: Fields) -> None:
        """The bound of a result is proved once, where the run ends; the proof may take oracle calls."""
        certify, value = self._run.certify, fields["value"]
        before, lower = certify.dual.calls, min(certify.proved(value), value)
        proof = {"lower": lower, "gap": value - lower, "dual_point": certify.dual_point, "memory": memory}
        self.fields = fields | proof | {"oracle_calls": fields["oracle_calls"] + certify.dual.calls - before}

    def result(self, status: Status) -> Result:
        f, domain, method = self._run.problem
        fields = self.fields | {"start": self.first, "seconds": self.seconds, "trace": Trace(self.rows)}
        return sharpened(Result(f, domain, *method, status=status, **fields), self.rows[-1][2])


class Log:
    """Writes a line at iterations 0, 1, 2, 4, 8, ... and at the first state of a run that goes on."""

    @classmethod
    def of(cls, verbose: object, recorder: Recorder) -> Log | None:
        """The log that `verbose` asks for: to a logger, to stderr, or none."""
        logger = verbose if isinstance(verbose, logging.Logger) else None
        return cls(logger, recorder) if logger or as_bool(verbose, "verbose") else None

    def __init__(self, logger: logging.Logger | None, recorder: Recorder) -> None:
        self._logger = logger
        self._recorder = recorder
        self._resumed = bool(recorder.rows)

    def watch(self, state: State) -> None:
        if self._resumed or state.iteration & (state.iteration - 1) == 0:
            self.write(_line(self._recorder.rows[-1]))
        self._resumed = False

    def end(self, result: Result) -> None:
        """Say why the run ended."""
        text = f"ended after {result.iterations} iterations and {result.seconds:.3g} s: {result.status.value}"
        self.write(textwrap.fill(text, 80, subsequent_indent="  "))

    def write(self, line: str) -> None:
        """Write to the logger, or to stderr above a progress bar; a reader that has gone does not end the run."""
        if self._logger is not None:
            self._logger.info("%s", line)
            return
        from tqdm.auto import tqdm  # slow to import

        with suppress(BrokenPipeError):
            tqdm.write(line, file=sys.stderr)


def _line(row: tuple[float, ...]) -> str:
    """A row of the trace in words."""
    iteration, value, gap, atoms, calls, seconds, *_ = row
    counts = f"{quantity(int(atoms), 'atom')}, {quantity(int(calls), 'call')}"
    return f"iteration {iteration}: f = {value:.6g}, gap = {gap:.2g}, {counts}, {seconds:.3g} s"


class Bar:
    """A progress bar of at most 80 columns, on terminals and in notebooks only."""

    def __init__(self) -> None:
        from tqdm.auto import tqdm  # slow to import

        self._bar = tqdm(disable=None, bar_format="pursuit: {n_fmt} iterations [{elapsed}{postfix}]", leave=False)
        self.close = self._bar.close

    def watch(self, state: State) -> None:
        text = f"f = {state.value:.6g}, gap = {state.gap:.2g}, {quantity(state.active.count, 'atom')}"
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update()


class Callback:
    """The user's function of a state, which returns True to stop."""

    def __init__(self, function: Callable[[State], Any]) -> None:
        if not callable(function):
            raise TypeError(f"callback is {describe(function)}; give a function of a State.")
        self._function = function

    def watch(self, state: State) -> Status | None:
        return Status.CALLBACK if self._function(state) else None


class Rules:
    """The stopping rules. A gap counts once it is proved: where a proof gives less than the estimate, the run goes on,
    and proofs are tried at ever longer intervals."""

    def __init__(self, stop: Stop, began: float) -> None:
        self._stop, self._began = stop, began
        self._next, self._wait = 0, 1

    def watch(self, state: State) -> Status | None:
        seconds = time.perf_counter() - self._began
        met = self._stop.met(state, seconds)
        return next((status for status in met if status is not Status.GAP or self._proved(state)), None)

    def _proved(self, state: State) -> bool:
        """Whether the gap of this state is proved to be within the tolerance."""
        if state.iteration < self._next:
            return False
        self._next, self._wait = state.iteration + self._wait, 2 * self._wait
        return state.value - state.run.certify.proved(state.value) <= self._stop.largest_gap(state.value)


class Saver:
    """Writes the checkpoint of a run: when it is due, and at the end."""

    def __init__(self, path: str | os.PathLike[str], every: float, problem: Problem) -> None:
        self._file, self._problem = Checkpoint(path, every), problem

    def resume(self) -> Kept | None:
        """The run in the file; None where there is no file."""
        return self._file.resume(*self._problem)

    def save(self, recorder: Recorder, state: State, ended: bool) -> None:
        """Write this state, the last one of the recorder."""
        if ended or self._file.due:
            assert recorder.first is not None
            kept = Kept(state.run.memory(state), recorder.rows, recorder.first, recorder.seconds)
            self._file.write(kept, *self._problem)
