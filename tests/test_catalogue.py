"""The public interface under the inputs that people try: right, so the same as the plain input; or refused.

A refusal is one sentence of our own that names the argument. A message of NumPy's, SciPy's or Python's is none.
"""

import inspect
import re
from tempfile import TemporaryDirectory

import array_api_strict
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from sentences import named, refusal

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

# ------------------------------------------------------------------------------------------ arrays

RNG = np.random.default_rng(7)
D = RNG.integers(-4, 5, (6, 4)).astype(float)  # integers, so that integer types hold them exactly
D[0] += 5.0
Y = RNG.integers(-4, 5, (3, 6)).astype(float)
H = D.T @ D + np.eye(4)
METRIC = np.eye(6) + np.ones((6, 6))
UNITS = np.eye(4)
W = RNG.integers(1, 5, Y.shape).astype(float)
y = Y[0]
A = ps.Dictionary(D)
F = ps.LeastSquares(y)


def value_and_grad(f):
    value, grad = f.value_and_grad(f.space.zeros())
    return [value, *host(grad).ravel()]


def answer(A):
    """The radius of a set of atoms, and its oracle's answer."""
    space = A.space or Space.default(A.shape)
    g = space.put(np.linspace(-1.0, 2.0, space.size).reshape(space.shape))
    return [A.radius or 0.0, *host(A.lmo(g).dense(space)).ravel()]


def codes(*args, **options):
    return ps.encode(*args, atoms=2, **options).toarray().ravel()


def solved(domain, update=None, **options):
    return ps.minimize(F, domain, update, **options).x


def with_metric(metric):
    return solved(ps.lin(A), ps.NormCorrective(metric=metric, L=1.0))


ARGUMENTS = {  # a plain input, and the numbers that a call makes of it
    "D of Dictionary": (D, lambda a: answer(ps.Dictionary(a))),
    "M of Ball": (D, lambda a: answer(ps.Ball(4, 2).through(a))),
    "H of Quadratic": (H, lambda a: value_and_grad(ps.Quadratic(a))),
    "D of encode": (D, lambda a: codes(a, Y)),
    "Y of encode": (Y, lambda a: codes(D, a)),
    "gram of encode": (D.T @ D, lambda a: codes(D, Y, gram=a)),
    "weights of encode": (W, lambda a: codes(D, Y, weights=a)),
    "metric of NormCorrective": (METRIC, with_metric),
    "D of coherence": (UNITS, lambda a: [ps.geometry.coherence(a, 2).upper]),
    "y of LeastSquares": (y, lambda a: value_and_grad(ps.LeastSquares(a))),
    "weights of LeastSquares": (W[0], lambda a: value_and_grad(ps.LeastSquares(y, a))),
    "y of Huber": (y, lambda a: value_and_grad(ps.Huber(a, 1.0))),
    "y of Logistic": (np.array([1.0, 0.0, 1.0]), lambda a: value_and_grad(ps.Logistic(a))),
    "y of Poisson": (np.abs(y), lambda a: value_and_grad(ps.Poisson(a))),
    "y of Multinomial": (np.array([0.0, 2.0, 1.0]), lambda a: value_and_grad(ps.Multinomial(a))),
    "upper of Box": (W[0], lambda a: answer(ps.Box(-W[0], a))),
    "A_ub of Polytope": (D[:2], lambda a: answer(ps.Polytope(a, [3, 4], bounds=(-1, 1)))),
    "b_ub of Polytope": (W[0, :2], lambda a: answer(ps.Polytope(D[:2], a, bounds=(-1, 1)))),
    "demand of Flows": (np.triu(W.T @ W, 1), lambda a: answer(ps.Flows([(i, i + 1) for i in range(5)], a))),
    "a of Transport": (W[0], lambda a: answer(ps.Transport(a, [W[0].sum() - 1.0, 1.0]))),
    "weights of OrderedWeights": (np.sort(W[0])[::-1], lambda a: answer(ps.OrderedWeights(a))),
    "H of Ellipsoid": (H, lambda a: answer(ps.Ellipsoid(a))),
    "weights of Groups": (W[0, :2], lambda a: answer(ps.Groups([0, 0, 1], a))),
    "t of Gaussian": (y, lambda a: ps.families.Gaussian(a, 2.0).t.ravel()),
    "start of minimize": (y, lambda a: solved(ps.lin(ps.SignedBasis(6)), start=a)),
    "x of gauge": (y, lambda a: [ps.geometry.gauge(ps.SignedBasis(6), a).upper]),
    "residual of signed_basis": (y, lambda a: ps.rates.signed_basis([0, 1], residual=a)),
}
DENSE = ("metric of NormCorrective", "D of coherence", "H of Ellipsoid")
"""Matrices that may not be sparse."""


