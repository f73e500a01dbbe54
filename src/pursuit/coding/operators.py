"""`encode` on a dictionary that is a linear operator: each signal by `minimize`, which needs products alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit.atoms.columns import Dictionary
from pursuit.coding.request import Array, Request, Rules, check_finite_rows
from pursuit.domains import cone, lin, penalty
from pursuit.objectives import LeastSquares
from pursuit.run.stop import Stop
from pursuit.solve import minimize
from pursuit.updates import FullyCorrective

EXACT = 1e-12
"""The certified gap of convex problems, relative to the objective."""


def encode_on_operator(request: Request) -> tuple[sp.csr_array, Array]:
    """The codes of a few signals, computed in float64, and the gaps of convex problems."""
    n, Y = request.D.shape[1], request.Y.astype(np.float64)
    check_finite_rows(np.abs(Y).max(axis=1))
    atoms, signed = Dictionary(request.D), Dictionary(request.D, signed=True)
    rows, gaps = [sp.csr_array((0, n))], np.zeros(len(Y))
    for i in tqdm(range(len(Y)), disable=None if request.progress else True, desc="encode", leave=False):
        if not Y[i].any():
            rows.append(sp.csr_array((1, n)))
            continue
        result = _solve(request.rules, i, LeastSquares(Y[i]), atoms, signed)
        code = np.atleast_1d(result.coef).astype(request.code_dtype)
        gap = result.gap if math.isfinite(result.gap) else result.value  # 0 is a lower bound
        gaps[i] = gap + max(0.0, _objective(request, Y[i], i, code) - result.value) if code.dtype != np.float64 else gap
        rows.append(sp.csr_array(code[None]))
    return sp.csr_array(sp.vstack(rows)).astype(request.code_dtype, copy=False), gaps


def _solve(rules: Rules, i: int, f: LeastSquares, atoms: Dictionary, signed: Dictionary) -> Any:
    """The result for signal i."""
    domain = cone(atoms) if rules.nonnegative else lin(atoms)
    if not rules.is_lasso:
        stop = Stop(rgap=None, atoms=int(rules.limits[i]), value=0.5 * max(rules.tols[i], 0.0) ** 2)
        return minimize(f, domain, FullyCorrective(), stop=stop)
    if rules.penalties[i]:
        domain = penalty(float(rules.penalties[i]) * (atoms if rules.nonnegative else signed))
    return minimize(f, domain, stop=Stop(rgap=EXACT))


def _objective(request: Request, y: Array, i: int, code: Array) -> float:
    """1/2 ||y - D x||^2 + penalty ||x||_1 of a code after its weights were rounded."""
    x = code.astype(np.float64)
    r = y - request.D.matvec(x)
    return float(0.5 * (r @ r) + request.rules.penalties[i] * np.abs(x).sum()) * (1 + (len(y) + len(x) + 8) * 2.0**-52)
