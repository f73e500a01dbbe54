"""Linear minimisation oracles: exact, approximate, lazy and random. An answer carries its quality delta.

The paper has two notions of quality (its equations for Algorithms 3 and 4): relative to x over a hull,
<g, z~ - x> <= delta min_z <g, z - x>; relative to 0 over a span, <g, z~> <= delta min_z <g, z>.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pursuit._memory import Memory, WithMemory
from pursuit.active import ActiveSet
from pursuit.arguments import as_bool, check_seed, describe, number, use_python_numbers
from pursuit.arrays import Array, Space
from pursuit.atoms.base import Search, as_atom, check_vector
from pursuit.atoms.frames import Atom
from pursuit.domains import Answer, Hull, Part
from pursuit.objectives import Objective

Ask = Callable[[Array, ActiveSet, float], Answer]
"""(grad, active set, <grad, x>) -> Answer.

Over a hull the first call has no point yet: the active set is empty, <grad, x> = 0, and the run begins at the atom that
is the answer."""


class Oracle(Protocol):
    """The contract of an oracle: `begin` returns the function that answers for one summand of the domain in one run.

    `several` is the number of atoms that the update can use at once, `blends` says whether it moves weight among the
    active atoms. `f` is given if the domain has one summand only.

    >>> import pursuit as ps
    >>> class First(ps.Oracle):
    ...     def begin(self, part, space, several=1, blends=False, f=None):
    ...         def ask(grad, active, gx):                        # the first atom; delta = 0: nothing is proved
    ...             atom = part.A.atom(0)
    ...             return ps.Answer([atom], atom.dot(space, grad), delta=0.0)
    ...         return ask
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, ps.FullyCorrective(), oracle=First(), stop=ps.Stop(iterations=1)).x
    array([3., 0.])
    """

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask: ...


def as_atom_of(space: Space, a: Any) -> Atom:
    """`a` as an atom with the dtype of the space: sets without a dtype (operators) may answer in another."""
    atom = as_atom(a)
    check_vector(atom, space)
    if type(atom) is Atom and atom.vector.dtype != space.dtype and isinstance(atom.vector, np.ndarray) and space.numpy:
        return Atom(space.put(atom.vector), atom.source, atom.coef)
    return atom


def check_fits(a: Atom, space: Space) -> None:
    """Refuse an atom that is not a vector of the space of f."""
    problem = a.mismatch(space)
    if problem is not None:
        raise ValueError(f"an atom has {problem}; atoms must be vectors of the space of f.")


@dataclass(frozen=True)
class Exact:
    """The set's own oracle: delta = 1, or what the set's lower bound on <g, a> proves.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, oracle=ps.Exact()).x
    array([3., 1.])
    """

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        return ask_set(part.asked.begin(), part, space, several)


def ask_set(search: Search, part: Part, space: Space, several: int) -> Ask:
    """The answers of a set's own search, with the quality that it proves and no more atoms than the update uses."""

    def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
        found, lower = search(grad, min(several, active.wanted), part.origin(gx) - part.price)
        atoms = [as_atom_of(space, a) for a in found]
        dot, lower = atoms[0].dot(space, grad) + part.price, lower + part.price
        return Answer(atoms, dot, part.quality(dot, lower, gx), lower=lower)

    return WithMemory(ask, search)


def ask_in_face(ask: Ask, part: Part, space: Space) -> Ask:
    """The same answers, each with a second atom: the one of largest <grad, a> in the smallest face of the hull that has
    x, named by the set's own oracle. Entries of x at a bound get a price that no atom of the face pays."""
    if part.A.entry_bounds is None:
        return ask
    (low, high), xp = part.A.entry_bounds, space.xp

    def ask_both(grad: Array, active: ActiveSet, gx: float) -> Answer:
        answer = ask(grad, active, gx)
        if not len(active):
            return answer
        price = 2.0 * float(xp.sum(xp.abs(grad))) or 1.0
        at_low, at_high = active.x <= low, active.x >= high
        costs = xp.where(at_low & ~at_high, price - grad, xp.where(at_high & ~at_low, -price - grad, -grad))
        worst = as_atom_of(space, part.asked.lmo(costs))
        return replace(answer, atoms=[answer.atoms[0], worst], calls=answer.calls + 1)

    return WithMemory(ask_both, ask)


