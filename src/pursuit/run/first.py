"""The first active set of a run: from the user's `start`, from the oracle, or where f is finite."""

from __future__ import annotations

import math

import numpy as np

from pursuit.active import ActiveSet
from pursuit.atoms.frames import Atom
from pursuit.certificates import Certificate
from pursuit.domains import Domain, Part
from pursuit.line_search import line_search
from pursuit.objectives import Objective, as_value, inside
from pursuit.run.guards import GuardedOracle, check_gradient

START_SEED = 3
"""The seed of the directions in which a first point is searched where f is not defined at 0."""

START_QUESTIONS = 64
"""Directions of that search."""

START_TRIALS = 8
"""Weights at which f must be finite beside those of a mean: rounding makes it so at each of them with probability 1/2,
say."""

START_ATOMS = 4096
"""Atoms of a set up to which the mean of all of them is tried at last."""


def set_first_atoms(
    active: ActiveSet, f: Objective, domain: Domain, ask: GuardedOracle, certificate: Certificate
) -> None:
    """S at iteration 0 where the user gives no start. Spans and cones begin at 0, and a hull begins at the atom that
    the oracle names for the gradient at 0; the other atoms of this answer enter S with weight zero. Where f is larger
    at this atom than at 0, a hull that has the negatives of its atoms begins between the two. Where f is infinite at 0,
    all begin at means of atoms.

    The question belongs to the run: it counts as an oracle call, and it uses random numbers of the run's oracle, so
    that later bounds, which hold with high probability, rest on numbers on which x does not depend.
    """
    if any(part.compact for part in domain.parts):
        defined = _begin_at_answers(active, f, domain, ask, certificate)
    else:
        defined = f.L is not None or not f.exact or f.value(active.x) != math.inf  # a smooth f is finite everywhere
    if not defined:
        _search_inside(f, domain, active, ask)


def _begin_at_answers(
    active: ActiveSet, f: Objective, domain: Domain, ask: GuardedOracle, certificate: Certificate
) -> bool:
    """Begin hulls at the atoms that are named for the gradient at 0; whether f is defined there."""
    space, hulls = active.space, [b for b, part in enumerate(domain.parts) if part.compact]
    value, grad = f.value_and_grad(active.x)
    if math.isfinite(as_value(value)):
        check_gradient(grad, space)
    if not inside(space, value, grad):
        return False
    certificate.observe_point(active.x, value, grad)
    answers = {b: ask.ask(b, grad, active, 0.0).atoms for b in hulls}
    firsts = {b: atoms[0] for b, atoms in answers.items()}
    active.replace(np.ones(len(hulls)), list(firsts.values()), hulls)
    at_first = f.value(active.x) if f.exact else value
    if at_first > value and (f.convex or math.isinf(at_first)):  # without convexity 0 may be a saddle of f
        _move_towards_zero(f, domain, active, firsts)
        if math.isinf(f.value(active.x)):
            return False
    for b, atoms in answers.items():
        for a in atoms[1:]:
            active.enter(a, b)
    return True


def _move_towards_zero(f: Objective, domain: Domain, active: ActiveSet, firsts: dict[int, Atom]) -> None:
    """Begin where f is smallest on the segment from 0 to the atoms z, gamma z = (1 + gamma)/2 z + (1 - gamma)/2 (-z),
    in hulls that have the negatives of their atoms. Other hulls keep their z."""
    space, symmetric = active.space, [b for b in firsts if domain.parts[b].A.symmetric]
    rest = {b: z for b, z in firsts.items() if b not in symmetric}
    active.replace(np.ones(len(rest)), list(rest.values()), list(rest))
    x, d = active.x, space.zeros()
    for b in symmetric:
        d = firsts[b].add_to(space, d, 1.0)
    value, grad = f.value_and_grad(x)
    gamma = line_search(f, x, d, space.dot(grad, d), 1.0) if inside(space, value, grad) else 1.0
    pairs = [(b, z) for b in symmetric for z in (firsts[b], _negative(domain.parts[b], firsts[b]))]
    weights = [1.0] * len(rest) + [0.5 * (1.0 + gamma), 0.5 * (1.0 - gamma)] * len(symmetric)
    active.replace(weights, [*rest.values(), *(z for _, z in pairs)], [*rest, *(b for b, _ in pairs)])


