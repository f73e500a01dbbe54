"""Functions that are finite on a part of the space only, and functions that are not convex."""

import math
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps

DESCENDING = [
    None, ps.FullyCorrective(), ps.NormCorrective(), ps.NormCorrective(several=8), ps.Away(), ps.Pairwise(),
    ps.BlendedPairwise(), ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()),
    ps.Plain(ps.DiameterStep(diameter=50.0)), ps.Away(ps.ShortStep()),
]  # fmt: skip
LINEAR = [u for u in DESCENDING if not isinstance(u, ps.Plain)]


class Watched(ps.Objective):
    """A function of which nobody may use a gradient outside its domain: there it is None."""

    def __init__(self, f):
        self.f, self.outside, self.calls = f, 0, 0

    def value_and_grad(self, x):
        self.calls += 1
        value, grad = self.f.value_and_grad(x)
        self.outside += not math.isfinite(value)
        return value, grad if math.isfinite(value) else None


class WatchedWithHessian(Watched):
    def hessian(self, x):
        assert math.isfinite(self.f.value(x))
        return self.f.hessian(x)


def experiments(n, d, seed=0):
    """Random experiments, one per column, and the set of their matrices."""
    V = np.random.default_rng(seed).standard_normal((d, n))
    return V, ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :]))


def multiplicative_design(V, rounds):
    """D-optimal weights by the multiplicative algorithm: slow and obviously feasible."""
    d, n = V.shape
    w = np.full(n, 1.0 / n)
    for _ in range(rounds):
        w *= np.einsum("ik,ij,jk->k", V, np.linalg.inv((V * w) @ V.T), V) / d
    return w / w.sum()


# --------------------------------------------------------------------------------- optimal designs


@pytest.mark.parametrize("update", LINEAR, ids=repr)
@pytest.mark.parametrize("watched", [Watched, WatchedWithHessian])
def test_a_d_optimal_design_is_certified_by_every_update_and_no_gradient_outside_is_used(update, watched):
    V, domain = experiments(60, 4)
    f = watched(ps.LogDet())
    r = ps.minimize(f, domain, update)
    assert r.status is ps.Status.GAP
    w = multiplicative_design(V, 3000)
    reference = -np.linalg.slogdet((V * w) @ V.T)[1]
    assert r.value == pytest.approx(reference, abs=1e-4)
    assert r.lower <= reference + 1e-9
    assert r.check().gap <= 1e-6 * abs(r.value) * (1 + 1e-6)


@pytest.mark.parametrize("f", [ps.LogDet(), ps.TraceInverse()], ids=repr)
def test_the_default_needs_few_oracle_calls_for_designs_of_5000_experiments(f):
    _, domain = experiments(5000, 30)
    r = ps.minimize(f, domain)
    assert r.status is ps.Status.GAP
    assert r.oracle_calls <= 16


def test_without_a_hessian_a_design_takes_at_most_14_oracle_calls():
    _, domain = experiments(500, 10)
    r = ps.minimize(Watched(ps.LogDet()), domain)
    assert r.status is ps.Status.GAP
    assert r.oracle_calls <= 14


@pytest.mark.parametrize("update", DESCENDING, ids=repr)
def test_steps_that_promise_descent_never_leave_the_domain(update):
    _, domain = experiments(80, 5, seed=3)
    before = math.inf
    for s in islice(ps.iterate(Watched(ps.LogDet()), domain, update), 60):
        assert math.isfinite(s.value)
        assert s.value <= before + 1e-12 * abs(s.value)
        before = s.value


def test_an_open_loop_that_leaves_the_domain_says_so():
    _, domain = experiments(80, 5, seed=3)
    f, hull = ps.LogDet(), ps.conv(ps.Dictionary(np.concatenate([domain.A.D, np.eye(5)[:, :, None]], axis=2)))
    start = ([1.0], [np.eye(5)])
    with pytest.raises(ValueError, match=r"f is infinite at iteration 1, beyond its domain; use a step that descends"):
        ps.minimize(f, hull, ps.Plain(ps.OpenLoop()), start=start)
    with pytest.raises(ValueError, match=r"f is infinite at the start; give start= a point where it is finite"):
        ps.minimize(f, hull, start=([1.0], [hull.A.D[:, :, 0]]))


