"""The catalogue of the public interface: every argument with every kind of input that people try.

Each case is either right, that is, it gives what the plain input gives, or it is refused in one sentence of our own
that names the argument. A message of NumPy's, SciPy's or Python's is neither.
"""

import inspect
import re
import traceback
from array import array
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure

import pursuit as ps
from pursuit.arrays import Space, host

try:
    import torch
except ImportError:
    torch = None
try:
    import pandas as pd
except ImportError:
    pd = None
try:
    import polars as pl
except ImportError:
    pl = None

SOURCES = str(Path(ps.__file__).parent)


def refusal(call):
    """The sentence in which a call is refused; fails where it is not refused, or in the words of another library."""
    with pytest.raises((TypeError, ValueError, FileNotFoundError)) as caught:
        call()
    message, last = str(caught.value), traceback.extract_tb(caught.value.__traceback__)[-1]
    assert last.filename.startswith(SOURCES), f"raised in {last.filename}: {message}"
    assert last.line.startswith("raise "), f"raised by {last.line!r}: {message}"
    assert message.endswith(".") and "\n" not in message and len(message) < 200, message
    return message


def named(message, argument):
    return re.search(rf"\b{re.escape(argument)}\b", message) is not None


# ------------------------------------------------------------------------------------------ arrays

RNG = np.random.default_rng(7)
D = RNG.integers(-4, 5, (6, 4)).astype(float)  # whole numbers, so that integer types hold them exactly
D[0] += 5.0
Y = RNG.integers(-4, 5, (3, 6)).astype(float)
H = D.T @ D + np.eye(4)
METRIC = np.eye(6) + np.ones((6, 6))
UNITS = np.eye(4)
W = RNG.integers(1, 5, Y.shape).astype(float)
y = Y[0]


def value_and_grad(f):
    value, grad = f.value_and_grad(f.space.zeros())
    return [value, *host(grad).ravel()]


def answer(A):
    """What a set of atoms knows, and its oracle's answer."""
    space = A.space or Space.default(A.shape)
    g = space.put(np.linspace(-1.0, 2.0, space.size).reshape(space.shape))
    return [A.radius or 0.0, *host(A.lmo(g).dense(space)).ravel()]


def codes(*args, **options):
    return ps.encode(*args, atoms=2, **options).toarray().ravel()


def solved(domain, update=None, **options):
    return ps.minimize(ps.LeastSquares(y), domain, update, **options).x


def box(lower, upper):
    return answer(ps.Box(lower, upper))


DENSE = ("metric of NormCorrective", "D of coherence", "bounds of Parametric", "H of Ellipsoid")
"""Matrices that may not be sparse."""

ARGUMENTS = {  # a plain input, and the numbers that a call makes of it
    "D of Dictionary": (D, lambda a: answer(ps.Dictionary(a))),
    "M of Simplex": (D, lambda a: answer(ps.Simplex(4).through(a))),
    "M of Ball": (D, lambda a: answer(ps.Ball(4, 2).through(a))),
    "H of Quadratic": (H, lambda a: value_and_grad(ps.Quadratic(a))),
    "D of encode": (D, lambda a: codes(a, Y)),
    "Y of encode": (Y, lambda a: codes(D, a)),
    "gram of encode": (D.T @ D, lambda a: codes(D, Y, gram=a)),
    "weights of encode": (W, lambda a: codes(D, Y, weights=a)),
    "metric of NormCorrective": (
        METRIC,
        lambda a: solved(ps.lin(ps.Dictionary(D)), ps.NormCorrective(metric=a, L=1.0)),
    ),
    "D of coherence": (UNITS, lambda a: [ps.geometry.coherence(a, 2).upper]),
    "y of LeastSquares": (y, lambda a: value_and_grad(ps.LeastSquares(a))),
    "weights of LeastSquares": (W[0], lambda a: value_and_grad(ps.LeastSquares(y, a))),
    "c of Quadratic": (D[0], lambda a: value_and_grad(ps.Quadratic(H, a))),
    "y of Huber": (y, lambda a: value_and_grad(ps.Huber(a, 1.0))),
    "y of Logistic": (np.array([1.0, 0.0, 1.0]), lambda a: value_and_grad(ps.Logistic(a))),
    "y of Poisson": (np.abs(y), lambda a: value_and_grad(ps.Poisson(a))),
    "y of Multinomial": (np.array([0.0, 2.0, 1.0]), lambda a: value_and_grad(ps.Multinomial(a))),
    "lower of Box": (-W[0], lambda a: box(a, W[0])),
    "upper of Box": (W[0], lambda a: box(-W[0], a)),
    "A_ub of Polytope": (D[:2], lambda a: answer(ps.Polytope(a, [3, 4], bounds=(-1, 1)))),
    "b_ub of Polytope": (W[0, :2], lambda a: answer(ps.Polytope(D[:2], a, bounds=(-1, 1)))),
    "A_eq of Polytope": (D[:2], lambda a: answer(ps.Polytope(A_eq=a, b_eq=[0, 0], bounds=(-1, 1)))),
    "demand of Flows": (np.triu(W.T @ W, 1), lambda a: answer(ps.Flows([(i, i + 1) for i in range(5)], a))),
    "a of Transport": (W[0], lambda a: answer(ps.Transport(a, [W[0].sum() - 1.0, 1.0]))),
    "b of Transport": (W[0], lambda a: answer(ps.Transport([W[0].sum() - 1.0, 1.0], a))),
    "weights of OrderedWeights": (np.sort(W[0])[::-1], lambda a: answer(ps.OrderedWeights(a))),
    "H of Ellipsoid": (H, lambda a: answer(ps.Ellipsoid(a))),
    "center of Ellipsoid": (D[0], lambda a: answer(ps.Ellipsoid(H, a))),
    "weights of Groups": (W[0, :2], lambda a: answer(ps.Groups([0, 0, 1], a))),
    "t of Gaussian": (y, lambda a: ps.families.Gaussian(a, 2.0).t.ravel()),
    "bounds of Parametric": (
        np.array([[0.0, 2.0], [1.0, 2.0]]),
        lambda a: ps.Parametric(ps.families.Gaussian(y), a).lmo(y).vector,
    ),
    "start of minimize": (y, lambda a: solved(ps.lin(ps.SignedBasis(6)), start=a)),
    "x of gauge": (y, lambda a: [ps.geometry.gauge(ps.SignedBasis(6), a).upper]),
    "residual of signed_basis": (y, lambda a: ps.rates.signed_basis([0, 1], residual=a)),
}


def strided(a):
    return np.repeat(a, 2, axis=-1)[..., ::2]


def backwards(a):
    return a[..., ::-1].copy()[..., ::-1]


def read_only(a):
    a = a.copy()
    a.setflags(write=False)
    return a


def field(a):
    records = np.zeros(a.shape, dtype=[("flag", "i1"), ("value", "f8")])
    records["value"] = a
    return records["value"]


def frame(a):
    return pd.DataFrame(a) if a.ndim == 2 else pd.Series(a)


def polar(a):
    return pl.DataFrame(a) if a.ndim == 2 else pl.Series(a)


def buffer(a):
    return array("d", a) if a.ndim == 1 else memoryview(a)


SAME = {  # other forms of the same numbers
    "nested list": lambda a: a.tolist(),
    "nested tuple": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a.tolist()),
    "int64": lambda a: a.astype(np.int64),
    "int16": lambda a: a.astype(np.int16),
    "float32": lambda a: a.astype(np.float32),
    "big-endian": lambda a: a.astype(">f8"),
    "big-endian float32": lambda a: a.astype(">f4"),
    "big-endian integers": lambda a: a.astype(">i4"),
    "column order": np.asfortranarray,
    "not contiguous": strided,
    "negative strides": backwards,
    "field of a record": field,
    "read-only": read_only,
    "buffer": buffer,
    "subclass": lambda a: a.view(type("Mine", (np.ndarray,), {})),
    "pandas": frame,
    "pandas integers": lambda a: frame(a.astype(np.int64)),
    "polars": polar,
    "polars integers": lambda a: polar(a.astype(np.int64)),
    "rows in a list": list,
}

