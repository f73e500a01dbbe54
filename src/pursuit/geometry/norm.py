"""The atomic norm of a point, and a bound on the atomic norm over a sublevel set of f."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used

from pursuit.arguments import number, require
from pursuit.arrays import Array, Small
from pursuit.atoms import Atoms
from pursuit.atoms.closed import MAX_DENSE_DIMENSION, through
from pursuit.geometry.inputs import check_objective, root, vector
from pursuit.geometry.interval import EXACT_TOLERANCE, Interval
from pursuit.geometry.shapes import Oracle, Shape, lift, oracle, shape_of
from pursuit.linalg import EPS, norm, norms, unit
from pursuit.metrics import Identity
from pursuit.objectives import Objective

CONE_TOLERANCE = 1e-10
"""Relative distance up to which x counts as a point of the cone of the atoms."""

MAX_GAUGE_CALLS = 150
"""At most this many oracle calls are made for the atomic norm over a set that has only an oracle."""


def gauge(A: Atoms, x: Array) -> Interval:
    r"""The atomic norm :math:`\|x\|_A = \inf\{c\ge 0 : x\in c\,\mathrm{conv}(A)\}`, infinite outside the atoms' cone.

    It has a closed form for some sets. For listed atoms a linear program finds the least sum of weights w >= 0 that
    make x. Its answer is then verified: the upper bound is the sum of weights that are refitted to x, the lower bound
    is :math:`\langle y, x\rangle / h_A(y)` at the dual solution y. A set with only an oracle gets the same two bounds
    from the atoms that the oracle names for y, as in fully corrective Frank-Wolfe, until they agree or 150 calls are
    made. The norm of 0 is 0. A point within a relative 1e-10 of the cone counts as a point of the cone.

    >>> import numpy as np, pursuit as ps
    >>> gauge(ps.SignedBasis(3), [1.0, -2.0, 0.5]), gauge(ps.Simplex(2), [1.0, -1.0])
    (Interval(3.5, exact), Interval(inf, exact))
    >>> gauge(ps.Dictionary(np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]), signed=True), [2.0, 1.0])
    Interval(2, exact)
    """
    shape = shape_of(A)
    flat = vector(A, x, "x")
    scale = norm(flat)
    if scale == 0:
        return Interval.of(0.0)
    closed = A.gauge(lift(A, flat))
    if closed is not None and not math.isnan(closed):
        return Interval.of(closed)
    return _by_shape(shape, oracle(A), flat / scale).scaled(scale)


def contains(A: Atoms, x: Array, total: float | None = None) -> bool | None:
    """Whether x is a combination of atoms with non-negative weights, whose sum is `total` unless that is None. Listed
    atoms decide it, up to a relative 1e-10, and so does a gauge of symmetric atoms. None: not known.

    >>> import pursuit as ps
    >>> A = ps.Simplex(2)
    >>> contains(A, [0.5, 0.5], 1.0), contains(A, [0.4, 0.5], 1.0), contains(A, [2.0, 1.0])
    (True, False, True)
    """
    shape, flat = shape_of(A), vector(A, x, "x")
    require(total is None or 0 < number(total) < math.inf, "total", total, "the sum of the weights, or None")
    size = max(norm(flat), shape.radius().upper)
    if shape.atoms is not None and len(shape.atoms) <= MAX_DENSE_DIMENSION:
        last = [] if total is None else [1.0]
        rows = np.concatenate([shape.atoms / size, np.ones((len(shape.atoms), len(last)))], axis=1)
        target = np.append(flat / size, [total] if last else [])
        rest = float(np.linalg.norm(target - _cone(rows, target) @ rows))
        return rest <= CONE_TOLERANCE * max(float(np.linalg.norm(target)), 1.0)
    if A.size is not None or total is None or not A.symmetric:
        return None
    found = gauge(A, lift(A, flat))
    within = total * (1 + EXACT_TOLERANCE)
    return True if found.upper <= within else False if found.lower > within else None


def _by_shape(shape: Shape, lmo: Oracle, x: Small) -> Interval:
    """The atomic norm of a unit vector."""
    closed = shape.gauge(x)
    if closed is not None:
        return Interval.of(closed)
    if shape.atoms is None:
        return _by_oracle(lmo, x)
    size = shape.radius().upper or 1.0
    answer = _listed(shape.atoms / size, x)
    return Interval(min(answer.lower, answer.upper), answer.upper).scaled(1 / size)


@dataclass(frozen=True)
class _Answer:
    """Bounds on the atomic norm of x over listed atoms, and the y that proves the lower one."""

    lower: float
    upper: float
    y: Small


def _listed(atoms: Small, x: Small) -> _Answer:
    """The atomic norm of a unit vector over the rows of a matrix.

    Atomic norms do not depend on coordinates. The coordinates used here make the singular values of the matrix of atoms
    equal: otherwise nearly dependent atoms could not be told apart within the tolerances of the solvers. The bounds are
    widened by what rounding in the change of coordinates may add.
    """
    _, s, Vt = np.linalg.svd(atoms, full_matrices=False)
    r = int((s > max(atoms.shape) * EPS * s[0]).sum())
    outside = x - Vt[:r].T @ (Vt[:r] @ x)
    if np.linalg.norm(outside) > CONE_TOLERANCE:
        return _Answer(math.inf, math.inf, outside)
    back = Vt[:r].T / s[:r]  # y in the new coordinates is back @ y in the old
    size, rounding = float(np.linalg.norm(x @ back)), 8 * EPS * math.sqrt(len(atoms)) * float(s[0] / s[r - 1])
    answer = _well_conditioned(atoms @ back, x @ back / size)
    return _Answer(size * answer.lower / (1 + rounding), size * answer.upper * (1 + rounding), back @ answer.y)


def _well_conditioned(atoms: Small, x: Small) -> _Answer:
    """The atomic norm of a unit vector over atoms in good coordinates."""
    w = _cone(atoms, x)
    rest = x - w @ atoms
    if np.linalg.norm(rest) > CONE_TOLERANCE:  # <rest, a> <= 0 < <rest, x>: outside the cone, by Farkas
        support = float((atoms @ rest).max())
        return _Answer(math.inf if support <= 8 * EPS * len(x) else _dual(rest, x, support), math.inf, rest)
    program = scipy.optimize.linprog(np.ones(len(atoms)), A_eq=atoms.T, b_eq=x)
    if program.x is None:
        return _Answer(0.0, _total_weight(atoms, x, w), x)
    y = np.asarray(program.eqlin.marginals)
    return _Answer(_dual(y, x, float((atoms @ y).max())), _total_weight(atoms, x, program.x), y)


def _cone(atoms: Small, x: Small) -> Small:
    """Weights of the point of the cone nearest to x."""
    return np.asarray(scipy.optimize.nnls(atoms.T, x, maxiter=30 * len(atoms) + 300)[0])


def _dual(y: Small, x: Small, support: float) -> float:
    """<y, x> / h(y), rounded down: a lower bound on the norm of x."""
    return float(y @ x) / support * (1 - 64 * EPS * len(x)) if support > 0 else 0.0


def _total_weight(atoms: Small, x: Small, w: Small) -> float:
    """The total weight of a combination that makes x to rounding, rounded up. The weights w of a linear program make x
    to its tolerance only; the rest is made of atoms, too, and their weight is added."""
    for _ in range(2):
        rest = x - w @ atoms
        size = float(np.linalg.norm(rest))
        if size > 16 * EPS:
            w = w + size * _cone(atoms, rest / size)
    return float(w.sum()) * (1 + 1e-12)


def _by_oracle(lmo: Oracle, x: Small) -> Interval:
    """Column generation: the dual y of the atoms found so far bounds the norm from below, and names the next atom."""
    found: list[Small] = []
    lower, upper, y = 0.0, math.inf, x
    for _ in range(MAX_GAUGE_CALLS):
        z = lmo(-y)
        support = float(y @ z)
        if support <= 8 * EPS * len(x) * np.linalg.norm(z) and y @ x > CONE_TOLERANCE:
            return Interval.of(math.inf)
        lower = max(lower, _dual(y, x, support))
        if upper - lower <= 0.5 * EXACT_TOLERANCE * upper < math.inf:
            break
        found.append(z)
        atoms = np.array(found)
        size = float(norms(atoms.T).max()) or 1.0
        answer = _listed(atoms / size, x)
        upper, y = min(upper, answer.upper / size), unit(answer.y)
    return Interval(min(lower, upper), upper)


# ---------------------------------------------------------------------- rho


def rho(A: Atoms, f: Objective, x0: Array) -> Interval:
    r"""An a-priori bound on the atomic norm of all iterates and of a minimiser:
    :math:`\rho = \sup\{\|x\|_A : x\in\mathrm{lin}(A),\ f(x)\le f(x_0)\}`.

    The paper defines rho by the iterates of the very run that it is to bound. Every update of its algorithms decreases
    f, so the rho here, which depends on the start only, holds for all t.

    Let :math:`N` be the Hessian of a quadratic f, or mu times the identity for a strongly convex one. Then the sublevel
    set lies in the ellipsoid around :math:`c = x_0 - N^{-1}g` of radius :math:`\|g\|_{N^{-1}}` (all restricted to
    lin(A)), and rho is at most the largest :math:`\langle v, c\rangle + \|g\|_{N^{-1}}\|v\|_{N^{-1}}` over the
    vertices v of the polar, with equality for quadratics. Where the polar has too many vertices, the bound is
    :math:`\|c\|_A + \|g\|_{N^{-1}}/\mathrm{mDW}_N(A)`; where nothing is known, it is infinite. The lower end is then
    the norm of the start.

    >>> import pursuit as ps
    >>> rho(ps.SignedBasis(2), ps.LeastSquares([3.0, 4.0]), [0.0, 0.0])      # 7 + 5 sqrt(2)
    Interval(14.07106781, exact)
    """
    shape, start = shape_of(A), vector(A, x0, "x0")
    check_objective(f, A)
    if start.any() and not shape.spans(start):
        raise ValueError("x0 lies outside lin(A); project it on the span of the atoms first.")
    here, lifted = gauge(A, lift(A, start)), lift(A, start)
    grad = vector(A, f.value_and_grad(lifted)[1], "the gradient of f")
    curvature = f.hessian(lifted) if f.quadratic else Identity(float(f.mu))
    Q = shape.basis()
    if Q is None or curvature is None or (not f.quadratic and not f.mu > 0):
        return Interval(here.lower, math.inf)
    T = root(curvature, len(start), definite=False)
    half = through(T, Q)  # N restricted to lin(A) is half' half
    _, s, Vt = np.linalg.svd(half, full_matrices=False)
    if not s[-1] > len(start) * EPS * s[0]:  # the sublevel set is unbounded in lin(A), and A is not
        return Interval.of(math.inf)
    inverse = (Q @ Vt.T) / s  # N^{-1} on lin(A) = inverse inverse'
    slope = inverse.T @ grad
    level_set = _Ellipsoid(start - inverse @ slope, float(np.linalg.norm(slope)), inverse)
    polar = shape.polar()
    if polar is None:
        upper = _rho_bound(A, shape, level_set)
        return Interval(min(here.lower, upper), upper)
    value = float((polar @ level_set.centre + level_set.radius * np.linalg.norm(polar @ inverse, axis=1)).max())
    rounding = 1e-12 * (abs(value) + here.upper)
    return Interval(value - rounding if f.quadratic else here.lower, value + rounding)


@dataclass(frozen=True)
class _Ellipsoid:
    """{centre + radius axes u : ||u|| <= 1}, around a sublevel set; the columns of `axes` are orthogonal."""

    centre: Small
    radius: float
    axes: Small


def _rho_bound(A: Atoms, shape: Shape, level_set: _Ellipsoid) -> float:
    """The bound without the polar: ||c||_A + radius / mDW in the metric N."""
    middle = gauge(A, lift(A, level_set.centre)).upper
    width = shape.image(np.asarray(np.linalg.pinv(level_set.axes))).mdw().lower
    return middle + level_set.radius / width if width > 0 and math.isfinite(middle) else math.inf
