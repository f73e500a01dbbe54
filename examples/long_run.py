"""Long runs: logged, saved on the way, and resumed after an interruption.

`verbose=logger` logs a line at iterations 0, 1, 2, 4, 8, ... The callback sees every state and saves the numbers and
weights of the active atoms, a few kB however large the data are; `start=(weights, atoms)` goes on from there. In one
session `start=result` is enough, also after Ctrl-C. The default update would need no long run; pairwise steps do.
"""

import logging
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

OUT, SAVED = Path("out"), Path("out/long_run.npz")


def problem(seed: int = 0) -> tuple[ps.Logistic, ps.Atoms]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 5000))
    X[:, 1:] += X[:, :-1]  # neighbours are alike
    y = X[:, ::250] @ rng.standard_normal(20) + 2 * rng.standard_normal(600) > 0
    return ps.Logistic(y), 12.0 * ps.Dictionary(X, signed=True)


def save(state: ps.State) -> None:
    if state.iteration % 50 == 0:
        atoms = [(a.source, a.coef) for a in state.active.atoms]
        np.savez(OUT / "saving.npz", atoms=atoms, weights=state.active.weights)
        (OUT / "saving.npz").replace(SAVED)  # a process that is killed leaves a whole file


def main() -> dict[str, float]:
    (f, A), update, log, stop = problem(), ps.Pairwise(), logging.getLogger("long_run"), ps.Stop(rgap=1e-4)
    OUT.mkdir(exist_ok=True)
    log.setLevel("INFO")
    log.addHandler(logging.FileHandler(OUT / "long_run.log", mode="w"))
    first = ps.minimize(f, ps.conv(A), update, stop=ps.Stop(iterations=333), callback=save, verbose=log)
    with np.load(SAVED) as saved:  # at iteration 300; of 2 n atoms, the last n are the negatives
        start = saved["weights"], [A.atom(int(i) + A.size // 2 * (sign < 0)) for i, sign in saved["atoms"]]
    second = ps.minimize(f, ps.conv(A), update, stop=stop, start=start, callback=save, verbose=log)
    log.handlers.pop().close()
    whole = ps.minimize(f, ps.conv(A), update, stop=stop)
    texts = f"uninterrupted, {whole.iterations} iterations: {whole.value:.6f}", f"resumed: {second.value:.6f}"
    print(*(OUT / "long_run.log").read_text().splitlines()[-3:-1], *texts, sep="\n")
    figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    ax.semilogy(whole.trace.gap, color="0.8", linewidth=6, label="uninterrupted")
    ax.semilogy(first.trace.gap, label="first session, stopped at iteration 333")
    ax.semilogy(300 + second.trace.iteration, second.trace.gap, label="second session, from the file of iteration 300")
    ax.set(xlabel="iteration", ylabel="certified gap")
    ax.legend(frameon=False)
    figure.savefig(OUT / "long_run.png", dpi=150)
    plt.close(figure)
    return {"at the start": second.trace.value[0] - first.trace.value[300], "at the end": second.value - whole.value}


if __name__ == "__main__":
    main()
