"""Widths of the hull of finitely many points: exact for small sets, bounded from both sides for large ones.

Points are the rows of a matrix. A symmetric set is given by one point b of each pair +-b, so the hull is conv(B, -B).
Every bound is proved. An upper bound is the width in one direction; a lower bound comes with a certificate, which is
checked in floating point, and is lowered by the rounding of that check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used

from pursuit.arrays import Small
from pursuit.atoms.closed import signs, span
from pursuit.linalg import EPS, norms, unit, unit_columns

MAX_FACETS = 1_000_000
"""Facets are enumerated where McMullen's upper bound theorem says that there are at most this many."""

MAX_SIGNS = 26
"""All 2^(n-1) sign patterns are tried for n independent pairs +-b_i up to this n."""

MAX_PROGRAMS = 80
"""At most this many linear programs are solved for one upper bound; fewer for large sets."""

ZERO_ONLY = "A contains the zero vector only; a width needs an atom that is not zero."


@dataclass(frozen=True)
class Width:
    """lower <= mDW <= upper, and a unit direction of lin(A) whose width is `upper`."""

    lower: float
    upper: float
    direction: Small


def mdw(points: Small, signed: bool) -> Width:
    """The minimal intrinsic directional width min_{d in lin A} max_{z in A} <d, z> / ||d||."""
    scale = float(norms(points.T).max())
    Q = span(points / scale) if scale > 0 else np.zeros((0, 0))
    if not Q.size:
        raise ValueError(ZERO_ONLY)
    coordinates = points / scale @ Q
    width = _symmetric(coordinates) if signed else _general(coordinates)
    return Width(scale * width.lower, scale * width.upper, Q @ width.direction)


def both(B: Small) -> Small:
    """The points of a symmetric set, from one of each pair."""
    return np.concatenate([B, -B])


def _rounding(points: Small) -> float:
    """Rounding of inner products and projections, for points of norm at most 1."""
    return 32 * EPS * float(points.shape[1])


def _at(points: Small, d: Small) -> tuple[float, Small]:
    """The width at d, rounded up, and d normalised."""
    d = unit(d)
    return float((points @ d).max()) + _rounding(points), d


def _symmetric(B: Small) -> Width:
    n, r = B.shape
    if r == 1:
        top = float(np.abs(B).max())
        return Width(top, top, np.ones(1))
    if n == r <= MAX_SIGNS:
        return _by_signs(B)
    points = both(B)
    hull = facets(points)
    if hull is not None and hull.certified:
        return _by_facets(points, hull, 0.0)
    lower, w = design(B)
    upper, d = _at(points, successive_lp(points, np.linalg.eigh(B.T @ (w[:, None] * B))[1].T))
    return Width(min(lower, upper), upper, d)


def _general(points: Small) -> Width:
    if points.shape[1] == 1:
        sides = float(points.max()), -float(points.min())
        return Width(min(sides), min(sides), np.array([1.0 if sides[0] <= sides[1] else -1.0]))
    x = nearest(points)
    distance = float(np.linalg.norm(x))
    lower = -distance - _rounding(points)  # h(d) >= <d, x> >= -||x|| for every point x of the hull
    if not points.any(axis=1).all():
        lower = 0.0  # zero is an atom
    if distance > 0:
        upper, d = _at(points, -x)
        if upper < 0:
            return Width(lower, upper, d)
    hull = facets(points)
    if hull is not None:
        return _by_facets(points, hull, lower if hull.certified else max(lower, _variance_bound(points)))
    upper, d = _at(points, successive_lp(points, np.zeros((0, points.shape[1]))))
    return Width(min(max(lower, _variance_bound(points)), upper), upper, d)


# ---------------------------------------------------------------------- exact


def _by_signs(B: Small) -> Width:
    """n independent pairs: the polar's vertices are B^{-1} e for signs e, so 1/mDW = max_e ||B^{-1} e||."""
    n = len(B)
    X = np.linalg.inv(B)
    e, largest = max_quadratic(X.T @ X)
    upper, d = _at(both(B), X @ e)
    residue = float(np.linalg.norm(X @ B - np.eye(n))) + n * n * EPS  # B^{-1} = (XB)^{-1} X
    lower = (1 - residue) / (math.sqrt(largest) * (1 + n * n * EPS)) if residue < 1 else 0.0
    return Width(min(lower, upper), upper, d)


def max_quadratic(K: Small) -> tuple[Small, float]:
    """argmax and max of e'Ke over signs e, for n up to about 26: one matrix product over two halves of e."""
    n = len(K)
    k = n // 2
    left, right = signs(k), signs(n - k)[: 2 ** (n - k - 1)]  # the sign of e_n is free: e and -e give the same
    one = np.einsum("ij,jk,ik->i", left, K[:k, :k], left, optimize=True)
    two = np.einsum("ij,jk,ik->i", right, K[k:, k:], right, optimize=True)
    cross = 2 * left @ K[:k, k:]
    best, where = -math.inf, (0, 0)
    for start in range(0, len(left), 512):  # blocks that fit the cache
        block = cross[start : start + 512] @ right.T + one[start : start + 512, None] + two
        i, j = np.unravel_index(int(block.argmax()), block.shape)
        if block[i, j] > best:
            best, where = float(block[i, j]), (start + int(i), int(j))
    return np.asarray(np.append(left[where[0]], right[where[1]])), best


