"""What a run is promised holds for it, and the bounds that apply are the right ones."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit import geometry, rates
from pursuit.updates import Decrease


def instance(seed, m=5, n=9):
    rng = np.random.default_rng(seed)
    Q = rng.standard_normal((m, m))
    H = Q @ Q.T + 0.3 * np.eye(m)
    target = rng.standard_normal(m)
    return ps.Quadratic(H, -H @ target), rng.standard_normal((m, n)), -0.5 * target @ H @ target


BACKTRACKING = ps.Backtracking()
SPANS = [
    ps.Plain(ps.LineSearch()), ps.Plain(ps.ShortStep()), ps.Plain(ps.ShortStep(BACKTRACKING)), ps.NormCorrective(),
    ps.NormCorrective(L=BACKTRACKING), ps.FullyCorrective(),
]  # fmt: skip
HULLS = [*SPANS, ps.Plain(ps.OpenLoop()), ps.Plain(ps.DiameterStep())]
WALKS = [walk(step) for walk in (ps.Away, ps.Pairwise, ps.BlendedPairwise) for step in (None, ps.ShortStep())]
qualities = st.one_of(st.just(ps.Exact()), st.floats(0.2, 1.0).map(ps.Approximate))
laziness = st.floats(1.01, 10.0).map(ps.Lazy)


@given(seed=st.integers(0, 500), choice=st.integers(0, 99), oracle=qualities | laziness)
def test_a_run_over_a_span_keeps_its_promise(seed, choice, oracle):
    f, D, minimum = instance(seed)
    update = SPANS[choice % len(SPANS)]
    stop = ps.Stop(iterations=20, rgap=None)
    r = ps.minimize(f, ps.lin(ps.Dictionary(D)), update, oracle=oracle, stop=stop)
    p = r.promise()
    assert len(p.curve) == len(r.trace)
    assert {b.theorem for b in p.bounds} >= {"Theorem 7", "Theorem 2 sharp"}
    assert (r.trace.value - minimum <= p.curve + 1e-9 * (1 + abs(minimum))).all()


@given(seed=st.integers(0, 500), choice=st.integers(0, 99), oracle=qualities)
def test_a_run_over_a_hull_keeps_its_promise(seed, choice, oracle):
    f, D, _ = instance(seed)
    update = HULLS[choice % len(HULLS)]
    domain = ps.conv(ps.Dictionary(D, signed=True))
    minimum = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-11)).value
    r = ps.minimize(f, domain, update, oracle=oracle, stop=ps.Stop(iterations=20, rgap=None))
    p = r.promise()
    assert "Theorem 1" in {b.theorem for b in p.bounds}
    assert (r.trace.value - minimum <= p.curve + 1e-9 * (1 + abs(minimum))).all()


def kept(r, minimum):
    """Whether the error was below every bound at every iteration."""
    slack = 1e-9 * (1 + abs(minimum))
    return all((r.trace.value - minimum <= b.curve + slack).all() for b in r.promise().bounds)


@given(seed=st.integers(0, 500), choice=st.integers(0, 99), oracle=qualities | laziness, signed=st.booleans())
def test_away_and_pairwise_steps_over_a_hull_keep_every_bound(seed, choice, oracle, signed):
    f, D, _ = instance(seed, 3, 5)
    domain, update = ps.conv(ps.Dictionary(D, signed=signed)), WALKS[choice % len(WALKS)]
    minimum = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-11)).value
    r = ps.minimize(f, domain, update, oracle=oracle, stop=ps.Stop(iterations=60, rgap=None))
    rate = "Rate of pairwise steps" if isinstance(update, ps.Pairwise) else "Rate of away steps"
    names = {b.theorem for b in r.promise().bounds}
    assert "Theorem 1" in names
    from_an_atom = r.trace.atoms[0] == 1  # not from a point between 0 and an atom
    assert (rate in names) == (from_an_atom and not isinstance(oracle, ps.Lazy))  # no proof covers lazy answers
    assert kept(r, minimum)


@given(seed=st.integers(0, 500), choice=st.integers(0, 99), oracle=qualities)
def test_a_run_over_a_cone_keeps_every_bound(seed, choice, oracle):
    f, D, _ = instance(seed, 3, 5)
    A, updates = ps.Dictionary(np.abs(D)), [*SPANS, *WALKS]
    update = updates[choice % len(updates)]
    minimum = ps.minimize(f, ps.cone(A), ps.FullyCorrective(), stop=ps.Stop(rgap=None, iterations=100)).value
    r = ps.minimize(f, ps.cone(A), update, oracle=oracle, stop=ps.Stop(iterations=60, rgap=None))
    names = {b.theorem for b in r.promise().bounds}
    assert ("Rate of cone pursuits" in names) or not r.x.any()
    linear = {"Rate of away steps", "Rate of pairwise steps"} & names
    assert bool(linear) == (update in WALKS)
    assert kept(r, minimum)


@pytest.mark.parametrize("update", [*WALKS, ps.Plain(ps.LineSearch())], ids=repr)
def test_a_start_that_may_have_other_atoms_has_no_rate_that_depends_on_them(update):
    """A point that is given as the start is an atom itself, which neither widths nor radii know."""
    f, A, stop = ps.LeastSquares([0.4, 0.3, 0.5]), ps.Simplex(3), ps.Stop(iterations=4, rgap=None)
    x = np.array([0.5, 0.3, 0.2])
    over_hull = ps.minimize(f, ps.conv(A), update, start=x, stop=stop).promise()
    assert {b.theorem for b in over_hull.bounds} <= {"Theorem 1", "Theorem 11"}
    if isinstance(update, ps.Pairwise):
        assert len({b.curve[-1] - b.curve[0] for b in over_hull.bounds} - {0.0}) == 0
    assert ps.minimize(f, ps.cone(A), update, start=100 * x, stop=stop).promise().bounds == []


def test_lazy_answers_have_the_quality_one_over_K():
    f, D, _ = instance(0)
    domain, stop = ps.lin(ps.Dictionary(D)), ps.Stop(iterations=5, rgap=None)
    r = ps.minimize(f, domain, ps.Plain(ps.LineSearch()), oracle=ps.Lazy(4.0), stop=stop)
    assert all(b.constants.endswith("delta = 0.25") for b in r.promise().bounds)
    assert {b.theorem for b in r.promise().bounds} == {"Theorem 7", "Theorem 13", "Theorem 2 sharp", "Theorem 12 sharp"}


def test_backtracking_doubles_the_smoothness():
    f, D, _ = instance(0)
    domain, stop = ps.lin(ps.Dictionary(D)), ps.Stop(iterations=5, rgap=None)
    r = ps.minimize(f, domain, ps.Plain(ps.ShortStep(BACKTRACKING)), stop=stop)
    assert all(f"L = {2 * f.L:.4g}" in b.constants for b in r.promise().bounds)
    wide = ps.minimize(f, domain, ps.Plain(ps.ShortStep(3 * f.L)), stop=stop)
    assert all(f"L = {3 * f.L:.4g}" in b.constants for b in wide.promise().bounds)


def test_steps_that_drop_atoms_are_not_counted():
    """Half of the steps of `Away`, more from a start that has atoms to spare."""
    f, D, _ = instance(0, 3, 5)
    A, stop = ps.Dictionary(D), ps.Stop(iterations=6, rgap=None)
    start = ([0.5, 0.3, 0.2], [A.atom(i) for i in range(3)])
    for update in (ps.Away(), ps.BlendedPairwise()):
        for first, spare in ((None, 0), (start, 2)):
            p = ps.minimize(f, ps.conv(A), update, start=first, stop=stop).promise()
            by_name = {b.theorem: b.curve for b in p.bounds}
            good = rates.good_steps(np.arange(len(p.curve)), spare=spare)
            D2 = geometry.diameter(A)
            assert by_name["Theorem 1"] == pytest.approx(rates.frank_wolfe(good, L=f.L, diameter=D2, eps0=p.eps0))
            assert ("Rate of away steps" in by_name) == (first is None)
            if first is None:
                falls = np.flatnonzero(np.diff(by_name["Rate of away steps"]) < 0)
                assert falls.tolist() == np.flatnonzero(np.diff(good)).tolist()


@pytest.mark.parametrize("n", [2, 5])
def test_constants_of_a_cone_are_those_of_its_atoms_and_the_origin(n):
    """The sums of weights are bounded tightly: at 2y, where f is f(0) again, the sum is the bound."""
    f, A, stop = ps.LeastSquares(np.full(n, 3.0)), ps.Simplex(n), ps.Stop(iterations=3, rgap=None)
    pursuit, away, swap = (
        ps.minimize(f, ps.cone(A), update, stop=stop).promise().bounds[-1].constants
        for update in (ps.Plain(ps.LineSearch()), ps.Away(), ps.Pairwise())
    )
    assert f.value(np.full(n, 6.0)) == f.value(np.zeros(n))
    assert f"rho <= {6 * n:.4g}, L = 1, radius <= 1," in pursuit
    assert f"pyramidal width >= {n**-0.5:.4g}, L = 1, radius <= 1," in away
    assert f"pyramidal width >= {n**-0.5:.4g}, L = 1, radius <= 1.414," in swap


def test_no_rate_counts_atoms_that_a_refinement_may_change():
    rng = np.random.default_rng(0)
    f = ps.LeastSquares(rng.standard_normal((3, 3)))
    r = ps.minimize(
        f, ps.conv(ps.RankOne((3, 3))), ps.Away(), refine=ps.refine.Factors(), stop=ps.Stop(iterations=3, rgap=None)
    )
    assert r.promise().bounds == []


@pytest.mark.parametrize("domain", [ps.lin(ps.SignedBasis(2)), ps.cone(ps.Simplex(2))], ids=repr)
def test_a_run_that_begins_at_the_minimiser_is_promised_to_stay_there(domain):
    r = ps.minimize(ps.LeastSquares([0.0, 0.0]), domain, ps.Plain(ps.LineSearch()))
    assert r.promise().curve.tolist() == [0.0]


@pytest.mark.parametrize(
    "update",
    [
        ps.NormCorrective(inner=3),
        ps.AcceleratedPursuit(),
        ps.Plain(ps.ShortStep(L=1e-3)),
        ps.Plain(ps.CurvatureStep(0.5)),
    ],
)
def test_no_theorem_is_quoted_for_what_it_does_not_cover(update):
    f, D, _ = instance(0)
    p = ps.minimize(f, ps.lin(ps.Dictionary(D)), update, stop=ps.Stop(iterations=3, rgap=None)).promise()
    assert p.bounds == []
    assert "no theorem applies" in str(p)


def test_geometry_may_be_given_where_it_is_known():
    f, D, _ = instance(0)
    r = ps.minimize(f, ps.lin(ps.Dictionary(D)), ps.FullyCorrective(), stop=ps.Stop(iterations=4, rgap=None))
    given = r.promise(mdw=0.1, rho=50.0)
    constants = {b.theorem: b.constants for b in given.bounds}
    assert "width >= 0.1" in constants["Theorem 7"]
    assert "rho <= 50" in constants["Theorem 2 sharp"]


@pytest.mark.parametrize("symmetric", [True, False])
def test_the_rate_of_a_reach_needs_neither_symmetry_nor_strong_convexity(symmetric):
    """Erratum 23: a bound on ||x* - x_t||_A in place of 2 rho."""
    f, A = ps.Logistic([1, -1, 1, 1, -1]), ps.Dictionary(np.random.default_rng(1).standard_normal((5, 3)))
    domain, reach = ps.lin(A, symmetric=symmetric), geometry.Interval(1.0, 2.5)
    for update in (ps.Plain(ps.ShortStep()), ps.NormCorrective(), ps.FullyCorrective(), ps.Plain(ps.LineSearch())):
        r = ps.minimize(f, domain, update, stop=ps.Stop(iterations=5, rgap=None))
        assert r.promise().bounds == []
        (bound,) = r.promise(reach=reach).bounds
        C, t = f.L * geometry.radius(A).upper ** 2, np.arange(len(r.trace))
        assert (bound.curve <= rates.affine_pursuit(t, L=C, reach=reach)).all()
        assert (bound.theorem, bound.constants.split(",")[0]) == ("Theorem 2 sharp", "reach <= 2.5")


def test_an_update_of_ones_own_is_promised_the_rates_of_the_decrease_that_it_states():
    class Halved(ps.Plain):
        """Steps of half the length: three quarters of the decrease, that of short steps with 4/3 of the smoothness."""

        def decrease(self, f, part):
            return Decrease(4 / 3 * f.L)

    class Silent(ps.Plain):
        def decrease(self, f, part):
            return None

    f, D, minimum = instance(0)
    domain, stop = ps.lin(ps.Dictionary(D)), ps.Stop(iterations=12, rgap=None)
    step = ps.ShortStep(L=2 * f.L)
    stated = ps.minimize(f, domain, Halved(step), stop=stop)
    assert len(stated.promise().bounds) == 3
    assert all(f"L = {4 / 3 * f.L:.4g}" in b.constants for b in stated.promise().bounds)
    assert kept(stated, minimum)
    assert ps.minimize(f, domain, Silent(step), stop=stop).promise().bounds == []


# ---------------------------------------------------------------------- every variant of Algorithms 2 to 6


def short(f, A, kind):
    """C of a step that takes L ||d||^2 for the curvature."""
    size = geometry.diameter(A) if kind == "fw" else geometry.radius(A)
    return f.L * size.upper**2


def own(f, A, kind):
    """C of a step that minimises f itself."""
    return geometry.curvature(f, A, kind).upper


VARIANTS = {  # domain, update, the theorem that a reader would quote, C
    "Algorithm 2, variant 0": (ps.conv, lambda C: ps.Plain(ps.OpenLoop()), 1, own),
    "Algorithm 2, variant 1": (ps.conv, lambda C: ps.Plain(ps.LineSearch()), 1, own),
    "Algorithm 2, variant 2": (ps.conv, lambda C: ps.Plain(ps.DiameterStep()), 1, short),
    "Algorithm 2, variant 3": (ps.conv, lambda C: ps.Plain(ps.ShortStep()), 1, short),
    "Algorithm 3, variant 0": (ps.conv, lambda C: ps.Plain(ps.ShortStep()), 1, short),
    "Algorithm 3, variant 1": (ps.conv, lambda C: ps.NormCorrective(), 1, short),
    "Algorithm 4, variant 0": (ps.lin, lambda C: ps.Plain(ps.ShortStep()), 7, short),
    "Algorithm 4, variant 1": (ps.lin, lambda C: ps.NormCorrective(), 7, short),
    "Algorithm 4, line search": (ps.lin, lambda C: ps.Plain(ps.LineSearch()), 7, own),
    "Algorithm 5": (ps.conv, lambda C: ps.Plain(ps.CurvatureStep(C)), 11, own),
    "Algorithm 6, variant 1": (ps.lin, lambda C: ps.Plain(ps.CurvatureStep(4 * C, rho=2.0)), 13, own),
    "Algorithm 6, variant 2": (ps.lin, lambda C: ps.FullyCorrective(), 13, own),
}
SETS = {"symmetric": True, "general": False}


def bounds_that_apply(f, A, kind, C, eps0, x0, t):
    """Every function of `rates` that bounds the error from above, at the certified constants."""
    if kind == "fw":
        yield rates.frank_wolfe_affine(t, C=C, eps0=eps0)
        yield rates.frank_wolfe(t, L=f.L, diameter=geometry.diameter(A), eps0=eps0)
        return
    shape = {"mdw": geometry.mdw(A), "radius": geometry.radius(A)}
    yield rates.linear(t, mu=f.mu, L=f.L, **shape, eps0=eps0)
    rho = geometry.rho(A, f, x0)
    whole = C * rho.upper**2
    yield rates.linear_affine(t, mu=geometry.strong_convexity(f, A, rho.upper), C=whole, eps0=eps0)
    if A.symmetric:
        yield rates.matching_pursuit(t, L=f.L, radius=shape["radius"], rho=rho, eps0=eps0)
        yield rates.matching_pursuit_sharp(t, L=f.L, radius=shape["radius"], rho=rho)
        yield rates.matching_pursuit_affine(t, C=whole, eps0=eps0)
        yield rates.matching_pursuit_affine_sharp(t, C=whole, eps0=eps0)
        norm = np.linalg.norm(x0) + 2 * np.linalg.norm(f.value_and_grad(x0)[1]) / f.mu
        yield rates.least_squares(t, diameter=geometry.diameter(A), mdw=shape["mdw"], norm=norm, L=f.L)
        yield rates.affine_pursuit(t, L=C, reach=2 * rho.upper)
    yield rates.affine_pursuit(t, L=C, reach=math.sqrt(2 * eps0 / f.mu) / shape["mdw"].lower)
    if isinstance(A, ps.SignedBasis) and f.mu == f.L:  # from 0
        yield f.L * rates.signed_basis(t, residual=f.value_and_grad(x0)[1] / f.L)


@pytest.mark.parametrize("signed", SETS.values(), ids=SETS)
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("seed", range(3))
def test_every_variant_is_promised_the_theorem_that_a_reader_would_quote_and_nothing_weaker(name, signed, seed):
    f, D, minimum = instance(seed, 3, 8)
    make, update, theorem, constant = VARIANTS[name]
    A = ps.Dictionary(D, signed=signed)
    domain = make(A) if make is ps.conv or signed else ps.lin(A, symmetric=False)
    kind = "fw" if make is ps.conv else "mp"
    C = constant(f, A, kind)
    r = ps.minimize(f, domain, update(C), stop=ps.Stop(iterations=12, rgap=None))
    p, t = r.promise(), np.arange(len(r.trace))
    named = {b.theorem for b in p.bounds}
    if kind == "fw" or geometry.mdw(A).lower > 0:
        assert f"Theorem {theorem}" in named
        if kind == "mp":
            assert ("Theorem 12 sharp" in named or "Theorem 2 sharp" in named) == signed
        for bound in bounds_that_apply(f, A, kind, C, p.eps0, r.start, t):
            assert (p.curve <= bound * (1 + 1e-9)).all()
    if kind == "mp":
        assert (r.trace.value - minimum <= p.curve + 1e-9 * (1 + abs(minimum))).all()


NOT_QUOTED = {
    "accelerated_pursuit": "in expectation", "random_pursuit": "in expectation", "lower_bound": "from below",
    "lower_bound_sharp": "from below", "coherence": "no rate", "mdw_from_coherence": "no rate", "delta_fw": "no rate",
    "delta_mp": "no rate", "frank_wolfe_limit": "no rate", "backtracking": "a constant of a rate",
    "lazy_quality": "a constant of a rate", "good_steps": "a number", "good_pairwise_steps": "a number",
    "away_steps": "of Away", "pairwise_steps": "of Pairwise", "cone_pursuit": "over cones",
    "incoherent_pursuit": "nobody knows how many atoms the target combines",
}  # fmt: skip


def test_no_function_of_rates_is_forgotten():
    """A new rate has to be among those that no promise is weaker than, or here with the reason."""
    import inspect

    tried = {name for name in rates.__all__ if f"rates.{name}(" in inspect.getsource(bounds_that_apply)}
    assert tried | set(NOT_QUOTED) == set(rates.__all__)
    assert not tried & set(NOT_QUOTED)


@pytest.mark.parametrize("seed", range(6))
def test_least_squares_on_the_signed_basis_are_promised_the_exact_error(seed):
    """Corollary 9, corrected; from a start other than 0 OMP has the start in S, and the corollary is silent."""
    rng = np.random.default_rng(seed)
    f, A, x0 = ps.LeastSquares(rng.standard_normal(6), weights=3.0), 2.0 * ps.SignedBasis(6), rng.standard_normal(6)
    stop = ps.Stop(iterations=6, rgap=None)
    for update in (v[1](12.0) for v in VARIANTS.values() if v[0] is ps.lin):
        for start in (None, x0):
            r = ps.minimize(f, ps.lin(A), update, start=start, stop=stop)
            exact = isinstance(update, ps.Plain) or start is None
            quoted = "Corollary 9" in {b.theorem for b in r.promise().bounds}
            if quoted:
                np.testing.assert_allclose(r.trace.value, r.promise().curve, rtol=1e-9, atol=1e-12)
            assert quoted == exact
    for change in ({"oracle": ps.Approximate(0.9)}, {"refine": ps.refine.Prune()}):
        other = ps.minimize(f, ps.lin(A), ps.FullyCorrective(), stop=stop, **change)
        assert "Corollary 9" not in {b.theorem for b in other.promise().bounds}


@pytest.mark.parametrize("make", [ps.conv, ps.cone, ps.lin])
@pytest.mark.parametrize("kind", ["Hessian", "gradients"])
def test_fully_corrective_updates_of_any_smooth_f_keep_the_rates_of_short_steps(make, kind):
    target, D = np.array([0.6, -0.4, 0.3]), instance(3, 3, 6)[1]

    def value_and_grad(x):
        return float(np.logaddexp(x - target, target - x).sum() + 0.1 * x @ x), np.tanh(x - target) + 0.2 * x

    options = {"hessian": lambda x: 1.2 - np.tanh(x - target) ** 2} if kind == "Hessian" else {}
    f, A = ps.Smooth(value_and_grad, L=1.2, mu=0.2, **options), ps.Dictionary(np.abs(D) if make is ps.cone else D)
    r = ps.minimize(f, make(A), ps.FullyCorrective(), stop=ps.Stop(iterations=8, rgap=None))
    quick = ps.minimize(f, make(A), ps.Plain(ps.ShortStep()), stop=ps.Stop(iterations=8, rgap=None)).promise()
    assert {b.theorem for b in r.promise().bounds} == {b.theorem for b in quick.bounds} != set()
    assert kept(r, ps.minimize(f, make(A), stop=ps.Stop(rgap=1e-11)).value)


@pytest.mark.parametrize("make", [ps.conv, ps.cone, ps.lin])
def test_a_fully_corrective_update_that_gets_nowhere_is_a_short_step(make, monkeypatch):
    from pursuit.updates import corrective

    f = ps.Logistic([1, -1, 1, 1, -1])
    A, stop = ps.Dictionary(np.abs(np.random.default_rng(0).standard_normal((5, 8)))), ps.Stop(iterations=9, rgap=None)
    short = ps.minimize(f, make(A), ps.Plain(ps.ShortStep()), stop=stop)
    monkeypatch.setattr(corrective, "MAX_INNER_STEPS", 0)
    stuck = ps.minimize(f, make(A), ps.FullyCorrective(), stop=stop)
    np.testing.assert_allclose(stuck.trace.value, short.trace.value, rtol=1e-12)
    assert short.trace.value[-1] < short.trace.value[0]


def test_the_affine_invariant_promise_does_not_see_the_condition_number():
    """H = diag(1, 1e2, 1e4), atoms +-e_i / sqrt(h_i): in the norm of the Hessian a basis, of width 1/sqrt(3)."""
    h = np.array([1.0, 1e2, 1e4])
    f, A = ps.Quadratic(np.diag(h), -h * [1.0, 0.5, 0.2]), ps.Dictionary(np.diag(h**-0.5), signed=True)
    r = ps.minimize(f, ps.lin(A), ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=2, rgap=None))
    assert r.promise().curve[1] == pytest.approx(2 / 3 * r.promise().eps0)
    in_metric = ps.minimize(f, ps.lin(A), ps.NormCorrective(L=1.0, metric=h), stop=ps.Stop(iterations=2, rgap=None))
    (linear,) = (b for b in in_metric.promise().bounds if b.theorem == "Theorem 7")
    assert linear.curve[1] == pytest.approx(2 / 3 * r.promise().eps0)


@pytest.mark.parametrize("domain", [ps.conv, ps.lin])
def test_constants_that_nobody_can_compute_may_be_given(domain):
    """For log cosh, with L = 1 + mu: nothing proves that a step with less curvature descends, but the user may."""
    target = np.array([0.3, -0.2])
    f = ps.Smooth(lambda x: float(np.log(np.cosh(x - target)).sum()), lambda x: np.tanh(x - target), L=3.0)
    step, stop = (
        ps.Plain(ps.CurvatureStep(4.0 if domain is ps.conv else 1.0)),
        ps.Stop(iterations=3, rgap=None, value=0),
    )
    r = ps.minimize(f, domain(ps.SignedBasis(2)), step, stop=stop)
    given = r.promise(curvature=4.0 if domain is ps.conv else 1.0, convexity=0.25)
    if math.isfinite(given.eps0):
        assert r.promise().bounds == []
        assert {b.theorem for b in given.bounds} == ({"Theorem 11"} if domain is ps.conv else {"Theorem 13"})


def test_a_quality_that_the_set_proves_reaches_the_trace_and_the_rate():
    """The bound of a tensor's oracle proves some delta < 1 at each answer; the rates take the smallest."""
    rng = np.random.default_rng(1)
    f, A = ps.LeastSquares(rng.standard_normal((2, 2, 2))), ps.RankOneTensor((2, 2, 2))
    r = ps.minimize(f, ps.lin(A), ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=4, rgap=None))
    assert 0 < r.delta < 1
    assert r.delta == r.trace.delta[:-1].min()
    p = r.promise(mdw=1 / 3)
    assert f"delta = {r.delta:.6g}" in p.bounds[0].constants
    smallest = np.minimum.accumulate(np.append(1.0, r.trace.delta[:-1]))
    factor = 1 - smallest**2 / 9
    np.testing.assert_allclose(p.bounds[0].curve, p.eps0 * factor ** np.arange(len(factor)))
    assert (r.trace.value <= p.curve * (1 + 1e-9)).all()


