"""One signal at a time: orthogonal matching pursuit with each oracle, against the plain way.

`python benchmarks/oracles.py a`: 1000 x 5000, 50 and 200 atoms; `d`: 2000 x 50,000, 100 atoms; `gram`: the Gram matrix
given; `hard`: coherent and heavy-tailed dictionaries and noise, against the plain way; `screened`: oracle calls and
whole runs at 2000 x 50,000. Contenders run interleaved in one process; tables show medians in milliseconds and ratios.
With OMP_NUM_THREADS=1 the clock is that of the processor, so that a busy machine disturbs less.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pursuit as ps
from pursuit.domains import Answer

CLOCK = time.process_time if os.environ.get("OMP_NUM_THREADS") == "1" else time.perf_counter


@dataclass(frozen=True)
class Plain:
    """The plain way: one product with all of D a call."""

    def begin(self, part, space, update):
        def ask(grad, active, gx):
            atoms = list(part.asked.best(grad, update.several))
            return Answer(atoms, atoms[0].dot(space, grad), 1.0)

        return ask


def omp(A: ps.Dictionary, y: np.ndarray, k: int, oracle: Any = None) -> list[int]:
    """k atoms of orthogonal matching pursuit, in the order of their entry."""
    stop = ps.Stop(atoms=k, rgap=None)
    r = ps.minimize(ps.LeastSquares(y), ps.lin(A), ps.FullyCorrective(), oracle=oracle, stop=stop)
    return [a.source for a in r.atoms]


def normed(D: np.ndarray) -> np.ndarray:
    return np.asfortranarray(D / np.sqrt(np.einsum("ij,ij->j", D, D)))


def dictionary(kind: str, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    if kind.startswith("Toeplitz"):
        rho, D = float(kind.split()[1]), rng.standard_normal((d, n))
        for j in range(1, n):
            D[:, j] = rho * D[:, j - 1] + np.sqrt(1 - rho**2) * D[:, j]
        return normed(D)
    if kind == "clusters":
        centres = rng.standard_normal((d, max(1, n // 50)))
        return normed(np.repeat(centres, -(-n // centres.shape[1]), axis=1)[:, :n] + 0.3 * rng.standard_normal((d, n)))
    if kind == "heavy tails":
        return normed(rng.standard_t(2, (d, n)))
    return normed(rng.standard_normal((d, n)))


def signal(D: np.ndarray, k: int, rng: np.random.Generator, noise: float = 0.1) -> np.ndarray:
    y = D[:, rng.choice(D.shape[1], k, replace=False)] @ rng.standard_normal(k)
    return y + noise * np.linalg.norm(y) / np.sqrt(len(y)) * rng.standard_normal(len(y))


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int) -> tuple[dict[str, float], dict[str, object]]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    answers: dict[str, object] = {}
    for _ in range(rounds):
        for name, run in contenders.items():
            began = CLOCK()
            answers[name] = run()
            times[name].append(1e3 * (CLOCK() - began))
    return {name: statistics.median(t) for name, t in times.items()}, answers


def show(title: str, times: dict[str, float], reference: str, note: str = "") -> None:
    ratios = ", ".join(f"{name} {t:.1f} ms ({t / times[reference]:.2f}x)" for name, t in times.items())
    print(f"{title}: {ratios} {note}", flush=True)


def peers(D: np.ndarray, y: np.ndarray, k: int) -> dict[str, Callable[[], object]]:
    from sklearn.linear_model import orthogonal_mp

    found: dict[str, Callable[[], object]] = {
        "sklearn": lambda: np.flatnonzero(orthogonal_mp(D, y, n_nonzero_coefs=k, precompute=False))
    }
    try:
        import spams
    except ImportError:
        return found
    Y = np.asfortranarray(y[:, None])
    found["SPAMS"] = lambda: spams.omp(
        Y, D, L=k, eps=0.0, lambda1=0.0, numThreads=1 if CLOCK is time.process_time else -1
    ).nonzero()[0]
    return found


def one_signal(d: int, n: int, ks: list[int], rounds: int) -> None:
    rng = np.random.default_rng(0)
    A = ps.Dictionary(dictionary("random", d, n, rng))
    S = A.screened()
    for k in ks:
        y = signal(A.D, k, rng)
        ways = {
            "default": lambda k=k, y=y: omp(A, y, k),
            "A.screened()": lambda k=k, y=y: omp(S, y, k),
            "plain": lambda k=k, y=y: omp(A, y, k, Plain()),
            **peers(A.D, y, k),
        }
        times, answers = interleaved(ways, rounds)
        same = answers["plain"] == answers["default"] == answers["A.screened()"]
        show(f"{d} x {n}, {k} atoms", times, "default", f"same atoms: {same}")


def hard(instances: int) -> None:
    """The worst ratio to the plain way over random instances of each kind, with the kernels loaded: before that, the
    default is the plain way for longer."""
    for kind in ("random", "Toeplitz 0.9", "Toeplitz 0.99", "clusters", "heavy tails", "noise only"):
        ratios, same = [], True
        for seed in range(instances):
            rng = np.random.default_rng(seed)
            d, n, k = int(rng.integers(300, 1200)), int(rng.integers(3000, 8000)), int(rng.integers(20, 120))
            A = ps.Dictionary(dictionary(kind, d, n, rng))
            y = rng.standard_normal(d) if kind == "noise only" else signal(A.D, k, rng)
            ways = {"default": lambda A=A, y=y, k=k: omp(A, y, k),
                    "plain": lambda A=A, y=y, k=k: omp(A, y, k, Plain())}  # fmt: skip
            times, answers = interleaved(ways, 5)
            ratios.append(times["default"] / times["plain"])
            same &= answers["default"] == answers["plain"]
        print(f"{kind}: time / plain way: median {statistics.median(ratios):.2f}, worst {max(ratios):.2f}; "
              f"same atoms: {same}", flush=True)  # fmt: skip


def call(A: ps.Dictionary, S: ps.Dictionary, name: str, g: np.ndarray, rounds: int) -> None:
    times, answers = interleaved({"plain": lambda: A.lmo(g), "screened": lambda: S.lmo(g)}, rounds)
    same = answers["plain"].source == answers["screened"].source
    show(f"oracle call, {name}", times, "screened", f"same atom: {same}")


def run(A: ps.Dictionary, S: ps.Dictionary, name: str, y: np.ndarray, hull: bool) -> None:
    f, stop = ps.LeastSquares(y), ps.Stop(iterations=50, rgap=1e-6)

    def solve(atoms: ps.Dictionary) -> ps.Result:
        domain = ps.conv(5 * atoms) if hull else ps.lin(atoms)
        return ps.minimize(f, domain, ps.FullyCorrective(several=16 if hull else 1), stop=stop)

    times, answers = interleaved({"plain": lambda: solve(A), "screened": lambda: solve(S)}, 3)
    plain, fast = ([a.source for a in answers[way].atoms] for way in ("plain", "screened"))
    calls = answers["plain"].oracle_calls
    title = f"whole run over {'conv' if hull else 'lin'}, {name}, {calls} calls"
    show(title, times, "screened", f"same atoms: {plain == fast}")


def screened(d: int, n: int, rounds: int) -> None:
    rng = np.random.default_rng(0)
    for kind in ("random", "heavy tails"):
        A = ps.Dictionary(dictionary(kind, d, n, rng), signed=True)
        began = CLOCK()
        S = A.screened()
        print(f"{kind}: codes made in {CLOCK() - began:.2f} s")
        y = signal(A.D, 50, rng)
        call(A, S, f"{kind}, first residual", y, rounds)
        call(A, S, f"{kind}, noise", rng.standard_normal(d), rounds)
        run(A, S, kind, y, hull=False)
        run(A, S, kind, y, hull=True)


def main() -> None:
    warnings.simplefilter("ignore")
    cases = {
        "a": lambda: one_signal(1000, 5000, [50, 200], 11),
        "d": lambda: one_signal(2000, 50_000, [100], 3),
        "hard": lambda: hard(17),
        "screened": lambda: screened(2000, 50_000, 11),
    }
    for name in sys.argv[1:] or cases:
        cases[name]()


if __name__ == "__main__":
    main()
