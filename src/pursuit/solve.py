"""The loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from pursuit._arrays import Array, Small, Space, real_array
from pursuit.active import ActiveSet
from pursuit.atoms.base import as_atom
from pursuit.atoms.frames import Atom
from pursuit.certificates import Certificate
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective
from pursuit.oracles import Exact, Oracle, admitted
from pursuit.refine import Refine, default_method
from pursuit.result import Result, State, Status, Stop, Trace
from pursuit.steps import UnboundedError, line_search
from pursuit.updates import Now, Update

PATIENCE = 30
"""Iterations without a lower value or a smaller gap after which a descending update has stalled."""


START = 1
"""The seed of the session that names the first atom: bounds by chance need random numbers that it has not used."""

PROBES = (0, 8, 16, 32)
"""Iterations at which a function that nobody knows to be bounded below is followed to infinity."""


def iterate(
    f: Objective,
    domain: Domain,
    update: Update | None = None,
    *,
    oracle: Oracle | None = Exact(),
    refine: Refine | Sequence[Refine] | None = None,
    start: Any = None,
) -> Iterator[State]:
    """The loop itself: an infinite generator of states. Parameters are those of `minimize`.

    >>> from itertools import islice
    >>> import pursuit as ps
    >>> states = ps.iterate(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective())
    >>> [s.value for s in islice(states, 3)]
    [5.0, 0.5, 0.0]
    """
    space = _space(f, domain, start)
    if update is None:
        update, moving = default_method(f, domain)
        refine = moving if refine is None else refine
    oracle = Exact() if oracle is None else oracle
    if isinstance(update, type) or not hasattr(update, "descends"):
        raise TypeError(f"update is {update!r}; give an update such as FullyCorrective() or Plain(ShortStep()).")
    if isinstance(oracle, type) or not hasattr(oracle, "begin") or hasattr(oracle, "descends"):
        raise TypeError(f"oracle is {oracle!r}; give an oracle such as Exact() or Lazy().")
    refinements = () if refine is None else tuple(refine) if isinstance(refine, Sequence) else (refine,)
    if not all(callable(each) and not isinstance(each, type) for each in refinements):
        raise TypeError(f"refine is {refine!r}; give a function of (f, domain, active), or several.")
    f = f.begin()
    alone = f if len(domain.parts) == 1 else None
    asks = [oracle.begin(part, space, update.several, update.blends, alone) for part in domain.parts]
    advance = update.begin(f, domain, space)
    certificate = Certificate(f, domain, space)
    active, calls = _begin(f, domain, space, start, certificate, update.several)
    cached = refused = 0
    patience = _Patience(update.descends)

    for t in count():
        value, grad = f.value_and_grad(active.x)
        value = float(value)
        if t == 0 and tuple(grad.shape) != space.shape:
            raise ValueError(f"the gradient of f has shape {tuple(grad.shape)}, x has {space.shape}; they must agree.")
        shares = active.shares(grad)
        _check(value + sum(shares), t)
        answers = [ask(grad, active, gx) for ask, gx in zip(asks, shares, strict=True)]
        calls += sum(answer.calls for answer in answers)
        cached += sum(not answer.calls for answer in answers)
        _check(sum(answer.dot for answer in answers), t)
        if t == 0:
            for answer in answers:
                _fits(answer.atoms[0], space)
        certificate.see(value, grad, shares, answers, active)
        stalled = patience.ends(value, certificate.gap, asked=all(map(_looked, answers)))
        yield State(
            t, active.x, value, grad, answers, certificate.gap, certificate.lower,
            active, calls, cached, refused, certificate.stationary, stalled,
        )  # fmt: skip
        if t in PROBES:
            _probe(f, domain, space, grad, shares, answers, active)
        advance(Now(t, value, grad, shares, answers), active)
        refused += sum(not _refine(each, f, domain, space, active, value) for each in refinements)


def minimize(
    f: Objective,
    domain: Domain,
    update: Update | None = None,
    *,
    oracle: Oracle | None = Exact(),
    refine: Refine | Sequence[Refine] | None = None,
    stop: Stop = Stop(),
    start: Any = None,
    callback: Callable[[State], Any] | None = None,
    progress: bool = False,
) -> Result:
    """Minimise a smooth convex function over the hull, cone or span of atoms, or a sum of such.

    Parameters
    ----------
    f : Objective
    domain : conv(A), cone(A), lin(A), or a sum of them
    update : Update, optional
        Such as FullyCorrective() or Plain(ShortStep()).
        None: the best general choice for the domain and the objective, one atom at a time if `stop` counts them, and
        with a refinement where the atoms can move; `result.update` and `result.refine` say which they were.
    oracle : Exact, Approximate, Lazy, Screened or RandomAtom
        Who answers; Exact() by default.
    refine : callable (f, domain, active) -> (weights, atoms) or None, or several of them, optional
        Line 7 of Algorithms 3 and 4: called after each update, may move atoms and weights; `pursuit.refine` has some.
        What raises f (or gives back more of the update's gain than its `share`) or leaves the domain is refused and
        counted.
    stop : Stop
        By default a certified relative gap of 1e-6, or 10,000 iterations.
    start : Result, (weights, atoms) or point, optional
        Where to begin. Without it, hulls begin at the atom that the oracle names for the gradient at 0, spans at 0.
    callback : callable of a State, optional
        Return True to stop.
    progress : bool
        Show a progress bar, on terminals only.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 200))
    >>> y = X[:, :3] @ [2.0, -1.0, 1.0]
    >>> r = ps.minimize(ps.LeastSquares(y), ps.conv(3.5 * ps.Dictionary(X, signed=True)), stop=ps.Stop(gap=1e-8))
    >>> r.gap <= 1e-8, sorted(a.source for a in r.atoms)
    (True, [0, 1, 2])
    """
    began = time.perf_counter()
    if not isinstance(stop, Stop):
        raise TypeError(f"stop is {stop!r}; give rules such as Stop(gap=1e-6) or Stop(iterations=100).")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback is {callback!r}; give a function of a State.")
    if update is None:
        _space(f, domain, start)  # f and domain are what they should be
        update, moving = default_method(f, domain, sparse=stop.atoms is not None)
        refine = moving if refine is None else refine
    trace, status, state, first = Trace(), None, None, None
    bar = tqdm(disable=None if progress else True, desc="pursuit", unit=" iterations", leave=False)
    try:
        for state in iterate(f, domain, update, oracle=oracle, refine=refine, start=start):
            seconds = time.perf_counter() - began
            trace.record(state, seconds)
            first = state.x if first is None else first
            if progress:
                news = f"f = {state.value:.6g}, gap = {state.gap:.2g}, {len(state.active)} atoms"
                bar.set_postfix_str(news, refresh=False)
                bar.update()
            if callback is not None and callback(state):
                status = Status.CALLBACK
            status = status or stop.reached(state, seconds)
            if status is not None:
                break
    except UnboundedError:
        if state is None:
            raise
        status = Status.UNBOUNDED  # some inner steps may have been made: what is returned belongs together
        state = replace(state, x=state.active.x, value=f.value(state.active.x))
    finally:
        bar.close()
    assert state is not None
    assert status is not None
    support = state.active.support
    return Result(
        x=state.x,
        value=state.value,
        gap=state.gap,
        lower=state.lower,
        status=status,
        iterations=state.iteration,
        oracle_calls=state.oracle_calls,
        cached=state.cached,
        seconds=time.perf_counter() - began,
        weights=state.active.weights[support],
        atoms=[state.active.atoms[i] for i in support],
        blocks=state.active.blocks[support],
        answers=state.answers,
        trace=trace,
        start=first,
        update=update,
        oracle=Exact() if oracle is None else oracle,
        refine=refine,
        refused=state.refused,
        f=f,
        domain=domain,
    )


def _probe(
    f: Objective,
    domain: Domain,
    space: Space,
    grad: Array,
    shares: list[float],
    answers: list[Answer],
    active: ActiveSet,
) -> None:
    """Look whether f falls for ever along the oracle's atom or along x, on domains that are not bounded."""
    if domain.bounded or f.infimum > -math.inf or f.mu > 0 or not f.exact:
        return
    for part, answer in zip(domain.parts, answers, strict=True):
        if not part.compact and answer.dot < 0:
            line_search(f, space, active.x, answer.atoms[0].dense(space), answer.dot, math.inf)
    if len(domain.parts) == 1 and shares[0] < 0:
        line_search(f, space, active.x, active.x, shares[0], math.inf)


