"""Models in a ball of an atomic norm, with a certificate: the duality gap that `dual_gap_` bounds is proved."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from pursuit.arguments import as_int_or_nan, as_list, number
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.groups import Groups, KSupport
from pursuit.atoms.matrices import RankOne
from pursuit.atoms.vectors import SignedBasis
from pursuit.domains import conv, penalty
from pursuit.estimators.base import require
from pursuit.estimators.linear import (
    Array,
    Design,
    LinearModel,
    Loss,
    ModelPath,
    SparseClassifier,
    SparseRegressor,
    group_labels,
    row_of,
    without_features,
)
from pursuit.run.method import default_method
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
        An intercept is free.
    tol : float
        The certified gap at which fitting ends, relative to the objective.
    max_iter : int

    Attributes
    ----------
    coef_, intercept_ : arrays of scikit-learn's shapes
    dropped_ : array
        The names (or numbers) of features that are constant; their coefficients are 0.
    dual_gap_ : float
        A proved bound on how far the objective (the mean loss, and the penalty) is above its minimum.
    n_iter_ : int
"""


class _Atomic(LinearModel):
    """Frank-Wolfe over a ball of coefficients, with free intercepts."""

    def _check(self) -> dict[str, Any]:
        require(self.ball in BALLS, "ball", self.ball, f"one of {BALLS}")
        require(number(self.tol) > 0, "tol", self.tol, "a positive number")
        require(as_int_or_nan(self.max_iter) >= 1, "max_iter", self.max_iter, "an integer of at least 1")
        return {}

    @property
    def _penalised(self) -> bool:
        return getattr(self, "penalty", None) is not None

    def _level(self) -> float:
        """The radius, or the factor of the penalty."""
        name = "penalty" if self._penalised else "radius"
        require(0 < number(getattr(self, name)) < np.inf, name, getattr(self, name), "a positive number")
        return float(getattr(self, name))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Minimise the mean loss over the ball, or the mean loss and the penalty."""
        parameters = self._check() | {"levels": [self._level()]}
        X, target, weights = self._read(X, y, sample_weight)
        found = self._path(X, target, weights, parameters)
        return self._take(found, len(found) - 1)

    def _take(self, path: ModelPath, row: int) -> Self:
        self.dual_gap_ = float(path.gap[row])
        return super()._take(path, row)

    def _solve(self, f: Loss, design: Design, parameters: dict[str, Any]) -> ModelPath:
        first, ones = without_features(f, design, self.tol), design.intercepts(f.space.shape)
        if not design.q or not first[1] > f.infimum:  # nothing to choose from, or nothing left to fit
            return ModelPath.of(design, [first], 1)
        A, rule = self._atoms(design, f.space.shape), Stop(rgap=self.tol, iterations=self.max_iter)
        floor = f.infimum + FITTED * (first[1] - f.infimum)
        rows, n_iter, last = [first], 0, None
        for r in parameters["levels"]:
            ball = penalty(r * A) if self._penalised else conv(r * A)
            domain = ball if ones is None else ball + ones
            update, refine = default_method(f, domain)
            if last is not None and refine is None and isinstance(update, FullyCorrective):
                update = WARM_UPDATE
            last = minimize(f, domain, update, refine=refine, stop=rule, start=last)
            rows.append(row_of(r, last, design.q))
            n_iter += last.iterations + 1
            if last.value <= floor or last.status is Status.INTERRUPTED:
                break
        return ModelPath.of(design, rows, n_iter, last)

    def _atoms(self, design: Design, shape: tuple[int, ...]) -> Atoms:
        """The extreme points of the unit ball, seen through X."""
        q, several = design.q, len(shape) == 2
        outputs = shape[1] if several else 1
        if self.ball == "l1" and not several:
            return Dictionary(design.X, signed=True)
        ball: Atoms
        if self.ball == "group":
            labels = np.arange(q) if self.groups is None else group_labels(self.groups, design.p)[design.kept]
            labels = np.repeat(np.unique(labels, return_inverse=True)[1], outputs)
            ball = Groups(labels, np.sqrt(np.bincount(labels) / outputs))
        elif self.ball == "ksupport":
            require(as_int_or_nan(self.k) >= 1, "k", self.k, "an integer of at least 1")
            ball = KSupport(q * outputs, min(int(self.k), q * outputs))
        elif self.ball == "nuclear" and several:
            ball = RankOne((q, outputs))
        else:
            m = q * outputs
            ball = SignedBasis(m) if self.ball == "l1" else KSupport(m, m)  # unit vectors of all directions
        return ball.through(design.X, columns=outputs if several else None)


class _AtomicCV(_Atomic):
    """The radius with the lowest held-out loss, from one warm-started path per fold."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the radius by cross-validation, and fit it on all data."""
        parameters = self._check()
        X, target, weights = self._read(X, y, sample_weight)
        radii = self._radii(X, target, weights)
        parameters |= {"levels": radii}
        _, self.radius_ = self._choose(X, target, weights, [parameters], np.array([0.0, *radii]))
        found = self._path(X, target, weights, parameters | {"levels": [r for r in radii if r <= self.radius_]})
        return self._take(found, found.at(self.radius_))

    def _radii(self, X: Any, target: Array, weights: Array) -> list[float]:
        """The user's radii, or as many as asked for, from a first fall of the loss to a fit of almost everything."""
        if not as_int_or_nan(self.radii) >= 1:
            radii = sorted(number(r) for r in as_list(self.radii))
            wanted = "a number of radii, or positive numbers"
            require(len(radii) > 0 and 0 < radii[0] <= radii[-1] < np.inf, "radii", self.radii, wanted)
            return radii
        used = np.flatnonzero(weights)
        share = weights[used] / weights.sum()
        f, design = self._objective(target[used], share), Design.of(X[used], weights[used], self.fit_intercept)
        ones = design.intercepts(f.space.shape)
        x = f.space.zeros() if ones is None else minimize(f, ones, stop=Stop(rgap=self.tol)).x
        value, grad = f.value_and_grad(x)
        fall = 0.0 if not design.q else -float(np.vdot(grad, self._atoms(design, f.space.shape).lmo(grad).vector))
        unit = (value - f.infimum) / fall if fall > 0 else 1.0
        return [float(r) for r in unit * np.geomspace(*RADII, int(self.radii))] if unit > 0 else [1.0]


