"""Linear minimisation oracles: exact, approximate, lazy and random. An answer carries its quality delta.

The paper has two notions of quality (its equations for Algorithms 3 and 4): relative to x over a hull,
<g, z~ - x> <= delta min_z <g, z - x>; relative to 0 over a span, <g, z~> <= delta min_z <g, z>.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_bool, check_seed, number, require, use_python_numbers
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import Search, as_atom, check_vector
from pursuit.atoms.frames import Atom
from pursuit.domains import Answer, Part
from pursuit.state import Stateful

Ask = Callable[[Array, ActiveSet, float], Answer]
"""(grad, active set, <grad, x>) -> Answer.

Over a hull the first call has no point yet: the active set is empty, <grad, x> = 0, and the run begins at the atom that
is the answer."""


class Wants(Protocol):
    """What an oracle knows of the update: the number of atoms of one answer that it can use (`several`), and whether it
    moves weight among the active atoms (`blends`)."""

    @property
    def several(self) -> int: ...
    @property
    def blends(self) -> bool: ...


class Oracle:
    """The contract of an oracle: `begin` returns the function that answers for one summand of the domain in one run.

    >>> import pursuit as ps
    >>> class First(ps.Oracle):
    ...     def begin(self, part, space, update):
    ...         def ask(grad, active, gx):                        # the first atom; delta = 0: nothing is proved
    ...             atom = part.A.atom(0)
    ...             return ps.Answer([atom], atom.dot(space, grad), delta=0.0)
    ...         return ask
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, ps.FullyCorrective(), oracle=First(), stop=ps.Stop(iterations=1)).x
    array([3., 0.])
    """

    additive: float = 0.0
    """The C of an error C / (delta t + 2) that its answers may have in iteration t, beside their quality."""

    def begin(self, part: Part, space: Space, update: Wants) -> Ask:
        """The answers of one run: a function of (grad, active, <grad, x>), or a `Stateful` object with this call."""
        raise NotImplementedError(f"{type(self).__name__} must define begin(part, space, update).")


def as_atom_of(space: Space, a: object) -> Atom:
    """`a` as an atom with the dtype of the space: sets without a dtype (operators) may answer in another."""
    if isinstance(a, Atom) and a.mismatch(space) is None:
        return a
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
class Exact(Oracle):
    """The set's own oracle: delta = 1, or what the set's lower bound on <g, a> proves.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, oracle=ps.Exact()).x
    array([3., 1.])
    """

    def begin(self, part: Part, space: Space, update: Wants) -> Ask:
        return AskSet(part, space, part.asked.begin(), update.several)


@dataclass(eq=False)
class AskSet(Stateful):
    """The answers of a set's own search, with the quality that it proves and no more atoms than the update uses."""

    part: Part
    space: Space
    search: Search
    several: int = 1

    def __call__(self, grad: Array, active: ActiveSet, gx: float) -> Answer:
        part, price = self.part, self.part.price
        atoms, lower = self.search(grad, min(self.several, active.wanted), part.origin(gx) - price)
        atoms = [as_atom_of(self.space, a) for a in atoms]
        dot, lower = atoms[0].dot(self.space, grad) + price, lower + price
        quality = 1.0 if dot <= lower else part.quality(dot, lower, gx)
        return Answer(atoms, dot, quality, part.asked.questions, lower, gx)


@dataclass(eq=False)
class AskInFace(Stateful):
    """The same answers, each with a second atom: the one of largest <grad, a> in the smallest face of the hull that has
    x, named by the set's own oracle. Entries of x at a bound get a price that no atom of the face pays."""

    ask: Ask
    part: Part
    space: Space

    def __call__(self, grad: Array, active: ActiveSet, gx: float) -> Answer:
        answer = self.ask(grad, active, gx)
        if self.part.A.entry_bounds is None or not len(active):
            return answer
        (low, high), xp = self.part.A.entry_bounds, self.space.xp
        price = 2.0 * float(xp.sum(xp.abs(grad))) or 1.0
        at_low, at_high = active.x <= low, active.x >= high
        costs = xp.where(at_low & ~at_high, price - grad, xp.where(at_high & ~at_low, -price - grad, -grad))
        worst = as_atom_of(self.space, self.part.asked.lmo(costs))
        return replace(answer, atoms=[answer.atoms[0], worst], calls=answer.calls + 1)


STREAM = 1
"""Beside the seed: random atoms must not be those numbers that a user drew from the same seed."""

PATH_STEPS = 40
"""Questions to a set that cannot list its atoms, with which an answer of a given quality is found."""


