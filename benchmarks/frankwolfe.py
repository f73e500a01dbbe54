"""Oracle calls, seconds and active atoms on the kinds of problems that FrankWolfe.jl's examples show, in one table.

`python benchmarks/frankwolfe.py [seconds]` writes benchmarks/FRANKWOLFE.md. The instances are our own. Beside the
default, the columns are this package's implementations of what FrankWolfe.jl takes by default: blended pairwise
conditional gradients with lazy answers, away steps, and for 0/1 polytopes the decomposition-invariant method, with a
backtracking step where f has no Hessian, else with exact line searches. A run ends at a certified gap of 1e-6 |f|.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pursuit as ps

METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "lazy blended pairwise": {"update": ps.BlendedPairwise(), "oracle": ps.Lazy()},
    "away": {"update": ps.Away()},
    "decomposition-invariant": {"update": ps.DecompositionInvariant()},
}

NOTE = """# Problems of FrankWolfe.jl's examples

Oracle calls (seconds of the processor, active atoms) to a certified gap of 1e-6 |f|, by
`benchmarks/frankwolfe.py {seconds:g}` on a machine that other work shared. \\*: not there after {seconds:g} s by the
clock. -: the method does not serve this domain. The decomposition-invariant method keeps x alone, which counts as one
atom. For K = 5 the minimum is 0, of which no gap is a millionth: those runs end at rounding, or by the clock. A call
of the default over permutations solves up to five assignment problems: in all 18 % (Birkhoff 30) and 4 % (60) more than
lazy blended pairwise steps. The oracles of flows name one vertex a call, so that the default can bring no more atoms
than the others.

"""


def problems() -> Iterator[tuple[str, ps.Objective, Any]]:
    rng = np.random.default_rng(0)
    for n in (30, 60):
        yield f"Birkhoff {n}", ps.LeastSquares(rng.random((n, n))), ps.conv(ps.Permutations(n))
    inside = rng.random(1400)
    yield "K-sparse 1400, K = 5", ps.LeastSquares(2.5 * inside / inside.sum()), ps.conv(ps.KSparse(1400, 5))
    yield "K-sparse 1400, K = 40", ps.LeastSquares(rng.standard_normal(1400)), ps.conv(ps.KSparse(1400, 40))
    S = rng.standard_normal((100, 5))
    noise = rng.standard_normal((100, 100))
    target = S @ S.T / np.trace(S @ S.T) + 1e-3 * (noise + noise.T)
    yield "spectrahedron 100", ps.LeastSquares(target), ps.conv(ps.Spectrahedron(100))
    L, R = rng.standard_normal((200, 5)), rng.standard_normal((150, 5))
    seen = rng.random((200, 150)) < 0.2
    M = L @ R.T
    A = ps.RankOne(M.shape).at(*np.nonzero(seen))
    yield (
        "nuclear norm, 200 x 150 ratings, 20 % seen",
        ps.LeastSquares(M[seen]),
        ps.conv(0.8 * np.linalg.norm(M, "nuc") * A),
    )
    yield (
        "trace norm regression 60 x 60",
        ps.LeastSquares(rng.standard_normal((60, 60))),
        ps.conv(20 * ps.RankOne((60, 60))),
    )
    X = rng.standard_normal((500, 15))
    squares = np.concatenate([X, *(X[:, [i]] * X[:, i:] for i in range(15))], axis=1)
    truth = np.where(rng.random(squares.shape[1]) < 0.1, rng.standard_normal(squares.shape[1]), 0.0)
    y = squares @ truth + 0.1 * rng.standard_normal(500)
    ball = ps.conv(0.8 * np.abs(truth).sum() * ps.Dictionary(squares, signed=True))
    yield "polynomial regression 500 x 135, L1 ball", ps.LeastSquares(y), ball
    for n, d in ((500, 10), (5000, 30)):
        V = rng.standard_normal((d, n))
        design = ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :]))
        yield f"D-optimal design {n} x {d}", ps.LogDet(), design
        yield f"A-optimal design {n} x {d}", ps.TraceInverse(), design
    returns = np.exp(0.2 * rng.standard_normal((300, 400)))
    utility = ps.Smooth(
        lambda x: -float(np.log(x).sum()) if (x > 0).all() else np.inf, lambda x: -1 / x, hessian=lambda x: 1 / x**2
    )
    yield "log-utility portfolio 300 x 400", utility, ps.conv(ps.Dictionary(returns))
    n = 100
    apart = np.concatenate([np.eye(n), -np.eye(n)], axis=1)
    pair = ps.product(ps.conv(ps.Simplex(n)), ps.conv(ps.Box(rng.random(n), 1.0 + rng.random(n))))
    yield "two sets, nearest points (a product)", ps.Quadratic(apart.T @ apart), pair
    yield from flows(rng, 15)


def flows(rng: np.random.Generator, side: int) -> Iterator[tuple[str, ps.Objective, Any]]:
    """Flows at the least separable quadratic cost on a square grid: from corner to corner, with capacities, by linear
    programs; and between many pairs of nodes, by shortest routes."""
    nodes = np.arange(side * side).reshape(side, side)
    right, down = np.stack([nodes[:, :-1], nodes[:, 1:]], axis=-1), np.stack([nodes[:-1], nodes[1:]], axis=-1)
    streets = np.concatenate([right.reshape(-1, 2), down.reshape(-1, 2)])
    edges = np.concatenate([streets, streets[:, ::-1]])
    n, every = len(edges), np.arange(len(edges))
    cost, slope = 1.0 + rng.random(n), 0.1 + rng.random(n)
    entering = np.zeros((nodes.size, n))
    entering[edges[:, 1], every], entering[edges[:, 0], every] = 1.0, -1.0
    supply = np.zeros(nodes.size)
    supply[[0, -1]] = -4.0, 4.0
    polytope = ps.Polytope(A_eq=entering, b_eq=supply, bounds=(0.0, 2.5))
    yield f"LP flow, {side} x {side} grid with capacities", ps.Quadratic(np.diag(slope), cost), ps.conv(polytope)
    demand = np.where(rng.random((nodes.size, nodes.size)) < 0.1, rng.random((nodes.size, nodes.size)), 0.0)
    f = ps.Quadratic(np.diag(10.0 * slope / demand.sum()), cost)
    yield f"flows of many pairs, {side} x {side} grid", f, ps.conv(ps.Flows(edges, demand))


def cell(f: ps.Objective, domain: Any, method: dict[str, Any], seconds: float) -> str:
    began = time.process_time()  # other work on the machine does not count
    try:
        r = ps.minimize(f, domain, **method, stop=ps.Stop(rgap=1e-6, iterations=100_000, seconds=seconds))
    except (TypeError, ValueError):
        return "-"
    star = "" if r.status is ps.Status.GAP else r"\*"
    return f"{r.oracle_calls}{star} ({time.process_time() - began:.2f} s, {len(r.atoms)})"


def main(seconds: float) -> None:
    lines = ["| problem | " + " | ".join(METHODS) + " |", "|---" * (len(METHODS) + 1) + "|"]
    for name, f, domain in problems():
        lines.append(f"| {name} | " + " | ".join(cell(f, domain, m, seconds) for m in METHODS.values()) + " |")
        print(lines[-1], flush=True)
        text = NOTE.format(seconds=seconds) + "\n".join(lines) + "\n"
        Path(__file__).with_name("FRANKWOLFE.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0)
