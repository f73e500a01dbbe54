"""Rules for events in recordings, the blocks of a recording, and the search of one block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pursuit import native
from pursuit.arguments import as_bool, as_int_or_nan, describe, is_number, number, require
from pursuit.atoms.convolutional import Convolutional
from pursuit.atoms.events import Events
from pursuit.threads import stop_flag

Array = np.ndarray[Any, np.dtype[Any]]

METHODS = ("mp", "omp", "nnomp", "lasso")
CACHE_BYTES = 3 << 20
"""Blocks are so long that the correlations of one take about this much memory, if nothing else is asked."""
ENDLESS = 1 << 62
"""The number of events where `atoms` does not say one."""
TURNS_PER_SAMPLE = 50
"""A pursuit that takes so many, where `atoms` does not say a number, is an error."""


class EndlessError(ValueError):
    """A pursuit finds no end."""


@dataclass(frozen=True)
class Rules:
    """When an atom enters, and with which weight."""

    method: str
    threshold: float = 0.0
    penalty: float = 0.0
    positive: bool = False
    prior: float = 0.0
    bounds: tuple[float, float] = (0.0, math.inf)
    refractory: int = -1
    limit: int = ENDLESS

    def native(self, strides: tuple[int, int], turns: int) -> Any:
        """The kernels' form; a search that takes more than so many turns has no end."""
        core = native.kernels(np.float64)
        rules = core.EventRules()
        rules.method = getattr(core.EventMethod, self.method)
        rules.positive, rules.threshold, rules.penalty = self.positive, self.threshold, self.penalty
        rules.prior, (rules.least, rules.most) = self.prior, self.bounds
        rules.limit, rules.turns = self.limit, turns
        rules.refractory, (rules.row_step, rules.step) = self.refractory, strides
        return rules


def read_rules(threshold: Any, atoms: Any, method: Any, penalty: Any, positive: Any, amplitudes: Any) -> Rules:
    """The rules of a call of `encode`, or an error that says which argument to change.

    `amplitudes` are prior, bounds and refractory, which belong to matching pursuit.
    """
    known = isinstance(method, str) and method in METHODS
    require(known, "method", method, f"one of {', '.join(map(repr, METHODS))} for a recording")
    if method != "mp" and any(amplitude is not None for amplitude in amplitudes):
        raise ValueError(f"prior, bounds and refractory belong to method='mp', not {method!r}; leave them out.")
    if (method == "lasso") != (penalty is not None):
        raise ValueError("penalty belongs to method='lasso', which needs it and takes neither threshold nor atoms.")
    if method == "lasso":
        require(is_number(penalty) and 0 < penalty < math.inf, "penalty", penalty, "a number above 0")
        if threshold is not None or atoms is not None:
            raise ValueError("threshold and atoms belong to pursuits; method='lasso' takes penalty alone.")
        return Rules("lasso", penalty=float(penalty), positive=as_bool(positive, "positive"))
    if as_bool(positive, "positive"):
        raise ValueError("positive belongs to method='lasso'; give method='nnomp', or bounds=(0, inf) to 'mp'.")
    return _pursuit_rules(method, threshold, atoms, amplitudes)


def _pursuit_rules(method: str, threshold: Any, atoms: Any, amplitudes: Any) -> Rules:
    """The rules of a pursuit."""
    prior, bounds, refractory = amplitudes
    if threshold is None and atoms is None:
        raise ValueError("threshold and atoms are missing; say by how much an event must lower ||r||^2, or how many.")
    threshold = 0.0 if threshold is None else threshold
    require(0 <= number(threshold) < math.inf, "threshold", threshold, "a number of at least 0")
    require(atoms is None or as_int_or_nan(atoms) >= 0, "atoms", atoms, "an integer of at least 0")
    require(prior is None or number(prior) >= 0, "prior", prior, "a number of at least 0, or inf")
    require(refractory is None or as_int_or_nan(refractory) >= 0, "refractory", refractory, "a number of samples")
    positive = method == "nnomp" or prior is not None or bounds is not None
    limit, pause = ENDLESS if atoms is None else int(atoms), -1 if refractory is None else int(refractory)
    return Rules(method, float(threshold), 0.0, positive, float(prior or 0.0), _bounds(bounds), pause, limit)


def _bounds(bounds: Any) -> tuple[float, float]:
    if bounds is None:
        return 0.0, math.inf
    pair = tuple(map(number, bounds)) if isinstance(bounds, tuple | list) else ()
    require(len(pair) == 2 and 0 <= pair[0] <= pair[1], "bounds", bounds, "(least, most) with 0 <= least <= most")
    return pair[0], pair[1]


def _dtype_of(given: Any, source: Any, wanted: Any) -> np.dtype[Any]:
    """The dtype to work in: the wanted one, or the smaller that holds all samples."""
    kind = np.dtype(given)
    require(kind.kind in "iuf", "recording", source, "an array of real numbers")
    single = kind.itemsize <= 2 or kind == np.float32
    dtype = np.dtype((np.float32 if single else np.float64) if wanted is None else wanted)
    require(dtype in (np.float32, np.float64), "dtype", wanted, "float32 or float64")
    return dtype


