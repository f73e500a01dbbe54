"""Regressions: inputs that look harmless and once gave a wrong answer, a broken promise or a bare traceback."""

import math
from fractions import Fraction
from itertools import product
from operator import mul

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import pursuit as ps
from pursuit.atoms.closed import Closed
from pursuit.linalg.lanczos import Memory, SymmetricMap, extreme_eigenvalues

# ------------------------------------------------------------------ domains are not left


@pytest.mark.parametrize("A", [ps.Simplex(2), ps.Hypersimplex(4, 2), 3 * ps.Simplex(2)], ids=repr)
def test_a_hull_without_the_origin_does_not_contain_smaller_multiples(A):
    small = 0.1 * A.lmo(np.ones(A.shape)).vector
    with pytest.raises(ValueError, match="start lies outside"):
        ps.minimize(ps.LeastSquares(small), ps.conv(A), start=small)

    def refine(*_):
        return [1.0], [ps.Atom(small)]

    r = ps.minimize(ps.LeastSquares(small), ps.conv(A), refine=refine, stop=ps.Stop(iterations=3, rgap=None, gap=None))
    assert r.refused == r.iterations


@pytest.mark.parametrize(
    ("domain", "atom"),
    [(ps.lin(ps.Dictionary(np.array([[1.0], [0.0]]))), [1.0, 1.0]), (ps.cone(ps.Simplex(2)), [-1.0, 1.0])],
)
def test_atoms_without_a_source_do_not_smuggle_points_into_a_span_or_cone(domain, atom):
    f = ps.LeastSquares(np.array(atom))
    with pytest.raises(ValueError, match="not an atom of the set"):
        ps.minimize(f, domain, start=([1.0], [np.array(atom)]))

    def refine(*_):
        return [1.0], [np.array(atom)]

    assert ps.minimize(f, domain, refine=refine, stop=ps.Stop(iterations=2, rgap=None)).refused > 0


def test_a_result_of_a_sum_does_not_lose_a_summand_on_the_way():
    domain = ps.conv(ps.SignedBasis(3)) + ps.lin(ps.Dictionary(np.ones((3, 1))), rho=50)
    r = ps.minimize(ps.LeastSquares([5.0, 5.1, 4.1]), domain)
    with pytest.raises(ValueError, match="start lies outside"):
        ps.minimize(ps.LeastSquares([5.0, 5.1, 4.1]), ps.conv(ps.SignedBasis(3)), start=r)


def test_a_refinement_with_broken_weights_is_refused_not_raised(rng):
    A = ps.SignedBasis(3)
    for weights in ([np.nan], [0.5, 0.5]):

        def refine(f, d, active, w=weights):
            return w, [A.atom(0)]

        r = ps.minimize(ps.LeastSquares(rng.standard_normal(3)), ps.conv(A), refine=refine, stop=ps.Stop(iterations=2))
        assert r.refused == r.iterations


# ------------------------------------------------------------------ promises are not broken


def test_projections_on_parallel_spans_do_not_add_up_to_a_bound():
    A, B = ps.Dictionary(np.array([[1.0], [0.0]])), ps.Dictionary(np.array([[1.0], [1e-3]]))
    domain = ps.lin(A, width=1.0) + ps.lin(B, width=1.0)
    for s in zip(range(10), ps.iterate(ps.LeastSquares([0.0, 1.0]), domain, ps.FullyCorrective()), strict=False):
        assert s[1].lower <= 1e-12


def barrier():
    def value(x):
        return math.inf if (x >= 1).any() else float(-np.log(1 - x).sum() - 5 * x.sum())

    def grad(x):
        with np.errstate(all="ignore"):
            return 1 / (1 - x) - 5

    return ps.Smooth(value, grad)


