"""How cost grows: time against signals, k, n and d, and the peak memory against the number of signals."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import interleaved, slope
from oracles import dictionary, signal

import pursuit as ps
from pursuit import encode

Curve = dict[str, Any]
PEAK = """
import sys, numpy as np
from pursuit import encode
rng = np.random.default_rng(0)
D, row = rng.standard_normal((64, 256)), rng.standard_normal((1, 64))
codes = encode(D, np.broadcast_to(row, (int(sys.argv[1]), 64)), atoms=10, n_jobs=2)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024, (codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes) / 2**20)
"""
"""The peak as Linux counts it for this program: ru_maxrss would begin at the peak of the parent."""


def curve(label: str, sizes: list[int], make: Callable[[int], Callable[[], object]]) -> Curve:
    seconds = interleaved({str(size): make(size) for size in sizes}, rounds=5, budget=2.0)
    return {"label": label, "sizes": sizes, "seconds": list(seconds.values()), "slope": slope(sizes, seconds.values())}


def many(d: int, n: int, signals: int, k: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    D, Y = dictionary("random", d, n, rng), rng.standard_normal((signals, d))
    return lambda: encode(D, Y, atoms=k, n_jobs=1)


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


def memory() -> dict[str, list[float]]:
    """MiB at the peak of a process that codes so many signals (one row, shared), and of its codes."""
    if not Path("/proc/self/status").exists():
        return {}
    found: dict[str, list[float]] = {"signals": [10_000, 30_000, 100_000, 300_000, 1_000_000], "peak": [], "codes": []}
    for signals in found["signals"]:
        done = subprocess.run([sys.executable, "-c", PEAK, str(signals)], capture_output=True, text=True, check=True)
        peak, codes = map(float, done.stdout.split())
        found["peak"].append(peak)
        found["codes"].append(codes)
    return found
