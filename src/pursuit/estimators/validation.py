"""Cross-validation of paths: the folds, the losses of all levels, and the choice."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import copy
from itertools import product
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import check_scoring
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from pursuit.arguments import as_int_or_nan, require
from pursuit.estimators import checks
from pursuit.estimators.base import Array, threads
from pursuit.estimators.design import ModelPath
from pursuit.estimators.linear import LinearModel, Samples, Score, Solver, Validation
from pursuit.estimators.tasks import Classification, Task

Fold = tuple[Array, Array]
"""Rows to train on, and rows held out."""

PARAMETERS = """
    cv : int, splitter or iterable, optional
        The folds, 5 by default, as everywhere in scikit-learn; `fit` takes `groups` for splitters that need them.
    rule : 'min' or '1se'
        The model of the lowest held-out loss, or the simplest one whose loss is within a standard error of it.
    scoring : str or callable, optional
        A score of scikit-learn's to choose by, instead of the held-out loss.
    n_jobs : int, optional
        The number of threads or processes.
    random_state : int or RandomState, optional
        Shuffles the samples before they are divided, where `cv` is a number.
"""


class CrossValidated(LinearModel):
    """A model whose level (and ridge, say) was chosen on folds: `cv_losses_` (solvers, levels, folds), `levels_`."""

    _checks = checks.table(rule=checks.one_of("min", "1se"))
    _level: ClassVar[str]
    cv_losses_: Array
    levels_: Array

    def _folds(self, samples: Samples, groups: Any) -> list[Fold]:
        """Rows for training and for validation, but for folds without a class to train on, or without weight."""
        discrete, cv = isinstance(samples.task, Classification), self.cv
        target = samples.target
        if cv is None or as_int_or_nan(cv) >= 2:  # no more folds than samples
            most = int(np.bincount(target).max()) if discrete else len(target)
            count = max(2, min(int(cv or 5), most))
            shuffled = {} if self.random_state is None else {"shuffle": True, "random_state": self.random_state}
            splitter = (StratifiedKFold if discrete else KFold)(count, **shuffled)
        else:
            splitter = check_cv(cv, target, classifier=discrete)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class with fewer samples than folds: see below
            folds = list(splitter.split(samples.X, target, groups))
        weighted = samples.weights > 0
        usable = [
            (train, held)
            for train, held in folds
            if weighted[held].any() and samples.task.trainable(target[train][weighted[train]])
        ]
        if not usable:
            missing = "every class" if discrete else "two samples"
            raise ValueError(f"no fold has {missing} to train on; give more samples, or other folds.")
        return usable

    def _score(self) -> Score | None:
        """The score to choose by; None for the held-out loss."""
        if self.scoring is None:
            return None
        try:
            scorer = check_scoring(self, scoring=self.scoring)
        except (TypeError, ValueError):
            require(
                False,
                "scoring",
                self.scoring,
                "the name of one of scikit-learn's scores, or a function of a model, X, y",
            )

        def score(task: Task, path: ModelPath, row: int, held: Samples) -> float:
            found = float(scorer(copy(self)._take(task, path, row), held.X, held.y))
            if math.isnan(found):
                raise ValueError(f"scoring={self.scoring!r} is NaN on a fold; give larger folds, or another score.")
            return found

        return score

    def _validate(self, samples: Samples, solvers: Sequence[Solver], levels: Array, folds: list[Fold]) -> Validation:
        """The held-out losses of all solvers and levels, one path for each fold."""
        score = self._score()

        def losses(solver: Solver, fold: Fold) -> list[float]:
            path = samples.rows(fold[0]).path(solver)
            if not path.complete:
                raise KeyboardInterrupt
            return samples.rows(fold[1]).losses(path, levels, score)

        pairs = product(solvers, folds)
        if self.n_jobs in (None, 1):
            found = [losses(*pair) for pair in pairs]
        else:
            found = Parallel(n_jobs=threads(self.n_jobs))(delayed(losses)(*pair) for pair in pairs)
        table = np.reshape(found, (len(solvers), len(folds), len(levels))).transpose(0, 2, 1)
        return Validation(table, weight_of_folds(samples, folds))

    def _choose(self, validation: Validation, levels: Array) -> tuple[int, int]:
        """The solver and the level of the choice, which is kept with all losses."""
        with np.errstate(over="ignore", under="ignore"):
            self.cv_losses_, self.levels_ = validation.unit * (validation.unit * validation.losses), levels
        chosen = validation.choice(self.rule)
        self.best_index_ = chosen[0] * len(levels) + chosen[1]
        return chosen

    @property
    def cv_results_(self) -> dict[str, Array]:
        """The table of scikit-learn's searches: a row for each ridge and level, with the mean score of the folds (minus
        the loss, or the score asked for), its standard deviation, its rank and the score of each fold."""
        if not hasattr(self, "cv_losses_"):
            raise AttributeError(f"this {type(self).__name__} has no cv_results_ yet; call fit first.")
        ridges, levels, folds = self.cv_losses_.shape
        scores = -self.cv_losses_.reshape(-1, folds)
        mean = scores.mean(axis=1)
        names = {"param_l2": np.repeat(self.ridges_, levels)} if hasattr(self, "ridges_") else {}
        names |= {f"param_{self._level}": np.tile(self.levels_, ridges)}
        rank = 1 + np.argsort(np.argsort(-mean, kind="stable"), kind="stable")
        table = {"mean_test_score": mean, "std_test_score": scores.std(axis=1), "rank_test_score": rank}
        return names | table | {f"split{k}_test_score": column for k, column in enumerate(scores.T)}


def weight_of_folds(samples: Samples, folds: list[Fold]) -> Array:
    """The weight of the samples that each fold holds out."""
    return np.array([samples.weights[held].sum() for _, held in folds])
