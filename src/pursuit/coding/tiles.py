"""A tile: some signals, scaled where their squares could over- or underflow, and their codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pursuit import native
from pursuit.coding.request import Array, Request, check_finite_rows
from pursuit.threads import stop_flag

UNSOLVED = -1
"""Takes the place of the number of atoms of a code that no strategy has found yet."""


@dataclass
class Codes:
    """Atoms and weights, one row per signal, of which the first `counts` entries count."""

    atoms: Array
    x: Array
    counts: Array

    @classmethod
    def empty(cls, limits: Array, dtype: Any) -> Codes:
        shape = len(limits), int(limits.max(initial=1))
        return cls(np.empty(shape, np.int32), np.empty(shape, dtype), np.full(len(limits), UNSOLVED))

    def rows(self, start: int, stop: int) -> Codes:
        return Codes(self.atoms[start:stop], self.x[start:stop], self.counts[start:stop])

    @property
    def used(self) -> Array:
        """Which entries count."""
        return np.arange(self.x.shape[1]) < self.counts[:, None]


class Tile:
    """Some signals, scaled, and their codes; `signals` is what the kernels are told of both."""

    def __init__(self, request: Request, start: int, codes: Codes) -> None:
        rows, dtype, rules = slice(start, start + len(codes.counts)), request.dtype, request.rules
        y, w, scale = request.Y[rows], None, request.scale
        if request.weights is not None:
            w = request.weights[rows]
            y = np.where(w > 0, y, 0)
            scale = replace(scale, weight=np.frexp(w.max(axis=1))[1] // 2)
            w = scale.weights(w)
        squares = np.einsum("ij,ij->i", y, y) if w is None else np.einsum("ij,ij,ij->i", w, y, y)
        if not (squares.min() > 2.0**-80 and squares.max() < 2.0**80):  # NaN too
            peaks = np.abs(y).max(axis=1)
            check_finite_rows(peaks, start)
            scale = replace(scale, signal=np.frexp(peaks)[1])
            y = scale.signals(y)
        penalties = request.rules.penalties[rows]
        self.y = np.require(y, dtype, ["C", "W"])
        self.weights = None if w is None else np.require(w, dtype, "C")
        self.codes, self.scale, self.nonnegative = codes, scale, rules.nonnegative
        codes.counts[:] = UNSOLVED
        self.signals = native.kernels(dtype).Signals(
            y=self.y,
            weights=self.weights,
            limits=np.ascontiguousarray(rules.limits[rows]),
            tols=scale.tolerances(rules.tols[rows]).astype(dtype),
            penalties=(scale.penalties(penalties) if rules.is_lasso else penalties).astype(dtype),
            atoms=codes.atoms,
            x=codes.x,
            counts=codes.counts,
            stop=stop_flag(),
        )

    @property
    def unsolved(self) -> Array:
        """The numbers of the signals that have no code yet."""
        return np.flatnonzero(self.codes.counts == UNSOLVED)

    def pack(self) -> tuple[Array, Array, Array]:
        """Counts, atoms and weights, one code after the other, for the user's atoms and signals."""
        codes = self.codes
        which = slice(None) if int(codes.counts.sum()) == codes.x.size else codes.used
        atoms, x = codes.atoms[which].ravel(), codes.x[which].ravel()
        restored = self.scale.restore(x, atoms, codes.counts)
        if restored is not x:
            x[:] = restored  # in the array that all tiles share
        return codes.counts, atoms, np.maximum(x, 0, out=x) if self.nonnegative else x
