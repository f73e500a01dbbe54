"""Optimal design: where to measure, and how often, to learn a quadratic response surface best.

A design gives a share w_i of all runs to each of 441 settings of two factors a and b, where the response is linear in
phi = (1, a, b, ab, a^2, b^2). Its information matrix is M(w) = sum_i w_i phi_i phi_i'; the D-optimal design maximises
log det M over the simplex, and needs few settings. f = -log det M is infinite where M is singular, so the run begins at
the uniform design. The Frank-Wolfe gap has a meaning here: it is the largest variance of a prediction, phi' M^-1 phi,
minus 6, the number of coefficients, and 0 at the optimum: the equivalence theorem of Kiefer and Wolfowitz.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

SIDE = np.linspace(-1, 1, 21)
A, B = np.meshgrid(SIDE, SIDE)
PHI = np.stack([np.ones_like(A), A, B, A * B, A**2, B**2], axis=-1).reshape(A.size, -1)


def value(w: np.ndarray) -> float:
    sign, logarithm = np.linalg.slogdet(PHI.T @ (w[:, None] * PHI))
    return -float(logarithm) if sign > 0 else np.inf


def variance(w: np.ndarray) -> np.ndarray:
    """The variance of the predictions at all settings, for one run in all and noise of variance 1."""
    return np.einsum("ij,ji->i", PHI, np.linalg.solve(PHI.T @ (w[:, None] * PHI), PHI.T))


def main() -> dict[str, float]:
    f, uniform = ps.Smooth(value, lambda w: -variance(w)), np.full(A.size, 1 / A.size)
    stop = ps.Stop(gap=1e-6, rgap=None)
    r = ps.minimize(f, ps.conv(ps.Simplex(A.size)), ps.FullyCorrective(), start=uniform, stop=stop)
    print(f"{r.oracle_calls} oracle calls, certified gap {r.gap:.1e}; the settings:")
    for i in np.flatnonzero(r.x):
        print(f"  a = {A.flat[i]:4.1f}, b = {B.flat[i]:4.1f}: {r.x[i]:6.2%} of the runs")
    more = float(np.exp((value(uniform) - r.value) / PHI.shape[1]))
    print(f"the uniform design needs {more:.2f} times as many runs for the same precision")
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
    for ax, name, w in ((axes[0], "uniform", uniform), (axes[1], "D-optimal", r.x)):
        filled = ax.contourf(A, B, variance(w).reshape(A.shape), np.arange(2, 23), cmap="viridis_r")
        ax.scatter(A, B, 2000 * w, color="C3")
        ax.set(title=f"{name}: variance up to {variance(w).max():.1f}", xlabel="factor a", aspect="equal")
        ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    axes[0].set_ylabel("factor b")
    figure.colorbar(filled, ax=axes, label="variance of the prediction", ticks=range(2, 23, 4))
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/design.png", dpi=150)
    plt.close(figure)
    return {"corner": float(r.x[0]), "centre": float(r.x[A.size // 2]), "runs": more}


if __name__ == "__main__":
    main()
