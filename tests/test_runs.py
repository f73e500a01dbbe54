"""Runs that go on: from a result, from a file, and after the process was killed."""

import inspect
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import pytest

import pursuit as ps
from pursuit.atoms import matrices
from pursuit.run import stored

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
ONES = np.ones(20)
HULL, SPAN, CONE = ps.conv(0.9 * SIGNED), ps.lin(DICTIONARY), ps.cone(DICTIONARY)

STEPS = {
    "open loop": ps.OpenLoop(),
    "open loop, log": ps.OpenLoop("log"),
    "monotone": ps.Monotone(ps.OpenLoop()),
    "secant": ps.LineSearch(secant=True),
    "line search": ps.LineSearch(),
    "short": ps.ShortStep(),
    "backtracking": ps.ShortStep(L=ps.Backtracking()),
    "diameter": ps.DiameterStep(L=ps.Backtracking()),
    "curvature": ps.CurvatureStep(300.0),
    "auto-conditioned": ps.AutoConditioned(),
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
    "within faces": (ps.DecompositionInvariant(), ps.conv(ps.Simplex(20))),
    **{
        f"blocks, {order}": (ps.Blocks(update, order=order, certify=2), HULL + ps.conv(ps.Box(-ONES, ONES)))
        for order, update in {
            "cyclic": ps.Away(),
            "random": ps.FullyCorrective(),
            "gap": ps.Plain(ps.ShortStep()),
            "lazy": ps.NormCorrective(several=3),
            "full": ps.Pairwise(),
        }.items()
    },
} | {
    f"plain, {name}": (ps.Plain(step), HULL, *([SPAN, CONE] if name[0] in "lsb" else []))
    for name, step in STEPS.items()
}

ORACLES = {
    "exact": ps.Exact(),
    "lazy": ps.Lazy(),
    "random": ps.RandomAtom(seed=4),
    "approximate": ps.Approximate(0.5, worst=False, seed=2),
}


def bits(r):
    """All that a run computed, but for the time it took."""
    atoms = [(a.source if isinstance(a.source, int) else None, a.coef, a.vector.tobytes()) for a in r.atoms]
    trace = [getattr(r.trace, name).tolist() for name in ps.Trace.COLUMNS if name != "seconds"]
    counts = r.iterations, r.oracle_calls, r.cached, r.refused, r.status
    numbers = r.value, r.gap, r.lower, r.x.tobytes(), r.weights.tobytes(), r.blocks.tolist()
    return repr((numbers, atoms, counts, trace, packed(r.memory, r.domain)))


def packed(memory, domain):
    packer = stored.Packer(domain)
    return packer.pack(memory), packer.atoms, [a.tobytes() for a in packer.arrays]


def check_that_halves_make_a_whole(tmp_path, f, domain, update=None, oracle=None, half=7, whole=15):
    """`half` iterations and the others make the `whole`, in the same process and through a file."""

    def run(iterations, **more):
        stop = ps.Stop(iterations=iterations, rgap=None)
        return ps.minimize(f, domain, update, oracle=oracle, stop=stop, keep=True, **more)

    expected, first = run(whole), run(half)
    assert bits(run(whole, start=first)) == bits(expected)
    assert bits(run(whole, start=first)) == bits(expected)  # the first time has not changed the result
    assert bits(run(whole, checkpoint=first.save(tmp_path / "run.npz"))) == bits(expected)
    states = ps.iterate(f, domain, first.update, oracle=oracle, refine=first.refine, start=first)
    state = next(islice(states, max(expected.iterations - first.iterations, 0), None))
    assert state.iteration == expected.iterations and state.x.tobytes() == expected.x.tobytes()
    return expected


def test_every_update_step_and_oracle_of_the_package_is_in_the_tables():
    """So that a new one is asked whether it remembers what it must; see `pursuit.state`."""
    begun = [getattr(ps, name) for name in ps.__all__ if hasattr(getattr(ps, name), "begin")]
    first = {part: [*inspect.signature(part.begin).parameters, None, None][1] for part in begun}  # after self
    tables = {*ORACLES.values(), *STEPS.values(), *(update for update, *_ in UPDATES.values())}
    contracts = {ps.Update, ps.Oracle, ps.StepRule}
    missing = {part for part in begun if first[part] in ("f", "part")} - contracts - {type(part) for part in tables}
    assert not missing


