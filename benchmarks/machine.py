"""The machine, and what is measured without peers: its limits, how cost grows, and the first call."""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
from common import CLOCK, dictionary, interleaved, signal
from threadpoolctl import threadpool_info

import pursuit as ps

PACKAGES = ["numpy", "scipy", "scikit-learn", "spams-bin", "celer", "skglm", "copt", "pylops"]


def limits() -> dict[str, float]:
    """GF/s of dgemm and sgemm, GB/s of a matrix-vector product and of a copy; the best of several."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2000, 2000))
    A4, out, out4 = A.astype(np.float32), np.empty((2000, 2000)), np.empty((2000, 2000), dtype=np.float32)
    D, g = (
        rng.standard_normal((25_000, 2000)),
        rng.standard_normal(2000),
    )  # rows in memory: D @ g is D' g of a column order
    target = np.empty_like(D)
    return {
        "dgemm GF/s": 2 * 2000**3 / _fastest(lambda: np.matmul(A, A, out=out)) / 1e9,
        "sgemm GF/s": 2 * 2000**3 / _fastest(lambda: np.matmul(A4, A4, out=out4)) / 1e9,
        "gemv GB/s": D.nbytes / _fastest(lambda: D @ g) / 1e9,
        "copy GB/s": 2 * D.nbytes / _fastest(lambda: np.copyto(target, D)) / 1e9,
    }


def _fastest(call: Callable[[], Any], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        began = CLOCK()
        call()
        times.append(CLOCK() - began)
    return min(times)


def facts() -> dict[str, str]:
    """CPU, cores, caches, memory, BLAS, versions."""
    listed = dict(re.findall(r"^\s*([^:\n]+):\s+(.+)$", _output("lscpu"), flags=re.MULTILINE))
    caches = ", ".join(
        f"{level} {listed[f'{level} cache']}" for level in ("L1d", "L2", "L3") if f"{level} cache" in listed
    )
    vectors = [name for name in ("avx2", "avx512f") if name in listed.get("Flags", "")]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    blas = {f"{p['internal_api']} {p['version']}" for p in threadpool_info() if p["user_api"] == "blas"}
    model = listed.get("Model name", platform.processor() or platform.machine())
    return {
        "processor": f"{model} ({', '.join(vectors) or 'neither AVX2 nor AVX-512'})",
        "cores": str(os.cpu_count()),
        "caches": caches or "unknown",
        "memory": f"{pages / 2**30:.0f} GiB",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
        "BLAS": ", ".join(sorted(blas)),
        "Python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _output(command: str) -> str:
    try:
        return subprocess.run([command], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


# ---------------------------------------------------------------------- how cost grows

Curve = dict[str, Any]


def curve(label: str, sizes: list[int], make: Callable[[int], Callable[[], object]]) -> Curve:
    """Seconds ~ size^slope, by least squares on log axes."""
    seconds = interleaved({str(size): make(size) for size in sizes}, rounds=5, budget=2.0)
    slope = np.polyfit(np.log(sizes), np.log(list(seconds.values())), 1)[0]
    return {"label": label, "sizes": sizes, "slope": float(slope)}


def many(d: int, n: int, signals: int, k: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    D, Y = dictionary("random", d, n, rng), rng.standard_normal((signals, d))
    return lambda: ps.encode(D, Y, atoms=k, n_jobs=1)


def single(d: int, n: int, k: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    D = dictionary("random", d, n, rng)
    f, domain = ps.LeastSquares(signal(D, 200, rng)), ps.lin(ps.Dictionary(D))
    return lambda: ps.minimize(f, domain, ps.FullyCorrective(), stop=ps.Stop(atoms=k))


def growth() -> dict[str, list[Curve]]:
    """What grows -> its curves, on one thread."""
    return {
        "signals": [
            curve("encode, 64 x 256, k = 10", [2500, 5000, 10_000, 20_000], lambda s: many(64, 256, s, 10)),
        ],
        "k": [
            curve("encode, 1000 signals, 256 x 1024", [8, 16, 32, 64], lambda k: many(256, 1024, 1000, k)),
            curve("one signal, 1000 x 5000", [32, 64, 128, 256], lambda k: single(1000, 5000, k)),
        ],
        "n": [
            curve("encode, 4000 signals, d = 64, k = 10", [256, 512, 1024, 2048], lambda n: many(64, n, 4000, 10)),
            curve("one signal, d = 500, k = 50", [5000, 10_000, 20_000, 40_000], lambda n: single(500, n, 50)),
        ],
        "d": [
            curve("encode, 4000 signals, n = 512, k = 10", [64, 128, 256, 512], lambda d: many(d, 512, 4000, 10)),
            curve("one signal, n = 5000, k = 50", [512, 1024, 2048, 4096], lambda d: single(d, 5000, 50)),
        ],
    }  # fmt: skip


# ---------------------------------------------------------------------- the first call

CALLS = {
    "many signals, omp": "encode(D, Y, atoms=10)",
    "many signals, nnomp": "encode(D, Y, atoms=10, method='nnomp')",
    "many signals, omp, weighted": "encode(D, Y, atoms=10, weights=np.ones_like(Y))",
}
FIRST = """
import time
import numpy as np
import scipy.linalg, scipy.sparse
began = time.perf_counter()
import pursuit
imported = time.perf_counter()
rng = np.random.default_rng(0)
D, Y = rng.standard_normal((64, 256)), rng.standard_normal((500, 64))
encode, ready = pursuit.encode, time.perf_counter()
{call}
print(imported - began, time.perf_counter() - ready)
"""


def first_calls() -> list[tuple[str, float, float]]:
    """(what, seconds of the import beyond numpy and scipy, seconds of the first call), each in a process of its own."""
    found = []
    for what, call in CALLS.items():
        code = [sys.executable, "-c", FIRST.format(call=call)]
        runs = [subprocess.run(code, check=True, capture_output=True, text=True).stdout.split() for _ in range(5)]
        found.append((what, *(statistics.median(float(run[k]) for run in runs) for k in range(2))))
    return found
