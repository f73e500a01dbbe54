"""Codes of groups of signals with one support, and complex codes: equal to plain programs and to real formulations."""

import numpy as np
import pytest

import pursuit as ps
from pursuit.coding import joint
from pursuit.native import MP_STEPS


def problem(rng, count=20, complex_=True):
    def draw(*shape):
        return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if complex_ else 0.0)

    return draw(12, 30) * rng.uniform(0.5, 2.0, 30), draw(count, 12)


def plain(D, Y, method, atoms=99, tol=-1.0):
    """One group, by real numbers alone: an atom of complex numbers is a pair of columns, and channels are blocks."""
    n, real = D.shape[1], np.block([[D.real, -D.imag], [D.imag, D.real]])
    R = np.hstack([Y.real, Y.imag])
    target, X, chosen = R.copy(), np.zeros((len(Y), 2 * n)), []
    pairs = [[j, n + j] for j in range(n)]
    for _ in range(MP_STEPS * atoms if method == "mp" else atoms):
        if np.linalg.norm(R) <= tol:
            break
        if method == "ols":
            left = [np.linalg.norm(target - fit(real, target, [*chosen, j])) for j in range(n)]
            j = int(np.argmin(left))
        else:
            j = int(np.argmax([np.linalg.norm(R @ real[:, pair]) for pair in pairs]))
        if method == "mp":
            if j not in chosen and len(set(chosen)) == atoms:
                break
            X[:, pairs[j]] += R @ real[:, pairs[j]] / np.linalg.norm(D[:, j]) ** 2
            R = target - X @ real.T
        chosen.append(j)
        if method != "mp":
            R = target - fit(real, target, chosen)
    if method != "mp":
        places = [*chosen, *(n + j for j in chosen)]
        X[:, places] = np.linalg.lstsq(real[:, places], target.T, rcond=None)[0].T
    return X[:, :n] + 1j * X[:, n:]


