"""Image denoising: every patch as a combination of few cosines.

A patch of a picture needs few atoms of an overcomplete DCT dictionary, noise needs all of them. Orthogonal matching
pursuit takes atoms until what is left of a patch is as small as the noise, ||y - D x|| <= 1.15 sigma 8; then all
overlapping patches are averaged. `encode` solves the thousands of small pursuits at once.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
SIDE, SIGMA = 8, 0.1  # of a patch, of the noise


def picture(n: int = 128) -> np.ndarray:
    """A disc, stripes, a shaded ball and a ramp, with values from 0 to 1."""
    y, x = np.mgrid[0 : 1 : n * 1j, 0 : 1 : n * 1j]
    out = 0.2 + 0.4 * x
    out[(x - 0.3) ** 2 + (y - 0.3) ** 2 < 0.04] = 0.9
    ball = 0.05 - (x - 0.7) ** 2 - (y - 0.35) ** 2
    out = np.where(ball > 0, 0.1 + 3.5 * np.sqrt(np.maximum(ball, 0)), out)
    return np.where((y > 0.65) & (x > 0.1) & (x < 0.9), 0.5 + 0.35 * np.sin(60 * x + 25 * y), out)


def cosines(n: int = 16) -> np.ndarray:
    """n x n products of cosines on a patch, as unit columns; all but the constant one have mean zero."""
    waves = np.cos(np.pi * np.outer(np.arange(SIDE) + 0.5, np.arange(n)) / n)
    waves[:, 1:] -= waves[:, 1:].mean(axis=0)
    D = np.kron(waves, waves)
    return D / np.linalg.norm(D, axis=0)


def denoise(noisy: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, float]:
    """The average of all cleaned patches, and the mean number of atoms in one."""
    patches = np.lib.stride_tricks.sliding_window_view(noisy, (SIDE, SIDE))
    codes = ps.encode(D, patches.reshape(-1, SIDE * SIDE), tol=1.15 * SIGMA * SIDE)
    clean = (codes @ D.T).reshape(patches.shape)
    total, count = np.zeros_like(noisy), np.zeros_like(noisy)
    rows, cols = patches.shape[:2]
    for i in range(SIDE):
        for j in range(SIDE):
            total[i : i + rows, j : j + cols] += clean[:, :, i, j]
            count[i : i + rows, j : j + cols] += 1
    return total / count, codes.nnz / codes.shape[0]


def psnr(estimate: np.ndarray, truth: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((estimate - truth) ** 2)))


def main() -> dict[str, float]:
    truth = picture()
    noisy = truth + SIGMA * np.random.default_rng(0).standard_normal(truth.shape)
    clean, atoms = denoise(noisy, cosines())
    pictures = {"true": truth, "noisy": noisy, "denoised": clean}
    quality = {name: psnr(pictures[name], truth) for name in ("noisy", "denoised")}
    print(f"{atoms:.1f} of {cosines().shape[1]} atoms per patch of {SIDE} x {SIDE} pixels, on average")
    for name, value in quality.items():
        print(f"{name:10} PSNR {value:5.1f} dB")
    draw(pictures, quality)
    return quality


def draw(pictures: dict[str, np.ndarray], quality: dict[str, float]) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for ax, (name, image) in zip(axes, pictures.items(), strict=True):
        ax.imshow(image, cmap="gray", vmin=0, vmax=1)
        ax.set(title=f"{name}, {quality[name]:.1f} dB" if name in quality else name, xticks=[], yticks=[])
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "denoising.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