@pytest.mark.parametrize("f", [ps.LogDet(), ps.TraceInverse()], ids=repr)
def test_a_penalty_begins_inside_the_domain_without_a_start(f):
    """-log det X + trace(X) and tr X^-1 + trace(X) have their minima at the identity."""
    r = ps.minimize(f, ps.penalty(ps.Spectrahedron(3)))
    assert r.status is ps.Status.GAP
    np.testing.assert_allclose(r.x, np.eye(3), atol=1e-3)


@pytest.mark.parametrize("kind", [ps.cone, ps.lin, lambda A: ps.conv(1e-3 * A) + ps.cone(A)])
def test_cones_and_spans_begin_inside_the_domain_and_find_that_f_falls_for_ever(kind):
    _, domain = experiments(20, 3)
    assert ps.minimize(ps.LogDet(), kind(domain.A)).status is ps.Status.UNBOUNDED


def test_where_f_is_finite_on_the_hull_the_span_beside_it_begins_at_zero():
    domain = ps.conv(ps.Spectrahedron(2)) + ps.lin(ps.Dictionary(np.diag([100.0, -100.0])[:, :, None]))
    r = ps.minimize(ps.LogDet(), domain)
    assert r.status is ps.Status.GAP
    assert r.value == pytest.approx(math.log(4.0))


def test_a_hull_outside_the_domain_begins_inside_with_the_cone_beside_it():
    """The hull has one singular matrix, to which the cone must add others."""
    _, domain = experiments(20, 3)
    hull = ps.conv(ps.Dictionary(np.diag([1.0, 0.0, 0.0])[:, :, None]))
    r = ps.minimize(ps.LogDet(), hull + ps.penalty(domain.A))
    assert r.status is ps.Status.GAP
    assert r.value < ps.minimize(ps.LogDet(), ps.penalty(domain.A)).value


def test_the_start_is_not_finite_by_rounding_only():
    """The Cholesky factor of a singular matrix may exist."""
    _, domain = experiments(500, 10)

    def barrier(X):
        try:
            np.linalg.cholesky(X)
        except np.linalg.LinAlgError:
            return math.inf, None
        return -np.linalg.slogdet(X)[1], -np.linalg.inv(X)

    for update in (ps.FullyCorrective(), ps.Pairwise()):
        assert ps.minimize(ps.Smooth(barrier), domain, update).status is ps.Status.GAP


def by_sign_of_determinant(V):
    """-log det of the designs of these experiments, as a function of the weights, and of the matrix. At singular
    matrices rounding decides whether they are finite."""

    def value(X):
        sign, logarithm = np.linalg.slogdet(X)
        return -float(logarithm) if sign > 0 else math.inf

    def variances(w):
        return np.einsum("ji,ji->i", V, np.linalg.solve((V * w) @ V.T, V))

    simplex, matrices = ps.conv(ps.Simplex(V.shape[1])), ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :]))
    yield ps.Smooth(lambda w: value((V * w) @ V.T), lambda w: -variances(w)), simplex
    yield ps.Smooth(value, lambda X: -np.linalg.inv(X)), matrices


@pytest.mark.parametrize("d", [3, 5, 10])
def test_a_run_begins_where_f_is_finite_for_other_weights_too(d):
    for seed in range(3):
        V = np.random.default_rng(seed).standard_normal((d, 12 * d))
        for f, domain in by_sign_of_determinant(V):
            assert ps.minimize(f, domain, ps.FullyCorrective()).status is ps.Status.GAP


@pytest.mark.parametrize("d", [3, 5, 10])
def test_a_line_search_does_not_end_where_f_is_finite_by_rounding(d):
    for seed in range(3):
        V = np.random.default_rng(seed).standard_normal((d, 12 * d))
        for f, domain in by_sign_of_determinant(V):
            values = [s.value for s in islice(ps.iterate(f, domain, ps.Plain(ps.LineSearch())), 30)]
            assert max(np.diff(values)) <= 1e-9


