"""Peak memory of matrix completion: a million observed entries of a 50,000 x 20,000 matrix of rank 20.

The dense matrix would take 8 GB; the aim is a peak below 1.5 GB for the whole process.

    python benchmarks/memory.py
"""

from __future__ import annotations

import resource
import time

import numpy as np

import pursuit as ps


def problem(m=50_000, n=20_000, entries=1_000_000, rank=20, seed=0):
    """Noisy entries of a random matrix of this rank, every row and column seen at least once."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    once = np.concatenate([np.arange(m) * n + rng.integers(n, size=m), rng.integers(m, size=n) * n + np.arange(n)])
    places = np.unique(np.concatenate([rng.integers(m * n, size=entries - m - n), once]))
    rows, cols = places // n, places % n
    y = np.einsum("ij,ij->i", U[rows], V[cols]) + rng.standard_normal(len(rows))
    return rows, cols, y, float(np.linalg.norm(U) * np.linalg.norm(V))


def main():
    m, n, rank = 50_000, 20_000, 20
    rows, cols, y, size = problem(m, n, 1_000_000, rank)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{len(y)} entries of a {m} x {n} matrix of rank {rank}; peak after making the data {before:.2f} GB")
    began = time.perf_counter()

    def watch(state):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{state.iteration:3d}  f = {state.value:.6g}  gap = {state.gap:.3g}  atoms = {len(state.active)}"
            f"  {time.perf_counter() - began:.1f} s  peak {peak:.2f} GB"
        )

    ball = 0.15 * size * ps.RankOne((m, n)).at(rows, cols)
    r = ps.minimize(ps.LeastSquares(y), ps.conv(ball), stop=ps.Stop(rgap=1e-2, iterations=5), callback=watch)
    print(r)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB, rank {len(r.coef.s)}")


if __name__ == "__main__":
    main()
