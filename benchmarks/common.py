"""Shared by the benchmarks: contenders that take turns, medians, data, missing peers, supports to compare."""

from __future__ import annotations

import importlib
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

ROUNDS = 9
CLOCK = time.process_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter
"""On one thread that of the processor, which a busy machine disturbs less."""
BUDGET = 2.5
"""Seconds after which a contender rests, once it has had two turns."""

PAUSE = 0.1
"""Seconds between two turns: threads of the one before (of OpenMP, of BLAS) wait busily for a while, in the way."""
SHORT = 0.3
"""Seconds below which a turn begins with calls that are not counted, for as long as the pause was: a processor that was
idle, and threads that were asleep, perhaps all on one processor, take that long to be what they were."""


class NotThereError(Exception):
    """A contender gave up; the message says how far it came."""


def peer(name: str) -> Any:
    """The module, or None where it is not installed or does not import."""
    try:
        return importlib.import_module(name)
    except Exception:  # whatever is wrong with a peer is no reason to stop
        return None


@dataclass
class Contender:
    """One way to do what a case asks for.

    `same` names the contender of the case (or is an answer) whose support this one must share; `every`: it codes one
    signal in so many, and its time is multiplied; `once`: no warm-up and a single turn. A `run` of None is a peer that
    is missing.
    """

    name: str
    run: Callable[[], Any] | None
    same: Any = None
    every: int = 1
    once: bool = False


@dataclass
class Case:
    """Contenders for one task; the first is ours, and what ratios refer to."""

    key: str
    title: str
    contenders: list[Contender]
    notes: list[str] = field(default_factory=list)


@dataclass
class Row:
    """One line of the table."""

    case: str
    contender: str
    threads: int
    seconds: float | None = None
    calls: int | None = None
    atoms: float | None = None
    same: float | None = None
    note: str = ""


# ---------------------------------------------------------------------- time


def interleaved(
    calls: dict[str, Callable[[], Any]],
    rounds: int = ROUNDS,
    budget: float = BUDGET,
    warm: bool = False,
) -> dict[str, float]:
    """Median seconds of each call; all take turns, after a warm-up that does not count (unless they are warm)."""
    for call in () if warm else calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name, call in calls.items():
            if turn < 2 or sum(times[name]) < budget:
                time.sleep(PAUSE)
                awake = time.perf_counter() + PAUSE
                while times[name] and times[name][-1] < SHORT and time.perf_counter() < awake:
                    call()
                began = CLOCK()
                call()
                times[name].append(CLOCK() - began)
    return {name: statistics.median(spent) for name, spent in times.items()}


# ---------------------------------------------------------------------- data


def normed(D: np.ndarray) -> np.ndarray:
    return np.asfortranarray(D / np.sqrt(np.einsum("ij,ij->j", D, D)))


def dictionary(kind: str, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind.startswith("Toeplitz"):
        rho, D = float(kind.split()[1]), rng.standard_normal((d, n))
        for j in range(1, n):
            D[:, j] = rho * D[:, j - 1] + np.sqrt(1 - rho**2) * D[:, j]
        return normed(D)
    if kind == "clusters":
        centres = rng.standard_normal((d, max(1, n // 50)))
        return normed(np.repeat(centres, -(-n // centres.shape[1]), axis=1)[:, :n] + 0.3 * rng.standard_normal((d, n)))
    if kind == "heavy tails":
        return normed(rng.standard_t(2, (d, n)))
    return normed(rng.standard_normal((d, n)))


def signal(D: np.ndarray, k: int, rng: np.random.Generator, noise: float = 0.1) -> np.ndarray:
    y = D[:, rng.choice(D.shape[1], k, replace=False)] @ rng.standard_normal(k)
    return y + noise * np.linalg.norm(y) / np.sqrt(len(y)) * rng.standard_normal(len(y))


# ---------------------------------------------------------------------- answers


def pattern(answer: Any) -> sp.csr_array:
    """Which atoms each signal uses: of a Result, an estimator, an array or a sparse matrix with signals as rows."""
    for name in ("coef_", "coef"):
        answer = getattr(answer, name, answer)
    codes = sp.csr_array(answer if sp.issparse(answer) else np.atleast_2d(answer))
    codes.eliminate_zeros()
    return sp.csr_array((np.ones(codes.nnz), codes.indices, codes.indptr), shape=codes.shape)


def agreement(one: sp.csr_array, other: sp.csr_array) -> float:
    """The share of signals whose supports are the same."""
    differing = abs(one - other).sum(axis=1)
    return float(np.mean(differing == 0))


def measure(case: Case, threads: int) -> list[Row]:
    """A row for each contender; what fails says so in its row."""
    answers: dict[str, Any] = {}
    rows = {c.name: Row(case.key, c.name, threads) for c in case.contenders}
    for c in case.contenders:
        row = rows[c.name]
        if c.run is None:
            row.note = "not installed"
            continue
        try:
            began = CLOCK()
            answers[c.name] = c.run()
            row.seconds = c.every * (CLOCK() - began)
        except NotThereError as reason:
            row.note = str(reason)
        except Exception as error:  # a peer that breaks is reported, not followed
            row.note = f"failed: {error}"[:60]
    takes_turns = {c.name: c.run for c in case.contenders if c.name in answers and c.run is not None and not c.once}
    scale = {c.name: c.every for c in case.contenders}
    for name, seconds in interleaved(takes_turns, warm=True).items():
        rows[name].seconds = scale[name] * seconds
    for c in case.contenders:
        if c.name in answers:
            _describe(rows[c.name], c, answers)
    return list(rows.values())


def _describe(row: Row, contender: Contender, answers: dict[str, Any]) -> None:
    answer = answers[contender.name]
    row.calls = getattr(answer, "oracle_calls", None)
    if answer is None or isinstance(answer, int | float):
        return
    found = pattern(answer)
    row.atoms = found.nnz / max(found.shape[0], 1)
    like = answers.get(contender.same) if isinstance(contender.same, str) else contender.same
    if like is not None:
        row.same = agreement(found, pattern(like)[:: contender.every])