def test_where_no_mean_of_atoms_is_inside_the_user_is_asked_for_a_start():
    f = ps.Smooth(lambda x: math.inf if x[0] < 2 else float(x[0]), lambda x: np.array([1.0, 0.0]))
    with pytest.raises(
        ValueError, match=r"f is not finite at 0, nor at the means of atoms that were tried; give start="
    ):
        ps.minimize(f, ps.conv(ps.SignedBasis(2)))
    with pytest.raises(ValueError, match=r"f is not finite at 0, nor at the means of atoms that were tried"):
        ps.minimize(f, ps.lin(ps.SignedBasis(2)))


@given(seed=st.integers(0, 1000), choice=st.integers(0, len(DESCENDING) - 1), trace=st.booleans())
def test_certificates_of_designs_keep_their_promise(seed, choice, trace):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    _, domain = experiments(int(rng.integers(d + 1, 15)), d, seed)
    f = ps.TraceInverse() if trace else ps.LogDet()
    best = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-11, iterations=100))
    for s in islice(ps.iterate(f, domain, DESCENDING[choice]), 15):
        assert s.lower <= best.value + 1e-9 * (1 + abs(best.value))
        assert s.gap >= s.value - best.value - 1e-9 * (1 + abs(best.value))


@pytest.mark.parametrize("f", [ps.LogDet(), ps.TraceInverse()], ids=repr)
def test_conjugates_of_spectral_functions_meet_fenchel_young(f, rng):
    for _ in range(20):
        X, Y = (Q @ Q.T + 0.1 * np.eye(3) for Q in rng.standard_normal((2, 3, 3)))
        value, grad = f.value_and_grad(X)
        assert f.conjugate(grad) == pytest.approx((grad * X).sum() - value, rel=1e-9)  # with equality at the gradient
        assert f.conjugate(grad) >= (grad * Y).sum() - f.value(Y) - 1e-9
    assert f.conjugate(np.eye(3)) == math.inf
    assert f.conjugate(-np.array([[1.0, 0.5], [0.0, 1.0]])) == math.inf
    assert f.value(np.diag([1.0, -1.0])) == math.inf
    assert f.value(np.diag([1.0, 0.0])) == math.inf


def test_a_log_determinant_over_a_cone_is_certified_by_its_conjugate(rng):
    """The covariance model: -log det X + <C, X> over positive semidefinite matrices has its minimum at C^-1."""
    Q = rng.standard_normal((3, 6))
    C = Q @ Q.T / 6

    class Likelihood(ps.LogDet):
        def value_and_grad(self, x):
            value, grad = super().value_and_grad(x)
            return value + float((C * x).sum()), grad + C

        def conjugate(self, u):
            return super().conjugate(u - C)

    r = ps.minimize(Likelihood(), ps.cone(ps.Spectrahedron(3)), start=np.eye(3))
    assert r.status is ps.Status.GAP
    assert r.value == pytest.approx(np.linalg.slogdet(C)[1] + 3, rel=1e-6)
    np.testing.assert_allclose(r.x, np.linalg.inv(C), rtol=1e-2)


# ------------------------------------------------------------------------- portfolios and entropies


def utility(returns):
    """Minus the mean logarithm of the return, with all that one may say about it."""
    n = len(returns)
    return ps.Smooth(
        lambda x: -float(np.log(x).mean()) if (x > 0).all() else math.inf,
        lambda x: -1.0 / (n * x),
        hessian=lambda x: 1.0 / (n * x * x),
    )


@pytest.mark.parametrize("update", LINEAR, ids=repr)
@pytest.mark.parametrize("known", ["hessian", "gradient", "pair"])
def test_a_portfolio_of_log_utility_is_certified(update, known, rng):
    returns = np.exp(0.3 * rng.standard_normal((40, 60)) - 0.02)
    f = utility(returns)
    if known == "gradient":
        f = ps.Smooth(f.value, f_grad)
    if known == "pair":
        f = ps.Smooth(lambda x, f=f: f.value_and_grad(x))
    r = ps.minimize(f, ps.conv(ps.Dictionary(returns)), update, stop=ps.Stop(gap=1e-6, rgap=1e-6))
    assert r.status is ps.Status.GAP
    wealth = returns @ multiplicative_portfolio(returns)
    assert r.lower <= -np.log(wealth).mean() + 1e-12
    assert r.value <= -np.log(wealth).mean() + 2e-6


