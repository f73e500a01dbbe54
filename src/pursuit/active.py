"""The active set S: a few atoms, their weights, and the point x = sum_a w_a a."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arguments import quantity
from pursuit.arrays import Array, Indices, Small, Space, no_places, no_weights
from pursuit.atoms.frames import Atom, Frame
from pursuit.metrics import Metric
from pursuit.state import Fields, Stateful

WANTED = 1 << 30
"""The number of atoms of an answer that an update can use, as long as it has said nothing: all."""

UNUSED = 64
"""Atoms of weight zero that S may hold, beside as many as have weight, where blocks of it are set."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time of `time.perf_counter`. Loops inside an iteration look whether it has `passed`, and end where the point is
    that of its weights and atoms."""

    end: float = math.inf

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.perf_counter() >= self.end


@dataclass(eq=False, repr=False)
class ActiveSet(Stateful):
    """Atoms in the order of their entry, their weights, and the point x = sum_a w_a a.

    As in the paper, an atom whose weight becomes zero stays in S and may get weight again without an oracle call. `len`
    and `support` count only the atoms whose weight is not zero.

    There is one block of atoms per summand of the domain. A `signless` block (a span) holds an atom and its negative as
    one entry, with a weight of either sign: two entries would make the Gram matrix singular.

    >>> import pursuit as ps
    >>> domain, space = ps.lin(ps.SignedBasis(3)), ps.Space.default((3,))
    >>> active = domain.active_set(space)
    >>> place, _ = active.enter(ps.SparseAtom([1], [1.0], (3,), source=1))
    >>> active.weights[place] = 2.0
    >>> active.refresh()
    >>> active, active.x
    (ActiveSet(1 atom with weight, 1 in all), array([0., 2., 0.]))
    """

    space: Space
    signless: Sequence[bool]
    counted: Sequence[bool] = ()
    """Whether the atoms of each block count where atoms are counted; by default all do."""
    prices: Sequence[float] = ()
    """What a unit of weight costs in each block: the factor of a penalty, and 0 elsewhere."""
    atoms: list[Atom] = field(default_factory=list, init=False)
    weights: Small = field(default_factory=no_weights, init=False)
    blocks: Indices = field(default_factory=no_places, init=False)
    x: Array = field(init=False)
    wanted: int = field(default=WANTED, init=False)
    """The number of atoms of the next answer that the update can use."""
    replaced: int = field(default=0, init=False)
    """How often all atoms were replaced, as by refinements."""

    def __post_init__(self) -> None:
        self.x = self.space.zeros()
        self.deadline = Deadline()
        self.step = math.nan
        """The length of the last step, of updates that walk along one direction."""
        """When the run must end; `minimize` sets it. Long loops of updates and refinements look at it."""
        self.ceiling = math.inf
        """The largest value of f that a refinement may propose; the run sets it."""
        self.turn: dict[int, Callable[[ActiveSet], ActiveSet]] | None = None
        """The blocks whose oracles are asked next, each with the function that gives it alone; None: all."""
        self._counted = None if all(self.counted) else np.array(self.counted)
        self._prices = np.array(self.prices or [0.0] * len(self.signless))
        self._priced = bool(self._prices.any())
        self._index: dict[Hashable, int] = {}
        self._keys: list[Hashable] = []
        self._frames: list[tuple[Frame, list[int]]] = []  # and the places of their atoms in the order above
        self._unframed: list[int] = []  # the places of the others

    def __len__(self) -> int:
        return int(np.count_nonzero(self.weights))

    @property
    def count(self) -> int:
        """The number of atoms with weight, without those of uncounted summands."""
        counted = self.weights if self._counted is None else self.weights[self._counted[self.blocks]]
        return int(np.count_nonzero(counted))

    @property
    def terms(self) -> float:
        """sum_a |w_a| ||a||, the unit of the rounding errors of x, which may leave the domain by so much."""
        return float(sum(abs(self.weights[i]) * self.atoms[i].norm(self.space) for i in self.support))

    @property
    def support(self) -> Indices:
        """Places of the atoms whose weight is not zero."""
        return np.flatnonzero(self.weights)

    def of(self, block: int) -> Indices:
        """Places of the atoms of a block whose weight is not zero."""
        return np.flatnonzero((self.blocks == block) & (self.weights != 0))

    def enter(self, atom: Atom, block: int = 0) -> tuple[int, float]:
        """The place of the atom, which enters with weight 0 if it is new, and its sign relative to the entry there."""
        signless = self.signless[block]
        key = (block, atom.key(signless))
        i = self._index.get(key)
        if i is not None:
            sign = self._sign(i, atom) if signless else 1.0
            if type(atom) is Atom and atom.source is not None and atom is not self.atoms[i]:
                self._check_same(self.atoms[i], atom, sign)
            return i, sign
        flip, i = signless and atom.coef < 0, len(self.atoms)  # so that weights in a span are plain coefficients
        atom = atom.scaled(-1.0) if flip else atom
        self._index[key] = i
        self._keys.append(key)
        self._unframed.append(i)
        self.atoms.append(atom)
        self.weights = np.concatenate([self.weights, (0.0,)])
        self.blocks = np.concatenate([self.blocks, (block,)])
        return i, -1.0 if flip else 1.0

    def _check_same(self, stored: Atom, atom: Atom, sign: float) -> None:
        """Refuse an atom that has the source of an entry but is another vector."""
        known = stored.dense(self.space)
        square, product = self.space.dots((known, known), (atom.vector, known))
        same = abs(product - sign * square) <= 1e-4 * square
        if not same and 0 < square < float("inf"):
            raise ValueError(
                f"two different atoms have the source {atom.source!r}; tell them apart by source or by coef=."
            )

    def _sign(self, i: int, atom: Atom) -> float:
        stored = self.atoms[i]
        if atom.source is not None:
            return float(np.sign(atom.coef * stored.coef))
        return 1.0 if self.space.dot(atom.dense(self.space), stored.dense(self.space)) > 0 else -1.0

    @property
    def _parts(self) -> list[tuple[Frame, list[int]]]:
        """The frames, each with the places of its atoms, which join the frame of their kind when it is asked for:
        updates that only walk need none."""
        for i in self._unframed:
            atom = self.atoms[i]
            part = next((part for part in self._frames if part[0].holds(atom)), None)
            if part is None:
                part = (atom.frame(self.space), [])
                self._frames.append(part)
            part[0].append(atom)
            part[1].append(i)
        self._unframed = []
        return self._frames

    def assign(self, block: int, weights: Small, atoms: Sequence[Atom]) -> None:
        """Set the atoms with weight of a block. The point is not changed."""
        self.weights[self.blocks == block] = 0.0
        for weight, atom in zip(weights.tolist(), atoms, strict=True):
            if weight:
                place, sign = self.enter(atom, block)
                self.weights[place] = sign * weight
        if len(self.atoms) > 2 * len(self) + UNUSED:
            self.keep(self.weights != 0)

    def keep(self, mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Drop the atoms where the mask is False."""
        if mask.all():
            return
        new_place = np.cumsum(mask) - 1
        frames = []
        for frame, places in self._frames:
            kept = np.flatnonzero(mask[places])
            if len(kept):
                frame.keep(kept)
                frames.append((frame, [int(new_place[places[i]]) for i in kept]))
        self._frames, self._unframed = frames, [int(new_place[i]) for i in self._unframed if mask[i]]
        self.atoms = [a for a, stays in zip(self.atoms, mask, strict=True) if stays]
        self._keys = [k for k, stays in zip(self._keys, mask, strict=True) if stays]
        self._index = {k: i for i, k in enumerate(self._keys)}
        self.weights, self.blocks = self.weights[mask], self.blocks[mask]

    def replace(self, weights: Sequence[float] | Small, atoms: Sequence[Atom], blocks: ArrayLike = 0) -> None:
        """Replace all atoms and weights by these."""
        self.atoms, self._keys, self._index, self._frames, self._unframed = [], [], {}, [], []
        self.replaced += 1
        self.weights, self.blocks = np.zeros(0), np.zeros(0, dtype=np.intp)
        for w, atom, block in zip(weights, atoms, np.broadcast_to(blocks, (len(atoms),)), strict=True):
            i, sign = self.enter(atom, int(block))
            self.weights[i] += sign * w
        self.keep(self.weights != 0)
        self.refresh()

    def state(self) -> Fields:
        """Also the places of the atoms in the order of the frames, in which they are added up to x."""
        return super().state() | {"frames": [i for _, places in self._parts for i in places]}

    def restore(self, state: Fields) -> None:
        super().restore({name: value for name, value in state.items() if name != "frames"})
        self._keys = [(int(b), a.key(self.signless[b])) for a, b in zip(self.atoms, self.blocks, strict=True)]
        self._index = {key: i for i, key in enumerate(self._keys)}
        self._frames, self._unframed = [], list(state["frames"])

    def refresh(self) -> None:
        """Compute the point from the weights."""
        self.x = self.synthesize(self.weights)

    def __repr__(self) -> str:
        return f"ActiveSet({quantity(len(self), 'atom')} with weight, {len(self.atoms)} in all)"

    def synthesize(self, w: Small) -> Array:
        """sum_a w_a a."""
        if not (parts := self._parts):
            return self.space.zeros()
        (frame, places), *rest = parts
        x = frame.synthesize(w[places] if rest else w)
        for frame, places in rest:
            x = x + frame.synthesize(w[places])
        return x

    def analyze(self, g: Array) -> Small:
        """<g, a> for every active atom."""
        if len(parts := self._parts) == 1:
            return parts[0][0].analyze(g)
        out = np.empty(len(self.atoms))
        for frame, places in parts:
            out[places] = frame.analyze(g)
        return out

    def levels(self, g: Array) -> list[float]:
        """<g, x_b> for the point x_b = sum_a w_a a of each block, plus its cost."""
        if len(self.signless) == 1:
            return [self.space.dot(g, self.x) + self.cost]
        return [float(v) for v in np.bincount(self.blocks, self.weights * self.slopes(g), len(self.signless))]

    def slopes(self, g: Array) -> Small:
        """<g, a> for every active atom, plus the price of its weight."""
        return self.analyze(g) + self._prices[self.blocks] if self._priced else self.analyze(g)

    def cost_of(self, w: Small) -> float:
        """The cost of these weights."""
        return float(self._prices[self.blocks] @ w) if self._priced else 0.0

    @property
    def cost(self) -> float:
        """The cost of x, to be added to f(x)."""
        return self.cost_of(self.weights) if self._priced else 0.0

    def inner(self, metric: Metric, i: int) -> Small:
        """<a, M a_i> for every atom a of S."""
        out = np.empty(len(self.atoms))
        for frame, places in self._parts:
            out[places] = frame.inner(metric, self.atoms[i])
        return out

    def rows(self, metric: Metric, start: int) -> Small:
        """<a, M b> for every atom a of S, a row for each atom b from place `start` on."""
        if len(parts := self._parts) == 1:
            return parts[0][0].rows_from(metric, start)
        if not start:
            return self.gram(metric, np.arange(len(self.atoms)))
        return np.stack([self.inner(metric, i) for i in range(start, len(self.atoms))])

    def gram(self, metric: Metric, which: Indices) -> Small:
        """<a, M b> for all pairs of the atoms at these places."""
        if len(parts := self._parts) == 1:
            return parts[0][0].gram(metric, which)
        out, row_of = np.empty((len(which), len(which))), {int(place): row for row, place in enumerate(which)}
        pieces = []  # frames, the places of their atoms in them, and the rows of these atoms
        for frame, places in parts:
            chosen = np.array([i for i, place in enumerate(places) if place in row_of], dtype=np.intp)
            if len(chosen):
                pieces.append((frame, chosen, np.array([row_of[places[i]] for i in chosen])))
                out[np.ix_(pieces[-1][2], pieces[-1][2])] = frame.gram(metric, chosen)
        for one, other in combinations(sorted(pieces, key=lambda piece: len(piece[1])), 2):
            for row in one[2]:  # the fewer atoms
                out[row, other[2]] = out[other[2], row] = other[0].inner(metric, self.atoms[which[row]])[other[1]]
        return out
