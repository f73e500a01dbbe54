"""Random problems under the laws of `minimize`, and random signals of `encode` beside the plain pursuit, on all cores.

`make soak SECONDS=600` runs for ten minutes. A seed determines its case: even seeds are problems, odd ones batches of
signals. `python tools/soak.py --seed 12` runs one case and describes it. A case that breaks a law is made smaller, one
parameter after the other, as long as it breaks the same law; `--case` runs the case that is printed then.

The laws of a run, at every iteration:

- the estimated lower bound is not above f(x);
- f never rises where the update says so;
- weights of hulls sum to 1 within 1e-12 and are not negative, weights of cones are not negative;
- x is the combination of its atoms, and all numbers are finite.

A fifth of the designs are nearly dependent. At the end of a run no proved lower bound (that of `Result`, that of
`Result.check`, and those on the way) is above f anywhere that is known, nor above the exact value of the result, where
`pursuit.verify` has rules, nor above the exact minimum of quadratics over dictionaries (`tools/exact.py`). Each family
says how many gaps are proved to within 1.01 of the estimated one, or 1e-12 (4 units of roundoff in float32) of the
terms of f. At the end of a run by default, f is neither above f at the start nor above f(0), where 0 lies in the
domain, and `Result.check` agrees. Nothing is warned, and the only exception is UnboundedError, where the domain is
unbounded.

The laws of a code: it has the atoms and weights of the plain pursuit, unless rounding decides (`tests/codes.py`); and
in every case it has no more atoms than allowed, the first of equal columns, finite weights, and a residual that is not
longer than the signal.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import cache
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import pursuit as ps
from pursuit.arrays import Space
from pursuit.domains import Domain
from pursuit.run.begin import find_space
from pursuit.run.method import default_method

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from codes import DTYPES, METHODS, agree
from exact import minimum
from laws import ORACLES, UPDATES, sets

Case = dict[str, int]

PROBLEM = {
    "rows": 8, "columns": 9, "data": 14, "trap": 12, "scale": 5, "objective": 9, "set": 26, "radius": 5, "domain": 10,
    "update": 97, "oracle": 97, "refined": 2, "single": 6, "reference": 11,
}  # fmt: skip
SIGNALS = {
    "rows": 12, "columns": 24, "signals": 40, "method": 4, "dtype": 2, "order": 3, "trap": 8, "weights": 4, "atoms": 6,
    "each": 2, "tol": 4, "gram": 2, "scale": 3,
}  # fmt: skip
"""The parameters of a case: how many values each has. 0 is the simplest one."""

DEPENDENT = (3, 7, 8, 9, 10, 11)
"""Traps that make columns nearly dependent: equal ones, an intercept, a huge row."""

ITERATIONS = 5
"""Of the run whose update and oracle are drawn; the run by default and the reference have up to twice as many."""


PROVED: Counter[tuple[str, bool]] = Counter()
"""Results of this process by family, and whether their gap is proved as sharply as it was estimated."""

COMPARED: Counter[str] = Counter()
"""With what their bounds were compared."""


class BrokenLawError(AssertionError):
    """A law that does not hold."""


def require(holds: Any, law: str, *numbers: float) -> None:
    """Raise BrokenLawError unless the law holds."""
    if not holds:
        raise BrokenLawError(f"{law}: {', '.join(f'{number:.17g}' for number in numbers)}" if numbers else law)


def drawn(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng([seed, 0])
    table = SIGNALS if seed % 2 else PROBLEM
    case = {name: int(rng.integers(values)) for name, values in table.items()}
    if rng.random() < 0.5:  # half of the cases have nothing special in their numbers
        case |= {name: 0 for name in ("trap", "scale", "single") if name in case}
    if "set" in case and rng.random() < 0.7:  # dictionaries take less time than matrices and tensors
        case["set"] %= 5
    if "set" in case and rng.random() < 0.2:
        case |= {"set": case["set"] % 5, "trap": DEPENDENT[rng.integers(len(DEPENDENT))]}
    if case["trap"] == 10:  # float32 has no time stamps
        case |= {"single": 0}
    return {"seed": seed, **case}


# ---------------------------------------------------------------------------------------- numbers


@cache
def real_data() -> list[tuple[np.ndarray, np.ndarray]]:
    """scikit-learn's bundled sets, raw and scaled: features and targets."""
    from sklearn import datasets

    loads = (datasets.load_breast_cancer, datasets.load_wine, datasets.load_iris, datasets.load_digits)
    pairs = [datasets.load_diabetes(return_X_y=True, scaled=False), *(load(return_X_y=True) for load in loads)]
    data = []
    for X, y in pairs:
        deviations = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        data += [(X, y.astype(float)), ((X - X.mean(axis=0)) / deviations, y.astype(float))]
    return data


