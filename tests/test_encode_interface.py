"""What goes into `encode` and what comes out: layouts, types, threads, memory, and bad input told in one sentence."""

import pickle
import re
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from codes import DTYPES, METHODS, agree, problem, run_python
from scipy.sparse.linalg import aslinearoperator

import pursuit as ps
from pursuit import encode
from pursuit.coding.scheduling import TILE_BYTES

# ------------------------------------------------------------------------------ arrays and threads


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", ["plain", "gram", "weights", "few"])
def test_nothing_is_written_to(method, dtype, way):
    D, Y, rng = problem(14, 200 if way != "few" else 2, 16, 40, dtype)
    extra = (
        {"gram": D.T @ D}
        if way == "gram"
        else {"weights": rng.random(Y.shape).astype(dtype)}
        if way == "weights"
        else {}
    )
    atoms, tol = np.full(len(Y), 5), np.full(len(Y), 0.1)
    arrays = [D, Y, atoms, tol, *extra.values()]
    before = [a.copy() for a in arrays]
    for a in arrays:
        a.setflags(write=False)
    encode(D, Y, atoms=atoms, tol=tol, method=method, **extra)
    assert all((a == b).all() for a, b in zip(arrays, before, strict=True))


def test_one_signal_reads_only_the_rows_of_a_given_gram_matrix_that_it_needs():
    D, Y, _ = problem(25, 1, 30, 1500)
    G, alone = D.T @ D, encode(D, Y, atoms=4)
    tracemalloc.start()
    codes = encode(D, Y, atoms=4, gram=G)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(codes.toarray(), alone.toarray(), atol=1e-12)
    assert peak < G.nbytes / 8
    unused = np.setdiff1d(np.arange(1500), codes.indices)
    G[np.ix_(unused, unused)] = 7e7  # of which the diagonal is looked at
    G[unused, unused] = np.square(D[:, unused]).sum(axis=0)
    np.testing.assert_array_equal(encode(D, Y, atoms=4, gram=G).toarray(), codes.toarray())
    G[codes.indices[0], 0 if codes.indices[0] else 1] = np.nan
    with pytest.raises(ValueError, match="gram contains NaN"):
        encode(D, Y, atoms=4, gram=G)


def test_few_signals_notice_a_wrong_gram_matrix_by_the_atoms_they_use():
    D, Y, _ = problem(42, 1, 30, 300)
    with pytest.raises(ValueError, match="gram is not that of D"):
        encode(D, Y, atoms=5, gram=1.1 * (D.T @ D))
    G = D.T @ D
    D[3, 17] = np.nan
    with pytest.raises(ValueError, match="column 17 of D contains NaN"):
        encode(D, Y, atoms=5, gram=G)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("signals", [2, 100])
