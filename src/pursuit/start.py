"""The start of a run: the space of x, and the first active set, from the oracle or from the user's `start`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from pursuit._arrays import Small, Space, host, numeric_array, real_array, told
from pursuit.active import ActiveSet
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.frames import Atom
from pursuit.certificates import Certificate
from pursuit.checkpoints import Fingerprint, Run, difference, factors_of, words_of
from pursuit.domains import Domain, Part, Product
from pursuit.guards import GuardedOracle, check_shape
from pursuit.line_search import line_search
from pursuit.objectives import Objective, as_value, inside
from pursuit.oracles import check_fits
from pursuit.result import Result

START_SEED = 3
"""The seed of the directions in which a first point is searched where f is not defined at 0."""

START_QUESTIONS = 64
"""Directions of that search."""

START_TRIALS = 8
"""Weights at which f must be finite beside those of a mean: rounding makes it so at each of them with probability 1/2,
say."""

START_ATOMS = 4096
"""Atoms of a set up to which the mean of all of them is tried at last."""


def run_to_continue(start: Any, f: Objective, domain: Domain, method: Sequence[Any]) -> Run | None:
    """The run that `start` is a result of, if it had this problem and this method; None: it is only a point."""
    if not isinstance(start, Result) or not start.memory:
        return start if isinstance(start, Run) else None
    then = start.f, start.domain, (start.update, start.oracle, start.refine)
    if factors_of(domain) != factors_of(start.domain) or words_of(f, domain, method) != words_of(*then):
        return None
    if f is start.f and domain is start.domain:
        return start.run
    if not all(map(_comparable, (f, *(part.A for part in domain.parts)))):
        return None
    now, before = (Fingerprint.of(*problem, start.start) for problem in ((f, domain, method), then))
    return start.run if difference(start.run, f, domain, now, before) is None else None


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
    return next((f.on(part.A.space) for part in domain.parts if part.A.space is not None), f)


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
        known = start.first if isinstance(start, Run) else start.x if isinstance(start, Result) else None
        given = known if known is not None else start[1][0] if isinstance(start, tuple) else start
        space = Space.of(given.vector if isinstance(given, Atom) else real_array(given, "start"))
    if space is None:
        raise ValueError("neither f nor the atoms know the shape of x; give start=, or set `shape` on the atom set.")
    return space


def set_first_atoms(
    active: ActiveSet, f: Objective, domain: Domain, start: Any, ask: GuardedOracle, certificate: Certificate
) -> None:
    """S at iteration 0, given an empty one: the user's start if there is one. Otherwise spans and cones begin at 0, and
    a hull begins at the atom that the oracle names for the gradient at 0; the other atoms of this answer enter S with
    weight zero. Where f is larger at this atom than at 0, a hull that has the negatives of its atoms begins between the
    two. Where f is infinite at 0, all begin at means of atoms.

    The question belongs to the run: it counts as an oracle call, and it uses random numbers of the run's oracle, so
    that later bounds, which hold with high probability, rest on numbers on which x does not depend.
    """
    space, hulls = active.space, [b for b, part in enumerate(domain.parts) if part.compact]
    if start is not None:
        active.replace(*_read_start(domain, space, start))
        return
    if not hulls:
        if f.L is None and f.exact and f.value(active.x) == math.inf:  # a smooth f is finite everywhere
            _search_inside(f, domain, active, ask)
        return
    value, grad = f.value_and_grad(active.x)
    if math.isfinite(as_value(value)):
        check_shape(grad, space)
    if not inside(space, value, grad):
        _search_inside(f, domain, active, ask)
        return
    certificate.observe_point(active.x, value, grad)
    answers = {b: ask.ask(b, grad, active, 0.0).atoms for b in hulls}
    firsts = {b: atoms[0] for b, atoms in answers.items()}
    active.replace(np.ones(len(hulls)), list(firsts.values()), hulls)
    if f.exact and f.value(active.x) > value:
        _move_towards_zero(f, domain, active, firsts)
        if math.isinf(f.value(active.x)):
            _search_inside(f, domain, active, ask)
            return
    for b, atoms in answers.items():
        for a in atoms[1:]:
            active.enter(a, b)


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
    gamma = line_search(f, space, x, d, space.dot(grad, d), 1.0) if inside(space, value, grad) else 1.0
    pairs = [(b, z) for b in symmetric for z in (firsts[b], _negative(domain.parts[b], firsts[b]))]
    weights = [1.0] * len(rest) + [0.5 * (1.0 + gamma), 0.5 * (1.0 - gamma)] * len(symmetric)
    active.replace(weights, [*rest.values(), *(z for _, z in pairs)], [*rest, *(b for b, _ in pairs)])


def _search_inside(f: Objective, domain: Domain, active: ActiveSet, ask: GuardedOracle) -> None:
    """Begin where f is defined, if that is not so at 0 or at the first atom: at a mean of atoms of the hulls, or of all
    summands."""
    hulls = [b for b, part in enumerate(domain.parts) if part.compact]
    everything = list(range(len(domain.parts)))
    if not any(_found_inside(f, domain, active, ask, blocks) for blocks in (hulls, everything) if blocks):
        raise ValueError(
            "f is not finite at 0, nor at the means of atoms that were tried; give start= where it is finite."
        )


def _found_inside(f: Objective, domain: Domain, active: ActiveSet, ask: GuardedOracle, searched: list[int]) -> bool:
    """Whether f is defined at the mean of the oracle's answers to random directions, one mean for each of these
    summands; else at the mean of all atoms, if there are few of them. There the active set begins.

    Of answers with several atoms, the mean of the first 1, 2, 4, ... of each summand is tried, since the update would
    have to take the weight of most of them away again. f may be finite at a mean by rounding only, as a singular matrix
    may have a Cholesky factor or a positive determinant. So f must be finite for slightly different weights, too; then
    up to four times as many atoms are tried, and up to twice as many directions asked, and the run begins at the mean
    with the smallest f.
    """
    space, rng = active.space, np.random.default_rng(START_SEED)
    origin, found = domain.active_set(space), domain.active_set(space)
    lowest, best, last = math.inf, 0, START_QUESTIONS  # the smallest f so far, and the size of its mean
    tried, most = 0, math.inf

    def mean(size: int) -> float:
        """f at the mean of the first atoms of each summand, this many, from which the run would begin."""
        places = np.concatenate([np.flatnonzero(found.blocks == b)[:size] for b in searched])
        blocks = found.blocks[places]
        active.replace(1.0 / np.bincount(blocks)[blocks], [found.atoms[i] for i in places], blocks)
        noise = 1.0 + math.sqrt(space.eps) * rng.standard_normal((START_TRIALS, len(places)))
        points = [active.x, *(active.synthesize(active.weights * row) for row in noise)]
        if not all(f.value(point) < math.inf for point in points):
            return math.inf  # before the gradient, which may not exist, is asked for
        value, grad = f.value_and_grad(active.x)
        return value if inside(space, value, grad) else math.inf

    for question in range(START_QUESTIONS):
        if question > last or tried >= most:
            break
        direction = space.put(rng.standard_normal(space.shape))
        for b in searched:
            for atom in ask.ask(b, direction, origin, 0.0).atoms:
                found.enter(atom, b)  # each atom once
        count = int(np.bincount(found.blocks).max())
        while tried < min(count, most):
            tried = min(max(2 * tried, 1), count)
            value = mean(tried)
            if value < lowest:
                last, most = min(last, 2 * question + 1), min(most, 4 * tried)
                lowest, best = value, tried
    if best:
        mean(best)
        return True
    sets = {b: domain.parts[b].asked for b in searched}
    if not all(A.size is not None and A.size <= START_ATOMS for A in sets.values()):
        return False
    found = domain.active_set(space)
    for b, A in sets.items():
        for i in range(A.size or 0):
            found.enter(A.atom(i), b)
    return math.isfinite(mean(START_ATOMS))


def _negative(part: Part, z: Atom) -> Atom:
    """-z as an atom of the set."""
    return part.A.rebuild(z.scaled(-1.0)) or z.scaled(-1.0)


def _read_start(domain: Domain, space: Space, start: Any) -> tuple[Small, list[Atom], Any]:
    """Weights, atoms and blocks of the user's start: a Result, a pair (weights, atoms), or a bare point; over a product
    also a list with one of them for each piece."""
    if isinstance(domain, Product) and isinstance(start, list | tuple):
        return _read_pieces(domain, space, start)
    if isinstance(start, Result):
        weights, atoms, blocks = start.weights, start.atoms, start.blocks
    elif isinstance(start, tuple) and len(start) == 2 and not isinstance(start[1], int | float):
        weights, atoms = _read_pair(*start)
        blocks = np.zeros(len(atoms), dtype=np.intp)
    else:
        if isinstance(start, Atom):
            raise TypeError(f"start is {told(start)}; give it as a pair of lists, ([1.0], [atom]).")
        return _read_point(domain, space, start)
    for a in atoms:
        check_fits(a, space)
    if len(blocks) and blocks.max() >= len(domain.parts):
        return _read_point(domain, space, start.x)  # a Result over more summands: only its point can be used
    pieces = [
        part.decompose(weights[blocks == b], [a for a, mine in zip(atoms, blocks == b, strict=True) if mine])
        for b, part in enumerate(domain.parts)
    ]
    weights, atoms = np.concatenate([w for w, _ in pieces]), [a for _, own in pieces for a in own]
    blocks = np.repeat(np.arange(len(pieces)), [len(own) for _, own in pieces])
    if not domain.admits(weights, blocks):
        if isinstance(start, Result):
            return _read_point(domain, space, start.x)
        if len(domain.parts) > 1:
            raise ValueError(f"start lies outside {domain!r}: its atoms count as those of one summand; give a Result.")
        raise ValueError(f"start lies outside {domain!r}: its weights must be non-negative and sum to 1.")
    if not all(domain.parts[b].owns(space, a) for a, b in zip(atoms, blocks, strict=True)):
        if isinstance(start, Result):
            raise ValueError(
                f"start is a Result with atoms that {domain!r} does not have; leave it out, or give a point."
            )
        raise ValueError(f"start lies outside {domain!r}: one of its atoms is not an atom of the set.")
    return weights, atoms, blocks


def _read_pieces(domain: Product, space: Space, starts: Sequence[Any]) -> tuple[Small, list[Atom], Any]:
    """Weights, atoms and blocks of a start that is given piece by piece."""
    if len(starts) != len(domain.domains):
        raise ValueError(
            f"start has {len(starts)} entries; {domain!r} has {len(domain.domains)} pieces, give one each."
        )
    weights, atoms, blocks, summands = [np.zeros(0)], [], [np.zeros(0, dtype=np.intp)], 0
    for i, (piece, shape, start) in enumerate(zip(domain.domains, domain.shapes, starts, strict=True)):
        try:
            own, members, where = _read_start(piece, replace(space, shape=shape), start)
        except (ValueError, TypeError) as error:
            raise type(error)(f"piece {i} of {error}") from None
        where = summands + np.broadcast_to(where, own.shape)
        weights, blocks, summands = [*weights, own], [*blocks, where], summands + len(piece.parts)
        atoms += [domain.embed(a, b) for a, b in zip(members, where, strict=True)]
    return np.concatenate(weights), atoms, np.concatenate(blocks)


def _read_pair(weights: Any, atoms: Any) -> tuple[Small, list[Atom]]:
    """A start that is given as weights and atoms, checked."""
    if not isinstance(atoms, Iterable):
        raise TypeError(f"start has the atoms {told(atoms)}; give a pair (weights, atoms) of two lists.")
    weights = host(numeric_array(weights, "the weights of start"))
    atoms = [as_atom(real_array(a, "an atom of start") if isinstance(a, Sequence) else a) for a in atoms]
    if weights.shape != (len(atoms),):
        raise ValueError(f"start has {len(atoms)} atoms, its weights have shape {weights.shape}; give one weight each.")
    if not np.isfinite(weights).all():
        raise ValueError("start has NaN or infinite weights; give finite ones.")
    return weights, atoms


def _read_point(domain: Domain, space: Space, x: Any) -> tuple[Small, list[Atom], Any]:
    """A bare point as the first element of S, as in the paper."""
    x = space.put(real_array(x, "start")) if isinstance(x, list | tuple | np.ndarray) else real_array(x, "start")
    if tuple(x.shape) != space.shape:
        raise ValueError(f"start has shape {tuple(x.shape)}, f lives on vectors of shape {space.shape}.")
    if isinstance(domain, Product):
        return _read_pieces(domain, space, domain.split(x))
    inside = domain.parts[0].contains(space, x) if len(domain.parts) == 1 else None
    if inside is None:
        known = "(weights, atoms) or as a Result" if len(domain.parts) == 1 else "a Result of the same domain"
        raise ValueError(f"start cannot be proved to lie in {domain!r}; give it as {known}.")
    if not inside:
        raise ValueError(f"start lies outside {domain!r}; give a point of the domain.")
    return np.ones(1), [Atom(space.xp.asarray(x, copy=True))], 0
