"""Later pursuits over a span: blended and accelerated matching pursuit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import check_seed, number, require, use_python_numbers
from pursuit.arrays import Small, Space, host
from pursuit.atoms.base import Atoms, as_atom
from pursuit.atoms.combinations import unscaled
from pursuit.atoms.matrices import RankOne
from pursuit.atoms.tensors import RankOneTensor
from pursuit.atoms.vectors import Ball
from pursuit.domains import Domain, Part
from pursuit.objectives import Objective
from pursuit.state import Stateful
from pursuit.steps import Length, LineSearch, Move, ShortStep
from pursuit.updates.base import Advance, Now, Update, single


def _span(domain: Domain, update: object) -> Part:
    part = single(domain, update)
    if not part.signless:
        raise ValueError(
            f"{type(update).__name__} is a pursuit over a span; over {part!r} use FullyCorrective or Away."
        )
    return part


@dataclass(frozen=True)
class BlendedPursuit(Update):
    """Blended matching pursuit (Combettes and Pokutta, 2019), to be run with `oracle=Lazy(K=5)`.

    While the oracle answers with an active atom, it makes a gradient step on the weights of S; when the oracle names a
    new atom, a matching-pursuit step. Both use an exact line search, or a short step where f has no Hessian.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> D = np.random.default_rng(0).standard_normal((30, 60))
    >>> f, domain = ps.LeastSquares(D @ np.ones(60)), ps.lin(ps.Dictionary(D))
    >>> stop = ps.Stop(value=1e-6)
    >>> blended = ps.minimize(f, domain, ps.BlendedPursuit(), oracle=ps.Lazy(K=5), stop=stop)
    >>> blended.oracle_calls < ps.minimize(f, domain, ps.Plain(ps.LineSearch()), stop=stop).oracle_calls
    True
    """

    cites: ClassVar[tuple[str, ...]] = ("combettes2019blended",)
    blends = True

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        part = _span(domain, self)
        step = LineSearch() if f.has_hessian else ShortStep()
        return _Blending(part, step.begin(f, domain, space))


@dataclass(eq=False)
class _Blending(Stateful):
    """The steps of one run."""

    part: Part
    length: Length

    def __call__(self, now: Now, active: ActiveSet) -> None:
        answer = now.answers[0]
        if answer.calls:
            d = self.part.toward(active, answer, answer.level)
            gamma = self.length(Move(now.iteration, active.x, now.value, d.vector, d.slope, d.reach, answer.delta))
            d.move(gamma)
            active.x = active.x + gamma * d.vector
            return
        q = active.analyze(now.grad)
        vector = active.synthesize(-q)
        gamma = self.length(Move(now.iteration, active.x, now.value, vector, -float(q @ q), math.inf, answer.delta))
        active.weights = active.weights - gamma * q
        active.refresh()


@dataclass(frozen=True)
class AcceleratedPursuit(Update):
    r"""Accelerated matching pursuit (Locatello et al., 2018): a greedy sequence x and a random one v.

    With unit atoms z, :math:`P = (E zz^\top)^+` for a random atom and :math:`\nu = \max_z \|z\|_P^2`: from
    :math:`\alpha^2 L \nu = \beta + \alpha`, :math:`\beta \leftarrow \beta + \alpha`, :math:`\tau = \alpha/\beta`
    and :math:`y = (1-\tau) x + \tau v`, the greedy atom gives :math:`x = y - \langle g(y), z\rangle z / L`, a random
    one :math:`v \leftarrow v - \alpha \langle g(y), \tilde z\rangle \tilde z`. In expectation
    :math:`f(x_t) - f^\star \le 2 L \nu \|x_0 - x^\star\|_P^2 / (t+1)^2`. The run's states are the points y, where
    gradients are taken; f may increase.

    Parameters
    ----------
    nu : float, optional
        None: computed, for sets that can list their atoms; the dimension for the sphere, `RankOne` and `RankOneTensor`,
        whose random atoms have no preferred direction.
    seed : int
        The seed of the random atoms.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> r = ps.minimize(f, domain, ps.AcceleratedPursuit(), stop=ps.Stop(value=1e-9))
    >>> r.x.round(3), r.update.seed
    (array([3., 1.]), 0)
    """

    cites: ClassVar[tuple[str, ...]] = ("locatello2018matching",)
    nu: float | None = None
    seed: int = 0
    descends = False

    def __post_init__(self) -> None:
        valid = self.nu is None or 0 < number(self.nu) < math.inf
        require(valid, "nu", self.nu, "a positive number, or None to have it computed")
        check_seed(self.seed)
        use_python_numbers(self)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        part = _span(domain, self)
        if f.L is None:
            raise ValueError(
                "AcceleratedPursuit needs the smoothness of f, which is not known; give Smooth(..., L=...)."
            )
        asked = part.asked
        scale = f.L * (self.nu if self.nu is not None else leverage(asked, space))
        return _Accelerated(asked, f.L, scale, np.random.default_rng(self.seed))


@dataclass(eq=False)
class _Accelerated(Stateful):
    """The two sequences of one run; `scale` is L nu."""

    asked: Atoms
    L: float
    scale: float
    rng: np.random.Generator
    _alpha: float = field(init=False)
    _beta: float = field(init=False)
    _momentum: Small = field(default_factory=lambda: np.zeros(0), init=False)
    """The weights of v."""

    def __post_init__(self) -> None:
        self._alpha = self._beta = 1.0 / self.scale

    def __call__(self, now: Now, active: ActiveSet) -> None:
        space = active.space
        z, random = now.answers[0].atoms[0], as_atom(self.asked.sample(self.rng))
        places = [active.enter(atom) for atom in (z, random)]
        y = active.weights
        greedy = y.copy()  # the weights of x
        v = np.append(self._momentum, y[len(self._momentum) :])  # v_0 = x_0, also for a user's start
        rates = 1.0 / self.L, self._alpha
        for weights, atom, (i, sign), rate in zip((greedy, v), (z, random), places, rates, strict=True):
            weights[i] -= sign * rate * atom.dot(space, now.grad) / atom.norm(space) ** 2
        self._momentum = v
        self._alpha = (1.0 + math.sqrt(1.0 + 4.0 * self.scale * self._beta)) / (2.0 * self.scale)
        self._beta += self._alpha
        active.weights = greedy + (self._alpha / self._beta) * (v - greedy)
        active.refresh()


def leverage(A: Atoms, space: Space) -> float:
    """nu = max_z ||z||_P^2 with P = (E zz')^+ over unit atoms: of listed ones the largest leverage score times their
    number; the dimension where P is a multiple of the identity, as for an orthonormal basis."""
    if A.size is None:
        base = unscaled(A)[0]
        sphere = isinstance(base, Ball) and base.p == 2
        if not (sphere or (isinstance(base, RankOne | RankOneTensor) and not base.view.observed)):
            raise TypeError(f"{A!r} cannot list its atoms, so nu is not known; give AcceleratedPursuit(nu=...).")
        return float(space.size)
    rows: Any = np.stack([host(A.atom(i).dense(space)).reshape(-1) for i in range(_half(A))])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    kept = left[:, values > 1e-10 * values[0]]
    scores: Small = (kept * kept).sum(axis=1)
    return float(len(rows) * scores.max())


def _half(A: Atoms) -> int:
    """The number of atoms without their negatives, which a symmetric set lists last."""
    size = A.size or 0
    return size // 2 if A.symmetric else size