@dataclass(frozen=True)
class Approximate:
    """An oracle of quality delta: the paper's approximate LMO, for experiments and for tests.

    Parameters
    ----------
    delta : float in (0, 1]
    worst : bool
        True: the worst atom that delta allows, an adversary. False: a random atom that delta allows.
    seed : int
        The seed of the random choice.

    Notes
    -----
    A finite set is searched through. Over the hull of a convex set (balls, boxes), the point x + delta (z - x) is an
    atom of exactly this quality. Other sets, and convex sets in a sum of domains, raise TypeError.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([0.4, 0.3, -1.0]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.FullyCorrective(), oracle=ps.Approximate(0.5))
    >>> r.x.round(6), r.gap <= 1e-6 * r.value                     # the certificate divides by delta
    (array([0.55, 0.45, 0.  ]), True)
    """

    delta: float
    worst: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < number(self.delta) <= 1:
            raise ValueError(f"delta is {describe(self.delta)}; the quality of an oracle lies in (0, 1].")
        check_seed(self.seed)
        as_bool(self.worst, "worst")
        use_python_numbers(self)

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        asked, rng = part.asked, np.random.default_rng(self.seed)
        if asked.size is None and not (asked.convex and isinstance(part, Hull) and f is not None):
            raise TypeError(f"{asked!r} cannot list its atoms, so Approximate cannot choose among them; use Exact().")

        def degrade(grad: Array, active: ActiveSet) -> Atom:
            quality = self.delta if self.worst else float(rng.uniform(self.delta, 1.0))
            best = as_atom(asked.lmo(grad))
            if not len(active):  # there is no point of the hull yet to mix it with: 0 may lie outside
                return best
            z = best.dense(space)
            return Atom(active.x + quality * (z - active.x))

        def choose(grad: Array, gx: float) -> Atom:
            scores = asked.scores(grad) + part.price
            origin, best = part.origin(gx), float(scores.min())
            allowed = np.flatnonzero(scores - origin <= self.delta * min(best - origin, 0.0))
            if not len(allowed):  # no atom descends: only the best one is allowed
                allowed = np.flatnonzero(scores == best)
            i = allowed[scores[allowed].argmax()] if self.worst else rng.choice(allowed)
            return asked.atom(int(i))

        def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
            atom = degrade(grad, active) if asked.size is None else choose(grad, gx)
            return Answer([atom], atom.dot(space, grad) + part.price, self.delta)

        return WithMemory(ask, rng)


@dataclass(frozen=True)
class Lazy:
    """Answers with an atom of S where it descends fast enough, and calls the set's oracle only where none does.

    Let phi be the descent <grad, x - z> of the last answer z of the set. An atom of S whose descent is at least phi / K
    is the answer (for updates that blend: a pair of atoms of S, with the difference of their slopes). Otherwise the
    set is asked, and phi is the descent of its answer. An answer from S proves nothing: its delta is 0, and the
    certificate does not change. `Result.oracle_calls` counts the answers of the set, `Result.cached` the others.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((30, 60))
    >>> A = ps.Dictionary(D, signed=True)
    >>> r = ps.minimize(ps.LeastSquares(D[:, 0]), ps.conv(0.7 * A), ps.BlendedPairwise(), oracle=ps.Lazy())
    >>> r.oracle_calls + r.cached == r.iterations + 2, r.gap <= 1e-6 * r.value
    (True, True)
    """

    K: float = 2.0

    def __post_init__(self) -> None:
        if not number(self.K) > 1:
            raise ValueError(f"K is {describe(self.K)}; the laziness factor must be larger than 1.")
        use_python_numbers(self)

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        exact, memory = Exact().begin(part, space, several, blends, f), Memory(phi=math.inf)

        def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
            if f is not None and len(active) and 0.0 < memory.phi < math.inf:  # in a sum, S holds other sets' atoms
                q = active.slopes(grad)
                best = int(np.abs(q).argmax() if part.signless else q.argmin())
                dot = -abs(float(q[best])) if part.signless else float(q[best])
                difference = float(q[active.support].max()) - dot
                if (difference if blends and part.compact else -part.descent(dot, gx)) >= memory.phi / self.K:
                    flip = part.signless and q[best] > 0
                    atom = active.atoms[best]
                    return Answer([atom.scaled(-1.0) if flip else atom], dot, 0.0, 0)
            answer = exact(grad, active, gx)
            memory.phi = -part.descent(answer.dot, gx)
            return answer

        return WithMemory(ask, exact, memory)


@dataclass(frozen=True)
class RandomAtom:
    """A random atom instead of the best one: random pursuit, the baseline for greedy rates. It proves nothing
    (delta = 0). The set must be finite. Over a span the sign is chosen so that f descends.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, ps.Plain(ps.LineSearch()), oracle=ps.RandomAtom(seed=1)).x
    array([3., 1.])
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        use_python_numbers(self)

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        asked, rng = part.asked, np.random.default_rng(self.seed)
        if asked.size is None:
            raise TypeError(f"{asked!r} cannot list its atoms, so RandomAtom cannot draw one; use Exact().")
        size = asked.size

        def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
            atom = asked.atom(int(rng.integers(size)))
            dot = atom.dot(space, grad) + part.price
            if part.signless and dot > 0:
                atom, dot = atom.scaled(-1.0), -dot
            return Answer([atom], dot, 0.0)

        return WithMemory(ask, rng)
