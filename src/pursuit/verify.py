"""Verify a proof that no point of a domain has a value of f below L, in exact arithmetic.

    python -m pursuit.verify proof.json --data X.npy y.npy

This file needs Python's standard library alone. NumPy, where it is installed, only saves time, with an error that is
proved. Exit code 0: the claim is proved; 1: it is not; 2: the file is no proof, or it is about other data.

A problem is f and a sum of domains C_b: the hull, the cone or the span of a set of atoms, or its cone at a price for
each unit of weight. For every vector u, by Fenchel's inequality,

    f(x) + prices  >=  <u, x> - f*(u) + prices  >=  -f*(u) + sum_b m_b(u),                                          (1)

    m_b(u) = min over atoms of <u, a>           for a hull,
             0 where all <u, a> = 0             for a span,
             0 where all <u, a> >= 0            for a cone,
             0 where all <u, a> >= -price       for a penalty, and minus infinity elsewhere.

The u of the file is a hint: `bound` makes of it a vector for which all terms are finite, and evaluates (1) in rational
numbers, which every float64 is. Only exp, log and roots are rounded, outwards. Each rule has its proof beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import math
import re
import sys
import zipfile
import zlib
from array import array
from collections.abc import Callable, Sequence
from fractions import Fraction as Q
from itertools import pairwise, repeat
from operator import mul
from typing import Any

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

Vector = tuple[list[int], int]
"""Numerators, and their common denominator, which is positive."""
Reader = Callable[[Any, str], tuple[tuple[int, ...], Any]]
"""(what a proof says of an array, its name) -> (shape, values row by row, or a sparse `Table`)."""
Metric = Callable[[list[int]], list[int]]

BITS = 128
"""Digits of fixed-point numbers: t stands for t / 2^BITS = t / ONE."""
GUARD, ONE, EPS = BITS + 32, 1 << BITS, 2.0**-53
MAX_FILE, MAX_DATA, MAX_DEPTH = 1 << 28, 1 << 36, 16
MAX_SPAN = 96
"""Atoms of spans off which u is projected, and rows of a singular H that is eliminated."""
TOLERANCE = Q(1, 10**6)
"""By how much a point may miss its constraints, relative to their size; the checker says by how much it does."""


class Refused(Exception):
    """The file proves nothing about these data; the message is a sentence."""


class Unproved(Refused):
    """A dual vector proves nothing: the minimum over a set is not bounded."""


def need(condition: object, sentence: str) -> None:
    if not condition:
        raise Refused(sentence)


# ---------------------------------------------------------------- numbers


def exact(values: Sequence[float]) -> Vector:
    """Floats as integers over a power of two."""
    sizes = [abs(v) for v in values if v]
    if not sizes:
        return [0] * len(values), 1
    k = max(0, 53 - math.frexp(min(sizes))[1])  # 2^k v is an integer for all v
    if k <= 1000 and math.frexp(max(sizes))[1] + k <= 1000:
        return list(map(int, map(math.ldexp, values, repeat(k)))), 1 << k
    ratios = [v.as_integer_ratio() for v in values]
    den = max(d for _, d in ratios)
    return [n * (den // d) for n, d in ratios], den


def dot(a: Vector, b: Vector) -> Q:
    return Q(sum(map(mul, a[0], b[0])), a[1] * b[1])


def add(a: Vector, b: Vector, c: Q = Q(1)) -> Vector:
    """a + c b."""
    den = math.lcm(a[1], b[1] * c.denominator)
    p, q = den // a[1], den // (b[1] * c.denominator) * c.numerator
    return [p * s + q * t for s, t in zip(a[0], b[0], strict=True)], den


def scaled(a: Vector, c: Q) -> Vector:
    return [v * c.numerator for v in a[0]], a[1] * c.denominator


def root_up(q: Q) -> Q:
    """An upper bound on the root of q: with an even k, sqrt(q) = sqrt(q 2^k) / 2^(k/2), and isqrt(n) + 1 > sqrt(n)."""
    k = 2 * max(0, BITS - (q.numerator.bit_length() - q.denominator.bit_length()) // 2)
    return Q(math.isqrt((q.numerator << k) // q.denominator) + 1, 1 << k // 2) if q > 0 else Q(0)


def norm_up(a: Vector) -> Q:
    return root_up(dot(a, a))


def sum_up(terms: list[tuple[int, int]]) -> Q:
    """An upper bound on the sum of n / d, exact where all d are one; else in units far below the largest term."""
    if len({d for _, d in terms}) == 1:
        return Q(sum(n for n, _ in terms), terms[0][1])
    k = max(0, GUARD - max((n.bit_length() - d.bit_length() for n, d in terms if n), default=0))
    return Q(sum(-((-n << k) // d) for n, d in terms), 1 << k)


def nearest(q: Q, way: float) -> float:
    """The float next to q on the side of `way`, which is infinite."""
    try:
        v = float(q)
    except OverflowError:
        return way if (q > 0) == (way > 0) else math.copysign(sys.float_info.max, -way)
    return v if Q(v) == q or (Q(v) > q) == (way > 0) else math.nextafter(v, way)


def _atanh(z: int) -> int:
    """atanh(z / 2^GUARD) for |z| <= 2^GUARD / 3 by its series z + z^3/3 + z^5/5 + ...: at most 60 terms, each of which
    `>>` and `//` put below the truth by 2 units of 2^-GUARD at most, and a rest below 1; in all less than 2^8."""
    total, power, k = 0, z, 1
    while power not in (0, -1):
        total += power // k
        power, k = power * (z * z >> GUARD) >> GUARD, k + 2
    return total


LN2 = 2 * _atanh((1 << GUARD) // 3)  # log 2 = 2 atanh(1/3), to 2^10 units


def log(n: int, d: int) -> tuple[int, int]:
    """A lower and an upper bound on ONE times the logarithm of n/d = 2^e a/b, 2/3 <= a/b <= 4/3, where that of a/b is
    2 atanh(z), z = (a - b) / (a + b) between -1/5 and 1/7. A unit by which z is cut counts below 2: atanh' < 1.1."""
    e = n.bit_length() - d.bit_length()
    a, b = (n, d << e) if e >= 0 else (n << -e, d)
    if 3 * a > 4 * b:
        b, e = 2 * b, e + 1
    elif 3 * a < 2 * b:
        a, e = 2 * a, e - 1
    value, error = 2 * _atanh(((a - b) << GUARD) // (a + b)) + e * LN2, (2 + abs(e)) << 10
    return (value - error) >> (GUARD - BITS), ((value + error) >> (GUARD - BITS)) + 1


def exp_up(q: Q) -> int:
    """An upper bound on ONE exp(q). q = n log 2 + r and exp(r) = exp(r / 256)^256: the series of exp(r / 256) has at
    most 40 terms, each cut by less than a unit; eight squarings, each cut by a unit, double the relative error each, to
    less than 2^15 units; n log 2 is known to |n| 2^10 units, and exp(r) <= 2."""
    need(q <= 5000, "The point needs exp of a number above 5000.")
    x = -((-q.numerator << GUARD) // q.denominator) if q > -5000 else -5000 << GUARD
    n = x // LN2
    r, total, term, k = (x - n * LN2) >> 8, 1 << GUARD, 1 << GUARD, 1
    while term:
        term, k = (term * r >> GUARD) // k, k + 1
        total += term
    for _ in range(8):
        total = total * total >> GUARD
    total, shift = total + (1 << 16) + (abs(n) << 12), n - (GUARD - BITS)
    return (total << shift if shift >= 0 else total >> -shift) + 1


def xlogx_up(a: int) -> int:
    """An upper bound on ONE q log q for all q >= 0 in [a, a + 1] / ONE: by convexity it grows there by at most its
    slope at the end, 1 + log q < BITS + (bits of a), over ONE."""
    return -(-a * log(a, ONE)[1] >> BITS) + BITS + a.bit_length() + 1 if a > 0 else 0


# ---------------------------------------------------------------- matrices


class Table:
    """A matrix of float64 numbers: dense, row after row, or sparse, column after column."""

    def __init__(self, shape: tuple[int, int], values: Any, starts: Any = None, rows: Any = None) -> None:
        self.m, self.n, self.values, self.starts, self.rows = *shape, values, starts, rows

    def column(self, j: int) -> tuple[Sequence[int], list[float]]:
        """The rows and values of column j."""
        if self.starts is None:
            return range(self.m), self.values[j :: self.n].tolist()
        part = slice(int(self.starts[j]), int(self.starts[j + 1]))
        return self.rows[part].tolist(), self.values[part].tolist()

    def product(self, j: int, u: Sequence[int]) -> tuple[int, int]:
        """<column j, u>, numerator and denominator."""
        rows, values = self.column(j)
        numbers, den = exact(values)
        return sum(map(mul, numbers, u if self.starts is None else [u[i] for i in rows])), den

    def adjoint(self, u: Sequence[int]) -> Vector:
        """The products with all columns; their denominators are powers of two."""
        products = [self.product(j, u) for j in range(self.n)]
        den = max(d for _, d in products)
        return [n * (den // d) for n, d in products], den

    def extremes(self, u: Vector, magnitude: bool, limit: float | None = None) -> list[tuple[int, Q]]:
        """All j and <column j, u> where this product may be the least (with `magnitude`: the largest in size; with a
        limit: at most that); of the other columns it is proved that theirs is not.

        Divide u by a power of two and round it to floats v. Let x be a column, c the float value of <x, v>. In any
        order of summation |c - <x, v>| <= m EPS / (1 - m EPS) <|x|, |v|> (Higham 2002, 3.5), but for m underflows, and
        |<x, v> - <x, u>| <= 2 EPS <|x|, |v|>; here <|x|, |v|> <= max |x| sum |v|. A factor of 2 covers the rounding of
        `error` itself, as long as all is finite and m EPS < 0.01."""
        numbers, den = u
        if not any(numbers):
            return [(0, Q(0))]
        shift = max(map(abs, numbers)).bit_length() - den.bit_length()
        p, q = (1, den << shift) if shift >= 0 else (1 << -shift, den)
        v = [a * p / q for a in numbers]
        size = sum(map(abs, v))
        if self.starts is None and np is not None:
            X = np.asarray(self.values).reshape(self.m, self.n)
            c, most = (np.array(v) @ X).tolist(), np.maximum(X.max(axis=0), -X.min(axis=0)).tolist()
        else:
            columns = (self.column(j) for j in range(self.n))
            pairs = [
                (sum(a * v[i] for i, a in zip(*x, strict=True)), max(map(abs, x[1]), default=0.0)) for x in columns
            ]
            c, most = [a for a, _ in pairs], [b for _, b in pairs]
        factor, tiny = 4.0 * (self.m + 4) * EPS * size, (self.m + 4) * (1.0 + size) * 2.0**-1021
        error = [factor * b + tiny for b in most]
        merit = [-abs(a) for a in c] if magnitude else c
        best = min(map(float.__add__, merit, error)) if limit is None else math.nextafter(limit, math.inf)
        sure = math.isfinite(sum(error) + sum(map(abs, c))) and self.m * EPS < 0.01
        near = [j for j in range(self.n) if not (sure and merit[j] - error[j] > best)]
        return [(j, Q(*self.product(j, numbers)) / den) for j in near]

    def images(self, b: Vector, across: int) -> Vector:
        """The matrix times b, which has `across` columns, row after row."""
        out: Vector = [0] * (self.m * across), 1
        for place, weight in enumerate(b[0]):
            if weight:
                rows, values = self.column(place // across)
                numbers, den = exact(values)
                column = [0] * (self.m * across)
                for i, a in zip(rows, numbers, strict=True):
                    column[i * across + place % across] = a
                out = add(out, (column, den), Q(weight, b[1]))
        return out


def eliminate(A: list[list[int]], b: list[int]) -> tuple[list[int], int, bool]:
    """(w, d, whole) with A w = d b where that has a solution, for a symmetric A: Gauss and Jordan without fractions
    (Bareiss 1968: all divisions are exact), with positive pivots on the diagonal. What is left has no such pivot;
    A >= 0 if and only if it is 0, since a Schur complement with a diagonal of 0 is >= 0 only then: that is `whole`."""
    rows, left, before, done = [[*row, v] for row, v in zip(A, b, strict=True)], list(range(len(A))), 1, []
    while left:
        i = max(left, key=lambda i: rows[i][i])
        head, pivot = rows[i], rows[i][i]
        if pivot <= 0:
            break
        left.remove(i)
        for row in rows:
            if row is not head:
                c = row[i]
                for j in [*left, len(A)]:
                    row[j] = (pivot * row[j] - c * head[j]) // before
        done.append(i)
        before = pivot
    w = [rows[i][-1] if i in set(done) else 0 for i in range(len(A))]
    return w, before, not any(rows[i][j] for i in left for j in left)


def _factor(A: list[list[float]]) -> list[list[float]] | None:
    """A Cholesky factor in floats, of which nothing is assumed."""
    if np is not None:
        try:
            return np.linalg.cholesky(np.array(A)).tolist()  # type: ignore[no-any-return]
        except np.linalg.LinAlgError:
            return None
    L: list[list[float]] = [[0.0] * len(A) for _ in A]
    for j, row in enumerate(L):
        for i in range(j):
            row[i] = (A[j][i] - sum(map(mul, row[:i], L[i][:i]))) / L[i][i]
        pivot = A[j][j] - sum(map(mul, row[:j], row[:j]))
        if not pivot > 0.0:
            return None
        row[j] = math.sqrt(pivot)
    return L


def least_eigenvalue(A: list[list[int]], den: int, hint: float) -> Q:
    """A lower bound on the eigenvalues of A / den, symmetric. For every R and every shift s write A + s = R R' + E:
    then A >= -s - |E|, where |E| is at most the largest sum of sizes in a row of E. Floats propose s, from the hint on,
    and R; E is exact. All is in units of the power of two above the largest entry."""
    n, unit = len(A), 1 << max(v.bit_length() for row in A for v in row)
    F = [[v / unit for v in row] for row in A]
    guess = float(Q(hint) * den / unit) if math.isfinite(hint) else -2.0 * n
    R, s = None, 2.0 * n  # above the norm of A: there R = 0 will do
    for k in range(2, 24):
        s = min(2.0 * n, -guess + n * EPS * 4.0**k) if R is None else s
        R = R or _factor([[v + s * (i == j) for j, v in enumerate(row)] for i, row in enumerate(F)])
    numbers, d = exact([v for row in R for v in row] if R else [0.0] * n * n)
    rows, (p, q) = [numbers[i * n : i * n + n] for i in range(n)], s.as_integer_ratio()
    scale, sums = math.lcm(unit, d * d, q), [0] * n
    for i in range(n):
        for j in range(i + 1):
            rest = A[i][j] * (scale // unit) - sum(map(mul, rows[i], rows[j])) * (scale // (d * d))
            for k in {i, j}:
                sums[k] += abs(rest + (p * (scale // q) if i == j else 0))
    return -(Q(p, q) + Q(max(sums), scale)) * unit / den


def largest_singular(V: list[list[int]], den: int, hint: float) -> Q:
    """An upper bound on the largest singular value of V / den, the root of the largest eigenvalue of V V'. Long numbers
    are cut: that moves each entry by less than 2^k / den, the value by less than the root of their number times it."""
    k = max(0, max(v.bit_length() for row in V for v in row) - 2 * BITS)
    rows = [[v >> k for v in row] for row in (V if len(V) <= len(V[0]) else zip(*V, strict=True))]
    gram, unit = [[-sum(map(mul, a, b)) for b in rows] for a in rows], Q(1 << k, den)
    low = least_eigenvalue(gram, unit.denominator**2, -hint * hint / unit.numerator**2)
    return root_up(-low) * unit.numerator + (root_up(Q(len(V) * len(V[0]))) * unit if k else 0)


# ---------------------------------------------------------------- objectives


class Loss:
    """f(x) = sum_i s_i phi(x_i; y_i) with s_i > 0, so that f*(u) = sum_i s_i phi*(t_i), t_i = u_i / s_i. Setting the
    derivative of t x - phi(x) to 0 gives phi*, which is infinite where t or q leaves its range:

        least_squares  (x - y)^2 / 2                  phi* = t^2 / 2 + t y
        huber          the same for |x - y| <= w,     phi* = t^2 / 2 + t y, |t| <= w
                       w |x - y| - w^2 / 2 beyond
        logistic       log(1 + e^(-y x)), y = -1, 1   phi* = q log q + (1 - q) log(1 - q), q = -y t, 0 <= q <= 1
        poisson        e^x - y x, y >= 0              phi* = q log q - q, q = t + y >= 0
        multinomial    log sum_k e^(x_k) - <y, x> by  phi* = sum_k q_k log q_k, q = t + y >= 0, sum_k q_k = 1
                       rows, y >= 0, sum_k y_k = 1    (that is, sum_k t_k = 0)

    A ridge adds |x_2|^2 / 2 of `extra` entries below, and |u_2|^2 / 2 to the conjugate."""

    def __init__(self, spec: dict[str, Any], read: Reader) -> None:
        self.kind, self.extra, (shape, y) = spec["kind"], whole(spec, "ridge", 0), read(spec.get("y"), "y")
        need(self.kind in ("least_squares", "huber", "logistic", "poisson", "multinomial"), "f is no known loss.")
        self.discrete = self.kind in ("poisson", "multinomial")
        y, self.width = list(y), Q(number(spec, "width") if self.kind == "huber" else 1)
        if self.kind == "multinomial" and len(shape) == 1:  # labels 0, 1, 2, ...
            need(all(0 <= v == int(v) < 1 << 16 for v in y), "y holds labels that are not 0, 1, 2, and so on.")
            shape = len(y), int(max(y)) + 1
            y = [float(k == v) for v in y for k in range(shape[1])]
        if self.kind == "logistic" and set(y) <= {0.0, 1.0}:
            y = [2.0 * v - 1.0 for v in y]
        k = self.classes = shape[-1] if self.kind == "multinomial" else 1
        weights = spec.get("weights", 1.0)
        s = [float(v) for v in (read(weights, "weights")[1] if not isinstance(weights, float | int) else [weights])]
        s = s * (len(y) // k) if len(s) == 1 else s
        s = [v for v in s for _ in range(k)] if len(s) * k == len(y) else s  # one for each row
        self.n, self.size, self.y, self.s = len(y), len(y) + self.extra, exact(y), exact(s)
        need(len(s) == len(y) and min(s) > 0 and self.width > 0, "The weights of f, or its width, are not positive.")
        need(self.kind != "logistic" or set(y) <= {1.0, -1.0}, "y holds labels that are not -1 and 1, or 0 and 1.")
        need(not self.discrete or min(y) >= 0, "y is negative somewhere.")
        rows = [slice(i, i + k) for i in range(0, len(y), k)] if k > 1 else []
        even = all(sum(self.y[0][row]) == self.y[1] and len(set(s[row])) == 1 for row in rows)
        need(even, "A row of y does not sum to 1, or has several weights.")
        weighted = " with weights" if set(s) != {1.0} else ""
        self.words = f"the {self.kind.replace('_', ' ')} loss of {len(y) // k:,} data{weighted}"
        self.words += f", width {float(self.width)!r}" if self.kind == "huber" else ""
        self.words += f" and half the squares of {self.extra:,} coefficients" if self.extra else ""

    def ratios(self, u: Vector) -> list[tuple[int, int]]:
        """Numerators and denominators of q, or of t where there is none."""
        (U, d), (y, e), (S, r) = u, self.y, self.s
        if self.discrete:
            return [(a * r * e + b * s * d, d * s * e) for a, b, s in zip(U, y, S, strict=False)]
        signs = [-1 if self.kind == "logistic" and b > 0 else 1 for b in y]
        return [(a * r * c, d * s) for a, s, c in zip(U, S, signs, strict=False)]

    def share(self, u: Vector) -> Q:
        """The largest c <= 1 with a finite f* at c u; its range is convex and holds 0."""
        c, k, y = Q(1), self.classes, self.y
        if k > 1 and any(sum(u[0][i : i + k]) for i in range(0, self.n, k)):
            return Q(0)
        for i, (n, m) in enumerate(self.ratios(u)) if self.kind != "least_squares" else ():
            if self.discrete and n < 0:  # q = y + c t
                c = min(c, Q(y[0][i], y[1]) / (Q(y[0][i], y[1]) - Q(n, m)))
            elif self.kind == "logistic" and not 0 <= n <= m:
                c = min(c, Q(m, n) if n > 0 else Q(0))
            elif self.kind == "huber" and abs(n) > m * self.width:
                c = min(c, self.width * m / abs(n))
        return c

    def conjugate_up(self, u: Vector) -> Q | None:
        """An upper bound on f*(u); None where it is infinite."""
        (S, r), tail = self.s, (u[0][self.n :], u[1])
        if self.share(u) < 1:
            return None
        if self.kind in ("least_squares", "huber"):  # s t^2 / 2 = u^2 / (2 s)
            half = sum_up([(a * a * r, 2 * u[1] * u[1] * s) for a, s in zip(u[0], S, strict=False)])
            return half + dot((u[0][: self.n], u[1]), self.y) + dot(tail, tail) / 2
        total = 0
        for (n, m), s in zip(self.ratios(u), S, strict=True):
            a = (n << BITS) // m  # q lies in [a, a + 1] / ONE
            if self.kind == "logistic":
                total += s * (min(0, xlogx_up(a) + xlogx_up(ONE - a - 1)) if 0 < a < ONE - 1 else 0)
            else:
                total += s * (xlogx_up(a) - a if self.kind == "poisson" else min(0, xlogx_up(a)))
        return Q(total, r * ONE) + dot(tail, tail) / 2

    def value_up(self, x: Vector) -> Q:
        """An upper bound on f(x)."""
        (X, d), (y, e), (S, r), k, tail = x, self.y, self.s, self.classes, (x[0][self.n :], x[1])
        away, den = add((X[: self.n], d), self.y, Q(-1))
        if self.kind == "least_squares":
            return Q(sum(s * v * v for s, v in zip(S, away, strict=True)), 2 * r * den * den) + dot(tail, tail) / 2
        total = Q(0)
        for i in range(0, self.n, k):
            row, w = [Q(v, d) for v in X[i : i + k]], self.width
            top, a = max(row), Q(abs(away[i]), den)
            linear = sum((Q(b, e) * v for b, v in zip(y[i : i + k], row, strict=True)), Q(0))
            if self.kind == "huber":
                term = a * a / 2 if a <= w else w * a - w * w / 2
            elif self.kind == "poisson":
                term = Q(exp_up(top), ONE) - linear
            elif self.kind == "logistic":  # log(1 + e^t) = max(t, 0) + log(1 + e^-|t|)
                t = -linear
                term = max(t, Q(0)) + Q(log(ONE + exp_up(-abs(t)), ONE)[1], ONE)
            else:
                term = top + Q(log(sum(exp_up(v - top) for v in row), ONE)[1], ONE) - linear
            total += S[i] * term
        return total / r + dot(tail, tail) / 2

    def repair(self, u: Vector) -> Vector:
        """u moved into the range of f*, entry by entry; then, in rows, the entry of largest q moves the sum to 0."""
        (U, d), (y, e), (S, r), k = u, self.y, self.s, self.classes
        den = math.lcm(d, e * r * self.width.denominator)
        out = [v * (den // d) for v in U]
        for i, (b, s) in enumerate(zip(y, S, strict=True) if self.kind != "least_squares" else ()):
            one = s * (den // r)  # t = 1
            low = {"huber": -int(one * self.width), "logistic": -one if b > 0 else 0}.get(self.kind, -one * b // e)
            high = {"huber": -low, "logistic": 0 if b > 0 else one}.get(self.kind)
            out[i] = max(low, out[i] if high is None else min(high, out[i]))
        for i in range(0, self.n if k > 1 else 0, k):
            j = max(range(i, i + k), key=lambda j: out[j] + S[j] * (den // r) * y[j] // e)
            out[j] -= sum(out[i : i + k])
        return out, den

    def metric(self, u: Vector) -> Metric:
        """A multiple of the Hessian of f where its gradient is u, nearly: 0 where u is at the end of its range, so that
        `orthogonal`, for which any symmetric H >= 0 will do, leaves it there."""
        S, k, one = self.s[0], self.classes, 1 << 24
        q, w = [(n << 24) // m for n, m in self.ratios(u)], int(self.width * one)
        kinds: dict[str, Metric] = {
            "least_squares": lambda q: [1] * len(q),
            "huber": lambda q: [int(abs(a) < w) for a in q],
            "logistic": lambda q: [a * (one - a) for a in q],
        }
        h = list(map(mul, S, kinds.get(self.kind, list)(q)))
        unit = max(h, default=1) or 1

        def apply(v: list[int]) -> list[int]:
            out = list(map(mul, h, v))
            for i in range(0, self.n if k > 1 else 0, k):  # s (sum(q) diag(q) - q q')
                total, mean = sum(q[i : i + k]), sum(map(mul, q[i : i + k], v[i : i + k]))
                out[i : i + k] = [a * (total * b - mean) for a, b in zip(h[i : i + k], v[i : i + k], strict=True)]
            return out + [unit * a for a in v[self.n :]]

        return apply


class Quadratic:
    """f(x) = <x, Hx> / 2 + <c, x>, where H counts by its symmetric half. If H >= mu > 0, then for any z and g = Hz + c
    f(x) >= f(z) + <g, x - z> + mu |x - z|^2 / 2, and by the conjugate of the right side

        f*(u) <= <u, z> - f(z) + |u - g|^2 / (2 mu),

    which holds for mu = 0 at u = g. Of a small singular H: f*(u) = <u - c, w> / 2 where Hw = u - c has a solution."""

    def __init__(self, spec: dict[str, Any], read: Reader) -> None:
        self.c, (shape, values) = exact(list(read(spec.get("c"), "c")[1])), read(spec.get("H"), "H")
        self.mu: Any = None
        n, (H, den) = len(self.c[0]), exact(list(values))
        need(shape == (n, n), "H is not a square matrix with a row for each entry of c.")
        self.H, self.den = [[H[i * n + j] + H[j * n + i] for j in range(n)] for i in range(n)], 2 * den
        self.size, self.words, self.z = n, f"a quadratic function of {n:,} variables", ([0] * n, 1)

    def take(self, z: Vector, hint: float) -> None:
        """Take z and what is hoped of mu; prove mu (-1: nothing is proved)."""
        self.z = z
        if self.mu is None:
            self.mu = least_eigenvalue(self.H, self.den, hint)
        if self.mu <= 0:
            self.mu = Q(0 if self.size <= MAX_SPAN and eliminate(self.H, [0] * self.size)[2] else -1)

    def times(self, v: Vector) -> Vector:
        return [sum(map(mul, row, v[0])) for row in self.H], self.den * v[1]

    def value_up(self, x: Vector) -> Q:
        return dot(x, self.times(x)) / 2 + dot(self.c, x)

    def conjugate_up(self, u: Vector) -> Q | None:
        away = add(u, add(self.times(self.z), self.c), Q(-1))
        apart = dot(away, away)
        if self.mu > 0 or (self.mu == 0 and not apart):
            return dot(u, self.z) - self.value_up(self.z) + (apart / (2 * self.mu) if apart else 0)
        b, d = add(u, self.c, Q(-1))
        w, det, _ = eliminate(self.H, b) if self.mu == 0 else ([], 1, False)
        if not w or any(sum(map(mul, row, w)) != det * v for row, v in zip(self.H, b, strict=True)):
            return None
        return Q(sum(map(mul, b, w)) * self.den, 2 * det * d * d)

    def repair(self, u: Vector) -> Vector:
        return u if self.mu > 0 else add(self.times(self.z), self.c)

    def share(self, u: Vector) -> Q:
        return Q(1)

    def metric(self, u: Vector) -> Metric:
        return lambda v: self.times((v, 1))[0]


# ---------------------------------------------------------------- sets of atoms


def _k_largest(v: list[int], k: int) -> list[int]:
    return sorted(map(abs, v))[-k:]


PLAIN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "basis": (lambda v, k: min(v), lambda v, k: sum(v)),
    "signed": (lambda v, k: -max(map(abs, v)), lambda v, k: sum(map(abs, v))),
    "linf": (lambda v, k: -sum(map(abs, v)), lambda v, k: max(map(abs, v))),
    "ksparse": (lambda v, k: -sum(_k_largest(v, k)), lambda v, k: max(*map(abs, v), Q(sum(map(abs, v)), k))),
    "hypersimplex": (lambda v, k: sum(sorted(v)[:k]), lambda v, k: Q(sum(v), k)),
}
"""Sets whose minimum of <h, .> and whose gauge, the least sum of weights of atoms that make b, are linear in sizes:
e_i; e_i and -e_i; vectors of signs; k signs and zeros (the gauge is max(|b|_inf, |b|_1 / k)); k ones and zeros (a b
with 0 <= b <= sum(b) / k). Of the first and the last, the weights of a point are not negative."""


class Atoms:
    """A set of vectors a with n entries. `lowest(h)` is a lower bound on <h, a> over the atoms; `gauge(b)` an upper
    bound on their weights in b; sets without a gauge have `miss(b)`, by how much b misses constraints of the hull."""

    def __init__(self, spec: dict[str, Any], read: Reader) -> None:
        self.kind, self.read, self.spec = spec["kind"], read, spec
        self.symmetric = self.kind not in ("basis", "hypersimplex", "spectrahedron", "trusted", *CONSTRAINED)
        self.gauged = self.kind not in ("trusted", *CONSTRAINED)
        self.n = whole(spec, "n", 0)
        self.k = whole(spec, "k", 1)
        self.ends, self.A = [bounds(spec, name, self.n) for name in ("lower", "upper")], None
        if self.kind == "polytope":
            self.A, self.b = matrix(read, spec["A"], "A"), self.numbers(spec, "b")
            self.inequalities = whole(spec, "inequalities")
            need((self.A.m, self.A.n) == (len(self.b[0]), self.n), "The rows of a polytope are of other sizes.")
        elif self.kind == "groups":
            self.groups, (w, d) = spec["groups"], self.numbers(spec, "weights")
            need(sorted(i for g in self.groups for i in g) == list(range(self.n)), "The groups are no partition.")
            need(len(w) == len(self.groups) and min(w) > 0, "The weights of groups are not positive, one for each.")
            self.weights = [Q(v, d) for v in w]
        elif self.kind in ("transport", "permutations"):
            one = [1] * whole(spec, "size", 0), 1
            self.a, self.b = (
                (self.numbers(spec, "a"), self.numbers(spec, "b")) if self.kind == "transport" else (one, one)
            )
            self.n = len(self.a[0]) * len(self.b[0])
        elif self.kind == "flows":
            self.edges = list(zip(spec["edges"][::2], spec["edges"][1::2], strict=True))
            self.trips = [(o, t, Q(as_float(v))) for o, t, v in spec["trips"]]
            self.nodes = whole(spec, "nodes")
            named = [i for e in self.edges for i in e] + [i for o, t, _ in self.trips for i in (o, t)]
            need(set(named) <= set(range(self.nodes)) and len(self.edges) == self.n, "Edges or trips are of no node.")
            need(all(v >= 0 for *_, v in self.trips), "A trip is negative.")
        elif self.kind in MATRICES:
            self.shape = m, n = whole(spec["shape"], 0), whole(spec["shape"], 1)
            places = (
                zip(spec["rows"], spec["columns"], strict=True)
                if "rows" in spec
                else ((i, j) for i in range(m) for j in range(n))
            )
            self.places = list(places)
            need(all(0 <= i < m and 0 <= j < n for i, j in self.places), "Entries are outside the matrix.")
            need(len(set(self.places)) == len(self.places), "Entries are named twice.")
            need(m == n or self.kind == "rank_one", "Symmetric matrices are not square.")
            self.n = len(self.places)
        empty = any(None not in pair and pair[0] > pair[1] for pair in zip(*self.ends, strict=True))
        need(not empty, "The bounds of a set leave it empty.")
        need(1 <= self.k <= self.n and (self.kind in KINDS), "The set is not known, or empty.")

    def numbers(self, spec: dict[str, Any], name: str) -> Vector:
        return exact([float(v) for v in self.read(spec[name], name)[1]])

    def hint(self, hint: dict[str, Any], name: str, n: int) -> Vector:
        v = self.numbers(hint, name) if name in hint else ([0] * n, 1)
        need(len(v[0]) == n, f"The hint {name} is not one number for each row or node.")
        return v

    def norms(self, h: Vector) -> list[Q]:
        """w_G |h_G| for all groups G."""
        return [root_up(Q(sum(h[0][i] ** 2 for i in g), h[1] ** 2)) for g in self.groups]

    def lowest(self, h: Vector, hint: dict[str, Any]) -> Q:
        """Unit vectors: -|h| by Cauchy and Schwarz; with k nonzeros: on the k largest entries; vectors of norm 1 / w_G
        on a group G: -|h_G| / w_G. The others below."""
        v, d = h
        if self.kind in PLAIN:
            return Q(PLAIN[self.kind][0](v, self.k), d)
        if self.kind == "l2":
            return -norm_up(h)
        if self.kind == "ksupport":
            return -norm_up((_k_largest(v, self.k), d))
        if self.kind == "groups":
            return -max(a / w for a, w in zip(self.norms(h), self.weights, strict=True))
        if self.kind == "trusted":
            return Q(number(hint, "lowest") if any(v) else 0)
        return {"flows": self.flows, "transport": self.plans, "permutations": self.plans}.get(
            self.kind, self.matrices if self.kind in MATRICES else self.rows
        )(h, hint)

    def matrices(self, h: Vector, hint: dict[str, Any]) -> Q:
        """l r' with unit vectors l and r, all entries or some: minus the largest singular value of h, with zeros at the
        other entries. l l': the least eigenvalue of (h + h') / 2; l l' and -l l': minus the largest in size."""
        (m, n), (values, d) = self.shape, h
        V = [[0] * n for _ in range(m)]
        for v, (i, j) in zip(values, self.places, strict=True):
            V[i][j] = v
        sigma = number(hint, "sigma", 0.0)
        if self.kind == "rank_one":
            return -largest_singular(V, d, sigma)
        even = [[V[i][j] + V[j][i] for j in range(n)] for i in range(n)]
        low = least_eigenvalue(even, 2 * d, number(hint, "least", 0.0))
        odd = [[-v for v in row] for row in even]
        return low if self.kind == "spectrahedron" else min(low, least_eigenvalue(odd, 2 * d, -sigma))

    def rows(self, h: Vector, hint: dict[str, Any]) -> Q:
        """A_ub x <= b_ub, A_eq x = b_eq and bounds: for all y, at most 0 on the inequalities, <h, x> = <y, Ax> +
        <h - A'y, x> >= <y, b> + the least of <h - A'y, x> between the bounds. Entries without an upper bound need
        h - A'y >= 0, which y + eps y' has if -A'y' > 0 there (`bounding`). Integers may be left out: the set grows."""
        if self.A is not None:
            y, more = (self.multipliers(hint, name) for name in ("y", "bounding"))
            rest, push = (add(v, self.times(y), Q(-1)) for v, y in ((h, y), (([0] * self.n, 1), more)))
            wrong = [(v, p) for v, p, end in zip(rest[0], push[0], self.ends[1], strict=True) if v < 0 and end is None]
            eps = max((Q(-v * push[1], p * rest[1]) for v, p in wrong if p > 0), default=Q(0))
            h, total = add(rest, push, eps), dot(add(y, more, eps), self.b)
        else:
            total = Q(0)
        for v, low, high in zip(h[0], *self.ends, strict=True):
            end = low if v > 0 else high
            if v and end is None:
                raise Unproved("An entry without a bound has a cost of the wrong sign.")
            total += Q(v, h[1]) * (end or 0)
        return total

    def multipliers(self, hint: dict[str, Any], name: str) -> Vector:
        y, d = self.hint(hint, name, len(self.b[0]))
        return [min(v, 0) if i < self.inequalities else v for i, v in enumerate(y)], d

    def times(self, y: Vector) -> Vector:
        products, d = self.A.adjoint(y[0])  # type: ignore[union-attr]
        return products, d * y[1]

    def plans(self, h: Vector, hint: dict[str, Any]) -> Q:
        """X >= 0 with row sums a and column sums b: if alpha_i + beta_j <= h_ij for all i, j, then <h, X> is at least
        <a, alpha> + <b, beta>. alpha is a hint, beta_j = min_i (h_ij - alpha_i)."""
        n, alpha = len(self.b[0]), self.hint(hint, "alpha", len(self.a[0]))
        left, d = add(h, ([a for a in alpha[0] for _ in range(n)], alpha[1]), Q(-1))
        return dot(self.a, alpha) + dot(self.b, ([min(left[j::n]) for j in range(n)], d))

    def flows(self, h: Vector, hint: dict[str, Any]) -> Q:
        """Amounts D_t go from o to t over routes without cycles. For all potentials p a route costs sum h_e =
        p_t - p_o + the sum of h_e - p_j + p_i over its edges e = (i, j), each of which it uses once: at least
        p_t - p_o + sum over all edges of min(0, h_e - p_j + p_i)."""
        origins, total = sorted({o for o, _, _ in self.trips}), Q(0)
        potentials, d = self.hint(hint, "potentials", len(origins) * self.nodes)
        for k, origin in enumerate(origins):
            p = potentials[k * self.nodes : (k + 1) * self.nodes]
            costs, e = add(h, ([p[j] - p[i] for i, j in self.edges], d), Q(-1))
            below = Q(sum(min(0, c) for c in costs), e)
            total += sum(v * (Q(p[t] - p[o], d) + below) for o, t, v in self.trips if o == origin)
        return total

    def gauge(self, b: Vector) -> Q:
        v, d = b
        need(self.symmetric or min(v) >= 0, "A weight of the point is negative.")
        if self.kind in PLAIN:
            total = Q(PLAIN[self.kind][1](v, self.k)) / d
            need(self.kind != "hypersimplex" or max(v) <= total * d, "The point is outside its hull.")
            return total
        return (
            norm_up(b)
            if self.kind == "l2"
            else sum((a * w for a, w in zip(self.norms(b), self.weights, strict=True)), Q(0))
        )

    def clipped(self, b: Vector) -> Vector:
        """b moved between the bounds of a box."""
        if self.kind != "box":
            return b
        inside = [max(low or 0, min(high or 0, Q(v, b[1]))) for v, low, high in zip(b[0], *self.ends, strict=True)]
        den = math.lcm(*(q.denominator for q in inside))
        return [int(q * den) for q in inside], den

    def miss(self, b: Vector) -> Q:
        """The largest violation of a constraint, over the largest number in them or in b (of flows: what comes to
        a node but does not leave; the single trips cannot be read off their sum)."""
        v, d = b
        over, sizes = [Q(0)], [Q(max(map(abs, v)), d)]
        if self.kind in ("box", "polytope"):
            over += [low - Q(a, d) for a, low in zip(v, self.ends[0], strict=True) if low is not None]
            over += [Q(a, d) - high for a, high in zip(v, self.ends[1], strict=True) if high is not None]
        else:
            over += [Q(-min(v), d)]
        pairs: list[tuple[Vector, Vector]] = []
        if self.kind == "polytope":
            rows, e = add(self.A.images(b, 1), self.b, Q(-1))  # type: ignore[union-attr]
            pairs = [(([a if i >= self.inequalities else max(a, 0) for i, a in enumerate(rows)], e), self.b)]
        elif self.kind in ("transport", "permutations"):
            n = len(self.b[0])
            sums = ([sum(v[i : i + n]) for i in range(0, self.n, n)], d), ([sum(v[j::n]) for j in range(n)], d)
            pairs = [(add(given, got, Q(-1)), given) for given, got in zip((self.a, self.b), sums, strict=True)]
        elif self.kind == "flows":
            surplus = {i: Q(0) for i in range(self.nodes)}
            steps = [(o, t, -a) for o, t, a in self.trips] + [(*e, Q(a, d)) for e, a in zip(self.edges, v, strict=True)]
            for i, j, a in steps:
                surplus[i], surplus[j] = surplus[i] + a, surplus[j] - a
            over, sizes = [*over, *map(abs, surplus.values())], [*sizes, *(a for *_, a in self.trips)]
        over += [Q(max(map(abs, x[0])), x[1]) for x, _ in pairs]
        sizes += [Q(max(map(abs, x[0])), x[1]) for _, x in pairs]
        return max(over) / (max(sizes) or 1)


MATRICES = ("rank_one", "symmetric_rank_one", "spectrahedron")
CONSTRAINED = ("box", "polytope", "transport", "permutations", "flows")
KINDS = (*PLAIN, *MATRICES, *CONSTRAINED, "l2", "ksupport", "groups", "trusted")


class Part:
    """A summand of the domain: the hull, cone or span of the atoms scale * M a, where a are those of a set, or their
    cone at a price. With `columns` K, a is a matrix of K columns, and so is M a; with `below`, that number times a
    stands under M a; with `start`, all this are the entries start, start + 1, ... of x, and the others are 0."""

    def __init__(self, spec: dict[str, Any], read: Reader, size: int) -> None:
        self.kind, self.atoms, self.size = spec["kind"], Atoms(spec["set"], read), size
        self.scale, self.price = Q(number(spec, "scale", 1.0)), Q(number(spec, "price", 0.0))
        self.rho = Q(number(spec, "rho")) if "rho" in spec else None
        self.below, self.across, self.start = (
            Q(number(spec, "below", 0.0)),
            whole(spec, "columns", 1),
            whole(spec, "start", 0),
        )
        self.map, A = matrix(read, spec["map"], "map") if "map" in spec else None, self.atoms
        need(self.kind in ("hull", "cone", "span", "penalty"), "A summand is no hull, cone, span or penalty.")
        need((self.price > 0) == (self.kind == "penalty") and self.price >= 0, "A price is not that of a penalty.")
        need(
            self.scale and (self.rho is None or (self.rho > 0 and self.kind in ("cone", "span"))), "A factor is wrong."
        )
        need(self.map is None or self.map.n * self.across == A.n, "A matrix has not a column for each entry.")
        self.middle = self.start + (A.n if self.map is None else self.map.m * self.across)
        self.stop = self.middle + (A.n if self.below else 0)
        need(self.stop <= size and ("start" in spec or self.stop == size), "Atoms and f differ in size.")
        need(A.gauged or self.kind == "hull", f"Only the hull of a set {A.kind} has a rule.")
        self.linear = self.rho is None and (self.kind == "span" or (self.kind == "cone" and A.symmetric))
        self.conic = self.rho is None and self.kind == "cone" and not A.symmetric
        need(not self.conic or A.kind in ("basis", "hypersimplex"), f"The cone of a set {A.kind} has no rule.")
        need(not self.conic or A.kind == "basis", f"The cone of a set {A.kind} has no rule.")
        self.listed = self.map is not None and self.across == 1 and not self.below and A.kind in ("basis", "signed")
        name = {"penalty": f"{float(self.price)!r} times the norm given by"}.get(self.kind, f"the {self.kind} of")
        given = [
            key if isinstance(v, list) else f"{key} {v!r}" for key, v in A.spec.items() if key not in ("kind", "n")
        ]
        given = [text for text in given if not text.endswith("}")]  # arrays are named below
        of = f" ({', '.join(given)} of the proof)" if given else ""
        self.words = f"{name} {float(self.scale)!r} times the set {A.kind}{of} of {A.n:,} entries"
        self.words += f", seen through a matrix of {self.map.m:,} rows" if self.map is not None else ""
        self.words += "" if self.rho is None else f", weights of at most {float(self.rho)!r} in sum being assumed"

    def adjoint(self, u: Vector) -> Vector:
        """The vector h with <h, a> = <u, scale M a>."""
        h = u[0][self.start : self.middle], u[1]
        if self.map is not None:
            columns = [self.map.adjoint(h[0][k :: self.across]) for k in range(self.across)]
            den = max(d for _, d in columns)
            rows = zip(*([v * (den // d) for v in values] for values, d in columns), strict=True)
            h = [v for row in rows for v in row], den * u[1]
        h = add(h, (u[0][self.middle : self.stop], u[1]), self.below) if self.below else h
        return scaled(h, self.scale)

    def image(self, b: Vector) -> Vector:
        """scale M b, as an entry of the sum."""
        top = b if self.map is None else self.map.images(b, self.across)
        zeros = [0] * self.start, [0] * (self.size - self.stop)
        under = [0] * (self.middle - self.start) + b[0] if self.below else [], b[1]
        wide = [*top[0], *([0] * (self.stop - self.middle))], top[1]
        values, d = add(wide, under, self.below) if self.below else wide
        return scaled(([*zeros[0], *values, *zeros[1]], d), self.scale)

    def seen(self, u: Vector) -> Vector:
        return scaled((u[0][self.start : self.stop], u[1]), self.scale)

    def unit(self, i: int) -> Vector:
        return self.image(([int(i == j) for j in range(self.atoms.n)], 1))

    def lowest(self, u: Vector, hint: dict[str, Any]) -> Q:
        """A lower bound on <u, scale M a>."""
        if not self.listed:
            return self.atoms.lowest(self.adjoint(u), hint)
        found = self.map.extremes(self.seen(u), self.atoms.symmetric)  # type: ignore[union-attr]
        return min(-abs(a) if self.atoms.symmetric else a for _, a in found)

    def negative(self, u: Vector) -> dict[int, Q]:
        """The products with atoms e_i that are negative."""
        h, d = ([], 1) if self.listed else self.adjoint(u)
        found = [(i, Q(a, d)) for i, a in enumerate(h)]
        if self.listed:
            found = self.map.extremes(self.seen(u), False, 0.0)  # type: ignore[union-attr]
        return {i: a for i, a in found if a < 0}

    def point(self, spec: dict[str, Any], read: Reader) -> tuple[Vector, Q, Q]:
        """The combination of the atoms, moved exactly into the domain, its weight, and by how much it misses the
        constraints of sets for which this is not possible."""
        A, size, (weights, e) = self.atoms, Q(0), exact([float(v) for v in read(spec["weights"], "weights")[1]])
        sums: dict[int, Q] = {}
        for a, v in zip(spec["atoms"], weights, strict=True):
            w = Q(v, e)
            need(w >= 0 or A.symmetric or self.kind == "span", "A weight of the point is negative.")
            if A.kind in MATRICES:
                (left, d), (right, c) = A.numbers(a, "left"), A.numbers(a, "right")
                need((len(left), len(right)) == A.shape, "A factor of the point has the wrong length.")
                need(A.kind == "rank_one" or a["left"] == a["right"], "The factors of a symmetric matrix differ.")
                places, values, norm = range(A.n), ([left[i] * right[j] for i, j in A.places], d * c), Q(1)
                squares = dot((left, d), (left, d)), dot((right, c), (right, c))
                norm = squares[0] if A.kind == "spectrahedron" else root_up(squares[0] * squares[1])
            else:
                values, norm = A.numbers(a, "values"), Q(0)
                places = a.get("at", range(A.n))
                inside = len(set(places)) == len(places) and all(0 <= i < A.n for i in places)
                need(inside, "An atom of the point has entries outside its set, or one twice.")
                if A.kind == "ksupport":
                    need(sum(map(bool, values[0])) <= A.k, "An atom of the point has more than k nonzeros.")
                    norm = norm_up(values)
            size += abs(w) * norm
            for i, b in zip(places, values[0], strict=True):
                sums[i] = sums.get(i, Q(0)) + w * Q(b, values[1])
        den = math.lcm(1, *(v.denominator for v in sums.values()))
        point: Vector = [int(sums.get(i, 0) * den) for i in range(A.n)], den
        if self.kind == "span":
            return point, Q(0), Q(0)
        by_atoms = A.kind in MATRICES or A.kind == "ksupport"
        size = size if by_atoms else A.gauge(point) if A.gauged else Q(sum(weights), e)
        if self.kind != "hull" or (size <= 1 and A.symmetric):
            return point, size, Q(0)
        need(abs(size - 1) <= TOLERANCE, f"The weights of the point sum to {float(size)!r} in a hull.")
        point = A.clipped(scaled(point, 1 / size))
        missed = A.miss(point) if A.kind in CONSTRAINED else Q(0)
        need(missed <= TOLERANCE, f"The point misses the constraints of its set by {float(missed):.2g}.")
        return point, Q(1), missed


# ---------------------------------------------------------------- the proof


class Problem:
    """f and the summands of its domain."""

    def __init__(self, spec: dict[str, Any], read: Reader) -> None:
        f, self.read = spec["f"], read
        self.f: Any = (Quadratic if f["kind"] == "quadratic" else Loss)(f, read)
        self.parts = [Part(part, read, self.f.size) for part in spec["domain"]]
        self.trusted = [part.words for part in self.parts if part.atoms.kind == "trusted"]

    def vector(self, spec: Any, name: str) -> Vector:
        v = exact([float(v) for v in self.read(spec, name)[1]])
        need(len(v[0]) == self.f.size, f"{name} has another length than x.")
        return v


def orthogonal(u: Vector, B: list[list[int]], metric: Metric) -> Vector | None:
    """u - H B w with (B'HB) w = B'u, so that B'(u - H B w) = 0, for a symmetric H >= 0; None where there is none."""
    products = [sum(map(mul, b, u[0])) for b in B]
    if not any(products):
        return u
    HB = [metric(b) for b in B]
    w, det, _ = eliminate([[sum(map(mul, b, c)) for c in HB] for b in B], products)
    out = [v * det for v in u[0]]
    for c, column in zip(w, HB, strict=True):
        out = [v - c * a for v, a in zip(out, column, strict=True)] if c else out
    common = math.gcd(det * u[1], *out)
    out = [v // common for v in out]
    return None if any(sum(map(mul, b, out)) for b in B) else (out, det * u[1] // common)


def prove(problem: Problem, dual: Any) -> Q | None:
    """The best lower bound that (1) proves at the vector of `dual` (or several) and at 0; None: minus infinity."""
    duals = [*(dual if isinstance(dual, list) else [dual]), {"u": [0.0] * problem.f.size}]
    found = []
    for each in duals:
        with contextlib.suppress(Unproved):
            found.append(bound(problem, each))
    return max((low for low in found if low is not None), default=None)


def bound(problem: Problem, dual: dict[str, Any]) -> Q | None:
    """(1) at a vector near dual["u"], made feasible in this order: the range of f*; spans and cones, by linear steps; a
    factor c <= 1 for penalties and for what has left the range of f*. All conditions hold at c u if they hold at u."""
    f, parts, hints = problem.f, problem.parts, dual.get("hints") or [{} for _ in problem.parts]
    u = given = problem.vector(dual["u"], "u")
    zero: Vector = [0] * f.size, 1
    if isinstance(f, Quadratic):
        f.take(problem.vector(dual["z"], "z") if "z" in dual else zero, number(dual, "mu", 0.0))
    u = f.repair(u)
    linear, cones = [p for p in parts if p.linear], [p for p in parts if p.conic]
    small = sum(p.atoms.n for p in linear) <= MAX_SPAN
    B = [p.unit(i)[0] for p in linear for i in range(p.atoms.n)] if small else []
    if not small and any(any(p.adjoint(u)[0]) for p in linear):
        u = zero
    if B:
        tried = (orthogonal(u, B, metric) for metric in (f.metric(u), list))
        u = next((v for v in tried if v is not None and f.share(v) > 0), zero)
    below = [p.negative(u) for p in cones]
    if any(below):  # u + eps v with <v, a> > 0 has no negative product with any atom a of the cones
        v = problem.vector(dual["v"], "v") if "v" in dual else zero
        v = orthogonal(v, B, list) or zero
        pairs = [(a, dot(p.unit(i), v)) for p, found in zip(cones, below, strict=True) for i, a in found.items()]
        u = add(u, v, max((-a / push for a, push in pairs if push > 0), default=Q(0)))
        if any(p.negative(u) for p in cones):
            return None
    if problem.trusted and any(add(u, given, Q(-1))[0]):  # its oracle was not asked at u
        return None
    share, total = f.share(u), Q(0)
    for p, hint in zip(parts, hints, strict=True):
        if p.linear or p.conic:
            continue
        low = p.lowest(u, hint)
        if p.kind == "span" and not p.atoms.symmetric:  # with rho, over the atoms and their negatives
            low = min(low, p.lowest(scaled(u, Q(-1)), hint))
        if p.kind == "penalty":
            share = min(share, p.price / -low) if -low > p.price else share
        else:
            total += low if p.rho is None else p.rho * min(Q(0), low)
    conjugate = f.conjugate_up(u if share == 1 else scaled(u, share))
    return None if conjugate is None else share * total - conjugate


def value(problem: Problem, point: Any) -> tuple[Q, Q]:
    """An upper bound on f and the prices at the point, moved into the domain, and by how much it misses it."""
    x: Vector = [0] * problem.f.size, 1
    cost = missed = Q(0)
    for p, spec in zip(problem.parts, point, strict=True):
        b, size, moved = p.point(spec, problem.read)
        x, cost, missed = add(x, p.image(b)), cost + p.price * size, max(missed, moved)
    return problem.f.value_up(x) + cost, missed


# ---------------------------------------------------------------- files


def as_float(v: Any) -> float:
    if type(v) not in (float, int) or not abs(v) <= sys.float_info.max or float(v) != v:
        raise Refused(f"{v!r:.40} is not a finite float64 number.")
    return float(v)


def number(spec: dict[str, Any], name: str, default: float | None = None) -> float:
    return as_float(spec.get(name, default))


def whole(spec: Any, name: Any, default: int | None = None) -> int:
    v: Any = spec.get(name, default) if isinstance(spec, dict) else spec[name]
    need(type(v) is int and 0 <= v < 1 << 40, f"The entry {name!r} is not a whole number of at least 0.")
    return int(v)


def bounds(spec: dict[str, Any], name: str, n: int) -> list[Q | None]:
    values = [None if v is None else Q(as_float(v)) for v in spec.get(name, [])]
    need(len(values) == n or name not in spec, f"The entry {name!r} is not one bound for each entry.")
    return values


def matrix(read: Reader, spec: Any, name: str) -> Table:
    shape, values = read(spec, name)
    return values if isinstance(values, Table) else Table((math.prod(shape[:-1]), shape[-1]), values)


def reader(data: dict[str, tuple[str, tuple[int, ...], Any]], used: list[str]) -> Reader:
    """Arrays are lists of numbers in the proof, or the user's data, found by their hash."""

    def read(spec: Any, name: str) -> tuple[tuple[int, ...], Any]:
        if isinstance(spec, list):
            used.append(f"{name} is the list of {len(spec):,} numbers in the proof itself.")
            return (len(spec),), [as_float(v) for v in spec]
        need(isinstance(spec, dict), f"The array {name} is missing.")
        key, shape = str(spec.get("sha256")), spec.get("shape")
        need(key in data, f"The proof is about other data: no file holds its array {name} (sha256 {key[:12]}).")
        file, found, values = data[key]
        need(list(found) == shape, f"The array {name} has the shape {list(found)} in {file}, not {shape!r:.40}.")
        used.append(f"{name} is the array in {file}.")
        return found, values

    return read


TYPES = {
    "f8": "d",
    "f4": "f",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
    "b1": "B",
}
HEADER = re.compile(rb"\{'descr': '[<|]([fiub]\d)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), ?\}\s*")


def read_npy(file: Any, name: str) -> tuple[tuple[int, ...], array[Any]]:
    """An array in NumPy's format, row by row."""
    head = file.read(8)
    need(head[:6] == b"\x93NUMPY" and head[6:7] in b"\1\2\3", f"{name} is not in NumPy's format (.npy).")
    size = int.from_bytes(file.read(2 if head[6] == 1 else 4), "little")
    match = HEADER.fullmatch(file.read(min(size, 1 << 16)))
    if match is None or match[1].decode() not in TYPES:
        raise Refused(f"{name} is not an array of real numbers or integers, least byte first.")
    shape, values = tuple(map(int, match[3].replace(b",", b" ").split())), array(TYPES[match[1].decode()])
    count = math.prod(shape)
    need(0 < count * values.itemsize <= MAX_DATA, f"{name} is empty or too large.")
    values.frombytes(file.read(count * values.itemsize))
    need(len(values) == count, f"{name} ends too early.")
    if match[2] == b"True" and len(shape) > 1:
        need(len(shape) == 2, f"{name} is in Fortran's order with more than two axes; save it in C's order.")
        m, turned = shape[0], array(values.typecode)
        for i in range(m):
            turned.extend(values[i::m])
        values = turned
    return shape, values


def read_sparse(path: str) -> tuple[tuple[int, ...], Table]:
    """A matrix by columns, as scipy.sparse.save_npz writes a csc_array."""
    with zipfile.ZipFile(path) as archive:
        need(sum(item.file_size for item in archive.infolist()) <= MAX_DATA, f"{path} unpacks to too much.")
        need(b"csc" in archive.read("format.npy")[-8:], f"{path} is not a matrix by columns: save a csc_array.")
        names = ("data", "indices", "indptr", "shape")
        values, rows, starts, (m, n) = (read_npy(io.BytesIO(archive.read(f"{v}.npy")), path)[1] for v in names)
    fits = starts[0] == 0 and len(starts) == n + 1 and starts[-1] == len(rows) == len(values) and m * n > 0
    fits = fits and all(a <= b for a, b in pairwise(starts)) and 0 <= min(rows, default=0) <= max(rows, default=0) < m
    parts = [rows[a:b] for a, b in pairwise(starts)] if fits else [array("q", [0, 0])]
    need(all(a < b for p in parts for a, b in pairwise(p)), f"{path} is not sorted, or names an entry twice.")
    return (m, n), Table((m, n), array("d", values), array("q", starts), array("q", rows))


def digest(values: Any) -> str:
    """The sha256 of the numbers as float64, row by row; of a sparse matrix of its starts, rows (int64) and numbers."""
    total = hashlib.sha256()
    for part in (values.starts, values.rows, values.values) if isinstance(values, Table) else (values,):
        total.update(memoryview(part))
    return total.hexdigest()


def load(path: str) -> tuple[str, tuple[int, ...], Any]:
    """A file of the user: its numbers as float64, row by row, or as a sparse table."""
    values: Any
    if path.endswith(".npz"):
        shape, table = read_sparse(path)
        values, numbers = table, table.values
    else:
        with open(path, "rb") as file:
            shape, values = read_npy(file, path)
        safe = values.typecode in "df" or (max(values) <= 1 << 53 and min(values) >= -(1 << 53))
        need(safe, f"{path} holds integers that are no float64 numbers.")
        numbers = values = values if values.typecode == "d" else array("d", values)
    finite = np.isfinite(np.frombuffer(numbers)).all() if np is not None else all(map(math.isfinite, numbers))
    need(finite, f"{path} holds a number that is not finite.")
    return path, shape, values


def parse(path: str) -> dict[str, Any]:
    """The proof, a JSON object, of limited size and depth."""
    with open(path, "rb") as file:
        text = file.read(MAX_FILE + 1)
    need(len(text) <= MAX_FILE, f"{path} is longer than {MAX_FILE:,} bytes.")
    depth = 0
    for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", text)):
        depth += 1 if bracket in b"[{" else -1
        need(depth <= MAX_DEPTH, f"{path} is nested more than {MAX_DEPTH} deep.")
    proof = json.loads(text)
    right = isinstance(proof, dict) and (proof.get("format"), proof.get("version")) == ("pursuit-proof", 1)
    need(right, f"{path} is not a proof in the format 'pursuit-proof', version 1.")
    return proof  # type: ignore[no-any-return]


def check(path: str, files: Sequence[str]) -> tuple[bool, str]:
    """Whether the claim of a file is proved, and what is, in words."""
    proof, data, used = parse(path), {}, list[str]()
    for file in files:
        loaded = load(file)
        data[digest(loaded[2])] = loaded
    problem = Problem(proof, reader(data, used))
    arrays = used.copy()  # those of the problem; what is read from here on are hints and the point
    low, (high, missed) = prove(problem, proof["dual"]), value(problem, proof["point"])
    lower, upper = number(proof["claim"], "lower"), number(proof["claim"], "value")
    holds = low is not None and low >= Q(lower) and high <= Q(upper)
    proved, top = -math.inf if low is None else nearest(low, -math.inf), nearest(high, math.inf)
    words = [f"Taken on trust: what the oracle says of {p}, and that the point is in it." for p in problem.trusted]
    words += [f"f is {problem.f.words}. x lies in {', plus '.join(p.words for p in problem.parts)}."]
    words += arrays
    words += [f"Proved: no such x has a value below {proved!r}; the point of the file has at most {top!r}."]
    near = f"That point misses constraints by {float(missed):.1g} of their size: it is near the domain, not in it."
    words += [near] if missed else []
    words += [f"The claim, {lower!r} and {upper!r}, is {'proved' if holds else 'NOT PROVED'}."]
    return holds, "\n".join(words)


MISTAKES: tuple[type[Exception], ...] = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError)
MISTAKES = (
    *MISTAKES,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)  # what wrong files raise


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="pursuit.verify", description="Verify a proof of a lower bound, exactly.")
    parser.add_argument("proof")
    parser.add_argument("--data", nargs="*", default=[], metavar="FILE", help="the arrays: .npy, or sparse .npz")
    options = parser.parse_args(arguments)
    try:
        need(sys.byteorder == "little", "This machine stores the largest byte first, which this checker does not read.")
        holds, words = check(options.proof, options.data)
    except (Refused, OSError) as why:
        print(f"refused: {why}", file=sys.stderr)
        return 2
    except MISTAKES as why:
        print(f"refused: the file is not a proof ({type(why).__name__}: {str(why)[:80]}).", file=sys.stderr)
        return 2
    print(words)
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
