"""Line 7 of Algorithms 3 and 4 for disjoint groups: the directions of all active groups move together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy.linalg

from pursuit.active import ActiveSet, Deadline
from pursuit.arguments import number, require, use_python_numbers
from pursuit.arrays import Array, Indices, Small
from pursuit.atoms.combinations import Image
from pursuit.atoms.frames import Atom
from pursuit.atoms.groups import Groups
from pursuit.domains import Domain, Part
from pursuit.linalg import accelerated_gradient, project_solid_simplex
from pursuit.line_search import line_search
from pursuit.objectives import Objective
from pursuit.refine.proposals import Proposal, rebuilt

MAX_STEPS = 2000
"""Accelerated gradient steps on the small problem of a hull."""


@dataclass(frozen=True)
class Regroup:
    r"""One atom per active group: all directions and weights move together.

    The atoms of a group are all unit vectors on it, and the oracle names one of them per call, so without this
    refinement a group needs many atoms. Let v be the coordinates of the active groups. The point x = x(v) is linear in
    v; it lies in the domain if :math:`\sum_G w_G \|v_G\| \le 1` (`conv`), or for every v (`lin`, `cone`). This is one
    Newton step on :math:`f(x(v))` under this constraint, with an exact line search: f never increases, and for
    quadratic f the step ends at the minimum over the active groups, found to the fraction `accuracy` of its first gap.
    Then :math:`v_G` becomes one atom with the weight :math:`w_G \|v_G\|`. Weight that is left over in a hull goes to an
    atom and its negative in equal parts, which does not change x.

    It needs an f with a Hessian. Summands whose atoms do not come from `Groups` (as they are, scaled, or through a map)
    are not changed.

    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X, beta = rng.standard_normal((100, 200)), np.repeat([1.0, 0.0], [30, 170])       # 3 of 20 groups
    >>> f = ps.LeastSquares(X @ beta + rng.standard_normal(100))
    >>> domain = ps.conv(9.0 * ps.Groups(np.arange(200) // 10).through(X))
    >>> r, plain = ps.minimize(f, domain), ps.minimize(f, domain, ps.FullyCorrective(several=64))
    >>> r.refine, r.oracle_calls < 10 < 50 < plain.oracle_calls
    (Regroup(accuracy=0.001), True)
    """

    accuracy: float = 1e-3

    def __post_init__(self) -> None:
        require(0 < number(self.accuracy) < 1, "accuracy", self.accuracy, "a fraction between 0 and 1")
        use_python_numbers(self)

    @staticmethod
    def serves(f: Objective, domain: Domain) -> bool:
        """Whether f has a Hessian and a summand of the domain has atoms of groups."""
        return f.has_hessian and any(_groups(part) is not None for part in domain.parts)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        x, weights, atoms, blocks, moved = active.x, [], [], [], False
        for b, part in enumerate(domain.parts):
            places = active.of(b)
            w, members, groups = active.weights[places], [active.atoms[i] for i in places], _groups(part)
            if groups is not None and members and all(groups.rebuild(a) is not None for a in members):
                after = _Piece(part, groups, active, w, members).step(f, x, self.accuracy)
                if after is not None:
                    x, w, members = after
                    moved = True
            weights.append(w)
            atoms.extend(members)
            blocks.extend([b] * len(members))
        return Proposal(np.concatenate(weights), atoms, np.array(blocks)) if moved else None


def _groups(part: Part) -> Groups | None:
    """The groups that the part's atoms come from, scaled or seen through maps."""
    base = part.A
    while isinstance(base, Image):
        base = base.base
    return base if isinstance(base, Groups) else None


class _Piece:
    """The active groups of one summand, by coordinates v: x = sum_i v_i (image of coordinate i), and over a hull
    sum_G ||v_G|| <= 1."""

    def __init__(self, part: Part, groups: Groups, active: ActiveSet, weights: Small, atoms: list[Atom]) -> None:
        self.part, self.groups, self.frame = part, groups, ActiveSet(active.space, [True])
        self.deadline = active.deadline
        sums: dict[int, Small] = {}
        for w, a in zip(weights, atoms, strict=True):
            name, direction = a.source
            sums[name] = sums.get(name, 0.0) + (w if a.coef > 0 else -w) * np.array(direction)
        self.names, self.v = list(sums), np.concatenate(list(sums.values()))
        sizes = np.array([len(u) for u in sums.values()], dtype=np.intp)
        self.starts: Indices = np.cumsum(sizes) - sizes
        for name, size in zip(self.names, sizes, strict=True):
            for direction in np.eye(size):
                self.frame.enter(self._image(name, direction))

    def _image(self, name: int, direction: Small) -> Atom:
        return rebuilt(self.part, self.groups.unit(name, direction))

    def step(self, f: Objective, x: Array, accuracy: float) -> tuple[Array, Small, list[Atom]] | None:
        """One Newton step: the new point, weights and atoms; None where it would not descend."""
        hessian = f.hessian(x)
        if hessian is None:
            return None
        q, Q = self.frame.analyze(f.value_and_grad(x)[1]), self.frame.gram(hessian, np.arange(len(self.v)))
        if self.part.compact:
            u = GroupBall(self.starts).minimise(Q, q, self.v, accuracy, self.deadline)
            d = u - self.v
        else:
            d = -np.linalg.lstsq(Q, q, rcond=None)[0]
        along, reach = self.frame.synthesize(d), 1.0 if self.part.compact else math.inf
        gamma = line_search(f, x, along, float(q @ d), reach)
        if not gamma > 0:
            return None
        return x + gamma * along, *self._atoms(self.v + gamma * d)

    def _atoms(self, v: Small) -> tuple[Small, list[Atom]]:
        """v as weights on one atom per group; the remaining weight of a hull goes to both signs of the first atom."""
        pieces, norms = np.split(v, self.starts[1:]), GroupBall(self.starts).norms(v)
        atoms = [self._image(name, u) for name, u, norm in zip(self.names, pieces, norms, strict=True) if norm > 0]
        weights, slack = norms[norms > 0], 1.0 - float(norms.sum())
        if not self.part.compact:
            return weights, atoms
        if slack <= 1e-14 * len(v):  # rounding
            return weights / weights.sum(), atoms
        first = atoms[0] if atoms else self._image(self.names[0], pieces[0])
        return np.append(weights, [slack / 2, slack / 2]), [*atoms, first, rebuilt(self.part, first.scaled(-1.0))]


@dataclass(frozen=True)
class GroupBall:
    """The vectors u with sum_G ||u_G|| <= 1, for groups G of neighbours that begin at `starts`."""

    starts: Indices

    def norms(self, v: Small) -> Small:
        """||v_G|| of each group."""
        return np.asarray(np.sqrt(np.add.reduceat(v * v, self.starts)))

    def project(self, v: Small) -> Small:
        """The nearest point of the ball: every norm shrinks by the same amount, down to 0."""
        norms = self.norms(v)
        shrunk = project_solid_simplex(norms, 1.0)
        factors = np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0)
        return np.asarray(v * np.repeat(factors, np.diff(np.append(self.starts, len(v)))))

    def minimise(self, Q: Small, q: Small, v: Small, accuracy: float, deadline: Deadline = Deadline()) -> Small:
        """argmin of <q, u - v> + <u - v, Q (u - v)> / 2 over the ball: accelerated projected gradient with restarts,
        until the Frank-Wolfe gap is this fraction of the first."""
        L = float(scipy.linalg.eigvalsh(Q, subset_by_index=[len(q) - 1, len(q) - 1])[0])
        if not L > 0:
            return v

        def gap(u: Small) -> float:
            slope = q + Q @ (u - v)
            return float(slope @ u) + float(self.norms(slope).max())

        u, goal = v, accuracy * gap(v)
        iterates = accelerated_gradient(lambda y: self.project(y - (q + Q @ (y - v)) / L), v)
        for u in islice(iterates, 9, MAX_STEPS, 10):  # the gap costs a product, so it is computed every 10 steps
            if gap(u) <= goal or deadline.passed:
                break
        return u
