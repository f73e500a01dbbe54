"""Plots: they draw what they are given, on the axes they are given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

import pursuit as ps
from pursuit.estimators import GreedyRegressorCV
from pursuit.plots import plot_atoms, plot_path, plot_traces


@pytest.fixture
def ax():
    return Figure().add_subplot()


def lasso(rng, update=None):
    X = rng.standard_normal((30, 40))
    domain = ps.conv(3 * ps.Dictionary(X, signed=True))
    return ps.minimize(ps.LeastSquares(X[:, 3] - 2 * X[:, 5]), domain, update, stop=ps.Stop(iterations=40))


@pytest.mark.parametrize("against", ["iteration", "oracle_calls", "seconds"])
@pytest.mark.parametrize("column", ["gap", "value"])
def test_traces_of_several_runs_are_drawn_point_by_point(rng, ax, column, against):
    runs = {"away": lasso(rng, ps.Away()), "pairwise": lasso(rng, ps.Pairwise()).trace}
    assert plot_traces(runs, column=column, against=against, offset=1e-3, ax=ax) is ax
    for line, run in zip(ax.lines, runs.values(), strict=True):
        trace = getattr(run, "trace", run)
        x, y = getattr(trace, against), getattr(trace, column) - 1e-3
        shown = np.isfinite(y) & (y > 0)
        np.testing.assert_array_equal(line.get_ydata(), y[shown])
        start = x[shown] if against == "seconds" else np.maximum(x[shown], 1)
        np.testing.assert_array_equal(line.get_xdata(), start)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(runs)


def test_a_gap_of_zero_is_a_triangle_at_the_lower_edge(ax):
    runs = {"one": ps.minimize(ps.LeastSquares([3.0, 1.0]), ps.lin(ps.SignedBasis(2)), ps.FullyCorrective())}
    trace = runs["one"].trace
    assert trace.gap[-1] == 0
    plot_traces(runs, ax=ax)
    (triangles,) = ax.collections
    ax.figure.canvas.draw()
    (drawn,) = ax.transAxes.inverted().transform(
        triangles.get_offset_transform().transform(triangles.get_offsets())
    )  # in units of the axes
    assert 0 < drawn[1] < 0.1
    assert triangles.get_offsets()[0, 0] == trace.oracle_calls[-1]
    low, high = ax.get_xlim()
    assert low <= trace.oracle_calls[-1] <= high
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), trace.gap[:-1])


def test_axes_are_made_where_none_are_given(rng):
    ax = lasso(rng).trace.plot()
    assert ax.get_xlabel() == "oracle calls" and ax.get_legend() is None
    plt.close(ax.figure)


def test_coefficients_of_a_path_are_drawn_and_the_largest_are_named(rng, ax):
    X = rng.standard_normal((60, 20))
    path = ps.path(ps.LeastSquares(X[:, 3] - 2 * X[:, 5] + 0.1 * X[:, 7]), ps.Dictionary(X), atoms=[1, 2, 3])
    names = [f"$x_{j}" for j in range(20)]
    plot_path(path, names=names, labels=2, ax=ax)
    for line, j in zip(ax.lines, (5, 3, 7), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), [r.coef[j] for r in path.results])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$x_5", "$x_3"]
    assert ax.get_xlabel() == "atoms"


def test_the_best_score_of_a_path_is_marked(rng, ax):
    X = rng.standard_normal((60, 20))
    path = ps.path(
        ps.LeastSquares(X[:, 3]),
        ps.Dictionary(X, signed=True),
        radii=[0.2, 0.5, 0.9],
        score=lambda r: (r.value - 3) ** 2,
    )
    plot_path(path, column="score", ax=ax)
    curve, mark = ax.lines
    np.testing.assert_array_equal(curve.get_ydata(), path.score)
    assert mark.get_xdata()[0] == path.radius[path.best] and ax.get_xlabel() == "radius"


def test_paths_of_estimators_are_drawn(rng, ax):
    X = rng.standard_normal((60, 20))
    model = GreedyRegressorCV(max_nonzero=4, cv=2).fit(X, X[:, 3] - 2 * X[:, 5])
    plot_path(model, ax=ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.path_.coef[:, 0, 5])
    assert ax.get_xlabel() == "features"


def test_a_path_without_coefficients_or_scores_is_refused(rng, ax):
    M = rng.standard_normal((5, 4))
    path = ps.path(ps.LeastSquares(M), ps.RankOne((5, 4)), radii=[1.0])
    with pytest.raises(TypeError, match="give column='value'"):
        plot_path(path, ax=ax)
    with pytest.raises(ValueError, match="column is 'score', and this path has no such numbers"):
        plot_path(path, column="score", ax=ax)
    plot_path(path, column="value", ax=ax)


def test_columns_are_drawn_one_above_the_other_at_one_height(rng, ax):
    D = rng.standard_normal((16, 30)) * 10.0 ** np.arange(30)
    plot_atoms(D, ax=ax)
    assert len(ax.lines) == 24
    for i, line in enumerate(ax.lines):
        np.testing.assert_allclose(line.get_ydata() + i, 0.45 * D[:, i] / np.abs(D[:, i]).max())


def test_pictures_are_the_columns_each_at_full_contrast(rng, ax):
    D = rng.standard_normal((12, 5)) * [1, 10, 100, 1e3, 1e4]
    plot_atoms(D, shape=(3, 4), ax=ax)
    seen = np.ma.compressed(ax.images[0].get_array())
    np.testing.assert_allclose(np.sort(seen), np.sort((D / np.abs(D).max(axis=0)).ravel()))


def test_atoms_of_results_are_those_of_largest_weight(rng, ax):
    r = lasso(rng)
    plot_atoms(r, ax=ax)
    first = r.atoms[int(np.argmax(np.abs(r.weights)))].vector
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.45 * first / np.abs(first).max())


def test_factors_of_matrices_and_tensors_stand_side_by_side(rng, ax):
    M = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5))
    r = ps.minimize(ps.LeastSquares(M), ps.conv(50 * ps.RankOne((6, 5))))
    plot_atoms(r, ax=ax)
    assert len(ax.lines) == 2 * len(r.coef.s)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 0.45 * r.coef.U[:, 0] / np.abs(r.coef.U[:, 0]).max())
    ax.clear()
    plot_atoms(r.coef, shape=(6, 5), ax=ax)
    picture = np.outer(r.coef.U[:, 0], r.coef.V[:, 0])
    np.testing.assert_allclose(ax.images[0].get_array()[:6, :5], picture / np.abs(picture).max())
    with pytest.raises(ValueError, match=r"shape is \(5, 6\), and the matrix has shape \(6, 5\)"):
        plot_atoms(r, shape=(5, 6), ax=ax)
    T = ps.RankOneTensor((2, 3, 4))
    ax.clear()
    tensor = ps.minimize(ps.LeastSquares(T.lmo(rng.standard_normal((2, 3, 4))).vector), ps.conv(T))
    plot_atoms(tensor, ax=ax)
    assert len(ax.lines) == 3 * len(tensor.coef.weights)


def test_plots_without_matplotlib_are_refused_in_one_sentence(rng, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"^figures need matplotlib; pip install matplotlib\.$"):
        plot_atoms(np.eye(3))


def test_large_pictures_are_thinned_out(ax):
    plot_atoms(np.ones((300 * 1000, 1)), shape=(300, 1000), ax=ax)
    assert ax.images[0].get_array().shape == (256, 256)


def test_what_learn_found_is_drawn(rng, ax):
    learned = ps.learn(rng.standard_normal((50, 9)), 4, code={"atoms": 2}, sweeps=1)
    plot_atoms(learned, shape=(3, 3), ax=ax)
    assert len(ax.images) == 1
