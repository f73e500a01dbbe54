"""Robust principal components: a low-rank table in which some entries are grossly wrong.

Sensors that share a daily rhythm make a table of rank 2; a few readings are faults. Truncating the SVD smears every
fault over its row and column. Instead, x = L + S with L in a nuclear-norm ball and S in an L1 ball,
`conv(a * RankOne) + conv(b * SignedBasis)`: a sum of domains has one oracle per summand and one certificate for both.
The rank-one atoms see the table as a vector of all its entries, which is where the single entries live, too.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
SENSORS, HOURS = 40, 72


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Temperatures, faults (one reading in forty), and the table that was recorded."""
    rng = np.random.default_rng(seed)
    hours = 2 * np.pi * np.arange(HOURS) / 24
    rhythms = np.stack([np.sin(hours - 2.0), 0.5 * np.sin(hours / 3)])
    truth = rng.uniform(0.5, 2.0, (SENSORS, 2)) * rng.choice([-1, 1], 2) @ rhythms
    faults = np.where(rng.random(truth.shape) < 1 / 40, rng.choice([-6.0, 6.0], truth.shape), 0.0)
    return truth, faults, truth + faults + 0.05 * rng.standard_normal(truth.shape)


def separate(Y: np.ndarray, nuclear: float, l1: float) -> tuple[ps.Result, np.ndarray, np.ndarray]:
    rows, cols = np.divmod(np.arange(Y.size), Y.shape[1])
    smooth = ps.conv(nuclear * ps.RankOne(Y.shape).at(rows, cols))
    spikes = ps.conv(l1 * ps.SignedBasis(Y.size))
    r = ps.minimize(ps.LeastSquares(Y.ravel()), smooth + spikes, stop=ps.Stop(rgap=1e-3, iterations=100))
    low, sparse = r.coef
    return r, low.toarray(), sparse.reshape(Y.shape)


def relative(estimate: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))


def main() -> dict[str, float]:
    truth, faults, Y = problem()
    nuclear, l1 = float(np.linalg.svd(truth, compute_uv=False).sum()), float(np.abs(faults).sum())
    r, low, sparse = separate(Y, nuclear, l1)
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    plain = (U[:, :2] * s[:2]) @ Vt[:2]
    errors = {"SVD of rank 2": relative(plain, truth), "low rank plus sparse": relative(low, truth)}
    for name, error in errors.items():
        print(f"{name:24} error of the temperatures {error:7.2%}")
    found, faulty = np.abs(sparse) > 1.0, faults != 0
    print(f"faults found: {(found & faulty).sum()} of {faulty.sum()}, false alarms: {(found & ~faulty).sum()}")
    print(f"{r.oracle_calls} oracle calls, certified gap {r.gap:.1e} at a value of {r.value:.3g}")
    draw({"recorded": Y, "SVD of rank 2": plain, "low rank": low, "sparse": sparse})
    return errors


def draw(pictures: dict[str, np.ndarray]) -> None:
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.2), layout="constrained", sharey=True)
    for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
        image = ax.imshow(picture, cmap="RdBu_r", vmin=-4, vmax=4, aspect="auto", interpolation="nearest")
        ax.set(title=name, xlabel="hour", xticks=range(0, HOURS, 24))
    axes[0].set_ylabel("sensor")
    figure.colorbar(image, ax=axes, pad=0.01, label="temperature (centred)", extend="both")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "robust_pca.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
