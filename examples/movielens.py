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
    films, tested = (part[:, 1].astype(int) for part in (train, test))
    groups = np.digitize(np.bincount(films, minlength=tested.max() + 1)[tested], [1, 3, 10, 30, 100])
    figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for (name, e), colour in zip(error.items(), ("0.6", "C1"), strict=True):
        print(f"{name:14}test error {np.sqrt(np.mean(e**2)):.4f} stars")
        shown = [np.sqrt(np.mean(e[groups == k] ** 2)) for k in range(6)]
        ax.plot(["0", "1-2", "3-9", "10-29", "30-99", "100+"], shown, marker="o", label=name, color=colour)
    print(f"rank {model.rank_}, damping {model.damping_:g}, power {model.power_:g}; {seconds:.1f} s with all choices")
    ax.set(xlabel="ratings of the film in training", ylabel="test error in stars")
    ax.grid(alpha=0.3, axis="y")
    ax.legend(frameon=False)
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/movielens.png", dpi=150)
    plt.close(figure)
    return float(np.sqrt(np.mean(error["completed"] ** 2)))


if __name__ == "__main__":
    main()
