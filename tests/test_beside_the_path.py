"""What newcomers tried first: each is right, or refused in one sentence."""

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import pursuit as ps

D = np.random.default_rng(0).standard_normal((8, 20))
Y = 3.0 * np.random.default_rng(1).standard_normal(8)
F = ps.LeastSquares(Y)
SIGNED = ps.Dictionary(D, signed=True)
ONES = ps.Dictionary(np.ones((8, 1)))
TEMPLATES = ps.Convolutional(np.hanning(5)[None], shape=(9,))


# ------------------------------------------------------------------ starts


@pytest.mark.parametrize("A", [3 * ps.SignedBasis(4), ps.Simplex(4), ps.Ball(4, 2)], ids=repr)
def test_x_has_the_library_and_dtype_of_the_start_where_neither_f_nor_the_atoms_have_one(A):
    torch = pytest.importorskip("torch")
    y = torch.tensor([1.0, 0.5, -0.2, 0.1])

    def value_and_grad(x):
        assert isinstance(x, torch.Tensor)
        x = x.detach().requires_grad_()
        value = ((x - y.to(x.dtype)) ** 2).sum()
        return value.item(), torch.autograd.grad(value, x)[0]

    for dtype in (torch.float32, torch.float64):
        start = torch.full((4,), 0.25, dtype=dtype)
        r = ps.minimize(ps.Smooth(value_and_grad), ps.conv(A), start=start, stop=ps.Stop(rgap=1e-4))
        assert isinstance(r.x, torch.Tensor) and r.x.dtype is dtype
        assert r.gap <= 1e-3
        again = ps.minimize(ps.Smooth(value_and_grad), ps.conv(A), start=r, stop=ps.Stop(iterations=1))
        assert again.x.dtype is dtype


@pytest.mark.parametrize(
    "domain",
    [
        lambda radius: ps.conv(radius * SIGNED),
        lambda radius: ps.conv(radius * SIGNED) + ps.lin(ONES),
        lambda radius: ps.product(ps.conv(radius * ps.Simplex(4)), ps.conv(radius * ps.SignedBasis(4))),
    ],
    ids=["hull", "sum", "product"],
)
def test_a_result_over_a_larger_radius_is_scaled_to_begin_at_a_smaller_one(domain):
    large = ps.minimize(F, domain(2.0))
    for radius in (1.0, 1e-3):
        small = ps.minimize(F, domain(radius), start=large)
        cold = ps.minimize(F, domain(radius))
        assert small.value == pytest.approx(cold.value, rel=1e-5)
        assert small.check().feasible
    first = ps.minimize(F, ps.conv(0.5 * SIGNED), start=ps.minimize(F, ps.conv(2.0 * SIGNED)))
    np.testing.assert_allclose(first.start, 0.25 * ps.minimize(F, ps.conv(2.0 * SIGNED)).x, atol=1e-12)


def test_0_and_a_bare_column_are_starts():
    for start in (0, 0.0, np.zeros(8), 2.0 * D[:, 3]):
        r = ps.minimize(F, ps.conv(2 * SIGNED), start=start)
        np.testing.assert_allclose(r.start, start * np.ones(8))


# ------------------------------------------------------------------ functions of one's own


@pytest.mark.parametrize("update", [None, ps.Away(), ps.Pairwise(ps.ShortStep())], ids=repr)
def test_a_gradient_may_be_written_into_one_buffer(update):
    buffer = np.empty(8)

    def grad(x):
        return np.subtract(x, Y, out=buffer)

    f = ps.Smooth(lambda x: 0.5 * float((x - Y) @ (x - Y)), grad)
    pair = ps.Smooth(lambda x: (0.5 * float((x - Y) @ (x - Y)), grad(x)))
    for each in (f, pair):
        r = ps.minimize(each, ps.conv(2 * SIGNED), update)
        assert r.status is ps.Status.GAP


def test_a_gradient_in_single_precision_is_refused_where_x_is_in_double():
    f = ps.Smooth(lambda x: 0.5 * float(x @ x), lambda x: x.astype(np.float32))
    with pytest.raises(TypeError, match="the gradient of f has dtype float32, x has float64"):
        ps.minimize(f, ps.conv(ps.Simplex(3)))


def test_functions_of_jax_serve_and_its_arrays_are_refused():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        value = jax.jit(lambda x: ((x - Y) ** 2).sum())
        r = ps.minimize(ps.Smooth(value, jax.grad(value)), ps.conv(2 * SIGNED))
        assert isinstance(r.x, np.ndarray) and r.gap <= 1e-6 * r.value
        with pytest.raises(TypeError, match="y is an array of JAX, which cannot be written to"):
            ps.LeastSquares(jax.numpy.asarray(Y))


