"""Dictionary learning: `learn` and the estimators beside scikit-learn, on patches of a picture and planted atoms.

    python benchmarks/dictionaries.py [patches] [planted]

Times are those of the processor, on one thread, so that a busy machine does not disturb them.
"""

from __future__ import annotations

import os
import sys
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import pursuit as ps

PENALTY, ATOMS = 1.0, 100


# ---------------------------------------------------------------------- patches of a picture


def picture_patches(train=100_000, test=5_000):
    """8 x 8 patches of scikit-learn's china.jpg without their means, in units of their standard deviation."""
    from sklearn.datasets import load_sample_image

    picture = load_sample_image("china.jpg").mean(axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (8, 8)).reshape(-1, 64)
    P = windows[np.random.default_rng(0).permutation(len(windows))[: train + test]]
    P = P - P.mean(axis=1, keepdims=True)
    P /= P.std()
    return P[:train], P[train:]


def lasso_objective(D, Y):
    """The mean over signals of 1/2 ||y - D x||^2 + penalty ||x||_1 at its minimum over x."""
    D = np.ascontiguousarray(D)
    X = ps.encode(D, Y, method="lasso", penalty=PENALTY)
    return float((0.5 * np.square(Y - X @ D.T).sum() + PENALTY * abs(X).sum()) / len(Y))


class Until:
    """A callback that notes the time when the held-out objective is first at or below a goal; looking costs nothing."""

    def __init__(self, test, goal, atoms):
        self.test, self.goal, self.atoms = test, goal, atoms
        self.began, self.reached, self.steps = time.process_time(), None, 0

    def __call__(self, state):
        now = time.process_time()
        self.steps += 1
        if self.reached is None and lasso_objective(self.atoms(state), self.test) <= self.goal:
            self.reached = now - self.began
        self.began += time.process_time() - now


def patches():
    from sklearn.decomposition import MiniBatchDictionaryLearning as Theirs

    from pursuit.estimators import MiniBatchDictionaryLearning as Ours

    train, test = picture_patches()
    print(
        f"{len(train):,} patches of 64 entries, {ATOMS} atoms, penalty {PENALTY}; held-out objective of {len(test):,}"
    )
    warnings.simplefilter("ignore")
    options = {"n_components": ATOMS, "alpha": PENALTY, "random_state": 0}
    goals = {}
    for algorithm in ("lars", "cd"):
        began = time.process_time()
        model = Theirs(fit_algorithm=algorithm, **options).fit(train)
        seconds, goal = time.process_time() - began, lasso_objective(model.components_.T, test)
        goals[algorithm] = seconds, goal
        print(f"  scikit-learn MiniBatchDictionaryLearning, {algorithm:4}  {seconds:7.2f} s  objective {goal:.4f}")
    goal = min(goal for _, goal in goals.values())

    def report(name, until, total, reached):
        times = ", ".join(f"1/{seconds / until.reached:.0f} of {key}'s" for key, (seconds, _) in goals.items())
        print(f"  {name:44}  {until.reached:7.3f} s to {goal:.4f} ({times}); ends at {reached:.4f} after {total:.2f} s")

    until = Until(test, goal, lambda state: state["dictionary"].T)
    model = Ours(callback=until, **options).fit(train)
    total = time.process_time() - until.began
    report("pursuit MiniBatchDictionaryLearning", until, total, lasso_objective(model.components_.T, test))
    until = Until(test, goal, lambda state: state.dictionary)
    code = {"method": "lasso", "penalty": PENALTY}
    learned = ps.learn(train, ATOMS, code=code, update="online", sweeps=1, callback=until)
    total = time.process_time() - until.began
    report("pursuit learn, online, one sweep", until, total, lasso_objective(learned.dictionary, test))


# ---------------------------------------------------------------------- a planted dictionary


def planted(signals, features, atoms, k, decibels, seed):
    """Signals of k atoms each of a random dictionary, and noise."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((features, atoms))
    D /= np.linalg.norm(D, axis=0)
    X = np.zeros((signals, atoms))
    for row in X:
        row[rng.choice(atoms, k, replace=False)] = rng.standard_normal(k)
    Y = X @ D.T
    noise = rng.standard_normal(Y.shape)
    return D, Y + noise * (np.linalg.norm(Y) / np.linalg.norm(noise) * 10 ** (-decibels / 20))


def share_found(D, found):
    """The share of atoms whose correlation with some atom found is above 0.99."""
    return float(np.mean(np.abs(D.T @ (found / np.linalg.norm(found, axis=0))).max(axis=1) > 0.99))


def planted_recovery():
    from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning

    warnings.simplefilter("ignore")
    scikit = {"n_components": 50, "alpha": 0.1, "fit_algorithm": "cd", "random_state": 0}
    ways = {
        "pursuit learn, ksvd, 100 sweeps": lambda Y: ps.learn(Y, 50, code={"atoms": 3}, sweeps=100).dictionary,
        "pursuit learn, block, 100 sweeps": lambda Y: (
            ps.learn(Y, 50, code={"atoms": 3}, update="block", sweeps=100).dictionary
        ),
        "scikit-learn DictionaryLearning, 100 iterations": lambda Y: (
            DictionaryLearning(max_iter=100, **scikit).fit(Y).components_.T
        ),
        "scikit-learn MiniBatchDictionaryLearning": lambda Y: (
            MiniBatchDictionaryLearning(max_iter=100, **scikit).fit(Y).components_.T
        ),
    }
    print("planted: 1,500 signals in R^20, 50 atoms, 3 a signal, 20 dB; share of atoms found (correlation above 0.99)")
    for name, way in ways.items():
        shares, seconds = [], []
        for seed in range(5):
            D, Y = planted(1_500, 20, 50, 3, 20, seed)
            began = time.process_time()
            shares.append(share_found(D, way(Y)))
            seconds.append(time.process_time() - began)
        each = " ".join(f"{share:.2f}" for share in shares)
        print(f"  {name:48} {np.mean(shares):.3f} ({each}), {np.median(seconds):.2f} s")


PARTS = {"patches": patches, "planted": planted_recovery}

if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        for part in sys.argv[1:] or PARTS:
            PARTS[part]()
