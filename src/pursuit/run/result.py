"""States and results of runs."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path as FilePath
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pursuit.active import WANTED, ActiveSet
from pursuit.arguments import quantity
from pursuit.arrays import Array, Indices, Small, Space, host
from pursuit.atoms.factored import CP, LowRank
from pursuit.atoms.frames import Atom
from pursuit.certificates import Bound, Certificate
from pursuit.domains import Answer, Domain
from pursuit.objectives import Objective, Quadratic
from pursuit.oracles import AskSet, as_atom_of
from pursuit.run.stop import Status
from pursuit.run.stored import Checkpoint, Kept
from pursuit.run.trace import Trace, html_table
from pursuit.state import Fields
from pursuit.updates import Now

if TYPE_CHECKING:
    from pursuit.promises import Promise
    from pursuit.run.begin import Run
    from pursuit.run.proof import Proof

MAX_EXACT = 1 << 14
"""The number of data times the square of that of atoms up to which a loose bound is computed in rational numbers."""

CHECK_SEED = 1
"""The seed of the searches of `check`. Bounds that hold with high probability need random numbers on which x does not
depend, and the run has used those of seed 0."""


FUNCTION = re.compile(r"<function (?:\S*\.)?(\S+) at 0x\w+>")
"""How Python shows a function of the user, such as a step rule; a summary has its name alone."""


@dataclass(slots=True, repr=False)
class State(Now):
    """One iteration, before its update. `active` is the active set of the run, which changes it: copy what you keep.

    >>> import pursuit as ps
    >>> state = next(ps.iterate(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2))))
    >>> state, state.grad
    (State(iteration 0: value 5, gap 5, 0 atoms), array([-3., -1.]))
    """

    bound: Bound
    active: ActiveSet
    run: Run
    x: Array = field(init=False)
    gap: float = field(init=False)
    """An upper bound on f(x) - f*, or infinite."""
    lower: float = field(init=False)
    """A lower bound on f*."""
    stationarity: float = field(init=False)
    """The Frank-Wolfe gap, max <grad, x - u> over the u of the domain, or a bound on it."""
    stationary: bool = field(init=False)
    """Whether no atom correlates with the gradient beyond rounding."""
    convex: bool = field(init=False)
    """Whether f is convex, so that the Frank-Wolfe gap proves a lower bound."""
    oracle_calls: int = field(init=False)
    cached: int = field(init=False)
    refused: int = field(init=False)

    def __post_init__(self) -> None:
        self.x, self.convex = self.active.x, self.run.f.convex
        self.lower, self.gap, self.stationarity, self.stationary, *_ = self.bound
        self.oracle_calls = self.run.ask.calls + self.bound.calls
        self.cached = self.run.ask.cached
        self.refused = self.run.refine.refused

    @property
    def atom(self) -> Atom:
        """The atom that the oracle named (for the first summand of a sum)."""
        return self.answers[0].atoms[0]

    def __repr__(self) -> str:
        gap = f"{self.value:.6g}, gap {self.gap:.3g}"
        return f"State(iteration {self.iteration}: value {gap}, {quantity(len(self.active), 'atom')})"


@dataclass(frozen=True)
class Check:
    """A certificate that was recomputed from the weights, the atoms, f and an exact oracle alone.

    `error` is ||x - sum_a w_a a|| / ||x||; `feasible` says whether the weights satisfy the domain's constraint.
    """

    value: float
    gap: float
    lower: float
    error: float
    feasible: bool


@dataclass(frozen=True)
class Dual:
    """Dual information at the end of a run.

    `grad` is the gradient at x. `multipliers` has one number per summand: the rate at which f would fall if the total
    weight of a hull grew, and 0 for cones and spans (`A.prices(grad)` has one for each row of a `Polytope` A).
    `reduced` has one number per active atom, <grad, a> + multiplier: 0 at a minimum, positive for atoms that should
    lose weight. `atoms` are the oracle's answers at x.

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
    """A sparse combination of atoms, with a certificate of how good it is.

    `x` is the point, sum_i weights[i] * atoms[i].vector, and `value` = f(x). The minimum f* lies between `lower` and
    `value`, so `gap` = value - lower bounds f(x) - f*; it is infinite where nothing could be proved. `status` says why
    the run ended; `update`, `oracle` and `refine` say what was run. `refused` counts proposals of refinements that
    raised f or left the domain, `cached` counts answers that cost no oracle call. In a sum of domains `blocks` says
    which summand each atom belongs to. `answers` are the last answers of the oracle, one per summand. `stationarity` is
    the Frank-Wolfe gap max <grad f(x), x - u> over the domain at the end, all that is known where f is not convex.
    `assumed` are sentences on which the result rests and which nobody could check, such as that a start lies in a hull.
    `memory` is the state of the run, if `keep=True` asked for it: then `start=` continues the run exactly.

    >>> import pursuit as ps
    >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0, -2.0]), ps.conv(4.0 * ps.SignedBasis(3)))
    >>> r.x.round(6), round(r.value, 6), r.lower <= r.value, r.gap <= 1e-6 * r.value
    (array([ 2.333333,  0.333333, -1.333333]), 0.666667, True, True)
    >>> r.status.value
    'the certified gap is within the tolerance'
    """

    f: Objective
    domain: Domain
    update: Any
    oracle: Any
    refine: Any
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
    refused: int
    stationarity: float
    assumed: tuple[str, ...]
    memory: Fields = field(default_factory=dict)
    dual_point: Array | None = None
    """The u of the best bound f >= <u, x> - f*(u) of the run; None where the conjugate gave none."""
    _subject: ClassVar[str] = "point of this set"
    _grounds: ClassVar[str] = (
        "The bound is computed from gradients and oracle answers of this run; it does not depend on how the point was "
        "found. <code>result.check()</code> computes it anew."
    )
    """What a report says that the gap is about, and where it comes from."""

    @cached_property
    def coef(self) -> Any:
        """The coefficients of the columns or basis vectors of the set; None where it has neither."""
        return self.domain.coefficients(self.atoms, self.weights, self.blocks)

    def curves(self, most: int) -> list[Small]:
        """The atoms of largest weight as columns, for figures; of matrices and tensors the factors of `coef`."""
        if isinstance(self.coef, LowRank | CP):
            return self.coef.curves(most)
        if not len(self.atoms):
            raise ValueError("atoms has no active atom; there is nothing to draw.")
        order = np.argsort(-np.abs(self.weights), kind="stable")[:most]
        return [np.stack([host(self.atoms[i].vector).ravel() for i in order], axis=1)]

    @cached_property
    def dual(self) -> Dual:
        """A multiplier of each summand, reduced costs and supporting atoms at x."""
        space = Space.of(self.x)
        grad = self.f.value_and_grad(self.x)[1]
        support = [as_atom_of(space, part.asked.lmo(grad)) for part in self.domain.parts]
        correlations = np.array([a.dot(space, grad) for a in self.atoms])
        dots = [a.dot(space, grad) for a in support]
        multipliers = [-dot if part.compact else 0.0 for part, dot in zip(self.domain.parts, dots, strict=True)]
        levels = np.array([m + part.price for m, part in zip(multipliers, self.domain.parts, strict=True)])[self.blocks]
        return Dual(grad, tuple(multipliers), correlations + levels, support)

    @property
    def delta(self) -> float:
        """The smallest quality of an answer on which an update of this run rests; 0 where one was not proved."""
        return float(min(self.trace.delta[: max(len(self.trace) - 1, 1)]))

    def promise(
        self, *, mdw: object = None, rho: object = None, reach: object = None,
        curvature: object = None, convexity: object = None,
    ) -> Promise:  # fmt: skip
        """The strongest bound on f(x_t) - f* that a theorem proves for this run, one number per row of the trace.

        The constants of the set are computed where they are needed, which takes time for large dictionaries. Numbers or
        intervals may be given instead: `mdw` and `rho` of the atoms, `reach`, a bound on the atomic norms of x* - x_t,
        and the affine-invariant `curvature` and `convexity` of f over the atoms: C_f over a hull, C^MP and mu^MP over a
        span.

        >>> import pursuit as ps
        >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.Plain(ps.LineSearch()))
        >>> r.promise().curve, r.trace.value
        (array([5. , 0.5, 0. ]), array([5. , 0.5, 0. ]))
        """
        from pursuit.promises import promise

        return promise(self, mdw=mdw, rho=rho, reach=reach, curvature=curvature, convexity=convexity)

    @cached_property
    def certificate(self) -> Proof:
        """What this result claims, as a proof that `python -m pursuit.verify` checks: `save(file)` writes it."""
        from pursuit.run.proof import Proof

        return Proof.of(self)

    def check(self) -> Check:
        """Recompute point, value, gap and lower bound from the weights and atoms alone, with an exact oracle."""
        space = Space.of(self.x)
        active = self.domain.active_set(space)
        active.replace(self.weights, self.atoms, self.blocks)
        value, grad = self.f.value_and_grad(active.x)
        asks = [AskSet(part, space, part.asked.begin(CHECK_SEED)) for part in self.domain.parts]
        certificate = Certificate(self.f, self.domain, space)
        certificate.contradicted = self.status is Status.CONTRADICTION
        if self.f.exact:
            certificate.observe_point(self.start, *self.f.value_and_grad(self.start))
        levels = active.levels(grad)
        answers = [replace(ask(grad, active, gx), level=gx) for ask, gx in zip(asks, levels, strict=True)]
        value += active.cost
        certificate(value, grad, answers, active)
        lower = min(certificate.proved(value), value)
        error = space.norm(self.x - active.x) / (space.norm(self.x) or 1.0)
        feasible = self.domain.admits(self.weights, self.blocks)
        return Check(value, value - lower, lower, error, feasible)

    @property
    def kept(self) -> Kept:
        """What a run needs to go on."""
        return Kept(self.memory, list(self.trace.rows), self.start, self.seconds)

    def save(self, path: object) -> FilePath:
        """Write a file with which `minimize(f, domain, ..., checkpoint=path)` goes on, in this or another process: from
        the state of the run if `keep=True` kept it, else as a new run from this point.

        f and the domain are not in it; where they or the method are others, it is refused.

        >>> import tempfile, pursuit as ps
        >>> f, domain, update = ps.LeastSquares([0.5, 0.4, 0.2]), ps.conv(ps.Simplex(3)), ps.Plain(ps.OpenLoop())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     half = ps.minimize(f, domain, update, stop=ps.Stop(iterations=50), keep=True)
        ...     file = half.save(f"{folder}/run.npz")
        ...     r = ps.minimize(f, domain, update, stop=ps.Stop(iterations=100), checkpoint=file)
        >>> r.iterations, bool((r.x == ps.minimize(f, domain, update, stop=ps.Stop(iterations=100)).x).all())
        (100, True)
        """
        if self.status is Status.UNBOUNDED:
            raise ValueError(f"a run cannot go on after its end: {self.status.value}; there is nothing to save.")
        file, method = Checkpoint(path, 0.0), (self.update, self.oracle, self.refine)
        file.write(self.kept if self.memory else self._new_run(), self.f, self.domain, method)
        return file.path

    def _new_run(self) -> Kept:
        """A run that begins at this point."""
        members = {"weights": self.weights, "atoms": self.atoms, "blocks": self.blocks, "x": self.x}
        active = members | {"wanted": WANTED, "frames": list(range(len(self.atoms)))}
        return Kept({"t": 0, "now": None, "active": active}, [], self.x, 0.0)

    def report(self, path: object, *, names: object = None, title: str | None = None) -> FilePath:
        """Write a report about this result: one HTML file that needs nothing else (needs matplotlib).

        It says what was solved and what is proved, and shows the atoms, promised and measured convergence, and the fit
        or the factors where there are any.

        Parameters
        ----------
        path : str or path
            The file; it is replaced as a whole, or not at all.
        names : sequence of str, optional
            The names of the columns or basis vectors; numbers without it.
        title : str, optional

        Returns
        -------
        pathlib.Path
            The file.

        Examples
        --------
        >>> import tempfile, pursuit as ps
        >>> r = ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.conv(ps.SignedBasis(2)))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = r.report(f"{folder}/report.html", names=["left", "right"])
        ...     "left" in page.read_text(encoding="utf-8")
        True
        """
        from pursuit.report import write_result_report

        return write_result_report(path, self, names=names, title=title)

    def _lines(self) -> list[tuple[str, str]]:
        return [
            ("value", f"{self.value:.10g}"),
            ("gap", "not certified" if math.isinf(self.gap) else f"{self.gap:.3g}"),
            *([] if self.f.convex else [("stationarity", f"{self.stationarity:.3g}")]),
            ("atoms", f"{len(self.atoms)}"),
            ("iterations", f"{self.iterations}"),
            ("oracle calls", f"{self.oracle_calls}"),
            ("seconds", f"{self.seconds:.3g}"),
            ("update", FUNCTION.sub(r"\1", repr(self.update))),
            ("status", self.status.value),
            *(("assumed", sentence) for sentence in self.assumed),
        ]

    def __str__(self) -> str:
        return "\n".join(fill(f"{name:<14}{text}", 80, subsequent_indent=" " * 14) for name, text in self._lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self._lines())


