"""The small weight problems: every answer against an independent one, and the laws that hold for all of them."""

from dataclasses import dataclass
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursuit.weights import WeightProblem, nearest_feasible, projected_gradient
from pursuit.weights.passive import PassiveSet

LAW = settings(max_examples=150, deadline=None, derandomize=True)
FEW = settings(max_examples=25, deadline=None, derandomize=True)
NAN = np.nan
SEED = st.integers(0, 2**32 - 1)

# what each block of weights must satisfy: ("free", "nonnegative" or "either" sign, total)
KINDS = {
    "span": [("free", NAN)],
    "cone": [("nonnegative", NAN)],
    "hull": [("nonnegative", 1.0)],
    "affine": [("free", 1.0)],
    "either sign, fixed sum": [("either", 1.0)],
    "hull + span": [("nonnegative", 1.0), ("free", NAN)],
    "hull + hull": [("nonnegative", 1.0), ("nonnegative", 2.0)],
    "cone + span": [("nonnegative", NAN), ("free", NAN)],
    "cone + hull": [("nonnegative", NAN), ("nonnegative", 3.0)],
}


@dataclass
class Case:
    """min 1/2 |A w - b|^2 under the constraints: the small problem with G = A'A, c = A'b, bounded by construction."""

    A: np.ndarray
    b: np.ndarray
    nonnegative: np.ndarray
    block: np.ndarray
    totals: np.ndarray

    @classmethod
    def of(cls, A, b, kind="hull", rng=None):
        A = np.asarray(A, dtype=float)
        parts, k = KINDS[kind], A.shape[1]
        block = np.arange(k) % len(parts)
        either = np.arange(k) % 3 == 0 if rng is None else rng.random(k) < 0.5
        signs = {"free": np.zeros(k, bool), "nonnegative": np.ones(k, bool), "either": either}
        nonnegative = np.array([signs[parts[j][0]][i] for i, j in enumerate(block)], dtype=bool)
        return cls(A, np.asarray(b, dtype=float), nonnegative, block, np.array([total for _, total in parts]))

    @property
    def G(self):
        return self.A.T @ self.A

    @property
    def c(self):
        return self.A.T @ self.b

    @property
    def k(self):
        return self.A.shape[1]

    def problem(self):
        return WeightProblem.of(self.G, self.nonnegative, self.block, self.totals)

    def appended(self):
        """The same problem, one weight after the other."""
        problem = WeightProblem(self.totals)
        for i in range(self.k):
            problem.extend(self.G[i : i + 1, : i + 1], self.nonnegative[[i]], self.block[[i]])
        return problem

    def scaled(self, s):
        return Case(self.A * s, self.b * s, self.nonnegative, self.block, self.totals)

    def part(self, mask):
        return Case(self.A[:, mask], self.b, self.nonnegative[mask], self.block[mask], self.totals)

    def start(self, rng=None):
        """A feasible point: a vertex, or a random one with some zeros."""
        w = np.zeros(self.k)
        for j, total in enumerate(self.totals):
            mine = np.flatnonzero(self.block == j)
            if rng is None:
                w[mine[:1]] = 0.0 if np.isnan(total) else total
                continue
            v = rng.random(len(mine)) * (rng.random(len(mine)) < 0.6)
            if np.isnan(total):
                w[mine] = np.where(self.nonnegative[mine], v, rng.normal(size=len(mine)))
            else:
                v[rng.integers(len(mine))] += 0.1
                w[mine] = v / v.sum() * total
        return w

    def slope(self, w):
        return self.A.T @ (self.A @ w - self.b)

    def value(self, w):
        return 0.5 * float(np.sum((self.A @ w - self.b) ** 2))

    def size(self, w):
        """The length of what is added up in A w - b: rounding is measured against it."""
        return float(np.linalg.norm(self.A, axis=0) @ np.abs(w) + np.linalg.norm(self.b))

    # ------------------------------------------------------------ laws

    def assert_feasible(self, w):
        assert w.shape == (self.k,)
        assert np.isfinite(w).all()
        assert (w[self.nonnegative] >= 0).all()
        for j, total in enumerate(self.totals):
            if not np.isnan(total):
                mine = w[self.block == j]
                assert abs(mine.sum() - total) <= 1e-12 * max(abs(total), np.abs(mine).sum())

    def assert_not_worse(self, w, start):
        assert self.value(w) <= self.value(start) + 1e-13 * max(self.size(w), self.size(start)) ** 2

    def assert_optimal(self, w, tol=1e-10):
        """Feasible, and the KKT conditions hold up to rounding in the lengths of the atoms and of the residual."""
        self.assert_feasible(w)
        slope, length, size = self.slope(w), np.linalg.norm(self.A, axis=0), self.size(w)
        for j, total in enumerate(self.totals):
            mine = self.block == j
            s, inside = slope[mine], (w[mine] != 0) | ~self.nonnegative[mine]
            unit = length[mine]
            if not np.isnan(total):
                s = s - s[inside].mean()
                unit = np.full(len(s), length[mine].max())
            assert (np.where(inside, np.abs(s), np.maximum(-s, 0.0)) <= tol * unit * size).all()