def read_only(a):
    a = a.copy()
    a.setflags(write=False)
    return a


SAME = {  # other forms of the same numbers
    "nested list": lambda a: a.tolist(),
    "int64": lambda a: a.astype(np.int64),
    "float32": lambda a: a.astype(np.float32),
    "column order": np.asfortranarray,
    "not contiguous": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "negative strides": lambda a: a[..., ::-1].copy()[..., ::-1],
    "read-only": read_only,
    "rows in a list": list,
}
if pd is not None:
    SAME["pandas"] = lambda a: pd.DataFrame(a) if a.ndim == 2 else pd.Series(a)


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_other_forms_of_the_same_numbers_give_the_same_answer(argument):
    plain, call = ARGUMENTS[argument]
    before = plain.copy()
    for form, make in SAME.items():
        if form == "float32" and argument.endswith("encode"):
            assert named(refusal(lambda make=make: call(make(plain))), argument.split()[0])  # one dtype for all
            continue
        tolerance = 1e-5 if form == "float32" else 1e-12
        np.testing.assert_allclose(call(make(plain)), call(plain), rtol=tolerance, atol=tolerance, err_msg=form)
    np.testing.assert_array_equal(plain, before)


@pytest.mark.parametrize("argument", [name for name, (plain, _) in ARGUMENTS.items() if plain.ndim == 2])
@pytest.mark.parametrize("form", ["coo_array", "csc_array", "csr_array", "csr_matrix"])
def test_sparse_matrices_give_the_same_answer_or_are_refused(argument, form):
    plain, call = ARGUMENTS[argument]
    matrix = getattr(sp, form)(plain)
    if argument in DENSE:
        message = refusal(lambda: call(matrix))
        assert named(message, argument.split()[0]) and "sparse" in message
    else:
        np.testing.assert_allclose(call(matrix), call(plain), rtol=1e-12, atol=1e-12)
        assert (matrix != plain).sum() == 0


COO = sp.coo_array(D)
OTHER_SPARSE = {
    "integers": sp.csr_array(D.astype(np.int32)),
    "entries in two parts": sp.coo_array((np.tile(COO.data / 2, 2), np.tile(COO.coords, 2)), shape=D.shape),
    "explicit zeros": sp.csr_array((D.ravel(), (np.repeat(range(6), 4), np.tile(range(4), 6)))),
}