def sharpened(result: Result, estimated: float) -> Result:
    """The result with a bound in rational numbers, where that in floats is loose, and factors take milliseconds."""
    if not result.gap > 1.01 * estimated + 1e-12 * abs(result.value):
        return result
    from pursuit.run.statement import Peeled

    sets, rows = [part.asked for part in result.domain.parts], math.prod(result.x.shape)
    side = max(sum(A.size or MAX_EXACT for A in sets), rows * isinstance(result.f, Quadratic))
    if rows * side * side > MAX_EXACT or any(Peeled.of(part.A).trusted for part in result.domain.parts):
        return result
    try:
        lower = min(result.certificate.lower, result.value)
    except (ArithmeticError, ValueError):  # no rule, or a number that is not finite
        return result
    return replace(result, lower=lower, gap=result.value - lower) if lower > result.lower else result


def copied_members(active: ActiveSet) -> Fields:
    """The weights and atoms of S, copied: the run goes on to change them."""
    return {"weights": active.weights.copy(), "atoms": active.atoms.copy(), "blocks": active.blocks}


def result_fields(state: State, members: Fields | None = None) -> Fields:
    """The fields of a `Result` that one state determines, with the members that S had there."""
    weights, atoms, blocks = (members or copied_members(state.active)).values()
    support = np.flatnonzero(weights)
    return {
        "x": state.x,
        "value": state.value,
        "gap": state.gap,
        "lower": state.lower,
        "iterations": state.iteration,
        "oracle_calls": state.oracle_calls,
        "cached": state.cached,
        "refused": state.refused,
        "stationarity": state.stationarity,
        "assumed": tuple(state.run.refine.assumed),
        "weights": weights[support],
        "atoms": [atoms[i] for i in support],
        "blocks": blocks[support],
        "answers": state.answers,
    }
