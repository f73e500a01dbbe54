"""Dictionary learning under scikit-learn's names. The steps of `pursuit.learn` do the work.

In scikit-learn atoms are rows, and objectives are sums over samples where those of `learn` are means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pursuit.arguments import as_bool
from pursuit.dictionaries.learning import Step, batch_steps, sweep_steps
from pursuit.dictionaries.signals import LearningPlan, Signals
from pursuit.dictionaries.start import initial_dictionary
from pursuit.dictionaries.updates import Statistics
from pursuit.estimators import checks
from pursuit.estimators.base import FLOATS, SPARSE, Array, dense, threads
from pursuit.estimators.coder import Coder
from pursuit.estimators.functions import check_sign

check_method = checks.one_of("lars", "cd")
FORGETTING = 6.0
"""The parameter `forgetting` of `learn`, at its default."""
CALLBACK_PERIOD = 5
"""Iterations of DictionaryLearning from one call of `callback` to the next, as in scikit-learn."""
FIRST_STEPS = 100
"""Mini-batches, at most one pass over the samples, that convergence is not judged by, as in scikit-learn."""


@dataclass(eq=False, repr=False)
class _Learner(Coder):
    """What both classes share: parameters, a method of learning, a start."""

    n_components: int | None = None
    _: KW_ONLY
    alpha: float = 1
    max_iter: int = 1000
    tol: float = 1e-8
    fit_algorithm: str = "lars"
    dict_init: Any = None
    callback: Callable[[dict[str, Any]], Any] | None = None
    verbose: Any = False
    random_state: Any = None
    positive_dict: bool = False

    _checks = checks.table(
        n_components=checks.optional_count,
        alpha=checks.amount,
        max_iter=checks.iterations,
        tol=checks.amount,
        fit_algorithm=check_method,
        positive_dict=checks.boolean,
    )

    def _dictionary(self) -> Array:
        check_is_fitted(self)
        components: Array = self.components_
        return components

    def _penalty(self) -> float:
        return self.alpha if self.transform_alpha is None else self.transform_alpha

    def _method(self, update: str) -> LearningPlan:
        """Lasso codes with the penalty `alpha`, after a look at the parameters."""
        self._check()
        check_sign(self.fit_algorithm, self.positive_code)
        code = {"method": "lasso", "penalty": float(self.alpha), "positive": bool(self.positive_code)}
        return LearningPlan(code, update, bool(self.positive_dict), FORGETTING, threads(self.n_jobs))

    def _samples(self, X: Any, reset: bool = True) -> Signals:
        return Signals.checked(dense(validate_data(self, X, accept_sparse=SPARSE, dtype=FLOATS, reset=reset)))

    def _start(self, signals: Signals, dict_init: Any, random: Any) -> Array:
        """The first dictionary, its atoms as columns: the one given, or samples."""
        start: Any = "data" if dict_init is None else np.asarray(dict_init, signals.Y.dtype).T
        atoms = self.n_components or (signals.features if dict_init is None else start.shape[1])
        return initial_dictionary(start, signals, int(atoms), random.randint(2**31 - 1), bool(self.positive_dict))


@dataclass(eq=False, repr=False, kw_only=True)
class DictionaryLearning(_Learner):
    r"""A dictionary V of unit vectors, and codes U on it, that minimise 1/2 ||X - U V||^2 + alpha ||U||_1.

    Codes are exact Lasso codes, atoms follow by K-SVD: `pursuit.learn` with ``code={"method": "lasso", "penalty":
    alpha}``. The objective never rises; `error_` has it after each iteration, and the run ends where it falls by less
    than the share `tol`. Parameters and attributes are scikit-learn's, but for these:

    - `fit_algorithm` is of no effect, as both are names of the Lasso; as in scikit-learn, ``lars`` refuses
      `positive_code`;
    - the start is `dict_init` where `code_init` is given, too; otherwise it is made of samples;
    - `fit_transform` is `fit`, then `transform`; in scikit-learn it returns the Lasso codes of the last iteration,
      whatever `transform_algorithm` says, as `dict_learning` does.

    >>> import numpy as np
    >>> from pursuit.estimators import DictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((40, 8))
    >>> model = DictionaryLearning(12, transform_algorithm="lasso_lars", random_state=0).fit(X)
    >>> model.components_.shape, model.transform(X).shape
    ((12, 8), (40, 12))
    """

    code_init: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary from the rows of X."""
        self._learn(X)
        return self

    def _learn(self, X: Any) -> Array:
        """Learn a dictionary; returns the Lasso codes that it was learned with."""
        method, signals = self._method("ksvd"), self._samples(X)
        dict_init = None if self.code_init is None else self.dict_init
        D = self._start(signals, dict_init, check_random_state(self.random_state))
        errors: list[float] = []
        code = np.zeros((len(signals), D.shape[1]), D.dtype)
        for ii, step in zip(range(self.max_iter), sweep_steps(method, signals, D, None, 0), strict=False):
            D, code = step.D, step.X.toarray()
            errors.append(step.row[0] * len(signals))
            if self.verbose:
                print(f"[dict_learning] iteration {ii}: objective {errors[-1]:.7g}")
            if ii > 0 and errors[-2] - errors[-1] < self.tol * errors[-1]:
                break
            if ii % CALLBACK_PERIOD == 0 and self.callback is not None:
                self.callback({"ii": ii, "X": signals.Y, "code": code, "dictionary": D.T, "errors": errors})
        self.components_, self.error_, self.n_iter_ = np.ascontiguousarray(D.T), errors, len(errors)
        return code


