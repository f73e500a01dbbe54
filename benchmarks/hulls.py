"""Problems over an L1 ball: least squares and logistic regression, to the same accuracy as the peers.

The peers solve the penalised problem; the ball's radius is the L1 norm of its solution, so that both have the same
solution. Accuracy is that of the constrained problem, f(w) - f* relative to f*, with w scaled back into the ball. Every
contender, ours too, runs with the loosest tolerance of 1e-1, 1e-2, ..., 1e-10 that reaches it.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import Case, Contender, NotThereError, peer

import pursuit as ps

ACCURACY = 1e-4
TOLERANCES = [10.0**-e for e in range(1, 11)]
CAP = 10.0
"""Seconds after which a Frank-Wolfe run of a peer is stopped."""


@dataclass
class Problem:
    """min f(Xw) over ||w||_1 <= radius, with a tight solution of the penalised form as the reference."""

    X: np.ndarray
    f: ps.Objective
    tight: np.ndarray

    def __post_init__(self) -> None:
        self.radius = float(np.abs(self.tight).sum())
        self.best = self.solve(1e-11).value
        self.tolerances: list[str] = []
        self.notes: list[str] = []

    def solve(self, rgap: float) -> ps.Result:
        A = ps.Dictionary(self.X, signed=True)
        return ps.minimize(self.f, ps.conv(self.radius * A), stop=ps.Stop(rgap=rgap))

    def error(self, coef: np.ndarray) -> float:
        w = coef.ravel() * min(1.0, self.radius / (float(np.abs(coef).sum()) or 1.0))
        return float(self.f.value(self.X @ w)) / self.best - 1.0

    def loosest(self, solve: Callable[[float], Any]) -> float:
        """The loosest tolerance with which `solve` is accurate enough."""
        for tol in TOLERANCES:
            answer = solve(tol)
            if self.error(np.asarray(getattr(answer, "coef_", getattr(answer, "coef", None)))) <= ACCURACY:
                return tol
        raise NotThereError("no tolerance reaches 1e-4")

    def all_notes(self) -> list[str]:
        return [f"tolerances: {', '.join(self.tolerances)}", *self.notes]


def contender(name: str, problem: Problem, solve: Callable[[float], Any] | None) -> Contender:
    """The contender with its tolerance chosen, which is noted, and so is the time that its first calls compiled."""
    if solve is None:
        return Contender(name, None)
    try:
        began = time.perf_counter()
        tol = problem.loosest(solve)
        cold = time.perf_counter() - began
        problem.loosest(solve)
        compiling = 2.0 * cold - (time.perf_counter() - began)
    except Exception as reason:
        message = str(reason)
        return Contender(name, lambda: _give_up(message))
    problem.tolerances.append(f"{name} {tol:g}")
    if compiling > 1.0:
        problem.notes.append(f"{name} compiled for {compiling:.1f} s at first, which is not in the table")
    return Contender(name, lambda: solve(tol))


def _give_up(message: str) -> None:
    raise NotThereError(message)


def ours(problem: Problem) -> list[Contender]:
    return [
        contender("pursuit", problem, problem.solve),
        Contender("pursuit, certified gap of 1e-8", lambda: problem.solve(1e-8), same=problem.tight),
    ]


def estimator(module: str, make: Callable[[Any, float], Any], X: np.ndarray, y: np.ndarray) -> Any:
    """tol -> fitted estimator of the peer, or None where it is missing."""
    found = peer(module)
    return found and (lambda tol: make(found, tol).fit(X, y))


# ---------------------------------------------------------------------- least squares


def frank_wolfe(problem: Problem, y: np.ndarray, variant: str) -> Contender:
    """copt's Frank-Wolfe, until it is accurate enough or the time is up."""
    name, copt, ball = f"copt Frank-Wolfe, {variant}", peer("copt"), peer("copt.constraint")
    if not (copt and ball):
        return Contender(name, None)
    X, set_ = problem.X, ball.L1Ball(problem.radius)

    def value_and_grad(w: np.ndarray) -> tuple[float, np.ndarray]:
        residual = X @ w - y
        return 0.5 * float(residual @ residual), X.T @ residual

    def run() -> np.ndarray:
        c = X.T @ y
        j, values, end = int(np.abs(c).argmax()), [np.inf], time.perf_counter() + CAP
        start = np.zeros(X.shape[1])
        start[j] = problem.radius * np.sign(c[j])

        def watch(now: dict[str, Any]) -> bool:
            values.append(now["f_next"])
            return values[-1] > (1.0 + ACCURACY) * problem.best and time.perf_counter() < end

        lmo = set_.lmo_pairwise if variant == "pairwise" else set_.lmo
        with contextlib.redirect_stdout(io.StringIO()):
            r = copt.minimize_frank_wolfe(
                value_and_grad, start, lmo, x0_rep=(np.sign(c[j]), j), variant=variant, jac=True,
                max_iter=10**6, callback=watch,
            )  # fmt: skip
        error = values[-1] / problem.best - 1.0
        if error > ACCURACY:
            raise NotThereError(f"not there after {CAP:g} s (error {error:.0e})")
        return np.asarray(r.x)

    return Contender(name, run, once=True)


