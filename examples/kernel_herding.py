"""Kernel herding: a few weighted points that integrate as well as many random ones.

In the Hilbert space of a kernel k, a distribution p on points u_1, ..., u_N is the mean element sum_i p_i k(u_i, .),
and the distance between two is a worst-case integration error. Minimising the squared distance over the simplex with
Frank-Wolfe is kernel herding. An element is kept as its coefficients, so H is R^N with the metric K = (k(u_i, u_j)):
`ShortStep(metric=K)` and `NormCorrective(metric=K)` work in that norm, where f is 1-smooth (L = 1), while in the
Euclidean norm the smoothness would be the largest eigenvalue of K.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")


def problem(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of two clusters in the plane, the uniform distribution on them, and a Gaussian kernel matrix."""
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal([-1, 0], 0.5, (n // 2, 2)), rng.normal([1, 0.5], [0.3, 0.8], (n - n // 2, 2))])
    squares = np.sum((points[:, None] - points[None]) ** 2, axis=2)
    return points, np.full(n, 1.0 / n), np.exp(-squares / 0.5)


def herd(K: np.ndarray, p: np.ndarray, update, atoms: int) -> ps.Result:
    """argmin over the simplex of the squared kernel distance to p, with at most so many points."""
    f = ps.Quadratic(K, -K @ p)
    return ps.minimize(f, ps.conv(ps.Simplex(len(p))), update, stop=ps.Stop(atoms=atoms, rgap=None, iterations=2000))


def distance(K: np.ndarray, p: np.ndarray, x: np.ndarray) -> float:
    return float(np.sqrt(max((x - p) @ K @ (x - p), 0.0)))


def main() -> dict[str, list[float]]:
    points, p, K = problem()
    rng = np.random.default_rng(1)
    sizes = [2, 4, 8, 16, 32]
    methods = {
        "Frank-Wolfe, short step": ps.Plain(ps.ShortStep(L=1.0, metric=K)),
        "norm-corrective": ps.NormCorrective(L=1.0, metric=K),
    }
    errors = {name: [distance(K, p, herd(K, p, update, k).x) for k in sizes] for name, update in methods.items()}
    draws = [[distance(K, p, rng.multinomial(k, p) / k) for _ in range(50)] for k in sizes]
    errors["random sample"] = [float(np.mean(d)) for d in draws]
    print(f"{'points':26}" + "".join(f"{k:10}" for k in sizes))
    for name, values in errors.items():
        print(f"{name:26}" + "".join(f"{v:10.4f}" for v in values))
    draw(points, herd(K, p, methods["norm-corrective"], 16), sizes, errors)
    return errors


def draw(points: np.ndarray, result: ps.Result, sizes: list[int], errors: dict[str, list[float]]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.scatter(*points.T, s=6, color="0.75")
    chosen = [a.source for a in result.atoms]
    left.scatter(*points[chosen].T, s=600 * result.weights, facecolors="none", edgecolors="C3", linewidths=1.5)
    left.set(title=f"{len(chosen)} weighted points for {len(points)}", aspect="equal")
    for name, values in errors.items():
        right.loglog(sizes, values, marker="o", label=name)
    right.set(title="worst-case integration error", xlabel="points", ylabel="distance in the kernel's space")
    right.set_xticks(sizes, [str(k) for k in sizes])
    right.set_yticks([0.05, 0.1, 0.2], ["0.05", "0.1", "0.2"])
    right.minorticks_off()
    right.grid(alpha=0.3)
    right.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "kernel_herding.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
