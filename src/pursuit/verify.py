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
numbers, which every float64 is. Only exp, log and roots are rounded, upwards. Each rule has its proof beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import decimal
import hashlib
import io
import json
import math
import re
import sys
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction as Q
from itertools import pairwise, product
from operator import mul
from typing import Any

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

Spec = dict[str, Any]
"""An object of the proof, in JSON."""
Reader = Callable[[Any, str], tuple[tuple[int, ...], Any]]
"""(what a proof says of an array, its name) -> (shape, values row by row, or a sparse `Table`)."""
Metric = Callable[[list[int]], list[int]]

CEILING = decimal.Context(prec=50, rounding=decimal.ROUND_CEILING, Emin=-20_000)
DIGITS, EPS = 160, 2.0**-53
"""Binary digits of numbers that are rounded outwards, and half a unit in the last place of a float."""
MAX_FILE, MAX_DATA = 1 << 28, 1 << 36
MAX_SPAN = 96
"""Atoms of spans off which u is projected, and rows of a singular H that is eliminated."""
TOLERANCE = Q(1, 10**6)
"""By how much a point may miss its constraints, relative to their size; the checker says by how much it does."""


class Refused(ValueError):
    """The file proves nothing about these data; the message is a sentence."""


class Unproved(Refused):
    """A dual vector proves nothing: the minimum over a set is not bounded."""


def need(condition: object, sentence: str) -> None:
    if not condition:
        raise Refused(sentence)


# ---------------------------------------------------------------- numbers


