"""Feature selection: 3030 columns, 150 samples, and only 30 columns that mean anything.

The 30 measurements of scikit-learn's breast cancer data are hidden among 3000 probes: the same columns with their rows
shuffled, which look alike and say nothing. `GreedyClassifierCV` fits an intercept, adds the column that helps most, and
refits; the ridge is that of the lowest held-out loss, the number of columns the smallest within a standard error of it.
`AtomicClassifierCV` is logistic regression in an L1 ball, its radius chosen likewise: about as good at predicting, but
with many columns that mean nothing. The other 419 samples are for the test.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import pursuit as ps
from pursuit.estimators import AtomicClassifierCV, GreedyClassifier, GreedyClassifierCV

SIZES = 12


def main() -> dict[str, tuple[int, float]]:
    data, rng, found = load_breast_cancer(), np.random.default_rng(0), {}
    real = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    X = np.hstack([real, *(rng.permuted(real, axis=0) for _ in range(100))])
    X, X_test, y, y_test = train_test_split(X, data.target, train_size=150, stratify=data.target, random_state=0)
    for model in (AtomicClassifierCV(), GreedyClassifierCV(max_nonzero=SIZES, rule="1se")):
        chosen = np.flatnonzero(model.fit(X, y).coef_)
        probes, score = int(np.sum(chosen >= real.shape[1])), float(model.score(X_test, y_test))
        print(f"{type(model).__name__:20}{len(chosen):3} columns, {probes:2} are probes, {score:.1%} of the test right")
        found[type(model).__name__] = probes, score
    print("chosen:", ", ".join(data.feature_names[chosen[:4]]), "...")
    whole = GreedyClassifier(n_nonzero=SIZES, l2=model.l2_).fit(X, y)  # beyond the number that was chosen
    margins = (2 * y_test - 1) * whole.path_.scores(X_test)[:, :, 0]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    names = [*data.feature_names, *(f"probe {i}" for i in range(1, 1 + X.shape[1] - real.shape[1]))]
    ps.plots.plot_path(whole, names=names, labels=8, ax=left)
    left.set(title="the greedy path", xlabel="columns", ylabel="coefficient of a column at unit scale")
    held_out = model.cv_losses_[list(model.ridges_).index(model.l2_)]
    right.errorbar(model.levels_, held_out.mean(axis=1), held_out.std(axis=1) / len(held_out[0]) ** 0.5, label="folds")
    right.plot(model.levels_, np.logaddexp(0, -margins).mean(axis=1), label="test")
    right.axvline(model.n_nonzero_, color="0.6", linestyle=":", label="chosen: within a standard error")
    right.set(title="held-out loss", xlabel="columns", ylabel="mean logistic loss", ylim=(0, None))
    right.legend(frameon=False)
    Path("out").mkdir(exist_ok=True)
    figure.savefig("out/features.png", dpi=150)
    plt.close(figure)
    return found


if __name__ == "__main__":
    main()
