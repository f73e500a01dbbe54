"""CLEAN: point sources in a picture of a radio telescope, whose beam has rings that hide the faint ones.

Atoms are all translates of the beam. CLEAN is matching pursuit over them with small steps; here every source that is
found is fitted together with those it overlaps (non-negative OMP), and the correlations change only under the beam.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

OUT = Path("out")


def telescope(size: int = 31) -> np.ndarray:
    """A beam: the transform of what a few antennas see as the earth turns."""
    rng = np.random.default_rng(1)
    u = rng.uniform(-0.25, 0.25, (40, 2))
    t = np.arange(size) - size // 2
    waves = [np.cos(2 * np.pi * np.add.outer(a * t, b * t)) for a, b in u]
    return np.mean(waves, axis=0) * np.exp(-np.add.outer(t**2, t**2) / 200)


def main() -> int:
    rng = np.random.default_rng(0)
    beam, shape = telescope(), (160, 200)
    A = ps.Convolutional([beam], shape=shape)
    flux = 10 ** rng.uniform(-1, 1, 60)
    place = np.stack([rng.integers(0, n - len(beam) + 1, 60) for n in shape], axis=1)
    sources = ps.Events(np.zeros(60, int), place, flux, np.zeros(60))
    picture = A.synthesize(sources) + 0.005 * rng.standard_normal(shape)
    found = ps.encode(A, picture, method="nnomp", threshold=0.01)
    true, named = {tuple(p) for p in place.tolist()}, {tuple(p) for p in found.position.tolist()}
    print(f"{len(true & named)} of {len(true)} sources found, {len(named - true)} that are none")
    figure, axes = plt.subplots(1, 3, figsize=(13, 3.6), layout="constrained")
    middle = len(beam) // 2
    pictures = {"the picture": picture, "what is left": picture - A.synthesize(found)}
    for ax, (title, image) in zip(axes, pictures.items(), strict=False):
        ax.imshow(image, cmap="magma", vmin=-0.2, vmax=2)
        ax.set(title=title)
    axes[2].scatter(place[:, 1] + middle, place[:, 0] + middle, 8 * flux, "0.7", label="true")
    axes[2].scatter(found.position[:, 1] + middle, found.position[:, 0] + middle, 12, "C3", marker="x", label="found")
    axes[2].set(title="sources", xlim=(0, shape[1]), ylim=(shape[0], 0), aspect="equal")
    axes[2].legend(loc="upper right")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "clean.png", dpi=150)
    plt.close(figure)
    return len(true & named) - len(named - true)


if __name__ == "__main__":
    main()
