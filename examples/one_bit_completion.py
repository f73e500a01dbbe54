"""One-bit matrix completion: from thumbs up and thumbs down at some entries to the tastes behind them.

Entry (i, j) is a sign, +1 with probability 1 / (1 + exp(-X_ij)), for a matrix X of low rank. The loss is logistic, the
domain the nuclear-norm ball seen at the observed entries, `conv(tau * RankOne(shape).at(rows, cols))`; the radius is
chosen on validation entries along a path of warm starts. What comes out is X itself, so probabilities, not only signs.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
SHAPE = (150, 100)


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The matrix, a sign per entry, and a label per entry: 0 observed, 1 for validation, 2 hidden."""
    rng = np.random.default_rng(seed)
    X = 2.0 * rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1]))
    signs = np.where(rng.random(SHAPE) < 1 / (1 + np.exp(-X)), 1.0, -1.0)
    return X, signs, rng.choice(3, size=SHAPE, p=[0.4, 0.1, 0.5])


def fits(signs: np.ndarray, seen: np.ndarray, radii: list[float]) -> list[ps.Result]:
    A, f, results = ps.RankOne(SHAPE).at(*np.nonzero(seen)), ps.Logistic(signs[seen]), []
    for tau in radii:
        start = results[-1] if results else None
        results.append(ps.minimize(f, ps.conv(tau * A), start=start, stop=ps.Stop(rgap=1e-4)))
    return results


def loss(result: ps.Result, signs: np.ndarray, where: np.ndarray) -> float:
    """Mean logistic loss at some entries; no other entry is computed."""
    rows, cols = np.nonzero(where)
    return float(np.mean(np.logaddexp(0.0, -signs[rows, cols] * result.coef.at(rows, cols))))


def main() -> float:
    X, signs, label = problem()
    radii = [float(tau) for tau in np.geomspace(50, 800, 9)]
    results = fits(signs, label == 0, radii)
    curves = {name: [loss(r, signs, label == k) for r in results] for k, name in ((0, "observed"), (1, "validation"))}
    best = int(np.argmin(curves["validation"]))
    X_hat, hidden = results[best].coef.toarray(), label == 2
    right = float(np.mean(np.sign(X_hat) == signs, where=hidden))
    limit = float(np.mean(np.sign(X) == signs, where=hidden))
    gap = results[best].gap / results[best].value
    print(f"chosen radius: {radii[best]:.0f}, rank {len(results[best].coef.s)}, certified relative gap {gap:.0e}")
    print(f"oracle calls of the {len(radii)} fits: {' '.join(str(r.oracle_calls) for r in results)}")
    print(f"hidden signs predicted: {right:.1%}; with the true matrix: {limit:.1%}")
    draw(X, X_hat, hidden, radii, curves, best)
    return right


def draw(X: np.ndarray, X_hat: np.ndarray, hidden: np.ndarray, radii, curves, best: int) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained", width_ratios=[1.3, 1])
    for name, values in curves.items():
        left.semilogx(radii, values, marker="o", label=name)
    left.axvline(radii[best], color="0.6", linestyle=":")
    left.set(title="choosing the radius", xlabel="nuclear norm at most", ylabel="mean logistic loss")
    left.set_xticks([50, 100, 200, 400, 800], ["50", "100", "200", "400", "800"])
    left.minorticks_off()
    left.grid(alpha=0.3)
    left.legend(frameon=False)
    p, p_hat = (1 / (1 + np.exp(-Z[hidden])) for Z in (X, X_hat))
    right.hist2d(p, p_hat, bins=40, cmap="Blues", norm=mpl.colors.LogNorm())
    right.plot([0, 1], [0, 1], color="C3", linewidth=1)
    right.set(
        title="chance of a thumbs up, hidden entries", xlabel="true", ylabel="estimated", aspect="equal", ylim=(0, 1)
    )
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "one_bit_completion.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
