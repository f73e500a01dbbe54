"""Linear minimisation oracles: exact, approximate, lazy, screened and indexed. An answer carries its quality delta.

The paper has two notions of quality (its equations for Algorithms 3 and 4): relative to x over a hull,
<g, z~ - x> <= delta min_z <g, z - x>; relative to 0 over a span, <g, z~> <= delta min_z <g, z>.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pursuit._arrays import Array, Space, check_seed, flag, host_array, number, told, use_python_numbers
from pursuit._memory import Memory, WithMemory
from pursuit.active import ActiveSet
from pursuit.atoms.base import Atoms, Search, as_atom, check_vector
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.frames import Atom
from pursuit.atoms.vectors import Dictionary
from pursuit.correlations import Correlations
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

    Parameters
    ----------
    gram : (n, n) array, optional
        The Gram matrix D' M D of the dictionary in the metric of a quadratic f (D' D for least squares). With it, the
        correlations are computed from its rows (`pursuit.correlations`).

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((30, 60))
    >>> f, A = ps.LeastSquares(D[:, 3] + 2.0 * D[:, 7]), ps.Dictionary(D)
    >>> r = ps.minimize(f, ps.lin(A), oracle=ps.Exact(gram=D.T @ D), stop=ps.Stop(atoms=2))
    >>> r.coef[[3, 7]].round(9)
    array([1., 2.])
    """

    gram: Any = None

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        if self.gram is not None:
            return _through_gram(host_array(self.gram, "gram"), part, space, several, f)
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


def _dense_dictionary(A: Atoms) -> tuple[Dictionary, float] | None:
    """The dictionary and the factor, if A is a multiple of a dense NumPy dictionary."""
    A, factor = unscaled(A)
    plain = isinstance(A, Dictionary) and type(A) is Dictionary and isinstance(A.D, np.ndarray)
    return (A, factor) if isinstance(A, Dictionary) and plain and A.D.dtype in (np.float32, np.float64) else None


def _through_gram(gram: Array, part: Part, space: Space, several: int, f: Objective | None) -> Ask:
    """The answers of a dictionary, by correlations from a Gram matrix."""
    found = _dense_dictionary(part.asked)
    if f is None or not f.quadratic or not found or found[0].D.ndim != 2 or not (found[0].symmetric or found[1] > 0):
        raise ValueError("gram serves a quadratic f over a dense NumPy Dictionary; leave it out here.")
    columns, factor = found
    D, n = columns.D, columns.n
    if gram.dtype.kind != "f":
        raise TypeError(f"gram has dtype {gram.dtype}; give real numbers.")
    if gram.shape != (n, n):
        raise ValueError(f"gram has shape {gram.shape}; give the matrix of shape {(n, n)} for {n} atoms.")
    metric = f.hessian(space.zeros())
    assert metric is not None
    assert columns.radius is not None
    c0 = D.T @ f.value_and_grad(space.zeros())[1]
    from_gram = Correlations(D, metric, c0, gram, several=several, signed=columns.symmetric, radius=columns.radius)

    def best(grad: Array, active: ActiveSet) -> Sequence[Atom]:
        atoms = [active.atoms[i] for i in active.support]
        if not all(isinstance(a.source, int) for a in atoms):  # the user's start is no combination of columns
            return part.asked.best(grad, several)
        coefs = active.weights[active.support] * np.array([a.coef for a in atoms])
        c = from_gram.correlations(grad, [a.source for a in atoms], coefs)
        return [a.scaled(factor) for a in columns.pick(c, several)]

    def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
        atoms = list(best(grad, active))
        return Answer(atoms, atoms[0].dot(space, grad) + part.price, 1.0)

    return ask


