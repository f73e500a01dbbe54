"""Exact minima of quadratics over listed atoms, in rational numbers, to compare bounds with.

min w'Gw / 2 + q'w over weights w of atoms: free for spans, otherwise not negative, with a sum of 1 over each hull. From
the weights of a run on, an active-set method goes from minimum to minimum over the atoms in use. It ends where no other
atom has a negative slope: there is the minimum of all. Where it does not get so far, its value is one of a point of the
domain. In both cases no bound may be above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction as Q

from pursuit import verify
from pursuit.run.proof import Proof, _read

MAX_ATOMS, MAX_TURNS = 60, 40


@dataclass
class Weighted:
    """An atom with its weight: the summand, the vector, its price, and whether its weight may be negative."""

    block: int
    vector: verify.Vector
    price: Q
    free: bool
    weight: Q


def minimum(proof: Proof) -> tuple[Q, bool] | None:
    """The value of f at a point of the domain, and whether it is the minimum; None for problems of other kinds."""
    problem = verify.Problem(proof._spec, _read)
    atoms = listed(problem, proof._spec["point"])
    if atoms is None or (isinstance(problem.f, verify.Loss) and problem.f.kind != "least_squares"):
        return None
    hulls = [b for b, part in enumerate(problem.parts) if part.kind == "hull"]
    done = improve(problem, atoms, hulls)
    x = verify.Vector([0] * problem.f.size)
    for a in atoms:
        x += a.weight * a.vector
    return problem.f.value_up(x) + sum((a.price * a.weight for a in atoms), Q(0)), done


def listed(problem: verify.Problem, points: Sequence[verify.Spec]) -> list[Weighted] | None:
    """All atoms, with the weights of a point; None where they are not listed or too many."""
    atoms: list[Weighted] = []
    for b, (part, point) in enumerate(zip(problem.parts, points, strict=True)):
        if part.atoms.kind not in ("basis", "signed") or part.rho is not None or len(atoms) > MAX_ATOMS:
            return None
        weights, size, _ = part.point(point, _read)
        free, twice = part.kind == "span", part.atoms.symmetric and part.kind != "span"
        left = (1 - size) / 2 if part.kind == "hull" else Q(0)  # of a symmetric hull: to an atom and its negative
        for i, w in enumerate(weights):
            vector, more = part.unit(i), left if i == 0 and twice else Q(0)
            atoms.append(Weighted(b, vector, part.price, free, (max(w, Q(0)) if twice else w) + more))
            if twice:
                atoms.append(Weighted(b, Q(-1) * vector, part.price, False, max(-w, Q(0)) + more))
    return atoms if len(atoms) <= MAX_ATOMS else None


def improve(problem: verify.Problem, atoms: list[Weighted], hulls: list[int]) -> bool:
    """Move the weights to a minimum, in place; whether that is one over all atoms."""
    f, zero = problem.f, verify.Vector([0] * problem.f.size)
    if isinstance(f, verify.Quadratic):
        images, c = [f.times(a.vector) for a in atoms], f.c
    else:
        s, y = [*f.s, *[Q(1)] * f.extra], [*f.y, *[Q(0)] * f.extra]
        images = [verify.Vector.of(v * w for v, w in zip(a.vector, s, strict=True)) for a in atoms]
        c = verify.Vector.of(-v * w for v, w in zip(y, s, strict=True))
    slopes = [a.vector @ c + a.price for a in atoms]
    used = [j for j, a in enumerate(atoms) if a.free or a.weight]
    for _ in range(MAX_TURNS):
        found = stationary(atoms, images, slopes, used, hulls)
        if found is None:
            return False
        shares = [
            (atoms[j].weight / (atoms[j].weight - w), j)
            for j, w in zip(used, found, strict=True)
            if w < 0 and not atoms[j].free
        ]
        share, first = min(shares, default=(Q(1), -1))
        for j, w in zip(used, found, strict=True):
            atoms[j].weight += share * (w - atoms[j].weight)
        if first >= 0:
            atoms[first].weight = Q(0)
            used.remove(first)
            continue
        gradient = sum((a.weight * h for a, h in zip(atoms, images, strict=True)), zero)
        now = [a.vector @ gradient + slope for a, slope in zip(atoms, slopes, strict=True)]
        level = {b: min(now[j] for j in used if atoms[j].block == b) for b in hulls}
        rest = [(now[j] - level.get(a.block, Q(0)), j) for j, a in enumerate(atoms) if not a.free]
        steepest, j = min(rest, default=(Q(0), -1))
        if steepest >= 0:
            return True
        used.append(j)
    return False


def stationary(
    atoms: list[Weighted], images: list[verify.Vector], slopes: list[Q], used: list[int], hulls: list[int]
) -> list[Q] | None:
    """The weights of these atoms at which f is stationary, their sums over hulls being 1; None where there are none."""
    sums = [[Q(atoms[j].block == b) for j in used] for b in hulls]
    rows = [
        [*(atoms[i].vector @ images[j] for j in used), *(row[k] for row in sums), -slopes[i]]
        for k, i in enumerate(used)
    ]
    return solution(rows + [[*row, *[Q(0)] * len(hulls), Q(1)] for row in sums], len(used))


def solution(rows: list[list[Q]], count: int) -> list[Q] | None:
    """The first unknowns of a linear system, whose last column is its right side; free ones are 0."""
    width, pivots = len(rows[0]) - 1 if rows else 0, dict[int, int]()
    for column in range(width):
        done = len(pivots)
        pivot = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        head = rows[done] = [v / rows[done][column] for v in rows[done]]
        for i, row in enumerate(rows):
            if i != done and row[column]:
                rows[i] = [v - row[column] * h if h else v for v, h in zip(row, head, strict=True)]
        pivots[column] = done
    if any(row[-1] for row in rows[len(pivots) :]):
        return None
    return [rows[pivots[j]][-1] if j in pivots else Q(0) for j in range(count)]