@dataclass(frozen=True)
class Approximate(Oracle):
    r"""An oracle of quality delta: the paper's approximate LMO, for experiments and for tests.

    Parameters
    ----------
    delta : float in (0, 1]
    worst : bool
        True: the worst atom that delta allows, an adversary. False: a random atom that delta allows.
    seed : int
        The seed of the random choice.
    additive : float
        An answer may be worse than delta allows by additive / (delta t + 2) in iteration t (Jaggi, 2013; Lacoste-Julien
        et al., 2013). The rates over hulls hold with C + additive in place of C. The delta of an answer is that without
        this error, its lower bound is that with it.

    Notes
    -----
    A set that lists its atoms is searched through, and the worst answer is the worst there is. Over the hull of a
    convex set (balls, boxes), the point x + delta (z - x) is an atom of exactly this quality. Any other set is asked
    for z(s), an atom that minimises :math:`\langle\cos(s) g + \sin(s) r, z\rangle` for a random r of the length of g:
    :math:`\langle g, z(s)\rangle` grows with s, and bisection finds the last z(s) that is allowed. Where z(s) moves
    continuously, as matrices and points of a sphere do, its quality is delta to nine digits; elsewhere it is at least
    delta, and an adversary could do worse. Every question counts as a call.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> f, domain = ps.LeastSquares([0.4, 0.3, -1.0]), ps.conv(ps.Simplex(3))
    >>> r = ps.minimize(f, domain, ps.FullyCorrective(), oracle=ps.Approximate(0.5))
    >>> r.x.round(6), r.gap <= 1e-6 * r.value                     # the certificate divides by delta
    (array([0.55, 0.45, 0.  ]), True)
    >>> f, domain = ps.LeastSquares(np.diag([3.0, 1.0])), ps.lin(ps.RankOne((2, 2)))
    >>> now = next(ps.iterate(f, domain, oracle=ps.Approximate(0.5)))
    >>> round(now.answers[0].dot, 6)                              # half of the best, which is -3
    -1.5
    """

    delta: float = 1.0
    worst: bool = True
    seed: int = 0
    additive: float = 0.0

    def __post_init__(self) -> None:
        require(0 < number(self.delta) <= 1, "delta", self.delta, "the quality of the oracle, a number in (0, 1]")
        require(0 <= number(self.additive) < math.inf, "additive", self.additive, "an error, a number of at least 0")
        check_seed(self.seed)
        as_bool(self.worst, "worst")
        use_python_numbers(self)

    def begin(self, part: Part, space: Space, update: Wants) -> Ask:
        if self.additive and not part.compact:
            raise ValueError(
                f"additive is {self.additive:g} over {part!r}; additive errors belong to hulls, leave it out."
            )
        return _AskApproximate(self, part, space, np.random.default_rng([self.seed, STREAM]), part.asked.begin())


@dataclass(eq=False)
class _AskApproximate(Stateful):
    oracle: Approximate
    part: Part
    space: Space
    rng: np.random.Generator
    search: Search
    _t: int = field(default=0, init=False)

    def __call__(self, grad: Array, active: ActiveSet, gx: float) -> Answer:
        part, delta, origin = self.part, self.oracle.delta, self.part.origin(gx)
        slack = self.oracle.additive / (delta * self._t + 2.0)
        self._t += bool(len(active))  # not the question for the first atom
        if part.asked.size is not None:
            scores = part.asked.scores(grad) + part.price
            best, calls, proved = float(scores.min()), 1, 1.0
            atom = part.asked.atom(self._choose(scores, self._most(best, origin, slack)))
        else:
            atoms, lower = self.search(grad, 1, origin - part.price)
            z = as_atom_of(self.space, atoms[0])
            best, calls = z.dot(self.space, grad) + part.price, part.asked.questions
            proved = part.quality(best, lower + part.price, gx)
            atom, more = self._worse(z, grad, active, self._most(best, origin, slack) - part.price)
            calls += more
        dot = atom.dot(self.space, grad) + part.price
        lower = origin + (dot - slack - origin) / (delta * proved) if proved > 0 else -math.inf
        return Answer([atom], dot, delta * proved, calls, lower if slack else None)

    def _most(self, best: float, origin: float, slack: float) -> float:
        """The largest <grad, z> that is allowed, the best being known; where nothing descends, the best itself."""
        return max(origin + self.oracle.delta * min(best - origin, 0.0) + slack, best)

    def _choose(self, scores: Small, most: float) -> int:
        """One of the listed atoms of this quality."""
        allowed = np.flatnonzero(scores <= most)
        return int(allowed[scores[allowed].argmax()] if self.oracle.worst else self.rng.choice(allowed))

    def _worse(self, z: Atom, grad: Array, active: ActiveSet, most: float) -> tuple[Atom, int]:
        """An atom with <grad, a> <= most, and how often the set was asked for it."""
        part, space, dot = self.part, self.space, z.dot(self.space, grad)
        if not self.oracle.worst:
            most = dot + float(self.rng.uniform()) * (most - dot)
        if most <= dot or (not len(active) and part.compact):
            return z, 0
        if part.asked.convex and part.compact and len(active.signless) == 1:
            share = (most - dot) / max(space.dot(grad, active.x) - dot, most - dot)
            return Atom(z.dense(space) + share * (active.x - z.dense(space))), 0
        r, size = space.put(self.rng.standard_normal(space.shape)), space.norm(grad)
        r = r - (space.dot(r, grad) / size**2) * grad
        r = r * (size / (space.norm(r) or 1.0))
        low, high, found, questions = 0.0, math.pi, z, 0
        while questions < PATH_STEPS and not 0 <= most - found.dot(space, grad) <= 1e-9 * abs(most):
            questions += 1
            angle = 0.5 * (low + high)
            a = as_atom_of(space, self.search(math.cos(angle) * grad + math.sin(angle) * r, 1, -math.inf)[0][0])
            value = a.dot(space, grad)
            low, high = (angle, high) if value <= most else (low, angle)
            found = a if value <= most else found
        return found, questions * part.asked.questions