@pytest.mark.parametrize("argument", ["D of Dictionary", "M of Ball", "D of encode"])
@pytest.mark.parametrize("form", OTHER_SPARSE)
def test_sparse_matrices_may_hold_integers_repeated_entries_and_zeros(argument, form):
    matrix, before = OTHER_SPARSE[form], OTHER_SPARSE[form].copy()
    call = ARGUMENTS[argument][1]
    np.testing.assert_allclose(call(matrix), call(D), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(matrix.data, before.data)


def ragged(a):
    rows = a.tolist()
    return [*rows[:-1], rows[-1][:-1]] if a.ndim == 2 else [*rows[:-1], [1.0, 2.0]]


def spoiled(value):
    def spoil(a):
        bad = a.copy()
        bad.flat[1] = value
        return bad

    return spoil


REFUSED = {  # what is no array of finite real numbers, and a word of the sentence
    "None": (lambda a: None, ""),
    "string": (lambda a: "numbers", ""),
    "numbers in strings": (lambda a: a.astype(str).tolist(), "dtype"),
    "None among numbers": (lambda a: np.where(a == a.flat[0], None, a), "dtype"),
    "complex": (lambda a: a + 0j, "complex"),
    "masked": (lambda a: np.ma.masked_equal(a, a.flat[0]), "masked"),
    "half precision": (lambda a: a.astype(np.float16), "float16"),
    "ragged": (ragged, "ragged"),
    "generator": (lambda a: (row for row in a), "generator"),
    "function": (lambda a: np.sin, ""),
    "NaN": (spoiled(np.nan), "NaN"),
    "infinity": (spoiled(np.inf), "infinity"),
    "no entries": (lambda a: a[:0], ""),
    "too many axes": (lambda a: a[None, None], ""),
}
ALLOWED = {
    "None": {"gram of encode", "weights of encode", "weights of LeastSquares", "weights of Groups"}
    | {"metric of NormCorrective", "start of minimize"},
    "complex": {"D of encode", "Y of encode"},
    "masked": {"Y of encode"},  # masked entries are missing
    "too many axes": {"D of Dictionary", "D of coherence", "t of Gaussian", "residual of signed_basis"}
    | {f"y of {f}" for f in ("LeastSquares", "Huber", "Logistic", "Poisson")},  # vectors of any shape
    "no entries": {"Y of encode", "t of Gaussian", "residual of signed_basis"},
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_what_is_no_array_of_real_numbers_is_refused_by_name(argument):
    plain, call = ARGUMENTS[argument]
    for form, (make, word) in REFUSED.items():
        if argument in ALLOWED.get(form, ()):
            assert np.isfinite(call(make(plain))).all(), form
        else:
            message = refusal(lambda make=make: call(make(plain)))
            assert word in message and named(message, argument.split()[0]), f"{form}: {message}"


TENSORS = ("D of Dictionary", "M of Ball", "H of Quadratic", "y of LeastSquares", "y of Huber", "y of Multinomial")
HOST_ONLY = ("D of encode", "Y of encode", "weights of Groups", "t of Gaussian", "x of gauge", "upper of Box")


@pytest.mark.skipif(torch is None, reason="needs torch")
@pytest.mark.parametrize("argument", TENSORS + HOST_ONLY)
def test_tensors_give_the_same_answer_and_are_not_differentiated(argument):
    plain, call = ARGUMENTS[argument]
    tensor = torch.tensor(plain, requires_grad=True)
    np.testing.assert_allclose(call(tensor), call(plain), rtol=1e-12, atol=1e-12)
    assert tensor.grad is None
    refused = {torch.bfloat16: "bfloat16"} | ({} if argument in ALLOWED["complex"] else {torch.complex128: "complex"})
    for dtype, word in refused.items():
        message = refusal(lambda dtype=dtype: call(tensor.detach().to(dtype)))
        assert named(message, argument.split()[0]) and word in message


@pytest.mark.parametrize("argument", TENSORS)
def test_arrays_of_the_standard_give_the_same_answer(argument):
    plain, call = ARGUMENTS[argument]
    np.testing.assert_allclose(call(array_api_strict.asarray(plain)), call(plain), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e150, 1e300])
def test_units_are_not_seen(scale):
    np.testing.assert_allclose(ps.Dictionary(scale * D).radius, scale * A.radius, rtol=1e-12)
    np.testing.assert_allclose(ps.Dictionary(sp.csr_array(scale * D)).radius, scale * A.radius)
    np.testing.assert_allclose(codes(scale * D, scale * Y), codes(D, Y), rtol=1e-9)
    g = np.linspace(-1.0, 2.0, 6)  # no ties
    assert ps.Dictionary(scale * D).lmo(g).source == A.lmo(g).source


# ------------------------------------------------------------------------------- every public callable

TARGET, BASIS = np.array([1.0, 2.0, 3.0]), ps.SignedBasis(3)
PROBLEM = {"f": ps.LeastSquares(TARGET), "domain": ps.conv(BASIS)}
SOLVED = ps.minimize(**PROBLEM)
DERIVATIVE = ps.differentiate(ps.minimize(PROBLEM["f"], ps.conv(2 * BASIS)))

RIGHT = {  # a right value of each required argument, by its name; `function.argument` where a function needs another
    **PROBLEM, "A": BASIS, "B": BASIS, "D": UNITS, "H": H, "K": 2, "M": UNITS[:, :3], "Y": np.ones((2, 4)),
    "a": [1.0, 2.0], "atoms": 1, "b": [2.0, 1.0], "bounds": [(0, 1)], "coherence": 0.5, "codes": D, "cols": [0, 1],
    "columns": [lambda: D], "d": TARGET, "delta": 0.5, "demand": np.triu(np.ones((3, 3)), 1),
    "edges": [(0, 1), (1, 2)], "end": 2, "family": ps.families.Gaussian(TARGET, 1.0), "grad": abs, "groups": [0, 1],
    "indices": [(0, 0, 0), (1, 1, 1)], "k": 1, "lower": -TARGET, "m": 1, "n": 3, "p": 2, "positions": [0],
    "prox": abs,
    "result": SOLVED, "rows": [0, 1], "shape": (3, 2), "start": 0, "t": y, "template": np.cos,
    "templates": [[1.0, 2.0]],
    "terms": [lambda: ps.LeastSquares(TARGET)], "tolerance": 0.1, "traces": SOLVED, "update": ps.Away(),
    "upper": TARGET, "value": abs, "values": [1.0], "weights": [2.0, 1.0], "width": 1.0, "x": TARGET, "x0": TARGET,
    "y": [0, 1], "C": 1, "step": ps.OpenLoop(), "path": ps.path(PROBLEM["f"], BASIS, radii=[1.0, 2.0]),
    "load.path": "no such file.json", "StoredCodes.path": "no such folder", "SparseAtom.shape": (3,),
    "RankOneTensor.shape": (2, 2, 2), "learn.Y": np.random.default_rng(0).standard_normal((30, 4)),
    "learn.code": {"atoms": 1}, "plots.plot_atoms.atoms": D,
}  # fmt: skip
RATES = {"L": 1, "mu": 0.5, "mdw": 0.5, "radius": 1, "eps0": 1, "diameter": 1, "rho": 0.5, "norm": 1, "t": 3, "eps": 1}
RATES |= {"width": 0.5, "residual": TARGET, "grad": TARGET, "z": TARGET, "alpha": 2, "delta_mp": 0.5, "delta_fw": 0.5}
RATES |= {"nu": 2, "distance": 1, "first": 1, "last": 2, "share": 0.5, "reach": 1, "beyond": 0.2}
USED = {  # arguments that are given although they have defaults
    "Polytope": {"A_ub": np.eye(3), "b_ub": TARGET}, "encode": {"atoms": 1}, "learn": {"atoms": 1, "sweeps": 1},
    "path": {"radii": [1.0]}, "encode_to": {"atoms": 1}, "Coder": {"atoms": 1},
}  # fmt: skip
NEEDS = {"Sharded": "distributed", "ShardedSum": "distributed", "encode_to": "zarr", "StoredCodes": "zarr"}

CONTRACTS = (
    "ActiveSet Answer Atom Atoms Domain Events Learned LearnedTemplates Move Objective Oracle Path Refine Result Space "
    "State Status Trace"
)
CONTRACTS = {*CONTRACTS.split(), "BestSubset", "UnboundedError", "Update"}
"""What users derive from, or are given: nobody calls it with arguments of their own."""


def first_states(f, domain, update=None, *, oracle=None, refine=None, start=None):
    return next(ps.iterate(f, domain, update, oracle=oracle, refine=refine, start=start))


def encode_to(D, Y, block: "int | None" = None, client=None, progress: "bool" = False, **options):
    with TemporaryDirectory() as folder:
        return ps.encode_to(f"{folder}/codes", D, Y, block=block, client=client, progress=progress, **options)


def public_callables():
    """Name -> function, of all public ones: a new one is tried without a word here."""
    calls = {name: getattr(ps, name) for name in ps.__all__ if name not in CONTRACTS}
    for room in ("families", "geometry", "plots", "rates", "refine"):
        module = calls.pop(room)
        local = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        names = {name for name in getattr(module, "__all__", local) if name[0] != "_"} - {"Refine", "Interval"}
        calls |= {f"{room}.{name}": getattr(module, name) for name in sorted(names)}
    calls |= {"iterate": first_states, "encode_to": encode_to, "product": lambda domain: ps.product(domain, domain)}
    calls |= {"A.through": BASIS.through, "Ball.through": ps.Ball(3, 2).through, "RankOne.at": ps.RankOne((2, 2)).at}
    calls |= {"RankOneTensor.at": ps.RankOneTensor((2, 2, 2)).at}
    return calls | {"differentiate.jvp": DERIVATIVE.jvp, "differentiate.vjp": DERIVATIVE.vjp}


def right_arguments(name, function):
    """Arguments with which a call is right."""
    values = RIGHT | RATES if name.startswith("rates") else RIGHT
    found = dict(USED.get(name, {}))
    for p in inspect.signature(function).parameters.values():
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            found[p.name] = values.get(f"{name}.{p.name}", values.get(p.name))
            assert found[p.name] is not None, f"say in RIGHT what {p.name} of {name} may be"
    return found | ({"ax": Figure().add_subplot()} if name.startswith("plots") else {})


CALLS = public_callables()
NO_NUMBERS = {"string": "1", "NaN": float("nan"), "complex": 1j, "boolean": True, "list": [1.0], "function": abs}
WRONG = {  # by annotation: what is refused, by name
    "object": {"object": object()},
    "float": NO_NUMBERS,
    "int": NO_NUMBERS | {"fraction": 2.5, "float": 3.0, "negative": -2},
    "bool": {"string": "no", "two": 2, "None": None, "array": np.ones(2)},
    "Callable": {"string": "f", "number": 3, "array": np.ones(3)},
}
WRONG |= {f"{kind} | None": WRONG[kind] for kind in ("float", "int", "Callable")}
WRONG |= {kind: WRONG[kind] | {"None": None} for kind in ("float", "int")}
JUNK = {
    "string": lambda: "1", "None": lambda: None, "NaN": lambda: float("nan"), "complex": lambda: 1j,
    "negative": lambda: -1, "beyond the range": lambda: 10**400, "boolean": lambda: True, "empty list": list,
    "ragged list": lambda: [[1], [1, 2]], "vector": lambda: np.ones(2), "matrix": lambda: np.ones((2, 3)),
    "masked": lambda: np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), "sparse": lambda: sp.eye_array(3),
    "function": lambda: lambda *given: None, "class": lambda: ps.Dictionary, "generator": lambda: (i for i in range(3)),
    "dictionary": dict, "set of atoms": lambda: ps.SignedBasis(3), "domain": lambda: ps.conv(ps.SignedBasis(3)),
}  # fmt: skip


