"""Sparse models beside abess, celer, skglm, adelie, glum, liblinear and scikit-learn, one thread, taking turns.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/classifiers.py [part of a name ...]

Each row is a whole cross-validation (5 folds, up to 30 features) and the final fit, one fit with an L1 penalty, or a
path of 100 penalties of the Lasso or the group lasso. The table has median processor seconds, the log-loss on new
samples of the same distribution (of paths how far the worst objective is above its minimum, relative to it), the number
of features (of paths at the end), and the peak of memory so far. Data are drawn: a few features matter, the rest are
noise, and features are correlated.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from common import CLOCK, peer
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, lasso_path
from sklearn.metrics import log_loss

from pursuit.estimators import AtomicClassifier, AtomicClassifierCV, AtomicRegressorCV, GreedyClassifierCV

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


Fit = Callable[[Any, np.ndarray], tuple[Callable[[Data], float], int]]
"""A function of X and y that gives a function of the data, the score of the model, and the number of features."""


def of_sklearn(model: Any) -> Fit:
    def fit(X: Any, y: np.ndarray) -> tuple[Callable[[Data], float], int]:
        model.fit(X, y)
        features = int((np.atleast_2d(model.coef_) != 0).any(axis=0).sum())
        return lambda data: log_loss(data.y_test, model.predict_proba(data.X_test), labels=model.classes_), features

    return fit


def of_abess(classes: int) -> Fit:
    abess = peer("abess")

    def fit(X: Any, y: np.ndarray) -> tuple[Callable[[Data], float], int]:
        kind = abess.LogisticRegression if classes == 2 else abess.MultinomialRegression
        model = kind(support_size=range(31), cv=5, cv_score="test_loss", thread=1)
        model.fit(X, y if classes == 2 else np.eye(classes)[y])
        coef = model.coef_.reshape(X.shape[1], -1)

        def score(data: Data) -> float:
            eta = data.X_test @ coef + model.intercept_
            found = softmax(eta, axis=1) if classes > 2 else np.column_stack([expit(-eta), expit(eta)])
            return log_loss(data.y_test, found, labels=np.arange(classes))

        return score, int((coef != 0).any(axis=1).sum())

    return fit


Path = Callable[[Any, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""A function of X, y and penalties that gives coefficients and intercepts."""


