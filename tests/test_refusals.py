"""Bad input is refused in one sentence that names the argument, what it got, and what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import aslinearoperator as op
from sentences import refusal

import pursuit as ps

y, D = np.array([1.0, -1.0]), np.eye(2)
F2, HULL, SPAN = ps.LeastSquares(y), ps.conv(ps.Simplex(2)), ps.lin(ps.SignedBasis(2))
DIAMOND = ps.conv(ps.SignedBasis(2))
F4, PAIR = ps.LeastSquares(np.ones(4)), ps.product(ps.conv(ps.Simplex(2)), ps.conv(ps.Ball(2, 2)))
RNG = np.random.default_rng(7)
M, Y = RNG.integers(1, 5, (6, 4)).astype(float), RNG.integers(-4, 5, (3, 6)).astype(float)
v, A = Y[0], ps.Dictionary(M)
F = ps.LeastSquares(v)
INDEFINITE = np.diag([2.0, 1.0, -1.0])
HIDDEN = np.array([[1.0, 2.0], [2.0, 1.0]])  # the diagonal does not show the eigenvalue -1
LARGE = sp.block_diag([HIDDEN] * 400).tocsr()


def spoiled(value):
    return np.array([[1.0, 0.0], [0.0, value]])


class Own(ps.Atoms):
    """A user's set, whose oracle gives this answer."""

    def __init__(self, answer):
        self.answer = answer

    def lmo(self, g):
        return self.answer


class Several(Own):
    def best(self, g, several):
        return self.answer


class Signs(ps.Atoms):
    def lmo(self, g):
        return -np.sign(g)


class Objective(ps.Objective):
    """A user's objective, whose value and gradient are these."""

    space = F.space

    def __init__(self, value, grad):
        self.answer = value, grad

    def value_and_grad(self, x):
        return self.answer


def run(f=F, A=A, update=None, **options):
    return ps.minimize(f, ps.conv(A), update, stop=ps.Stop(iterations=3), **options)


def bumps(bounds, **options):
    return ps.Parametric(ps.families.Gaussian(v, 1.0), bounds, **options)


def with_metric(metric):
    return ps.minimize(F, ps.lin(A), ps.NormCorrective(metric=metric, L=1.0))


def run_metric(metric):
    return ps.minimize(F2, HULL, ps.NormCorrective(L=1.0, metric=metric))


