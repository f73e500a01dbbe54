"""One signal at a time: orthogonal matching pursuit by `encode` and by the loop, and what a screened call costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from common import Case, Contender, dictionary, peer, signal

import pursuit as ps
from pursuit import encode

ENCODE, OURS, OLS = "pursuit encode", "pursuit", "pursuit encode, ols"


def omp(A: ps.Atoms, y: np.ndarray, k: int, oracle: Any = None) -> ps.Result:
    return ps.minimize(ps.LeastSquares(y), ps.lin(A), ps.FullyCorrective(), stop=ps.Stop(atoms=k), oracle=oracle)


def ours(D: np.ndarray, y: np.ndarray, k: int, threads: int) -> list[Contender]:
    reused, rows = ps.Dictionary(D).screened(), np.ascontiguousarray(D)
    return [
        Contender(ENCODE, lambda: encode(D, y[None, :], atoms=k, n_jobs=threads), OURS),
        Contender("pursuit encode, C order", lambda: encode(rows, y[None, :], atoms=k, n_jobs=threads), OURS),
        Contender(OURS, lambda: omp(ps.Dictionary(D), y, k)),
        Contender("pursuit, C order", lambda: omp(ps.Dictionary(rows), y, k), OURS),
        Contender("pursuit, A.screened()", lambda: omp(ps.Dictionary(D).screened(), y, k), OURS),
        Contender("pursuit, reused A.screened()", lambda: omp(reused, y, k), OURS),
    ]


def sklearn(D: np.ndarray, y: np.ndarray, k: int) -> Contender:
    linear = peer("sklearn.linear_model")
    run = linear and (lambda: linear.orthogonal_mp(D, y, n_nonzero_coefs=k, precompute=False))
    return Contender("scikit-learn orthogonal_mp", run, OURS)


def spams_omp(D: np.ndarray, y: np.ndarray, k: int, threads: int) -> list[Contender]:
    """SPAMS' omp is orthogonal least squares: its supports are those of our ols."""
    spams, Y = peer("spams"), np.asfortranarray(y[:, None])
    run = spams and (lambda: spams.omp(Y, D, L=k, eps=0.0, lambda1=0.0, numThreads=threads).T)
    return [
        Contender("SPAMS omp (chooses as ols)", run, OLS),
        Contender(OLS, lambda: encode(D, y[None, :], atoms=k, method="ols", n_jobs=threads)),
    ]


def pylops_omp(D: np.ndarray, y: np.ndarray, k: int) -> Contender:
    pylops, sparsity = peer("pylops"), peer("pylops.optimization.sparsity")
    run = pylops and sparsity and (lambda: sparsity.omp(pylops.MatrixMult(D), y, niter_outer=k, sigma=0.0)[0])
    return Contender("PyLops omp", run, OURS)


def one(key: str, what: str, kind: str, shape: tuple[int, int], k: int, threads: int) -> Case:
    rng = np.random.default_rng(0)
    D = dictionary(kind, *shape, rng)
    y = rng.standard_normal(shape[0]) if "noise" in what else signal(D, k, rng)
    contenders = [*ours(D, y, k, threads), sklearn(D, y, k)]
    if D.size < 10**7:  # SPAMS forms the whole Gram matrix
        contenders += [*spams_omp(D, y, k, threads), pylops_omp(D, y, k)]
    return Case(key, f"{key}: {what}, {shape[0]} x {shape[1]:,}, {k} atoms", contenders)


def gram(threads: int) -> Case:
    rng, k = np.random.default_rng(0), 50
    D = dictionary("random", 1000, 5000, rng)
    y, G, linear = signal(D, k, rng), D.T @ D, peer("sklearn.linear_model")
    contenders = [
        Contender(ENCODE, lambda: encode(D, y[None, :], atoms=k, gram=G, n_jobs=threads), OURS),
        Contender(OURS, lambda: omp(ps.Dictionary(D), y, k)),
        Contender(
            "scikit-learn orthogonal_mp_gram",
            linear and (lambda: linear.orthogonal_mp_gram(G, D.T @ y, n_nonzero_coefs=k)),
            OURS,
        ),
        Contender(
            "scikit-learn, precompute=True",
            linear and (lambda: linear.orthogonal_mp(D, y, n_nonzero_coefs=k, precompute=True)),
            OURS,
        ),
    ]
    return Case("gram", "gram: the Gram matrix given, 1000 x 5,000, 50 atoms", contenders)


def call(key: str, kind: str, threads: int) -> Case:
    rng = np.random.default_rng(0)
    D = dictionary(kind, 2000, 50_000, rng)
    g = signal(D, 50, rng)
    A = ps.Dictionary(D, signed=True)
    S = A.screened()

    def chosen(atoms: ps.Atoms) -> np.ndarray:
        row = np.zeros(D.shape[1])
        row[atoms.lmo(g).source] = 1.0
        return row

    contenders = [
        Contender("pursuit, screened", lambda: chosen(S)),
        Contender("pursuit, Exact()", lambda: chosen(A), "pursuit, screened"),
        Contender("NumPy: D.T @ g alone", lambda: float((D.T @ g)[0])),
    ]
    return Case(key, f"{key}: one oracle call, {kind} columns, 2000 x 50,000", contenders)


CASES: dict[str, Callable[[int], Case]] = {
    "a50": lambda threads: one("a50", "one signal", "random", (1000, 5000), 50, threads),
    "a200": lambda threads: one("a200", "one signal", "random", (1000, 5000), 200, threads),
    "d": lambda threads: one("d", "one signal", "random", (2000, 50_000), 100, threads),
    "toeplitz": lambda threads: one("toeplitz", "Toeplitz 0.9 design", "Toeplitz 0.9", (1000, 5000), 50, threads),
    "noise": lambda threads: one("noise", "a signal of noise only", "random", (1000, 5000), 50, threads),
    "gram": gram,
    "call": lambda threads: call("call", "random", threads),
    "heavy": lambda threads: call("heavy", "heavy tails", threads),
}
