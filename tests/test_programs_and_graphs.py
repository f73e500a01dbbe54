"""Sets whose oracle is a solver or a search in a graph, against lists of all their atoms."""

import math
from itertools import chain, combinations, islice, product

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pursuit as ps
from pursuit.atoms import graphs, programs
from pursuit.threads import at_most

COLD = [False, True] if programs.find_spec("highspy") else [True]
"""Whether linear programs are solved from the beginning, by SciPy."""


@pytest.fixture(params=COLD, ids=["cold" if c else "warm" for c in COLD])
def solver(request, monkeypatch):
    """Run the test with each solver of linear programs that is installed."""
    if request.param:
        monkeypatch.setattr(programs, "find_spec", lambda name: None)


# ------------------------------------------------------------------------------- lists of all atoms


def vertices(A_ub, b_ub):
    """All vertices of {A x <= b}: the feasible points where n rows hold with equality."""
    n, found = A_ub.shape[1], []
    for rows in combinations(range(len(b_ub)), n):
        square = A_ub[list(rows)]
        if abs(np.linalg.det(square)) > 1e-9:
            x = np.linalg.solve(square, b_ub[list(rows)])
            if (A_ub @ x <= b_ub + 1e-9).all():
                found.append(x)
    return np.array(found)


def simple_paths(edges, start, end):
    """All paths from start to end, as indicators of edges."""
    found, stack = [], [(start, (), {start})]
    while stack:
        node, path, seen = stack.pop()
        if node == end:
            found.append(np.isin(np.arange(len(edges)), path).astype(float))
            continue
        for i, (tail, head) in enumerate(edges):
            if tail == node and head not in seen:
                stack.append((head, (*path, i), seen | {head}))
    return np.array(found)


def subsets(edges, sizes, good):
    """The indicators of all sets of edges of these sizes that are good."""
    chosen = chain.from_iterable(combinations(range(len(edges)), k) for k in sizes)
    return np.array([np.isin(np.arange(len(edges)), c).astype(float) for c in chosen if good([edges[i] for i in c])])


def is_tree(nodes):
    def good(chosen):
        parts = [{v} for v in range(nodes)]
        for i, j in chosen:
            one, other = (next(p for p in parts if v in p) for v in (i, j))
            if one is other:
                return False
            parts = [p for p in parts if p is not one and p is not other] + [one | other]
        return len(parts) == 1

    return good


def is_matching(chosen):
    ends = [v for edge in chosen for v in edge]
    return len(ends) == len(set(ends))


def plans(a, b):
    """All vertices of the transport polytope: feasible plans on m + n - 1 cells that determine them."""
    m, n, found = len(a), len(b), []
    sums = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    for cells in combinations(range(m * n), m + n - 1):
        x, _, rank, _ = np.linalg.lstsq(sums[:, cells], np.concatenate([a, b]))
        if rank == m + n - 1 and (x >= -1e-12).all():
            X = np.zeros(m * n)
            X[list(cells)] = np.maximum(x, 0.0)
            found.append(X.reshape(m, n))
    return np.array(found)


def supports(weights):
    """All vertices of the ball of ordered weights, and more points of it."""
    n, sums = len(weights), np.cumsum(weights)
    signs = [np.array(s) for s in product((-1.0, 0.0, 1.0), repeat=n) if any(s)]
    return np.array([s / sums[np.count_nonzero(s) - 1] for s in signs])


RNG = np.random.default_rng(0)
ACYCLIC = [(i, j) for i in range(5) for j in range(i + 1, 5)] + [(0, 4), (1, 2)]  # some edges twice
CYCLIC = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 3), (3, 1), (1, 3), (0, 1)]
COMPLETE = [(i, j) for i in range(5) for j in range(i)]
BIPARTITE = [(0, 3), (4, 0), (1, 3), (5, 1), (2, 4), (2, 5), (2, 3), (0, 3)]
RECTANGLE = [(i, 2 + j) for i in range(2) for j in range(4)]
ROWS, RIGHT = RNG.standard_normal((4, 3)), RNG.uniform(0.5, 1.5, 4)
BOXED = np.vstack([ROWS, np.eye(3), -np.eye(3)]), np.concatenate([RIGHT, np.ones(6)])
WEIGHTS = RNG.integers(1, 9, (2, 6))
ALL_BITS = np.array(list(product((0.0, 1.0), repeat=6)))
CAPACITY = WEIGHTS.sum(axis=1) // 2
BITS = ALL_BITS[((CAPACITY - ALL_BITS @ WEIGHTS.T) >= 0).all(axis=1)]
A3, B4 = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.5, 0.5])