def test_backtracking_begins_at_the_L_that_is_given():
    def lengths(first):
        seen = []
        f = ps.Smooth(lambda x: seen.append(x) or 0.5 * float((x - Y) @ (x - Y)), lambda x: x - Y)
        step = ps.ShortStep(L=ps.Backtracking(first=first))
        ps.minimize(f, ps.conv(2 * SIGNED), ps.Plain(step), stop=ps.Stop(iterations=1))
        return len(seen)

    assert lengths(1e-6) > lengths(1.0) + 15  # it doubles until the bound holds


def test_an_update_of_one_direction_names_blocks_where_there_are_several_sets():
    for update in (ps.Plain(ps.LineSearch()), ps.Away(), ps.Pairwise()):
        with pytest.raises(ValueError, match=r"over a sum or a product give Blocks\(\w+\(\.\.\.\)\)"):
            ps.minimize(F, ps.conv(SIGNED) + ps.conv(ONES), update)


def test_the_search_for_a_first_point_ends_when_the_time_is_over():
    def calls(seconds):
        seen = []
        log_det = ps.LogDet()
        f = ps.Smooth(lambda x: seen.append(x) or log_det.value_and_grad(x))
        ps.minimize(f, ps.conv(ps.Spectrahedron(12)), stop=ps.Stop(seconds=seconds, iterations=0))
        return len(seen)

    assert calls(0.0) < calls(None) - 10


# ------------------------------------------------------------------ traces


@pytest.mark.parametrize("update", [ps.Plain(ps.OpenLoop()), ps.Away(), ps.NormCorrective()], ids=repr)
def test_a_trace_has_steps_frank_wolfe_gaps_and_counts_of_values_and_gradients_and_goes_on(update):
    calls = [0, 0]

    def value(x):
        calls[0] += 1
        return 0.5 * float((x - Y) @ (x - Y))

    def grad(x):
        calls[1] += 1
        return x - Y

    f, domain, gaps = ps.Smooth(value, grad), ps.conv(2 * SIGNED), []
    stop = ps.Stop(iterations=6, rgap=None)
    r = ps.minimize(f, domain, update, stop=stop, callback=lambda s: gaps.append((s.stationarity, *calls)))
    np.testing.assert_array_equal(np.stack([r.trace.stationarity, r.trace.values, r.trace.gradients], axis=1), gaps)
    if isinstance(update, ps.Plain):
        np.testing.assert_allclose(r.trace.step[1:], 2.0 / (np.arange(6) + 2.0))
    assert np.isnan(r.trace.step).sum() == (7 if isinstance(update, ps.NormCorrective) else 1)
    half = ps.minimize(f, domain, update, stop=ps.Stop(iterations=3, rgap=None), keep=True)
    whole = ps.minimize(f, domain, update, stop=stop, start=half)
    for name in ("value", "stationarity", "step", "values", "gradients"):
        np.testing.assert_array_equal(getattr(whole.trace, name), getattr(r.trace, name))


def test_the_counts_of_an_objective_of_the_package_and_of_a_search_for_the_best_subset_are_nan():
    assert np.isnan(ps.minimize(F, ps.conv(SIGNED)).trace.gradients).all()
    assert np.isnan(ps.best(F, ps.lin(ps.Dictionary(D)), atoms=2).trace.step).all()


# ------------------------------------------------------------------ sets, and several of them


def test_rows_of_a_spectrahedron_may_be_unobserved(rng):
    rows, cols = np.triu_indices(4)
    y, n = 0.3 * rng.standard_normal(len(rows)), 7
    weights, target = np.zeros((2, n, n))
    weights[rows + 2, cols + 2], target[rows + 2, cols + 2] = 1.0, y
    f = ps.Smooth(lambda x: 0.5 * float(((x - target) ** 2 * weights).sum()), lambda x: (x - target) * weights, L=1.0)
    full = ps.minimize(f, ps.conv(ps.Spectrahedron(n)), stop=ps.Stop(rgap=1e-5))
    A = ps.Spectrahedron(n).at(rows + 2, cols + 2)
    ps.check_atoms(A, trials=3)
    seen = ps.minimize(ps.LeastSquares(y), ps.conv(A), stop=ps.Stop(rgap=1e-5))
    assert seen.value == pytest.approx(full.value, rel=2e-5)
    with pytest.raises(ValueError, match="row 0 has no observed entry"):
        ps.SymmetricRankOne(n).at(rows + 2, cols + 2)


