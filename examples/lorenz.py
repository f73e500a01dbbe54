"""Sparse discovery of dynamics: the equations of Lorenz, exactly.

From a trajectory and its derivatives, the right-hand sides of three differential equations are looked for among all 56
monomials of degree up to 5. Seven terms are true. Their columns are nearly parallel (the trajectory stays near a
surface), so that greedy selection takes wrong terms; `best` finds the best terms of each size, with a proof that no
others are better. The number of terms of each equation is where the value stops falling.
"""

from itertools import combinations_with_replacement
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.integrate import solve_ivp

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
NAMES = "xyz"


def lorenz(t: float, s: np.ndarray) -> list[float]:
    x, y, z = s
    return [10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z]


def library(S: np.ndarray, degree: int) -> tuple[np.ndarray, list[str]]:
    """All monomials up to a degree, and their names."""
    powers = [c for d in range(degree + 1) for c in combinations_with_replacement(range(3), d)]
    columns = np.stack([np.prod(S[:, list(c)], axis=1) for c in powers], axis=1)
    return columns, ["".join(NAMES[i] for i in c) or "1" for c in powers]


def trajectory(noise: float, seconds: float = 20.0, step: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(0.0, seconds, step)
    S = solve_ivp(lorenz, (0.0, seconds), [-8.0, 8.0, 27.0], t_eval=t, rtol=1e-10, atol=1e-10).y.T
    slopes = np.array([lorenz(0.0, s) for s in S])
    return S, slopes + noise * slopes.std(axis=0) * np.random.default_rng(0).standard_normal(slopes.shape)


def main() -> list[list[str]]:
    S, slopes = trajectory(noise=0.02)
    X, names = library(S, degree=5)
    A, found = ps.Dictionary(X), []
    _, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
    for i, ax in enumerate(axes):
        path = ps.best(ps.LeastSquares(slopes[:, i]), A, range(1, 4), stop=ps.Stop(rgap=1e-3, iterations=None))
        shares = path.value / (0.5 * slopes[:, i] @ slopes[:, i])
        size = int(np.argmax(path.value <= 1.02 * path.value[-1]))  # more terms explain noise only
        chosen = path[size].chosen
        found.append([names[j] for j in chosen])
        print(f"{NAMES[i]}' =", " ".join(f"{path[size].coef[j]:+.3f} {names[j]}" for j in chosen))
        gap = path[size].gap / path[size].value
        print(f"   proved: no other {len(chosen)} terms are better by more than {gap:.1%}")
        ax.semilogy(path.atoms, shares, "o-")
        ax.axvline(len(chosen), color="0.8", zorder=0)
        ax.set(title=f"{NAMES[i]}'", xlabel="terms")
    axes[0].set_ylabel("unexplained")
    plt.tight_layout()
    OUT.mkdir(exist_ok=True)
    plt.savefig(OUT / "lorenz.png", dpi=120)
    return found


if __name__ == "__main__":
    main()
