"""The small problem of one signal, min_x 1/2 x^T H x - b^T x on its active atoms, kept solved as atoms come and go.

H = L L^T grows by one row an atom, and U = L^-1 with it. F holds H, L and U of one signal. These are the careful ways,
of the kernels that are asked where the fast one gave up, and where there is no fast one. Rooms to work in come from the
caller: every NumPy function that a kernel calls is one more to compile.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit._compiled import Array, part, scalar

OMP, MP, OLS, NNOMP = range(4)


@part
def border(F: Array, s: int, eps: float) -> bool:
    """Row s of L and U from row s of H; whether the atom is independent of the others.

    The pivot is ||a - sum_k beta_k a_k||^2 at the best beta, from a Gram matrix whose entries are rounded: it is known
    to within a few eps (||a|| + sum_k |beta_k| ||a_k||)^2, and an atom with no more left than that is dependent.
    """
    diagonal = F[0, s, s]
    pivot = diagonal
    for i in range(s):
        w = F[0, s, i]
        for k in range(i):
            w -= F[1, i, k] * F[1, s, k]
        w *= F[2, i, i]
        F[1, s, i] = w
        pivot -= w * w
    mass = math.sqrt(diagonal)
    for k in range(s):
        beta = 0.0
        for i in range(k, s):
            beta += F[1, s, i] * F[2, i, k]
        F[2, s, k] = -beta
        mass += abs(beta) * math.sqrt(F[0, k, k])
    if not pivot > 4 * (s + 2) * eps * mass * mass:
        return False
    F[1, s, s] = math.sqrt(pivot)
    F[2, s, s] = 1 / F[1, s, s]
    for k in range(s):
        F[2, s, k] *= F[2, s, s]
    return True


@part
def solve(F: Array, b: Array, x: Array, s: int) -> None:
    """x = H^-1 b for the first s atoms, by two substitutions."""
    for i in range(s):
        total = b[i]
        for k in range(i):
            total -= F[1, i, k] * x[k]
        x[i] = total / F[1, i, i]
    for i in range(s - 1, -1, -1):
        value = x[i] / F[1, i, i]
        x[i] = value
        for k in range(i):
            x[k] -= F[1, i, k] * value


@part
def ratio(x: Array, z: Array, order: Array, s: int) -> float:
    """How far from x towards z all weights stay non-negative; 2 where z is positive."""
    lowest = 2.0
    for i in range(s):
        old = x[order[i]]
        if not z[i] > 0 and not old > lowest * (old - z[i]):
            lowest = old / (old - z[i]) if old > 0 else 0.0
    return lowest


@part
def steepest(F: Array, b: Array, x: Array, sizes: Array, inside: Array, m: int, floor: float) -> int:
    """The member outside whose weight most wants to grow, beyond rounding, or -1."""
    best, found = 0.0, -1
    for p in range(m):
        slope = b[p]
        for k in range(m):
            slope -= F[0, p, k] * x[k]
        if not inside[p] and slope > floor * sizes[p] and slope > best:
            best, found = slope, p
    return found


@scalar
def rebuild(F: Array, E: Array, x: Array, order: Array, inside: Array, s: int, count: int, eps: float) -> int:
    """Factors E of the first `count` members of `order`, s of which have theirs; how many are independent and stay."""
    while s < count:
        p = order[s]
        for i in range(s + 1):
            E[0, s, i] = E[0, i, s] = F[0, p, order[i]]
        if border(E, s, eps):
            s += 1
            continue
        inside[p], x[p] = False, 0
        count -= 1
        for i in range(s, count):
            order[i] = order[i + 1]
    return s


@part
def retreat(x: Array, z: Array, order: Array, inside: Array, s: int, step: float, eps: float) -> tuple[int, int]:
    """Go from x towards z until weights vanish; their atoms leave. The first place that changed, and how many stay."""
    first, kept = s, 0
    for i in range(s):
        p = order[i]
        inside[p] = z[i] > 0 or x[p] > step * (x[p] - z[i]) * (1 + 4 * eps)
        x[p] = x[p] + step * (z[i] - x[p]) if inside[p] else 0
        if inside[p]:
            order[kept] = p
            kept += 1
        elif first == s:
            first = i
    return first, kept


@scalar
def nonnegative(
    F: Array, E: Array, x: Array, b: Array, sizes: Array, m: int, floor: float, eps: float, room: Array
) -> int:
    """Lawson and Hanson's method for the m members of F, from feasible weights x.

    Leaves the members of positive weight in the order of the room, the factors of those in E; returns how many.
    """
    z, part, order, inside = room
    for p in range(m):
        order[p], inside[p] = p, True
    s, count = np.int64(0), m  # not the literal 0, for which helpers would be compiled apart
    for _ in range(3 * m + 8):
        s = rebuild(F, E, x, order, inside, s, count, eps)
        for i in range(s):
            part[i] = b[order[i]]
        solve(E, part, z, s)
        step = ratio(x, z, order, s)
        if step <= 1:
            s, count = retreat(x, z, order, inside, s, step, eps)
            continue
        for i in range(s):
            x[order[i]] = z[i]
        count = s
        p = steepest(F, b, x, sizes, inside, m, floor)
        if p < 0:
            break
        inside[p], order[s], count = True, p, s + 1
    return rebuild(F, E, x, order, inside, s, count, eps)


@part
def compress(F: Array, E: Array, atoms: Array, V: Array, taken: Array, s: int, kept: int, room: Array) -> None:
    """Only the members that `nonnegative` left, in its order, with their factors; the others are free again."""
    _, part, order, inside = room
    for i in range(s):
        taken[atoms[i]] = inside[i]
    for row in range(3):
        for i in range(s):
            part[i] = V[row, i]
        for i in range(kept):
            V[row, i] = part[order[i]]
            for k in range(kept):
                F[row, i, k] = E[row, i, k]
    for i in range(kept):
        order[i] = atoms[order[i]]
    for i in range(kept):
        atoms[i] = order[i]


@part
def refit(
    F: Array, E: Array, atoms: Array, V: Array, taken: Array, s: int, c: float, floor: float, eps: float, room: Array
) -> int:  # fmt: skip
    """The weights V[0] of s active atoms, the last of which is new and has the correlation c. How many stay.

    V holds the weights, the correlations with the signal, and the norms of the active atoms. E is None where weights
    are free; where they are non-negative, so that zeros leave, it is room for factors. (For None, numba compiles
    nothing of the second kind.)
    """
    step, positive = c * F[2, s - 1, s - 1], True
    V[0, s - 1] = 0
    for i in range(s):
        V[0, i] += step * F[2, s - 1, i]
        positive &= V[0, i] > 0
    if E is None:
        return s
    if positive:
        return s
    for i in range(s):
        before = V[0, i] - step * F[2, s - 1, i]
        V[0, i] = before if before > 0 and i < s - 1 else 0  # not below zero by rounding either
    kept = nonnegative(F, E, V[0], V[1], V[2], s, floor, eps, room)
    compress(F, E, atoms, V, taken, s, kept, room)
    return kept


@part
def rank(c: Array, v: Array, norms: Array, taken: Array, method: int, floor: float, least: float, keys: Array) -> None:
    """What the methods compare, or -1 where an atom is not free or its correlation is rounding, floor * norms_j.

    |c_j| for OMP and MP, c_j for NNOMP, c_j^2 / v_j for OLS with v_j the squared norm of what the active atoms leave of
    atom j, at least `least` of the whole.
    """
    for j in range(len(norms)):  # without branches, so that it becomes vector code
        size = norms[j]
        key = c[j] if method == NNOMP else abs(c[j])
        good = (key > floor * size) & (not taken[j])
        if method == OLS:
            good &= v[j] > least * size * size
            key *= key / v[j]
        keys[j] = key if good else -1


@part
def choose(c: Array, v: Array, norms: Array, taken: Array, method: int, floor: float, least: float, keys: Array) -> int:
    """The atom that the method takes next, -1 if none is left; ties go to the lowest index.

    keys are numbers and the same as integers, which have the same order where positive, and whose largest LLVM finds
    with vectors.
    """
    rank(c, v, norms, taken, method, floor, least, keys[0])
    bits = keys[1]
    best = bits[0]
    for j in range(len(bits)):
        best = max(best, bits[j])
    found = len(bits)
    for j in range(len(bits)):
        found = min(found, j if bits[j] == best else len(bits))
    return found if best > 0 else -1


def ranks(n: int, dtype: Any) -> tuple[Array, Array]:
    """Room for the keys of n atoms, as numbers and as integers."""
    keys = np.zeros(n, dtype)
    return keys, keys.view(np.int64 if keys.itemsize == 8 else np.int32)


def factors(width: int, dtype: Any) -> Array:
    """Room for the factors of non-negative refits."""
    return np.zeros((3, width, width), dtype)


@part
def export(atoms: Array, x: Array, s: int, out_atoms: Array, out_x: Array) -> None:
    """The code of one signal, its atoms in increasing order."""
    for i in range(s):
        place = 0
        for k in range(s):
            place += atoms[k] < atoms[i]
        out_atoms[place] = atoms[i]
        out_x[place] = x[i]
