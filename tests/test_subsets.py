"""Best subsets: equal to brute force, bounds that are never above the optimum, proofs that can be computed again."""

import itertools
import signal
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from sentences import refusal
from subset_problems import KINDS, draw

import pursuit as ps
from pursuit.estimators import GreedyRegressor
from pursuit.subsets import Clock
from pursuit.subsets.given import Given
from pursuit.subsets.prepared import prepare
from pursuit.subsets.quadratic import FREE, IN, OUT, Point, Quadratic
from pursuit.subsets.tree import Search
from pursuit.threads import at_most

WITHOUT_LIMIT = ps.Stop(rgap=1e-9, iterations=None)


@pytest.mark.parametrize("seed", [*range(6 * len(KINDS)), 10120])  # the ridge bounds a coefficient of the last
def test_the_best_subset_is_that_of_brute_force_and_its_proof_can_be_computed_again(seed):
    problem = draw(seed)
    r = ps.best(problem.f, problem.domain, problem.k, l2=problem.l2, stop=ps.Stop(rgap=1e-9, iterations=3000))
    least = min(problem.all_values().values())
    scale = abs(problem.f.value(np.zeros(problem.f.y.shape)))
    assert r.value == pytest.approx(least, abs=1e-6 * scale) and r.lower <= least + 1e-9 * scale
    assert r.status is ps.Status.GAP and r.gap <= 1e-6 * scale
    again = r.check()
    assert again.lower <= least + 1e-9 * scale and again.gap <= 1e-4 * scale
    assert again.feasible and again.error < 1e-8 and again.value == pytest.approx(r.value, abs=1e-12 * scale)


def exact_values(X, y, k, l2):
    """f of all subsets of at most k columns, as fractions."""
    columns, target = [[Fraction(v) for v in x] for x in X.T.tolist()], [Fraction(v) for v in y.tolist()]
    p, l2 = X.shape[1], Fraction(l2)
    G, c = ([[sum(map(mul, a, b)) for b in B] for a in columns] for B in (columns, [target]))
    c, square = [row[0] for row in c], sum(map(mul, target, target))
    values = {}
    for size in range(k + 1):
        for S in itertools.combinations(range(p), size):
            A = [[G[i][j] + (l2 if i == j else 0) for j in S] + [c[i]] for i in S]
            explained = Fraction(0)
            for i in range(size):  # elimination: A = L D L', explained = sum of (L^-1 c)_i^2 / D_ii
                if A[i][i] == 0:
                    continue
                explained += A[i][size] ** 2 / A[i][i]
                for e in range(i + 1, size):
                    factor = A[e][i] / A[i][i]
                    A[e] = [x - factor * z for x, z in zip(A[e], A[i], strict=True)]
            values[S] = (square - explained) / 2
    return values


def relaxed_nodes(seed, record):
    """Search a small problem with integer data; `record` gets every bound that was proved, and the node's optimum."""
    rng = np.random.default_rng(seed)
    wide = seed % 3 == 0
    n, p, k = (6, 9, 2) if wide else (int(rng.integers(10, 30)), 9, int(rng.integers(2, 5)))
    X, l2 = rng.integers(-9, 10, size=(n, p)), int(rng.integers(0, 2))
    X[0] += 10  # no column of zeros
    if seed % 5 == 0:
        X[:, 1] = X[:, 0]
    y = X[:, :2].sum(axis=1) + rng.integers(-25, 26, size=n)
    values = exact_values(X, y, k, l2)
    square = Fraction(int(y @ y))
    relax = Quadratic.relax

    def watched(self, state, start, cut, rounds=60):
        relaxed = relax(self, state, start, cut, rounds)
        if not (state > 1).any():  # in a cone, sizes of coefficients count, too
            ins = {*self.fixed, *self.units[state == IN]}
            left = ins | set(self.units[state == FREE])
            optimum, S = min((v, S) for S, v in values.items() if len(ins.union(S)) <= k and left.issuperset(S))
            rows, norms = np.vstack([X, np.sqrt(l2) * np.eye(p)]), np.linalg.norm(X, axis=0)
            sizes = np.zeros(p)
            sizes[list(S)] = abs(np.linalg.lstsq(rows[:, S], np.append(y, np.zeros(p)))[0]) * norms[list(S)]
            if (sizes[self.units] <= self.M * np.linalg.norm(y)).all():  # else it is in a cone
                record(Fraction(min(relaxed.bound, cut)) * square, optimum)  # boxes hold below the incumbent only
        return relaxed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Quadratic, "relax", watched)
        r = ps.best(ps.LeastSquares(y), ps.Dictionary(X), k, l2=l2, stop=ps.Stop(rgap=0.0, iterations=None))
    record(Fraction(r.lower), min(values.values()))


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_of_a_node_is_above_its_optimum_in_exact_arithmetic(seed):
    pairs = []
    relaxed_nodes(seed, lambda bound, optimum: pairs.append((bound, optimum)))
    assert pairs and all(bound <= optimum for bound, optimum in pairs)


