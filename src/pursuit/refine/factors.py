r"""Refinement of rank-one matrices: all factors of the active atoms move together.

With factors in place of weights, a nuclear-norm problem takes a handful of oracle calls instead of hundreds. After an
update S holds the current singular vectors and the new ones that the oracle named; then

1. a few accelerated projected-gradient steps on the small core C of :math:`X = Q C P^\top`, where Q and P are bases of
   the left and right vectors of S: every left vector may combine with every right one, and superfluous combinations get
   weight zero;
2. L-BFGS on the factors of :math:`X = A B^\top`, with the constraint built in: every
   :math:`X = 2\tau A B^\top / (\|A\|^2 + \|B\|^2 + s^2)` lies in the nuclear-norm ball of radius :math:`\tau` (the
   slack s lets it lie inside), every :math:`X = \tau A A^\top / \|A\|^2` in the spectrahedron; over spans there is no
   constraint. Each coordinate has its own unit, from the curvature of f along it: this matters where some rows have few
   entries, or entries of large curvature;
3. one projected-gradient step on the core again, which drops superfluous combinations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, number, require, use_python_numbers
from pursuit.arrays import Array, Small
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.factored import RankOneAtom, columns
from pursuit.atoms.frames import Atom
from pursuit.atoms.matrices import RankOne, Spectrahedron, SymmetricRankOne
from pursuit.domains import Domain, Part
from pursuit.linalg import accelerated_gradient, project_simplex, project_solid_simplex, unit
from pursuit.linalg.lbfgs import lbfgs
from pursuit.objectives import Objective
from pursuit.refine.proposals import Proposal, rebuilt
from pursuit.threads import single_threaded_blas

MATRICES = RankOne | SymmetricRankOne | Spectrahedron

SHORT_MEMORY_NUMBERS = 1 << 20
"""Numbers in the factors from which L-BFGS remembers half as many steps, to save memory."""
STEPS_PER_ROUND = 50
"""Steps of L-BFGS after which the units of the factors are computed again."""


@dataclass(frozen=True)
class Factors:
    """Moves the factors of rank-one atoms: for `RankOne`, `SymmetricRankOne` and `Spectrahedron`, whole or seen at
    entries, over hulls, cones and spans, and for any smooth f. Other summands of a sum of domains stay as they are.

    `core` accelerated steps move the core, at most `steps` steps of L-BFGS the factors. L-BFGS ends when the possible
    decrease of f, to first order, is the fraction `accuracy` of that of the first core. A smaller fraction saves oracle
    calls and costs steps: for a gap of 1e-7 the time is the same, for 1e-3 it is longer.

    >>> import numpy as np, pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> Y = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    >>> rows, cols = np.nonzero(rng.random((30, 20)) < 0.6)
    >>> f, ball = ps.LeastSquares(Y[rows, cols]), 60 * ps.RankOne((30, 20)).at(rows, cols)
    >>> ps.minimize(f, ps.conv(ball), ps.NormCorrective(several=8), refine=ps.refine.Factors()).oracle_calls < 10
    True
    >>> ps.minimize(f, ps.conv(ball), ps.NormCorrective(several=8), stop=ps.Stop(iterations=20)).status.name
    'ITERATIONS'
    """

    core: int = 10
    steps: int = 200
    accuracy: float = 0.1

    def __post_init__(self) -> None:
        for name, count in (("core", self.core), ("steps", self.steps)):
            require(as_int_or_nan(count) >= 0, name, count, "a number of steps, 0 or more")
        require(0 <= number(self.accuracy) < 1, "accuracy", self.accuracy, "a fraction from 0 to 1")
        use_python_numbers(self)

    @staticmethod
    def serves(f: Objective, domain: Domain) -> bool:
        """Whether a summand of the domain has rank-one matrices as atoms."""
        return any(isinstance(unscaled(part.asked)[0], MATRICES) for part in domain.parts)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        if not f.exact:
            return None  # L-BFGS needs exact values
        weights, atoms, blocks = active.weights.tolist(), list(active.atoms), active.blocks.tolist()
        x, moved = active.x, False
        with single_threaded_blas:  # many short products, for which threads do not pay
            for b, part in enumerate(domain.parts):
                members = [(w, a) for w, a, block in zip(weights, atoms, blocks, strict=True) if block == b]
                if not members or not _movable(part, [a for _, a in members]):
                    continue
                fit = _Fit(f, part, active, x, members)
                fitted = self._fit(fit)
                if fitted is None:
                    continue
                moved, x = True, fit.point
                others = [i for i, block in enumerate(blocks) if block != b]
                weights = [weights[i] for i in others] + fitted[0].tolist()
                atoms = [atoms[i] for i in others] + fitted[1]
                blocks = [blocks[i] for i in others] + [b] * len(fitted[1])
        return Proposal(np.array(weights), atoms, np.array(blocks, dtype=np.intp)) if moved else None

    def _fit(self, fit: _Fit) -> tuple[Small, list[Atom]] | None:
        scale = fit.possible_decrease()
        if not scale > 0:
            return None
        fit.improve_core(self.core)
        fit.improve_factors(self.steps, self.accuracy * scale, scale)
        fit.improve_core(1)
        return fit.result()


def _movable(part: Part, atoms: list[Atom]) -> bool:
    base = unscaled(part.asked)[0]
    return isinstance(base, MATRICES) and all(isinstance(a, RankOneAtom) and a.view is base.view for a in atoms)


class _Fit:
    """x = rest + X for a matrix X = Q C P' of small core C, under the constraint of one domain."""

    def __init__(
        self, f: Objective, part: Part, active: ActiveSet, x: Array, members: list[tuple[float, Atom]]
    ) -> None:
        base, c = unscaled(part.asked)
        assert isinstance(base, MATRICES)
        self.f, self.part, self.space, self.view = f, part, active.space, base.view
        self.square = base.square
        self.tau = abs(c) if part.compact else None
        self.sign = math.copysign(1.0, c) if base.fixed_trace else 0.0  # of all eigenvalues; 0: either
        w = np.array([weight for weight, _ in members])
        A, B = columns([a for _, a in members if isinstance(a, RankOneAtom)])
        self._set_factors(B if self.square else A, w * [a.coef for _, a in members] if self.square else w, B)
        alone = len(active.signless) == 1
        self.rest: Array = 0.0 if alone else x - self.view.image(self.space, A * w, B)
        self.L, self.deadline = f.L, active.deadline

    def _set_factors(self, A: Small, w: Small, B: Small) -> None:
        """Set X = A diag(w) B', as a core between orthonormal bases."""
        self.Q, RA = np.linalg.qr(A)
        self.P, RB = (self.Q, RA) if self.square else np.linalg.qr(B)
        self.C = (RA * w) @ RB.T

    @property
    def point(self) -> Array:
        return self.rest + self.view.image(self.space, self.Q @ self.C, self.P)

    def evaluate(self, A: Small, B: Small, c: float = 1.0) -> tuple[float, Array, Array, Array]:
        """f at rest + c A B', its gradient as a matrix and as a vector, and A B' as a vector. Beyond the domain of f
        the gradient is NaN, whatever f returns there."""
        X = self.view.image(self.space, A, B)
        value, grad = self.f.value_and_grad(self.rest + c * X)
        grad = grad if math.isfinite(value) else math.nan * X
        return float(value), self.view.matrix(grad), grad, X

    # ------------------------------------------------------------------ the core
    def _core(self, C: Small) -> tuple[float, Small]:
        value, M, _, _ = self.evaluate(self.Q @ C, self.P)
        G = self.Q.T @ (M @ self.P)
        return value, 0.5 * (G + G.T) if self.square else G

    def possible_decrease(self) -> float:
        """The possible decrease of f over all cores, to first order."""
        G = self._core(self.C)[1]
        if self.tau is None:
            return float(np.linalg.norm(G) * np.linalg.norm(self.C))
        _, values, _ = self._spectrum(G)
        if self.sign:
            return float(np.sum(G * self.C)) - self.tau * float(np.min(self.sign * values))
        return float(np.sum(G * self.C)) + self.tau * float(np.abs(values).max())

    def _spectrum(self, C: Small) -> tuple[Small, Small, Small]:
        """C = left diag(values) right': eigenvalues where C is symmetric, singular values elsewhere."""
        if self.square:
            values, vectors = np.linalg.eigh(0.5 * (C + C.T))
            return vectors, values, vectors
        left, values, right = np.linalg.svd(C, full_matrices=False)
        return left, values, right.T

    def _nearest_feasible(self, C: Small) -> Small:
        left, values, right = self._spectrum(C)
        return (left * self._feasible_values(values)) @ right.T

    def _feasible_values(self, values: Small) -> Small:
        """The feasible eigenvalues or singular values nearest to these."""
        if self.sign == 0.0:
            return values if self.tau is None else np.sign(values) * project_solid_simplex(np.abs(values), self.tau)
        sizes = self.sign * values
        return self.sign * (np.maximum(sizes, 0.0) if self.tau is None else project_simplex(sizes, self.tau))

    def improve_core(self, steps: int) -> None:
        """Accelerated projected-gradient steps."""
        for C in islice(accelerated_gradient(self._step, self.C), steps):
            self.C = C
            if self.deadline.passed:
                break

    def _step(self, Y: Small) -> Small:
        """One projected-gradient step; the smoothness is that of f, or found by backtracking."""
        value, G = self._core(Y)
        if not (math.isfinite(value) and np.isfinite(G).all()):  # beyond the domain of f: from the last core again
            return np.asarray(self.C)
        if self.L is not None:
            return self._nearest_feasible(Y - G / self.L)
        size, length = float(np.linalg.norm(Y)) or 1.0, float(np.linalg.norm(G)) or 1.0
        near = self._core(Y - 1e-3 * size / length * G)[1]
        L = float(np.linalg.norm(near - G)) / (1e-3 * size)
        L = L if 0 < L < math.inf else length / size
        for _ in range(100):
            new = self._nearest_feasible(Y - G / L)
            d = new - Y
            bound = value + float(np.sum(G * d)) + 0.5 * L * float(np.sum(d * d))
            if self._core(new)[0] <= bound + 1e-12 * abs(value):
                return new
            L *= 2.0
        return Y

    # ------------------------------------------------------------------ the factors
    def improve_factors(self, steps: int, goal: float, scale: float) -> None:
        """L-BFGS on the factors, until |gradient| |factors| is at most the goal."""
        left, values, right = self._spectrum(self.C)
        keep = np.abs(values) > 1e-10 * float(np.abs(values).max())
        if not keep.any():  # X = 0 has no factors
            return
        roots, signs = np.sqrt(np.abs(values[keep])), np.sign(values[keep])
        A, B = (self.Q @ left[:, keep]) * roots, (self.P @ right[:, keep]) * roots
        layout = _Layout(A.shape, B.shape, signs if self.square else None, self.tau)
        w = layout.join(A, B)
        if self.tau is not None:
            inside = self.tau - float(np.sum(roots**2))
            slack = 0.0 if self.sign else math.sqrt(layout.norm_factor * max(inside, 1e-6 * self.tau))
            w = np.append(w, slack)
        first = float(self.f.value(self.point))
        remaining_decrease, units = math.inf, np.ones_like(w)

        def evaluate(z: Small) -> tuple[float, Small]:
            nonlocal remaining_decrease
            w = units * z
            (A, B), c, size = layout.factors(w), layout.scale(w), float(w @ w)
            value, M, grad, X = self.evaluate(A, B, c)
            slope = layout.gradient(M, A, B, c, w)
            if self.tau is not None:
                slope -= (2.0 * c / size * self.space.dot(grad, X)) * w
            remaining_decrease = float(np.linalg.norm(slope)) * math.sqrt(size)
            return (value - first) / scale, units * (slope / scale)

        def at_goal() -> bool:
            return remaining_decrease <= goal or self.deadline.passed

        options = {"maxfun": 2 * STEPS_PER_ROUND, "maxcor": 6 if len(w) < SHORT_MEMORY_NUMBERS else 3}
        for remaining in range(steps, 0, -STEPS_PER_ROUND):
            w = w if self.tau is None else w / np.linalg.norm(w)
            with np.errstate(over="ignore", invalid="ignore"):  # the line search may try long steps
                units = self._units(layout, w)
                lowest = lbfgs(evaluate, w / units, stop=at_goal, maxiter=min(remaining, STEPS_PER_ROUND), **options)
            w = units * lowest.x
            if remaining_decrease <= goal or lowest.nit < STEPS_PER_ROUND:
                break
        (A, B), c = layout.factors(w), layout.scale(w)
        self._set_factors(A, c * signs if self.square else np.full(A.shape[1], c), A if self.square else B)

    def _units(self, layout: _Layout, w: Small) -> Small:
        """A unit for each coordinate of the factors, in which f is about equally curved along all of them: the inverse
        root of the Gauss-Newton diagonal (for A: H (B * B), if f has the Hessian diag(H)) over its mean, plus one."""
        (A, B), units = layout.factors(w), np.ones_like(w)
        hessian = self.f.hessian(self.rest + layout.scale(w) * self.view.image(self.space, A, B))
        if hessian is None or hessian.h is None:
            return units
        M, factors = self.view.matrix(hessian.h + self.space.zeros()), slice(len(w) - (self.tau is not None))
        curvature = layout.gradient(M, A * A, B * B, 1.0, w)[factors]
        mean = float(curvature.mean())
        if 0 < mean < math.inf:
            units[factors] = 1.0 / np.sqrt(1.0 + curvature / mean)
        return units

    def result(self) -> tuple[Small, list[Atom]]:
        """X as weights and atoms of the domain."""
        left, values, right = self._spectrum(self.C)
        order = [int(i) for i in np.argsort(-np.abs(values)) if abs(values[i]) > 1e-12 * np.abs(values).max()]
        U, V = self.Q @ left[:, order], self.P @ right[:, order]
        atoms = []
        for j, i in enumerate(order):
            u = unit(U[:, j].copy())
            v = u if self.square else unit(V[:, j].copy())
            atoms.append(rebuilt(self.part, RankOneAtom(u, v, self.view, math.copysign(1.0, float(values[i])))))
        weights = np.abs(values[order]) / np.array([abs(a.coef) for a in atoms])
        if not self.part.compact:
            return weights, atoms
        if self.sign or weights.sum() > 1.0 - 1e-9:
            return weights / weights.sum(), atoms
        return self.part.decompose(weights, atoms)


