"""Claims, the statements of the paper; cases, in which measured numbers are compared with promised ones; and rows, the
verdicts on claims."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pursuit.arrays import Small

Relation = Literal["<=", ">=", "=="]

ROUNDING_TOLERANCE = 1e-9
"""A measured number may exceed its promise by this fraction, for rounding."""


@dataclass(frozen=True)
class Plan:
    """How many problems each claim is tried on, and the seed of all random numbers."""

    problems: int = 36
    seed: int = 0

    def rng(self, *key: int) -> np.random.Generator:
        """The random generator of one problem, which does not depend on what else is tried."""
        return np.random.default_rng([self.seed, *key])


@dataclass(frozen=True)
class Case:
    """Measured numbers beside promised ones, on one problem ("" for an identity between formulas).

    `delta` is the quality of the oracle in the run that was measured (below 1: the adversary; None: no run, or one that
    another case counts). Numbers up to `floor` are rounding and are left out. An equality may be off by `tolerance`
    times `scale`, by default the largest promise. A `printed` case compares a counterexample with the statement as the
    paper prints it; it is counted, and the verdict does not depend on it.
    """

    problem: str
    measured: ArrayLike
    promised: ArrayLike
    relation: Relation = "<="
    delta: float | None = None
    floor: float = 0.0
    tolerance: float = ROUNDING_TOLERANCE
    scale: float | None = None
    printed: bool = False

    def ratios(self) -> Small:
        """measured / promised for all numbers above the floor, NaN included, which fails every comparison."""
        measured, promised = self._pair
        meaningful = ~((promised if self.relation == ">=" else measured) <= self.floor)
        with np.errstate(divide="ignore"):
            return np.asarray(measured[meaningful] / promised[meaningful])

    def error(self) -> float:
        """The largest difference, relative to the scale."""
        measured, promised = self._pair
        return float(np.abs(measured - promised).max() / (self.scale or np.abs(promised).max()))

    @property
    def _pair(self) -> tuple[Small, ...]:
        return tuple(
            np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, float)) for v in (self.measured, self.promised)))
        )

    @property
    def holds(self) -> bool:
        if self.relation == "==":
            return self.error() <= self.tolerance
        ratios = self.ratios()
        within = ratios <= 1 + self.tolerance if self.relation == "<=" else ratios >= 1 - self.tolerance
        return bool(within.all())


Check = Callable[[Plan], Iterator[Case]]


@dataclass(frozen=True)
class Claim:
    """A statement: its number in the paper, a name, the formula (HTML), and the check, whose docstring says what was
    tried and which erratum is corrected."""

    number: str
    name: str
    formula: str
    check: Check

    @property
    def note(self) -> str:
        return " ".join((inspect.getdoc(self.check) or "").split())

    def row(self, plan: Plan) -> Row:
        """Runs the check."""
        began = time.perf_counter()
        cases = list(self.check(plan))
        return Row(self, cases, time.perf_counter() - began)


def claim(number: str, name: str, formula: str) -> Callable[[Check], Claim]:
    """Makes a claim of a check."""
    return lambda check: Claim(number, name, formula, check)


@dataclass(frozen=True)
class Row:
    """The outcome of a claim; every number is computed from its cases."""

    claim: Claim
    cases: list[Case]
    seconds: float

    def _of(self, *relations: str) -> list[Case]:
        return [case for case in self.cases if case.relation in relations and not case.printed]

    @property
    def problems(self) -> int:
        return len({case.problem for case in self.cases} - {""})

    @property
    def exact(self) -> int:
        """Runs that asked an exact oracle."""
        return sum(case.delta == 1.0 for case in self.cases)

    @property
    def adversarial(self) -> int:
        """Runs that asked the adversary."""
        return sum(case.delta is not None and case.delta < 1 for case in self.cases)

    @property
    def sense(self) -> str:
        """The relation of a bound, "<=" or ">="; "" where cases have both or neither."""
        found = {case.relation for case in self._of("<=", ">=")}
        return found.pop() if len(found) == 1 else ""

    @property
    def worst(self) -> float:
        """The measured/promised ratio that comes nearest to a violation, or exceeds it; NaN without inequalities."""
        ratios = np.concatenate([np.empty(0), *(case.ratios() for case in self._of("<=", ">="))])
        if not len(ratios):
            return math.nan
        return float(ratios.max() if self.sense == "<=" else ratios.min())

    @property
    def equalities(self) -> tuple[int, int]:
        """Equality cases reproduced, and tried."""
        cases = self._of("==")
        return sum(case.holds for case in cases), len(cases)

    @property
    def error(self) -> float:
        """The largest relative error of an equality."""
        return max((case.error() for case in self._of("==")), default=math.nan)

    @property
    def printed(self) -> tuple[int, int]:
        """Counterexamples on which the printed wording fails, and those tried."""
        cases = [case for case in self.cases if case.printed]
        return sum(not case.holds for case in cases), len(cases)

    @property
    def holds(self) -> bool:
        """Whether something was compared and no comparison failed."""
        cases = self._of("<=", ">=", "==")
        return any(len(case.ratios()) for case in cases) and all(case.holds for case in cases)

    @property
    def verdict(self) -> str:
        if not self.holds:
            return "VIOLATED"
        return "corrected" if self.printed[0] else "holds"
