"""Models with a ridge on their coefficients, and with several outputs: `A.through(X, columns=K, l2=...)`."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize
from scipy.sparse.linalg import aslinearoperator

import pursuit as ps
from pursuit.metrics import Diagonal, Identity

N, P, K = 30, 8, 3


def losses(rng):
    y = rng.standard_normal(N)
    return {
        "squares": ps.LeastSquares(y, rng.uniform(0.5, 2.0, N)),
        "plain squares": ps.LeastSquares(y),
        "logistic": ps.Logistic(y > 0.0),
        "huber": ps.Huber(y, 0.5),
        "poisson": ps.Poisson(rng.poisson(2.0, N)),
        "multinomial": ps.Multinomial(np.arange(N) % K),
        "many squares": ps.LeastSquares(rng.standard_normal((N, K))),
    }


KINDS = list(losses(np.random.default_rng(0)))
MAPS = {"dense": np.asarray, "sparse": sp.csr_array, "operator": aslinearoperator}


@pytest.mark.parametrize("how", MAPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_ridge_on_coefficients_is_minimised_as_written(kind, how, rng):
    f, X, l2 = losses(rng)[kind], rng.standard_normal((N, P)), 0.3
    columns = K if f.space.shape != (N,) else None
    shape = (P,) if columns is None else (P, K)
    A = ps.SignedBasis(P * (columns or 1)).through(MAPS[how](X), columns=columns, l2=l2)
    r = ps.minimize(ps.Ridge(f, P), ps.lin(A), stop=ps.Stop(iterations=200))

    def direct(b):
        b = b.reshape(shape)
        value, grad = f.value_and_grad(X @ b)
        return value + 0.5 * l2 * float(np.sum(b * b)), (X.T @ grad + l2 * b).ravel()

    best = scipy_minimize(direct, np.zeros(np.prod(shape)), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert r.value == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(r.coef, best.x, atol=1e-5)
    assert r.value == pytest.approx(direct(r.coef)[0], rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_lifted_atoms_are_the_columns_of_the_stacked_matrix(kind, rng):
    f, X, l2 = losses(rng)[kind], rng.standard_normal((N, P)), 0.3
    columns = K if f.space.shape != (N,) else None
    A = ps.SignedBasis(P * (columns or 1)).through(X, columns=columns, l2=l2)
    stacked = np.kron(np.vstack([X, np.sqrt(l2) * np.eye(P)]), np.eye(columns or 1))
    plain = ps.Dictionary(stacked.reshape(*A.shape, -1), signed=True)
    ps.check_atoms(A)
    ps.check_objective(ps.Ridge(f, P))
    one, other = (
        ps.minimize(ps.Ridge(f, P), ps.lin(S), ps.FullyCorrective(), stop=ps.Stop(atoms=4)) for S in (A, plain)
    )
    assert [a.source for a in one.atoms] == [a.source for a in other.atoms]
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-7)
    np.testing.assert_allclose(one.x, other.x, atol=1e-9)
    corrected = ps.minimize(ps.Ridge(f, P), ps.lin(A), ps.NormCorrective(), stop=ps.Stop(iterations=300, rgap=1e-14))
    assert corrected.value <= one.value


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("how", MAPS)
def test_matrices_of_every_set_are_seen_through_x(how, l2, rng):
    X = rng.standard_normal((N, P))
    sets = [ps.SignedBasis(P * K), ps.Groups(np.arange(P * K) // K), ps.KSupport(P * K, 4), ps.Ball(P * K, 2)]
    for base in [*sets, ps.RankOne((P, K)), 2.0 * ps.RankOne((P, K))]:
        A = base.through(MAPS[how](X), columns=K, l2=l2)
        assert A.shape == (N + P * (l2 > 0), K)
        g = rng.standard_normal(A.shape)
        pulled = X.T @ g[:N] + (np.sqrt(l2) * g[N:] if l2 else 0.0)
        own = base.lmo(pulled.reshape(base.shape)).vector
        np.testing.assert_allclose(A.lmo(g).vector[:N], X @ own.reshape(P, K), atol=1e-12)
        assert float(np.vdot(g, A.lmo(g).vector)) == pytest.approx(float(np.vdot(pulled, own)))
        ps.check_atoms(A)


@pytest.mark.parametrize("kind", ["identity", "diagonal", "stacked"])
def test_gram_matrices_of_mixed_frames_are_those_of_the_vectors(kind, rng):
    X = rng.standard_normal((N, P))
    f = ps.Ridge(ps.Logistic(np.arange(N) % 2), P)
    lifted, active = ps.SignedBasis(P).through(X, l2=0.3), ps.ActiveSet(f.space, [True])
    h = rng.uniform(0.5, 2.0, N + P)
    metric = {"identity": Identity(2.0), "diagonal": Diagonal(h), "stacked": f.hessian(rng.standard_normal(N + P))}[
        kind
    ]
    for j in range(3):  # in turn, so that places of frames and of the active set differ
        active.enter(lifted.atom(2 * j))
        active.enter(ps.Atom(rng.standard_normal(N + P), source=("dense", j)))
        active.enter(ps.SparseAtom([j, N + j], [1.0, -2.0], (N + P,), source=("sparse", j)))
    vectors = np.array([a.dense(f.space) for a in active.atoms])
    full = vectors @ np.array([metric(v) for v in vectors]).T
    for which in (np.arange(9), np.array([7, 0, 3, 5]), np.array([4, 1])):
        np.testing.assert_allclose(active.gram(metric, which), full[np.ix_(which, which)], rtol=1e-10, atol=1e-12)
    active.keep(np.arange(9) % 4 != 1)
    kept = np.flatnonzero(np.arange(9) % 4 != 1)
    np.testing.assert_allclose(
        active.gram(metric, np.arange(len(kept))), full[np.ix_(kept, kept)], rtol=1e-10, atol=1e-12
    )