@dataclass(eq=False, repr=False, kw_only=True)
class MiniBatchDictionaryLearning(_Learner):
    """A dictionary as of `DictionaryLearning`, learned from mini-batches, each of which is coded once in a pass.

    Parameters and attributes are scikit-learn's. At most `max_iter` passes over the samples; the run ends earlier where
    the dictionary changes by at most `tol` (in Frobenius norm divided by the number of atoms), or where
    `max_no_improvement` mini-batches in a row do not improve the running mean of costs.

    >>> import numpy as np
    >>> from pursuit.estimators import MiniBatchDictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((300, 8))
    >>> model = MiniBatchDictionaryLearning(12, batch_size=50, max_iter=5, random_state=0).fit(X)
    >>> model.components_.shape, model.partial_fit(X[:50]).n_steps_ > model.n_iter_
    ((12, 8), True)
    """

    batch_size: int = 256
    shuffle: bool = True
    tol: float = 1e-3
    max_no_improvement: int | None = 10

    _checks = checks.table(
        batch_size=checks.count, shuffle=checks.boolean, max_no_improvement=checks.optional_iterations
    )
    _saved = ("_A", "_B", "_uses", "_signals")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn a dictionary from the rows of X."""
        method, signals = self._method("online"), self._samples(X)
        random = check_random_state(self.random_state)
        D = self._start(signals, self.dict_init, random)
        order = random.permutation(len(signals)) if self.shuffle else np.arange(len(signals))
        size = min(self.batch_size, len(signals))
        batches = math.ceil(len(signals) / size)
        passes = ((sweep, _batches(signals, order, size)) for sweep in range(self.max_iter))
        settled = _settling(self.tol, self.max_no_improvement, len(signals), size)
        last, self.n_steps_ = None, 0
        for step in batch_steps(method, passes, D, None):
            last, self.n_steps_, change = step, self.n_steps_ + 1, np.linalg.norm(step.D - D) / D.shape[1]
            D, cost = step.D, step.row[0]
            if self.verbose:
                print(f"[dict_learning] mini-batch {self.n_steps_}: mean cost {cost:.7g}")
            if settled(self.n_steps_, cost, float(change)):
                break
            if self.callback is not None:
                first = (self.n_steps_ - 1) % batches * size
                batch = signals.Y[order[first : first + size]]
                self.callback({"i": self.n_steps_ - 1, "X_batch": batch, "dictionary": D.T, "batch_cost": cost})
        self.n_iter_ = math.ceil(self.n_steps_ / batches)
        self._keep(last)
        if last is None:  # no iteration: the start, as it was given
            self.components_ = np.ascontiguousarray(D.T if self.dict_init is None else self.dict_init, signals.Y.dtype)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on with the rows of X as one mini-batch."""
        fitted = "components_" in vars(self)
        method, signals = self._method("online"), self._samples(X, reset=not fitted)
        if fitted:
            D = np.asfortranarray(self.components_.T, signals.Y.dtype)
        else:
            self.n_steps_ = 0
            D = self._start(signals, self.dict_init, check_random_state(self.random_state))
        seen = vars(self).get("_signals", 0)
        past = Statistics(self._A, self._B, self._uses, seen) if seen else None
        self._keep(next(batch_steps(method, iter([(0, iter([signals]))]), D, past)))
        self.n_steps_ += 1
        return self

    def _keep(self, step: Step | None) -> None:
        """Take the dictionary and the statistics of a step; without one, there are no statistics."""
        if step is None or step.statistics is None:
            self._signals = 0
            return
        past = step.statistics
        self.components_ = np.ascontiguousarray(step.D.T)
        self._A, self._B, self._uses, self._signals = past.XX, past.YX, past.uses, past.signals