DTYPES = {"float32": np.float32, "big-endian float32": np.float32}
"""Forms that `encode` takes if both arrays have them."""

LIBRARY = {"pandas": pd, "polars": pl, "torch": torch}


def skip_without_library(form):
    library = form.split()[0]
    if library in LIBRARY and LIBRARY[library] is None:
        pytest.skip(f"{library} is not installed")


@pytest.mark.parametrize("form", SAME)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_other_forms_of_the_same_numbers_give_the_same_answer(argument, form):
    skip_without_library(form)
    plain, call = ARGUMENTS[argument]
    given, before = SAME[form](plain.copy()), plain.copy()
    tolerance = 1e-5 if form in DTYPES else 1e-12
    if form in DTYPES and argument.endswith("encode"):
        assert named(refusal(lambda: call(given)), argument.split()[0])  # one dtype for all
        return
    np.testing.assert_allclose(call(given), call(plain), rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(plain, before)


FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("argument", [name for name, (plain, _) in ARGUMENTS.items() if plain.ndim == 2])
def test_sparse_matrices_of_every_format(argument, layout, kind):
    plain, call = ARGUMENTS[argument]
    given = getattr(sp, f"{layout}_{kind}")(plain)
    if argument not in DENSE:
        np.testing.assert_allclose(call(given), call(plain), rtol=1e-12, atol=1e-12)
        assert (given != plain).sum() == 0
    else:
        message = refusal(lambda: call(given))
        assert named(message, argument.split()[0]) and "sparse" in message


def other_sparse(kind):
    coo = sp.coo_array(D)
    twice = [np.tile(part, 2) for part in (coo.row, coo.col)]
    return {
        "integers": lambda: sp.csr_array(D.astype(np.int32)),
        "float32": lambda: sp.csc_array(D.astype(np.float32)),
        "entries in two parts": lambda: sp.coo_array((np.tile(coo.data / 2, 2), twice), shape=D.shape),
        "explicit zeros": lambda: sp.csr_array((D.ravel(), (np.repeat(range(6), 4), np.tile(range(4), 6)))),
    }[kind]()


@pytest.mark.parametrize("argument", ["D of Dictionary", "M of Simplex", "M of Ball", "D of encode"])
@pytest.mark.parametrize("kind", ["integers", "float32", "entries in two parts", "explicit zeros"])
def test_sparse_matrices_of_every_dtype(argument, kind):
    given, call = other_sparse(kind), ARGUMENTS[argument][1]
    if argument.endswith("encode") and kind == "float32":
        assert named(refusal(lambda: call(given)), "D")
        return
    before = given.copy()
    np.testing.assert_allclose(call(given), call(D), rtol=1e-12, atol=1e-12)
    for part in ("data", "indices", "indptr"):
        if hasattr(given, part):
            np.testing.assert_array_equal(getattr(given, part), getattr(before, part))


def ragged(a):
    rows = a.tolist()
    return [*rows[:-1], rows[-1][:-1]] if a.ndim == 2 else [*rows[:-1], [1.0, 2.0]]


def spoiled(value):
    def spoil(a):
        bad = a.copy()
        bad.flat[1] = value
        return bad

    return spoil


def no_numbers(a):
    return pd.DataFrame({"a": ["x", "y"]})


REFUSED = {  # what is no array of finite real numbers, and a word of the sentence
    "None": (lambda a: None, ""),
    "string": (lambda a: "numbers", ""),
    "strings": (lambda a: a.astype(str), "dtype"),
    "numbers in strings": (lambda a: a.astype(str).tolist(), "dtype"),
    "objects": (lambda a: np.full(a.shape, object()), "dtype"),
    "None among numbers": (lambda a: np.where(a == a.flat[0], None, a), "dtype"),
    "complex": (lambda a: a + 0j, "complex"),
    "dates": (lambda a: a.astype("M8[s]"), "dtype"),
    "masked": (lambda a: np.ma.masked_equal(a, a.flat[0]), "masked"),
    "half precision": (lambda a: a.astype(np.float16), "float16"),
    "ragged": (ragged, "ragged"),
    "generator": (lambda a: (row for row in a), "generator"),
    "dictionary": (lambda a: {"a": 1.0}, ""),
    "set": (lambda a: {1.0, 2.0}, ""),
    "function": (lambda a: np.sin, ""),
    "class": (lambda a: np.ndarray, ""),
    "NaN": (spoiled(np.nan), "NaN"),
    "infinity": (spoiled(np.inf), "infinity"),
    "no entries": (lambda a: a[:0], ""),
    "too many axes": (lambda a: a[None, None], ""),
    "pandas strings": (no_numbers, "dtype"),
}

OTHER_VERDICTS = {
    # None is the default
    **{(name, "None"): None for name in ("gram of encode", "weights of encode", "metric of NormCorrective")},
    **{(name, "None"): None for name in ("weights of LeastSquares", "c of Quadratic", "weights of Groups")},
    ("start of minimize", "None"): None,
    ("center of Ellipsoid", "None"): None,
    # masked signals have missing entries
    ("Y of encode", "masked"): None,
    # H may have several axes: vectors of any shape
    **{(name, "too many axes"): None for name in ("D of Dictionary", "M of Simplex", "D of coherence")},
    **{(f"y of {f}", "too many axes"): None for f in ("LeastSquares", "Huber", "Logistic", "Poisson")},
    **{(name, "too many axes"): None for name in ("t of Gaussian", "residual of signed_basis")},
    # there may be no signals, no residual and no positions
    ("Y of encode", "no entries"): None,
    ("t of Gaussian", "no entries"): None,
    ("residual of signed_basis", "no entries"): None,
}


@pytest.mark.parametrize("form", REFUSED)
@pytest.mark.parametrize("argument", ARGUMENTS)
def test_what_is_no_array_of_real_numbers_is_refused_by_name(argument, form):
    skip_without_library(form)
    plain, call = ARGUMENTS[argument]
    make, word = REFUSED[form]
    if (argument, form) in OTHER_VERDICTS:
        np.asarray(call(make(plain)), dtype=float)
        return
    message = refusal(lambda: call(make(plain)))
    assert word in message
    name = argument.split()[0]
    assert named(message, "D" if argument == "M of Simplex" else name), message  # it is the Dictionary M


TENSORS = ("D of Dictionary", "M of Ball", "H of Quadratic", "y of LeastSquares", "y of Huber", "y of Multinomial")
HOST_ONLY = ("D of encode", "Y of encode", "weights of Groups", "t of Gaussian", "x of gauge", "lower of Box")


@pytest.mark.parametrize("argument", TENSORS + HOST_ONLY)
@pytest.mark.parametrize("grad", [False, True])
def test_tensors_give_the_same_answer_and_are_not_differentiated(argument, grad):
    skip_without_library("torch")
    plain, call = ARGUMENTS[argument]
    given = torch.tensor(plain, requires_grad=grad)
    np.testing.assert_allclose(call(given), call(plain), rtol=1e-12, atol=1e-12)
    assert given.grad is None


@pytest.mark.parametrize("argument", TENSORS + HOST_ONLY)
@pytest.mark.parametrize("kind", ["bfloat16", "float16", "complex128"])
def test_tensors_of_other_dtypes_are_refused(argument, kind):
    skip_without_library("torch")
    plain, call = ARGUMENTS[argument]
    message = refusal(lambda: call(torch.tensor(plain).to(getattr(torch, kind))))
    assert named(message, argument.split()[0])
    assert ("complex" if kind == "complex128" else kind) in message


@pytest.mark.parametrize("argument", TENSORS)
def test_arrays_of_the_standard_give_the_same_answer(argument):
    plain, call = ARGUMENTS[argument]
    np.testing.assert_allclose(call(array_api_strict.asarray(plain)), call(plain), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e-20, 1e20, 1e150, 1e300])
