"""Where curvature vanishes or explodes, and at the ends of the range: runs still descend, stay feasible and arrive."""

import math
from itertools import islice

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

import pursuit as ps
from pursuit.domains import Sum
from pursuit.line_search import line_search
from pursuit.weights import WeightProblem

BOTH = [None, ps.FullyCorrective()]
"""The default update, and one atom at a time."""

# ------------------------------------------------------------------ feasibility, at every iteration


def assert_feasible(domain, weights, blocks):
    for b, part in enumerate(domain.parts):
        mine = weights[blocks == b]
        assert np.isfinite(mine).all()
        if part.nonnegative:
            assert (mine >= 0).all()
        if part.compact:
            assert abs(mine.sum() - 1.0) <= 1e-12


@st.composite
def unequal_problems(draw):
    """Any objective over any domain, atoms of lengths from 10^-spread to 10^spread, some repeated."""
    rng, m = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(2, 6))
    spread = draw(st.sampled_from([0.0, 2.0, 8.0]))

    def atoms(n):
        D = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-spread, spread, n)
        if n > 2 and draw(st.booleans()):
            D[:, 1] = D[:, 0]
        return ps.Dictionary(D, signed=draw(st.booleans()))

    y = rng.standard_normal(m) * 10.0 ** draw(st.sampled_from([-3, 0, 1]))
    f = draw(
        st.sampled_from(
            [
                ps.LeastSquares(y),
                ps.Huber(y, 0.5),
                ps.Logistic(np.sign(np.concatenate([[1.0, -1.0], y[2:]]))),
                ps.Poisson(rng.poisson(2.0, m) + 1.0),
                ps.Smooth(lambda x: 0.5 * float((x - y) @ (x - y)), lambda x: x - y),
            ]
        )
    )
    others = draw(st.lists(st.sampled_from([ps.conv, ps.cone, ps.lin]), max_size=2))
    parts = [kind(atoms(draw(st.integers(1, 3)))) for kind in others]
    parts.insert(draw(st.integers(0, len(parts))), ps.conv(atoms(draw(st.integers(1, 8)))))
    return f, Sum(*parts) if len(parts) > 1 else parts[0]


SUMS = [None, ps.FullyCorrective(), ps.NormCorrective(), ps.NormCorrective(inner=3), ps.NormCorrective(several=3)]
HULLS = [*SUMS, ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.Away(), ps.Pairwise(), ps.BlendedPairwise()]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(unequal_problems(), st.integers(0, len(HULLS) - 1))
def test_weights_are_feasible_and_f_descends_at_every_iteration(problem, i):
    f, domain = problem
    choices = HULLS if len(domain.parts) == 1 else SUMS
    update = choices[i % len(choices)]
    last = math.inf
    try:
        for s in islice(ps.iterate(f, domain, update), 12):
            assert_feasible(domain, s.active.weights, s.active.blocks)
            lengths = [a.norm(s.active.space) for a in s.active.atoms]
            size = float(np.abs(s.active.weights) @ lengths)  # of what is added up in x: rounding is relative to it
            rounding = 1e-12 * size
            assert s.value <= last + 1e-14 * abs(s.value) + s.active.space.norm(s.grad) * rounding + rounding**2
            last = s.value
    except ArithmeticError:  # f falls for ever
        assert not domain.bounded


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32),
    st.integers(1, 10),
    st.sampled_from([0.0, 3.0, 8.0]),
    st.sampled_from([0, 0, -30, 30, -100]),
    st.booleans(),
)
def test_small_problems_keep_their_totals_whatever_the_scale_of_the_model(seed, m, spread, exponent, flat):
    """Where G is tiny beside the slopes, or vanishes in some directions, targets lie 1e100 beyond the simplex."""
    rng, k = np.random.default_rng(seed), 9
    A = rng.standard_normal((m, k)) * 10.0 ** rng.uniform(-spread, spread, k)
    h = (rng.random(m) < 0.3).astype(float) if flat else np.ones(m)
    G, sizes = 10.0**exponent * (A.T * h) @ A, np.linalg.norm(A, axis=0)
    block, totals = np.arange(k) % 3, np.array([1.0, np.nan, 2.0])
    nonnegative = (block != 1) | (seed % 2 == 0)
    w = np.where(block == 1, 0.0, rng.random(k) * (rng.random(k) < 0.7)) + (np.arange(k) < 3)
    for b in (0, 2):
        w[block == b] *= totals[b] / w[block == b].sum()
    problem = WeightProblem.of(G, nonnegative, block, totals)
    for _ in range(3):
        w = problem.descend(rng.standard_normal(k) * sizes, w)
        assert (w[nonnegative] >= 0).all()
        assert np.isfinite(w).all()
        for b in (0, 2):
            assert abs(w[block == b].sum() - totals[b]) <= 1e-14 * totals[b]


