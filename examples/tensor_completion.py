"""Tensor completion: a fluorescence measurement from one entry in ten.

Samples that mix three substances are excited at some wavelengths and measured at others: the table of (sample,
excitation, emission) is a tensor of rank 3, one rank-one term per substance. Matching pursuit over rank-one tensors
seen at the observed entries adds one term per oracle call; `Alternating` moves the factors of all terms in between
(line 7 of Algorithm 4). The number of terms is chosen on entries that were kept for validation.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
SHAPE = (12, 40, 50)


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The true tensor, a noisy one, and a label per entry: 0 observed, 1 for validation, 2 for the test."""
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
    return truth, noisy, rng.choice(3, size=SHAPE, p=[0.1, 0.02, 0.88])


def fit(noisy: np.ndarray, seen: np.ndarray, terms: int, refine) -> ps.Result:
    A = ps.RankOneTensor(SHAPE).at(np.argwhere(seen))
    f, stop = ps.LeastSquares(noisy[seen]), ps.Stop(atoms=terms)
    return ps.minimize(f, ps.lin(A), ps.FullyCorrective(), stop=stop, refine=refine)


def error(result: ps.Result, target: np.ndarray, where: np.ndarray) -> float:
    """Relative error at some entries; no other entry is computed."""
    return float(np.linalg.norm(result.coef.at(np.argwhere(where)) - target[where]) / np.linalg.norm(target[where]))


def main() -> dict[str, list[float]]:
    truth, noisy, label = problem()
    ranks = [1, 2, 3, 4, 5]
    methods = {"weights alone": None, "factors moved": ps.refine.Alternating()}
    fits = {name: [fit(noisy, label == 0, r, refine) for r in ranks] for name, refine in methods.items()}
    validation = {name: [error(r, noisy, label == 1) for r in results] for name, results in fits.items()}
    best = int(np.argmin(validation["factors moved"]))
    print(f"{'validation error, terms':26}" + "".join(f"{r:10}" for r in ranks))
    for name, values in validation.items():
        print(f"{name:26}" + "".join(f"{v:10.4f}" for v in values))
    chosen = fits["factors moved"][best]
    print(f"chosen: {ranks[best]} terms; error against the truth {error(chosen, truth, label == 2):.4f}")
    draw(truth, noisy, label == 0, chosen, ranks, validation)
    return validation


def draw(truth: np.ndarray, noisy: np.ndarray, seen: np.ndarray, result: ps.Result, ranks, validation) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained", width_ratios=[1, 1, 1, 1.3])
    sample = int(np.argmax(np.linalg.norm(truth, axis=(1, 2))))
    pictures = {
        "observed": np.where(seen, noisy, np.nan)[sample],
        "completed": result.coef.full()[sample],
        "true": truth[sample],
    }
    for ax, (name, picture) in zip(axes, pictures.items(), strict=False):
        ax.imshow(picture, origin="lower", cmap="viridis", vmin=0, vmax=truth[sample].max(), aspect="auto")
        ax.set(title=f"{name} (one sample)", xlabel="emission", xticks=[], yticks=[])
    axes[0].set_facecolor("0.92")
    axes[0].set_ylabel("excitation")
    for name, values in validation.items():
        axes[3].semilogy(ranks, values, marker="o", label=name)
    axes[3].set(title="error at validation entries", xlabel="rank-one terms", xticks=ranks)
    axes[3].minorticks_off()
    axes[3].set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1.0], ["2 %", "5 %", "10 %", "20 %", "50 %", "100 %"])
    axes[3].grid(alpha=0.3)
    axes[3].legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "tensor_completion.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
