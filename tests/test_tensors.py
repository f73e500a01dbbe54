"""Rank-one tensors: the oracle against brute force, its bound, factored against dense, completion."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.arrays import Space
from pursuit.atoms.factored import TensorFrame
from pursuit.metrics import Diagonal, Identity, Operator

SHAPE = (3, 4, 5)
EVERYWHERE = np.array(list(itertools.product(*map(range, SHAPE))))


def low_rank(rng, shape, rank):
    return np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((n, rank)) for n in shape))


def some_entries(rng, shape, fraction):
    """Random entries, and for every slice one more."""
    seen = rng.random(shape) < fraction
    for k, n in enumerate(shape):
        for i in range(n):
            where = [int(rng.integers(m)) for m in shape]
            where[k] = i
            seen[tuple(where)] = True
    return np.argwhere(seen)


def spectral_norm(G, angles=5_000):
    """max <G, u o v o w> for a 2 x m x n tensor: u is an angle, and the rest a matrix norm."""
    theta = np.linspace(0, np.pi, angles)
    slices = np.cos(theta)[:, None, None] * G[0] + np.sin(theta)[:, None, None] * G[1]
    return float(np.linalg.norm(slices, ord=2, axis=(1, 2)).max())


@pytest.mark.parametrize(
    "A",
    [
        ps.RankOneTensor(SHAPE),
        ps.RankOneTensor((2, 3, 2, 2)),
        ps.RankOneTensor(SHAPE).at(EVERYWHERE[::2]),
        -2.5 * ps.RankOneTensor(SHAPE),
    ],
    ids=repr,
)
def test_tensors_obey_the_laws_of_atom_sets(A):
    ps.check_atoms(A)
    rng = np.random.default_rng(0)
    g = rng.standard_normal(A.shape)
    best, samples = np.vdot(A.lmo(g).vector, g), [A.sample(rng) for _ in range(200)]
    assert min(np.vdot(a.vector, g) for a in samples) >= best
    assert all(A.contains(a.vector) in (True, None) for a in samples)
    assert A.contains(g) in (False, None)


@given(st.integers(0, 10**6))
def test_the_power_method_finds_the_spectral_norm_and_the_unfoldings_bound_it(seed):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((2, 3, 4))
    atoms, lower = ps.RankOneTensor(G.shape, starts=16).begin()(G, 1, 0.0)
    exact = spectral_norm(G)
    unfoldings = [np.linalg.norm(np.moveaxis(G, k, 0).reshape(n, -1), 2) for k, n in enumerate(G.shape)]
    assert -np.vdot(G, atoms[0].vector) >= (1 - 1e-6) * exact
    assert lower <= -exact
    assert lower == pytest.approx(-min(unfoldings))


@given(st.integers(0, 10**6))
def test_at_observed_entries_the_oracle_and_its_bound_are_those_of_the_tensor_filled_with_zeros(seed):
    rng = np.random.default_rng(seed)
    indices = some_entries(rng, (2, 3, 4), 0.4)
    g, G = rng.standard_normal(len(indices)), np.zeros((2, 3, 4))
    G[tuple(indices.T)] = g
    (atom, *_), lower = ps.RankOneTensor(G.shape, starts=16).at(indices).begin()(g, 1, 0.0)
    (_, *_), full = ps.RankOneTensor(G.shape).begin()(G, 1, 0.0)
    assert -np.vdot(g, atom.vector) >= (1 - 1e-6) * spectral_norm(G)
    assert lower == pytest.approx(full)


def test_large_unfoldings_have_a_cheaper_bound_that_still_holds(monkeypatch):
    G = np.random.default_rng(0).standard_normal((2, 5, 6))
    monkeypatch.setattr("pursuit.atoms.tensors.MAX_GRAM_SIDE", 1)
    for A, g in ((ps.RankOneTensor(G.shape), G), (ps.RankOneTensor(G.shape).at(np.argwhere(G != 0)), G.ravel())):
        atoms, lower = A.begin()(g, 1, 0.0)
        assert lower <= -spectral_norm(G)
        assert -np.vdot(g, atoms[0].vector) == pytest.approx(spectral_norm(G), rel=1e-6)


def test_the_certificate_of_a_hull_holds_and_closes_where_the_gradient_has_rank_one():
    rng = np.random.default_rng(1)
    a = ps.RankOneTensor(SHAPE).sample(rng).vector
    r = ps.minimize(ps.LeastSquares(5.0 * a), ps.conv(2.0 * ps.RankOneTensor(SHAPE)))
    assert r.status is ps.Status.GAP
    assert r.lower <= 0.5 * 3.0**2 <= r.value * (1 + 1e-12)
    noisy = ps.LeastSquares(low_rank(rng, SHAPE, 3))
    hull = ps.conv(3.0 * ps.RankOneTensor(SHAPE))
    short, long = (ps.minimize(noisy, hull, stop=ps.Stop(iterations=n)) for n in (2, 200))
    assert short.lower <= long.value
    assert short.answers[0].lower < short.answers[0].dot


@given(st.integers(0, 10**6))
def test_a_frame_of_factors_is_the_dense_frame(seed):
    rng = np.random.default_rng(seed)
    space, A = Space.default(SHAPE), ps.RankOneTensor(SHAPE)
    atoms = [A.sample(rng).scaled(float(rng.uniform(-2, 2))) for _ in range(4)]
    frame, rows = TensorFrame(space), np.array([a.vector.ravel() for a in atoms])
    for a in atoms:
        frame.append(a)
    g, w, h = rng.standard_normal(SHAPE), rng.standard_normal(4), rng.uniform(1, 2, SHAPE)
    assert np.allclose(frame.analyze(g), rows @ g.ravel())
    assert np.allclose(frame.synthesize(w).ravel(), w @ rows)
    for metric, H in ((Identity(2.0), 2.0), (Diagonal(h), h.ravel()), (Operator(lambda v: h * v, SHAPE), h.ravel())):
        assert np.allclose(frame.gram(metric, np.array([0, 2, 3])), ((rows * H) @ rows.T)[np.ix_([0, 2, 3], [0, 2, 3])])
        assert np.allclose(frame.inner(metric, atoms[1]), (rows * H) @ rows[1])
    frame.keep(np.array([1, 3]))
    assert np.allclose(frame.analyze(g), rows[[1, 3]] @ g.ravel())
    assert [a.dot(space, g) for a in atoms] == pytest.approx(rows @ g.ravel())


def test_completion_of_a_tensor_of_rank_4_with_90_percent_missing():
    """Noise of 1 %: held-out entries, themselves noisy, cannot be predicted better than to 0.0100, and least squares
    with 4 (120 - 2) parameters from 6400 entries is expected to reach 0.0100 (1 + 472 / 6400)^(1/2) = 0.0104."""
    rng = np.random.default_rng(0)
    truth = low_rank(rng, (40, 40, 40), 4)
    noisy = truth + 0.01 * truth.std() * rng.standard_normal(truth.shape)
    seen = rng.random(truth.shape) > 0.9
    A = ps.RankOneTensor(truth.shape).at(np.argwhere(seen))
    stop = ps.Stop(atoms=4, iterations=10)
    r = ps.minimize(ps.LeastSquares(noisy[seen]), ps.lin(A), stop=stop, refine=ps.refine.Alternating())
    model = r.coef.full()
    assert r.oracle_calls <= 5 and r.refused == 0
    assert np.linalg.norm((model - truth)[~seen]) <= 0.003 * np.linalg.norm(truth[~seen])
    assert np.linalg.norm((model - noisy)[~seen]) <= 0.01035 * np.linalg.norm(noisy[~seen])
    assert np.allclose(r.coef.at(np.argwhere(~seen)), model[~seen])


def test_a_huge_tensor_is_never_made_dense():
    rng = np.random.default_rng(0)
    n = 3000
    indices = np.stack([rng.permutation(np.tile(np.arange(n), 3)) for _ in range(3)], axis=1)
    tracemalloc.start()
    f, A = ps.LeastSquares(rng.standard_normal(len(indices))), ps.RankOneTensor((n, n, n)).at(indices)
    r = ps.minimize(f, ps.lin(A), stop=ps.Stop(atoms=2), refine=ps.refine.Alternating(sweeps=2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(r.atoms) == 2
    assert peak < 50e6  # n^3 numbers would take 216 GB, n^2 72 MB


@pytest.mark.parametrize(
    ("shape", "indices", "says"),
    [
        ((3, 4), None, "three or more dimensions"),
        (SHAPE, EVERYWHERE[:, :2], r"give \(N, 3\) integers"),
        (SHAPE, EVERYWHERE + 1, "between 0 and 2"),
        (SHAPE, EVERYWHERE[EVERYWHERE[:, 1] != 2], "mode 1: slice 2"),
        (SHAPE, np.concatenate([EVERYWHERE, EVERYWHERE[:1]]), "observed twice"),
    ],
)
def test_bad_shapes_and_indices_are_named(shape, indices, says):
    with pytest.raises(ValueError, match=says):
        ps.RankOneTensor(shape).at(indices)


# ---------------------------------------------------------------------- moving the factors


def plain_sweep(T, factors):
    """Alternating least squares, one mode after the other, on a dense tensor."""
    for k in range(3):
        P = np.einsum("ir,jr->ijr", *(factors[j] for j in range(3) if j != k)).reshape(-1, factors[0].shape[1])
        factors[k] = np.linalg.lstsq(P, np.moveaxis(T, k, 0).reshape(T.shape[k], -1).T, rcond=None)[0].T
    return factors


@pytest.mark.parametrize("observed", [False, True])
def test_one_sweep_is_alternating_least_squares(observed):
    rng = np.random.default_rng(3)
    T, A = rng.standard_normal(SHAPE), ps.RankOneTensor(SHAPE)
    A, y = (A.at(EVERYWHERE), T.ravel()) if observed else (A, T)
    start = ps.minimize(ps.LeastSquares(y), ps.lin(A), stop=ps.Stop(atoms=2))
    weights, factors = start.coef
    expected = np.einsum("ir,jr,kr->ijk", *plain_sweep(T, [factors[0] * weights, *factors[1:]]))
    domain = ps.lin(A)
    active = domain.active_set(Space.default(y.shape))
    active.replace(start.weights, start.atoms)
    proposal = ps.refine.Alternating(sweeps=1)(ps.LeastSquares(y), domain, active)
    active.replace(*proposal)
    value = ps.LeastSquares(T).value(expected)
    assert ps.LeastSquares(y).value(active.x) <= value + 1e-12  # equal, or the step beyond helped
    assert ps.LeastSquares(y).value(active.x) >= 0.9 * value


@pytest.mark.parametrize("loss", [ps.Poisson, ps.LeastSquares, ps.Logistic, lambda y: ps.Huber(y, 0.5)])
@pytest.mark.parametrize("make", [ps.lin, ps.cone])
def test_alternating_never_raises_f_and_beats_weights_alone(loss, make):
    rng = np.random.default_rng(4)
    y = rng.poisson(np.exp(0.5 * low_rank(rng, (6, 7, 8), 2).clip(-3, 3))).astype(float)
    f = loss(np.where(y > 0, 1.0, -1.0) if loss is ps.Logistic else y)
    indices = some_entries(rng, y.shape, 0.5)
    f = type(f)(f.y[tuple(indices.T)], *([0.5] if isinstance(f, ps.Huber) else []))
    domain, stop = make(0.7 * ps.RankOneTensor(y.shape).at(indices)), ps.Stop(atoms=3, iterations=6)
    update = ps.FullyCorrective()
    alone = ps.minimize(f, domain, update, stop=stop)
    moved = ps.minimize(f, domain, update, stop=stop, refine=ps.refine.Alternating(sweeps=10))
    assert moved.refused == 0
    assert (np.diff(moved.trace.value) <= 1e-9 * abs(moved.trace.value[:-1])).all()
    assert moved.value < alone.value


def test_alternating_says_what_it_cannot_serve():
    f = ps.LeastSquares(np.random.default_rng(0).standard_normal(SHAPE))
    with pytest.raises(TypeError, match="serves lin"):
        ps.minimize(f, ps.conv(ps.RankOneTensor(SHAPE)), refine=ps.refine.Alternating())
    with pytest.raises(ValueError, match="sweeps is 0"):
        ps.refine.Alternating(sweeps=0)
