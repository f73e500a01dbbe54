"""Updates that move one summand of a sum, or one piece of a product, at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from pursuit._memory import Memory, Remembers, WithMemory, remembering
from pursuit.active import ActiveSet
from pursuit.arguments import as_int_or_nan, check_seed, describe, use_python_numbers
from pursuit.arrays import Space
from pursuit.domains import Domain
from pursuit.objectives import Objective, Shifted
from pursuit.updates.base import Advance, Now, Update
from pursuit.updates.walks import REFRESH_PERIOD

Order = Literal["cyclic", "random", "gap", "lazy", "full"]


@dataclass(frozen=True)
class Blocks:
    r"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher, 2013): an update of one summand of a
    sum of domains, or of one piece of a product, at a time; the others stay.

    Only the oracle of the summand whose turn it is is asked. A Frank-Wolfe gap needs the answers of all summands, so
    all are asked at the first iteration and then after every `certify` rounds of as many iterations as there are
    summands; the gap is computed there, and in between the bound stays. Steps of an open loop count rounds, so that B
    summands have :math:`\gamma = 2B/(t + 2B)`.

    Parameters
    ----------
    update : Update
        How a summand is changed: any update that serves its domain alone.
    order : str
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

    update: Update
    order: Order = "cyclic"
    certify: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.update, type | Blocks) or not hasattr(self.update, "descends"):
            raise TypeError(f"update is {describe(self.update)}; give an update of one summand, such as Away().")
        if getattr(self.update, "faces", False):
            raise TypeError(
                f"update is {describe(self.update)}, which looks at faces of the whole domain; give Away()."
            )
        if not (isinstance(self.order, str) and self.order in get_args(Order)):
            raise ValueError(f"order is {describe(self.order)}; give one of {', '.join(map(repr, get_args(Order)))}.")
        if not as_int_or_nan(self.certify) >= 1:
            raise ValueError(f"certify is {describe(self.certify)}; give a number of rounds of at least 1.")
        check_seed(self.seed)
        use_python_numbers(self)

    @property
    def several(self) -> int:
        return self.update.several

    @property
    def blends(self) -> bool:
        return self.update.blends

    @property
    def descends(self) -> bool:
        return self.update.descends

    def begin(self, f: Objective, domain: Domain, space: Space) -> Advance:
        count = len(domain.parts)
        blocks = tuple(_Block(self.update, f, domain, space, b) for b in range(count))
        run = Memory(gaps=np.full(count, np.inf), current=0, rng=np.random.default_rng(self.seed), blocks=blocks)

        def choose(now: Now) -> list[int]:
            """The blocks that move now."""
            for b, (part, answer) in enumerate(zip(domain.parts, now.answers, strict=True)):
                if answer.calls:
                    run.gaps[b] = -part.descent(answer.dot, answer.level)
            if self.order == "full":
                return list(range(count))
            asked = [b for b, answer in enumerate(now.answers) if answer.calls]
            return [run.current] if run.current in asked else [int(run.gaps.argmax())]

        def next_turn() -> int:
            if self.order == "cyclic":
                return int(run.current + 1) % count
            if self.order == "random":
                return int(run.rng.integers(count))
            lazy = self.order == "lazy" and run.gaps[run.current] >= 0.5 * run.gaps.max()
            return int(run.current if lazy else run.gaps.argmax())

        def advance(now: Now, active: ActiveSet) -> None:
            for turn, b in enumerate(choose(now)):
                blocks[b].advance(now, now.iteration // count, active, fresh=turn == 0)
            run.current = next_turn()
            everyone = self.order == "full" or (now.iteration + 1) % (self.certify * count) == 0
            active.turn = None if everyone else [run.current]

        return WithMemory(advance, run)


class _Block(Remembers):
    """One summand in a run: its own active set, and f as a function of its point alone."""

    remembers = ("own", "_advance", "_turns")

    def __init__(self, update: Update, f: Objective, domain: Domain, space: Space, b: int) -> None:
        self.b, self.part, self.space = b, domain.parts[b], space
        self.f = Shifted(f, space)
        self.own = self.part.active_set(space)
        self._advance = remembering(update.begin(self.f, self.part, space))
        self._turns = 0

    def advance(self, now: Now, turn: int, active: ActiveSet, fresh: bool) -> None:
        """Move this block for the turn-th time; `fresh` says that the gradient is that at x."""
        b, own, mine = self.b, self.own, active.support[active.blocks[active.support] == self.b]
        members, support = [active.atoms[i] for i in mine], own.support
        if [own.atoms[i] for i in support] != members or (own.weights[support] != active.weights[mine]).any():
            own.replace(active.weights[mine], members)  # a refinement has changed the block, or the user began there
        others = active.cost - own.cost
        own.wanted, own.deadline, self.f.rest = active.wanted, active.deadline, active.x - own.x
        answer, value, grad = now.answers[b], now.value - others, now.grad
        if not fresh:
            alone, grad = self.f.value_and_grad(own.x)
            value, dot = alone + own.cost, answer.atoms[0].dot(self.space, grad) + self.part.price
            answer = replace(answer, dot=dot, level=own.levels(grad)[0])
        self._advance(Now(turn, value, grad, [answer]), own)
        active.weights[active.blocks == b] = 0.0
        for atom, weight in zip(own.atoms, own.weights, strict=True):
            if weight:
                place, sign = active.enter(atom, b)
                active.weights[place] = sign * weight
        active.keep(active.weights != 0)
        active.x, active.wanted = self.f.rest + own.x, own.wanted
        self._turns += 1
        if self._turns % REFRESH_PERIOD == 0:
            active.refresh()
