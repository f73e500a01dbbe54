"""What the user gave to `best`, as columns: those that are chosen from, in units, and those that do not count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pursuit.arguments import describe
from pursuit.arrays import Indices, Small, host
from pursuit.atoms.base import Atoms
from pursuit.atoms.columns import Dictionary
from pursuit.atoms.combinations import Image, unscaled
from pursuit.atoms.frames import Atom
from pursuit.atoms.groups import Groups
from pursuit.atoms.sparse import SparseAtom
from pursuit.atoms.vectors import SignedBasis
from pursuit.domains import Cone, Domain, Span, lin
from pursuit.objectives import Huber, LeastSquares, Logistic, Poisson

SERVED = "Dictionary, SignedBasis or Groups, or an image of the latter, A.through(X)"


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a set of atoms, as vectors of H, and the unit that each belongs to."""

    A: Atoms
    matrix: Small
    labels: Indices

    @classmethod
    def of(cls, A: Atoms) -> Columns:
        """The columns of a set."""
        inner, factor = unscaled(A)
        if isinstance(inner, Dictionary):
            return cls(A, factor * _dense(inner.D).reshape(-1, inner.n), np.arange(inner.n))
        base, M = (inner.base, inner.map) if isinstance(inner, Image) and not inner.signed else (inner, None)
        if not isinstance(base, SignedBasis | Groups) or (M is not None and M.lifted):
            raise TypeError(f"A is {describe(A)}; best chooses from {SERVED} (a ridge is given as l2=).")
        labels = np.arange(base.n)
        if isinstance(base, Groups):
            for name in range(base.m):
                labels[base._coordinates(name)] = name
        if M is None:
            return cls(A, factor * np.eye(base.n), labels)
        outputs = M.shape[1] if len(M.shape) == 2 else 1
        return cls(A, np.asarray(factor * np.kron(_dense(M.M), np.eye(outputs)), dtype=np.float64), labels)

    @property
    def units(self) -> int:
        """The number of units."""
        return int(self.labels.max()) + 1

    def atoms(self, unit: int, b: Small) -> tuple[list[Atom], list[float]]:
        """Atoms of a unit and their weights, for these coefficients of its columns."""
        inner, _ = unscaled(self.A)
        size = math.hypot(*b)  # of any size
        if isinstance(inner, Dictionary) or not size:
            a = self.A.rebuild(Atom(np.zeros(1), unit, 1.0)) if size else None
            return ([a], [float(b[0]) / a.coef]) if a is not None else ([], [])
        base: Any = inner.base if isinstance(inner, Image) else inner
        if isinstance(base, Groups):
            a = self.A.rebuild(base.unit(unit, b))
        else:
            a = self.A.rebuild(SparseAtom(np.array([unit]), np.sign(b), base.shape, unit, float(np.sign(b[0]))))
        assert a is not None
        length = abs(a.coef) if isinstance(base, Groups) else 1.0
        return [a], [size / length]


def _dense(D: Any) -> Small:
    if hasattr(D, "toarray"):
        return np.asarray(D.toarray(), dtype=np.float64)
    if hasattr(D, "matvec") and not hasattr(D, "__array__"):
        return np.asarray(D @ np.eye(D.shape[-1]), dtype=np.float64)
    return np.asarray(host(D), dtype=np.float64)


def with_data(f: Any, y: Small, weights: Any) -> Any:
    """The same loss of other data."""
    return Huber(y, f.width, weights) if isinstance(f, Huber) else type(f)(y, weights)


@dataclass(frozen=True, eq=False)
class Given:
    """A best-subset problem in the words of the user, with the columns read once."""

    f: LeastSquares | Logistic | Poisson | Huber
    domain: Domain
    l2: float
    place: int
    """Of the summand that is chosen from."""

    @classmethod
    def read(cls, f: Any, A: Any, l2: float) -> Given:
        """The problem, or an error that names the argument."""
        if not isinstance(f, LeastSquares | Logistic | Poisson | Huber):
            raise TypeError(f"f is {describe(f)}; best needs LeastSquares, Logistic, Poisson or Huber.")
        domain = A if isinstance(A, Domain) else lin(A)
        places = [i for i, part in enumerate(domain.parts) if part.counted]
        spans = all(isinstance(part, Span) for i, part in enumerate(domain.parts) if i not in places)
        if len(places) != 1 or not spans or not isinstance(domain.parts[places[0]], Span | Cone):
            raise ValueError(
                f"A is {domain!r}; give one lin(A) or cone(A), and what does not count as lin(B, counted=False)."
            )
        return cls(f, domain, l2, places[0])

    @property
    def positive(self) -> bool:
        """Whether weights must not be negative."""
        return isinstance(self.domain.parts[self.place], Cone)

    @cached_property
    def chosen(self) -> Columns:
        """The columns that are chosen from."""
        return Columns.of(self.domain.parts[self.place].A)

    @cached_property
    def uncounted(self) -> Small:
        """The columns that do not count."""
        others = [Columns.of(part.A).matrix for i, part in enumerate(self.domain.parts) if i != self.place]
        n = self.chosen.matrix.shape[0]
        return np.concatenate([np.zeros((n, 0)), *others], axis=1)

    @cached_property
    def loss(self) -> LeastSquares | Logistic | Poisson | Huber:
        """f on NumPy's float64."""
        f, y = self.f, np.asarray(host(self.f.y), dtype=np.float64)
        weights = (
            None if np.ndim(f._host_weights) == 0 and f.weights == 1.0 else np.asarray(f._host_weights, np.float64)
        )
        loss: LeastSquares | Logistic | Poisson | Huber = with_data(f, y, weights)
        if loss.y.size != self.chosen.matrix.shape[0]:
            raise ValueError(f"f has {loss.y.size} entries, the atoms of A have {self.chosen.matrix.shape[0]}.")
        return loss
