"""Writes the fixtures of tests/stored: one file of each kind that users keep, by this version.

python tools/store.py        writes tests/stored/VERSION if it is not there; others are never changed

A test loads every file there is. So after a change of a format, raise the version first and store again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import pursuit as ps
from pursuit import estimators as es

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "stored"
PREDICT = ("omp", "greedy", "classifier", "atomic")


def data() -> tuple[np.ndarray, np.ndarray]:
    """A table and a target: numbers without a generator, the same in every version of NumPy."""
    X = np.cos(np.outer(np.arange(1, 13), np.arange(1, 9)) ** 1.3)
    return X, 2 * X[:, 1] - X[:, 4] + np.sin(np.arange(12))


def models() -> dict[str, Any]:
    """A fitted estimator of each kind."""
    X, y = data()
    ratings = np.stack([np.arange(40) % 8, np.arange(40) % 5, 3 + np.cos(np.arange(40))], axis=1)
    return {
        "omp": es.OrthogonalMatchingPursuit(n_nonzero_coefs=2).fit(X, y),
        "greedy": es.GreedyRegressor(n_nonzero=2).fit(X, y),
        "classifier": es.GreedyClassifier(n_nonzero=2).fit(X, np.where(y > 0, "yes", "no")),
        "atomic": es.AtomicRegressor(radius=2.0).fit(X, y),
        "dictionary": es.DictionaryLearning(3, random_state=0, max_iter=3).fit(X),
        "completion": es.LowRankCompletion(radius=1.0, damping=1.0, power=0.0).fit(ratings),
        "pca": es.ExponentialFamilyPCA(1).fit(np.abs(X)),
    }


def problem() -> tuple[ps.Objective, ps.Domain]:
    X, y = data()
    return ps.LeastSquares(y), ps.conv(2.0 * ps.Dictionary(X, signed=True))


def main() -> None:
    folder = FOLDER / ps.__version__
    if folder.exists():
        sys.exit(f"{folder} is there: files of a version are not changed.")
    folder.mkdir(parents=True)
    X, _ = data()
    fitted = models()
    for name, model in fitted.items():
        model.save(folder / f"{name}.json")
    stop = ps.Stop(iterations=3, rgap=None)
    ps.minimize(*problem(), ps.Plain(ps.LineSearch()), stop=stop, checkpoint=folder / "run.npz")
    D, Y = X[:5], X[5:9, :5]
    ps.encode_to(folder / "codes", D, Y, block=2, atoms=2)
    predicted = {name: model.predict(X) for name, model in fitted.items() if name in PREDICT}
    np.savez(folder / "expected.npz", codes=ps.encode(D, Y, atoms=2).toarray(), **predicted)


if __name__ == "__main__":
    main()
