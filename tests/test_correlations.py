"""Correlations through a Gram matrix lead to the same atoms as plain products."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.correlations import Correlations
from pursuit.metrics import Diagonal, Operator
from pursuit.weights import WeightProblem

KINDS = ["random", "toeplitz", "clusters", "heavy", "duplicates"]


def make(kind, d, n, rng):
    D = rng.standard_t(1.5, (d, n)) if kind == "heavy" else rng.standard_normal((d, n))
    if kind == "toeplitz":
        for j in range(1, n):
            D[:, j] = 0.99 * D[:, j - 1] + np.sqrt(1 - 0.99**2) * D[:, j]
    if kind == "clusters":
        D = D[:, np.arange(n) // 20] + 0.1 * rng.standard_normal((d, n))
    if kind == "duplicates":
        D[:, 1::2] = D[:, ::2]
    return D / np.linalg.norm(D, axis=0)


class Run:
    """A fully corrective pursuit on columns of D, told which correlations to believe: free weights, or a simplex."""

    def __init__(self, D, f, hull=False, several=1):
        self.D, self.f, self.hull, self.several = D, f, hull, several
        self.metric = f.hessian(np.zeros(D.shape[0]))
        self.problem = WeightProblem([1.0 if hull else np.nan])
        self.sources, self.w = [], np.zeros(0)

    @property
    def grad(self):
        x = self.D[:, self.sources] @ self.w if self.sources else np.zeros(self.D.shape[0])
        return self.f.value_and_grad(x)[1]

    def best(self, c):
        return [int(j) for j in np.argsort(c if self.hull else -np.abs(c), kind="stable")[: self.several]]

    def step(self, c):
        chosen = self.best(c)
        for j in chosen:
            if j not in self.sources:
                self.sources.append(j)
                S = self.D[:, self.sources]
                self.problem.append(S.T @ self.metric(self.D[:, j]), self.hull)
                self.w = np.append(self.w, 1.0 if self.hull and len(self.w) == 0 else 0.0)
        self.w = self.problem.descend(self.D[:, self.sources].T @ self.grad, self.w)
        return chosen


def kept(D, metric, c0, **options):
    gram = D.T @ np.stack([metric(column) for column in D.T], axis=1)
    return Correlations(D, metric, c0, gram, radius=np.linalg.norm(D, axis=0).max(), **options)


def follow(D, f, steps, hull=False, several=1):
    """Run with plain products, checking at every point that the other way names the same atoms."""
    run = Run(D, f, hull, several)
    C = kept(D, run.metric, D.T @ run.grad, several=several, signed=not hull)
    for _ in range(steps):
        grad = run.grad
        plain = D.T @ grad
        c = C.correlations(grad, run.sources, run.w)
        assert run.best(c) == run.best(plain)
        assert (np.sign(c[run.best(c)]) == np.sign(plain[run.best(c)])).all()
        scale = np.linalg.norm(f.value_and_grad(0 * grad)[1]) + np.abs(run.w).sum()
        assert np.abs(c - plain).max() <= 1e4 * np.finfo(D.dtype).eps * scale
        run.step(plain)
    return C


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["C", "F"])
def test_whole_runs_of_omp_find_the_same_atoms(kind, layout, rng):
    D = np.array(make(kind, 150, 900, rng), order=layout)
    y = D[:, :600:20] @ rng.standard_normal(30) + 0.02 * rng.standard_normal(150)
    C = follow(D, ps.LeastSquares(y), 60)
    assert C.tally.passes == 0 or kind in {"duplicates", "heavy", "toeplitz"}  # ties, and the end of the run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("several", [1, 5])
def test_whole_runs_over_a_hull_find_the_same_atoms(kind, several, rng):
    D = np.asfortranarray(make(kind, 100, 500, rng))
    y = D[:, :300:20] @ rng.dirichlet(np.ones(15)) * 0.9
    follow(D, ps.LeastSquares(y), 30, hull=True, several=several)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_finds_the_same_atoms(kind, rng):
    D = np.asfortranarray(make(kind, 120, 700, rng))
    assert follow(D, ps.LeastSquares(rng.standard_normal(120)), 50).tally.passes < 50


def test_float32_finds_the_same_atoms(rng):
    D = np.asfortranarray(make("random", 100, 600, rng), dtype=np.float32)
    run = Run(D.astype(np.float64), ps.LeastSquares(rng.standard_normal(100)))
    C = kept(D, run.metric, D.T @ run.grad.astype(np.float32))
    for _ in range(40):
        grad = run.grad.astype(np.float32)
        plain = D.T @ grad
        c = C.correlations(grad, run.sources, run.w)
        assert c.dtype == np.float32
        assert run.best(c) == run.best(plain)
        run.step(plain)
    assert C.tally.passes < 40


@pytest.mark.parametrize("hull", [False, True])
def test_weights_and_quadratics_have_their_own_metric(hull, rng):
    D = np.asfortranarray(make("random", 80, 400, rng))
    y = D[:, :40:4] @ rng.dirichlet(np.ones(10)) + 0.1 * rng.standard_normal(80)
    H = rng.standard_normal((80, 80))
    H = H @ H.T / 80 + np.eye(80)
    for f in (ps.LeastSquares(y, weights=rng.random(80) + 0.5), ps.Quadratic(H, -H @ y)):
        C = follow(D, f, 30, hull=hull)
        assert C.tally.passes <= (8 if hull else 0)  # at the optimum over a hull all active atoms are equally good


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    hull=st.booleans(),
    several=st.integers(1, 3),
    exponents=st.tuples(st.integers(-80, 80), st.integers(-60, 60)),
)
def test_any_scale_finds_the_same_atoms(seed, kind, hull, several, exponents):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(8, 60)), int(rng.integers(20, 150))
    D = np.asfortranarray(make(kind, d, n, rng) * 10.0 ** exponents[1])
    y = D[:, :5] @ rng.random(5) * 10.0 ** exponents[0] if rng.random() < 0.5 else 10.0 ** exponents[0] * rng.random(d)
    run = Run(D, ps.LeastSquares(y), hull, several)
    C = kept(D, run.metric, D.T @ run.grad, several=several, signed=not hull)
    for _ in range(min(12, d // several)):
        grad = run.grad
        plain = D.T @ grad
        assert run.best(C.correlations(grad, run.sources, run.w)) == run.best(plain)
        run.step(plain)


def test_an_exactly_sparse_signal_is_followed_into_the_rounding(rng):
    D = np.asfortranarray(make("random", 90, 500, rng))
    y = D[:, :20] @ rng.standard_normal(20)
    C = follow(D, ps.LeastSquares(y), 40)  # from step 20 on the residual is noise
    assert C.tally.passes >= 10


# ---------------------------------------------------------------------- atoms that come and go


def test_sources_may_leave_return_repeat_and_change_order(rng):
    D, y = np.asfortranarray(make("random", 60, 300, rng)), rng.standard_normal(60)
    f = ps.LeastSquares(y)
    C = kept(D, f.metric, D.T @ -y)
    for _ in range(60):
        sources = rng.integers(0, 40, int(rng.integers(0, 20)))
        coefs = np.where(rng.random(len(sources)) < 0.3, 0.0, rng.standard_normal(len(sources)))
        grad = D[:, sources] @ coefs - y
        c, plain = C.correlations(grad, sources, coefs), D.T @ grad
        assert np.allclose(c, plain, atol=1e-12)
        assert np.abs(c).argmax() == np.abs(plain).argmax()


def test_a_gradient_that_does_not_belong_to_the_weights_is_noticed(rng):
    D, y = np.asfortranarray(make("random", 60, 300, rng)), rng.standard_normal(60)
    C = kept(D, Diagonal(), D.T @ -y)
    other = rng.standard_normal(60)
    assert np.array_equal(C.correlations(other, [1, 2], [1.0, 2.0]), D.T @ other)


def test_a_gram_matrix_with_nan_or_of_something_else_is_noticed(rng):
    D, y = make("random", 60, 300, rng), rng.standard_normal(60)
    for gram in (np.full((300, 300), np.nan), 2.0 * D.T @ D):
        C = Correlations(D, Diagonal(), D.T @ -y, gram, radius=1.0)
        grad = D[:, 3] - y
        assert np.array_equal(C.correlations(grad, [3], [1.0]), D.T @ grad)


def test_a_metric_that_rounds_badly_is_noticed(rng):
    D, y = np.asfortranarray(make("random", 60, 300, rng)), rng.standard_normal(60)
    sloppy = Operator(lambda v: v * (1 + 1e-7), (60,))
    C = kept(D, sloppy, D.T @ -y)
    grad = D[:, 3] - y
    assert np.array_equal(C.correlations(grad, [3], [1.0]), D.T @ grad)


def test_a_given_gram_matrix_needs_no_product_at_all(rng):
    D = make("random", 100, 400, rng)
    assert follow(D, ps.LeastSquares(rng.standard_normal(100)), 40).tally.passes == 0


def test_where_rounding_rules_attempts_become_rare(monkeypatch, rng):
    attempts, settled = [], Correlations._correct_best
    monkeypatch.setattr(Correlations, "_correct_best", lambda *a: attempts.append(settled(*a)) or attempts[-1])
    D = make("random", 90, 400, rng)
    follow(D, ps.LeastSquares(D[:, :20] @ rng.standard_normal(20)), 80)
    assert attempts.count(False) <= 8  # after 1, 3, 7, ... calls
