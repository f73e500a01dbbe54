"""Matrix completion: how would a user rate a film that they have not rated?

300 made-up users have given 16,000 ratings to 800 films, few films many and many films few, as it is with real ones. A
rating is drawn from a mean, a bias of the user, a bias of the film, three tastes that users and films share, and noise,
in half stars. A tenth of the ratings is for the test. `LowRankCompletion` is given the table (user, film, stars) of the
others and nothing else: to mean and biases it adds an entry of a matrix of small nuclear norm, by Frank-Wolfe over
rank-one matrices seen at the rated entries. What there is to choose (the damping of the biases, the radius, how
much users with few ratings learn from others) is chosen on a validation part that `fit` draws. A table of real ratings,
such as MovieLens, takes the place of `draw_ratings()` as it is.
"""

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np

from pursuit.estimators import LowRankCompletion

mpl.use("Agg")
import matplotlib.pyplot as plt


def draw_ratings(users: int = 300, films: int = 800, count: int = 16_000) -> np.ndarray:
    """Rows of user, film and stars, each pair once."""
    rng = np.random.default_rng(0)
    known = rng.exponential(size=(users, 1)) * (1.0 / np.arange(5, films + 5))
    keys = rng.random((users, films)) ** (1 / known)
    user, film = np.divmod(np.argsort(keys, axis=None)[-count:], films)
    tastes, shares = rng.standard_normal((users, 3)), rng.standard_normal((films, 3))
    bias = 3.4 + 0.4 * rng.standard_normal(users)[user] + 0.5 * rng.standard_normal(films)[film]
    stars = bias + 0.45 * (tastes[user] * shares[film]).sum(axis=1) + 0.6 * rng.standard_normal(count)
    return np.stack([user, film, np.clip(np.round(2 * stars) / 2, 0.5, 5.0)], axis=1)


def main() -> float:
    ratings = draw_ratings()
    part = np.random.default_rng(0).permutation(len(ratings)) * 10 // len(ratings)
    train, test = ratings[part < 9], ratings[part == 9]
    began = time.perf_counter()
    model = LowRankCompletion(random_state=0).fit(train)
    seconds = time.perf_counter() - began
    alone = LowRankCompletion(radius=0.0, damping=model.damping_, power=0.0).fit(train)
    error = {name: m.predict(test[:, :2]) - test[:, 2] for name, m in (("biases alone", alone), ("completed", model))}
    films, tested = (part[:, 1].astype(int) for part in (train, test))
    groups = np.digitize(np.bincount(films, minlength=tested.max() + 1)[tested], [3, 10, 30, 100])
    figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for (name, e), colour in zip(error.items(), ("0.6", "C1"), strict=True):
        print(f"{name:14}test error {np.sqrt(np.mean(e**2)):.4f} stars")
        shown = [np.sqrt(np.mean(e[groups == k] ** 2)) for k in range(5)]
        ax.plot(["0-2", "3-9", "10-29", "30-99", "100+"], shown, marker="o", label=name, color=colour)
    print(f"rank {model.rank_}, damping {model.damping_:g}, power {model.power_:g}; {seconds:.1f} s with all choices")
    ax.set(xlabel="ratings of the film in training", ylabel="test error in stars")
    ax.grid(alpha=0.3, axis="y")
    ax.legend(frameon=False)
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/ratings.png", dpi=150)
    plt.close(figure)
    return float(np.sqrt(np.mean(error["completed"] ** 2)))


if __name__ == "__main__":
    main()
