"""Line 7 of Algorithms 3 and 4 for disjoint groups: the directions of all active groups move together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.linalg

from pursuit.active import ActiveSet
from pursuit.arguments import describe, number, use_python_numbers
from pursuit.arrays import Array, Indices, Small
from pursuit.atoms.combinations import Image
from pursuit.atoms.frames import Atom
from pursuit.atoms.groups import Groups
from pursuit.deadline import Deadline
from pursuit.domains import Domain, Part
from pursuit.linalg import accelerated_gradient, project_solid_simplex
from pursuit.line_search import line_search
from pursuit.objectives import Objective


@dataclass(frozen=True)
class Regroup:
    r"""One atom per active group: all directions and weights move together.

    The atoms of a group are all unit vectors on it, and the oracle names one of them per call, so without this
    refinement a group needs many atoms. Let v be the coordinates of the active groups. The point x = x(v) is linear in
    v; it lies in the domain if :math:`\sum_G w_G \|v_G\| \le 1` (`conv`), or for every v (`lin`, `cone`). This is one
    Newton step on :math:`f(x(v))` under this constraint, with an exact line search: f never increases, and for
    quadratic f the step ends at the minimum over the active groups. Then :math:`v_G` becomes one atom with the weight
    :math:`w_G \|v_G\|`. Weight that is left over in a hull goes to an atom and its negative in equal parts, which does
    not change x.

    It needs an f with a Hessian. Summands whose atoms do not come from `Groups` (as they are, scaled, or through a map)
    are not changed.

    Parameters
    ----------
    accuracy : float
        The small problem is solved to this fraction of its first gap.

    Examples
    --------
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
        if not 0 < number(self.accuracy) < 1:
            raise ValueError(f"accuracy is {describe(self.accuracy)}; give a fraction between 0 and 1.")
        use_python_numbers(self)

    @staticmethod
    def serves(f: Objective, domain: Domain) -> bool:
        """Whether f has a Hessian and a summand of the domain has atoms of groups."""
        known = f.has_hessian
        return known and any(_groups(part) is not None for part in domain.parts)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> tuple[Any, ...] | None:
        x, weights, atoms, blocks, moved = active.x, [], [], [], False
        for b, part in enumerate(domain.parts):
            mine = [int(i) for i in active.support if active.blocks[i] == b]
            w, members = active.weights[mine], [active.atoms[i] for i in mine]
            piece = _Piece.of(part, active, w, members)
            if piece is not None:
                found = piece.step(f, x, self.accuracy)
                if found is not None:
                    x, w, members, moved = *found, True
            weights.append(w)
            atoms.extend(members)
            blocks.extend([b] * len(members))
        return (np.concatenate(weights), atoms, blocks) if moved else None


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
        self.frame.deadline = active.deadline
        sums: dict[int, Any] = {}
        for w, a in zip(weights, atoms, strict=True):
            name, direction = a.source
            sums[name] = sums.get(name, 0.0) + (w if a.coef > 0 else -w) * np.array(direction)
        self.names, self.v = list(sums), np.concatenate(list(sums.values()))
        sizes = np.array([len(u) for u in sums.values()], dtype=np.intp)
        self.starts: Indices = np.cumsum(sizes) - sizes
        for name, size in zip(self.names, sizes, strict=True):
            for direction in np.eye(size):
                self.frame.enter(self._image(name, direction))

    @classmethod
    def of(cls, part: Part, active: ActiveSet, weights: Small, atoms: list[Atom]) -> _Piece | None:
        """The coordinates of these atoms; None where one of them is no atom of the groups."""
        groups = _groups(part)
        if groups is None or not atoms or any(groups.rebuild(a) is None for a in atoms):
            return None
        return cls(part, groups, active, weights, atoms)

    def _image(self, name: int, direction: Small) -> Atom:
        atom = self.part.asked.rebuild(self.groups.unit(name, direction))
        assert atom is not None
        return atom

    def step(self, f: Objective, x: Array, accuracy: float) -> tuple[Array, Small, list[Atom]] | None:
        """One Newton step: the new point, weights and atoms; None where it would not descend."""
        hessian, space = f.hessian(x), self.frame.space
        if hessian is None:
            return None
        q, every = self.frame.analyze(f.value_and_grad(x)[1]), np.arange(len(self.v))
        Q = self.frame.gram(hessian, every)
        if self.part.compact:
            d = minimise_on_group_ball(Q, q, self.v, self.starts, accuracy, deadline=self.frame.deadline) - self.v
        else:
            d = -np.linalg.lstsq(Q, q, rcond=None)[0]
        along, slope = self.frame.synthesize(d), float(q @ d)
        gamma = line_search(f, space, x, along, slope, 1.0 if self.part.compact else math.inf)
        if not gamma > 0:
            return None
        return x + gamma * along, *self._atoms(self.v + gamma * d)

    def _atoms(self, v: Small) -> tuple[Small, list[Atom]]:
        """v as weights on one atom per group; the remaining weight of a hull goes to both signs of the first atom."""
        pieces, norms = np.split(v, self.starts[1:]), _norms(v, self.starts)
        atoms = [self._image(name, u) for name, u, norm in zip(self.names, pieces, norms, strict=True) if norm > 0]
        weights, slack = norms[norms > 0], 1.0 - float(norms.sum())
        if not self.part.compact:
            return weights, atoms
        if slack <= 1e-14 * len(v):  # rounding
            return weights / weights.sum(), atoms
        first = atoms[0] if atoms else self._image(self.names[0], pieces[0])
        opposite = self.part.asked.rebuild(first.scaled(-1.0))
        assert opposite is not None
        return np.append(weights, [slack / 2, slack / 2]), [*atoms, first, opposite]


def _norms(v: Small, starts: Indices) -> Small:
    return np.asarray(np.sqrt(np.add.reduceat(v * v, starts)))


def minimise_on_group_ball(
    Q: Small, q: Small, v: Small, starts: Indices, accuracy: float, steps: int = 2000, deadline: Deadline = Deadline()
) -> Small:
    """argmin of <q, u - v> + <u - v, Q (u - v)> / 2 over sum_G ||u_G|| <= 1, groups beginning at `starts`: accelerated
    projected gradient with restarts, until the Frank-Wolfe gap is this fraction of the first."""
    L = float(scipy.linalg.eigvalsh(Q, subset_by_index=[len(q) - 1, len(q) - 1])[0])
    if not L > 0:
        return v

    def gap(u: Small) -> float:
        slope = q + Q @ (u - v)
        return float(slope @ u) + float(_norms(slope, starts).max())

    u, goal = v, accuracy * gap(v)
    iterates = accelerated_gradient(lambda y: project_group_ball(y - (q + Q @ (y - v)) / L, starts), v)
    for u in islice(iterates, 9, steps, 10):  # the gap costs a product, so it is computed every 10 steps
        if gap(u) <= goal or deadline.passed:
            break
    return u


def project_group_ball(v: Small, starts: Indices) -> Small:
    """The nearest point with sum_G ||u_G|| <= 1: every norm shrinks by the same amount, down to 0."""
    norms = _norms(v, starts)
    shrunk = project_solid_simplex(norms, 1.0)
    factors = np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0)
    return np.asarray(v * np.repeat(factors, np.diff(np.append(starts, len(v)))))
