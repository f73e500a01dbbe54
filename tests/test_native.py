"""The compiled kernels: right on every level of processors, and needed only where they are used."""

import numpy as np
import pytest
from codes import problem, run_python

import pursuit as ps
from pursuit import native

CLAIMS = """
import numpy as np
from codes import METHODS, ChainRun, agree, problem, unit_atoms
import pursuit as ps
from pursuit import native
from pursuit.coding import strategies

print(native.core().level)
for dtype in (np.float64, np.float32):
    for d, n, signals in ((20, 45, 37), (7, 33, 19), (64, 256, 21), (1, 5, 9), (530, 40, 11)):
        D, Y, rng = problem(d, signals, d, n, dtype, spread=0.3)
        weights = rng.uniform(0, 2, Y.shape).astype(dtype)
        for method in METHODS:
            k = min(4, max(d - 1, 1))
            for extra in ({}, {"weights": weights}, {"gram": D.T @ D}):
                codes = ps.encode(D, Y, atoms=k, method=method, **extra)
                clear = agree(codes, D, Y, k, method=method, weights=extra.get("weights"))
                assert clear >= 0.8 * signals or (d == 1 and method == "ols"), (d, n, dtype, method, extra, clear)
D, Y, rng = unit_atoms(0, 200, 30, 80)
close = np.concatenate([(1 - 1e-9) * D, D], axis=1)
for search in ("int16", "float32"):
    found = ChainRun(close, Y, 6, only=search)
    assert found.counts == {search: 200} and (found.codes.indices >= 80).all()
strategies.MIN_SCREENED_ENTRIES = 1
for dtype in (np.float64, np.float32):
    for layout in "CF":
        D, Y, _ = problem(5, 3, 70, 500, dtype)
        D = np.array(D, order=layout)
        for method in ("omp", "ols"):
            found = ChainRun(D, Y, 16, method=method)
            assert found.counts["single"] == 3 and agree(found.codes, D, Y, 16, method=method) >= 2
        A = ps.Dictionary(D, signed=True)
        S = A.screened()
        for several in (1, 5):
            for y in Y:
                assert [a.source for a in S.best(y, several)] == [a.source for a in A.best(y, several)]
                assert S.eight_bit.best(y, several, True) is not None
A = ps.RankOne((9, 8))
rows, cols = np.divmod(np.arange(72), 8)
print(round(float(ps.minimize(ps.LeastSquares(rng.standard_normal(72)), ps.conv(A.at(rows, cols))).value), 6))
"""


@pytest.mark.parametrize("level", ["v2", "v3", "v4", "generic"])
def test_the_kernels_are_right_on_every_level(level):
    if run_python("from pursuit import native; print(native.core().level)", PURSUIT_LEVEL=level) != level:
        pytest.skip("this processor does not have that level")
    lines = run_python(CLAIMS, PURSUIT_LEVEL=level).splitlines()
    assert lines[0] == level and len(lines) == 2


def test_an_unknown_level_is_ignored():
    best = run_python("from pursuit import native; print(native.core().level)", PURSUIT_LEVEL="")
    assert run_python("from pursuit import native; print(native.core().level)", PURSUIT_LEVEL="none") == best


WITHOUT = """
import sys
sys.modules["pursuit.native._core"] = None  # an import of it fails
import numpy as np
import pursuit as ps
from pursuit import native
assert not native.is_built()
"""


def test_what_needs_no_kernel_works_without_them():
    code = """
rng = np.random.default_rng(0)
D, y = rng.standard_normal((30, 90)), rng.standard_normal(30)
print(ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), stop=ps.Stop(atoms=5)).coef.nonzero()[0])
print(ps.minimize(ps.LeastSquares(y), ps.conv(ps.Dictionary(D, signed=True))).status.name)
M = rng.standard_normal((6, 5))
print(ps.minimize(ps.LeastSquares(M), ps.conv(3.0 * ps.RankOne((6, 5)))).status.name)
"""
    assert run_python(WITHOUT + code) == run_python("import numpy as np\nimport pursuit as ps\n" + code)