@pytest.mark.parametrize("seed", range(20))
def test_a_model_without_curvature_is_minimised_at_a_vertex(seed):
    rng, block = np.random.default_rng(seed), np.arange(12) % 2
    A, q, totals = rng.standard_normal((8, 12)), rng.standard_normal(12), np.array([1.0, 2.0])
    w = WeightProblem.of(1e-60 * A.T @ A, True, block, totals).descend(q, totals[block] / 6.0)
    for b in (0, 1):
        best = np.where(block == b, q, np.inf).argmin()
        assert abs(w[best] - totals[b]) <= 1e-12


def test_a_lone_atom_of_a_summand_keeps_weight_one_beside_atoms_of_all_lengths():
    D = np.array([[6.0573680094153156e-06, -1.2203970904258101e-06, 28054.505691666127, -0.13660232618543414]])
    offset, rest = ps.conv(ps.Dictionary([[-0.00042272585734927]])), ps.cone(ps.Dictionary([[0.787, -0.423]]))
    domain = offset + ps.conv(ps.Dictionary(D)) + rest
    r = ps.minimize(ps.LeastSquares([0.09838239104760754]), domain)
    assert_feasible(domain, r.weights, r.blocks)


# ------------------------------------------------------------------ the start


@pytest.mark.parametrize("update", [*BOTH, ps.NormCorrective(), ps.Plain(ps.OpenLoop()), ps.Away()], ids=repr)
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0, 1e4])
def test_no_run_over_a_symmetric_hull_begins_above_zero(update, scale, rng):
    D = scale * rng.standard_normal((20, 8))
    for f in (ps.LeastSquares(np.ones(20)), ps.Logistic(np.arange(20) % 2), ps.Poisson(np.arange(20))):
        state = next(ps.iterate(f, ps.conv(ps.Dictionary(D, signed=True)), update))
        assert state.value <= f.value(np.zeros(20))
        assert_feasible(ps.conv(ps.Dictionary(D)), state.active.weights, state.active.blocks)


# ------------------------------------------------------------------ columns of one sign and of all scales


def design(kind, scale):
    """200 x 10 normal data with one column replaced by scale * (6 + x); the objective, atoms and intercept."""
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 10))
    score = 0.5 * Z @ rng.standard_normal(10)
    Z[:, 0] = scale * (6.0 + Z[:, 0])
    if kind == "logistic":
        return ps.Logistic(rng.random(200) < 1 / (1 + np.exp(-score))), Z, np.ones((200, 1))
    if kind == "poisson":
        return ps.Poisson(rng.poisson(np.exp(score))), Z, np.ones((200, 1))
    labels = np.argmax(score[:, None] * [1.0, -1.0, 0.0] + rng.gumbel(size=(200, 3)), axis=1)
    return ps.Multinomial(labels), per_class(Z, 3), per_class(np.ones((200, 1)), 3)


def per_class(Z, classes):
    """The columns of Z for each class: atoms of shape (n, classes)."""
    return np.einsum("nj,ck->nkjc", Z, np.eye(classes)).reshape(len(Z), classes, -1)