def test_units_are_not_seen(scale):
    np.testing.assert_allclose(ps.Dictionary(scale * D).radius, scale * ps.Dictionary(D).radius, rtol=1e-12)
    np.testing.assert_allclose(ps.Dictionary(sp.csr_array(scale * D)).radius, scale * ps.Dictionary(D).radius)
    np.testing.assert_allclose(codes(scale * D, scale * Y), codes(D, Y), rtol=1e-9)
    g = np.linspace(-1.0, 2.0, 6)  # no ties
    assert ps.Dictionary(scale * D).lmo(g).source == ps.Dictionary(D).lmo(g).source


# ----------------------------------------------------------------------------------------- numbers

A = ps.Dictionary(D)
F = ps.LeastSquares(y)


def smooth(**options):
    return ps.Smooth(lambda x: 0.5 * float(x @ x), lambda x: x, **options)


def bumps(**options):
    return ps.Parametric(ps.families.Gaussian(y, 1.0), [(0, 1)], **options)


NUMBERS = {  # a call with a number, and a number that is right
    "width of Huber": (lambda v: ps.Huber(y, v), 1.0),
    "L of Smooth": (lambda v: smooth(L=v), 1.0),
    "mu of Smooth": (lambda v: smooth(mu=v), 1.0),
    "infimum of Smooth": (lambda v: smooth(infimum=v), 0.0),
    "p of Ball": (lambda v: ps.Ball(3, v), 2.0),
    "factor of c * A": (lambda v: v * ps.Simplex(3), 2.0),
    "factor of A * c": (lambda v: ps.Simplex(3) * v, 2.0),
    "factor of c * (2 * A)": (lambda v: v * (2.0 * A), 2.0),
    "failure of RankOne": (lambda v: ps.RankOne((3, 2), v), 1e-6),
    "failure of Spectrahedron": (lambda v: ps.Spectrahedron(3, v), 1e-6),
    "failure of NonnegativeRankOne": (lambda v: ps.NonnegativeRankOne((3, 2), failure=v), 1e-6),
    "gap of Polytope": (lambda v: ps.Polytope([[1, 1]], [1], gap=v), 0.5),
    "width of Gaussian": (lambda v: ps.families.Gaussian(y, v), 1.0),
    "lipschitz of Parametric": (lambda v: bumps(lipschitz=v), 1.0),
    "rho of lin": (lambda v: ps.lin(A, rho=v), 1.0),
    "width of lin": (lambda v: ps.lin(A, width=v), 1.0),
    "rho of cone": (lambda v: ps.cone(A, rho=v), 1.0),
    "delta of Approximate": (ps.Approximate, 0.5),
    "K of Lazy": (ps.Lazy, 2.0),
    "shrink of Backtracking": (lambda v: ps.Backtracking(shrink=v), 0.9),
    "grow of Backtracking": (lambda v: ps.Backtracking(grow=v), 2.0),
    "power of OpenLoop": (ps.OpenLoop, 4.0),
    "L of ShortStep": (ps.ShortStep, 1.0),
    "L of DiameterStep": (ps.DiameterStep, 1.0),
    "diameter of DiameterStep": (lambda v: ps.DiameterStep(diameter=v), 1.0),
    "C of CurvatureStep": (ps.CurvatureStep, 1.0),
    "rho of CurvatureStep": (lambda v: ps.CurvatureStep(1.0, v), 1.0),
    "L of NormCorrective": (lambda v: ps.NormCorrective(L=v), 1.0),
    "accuracy of FullyCorrective": (lambda v: ps.FullyCorrective(accuracy=v), 0.1),
    "nu of AcceleratedPursuit": (lambda v: ps.AcceleratedPursuit(nu=v), 1.0),
    "tolerance of Merge": (ps.refine.Merge, 0.1),
    "share of Merge": (lambda v: ps.refine.Merge(0.1, v), 0.5),
    "share of Prune": (ps.refine.Prune, 0.5),
    "accuracy of Regroup": (ps.refine.Regroup, 0.1),
    "accuracy of Alternating": (lambda v: ps.refine.Alternating(accuracy=v), 0.1),
    "accuracy of Factors": (lambda v: ps.refine.Factors(accuracy=v), 0.1),
    "gap of Stop": (lambda v: ps.Stop(gap=v), 1.0),
    "rgap of Stop": (lambda v: ps.Stop(rgap=v), 1.0),
    "seconds of Stop": (lambda v: ps.Stop(seconds=v), 1.0),
    "value of Stop": (lambda v: ps.Stop(value=v), 1.0),
    "radii of path": (lambda v: ps.path(F, ps.Dictionary(D, signed=True), radii=[v]), 1.0),
    "tol of encode": (lambda v: ps.encode(D, Y, tol=v), 1.0),
    "L of a rate": (lambda v: ps.rates.frank_wolfe(3, L=v, diameter=1, eps0=1), 1.0),
    "diameter of a rate": (lambda v: ps.rates.frank_wolfe(3, L=1, diameter=v, eps0=1), 1.0),
    "delta of a rate": (lambda v: ps.rates.frank_wolfe(3, L=1, diameter=1, eps0=1, delta=v), 1.0),
    "mdw of a rate": (lambda v: ps.rates.linear(3, mu=1, L=1, mdw=v, radius=1, eps0=1), 0.5),
    "mu of a rate": (lambda v: ps.rates.linear_affine(3, mu=v, C=1, eps0=1), 1.0),
    "C of a rate": (lambda v: ps.rates.matching_pursuit_affine(3, C=v, eps0=1), 1.0),
    "alpha of a rate": (lambda v: ps.rates.delta_fw(0.5, alpha=v, rho=0.1), 1.0),
    "rho of a rate": (lambda v: ps.rates.delta_fw(0.5, alpha=1, rho=v), 0.1),
    "delta_mp of a rate": (lambda v: ps.rates.delta_fw(v, alpha=1, rho=0.1), 0.5),
    "coherence of a rate": (lambda v: ps.rates.mdw_from_coherence(n=4, coherence=v), 0.5),
    "rho of curvature": (lambda v: ps.geometry.curvature(F, A, "mp", v), 1.0),
    "ends of Interval": (lambda v: ps.geometry.Interval(v, v), 1.0),
}

NO_NUMBERS = {
    "string": "1",
    "None": None,
    "NaN": float("nan"),
    "complex": 1j,
    "boolean": True,
    "list": [1.0],
    "array": np.ones(2),
    "function": abs,
}

MAY_BE_NONE = """
    L of Smooth; width of Gaussian; lipschitz of Parametric; rho of lin; width of lin; rho of cone; L of ShortStep;
    L of DiameterStep; diameter of DiameterStep; L of NormCorrective; accuracy of FullyCorrective; nu of
    AcceleratedPursuit; gap of Stop; rgap of Stop; seconds of Stop; value of Stop
"""
ALLOWED = {(" ".join(name.split()), "None") for name in MAY_BE_NONE.split(";")}
ALLOWED |= {("lipschitz of Parametric", kind) for kind in ("list", "boolean")}  # one number for each parameter


@pytest.mark.parametrize("kind", NO_NUMBERS)
@pytest.mark.parametrize("argument", NUMBERS)
def test_what_is_no_number_is_refused_by_name(argument, kind):
    call, _ = NUMBERS[argument]
    if (argument, kind) in ALLOWED:
        call(NO_NUMBERS[kind])
    else:
        assert named(refusal(lambda: call(NO_NUMBERS[kind])), argument.split()[0])


@pytest.mark.parametrize("argument", NUMBERS)
def test_numbers_may_be_of_any_type(argument):
    call, value = NUMBERS[argument]
    for number in (value, np.float32(value), np.float64(value), np.array(value), Fraction(value), Decimal(value)):
        if not (argument in ("tol of encode", "lipschitz of Parametric") and isinstance(number, Fraction | Decimal)):
            call(number)
    if value == int(value):
        for number in (int(value), np.int8(value)):
            call(number)


