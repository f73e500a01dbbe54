"""Active faces: their coordinates, and the symmetric system that says how a solution moves on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # its parts are imported when they are first used

from pursuit.arrays import Array, Indices, Small, Space, flat, host
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.factored import RankOneAtom
from pursuit.atoms.frames import Atom
from pursuit.atoms.matrices import RankOne, Spectrahedron
from pursuit.atoms.views import dense
from pursuit.domains import Part
from pursuit.objectives import Objective
from pursuit.run.result import Result

STATIONARY = 1e-5
"""Slopes on the face, relative to the norms of the gradient and the atoms, up to which a result is accurate enough."""

STRICT = 1e-7
"""Weights, relative to the largest, and margins, relative to the slope of the active atoms, that are not zero."""

SINGULAR = 1e-10
"""Eigenvalues of the system, relative to the largest, that are zero."""

NO_RANK = 1e-6
"""Singular values, relative to the largest, that are zero."""

NEWTON_STEPS = 5
"""Steps of Newton's method on the face, from a result that is nearly a solution."""

CONVERGED = 1e-6
"""The last of these steps, relative to the coordinates, of a solution."""

MAX_NUMBERS = 1 << 27
"""The largest number of entries of T."""

NOT_ACCURATE = "the result is not accurate on its face; solve it with a smaller gap, Stop(rgap=1e-10) say"


class Change(NamedTuple):
    """What a change of the set does: to the slopes along the coordinates of the face, to the constraints, and to x
    where the coordinates stay the same."""

    slopes: Small
    sums: Small
    x: Small

    def plus(self, rate: float, other: Change) -> Change:
        """self + rate * other."""
        return Change(*(one + rate * two for one, two in zip(self, other, strict=True)))


class Point(NamedTuple):
    """A point x, flattened, and the gradient and the Hessian of f there."""

    space: Space
    x: Small
    grad: Small
    hessian: Array

    @classmethod
    def of(cls, f: Objective, space: Space, x: Small) -> Point:
        """The point x."""
        vector = put(space, x)
        return cls(space, x, host(flat(f.value_and_grad(vector)[1])), f.hessian(vector))

    def curve(self, rows: Small) -> Small:
        """The Hessian times flattened vectors, one per row."""
        return np.array([host(flat(self.hessian(put(self.space, row)))) for row in rows]).reshape(rows.shape)


def put(space: Space, v: Small) -> Array:
    """A flattened host vector as a vector of H."""
    return space.xp.reshape(space.put(v), space.shape)


def _rows(space: Space, atoms: Sequence[Atom]) -> Small:
    """Atoms as flattened rows."""
    return np.array([host(flat(a.dense(space))) for a in atoms]).reshape(len(atoms), space.size)


@dataclass(frozen=True)
class Weights:
    """Coordinates of a face: the weights of listed atoms, the rows of T. Those of hulls sum to 1, those of penalties
    cost their price."""

    atoms: list[Atom]
    blocks: Indices
    parts: Sequence[Part]
    T: Small

    @cached_property
    def C(self) -> Small:
        hulls = [b for b, part in enumerate(self.parts) if part.compact]
        return np.array([self.blocks == b for b in hulls], dtype=float).reshape(len(hulls), len(self.blocks))

    def tangents(self, z: Small) -> tuple[Small, Small, Small]:
        """T, C, and what the constraints exceed their bounds by."""
        return self.T, self.C, self.C @ z - 1.0

    def slopes(self, T: Small, grad: Small) -> Small:
        return np.asarray(T @ grad + np.array([part.price for part in self.parts])[self.blocks])

    def curvature(self, grad: Small, multipliers: Small) -> Small:
        return np.zeros((len(self.T), len(self.T)))

    def x(self, z: Small) -> Small:
        return np.asarray(z @ self.T)

    def by_factor(self, face: Face) -> list[Change]:
        no_sums, no_x = np.zeros(len(face.C)), np.zeros(len(face.at.x))
        masks = [self.blocks == b for b in range(len(self.parts))]
        return [
            Change(1.0 * own, no_sums, no_x) if part.price else face.change(own[:, None] * face.T / unscaled(part.A)[1])
            for own, part in zip(masks, self.parts, strict=True)
        ]