def test_layout_and_library_of_the_input_do_not_matter(method, signals):
    D, Y, _ = problem(15, signals, 16, 40)
    codes = encode(D, Y, atoms=5, method=method).toarray()

    def same(D, Y):
        np.testing.assert_allclose(encode(D, Y, atoms=5, method=method).toarray(), codes, rtol=1e-11, atol=1e-13)

    same(np.asfortranarray(D), np.asfortranarray(Y))
    same(D.tolist(), np.repeat(Y, 2, axis=1)[:, ::2])
    same(np.repeat(D, 3, axis=1)[:, ::3], Y[::-1][::-1])
    same(np.repeat(np.repeat(D, 2, axis=0), 3, axis=1)[::2, ::3], Y)
    same(D[:, ::-1][:, ::-1], Y)
    np.testing.assert_allclose(encode(D[:, ::-1], Y, atoms=5, method=method).toarray()[:, ::-1], codes, rtol=1e-9)
    np.testing.assert_allclose(encode(D[::-1], Y[:, ::-1], atoms=5, method=method).toarray(), codes, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_number_of_threads_changes_nothing(method, weighted):
    D, Y, rng = problem(16, 1500, 12, 30)
    weights = rng.random(Y.shape) if weighted else None
    one, three = (encode(D, Y, atoms=4, method=method, n_jobs=jobs, weights=weights) for jobs in (1, 3))
    np.testing.assert_array_equal(one.indptr, three.indptr)
    np.testing.assert_array_equal(one.indices, three.indices)
    np.testing.assert_allclose(one.data, three.data, rtol=1e-9)


def test_dtype_says_what_is_computed():
    D, Y, _ = problem(20, 50, 16, 40)
    single = encode(D, Y, atoms=3, dtype="float32")
    assert single.dtype == np.float32
    assert agree(single, D.astype(np.float32), Y.astype(np.float32), 3) > 45
    assert encode(D.astype(np.float32), Y, atoms=3, dtype=np.float64).dtype == np.float64
    whole = encode(np.eye(3, dtype=int), np.arange(6).reshape(2, 3), atoms=3)
    np.testing.assert_array_equal(whole.toarray(), np.arange(6).reshape(2, 3))


# ------------------------------------------------------------------------------------------ memory

MEASURE = """
import resource, sys
import numpy as np
import pursuit as ps
from pursuit import encode
signals, n, weighted = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "True"
rng = np.random.default_rng(0)
D, Y = rng.standard_normal((32, n)), rng.standard_normal((1, 32))
encode(D[:, :50], Y, atoms=3)
many = np.broadcast_to(Y, (signals, 32))
weights = np.broadcast_to(np.float64(1), many.shape) if weighted else None
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
codes = encode(D, many, atoms=3, weights=weights, n_jobs=2)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert codes.nnz == 3 * signals
print((after - before) * 1024 - 3 * (codes.data.nbytes + codes.indices.nbytes + codes.indptr.nbytes))
"""


def extra_memory(signals, n, weighted):
    """Bytes that a call adds to a process at its peak, kernels included, beyond three copies of the codes."""
    return int(run_python(MEASURE, signals, n, weighted))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, ru_maxrss has other units")
@pytest.mark.parametrize("weighted", [False, True])
def test_memory_does_not_grow_with_the_number_of_signals(weighted):
    small, large = extra_memory(8_000, 400, weighted), extra_memory(32_000, 400, weighted)
    assert large < 1.2 * small + 2**22
    assert large < 2 * 2 * TILE_BYTES + 2**23


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, ru_maxrss has other units")
def test_the_gram_matrix_and_its_copies_take_the_memory_that_is_promised():
    n = 3000
    assert extra_memory(3000, n, False) < 14 * n**2 + 3 * 32 * n * 8 + 2 * 2 * TILE_BYTES + 2**23


# --------------------------------------------------------------------------------------- bad input

D2, Y2 = np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones((3, 2))


def spoiled(a, value):
    bad = a.copy()
    bad[1, 1] = value
    return bad


CASES = {
    "no rule": (lambda: encode(D2, Y2), ValueError, "atoms and tol are both None"),
    "no atoms": (lambda: encode(D2, Y2, atoms=0), ValueError, "atoms is 0"),
    "half an atom": (lambda: encode(D2, Y2, atoms=1.5), TypeError, "atoms has dtype float64"),
    "atoms by name": (lambda: encode(D2, Y2, atoms="all"), TypeError, "atoms is <U3"),
    "atoms of two": (lambda: encode(D2, Y2, atoms=[1, 2]), ValueError, "atoms has shape (2,)"),
    "negative tol": (lambda: encode(D2, Y2, tol=[1, -1, 1]), ValueError, "tol is negative"),
    "nan tol": (lambda: encode(D2, Y2, tol=np.nan), ValueError, "tol is negative or not finite"),
    "method": (lambda: encode(D2, Y2, atoms=1, method="lars"), ValueError, "method is 'lars'"),
    "one signal": (lambda: encode(D2, Y2[0], atoms=1), ValueError, "Y has shape (2,)"),
    "shapes": (lambda: encode(D2, Y2.T, atoms=1), ValueError, "Y has shape (2, 3) and D (2, 2)"),
    "no columns": (lambda: encode(D2[:, :0], Y2, atoms=1), ValueError, "D has shape (2, 0)"),
    "nan in D": (lambda: encode(spoiled(D2, np.nan), Y2, atoms=1), ValueError, "column 1 of D contains NaN"),
    "zero atom": (lambda: encode(D2 * [1, 0], Y2, atoms=1), ValueError, "column 1 of D is zero"),
    "nan in Y": (lambda: encode(D2, spoiled(Y2, np.nan), atoms=1), ValueError, "row 1 of Y contains NaN"),
    "infinity in Y": (lambda: encode(D2, spoiled(Y2, np.inf), atoms=1), ValueError, "row 1 of Y contains NaN or inf"),
    "strings": (lambda: encode(D2, Y2.astype(str), atoms=1), TypeError, "Y has dtype <U32"),
    "mixed": (lambda: encode(D2, Y2.astype(np.float32), atoms=1), TypeError, "D and Y should have one dtype"),
    "half precision": (lambda: encode(D2.astype("f2"), Y2.astype("f2"), atoms=1), TypeError, "D has dtype float16"),
    "dtype": (lambda: encode(D2, Y2, atoms=1, dtype=int), TypeError, "dtype is <class 'int'>"),
    "no dtype": (lambda: encode(D2, Y2, atoms=1, dtype="many"), TypeError, "dtype is 'many'"),
    "gram shape": (lambda: encode(D2, Y2, atoms=1, gram=np.eye(3)), ValueError, "gram has shape (3, 3)"),
    "gram of another": (lambda: encode(D2, Y2, atoms=1, gram=2 * np.eye(2)), ValueError, "gram is not that of D"),
    "nan in gram": (lambda: encode(D2, Y2, atoms=1, gram=np.full((2, 2), np.nan)), ValueError, "gram contains NaN"),
    "gram and weights": (
        lambda: encode(D2, Y2, atoms=1, gram=D2.T @ D2, weights=Y2),
        ValueError,
        "gram was given with",
    ),
    "weights shape": (lambda: encode(D2, Y2, atoms=1, weights=np.ones(2)), ValueError, "weights has shape (2,)"),
    "weights of fewer": (lambda: encode(D2, Y2, atoms=1, weights=np.ones((2, 2))), ValueError, "weights have shape"),
    "negative weights": (lambda: encode(D2, Y2, atoms=1, weights=-Y2), ValueError, "weights contain negative"),
    "no threads": (lambda: encode(D2, Y2, atoms=1, n_jobs=0), ValueError, "n_jobs is 0"),
}


@pytest.mark.parametrize("scale", [1e300, 1e-60])
def test_numbers_out_of_the_range_of_the_dtype_are_scaled_before_they_are_converted(scale):
    D, Y, _ = problem(51, 30, 12, 40)
    plain = encode(D.astype("f"), Y.astype("f"), atoms=4)
    codes = encode(D * scale, Y * scale, atoms=4, dtype="f")
    np.testing.assert_array_equal(codes.indices, plain.indices)
    np.testing.assert_allclose(codes.data, plain.data, rtol=1e-3)
    for one, other in ((D * scale, Y), (D, Y * scale)):
        with pytest.raises(ValueError, match="out of the range of float32"):
            encode(one, other, atoms=4, dtype="f")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_told_in_one_sentence(case):
    call, kind, words = CASES[case]
    with pytest.raises(kind, match=re.escape(words)) as told:
        call()
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 160


@pytest.mark.parametrize(
    "options",
    [
        {"atoms": 4}, {"tol": 2.0}, {"atoms": [1, 2, 3, 4, 5], "tol": 0.5}, {"atoms": 3, "method": "nnomp"},
        {"method": "lasso", "penalty": 2.0}, {"method": "nnls"},
        {"method": "lasso", "penalty": [1.0, 2.0, 3.0, 4.0, 5.0], "positive": True},
    ],
)  # fmt: skip
def test_operators_give_the_codes_of_their_matrices(options, rng):
    D, Y = rng.standard_normal((20, 12)), rng.standard_normal((5, 20))
    Y[2] = 0.0
    operator = aslinearoperator(D)
    codes, reference = ps.encode(operator, Y, **options), ps.encode(D, Y, **options)
    np.testing.assert_allclose(codes.toarray(), reference.toarray(), atol=1e-10)
    if options.get("method") in ("lasso", "nnls"):
        gaps = ps.encode(operator, Y, gaps=True, **options)[1]
        assert (gaps <= 1e-9 * (Y**2).sum(axis=1)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"atoms": 2, "method": "ols"}, "method is 'ols'; on a LinearOperator"),
        ({"atoms": 2, "weights": np.ones((5, 20))}, "weights was given with a LinearOperator"),
        ({"atoms": 2, "gram": np.eye(12)}, "gram was given with a LinearOperator"),
        ({"atoms": 2, "Y": np.ma.masked_less(np.eye(5, 20), 0.5)}, "weights was given with a LinearOperator"),
        ({"atoms": 2, "Y": np.ones((5, 3))}, "signals are rows of Y"),
        ({"atoms": 2, "Y": np.full((5, 20), np.nan)}, "row 0 of Y contains NaN"),
        ({"atoms": 0}, "atoms is 0"),
        ({"atoms": 2, "gaps": True}, "gaps belong to convex problems"),
        ({"atoms": 2, "positive": True}, "positive=True belongs to"),
        ({"atoms": 2, "n_jobs": 0}, "n_jobs is 0"),
        ({"atoms": 2, "positive": "no"}, "positive is 'no'; give True or False"),
        ({"atoms": 2, "gaps": "no"}, "gaps is 'no'; give True or False"),
        ({"atoms": 2, "progress": "no"}, "progress is 'no'; give True or False"),
        ({"atoms": 2, "dtype": int}, "dtype is <class 'int'>"),
        ({"atoms": 2, "Y": np.ones((5, 20), np.float32)}, "D and Y should have one dtype, not D float64, Y float32"),
    ],
)
def test_what_operators_cannot_do_is_said(options, message, rng):
    Y = options.pop("Y", np.ones((5, 20)))
    with pytest.raises((ValueError, TypeError), match=message):
        ps.encode(aslinearoperator(rng.standard_normal((20, 12))), Y, **options)