LISTED = {  # a set, and all its atoms
    "bounds": (lambda: ps.Polytope(ROWS, RIGHT, bounds=(-1, 1)), vertices(*BOXED)),
    "no bounds": (lambda: ps.Polytope(*BOXED, bounds=None), vertices(*BOXED)),
    "one bound": (
        lambda: ps.Polytope(np.vstack([ROWS, np.eye(3)]), np.append(RIGHT, np.ones(3)), bounds=(-1, None)),
        vertices(*BOXED),
    ),
    "equations": (
        lambda: ps.Polytope(A_eq=sp.csr_array(np.ones((1, 5))), b_eq=[2], bounds=(0, 1)),
        np.array([x for x in product((0.0, 1.0), repeat=5) if sum(x) == 2]),
    ),
    "integers": (lambda: ps.Polytope(WEIGHTS, CAPACITY, bounds=(0, 1), integrality=1), BITS),
    "paths": (lambda: ps.Paths(ACYCLIC, 0, 4), simple_paths(ACYCLIC, 0, 4)),
    "flows": (
        lambda: ps.Flows(ACYCLIC, 2.0 * np.eye(5, k=3) + np.eye(5, k=4)),
        np.array([
            2 * p + 2 * q + r
            for p, q, r in product(*(simple_paths(ACYCLIC, i, j) for i, j in ((0, 3), (1, 4), (0, 4))))
        ]),
    ),
    "trees": (lambda: ps.SpanningTrees(COMPLETE), subsets(COMPLETE, [4], is_tree(5))),
    "trees of double edges": (lambda: ps.SpanningTrees(CYCLIC), subsets(CYCLIC, [3], is_tree(4))),
    "matchings": (lambda: ps.Matchings(COMPLETE), subsets(COMPLETE, range(3), is_matching)),
    "bipartite": (lambda: ps.Matchings(BIPARTITE), subsets(BIPARTITE, range(4), is_matching)),
    "perfect": (lambda: ps.Matchings(COMPLETE[:6], perfect=True), subsets(COMPLETE[:6], [2], is_matching)),
    "perfect bipartite": (lambda: ps.Matchings(BIPARTITE, perfect=True), subsets(BIPARTITE, [3], is_matching)),
    "rectangle": (lambda: ps.Matchings(RECTANGLE, perfect=True), subsets(RECTANGLE, [2], is_matching)),
    "transport": (lambda: ps.Transport(A3, B4), plans(A3, B4)),
    "assignment": (lambda: ps.Transport([2, 2], [1, 1, 1, 1]), plans(np.full(2, 2.0), np.ones(4))),
    "equal masses": (lambda: ps.Transport([2, 2, 2], [3, 3]), plans(np.full(3, 2.0), np.full(2, 3.0))),
    "ordered weights": (lambda: ps.OrderedWeights([3.0, 2.0, 2.0, 0.5]), supports([3.0, 2.0, 2.0, 0.5])),
    "largest k": (lambda: ps.OrderedWeights([1, 1, 0, 0]), supports([1.0, 1.0, 0.0, 0.0])),
}  # fmt: skip

GRADIENTS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "integers": lambda rng, shape: rng.integers(-9, 9, shape),
    "zero": lambda rng, shape: np.zeros(shape),
    "one entry": lambda rng, shape: np.eye(1, math.prod(shape), int(rng.integers(math.prod(shape)))).reshape(shape),
    "negative": lambda rng, shape: -rng.exponential(size=shape),
    "tiny": lambda rng, shape: 1e-200 * rng.standard_normal(shape),
    "huge": lambda rng, shape: 1e150 * rng.standard_normal(shape),
    "bad scales": lambda rng, shape: rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 7, shape),
    "float32": lambda rng, shape: rng.standard_normal(shape).astype(np.float32),
}


