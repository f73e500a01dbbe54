"""Unit vectors on few coordinates: disjoint groups, and every choice of k coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pursuit.arguments import as_list, describe, host_array, quantity, real_array, require
from pursuit.arrays import Array, Indices, Small, flat, host, largest
from pursuit.atoms.base import Atoms
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.polytopes import Selection, check_selection
from pursuit.atoms.sparse import SparseAtom
from pursuit.linalg import unit


class Units(Atoms):
    """Vectors on named sets of coordinates; all atoms of one name have the same length.

    The source of an atom is (name, direction), where the first nonzero entry of the direction is positive; `coef` holds
    the sign and the length, so that an atom and its negative share a source.
    """

    symmetric = True
    n: int

    def _coordinates(self, name: object) -> Indices | None:
        """The coordinates of this name in increasing order; None where the set has no such name."""
        raise NotImplementedError

    def _length(self, name: object) -> float:
        """The norm of the atoms of this name."""
        raise NotImplementedError

    def unit(self, name: object, values: Small) -> SparseAtom:
        """The atom along `values` on the coordinates of this name; along the first of them where all values vanish."""
        v = unit(values)
        sign = 1.0 if v[np.flatnonzero(v)[0]] > 0 else -1.0
        return self._atom(name, tuple((sign * v).tolist()), sign)

    def _atom(self, name: object, direction: tuple[float, ...], sign: float) -> SparseAtom:
        coef = sign * self._length(name)
        values = coef * np.array(direction)
        return SparseAtom(self._coordinates(name), values, self.shape or (), (name, direction), coef)

    def _knows(self, source: Source) -> bool:
        if not (isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], tuple)):
            return False
        places = self._coordinates(source[0])
        return places is not None and len(places) == len(source[1]) and all(isinstance(v, float) for v in source[1])

    def rebuild(self, a: Atom) -> Atom | None:
        sign = 1.0 if a.coef > 0 else -1.0
        return self._atom(a.source[0], a.source[1], sign) if self._knows(a.source) else None

    def coefficients(self, sources: Sequence[Source], values: Small) -> object:
        if not all(self._knows(source) for source in sources):
            return None
        out = np.zeros(self.n)
        for (name, direction), value in zip(sources, values, strict=True):
            out[self._coordinates(name)] += value * np.array(direction)
        return out


class Groups(Units):
    r"""Vectors of norm :math:`1/w_G` on one group G of coordinates: the gauge is the group norm
    :math:`\sum_G w_G \|x_G\|_2`, and `conv(t * Groups(groups).through(X))` is the group lasso.

    The oracle takes the group with the largest :math:`\|g_G\| / w_G` and answers
    :math:`-g_G / (w_G \|g_G\|)`; `best` goes on with the next groups.

    Parameters
    ----------
    groups : (n,) integers, or a list of index lists
        The group of every coordinate, numbered 0, 1, 2, ...; or the coordinates of every group, each in one group.
    weights : (number of groups,) array, optional
        :math:`w_G > 0`; 1 by default. The group lasso often takes the square roots of the sizes.

    >>> import pursuit as ps
    >>> A = ps.Groups([[0, 1], [2]])
    >>> A.lmo(np.array([3.0, -4.0, 4.5])).vector, A.gauge(np.array([3.0, -4.0, 4.5]))
    (array([-0.6,  0.8,  0. ]), 9.5)

    Block OMP refits all weights of the chosen groups. Over `lin` an atom is one direction, and the refinement `Regroup`
    moves the directions of all of them to the refit:

    >>> f = ps.LeastSquares([3.0, 2.0, 1.0])
    >>> A, stop = ps.Groups([[0, 1], [2]]).through(np.triu(np.ones((3, 3)))), ps.Stop(atoms=2)
    >>> block = ps.minimize(f, ps.lin(A), ps.FullyCorrective(), refine=ps.refine.Regroup(), stop=stop)
    >>> block.coef.round(6)
    array([1., 1., 1.])
    """

    def __init__(self, groups: object, weights: object = None) -> None:
        self._order, self._bounds = _partition(groups)
        self.n, self.m = len(self._order), len(self._bounds) - 1
        self.shape = (self.n,)
        self.weights = np.ones(self.m) if weights is None else host(real_array(weights, "weights"))
        require(self.weights.shape == (self.m,), "weights", self.weights, f"one for each of the {self.m} groups")
        require(bool((self.weights > 0).all()), "the least of weights", self.weights.min(), "positive weights")
        self.radius = 1.0 / float(self.weights.min())
        self.diameter = 2.0 * self.radius
        heaviest = float(self.weights.max())
        self.width = 1.0 / (heaviest * float(np.linalg.norm(self.weights / heaviest)))

    def _coordinates(self, name: Any) -> Indices | None:
        known = isinstance(name, int | np.integer) and 0 <= name < self.m
        return self._order[self._bounds[name] : self._bounds[name + 1]] if known else None

    def _length(self, name: Any) -> float:
        return 1.0 / float(self.weights[name])

    def _norms(self, x: Array) -> Small:
        """||x_G|| for every group."""
        values = host(flat(x))[self._order]
        top = float(np.abs(values).max()) or 1.0  # scaled, so that squares stay in range
        return np.asarray(top * np.sqrt(np.add.reduceat((values / top) ** 2, self._bounds[:-1])))

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        values, merit = host(flat(g)), self._norms(g) / self.weights
        first, *others = largest(merit, several)[0].tolist()
        return [self.unit(j, -values[self._coordinates(j)]) for j in (first, *(j for j in others if merit[j] > 0))]

    def sample(self, rng: np.random.Generator) -> Atom:
        j = int(rng.integers(self.m))
        return self.unit(j, rng.standard_normal(self._bounds[j + 1] - self._bounds[j]))

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        shares = self.weights * self._norms(a)
        return bool(abs(shares.max() - 1.0) <= tolerance and shares.sum() <= 1.0 + 2.0 * tolerance)

    def gauge(self, x: Array) -> float:
        return float(self.weights @ self._norms(x))

    def __repr__(self) -> str:
        return f"Groups({quantity(self.m, 'group')} of {quantity(self.n, 'coordinate')})"


def _partition(groups: object) -> tuple[Indices, Indices]:
    """Coordinates sorted by group, and where the groups begin and end."""
    listed = as_list(groups)
    if len(listed) == 1 and listed[0] is groups:
        raise TypeError(f"groups is {describe(groups)}; give a label for each coordinate, or a list of index lists.")
    if any(isinstance(group, Iterable) and getattr(group, "ndim", 1) for group in listed):
        lists = [_integers(group, f"group {i}") for i, group in enumerate(listed)]
        order, sizes = np.concatenate([np.sort(group) for group in lists]), np.array(list(map(len, lists)))
        if not sizes.all():
            raise ValueError(f"group {np.argmin(sizes)} is empty; leave it out.")
        names, times = np.unique(order, return_counts=True)
        if (times > 1).any():
            raise ValueError(f"groups name the coordinate {names[times > 1][0]} more than once; correct the lists.")
        if not np.array_equal(names, np.arange(len(names))):
            absent = np.flatnonzero(names != np.arange(len(names)))[0]
            raise ValueError(f"groups do not name the coordinate {absent}; name 0, 1, 2, ... without gaps.")
    else:
        labels = _integers(groups if isinstance(groups, np.ndarray) else listed, "groups")
        names, sizes = np.unique(labels, return_counts=True)
        if not np.array_equal(names, np.arange(len(names))):
            raise ValueError(f"groups has labels from {names[0]} to {names[-1]}; number them 0, 1, 2, without gaps.")
        order = np.argsort(labels, kind="stable")
    if not len(order):
        raise ValueError("groups is empty; a set of atoms must not be empty.")
    return order, np.concatenate([[0], np.cumsum(sizes)])


def _integers(a: object, name: str) -> Indices:
    a = host_array(a, name)
    if a.ndim != 1:
        raise ValueError(f"{name} has shape {a.shape}; give labels, or lists of indices.")
    if a.size and a.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {a.dtype}; give integers.")
    return np.asarray(a, dtype=np.intp)


class KSupport(Selection, Units):
    r"""Vectors of unit norm with at most k nonzeros; their gauge is the k-support norm, the tightest convex relaxation
    of sparsity together with the L2 norm.

    With :math:`|x|` sorted downwards and r the least number such that :math:`|x|_{k-r-1} > T_r = \frac{1}{r+1}
    \sum_{i \ge k-r} |x|_i` (:math:`|x|_0 = \infty`), :math:`\|x\|^2 = \sum_{i < k-r} |x|_i^2 + (r+1) T_r^2`
    (Argyriou, Foygel, Srebro 2012, Proposition 2.1). The oracle keeps the k entries of -g largest in size, normalised.

    >>> import pursuit as ps
    >>> A = ps.KSupport(3, 2)
    >>> A.lmo(np.array([3.0, 1.0, -4.0])).vector, A.gauge(np.array([0.0, 3.0, -4.0]))
    (array([-0.6,  0. ,  0.8]), 5.0)
    """

    def __init__(self, n: int, k: int) -> None:
        self.n, self.k = check_selection(n, k)
        self.shape = (self.n,)
        self.radius, self.diameter, self.width = 1.0, 2.0, math.sqrt(self.k / self.n)

    def _coordinates(self, name: object) -> Indices | None:
        if not (isinstance(name, tuple) and len(name) == self.k and all(isinstance(i, int) for i in name)):
            return None
        places = np.array(name, dtype=np.intp)
        return places if places[0] >= 0 and places[-1] < self.n and (np.diff(places) > 0).all() else None

    def _length(self, name: object) -> float:
        return 1.0

    def _merit(self, g: Array) -> Small:
        return np.abs(host(flat(g)))

    def _vertex(self, chosen: Indices, g: Small) -> Atom:
        places = np.sort(chosen)
        return self.unit(tuple(places.tolist()), -g[places])

    def gauge(self, x: Array) -> float:
        sizes = np.sort(np.abs(host(flat(x))))[::-1]
        top = float(sizes[0])
        if top == 0.0:
            return 0.0
        sizes = sizes / top  # so that squares stay in range
        tails = np.cumsum(sizes[::-1])[::-1]  # tails[i]: the sum from i on
        r = np.arange(self.k)
        level = tails[self.k - 1 - r] / (r + 1)
        before = np.append(sizes[: self.k - 1][::-1], math.inf)
        s = int(np.argmax(before > level))
        head = sizes[: self.k - 1 - s]
        return top * math.sqrt(float(head @ head) + (s + 1) * float(level[s]) ** 2)
