"""Sparse codes of many signals, side by side: `python benchmarks/encode.py [repeats]`.

Cases b (20,000 signals, 64 x 256, 10 atoms) and c (5,000 signals, 256 x 1024, 20 atoms). Contenders take turns; medians
are compared, in this run only. scikit-learn codes a part of the signals, since it takes seconds: its times are scaled.
SPAMS' `omp` is orthogonal least squares: its time is the yardstick of both our `omp` and our `ols`, its supports are
compared with `ols`. Then: how time grows with signals and atoms, and that memory does not.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from pursuit.encode import encode

CASES = {"b": (20_000, 64, 256, 10), "c": (5_000, 256, 1024, 20)}
PART = 50
"""scikit-learn codes one signal in so many."""
SPAMS = importlib.util.find_spec("spams") is not None
TARGETS = {
    ("b", "sklearn"): 200, ("b", "SPAMS"): 5, ("c", "sklearn"): 80, ("c", "SPAMS"): 4.5,
    "threads": 1.4, "float32": 1.5, "gram": 100,
}  # fmt: skip


def case(name, dtype=np.float64):
    signals, d, n, k = CASES[name]
    rng = np.random.default_rng(0)
    D = rng.standard_normal((d, n))
    D /= np.linalg.norm(D, axis=0)
    return D.astype(dtype), rng.standard_normal((signals, d)).astype(dtype), k


def sklearn_omp(D, Y, k, G):
    from sklearn.linear_model import orthogonal_mp_gram

    with threadpool_limits(1):
        return orthogonal_mp_gram(G, D.T @ Y[::PART].T, n_nonzero_coefs=k, copy_Xy=False).T


def sklearn_coder(D, Y, k):
    from sklearn.decomposition import SparseCoder

    coder = SparseCoder(D.T, transform_algorithm="omp", transform_n_nonzero_coefs=k)
    with threadpool_limits(1):
        return coder.transform(Y[::PART])


def contenders(name):
    """name -> (call, by how much its time is to be multiplied)."""
    D, Y, k = case(name)
    D4, Y4, _ = case(name, np.float32)
    G = D.T @ D
    found = {
        "sklearn orthogonal_mp_gram": (lambda: sklearn_omp(D, Y, k, G), PART),
        "sklearn SparseCoder": (lambda: sklearn_coder(D, Y, k), PART),
        "omp": (lambda: encode(D, Y, atoms=k, n_jobs=1), 1),
        "omp, 2 threads": (lambda: encode(D, Y, atoms=k, n_jobs=2), 1),
        "omp, Gram given": (lambda: encode(D, Y, atoms=k, n_jobs=1, gram=G), 1),
        "omp, float32": (lambda: encode(D4, Y4, atoms=k, n_jobs=1), 1),
        "omp, float32, 2 threads": (lambda: encode(D4, Y4, atoms=k, n_jobs=2), 1),
        "ols": (lambda: encode(D, Y, atoms=k, n_jobs=1, method="ols"), 1),
        "ols, 2 threads": (lambda: encode(D, Y, atoms=k, n_jobs=2, method="ols"), 1),
    }
    if SPAMS:
        import spams

        columns, signals = np.asfortranarray(D), np.asfortranarray(Y.T)
        found["SPAMS omp"] = lambda: spams.omp(signals, columns, L=k, numThreads=1), 1
        found["SPAMS omp, 2 threads"] = lambda: spams.omp(signals, columns, L=k, numThreads=2), 1
    return found


def interleaved(calls, repeats):
    """Median seconds of each, all taking turns."""
    times = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, (call, factor) in calls.items():
            start = time.perf_counter()
            call()
            if turn:  # the first warms up
                times[name].append(factor * (time.perf_counter() - start))
    return {name: median(found) for name, found in times.items()}


def same_supports(name):
    """The share of signals with the same support: our omp and scikit-learn's, our ols and SPAMS'."""
    D, Y, k = case(name)
    ours = encode(D, Y[::PART], atoms=k).toarray() != 0
    shares = {"sklearn": (ours == (sklearn_omp(D, Y, k, D.T @ D) != 0)).all(axis=1).mean()}
    if SPAMS:
        import spams

        theirs = spams.omp(np.asfortranarray(Y[::PART].T), np.asfortranarray(D), L=k).T.toarray() != 0
        shares["SPAMS"] = (theirs == (encode(D, Y[::PART], atoms=k, method="ols").toarray() != 0)).all(axis=1).mean()
    return shares


def line(what, ratio, target):
    print(f"  {what:<46} {ratio:8.2f}   {f'target {target:g}' if target else '':<12} {verdict(ratio, target)}")


def verdict(ratio, target):
    return "" if target is None else "reached" if ratio >= target else "MISSED"


def compare(name, repeats):
    signals, d, n, k = CASES[name]
    seconds = interleaved(contenders(name), repeats)
    print(f"\n{name}: {signals:,} signals, {d} x {n}, {k} atoms")
    for contender, t in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"  {contender:<46} {1e3 * t:8.1f} ms")
    print(f"  {'how many times as fast':<46} {'':8}")
    one, two = seconds["omp"], seconds["omp, 2 threads"]
    line("sklearn / omp", seconds["sklearn orthogonal_mp_gram"] / one, TARGETS[name, "sklearn"])
    line(
        "sklearn precomputed / omp, Gram given",
        seconds["sklearn orthogonal_mp_gram"] / seconds["omp, Gram given"],
        TARGETS["gram"],
    )
    line("sklearn SparseCoder / omp", seconds["sklearn SparseCoder"] / one, None)
    if SPAMS:
        line("SPAMS / omp", seconds["SPAMS omp"] / one, TARGETS[name, "SPAMS"])
        line("SPAMS / omp, 2 threads each", seconds["SPAMS omp, 2 threads"] / two, TARGETS[name, "SPAMS"])
        line("SPAMS / ols (like with like)", seconds["SPAMS omp"] / seconds["ols"], None)
    else:
        print("  SPAMS is not installed (pip install spams-bin): skipped")
    line("omp: 1 thread / 2 threads", one / two, TARGETS["threads"])
    line("omp: float64 / float32", one / seconds["omp, float32"], TARGETS["float32"])
    line("omp, 2 threads: float64 / float32", two / seconds["omp, float32, 2 threads"], TARGETS["float32"])
    for peer, share in same_supports(name).items():
        print(f"  same supports as {peer:<29} {100 * share:8.1f} %")


def one_signal(repeats):
    """One signal, 1000 x 5000, 50 atoms, the Gram matrix given: we read 50 of its rows, scikit-learn copies it."""
    from sklearn.linear_model import orthogonal_mp_gram

    rng = np.random.default_rng(0)
    D, y = rng.standard_normal((1000, 5000)), rng.standard_normal(1000)
    D /= np.linalg.norm(D, axis=0)
    G = D.T @ D
    calls = {
        "sklearn": (lambda: orthogonal_mp_gram(G, D.T @ y, n_nonzero_coefs=50), 1),
        "omp": (lambda: encode(D, y[None], atoms=50, gram=G, n_jobs=1), 1),
    }
    with threadpool_limits(1):
        seconds = interleaved(calls, repeats)
    print("\none signal, 1000 x 5000, 50 atoms, Gram given (products and checks of D included)")
    line("sklearn precomputed / omp", seconds["sklearn"] / seconds["omp"], None)


def slope(sizes, seconds):
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth(repeats):
    """Slopes of log time against log size, where the size dominates."""
    D, Y, k = case("b")
    signals = [2_500, 5_000, 10_000, 20_000]
    atoms = [8, 16, 32, 64]
    D2, Y2, _ = case("c")
    by_signals = interleaved({s: (lambda s=s: encode(D, Y[:s], atoms=k, n_jobs=1), 1) for s in signals}, repeats)
    by_atoms = interleaved({a: (lambda a=a: encode(D2, Y2[:1000], atoms=a, n_jobs=1), 1) for a in atoms}, repeats)
    print("\ngrowth (slope of log time against log size)")
    print(f"  signals {signals}: {slope(signals, list(by_signals.values())):.2f} (1 is linear)")
    print(f"  atoms   {atoms}: {slope(atoms, list(by_atoms.values())):.2f} (the last turns tend to 2)")


PEAK = """
import resource, sys, numpy as np
from pursuit.encode import encode
rng = np.random.default_rng(0)
D, row = rng.standard_normal((64, 256)), rng.standard_normal((1, 64))
codes = encode(D, np.broadcast_to(row, (int(sys.argv[1]), 64)), atoms=10, n_jobs=2)
stored = codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, stored / 2**20)
"""


def memory():
    """Peak memory of a process, for more and more signals."""
    print("\nmemory of a process that codes so many signals (the signals are one row, shared)")
    for signals in (10_000, 100_000, 1_000_000):
        done = subprocess.run([sys.executable, "-c", PEAK, str(signals)], capture_output=True, text=True, check=True)
        peak, stored = map(float, done.stdout.split())
        print(f"  {signals:>9,}: {peak:7.0f} MiB at most, of which 2 x {stored:.0f} MiB are codes")


if __name__ == "__main__":
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    for name in CASES:
        compare(name, repeats)
    one_signal(repeats)
    growth(max(3, repeats // 2))
    memory()