@pytest.mark.parametrize(
    "update", [None, ps.Plain(ps.ShortStep()), ps.Plain(ps.LineSearch()), ps.FullyCorrective()], ids=repr
)
def test_infinite_values_are_too_far_and_never_certified(update):
    r = ps.minimize(barrier(), ps.lin(ps.SignedBasis(2)), update, stop=ps.Stop(iterations=500))
    assert math.isfinite(r.value)
    np.testing.assert_allclose(r.x, 0.8, atol=1e-3)


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6])
def test_certificates_allow_for_cancellation_far_from_the_origin(offset):
    """Atoms far away, a gradient orthogonal to them: the inner products cancel, the bound must not."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        direction = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        atoms = offset * direction[:, :1] + direction[:, :4] @ rng.standard_normal((4, 5))
        inside = atoms @ rng.dirichlet(np.ones(5))
        y = inside + direction[:, 5]  # orthogonal to every atom: f* = 1/2 at `inside`
        r = ps.minimize(ps.LeastSquares(y), ps.conv(ps.Dictionary(atoms)), stop=ps.Stop(iterations=20, rgap=None))
        assert r.lower <= 0.5 + 1e-15 * offset


def test_a_bound_allows_for_the_rounding_of_the_longest_atom_of_an_image():
    def lowest(X, y, reach):
        """The minimum of 1/2 ||X b - y||^2 over the edges of [-reach, reach]^2, in exact arithmetic."""
        X, y, found = [list(map(Fraction, row)) for row in X.tolist()], list(map(Fraction, y.tolist())), []
        for j, end in product((0, 1), (-reach, reach)):
            left = [t - end * row[j] for row, t in zip(X, y, strict=True)]
            other = [row[1 - j] for row in X]
            b = sum(map(mul, other, left)) / sum(map(mul, other, other))
            b = max(min(b, reach), -reach)
            found.append(sum((t - b * a) ** 2 for a, t in zip(other, left, strict=True)) / 2)
        return min(found)

    for seed in range(40):  # columns are nearly equal: short atoms are as good as long ones, but for rounding
        rng = np.random.default_rng(seed)
        X, f = rng.standard_normal((6, 1)) * (1 + 1e-8 * rng.standard_normal((6, 2))), ps.LeastSquares(rng.random(6))
        domain = ps.conv(1000 * ps.Box(-np.ones(2), np.ones(2)).through(X))
        r = ps.minimize(f, domain)
        again = ps.minimize(f, domain, ps.NormCorrective(), start=r, stop=ps.Stop(rgap=1e-13, iterations=6))
        assert max(r.lower, again.lower) <= lowest(X, f.y, 1000)
        assert again.gap <= 1e-9


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e8, 1e12])
@pytest.mark.parametrize("update", [ps.Plain(ps.ShortStep()), ps.NormCorrective()], ids=repr)
@pytest.mark.parametrize("wrap", [ps.conv, ps.lin])
def test_backtracking_knows_no_units_of_f(scale, update, wrap, rng):
    D, y = rng.standard_normal((8, 12)), rng.standard_normal(8)

    def states(s):
        f = ps.Smooth(
            lambda x: s * float(np.sqrt(1 + (x - y) ** 2).sum()), lambda x: s * (x - y) / np.sqrt(1 + (x - y) ** 2)
        )
        return ps.minimize(f, wrap(2 * ps.Dictionary(D, signed=True)), update, stop=ps.Stop(iterations=10, rgap=None)).x

    np.testing.assert_allclose(states(scale), states(1.0), atol=1e-6)


def test_an_unbounded_result_belongs_together():
    f = ps.Quadratic(np.array([[1.0, -1.0], [-1.0, 1.0]]), [-1.0, -1.0])  # falls for ever along (1, 1)
    for update in (None, ps.FullyCorrective()):
        r = ps.minimize(f, ps.lin(ps.SignedBasis(2)), update, stop=ps.Stop(iterations=50))
        assert r.status is ps.Status.UNBOUNDED
        assert r.check().error <= 1e-12
        assert r.value == pytest.approx(f.value(r.x))


# ------------------------------------------------------------------ the caller's data


def test_float32_stays_float32_where_operators_and_lists_join_in(rng):
    D, y = rng.standard_normal((6, 9)), rng.standard_normal(6).astype(np.float32)
    for A in (ps.Dictionary(aslinearoperator(D)), ps.Ball(9, 2).through(sp.csr_array(D))):
        for wrap in (ps.conv, ps.lin):
            assert (
                ps.minimize(ps.LeastSquares(y), wrap(A), ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=5)).x.dtype
                == np.float32
            )
    assert ps.LeastSquares(y, weights=[1.0] * 6).value_and_grad(y)[1].dtype == np.float32
    assert (
        ps.Quadratic(np.eye(2, dtype=np.float32), [1.0, 2.0]).value_and_grad(np.ones(2, np.float32))[1].dtype
        == np.float32
    )


def test_two_different_atoms_of_one_source_are_noticed():
    class Signs(ps.Atoms):
        def lmo(self, g):
            i = int(np.abs(g).argmax())
            return ps.Atom(-np.sign(g[i]) * np.eye(4)[i], source=i)  # forgets coef=

    with pytest.raises(ValueError, match="two different atoms have the source"):
        ps.minimize(ps.LeastSquares([0.3, -0.2, 0.1, 0.05]), ps.conv(Signs()), ps.Away())


def test_empty_and_repeated_positions_of_sparse_atoms_are_fine():
    class Corner(ps.Atoms):  # {0, e_1, ..., e_n}
        shape = (3,)

        def lmo(self, g):
            i = int(np.argmin(g))
            return ps.SparseAtom([i], [1.0], (3,), i) if g[i] < 0 else ps.SparseAtom([], [], (3,), "zero")

    for update in (None, ps.Away(), ps.Plain(ps.ShortStep())):
        r = ps.minimize(ps.LeastSquares([0.3, -1.0, 0.2]), ps.conv(Corner()), update, stop=ps.Stop(gap=1e-6))
        np.testing.assert_allclose(r.x, [0.3, 0.0, 0.2], atol=2e-2)
    atom = ps.SparseAtom([2, 0, 2], [1.0, 5.0, 1.0], (3,))
    np.testing.assert_array_equal(atom.vector, [5.0, 0.0, 2.0])
    assert atom.positions.tolist() == [0, 2]


# ------------------------------------------------------------------ the public law checkers


def test_broken_sets_and_objectives_are_found_out():
    class Small(ps.SignedBasis):
        def __init__(self):
            super().__init__(3)
            self.radius = 0.5

    with pytest.raises(AssertionError, match="the radius is not"):
        ps.check_atoms(Small())

    class Writes(ps.SignedBasis):
        def lmo(self, g):
            g[0] = 0.0
            return super().lmo(g)

    with pytest.raises(AssertionError, match="changed its argument"):
        ps.check_atoms(Writes(3))
    for f, words in (
        (ps.Smooth(lambda x: float(x @ x), lambda x: 2 * x, L=1.0), "L is not 1"),
        (ps.Smooth(lambda x: float(x @ x), lambda x: 2 * x, L=9.0, mu=3.0), "not convex with mu"),
        (ps.Smooth(lambda x: float(x @ x), lambda x: 2 * x, infimum=1e6), "the infimum is not"),
    ):
        with pytest.raises(AssertionError, match=words):
            ps.check_objective(f, shape=(3,))


# ---------------------------------------------------------------------- found by review


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("oracle", [ps.Lazy(), ps.Exact()])
def test_lazy_oracles_of_a_sum_never_answer_with_atoms_of_the_other_summand(seed, oracle):
    rng = np.random.default_rng(seed)
    f = ps.LeastSquares(5 * rng.standard_normal(8))
    domain = ps.conv(ps.Dictionary(rng.standard_normal((8, 5)))) + ps.conv(2 * ps.KSparse(8, 3))
    best = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-9))
    r = ps.minimize(f, domain, ps.FullyCorrective(), oracle=oracle)
    assert best.lower * (1 - 1e-9) <= r.value
    assert r.lower <= best.value * (1 + 1e-9)


def test_sets_that_say_their_oracle_is_not_exact_certify_nothing():
    class Careless(ps.Dictionary):
        exact = False

    r = ps.minimize(ps.LeastSquares([1.0, 2.0]), ps.conv(Careless(np.eye(2))), stop=ps.Stop(iterations=100))
    assert r.gap == r.value - 0.0  # all that is known is the infimum of f
    assert r.iterations < 100  # it stalls, and says so


def test_a_tiny_beta_does_not_prove_that_lanczos_has_seen_everything():
    d = np.ones(650)
    for seed in range(100):
        for delta in (1e-12, 1e-11):
            d[0] = 1.0 + delta
            found = extreme_eigenvalues(
                SymmetricMap(lambda v: d * v, 650), 1, Memory(np.random.default_rng(seed)), 1e-6, lambda *bounds: False
            )
            assert found.upper >= d[0] - 1e-14


def test_multipliers_of_large_matrices_are_accurate(rng):
    Y = rng.standard_normal((700, 3)) @ rng.standard_normal((3, 700))
    r = ps.minimize(ps.LeastSquares(Y), ps.conv(0.5 * np.linalg.norm(Y, "nuc") * ps.RankOne((700, 700))))
    level = float(np.linalg.norm(r.x - Y, 2)) * 0.5 * np.linalg.norm(Y, "nuc")
    assert r.dual.multipliers[0] == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize("A", [ps.Groups([0, 0, 1, 1]), ps.KSupport(4, 2), ps.Simplex(4)])
def test_a_gradient_of_nan_is_told_before_the_oracle_is_asked(A):
    f = ps.Smooth(lambda x: 1.0, lambda x: np.where(np.abs(x).sum() > 0, np.nan, 1.0) * np.ones(4))
    with pytest.raises(ValueError, match="NaN"):
        ps.minimize(f, ps.conv(A))


def test_an_astronomical_first_gradient_is_no_measure_of_rounding():
    f = ps.Poisson(np.arange(5.0))
    r = ps.minimize(f, ps.conv(100 * ps.Simplex(5)), stop=ps.Stop(rgap=1e-6, iterations=500))
    assert r.status is not ps.Status.STATIONARY or r.gap <= 1e-6 * abs(r.value)


def test_a_wrong_closed_form_and_a_wrong_hessian_are_found_out(rng):
    class Short(ps.Ball):
        def geometry(self):
            return Closed(3, radius=0.5)

    with pytest.raises(AssertionError, match=r"the radius is not 0\.5"):
        ps.check_atoms(Short(3, 2))
    half = ps.Smooth(lambda x: float(x @ x), lambda x: 2.0 * x, hessian=lambda x: np.eye(3))
    with pytest.raises(AssertionError, match="the Hessian is not that of f"):
        ps.check_objective(half, shape=(3,))
