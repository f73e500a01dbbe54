"""The same iterates two ways: the paper's identities, textbook loops, other libraries."""

from itertools import islice

import numpy as np
import pytest
from sklearn.linear_model import orthogonal_mp

import pursuit as ps

STEPS = 25
SEEDS = range(4)


def iterates(*args, steps=STEPS, **kwargs):
    return [s.x for s in islice(ps.iterate(*args, **kwargs), steps + 1)]


def assert_same(first, second, tolerance=1e-12):
    scale = max(np.abs(x).max() for x in first) or 1.0
    assert len(first) == len(second)
    for t, (a, b) in enumerate(zip(first, second, strict=True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * scale, err_msg=f"iteration {t}")


def problem(seed, m=30, n=60):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((m, n))
    return D, rng.standard_normal(m)


def logistic(seed, m=30, n=60):
    D, y = problem(seed, m, n)
    y[:2] = 1.0, -1.0
    return D, ps.Logistic(np.sign(y))


# ------------------------------------------------------------------ the paper's identities


@pytest.mark.parametrize("seed", SEEDS)
def test_norm_corrective_fw_0_is_the_projection_of_b_on_a_segment(seed):
    """Algorithm 3, variant 0, written as its projection of b = x - g/L on [x, z], is the short step of Algorithm 2."""
    D, f = logistic(seed)
    A = 3 * ps.Dictionary(D, signed=True)
    x = iterates(f, ps.conv(A), ps.Plain(ps.ShortStep()))
    expected = [x[0]]
    for _ in range(STEPS):
        now = expected[-1]
        g = f.value_and_grad(now)[1]
        z = A.lmo(g).vector
        b = now - g / f.L
        gamma = np.clip((b - now) @ (z - now) / ((z - now) @ (z - now)), 0, 1)
        expected.append(now + gamma * (z - now))
    assert_same(x, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_norm_corrective_gmp_0_with_unit_smoothness_is_matching_pursuit(seed):
    D, y = problem(seed)
    domain = ps.lin(ps.Dictionary(D))
    f = ps.LeastSquares(y)
    assert_same(
        iterates(f, domain, ps.Plain(ps.ShortStep(L=1.0))),
        iterates(f, domain, ps.Plain(ps.LineSearch())),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_norm_corrective_gmp_1_with_unit_smoothness_is_omp(seed):
    D, y = problem(seed)
    expected, support = [np.zeros(len(y))], []
    for _ in range(STEPS):
        support.append(int(np.abs(D.T @ (expected[-1] - y)).argmax()))
        expected.append(D[:, support] @ np.linalg.lstsq(D[:, support], y, rcond=None)[0])
    f, domain = ps.LeastSquares(y), ps.lin(ps.Dictionary(D))
    assert_same(iterates(f, domain, ps.NormCorrective()), expected)
    assert_same(iterates(f, domain, ps.FullyCorrective()), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_omp_agrees_with_scikit_learn(seed):
    D, y = problem(seed, 40, 100)
    D /= np.linalg.norm(D, axis=0)
    stop = ps.Stop(atoms=20, rgap=None)
    ours = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), ps.FullyCorrective(), stop=stop).coef
    theirs = orthogonal_mp(D, y, n_nonzero_coefs=20)
    assert (np.flatnonzero(ours) == np.flatnonzero(theirs)).all()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


def projection_on_hull(S, b):
    """The nearest point of conv(S) to b, by enumerating supports of S (few columns only)."""
    from itertools import combinations

    best, point = np.inf, None
    k = S.shape[1]
    for size in range(1, min(k, S.shape[0] + 1) + 1):
        for which in combinations(range(k), size):
            V = S[:, which]
            system = np.block([[V.T @ V, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            w = np.linalg.lstsq(system, np.append(V.T @ b, 1.0), rcond=None)[0][:-1]
            if (w >= -1e-12).all() and abs(w.sum() - 1) < 1e-9 and np.sum((V @ w - b) ** 2) < best - 1e-15:
                best, point = np.sum((V @ w - b) ** 2), V @ w
    return point


@pytest.mark.parametrize("seed", SEEDS)
def test_norm_corrective_fw_1_projects_on_the_hull_of_all_atoms_seen(seed):
    """Algorithm 3, variant 1, against brute force: S keeps x0 and every atom, also those at weight zero."""
    D, f = logistic(seed, 3, 8)
    A = 2 * ps.Dictionary(D, signed=True)
    x = iterates(f, ps.conv(A), ps.NormCorrective(), steps=9)
    S = x[0][:, None]
    for t in range(9):
        g = f.value_and_grad(x[t])[1]
        S = np.unique(np.column_stack([S, A.lmo(g).vector]), axis=1)
        np.testing.assert_allclose(x[t + 1], projection_on_hull(S, x[t] - g / f.L), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_norm_corrective_gmp_1_projects_b_on_the_span_of_x0_and_all_atoms(seed):
    D, f = logistic(seed)
    rng = np.random.default_rng(seed)
    x0 = D @ rng.standard_normal(D.shape[1]) / 10
    x = iterates(f, ps.lin(ps.Dictionary(D)), ps.NormCorrective(), start=x0, steps=20)
    S = [x0]
    for t in range(20):
        g = f.value_and_grad(x[t])[1]
        S.append(D[:, np.abs(D.T @ g).argmax()])
        V = np.column_stack(S)
        expected = V @ np.linalg.lstsq(V, x[t] - g / f.L, rcond=None)[0]
        np.testing.assert_allclose(x[t + 1], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_affine_invariant_gmp_2_minimises_f_over_the_span(seed):
    D, f = logistic(seed, 40, 80)
    for s in islice(ps.iterate(f, ps.lin(ps.Dictionary(D)), ps.FullyCorrective()), 1, 12):
        atoms = np.stack([a.vector for a in s.active.atoms])
        assert np.abs(atoms @ s.grad).max() <= 1e-10 * np.abs(D.T @ s.grad).max()


# ------------------------------------------------------------------ step rules against textbook loops


def textbook_frank_wolfe(f, D, gamma, steps=STEPS):
    """min over the hull of the columns of D, plain arrays and nothing else."""
    x = D[:, np.argmin(D.T @ f.value_and_grad(np.zeros(len(D)))[1])].copy()
    out = [x]
    for t in range(steps):
        g = f.value_and_grad(x)[1]
        z = D[:, np.argmin(D.T @ g)]
        x = x + gamma(t, x, g, z - x) * (z - x)
        out.append(x)
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", ["open loop", "line search", "diameter", "short", "curvature"])
def test_frank_wolfe_steps_agree_with_a_textbook_loop(rule, seed):
    D, f = logistic(seed)
    if rule == "line search":  # where it has a closed form
        f = ps.LeastSquares(f.y, weights=np.linspace(0.5, 2.0, len(D)))
    diameter = max(np.linalg.norm(D[:, [i]] - D, axis=0).max() for i in range(D.shape[1]))
    gammas = {
        "open loop": (ps.OpenLoop(), lambda t, x, g, d: 2 / (t + 2)),
        "line search": (
            ps.LineSearch(),
            lambda t, x, g, d: np.clip(-g @ d / (d @ (np.linspace(0.5, 2, len(d)) * d)), 0, 1),
        ),
        "diameter": (
            ps.DiameterStep(diameter=diameter),
            lambda t, x, g, d: np.clip(-g @ d / (f.L * diameter**2), 0, 1),
        ),
        "short": (ps.ShortStep(), lambda t, x, g, d: np.clip(-g @ d / (f.L * (d @ d)), 0, 1)),
        "curvature": (ps.CurvatureStep(3.0), lambda t, x, g, d: np.clip(-g @ d / 3.0, 0, 1)),
    }
    step, gamma = gammas[rule]
    assert_same(
        iterates(f, ps.conv(ps.Dictionary(D)), ps.Plain(step)),
        textbook_frank_wolfe(f, D, gamma),
    )


@pytest.mark.parametrize("delta", [0.2, 0.7])
def test_open_loop_step_uses_the_quality_of_the_oracle(delta):
    D, f = logistic(0)
    states = ps.iterate(f, ps.conv(ps.Dictionary(D)), ps.Plain(ps.OpenLoop()), oracle=ps.Approximate(delta))
    before = None
    for s in islice(states, 15):
        if before is not None:
            t, x, z = before
            np.testing.assert_allclose(s.x, x + 2 / (delta * t + 2) * (z - x), rtol=0, atol=1e-12)
        before = s.iteration, s.x, s.atom.vector


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rule", ["line search", "short", "curvature"])
def test_matching_pursuit_steps_agree_with_a_textbook_loop(rule, seed):
    D, y = problem(seed)
    f = ps.LeastSquares(y, weights=np.linspace(0.5, 2.0, len(y)))
    H = np.diag(np.linspace(0.5, 2.0, len(y)))
    step, gamma = {
        "line search": (ps.LineSearch(), lambda g, z: -(g @ z) / (z @ H @ z)),
        "short": (ps.ShortStep(), lambda g, z: -(g @ z) / (2.0 * (z @ z))),
        "curvature": (ps.CurvatureStep(800.0, rho=3.0), lambda g, z: -9.0 * (g @ z) / 800.0),
    }[rule]
    x = np.zeros(len(y))
    expected = [x]
    for _ in range(STEPS):
        g = H @ (x - y)
        z = D[:, np.abs(D.T @ g).argmax()]
        x = x + gamma(g, z) * z
        expected.append(x)
    assert_same(iterates(f, ps.lin(ps.Dictionary(D)), ps.Plain(step)), expected)


# ------------------------------------------------------------------ representations


@pytest.mark.parametrize("update", [ps.Plain(ps.ShortStep()), ps.NormCorrective(), ps.FullyCorrective(several=4)])
@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
def test_dense_sparse_operator_and_mapped_dictionaries_give_the_same_iterates(update, wrap, rng):
    import scipy.sparse as sp
    from scipy.sparse.linalg import aslinearoperator

    D = rng.standard_normal((20, 40)) * (rng.random((20, 40)) < 0.4)
    D[0] += 0.1
    f = ps.LeastSquares(rng.standard_normal(20), weights=rng.uniform(0.5, 2, 20))
    sets = [
        ps.Dictionary(D, signed=True),
        ps.Dictionary(sp.csr_array(D), signed=True),
        ps.Dictionary(aslinearoperator(D), signed=True),
        ps.SignedBasis(40).through(D),
        ps.Ball(40, 1).through(D),
        ps.Ball(40, 1).through(sp.csc_array(D)),
        ps.Dictionary(D[:, :15], signed=True) | ps.Dictionary(D[:, 15:], signed=True),
    ]
    first, *others = [
        iterates(f, wrap(3 * A), update, steps=15) for A in sets[: 4 if update == ps.FullyCorrective(4) else 7]
    ]
    for other in others:
        assert_same(first, other, tolerance=1e-10)


@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
def test_basis_vectors_as_indices_and_as_columns_give_the_same_iterates(wrap, rng):
    f = ps.Huber(rng.standard_normal(30), width=0.5)
    for update in (ps.Plain(ps.LineSearch()), ps.NormCorrective(), ps.FullyCorrective()):
        index = iterates(f, wrap(2 * ps.SignedBasis(30)), update)
        assert_same(index, iterates(f, wrap(2 * ps.Dictionary(np.eye(30), signed=True)), update))