@pytest.mark.parametrize("kind", GRADIENTS)
@pytest.mark.parametrize("name", LISTED)
def test_the_oracle_finds_the_best_of_all_atoms_and_its_bound_is_below_them(name, kind, rng, solver):
    make, atoms = LISTED[name]
    A = make()
    search, rows = A.begin(), atoms.reshape(len(atoms), -1)
    for _ in range(8):
        g = GRADIENTS[kind](rng, A.shape)
        g = g if g.dtype.kind == "f" else g.astype(int)
        before = g.copy()
        values, size = rows @ g.ravel().astype(float), float(np.abs(g).max()) or 1.0
        found, lower = search(g.astype(float) if g.dtype.kind == "i" else g, 1, -math.inf)
        near, eps = (1e-5, 1e-5) if g.dtype == np.float32 else (1e-9, 1e-13)
        for a in (found[0], A.lmo(g)):  # the answers of a run and of one call
            assert float(np.vdot(a.vector.astype(float), g)) == pytest.approx(values.min(), abs=near * size)
            assert A.convex or np.abs(rows - a.vector.ravel()).max(axis=1).min() <= near
            assert A.contains(a.vector) is not False
        assert values.min() - near * size <= lower <= values.min() + eps * size
        np.testing.assert_array_equal(g, before)


@pytest.mark.parametrize("name", LISTED)
def test_the_sets_obey_the_laws(name, solver):
    make, atoms = LISTED[name]
    A = make()
    ps.check_atoms(A, trials=8)
    rows = atoms.reshape(len(atoms), -1)
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    assert np.linalg.norm(rows, axis=1).max() <= A.radius * (1 + 1e-12)
    assert distances.max() <= A.diameter * (1 + 1e-12)
    for x in atoms[:20]:
        assert A.contains(x) is not False
        assert not A.contains(x + 10.0)
        assert not A.contains(np.zeros(7))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(LISTED)), update=st.integers(0, 2))
def test_the_certificate_holds_over_every_set(seed, name, update):
    """The minimum over the hull of the listed atoms is the reference."""
    make, atoms = LISTED[name]
    A, rng = make(), np.random.default_rng(seed)
    f = ps.LeastSquares(2.0 * rng.standard_normal(A.shape) + 0.7 * atoms.mean(axis=0))
    listed = ps.Dictionary(np.moveaxis(atoms[np.linalg.norm(atoms.reshape(len(atoms), -1), axis=1) > 0], 0, -1))
    origin = bool((np.linalg.norm(atoms.reshape(len(atoms), -1), axis=1) == 0).any())
    zero = ps.Polytope(A_eq=np.eye(math.prod(A.shape)), b_eq=np.zeros(math.prod(A.shape)))
    best = ps.minimize(f, ps.conv(listed | zero if origin else listed), stop=ps.Stop(rgap=1e-12, gap=1e-12))
    method = (None, ps.Away(), ps.Plain(ps.LineSearch()))[update]
    for s in islice(ps.iterate(f, ps.conv(A), method), 30):
        assert s.lower <= best.value + 1e-9 * (1 + best.value)
        assert s.gap >= s.value - best.value - 1e-9 * (1 + best.value)
        assert s.value >= best.lower - 1e-9 * (1 + best.value)
    if update == 0:
        assert s.value - best.value <= 1e-6 * (1 + best.value)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*LISTED, "Fantope", "Ellipsoid"])
def test_arrays_of_other_libraries_stay_what_they_are(name, dtype, rng):
    A = ps.Fantope(3, 2) if name == "Fantope" else ps.Ellipsoid(np.eye(3), [1, 0, 0]) if name == "Ellipsoid" else None
    A = A or LISTED[name][0]()
    y = rng.standard_normal(A.shape)
    given = array_api_strict.asarray(y, dtype=getattr(array_api_strict, dtype))
    r = ps.minimize(ps.LeastSquares(given), ps.conv(A), stop=ps.Stop(rgap=1e-4, iterations=100))
    assert type(r.x) is type(given) and r.x.dtype == given.dtype
    assert r.value == pytest.approx(ps.minimize(ps.LeastSquares(y), ps.conv(A)).value, rel=1e-3, abs=1e-3)


