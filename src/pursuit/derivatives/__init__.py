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
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pursuit.arguments import describe, number, real_array, require
from pursuit.arrays import Array, Indices, Small, host
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.factored import compress
from pursuit.atoms.matrices import RankOne, Spectrahedron
from pursuit.derivatives.faces import Change, Face, Factors, Weights, completion, listed_face, matrix_face, put
from pursuit.domains import Hull
from pursuit.run.result import Result

__all__ = ["Derivative", "Gradient", "Tangent", "differentiate"]


class Tangent(NamedTuple):
    """How a solution changes: x, the weights of its atoms (None for matrices), and `Result.coef`."""

    x: Array
    weights: Small | None
    coef: Any


class Gradient(NamedTuple):
    """The derivatives of a number with respect to the data y, the gradient of f, and the factor and the dictionary of
    the set; None where there is no such thing, as in a dictionary whose active columns depend on each other. In a sum
    of domains the last two have one entry per summand."""

    y: Array | None
    gradient: Array
    radius: float | list[float]
    dictionary: Array | None


def differentiate(result: Result) -> Derivative:
    r"""The derivative of a solution with respect to the data y, the factor of the set (the radius of a ball, the price
    of a penalty) and the dictionary.

    It is right where the face is stable: all active weights are positive, no other atom is as good as the active ones,
    and the Hessian of f is nonsingular along the face. Elsewhere the solution has no derivative; `stable` is False,
    `reason` says why, and the products refuse to answer. The result should be accurate, `Stop(rgap=1e-10)` say: the
    error of the derivative is in proportion to that of x.

    The objective must have a Hessian; the domain is made of hulls, cones, spans and penalties of atoms that can be
    listed, or it is the hull of `RankOne` or `Spectrahedron`, in full or at observed entries.

    >>> import numpy as np, pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0, -2.0]), ps.conv(4.0 * ps.SignedBasis(3)), stop=ps.Stop(gap=1e-12))
    >>> d = ps.differentiate(r)                                # of the projection on the L1 ball of radius 4
    >>> d.stable, d.jvp(radius=1.0).x.round(6)
    (True, array([ 0.333333,  0.333333, -0.333333]))
    >>> d.jvp(y=[1.0, 0.0, 0.0]).x.round(6)
    array([ 0.666667, -0.333333,  0.333333])
    >>> d.vjp(np.array([1.0, 0.0, 0.0])).y.round(6)            # the gradient of x_0 in y
    array([ 0.666667, -0.333333,  0.333333])
    """
    if not isinstance(result, Result):
        raise TypeError(f"result is {describe(result)}; give what minimize returned.")
    hessian = result.f.hessian(result.x)
    if hessian is None or not result.f.exact:
        raise TypeError(f"{result.f!r} has no Hessian, without which nothing can be differentiated; give hessian=.")
    sets = [unscaled(part.A)[0] for part in result.domain.parts]
    first, unlisted = sets[0], next((A for A in sets if A.size is None), None)
    if isinstance(first, RankOne | Spectrahedron) and isinstance(result.domain, Hull):
        return Derivative(result, matrix_face(result, first))
    if unlisted is not None:
        raise TypeError(
            f"{unlisted!r} cannot list its atoms, so its faces are not known; give a set that can, as Dictionary can."
        )
    return Derivative(result, listed_face(result))


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

    def jvp(
        self,
        *,
        y: Array | None = None,
        gradient: Array | None = None,
        radius: float | Sequence[float | None] | None = None,
        dictionary: Array | None = None,
    ) -> Tangent:
        """How the solution changes when the problem does: the derivative times a direction.

        `y` is the direction in which the data move: y of a loss (labels as numbers), c of a `Quadratic`. `gradient` is
        the rate at which the gradient of f at the solution changes, for parameters of your own. `radius` is the rate of
        the factor c of the set: the radius in conv(c * A), the price in penalty(c * A). `dictionary` is the direction
        in which D moves. In a sum of domains the last two have one entry, perhaps None, per summand.

        >>> import numpy as np, pursuit as ps
        >>> D, y = np.array([[1.0, 0.0], [0.5, 1.0]]), np.array([1.0, 2.0])
        >>> d = ps.differentiate(ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D))))
        >>> d.jvp(y=[1.0, 0.0]).coef.round(6), np.linalg.inv(D)[:, 0]
        (array([ 1. , -0.5]), array([ 1. , -0.5]))
        """
        self._check_stable()
        face, space = self.face, self.face.at.space
        dg, rates = np.zeros(space.size), [_rate(rate) for rate in self._per_summand("radius", radius, 0.0)]
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
        return Tangent(put(space, dz @ face.T + change.x), self._weights(dz), self._coef(dz, rates))

    def vjp(self, x: Array | None = None, weights: Array | None = None) -> Gradient:
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
        by_set = (radius, dictionary) if len(radius) > 1 else (radius[0], dictionary[0])
        return Gradient(self._data_by_gradient(u), put(at.space, u), *by_set)

    def torch(self, *, y: Array | None = None, radius: Array | None = None, dictionary: Array | None = None) -> Array:
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

        inputs = y, radius, dictionary
        like = next((tensor for tensor in inputs if tensor is not None), None)
        if like is None:
            raise TypeError("torch() got no tensor; give one that the problem was made of, such as y=y.")
        self._check_stable()

        class Solution(torch.autograd.Function):  # type: ignore[misc]
            """x, whose backward pass is `vjp`."""

            @staticmethod
            def forward(ctx: object, *tensors: Array) -> Array:
                return torch.as_tensor(host(self.result.x)).to(like)

            @staticmethod
            def backward(ctx: object, v: Array) -> tuple[Array | None, ...]:
                slopes = self.vjp(x=host(v))
                pairs = zip(inputs, (slopes.y, slopes.radius, slopes.dictionary), strict=True)
                return tuple(
                    None if tensor is None or value is None else torch.as_tensor(np.asarray(value)).to(like)
                    for tensor, value in pairs
                )

        return Solution.apply(*inputs)

    def _check_stable(self) -> None:
        if self.reason is not None:
            raise ValueError(f"the solution has no derivative here: {self.reason}.")

    def _per_summand(self, name: str, values: Any, nothing: Any) -> list[Any]:
        """One argument per summand, given as a list or, where there is one summand, alone."""
        n = len(self.face.by_factor)
        if values is None:
            return [nothing] * n
        if n == 1:
            return [values]
        listed = isinstance(values, Sequence | np.ndarray) and len(values) == n
        require(listed, name, values, f"one, or None, for each of the {n} summands")
        return [nothing if value is None else value for value in values]

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
        if not self.face.determined or self._has_redundant_columns(b, A, mine):
            raise ValueError("columns of the solution depend on each other, so that it jumps; leave dictionary= out.")
        atoms = [own.atoms[i] for i in mine]
        return A, mine, np.array([a.source for a in atoms], dtype=np.intp), np.array([a.coef for a in atoms])

    def _has_redundant_columns(self, b: int, A: Dictionary, mine: Indices) -> bool:
        """Whether a summand is a span with more columns than dimensions, which grows when these move."""
        size = self.face.at.space.size
        if not self.result.domain.parts[b].signless or len(mine) >= min(A.n, size):
            return False
        return not len(completion(host(A.D).reshape(size, A.n).T, self.face.T[mine]))

    def _moved(self, b: int, direction: Array) -> Small:
        """The change of the atoms when the dictionary of a summand moves."""
        A, mine, columns, coefs = self._columns(b)
        moved = np.zeros(self.face.T.shape)
        moved[mine] = coefs[:, None] * _read("dictionary", direction, tuple(A.D.shape)).reshape(-1, A.n).T[columns]
        return moved

    def _gradient_in_dictionary(self, b: int, moved: Small) -> Array | None:
        """The derivative in the dictionary of a summand, from that in the atoms."""
        try:
            A, mine, columns, coefs = self._columns(b)
        except (TypeError, ValueError):
            return None
        out = np.zeros((self.face.at.space.size, A.n))
        np.add.at(out.T, columns, coefs[:, None] * moved[mine])
        return replace(self.face.at.space, shape=tuple(A.D.shape)).put(out.reshape(A.D.shape))

    @cached_property
    def _sensitivity(self) -> Small | None:
        """The derivative of the gradient of f in its data, which is diagonal; None where f has no data that we know."""
        return self.result.f.data_slopes(put(self.face.at.space, self.face.at.x))

    def _gradient_by_data(self, y: Array) -> Small:
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


def _rate(rate: object) -> float:
    require(math.isfinite(number(rate)), "radius", rate, "the rate at which it changes, a number")
    return number(rate)


def _read(name: str, direction: Array, shape: tuple[int, ...]) -> Small:
    """A direction, flattened."""
    array = host(real_array(direction, name))
    if array.shape != tuple(shape):
        raise ValueError(f"{name} has shape {array.shape}; give an array of shape {tuple(shape)}.")
    return array.reshape(-1)