def _looked(answer: Answer) -> bool:
    """Whether the set itself was asked for its best atom, not a memory or a lot."""
    return answer.calls > 0 and (answer.lower is not None or answer.delta > 0)


class _Patience:
    """Counts iterations in which a descending update improved neither the value nor the gap."""

    def __init__(self, descends: bool) -> None:
        self.descends, self.value, self.gap, self.idle = descends, math.inf, math.inf, 0

    def ends(self, value: float, gap: float, asked: bool) -> bool:
        better = value < self.value or gap < self.gap or not asked
        self.value, self.gap = min(value, self.value), min(gap, self.gap)
        self.idle = 0 if better else self.idle + 1
        return self.descends and self.idle >= PATIENCE


def _space(f: Objective, domain: Domain, start: Any) -> Space:
    """H, from whoever knows it: the objective, the atoms, or the start; they must agree."""
    if not isinstance(f, Objective):
        raise TypeError(f"f is {type(f).__name__}; give an objective such as LeastSquares(y), or wrap it in Smooth.")
    if not isinstance(domain, Domain):
        raise TypeError(f"domain is {type(domain).__name__}; give conv(...) or lin(...) of a set of atoms.")
    space = f.space
    for atoms in (part.atoms for part in domain.parts):
        if space is not None and atoms.space is not None and space.xp is not atoms.space.xp:
            names = f"{space.xp.__name__} and {atoms.space.xp.__name__}"
            raise TypeError(f"f and the atoms come from different array libraries, {names}; convert one to the other.")
        if space is not None and atoms.space is not None and space.dtype != atoms.space.dtype:
            raise TypeError(f"f has dtype {space.dtype}, the atoms {atoms.space.dtype}; convert one to the other.")
        if space is not None and atoms.shape is not None and space.shape != atoms.shape:
            raise ValueError(
                f"f lives on vectors of shape {space.shape}, the atoms have {atoms.shape}; they must agree."
            )
        space = space or atoms.space
    shapes = [part.atoms.shape for part in domain.parts if part.atoms.shape is not None]
    if space is None and shapes:
        space = Space.default(shapes[0])
    if space is None and start is not None:
        known = start.x if isinstance(start, Result) else start[1][0] if isinstance(start, tuple) else start
        space = Space.of(known.vector if isinstance(known, Atom) else real_array(known, "start"))
    if space is None:
        raise ValueError("neither f nor the atoms know the shape of x; give start=, or set `shape` on the atom set.")
    return space


