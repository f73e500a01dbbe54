r"""One step of Newton's method on the weights of S, damped where the Hessian misleads.

With the slopes :math:`q = (\langle\nabla f(x), a\rangle)_a` and the Gram matrices H and E of the atoms, in the Hessian
at x and in the norm of the space, the model of f around the weights w is

.. math:: m(d) = \langle q, d\rangle + \tfrac12 d^\top (H + \lambda E)\, d, \qquad w + d \text{ feasible.}

Its minimiser, found exactly (`pursuit.weights`), is a direction in which f descends, and a line search goes as far
along it as f and the constraints allow. Where sigmoids are saturated, residuals are in the linear part of Huber's loss
or :math:`e^x` leaves the range of floats, H vanishes, is singular or is not finite. Then the model may have no minimum,
and the step is one of gradient descent: :math:`m(d) = \langle q, d\rangle + \tfrac{c}{2} d^\top E d`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Indices, Small
from pursuit.domains import Domain
from pursuit.linalg import CholeskyFactor
from pursuit.line_search import line_search, tilted
from pursuit.metrics import Identity
from pursuit.objectives import Objective
from pursuit.state import Stateful
from pursuit.updates.learned import LearnedHessian
from pursuit.weights import WeightProblem


@dataclass(eq=False)
class Damping(Stateful):
    r"""The damping :math:`\lambda` of one run (Levenberg, 1944; Marquardt, 1963).

    Where the line search goes only the fraction gamma of a step, the mean curvature of f on the way is 1 / gamma times
    that of the model. The difference is added, so that the next model is right about this direction, however little the
    Hessian at x says about it. After full steps the damping falls, ever faster.
    """

    value: float = field(default=0.0, init=False)
    _fall: float = field(default=0.1, init=False)

    def adapt(self, gamma: float, mean_curvature: float) -> None:
        """Adjust the damping after a step of the model."""
        if 0 < gamma < 0.5:
            self.raise_to(self.value + (1.0 - gamma) * mean_curvature)
        elif gamma >= 0.9:
            self.value, self._fall = self._fall * self.value, self._fall * self._fall
            if self.value < 1e-12 * mean_curvature:
                self.value, self._fall = 0.0, 0.1

    def raise_to(self, value: float) -> None:
        """Set the damping to this value, if it is larger and finite."""
        if self.value < value < math.inf:
            self.value, self._fall = value, 0.1


@dataclass(eq=False)
class DampedHessian(Stateful):
    """The Hessian of f at x, damped."""

    _f: Objective
    _damping: Damping = field(default_factory=Damping, init=False)

    def gram(self, active: ActiveSet, which: Indices) -> Small:
        """<a, (H + lambda I) b> for all pairs of the atoms at these places."""
        hessian = self._f.hessian(active.x)
        assert hessian is not None
        G = active.gram(hessian, which)
        return G + self._damping.value * active.gram(Identity(), which) if self._damping.value > 0 else G

    def adapt(self, gamma: float, mean_curvature: float, solved: bool) -> None:
        """Adjust the damping after a step, which was that of the model if this was solved."""
        self._damping.adapt(gamma, mean_curvature) if solved else self._damping.raise_to(mean_curvature)

    def observe(self, x: Array, grad: Array) -> None:
        """Nothing is learned."""


def slopes(domain: Domain, active: ActiveSet, grad: Array) -> Small:
    """<grad, a> for the atoms of S, minus <grad, x_b> in the blocks of hulls: there steps sum to zero, so a constant
    changes nothing, and a large one would spoil the digits of the slope of a step."""
    q = active.slopes(grad)
    levels = np.bincount(active.blocks, q * active.weights, len(domain.parts))
    return q - np.where(domain.hulls, levels, 0.0)[active.blocks]


class Slope(NamedTuple):
    """Where a Newton step begins: the value of f, the slopes of the atoms, the gap at which the steps end, and the
    share of its slope that a line search may leave."""

    value: float
    q: Small
    goal: float
    tolerance: float


def newton_step(
    f: Objective, domain: Domain, active: ActiveSet, at: Slope, model: DampedHessian | LearnedHessian
) -> bool:
    """Minimise f along the step of the model or, where this has no minimum, along a gradient step. Returns False if
    neither descends. Unused atoms take part if the descents of all blocks like theirs would exceed half the goal."""
    value, q, goal, tolerance = at
    space, nonnegative = active.space, domain.signs[active.blocks]
    which = np.flatnonzero((active.weights != 0) | ~nonnegative | (q < -0.5 * goal / len(domain.parts)))
    if not len(which):
        return False
    d, solved = _model_step(domain, active, which, model.gram(active, which), q[which])
    if not solved:
        E = active.gram(Identity(), which)
        c = float(np.abs(q[which]).max(initial=0.0)) / float(E.diagonal().max(initial=1.0))  # weights move by about 1
        d, _ = _model_step(domain, active, which, c * E, q[which])
    hulls = [np.flatnonzero(active.blocks == b) for b in np.flatnonzero(domain.hulls)]
    for mine in hulls:  # steps of a hull sum to 0: a long step would magnify the rounding of the sum
        d[mine[active.weights[mine].argmax()]] -= d[mine].sum()
    slope, vector = float(q @ d), active.synthesize(d)
    if not slope < 0:
        return False
    limits = np.where(nonnegative & (d < 0), active.weights / np.where(d < 0, -d, 1.0), math.inf)
    if solved and -slope <= 16.0 * space.eps * abs(value):
        gamma = 1.0  # a line search would see rounding only
    else:
        priced, size = tilted(f, space, vector, active.cost_of(d)), space.norm(vector)
        gamma = line_search(priced, active.x, vector, slope, max(1.0, float(limits.min())), tolerance)
        model.adapt(gamma, -slope / size / (gamma * size) if gamma * size > 0 else math.inf, solved)
    active.weights = np.where(limits <= gamma, 0.0, active.weights + gamma * d)
    for mine in hulls:
        active.weights[mine] /= active.weights[mine].sum()
    active.refresh()
    return True


def _model_step(domain: Domain, active: ActiveSet, which: Indices, G: Small, q: Small) -> tuple[Small, bool]:
    """The step d, zero outside the places `which`, to the minimum of <q, d> + d'Gd/2 under the constraints, and whether
    this was found: False where the model has no minimum, or rounding hides it."""
    d, top = np.zeros(len(active.weights)), float(G.diagonal().max(initial=0.0))
    if not (np.isfinite(G).all() and top > 0):
        return d, False
    G, q, w, blocks = G / top, q / top, active.weights[which], active.blocks[which]
    nonnegative = domain.signs[blocks]
    if not nonnegative.any() and np.isnan([part.total for part in domain.parts]).all():  # linear equations
        scale, factor = np.sqrt(G.diagonal()), CholeskyFactor()
        if scale.min() > 0 and factor.build(G / np.outer(scale, scale)):
            d[which] = -factor.solve(q / scale) / scale
            return d, True
    new = WeightProblem.of(G, nonnegative, blocks, [part.total for part in domain.parts]).descend(q, w)
    d[which] = new - w
    left = domain.inner_gap(new, q + G @ (new - w), blocks)
    return d, bool(q @ (new - w) < 0 and left <= 0.5 * domain.inner_gap(w, q, blocks))