def _search_inside(f: Objective, domain: Domain, active: ActiveSet, ask: GuardedOracle) -> None:
    """Begin where f is defined, if that is not so at 0 or at the first atom: at a mean of atoms of the hulls, or of all
    summands."""
    hulls = [b for b, part in enumerate(domain.parts) if part.compact]
    everything = list(range(len(domain.parts)))
    tried = (_Means(f, domain, active, blocks) for blocks in (hulls, everything) if blocks)
    if not any(means.of_answers(ask) or means.of_all_atoms() for means in tried):
        raise ValueError(
            "f is not finite at 0, nor at the means of atoms that were tried; give start= where it is finite."
        )


class _Means:
    """Means of atoms of some summands, one of each, at which f may be defined: there the active set begins."""

    def __init__(self, f: Objective, domain: Domain, active: ActiveSet, searched: list[int]) -> None:
        self.f, self.domain, self.active, self.searched = f, domain, active, searched
        self.rng = np.random.default_rng(START_SEED)

    def of_answers(self, ask: GuardedOracle) -> bool:
        """Whether f is defined at the mean of the oracle's answers to random directions.

        Of answers with several atoms, the mean of the first 1, 2, 4, ... of each summand is tried, since the update
        would have to take the weight of most of them away again. f may be finite at a mean by rounding only, as a
        singular matrix may have a Cholesky factor or a positive determinant. So f must be finite for slightly different
        weights, too; then up to four times as many atoms are tried, and up to twice as many directions asked, and the
        run begins at the mean with the smallest f.
        """
        space, origin, found = self.active.space, *(self.domain.active_set(self.active.space) for _ in range(2))
        lowest, best, last = math.inf, 0, START_QUESTIONS  # the smallest f so far, and the size of its mean
        tried, most = 0, math.inf
        for question in range(START_QUESTIONS):
            if question > last or tried >= most or (best and self.active.deadline.passed):
                break
            direction = space.put(self.rng.standard_normal(space.shape))
            for b in self.searched:
                for atom in ask.ask(b, direction, origin, 0.0).atoms:
                    found.enter(atom, b)  # each atom once
            count = int(np.bincount(found.blocks).max())
            while tried < min(count, most):
                tried = min(max(2 * tried, 1), count)
                value = self._value(found, tried)
                if value < lowest:
                    last, most = min(last, 2 * question + 1), min(most, 4 * tried)
                    lowest, best = value, tried
        if best:
            self._value(found, best)
        return best > 0

    def of_all_atoms(self) -> bool:
        """Whether f is defined at the mean of all atoms, of sets with few of them."""
        sets = {b: self.domain.parts[b].asked for b in self.searched}
        if not all(A.size is not None and A.size <= START_ATOMS for A in sets.values()):
            return False
        found = self.domain.active_set(self.active.space)
        for b, A in sets.items():
            for i in range(A.size or 0):
                found.enter(A.atom(i), b)
        return math.isfinite(self._value(found, START_ATOMS))

    def _value(self, found: ActiveSet, size: int) -> float:
        """f at the mean of the first atoms of each summand, this many, to which the active set moves."""
        f, active = self.f, self.active
        places = np.concatenate([np.flatnonzero(found.blocks == b)[:size] for b in self.searched])
        blocks = found.blocks[places]
        active.replace(1.0 / np.bincount(blocks)[blocks], [found.atoms[i] for i in places], blocks)
        noise = 1.0 + math.sqrt(active.space.eps) * self.rng.standard_normal((START_TRIALS, len(places)))
        points = [active.x, *(active.synthesize(active.weights * row) for row in noise)]
        if not all(f.value(point) < math.inf for point in points):
            return math.inf  # before the gradient, which may not exist, is asked for
        value, grad = f.value_and_grad(active.x)
        return value if inside(active.space, value, grad) else math.inf


def _negative(part: Part, z: Atom) -> Atom:
    """-z as an atom of the set."""
    return part.A.rebuild(z.scaled(-1.0)) or z.scaled(-1.0)