class Recording:
    """Blocks of samples of an array, a memory map, a Zarr or HDF5 array, a dask array, or a function (start, stop)."""

    def __init__(self, A: Convolutional, source: Any, dtype: Any) -> None:
        self.is_function = callable(source) and not hasattr(source, "shape")
        if not self.is_function and not hasattr(source, "shape"):
            source = np.asarray(source, dtype=np.float64)
        if self.is_function and A.shape is None:
            raise TypeError("the recording is a function (start, stop) -> samples; give Convolutional(..., shape=...).")
        shape = A.shape if self.is_function else tuple(map(int, source.shape))
        if shape and shape[-1] < A.templates.width:
            raise ValueError(
                f"the recording has {shape[-1]} samples, fewer than the {A.templates.width} of a template; give a "
                "longer one, or recording.T where time comes first."
            )
        try:
            self.A = A if A.shape == shape else A.on(shape or ())
        except ValueError as error:
            raise ValueError(f"{error} Time is the last axis: give recording.T where it comes first.") from None
        if A.axes == 2 and A.shape not in (None, shape):
            raise ValueError(f"the picture has shape {shape}, the atoms {A.shape}; they must be the same.")
        self.source, self.shape = source, self.A.shape or ()
        self.dtype = _dtype_of(np.float32 if self.is_function else getattr(source, "dtype", np.float64), source, dtype)

    @property
    def length(self) -> int:
        """Its samples."""
        return int(self.shape[-1])

    def read(self, start: int, stop: int) -> Array:
        """Samples start to stop, as channels x rows x samples."""
        block: Array = np.asarray(self.source(start, stop) if self.is_function else self.source[..., start:stop])
        wanted = (*self.shape[:-1], stop - start)
        if block.shape != wanted:
            raise ValueError(f"the recording gave {describe(block)} for samples {start} to {stop}; give {wanted}.")
        block = self.A.boxed(block.astype(self.dtype, copy=False))
        with np.errstate(over="ignore", invalid="ignore"):
            finite = bool(np.isfinite(block.sum())) or bool(np.isfinite(block).all())
        if not finite:
            raise ValueError(f"samples {start} to {stop} of the recording contain NaN or infinity; remove them first.")
        return block


@dataclass(frozen=True)
class Blocks:
    """A recording cut into blocks. Each is searched together with `halo` positions before and after it."""

    recording: Recording
    rules: Rules
    block: int
    halo: int

    @classmethod
    def choose(cls, recording: Recording, rules: Rules, block: Any, halo: Any) -> Blocks:
        """The user's lengths, checked and made multiples of the stride, or good ones."""
        A, whole = recording.A, recording.length
        for name, value in (("block", block), ("halo", halo)):
            require(value is None or as_int_or_nan(value) >= (name == "block"), name, value, "a number of samples")
        if rules.limit < ENDLESS:
            if block is not None and block < whole:
                raise ValueError("atoms counts the events of the whole recording; leave block out, or give threshold.")
            block = whole
        reach = max(A.templates.width, rules.refractory + 1)
        halo = 2 * reach if halo is None else int(halo)
        if block is None:
            rows = recording.A.boxed(np.empty((*recording.shape[:-1], 0))).shape[1]
            cached = CACHE_BYTES // (recording.dtype.itemsize * A.templates.count * rows)
            block = max(cached - 2 * halo, 4 * halo, 256)
        block, halo = (-(-int(n) // A.stride) * A.stride for n in (block, halo))
        return cls(recording, rules, min(block, whole + A.stride), halo)

    @property
    def count(self) -> int:
        """The number of blocks."""
        return -(-self.positions // self.block)

    @property
    def positions(self) -> int:
        """The number of positions along the last axis."""
        return self.recording.length - self.recording.A.templates.width + 1

    @cached_property
    def native_rules(self) -> Any:
        stride = self.recording.A.stride
        longest = min(self.recording.length, self.block + 2 * self.halo + self.recording.A.templates.width)
        turns = TURNS_PER_SAMPLE * math.prod(self.recording.shape[:-1]) * longest
        endless = self.rules.method == "lasso" or self.rules.limit < ENDLESS
        return self.rules.native((stride if self.recording.A.axes == 2 else 1, stride), ENDLESS if endless else turns)

    def ends(self, i: int) -> tuple[int, int, int, int]:
        """The positions start to stop of a block, and the samples from `first` to `last` that its search reads."""
        start = i * self.block
        stop, first = min(start + self.block, self.positions), max(0, start - self.halo)
        last = min(self.recording.length, stop + self.halo + self.recording.A.templates.width - 1)
        return start, stop, first, last

    def search(self, y: Array, first: int, known: Events | None = None) -> Events:
        """The events of samples y that begin at `first`; those of `known` have been subtracted, and may change."""
        A, dtype = self.recording.A, self.recording.dtype
        table = np.empty((0, 5)) if known is None else to_table(known.shifted(-first))
        found = native.kernels(dtype).Finder(A.kernel(dtype), self.native_rules, y, stop_flag(), table)
        if not (found.ended or self.rules.method == "lasso"):
            raise EndlessError(
                f"{self.rules.method} finds no end: translates nearly depend on one another; give a higher threshold "
                "(or atoms to 'mp')."
            )
        out = np.empty((found.count, 5))
        found.copy(out)
        return from_table(out, A.axes).shifted(first)


def to_table(events: Events) -> Array:
    """Events as kernels give and take them: rows of row, column, template, weight and score."""
    return np.column_stack([events.row, events.time, events.template, events.weight, events.score]).astype(np.float64)


def from_table(table: Array, axes: int) -> Events:
    """The events of such rows."""
    position = table[:, 1] if axes == 1 else table[:, :2]
    return Events(table[:, 2].astype(np.int64), position.astype(np.int64), table[:, 3].copy(), table[:, 4].copy())
