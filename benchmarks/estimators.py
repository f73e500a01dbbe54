"""The drop-in estimators beside scikit-learn's, the same call on the same data, taking turns in one run.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/estimators.py [part of a name ...]

Prints a table: median processor seconds of both, how many times as fast ours is, and the largest difference of the
coefficients, relative to the largest one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.decomposition
import sklearn.linear_model
from common import interleaved

from pursuit import estimators

Call = Callable[[Any], Any]
"""A function of the module that has the estimators: ours or theirs."""


class Theirs:
    """scikit-learn's, in one place."""

    OrthogonalMatchingPursuit = sklearn.linear_model.OrthogonalMatchingPursuit
    OrthogonalMatchingPursuitCV = sklearn.linear_model.OrthogonalMatchingPursuitCV
    orthogonal_mp_gram = staticmethod(sklearn.linear_model.orthogonal_mp_gram)
    sparse_encode = staticmethod(sklearn.decomposition.sparse_encode)
    SparseCoder = sklearn.decomposition.SparseCoder


def regression(samples: int, features: int, targets: int, relevant: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, coef = rng.standard_normal((samples, features)), np.zeros((features, targets))
    for target in range(targets):
        coef[rng.choice(features, relevant, replace=False), target] = rng.standard_normal(relevant)
    return X, X @ coef + 0.1 * rng.standard_normal((samples, targets))


def signals(count: int, features: int, atoms: int, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    D = rng.standard_normal((atoms, features))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    return D.astype(dtype), rng.standard_normal((count, features)).astype(dtype)


def cases() -> dict[str, Call]:
    X, y = regression(1000, 5000, 1, 50)
    A, B = regression(500, 300, 400, 20)
    C, z = regression(500, 2000, 1, 20)
    D, S = signals(4000, 64, 256)
    D4, S4 = D.astype(np.float32), S.astype(np.float32)
    G, DS = D @ D.T, D @ S.T
    wide, b = X[:, :3000].T @ X[:, :3000], X[:, :3000].T @ y
    found: dict[str, Call] = {
        "OrthogonalMatchingPursuit, 1000 x 5000, 50 features": lambda m: (
            m.OrthogonalMatchingPursuit(n_nonzero_coefs=50).fit(X, y[:, 0]).coef_
        ),
        "OrthogonalMatchingPursuit, 500 x 300, 400 targets, 20 features": lambda m: (
            m.OrthogonalMatchingPursuit(n_nonzero_coefs=20).fit(A, B).coef_
        ),
        "OrthogonalMatchingPursuit, 500 x 300, 400 targets, tol": lambda m: (
            m.OrthogonalMatchingPursuit(tol=6.0).fit(A, B).coef_
        ),
        "OrthogonalMatchingPursuitCV, 500 x 2000, up to 50 features": lambda m: (
            m.OrthogonalMatchingPursuitCV(max_iter=50).fit(C, z[:, 0]).coef_
        ),
        "orthogonal_mp_gram, 256 atoms, 4000 targets, 10 atoms": lambda m: m.orthogonal_mp_gram(
            G, DS, n_nonzero_coefs=10
        ),
        "orthogonal_mp_gram, 3000 atoms, 1 target, 50 atoms": lambda m: m.orthogonal_mp_gram(
            wide, b, n_nonzero_coefs=50
        ),
        "SparseCoder omp, 4000 signals, 64 x 256, 10 atoms": lambda m: m.SparseCoder(
            D, transform_n_nonzero_coefs=10
        ).transform(S),
        "SparseCoder omp, the same in float32": lambda m: m.SparseCoder(D4, transform_n_nonzero_coefs=10).transform(S4),
        "SparseCoder threshold, 4000 signals, 64 x 256": lambda m: m.SparseCoder(
            D, transform_algorithm="threshold", transform_alpha=0.5
        ).transform(S),
    }
    for algorithm in ("lasso_cd", "lasso_lars"):
        for positive in (False, True):
            name = f"sparse_encode {algorithm}{', positive' * positive}, 1000 signals, 64 x 256"
            how = {"algorithm": algorithm, "alpha": 0.5, "positive": positive}
            found[name] = lambda m, how=how: m.sparse_encode(S[:1000], D, **how)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    print("| | pursuit, s | scikit-learn, s | times as fast | difference |\n|---|---|---|---|---|")
    for name, call in cases().items():
        if sys.argv[1:] and not any(part in name for part in sys.argv[1:]):
            continue
        ours, theirs = np.asarray(call(estimators)), np.asarray(call(Theirs))
        difference = np.abs(ours - theirs).max() / np.abs(theirs).max()
        seconds = interleaved({"ours": lambda: call(estimators), "theirs": lambda: call(Theirs)}, warm=True)  # noqa: B023
        ratio = seconds["theirs"] / seconds["ours"]
        print(
            f"| {name} | {seconds['ours']:.4f} | {seconds['theirs']:.3f} | {ratio:.3g} | {difference:.0e} |", flush=True
        )


if __name__ == "__main__":
    main()
