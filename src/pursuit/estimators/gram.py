"""Orthogonal matching pursuit where only G = X'X and b = X'y are known."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from pursuit.estimators.base import Array
from pursuit.linalg.cholesky import CholeskyFactor, pivot_rounding
from pursuit.linalg.vectors import EPS


def gram_pursuit(
    G: Array, b: Array, limit: int, enough: float | None = None, eps: float = EPS
) -> list[tuple[Array, Array]]:
    """OMP of one target from G = X'X and b = X'y: the active atoms and their weights after every step.

    It ends with `limit` atoms, where ||y||^2 - ||r||^2 = b'x is `enough`, or where no other atom correlates with the
    residual beyond rounding, which is known to within `eps`.
    """
    norms = np.sqrt(np.maximum(G.diagonal(), 0))
    out, steps, factor, order = norms == 0, [], CholeskyFactor(), np.zeros(0, np.intp)  # out: may not enter (again)
    x, c, length = np.zeros(0), b.copy(), np.abs(b[~out] / norms[~out]).max(initial=0.0)
    while len(order) < limit and not (enough is not None and b[order] @ x >= enough):
        c[out] = 0
        j = int(np.argmax(np.abs(c)))
        if abs(c[j]) <= 4 * len(G) ** 0.5 * eps * norms[j] * (length + np.abs(x) @ norms[order]):
            break
        out[j] = True
        row, pivot = factor.row(G[order, j] / (norms[order] * norms[j]))
        if pivot <= pivot_rounding(factor.coefficients(row)) * eps / EPS:
            continue  # a combination of the active atoms
        factor.append(row, pivot)
        order = np.append(order, j)
        x = factor.solve(b[order] / norms[order]) / norms[order]
        c = b - G[:, order] @ x
        steps.append((order, x))
    return steps


def factored(G: Array, B: Array, eps: float) -> tuple[Array, Array]:
    """D and Y with D'D = G and D'Y = B, by a Cholesky factor with pivots: D has as many rows as G has rank."""
    n, largest = len(G), G.diagonal().max()
    R, pivots, rank, _ = dpstrf(G, tol=n * eps * max(largest, 0.0))
    D, first = np.zeros((max(rank, 1), n)), pivots[:rank] - 1
    D[:rank, pivots - 1] = np.triu(R)[:rank]
    Y = np.zeros((max(rank, 1), B.shape[1]))
    Y[:rank] = solve_triangular(R[:rank, :rank], B[first], trans=1, check_finite=False)
    return D, Y
