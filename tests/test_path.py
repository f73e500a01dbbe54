"""Paths and citations."""

import numpy as np
import pytest

import pursuit as ps


def problem(rng):
    X = rng.standard_normal((60, 100))
    y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + 0.2 * rng.standard_normal(60)
    return X, y


def test_a_path_of_radii_equals_separate_runs_and_asks_less(rng):
    X, y = problem(rng)
    f, A, radii = ps.LeastSquares(y), ps.Dictionary(X, signed=True), [0.5, 1.0, 2.0, 4.0, 6.0]
    path = ps.path(f, A, radii=radii, stop=ps.Stop(rgap=1e-9))
    alone = [ps.minimize(f, ps.conv(r * A), stop=ps.Stop(rgap=1e-9)) for r in radii]
    np.testing.assert_allclose(path.value, [r.value for r in alone], rtol=1e-8)
    assert (np.diff(path.value) < 0).all()
    assert (path.gap <= 1e-9 * path.value).all()
    np.testing.assert_array_equal(path.radius, radii)
    assert sum(r.oracle_calls for r in path.results) < sum(r.oracle_calls for r in alone)


def test_a_path_of_penalties_equals_separate_runs(rng):
    X, y = problem(rng)
    f, A, B = ps.LeastSquares(y), ps.Dictionary(X, signed=True), ps.Dictionary(np.ones((60, 1)))
    penalties, stop = [90.0, 30.0, 5.0], ps.Stop(rgap=1e-9)
    for given, domain in (
        (A, lambda c: ps.penalty(c * A)),
        (ps.penalty(2 * A) + ps.lin(B), lambda c: ps.penalty(2 * c * A) + ps.lin(B)),
    ):
        path = ps.path(f, given, penalties=penalties, stop=stop)
        alone = [ps.minimize(f, domain(c), stop=stop) for c in penalties]
        np.testing.assert_allclose(path.value, [r.value for r in alone], rtol=1e-8)
        np.testing.assert_array_equal(path.penalty, penalties)
        assert (path.gap <= 1e-9 * path.value).all()
    assert path.along()[1] == "penalty"


def test_a_path_of_sizes_is_one_greedy_run(rng):
    X, y = problem(rng)
    f, A = ps.LeastSquares(y), ps.Dictionary(X)
    path = ps.path(f, A, atoms=range(1, 8))
    for k in range(1, 8):
        alone = ps.minimize(f, ps.lin(A), ps.FullyCorrective(), stop=ps.Stop(atoms=k, rgap=None))
        np.testing.assert_allclose(path[k - 1].coef, alone.coef, atol=1e-12)
        assert len(path[k - 1].atoms) == k
    assert path[-1].oracle_calls == 8
    assert list(path.to_pandas().columns) == ["radius", "penalty", "value", "gap", "atoms", "score"]


def test_a_held_out_score_chooses_the_best_row(rng):
    X, y = problem(rng)
    train, test = slice(0, 40), slice(40, 60)
    path = ps.path(
        ps.LeastSquares(y[train]),
        ps.Dictionary(X[train]),
        atoms=range(1, 20),
        score=lambda r: float(np.mean((X[test] @ r.coef - y[test]) ** 2)),
    )
    assert 3 <= path.atoms[path.best] <= 8
    assert path.score[path.best] == path.score.min()


def test_factors_move_along_a_path(rng):
    Y = rng.standard_normal((30, 3)) @ rng.standard_normal((3, 20))
    rows, cols = np.nonzero(rng.random((30, 20)) < 0.6)
    f, A = ps.LeastSquares(Y[rows, cols]), ps.RankOne((30, 20)).at(rows, cols)
    how = {"update": ps.NormCorrective(several=4), "refine": ps.refine.Factors(), "stop": ps.Stop(rgap=1e-6)}
    radii = [20.0, 30.0, 40.0]
    path = ps.path(f, A, radii=radii, **how)
    alone = [ps.minimize(f, ps.conv(r * A), **how) for r in radii]
    np.testing.assert_allclose(path.value, [r.value for r in alone], rtol=1e-5)
    assert path[-1].refine == ps.refine.Factors() and path[-1].oracle_calls < 10
    sizes = ps.path(f, A, atoms=[1, 2, 3], refine=ps.refine.Factors())
    fixed = ps.path(f, A, atoms=[1, 2, 3])
    assert sizes.value[2] < 1e-4 * f.value(0 * f.y) < fixed.value[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "exactly one"),
        ({"radii": [1.0], "atoms": [1]}, "exactly one"),
        ({"radii": [2.0, 1.0]}, "radii must be positive and increasing"),
        ({"radii": [0.0, 1.0]}, "radii must be positive and increasing"),
        ({"atoms": [0, 1]}, "atoms must be positive and increasing"),
        ({"atoms": []}, "atoms must be positive and increasing"),
    ],
)
def test_bad_paths_are_one_helpful_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        ps.path(ps.LeastSquares([1.0]), ps.SignedBasis(1), **arguments)


@pytest.mark.parametrize(
    ("update", "domain", "key"),
    [
        (ps.Away(), ps.conv(ps.Simplex(2)), "lacostejulien2015global"),
        (ps.BlendedPairwise(), ps.conv(ps.Simplex(2)), "tsuji2022pairwise"),
        (ps.BlendedPursuit(), ps.lin(ps.Simplex(2)), "combettes2019blended"),
        (ps.AcceleratedPursuit(), ps.lin(ps.Simplex(2)), "locatello2018matching"),
        (None, ps.cone(ps.Simplex(2)), "locatello2017greedy"),
        (ps.FullyCorrective(), ps.lin(ps.Simplex(2)), "pati1993orthogonal"),
        (ps.Plain(ps.ShortStep(L=ps.Backtracking())), ps.conv(ps.Simplex(2)), "pedregosa2020linearly"),
    ],
)
def test_citations_name_the_paper_and_what_was_used(update, domain, key):
    text = ps.citation(ps.LeastSquares([1.0, 2.0]), domain, update)
    assert text.startswith("@inproceedings{locatello2017unified,")
    assert f"{{{key}," in text
    assert text.count("{") == text.count("}")


