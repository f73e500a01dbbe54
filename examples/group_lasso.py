"""Group lasso: which variables matter, when every variable is a group of columns.

A categorical variable becomes one column per level, and the question is which variables matter, not which columns. The
atoms are unit vectors on one group, `Groups(labels)`, seen through the design matrix; their hull is the ball of the
group norm sum_G ||beta_G||. Each group has a continuum of directions, of which the oracle names one per call. `Regroup`
(line 7 of Algorithm 3, the default here) moves the directions of all active groups together: a handful of calls where
weights alone take dozens.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import pursuit as ps

mpl.use("Agg")
import matplotlib.pyplot as plt

OUT = Path("out")
VARIABLES, LEVELS, ACTIVE = 30, 6, 4
LABELS = np.repeat(np.arange(VARIABLES), LEVELS)  # of columns: which variable


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """150 observations to fit and 150 for validation, of which only the first four variables matter; the effects."""
    rng = np.random.default_rng(seed)
    X = np.eye(LEVELS)[rng.integers(LEVELS, size=(300, VARIABLES))].reshape(300, -1) - 1 / LEVELS
    beta = np.where(LABELS < ACTIVE, rng.standard_normal(VARIABLES * LEVELS), 0.0)
    return X, X @ beta + rng.standard_normal(300), beta


def fits(A: ps.Atoms, y: np.ndarray, radii: np.ndarray, **options) -> list[ps.Result]:
    stop = ps.Stop(rgap=1e-5)
    return [ps.minimize(ps.LeastSquares(y), ps.conv(float(tau) * A), stop=stop, **options) for tau in radii]


def main() -> dict[str, int]:
    X, y, _ = problem()
    half, radii = len(y) // 2, np.linspace(1.0, 12.0, 12)
    train = X[:half]
    groups = ps.Groups(LABELS).through(train)
    paths = {
        "groups": fits(groups, y[:half], radii),
        "single columns": fits(ps.Dictionary(train, signed=True), y[:half], 2 * radii),
    }
    wrong = {}
    for name, path in paths.items():
        errors = [float(np.mean((X[half:] @ r.coef - y[half:]) ** 2)) for r in path]
        coef = path[int(np.argmin(errors))].coef
        chosen = {int(v) for v in LABELS[np.abs(coef) > 1e-6]}
        wrong[name] = len(chosen - set(range(ACTIVE)))
        print(f"{name:16} validation error {min(errors):.2f}, variables {len(chosen):2}, needless {wrong[name]:2}")
    plain = fits(groups, y[:half], radii, update=ps.FullyCorrective(several=64))
    calls = {"weights alone": plain, "with Regroup": paths["groups"]}
    for name, path in calls.items():
        print(f"{name:16} {sum(r.oracle_calls for r in path)} oracle calls for the {len(radii)} radii")
    draw(radii, paths["groups"], calls)
    return wrong


def draw(radii: np.ndarray, path: list[ps.Result], calls: dict[str, list[ps.Result]]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
    sizes = np.array([[np.linalg.norm(r.coef[v == LABELS]) for v in range(VARIABLES)] for r in path])
    left.plot(radii, sizes[:, ACTIVE:], color="0.7", linewidth=1)
    left.plot(radii, sizes[:, :ACTIVE], linewidth=2)
    left.plot([], [], color="C0", linewidth=2, label="variables that matter")
    left.plot([], [], color="0.7", linewidth=1, label="others")
    left.set(title="norm of each group", xlabel="radius", ylabel="norm")
    for name, results in calls.items():
        right.plot(radii, [r.oracle_calls for r in results], marker="o", markersize=4, label=name)
    right.set(title="oracle calls to a relative gap of 1e-5", xlabel="radius", ylim=(0, None))
    for ax in (left, right):
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "group_lasso.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
