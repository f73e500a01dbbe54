"""Rank-one tensors, in full or at observed entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pursuit.arguments import as_int_or_nan, as_list, check_seed, require
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import Atoms, Chart, Found, Pullback, Search
from pursuit.atoms.factored import CP, Factors, TensorAtom
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.views import AllEntries, Gradient, Matrix, ObservedEntries, View, tensor_places
from pursuit.linalg import EPS, unit_columns, units_and_norms
from pursuit.state import Stateful

POWER_METHOD_ACCURACY = 1e-8
"""In a run, the power method ends when a sweep improves the value by no more than this fraction."""

MAX_GRAM_SIDE = 512
"""Up to this length of the shorter side, the norm of an unfolding comes from the eigenvalues of its Gram matrix."""


class RankOneTensor(Atoms):
    r"""Unit rank-one tensors :math:`u_1 \circ \dots \circ u_N`, :math:`\|u_k\| = 1`; their gauge is the nuclear norm of
    tensors, which like the oracle is NP-hard.

    The oracle is the higher-order power method: with all factors but one fixed the best :math:`u_k` is the contraction
    of g with the others, normalised. It starts from the leading singular vectors of the unfoldings, from the largest
    entry, from the answers of the last call and from random factors; no sweep makes an answer worse. It may end at a
    local optimum. The distance to the global one is bounded: :math:`\langle g, a\rangle \ge -\min_k \|G_{(k)}\|_2` for
    every atom, since a rank-one tensor unfolds into a rank-one matrix of the same norm. So each answer has a proved
    quality, and gaps are proved.

    Computations are in float64 on the host; atoms are factors (`Atom.source`), never dense tensors. A call has `starts`
    random starts, drawn from `seed`.

    >>> import pursuit as ps
    >>> u, v, w = np.eye(3)[0], np.ones(4) / 2, np.array([0.6, 0.8])
    >>> T = 5.0 * np.einsum("i,j,k->ijk", u, v, w)
    >>> r = ps.minimize(ps.LeastSquares(T), ps.lin(ps.RankOneTensor((3, 4, 2))))
    >>> r.coef.weights.round(6), r.coef.factors[2].ravel().round(6)
    (array([5.]), array([0.6, 0.8]))
    """

    symmetric = True
    exact = False
    radius = 1.0
    diameter = 2.0
    shape: tuple[int, ...]

    def __init__(self, shape: Sequence[int], *, starts: int = 8, seed: int = 0) -> None:
        dims = as_list(shape)
        valid = len(dims) >= 3 and all(as_int_or_nan(n) >= 1 for n in dims)
        require(valid, "shape", shape, "three or more dimensions of at least 1 (for two use RankOne)")
        require(as_int_or_nan(starts) >= 0, "starts", starts, "the number of random starts, 0 or more")
        check_seed(seed)
        self.starts, self.seed = int(starts), int(seed)
        self.dims = self.shape = tuple(int(n) for n in dims)
        self.view: View = AllEntries(self.dims)
        self.width = _width(self.dims, self.shape)

    def at(self, indices: object) -> RankOneTensor:
        """The same tensors seen at entries only: tensor completion. No dense tensor is ever made.

        `indices` are (N, order) integers, or one array of length N per mode: the observed entries, each once, and every
        slice of every mode with at least one of them.

        >>> import pursuit as ps
        >>> A = ps.RankOneTensor((2, 2, 2)).at([(0, 0, 0), (1, 1, 1), (0, 1, 1)])
        >>> A.lmo(np.array([0.0, 3.0, 4.0])).vector[1:]
        array([-0.6, -0.8])
        """
        view = ObservedEntries(self.dims, tensor_places(indices, self.dims))
        space, width = Space.default(view.shape), _width(self.dims, view.shape)
        return self._with(view=view, shape=view.shape, space=space, width=width)

    def _atom(self, vectors: Sequence[Small], sign: float) -> Atom:
        factors, flip = Factors.of(vectors)
        return self._built(factors, sign * flip)

    def _built(self, factors: Factors, coef: float) -> Atom:
        if not self.view.observed:
            return TensorAtom(factors, coef)
        return Atom(self.view.synthesize([u[:, None] for u in factors], np.array([coef])), factors, coef)

    def sample(self, rng: np.random.Generator) -> Atom:
        return self._atom([rng.standard_normal(n) for n in self.dims], 1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        if not isinstance(a.source, Factors) or tuple(map(len, a.source)) != self.dims:
            return None
        return self._built(a.source, math.copysign(1.0, a.coef))

    def _is_atom(self, a: Array, tolerance: float) -> bool | None:
        """Whether every unfolding is a rank-one matrix of norm 1; None at observed entries, which do not decide it."""
        if self.view.observed:
            return None
        spectra = [np.linalg.svd(M, compute_uv=False) for M in self.view.unfoldings(host(a))]
        return all(bool(abs(s[0] - 1.0) <= 1e-12 and s[1:].max(initial=0.0) <= 1e-12) for s in spectra)

    def coefficients(self, sources: Sequence[Source], values: Small) -> CP | None:
        """The tensor as `CP(weights, factors)`, which can be read at any entries."""
        if not all(isinstance(source, Factors) for source in sources):
            return None
        return CP(values, Factors.stack(sources, self.dims))

    def begin(self, seed: int = 0) -> Search:
        return _TensorSearch(self, np.random.default_rng(self.seed))

    def _bound(self, G: Small) -> tuple[float, list[Small]]:
        """min_k ||G_(k)||_2, and two starts: the leading vectors of the unfoldings, the largest entry."""
        norms = [spectral_bound(M) for M in self.view.unfoldings(G)]
        bound = min([value for value, _ in norms] + [float(np.linalg.norm(G)) * (1.0 + 1e-12)])
        corner = [np.eye(n, 1, -i) for n, i in zip(self.dims, self.view.largest_entry(G), strict=True)]
        leads = [e if lead is None else lead[:, None] for e, (_, lead) in zip(corner, norms, strict=True)]
        return bound, [np.hstack(pair) for pair in zip(corner, leads, strict=True)]

    def chart(self) -> Chart:
        return _FactorChart(self.view)

    def __repr__(self) -> str:
        seen = f".at({self.shape[0]} entries)" if self.view.observed else ""
        return f"RankOneTensor({self.dims}){seen}"


@dataclass(eq=False)
class _TensorSearch(Stateful):
    """The power method of one run, from random starts and from the vectors that it found last."""

    A: RankOneTensor
    rng: np.random.Generator
    _last: list[Small] = field(init=False)

    def __post_init__(self) -> None:
        self._last = [np.zeros((n, 0)) for n in self.A.dims]

    def __call__(self, g: Array, several: int, level: float) -> Found:
        A, G = self.A, host(g)
        scale = float(np.abs(G).max()) or 1.0
        G = G / scale
        bound, starts = A._bound(G)
        random = [self.rng.standard_normal((n, A.starts)) for n in A.dims]
        together = [np.hstack(s) for s in zip(starts, self._last, random, strict=True)]
        accuracy = EPS if level == -math.inf else POWER_METHOD_ACCURACY
        last = self._last = power_method(A.view.gradient(G), together, several, accuracy)
        return [A._atom([U[:, i] for U in last], -1.0) for i in range(last[0].shape[1])], -scale * bound


class _FactorChart:
    """The parameters of a rank-one tensor: its factors, of any length, one after the other."""

    def __init__(self, view: View) -> None:
        self.view, self.ends = view, np.cumsum(view.dims)
        self.bounds = np.tile([-np.inf, np.inf], (int(self.ends[-1]), 1))

    def parameters(self, source: Factors) -> Small:
        return np.concatenate(source)

    def source(self, theta: Small) -> tuple[Factors, float]:
        return Factors.of(np.split(theta, self.ends[:-1]))

    @np.errstate(invalid="ignore")  # a factor of length 0 makes no tensor: NaN
    def combine(self, thetas: Small, coefs: Small) -> tuple[Array, Pullback]:
        raw = np.split(thetas.T, self.ends[:-1])
        norms = [np.linalg.norm(V, axis=0) for V in raw]
        factors = [V / norm for V, norm in zip(raw, norms, strict=True)]

        def pull(g: Array) -> tuple[Small, Small]:
            gradient = self.view.gradient(host(g))
            slopes = [gradient(factors, k) for k in range(len(factors))]
            dots = np.einsum("ir,ir->r", slopes[0], factors[0])
            tangents = [(M - dots * U) / norm for M, U, norm in zip(slopes, factors, norms, strict=True)]
            return dots, np.concatenate(tangents).T

        return self.view.synthesize(factors, coefs), pull


def _width(dims: tuple[int, ...], shape: tuple[int, ...]) -> float:
    """A lower bound on max_a <g, a> / ||g||. Both the fibre of largest norm along the largest mode and the largest
    entry are multiples of atoms; the larger of these multiples is at least the bound times ||g||."""
    return 1.0 / math.sqrt(min(math.prod(dims) // max(dims), math.prod(shape)))


def power_method(gradient: Gradient, starts: list[Small], several: int, accuracy: float) -> list[Small]:
    """The `several` best local maximisers of <g, u_1 o ... o u_N> that the starts lead to, best first. Column i of the
    matrices `starts`, one per mode, is one start.

    All starts run together to a rough accuracy; then the best ones, each only once, run to a fine one.
    """
    factors = [unit_columns(U) for U in starts]
    factors, values = _sweep(gradient, factors, 10, 1e-2)
    factors = _distinct(factors, values, several + 2, 1e-2)
    factors, values = _sweep(gradient, factors, 200, accuracy)
    return _distinct(factors, values, several, 1e-6)


def _sweep(gradient: Gradient, factors: list[Small], sweeps: int, tolerance: float) -> tuple[list[Small], Small]:
    """Sweeps of the power method, until the best value grows by no more than this fraction."""
    values = np.full(factors[0].shape[1], -np.inf)
    for _ in range(sweeps):
        before = values
        for k in range(len(factors)):
            factors[k], values = units_and_norms(gradient(factors, k))
        if values.max() - before.max() <= tolerance * values.max():
            break
    return factors, values


def _distinct(factors: list[Small], values: Small, most: int, tolerance: float) -> list[Small]:
    """The best columns, at most `most`, without those whose cosine with a better one is within the tolerance of 1."""
    cosines = np.abs(math.prod(U.T @ U for U in factors))
    kept: list[int] = []
    for i in np.argsort(-values, kind="stable"):
        if len(kept) < most and all(cosines[i, j] < 1.0 - tolerance for j in kept):
            kept.append(int(i))
    return [U[:, kept] for U in factors]


def spectral_bound(G: Matrix) -> tuple[float, Small | None]:
    """An upper bound on the spectral norm of a dense or sparse matrix, and a leading left singular vector or None.

    Where one side is small, the bound is the norm from the eigenvalues of a Gram matrix, enlarged by their rounding
    error, and the vector comes with it; else the root of the largest row sum times the largest column sum of |G|.
    """
    rows, columns = G.shape
    if min(rows, columns) > MAX_GRAM_SIDE:
        sizes = abs(G)
        return math.sqrt(float(sizes.sum(axis=0).max()) * float(sizes.sum(axis=1).max())), None
    square = G @ G.T if rows <= columns else G.T @ G
    values, vectors = np.linalg.eigh(square if isinstance(square, np.ndarray) else square.todense())
    slack = 1.0 + 8.0 * EPS * (rows + columns)
    lead = vectors[:, -1] if rows <= columns else G @ vectors[:, -1]
    return math.sqrt(max(float(values[-1]), 0.0)) * slack, lead
