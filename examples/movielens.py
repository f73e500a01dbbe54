"""Matrix completion: how would a user rate a film that they have not rated?

610 users have given 100,836 ratings to 9,724 films (MovieLens, `data/ml-latest-small`). 80 % of the ratings are for
training, 10 % for validation, 10 % for the test. A rating is the mean, plus a bias of the user, plus a bias of the
film, plus an entry of a matrix of small nuclear norm: Frank-Wolfe over rank-one matrices seen at the rated entries.

The radii grow, each warm-started from the last, and each takes one step: the oracle names four singular vectors, and
`Factors` moves all factors together, a little (line 7 of Algorithm 3). That is far from the optimum, and near enough to
predict.

A user with many ratings is known better, a user with few needs more help from others. So row u of the matrix is
`scale[u]` times a row of one of small norm, where scale is a power of the number of ratings; this is a weighted nuclear
norm. For the fit it means other targets and weights: (scale z - y)^2 = scale^2 (z - y / scale)^2.

The damping of the biases, the power and the radius are chosen on the validation part.
"""

import time
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from threadpoolctl import threadpool_limits

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
DATA = Path(__file__).parent / "data" / "ml-latest-small" / "ratings.csv.gz"
USERS, FILMS = 610, 9724
DAMPINGS = [1.0, 2.0, 3.0, 5.0, 8.0]
POWERS = [0.0, -0.25, -0.5]
RADII = [0.5, 1.0, 2.0, 4.0]  # in units of the norm of the training data less their biases


class Ratings(NamedTuple):
    users: np.ndarray
    films: np.ndarray
    stars: np.ndarray

    def part(self, which: np.ndarray) -> "Ratings":
        return Ratings(*(column[which] for column in self))


class Biases(NamedTuple):
    mean: float
    users: np.ndarray
    films: np.ndarray

    def at(self, users: np.ndarray, films: np.ndarray) -> np.ndarray:
        return self.mean + self.users[users] + self.films[films]


class Model(NamedTuple):
    biases: Biases
    scale: np.ndarray
    fit: ps.Result

    def at(self, users: np.ndarray, films: np.ndarray) -> np.ndarray:
        """Predictions; of films that nobody rated in training only the bias of the user is known."""
        predicted = self.biases.at(users, films)
        matrix = self.fit.coef
        known = films < len(matrix.V)
        users, films = users[known], films[known]
        predicted[known] += self.scale[users] * matrix.at(users, films)
        return predicted


def split(seed: int = 0) -> tuple[Ratings, Ratings, Ratings]:
    """Training, validation and test ratings; films are numbered from the most often to the least often trained."""
    users, films, stars = np.loadtxt(DATA, delimiter=",", skiprows=1, usecols=(0, 1, 2), unpack=True)
    users, films = (np.unique(names, return_inverse=True)[1] for names in (users, films))
    part = np.random.default_rng(seed).permutation(len(stars)) * 10 // len(stars)
    often = np.bincount(films[part < 8], minlength=FILMS)
    rank = np.argsort(np.argsort(-often, kind="stable"))
    ratings = Ratings(users, rank[films], stars)
    return ratings.part(part < 8), ratings.part(part == 8), ratings.part(part == 9)


def biases(train: Ratings, damping: float) -> Biases:
    """Ridge regression on user and film, by ten rounds of taking turns."""
    mean, by_user, by_film = train.stars.mean(), np.zeros(USERS), np.zeros(FILMS)
    for _ in range(10):
        by_film = _damped(train.films, train.stars - mean - by_user[train.users], FILMS, damping)
        by_user = _damped(train.users, train.stars - mean - by_film[train.films], USERS, damping)
    return Biases(mean, by_user, by_film)


def _damped(groups: np.ndarray, values: np.ndarray, n: int, damping: float) -> np.ndarray:
    return np.bincount(groups, values, minlength=n) / (np.bincount(groups, minlength=n) + damping)