@dataclass(frozen=True)
class Lazy(Oracle):
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
        require(number(self.K) > 1, "K", self.K, "a laziness factor larger than 1")
        use_python_numbers(self)

    def begin(self, part: Part, space: Space, update: Wants) -> Ask:
        return _AskLazily(self.K, part, Exact().begin(part, space, update), update.blends and part.compact)


@dataclass(eq=False)
class _AskLazily(Stateful):
    K: float
    part: Part
    exact: Ask
    pairs: bool
    """Whether the update moves weight from one atom of S to another."""
    _phi: float = field(default=math.inf, init=False)

    def __call__(self, grad: Array, active: ActiveSet, gx: float) -> Answer:
        part = self.part
        alone, both = len(active.signless) == 1, part.signless and part.asked.symmetric  # in a sum, S has other atoms
        if alone and len(active) and 0.0 < self._phi < math.inf:
            q = active.slopes(grad)
            best = int(np.abs(q).argmax() if both else q.argmin())
            dot = -abs(float(q[best])) if both else float(q[best])
            difference = float(q[active.support].max()) - dot
            if (difference if self.pairs else -part.descent(dot, gx)) >= self._phi / self.K:
                flip = both and q[best] > 0
                atom = active.atoms[best]
                return Answer([atom.scaled(-1.0) if flip else atom], dot, 0.0, 0)
        answer = self.exact(grad, active, gx)
        self._phi = -part.descent(answer.dot, gx)
        return answer


@dataclass(frozen=True)
class RandomAtom(Oracle):
    """A random atom of the set instead of the best one: random pursuit (Stich, Müller and Gärtner, 2013), the baseline
    for greedy rates. It proves nothing (delta = 0). Over a span the sign is chosen so that f descends.
    `rates.random_pursuit` bounds the expected error.

    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, ps.Plain(ps.LineSearch()), oracle=ps.RandomAtom(seed=1)).x
    array([3., 1.])
    >>> r = ps.minimize(f, ps.lin(ps.Ball(2, 2)), ps.Plain(ps.LineSearch()), oracle=ps.RandomAtom(seed=1))
    >>> r.x.round(3), r.status.name
    (array([3., 1.]), 'GAP')
    """

    seed: int = 0

    def __post_init__(self) -> None:
        check_seed(self.seed)
        use_python_numbers(self)

    def begin(self, part: Part, space: Space, update: Wants) -> Ask:
        return _AskAtRandom(part, space, np.random.default_rng([self.seed, STREAM]))


@dataclass(eq=False)
class _AskAtRandom(Stateful):
    part: Part
    space: Space
    rng: np.random.Generator

    def __call__(self, grad: Array, active: ActiveSet, gx: float) -> Answer:
        atom = self.part.asked.sample(self.rng)
        if type(atom) is Atom and not self.space.numpy:  # sets that know no library draw NumPy arrays
            atom = Atom(self.space.put(host(atom.vector)), atom.source, atom.coef)
        atom = as_atom_of(self.space, atom)
        dot = atom.dot(self.space, grad) + self.part.price
        if self.part.signless and dot > 0 and self.part.asked.symmetric:
            atom, dot = atom.scaled(-1.0), -dot
        return Answer([atom], dot, 0.0)
