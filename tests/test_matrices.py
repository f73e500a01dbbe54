"""Sets of matrices: oracles against LAPACK, factored against dense, bounds that hold, bad input."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.arrays import Space
from pursuit.atoms import matrices
from pursuit.atoms.factored import FactoredFrame
from pursuit.atoms.frames import Atom, DenseFrame
from pursuit.linalg.lanczos import Memory, SymmetricMap, extreme_eigenvalues
from pursuit.metrics import Diagonal, Identity, Operator

SETS = [
    ps.RankOne((4, 6)), ps.RankOne((6, 4)), ps.RankOne((1, 3)), ps.SymmetricRankOne(5), ps.Spectrahedron(5),
    ps.Spectrahedron(1), ps.Orthogonal((4, 6)), ps.Orthogonal((5, 5)), 2.5 * ps.RankOne((3, 4)),
    -2.0 * ps.Spectrahedron(4), ps.RankOne((3, 4)).at([0, 1, 2, 2, 0], [0, 1, 2, 3, 3]),
    ps.SymmetricRankOne(3).at([0, 1, 1, 2], [0, 0, 1, 2]), ps.Spectrahedron(3).at([0, 1, 1, 2], [0, 0, 1, 2]),
]  # fmt: skip


def value(A, g):
    """min <g, a> by LAPACK, for a matrix g."""
    if isinstance(A, ps.RankOne):
        return -np.linalg.norm(g, 2)
    if isinstance(A, ps.Orthogonal):
        return -np.linalg.norm(g, "nuc")
    spectrum = np.linalg.eigvalsh((g + g.T) / 2)
    return -np.abs(spectrum).max() if isinstance(A, ps.SymmetricRankOne) else spectrum[0]


@pytest.mark.parametrize("A", SETS, ids=repr)
def test_every_set_of_matrices_obeys_the_laws(A):
    ps.check_atoms(A)


@pytest.mark.parametrize("small", [640, 0])
@pytest.mark.parametrize("A", [ps.RankOne((9, 7)), ps.RankOne((7, 9)), ps.SymmetricRankOne(8), ps.Spectrahedron(8)])
def test_oracle_agrees_with_lapack_by_either_way(A, small, rng, monkeypatch):
    monkeypatch.setattr(matrices, "MAX_LAPACK_SIDE", small)
    for _ in range(10):
        g = rng.standard_normal(A.shape)
        atoms, lower = A.begin()(g, 3, -math.inf)
        assert atoms[0].dot(Space.of(g), g) == pytest.approx(value(A, g), abs=1e-10)
        assert lower <= value(A, g) + 1e-12
        assert lower == pytest.approx(value(A, g), rel=1e-9)
        assert len(atoms) == 3


def test_the_next_atoms_are_the_next_singular_pairs(rng):
    g = rng.standard_normal((6, 5))
    found = [a.dot(Space.of(g), g) for a in ps.RankOne((6, 5)).best(g, 4)]
    np.testing.assert_allclose(found, -np.linalg.svd(g, compute_uv=False)[:4], atol=1e-9)


@pytest.mark.parametrize("A", [ps.RankOne((30, 20)), ps.SymmetricRankOne(25), ps.Spectrahedron(25)])
def test_a_warm_bound_holds_at_every_level(A, rng, monkeypatch):
    monkeypatch.setattr(matrices, "MAX_LAPACK_SIDE", 0)
    search = A.begin()
    g = rng.standard_normal(A.shape)
    for step in range(30):
        g = g + 0.1 * rng.standard_normal(A.shape)
        truth = value(A, g)
        level = truth + 10.0 ** -(step % 8) * abs(truth)
        atoms, lower = search(g, 1 + step % 3, level)
        found = atoms[0].dot(Space.of(g), g)
        assert lower <= truth + 1e-12 * abs(truth) <= found + 2e-12 * abs(truth)
        assert found - lower <= max(0.51 * (level - lower), 1e-10 * abs(truth))


def test_zero_gradient_and_tiny_or_huge_ones(rng):
    A = ps.RankOne((4, 3))
    atoms, lower = A.begin()(np.zeros((4, 3)), 2, 0.0)
    assert lower == 0
    assert A.contains(atoms[0].vector)
    g = rng.standard_normal((4, 3))
    reference = A.lmo(g).vector
    for scale in (2.0**-900, 2.0**900):
        assert np.array_equal(A.lmo(scale * g).vector, reference)


# ------------------------------------------------------------------ Lanczos
def spectrum_map(values, rng):
    Q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return lambda v: Q @ (values * (Q.T @ v))


@pytest.mark.parametrize("failure", [0.5, 0.1])
@pytest.mark.parametrize("warm", [False, True])
def test_the_bound_fails_no_more_often_than_it_says(failure, warm):
    trials, failed = 1000, 0
    values = np.repeat([0.0, 0.3, 0.6, 1.0, 1.5], [10, 10, 10, 9, 1])  # four steps and one vector more: nothing is lost
    for trial in range(trials):
        memory = Memory(np.random.default_rng(trial))
        memory.last = np.eye(40)[0] if warm else None
        few = extreme_eigenvalues(SymmetricMap(lambda v: values * v, 40), 3, memory, failure, lambda *a: True)
        failed += few.upper < 1.5
        assert few.values[0] <= 1.5 + 1e-12
    assert 0.6 * failure <= failed / trials <= 1.05 * failure  # it is sharp, but for the grid


def test_a_gap_makes_the_bound_as_sharp_as_rounding(rng):
    values = np.concatenate([[-3.0], np.linspace(-1, 1, 200), [2.0]])
    found = extreme_eigenvalues(
        SymmetricMap(spectrum_map(values, rng), 202), 1, Memory(), 1e-6, lambda *a: False, both=True
    )
    assert found.upper == pytest.approx(2.0, rel=1e-9)
    assert found.lower == pytest.approx(-3.0, rel=1e-9)
    assert found.upper >= 2.0 - 1e-12
    assert found.lower <= -3.0 + 1e-12
    assert found.values[0] == pytest.approx(-3.0, rel=1e-12)


def test_lanczos_stops_where_the_space_is_exhausted(rng):
    found = extreme_eigenvalues(SymmetricMap(lambda v: 2.0 * v, 6), 3, Memory(), 1e-6, lambda *a: False)
    assert found.values[0] == pytest.approx(2.0, rel=1e-14)
    assert 2.0 <= found.upper <= 2.0 * (1 + 1e-7)  # a direction that the start hardly saw might differ by so little
    zero = extreme_eigenvalues(SymmetricMap(lambda v: 0.0 * v, 6), 1, Memory(), 1e-6, lambda *a: False)
    assert (zero.values[0], zero.upper) == (0.0, 0.0)


# ------------------------------------------------------------------ factored against dense
def observed(rng, m, n, density=0.5):
    mask = rng.random((m, n)) < density
    mask[np.arange(m), np.arange(m) % n] = mask[np.arange(n) % m, np.arange(n)] = True
    return np.nonzero(mask)


@given(seed=st.integers(0, 10_000), order=st.booleans())
def test_entries_of_an_atom_are_those_of_the_matrix(seed, order):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 7, size=2).tolist()
    rows, cols = observed(rng, m, n)
    if order:
        shuffled = rng.permutation(len(rows))
        rows, cols = rows[shuffled], cols[shuffled]
    A, g = ps.RankOne((m, n)), rng.standard_normal(len(rows))
    seen, G = A.at(rows, cols), np.zeros((m, n))
    G[rows, cols] = g
    a, b = seen.lmo(g), A.lmo(G)
    space = Space.default((len(rows),))
    assert a.dot(space, g) == pytest.approx(b.dot(Space.default((m, n)), G), abs=1e-12)
    np.testing.assert_allclose(a.vector, np.outer(a.u, a.v)[rows, cols] * a.coef, atol=1e-14)
    assert a.norm(space) == pytest.approx(np.linalg.norm(a.vector), abs=1e-14)
    np.testing.assert_allclose(a.add_to(space, g, 2.0), g + 2.0 * a.vector, atol=1e-14)


@pytest.mark.parametrize("seen", [False, True])
def test_a_factored_frame_does_what_a_dense_one_does(seen, rng):
    A = ps.RankOne((5, 4))
    A = A.at(*observed(rng, 5, 4)) if seen else A
    space = Space.default(A.shape)
    factored, dense = FactoredFrame(space), DenseFrame(space)
    for i in range(6):
        a = A.sample(rng).scaled(i - 2.5)
        factored.append(a)
        dense.append(Atom(a.vector))
    for frame in (factored, dense):
        frame.keep(np.array([0, 2, 3, 5]))
    h, root = rng.uniform(1, 2, A.shape), rng.standard_normal((space.size, space.size))
    H = Operator(lambda v: (root @ root.T @ v.ravel()).reshape(A.shape), A.shape)
    w, g, extra = rng.standard_normal(4), rng.standard_normal(A.shape), A.sample(rng)
    np.testing.assert_allclose(factored.synthesize(w), dense.synthesize(w), atol=1e-12)
    np.testing.assert_allclose(factored.analyze(g), dense.analyze(g), atol=1e-12)
    for metric in (Identity(), Identity(3.0), Diagonal(h), H):
        which = np.array([0, 1, 3])
        np.testing.assert_allclose(factored.inner(metric, extra), dense.inner(metric, extra), atol=1e-10)
        np.testing.assert_allclose(factored.gram(metric, which), dense.gram(metric, which), atol=1e-10)


def test_many_entries_take_the_compiled_way_to_the_same_numbers(rng, monkeypatch):
    rows, cols = observed(rng, 40, 30)
    view = ps.RankOne((40, 30)).at(rows, cols).view
    A, B = rng.standard_normal((40, 7)), rng.standard_normal((30, 7))
    space = Space.default((len(rows),))
    plain = view.image(space, A, B)
    monkeypatch.setattr("pursuit.atoms.views.MIN_COMPILED_PRODUCTS", 0)
    np.testing.assert_allclose(view.image(space, A, B), plain, atol=1e-13)
    np.testing.assert_allclose(plain, (A @ B.T)[rows, cols], atol=1e-13)


@pytest.mark.parametrize("shape", [(40, 30), (30, 40)])
def test_the_compiled_gram_matrix_finds_the_same_singular_pairs(shape, rng, monkeypatch):
    rows, cols = observed(rng, *shape)
    mixed = rng.permutation(len(rows))  # entries come in any order
    A = ps.RankOne(shape).at(rows[mixed], cols[mixed])
    monkeypatch.setattr(matrices, "MIN_COMPILED_ENTRIES", 0)
    for dtype in (np.float64, np.float32):
        g = rng.standard_normal(len(rows)).astype(dtype)
        M = sp.csr_array((g, (rows[mixed], cols[mixed])), shape=shape).toarray()
        found = [a.dot(Space.of(g), g) for a in A.best(g, 4)]
        np.testing.assert_allclose(found, -np.linalg.svd(M, compute_uv=False)[:4], rtol=1e-5)


def test_two_views_in_one_sum_do_not_mix(rng):
    rows, cols = np.arange(6), rng.permutation(6)
    A, B = ps.RankOne((6, 6)).at(rows, cols), ps.RankOne((6, 3)).at(rows, np.array([0, 0, 1, 1, 2, 2]))
    y = rng.standard_normal(6)
    domain = ps.conv(0.5 * A) + ps.conv(0.5 * B)
    r = ps.minimize(ps.LeastSquares(y), domain, stop=ps.Stop(gap=1e-9, iterations=200))
    assert r.gap <= 1e-9
    first, second = r.coef
    np.testing.assert_allclose(first.at(rows, cols) + second.at(rows, [0, 0, 1, 1, 2, 2]), r.x, atol=1e-12)


# ------------------------------------------------------------------ non-negative rank one
def least(G):
    """min u'Gv over non-negative unit u, v by brute force over directions, for 2 x 2 matrices."""
    angle = np.linspace(0, np.pi / 2, 801)
    C = np.stack([np.cos(angle), np.sin(angle)])
    return (C.T @ G @ C).min()