def _begin(
    f: Objective, domain: Domain, space: Space, start: Any, certificate: Certificate, several: int
) -> tuple[ActiveSet, int]:
    """The first active set, and the oracle calls it took. Hulls begin at the best atom, or at 0 where f is lower
    there and nothing bounds its curvature; the others that an update of several atoms a call could use come along with
    weight zero."""
    active = domain.active_set(space)
    if start is not None:
        active.replace(*_given(domain, space, start))
        return active, 0
    hulls = [b for b, part in enumerate(domain.parts) if part.compact]
    if not hulls:
        return active, 0
    value, grad = f.value_and_grad(active.x)
    if math.isnan(value) or not math.isfinite(space.norm(grad)):
        raise ValueError("f is not finite at 0, where the search for a first atom begins; give start=.")
    certificate.notice(space.norm(grad))
    named = [[admitted(space, a) for a in domain.parts[b].asked.session(START)(grad, several, 0.0)[0]] for b in hulls]
    for atoms in named:
        _fits(atoms[0], space)
    active.replace(np.ones(len(hulls)), [atoms[0] for atoms in named], hulls)
    if f.L is None and f.value(active.x) > value:  # curvature has no bound, and the atom may be astronomically bad
        _centre(domain, active, hulls, [atoms[0] for atoms in named])
    for b, atoms in zip(hulls, named, strict=True):
        for a in atoms[1:]:
            active.enter(a, b)
    return active, len(hulls)


def _centre(domain: Domain, active: ActiveSet, hulls: list[int], firsts: list[Atom]) -> None:
    """Begin at 0 = (z - z) / 2 instead, where every hull has the negatives of its atoms."""
    pieces = [domain.parts[b].decompose(np.zeros(1), [z]) for b, z in zip(hulls, firsts, strict=True)]
    weights, blocks = np.concatenate([w for w, _ in pieces]), np.repeat(hulls, [len(w) for w, _ in pieces])
    if domain.admits(weights, blocks):
        active.replace(weights, [a for _, atoms in pieces for a in atoms], blocks)