@pytest.mark.parametrize("f", [SQUARES, LOGISTIC, HUBER, UNKNOWN_L], ids=["squares", "logistic", "Huber", "unknown L"])
@pytest.mark.parametrize("name", UPDATES)
def test_half_a_run_and_the_other_half_are_the_whole_for_every_update(name, f, tmp_path):
    update, *domains = UPDATES[name]
    if f.L is None and name == "accelerated pursuit":
        pytest.skip("it needs L")
    for domain in domains:
        check_that_halves_make_a_whole(tmp_path, f, domain, update)


@pytest.mark.parametrize("oracle", ORACLES.values(), ids=ORACLES)
@pytest.mark.parametrize(
    "name", ["plain, line search", "away", "blended pairwise", "fully corrective", "blended pursuit"]
)
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
    "cone without a list": (ps.LeastSquares(RNG.standard_normal((6, 6))), ps.cone(ps.Spectrahedron(6))),
    "conjugate in a range": (
        ps.Huber(Y, 0.1),
        ps.lin(ps.Dictionary(np.ones((20, 1)))) + ps.penalty(0.05 * ps.Dictionary(X[:, :30], signed=True)),
    ),
    "union of kinds": (
        ps.LeastSquares(RNG.standard_normal((9, 8))),
        ps.conv(ps.RankOne((9, 8)) | ps.Dictionary(RNG.standard_normal((9, 8, 30)), signed=True)),
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


@pytest.mark.parametrize("name", ["nuclear", "observed", "spectrahedron", "union of kinds", "cone without a list"])
def test_random_starts_of_eigenvectors_go_on(name, tmp_path, monkeypatch):
    monkeypatch.setattr(matrices, "MAX_LAPACK_SIDE", 2)
    f, domain = SETS[name]
    A = domain.parts[0].A
    for update in (ps.Pairwise(), ps.FullyCorrective(several=2)):
        check_that_halves_make_a_whole(tmp_path, f, type(domain)(A), update, half=4, whole=9)


@pytest.mark.parametrize("name", ["polytope", "transport", "piece of a product"])
def test_linear_programs_go_on_from_the_same_vertex(name, tmp_path):
    """Vertices of one value, and rounding, depend on the vertex from which the search began."""
    rng = np.random.default_rng(1)
    polytope = ps.conv(ps.Polytope(rng.random((30, 60)), np.full(30, 8.0), bounds=(0, 1)))
    masses = rng.random(9), rng.random(8)
    domain = {
        "polytope": polytope,
        "transport": ps.conv(ps.Transport(masses[0] / masses[0].sum(), masses[1] / masses[1].sum())),
        "piece of a product": ps.product(polytope, ps.conv(ps.Simplex(12))),
    }[name]
    shape = {"polytope": 60, "transport": (9, 8), "piece of a product": 72}[name]
    f, update = ps.LeastSquares(rng.random(shape)), ps.Pairwise() if len(domain.parts) == 1 else ps.FullyCorrective()
    check_that_halves_make_a_whole(tmp_path, f, domain, update, half=10, whole=30)


def test_an_active_set_keeps_the_order_in_which_kinds_of_atoms_are_added_up():
    sets = [ps.cone(ps.SignedBasis(5)).active_set(ps.Space.default((5,))) for _ in range(2)]
    for atom in (ps.SparseAtom([0], [1.0], (5,), 0), ps.Atom(np.ones(5), 1), ps.SparseAtom([2], [1.0], (5,), 2)):
        sets[0].enter(atom)
    sets[0].refresh()
    sets[0].keep(np.array([False, True, True]))
    sets[1].restore(sets[0].state())
    assert sets[0].state()["frames"] == sets[1].state()["frames"] == [1, 0]


class Still(ps.Update):
    """An update that does nothing."""

    def begin(self, f, domain, space):
        return lambda now, active: None

    def __repr__(self):
        return "Still()"


@dataclass(eq=False)
class EveryThird(ps.Stateful):
    step: Any
    n: int = field(default=0, init=False)

    def __call__(self, now, active):
        self.n += 1
        if self.n % 3 == 0:
            self.step(now, active)


class Counting(ps.Update):
    """An update of the user's with a state: every third step is one towards the oracle's atom."""

    descends = False

    def begin(self, f, domain, space):
        return EveryThird(ps.Plain(ps.OpenLoop()).begin(f, domain, space))

    def __repr__(self):
        return "Counting()"


def test_an_update_of_ones_own_can_remember(tmp_path):
    check_that_halves_make_a_whole(tmp_path, SQUARES, HULL, Counting())


def test_arrays_of_another_library_come_back_in_it(tmp_path):
    xp = pytest.importorskip("array_api_strict")
    f, A = ps.LeastSquares(xp.asarray(Y)), ps.Dictionary(xp.asarray(X), signed=True)
    stops = [ps.Stop(iterations=n, rgap=None) for n in (4, 9)]
    half, whole = (ps.minimize(f, ps.conv(0.9 * A), ps.Pairwise(), stop=stop, keep=True) for stop in stops)
    half.save(tmp_path / "run.npz")
    for options in ({"start": half}, {"checkpoint": tmp_path / "run.npz"}):
        r = ps.minimize(f, ps.conv(0.9 * A), ps.Pairwise(), stop=stops[1], **options)
        assert type(r.x) is type(whole.x) and bool(xp.all(r.x == whole.x)) and r.gap == whole.gap


# ------------------------------------------------------------------ what is continued, and what is not


def open_loop(iterations, f=SQUARES, domain=HULL, **options):
    stop = ps.Stop(iterations=iterations, rgap=None)
    return ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=stop, keep=True, **options)


