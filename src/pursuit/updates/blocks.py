"""Updates that move one summand of a sum, or one piece of a product, at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, check_seed, describe, require, use_python_numbers
from pursuit.arrays import Small, Space
from pursuit.domains import Domain, Part
from pursuit.objectives import Objective, Shifted
from pursuit.state import Stateful
from pursuit.updates.base import Advance, Now, Update
from pursuit.updates.walks import REFRESH_PERIOD

Order = Literal["cyclic", "random", "gap", "lazy", "full"]


@dataclass(frozen=True)
class Blocks(Update):
    r"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher, 2013): an update of one summand of a
    sum of domains, or of one piece of a product, at a time; the others stay.

    Only the oracle of the summand whose turn it is is asked. A Frank-Wolfe gap needs the answers of all summands, so
    all are asked at the first iteration and then after every `certify` rounds of as many iterations as there are
    summands; the gap is computed there, and in between the bound stays. Steps of an open loop count rounds, so that B
    summands have :math:`\gamma = 2B/(t + 2B)`.

    Parameters
    ----------
    update : Update, or one for each summand
        How a summand is changed: any update that serves its domain alone.
    order : str, or sequence of int
        The places of the summands in the order of their turns, again and again; or
        "cyclic": in turn. "random": at random. "gap": the one whose last answer had the largest gap (Osokin et al.,
        2016). "lazy": the same one until its gap is below half of the largest gap of the others. "full": all, one after
        the other, each with the new gradient; then all oracles are asked in every iteration.
    certify : int
        The rounds after which all oracles are asked.
    seed : int
        The seed of the random order.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> y = np.array([0.9, 0.5, 0.2, 0.1, 0.7])
    >>> domain = ps.product(ps.conv(ps.Simplex(2)), ps.conv(ps.Simplex(3)))
    >>> r = ps.minimize(ps.LeastSquares(y), domain, ps.Blocks(ps.Away()))
    >>> [piece.round(6) for piece in domain.split(r.x)], r.status.name
    ([array([0.7, 0.3]), array([0.2, 0.1, 0.7])], 'GAP')
    """

    cites: ClassVar[tuple[str, ...]] = ("lacostejulien2013block",)
    update: Update | Sequence[Update]
    order: Order | Sequence[int] = "cyclic"
    certify: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.update, list):
            object.__setattr__(self, "update", tuple(self.update))
        for update in self.updates or (self.update,):
            if isinstance(update, Blocks) or not isinstance(update, Update):
                raise TypeError(f"update is {describe(update)}; give an update of one summand, such as Away().")
            if update.faces:
                raise TypeError(f"update is {describe(update)}, which looks at faces of the whole domain; give Away().")
        given = isinstance(self.order, list | tuple | range)
        if given and len(self.order) and min(map(as_int_or_nan, self.order)) >= 0:
            object.__setattr__(self, "order", tuple(map(int, self.order)))
        else:
            known = ", ".join(map(repr, get_args(Order)))
            valid = isinstance(self.order, str) and self.order in get_args(Order)
            require(valid, "order", self.order, f"one of {known}, or the places of summands")
        require(as_int_or_nan(self.certify) >= 1, "certify", self.certify, "a number of rounds of at least 1")
        check_seed(self.seed)
        use_python_numbers(self)

    @property
    def updates(self) -> tuple[Update, ...]:
        """The update of each summand, or the one of all."""
        return tuple(self.update) if isinstance(self.update, Sequence) else (self.update,)

    @property
    def places(self) -> tuple[int, ...]:
        """The places of the summands in the order of their turns, where the user gave them."""
        return () if isinstance(self.order, str) else tuple(self.order)

    @property
    def several(self) -> int:  # type: ignore[override]
        return max(update.several for update in self.updates)

    @property
    def blends(self) -> bool:  # type: ignore[override]
        return any(update.blends for update in self.updates)

    @property
    def descends(self) -> bool:  # type: ignore[override]
        return all(update.descends for update in self.updates)

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        alone = Shifted(f, space)  # of the block that moves
        count, updates = len(domain.parts), self.updates
        if len(updates) not in (1, count) or max(self.places, default=0) >= count:
            raise ValueError(f"{self!r} does not fit {count} summands; give one update, or one each, and their places.")
        each = updates * count if len(updates) == 1 else updates
        blocks = tuple(_Block(b, part, each[b], alone, space) for b, part in enumerate(domain.parts))
        turns = _Turns(self, domain, blocks, np.random.default_rng(self.seed))
        if self.places:
            turns._current = self.places[0]
        return turns