def _given(domain: Domain, space: Space, start: Any) -> tuple[Small, list[Atom], Any]:
    """Weights, atoms and blocks of a start: a Result, a pair (weights, atoms), or a bare point."""
    if isinstance(start, Result):
        weights, atoms, blocks = start.weights, start.atoms, start.blocks
    elif isinstance(start, tuple) and len(start) == 2 and not isinstance(start[1], int | float):
        weights, atoms, blocks = *_pair(*start), np.zeros(len(start[1]), dtype=np.intp)
    else:
        return *_point(domain, space, start), 0
    for a in atoms:
        _fits(a, space)
    if len(blocks) and blocks.max() >= len(domain.parts):
        return *_point(domain, space, start.x), 0  # from a sum with more summands: only the point carries over
    pieces = [
        part.decompose(weights[blocks == b], [a for a, mine in zip(atoms, blocks == b, strict=True) if mine])
        for b, part in enumerate(domain.parts)
    ]
    weights, atoms = np.concatenate([w for w, _ in pieces]), [a for _, own in pieces for a in own]
    blocks = np.repeat(np.arange(len(pieces)), [len(own) for _, own in pieces])
    if not domain.admits(weights, blocks):
        if isinstance(start, Result):
            return *_point(domain, space, start.x), 0
        raise ValueError(f"start lies outside {domain!r}: its weights must be non-negative and sum to 1.")
    if not all(domain.parts[b].owns(space, a) for a, b in zip(atoms, blocks, strict=True)):
        raise ValueError(f"start lies outside {domain!r}: one of its atoms is not an atom of the set.")
    return weights, atoms, blocks


def _pair(weights: Any, atoms: Any) -> tuple[Small, list[Atom]]:
    """A start that is given as weights and atoms, checked."""
    weights, atoms = np.asarray(weights, dtype=np.float64), [as_atom(a) for a in atoms]
    if weights.shape != (len(atoms),):
        raise ValueError(f"start has {len(atoms)} atoms, its weights have shape {weights.shape}; give one weight each.")
    if not np.isfinite(weights).all():
        raise ValueError("start has NaN or infinite weights; give finite ones.")
    return weights, atoms


def _point(domain: Domain, space: Space, x: Any) -> tuple[Small, list[Atom]]:
    """A bare point, which is then the first element of S, as in the paper."""
    x = space.put(real_array(x, "start")) if isinstance(x, list | tuple | np.ndarray) else real_array(x, "start")
    if tuple(x.shape) != space.shape:
        raise ValueError(f"start has shape {tuple(x.shape)}, f lives on vectors of shape {space.shape}.")
    inside = domain.parts[0].contains(space, x) if len(domain.parts) == 1 else None
    if inside is None:
        raise ValueError(f"start cannot be proved to lie in {domain!r}; give it as (weights, atoms) or as a Result.")
    if not inside:
        raise ValueError(f"start lies outside {domain!r}; give a point of the domain.")
    return np.ones(1), [Atom(space.xp.asarray(x, copy=True))]


def _fits(a: Atom, space: Space) -> None:
    problem = a.fits(space)
    if problem is not None:
        raise ValueError(f"an atom has {problem}; atoms must be vectors of the space of f.")


def _check(total: float, t: int) -> None:
    if math.isnan(total):
        raise ValueError(f"f or the oracle returned NaN at iteration {t}; check the objective and the atoms.")


def _refine(refine: Refine, f: Objective, domain: Domain, space: Space, active: ActiveSet, before: float) -> bool:
    """Line 7: obey a refinement only if it stays in the domain and raises f no further than it may; `before` is what f
    was before the update."""
    ceiling = f.value(active.x)
    share = getattr(refine, "share", None)
    if share is not None:
        ceiling += share * max(before - ceiling, 0.0)
    proposal = refine(f, domain, active) if share is None else refine(f, domain, active, ceiling)
    if proposal is None:
        return True
    if not isinstance(proposal, tuple) or len(proposal) not in (2, 3):
        raise TypeError(
            f"refine returned {type(proposal).__name__}; return (weights, atoms), or None to change nothing."
        )
    weights, atoms = np.asarray(proposal[0], dtype=np.float64), [as_atom(a) for a in proposal[1]]
    if weights.shape != (len(atoms),) or not np.isfinite(weights).all():
        return False
    blocks = np.broadcast_to(proposal[2] if len(proposal) > 2 else 0, (len(atoms),))
    for a in atoms:
        _fits(a, space)
    owned = all(domain.parts[b].owns(space, a) for a, b in zip(atoms, blocks, strict=True))
    if not (owned and domain.admits(weights, blocks)):
        return False
    trial = domain.active_set(space)
    trial.replace(weights, atoms, blocks)
    if not f.value(trial.x) <= ceiling:
        return False
    active.replace(weights, atoms, blocks)
    return True
