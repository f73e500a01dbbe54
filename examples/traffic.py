"""Traffic in a town: which roads do drivers take when each takes the fastest way, and what would a plan save?

A road with x vehicles takes t(x) = free (1 + 0.15 (x / capacity)^4) minutes. No driver can gain alone where the flows
minimise the sum of the integrals of t from 0 to x (Wardrop's equilibrium, Beckmann's objective); all drivers together
lose least where they minimise the sum of x t(x). `Flows` are the ways to serve 552 pairs of places, and its oracle
sends everybody over the shortest routes. The certificate proves both minima of this made-up town to 1e-9.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps
from pursuit.metrics import Diagonal

RNG = np.random.default_rng(0)
PLACES = np.stack(np.divmod(np.arange(24), 6), axis=1)[:, ::-1]  # a town of blocks, six across and four up
ROADS = np.argwhere(np.abs(PLACES[:, None] - PLACES).sum(axis=2) == 1)  # to every neighbour
FREE = RNG.integers(2, 7, len(ROADS)).astype(float)  # minutes on an empty road
CAPACITY = RNG.choice([5000.0, 10000.0, 20000.0], len(ROADS))  # vehicles
SIZES = RNG.integers(1, 6, 24)
TRIPS = 30.0 * np.outer(SIZES, SIZES) * (1 - np.eye(24))  # more between the large places


class Delay(ps.Objective):
    """sum of free (x + share 0.15 x (x / capacity)^4): share 1/5 integrates t, share 1 is the time of all drivers."""

    def __init__(self, share: float) -> None:
        self.rise = 0.15 * share * FREE

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        load = (x / CAPACITY) ** 4
        return float((FREE + self.rise * load) @ x), FREE + 5 * self.rise * load

    def hessian(self, x: np.ndarray) -> Diagonal:
        return Diagonal(20 * self.rise * x**3 / CAPACITY**4)


def main() -> dict[str, float]:
    domain, stop = ps.conv(ps.Flows(ROADS, TRIPS)), ps.Stop(rgap=1e-9, iterations=200)
    updates = {"Plain, LineSearch": ps.Plain(ps.LineSearch()), "Away": ps.Away(), "Pairwise": ps.Pairwise()}
    runs = {name: ps.minimize(Delay(0.2), domain, u, stop=stop) for name, u in updates.items()}
    selfish, planned = (ps.minimize(Delay(share), domain, stop=stop) for share in (0.2, 1.0))
    runs["default"] = selfish
    for name, r in runs.items():
        print(f"{name:18}{r.value:14.3f}, gap {r.gap:.0e}, {len(r.atoms):3} atoms, {r.oracle_calls:3} oracle calls")
    hours = [Delay(1.0).value(r.x) / 60 for r in (selfish, planned)]
    print(f"all drivers lose {hours[0]:,.0f} h; by a plan {hours[1]:,.0f} h, {1 - hours[1] / hours[0]:.1%} less")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained", width_ratios=[0.62, 1])
    (begin, end), load = PLACES[ROADS].transpose(1, 2, 0), selfish.x / CAPACITY
    along = (end - begin) / np.hypot(*(end - begin))
    aside = 0.22 * along + 0.07 * np.stack([along[1], -along[0]])  # they drive on the right
    way = end - begin - 0.44 * along
    arrows = left.quiver(*(begin + aside), *way, load, cmap="viridis_r", scale_units="xy", scale=1)
    figure.colorbar(arrows, label="flow / capacity")
    for number, place in enumerate(PLACES, start=1):
        left.text(*place, str(number), ha="center", va="center", size=8, bbox={"boxstyle": "circle", "color": "0.93"})
    left.set(title="Every driver on a fastest way", xticks=[], yticks=[], aspect="equal")
    ps.plots.plot_traces(runs, ax=right).set_title("200 oracle calls of four methods")
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/traffic.png", dpi=150)
    plt.close(figure)
    return {name: r.gap / r.value for name, r in runs.items()} | {"value": selfish.value, "plan": hours[1] / hours[0]}


if __name__ == "__main__":
    main()