# --------------------------------------------------------------------------------- linear programs


@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-12, 1.0, 1e12]))
def test_whatever_the_dual_variables_are_the_bound_holds(seed, scale):
    """HiGHS's dual variables satisfy their constraints to a tolerance only; here they are far from it."""
    rng, atoms = np.random.default_rng(seed), vertices(*BOXED)
    g, small = scale * rng.standard_normal(3), 10.0 ** rng.integers(-9, 1)
    half = ps.Polytope(*BOXED, bounds=[(None, None), (-1, None), (None, 1)])
    for A in (half, ps.Polytope(ROWS, RIGHT, bounds=(-1, 1))):
        y = A._signed(small * scale * rng.standard_normal(len(A._b)))
        assert A._bound(g, y, *A._enclosed) <= (atoms @ g).min() + 1e-14 * scale
        assert (A._enclosed[0] <= atoms.min(axis=0)).all() and (A._enclosed[1] >= atoms.max(axis=0)).all()


def test_a_polytope_of_very_different_scales_is_certified(solver, rng):
    """Rows and entries over ten orders of magnitude; the reference is the same polytope in better units."""
    units = 10.0 ** rng.integers(-5, 6, 3)
    A, atoms = ps.Polytope(BOXED[0] / units, BOXED[1], bounds=None), vertices(*BOXED) * units
    for _ in range(10):
        g = rng.standard_normal(3) / units
        found, lower = A.begin()(g, 1, -math.inf)
        least = (atoms @ g).min()
        assert lower <= least + 1e-9 * abs(least)
        assert found[0].vector @ g == pytest.approx(least, rel=1e-6)


