"""The contract of a domain: directions and their largest steps, constraints on the weights, and lower bounds from an
oracle's answer.

| | toward | away | pairwise | weights on S |
|---|---|---|---|---|
| `conv` | z - x, step in [0, 1] | x - v | z - v | simplex |
| `cone` | z, or -x | -v | z - v, the origin always counting as active | >= 0 |
| `lin` | z, any step | - | - | free |
A sum of domains is the list of its summands, each with its own atoms, weights and oracle answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arrays import Array, Indices, Small, Space
from pursuit.atoms.base import Atoms, own_atoms
from pursuit.atoms.frames import Atom
from pursuit.linalg import EPS
from pursuit.weights import Mask, WeightProblem


@dataclass(slots=True)
class Answer:
    """The answer of an oracle.

    `atoms` are the best first; `dot` is <grad, atoms[0]>; `delta` is the proved quality of atoms[0], 0 where nothing is
    proved; `calls` counts how often the set was asked; `lower` is a proved lower bound on <grad, a> over all atoms,
    None where only delta is known. `level` is <grad, x_b> at the point x_b of the summand that was asked; the loop
    fills it in.

    >>> import pursuit as ps
    >>> state = next(ps.iterate(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective()))
    >>> state.answers
    [Answer(atoms=[SparseAtom(source=0, coef=1)], dot=-3.0, delta=1.0, calls=1, lower=-3.0, level=0.0)]
    """

    atoms: list[Atom]
    dot: float
    delta: float
    calls: int = 1
    lower: float | None = None
    level: float = 0.0


@dataclass(slots=True)
class Direction:
    """x + gamma * vector for gamma in [0, reach], with slope = <grad, vector>; `move(gamma)` changes the weights
    accordingly."""

    vector: Array
    slope: float
    reach: float
    move: Callable[[float], None]


LONG_STEP = 100.0
"""From here on a step magnifies the rounding of its direction, and x is computed from the weights again."""


class Domain:
    """A domain of x: a hull, cone or span of atoms, or a sum of them. `parts` are the summands.

    >>> import numpy as np, pursuit as ps
    >>> domain = ps.conv(5.0 * ps.SignedBasis(2)) + ps.lin(ps.Dictionary(np.ones((2, 1))))
    >>> domain, domain.bounded
    (conv(5 * SignedBasis(2)) + lin(Dictionary(2 x 1)), False)
    """

    parts: tuple[Part, ...]

    def __add__(self, other: Domain) -> Domain:
        return Sum(self, other)

    def __radd__(self, other: Any) -> Domain:
        return self if isinstance(other, int) and other == 0 else Sum(other, self)  # sum(domains) begins with 0

    def __rmul__(self, c: object) -> NoReturn:
        raise TypeError(f"a domain has no factor; give the factor to its atoms: conv({c} * A).")

    @cached_property
    def bounded(self) -> bool:
        """Whether every summand is a hull."""
        return all(part.compact for part in self.parts)

    @cached_property
    def hulls(self) -> Mask:
        """Which summands are hulls."""
        return np.array([part.compact for part in self.parts])

    @cached_property
    def signs(self) -> Mask:
        """Which summands have non-negative weights."""
        return np.array([part.nonnegative for part in self.parts])

    def active_set(self, space: Space) -> ActiveSet:
        """An empty active set with one block per summand."""
        signless, counted, prices = zip(*((p.signless, p.counted, p.price) for p in self.parts), strict=True)
        return ActiveSet(space, signless, counted, prices)

    def weight_problem(self) -> WeightProblem:
        """An empty small problem with one block per summand."""
        return WeightProblem([part.total for part in self.parts])

    def gaps(self, answers: Sequence[Answer], noise: Sequence[float]) -> tuple[list[float], float, float]:
        """From the answers: a lower bound on <grad, a> over the atoms of each summand, without their price; the
        Frank-Wolfe gap, a bound on <grad, x - u> for all u of the domain (of known atomic norm), where `noise` has the
        rounding error of <grad, a> for each summand; and a lower bound on the slope of every direction."""
        lows, gap, slope = [], 0.0, 0.0
        for part, answer, error in zip(self.parts, answers, noise, strict=True):
            low, level = part.lowest(answer), answer.level
            lows.append(low - part.price)
            gap += part.excess(low, level, error)
            slope += -math.inf if part.blind else part.descent(low, level)
        return lows, gap, slope

    @cached_property
    def has_strong_gap(self) -> bool:
        """Whether strong convexity of f bounds f(x) - f*: over hulls and one span, whose atoms have a known width."""
        rest = [part for part in self.parts if not part.compact]
        return len(rest) == 1 and rest[0].signless and (rest[0].width or 0.0) > 0

    def strong_gap(self, answers: Sequence[Answer], mu: float, noise: Sequence[float]) -> float:
        """A bound on f(x) - f* where f is strongly convex, over hulls of total diameter D and a span: with P = h /
        width >= |projection of grad on the span|, f* >= f(x) - (gaps of the hulls) - P D - P^2 / (2 mu)."""
        gaps = diameter = projection = 0.0
        for part, answer, error in zip(self.parts, answers, noise, strict=True):
            low = part.lowest(answer)
            if part.compact:
                gaps += part.excess(low, answer.level, error)
                diameter += math.inf if part.A.diameter is None else part.A.diameter
            else:
                projection = max(0.0, error - low) / (part.width or 0.0)
        return gaps + projection * diameter + projection * (projection / (2.0 * mu)) if projection > 0 else gaps

    def slope(self, answers: Sequence[Answer]) -> float:
        """The slope of the steepest direction towards the answers."""
        return sum(part.descent(a.dot, a.level) for part, a in zip(self.parts, answers, strict=True))

    def inner_gap(self, weights: Small, q: Small, blocks: Indices) -> float:
        """The possible decrease of f over atoms with these weights and slopes, to first order: 0 where the weights are
        optimal."""
        masks = [blocks == b for b in range(len(self.parts))]
        return sum(part.gap_on(weights[m], q[m]) for part, m in zip(self.parts, masks, strict=True) if m.any())

    def normalise(self, weights: Small, blocks: Indices) -> bool:
        """Scale the weights of each hull to their sum, in place; False where a hull has no positive weight."""
        for b, part in enumerate(self.parts):
            mine = blocks == b
            if part.compact and mine.any():
                total = float(weights[mine].sum())
                if not total > 0:
                    return False
                weights[mine] *= part.total / total
        return True

    def admits(self, weights: Small, blocks: Indices | int = 0) -> bool:
        """Whether the weights satisfy the constraints, up to rounding."""
        which = np.broadcast_to(blocks, weights.shape)
        return all(part.feasible(weights[which == b]) for b, part in enumerate(self.parts))

    def coefficients(self, atoms: Sequence[Atom], weights: Small, blocks: Indices) -> Any:
        """The coefficients in each set's own coordinates; a tuple with one entry per summand of a sum."""
        out = []
        for b, part in enumerate(self.parts):
            mine = [i for i in range(len(atoms)) if blocks[i] == b]
            if any(atoms[i].source is None for i in mine):
                return None
            values = np.array([weights[i] * atoms[i].coef for i in mine])
            out.append(part.A.coefficients([atoms[i].source for i in mine], values))
        return out[0] if len(out) == 1 else tuple(out)


