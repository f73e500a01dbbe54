r"""Derivatives of a solution with respect to the problem, by the implicit function theorem on its active face.

Near a solution :math:`x^\star` the active face stays the same, if the face is stable: the solution is where f, plus
the cost of penalties, is stationary on it. Let z be coordinates of the face near :math:`x^\star`, T the derivative of x
in z, C that of the constraints (a hull: the weights sum to 1), and :math:`\lambda` their multipliers. Differentiating
the conditions for a stationary point gives one symmetric system,

.. math:: \begin{pmatrix} Q & C^\top \\ C & 0 \end{pmatrix} \begin{pmatrix} dz \\ d\lambda \end{pmatrix} =
          \begin{pmatrix} -dq \\ ds \end{pmatrix}, \qquad dx = T\,dz + \partial x,

with the change dq of the slopes and ds of the constraints that the change of the problem makes, and the Hessian Q of
the Lagrangian in z. Two kinds of faces are known.

*Atoms that can be listed* (dictionaries, the basis, the simplex; hull, cone, span, penalty, and sums of them): z are
the weights w of the active atoms a, which are the columns of T, and :math:`Q = T^\top \nabla^2 f(x)\, T`. If the atoms
change by da, then :math:`\partial x = \sum_a w_a\,da` and
:math:`dq_a = \langle a, d\nabla f + \nabla^2 f\,\partial x\rangle + \langle\nabla f, da\rangle`.

*The hull of rank-one matrices*: the face is the set of matrices of the same rank, which is curved. Let
:math:`X = A B^\top` with factors of equal size, :math:`A^\top A = B^\top B`. On such factors the nuclear norm is
:math:`\frac12(\|A\|^2 + \|B\|^2)`, so z are the factors, :math:`T(dA, dB) = dA\,B^\top + A\,dB^\top`, and with the
gradient G as a matrix

.. math:: Q\,(dA, dB) = T^\top \nabla^2 f\, T\,(dA, dB) + (G\,dB + \lambda\,dA,\; G^\top dA + \lambda\,dB),

whose second part is the curvature of the manifold. Rotations of the factors do not move X, so that Q is singular along
them; the solution of least norm is taken. Over the spectrahedron A and B are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts are imported when they are first used

from pursuit._arrays import Array, Indices, Small, Space, flat, host, number, real_array, told
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.factored import RankOneAtom, compress, is_sparse
from pursuit.atoms.frames import Atom
from pursuit.atoms.matrices import RankOne, Spectrahedron
from pursuit.atoms.vectors import Dictionary
from pursuit.domains import Hull, Part
from pursuit.objectives import Huber, LeastSquares, Logistic, Multinomial, Objective, Poisson, Quadratic, Ridge
from pursuit.result import Result

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

MAX_NUMBERS = 1 << 27
"""The largest number of entries of T."""

NOT_ACCURATE = "the result is not accurate on its face; solve it with a smaller gap, Stop(rgap=1e-10) say"


class Tangent(NamedTuple):
    """How a solution changes: x, the weights of its atoms (None for matrices), and `Result.coef`."""

    x: Array
    weights: Small | None
    coef: Any


class Gradient(NamedTuple):
    """The derivatives of a number with respect to the data y, the gradient of f, and the factor and the dictionary of
    the set; None where there is no such thing. In a sum of domains the last two have one entry per summand."""

    y: Array | None
    gradient: Array
    radius: Any
    dictionary: Any


def differentiate(result: Result) -> Derivative:
    r"""The derivative of a solution with respect to the data y, the factor of the set (the radius of a ball, the price
    of a penalty) and the dictionary.

    It is right where the face is stable: all active weights are positive, no other atom is as good as the active ones,
    and the Hessian of f is nonsingular along the face. Elsewhere the solution has no derivative; `stable` is False,
    `reason` says why, and the products refuse to answer. The result should be accurate, `Stop(rgap=1e-10)` say: the
    error of the derivative is in proportion to that of x.

    Parameters
    ----------
    result : Result
        Of an objective with a Hessian, over hulls, cones, spans and penalties of atoms that can be listed, or over the
        hull of `RankOne` or `Spectrahedron`, in full or at observed entries.

    Returns
    -------
    Derivative

    Examples
    --------
    How the projection on the L1 ball of radius 4 changes with the radius, and with y:

    >>> import numpy as np, pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0, -2.0]), ps.conv(4.0 * ps.SignedBasis(3)), stop=ps.Stop(gap=1e-12))
    >>> d = ps.differentiate(r)
    >>> d.stable, d.jvp(radius=1.0).x.round(6)
    (True, array([ 0.333333,  0.333333, -0.333333]))
    >>> d.jvp(y=[1.0, 0.0, 0.0]).x.round(6)
    array([ 0.666667, -0.333333,  0.333333])
    >>> d.vjp(np.array([1.0, 0.0, 0.0])).y.round(6)                            # the gradient of x_0 in y
    array([ 0.666667, -0.333333,  0.333333])
    """
    if not isinstance(result, Result):
        raise TypeError(f"result is {told(result)}; give what minimize returned.")
    hessian = result.f.hessian(result.x)
    if hessian is None or not result.f.exact:
        raise TypeError(f"{result.f!r} has no Hessian, without which nothing can be differentiated; define hessian(x).")
    sets = [unscaled(part.A)[0] for part in result.domain.parts]
    first, unlisted = sets[0], next((A for A in sets if A.size is None), None)
    if isinstance(first, RankOne | Spectrahedron) and isinstance(result.domain, Hull):
        return Derivative(result, _matrix_face(result, first))
    if unlisted is not None:
        raise TypeError(f"{unlisted!r} cannot list its atoms, so its faces are not known; see differentiate.")
    return Derivative(result, _listed_face(result))


# ---------------------------------------------------------------------- faces


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
    hessian: Any

    @classmethod
    def of(cls, f: Objective, space: Space, x: Small) -> Point:
        """The point x."""
        vector = _put(space, x)
        return cls(space, x, host(flat(f.value_and_grad(vector)[1])), f.hessian(vector))

    def curve(self, rows: Small) -> Small:
        """The Hessian times flattened vectors, one per row."""
        return np.array([host(flat(self.hessian(_put(self.space, row)))) for row in rows]).reshape(rows.shape)


def _put(space: Space, v: Small) -> Array:
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

    def slopes(self, grad: Small) -> Small:
        return np.asarray(self.T @ grad + np.array([part.price for part in self.parts])[self.blocks])

    def curvature(self, grad: Small, multipliers: Small) -> Small:
        return np.zeros((len(self.T), len(self.T)))

    def x(self, z: Small) -> Small:
        return np.asarray(z @ self.T)


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
        (m, n), r = self.A.view.shape, self.rank
        return z[: m * r].reshape(m, r), z[-n * r :].reshape(n, r)

    @property
    def _alike(self) -> bool:
        return isinstance(self.A, Spectrahedron)

    def tangents(self, z: Small) -> tuple[Small, Small, Small]:
        """T, C, and what the constraint exceeds its bound by."""
        (L, R), view = self.split(z), self.A.view
        by_left = _rows(self.space, [RankOneAtom(e, b, view) for e in np.eye(len(L)) for b in R.T])
        by_right = _rows(self.space, [RankOneAtom(a, e, view) for e in np.eye(len(R)) for a in L.T])
        if self._alike:
            return by_left + by_right, 2.0 * z[None], np.array([z @ z - self.radius])
        return np.concatenate([by_left, by_right]), z[None], np.array([0.5 * (z @ z) - self.radius])

    def matrix(self, grad: Small) -> Small:
        """The gradient as a matrix; its symmetric part where the matrices are symmetric."""
        M = self.A.view.matrix(_put(self.space, grad))
        G = np.asarray(M.toarray() if is_sparse(M) else host(getattr(M, "a", M)))
        return 0.5 * (G + G.T) if self._alike else G

    def curvature(self, grad: Small, multipliers: Small) -> Small:
        G, (m, n), level = self.matrix(grad), self.A.view.shape, float(multipliers[0])
        if self._alike:
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
            own = face.coordinates
            plain = own.slopes(face.at.grad) if isinstance(own, Weights) else face.T @ face.at.grad
            dz, more = face.solve(-plain - face.multipliers @ face.C, -face.excess)
            if not np.linalg.norm(dz) <= 0.1 * np.linalg.norm(face.z):
                face.problem = NOT_ACCURATE
                break
            face = Face(f, face.at.space, own, face.z + dz, face.multipliers + more)
            if np.linalg.norm(dz) <= 1e-13 * np.linalg.norm(face.z):
                break
        return face

    def change(self, moved: Small) -> Change:
        """The change by a change of the atoms, one row for each."""
        x = self.z @ moved
        return Change(self.T @ self.at.curve(x[None])[0] + moved @ self.at.grad, np.zeros(len(self.C)), x)

    @cached_property
    def by_factor(self) -> list[Change]:
        """The changes by the factors of the sets, one per summand."""
        own, no_sums, no_x = self.coordinates, np.zeros(len(self.C)), np.zeros(len(self.at.x))
        if isinstance(own, Factors):
            return [Change(np.zeros(len(self.T)), np.ones(1), no_x)]
        masks = [own.blocks == b for b in range(len(own.parts))]
        return [
            Change(1.0 * mine, no_sums, no_x)
            if part.price
            else self.change(mine[:, None] * self.T / unscaled(part.A)[1])
            for mine, part in zip(masks, own.parts, strict=True)
        ]

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


def _listed_face(r: Result) -> Face:
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
            every = [A.atom(i) for i in range((A.size or 0) // 2)]  # of a symmetric set, which lists negatives last
            added = _completion(_rows(space, every), mine)
            atoms, blocks = atoms + [every[i] for i in added], blocks + [b] * len(added)
    coordinates = Weights(atoms, np.array(blocks, dtype=np.intp), parts, _rows(space, atoms))
    z = np.concatenate([r.weights, np.zeros(len(atoms) - len(r.atoms))])
    face = Face(r.f, space, coordinates, z, np.array(multipliers))
    face.problem = next((problem for problem in problems if problem is not None), None)
    return face


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


def _completion(rows: Small, basis: Small) -> Indices:
    """The places of some rows that span, together with those of a basis, what all of them span."""
    Q = np.linalg.qr(basis.T)[0]
    rest = rows - (rows @ Q) @ Q.T
    _, R, order = scipy.linalg.qr(rest.T, mode="economic", pivoting=True)
    new = np.abs(np.diagonal(R)) > 1e-10 * np.linalg.norm(rows, axis=1).max()
    return np.asarray(order[: int(new.sum())], dtype=np.intp)


def _matrix_face(r: Result, A: RankOne | Spectrahedron) -> Face:
    """The matrices of the same rank and norm, in coordinates of their factors."""
    space, radius, X = Space.of(r.x), abs(unscaled(r.domain.parts[0].A)[1]), r.coef
    kept = X.s > NO_RANK * X.s[0]
    L, R = X.U[:, kept] * np.sqrt(X.s[kept]), X.V[:, kept] * np.sqrt(X.s[kept])
    coordinates = Factors(A, space, L.shape[1], radius)
    if (L.size + R.size) * space.size > MAX_NUMBERS:
        raise ValueError(f"a face of {L.size + R.size} coordinates in {space.size} entries is too large; use fewer.")
    grad = host(flat(r.f.value_and_grad(r.x)[1]))
    G, level = coordinates.matrix(grad), -float(grad @ host(flat(r.x))) / radius
    z = L.ravel() if isinstance(A, Spectrahedron) else np.concatenate([L.ravel(), R.ravel()])
    face = Face(r.f, space, coordinates, z, np.array([level]))
    error = float(np.linalg.norm(G @ R + level * L) / np.linalg.norm(L))
    spectrum = np.linalg.svd(G, compute_uv=False) if len(z) > L.size else -np.linalg.eigvalsh(G)
    others = spectrum[coordinates.rank :]  # the largest first
    if level <= STRICT * _size(r):
        face.problem = "the norm of the solution is not at its bound, or f is stationary there"
    elif error > STATIONARY * _size(r):
        face.problem = NOT_ACCURATE
    elif len(others) and others[0] >= level - max(10.0 * error, STRICT * level):
        face.problem = "another matrix of rank one is as good as those of the solution, so that its rank may grow"
    return face


# ---------------------------------------------------------------------- products


class Derivative:
    """The derivative of a solution, as products with it. `stable` says whether it exists, `reason` why not."""

    def __init__(self, result: Result, face: Face) -> None:
        self.result, self.face = result, face if face.problem or face.flat else face.polished(result.f)

    @property
    def reason(self) -> str | None:
        """Why the solution has no derivative; None where it has one."""
        flat_along = "f is flat along the face, so that its minimum there is not unique"
        return self.face.problem or (flat_along if self.face.flat else None)

    @property
    def stable(self) -> bool:
        """Whether the face is stable, so that the derivative exists."""
        return self.reason is None

    def __repr__(self) -> str:
        return f"Derivative({'stable' if self.stable else self.reason})"

    def jvp(self, *, y: Any = None, gradient: Any = None, radius: Any = None, dictionary: Any = None) -> Tangent:
        """How the solution changes when the problem does: the derivative times a direction.

        Parameters
        ----------
        y : array of y's shape, optional
            The direction in which the data move: y of a loss (labels as numbers), c of a `Quadratic`.
        gradient : array of x's shape, optional
            The rate at which the gradient of f at the solution changes, for parameters of your own.
        radius : float, or one per summand, optional
            The rate of the factor c of the set: the radius in conv(c * A), the price in penalty(c * A).
        dictionary : array of the shape of D, or one or None per summand, optional
            The direction in which the dictionary moves.

        Examples
        --------
        >>> import numpy as np, pursuit as ps
        >>> D, y = np.array([[1.0, 0.0], [0.5, 1.0]]), np.array([1.0, 2.0])
        >>> d = ps.differentiate(ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D))))
        >>> d.jvp(y=[1.0, 0.0]).coef.round(6), np.linalg.inv(D)[:, 0]
        (array([ 1. , -0.5]), array([ 1. , -0.5]))
        """
        self._check_stable()
        face, space = self.face, self.face.at.space
        dg, rates = np.zeros(space.size), [_rate(each) for each in self._per_summand("radius", radius, 0.0)]
        if gradient is not None:
            dg += _read("gradient", gradient, space.shape)
        if y is not None:
            dg += self._gradient_by_data(y)
        change = Change(np.zeros(len(face.T)), np.zeros(len(face.C)), np.zeros(space.size))
        for rate, unit in zip(rates, face.by_factor, strict=True):
            change = change.plus(rate, unit)
        for b, direction in enumerate(self._per_summand("dictionary", dictionary, None)):
            if direction is not None:
                change = change.plus(1.0, face.change(self._moved(b, direction)))
        dz, _ = face.solve(-face.T @ dg - change.slopes, change.sums)
        return Tangent(_put(space, dz @ face.T + change.x), self._weights(dz), self._coef(dz, rates))

    def vjp(self, x: Any = None, weights: Any = None) -> Gradient:
        """The gradient of a number in the problem, given its derivatives with respect to x and to the weights: the
        transpose of `jvp`.

        >>> import numpy as np, pursuit as ps
        >>> D, y = np.array([[1.0, 0.0], [0.5, 1.0]]), np.array([1.0, 2.0])
        >>> d = ps.differentiate(ps.minimize(ps.LeastSquares(y), ps.cone(ps.Dictionary(D))))
        >>> d.vjp(weights=[1.0, 0.0]).dictionary[0].round(6)       # of the first weight; w = inv(D) y
        array([-1. , -1.5])
        """
        self._check_stable()
        r, face, at = self.result, self.face, self.face.at
        vx = np.zeros(at.space.size) if x is None else _read("x", x, at.space.shape)
        vz = face.T @ vx
        if weights is not None:
            if self._weights(vz) is None:
                raise ValueError("the weights of this solution are not unique; differentiate x only.")
            vz = vz + _read("weights", weights, (len(r.atoms),))
        p, q = face.solve(vz, np.zeros(len(face.C)))
        u = -(p @ face.T)  # the derivative in the gradient of f
        radius = [float(vx @ unit.x - p @ unit.slopes + q @ unit.sums) for unit in face.by_factor]
        moved = np.outer(face.z, vx + at.curve(u[None])[0]) - np.outer(p, at.grad)  # the derivative in the atoms
        dictionary = [self._gradient_in_dictionary(b, moved) for b in range(len(radius))]
        sums = len(radius) > 1
        return Gradient(
            self._data_by_gradient(u),
            _put(at.space, u),
            radius if sums else radius[0],
            dictionary if sums else dictionary[0],
        )

    def torch(self, *, y: Any = None, radius: Any = None, dictionary: Any = None) -> Any:
        """x as a PyTorch tensor through which gradients flow to these tensors, which the problem was made of.

        >>> import pursuit as ps, pytest
        >>> torch = pytest.importorskip("torch")
        >>> radius = torch.tensor(4.0, dtype=torch.float64, requires_grad=True)
        >>> f, domain = ps.LeastSquares([3.0, 1.0, -2.0]), ps.conv(radius.item() * ps.SignedBasis(3))
        >>> x = ps.differentiate(ps.minimize(f, domain, stop=ps.Stop(gap=1e-12))).torch(radius=radius)
        >>> (x**2).sum().backward()
        >>> round(radius.grad.item(), 6)
        2.666667
        """
        import torch

        given = y, radius, dictionary
        like = next((tensor for tensor in given if tensor is not None), None)
        if like is None:
            raise TypeError("torch() got no tensor; give one that the problem was made of, such as y=y.")
        self._check_stable()

        class Solution(torch.autograd.Function):  # type: ignore[misc]
            """x, whose backward pass is `vjp`."""

            @staticmethod
            def forward(ctx: Any, *tensors: Any) -> Any:
                return torch.as_tensor(host(self.result.x)).to(like)

            @staticmethod
            def backward(ctx: Any, v: Any) -> Any:
                found = self.vjp(x=host(v))
                values = [
                    None if tensor is None else value
                    for tensor, value in zip(given, (found.y, found.radius, found.dictionary), strict=True)
                ]
                return tuple(None if value is None else torch.as_tensor(np.asarray(value)).to(like) for value in values)

        return Solution.apply(*given)

    # ------------------------------------------------------------------ parts of the products

    def _check_stable(self) -> None:
        if self.reason is not None:
            raise ValueError(f"the solution has no derivative here: {self.reason}.")

    def _per_summand(self, name: str, given: Any, nothing: Any) -> list[Any]:
        """One argument per summand, given as a list or, where there is one summand, alone."""
        n = len(self.face.by_factor)
        if given is None:
            return [nothing] * n
        if n == 1:
            return [given]
        if not isinstance(given, Sequence | np.ndarray) or len(given) != n:
            raise ValueError(f"{name} is {told(given)}; give one for each of the {n} summands.")
        return [nothing if each is None else each for each in given]

    def _weights(self, dz: Small) -> Small | None:
        """The coordinates, where they are the weights of the active atoms, and unique."""
        active = isinstance(self.face.coordinates, Weights) and len(dz) == len(self.result.atoms)
        return dz if active and self.face.determined else None

    def _coef(self, dz: Small, rates: Sequence[float]) -> Any:
        """The change of `Result.coef`."""
        r, face, own = self.result, self.face, self.face.coordinates
        if isinstance(own, Factors):
            (L, R), (dL, dR) = own.split(face.z), own.split(dz)
            return compress(np.hstack([dL, L]), np.hstack([R, dR]))
        weights = self._weights(dz)
        if weights is None:
            return None
        parts = zip(rates, r.domain.parts, strict=True)
        growth = np.array([0.0 if part.price else rate / unscaled(part.A)[1] for rate, part in parts])
        return r.domain.coefficients(r.atoms, weights + face.z * growth[r.blocks], r.blocks)

    def _columns(self, b: int) -> tuple[Dictionary, Indices, Indices, Small]:
        """The dictionary of a summand, the coordinates that are weights of its columns, these, and their factors."""
        A = unscaled(self.result.domain.parts[b].A)[0]
        own = self.face.coordinates
        if not isinstance(own, Weights) or not isinstance(A, Dictionary) or A.space is None:  # sparse, or an operator
            raise TypeError(f"{A!r} is no dense dictionary, in which one could differentiate; leave dictionary= out.")
        mine = np.flatnonzero(own.blocks == b)
        atoms = [own.atoms[i] for i in mine]
        return A, mine, np.array([a.source for a in atoms], dtype=np.intp), np.array([a.coef for a in atoms])

    def _moved(self, b: int, direction: Any) -> Small:
        """The change of the atoms when the dictionary of a summand moves."""
        A, mine, columns, coefs = self._columns(b)
        moved = np.zeros(self.face.T.shape)
        moved[mine] = coefs[:, None] * _read("dictionary", direction, tuple(A.D.shape)).reshape(-1, A.n).T[columns]
        return moved

    def _gradient_in_dictionary(self, b: int, moved: Small) -> Array | None:
        """The derivative in the dictionary of a summand, from that in the atoms."""
        try:
            A, mine, columns, coefs = self._columns(b)
        except TypeError:
            return None
        out = np.zeros((self.face.at.space.size, A.n))
        np.add.at(out.T, columns, coefs[:, None] * moved[mine])
        return replace(self.face.at.space, shape=tuple(A.D.shape)).put(out.reshape(A.D.shape))

    @cached_property
    def _sensitivity(self) -> Small | None:
        """The derivative of the gradient of f in its data, which is diagonal; None where f has no data that we know."""
        return data_sensitivity(self.result.f, _put(self.face.at.space, self.face.at.x))

    def _gradient_by_data(self, y: Any) -> Small:
        if self._sensitivity is None:
            raise TypeError(f"the data of {self.result.f!r} are not known; give gradient=, the change of its gradient.")
        dg, direction = np.zeros(self.face.at.space.size), _read("y", y, self._sensitivity.shape)
        dg[: direction.size] = self._sensitivity.ravel() * direction  # the rest of a Ridge has no data
        return dg

    def _data_by_gradient(self, u: Small) -> Array | None:
        if self._sensitivity is None:
            return None
        space, s = self.face.at.space, self._sensitivity
        return replace(space, shape=s.shape).put(s * u[: s.size].reshape(s.shape))


def data_sensitivity(f: Objective, x: Array) -> Small | None:
    """d grad f(x)_i / d y_i for losses with data y, and for c of a `Quadratic`; None for others."""
    if isinstance(f, Ridge):
        return data_sensitivity(f.f, x[: f.n, ...])
    if isinstance(f, Quadratic):
        return np.ones(f.c.shape)
    if not isinstance(f, LeastSquares | Huber | Logistic | Poisson | Multinomial):
        return None
    y, weights = host(f.y), f.weights if isinstance(f.weights, float) else host(f.weights)
    if isinstance(f, Huber):
        return np.asarray(-weights * (np.abs(host(x) - y) <= f.width), dtype=np.float64)
    if isinstance(f, Logistic):
        margin = y * host(x)
        wrong = 1.0 / (1.0 + np.exp(np.clip(margin, -700.0, 700.0)))
        return np.asarray(-weights * wrong * (1.0 - margin * (1.0 - wrong)))
    return np.asarray(-weights * np.ones(y.shape))


def _rate(given: Any) -> float:
    if not math.isfinite(number(given)):
        raise ValueError(f"radius is {told(given)}; give the rate at which it changes, a number.")
    return number(given)


def _read(name: str, given: Any, shape: tuple[int, ...]) -> Small:
    """A direction, flattened."""
    array = host(real_array(given, name))
    if array.shape != tuple(shape):
        raise ValueError(f"{name} has shape {array.shape}; give an array of shape {tuple(shape)}.")
    return array.reshape(-1)