@pytest.mark.parametrize("apart", [1e-6, 1e-9, 1e-12, 1e-13, 1e-15])
@pytest.mark.parametrize("l2", [0.0, 1e-12])
def test_no_bound_is_false_where_columns_are_nearly_equal(apart, l2):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((8, 2)) * 10.0 ** rng.integers(-8, 9, 2)
        X = np.concatenate([B, B * (1 + apart * rng.standard_normal(B.shape))], axis=1)
        y = rng.standard_normal(8)
        r = ps.best(ps.LeastSquares(y), ps.Dictionary(X), 3, l2=l2)
        optimum = min(exact_values(X, y, 3, l2).values())
        assert max(Fraction(r.lower), Fraction(r.check().lower)) <= optimum * (1 + Fraction(1e-15))


def test_copies_of_columns_do_no_harm():
    f, A, k = hard(n=60, p=20)
    r, twice = ps.best(f, A, k), ps.best(f, ps.Dictionary(np.append(A.D, -2.0 * A.D, axis=1)), k)
    assert (twice.chosen == r.chosen).all() and twice.iterations == r.iterations and twice.check().gap <= 1e-5 * r.value


def test_more_columns_than_data_are_proved_from_a_point_that_fits_no_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 150))
    r = ps.best(ps.LeastSquares(X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(60)), ps.Dictionary(X), 3)
    assert list(r.chosen) == [0, 1, 2] and r.gap <= 1e-6 * r.value and r.check().gap <= 1e-5 * r.value
    assert np.count_nonzero(r.ended.search.outside.start.b) <= 6  # of 150, where cones begin


def test_columns_of_any_length_count():
    f, A, k = hard(p=8)
    scales = np.array([1e-200, 1e200, 1e-160, 1e160, 1.0, 1.0, 1.0, 1.0])
    r = ps.best(f, ps.Dictionary(A.D * scales), k)
    assert (r.chosen == ps.best(f, A, k).chosen).all() and r.check().gap <= 1e-6 * r.value


def test_data_far_beyond_the_width_of_hubers_loss_are_fitted():
    X = np.random.default_rng(0).standard_normal((40, 3))
    r = ps.best(ps.Huber(1e4 * X[:, 0], width=1.0), ps.Dictionary(X), 1)
    assert list(r.chosen) == [0] and r.value < 1e-12


def test_a_minimum_at_infinity_is_proved():
    dummy = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)  # all of the first ten have one label
    labels = np.append(np.ones(10), np.arange(10) % 3 == 0)
    r = ps.best(ps.Logistic(labels), ps.Dictionary(np.append(dummy, dummy.sum(axis=1, keepdims=True), axis=1)), 3)
    assert r.value == pytest.approx(10 * np.log(10) - 4 * np.log(4) - 6 * np.log(6)) and r.gap <= 1e-6 * r.value


def problem(seed=0, n=60, p=12, k=3, l2=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + rng.standard_normal((p, p)) / 2)
    y = X[:, :3].sum(axis=1) + 3.0 * rng.standard_normal(n)
    P = prepare(Given.read(ps.LeastSquares(y), ps.Dictionary(X), l2), k, None).problem
    return X, y, P


@pytest.mark.parametrize("seed", range(5))
def test_the_compiled_bound_is_that_of_the_formula_and_its_decisions_hold(seed):
    *_, P = problem(seed)
    value, _ = P.improve(np.zeros(0, np.intp), 3)
    P = P.split(value)
    state = np.zeros(12, dtype=np.int8)
    state[[4, 7]] = OUT, IN
    r = P.relax(state, Point(np.zeros(12)), value)
    u = r.point.b
    w = P.c - (P.H @ u - P.d * u)
    psi = np.where(abs(w) <= P.d * P.M, w * w / (2 * P.d), abs(w) * P.M - P.d * P.M**2 / 2)
    free = np.sort(psi[state == FREE])[::-1]
    plain = P.constant - u @ (P.H @ u - P.d * u) / 2 - psi[7] - free[:2].sum()
    assert plain - 1e-9 <= r.bound <= plain
    for j in np.flatnonzero(r.screened != state):
        other = state.copy()
        other[j] = OUT if r.screened[j] == IN else IN
        left = [i for i in range(12) if other[i] != OUT and i != 7 and other[i] != IN]
        ins = list(np.flatnonzero(other == IN))
        sets = itertools.combinations(left, 3 - len(ins))
        assert min(P.exact(np.array([*ins, *T], dtype=np.intp))[0] for T in sets) >= value - 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("many", [1000, 5])  # columns from which on they are found in single precision
