"""What a run is promised holds for it, and the bounds that apply are the right ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps


def instance(seed, m=5, n=9):
    rng = np.random.default_rng(seed)
    Q = rng.standard_normal((m, m))
    H = Q @ Q.T + 0.3 * np.eye(m)
    target = rng.standard_normal(m)
    return ps.Quadratic(H, -H @ target), rng.standard_normal((m, n)), -0.5 * target @ H @ target


SPANS = [ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.NormCorrective(), ps.FullyCorrective()]
HULLS = [*SPANS, ps.Plain(ps.OpenLoop()), ps.Plain(ps.DiameterStep())]
qualities = st.one_of(st.just(ps.Exact()), st.floats(0.2, 1.0).map(ps.Approximate))


@given(seed=st.integers(0, 500), choice=st.integers(0, 99), oracle=qualities)
def test_a_run_over_a_span_keeps_its_promise(seed, choice, oracle):
    f, D, minimum = instance(seed)
    update = SPANS[choice % len(SPANS)]
    stop = ps.Stop(iterations=20, rgap=None)
    r = ps.minimize(f, ps.lin(ps.Dictionary(D)), update, oracle=oracle, stop=stop)
    p = r.promise()
    assert len(p.curve) == len(r.trace)
    assert {b.theorem for b in p.bounds} >= {"Theorem linearRateMPinexact", "Theorem inexactMP, sharp form"}
    assert (r.trace.value - minimum <= p.curve + 1e-9 * (1 + abs(minimum))).all()


@given(seed=st.integers(0, 500), choice=st.integers(0, 99), oracle=qualities)
def test_a_run_over_a_hull_keeps_its_promise(seed, choice, oracle):
    f, D, _ = instance(seed)
    update = HULLS[choice % len(HULLS)]
    domain = ps.conv(ps.Dictionary(D, signed=True))
    minimum = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-11)).value
    r = ps.minimize(f, domain, update, oracle=oracle, stop=ps.Stop(iterations=20, rgap=None))
    p = r.promise()
    assert "Theorem inexactFW" in {b.theorem for b in p.bounds}
    assert (r.trace.value - minimum <= p.curve + 1e-9 * (1 + abs(minimum))).all()


def test_the_curve_is_the_smallest_of_the_bounds():
    f, D, _ = instance(0)
    p = ps.minimize(
        f, ps.conv(ps.Dictionary(D)), ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=5, rgap=None)
    ).promise()
    assert len(p.bounds) == 2
    np.testing.assert_array_equal(p.curve, np.minimum(np.minimum(p.bounds[0].curve, p.bounds[1].curve), p.eps0))
    assert "Theorem inexactFW" in str(p)


@pytest.mark.parametrize(
    "update",
    [
        ps.NormCorrective(inner=3),
        ps.NormCorrective(L=ps.Backtracking()),
        ps.Plain(ps.ShortStep(L=1e-3)),
        ps.Plain(ps.CurvatureStep(5.0)),
    ],
)
def test_no_theorem_is_quoted_for_what_it_does_not_cover(update):
    f, D, _ = instance(0)
    p = ps.minimize(f, ps.lin(ps.Dictionary(D)), update, stop=ps.Stop(iterations=3, rgap=None)).promise()
    assert p.bounds == []
    assert "no theorem applies" in str(p)


def test_geometry_may_be_given_where_it_is_known():
    f, D, _ = instance(0)
    r = ps.minimize(f, ps.lin(ps.Dictionary(D)), ps.FullyCorrective(), stop=ps.Stop(iterations=4, rgap=None))
    given = r.promise(mdw=0.1, rho=50.0)
    linear, sublinear = given.bounds
    assert "width >= 0.1" in linear.constants
    assert "rho <= 50" in sublinear.constants