class AtomicRegressor(SparseRegressor, _Atomic):
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

    def __init__(
        self,
        radius: float | None = 1.0,
        penalty: float | None = None,
        ball: str = "l1",
        loss: str = "squared_error",
        groups: Any = None,
        k: int = 10,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.radius = radius
        self.penalty = penalty
        self.ball = ball
        self.loss = loss
        self.groups = groups
        self.k = k
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter


class AtomicClassifier(SparseClassifier, _Atomic):
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

    def __init__(
        self,
        radius: float | None = 1.0,
        penalty: float | None = None,
        ball: str = "l1",
        loss: str = "log_loss",
        groups: Any = None,
        k: int = 10,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Any = None,
    ) -> None:
        self.radius = radius
        self.penalty = penalty
        self.ball = ball
        self.loss = loss
        self.groups = groups
        self.k = k
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight


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

    def __init__(
        self,
        radii: Any = 20,
        ball: str = "l1",
        loss: str = "squared_error",
        groups: Any = None,
        k: int = 10,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        cv: Any = None,
    ) -> None:
        self.radii = radii
        self.ball = ball
        self.loss = loss
        self.groups = groups
        self.k = k
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv


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

    def __init__(
        self,
        radii: Any = 20,
        ball: str = "l1",
        loss: str = "log_loss",
        groups: Any = None,
        k: int = 10,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        class_weight: Any = None,
        cv: Any = None,
    ) -> None:
        self.radii = radii
        self.ball = ball
        self.loss = loss
        self.groups = groups
        self.k = k
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.cv = cv