@pytest.mark.parametrize("options", [{"atoms": 3}, {"method": "lasso", "penalty": 1.0}, {"method": "nnls"}], ids=str)
def test_codes_on_operators_have_the_dtype_that_codes_on_arrays_have(options, rng):
    D, Y = rng.standard_normal((20, 12)), rng.standard_normal((3, 20))
    D32, Y32 = D.astype(np.float32), Y.astype(np.float32)
    single = ps.encode(aslinearoperator(D32), Y32, **options)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), ps.encode(D32, Y32, **options).toarray(), atol=1e-5)
    assert ps.encode(aslinearoperator(D), Y32, dtype="float64", **options).dtype == np.float64
    assert ps.encode(aslinearoperator(np.eye(20, dtype=int)), Y, **options).dtype == np.float64
    if "method" in options:
        codes, gaps = ps.encode(aslinearoperator(D), Y, dtype=np.float32, gaps=True, **options)
        best, proved = ps.encode(D, Y, gaps=True, **options)
        penalty = options.get("penalty", 0.0)

        def objective(X):
            return 0.5 * np.square(Y - X @ D.T).sum(axis=1) + penalty * np.abs(X).sum(axis=1)

        rounded = objective(codes.toarray().astype(float)) - objective(best.toarray())
        assert (rounded <= gaps + 1e-12).all() and (gaps <= rounded + proved + 1e-9).all()


