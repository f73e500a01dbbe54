"""The user's `start` as weights, atoms and blocks, and what of it has to be taken on the user's word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from pursuit import geometry
from pursuit.arguments import describe, numeric_array, real_array
from pursuit.arrays import Array, Indices, Small, Space, host
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.frames import Atom
from pursuit.domains import Domain, Part, Product, conv
from pursuit.oracles import check_fits
from pursuit.run.result import Result

Started = tuple[Small, list[Atom], Indices]
"""Weights, atoms and blocks."""


def read_start(domain: Domain, space: Space, start: object, assumed: list[str]) -> Started:
    """Weights, atoms and blocks of the user's start: a Result, a pair (weights, atoms), a bare point, or "first"; over
    a product also a list with one of them for each piece. What cannot be checked joins `assumed`."""
    weights, atoms, blocks = _read(domain, space, start, assumed)
    if not any(part.price for part in domain.parts):
        return weights, atoms, blocks
    own = _in_hulls(start) if isinstance(start, Result) else {}
    pairs = [
        (w, a) if not part.price or own.get(id(a)) is part.A else _at_price(part, space, (w, a), assumed)
        for w, a, part in zip(weights, atoms, (domain.parts[b] for b in blocks), strict=True)
    ]
    return np.array([w for w, _ in pairs], dtype=np.float64), [a for _, a in pairs], blocks


def _in_hulls(start: Result) -> dict[int, Atoms]:
    """The sets in whose hulls atoms of a result are, by their identity; cones and spans may start from any vector."""
    parts = [start.domain.parts[b] for b in start.blocks]
    return {id(a): part.A for a, part in zip(start.atoms, parts, strict=True) if part.compact or part.price}


def _at_price(part: Part, space: Space, pair: tuple[float, Atom], assumed: list[str]) -> tuple[float, Atom]:
    """A weight and an atom of the hull of A, whose price is that of the weight: a vector costs its atomic norm."""
    weight, a = pair
    twin = part.A.rebuild(a)
    if twin is not None:
        c = a.coef / twin.coef
        return weight * abs(c), twin if c > 0 else twin.scaled(-1.0)
    gauge = part.A.gauge(a.dense(space)) if a.norm(space) > 0 else 0.0
    if gauge is not None:
        return weight * gauge, a.scaled(1.0 / (gauge or 1.0))
    if not conv(part.A).owns(space, a):
        advice = "give a Result, or weights and atoms of the set"
        raise ValueError(f"start has a vector whose norm by {part.A!r} is not known; {advice}.")
    if (told := f"the vectors of start are in the hull of {part.A!r}") not in assumed:
        assumed.append(told)
    return weight, a


def _read(domain: Domain, space: Space, start: object, assumed: list[str]) -> Started:
    """The start as it is given."""
    if isinstance(domain, Product) and isinstance(start, list | tuple):
        return _read_pieces(domain, space, start, assumed)
    if isinstance(start, str):
        return _first_atoms(domain, start)
    if isinstance(start, Result):
        return _read_result(domain, space, start, assumed)
    if isinstance(start, tuple) and len(start) == 2 and not isinstance(start[1], int | float):
        return _read_pair(domain, space, *start)
    if isinstance(start, Atom):
        raise TypeError(f"start is {describe(start)}; give it as a pair of lists, ([1.0], [atom]).")
    return _read_point(domain, space, start, assumed)


def _read_result(domain: Domain, space: Space, start: Result, assumed: list[str]) -> Started:
    """The weights and atoms of a Result; its point where it has more summands, or weights of another kind; and where
    that lies outside, the weights of each hull scaled to sum to 1."""
    for a in start.atoms:
        check_fits(a, space)
    if len(start.blocks) and start.blocks.max() >= len(domain.parts):
        return _read_point(domain, space, start.x, assumed)
    weights, atoms, blocks = _decomposed(domain, start.weights, start.atoms, start.blocks)
    if not domain.admits(weights, blocks):
        try:
            return _read_point(domain, space, start.x, assumed)
        except ValueError:  # it lies outside, or in a sum
            sums = [float(weights[blocks == b].sum()) if part.compact else 1.0 for b, part in enumerate(domain.parts)]
            weights = weights / np.array([total or 1.0 for total in sums])[blocks]
            if not domain.admits(weights, blocks):
                raise
    if not _owns(domain, space, (weights, atoms, blocks)):
        raise ValueError(f"start is a Result with atoms that {domain!r} does not have; leave it out, or give a point.")
    return weights, atoms, blocks


def _decomposed(domain: Domain, weights: Small, atoms: Sequence[Atom], blocks: Indices) -> Started:
    """Each summand's members as atoms of its set."""
    pieces = [
        part.decompose(weights[blocks == b], [a for a, mine in zip(atoms, blocks == b, strict=True) if mine])
        for b, part in enumerate(domain.parts)
    ]
    own_blocks = np.repeat(np.arange(len(pieces)), [len(own) for _, own in pieces])
    return np.concatenate([w for w, _ in pieces]), [a for _, own in pieces for a in own], own_blocks


