"""Small best-subset problems of every kind, and their minima by brute force."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

import pursuit as ps


@dataclass
class Small:
    kind: str
    f: Any
    domain: Any
    k: int
    l2: float
    units: list
    X: np.ndarray
    Z: np.ndarray
    positive: bool

    def fit(self, chosen):
        """The least value with these units, by other means than the package's."""
        places = [j for unit in chosen for j in self.units[unit]]
        A = np.concatenate([self.X[:, places], self.Z], axis=1)
        ridge = np.append(np.full(len(places), self.l2), np.zeros(self.Z.shape[1]))
        if A.shape[1] == 0:
            return self.f.value(np.zeros(self.f.y.shape))
        if isinstance(self.f, ps.LeastSquares):
            s = np.sqrt(np.broadcast_to(self.f.weights, self.f.y.shape)).ravel()
            rows = np.concatenate([s[:, None] * A, np.diag(np.sqrt(ridge))])
            target = np.append(s * self.f.y.ravel(), np.zeros(A.shape[1]))
            if self.positive:  # an uncounted column has both signs
                rows = np.concatenate([rows, -rows[:, len(places) :]], axis=1)
                return nnls(rows, target)[1] ** 2 / 2
            return float(np.sum((target - rows @ np.linalg.lstsq(rows, target)[0]) ** 2)) / 2

        norms = np.linalg.norm(A, axis=0)
        A, ridge = A / norms, ridge / norms**2

        def value(b):
            v, g = self.f.value_and_grad(A @ b)
            return v + ridge @ (b * b) / 2, A.T @ g + ridge * b

        bounds = [(0, None) if self.positive and j < len(places) else (None, None) for j in range(A.shape[1])]
        options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 2000}
        return minimize(value, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds, options=options).fun

    def all_values(self):
        """The values of all subsets of k units, or of all units where there are fewer."""
        size = min(self.k, len(self.units))
        return {S: self.fit(S) for S in itertools.combinations(range(len(self.units)), size)}


KINDS = ["plain", "groups", "positive", "outputs", "wide", "logistic", "poisson", "huber", "logistic groups"]


def draw(seed):
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    n, p, k = int(rng.integers(8, 40)), int(rng.integers(3, 10)), int(rng.integers(1, 5))
    if kind == "wide":
        n, p, k = int(rng.integers(4, 8)), int(rng.integers(8, 14)), int(rng.integers(1, 4))
    if kind in ("logistic", "poisson", "huber", "logistic groups"):
        n, p, k = n + 10, min(p, 7), min(k, 3)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * rng.standard_normal((p, p)))
    if rng.random() < 0.3:
        X = rng.integers(-1, 2, size=(n, p)) + 0.0
        X[0] += ~X.any(axis=0)  # ties, but no column of zeros
    elif rng.random() < 0.5:
        X = X * 10.0 ** rng.integers(-2, 3, size=p)
    if p > 2 and rng.random() < 0.25:
        X[:, p - 1] = X[:, 0] * rng.choice([1.0, -1.0, 2.0])
    l2 = float(rng.choice([0.0, 0.0, 1e-3, 1.0]))
    truth = (X / np.linalg.norm(X, axis=0))[:, : min(3, p)].sum(axis=1) * 2.0
    Z = np.ones((n, 1)) if rng.random() < 0.4 else np.zeros((n, 0))
    units = [[j] for j in range(p)]
    A, y = ps.Dictionary(X), truth + rng.standard_normal(n) + 5.0 * Z.sum(axis=1)
    f = ps.LeastSquares(y, weights=rng.uniform(0.5, 2.0, n) if rng.random() < 0.3 else None)
    if "groups" in kind:
        labels = np.sort(np.append(np.arange((p + 1) // 2), rng.integers(0, (p + 1) // 2, p - (p + 1) // 2)))
        units = [list(np.flatnonzero(labels == g)) for g in range(labels.max() + 1)]
        A = ps.Groups(labels).through(X)
    if kind == "outputs":
        q = int(rng.integers(2, 4))
        f = ps.LeastSquares(truth[:, None] * rng.standard_normal(q) + rng.standard_normal((n, q)))
        A = ps.Groups(np.repeat(np.arange(p), q)).through(X, columns=q)
        units = [list(range(j * q, (j + 1) * q)) for j in range(p)]
        X, Z = np.kron(X, np.eye(q)), np.zeros((n * q, 0))
    if "logistic" in kind:
        labels = truth - np.median(truth) + 1.5 * rng.standard_normal(n) > 0
        labels[:2] = True, False
        f, l2 = ps.Logistic(labels), l2 or float(rng.choice([0.0, 0.1]))
    if kind == "poisson":
        f = ps.Poisson(rng.poisson(np.exp(0.5 + 0.2 * truth)))
    if kind == "huber":
        f = ps.Huber(truth + rng.standard_t(2, n), width=1.0)
    positive = kind == "positive"
    domain = (ps.cone if positive else ps.lin)(A)
    if Z.shape[1]:
        domain = domain + ps.lin(ps.Dictionary(Z), counted=False)
    return Small(kind, f, domain, min(k, len(units)), l2, units, X, Z, positive)
