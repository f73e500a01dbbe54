"""What comes out: states, rules to stop, traces, results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from pursuit._arrays import Array, Indices, Small, Space
from pursuit.active import ActiveSet
from pursuit.atoms.frames import Atom
from pursuit.certificates import Certificate
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective
from pursuit.oracles import admitted, asking
from pursuit.promises import Promise, promise

CHECK = 1
"""The seed of the searches of `check`: a bound that holds but for a small chance needs random numbers on which x
does not depend, and the run has used those of seed 0."""


class Status(Enum):
    """Why a run ended."""

    GAP = "the certified gap is within the tolerance"
    VALUE = "the objective is at or below the value asked for"
    ATOMS = "the number of atoms asked for is active"
    ITERATIONS = "the limit on iterations is reached"
    SECONDS = "the limit on time is reached"
    CALLBACK = "the callback asked to stop"
    STATIONARY = "no atom correlates with the gradient beyond rounding"
    STALLED = "the update no longer lowers the objective beyond rounding"
    UNBOUNDED = "the objective falls for ever along a direction of the domain"


@dataclass(slots=True)
class State:
    """What one iteration knows, before its update. `active` is the live set of the run: read it, don't keep it."""

    iteration: int
    x: Array
    value: float
    grad: Array
    answers: list[Answer]
    gap: float
    lower: float
    active: ActiveSet
    oracle_calls: int
    cached: int
    refused: int
    stationary: bool
    stalled: bool

    @property
    def atom(self) -> Atom:
        """The atom that the oracle named (for the first summand of a sum)."""
        return self.answers[0].atoms[0]

    def known(self) -> dict[str, Any]:
        """The fields of a `Result` that one state determines, copied where the run would go on to change them."""
        support = self.active.support
        return {
            "x": self.x,
            "value": self.value,
            "gap": self.gap,
            "lower": self.lower,
            "iterations": self.iteration,
            "oracle_calls": self.oracle_calls,
            "cached": self.cached,
            "refused": self.refused,
            "weights": self.active.weights[support],
            "atoms": [self.active.atoms[i] for i in support],
            "blocks": self.active.blocks[support],
            "answers": self.answers,
        }


