"""A proof computed again, from its steps alone: `BestSubset.check`.

The tree is walked from its roots. A branch is covered by its two children, a decision by the bound with it reversed,
and a leaf by its bound. For least squares that bound is computed in the coordinates of the whole problem, where the
columns that were projected out have a curvature of their own, TINY: one Cholesky factorisation for each split proves
that what is left is positive semidefinite, and the boxes follow from the inverse of H and the value of the best subset.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from pursuit.arrays import Indices, Small
from pursuit.subsets.fits import NOTHING
from pursuit.subsets.prepared import EPS, Prepared
from pursuit.subsets.quadratic import FREE, IN, LARGEST, OUT, Dual, Point, Quadratic, States, conjugate, reversals
from pursuit.subsets.smooth import Gram, Smooth
from pursuit.subsets.tree import Search, Step

TINY = 1e-10
"""The curvature of columns that were projected out, relative to the diagonal of H."""

LESS = 1.0 - 1e-6
"""What a split keeps when it is computed again, for rounding."""


class Place(NamedTuple):
    """Which units are in and out at a step; `cone` is the unit that is the largest, with its sign, of a root."""

    ins: frozenset[int]
    outs: frozenset[int]
    cone: tuple[int, float] | None


def replay(prepared: Prepared, search: Search) -> float:
    """The lower bound that the steps of a search prove."""
    if not search.planted:
        return -math.inf
    problem = prepared.problem
    proofs: Any = (
        _Squares(problem, search)
        if not isinstance(problem, Smooth) or isinstance(problem.model, Gram)
        else _Losses(problem)
    )
    lower = min(search.value, proofs.roots())
    waiting = [
        (step, Place(frozenset(), frozenset(), cone)) for step, cone in zip(search.roots, search.cones, strict=True)
    ]
    while waiting:
        step, place = waiting.pop()
        if step.unit >= 0:
            inside, outside = step.children
            waiting += [
                (inside, place._replace(ins=place.ins | {step.unit})),
                (outside, place._replace(outs=place.outs | {step.unit})),
            ]
        elif step.dual is None:
            lower = min(lower, _tried(problem, place))
        elif not step.children:
            lower = min(lower, proofs.bound(step, place)[0])
        else:
            lower = min(lower, proofs.bound(step, place)[1])
            ins, outs = place.ins | set(map(int, step.ins)), place.outs | set(map(int, step.outs))
            waiting.append((step.children[0], Place(ins, outs, place.cone)))
    return float(lower)


def _tried(problem: Any, place: Place) -> float:
    """The least value of the few subsets that are left."""
    m = problem.k - len(place.ins)
    free = [int(j) for j in problem.units if j not in place.ins and j not in place.outs]
    if m < 0:
        return math.inf
    sets = itertools.combinations(free, min(m, len(free)))
    return min(float(problem.fits.lower(np.array([*place.ins, *S], dtype=np.intp))) for S in sets)


def _reversed(bound: float, psi: Small, states: States, step: Step, units: Indices, m: int) -> float:
    """The least bound with one of the decisions of a step reversed."""
    inside, outside = reversals(bound, psi, states, m)
    outs, ins = np.isin(units, step.outs) & (states == FREE), np.isin(units, step.ins) & (states == FREE)
    return float(min(inside[outs].min(initial=np.inf), outside[ins].min(initial=np.inf)))


class _Losses:
    """Bounds of other losses, by the problem itself without the units that are out."""

    def __init__(self, problem: Smooth) -> None:
        self.problem = problem

    def roots(self) -> float:
        """Nothing else is to be proved."""
        return math.inf

    def bound(self, step: Step, place: Place) -> tuple[float, float]:
        """The bound of a step, and the least with a decision reversed."""
        P, dual = self.problem, step.dual
        gone = ~np.isin(P.units, dual.units)
        assert place.outs.issuperset(map(int, P.units[gone]))
        b = np.zeros(len(P.labels) + P.uncounted)
        smaller, _, _ = P.restrict(np.where(gone, OUT, FREE).astype(np.int8), Point(b))
        states = _states(smaller.units, place)
        m = P.k - int(np.count_nonzero(states == IN))
        bound, psi, _ = smaller.prove(dual.values, states, m)
        return bound, _reversed(bound, psi, states, step, smaller.units, m)


def _states(units: Indices, place: Place) -> States:
    states = np.zeros(len(units), dtype=np.int8)
    states[np.isin(units, list(place.ins))] = IN
    states[np.isin(units, list(place.outs))] = OUT
    return states


class _Squares:
    """Bounds of least squares in the coordinates of the whole problem."""

    def __init__(self, problem: Any, search: Search) -> None:
        self.P: Quadratic = problem.model.P if isinstance(problem, Smooth) else problem
        self.units, self.k, self.search = problem.units, problem.k, search
        self.column_unit = problem.units[problem.labels] if isinstance(problem, Smooth) else problem.units
        self.boxes = self.P.M if search.outside is None else search.outside.P.M
        self.splits: dict[int, tuple[Any, Small, Small, bool]] = {}

    def roots(self) -> float:
        """The bound of all cones that are no roots."""
        from pursuit.subsets.wide import refuted

        return math.inf if self.search.outside is None else refuted(self.search)

    def split(self, dual: Dual) -> tuple[Small, Small, bool]:
        """The columns of a split, boxes for them, and whether the split is proved."""
        if id(dual.d) not in self.splits:
            P = self.P
            at = np.searchsorted(P.units, np.concatenate([dual.units, dual.fixed]))
            proved = bool(
                (dual.d <= np.maximum(P.floor[at[: len(dual.d)]], NOTHING)).all()
            )  # as every H has that split
            fixed = np.diag(P.H)[at[len(dual.d) :]]
            d = np.concatenate([dual.d, np.full(len(fixed), NOTHING) if proved else TINY * fixed])
            H = P.H[np.ix_(at, at)]
            shift = (8.0 * len(at) * EPS + len(at) * P.noise) * P.root[at] ** 2
            if not proved:
                proved = lapack.dpotrf(H - np.diag(LESS * d + shift), lower=1)[1] == 0
                d = LESS * d
            M = np.minimum(
                self.boxes[at],
                replace(
                    P, H=H, c=P.c[at], root=P.root[at], units=at, d=d, M=np.full(len(at), np.inf), floor=P.floor[at]
                ).boxes(self.search.upper),
            )
            self.splits[id(dual.d)] = dual.d, d, M, proved
        return self.splits[id(dual.d)][1:]

    def bound(self, step: Step, place: Place) -> tuple[float, float]:
        """The bound of a step, and the least with a decision reversed."""
        P, dual = self.P, step.dual
        d, M, proved = self.split(dual)
        at = np.searchsorted(P.units, np.concatenate([dual.units, dual.fixed]))
        M = M if place.cone is None else self.boxes[at]  # beyond which a cone goes
        owner = self.column_unit[at]
        known = set(map(int, owner)) | place.outs
        if (
            not proved
            or not known.issuperset(map(int, self.units))
            or not place.ins.issuperset(map(int, owner[len(dual.units) :]))
        ):
            return -math.inf, -math.inf
        u, inside = np.zeros(len(at)), np.arange(len(dual.units), len(at))
        u[dual.places] = dual.values
        if len(inside):
            fixed = at[inside]
            u[inside] = np.linalg.solve(P.H[np.ix_(fixed, fixed)], P.c[fixed] - P.H[np.ix_(fixed, at)] @ u)
        w = P.c[at] - P.H[np.ix_(at, at[u != 0])] @ u[u != 0] + d * u
        size = 1.0 + float(np.abs(u) @ P.root[at])
        error = 2.0 * P.noise * size
        slope = np.maximum((w if P.positive else np.abs(w)) + error * P.root[at], 0.0)
        units, where = np.unique(owner, return_inverse=True)
        psi, states = np.bincount(where, conjugate(slope, d, M)), _states(units, place)
        forced = 0.0
        if place.cone is not None:
            j = int(np.flatnonzero(units == place.cone[0])[0])
            states[j] = LARGEST
            column = int(np.flatnonzero(owner == place.cone[0])[0])
            forced = place.cone[1] * M[column] * w[column] + error * P.root[column] * M[column]
            w = w - d * u  # the cone has no split
        m = self.k - int(np.count_nonzero(states > 0))
        free = np.sort(psi[states == FREE])[::-1]
        spent = forced + float(psi[states == IN].sum() + free[: max(m, 0)].sum())
        if place.cone is not None and spent > 0:
            return -math.inf, -math.inf
        bound = P.constant - float(u @ (P.c[at] - w)) / 2 - spent - 2.0 * error * size
        return bound, _reversed(bound, psi, states, step, units, m)
