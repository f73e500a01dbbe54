"""The beginning of a run: its space, its parts and the first active set, or those of a run that goes on.

S_0 comes from the user's `start` (`given`), from the oracle, or from where f is finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from pursuit.active import ActiveSet, Deadline
from pursuit.arguments import real_array
from pursuit.arrays import Array, Space
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.certificates import Certificate
from pursuit.domains import Domain, Part
from pursuit.line_search import line_search
from pursuit.objectives import Objective, as_value, inside
from pursuit.oracles import AskInFace
from pursuit.refine.proposals import Refinements, as_refinements
from pursuit.run.given import read_start
from pursuit.run.guards import GuardedObjective, GuardedOracle, Probing, check_gradient
from pursuit.run.method import Problem
from pursuit.run.result import Result, State
from pursuit.run.stored import Fingerprint, Kept, difference, factors_of, words_of
from pursuit.state import Fields, Stateful
from pursuit.stochastic import Stochastic
from pursuit.updates import Now
from pursuit.updates.base import Advance

START_SEED = 3
"""The seed of the directions in which a first point is searched where f is not defined at 0."""

START_QUESTIONS = 64
"""Directions of that search."""

START_TRIALS = 8
"""Weights at which f must be finite beside those of a mean: rounding makes it so at each of them with probability 1/2,
say."""

START_ATOMS = 4096
"""Atoms of a set up to which the mean of all of them is tried at last."""


@dataclass(eq=False)
class Run(Stateful):
    """One run: what the loop calls, in its order, and S. All of them are parts with a state."""

    problem: Problem
    f: Objective
    active: ActiveSet
    evaluate: Callable[[ActiveSet], tuple[float, Array]]
    ask: GuardedOracle
    certify: Certificate
    advance: Advance
    refine: Refinements
    t: int = field(default=0, init=False)
    resumed: Kept | None = None
    """The run that this one goes on with."""

    def memory(self, state: State) -> Fields:
        """What a run needs that goes on from this state, the last one."""
        now = Now(state.iteration, state.value, state.grad, state.answers)
        return self.state() | {"t": state.iteration, "now": now}

    def memory_without_update(self, iterations: int, members: Fields) -> Fields:
        """The same where an update was interrupted, which may have left itself and the active set half changed."""
        active = members | {"wanted": self.active.wanted, "frames": list(range(len(members["atoms"])))}
        parts = {name: part for name, part in self.state().items() if name != "advance"}
        return parts | {"t": iterations, "now": None, "active": active}

    def resume(self, memory: Fields) -> None:
        """Take over the memory of an equal run. What it found at its last state is replayed."""
        self.restore({name: state for name, state in memory.items() if name != "now"})
        now = memory["now"]
        if now is not None:
            self._replay("evaluate", (now.value, now.grad))
            self._replay("ask", now.answers)
            self._replay("certify", self.certify.bound)

    def _replay(self, name: str, reply: object) -> None:
        """Answer the first call of a part with the last reply of the run before: nothing is computed twice."""
        part = vars(self)[name]

        def first_call(*_: object) -> object:
            setattr(self, name, part)
            return reply

        setattr(self, name, first_call)


def begin(problem: Problem, start: object = None, deadline: Deadline = Deadline()) -> Run:
    """The parts of a run and S_0, or those of the run that `start` is a result of."""
    f, domain, (update, oracle, refine) = problem
    kept = None if start is None else run_to_continue(start, problem)
    space = find_space(f, domain, start)
    f = f.begin() if isinstance(f, Stochastic) else f
    advance = update.begin(f, domain, space)
    if f.exact and not (domain.bounded or f.infimum > -math.inf or f.mu > 0):
        advance = Probing(advance, f, domain)
    asks = [oracle.begin(part, space, update) for part in domain.parts]
    if update.faces:
        asks = [AskInFace(ask, part, space) for ask, part in zip(asks, domain.parts, strict=True)]
    run = Run(
        problem,
        f,
        domain.active_set(space),
        GuardedObjective(f, space),
        GuardedOracle(space, tuple(asks)),
        Certificate(f, domain, space, update.descends),
        advance,
        Refinements(as_refinements(refine), f, domain, space),
        resumed=kept,
    )
    run.active.deadline = deadline
    if kept is not None:
        run.resume(kept.memory)
    elif start is None:
        set_first_atoms(run.active, f, domain, run.ask, run.certify)
    else:
        run.active.replace(*read_start(domain, space, start, run.refine.assumed))
    return run


def run_to_continue(start: object, problem: Problem) -> Kept | None:
    """The run that `start` is a result of, if it was kept and had this problem; None: it is only a point."""
    f, domain, method = problem
    if not isinstance(start, Result) or not start.memory:
        return start if isinstance(start, Kept) else None
    then = start.f, start.domain, (start.update, start.oracle, start.refine)
    if factors_of(domain) != factors_of(start.domain) or words_of(f, domain, method) != words_of(*then):
        return None
    if f is start.f and domain is start.domain:
        return start.kept
    if not all(map(_comparable, (f, *(part.A for part in domain.parts)))):
        return None
    now, before = Fingerprint.of(*problem, start.start), Fingerprint.of(*then, start.start)
    return start.kept if difference(start.kept, f, domain, now, before) is None else None


def _comparable(thing: object) -> bool:
    """Whether an objective or a set is of the package, and made of arrays, not of functions: then numbers tell whether
    two of them are equal."""
    values = list(vars(thing).values())
    inner = [
        part for v in values for part in (v if isinstance(v, tuple) else (v,)) if isinstance(part, Atoms | Objective)
    ]
    functions = any(isinstance(v, FunctionType | MethodType) for v in values)
    return type(thing).__module__.startswith("pursuit.") and not functions and all(map(_comparable, inner))


def find_space(f: Objective, domain: Domain, start: object) -> Space:
    """H, as the objective, the atoms or the start determine it; they must agree."""
    space, sets = f.space, [part.A for part in domain.parts]
    for A in sets:
        if space is not None:
            _check_same_space(space, A)
        space = space or A.space
    return space or _space_of(start, next((A.shape for A in sets if A.shape is not None), None))


def _check_same_space(space: Space, A: Atoms) -> None:
    """Refuse atoms of another array library, dtype, device or shape."""
    own = space if A.space is None else A.space
    if space.xp is not own.xp:
        names = f"{space.xp.__name__} and {own.xp.__name__}"
        raise TypeError(f"f and the atoms come from different array libraries, {names}; convert one to the other.")
    if space.dtype != own.dtype:
        raise TypeError(f"f has dtype {space.dtype}, the atoms {own.dtype}; convert one to the other.")
    if space.device != own.device:
        raise TypeError(f"f lies on device {space.device}, the atoms on {own.device}; move one to the other.")
    if A.shape is not None and space.shape != A.shape:
        raise ValueError(f"f lives on vectors of shape {space.shape}, the atoms have {A.shape}; they must agree.")


def _space_of(start: Any, shape: tuple[int, ...] | None) -> Space:
    """The space of the arrays of a start, for an f and atoms that have no library, dtype and device; the shape is that
    of the atoms, where they know it."""
    point = start.first if isinstance(start, Kept) else start.x if isinstance(start, Result) else start
    if isinstance(point, tuple) and len(point) == 2:
        point = next(iter(point[1]), None) if isinstance(point[1], Iterable) else None
    if type(point) is Atom:
        point = point.vector
    if shape is not None and not hasattr(point, "dtype"):
        return Space.default(shape)
    if point is None:
        raise ValueError("neither f nor the atoms know the shape of x; give start=, or set `shape` on the atom set.")
    space = Space.of(real_array(point, "start"))
    return space if shape is None else replace(space, shape=shape)


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
