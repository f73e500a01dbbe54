r"""The Hessian of a function without one, learned from the gradients of a run (Byrd, Nocedal and Schnabel, 1994).

Steps :math:`s_j` of x and the changes :math:`y_j` of the gradient over them, the columns of S and Y, give the matrix of
limited-memory BFGS, positive definite where every :math:`\langle s_j, y_j\rangle > 0`,

.. math:: B = \sigma I - W M^{-1} W^\top, \qquad W = [\sigma S,\ Y], \qquad
          M = \begin{pmatrix} \sigma S^\top S & L \\ L^\top & -D \end{pmatrix},

with L the part of :math:`S^\top Y` below its diagonal and D the diagonal. Only the Gram matrix :math:`A^\top B A` of
the active atoms is needed: that of I, which grows with the active set, and the products of the atoms with S and Y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Indices, Small, Space
from pursuit.atoms.frames import Atom
from pursuit.metrics import Identity
from pursuit.objectives import Objective, inside
from pursuit.state import Stateful

MAX_PAIRS = 24
"""Steps of x that are remembered."""

LEAST_CURVATURE = 1e-10
"""<s, y> of a pair that is remembered, at least, as a fraction of ||s|| ||y||: less may be rounding."""


def _empty() -> Small:
    return np.zeros((0, 0))


@dataclass(eq=False)
class LearnedHessian(Stateful):
    """The Hessian of one run, learned from its gradients."""

    _space: Space
    _sigma: float = field(default=0.0, init=False)
    _last: tuple[Array, Array] | None = field(default=None, init=False)
    _steps: list[Array] = field(default_factory=list, init=False)
    _changes: list[Array] = field(default_factory=list, init=False)
    _products: tuple[Small, Small] = field(default_factory=lambda: (_empty(), _empty()), init=False)
    """S'S and S'Y."""
    _members: list[Atom] = field(default_factory=list, init=False)
    _identity: Small = field(default_factory=_empty, init=False)
    """The Gram matrix of the members."""

    def begin(self, f: Objective, x: Array, grad: Array, toward: Array, slope: float) -> None:
        """Learn from the gradient at x. Where nothing else is known, look a little ahead in the direction `toward`."""
        self.observe(x, grad)
        if self._steps:
            return
        h = 1e-3
        for _ in range(50):
            value, ahead = f.value_and_grad(x + h * toward)
            if inside(self._space, value, ahead):
                self._learn(h * toward, ahead - grad)
                break
            h *= 0.5
        if not self._steps:
            square = self._space.dot(toward, toward)
            self._sigma = abs(slope) / square if square > 0 else 1.0

    def observe(self, x: Array, grad: Array) -> None:
        """Learn from the step since the last gradient."""
        if self._last is not None:
            self._learn(x - self._last[0], grad - self._last[1])
        self._last = x, grad

    def _learn(self, step: Array, change: Array) -> None:
        product, size = self._space.dot(step, change), self._space.norm(change)
        if not LEAST_CURVATURE * self._space.norm(step) * size < product < math.inf:
            return
        unit = self._space.norm(step)  # pairs of unit length: the products of S and Y stay within the range of floats
        self._steps.append(step / unit)
        self._changes.append(change / unit)
        self._forget(MAX_PAIRS)
        dot, S, Y = self._space.dot, self._steps, self._changes
        SS, SY = np.zeros((2, len(S), len(S)))
        SS[:-1, :-1], SY[:-1, :-1] = self._products
        SS[-1], SY[-1], SY[:-1, -1] = (
            [dot(S[-1], s) for s in S],
            [dot(S[-1], y) for y in Y],
            [dot(s, Y[-1]) for s in S[:-1]],
        )
        SS[:, -1] = SS[-1]
        self._products, self._sigma = (SS, SY), size / product * size

    def _forget(self, most: int) -> None:
        """Keep the last pairs only: at most `most`, a new one included."""
        kept = most - (len(self._steps) - len(self._products[0]))
        del self._steps[:-most], self._changes[:-most]
        start = max(len(self._products[0]) - kept, 0)
        self._products = self._products[0][start:, start:], self._products[1][start:, start:]

    def gram(self, active: ActiveSet, which: Indices) -> Small:
        """<a, B b> for all pairs of the atoms at these places."""
        self._extend(active)
        G = self._sigma * self._identity[np.ix_(which, which)]
        if not self._steps:
            return G
        space, sigma = self._space, self._sigma
        S, Y = self._steps, self._changes
        SS, SY = self._products
        lower = np.tril(SY, -1)
        M = np.block([[sigma * SS, lower], [lower.T, -np.diag(SY.diagonal())]])
        W = np.stack([*(sigma * active.analyze(s)[which] for s in S), *(active.analyze(y)[which] for y in Y)], axis=1)
        scale = np.sqrt(np.abs(M.diagonal()))  # to a unit diagonal, whatever the units of f
        W, M = W / scale, M / np.outer(scale, scale)
        if not np.isfinite(M).all() or np.linalg.cond(M) > 1.0 / (16.0 * space.eps):
            self._forget(1)  # nearly dependent steps: the last one alone
            return G if len(SS) == 1 else self.gram(active, which)
        return np.asarray(G - W @ np.linalg.solve(M, W.T))

    def _extend(self, active: ActiveSet) -> None:
        """Keep the Gram matrix of I up to date with the active set."""
        known = len(self._members)
        if self._members != active.atoms[:known]:
            known, self._identity = 0, np.zeros((0, 0))
        if known < len(active.atoms):
            rows = active.rows(Identity(), known)
            self._identity = np.block([[self._identity, rows[:, :known].T], [rows]])
        self._members = list(active.atoms)

    def adapt(self, gamma: float, mean_curvature: float, solved: bool) -> None:
        """The next gradient says it all."""