@dataclass(frozen=True)
class Factors:
    """Coordinates of a face: the factors of matrices of one rank, one after the other, or the only factor of symmetric
    ones."""

    A: RankOne | Spectrahedron
    space: Space
    rank: int
    radius: float

    def split(self, z: Small) -> tuple[Small, Small]:
        """The two factors."""
        (m, n), r = self.A.view.dims, self.rank
        return z[: m * r].reshape(m, r), z[-n * r :].reshape(n, r)

    def tangents(self, z: Small) -> tuple[Small, Small, Small]:
        """T, C, and what the constraint exceeds its bound by."""
        (L, R), view = self.split(z), self.A.view
        by_left = _rows(self.space, [RankOneAtom(e, b, view) for e in np.eye(len(L)) for b in R.T])
        by_right = _rows(self.space, [RankOneAtom(a, e, view) for e in np.eye(len(R)) for a in L.T])
        if self.A.square:
            return by_left + by_right, 2.0 * z[None], np.array([z @ z - self.radius])
        return np.concatenate([by_left, by_right]), z[None], np.array([0.5 * (z @ z) - self.radius])

    def matrix(self, grad: Small) -> Small:
        """The gradient as a matrix; its symmetric part where the matrices are symmetric."""
        G = dense(self.A.view.matrix(put(self.space, grad)))
        return 0.5 * (G + G.T) if self.A.square else G

    def slopes(self, T: Small, grad: Small) -> Small:
        return np.asarray(T @ grad)

    def by_factor(self, face: Face) -> list[Change]:
        return [Change(np.zeros(len(face.T)), np.ones(1), np.zeros(len(face.at.x)))]

    def curvature(self, grad: Small, multipliers: Small) -> Small:
        G, (m, n), level = self.matrix(grad), self.A.view.dims, float(multipliers[0])
        if self.A.square:
            return np.asarray(np.kron(2.0 * (G + level * np.eye(n)), np.eye(self.rank)))
        return np.asarray(np.kron(np.block([[level * np.eye(m), G], [G.T, level * np.eye(n)]]), np.eye(self.rank)))

    def x(self, z: Small) -> Small:
        return host(flat(self.A.view.image(self.space, *self.split(z))))


class Face:
    """The face of a solution near coordinates z: T, the Hessian Q of the Lagrangian, the constraints C, and `problem`,
    why the face is not stable, if it is not."""

    def __init__(
        self, f: Objective, space: Space, coordinates: Weights | Factors, z: Small, multipliers: Small
    ) -> None:
        self.coordinates, self.z, self.multipliers = coordinates, z, multipliers
        self.at = Point.of(f, space, coordinates.x(z))
        self.T, self.C, self.excess = coordinates.tangents(z)
        Q = self.T @ self.at.curve(self.T).T + coordinates.curvature(self.at.grad, multipliers)
        self.Q = 0.5 * (Q + Q.T)
        self.problem: str | None = None

    def polished(self, f: Objective) -> Face:
        """The face after a few steps of Newton's method, so that a solution of a small gap is one to rounding; with a
        problem where that fails."""
        face = self
        for _ in range(NEWTON_STEPS):
            slopes = face.coordinates.slopes(face.T, face.at.grad)
            dz, more = face.solve(-slopes - face.multipliers @ face.C, -face.excess)
            if not np.linalg.norm(dz) <= 0.1 * np.linalg.norm(face.z):
                face.problem = NOT_ACCURATE
                break
            face = Face(f, face.at.space, face.coordinates, face.z + dz, face.multipliers + more)
            if np.linalg.norm(dz) <= 1e-13 * np.linalg.norm(face.z):
                break
        if not np.linalg.norm(dz) <= CONVERGED * np.linalg.norm(face.z):  # the minimum may be at infinity
            face.problem = NOT_ACCURATE
        return face

    def change(self, moved: Small) -> Change:
        """The change by a change of the atoms, one row for each."""
        x = self.z @ moved
        return Change(self.T @ self.at.curve(x[None])[0] + moved @ self.at.grad, np.zeros(len(self.C)), x)

    @cached_property
    def by_factor(self) -> list[Change]:
        """The changes by the factors of the sets, one per summand."""
        return self.coordinates.by_factor(self)

    @cached_property
    def _system(self) -> tuple[Small, Small, bool]:
        """Eigenvalues and eigenvectors of the symmetric system, in units that make its rows alike, without those that
        are zero; and whether x moves along these."""
        K = np.block([[self.Q, self.C.T], [self.C, np.zeros((len(self.C), len(self.C)))]])
        unit = 1.0 / np.sqrt(np.maximum(np.abs(K).max(axis=1, initial=0.0), np.finfo(float).tiny))
        values, vectors = np.linalg.eigh(unit[:, None] * K * unit)
        vectors = unit[:, None] * vectors
        zero = np.abs(values) <= SINGULAR * np.abs(values).max(initial=0.0)
        still = vectors[: len(self.Q), zero]
        still = still / (np.abs(still).max(initial=0.0) or 1.0)  # squares stay in range
        moves = np.linalg.norm(still.T @ self.T) > 1e-4 * np.linalg.norm(np.abs(still).T @ np.abs(self.T))
        return values[~zero], vectors[:, ~zero], bool(moves)

    @property
    def flat(self) -> bool:
        """Whether x can move along the face, to first order, and stay stationary."""
        return self._system[2]

    @property
    def determined(self) -> bool:
        """Whether the coordinates are unique, not only x."""
        return len(self._system[0]) == len(self.Q) + len(self.C)

    def solve(self, slopes: Small, sums: Small) -> tuple[Small, Small]:
        """The solution of the symmetric system with this right-hand side that has no part along the zeros."""
        values, vectors, _ = self._system
        both = vectors @ ((vectors.T @ np.concatenate([slopes, sums])) / values)
        return both[: len(self.Q)], both[len(self.Q) :]


