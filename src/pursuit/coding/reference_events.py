"""Events by the definition: after every event all correlations are computed again, in float64 NumPy.

The specification of the kernels, for the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import nnls

from pursuit.arrays import Small
from pursuit.atoms.convolutional import Convolutional
from pursuit.atoms.events import Events
from pursuit.coding.events import Rules

EPS = 2.0**-52


def plain_events(A: Convolutional, y: Any, rules: Rules) -> Events:
    """The events of a signal of A's shape, by mp, omp or nnomp, in the order in which they entered."""
    y = np.asarray(y, dtype=np.float64)
    found: list[tuple[int, float]] = []  # list number of the atom, score
    refused: list[int] = []
    weights: Small = np.empty(0)
    relative = 64 * EPS if rules.method == "mp" else 1e-10
    least = max(rules.threshold, relative**2 * float(_scores(A, A.scores(y)[: A.n], [], rules)[1].max()))
    while len(found) < rules.limit:
        r = y - sum((w * _atom(A, i) for w, (i, _) in zip(weights, found, strict=True)), np.zeros(y.shape))
        amplitude, score = _scores(A, A.scores(r)[: A.n], [i for i, _ in found], rules)
        score[refused] = -np.inf
        i = int(score.argmax())
        if not score[i] > least:
            break
        if rules.method != "mp" and _depends(A, i, found):
            refused.append(i)
            continue
        found.append((i, float(score[i])))
        weights = np.append(weights, amplitude[i]) if rules.method == "mp" else _refit(A, y, found, rules)
        found, weights = [e for e, w in zip(found, weights, strict=True) if w != 0], weights[weights != 0]
    coef = A.coefficients([A.atom(i).source for i, _ in found], weights)
    assert coef is not None
    return Events(coef.template, coef.position, weights, np.array([s for _, s in found]))


def _atom(A: Convolutional, i: int) -> Small:
    return np.asarray(A.atom(i).vector)


def _scores(A: Convolutional, c: Small, found: list[int], rules: Rules) -> tuple[Small, Small]:
    """Weights with which atoms would enter, and what they would lower the objective by; -inf where none may stand."""
    count = A.templates.count
    square = np.tile(A.templates.squares, A.n // count)
    if np.isinf(rules.prior):
        w, prior = np.ones(len(c)), 0.0
    else:
        w, prior = (c / square + rules.prior) / (1 + rules.prior), rules.prior
    if rules.positive:
        w = np.clip(w, *rules.bounds)
    plain = rules.prior == 0 and rules.bounds == (0.0, np.inf)  # then this has one rounding error less
    score = c * c / square if plain else 2 * w * c - w * w * square - prior * square * (w - 1) ** 2
    score[(c <= 0) & rules.positive] = -np.inf
    for i in found if rules.refractory >= 0 else ():
        time = (np.arange(A.n) // count) * A.stride
        score[(np.arange(A.n) % count == i % count) & (np.abs(time - time[i]) <= rules.refractory)] = -np.inf
    return w, score


def _depends(A: Convolutional, i: int, found: list[tuple[int, float]]) -> bool:
    """Whether all but 1e-12 of the energy of an atom is in the span of others."""
    columns = np.stack([_atom(A, j).ravel() for j in [*(j for j, _ in found), i]], axis=1)
    rest = columns[:, -1] - columns[:, :-1] @ np.linalg.lstsq(columns[:, :-1], columns[:, -1])[0]
    return bool(rest @ rest <= 1e-12 * (columns[:, -1] @ columns[:, -1]))


def _refit(A: Convolutional, y: Small, found: list[tuple[int, float]], rules: Rules) -> Small:
    """The best weights of all atoms together."""
    columns = np.stack([_atom(A, i).ravel() for i, _ in found], axis=1)
    if rules.method == "nnomp":
        return np.asarray(nnls(columns, y.ravel())[0])
    return np.asarray(np.linalg.lstsq(columns, y.ravel())[0])
