"""The screened oracle answers like the plain one, whatever one does to it."""

import pickle
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import pursuit as ps
from pursuit.atoms.copies import COPY_COST_IN_PRODUCTS, LONGEST_PAUSE, EightBitCopy


def make(kind, d, n, rng):
    if kind == "toeplitz":
        D = rng.standard_normal((d, n))
        for j in range(1, n):
            D[:, j] = 0.99 * D[:, j - 1] + np.sqrt(1 - 0.99**2) * D[:, j]
        return D
    if kind == "clusters":
        return np.repeat(rng.standard_normal((d, n // 20)), 20, axis=1) + 0.1 * rng.standard_normal((d, n // 20 * 20))
    if kind == "heavy":
        return rng.standard_t(1.5, (d, n))
    if kind == "sparse":
        return rng.standard_normal((d, n)) * (rng.random((d, n)) < 0.05) + 1e-3 * rng.standard_normal((d, n))
    return rng.standard_normal((d, n))


KINDS = ["random", "toeplitz", "clusters", "heavy", "sparse"]


def named(atoms):
    return [(a.source, a.coef) for a in atoms]


def agree(A, S, g, several=1):
    assert named([S.lmo(g)]) == named([A.lmo(g)])
    assert named(S.best(g, several)) == named(A.best(g, several))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("signed", [False, True])
def test_answers_are_those_of_the_plain_dictionary(kind, layout, dtype, signed):
    rng = np.random.default_rng(3)
    D = np.array(make(kind, 70, 600, rng), dtype=dtype, order=layout)
    A = ps.Dictionary(D, signed=signed)
    S = A.screened()
    assert S.D is D
    by_copy = 0
    for _ in range(30):
        g = rng.standard_normal(70).astype(dtype)
        agree(A, S, g, 7)
        by_copy += S.eight_bit.best(g, 7, signed) is not None
    assert by_copy > 0


# ---------------------------------------------------------------------- the bound, attacked


@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 90),
    n=st.integers(20, 120),
    kind=st.sampled_from(["random", "heavy", "sparse"]),
    exponents=st.tuples(st.integers(-150, 150), st.integers(-150, 150), st.integers(0, 12)),
    dtype=st.sampled_from([np.float64, np.float32]),
    signed=st.booleans(),
)
def test_any_scale_any_size_gives_the_plain_answer(seed, d, n, kind, exponents, dtype, signed):
    rng = np.random.default_rng(seed)
    own, its, spread = exponents if dtype == np.float64 else (exponents[0] // 10, exponents[1] // 10, exponents[2] // 4)
    D = make(kind, d, n, rng) * 10.0**own * 10.0 ** rng.integers(-spread, spread + 1, n)
    g = rng.standard_normal(d) * 10.0**its
    A = ps.Dictionary(D.astype(dtype), signed=signed)
    with np.errstate(all="ignore"):
        agree(A, A.screened(), g.astype(dtype), int(rng.integers(1, 1 + n // 10)))


def intervals(S, g, fine, signed=True, which=None):
    """Lower and upper ends for the merits of all columns; which power of two they are in units of, they tell."""
    which = np.arange(S.D.shape[-1]) if fine and which is None else which
    lower, upper = np.empty((2, S.D.shape[-1] if which is None else len(which)))
    assert S.eight_bit.kernel.intervals(g.astype(float), which, signed, 2, lower, upper)
    return lower, upper


def unit(merit, lower, upper):
    return 2.0 ** np.round(np.log2(np.abs(merit).max() / np.abs((lower + upper) / 2).max()))


@given(
    seed=st.integers(0, 10**6),
    signed=st.booleans(),
    kind=st.sampled_from(KINDS),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_intervals_contain_the_computed_correlations(seed, signed, kind, dtype):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(1, 80)), 40
    D = make(kind, d, n, rng) * 10.0 ** rng.integers(-5, 6, n)
    A = ps.Dictionary(np.array(D, dtype=dtype, order=rng.choice(["C", "F"])), signed=signed)
    S, g = A.screened(), rng.standard_t(1.2, d).astype(dtype)
    merit = np.abs(A.correlations(g)) if signed else -A.correlations(g)
    scale = unit(merit, *intervals(S, g, True, signed))
    widths = []
    for fine in (False, True):
        lower, upper = intervals(S, g, fine, signed)
        assert (scale * lower <= merit).all()
        assert (merit <= scale * upper).all()
        widths.append(upper - lower)
    some = rng.permutation(n)[:7]
    for ends, others in zip((lower, upper), intervals(S, g, True, signed, some), strict=True):
        np.testing.assert_allclose(others, ends[some], rtol=1e-13)
    assert (widths[1] <= widths[0] * (1 + 1e-6)).all()
    norms = np.linalg.norm(A.D.astype(float), axis=0) * np.linalg.norm(g.astype(float)) / scale
    peaks = np.abs(A.D).max(axis=0) * d**0.5 * np.linalg.norm(g.astype(float)) / scale  # half a unit in every entry
    assert (widths[0] <= peaks / 127 + 1e-3 * norms + 1e-2 * np.abs(A.D).max(axis=0)).all()


@pytest.mark.parametrize("signed", [False, True])
def test_a_column_that_its_code_belittles_is_found(signed):
    g = np.append(0.0, np.random.default_rng(7).choice([-1.0, 1.0], 400))
    D = np.outer(g, np.full(500, 30.0))
    D[0] = 127
    D[1:, 0] = 60.499 * g[1:]  # rounded down; the next ones are less, and are rounded up
    D[1:, 1:6] = (np.where(np.arange(400) < 390, 60.501, 59.501) * g[1:])[:, None]
    for j in (0, 33, 499):
        A = ps.Dictionary(-np.roll(D, j, axis=1), signed=signed)
        S = A.screened()
        assert A.lmo(g).source == j
        agree(A, S, g)
        assert S.eight_bit.best(g, 1, signed)[0] == j


def test_columns_that_differ_in_the_last_bits_are_told_apart_as_the_plain_product_does():
    rng = np.random.default_rng(6)
    D = rng.standard_normal((60, 400))
    for j in range(1, 400, 2):
        D[:, j] = np.nextafter(D[:, j - 1], np.inf) if j % 4 == 1 else D[:, j - 1]
    for A in (ps.Dictionary(D), ps.Dictionary(np.asfortranarray(D), signed=True)):
        S, in_doubt = A.screened(), 0
        for _ in range(50):
            g = rng.standard_normal(60)
            agree(A, S, g, 5)
            in_doubt += S.eight_bit.best(g, 5, A.symmetric) is None
        assert in_doubt > 0


@pytest.mark.parametrize("exponent", range(-165, -150, 2))
def test_products_that_underflow_are_left_to_the_plain_product(exponent):
    rng = np.random.default_rng(15)
    A = ps.Dictionary(rng.standard_normal((7, 300)) * 10.0**exponent)
    S = A.screened()
    for _ in range(10):
        agree(A, S, rng.standard_normal(7) * 10.0**exponent)


@pytest.mark.parametrize("d", [5000, 70_000])
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sums_do_not_leave_32_bits(d, sign):
    n = 64
    D = np.ones((d, n)) * (1.0 + np.arange(n) / 1e3)
    A, g = ps.Dictionary(D, signed=True), sign * np.ones(d)  # all codes are 127, all products of one sign
    S = A.screened()
    lower, upper = intervals(S, g, False)
    merit = np.abs(A.correlations(g))
    scale = unit(merit, lower, upper)
    assert ((scale * lower <= merit) & (merit <= scale * upper)).all()
    width = 2e-3 / 2**28 + 8 * (d + 64) * np.finfo(float).eps  # a thousandth of a unit, if sums make use of 32 bits
    assert (upper - lower).max() < width * merit.max()
    agree(A, S, g, 3)


@pytest.mark.parametrize("signed", [False, True])
def test_zero_tiny_huge_and_infinite_gradients(signed):
    A = ps.Dictionary(np.random.default_rng(8).standard_normal((30, 300)), signed=signed)
    S = A.screened()
    one = np.eye(30)[3]
    with np.errstate(all="ignore"):
        for g in (np.zeros(30), 1e-310 * one, 5e-324 * one, 1e305 * one, 1e-150 * one, -1e150 * one, np.inf * one):
            agree(A, S, g, 3)


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize(("kind", "most"), [("random", 30), ("heavy", 60)])
def test_few_columns_are_recomputed_also_where_the_second_code_is_needed(kind, most):
    rng = np.random.default_rng(10)
    D = make(kind, 400, 3000, rng)
    copy = EightBitCopy(D / np.linalg.norm(D, axis=0))
    questions = rng.standard_normal((20, 400))
    assert all(copy.best(g, 1, True) is not None for g in questions)
    assert sum(len(copy.contenders(g, 1, True)) for g in questions) < 20 * most


def test_a_search_gives_the_copy_up_where_it_cannot_help_and_takes_it_up_again(monkeypatch):
    rng, read, best = np.random.default_rng(12), [], EightBitCopy.best
    monkeypatch.setattr(EightBitCopy, "best", lambda *question: read.append(1) or best(*question))
    D = rng.standard_normal((20, 400))
    D[0], D[1:, :200] = 1.0, 0.0  # seen along the first axis all columns are equal
    A = ps.Dictionary(D)
    search = A.screened().begin()
    for _ in range(200):
        assert named(search(-np.eye(20)[0], 1, 0.0)[0]) == named([A.lmo(-np.eye(20)[0])])
    assert len(read) == 8  # after pauses of 1, 3, 7, 15, 31, 63 and 63 questions
    assert search.attempts.pause == LONGEST_PAUSE
    for _ in range(LONGEST_PAUSE + 1):
        g = rng.standard_normal(20)
        assert named(search(g, 1, 0.0)[0]) == named([A.lmo(g)])
    assert search.attempts.pause == 0


def test_the_span_asks_the_same_codes_and_the_callers_arrays_stay_as_they_are():
    rng = np.random.default_rng(13)
    D, g = rng.standard_normal((30, 200)), rng.standard_normal(30)
    before = D.copy(), g.copy()
    S = ps.Dictionary(D).screened()
    both = S.symmetrised()
    assert both.eight_bit is S.eight_bit
    assert both.symmetric and not S.symmetric and both.symmetrised() is both
    both.lmo(g)
    assert np.array_equal(D, before[0]) and np.array_equal(g, before[1])
    assert repr(both) == "Dictionary(30 x 200, signed=True).screened()"
    assert named([pickle.loads(pickle.dumps(both)).lmo(g)]) == named([both.lmo(g)])


@pytest.mark.parametrize("D", [sp.eye_array(4), np.eye(3, dtype=np.longdouble)], ids=["sparse", "longdouble"])
def test_only_dense_numpy_dictionaries_can_be_screened(D):
    with pytest.raises(TypeError, match="an 8-bit copy needs a dense NumPy array in float32 or float64"):
        ps.Dictionary(D).screened()


# ---------------------------------------------------------------------- when a run makes a copy


@pytest.mark.parametrize("domain", [ps.lin, lambda A: ps.conv(2.0 * A.symmetrised())])
def test_a_run_reads_a_copy_once_its_products_have_paid_for_it(monkeypatch, domain):
    rng, questions = np.random.default_rng(9), []
    D = rng.standard_normal((50, 400)) / 7
    f, A = ps.LeastSquares(rng.standard_normal(50)), ps.Dictionary(D)
    plain = [s.atom.source for s in islice(ps.iterate(f, domain(A), ps.FullyCorrective()), 20)]
    A.min_screened, best = 1, EightBitCopy.best
    monkeypatch.setattr(EightBitCopy, "best", lambda copy, *question: questions.append(copy) or best(copy, *question))
    states = list(islice(ps.iterate(f, domain(A), ps.FullyCorrective()), 20))
    assert [s.atom.source for s in states] == plain
    assert len(set(questions)) == 1
    most = states[-1].oracle_calls - COPY_COST_IN_PRODUCTS
    assert len(questions) == most if domain is ps.lin else 0 < len(questions) < most  # at the end of the other: ties


def test_short_runs_and_small_dictionaries_make_no_copy(monkeypatch):
    rng = np.random.default_rng(9)
    f, A = ps.LeastSquares(rng.standard_normal(50)), ps.Dictionary(rng.standard_normal((50, 400)))
    monkeypatch.setattr(EightBitCopy, "__init__", None)
    ps.minimize(f, ps.lin(A), stop=ps.Stop(iterations=20))
    A.min_screened = 1
    ps.minimize(f, ps.lin(A), stop=ps.Stop(iterations=COPY_COST_IN_PRODUCTS - 1))
