"""`encode` on a dictionary that is a linear operator: each signal by `minimize`, which needs products alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from pursuit.arguments import host_array, numeric_array
from pursuit.atoms.columns import Dictionary
from pursuit.coding.request import penalty_rule, stopping_rules
from pursuit.domains import cone, lin, penalty
from pursuit.objectives import LeastSquares
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.updates import FullyCorrective

SERVED = ("omp", "nnomp", "lasso", "nnls")
EXACT = 1e-12
"""The certified gap of convex problems, relative to the objective."""


def encode_on_operator(D: LinearOperator, Y: Any, options: dict[str, Any]) -> Any:
    """The codes of a few signals on an operator; `options` are the other arguments of `encode`."""
    method, wants_gaps = options["method"], options["gaps"]
    for name in ("gram", "weights"):
        if options[name] is not None:
            raise ValueError(f"{name} was given with a LinearOperator as D; leave it out, or give D as an array.")
    Y = host_array(numeric_array(Y, "Y"), "Y").astype(np.float64)
    if Y.ndim != 2 or Y.shape[1] != D.shape[0]:
        raise ValueError(f"Y has shape {Y.shape} and D {D.shape}; signals are rows of Y, as long as the columns of D.")
    limits, tols = stopping_rules(options["atoms"], options["tol"], method, D.shape, len(Y))
    if method not in SERVED:
        raise ValueError(f"method is {method!r}; on a LinearOperator give one of {', '.join(map(repr, SERVED))}.")
    penalties, kernel = penalty_rule(options["penalty"], options["positive"], method, len(Y))
    positive = kernel in ("nnomp", "positive_lasso")
    A, rows, gaps = Dictionary(D), [], np.zeros(len(Y))
    for b, y in enumerate(Y):
        if not y.any():
            rows.append(sp.csr_array((1, D.shape[1])))
            continue
        if method in ("omp", "nnomp"):
            stop = Stop(rgap=None, atoms=int(limits[b]), value=0.5 * max(tols[b], 0.0) ** 2)
            r = minimize(LeastSquares(y), (cone if positive else lin)(A), FullyCorrective(), stop=stop)
        elif penalties[b]:
            signed = A if positive else Dictionary(D, signed=True)
            r = minimize(LeastSquares(y), penalty(float(penalties[b]) * signed), stop=Stop(rgap=EXACT))
        else:
            r = minimize(LeastSquares(y), (cone if positive else lin)(A), stop=Stop(rgap=EXACT))
        rows.append(sp.csr_array(np.atleast_2d(r.coef)))
        gaps[b] = r.gap if math.isfinite(r.gap) else r.value  # 0 is a lower bound
    codes = sp.csr_array(sp.vstack(rows)) if rows else sp.csr_array((0, D.shape[1]))
    return (codes, gaps) if wants_gaps else codes
