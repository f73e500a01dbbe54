"""Tensor completion: a fluorescence measurement from one entry in ten.

Samples that mix three substances are excited at some wavelengths and measured at others: the table of (sample,
excitation, emission) is a tensor of rank 3, one rank-one term per substance. `TensorCompletion` is given an array with
NaN where nothing was measured: matching pursuit over rank-one tensors seen at the observed entries adds one term per
oracle call, and the factors of all terms move in between (line 7 of Algorithm 4). The number of terms is chosen on
entries that `fit` keeps for validation.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from pursuit.estimators import TensorCompletion

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
SHAPE = (12, 40, 50)


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The true tensor, and a noisy one with NaN at nine entries in ten."""
    rng = np.random.default_rng(seed)

    def bumps(n: int, centres: list[float], widths: list[float]) -> np.ndarray:
        return np.exp(-0.5 * ((np.linspace(0, 1, n)[:, None] - centres) / widths) ** 2)

    factors = (
        rng.gamma(2.0, 1.0, (SHAPE[0], 3)),
        bumps(SHAPE[1], [0.25, 0.45, 0.75], [0.08, 0.12, 0.1]),
        bumps(SHAPE[2], [0.35, 0.6, 0.7], [0.1, 0.08, 0.12]),
    )
    truth = np.einsum("ir,jr,kr->ijk", *factors)
    noisy = truth + 0.02 * truth.std() * rng.standard_normal(SHAPE)
    return truth, np.where(rng.random(SHAPE) < 0.1, noisy, np.nan)


def main() -> float:
    truth, observed = problem()
    model = TensorCompletion(random_state=0).fit(observed)
    completed, hidden = model.toarray(), np.isnan(observed)
    error = float(np.linalg.norm((completed - truth)[hidden]) / np.linalg.norm(truth[hidden]))
    print("validation error of 1, 2, ... terms: " + " ".join(f"{e:.4f}" for e in model.validation_error_))
    print(f"chosen: {model.rank_} terms; relative error at hidden entries {error:.4f}")
    draw(truth, observed, completed, model.validation_error_)
    return error


def draw(truth: np.ndarray, observed: np.ndarray, completed: np.ndarray, errors: np.ndarray) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained", width_ratios=[1, 1, 1, 1.3])
    sample = int(np.argmax(np.linalg.norm(truth, axis=(1, 2))))
    pictures = {"observed": observed, "completed": completed, "true": truth}
    for ax, (name, picture) in zip(axes, pictures.items(), strict=False):
        ax.imshow(picture[sample], origin="lower", cmap="viridis", vmin=0, vmax=truth[sample].max(), aspect="auto")
        ax.set(title=f"{name} (one sample)", xlabel="emission", xticks=[], yticks=[])
    axes[0].set_facecolor("0.92")
    axes[0].set_ylabel("excitation")
    axes[3].semilogy(range(1, 1 + len(errors)), errors, marker="o")
    axes[3].set(title="error at validation entries", xlabel="rank-one terms", xticks=range(1, 1 + len(errors)))
    axes[3].minorticks_off()
    axes[3].set_yticks([0.02, 0.05, 0.1, 0.2, 0.5], ["0.02", "0.05", "0.1", "0.2", "0.5"])
    axes[3].grid(alpha=0.3)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "tensor_completion.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
