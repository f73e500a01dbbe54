"""Which point is which: the same shape twice, turned, shuffled and noisy, matched by its distances alone.

C and K have the distances between the points of either copy. The Gromov-Wasserstein distance asks for a permutation X
that minimises the sum over pairs of (C_ij - K_kl)^2 X_ik X_jl, which is a constant minus 2 <C X K, X>. This is
quadratic assignment: f is not convex, so a run over the hull of all permutations ends at a stationary point, and says
so. No lower bound is claimed; the Frank-Wolfe gap is reported as `stationarity`. Other starts find other such points.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

N = 40


def copies(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points on a curve, the same turned and shuffled with noise, and the permutation that was used."""
    t = np.sort(rng.uniform(0, 2 * np.pi, N))
    points = np.stack([np.cos(t) + 0.3 * np.cos(2 * t), np.sin(t) + 0.2 * np.sin(3 * t + 1)], axis=1)
    order, angle = rng.permutation(N), 2.0
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points, (points @ turn.T)[order] + 0.01 * rng.standard_normal((N, 2)), order


def distances(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - points, axis=2)


def main() -> dict[str, float]:
    points, others, order = copies(np.random.default_rng(0))
    C, K = distances(points), distances(others)
    squares = float((C**2).sum() + (K**2).sum())
    f = ps.Smooth(lambda X: squares - 2 * float((C @ X @ K * X).sum()), lambda X: -4 * C @ X @ K, convex=False)
    runs, matched = [], []
    for seed in range(8):
        start = [1.0], [ps.Permutations(N).sample(np.random.default_rng(seed))]
        r = ps.minimize(
            f, ps.conv(ps.Permutations(N)), ps.Pairwise(), start=start, stop=ps.Stop(rgap=1e-6, iterations=500)
        )
        runs.append(r)
        matched.append(float((r.x.argmax(axis=0) == order).mean()))
        print(f"start {seed}: f = {r.value:8.3f}, stationarity {r.stationarity:.1e}, {matched[-1]:4.0%} matched")
    best = int(np.argmin([r.value for r in runs]))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for ax, shown, colours in ((axes[0], points, np.arange(N)), (axes[1], others, runs[best].x.argmax(axis=0))):
        ax.scatter(*shown.T, c=colours, cmap="twilight", s=60)
        ax.set(xticks=[], yticks=[], aspect="equal")
    axes[0].set_title("the points")
    axes[1].set_title(f"turned and shuffled: {matched[best]:.0%} found by distances alone")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/assignment.png", dpi=150)
    plt.close(figure)
    return {"matched": matched[best], "stationarity": max(r.stationarity / abs(r.value) for r in runs)}


if __name__ == "__main__":
    main()
