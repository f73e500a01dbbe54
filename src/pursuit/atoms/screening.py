"""Which columns of a matrix have the largest products with a vector, by an 8-bit copy that rules most of them out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit import _kernels
from pursuit._arrays import Array, Indices, Small
from pursuit._ranking import Trust, contenders, order, rounding
from pursuit._threads import spread

Integers = np.ndarray[Any, np.dtype[np.integer[Any]]]

TENTH = 10  # the plain product is as fast once more than n / TENTH columns must be recomputed


@dataclass
class Tally:
    """What screening did: calls, those that ended in a plain product, and columns recomputed in the others."""

    calls: int = 0
    plain: int = 0
    recomputed: int = 0


class Codes:
    """The dictionary in 8 bits: column j is scale_j (coarse_j + fine_j / 254) up to a rest of known norm.

    Attributes
    ----------
    coarse : (n, width) int8, rows padded with zeros to a multiple of 64
    scale : (n,)
    error, norm : (n,)
        Norms of what the first code leaves of a column, and of the column, in units of its scale; rounded up.
    room : float
        The squared norm that p may have so that no product with a row of a code leaves 32 bits.
    sound : bool
        Whether the scales leave room for the bounds.
    span : the smallest scale, and the largest norm of a column.
    """

    def __init__(self, matrix: Array) -> None:
        m, n = matrix.shape
        self.scale = np.empty(n)
        self.coarse, sums = self._code(_kernels.quantise, matrix, self.scale)
        self.error, self.norm = self._up(sums[0], m), self._up(sums[1], m)
        self.room = ((2.0**31 - 1.0) / 127.0) ** 2 / m
        self.sound = bool(1e-280 < self.scale.min() <= self.scale.max() < 1e280)
        self.span = self.scale.min(), (self.scale * self.norm).max()

    def second(self, matrix: Array) -> tuple[Integers, Small]:
        """The code of what the first leaves, and the norms of what both leave; made when first asked for."""
        if not hasattr(self, "_second"):
            fine, sums = self._code(_kernels.refine, matrix, self.scale, self.coarse)
            self._second = fine, self._up(sums[0], len(matrix))
        return self._second

    @staticmethod
    def _code(kernel: Callable[..., None], matrix: Array, *known: Small | Integers) -> tuple[Integers, Small]:
        m, n = matrix.shape
        codes = np.empty((n, -(-m // 64) * 64), dtype=np.int8)  # whole vectors: no loop has a remainder
        codes[:, m:] = 0
        sums = np.empty((2, n))

        def work(start: int, stop: int) -> None:
            part, rows = np.empty((2, stop - start)), np.ascontiguousarray(matrix.T[start:stop])
            kernel(rows, *(a[start:stop] for a in known), codes[start:stop], part)
            sums[:, start:stop] = part

        spread(work, n, max(1, (1 << 18) // m))
        return codes, sums

    @staticmethod
    def _up(squares: Small, m: int) -> Small:
        eps = float(np.finfo(np.float64).eps)
        return np.asarray(np.sqrt(squares) * (1.0 + (m + 8) * eps) + 512.0 * eps * math.sqrt(m))


NO_CODES = np.empty((0, 64), dtype=np.int8)


def copy(matrix: Array) -> Codes | None:
    """The code of a matrix, or None where the bounds do not hold: its scales, or sums of so many squares."""
    codes = Codes(matrix) if matrix.shape[0] < 1 << 20 else None
    return codes if codes is not None and codes.sound else None


class Screen:
    """The best columns of a matrix, proved: `ScreenedDictionary` says how. Its tally tells what it cost.

    Parameters
    ----------
    matrix : (m, n) NumPy array in float32 or float64, in any memory order
    """

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix
        self.codes = copy(matrix)
        self._everyone = np.arange(matrix.shape[1])
        self.trust, self.tally = Trust(), Tally()

    def best(self, g: Array, several: int, signed: bool) -> tuple[Indices, Small] | None:
        """The columns with the `several` largest |<a, g>| (or smallest <a, g>, if not `signed`), best first, and their
        products with g; None where it takes the plain product to tell."""
        self.tally.calls += 1
        found, codes, n = None, self.codes, self.matrix.shape[1]
        if codes is not None and several * TENTH <= n and self.trust.tries():
            found = self._find(codes, g, several, signed)
            self.trust.learn(found is not None)
        self.tally.plain += found is None
        return found

    def _find(self, codes: Codes, g: Array, several: int, signed: bool) -> tuple[Indices, Small] | None:
        dtype, n = np.result_type(self.matrix, g), self.matrix.shape[1]
        full = np.ascontiguousarray(g, dtype=np.float64)
        rounded = round_to_16_bits(full, codes, dtype)
        if rounded is None:
            return None
        p, norm, rest = rounded
        rest += rounding(len(g), dtype) * (norm + rest)
        ends = self._enclose(codes, (NO_CODES, codes.error), self._everyone, p, norm, rest, signed)
        many = n // (TENTH * TENTH) + several  # beyond that, the second code is worth a look
        if several == 1 and self.matrix.T.flags.c_contiguous:
            doubt = 2.0 * rounding(len(g), dtype), len(g) * float(np.finfo(dtype).tiny)
            j, value, tried = _kernels.winner(self.matrix.T, *ends[1:], full, signed, *doubt, many)
            if tried <= many:
                self.tally.recomputed += tried if j >= 0 else 0
                return (np.array([j]), np.array([value])) if j >= 0 else None
        remaining = contenders(*ends, several)
        if len(remaining) > many:
            second = codes.second(self.matrix)
            finer = self._enclose(codes, second, remaining, p, norm, rest, signed)
            remaining = remaining[contenders(*finer, several)]
        return None if len(remaining) * TENTH > n else self._recompute(remaining, full, dtype, several, signed)

    def _enclose(
        self, codes: Codes, second: tuple[Integers, Small], which: Indices, p: Integers, norm: float, rest: float,
        signed: bool,
    ) -> tuple[Small, Small, float]:  # fmt: skip
        """Lower and upper ends of intervals for the merits of these columns, and the largest lower end."""
        lower, upper, bests = np.empty(len(which)), np.empty(len(which)), []
        fine, error = second

        def work(start: int, stop: int) -> None:
            best = _kernels.enclose(
                codes.coarse, fine, which, start, stop, p, error, codes.norm, codes.scale, norm, rest, signed,
                lower, upper,
            )  # fmt: skip
            bests.append(best)

        width = codes.coarse.shape[1]
        spread(work, len(which), max((1 << 18) // width, min((1 << 22) // width, -(-len(which) // 4))))
        return lower, upper, max(bests)

    def _recompute(
        self, which: Indices, g: Small, dtype: Any, several: int, signed: bool
    ) -> tuple[Indices, Small] | None:
        """The best of the remaining columns by full products, where their order is beyond doubt."""
        rows, places = self.matrix.T, which
        if not rows.flags.c_contiguous:
            rows, places = np.ascontiguousarray(rows[which]), np.arange(len(which))
        value, size = np.empty(len(which)), np.empty(len(which))

        def work(start: int, stop: int) -> None:
            _kernels.dots(rows, places[start:stop], g, value[start:stop], size[start:stop])

        spread(work, len(which), max(1, (1 << 19) // len(g)))
        merit = np.abs(value) if signed else -value
        doubt = 2.0 * rounding(len(g), dtype) * size + len(g) * float(np.finfo(dtype).tiny)
        winners = order(merit, doubt, several)
        if winners is None or (signed and bool((merit <= doubt)[winners].any())):  # who, or of which sign?
            return None
        self.tally.recomputed += len(which)
        return which[winners], value[winners]


def round_to_16_bits(g: Small, codes: Codes, dtype: Any) -> tuple[Integers, float, float] | None:
    """p with g = t (p + rest), its norm and that of the rest, rounded up; None where g is zero or out of range."""
    p = np.zeros(codes.coarse.shape[1], dtype=np.int16)
    exponent, length, rest = _kernels.shorten(g, codes.room, p)
    limits, t = np.finfo(dtype), math.ldexp(1.0, exponent)
    unit, size = codes.span[0] * t, codes.span[1] * t * (length + math.sqrt(len(g)))
    if not (length > 0.0 and unit > 1e4 * len(g) * float(limits.tiny) and size < 1e-2 * float(limits.max)):
        return None
    return p, length, rest
