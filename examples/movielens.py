"""Matrix completion: how would a user rate a film that they have not rated?

610 users have given 100,836 ratings to 9,724 films (MovieLens, `data/ml-latest-small`); a tenth of them is for the
test. `LowRankCompletion` is given the table (user, film, stars) of the others and nothing else: a rating is the mean,
plus a bias of the user, plus a bias of the film, plus an entry of a matrix of small nuclear norm, by Frank-Wolfe over
rank-one matrices seen at the rated entries. What there is to choose (the damping of the biases, the radius, how much
users with few ratings learn from others) is chosen on a validation part that `fit` draws.
"""

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np

from pursuit.estimators import LowRankCompletion

mpl.use("Agg")
import matplotlib.pyplot as plt

DATA = Path(__file__).parent / "data" / "ml-latest-small" / "ratings.csv.gz"


def main() -> float:
    ratings = np.loadtxt(DATA, delimiter=",", skiprows=1, usecols=(0, 1, 2))
    part = np.random.default_rng(0).permutation(len(ratings)) * 10 // len(ratings)
    train, test = ratings[part < 9], ratings[part == 9]
    began = time.perf_counter()
    model = LowRankCompletion(random_state=0).fit(train)
    seconds = time.perf_counter() - began
    alone = LowRankCompletion(radius=0.0, damping=model.damping_, power=0.0).fit(train)
    error = {name: m.predict(test[:, :2]) - test[:, 2] for name, m in (("biases alone", alone), ("completed", model))}
    for name, e in error.items():
        print(f"{name:14}test error {np.sqrt(np.mean(e**2)):.4f} stars")
    print(f"rank {model.rank_}, damping {model.damping_:g}, power {model.power_:g}; {seconds:.1f} s with all choices")
    draw(model, error, train, test)
    return float(np.sqrt(np.mean(error["completed"] ** 2)))


def draw(model: LowRankCompletion, error: dict[str, np.ndarray], train: np.ndarray, test: np.ndarray) -> None:
    tried, (figure, (left, right)) = model.validation_error_, plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    radii = (tried["level"] > 0) & np.isfinite(tried["level"])
    for power in np.unique(tried["power"][radii])[::-1]:
        mine = radii & (tried["power"] == power)
        left.plot(tried["level"][mine], tried["error"][mine], marker="o", label=f"power {power:g}")
    left.axhline(tried["error"][tried["level"] == 0].min(), color="0.6", label="biases alone")
    left.set(title="validation part", xlabel="radius / norm of the data less biases", ylabel="error in stars")
    left.set_xscale("log", base=2)
    films, tested = (part[:, 1].astype(int) for part in (train, test))
    often = np.bincount(films, minlength=tested.max() + 1)[tested]
    groups = np.digitize(often, [1, 3, 10, 30, 100])
    for (name, e), colour in zip(error.items(), ("0.6", "C1"), strict=True):
        shown = [np.sqrt(np.mean(e[groups == k] ** 2)) for k in range(6)]
        right.plot(["0", "1-2", "3-9", "10-29", "30-99", "100+"], shown, marker="o", label=name, color=colour)
    right.set(title="test part", xlabel="ratings of the film in training")
    for ax in (left, right):
        ax.grid(alpha=0.3, axis="y")
        ax.legend(frameon=False)
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/movielens.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
