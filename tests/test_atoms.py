"""Atom sets: oracles against brute force, closed forms, combinators, frames, the active set."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

import pursuit as ps
from pursuit.active import ActiveSet
from pursuit.arrays import Space
from pursuit.atoms.frames import DenseFrame
from pursuit.atoms.sparse import SparseFrame
from pursuit.metrics import Diagonal, Identity, Operator


class Duck:
    """What PyLops gives: no LinearOperator of SciPy, but shape, dtype and two products."""

    def __init__(self, M, adjoint=None):
        self.shape, self.dtype, self.calls = M.shape, M.dtype, 0
        self._M, self._adjoint = M, M.T if adjoint is None else adjoint

    def matvec(self, x):
        self.calls += 1
        return self._M @ x

    def rmatvec(self, y):
        return self._adjoint @ y


def sets(rng, n=5):
    D = rng.standard_normal((n, 8))
    return {
        "dictionary": ps.Dictionary(D),
        "signed dictionary": ps.Dictionary(D, signed=True),
        "sparse dictionary": ps.Dictionary(
            sp.csc_array(D * (rng.random(D.shape) < 0.7) + np.eye(n, 8) + np.eye(n, 8, 5)), signed=True
        ),
        "operator": ps.Dictionary(aslinearoperator(D)),
        "signed basis": ps.SignedBasis(n),
        "simplex": ps.Simplex(n),
        "ball 1": ps.Ball(n, 1),
        "ball 1.3": ps.Ball(n, 1.3),
        "ball 2": ps.Ball(n, 2),
        "ball 5": ps.Ball(n, 5),
        "ball inf": ps.Ball(n, np.inf),
        "box": ps.Box(-rng.random(n) - 0.1, rng.random(n) + 0.1),
        "scaled": 2.5 * ps.Dictionary(D),
        "negated": -2 * ps.Dictionary(D),
        "union": ps.Simplex(n) | 0.5 * ps.Dictionary(D),
        "mapped": ps.Box(-np.ones(3), np.ones(3)).through(D[:, :3]),
        "mapped sparse": ps.Ball(3, 2).through(sp.csr_array(D[:, :3])),
        "lifted": 2 * ps.SignedBasis(3).through(D[:, :3], l2=0.5),
        "symmetrised": ps.Box(np.zeros(n), np.ones(n)).symmetrised(),
    }


NAMES = list(sets(np.random.default_rng(0)))


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 50), several=st.integers(1, 6))
def test_several_answers_come_in_order_and_begin_with_the_best(name, seed, several):
    rng = np.random.default_rng(seed)
    A = sets(rng)[name]
    g = rng.standard_normal(A.shape)
    found = A.best(g, several)
    dots = [a.vector @ g for a in found]
    assert 1 <= len(found) <= several
    assert dots == sorted(dots)
    np.testing.assert_array_equal(found[0].vector, A.lmo(g).vector)
    if A.size is not None and not A.symmetric and name != "symmetrised":
        np.testing.assert_allclose(dots, np.sort(A.scores(g))[:several], atol=1e-12)


@pytest.mark.parametrize(
    "name", ["dictionary", "signed dictionary", "sparse dictionary", "operator", "scaled", "negated"]
)
@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
def test_coef_reproduces_x_from_the_columns(name, wrap, rng):
    A = sets(rng)[name]
    base = getattr(A, "base", A)
    r = ps.minimize(ps.LeastSquares(rng.standard_normal(5)), wrap(A), stop=ps.Stop(iterations=10))
    assert r.coef.shape == (8,)
    np.testing.assert_allclose(base.D @ r.coef, r.x, atol=1e-12)


# ------------------------------------------------------------------ laws


def public(rng):
    D = rng.standard_normal((4, 9))
    return [
        ps.Dictionary(D), ps.Dictionary(D, signed=True), ps.Dictionary(sp.csc_array(D)), ps.Dictionary(D).screened(),
        ps.Dictionary(aslinearoperator(D)), ps.SignedBasis(5), ps.Simplex(5), ps.Box([-1.0, 0.0], [1.0, 2.0]),
        ps.Ball(4, 1), ps.Ball(4, 1.5), ps.Ball(4, np.inf), ps.KSparse(6, 2), ps.Hypersimplex(6, 2),
        ps.Permutations(4), ps.Groups([0, 1, 1, 0, 2], [1.0, 0.5, 2.0]), ps.KSupport(6, 2), 2 * ps.Ball(3, 2),
        -3 * ps.Simplex(4), ps.Simplex(3) | ps.SignedBasis(3), ps.Box([0.0, 1.0], [1.0, 2.0]).symmetrised(),
    ]  # fmt: skip


PUBLIC = public(np.random.default_rng(0))


@pytest.mark.parametrize("A", PUBLIC, ids=repr)
def test_every_set_obeys_the_laws(A):
    ps.check_atoms(A)


@pytest.mark.parametrize("dress", [np.array, sp.csr_array, aslinearoperator, Duck])
@pytest.mark.parametrize("A", PUBLIC, ids=repr)
def test_every_set_obeys_the_laws_through_a_map(A, dress):
    M = np.random.default_rng(1).standard_normal((5, math.prod(A.shape)))
    seen = A.through(dress(M))
    ps.check_atoms(seen, trials=5)
    g = np.random.default_rng(2).standard_normal(5)
    np.testing.assert_allclose(seen.lmo(g).vector, M @ A.lmo((M.T @ g).reshape(A.shape)).vector.ravel(), atol=1e-12)


@pytest.mark.parametrize("A", PUBLIC, ids=repr)
def test_a_set_contains_what_it_draws_and_nothing_near_it(A):
    rng = np.random.default_rng(3)
    for _ in range(20):
        a = A.sample(rng).vector
        assert A.contains(a)
        assert A.contains(a * (1 + 1e-15))
        assert not A.contains(3.0 * a)
        assert not A.contains(np.append(a, 0.0))
        if not getattr(A, "base", A).convex:
            assert not A.contains(1.001 * a)
            assert not A.contains(a + 1e-3 * rng.standard_normal(a.shape))


@pytest.mark.parametrize(
    ("A", "near"),
    [
        (ps.Groups([0, 0, 1]), [[0.6, 0.8, 1.0], [0.6, 0.8, 1e-9], [0.6, 0.6, 0.0], [0.0, 0.0, 0.0]]),
        (ps.KSupport(3, 2), [[2 / 3, 2 / 3, 1 / 3], [0.6, 0.6, 0.0]]),
        (ps.KSparse(3, 2), [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.5, 0.0]]),
        (ps.Hypersimplex(3, 2), [[1.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [2.0, 0.0, 0.0]]),
        (ps.Hypersimplex(3, 1), [[1.0, 1.0, -1.0]]),
        (ps.Permutations(2), [[[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]]),
        (ps.Ball(2, 1.5), [[0.8, 0.8]]),
        (ps.Box([0.0, 0.0], [1.0, 2.0]), [[1.1, 0.0], [0.0, -0.1]]),
        (ps.SignedBasis(2), [[1.0, 1e-9], [0.0, 0.0]]),
    ],
    ids=lambda A: repr(A) if isinstance(A, ps.Atoms) else "",
)
def test_near_misses_are_no_atoms(A, near):
    assert not any(A.contains(np.array(a)) for a in near)


def test_samples_reach_every_atom_and_obey_the_generator():
    for A in (ps.SignedBasis(3), ps.Dictionary(np.eye(3)) | ps.Simplex(3), ps.KSparse(3, 2), ps.Permutations(3)):
        draws = [A.sample(np.random.default_rng(seed)) for seed in (7, 7, 8)]
        np.testing.assert_array_equal(draws[0].vector, draws[1].vector)
        rng = np.random.default_rng(0)
        kinds = {A.sample(rng).key(False) for _ in range(300)}
        assert len(kinds) == {"KSparse(3, 2)": 12}.get(repr(A), 6)


def test_membership_is_unknown_where_it_cannot_be_told():
    class Own(ps.Atoms):
        shape = (2,)

        def lmo(self, g):
            return ps.Atom(-np.sign(g))

    a = np.ones(2)
    assert Own().contains(a) is None
    assert (2 * Own()).contains(a) is None
    assert (Own() | ps.Simplex(2)).contains(a) is None
    assert (Own() | ps.Simplex(2)).contains(np.array([0.0, 1.0])) is True
    assert ps.Ball(2, 2).through(np.eye(2)).contains(a) is None
    assert (2 * Own()).contains((2 * Own()).sample(np.random.default_rng(0)).vector) is None
    with pytest.raises(NotImplementedError, match=r"Own cannot draw atoms; set shape, or define sample\(rng\)"):
        type("Own", (ps.Atoms,), {"lmo": Own.lmo})().sample(np.random.default_rng(0))
    ps.check_atoms(Own())


KEPT = np.zeros(3)


def one_array(self, j, sign, kept=KEPT):
    """An atom that is always written into the same array."""
    kept[:] = sign * np.eye(3)[j]
    return ps.Atom(kept, j, sign)


def broken(**methods):
    """A basis with some methods exchanged for wrong ones."""
    return type("Broken", (ps.SignedBasis,), methods)(3)


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (broken(lmo=lambda self, g: ps.SignedBasis(3).lmo(-g)), "not the best"),
        (broken(lmo=lambda self, g: ps.SignedBasis(3).lmo(np.array([1.0, 0.0, 0.0]) * g[0])), "not the best"),
        (broken(lmo=lambda self, g: ps.SignedBasis(3).lmo(np.round(g * (abs(g) < 9)))), "only the direction counts"),
        (broken(contains=lambda self, a: False), "does not contain|names what"),
        (broken(rebuild=lambda self, a: self.column(a.source, -a.coef)), "rebuild gives another atom"),
        (broken(rebuild=lambda self, a: a.scaled(1.0) if a.source else self.column(0, a.coef).scaled(1 + 1e-14)),
         "rebuild renames"),
        (broken(best=lambda self, g, several: [self.atom(0)]), "not the best"),
        (broken(lmo=lambda self, g: ps.SignedBasis(3).lmo(g), best=lambda self, g, several: [self.atom(0)]),
         "does not begin with"),
        (broken(gauge=lambda self, x: 2.0), "gauge"),
        (broken(gauge=lambda self, x: 0.1 * abs(x).sum()), "lies on the boundary: it must be 1"),
        (broken(gauge=lambda self, x: abs(x).sum() ** 2), "is not 3 gauge|weights of sum"),
        (broken(gauge=lambda self, x: abs(x).max()), "is too small"),
        (broken(contains=lambda self, a: True), "contains 1.5 lmo"),
        (broken(begin=lambda self, seed=0: lambda g, several, level: (ps.SignedBasis(3).best(g, several), 0.0)),
         "claims <g, a> >= 0, but an atom has"),
        (broken(begin=lambda self, seed=0: lambda g, several, level: ([self.lmo(-g)], -math.inf)),
         "does not begin with the best"),
        (broken(begin=lambda self, seed=0: lambda g, several, level: ([], -math.inf)), "named no atom"),
        (broken(column=lambda self, j, sign: ps.Atom(sign * np.eye(3)[j], abs(j - 1), sign)), "two different atoms"),
        (broken(column=one_array), "changed the array of an"),
        (broken(atom=lambda self, i: ps.SignedBasis(3).atom(5 - i)), "do not agree on"),
    ],
)  # fmt: skip
def test_broken_sets_are_found_out(A, words):
    with pytest.raises(AssertionError, match=words):
        ps.check_atoms(A)


# ------------------------------------------------------------------ maps


def test_a_map_is_never_multiplied_out(rng):
    M = Duck(rng.standard_normal((30, 400)))
    A = ps.Groups(np.arange(400) // 4).through(M)
    asked = M.calls
    A.lmo(rng.standard_normal(30))
    assert (asked, M.calls) == (1, 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2000), (2000, 3), (300, 300)])
def test_a_true_adjoint_passes_the_dot_test(rng, dtype, shape):
    M = rng.standard_normal(shape).astype(dtype)
    for scale in (1e-30, 1.0, 1e30):
        ps.Ball(shape[1], 2).through(Duck((scale * M).astype(dtype)))
        ps.Dictionary(aslinearoperator((scale * M).astype(dtype)))
    ps.Ball(shape[1], 2).through(Duck(np.zeros(shape)))


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_adjoint_fails_the_dot_test(seed):
    M = np.random.default_rng(seed).standard_normal((200, 300))
    wrong = [2.0 * M.T, -M.T, np.roll(M.T, 1, axis=0), np.roll(M.T, 1, axis=1), (1 + 1e-9) * M.T]
    for adjoint in wrong:
        for make in (ps.Ball(300, 2).through, ps.SignedBasis(300).through, ps.Dictionary):
            with pytest.raises(ValueError, match="fails the dot test"):
                make(Duck(M, adjoint))


# ------------------------------------------------------------------ frames


@given(seed=st.integers(0, 200))
def test_sparse_and_dense_frames_agree(seed):
    rng = np.random.default_rng(seed)
    space = Space.default((3, 4))
    atoms = []
    for i in range(int(rng.integers(1, 6))):
        where = rng.choice(12, size=int(rng.integers(1, 5)), replace=False)
        atoms.append(ps.SparseAtom(where, rng.standard_normal(len(where)), (3, 4), i))
    dense, sparse = DenseFrame(space), SparseFrame(space)
    for a in atoms:
        dense.append(a)
        sparse.append(a)
    if len(atoms) > 2:
        keep = np.sort(rng.choice(len(atoms), size=len(atoms) - 1, replace=False))
        dense.keep(keep)
        sparse.keep(keep)
        atoms = [atoms[i] for i in keep]
    g, w = rng.standard_normal((3, 4)), rng.standard_normal(len(atoms))
    every = np.arange(len(atoms))
    np.testing.assert_allclose(sparse.analyze(g), dense.analyze(g), atol=1e-12)
    np.testing.assert_allclose(sparse.synthesize(w), dense.synthesize(w), atol=1e-12)
    Q = rng.standard_normal((12, 12))
    metrics = [
        Identity(),
        Identity(2.0),
        Diagonal(rng.random((3, 4))),
        Operator(lambda v: (Q @ Q.T @ v.ravel()).reshape(3, 4), (3, 4)),
    ]
    for metric in metrics:
        np.testing.assert_allclose(sparse.gram(metric, every), dense.gram(metric, every), atol=1e-10)
        other = ps.Atom(rng.standard_normal((3, 4)))
        for a in (atoms[0], other):
            np.testing.assert_allclose(sparse.inner(metric, a), dense.inner(metric, a), atol=1e-10)


@given(seed=st.integers(0, 200), signless=st.booleans())
def test_an_active_set_of_mixed_kinds_is_consistent(seed, signless):
    rng = np.random.default_rng(seed)
    active = ActiveSet(Space.default((6,)), [signless])
    for _ in range(12):
        j = int(rng.integers(6))
        sign = float(rng.choice([-1.0, 1.0]))
        if rng.random() < 0.5:
            atom = ps.SparseAtom([j], [sign], (6,), ("e", j), sign)
        else:
            atom = ps.Atom(sign * np.arange(6.0) ** (j / 3), ("d", j), sign)
        i, factor = active.enter(atom)
        np.testing.assert_allclose(factor * active.atoms[i].vector, atom.vector)
        active.weights[i] += factor * rng.standard_normal()
        if rng.random() < 0.3:
            active.keep(rng.random(len(active.atoms)) < 0.7)
    active.refresh()
    V = np.stack([a.vector for a in active.atoms]) if active.atoms else np.zeros((0, 6))
    np.testing.assert_allclose(active.x, active.weights @ V, atol=1e-12)
    g = rng.standard_normal(6)
    np.testing.assert_allclose(active.analyze(g), V @ g, atol=1e-12)
    if len(V):
        np.testing.assert_allclose(active.gram(Identity(), np.arange(len(V))), V @ V.T, atol=1e-10)
        np.testing.assert_allclose(active.inner(Identity(), 0), V @ V[0], atol=1e-10)
    assert len(set(active._keys)) == len(active.atoms)


def test_in_a_span_an_atom_and_its_negative_are_one_entry(rng):
    active = ActiveSet(Space.default((3,)), [True])
    v = rng.standard_normal(3)
    assert active.enter(ps.Atom(v)) == (0, 1.0)
    assert active.enter(ps.Atom(-v)) == (0, -1.0)
    assert active.enter(ps.Atom(v, "name")) == (1, 1.0)
    assert active.enter(ps.Atom(-v, "name", -1.0)) == (1, -1.0)
    hull = ActiveSet(Space.default((3,)), [False])
    assert hull.enter(ps.Atom(v))[0] != hull.enter(ps.Atom(-v))[0]


@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
def test_dense_sparse_and_operator_maps_give_the_same_iterates(wrap, rng):
    M, y = rng.standard_normal((20, 60)), rng.standard_normal(20)
    A = ps.Groups(np.arange(60) // 3)
    traces = [
        ps.minimize(ps.LeastSquares(y), wrap(A.through(dress)), stop=ps.Stop(iterations=6)).trace.value
        for dress in (M, sp.csr_array(M), aslinearoperator(M), Duck(M))
    ]
    for other in traces[1:]:
        np.testing.assert_allclose(other, traces[0], rtol=1e-10, atol=1e-12 * traces[0][0])