@dataclass(frozen=True)
class Screened:
    """An exact oracle (delta = 1) for dense dictionaries: an 8-bit copy proves which atoms cannot be the best, and only
    the others are recomputed. The atoms are the same as those of `Exact`, with a fraction of the memory traffic.

    Making the copy costs a few products; `A.screened()` makes it once for many solves. Where too many atoms must be
    recomputed, the plain product is used.

    >>> import numpy as np, pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((30, 600))
    >>> f, A = ps.LeastSquares(D[:, 3] + 2.0 * D[:, 7]), ps.Dictionary(D)
    >>> r = ps.minimize(f, ps.lin(A), oracle=ps.Screened(), stop=ps.Stop(atoms=2))
    >>> sorted(a.source for a in r.atoms)
    [3, 7]
    """

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        return ask_set(part.asked.screened().begin(), part, space, several)


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
            raise ValueError(f"delta is {told(self.delta)}; the quality of an oracle lies in (0, 1].")
        check_seed(self.seed)
        flag(self.worst, "worst")
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
            raise ValueError(f"K is {told(self.K)}; the laziness factor must be larger than 1.")
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
class Indexed:
    """Answers with an atom that an index of nearest neighbours finds, and asks the dictionary where it is too weak.

    An index of faiss searches a part of a large dictionary. What it misses nobody knows: its answers prove nothing
    (delta = 0), and the certificate does not change. Let phi be the descent <grad, x - z> of the last answer z of the
    dictionary itself. An answer of the index whose descent is at least phi / K is taken. Otherwise the dictionary is
    asked, exactly, so that no gap is reported that rests on the index. `Result.oracle_calls` counts the answers of the
    dictionary, `Result.cached` those of the index.

    Parameters
    ----------
    A : Dictionary
        Of a dense NumPy matrix; the domain must be made of it.
    index : faiss index of inner products, optional
        Of the columns of A in their order, as ``index.add(D.T)`` makes it. None: an inverted file of about
        4 sqrt(n) cells, 16 of which a question looks into; below 680 columns, a search of all of them (needs faiss,
        ``pursuit[index]``).
    K : float
        Larger than 1; how much weaker an answer of the index may be.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("faiss")
    >>> import numpy as np, pursuit as ps
    >>> A = ps.Dictionary(np.random.default_rng(0).standard_normal((60, 20_000)), signed=True)
    >>> f = ps.LeastSquares(A.D[:, :30].sum(axis=1))
    >>> r = ps.minimize(f, ps.conv(3.0 * A), ps.FullyCorrective(), oracle=ps.Indexed(A))
    >>> r.cached > 0, r.oracle_calls < r.iterations, r.gap <= 1e-6 * r.value
    (True, True, True)
    """

    A: Dictionary
    index: Any = None
    K: float = 2.0

    def __post_init__(self) -> None:
        if not isinstance(self.A, Dictionary) or _dense_dictionary(self.A) is None or self.A.D.ndim != 2:
            raise TypeError(f"A is {told(self.A)}; give a Dictionary of a dense NumPy matrix.")
        if not number(self.K) > 1:
            raise ValueError(f"K is {told(self.K)}; give a number larger than 1.")
        if self.index is None:
            object.__setattr__(self, "index", _index_of(self.A.D))
        if not all(hasattr(self.index, name) for name in ("search", "ntotal", "d", "metric_type")):
            raise TypeError(f"index is {told(self.index)}; give an index of faiss.")
        if (self.index.d, self.index.ntotal) != self.A.D.shape:
            held = f"{self.index.ntotal} vectors of {self.index.d} entries"
            raise ValueError(f"index holds {held}, and D has shape {self.A.D.shape}; add D.T to it.")
        if self.index.metric_type != 0:  # faiss.METRIC_INNER_PRODUCT
            raise ValueError("index does not compare by inner products; make it with faiss.METRIC_INNER_PRODUCT.")
        use_python_numbers(self)

    def begin(
        self, part: Part, space: Space, several: int = 1, blends: bool = False, f: Objective | None = None
    ) -> Ask:
        exact, run = Exact().begin(part, space, several, blends, f), Memory(phi=math.inf)
        columns, factor = unscaled(part.asked)
        if not isinstance(columns, Dictionary) or columns.D is not self.A.D:
            raise ValueError(f"the domain is made of {part.asked!r} and not of the columns of A; give Indexed its set.")
        D, signed = columns.D, columns.symmetric

        def near(grad: Array) -> list[Atom]:
            """The best of the atoms that the index finds, by their products in full precision."""
            h = grad if factor > 0 else -grad
            queries = np.stack([-h, h] if signed else [-h]).astype(np.float32)
            found = np.unique(self.index.search(queries, max(several, 1))[1])
            found = found[found >= 0]  # faiss fills up with -1
            products = D.T[found] @ h
            best = np.argsort(-np.abs(products) if signed else products, kind="stable")[:several]
            signs = np.where(products[best] > 0, -1.0, 1.0) if signed else np.ones(len(best))
            named = [columns.column(int(found[i]), float(s)) for i, s in zip(best, signs, strict=True)]
            return named if factor == 1.0 else [a.scaled(factor) for a in named]  # stored as those of the dictionary

        def ask(grad: Array, active: ActiveSet, gx: float) -> Answer:
            atoms = near(grad) if len(active) and 0.0 < run.phi < math.inf else []
            if atoms:
                dot = atoms[0].dot(space, grad) + part.price
                if -part.descent(dot, gx) >= run.phi / self.K:
                    return Answer(atoms, dot, 0.0, 0)
            answer = exact(grad, active, gx)
            run.phi = -part.descent(answer.dot, gx)
            return answer

        return WithMemory(ask, exact, run)


def _index_of(D: Array) -> Any:
    """A faiss index of the columns of D: an inverted file, or all of them where it would look into every cell."""
    try:
        import faiss
    except ImportError:
        raise ImportError("Indexed without an index needs faiss; install pursuit[index], or give one.") from None
    rows = np.ascontiguousarray(D.T, dtype=np.float32)
    index: Any = faiss.IndexFlatIP(rows.shape[1])
    probes = 16
    cells = min(int(4 * math.sqrt(len(rows))), len(rows) // 40)  # faiss wants 39 vectors in each
    if cells > probes:
        index = faiss.IndexIVFFlat(index, rows.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
        index.train(rows)
        index.nprobe = probes
    index.add(rows)
    return index


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