@dataclass(frozen=True)
class Stop:
    """When to stop; the first rule met decides.

    Parameters
    ----------
    gap : float, optional
        Certified gap, absolute.
    rgap : float, optional
        Certified gap relative to |f(x)|.
    atoms : int, optional
        Number of active atoms. An update that admits several atoms a call may pass it; one atom a call does not.
    iterations : int
    seconds : float, optional
    value : float, optional
        Objective value.
    """

    gap: float | None = None
    rgap: float | None = 1e-6
    atoms: int | None = None
    iterations: int | None = 10_000
    seconds: float | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        for name in ("gap", "rgap", "atoms", "iterations", "seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit >= 0:
                raise ValueError(f"Stop({name}={limit}) can never be met; give a number of at least 0, or None.")
        if self.value is not None and math.isnan(self.value):
            raise ValueError("Stop(value=nan) can never be met; give a number, or None.")

    def reached(self, state: State, seconds: float) -> Status | None:
        """The rule that this state meets."""
        gap_limit = max(self.gap or 0.0, (self.rgap or 0.0) * abs(state.value))
        if (self.gap is not None or self.rgap is not None) and state.gap <= gap_limit and math.isfinite(state.gap):
            return Status.GAP
        if self.value is not None and state.value <= self.value:
            return Status.VALUE
        if self.atoms is not None and len(state.active) >= self.atoms:
            return Status.ATOMS
        if state.stationary:
            return Status.STATIONARY
        if state.stalled:
            return Status.STALLED
        if self.iterations is not None and state.iteration >= self.iterations:
            return Status.ITERATIONS
        if self.seconds is not None and seconds >= self.seconds:
            return Status.SECONDS
        return None


class Trace:
    """One row per iteration: columns iteration, value, gap, atoms, oracle_calls, seconds, as arrays.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective())
    >>> r.trace.value, r.trace.atoms
    (array([5. , 0.5, 0. ]), array([0, 1, 2]))
    """

    COLUMNS = ("iteration", "value", "gap", "atoms", "oracle_calls", "seconds")

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def record(self, state: State, seconds: float) -> None:
        row = (state.iteration, state.value, state.gap, len(state.active), state.oracle_calls, seconds)
        self._rows.append(row)

    def __len__(self) -> int:
        return len(self._rows)

    def __getattr__(self, name: str) -> Any:
        if name not in Trace.COLUMNS:
            raise AttributeError(f"a trace has the columns {', '.join(Trace.COLUMNS)}; not {name!r}.")
        dtype = np.int64 if name in ("iteration", "atoms", "oracle_calls") else np.float64
        place = Trace.COLUMNS.index(name)
        return np.array([row[place] for row in self._rows], dtype=dtype)

    def to_pandas(self) -> Any:
        """The trace as a pandas DataFrame (pandas must be installed)."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in Trace.COLUMNS})

    def plot(self, ax: Any = None) -> Any:
        """Certified gap against oracle calls on log axes; returns the matplotlib axes."""
        from pursuit.plots import plot_traces

        return plot_traces({"certified gap": self}, ax=ax)


@dataclass(frozen=True)
class Check:
    """A certificate that was recomputed from nothing: from the weights, the atoms, f and an exact oracle.

    `error` is ||x - sum_a w_a a|| / ||x||, `feasible` whether the weights satisfy the domain's constraint.
    """

    value: float
    gap: float
    lower: float
    error: float
    feasible: bool


@dataclass(frozen=True)
class Dual:
    """Dual information at the end of a run.

    `grad` is the gradient; `multipliers` has one number per summand, the rate at which f would fall if the total weight
    of a hull grew (0 for cones and spans); `reduced` has one number per active atom, <grad, a> + multiplier: 0 at a
    minimum, positive for atoms that should lose weight; `atoms` are the supporting ones, the oracle's answers at x.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.conv(ps.SignedBasis(2)))
    >>> r.dual.multipliers, r.dual.atoms[0].source            # f falls by 2 per unit of radius
    ((2.0,), 0)
    """

    grad: Array
    multipliers: tuple[float, ...]
    reduced: Small
    atoms: list[Atom]


@dataclass(frozen=True, eq=False)
class Result:
    """A sparse combination of atoms, and how good it is.

    `x` is the point, sum_i weights[i] * atoms[i].vector; `value` = f(x); f* lies between `lower` and `value`, so that
    `gap` = value - lower bounds f(x) - f* (infinite where nothing could be proved); `status` says why the run ended,
    `update` and `refine` what was run; `refused` counts refinements that raised f or left the domain, `cached` answers
    that cost no oracle call. In a sum of domains `blocks` says which summand each atom belongs to; `answers` is what
    the oracle said last, one answer per summand.
    """

    x: Array
    value: float
    gap: float
    lower: float
    status: Status
    iterations: int
    oracle_calls: int
    cached: int
    seconds: float
    weights: Small
    atoms: list[Atom]
    blocks: Indices
    answers: list[Answer]
    trace: Trace
    start: Array
    update: Any
    oracle: Any
    refine: Any
    refused: int
    f: Objective
    domain: Domain

    @classmethod
    def of(cls, state: State, **run: Any) -> Result:
        """The result of a run that ended at this state; `run` has the fields that belong to the run as a whole."""
        return cls(**state.known(), **run)

    @cached_property
    def coef(self) -> Any:
        """The combination in the set's own coordinates, one entry per column or basis vector; None if it has none."""
        return self.domain.coefficients(self.atoms, self.weights, self.blocks)

    @cached_property
    def dual(self) -> Dual:
        """What the gradient at x says about the constraints: multipliers, reduced costs, supporting atoms."""
        space = Space.of(self.x)
        grad = self.f.value_and_grad(self.x)[1]
        support = [admitted(space, part.asked.lmo(grad)) for part in self.domain.parts]
        correlations = np.array([a.dot(space, grad) for a in self.atoms])
        dots = [a.dot(space, grad) for a in support]
        multipliers = [-dot if part.compact else 0.0 for part, dot in zip(self.domain.parts, dots, strict=True)]
        levels = np.array(multipliers)[self.blocks]
        return Dual(grad, tuple(multipliers), correlations + levels, support)

    def promise(self, *, mdw: Any = None, rho: Any = None) -> Promise:
        """What the theorems promise of this run: the strongest bound on f(x_t) - f*, a curve to lay beside the trace.

        Geometry is computed where it is needed, which for large dictionaries takes time; `mdw` and `rho` (numbers or
        intervals) may be given instead.

        >>> import pursuit as ps
        >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.Plain(ps.LineSearch()))
        >>> r.promise().curve, r.trace.value
        (array([5.  , 2.5 , 1.25]), array([5. , 0.5, 0. ]))
        """
        return promise(self, mdw, rho)

    def check(self) -> Check:
        """Recompute point, value, gap and lower bound from the weights and atoms alone, with an exact oracle."""
        space = Space.of(self.x)
        active = self.domain.active_set(space)
        active.replace(self.weights, self.atoms, self.blocks)
        value, grad = self.f.value_and_grad(active.x)
        shares = active.shares(grad)
        asks = [asking(part.asked.begin(CHECK), part, space, 1) for part in self.domain.parts]
        certificate = Certificate(self.f, self.domain, space)
        certificate.see(value, grad, shares, [a(grad, active, gx) for a, gx in zip(asks, shares, strict=True)], active)
        error = space.norm(self.x - active.x) / (space.norm(self.x) or 1.0)
        feasible = self.domain.admits(self.weights, self.blocks)
        return Check(value, certificate.gap, certificate.lower, error, feasible)

    def __str__(self) -> str:
        gap = "not certified" if math.isinf(self.gap) else f"{self.gap:.3g}"
        return "\n".join(
            [
                f"value         {self.value:.10g}",
                f"gap           {gap}",
                f"atoms         {len(self.atoms)}",
                f"iterations    {self.iterations}",
                f"oracle calls  {self.oracle_calls}",
                f"seconds       {self.seconds:.3g}",
                f"update        {self.update!r}",
                f"status        {self.status.value}",
            ]
        )

    __repr__ = __str__