@dataclass(eq=False)
class _Turns(Stateful):
    """The blocks of one run, and whose turn it is."""

    plan: Blocks
    domain: Domain
    blocks: tuple[_Block, ...]
    rng: np.random.Generator
    _gaps: Small = field(init=False)
    _current: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._gaps = np.full(len(self.blocks), np.inf)

    def __call__(self, now: Now, active: ActiveSet) -> None:
        count, everyone = len(self.blocks), range(len(self.blocks))
        for b in everyone if active.turn is None else active.turn:
            answer = now.answers[b]
            if answer.calls:
                self._gaps[b] = -self.domain.parts[b].descent(answer.dot, answer.level)
        for turn, b in enumerate(everyone if self.plan.order == "full" else [self._choose(now)]):
            self.blocks[b].advance(now, now.iteration // count, active, fresh=turn == 0)
        self._current = self._next(now.iteration)
        all_next = self.plan.order == "full" or (now.iteration + 1) % (self.plan.certify * count) == 0
        active.turn = None if all_next or count == 1 else {self._current: self.blocks[self._current].alone}

    def _choose(self, now: Now) -> int:
        """The block that moves now."""
        given = self.plan.places or now.answers[self._current].calls
        return self._current if given else int(self._gaps.argmax())

    def _next(self, iteration: int) -> int:
        """The block that moves next."""
        order, places, gaps = self.plan.order, self.plan.places, self._gaps
        if places:
            return places[(iteration + 1) % len(places)]
        if order == "cyclic":
            return (self._current + 1) % len(self.blocks)
        if order == "random":
            return int(self.rng.integers(len(self.blocks)))
        lazy = order == "lazy" and gaps[self._current] >= 0.5 * gaps.max()
        return self._current if lazy else int(gaps.argmax())


@dataclass(eq=False)
class _Block(Stateful):
    """One summand in a run: its own active set, and f as a function of its point alone."""

    b: int
    part: Part
    update: Update
    f: Shifted
    space: Space
    own: ActiveSet = field(init=False)
    _advance: Advance = field(init=False)
    _turns: int = field(default=0, init=False)
    _replaced: int = field(default=-1, init=False)
    """How often the atoms of the run had been replaced when this set was taken from them."""

    def __post_init__(self) -> None:
        self.own = self.part.active_set(self.space)
        self._advance = self.update.begin(self.f, self.part, self.space)

    def alone(self, active: ActiveSet) -> ActiveSet:
        """The active set of this block alone."""
        if self._replaced != active.replaced:  # the run begins, or a refinement has changed the block
            mine, self._replaced = active.of(self.b), active.replaced
            self.own.replace(active.weights[mine], [active.atoms[i] for i in mine])
        return self.own

    def advance(self, now: Now, turn: int, active: ActiveSet, fresh: bool) -> None:
        """Move this block for the turn-th time; `fresh` says that the gradient is that at x."""
        b, own = self.b, self.alone(active)
        others = active.cost - own.cost
        own.wanted, own.deadline, self.f.rest = active.wanted, active.deadline, active.x - own.x
        answer, value, grad = now.answers[b], now.value - others, now.grad
        if not fresh:
            alone, grad = self.f.value_and_grad(own.x)
            value, dot = alone + own.cost, answer.atoms[0].dot(own.space, grad) + self.part.price
            answer = replace(answer, dot=dot, level=own.levels(grad)[0])
        self._advance(Now(turn, value, grad, [answer]), own)
        active.assign(b, own.weights, own.atoms)
        active.x, active.wanted, active.step = self.f.rest + own.x, own.wanted, own.step
        self._turns += 1
        if self._turns % REFRESH_PERIOD == 0:
            active.refresh()
