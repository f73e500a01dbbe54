"""Hull and span: the domain says which directions exist, how far one may go, what binds the weights, and what an
oracle's answer proves.

| | toward | weights on S |
|---|---|---|
| `conv` | z - x, step in [0, 1] | simplex |
| `lin` | z, any step | free |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pursuit._arrays import Array, Small, Space
from pursuit.active import ActiveSet
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.frames import Atom
from pursuit.weights import WeightProblem


class Domain:
    """What `conv` and `lin` share. `asked` is the set that the oracle is asked, `atoms` the one the user gave."""

    signless: bool
    nonneg: bool
    total: float
    reach: float

    def __init__(self, atoms: Atoms) -> None:
        if not isinstance(atoms, Atoms):
            kind = type(atoms).__name__
            raise TypeError(f"a domain is made of atoms, not of {kind}; wrap a matrix in Dictionary(...).")
        self.atoms = atoms
        self.asked = atoms

    def direction(self, space: Space, x: Array, z: Atom) -> Array:
        """Where a step towards the atom leads."""
        raise NotImplementedError

    def slope(self, gz: float, gx: float) -> float:
        """<grad, direction> from <grad, z> and <grad, x>."""
        raise NotImplementedError

    def move(self, active: ActiveSet, z: Atom, gamma: float) -> None:
        """The weights after a step gamma towards the atom."""
        raise NotImplementedError

    def lower(self, value: float, gz: float, gx: float, delta: float, mu: float) -> float:
        """A lower bound on f over the domain that an answer of quality delta proves."""
        raise NotImplementedError

    def weight_problem(self) -> WeightProblem:
        """An empty small problem with this domain's constraints."""
        return WeightProblem([self.total])

    def admits(self, weights: Small) -> bool:
        """Whether weights satisfy the domain's constraint, up to rounding."""
        raise NotImplementedError

    def decompose(self, space: Space, weights: Small, atoms: Sequence[Atom]) -> tuple[Small, list[Atom]]:
        """A point that is given by weights on atoms, as weights on this domain's own atoms."""
        raise NotImplementedError

    def contains(self, space: Space, x: Array) -> bool | None:
        """Whether the point lies in the domain; None where that cannot be told."""
        raise NotImplementedError

    def owns(self, space: Space, a: Atom) -> bool:
        """Whether `a` may stand among the atoms: False only if it provably lies outside their hull."""
        twin = self.asked.rebuild(a)
        dense = a.dense(space)
        tolerance = 1e3 * space.eps
        if twin is not None:
            return space.norm(twin.dense(space) - dense) <= tolerance * a.norm(space)
        gauge = self.asked.gauge(dense)
        if gauge is not None:
            return gauge <= 1.0 + tolerance
        support = as_atom(self.asked.lmo(-dense)).dot(space, dense)
        return space.dot(dense, dense) <= support + tolerance * a.norm(space) ** 2


class Hull(Domain):
    signless, nonneg, total, reach = False, True, 1.0, 1.0

    def direction(self, space: Space, x: Array, z: Atom) -> Array:
        return z.add_to(space, -x, 1.0)

    def slope(self, gz: float, gx: float) -> float:
        return gz - gx

    def move(self, active: ActiveSet, z: Atom, gamma: float) -> None:
        active.weights *= 1.0 - gamma
        i, _ = active.enter(z)
        active.weights[i] += gamma

    def lower(self, value: float, gz: float, gx: float, delta: float, mu: float) -> float:
        return value - (gx - gz) / delta if delta > 0 else -math.inf

    def admits(self, weights: Small) -> bool:
        return bool((weights >= 0).all()) and abs(float(weights.sum()) - 1.0) <= 1e-9

    def contains(self, space: Space, x: Array) -> bool | None:
        gauge = self.atoms.gauge(x)
        return None if gauge is None else gauge <= 1.0 + 1e3 * space.eps

    def decompose(self, space: Space, weights: Small, atoms: Sequence[Atom]) -> tuple[Small, list[Atom]]:
        own, scaled = [], np.array(weights, dtype=np.float64)
        for i, a in enumerate(atoms):
            twin = self.atoms.rebuild(a)
            own.append(a if twin is None else twin)
            if twin is not None:
                scaled[i] *= a.coef / twin.coef
        slack = 1.0 - float(scaled.sum())
        if abs(slack) > 1e-9 and self.atoms.symmetric and slack > 0 and own:  # pad with 0 = (a - a) / 2
            opposite = self.atoms.rebuild(own[0].scaled(-1.0)) or own[0].scaled(-1.0)
            return np.concatenate([scaled, [slack / 2, slack / 2]]), [*own, own[0], opposite]
        return scaled, own

    def __repr__(self) -> str:
        return f"conv({self.atoms!r})"


