"""Bad input raises one sentence that names the argument, what it got, and what to do."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import aslinearoperator as op

import pursuit as ps

y = np.array([1.0, -1.0])
D = np.eye(2)
SQUARES = ps.LeastSquares(y)


def spoiled(value):
    bad = D.copy()
    bad[1, 1] = value
    return bad


CASES = {
    "nan in y": (lambda: ps.LeastSquares([1.0, np.nan]), ValueError, "y contains NaN or infinity"),
    "infinity in y": (lambda: ps.Huber([1.0, np.inf], 1.0), ValueError, "y contains NaN or infinity"),
    "nan in D": (lambda: ps.Dictionary(spoiled(np.nan)), ValueError, "column 1 of D contains NaN or infinity"),
    "infinity in D": (lambda: ps.Dictionary(spoiled(-np.inf)), ValueError, "column 1 of D contains NaN or infinity"),
    "nan in a sparse D": (
        lambda: ps.Dictionary(sp.csr_array(spoiled(np.nan))),
        ValueError,
        "column 1 of D contains NaN",
    ),
    "nan in weights": (lambda: ps.LeastSquares(y, [1.0, np.nan]), ValueError, "weights contains NaN"),
    "nan in H": (lambda: ps.Quadratic(spoiled(np.nan)), ValueError, "H contains NaN"),
    "nan in c": (lambda: ps.Quadratic(D, [np.nan, 0.0]), ValueError, "c contains NaN"),
    "nan in a box": (lambda: ps.Box([0.0, np.nan], [1.0, 1.0]), ValueError, "lower contains NaN"),
    "nan in start": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.SignedBasis(2)), start=[0.0, np.nan]),
        ValueError,
        "start contains NaN",
    ),
    "nan in start weights": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.SignedBasis(2)), start=([np.nan], [y])),
        ValueError,
        "start has NaN",
    ),
    "nan from the user's f": (
        lambda: ps.minimize(ps.Smooth(lambda x: np.nan, lambda x: x), ps.lin(ps.SignedBasis(2))),
        ValueError,
        "returned NaN at iteration 0",
    ),
    "complex": (lambda: ps.LeastSquares([1j]), TypeError, "y is complex"),
    "strings": (lambda: ps.LeastSquares(["a"]), TypeError, "y has dtype"),
    "empty y": (lambda: ps.LeastSquares([]), ValueError, "y is empty"),
    "shapes of weights": (lambda: ps.LeastSquares(y, [1.0]), ValueError, "weights have shape (1,), y has (2,)"),
    "negative weights": (lambda: ps.LeastSquares(y, [1.0, -1.0]), ValueError, "weights must be positive"),
    "H not square": (lambda: ps.Quadratic(np.ones((2, 3))), ValueError, "H has shape (2, 3)"),
    "H not symmetric": (lambda: ps.Quadratic([[1.0, 1.0], [0.0, 1.0]]), ValueError, "H is not symmetric"),
    "H not positive": (lambda: ps.Quadratic(-D), ValueError, "H has the eigenvalue -1"),
    "shape of c": (lambda: ps.Quadratic(D, [1.0]), ValueError, "c has shape (1,)"),
    "width of Huber": (lambda: ps.Huber(y, 0.0), ValueError, "width is 0.0"),
    "one class": (lambda: ps.Logistic([1, 1]), ValueError, "single class 1"),
    "odd labels": (lambda: ps.Logistic([1, 2]), ValueError, "labels from 1 to 2"),
    "three labels": (lambda: ps.Logistic([-1, 0, 1]), ValueError, "labels from -1 to 1"),
    "one class, multinomial": (lambda: ps.Multinomial([0, 0]), ValueError, "single class 0"),
    "fractional classes": (lambda: ps.Multinomial([0.5, 1.0]), ValueError, "labels that are not 0, 1, 2"),
    "rows that are no distributions": (
        lambda: ps.Multinomial(np.ones((2, 2))),
        ValueError,
        "not a probability distribution",
    ),
    "negative counts": (lambda: ps.Poisson([-1]), ValueError, "negative count"),
    "L": (lambda: ps.Smooth(abs, abs, L=0.0), ValueError, "L is 0.0"),
    "mu above L": (lambda: ps.Smooth(abs, abs, L=1.0, mu=2.0), ValueError, "mu is 2.0"),
    "empty dictionary": (lambda: ps.Dictionary(np.ones((3, 0))), ValueError, "must not be empty"),
    "dictionary of shape (n,)": (lambda: ps.Dictionary(y), ValueError, "D has shape (2,)"),
    "zero column": (lambda: ps.Dictionary(np.array([[1.0, 0.0], [1.0, 0.0]])), ValueError, "column 1 of D is zero"),
    "zero sparse column": (
        lambda: ps.Dictionary(sp.csc_array(np.diag([1.0, 0.0]))),
        ValueError,
        "column 1 of D is zero",
    ),
    "dimension 0": (lambda: ps.SignedBasis(0), ValueError, "n is 0"),
    "fractional dimension": (lambda: ps.Simplex(2.5), ValueError, "n is 2.5"),
    "p below 1": (lambda: ps.Ball(3, 0.5), ValueError, "p is 0.5"),
    "empty box": (lambda: ps.Box([1.0], [0.0]), ValueError, "lower exceeds upper"),
    "shapes of a box": (lambda: ps.Box([1.0], [2.0, 2.0]), ValueError, "shapes (1,) and (2,)"),
    "factor 0": (lambda: 0 * ps.Simplex(2), ValueError, "factor of an atom set is 0"),
    "factor nan": (lambda: float("nan") * ps.Simplex(2), ValueError, "factor of an atom set is nan"),
    "union of shapes": (lambda: ps.Simplex(2) | ps.Simplex(3), ValueError, "shapes (2,) and (3,)"),
    "map of the wrong width": (lambda: ps.Ball(2, 2).through(np.ones((4, 3))), ValueError, "M has 3 columns"),
    "map of a vector": (lambda: ps.Ball(2, 2).through(np.ones(2)), ValueError, "M is ndarray of shape (2,)"),
    "nan in a map": (lambda: ps.Ball(2, 2).through(spoiled(np.nan)), ValueError, "M contains NaN"),
    "nan in a sparse map": (lambda: ps.Ball(2, 2).through(sp.csr_array(spoiled(np.nan))), ValueError, "M contains NaN"),
    "nan in an operator": (lambda: ps.Ball(2, 2).through(op(spoiled(np.nan))), ValueError, "to NaN or infinity"),
    "complex map": (lambda: ps.Ball(2, 2).through(1j * D), TypeError, "M is complex"),
    "complex sparse map": (lambda: ps.Ball(2, 2).through(sp.csr_array(1j * D)), TypeError, "M is complex"),
    "complex operator": (lambda: ps.Ball(2, 2).through(op(1j * D)), TypeError, "M is complex"),
    "complex dictionary operator": (lambda: ps.Dictionary(op(1j * D)), TypeError, "D is complex"),
    "no adjoint": (
        lambda: ps.Ball(2, 2).through(LinearOperator((2, 2), matvec=lambda v: v, dtype=float)),
        TypeError,
        "M has no adjoint",
    ),
    "wrong adjoint": (
        lambda: ps.Ball(2, 2).through(LinearOperator((2, 2), matvec=lambda v: v, rmatvec=lambda v: -v, dtype=float)),
        ValueError,
        "M fails the dot test",
    ),
    "k above n": (lambda: ps.KSupport(3, 4), ValueError, "k is 4; give a number"),
    "k of a polytope above n": (lambda: ps.KSparse(3, 4), ValueError, "k is 4; give a number"),
    "k of a hypersimplex above n": (lambda: ps.Hypersimplex(3, 4), ValueError, "k is 4; give a number"),
    "k is 0": (lambda: ps.KSupport(3, 0), ValueError, "k is 0; give a number"),
    "k is nan": (lambda: ps.KSupport(3, np.nan), ValueError, "k is nan; give a number"),
    "fractional k": (lambda: ps.KSupport(3, 1.5), ValueError, "k is 1.5; give a number"),
    "groups is a number": (lambda: ps.Groups(3), TypeError, "groups is 3"),
    "no groups": (lambda: ps.Groups([]), ValueError, "groups is empty"),
    "empty group": (lambda: ps.Groups([[0, 1], []]), ValueError, "group 1 is empty"),
    "empty label": (lambda: ps.Groups([0, 2, 2]), ValueError, "groups has the label 2 but no 1"),
    "negative label": (lambda: ps.Groups([-1, 0]), ValueError, "groups has the label -1 but no 0"),
    "fractional labels": (lambda: ps.Groups([0.0, 1.0]), TypeError, "groups has dtype float64"),
    "boolean labels": (lambda: ps.Groups([True, False]), TypeError, "groups has dtype bool"),
    "nan in groups": (lambda: ps.Groups([[0], [np.nan]]), TypeError, "group 1 has dtype float64"),
    "repeated index": (lambda: ps.Groups([[0, 1], [1, 2]]), ValueError, "groups name coordinate 1 2 times"),
    "missing index": (lambda: ps.Groups([[0, 1], [3]]), ValueError, "groups leave coordinate 2 out"),
    "negative index": (lambda: ps.Groups([[0, -1]]), ValueError, "groups leave coordinate 0 out, but name -1"),
    "huge index": (lambda: ps.Groups([[0], [10**15]]), ValueError, "groups leave coordinate 1 out"),
    "groups of groups": (lambda: ps.Groups([[[0]], [[1]]]), ValueError, "group 0 has shape (1, 1)"),
    "weight 0": (lambda: ps.Groups([0, 1], [1.0, 0.0]), ValueError, "the least of weights is 0"),
    "negative weight": (lambda: ps.Groups([0, 1], [1.0, -2.0]), ValueError, "the least of weights is -2"),
    "nan weight": (lambda: ps.Groups([0, 1], [1.0, np.nan]), ValueError, "weights contains NaN"),
    "one weight too many": (lambda: ps.Groups([0, 1], np.ones(3)), ValueError, "one for each of the 2 groups"),
    "assignment not square": (lambda: ps.Permutations(3).lmo(np.ones((3, 2))), ValueError, "shape (3, 2)"),
    "assignment of the wrong size": (lambda: ps.Permutations(3).best(np.eye(2), 4), ValueError, "shape (2, 2)"),
    "accuracy of a refinement": (lambda: ps.refine.Regroup(accuracy=0.0), ValueError, "accuracy is 0.0"),
    "matrix as a domain": (lambda: ps.conv(D), TypeError, "wrap a matrix in Dictionary"),
    "f is a function": (lambda: ps.minimize(abs, ps.conv(ps.Simplex(2))), TypeError, "f is builtin_function_or_method"),
    "domain is a set": (lambda: ps.minimize(SQUARES, ps.Simplex(2)), TypeError, "domain is Simplex"),
    "update is a class": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), ps.FullyCorrective),
        TypeError,
        "update is",
    ),
    "oracle is a class": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), oracle=ps.Exact),
        TypeError,
        "oracle is",
    ),
    "shapes disagree": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(3))),
        ValueError,
        "shape (2,), the atoms have (3,)",
    ),
    "dtypes disagree": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Dictionary(D.astype(np.float32)))),
        TypeError,
        "dtype float64, the atoms float32",
    ),
    "nobody knows the shape": (
        lambda: ps.minimize(ps.Smooth(abs, abs), ps.conv(ps.Atoms())),
        ValueError,
        "neither f nor the atoms know the shape",
    ),
    "delta 0": (lambda: ps.Approximate(0.0), ValueError, "delta is 0.0"),
    "delta above 1": (lambda: ps.Approximate(1.1), ValueError, "delta is 1.1"),
    "no list to choose from": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.Ball(2, 2)), oracle=ps.Approximate(0.5)),
        TypeError,
        "cannot list its atoms",
    ),
    "rho": (lambda: ps.lin(ps.Simplex(2), rho=-1.0), ValueError, "rho is -1.0"),
    "width of a span": (lambda: ps.lin(ps.Simplex(2), width=0.0), ValueError, "width is 0.0"),
    "open loop over a span": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.SignedBasis(2)), ps.Plain(ps.OpenLoop())),
        ValueError,
        "OpenLoop is a step inside a hull",
    ),
    "diameter step over a span": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.SignedBasis(2)), ps.Plain(ps.DiameterStep())),
        ValueError,
        "DiameterStep is a step inside a hull",
    ),
    "unknown diameter": (
        lambda: ps.minimize(SQUARES, ps.conv(Own()), ps.Plain(ps.DiameterStep())),
        ValueError,
        "diameter of",
    ),
    "step is a class": (lambda: ps.Plain(0.1), TypeError, "step is 0.1"),
    "curvature": (lambda: ps.CurvatureStep(0.0), ValueError, "C is 0.0"),
    "backtracking": (lambda: ps.Backtracking(grow=1.0), ValueError, "0 < shrink <= 1 < grow"),
    "L of a step": (lambda: ps.ShortStep(L=-1.0), ValueError, "L is -1.0"),
    "inner": (lambda: ps.NormCorrective(inner=0), ValueError, "inner is 0"),
    "several": (lambda: ps.FullyCorrective(several=0), ValueError, "several is 0"),
    "accuracy": (lambda: ps.FullyCorrective(accuracy=1.0), ValueError, "accuracy is 1.0"),
    "negative stop": (lambda: ps.Stop(gap=-1.0), ValueError, "Stop(gap=-1.0) can never be met"),
    "stop at nan": (lambda: ps.Stop(value=np.nan), ValueError, "Stop(value=nan) can never be met"),
    "start outside a hull": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), start=[1.0, 1.0]),
        ValueError,
        "start lies outside",
    ),
    "start outside a span": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.Dictionary(D[:, :1])), start=[1.0, 1.0]),
        ValueError,
        "start lies outside",
    ),
    "start with bad weights": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), start=([0.7, 0.7], [D[0], D[1]])),
        ValueError,
        "start lies outside",
    ),
    "start with a foreign atom": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), start=([1.0], [np.array([2.0, 2.0])])),
        ValueError,
        "not an atom of the set",
    ),
    "start with a foreign atom of an own set": (
        lambda: ps.minimize(SQUARES, ps.conv(Own()), start=([1.0], [np.array([9.0, 9.0])])),
        ValueError,
        "not an atom of the set",
    ),
    "start without proof": (
        lambda: ps.minimize(SQUARES, ps.conv(Own()), start=[0.5, 0.5]),
        ValueError,
        "cannot be proved to lie in",
    ),
    "start from a larger hull": (
        lambda: ps.minimize(
            SQUARES, ps.conv(ps.SignedBasis(2)), start=ps.minimize(SQUARES, ps.conv(3 * ps.SignedBasis(2)))
        ),
        ValueError,
        "start lies outside",
    ),
    "start of the wrong shape": (
        lambda: ps.minimize(SQUARES, ps.lin(ps.SignedBasis(2)), start=[0.0]),
        ValueError,
        "start has shape (1,)",
    ),
    "start with too few weights": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), start=([1.0], [D[0], D[1]])),
        ValueError,
        "give one weight each",
    ),
    "start on atoms of the wrong shape": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), start=([1.0], [np.ones(3)])),
        ValueError,
        "an atom has shape (3,)",
    ),
    "f not finite at 0": (
        lambda: ps.minimize(ps.Smooth(lambda x: np.nan, lambda x: x), ps.conv(ps.Simplex(2))),
        ValueError,
        "f is not finite at 0",
    ),
    "metric not positive": (lambda: run_metric([1.0, -1.0]), ValueError, "metric has an entry that is not positive"),
    "metric not square": (lambda: run_metric(np.ones((2, 3))), ValueError, "metric has shape (2, 3)"),
    "metric not symmetric": (lambda: run_metric([[1.0, 1.0], [0.0, 1.0]]), ValueError, "metric is not symmetric"),
    "metric 0": (lambda: run_metric(0), ValueError, "metric is 0"),
    "no column of a trace": (
        lambda: ps.minimize(SQUARES, ps.conv(ps.Simplex(2))).trace.speed,
        AttributeError,
        "a trace has the columns",
    ),
}


class Own(ps.Atoms):
    def lmo(self, g):
        return -np.sign(g)


def run_metric(metric):
    return ps.minimize(SQUARES, ps.conv(ps.Simplex(2)), ps.NormCorrective(L=1.0, metric=metric))


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_helpful_sentence(case):
    call, error, words = CASES[case]
    with pytest.raises(error, match=re.escape(words)) as caught:
        call()
    message = str(caught.value)
    assert message.endswith("."), message
    assert "\n" not in message
    assert len(message) < 200


@pytest.mark.parametrize("labels", [[-1, 1], [0, 1], [False, True], np.array([0.0, 1.0])])
def test_two_classes_may_be_written_in_three_ways(labels):
    np.testing.assert_array_equal(ps.Logistic(labels).y, [-1.0, 1.0])


def test_lists_and_integers_are_welcome():
    r = ps.minimize(ps.LeastSquares([3, 4]), ps.lin(ps.Dictionary([[1, 0], [0, 2]])))
    np.testing.assert_allclose(r.coef, [3.0, 2.0])
