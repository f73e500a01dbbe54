"""Long runs: logged, kept in a file on the way, and continued after an interruption.

`verbose=logger` logs a line at iterations 0, 1, 2, 4, 8, ... `checkpoint="run.npz"` keeps the run in a file, every
minute and at its end, small however large the data are: the same call, in another process, goes on from there, and
its iterates are those of a run that was never stopped, bit for bit. In one session `start=result` is enough. The
default update would need no long run; pairwise steps do.
"""

import logging
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

OUT, FILE = Path("out"), Path("out/long_run.npz")


def problem(seed: int = 0) -> tuple[ps.Logistic, ps.Domain]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 5000))
    X[:, 1:] += X[:, :-1]  # neighbours are alike
    y = X[:, ::250] @ rng.standard_normal(20) + 2 * rng.standard_normal(600) > 0
    return ps.Logistic(y), ps.conv(12.0 * ps.Dictionary(X, signed=True))


def main() -> dict[str, float]:
    (f, domain), log, stop = problem(), logging.getLogger("long_run"), ps.Stop(rgap=1e-4)
    OUT.mkdir(exist_ok=True)
    FILE.unlink(missing_ok=True)
    log.setLevel("INFO")
    log.addHandler(logging.FileHandler(OUT / "long_run.log", mode="w"))
    first = ps.minimize(f, domain, ps.Pairwise(), stop=ps.Stop(iterations=333), checkpoint=FILE, verbose=log)
    again = problem()  # as another process would make it
    second = ps.minimize(*again, ps.Pairwise(), stop=stop, checkpoint=FILE, verbose=log)
    log.handlers.pop().close()
    whole = ps.minimize(f, domain, ps.Pairwise(), stop=stop)
    texts = f"uninterrupted, {whole.iterations} iterations: {whole.value:.6f}", f"continued: {second.value:.6f}"
    print(*(OUT / "long_run.log").read_text().splitlines()[-3:-1], *texts, sep="\n")
    figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    ax.semilogy(whole.trace.gap, color="0.8", linewidth=6, label="uninterrupted")
    ax.semilogy(second.trace.gap, label=f"continued from the file of iteration {first.iterations}")
    ax.semilogy(first.trace.gap, label=f"first session, stopped at iteration {first.iterations}")
    ax.set(xlabel="iteration", ylabel="certified gap")
    ax.legend(frameon=False)
    figure.savefig(OUT / "long_run.png", dpi=150)
    plt.close(figure)
    return {
        "bytes": FILE.stat().st_size,
        "difference of x": float(np.abs(second.x - whole.x).max()),
        "difference of iterations": second.iterations - whole.iterations,
    }


if __name__ == "__main__":
    main()
