"""When a run ends, and why."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from pursuit.arguments import as_int_or_nan, describe, number, use_python_numbers

if TYPE_CHECKING:
    from pursuit.run.result import State


class Status(Enum):
    """Why a run ended.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), stop=ps.Stop(atoms=1))
    >>> r.status is ps.Status.ATOMS, r.status.value
    (True, 'the number of atoms asked for is active')
    """

    GAP = "the certified gap is within the tolerance"
    NEARLY_STATIONARY = "the Frank-Wolfe gap, which proves nothing more without convexity, is within the tolerance"
    VALUE = "the objective is at or below the value asked for"
    ATOMS = "the number of atoms asked for is active"
    ITERATIONS = "the limit on iterations is reached"
    SECONDS = "the limit on time is reached"
    CALLBACK = "the callback asked to stop"
    INTERRUPTED = "the run was interrupted by Ctrl-C"
    STATIONARY = "no atom correlates with the gradient beyond rounding"
    STALLED = "the update no longer lowers the objective beyond rounding"
    CONTRADICTION = "f or the oracle contradicts itself or convexity, so that nothing is proved"
    UNBOUNDED = "the objective falls for ever along a direction of the domain"


@dataclass(frozen=True)
class Stop:
    """Stopping rules. A run stops at the first rule that it meets.

    Parameters
    ----------
    gap : float, optional
        Certified gap, absolute. Of an f that is not convex, the Frank-Wolfe gap: `State.stationarity`.
    rgap : float, optional
        The same relative to |f(x)|. It holds beside `gap`, and a run stops where one of the two is met: for an absolute
        gap alone, give `Stop(gap=1e-9, rgap=None)`.
    atoms : int, optional
        Number of active atoms, without those of summands `lin(B, counted=False)` (an intercept). An update that admits
        several atoms per oracle call may exceed it; with one atom per call the number is exact.
    iterations : int
        Those of a `start` or a checkpoint that is continued count, too.
    seconds : float, optional
        The time of this call. Updates and refinements look at it, too. A run takes longer by at most an oracle call and
        a step of theirs.
    value : float, optional
        Objective value.

    Examples
    --------
    >>> import pursuit as ps
    >>> f, domain = ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))
    >>> ps.minimize(f, domain, stop=ps.Stop(atoms=1)).x
    array([3., 0.])
    >>> ps.minimize(f, domain, stop=ps.Stop(gap=1e-12, rgap=None, seconds=5.0)).x
    array([3., 1.])
    """

    gap: float | None = None
    rgap: float | None = 1e-6
    atoms: int | None = None
    iterations: int | None = 10_000
    seconds: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        for name in ("gap", "rgap", "atoms", "iterations", "seconds"):
            limit, counts = vars(self)[name], name in ("atoms", "iterations")
            read = as_int_or_nan if counts and number(limit) < math.inf else number
            if limit is not None and not read(limit) >= 0:
                kind = "an integer" if counts else "a number"
                raise ValueError(
                    f"Stop({name}={describe(limit)}) can never be met; give {kind} of at least 0, or None."
                )
        if self.value is not None and math.isnan(number(self.value)):
            raise ValueError(f"Stop(value={describe(self.value)}) can never be met; give a number, or None.")
        use_python_numbers(self)

    def largest_gap(self, value: float) -> float:
        """The gap that is small enough at this value of f."""
        return max(self.gap or 0.0, (self.rgap or 0.0) * abs(value))

    def met(self, state: State, seconds: float) -> list[Status]:
        """The rules that this state meets, in the order in which they count."""
        bound = state.bound
        limit = min(self.largest_gap(state.value), sys.float_info.max)  # an infinite gap is within no tolerance
        wanted = self.gap is not None or self.rgap is not None
        rules = (
            (Status.CONTRADICTION, bound.contradicted),
            (Status.GAP, wanted and state.gap <= limit),
            (Status.NEARLY_STATIONARY, wanted and not state.convex and state.stationarity <= limit),
            (Status.VALUE, self.value is not None and state.value <= self.value),
            (Status.ATOMS, self.atoms is not None and state.active.count >= self.atoms),
            (Status.STATIONARY, bound.stationary),
            (Status.STALLED, bound.stalled),
            (Status.ITERATIONS, self.iterations is not None and state.iteration >= self.iterations),
            (Status.SECONDS, self.seconds is not None and seconds >= self.seconds),
        )
        return [status for status, met in rules if met]
