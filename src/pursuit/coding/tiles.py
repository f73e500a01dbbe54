"""A tile: some signals, ready for the kernels, and their codes.

Signals are multiplied by powers of two, which changes no digit, where their squares could over- or underflow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit import native
from pursuit.coding.request import Array, Request
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
        rows, kind = slice(start, start + len(codes.counts)), request.inputs.dtype
        y, w, tols, penalties = request.inputs.Y[rows], None, request.tols[rows], request.penalties[rows]
        if request.inputs.weights is not None:
            w = request.inputs.weights[rows]
            y = np.where(w > 0, y, 0)
            halves = np.frexp(w.max(axis=1))[1] // 2  # weights divided by 4^half, norms by 2^half
            w, tols = np.ldexp(w, -2 * halves[:, None]), np.ldexp(tols, -halves)
            penalties = np.ldexp(penalties, -2 * halves)
        squares = _squared_norms(y, w)
        self.exponents = np.zeros(len(y), np.intc)
        if not (squares.min() > 2.0**-80 and squares.max() < 2.0**80):  # NaN too
            peaks = np.abs(y).max(axis=1)
            if not np.isfinite(peaks).all():
                row = start + int(np.flatnonzero(~np.isfinite(peaks))[0])
                raise ValueError(f"row {row} of Y contains NaN or infinity; give such entries weight 0 or impute them.")
            self.exponents = np.frexp(peaks)[1]
            y = np.ldexp(y, -self.exponents[:, None])
        y = np.require(y, kind, ["C", "W"])
        w = None if w is None else np.require(w, kind, "C")
        self.y, self.weights, self.codes = y, w, codes
        tols, limits = np.ldexp(tols, -self.exponents).astype(kind), np.ascontiguousarray(request.limits[rows])
        penalties = np.ldexp(penalties, -self.exponents - request.exponent).astype(kind)
        codes.counts[:] = UNSOLVED
        self.signals = native.kernels(kind).Signals(
            y=y,
            weights=w,
            limits=limits,
            tols=tols,
            penalties=penalties,
            atoms=codes.atoms,
            x=codes.x,
            counts=codes.counts,
            stop=stop_flag(),
        )

    @property
    def unsolved(self) -> Array:
        """The numbers of the signals that have no code yet."""
        return np.flatnonzero(self.codes.counts == UNSOLVED)

    def packed(self, exponent: int, nonnegative: bool) -> tuple[Array, Array, Array]:
        """Counts, atoms and weights, one code after the other, of a dictionary that was divided by 2^exponent."""
        codes = self.codes
        which = slice(None) if int(codes.counts.sum()) == codes.x.size else codes.used
        atoms, x = codes.atoms[which].ravel(), codes.x[which].ravel()
        if exponent or self.exponents.any():
            with np.errstate(all="ignore"):
                scaled = np.ldexp(x, np.repeat(self.exponents - exponent, codes.counts))
            if not (np.isfinite(scaled) & ((scaled != 0) | (x == 0))).all():
                raise ValueError(f"some weights are out of the range of {x.dtype}; bring D and Y to similar scales.")
            x[:] = scaled
        return codes.counts, atoms, np.maximum(x, 0, out=x) if nonnegative else x


def _squared_norms(y: Array, w: Array | None) -> Array:
    squares: Array = np.einsum("ij,ij->i", y, y) if w is None else np.einsum("ij,ij,ij->i", w, y, y)
    return squares
