"""Denoising and inpainting: a picture is restored with atoms that are learnt from what is left of it.

A patch of 8 x 8 pixels needs few atoms of a dictionary that suits the picture; noise would need all of them. `learn`
finds such a dictionary from the damaged patches. Missing pixels have weight 0, there and in `encode`, which takes atoms
until the residual of a patch is as small as its noise: sigma times the root of the number of known pixels. The codes
say what the missing pixels are. Every pixel is averaged over all patches that have it, of 62,001 in the picture.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_sample_image

import pursuit as ps

SIDE = 8  # of a patch


def restore(picture: np.ndarray, known: np.ndarray, sigma: float) -> tuple[np.ndarray, ps.Learned]:
    """The picture without noise of size sigma and with all pixels, and the dictionary."""
    W = sliding_window_view(known.astype(float), (SIDE, SIDE)).reshape(-1, SIDE**2)
    Y = sliding_window_view(picture, (SIDE, SIDE)).reshape(-1, SIDE**2)
    means = np.average(Y, axis=1, weights=W)[:, None]
    tol, some = 1.1 * sigma * np.sqrt(W.sum(axis=1)), np.random.default_rng(0).choice(len(Y), 15_000, replace=False)
    code = {"atoms": 5, "tol": float(tol.mean())}
    learned = ps.learn(Y[some] - means[some], 126, code=code, weights=W[some], sweeps=8)
    codes = ps.encode(learned.dictionary, Y - means, atoms=5, tol=tol, weights=W)
    clean = (codes @ learned.dictionary.T + means).reshape(-1, picture.shape[1] - SIDE + 1, SIDE, SIDE)
    total = np.zeros((2, *picture.shape))  # at each pixel: the sum of all patches, and their number
    for i, j in np.ndindex(SIDE, SIDE):
        total[:, i : i + clean.shape[0], j : j + clean.shape[1]] += clean[:, :, i, j], np.ones(clean.shape[:2])
    return total[0] / total[1], learned


def main() -> dict[str, float]:
    rng, truth = np.random.default_rng(0), load_sample_image("flower.jpg")[90:346, 170:426].mean(axis=2) / 255
    quality, (figure, axes) = {}, plt.subplots(2, 3, figsize=(10.6, 6.6), layout="constrained")
    for row, name, sigma, missing in ((axes[0], "denoised", 0.08, 0.0), (axes[1], "inpainted", 0.02, 0.5)):
        known, noise = rng.random(truth.shape) >= missing, sigma * rng.standard_normal(truth.shape)
        clean, learned = restore(np.where(known, truth + noise, 0.0), known, sigma)
        quality[name] = float(-10 * np.log10(np.mean((clean - truth) ** 2)))
        damage = f"noise {sigma}" + ", half of the pixels missing" * (missing > 0)
        print(f"{damage}: {name}, PSNR {quality[name]:.1f} dB")
        texts, pictures = (damage, f"{name}: {quality[name]:.1f} dB"), (np.where(known, truth + noise, 1.0), clean)
        for ax, text, image in zip(row, texts, pictures, strict=False):
            ax.imshow(image, cmap="gray", vmin=0, vmax=1)
            ax.set(title=text, xticks=[], yticks=[])
        ps.plots.plot_atoms(learned, shape=(SIDE, SIDE), ax=row[2]).set_title("the dictionary")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/denoising.png", dpi=150)
    plt.close(figure)
    return quality


if __name__ == "__main__":
    main()
