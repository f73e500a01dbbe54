"""An exact oracle below memory bandwidth: an 8-bit copy of the dictionary names the atoms worth a full product."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from pursuit._arrays import Array, Indices, Small, flat
from pursuit._ranking import Trust, contenders, order, rounding
from pursuit._threads import spread
from pursuit.atoms.frames import Atom
from pursuit.atoms.vectors import Dictionary

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

    def __init__(self, kernels: ModuleType, matrix: Array) -> None:
        m, n = matrix.shape
        self.scale = np.empty(n)
        self.coarse, sums = self._code(kernels.quantise, matrix)
        self.error, self.norm = self._up(sums[0], m), self._up(sums[1], m)
        self.room = ((2.0**31 - 1.0) / 127.0) ** 2 / m
        self.sound = bool(1e-280 < self.scale.min() <= self.scale.max() < 1e280)
        self.span = self.scale.min(), (self.scale * self.norm).max()

    def second(self, kernels: ModuleType, matrix: Array) -> tuple[Integers, Small]:
        """The code of what the first leaves, and the norms of what both leave; made when first asked for."""
        if not hasattr(self, "_second"):
            fine, sums = self._code(kernels.refine, matrix)
            self._second = fine, self._up(sums[0], len(matrix))
        return self._second

    def _code(self, kernel: Callable[..., None], matrix: Array) -> tuple[Integers, Small]:
        m, n = matrix.shape
        codes = np.zeros((n, -(-m // 64) * 64), dtype=np.int8)  # whole vectors: no loop has a remainder
        sums = np.empty((2, n))

        def work(start: int, stop: int) -> None:
            part = np.empty((2, stop - start))
            kernel(np.ascontiguousarray(matrix.T[start:stop]), self.scale[start:stop], codes[start:stop], part)
            sums[:, start:stop] = part

        spread(work, n, max(1, (1 << 18) // m))
        return codes, sums

    @staticmethod
    def _up(squares: Small, m: int) -> Small:
        eps = float(np.finfo(np.float64).eps)
        return np.asarray(np.sqrt(squares) * (1.0 + (m + 8) * eps) + 512.0 * eps * math.sqrt(m))


NO_CODES = np.empty((0, 64), dtype=np.int8)


class ScreenedDictionary(Dictionary):
    r"""A dictionary whose oracle reads an 8-bit copy first and recomputes only the atoms that could be the best.

    The answers of `lmo` and `best` are those of the plain `Dictionary`, always, bit for bit: same columns, same signs,
    same order. What differs is the time. Screening pays where D does not fit into the cache.

    **The bound.** Column a of D is kept as :math:`\tilde a = s q` with q of 8-bit integers and :math:`s = \max|a_i| /
    127`; g is rounded once per call to :math:`\tilde g = t p`, p of 16-bit integers and t a power of two. Then

    .. math:: a^\top g = \tilde a^\top \tilde g + (a - \tilde a)^\top \tilde g + a^\top (g - \tilde g), \qquad
              |a^\top g - s t\, q^\top p| \le st \left( E \|p\| + Z \rho \right)

    by Cauchy-Schwarz, with :math:`E = \|a/s - q\|` and :math:`Z = \|a/s\|` from the time the copy was made and
    :math:`\rho = \|g/t - p\|`. The integer :math:`q^\top p` is exact: t is so large that :math:`\|q\| \|p\| < 2^{31}`
    for every column, and sums of 32 bits may wrap on the way without harm. A column that the first code does not rule
    out is looked up in a second one of the rest :math:`254 (a/s - q)`, made when first needed, which makes E about 254
    times smaller.

    **In floating point.** E and Z are computed in float64 in units of s, whatever the scale of the column: entries of
    a/s err by less than 300 u (u the unit roundoff), norms by a factor :math:`1 + m u`, and both are rounded up by more
    than that. p, its norm and g/t - p are exact, as t is a power of two. What must be enclosed is not
    :math:`a^\top g` but the number that the plain product computes; it differs by at most :math:`\gamma_m |a|^\top |g|
    \le st\,\gamma_m Z (\|p\| + \rho)`, whatever the order of its sum, and the interval is widened by that with
    :math:`\gamma = 2 (m + 32) u > \gamma_m + 16 u`; the 16 u pay for evaluating the bound itself. Products that
    underflow err by at most the smallest normal number each; they add less than 1/1000 of a unit st, which is added
    too. Scales at which that fails, or at which anything overflows, go to the plain product, and so do g = 0 and
    infinite g.

    **Identical.** Let v be the `several`-th largest lower end of the intervals. A column whose upper end is below v is
    not among the `several` best of the plain product. The others are recomputed in float64, with
    :math:`|a|^\top |g|`; the plain product's number lies within :math:`2\gamma |a|^\top |g|` of that. If these narrow
    intervals have an order (each of the best lies above all that follow) it is the plain product's order. If two of
    them overlap - equal columns, or correlations that agree to the last bits - the order depends on how the BLAS sums,
    and the plain product is computed. So ties go where the plain product sends them: to the lowest index among equal
    computed numbers.

    Where more than a tenth of the columns remain, or the order is in doubt, that call costs a plain product on top, and
    the next calls (1, 3, 7, ... 63 as long as this goes on) leave screening out.

    Parameters
    ----------
    dictionary : Dictionary
        Of a dense NumPy array in float32 or float64, in any memory order. D is shared, not copied; the code takes one
        byte per entry (the length of a column rounded up to 64), an eighth of a float64 D, and as much again once the
        second is needed.

    Attributes
    ----------
    tally : Tally
        Calls, plain products and recomputed columns so far.

    Examples
    --------
    >>> import pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((20, 500))
    >>> A, y = ps.Dictionary(D), D[:, 7] - 2 * D[:, 300]
    >>> S = ScreenedDictionary(A)
    >>> S.lmo(y), A.lmo(y)
    (Atom(source=300, coef=1), Atom(source=300, coef=1))
    >>> ps.minimize(ps.LeastSquares(y), ps.lin(S), ps.FullyCorrective()).coef.nonzero()[0]
    array([  7, 300])
    """

    def __init__(self, dictionary: Dictionary) -> None:
        matrix = getattr(dictionary, "_matrix", None)
        if not isinstance(dictionary, Dictionary) or not isinstance(matrix, np.ndarray):
            raise TypeError(f"{dictionary!r} cannot be screened; give a Dictionary of a dense NumPy array.")
        if matrix.dtype not in (np.float32, np.float64):
            raise TypeError(f"D has dtype {matrix.dtype}; screening serves float32 and float64.")
        self.__dict__.update(dictionary.__dict__)
        from pursuit import _kernels  # compiles, or loads from the cache, on first use

        self._kernels: ModuleType = _kernels
        large = matrix.shape[0] >= 1 << 20  # sums of so many squares would have to be watched, too
        self._codes = None if large else Codes(_kernels, matrix)
        self._everyone = np.arange(self.n)
        self._trust, self.tally = Trust(), Tally()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kernels"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from pursuit import _kernels

        self.__dict__.update(state, _kernels=_kernels)

    def __repr__(self) -> str:
        return f"{super().__repr__()}.screened()"

    # ------------------------------------------------------------------ the oracle

    def lmo(self, g: Array) -> Atom:
        return self.best(g, 1)[0]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        self.tally.calls += 1
        found = None
        codes = self._codes
        fit = codes is not None and codes.sound and several * TENTH <= self.n and isinstance(g, np.ndarray)
        if codes is not None and fit and self._trust.tries():
            found = self._screen(codes, flat(g), several)
            self._trust.learn(found is not None)
        if found is None:
            self.tally.plain += 1
            return [super().lmo(g)] if several == 1 else super().best(g, several)
        return found

    def _screen(self, codes: Codes, g: Array, several: int) -> Sequence[Atom] | None:
        """The best atoms, or None where screening cannot prove which they are."""
        dtype = np.result_type(self._matrix, g)
        rounded = round_to_16_bits(g.astype(np.float64, copy=False), codes, dtype)
        if rounded is None:
            return None
        p, norm, rest = rounded
        rest += rounding(self._matrix.shape[0], dtype) * (norm + rest)
        remaining = contenders(*self._enclose(codes, (NO_CODES, codes.error), self._everyone, p, norm, rest), several)
        if len(remaining) * TENTH * TENTH > self.n + TENTH * TENTH * several:
            second = codes.second(self._kernels, self._matrix)
            finer = self._enclose(codes, second, remaining, p, norm, rest)
            remaining = remaining[contenders(*finer, several)]
        return None if len(remaining) * TENTH > self.n else self._recompute(remaining, g, dtype, several)

    def _enclose(
        self, codes: Codes, second: tuple[Integers, Small], which: Indices, p: Integers, norm: float, rest: float
    ) -> tuple[Small, Small, float]:
        """Lower and upper ends of intervals for the merits of these columns, and the largest lower end."""
        lower, upper, bests = np.empty(len(which)), np.empty(len(which)), []
        fine, error = second

        def work(start: int, stop: int) -> None:
            best = self._kernels.enclose(
                codes.coarse, fine, which[start:stop], p, error, codes.norm, codes.scale,
                norm, rest, self.symmetric, lower[start:stop], upper[start:stop],
            )  # fmt: skip
            bests.append(best)

        spread(work, len(which), max(1, (1 << 22) // codes.coarse.shape[1]))
        return lower, upper, max(bests)

    def _recompute(self, which: Indices, g: Array, dtype: Any, several: int) -> Sequence[Atom] | None:
        """The best of the remaining columns by full products, where their order is beyond doubt."""
        rows, places = self._matrix.T, which
        if not rows.flags.c_contiguous:
            rows, places = np.ascontiguousarray(rows[which]), np.arange(len(which))
        value, size = np.empty(len(which)), np.empty(len(which))
        full = np.ascontiguousarray(g, dtype=np.float64)

        def work(start: int, stop: int) -> None:
            self._kernels.dots(rows, places[start:stop], full, value[start:stop], size[start:stop])

        spread(work, len(which), max(1, (1 << 19) // len(full)))
        merit = np.abs(value) if self.symmetric else -value
        doubt = 2.0 * rounding(len(full), dtype) * size + len(full) * float(np.finfo(dtype).tiny)
        winners = order(merit, doubt, several)
        if winners is None or (self.symmetric and bool((merit <= doubt)[winners].any())):  # who, or of which sign?
            return None
        self.tally.recomputed += len(which)
        return [self.column(int(which[i]), -1.0 if self.symmetric and value[i] > 0 else 1.0) for i in winners]


# ---------------------------------------------------------------------- rounding


def round_to_16_bits(g: Small, codes: Codes, dtype: Any) -> tuple[Integers, float, float] | None:
    """p with g = t (p + rest), its norm and that of the rest, rounded up; None where g is zero or out of range."""
    largest = float(np.abs(g).max())
    if not 0.0 < largest < math.inf:
        return None
    exponent = math.frexp(largest)[1] - 14  # |g| / t < 2^14
    while True:
        scaled = np.ldexp(g, -exponent)
        rounded = np.rint(scaled)
        squared = float(rounded @ rounded)  # exact: integers below 2^53
        if squared < codes.room:
            break
        exponent += 1
    limits, t = np.finfo(dtype), math.ldexp(1.0, max(exponent, -1070))
    unit, size = codes.span[0] * t, codes.span[1] * t * (math.sqrt(squared) + math.sqrt(len(g)))
    if not (unit > 1e4 * len(g) * float(limits.tiny) and size < 1e-2 * float(limits.max)):
        return None
    p = np.zeros(codes.coarse.shape[1], dtype=np.int16)
    p[: len(g)] = rounded
    rest = scaled - rounded
    slack = 1.0 + (len(g) + 8) * float(np.finfo(np.float64).eps)
    return p, math.sqrt(squared) * slack, math.sqrt(float(rest @ rest)) * slack + 1e-12
