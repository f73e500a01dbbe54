"""Models in a ball of an atomic norm, with a certificate: the duality gap that `dual_gap_` bounds is proved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pursuit.arguments import as_int_or_nan, as_list, number, require
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.matrices import RankOne
from pursuit.atoms.vectors import SignedBasis
from pursuit.domains import conv, penalty
from pursuit.estimators import checks
from pursuit.estimators.design import Design, Loss, ModelPath, Row
from pursuit.estimators.linear import LinearModel, Samples, SparseClassifier, SparseRegressor
from pursuit.estimators.tasks import Task
from pursuit.run.method import default_method
from pursuit.run.result import Result
from pursuit.run.stop import Status, Stop
from pursuit.solve import minimize
from pursuit.updates import FullyCorrective

BALLS = ("l1", "group", "ksupport", "l2", "nuclear")

FITTED = 1e-3
"""A path of radii ends once the mean loss is below this fraction of its value at radius 0."""

RADII = 0.1, 30.0
"""The smallest and the largest radius of a default path. The unit is the radius at which the loss would be zero, if it
fell for ever as it falls at radius 0."""

WARM_UPDATE = FullyCorrective(several=8, accuracy=1e-2)
"""The update from the second radius of a path on: most atoms are there already, and only few are new."""

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


@dataclass(frozen=True)
class BallSolver:
    """Frank-Wolfe over a ball of coefficients, with free intercepts, for each level: a radius, or the factor of a
    penalty."""

    levels: list[float]
    penalised: bool
    ball: str
    groups: Any
    k: int
    tol: float
    max_iter: int

    def __call__(self, f: Loss, design: Design) -> ModelPath:
        first = design.without_features(f, self.tol)
        if not design.q or not first.value > f.infimum:  # nothing to choose from, or nothing left to fit
            return ModelPath.of(design, [first], 1)
        A, rule = self.atoms(design, f.space.shape), Stop(rgap=self.tol, iterations=self.max_iter)
        floor = f.infimum + FITTED * (first.value - f.infimum)
        rows, n_iter = [first], 0
        last: Result | None = None
        for level in self.levels:
            ball = penalty(level * A) if self.penalised else conv(level * A)
            domain = design.with_intercepts(ball, f.space.shape)
            update, refine = default_method(f, domain)
            if last is not None and refine is None and isinstance(update, FullyCorrective):
                update = WARM_UPDATE
            last = minimize(f, domain, update, refine=refine, stop=rule, start=last)
            rows.append(Row.of(level, last, design.q))
            n_iter += last.iterations + 1
            if last.value <= floor or last.status is Status.INTERRUPTED:
                break
        return ModelPath.of(design, rows, n_iter, last)

    def atoms(self, design: Design, shape: tuple[int, ...]) -> Atoms:
        """The extreme points of the unit ball, seen through X."""
        q, several = design.q, len(shape) == 2
        outputs = shape[1] if several else 1
        if self.ball == "l1" and not several:
            return Dictionary(design.X, signed=True)
        ball: Atoms
        if self.ball == "group":
            labels = np.repeat(np.arange(q) if self.groups is None else design.groups(self.groups), outputs)
            ball = Groups(labels, np.sqrt(np.bincount(labels) / outputs))
        elif self.ball == "ksupport":
            checks.count(self.k, "k")
            ball = KSupport(q * outputs, min(int(self.k), q * outputs))
        elif self.ball == "nuclear" and several:
            ball = RankOne((q, outputs))
        else:
            m = q * outputs
            ball = SignedBasis(m) if self.ball == "l1" else KSupport(m, m)  # unit vectors of all directions
        return ball.through(design.X, columns=outputs if several else None)

    def scale(self, f: Loss, design: Design) -> float:
        """The radius at which the loss would be at its infimum, if it fell for ever as it falls at radius 0."""
        ones = design.intercepts(f.space.shape)
        x = f.space.zeros() if ones is None else minimize(f, ones, stop=Stop(rgap=self.tol)).x
        value, grad = f.value_and_grad(x)
        slope = -float(np.vdot(grad, self.atoms(design, f.space.shape).lmo(grad).vector)) if design.q else 0.0
        return (value - f.infimum) / slope if slope > 0 else 1.0


class _Atomic(LinearModel):
    _checks = checks.table(ball=checks.one_of(*BALLS), tol=checks.positive, max_iter=checks.count)

    @property
    def _norm(self) -> str:
        return str(self.ball)

    def _solver(self, levels: list[float], penalised: bool = False) -> BallSolver:
        return BallSolver(levels, penalised, self.ball, self.groups, self.k, self.tol, self.max_iter)

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
    fit_intercept: bool = True
    tol: float = 1e-6
    max_iter: int = 1000

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Minimise the mean loss over the ball, or the mean loss and the penalty."""
        self._check()
        penalised = self.penalty is not None
        name, level = ("penalty", self.penalty) if penalised else ("radius", self.radius)
        require(0 < number(level) < np.inf, name, level, "a positive number")
        samples = self._samples(X, y, sample_weight)
        models = samples.path(self._solver([number(level)], penalised))
        return self._take(samples.task, models, len(models) - 1)


