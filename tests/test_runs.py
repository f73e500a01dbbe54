"""Runs that go on: from a result, from a file, and after the process was killed."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import pursuit as ps
from pursuit import checkpoints, refine
from pursuit._memory import Memory, Remembers, WithMemory
from pursuit.atoms import matrices

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 40)), RNG.standard_normal(20)
SQUARES, LOGISTIC, HUBER = ps.LeastSquares(Y), ps.Logistic(np.sign(Y)), ps.Huber(Y, 0.3)
UNKNOWN_L = ps.Smooth(lambda x: float(np.sum((x - Y) ** 4)), lambda x: 4.0 * (x - Y) ** 3)
ROWS, COLS = np.nonzero(RNG.random((9, 8)) < 0.8)
OBSERVED = RNG.standard_normal(len(ROWS))


def mean_of(rng):
    return Y + rng.standard_normal(20)


NOISY = ps.Stochastic(lambda x, rng: 0.5 * sum((x - mean_of(rng)) ** 2), lambda x, rng: x - mean_of(rng))

DICTIONARY, SIGNED = ps.Dictionary(X), ps.Dictionary(X, signed=True)
HULL, SPAN, CONE = ps.conv(0.9 * SIGNED), ps.lin(DICTIONARY), ps.cone(DICTIONARY)

STEPS = {
    "open loop": ps.OpenLoop(),
    "line search": ps.LineSearch(),
    "short": ps.ShortStep(),
    "backtracking": ps.ShortStep(L=ps.Backtracking()),
    "diameter": ps.DiameterStep(L=ps.Backtracking()),
    "curvature": ps.CurvatureStep(300.0),
}
UPDATES = {
    "away": (ps.Away(), HULL, CONE),
    "pairwise": (ps.Pairwise(), HULL, CONE),
    "blended pairwise": (ps.BlendedPairwise(), HULL),
    "away, backtracking": (ps.Away(ps.ShortStep(L=ps.Backtracking())), HULL, CONE),
    "norm-corrective": (ps.NormCorrective(), HULL, CONE, SPAN),
    "norm-corrective, several": (ps.NormCorrective(several=5), HULL, CONE, SPAN),
    "norm-corrective, backtracking": (ps.NormCorrective(L=ps.Backtracking()), HULL, CONE, SPAN),
    "norm-corrective, inner": (ps.NormCorrective(inner=3), HULL, CONE, SPAN),
    "fully corrective": (ps.FullyCorrective(), HULL, CONE, SPAN),
    "fully corrective, several": (ps.FullyCorrective(several=3), HULL, CONE, SPAN),
    "blended pursuit": (ps.BlendedPursuit(), SPAN),
    "accelerated pursuit": (ps.AcceleratedPursuit(seed=3), SPAN),
} | {f"plain, {name}": (ps.Plain(step), HULL, *([SPAN, CONE] if name[0] in "lsb" else [])) for name, step in STEPS.items()}

ORACLES = {
    "exact": ps.Exact(),
    "lazy": ps.Lazy(),
    "random": ps.RandomAtom(seed=4),
    "approximate": ps.Approximate(0.5, worst=False, seed=2),
    "screened": ps.Screened(),
}


def bits(r):
    """All that a run computed, but for the time it took."""
    atoms = [(a.source if isinstance(a.source, int) else None, a.coef, a.vector.tobytes()) for a in r.atoms]
    trace = [getattr(r.trace, name).tolist() for name in ps.Trace.COLUMNS if name != "seconds"]
    counts = r.iterations, r.oracle_calls, r.cached, r.refused, r.status
    return repr((r.x.tobytes(), r.value, r.gap, r.lower, r.weights.tobytes(), r.blocks.tolist(), atoms, counts, trace))


def check_that_halves_make_a_whole(tmp_path, f, domain, update=None, oracle=ps.Exact(), half=7, whole=15, **options):
    """`half` iterations and the others make the `whole`, in the same process and through a file."""

    def run(iterations, **more):
        stop = ps.Stop(iterations=iterations, rgap=None)
        return ps.minimize(f, domain, update, oracle=oracle, stop=stop, **options, **more)

    expected, first = run(whole), run(half)
    assert bits(run(whole, start=first)) == bits(expected)
    assert bits(run(whole, start=first)) == bits(expected)  # the first time has not changed the result
    assert bits(run(whole, checkpoint=first.save(tmp_path / "run.npz"))) == bits(expected)
    states = ps.iterate(f, domain, first.update, oracle=oracle, refine=first.refine, start=first)
    state = next(islice(states, max(expected.iterations - first.iterations, 0), None))
    assert state.iteration == expected.iterations and state.x.tobytes() == expected.x.tobytes()
    return expected


@pytest.mark.parametrize("f", [SQUARES, LOGISTIC, HUBER, UNKNOWN_L], ids=["squares", "logistic", "Huber", "unknown L"])
@pytest.mark.parametrize("name", UPDATES)
def test_half_a_run_and_the_other_half_are_the_whole_for_every_update(name, f, tmp_path):
    update, *domains = UPDATES[name]
    if f.L is None and name == "accelerated pursuit":
        pytest.skip("it needs L")
    for domain in domains:
        check_that_halves_make_a_whole(tmp_path, f, domain, update)


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
@pytest.mark.parametrize("name", ["plain, line search", "away", "blended pairwise", "fully corrective", "blended pursuit"])
def test_half_a_run_and_the_other_half_are_the_whole_for_every_oracle(name, oracle, tmp_path):
    update, *domains = UPDATES[name]
    for domain in domains:
        check_that_halves_make_a_whole(tmp_path, LOGISTIC, domain, update, oracle)


SETS = {
    "penalty": (SQUARES, ps.penalty(2.0 * SIGNED)),
    "sum": (HUBER, HULL + ps.lin(ps.Dictionary(np.ones((20, 1))))),
    "uncounted": (LOGISTIC, SPAN + ps.lin(ps.Dictionary(np.ones((20, 1))), counted=False)),
    "cone with a conjugate": (SQUARES, CONE + ps.lin(ps.Dictionary(np.ones((20, 1))))),
    "through a map": (SQUARES, ps.conv(3.0 * ps.SignedBasis(40).through(X))),
    "lifted": (ps.Ridge(SQUARES, 40), ps.lin(ps.SignedBasis(40).through(X, l2=0.3))),
    "groups": (SQUARES, ps.conv(2.0 * ps.Groups(np.arange(40) // 4).through(X))),
    "union": (SQUARES, ps.conv(SIGNED | ps.SignedBasis(20))),
    "ball": (SQUARES, ps.conv(ps.Ball(20, 3))),
    "box": (HUBER, ps.conv(ps.Box(-np.ones(20), np.ones(20)))),
    "negatives": (SQUARES, ps.lin(ps.Box(np.zeros(20), np.ones(20)))),
    "own oracle": (SQUARES, ps.conv(lambda g: -np.sign(g))),
    "nuclear": (ps.LeastSquares(RNG.standard_normal((9, 8))), ps.conv(4.0 * ps.RankOne((9, 8)))),
    "observed": (ps.LeastSquares(OBSERVED), ps.conv(4.0 * ps.RankOne((9, 8)).at(ROWS, COLS))),
    "spectrahedron": (ps.LeastSquares(RNG.standard_normal((8, 8))), ps.conv(2.0 * ps.Spectrahedron(8))),
    "matrices and entries": (
        ps.LeastSquares(RNG.standard_normal((9, 8))),
        ps.conv(2.0 * ps.RankOne((9, 8))) + ps.conv(ps.Dictionary(np.eye(72).reshape(9, 8, 72), signed=True)),
    ),
    "tensor": (ps.LeastSquares(RNG.standard_normal((4, 5, 3))), ps.conv(3.0 * ps.RankOneTensor((4, 5, 3)))),
    "bumps": (
        ps.LeastSquares(RNG.standard_normal(30)),
        ps.lin(ps.Parametric(ps.families.Gaussian(np.linspace(0, 1, 30), 0.1), [(0, 1)])),
    ),
    "stochastic": (NOISY, ps.conv(ps.Simplex(20))),
}


@pytest.mark.parametrize("update", [None, ps.FullyCorrective(several=2), ps.Plain(ps.LineSearch())], ids=repr)
@pytest.mark.parametrize("name", SETS)
def test_half_a_run_and_the_other_half_are_the_whole_for_every_set(name, update, tmp_path):
    f, domain = SETS[name]
    if isinstance(update, ps.Plain) and (len(domain.parts) > 1 or domain.parts[0].price):
        pytest.skip("walks serve one summand")
    update = ps.Plain(ps.OpenLoop()) if f is NOISY else update
    check_that_halves_make_a_whole(tmp_path, f, domain, update, half=3, whole=7)