COUNTS = {
    "n of Simplex": (ps.Simplex, 3),
    "n of SignedBasis": (ps.SignedBasis, 3),
    "n of Ball": (lambda v: ps.Ball(v, 2), 3),
    "n of Spectrahedron": (ps.Spectrahedron, 3),
    "n of SymmetricRankOne": (ps.SymmetricRankOne, 3),
    "n of Permutations": (ps.Permutations, 3),
    "n of KSparse": (lambda v: ps.KSparse(v, 1), 3),
    "k of KSparse": (lambda v: ps.KSparse(4, v), 3),
    "k of KSupport": (lambda v: ps.KSupport(4, v), 3),
    "k of Hypersimplex": (lambda v: ps.Hypersimplex(4, v), 3),
    "n of Fantope": (lambda v: ps.Fantope(v, 1), 3),
    "k of Fantope": (lambda v: ps.Fantope(4, v), 3),
    "start of Paths": (lambda v: ps.Paths([(3, 0), (3, 1)], v, 0), 3),
    "end of Paths": (lambda v: ps.Paths([(0, 3), (0, 1)], 0, v), 3),
    "shape of RankOne": (lambda v: ps.RankOne((v, 3)), 3),
    "shape of Orthogonal": (lambda v: ps.Orthogonal((3, v)), 3),
    "shape of NonnegativeRankOne": (lambda v: ps.NonnegativeRankOne((3, v)), 3),
    "shape of RankOneTensor": (lambda v: ps.RankOneTensor((3, v, 3)), 3),
    "starts of RankOneTensor": (lambda v: ps.RankOneTensor((3, 3, 3), starts=v), 3),
    "seed of RankOneTensor": (lambda v: ps.RankOneTensor((3, 3, 3), seed=v), 3),
    "starts of NonnegativeRankOne": (lambda v: ps.NonnegativeRankOne((3, 3), v), 3),
    "grid of Parametric": (lambda v: bumps(grid=v), 3),
    "seed of Approximate": (lambda v: ps.Approximate(0.5, seed=v), 3),
    "seed of RandomAtom": (ps.RandomAtom, 3),
    "seed of Stochastic": (lambda v: ps.Stochastic(abs, abs, v), 3),
    "seed of AcceleratedPursuit": (lambda v: ps.AcceleratedPursuit(seed=v), 3),
    "certify of Blocks": (lambda v: ps.Blocks(ps.Away(), certify=v), 3),
    "seed of Blocks": (lambda v: ps.Blocks(ps.Away(), "random", seed=v), 3),
    "inner of NormCorrective": (lambda v: ps.NormCorrective(inner=v), 3),
    "several of NormCorrective": (lambda v: ps.NormCorrective(several=v), 3),
    "several of FullyCorrective": (lambda v: ps.FullyCorrective(several=v), 3),
    "steps of Slide": (ps.refine.Slide, 3),
    "steps of Factors": (lambda v: ps.refine.Factors(steps=v), 3),
    "core of Factors": (lambda v: ps.refine.Factors(core=v), 3),
    "sweeps of Alternating": (ps.refine.Alternating, 3),
    "atoms of Stop": (lambda v: ps.Stop(atoms=v), 3),
    "iterations of Stop": (lambda v: ps.Stop(iterations=v), 3),
    "atoms of path": (lambda v: ps.path(F, A, atoms=[v]), 3),
    "atoms of encode": (lambda v: ps.encode(D, Y, atoms=v), 3),
    "n_jobs of encode": (lambda v: ps.encode(D, Y, atoms=1, n_jobs=v), 3),
    "n of a rate": (lambda v: ps.rates.coherence(n=v, mdw=0.5), 3),
    "m of coherence": (lambda v: ps.geometry.coherence(UNITS, v), 3),
    "trials of check_atoms": (lambda v: ps.check_atoms(ps.Simplex(2), trials=v), 3),
    "seed of check_atoms": (lambda v: ps.check_atoms(ps.Simplex(2), seed=v), 3),
    "shape of check_atoms": (lambda v: ps.check_atoms(ps.Simplex(3), shape=(v,)), 3),
    "trials of check_objective": (lambda v: ps.check_objective(F, trials=v), 3),
    "seed of check_objective": (lambda v: ps.check_objective(F, seed=v), 3),
    "shape of check_objective": (lambda v: ps.check_objective(smooth(), shape=(v,)), 3),
}

NO_COUNTS = {**NO_NUMBERS, "fraction": 2.5, "float": 3.0, "negative": -2}

OPTIONAL_COUNTS = {(f"{name}", "None") for name in ("grid of Parametric", "inner of NormCorrective", "atoms of Stop")}
OPTIONAL_COUNTS |= {("iterations of Stop", "None"), ("n_jobs of encode", "None")}


@pytest.mark.parametrize("kind", NO_COUNTS)
@pytest.mark.parametrize("argument", COUNTS)
def test_what_is_no_integer_is_refused_by_name(argument, kind):
    call, _ = COUNTS[argument]
    if (argument, kind) in OPTIONAL_COUNTS:
        call(NO_COUNTS[kind])
    else:
        assert named(refusal(lambda: call(NO_COUNTS[kind])), argument.split()[0])


@pytest.mark.parametrize("argument", COUNTS)
def test_integers_may_be_of_any_type(argument):
    call, value = COUNTS[argument]
    for number in (value, np.int8(value), np.uint64(value), *([] if "seed" in argument else [np.array(value)])):
        call(number)


# --------------------------------------------------------------------------------------- functions

FUNCTIONS = {
    "value of Smooth": lambda v: ps.Smooth(v, abs),
    "grad of Smooth": lambda v: ps.Smooth(abs, v),
    "hessian of Smooth": lambda v: ps.Smooth(abs, abs, hessian=v),
    "value of Stochastic": lambda v: ps.Stochastic(v, abs),
    "grad of Stochastic": lambda v: ps.Stochastic(abs, v),
    "family of Parametric": lambda v: ps.Parametric(v, [(0, 1)]),
    "grad of Parametric": lambda v: bumps(grad=v),
    "template of Translates": lambda v: ps.families.Translates(v, y),
    "callback of minimize": lambda v: ps.minimize(F, ps.lin(A), callback=v),
    "refine of minimize": lambda v: ps.minimize(F, ps.lin(A), refine=v),
    "score of path": lambda v: ps.path(F, A, atoms=[1], score=v),
}


@pytest.mark.parametrize("given", ["f", 3, np.ones(3)], ids=["string", "number", "array"])
@pytest.mark.parametrize("argument", FUNCTIONS)
def test_what_cannot_be_called_is_refused_by_name(argument, given):
    assert named(refusal(lambda: FUNCTIONS[argument](given)), argument.split()[0])


class Own(ps.Atoms):
    """A user's set, whose oracle gives this answer."""

    def __init__(self, answer):
        self.answer = answer

    def lmo(self, g):
        return self.answer


class Several(Own):
    def best(self, g, several):
        return self.answer


class Objective(ps.Objective):
    """A user's objective, whose value and gradient are these."""

    space = F.space

    def __init__(self, value, grad):
        self.answer = value, grad

    def value_and_grad(self, x):
        return self.answer


def run(f=F, A=A, wrap=ps.conv):
    return ps.minimize(f, wrap(A), stop=ps.Stop(iterations=3))