def _batches(signals: Signals, order: Array, size: int) -> Iterator[Signals]:
    return (signals.rows(order[start : start + size]) for start in range(0, len(signals), size))


def _settling(tol: float, patience: int | None, samples: int, size: int) -> Callable[[int, float, float], bool]:
    """scikit-learn's rule of convergence, as a function of the step, its cost and the change of the dictionary."""
    mean, best, waiting = math.nan, math.inf, 0

    def settled(step: int, cost: float, change: float) -> bool:
        nonlocal mean, best, waiting
        if step <= min(FIRST_STEPS, samples / size):
            return False
        share = min(1.0, size / (samples + 1))
        mean = cost if math.isnan(mean) else mean * (1 - share) + cost * share
        if tol > 0 and change <= tol:
            return True
        waiting = 0 if mean < best else waiting + 1
        best = min(best, mean)
        return patience is not None and waiting >= patience

    return settled


def dict_learning(
    X: Any,
    n_components: int,
    *,
    alpha: float,
    max_iter: int = 100,
    method: str = "lars",
    method_max_iter: int = 1000,
    return_n_iter: bool = False,
    **parameters: Any,
) -> tuple[Any, ...]:
    """The codes, the dictionary, the objectives of all iterations and, with `return_n_iter`, their number: the function
    of `DictionaryLearning`, whose other parameters it takes, too.

    >>> import numpy as np
    >>> from pursuit.estimators import dict_learning
    >>> X = np.random.default_rng(0).standard_normal((30, 8))
    >>> code, dictionary, errors = dict_learning(X, 12, alpha=0.5, random_state=0)
    >>> code.shape, dictionary.shape, bool(np.all(np.diff(errors) <= 1e-9))
    ((30, 12), (12, 8), True)
    """
    model = DictionaryLearning(
        n_components, alpha=alpha, max_iter=max_iter, fit_algorithm=method, transform_max_iter=method_max_iter,
        **parameters,
    )  # fmt: skip
    answer = model._learn(X), model.components_, model.error_
    return (*answer, model.n_iter_) if as_bool(return_n_iter, "return_n_iter") else answer


def dict_learning_online(
    X: Any,
    n_components: int | None = 2,
    *,
    alpha: float = 1,
    max_iter: int = 100,
    method: str = "lars",
    method_max_iter: int = 1000,
    return_code: bool = True,
    **parameters: Any,
) -> Any:
    """The codes (with `return_code`) and a dictionary from mini-batches: the function of `MiniBatchDictionaryLearning`,
    whose other parameters it takes, too.

    >>> import numpy as np
    >>> from pursuit.estimators import dict_learning_online
    >>> X = np.random.default_rng(0).standard_normal((30, 8))
    >>> dict_learning_online(X, 12, alpha=0.5, batch_size=10, random_state=0, return_code=False).shape
    (12, 8)
    """
    check_method(method, "method")
    model = MiniBatchDictionaryLearning(
        n_components, alpha=alpha, max_iter=max_iter, fit_algorithm=method, transform_algorithm=f"lasso_{method}",
        transform_max_iter=method_max_iter, **parameters,
    ).set_output(transform="default").fit(X)  # fmt: skip
    if not as_bool(return_code, "return_code"):
        return model.components_
    return model.transform(X), model.components_
