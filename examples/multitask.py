"""Multilinear multitask regression: many small regressions that share structure.

There is one linear regression for each pair of a site and a season. The weights of all of them form a tensor (feature,
site, season); if it has low rank, tasks help each other. The predictions are a linear map of the tensor, so the atoms
are rank-one tensors *seen through* that map, `RankOneTensor(shape).through(M)`, and generalised matching pursuit with
`Slide` (line 7 of Algorithm 4) fits all tasks together.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import scipy.sparse as sp

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
FEATURES, SITES, SEASONS, RANK = 10, 8, 6, 2


def design(X: np.ndarray) -> sp.csr_array:
    """The map from a weight tensor to the predictions of all tasks; X is (site, season, observation, feature)."""
    site, season, _, feature = np.indices(X.shape)
    columns = np.ravel_multi_index((feature, site, season), (FEATURES, SITES, SEASONS)).ravel()
    rows = np.repeat(np.arange(X.size // FEATURES), FEATURES)
    return sp.csr_array((X.ravel(), (rows, columns)), shape=(X.size // FEATURES, FEATURES * SITES * SEASONS))


def draws(W: np.ndarray, n: int, noise: float, rng: np.random.Generator) -> tuple[sp.csr_array, np.ndarray]:
    M = design(rng.standard_normal((SITES, SEASONS, n, FEATURES)))
    y = M @ W.ravel()
    return M, y + noise * y.std() * rng.standard_normal(len(y))


def joint(M: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """Two rank-one terms for all tasks, factors and weights moved together."""
    A = ps.RankOneTensor((FEATURES, SITES, SEASONS)).through(M)
    r = ps.minimize(ps.LeastSquares(y), ps.lin(A), stop=ps.Stop(atoms=RANK), refine=ps.refine.Slide())
    return r.coef.full().ravel()


def separate(M: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """Ridge regression: tasks share no column of M, so this fits each alone."""
    return np.linalg.solve((M.T @ M).toarray() + 0.5 * np.eye(M.shape[1]), M.T @ y)


def pooled(M: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """One regression for all tasks."""
    same = sp.kron(sp.eye_array(FEATURES), np.ones((SITES * SEASONS, 1)))
    return same @ np.linalg.lstsq((M @ same).toarray(), y, rcond=None)[0]


def main() -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    W = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((n, RANK)) for n in (FEATURES, SITES, SEASONS)))
    fresh, target = draws(W, 50, 0.0, rng)
    sizes = [2, 3, 5, 8, 12, 20]
    methods = {"one regression for all": pooled, "each task alone": separate, "tensor of rank 2": joint}
    errors: dict[str, list[float]] = {name: [] for name in methods}
    for n in sizes:
        M, y = draws(W, n, 0.3, rng)
        for name, method in methods.items():
            wrong = fresh @ method(M, y) - target
            errors[name].append(float(np.linalg.norm(wrong) / np.linalg.norm(target)))
    print(f"{'observations per task':26}" + "".join(f"{n:9}" for n in sizes))
    for name, values in errors.items():
        print(f"{name:26}" + "".join(f"{v:9.3f}" for v in values))
    draw(sizes, errors)
    return errors


def draw(sizes: list[int], errors: dict[str, list[float]]) -> None:
    figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
    for name, values in errors.items():
        ax.loglog(sizes, values, marker="o", label=name)
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1.0], ["5 %", "10 %", "20 %", "50 %", "100 %"])
    ax.set(
        title=f"{SITES * SEASONS} regressions with {FEATURES} features each",
        xlabel="observations per task",
        ylabel="error of predictions",
    )
    ax.grid(alpha=0.3)
    ax.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "multitask.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
