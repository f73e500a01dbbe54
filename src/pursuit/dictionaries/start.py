"""The dictionary that learning begins with."""

from __future__ import annotations

from typing import Any

import numpy as np

from pursuit.arguments import require
from pursuit.arrays import host
from pursuit.coding.request import Array, matrix
from pursuit.dictionaries.signals import Signals


def initial_dictionary(start: Any, signals: Signals, atoms: int, seed: int, nonnegative: bool) -> Array:
    """Atoms of norm 1: those of a given dictionary, signals, or random directions."""
    if not len(signals):
        raise ValueError(f"Y has shape {signals.Y.shape}; give at least one signal.")
    if isinstance(start, str):
        require(start in ("data", "random"), "start", start, '"data", "random", a dictionary or a Learned')
        rng = np.random.default_rng(seed)
        D = choose_signals(signals, atoms, rng, nonnegative) if start == "data" else np.empty((signals.features, 0))
        random = rng.standard_normal((signals.features, atoms - D.shape[1]))
        D = np.hstack([D, np.abs(random) if nonnegative else random])
    else:
        D = read_dictionary(start, (signals.features, atoms), nonnegative)
    return signals.put(D / np.linalg.norm(D, axis=0))


def choose_signals(signals: Signals, atoms: int, rng: np.random.Generator, nonnegative: bool) -> Array:
    """Different signals as columns, drawn at random; not those much smaller than others, which may be rounding."""
    order = rng.permutation(len(signals))
    for drawn in (order[: 4 * atoms], order):  # the first few are enough, where most signals are not zero
        some = signals.rows(drawn)
        peaks = some.peaks(nonnegative)
        rows = np.flatnonzero(peaks > 1e-6 * peaks.max())[:atoms]
        if len(rows) == atoms:
            break
    Y = host(some.rows(rows).Y)
    return np.asarray((np.maximum(Y, 0) if nonnegative else Y).T / peaks[rows])


def read_dictionary(start: Any, shape: tuple[int, int], nonnegative: bool) -> Array:
    D = matrix(start, "start")
    if D.shape != shape:
        raise ValueError(f"start has shape {D.shape}; give a dictionary of shape {shape}, its atoms as columns.")
    if not np.isfinite(D).all():
        raise ValueError("start contains NaN or infinity; remove or impute those entries first.")
    peaks = np.abs(D).max(axis=0)
    if not peaks.all():
        raise ValueError(f"column {int(peaks.argmin())} of start is zero; drop it, or draw one at random.")
    if nonnegative and D.min() < 0:
        raise ValueError(f"start has entries down to {D.min()}; give entries of at least 0, as nonnegative is True.")
    return np.asarray(D / peaks)