def test_a_problem_that_is_made_again_is_the_same():
    again = open_loop(
        20, ps.LeastSquares(Y.copy()), ps.conv(0.9 * ps.Dictionary(X.copy(), signed=True)), start=open_loop(9)
    )
    assert bits(again) == bits(open_loop(20))


def changed(a, place):
    b = a.copy()
    b[place] *= 1.0 + 1e-6
    return b


OTHERS = {
    "another target": (ps.LeastSquares(changed(Y, 7)), HULL),
    "another radius": (SQUARES, ps.conv(1.1 * SIGNED)),
    "another dictionary": (SQUARES, ps.conv(0.9 * ps.Dictionary(changed(X, (3, 33)), signed=True))),
    "another objective": (HUBER, HULL),
    "another weight": (ps.LeastSquares(Y, weights=changed(np.ones(20), 3)), HULL),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_result_of_another_problem_is_only_a_first_point(name, tmp_path):
    f, domain = OTHERS[name]
    if name != "another dictionary":
        begun = open_loop(0, f, domain, start=open_loop(9))
        assert begun.iterations == 0 and len(begun.trace) == 1 and begun.lower < 0.5 * begun.value
    file = open_loop(9).save(tmp_path / "run.npz")
    part = "domain" if name in ("another radius", "another dictionary") else "f"
    with pytest.raises(ValueError, match=rf"the checkpoint of another run: .*\b{part}\b.* differs; give another name"):
        open_loop(20, f, domain, checkpoint=file)


def flows(demand, *more):
    """Flows whose first point has empty edges, so that routes there cost nothing whatever the demand is."""
    trips = np.zeros((4, 4))
    trips[0, [1, 3]] = 1.0, demand
    return ps.LeastSquares(np.zeros(5 + len(more))), ps.conv(
        ps.Flows([(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), *more], trips)
    )


@pytest.mark.parametrize("demand", [1.5, 2.5])
def test_a_result_of_flows_with_another_demand_is_no_start(demand, tmp_path):
    first = ps.minimize(*flows(2.0), keep=True)
    assert len(ps.minimize(*flows(2.0), start=first).trace) == len(first.trace)
    with pytest.raises(ValueError, match=r"start is a Result with atoms that conv\(Flows\(.*\)\) does not have; leave"):
        ps.minimize(*flows(demand), start=first)
    with pytest.raises(ValueError, match=r"another run: summand 0 of domain differs"):
        ps.minimize(*flows(demand), checkpoint=first.save(tmp_path / "run.npz"))


def test_a_set_that_has_grown_is_another_one():
    """f = (x_1 - 1/2)^2 / 2 + (x_1 + x_2 - 2)^2 / 2, whose gradient at the first point (1, 1) has no second entry."""
    small, large = (ps.conv(ps.Box(np.zeros(2), np.array([1.0, c]))) for c in (1.0, 2.0))
    f = ps.Quadratic(np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([-2.5, -2.0]))
    first = ps.minimize(f, small, keep=True)
    np.testing.assert_allclose(first.start, [1.0, 1.0])
    again = ps.minimize(f, large, start=first)
    np.testing.assert_allclose(again.x, [0.5, 1.5], atol=1e-3)


def test_data_that_the_first_point_does_not_show_are_looked_at(tmp_path):
    """Over a span a run begins at 0, where the gradient of a quadratic does not depend on H."""
    one, other = (ps.Quadratic(c * np.eye(20), Y) for c in (1.0, 2.0))
    quartics = [
        ps.Smooth(lambda x, c=c: float(Y @ x + c * np.sum(x**4)), lambda x, c=c: Y + 4 * c * x**3) for c in (1, 2)
    ]
    for f, g in ((one, other), quartics):
        first = ps.minimize(f, SPAN, ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=2, rgap=None), keep=True)
        again = ps.minimize(g, SPAN, ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=0), start=first)
        assert again.iterations == 0
    first = ps.minimize(quartics[0], SPAN, ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=2, rgap=None), keep=True)
    file = first.save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="another run: f at the last point differs"):
        ps.minimize(quartics[1], SPAN, ps.Plain(ps.LineSearch()), checkpoint=file)