def f_grad(x):
    assert (x > 0).all()
    return -1.0 / (len(x) * x)


def multiplicative_portfolio(returns, rounds=20_000):
    """Cover's algorithm."""
    w = np.full(returns.shape[1], 1.0 / returns.shape[1])
    for _ in range(rounds):
        w *= (returns / (returns @ w)[:, None]).mean(axis=0)
    return w / w.sum()


@pytest.mark.parametrize("update", [None, ps.Away(), ps.NormCorrective(), ps.Pairwise()], ids=repr)
def test_relative_entropy_is_minimised_though_its_gradient_is_infinite_on_the_boundary(update):
    q = np.array([0.1, 0.2, 0.3, 0.4])

    def value(x):
        return float((x * np.log(np.where(x > 0, x, 1.0) / q)).sum()) if (x >= 0).all() else math.inf

    def grad(x):
        with np.errstate(divide="ignore"):
            return np.log(x / q) + 1.0

    f = ps.Smooth(value, grad, hessian=lambda x: 1.0 / x)
    r = ps.minimize(f, ps.conv(ps.Simplex(4)), update, stop=ps.Stop(gap=1e-7))
    np.testing.assert_allclose(r.x, q, atol=1e-4)
    assert r.status is ps.Status.GAP


@pytest.mark.parametrize("form", ["diagonal", "matrix", "function"])
def test_a_hessian_may_be_a_diagonal_a_matrix_or_a_function(form, rng):
    s, y = rng.uniform(0.5, 2.0, 5), rng.standard_normal(5)
    hessian = {
        "diagonal": lambda x: 12 * s * (x - y) ** 2,
        "matrix": lambda x: np.diag(12 * s * (x - y) ** 2),
        "function": lambda x: lambda v: 12 * s * (x - y) ** 2 * v,
    }[form]
    f = ps.Smooth(lambda x: float(s @ (x - y) ** 4), lambda x: 4 * s * (x - y) ** 3, hessian=hessian)
    ps.check_objective(f, shape=(5,))
    assert ps.minimize(f, ps.conv(ps.SignedBasis(5))).status is ps.Status.GAP
    wrong = ps.Smooth(f.value, lambda x: f.value_and_grad(x)[1], hessian=lambda x: np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"hessian returned an array of shape \(2, 3\); return a diagonal"):
        ps.minimize(wrong, ps.conv(ps.SignedBasis(5)))


# ------------------------------------------------------------------------------- atoms that move


def barrier(t, size):
    """A function that is finite within `size` of t in every entry; elsewhere its gradient is None."""

    def value_and_grad(x):
        used = (x - t) / size
        if not (np.abs(used) < 1).all():
            return math.inf, None
        return -float(np.log1p(-(used**2)).sum()), 2.0 * used / (1.0 - used**2) / size

    return ps.Smooth(value_and_grad)


MOVING = {
    "sum": lambda s: ps.conv(ps.RankOne((3, 3))) + ps.conv(0.5 * ps.RankOne((3, 3))),
    "symmetric": lambda s: ps.conv(5 * s * ps.SymmetricRankOne(3)),
    "large hull": lambda s: ps.conv(30 * s * ps.RankOne((3, 3))),
    "cone": lambda s: ps.cone(ps.Spectrahedron(3)),
    "tensors": lambda s: ps.conv(5 * s * ps.RankOneTensor((3, 3, 1))),
}


@pytest.mark.parametrize("scale", [1e-4, 1.0])  # 1e-4: f is infinite at most points of the sum
@pytest.mark.parametrize("kind", MOVING)
def test_atoms_move_inside_the_domain_of_f_only(kind, scale):
    domain = MOVING[kind](scale)
    for seed in range(2):
        t = np.random.default_rng(seed).standard_normal((3, 3))
        t = scale * (t @ t.T if kind in ("symmetric", "cone") else t).reshape(domain.parts[0].A.shape)
        f = barrier(t, 1.01 * float(np.abs(t).max()))
        r = ps.minimize(f, domain, stop=ps.Stop(iterations=20))
        assert r.refine is not None
        assert r.value < f.value(np.zeros_like(t))


# ----------------------------------------------------------------------------- without convexity


