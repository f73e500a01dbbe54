r"""Powers of two by which atoms, signals and weights are divided, so that no square over- or underflows.

Such a division changes no digit. Atoms :math:`a_j / 2^{p_j}`, a signal :math:`y / 2^q` and its weights :math:`w / 4^h`
have the code :math:`x_j 2^{p_j - q}`, the tolerance :math:`\tau / 2^{q + h}` and the penalty
:math:`\lambda / 2^{p + q + 2h}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Exponents = Any
"""One integer, or an array of them."""


@dataclass(frozen=True)
class Scale:
    """The exponents p of the atoms, one or one for each, and q and h, one for each signal.

    >>> scale = Scale(atom=3)
    >>> float(scale.atoms(np.array([8.0]))[0]), scale.restore(np.array([16.0]), np.array([0]), np.array([1]))
    (1.0, array([2.]))
    """

    atom: Exponents = 0
    signal: Exponents = 0
    weight: Exponents = 0

    def atoms(self, D: Array) -> Array:
        return np.ldexp(D, -self.atom) if _any(self.atom) else D

    def gram(self, G: Array) -> Array:
        p = np.broadcast_to(self.atom, len(G))
        return np.ldexp(G, -p - p[:, None]) if _any(self.atom) else G

    def signals(self, Y: Array) -> Array:
        return np.ldexp(Y, -self.signal[:, None]) if _any(self.signal) else Y

    def weights(self, W: Array) -> Array:
        return np.asarray(np.ldexp(W, -2 * self.weight[:, None]))

    def tolerances(self, tols: Array) -> Array:
        return np.asarray(np.ldexp(tols, -self.signal - self.weight))

    def penalties(self, penalties: Array) -> Array:
        return np.asarray(np.ldexp(penalties, -self.atom - self.signal - 2 * self.weight))

    def restore(self, x: Array, atoms: Array, counts: Array) -> Array:
        """The weights x of the user's atoms and signals, from those of the scaled ones; `counts` of them a signal."""
        if not (_any(self.atom) or _any(self.signal)):
            return x
        p = self.atom[atoms] if np.ndim(self.atom) else self.atom
        q = np.repeat(self.signal, counts) if np.ndim(self.signal) else self.signal
        with np.errstate(all="ignore"):
            restored: Array = np.ldexp(x, q - p)
        if not (np.isfinite(restored) & ((restored != 0) | (x == 0))).all():
            raise ValueError(f"some weights are out of the range of {x.dtype}; bring D and Y to similar scales.")
        return restored


def _any(exponents: Exponents) -> bool:
    """Whether an exponent is not 0; np.any takes microseconds for one integer."""
    return bool(exponents) if isinstance(exponents, int) else bool(exponents.any())