@given(seed=st.integers(0, 10_000))
def test_nonnegative_oracle_finds_the_best_small_atom_and_its_bound_holds(seed):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((2, 2)) - rng.uniform(-1, 1)
    atoms, lower = ps.NonnegativeRankOne((2, 2)).begin()(G, 2, 0.0)
    found = atoms[0].dot(Space.of(G), G)
    assert (atoms[0].u >= 0).all()
    assert (atoms[0].v >= 0).all()
    assert lower - 1e-12 <= least(G)
    assert found <= least(G) + 1e-5
    if (G <= 0).all() or (G >= 0).all():
        assert lower == pytest.approx(found, abs=1e-8)


def test_nonnegative_factorisation_stays_nonnegative_at_entries(rng):
    Y = rng.uniform(0, 1, (8, 2)) @ rng.uniform(0, 1, (2, 6))
    rows, cols = observed(rng, 8, 6, 0.8)
    A = ps.NonnegativeRankOne((8, 6)).at(rows, cols)
    r = ps.minimize(ps.LeastSquares(Y[rows, cols]), ps.cone(A), stop=ps.Stop(iterations=60))
    assert r.value <= 1e-3 * ps.LeastSquares(Y[rows, cols]).value(0 * r.x)
    assert r.coef.toarray().min() >= -1e-12
    full = np.abs(rng.standard_normal((3, 3)))
    assert ps.NonnegativeRankOne((3, 3)).begin()(full, 1, 0.0)[1] == pytest.approx(full.min())
    assert A.begin()(np.ones(len(rows)), 1, 0.0)[1] == 0.0  # an entry that nobody sees