def test_shifted_sets_and_zero_atoms_are_refused_with_what_to_write():
    for wrong in (lambda: SIGNED + np.ones(8), lambda: SIGNED - np.ones(8), lambda: 2 * ps.Simplex(3) + 1.0):
        with pytest.raises(TypeError, match=r"is no set of atoms; minimise f\(x \+ c\) over conv\(A\), or f over conv"):
            wrong()
    c = np.linspace(0.0, 1.0, 8)
    shifted = ps.minimize(F, ps.conv(SIGNED) + ps.conv(ps.Dictionary(c[..., None])))
    plain = ps.minimize(ps.LeastSquares(Y - c), ps.conv(SIGNED))
    assert shifted.value == pytest.approx(plain.value, rel=1e-5)
    with pytest.raises(
        ValueError, match=r"column 0 of D is zero; remove it, or for .x >= 0, sum x <= 1. give Polytope"
    ):
        ps.Dictionary(np.hstack([np.zeros((3, 1)), np.eye(3)]))
    r = ps.minimize(ps.LeastSquares([0.2, 0.1, -1.0]), ps.conv(ps.Polytope(np.ones((1, 3)), [1.0], bounds=(0, None))))
    np.testing.assert_allclose(r.x, [0.2, 0.1, 0.0], atol=1e-6)


def test_blocks_take_an_order_of_places_and_an_update_for_each():
    domain, turns = ps.product(ps.conv(ps.Simplex(3)), ps.conv(ps.Simplex(3)), ps.conv(ps.SignedBasis(2))), []

    def note(b):
        return ps.Plain(lambda move: turns.append(b) or 2 / (move.iteration + 2))

    plan = ps.Blocks([note(0), note(1), note(2)], order=[2, 0, 0, 1])
    ps.minimize(F, domain, plan, stop=ps.Stop(iterations=9, rgap=None))
    assert turns == [2, 0, 0, 1, 2, 0, 0, 1, 2]
    mixed = ps.Blocks([ps.Away(), ps.Pairwise(), ps.FullyCorrective()], order=range(3))
    assert ps.minimize(F, domain, mixed).status is ps.Status.GAP
    for wrong in (ps.Blocks([ps.Away()] * 2), ps.Blocks(ps.Away(), order=[0, 3])):
        with pytest.raises(ValueError, match="does not fit 3 summands"):
            ps.minimize(F, domain, wrong)
    with pytest.raises(ValueError, match="or the places of summands"):
        ps.Blocks(ps.Away(), order=[0, -1])


def test_a_function_without_convexity_does_not_begin_at_a_saddle_between_two_atoms():
    Q = np.random.default_rng(1).standard_normal((5, 4))

    def value_and_grad(x):
        u, v = x[:5], x[5:]
        return float(u @ Q @ v), np.concatenate([Q @ v, Q.T @ u])

    r = ps.minimize(
        ps.Smooth(value_and_grad, convex=False), ps.product(ps.conv(ps.SignedBasis(5)), ps.conv(ps.Ball(4, 2)))
    )
    assert r.value == pytest.approx(-np.linalg.norm(Q, axis=1).max(), rel=0.5) and r.value < -0.5


def test_the_default_of_a_stochastic_objective_comes_near_the_minimum():
    def grad(x, rng):
        return x - Y / 6.0 + 0.3 * rng.standard_normal(8)

    f, domain = ps.Stochastic(lambda x, rng: 0.5 * float(sum((x - Y / 6.0) ** 2)), grad), ps.conv(2 * ps.SignedBasis(8))
    best = ps.minimize(ps.LeastSquares(Y / 6.0), domain)
    r = ps.minimize(f, domain, stop=ps.Stop(iterations=400))
    exact = 0.5 * float(sum((r.x - Y / 6.0) ** 2))
    assert exact - best.value < 0.05 * (r.trace.value[0] - best.value)