def brute_force(case):
    """The minimum over all choices of nonzero non-negative weights, each a linear system."""
    constrained, best = np.flatnonzero(case.nonnegative), np.inf
    fixed = np.flatnonzero(~np.isnan(case.totals))
    for choice in product([False, True], repeat=len(constrained)):
        on = ~case.nonnegative
        on[constrained] = choice
        E = (case.block[on][None, :] == fixed[:, None]).astype(float)
        K = np.block([[case.G[np.ix_(on, on)], E.T], [E, np.zeros((len(fixed), len(fixed)))]])
        rhs = np.concatenate([case.c[on], case.totals[fixed]])
        z = np.linalg.lstsq(K, rhs, rcond=1e-12)[0][: on.sum()]
        if (z[case.nonnegative[on]] < -1e-10).any() or np.abs(E @ z - case.totals[fixed]).max(initial=0.0) > 1e-9:
            continue
        w = np.zeros(case.k)
        w[on] = z
        best = min(best, case.value(w))
    return best


@st.composite
def cases(draw, most=6, kinds=tuple(KINDS)):
    """Small problems, many of them degenerate: integer atoms, copies, more atoms than dimensions."""
    kind = draw(st.sampled_from(kinds))
    n, k = draw(st.integers(1, 6)), draw(st.integers(len(KINDS[kind]), most))
    style, copies = draw(st.sampled_from(["normal", "positive", "integer"])), draw(st.integers(0, 2))
    rng = np.random.default_rng(draw(SEED))
    A = {"integer": rng.integers(-2, 3, (n, k)), "positive": rng.random((n, k))}.get(style, rng.normal(size=(n, k)))
    for _ in range(copies):
        A[:, rng.integers(k)] = A[:, rng.integers(k)]
    b = rng.integers(-3, 4, n) if style == "integer" else rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    case = Case.of(A, b, kind, rng)
    return case, case.start(rng if draw(st.booleans()) else None)


# ---------------------------------------------------------------------- the exact minimum


@LAW
@given(cases())
def test_minimum_equals_brute_force_over_all_active_sets(drawn):
    case, start = drawn
    w = case.problem().solve(case.c, start)
    case.assert_feasible(w)
    best = brute_force(case)
    assert abs(case.value(w) - best) <= 1e-9 * case.size(w) ** 2


@LAW
@given(cases(most=25))
def test_every_answer_satisfies_the_kkt_conditions_and_is_not_worse_than_its_start(drawn):
    case, start = drawn
    w = case.problem().solve(case.c, start)
    case.assert_optimal(w)
    case.assert_not_worse(w, start)