def test_a_polytope_of_large_numbers_is_not_called_empty_in_the_middle_of_a_run(solver):
    """The rounding errors of entries near 1e6 are as large as HiGHS's smallest tolerance."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        n = int(rng.integers(3, 6))
        inside, rows, sums = 1e6 * rng.integers(0, 3, n), rng.integers(-2, 3, (4, n)), rng.integers(-2, 3, (1, n))
        units = 10.0 ** rng.integers(-5, 6, 4)
        limits = rows @ inside + 1e6 * rng.integers(0, 2, 4)
        equations = np.vstack([sums, sums])
        A = ps.Polytope(units[:, None] * rows, units * limits, equations, equations @ inside, bounds=(-1e6, 5e6))
        f = ps.LeastSquares(3e6 * rng.standard_normal(n))
        r = ps.minimize(f, ps.conv(A), ps.Away(), stop=ps.Stop(iterations=100))
        assert A.contains(r.x) and r.lower <= f.value(inside)


def test_a_point_whose_entries_rounding_puts_below_a_bound_belongs_to_a_polytope():
    A = ps.Polytope([[1.0, 1.0, 1.0]], [3.0])
    assert A.contains(np.array([1.0, 2.0, -1e-17])) and not A.contains(np.array([1.0, 1.0, -1e-6]))


def test_a_large_entry_leaves_no_room_beyond_the_bounds_of_a_small_one():
    A = ps.Polytope(bounds=[(0, 1e9), (0, 1)])
    assert A.contains(np.array([1e9, 1.0])) and A.contains(np.array([1e9, 1.0 + 1e-12]))
    assert not A.contains(np.array([1e9, 1.5])) and not A.contains(np.array([1e9, -0.5]))
    assert not A.contains(np.array([1e9 + 100.0, 1.0]))


@pytest.mark.parametrize("gap", [0.0, 0.3, 0.9])
def test_an_integer_program_that_stops_early_has_an_honest_certificate(gap, rng):
    A = ps.Polytope(WEIGHTS, CAPACITY, bounds=(0, 1), integrality=1, gap=gap)
    for _ in range(5):
        f = ps.LeastSquares(rng.uniform(0, 1.5, 6))
        listed = ps.minimize(f, ps.conv(ps.Dictionary(BITS[1:].T) | ps.Dictionary(1e-300 * np.ones((6, 1)))))
        r = ps.minimize(f, ps.conv(A), stop=ps.Stop(rgap=1e-4, iterations=100))
        assert r.lower <= listed.value + 1e-9
        assert r.gap <= 1e-4 * r.value
        search, g = A.begin(), rng.standard_normal(6)
        level = float(g @ BITS.mean(axis=0))
        atom, lower = search(g, 1, level)
        best, own = (BITS @ g).min(), atom[0].vector @ g
        assert lower <= best <= own + 1e-12
        assert own - lower <= gap * (level - own) / (1 - gap if gap < 1 else 1) + 1e-9


def test_a_run_goes_on_from_the_last_vertex_and_finds_the_same():
    """The answers of one run, with or without the last vertex, are equally good."""
    if not programs.find_spec("highspy"):
        pytest.skip("highspy is not installed")
    rng = np.random.default_rng(3)
    m, n = 12, 40
    A = ps.Polytope(rng.random((m, n)), np.full(m, 5.0), bounds=(0, 1))
    search, g = A.begin(), -rng.random(n)
    for _ in range(20):
        g = g + 0.1 * rng.standard_normal(n)
        found, lower = search(g, 1, -math.inf)
        _, x, _ = A._cold(g, 1e-10)
        assert found[0].vector @ g == pytest.approx(x @ g, abs=1e-9)
        assert lower == pytest.approx(x @ g, abs=1e-9)


BAD = {
    "no b_ub": (lambda: ps.Polytope(A_ub=np.eye(2)), "A_ub comes without b_ub"),
    "no A_eq": (lambda: ps.Polytope(b_eq=np.ones(2)), "b_eq comes without A_eq"),
    "nothing": (ps.Polytope, "A_ub and A_eq are both left out"),
    "different columns": (lambda: ps.Polytope(np.eye(2), [1, 1], np.eye(3), [1, 1, 1]), "A_ub and A_eq have [2, 3]"),
    "nan": (lambda: ps.Polytope([[np.nan]], [1]), "A_ub contains NaN"),
    "nan in a sparse matrix": (lambda: ps.Polytope(sp.csr_array([[np.nan]]), [1]), "A_ub contains NaN"),
    "unbounded": (lambda: ps.Polytope([[-1.0, 0.0]], [0.0]), "the polytope is unbounded"),
    "unbounded after a vertex": (lambda: ps.Polytope([[-6, -3], [-2, -8]], [2, 3]), "the polytope is unbounded"),
    "free and unbounded": (lambda: ps.Polytope([[1.0, 1.0]], [0.0], bounds=None), "the polytope is unbounded"),
    "empty": (lambda: ps.Polytope([[1.0, 1.0]], [-1.0]), "the polytope is empty"),
    "no integers": (lambda: ps.Polytope(A_eq=[[2, 2]], b_eq=[3], integrality=1), "the polytope is empty"),
    "bounds crossed": (lambda: ps.Polytope(np.eye(2), [1, 1], bounds=(1, 0)), "bounds[0] is (1, 0)"),
    "integrality": (lambda: ps.Polytope(np.eye(2), [1, 1], integrality=[2, 0]), "integrality is [2, 0]"),
    "gap": (lambda: ps.Polytope(np.eye(2), [1, 1], gap=1.0), "gap is 1.0"),
    "masses of two sums": (lambda: ps.Transport([1, 2], [1, 1]), "a has the sum 3, b 2"),
    "no mass": (lambda: ps.Transport([1, 0], [1]), "the least of a is 0"),
    "negative nodes": (lambda: ps.SpanningTrees([(0, -1)]), "edges name nodes from -1 to 0"),
    "no path": (lambda: ps.Paths([(0, 1), (2, 1)], 0, 2), "no path leads from start = 0 to end = 2"),
    "no way": (lambda: ps.Paths([(0, 1)], 1, 1), "start and end are both 1"),
    "negative cycle": (lambda: ps.Paths(CYCLIC, 0, 3).lmo(-np.ones(9)), "g is negative around a cycle"),
    "negative cycle of a flow": (
        lambda: ps.Flows(CYCLIC, np.ones((4, 4)) - np.eye(4)[:, [3] * 4].T).lmo(-np.ones(9)),
        "g is negative around a cycle",
    ),
    "negative demand": (lambda: ps.Flows(CYCLIC, -np.ones((4, 4))), "the least of demand is -1"),
    "no demand": (lambda: ps.Flows(CYCLIC, np.eye(4)), "demand is zero between all nodes"),
    "no route": (lambda: ps.Flows([(0, 1)], np.eye(2, k=-1)), "demand goes from node 1 to node 0, but no route does"),
    "trees of two parts": (lambda: ps.SpanningTrees([(0, 1), (2, 3)]), "edges leave some of the 4 nodes apart"),
    "loop": (lambda: ps.Matchings([(0, 1), (2, 2)]), "edges join node 2 to itself"),
    "no perfect matching": (lambda: ps.Matchings([(0, 1), (1, 2), (2, 0)], True), "no matching that meets every"),
    "no bipartite one": (lambda: ps.Matchings([(0, 3), (1, 3), (2, 4), (2, 5)], perfect=True), "smaller side"),
    "weights upwards": (lambda: ps.OrderedWeights([1, 2]), "weights must decrease"),
    "flat ellipsoid": (lambda: ps.Ellipsoid(np.diag([1.0, 0.0])), "the least eigenvalue of H is 0"),
    "projections": (lambda: ps.Fantope(3, 4), "k is 4; give a number"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_one_sentence(case, solver):
    call, words = BAD[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert words in message
    assert message.endswith(".") and "\n" not in message and len(message) < 200


# ------------------------------------------------------------------------------------------ graphs


@given(seed=st.integers(0, 10**6))
def test_shortest_routes_among_cycles_are_the_best_simple_paths(seed):
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i, j in rng.integers(0, 6, (18, 2)).tolist() if i != j] + [(i, i + 1) for i in range(5)]
    g = rng.integers(0, 4, len(edges)).astype(float)  # zeros and ties
    A, paths = ps.Paths(edges, 0, 5), simple_paths(edges, 0, 5)
    found = A.lmo(g)
    assert found.dot(ps.Space.default(A.shape), g) == (paths @ g).min()
    assert (paths == found.vector).all(axis=1).any()


@given(seed=st.integers(0, 10**6))
def test_an_assignment_sends_each_demand_over_a_shortest_route(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    edges = rng.integers(0, n, (4 * n, 2)).tolist() + [(i, (i + 1) % n) for i in range(n)]
    demand = rng.integers(0, 3, (n, n)).astype(float)
    demand[0, 1] = 1.0
    g = rng.integers(0, 4, len(edges)).astype(float)
    x = ps.Flows(edges, sp.csr_array(demand) if seed % 2 else demand).lmo(g).vector
    pairs = [(i, j) for i, j in np.argwhere(demand).tolist() if i != j]
    assert g @ x == sum(demand[i, j] * (simple_paths(edges, i, j) @ g).min() for i, j in pairs)
    tails, heads = np.array(edges).T
    leaving = np.bincount(tails, x, n) - np.bincount(heads, x, n)
    np.testing.assert_allclose(leaving, demand.sum(axis=1) - demand.sum(axis=0), atol=1e-12)
    assert (x >= 0).all()


@given(seed=st.integers(0, 10**6))
def test_the_compiled_assignment_is_the_plain_one(seed):
    """Costs without ties have one shortest route for each pair. The sums do not depend on the number of threads."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 60)), int(rng.integers(1, 200))
    network = graphs.Network(np.concatenate([rng.integers(0, n, (m, 2)), np.array([(0, 1)])]), n)
    origins = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
    costs = rng.random(len(network._pairs))
    reached = np.isfinite(network.distances(origins))
    arriving = rng.random((len(origins), n)) * (rng.random((len(origins), n)) < 0.3) * reached
    plain = network.loads(network.routes(costs, origins)[1], arriving)
    np.testing.assert_allclose(network.assign(costs, origins, arriving), plain, rtol=1e-12, atol=1e-12)
    with at_most(1):
        alone = network.assign(costs, origins, arriving)
    np.testing.assert_array_equal(alone, network.assign(costs, origins, arriving))


