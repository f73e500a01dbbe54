"""Greedy models: features enter one at a time, the one that helps most first, and all coefficients are refitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from pursuit import native
from pursuit.arguments import as_list, require
from pursuit.estimators import checks
from pursuit.estimators.base import threads
from pursuit.estimators.design import ModelPath
from pursuit.estimators.forward import SEPARATED, GreedySolver
from pursuit.estimators.linear import LinearModel, Samples, SparseClassifier, SparseRegressor, Validation
from pursuit.estimators.lockstep import Lockstep
from pursuit.estimators.subsets import SubsetSolver
from pursuit.estimators.validation import PARAMETERS as FOLD_PARAMETERS
from pursuit.estimators.validation import CrossValidated, Fold, weight_of_folds
from pursuit.run.method import PATH_UPDATE
from pursuit.threads import processors
from pursuit.updates import FullyCorrective

Paths = Callable[[int, int], ModelPath]
"""The path on all samples for a ridge, up to a size or further."""

SLIGHT, RIDGES = 0.1, (0.0, 0.1, 10.0)
"""The default ridge of classifiers and those that cross-validation tries, divided by the sum of the sample weights: in
scikit-learn's words C = 10, and C = 10 and 0.1. Their effect fades as the number of samples grows."""

MAX_SIZES, PLAIN_SIZES, BEHIND = 100, 30, 10
"""By default cross-validation tries at most so many features (30 on the plain path), and ends once it has tried twice
as many as are best, and 10 more."""

FOLD_UPDATE = FullyCorrective(accuracy=1e-3)
"""The update in folds: a held-out loss needs fewer digits than a model."""

PARAMETERS = """
    Parameters
    ----------
    loss : {losses}
    n_nonzero : int or None
        The number of features to choose (of groups, where `groups` are given). None: as many as `tol` needs.
    l2 : float or None
        The ridge l2/2 ||b||^2 beside the mean loss, b being the coefficients of columns at unit scale. None: 0.1
        divided by the number of samples (the sum of their weights), which is C = 10 of scikit-learn.
    groups : (n_features,) labels, optional
        Features of one label enter together.
    positive : bool
        Whether coefficients must not be negative (one output, no groups).
    fit_intercept : bool
    tol : float, optional
        Fitting ends once the objective is at most this fraction of its value without features.
    n_jobs : int, optional
        The number of threads, by default as many as the process may use.

    After `fit`, `coef_` and `intercept_` have scikit-learn's shapes, `path_` has the models of all sizes, `n_iter_` is
    their number, and `dropped_` has the names (or numbers) of constant features, whose coefficients are 0.
"""


class _Greedy(LinearModel):
    _checks = checks.table(positive=checks.boolean, tol=checks.optional_amount)
    _norm: ClassVar[str] = "group"  # by which one of the equal models of several classes is chosen
    penalty: ClassVar[str] = "l1"  # for SelectFromModel, which then keeps the features whose coefficient is not 0

    def _solver(self, size: int | None, l2: float | None, update: FullyCorrective) -> GreedySolver:
        return GreedySolver(size, float(l2 or 0.0), update, self.groups, bool(self.positive), float(self.tol or 0.0))

    @property
    def _plain(self) -> bool:
        """Whether only the plain path can do it."""
        return self.groups is not None or bool(self.positive) or not native.is_built()

    def _lockstep(self, samples: Samples, folds: list[Fold], ridges: list[float], **how: Any) -> Lockstep:
        separated = max(float(self.tol or 0.0), SEPARATED)
        return Lockstep(samples, folds, ridges, tol=separated, **how)

    def at_size(self, k: int) -> Self:
        """A copy of the model with k features (the last with fewer, where none has k): that of the path."""
        checks.iterations(k, "k")
        return self._at(float(k))