@LAW
@given(cases(), st.sampled_from([-249, -100, -20, 20, 100, 249]))
def test_scaling_the_atoms_by_a_power_of_two_changes_no_bit_of_the_weights(drawn, exponent):
    case, start = drawn  # G and c from 1e-150 to 1e150: any tolerance in the units of the data would show
    if not np.linalg.norm(case.A, axis=0).all():
        return  # zero atoms have no scale
    small = case.scaled(2.0**exponent)
    np.testing.assert_array_equal(small.problem().solve(small.c, start), case.problem().solve(case.c, start))
    np.testing.assert_array_equal(small.appended().solve(small.c, start), case.appended().solve(case.c, start))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_equal_an_interior_point_solver(kind, seed):
    rng = np.random.default_rng(seed)
    case = Case.of(rng.normal(size=(12, 9)), 2 * rng.normal(size=12), kind, rng)
    w = case.problem().solve(case.c, case.start())
    x = cp.Variable(9)
    constraints = [x[i] >= 0 for i in np.flatnonzero(case.nonnegative)]
    for j, total in enumerate(case.totals):
        if not np.isnan(total):
            constraints.append(cp.sum(x[np.flatnonzero(case.block == j)]) == total)
    reference = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(case.A @ x - case.b)), constraints)
    reference.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    assert case.value(w) == pytest.approx(reference.value, rel=1e-8)
    np.testing.assert_allclose(w, x.value, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_minimum_given_as_start_with_its_slope_stays_where_it_is(kind, rng):
    case = Case.of(rng.normal(size=(10, 8)), rng.normal(size=10), kind)
    w = case.problem().solve(case.c, case.start())
    np.testing.assert_allclose(case.problem().descend(case.slope(w), w), w, rtol=0, atol=1e-13 * np.abs(w).max())


@LAW
@given(SEED, st.sampled_from(["span", "cone"]))
def test_an_answer_is_never_above_its_start_not_even_by_rounding(seed, kind):
    rng = np.random.default_rng(seed)
    case = Case.of(rng.normal(size=(5, 7)), rng.normal(size=5), kind)
    problem, w = case.problem(), case.start(rng)
    for _ in range(6):  # after the first, nothing but rounding is left
        q, start = case.slope(w), w
        w = problem.descend(q, start)
        d = w - start
        assert float(q @ d) + 0.5 * float(d @ (problem.passive.G @ d)) <= 0


def test_near_a_minimum_the_answer_is_as_exact_as_the_slope(rng):
    A = rng.normal(size=(8, 5))
    case = Case.of(A, np.zeros(8), "span")
    q = 1e-30 * rng.normal(size=5)  # invisible beside the weights, yet the step must be right
    start = np.zeros(5)
    w = case.problem().descend(q, start)
    np.testing.assert_allclose(case.G @ w, -q, rtol=1e-9)


# ---------------------------------------------------------------------- one weight, none, many


@pytest.mark.parametrize("kind", ["cone", "hull", "hull + span", "hull + hull"])
def test_many_weights_with_a_small_support_take_about_one_iteration_per_support_atom(kind, rng, monkeypatch):
    A, truth = rng.normal(size=(400, 300)), np.zeros(300)
    case = Case.of(A, np.zeros(400), kind)
    span = int((~case.nonnegative).sum())
    truth[rng.choice(300, 24, replace=False)] = rng.random(24) + 0.5
    for j, total in enumerate(case.totals):
        if not np.isnan(total):
            truth[case.block == j] *= total / truth[case.block == j].sum()
    case.b = A @ truth
    calls, step = [], PassiveSet.step

    def counted(self, *args):
        calls.append(len(self.members))
        return step(self, *args)

    monkeypatch.setattr(PassiveSet, "step", counted)
    start = case.start()
    w = case.problem().solve(case.c, start)
    case.assert_optimal(w)
    np.testing.assert_allclose(w, truth, rtol=0, atol=1e-12 * np.abs(truth).sum())
    assert len(calls) <= 4 * 24
    assert max(calls) <= 4 * 24 + span


# ---------------------------------------------------------------------- memory: append, keep, warm starts


@settings(LAW, max_examples=75)
@given(SEED, st.sampled_from(list(KINDS)), st.integers(1, 8), st.booleans())
def test_warm_starts_through_appends_and_keeps_give_the_cold_answer(seed, kind, n, degenerate):
    rng = np.random.default_rng(seed)
    A = rng.integers(-1, 2, (n, 30)).astype(float) if degenerate else rng.normal(size=(n, 30))
    whole = Case.of(A, rng.normal(size=n), kind, rng)
    problem, here, w = WeightProblem(whole.totals), [], np.zeros(0)
    first = whole.start()
    for i in range(30):
        here.append(i)
        case = whole.part(np.array(here))
        problem.extend(case.G[-1:], whole.nonnegative[[i]], whole.block[[i]])
        w = np.append(w, first[i])
        if i < len(whole.totals) - 1 or rng.random() < 0.4:
            continue
        start = w
        w = problem.descend(case.slope(w), w)
        case.assert_optimal(w)
        case.assert_not_worse(w, start)
        cold = case.problem().solve(case.c, case.start())
        assert np.linalg.norm(case.A @ (w - cold)) <= 1e-6 * case.size(w)
        assert abs(case.value(w) - case.value(cold)) <= 1e-11 * case.size(w) ** 2
        if rng.random() < 0.3:
            keep = (w != 0) | (rng.random(len(w)) < 0.5)
            problem.keep(keep)
            here, w = [j for j, kept in zip(here, keep, strict=True) if kept], w[keep]
            part = whole.part(np.array(here, dtype=int))
            np.testing.assert_allclose(problem.passive.G, part.G, rtol=0, atol=1e-13 * n)


@FEW
@given(SEED, st.sampled_from(list(KINDS)))
def test_the_factor_of_the_passive_set_is_that_of_its_matrix_after_every_call(seed, kind):
    rng = np.random.default_rng(seed)
    case = Case.of(rng.normal(size=(10, 24)), rng.normal(size=10), kind, rng)
    problem = case.problem()
    for _ in range(5):
        w = problem.solve(case.A.T @ rng.normal(size=10), case.start(rng))
        p = problem.passive.members
        assert set(np.flatnonzero(w)) <= set(p)
        same = case.block[p][:, None] == case.block[p][None, :]
        M = (case.G[np.ix_(p, p)] + problem.passive._alpha[case.block[p]] * same) / np.outer(
            problem.passive.scale[p], problem.passive.scale[p]
        )
        np.testing.assert_allclose(problem.passive._factor.L @ problem.passive._factor.L.T, M, rtol=0, atol=1e-13)


def test_forgetting_weights_that_are_not_zero_is_forgotten_by_the_factor_too(rng):
    case = Case.of(rng.normal(size=(12, 6)), rng.normal(size=12), "span")
    problem = case.problem()
    problem.solve(case.c, np.zeros(6))
    keep = np.array([True, False, True, True, False, True])
    problem.keep(keep)
    reference = np.linalg.lstsq(case.A[:, keep], case.b, rcond=None)[0]
    np.testing.assert_allclose(problem.solve(case.c[keep], np.zeros(4)), reference, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_given_is_written_to(kind, rng):
    A = rng.normal(size=(4, 9))
    A[:, 4] = A[:, 0]
    case = Case.of(A, rng.normal(size=4), kind)
    G, start = case.G, case.start(rng)
    problem = WeightProblem.of(G, case.nonnegative, case.block, case.totals)
    q = case.slope(start)
    given_ = [x.copy() for x in (G, start, q, case.nonnegative, case.block, case.totals)]
    w = problem.descend(q, start)
    w += 1.0  # the answer is the caller's own
    if kind not in {"affine", "either sign, fixed sum"}:
        projected_gradient(problem, q, start, 3)
    for x, before in zip((G, start, q, case.nonnegative, case.block, case.totals), given_, strict=True):
        np.testing.assert_array_equal(x, before)


# ---------------------------------------------------------------------- dependent atoms


def dependent_atoms(name, rng):
    A = rng.normal(size=(6, 8))
    if name == "copies":
        A[:, 4:] = A[:, :4]
    elif name == "opposite":
        A[:, 4:] = -A[:, :4]
    elif name == "linear dependence":
        A[:, 5:] = A[:, :3] @ rng.normal(size=(3, 3))
    elif name == "affine dependence":
        A[:, 5:] = A[:, :5] @ rng.dirichlet(np.ones(5), size=3).T
    elif name == "rank one":
        A = np.outer(rng.normal(size=6), rng.normal(size=8))
    elif name == "one atom many times":
        A = np.outer(rng.normal(size=6), np.ones(8))
    elif name == "some zero":
        A[:, ::3] = 0.0
    elif name == "all zero":
        A = np.zeros((6, 8))
    elif name == "on a line":
        A = np.arange(8.0)[None, :] * np.ones((6, 1)) + rng.normal(size=(6, 1))
    elif name == "more than dimensions":
        A = rng.normal(size=(2, 8))
    return A


DEPENDENCE = ["copies", "opposite", "linear dependence", "affine dependence", "rank one", "one atom many times"]
DEPENDENCE += ["some zero", "all zero", "on a line", "more than dimensions"]


@pytest.mark.parametrize("scale", [1e-75, 1.0, 1e75])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DEPENDENCE)
def test_dependent_atoms_are_solved_exactly_from_every_start(name, kind, scale):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        case = Case.of(dependent_atoms(name, rng), rng.normal(size=6)[: 2 if name.startswith("more") else 6], kind)
        if name == "opposite":  # beside each atom its negative, in the same block and under the same sign
            case = Case.of(np.stack([case.A[:, :4], case.A[:, 4:]], axis=2).reshape(6, 8), case.b, kind)
            case.block = np.repeat(np.arange(4) % len(case.totals), 2)
            case.nonnegative = np.array([KINDS[kind][j][0] == "nonnegative" for j in case.block])
        case = case.scaled(scale)
        everywhere = np.ones(8)
        for j, total in enumerate(case.totals):
            mine = case.block == j
            everywhere[mine] *= (1.0 if np.isnan(total) else total) / mine.sum()
        for start in (case.start(), case.start(rng), everywhere):
            for problem in (case.problem(), case.appended()):
                w = problem.solve(case.c, start)
                case.assert_optimal(w)
                case.assert_not_worse(w, start)
                again = problem.solve(case.c, w)
                case.assert_optimal(again)
                case.assert_not_worse(again, w)


@settings(LAW, max_examples=300)
@given(SEED, st.sampled_from(list(KINDS)), st.sampled_from([1e-1, 1e-2, 1e-3, 1e-4]))
def test_coherent_atoms_in_a_small_space_are_solved_with_no_more_passive_ones_than_dimensions(seed, kind, spread):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(1, 5)), int(rng.integers(5, 10))
    A = np.where(
        rng.random(k) < 0.5, rng.normal(size=(n, 1)) + spread * rng.normal(size=(n, k)), rng.normal(size=(n, k))
    )
    case = Case.of(A, rng.normal(size=n), kind, rng)
    problem, start = case.problem(), case.start(rng)
    w = problem.solve(case.c, start)
    assert len(problem.passive.members) <= n + (~np.isnan(case.totals)).sum()
    case.assert_feasible(w)
    reference = brute_force(case) if case.k <= 8 else case.value(case.problem().solve(case.c, case.start()))
    assert case.value(w) <= reference + 1e-7 * case.value(start) + 1e-13 * case.size(w) ** 2


