r"""Polytopes whose oracle is a linear or an integer program, solved by HiGHS.

The solver works with tolerances, so its optimal value proves nothing. Its dual variables y do, whatever they are: over
the points of the polytope, :math:`\langle g, x\rangle = \langle y, Ax\rangle + \langle g - A^\top y, x\rangle`, and
both summands have lower bounds, the first by the right-hand sides, the second by a box around the polytope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import scipy  # its parts are imported when they are first used
import scipy.sparse as sp
from numpy.typing import NDArray

from pursuit.arguments import as_list, floating_array, number, quantity, real_array, require
from pursuit.arrays import Array, Small, Space, host
from pursuit.atoms.base import MEMBERSHIP_ULPS, Atoms, Found, Search
from pursuit.atoms.constraints import box_of, integers_of, rows_of
from pursuit.atoms.frames import Atom
from pursuit.state import Stateful

Attempt = Callable[[Small, float], tuple[str, Small, Small]]
"""costs, tolerance -> (HiGHS's status, the best vertex, the dual variables of the rows)."""

FEASIBILITY = 1e-6
"""By how much a point of the polytope may break a constraint, relative to its terms: ten times as much as an atom."""
TOLERANCES = 1e-10, 1e-10, 1e-9, 1e-8, 1e-7
"""By how much HiGHS may violate a constraint: the smallest number that it takes, again from the beginning, and more
where rounding errors make it fail with less."""
MEMBERSHIP = 1e-8
LARGEST_COST = 2.0**20
"""The largest cost that an integer program is given. HiGHS closes its gap to 1e-6, whatever the costs."""
INTEGER_TOLERANCE = 1e-6


class Polytope(Atoms):
    r"""The polytope :math:`\{x : A_{ub} x \le b_{ub}, A_{eq} x = b_{eq}, l \le x \le u\}`, or the points of it whose
    marked entries are integers; the oracle is HiGHS. The arguments are those of `scipy.optimize.linprog`.

    Parameters
    ----------
    A_ub, A_eq : (rows, n) matrices, dense or sparse, optional
    b_ub, b_eq : (rows,) arrays, optional
    bounds : a pair (lower, upper) for all entries, or n pairs
        None is no bound; (0, None) by default, as in SciPy. The polytope must be bounded, the entries need not be;
        an entry without both bounds costs two linear programs when the set is made.
    integrality : (n,) array of 0 and 1, or a number for all, optional
        1: this entry is an integer. Then the atoms are the points with integers there, and the hull is theirs.
    gap : float in [0, 1)
        For integer programs: the search may stop once what is missing to the best atom is this share of what was
        found, both counted from x. The answer is then approximate, and the certificate knows how much.

    Notes
    -----
    Atoms satisfy the constraints to 1e-10, or to at most 1e-7 where the rounding errors of large numbers make HiGHS
    fail with less. The lower bound of a linear program holds whatever HiGHS's tolerances. That of an integer program is
    HiGHS's own, lowered by what its tolerances may hide: 1e-12 of the largest entry of g, times one plus the sum of the
    widths of the bounds. With highspy (`pip install highspy`) a run solves each linear program from the last vertex
    on, in a quarter to a fifth of the time.

    Over the intersection of other sets, functions are minimised by multipliers on a `product`, as in the example
    `correlation.py`.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> A = ps.Polytope(A_ub=[[1.0, 2.0], [3.0, 1.0]], b_ub=[4.0, 6.0])            # x >= 0 by default
    >>> ps.minimize(ps.LeastSquares([2.0, 3.0]), ps.conv(A)).x.round(6)
    array([1.2, 1.4])
    >>> knapsack = ps.Polytope([[5.0, 4.0, 3.0]], [8.0], bounds=(0, 1), integrality=1)
    >>> knapsack.lmo(np.array([-6.0, -4.0, -3.0])).vector
    array([1., 0., 1.])
    """

    def __init__(
        self,
        A_ub: object = None,
        b_ub: object = None,
        A_eq: object = None,
        b_eq: object = None,
        bounds: object = (0.0, None),
        integrality: object = None,
        gap: float = 0.0,
    ) -> None:
        below, above = rows_of(A_ub, b_ub, "ub"), rows_of(A_eq, b_eq, "eq")
        self.n = self._dimension(below, above, bounds)
        self.shape = (self.n,)
        self._lower, self._upper = box_of(bounds, self.n)
        (rows_ub, b_ub), (rows_eq, b_eq) = (rows or (sp.csc_array((0, self.n)), np.zeros(0)) for rows in (below, above))
        self._inequalities = len(b_ub)
        self._A, self._b = sp.csc_array(sp.vstack([rows_ub, rows_eq])), np.concatenate([b_ub, b_eq])
        self._sizes = abs(self._A)
        self.integers = integers_of(integrality, self.n)
        self.gap, self.convex = number(gap), not self.integers.any()
        require(0 <= self.gap < 1, "gap", gap, "a number from 0 to 1, 0 for the exact minimum")
        self._known = False  # to be bounded and not empty, so that HiGHS errs where it says so
        self._enclose()
        self._known = True
        if not self.convex:
            self._whole(np.zeros(self.n), -math.inf)  # or it is empty
        self.radius = float(np.linalg.norm(np.maximum(np.abs(self._enclosed[0]), np.abs(self._enclosed[1]))))
        self.diameter = float(np.linalg.norm(self._enclosed[1] - self._enclosed[0]))

    def hull_contains(self, x: Array) -> bool | None:
        """Whether the point satisfies the constraints, up to a millionth of their terms. The hull of integer points is
        smaller: nothing is known of a point that does."""
        point = host(x).ravel()
        excess = self._A @ point - self._b
        excess[self._inequalities :] = np.abs(excess[self._inequalities :])
        beyond = np.maximum(self._lower - point, point - self._upper)
        rows_hold = (excess <= FEASIBILITY * (self._sizes @ np.abs(point) + np.abs(self._b))).all()
        if not rows_hold or (beyond > FEASIBILITY * np.abs(point).max(initial=0.0)).any():
            return False
        return True if self.convex else None

    @staticmethod
    def _dimension(below: Any, above: Any, bounds: Any) -> int:
        widths = {rows[0].shape[1] for rows in (below, above) if rows is not None}
        if len(widths) > 1:
            raise ValueError(f"A_ub and A_eq have {sorted(widths)} columns; give one for each entry of x in both.")
        if not widths:
            listed = as_list(bounds)
            if len(listed) == 2 and all(v is None or not math.isnan(number(v)) for v in listed):
                raise ValueError("A_ub and A_eq are both left out; give one, or a pair of bounds for each entry.")
            return len(listed)
        return int(widths.pop())

    def _enclose(self) -> None:
        """Find a box around the polytope, where the bounds are not one.

        Let T be the sum of the distances of the entries to their one bound, or to 0 where they have none. A program for
        the entries with one bound and two for each with none prove that T <= sum of values + epsilon T, where
        epsilon is small: it sums the violations of dual constraints.
        """
        lower, upper = self._lower, self._upper
        attempt = self._attempt()
        self._solve(np.zeros(self.n), attempt)  # or it is empty
        anchors = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
        collapsed = np.where(np.isfinite(lower), lower, anchors), np.where(np.isfinite(upper), upper, anchors)
        upward, downward = np.isinf(upper) & np.isfinite(lower), np.isinf(lower) & np.isfinite(upper)
        free = np.flatnonzero(np.isinf(lower) & np.isinf(upper))

        def reach(costs: Small) -> tuple[float, float]:
            """beta and epsilon with <-costs, x - anchors> <= beta + epsilon T."""
            y = self._signed(self._solve(costs, attempt)[1])
            r, e = self._reduced(costs, y)
            missing = np.maximum(np.where(np.isinf(upper), e - r, 0.0), np.where(np.isinf(lower), e + r, 0.0))
            return float(costs @ anchors) - self._bound(costs, y, *collapsed), max(float(missing.max()), 0.0)

        together, leaks = 0.0, 0.0
        if upward.any() or downward.any():
            together, leaks = reach(downward.astype(float) - upward)
        alone = np.zeros(self.n)
        for j in free:
            unit = np.eye(1, self.n, int(j))[0]
            (up, leak), (down, other) = reach(-unit), reach(unit)
            alone[j], leaks = max(up, down, 0.0), leaks + max(leak, other)
        if not leaks < 0.5:
            raise ValueError("bounds cannot be found by HiGHS for entries without them; give bounds for all entries.")
        total = (together + float(alone.sum())) / (1.0 - leaks)
        self._enclosed = (
            np.where(np.isinf(lower), anchors - total, lower),
            np.where(np.isinf(upper), anchors + total, upper),
        )

    # ------------------------------------------------------------------ what the dual variables prove

    def prices(self, g: Array) -> Small:
        r"""Dual variables y of the rows, inequalities first, at most 0 there: y has the largest :math:`\langle y,
        b\rangle` + the least of :math:`\langle g - A^\top y, x\rangle` between the bounds. At the gradient of f at a
        minimum, the minimum changes by :math:`y_i` for each unit of :math:`b_i`.

        >>> import numpy as np, pursuit as ps
        >>> A = ps.Polytope(A_ub=[[1.0, 1.0]], b_ub=[4.0])
        >>> r = ps.minimize(ps.LeastSquares([3.0, 5.0]), ps.conv(A))
        >>> A.prices(r.dual.grad).round(6)                                     # f falls by 2 per unit of b
        array([-2.])
        """
        require(self.convex, "integrality", self.integers, "no integers, since their programs have no prices of rows")
        costs = host(real_array(g, "g")).ravel().astype(np.float64)
        require(costs.shape == (self.n,), "g", g, f"one number for each of the {self.n} entries")
        return self._signed(self._solve(costs, self._cold)[1])

    def _signed(self, y: Small) -> Small:
        """Dual variables with the signs that inequalities need."""
        y = y.copy()
        y[: self._inequalities] = np.minimum(y[: self._inequalities], 0.0)
        return y

    def _reduced(self, costs: Small, y: Small) -> tuple[Small, Small]:
        """costs - A'y, and bounds on its rounding errors."""
        terms = np.diff(self._A.indptr) + 2.0
        return costs - self._A.T @ y, 2.0**-52 * terms * (np.abs(costs) + self._sizes.T @ np.abs(y))

    def _bound(self, costs: Small, y: Small, lower: Small, upper: Small) -> float:
        """A lower bound on <costs, x> over the points of the polytope in this box."""
        r, e = self._reduced(costs, y)
        least = np.minimum(np.minimum((r - e) * lower, (r + e) * lower), np.minimum((r - e) * upper, (r + e) * upper))
        terms = np.concatenate([y * self._b, least])
        return float(terms.sum()) - 2.0**-52 * (len(terms) + 2.0) * float(np.abs(terms).sum())

    # ------------------------------------------------------------------ the oracle

    def begin(self, seed: int = 0) -> Search:
        """The search of one run; it keeps the last vertex, where highspy is installed."""
        return _ProgramSearch(self, self._attempt() if self.convex else self._cold)

    def _attempt(self) -> Attempt:
        return _WarmPrograms(self) if find_spec("highspy") else self._cold

    def _solve(self, costs: Small, attempt: Attempt) -> tuple[Small, Small]:
        """The solution of a linear program and its dual variables."""
        for tolerance in TOLERANCES:
            status, x, y = attempt(costs, tolerance)
            if status == "optimal":
                return x, y
            if not self._known:
                _check_status(status, failed=tolerance == TOLERANCES[-1])
        raise ValueError(f"the program was not solved: HiGHS ended with {status!r}; scale its rows.")

    def _cold(self, costs: Small, tolerance: float) -> tuple[str, Small, Small]:
        """Each program from the beginning, by SciPy."""
        k, linprog = self._inequalities, cast(Any, scipy.optimize.linprog)  # its stubs know no sparse matrices
        found = linprog(
            costs,
            *(self._A[:k], self._b[:k], self._A[k:], self._b[k:]),
            bounds=np.stack([self._lower, self._upper], axis=1),
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        status = {0: "optimal", 2: "infeasible", 3: "unbounded"}.get(found.status, found.message)
        if status != "optimal":
            return status, costs, costs
        return status, found.x, np.concatenate([found.ineqlin.marginals, found.eqlin.marginals])

    def _whole(self, costs: Small, level: float) -> tuple[Small, float]:
        """The best point with integers, and a lower bound."""
        origin = level if self.gap > 0 and math.isfinite(level) else None
        point = self._branch(costs, origin, self._lower, self._upper)
        return point or _check_status("infeasible")

    def _branch(self, costs: Small, origin: float | None, low: Small, up: Small) -> tuple[Small, float] | None:
        """The best point with integers in a box, and a lower bound; None where there is no point.

        HiGHS takes 1e-7 for the integer 0, and a row with a large coefficient may hold only as long as it is not
        rounded. Such an entry is below, at or above the integer: each case is a program of its own.
        """
        solved = self._integer_program(costs, origin, low, up)
        if solved is None:
            return None
        x, bound = solved
        whole = np.where(self.integers, np.rint(x), x)
        j = int(np.abs(whole - x).argmax())
        if whole[j] == x[j] or (self._excess(whole) <= self._excess(x) + self._slack(whole, MEMBERSHIP)).all():
            return whole, bound
        cases = [(low[j], whole[j] - 1.0), (whole[j], whole[j]), (whole[j] + 1.0, up[j])]
        unit = np.arange(self.n) == j
        boxes = [(np.where(unit, a, low), np.where(unit, b, up)) for a, b in cases if a <= b]
        branches = [branch for branch in (self._branch(costs, origin, *box) for box in boxes) if branch is not None]
        if not branches:
            return None
        return min((x for x, _ in branches), key=lambda x: float(costs @ x)), min(bound for _, bound in branches)

    def _integer_program(self, costs: Small, origin: float | None, low: Small, up: Small) -> tuple[Small, float] | None:
        """HiGHS's best point in a box, its integers not rounded, and a lower bound; None where there is no point. A
        last entry that is 1 moves the origin of the objective, so that HiGHS's relative gap is ours."""
        factor, k = LARGEST_COST, self._inequalities
        rows_lower = np.concatenate([np.full(k, -np.inf), self._b[k:]])
        A = sp.hstack([self._A, sp.csc_array((len(self._b), 1))])
        shift = 0.0 if origin is None else origin
        found: Any = scipy.optimize.milp(
            factor * np.append(costs, -shift),
            integrality=np.append(self.integers, False),
            bounds=scipy.optimize.Bounds(np.append(low, 1.0), np.append(up, 1.0)),
            constraints=[scipy.optimize.LinearConstraint(A, rows_lower, self._b)] if len(self._b) else None,
            options={"mip_rel_gap": 0.0 if origin is None else self.gap},
        )
        if found.status == 2:
            return None
        _check_status({0: "optimal", 3: "unbounded"}.get(found.status, found.message))
        hidden = INTEGER_TOLERANCE * (1.0 + float((self._enclosed[1] - self._enclosed[0]).sum()))
        bound = min(found.mip_dual_bound, found.fun)
        return np.clip(found.x[:-1], low, up), (bound - hidden) / factor + shift

    def _excess(self, x: Small) -> Small:
        """By how much x violates each row."""
        excess = self._A @ x - self._b
        excess[self._inequalities :] = np.abs(excess[self._inequalities :])
        return np.asarray(np.maximum(excess, 0.0))

    def _slack(self, x: Small, tolerance: float) -> Small:
        """A share of the sum of the terms of each row."""
        return np.asarray(tolerance * (self._sizes @ np.abs(x) + np.abs(self._b)))

    def _is_atom(self, a: Array, tolerance: float) -> bool:
        x, share = host(a), membership(a)
        reach = share * np.abs(x) + tolerance * float(np.abs(x).max())
        rows = bool((self._excess(x) <= self._slack(x, share)).all())
        box = bool((x >= self._lower - reach).all() and (x <= self._upper + reach).all())
        return rows and box and bool((np.abs(x - np.rint(x))[self.integers] <= share).all())

    def __repr__(self) -> str:
        whole = f", {int(self.integers.sum())} integers" if self.integers.any() else ""
        return f"Polytope({quantity(len(self._b), 'row')}, {self.n} entries{whole})"


def membership(a: Array) -> float:
    """The violations that `contains` accepts, relative to the terms of a constraint: HiGHS's, and those of rounding."""
    return max(MEMBERSHIP, MEMBERSHIP_ULPS * Space.of(a).eps)


def _check_status(status: str, failed: bool = True) -> Any:
    if status in ("infeasible", "primal infeasible"):
        raise ValueError("the polytope is empty: no x satisfies A_ub, A_eq and the bounds; correct one of them.")
    if status in ("unbounded", "primal infeasible or unbounded"):
        raise ValueError("the polytope is unbounded, so that a vertex need not be the best; give bounds.")
    if failed and status != "optimal":
        raise ValueError(f"the program was not solved: HiGHS ended with {status!r}; scale its rows.")


@dataclass(eq=False)
class _ProgramSearch(Stateful):
    """The programs of one run."""

    A: Polytope
    attempt: Attempt

    def __call__(self, g: Array, several: int, level: float) -> Found:
        A, g = self.A, floating_array(g, "g")
        require(tuple(g.shape) == A.shape, "g", g, f"a vector of the shape {A.shape} of the polytope")
        costs = host(g)
        scale = 2.0 ** math.frexp(float(np.abs(costs).max()))[1]  # so that tolerances mean the same for all g
        costs = costs / scale
        if A.convex:
            x, y = A._solve(costs, self.attempt)
            lower = A._bound(costs, A._signed(y), *A._enclosed)
        else:
            x, lower = A._whole(costs, level / scale)
        return [Atom(Space.of(g).put(np.clip(x, A._lower, A._upper)))], scale * lower


@dataclass(eq=False)
class _WarmPrograms(Stateful):
    """Linear programs by highspy, each from the last vertex on.

    The basis of the vertex is all that is kept, so that a run that goes on finds the same vertices: the model is passed
    anew, since HiGHS has other memories of the programs before it.
    """

    A: Polytope
    _basis: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        import highspy

        self._basis = np.zeros(0, dtype=np.int8)
        A, program = self.A, highspy.HighsLp()
        program.num_col_, program.num_row_ = A.n, len(A._b)
        program.col_cost_, program.col_lower_, program.col_upper_ = np.zeros(A.n), A._lower, A._upper
        program.row_lower_ = np.where(np.arange(len(A._b)) < A._inequalities, -np.inf, A._b)
        program.row_upper_ = A._b
        matrix = program.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kColwise
        matrix.start_, matrix.index_, matrix.value_ = A._A.indptr, A._A.indices, A._A.data
        self._program, self._highs = program, highspy.Highs()
        self._highs.setOptionValue("output_flag", False)

    def __call__(self, costs: Small, tolerance: float) -> tuple[str, Small, Small]:
        import highspy

        highs = self._highs
        highs.setOptionValue("primal_feasibility_tolerance", tolerance)
        highs.setOptionValue("dual_feasibility_tolerance", tolerance)
        self._program.col_cost_ = costs
        highs.passModel(self._program)
        if len(self._basis):
            kept = [highspy.HighsBasisStatus(int(status)) for status in self._basis]
            basis = highspy.HighsBasis()
            basis.col_status, basis.row_status = kept[: self.A.n], kept[self.A.n :]
            basis.valid, basis.alien = True, False
            highs.setBasis(basis)
        highs.run()
        if highs.getModelStatus() == highspy.HighsModelStatus.kUnknown:  # an unbounded set, mostly
            highs.clearSolver()
            highs.run()
        status = highs.modelStatusToString(highs.getModelStatus()).lower()
        solution, last = highs.getSolution(), highs.getBasis()
        kept = [*last.col_status, *last.row_status] if status == "optimal" else []  # else from the beginning
        self._basis = np.array([int(status) for status in kept], dtype=np.int8)
        return status, np.array(solution.col_value), np.array(solution.row_dual)
