"""Least squares over few columns in rational numbers, for columns that floating point cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from operator import mul

import numpy as np

from pursuit.arrays import Indices, Small


class Exact:
    """Columns of double-precision numbers, those that do not count first, then those that are chosen from, then y."""

    def __init__(self, uncounted: Small, chosen: Small, y: Small, weights: Small, l2: float) -> None:
        self._columns, self._first = [*uncounted.T, *chosen.T, y], uncounted.shape[1]
        self._weights, self._l2 = _integers(weights), Fraction(l2)
        self._of = cache(lambda i: _integers(self._columns[i]))
        self.product = cache(self._product)

    def _product(self, i: int, j: int) -> Fraction:
        (a, first), (b, second), (s, third) = self._of(i), self._of(j), self._weights
        return Fraction(sum(map(mul, map(mul, a, b), s))) * Fraction(2) ** (first + second + third)

    def _solve(self, places: Sequence[int] | Indices, l2: Fraction) -> tuple[list[int], list[Fraction]]:
        """Numbers of columns and their coefficients; a column that depends on those before it has none."""
        columns = [*range(self._first), *(self._first + int(j) for j in places)]
        ridge = [l2 * (i >= self._first) for i in columns]
        last = len(self._columns) - 1
        rows = [[self.product(i, j) + ridge[a] * (i == j) for j in [*columns, last]] for a, i in enumerate(columns)]
        used = []
        for a, row in enumerate(rows):
            if not row[a]:
                continue
            used.append(a)
            row[:] = [v / row[a] for v in row]
            for other in rows:
                if other is not row and other[a]:
                    other[:] = [v - other[a] * w for v, w in zip(other, row, strict=True)]
        return [columns[a] for a in used], [rows[a][-1] for a in used]

    def independent(self, places: Sequence[int] | Indices) -> list[int]:
        """The columns that do not depend on those before them and on the uncounted ones."""
        return [i - self._first for i in self._solve(places, Fraction())[0] if i >= self._first]

    def least(self, places: Sequence[int] | Indices, positive: Indices | None = None) -> Fraction:
        """The least value with these columns; with `positive` the least on their cone if only these are used there, and
        0 if that is not so."""
        used, b = self._solve(places if positive is None else positive, self._l2)
        last = len(self._columns) - 1

        def slope(j: int) -> Fraction:
            return self.product(j, last) - sum(
                (self.product(i, j) * v for i, v in zip(used, b, strict=True)), Fraction()
            )

        if positive is not None and (
            any(v < 0 for i, v in zip(used, b, strict=True) if i >= self._first)
            or any(slope(self._first + int(j)) > 0 for j in places if self._first + int(j) not in used)
        ):
            return Fraction()
        explained = sum((self.product(i, last) * v for i, v in zip(used, b, strict=True)), Fraction())
        return (self.product(last, last) - explained) / 2


def _integers(v: Small) -> tuple[list[int], int]:
    """Integers and e, so that v = 2^e times them."""
    mantissas, powers = np.frexp(v)
    low = int(powers.min(initial=0, where=mantissas != 0))
    whole = (mantissas * 2.0**53).astype(np.int64)
    return [int(m) << max(int(e) - low, 0) for m, e in zip(whole, powers, strict=True)], low - 53
