"""What `minimize` does at each state of a run. A watcher has one method, which may end the run by a status."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from pursuit.arguments import as_bool, as_int_or_nan, describe, quantity
from pursuit.arrays import Array
from pursuit.deadline import Deadline
from pursuit.run.method import Problem
from pursuit.run.result import State, result_fields
from pursuit.run.stop import Status, Stop
from pursuit.run.stored import Checkpoint, Kept
from pursuit.run.trace import trace_row


class Watcher(Protocol):
    """Sees every state of a run, before its update."""

    def watch(self, state: State) -> Status | None: ...


class Recorder:
    """Keeps the rows of the trace, the first point, and the fields of a result: an interrupted update may leave the
    active set half changed."""

    def __init__(self, began: float, kept: Kept | None) -> None:
        self.rows = kept.rows[:-1] if kept else []
        self.first: Array | None = kept.first if kept else None
        self.fields: dict[str, Any] = {}
        self._began = began - (kept.seconds if kept else 0.0)

    @property
    def seconds(self) -> float:
        """The time of the run so far, that of the run before it included."""
        return time.perf_counter() - self._began

    @property
    def members(self) -> dict[str, Any]:
        """The atoms, weights, blocks and point of the last complete state."""
        return {name: self.fields[name] for name in ("atoms", "weights", "blocks", "x")}

    def forget_unfinished(self) -> None:
        """Drop the row of a state that was interrupted before all of it was recorded."""
        del self.rows[self.fields["iterations"] + 1 :]

    def watch(self, state: State) -> None:
        self.rows.append(trace_row(state, self.seconds))
        self.first = state.x if self.first is None else self.first
        self.fields = result_fields(state)


class Log:
    """Writes a line at iterations 0, 1, 2, 4, 8, ... and at the first state of a run that goes on."""

    def __init__(self, verbose: Any, recorder: Recorder) -> None:
        self.write = _writer(verbose)
        self._recorder = recorder
        self._resumed = bool(recorder.rows)

    def watch(self, state: State) -> None:
        if self._resumed or state.iteration & (state.iteration - 1) == 0:
            self.write(_line(self._recorder.rows[-1]))
        self._resumed = False


def _writer(verbose: Any) -> Callable[[str], None]:
    """A function that writes a line to stderr or to a logger, or nowhere."""
    if isinstance(verbose, logging.Logger):
        return lambda line: verbose.info("%s", line)
    if not (isinstance(verbose, bool | np.bool_) or as_int_or_nan(verbose) in (0, 1)):
        raise TypeError(f"verbose is {describe(verbose)}; give True, False or a logging.Logger.")
    return _write if verbose else lambda line: None


def _write(line: str) -> None:
    from tqdm.auto import tqdm  # slow to import

    tqdm.write(line, file=sys.stderr)  # above a progress bar


def _line(row: tuple[float, ...]) -> str:
    """A row of the trace in words."""
    iteration, value, gap, atoms, calls, seconds = row
    counts = f"{quantity(int(atoms), 'atom')}, {quantity(int(calls), 'call')}"
    return f"iteration {iteration}: f = {value:.6g}, gap = {gap:.2g}, {counts}, {seconds:.3g} s"


class Bar:
    """A progress bar, on terminals only."""

    def __init__(self, shown: Any) -> None:
        self._bar = None
        if as_bool(shown, "progress"):
            from tqdm.auto import tqdm  # slow to import

            self._bar = tqdm(disable=None, desc="pursuit", unit=" iterations", leave=False)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def watch(self, state: State) -> None:
        if self._bar is not None:
            text = f"f = {state.value:.6g}, gap = {state.gap:.2g}, {quantity(state.active.count, 'atom')}"
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update()


class Callback:
    """The user's function of a state, which returns True to stop."""

    def __init__(self, function: Callable[[State], Any] | None) -> None:
        if function is not None and not callable(function):
            raise TypeError(f"callback is {describe(function)}; give a function of a State.")
        self._function = function

    def watch(self, state: State) -> Status | None:
        return Status.CALLBACK if self._function is not None and self._function(state) else None


class Rules:
    """The stopping rules, and the deadline for updates and refinements. A gap counts once it is proved: where a proof
    gives less than the estimate, the run goes on, and proofs are tried at ever longer intervals."""

    def __init__(self, stop: Stop, began: float) -> None:
        self._stop, self._began = stop, began
        self._without_gap = replace(stop, gap=None, rgap=None)
        self._next, self._wait = 0, 1
        self._deadline = Deadline(began + (math.inf if stop.seconds is None else stop.seconds))

    def watch(self, state: State) -> Status | None:
        state.active.deadline = self._deadline
        seconds = time.perf_counter() - self._began
        status = self._stop.reached(state, seconds)
        if status is not Status.GAP or self._proved(state):
            return status
        return self._without_gap.reached(state, seconds)

    def _proved(self, state: State) -> bool:
        """Whether the gap of this state is proved to be within the tolerance."""
        if state.iteration < self._next:
            return False
        self._next, self._wait = state.iteration + self._wait, 2 * self._wait
        return state.value - state.run.certify.proved(state.value) <= self._stop.largest_gap(state.value)


class Saver:
    """Writes the checkpoint of a run: when it is due, and at the end."""

    def __init__(self, path: str | os.PathLike[str] | None, every: float, problem: Problem) -> None:
        self._file = None if path is None else Checkpoint(path, every)
        self._problem = problem

    def resume(self) -> Kept | None:
        """The run in the file; None where there is no file."""
        return None if self._file is None else self._file.resume(*self._problem)

    def save(self, recorder: Recorder, state: State, ended: bool) -> None:
        """Write this state, the last one of the recorder."""
        if self._file is not None and (ended or self._file.due):
            assert recorder.first is not None
            kept = Kept(state.run.memory(state), recorder.rows, recorder.first, recorder.seconds)
            self._file.write(kept, *self._problem)
