"""f(x) + lam ||x||_A: the Lasso and its relatives, with and without an intercept, certified."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws import KINDS, dictionary, objective
from sklearn.linear_model import Lasso

import pursuit as ps


def test_it_is_soft_thresholding_on_a_basis_and_on_singular_values(rng):
    y = 3.0 * rng.standard_normal(30)
    r = ps.minimize(ps.LeastSquares(y), ps.penalty(1.5 * ps.SignedBasis(30)))
    np.testing.assert_allclose(r.x, np.sign(y) * np.maximum(np.abs(y) - 1.5, 0.0), atol=1e-12)
    Y = rng.standard_normal((12, 9))
    U, s, V = np.linalg.svd(Y, full_matrices=False)
    left = np.maximum(s - 2.0, 0.0)
    r = ps.minimize(ps.LeastSquares(Y), ps.penalty(2.0 * ps.RankOne((12, 9))))
    np.testing.assert_allclose(r.x, (U * left) @ V, atol=1e-9)
    assert r.value == pytest.approx(0.5 * ((s - left) ** 2).sum() + 2.0 * left.sum())
    assert r.gap <= 1e-6 * r.value


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_it_is_the_lasso(intercept, positive, rng):
    X = rng.standard_normal((50, 120)) * 10.0 ** rng.uniform(-1, 1, 120)
    y, lam = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + 4.0 + 0.1 * rng.standard_normal(50), 9.0
    model = Lasso(alpha=lam / 50, fit_intercept=intercept, positive=positive, tol=1e-13, max_iter=10**6).fit(X, y)
    value = 0.5 * ((y - model.predict(X)) ** 2).sum() + lam * np.abs(model.coef_).sum()
    domain = ps.penalty(lam * ps.Dictionary(X, signed=not positive))
    if intercept:
        domain = domain + ps.lin(ps.Dictionary(np.ones((50, 1))))
    r = ps.minimize(ps.LeastSquares(y), domain, stop=ps.Stop(rgap=1e-10))
    assert r.status is ps.Status.GAP
    assert r.value == pytest.approx(value, rel=1e-9)
    coef = r.coef[0] if intercept else r.coef
    np.testing.assert_allclose(coef, model.coef_, atol=1e-5 * np.abs(model.coef_).max())
    check = r.check()
    assert check.value == pytest.approx(r.value, rel=1e-13) and check.gap <= 1e-10 * r.value and check.feasible


@given(
    kind=st.sampled_from(KINDS),
    others=st.lists(st.sampled_from(["conv", "cone", "lin", "penalty"]), max_size=2),
    update=st.sampled_from([None, ps.FullyCorrective(), ps.NormCorrective()]),
    oracle=st.sampled_from([ps.Exact(), ps.Approximate(0.6), ps.Lazy(), ps.RandomAtom(0)]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=150, deadline=None)
def test_bounds_are_below_and_values_fall(kind, others, update, oracle, seed):
    rng = np.random.default_rng(seed)
    build = {"conv": ps.conv, "cone": ps.cone, "lin": ps.lin, "penalty": ps.penalty}
    f, domain = objective(kind, rng, 12), None
    for name in ["penalty", *others]:
        A = dictionary(rng.standard_normal((12, int(rng.integers(1, 5)))), kind, bool(rng.integers(2)))
        part = build[name](10.0 ** rng.uniform(-2, 1) * A)
        domain = part if domain is None else domain + part
    values, lowers = [], []
    for state in ps.iterate(f, domain, update, oracle=oracle):
        values.append(state.value)
        lowers.append(state.lower)
        cost = sum(
            part.price * state.active.weights[state.active.blocks == b].sum() for b, part in enumerate(domain.parts)
        )
        assert state.value == pytest.approx(f.value(state.x) + cost, rel=1e-12, abs=1e-12 * abs(cost))
        if state.stationary or state.iteration == 25:
            break
    stop = ps.Stop(rgap=1e-9, iterations=60)
    best = [ps.minimize(f, domain, other, stop=stop).value for other in (ps.FullyCorrective(), ps.NormCorrective())]
    size = max(map(abs, values))
    assert max(lowers) <= min(best + values) + 1e-13 * size
    assert all(after <= before + 1e-12 * size for before, after in pairwise(values))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "smooth"])
def test_penalties_with_an_intercept_are_certified(kind):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 20))
    domain = ps.penalty(2.0 * dictionary(X, kind, signed=True)) + ps.lin(dictionary(np.ones((60, 1)), kind))
    r = ps.minimize(objective(kind, rng, 60), domain)
    if kind == "quadratic":
        assert r.gap <= 1e-6 * abs(r.value) or np.isinf(r.gap)  # flat directions of f that the intercept leaves
    else:
        assert r.status is ps.Status.GAP
    assert abs(r.dual.reduced[r.blocks == 0]).max(initial=0.0) <= 1e-3 * 2.0  # active atoms pay for themselves


def test_the_factor_of_the_set_is_the_price_and_walks_are_refused():
    domain = ps.penalty(3.0 * ps.SignedBasis(4))
    assert repr(domain) == "penalty(3 * SignedBasis(4))"
    assert ps.minimize(ps.LeastSquares([1.0, 2.0, -1.0, 0.5]), domain).x.tolist() == [0.0] * 4
    with pytest.raises(ValueError, match="over a penalty FullyCorrective"):
        ps.minimize(ps.LeastSquares(np.ones(4)), domain, ps.Plain(ps.LineSearch()))


def test_a_refinement_may_not_raise_the_penalised_value(rng):
    y = rng.standard_normal(5)

    def spend(f, domain, active):  # a lower f at a larger cost
        return [1.0] * 5, [ps.Atom(v * e, source=i) for i, (v, e) in enumerate(zip(y, np.eye(5), strict=True))]

    f, domain = ps.LeastSquares(y), ps.penalty(10.0 * ps.SignedBasis(5))
    r = ps.minimize(f, domain, ps.FullyCorrective(), refine=spend, stop=ps.Stop(iterations=1, rgap=None))
    assert r.value == pytest.approx(f.value(np.zeros(5)))


def test_a_negative_factor_of_a_penalty_mirrors_its_atoms(rng):
    D, y = rng.standard_normal((5, 3)), rng.standard_normal(5)
    one, other = (
        ps.minimize(ps.LeastSquares(y), ps.penalty(c * ps.Dictionary(s * D))) for c, s in ((-1.5, 1), (1.5, -1))
    )
    assert one.value == pytest.approx(other.value) and one.lower <= one.value and one.domain.parts[0].price == 1.5


class Axes(ps.Atoms):
    """The unit vectors and their negatives, as a user writes them: without sources or a norm."""

    shape, symmetric, radius = (4,), True, 1.0

    def lmo(self, g):
        i = int(np.argmax(abs(g)))
        return ps.Atom(np.eye(4)[i] * (-1.0 if g[i] > 0 else 1.0))


@pytest.mark.parametrize("A", [ps.SignedBasis(4), ps.Dictionary(np.eye(4), signed=True), Axes()], ids=repr)
def test_a_start_costs_its_norm_whatever_it_is_made_of(A):
    f, domain = ps.LeastSquares([3.0, 2.0, 1.0, -1.0]), ps.penalty(0.5 * A)
    starts = [0.0, ([2.0], [A.lmo(np.arange(4.0))]), *(ps.minimize(f, ps.penalty(c * A)) for c in (0.1, 2.0))]
    starts += [ps.minimize(f, ps.conv(5 * A))] if type(A) is not Axes else [ps.minimize(f, ps.conv(A))]
    starts += [ps.minimize(f, ps.lin(A))] if type(A) is not Axes else []
    if A.gauge(np.ones(4)) is not None:
        starts += [np.ones(4), f.y, -f.y, ([1.0], [ps.Atom(f.y)]), ps.minimize(f, ps.lin(A), start=np.ones(4))]
    else:
        with pytest.raises(ValueError, match=r"start has a vector whose norm by .* is not known; give a Result"):
            ps.minimize(f, domain, start=np.ones(4))
    for start in starts:
        r = ps.minimize(f, domain, start=start, stop=ps.Stop(gap=1e-10))
        np.testing.assert_allclose([r.value, f.value(r.x) + 0.5 * np.abs(r.x).sum()], 3.0, atol=1e-9)
        first = ps.minimize(f, domain, start=start, stop=ps.Stop(iterations=0))
        assert first.value >= f.value(first.x) + 0.5 * np.abs(first.x).sum() - 1e-12


def test_a_start_of_a_penalised_piece_costs_its_norm():
    f, pieces = (
        ps.LeastSquares([3.0, 2.0, 1.0, -1.0, 0.2, 0.3]),
        (ps.penalty(0.5 * ps.SignedBasis(4)), ps.conv(ps.Simplex(2))),
    )
    values = [ps.minimize(f, ps.product(*pieces), start=x).value for x in (None, np.array([1, 1, 1, 1, 0.5, 0.5]))]
    np.testing.assert_allclose(values, 3.0625, atol=1e-6)