def test_regroup_over_a_span_makes_block_omp(rng):
    M, groups = rng.standard_normal((30, 40)), np.repeat(np.arange(10), 4)
    y, chosen, residual = rng.standard_normal(30), [], None
    for _ in range(3):
        residual = y if residual is None else residual
        chosen.append(int(np.argmax([np.linalg.norm(M[:, groups == g].T @ residual) for g in range(10)])))
        B = M[:, np.isin(groups, chosen)]
        residual = y - B @ np.linalg.lstsq(B, y, rcond=None)[0]
    domain, stop = ps.lin(ps.Groups(groups).through(M)), ps.Stop(atoms=3)
    r = ps.minimize(ps.LeastSquares(y), domain, ps.FullyCorrective(), refine=ps.refine.Regroup(1e-9), stop=stop)
    assert [a.source[0] for a in r.atoms] == chosen
    assert r.value == pytest.approx(0.5 * residual @ residual, rel=1e-6)
    plain = ps.minimize(ps.LeastSquares(y), domain, ps.FullyCorrective(), stop=stop)
    assert plain.value > 1.01 * r.value


# ------------------------------------------------------------------ signals


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: ps.encode(D, np.ones((4, 5, 8)), atoms=1), r"Y has shape \(4, 5, 8\); .* Y\.reshape\(-1, 8\)\."),
        (lambda: ps.encode(D, Y, atoms=1), r"Y has shape \(8,\); .* Y\[None, :\]\."),
        (lambda: ps.encode(TEMPLATES, np.ones((9, 20)), threshold=1.0), r"a signal has shape \(9, 20\) where"),
        (lambda: ps.differentiate(ps.minimize(F, ps.conv(ps.Polytope(np.ones((1, 8)), [1.0], bounds=(0, 1))))),
         "cannot list its atoms, so its faces are not known"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_the_shape_that_was_given(wrong, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        wrong()


def test_complex_operators_are_refused_with_the_page_that_has_the_real_formulation():
    fourier = aslinearoperator(np.fft.fft(np.eye(8)))
    for method in ({"atoms": 1}, {"method": "lasso", "penalty": 1.0}):
        with pytest.raises(TypeError, match=r"D is .*; joint and complex codes need an array \(docs/signals.md"):
            ps.encode(fourier, np.ones((1, 8), complex), **method)


def test_three_columns_of_a_source_and_all_times_enter_together(rng):
    G, M = rng.standard_normal((6, 12)), rng.standard_normal((6, 5))
    sources = np.repeat(np.arange(4), 3)
    A = ps.Groups(np.repeat(np.arange(4), 3 * 5)).through(G, columns=5)
    c = 0.5 * max(np.linalg.norm(G[:, sources == s].T @ M) for s in range(4))
    r = ps.minimize(ps.LeastSquares(M), ps.penalty(c * A), stop=ps.Stop(rgap=1e-9))
    X = r.coef.reshape(12, 5)
    slopes = G.T @ (M - G @ X)
    for s in range(4):  # the optimality conditions of the group Lasso
        x, slope = X[sources == s], slopes[sources == s]
        size = np.linalg.norm(x)
        assert np.linalg.norm(slope) <= c * (1 + 1e-4)
        if size > 1e-9:
            np.testing.assert_allclose(slope, c * x / size, atol=1e-3 * c)
    assert 0 < sum(np.linalg.norm(X[sources == s]) > 1e-9 for s in range(4)) < 4


def test_what_newcomers_wrote_is_answered_with_what_to_write(tmp_path):
    with pytest.raises(TypeError, match=r"give the factor to its atoms: conv\(2 \* A\)"):
        2 * ps.conv(ps.SignedBasis(3))
    (tmp_path / "run.npz").write_bytes(b"PK\x03\x04\xff")
    with pytest.raises(ValueError, match="may be a run, which minimize"):
        ps.load(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="give a hull, penalties= or atoms="):
        ps.path(ps.LeastSquares([1.0, 2.0]), ps.penalty(ps.SignedBasis(2)), radii=[1.0])
    with pytest.raises(TypeError, match="code is the argument joint; give a dict of"):
        ps.learn(np.eye(4), 2, code={"atoms": 1, "joint": np.arange(4)})
    with pytest.raises(ValueError, match="code has tol beside the Lasso"):
        ps.learn(np.eye(4), 2, code={"method": "lasso", "tol": 1.0})


def test_a_gradient_of_another_library_is_refused():
    torch = pytest.importorskip("torch")
    f = ps.Smooth(lambda x: float(x @ x) - x[0], lambda x: torch.from_numpy(2.0 * x - np.array([1.0, 0.0])), L=2.0)
    with pytest.raises(TypeError, match="the gradient of f is an array of torch, x is a NumPy array"):
        ps.minimize(f, ps.conv(ps.SignedBasis(2)), start=np.zeros(2))