def complete(train: Ratings, known: Biases, power: float, radii: list[float], several: int = 4) -> list[Model]:
    """A model for each radius."""
    counts = np.bincount(train.users)
    scale = (counts / counts.mean()) ** power
    rest, s = train.stars - known.at(train.users, train.films), scale[train.users]
    A = ps.RankOne((USERS, int(train.films.max()) + 1)).at(train.users, train.films)
    path = ps.path(
        ps.LeastSquares(rest / s, weights=s**2),
        A,
        radii=np.linalg.norm(rest) * np.array(radii),
        update=ps.NormCorrective(several=several),
        refine=ps.refine.Factors(accuracy=0.3),
        stop=ps.Stop(iterations=1),
    )
    return [Model(known, scale, r) for r in path.results]


def error(model: Biases | Model, ratings: Ratings) -> float:
    """Root mean square error; ratings are between half a star and five."""
    predicted = np.clip(model.at(ratings.users, ratings.films), 0.5, 5.0)
    return float(np.sqrt(np.mean((predicted - ratings.stars) ** 2)))


def choose(train: Ratings, validation: Ratings) -> tuple[float, float, int, dict[float, list[Model]]]:
    """What validation chooses: a damping, a power, and the index of a radius; and all models with that damping."""
    damping = min(DAMPINGS, key=lambda d: error(biases(train, d), validation))
    models = {power: complete(train, biases(train, damping), power, RADII) for power in POWERS}
    power, i = min(product(POWERS, range(len(RADII))), key=lambda c: error(models[c[0]][c[1]], validation))
    return damping, power, i, models


def main() -> float:
    train, validation, test = split()
    began = time.perf_counter()
    with threadpool_limits(1):  # many short products: threads would only wait for each other
        _, power, i, models = choose(train, validation)
    seconds = time.perf_counter() - began
    chosen = models[power][i]
    known = chosen.biases
    print(f"{'error':22}{'validation':>12}{'test':>10}{'rank':>8}")
    print(f"{'biases alone':22}{error(known, validation):12.4f}{error(known, test):10.4f}{0:8}")
    for power, path in models.items():
        best = min(path, key=lambda m: error(m, validation))
        name = f"completed, power {power:g}"
        print(f"{name:22}{error(best, validation):12.4f}{error(best, test):10.4f}{len(best.fit.coef.s):8}")
    print(f"chosen on validation: test {error(chosen, test):.4f}; {seconds:.1f} s for all fits together")
    draw(known, models, chosen, (train, validation, test))
    return error(chosen, test)


def draw(known: Biases, models: dict[float, list[Model]], chosen: Model, parts: tuple[Ratings, ...]) -> None:
    train, validation, test = parts
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for style, ratings in (("-", validation), ("--", test)):
        left.axhline(error(known, ratings), color="0.6", linestyle=style)
        for i, (power, path) in enumerate(models.items()):
            errors = [error(m, ratings) for m in path]
            left.semilogx(RADII, errors, f"C{i}{style}", marker="o", label=f"power {power:g}" if style == "-" else None)
    left.annotate("biases alone", (RADII[0], error(known, validation)), (0, 4), textcoords="offset points", color="0.4")
    left.set_xticks(RADII, [f"{r:g}" for r in RADII])
    left.minorticks_off()
    left.set(title="validation (full) and test (dashed)", xlabel="radius / norm of the data", ylabel="error in stars")
    left.legend(frameon=False)

    counts = np.bincount(train.films, minlength=FILMS)[test.films]
    edges = [0, 1, 3, 10, 30, 100, 1000]
    names = ["0", "1-2", "3-9", "10-29", "30-99", "100+"]
    for (name, model), colour in zip({"biases alone": known, "completed": chosen}.items(), ("0.6", "C1"), strict=True):
        errors = [error(model, test.part((counts >= a) & (counts < b))) for a, b in pairwise(edges)]
        right.plot(names, errors, marker="o", label=name, color=colour)
    right.set(title="test, by how often the film was rated", xlabel="ratings of the film in training")
    right.legend(frameon=False)
    for ax in (left, right):
        ax.grid(alpha=0.3, axis="y")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "movielens.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
