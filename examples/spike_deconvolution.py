"""Spike deconvolution without a grid: where exactly are the point sources?

A few spikes on a line are seen through a blur, at 64 places and with noise. The atoms are all translates of the blur,
a continuous dictionary; the oracle finds the best translate, and `Slide` then moves all spikes and weights together, as
sliding Frank-Wolfe does. On a grid of candidates the same problem needs several atoms for one spike, since none is in
the right place.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
WIDTH = 0.03
PLACES = np.array([0.11, 0.23, 0.31, 0.52, 0.6, 0.83])
HEIGHTS = np.array([1.0, 0.6, 1.3, 0.8, 1.1, 0.7])


def problem(noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, float]:
    """Sample positions, the measurement, and what half the squared noise amounts to."""
    t = np.linspace(0, 1, 64)
    clean = np.exp(-0.5 * ((t[:, None] - PLACES) / WIDTH) ** 2) @ HEIGHTS
    errors = noise * np.random.default_rng(seed).standard_normal(len(t))
    return t, clean + errors, 0.5 * float(errors @ errors)


def deconvolve(t: np.ndarray, y: np.ndarray, stop: ps.Stop) -> ps.Result:
    A = ps.Parametric(ps.families.Gaussian(t, WIDTH), [(0, 1)])
    return ps.minimize(ps.LeastSquares(y), ps.cone(A), ps.FullyCorrective(), stop=stop, refine=ps.refine.Slide())


def on_a_grid(t: np.ndarray, y: np.ndarray, stop: ps.Stop) -> ps.Result:
    family = ps.families.Gaussian(t, WIDTH)
    D = np.stack([family(np.array([c])) for c in np.linspace(0, 1, 64)], axis=1)
    return ps.minimize(ps.LeastSquares(y), ps.cone(ps.Dictionary(D)), ps.FullyCorrective(), stop=stop)


def main() -> dict[float, float]:
    worst = {}
    print(f"{'noise':>8}{'spikes':>10}{'on a grid':>12}{'largest error of a place':>28}")
    for noise in (0.0, 1e-4, 1e-3, 1e-2):
        t, y, level = problem(noise)
        stop = ps.Stop(value=max(level, 1e-16), iterations=30)
        slid, fixed = deconvolve(t, y, stop), on_a_grid(t, y, stop)
        found = np.sort(slid.coef.parameters.ravel())
        worst[noise] = float(np.abs(found[:, None] - PLACES).min(axis=0).max())
        print(f"{noise:8g}{len(slid.atoms):10}{len(fixed.atoms):12}{worst[noise]:28.2e}")
    draw(t, y, slid, fixed)
    return worst


def draw(t: np.ndarray, y: np.ndarray, slid: ps.Result, fixed: ps.Result) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", sharey=True)
    grid = np.linspace(0, 1, 64)
    spikes = {
        "atoms that slide": (slid.coef.parameters.ravel(), slid.coef.weights),
        "atoms on a grid": (grid[[a.source for a in fixed.atoms]], fixed.weights),
    }
    for ax, (name, (places, weights)) in zip(axes, spikes.items(), strict=True):
        ax.plot(t, y, ".", color="0.6", label="measured")
        ax.vlines(PLACES, 0, HEIGHTS, color="C0", linewidth=6, alpha=0.3, label="true spikes")
        ax.vlines(places, 0, weights, color="C3", linewidth=1.5)
        ax.plot(places, weights, "o", color="C3", markersize=4, label="found")
        ax.set(title=f"{name}: {len(places)} spikes", xlabel="position")
        ax.grid(alpha=0.3)
    axes[0].legend(frameon=False, loc="upper right")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "spike_deconvolution.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
