r"""The extreme eigenvalues of a large symmetric map, with bounds: Lanczos with full reorthogonalisation.

On M'M it is the Golub-Kahan iteration for singular values, one-sided: only the right vectors are kept.

The largest Ritz value is a lower bound on the largest eigenvalue :math:`\lambda_1`, so it certifies no gap. An upper
bound follows from a start that is partly random. With orthonormal Lanczos vectors
:math:`q_j = p_j(A) q_0`, where the polynomials follow the same three-term recurrence as the vectors, and a unit
eigenvector v of :math:`\lambda_1`, Bessel's inequality says

.. math:: 1 \ge \sum_j \langle q_j, v\rangle^2 = \langle q_0, v\rangle^2 \sum_j p_j(\lambda_1)^2 .

The sum grows with :math:`\lambda` beyond all Ritz values, so :math:`\lambda_1` lies below the point where it reaches
:math:`1/\langle q_0, v\rangle^2`. For a start :math:`b = w + c\,r/\sqrt n` with any vector w (the last eigenvector,
say) and a fresh Gaussian r, which does not depend on A, the density of :math:`\langle b, v\rangle` is at most
:math:`\sqrt{n/(2\pi)}/c`; so, but for a chance of `failure`,
:math:`\langle b, v\rangle^2 \ge \frac{\pi}{2n}(c\cdot\mathrm{failure})^2`. Unlike bounds that know the dimension only
(Kuczynski and Wozniakowski, 1992), this one sees the gaps of the spectrum and becomes exact with the Ritz value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from pursuit.arrays import Small
from pursuit.state import Stateful

MAX_STEPS = 300
"""The largest number of steps; fewer where their vectors would take too much memory."""

MAX_NUMBERS = 1 << 26
"""The largest number of entries of all vectors together."""

RANDOM_SHARE = 0.1
"""The norm of the random part of a start, relative to that of the last eigenvector."""


@dataclass(eq=False)
class Memory(Stateful):
    """The memory of one run: its random numbers, the last eigenvector, and the number of products so far."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    last: Small | None = field(default=None, init=False)
    products: int = field(default=0, init=False)


@dataclass(frozen=True)
class ExtremeEigenvalues:
    """Ritz values, the largest first, their unit vectors as columns, and an interval that contains the spectrum."""

    values: Small
    vectors: Small
    lower: float
    upper: float


class SymmetricMap(NamedTuple):
    """A symmetric map v -> apply(v) of R^n."""

    apply: Callable[[Small], Small]
    n: int


