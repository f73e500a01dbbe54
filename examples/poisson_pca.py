"""Principal components of counts: exponential-family PCA with a Poisson loss.

Counts of genes in cells are mostly zeros and ones, and PCA, made for Gaussian noise, mistakes their noise for
structure. With the log link, Y_ij is Poisson with the rate exp(o_ij + X_ij), where o is what the margins explain (how
deep a cell was read, how common a gene is) and X has low rank. Matching pursuit over `lin(RankOne)` adds one component
per oracle call, and `Factors` moves all of them. Nothing bounds the curvature of exp, yet the deviance
2 (f(x) - min f) never rises: every step is a line search or is checked against an upper bound of f.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
CELLS, GENES, KINDS = 150, 120, 4


class Offset(ps.Objective):
    """f(o + x): all that an objective of one's own needs."""

    def __init__(self, f: ps.Objective, o: np.ndarray) -> None:
        self.f, self.o, self.space, self.infimum = f, o, f.space, f.infimum

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        return self.f.value_and_grad(x + self.o)

    def hessian(self, x: np.ndarray):
        return self.f.hessian(x + self.o)


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Counts of cells that are of four kinds, and the kind of each cell."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(KINDS, size=CELLS)
    profile = rng.normal(-1.0, 1.0, GENES) + 0.8 * rng.standard_normal((KINDS, GENES))
    return rng.poisson(np.exp(profile[kind] + rng.normal(0.0, 0.6, (CELLS, 1)))).astype(float), kind


def components(Y: np.ndarray, rank: int) -> ps.Result:
    o = np.log(np.outer(Y.sum(axis=1), Y.sum(axis=0)) / Y.sum())  # rows and columns independent
    f = Offset(ps.Poisson(Y), o)
    update, refine = ps.NormCorrective(), ps.refine.Factors()
    return ps.minimize(f, ps.lin(ps.RankOne(Y.shape)), update, refine=refine, stop=ps.Stop(atoms=rank))


def purity(scores: np.ndarray, kind: np.ndarray) -> float:
    """The share of cells whose nearest neighbour in the plane of components is of their kind."""
    distance = np.linalg.norm(scores[:, None] - scores[None], axis=2) + np.diag(np.full(len(kind), np.inf))
    return float(np.mean(kind[distance.argmin(axis=1)] == kind))


def main() -> dict[str, float]:
    Y, kind = problem()
    Y = Y[:, Y.sum(axis=0) > 0]
    r = components(Y, KINDS - 1)
    logs = np.log1p(Y) - np.log1p(Y).mean(axis=0)
    U, s, _ = np.linalg.svd(logs, full_matrices=False)
    k = KINDS - 1
    views = {"PCA of log(1 + counts)": U[:, :k] * s[:k], "Poisson PCA": r.coef.U * r.coef.s}
    shares = {name: purity(scores, kind) for name, scores in views.items()}
    deviance = 2 * (np.array(r.trace.value) - r.f.infimum)
    print(f"{np.mean(Y == 0):.0%} of the counts are zero; deviance with 0, 1, ... components:")
    print("  " + " ".join(f"{d:.0f}" for d in deviance))
    for name, share in shares.items():
        print(f"{name:24} nearest neighbour of the same kind: {share:.0%}")
    draw(views, kind, deviance)
    return shares


def draw(views: dict[str, np.ndarray], kind: np.ndarray, deviance: np.ndarray) -> None:
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    for ax, (name, scores) in zip(axes, views.items(), strict=False):
        for k in range(KINDS):
            ax.scatter(*scores[kind == k, :2].T, s=14, color=f"C{k}", label=f"kind {k + 1}")
        ax.set(title=name, xlabel="component 1", ylabel="component 2")
    axes[0].legend(frameon=False)
    axes[2].plot(deviance, marker="o", color="0.3")
    axes[2].set(title="deviance", xlabel="components", xticks=range(len(deviance)))
    axes[2].grid(alpha=0.3)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "poisson_pca.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
