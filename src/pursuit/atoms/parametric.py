"""Continuous dictionaries: atoms a(theta) with parameters in a box."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pursuit.arguments import as_bool, as_int_or_nan, as_list, check_function, quantity, real_array, require
from pursuit.arrays import Array, Indices, Small, Space, host
from pursuit.atoms.base import Atoms, Chart, Found, Pullback, Search
from pursuit.atoms.families import Family
from pursuit.atoms.frames import Atom, Source
from pursuit.linalg.lbfgs import lbfgs
from pursuit.state import Fields

Mask = NDArray[np.bool_]

LBFGS_OPTIONS: Fields = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 60}
"""Options of SciPy's L-BFGS-B, for a function of size 1 on the unit cube."""

MIN_DESCENTS, MAX_DESCENTS = 3, 8
"""The oracle descends from at least and at most this many local minima of the grid."""

MAX_STORED_ENTRIES = 2**24
"""The atoms of the grid are stored if they have at most this many entries together; else every call computes them."""


class Spikes(NamedTuple):
    """Weights (r,) and parameters (r, p) of the atoms."""

    weights: Small
    parameters: Small


class Parametric(Atoms):
    r"""Atoms :math:`a(\theta)`, theta in a box: bumps, sinusoids, point sources, translates of a template.

    The oracle evaluates :math:`\langle g, a(\theta)\rangle` on a grid of parameters and descends from the best local
    minima of the grid (L-BFGS-B). That alone proves no bound, so gaps are infinite. With a Lipschitz constant,
    :math:`\|a(\theta) - a(\theta')\| \le \ell\,\|\theta - \theta'\|`, every theta has a point of the grid within half
    the diagonal d of a cell, so :math:`\langle g, a(\theta)\rangle \ge \min_{\text{grid}} \langle g, a\rangle -
    \ell\,\|g\|\,d/2`: a proved bound, which a finer grid makes sharper.

    Parameters
    ----------
    family : function of a (p,) array
        Gives the atom, an array of the shape of H; `pursuit.families` has some ready.
    bounds : (p, 2) array
        The box.
    grid : int or p integers, optional
        Points per parameter, both ends included; None: 64 for one parameter, 32 for two, 12 for three, else 6.
    grad : function of a (p,) array, optional
        The derivatives, (p, ...) of the shape of an atom; None: `family.grad` where there is one, else differences.
    lipschitz : float or p numbers, optional
        The constant; several: one for each parameter alone, :math:`\sum_j \ell_j |\theta_j - \theta'_j|`.
    signed : bool
        Whether :math:`-a(\theta)` are atoms too. `lin` does not need it.

    Examples
    --------
    >>> import pursuit as ps
    >>> t = np.linspace(0, 1, 50)
    >>> A = ps.Parametric(ps.families.Gaussian(t, 0.05), [(0, 1)])
    >>> y = 3 * A.family(np.array([0.4321]))
    >>> r = ps.minimize(ps.LeastSquares(y), ps.cone(A), stop=ps.Stop(value=1e-9))
    >>> r.coef.weights.round(4), r.coef.parameters.round(4)
    (array([3.]), array([[0.4321]]))
    """

    exact = False
    shape: tuple[int, ...]

    def __init__(
        self,
        family: Family,
        bounds: object,
        *,
        grid: int | Sequence[int] | None = None,
        grad: Family | None = None,
        lipschitz: object = None,
        signed: bool = False,
    ) -> None:
        check_function(family, "family", "a (p,) array of parameters")
        self.family, self.grad = family, getattr(family, "grad", None) if grad is None else grad
        if self.grad is not None:
            check_function(self.grad, "grad", "a (p,) array of parameters")
        self.bounds = _box(bounds)
        self._axes = [
            np.linspace(lo, hi, n) for (lo, hi), n in zip(self.bounds, _counts(grid, len(self.bounds)), strict=True)
        ]
        self.symmetric = as_bool(signed, "signed")
        first = real_array(self._centre(), "an atom of the family")
        self.space = Space.of(np.asarray(first, dtype=np.float64))
        self.shape = self.space.shape
        self._cells = tuple(map(len, self._axes))
        self._kept: list[Small] | None = None
        self._slack = self._resolution(lipschitz)
        if math.isfinite(self._slack):
            longest = max(float(np.linalg.norm(rows, axis=1).max()) for rows in self._blocks())
            self.radius = longest + self._slack
            self.diameter = 2.0 * self.radius

    def _centre(self) -> Array:
        """The atom at the centre of the box, or an error where the family has another number of parameters."""
        centre = self.bounds.mean(axis=1)
        try:
            return self.family(centre)
        except (IndexError, TypeError, ValueError) as error:
            size = quantity(len(centre), "parameter")
            advice = "give a pair for each parameter of the family"
            raise ValueError(f"bounds name {size}, with which the family fails; {advice}.") from error

    def _resolution(self, lipschitz: object) -> float:
        """A bound on the distance of any atom to the nearest atom of the grid; infinite where there is none."""
        if lipschitz is None:
            return math.inf
        constants = real_array(lipschitz, "lipschitz")
        positive = constants.shape in ((), (len(self.bounds),)) and bool((constants > 0).all())
        require(positive, "lipschitz", lipschitz, "a positive number, or one per parameter")
        reach = np.array([np.diff(axis).max() / 2 for axis in self._axes])
        return float(constants * np.linalg.norm(reach)) if constants.ndim == 0 else float(constants @ reach)

    def _row(self, theta: Small) -> Small:
        return np.asarray(self.family(theta), dtype=np.float64).reshape(-1)

    def _atom(self, theta: Small, sign: float) -> Atom:
        values = tuple(float(v) for v in theta)
        return Atom(sign * self._row(np.array(values)).reshape(self.shape), values, sign)

    def _inside(self, theta: Sequence[float]) -> bool:
        return len(theta) == len(self.bounds) and all(
            lo <= v <= hi for v, (lo, hi) in zip(theta, self.bounds, strict=True)
        )

    def sample(self, rng: np.random.Generator) -> Atom:
        return self._atom(np.asarray(rng.uniform(*self.bounds.T)), rng.choice([-1.0, 1.0]) if self.symmetric else 1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        if not isinstance(a.source, tuple) or not self._inside(a.source):
            return None
        return self._atom(np.array(a.source), -1.0 if self.symmetric and a.coef < 0 else 1.0)

    def _is_atom(self, a: Array, tolerance: float) -> bool | None:
        """True where the oracle finds an atom equal to a; otherwise None, as it may have missed one."""
        target = host(a)
        gap = np.linalg.norm(self.lmo(-target).vector - target)
        return True if gap <= 1e-6 * np.linalg.norm(target) else None

    def coefficients(self, sources: Sequence[Source], values: Small) -> object:
        """The combination as `Spikes(weights, parameters)`."""
        return Spikes(values, np.array(sources, dtype=np.float64).reshape(len(sources), -1))

    def symmetrised(self) -> Atoms:
        return self if self.symmetric else self._with(symmetric=True)

    def begin(self, seed: int = 0) -> Search:
        return self._search

    def _search(self, g: Array, several: int, level: float) -> Found:
        slope = host(g).reshape(-1)
        size = float(np.linalg.norm(slope)) or 1.0
        slope = slope / size
        scores = np.concatenate([rows @ slope for rows in self._blocks()])
        merit = -np.abs(scores) if self.symmetric else scores
        found = []
        for i in self._local_minima(merit)[: min(max(several, MIN_DESCENTS), MAX_DESCENTS)]:
            sign = -1.0 if self.symmetric and scores[i] > 0 else 1.0
            theta, value = self._descend(self._point(int(i)), sign * slope)
            found.append((value, theta, sign))
        found.sort(key=lambda entry: entry[0])
        atoms = [self._atom(theta, sign) for _, theta, sign in found[:several]]
        return atoms, size * (float(merit.min()) - self._slack)

    def _point(self, i: int) -> Small:
        return np.array([axis[j] for axis, j in zip(self._axes, np.unravel_index(i, self._cells), strict=True)])

    def _blocks(self) -> Iterator[Small]:
        """The atoms of the grid, in its order, as rows of a few matrices."""
        if self._kept is not None:
            yield from self._kept
            return
        total, size = math.prod(self._cells), math.prod(self.shape)
        rows = max(1, min(total, 2**20 // size))
        if total * size <= MAX_STORED_ENTRIES:
            self._kept = [self._rows(range(total))]
            yield from self._kept
        else:
            yield from (self._rows(range(i, min(i + rows, total))) for i in range(0, total, rows))

    def _rows(self, places: range) -> Small:
        return np.asarray(real_array(np.stack([self._row(self._point(i)) for i in places]), "an atom of the family"))

    def _local_minima(self, merit: Small) -> Indices:
        """The points of the grid that are no worse than their neighbours along each axis, best first."""
        table = merit.reshape(self._cells)
        lowest: Mask = np.ones(self._cells, dtype=bool)
        for axis, n in enumerate(self._cells):
            if n > 1:
                left, right = (np.arange(0, n - 1), np.arange(1, n))
                fall = np.take(table, right, axis) - np.take(table, left, axis)
                lowest &= np.insert(fall <= 0, 0, True, axis=axis) & np.insert(fall >= 0, n - 1, True, axis=axis)
        places = np.flatnonzero(lowest)
        return places[np.argsort(merit[places], kind="stable")]

    def _descend(self, theta: Small, slope: Small) -> tuple[Small, float]:
        """A local minimiser of <slope, a(theta)> near theta, in coordinates where the box is the unit cube."""
        lo, span = self.bounds[:, 0], np.ptp(self.bounds, axis=1)
        before = float(self._row(theta) @ slope)
        scale = abs(before) or 1.0

        def value(u: Small) -> tuple[float, Small]:
            point = np.clip(lo + u * span, *self.bounds.T)
            return float(self._row(point) @ slope) / scale, self._slopes(point, slope) * span / scale

        start = (theta - lo) / span
        found = lbfgs(value, start, [(0.0, 1.0)] * len(lo), **LBFGS_OPTIONS)
        best = np.clip(lo + found.x * span, *self.bounds.T)
        after = float(self._row(best) @ slope)
        return (best, after) if after <= before else (theta, before)

    def chart(self) -> Chart:
        return _ThetaChart(self)

    def _slopes(self, theta: Small, g: Small) -> Small:
        """The gradient of <g, a(theta)> in theta."""
        if self.grad is not None:
            return np.asarray(self.grad(theta), dtype=np.float64).reshape(len(theta), -1) @ g
        out = np.empty(len(theta))
        for j, (lo, hi) in enumerate(self.bounds):
            step = 6e-6 * (hi - lo)  # the cube root of the roundoff: central differences
            left, right = theta.copy(), theta.copy()
            left[j], right[j] = max(theta[j] - step, lo), min(theta[j] + step, hi)
            out[j] = float((self._row(right) - self._row(left)) @ g) / (right[j] - left[j])
        return out

    def __repr__(self) -> str:
        sign = ", signed=True" if self.symmetric else ""
        return f"Parametric({self.family!r}, grid={self._cells}{sign})"


class _ThetaChart:
    """The parameters of an atom a(theta) are theta itself."""

    def __init__(self, A: Parametric) -> None:
        self.A, self.bounds = A, A.bounds

    def parameters(self, source: Source) -> Small:
        return np.array(source, dtype=np.float64)

    def source(self, theta: Small) -> tuple[Source, float]:
        return tuple(float(v) for v in np.clip(theta, *self.bounds.T)), 1.0

    def combine(self, thetas: Small, coefs: Small) -> tuple[Array, Pullback]:
        rows = np.stack([self.A._row(theta) for theta in thetas])

        def pull(g: Array) -> tuple[Small, Small]:
            slope = host(g).reshape(-1)
            return rows @ slope, np.stack([self.A._slopes(theta, slope) for theta in thetas])

        return (coefs @ rows).reshape(self.A.shape), pull


def _box(bounds: object) -> Small:
    box = np.asarray(real_array(bounds, "bounds"), dtype=np.float64)
    ordered = box.ndim == 2 and box.shape[1] == 2 and len(box) > 0 and bool((box[:, 0] < box[:, 1]).all())
    require(ordered, "bounds", box.tolist(), "one pair (low, high), low < high, per parameter")
    return box


def _counts(grid: Any, p: int) -> list[int]:
    grid = {1: 64, 2: 32, 3: 12}.get(p, 6) if grid is None else grid
    counts = [grid] * p if as_int_or_nan(grid) >= 0 else as_list(grid)
    valid = len(counts) == p and all(as_int_or_nan(n) >= 2 for n in counts)
    require(valid, "grid", grid, f"the number of points, at least 2, or one per parameter ({p})")
    return [int(n) for n in counts]