def cvxpy_minimum(f, D, intercept=None, radius=1.0):
    """f* over the L1 ball, in units in which all columns have the same length."""
    D = D.reshape(-1, D.shape[-1])
    lengths = np.sqrt(np.mean(D**2, axis=0))
    u = cp.Variable(D.shape[1])
    x = (D / lengths) @ u
    if intercept is not None:
        flat = intercept.reshape(len(D), -1)
        x = x + flat @ cp.Variable(flat.shape[1])
    if isinstance(f, ps.Logistic):
        objective = cp.sum(cp.logistic(cp.multiply(-f.y, x)))
    elif isinstance(f, ps.Poisson):
        objective = cp.sum(cp.exp(x)) - f.y @ x
    elif isinstance(f, ps.Multinomial):
        X = cp.reshape(x, f.y.shape, order="C")
        objective = cp.sum(cp.log_sum_exp(X, axis=1)) - cp.sum(cp.multiply(f.y, X))
    problem = cp.Problem(cp.Minimize(objective), [cp.norm1(cp.multiply(1.0 / lengths, u)) <= radius])
    return float(problem.solve(solver="CLARABEL"))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("kind", ["logistic", "poisson", "multinomial"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 100.0, 1e4, 1e6])
def test_a_saturated_first_atom_is_left(kind, scale):
    f, Z, ones = design(kind, scale)
    hull = ps.conv(ps.Dictionary(Z, signed=True))
    for domain, intercept in ((hull, None), (hull + ps.lin(ps.Dictionary(ones)), ones)):
        best = cvxpy_minimum(f, Z, intercept)
        for update in BOTH:
            r = ps.minimize(f, domain, update, stop=ps.Stop(iterations=200))
            assert abs(r.value - best) <= 2e-6 * abs(best)
            assert r.value <= f.value(np.zeros(r.x.shape))


@pytest.mark.parametrize("update", BOTH, ids=repr)
def test_a_saturated_start_of_the_user_is_left(update):
    f, Z, _ = design("logistic", 100.0)
    domain = ps.conv(ps.Dictionary(Z, signed=True))
    atom = ps.Dictionary(Z, signed=True).atom(0)
    best = ps.minimize(f, domain).value
    r = ps.minimize(f, domain, update, start=([1.0], [atom]))
    assert r.trace.value[0] > 1e4
    assert r.value <= best * (1.0 + 3e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([ps.lin, ps.cone]), st.sampled_from(["huber", "logistic", "poisson"]))
def test_columns_from_1e_minus_8_to_1e8_do_not_hide_each_other(seed, domain, kind):
    """The minimum over a span or cone does not depend on the lengths of the atoms."""
    rng = np.random.default_rng(seed)
    D, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    f = {
        "huber": ps.Huber(3.0 * y, 0.5),
        "logistic": ps.Logistic(np.sign(y + np.where(np.arange(30) % 2, 2.0, -2.0))),
        "poisson": ps.Poisson(rng.poisson(1.0, 30) * 10 ** rng.integers(0, 6)),
    }[kind]
    scales = 10.0 ** rng.uniform(-8, 8, 6)
    plain = ps.minimize(f, domain(ps.Dictionary(D)), ps.NormCorrective() if f.L else None)
    r = ps.minimize(f, domain(ps.Dictionary(D * scales)))
    assert r.value <= plain.value + 2e-6 * (abs(plain.value) + 1e-3)


# ------------------------------------------------------------------ curvature that vanishes or explodes


@pytest.mark.parametrize(("d", "n", "size"), [(200, 150, 10.0), (100, 99, 100.0), (100, 200, 10.0)])
@pytest.mark.parametrize("seed", range(3))
def test_huber_over_a_span_reaches_the_minimum(d, n, size, seed):
    """Most residuals are in the linear part of the loss, where the Hessian is zero."""
    rng = np.random.default_rng(seed)
    D, y = rng.standard_normal((d, n)), size * rng.standard_normal(d)
    f = ps.Huber(y, 0.5)

    def values(c):
        value, grad = f.value_and_grad(D @ c)
        return value, D.T @ grad

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-10}
    best = scipy_minimize(values, np.zeros(n), jac=True, method="L-BFGS-B", options=options).fun
    assert ps.minimize(f, ps.lin(ps.Dictionary(D))).value <= best * (1.0 + 1e-6) + 1e-6


