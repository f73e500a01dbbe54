"""Products of domains: x in several pieces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy

from pursuit.arguments import describe
from pursuit.arrays import Array, namespace
from pursuit.atoms.combinations import Embedded
from pursuit.atoms.frames import Atom
from pursuit.domains.base import Domain, Part, Sum


class Product(Sum):
    """Pieces x_1, x_2, ... in their own domains, one after the other in one vector x; a sum of embedded domains."""

    def __init__(self, domains: Sequence[Domain]) -> None:
        self.domains = tuple(domains)
        if not self.domains:
            raise ValueError("product got no domain; give one for each piece of x, such as product(conv(A), conv(B)).")
        self.shapes = [_shape(d) for d in self.domains]
        ends = [sum(math.prod(s) for s in self.shapes[: b + 1]) for b in range(len(self.shapes))]
        self._places = [slice(end - math.prod(s), end) for s, end in zip(self.shapes, ends, strict=True)]
        parts = [
            _embedded(part, place.start, ends[-1])
            for d, place in zip(self.domains, self._places, strict=True)
            for part in d.parts
        ]
        super().__init__(*parts)

    def split(self, x: Array) -> list[Array]:
        """The pieces of x, each in the shape of its domain.

        >>> import numpy as np, pursuit as ps
        >>> domain = ps.product(ps.conv(ps.Simplex(2)), ps.conv(ps.Permutations(2)))
        >>> domain.split(np.arange(6.0))
        [array([0., 1.]), array([[2., 3.],
               [4., 5.]])]
        """
        xp = namespace(x)
        return [xp.reshape(x[place], shape) for place, shape in zip(self._places, self.shapes, strict=True)]

    def join(self, pieces: Sequence[Array]) -> Array:
        """The vector of these pieces: the inverse of `split`.

        >>> import numpy as np, pursuit as ps
        >>> domain = ps.product(ps.conv(ps.Simplex(2)), ps.conv(ps.Simplex(1)))
        >>> domain.join([np.array([0.5, 0.5]), np.array([1.0])])
        array([0.5, 0.5, 1. ])
        """
        xp = namespace(pieces[0])
        return xp.concat([xp.reshape(piece, (-1,)) for piece in pieces])

    def embed(self, atom: Atom, b: int) -> Atom:
        """An atom of the piece that summand b belongs to, as an atom of the summand."""
        A = self.parts[b].A
        assert isinstance(A, Embedded)
        return A.embed(atom)

    def __repr__(self) -> str:
        return f"product({', '.join(map(repr, self.domains))})"


def _shape(domain: object) -> tuple[int, ...]:
    if not isinstance(domain, Domain):
        raise TypeError(f"product got {describe(domain)}; give domains one by one, as in product(conv(A), conv(B)).")
    shape: tuple[int, ...] | None = next((part.A.shape for part in domain.parts if part.A.shape is not None), None)
    if shape is None:
        raise ValueError(f"{domain!r} does not know the shape of its atoms; set `shape` on the atom set.")
    return shape


def _embedded(part: Part, start: int, n: int) -> Part:
    """The same kind of domain of the embedded atoms."""
    other = copy(part)
    other.A = other.asked = Embedded(part.A, start, n)
    if part.asked is not part.A:
        other.asked = Embedded(part.asked, start, n)
    other.parts = (other,)
    return other
