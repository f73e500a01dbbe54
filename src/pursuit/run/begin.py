"""The beginning of a run: its space and its parts, which are made once, or those of a run that goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Generic, ParamSpec, TypeVar

from pursuit import objectives
from pursuit._memory import has_memory, memory_of, recalled
from pursuit.active import ActiveSet
from pursuit.arguments import real_array
from pursuit.arrays import Array, Space
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom
from pursuit.certificates import Bound, Certificate
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective
from pursuit.refine.proposals import Refinements
from pursuit.run.first import set_first_atoms
from pursuit.run.guards import GuardedObjective, GuardedOracle, StallDetector, probing
from pursuit.run.method import Method
from pursuit.run.result import Result, State
from pursuit.run.stored import Fingerprint, Kept, difference, factors_of, words_of
from pursuit.stochastic import Stochastic
from pursuit.updates import Now

Question = ParamSpec("Question")
Reply = TypeVar("Reply")


class Replay(Generic[Question, Reply]):
    """A part of a run that goes on. Its first reply is the last one of the run before: nothing is computed twice."""

    def __init__(self, part: Callable[Question, Reply], reply: Reply) -> None:
        self._part = part
        self._replies = [reply]

    def __call__(self, *args: Question.args, **kwargs: Question.kwargs) -> Reply:
        return self._replies.pop() if self._replies else self._part(*args, **kwargs)


@dataclass
class Run:
    """One run: what the loop calls, in its order, and the parts whose memory is stored with a run."""

    f: Objective
    active: ActiveSet
    evaluate: Callable[[ActiveSet], tuple[float, Array]]
    ask: Callable[[Array, ActiveSet], list[Answer]]
    certify: Callable[[float, Array, list[Answer], ActiveSet], Bound]
    advance: Callable[[Now, ActiveSet], None]
    refine: Refinements
    oracle: GuardedOracle
    parts: dict[str, Any]
    t: int = 0

    def memory(self, state: State) -> dict[str, Any]:
        """What a run needs that goes on from this state, the last one."""
        now = Now(state.iteration, state.value, state.grad, state.answers)
        return {"t": state.iteration, "now": now, **_memories(self.parts)}

    def memory_without_update(self, iterations: int, active: dict[str, Any]) -> dict[str, Any]:
        """The same where an update was interrupted, which may have left itself and the active set half changed."""
        parts = {name: part for name, part in self.parts.items() if name not in ("advance", "active")}
        frames = list(range(len(active["atoms"])))
        members = active | {"wanted": self.active.wanted, "frames": frames}
        return {"t": iterations, "now": None, "active": members, **_memories(parts)}

    def resume(self, memory: dict[str, Any]) -> None:
        """Take over the memory of an equal run. What it found at its last state is replayed."""
        for name, part in self.parts.items():
            if name in memory:
                recalled(part, memory[name])
        self.t = memory["t"]
        now = memory["now"]
        if now is not None:
            self.evaluate = Replay(self.evaluate, (now.value, now.grad))
            self.ask = Replay(self.ask, now.answers)
            self.certify = Replay(self.certify, self.parts["certificate"].bound)


def _memories(parts: dict[str, Any]) -> dict[str, Any]:
    """What each part remembers, copied."""
    return {name: memory_of(part) for name, part in parts.items() if has_memory(part)}


def begin(f: Objective, domain: Domain, method: Method, start: Any = None) -> Run:
    """The parts of a run and S_0, or those of the run that `start` is a result of."""
    update, oracle, refine = method
    f = adapted(f, domain)
    kept = run_to_continue(start, f, domain, method)
    space = find_space(f, domain, start)
    f = f.begin() if isinstance(f, Stochastic) else f
    evaluate = GuardedObjective(f, space)
    ask = GuardedOracle(oracle, update, f, domain, space)
    certify = StallDetector(Certificate(f, domain, space), update.descends)
    advance = probing(update.begin(f, domain, space), f, domain, space)
    refinements = Refinements(refine, f, domain, space)
    active = domain.active_set(space)
    parts = {
        "active": active,
        "evaluate": evaluate,
        "ask": ask,
        "certificate": certify,
        "advance": advance,
        "refine": refinements,
    }
    run = Run(f, active, evaluate, ask, certify, advance, refinements, ask, parts)
    if kept is not None:
        run.resume(kept.memory)
    else:
        set_first_atoms(active, f, domain, start, ask, certify.certificate)
    return run


def run_to_continue(start: Any, f: Objective, domain: Domain, method: Sequence[Any]) -> Kept | None:
    """The run that `start` is a result of, if it had this problem and this method; None: it is only a point."""
    if not isinstance(start, Result) or not start.memory:
        return start if isinstance(start, Kept) else None
    then = start.f, start.domain, (start.update, start.oracle, start.refine)
    if factors_of(domain) != factors_of(start.domain) or words_of(f, domain, method) != words_of(*then):
        return None
    if f is start.f and domain is start.domain:
        return start.kept
    if not all(map(_comparable, (f, *(part.A for part in domain.parts)))):
        return None
    now, before = (Fingerprint.of(*problem, start.start) for problem in ((f, domain, method), then))
    return start.kept if difference(start.kept, f, domain, now, before) is None else None


def _comparable(thing: Any) -> bool:
    """Whether an objective or a set is of the package, and made of arrays, not of functions: then numbers tell whether
    two of them are equal."""
    values = list(vars(thing).values())
    inner = [
        part for v in values for part in (v if isinstance(v, tuple) else (v,)) if isinstance(part, Atoms | Objective)
    ]
    functions = any(isinstance(v, FunctionType | MethodType) for v in values)
    return type(thing).__module__.startswith("pursuit.") and not functions and all(map(_comparable, inner))


def adapted(f: Objective, domain: Domain) -> Objective:
    """f in the array library, dtype and device of the atoms, where its data have no dtype of their own."""
    return next((objectives.adapted(f, part.A.space) for part in domain.parts if part.A.space is not None), f)


def find_space(f: Objective, domain: Domain, start: Any) -> Space:
    """H, as the objective, the atoms or the start determine it; they must agree."""
    space = f.space
    for A in (part.A for part in domain.parts):
        if space is not None and A.space is not None and space.xp is not A.space.xp:
            names = f"{space.xp.__name__} and {A.space.xp.__name__}"
            raise TypeError(f"f and the atoms come from different array libraries, {names}; convert one to the other.")
        if space is not None and A.space is not None and space.dtype != A.space.dtype:
            raise TypeError(f"f has dtype {space.dtype}, the atoms {A.space.dtype}; convert one to the other.")
        if space is not None and A.space is not None and space.device != A.space.device:
            raise TypeError(f"f lies on device {space.device}, the atoms on {A.space.device}; move one to the other.")
        if space is not None and A.shape is not None and space.shape != A.shape:
            raise ValueError(f"f lives on vectors of shape {space.shape}, the atoms have {A.shape}; they must agree.")
        space = space or A.space
    shapes = [part.A.shape for part in domain.parts if part.A.shape is not None]
    if space is None and shapes:
        space = Space.default(shapes[0])
    if space is None and start is not None:
        known = start.first if isinstance(start, Kept) else start.x if isinstance(start, Result) else None
        given = known if known is not None else start[1][0] if isinstance(start, tuple) else start
        space = Space.of(given.vector if isinstance(given, Atom) else real_array(given, "start"))
    if space is None:
        raise ValueError("neither f nor the atoms know the shape of x; give start=, or set `shape` on the atom set.")
    return space
