"""Continuous dictionaries: the oracle against a fine grid, the Lipschitz bound, the families' derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pursuit as ps
from pursuit import families

T = np.linspace(0.0, 1.0, 60)
PIXELS = np.stack(np.meshgrid(T[::6], T[::5], indexing="ij"), axis=-1)
FAMILIES = {
    "gaussian": (families.Gaussian(T, 0.07), [(0, 1)]),
    "gaussian with its width": (families.Gaussian(T), [(0, 1), (0.05, 0.2)]),
    "gaussian in the plane": (families.Gaussian(PIXELS), [(0, 1), (0, 1), (0.05, 0.2)]),
    "unit gaussian": (families.Unit(families.Gaussian(T)), [(0, 1), (0.05, 0.2)]),
    "template": (families.Translates(np.tanh, T, slope=lambda s: 1 / np.cosh(s) ** 2), [(0, 1)]),
    "template in the plane": (
        families.Translates(
            lambda s: s[..., 0] * s[..., 1] ** 2,
            PIXELS,
            lambda s: s[..., [1, 0]] ** 2 * [1, 0] + 2 * (s[..., [0]] * s[..., [1]]) * [0, 1],
        ),
        [(0, 1), (0, 1)],
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_derivatives_of_a_family_are_those_of_its_atoms(name):
    family, bounds = FAMILIES[name]
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = rng.uniform(*np.array(bounds).T)
        for j, slope in enumerate(family.grad(theta)):
            step = 1e-6 * np.eye(len(theta))[j]
            numeric = (family(theta + step) - family(theta - step)) / 2e-6
            assert np.allclose(slope, numeric, atol=1e-7 * (1 + np.abs(numeric).max()))


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.booleans())
def test_the_oracle_beats_a_much_finer_grid(seed, symmetric):
    rng = np.random.default_rng(seed)
    g = np.convolve(rng.standard_normal(T.size), np.ones(5), "same")
    family = families.Gaussian(T, 0.07)
    A = ps.Parametric(family, [(0, 1)], signed=symmetric)
    fine = np.array([family(np.array([c])) for c in np.linspace(0, 1, 1000)]) @ g
    best = -np.abs(fine).max() if symmetric else fine.min()
    assert A.lmo(g).vector @ g <= best + 1e-9 * abs(best)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_with_a_lipschitz_constant_the_lower_bound_holds_and_without_one_there_is_none(seed):
    rng = np.random.default_rng(seed)
    g, family = rng.standard_normal(T.size), families.Gaussian(T)
    bounds = [(0.0, 1.0), (0.05, 0.2)]
    slopes = [family.grad(np.array([c, s])) for c in np.linspace(0, 1, 21) for s in np.linspace(0.05, 0.2, 9)]
    constants = 1.2 * np.array([[np.linalg.norm(row) for row in slope] for slope in slopes]).max(axis=0)
    thetas = [rng.uniform(*np.array(bounds).T) for _ in range(200)]
    lowest = min(float(family(theta) @ g) for theta in thetas)
    for lipschitz in (constants, float(np.linalg.norm(constants))):
        A = ps.Parametric(family, bounds, grid=(15, 4), lipschitz=lipschitz)
        atoms, lower = A.begin()(g, 1, 0.0)
        assert lower <= min(lowest, atoms[0].vector @ g)
        assert lower >= -A.radius * np.linalg.norm(g) - A._slack * np.linalg.norm(g)
    assert ps.Parametric(family, bounds, grid=(15, 4)).begin()(g, 1, 0.0)[1] == -np.inf


def test_the_lower_bound_is_met_by_an_atom_in_the_middle_of_a_cell():
    v = np.array([3.0, 4.0])
    A = ps.Parametric(lambda theta: abs(theta[0] - 0.5) * v, [(0, 1)], grid=4, lipschitz=5.0)
    assert A.begin()(2.0 * v, 1, 0.0)[1] == pytest.approx(0.0, abs=1e-12)
    assert A.radius == pytest.approx(2.5 + 5.0 / 6)


def test_a_gap_is_reported_only_where_it_is_proved():
    family = families.Gaussian(T, 0.07)
    y = 2.0 * family(np.array([0.2])) + family(np.array([0.6]))
    steepest = 1.01 * max(np.linalg.norm(family.grad(np.array([c]))) for c in np.linspace(0, 1, 500))
    f = ps.Smooth(lambda x: 0.5 * float((x - y) @ (x - y)), lambda x: x - y, L=1.0)  # knows no infimum, no mu
    unproved, proved = (
        ps.minimize(
            f, ps.conv(2.0 * ps.Parametric(family, [(0, 1)], grid=400, lipschitz=c)), stop=ps.Stop(iterations=20)
        )
        for c in (None, steepest)
    )
    assert unproved.gap == np.inf
    assert 0 < proved.gap < 0.1 * proved.trace.value[0]
    assert proved.lower <= min(unproved.value, proved.value)


@pytest.mark.parametrize("name", ["gaussian", "gaussian in the plane", "unit gaussian"])
def test_continuous_sets_obey_the_laws_of_atom_sets(name):
    family, bounds = FAMILIES[name]
    for symmetric in (False, True):
        A = ps.Parametric(family, bounds, grid=8, signed=symmetric)
        ps.check_atoms(A, trials=4)
        a = A.sample(np.random.default_rng(0))
        assert np.array_equal(A.rebuild(a).vector, a.vector) and A.contains(a.vector) in (True, None)


@pytest.mark.parametrize("make", [ps.lin, ps.cone, lambda A: ps.conv(3.0 * A)], ids=["lin", "cone", "conv"])
def test_differences_stand_in_for_missing_derivatives(make):
    family = families.Gaussian(T, 0.07)
    y = 2.0 * family(np.array([0.333])) + family(np.array([0.77]))
    A = ps.Parametric(family.__call__, [(0, 1)])  # a bare function: no grad
    r = ps.minimize(
        ps.LeastSquares(y), make(A), ps.FullyCorrective(), stop=ps.Stop(iterations=8), refine=ps.refine.Slide()
    )
    weights, parameters = r.coef
    heavy = weights > 0.1
    assert sorted(parameters[heavy].ravel()) == pytest.approx([0.333, 0.77], abs=1e-5)


def test_a_chart_with_wrong_slopes_is_found_out():
    t = np.linspace(0.0, 1.0, 30)
    family = ps.families.Gaussian(t, 0.1)
    good = ps.Parametric(family, [(0.0, 1.0)])
    ps.check_atoms(good, trials=4)
    for grad, words in ((lambda theta: 2.0 * family.grad(theta), "slope along parameter 0"),):
        with pytest.raises(AssertionError, match=words):
            ps.check_atoms(ps.Parametric(family, [(0.0, 1.0)], grad=grad), trials=4)