ANSWERS = {  # what users' functions return, and a word of the sentence
    "value is an array": (lambda: run(ps.Smooth(lambda x: x, lambda x: x)), "value of f"),
    "value is one number in a list": (lambda: run(ps.Smooth(lambda x: [1.0], lambda x: x)), "value of f"),
    "value is one number in an array": (lambda: run(ps.Smooth(lambda x: np.ones(1), lambda x: x)), "value of f"),
    "value is None": (lambda: run(ps.Smooth(lambda x: None, lambda x: x)), "value of f"),
    "value is complex": (lambda: run(ps.Smooth(lambda x: 1j, lambda x: x)), "value of f"),
    "value is an array, own class": (lambda: run(Objective(y, y)), "value of f"),
    "value is None, own class, span": (lambda: run(Objective(None, y), wrap=ps.lin), "value of f"),
    "stochastic value is a string": (lambda: run(ps.Stochastic(lambda x, r: "1", lambda x, r: x)), "value of f"),
    "value is no pair": (lambda: run(ps.Smooth(lambda x: 1.0)), "value returned"),
    "hessian is a number": (
        lambda: run(ps.Smooth(F.value, lambda x: x - y, hessian=lambda x: 1.0)),
        "hessian returned",
    ),
    "gradient is a number": (lambda: run(ps.Smooth(lambda x: 1.0, lambda x: 1.0)), "gradient of f"),
    "gradient is a list": (lambda: run(Objective(1.0, y.tolist())), "gradient of f"),
    "gradient is None": (lambda: run(Objective(1.0, None), wrap=ps.lin), "gradient of f"),
    "gradient of another shape": (lambda: run(Objective(1.0, np.ones(5))), "gradient of f"),
    "atom of another shape": (lambda: run(A=Own(np.ones(5))), "atom"),
    "atom of two axes": (lambda: run(A=Own(np.ones((6, 1)))), "atom"),
    "atom with another length": (lambda: run(A=Own(ps.SparseAtom([0], [1.0], (9,)))), "atom"),
    "atom is a list": (lambda: run(A=Own(y.tolist())), "oracle"),
    "atom is None": (lambda: run(A=Own(None)), "oracle"),
    "atom is complex": (lambda: run(A=Own(y + 0j)), "atom"),
    "atom of objects": (lambda: run(A=Own(y.astype(object))), "atom"),
    "atom of a list": (lambda: run(A=Own(ps.Atom(y.tolist()))), "oracle"),
    "no atoms": (lambda: run(A=Several([])), "oracle"),
    "step is None": (lambda: solved(ps.conv(A), ps.Plain(lambda move: None)), "step returned None; return a number"),
    "score is None": (lambda: ps.path(F, A, atoms=[1], score=lambda r: None), "score"),
    "atom of another shape, span": (lambda: run(A=Own(np.ones(5)), wrap=ps.lin), "atom"),
    "atom of another shape, union": (lambda: run(A=Own(np.ones(5)) | A), "atom"),
    "atom of another shape, scaled": (lambda: run(A=2 * Own(np.ones(5))), "atom"),
    "family returns strings": (lambda: ps.Parametric(lambda theta: ["a"], [(0, 1)]), "family"),
    "family returns None": (lambda: ps.Parametric(lambda theta: None, [(0, 1)]), "family"),
    "family of more parameters": (lambda: ps.Parametric(ps.families.Gabor(y), [(0, 1)]), "bounds"),
    "family of fewer parameters": (lambda: bumps_with([(0, 1), (0, 1)]), "bounds"),
    "template of fewer parameters": (
        lambda: ps.Parametric(ps.families.Translates(np.cos, y), [(0, 1), (0, 1)]),
        "bounds",
    ),
}


def bumps_with(bounds):
    return ps.Parametric(ps.families.Gaussian(y, 1.0), bounds)


@pytest.mark.parametrize("case", ANSWERS)
def test_what_users_functions_return_is_checked(case):
    call, word = ANSWERS[case]
    assert word in refusal(call)


# ---------------------------------------------------------------------------------- one at a time

INDEFINITE = np.diag([2.0, 1.0, -1.0])
HIDDEN = np.array([[1.0, 2.0], [2.0, 1.0]])  # the diagonal does not show the eigenvalue -1
LARGE = sp.block_diag([HIDDEN] * 400).tocsr()

