"""Alternating least squares on the factors of all active rank-one tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, number, require, use_python_numbers
from pursuit.arrays import Array, Small, host
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.factored import Factors
from pursuit.atoms.frames import Atom
from pursuit.atoms.tensors import RankOneTensor
from pursuit.atoms.views import View
from pursuit.domains import Domain, Part
from pursuit.objectives import Objective
from pursuit.refine.proposals import Proposal, rebuilt


@dataclass(frozen=True)
class Alternating:
    r"""Line 7 for spans and cones of `RankOneTensor`, in full or at observed entries: the factors of all active atoms
    move, one mode at a time.

    With the other modes fixed, x is linear in the factor matrix :math:`U_k`, and for an f whose Hessian is diagonal
    each row of :math:`U_k` has its own r x r system: Newton's step, which for quadratic f is alternating least squares,
    exact. The step is halved until f falls. After each sweep the change of the whole sweep is tried once more, which
    speeds up the slow convergence that alternating methods are known for. It ends after this number of `sweeps`, or
    when one lowers f by less than the fraction `accuracy` of the decrease in all of them.

    >>> import pursuit as ps
    >>> rng = np.random.default_rng(0)
    >>> T = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((6, 2)) for _ in range(3)))
    >>> A, stop = ps.lin(ps.RankOneTensor((6, 6, 6))), ps.Stop(atoms=2)
    >>> greedy = ps.minimize(ps.LeastSquares(T), A, ps.FullyCorrective(), stop=stop)
    >>> moved = ps.minimize(ps.LeastSquares(T), A, ps.FullyCorrective(), stop=stop, refine=ps.refine.Alternating())
    >>> start = float(greedy.trace.value[0])
    >>> round(greedy.value / start, 3), round(moved.value / start, 9)
    (0.016, 0.0)
    """

    sweeps: int = 100
    accuracy: float = 1e-6

    def __post_init__(self) -> None:
        what = "the number of passes over the modes, at least 1"
        require(as_int_or_nan(self.sweeps) >= 1, "sweeps", self.sweeps, what)
        require(0 <= number(self.accuracy) < 1, "accuracy", self.accuracy, "a fraction from 0 to 1")
        use_python_numbers(self)

    @staticmethod
    def serves(f: Objective, domain: Domain) -> bool:
        """Whether spans or cones, and no hull, have rank-one tensors as atoms, and f has a diagonal Hessian or L."""
        tensors = [part for part in domain.parts if _tensors(part) is not None]
        hessian = None if f.space is None else f.hessian(f.space.zeros())
        known = f.L is not None or (hessian is not None and hessian.h is not None)
        return known and bool(tensors) and not any(part.compact for part in tensors)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> Proposal | None:
        if not self.serves(f, domain):
            raise TypeError(
                "Alternating serves lin(...) and cone(...) of RankOneTensor and an f with a diagonal Hessian or L; use "
                "refine.Slide() elsewhere."
            )
        weights, x, atoms = active.weights.copy(), active.x, list(active.atoms)
        for b, part in enumerate(domain.parts):
            tensors, places = _tensors(part), [int(i) for i in active.of(b) if isinstance(atoms[i].source, Factors)]
            if tensors is None or not places:
                continue
            stack = [np.stack([atoms[i].source[k] for i in places], axis=1) for k in range(len(tensors.dims))]
            stack[0] = stack[0] * [weights[i] * atoms[i].coef for i in places]
            fit = _Fit(f, active, tensors.view, x, stack)
            self._sweep(fit, active)
            x = fit.x
            sizes = np.prod([np.linalg.norm(U, axis=0) for U in fit.factors], axis=0)
            for j, i in enumerate(places):
                if sizes[j] > 0:
                    source, sign = Factors.of([U[:, j] for U in fit.factors])
                    atoms[i] = rebuilt(part, Atom(np.zeros(0), source, sign))
                    weights[i] = sizes[j] / abs(atoms[i].coef)
                else:
                    weights[i] = 0.0
        return Proposal(weights, atoms, active.blocks)

    def _sweep(self, fit: _Fit, active: ActiveSet) -> None:
        first = fit.value
        for _ in range(self.sweeps):
            before, old = fit.value, [U.copy() for U in fit.factors]
            for k in range(len(fit.factors)):
                fit.step(k)
            fit.extrapolate(old)
            if not before - fit.value > self.accuracy * (first - fit.value) or active.deadline.passed:
                break


class _Fit:
    """The point x = rest + the tensor of these factors, and f there."""

    def __init__(self, f: Objective, active: ActiveSet, view: View, x: Array, factors: list[Small]) -> None:
        self.f, self.space, self.view, self.factors = f, active.space, view, factors
        self.x, self.value = x, f.value(x)
        self.rest = x - self._tensor(factors)

    def _tensor(self, factors: list[Small]) -> Array:
        return self.space.put(self.view.synthesize(factors, np.ones(factors[0].shape[1])))

    def step(self, k: int) -> None:
        """One Newton step on the factors of mode k."""
        mode = self.view.mode(self.factors, k)
        slope, curvature = mode.transpose(host(self.f.value_and_grad(self.x)[1])), mode.curvature(self._curvature())
        ridge = 1e-12 * float(np.trace(curvature, axis1=1, axis2=2).mean()) or 1.0
        step = -np.asarray(np.linalg.solve(curvature + ridge * np.eye(curvature.shape[-1]), slope[..., None]))[..., 0]
        change = self.space.put(mode.apply(step))
        for gamma in 0.5 ** np.arange(20):
            x = self.x + float(gamma) * change
            value = self.f.value(x)
            if value <= self.value:
                self.factors[k] = self.factors[k] + gamma * step
                self.x, self.value = x, value
                return

    def _curvature(self) -> float | Small:
        """The diagonal of the Hessian, or the number L that bounds it."""
        hessian = self.f.hessian(self.x)
        if hessian is not None and hessian.h is not None:
            return float(hessian.h) if hessian.uniform else host(hessian.h)
        assert self.f.L is not None
        return float(self.f.L)

    def extrapolate(self, old: list[Small]) -> None:
        """Repeat the change since the factors `old` where that lowers f."""
        factors = [2.0 * U - V for U, V in zip(self.factors, old, strict=True)]
        x = self.rest + self._tensor(factors)
        value = self.f.value(x)
        if value < self.value:
            self.factors, self.x, self.value = factors, x, value


def _tensors(part: Part) -> RankOneTensor | None:
    A = unscaled(part.A)[0]
    return A if isinstance(A, RankOneTensor) else None