def test_a_long_step_over_a_cone_does_not_empty_the_hull_beside_it():
    wine = np.array([[14.13, 96.0, 1.35, 2.74, 0.61, 9.2], [13.78, 90.0, 1.03, 2.3, 0.7, 9.58]])
    A = 5 * (ps.Dictionary(wine) | ps.SignedBasis(2))
    r = ps.minimize(ps.Logistic([1.0, -1.0]), ps.conv(A) + ps.cone(A))  # separable: the cone's weights grow for ever
    assert r.value < 1e-12
    assert r.weights[r.blocks == 0].sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("radius", [300.0, 400.0, 1e4])
def test_poisson_over_atoms_beyond_the_range_of_exp(radius):
    D = np.array([[-1.0, 1, -1, -1, 2, 2, -1, -1], [1, -1, 0, -2, 0, 1, -1, 0], [2, -2, 1, -2, 1, -2, 2, -1]])
    f = ps.Poisson([2, 2, 1])
    r = ps.minimize(f, ps.conv(radius * ps.Dictionary(D)))
    assert r.value <= f.infimum * (1.0 + 2e-6)  # the hull contains the minimum over all x


def test_poisson_goes_on_along_a_tangent_where_exp_overflows():
    f = ps.Poisson([1.0])
    assert f.value(np.array([300.0])) == math.exp(300.0) - 300.0
    points = [np.array([t]) for t in (300.0, 319.0, 320.0, 700.0, 1e4, 1e15)]
    single = ps.Poisson(np.ones(1, np.float32))
    for x in points:
        value, grad = f.value_and_grad(x)
        assert math.isfinite(value)
        assert math.isfinite(single.value(x.astype(np.float32)))
        for z in points:  # convex: above every tangent
            assert f.value(z) >= (value + float(grad @ (z - x))) * (1.0 - 1e-9) - 1e-9 * abs(value)


@pytest.mark.parametrize("offset", [1.0, -2.0, 3.0])
@pytest.mark.parametrize("first", [True, False])
def test_the_guess_of_L_looks_at_all_summands(offset, first):
    y = np.array([0.25])
    f = ps.Smooth(lambda x: 0.5 * float((x - y) @ (x - y)), lambda x: x - y)
    parts = ps.conv(ps.Dictionary([[offset]])), ps.conv(5 * ps.SignedBasis(1))
    assert ps.minimize(f, Sum(*(parts if first else parts[::-1]))).value <= 1e-15


@pytest.mark.parametrize("at", [1e-40, 1e-9, 0.3, 0.999, 700.0])
def test_the_line_search_finds_minimisers_of_every_order_of_magnitude(at):
    class Exponential(ps.Objective):
        """e^(k t) - e^(k at) k t, with its minimum at t = at."""

        def value_and_grad(self, x):
            t = float(x[0])
            return math.exp(k * (t - at)) - k * t, np.array([k * math.exp(k * (t - at)) - k])

        def hessian(self, x):
            return ps.metrics.Diagonal(np.array([k * k * math.exp(k * (float(x[0]) - at))]))

    k = 600.0 / max(at, 1.0)
    f, one = Exponential(), np.ones(1)
    gamma = line_search(f, np.zeros(1), one, float(f.value_and_grad(np.zeros(1))[1][0]), max(1.0, at))
    assert abs(k * (gamma - at)) <= 1e-10


def test_where_long_atoms_cancel_in_float32_a_correction_never_ends_far_above_its_start():
    D = np.array([
        [3.4740055e4, 9.2371213e8, 4.5371151, 3.4879412e7, 1.1232339e-2],
        [1.8333921e6, 5.4117248e7, 287.64224, 2.1422845e6, 1.1211149e-2],
        [6.9997865e6, 2.8438794e8, 821.45239, 2.6807450e7, 1.0927878e-3],
        [3.6795844e4, 5.7561171e8, 133.21022, 7.7869624e7, 1.1723820e-5],
    ], np.float32)  # fmt: skip
    A = ps.Dictionary(D, signed=True)
    r = ps.minimize(ps.Poisson(np.array([13, 3, 12, 26])), ps.conv(A) + ps.cone(A), stop=ps.Stop(iterations=10))
    assert r.x.dtype == np.float32 and r.value <= r.trace.value[0] == 4.0