def test_an_oracle_of_ones_own_hands_its_quality_to_the_rate():
    class Second(ps.Oracle):
        """The second best of two equal pairs of atoms, which is as good as the best."""

        def begin(self, part, space, update):
            def ask(grad, active, gx):
                order = np.argsort(part.asked.scores(grad))
                atom = part.asked.atom(int(order[1]))
                dot = atom.dot(space, grad)
                return ps.Answer([atom], dot, delta=dot / float(part.asked.scores(grad).min()))

            return ask

    f, A = ps.LeastSquares([3.0, 2.0, 1.5]), ps.SignedBasis(3)
    r = ps.minimize(f, ps.lin(A), ps.Plain(ps.LineSearch()), oracle=Second(), stop=ps.Stop(iterations=2, rgap=None))
    assert r.trace.delta[0] == pytest.approx(2 / 3)
    assert r.promise().curve[1] == pytest.approx(r.promise().eps0 * (1 - (2 / 3) ** 2 / 3))
    assert (r.trace.value <= r.promise().curve * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(3))
def test_open_loop_steps_take_the_smallest_quality_so_far_and_keep_its_rate(seed):
    """Answers of quality 1, 1, 0.2, 1, 1, 0.2, ...: as bad as they may be."""

    class Unsteady(ps.Oracle):
        def begin(self, part, space, update):
            good, bad = (ps.Approximate(delta).begin(part, space, update) for delta in (1.0, 0.2))

            def ask(grad, active, gx):
                return bad(grad, active, gx) if len(lengths) % 3 == 2 else good(grad, active, gx)

            return ask

    class Noted(ps.OpenLoop):
        def begin(self, f, domain, space):
            rule = super().begin(f, domain, space)
            return lambda move: lengths.append(rule(move)) or lengths[-1]

        def decrease(self, f, part):
            return ps.OpenLoop().decrease(f, part)

    lengths = []
    f, D, _ = instance(seed, 3, 6)
    domain = ps.conv(ps.Dictionary(D, signed=True))
    stop = ps.Stop(iterations=90, rgap=None)
    r = ps.minimize(f, domain, ps.Plain(Noted()), oracle=Unsteady(), stop=stop)
    minimum = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-11)).value
    assert lengths == [2 / ((1.0 if t < 2 else 0.2) * t + 2) for t in range(90)]
    (bound,) = (b for b in r.promise().bounds if b.theorem == "Theorem 1")
    expected = rates.frank_wolfe(np.arange(91), L=f.L, diameter=geometry.diameter(domain.A), eps0=r.promise().eps0,
                                 delta=np.repeat([1.0, 0.2], [3, 88]))  # fmt: skip
    np.testing.assert_allclose(bound.curve, expected)
    assert kept(r, minimum)


