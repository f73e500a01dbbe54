"""Traffic assignment on networks in TNTP format, beside AequilibraE's bi-conjugate Frank-Wolfe.

`python benchmarks/traffic.py FOLDER [NAME ...]` reads NAME_net.tntp, NAME_trips.tntp and NAME_flow.tntp of
<https://github.com/bstabler/TransportationNetworks> (for academic research only, so they are not in this repository)
and solves each network to a relative gap of 1e-6. AequilibraE is left out where it is not installed.

Both gaps are those of the trade, (<t, x> - <t, z>) / <t, x> with the times t at x and the assignment z to shortest
routes; ours is stopped by the certificate, which is smaller: the gap of the best bound so far, relative to the
objective. `above` is the objective relative to that of the published flows. Both get all processors, or as many as
OMP_NUM_THREADS says: AequilibraE is faster with one on small networks. `seconds` are those of the clock, `processor`
those of all threads. A negative gap: these flows leave trips out, or go through places that are closed.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pursuit as ps

os.environ["AEQ_SHOW_PROGRESS"] = "FALSE"
try:
    import pandas as pd
    from aequilibrae.matrix import AequilibraeMatrix
    from aequilibrae.paths import Graph, TrafficAssignment, TrafficClass
except ImportError:
    Graph = None
from pursuit.metrics import Diagonal
from pursuit.threads import processors

NAMES = ("SiouxFalls", "Anaheim", "Barcelona", "Winnipeg", "ChicagoSketch")
COSTS = {"ChicagoSketch": (0.02, 0.04)}  # minutes per unit of toll and of length
GAP = 1e-6
NO_TIME = 1e-8
"""AequilibraE refuses roads that take no time; they take this many minutes there."""


class Network(NamedTuple):
    """Roads from tail to head, numbered from 0, whose time is free (1 + b (x / capacity)^power) + fixed."""

    ends: np.ndarray
    capacity: np.ndarray
    free: np.ndarray
    b: np.ndarray
    power: np.ndarray
    fixed: np.ndarray
    trips: np.ndarray
    closed: int
    """The places below this number are not passed through."""
    best: np.ndarray
    """The published flows."""


def numbers(path: Path) -> list[list[float]]:
    """The rows of numbers of a file."""
    rows = [line.replace(";", " ").replace(":", " ").split() for line in path.read_text().splitlines()]
    return [[float(v) for v in row] for row in rows if row and re.fullmatch(r"[\d.]+", row[0])]


def read(folder: Path, name: str) -> Network:
    text = (folder / f"{name}_net.tntp").read_text()
    zones, first = (int(re.findall(rf"<{key}>\s*(\d+)", text)[0]) for key in ("NUMBER OF ZONES", "FIRST THRU NODE"))
    tail, head, capacity, length, free, b, power, _, toll = np.array(numbers(folder / f"{name}_net.tntp"))[:, :9].T
    trips = np.zeros((zones, zones))
    for block in (folder / f"{name}_trips.tntp").read_text().split("Origin")[1:]:
        for end, amount in re.findall(r"(\d+)\s*:\s*([\d.eE+-]+)", block):
            trips[int(block.split()[0]) - 1, int(end) - 1] += float(amount)
    flows = {(int(i), int(j)): v for i, j, v, *_ in numbers(folder / f"{name}_flow.tntp")}
    per_toll, per_length = COSTS.get(name, (0.0, 0.0))
    ends = np.stack([tail, head], axis=1).astype(int)
    best = np.array([flows[i, j] for i, j in ends.tolist()])
    fixed = per_toll * toll + per_length * length
    return Network(ends - 1, capacity, free, b, power, fixed, trips, first - 1, best)


class Delay(ps.Objective):
    """The sum over roads of the integral of their time from 0 to x (Beckmann's objective)."""

    def __init__(self, network: Network) -> None:
        self.n = network

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        n = self.n
        rise = n.b * (x / n.capacity) ** n.power
        return float((n.free * (1 + rise / (n.power + 1)) + n.fixed) @ x), n.free * (1 + rise) + n.fixed

    def hessian(self, x: np.ndarray) -> Diagonal:
        n = self.n
        return Diagonal(n.free * n.b * n.power * x ** np.maximum(n.power - 1, 0) / n.capacity**n.power)


def flows(n: Network) -> ps.Flows:
    """The flows of a network. Places that are not passed through have two numbers, the second one for leaving them."""
    nodes, zones = int(n.ends.max()) + 1, len(n.trips)
    ends, demand = n.ends.copy(), np.zeros((nodes + n.closed, nodes + n.closed))
    ends[ends[:, 0] < n.closed, 0] += nodes
    leaving = np.where(np.arange(zones) < n.closed, np.arange(zones) + nodes, np.arange(zones))
    demand[leaving, :zones] = n.trips * (1.0 - np.eye(zones))  # who stays in a zone takes no road
    return ps.Flows(ends, demand)


def ours(n: Network) -> tuple[np.ndarray, int]:
    r = ps.minimize(Delay(n), ps.conv(flows(n)), stop=ps.Stop(rgap=GAP))
    return r.x, r.oracle_calls


def aequilibrae(n: Network) -> tuple[np.ndarray, int]:
    zones = np.arange(1, len(n.trips) + 1)
    roads = {"link_id": np.arange(1, len(n.ends) + 1), "a_node": n.ends[:, 0] + 1, "b_node": n.ends[:, 1] + 1}
    times = {"free": np.maximum(n.free, NO_TIME), "b": n.b, "power": np.maximum(n.power, 1.0), "fixed": n.fixed}
    graph = Graph()
    graph.network = pd.DataFrame(roads | {"direction": 1, "capacity": n.capacity} | times)
    graph.prepare_graph(zones)
    graph.set_graph("free")
    graph.set_blocked_centroid_flows(n.closed > 0)
    graph.set_skimming([])
    demand = AequilibraeMatrix()
    demand.create_empty(zones=len(zones), matrix_names=["trips"], memory_only=True)
    demand.matrix["trips"][:, :] = n.trips
    demand.index = zones
    demand.computational_view(["trips"])
    cars = TrafficClass("cars", graph, demand)
    if n.fixed.any():
        cars.set_fixed_cost("fixed", 1.0)
    run = TrafficAssignment()
    run.add_class(cars)
    run.set_vdf("BPR")
    run.set_vdf_parameters({"alpha": "b", "beta": "power"})
    run.set_capacity_field("capacity")
    run.set_time_field("free")
    run.set_cores(processors())
    run.max_iter, run.rgap_target = 10_000, GAP
    run.set_algorithm("bfw")
    run.execute()
    return run.results()["trips_ab"].to_numpy(), run.assignment.iter


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:] or NAMES
    print(f"{'network':15}{'':13}{'seconds':>9}{'processor':>11}{'calls':>7}{'gap':>10}{'above':>10}")
    for name in names:
        n = read(folder, name)
        f, A = Delay(n), flows(n)
        contenders: dict[str, Any] = {"pursuit": ours} | ({"AequilibraE": aequilibrae} if Graph else {})
        for who, solve in contenders.items():
            begin = time.perf_counter(), time.process_time()
            x, calls = solve(n)
            seconds, processor = time.perf_counter() - begin[0], time.process_time() - begin[1]
            value, t = f.value_and_grad(x)
            gap = 1.0 - float(t @ A.lmo(t).vector) / float(t @ x)
            above = value / f.value(n.best) - 1.0
            print(f"{name:15}{who:13}{seconds:9.2f}{processor:11.2f}{calls:7}{gap:10.1e}{above:10.1e}", flush=True)


if __name__ == "__main__":
    main()
