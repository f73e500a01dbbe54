"""The ways to improve a dictionary when the codes, or their supports, stay.

Atoms have norm 1 before and after. Where the best atom is longer or shorter, its weights take the factor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit.coding.request import Array
from pursuit.dictionaries.signals import LearningPlan, Signals


@dataclass(frozen=True)
class Statistics:
    r"""All that a dictionary update needs to know of signals and their codes, whatever their number: X'X and Y'X.

    They add up: statistics of parts of the signals, coded on the same dictionary, perhaps on several machines, have as
    their sum the statistics of all. The dictionary that minimises :math:`\|Y - X D^\top\|_F^2` depends on them only.

    Parameters
    ----------
    XX : array of shape (n_atoms, n_atoms)
    YX : array of shape (n_features, n_atoms)
    uses : array of shape (n_atoms,)
        The number of codes that use each atom.
    signals : int

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit import encode
    >>> from pursuit.dictionaries import Statistics
    >>> rng = np.random.default_rng(0)
    >>> D, Y = np.eye(3), rng.standard_normal((100, 3))
    >>> def of(part):
    ...     return Statistics.of(part, encode(D, part, atoms=2))
    >>> together = of(Y[:30]) + of(Y[30:])
    >>> np.allclose(together.YX, of(Y).YX), together.signals, int(together.uses.sum())
    (True, 100, 200)
    >>> better, _ = together.improve(D)
    >>> np.linalg.norm(better, axis=0)
    array([1., 1., 1.])
    """

    XX: Array
    YX: Array
    uses: Array
    signals: int

    @classmethod
    def of(cls, Y: Any, codes: Any) -> Statistics:
        """The statistics of signals, the rows of Y, and of their codes, the rows of a sparse matrix."""
        X = sp.csr_array(codes)
        uses = np.bincount(X.indices[X.data != 0], minlength=X.shape[1]).astype(np.float64)
        return cls((X.T @ X).toarray(), np.ascontiguousarray((X.T @ Y).T), uses, X.shape[0])

    def __add__(self, other: Statistics) -> Statistics:
        signals = self.signals + other.signals
        return replace(self, XX=self.XX + other.XX, YX=self.YX + other.YX, uses=self.uses + other.uses, signals=signals)

    def __mul__(self, weight: float) -> Statistics:
        """The statistics where every signal has this weight; their number stays what it was."""
        return replace(self, XX=weight * self.XX, YX=weight * self.YX, uses=weight * self.uses)

    __rmul__ = __mul__

    def improve(
        self, D: Any, penalised: bool = False, nonnegative: bool = False, passes: int = 1
    ) -> tuple[Array, Array]:
        r"""A better dictionary by block coordinate descent, and the factors by which weights on its atoms change.

        Atom k minimises :math:`\|Y - X D^\top\|_F^2` while the others stay, and the minimum has a closed form:
        :math:`d_k + (Y^\top X - D X^\top X)_k / (X^\top X)_{kk}`, cut at 0 for a non-negative dictionary. With a
        penalty on the weights, ``penalised``, it is projected onto the unit ball. At the end atoms are scaled to norm
        1. None of this raises the objective. Atoms that nobody uses stay; a factor of 0 says that an atom is best not
        used.
        """
        old, A, B = np.asarray(D), self.XX, self.YX
        D, diagonal = np.array(D, order="F"), A.diagonal()
        for k in np.tile(np.flatnonzero(diagonal > 0), passes):
            d = D[:, k]
            d += (B[:, k] - D @ A[k]) / diagonal[k]
            if nonnegative:
                np.maximum(d, 0, out=d)
            if penalised and (square := float(d @ d)) > 1:
                d /= square**0.5
        factors = np.linalg.norm(D, axis=0)
        empty = factors == 0
        D /= np.where(empty, 1, factors)
        D[:, empty] = old[:, empty]
        factors[diagonal <= 0] = 1
        return D, factors

    def rescale(self, factors: Array) -> Statistics:
        """The statistics of codes whose weights on each atom are multiplied by a factor."""
        return replace(self, XX=self.XX * factors * factors[:, None], YX=self.YX * factors)

    def without(self, atoms: Array, uses: float) -> Statistics:
        """The statistics after these atoms have been replaced: no code uses them, they are counted as used so often."""
        factors = np.ones(len(self.XX), self.XX.dtype)
        factors[atoms] = 0
        counts = self.uses.copy()
        counts[atoms] = uses
        return replace(self.rescale(factors), uses=counts)


BLOCK_BYTES = 2**19
"""Bytes of the residuals that a sweep looks at together: they and their changes stay in a cache of the processor."""


def impute(signals: Signals, R: Array) -> tuple[Array, float]:
    r"""Signals without weights, and one weight for all of them, whose squared error majorises that with weights.

    With weights of at most c, :math:`\sum_t w_t (y_t - m_t)^2 \le c \sum_t (\hat y_t - m_t)^2` + a constant for every
    m, where :math:`\hat y = m_0 + w (y - m_0) / c`, with equality at the current approximation
    :math:`m_0 = D x = y - r`. So an update that lowers the right side lowers the left one: a missing entry
    is taken to be what the dictionary says it is.
    """
    if signals.W is None:
        return signals.Y, 1.0
    most = float(signals.W.max(initial=0)) or 1.0
    return signals.Y - R + signals.W * R / most, most


def rank_one_sweep(plan: LearningPlan, signals: Signals, D: Array, X: sp.csr_array, R: Array) -> None:
    r"""Approximate K-SVD (Rubinstein, Zibulevsky, Elad 2008): each atom and its weights in turn, in place.

    With E the residuals of the signals that use atom k without its share, one step of alternating minimisation of
    :math:`\frac12\|E - x d^\top\|_F^2 + \lambda\|x\|_1`: first over the unit vector d, then over x, whose support
    stays. Weights of entries: d is the minimiser in every entry for itself, which the refit of x then completes;
    with a penalty, the minimiser of the majorant of `impute`.
    """
    places = sp.csr_array((np.arange(X.nnz), X.indices, X.indptr), shape=X.shape).tocsc()  # entries of X by atom
    ends, block = places.indptr, max(1, BLOCK_BYTES // (signals.features * R.itemsize))
    buffers = np.empty((2, block, signals.features), R.dtype)
    for k in range(X.shape[1]):
        entries, users = places.data[ends[k] : ends[k + 1]], places.indices[ends[k] : ends[k + 1]]
        x, old = X.data[entries], D[:, k].copy()
        if not x.any():
            continue
        parts = [slice(start, start + block) for start in range(0, len(users), block)]

        def read_residuals(part: slice, users: Array = users) -> tuple[Array, Array, Array | None]:
            E, change = buffers[:, : len(users[part])]
            np.take(R, users[part], axis=0, out=E, mode="clip")  # "raise" would copy
            return E, change, None if signals.W is None else signals.W[users[part]]

        step, curvature, most = np.zeros_like(old), np.zeros_like(old), 0.0
        for part in parts:
            E, change, W = read_residuals(part)
            if W is not None:
                curvature += W.T @ np.square(x[part])
                most = max(most, float(W.max()))
                np.multiply(W, E, out=E)
            step += E.T @ x[part]
        if signals.W is None:
            d = step + old * (x @ x)
        else:
            curvature = np.full_like(old, most * (x @ x)) if plan.penalty else curvature
            d = old + np.divide(step, curvature, out=np.zeros_like(old), where=curvature > 0)
        if plan.nonnegative:
            np.maximum(d, 0, out=d)
        norm = float(np.linalg.norm(d))
        d = d / norm if norm > 0 else old
        for part in parts:
            E, change, W = read_residuals(part)
            if W is None:
                new = plan.shrink(E @ d + x[part] * (old @ d), np.ones_like(x[part]))
            else:
                np.multiply(W, E + np.outer(x[part], old), out=change)
                new = plan.shrink(change @ d, W @ np.square(d))
            X.data[entries[part]] = new
            np.matmul(np.column_stack([x[part], -new]), np.stack([old, d]), out=change)
            E += change
            R[users[part]] = E
        D[:, k] = d