@dataclass(eq=False, repr=False)
class _AtomicCV(_Atomic):
    """The radius with the lowest held-out loss, from one warm-started path per fold."""

    radii: Any = 20
    ball: str = "l1"
    loss: str = "squared_error"
    groups: Any = None
    k: int = 10
    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 1000

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the radius by cross-validation, and fit it on all data."""
        self._check()
        samples = self._samples(X, y, sample_weight)
        solver = self._solver(self._radii(samples))
        levels = np.array([0.0, *solver.levels])
        losses, _, radius = samples.cross_validate([solver], levels, self.cv)
        models = samples.path(replace(solver, levels=[r for r in solver.levels if r <= radius]))
        self.cv_losses_, self.levels_, self.radius_ = losses, levels, radius
        return self._take(samples.task, models, models.at(radius))

    def _radii(self, samples: Samples) -> list[float]:
        """The user's radii, or as many as asked for, from a first fall of the loss to a fit of almost everything."""
        if not as_int_or_nan(self.radii) >= 1:
            radii = sorted(number(r) for r in as_list(self.radii))
            wanted = "a number of radii, or positive numbers"
            require(len(radii) > 0 and 0 < radii[0] <= radii[-1] < np.inf, "radii", self.radii, wanted)
            return radii
        unit = self._solver([]).scale(*samples.problem())
        return [float(r) for r in unit * np.geomspace(*RADII, int(self.radii))] if unit > 0 else [1.0]


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


@dataclass(eq=False, repr=False)
class AtomicRegressorCV(SparseRegressor, _AtomicCV):
    """`AtomicRegressor` with the radius of the lowest held-out loss, each fold a path of warm-started radii.

    `radii` are the radii, or their number; `cv` is as everywhere in scikit-learn. After `fit`, `radius_` is the choice,
    and `cv_losses_` has the losses of the radii (0 first, then `levels_`) and folds.

    >>> import numpy as np
    >>> from pursuit.estimators import AtomicRegressorCV
    >>> X = np.random.default_rng(0).standard_normal((60, 200))
    >>> y = 4.0 + 3.0 * X[:, 5] - 2.0 * X[:, 9]
    >>> model = AtomicRegressorCV(radii=[1.0, 2.0, 5.0]).fit(X, y)
    >>> model.radius_, np.flatnonzero(model.coef_)
    (5.0, array([5, 9]))
    """

    cv: Any = None


@dataclass(eq=False, repr=False)
class AtomicClassifierCV(SparseClassifier, _AtomicCV):
    """`AtomicClassifier` with the radius of the lowest held-out loss; parameters and attributes as for
    `AtomicRegressorCV`.

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
    cv: Any = None
