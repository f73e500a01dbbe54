"""The small problem of one signal, min_x 1/2 x^T H x - b^T x on its active atoms, kept solved as atoms come and go.

H = L L^T grows by one row an atom, and U = L^-1 with it: F are H, L and U of one signal, with `width` rows of `depth`
bytes each; V are the weights x, the correlations b with the signal, and the norms of the atoms. These are the careful
ways, of the kernels that are asked where the fast one gave up, and where there is no fast one. F, V and rooms are
addresses, as arrays take numba longer to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pursuit._compiled import Array, part
from pursuit._vector import numbers
from pursuit.encode.lines import add, border, copy, dot, gather, solve
from pursuit.encode.rooms import several

OMP, MP, OLS, NNOMP = range(4)


def factors(width: int, dtype: Any) -> Any:
    """Rooms for `nonnegative`: factors, weights, members and which of them are positive."""
    return several(((3, width, width), dtype), ((width,), dtype), ((width,), np.int32), ((width,), np.int32))


@part
def refit(F: int, V: int, width: int, depth: int, s: int, c: float, out: int, like: float) -> float:
    """The weights of s active atoms, the last of which is new and has the correlation c; the least of them."""
    new = F + (2 * width + s - 1) * depth
    numbers(V, like)[s - 1] = 0
    return add(V, c * numbers(new, like)[s - 1], new, s, out, like)


@part
def refit_nonnegative(
    F: int, V: int, atoms: Any, free: Any, width: int, depth: int, s: int, c: float, floor: float, eps: float,
    room: Array, like: float,
) -> int:  # fmt: skip
    """The same with weights that are not negative, so that atoms may leave; how many stay."""
    if refit(F, V, width, depth, s, c, room[1], like) > 0:
        copy(room[1], V, s, like)
        return s
    return nonnegative(F, V, atoms, free, width, depth, s, floor, eps, room, like)


@part
def nonnegative(
    F: int, V: int, atoms: Any, free: Any, width: int, depth: int, m: int, floor: float, eps: float, room: Array,
    like: float,
) -> int:  # fmt: skip
    """Lawson and Hanson's method for m active atoms, from weights that are feasible; how many are positive, and stay.

    The others leave, and `free`, which has the norms of atoms, infinite for those that are taken, has theirs again.
    """
    E, at_z, at_order, at_inside = room
    x, b, sizes, z = numbers(V, like), numbers(V + depth, like), numbers(V + 2 * depth, like), numbers(at_z, like)
    order, inside = numbers(at_order, np.int32(0)), numbers(at_inside, np.int32(0))
    for p in range(m):
        order[p], inside[p] = p, 1
        for k in range(p):  # all of H, of which only the lower triangle was needed so far
            numbers(F + k * depth, like)[p] = numbers(F + p * depth, like)[k]
    s, count = 0, m
    for turn in range(3 * m + 9):
        while s < count:  # factors of the members in their order; who depends on those before leaves
            p = order[s]
            gather(F + p * depth, at_order, s + 1, E + s * depth, like)
            if border(E, depth, s, like):
                s += 1
            else:
                count -= 1
                order[s], inside[p], x[p] = order[count], 0, 0
        if turn == 3 * m + 8:
            break
        gather(V + depth, at_order, s, at_z, like)
        solve(E + width * depth, depth, at_z, s, like)
        step = 1.0  # how far from x towards z all weights stay non-negative
        for i in range(s):
            old = x[order[i]]
            if not z[i] > 0 and not old > step * (old - z[i]):
                step = old / (old - z[i]) if old > 0 else 0.0
        first, kept = s, 0
        for i in range(s):
            p = order[i]
            old = x[p]
            stays = z[i] > 0 or old > step * (old - z[i]) * (1 + 4 * eps)
            end = z[i] if step == 1 else old + step * (z[i] - old)
            x[p], inside[p], order[kept] = end if stays else 0, stays, p
            first = min(first, s if stays else i)
            kept += stays
        if kept < s:
            s, count = first, kept
            continue
        steepest, p = 0.0, -1  # the member outside whose weight most wants to grow, beyond rounding
        for k in range(m):
            slope = b[k] - dot(F + k * depth, V, m, like)
            if not inside[k] and slope > floor * sizes[k] and slope > steepest:
                steepest, p = slope, k
        if p < 0:
            break
        inside[p], order[s], count = 1, p, s + 1
    for k in range(m):
        free[atoms[k]] = np.inf if inside[k] else sizes[k]
    for row in range(3):
        gather(V + row * depth, at_order, s, at_z, like)
        copy(at_z, V + row * depth, s, like)
        for i in range(s):
            copy(E + (row * width + i) * depth, F + (row * width + i) * depth, s, like)
    for i in range(s):
        order[i] = atoms[order[i]]
    for i in range(s):
        atoms[i] = order[i]
    return s