def test_flows_need_no_compiled_code(monkeypatch):
    fast = [ps.Flows(CYCLIC, np.eye(4, k=2)).lmo(g).vector for g in np.abs(gradients(shape=(9,)))]
    monkeypatch.setattr(graphs.native, "is_built", lambda: False)
    plain = [ps.Flows(CYCLIC, np.eye(4, k=2)).lmo(g).vector for g in np.abs(gradients(shape=(9,)))]
    np.testing.assert_array_equal(fast, plain)


def test_costs_below_zero_are_allowed_where_no_cycle_is():
    A = ps.Paths(CYCLIC, 0, 3)
    g = np.array([1.0, 5.0, -2.0, 2.5, 0.0, 1.0, 1.0, 0.5, 1.0])  # 0 -> 1 -> 2 -> 3 costs 0
    paths = simple_paths(CYCLIC, 0, 3)
    assert A.lmo(g).dot(ps.Space.default((9,)), g) == (paths @ g).min() == 0.0


def test_a_node_with_two_numbers_is_not_passed_through():
    """0 -> 1 -> 2 costs less than 0 -> 2, but 1 is a terminal: it is left as 3."""
    edges, demand = [(0, 1), (3, 2), (0, 2)], np.zeros((4, 4))
    demand[0, 2], demand[0, 1], demand[3, 2] = 5.0, 2.0, 1.0
    np.testing.assert_array_equal(ps.Flows(edges, demand).lmo(np.array([1.0, 1.0, 9.0])).vector, [2.0, 1.0, 5.0])


