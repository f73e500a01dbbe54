"""What a process waits for at first: the import, and the first call, each in a process of its own; medians of five."""

from __future__ import annotations

import statistics
import subprocess
import sys

CALLS = {
    "many signals, omp": "encode(D, Y, atoms=10)",
    "many signals, ols": "encode(D, Y, atoms=10, method='ols')",
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
    """(what, seconds of the import beyond numpy and scipy, seconds of the first call)."""
    found = []
    for what, call in CALLS.items():
        code = [sys.executable, "-c", FIRST.format(call=call)]
        runs = [subprocess.run(code, check=True, capture_output=True, text=True).stdout.split() for _ in range(5)]
        found.append((what, *(statistics.median(float(run[k]) for run in runs) for k in range(2))))
    return found