SENTENCES = {  # a call, and the words in which it is refused
    "a map of too many columns, simplex": (lambda: ps.Simplex(3).through(np.ones((2, 4))), "M has 4 columns"),
    "a map of too many columns, basis": (lambda: ps.SignedBasis(3).through(np.ones((2, 4))), "M has 4 columns"),
    "a map of too many columns, scaled": (lambda: (2 * ps.Simplex(3)).through(np.ones((2, 4))), "M has 4 columns"),
    "a map of too few columns, sparse": (lambda: ps.Simplex(3).through(sp.eye_array(2)), "M has 2 columns"),
    "a union with a number": (lambda: A | 3, "A | B joins two sets"),
    "a number with a union": (lambda: 3 | A, "A | B joins two sets"),
    "a union with an array": (lambda: A | D, "wrap a matrix in Dictionary"),
    "an array with a union": (lambda: D | A, "wrap a matrix in Dictionary"),
    "a union with a domain": (lambda: A | ps.conv(A), "A | B joins two sets"),
    "a product of sets": (lambda: A * A, "the factor of an atom set is Dictionary"),
    "an array times a set": (lambda: np.ones(3) * A, "the factor of an atom set is ndarray of shape (3,)"),
    "a set times an array": (lambda: A * np.ones(3), "the factor of an atom set is ndarray of shape (3,)"),
    "a factor out of range": (lambda: 10**400 * A, "the factor of an atom set is"),
    "factors out of range": (lambda: 1e200 * (1e200 * A), "the factor of an atom set is inf"),
    "a domain plus a number": (lambda: ps.conv(A) + 1, "a sum of domains got int"),
    "a number plus a domain": (lambda: 1 + ps.conv(A), "a sum of domains got int"),
    "a domain plus a set": (lambda: ps.conv(A) + A, "a sum of domains got Dictionary"),
    "a set plus a domain": (lambda: A + ps.conv(A), "a sum of domains got Dictionary"),
    "a product of sets, not domains": (lambda: ps.product(A), "product got Dictionary"),
    "a product of a list": (lambda: ps.product([ps.conv(A)] * 2), "give domains one by one"),
    "a product of nothing": (ps.product, "product got no domain"),
    "a product of own atoms without shape": (lambda: ps.product(ps.conv(lambda g: g)), "does not know the shape"),
    "blocks in no order": (lambda: ps.Blocks(ps.Away(), "greedy"), "order is 'greedy'"),
    "blocks of blocks": (lambda: ps.Blocks(ps.Blocks(ps.Away())), "give an update of one summand"),
    "blocks of faces": (lambda: ps.Blocks(ps.DecompositionInvariant()), "update is DecompositionInvariant"),
    "domains of two shapes": (lambda: ps.conv(A) + ps.lin(ps.Simplex(2)), "shapes"),
    "a hull of a list": (lambda: ps.conv([A]), "a domain is made of atoms"),
    "a cone of a number": (lambda: ps.cone(3), "a domain is made of atoms"),
    "path of radii of a span": (lambda: ps.path(F, ps.lin(A), radii=[1.0]), "A is lin("),
    "path of a matrix": (lambda: ps.path(F, D, radii=[1.0]), "A is ndarray of shape (6, 4)"),
    "path of a function": (lambda: ps.path(abs, A, radii=[1.0]), "f is builtin_function_or_method"),
    "path of half atoms": (lambda: ps.path(F, A, atoms=[1.5]), "atoms must be positive and increasing integers"),
    "path down": (lambda: ps.path(F, A, atoms=[3, 1]), "atoms must be positive and increasing integers"),
    "path to no atoms": (lambda: ps.path(F, A, atoms=[]), "atoms must be positive"),
    "path to 0 atoms": (lambda: ps.path(F, A, atoms=[0, 1]), "atoms must be positive"),
    "path of one size": (lambda: ps.path(F, A, atoms=3), "atoms must be positive and increasing integers; it is 3"),
    "path of one radius": (lambda: ps.path(F, A, radii=3.0), "radii must be positive"),
    "path to infinity": (lambda: ps.path(F, A, radii=[1.0, np.inf]), "radii must be positive"),
    "path of nothing": (lambda: ps.path(F, A), "radii=... or atoms=..."),
    "sparse indefinite": (lambda: ps.Quadratic(sp.csr_array(INDEFINITE)), "H has an eigenvalue of at most -1"),
    "hidden indefinite": (lambda: ps.Quadratic(sp.csr_array(HIDDEN)), "H has an eigenvalue of at most -1"),
    "large indefinite": (lambda: ps.Quadratic(LARGE), "H has an eigenvalue of at most -1"),
    "sparse not symmetric": (lambda: ps.Quadratic(sp.csr_array([[1.0, 1.0], [0.0, 1.0]])), "H is not symmetric"),
    "sparse not square": (lambda: ps.Quadratic(sp.csr_array(D)), "H has shape (6, 4)"),
    "sparse with NaN": (lambda: ps.Quadratic(sp.csr_array([[np.nan]])), "H contains NaN"),
    "sparse vector as a dictionary": (lambda: ps.Dictionary(sp.coo_array(y)), "D has shape (6,)"),
    "complex sparse dictionary": (lambda: ps.Dictionary(sp.csr_array(1j * D)), "D is complex"),
    "sparse signals of one axis": (lambda: ps.encode(D, sp.coo_array(y), atoms=1), "Y has shape (6,)"),
    "indefinite metric": (lambda: with_metric(-np.eye(6)), "metric has the eigenvalue -1"),
    "metric of a wrong shape": (lambda: with_metric(np.eye(5)), "metric has shape (5, 5), x has (6,)"),
    "diagonal metric of a wrong shape": (lambda: with_metric(np.ones(5)), "metric has shape (5,), x has (6,)"),
    "metric of a wrong shape in a step": (
        lambda: ps.minimize(F, ps.conv(A), ps.Plain(ps.ShortStep(metric=np.ones(7), L=1.0))),
        "metric has shape (7,), x has (6,)",
    ),
    "laws of an array": (lambda: ps.check_atoms(D), "A is ndarray of shape (6, 4)"),
    "laws of a domain": (lambda: ps.check_atoms(ps.conv(A)), "A is conv("),
    "laws of a function": (lambda: ps.check_objective(abs), "f is <built-in function abs>"),
    "laws without a shape": (lambda: ps.check_objective(smooth()), "shape=..."),
    "citation of nothing": (lambda: ps.citation(None, None), "f is NoneType"),
    "citation of a set": (lambda: ps.citation(F, A), "domain is Dictionary"),
    "citation of a class": (lambda: ps.citation(F, ps.conv(A), ps.Away), "update is"),
    "stop is a number": (lambda: ps.minimize(F, ps.conv(A), stop=1e-6), "stop is 1e-06"),
    "update is a string": (lambda: ps.minimize(F, ps.conv(A), "away"), "update is 'away'"),
    "oracle is a string": (lambda: ps.minimize(F, ps.conv(A), oracle="exact"), "oracle is 'exact'"),
    "oracle is an update": (lambda: ps.minimize(F, ps.conv(A), oracle=ps.Away()), "oracle is Away"),
    "step is a class": (lambda: ps.Plain(ps.ShortStep), "step is"),
    "step is a string": (lambda: ps.Away("short"), "step is 'short'"),
    "start with one weight": (lambda: started((1.0, D.T)), "start has 4 atoms"),
    "start with weights of strings": (lambda: started((["a"], D.T[:1])), "weights of start"),
    "start with a number of atoms": (lambda: started(([1.0], 3.0)), "start"),
    "start with an atom of strings": (lambda: started(([1.0], [["a"] * 6])), "atom of start"),
    "start with ragged atoms": (lambda: started(([1.0], [[1.0, [2.0]]])), "atom of start"),
    "start is a dictionary": (lambda: started({"x": y}), "start is"),
    "start is an atom": (lambda: started(ps.Atom(y)), "start is Atom(source=None, coef=1); give it as a pair of lists"),
    "start is a point of a sum": (
        lambda: ps.minimize(F, ps.conv(A) + ps.conv(A), start=y),
        "give it as a Result of the same domain",
    ),
    "start is two atoms of a sum": (
        lambda: ps.minimize(F, ps.conv(A) + ps.conv(A), start=([1, 1], D.T[:2])),
        "its atoms count as those of one summand; give a Result",
    ),
    "start is two atoms of a product": (
        lambda: ps.minimize(
            ps.LeastSquares(np.ones(4)), ps.product(*[ps.conv(ps.Simplex(2))] * 2), start=([1, 1], np.eye(4)[[0, 2]])
        ),
        "piece 0 of start lies outside conv(Simplex(2))",
    ),
    "start is a generator": (lambda: started(v for v in y), "start is"),
    "method of encode": (lambda: codes(D, Y, method=None), "method is None"),
    "methods of encode": (lambda: codes(D, Y, method=np.array(["omp", "mp"])), "method is ndarray"),
    "dtype of encode": (lambda: codes(D, Y, dtype="half"), "dtype is 'half'"),
    "ragged atoms of encode": (lambda: ps.encode(D, Y, atoms=[[1], [1, 2]]), "atoms is ragged"),
    "ragged tol of encode": (lambda: ps.encode(D, Y, tol=[[1], [1, 2]]), "tol is ragged"),
    "masked dictionary of encode": (lambda: codes(np.ma.masked_array(D, D > 3), Y), "D is a masked array"),
    "gram with a mask": (lambda: codes(D, np.ma.masked_array(Y, Y > 3), gram=D.T @ D), "gram was given with weights"),
    "shape is a number": (lambda: ps.RankOne(3), "shape is 3"),
    "shape is a string": (lambda: ps.RankOne("33"), "shape is '33'"),
    "shape of three": (lambda: ps.Orthogonal((3, 3, 3)), "shape is (3, 3, 3)"),
    "tensor shape is a number": (lambda: ps.RankOneTensor(3), "shape is 3"),
    "tensor of two axes": (lambda: ps.RankOneTensor((3, 3)), "shape is (3, 3)"),
    "entries of strings": (lambda: ps.RankOne((2, 2)).at(["a", "b"], [0, 1]), "rows is an array of <U1"),
    "ragged entries": (lambda: ps.RankOne((2, 2)).at([[0], [0, 1]], [0, 1]), "rows is ragged"),
    "entries outside": (lambda: ps.RankOne((2, 2)).at([0, 2], [0, 1]), "rows reach from 0 to 2"),
    "ragged entries of a tensor": (lambda: ps.RankOneTensor((2, 2, 2)).at([[0], [0, 1]]), "indices is ragged"),
    "one triangle, one row missing": (lambda: ps.Spectrahedron(3).at([0], [1]), "row 2 has no observed entry"),
    "one triangle of a general matrix": (lambda: ps.RankOne((3, 3)).at([0, 0, 1], [1, 2, 2]), "no observed entry"),
    "ragged groups": (lambda: ps.Groups([[0, [1]], [2]]), "group 0 is ragged"),
    "positions of strings": (lambda: ps.SparseAtom(["a"], [1.0], (3,)), "positions must be integers"),
    "values of strings": (lambda: ps.SparseAtom([0], ["a"], (3,)), "values real numbers"),
    "shape of an atom is a number": (lambda: ps.SparseAtom([0], [1.0], 3), "shape a tuple of integers"),
    "t of strings": (lambda: ps.rates.frank_wolfe("3", L=1, diameter=1, eps0=1), "t has dtype"),
    "t below 0": (lambda: ps.rates.frank_wolfe([-1], L=1, diameter=1, eps0=1), "t holds -1"),
    "eps of strings": (lambda: ps.rates.lower_bound("1", width=1, norm=1, L=1, mu=1), "eps has dtype"),
    "steps in halves": (lambda: ps.rates.signed_basis([0.5], residual=y), "t is [0.5]"),
    "gauge of a matrix": (lambda: ps.geometry.gauge(D, y), "A is ndarray"),
    "width of a domain": (lambda: ps.geometry.mdw(ps.conv(A)), "A is Hull"),
}


