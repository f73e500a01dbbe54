"""Best subsets with a proof: ours beside okridge, Gurobi and abess, in processor seconds of one thread.

`OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/subset.py [row ...]` prints a table. Gap: (value - lower) /
(value without columns - value). A peer that is not installed is left out; abess proves nothing.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import peer

import pursuit as ps

L2, GAP, LIMIT = 1e-3, 1e-4, 60.0


def correlated(n: int, p: int, k: int, rho: float, snr: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """Columns with the correlations of an autoregression, k of which are true."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    signal = X[:, np.arange(k) * p // k].sum(axis=1)
    y = signal + rng.standard_normal(n) * np.sqrt(signal.var() / snr)
    return X - X.mean(axis=0), y - y.mean(), k


def diabetes(k: int) -> tuple[np.ndarray, np.ndarray, int]:
    """All products of two features, without the square of a feature with two values."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures

    X, y = load_diabetes(return_X_y=True)
    Z = PolynomialFeatures(2, include_bias=False).fit_transform(X)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    R = np.corrcoef(Z.T)
    return Z[:, [j for j in range(Z.shape[1]) if not (abs(R[j, :j]) > 1 - 1e-9).any()]], y - y.mean(), k


ROWS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray, int]]] = {
    "500 x 100, rho .5": lambda: correlated(500, 100, 10, 0.5, 5),
    "1000 x 1000, rho .5": lambda: correlated(1000, 1000, 10, 0.5, 5),
    "2000 x 1000, rho .9": lambda: correlated(2000, 1000, 10, 0.9, 5),
    "6000 x 3000, rho .9": lambda: correlated(6000, 3000, 10, 0.9, 5),
    "2000 x 10000, rho .5": lambda: correlated(2000, 10_000, 10, 0.5, 5),
    "diabetes, k = 5": lambda: diabetes(5),
    "diabetes, k = 10": lambda: diabetes(10),
    "diabetes, k = 15": lambda: diabetes(15),
    "1000 x 200, rho .7, SNR 1": lambda: correlated(1000, 200, 10, 0.7, 1.0),
    "1000 x 200, rho .7, SNR .3": lambda: correlated(1000, 200, 10, 0.7, 0.3),
    "1000 x 200, rho .7, SNR .1": lambda: correlated(1000, 200, 10, 0.7, 0.1),
    "72 x 1500, k = 3": lambda: correlated(72, 1500, 3, 0.5, 5),
}


def ours(X: np.ndarray, y: np.ndarray, k: int) -> tuple[float, float]:
    base = y @ y / 2
    incumbent = ps.best(ps.LeastSquares(y), ps.Dictionary(X), k, l2=L2, stop=ps.Stop(iterations=0))
    assert isinstance(incumbent, ps.BestSubset)
    stop = ps.Stop(gap=GAP * (base - incumbent.value), rgap=None, iterations=None, seconds=LIMIT)
    r = ps.best(ps.LeastSquares(y), ps.Dictionary(X), k, l2=L2, stop=stop, start=incumbent)
    assert isinstance(r, ps.BestSubset)
    return r.value, r.lower


def okridge(X: np.ndarray, y: np.ndarray, k: int) -> tuple[float, float]:
    tree = peer("okridge.tree").BNBTree(X=X, y=y, lambda2=L2 / 2)
    value, _, gap, *_ = tree.solve(k=k, gap_tol=GAP, verbose=False, time_limit=LIMIT)
    value = (value + y @ y) / 2
    return value, value - gap * abs(value)


def gurobi(X: np.ndarray, y: np.ndarray, k: int) -> tuple[float, float]:
    gp = peer("gurobipy")
    with (
        gp.Env(params={"OutputFlag": 0, "Threads": 1, "TimeLimit": LIMIT, "MIPGap": 1e-6}) as env,
        gp.Model(env=env) as m,
    ):
        p = X.shape[1]
        b, z = m.addMVar(p, lb=-gp.GRB.INFINITY), m.addMVar(p, vtype="B")
        m.setObjective(0.5 * (b @ (X.T @ X + L2 * np.eye(p)) @ b) - (X.T @ y) @ b + y @ y / 2)
        m.addConstr(z.sum() <= k)
        for j in range(p):
            m.addGenConstrIndicator(z[j], False, b[j] == 0.0)
        m.optimize()
        return m.ObjVal, m.ObjBound


def abess(X: np.ndarray, y: np.ndarray, k: int) -> tuple[float, float]:
    model = peer("abess").LinearRegression(support_size=k, alpha=0.0, fit_intercept=False).fit(X, y)
    S = np.flatnonzero(model.coef_)
    b = np.linalg.solve(X[:, S].T @ X[:, S] + L2 * np.eye(len(S)), X[:, S].T @ y)
    return float(np.sum((y - X[:, S] @ b) ** 2) + L2 * b @ b) / 2, -np.inf


def contenders() -> Iterator[tuple[str, Any]]:
    yield "pursuit", ours
    for name, module, run in (
        ("okridge", "okridge.tree", okridge),
        ("Gurobi", "gurobipy", gurobi),
        ("abess", "abess", abess),
    ):
        if peer(module) is not None:
            yield name, run


def main(wanted: list[str]) -> None:
    for name, make in ROWS.items():
        if wanted and not any(word in name for word in wanted):
            continue
        X, y, k = make()
        for who, run in contenders():
            run(X[:, :3], y, 1)  # the first call imports
            began = time.process_time()
            try:
                value, lower = run(X, y, k)
            except Exception as problem:
                print(f"{name:28} {who:8} {str(problem)[:60]}", flush=True)
                continue
            gap = (value - max(lower, 0.0)) / (y @ y / 2 - value)
            seconds, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            proved = "nothing" if lower == -np.inf else f"{gap:.1e}"
            print(
                f"{name:28} {who:8} {seconds:7.2f} s   value {value:12.4f}   gap {proved:8} {memory:.1f} GB", flush=True
            )


if __name__ == "__main__":
    main(sys.argv[1:])
