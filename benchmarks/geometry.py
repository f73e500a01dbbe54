"""How long the width of random signed dictionaries takes, and how tight its interval is."""

from __future__ import annotations

import time

import numpy as np

import pursuit as ps


def main() -> None:
    print(f"{'r x n':>10}{'seconds':>10}{'lower':>10}{'upper':>10}{'upper/lower':>13}")
    for r, n in ((4, 12), (8, 24), (12, 24), (20, 20), (50, 100)):
        D = np.random.default_rng(0).standard_normal((r, n))
        A = ps.Dictionary(D / np.linalg.norm(D, axis=0), signed=True)
        began = time.perf_counter()
        width = ps.geometry.mdw(A)
        seconds = time.perf_counter() - began
        ratio = "exact" if width.exact else f"{width.upper / width.lower:.3f}"
        print(f"{r:>5} x {n:<3}{seconds:9.2f}{width.lower:10.4f}{width.upper:10.4f}{ratio:>13}")


if __name__ == "__main__":
    main()