class Sum(Domain):
    """The sum of domains: x = x_1 + x_2 + ..., with x_b in summand b."""

    def __init__(self, *domains: Domain) -> None:
        for d in domains:
            if not isinstance(d, Domain):
                raise TypeError(f"a sum of domains got {type(d).__name__}; add conv(...), cone(...) or lin(...).")
        self.parts = tuple(part for d in domains for part in d.parts)
        shapes = {part.A.shape for part in self.parts} - {None}
        if len(shapes) > 1:
            raise ValueError(f"a sum of domains has atoms of shapes {sorted(map(str, shapes))}; they must agree.")

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class Part(Domain):
    """A domain with one set of atoms. `A` is the user's set, `asked` the set that the oracle searches, which for a span
    has the negatives of the atoms, too."""

    signless: bool
    """Whether an atom and its negative are one entry of the active set."""
    nonnegative: bool
    """Whether the weights must be non-negative."""
    total: float
    """The sum of the weights, nan where it is free."""
    price: float = 0.0
    """What a unit of weight adds to f. It is part of every inner product with the gradient below: <grad, a> and <grad,
    x> stand for the slopes of f and of the cost together."""
    width: float | None = None
    """A lower bound on the directional width of the atoms, where one is known."""
    counted: bool = True
    """Whether its atoms count in `Stop(atoms)` and in traces."""

    blind: bool = False
    """Whether directions that no answer shows may descend."""
    compact: bool = False
    """Whether this is a hull."""
    rho: float | None = None
    """A bound on the atomic norm of a minimiser over a cone or span, where one is known."""
    linear: bool = False
    """Whether this is a linear space: a span, or the cone of a symmetric set, without a price or a known rho."""
    free_cone: bool = False
    """The same for the cones of other sets."""

    def __init__(self, A: Atoms) -> None:
        if not isinstance(A, Atoms):
            A = own_atoms(A)
        self.A = self.asked = A
        self.parts = (self,)

    def toward(self, active: ActiveSet, answer: Answer, gx: float) -> Direction:
        """The step towards the oracle's atom."""
        raise NotImplementedError

    def away(self, active: ActiveSet, q: Small, gx: float) -> Direction:
        """The step away from the worst active atom; q = <grad, a> on S."""
        raise NotImplementedError

    def pairwise(self, active: ActiveSet, answer: Answer, q: Small) -> Direction:
        """The step that moves weight from the worst active atom to the oracle's."""
        raise NotImplementedError

    def descent(self, gz: float, gx: float) -> float:
        """<grad, direction> of the steepest step, from <grad, z> and <grad, x>."""
        raise NotImplementedError

    def gap_on(self, w: Small, q: Small) -> float:
        """The possible decrease of f over the active atoms with weights w and correlations q, to first order."""
        raise NotImplementedError

    def origin(self, gx: float) -> float:
        """The number that an oracle's quality is relative to: <grad, x> over a hull, 0 elsewhere."""
        return gx if self.compact else 0.0

    def lowest(self, answer: Answer) -> float:
        """A lower bound on <grad, a> over all atoms: that of the answer, or the one that its quality proves."""
        if answer.lower is not None:
            return answer.lower
        if answer.delta <= 0:
            return -math.inf
        origin = self.origin(answer.level)
        return origin + (answer.dot - origin) / answer.delta

    def quality(self, gz: float, lower: float, gx: float) -> float:
        """The delta of an answer, given a lower bound on <grad, a> over all atoms; 1 where only rounding parts them."""
        origin = self.origin(gx)
        found, possible = gz - origin, lower - origin
        rounding = 16.0 * EPS * (abs(lower) + abs(origin))
        return 1.0 if found - possible <= rounding or possible >= 0 else max(found / possible, 0.0)

    def excess(self, lower: float, gx: float, noise: float) -> float:
        """A bound on <grad, x - u> for a minimiser u, from a lower bound on <grad, a> over all atoms. Its rounding
        error `noise` counts where weights may be large; over a hull that of the whole bound has it."""
        raise NotImplementedError

    def feasible(self, weights: Small) -> bool:
        """Whether the weights satisfy the constraints, up to rounding."""
        raise NotImplementedError

    def contains(self, space: Space, x: Array) -> bool | None:
        """Whether the point lies in the domain; None where that cannot be told."""
        raise NotImplementedError

    def decompose(self, weights: Small, atoms: Sequence[Atom]) -> tuple[Small, list[Atom]]:
        """The same point as weights on atoms of this domain, where the given atoms are multiples of them."""
        return np.array(weights, dtype=np.float64), list(atoms)

    def owns(self, space: Space, a: Atom) -> bool:
        """False where `a` is provably no atom of this domain, else True."""
        twin = self.asked.rebuild(a)
        if twin is None:
            return self.contains(space, a.dense(space)) is not False
        return a.distance(space, twin.scaled(a.coef / twin.coef)) <= 1e3 * space.eps * a.norm(space)


def worst(active: ActiveSet, q: Small) -> int:
    """The place of the active atom with the largest <grad, a>, from which to move away."""
    return int(np.where(active.weights > 0, q, -np.inf).argmax())


def exchange(active: ActiveSet, z: Atom, gz: float, q: Small) -> Direction:
    """z - v: weight moves from the worst active atom v to z."""
    v = worst(active, q)
    reach = float(active.weights[v])

    def move(gamma: float) -> None:
        active.weights[v] = 0.0 if gamma == reach else active.weights[v] - gamma
        i, _ = active.enter(z)
        active.weights[i] += gamma

    vector = active.atoms[v].add_to(active.space, z.dense(active.space), -1.0)
    return Direction(vector, gz - float(q[v]), reach, move)
