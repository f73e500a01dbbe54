"""Dual points that are exactly feasible for spans and the domain of f*: real vectors, enclosed by floats.

Let B be independent columns of the spans, T an invertible matrix, C = B T, and D >= 0 diagonal with |C'DC - I| <= 1/2.
Then w = (C'DC)^-1 C'u exists for every u, the vector u - D C w is orthogonal to B, and |w| <= 2 |T'B'u|. Error-free
products bound that number, so that all we need to know of the vector is the float u and how far away an entry may be.

T is the inverse of a triangular factor of sqrt(D) B; nothing is assumed of it but that its diagonal is not 0, and
rounding errors of C count in |C'DC - I|. D is the room that the entries of u have in the domain of f*, so that the
vector is in this domain if no |C w| is above 1/2. Columns beside B lie in its span where the rank, which is exact, says
so. Rows where u and D are 0 do not count. Where the columns are independent but floats do not show it, as those of a
constant and of time stamps in nanoseconds, nothing is proved, but where u itself is orthogonal to them: without room,
as at the kinks of Huber losses, that is often so, and a sum of floats is 0 or not.

Entries of u that are minus the sum of others (`Objective.tied_entries`) are left out: <b, u> is then the sum of
(b_i - b_j) u_i over the others, for the j that i belongs to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from pursuit.arrays import Small
from pursuit.linalg.rounding import column_products, rank_of, two_product, two_sum
from pursuit.linalg.vectors import EPS
from pursuit.objectives import Objective

INDEPENDENT = 1e-10
"""Columns of unit length with a smaller entry on the diagonal of their triangular factor need an exact rank."""

ROUNDS = 3
"""Attempts, and corrections of each: a correction takes nearly all digits of the error away."""


class Enclosure(NamedTuple):
    """A real vector in the domain of f*, each entry within `radius` of that of `mid`; both have the shape of H."""

    mid: Small
    radius: Small


class _Basis(NamedTuple):
    """B, bounds on the errors of its entries, T, D, and a bound on the norm of each row of C beside C itself."""

    B: Small
    errors: Small
    T: Small
    D: Small
    C: Small
    lengths: Small


@np.errstate(all="ignore")
def enclose(f: Objective, columns: Small, u: Small) -> Enclosure | None:
    """A vector near u in the domain of f* that is exactly orthogonal to these columns (flattened vectors of H)."""
    u = np.array(f.dual_point(u))
    shape, ties = u.shape, f.tied_entries(u)
    free = np.broadcast_to(True, u.size) if ties is None else ties != np.arange(u.size)
    radius = np.broadcast_to(0.0, u.size)
    if columns.shape[1]:
        found = _make_orthogonal(f, columns, u, ties, free)
        if found is None:
            return None
        u, low, radius = found
        radius = radius + np.abs(low)
    if ties is not None:
        rows, values = ties[free & (ties >= 0)], u.ravel()[free & (ties >= 0)]
        sums, sizes, missed = (
            np.bincount(rows, w, u.size) for w in (values, np.abs(values), radius[free & (ties >= 0)])
        )
        u, error = np.where(free, u.ravel(), -sums), u.size * 0.0 + len(values) // max(1, len(set(rows.tolist()))) * EPS
        radius = np.where(free, radius, missed * (1.0 + 1e-9) + (error + EPS) * sizes)
    return Enclosure(u.reshape(shape), radius.reshape(shape))


def _make_orthogonal(
    f: Objective, columns: Small, u: Small, ties: np.ndarray | None, free: np.ndarray
) -> tuple[Small, Small, Small] | None:
    """u as the sum of two floats, and how far the entries of an orthogonal vector are from it at most."""
    shape, whole = u.shape, columns
    errors = np.zeros(columns.shape)
    if ties is not None:
        other = np.where((ties >= 0)[:, None], columns[ties], 0.0)
        columns, errors = two_sum(columns, -other)
    high, low = u.ravel(), np.zeros(u.size)
    for _ in range(ROUNDS):
        D = np.where(free, f.dual_room(high.reshape(shape)).ravel(), 0.0)
        used = free & ((high != 0) | (D > 0))
        rows = used if ties is None else used | np.isin(np.arange(u.size), ties[used])
        basis = _basis(columns, np.abs(errors), np.where(rows[:, None], whole, 0.0), D, used)
        if basis is None:
            counted = np.where(free, high, 0.0)
            zero = _are_orthogonal(np.vstack([columns, errors]), np.concatenate([counted, counted]))
            return (high, 0.0 * high, 0.0 * high) if zero else None
        w, error = _residual(basis, high, low)
        for _ in range(ROUNDS):
            high, moved = two_sum(high, low - D * (basis.C @ w))
            inside = f.dual_point(high.reshape(shape)).ravel()
            low = np.where((inside == high) & (D > 0), moved, 0.0)
            high = np.where(free, inside, high)
            w, error = _residual(basis, high, low)
            if np.abs(w).max(initial=0.0) <= error.max(initial=0.0):
                break
        share = basis.lengths * (2.0 * float(np.linalg.norm(np.abs(w) + error)) * (1.0 + 1e-9))
        room = f.dual_room(high.reshape(shape)).ravel()
        if share.max(initial=0.0) <= 0.25 and (2.0 * room >= D)[free].all():
            return high, low, D * share
    return None


def _residual(basis: _Basis, high: Small, low: Small) -> tuple[Small, Small]:
    """T'B'(high + low), and bounds on its errors."""
    sums, errors = column_products(basis.B, high)
    rest, sizes, k = basis.B.T @ low, np.abs(basis.B).T @ np.abs(low), len(sums)
    errors = errors + (len(low) + 2.0) * EPS * sizes + basis.errors.T @ (np.abs(high) + np.abs(low)) * (1.0 + 1e-9)
    T = np.abs(basis.T)
    w = basis.T.T @ (sums + rest)
    return w, T.T @ errors * (1.0 + 1e-9) + (k + 2.0) * EPS * (T.T @ (np.abs(sums) + np.abs(rest)))


def _are_orthogonal(columns: Small, u: Small) -> bool:
    """Whether the products are 0: `math.fsum` rounds the sum of their parts once, so that it is 0 only then."""
    parts = np.concatenate(two_product(columns, u[:, None]))
    sizes = np.abs(parts[: len(u)])[(columns != 0) & (u != 0)[:, None]]
    whole = sizes.min(initial=1.0) > 1e-280 and sizes.max(initial=0.0) < 1e280  # the parts are exact
    return bool(whole) and not any(map(math.fsum, parts.T))


def _basis(columns: Small, errors: Small, whole: Small, D: Small, used: np.ndarray) -> _Basis | None:
    """Independent columns with the span of all in the rows that count. What depends on others in the whole columns, of
    which these are differences with errors, does so in them."""
    columns, errors = np.where(used[:, None], columns, 0.0), np.where(used[:, None], errors, 0.0)
    there = columns.any(axis=0)
    columns, errors = columns[:, there], errors[:, there]
    exponents = np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1]
    columns, errors = np.ldexp(columns, -exponents), np.ldexp(errors, -exponents)
    scaled = np.sqrt(D)[:, None] * columns
    norms = np.linalg.norm(scaled, axis=0)
    if not (norms > 0).all():
        return None
    R, order = qr(scaled / norms, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = columns.shape[1]
    if rank > len(diagonal) or diagonal.min(initial=math.inf) < INDEPENDENT:
        rank = rank_of(whole[:, there] if errors.any() else columns)
    if not diagonal[:rank].all():
        return None
    keep = order[:rank]
    B, E = columns[:, keep], errors[:, keep]
    T = solve_triangular(R[:rank, :rank], np.eye(rank)) / norms[keep][:, None]
    C, rounding = B @ T, np.abs(B) @ np.abs(T) * ((rank + 2.0) * EPS) + E @ np.abs(T) * (1.0 + 1e-9)
    root = np.sqrt(D)[:, None]
    size, wrong = float(np.linalg.norm(root * C)), float(np.linalg.norm(root * rounding)) * (1.0 + 1e-9)
    off = np.linalg.norm((root * C).T @ (root * C) - np.eye(rank))
    off += (len(D) + 8.0) * EPS * size * size + 2.0 * size * wrong + wrong * wrong
    if not off <= 0.5:
        return None
    return _Basis(B, E, T, D, C, (np.linalg.norm(C, axis=1) + np.linalg.norm(rounding, axis=1)) * (1.0 + 1e-9))
