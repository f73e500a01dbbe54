"""Models in a ball of an atomic norm, with a certificate: the duality gap that `dual_gap_` bounds is proved."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pursuit.arguments import as_int_or_nan, as_list, number, require
from pursuit.estimators import checks
from pursuit.estimators.balls import BallSolver
from pursuit.estimators.design import ModelPath
from pursuit.estimators.linear import LinearModel, Samples, SparseClassifier, SparseRegressor
from pursuit.estimators.tasks import Task
from pursuit.estimators.validation import PARAMETERS as FOLD_PARAMETERS
from pursuit.estimators.validation import CrossValidated

BALLS = ("l1", "group", "ksupport", "l2", "nuclear")

PENALTIES = 0.9, 0.01
"""The first and the last penalty of a default path, beside the smallest one that leaves no feature in."""

RADII = 0.1, 30.0
"""The smallest and the largest radius of a default path, where radii are not the norms of a path of penalties. The unit
is the radius at which the loss would be zero, if it fell for ever as it falls at radius 0."""

PARAMETERS = """
    Parameters
    ----------
    radius : float, optional
        The bound on the norm of the coefficients, which are those of columns at unit scale.
    penalty : float, optional
        The factor of the norm, where it is added to the mean loss instead of the bound; the radius then has no effect.
    ball : 'l1', 'group', 'ksupport', 'l2' or 'nuclear'
        The norm. 'group' has a group for each label in `groups`; without them, a feature's coefficients for all outputs
        or classes are a group. 'nuclear' is for several outputs or classes; for one output it is 'l2'.
    l2 : float
        A ridge l2/2 ||b||^2 beside the loss: with ball='l1' the elastic net.
    standardize : bool
        Whether columns are divided by their deviation, so that units do not matter. (Coefficients are those of the
        columns as given, in any case.)
    factors : (n_features,) positive numbers, optional
        The price of each feature: columns are divided by them.
    loss : {losses}
    groups : (n_features,) labels, optional
        For ball='group'.
    k : int
        For ball='ksupport': how many coefficients the norm is made for.
    fit_intercept : bool
    tol, max_iter : float, int
        The certified gap at which fitting ends, relative to the objective; and the most iterations.

    After `fit`, `coef_` and `intercept_` have scikit-learn's shapes, `dual_gap_` is a proved bound on how far the
    objective (the mean loss, and the penalty) is above its minimum, and `dropped_` has the names (or numbers) of
    constant features, whose coefficients are 0.
"""


class _Atomic(LinearModel):
    _checks = checks.table(
        ball=checks.one_of(*BALLS),
        l2=checks.amount,
        standardize=checks.boolean,
        tol=checks.positive,
        max_iter=checks.count,
    )

    @property
    def _norm(self) -> str:
        return str(self.ball)

    def _solver(self, levels: list[float], penalised: bool = False) -> BallSolver:
        l2 = float(self.l2)
        return BallSolver(levels, penalised, self.ball, self.groups, self.k, l2, self.tol, self.max_iter)

    def _take(self, task: Task, path: ModelPath, row: int) -> Self:
        self.dual_gap_ = float(path.gap[row])
        return super()._take(task, path, row)


@dataclass(eq=False, repr=False)
class _AtomicOfRadius(_Atomic):
    """A given radius, or a given penalty."""

    radius: float | None = 1.0
    penalty: float | None = None
    ball: str = "l1"
    loss: str = "squared_error"
    groups: Any = None
    k: int = 10
    l2: float = 0.0
    fit_intercept: bool = True
    standardize: bool = True
    factors: Any = None
    tol: float = 1e-6
    max_iter: int = 1000

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Minimise the mean loss over the ball, or the mean loss and the penalty; an `offset` of each sample is added
        to its scores."""
        self._check()
        penalised = self.penalty is not None
        name, level = ("penalty", self.penalty) if penalised else ("radius", self.radius)
        require(0 < number(level) < np.inf, name, level, "a positive number")
        samples = self._samples(X, y, sample_weight, offset)
        models = samples.path(self._solver([number(level)], penalised))
        return self._take(samples.task, models, len(models) - 1)