REFUSED = [  # words of the sentence, and the call
    ("y contains NaN or infinity", lambda: ps.LeastSquares([1.0, np.nan])),
    ("column 1 of D contains NaN or infinity", lambda: ps.Dictionary(spoiled(np.nan))),
    ("column 1 of D contains NaN", lambda: ps.Dictionary(sp.csr_array(spoiled(np.nan)))),
    ("c contains NaN", lambda: ps.Quadratic(D, [np.nan, 0.0])),
    ("start contains NaN", lambda: ps.minimize(F2, SPAN, start=[0.0, np.nan])),
    ("start has NaN", lambda: ps.minimize(F2, SPAN, start=([np.nan], [y]))),
    ("returned NaN at iteration 0", lambda: ps.minimize(ps.Smooth(lambda x: np.nan, lambda x: x), SPAN)),
    ("y is empty", lambda: ps.LeastSquares([])),
    ("weights have shape (1,), y has (2,)", lambda: ps.LeastSquares(y, [1.0])),
    ("weights must be positive", lambda: ps.LeastSquares(y, [1.0, -1.0])),
    ("H has shape (2, 3)", lambda: ps.Quadratic(np.ones((2, 3)))),
    ("H is not symmetric", lambda: ps.Quadratic([[1.0, 1.0], [0.0, 1.0]])),
    ("H has the eigenvalue -1", lambda: ps.Quadratic(-D)),
    ("c has shape (1,)", lambda: ps.Quadratic(D, [1.0])),
    ("width is 0.0", lambda: ps.Huber(y, 0.0)),
    ("single class 1", lambda: ps.Logistic([1, 1])),
    ("labels from 1 to 2", lambda: ps.Logistic([1, 2])),
    ("labels from -1 to 1", lambda: ps.Logistic([-1, 0, 1])),
    ("single class 0", lambda: ps.Multinomial([0, 0])),
    ("labels that are not 0, 1, 2", lambda: ps.Multinomial([0.5, 1.0])),
    ("not a probability distribution", lambda: ps.Multinomial(np.ones((2, 2)))),
    ("negative count", lambda: ps.Poisson([-1])),
    ("L is 0.0", lambda: ps.Smooth(abs, abs, L=0.0)),
    ("mu is 2.0", lambda: ps.Smooth(abs, abs, L=1.0, mu=2.0)),
    ("must not be empty", lambda: ps.Dictionary(np.ones((3, 0)))),
    ("D has shape (2,)", lambda: ps.Dictionary(y)),
    ("column 1 of D is zero", lambda: ps.Dictionary(np.array([[1.0, 0.0], [1.0, 0.0]]))),
    ("column 1 of D is zero", lambda: ps.Dictionary(sp.csc_array(np.diag([1.0, 0.0])))),
    ("n is 0", lambda: ps.SignedBasis(0)),
    ("p is 0.5", lambda: ps.Ball(3, 0.5)),
    ("lower exceeds upper", lambda: ps.Box([1.0], [0.0])),
    ("shapes (1,) and (2,)", lambda: ps.Box([1.0], [2.0, 2.0])),
    ("factor of an atom set is 0", lambda: 0 * ps.Simplex(2)),
    ("shapes (2,) and (3,)", lambda: ps.Simplex(2) | ps.Simplex(3)),
    ("M has 3 columns", lambda: ps.Ball(2, 2).through(np.ones((4, 3)))),
    ("M is ndarray of shape (2,)", lambda: ps.Ball(2, 2).through(np.ones(2))),
    ("M contains NaN", lambda: ps.Ball(2, 2).through(sp.csr_array(spoiled(np.nan)))),
    ("to NaN or infinity", lambda: ps.Ball(2, 2).through(op(spoiled(np.nan)))),
    ("M is complex", lambda: ps.Ball(2, 2).through(sp.csr_array(1j * D))),
    ("M has no adjoint", lambda: ps.Ball(2, 2).through(LinearOperator((2, 2), matvec=lambda v: v, dtype=float))),
    ("M fails the dot test", lambda: ps.Ball(2, 2).through(LinearOperator((2, 2), np.copy, np.negative, dtype=float))),
    ("k is 4; give a number of entries from 1 to n = 3", lambda: ps.KSupport(3, 4)),
    ("k is 0; give a number of entries from 1 to n = 3", lambda: ps.KSupport(3, 0)),
    ("groups is 3", lambda: ps.Groups(3)),
    ("groups is empty", lambda: ps.Groups([])),
    ("group 1 is empty", lambda: ps.Groups([[0, 1], []])),
    ("labels from 0 to 2; number them 0, 1, 2", lambda: ps.Groups([0, 2, 2])),
    ("labels from -1 to 0", lambda: ps.Groups([-1, 0])),
    ("groups has dtype float64", lambda: ps.Groups([0.0, 1.0])),
    ("groups has dtype bool", lambda: ps.Groups([True, False])),
    ("group 1 has dtype float64", lambda: ps.Groups([[0], [np.nan]])),
    ("name the coordinate 1 more than once", lambda: ps.Groups([[0, 1], [1, 2]])),
    ("do not name the coordinate 2", lambda: ps.Groups([[0, 1], [3]])),
    ("group 0 has shape (1, 1)", lambda: ps.Groups([[[0]], [[1]]])),
    ("the least of weights is 0", lambda: ps.Groups([0, 1], [1.0, 0.0])),
    ("one for each of the 2 groups", lambda: ps.Groups([0, 1], np.ones(3))),
    ("g is ndarray of shape (3, 2)", lambda: ps.Permutations(3).lmo(np.ones((3, 2)))),
    ("accuracy is 0.0", lambda: ps.refine.Regroup(accuracy=0.0)),
    ("wrap a matrix in Dictionary", lambda: ps.conv(D)),
    ("domain is Simplex", lambda: ps.minimize(F2, ps.Simplex(2))),
    ("update is", lambda: ps.minimize(F2, HULL, ps.FullyCorrective)),
    ("shape (2,), the atoms have (3,)", lambda: ps.minimize(F2, ps.conv(ps.Simplex(3)))),
    ("dtype float64, the atoms float32", lambda: ps.minimize(F2, ps.conv(ps.Dictionary(D.astype(np.float32))))),
    ("neither f nor the atoms know the shape", lambda: ps.minimize(ps.Smooth(abs, abs), ps.conv(ps.Atoms()))),
    ("delta is 0.0", lambda: ps.Approximate(0.0)),
    ("delta is 1.1", lambda: ps.Approximate(1.1)),
    ("additive is -1.0", lambda: ps.Approximate(additive=-1.0)),
    ("additive errors belong to hulls", lambda: ps.minimize(F2, SPAN, oracle=ps.Approximate(additive=1.0))),
    ("rho is -1.0", lambda: ps.lin(ps.Simplex(2), rho=-1.0)),
    ("width is 0.0", lambda: ps.lin(ps.Simplex(2), width=0.0)),
    ("OpenLoop is a step inside a hull", lambda: ps.minimize(F2, SPAN, ps.Plain(ps.OpenLoop()))),
    ("DiameterStep is a step inside a hull", lambda: ps.minimize(F2, SPAN, ps.Plain(ps.DiameterStep()))),
    ("diameter of", lambda: ps.minimize(F2, ps.conv(Signs()), ps.Plain(ps.DiameterStep()))),
    ("C is 0.0", lambda: ps.CurvatureStep(0.0)),
    ("0 < shrink <= 1 < grow", lambda: ps.Backtracking(grow=1.0)),
    ("L is -1.0", lambda: ps.ShortStep(L=-1.0)),
    ("inner is 0", lambda: ps.NormCorrective(inner=0)),
    ("several is 0", lambda: ps.FullyCorrective(several=0)),
    ("accuracy is 1.0", lambda: ps.FullyCorrective(accuracy=1.0)),
    ("Stop(gap=-1.0) can never be met", lambda: ps.Stop(gap=-1.0)),
    ("Stop(value=nan) can never be met", lambda: ps.Stop(value=np.nan)),
    ("start lies outside", lambda: ps.minimize(F2, HULL, start=[1.0, 1.0])),
    ("start lies outside", lambda: ps.minimize(F2, ps.lin(ps.Dictionary(D[:, :1])), start=[1.0, 1.0])),
    ("start lies outside", lambda: ps.minimize(F2, HULL, start=([0.7, 0.7], [D[0], D[1]]))),
    ("not an atom of the set", lambda: ps.minimize(F2, HULL, start=([1.0], [np.array([2.0, 2.0])]))),
    ("not an atom of the set", lambda: ps.minimize(F2, ps.conv(Signs()), start=([1.0], [np.array([9.0, 9.0])]))),
    ("start is 'last'", lambda: ps.minimize(F2, HULL, start="last")),
    ("start lies outside", lambda: ps.minimize(F2, DIAMOND, start=ps.minimize(F2, ps.conv(3 * ps.SignedBasis(2))).x)),
    ("start has shape (1,)", lambda: ps.minimize(F2, SPAN, start=[0.0])),
    ("give one weight each", lambda: ps.minimize(F2, HULL, start=([1.0], [D[0], D[1]]))),
    ("an atom has shape (3,)", lambda: ps.minimize(F2, HULL, start=([1.0], [np.ones(3)]))),
    ("f is not finite at 0", lambda: ps.minimize(ps.Smooth(lambda x: np.nan, lambda x: x), HULL)),
    ("metric has an entry that is not positive", lambda: run_metric([1.0, -1.0])),
    ("metric has shape (2, 3)", lambda: run_metric(np.ones((2, 3)))),
    ("metric is not symmetric", lambda: run_metric([[1.0, 1.0], [0.0, 1.0]])),
    ("refine returned int", lambda: ps.minimize(ps.LeastSquares([0.6, 0.5]), DIAMOND, refine=lambda *_: 3)),
    ("an atom has shape (2, 1)", lambda: ps.minimize(F2, ps.lin(Own(np.ones((2, 1)))))),
    ("H has shape (0, 0)", lambda: ps.Quadratic(np.zeros((0, 0)))),
    ("diameter is -1.0", lambda: ps.DiameterStep(diameter=-1.0)),
    ("positions reach from 5", lambda: ps.SparseAtom([5], [1.0], (3,))),
    ("value of f", lambda: run(ps.Smooth(lambda x: x, lambda x: x))),
    ("value of f", lambda: run(ps.Smooth(lambda x: np.ones(1), lambda x: x))),
    ("value of f", lambda: run(Objective(v, v))),
    ("value of f", lambda: run(ps.Stochastic(lambda x, r: "1", lambda x, r: x))),
    ("value returned", lambda: run(ps.Smooth(lambda x: 1.0))),
    ("hessian returned", lambda: run(ps.Smooth(F.value, lambda x: x - v, hessian=lambda x: 1.0))),
    ("gradient of f", lambda: run(ps.Smooth(lambda x: 1.0, lambda x: 1.0))),
    ("gradient of f", lambda: run(Objective(1.0, v.tolist()))),
    ("gradient of f", lambda: run(Objective(1.0, np.ones(5)))),
    ("atom", lambda: run(A=Own(np.ones(5)))),
    ("atom", lambda: run(A=Own(ps.SparseAtom([0], [1.0], (9,))))),
    ("oracle", lambda: run(A=Own(v.tolist()))),
    ("atom", lambda: run(A=Own(v.astype(object)))),
    ("oracle", lambda: run(A=Several([]))),
    ("step returned None; return a number", lambda: run(update=ps.Plain(lambda move: None))),
    ("score", lambda: ps.path(F, A, atoms=[1], score=lambda r: None)),
    ("atom", lambda: run(A=Own(np.ones(5)) | A)),
    ("atom", lambda: run(A=2 * Own(np.ones(5)))),
    ("family", lambda: ps.Parametric(lambda theta: ["a"], [(0, 1)])),
    ("bounds", lambda: bumps([(0, 1), (0, 1)])),
    ("bounds", lambda: ps.Parametric(ps.families.Translates(np.cos, v), [(0, 1), (0, 1)])),
    ("M has 4 columns", lambda: ps.Simplex(3).through(np.ones((2, 4)))),
    ("M has 2 columns", lambda: ps.Simplex(3).through(sp.eye_array(2))),
    ("A | B joins two sets", lambda: A | 3),
    ("wrap a matrix in Dictionary", lambda: A | M),
    ("wrap a matrix in Dictionary", lambda: M | A),
    ("the factor of an atom set is Dictionary", lambda: A * A),
    ("the factor of an atom set is ndarray of shape (3,)", lambda: np.ones(3) * A),
    ("the factor of an atom set is", lambda: 10**400 * A),
    ("the factor of an atom set is inf", lambda: 1e200 * (1e200 * A)),
    ("a sum of domains got int", lambda: ps.conv(A) + 1),
    ("a sum of domains got Dictionary", lambda: A + ps.conv(A)),
    ("product got Dictionary", lambda: ps.product(A)),
    ("give domains one by one", lambda: ps.product([ps.conv(A)] * 2)),
    ("product got no domain", ps.product),
    ("does not know the shape", lambda: ps.product(ps.conv(lambda g: g))),
    ("order is 'greedy'", lambda: ps.Blocks(ps.Away(), "greedy")),
    ("give an update of one summand", lambda: ps.Blocks(ps.Blocks(ps.Away()))),
    ("update is DecompositionInvariant", lambda: ps.Blocks(ps.DecompositionInvariant())),
    ("shapes", lambda: ps.conv(A) + ps.lin(ps.Simplex(2))),
    ("a domain is made of atoms", lambda: ps.cone(3)),
    ("A is lin(", lambda: ps.path(F, ps.lin(A), radii=[1.0])),
    ("A is ndarray of shape (6, 4)", lambda: ps.path(F, M, radii=[1.0])),
    ("atoms must be positive and increasing integers", lambda: ps.path(F, A, atoms=[3, 1])),
    ("atoms must be positive and increasing integers; it is 3", lambda: ps.path(F, A, atoms=3)),
    ("radii must be positive", lambda: ps.path(F, A, radii=[1.0, np.inf])),
    ("radii=..., penalties=... or atoms=...", lambda: ps.path(F, A)),
    ("H has an eigenvalue of at most -1", lambda: ps.Quadratic(sp.csr_array(INDEFINITE))),
    ("H has an eigenvalue of at most -1", lambda: ps.Quadratic(sp.csr_array(HIDDEN))),
    ("H has an eigenvalue of at most -1", lambda: ps.Quadratic(LARGE)),
    ("H is not symmetric", lambda: ps.Quadratic(sp.csr_array([[1.0, 1.0], [0.0, 1.0]]))),
    ("H has shape (6, 4)", lambda: ps.Quadratic(sp.csr_array(M))),
    ("D has shape (6,)", lambda: ps.Dictionary(sp.coo_array(v))),
    ("metric has the eigenvalue -1", lambda: with_metric(-np.eye(6))),
    ("metric has shape (7,), x has (6,)", lambda: run(update=ps.Plain(ps.ShortStep(metric=np.ones(7), L=1.0)))),
    ("shape=...", lambda: ps.check_objective(ps.Smooth(abs, abs))),
    ("f is None", lambda: ps.citation(None, None)),
    ("every is '1'", lambda: run(checkpoint="r.npz", every="1")),
    ("step is", lambda: ps.Plain(ps.ShortStep)),
    ("start has 4 atoms", lambda: run(start=(1.0, M.T))),
    ("weights of start", lambda: run(start=(["a"], M.T[:1]))),
    ("atom of start", lambda: run(start=([1.0], [["a"] * 6]))),
    ("start is", lambda: run(start={"x": v})),
    ("start is Atom(source=None, coef=1); give it as a pair of lists", lambda: run(start=ps.Atom(v))),
    ("cannot be split over the summands", lambda: ps.minimize(F, ps.conv(A) + ps.conv(A), start=v)),
    (
        "its atoms count as those of one summand",
        lambda: ps.minimize(F, ps.conv(A) + ps.conv(A), start=([1, 1], M.T[:2])),
    ),
    (
        "piece 0 of start lies outside conv(Simplex(2))",
        lambda: ps.minimize(F4, PAIR, start=([1, 1], np.eye(4)[[0, 2]])),
    ),
    ("method is None", lambda: ps.encode(M, Y, atoms=2, method=None)),
    ("dtype is 'half'", lambda: ps.encode(M, Y, atoms=2, dtype="half")),
    ("atoms is ragged", lambda: ps.encode(M, Y, atoms=[[1], [1, 2]])),
    ("gram was given with weights", lambda: ps.encode(M, np.ma.masked_array(Y, Y > 3), atoms=2, gram=M.T @ M)),
    ("shape is 3", lambda: ps.RankOne(3)),
    ("shape is (3, 3, 3)", lambda: ps.Orthogonal((3, 3, 3))),
    ("rows is an array of <U1", lambda: ps.RankOne((2, 2)).at(["a", "b"], [0, 1])),
    ("rows is ragged", lambda: ps.RankOne((2, 2)).at([[0], [0, 1]], [0, 1])),
    ("row 2 has no observed entry", lambda: ps.SymmetricRankOne(3).at([0], [1])),
    ("group 0 is ragged", lambda: ps.Groups([[0, [1]], [2]])),
    ("positions must be integers", lambda: ps.SparseAtom(["a"], [1.0], (3,))),
    ("shape a tuple of integers", lambda: ps.SparseAtom([0], [1.0], 3)),
    ("A is ndarray", lambda: ps.geometry.gauge(M, v)),
    ("steps is 0", lambda: ps.refine.Slide(0)),
    ("tolerance is 0", lambda: ps.refine.Merge(0.0)),
    ("share is 2", lambda: ps.refine.Merge(0.1, share=2)),
    ("refine is", lambda: ps.minimize(F2, HULL, refine=ps.refine.Slide)),
    ("mu is 1.0 with convex=False", lambda: ps.Smooth(abs, abs, mu=1.0, convex=False)),
    ('give a number of at least 1, or "log".', lambda: ps.OpenLoop(0.5)),
    ('give a number of at least 1, or "log".', lambda: ps.OpenLoop("linear")),
    ("DecompositionInvariant needs a hull with faces", lambda: run(update=ps.DecompositionInvariant())),
    ("column 0 of D is too short", lambda: ps.encode(np.diag(np.float32([1e-20, 1])), np.ones((1, 2), "f"), atoms=1)),
    ("piece 0 of start lies outside conv(Simplex(2))", lambda: ps.minimize(F4, PAIR, start=[[0.5, 0.7], [0.0, 0.0]])),
    ("piece 1 of start has shape (3,)", lambda: ps.minimize(F4, PAIR, start=[[0.5, 0.5], [0.0, 0.0, 0.0]])),
    ("start has 4 entries", lambda: ps.minimize(F4, PAIR, start=[0.5, 0.5, 0.0, 0.0])),
    ("piece 1 of start lies outside", lambda: ps.minimize(F4, PAIR, start=np.array([0.5, 0.5, 2.0, 0.0]))),
    ("low < high", lambda: bumps([(1, 0)])),
    ("bounds contains NaN or infinity", lambda: bumps([(0, np.inf)])),
    ("one per parameter (1)", lambda: bumps([(0, 1)], grid=(4, 4))),
    ("an atom of the family contains NaN", lambda: ps.Parametric(lambda theta: v * np.nan, [(0, 1)]).lmo(v)),
    ("width is 0", lambda: ps.families.Gaussian(v, 0)),
    ("2 columns for each of 3 columns", lambda: ps.SignedBasis(4).through(np.ones((2, 2)), columns=3)),
    ("l2 is -1.0", lambda: ps.SignedBasis(2).through(np.ones((2, 2)), l2=-1.0)),
    ("p is 0", lambda: ps.Ridge(ps.LeastSquares([1.0]), 0)),
]


@pytest.mark.parametrize(("words", "call"), REFUSED)
def test_bad_input_is_refused_in_a_sentence_of_our_own(words, call):
    assert words in refusal(call)


def test_traces_name_their_columns_where_one_does_not_exist():
    with pytest.raises(AttributeError, match="a trace has the columns"):
        ps.minimize(F2, HULL).trace.speed


def test_a_diagonal_that_is_a_number_is_refused_with_what_to_write():
    f = ps.Smooth(
        lambda x: float(x @ x) - x[0], lambda x: 2.0 * x - [1.0, 0.0, 0.0], hessian=lambda x: ps.metrics.Diagonal(2.0)
    )
    with pytest.raises(TypeError, match=r"give an array, or use Identity\(2.0\)"):
        ps.minimize(f, ps.conv(ps.SignedBasis(3)))
