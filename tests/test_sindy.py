"""The optimiser for PySINDy: the contract of its optimisers, and the equations of Lorenz."""

import numpy as np
import pytest

pysindy = pytest.importorskip("pysindy")

from pursuit.estimators.sindy import BestTerms, divided  # noqa: E402


def test_terms_are_divided_where_they_help_most():
    assert divided(np.array([[9.0, 5.0, 0.0], [9.0, 4.0, 3.0]]), 3) == [2, 1]
    assert divided(np.array([[9.0, 5.0], [9.0, 4.0]]), 1) == [0, 1]


def test_a_linear_system_is_found_as_every_optimiser_of_pysindy_finds_it():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((100, 5))
    y = np.stack([x[:, 0] - 2.0 * x[:, 3], 3.0 * x[:, 1]], axis=1)
    model = BestTerms(terms=3, verbose=True).fit(x, y)
    np.testing.assert_allclose(model.coef_, [[1, 0, 0, -2, 0], [0, 3, 0, 0, 0]], atol=1e-12)
    assert (model.ind_ == (model.coef_ != 0)).all() and model.complexity == 3
    np.testing.assert_allclose(model.predict(x), y, atol=1e-12)
    assert (model.lower_ <= model.value_).all() and BestTerms(**model.get_params()).terms == 3


def test_the_equations_of_lorenz_are_found_at_degree_three():
    rng = np.random.default_rng(0)
    S = rng.standard_normal((300, 3)) * 10.0
    x, y, z = S.T
    slopes = np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z], axis=1)
    model = pysindy.SINDy(optimizer=BestTerms(terms=7, most=3), feature_library=pysindy.PolynomialLibrary(degree=3))
    model.fit(S, t=0.01, x_dot=slopes)
    assert np.count_nonzero(np.abs(model.coefficients()) > 1e-9) == 7
