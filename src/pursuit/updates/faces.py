"""Frank-Wolfe steps within faces, without an active set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Space
from pursuit.atoms.frames import Atom
from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.state import Stateful
from pursuit.steps import Length, Move, Step
from pursuit.updates.base import Advance, Now, Update, single
from pursuit.updates.walks import Walk

SNAP = 64.0
"""Entries of x that are nearer to a bound than this many units of roundoff are at it."""


@dataclass(frozen=True)
class DecompositionInvariant(Walk):
    r"""Decomposition-invariant pairwise Frank-Wolfe (Garber and Meshi, 2016): weight moves from the worst vertex v of
    the smallest face that has x to the oracle's vertex z, and no active set is kept.

    .. math:: x_{t+1} = x_t + \gamma (z - v), \quad z = \arg\min_a \langle g, a\rangle, \quad
              v = \arg\max_{a \in F(x_t)} \langle g, a\rangle.

    Two oracle calls an iteration, and memory for x alone. It converges linearly on polytopes whose faces are given by
    bounds on the entries: `Simplex`, `Box`, `Hypersimplex`, `Permutations` and their multiples (`Atoms.entry_bounds`).
    The result has one atom, x itself.

    Parameters
    ----------
    step : LineSearch, ShortStep, Monotone or a function of a Move, optional
        None: an exact line search where f has a Hessian, a short step elsewhere.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> Y = np.random.default_rng(0).random((8, 8)) / 4
    >>> r = ps.minimize(ps.LeastSquares(Y), ps.conv(ps.Permutations(8)), ps.DecompositionInvariant())
    >>> r.status.name, r.x.sum(axis=0).round(9), len(r.atoms)
    ('GAP', array([1., 1., 1., 1., 1., 1., 1., 1.]), 1)
    """

    cites: ClassVar[tuple[str, ...]] = ("garber2016linear",)
    step: Step | None = None
    faces = True
    """The oracle names the worst vertex of the face, too, as the second atom of its answer."""

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        part = single(domain, self)
        if not part.compact or part.A.entry_bounds is None:
            name = "DecompositionInvariant"
            raise ValueError(f"{name} needs a hull with faces x_i = bound, such as a simplex; over {part!r} use Away.")
        return _InFace(space, self._length(f, domain, space), part.A.entry_bounds)

    decrease = Update.decrease  # its rates rest on faces, which no function of rates knows


@dataclass(eq=False)
class _InFace(Stateful):
    """The steps of one run."""

    space: Space
    length: Length
    bounds: tuple[Array, Array]

    def __call__(self, now: Now, active: ActiveSet) -> None:
        answer, space = now.answers[0], self.space
        z, v = answer.atoms[:2]
        d = v.add_to(space, z.dense(space), -1.0)
        slope, reach = answer.dot - v.dot(space, now.grad), _reach(space, active.x, d, *self.bounds)
        gamma = self.length(Move(now.iteration, active.x, now.value, d, slope, reach, answer.delta))
        if gamma > 0.0:
            active.replace([1.0], [Atom(_snapped(space, active.x + gamma * d, *self.bounds))])


def _reach(space: Space, x: Array, d: Array, low: Array, high: Array) -> float:
    """The longest step along d between the bounds."""
    xp = space.xp
    room = xp.where(d > 0, high - x, x - low)
    steps = room / xp.where(d == 0, xp.ones_like(x), xp.abs(d))
    return max(float(xp.min(xp.where(d == 0, xp.ones_like(x) * xp.inf, steps))), 0.0) if bool(xp.any(d != 0)) else 0.0


def _snapped(space: Space, x: Array, low: Array, high: Array) -> Array:
    """x with the entries that rounding keeps from a bound at that bound."""
    near = SNAP * space.eps * (high - low)
    x = space.xp.where(x <= low + near, low + 0.0 * x, x)
    return space.xp.where(x >= high - near, high + 0.0 * x, x)