def with_metric(metric):
    return ps.minimize(F, ps.lin(A), ps.NormCorrective(metric=metric, L=1.0))


def started(start):
    return ps.minimize(F, ps.conv(A), start=start)


@pytest.mark.parametrize("case", SENTENCES)
def test_bad_input_is_refused_in_a_sentence_of_our_own(case):
    call, words = SENTENCES[case]
    assert words in refusal(call)


# ------------------------------------------------------------------------------------- everything

JUNK = {
    "string": lambda: "1",
    "None": lambda: None,
    "NaN": lambda: float("nan"),
    "complex": lambda: 1j,
    "negative": lambda: -1,
    "beyond the range": lambda: 10**400,
    "boolean": lambda: True,
    "empty list": list,
    "ragged list": lambda: [[1], [1, 2]],
    "vector": lambda: np.ones(2),
    "matrix": lambda: np.ones((2, 3)),
    "masked": lambda: np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]),
    "sparse": lambda: sp.eye_array(3),
    "object": object,
    "function": lambda: lambda *given: None,
    "class": lambda: ps.Dictionary,
    "generator": lambda: (i for i in range(3)),
    "dictionary": dict,
    "set of atoms": lambda: ps.SignedBasis(3),
    "domain": lambda: ps.conv(ps.SignedBasis(3)),
}

TARGET, BASIS = np.array([1.0, 2.0, 3.0]), ps.SignedBasis(3)
PROBLEM = {"f": ps.LeastSquares(TARGET), "domain": ps.conv(BASIS)}
AXES = {"ax": Figure().add_subplot()}
DERIVATIVE = ps.differentiate(ps.minimize(**PROBLEM))
BUMP = ps.families.Gaussian(TARGET, 1.0)
RATE = {"t": 3, "L": 1, "mu": 0.5, "mdw": 0.5, "radius": 1, "eps0": 1, "diameter": 1, "rho": 0.5, "C": 1, "norm": 1}
RATE |= {"width": 0.5, "eps": 1, "residual": TARGET, "n": 3, "coherence": 0.5, "grad": TARGET, "x": TARGET, "z": TARGET}
RATE |= {"alpha": 2, "delta_mp": 0.5, "delta_fw": 0.5, "nu": 2, "distance": 1, "first": 1, "last": 2, "K": 2}
SHAPE = {"A": BASIS, "f": PROBLEM["f"], "d": TARGET, "x": TARGET, "x0": TARGET, "D": UNITS, "m": 1}


def first_states(*args, **options):
    return [state for state, _ in zip(ps.iterate(*args, **options), range(2), strict=False)]


def right_arguments(function, values):
    needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return {p.name: values[p.name] for p in needed}


def coded_to_a_new_folder(D, Y, block=None, client=None, progress=False, **options):
    with TemporaryDirectory() as folder:
        return ps.encode_to(f"{folder}/codes", D, Y, block=block, client=client, progress=progress, **options)


EVERYTHING = {  # a function, and arguments that are right
    "AcceleratedPursuit": {},
    "Approximate": {"delta": 0.5},
    "Away": {},
    "Backtracking": {},
    "Ball": {"n": 3, "p": 2},
    "BlendedPairwise": {},
    "BlendedPursuit": {},
    "Blocks": {"update": ps.Away()},
    "Box": {"lower": -TARGET, "upper": TARGET},
    "CurvatureStep": {"C": 1.0},
    "DecompositionInvariant": {},
    "DiameterStep": {},
    "Dictionary": {"D": D},
    "Ellipsoid": {"H": np.eye(3)},
    "Exact": {},
    "Fantope": {"n": 3, "k": 2},
    "Flows": {"edges": [(0, 1), (1, 2)], "demand": np.triu(np.ones((3, 3)), 1)},
    "FullyCorrective": {},
    "Groups": {"groups": [0, 1]},
    "Huber": {"y": y, "width": 1.0},
    "Hypersimplex": {"n": 3, "k": 1},
    "KSparse": {"n": 3, "k": 1},
    "KSupport": {"n": 3, "k": 1},
    "Lazy": {},
    "LeastSquares": {"y": y},
    "LineSearch": {},
    "LogDet": {},
    "Logistic": {"y": [0, 1]},
    "Matchings": {"edges": [(0, 1), (1, 2)]},
    "Monotone": {"step": ps.OpenLoop()},
    "Multinomial": {"y": [0, 1]},
    "NonnegativeRankOne": {"shape": (3, 2)},
    "NormCorrective": {},
    "OpenLoop": {},
    "OrderedWeights": {"weights": [2.0, 1.0]},
    "Orthogonal": {"shape": (3, 2)},
    "Pairwise": {},
    "Parametric": {"family": BUMP, "bounds": [(0, 1)]},
    "Paths": {"edges": [(0, 1), (1, 2)], "start": 0, "end": 2},
    "Permutations": {"n": 3},
    "Plain": {"step": ps.LineSearch()},
    "Poisson": {"y": [0, 1]},
    "Polytope": {"A_ub": np.eye(3), "b_ub": TARGET},
    "Quadratic": {"H": H},
    "RandomAtom": {},
    "RankOne": {"shape": (3, 2)},
    "RankOneTensor": {"shape": (2, 2, 2)},
    "Ridge": {"f": PROBLEM["f"], "p": 2},
    "Sharded": {"columns": [lambda: D]},
    "ShardedSum": {"terms": [lambda: PROBLEM["f"]]},
    "ShortStep": {},
    "SignedBasis": {"n": 3},
    "Simplex": {"n": 3},
    "Smooth": {"value": abs, "grad": abs},
    "SpanningTrees": {"edges": [(0, 1), (1, 2)]},
    "SparseAtom": {"positions": [0], "values": [1.0], "shape": (3,)},
    "Spectrahedron": {"n": 3},
    "Stochastic": {"value": abs, "grad": abs},
    "Stop": {},
    "StoredCodes": {"path": "no such folder"},
    "Streamed": {"D": D},
    "SymmetricRankOne": {"n": 3},
    "TraceInverse": {},
    "Transport": {"a": [1.0, 2.0], "b": [2.0, 1.0]},
    "check_atoms": {"A": BASIS},
    "check_objective": {"f": PROBLEM["f"]},
    "citation": PROBLEM,
    "differentiate": {"result": ps.minimize(**PROBLEM)},
    "cone": {"A": BASIS},
    "penalty": {"A": BASIS},
    "conv": {"A": BASIS},
    "encode": {"D": np.eye(3), "Y": np.ones((2, 3)), "atoms": 1},
    "encode_to": {"D": np.eye(3), "Y": np.ones((2, 3)), "atoms": 1},
    "learn": {"Y": np.random.default_rng(0).standard_normal((30, 4)), "atoms": 3, "code": {"atoms": 1}, "sweeps": 1},
    "lin": {"A": BASIS},
    "load": {"path": "no such file.json"},
    "minimize": PROBLEM,
    "path": {"f": PROBLEM["f"], "A": BASIS, "radii": [1.0]},
    "product": {},
}
CALLS = {name: (getattr(ps, name), good) for name, good in EVERYTHING.items()}
CALLS |= {
    "iterate": (first_states, PROBLEM),
    "encode_to": (coded_to_a_new_folder, EVERYTHING["encode_to"]),
    "product": (lambda domain: ps.product(domain, domain), {"domain": ps.conv(BASIS)}),
}
CALLS |= {f"rates.{name}": (getattr(ps.rates, name), None) for name in ps.rates.__all__}
CALLS |= {
    f"geometry.{name}": (getattr(ps.geometry, name), None)
    for name in ps.geometry.__all__
    if inspect.isfunction(getattr(ps.geometry, name))
}
CALLS |= {
    "refine.Alternating": (ps.refine.Alternating, {}),
    "refine.Factors": (ps.refine.Factors, {}),
    "refine.Merge": (ps.refine.Merge, {"tolerance": 0.1}),
    "refine.Pivot": (ps.refine.Pivot, {}),
    "refine.Prune": (ps.refine.Prune, {}),
    "refine.Regroup": (ps.refine.Regroup, {}),
    "refine.Slide": (ps.refine.Slide, {}),
    "families.Gaussian": (ps.families.Gaussian, {"t": y}),
    "families.Translates": (ps.families.Translates, {"template": np.cos, "t": y}),
    "families.Damped": (ps.families.Damped, {"t": y}),
    "families.Gabor": (ps.families.Gabor, {"t": y}),
    "families.Unit": (ps.families.Unit, {"family": BUMP}),
    "A.through": (BASIS.through, {"M": UNITS[:, :3]}),
    "Ball.through": (ps.Ball(3, 2).through, {"M": UNITS[:, :3]}),
    "RankOne.at": (ps.RankOne((2, 2)).at, {"rows": [0, 1], "cols": [0, 1]}),
    "RankOneTensor.at": (ps.RankOneTensor((2, 2, 2)).at, {"indices": [(0, 0, 0), (1, 1, 1)]}),
    "plots.plot_atoms": (ps.plots.plot_atoms, {"atoms": D} | AXES),
    "plots.plot_codes": (ps.plots.plot_codes, {"codes": D} | AXES),
    "plots.plot_path": (ps.plots.plot_path, {"path": ps.path(PROBLEM["f"], BASIS, radii=[1.0, 2.0])} | AXES),
    "plots.plot_traces": (ps.plots.plot_traces, {"traces": ps.minimize(**PROBLEM)} | AXES),
    "differentiate.jvp": (DERIVATIVE.jvp, {}),
    "differentiate.vjp": (DERIVATIVE.vjp, {}),
    "promise": (ps.minimize(ps.LeastSquares(TARGET), ps.lin(BASIS), ps.Plain(ps.LineSearch())).promise, {}),
}

