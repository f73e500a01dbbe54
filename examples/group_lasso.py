"""Group lasso: which variables matter, when every variable is a group of columns.

A categorical variable becomes one column per level, and the question is which variables matter, not which columns. The
atoms are unit vectors on one group, `Groups(labels)`, seen through the design matrix; their hull is the ball of the
group norm sum_G ||beta_G||. It chooses, but it shrinks, too: the radius that predicts best is so large that needless
variables have entered. So each radius names variables, least squares on them alone gives the coefficients, and the
validation part chooses among these. `Regroup`, the default here, moves the directions of all active groups together.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pursuit as ps

VARIABLES, LEVELS, ACTIVE = 30, 6, 4
LABELS = np.repeat(np.arange(VARIABLES), LEVELS)  # of columns: which variable


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """300 observations of which only the first four variables matter."""
    rng = np.random.default_rng(seed)
    X = np.eye(LEVELS)[rng.integers(LEVELS, size=(300, VARIABLES))].reshape(300, -1) - 1 / LEVELS
    beta = np.where(LABELS < ACTIVE, rng.standard_normal(VARIABLES * LEVELS), 0.0)
    return X, X @ beta + rng.standard_normal(300)


def main() -> dict[str, int]:
    (X, X_validation), (y, y_validation) = (np.split(data, 2) for data in problem())
    radii = np.linspace(1.0, 12.0, 23)
    path = ps.path(ps.LeastSquares(y), ps.Groups(LABELS).through(X), radii=radii)
    print(f"{sum(r.oracle_calls for r in path.results)} oracle calls for {len(radii)} radii")
    norms = np.array([[np.linalg.norm(r.coef[v == LABELS]) for v in range(VARIABLES)] for r in path.results])
    coefs = {"shrunken": [r.coef for r in path.results], "refitted": []}
    for chosen in norms[:, LABELS] > 0:
        coefs["refitted"].append(np.zeros(len(LABELS)))
        coefs["refitted"][-1][chosen] = np.linalg.lstsq(X[:, chosen], y)[0]
    needless, (figure, (left, right)) = {}, plt.subplots(1, 2, figsize=(10.5, 4), layout="constrained")
    for name, betas in coefs.items():
        errors = [float(np.mean((X_validation @ beta - y_validation) ** 2)) for beta in betas]
        best = int(np.argmin(errors))
        needless[name] = int((norms[best, ACTIVE:] > 0).sum())
        print(f"{name}: validation error {errors[best]:.2f}, {needless[name]:2} needless variables")
        right.plot(radii, errors, marker="o", markevery=[best], label=f"{name}: {needless[name]} needless variables")
    left.plot(radii, norms[:, :ACTIVE], linewidth=2, label=[f"variable {v + 1}" for v in range(ACTIVE)])
    left.plot(radii, norms[:, ACTIVE:], color="0.7", linewidth=1, label=["needless"] + [""] * (VARIABLES - ACTIVE - 1))
    left.set(title="norm of each group", xlabel="radius")
    right.set(title="error on the validation part, and its minimum", xlabel="radius", ylim=(0, None))
    left.legend(frameon=False)
    right.legend(frameon=False)
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/group_lasso.png", dpi=150)
    plt.close(figure)
    return needless


if __name__ == "__main__":
    main()