@dataclass(eq=False, repr=False)
class _GreedyOfSize(_Greedy):
    _checks = checks.table(n_nonzero=checks.optional_count, l2=checks.optional_amount)

    loss: str = "squared_error"
    n_nonzero: int | None = 10
    l2: float | None = 0.0
    groups: Any = None
    positive: bool = False
    fit_intercept: bool = True
    tol: float | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Choose features and fit their coefficients; an `offset` of each sample is added to its scores."""
        self._check()
        samples = self._samples(X, y, sample_weight, offset)
        l2 = SLIGHT / samples.weights.sum() if self.l2 is None else float(self.l2)
        if self._plain:
            models = samples.path(self._solver(self.n_nonzero, l2, PATH_UPDATE))
        else:
            models = self._compiled(samples, l2)
        return self._take(samples.task, models, len(models) - 1)

    def _compiled(self, samples: Samples, l2: float) -> ModelPath:
        run = self._lockstep(samples, [], [l2], threads=threads(self.n_jobs) or processors())
        most, complete = self.n_nonzero or samples.X.shape[1], True
        try:
            while len(run.losses) <= most and run.advance():
                pass
        except KeyboardInterrupt:
            complete = False
        return replace(run.path(0), complete=complete)


@dataclass(eq=False, repr=False)
class _GreedyCV(_Greedy, CrossValidated):
    """The size, and the ridge where several are given, with the lowest held-out loss."""

    _checks = checks.table(max_nonzero=checks.optional_count)
    _level: ClassVar[str] = "n_nonzero"

    loss: str = "squared_error"
    max_nonzero: int | None = None
    l2: float | Iterable[float] | None = 0.0
    groups: Any = None
    positive: bool = False
    fit_intercept: bool = True
    tol: float | None = None
    cv: Any = None
    rule: str = "min"
    scoring: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, offset: Any = None) -> Self:
        """Choose the number of features and the ridge by cross-validation, and fit all data; `groups` go to the
        splitter `cv`, and an `offset` of each sample is added to its scores."""
        self._check()
        samples = self._samples(X, y, sample_weight, offset)
        ridges = [c / samples.weights.sum() for c in RIDGES] if self.l2 is None else as_list(self.l2)
        for l2 in ridges:
            checks.amount(l2, "l2")
        self.ridges_ = np.array(ridges, dtype=np.float64)
        folds = self._folds(samples, groups)
        fit = self._by_paths if self._plain else self._in_lockstep
        validation, paths = fit(samples, folds)
        levels = np.arange(validation.losses.shape[1])
        ridge, size = self._choose(validation, levels)
        models = paths(ridge, size)
        row = models.at(size)
        self.l2_, self.n_nonzero_ = float(self.ridges_[ridge]), int(models.level[row])
        self._warn_at_edge(models, ridge, size)
        return self._take(samples.task, models, row)

    def _by_paths(self, samples: Samples, folds: list[Fold]) -> tuple[Validation, Paths]:
        """One plain path for each fold and ridge."""
        most = self.max_nonzero or PLAIN_SIZES
        solvers = [self._solver(most, l2, FOLD_UPDATE) for l2 in self.ridges_]
        validation = self._validate(samples, solvers, np.arange(most + 1), folds)

        def path(ridge: int, size: int) -> ModelPath:
            return samples.path(replace(solvers[ridge], size=max(size, 1), update=PATH_UPDATE))

        return validation, path

    def _in_lockstep(self, samples: Samples, folds: list[Fold]) -> tuple[Validation, Paths]:
        """All folds and ridges by the compiled kernel: up to `max_nonzero` features or, without one, until the best
        size is far behind."""
        score, sizes = self._score(), weight_of_folds(samples, folds)
        jobs, most = threads(self.n_jobs) or processors(), self.max_nonzero or MAX_SIZES
        run = self._lockstep(samples, folds, list(self.ridges_), threads=jobs, keep=score is not None)
        while len(run.losses) <= most and run.advance():
            best = int(np.argmin((np.array(run.losses) @ sizes).min(axis=1)))
            if self.max_nonzero is None and len(run.losses) > BEHIND + 2 * best:
                break
        table = np.transpose(run.losses, (1, 0, 2))
        if score is not None:
            levels, held = np.arange(len(run.losses)), [samples.rows(out) for _, out in folds]
            for i, k in np.ndindex(len(table), len(folds)):
                table[i, :, k] = held[k].losses(run.path(i, 1 + k), levels, score)
        return Validation(table, sizes, run.unit if score is None else 1.0), lambda ridge, _: run.path(ridge)

    def _warn_at_edge(self, models: ModelPath, ridge: int, size: int) -> None:
        """Warn where a larger size or another ridge may be better."""
        most = self.max_nonzero or (PLAIN_SIZES if self._plain else MAX_SIZES)
        if size >= most and size < np.count_nonzero(models.scale):
            message = f"the largest number of features, {size}, was the best one; give a larger max_nonzero."
            warnings.warn(message, UserWarning, stacklevel=3)
        if len(self.ridges_) > 1 and size > 0 and self.ridges_[ridge] == self.ridges_.max() and self.l2 is not None:
            message = f"the largest ridge, l2={self.ridges_[ridge]:g}, was the best one; give larger ones, too."
            warnings.warn(message, UserWarning, stacklevel=3)


@dataclass(eq=False, repr=False)
class GreedyRegressor(SparseRegressor, _GreedyOfSize):
    __doc__ = f"""Regression by the features that help most: orthogonal matching pursuit for every loss.

    With several targets a feature is chosen for all of them.
    {PARAMETERS.format(losses="'squared_error', 'huber' or 'poisson' (log link)")}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import GreedyRegressor
    >>> X = np.random.default_rng(0).standard_normal((50, 300))
    >>> model = GreedyRegressor(n_nonzero=2).fit(X, 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9])
    >>> np.flatnonzero(model.coef_), model.coef_[[5, 9]].round(6), round(model.intercept_, 6)
    (array([5, 9]), array([ 3., -2.]), 4.0)

    `search="swaps"` lets features change places afterwards; `search="exact"` finds the best `n_nonzero` features, and
    proves that no others are better (Ctrl-C ends it with what is proved so far). Both have attributes `gap_` and
    `lower_`: no model of that size has an objective below `lower_`.

    >>> model = GreedyRegressor(n_nonzero=2, search="exact").fit(X, X[:, 5] - X[:, 9] + 0.1 * X[:, 7])
    >>> np.flatnonzero(model.coef_), bool(model.lower_ <= model.path_.value[-1]), model.gap_ < 1e-6
    (array([5, 9]), True, True)
    """

    search: str = "greedy"
    _checks = checks.table(search=checks.one_of("greedy", "swaps", "exact"))

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Choose features and fit their coefficients; an `offset` of each sample is added to its scores."""
        if self.search == "greedy":
            return super().fit(X, y, sample_weight, offset)
        self._check()
        require(self.n_nonzero is not None, "n_nonzero", None, f"a number of features with search={self.search!r}")
        samples, exact = self._samples(X, y, sample_weight, offset), self.search == "exact"
        solver = SubsetSolver(int(self.n_nonzero or 0), self.l2 or 0.0, self.groups, bool(self.positive), exact)
        models = samples.path(solver)
        self.gap_, self.lower_ = float(models.gap[-1]), float(models.value[-1] - models.gap[-1])
        return self._take(samples.task, models, len(models) - 1)


