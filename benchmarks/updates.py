"""Oracle calls and seconds to a certified gap of 1e-6 (f(x0) - f*), each update on each problem, in one table.

`python benchmarks/updates.py [accuracy]` prints it. The first problems are those that blended and fully corrective
methods are usually compared on; the columns are this package's updates, one atom per call except for the default.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np

import pursuit as ps

LIMIT = 15.0  # seconds a run may take


def regression(seed: int, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, float]:
    """A Gaussian dictionary, a noisy combination of k columns, and its L1 norm."""
    rng = np.random.default_rng(seed)
    D, coef = rng.standard_normal((m, n)), np.zeros(n)
    coef[rng.choice(n, k, replace=False)] = rng.standard_normal(k)
    y = D @ coef
    return D, y + 0.05 * np.linalg.norm(y) / np.sqrt(m) * rng.standard_normal(m), float(np.abs(coef).sum())


def problems() -> Iterator[tuple[str, ps.Objective, object]]:
    rng = np.random.default_rng(0)
    for m, n in ((500, 700), (3000, 4000)):
        D = rng.standard_normal((m, n))
        yield f"simplex least squares {m} x {n}", ps.LeastSquares(rng.standard_normal(m)), ps.conv(ps.Dictionary(D))
    n = 30
    yield "Birkhoff 30", ps.LeastSquares(rng.random((n, n)), weights=2.0 / n**2), ps.conv(ps.Permutations(n))
    inside = rng.random(1400)
    yield "K-sparse 1400, K = 5, interior", ps.LeastSquares(2.5 * inside / inside.sum()), ps.conv(ps.KSparse(1400, 5))
    yield "K-sparse 1400, K = 40, on a face", ps.LeastSquares(rng.standard_normal(1400)), ps.conv(ps.KSparse(1400, 40))
    D, y, norm = regression(0, 500, 2000, 100)
    yield "L1 ball least squares 500 x 2000", ps.LeastSquares(y), ps.conv(0.7 * norm * ps.Dictionary(D, signed=True))
    D, y, norm = regression(1, 1000, 5000, 50)
    yield "L1 ball logistic 1000 x 5000", ps.Logistic(np.sign(y)), ps.conv(0.22 * norm * ps.Dictionary(D, signed=True))
    D, y, _ = regression(3, 500, 2000, 30)
    yield "span least squares 500 x 2000", ps.LeastSquares(y), ps.lin(ps.Dictionary(D))
    yield from others()


def others() -> Iterator[tuple[str, ps.Objective, object]]:
    """Matrices, groups, cones, and designs with correlated columns."""
    rng = np.random.default_rng(1)
    L, R = rng.standard_normal((100, 5)), rng.standard_normal((100, 5))
    M, seen = L @ R.T, rng.random((100, 100)) < 0.3
    A = ps.RankOne((100, 100)).at(*np.nonzero(seen))
    yield "nuclear ball 100 x 100, 30 % seen", ps.LeastSquares(M[seen]), ps.conv(0.8 * np.linalg.norm(M, "nuc") * A)
    S = L @ L.T / np.trace(L @ L.T) + 0.01 * (M + M.T) / np.trace(L @ L.T)
    yield "spectrahedron 100", ps.LeastSquares(S), ps.conv(ps.Spectrahedron(100))
    X, beta = rng.standard_normal((200, 1000)), np.repeat(rng.standard_normal(100) * (rng.random(100) < 0.1), 10)
    radius = 0.6 * np.sqrt(10) * np.abs(beta[::10]).sum()
    groups = ps.Groups(np.arange(1000) // 10).through(X)
    yield "group lasso 200 x 1000", ps.LeastSquares(X @ beta + rng.standard_normal(200)), ps.conv(radius * groups)
    D, y, norm = regression(4, 300, 1000, 20)
    D = np.cumsum(D, axis=1) / np.sqrt(np.arange(1, 1001))  # neighbours are nearly parallel
    yield "L1 ball, neighbours correlated", ps.LeastSquares(y), ps.conv(0.5 * norm * ps.Dictionary(D, signed=True))
    D, y, _ = regression(2, 200, 100, 20)
    yield "cone least squares 200 x 100", ps.LeastSquares(y), ps.cone(ps.Dictionary(D), rho=1e3)
    D = D * np.logspace(0, -2, 100)
    yield "cone, columns of 1 to 0.01", ps.LeastSquares(y), ps.cone(ps.Dictionary(D), rho=1e4)
    D, y, _ = regression(5, 200, 100, 20)
    yield "span logistic 200 x 100", ps.Logistic(np.sign(y)), ps.lin(ps.Dictionary(D))


UPDATES = {
    "default": (None, ps.Exact()),
    "one atom": (ps.FullyCorrective(), ps.Exact()),
    "lazy blended": (ps.BlendedPairwise(), ps.Lazy()),
    "pairwise": (ps.Pairwise(), ps.Exact()),
    "away": (ps.Away(), ps.Exact()),
}


def measure(f: ps.Objective, domain: object, update: object, oracle: object, goal: ps.Stop) -> str:
    began = time.process_time()
    try:
        r = ps.minimize(f, domain, update, oracle=oracle, stop=goal)
    except ValueError:  # the update does not serve this domain
        return "-"
    mark = "" if r.status in (ps.Status.GAP, ps.Status.VALUE, ps.Status.STATIONARY) else "*"
    return f"{r.oracle_calls}{mark} ({time.process_time() - began:.2f} s)"


def main(accuracy: float) -> None:
    print(f"{'problem':34}" + "".join(f"{name:>18}" for name in UPDATES))
    for name, f, domain in problems():
        best = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-10, iterations=3000, seconds=LIMIT))
        gap = accuracy * (float(best.trace.value[0]) - best.lower)
        span = repr(domain).startswith("lin")
        value = best.lower + gap if span else None
        goal = ps.Stop(rgap=None, gap=None if span else gap, value=value, iterations=20_000, seconds=LIMIT)
        cells = [measure(f, domain, update, oracle, goal) for update, oracle in UPDATES.values()]
        print(f"{name:34}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    print(f"\ncalls (processor seconds); *: stalled or out of time ({LIMIT:g} s); -: not for this domain")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1e-6)