@dataclass(frozen=True)
class Facets:
    """<u_i, x> <= offset_i, one row u_i a simplex of the boundary, and inner_i = min <u_i, p> over its own vertices.

    `certified`: the simplices form a closed surface that winds around the origin, so every ray from 0 meets one of them
    and the hull contains the ball of radius min(inner).
    """

    normals: Small
    offsets: Small
    inner: Small
    certified: bool


def most_facets(n: int, r: int) -> int:
    """McMullen's bound on the facets of n points in dimension r."""
    if n <= r:
        return 0
    return math.comb(n - (r + 1) // 2, r // 2) + math.comb(n - r // 2 - 1, (r + 1) // 2 - 1)


def facets(points: Small) -> Facets | None:
    """The facets of the hull in dimension >= 2, or None where it is flat or beyond the budget."""
    n, r = points.shape
    if n <= r or most_facets(n, r) > MAX_FACETS:
        return None
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:
        return None
    normals = np.ascontiguousarray(hull.equations[:, :-1])
    inner = np.full(len(normals), math.inf)
    for vertex in hull.simplices.T:
        inner = np.minimum(inner, np.einsum("ij,ij->i", normals, points[vertex]))
    certified = bool(inner.min() > 0) and _closed(hull.simplices) and _winds_around_origin(points, hull.simplices)
    return Facets(normals, -hull.equations[:, -1], inner, certified)


def _closed(simplices: np.ndarray) -> bool:
    """Whether each ridge belongs to an even number of simplices; ridges are compared by a random 64-bit key."""
    keys = np.random.default_rng(0).integers(0, 2**63, int(simplices.max()) + 1, dtype=np.uint64)[simplices]
    ridges = np.sort((keys.sum(axis=1, keepdims=True, dtype=np.uint64) - keys).ravel())
    return len(ridges) % 2 == 0 and bool((ridges[::2] == ridges[1::2]).all())


def _winds_around_origin(points: Small, simplices: np.ndarray) -> bool:
    """Whether the surface winds around the origin: a ray from there, in general position, meets it an odd number of
    times."""
    r, hits = points.shape[1], 0
    ray = np.random.default_rng(1).standard_normal((1, r, 1))
    for start in range(0, len(simplices), 20_000):
        corners = points[simplices[start : start + 20_000]].transpose(0, 2, 1)
        solid = np.linalg.slogdet(corners)[0] != 0  # flat simplices: no ray in general position meets them
        hits += int((np.linalg.solve(corners[solid], ray)[..., 0] > 0).all(axis=1).sum())
    return hits % 2 == 1


def _by_facets(points: Small, hull: Facets, lower: float) -> Width:
    upper, d = _at(points, hull.normals[int(hull.offsets.argmin())])
    if hull.certified:
        lower = float(hull.inner.min()) - _rounding(points)
    return Width(min(lower, upper), upper, d)


def inradius(points: Small) -> tuple[float, float]:
    """Bounds on the radius of the largest ball of dimension dim lin(A) inside the hull."""
    centred = points - points.mean(axis=0)
    scale = float(norms(centred.T).max())
    whole = span(points / max(float(norms(points.T).max()), scale)) if points.any() else np.zeros((0, 0))
    Q = span(centred / scale) if scale > 0 else np.zeros((0, 0))
    if Q.shape[1] < whole.shape[1] or not Q.size:
        return 0.0, 0.0  # flat in lin(A)
    coordinates = centred / scale @ Q
    lower, upper = _chebyshev(coordinates) if Q.shape[1] > 1 else (float(np.ptp(coordinates)) / 2,) * 2
    return scale * max(min(lower, upper), 0.0), scale * upper


def _chebyshev(points: Small) -> tuple[float, float]:
    """Bounds on the inradius of points of norm at most 1 around a mean of 0: the Chebyshev centre of the facets."""
    hull, r = facets(points), points.shape[1]
    if hull is None:
        directions = np.concatenate([successive_lp(points, np.zeros((0, r)))[None], np.linalg.svd(points)[2]])
        heights = points @ unit_columns(directions.T)
        return _variance_bound(points), float(np.ptp(heights, axis=0).min()) / 2 + _rounding(points)
    halfspaces = np.append(hull.normals, np.ones((len(hull.normals), 1)), axis=1)  # <u_i, c> + t <= b_i
    free = [(None, None)] * r + [(0, None)]
    program = scipy.optimize.linprog(np.append(np.zeros(r), -1.0), A_ub=halfspaces, b_ub=hull.offsets, bounds=free)
    assert program.x is not None  # bounded, and the mean is feasible
    y = np.maximum(-program.ineqlin.marginals, 0.0)
    y = y / y.sum()
    upper = (
        float(y @ hull.offsets) + float(np.linalg.norm(y @ hull.normals)) + _rounding(points)
    )  # centres have norm <= 1
    moved = facets(points - program.x[:r])
    lower = float(moved.inner.min()) - 2 * _rounding(points) if moved is not None and moved.certified else 0.0
    return lower, upper


# ---------------------------------------------------------------------- bounds


def design(B: Small) -> tuple[float, Small]:
    """A lower bound on the mDW of conv(B, -B) and the weights w that prove it: mDW^2 >= lambda_min(sum_i w_i b_i b_i').

    Uniform weights give sigma_min(B)/sqrt(n), which is never below the coherence bound. The best weights are an
    E-optimal design; multiplicative updates approach it through the criteria tr(M^-p), p = 2, 8, 32, until the dual
    certificate max_i b_i'Zb_i (any Z >= 0 of trace 1 bounds every design) is within 2 % of the weights' own bound.
    """
    n, r = B.shape
    w, best, proof, ceiling = np.full(n, 1.0 / n), -1.0, np.full(n, 1.0 / n), math.inf
    rounds = int(np.clip(4e9 / (n * r * r + 20 * r**3), 2, 30))
    for p in (2, 8, 32):
        for _ in range(rounds):
            values, vectors = np.linalg.eigh(B.T @ (w[:, None] * B))
            if values[0] > best:
                best, proof = float(values[0]), w
            powers = (values[0] / values) ** (p + 1)
            scores = (B @ vectors) ** 2 @ powers
            ceiling = min(ceiling, float(scores.max() / powers.sum()))
            if values[0] <= 0 or ceiling <= 1.02 * best:
                break
            w = w * scores ** (1.0 / (p + 1))
            w = w / w.sum()
    certain = best - 32 * EPS * r  # points of norm at most 1: the design has norm at most 1
    return math.sqrt(max(certain, 0.0)), proof


def _variance_bound(points: Small) -> float:
    """A lower bound on the mDW of points of norm at most 1 with 0 inside, symmetric or not.

    If sum_i w_i p_i = 0, then <d, p_i> has mean 0 and variance >= lambda for unit d, and lies in [-1, h(d)]; a variance
    is at most the product of the distances from the mean to the ends, so h(d) >= lambda.
    """
    n, r = points.shape
    columns = np.concatenate([points.T, np.zeros((r, 1))], axis=1)
    equal = np.concatenate([columns, np.append(np.ones(n), 0.0)[None]])
    least = np.concatenate([-np.eye(n), np.ones((n, 1))], axis=1)  # t <= w_i
    program = scipy.optimize.linprog(
        np.append(np.zeros(n), -1.0), A_ub=least, b_ub=np.zeros(n), A_eq=equal, b_eq=np.append(np.zeros(r), 1.0)
    )
    if program.x is None:
        return -1.0
    w = np.maximum(program.x[:n], 0.0)
    w = w / w.sum()
    variance = float(np.linalg.eigvalsh(points.T @ (w[:, None] * points))[0])
    return variance - 2 * float(np.linalg.norm(w @ points)) - _rounding(points)


def successive_lp(points: Small, starts: Small) -> Small:
    """A direction of small width: d <- argmax <d_k, d> over the polar {d : <d, p> <= 1}, from several starts.

    Each step increases ||d|| = 1/W(d) and ends at a vertex of the polar; the starts are the given directions, then
    random ones from a fixed seed.
    """
    n, r = points.shape
    rng, most = np.random.default_rng(0), int(np.clip(MAX_PROGRAMS * 5_000 / (n * r), 8, MAX_PROGRAMS))
    best, longest, spent = np.ones(r), -math.inf, 0
    directions = list(starts[: most // 12])
    while spent < most:
        d = directions.pop(0) if directions else np.asarray(rng.standard_normal(r))
        before = -math.inf
        while spent < most:
            program = scipy.optimize.linprog(-unit(d), A_ub=points, b_ub=np.ones(n), bounds=(-1e8, 1e8))
            spent += 1
            if program.x is None or not np.linalg.norm(program.x) > (1 + 1e-9) * before:
                break
            d, before = program.x, float(np.linalg.norm(program.x))
        if -_at(points, d)[0] > longest:
            best, longest = d, -_at(points, d)[0]
    return best


def nearest(points: Small) -> Small:
    """The point of the hull nearest to 0: the solution of NNLS, min ||(P', 1') w - (0, 1)||, made to sum to 1."""
    system = np.concatenate([points.T, np.ones((1, len(points)))])
    w, _ = scipy.optimize.nnls(system, np.append(np.zeros(points.shape[1]), 1.0), maxiter=30 * len(points) + 300)
    return np.asarray(w / w.sum() @ points)
