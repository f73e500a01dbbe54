"""Domains: what an oracle's answer proves, pinned by equalities."""

import math

import numpy as np
import pytest

import pursuit as ps
from pursuit.domains import Answer


def bound(domain, value, gz, gx, delta, mu):
    """The lower bound of a plain domain from one answer."""
    answers = [Answer([], gz, delta, level=gx)]
    strong = domain.strong_gap(answers, mu, [0.0]) if mu > 0 and domain.has_strong_gap else math.inf
    return value - min(domain.gaps(answers, [0.0])[1], strong)


def test_over_a_hull_the_bound_is_the_frank_wolfe_gap_over_delta():
    assert bound(ps.conv(ps.Simplex(3)), 5.0, gz=-2.0, gx=1.0, delta=0.5, mu=0.0) == 5.0 - 3.0 / 0.5
    assert bound(ps.conv(ps.Simplex(3)), 5.0, gz=-2.0, gx=1.0, delta=0.0, mu=0.0) == -math.inf


def test_over_a_span_rho_bounds_the_way_to_a_minimiser():
    domain = ps.lin(ps.Dictionary(np.eye(3)), rho=4.0)
    assert bound(domain, 5.0, gz=-2.0, gx=1.0, delta=0.5, mu=0.0) == 5.0 - (1.0 + 4.0 * 2.0 / 0.5)


def test_over_a_span_strong_convexity_and_width_bound_the_gap():
    domain = ps.lin(ps.Dictionary(np.eye(3)), width=0.5)
    assert bound(domain, 5.0, gz=-2.0, gx=1.0, delta=0.8, mu=3.0) == pytest.approx(5.0 - (2.0 / 0.8 / 0.5) ** 2 / 6.0)
    assert bound(domain, 5.0, gz=-2.0, gx=1.0, delta=0.8, mu=0.0) == -math.inf
    assert bound(ps.lin(ps.Dictionary(np.eye(3))), 5.0, gz=-2.0, gx=1.0, delta=1.0, mu=3.0) == -math.inf


def test_the_width_certificate_is_tight_at_the_worst_direction():
    """f = |x - y|^2 / 2 over the span of +-e_i, y = (1, ..., 1): h = 1, width = 1/sqrt(n), f - f* = n/2 exactly."""
    n = 7
    f = ps.Smooth(lambda x: 0.5 * float((x - 1) @ (x - 1)), lambda x: x - 1, L=1.0, mu=1.0)
    state = next(iter(ps.iterate(f, ps.lin(ps.SignedBasis(n)))))
    assert state.value == pytest.approx(n / 2)
    assert state.gap == pytest.approx(n / 2)


def test_the_better_of_several_bounds_counts_and_is_kept():
    f = ps.LeastSquares(np.array([3.0, 4.0]))
    r = ps.minimize(f, ps.conv(ps.SignedBasis(2)), ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=50, rgap=None))
    gaps = r.trace.gap
    lower = r.trace.value - gaps
    assert (np.diff(lower) >= -1e-12).all()
    assert lower[0] >= 0.0  # the infimum of least squares is known from the first state on


def test_domains_take_functions_and_objects_with_an_oracle():
    def corner(g):
        return -np.sign(g)

    class Corners:
        def lmo(self, g):
            return ps.Atom(-np.sign(g))

    f = ps.LeastSquares([0.5, -2.0])
    for given, name in ((corner, "corner"), (Corners(), "Corners")):
        assert repr(ps.conv(given)) == f"conv({name})"
        np.testing.assert_allclose(ps.minimize(f, ps.conv(given)).x, [0.5, -1.0], atol=1e-9)
    with pytest.raises(TypeError, match=r"A is the class Corners; make one; give a set of atoms, a function g -> atom"):
        ps.conv(Corners)


def test_sets_of_ones_own_have_a_short_repr():
    class Mine(ps.Atoms):
        def lmo(self, g):
            return -np.sign(g)

    assert repr(ps.cone(Mine())) == "cone(Mine())"
