"""Sparse classifiers and L1 models beside abess, celer, liblinear and scikit-learn, one thread, taking turns.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/classifiers.py [part of a name ...]

Each row is a whole cross-validation (5 folds, up to 30 features) and the final fit, or one fit with an L1 penalty. The
table has median processor seconds, the log-loss on new samples of the same distribution, the number of features, and
the peak of memory so far. Data are drawn: a few features matter, the rest are noise, and features are correlated.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import CLOCK, peer
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss

from pursuit.estimators import AtomicClassifier, AtomicClassifierCV, GreedyClassifierCV

ROUNDS, LONG = 3, 20.0
"""Turns of each contender, one of those that take more seconds than LONG."""
PENALTY = 0.005


class Data(NamedTuple):
    """Samples to fit and samples to score."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def draw(samples: int, features: int, classes: int = 2, density: float = 1.0) -> Data:
    rng, test = np.random.default_rng(0), 1000
    total = samples + test
    if density < 1:
        X: Any = sp.random_array((total, features), density=density, rng=rng, format="csr")
        X.data = np.abs(rng.standard_normal(len(X.data)))
    else:
        X = rng.standard_normal((total, features)) + 0.5 * rng.standard_normal((total, 1))
    used = rng.choice(features, 100 if density < 1 else 10, replace=False)
    eta = X[:, used] @ (3.0 * rng.standard_normal((len(used), classes if classes > 2 else 1)))
    noisy = eta - np.median(eta, axis=0) + rng.gumbel(size=eta.shape)
    y = noisy.argmax(axis=1) if classes > 2 else (noisy[:, 0] > 0).astype(int)
    X = X.tocsr() if density < 1 else X
    return Data(X[:samples], y[:samples], X[samples:], y[samples:])


Fit = Callable[[Any, np.ndarray], tuple[Callable[[Any], np.ndarray], int]]
"""A function of X and y that gives a function of probabilities, and the number of features."""


def of_sklearn(model: Any) -> Fit:
    def fit(X: Any, y: np.ndarray) -> tuple[Callable[[Any], np.ndarray], int]:
        model.fit(X, y)
        return model.predict_proba, int((np.atleast_2d(model.coef_) != 0).any(axis=0).sum())

    return fit


def of_abess(classes: int) -> Fit:
    abess = peer("abess")

    def fit(X: Any, y: np.ndarray) -> tuple[Callable[[Any], np.ndarray], int]:
        kind = abess.LogisticRegression if classes == 2 else abess.MultinomialRegression
        model = kind(support_size=range(31), cv=5, cv_score="test_loss", thread=1)
        model.fit(X, y if classes == 2 else np.eye(classes)[y])
        coef = model.coef_.reshape(X.shape[1], -1)

        def probabilities(Z: Any) -> np.ndarray:
            eta = Z @ coef + model.intercept_
            return softmax(eta, axis=1) if classes > 2 else np.column_stack([expit(-eta), expit(eta)])

        return probabilities, int((coef != 0).any(axis=1).sum())

    return fit


def of_celer(penalty: float, samples: int) -> Fit:
    return of_sklearn(peer("celer").LogisticRegression(C=1 / (penalty * samples), solver="celer-pn", tol=1e-4))


def unit_scale(data: Data) -> Data:
    """Columns divided by their deviation, as ours are in any case."""
    square = data.X.multiply(data.X) if sp.issparse(data.X) else data.X**2
    mean = np.asarray(data.X.mean(axis=0)).ravel()
    scale = np.sqrt(np.asarray(square.mean(axis=0)).ravel() - mean**2)
    scale[scale == 0] = 1
    if not sp.issparse(data.X):
        return data._replace(X=data.X / scale, X_test=data.X_test / scale)
    return data._replace(X=(data.X.multiply(1 / scale)).tocsc(), X_test=(data.X_test.multiply(1 / scale)).tocsr())