# ------------------------------------------------------------------ what the sets know, and bad input
def test_gauges_are_norms(rng):
    X = rng.standard_normal((5, 4))
    assert ps.RankOne((5, 4)).gauge(X) == pytest.approx(np.linalg.norm(X, "nuc"))
    assert ps.Orthogonal((5, 4)).gauge(X) == pytest.approx(np.linalg.norm(X, 2))
    S = X @ X.T
    assert ps.Spectrahedron(5).gauge(S) == pytest.approx(np.trace(S))
    assert ps.Spectrahedron(5).gauge(S - np.eye(5)) == math.inf
    assert ps.SymmetricRankOne(5).gauge(S - np.eye(5)) == pytest.approx(np.linalg.norm(S - np.eye(5), "nuc"))
    assert ps.SymmetricRankOne(5).gauge(np.triu(S)) == math.inf
    assert ps.NonnegativeRankOne((5, 4)).gauge(X) == math.inf


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ps.RankOne((3, 2)).at([0, 1, 3], [0, 1, 0]), "rows reach from 0 to 3; they must lie between 0 and 2"),
        (lambda: ps.RankOne((3, 2)).at([0, 1, 2], [0, -1, 0]), "cols reach from -1 to 0"),
        (lambda: ps.RankOne((2, 2)).at([0, 1, 0], [0, 1, 0]), r"entry \(0, 0\) is observed twice"),
        (lambda: ps.RankOne((3, 2)).at([0, 2], [0, 1]), "row 1 has no observed entry"),
        (lambda: ps.RankOne((2, 3)).at([0, 1], [0, 1]), "column 2 has no observed entry"),
        (lambda: ps.RankOne((2, 2)).at([0, 1], [0]), "give one of each per entry"),
        (lambda: ps.RankOne((2, 2)).at(np.zeros(0, int), np.zeros(0, int)), "at least one observed entry"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_nothing_is_promised_of_answers_that_are_only_near(rng):
    f = ps.LeastSquares(rng.uniform(0, 1, (4, 4)))
    near = ps.minimize(f, ps.conv(ps.NonnegativeRankOne((4, 4))), stop=ps.Stop(iterations=3))
    sharp = ps.minimize(f, ps.conv(ps.RankOne((4, 4))), stop=ps.Stop(iterations=3))
    assert not near.promise().bounds
    assert sharp.promise().bounds
    assert not (2.0 * ps.NonnegativeRankOne((4, 4)) | ps.RankOne((4, 4))).exact
    assert not ps.RankOne((1000, 900)).exact
    assert not ps.RankOneTensor((2, 3, 2)).exact
    assert ps.RankOne((1000, 900), failure=0).exact


def test_nearly_equal_singular_values_are_all_found(monkeypatch):
    a, b, c = 1.3456080614029184, -6.661338147750939e-16, 1.3456080614029176  # one of which LAPACK has missed
    monkeypatch.setattr(matrices, "_gram", lambda M: np.array([[a, 0, b], [0, 1.3456080614029207, 0], [b, 0, c]]))
    for several in (1, 2, 3):
        sigma, V, upper = matrices.leading(np.eye(3), several, -math.inf, Memory(), 0.0)
        assert sigma == upper == pytest.approx(math.sqrt(a))
        np.testing.assert_allclose(V.T @ V, np.eye(several), atol=1e-12)


def test_torch_matrices_stay_in_torch(rng):
    torch = pytest.importorskip("torch")
    Y = rng.standard_normal((6, 5))
    ours, theirs = (ps.minimize(ps.LeastSquares(y), ps.conv(2.0 * ps.RankOne((6, 5)))) for y in (Y, torch.asarray(Y)))
    assert isinstance(theirs.x, torch.Tensor)
    np.testing.assert_allclose(theirs.x.numpy(), ours.x, atol=1e-5)


def test_a_run_over_a_fantope_in_float32_goes_on(rng):
    """Eigenvalues of its atoms are 0 and 1 but for the rounding of float32."""
    f, domain = ps.LeastSquares(rng.standard_normal((5, 5)).astype(np.float32)), ps.conv(ps.Fantope(5, 2))
    half = ps.minimize(f, domain, stop=ps.Stop(iterations=3))
    assert ps.minimize(f, domain, start=half).value <= half.value