@settings(LAW, max_examples=300)
@given(SEED, st.sampled_from(["cone + span", "hull + span", "cone + hull"]), st.sampled_from([1e-8, 1e-7, 1e-6]))
def test_copies_of_free_atoms_among_nonnegative_ones_cost_nothing(seed, kind, distance):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(6, 20)), int(rng.integers(8, 24))
    A = rng.random((n, k))
    for i in range(3, k):
        if rng.random() < 0.3:
            A[:, i] = A[:, rng.integers(i)] + distance * rng.normal(size=n)
    case = Case.of(A, rng.normal(size=n), kind)
    problem, w = case.problem(), case.start(rng)
    for _ in range(2):
        start = w
        w = problem.solve(case.c, start)
        case.assert_feasible(w)
        case.assert_not_worse(w, start)
        case.assert_optimal(w, tol=1e-6)


def test_the_weight_of_copies_in_the_start_is_moved_not_lost():
    case = Case.of([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0.2, 0.4])
    w = case.problem().solve(case.c, np.array([0.4, 0.4, 0.2]))
    np.testing.assert_allclose([w[0] + w[1], w[2]], [0.4, 0.6], rtol=1e-14)


def test_a_free_atom_equal_to_a_nonnegative_active_one_can_still_go_negative():
    case = Case(np.ones((1, 2)), np.array([-1.0]), np.array([True, False]), np.array([0, 1]), np.array([NAN, NAN]))
    np.testing.assert_allclose(case.problem().solve(case.c, np.array([1.0, 0.0])), [0.0, -1.0], atol=1e-15)