def test_a_stack_of_dictionaries_codes_a_stack_of_signals(rng):
    D, Y, W = rng.standard_normal((3, 6, 9)), rng.standard_normal((3, 5, 6)), rng.uniform(1, 2, (3, 5, 6))
    codes = ps.encode(D, Y, atoms=2, weights=W)
    for found, d, y, w in zip(codes, D, Y, W, strict=True):
        np.testing.assert_array_equal(found.toarray(), ps.encode(d, y, atoms=2, weights=w).toarray())
    with pytest.raises(ValueError, match=r"Y is ndarray of shape \(2, 5, 6\), D ndarray of shape \(3, 6, 9\)"):
        ps.encode(D, Y[:2], atoms=2)
    with pytest.raises(ValueError, match="give as many matrices of each"):
        ps.encode(D, Y[0], atoms=2)


# ------------------------------------------------------------------------------ one signal at a time


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", [*METHODS, "lasso", "nnls"])
def test_a_prepared_dictionary_gives_the_codes_of_encode(method, dtype):
    D, Y, _ = problem(31, 20, 24, 60, dtype)
    D *= dtype(1e-15)
    Y[3], Y[5] = 0, Y[5] * dtype(1e-10)
    how = {"penalty": 1e-16} if method == "lasso" else {} if method == "nnls" else {"atoms": 5, "tol": 1e-12}
    expected = encode(D, Y, method=method, **how)
    rows = [ps.Coder(D, method=method, **how)(y) for y in Y]
    assert all((np.diff(atoms) > 0).all() and x.dtype == dtype for atoms, x in rows)
    parts = np.concatenate([x for _, x in rows]), np.concatenate([atoms for atoms, _ in rows])
    found = sp.csr_array((*parts, np.cumsum([0, *(len(atoms) for atoms, _ in rows)])), shape=expected.shape)
    if method in METHODS:
        assert agree(found, D, Y, 5, 1e-12, method) > 10
    fits = [codes.astype(float) @ D.T.astype(float) for codes in (found, expected)]
    np.testing.assert_allclose(*fits, atol=1e-4 if dtype == np.float32 else 1e-9)


def test_a_prepared_dictionary_serves_several_threads_and_travels():
    D, Y, _ = problem(32, 200, 24, 60)
    given = D.copy()
    code = ps.Coder(given, atoms=4)
    given[:] = 0  # the coder has its own
    code = pickle.loads(pickle.dumps(code))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(code, Y))
    for (atoms, x), y in zip(found, Y, strict=True):
        np.testing.assert_array_equal(atoms, code(y)[0])
        np.testing.assert_array_equal(x, code(y)[1])


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.ones(3), "give one signal of 4 finite real numbers"),
        (np.ones((1, 4)), "give one signal of 4 finite real numbers"),
        (np.ones(4) * 1j, "give one signal of 4 finite real numbers"),
        ([1.0, 2.0, np.nan, 0.0], "give one signal of 4 finite real numbers"),
    ],
)
def test_a_prepared_dictionary_refuses_what_is_no_signal(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        ps.Coder(np.eye(4), atoms=1)(y)


@pytest.mark.parametrize("how", [{"method": "simplex"}, {"method": "lasso", "tol": 1.0}])
def test_problems_that_cannot_be_prepared_are_refused(how):
    with pytest.raises(ValueError, match="are no prepared problems; call encode"):
        ps.Coder(np.eye(4), **how)
