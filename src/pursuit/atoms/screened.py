"""An exact oracle that reads an 8-bit copy of the dictionary, and only a few atoms of the dictionary itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pursuit.arrays import Array, flat
from pursuit.atoms.frames import Atom
from pursuit.atoms.screening import Screen, Tally
from pursuit.atoms.vectors import Dictionary


class ScreenedDictionary(Dictionary):
    r"""A dictionary whose oracle reads an 8-bit copy first and recomputes only the atoms that could be the best.

    `lmo` and `best` always give the answers of the plain `Dictionary`: the same columns with the same signs in the same
    order, and the same bits. They are faster where D does not fit into the cache.

    **The bound.** Column a of D is kept as :math:`\tilde a = s q` with q of 8-bit integers and :math:`s = \max|a_i| /
    127`; g is rounded once per call to :math:`\tilde g = t p`, p of 16-bit integers and t a power of two. Then

    .. math:: a^\top g = \tilde a^\top \tilde g + (a - \tilde a)^\top \tilde g + a^\top (g - \tilde g), \qquad
              |a^\top g - s t\, q^\top p| \le st \left( E \|p\| + Z \rho \right)

    by Cauchy-Schwarz, with :math:`E = \|a/s - q\|` and :math:`Z = \|a/s\|` from the time the copy was made and
    :math:`\rho = \|g/t - p\|`. The integer :math:`q^\top p` is exact: t is so large that :math:`\|q\| \|p\| < 2^{31}`
    for every column; partial sums may wrap around in 32 bits, which does not change the result. Columns that the first
    code does not rule out are compared by a second code, of :math:`254 (a/s - q)`, which makes E about 254 times
    smaller. It is made when it is first needed.

    **In floating point.** E and Z are computed in float64 in units of s, whatever the scale of the column: entries of
    a/s err by less than 300 u (u the unit roundoff), norms by a factor :math:`1 + m u`, and both are rounded up by more
    than that. p, its norm and g/t - p are exact, as t is a power of two. The interval must contain not
    :math:`a^\top g` but the number that the plain product computes. The two differ by at most :math:`\gamma_m |a|^\top
    |g| \le st\,\gamma_m Z (\|p\| + \rho)`, whatever the order of summation. The interval is widened by that bound with
    :math:`\gamma = 2 (m + 32) u > \gamma_m + 16 u`, where 16 u covers the rounding of the bound itself. Products that
    underflow err by at most the smallest normal number each, together by less than 1/1000 of the unit st, which is
    added, too. Where that is not so, or where anything could overflow, the plain product answers; so it does for g = 0
    and for infinite g.

    **Identical.** Let v be the `several`-th largest lower end of the intervals. A column whose upper end is below v is
    not among the `several` best of the plain product. The others are recomputed in float64, with
    :math:`|a|^\top |g|`; the plain product's number lies within :math:`2\gamma |a|^\top |g|` of that. If these narrow
    intervals have an order (each of the best lies above all that follow) it is the plain product's order. If two of
    them overlap (equal columns, or correlations that agree to the last bits), the order depends on how the BLAS sums,
    and the plain product is computed. So ties are decided as by the plain product: the lowest index wins among equal
    computed numbers.

    A call in which more than a tenth of the columns remain, or the order is in doubt, computes the plain product as
    well. The next call then uses the plain product at once; after further failures the next 3, 7, ... 63 calls do.

    Parameters
    ----------
    A : Dictionary
        Of a dense NumPy array D in float32 or float64, in any memory order. D is shared. The first code takes one byte
        per entry (with columns padded to a multiple of 64 entries), an eighth of a float64 D; the second code takes as
        much again.

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

    def __init__(self, A: Dictionary) -> None:
        matrix = getattr(A, "_matrix", None)
        if not isinstance(A, Dictionary) or not isinstance(matrix, np.ndarray):
            raise TypeError(f"{A!r} cannot be screened; give a Dictionary of a dense NumPy array.")
        if matrix.dtype not in (np.float32, np.float64):
            raise TypeError(f"D has dtype {matrix.dtype}; screening serves float32 and float64.")
        self.__dict__.update(A.__dict__)
        self._screen = Screen(matrix)

    @property
    def tally(self) -> Tally:
        """Calls, plain products and recomputed columns so far."""
        return self._screen.tally

    def __repr__(self) -> str:
        return f"{super().__repr__()}.screened()"

    def lmo(self, g: Array) -> Atom:
        return self.best(g, 1)[0]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        found = self._screen.best(flat(g), several, self.symmetric) if isinstance(g, np.ndarray) else None
        if found is None:
            return [super().lmo(g)] if several == 1 else super().best(g, several)
        signs = np.where(found[1] > 0, -1.0, 1.0) if self.symmetric else np.ones(len(found[0]))
        return [self.column(int(j), float(sign)) for j, sign in zip(found[0], signs, strict=True)]
