"""Tuned radii: two hyper-parameters found by the gradient of the validation error.

A response depends on few features of each of two blocks, and each block has an L1 ball of its own: least squares over
`conv(c1 * A) + conv(c2 * B)`. `differentiate(result)` says how the solution, and so the error on other data, changes
with both radii, from the solution alone. L-BFGS then needs a dozen solutions where a grid needs hundreds, and ends
lower.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize as scipy_minimize

import pursuit as ps


def data(seed: int = 1) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]:
    """Two blocks of features and a response, to train and to validate."""
    rng, n, p = np.random.default_rng(seed), 240, 100
    blocks = rng.standard_normal((n, p)), rng.standard_normal((n, p)) * 2.0
    y = blocks[0][:, :6] @ np.full(6, 0.8) + blocks[1][:, :3] @ np.full(3, 0.3) + rng.standard_normal(n)
    return (blocks[0][:120], blocks[1][:120], y[:120]), (blocks[0][120:], blocks[1][120:], y[120:])


def validated(log_radii: np.ndarray, train: tuple, validate: tuple, slope: bool = True) -> tuple[float, np.ndarray]:
    """The mean squared error on the validation data, and its gradient in the logarithms of the radii."""
    (A, B, y), (VA, VB, vy), radii = train, validate, np.exp(log_radii)
    domain = ps.conv(radii[0] * ps.Dictionary(A, signed=True)) + ps.conv(radii[1] * ps.Dictionary(B, signed=True))
    r = ps.minimize(ps.LeastSquares(y), domain, stop=ps.Stop(rgap=1e-12))
    residual = VA @ r.coef[0] + VB @ r.coef[1] - vy
    if not slope:
        return float(np.mean(residual**2)), np.zeros(2)
    d = ps.differentiate(r)
    changes = [d.jvp(radius=rates).coef for rates in np.diag(radii)]
    return float(np.mean(residual**2)), np.array([2 * np.mean(residual * (VA @ a + VB @ b)) for a, b in changes])


def main() -> dict[str, float]:
    (train, validate), visited = data(), []

    def error(log_radii: np.ndarray) -> tuple[float, np.ndarray]:
        value, grad = validated(log_radii, train, validate)
        visited.append((*log_radii, value))
        return value, grad

    box = np.log([(0.3, 12.0), (0.1, 4.0)])
    found = scipy_minimize(error, np.log([1.0, 0.3]), jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": 20})
    axes = [np.linspace(*ends, 16) for ends in box]
    grid = np.array([[validated(np.array([a, b]), train, validate, slope=False)[0] for b in axes[1]] for a in axes[0]])
    print(f"by gradient: radii {np.exp(found.x).round(2)}, error {found.fun:.4f}, {len(visited)} solutions")
    print(f"on a grid: error {grid.min():.4f}, {grid.size} solutions")
    figure, ax = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
    levels = grid.min() + np.geomspace(0.005, grid.max() - grid.min(), 14)
    ax.contour(*np.exp(axes), grid.T, levels=levels, colors="0.7", linewidths=0.8)
    path = np.exp(np.array(visited)[:, :2])
    ax.plot(*path.T, ".-", color="tab:blue", label="solutions asked for by L-BFGS")
    ax.plot(*path[0], "o", color="white", markeredgecolor="tab:blue", label="start")
    ax.plot(*np.exp(found.x), "*", markersize=14, color="tab:orange", label="found")
    ax.set(xscale="log", yscale="log", xlabel="radius of the first block", ylabel="radius of the second block")
    ax.set_xticks([0.3, 1, 3, 10], labels=["0.3", "1", "3", "10"])
    ax.set_yticks([0.1, 0.3, 1, 3], labels=["0.1", "0.3", "1", "3"])
    ax.minorticks_off()
    ax.set_title("validation error, and the way down")
    ax.legend(frameon=False, loc="lower right")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/tuned_radii.png", dpi=150)
    plt.close(figure)
    return {"by gradient": float(found.fun), "on a grid": float(grid.min()), "solutions": len(visited)}


if __name__ == "__main__":
    main()