@dataclass(frozen=True)
class _Layout:
    """Factors A and B as one vector w, perhaps with a slack at its end; for a symmetric matrix A alone, B = A
    diag(signs)."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    signs: Small | None
    tau: float | None

    @property
    def norm_factor(self) -> float:
        """The nuclear norm of A B' is at most |w|^2 over this number: (|A|^2 + |B|^2) / 2, or |A|^2."""
        return 2.0 if self.signs is None else 1.0

    def join(self, A: Small, B: Small) -> Small:
        return np.concatenate([A.ravel(), B.ravel()]) if self.signs is None else A.ravel()

    def factors(self, w: Small) -> tuple[Small, Small]:
        cut = math.prod(self.left)
        A = w[:cut].reshape(self.left)
        if self.signs is not None:
            return A, A * self.signs
        return A, w[cut : cut + math.prod(self.right)].reshape(self.right)

    def scale(self, w: Small) -> float:
        """The factor c that makes c A B' feasible."""
        return 1.0 if self.tau is None else self.norm_factor * self.tau / float(w @ w)

    def gradient(self, M: Array, A: Small, B: Small, c: float, w: Small) -> Small:
        """The gradient in w of <M, c A B'>."""
        slope = np.zeros_like(w)
        if self.signs is not None:
            slope[: A.size] = (c * (M @ B + M.T @ B)).ravel()
            return slope
        slope[: A.size] = (c * (M @ B)).ravel()
        slope[A.size : A.size + B.size] = (c * (M.T @ A)).ravel()
        return slope