CONTRACTS = {
    "ActiveSet",
    "Answer",
    "Atom",
    "Atoms",
    "Domain",
    "Learned",
    "Move",
    "Objective",
    "Oracle",
    "Path",
    "Refine",
    "Result",
    "Space",
}
CONTRACTS |= {"State", "Status", "Trace", "UnboundedError", "Update"}
CONTRACTS |= {"families", "geometry", "plots", "rates", "refine"}


def test_the_catalogue_is_complete():
    assert set(ps.__all__) == set(EVERYTHING) | {"iterate"} | CONTRACTS


NEEDS = {"Sharded": "distributed", "ShardedSum": "distributed", "encode_to": "zarr", "StoredCodes": "zarr"}


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_is_refused_in_the_words_of_another_library(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a text is the name of a file
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    call, good = CALLS[name]
    good = right_arguments(call, RATE if name.startswith("rates") else SHAPE) if good is None else good
    for parameter in inspect.signature(ps.iterate if name == "iterate" else call).parameters:
        for kind, make in JUNK.items():
            if name.startswith("rates") and kind == "beyond the range":
                continue  # it is infinite, and so is the bound
            try:
                call(**{**good, parameter: make()})
            except Exception:
                refusal(lambda p=parameter, m=make: call(**{**good, p: m()}))


# ------------------------------------------------------------------------------ right, one at a time


def test_masked_signals_have_missing_entries():
    mask = Y > 2
    spoiled_by_mask = np.ma.masked_array(np.where(mask, np.nan, Y), mask)
    for method in ("omp", "mp", "ols", "nnomp"):
        np.testing.assert_array_equal(
            codes(D, spoiled_by_mask, method=method), codes(D, Y, weights=(~mask).astype(float), method=method)
        )
    np.testing.assert_array_equal(codes(D, spoiled_by_mask, weights=W), codes(D, Y, weights=W * ~mask))
    np.testing.assert_array_equal(codes(D, np.ma.masked_array(Y, np.zeros(Y.shape))), codes(D, Y))
    hidden = np.ma.masked_array(Y, np.ones(Y.shape))
    assert not codes(D, hidden).any()
    whole = codes(D.astype("f"), np.ma.masked_array(Y.astype("f"), mask))
    np.testing.assert_allclose(whole, codes(D, spoiled_by_mask), rtol=1e-4)


def test_a_symmetric_matrix_may_be_seen_at_one_triangle(rng):
    n = 6
    rows, cols = np.triu_indices(n, 1)
    target = rng.standard_normal(len(rows))
    lift = np.zeros((len(rows), n * n))
    lift[np.arange(len(rows)), rows * n + cols] = 1.0
    for make, wrap in (
        (ps.Spectrahedron, ps.conv),
        (ps.Spectrahedron, ps.cone),
        (ps.SymmetricRankOne, ps.conv),
        (ps.SymmetricRankOne, ps.lin),
    ):
        f, stop = ps.LeastSquares(target), ps.Stop(rgap=1e-5, iterations=300)
        seen = ps.minimize(f, wrap(3.0 * make(n).at(rows, cols)), stop=stop)
        mirrored = ps.minimize(f, wrap(3.0 * make(n).at(cols, rows)), stop=stop)
        whole = ps.minimize(f, wrap(3.0 * make(n).through(lift)), stop=stop)
        for r in (seen, mirrored):
            assert r.value == pytest.approx(whole.value, rel=1e-3, abs=1e-6)
            assert r.lower <= whole.value + 1e-12 and whole.lower <= r.value + 1e-12
            assert r.check().feasible
            coef = r.coef.at(rows, cols)
            np.testing.assert_allclose(coef, r.x, atol=1e-9)


def test_domains_can_be_summed_as_a_list():
    parts = [ps.conv(2 * ps.Dictionary(D, signed=True)), ps.lin(ps.Dictionary(np.ones((6, 1))))]
    np.testing.assert_array_equal(solved(sum(parts)), solved(parts[0] + parts[1]))


def test_atoms_of_a_start_may_be_lists_and_its_arrays_generators():
    expected = solved(ps.conv(A), start=([1.0], [D[:, 0]]))
    np.testing.assert_array_equal(solved(ps.conv(A), start=([1.0], [D[:, 0].tolist()])), expected)
    np.testing.assert_array_equal(solved(ps.conv(A), start=([1], (column for column in D.T[:1]))), expected)


def test_paths_take_any_iterable():
    sizes = ps.path(F, A, atoms=[1, 2, 3]).value
    for given in (range(1, 4), np.arange(1, 4), (k for k in (1, 2, 3)), np.array([1, 2, 3], dtype=np.uint8)):
        np.testing.assert_array_equal(ps.path(F, A, atoms=given).value, sizes)
    both = ps.Dictionary(D, signed=True)
    radii = ps.path(F, both, radii=[0.5, 1.0]).value
    for given in ((0.5, 1), np.array([0.5, 1.0]), np.array([0.5, 1.0], dtype=">f4"), (r for r in (0.5, 1.0))):
        np.testing.assert_array_equal(ps.path(F, both, radii=given).value, radii)


def test_a_sparse_matrix_that_is_only_semidefinite_is_a_quadratic():
    graph = sp.diags_array([np.ones(799), np.ones(799)], offsets=[-1, 1], shape=(800, 800))
    laplacian = sp.csr_array(sp.diags_array(graph.sum(axis=0)) - graph)
    for H in (laplacian, laplacian[:300, :300], sp.csr_array((4, 4)), 1e-200 * laplacian, 1e200 * laplacian):
        ps.Quadratic(H)
    low_rank = sp.csr_array(np.outer(np.arange(700.0), np.arange(700.0)))
    ps.Quadratic(low_rank)


def test_stop_may_count_to_infinity():
    assert ps.Stop(iterations=np.inf, atoms=np.inf).iterations == np.inf
