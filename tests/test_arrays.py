"""The whole loop runs on the arrays that the user brings: NumPy float32, array-api-strict, PyTorch, also on CUDA."""

import pickle

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
    ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.Plain(ps.ShortStep(L=ps.Backtracking())),
    ps.NormCorrective(), ps.FullyCorrective(), ps.FullyCorrective(several=4),
]  # fmt: skip


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


def float32(backend, a):
    """A NumPy array in the backend's library, as float32."""
    a = a.astype(np.float32)
    return array_api_strict.asarray(a) if backend == "strict" else put(backend, a)


COUNTS = np.random.default_rng(5).integers(0, 6, 40)
WEIGHTS = np.random.default_rng(6).uniform(0.5, 2.0, 40)
LOSSES_OF_INTEGERS = {
    "booleans": lambda convert: ps.Logistic(convert(COUNTS > 2)),
    "labels, weighted": lambda convert: ps.Logistic(convert(np.where(COUNTS > 2, 1, -1)), weights=WEIGHTS),
    "labels that are floats": lambda convert: ps.Logistic(convert(np.where(COUNTS > 2, 1.0, -1.0))),
    "counts, weighted by integers": lambda convert: ps.Poisson(convert(COUNTS), weights=convert(1 + COUNTS % 2)),
    "squares": lambda convert: ps.LeastSquares(convert(COUNTS)),
    "Huber, weighted": lambda convert: ps.Huber(convert(COUNTS), 1.0, weights=WEIGHTS.tolist()),
    "classes": lambda convert: ps.Multinomial(convert(COUNTS % 3)),
    "one-hot rows, weighted": lambda convert: ps.Multinomial(convert(np.eye(3, dtype=int)[COUNTS % 3]), WEIGHTS),
    "a ridge": lambda convert: ps.Ridge(ps.Logistic(convert(COUNTS > 2)), 12),
}


def domain_of(f, convert):
    """An L1 ball of radius 2, seen through a random matrix that fits the objective."""
    D = np.random.default_rng(7).standard_normal((40, 3, 12) if isinstance(f, ps.Multinomial) else (40, 12))
    ridge = {"l2": 0.1} if isinstance(f, ps.Ridge) else {}
    return ps.conv(
        2.0 * (ps.SignedBasis(12).through(convert(D), **ridge) if ridge else ps.Dictionary(convert(D), True))
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("labels", ["of the library", "of NumPy"])
@pytest.mark.parametrize("loss", LOSSES_OF_INTEGERS)
def test_labels_and_counts_take_the_dtype_library_and_device_of_the_atoms(backend, labels, loss):
    of_library = labels == "of the library" and backend != "float32"
    f = LOSSES_OF_INTEGERS[loss]((lambda a: put(backend, a)) if of_library else np.asarray)
    plain = LOSSES_OF_INTEGERS[loss](np.asarray)
    stop = ps.Stop(iterations=8, rgap=None)
    expected = ps.minimize(plain, domain_of(plain, np.asarray), stop=stop)
    domain = domain_of(f, lambda a: float32(backend, a))
    r = ps.minimize(f, domain, stop=stop)
    assert expected.f is plain  # float64 atoms: nothing to do
    assert r.x.dtype == domain.parts[0].A.space.dtype and r.f.space.dtype == r.x.dtype
    np.testing.assert_allclose(back(backend, r.x), expected.x, rtol=0, atol=1e-4)
    assert r.value == pytest.approx(expected.value, rel=1e-6)
    assert r.lower <= expected.value * (1 + 1e-6) and r.check().feasible
    value, grad = r.f.value_and_grad(r.x)
    assert grad.dtype == r.x.dtype and value == pytest.approx(r.value, rel=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_runs_with_integer_labels_continue_and_are_stored(backend, tmp_path):
    make, update = LOSSES_OF_INTEGERS["booleans"], ps.Plain(ps.LineSearch())
    domain = domain_of(make(np.asarray), lambda a: float32(backend, a))

    def run(iterations, **options):
        stop = ps.Stop(iterations=iterations, rgap=None)
        return ps.minimize(make(np.asarray), domain, update, stop=stop, keep=True, **options)

    whole, half = run(12), run(5)
    for continued in (run(12, start=half), run(12, start=pickle.loads(pickle.dumps(half)))):
        np.testing.assert_array_equal(back(backend, continued.x), back(backend, whole.x))
        assert len(continued.trace) == 13
    run(5, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(back(backend, run(12, checkpoint=tmp_path / "run.npz").x), back(backend, whole.x))


def test_data_with_a_precision_of_their_own_are_not_converted():
    domain = domain_of(ps.LeastSquares(COUNTS), lambda a: a.astype(np.float32))
    for f in (ps.LeastSquares(COUNTS.astype(float)), ps.Poisson(COUNTS.astype(float), weights=COUNTS + 1)):
        with pytest.raises(TypeError, match="f has dtype float64, the atoms float32; convert one"):
            ps.minimize(f, domain)
    large = np.where(COUNTS > 2, 2**24 + 1, 0)
    with pytest.raises(ValueError, match="y holds integers too large to be exact in float32"):
        ps.minimize(ps.Poisson(large), domain)


def test_devices_that_differ_are_named_unless_the_data_are_integers():
    elsewhere = array_api_strict.Device("device1")
    f = ps.LeastSquares(array_api_strict.asarray(WEIGHTS, device=elsewhere))
    domain = domain_of(f, array_api_strict.asarray)
    with pytest.raises(TypeError, match=r"f lies on device .*device1.*, the atoms on .*CPU_DEVICE.*; move one"):
        ps.minimize(f, domain)
    moved = ps.Logistic(array_api_strict.asarray(COUNTS > 2), weights=WEIGHTS).on(f.space)
    assert {moved.y.device, moved.weights.device, moved.dual_range[0].device} == {elsewhere}