@pytest.mark.parametrize("loss", [ps.LeastSquares, ps.Logistic])
def test_an_intercept_is_fitted_first_and_not_counted(loss, rng):
    X, y = problem(rng)
    f = loss(y + 5.0 if loss is ps.LeastSquares else y + 4.0 * rng.standard_normal(60) > 1.0)
    ones = ps.lin(ps.Dictionary(np.ones((60, 1))), counted=False)
    path = ps.path(f, ps.lin(ps.Dictionary(X + 3.0)) + ones, atoms=range(1, 6))
    np.testing.assert_array_equal(path.atoms, range(1, 6))
    mean = X.mean(axis=0)
    centred = ps.path(f, ps.lin(ps.Dictionary(X - mean)) + ones, atoms=range(1, 6))
    for shifted, plain in zip(path.results, centred.results, strict=True):
        np.testing.assert_allclose(shifted.coef[0], plain.coef[0], atol=1e-6)
        assert shifted.coef[1][0] == pytest.approx(plain.coef[1][0] - (mean + 3.0) @ plain.coef[0], abs=1e-5)
    run = ps.minimize(f, ones + ps.lin(ps.Dictionary(X + 3.0)), stop=ps.Stop(atoms=3))
    assert run.status is ps.Status.ATOMS and run.trace.atoms[-1] == 3 and len(run.atoms) == 4
    np.testing.assert_allclose(run.coef[1], path[2].coef[0], atol=1e-8)


def test_hulls_of_a_domain_grow_and_its_spans_stay(rng):
    X, y = problem(rng)
    f, A, ones = ps.LeastSquares(y + 5.0), ps.Dictionary(X, signed=True), ps.lin(ps.Dictionary(np.ones((60, 1))))
    path = ps.path(f, ps.conv(A) + ones, radii=[1.0, 2.0, 4.0], stop=ps.Stop(rgap=1e-8))
    alone = [ps.minimize(f, ps.conv(r * A) + ones, stop=ps.Stop(rgap=1e-8)) for r in (1.0, 2.0, 4.0)]
    np.testing.assert_allclose(path.value, [r.value for r in alone], rtol=1e-7)
    assert (path.gap <= 1e-8 * path.value).all()


def test_sizes_of_a_cone_have_non_negative_weights(rng):
    X, y = problem(rng)
    path = ps.path(ps.LeastSquares(y), ps.cone(ps.Dictionary(X)), atoms=[1, 2, 3])
    assert all((r.coef >= 0).all() for r in path.results)


@pytest.mark.parametrize(
    ("domain", "levels", "words"),
    [
        (ps.lin(ps.SignedBasis(1)), {"radii": [1.0]}, "nothing grows"),
        (ps.conv(ps.SignedBasis(1)), {"atoms": [1]}, "a size says little"),
        (ps.cone(ps.SignedBasis(1)), {"penalties": [1.0]}, "nothing has a price"),
        (ps.SignedBasis(1), {"penalties": [1.0, 2.0]}, "penalties must be positive and falling numbers"),
        (ps.SignedBasis(1), {"penalties": [1.0], "radii": [1.0]}, "give exactly one of them"),
    ],
)
def test_a_domain_must_suit_the_kind_of_path(domain, levels, words):
    with pytest.raises(ValueError, match=words):
        ps.path(ps.LeastSquares([1.0]), domain, **levels)


@pytest.mark.parametrize(
    "A", [ps.Simplex(3), ps.Box(0.1 * np.ones(3), np.ones(3)), ps.Dictionary(np.eye(3) + 0.1)], ids=repr
)
def test_a_path_over_a_set_without_zero_has_the_minima_of_its_hulls(A):
    f, radii = ps.LeastSquares([3.0, 1.0, 0.2]), [1.0, 2.0, 4.0, 8.0]
    for domain in (ps.conv(A), ps.conv(A) + ps.lin(ps.Dictionary(np.ones((3, 1))))):
        path = ps.path(f, domain, radii=radii, stop=ps.Stop(gap=1e-9))
        rest = domain.parts[1:]
        alone = [ps.minimize(f, sum(rest, ps.conv(r * A)), stop=ps.Stop(gap=1e-9)).value for r in radii]
        np.testing.assert_allclose(path.value, alone, atol=2e-9)


def test_a_path_begins_anew_where_the_last_result_leaves_the_domain_of_f_as_its_hull_grows():
    """f is finite for x_1 < 1: the minimum over the first hull is near 1, and 1.5 times that is beyond it."""
    f = ps.Smooth(
        lambda x: -np.log(1 - x[0]) - 9 * x[0] + x[1] ** 2 if x[0] < 1 else np.inf,
        lambda x: np.array([1 / (1 - x[0]) - 9, 2 * x[1]]),
    )
    A = ps.Dictionary(np.array([[2.0, 0.0, 0.0, -2.0], [0.0, 2.0, -2.0, 1.0]]))
    path = ps.path(f, A, radii=[1.0, 1.5], stop=ps.Stop(gap=1e-9))
    assert path[0].x[0] * 1.5 > 1
    np.testing.assert_allclose(path.value, [ps.minimize(f, ps.conv(r * A)).value for r in (1.0, 1.5)], atol=1e-5)
