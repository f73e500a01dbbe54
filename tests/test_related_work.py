"""Section 8 of the paper: each method that it names is a line of this package, and ten lines of NumPy agree with it."""

from itertools import islice

import numpy as np
import pytest

import pursuit as ps

SEEDS = range(5)


def problem(seed, n=20, m=30, k=6):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n, m))
    return D / np.linalg.norm(D, axis=0), D[:, :k] @ rng.standard_normal(k) + 0.1 * rng.standard_normal(n)


def points(f, domain, update, steps, **options):
    return [s.x for s in islice(ps.iterate(f, domain, update, **options), steps + 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_greedy_selection(seed):
    """Shalev-Shwartz, Srebro and Zhang (2010), Zhang (2011), forward: f itself is minimised on the chosen columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 10))
    labels = np.where(rng.random(80) < 1 / (1 + np.exp(-X[:, 0] + X[:, 1])), 1.0, -1.0)
    r = ps.minimize(ps.Logistic(labels), ps.lin(ps.Dictionary(X)), ps.FullyCorrective(), stop=ps.Stop(iterations=3))
    chosen, w = [], np.zeros(0)
    for _ in range(3):
        p = 1 / (1 + np.exp(labels * (X[:, chosen] @ w)))
        chosen.append(int(np.abs(X.T @ (-labels * p)).argmax()))
        w = np.append(w, 0.0)
        for _ in range(50):  # Newton
            p = 1 / (1 + np.exp(labels * (X[:, chosen] @ w)))
            B = X[:, chosen]
            w = w - np.linalg.solve(B.T @ ((p * (1 - p))[:, None] * B), B.T @ (-labels * p))
    np.testing.assert_allclose(r.x, X[:, chosen] @ w, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_weak_chebyshev_greedy_algorithm(seed):
    """Temlyakov: an atom of quality t, then the best combination of all; the adversary takes the worst allowed."""
    D, y = problem(seed)
    f, A = ps.LeastSquares(y), ps.Dictionary(D)
    found = points(f, ps.lin(A), ps.FullyCorrective(), 5, oracle=ps.Approximate(0.7))
    chosen, x = [], np.zeros(len(y))
    for point in found:
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-9)
        scores = np.abs(D.T @ (y - x))
        allowed = np.flatnonzero(scores >= 0.7 * scores.max())
        chosen.append(int(allowed[scores[allowed].argmin()]))
        x = D[:, chosen] @ np.linalg.lstsq(D[:, chosen], y, rcond=None)[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_relaxed_greedy_algorithm(seed):
    """DeVore and Temlyakov: x <- (1 - g) x + g z, g by line search: Frank-Wolfe on conv(A, -A)."""
    D, y = problem(seed)
    y = y / np.linalg.norm(y) / 2
    A = ps.Dictionary(D, signed=True)
    found = points(ps.LeastSquares(y), ps.conv(A), ps.Plain(ps.LineSearch()), 8, start=np.zeros(len(y)))
    x = np.zeros(len(y))
    for point in found:
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-9)
        j = np.abs(D.T @ (y - x)).argmax()
        z = np.sign(D[:, j] @ (y - x)) * D[:, j]
        x = x + np.clip((y - x) @ (z - x) / ((z - x) @ (z - x)), 0, 1) * (z - x)


class GradientPursuit(ps.Update):
    """Blumensath and Davies (2008): a line search along the gradient of the weights of S."""

    def begin(self, f, domain, space):
        def advance(now, active):
            active.enter(now.answers[0].atoms[0], 0)
            slopes = active.slopes(now.grad)
            d = active.synthesize(-slopes)
            active.weights = active.weights - (slopes @ slopes) / (d @ d) * slopes
            active.refresh()

        return advance


@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_pursuit(seed):
    D, y = problem(seed)
    found = points(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), GradientPursuit(), 8)
    w, chosen = np.zeros(D.shape[1]), []
    for point in found:
        np.testing.assert_allclose(point, D @ w, rtol=0, atol=1e-9)
        slopes = D.T @ (y - D @ w)
        chosen.append(int(np.abs(slopes).argmax()))
        d = np.where(np.isin(np.arange(len(w)), chosen), slopes, 0.0)
        w = w + (d @ d) / ((D @ d) @ (D @ d)) * d


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_stagewise(seed):
    """Tibshirani (2015): a small step along the column most correlated with the residual."""
    D, y = problem(seed)
    found = points(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), ps.Plain(lambda move: 0.05), 40)
    x = np.zeros(len(y))
    for point in found:
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-9)
        correlations = D.T @ (y - x)
        j = np.abs(correlations).argmax()
        x = x + 0.05 * np.sign(correlations[j]) * D[:, j]


@pytest.mark.parametrize("seed", SEEDS)
def test_or1mp_and_geco(seed):
    """Wang et al. (2014): leading singular vectors of the residual, weights refitted. GECO (Shalev-Shwartz et al.,
    2011) refits r x r weights of the same vectors; `Factors` moves the vectors, too, and ends no higher."""
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((8, 3)) @ rng.standard_normal((3, 7))
    rows, cols = np.nonzero(rng.random(Y.shape) < 0.7)
    if len(set(rows)) < 8 or len(set(cols)) < 7:
        pytest.skip("a row without entries")
    y, A = Y[rows, cols], ps.RankOne(Y.shape).at(rows, cols)
    found = points(ps.LeastSquares(y), ps.lin(A), ps.FullyCorrective(), 3)
    x, seen, U, V = np.zeros(len(y)), [], [], []
    for point in found:
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-7)
        R = np.zeros(Y.shape)
        R[rows, cols] = y - x
        u, _, v = np.linalg.svd(R)
        U, V = [*U, u[:, 0]], [*V, v[0]]
        seen.append(np.outer(u[:, 0], v[0])[rows, cols])
        x = np.array(seen).T @ np.linalg.lstsq(np.array(seen).T, y, rcond=None)[0]
    every = np.array([np.outer(a, b)[rows, cols] for a in U[:3] for b in V[:3]]).T
    geco = 0.5 * np.sum((y - every @ np.linalg.lstsq(every, y, rcond=None)[0]) ** 2)
    stop = ps.Stop(iterations=3, rgap=None)
    r = ps.minimize(ps.LeastSquares(y), ps.lin(A), ps.NormCorrective(), refine=ps.refine.Factors(), stop=stop)
    assert r.value <= geco * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_enhancement_of_cogent(seed):
    """Rao, Shah and Wright (2015): best point of the hull of the atoms so far, by quadratic programming."""
    from scipy.optimize import nnls

    D, y = problem(seed)
    A = ps.Dictionary(0.5 * D, signed=True)
    found = points(ps.LeastSquares(y), ps.conv(A), ps.FullyCorrective(), 5, start=np.zeros(len(y)))
    S, x = [np.zeros(len(y))], np.zeros(len(y))
    for point in found:
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-6)
        j = np.abs(D.T @ (y - x)).argmax()
        S.append(0.5 * np.sign(D[:, j] @ (y - x)) * D[:, j])
        system = np.vstack([np.array(S).T, np.full(len(S), 1e4)])  # weights that sum to 1
        x = np.array(S).T @ nnls(system, np.append(y, 1e4))[0]


def test_backward_steps_of_cogent_and_foba():
    """Zhang (2011) and CoGEnT drop atoms that the fit can spare: `Prune`, a line of every run."""
    rng = np.random.default_rng(4)
    D = rng.standard_normal((40, 100))
    f, A = ps.LeastSquares(D[:, :8] @ rng.choice([-1.0, 1.0], 8)), ps.lin(ps.Dictionary(D))
    stop = ps.Stop(value=1e-9, iterations=40)
    sizes = [len(ps.minimize(f, A, ps.FullyCorrective(), stop=stop, refine=r).atoms) for r in (None, ps.refine.Prune())]
    assert sizes == [9, 8]


def test_boosting_with_trees_as_atoms():
    """Friedman (2001): each tree is fitted to the residual, and takes a line search. The set is an oracle of five
    lines; a tree is normalised, so that all atoms have one length."""
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = np.sin(X[:, 0]) + (X[:, 1] > 0)

    def stump(g):
        predicted = tree.DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, -g).predict(X)
        return predicted / (np.linalg.norm(predicted) or 1.0)

    found = points(ps.LeastSquares(y), ps.lin(stump, symmetric=False), ps.Plain(ps.LineSearch()), 6)
    x = np.zeros(len(y))
    for point in found:
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-9)
        h = tree.DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, y - x).predict(X)
        x = x + (h @ (y - x)) / (h @ h) * h


# ---------------------------------------------------------------------- homotopy, structured factors, total variation


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_homotopy_conditional_gradients(noise):
    """Yurtsever et al. (2018), Locatello et al. (2019): a constraint M x = b over a simplex, smoothed less and less."""
    rng = np.random.default_rng(0)
    M, b, y, beta = rng.standard_normal((2, 6)), np.zeros(2), rng.standard_normal(6), 0.7
    b = M @ rng.dirichlet(np.ones(6))
    exact = ps.LeastSquares(y)
    noisy = ps.Stochastic(lambda x, r: exact.value(x), lambda x, r: x - y + noise * r.standard_normal(6), seed=3)
    f = ps.Homotopy(noisy if noise else exact, lambda v, step: b, M, beta=beta)
    found = points(f, ps.conv(ps.Simplex(6)), ps.Plain(ps.OpenLoop(9)), 3000, start=np.full(6, 1 / 6))
    x, d, draws = np.full(6, 1 / 6), None, np.random.default_rng(3)
    for t, point in enumerate(found[:200]):
        np.testing.assert_allclose(point, x, rtol=0, atol=1e-9)
        g = x - y + (noise * draws.standard_normal(6) if noise else 0.0)
        rho = 4 / (t + 8) ** (2 / 3) if noise else 1.0
        d = g if d is None else (1 - rho) * d + rho * g
        z = np.eye(6)[(d + M.T @ (M @ x - b) * np.sqrt(t + 2) / beta).argmin()]
        x = x + 9 / (t + 9) * (z - x)
    violations = [np.linalg.norm(M @ p - b) for p in (found[30], found[3000])]
    assert violations[1] < 0.1 < violations[0]


def test_homotopy_takes_a_function_that_is_no_constraint():
    """min ||x - y||^2 / 2 + |x|_1 over a large box: soft thresholds."""
    y = np.array([2.0, -0.5, -1.5])
    f = ps.Homotopy(ps.LeastSquares(y), lambda v, beta: v - np.clip(v, -beta, beta), g=lambda v: float(abs(v).sum()))
    r = ps.minimize(f, ps.conv(3.0 * ps.Ball(3, np.inf)), ps.Plain(ps.OpenLoop()), stop=ps.Stop(iterations=20_000))
    np.testing.assert_allclose(r.x, [1.0, 0.0, -0.5], atol=0.05)
    assert "yurtsever2018conditional" in ps.citation(f, ps.conv(ps.Ball(3, 2)))


def test_structured_factors_of_counts():
    """Gunasekar et al. (2014): exponential-family PCA whose factors come from sets of atoms: sparse ones find the block
    of a few rows and columns, and every component keeps the structure; a pair is as good as the best of all pairs."""
    rng = np.random.default_rng(1)
    Y = rng.poisson(np.exp(np.outer(np.arange(12) < 3, 2.0 * (np.arange(9) < 4)))).astype(float)
    A = ps.Outer(ps.KSupport(12, 3), ps.KSupport(9, 4))
    r = ps.minimize(ps.Poisson(Y), ps.lin(A), ps.NormCorrective(), stop=ps.Stop(atoms=2))
    u, v = r.atoms[0].source
    assert (np.flatnonzero(u).tolist(), np.flatnonzero(v).tolist()) == ([0, 1, 2], [0, 1, 2, 3])
    assert all((len(np.flatnonzero(u)), len(np.flatnonzero(v))) == (3, 4) for u, v in (a.source for a in r.atoms))
    assert np.all(np.diff(r.trace.value) < 0)
    listed = ps.Outer(ps.Dictionary(rng.standard_normal((4, 6))), ps.Dictionary(rng.standard_normal((3, 5))))
    G = rng.standard_normal((4, 3))
    best = min(float(listed.A.atom(i).vector @ G @ listed.B.atom(j).vector) for i in range(6) for j in range(5))
    atoms, lower = listed.begin()(G, 1, -np.inf)
    assert lower <= best == pytest.approx(float(atoms[0].u @ G @ atoms[0].v))


def differences(n):
    """D x: the differences of neighbours."""
    return np.diff(np.eye(n), axis=0)


def test_fused_atoms_denoise_a_signal():
    """Total variation of a signal is the atomic norm of steps; its dual is a box seen through D'. Both ways agree."""
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 2.0, 1.0], 10) + 0.2 * rng.standard_normal(30)
    steps, price = np.tri(30, 29, -1), 0.8  # D times the k-th step is a unit vector
    fused = ps.penalty(price * ps.SignedBasis(29).through(steps)) + ps.lin(ps.Dictionary(np.ones((30, 1))))
    r = ps.minimize(ps.LeastSquares(y), fused, stop=ps.Stop(rgap=1e-10))
    box = ps.conv(price * ps.Ball(29, np.inf).through(differences(30).T))
    dual = ps.minimize(ps.LeastSquares(y), box, ps.FullyCorrective(), stop=ps.Stop(rgap=1e-10, iterations=2000))
    np.testing.assert_allclose(r.x, y - dual.x, atol=1e-4)
    assert len(np.flatnonzero(abs(np.diff(r.x)) > 1e-6)) == 3  # of 29


def test_total_variation_denoises_an_image():
    """The picture that Tibshirani (2015) denoises is y less its projection on D' of a box: D takes the differences of
    neighbours in rows and columns."""
    rng = np.random.default_rng(0)
    truth = np.zeros((8, 8))
    truth[2:6, 3:7] = 1.0
    y = (truth + 0.2 * rng.standard_normal((8, 8))).ravel()
    one = np.eye(8)
    D = np.concatenate([np.kron(differences(8), one), np.kron(one, differences(8))])
    box = ps.conv(0.1 * ps.Ball(len(D), np.inf).through(D.T))
    x = y - ps.minimize(ps.LeastSquares(y), box, ps.FullyCorrective(), stop=ps.Stop(rgap=1e-6, iterations=500)).x

    def error(picture):
        return np.linalg.norm(picture - truth.ravel())

    assert error(x) < 0.55 * error(y)
    slack = 0.1 * abs(D @ x).sum() - (y - x) @ x  # 0 at the minimum: the duality gap of the two problems
    assert 0 <= slack + 1e-9 < 1e-4
