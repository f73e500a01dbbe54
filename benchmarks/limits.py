"""The machine: what it is, and how fast it multiplies and reads, measured with the threads of this process."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
from common import CLOCK
from threadpoolctl import threadpool_info

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
