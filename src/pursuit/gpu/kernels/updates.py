"""Pursuits and constrained minima of one signal a program, which update the products of all atoms."""

import triton
import triton.language as tl

from pursuit.gpu.kernels.basis import better, direction, through


@triton.jit(do_not_specialize=["k"])
def pursue(
    P, S, G, squares, lengths, tols, limits, atoms, x, counts, M, n, k,
    least_square, least_lead, least_distance,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr, OLS: tl.constexpr,
):  # fmt: skip
    """The whole pursuit of one signal, from its products P with all atoms; `lengths` are the norms of the signals. For
    OLS, S are the squared distances of the atoms to the span of the active ones. `counts` is -1 where rounding decides,
    -2 where k atoms are not enough, -3 where a signal is not finite."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P, S, atoms, M = P + b * n, S + b * n, atoms + b * k, M + b * k * ROWS
    length, tol, limit = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b)
    square, step = length * length, tol * 0.0
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0) & (length < float("inf"))
    count = 0
    weights = tl.zeros((ROWS,), P.dtype.element_ty)
    for _ in range(k + 1):
        if under_way:
            top, second, c, j = length * 0.0 - 1.0, length * 0.0 - 1.0, length * 0.0, tl.zeros((), tl.int64)
            for start in range(0, n, WIDTH):
                here = start + o < n
                p = tl.load(P + start + o, mask=here, other=0.0)
                q = tl.zeros((WIDTH,), P.dtype.element_ty)
                for i in range(count):
                    a = tl.load(atoms + i).to(tl.int64)
                    q += tl.load(M + (count - 1) * ROWS + i) * tl.load(G + a * n + start + o, mask=here, other=0.0)
                p -= step * q
                merit = tl.abs(p)
                if OLS:
                    s = tl.load(S + start + o, mask=here, other=1.0) - q * q
                    tl.store(S + start + o, s, mask=here)
                    apart = s > least_distance * tl.load(squares + start + o, mask=here, other=1.0)
                    merit = tl.where(apart, merit / tl.sqrt(tl.where(apart, s, 1.0)), 0.0)
                tl.store(P + start + o, p, mask=here)
                top, second, j, c = better(tl.where(here, merit, -1.0), p, start, o, top, second, j, c)
            known = tl.load(atoms + row, mask=row < count, other=0).to(tl.int64)
            g = tl.load(G + known * n + j, mask=row < count, other=0.0)
            new, inverse, share, again = direction(M, known, g, tl.load(squares + j), j, count, row, ROWS, PART)
            near0 = square <= least_square * length * length
            if (top - second <= least_lead * length) | (share <= least_distance) | again | near0:
                count = -1
                under_way = False
            elif count == k:
                count = -2
                under_way = False
            else:
                step = c * inverse
                weights += step * new
                square -= step * step
                tl.store(M + count * ROWS + row, new)
                tl.store(atoms + count, j.to(tl.int32))
                tl.debug_barrier()
                count += 1
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), count, -3))
    tl.store(x + b * k + row, weights, mask=row < k)


@triton.jit
def settle(P, G, squares, M, known, side, weights, penalty, count, n, row, ROWS: tl.constexpr, PART: tl.constexpr):
    """The minimum over weights of active atoms that keep their sides, from weights that have them. On the atoms A it is
    z = (A'A)^-1 b with b = A'y - penalty side, and (A'A)^-1 = M'M. Where z has another sign, weights move towards z
    until the first is 0, and that atom leaves. Also returns the least |z_i| |a_i| of all z."""
    least = tl.sum(weights * 0.0, 0) + float("inf")
    moving = True
    while moving:
        tl.debug_barrier()
        inside = row < count
        target = tl.where(inside, tl.load(P + known, mask=inside, other=0.0) - penalty * side, 0.0)
        z, _size = through(M, target, count, row, ROWS, PART)
        norms = tl.sqrt(tl.load(squares + known, mask=inside, other=1.0))
        least = tl.minimum(least, tl.min(tl.where(inside, tl.abs(z) * norms, float("inf")), 0))
        wrong = inside & (side * z <= 0)
        moving = tl.max(wrong.to(tl.int32), 0) > 0
        if moving:
            share, i = tl.min(tl.where(wrong, weights / tl.where(wrong, weights - z, 1.0), 2.0), 0, return_indices=True)
            source = tl.minimum(row + (row >= i).to(tl.int32), ROWS - 1)
            weights = tl.gather(weights + share * (z - weights), source, 0)
            known, side = tl.gather(known, source, 0), tl.gather(side, source, 0)
            count -= 1
            for t in range(i, count):
                a = tl.sum(tl.where(row == t, known, 0), 0)
                g = tl.load(G + known * n + a, mask=row < t, other=0.0)
                new, _, _, _ = direction(M, known, g, tl.load(squares + a), a, t, row, ROWS, PART)
                tl.store(M + t * ROWS + row, new)
                tl.debug_barrier()
        else:
            weights = tl.where(inside, z, 0.0)
    return known, side, weights, count, least


@triton.jit(do_not_specialize=["k"])
def descend(
    P, G, squares, lengths, tols, limits, penalties, atoms, x, counts, M, n, k, noise, least_slope, least_square,
    least_lead, least_distance, WIDTH: tl.constexpr, ROWS: tl.constexpr, PART: tl.constexpr,
    POSITIVE: tl.constexpr, PURSUIT: tl.constexpr,
):  # fmt: skip
    """The method of Lawson and Hanson for one signal: the minimum of |y - Dx|^2 / 2 + penalty |x|_1, over x >= 0 if
    POSITIVE; or, in a PURSUIT, of the first term over x >= 0 on the active atoms, one more after each minimum. An atom
    enters with the sign of its product with the residual, its `side`. `counts` as in `pursue`; -1 also where a code has
    as many atoms as its limit, and one more would lower the objective: it depends on them."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P, atoms, x, M = P + b * n, atoms + b * k, x + b * k, M + b * k * ROWS
    length, tol, limit, penalty = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b), tl.load(penalties + b)
    dtype = P.dtype.element_ty
    weights, side, known = tl.zeros((ROWS,), dtype), tl.zeros((ROWS,), dtype), tl.zeros((ROWS,), tl.int64)
    count, turn = 0, 0
    under_way = (length > 0) & (length < float("inf")) & (limit > 0) & ((length > tol) | (tol < 0))
    while under_way:
        active = tl.load(squares + known, mask=row < count, other=0.0)
        size = length + tl.sum(tl.abs(weights) * tl.sqrt(active), 0)
        top, second, c, error, j = (
            length * 0.0 - 1.0,
            length * 0.0 - 1.0,
            length * 0.0,
            length * 0.0,
            tl.zeros((), tl.int64),
        )
        for start in range(0, n, WIDTH):
            here = start + o < n
            p, free = tl.load(P + start + o, mask=here, other=0.0), here
            for i in range(count):
                a = tl.load(atoms + i).to(tl.int64)
                p -= tl.load(x + i) * tl.load(G + a * n + start + o, mask=here, other=0.0)
                free = free & (start + o != a)
            slope = (p if POSITIVE else tl.abs(p)) - penalty
            norms = tl.sqrt(tl.load(squares + start + o, mask=here, other=1.0))
            merit = tl.where(free & (slope > noise * size * norms), slope, -1.0)
            top, second, j, c = better(merit, p, start, o, top, second, j, c)
            at_minimum = tl.where(here & (free == 0), tl.abs(slope) / norms, 0.0)  # active atoms have slope 0 there
            error = tl.maximum(error, tl.max(at_minimum, 0))
        near = PURSUIT & (top - second <= least_lead * length)
        under_way = count < 0
        if top <= 0:
            unsettled = (not PURSUIT) & (error > least_slope * size)
            count = tl.where(unsettled, -1, count)
        elif near | (turn == 64 + 2 * k):
            count = -1
        elif count == k:  # as many atoms as there may be, or as there is room for
            count = tl.where(k < limit, -2, -1)
        else:
            turn += 1
            g = tl.load(G + known * n + j, mask=row < count, other=0.0)
            new, _, share, _ = direction(M, known, g, tl.load(squares + j), j, count, row, ROWS, PART)
            tl.store(M + count * ROWS + row, new)
            known = tl.where(row == count, j, known)
            side = tl.where(row == count, tl.where(c < 0, -1.0, 1.0), side)
            count += 1
            known, side, weights, count, least = settle(
                P, G, squares, M, known, side, weights, penalty, count, n, row, ROWS, PART
            )
            tl.store(atoms + row, known.to(tl.int32), mask=row < count)
            tl.store(x + row, weights, mask=row < count)
            tl.debug_barrier()
            near = share <= least_distance
            under_way = True
            if PURSUIT:
                fitted = tl.load(P + known, mask=row < count, other=0.0) * weights
                square = length * length - tl.sum(tl.where(row < count, fitted, 0.0), 0)
                under_way = (count < limit) & ((square > tol * tol) | (tol < 0))
                near = near | (least <= least_lead * length)
                near = near | (under_way & (square <= least_square * length * length))
            under_way = under_way & (near == 0)
            count = tl.where(near, -1, count)
    tl.store(counts + b, tl.where(length < float("inf"), count, -3))


@triton.jit(do_not_specialize=["k", "steps"])
def match(
    P, G, squares, lengths, tols, limits, atoms, x, counts, n, k, steps, least_square, least_lead,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Matching pursuit of one signal, as `pursue`; `steps` for each atom of its limit, at most."""
    b = tl.program_id(0).to(tl.int64)
    o, row = tl.arange(0, WIDTH), tl.arange(0, ROWS)
    P += b * n
    length, tol, limit = tl.load(lengths + b), tl.load(tols + b), tl.load(limits + b)
    square, change, last = length * length, tol * 0.0, tl.zeros((), tl.int64)
    under_way = ((length > tol) | (tol < 0)) & (limit > 0) & (length > 0) & (length < float("inf"))
    count, step = 0, 0
    weights, known = tl.zeros((ROWS,), P.dtype.element_ty), tl.full((ROWS,), -1, tl.int32)
    while under_way:
        top, second, c, j = length * 0.0 - 1.0, length * 0.0 - 1.0, length * 0.0, tl.zeros((), tl.int64)
        for start in range(0, n, WIDTH):
            here = start + o < n
            p = tl.load(P + start + o, mask=here, other=0.0)
            p -= change * tl.load(G + last * n + start + o, mask=here, other=0.0)
            tl.store(P + start + o, p, mask=here)
            top, second, j, c = better(tl.where(here, tl.abs(p), -1.0), p, start, o, top, second, j, c)
        new = tl.max((known == j).to(tl.int32), 0) == 0
        under_way = count < 0
        if (top - second <= least_lead * length) | (square <= least_square * length * length):
            count = -1
        elif new & (count == k) & (k < limit):
            count = -2
        elif (new & (count == limit)) == 0:
            known = tl.where(new & (row == count), j.to(tl.int32), known)
            count += new.to(tl.int32)
            change, last = c / tl.load(squares + j), j
            weights += tl.where(known == j, change, 0.0)
            square -= c * change
            step += 1
            under_way = (step < steps * limit) & ((square > tol * tol) | (tol < 0))
    tl.store(counts + b, tl.where(length < float("inf"), count, -3))
    tl.store(atoms + b * k + row, known, mask=row < k)
    tl.store(x + b * k + row, weights, mask=row < k)
