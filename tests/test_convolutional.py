"""`Convolutional`: all translates of templates, as an atom set."""

import pickle

import numpy as np
import pytest

import pursuit as ps
from pursuit import native
from pursuit.arrays import Space


def some_sets():
    rng = np.random.default_rng(0)
    return [
        ps.Convolutional(rng.standard_normal((3, 5)), shape=(40,)),
        ps.Convolutional(rng.standard_normal((1, 1)), shape=(1,), signed=True),
        ps.Convolutional(rng.standard_normal((3, 2, 5)), shape=(2, 40), signed=True, stride=3),
        ps.Convolutional(rng.standard_normal((3, 4, 5)), shape=(11, 40), stride=2),
        ps.Convolutional(rng.standard_normal((3, 2, 4, 5)), shape=(2, 11, 20), rank=2),
        ps.Convolutional([np.ones((2, 7)), np.ones((1, 7))], channels=[[3, 0], [2]], shape=(4, 30)),
        ps.Convolutional([np.hanning(9)[1:-1]], shape=(30,)).upsampled(3),
    ]


@pytest.mark.parametrize("A", some_sets(), ids=repr)
def test_it_keeps_the_laws_of_atoms(A):
    ps.check_atoms(A)


@pytest.mark.parametrize("A", some_sets(), ids=repr)
def test_the_list_of_atoms_is_positions_by_templates(A):
    g = np.random.default_rng(1).standard_normal(A.shape)
    space = Space.of(g)
    count = A.templates.count
    for i in {0, A.n // 2, A.n - 1, A.size - 1}:
        a = A.atom(i)
        assert A.scores(g)[i] == pytest.approx(a.dot(space, g), abs=1e-12)
        assert a.source[0] == i % A.n % count
        window = A.templates.dense(a.source[0])
        place = a.source[1:]
        row, column = (0, *place) if A.axes == 1 else place
        expected = np.zeros(A.boxed(g).shape)
        expected[:, row : row + window.shape[1], column : column + window.shape[2]] = a.coef * window
        np.testing.assert_allclose(a.vector, expected.reshape(A.shape))


@pytest.mark.parametrize("domain", [ps.conv, ps.cone, ps.lin, lambda A: ps.penalty(0.5 * A)])
def test_every_domain_is_solved_with_a_certificate(domain):
    rng = np.random.default_rng(2)
    A = ps.Convolutional(rng.standard_normal((3, 2, 5)), shape=(2, 40))
    f = ps.LeastSquares(rng.standard_normal(A.shape))
    r = ps.minimize(f, domain(A), stop=ps.Stop(gap=1e-8))
    assert r.gap <= 1e-8
    assert r.check().gap <= 1e-6
    assert isinstance(r.coef, ps.Events)
    np.testing.assert_allclose(A.synthesize(r.coef), r.x, atol=1e-12)


def test_the_oracle_without_kernels_gives_the_same_atom(monkeypatch):
    for A in some_sets():
        g = np.random.default_rng(3).standard_normal(A.shape)
        fast, scores = A.lmo(g).source, A.scores(g)
        with monkeypatch.context() as patch:
            patch.setattr(native, "is_built", lambda: False)
            assert A.lmo(g).source == fast
            np.testing.assert_allclose(A.scores(g), scores, atol=1e-12)


def test_the_oracle_goes_piece_by_piece_with_the_same_ties(monkeypatch):
    A = ps.Convolutional([[1.0, 1.0], [1.0, 1.0]], shape=(30,))
    g = np.tile([0.0, -1.0, -1.0], 10)
    monkeypatch.setattr("pursuit.atoms.convolutional.PIECE_BYTES", 64)
    assert [a.source for a in A.best(g, 3)] == [(0, 1), (1, 1), (0, 4)]
    assert A.lmo(0 * g).source == (0, 0)


def test_frames_are_sparse_in_time():
    A = ps.Convolutional(np.ones((1, 3)), shape=(1_000_000,))
    assert len(A.atom(500_000).positions) == 3


def test_a_rank_below_one_is_the_energy_that_may_be_lost():
    rng = np.random.default_rng(4)
    templates = rng.standard_normal((2, 6, 9)) + 10 * np.multiply.outer(np.ones((2, 6)), np.hanning(9))
    A, B = ps.Convolutional(templates), ps.Convolutional(templates, rank=0.3)
    lost = [np.sum((A.templates.dense(k) - B.templates.dense(k)) ** 2) / A.templates.squares[k] for k in range(2)]
    assert 0 < max(lost) <= 0.3
    assert list(np.diff(B.templates.factors.starts)) == [1, 1]


def test_upsampled_templates_lie_between_samples():
    t = np.arange(-20.0, 21.0)
    A = ps.Convolutional([np.exp(-(t**2) / 32)]).upsampled(4)
    later = np.exp(-((np.arange(-20.0, 22.0) - 0.75) ** 2) / 32)
    np.testing.assert_allclose(A.templates.dense(3)[0, 0], later, atol=1e-4)


def test_it_survives_pickling_and_a_change_of_shape():
    A = ps.Convolutional([[1.0, 2.0]], shape=(9,))
    g = np.random.default_rng(5).standard_normal(9)
    B = pickle.loads(pickle.dumps(A))
    assert A.lmo(g).source == B.lmo(g).source
    assert A.on((50,)).size == 49
    assert A.size == 8


WRONG = [
    ({"templates": np.zeros((2, 3))}, "template 0 is zero"),
    ({"templates": [[1e-200, 0.0]]}, "the largest sample of template 0 is 1e-200"),
    ({"templates": [[1.0, np.nan]]}, "templates contains NaN"),
    ({"templates": [1.0, 2.0]}, "templates is"),
    ({"templates": np.ones((1, 5)), "shape": (4,)}, "shape is"),
    ({"templates": np.ones((1, 2, 5)), "shape": (9,)}, "a signal has shape"),
    ({"templates": np.ones((1, 2, 5)), "shape": 9}, "shape is"),
    ({"templates": np.ones((1, 5)), "stride": 0}, "stride is"),
    ({"templates": np.ones((1, 2, 5)), "rank": 0}, "rank is"),
    ({"templates": np.ones((1, 5)), "memory": -1}, "memory is"),
    ({"templates": [np.ones((2, 5))], "channels": [[0, 0]]}, "different integers"),
    ({"templates": [np.ones((2, 5))], "channels": [[0, 1], [1]]}, "channels has 2"),
    ({"templates": [np.ones((1, 5)), np.ones((1, 4))], "channels": [[0], [1]]}, "template 1 has shape"),
    ({"templates": [np.ones((1, 5))], "channels": [[4]], "shape": (3, 9)}, "channel 4"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=[m for _, m in WRONG])
def test_wrong_input_is_refused_in_one_sentence(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ps.Convolutional(**given)


def test_without_a_shape_the_oracle_says_what_is_missing():
    with pytest.raises(ValueError, match="no shape"):
        ps.Convolutional([[1.0, 2.0]]).lmo(np.ones(5))


def test_atoms_of_one_call_are_those_of_different_events():
    """Waves whose neighbours are almost alike: several atoms a call explain what one atom a call explains."""
    rng, t, n = np.random.default_rng(0), np.arange(60) - 30.0, 3000
    T = np.stack([np.exp(-(t**2) / (2 * s**2)) * np.cos(w * t) for s, w in ((4, 0.1), (8, 0.3), (12, 0.05))])
    y = 0.02 * rng.standard_normal(n)
    for p in 60 * rng.permutation(n // 60)[:25]:
        y[p : p + 60] += rng.uniform(1, 3) * T[rng.integers(3)]
    f, A = ps.LeastSquares(y), ps.Convolutional(T, shape=(n,), signed=True)
    positions = [a.source[1] for a in A.best(-y, 20)]
    assert np.diff(np.sort(positions)).min() > 10
    dense = ps.Dictionary(np.stack([A.atom(i).dense(ps.Space.default((n,))) for i in range(A.n)], axis=1))
    stop = ps.Stop(atoms=30, rgap=None)
    alone = 1 - ps.minimize(f, ps.lin(A), ps.FullyCorrective(), stop=stop).value / f.value(np.zeros(n))
    for several in (8, 64):
        for B in (A, dense):
            r = ps.minimize(f, ps.lin(B), ps.FullyCorrective(several=several), stop=stop)
            assert len(r.atoms) < 50
            assert 1 - r.value / f.value(np.zeros(n)) > 0.97 * alone