@pytest.mark.parametrize(
    "A", [ps.RankOne((2, 3)), ps.Spectrahedron(3), ps.SignedBasis(6) | ps.Box(-np.ones(6), np.ones(6))]
)
def test_a_quality_that_rounding_spoils_is_one(A):
    y = np.random.default_rng(5).standard_normal(A.shape)
    f, stop = ps.LeastSquares(y + y.T if y.shape == (3, 3) else y), ps.Stop(iterations=8, rgap=None)
    for oracle, delta in ((ps.Exact(), 1.0), (ps.Approximate(0.5), 0.5)):
        r = ps.minimize(f, ps.conv(A), ps.Plain(ps.OpenLoop()), oracle=oracle, stop=stop)
        assert set(r.trace.delta) == {delta}
        assert "Theorem 1" in {b.theorem for b in r.promise().bounds}


def test_every_update_says_what_it_guarantees():
    """A new update has to appear here, with a decrease or with the reason why it has none."""
    silent = {
        "AcceleratedPursuit": "its rate holds in expectation",
        "BlendedPursuit": "a step on the weights of S is compared with no atom",
        "Blocks": "one summand moves at a time",
        "DecompositionInvariant": "its rates rest on faces, which no function of rates knows",
    }
    loud = {"Away", "BlendedPairwise", "FullyCorrective", "NormCorrective", "Pairwise", "Plain"}
    from pursuit import updates

    found = {n for n in updates.__all__ if isinstance(v := getattr(updates, n), type) and issubclass(v, updates.Update)}
    assert found - {"Update"} == loud | set(silent)
    for name in found - {"Update"}:
        states = getattr(updates, name).decrease is not updates.Update.decrease
        assert states == (name in loud)