def numbers(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with columns that are not zero, and a target."""
    m, n, kind = case["rows"] + 1, case["columns"] + 1, case["data"]
    if kind < 4:
        X, t = rng.standard_normal((m, n)), rng.standard_normal(m)
        X, t = [(X, t), (np.rint(2 * X), np.rint(3 * t)), (X + 6.0, t), (np.exp(3 * X), np.exp(t))][kind]
    else:
        X, t = real_data()[kind - 4]
        rows, columns = rng.choice(len(X), m, replace=False), rng.choice(X.shape[1], min(n, X.shape[1]), replace=False)
        X, t = X[np.ix_(rows, columns)], t[rows]
    return spoiled(X, case["trap"], rng), 10.0 ** [0, 1, -1, 5, -5][case["scale"]] * t


def spoiled(X: np.ndarray, trap: int, rng: np.random.Generator) -> np.ndarray:
    """The matrix with a difficulty; no column is zero."""
    X, n = np.array(X, float), X.shape[1]
    X[0, ~X.any(axis=0)] = 1.0
    spread = np.exp(18 * rng.uniform(-1, 1, n))
    if trap == 3:  # pairs of nearly equal columns
        return X[:, np.arange(n) // 2] * (1 + 10.0 ** -rng.uniform(3, 10) * rng.standard_normal(X.shape))
    if trap == 6:
        return X * spread
    if trap == 8:
        X[1:] *= 1e-12
    if trap == 9:  # pairs of columns that differ in the last digits
        return X[:, np.arange(n) // 2] * (1 + 2.0**-52 * rng.integers(-3, 4, X.shape))
    if trap == 10:  # an intercept beside time stamps in nanoseconds
        X[:, 0] = 1.7e18 + 1e9 * np.arange(len(X))
    if trap == 11:  # low rank, but for noise
        k = (n + 1) // 2
        return X[:, :k] @ rng.standard_normal((k, n)) + 10.0 ** -rng.uniform(6, 15) * rng.standard_normal(X.shape)
    far = 600.0 + 100.0 * rng.standard_normal(len(X))
    replaced = {1: X[:, 0], 2: -X[:, 0], 4: 1.0, 5: 1e-9 * X[:, -1], 7: far, 10: 1.0}
    X[:, -1] = replaced.get(trap, X[:, -1])
    return X


# --------------------------------------------------------------------------------------- problems


def set_of(case: Case, X: np.ndarray, rng: np.random.Generator) -> ps.Atoms:
    """A set of atoms, mostly made of the matrix."""
    kind = case["set"]
    made: list[Callable[[], ps.Atoms]] = [
        lambda: ps.Dictionary(X, signed=True),
        lambda: ps.Dictionary(X),
        lambda: ps.Dictionary(sp.csc_array(X), signed=True),
        lambda: ps.Dictionary(X) | ps.SignedBasis(len(X)),
        lambda: ps.SignedBasis(X.shape[1]).through(X),
        lambda: ps.Groups(np.arange(X.shape[1]) // 2).through(X),
        lambda: ps.Box(-np.ones(X.shape[1]), np.ones(X.shape[1])).through(X),
    ]
    return made[kind]() if kind < len(made) else sets(rng)[kind - len(made)]


def objective_of(case: Case, t: np.ndarray, rng: np.random.Generator) -> ps.Objective:
    """An objective on arrays of the shape of t."""
    kind, flat = case["objective"], t.ravel()
    kind += int(rng.integers(4)) if kind == 8 else 0  # own functions take longer
    if kind >= 5 and t.size < 2:
        kind = 0  # classes need two
    if kind >= 10 and t.dtype == np.float32:
        kind = 9  # fourth powers leave the range of float32, and a barrier has few correct digits near the boundary
    size = float(np.abs(t).max()) or 1.0
    if kind in (2, 3):
        H = rng.standard_normal((t.size, t.size + 2 if kind == 2 else (t.size + 1) // 2))
        c = t if kind == 2 else (H @ rng.standard_normal(H.shape[1])).reshape(t.shape)
        return ps.Quadratic((H @ H.T).astype(t.dtype), c.astype(t.dtype)) if t.ndim == 1 else ps.LeastSquares(t)
    if kind == 5:
        labels = flat > np.sort(flat)[t.size // 2]
        labels[:2] = True, False
        return ps.Logistic(labels.reshape(t.shape).astype(t.dtype))
    if kind == 7 and t.shape[1:] == (3,):
        return ps.Multinomial(np.eye(3, dtype=t.dtype)[np.arange(len(t)) % 3])
    return {
        1: lambda: ps.LeastSquares(t, weights=rng.uniform(0.3, 3.0, t.shape)),
        4: lambda: ps.Huber(t, 0.3 * size),
        6: lambda: ps.Poisson(np.minimum(np.rint(np.abs(t)), 1e6)),
        8: lambda: ps.Smooth(lambda x: float(np.hypot(1, x - t).sum()), lambda x: (x - t) / np.hypot(1, x - t)),
        9: lambda: ps.Smooth(
            lambda x: float(np.hypot(size, x - t).sum()), lambda x: (x - t) / np.hypot(size, x - t), L=1 / size,
            infimum=0.0,
        ),
        10: lambda: ps.Smooth(
            lambda x: float((((x - t) / size) ** 4).sum()), lambda x: 4 * ((x - t) / size) ** 3 / size
        ),
        11: lambda: barrier(t, 1.25 * size),
    }.get(kind, lambda: ps.LeastSquares(t))()  # fmt: skip


def barrier(t: np.ndarray, size: float) -> ps.Objective:
    """A function that is finite within `size` of t in every entry: at 0, and not at most other points."""

    def value(x: np.ndarray) -> float:
        used = ((x - t) / size) ** 2
        return -float(np.log1p(-used).sum()) if (used < 1).all() else math.inf

    return ps.Smooth(value, lambda x: 2.0 * (x - t) / size**2 / (1.0 - ((x - t) / size) ** 2))


def domain_of(case: Case, A: ps.Atoms, dtype: Any) -> Domain:
    """A domain of multiples of the atoms, in some cases with an intercept."""
    A = [1.0, 5.0, 0.2, 100.0, 1000.0][case["radius"]] * A
    ones = ps.Dictionary(np.ones((*A.shape, 1), dtype))
    return [
        lambda: ps.conv(A), lambda: ps.lin(A), lambda: ps.cone(A), lambda: ps.conv(A) + ps.lin(ones),
        lambda: ps.cone(A) + ps.lin(ones), lambda: ps.lin(ones) + ps.conv(A), lambda: ps.conv(A) + ps.conv(0.5 * A),
        lambda: ps.conv(A) + ps.cone(A), lambda: ps.penalty(A), lambda: ps.penalty(A) + ps.lin(ones),
    ][case["domain"]]()  # fmt: skip


def serves(update: Any, f: ps.Objective, domain: Domain) -> bool:
    """Whether an update serves a problem: else it refuses to begin."""
    try:
        update.begin(f, domain, find_space(f, domain, None))
    except (TypeError, ValueError):
        return False
    return True


def allowed_updates(f: ps.Objective, domain: Domain) -> list[Any]:
    """The updates that serve a problem."""
    several = len(domain.parts) > 1
    if any(part.price for part in domain.parts):
        return [ps.FullyCorrective(), ps.FullyCorrective(several=8), ps.NormCorrective()]
    backtracking = ps.Backtracking()
    more = [ps.NormCorrective(inner=5), ps.NormCorrective(L=backtracking), ps.Plain(ps.ShortStep(L=backtracking))]
    served = [update for update in (*UPDATES, *more) if update is None or serves(update, f, domain)]
    if domain.bounded:
        return [*served, *([] if several else [ps.Plain(ps.OpenLoop())])]
    return [update for update in served if not isinstance(getattr(update, "step", None), ps.Monotone)]


def allowed_oracles(domain: Domain) -> list[Any]:
    """The oracles that serve a domain."""
    asked = [part.asked for part in domain.parts]
    listed = all(A.size is not None for A in asked)
    return [oracle for oracle in ORACLES if listed or not isinstance(oracle, ps.Approximate | ps.RandomAtom)]


def pick(choices: list[Any], number: int) -> Any:
    return choices[number % len(choices)]


class Problem:
    """The problem of a case, and the update, oracle and refinement to try on it."""

    def __init__(self, case: Case) -> None:
        rng = np.random.default_rng([case["seed"], 1])
        X, t = numbers(case, rng)
        if case["objective"] == 7 and len(X) > 2 and case["set"] < 7:  # three classes
            X, t = np.stack([X * s for s in rng.standard_normal(3)], axis=1), np.zeros((len(X), 3))
            case = case | {"set": case["set"] % 2}
        if case["single"] == 1:
            X, t = X.astype(np.float32), t.astype(np.float32)
        A = set_of(case, X, rng)
        t = t if A.shape == t.shape else rng.standard_normal(A.shape) * (float(np.abs(t).max()) or 1.0)
        t = t.astype(X.dtype if A.space is None else A.space.dtype)
        self.f, self.domain = objective_of(case, t, rng), domain_of(case, A, t.dtype)
        self.update = pick(allowed_updates(self.f, self.domain), case["update"])
        self.oracle = pick(allowed_oracles(self.domain), case["oracle"])
        self.refine = default_method(self.f, self.domain)[1] if case["refined"] else None
        self.space = Space.of(t)
        self.at_zero = self.f.value(self.space.zeros())
        self.holds_zero = all(not part.compact or part.A.symmetric for part in self.domain.parts)
        self.reference = case["reference"]

    def __repr__(self) -> str:
        method = f"{self.update!r}, {self.oracle!r}, refine={self.refine!r}"
        return f"{self.f!r} ({self.space.dtype}) over {self.domain!r} by {method}"

    def rounding(self, x: Any, value: float, grad: Any, terms: float) -> float:
        """The error of f(x) by rounding; x is a sum of vectors with norms that sum to `terms`."""
        length = self.space.norm(x)
        sizes = [abs(value), abs(self.at_zero), self.space.norm(grad) * (length + terms)]
        if isinstance(self.f, ps.Quadratic):
            sizes.append((self.f.L or 0.0) * length**2)
        moved = 8.0 * self.space.eps * terms  # x, where long atoms cancel
        return 64.0 * self.space.eps * sum(size for size in sizes if math.isfinite(size)) + (self.f.L or 0.0) * moved**2


class Run:
    """The laws of one run, and what it proves: the best lower bound, the lowest value with its error by rounding."""

    def __init__(self, problem: Problem, descends: bool) -> None:
        self.problem, self.descends = problem, descends
        self.lower, self.before, self.slack, self.largest, self.gap = -math.inf, math.inf, 0.0, 0.0, math.inf
        self.best: tuple[float, float] = (math.inf, 0.0)

    def __call__(self, s: ps.State) -> None:
        problem, w, blocks = self.problem, s.active.weights, s.active.blocks
        norms = np.array([a.norm(problem.space) for a in s.active.atoms])
        hulls = np.array([part.compact for part in problem.domain.parts])[blocks]  # there weights are digits of 1
        slack = problem.rounding(s.x, s.value, s.grad, float((np.abs(w) + hulls) @ norms))
        require(math.isfinite(s.value) and not math.isnan(s.gap), "a value is not finite", s.value, s.gap)
        require(np.isfinite(s.x).all() and np.isfinite(s.grad).all(), "x or the gradient is not finite")
        require(s.lower <= s.value, "the estimated bound is above the value", s.lower, s.value)
        for b, part in enumerate(problem.domain.parts):
            own = w[blocks == b]
            require(not part.nonnegative or (own >= 0).all(), "a weight is negative", *own[own < 0])
            total = float(own.sum())
            require(not part.compact or abs(total - 1.0) <= 1e-12, "the weights of a hull do not sum to 1", total)
        made = s.active.synthesize(w)
        distance, size = problem.space.norm(s.x - made), float(np.abs(w) @ norms)
        self.largest = max(self.largest, size)  # x is updated, so it has the rounding errors of earlier ones
        require(distance <= 1e4 * problem.space.eps * self.largest, "x is not the sum of its atoms", distance, size)
        slack += distance * (problem.space.norm(s.grad) + (problem.f.L or 0.0) * distance)
        if self.descends:
            require(s.value <= self.before + self.slack + slack, "f rises", self.before, s.value)
        self.lower = max(self.lower, s.run.certify.proved(s.value))
        self.before, self.slack, self.gap = s.value, slack, s.gap
        self.best = min(self.best, (s.value, slack))


def check_problem(case: Case) -> None:
    """Raise BrokenLawError where a law does not hold for the problem of a case."""
    problem = Problem(case)
    f, domain, update = problem.f, problem.domain, problem.update
    runs = [Run(problem, getattr(update, "descends", True)), Run(problem, True)]
    unbounded = not domain.bounded
    try:
        states = ps.iterate(f, domain, update, oracle=problem.oracle, refine=problem.refine)
        for state in islice(states, ITERATIONS):
            runs[0](state)
            if state.stationary:
                break
    except ps.UnboundedError:
        require(unbounded, "a bounded problem is said to be unbounded")
    except ValueError as refused:
        if "not finite at 0" in str(refused):  # the hull has no point where f is finite, or none was found
            return
        require("infinite at iteration" in str(refused) and not runs[0].descends, f"a problem is refused: {refused}")
    try:
        r = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-9, iterations=2 * ITERATIONS), callback=runs[1])
    except ValueError as refused:
        require("not finite at 0" in str(refused), f"a problem is refused: {refused}")
        return
    require(unbounded or r.status is not ps.Status.UNBOUNDED, "a bounded problem is said to be unbounded")
    require("convex" not in r.status.value, "a convex function is said not to be convex")
    slack = runs[1].slack
    if math.isfinite(r.value):
        first, at_zero = float(r.trace.value[0]), problem.at_zero if problem.holds_zero else math.inf
        require(r.value <= first + slack, "f ends above f at the start", r.value, first)
        require(r.value <= at_zero + slack, "f ends above f(0)", r.value, at_zero)
    check = r.check()
    check_proof(problem, r, runs[1], [r.lower, check.lower, *(run.lower for run in runs)])
    require(check.feasible, "check finds the weights infeasible", float(r.weights.sum()))
    terms = sum(abs(w) * a.norm(problem.space) for w, a in zip(r.weights, r.atoms, strict=True))
    distance, rounding = check.error * problem.space.norm(r.x), 1e4 * problem.space.eps * terms
    require(distance <= rounding, "check finds another point", distance, terms)
    slack += (f.L or 0.0) * rounding**2  # all that is left where the gradient is 0
    again = sum((w * a.dense(problem.space) for w, a in zip(r.weights, r.atoms, strict=True)), problem.space.zeros())
    steepness = max(problem.space.norm(f.value_and_grad(x)[1]) for x in (r.x, problem.space.put(again)))
    slack += steepness * distance if math.isfinite(steepness) else math.inf  # where f is steep and long atoms cancel
    require(abs(check.value - r.value) <= slack, "check finds another value", check.value, r.value)
    values = [run.best for run in runs] + [elsewhere(problem, r)]
    best, rounding = min(values)
    for lower in (r.lower, check.lower, *(run.lower for run in runs)):
        require(lower <= best + rounding, "the lower bound is above f somewhere", lower, best)


def check_proof(problem: Problem, r: ps.Result, run: Run, lowers: list[float]) -> None:
    """Compare the bounds with exact numbers, and count that of the result in its family."""
    family = f"{type(problem.f).__name__} over {' + '.join(type(part).__name__ for part in problem.domain.parts)}"
    if math.isfinite(run.gap) and not problem.f.singular:
        terms = max(1e-12, 4.0 * problem.space.eps if problem.space.eps > 1e-9 else 0.0) / (64.0 * problem.space.eps)
        PROVED[family, r.gap <= 1.01 * run.gap + terms * run.slack] += 1
    try:
        proof = r.certificate
    except ValueError:  # no rule
        return
    lower = max(*lowers, proof.lower)
    if proof.trusted or proof.moved:
        return
    COMPARED["bounds compared with the exact value of the result"] += 1
    require(lower <= proof.value, "a lower bound is above f in rational numbers", lower, proof.value)
    best = minimum(proof)
    if best is not None:
        COMPARED["bounds compared with the exact minimum"] += best[1]
        require(lower == -math.inf or Fraction(lower) <= best[0], "a lower bound is above f*", lower, float(best[0]))


def elsewhere(problem: Problem, r: ps.Result) -> tuple[float, float]:
    """In some cases, a value of f in the domain by another update, from the end of a run on, with its error."""
    if problem.reference < 9:
        return math.inf, 0.0
    run, stop = Run(problem, False), ps.Stop(rgap=1e-12, iterations=2 * ITERATIONS)
    other = ps.NormCorrective() if problem.reference == 9 else ps.FullyCorrective(several=8)
    ps.minimize(problem.f, problem.domain, other, start=r, stop=stop, callback=run)
    return run.best


# ---------------------------------------------------------------------------------------- signals


class Signals:
    """The dictionary, the signals and the options of a case."""

    def __init__(self, case: Case) -> None:
        rng, dtype = np.random.default_rng([case["seed"], 1]), DTYPES[case["dtype"]]
        d, n, k = case["rows"] + 1, case["columns"] + 1, case["signals"] + 1
        integers = case["scale"] == 2  # which have ties
        D = rng.standard_normal((d, n)) * np.exp(0.5 * rng.standard_normal(n))
        D = spoiled(np.rint(2 * D) if integers else D, case["trap"], rng).astype(dtype)
        Y = (rng.standard_normal((k, d)) * [1.0, 1e-5, 3.0][case["scale"]]).astype(dtype)
        Y = np.rint(Y) if integers else Y
        atoms: Any = case["atoms"] + 1 if case["atoms"] < 5 else min(d, n)
        self.atoms = rng.integers(1, atoms + 1, k) if case["each"] else atoms
        lengths = np.linalg.norm(Y, axis=1)
        self.tol = [None, 0.3 * float(lengths.mean()), lengths * rng.uniform(0, 1, k), 0.0][case["tol"]]
        self.weights = None
        if case["weights"]:
            kinds = [np.ones((k, d)), rng.exponential(size=(k, d)), rng.random((k, d)) < 0.8]
            weights = self.weights = kinds[case["weights"] - 1].astype(dtype)
            seen = [np.linalg.norm(np.sqrt(w)[:, None] * D, axis=0).min() for w in weights]
            weights[np.array(seen) == 0.0] = 1.0  # an atom that a signal does not see has no direction
            Y = np.where(weights > 0, Y, np.nan) if case["weights"] == 3 else Y
        self.gram = D.T @ D if case["gram"] and self.weights is None else None
        strided = np.repeat(D, 2, axis=1)[:, ::2], Y[::-1][::-1]
        self.D, self.Y = [(D, Y), (np.asfortranarray(D), np.asfortranarray(Y)), strided][case["order"]]

    def residuals(self, codes: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
        """The norms of the residuals and of the signals, weighted."""
        root = 1.0 if self.weights is None else np.sqrt(self.weights.astype(float))
        known = np.where(np.isnan(self.Y), 0.0, self.Y).astype(float)
        left = known - codes.toarray().astype(float) @ self.D.T.astype(float)
        return np.linalg.norm(root * left, axis=1), np.linalg.norm(root * known, axis=1)


def check_signals(case: Case) -> None:
    """Raise BrokenLawError where a law does not hold for the signals of a case."""
    s, method = Signals(case), METHODS[case["method"]]
    try:
        codes = ps.encode(
            s.D, s.Y, atoms=s.atoms, tol=s.tol, method=method, gram=s.gram, weights=s.weights, n_jobs=1
        )  # fmt: skip
    except ValueError as refused:
        require("too short" in str(refused), f"encode refuses: {refused}")  # lengths beyond the range of the type
        return
    require(np.isfinite(codes.data).all(), "a weight is not finite")
    require((np.diff(codes.indptr) <= np.broadcast_to(s.atoms, len(s.Y))).all(), "a code has too many atoms")
    later = np.setdiff1d(codes.indices, np.unique(s.D, axis=1, return_index=True)[1])
    require(not len(later), "the later of two equal columns is taken", *later)
    left, size = s.residuals(codes)
    worst = int((left - size).argmax())
    longest = size * (1 + 1e3 * np.finfo(s.D.dtype).eps)
    require((left <= longest).all(), "a residual is longer than its signal", left[worst], size[worst])
    try:
        agree(codes, s.D, s.Y, s.atoms, -1.0 if s.tol is None else s.tol, method, s.weights)
    except AssertionError as difference:
        raise BrokenLawError("a code is not that of the plain pursuit: " + " ".join(str(difference).split())) from None


# ------------------------------------------------------------------------------------------ cases


def broken_law(case: Case) -> str | None:
    """The law that a case breaks, or None; an exception counts as a law, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            (check_signals if case["seed"] % 2 else check_problem)(case)
        except BrokenLawError as broken:
            return str(broken)
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(at.filename).name}, {at.name}"
            return f"{type(error).__name__} in {place}: {' '.join(str(error).split())}"
    return None


