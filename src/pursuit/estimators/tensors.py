"""Tensor completion as an estimator: a sum of few rank-one tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from pursuit.arguments import number, numeric_array, require
from pursuit.atoms.factored import CP
from pursuit.atoms.tensors import RankOneTensor
from pursuit.domains import conv, lin
from pursuit.estimators import checks
from pursuit.estimators.base import Array
from pursuit.estimators.entries import Completion, Entries, as_rows
from pursuit.objectives import LeastSquares, Poisson
from pursuit.refine import Alternating
from pursuit.run.result import Result
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.threads import single_threaded_blas
from pursuit.updates import FullyCorrective

MAX_RANK = 20
WORTH = 1e-3
"""The rank that is chosen grows, up to `MAX_RANK`, while the error falls by more than this share of the size of the
values."""


class TensorProblem:
    """The observed entries as an objective, and the rank-one tensors at them."""

    def __init__(self, entries: Entries, loss: str) -> None:
        self.loss, self.shape, self.unit, self.range = loss, entries.shape, entries.unit, entries.range
        slices = [np.unique(places, return_inverse=True) for places in entries.places]
        self.seen, places = [seen for seen, _ in slices], [inverse for _, inverse in slices]
        dims = [len(seen) for seen in self.seen]
        if len(dims) == 2:  # a matrix is a tensor with a third mode of one slice
            dims, places = [*dims, 1], [*places, np.zeros_like(places[0])]
        self.f = (Poisson if loss == "poisson" else LeastSquares)(entries.values, entries.weights)
        self.A = RankOneTensor(dims).at(np.array(places).T)
        self.trivial = loss == "gaussian" and not entries.values.any()

    def tensor(self, result: Result | None) -> CP:
        """The tensor of a result. In each mode, a slice without an observation has the mean factors of the others."""
        small = CP(np.zeros(0), [np.zeros((len(seen), 0)) for seen in self.seen]) if result is None else result.coef
        factors = []
        for n, seen, U in zip(self.shape, self.seen, small.factors, strict=False):
            factors.append(np.tile(U.mean(axis=0), (n, 1)))
            factors[-1][seen] = U
        third = small.factors[2][0] if len(self.shape) == 2 and len(small.weights) else 1.0
        return CP(small.weights * third, factors)

    def error(self, result: Result | None, entries: Entries, clip: bool) -> float:
        """The root mean square error at other entries of the same tensor."""
        predicted = mean_of(self.loss, self.tensor(result).at(entries.places.T))
        return entries.error(np.clip(predicted, *self.range) if clip else predicted)


def mean_of(loss: str, eta: Array) -> Array:
    """The mean of entries with these natural parameters."""
    return np.exp(eta) if loss == "poisson" else eta


@dataclass(eq=False, repr=False)
class TensorCompletion(Completion):
    r"""Tensor completion: entries of a sum of rank-one tensors, from some of them.

    Minimises :math:`\sum_e w_e\, \ell(X_e, y_e)` over the observed entries e of tensors
    :math:`X = \sum_{k=1}^{r} s_k\, u_k \circ v_k \circ \cdots`, with half the squared error for :math:`\ell` or the
    Poisson loss with log link: matching pursuit over rank-one tensors, whose factors all move after each (`rank`), or
    Frank-Wolfe over a ball of their nuclear norm (`radius`). If neither is given, the rank is chosen on a random part
    of the observations, and then all of them are fitted.

    Parameters
    ----------
    rank : int, optional
        The number of rank-one terms.
    radius : float, optional
        A bound on the nuclear norm of X, in units of the data.
    loss : 'gaussian' or 'poisson'
    clip : bool
        Keep predictions within the range of the values that were fitted.
    validation, random_state : float; int or RandomState, optional
        The share of the observations to choose on, and the seed that draws them.
    tol, max_iter : float, int
        With a radius, the certified gap at which fitting ends, relative to the objective; and the most oracle calls.

    Attributes
    ----------
    weights_, factors_ : array of shape (rank,), and a list of arrays of shapes (labels, rank), one per mode
        The tensor is the sum of weights times outer products of columns. Labels without an observation have the mean
        factors of their mode, and so have new labels.
    labels_ : list of arrays
        The labels of each mode, sorted; indices, if X was an array.
    dual_gap_ : float
        A proved bound on how far the objective is above its minimum within the radius; without one, over all tensors.
    validation_error_ : array
        The root mean square errors of rank 1, 2, ... on the validation part. Empty where nothing was chosen.

    Notes
    -----
    `fit` reads an array of three or more axes with NaN where nothing is known; or a table: X with a column of labels
    for each mode and y with the values or, without y, labels and then the values as the columns of X. Labels are
    strings or numbers. Repeated observations of an entry count as their mean, with their number as weight.

    Examples
    --------
    >>> import numpy as np
    >>> from pursuit.estimators import TensorCompletion
    >>> rng = np.random.default_rng(0)
    >>> T = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((10, 2)) for _ in range(3)))
    >>> model = TensorCompletion(clip=False, random_state=0).fit(np.where(rng.random(T.shape) < 0.3, T, np.nan))
    >>> model.rank_, bool(np.abs(model.toarray() - T).max() < 1e-2)
    (2, True)
    """

    _checks = checks.table(
        loss=checks.one_of("gaussian", "poisson"),
        radius=checks.optional(lambda radius: 0 < number(radius) < math.inf, "a positive number"),
    )

    rank: int | None = None
    radius: float | None = None
    loss: str = "gaussian"
    clip: bool = True
    validation: float = 0.1
    tol: float = 1e-2
    max_iter: int = 50
    random_state: Any = None

    @single_threaded_blas  # the products are short
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the observed entries; `sample_weight` is for tables."""
        self._check()
        entries = self._read(X, y, sample_weight)
        entries = entries.normalized() if self.loss == "gaussian" else entries
        rank, errors = (self.rank, np.zeros(0)) if self.rank or self.radius else self._choose(entries)
        problem = TensorProblem(entries, self.loss)
        result = self._solve(problem, rank)
        tensor = problem.tensor(result)
        self._take(entries, result)
        self.weights_, self.factors_, self.rank_ = entries.unit * tensor.weights, tensor.factors, len(tensor.weights)
        self.validation_error_ = errors
        return self

    def predict(self, *labels: Any) -> Array:
        """Predictions at labels: one array per mode, which are broadcast, or a table with a column per mode."""
        places = self._places(labels)
        eta: Any = self.weights_
        for U, k in zip(self.factors_, places, strict=True):
            eta = eta * np.vstack([U, U.mean(axis=0)])[k]  # the last row is for the place -1 of new labels
        return self._within_range(mean_of(self.loss, eta.sum(axis=-1)))

    def _read(self, X: Any, y: Any, sample_weight: Any = None) -> Entries:
        X = as_rows(X)
        if y is None and getattr(X, "ndim", 2) > 2:
            require(sample_weight is None, "sample_weight", sample_weight, "None, as X is no table")
            array = numeric_array(X, "X")
            if np.isinf(array).any():
                raise ValueError("X contains infinity; give numbers, and NaN where nothing is known.")
            self.n_features_in_ = array.ndim
            entries = Entries.of_array(np.asarray(array, dtype=np.float64))
        else:
            entries = self._read_table(X, y, sample_weight, None)
        if self.loss == "poisson" and entries.values.min() < 0:
            raise ValueError("the values are negative for some entries; loss='poisson' needs counts of at least 0.")
        return entries

    def _solve(self, problem: TensorProblem, rank: int | None, start: Result | None = None) -> Result | None:
        """The best tensor within the bounds; None where it is zero."""
        if problem.trivial:
            return None
        if self.radius is None:
            stop = Stop(atoms=rank, iterations=rank)
            return minimize(problem.f, lin(problem.A), FullyCorrective(), refine=Alternating(), stop=stop, start=start)
        least = float(self.tol) ** 2 * (problem.f.value(problem.f.space.zeros()) - problem.f.infimum)  # for exact fits
        stop = Stop(rgap=self.tol, gap=least, iterations=self.max_iter, atoms=rank)
        return minimize(problem.f, conv(float(self.radius) / problem.unit * problem.A), stop=stop)

    def _choose(self, entries: Entries) -> tuple[int, Array]:
        """The rank beyond which the error on the validation part hardly falls, and the errors of ranks 1, 2, ..."""
        parts = entries.split(float(self.validation), check_random_state(self.random_state))
        if parts is None:
            return 1, np.zeros(0)
        problem, result = TensorProblem(parts[0], self.loss), None
        errors = [parts[1].error(np.zeros(len(parts[1].values)))]
        for rank in range(1, 1 + MAX_RANK):
            result = self._solve(problem, rank, result)
            errors.append(problem.error(result, parts[1], self.clip))
            if not errors[-1] < errors[-2] - WORTH * errors[0]:
                break
        return max(len(errors) - 2, 1), entries.unit * np.array(errors[1:])