def test_an_exchange_never_empties_a_block_through_a_rounding_sized_coefficient():
    # the second cone atom is minus the first up to 1e-9, which only the one atom of the simplex block explains
    A = np.array([[1.0, -1.0, -1.0], [0.0, 1e-9, 1.0]])
    case = Case(A, np.array([1.0, 1.5]), np.ones(3, bool), np.array([0, 0, 1]), np.array([NAN, 1.0]))
    w = case.problem().solve(case.c, np.array([10.0, 0.0, 1.0]))
    case.assert_feasible(w)
    case.assert_optimal(w, tol=1e-8)


# ---------------------------------------------------------------------- blocks and their scales


@pytest.mark.parametrize("lengths", [1e-60, 1e-20, 1e20, 1e60])
def test_atoms_of_very_different_lengths_without_a_total_are_solved(lengths):
    A = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    D = np.array([1.0, lengths, 1 / lengths])
    w = np.array([1.0, 2.0, 3.0])
    for kind in ("span", "cone"):
        case = Case.of(A * D, A @ w, kind)
        np.testing.assert_allclose(case.problem().solve(case.c, np.zeros(3)) * D, w, rtol=1e-12)


@pytest.mark.parametrize("kind", ["hull", "affine", "cone + hull"])
def test_a_total_of_zero_is_kept(kind):
    case = Case.of([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 3.0, 1.0]], [1.0, 2.0], kind)
    case.totals = np.where(np.isnan(case.totals), NAN, 0.0)
    w = case.problem().solve(case.c, np.zeros(4))
    case.assert_not_worse(w, np.zeros(4))
    for j in np.flatnonzero(case.totals == 0):
        assert abs(w[case.block == j].sum()) <= 1e-15 * max(1.0, np.abs(w).sum())