def test_a_split_and_its_boxes_hold(seed, many, monkeypatch):
    monkeypatch.setattr("pursuit.subsets.quadratic.MANY", many)
    *_, P = problem(seed, l2=0.5)
    value, _ = P.improve(np.zeros(0, np.intp), 3)
    P = P.split(value)
    assert np.linalg.eigvalsh(P.H - np.diag(P.d))[0] >= 0
    for T in itertools.combinations(range(12), 3):
        b = np.linalg.solve(P.H[np.ix_(T, T)], P.c[list(T)])
        if P.constant - b @ P.c[list(T)] / 2 <= value + 1e-12:
            assert (abs(b) <= P.M[list(T)]).all()


def hard(seed=3, n=60, p=30, k=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0 * rng.standard_normal((n, 1))
    return ps.LeastSquares(X[:, ::3].sum(axis=1) + 8.0 * rng.standard_normal(n)), ps.Dictionary(X), k


def test_a_search_that_stops_early_is_honest_and_goes_on_to_the_same_end():
    f, A, k = hard()
    whole = ps.best(f, A, k)
    half = ps.best(f, A, k, stop=ps.Stop(iterations=16))
    assert half.status is ps.Status.ITERATIONS and half.iterations < whole.iterations
    assert half.lower <= whole.value <= half.value
    assert half.check().lower == pytest.approx(half.lower, rel=1e-3)
    end = ps.best(f, A, k, start=half)
    assert end.status is ps.Status.GAP and end.value == whole.value and end.iterations == whole.iterations
    assert (np.diff(end.trace.gap) <= 1e-12 * end.value).all() and (np.diff(end.trace.value) <= 0).all()


def test_the_result_is_the_same_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("pursuit.subsets.tree.WORTH_A_THREAD", 1)
    f, A, k = hard()
    results = []
    for threads in (1, 2, 3):
        with at_most(threads):
            results.append(ps.best(f, A, k))
    assert len({(r.value, r.lower, r.iterations, r.oracle_calls) for r in results}) == 1


def test_ctrl_c_returns_what_is_proved_and_the_search_goes_on(ctrl_c, monkeypatch):
    f, A, k = hard()
    whole, look = ps.best(f, A, k), Clock.enough

    def interrupted(self, search):
        if search.nodes > 10:
            signal.raise_signal(signal.SIGINT)
        return look(self, search)

    monkeypatch.setattr(Clock, "enough", interrupted)
    half = ps.best(f, A, k)
    assert half.status is ps.Status.INTERRUPTED and half.lower <= whole.value <= half.value
    monkeypatch.setattr(Clock, "enough", look)
    assert ps.best(f, A, k, start=half).value == whole.value


def test_a_search_interrupted_before_its_roots_proves_nothing(ctrl_c, monkeypatch):
    monkeypatch.setattr(Search, "begin", lambda *_: signal.raise_signal(signal.SIGINT))
    f, A, k = hard()
    r = ps.best(f, A, k)
    assert r.status is ps.Status.INTERRUPTED and r.lower == 0.0 and r.check().lower == 0.0


def test_all_subsets_within_a_tolerance_are_found():
    f, A, k = hard(p=14)
    r = ps.best(f, A, k, within=0.05)
    X = A.matrix
    values = {
        S: np.sum((f.y - X[:, S] @ np.linalg.lstsq(X[:, S], f.y)[0]) ** 2) / 2
        for S in itertools.combinations(range(14), k)
    }
    near = {S: v for S, v in values.items() if v <= 1.05 * min(values.values())}
    assert len(near) > 3 and [tuple(s) for s, _ in r.near] == sorted(near, key=lambda S: near[S])
    assert [v for _, v in r.near] == pytest.approx(sorted(near.values()))


def test_an_assumption_is_named():
    f, A, k = hard()
    r = ps.best(f, A, k, bound=5.0)
    assert "5" in r.assumption and "assuming" in str(r) and ps.best(f, A, k).assumption is None


def test_sizes_of_a_path_are_the_best_of_each():
    f, A, _ = hard(p=12)
    path = ps.best(f, A, range(4))
    assert [r.value for r in path] == [ps.best(f, A, k).value for k in range(4)] and (path.atoms == range(4)).all()


@pytest.mark.parametrize("k", [0, 1, 3, 9])
def test_sizes_at_the_ends(k):
    X = np.random.default_rng(0).standard_normal((5, 3))
    r = ps.best(ps.LeastSquares(X @ [1.0, 2.0, 3.0] + [1.0, 0, 0, 0, 0]), ps.Dictionary(X), k)
    assert len(r.chosen) == min(k, 3) and r.gap <= 1e-6 * r.value and r.check().lower <= r.value


def test_data_that_columns_explain_exactly_and_data_of_zeros():
    X = np.random.default_rng(0).standard_normal((30, 20))
    r = ps.best(ps.LeastSquares(X[:, 4] - X[:, 8]), ps.Dictionary(X), 2)
    assert list(r.chosen) == [4, 8] and r.value < 1e-20 and r.gap <= r.value
    zero = ps.best(ps.LeastSquares(np.zeros(30)), ps.Dictionary(X), 2)
    assert zero.value == zero.lower == 0 and not zero.weights.any()


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_units_do_not_matter(scale):
    f, A, k = hard()
    r, other = ps.best(f, A, k), ps.best(ps.LeastSquares(scale * f.y), ps.Dictionary(A.D / scale), k)
    assert r.iterations == other.iterations and (r.chosen == other.chosen).all()
    assert other.value == pytest.approx(scale**2 * r.value, rel=1e-9)


def test_single_precision_columns_and_sparse_ones():
    f, A, k = hard()
    single = ps.best(ps.LeastSquares(f.y.astype(np.float32)), ps.Dictionary(A.D.astype(np.float32)), k)
    assert single.x.dtype == np.float32 and (single.chosen == ps.best(f, A, k).chosen).all()


def test_weights_and_atoms_give_the_point():
    for seed in range(len(KINDS)):
        p = draw(seed)
        r = ps.best(p.f, p.domain, p.k, l2=p.l2)
        x = sum((w * a.dense(p.f.space) for w, a in zip(r.weights, r.atoms, strict=True)), np.zeros(p.f.y.shape))
        np.testing.assert_allclose(x, r.x, atol=1e-9 * np.abs(r.x).max())
        assert r.coef is not None


def test_a_proof_with_a_step_missing_proves_less():
    f, A, k = hard()
    r = ps.best(f, A, k)
    step = r.ended.search.roots[0]
    while step.unit < 0:
        (step,) = step.children
    whole, search = r.check().lower, r.ended.search
    step.children[0].dual = search.roots[0].dual  # the bound of the whole tree for a part of it
    step.children[0].unit, step.children[0].children = -1, ()
    assert r.check().lower < whole


@pytest.mark.parametrize("search", ["swaps", "exact"])
def test_greedy_models_search_further(search):
    f, A, k = hard()
    model = GreedyRegressor(n_nonzero=k, search=search).fit(A.D, f.y)
    assert model.lower_ <= model.path_.value[-1] and (model.gap_ < 2e-6 * model.path_.value[-1]) == (search == "exact")
    centred = A.D - A.D.mean(axis=0)
    r = ps.best(ps.LeastSquares(f.y - f.y.mean()), ps.Dictionary(centred), k)
    assert search == "swaps" or (np.flatnonzero(model.coef_) == r.chosen).all()


def test_a_report_says_what_is_proved_of_all_subsets(tmp_path):
    f, A, _ = hard()
    r = ps.best(f, A, 2)
    page = r.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "No combination of so few atoms is better" in page and "leaves of a search tree" in page
    assert "No theorem promises a rate here." in page and (r.promise().curve == r.trace.value[0] - r.lower).all()
    assert "check()" in refusal(lambda: r.certificate)


def test_refusals_name_the_argument():
    f, A, k = hard()
    ones = ps.lin(ps.Dictionary(np.ones((60, 1))), counted=False)
    for name, call in {
        "f": lambda: ps.best(ps.Smooth(lambda x: 0.0, lambda x: x), A, k),
        "A": lambda: ps.best(f, ps.RankOne((6, 10)), k),
        "A ": lambda: ps.best(f, ones, k),
        "atoms": lambda: ps.best(f, A, -1),
        "atoms ": lambda: ps.best(f, A, 1.5),
        "l2": lambda: ps.best(f, A, k, l2=-1.0),
        "bound": lambda: ps.best(f, A, k, bound=[1.0, 2.0]),
        "within": lambda: ps.best(f, A, k, within=-0.1),
        "stop": lambda: ps.best(f, A, k, stop=60),
        "start": lambda: ps.best(f, A, k + 1, start=ps.best(f, A, 1)),
        "start ": lambda: ps.best(f, A, 1, start=ps.best(f, A, 1, bound=1.0)),
        "f ": lambda: ps.best(ps.LeastSquares(np.ones(3)), A, k),
    }.items():
        assert refusal(call).startswith(name.strip()), name