def of_path(groups: int, path: Path, exact: Path) -> Fit:
    """A path of 100 penalties on the norms of groups of this size, beside one by `exact`, which is not timed."""

    def fit(X: Any, y: np.ndarray) -> tuple[Callable[[Data], float], int]:
        norms = np.linalg.norm((X.T @ (y - y.mean())).reshape(-1, groups), axis=1) / len(y) / groups**0.5
        levels = norms.max() * np.geomspace(0.999, 0.01, 100)
        coef, intercept = path(X, y, levels)

        def objective(data: Data, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
            loss = 0.5 * np.mean((data.y - coef @ data.X.T - intercept[:, None]) ** 2, axis=1)
            sizes = np.linalg.norm(coef.reshape(len(coef), -1, groups), axis=2).sum(axis=1) * groups**0.5
            return np.asarray(loss + levels * sizes)

        def score(data: Data) -> float:
            minimum = objective(data, *exact(data.X, data.y, levels))
            return float((objective(data, coef, intercept) / minimum - 1).max())

        return score, int(np.count_nonzero(coef[-1]))

    return fit


def paths(features: int, groups: int) -> dict[str, Fit]:
    """Contenders for a path of penalties."""
    first = np.arange(0, features, groups)

    def ours(X: Any, y: np.ndarray, levels: np.ndarray, tol: float = 1e-4) -> tuple[np.ndarray, np.ndarray]:
        kind = {"ball": "group", "groups": np.arange(features) // groups} if groups > 1 else {}
        model = AtomicRegressorCV(penalties=levels, cv=[(np.arange(len(y)), np.arange(1))], tol=tol, **kind)
        solver, samples = model._solver(list(levels), penalised=True), model._samples(X, y, None)
        found = samples.path(replace(solver, proved=False))
        return found.coef[1:, 0], found.intercept[1:, 0]

    def of_adelie(X: Any, y: np.ndarray, levels: np.ndarray, tol: float = 1e-7) -> tuple[np.ndarray, np.ndarray]:
        adelie = peer("adelie")
        options = {"groups": first, "lmda_path": levels, "early_exit": False, "progress_bar": False, "tol": tol}
        found = adelie.grpnet(adelie.matrix.dense(X, n_threads=1), adelie.glm.gaussian(y), **options)
        return found.betas.toarray(), found.intercepts

    def of_sklearn(X: Any, y: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coef = lasso_path(X, y - y.mean(), alphas=levels, tol=1e-4)[1].T
        return coef, np.full(len(levels), y.mean()) - coef @ X.mean(axis=0)

    contenders: dict[str, Path] = {"pursuit": ours}
    if peer("adelie"):
        contenders["adelie"] = of_adelie
        for tol in (1e-9, 1e-11, 1e-13):
            contenders[f"adelie, tol={tol:g}"] = partial(of_adelie, tol=tol)
    if groups == 1:
        contenders["scikit-learn"] = of_sklearn
    return {name: of_path(groups, path, partial(ours, tol=1e-9)) for name, path in contenders.items()}


def straight(samples: int, features: int) -> Data:
    """Targets that 50 features make, half of their variance being noise; columns have mean 0 and deviation 1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((samples, features))
    X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    used = rng.choice(features, 50, replace=False)
    y = X[:, used] @ rng.standard_normal(50) + 7.0 * rng.standard_normal(samples)
    return Data(X, y, X, y)


def of_celer(penalty: float, samples: int) -> Fit:
    return of_sklearn(peer("celer").LogisticRegression(C=1 / (penalty * samples), solver="celer-pn", tol=1e-4))


def of_skglm(penalty: float) -> Fit:
    return of_sklearn(peer("skglm").SparseLogisticRegression(alpha=penalty, tol=1e-4))


def of_glum(penalty: float) -> Fit:
    kind = peer("glum").GeneralizedLinearRegressor

    def fit(X: Any, y: np.ndarray) -> tuple[Callable[[Data], float], int]:
        model = kind(alpha=penalty, l1_ratio=1, family="binomial", gradient_tol=1e-4).fit(X, y)
        return lambda data: log_loss(data.y_test, model.predict(data.X_test)), int(np.count_nonzero(model.coef_))

    return fit


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
    if peer("skglm"):
        found["skglm"] = of_skglm(PENALTY)
    if peer("glum") and samples < 5000:  # it makes a Hessian of all columns
        found["glum"] = of_glum(PENALTY)
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
        "path 1000 x 5000": lambda: (straight(1000, 5000), paths(5000, 1)),
        "path 200 x 20000": lambda: (straight(200, 20_000), paths(20_000, 1)),
        "path 1000 x 5000, 500 groups": lambda: (straight(1000, 5000), paths(5000, 10)),
    }


def main(wanted: list[str]) -> None:
    print("| case | contender | seconds | score | features | MB |\n|---|---|---|---|---|---|", flush=True)
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
                    score, features = fit(data.X, data.y)
                except Exception as problem:  # of a peer: told, and the next one has its turn
                    times[contender].append(float("nan"))
                    shown[contender] = f"{type(problem).__name__} | "
                    continue
                times[contender].append(CLOCK() - begun)
                print(f"{name}, {contender}: {times[contender][-1]:.3g} s", file=sys.stderr, flush=True)
                shown[contender] = shown.get(contender) or f"{score(data):.4g} | {features}"
                time.sleep(0.1)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for contender, each in times.items():
            seconds = statistics.median(each)
            print(f"| {name} | {contender} | {seconds:.3g} | {shown[contender]} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1:])