def shrunk(case: Case, law: str) -> Case:
    """A smaller case that breaks the same law: each parameter is lowered as far as that goes."""
    name_of = law.partition(":")[0]
    smaller = True
    while smaller:
        smaller = False
        for name in [name for name in case if name != "seed"]:
            for value in sorted({0, 1, case[name] // 2, case[name] - 1}):
                trial = case | {name: value}
                if 0 <= value < case[name] and (broken_law(trial) or "").partition(":")[0] == name_of:
                    case, smaller = trial, True
                    break
    return case


def described(case: Case) -> str:
    """A case in words."""
    given = json.dumps({name: value for name, value in case.items() if value or name == "seed"})
    try:
        what = f"\n  {Problem(case)!r}" if case["seed"] % 2 == 0 else ""
    except Exception as error:
        what = f"\n  which cannot be made: {error}"
    return f"{given}{what}"


def work(
    worker: int, workers: int, first: int, seconds: float
) -> tuple[Counter[str], list[int], Counter[tuple[str, bool]]]:
    """The cases of one process: how many problems and signals, how often each law was broken, the seeds, PROVED."""
    counts: Counter[str] = Counter()
    seeds, end = [], time.monotonic() + seconds
    for turn in count(worker, workers):  # a problem and a batch of signals in turn
        if time.monotonic() > end:
            break
        for seed in (first + 2 * turn, first + 2 * turn + 1):
            case = drawn(seed)
            law = broken_law(case)
            counts["signals" if seed % 2 else "problems"] += case["signals"] + 1 if seed % 2 else 1
            if law is not None:
                name = law.partition(":")[0]
                seeds.append(seed)
                counts[f"broken: {name}"] += 1
                if counts[f"broken: {name}"] == 1:
                    small = shrunk(case, law)
                    print(f"seed {seed}: {law}\n  shrunk: {described(small)}\n  {broken_law(small)}", flush=True)
    return counts + COMPARED, seeds, PROVED


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="run the case of one seed, say what it is, and shrink it if it fails")
    parser.add_argument("--case", type=json.loads, help="run one case, as it was printed")
    options = parser.parse_args(arguments)
    if options.seed is not None or options.case is not None:
        case = drawn(options.seed) if options.case is None else dict.fromkeys([*PROBLEM, *SIGNALS], 0) | options.case
        law = broken_law(case)
        print(f"{described(case)}\n{law or 'all laws hold'}")
        if law is not None and options.case is None:
            small = shrunk(case, law)
            print(f"shrunk: {described(small)}\n{broken_law(small)}")
        return law is not None
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        same = [[value] * options.jobs for value in (options.jobs, options.first, options.seconds)]
        outcomes = list(pool.map(work, range(options.jobs), *same))
    counts = sum((counts for counts, _, _ in outcomes), Counter[str]())
    proved = sum((families for _, _, families in outcomes), Counter[tuple[str, bool]]())
    seeds = sorted(seed for _, broken, _ in outcomes for seed in broken)
    for family in sorted({family for family, _ in proved}):
        sharp, rest = proved[family, True], proved[family, False]
        print(f"{sharp:>9}  of {sharp + rest} gaps ({sharp / (sharp + rest):.1%}) are as sharp as estimated: {family}")
    sharp = sum(count for (_, good), count in proved.items() if good)
    print(f"{sharp:>9}  of {proved.total()} in all ({sharp / max(1, proved.total()):.2%})")
    print("\n".join(f"{number:>9}  {name}" for name, number in sorted(counts.items(), key=lambda item: item[0])))
    print(f"seeds that broke a law: {seeds}" if seeds else "no law was broken")
    return bool(seeds)


if __name__ == "__main__":
    sys.exit(main())