def test_functions_and_sets_of_ones_own_are_the_same_only_if_they_are_one_object():
    """Numbers at two points do not tell whether two functions are equal, and a bound must not come from another."""

    def made():
        f = ps.Smooth(lambda x: float(np.sum((x - Y) ** 2)), lambda x: 2.0 * (x - Y), L=2.0)
        return (f, HULL), (SQUARES, ps.conv(lambda g: -np.sign(g)))

    for (f, domain), (again, anew) in zip(made(), made(), strict=True):
        first = open_loop(9, f, domain)
        assert open_loop(9, f, domain, start=first).iterations == 9
        assert len(open_loop(0, again, anew, start=first).trace) == 1


def test_another_method_begins_at_the_point_and_is_refused_a_file(tmp_path):
    first = open_loop(9)
    assert ps.minimize(SQUARES, HULL, ps.Away(), start=first, stop=ps.Stop(iterations=0)).iterations == 0
    with pytest.raises(ValueError, match="another run: update differs"):
        ps.minimize(SQUARES, HULL, ps.Away(), checkpoint=first.save(tmp_path / "run.npz"))


@pytest.mark.parametrize("evaluation", [12, 13, 20])
def test_after_ctrl_c_a_run_goes_on_with_its_iterations_and_its_bound(evaluation):
    calls = []

    def value(x):
        calls.append(1)
        if len(calls) == evaluation:
            raise KeyboardInterrupt
        return float(np.sum((x - Y) ** 2))

    f = ps.Smooth(value, lambda x: 2.0 * (x - Y), L=2.0)
    stop = ps.Stop(iterations=40, rgap=None)
    r = ps.minimize(f, HULL, ps.Plain(ps.OpenLoop()), stop=stop, keep=True)
    assert r.status is ps.Status.INTERRUPTED
    again, whole = (ps.minimize(f, HULL, ps.Plain(ps.OpenLoop()), start=start, stop=stop) for start in (r, None))
    assert again.iterations == 40 and len(again.trace) == 41
    np.testing.assert_allclose(again.trace.value, whole.trace.value, rtol=1e-12)
    np.testing.assert_allclose(again.trace.gap, whole.trace.gap, rtol=1e-9)


# ------------------------------------------------------------------ files


def test_a_checkpoint_that_has_ended_is_returned_and_goes_on_with_a_later_limit(tmp_path):
    file = tmp_path / "run.npz"
    first = open_loop(9, checkpoint=file)
    assert bits(open_loop(9, checkpoint=file)) == bits(first)
    assert bits(open_loop(20, checkpoint=str(file))) == bits(open_loop(20))


