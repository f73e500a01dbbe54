"""The beginning of a run: its space and its parts, which are made once, or those of a run that goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any

from pursuit.active import ActiveSet
from pursuit.arguments import real_array
from pursuit.arrays import Array, Space
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.certificates import Certificate
from pursuit.deadline import Deadline
from pursuit.domains import Domain
from pursuit.objectives import Objective
from pursuit.refine.proposals import Refinements
from pursuit.run.first import set_first_atoms
from pursuit.run.given import read_start
from pursuit.run.guards import GuardedObjective, GuardedOracle, Probing
from pursuit.run.method import Problem
from pursuit.run.result import Result, State
from pursuit.run.stored import Fingerprint, Kept, difference, factors_of, words_of
from pursuit.state import Fields, Stateful
from pursuit.stochastic import Stochastic
from pursuit.updates import Now
from pursuit.updates.base import Advance


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
    run = Run(
        problem,
        f,
        domain.active_set(space),
        GuardedObjective(f, space),
        GuardedOracle.of(oracle, update, domain, space),
        Certificate(f, domain, space, update.descends),
        advance,
        Refinements(refine, f, domain, space),
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