def extreme_eigenvalues(
    A: SymmetricMap,
    several: int,
    memory: Memory,
    failure: float,
    enough: Callable[[float, float, float, float], bool],
    both: bool = False,
) -> ExtremeEigenvalues:
    """The `several` largest eigenvalues of a symmetric map (with `both`, the largest in modulus).

    The interval [lower, upper] contains the spectrum with a probability of at least 1 - `failure`; the search ends when
    `enough(smallest Ritz value, largest Ritz value, lower, upper)` is true. Without `both`, lower is -inf.

    >>> d = np.linspace(0.0, 1.0, 500)
    >>> sharp = lambda low, high, lower, upper: upper - high <= 1e-6
    >>> found = extreme_eigenvalues(SymmetricMap(lambda v: d * v, 500), 1, Memory(), failure=1e-9, enough=sharp)
    >>> bool(found.values[0] <= 1.0 <= found.upper <= found.values[0] + 1e-6), int(np.abs(found.vectors).argmax())
    (True, 499)
    """
    n = A.n
    warm, random = memory.last, memory.rng.standard_normal(n) / math.sqrt(n)
    part = RANDOM_SHARE if warm is not None else 1.0
    b = part * random if warm is None else warm + part * random
    size = float(np.linalg.norm(b))
    chance = failure / 2 if both else failure
    threshold = math.log(2.0 * n / math.pi) + 2.0 * math.log(size / (part * chance))
    krylov = _Krylov(A.apply, b / size)
    limit = min(n, MAX_STEPS, max(MAX_NUMBERS // n, several + 1))
    while True:
        krylov.extend(several + 1 if krylov.k == 0 else 4, limit)
        values, coordinates = eigh_tridiagonal(*krylov.tridiagonal)
        upper = _upper_bound(*krylov.recurrence, float(values[-1]), threshold)
        lower = (
            -_upper_bound(-krylov.recurrence[0], krylov.recurrence[1], -float(values[0]), threshold)
            if both
            else -math.inf
        )
        if krylov.exhausted or krylov.k >= limit or enough(float(values[0]), float(values[-1]), lower, upper):
            break
    memory.products += krylov.k
    which = np.argsort(-np.abs(values) if both else -values, kind="stable")[:several]
    vectors = krylov.basis.T @ coordinates[:, which]
    vectors /= np.linalg.norm(vectors, axis=0)
    memory.last = vectors.sum(axis=1) / math.sqrt(vectors.shape[1])
    return ExtremeEigenvalues(np.asarray(values[which], dtype=np.float64), vectors, lower, upper)


class _Krylov:
    """An orthonormal basis of span(b, Ab, A^2 b, ...), and A in it: diagonal alpha, off-diagonal beta."""

    def __init__(self, apply: Callable[[Small], Small], start: Small) -> None:
        self.apply, self.k, self.exhausted = apply, 0, False
        self._vectors = np.empty((8, len(start)))
        self._vectors[0] = start
        self.alpha: list[float] = []
        self.beta: list[float] = []

    @property
    def basis(self) -> Small:
        return self._vectors[: self.k]

    @property
    def tridiagonal(self) -> tuple[Small, Small]:
        return np.array(self.alpha), np.array(self.beta[:-1])

    @property
    def recurrence(self) -> tuple[Small, Small]:
        return np.array(self.alpha), np.array(self.beta)

    def extend(self, steps: int, limit: int) -> None:
        for _ in range(steps):
            if self.exhausted or self.k >= limit:
                return
            self._step()

    def _step(self) -> None:
        if self.k + 1 == len(self._vectors):
            self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)])
        q = self._vectors[self.k]
        y = self.apply(q)
        self.k += 1
        self.alpha.append(float(q @ y))
        for _ in range(2):  # twice: the second time removes the rounding errors of the first
            y = y - self.basis.T @ (self.basis @ y)
        beta, scale = float(np.linalg.norm(y)), max(map(abs, self.alpha + self.beta))
        complete = self.k == len(q)  # else a tiny beta may only say that b is nearly orthogonal to other eigenvectors
        self.exhausted = complete or beta <= 1e-14 * scale
        self.beta.append(0.0 if complete else max(beta, 1e-14 * scale))
        if not self.exhausted:
            self._vectors[self.k] = y / beta


def _upper_bound(alpha: Small, beta: Small, top: float, threshold: float) -> float:
    """The first point of a fine grid above the largest Ritz value where log(sum_j p_j^2) reaches the threshold."""
    scale = max(float(np.abs(alpha).max()), float(beta.max()))
    if scale == 0.0:
        return 0.0
    points: Any = top + scale * np.logspace(-14, 2, 129)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_p, log_sum, pivot = np.zeros_like(points), np.zeros_like(points), points - alpha[0]
        for j, b in enumerate(beta):
            log_p = log_p + np.log(pivot) - np.log(b)  # p_{j+1} / p_j = pivot / beta, all positive beyond the top
            log_sum = np.logaddexp(log_sum, 2.0 * log_p)
            if j + 1 < len(alpha):
                pivot = points - alpha[j + 1] - b * b / pivot
        reached = np.flatnonzero(log_sum >= threshold)
    return float(points[reached[0]]) if len(reached) else math.inf