def _owns(domain: Domain, space: Space, started: Started) -> bool:
    _, atoms, blocks = started
    return all(domain.parts[b].owns(space, a) for a, b in zip(atoms, blocks, strict=True))


def _read_pieces(domain: Product, space: Space, starts: Sequence[object], assumed: list[str]) -> Started:
    """Weights, atoms and blocks of a start that is given piece by piece."""
    if len(starts) != len(domain.domains):
        raise ValueError(
            f"start has {len(starts)} entries; {domain!r} has {len(domain.domains)} pieces, give one each."
        )
    weights, atoms, blocks, summands = [np.zeros(0)], [], [np.zeros(0, dtype=np.intp)], 0
    for i, (piece, shape, start) in enumerate(zip(domain.domains, domain.shapes, starts, strict=True)):
        try:
            own, members, where = read_start(piece, replace(space, shape=shape), start, assumed)
        except (ValueError, TypeError) as error:
            raise type(error)(f"piece {i} of {error}") from None
        where = summands + where
        weights, blocks, summands = [*weights, own], [*blocks, where], summands + len(piece.parts)
        atoms += [domain.embed(a, b) for a, b in zip(members, where, strict=True)]
    return np.concatenate(weights), atoms, np.concatenate(blocks)


def _read_pair(domain: Domain, space: Space, weights: object, atoms: object) -> Started:
    """A start that is given as weights and atoms of the first summand, checked."""
    if not isinstance(atoms, Iterable):
        raise TypeError(f"start has the atoms {describe(atoms)}; give a pair (weights, atoms) of two lists.")
    weights = host(numeric_array(weights, "the weights of start"))
    atoms = [as_atom(real_array(a, "an atom of start") if isinstance(a, Sequence) else a) for a in atoms]
    if weights.shape != (len(atoms),):
        raise ValueError(f"start has {len(atoms)} atoms, its weights have shape {weights.shape}; give one weight each.")
    if not np.isfinite(weights).all():
        raise ValueError("start has NaN or infinite weights; give finite ones.")
    for a in atoms:
        check_fits(a, space)
    started = _decomposed(domain, weights, atoms, np.zeros(len(atoms), dtype=np.intp))
    if not domain.admits(started[0], started[2]):
        if len(domain.parts) > 1:
            raise ValueError(f"start lies outside {domain!r}: its atoms count as those of one summand; give a Result.")
        raise ValueError(f"start lies outside {domain!r}: its weights must be non-negative and sum to 1.")
    if not _owns(domain, space, started):
        raise ValueError(f"start lies outside {domain!r}: one of its atoms is not an atom of the set.")
    return started


def _first_atoms(domain: Domain, start: str) -> Started:
    """The first atom that each hull lists, and 0 in spans and cones."""
    if start != "first":
        raise ValueError(f'start is {describe(start)}; give a point, (weights, atoms), a Result, or "first".')
    blocks = [b for b, part in enumerate(domain.parts) if part.compact]
    for b in blocks:
        if domain.parts[b].A.size is None:
            raise ValueError(
                f"start is 'first', and {domain.parts[b].A!r} cannot list its atoms; give a point of the hull."
            )
    return np.ones(len(blocks)), [domain.parts[b].A.atom(0) for b in blocks], np.array(blocks, dtype=np.intp)


def _read_point(domain: Domain, space: Space, start: object, assumed: list[str]) -> Started:
    """A bare point as the first element of S, as in the paper: S = {x_0}."""
    given = real_array(start, "start")
    given = space.zeros() if given.ndim == 0 and float(given) == 0.0 else given
    x = space.put(given) if isinstance(given, np.ndarray) else given
    if tuple(x.shape) != space.shape:
        raise ValueError(f"start has shape {tuple(x.shape)}, f lives on vectors of shape {space.shape}.")
    if isinstance(domain, Product):
        return _read_pieces(domain, space, domain.split(x), assumed)
    if len(domain.parts) > 1:
        raise ValueError(f"start cannot be split over the summands of {domain!r}; give a Result of the same domain.")
    inside = _inside(domain.parts[0], space, x)
    if inside is None:
        assumed.append(f"start lies in {domain!r}")
    if inside is False:
        raise ValueError(f"start lies outside {domain!r}; give a point of the domain.")
    return np.ones(1), [Atom(space.xp.asarray(x, copy=True))], np.zeros(1, dtype=np.intp)


def _inside(part: Part, space: Space, x: Array) -> bool | None:
    """Whether x lies in the domain, by a closed form or by `geometry`; None where neither tells."""
    known = part.contains(space, x)
    if known is not None or part.A.shape is None or not space.numpy:
        return known
    if not part.signless:
        return geometry.contains(part.A, x, 1.0 if part.compact else None)
    return None if part.A.size is None else geometry.contains(part.A.symmetrised(), x)