def fit(real, target, chosen):
    B = real[:, [*chosen, *(real.shape[1] // 2 + j for j in chosen)]]
    return (B @ np.linalg.lstsq(B, target.T, rcond=None)[0]).T


@pytest.mark.parametrize("method", ["omp", "ols", "mp"])
@pytest.mark.parametrize("rule", [{"atoms": 4}, {"tol": 2.0}, {"atoms": 3, "tol": 3.5}])
def test_complex_and_joint_pursuits_are_those_of_real_numbers(method, rule, rng):
    for complex_ in (True, False):
        D, Y = problem(rng, complex_=complex_)
        labels = rng.integers(0, 6, len(Y))
        codes = ps.encode(D, Y, method=method, joint=labels, **rule).toarray()
        alone = ps.encode(D, Y + 0j, method=method, **rule).toarray()
        assert codes.dtype == D.dtype
        assert alone.dtype == complex
        for label in set(labels):
            mine = labels == label
            np.testing.assert_allclose(codes[mine], plain(D, Y[mine], method, **rule), atol=1e-8)
        for code, y in zip(alone, Y, strict=True):
            np.testing.assert_allclose(code, plain(D, y[None], method, **rule)[0], atol=1e-8)


def test_the_complex_and_the_joint_lasso_are_at_the_minimum_over_groups(rng):
    D, Y = problem(rng)
    real = np.block([[D.real, -D.imag], [D.imag, D.real]])
    codes = ps.encode(D, Y, method="lasso", penalty=2.0).toarray()
    groups = ps.Groups(np.tile(np.arange(30), 2)).through(real)
    for x, y in zip(codes, Y[:4], strict=False):
        r = ps.minimize(ps.LeastSquares(np.concatenate([y.real, y.imag])), ps.penalty(2.0 * groups))
        value = 0.5 * np.linalg.norm(y - D @ x) ** 2 + 2.0 * abs(x).sum()
        assert r.lower - 1e-9 <= value <= r.value * (1 + 1e-8)
    D, Y = problem(rng, 3, complex_=False)
    X = ps.encode(D, Y, method="lasso", penalty=2.0, joint=True).toarray()
    channels = ps.Groups(np.repeat(np.arange(30), 3)).through(np.kron(D, np.eye(3)))
    r = ps.minimize(ps.LeastSquares(Y.T.ravel()), ps.penalty(2.0 * channels))
    value = 0.5 * np.linalg.norm(Y - X @ D.T) ** 2 + 2.0 * np.linalg.norm(X, axis=0).sum()
    assert r.lower - 1e-9 <= value <= r.value * (1 + 1e-8)
    assert 0 < (X != 0).any(axis=0).sum() < 30


def test_groups_of_one_real_signal_have_the_codes_of_the_kernels(rng):
    D, Y = problem(rng, complex_=False)
    for how in ({"atoms": 4}, {"atoms": 4, "method": "ols"}, {"method": "lasso", "penalty": 1.0}):
        own = ps.encode(D, Y, joint=np.arange(len(Y)), **how)
        np.testing.assert_allclose(own.toarray(), ps.encode(D, Y, **how).toarray(), atol=1e-5)


def test_limits_of_groups_scales_and_degenerate_signals(rng):
    D, Y = problem(rng, 8)
    labels = np.array([0, 1, 1, 1, 0, 2, 2, 1])
    limits = np.array([1, 2, 3])
    codes = ps.encode(D, Y, atoms=limits, joint=labels).toarray()
    assert [int((codes[labels == g] != 0).any(axis=0).sum()) for g in range(3)] == [1, 2, 3]
    for unit in (1e-200, 1e200):
        np.testing.assert_allclose(ps.encode(D, unit * Y, atoms=limits, joint=labels).toarray(), unit * codes)
        np.testing.assert_allclose(ps.encode(unit * D, Y, atoms=limits, joint=labels).toarray() * unit, codes)
    assert ps.encode(D, 0 * Y, atoms=3).nnz == 0
    assert ps.encode(D, Y[:0], atoms=3).shape == (0, 30)
    twice = np.hstack([D[:, :2], D[:, :2]])  # of rank 2
    for method in ("omp", "ols"):
        assert (np.diff(ps.encode(twice, Y, atoms=4, method=method).indptr) <= 2).all()
    single = ps.encode(D.astype(np.complex64), Y.astype(np.complex64), atoms=2)
    assert single.dtype == np.complex64


def test_tensors_have_the_codes_of_arrays(rng):
    torch = pytest.importorskip("torch")
    D, Y = problem(rng)
    codes = ps.encode(torch.asarray(D), torch.asarray(Y), atoms=3)
    np.testing.assert_array_equal(codes.toarray(), ps.encode(D, Y, atoms=3).toarray())
    xp, D, Y = joint.namespace(torch.zeros(1)), torch.asarray(D), torch.asarray(Y).reshape(5, 4, 12)
    limits, tols, host = np.full(5, 3), np.full(5, -1.0), (D.numpy(), Y.numpy())
    for by in (False, True):
        X = joint._orthogonal(xp, D, Y, (limits, tols, by))
        np.testing.assert_allclose(X, joint._orthogonal(np, *host, (limits, tols, by)), atol=1e-12)
    np.testing.assert_allclose(
        joint._matching(xp, D, Y, limits, tols), joint._matching(np, *host, limits, tols), atol=1e-12
    )
    np.testing.assert_allclose(
        joint._lasso(xp, D, Y, np.ones(5)), joint._lasso(joint.namespace(host[0]), *host, np.ones(5)), atol=1e-8
    )


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"atoms": 3, "weights": np.ones((20, 12))}, "weights is"),
        ({"method": "nnls"}, "method is 'nnls'; joint and complex codes are by 'omp'"),
        ({"method": "lasso", "penalty": 0.0}, "penalty is 0"),
        ({"atoms": 3, "joint": [0, 1]}, "a label for each of the 20 signals"),
    ],
)
def test_what_joint_and_complex_codes_do_not_have_is_refused(how, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        ps.encode(*problem(rng), **how)