def listed_face(r: Result) -> Face:
    """The face of active atoms of sets that list theirs. Where f is minimal over a whole span, atoms of weight 0 are
    added until they span it."""
    space, parts = Space.of(r.x), r.domain.parts
    grad = r.f.value_and_grad(r.x)[1]
    atoms, blocks, active, problems = list(r.atoms), list(r.blocks), _rows(space, r.atoms), []
    multipliers = []
    for b, part in enumerate(parts):
        A, mine, w = part.asked, active[r.blocks == b], r.weights[r.blocks == b]
        slopes, scores = mine @ host(flat(grad)) + part.price, A.scores(grad) + part.price
        unit = _size(r) * max(float(np.linalg.norm(mine, axis=1).max(initial=0.0)), A.radius or 0.0)
        multipliers += [-float(w @ slopes)] if part.compact else []
        problems.append(_weakness(part, w, slopes, scores, unit))
        if not part.nonnegative and np.abs(scores).max() <= STATIONARY * unit:
            every = [part.A.atom(i) for i in range(part.A.size or 0)]
            added = completion(_rows(space, every), mine)
            atoms, blocks = atoms + [every[i] for i in added], blocks + [b] * len(added)
    coordinates = Weights(atoms, np.array(blocks, dtype=np.intp), parts, _rows(space, atoms))
    z = np.concatenate([r.weights, np.zeros(len(atoms) - len(r.atoms))])
    face = Face(r.f, space, coordinates, z, np.array(multipliers))
    face.problem = next((problem for problem in [kink(r), *problems] if problem is not None), None)
    return face


def kink(r: Result) -> str | None:
    """Says that f has no second derivative at the solution."""
    return None if r.f.twice_differentiable(r.x) else "f has no second derivative there"


def _size(r: Result) -> float:
    """The size of gradients of a run: at its first point, at its last, and as x makes them."""
    space = Space.of(r.x)
    return max(*(space.norm(r.f.value_and_grad(x)[1]) for x in (r.x, r.start)), (r.f.L or 0.0) * space.norm(r.x))


def _weakness(part: Part, w: Small, slopes: Small, scores: Small, unit: float) -> str | None:
    """Why the face of a summand is not stable, given the weights and slopes of its active atoms and those of all."""
    level = float(w @ slopes) if part.compact else 0.0
    error = float(np.abs(slopes - level).max(initial=0.0))
    if error > STATIONARY * unit:
        return NOT_ACCURATE
    if part.nonnegative and (w <= STRICT * w.max(initial=0.0)).any():
        return "an active atom has hardly any weight, so that it may leave the face"
    if part.nonnegative and (scores <= level + max(10.0 * error, STRICT * unit)).sum() > len(w):
        return "another atom is as good as the active ones, so that it may enter the face"
    return None


def completion(rows: Small, basis: Small) -> Indices:
    """The places of some rows that span, together with those of a basis, what all of them span."""
    Q = np.linalg.qr(basis.T)[0]
    rest = rows - (rows @ Q) @ Q.T
    _, R, order = scipy.linalg.qr(rest.T, mode="economic", pivoting=True)
    new = np.abs(np.diagonal(R)) > 1e-10 * np.linalg.norm(rows, axis=1).max()
    return np.asarray(order[: int(new.sum())], dtype=np.intp)


def matrix_face(r: Result, A: RankOne | Spectrahedron) -> Face:
    """The matrices of the same rank and norm, in coordinates of their factors."""
    space, radius, X = Space.of(r.x), abs(unscaled(r.domain.parts[0].A)[1]), r.coef
    kept = X.s > NO_RANK * X.s[0]
    L, R = X.U[:, kept] * np.sqrt(X.s[kept]), X.V[:, kept] * np.sqrt(X.s[kept])
    coordinates = Factors(A, space, L.shape[1], radius)
    if (L.size + R.size) * space.size > MAX_NUMBERS:
        raise ValueError(f"a face of {L.size + R.size} coordinates in {space.size} entries is too large; use fewer.")
    grad = host(flat(r.f.value_and_grad(r.x)[1]))
    G, level = coordinates.matrix(grad), -float(grad @ host(flat(r.x))) / radius
    z = L.ravel() if A.square else np.concatenate([L.ravel(), R.ravel()])
    face = Face(r.f, space, coordinates, z, np.array([level]))
    error = float(np.linalg.norm(G @ R + level * L) / np.linalg.norm(L))
    spectrum = np.linalg.svd(G, compute_uv=False) if len(z) > L.size else -np.linalg.eigvalsh(G)
    others = spectrum[coordinates.rank :]  # the largest first
    face.problem = kink(r)
    if face.problem is not None:
        return face
    if level <= STRICT * _size(r):
        face.problem = "the norm of the solution is not at its bound, or f is stationary there"
    elif error > STATIONARY * _size(r):
        face.problem = NOT_ACCURATE
    elif len(others) and others[0] >= level - max(10.0 * error, STRICT * level):
        face.problem = "another matrix of rank one is as good as those of the solution, so that its rank may grow"
    return face
