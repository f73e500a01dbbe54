"""What the loop costs on top of its arithmetic: Plain(ShortStep()) on a 100 x 1000 dictionary.

The bare loop below does the same NumPy operations with nothing around them. Both run interleaved, in one process; the
table shows medians over rounds of microseconds per iteration.
"""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
from common import interleaved

import pursuit as ps

ITERATIONS, ROUNDS = 500, 31


def bare(D: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Frank-Wolfe with short steps on the hull of the signed columns, and its gap: the bare operations."""
    c = D.T @ -y
    j = int(np.abs(c).argmax())
    x = (-1.0 if c[j] > 0 else 1.0) * D[:, j]
    for _ in range(ITERATIONS):
        g = x - y
        0.5 * float(g @ g)
        c = D.T @ g
        j = int(np.abs(c).argmax())
        d = (-1.0 if c[j] > 0 else 1.0) * D[:, j] - x
        slope = float(g @ d)
        x = x + max(0.0, min(1.0, -slope / float(d @ d))) * d
    return x


def loop(D: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same through the package."""
    states = ps.iterate(ps.LeastSquares(y), ps.conv(ps.Dictionary(D, signed=True)), ps.Plain(ps.ShortStep()))
    return next(islice(states, ITERATIONS, None)).x


def whole(D: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same with stopping rules and trace."""
    stop = ps.Stop(iterations=ITERATIONS, rgap=None)
    return ps.minimize(
        ps.LeastSquares(y), ps.conv(ps.Dictionary(D, signed=True)), ps.Plain(ps.ShortStep()), stop=stop
    ).x


def main() -> None:
    rng = np.random.default_rng(0)
    D, y = rng.standard_normal((100, 1000)), 3.0 * rng.standard_normal(100)  # f is smaller at the first atom than at 0
    contenders = {"bare NumPy": bare, "iterate": loop, "minimize": whole}
    for run in contenders.values():
        np.testing.assert_allclose(run(D, y), bare(D, y), atol=1e-9)
    times = interleaved({name: partial(run, D, y) for name, run in contenders.items()}, ROUNDS)
    base = times["bare NumPy"] / ITERATIONS * 1e6
    print(f"{'':12}{'us / iteration':>16}{'overhead, us':>14}{'ratio':>8}")
    for name, seconds in times.items():
        t = seconds / ITERATIONS * 1e6
        print(f"{name:12}{t:16.1f}{t - base:14.1f}{t / base:8.2f}")


if __name__ == "__main__":
    main()