class Span(Domain):
    signless, nonneg, total, reach = True, False, math.nan, math.inf

    def __init__(self, atoms: Atoms, rho: float | None = None, width: float | None = None) -> None:
        super().__init__(atoms)
        for name, bound in (("rho", rho), ("width", width)):
            if bound is not None and not 0 < bound < math.inf:
                raise ValueError(f"{name} is {bound}; give a positive bound, or leave it out.")
        self.asked = atoms.symmetrised()
        self.rho = rho
        self.width = self.asked.width if width is None else width

    def direction(self, space: Space, x: Array, z: Atom) -> Array:
        return z.dense(space)

    def slope(self, gz: float, gx: float) -> float:
        return gz

    def move(self, active: ActiveSet, z: Atom, gamma: float) -> None:
        i, factor = active.enter(z)
        active.weights[i] += factor * gamma

    def lower(self, value: float, gz: float, gx: float, delta: float, mu: float) -> float:
        if delta <= 0:
            return -math.inf
        support, bounds = max(0.0, -gz) / delta, [-math.inf]
        if self.rho is not None:  # <g, x - x*> <= <g, x> + ||x*||_A h(-g)
            bounds.append(value - (gx + self.rho * support))
        if mu > 0 and self.width is not None and self.width > 0:
            ratio = support / self.width
            bounds.append(value - ratio * ratio / (2.0 * mu))
        return max(bounds)

    def admits(self, weights: Small) -> bool:
        return bool(np.isfinite(weights).all())

    def contains(self, space: Space, x: Array) -> bool | None:
        if self.asked.width is not None and self.asked.width > 0:
            return True  # these sets span their space
        matrix = getattr(self.atoms, "D", None)
        if not isinstance(matrix, np.ndarray):
            return None
        columns, target = matrix.reshape(-1, matrix.shape[-1]), np.asarray(x).reshape(-1)
        residual = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
        return bool(np.linalg.norm(residual) <= 1e5 * space.eps * np.linalg.norm(target))

    def decompose(self, space: Space, weights: Small, atoms: Sequence[Atom]) -> tuple[Small, list[Atom]]:
        return np.array(weights, dtype=np.float64), list(atoms)

    def owns(self, space: Space, a: Atom) -> bool:
        twin = self.asked.rebuild(a)
        if twin is None:
            return True
        same = twin.scaled(a.coef / twin.coef).dense(space) - a.dense(space)
        return space.norm(same) <= 1e3 * space.eps * a.norm(space)

    def __repr__(self) -> str:
        return f"lin({self.atoms!r})"


def conv(atoms: Atoms) -> Domain:
    """The convex hull of a set of atoms: Frank-Wolfe. Its certificate is the Frank-Wolfe gap.

    >>> import pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, 0.5]), ps.conv(ps.SignedBasis(2))).x
    array([1., 0.])
    """
    return Hull(atoms)


def lin(atoms: Atoms, rho: float | None = None, width: float | None = None) -> Domain:
    """The linear span of a set of atoms: matching pursuit.

    Parameters
    ----------
    atoms : Atoms
        Need not be symmetric: the oracle is asked for both signs.
    rho : float, optional
        A bound on the atomic norm of a minimiser, which makes certificates possible: f* >= f(x) - <g, x> - rho h(-g).
    width : float, optional
        A lower bound on the minimal intrinsic directional width of the atoms with their negatives, where you know more
        than the set does; with strong convexity, f* >= f(x) - h(-g)^2 / (2 mu width^2).

    Examples
    --------
    >>> import pursuit as ps
    >>> ps.minimize(ps.LeastSquares([2.0, 0.5]), ps.lin(ps.SignedBasis(2))).x
    array([2. , 0.5])
    """
    return Span(atoms, rho, width)


def as_start(start: Any) -> tuple[Small, list[Atom]] | None:
    """Weights and atoms of a start that is given with its decomposition: a Result or a pair; None for a bare point."""
    if hasattr(start, "weights") and hasattr(start, "atoms"):
        return np.asarray(start.weights, dtype=np.float64), list(start.atoms)
    if isinstance(start, tuple) and len(start) == 2:
        weights, atoms = np.asarray(start[0], dtype=np.float64), [as_atom(a) for a in start[1]]
        if weights.shape != (len(atoms),):
            raise ValueError(
                f"start has {len(atoms)} atoms, its weights have shape {weights.shape}; give one weight each."
            )
        if not np.isfinite(weights).all():
            raise ValueError("start has NaN or infinite weights; give finite ones.")
        return weights, atoms
    return None