def assignment(n, seed):
    """Quadratic assignment, trace(A X B' X'), which is not convex."""
    rng = np.random.default_rng(seed)
    A, B = (M + M.T for M in rng.random((2, n, n)))
    return ps.Smooth(
        lambda X: float((A @ X @ B * X).sum()), lambda X: 2.0 * A @ X @ B, convex=False,
        hessian=lambda X: lambda V: 2.0 * A @ V @ B,
    ), A, B  # fmt: skip


@pytest.mark.parametrize("update", [*LINEAR, ps.Plain(ps.LineSearch()), ps.Plain(ps.OpenLoop())], ids=repr)
def test_without_convexity_the_gap_is_infinite_and_stationarity_is_the_frank_wolfe_gap(update):
    f, _, _ = assignment(4, 0)
    P = ps.Permutations(4)
    before = math.inf
    for s in islice(ps.iterate(f, ps.conv(P), update), 30):
        assert (s.gap, s.lower, s.convex, s.bound.contradicted) == (math.inf, -math.inf, False, False)
        best = P.lmo(s.grad).dense(ps.Space.of(s.x))
        assert s.stationarity == pytest.approx(float((s.grad * (s.x - best)).sum()), abs=1e-9)
        if getattr(update, "descends", True):
            assert s.value <= before + 1e-10
        before = s.value


@pytest.mark.parametrize("update", LINEAR, ids=repr)
def test_quadratic_assignment_ends_at_a_stationary_point_that_says_so(update):
    f, _, _ = assignment(6, 1)
    r = ps.minimize(f, ps.conv(ps.Permutations(6)), update, stop=ps.Stop(rgap=1e-6, iterations=3000))
    assert r.status in (ps.Status.NEARLY_STATIONARY, ps.Status.STATIONARY)
    assert r.stationarity <= 1e-6 * abs(r.value)
    assert r.gap == math.inf
    assert "stationarity" in str(r)
    assert r.check().gap == math.inf
    assert r.promise().bounds == []


def test_a_report_does_not_call_f_convex_and_tells_the_stationarity(tmp_path):
    f, _, _ = assignment(4, 2)
    r = ps.minimize(f, ps.conv(ps.Permutations(4)))
    page = r.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "smooth convex" not in page
    assert f"the Frank-Wolfe gap is {r.stationarity:.3g}" in page


def test_a_known_infimum_is_a_bound_without_convexity(rng):
    f = ps.Smooth(lambda x: float(np.cos(x).sum()), lambda x: -np.sin(x), convex=False, infimum=-3.0)
    r = ps.minimize(f, ps.conv(4.0 * ps.SignedBasis(3)))
    assert r.lower == -3.0
    assert r.gap == r.value + 3.0


def test_convex_functions_report_their_stationarity_too(rng):
    D = rng.standard_normal((5, 9))
    for s in islice(ps.iterate(ps.LeastSquares(rng.standard_normal(5)), ps.conv(ps.Dictionary(D))), 5):
        assert s.stationarity == pytest.approx(s.grad @ s.x - (D.T @ s.grad).min(), abs=1e-12)
    assert next(ps.iterate(ps.LeastSquares(np.ones(5)), ps.lin(ps.Dictionary(D)))).stationarity == math.inf


def test_a_run_begins_at_the_mean_of_few_atoms_of_each_hull(rng):
    """The oracle names 64 atoms a call. As f is finite at one, a run begins at the mean of at most four of each hull;
    a matrix of full rank needs as many as it has rows."""
    f = ps.Smooth(lambda x: -float(np.log(x).sum()) if (x > 0).all() else np.inf, lambda x: -1 / x)
    assets = ps.conv(ps.Dictionary(np.exp(rng.standard_normal((5, 80)))))
    first = next(ps.iterate(f, assets))
    assert 1 <= len(first.active) <= 4
    first = next(ps.iterate(f, assets + assets))
    np.testing.assert_allclose(np.bincount(first.active.blocks, first.active.weights), [1.0, 1.0])
    assert np.bincount(first.active.blocks).max() <= 4
    V = rng.standard_normal((9, 300))
    first = next(ps.iterate(ps.LogDet(), ps.conv(ps.Dictionary(V[:, None, :] * V[None, :, :]))))
    assert 9 <= len(first.active) <= 64 and math.isfinite(first.value)
