"""The whole loop runs on the arrays that the user brings: NumPy float32, array-api-strict, PyTorch, also on CUDA."""

import array_api_strict
import numpy as np
import pytest

import pursuit as ps

try:
    import torch
except ImportError:  # the extra is not installed: the other backends still run
    torch = None


CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not (torch and torch.cuda.is_available()), reason="no CUDA device.")
)
BACKENDS = ["float32", "strict", *(["torch"] if torch else []), CUDA]


def put(backend, a):
    """A NumPy array in the backend's library."""
    if backend == "float32":
        return a.astype(np.float32)
    if backend == "strict":
        return array_api_strict.asarray(a)
    return torch.from_numpy(np.ascontiguousarray(a)).to("cuda" if backend == "cuda" else "cpu")


def back(backend, a):
    if backend in ("torch", "cuda"):
        assert isinstance(a, torch.Tensor) and a.is_cuda == (backend == "cuda")
        return a.cpu().numpy()
    if backend == "strict":
        assert type(a).__module__.startswith("array_api_strict")
        return np.asarray(a)
    assert a.dtype == np.float32
    return a


UPDATES = [
    ps.Plain(ps.LineSearch()),
    ps.Plain(ps.ShortStep()),
    ps.Plain(ps.ShortStep(L=ps.Backtracking())),
    ps.NormCorrective(),
    ps.FullyCorrective(),
    ps.FullyCorrective(several=4),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
@pytest.mark.parametrize("update", UPDATES, ids=repr)
def test_dictionaries_match_numpy(backend, wrap, update, rng):
    D, y = rng.standard_normal((60, 30)), rng.standard_normal(60)
    labels = np.sign(y)
    stop = ps.Stop(iterations=6, rgap=None)
    tolerance = 2e-3 if backend == "float32" else 1e-10
    for objective, target in ((ps.LeastSquares, y), (ps.Logistic, labels), (ps.Huber, y)):
        make = (lambda t: ps.Huber(t, 0.7)) if objective is ps.Huber else objective
        expected = ps.minimize(make(target), wrap(2.0 * ps.Dictionary(D, signed=True)), update, stop=stop)
        f, A = make(put(backend, target)), 2.0 * ps.Dictionary(put(backend, D), signed=True)
        r = ps.minimize(f, wrap(A), update, stop=stop)
        assert r.weights.dtype == np.float64
        if backend == "float32" and "Backtracking" in repr(update):  # an accepted L may differ by one rounding
            assert r.value <= 1.5 * expected.value
            continue
        np.testing.assert_allclose(
            back(backend, r.x), expected.x, rtol=0, atol=tolerance * (1 + np.abs(expected.x).max())
        )
        assert r.value == pytest.approx(expected.value, rel=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("n", [7])
def test_basis_ball_box_and_mapped_sets_match_numpy(backend, n, rng):
    y, M = rng.standard_normal(n), rng.standard_normal((n, 5))
    lower, upper = -np.ones(n), 2 * np.ones(n)

    def sets(convert):
        yield ps.SignedBasis(n)
        yield ps.Simplex(n)
        yield ps.Ball(n, 1.5)
        yield ps.Ball(n, 2)
        yield ps.Ball(n, np.inf)
        yield ps.Box(convert(lower), convert(upper))
        yield ps.Ball(5, 2).through(convert(M))
        yield ps.SignedBasis(5).through(convert(M))
        yield ps.SignedBasis(n) | ps.Dictionary(convert(M), signed=True)

    stop = ps.Stop(iterations=8, rgap=None)
    plain = [ps.minimize(ps.LeastSquares(y), ps.conv(A), stop=stop).x for A in sets(lambda a: a)]
    f = ps.LeastSquares(put(backend, y))
    for expected, A in zip(plain, sets(lambda a: put(backend, a)), strict=True):
        x = back(backend, ps.minimize(f, ps.conv(A), stop=stop).x)
        np.testing.assert_allclose(x, expected, rtol=0, atol=2e-4 if backend == "float32" else 1e-10, err_msg=repr(A))


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_objective_matches_numpy(backend, rng):
    y, x = rng.standard_normal(6), rng.standard_normal(6)
    H = np.cov(rng.standard_normal((6, 20)))
    tolerance = 1e-5 if backend == "float32" else 1e-12
    pairs = [
        (lambda c: ps.LeastSquares(c(y)), x),
        (lambda c: ps.LeastSquares(c(y), weights=c(np.exp(y))), x),
        (lambda c: ps.Quadratic(c(H), c(y)), x),
        (lambda c: ps.Huber(c(y), 0.5), x),
        (lambda c: ps.Logistic(c(np.sign(y))), x),
        (lambda c: ps.Poisson(c(np.round(np.exp(y)))), x),
        (lambda c: ps.Multinomial(c(np.eye(3)[[0, 1, 2, 0]])), rng.standard_normal((4, 3))),
    ]
    for make, point in pairs:
        f, g = make(lambda a: a), make(lambda a: put(backend, a))
        value, grad = f.value_and_grad(point)
        other, other_grad = g.value_and_grad(put(backend, point))
        assert other == pytest.approx(value, rel=tolerance)
        np.testing.assert_allclose(back(backend, other_grad), grad, rtol=0, atol=10 * tolerance)
        hv, other_hv = f.hessian(point)(point), g.hessian(put(backend, point))(put(backend, point))
        np.testing.assert_allclose(back(backend, other_hv), hv, rtol=0, atol=10 * tolerance)
        assert f.infimum == pytest.approx(g.infimum, rel=10 * tolerance)  # rounded down, in units of the dtype


def test_float32_stays_float32_through_states_and_result(rng):
    D, y = rng.standard_normal((10, 20)).astype(np.float32), rng.standard_normal(10).astype(np.float32)
    r = ps.minimize(
        ps.LeastSquares(y), ps.conv(2 * ps.Dictionary(D, signed=True)), callback=lambda s: s.x.dtype != np.float32
    )
    assert r.status is not ps.Status.CALLBACK
    assert r.x.dtype == np.float32
    assert r.atoms[0].vector.dtype == np.float32
