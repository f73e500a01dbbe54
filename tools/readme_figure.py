"""The figure of the README: a photograph that is denoised with a dictionary learnt from itself, and certified gaps.

python tools/readme_figure.py
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

FILE = Path(__file__).resolve().parent.parent / "docs" / "_static" / "readme.png"
SIDE, SIGMA = 8, 25.0


def decibels(error: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.mean(error**2)))


def photograph() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """A picture, the same with noise, what a learnt dictionary makes of that, and how long it took."""
    picture = load_sample_image("flower.jpg")[100:356, 200:456].mean(axis=2)
    noisy = picture + SIGMA * np.random.default_rng(0).standard_normal(picture.shape)
    began = time.perf_counter()
    patches = extract_patches_2d(noisy, (SIDE, SIDE)).reshape(-1, SIDE * SIDE)
    means = patches.mean(axis=1, keepdims=True)
    tol = 1.1 * SIGMA * SIDE
    learned = ps.learn((patches - means)[::5], 256, code={"tol": tol}, sweeps=10)
    codes = ps.encode(learned.dictionary, patches - means, tol=tol)
    clean = (means + codes @ learned.dictionary.T).reshape(-1, SIDE, SIDE)
    return picture, noisy, reconstruct_from_patches_2d(clean, picture.shape), time.perf_counter() - began


def runs() -> dict[str, ps.Result]:
    """The L1 ball by six updates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 2000))
    f = ps.LeastSquares(X[:, :20] @ rng.standard_normal(20) + 0.1 * rng.standard_normal(500))
    domain = ps.conv(12.0 * ps.Dictionary(X, signed=True))
    updates = {
        "Plain(OpenLoop())": ps.Plain(ps.OpenLoop()), "Plain(LineSearch())": ps.Plain(ps.LineSearch()),
        "Away()": ps.Away(), "Pairwise()": ps.Pairwise(), "FullyCorrective()": ps.FullyCorrective(), "default": None,
    }  # fmt: skip
    stop = ps.Stop(rgap=1e-8, iterations=2000)
    return {name: ps.minimize(f, domain, update, stop=stop) for name, update in updates.items()}


def main() -> None:
    """Draw it."""
    picture, noisy, clean, seconds = photograph()
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained", width_ratios=[1, 1, 1.25])
    for ax, image, title in (
        (axes[0], noisy, f"with noise: {decibels(noisy - picture):.1f} dB"),
        (axes[1], clean, f"dictionary learnt from it: {decibels(clean - picture):.1f} dB"),
    ):
        ax.imshow(np.clip(image, 0, 255), cmap="gray", vmin=0, vmax=255)
        ax.set(title=title, xticks=[], yticks=[])
    found = runs()
    ps.plots.plot_traces({name: r.trace for name, r in found.items()}, ax=axes[2])
    axes[2].lines[-1].set(color="black", linewidth=2.5, linestyle="-")
    axes[2].legend(frameon=False, fontsize="small", loc="lower right")
    axes[2].set(title="proved distance to the optimum, L1 ball")
    axes[2].set(xlabel="questions to the atoms", ylabel="certified gap")
    FILE.parent.mkdir(exist_ok=True)
    figure.savefig(FILE, dpi=110)
    print(f"{FILE.name}: {decibels(clean - picture):.2f} dB in {seconds:.1f} s, {found['default'].oracle_calls} calls")


if __name__ == "__main__":
    main()