def selection(classes: int, liblinear: bool = True) -> dict[str, Fit]:
    """Contenders for a cross-validation."""
    found = {
        "pursuit, 3 ridges": of_sklearn(GreedyClassifierCV(max_nonzero=30, n_jobs=1)),
        "pursuit, 1 ridge": of_sklearn(GreedyClassifierCV(max_nonzero=30, l2=1e-2, n_jobs=1)),
    }
    if peer("abess"):
        found["abess"] = of_abess(classes)
    if liblinear and classes == 2:
        options = {"Cs": 10, "penalty": "l1", "solver": "liblinear", "scoring": "neg_log_loss"}
        found["liblinear, 10 C"] = of_sklearn(LogisticRegressionCV(**options))
    return found


def penalised(samples: int) -> dict[str, Fit]:
    """Contenders for one L1 penalty."""
    C = 1 / (PENALTY * samples)
    found = {"pursuit": of_sklearn(AtomicClassifier(penalty=PENALTY, tol=1e-4))}
    if peer("celer"):
        found["celer"] = of_celer(PENALTY, samples)
    found["liblinear"] = of_sklearn(LogisticRegression(C=C, penalty="l1", solver="liblinear"))
    return found


def penalties() -> dict[str, Fit]:
    """Contenders for the choice of an L1 penalty."""
    options = {"Cs": 10, "penalty": "l1", "solver": "liblinear", "scoring": "neg_log_loss"}
    return {
        "pursuit, 10 penalties": of_sklearn(AtomicClassifierCV(penalties=10)),
        "liblinear, 10 C": of_sklearn(LogisticRegressionCV(**options)),
    }


def cases() -> dict[str, Callable[[], tuple[Data, dict[str, Fit]]]]:
    return {
        "CV 63 x 2308, 4 classes": lambda: (draw(63, 2308, 4), selection(4)),
        "CV 200 x 20000": lambda: (draw(200, 20_000), selection(2)),
        "CV 2000 x 2000": lambda: (draw(2000, 2000), selection(2)),
        "CV 50000 x 100": lambda: (draw(50_000, 100), selection(2)),
        "CV 200000 x 100": lambda: (draw(200_000, 100), selection(2, liblinear=False)),
        "CV 2600 x 100, 26 classes": lambda: (draw(2600, 100, 26), selection(26)),
        "CV CSR 5000 x 50000": lambda: (draw(5000, 50_000, density=0.01), selection(2)),
        "L1 CSR 5000 x 50000": lambda: (unit_scale(draw(5000, 50_000, density=0.01)), penalised(5000)),
        "L1 2000 x 2000": lambda: (unit_scale(draw(2000, 2000)), penalised(2000)),
        "L1 CV CSR 5000 x 50000": lambda: (unit_scale(draw(5000, 50_000, density=0.01)), penalties()),
    }


def main(wanted: list[str]) -> None:
    print("| case | contender | seconds | log-loss | features | MB |\n|---|---|---|---|---|---|", flush=True)
    for name, case in cases().items():
        if wanted and not any(part in name for part in wanted):
            continue
        data, contenders = case()
        times: dict[str, list[float]] = {contender: [] for contender in contenders}
        shown: dict[str, str] = {}
        for _ in range(ROUNDS):
            for contender, fit in contenders.items():
                if times[contender] and times[contender][0] > LONG:
                    continue
                begun = CLOCK()
                try:
                    probabilities, features = fit(data.X, data.y)
                except Exception as problem:  # of a peer: told, and the next one has its turn
                    times[contender].append(float("nan"))
                    shown[contender] = f"{type(problem).__name__} | "
                    continue
                times[contender].append(CLOCK() - begun)
                loss = log_loss(data.y_test, probabilities(data.X_test), labels=np.unique(data.y))
                shown[contender] = f"{loss:.3f} | {features}"
                time.sleep(0.1)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for contender, each in times.items():
            seconds = statistics.median(each)
            print(f"| {name} | {contender} | {seconds:.3g} | {shown[contender]} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
