"""Hull, cone and span."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_bool, number, require
from pursuit.arrays import Array, Small, Space
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.frames import Atom
from pursuit.domains.base import LONG_STEP, Answer, Direction, Part, exchange, worst


class Hull(Part):
    """conv(A)."""

    signless, nonnegative, compact, total = False, True, True, 1.0

    def toward(self, active: ActiveSet, answer: Answer, gx: float) -> Direction:
        z = answer.atoms[0]

        def move(gamma: float) -> None:
            active.weights *= 1.0 - gamma
            i, _ = active.enter(z)
            active.weights[i] += gamma

        return Direction(z.add_to(active.space, -active.x, 1.0), answer.dot - gx, 1.0, move)

    def away(self, active: ActiveSet, q: Small, gx: float) -> Direction:
        v = worst(active, q)
        w = active.weights[v]
        reach = w / (1.0 - w) if w < 1.0 else math.inf

        def move(gamma: float) -> None:
            if gamma < LONG_STEP:
                active.weights *= 1.0 + gamma
                active.weights[v] = 0.0 if gamma == reach else active.weights[v] - gamma
                return
            active.weights[v] = 0.0
            rest = float(active.weights.sum())  # 1 - w, whose digits a long step magnifies
            share = 1.0 if gamma == reach else min(rest * (1.0 + gamma), 1.0)
            if rest > 0.0:
                active.weights *= share / rest
            active.weights[v] = 1.0 - share

        vector = active.atoms[v].add_to(active.space, active.x, -1.0)
        return Direction(vector, gx - float(q[v]) if w < 1.0 else 0.0, reach, move)

    def pairwise(self, active: ActiveSet, answer: Answer, q: Small) -> Direction:
        return exchange(active, answer.atoms[0], answer.dot, q)

    def descent(self, gz: float, gx: float) -> float:
        return gz - gx

    def excess(self, lower: float, gx: float, noise: float) -> float:
        return gx - lower

    def gap_on(self, w: Small, q: Small) -> float:
        return float(q @ w - q.min())

    def feasible(self, weights: Small) -> bool:
        return bool((weights >= 0).all()) and abs(float(weights.sum()) - 1.0) <= 1e-9

    def contains(self, space: Space, x: Array) -> bool | None:
        gauge = self.A.gauge(x)
        return self.A.hull_contains(x) if gauge is None else self._within(gauge, 1e3 * space.eps)

    def _within(self, gauge: float, tolerance: float) -> bool:
        """Whether a point of this gauge lies in the hull. If 0 does not, its gauge must be 1."""
        contains_zero = self.A.width is not None and self.A.width >= 0
        return gauge <= 1.0 + tolerance and (contains_zero or gauge >= 1.0 - tolerance)

    def decompose(self, weights: Small, atoms: Sequence[Atom]) -> tuple[Small, list[Atom]]:
        own, scaled = [], np.array(weights, dtype=np.float64)
        for i, a in enumerate(atoms):
            twin = self.A.rebuild(a)
            own.append(a if twin is None else twin)
            if twin is not None:
                scaled[i] *= a.coef / twin.coef
        slack = 1.0 - float(scaled.sum())
        if slack > 1e-9 and self.A.symmetric and own:  # pad with 0 = (a - a) / 2
            opposite = self.A.rebuild(own[0].scaled(-1.0)) or own[0].scaled(-1.0)
            return np.concatenate([scaled, [slack / 2, slack / 2]]), [*own, own[0], opposite]
        return scaled, own

    def owns(self, space: Space, a: Atom) -> bool:
        tolerance = 1e3 * space.eps
        twin = self.asked.rebuild(a)
        if twin is not None:
            apart = a.distance(space, twin)
            return apart == 0.0 or apart <= tolerance * a.norm(space)  # a norm at many entries takes its time
        dense = a.dense(space)
        gauge = self.asked.gauge(dense)
        if gauge is not None:
            return self._within(gauge, tolerance)
        known = self.asked.contains(dense)
        if known is not None:
            return known
        support = as_atom(self.asked.lmo(-dense)).dot(space, dense)
        return space.dot(dense, dense) <= support + tolerance * a.norm(space) ** 2

    def __repr__(self) -> str:
        return f"conv({self.A!r})"


class Cone(Part):
    """cone(A)."""

    signless, nonnegative, total = False, True, math.nan

    def __init__(self, A: Atoms, rho: float | None = None) -> None:
        super().__init__(A)
        self.rho = _positive("rho", rho)
        free = self.rho is None and not self.price
        self.linear, self.free_cone = free and self.A.symmetric, free and not self.A.symmetric

    def toward(self, active: ActiveSet, answer: Answer, gx: float) -> Direction:
        total = float(active.weights.sum())
        if total > 0 and -gx < answer.dot * total:  # -x / ||x||_A descends faster than z

            def shrink(gamma: float) -> None:
                active.weights *= 1.0 - gamma / total

            return Direction(-active.x / total, -gx / total, total, shrink)

        return self._grow(active, answer)

    @staticmethod
    def _grow(active: ActiveSet, answer: Answer) -> Direction:
        z = answer.atoms[0]

        def move(gamma: float) -> None:
            i, _ = active.enter(z)
            active.weights[i] += gamma

        return Direction(z.dense(active.space), answer.dot, math.inf, move)

    def away(self, active: ActiveSet, q: Small, gx: float) -> Direction:
        v = worst(active, q)
        reach = float(active.weights[v])

        def move(gamma: float) -> None:
            active.weights[v] = 0.0 if gamma == reach else active.weights[v] - gamma

        return Direction(-active.atoms[v].dense(active.space), -float(q[v]), reach, move)

    def pairwise(self, active: ActiveSet, answer: Answer, q: Small) -> Direction:
        """Weight may also move from or to the origin, which always counts as active: else the method stalls."""
        if not (active.weights > 0).any() or q[worst(active, q)] <= 0:
            return self._grow(active, answer)
        if answer.dot >= 0:
            return self.away(active, q, 0.0)
        return exchange(active, answer.atoms[0], answer.dot, q)

    def descent(self, gz: float, gx: float) -> float:
        return min(gz, 0.0) - abs(gx)

    def gap_on(self, w: Small, q: Small) -> float:
        return abs(float(q @ w)) + max(0.0, -float(q.min()))

    def excess(self, lower: float, gx: float, noise: float) -> float:
        if lower >= noise:
            return gx
        return math.inf if self.rho is None else gx + self.rho * (noise - lower)

    def feasible(self, weights: Small) -> bool:
        return bool((weights >= 0).all()) and bool(np.isfinite(weights).all())

    def decompose(self, weights: Small, atoms: Sequence[Atom]) -> tuple[Small, list[Atom]]:
        """Of a symmetric set, negative weights are positive ones of the opposite atoms."""
        if not self.A.symmetric:
            return super().decompose(weights, atoms)
        turned = [a.scaled(-1.0) if w < 0 else a for w, a in zip(weights, atoms, strict=True)]
        return np.abs(weights), turned

    def contains(self, space: Space, x: Array) -> bool | None:
        gauge = self.A.gauge(x)
        return None if gauge is None else math.isfinite(gauge)

    def __repr__(self) -> str:
        return f"cone({self.A!r})"


class Penalty(Cone):
    """cone(A), where the weights cost lam times their sum: f(x) + lam ||x||_A."""

    def __init__(self, A: Atoms) -> None:
        A, factor = unscaled(A)
        self.price = abs(factor)
        super().__init__(A if factor > 0 or A.symmetric else -1.0 * A)

    def __repr__(self) -> str:
        return f"penalty({self.price:g} * {self.A!r})"


class Span(Part):
    """lin(A)."""

    signless, nonnegative, total = True, False, math.nan

    def __init__(
        self, A: Atoms, rho: float | None = None, width: float | None = None, counted: bool = True,
        symmetric: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(A)
        self.counted = as_bool(counted, "counted")
        self.asked = self.A.symmetrised() if as_bool(symmetric, "symmetric") else self.A
        self.rho = _positive("rho", rho)
        self.linear = self.rho is None
        self.width = _positive("width", width) or self.asked.width
        self.blind = not self.asked.symmetric and not (self.width or 0.0) > 0

    def toward(self, active: ActiveSet, answer: Answer, gx: float) -> Direction:
        z, uphill = answer.atoms[0], answer.dot > 0  # as the best atom of A alone may point

        def move(gamma: float) -> None:
            i, sign = active.enter(z)
            active.weights[i] += -sign * gamma if uphill else sign * gamma

        vector = z.dense(active.space)
        return Direction(-vector if uphill else vector, -abs(answer.dot), math.inf, move)

    def descent(self, gz: float, gx: float) -> float:
        return gz if self.asked.symmetric else -abs(gz)

    def gap_on(self, w: Small, q: Small) -> float:
        return float(np.abs(q).max())

    def excess(self, lower: float, gx: float, noise: float) -> float:
        if self.rho is None:
            return math.inf
        return gx + self.rho * max(0.0, noise - lower)  # <g, x - x*> <= <g, x> + ||x*||_A h(-g)

    def feasible(self, weights: Small) -> bool:
        return bool(np.isfinite(weights).all())

    def contains(self, space: Space, x: Array) -> bool | None:
        if self.asked.width is not None and self.asked.width > 0:  # these sets span their space
            gauge = self.asked.gauge(x)
            return gauge is None or math.isfinite(gauge)  # infinite for a matrix that is not symmetric, say
        matrix = getattr(self.A, "D", None)
        if not isinstance(matrix, np.ndarray):
            return None
        columns, target = matrix.reshape(-1, matrix.shape[-1]), np.asarray(x).reshape(-1)
        residual = target - columns @ np.linalg.lstsq(columns, target, rcond=None)[0]
        return bool(np.linalg.norm(residual) <= 1e5 * space.eps * np.linalg.norm(target))

    def __repr__(self) -> str:
        alone = "" if self.asked is not self.A or self.A.symmetric else ", symmetric=False"
        return f"lin({self.A!r}{'' if self.counted else ', counted=False'}{alone})"


def _positive(name: str, bound: float | None) -> float | None:
    require(bound is None or 0 < number(bound) < math.inf, name, bound, "a positive bound, or leave it out")
    return None if bound is None else float(bound)
