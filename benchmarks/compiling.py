"""What compiling costs: the first call ever, and the first of a later process, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

CALLS = {
    "many signals, omp": "encode(D, Y, atoms=10)",
    "many signals, omp, combinations of fewer atoms": "encode(D, np.repeat(D[:, :1].T, 500, axis=0), atoms=10)",
    "many signals, omp, nearly dependent atoms": "encode(D[:, :1] + 0.01 * D, Y, atoms=10)",
    "many signals, ols": "encode(D, Y, atoms=10, method='ols')",
    "many signals, mp": "encode(D, Y, atoms=10, method='mp')",
    "many signals, nnomp": "encode(D, Y, atoms=10, method='nnomp')",
    "many signals, omp, weighted": "encode(D, Y, atoms=10, weights=np.ones_like(Y))",
    "one signal, 1000 x 5,000": "encode(large, large[:, :40].sum(axis=1)[None], atoms=30)",
    "one signal, 1000 x 5,000, ols": "encode(large, large[:, :40].sum(axis=1)[None], atoms=30, method='ols')",
}
FIRST = """
import time
import numpy as np
from pursuit.encode import encode
rng = np.random.default_rng(0)
D, Y = rng.standard_normal((64, 256)).astype({kind!r}), rng.standard_normal((500, 64)).astype({kind!r})
large = np.asfortranarray(rng.standard_normal((1000, 5000)).astype({kind!r})) if "large" in {call!r} else None
began = time.perf_counter()
{call}
print(time.perf_counter() - began)
"""


def compiling() -> list[tuple[str, str, float, float]]:
    """(what, dtype, seconds of the first call ever, of the first call of a later process)."""
    found = []
    for what, call in CALLS.items():
        for kind in ("float64", "float32"):
            code = FIRST.format(kind=kind, call=call)
            with tempfile.TemporaryDirectory() as folder:
                env = os.environ | {"NUMBA_CACHE_DIR": folder}
                ever, later = (
                    float(subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True).stdout)
                    for _ in range(2)
                )
            found.append((what, kind, ever, later))
    return found
