"""Moving the atoms: sliding, merging, pruning, and what the loop obeys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.arrays import Space
from pursuit.refine.slide import _Summand

T = np.linspace(0.0, 1.0, 101)
BUMP = ps.families.Gaussian(T, 0.04)
POSITIONS = np.array([0.1517, 0.2383, 0.4142, 0.4871, 0.7183, 0.8])
SPACING = 0.01
MAKE = {"lin": ps.lin, "cone": ps.cone, "conv": ps.conv}


def spikes(amplitudes=(1.0, 0.7, 1.5, 0.6, 0.8, 1.2)):
    return np.asarray(amplitudes) @ np.array([BUMP(np.array([c])) for c in POSITIONS])


def active_of(domain, space, weights, atoms, blocks=0):
    active = domain.active_set(space)
    active.replace(weights, atoms, blocks)
    return active


@pytest.mark.parametrize("name", MAKE)
def test_sliding_recovers_spikes_to_a_millionth_of_the_spacing(name):
    A = ps.Parametric(BUMP, [(0, 1)])
    domain = MAKE[name](5.8 * A if name == "conv" else A)
    f, stop = ps.LeastSquares(spikes()), ps.Stop(value=1e-20, iterations=12)
    r = ps.minimize(f, domain, ps.FullyCorrective(), stop=stop, refine=(ps.refine.Slide(), ps.refine.Merge(1e-3)))
    weights, places = r.coef
    real = np.abs(weights) > 1e-4
    assert np.abs(np.sort(places[real].ravel()) - POSITIONS).max() <= 1e-6 * SPACING
    assert (np.diff(r.trace.value) <= 0).all()
    still = ps.minimize(f, domain, ps.FullyCorrective(), stop=stop)
    assert len(still.atoms) > 6 or still.value > 1e6 * r.value


def problems():
    rng = np.random.default_rng(5)
    A, D = ps.Parametric(BUMP, [(0, 1)], signed=True), ps.Dictionary(rng.standard_normal((101, 3)))
    M = rng.standard_normal((101, 24))
    tensors = ps.RankOneTensor((2, 3, 4))
    yield ps.lin(A), A, [0, 0, 0]
    yield ps.cone(-2.0 * A), -2.0 * A, [0, 0, 0]
    yield ps.conv(3.0 * A), 3.0 * A, [0, 0, 0]
    yield ps.conv(2.0 * tensors.through(M)), 2.0 * tensors.through(M), [0, 0, 0]
    yield ps.conv(A) + ps.lin(D), A, [0, 0, 1]


@pytest.mark.parametrize("case", range(5))
def test_the_slide_differentiates_its_point_and_its_atoms_make_it(case):
    domain, A, blocks = list(problems())[case]
    rng = np.random.default_rng(6)
    lmo = [A if b == 0 else domain.parts[1].A for b in blocks]
    atoms = [each.lmo(rng.standard_normal(101)) for each in lmo]
    active = active_of(domain, Space.default((101,)), [0.4, 0.6, 1.0 if blocks[2] else 0.0], atoms, blocks)
    g = rng.standard_normal(101)
    for b, part in enumerate(domain.parts):
        group = _Summand(part, active, np.flatnonzero(active.blocks == b))
        z, step = group.start.copy(), 1e-6
        assert np.allclose(group.point(z)[0], active.synthesize(np.where(active.blocks == b, active.weights, 0.0)))
        z = z + 0.01 * rng.uniform(0, 1, z.shape)
        numeric = [
            (group.point(z + step * e)[0] - group.point(z - step * e)[0]) @ g / (2 * step) for e in np.eye(len(z))
        ]
        assert np.allclose(group.point(z)[1](g), numeric, atol=1e-6 * np.linalg.norm(g))
        far = np.clip(rng.standard_normal(z.shape), *group.bounds.T) if part.asked.chart() else z
        far[: len(group.atoms)] = rng.uniform(0.1, 1, len(group.atoms))
        weights, moved = group.moved(far)
        assert np.allclose(sum(w * a.vector for w, a in zip(weights, moved, strict=True)), group.point(far)[0])


@pytest.mark.parametrize("case", range(5))
def test_the_slide_lowers_f_and_stays_in_the_domain(case):
    domain, _, _ = list(problems())[case]
    f = ps.LeastSquares(spikes() - 0.5)
    runs = [
        ps.minimize(f, domain, ps.FullyCorrective(), stop=ps.Stop(iterations=3), refine=refine)
        for refine in (None, ps.refine.Slide(steps=30))
    ]
    assert runs[1].value < runs[0].value
    assert runs[1].check().feasible and runs[1].refused == 0
    assert runs[1].check().error < 1e-12


def test_by_default_what_can_move_moves():
    y, tensors = np.random.default_rng(0).standard_normal((3, 4, 5)), ps.RankOneTensor((3, 4, 5))
    bumps, stop = ps.Parametric(BUMP, [(0, 1)]), ps.Stop(iterations=1)
    cases = [
        (ps.LeastSquares(y), ps.lin(2.0 * tensors), ps.refine.Alternating()),
        (ps.Poisson(np.ones((3, 4, 5))), ps.cone(tensors), ps.refine.Alternating()),
        (ps.LeastSquares(y), ps.conv(tensors), ps.refine.Slide()),
        (ps.LeastSquares(spikes()), ps.cone(bumps), ps.refine.Slide()),
        (ps.LeastSquares(spikes()), ps.lin(ps.SignedBasis(101)), None),
    ]
    for f, domain, refine in cases:
        assert ps.minimize(f, domain, stop=stop).refine == refine
        assert ps.minimize(f, domain, ps.FullyCorrective(), stop=stop).refine is None


def test_atoms_without_a_chart_are_left_alone():
    D = ps.Dictionary(np.eye(3))
    r = ps.minimize(ps.LeastSquares([1.0, 2.0, 3.0]), ps.lin(D), refine=ps.refine.Slide())
    assert r.value == 0.0 and r.refused == 0


@pytest.mark.parametrize(
    "refine", [ps.refine.Slide(), ps.refine.Alternating(), (ps.refine.Merge(0.9), ps.refine.Prune())]
)
def test_a_point_that_the_run_starts_from_stays_and_its_weight_takes_part(refine):
    rng = np.random.default_rng(1)
    y, x0 = np.einsum("i,j,k->ijk", *(rng.standard_normal(4) for _ in range(3))), rng.standard_normal((4, 4, 4))
    domain = ps.lin(ps.RankOneTensor((4, 4, 4)))
    f, stop = ps.LeastSquares(y + 2.0 * x0), ps.Stop(iterations=2)
    r, plain = (
        ps.minimize(f, domain, ps.FullyCorrective(), start=x0, stop=stop, refine=each) for each in (refine, None)
    )
    assert r.refused == 0
    if not isinstance(refine, tuple):
        assert r.value < (1e-12 if refine == ps.refine.Slide() else 0.5) * plain.value


# ---------------------------------------------------------------------- fewer atoms


def test_merge_adds_the_weights_of_nearly_equal_atoms_and_minds_signs_in_a_span():
    a, b = np.array([1.0, 0.0, 0.0]), np.array([-1.0, 1e-4, 0.0])
    c = np.array([0.0, 1.0, 1.0])
    atoms = [ps.Atom(a, "a"), ps.Atom(b, "b"), ps.Atom(c, "c")]
    domain, f = ps.lin(ps.SignedBasis(3)), ps.LeastSquares(np.ones(3))
    weights, kept, blocks = ps.refine.Merge(1e-3)(
        f, domain, active_of(domain, Space.default((3,)), [3.0, 1.0, 0.5], atoms)
    )
    assert weights.tolist() == [2.0, 0.5]
    assert [k.source for k in kept] == ["a", "c"] and blocks.tolist() == [0, 0]
    apart = active_of(domain, Space.default((3,)), [3.0, 1.0], [atoms[0], atoms[2]])
    assert ps.refine.Merge(1e-3)(f, domain, apart) is None
    cone = ps.cone(ps.SignedBasis(3))
    assert ps.refine.Merge(1e-3)(f, cone, active_of(cone, Space.default((3,)), [3.0, 1.0, 0.5], atoms)) is None


@given(st.integers(0, 10**6), st.sampled_from(["lin", "cone", "conv"]))
def test_prune_drops_the_atom_whose_loss_costs_least_after_a_refit(seed, name):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((12, 5))
    A = ps.Dictionary(D)
    domain, f = MAKE[name](A), ps.LeastSquares(D @ rng.uniform(0.1, 0.5, 5) + 0.3 * rng.standard_normal(12))
    r = ps.minimize(f, domain, ps.FullyCorrective(), stop=ps.Stop(rgap=1e-13, iterations=50))
    if len(r.atoms) < 3:
        return
    active = active_of(domain, Space.default((12,)), r.weights, r.atoms)
    losses = []
    for i in range(len(r.atoms)):
        rest = ps.Dictionary(D[:, [a.source for j, a in enumerate(r.atoms) if j != i]])
        losses.append(ps.minimize(f, MAKE[name](rest), ps.FullyCorrective(), stop=ps.Stop(rgap=1e-12)).value)
    active.ceiling = min(losses) * (1 + 1e-6)
    proposal = ps.refine.Prune()(f, domain, active)
    assert proposal is not None or name != "lin"  # where signs bind, the model may rank another atom first
    if proposal is not None:
        pruned = active_of(domain, Space.default((12,)), *proposal)
        assert f.value(pruned.x) <= min(losses) * (1 + 1e-6)
        assert domain.admits(pruned.weights, pruned.blocks)
    active.ceiling = min(losses) * (1 - 1e-6)
    assert ps.refine.Prune()(f, domain, active) is None


def test_pruning_gives_back_no_more_than_its_share_and_so_f_never_rises():
    rng = np.random.default_rng(2)
    D = rng.standard_normal((60, 200))
    f, A = ps.LeastSquares(D[:, :12] @ rng.choice([-1.0, 1.0], 12)), ps.lin(ps.Dictionary(D))
    halfway = []

    def watch(f, domain, active):
        halfway.append(f.value(active.x))

    r = ps.minimize(
        f, A, ps.FullyCorrective(), stop=ps.Stop(value=1e-9, iterations=40), refine=(watch, ps.refine.Prune(0.8))
    )
    value = r.trace.value
    assert (value[1:] <= 0.2 * np.array(halfway) + 0.8 * value[:-1] + 1e-12 * value[0]).all()
    assert (np.diff(value) <= 0).all() and r.refused == 0
    assert (np.diff(r.trace.atoms) < 0).any() or len(r.atoms) < r.iterations


@pytest.mark.parametrize("loss", [ps.Logistic, ps.Poisson])
def test_pruning_serves_losses_that_are_not_quadratic(loss):
    rng = np.random.default_rng(3)
    D = rng.standard_normal((80, 30)) / 5
    y = (
        rng.poisson(np.exp(D[:, :3].sum(axis=1)))
        if loss is ps.Poisson
        else np.sign(D[:, :3].sum(axis=1) + 0.3 * rng.standard_normal(80))
    )
    r, plain = (
        ps.minimize(loss(y), ps.lin(ps.Dictionary(D)), ps.FullyCorrective(), stop=ps.Stop(iterations=10), refine=refine)
        for refine in (ps.refine.Prune(0.9), None)
    )
    assert len(r.atoms) < len(plain.atoms)
    assert (np.diff(r.trace.value) <= 1e-12 * r.trace.value[:-1]).all() and r.refused == 0


# ---------------------------------------------------------------------- the loop


def test_refinements_are_applied_in_order_and_each_is_judged_alone():
    seen = []

    def worse(f, domain, active):
        seen.append("worse")
        return 2.0 * active.weights, active.atoms

    def nothing(f, domain, active):
        seen.append("nothing")

    f, A = ps.LeastSquares([1.0, 2.0, 3.0]), ps.lin(ps.SignedBasis(3))
    r = ps.minimize(f, A, ps.FullyCorrective(), refine=[worse, nothing], stop=ps.Stop(iterations=2))
    assert seen == ["worse", "nothing"] * 2
    assert r.refused == 2
    with pytest.raises(TypeError, match="or several"):
        ps.minimize(f, A, refine=(worse, 3))


@pytest.mark.parametrize("seed", [148, 190])
def test_a_trial_step_that_takes_all_weights_of_a_hull_to_0_is_shortened(seed):
    rng = np.random.default_rng(seed)
    A = ps.RankOneTensor((2, 2, 2)).at(np.unravel_index(rng.choice(8, 6, replace=False), (2, 2, 2)))
    f = ps.Poisson(np.rint(3 * abs(rng.standard_normal(6))))
    r = ps.minimize(f, ps.conv(5 * A), stop=ps.Stop(iterations=5))
    assert r.value < f.value(np.zeros(6))
    assert r.weights.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [0, 1, 4, 5, 33, 40])
def test_a_trial_step_that_takes_a_factor_to_0_is_shortened(seed):
    rng = np.random.default_rng(seed)
    A = ps.RankOneTensor((2, 2, 2)).at(np.unravel_index(rng.choice(8, 6, replace=False), (2, 2, 2)))
    f = ps.LeastSquares(rng.integers(-1, 2, 6).astype(float))
    assert ps.minimize(f, ps.conv(A), stop=ps.Stop(iterations=5)).value < f.value(np.zeros(6))