def test_nothing_in_a_checkpoint_is_pickled_and_columns_are_numbers(tmp_path):
    file = ps.minimize(SQUARES, HULL, ps.Away(), stop=ps.Stop(iterations=9, rgap=None), checkpoint=tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as archive:
        text = json.loads(archive["text"].tobytes())
        assert all(archive[name].dtype.kind in "fiub" for name in archive.files)
    assert {kind for kind, _ in text["atoms"]} == {"own"} and len(text["atoms"]) >= len(file.atoms)


def test_the_last_two_files_are_kept_and_a_damaged_one_is_replaced_by_the_one_before(tmp_path):
    file = tmp_path / "run.npz"
    open_loop(9, checkpoint=file)
    open_loop(12, checkpoint=file)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.npz", "run.previous.npz"]
    before, last = ((tmp_path / name).read_bytes() for name in ("run.previous.npz", "run.npz"))
    for damaged in (b"", last[: len(last) // 2], last[:500] + bytes(40) + last[540:], None):
        (tmp_path / "run.previous.npz").write_bytes(before)
        file.write_bytes(damaged) if damaged is not None else file.unlink()
        assert bits(open_loop(20, checkpoint=file)) == bits(open_loop(20))
    for each in tmp_path.iterdir():
        each.write_text("something else")
    with pytest.raises(
        ValueError, match="is no checkpoint of a run, or it is damaged; give another name, or delete it"
    ):
        open_loop(20, checkpoint=file)


def test_what_cannot_be_stored_is_refused_at_once(tmp_path):
    class Path(ps.Atom):
        pass

    calls = []

    def oracle(make):
        def lmo(g):
            calls.append(1)
            return make(-np.sign(g))

        return lmo

    for make, said in (
        (Path, "atoms of the kind Path cannot be stored"),
        (lambda v: ps.Atom(v, source={v[0]}), "sources"),
    ):
        calls.clear()
        with pytest.raises(TypeError, match=said):
            ps.minimize(SQUARES, ps.conv(oracle(make)), checkpoint=tmp_path / "run.npz")
        assert len(calls) <= 3 and not list(tmp_path.iterdir())
    for options, said in (
        ({"checkpoint": 3}, "checkpoint is 3; give the name of a file"),
        ({"checkpoint": tmp_path / "a" / "run.npz"}, "in a folder that does not exist"),
        ({"checkpoint": tmp_path / "run.npz", "every": -1}, "every is -1; give the seconds"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            open_loop(3, **options)
    unbounded = ps.minimize(ps.Smooth(lambda x: float(x[0]), lambda x: np.eye(2)[0]), ps.lin(ps.SignedBasis(2)))
    with pytest.raises(ValueError, match="there is nothing to save"):
        unbounded.save(tmp_path / "run.npz")


# ------------------------------------------------------------------ killed


KILLED = """
import numpy as np, sys, pursuit as ps
rng = np.random.default_rng(5)
X, y = rng.standard_normal((60, 300)), rng.standard_normal(60)
f, domain = ps.Logistic(np.sign(y)), ps.conv(4.0 * ps.Dictionary(X, signed=True))
print("begun", flush=True)
r = ps.minimize(f, domain, ps.Pairwise(ps.ShortStep(L=ps.Backtracking())), oracle=ps.Lazy(), checkpoint=sys.argv[1],
                every=float(sys.argv[2]), stop=ps.Stop(iterations=int(sys.argv[3]), rgap=None),
                callback=lambda s: print(s.iteration, flush=True))
print("ended", r.iterations, r.oracle_calls, r.cached, r.value.hex(), r.gap.hex(), r.x.tobytes().hex()[:64])
"""


def lines_until_killed(arguments, states=None):
    """What a run prints before it is killed, after that many states."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    with process.stdout as output:
        assert output.readline() == "begun\n"
        first = [output.readline().strip() for _ in range(states or 0)]
        if states is not None:
            process.send_signal(signal.SIGKILL)
        lines = first + output.read().splitlines()
    process.wait()
    return lines


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_a_run_that_is_killed_again_and_again_loses_only_what_came_after_its_checkpoint(tmp_path):
    kills = np.random.default_rng(0).integers(0, 60, int(os.environ.get("PURSUIT_KILLS", "4")))
    file, limit, seen = tmp_path / "run.npz", 400 * len(kills), -1
    for states in kills:  # with every=0 each state is written
        lines = [int(line) for line in lines_until_killed([file, 0, limit], states) if line[:1].isdigit()]
        if lines:
            assert lines[0] >= seen - 1  # the state that was being written
            assert lines == list(range(lines[0], lines[-1] + 1))
            seen = lines[-1]
    assert {p.name for p in tmp_path.iterdir() if p.name[0] != "."} <= {"run.npz", "run.previous.npz"}
    (ended,) = (line for line in lines_until_killed([file, 60, limit]) if line.startswith("ended"))
    (whole,) = (line for line in lines_until_killed([tmp_path / "b.npz", 60, limit]) if line.startswith("ended"))
    assert ended == whole and not list(tmp_path.glob(".*"))
