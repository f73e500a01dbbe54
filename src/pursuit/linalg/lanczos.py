r"""The ends of the spectrum of a large symmetric map, and how far they can lie: Lanczos with full reorthogonalisation.

On M'M it is the Golub-Kahan iteration for singular values, one-sided: only the right vectors are kept.

Ritz values are bounds from inside: the largest one lies below the largest eigenvalue :math:`\lambda_1`, so no gap may
be built from it. The bound from outside comes from a start that is partly random. With orthonormal Lanczos vectors
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
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal

from pursuit._arrays import Small

MAX_STEPS = 300
"""Steps after which the bound is taken as it stands; fewer where that many vectors would take too much memory."""

MAX_NUMBERS = 1 << 26
"""Numbers that the vectors may take in memory."""

RANDOM_SHARE = 0.1
"""The size of the random part of a start, beside that of the last answer."""


@dataclass
class Memory:
    """What one run remembers between two searches: where the last one ended, its random numbers, its products."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    last: Small | None = None
    products: int = 0


@dataclass(frozen=True)
class Ends:
    """Ritz values, the largest in size first, their unit vectors as columns, and an interval for the spectrum."""

    values: Small
    vectors: Small
    lower: float
    upper: float


def ends(
    apply: Callable[[Small], Small],
    n: int,
    several: int,
    memory: Memory,
    failure: float,
    enough: Callable[[float, float, float, float], bool],
    both: bool = False,
) -> Ends:
    """The largest eigenvalues of a symmetric map of R^n (or, with `both`, the largest in size).

    `enough(smallest Ritz value, largest, lower, upper)` says when the interval [lower, upper] is narrow enough; it
    contains the spectrum but for a chance of `failure`. Without `both`, lower is -inf.

    >>> d = np.linspace(0.0, 1.0, 500)
    >>> sharp = lambda low, high, lower, upper: upper - high <= 1e-6
    >>> found = ends(lambda v: d * v, 500, several=1, memory=Memory(), failure=1e-9, enough=sharp)
    >>> bool(found.values[0] <= 1.0 <= found.upper <= found.values[0] + 1e-6), int(np.abs(found.vectors).argmax())
    (True, 499)
    """
    warm, random = memory.last, memory.rng.standard_normal(n) / math.sqrt(n)
    part = RANDOM_SHARE if warm is not None else 1.0
    b = part * random if warm is None else warm + part * random
    size = float(np.linalg.norm(b))
    chance = failure / 2 if both else failure
    bar = math.log(2.0 * n / math.pi) + 2.0 * math.log(size / (part * chance))
    krylov = _Krylov(apply, b / size)
    limit = min(n, MAX_STEPS, max(MAX_NUMBERS // n, several + 1))
    while True:
        krylov.extend(several + 1 if krylov.k == 0 else 4, limit)
        values, coordinates = eigh_tridiagonal(*krylov.tridiagonal)
        upper = _beyond(*krylov.recurrence, float(values[-1]), bar)
        lower = -_beyond(-krylov.recurrence[0], krylov.recurrence[1], -float(values[0]), bar) if both else -math.inf
        if krylov.exhausted or krylov.k >= limit or enough(float(values[0]), float(values[-1]), lower, upper):
            break
    memory.products += krylov.k
    which = np.argsort(-np.abs(values) if both else -values, kind="stable")[:several]
    vectors = krylov.basis.T @ coordinates[:, which]
    vectors /= np.linalg.norm(vectors, axis=0)
    memory.last = vectors.sum(axis=1) / math.sqrt(vectors.shape[1])
    return Ends(np.asarray(values[which], dtype=np.float64), vectors, lower, upper)


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
        for _ in range(2):  # once more takes away what rounding left
            y = y - self.basis.T @ (self.basis @ y)
        beta, scale = float(np.linalg.norm(y)), max(map(abs, self.alpha + self.beta))
        whole = self.k == len(q)  # only then is there nothing left; a tiny beta may hide what the start hardly saw
        self.exhausted = whole or beta <= 1e-14 * scale
        self.beta.append(0.0 if whole else max(beta, 1e-14 * scale))
        if not self.exhausted:
            self._vectors[self.k] = y / beta


def _beyond(alpha: Small, beta: Small, top: float, bar: float) -> float:
    """The first point of a fine grid beyond the largest Ritz value where the log of sum_j p_j^2 reaches the bar."""
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
        reached = np.flatnonzero(log_sum >= bar)
    return float(points[reached[0]]) if len(reached) else math.inf