UNCHECKED = {"NormCorrective.metric", "ShortStep.metric", "SparseAtom.source", "SparseAtom.coef", "minimize.every"}
"""Metrics are checked when a run begins, `every` where there is a checkpoint; a source may be anything."""
OTHER_NAMES = {
    "rates.away_steps.L": "C",
    "rates.linear.L": "C",
    "rates.pairwise_steps.L": "C",
    "A.through.M": "D",
    "product.domain": "domains",
}


@pytest.mark.parametrize("name", CALLS)
def test_every_argument_is_checked_against_its_annotation(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a string is the name of a file
    pytest.importorskip(NEEDS.get(name, "numpy"))
    call, good = CALLS[name], right_arguments(name, CALLS[name])
    if name not in ("load", "Sharded", "ShardedSum", "StoredCodes"):  # there is no file and no cluster
        call(**good)
    for p in inspect.signature(call).parameters.values():
        if p.kind is p.VAR_KEYWORD or f"{name}.{p.name}" in UNCHECKED:
            continue
        kind = re.sub(r"\[.*\]", "", str(p.annotation))
        for form, value in (WRONG.get(kind, {}) | WRONG["object"]).items():
            message = refusal(lambda p=p, value=value: call(**{**good, p.name: value}))
            assert named(message, OTHER_NAMES.get(f"{name}.{p.name}", p.name)), f"{p.name}, {form}: {message}"


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_is_refused_in_the_words_of_another_library(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip(NEEDS.get(name, "numpy"))
    call, good = CALLS[name], right_arguments(name, CALLS[name])
    for parameter in inspect.signature(call).parameters:
        for kind, make in JUNK.items():
            if name.startswith("rates") and kind == "beyond the range":
                continue  # it is infinite, and so is the bound
            try:
                call(**{**good, parameter: make()})
            except Exception:
                refusal(lambda p=parameter, m=make: call(**{**good, p: m()}))


# ---------------------------------------------------------------------------------- one at a time


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


@pytest.mark.parametrize("labels", [[-1, 1], [0, 1], [False, True], np.array([0.0, 1.0])])
def test_two_classes_may_be_written_in_three_ways(labels):
    np.testing.assert_array_equal(ps.Logistic(labels).y, [-1.0, 1.0])