def least_squares(threads: int) -> Case:
    from sklearn.linear_model import Lasso

    rng, (m, n) = np.random.default_rng(0), (2000, 10_000)
    X, w = np.asfortranarray(rng.standard_normal((m, n))), np.zeros(n)
    w[rng.choice(n, 45, replace=False)] = rng.standard_normal(45)
    y = X @ w
    y += 0.5 * np.linalg.norm(y) / np.sqrt(m) * rng.standard_normal(m)
    alpha = 0.105 * float(np.abs(X.T @ y).max()) / m
    options = {"alpha": alpha, "fit_intercept": False}
    tight = Lasso(**options, tol=1e-13, max_iter=100_000).fit(X, y).coef_
    problem = Problem(X, ps.LeastSquares(y), tight)
    peers = {
        "scikit-learn Lasso": ("sklearn.linear_model", lambda p, tol: p.Lasso(**options, copy_X=False, tol=tol)),
        "celer Lasso": ("celer", lambda p, tol: p.Lasso(**options, tol=tol)),
        "skglm Lasso": ("skglm", lambda p, tol: p.Lasso(**options, tol=tol)),
    }
    contenders = [
        *ours(problem),
        *(contender(name, problem, estimator(*how, X, y)) for name, how in peers.items()),
        *(frank_wolfe(problem, y, variant) for variant in ("pairwise", "vanilla")),
    ]
    active = int(np.count_nonzero(tight))
    title = f"l1: least squares over an L1 ball, {m} x {n:,}, {active} active, to {ACCURACY:g}"
    return Case("l1", title, contenders, problem.all_notes())


# ---------------------------------------------------------------------- logistic regression


def logistic(threads: int) -> Case:
    rng, (m, n) = np.random.default_rng(1), (200, 20_000)
    X, w = np.asfortranarray(rng.standard_normal((m, n))), np.zeros(n)
    w[rng.choice(n, 20, replace=False)] = rng.standard_normal(20)
    y = np.sign(X @ w + 0.5 * rng.standard_normal(m))
    penalty = 0.2 * float(np.abs(X.T @ y).max())
    options = {"C": 1.0 / penalty, "fit_intercept": False}
    liblinear = {"l1_ratio": 1.0, "solver": "liblinear", "max_iter": 10_000}

    from sklearn.linear_model import LogisticRegression

    tight = LogisticRegression(**options, **liblinear, tol=1e-9).fit(X, y).coef_.ravel()
    problem = Problem(X, ps.Logistic(y), tight)
    peers = {
        "celer logistic": ("celer", lambda p, tol: p.LogisticRegression(**options, tol=tol)),
        "skglm logistic": (
            "skglm", lambda p, tol: p.SparseLogisticRegression(alpha=penalty / m, fit_intercept=False, tol=tol),
        ),
        "scikit-learn, liblinear": (
            "sklearn.linear_model", lambda p, tol: p.LogisticRegression(**options, **liblinear, tol=tol),
        ),
    }  # fmt: skip
    contenders = [
        *ours(problem),
        *(contender(name, problem, estimator(*how, X, y)) for name, how in peers.items()),
    ]
    active = int(np.count_nonzero(tight))
    title = f"logistic: over an L1 ball, {m} x {n:,}, {active} active, to {ACCURACY:g}"
    return Case("logistic", title, contenders, problem.all_notes())


warnings.filterwarnings("ignore")  # peers tell that a loose tolerance was not reached, and of their own future

CASES: dict[str, Callable[[int], Case]] = {"l1": least_squares, "logistic": logistic}