# --------------------------------------------------------------------- claims of FrankWolfe.jl's tests


def gradients(n=20, shape=(6,), seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for _ in range(n)]


@pytest.mark.parametrize("k", range(1, 7))
def test_the_largest_k_norm_ball_is_between_two_balls_and_dual_to_the_k_sparse_polytope(k):
    """Its atoms are those of the box, of half-width 1/k, and of the L1 ball: the better of the two."""
    A = ps.OrderedWeights(np.repeat([1.0, 0.0], [k, 6 - k]))
    for g in gradients():
        v = A.lmo(g).vector
        box, cross = ps.Ball(6, np.inf).lmo(g).vector / k, ps.SignedBasis(6).lmo(g).vector
        assert v @ g == pytest.approx(min(box @ g, cross @ g))
        assert np.sort(np.abs(v))[-k:].sum() == pytest.approx(1.0)
        assert ps.KSparse(6, k).lmo(g).vector @ g == pytest.approx(-A.gauge(g))  # the dual norm of the gauge
        assert A.lmo(g).vector @ g == pytest.approx(-ps.KSparse(6, k).gauge(g))


@pytest.mark.parametrize("n", [2, 5, 9])
def test_the_atoms_of_an_ellipsoid_are_on_its_boundary_and_the_best(n):
    rng = np.random.default_rng(n)
    M = rng.standard_normal((n, n))
    H, c = M @ M.T + 0.1 * np.eye(n), rng.standard_normal(n)
    A = ps.Ellipsoid(H, c)
    for g in [*gradients(shape=(n,)), np.zeros(n), 1e200 * np.ones(n)]:
        v = A.lmo(g).vector
        assert (v - c) @ H @ (v - c) == pytest.approx(1.0)
        if np.abs(g).max() in (0.0, 1e200):
            continue
        assert v @ g == pytest.approx(c @ g - math.sqrt(g @ np.linalg.solve(H, g)))
        np.testing.assert_allclose(g / np.linalg.norm(g), -H @ (v - c) / np.linalg.norm(H @ (v - c)), atol=1e-8)


