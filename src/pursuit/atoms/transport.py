"""Transport plans."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
import scipy.sparse as sp

from pursuit.arguments import floating_array, real_array, require
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import Atoms, Found, Search
from pursuit.atoms.frames import Atom
from pursuit.atoms.programs import Polytope, membership
from pursuit.atoms.sparse import SparseAtom
from pursuit.state import Stateful


class Transport(Atoms):
    r"""The transport plans between the masses a and b: the matrices :math:`\{X \ge 0 : X 1 = a, X^\top 1 = b\}`. The
    oracle names a vertex, which has at most m + n - 1 nonzeros.

    Where all masses of a are equal, and all of b, and one number of points divides the other, the oracle is an
    assignment problem; else it is a linear program, whose dual variables prove the bound (see `Polytope`, also for
    highspy).
    The masses are positive and have the same sum.

    >>> import numpy as np, pursuit as ps
    >>> A = ps.Transport([0.5, 0.5], [0.25, 0.75])
    >>> A.lmo(np.array([[0.0, 1.0], [1.0, 3.0]])).vector
    array([[0.  , 0.5 ],
           [0.25, 0.25]])
    >>> ps.minimize(ps.LeastSquares(np.zeros((2, 2))), ps.conv(A)).x.round(6)      # the quadratic regulariser alone
    array([[0.125, 0.375],
           [0.125, 0.375]])
    """

    convex = True

    def __init__(self, a: object, b: object) -> None:
        self.a, self.b = (_masses(v, name) for v, name in ((a, "a"), (b, "b")))
        total = float(self.a.sum())
        if not abs(total - float(self.b.sum())) <= 1e-12 * len(self.a) * total:
            raise ValueError(f"a has the sum {total:.15g}, b {float(self.b.sum()):.15g}; give masses of one sum.")
        self.shape = m, n = len(self.a), len(self.b)
        uniform = all(bool((v == v[0]).all()) for v in (self.a, self.b))
        self._copies = (max(n // m, 1), max(m // n, 1)) if uniform and max(m, n) % min(m, n) == 0 else None
        limits = np.minimum(self.a[:, None], self.b[None, :])
        self._program = None if self._copies else self._linear_program(limits)
        self.radius = math.sqrt(min(float((limits**2).sum()), total * float(limits.max())))
        self.diameter = math.sqrt(2.0) * self.radius if min(m, n) > 1 else 0.0
        self.width = -float(np.linalg.norm(self.a) * np.linalg.norm(self.b)) / total  # the plan a b' / total

    def _linear_program(self, limits: Small) -> Polytope:
        """The equation of the last column follows from the others, and would contradict them by rounding."""
        m, n = limits.shape
        sums = sp.vstack([sp.kron(sp.eye_array(m), np.ones((1, n))), sp.kron(np.ones((1, m)), sp.eye_array(n))])
        bounds = np.stack([np.zeros(m * n), limits.ravel()], axis=1)
        return Polytope(A_eq=sums.tocsr()[:-1], b_eq=np.concatenate([self.a, self.b])[:-1], bounds=bounds)

    def begin(self, seed: int = 0) -> Search:
        return _PlanSearch(self, None if self._program is None else self._program.begin(seed))

    def _assign(self, costs: Small) -> Small:
        assert self._copies is not None
        down, across = self._copies
        rows, cols = scipy.optimize.linear_sum_assignment(np.repeat(np.repeat(costs, down, axis=0), across, axis=1))
        plan = np.zeros(self.shape or ())
        np.add.at(plan, (rows // down, cols // across), min(self.a[0], self.b[0]))
        return plan.ravel()

    def sample(self, rng: np.random.Generator) -> Atom:
        """A vertex by the rule of the north-west corner, rows and columns in random order."""
        rows, cols = rng.permutation(len(self.a)), rng.permutation(len(self.b))
        ends = np.cumsum(self.a[rows]), np.cumsum(self.b[cols])
        ends[1][-1] = ends[0][-1]
        cuts = np.union1d(*ends)
        where = (rows[np.searchsorted(ends[0], cuts)], cols[np.searchsorted(ends[1], cuts)])
        return SparseAtom(np.ravel_multi_index(where, self.shape or ()), np.diff(cuts, prepend=0.0), self.shape or ())

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        return abs(self.gauge(a) - 1.0) <= membership(a)

    def gauge(self, x: Array) -> float:
        X, total = host(x), float(self.a.sum())
        level, slack = float(X.sum()) / total, membership(x) * float(np.abs(X).sum())
        sums = np.abs(X.sum(axis=1) - level * self.a).max(), np.abs(X.sum(axis=0) - level * self.b).max()
        return level if X.min() >= -slack and max(sums) <= slack else math.inf

    def __repr__(self) -> str:
        return f"Transport({len(self.a)} x {len(self.b)})"


def _masses(values: object, name: str) -> Small:
    masses = host(real_array(values, name))
    require(masses.ndim == 1 and len(masses) > 0, name, masses, "a vector of masses")
    positive = bool((masses > 0).all())
    require(positive, f"the least of {name}", masses.min(), "positive masses, and leave empty points out")
    return masses


@dataclass(eq=False)
class _PlanSearch(Stateful):
    """The transport problems of one run: assignments, or linear programs."""

    A: Transport
    solve: Search | None

    def __call__(self, g: Array, several: int, level: float) -> Found:
        g = floating_array(g, "g")
        require(tuple(g.shape) == self.A.shape, "g", g, f"a vector of the shape {self.A.shape} of the plans")
        costs = host(g)
        if self.solve is None:
            plan, lower = self.A._assign(costs), None
        else:
            plans, lower = self.solve(costs.ravel(), several, level)
            plan = plans[0].vector
        places = np.flatnonzero(plan)
        atom = SparseAtom(places, plan[places], self.A.shape or ())
        return [atom], atom.dot(Space.of(g), g) if lower is None else lower
