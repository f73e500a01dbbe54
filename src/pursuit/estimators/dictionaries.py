"""Dictionary learning under scikit-learn's names. The steps of `pursuit.learn` do the work.

In scikit-learn atoms are rows, and objectives are sums over samples where those of `learn` are means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pursuit.arguments import as_bool
from pursuit.dictionaries.learning import Step, batch_steps, sweep_steps
from pursuit.dictionaries.signals import LearningPlan, Signals
from pursuit.dictionaries.start import initial_dictionary
from pursuit.dictionaries.updates import Statistics
from pursuit.estimators.base import (
    FLOATS,
    Array,
    Estimator,
    dense,
    require_amount,
    require_choice,
    require_count,
    threads,
)
from pursuit.estimators.functions import ALGORITHMS, check_positive
from pursuit.estimators.pursuits import SparseCoder

FIT_ALGORITHMS = ("lars", "cd")
FORGETTING = 6.0
"""Of mini-batches, as by default in `learn`."""
CALLBACK_PERIOD = 5
"""Iterations of DictionaryLearning from one call of `callback` to the next, as in scikit-learn."""
FIRST_STEPS = 100
"""Mini-batches, at most one pass over the samples, that convergence is not judged by, as in scikit-learn."""


def dict_learning(
    X: Any,
    n_components: int,
    *,
    alpha: float,
    max_iter: int = 100,
    tol: float = 1e-8,
    method: str = "lars",
    n_jobs: int | None = None,
    dict_init: Any = None,
    code_init: Any = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    verbose: Any = False,
    random_state: Any = None,
    return_n_iter: bool = False,
    positive_dict: bool = False,
    positive_code: bool = False,
    method_max_iter: int = 1000,
) -> tuple[Any, ...]:
    """Codes U and a dictionary V with X ~ U V: `DictionaryLearning` as a function, with its parameters.

    Returns
    -------
    code : array of shape (n_samples, n_components)
    dictionary : array of shape (n_components, n_features)
    errors : list of the objective after each iteration
    n_iter : int, where `return_n_iter` is True

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import dict_learning
    >>> X = np.random.default_rng(0).standard_normal((30, 8))
    >>> code, dictionary, errors = dict_learning(X, 12, alpha=0.5, random_state=0)
    >>> code.shape, dictionary.shape, bool(np.all(np.diff(errors) <= 1e-9))
    ((30, 12), (12, 8), True)
    """
    model = DictionaryLearning(
        n_components, alpha=alpha, max_iter=max_iter, tol=tol, fit_algorithm=method, n_jobs=n_jobs, dict_init=dict_init,
        code_init=code_init, callback=callback, verbose=verbose, random_state=random_state,
        positive_code=positive_code, positive_dict=positive_dict, transform_max_iter=method_max_iter,
    )  # fmt: skip
    code = model._learn(X)
    found = code, model.components_, model.error_
    return (*found, model.n_iter_) if as_bool(return_n_iter, "return_n_iter") else found


def dict_learning_online(
    X: Any,
    n_components: int | None = 2,
    *,
    alpha: float = 1,
    max_iter: int = 100,
    return_code: bool = True,
    dict_init: Any = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    batch_size: int = 256,
    verbose: Any = False,
    shuffle: bool = True,
    n_jobs: int | None = None,
    method: str = "lars",
    random_state: Any = None,
    positive_dict: bool = False,
    positive_code: bool = False,
    method_max_iter: int = 1000,
    tol: float = 1e-3,
    max_no_improvement: int | None = 10,
) -> Any:
    """A dictionary from mini-batches: `MiniBatchDictionaryLearning` as a function, with its parameters.

    Returns
    -------
    code : array of shape (n_samples, n_components), where `return_code` is True
    dictionary : array of shape (n_components, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import dict_learning_online
    >>> X = np.random.default_rng(0).standard_normal((30, 8))
    >>> dict_learning_online(X, 12, alpha=0.5, batch_size=10, random_state=0, return_code=False).shape
    (12, 8)
    """
    require_choice(method, "method", FIT_ALGORITHMS)
    model = MiniBatchDictionaryLearning(
        n_components, alpha=alpha, max_iter=max_iter, n_jobs=n_jobs, fit_algorithm=method, batch_size=batch_size,
        shuffle=shuffle, dict_init=dict_init, random_state=random_state, transform_algorithm=f"lasso_{method}",
        transform_alpha=alpha, positive_code=positive_code, positive_dict=positive_dict,
        transform_max_iter=method_max_iter, verbose=verbose, callback=callback, tol=tol,
        max_no_improvement=max_no_improvement,
    ).set_output(transform="default").fit(X)  # fmt: skip
    if not as_bool(return_code, "return_code"):
        return model.components_
    return model.transform(X), model.components_


class _Learner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """What both classes share: a method of learning, a start, and a SparseCoder of the atoms that were learned."""

    components_: Array

    def _coder(self) -> SparseCoder:
        check_is_fitted(self)
        return SparseCoder(
            self.components_, transform_algorithm=self.transform_algorithm,
            transform_n_nonzero_coefs=self.transform_n_nonzero_coefs,
            transform_alpha=self.alpha if self.transform_alpha is None else self.transform_alpha,
            split_sign=self.split_sign, n_jobs=self.n_jobs, positive_code=self.positive_code,
            transform_max_iter=self.transform_max_iter,
        )  # fmt: skip

    def transform(self, X: Any) -> Array:
        """The codes of the rows of X on the dictionary, one in a row."""
        coder = self._coder()
        return coder.transform(validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=False))

    def inverse_transform(self, X: Any) -> Array:
        """The combinations of atoms that these codes are."""
        return self._coder().inverse_transform(X)

    def _method(self, update: str) -> LearningPlan:
        """Lasso codes with the penalty `alpha`, after a look at the parameters."""
        require_choice(self.fit_algorithm, "fit_algorithm", FIT_ALGORITHMS)
        require_choice(self.transform_algorithm, "transform_algorithm", ALGORITHMS)
        check_positive(self.fit_algorithm, self.positive_code)
        require_count(self.n_components, "n_components")
        require_count(self.max_iter, "max_iter", 0)
        require_amount(self.alpha, "alpha")
        require_amount(self.tol, "tol")
        code = {
            "method": "lasso",
            "penalty": float(self.alpha),
            "positive": as_bool(self.positive_code, "positive_code"),
        }
        nonnegative = as_bool(self.positive_dict, "positive_dict")
        return LearningPlan(code, update, nonnegative, FORGETTING, threads(self.n_jobs))

    def _samples(self, X: Any, reset: bool = True) -> Signals:
        return Signals.checked(dense(validate_data(self, X, accept_sparse=("csr", "csc"), dtype=FLOATS, reset=reset)))

    def _start(self, signals: Signals, given: Any, seed: int) -> Array:
        """The first dictionary, its atoms as columns: the one given, or samples."""
        start: Any = "data" if given is None else np.asarray(given, signals.Y.dtype).T
        atoms = self.n_components or (signals.features if given is None else start.shape[1])
        return initial_dictionary(start, signals, int(atoms), seed, bool(self.positive_dict))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_) * (2 if self.split_sign else 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class DictionaryLearning(_Learner):
    r"""A dictionary V of unit vectors, and codes U on it, that minimise 1/2 ||X - U V||^2 + alpha ||U||_1.

    Codes are exact Lasso codes, atoms follow by K-SVD: `pursuit.learn` with ``code={"method": "lasso", "penalty":
    alpha}``. The objective never rises. `fit_transform` is `fit`, then `transform`; in scikit-learn it returns the
    Lasso codes of the last iteration, whatever `transform_algorithm` says, as `dict_learning` does.

    Parameters
    ----------
    n_components : int, optional
        The number of atoms; by default that of features.
    alpha : float
    max_iter : int
    tol : float
        Stop where the objective falls by less than this share in an iteration.
    fit_algorithm : {"lars", "cd"}
        Of no effect: both are names of the Lasso. As in scikit-learn, ``lars`` refuses `positive_code`.
    transform_algorithm, transform_n_nonzero_coefs, transform_max_iter, split_sign, n_jobs
        As for `SparseCoder`.
    transform_alpha : float, optional
        By default `alpha`.
    code_init, dict_init : arrays of shapes (n_samples, n_components) and (n_components, n_features), optional
        Where both are given, the start is this dictionary; otherwise it is made of samples.
    callback : callable, optional
        Called every five iterations with a dict of ``ii``, ``X``, ``code``, ``dictionary`` and ``errors``.
    verbose : bool or int
        Print the objective of each iteration.
    random_state : int, RandomState, optional
    positive_code, positive_dict : bool
        Codes, or atoms, without negative entries.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The atoms, as rows of norm 1.
    error_ : list
        The objective after each iteration.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import DictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((40, 8))
    >>> model = DictionaryLearning(12, transform_algorithm="lasso_lars", random_state=0).fit(X)
    >>> model.components_.shape, model.transform(X).shape
    ((12, 8), (40, 12))
    """

    error_: list[float]
    n_iter_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1,
        max_iter: int = 1000,
        tol: float = 1e-8,
        fit_algorithm: str = "lars",
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        n_jobs: int | None = None,
        code_init: Any = None,
        dict_init: Any = None,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        verbose: Any = False,
        split_sign: bool = False,
        random_state: Any = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        transform_max_iter: int = 1000,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.fit_algorithm = fit_algorithm
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.n_jobs = n_jobs
        self.code_init = code_init
        self.dict_init = dict_init
        self.callback = callback
        self.verbose = verbose
        self.split_sign = split_sign
        self.random_state = random_state
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.transform_max_iter = transform_max_iter

    def fit(self, X: Any, y: Any = None) -> DictionaryLearning:
        """Learn a dictionary from the rows of X."""
        self._learn(X)
        return self

    def _learn(self, X: Any) -> Array:
        """Learn a dictionary; returns the Lasso codes that it was learned with."""
        method, signals = self._method("ksvd"), self._samples(X)
        given = None if self.code_init is None else self.dict_init
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        D, errors = self._start(signals, given, seed), list[float]()
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


class MiniBatchDictionaryLearning(_Learner):
    r"""A dictionary as of `DictionaryLearning`, learned from mini-batches, each of which is coded once in a pass.

    Parameters
    ----------
    n_components, alpha, fit_algorithm, n_jobs, verbose, random_state, positive_code, positive_dict
        As for `DictionaryLearning`.
    transform_algorithm, transform_n_nonzero_coefs, transform_alpha, transform_max_iter, split_sign
        As for `DictionaryLearning`.
    max_iter : int
        Passes over the samples.
    batch_size : int
    shuffle : bool
        Whether the samples are put into a random order first.
    dict_init : array of shape (n_components, n_features), optional
        The start; by default it is made of samples.
    callback : callable, optional
        Called after each mini-batch with a dict of ``i``, ``X_batch``, ``dictionary`` and ``batch_cost``.
    tol : float
        Stop where the dictionary changes by at most this, in Frobenius norm divided by the number of atoms; 0: never.
    max_no_improvement : int, optional
        Stop after so many mini-batches in a row without a better running mean of costs; None: never.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The atoms, as rows of norm 1.
    n_iter_ : int
        Passes over the samples.
    n_steps_ : int
        Mini-batches.
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import MiniBatchDictionaryLearning
    >>> X = np.random.default_rng(0).standard_normal((300, 8))
    >>> model = MiniBatchDictionaryLearning(12, batch_size=50, max_iter=5, random_state=0).fit(X)
    >>> model.components_.shape, model.partial_fit(X[:50]).n_steps_ > model.n_iter_
    ((12, 8), True)
    """

    _saved: ClassVar[tuple[str, ...]] = ("_A", "_B", "_uses", "_signals")

    n_iter_: int
    n_steps_: int

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 1,
        max_iter: int = 1_000,
        fit_algorithm: str = "lars",
        n_jobs: int | None = None,
        batch_size: int = 256,
        shuffle: bool = True,
        dict_init: Any = None,
        transform_algorithm: str = "omp",
        transform_n_nonzero_coefs: int | None = None,
        transform_alpha: float | None = None,
        verbose: Any = False,
        split_sign: bool = False,
        random_state: Any = None,
        positive_code: bool = False,
        positive_dict: bool = False,
        transform_max_iter: int = 1000,
        callback: Callable[[dict[str, Any]], Any] | None = None,
        tol: float = 1e-3,
        max_no_improvement: int | None = 10,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.max_iter = max_iter
        self.fit_algorithm = fit_algorithm
        self.n_jobs = n_jobs
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.dict_init = dict_init
        self.transform_algorithm = transform_algorithm
        self.transform_n_nonzero_coefs = transform_n_nonzero_coefs
        self.transform_alpha = transform_alpha
        self.verbose = verbose
        self.split_sign = split_sign
        self.random_state = random_state
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.transform_max_iter = transform_max_iter
        self.callback = callback
        self.tol = tol
        self.max_no_improvement = max_no_improvement

    def fit(self, X: Any, y: Any = None) -> MiniBatchDictionaryLearning:
        """Learn a dictionary from the rows of X."""
        method, signals = self._method("online"), self._samples(X)
        require_count(self.batch_size, "batch_size")
        require_count(self.max_no_improvement, "max_no_improvement", 0)
        random = check_random_state(self.random_state)
        D = self._start(signals, self.dict_init, random.randint(2**31 - 1))
        order = random.permutation(len(signals)) if as_bool(self.shuffle, "shuffle") else np.arange(len(signals))
        size = min(self.batch_size, len(signals))
        batches = math.ceil(len(signals) / size)
        passes = ((sweep, _cut(signals, order, size)) for sweep in range(self.max_iter))
        settled = _settling(self.tol, self.max_no_improvement, len(signals), size)
        last, self.n_steps_ = None, 0
        for step in batch_steps(method, passes, D, None):
            last, self.n_steps_, change = step, self.n_steps_ + 1, np.linalg.norm(step.D - D) / D.shape[1]
            D = step.D
            if self.verbose:
                print(f"[dict_learning] mini-batch {self.n_steps_}: mean cost {step.row[0]:.7g}")
            if settled(self.n_steps_, step.row[0], float(change)):
                break
            if self.callback is not None:
                start = (self.n_steps_ - 1) % batches * size
                batch = signals.Y[order[start : start + size]]
                told = {"i": self.n_steps_ - 1, "X_batch": batch, "dictionary": D.T, "batch_cost": step.row[0]}
                self.callback(told)
        self.n_iter_ = math.ceil(self.n_steps_ / batches)
        self._keep(last)
        if last is None:  # no iteration: the start, as it was given
            self.components_ = np.ascontiguousarray(D.T if self.dict_init is None else self.dict_init, signals.Y.dtype)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> MiniBatchDictionaryLearning:
        """Go on with the rows of X as one mini-batch."""
        begun = hasattr(self, "components_")
        method, signals = self._method("online"), self._samples(X, reset=not begun)
        if begun:
            D = np.asfortranarray(self.components_.T, signals.Y.dtype)
        else:
            self.n_steps_ = 0
            D = self._start(signals, self.dict_init, check_random_state(self.random_state).randint(2**31 - 1))
        past = Statistics(self._A, self._B, self._uses, self._signals) if getattr(self, "_signals", 0) else None
        self._keep(next(batch_steps(method, iter([(0, iter([signals]))]), D, past)))
        self.n_steps_ += 1
        return self

    def _keep(self, step: Step | None) -> None:
        """Take the dictionary and the statistics of a step; without one, there are no statistics."""
        if step is None or step.statistics is None:
            self._signals = 0
            return
        found = step.statistics
        self.components_ = np.ascontiguousarray(step.D.T)
        self._A, self._B, self._uses, self._signals = found.XX, found.YX, found.uses, found.signals


def _cut(signals: Signals, order: Array, size: int) -> Iterator[Signals]:
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
