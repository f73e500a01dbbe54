"""The Hessian that is learned from gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.updates.learned import LearnedHessian


def everything(n):
    """An active set with all basis vectors, whose Gram matrix in a metric is the metric."""
    space = ps.Space.default((n,))
    active = ps.lin(ps.SignedBasis(n)).active_set(space)
    for i in range(n):
        active.enter(ps.SparseAtom([i], [1.0], (n,), source=i))
    return space, active


def plain_bfgs(pairs, n):
    """The update formula, pair by pair, from the multiple of the identity that the last pair gives."""
    s, y = pairs[-1]
    B = (y @ y) / (s @ y) * np.eye(n)
    for s, y in pairs:
        B = B - np.outer(B @ s, B @ s) / (s @ B @ s) + np.outer(y, y) / (s @ y)
    return B


@given(seed=st.integers(0, 1000), count=st.integers(1, 6), scale=st.sampled_from([1e-8, 1.0, 1e8]))
def test_it_is_the_matrix_of_bfgs(seed, count, scale):
    rng = np.random.default_rng(seed)
    n = 8
    Q = rng.standard_normal((n, n))
    H = scale * (Q @ Q.T + 0.1 * np.eye(n))
    space, active = everything(n)
    learned, x, pairs = LearnedHessian(space), rng.standard_normal(n), []
    learned.observe(x, H @ x)
    for _ in range(count):
        step = rng.standard_normal(n)
        x = x + step
        learned.observe(x, H @ x)
        pairs.append((step, H @ step))
    B = learned.gram(active, np.arange(n))
    np.testing.assert_allclose(B, plain_bfgs(pairs, n), rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(B @ pairs[-1][0], pairs[-1][1], rtol=1e-6, atol=1e-6 * scale)
    some = np.array([1, 4, 6])
    np.testing.assert_allclose(learned.gram(active, some), B[np.ix_(some, some)], rtol=1e-12)
    assert np.linalg.eigvalsh(B)[0] > 0


def test_steps_that_depend_on_each_other_are_forgotten_but_for_the_last(rng):
    n = 5
    space, active = everything(n)
    learned, x = LearnedHessian(space), np.zeros(n)
    h, step = rng.uniform(0.5, 2.0, n), rng.standard_normal(n)
    learned.observe(x, h * x)
    for _ in range(3):  # the same step again and again
        x = x + step
        learned.observe(x, h * x)
    np.testing.assert_allclose(learned.gram(active, np.arange(n)), plain_bfgs([(step, h * step)], n), rtol=1e-9)


def test_without_a_hessian_the_default_takes_few_calls_over_a_span(rng):
    D, y = rng.standard_normal((200, 100)), rng.standard_normal(200)
    f = ps.Smooth(lambda x: float(np.sum(np.abs(x - y) ** 3)) / 3, lambda x: (x - y) * np.abs(x - y))
    r = ps.minimize(f, ps.lin(ps.Dictionary(D)))
    assert r.status is ps.Status.STATIONARY
    assert r.oracle_calls <= 15
    best = ps.minimize(f, ps.lin(ps.Dictionary(D)), ps.NormCorrective(several=64), stop=ps.Stop(iterations=300))
    assert r.value == pytest.approx(best.value, rel=1e-9)