@dataclass(eq=False, repr=False)
class _AtomicCV(_Atomic, CrossValidated):
    """The radius or the penalty with the lowest held-out loss, from one warm-started path per fold."""

    radii: Any = 20
    penalties: Any = None
    ball: str = "l1"
    loss: str = "squared_error"
    groups: Any = None
    k: int = 10
    l2: float = 0.0
    fit_intercept: bool = True
    standardize: bool = True
    factors: Any = None
    tol: float = 1e-4
    max_iter: int = 1000
    cv: Any = None
    rule: str = "min"
    scoring: Any = None
    n_jobs: int | None = None
    random_state: Any = None

    @property
    def _level(self) -> str:  # type: ignore[override]
        return "radius" if self.penalties is None else "penalty"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, offset: Any = None) -> Self:
        """Choose the radius (or the penalty) by cross-validation, and fit it on all data; `groups` go to the splitter
        `cv`, and an `offset` of each sample is added to its scores."""
        self._check()
        penalised = self.penalties is not None
        if penalised and as_int_or_nan(self.radii) != type(self).radii:
            raise ValueError("radii and penalties are both given; give one of them.")
        samples = self._samples(X, y, sample_weight, offset)
        solver = self._solver(self._levels(samples), penalised)
        levels = np.array([np.inf if penalised else 0.0, *solver.levels])
        folds = self._folds(samples, groups)
        _, best = self._choose(self._validate(samples, [replace(solver, proved=False)], levels, folds), levels)
        models = samples.path(replace(solver, levels=solver.levels[: max(best, 1)]))
        row, chosen = models.at(levels[best]), float(levels[best])
        self.radius_ = None if penalised else chosen
        self.penalty_ = chosen if penalised else None
        if best == len(levels) - 1 and not as_int_or_nan(self.penalties if penalised else self.radii) >= 1:
            name = "smallest of the penalties" if penalised else "largest of the radii"
            message = f"the {name}, {chosen:.4g}, was the best one; give more, beyond it."
            warnings.warn(message, UserWarning, stacklevel=2)
        return self._take(samples.task, models, row)

    def _levels(self, samples: Samples) -> list[float]:
        """The user's levels, from the simplest model on; or as many as asked for, from a first fall of the loss to a
        fit of almost everything."""
        penalised = self.penalties is not None
        name, given = ("penalties", self.penalties) if penalised else ("radii", self.radii)
        if not as_int_or_nan(given) >= 1:
            levels = sorted((number(r) for r in as_list(given)), reverse=penalised)
            wanted = f"a number of {name}, or positive numbers"
            require(len(levels) > 0 and all(0 < level < np.inf for level in levels), name, given, wanted)
            return levels
        solver, problem = self._solver([]), samples.problem()
        radius, penalty = solver.scale(*problem)
        if not radius > 0:
            return [1.0]
        penalties = [float(level) for level in penalty * np.geomspace(*PENALTIES, int(given))]
        if penalised:
            return penalties
        radii = solver.radii(*problem, penalties)
        return radii or [float(level) for level in radius * np.geomspace(*RADII, int(given))]


@dataclass(eq=False, repr=False)
class AtomicRegressor(SparseRegressor, _AtomicOfRadius):
    __doc__ = f"""Regression over a ball of coefficients: lasso, group lasso, k-support, ridge and trace norm by radius.
    {PARAMETERS.format(losses="'squared_error', 'huber' or 'poisson' (log link)")}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import AtomicRegressor
    >>> X = np.random.default_rng(0).standard_normal((50, 300))
    >>> y = 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9]
    >>> model = AtomicRegressor(radius=4.0).fit(X, y)
    >>> np.flatnonzero(model.coef_), model.dual_gap_ <= 1e-6
    (array([5, 9]), True)
    """


@dataclass(eq=False, repr=False)
class AtomicClassifier(SparseClassifier, _AtomicOfRadius):
    __doc__ = f"""Logistic classification over a ball of coefficients; of several classes by the multinomial loss.
    {PARAMETERS.format(losses="'log_loss'")}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import AtomicClassifier
    >>> X = np.random.default_rng(0).standard_normal((90, 300))
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 5], [-0.5, 0.5])]
    >>> model = AtomicClassifier(radius=1.0, ball="group").fit(X, y)
    >>> np.flatnonzero(model.coef_.any(axis=0)), model.dual_gap_ <= 1e-6
    (array([5]), True)
    """

    loss: str = "log_loss"
    class_weight: Any = None


CV_PARAMETERS = (
    """
    Parameters
    ----------
    radii : int or positive numbers
        The radii, or their number: the norms of the models of that many penalties, where coordinate descent finds them.
    penalties : int or positive numbers, optional
        Choose the factor of the norm among these instead of the radius.
    ball, loss, groups, k, l2, fit_intercept, standardize, factors, tol, max_iter
        As for models of a given radius.
"""
    + FOLD_PARAMETERS.lstrip("\n")
    + """
    After `fit`, `radius_` (or `penalty_`) is the choice, `cv_losses_` has the losses (1, levels, folds), or minus the
    scores, for `levels_`, of which the first is the model without features; `cv_results_` is the same as a table of
    scikit-learn's.
"""
)


@dataclass(eq=False, repr=False)
class AtomicRegressorCV(SparseRegressor, _AtomicCV):
    __doc__ = f"""`AtomicRegressor` with the radius or penalty of the lowest held-out loss, each fold a path.
    {CV_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import AtomicRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9]
    >>> model = AtomicRegressorCV(radii=[1.0, 2.0, 5.0, 6.0, 9.0]).fit(X, y)
    >>> model.radius_, np.flatnonzero(model.coef_)
    (6.0, array([5, 9]))
    """


@dataclass(eq=False, repr=False)
class AtomicClassifierCV(SparseClassifier, _AtomicCV):
    __doc__ = f"""`AtomicClassifier` with the radius or penalty of the lowest held-out loss, each fold a path.
    {CV_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import AtomicClassifierCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = np.where(X[:, 5] - X[:, 9] > 0, "yes", "no")
    >>> model = AtomicClassifierCV(radii=[1.0, 10.0, 100.0]).fit(X, y)
    >>> model.radius_, model.score(X, y) > 0.95
    (10.0, True)
    """

    loss: str = "log_loss"
    class_weight: Any = None
