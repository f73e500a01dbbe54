"""Poisson PCA of simulated counts of genes in cells, beside glmpca, in one run: deviance, iterations, time.

`python benchmarks/poisson.py` prints it and draws out/bench/poisson.png; without glmpca it shows ours alone. The model
is glmpca's: log rate = (how deep the cell was read) + (a free level per gene) + V U' of rank 5. The levels have a
closed form given the rest, and putting it in leaves a convex function of x = V U' (`Levels`). glmpca minimises deviance
/ 2 + penalty (|U|^2 + |V|^2) / 2 from a random start; with its default penalty of 1, and with 0.01, where the deviance
is almost the goal itself, as it is ours. `rises` counts iterations after which the deviance was higher. Ours adds one
component per oracle call (an iteration), so it brings the models of rank 1 to 4 as well; `all at once` takes four
components from the first answer and does not polish them. `to 0.1 %`: seconds to a deviance within 0.1 % of the best
that any method found. Seconds are processor time, medians over the repetitions, the methods taking turns; set
OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from common import peer

import pursuit as ps
from pursuit.metrics import Diagonal

OUT = Path("out") / "bench"
GENES, CELLS, RANK = 200, 300, 5
REPETITIONS = 3
ACCURACY = 1e-3  # of the factors: sharper than by default, since nothing comes after the last component
PROBLEMS = {"moderate": (-0.5, 0.5), "rare": (-2.0, 0.5), "strong": (-0.5, 1.0), "rare and strong": (-2.0, 1.0)}
"""Mean and spread of log rates: (level of a gene, strength of the components)."""

Fit = tuple[np.ndarray, np.ndarray]
"""Deviance after each iteration, and seconds until then."""


def problem(level: float, strength: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    depth, levels = rng.normal(0.0, 0.5, CELLS), rng.normal(level, 1.2, (GENES, 1))
    V, U = rng.standard_normal((GENES, RANK)), rng.standard_normal((RANK, CELLS))
    Y = rng.poisson(np.exp(np.minimum(levels + depth + strength * V @ U, 8.0))).astype(float)
    return Y[Y.sum(axis=1) > 0][:, Y.sum(axis=0) > 0]


class Levels(ps.Objective):
    """min over a of sum exp(a_i + o_j + x_ij) - y_ij (a_i + o_j + x_ij), where exp(a_i) = sum_j y_ij / sum_j exp(o_j +
    x_ij)."""

    def __init__(self, Y: np.ndarray) -> None:
        self.Y, self.totals, self.depth = Y, Y.sum(axis=1, keepdims=True), np.log(Y.mean(axis=0))
        self.space, self.infimum = ps.LeastSquares(Y).space, ps.Poisson(Y).infimum
        self.constant = float(np.sum(self.totals - self.totals * np.log(self.totals)))

    def _shares(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s = x + self.depth
        s -= s.max(axis=1, keepdims=True)
        powers = np.exp(s)
        return s, powers, powers.sum(axis=1, keepdims=True)

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        s, powers, sums = self._shares(x)
        value = self.constant + float(np.vdot(self.totals, np.log(sums)) - np.vdot(self.Y, s))
        return value, powers * (self.totals / sums) - self.Y

    def hessian(self, x: np.ndarray) -> Diagonal:
        """With the levels held fixed, which bounds the true one from above: it only sets the units of the factors."""
        _, powers, sums = self._shares(x)
        return Diagonal(powers * (self.totals / sums))


def ours(Y: np.ndarray, first: int, steps: int) -> Fit:
    """`first` components from the first answer, moved by so many steps, then one per oracle call."""
    f, domain = Levels(Y), ps.lin(ps.RankOne(Y.shape))
    few, one = ps.NormCorrective(several=first), ps.NormCorrective()
    begun = ps.minimize(
        f, domain, few, refine=ps.refine.Factors(steps=steps, accuracy=ACCURACY), stop=ps.Stop(iterations=1)
    )
    r = ps.minimize(f, domain, one, refine=ps.refine.Factors(accuracy=ACCURACY), start=begun, stop=ps.Stop(atoms=RANK))
    values = np.append(begun.trace.value, r.trace.value[1:])
    clock = np.append(begun.trace.seconds, begun.seconds + r.trace.seconds[1:])
    return 2.0 * (values - f.infimum), clock / clock[-1]


def theirs(Y: np.ndarray, penalty: float) -> Fit:
    np.random.seed(0)  # noqa: NPY002  (what glmpca draws from)
    control = {"maxIter": 1000, "eps": 1e-6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        deviance = GLMPCA.glmpca(Y, RANK, fam="poi", penalty=penalty, ctl=control)["dev"]
    return deviance, np.arange(1, len(deviance) + 1) / len(deviance)  # its iterations cost the same


GLMPCA = peer("glmpca.glmpca")
METHODS: dict[str, Callable[[np.ndarray], Fit]] = {
    "pursuit, by rank": lambda Y: ours(Y, 1, 200),
    "pursuit, all at once": lambda Y: ours(Y, RANK - 1, 20),
}
if GLMPCA is not None:
    METHODS |= {f"glmpca, penalty {p:g}": lambda Y, p=p: theirs(Y, p) for p in (1.0, 0.01)}


def measure(Y: np.ndarray) -> dict[str, Fit]:
    """Deviances and processor seconds of every method."""
    fits, seconds = {}, {name: [] for name in METHODS}
    for _ in range(REPETITIONS):
        for name, method in METHODS.items():
            began = time.process_time()
            fits[name] = method(Y)
            seconds[name].append(time.process_time() - began)
    return {name: (deviance, share * np.median(seconds[name])) for name, (deviance, share) in fits.items()}


def main() -> None:
    header = f"{'deviance':>10}{'rises':>7}{'iterations':>12}{'seconds':>9}{'to 0.1 %':>10}"
    print(f"{'counts':17}{'method':22}{header}")
    runs = {name: measure(problem(*parameters)) for name, parameters in PROBLEMS.items()}
    for counts, fits in runs.items():
        best = min(deviance.min() for deviance, _ in fits.values())
        for name, (deviance, clock) in fits.items():
            near = np.flatnonzero(deviance <= 1.001 * best)
            reached = f"{clock[near[0]]:10.2f}" if len(near) else f"{'-':>10}"
            rises = int((np.diff(deviance) > 0).sum())
            print(f"{counts:17}{name:22}{deviance[-1]:10.0f}{rises:7}{len(deviance):12}{clock[-1]:9.2f}{reached}")
    draw(runs)


def draw(runs: dict[str, dict[str, Fit]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(runs), figsize=(15, 3.8), layout="constrained", sharey=True)
    for ax, (counts, fits) in zip(axes, runs.items(), strict=True):
        best = min(deviance.min() for deviance, _ in fits.values())
        for name, (deviance, clock) in fits.items():
            few = "o" if len(deviance) < 10 else None
            ax.loglog(clock, np.maximum(deviance / best - 1.0, 1e-6), marker=few, markersize=4, label=name)
        ax.set(title=counts, xlabel="seconds of processor time")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("deviance above the best, relative")
    axes[0].legend(frameon=False, fontsize="small")
    OUT.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT / "poisson.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