def test_a_large_dictionary_is_not_screened_without_kernels():
    code = """
rng = np.random.default_rng(9)
A, y = ps.Dictionary(rng.standard_normal((50, 400))), rng.standard_normal(50)
A.min_screened = 1
print(ps.minimize(ps.LeastSquares(y), ps.lin(A), stop=ps.Stop(atoms=20)).coef.nonzero()[0])
"""
    assert run_python(WITHOUT + code) == run_python("import numpy as np\nimport pursuit as ps\n" + code)


@pytest.mark.parametrize(
    "call", ["ps.encode(np.eye(3), np.ones((2, 3)), atoms=1)", "ps.Dictionary(np.eye(3)).screened()"]
)
def test_what_needs_a_kernel_says_so_in_a_sentence(call):
    code = f"try:\n    {call}\nexcept ImportError as problem:\n    print(problem)"
    sentence = run_python(WITHOUT + code)
    assert sentence.startswith("the compiled kernels of pursuit") and "\n" not in sentence
    assert "pip install" in sentence and len(sentence) < 240


def test_kernels_are_imported_by_the_first_call_and_not_before():
    code = "import sys, pursuit, pursuit.coding; print('pursuit.native._core' in sys.modules)"
    assert run_python(code) == "False"


def test_kernels_refuse_arrays_that_do_not_fit():
    kernels, core = native.kernels(np.float64), native.core()
    D, Y, _ = problem(0, 3, 4, 6)
    with pytest.raises(ValueError, match="do not fit the atoms"):
        kernels.Atoms(D.T, np.ones(5))
    with pytest.raises(ValueError, match="do not fit the atoms"):
        kernels.Atoms(D.T, np.ones(6), np.eye(5))
    atoms = kernels.Atoms(D.T, np.ones(6))
    with pytest.raises(ValueError, match="a Gram matrix"):
        kernels.Fast(atoms, core.Method.omp, core.Search.int16)
    given = {
        "y": Y,
        "weights": None,
        "limits": np.full(3, 2),
        "tols": np.zeros(3),
        "penalties": np.zeros(3),
        "stop": np.zeros(1, np.int32),
    }
    room = {"atoms": np.zeros((3, 2), np.int32), "x": np.zeros((3, 2)), "counts": np.full(3, -1)}
    kernels.Signals(**given, **room)
    with pytest.raises(ValueError, match="no room for the limits"):
        kernels.Signals(**{**given, "limits": np.full(3, 3)}, **room)
    for name, other in (("atoms", np.int64), ("x", np.float32), ("counts", np.int32)):  # a copy would be written to
        with pytest.raises(TypeError):
            kernels.Signals(**given, **{**room, name: room[name].astype(other)})


def test_screens_refuse_columns_that_there_are_not():
    A = ps.Dictionary(problem(0, 0, 4, 60)[0])
    with pytest.raises(ValueError, match="no such column"):
        A.screened().eight_bit.kernel.products(np.ones(4), np.array([60]), np.ones(1), np.ones(1))


def test_assignments_refuse_nodes_that_there_are_not():
    good = {
        "starts": np.array([0, 1, 1], np.int32),
        "heads": np.array([1], np.int32),
        "costs": np.ones(1),
        "origins": np.array([0]),
        "demand": np.array([[0.0, 2.0]]),
        "threads": 1,
        "loads": np.zeros(1),
    }
    native.core().all_or_nothing(**good)
    assert good["loads"] == 2.0
    bad = {
        "no such node": {"heads": np.array([2], np.int32)},
        "such node": {"origins": np.array([-1])},
        "do not fit": {"costs": np.ones(2)},
        "not fit": {"demand": np.ones((1, 3))},
        "must increase": {"starts": np.array([1, 0, 1], np.int32)},
    }
    for words, wrong in bad.items():
        with pytest.raises(ValueError, match=words):
            native.core().all_or_nothing(**(good | wrong))


def test_products_of_rows_refuse_rows_that_there_are_not():
    A, out = np.ones((3, 2)), np.empty(1)
    fine, beyond = np.array([0], np.int32), np.array([3], np.int32)
    for rows, cols in ((beyond, fine), (fine, -1 - fine)):
        with pytest.raises(ValueError, match="index is out of range"):
            native.core().row_products(A, A, rows, cols, out)
    with pytest.raises(ValueError, match="index is out of range"):
        native.core().lower_gram(np.array([0, 1], np.int32), beyond, np.ones(1), np.zeros((3, 3)))
