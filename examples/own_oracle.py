"""Your own oracle: traffic in a town where every driver takes the fastest way home.

A road with x cars takes free * (1 + 0.15 (x / capacity)^4) minutes. No driver can gain alone where the flows minimise
the sum over roads of the integral of this from 0 to x. The domain is the polytope of flows from the station to the
homes: nobody can list its vertices, but a linear program finds the best one for given minutes. That is `lmo`, the one
method that atoms need. An objective needs `value_and_grad`; with its Hessian, the default update takes Newton steps.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linprog

import pursuit as ps
from pursuit.metrics import Diagonal

PLACES, CARS = np.argwhere(np.ones((6, 6))), np.where(np.arange(36) == 14, -140.0, 4.0)  # crossings; homes
ROADS = np.argwhere(np.abs(PLACES[:, None] - PLACES).sum(axis=2) == 1)  # between neighbours, each way: from, to
FREE, CAPACITY = np.random.default_rng(0).uniform([[1], [5]], [[2], [15]], (2, len(ROADS)))
INTO = np.eye(36)[:, ROADS[:, 1]] - np.eye(36)[:, ROADS[:, 0]]  # what a crossing gains by each road


class Flows(ps.Atoms):
    shape = FREE.shape

    def lmo(self, g: np.ndarray) -> ps.Atom:
        return ps.Atom(linprog(g, A_eq=INTO, b_eq=CARS).x)


class Delay(ps.Objective):
    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(FREE @ (x + 0.03 * x * (x / CAPACITY) ** 4)), FREE * (1 + 0.15 * (x / CAPACITY) ** 4)

    def hessian(self, x: np.ndarray) -> Diagonal:
        return Diagonal(0.6 * FREE * x**3 / CAPACITY**4)


def main() -> dict[str, float]:
    walks = {"Away": ps.Away(), "Pairwise": ps.Pairwise(), "BlendedPairwise": ps.BlendedPairwise(), "default": None}
    plain = {"Plain, OpenLoop": ps.Plain(ps.OpenLoop()), "Plain, LineSearch": ps.Plain(ps.LineSearch())}
    stop = ps.Stop(rgap=1e-9, iterations=200)
    runs = {name: ps.minimize(Delay(), ps.conv(Flows()), u, stop=stop) for name, u in (plain | walks).items()}
    for name, r in runs.items():
        print(f"{name:18}{r.value:10.4f}, gap {r.gap:.1e}, {len(r.atoms):3} atoms, {r.oracle_calls:3} oracle calls")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[1, 1.3])
    (begin, end), load = PLACES[ROADS[r.x > 0]].transpose(1, 2, 0), (r.x / CAPACITY)[r.x > 0]
    figure.colorbar(left.quiver(*begin, *(end - begin), load, cmap="viridis_r", scale_units="xy", scale=1.1))
    left.plot(*PLACES[14], "s", color="C3", markersize=10)
    left.set(title="flow from the station / capacity", xticks=[], yticks=[], aspect="equal")
    ps.plots.plot_traces(runs, ax=right).set_title("six methods")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/own_oracle.png", dpi=150)
    plt.close(figure)
    return {name: r.gap for name, r in runs.items()}


if __name__ == "__main__":
    main()
