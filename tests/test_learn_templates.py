"""`learn(..., convolutional=True)`: templates that repeat in a recording."""

from dataclasses import replace

import numpy as np
import pytest

import pursuit as ps
from pursuit.dictionaries import templates
from pursuit.dictionaries.stretches import likeness
from pursuit.dictionaries.templates import Plan, autocorrelation, better_of


def recording(channels=1, seed=0):
    rng = np.random.default_rng(seed)
    templates = rng.standard_normal((3, channels, 20)) * np.hanning(22)[1:-1]
    if channels > 1:
        templates = rng.standard_normal((3, channels, 1)) * templates[:, :1]
    templates /= np.linalg.norm(templates, axis=(1, 2), keepdims=True)
    y = 0.02 * rng.standard_normal((channels, 1500))
    for i in range(45):
        t = int(rng.integers(1480))
        y[:, t : t + 20] += rng.uniform(0.7, 1.5) * templates[i % 3]
    return (y[0] if channels == 1 else y), templates


@pytest.mark.parametrize(("channels", "rank"), [(1, None), (3, 1)])
@pytest.mark.parametrize("code", [{"threshold": 0.1}, {"method": "lasso", "penalty": 0.2, "positive": True}])
def test_planted_templates_are_found_and_the_objective_never_rises(channels, rank, code):
    y, planted = recording(channels)
    learned = ps.learn(y, templates=3, length=20, convolutional=True, rank=rank, code=code, sweeps=3)
    found = [max(likeness(t, d.reshape(channels, -1)) for d in learned.templates) for t in planted]
    assert min(found) > 0.9
    assert (np.diff(learned.objective) <= 1e-12 * learned.objective[0]).all()
    if rank == 1:
        assert all(np.linalg.matrix_rank(d, 1e-9) == 1 for d in learned.templates)
    A = ps.Convolutional(learned.templates, shape=y.shape)
    r = y - A.synthesize(learned.events)
    price = code.get("penalty", 0) * np.abs(learned.events.weight).sum() + 0.05 * len(learned.events) * (
        "threshold" in code
    )
    assert 0.5 * np.vdot(r, r) + price == pytest.approx(learned.objective[-1])


def test_learning_goes_on_where_it_ended():
    y, _ = recording()
    options = {"templates": 3, "length": 20, "convolutional": True, "code": {"threshold": 0.1}}
    first = ps.learn(y, **options, sweeps=2)
    more = ps.learn(y, **options, sweeps=2, start=first)
    assert len(more.objective) == 4
    assert more.objective[2] <= more.objective[1]
    assert len(ps.learn(y, **options, sweeps=0, start=first).objective) == 2


def test_searching_again_finds_better_events_and_seeds_differ(monkeypatch):
    y, _ = recording()
    options = {"templates": 3, "length": 20, "convolutional": True, "code": {"threshold": 0.1}, "sweeps": 4}
    several = [ps.learn(y, **options, seed=seed).objective[-1] for seed in range(3)]
    assert len(set(several)) == 3
    monkeypatch.setattr(templates, "SEARCHES", 0)
    assert min(several) < ps.learn(y, **options).objective[-1]


def test_events_of_each_stretch_are_the_better_ones():
    A = ps.Convolutional([[1.0, 2.0, 1.0]], shape=(40,))
    at = np.array([5, 25])
    truth = ps.Events(np.zeros(2, int), at, np.ones(2), np.zeros(2))
    y = A.synthesize(truth)[None]
    plan = Plan(y, {"threshold": 0.1, "method": "omp"}, False, np.random.default_rng(0))
    left, right = (replace(truth, position=at + by) for by in ([0, 1], [1, 0]))
    both = better_of(plan, np.array([[[1.0, 2.0, 1.0]]]), left, right)
    assert sorted(both.position) == [5, 25]


def test_the_autocorrelation_of_events_is_that_of_their_train():
    rng = np.random.default_rng(1)
    p, w = rng.integers(0, 60, 25), rng.standard_normal(25)
    z = np.bincount(p, w, 80)
    np.testing.assert_allclose(autocorrelation(p, w, 9), [z[: 80 - d] @ z[d:] for d in range(9)], atol=1e-12)


def test_silence_and_noise_give_templates_of_norm_one():
    for y in (np.zeros(300), np.random.default_rng(2).standard_normal(300)):
        learned = ps.learn(y, templates=4, length=10, convolutional=True, code={"threshold": 1e3}, sweeps=1)
        np.testing.assert_allclose(np.linalg.norm(learned.templates, axis=1), 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [({"templates": 0}, "templates is 0"), ({"length": 0}, "length is 0"), ({"length": 999}, "length is 999"),
     ({"rank": 2}, "rank is 2"), ({"atoms": 3}, "atoms is 3"), ({"code": {"method": "ols"}}, "code names method"),
     ({"code": {"method": "lasso"}}, "no 'penalty'"), ({"start": np.ones((2, 4))}, "start is"),
     ({"sweeps": -1}, "sweeps"),     ({"convolutional": False, "atoms": 2}, "templates is 2")],
)  # fmt: skip
def test_wrong_calls_are_refused(given, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ps.learn(np.ones(50), **({"templates": 2, "length": 5, "convolutional": True} | given))