class Vector:
    """Rational numbers over one denominator, which is positive."""

    def __init__(self, numbers: list[int], den: int = 1) -> None:
        self.numbers, self.den = numbers, den

    @classmethod
    def of(cls, values: Iterable[float | Q]) -> Vector:
        ratios = [v.as_integer_ratio() for v in values]
        den = math.lcm(*{d for _, d in ratios})
        return cls([n * (den // d) for n, d in ratios], den)

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Q]:
        return (Q(v, self.den) for v in self.numbers)

    def __getitem__(self, where: slice | Sequence[int]) -> Vector:
        numbers = self.numbers[where] if isinstance(where, slice) else [self.numbers[i] for i in where]
        return Vector(numbers, self.den)

    def __add__(self, other: Vector) -> Vector:
        den = math.lcm(self.den, other.den)
        p, q = den // self.den, den // other.den
        return Vector([p * a + q * b for a, b in zip(self.numbers, other.numbers, strict=True)], den)

    def __sub__(self, other: Vector) -> Vector:
        return self + Q(-1) * other

    def __rmul__(self, c: Q) -> Vector:
        return Vector([c.numerator * v for v in self.numbers], c.denominator * self.den)

    def __matmul__(self, other: Vector) -> Q:
        return Q(sum(map(mul, self.numbers, other.numbers)), self.den * other.den)

    def norm_up(self) -> Q:
        return root_up(self @ self)


def up(function: Callable[[decimal.Decimal], decimal.Decimal], q: Q) -> Q:
    """An upper bound on an increasing function of q: Python's decimals round exp, ln and sqrt correctly, so
    that the next number of 50 digits is above the truth."""
    return Q(CEILING.next_plus(function(CEILING.divide(q.numerator, q.denominator))))


def root_up(q: Q) -> Q:
    return up(CEILING.sqrt, q) if q > 0 else Q(0)


def exp_up(q: Q) -> Q:
    need(q <= 5000, "The point needs exp of a number above 5000.")
    return up(CEILING.exp, max(q, Q(-5000)))


def log_sum_exp_up(row: list[Q]) -> Q:
    """An upper bound on log sum_k exp(v_k)."""
    top = max(row)
    return top + up(CEILING.ln, sum((exp_up(v - top) for v in row), Q(0)))


def xlogx_up(q: Q) -> Q:
    """An upper bound on q log q for q >= 0."""
    return q * up(CEILING.ln, q) if q else q


def around(q: Q) -> tuple[Q, Q]:
    """Numbers of few digits, at most and at least q; q itself, if it has few."""
    k = max(0, DIGITS - q.numerator.bit_length() + q.denominator.bit_length())
    n, rest = divmod(q.numerator << k, q.denominator)
    return Q(n, 1 << k), Q(n + (rest > 0), 1 << k)


def nearest(q: Q, way: float) -> float:
    """The float next to q on the side of `way`, which is infinite."""
    try:
        v = float(q)
    except OverflowError:
        return way if (q > 0) == (way > 0) else math.copysign(sys.float_info.max, -way)
    return v if Q(v) == q or (Q(v) > q) == (way > 0) else math.nextafter(v, way)


def clip(q: Q, low: Q | None, high: Q | None) -> Q:
    q = q if low is None else max(q, low)
    return q if high is None else min(q, high)


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

    def product(self, j: int, u: Vector) -> Q:
        """<column j, u>."""
        rows, values = self.column(j)
        return Vector.of(values) @ u[rows]

    def adjoint(self, u: Vector, across: int = 1) -> Vector:
        """The products of all columns with u, a matrix of so many columns, row after row."""
        return Vector.of(self.product(j, u[k::across]) for j in range(self.n) for k in range(across))

    def image(self, b: Vector, across: int = 1) -> Vector:
        """The matrix times b, a matrix of so many columns, row after row."""
        out = Vector([0] * (self.m * across))
        for place, weight in enumerate(b.numbers):
            if weight:
                rows, values = self.column(place // across)
                column, moved = Vector.of(values), [0] * len(out)
                for i, a in zip(rows, column.numbers, strict=True):
                    moved[i * across + place % across] += a
                out += Q(weight, b.den) * Vector(moved, column.den)
        return out

    def candidates(self, u: Vector, magnitude: bool, limit: float | None = None) -> list[tuple[int, Q]]:
        """All j and <column j, u> where this product, or minus its magnitude, may be the least (or at most a limit);
        of the other columns it is proved that theirs is not.

        Divide u by a power of two and round it to floats v. Let x be a column, c the float value of <x, v>. In any
        order of summation |c - <x, v>| <= m EPS / (1 - m EPS) <|x|, |v|> (Higham 2002, 3.5), but for m underflows, and
        |<x, v> - <x, u>| <= 2 EPS <|x|, |v|>; here <|x|, |v|> <= max |x| sum |v|. A factor of 2 covers the rounding of
        `error` itself, as long as all is finite and m EPS < 0.01. Without NumPy all are computed."""
        near: Any = range(self.n if any(u.numbers) else 1)
        if self.starts is None and np is not None and any(u.numbers):
            unit = Q(2) ** (max(map(abs, u.numbers)).bit_length() - u.den.bit_length())
            v = np.array([a * unit.denominator / (u.den * unit.numerator) for a in u.numbers])
            X, length = np.asarray(self.values).reshape(self.m, self.n), float(np.abs(v).sum())
            c, most = v @ X, np.maximum(X.max(axis=0), -X.min(axis=0))
            error = 4.0 * (self.m + 4) * EPS * length * most + (self.m + 4) * (1.0 + length) * 2.0**-1021
            size = -np.abs(c) if magnitude else c
            if np.isfinite(size + error).all() and self.m * EPS < 0.01:
                near = np.flatnonzero(size - error <= (np.min(size + error) if limit is None else limit)).tolist()
        return [(j, self.product(j, u)) for j in near]


def eliminate(A: list[list[int]], b: list[int]) -> tuple[list[int], int, bool]:
    """(w, d, whole) with A w = d b where that has a solution, for a symmetric A: Gauss and Jordan without fractions
    (Bareiss 1968: all divisions are exact), with positive pivots on the diagonal. What is left has no such pivot;
    A >= 0 if and only if it is 0, since a Schur complement with a diagonal of 0 is >= 0 only then: that is `whole`."""
    rows, left, before = [[*row, v] for row, v in zip(A, b, strict=True)], list(range(len(A))), 1
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
        before = pivot
    w = [0 if i in set(left) else row[-1] for i, row in enumerate(rows)]
    return w, before, not any(rows[i][j] for i in left for j in left)


def _factor(A: list[list[float]], shift: float) -> list[list[float]] | None:
    """A Cholesky factor of A + shift in floats, of which nothing is assumed."""
    L = [[0.0] * len(A) for _ in A]
    for j, row in enumerate(L):
        for i in range(j):
            row[i] = (A[j][i] - sum(map(mul, row[:i], L[i]))) / L[i][i]
        pivot = A[j][j] + shift - sum(map(mul, row[:j], row))
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
    shifts = (min(2.0 * n, -guess + n * EPS * 4.0**k) for k in range(2, 24))  # 2 n is above the norm of F
    tried = ((s, _factor(F, s)) for s in shifts)
    s, R = next((pair for pair in tried if pair[1]), (2.0 * n, F))
    root, shift = Vector.of(v for row in R or F for v in row), Q(s)
    rows = [root.numbers[i * n : i * n + n] for i in range(n)]
    scale, sums = math.lcm(unit, root.den**2, shift.denominator), [0] * n
    for i in range(n):
        for j in range(i + 1):
            rest = A[i][j] * (scale // unit) - sum(map(mul, rows[i], rows[j])) * (scale // root.den**2)
            for k in {i, j}:
                sums[k] += abs(rest + int(shift * scale) * (i == j))
    return -(shift + Q(max(sums), scale)) * unit / den


def largest_singular(V: list[list[int]], den: int, hint: float) -> Q:
    """An upper bound on the largest singular value of V / den, the root of the largest eigenvalue of V V'. Long numbers
    are cut: that moves each entry by less than 2^k / den, the value by less than the root of their number times it."""
    k = max(0, max(v.bit_length() for row in V for v in row) - 2 * DIGITS)
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

    def __init__(self, spec: Spec, read: Reader) -> None:
        self.kind, self.extra, (shape, y) = spec["kind"], whole(spec, "ridge", 0), read(spec.get("y"), "y")
        kinds = ("least_squares", "huber", "logistic", "poisson", "multinomial")
        need(self.kind in kinds, "f is no known loss.")
        w = Q(number(spec, "width") if self.kind == "huber" else 1)
        k = self.classes = shape[-1] if self.kind == "multinomial" else 1
        given = spec.get("weights", 1.0)
        s = [as_float(given)] * (len(y) // k) if isinstance(given, float | int) else list(read(given, "weights")[1])
        s = [v for v in s for _ in range(k)] if len(s) * k == len(y) else s  # one for each row
        need(len(s) == len(y) and min(s) > 0 and w > 0, "The weights of f, or its width, are not positive.")
        need(self.kind != "logistic" or set(y) <= {1.0, -1.0}, "y holds labels that are not -1 and 1.")
        need(self.kind not in kinds[3:] or min(y) >= 0, "y is negative somewhere.")
        self.n, self.size, self.width = len(y), len(y) + self.extra, w
        self.y, self.s = list(map(Q, y)), list(map(Q, s))
        self.rows = [slice(i, i + k) for i in range(0, len(y), k)]
        even = k == 1 or all(sum(self.y[row]) == 1 and len(set(s[row])) == 1 for row in self.rows)
        need(even, "A row of y does not sum to 1, or has several weights.")
        ends = {"huber": lambda _: (-w, w), "logistic": lambda v: (Q(-(v > 0)), Q(v < 0))}
        ends |= dict.fromkeys(kinds[3:], lambda v: (-v, None)) | {"least_squares": lambda _: (None, None)}
        self.ends: list[tuple[Q | None, Q | None]] = list(map(ends[self.kind], self.y))  # of the range of t
        weighted = " with weights" if set(s) != {1.0} else ""
        self.words = f"the {self.kind.replace('_', ' ')} loss of {len(self.rows):,} data{weighted}"
        self.words += f", width {float(w)!r}" if self.kind == "huber" else ""
        self.words += f" and half the squares of {self.extra:,} coefficients" if self.extra else ""

    def slopes(self, u: Vector) -> list[Q]:
        return [v / s for v, s in zip(u, self.s, strict=False)]

    def sums(self, u: Vector) -> list[int]:
        """Of the rows of u that must sum to 0."""
        return [sum(u.numbers[row]) for row in self.rows] if self.kind == "multinomial" else [0]

    def share(self, u: Vector) -> Q:
        """The largest c <= 1 with a finite f* at c u; its range is convex and holds 0."""
        c = Q(0 if any(self.sums(u)) else 1)
        for t, (low, high) in zip(self.slopes(u), self.ends, strict=True):
            inside = clip(t, low, high)
            c = c if inside == t else min(c, inside / t)
        return c

    def conjugate_up(self, u: Vector) -> Q | None:
        """An upper bound on f*(u); None where it is infinite. phi* is convex: of the numbers between two, it is largest
        at one of them."""
        if self.share(u) < 1:
            return None
        terms, tail = [], u[self.n :]
        for t, y, s, ends in zip(self.slopes(u), self.y, self.s, self.ends, strict=True):
            terms.append(around(s * max(self.phi_star_up(clip(v, *ends), y) for v in around(t)))[1])
        return sum(terms, tail @ tail / 2)

    def phi_star_up(self, t: Q, y: Q) -> Q:
        if self.kind == "logistic":
            return xlogx_up(-y * t) + xlogx_up(1 + y * t)
        if self.kind in ("poisson", "multinomial"):
            return xlogx_up(t + y) - (t + y if self.kind == "poisson" else 0)
        return t * t / 2 + t * y

    def value_up(self, x: Vector) -> Q:
        """An upper bound on f(x)."""
        entries, tail = list(x), x[self.n :]
        terms = (around(self.s[row][0] * self.phi_up(entries[row], self.y[row]))[1] for row in self.rows)
        return sum(terms, tail @ tail / 2)

    def phi_up(self, x: list[Q], y: list[Q]) -> Q:
        """phi of a row, which has one entry but for multinomials."""
        linear, away = sum(map(mul, x, y), Q(0)), abs(x[0] - y[0])
        if self.kind == "logistic":
            return log_sum_exp_up([Q(0), -linear])
        if self.kind in ("poisson", "multinomial"):
            return (exp_up(x[0]) if self.kind == "poisson" else log_sum_exp_up(x)) - linear
        w = self.width
        return away * away / 2 if self.kind == "least_squares" or away <= w else w * away - w * w / 2

    def repair(self, u: Vector) -> Vector:
        """u moved into the range of f*, entry by entry; then, in rows, the entry of largest q moves the sum to 0."""
        out = [s * clip(t, *ends) for t, s, ends in zip(self.slopes(u), self.s, self.ends, strict=True)]
        for row, missed in zip(self.rows, self.sums(Vector.of(out)), strict=False):
            if missed:
                j = max(range(*row.indices(self.n)), key=lambda j: out[j] + self.s[j] * self.y[j])
                out[j] -= sum(out[row])
        return Vector.of([*out, *u[self.n :]])

    def metric(self, u: Vector) -> Metric:
        """A multiple of the Hessian of f where its gradient is u, nearly: 0 where u is at the end of its range, so that
        `orthogonal`, for which any symmetric H >= 0 will do, leaves it there."""
        h, q = [], []
        for t, y, s, (low, high) in zip(self.slopes(u), self.y, Vector.of(self.s).numbers, self.ends, strict=True):
            room = Q(1) if low is None else t - low if high is None else (t - low) * (high - t)
            room = Q(room > 0) if self.kind == "huber" else room
            h.append(s * int(room * (1 << 24)))
            q.append(int((t + y) * (1 << 24)))
        unit = max(h, default=1) or 1

        def apply(v: list[int]) -> list[int]:
            out = list(map(mul, h, v))
            for row in self.rows if self.classes > 1 else ():  # s (sum(q) diag(q) - q q')
                total, mean = sum(q[row]), sum(map(mul, q[row], v[row]))
                out[row] = [a * (total * b - mean) for a, b in zip(h[row], v[row], strict=True)]
            return out + [unit * a for a in v[self.n :]]

        return apply


class Quadratic:
    """f(x) = <x, Hx> / 2 + <c, x>, where H counts by its symmetric half. If H >= mu > 0, then for any z and g = Hz + c
    f(x) >= f(z) + <g, x - z> + mu |x - z|^2 / 2, and by the conjugate of the right side

        f*(u) <= <u, z> - f(z) + |u - g|^2 / (2 mu),

    which holds for mu = 0 at u = g. Of a small singular H: f*(u) = <u - c, w> / 2 where Hw = u - c has a solution."""

    def __init__(self, spec: Spec, read: Reader) -> None:
        self.c, (shape, values) = Vector.of(read(spec.get("c"), "c")[1]), read(spec.get("H"), "H")
        self.mu: Any = None
        n, H = len(self.c), Vector.of(values)
        need(shape == (n, n), "H is not a square matrix with a row for each entry of c.")
        self.H = [[H.numbers[i * n + j] + H.numbers[j * n + i] for j in range(n)] for i in range(n)]
        self.den, self.size, self.words = 2 * H.den, n, f"a quadratic function of {n:,} variables"

    def take(self, z: Vector, hint: float) -> None:
        """Take z and what is hoped of mu; prove mu (-1: nothing is proved)."""
        self.z = z
        if self.mu is None:
            self.mu = least_eigenvalue(self.H, self.den, hint)
        if self.mu <= 0:
            self.mu = Q(0 if self.size <= MAX_SPAN and eliminate(self.H, [0] * self.size)[2] else -1)

    def times(self, v: Vector) -> Vector:
        return Vector([sum(map(mul, row, v.numbers)) for row in self.H], self.den * v.den)

    def value_up(self, x: Vector) -> Q:
        return x @ self.times(x) / 2 + self.c @ x

    def conjugate_up(self, u: Vector) -> Q | None:
        away = u - self.times(self.z) - self.c
        if self.mu > 0 or (self.mu == 0 and not away @ away):
            return u @ self.z - self.value_up(self.z) + (away @ away / (2 * self.mu) if self.mu else 0)
        b = u - self.c
        w, det, _ = eliminate(self.H, b.numbers) if self.mu == 0 else ([], 1, False)
        solution = Vector([self.den * v for v in w], det * b.den)
        if not w or any((self.times(solution) - b).numbers):
            return None
        return b @ solution / 2

    def repair(self, u: Vector) -> Vector:
        return u if self.mu > 0 else self.times(self.z) + self.c

    def share(self, u: Vector) -> Q:
        return Q(1)

    def metric(self, u: Vector) -> Metric:
        return lambda v: self.times(Vector(v)).numbers


# ---------------------------------------------------------------- sets of atoms


def _largest(v: list[int], k: int) -> list[int]:
    return sorted(map(abs, v))[-k:]


PLAIN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "basis": (lambda v, k: min(v), lambda v, k: sum(v)),
    "signed": (lambda v, k: -max(map(abs, v)), lambda v, k: sum(map(abs, v))),
    "linf": (lambda v, k: -sum(map(abs, v)), lambda v, k: max(map(abs, v))),
    "ksparse": (lambda v, k: -sum(_largest(v, k)), lambda v, k: max(*map(abs, v), Q(sum(map(abs, v)), k))),
    "hypersimplex": (lambda v, k: sum(sorted(v)[:k]), lambda v, k: Q(sum(v), k)),
}
"""Sets whose minimum of <h, .> and whose gauge, the least sum of weights of atoms that make b, are linear in sizes:
e_i; e_i and -e_i; vectors of signs; k signs and zeros (the gauge is max(|b|_inf, |b|_1 / k)); k ones and zeros (a b
with 0 <= b <= sum(b) / k). Of the first and the last, the weights of a point are not negative."""
MATRICES = ("rank_one", "symmetric_rank_one", "spectrahedron")
CONSTRAINED = ("box", "polytope", "transport", "permutations", "flows")
"""Sets that are polytopes: A x = b, at most b in the first rows, `lower` <= x <= `upper`."""
KINDS = (*PLAIN, *MATRICES, *CONSTRAINED, "l2", "ksupport", "groups", "trusted")


class Atoms:
    """A set of vectors a with n entries. `lowest(h)` is a lower bound on <h, a> over the atoms; `gauge(b)` an upper
    bound on their weights in b, for sets that are `gauged`."""

    def __init__(self, spec: Spec, read: Reader) -> None:
        self.kind, self.read, self.spec, self.k = spec["kind"], read, spec, whole(spec, "k", 1)
        need(self.kind in KINDS, "The set is not known, or empty.")
        self.symmetric = self.kind not in ("basis", "hypersimplex", "spectrahedron", "trusted", *CONSTRAINED)
        self.gauged = self.kind in (*PLAIN, "l2", "groups")
        self.n = whole(spec, "n", 0)
        if self.kind in ("box", "polytope"):
            self.lower, self.upper = (bounds(spec, name, self.n) for name in ("lower", "upper"))
            pairs = zip(self.lower, self.upper, strict=True)
            need(all(None in pair or pair[0] <= pair[1] for pair in pairs), "The bounds of a set leave it empty.")  # type: ignore[operator]
            rows, self.inequalities = self.kind == "polytope", whole(spec, "inequalities", 0)
            self.A = matrix(read, spec["A"], "A") if rows else Table((0, self.n), array("d"))
            self.b = self.numbers(spec, "b") if rows else Vector([])
            need((self.A.m, self.A.n) == (len(self.b), self.n), "The rows of a polytope are of other sizes.")
        elif self.kind == "groups":
            self.groups, self.weights = spec["groups"], list(self.numbers(spec, "weights"))
            need(sorted(i for g in self.groups for i in g) == list(range(self.n)), "The groups are no partition.")
            right = len(self.weights) == len(self.groups) and min(self.weights) > 0
            need(right, "The weights of groups are not positive, one for each.")
        elif self.kind in ("transport", "permutations"):
            ones = Vector([1] * whole(spec, "size", 0))
            self.sums = [self.numbers(spec, name) if self.kind == "transport" else ones for name in "ab"]
            m, n = map(len, self.sums)
            self.constrain([v for a in self.sums for v in a], list(product(range(m), range(m, m + n))), 1.0)
        elif self.kind == "flows":
            edges, nodes = list(zip(spec["edges"][::2], spec["edges"][1::2], strict=True)), whole(spec, "nodes")
            self.edges, self.trips = edges, [(o, t, Q(as_float(v))) for o, t, v in spec["trips"]]
            named = {i for o, t, *_ in (*edges, *self.trips) for i in (o, t)}
            need(named <= set(range(nodes)) and len(edges) == self.n, "Edges or trips are of no node.")
            need(all(v >= 0 for *_, v in self.trips), "A trip is negative.")
            out = [sum((v * ((o == i) - (t == i)) for o, t, v in self.trips), Q(0)) for i in range(nodes)]
            self.constrain(out, edges, -1.0)
        elif self.kind in MATRICES:
            self.shape = m, n = whole(spec["shape"], 0), whole(spec["shape"], 1)
            every = product(range(m), range(n))
            self.places = list(zip(spec["rows"], spec["columns"], strict=True) if "rows" in spec else every)
            need(all(0 <= i < m and 0 <= j < n for i, j in self.places), "Entries are outside the matrix.")
            need(len(set(self.places)) == len(self.places), "Entries are named twice.")
            need(m == n or self.kind == "rank_one", "Symmetric matrices are not square.")
            self.n = len(self.places)
        need(1 <= self.k <= self.n, "The set is not known, or empty.")

    def constrain(self, sums: list[Q], ends: Sequence[tuple[int, int]], other: float) -> None:
        """x >= 0 with these sums, in which entry i counts once in row ends[i][0], and `other` times in ends[i][1]."""
        self.n, self.b, self.inequalities = len(ends), Vector.of(sums), 0
        starts, rows = range(0, 2 * self.n + 1, 2), array("q", [i for pair in ends for i in pair])
        self.A = Table((len(sums), self.n), array("d", [1.0, other] * self.n), starts, rows)
        self.lower, self.upper = [Q(0)] * self.n, [None] * self.n

    def numbers(self, spec: Spec, name: str) -> Vector:
        return Vector.of(self.read(spec[name], name)[1])

    def hint(self, hint: Spec, name: str, n: int) -> Vector:
        v = self.numbers(hint, name) if name in hint else Vector([0] * n)
        need(len(v) == n, f"The hint {name} is not one number for each row or node.")
        return v

    def norms(self, h: Vector) -> list[Q]:
        """|h_G| w_G for all groups G."""
        return [h[g].norm_up() for g in self.groups]

    def lowest(self, h: Vector, hint: Spec) -> Q:
        """Unit vectors: -|h| by Cauchy and Schwarz; with k nonzeros: on the k largest entries; vectors of norm 1 / w_G
        on a group G: -|h_G| / w_G. The others below."""
        if self.kind in PLAIN:
            return Q(PLAIN[self.kind][0](h.numbers, self.k)) / h.den
        if self.kind in ("l2", "ksupport"):
            return -Vector(_largest(h.numbers, self.k if self.kind == "ksupport" else self.n), h.den).norm_up()
        if self.kind == "groups":
            return -max(a / w for a, w in zip(self.norms(h), self.weights, strict=True))
        if self.kind == "trusted":
            return Q(number(hint, "lowest") if any(h.numbers) else 0)
        others = {"flows": self.flows, "transport": self.plans, "permutations": self.plans}
        return others.get(self.kind, self.spectrum if self.kind in MATRICES else self.program)(h, hint)

    def spectrum(self, h: Vector, hint: Spec) -> Q:
        """l r' with unit vectors l and r, all entries or some: minus the largest singular value of h, with zeros at the
        other entries. l l': the least eigenvalue of (h + h') / 2; l l' and -l l': minus the largest in size."""
        (m, n), sigma = self.shape, number(hint, "sigma", 0.0)
        V = [[0] * n for _ in range(m)]
        for v, (i, j) in zip(h.numbers, self.places, strict=True):
            V[i][j] = v
        if self.kind == "rank_one":
            return -largest_singular(V, h.den, sigma)
        even = [[V[i][j] + V[j][i] for j in range(n)] for i in range(n)]
        low = least_eigenvalue(even, 2 * h.den, number(hint, "least", 0.0))
        odd = [[-v for v in row] for row in even]
        return low if self.kind == "spectrahedron" else min(low, least_eigenvalue(odd, 2 * h.den, -sigma))

    def program(self, h: Vector, hint: Spec) -> Q:
        """For all y, at most 0 on the inequalities, <h, x> = <y, Ax> + <h - A'y, x> >= <y, b> + the least of
        <h - A'y, x> between the bounds. Entries without an upper bound need h - A'y >= 0, which y + eps y' has if
        -A'y' > 0 there (`bounding`). Integers may be left out: the set grows."""
        y, more = (self.hint(hint, name, len(self.b)) for name in ("y", "bounding"))
        for hinted in (y, more):
            hinted.numbers[: self.inequalities] = [min(a, 0) for a in hinted.numbers[: self.inequalities]]
        rest, push = h - self.A.adjoint(y), Q(-1) * self.A.adjoint(more)
        wrong = [(v, p) for v, p, end in zip(rest, push, self.upper, strict=True) if v < 0 < p and end is None]
        eps = max((-v / p for v, p in wrong), default=Q(0))
        rest, total = rest + eps * push, (y + eps * more) @ self.b
        for v, low, high in zip(rest, self.lower, self.upper, strict=True):
            end = low if v > 0 else high
            if v and end is None:
                raise Unproved("An entry without a bound has a cost of the wrong sign.")
            total += v * (end or 0)
        return total

    def plans(self, h: Vector, hint: Spec) -> Q:
        """X >= 0 with row sums a and column sums b: if alpha_i + beta_j <= h_ij for all i, j, then <h, X> is at least
        <a, alpha> + <b, beta>. alpha is a hint, beta_j = min_i (h_ij - alpha_i)."""
        a, b = self.sums
        n, alpha = len(b), self.hint(hint, "alpha", len(a))
        left = h - Vector([v for v in alpha.numbers for _ in range(n)], alpha.den)
        return a @ alpha + b @ Vector([min(left.numbers[j::n]) for j in range(n)], left.den)

    def flows(self, h: Vector, hint: Spec) -> Q:
        """Amounts D_t go from o to t over routes without cycles. For all potentials p a route costs sum h_e =
        p_t - p_o + the sum of h_e - p_j + p_i over its edges e = (i, j), each of which it uses once: at least
        p_t - p_o + sum over all edges of min(0, h_e - p_j + p_i)."""
        origins, nodes, total = sorted({o for o, _, _ in self.trips}), self.A.m, Q(0)
        potentials = self.hint(hint, "potentials", len(origins) * nodes)
        for k, origin in enumerate(origins):
            p = potentials[k * nodes : (k + 1) * nodes]
            costs = h - Vector([p.numbers[j] - p.numbers[i] for i, j in self.edges], p.den)
            below = Q(sum(min(0, c) for c in costs.numbers), costs.den)
            rise = {t: Q(p.numbers[t] - p.numbers[origin], p.den) + below for o, t, _ in self.trips if o == origin}
            total += sum(v * rise[t] for o, t, v in self.trips if o == origin)
        return total

    def gauge(self, b: Vector) -> Q:
        need(self.symmetric or min(b.numbers) >= 0, "A weight of the point is negative.")
        if self.kind in PLAIN:
            total = Q(PLAIN[self.kind][1](b.numbers, self.k)) / b.den
            need(self.kind != "hypersimplex" or max(b) <= total, "The point is outside its hull.")
            return total
        return b.norm_up() if self.kind == "l2" else sum(map(mul, self.norms(b), self.weights), Q(0))

    def atom(self, spec: Spec) -> tuple[Sequence[int], Vector, Q]:
        """The places and entries of an atom of a point, and its own gauge, where the set is not `gauged`."""
        if self.kind in MATRICES:
            left, right = self.numbers(spec, "left"), self.numbers(spec, "right")
            need((len(left), len(right)) == self.shape, "A factor of the point has the wrong length.")
            need(self.kind == "rank_one" or spec["left"] == spec["right"], "The factors of a symmetric matrix differ.")
            entries = Vector([left.numbers[i] * right.numbers[j] for i, j in self.places], left.den * right.den)
            squared = (left @ left) * (right @ right)
            return range(self.n), entries, left @ left if self.kind == "spectrahedron" else root_up(squared)
        entries, places = self.numbers(spec, "values"), spec.get("at", range(self.n))
        inside = len(set(places)) == len(places) and all(0 <= i < self.n for i in places)
        need(inside, "An atom of the point has entries outside its set, or one twice.")
        few = self.kind != "ksupport" or sum(map(bool, entries.numbers)) <= self.k
        need(few, "An atom of the point has more than k nonzeros.")
        return places, entries, entries.norm_up() if self.kind == "ksupport" else Q(1)

    def moved(self, b: Vector) -> tuple[Vector, Q]:
        """b moved between the bounds of a box, and the largest violation of a constraint, over the largest number in
        them or in b (of flows: what comes to a node but does not leave; single trips cannot be read off the sum)."""
        if self.kind == "box":
            return Vector.of(map(clip, b, self.lower, self.upper)), Q(0)
        if self.kind not in CONSTRAINED:
            return b, Q(0)
        over = list(self.A.image(b) - self.b)
        over[self.inequalities :] = map(abs, over[self.inequalities :])
        over += (abs(v - clip(v, *ends)) for v, *ends in zip(b, self.lower, self.upper, strict=True))
        return b, max([Q(0), *over]) / (max([Q(0), *map(abs, b), *map(abs, self.b)]) or 1)


class Part:
    """A summand of the domain: the hull, cone or span of the atoms scale * M a, where a are those of a set, or their
    cone at a price. With `columns` K, a is a matrix of K columns, and so is M a; with `below`, that number times a
    stands under M a; with `start`, all this are the entries start, start + 1, ... of x, and the others are 0."""

    def __init__(self, spec: Spec, read: Reader, size: int) -> None:
        self.kind, self.atoms, self.size = spec["kind"], Atoms(spec["set"], read), size
        self.price, self.below = (Q(number(spec, name, 0.0)) for name in ("price", "below"))
        self.rho = Q(number(spec, "rho")) if "rho" in spec else None
        self.across, self.start = whole(spec, "columns", 1), whole(spec, "start", 0)
        self.scale = Q(number(spec, "scale", 1.0))
        self.map, A = matrix(read, spec["map"], "map") if "map" in spec else None, self.atoms
        need(self.kind in ("hull", "cone", "span", "penalty"), "A summand is no hull, cone, span or penalty.")
        need((self.price > 0) == (self.kind == "penalty") and self.price >= 0, "A price is not that of a penalty.")
        limited = self.rho is None or (self.rho > 0 and self.kind in ("cone", "span"))
        need(self.scale and limited, "A factor is wrong.")
        need(self.map is None or self.map.n * self.across == A.n, "A matrix has not a column for each entry.")
        self.middle = self.start + (A.n if self.map is None else self.map.m * self.across)
        self.stop = self.middle + (A.n if self.below else 0)
        need(self.stop <= size and ("start" in spec or self.stop == size), "Atoms and f differ in size.")
        bounded = A.kind in CONSTRAINED or A.kind == "trusted"
        need(self.kind == "hull" or not bounded, f"Only the hull of a set {A.spec.get('name', A.kind)} has a rule.")
        self.linear = self.rho is None and (self.kind == "span" or (self.kind == "cone" and A.symmetric))
        self.conic = self.rho is None and self.kind == "cone" and not A.symmetric
        need(not self.conic or A.kind == "basis", f"The cone of a set {A.kind} has no rule.")
        self.listed = self.map is not None and self.across == 1 and not self.below and A.kind in ("basis", "signed")
        self.words = f"{float(self.price)!r} times the norm given by" if self.price else f"the {self.kind} of"
        given = {key: v for key, v in A.spec.items() if key not in ("kind", "n") and not isinstance(v, dict)}
        named = ", ".join(key if isinstance(v, list) else f"{key} {v!r}" for key, v in given.items())
        named = named and f" ({named} of the proof)"
        self.words += f" {float(self.scale)!r} times the set {A.kind}{named} of {A.n:,} entries"
        self.words += f", seen through a matrix of {self.map.m:,} rows" if self.map is not None else ""
        self.words += "" if self.rho is None else f", weights of at most {float(self.rho)!r} in sum being assumed"

    def adjoint(self, u: Vector) -> Vector:
        """The vector h with <h, a> = <u, scale M a>."""
        h = u[self.start : self.middle]
        h = h if self.map is None else self.map.adjoint(h, self.across)
        return self.scale * (h + self.below * u[self.middle : self.stop] if self.below else h)

    def image(self, b: Vector) -> Vector:
        """scale M b, as an entry of the sum."""
        top = b if self.map is None else self.map.image(b, self.across)
        x = Vector([0] * self.start + top.numbers + [0] * (self.size - self.middle), top.den)
        if self.below:
            x += self.below * Vector([0] * self.middle + b.numbers + [0] * (self.size - self.stop), b.den)
        return self.scale * x

    def unit(self, i: int) -> Vector:
        return self.image(Vector([int(i == j) for j in range(self.atoms.n)]))

    def products(self, u: Vector, limit: float | None = None) -> list[tuple[int, Q]]:
        """The products with the columns of which one may be the least, or at most a limit."""
        if self.map is None or not self.listed:
            return list(enumerate(self.adjoint(u)))
        return self.map.candidates(self.scale * u[self.start : self.stop], self.atoms.symmetric, limit)

    def lowest(self, u: Vector, hint: Spec) -> Q:
        """A lower bound on <u, scale M a>."""
        if not self.listed:
            return self.atoms.lowest(self.adjoint(u), hint)
        return min(-abs(a) if self.atoms.symmetric else a for _, a in self.products(u))

    def negative(self, u: Vector) -> dict[int, Q]:
        """The products with atoms e_i that are negative."""
        return {i: a for i, a in self.products(u, 0.0) if a < 0}

    def point(self, spec: Spec, read: Reader) -> tuple[Vector, Q, Q]:
        """The combination of the atoms, moved exactly into the domain, its weight, and by how much it misses the
        constraints of sets for which this is not possible."""
        A, size, sums = self.atoms, Q(0), dict[int, Q]()
        weights = Vector.of(read(spec["weights"], "weights")[1])
        for a, w in zip(spec["atoms"], weights, strict=True):
            need(w >= 0 or A.symmetric or self.kind == "span", "A weight of the point is negative.")
            places, values, norm = A.atom(a)
            size += abs(w) * norm
            for i, b in zip(places, values, strict=True):
                sums[i] = sums.get(i, Q(0)) + w * b
        point = Vector.of(sums.get(i, Q(0)) for i in range(A.n))
        if self.kind == "span":
            return point, Q(0), Q(0)
        size = A.gauge(point) if A.gauged else size
        if self.kind != "hull" or (size <= 1 and A.symmetric):
            return point, size, Q(0)
        need(abs(size - 1) <= TOLERANCE, f"The weights of the point sum to {float(size)!r} in a hull.")
        point, missed = A.moved(1 / size * point)
        need(missed <= TOLERANCE, f"The point misses the constraints of its set by {float(missed):.2g}.")
        return point, Q(1), missed


# ---------------------------------------------------------------- the proof


class Problem:
    """f and the summands of its domain."""

    def __init__(self, spec: Spec, read: Reader) -> None:
        f, self.read = spec["f"], read
        self.f: Any = (Quadratic if f["kind"] == "quadratic" else Loss)(f, read)
        self.parts = [Part(part, read, self.f.size) for part in spec["domain"]]
        self.trusted = [part.words for part in self.parts if part.atoms.kind == "trusted"]

    def vector(self, spec: Any, name: str) -> Vector:
        v = Vector.of(self.read(spec, name)[1])
        need(len(v) == self.f.size, f"{name} has another length than x.")
        return v


def orthogonal(u: Vector, B: list[list[int]], metric: Metric) -> Vector | None:
    """u - H B w with (B'HB) w = B'u, so that B'(u - H B w) = 0, for a symmetric H >= 0; None where there is none."""
    products = [sum(map(mul, b, u.numbers)) for b in B]
    if not any(products):
        return u
    HB = [metric(b) for b in B]
    w, det, _ = eliminate([[sum(map(mul, b, c)) for c in HB] for b in B], products)
    out = [v * det for v in u.numbers]
    for c, column in zip(w, HB, strict=True):
        out = [v - c * a for v, a in zip(out, column, strict=True)] if c else out
    common = math.gcd(det * u.den, *out)
    out = [v // common for v in out]
    return None if any(sum(map(mul, b, out)) for b in B) else Vector(out, det * u.den // common)


def prove(problem: Problem, dual: Any) -> Q | None:
    """The best lower bound that (1) proves at the vector of `dual` and at 0; None: minus infinity."""
    found = []
    for each in (dual, {"u": [0.0] * problem.f.size}):
        with contextlib.suppress(Unproved):
            found.append(bound(problem, each))
    return max((low for low in found if low is not None), default=None)


def bound(problem: Problem, dual: Spec) -> Q | None:
    """(1) at a vector near dual["u"], made feasible in this order: the range of f*; spans and cones, by linear steps; a
    factor c <= 1 for penalties and for what has left the range of f*. All conditions hold at c u if they hold at u."""
    f, parts, hints = problem.f, problem.parts, dual.get("hints") or [{} for _ in problem.parts]
    u = given = problem.vector(dual["u"], "u")
    zero = Vector([0] * f.size)
    if isinstance(f, Quadratic):
        f.take(problem.vector(dual["z"], "z") if "z" in dual else zero, number(dual, "mu", 0.0))
    u = f.repair(u)
    linear, cones = [p for p in parts if p.linear], [p for p in parts if p.conic]
    small = sum(p.atoms.n for p in linear) <= MAX_SPAN
    B = [p.unit(i).numbers for p in linear for i in range(p.atoms.n)] if small else []
    if not small and any(any(p.adjoint(u).numbers) for p in linear):
        u = zero
    if B:
        tried = (orthogonal(u, B, metric) for metric in (f.metric(u), list))
        u = next((v for v in tried if v is not None and f.share(v) > 0), zero)
    below = [p.negative(u) for p in cones]
    if any(below):  # u + eps v with <v, a> > 0 has no negative product with any atom a of the cones
        v = problem.vector(dual["v"], "v") if "v" in dual else zero
        v = orthogonal(v, B, list) or zero
        pairs = [(a, p.unit(i) @ v) for p, found in zip(cones, below, strict=True) for i, a in found.items()]
        u += max((-a / push for a, push in pairs if push > 0), default=Q(0)) * v
        if any(p.negative(u) for p in cones):
            return None
    if problem.trusted and any((u - given).numbers):  # its oracle was not asked at u
        return None
    share, total = f.share(u), Q(0)
    for p, hint in zip(parts, hints, strict=True):
        if p.linear or p.conic:
            continue
        low = p.lowest(u, hint)
        if p.kind == "span" and not p.atoms.symmetric:  # with rho, over the atoms and their negatives
            low = min(low, p.lowest(Q(-1) * u, hint))
        if p.kind == "penalty":
            share = min(share, p.price / -low) if -low > p.price else share
        else:
            total += low if p.rho is None else p.rho * min(Q(0), low)
    conjugate = f.conjugate_up(share * u)
    return None if conjugate is None else share * total - conjugate


def value(problem: Problem, point: Any) -> tuple[Q, Q]:
    """An upper bound on f and the prices at the point, moved into the domain, and by how much it misses it."""
    x, cost, missed = Vector([0] * problem.f.size), Q(0), Q(0)
    for p, spec in zip(problem.parts, point, strict=True):
        b, size, moved = p.point(spec, problem.read)
        x, cost, missed = x + p.image(b), cost + p.price * size, max(missed, moved)
    return problem.f.value_up(x) + cost, missed


# ---------------------------------------------------------------- files


def as_float(v: Any) -> float:
    if type(v) not in (float, int) or not abs(v) <= sys.float_info.max or float(v) != v:
        raise Refused(f"{v!r:.40} is not a finite float64 number.")
    return float(v)


def number(spec: Spec, name: str, default: float | None = None) -> float:
    return as_float(spec.get(name, default))


def whole(spec: Any, name: Any, default: int | None = None) -> int:
    v: Any = spec.get(name, default) if isinstance(spec, dict) else spec[name]
    need(type(v) is int and 0 <= v < 1 << 40, f"The entry {name!r} is not a whole number of at least 0.")
    return int(v)


def bounds(spec: Spec, name: str, n: int) -> list[Q | None]:
    values = [None if v is None else Q(as_float(v)) for v in spec[name]]
    need(len(values) == n, f"The entry {name!r} is not one bound for each entry.")
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
        missing = "The proof is about other data: no file holds" if data else "No data were given: add --data FILE with"
        need(key in data, f"{missing} its array {name} (sha256 {key[:12]}).")
        file, found, values = data[key]
        need(list(found) == shape, f"The array {name} has the shape {list(found)} in {file}, not {shape!r:.40}.")
        used.append(f"{name} is the array in {file}.")
        return found, values

    return read


TYPES = dict(zip(("f8", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"), "dfbhiqBHIQB", strict=True))
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
        values = array(values.typecode, (v for i in range(shape[0]) for v in values[i :: shape[0]]))
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
    fits = fits and all(a < b for i, j in pairwise(starts) for a, b in pairwise(rows[i:j]))
    need(fits, f"{path} is not sorted, or names an entry twice.")
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
        shape, values = read_sparse(path)
    else:
        with open(path, "rb") as file:
            shape, values = read_npy(file, path)
        safe = values.typecode in "df" or (max(values) <= 1 << 53 and min(values) >= -(1 << 53))
        need(safe, f"{path} holds integers that are no float64 numbers.")
        values = values if values.typecode == "d" else array("d", values)
    numbers = values.values if isinstance(values, Table) else values
    finite = np.isfinite(np.frombuffer(numbers)).all() if np is not None else all(map(math.isfinite, numbers))
    need(finite, f"{path} holds a number that is not finite.")
    return path, shape, values


def parse(path: str) -> Spec:
    """The proof, a JSON object, of limited size; its depth is limited by that of Python's own reader."""
    with open(path, "rb") as file:
        text = file.read(MAX_FILE + 1)
    need(len(text) <= MAX_FILE, f"{path} is longer than {MAX_FILE:,} bytes.")
    proof = json.loads(text)
    right = isinstance(proof, dict) and (proof.get("format"), proof.get("version")) == ("pursuit-proof", 1)
    need(right, f"{path} is not a proof in the format 'pursuit-proof', version 1.")
    return proof  # type: ignore[no-any-return]


def check(path: str, files: Sequence[str]) -> tuple[bool, str]:
    """Whether the claim of a file is proved, and what is, in words."""
    proof, used = parse(path), list[str]()
    data = {digest(loaded[2]): loaded for loaded in map(load, files)}
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


MISTAKES = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What wrong files raise, beside `Refused`."""


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
    except (*MISTAKES, zipfile.BadZipFile, zlib.error) as why:
        print(f"refused: the file is not a proof ({type(why).__name__}: {str(why)[:80]}).", file=sys.stderr)
        return 2
    print(words)
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
