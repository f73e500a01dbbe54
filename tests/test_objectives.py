"""Objectives: values, derivatives, constants, extremes, and the exact line search."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

import pursuit as ps
from pursuit.line_search import UnboundedError, line_search


def objectives(rng):
    y = rng.standard_normal(7)
    Q = rng.standard_normal((7, 7))
    return {
        "squares": ps.LeastSquares(y),
        "weighted squares": ps.LeastSquares(y, weights=rng.uniform(0.2, 3, 7)),
        "quadratic": ps.Quadratic(Q @ Q.T, y),
        "huber": ps.Huber(y, width=0.4),
        "logistic": ps.Logistic(np.sign(np.append(y[:-2], [1, -1]))),
        "poisson": ps.Poisson(rng.poisson(3, 7)),
        "multinomial": ps.Multinomial([0, 2, 1, 1, 0]),
    }


NAMES = list(objectives(np.random.default_rng(0)))


def point(f, rng, scale=1.0):
    return scale * rng.standard_normal(f.space.shape)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 500))
def test_derivatives_agree_with_finite_differences(name, seed):
    rng = np.random.default_rng(seed)
    f = objectives(rng)[name]
    x, d, h = point(f, rng), point(f, rng), 1e-5
    value, grad = f.value_and_grad(x)
    assert f.value(x) == value
    up, down = f.value_and_grad(x + h * d), f.value_and_grad(x - h * d)
    assert np.vdot(grad, d) == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-5, abs=1e-6)
    if name != "huber":  # its second derivative jumps
        second = np.vdot(d, f.hessian(x)(d))
        assert second == pytest.approx(np.vdot(up[1] - down[1], d) / (2 * h), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 500), scale=st.sampled_from([0.1, 1.0, 10.0]))
def test_smoothness_strong_convexity_and_infimum_are_true_bounds(name, seed, scale):
    rng = np.random.default_rng(seed)
    f = objectives(rng)[name]
    x, d = point(f, rng, scale), point(f, rng, scale)
    value, grad = f.value_and_grad(x)
    new, linear, square = f.value(x + d), value + np.vdot(grad, d), np.vdot(d, d)
    slack = 1e-9 * (1 + abs(new) + abs(value))
    assert new >= linear + f.mu / 2 * square - slack
    if f.L is not None:
        assert new <= linear + f.L / 2 * square + slack
    assert value >= f.infimum - slack


def test_smoothness_constants_are_attained():
    assert ps.Logistic([0, 1]).hessian(np.zeros(2)).h[0] == 0.25
    f = ps.Multinomial([0, 1])
    d = np.array([[1.0, -1.0], [0.0, 0.0]])
    assert np.vdot(d, f.hessian(np.zeros((2, 2)))(d)) == pytest.approx(0.5 * np.vdot(d, d))
    assert ps.Quadratic(np.diag([1.0, 5.0])).L == 5.0
    assert 1.0 - 1e-12 <= ps.Quadratic(np.diag([1.0, 5.0])).mu < 1.0  # rounded down: bounds divide by it
    assert ps.Quadratic(np.diag([0.0, 5.0])).mu == 0.0
    f = ps.LeastSquares([0.0, 0.0], weights=[2.0, 3.0])
    assert (f.L, f.mu) == (3.0, 2.0)


def test_infima_are_attained_where_they_can_be():
    assert ps.Poisson([2.0, 5.0]).value(np.log([2.0, 5.0])) == pytest.approx(ps.Poisson([2.0, 5.0]).infimum)
    assert ps.Poisson([0.0]).value(np.array([-1e3])) == pytest.approx(ps.Poisson([0.0]).infimum)
    assert ps.Huber([1.0], 2.0).value(np.array([1.0])) == 0.0


@pytest.mark.parametrize("sign", [-1, 1])
def test_logistic_and_poisson_survive_a_thousand(sign):
    x = np.array([1e3, -1e3]) * sign
    f = ps.Logistic([-1, 1])
    value, grad = f.value_and_grad(x)
    assert value == pytest.approx(2e3 if sign == 1 else 0.0, abs=1e-300)
    np.testing.assert_allclose(grad, [1.0, -1.0] if sign == 1 else [0.0, 0.0], atol=1e-300)
    assert np.isfinite(f.hessian(x).h).all()
    value, grad = ps.Poisson([1, 2]).value_and_grad(x)
    assert not math.isnan(value)
    assert np.isfinite(grad).all()
    value, grad = ps.Multinomial([0, 1]).value_and_grad(np.array([[1e3, -1e3], [1e3, -1e3]]))
    assert value == pytest.approx(2e3)


def test_sparse_and_operator_quadratics_equal_the_dense_one(rng):
    Q = rng.standard_normal((6, 6))
    H, c, x = Q @ Q.T, rng.standard_normal(6), rng.standard_normal(6)
    dense = ps.Quadratic(H, c).value_and_grad(x)
    for form in (sp.csr_array(H), aslinearoperator(H)):
        f = ps.Quadratic(form, c)
        value, grad = f.value_and_grad(x)
        assert value == pytest.approx(dense[0])
        np.testing.assert_allclose(grad, dense[1])
        assert f.L is None
        r = ps.minimize(f, ps.conv(ps.SignedBasis(6)))
        assert r.value == pytest.approx(ps.minimize(ps.Quadratic(H, c), ps.conv(ps.SignedBasis(6))).value, rel=1e-5)


# ------------------------------------------------------------------ the line search


def search(f, x, d, reach=math.inf):
    return line_search(f, x, d, float(np.vdot(f.value_and_grad(x)[1], d)), reach)


def without_hessian(f):
    g = ps.Smooth(f.value, lambda x: f.value_and_grad(x)[1])
    g.space = f.space
    return g


@pytest.mark.parametrize("name", [*NAMES, "no hessian"])
@pytest.mark.parametrize("reach", [math.inf, 1.0])
@given(seed=st.integers(0, 300), scale=st.sampled_from([1e-6, 1.0, 1e3]))
def test_the_line_search_is_exact_to_rounding(name, reach, seed, scale):
    rng = np.random.default_rng(seed)
    f = without_hessian(objectives(rng)["multinomial"]) if name == "no hessian" else objectives(rng)[name]
    x = point(f, rng)
    d = -f.value_and_grad(x)[1] * scale
    if name in ("logistic", "multinomial", "no hessian") and math.isinf(reach):
        return  # may have no minimum
    gamma = search(f, x, d, reach)
    assert 0 <= gamma <= reach
    grad = f.value_and_grad(x + gamma * d)[1]
    slope = np.vdot(grad, d)
    noise = 1e-13 * (np.linalg.norm(d) * (np.linalg.norm(grad) + (1 + np.abs(gamma * d).max()) * np.sqrt(d.size)))
    if gamma < reach:
        assert abs(slope) <= noise * 10
    else:
        assert slope <= noise * 10


def test_the_line_search_finds_a_far_minimum_and_sees_an_endless_descent():
    f = ps.Smooth(lambda x: float(np.sum((x - 1e9) ** 2)), lambda x: 2 * (x - 1e9))
    assert search(f, np.zeros(1), np.ones(1)) == pytest.approx(1e9, rel=1e-12)
    g = ps.Smooth(lambda x: -float(x[0]), lambda x: -np.ones(1))
    with pytest.raises(UnboundedError):
        search(g, np.zeros(1), np.ones(1))
    with pytest.raises(UnboundedError):
        search(ps.Quadratic(np.zeros((1, 1)), [-1.0]), np.zeros(1), np.ones(1))


@pytest.mark.parametrize("make", [lambda f: f, without_hessian])
def test_a_line_search_finds_in_few_steps_that_f_descends_up_to_its_reach(make, monkeypatch):
    f, points = ps.Logistic([1.0, -1.0]), []
    evaluate = f.value_and_grad
    monkeypatch.setattr(f, "value_and_grad", lambda x: (points.append(x), evaluate(x))[1])
    assert search(make(f), np.zeros(2), np.array([1.0, -1.0]), reach=3.0) == 3.0  # the first step is shorter
    assert len(points) < 10  # bisections would be about 50


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("left", [0.1, 0.5])
def test_a_line_search_that_may_leave_a_share_of_the_slope_descends_and_leaves_no_more(left, scale):
    early = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        f = ps.Poisson(rng.poisson(3.0, 8))
        x = rng.standard_normal(8)
        d = -scale * f.value_and_grad(x)[1] / f.hessian(x).h  # Newton's step, shorter or longer
        slope = float(f.value_and_grad(x)[1] @ d)
        near, exact = (line_search(f, x, d, slope, math.inf, share) for share in (left, 0.0))
        assert f.value(x + near * d) < f.value(x)
        assert abs(f.value_and_grad(x + near * d)[1] @ d) <= left * abs(slope)
        early.append(near != exact)
    assert any(early)


def test_an_ascent_direction_has_step_zero():
    assert search(ps.LeastSquares([1.0]), np.zeros(1), -np.ones(1)) == 0.0


# ------------------------------------------------------------------ backtracking


def test_backtracking_finds_the_smoothness_and_stays_within_its_evaluations():
    calls = 0

    class Counting(ps.Objective):
        def value_and_grad(self, x):
            nonlocal calls
            calls += 1
            return 50.0 * float((x - y) @ (x - y)), 100.0 * (x - y)

    y = np.random.default_rng(0).standard_normal(20)
    rule = ps.Backtracking(shrink=0.9, grow=2.0)
    steps = 60
    stop = ps.Stop(iterations=steps, rgap=None, gap=None)
    r = ps.minimize(Counting(), ps.conv(0.5 * ps.SignedBasis(20)), ps.Plain(ps.ShortStep(L=rule)), stop=stop)
    spent = calls - (steps + 1) - 2  # less the loop's own, the start, and the first guess
    assert spent <= (1 - math.log(rule.shrink) / math.log(rule.grow)) * (steps + 1) + 1 + math.log(2) / math.log(
        rule.grow
    )
    assert r.value <= 1.01 * ps.minimize(ps.LeastSquares(y, weights=100.0), ps.conv(0.5 * ps.SignedBasis(20))).value


@pytest.mark.parametrize(
    "update", [ps.Plain(ps.ShortStep()), ps.Plain(ps.DiameterStep()), ps.NormCorrective(), ps.FullyCorrective()]
)
def test_every_update_that_needs_smoothness_works_without_it(update, rng):
    y = rng.poisson(2.0, 10)
    f = ps.Poisson(y)
    blind = without_hessian(f)
    domain = ps.conv(3 * ps.SignedBasis(10))
    best = ps.minimize(f, domain).value
    r = ps.minimize(blind, domain, update, stop=ps.Stop(iterations=2000))
    assert r.value <= best + 0.02 * abs(best)


WEIGHTED = {
    "squares": ps.LeastSquares,
    "huber": lambda y, s: ps.Huber(y, 0.7, s),
    "logistic": lambda y, s: ps.Logistic(y > np.median(y), s),
    "poisson": lambda y, s: ps.Poisson(np.abs(np.rint(2 * y)), s),
    "multinomial": lambda y, s: ps.Multinomial(np.argsort(np.argsort(y)) // 2 % 3, s),
}


@pytest.mark.parametrize("kind", WEIGHTED)
def test_a_weight_of_two_is_the_observation_twice(kind, rng):
    y, counts = rng.standard_normal(8), np.array([1, 2, 1, 3, 1, 1, 2, 1])
    plain = WEIGHTED[kind](y, None)
    weighted = WEIGHTED[kind](y, counts)
    x, v = rng.standard_normal((2, *plain.y.shape))
    twice = np.repeat(np.arange(8), counts)
    repeated = type(plain)(*([plain.y[twice], 0.7] if kind == "huber" else [plain.y[twice]]))
    value, grad = repeated.value_and_grad(x[twice])
    folded = np.zeros_like(x)
    np.add.at(folded, twice, grad)
    assert weighted.value_and_grad(x)[0] == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(weighted.value_and_grad(x)[1], folded, rtol=1e-12, atol=1e-14)
    curvature = float(np.vdot(v[twice], repeated.hessian(x[twice])(v[twice])))
    assert float(np.vdot(v, weighted.hessian(x)(v))) == pytest.approx(curvature, rel=1e-12)
    assert weighted.infimum == pytest.approx(repeated.infimum, rel=1e-12)
    if plain.L is not None:
        np.testing.assert_allclose(weighted.L, 3 * plain.L)


@pytest.mark.parametrize("kind", WEIGHTED)
def test_one_number_as_weight_scales_everything(kind, rng):
    y = rng.standard_normal(8)
    plain, scaled = WEIGHTED[kind](y, None), WEIGHTED[kind](y, 4.0)
    x = rng.standard_normal(plain.y.shape)
    (value, grad), (value4, grad4) = plain.value_and_grad(x), scaled.value_and_grad(x)
    assert value4 == pytest.approx(4 * value)
    np.testing.assert_allclose(grad4, 4 * grad)
    assert scaled.conjugate(grad4) == pytest.approx(4 * plain.conjugate(grad), rel=1e-12)
    assert "weights=4" in repr(scaled) and "weights" not in repr(plain)


@pytest.mark.parametrize("kind", WEIGHTED)
@pytest.mark.parametrize(("weights", "words"), [(0.0, "positive"), (np.ones(3), "shape"), (-np.ones(8), "positive")])
def test_bad_weights_are_one_helpful_sentence(kind, weights, words, rng):
    with pytest.raises(ValueError, match=words):
        WEIGHTED[kind](rng.standard_normal(8), weights)


def test_a_wrong_conjugate_is_found():
    class Low(ps.LeastSquares):
        def conjugate(self, u):
            return super().conjugate(u) - 1.0

    ps.check_objective(ps.LeastSquares([3.0, 1.0]))
    with pytest.raises(AssertionError, match="the conjugate at a gradient is"):
        ps.check_objective(Low([3.0, 1.0]))


def test_a_loss_in_one_class_is_minimised_proved_differentiated_and_reported(rng, tmp_path):
    class Quartic(ps.objectives.DataLoss):
        """sum_i s_i (x_i - y_i)^4 / 4."""

        infimum, target, _words = 0.0, "numbers", "the fourth powers of {size} residuals{weighted}"

        def _set_constants(self):
            pass

        def value_and_grad(self, x):
            r = x - self.y
            return float(np.sum(self.weights * r**4)) / 4, self.weights * r**3

        def hessian(self, x):
            return ps.metrics.Diagonal(3.0 * self.weights * (x - self.y) ** 2)

        def conjugate(self, u):
            return float(np.sum(0.75 * self.weights * np.abs(u / self.weights) ** (4 / 3) + u * self.y)) * (1 + 1e-12)

        def data_slopes(self, x):
            return -3.0 * self.weights * (x - self.y) ** 2

    X = rng.standard_normal((30, 8))
    f = Quartic(X[:, 0] + rng.standard_normal(30), weights=rng.uniform(0.5, 2, 30))
    ps.check_objective(f)
    r = ps.minimize(f, ps.lin(ps.Dictionary(X)), stop=ps.Stop(rgap=1e-10))
    assert r.gap <= 1e-10 * r.value
    d, direction, h = ps.differentiate(r), rng.standard_normal(30), 1e-4
    ends = [Quartic(f.y + c * h * direction, f.weights) for c in (1, -1)]
    up, down = (ps.minimize(g, ps.lin(ps.Dictionary(X)), stop=ps.Stop(rgap=1e-12)).x for g in ends)
    np.testing.assert_allclose(d.jvp(y=direction).x, (up - down) / (2 * h), rtol=1e-3, atol=1e-4)
    page = r.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "the fourth powers of 30 residuals, weighted" in page
