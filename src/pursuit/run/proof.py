"""Results as proofs that a stranger can check: the problem, the point and dual vectors in the form that
`pursuit.verify` reads. Here nothing is proved; whatever this module writes, the checker accepts no false claim."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # its parts are imported when they are first used
import scipy.sparse as sp

from pursuit import verify
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
from pursuit.domains import Cone, Hull, Part, Penalty
from pursuit.files import write_whole
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


class Proof:
    """What a result claims, with all that a stranger needs to check it: `pursuit.verify` reads the file that `save`
    writes, and the user's own data.

    `lower` and `value` are what the checker proves: no point of the domain has a value below `lower`, and the result,
    moved into the domain where rounding has left it outside, has at most `value`.

    >>> import tempfile, numpy as np, pursuit as ps
    >>> from pursuit import verify
    >>> X, y = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 2.0, 4.0])
    >>> r = ps.minimize(ps.LeastSquares(y), ps.conv(2 * ps.Dictionary(X, signed=True)))
    >>> proof = r.certificate
    >>> proof.gap <= 1e-6 * proof.value, proof.verify()
    (True, True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = proof.save(f"{folder}/proof.json", data=folder)       # without data=, your own files will do
    ...     holds, words = verify.check(str(file), [f"{folder}/y.npy", f"{folder}/map.npy"])
    >>> holds
    True
    """

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        problem = verify.Problem(spec, _read)
        duals = spec.pop("duals")
        bounds = [verify.prove(problem, dual) for dual in duals]
        best = max(range(len(bounds)), key=lambda i: -math.inf if bounds[i] is None else bounds[i])  # type: ignore[arg-type, return-value]
        self._spec["dual"], low = duals[best], bounds[best]
        high, self.moved = verify.value(problem, spec["point"])
        self.lower = -math.inf if low is None else verify.nearest(low, -math.inf)
        self.value = verify.nearest(high, math.inf)
        self.gap = math.inf if low is None else verify.nearest(high - low, math.inf)
        self.trusted = problem.trusted

    @classmethod
    def of(cls, result: Result) -> Proof:
        """The proof of what a result claims. An objective or a point without a rule is refused."""
        f, parts = result.f, result.domain.parts
        if not f.convex or not f.exact:
            raise ValueError(f"f is {f!r}; a bound is proved of a convex function with exact gradients only.")
        peeled = [Peeled.of(part.A) for part in parts]
        points = [getattr(result, "dual_point", None), f.value_and_grad(result.x)[1]]
        return cls({
            "format": "pursuit-proof",
            "version": 1,
            "f": objective(f),
            "domain": [summand(part, p) for part, p in zip(parts, peeled, strict=True)],
            "point": [p.point(result, b) for b, p in enumerate(peeled)],
            "duals": [dual(result, peeled, host(u)) for u in points if u is not None],
        })  # fmt: skip

    def verify(self) -> bool:
        """Whether the checker, asked again, proves the claim from the arrays in memory."""
        problem = verify.Problem(self._spec, _read)
        low, high = verify.prove(problem, self._spec["dual"]), verify.value(problem, self._spec["point"])[0]
        return high <= Fraction(self.value) and (low is None or low >= Fraction(self.lower))

    def save(self, path: Any, *, data: Any = None) -> Path:
        """Write the proof as JSON.

        It names y, the dictionary and other data by their hashes: `python -m pursuit.verify proof.json --data X.npy
        y.npy` compares these with your files, in which the numbers must be the same (in any real or integer dtype).

        Parameters
        ----------
        path : str or path
            The file, which is replaced as a whole.
        data : str or path, optional
            A folder for the arrays that the proof names, as .npy and .npz files; made where it does not exist.
        """
        if not math.isfinite(self.lower):
            raise ValueError("nothing is proved below the value of this result; there is no claim to save.")
        arrays: dict[str, Any] = {}
        spec = _referred(self._spec | {"claim": {"lower": self.lower, "value": self.value}}, arrays, "")
        if data is not None:
            Path(data).mkdir(parents=True, exist_ok=True)
            for name, a in arrays.items():
                file = Path(data) / name
                if sp.issparse(a):
                    sp.save_npz(file.with_suffix(".npz"), _by_columns(a))
                else:
                    np.save(file.with_suffix(".npy"), a)
        target = Path(path)
        write_whole(json.dumps(spec, allow_nan=False), target)
        return target

    def __repr__(self) -> str:
        return f"Proof(lower {self.lower:.6g}, value {self.value:.6g}, gap {self.gap:.3g})"


def _read(spec: Any, name: str) -> tuple[tuple[int, ...], Any]:
    """Arrays in memory, as the checker reads them."""
    if sp.issparse(spec):
        a = _by_columns(spec)
        return a.shape, verify.Table(a.shape, a.data, a.indptr.astype(np.int64), a.indices.astype(np.int64))
    if isinstance(spec, np.ndarray):
        return spec.shape, np.ascontiguousarray(spec, dtype=np.float64).ravel()
    verify.need(isinstance(spec, list), f"The array {name} is missing.")
    return (len(spec),), [float(v) for v in spec]


def _by_columns(a: Any) -> Any:
    a = sp.csc_array(a, dtype=np.float64, copy=True)
    a.sum_duplicates()
    return a


def _referred(value: Any, arrays: dict[str, Any], name: str) -> Any:
    """The JSON value in which data are hashes; the arrays go to `arrays` by name."""
    if isinstance(value, dict):
        return {key: _referred(each, arrays, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_referred(each, arrays, name) for each in value] if value and isinstance(value[0], dict) else value
    if not isinstance(value, np.ndarray) and not sp.issparse(value):
        return value
    unique = name if name not in arrays else f"{name}{sum(key.startswith(name) for key in arrays)}"
    arrays[unique] = value
    shape, numbers = _read(value, name)
    return {"sha256": verify.digest(numbers), "shape": list(shape)}


def _numbers(a: Any) -> list[float]:
    return [float(v) for v in np.asarray(a, dtype=np.float64).ravel()]


# ---------------------------------------------------------------------- objectives and sets


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
    if not (isinstance(weights, float) and weights == 1.0):
        spec["weights"] = weights if isinstance(weights, float) else host(weights).reshape(len(host(weights)), -1)
        if not isinstance(weights, float) and spec["weights"].shape[1] == 1:
            spec["weights"] = spec["weights"].ravel()
    return spec | ({"width": f.width} if isinstance(f, Huber) else {})


@dataclass
class Peeled:
    """A set c M A, at the entries of a piece: A, c, M and the piece."""

    A: Atoms
    scale: float
    image: Image | None
    place: slice | None

    @classmethod
    def of(cls, A: Atoms) -> Peeled:
        place = slice(A.start, A.stop) if isinstance(A, Embedded) else None
        A = A.base if isinstance(A, Embedded) else A
        if not isinstance(A, Image):
            return cls(A, 1.0, None, place)
        plain = A.map is None or A.map._operator is None
        if A.signed or not plain or isinstance(A.base, Image):
            return cls(A, 1.0, None, place)
        return cls(A.base, A.c, None if A.map is None else A, place)

    @cached_property
    def spec(self) -> Spec:
        """The set in the words of a proof."""
        A, named = self.A, next((make for kind, make in SETS.items() if type(self.A) is kind), None)
        spec: Spec = {} if self.place is None else {"start": self.place.start}
        if isinstance(A, Dictionary) and type(A) is Dictionary and not A._operator:
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

    def point(self, result: Result, b: int) -> Spec:
        """The weights and atoms of summand b, in the coordinates of the set."""
        mine = np.flatnonzero(result.blocks == b).tolist()
        atoms = [result.atoms[i] for i in mine]
        factors = [a.coef / self.scale if self._factored and isinstance(a, RankOneAtom) else 1.0 for a in atoms]
        return {"weights": _numbers(result.weights[mine] * factors), "atoms": [self._coordinates(a) for a in atoms]}

    @property
    def _factored(self) -> bool:
        return type(self.A) in (RankOne, SymmetricRankOne, Spectrahedron)

    def _coordinates(self, a: Atom) -> Spec:
        """An atom before its map and factor."""
        A = self.A
        if isinstance(A, Dictionary):
            return {"at": [int(a.source)], "values": [a.coef / self.scale]}
        if self._factored and isinstance(a, RankOneAtom):
            return {"left": _numbers(a.u), "right": _numbers(a.v)}
        if self.image is not None:
            scaled = Atom(np.zeros(()), a.source, a.coef / self.scale)
            own = A.rebuild(scaled)
            if own is None and isinstance(a, LiftedAtom) and self.image.map is not None:
                own = a.tail.scaled(1.0 / (self.image.map._root * self.scale))
            if own is None:
                raise ValueError(f"{a!r} does not say which atom of {A!r} it is the image of; it cannot be checked.")
            return _entries(own, 0, 1.0)
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
    if any(type(part) is Cone and part.rho is None and not part.A.symmetric for part in result.domain.parts):
        spec["v"] = _numbers(_inside(result, u))
    return spec


def hint(peeled: Peeled, h: Small) -> Spec:
    """What shows the checker the minimum of <h, a> over a set."""
    A = peeled.A
    if peeled.spec["set"]["kind"] == "trusted":
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
        spec = {"y": _numbers(A._signed(A._solve(h, A._attempt())[1]))}
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


def _inside(result: Result, u: Small) -> Small:
    """v with <v, a> > 0 for the atoms of the cones, as far as floats can say: the point nearest to 0 in their hull,
    orthogonal to the spans. It is D w of min |D w|^2 + (sum w - 1)^2, where <d_j, D w> >= 1 - sum w > 0."""
    sizes = u.size
    cones: list[Small] = []
    spans: list[Small] = []
    for part in result.domain.parts:
        if type(part) is Cone and not part.A.symmetric and part.A.size:
            cones.append(_columns(part, sizes))
        elif not isinstance(part, Hull | Penalty) and part.asked.size is not None:
            spans.append(_columns(part, sizes))
    if not cones:  # of atoms that cannot be listed, for which there is no rule
        return np.zeros(sizes)
    D = np.hstack(cones)
    if spans:
        Q = np.linalg.qr(np.hstack(spans))[0]
        D = D - Q @ (Q.T @ D)
    D = D / np.maximum(np.linalg.norm(D, axis=0), 1e-300)
    w = scipy.optimize.nnls(np.vstack([D, np.ones(D.shape[1])]), np.append(np.zeros(sizes), 1.0))[0]
    return np.asarray(D @ w)


def _columns(part: Part, n: int) -> Small:
    A = part.A
    space = Space.default((n,))
    return np.stack([host(A.atom(j).dense(A.space or space)).ravel() for j in range(A.size or 0)], axis=1)
