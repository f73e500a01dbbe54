"""Brute force for the tests of errata: widths, gauges and constants of tiny sets, independent of the package.

Atoms are the columns of a matrix.
"""

import math
from itertools import islice, product

import numpy as np
from scipy.optimize import linprog
from scipy.spatial import ConvexHull

import pursuit as ps

SEEDS = range(8)
MATCHING_PURSUIT = ps.Plain(ps.ShortStep())  # Algorithm 4, variant 0
GMP = [MATCHING_PURSUIT, ps.NormCorrective()]  # both variants of Algorithm 4
ROUNDING = 1e-10
TWO = np.array([[1.0, 0.6], [0.0, 0.8]])  # two unit atoms; (2, 1) lies between them


def run(f, domain, update, steps, **options):
    """The states x_0, ..., x_steps."""
    return list(islice(ps.iterate(f, domain, update, **options), steps + 1))


def values(states, optimum=0.0):
    """eps_t = f(x_t) - f*."""
    return np.array([s.value for s in states]) - optimum


def at_most(small, large, scale=1.0):
    """small <= large up to rounding, entrywise."""
    return bool(np.all(np.asarray(small) <= np.asarray(large) + ROUNDING * scale))


def both(B):
    """A = B and -B."""
    return np.hstack([B, -B])


def unit(B):
    return B / np.linalg.norm(B, axis=0)


def radius(A):
    return float(np.linalg.norm(A, axis=0).max())


def support(A, d):
    """max over the atoms of <d, z>."""
    return float((A.T @ d).max())


def width(A, d):
    """The directional width W_A(d)."""
    return support(A, d) / float(np.linalg.norm(d))


def facets(A):
    """Normals and offsets of conv(A), one row (n, b) for each facet <n, x> <= b, in coordinates of lin(A)."""
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    inner = U[:, s > 1e-10 * s[0]].T @ A
    if len(inner) == 1:
        return np.array([[1.0, inner.max()], [-1.0, -inner.min()]])
    equations = ConvexHull(inner.T).equations
    return np.column_stack([equations[:, :-1], -equations[:, -1]])


def mdw(A):
    """The minimal intrinsic directional width where 0 lies in conv(A): the distance of 0 to the nearest facet."""
    nearest = float(facets(A)[:, -1].min())
    assert nearest > -1e-10
    return max(nearest, 0.0)


def inradius(A):
    """The radius of the largest ball inside conv(A), wherever its centre lies."""
    rows = facets(A)
    n = rows.shape[1] - 1
    inside = np.column_stack([rows[:, :-1], np.ones(len(rows))])  # <n, centre> + r <= b
    return -float(linprog(-np.eye(n + 1)[n], inside, rows[:, -1], bounds=(None, None)).fun)


def gauge(A, x):
    """The atomic norm of x: min sum(w) over w >= 0 with A w = x; infinite if there is none."""
    found = linprog(np.ones(A.shape[1]), A_eq=A, b_eq=x)
    return float(found.fun) if found.status == 0 else math.inf


def rho(A, xs):
    return max(gauge(A, x) for x in xs)


def coherence(B):
    """The cumulative coherence mu(B, n - 1): the largest sum of |<s_i, s_j>|, j != i."""
    G = np.abs(B.T @ B)
    return float((G.sum(axis=0) - G.diagonal()).max())


def quadratic(rng, n, minimiser=None, condition=5.0):
    """1/2 <x - c, H (x - c)> less its constant, with H and the minimiser c."""
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    H = (Q * np.geomspace(1.0, condition, n)) @ Q.T
    H = (H + H.T) / 2
    c = rng.standard_normal(n) if minimiser is None else minimiser
    return ps.Quadratic(H, -H @ c), H, c, -0.5 * float(c @ H @ c)


def root(H):
    """The symmetric square root of H."""
    w, V = np.linalg.eigh(H)
    return (V * np.sqrt(w)) @ V.T


def around_the_origin(rng, n, m):
    """m atoms without symmetry, with 0 in the interior of their hull."""
    while True:
        A = rng.standard_normal((n, m))
        if facets(A)[:, -1].min() > 0.05:
            return A


class PaperStep(ps.StepRule):
    """gamma = 2 / (t + 2), variant 0 of Algorithm 2 as printed, whatever the quality of the oracle."""

    def begin(self, f, domain, space):
        return lambda move: 2.0 / (move.iteration + 2.0)


def largest_curvature(f, points, directions, steps):
    """max of 2/gamma^2 (f(y) - f(x) - <f'(x), y - x>) over y = x + gamma d."""
    best = -math.inf
    for x in points:
        value, grad = f.value_and_grad(x)
        for d, gamma in product(directions, steps):
            best = max(best, 2 / gamma**2 * (f.value(x + gamma * d) - value - gamma * float(grad @ d)))
    return best