@dataclass(eq=False, repr=False)
class GreedyClassifier(SparseClassifier, _GreedyOfSize):
    __doc__ = f"""Logistic classification by the features that help most; several classes share their features.

    Where there are more features than samples, a few features separate the classes, and without a ridge their
    coefficients grow without bound; so the default has a small one, which fades as samples are added. With `l2=0` the
    path ends where the classes are separated.
    {PARAMETERS.format(losses="'log_loss'")}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import GreedyClassifier
    >>> X = np.random.default_rng(0).standard_normal((90, 300))
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 5], [-0.5, 0.5])]
    >>> model = GreedyClassifier(n_nonzero=1).fit(X, y)
    >>> np.flatnonzero(model.coef_.any(axis=0)), model.predict_proba(X[:2]).shape
    (array([5]), (2, 3))
    """

    loss: str = "log_loss"
    l2: float | None = None
    class_weight: Any = None


CV_PARAMETERS = (
    """
    Parameters
    ----------
    max_nonzero : int, optional
        The most features that are tried. By default sizes are tried until twice the best one, and 10 more, at most 100;
        a warning says where more may be better.
    l2 : float, list of floats, or None
        The ridges to choose from. None: 0, and those of C = 10 and 0.1 in scikit-learn's words (0.1 / n and 10 / n).
    loss, groups, positive, fit_intercept, tol
        As for models of a given size.
"""
    + FOLD_PARAMETERS.lstrip("\n")
    + """
    After `fit`, `n_nonzero_` and `l2_` are the choice, `cv_losses_` has the losses (ridges, sizes from 0, folds), or
    minus the scores, `cv_results_` is the same as a table of scikit-learn's, and `at_size(k)` is the model with k
    features.
"""
)


@dataclass(eq=False, repr=False)
class GreedyRegressorCV(SparseRegressor, _GreedyCV):
    __doc__ = f"""`GreedyRegressor` with the number of features (and the ridge) of the lowest held-out loss.

    {CV_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import GreedyRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9]
    >>> model = GreedyRegressorCV(max_nonzero=6).fit(X, y)
    >>> model.n_nonzero_, np.flatnonzero(model.coef_)
    (2, array([5, 9]))
    """


@dataclass(eq=False, repr=False)
class GreedyClassifierCV(SparseClassifier, _GreedyCV):
    __doc__ = f"""`GreedyClassifier` with the number of features and the ridge of the lowest held-out loss.

    {CV_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import GreedyClassifierCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = np.where(X[:, 5] - X[:, 9] > 0, "yes", "no")
    >>> model = GreedyClassifierCV(max_nonzero=4).fit(X, y)
    >>> model.n_nonzero_, np.flatnonzero(model.coef_)
    (2, array([5, 9]))
    """

    loss: str = "log_loss"
    l2: float | Iterable[float] | None = None
    class_weight: Any = None
