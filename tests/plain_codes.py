r"""One signal, one pursuit, written plainly: what the tests compare `encode` with. In float64, every turn from nothing.

The atom with the largest merit enters, the first of several: :math:`|c|` with the correlation :math:`c = \langle r,
a\rangle` in ``omp`` and ``mp``, :math:`|c| / \|a_\perp\|` in ``ols`` (:math:`a_\perp` is orthogonal to the active
atoms), c in ``nnomp``. A pursuit ends where :math:`\|r\| \le` tol, with `atoms` atoms (``mp``: after 10 `atoms` steps),
or where no correlation exceeds its rounding error, for which :math:`4 \sqrt{d}\, \epsilon \|a\| S` stands, with the
size S of the terms of the residual. With weights, rows of D and entries of y are multiplied by their roots.

Two programs round differently, and may part where a decision is close. So a code comes with its least *lead*: how far,
as a share of the numbers that were compared, the best atom was ahead, an entering atom was from dependent, the residual
from tol, and a non-negative weight from 0. Rounding changes no decision of a code whose lead is many :math:`\epsilon`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from pursuit.coding.request import Array
from pursuit.native import MP_STEPS


@dataclass(frozen=True)
class Code:
    """The weights of all atoms, the active ones in increasing order, and the least lead of all decisions."""

    x: Array
    active: list[int]
    lead: float


def pursue(
    D: Array, y: Array, atoms: int, tol: float = -1.0, method: str = "omp", weights: Array | None = None
) -> Code:
    """The code of one signal; a negative `tol` is none."""
    epsilon = float(np.finfo(np.result_type(D, y)).eps)
    D, y = np.asarray(D, float), np.asarray(y, float)
    if weights is not None:
        root = np.sqrt(np.asarray(weights, float))
        D, y = root[:, None] * D, root * np.where(root > 0, y, 0.0)
    (d, n), norms = D.shape, np.linalg.norm(D, axis=0)
    limit = min(atoms, n if method == "mp" else min(d, n))
    active: list[int] = []
    x, lead = np.zeros(n), 1.0
    for _ in range(MP_STEPS * limit if method == "mp" else 10 * (n + 1)):  # NNOMP: atoms may leave and come back
        r, size = y - D @ x, float(np.linalg.norm(y) + np.abs(x) @ norms)
        distance = float(np.linalg.norm(r))
        if tol >= 0 and size > 0:
            lead = min(lead, abs(distance - tol) / size)
        if distance <= tol or (method != "mp" and len(active) == limit):
            break
        which, merit, terms = candidates(D, r, size, active, method, epsilon)
        if method == "ols" or not len(which):
            others, more, _ = candidates(D, r, size, active, method, epsilon / 4)
            near_misses = more[~np.isin(others, which)]
            lead = 0.0 if near_misses.max(initial=0.0) > merit.max(initial=0.0) else lead
        if not len(which):
            break
        best = int(np.argmax(merit))
        ahead = (merit[best] - merit) / np.maximum(terms[best], terms)
        ahead[best] = merit[best] / terms[best]
        lead, entering = min(lead, float(ahead.min())), int(which[best])
        if method != "mp":
            lead = min(lead, independence(D[:, entering], D[:, active]))
        if entering not in active:
            if len(active) == limit:
                break
            active = sorted([*active, entering])
        if method == "mp":
            x[entering] += (D[:, entering] @ r) / norms[entering] ** 2
        elif method != "nnomp":
            x[active] = np.linalg.lstsq(D[:, active] / norms[active], y, rcond=None)[0] / norms[active]
        else:
            x[active] = nnls(D[:, active] / norms[active], y)[0] / norms[active]
            slopes, size = D.T @ (y - D @ x), float(np.linalg.norm(y) + x @ norms)
            decided = np.where(x > 0, x * norms, -slopes / norms)[active]
            lead, active = min(lead, float(decided.min()) / size), [j for j in active if x[j] > 0]
    return Code(x, active, lead)


def lasso(D: Array, y: Array, penalty: float, positive: bool = False, weights: Array | None = None) -> Array:
    r"""The minimiser of :math:`\|y - Dx\|^2 / 2 + \lambda \|x\|_1`, over all x or over :math:`x \ge 0`.

    Atoms of both signs, the columns of A, have weights :math:`x \ge 0`. The fit r = Ax is the shortest vector with
    :math:`A^\top r \ge h`, where :math:`h = A^\top y - \lambda`. Lawson and Hanson (1974, chapter 23) find it from the
    non-negative least squares of (0, 1) on the columns :math:`(a_j, h_j)`: of its weights w, x is
    :math:`w / (1 - h^\top w)`.
    """
    root = np.ones(len(y)) if weights is None else np.sqrt(np.asarray(weights, float))
    y = root * np.where(root > 0, np.asarray(y, float), 0.0)
    A = root[:, None] * np.asarray(D if positive else np.hstack([D, -D]), float)
    norms, length = np.linalg.norm(A, axis=0), float(np.linalg.norm(y)) or 1.0
    A = A / np.where(norms > 0, norms, 1.0)
    h = A.T @ (y / length) - penalty / (length * np.where(norms > 0, norms, 1.0))
    w = nnls(np.vstack([A, h]), np.eye(1, len(y) + 1, len(y))[0])[0]
    x: Array = length * w / (1.0 - h @ w) / np.where(norms > 0, norms, 1.0)
    return x if positive else x[: D.shape[1]] - x[D.shape[1] :]


def candidates(
    D: Array, r: Array, size: float, active: list[int], method: str, epsilon: float
) -> tuple[Array, Array, Array]:
    """The atoms that may enter, their merits, and the sizes of the numbers that these were computed from."""
    c, norms = D.T @ r, np.linalg.norm(D, axis=0)
    if method != "nnomp":
        c = np.abs(c)
    which = np.flatnonzero(c > 4 * len(D) ** 0.5 * epsilon * norms * size)
    if method != "mp":
        which = np.setdiff1d(which, active)
    if method != "ols":
        return which, c[which], size * norms[which]
    share = orthogonal_share(D[:, which], D[:, active])
    independent = share > 16 * (len(active) + 4) * epsilon
    which, share = which[independent], share[independent]
    merit = c[which] / (norms[which] * np.sqrt(share))
    return which, merit, size / np.sqrt(share) + merit / share


def orthogonal_share(A: Array, B: Array) -> Array:
    """For each column of A, its squared distance to the span of the columns of B, as a share of its squared norm."""
    Q = np.linalg.qr(B)[0]
    rest = A - Q @ (Q.T @ A)
    rest -= Q @ (Q.T @ rest)  # what rounding left the first time
    share: Array = np.square(rest).sum(axis=0) / np.square(A).sum(axis=0)
    return share


def independence(a: Array, B: Array) -> float:
    """The squared distance of a to the span of the columns of B, as a share of the terms of which it is the sum."""
    norms = np.linalg.norm(B, axis=0)
    beta = np.linalg.lstsq(B / norms, a, rcond=None)[0]
    size = np.linalg.norm(a)
    return float(orthogonal_share(a[:, None], B)[0] * (size / (size + np.abs(beta).sum())) ** 2)
