"""The problem of a result, its point and dual vectors in the words of `pursuit.verify`, as far as it has rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are imported when they are first used
import scipy.sparse as sp

from pursuit.arrays import Small, Space, host
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.combinations import Embedded, Image
from pursuit.atoms.factored import RankOneAtom
from pursuit.atoms.frames import Atom
from pursuit.atoms.graphs import Flows, Paths
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.matrices import RankOne, Spectrahedron, SymmetricRankOne
from pursuit.atoms.polytopes import Hypersimplex, KSparse, Permutations
from pursuit.atoms.programs import Polytope
from pursuit.atoms.sparse import LiftedAtom, SparseAtom
from pursuit.atoms.transport import Transport
from pursuit.atoms.vectors import Ball, Box, SignedBasis, Simplex
from pursuit.atoms.views import is_sparse
from pursuit.certificates.dual import DualBound
from pursuit.domains import Cone, Hull, Part, Penalty
from pursuit.linalg.rounding import product_error
from pursuit.objectives import Huber, LeastSquares, Logistic, Multinomial, Objective, Poisson, Quadratic, Ridge

if TYPE_CHECKING:
    from pursuit.run.result import Result

Spec = dict[str, Any]
"""A part of a proof. Arrays of data are arrays here and hashes in the file; all else is JSON."""

LOSSES: dict[type[Objective], str] = {
    LeastSquares: "least_squares",
    Huber: "huber",
    Logistic: "logistic",
    Poisson: "poisson",
    Multinomial: "multinomial",
}


def _numbers(a: Any) -> list[float]:
    return [float(v) for v in np.asarray(a, dtype=np.float64).ravel()]


def objective(f: Objective) -> Spec:
    """f in the words of a proof."""
    if isinstance(f, Ridge):
        across = math.prod(f.f.space.shape[1:]) if f.f.space is not None else 1
        return objective(f.f) | {"ridge": f.p * across}
    if isinstance(f, Quadratic) and isinstance(f.H, np.ndarray):
        return {"kind": "quadratic", "H": f.H, "c": host(f.c)}
    kind = LOSSES.get(type(f))
    if kind is None:
        raise ValueError(f"f is {f!r}, for which the checker has no rule; see docs/check_it_yourself.md.")
    spec: Spec = {"kind": kind, "y": host(f.y)}  # type: ignore[attr-defined]
    weights = f.weights  # type: ignore[attr-defined]
    if f.weighted:  # type: ignore[attr-defined]
        spec["weights"] = host(weights).reshape(len(host(weights)), -1)
        if spec["weights"].shape[1] == 1:
            spec["weights"] = spec["weights"].ravel()
    elif weights != 1.0:
        spec["weights"] = weights
    return spec | ({"width": f.width} if isinstance(f, Huber) else {})


@dataclass
class Peeled:
    """A set c M A, at the entries of a piece: A, c, M and the piece."""

    A: Atoms
    scale: float
    image: Image | None
    place: slice | None

    @classmethod
    def of(cls, A: Atoms, atoms: Iterable[Atom] = ()) -> Peeled:
        """What the rules are about; the image itself where atoms do not say of what they are images."""
        place = slice(A.start, A.stop) if isinstance(A, Embedded) else None
        A = A.base if isinstance(A, Embedded) else A
        if not isinstance(A, Image):
            return cls(A, 1.0, None, place)
        plain = A.map is None or A.map._operator is None
        if A.signed or not plain or isinstance(A.base, Image):
            return cls(A, 1.0, None, place)
        peeled = cls(A.base, A.c, None if A.map is None else A, place)
        return cls(A, 1.0, None, place) if any(peeled._own(a) is None for a in atoms) else peeled

    @cached_property
    def spec(self) -> Spec:
        """The set in the words of a proof."""
        A, named = self.A, next((make for kind, make in SETS.items() if type(self.A) is kind), None)
        spec: Spec = {} if self.place is None else {"start": self.place.start}
        if type(A) is Dictionary and not A._operator:
            spec["map"] = A.D if A._sparse else host(A.D)
            named = _basis
        elif self.image is not None and self.image.map is not None:
            M = self.image.map
            spec["map"] = M.M if M._sparse else host(M.M)
            spec |= {"columns": M._across[0]} if M._across else {}
            spec |= {"below": M._root} if M.lifted else {}
        n = math.prod(A.shape or ())
        described = named(A) if named is not None else None
        spec["set"] = described or {"kind": "trusted", "n": n, "name": repr(A)}
        return spec | ({"scale": self.scale} if self.scale != 1.0 else {})

    @property
    def trusted(self) -> bool:
        """Whether the checker has no rule for the set and believes its oracle."""
        return bool(self.spec["set"]["kind"] == "trusted")

    def point(self, result: Result, b: int) -> Spec:
        """The weights and atoms of summand b, in the coordinates of the set."""
        mine = np.flatnonzero(result.blocks == b).tolist()
        atoms = [self._own(result.atoms[i]) or result.atoms[i] for i in mine]
        scale = self.scale if self.image is None else 1.0
        factors = [a.coef / scale if self._factored and isinstance(a, RankOneAtom) else 1.0 for a in atoms]
        return {"weights": _numbers(result.weights[mine] * factors), "atoms": [self._coordinates(a) for a in atoms]}

    @property
    def _factored(self) -> bool:
        return type(self.A) in (RankOne, SymmetricRankOne, Spectrahedron)

    def _own(self, a: Atom) -> Atom | None:
        """The atom of the set itself of which `a` is the image, if it is known; `a` where there is no map."""
        if self.image is None or isinstance(self.A, Dictionary):
            return a
        own = self.A.rebuild(Atom(np.zeros(()), a.source, a.coef / self.scale))
        if own is None and isinstance(a, LiftedAtom) and self.image.map is not None:
            return a.tail.scaled(1.0 / (self.image.map._root * self.scale))
        return own

    def _coordinates(self, a: Atom) -> Spec:
        """An atom before its map and factor."""
        if isinstance(self.A, Dictionary):
            return {"at": [int(a.source)], "values": [a.coef / self.scale]}
        if self._factored and isinstance(a, RankOneAtom):
            return {"left": _numbers(a.u), "right": _numbers(a.v)}
        if self.image is not None:
            return _entries(a, 0, 1.0)
        return _entries(a, 0 if self.place is None else self.place.start, self.scale)

    def answer(self, u: Small) -> Small:
        """h with <u, c M a> = <h, a>, in floats."""
        h: Any = u.ravel() if self.place is None else u.ravel()[self.place]
        if self.image is not None and self.image.map is not None:
            h = host(self.image.map.adjoint(self.image.map.inner.put(h.reshape(self.image.shape or ()))))
        return np.asarray(self.scale * h).ravel()


def _entries(a: Atom, start: int, scale: float) -> Spec:
    if isinstance(a, SparseAtom):
        return {"at": [int(i) - start for i in a.positions], "values": _numbers(a.values / scale)}
    return {"values": _numbers(host(a.vector) / scale)}


def _basis(A: Any) -> Spec:
    return {"kind": "signed" if A.symmetric else "basis", "n": A.n}


def _ball(A: Ball) -> Spec | None:
    kind = {1.0: "signed", 2.0: "l2", math.inf: "linf"}.get(A.p)
    return None if kind is None else {"kind": kind, "n": A.n}


def _groups(A: Groups) -> Spec:
    groups = [A._order[A._bounds[j] : A._bounds[j + 1]].tolist() for j in range(A.m)]
    return {"kind": "groups", "n": A.n, "groups": groups, "weights": _numbers(A.weights)}


def _box(A: Box) -> Spec:
    return {"kind": "box", "n": int(A.lower.size), "lower": _numbers(host(A.lower)), "upper": _numbers(host(A.upper))}


def _matrices(kind: str) -> Callable[[Any], Spec]:
    def words(A: Any) -> Spec:
        spec: Spec = {"kind": kind, "shape": list(A.view.dims)}
        if A.view.observed:
            rows, columns = A.view.indices
            spec |= {"rows": np.asarray(rows).tolist(), "columns": np.asarray(columns).tolist()}
        return spec

    return words


def _polytope(A: Polytope) -> Spec:
    ends = {"lower": A._lower, "upper": A._upper}
    bounds = {name: [v if math.isfinite(v) else None for v in _numbers(end)] for name, end in ends.items()}
    return {"kind": "polytope", "n": A.n, "A": A._A, "b": _numbers(A._b), "inequalities": A._inequalities, **bounds}


def _flows(A: Any) -> Spec:
    if isinstance(A, Paths):
        trips = [[A.start, A.end, 1.0]]
    else:
        rows, ends = np.nonzero(A._arriving)
        trips = [[int(A._origins[o]), int(t), float(A._arriving[o, t])] for o, t in zip(rows, ends, strict=True)]
    nodes = {"kind": "flows", "n": len(A.edges), "nodes": A.nodes}
    return nodes | {"edges": A.edges.ravel().tolist(), "trips": trips}


SETS: dict[type[Atoms], Callable[[Any], Spec | None]] = {
    Simplex: _basis,
    SignedBasis: _basis,
    Ball: _ball,
    Box: _box,
    Groups: _groups,
    KSparse: lambda A: {"kind": "ksparse", "n": A.n, "k": A.k},
    KSupport: lambda A: {"kind": "ksupport", "n": A.n, "k": A.k},
    Hypersimplex: lambda A: {"kind": "hypersimplex", "n": A.n, "k": A.k},
    Permutations: lambda A: {"kind": "permutations", "size": A.n},
    Transport: lambda A: {"kind": "transport", "a": _numbers(A.a), "b": _numbers(A.b)},
    Polytope: _polytope,
    Paths: _flows,
    Flows: _flows,
    RankOne: _matrices("rank_one"),
    SymmetricRankOne: _matrices("symmetric_rank_one"),
    Spectrahedron: _matrices("spectrahedron"),
}


def summand(part: Part, peeled: Peeled) -> Spec:
    """A summand of the domain in the words of a proof."""
    kinds = {Hull: "hull", Cone: "cone", Penalty: "penalty"}
    spec: Spec = peeled.spec | {"kind": kinds.get(type(part), "span")}
    rho = getattr(part, "rho", None)
    return spec | ({"price": part.price} if part.price else {}) | ({} if rho is None else {"rho": rho})


# ---------------------------------------------------------------------- dual vectors


def dual(result: Result, peeled: Sequence[Peeled], u: Small) -> Spec:
    """A dual vector u, with hints for the sets and the objective."""
    spec: Spec = {"u": _numbers(u), "hints": [hint(p, p.answer(u)) for p in peeled]}
    if isinstance(result.f, Quadratic):
        H = 0.5 * (result.f.H + result.f.H.T)
        spec |= {"z": _numbers(host(result.x)), "mu": float(np.linalg.eigvalsh(H)[0])}
    if any(part.free_cone for part in result.domain.parts):
        cones = DualBound(result.f, result.domain, Space.of(result.x), 0).cones
        if cones is not None and cones.interior is not None:
            spec |= {"v": _numbers(host(cones.interior))}
    return spec


def hint(peeled: Peeled, h: Small) -> Spec:
    """What shows the checker the minimum of <h, a> over a set."""
    A = peeled.A
    if peeled.trusted:
        return {"lowest": _trusted(A, h)}
    if isinstance(A, RankOne | SymmetricRankOne | Spectrahedron):
        M: Any = A.view.matrix(h.reshape(A.shape or ()))
        M = np.asarray(M.toarray() if is_sparse(M) else M)
        if isinstance(A, RankOne):
            return {"sigma": float(np.linalg.norm(M, 2))}
        values = np.linalg.eigvalsh(0.5 * (M + M.T))
        return {"least": float(values[0]), "sigma": float(values[-1])}
    if isinstance(A, Permutations | Transport):
        m, n = A.shape or (0, 0)
        a, b = (np.ones(m), np.ones(n)) if isinstance(A, Permutations) else (A.a, A.b)
        return {"alpha": _numbers(_row_prices(h.reshape(m, n), a, b))}
    if isinstance(A, Polytope):
        spec = {"y": _numbers(A._relaxed_prices(h))}
        return spec | ({"bounding": _numbers(_bounding(A))} if np.isinf(A._upper).any() else {})
    if isinstance(A, Paths | Flows):
        origins = np.array([A.start]) if isinstance(A, Paths) else A._origins
        cheapest = A._network.cheapest(h)
        away = A._network.routes(h[cheapest], origins)[0]
        beyond = float(away[np.isfinite(away)].max() + 2.0 * np.abs(h).sum())  # of nodes that no route reaches
        return {"potentials": _numbers(np.where(np.isfinite(away), away, beyond))}
    return {}


def _trusted(A: Atoms, h: Small) -> float:
    """What the oracle of a set answers, but for the rounding errors that it is trusted with."""
    g = h.reshape(A.shape or h.shape)
    space, (atoms, lower) = Space.of(g), A.begin()(g, 1, -math.inf)
    if not (A.exact or math.isfinite(lower)):
        raise ValueError(f"the oracle of {A!r} proves no minimum, so that nothing is proved with it.")
    low = float(lower if math.isfinite(lower) else atoms[0].dot(space, g))
    return low - product_error(A.space or space) * space.norm(g) * float(A.radius or atoms[0].norm(space))


def _row_prices(costs: Small, a: Small, b: Small) -> Small:
    """The dual variables of the rows of a transport problem, whose last column follows from the others."""
    m, n = costs.shape
    sums = sp.vstack([sp.kron(sp.eye_array(m), np.ones((1, n))), sp.kron(np.ones((1, m)), sp.eye_array(n))])
    solve: Any = scipy.optimize.linprog  # its stubs know no sparse matrices
    found = solve(costs.ravel(), A_eq=sums.tocsr()[:-1], b_eq=np.concatenate([a, b])[:-1])
    return np.zeros(m) if found.eqlin.marginals is None else np.asarray(found.eqlin.marginals[:m])


def _bounding(A: Polytope) -> Small:
    """y, at most 0 for inequalities, with -A'y >= 1 at the entries without an upper bound."""
    open_above, k = np.isinf(A._upper), A._inequalities
    rows = A._A.T.tocsr()[open_above]
    limits = [(None, 0.0)] * k + [(None, None)] * (len(A._b) - k)
    solve: Any = scipy.optimize.linprog  # its stubs know no sparse matrices
    found = solve(-A._b, A_ub=rows, b_ub=-np.ones(rows.shape[0]), bounds=limits)
    return np.zeros(len(A._b)) if found.x is None else np.asarray(found.x)
