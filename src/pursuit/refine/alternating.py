"""Alternating least squares on the factors of all active rank-one tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, describe, number, use_python_numbers
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.cp import Factors, View
from pursuit.atoms.frames import Atom
from pursuit.atoms.tensors import RankOneTensor
from pursuit.domains import Domain, Part
from pursuit.metrics import Diagonal, Identity
from pursuit.objectives import Objective


@dataclass(frozen=True)
class Alternating:
    r"""Line 7 for spans and cones of `RankOneTensor`, in full or at observed entries: the factors of all active atoms
    move, one mode at a time.

    With the other modes fixed, x is linear in the factor matrix :math:`U_k`, and for an f whose Hessian is diagonal
    each row of :math:`U_k` has its own r x r system: Newton's step, which for quadratic f is alternating least squares,
    exact. The step is halved until f falls. After each sweep the change of the whole sweep is tried once more, which
    speeds up the slow convergence that alternating methods are known for.

    Parameters
    ----------
    sweeps : int
        The largest number of passes over the modes.
    accuracy : float
        Stop when a sweep lowers f by less than this fraction of the decrease in all sweeps.

    Examples
    --------
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
        if not as_int_or_nan(self.sweeps) >= 1:
            raise ValueError(
                f"sweeps is {describe(self.sweeps)}; give the number of passes over the modes, at least 1."
            )
        if not 0 <= number(self.accuracy) < 1:
            raise ValueError(f"accuracy is {describe(self.accuracy)}; give a fraction from 0 to 1.")
        use_python_numbers(self)

    @staticmethod
    def serves(f: Objective, domain: Domain) -> bool:
        """Whether spans or cones, and no hull, have rank-one tensors as atoms, and f has a diagonal Hessian or L."""
        tensors = [part for part in domain.parts if _tensors(part) is not None]
        known = f.L is not None or (f.space is not None and isinstance(f.hessian(f.space.zeros()), Diagonal))
        return known and bool(tensors) and not any(part.compact for part in tensors)

    def __call__(self, f: Objective, domain: Domain, active: ActiveSet) -> tuple[Any, ...] | None:
        if not self.serves(f, domain):
            raise TypeError(
                "Alternating serves lin(...) and cone(...) of RankOneTensor and an f with a diagonal Hessian or L; use "
                "refine.Slide() elsewhere."
            )
        weights, x = active.weights.copy(), active.x
        atoms = list(active.atoms)
        for b, part in enumerate(domain.parts):
            owned = [int(i) for i in active.support if active.blocks[i] == b]
            tensors, mine = _tensors(part), [i for i in owned if isinstance(atoms[i].source, Factors)]
            if tensors is None or not mine:
                continue
            stack = [np.stack([atoms[i].source[k] for i in mine], axis=1) for k in range(len(tensors.dims))]
            stack[0] = stack[0] * [weights[i] * atoms[i].coef for i in mine]
            factors, x = self._sweep(f, active, tensors.view, x, stack)
            sizes = np.prod([np.linalg.norm(U, axis=0) for U in factors], axis=0)
            for j, i in enumerate(mine):
                if sizes[j] > 0:
                    source, sign = Factors.of([U[:, j] for U in factors])
                    moved = part.asked.rebuild(Atom(np.zeros(0), source, sign))
                    assert moved is not None
                    atoms[i], weights[i] = moved, sizes[j] / abs(moved.coef)
                else:
                    weights[i] = 0.0
        return weights, atoms, active.blocks

    def _sweep(
        self, f: Objective, active: ActiveSet, view: View, x: Array, factors: list[Small]
    ) -> tuple[list[Small], Array]:
        space = active.space
        rest = x - space.put(view.synthesize(factors, np.ones(factors[0].shape[1])))
        first = value = f.value(x)
        for _ in range(self.sweeps):
            before, old = value, [U.copy() for U in factors]
            for k in range(len(factors)):
                x, value = self._step(f, space, view, x, value, factors, k)
            extrapolated = [2.0 * U - V for U, V in zip(factors, old, strict=True)]
            trial = rest + space.put(view.synthesize(extrapolated, np.ones(factors[0].shape[1])))
            trial_value = f.value(trial)
            if trial_value < value:
                factors, x, value = extrapolated, trial, trial_value
            if not before - value > self.accuracy * (first - value) or active.deadline.passed:
                break
        return factors, x

    @staticmethod
    def _step(
        f: Objective, space: Space, view: View, x: Array, value: float, factors: list[Small], k: int
    ) -> tuple[Array, float]:
        """One Newton step on the factors of mode k, written into `factors`; the new point and its value."""
        mode = view.mode(factors, k)
        slope, curvature = mode.transpose(host(f.value_and_grad(x)[1])), mode.curvature(_curvature(f, x))
        ridge = 1e-12 * float(np.trace(curvature, axis1=1, axis2=2).mean()) or 1.0
        step = -np.asarray(np.linalg.solve(curvature + ridge * np.eye(curvature.shape[-1]), slope[..., None]))[..., 0]
        change = space.put(mode.apply(step))
        for gamma in 0.5 ** np.arange(20):
            trial = x + float(gamma) * change
            new = f.value(trial)
            if new <= value:
                factors[k] = factors[k] + gamma * step
                return trial, new
        return x, value


def _tensors(part: Part) -> RankOneTensor | None:
    A = unscaled(part.A)[0]
    return A if isinstance(A, RankOneTensor) else None


def _curvature(f: Objective, x: Array) -> Any:
    """The diagonal of the Hessian, or the number L that bounds it."""
    hessian = f.hessian(x)
    if isinstance(hessian, Diagonal):
        return hessian.h if isinstance(hessian, Identity) else host(hessian.h)
    assert f.L is not None
    return float(f.L)