CONVEX = {  # sets without a list of atoms, and their hull in cvxpy's words
    "Ellipsoid": (
        lambda: ps.Ellipsoid(np.diag([1.0, 4.0, 0.3]) + 0.1, [0.1, -0.1, 0.3]),
        lambda X: [cp.quad_form(X - np.array([0.1, -0.1, 0.3]), np.diag([1.0, 4.0, 0.3]) + 0.1) <= 1],
    ),
    "Ellipsoid far from 0": (
        lambda: ps.Ellipsoid(np.eye(3), [3, 0, 0]),
        lambda X: [cp.sum_squares(X - np.array([3.0, 0.0, 0.0])) <= 1],
    ),
    "Fantope": (lambda: ps.Fantope(4, 2), lambda X: [X == X.T, X >> 0, np.eye(4) - X >> 0, cp.trace(X) == 2]),
    "OrderedWeights": (
        lambda: ps.OrderedWeights([3.0, 2.0, 1.0, 0.0]),
        lambda X: [cp.sum_largest(cp.abs(X), 1) + cp.sum_largest(cp.abs(X), 2) + cp.sum_largest(cp.abs(X), 3) <= 1],
    ),
}


@pytest.mark.parametrize("name", CONVEX)
def test_the_certificate_agrees_with_cvxpy(name, rng):
    A, hull = CONVEX[name][0](), CONVEX[name][1]
    ps.check_atoms(A)
    y = rng.standard_normal(A.shape)
    X = cp.Variable(A.shape)
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X - (y + y.T) / 2)), hull(X))
    program.solve(solver="CLARABEL")
    f = ps.LeastSquares((y + y.T) / 2)
    for s in islice(ps.iterate(f, ps.conv(A)), 40):
        assert s.lower <= program.value + 1e-6
        assert s.gap >= s.value - program.value - 1e-6
    assert s.value == pytest.approx(program.value, abs=1e-5)


def test_gauges_of_ellipsoids_and_fantopes_are_the_least_multiples(rng):
    A = ps.Ellipsoid(np.diag([1.0, 4.0, 0.3]) + 0.1, [0.1, -0.1, 0.3])
    for _ in range(10):
        x = rng.standard_normal(3)
        t = A.gauge(x)
        assert A.contains(x / t) and not A.contains(x / (t * (1 - 1e-6)))
        inner = ps.Fantope(4, 2)
        X = 3.0 * sum(w * inner.sample(rng).vector for w in rng.dirichlet(np.ones(4)))
        assert inner.gauge(X) == pytest.approx(3.0)
        assert inner.gauge(X - np.eye(4)) == math.inf


def test_integers_that_highs_does_not_round_keep_rows_with_large_coefficients():
    """One of four sites must be opened: x_i <= M b_i, b_i in {0, 1}. HiGHS takes b_i = 1e-7 for 0."""
    k, M, need = 4, 4e6, 2.0
    A = np.vstack([np.hstack([np.eye(k), -M * np.eye(k)]), np.r_[-np.ones(k), np.zeros(k)]])
    b = np.r_[np.zeros(k), -need]
    P = ps.Polytope(A, b, bounds=[(0, 10 * M)] * k + [(0, 1)] * k, integrality=[0] * k + [1] * k)
    atom = P.lmo(np.r_[0.1, 0.2, 0.3, 0.4, 50.0, 60.0, 70.0, 80.0]).vector
    assert (A @ atom <= b + 1e-9).all()
    np.testing.assert_allclose(atom, np.r_[need, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], atol=1e-9)


def test_a_start_outside_of_a_polytope_is_refused(rng):
    def capped(most):
        return ps.Polytope(A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=(0.0, most))

    f, inside = ps.Quadratic(np.diag(np.arange(1.0, 6.0)), np.zeros(5)), np.full(5, 0.2)
    outside = ps.minimize(f, ps.conv(capped(0.5))).x
    for A in (capped(0.25), 2 * ps.Polytope(A_eq=np.ones((1, 5)), b_eq=[0.5], bounds=(0.0, 0.125))):
        for start in (outside, np.zeros(5)):
            with pytest.raises(ValueError, match="start lies outside"):
                ps.minimize(f, ps.conv(A), start=start)
        assert not ps.minimize(f, ps.conv(A), start=inside).assumed
    whole = ps.Polytope([[1.0, 1.0]], [1.5], bounds=(0, 1), integrality=1)  # its hull is smaller than its rows say
    assert whole.hull_contains(np.array([0.75, 0.75])) is None and whole.hull_contains(np.array([1.0, 1.0])) is False