# ---------------------------------------------------------------------- projection


@LAW
@given(SEED, st.integers(1, 12), st.sampled_from([1e-100, 1e-3, 1.0, 50.0]), st.sampled_from([0.5, 1.0, 4.0]))
def test_projection_is_the_nearest_feasible_point(seed, k, spread, total):
    rng = np.random.default_rng(seed)
    v = spread * rng.normal(size=3 * k)
    block, totals = np.repeat([0, 1, 2], k), np.array([total, NAN, NAN])
    nonnegative = block < 2
    p = nearest_feasible(v, nonnegative, block, totals)
    np.testing.assert_array_equal(p[2 * k :], v[2 * k :])
    np.testing.assert_array_equal(p[k : 2 * k], np.maximum(v[k : 2 * k], 0.0))
    s, d = p[:k], (v - p)[:k]
    assert (s >= 0).all()
    assert abs(s.sum() - total) <= 1e-12 * total
    assert d.max() * total - d @ s <= 1e-13 * (total + spread) ** 2 * k  # <v - p, z - p> <= 0 at every vertex z


def test_projection_with_a_free_weight_under_a_total_is_refused():
    with pytest.raises(NotImplementedError, match="non-negative throughout"):
        nearest_feasible(np.ones(2), np.array([True, False]), np.zeros(2, int), np.array([1.0]))


# ---------------------------------------------------------------------- projected gradient

PROJECTABLE = [kind for kind in KINDS if kind not in {"affine", "either sign, fixed sum"}]


@LAW
@given(cases(most=12, kinds=PROJECTABLE), st.sampled_from([1e-75, 1.0, 1e75]))
def test_projected_gradient_steps_stay_feasible_and_never_go_up(drawn, scale):
    case, start = drawn[0].scaled(scale), drawn[1]
    problem, q, last = case.problem(), case.slope(start), start
    for steps in range(1, 6):
        w = projected_gradient(problem, q, start, steps)
        case.assert_feasible(w)
        case.assert_not_worse(w, last)
        last = w


def test_projected_gradient_takes_the_steps_of_the_textbook(rng):
    case = Case.of(rng.normal(size=(5, 4)), rng.normal(size=5))
    start = w = case.start(rng)
    for _ in range(3):
        v = w - case.slope(w) / np.abs(case.G).sum(axis=1).max()
        w = nearest_feasible(v, case.nonnegative, case.block, case.totals)
    np.testing.assert_allclose(projected_gradient(case.problem(), case.slope(start), start, 3), w, rtol=0, atol=1e-14)


def test_projected_gradient_survives_a_slope_far_larger_than_the_curvature():
    problem = WeightProblem.of(1e-20 * np.eye(2), True, 0, [1.0])
    w = projected_gradient(problem, np.array([-1.0, 0.0]), np.array([0.5, 0.5]), 3)
    np.testing.assert_allclose(w, [1.0, 0.0], atol=1e-15)
