"""Routines written for LLVM, at all lengths: what NumPy says."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from pursuit._vector import numbers
from pursuit.encode import lines, rooms, small, vector

LENGTHS, SEEDS, KINDS = st.integers(0, 150), st.integers(0, 10**6), st.sampled_from([np.float64, np.float32])
NAN = np.nan  # what lies beyond the end of a vector: whoever reads it, tells


def at(array):
    return array.ctypes.data


def vectors(seed, kind, *shapes):
    """Numbers with NaN behind each row, each array with one of its own."""
    rng = np.random.default_rng(seed)
    made = [np.full((*shape[:-1], shape[-1] + 40), NAN, kind) for shape in shapes]
    for array, shape in zip(made, shapes, strict=True):
        array[..., : shape[-1]] = rng.standard_normal(shape)
    return made


def close(found, expected, kind, scale=1.0):
    np.testing.assert_allclose(found, expected, rtol=0, atol=200 * np.finfo(kind).eps * scale)


def compiled(routine):
    """A routine, which only compiled functions can call, as a function."""

    @numba.njit
    def call(*args):
        return routine(*args)

    return call


dot, mixed_dot, weighted, weigh = map(compiled, (lines.dot, lines.mixed_dot, lines.weighted, lines.weigh))
add, gather, copy, best, export = map(compiled, (lines.add, lines.gather, lines.copy, lines.best, lines.export))
subtract, solve, project, border = map(compiled, (lines.subtract, lines.solve, lines.project, lines.border))
remainder, correlation = map(compiled, (vector.remainder, vector.correlation))


@given(SEEDS, KINDS, LENGTHS)
def test_sums_along_vectors(seed, kind, n):
    w, u, v = vectors(seed, kind, (n,), (n,), (n,))
    a, b, c, like = w[:n], u[:n], v[:n], kind(0)
    close(dot(at(u), at(v), n, like), b @ c, kind, 1 + n)
    close(dot(at(u), at(u), n, like), b @ b, kind, 1 + n)
    close(weighted(at(w), at(u), at(v), n, like), (a * b) @ c, kind, 1 + n)
    close(weigh(at(u), at(v), n, like), np.abs(b) @ c, kind, 1 + n)
    other = v.astype(np.float64)
    exact = b.astype(np.float64) @ other[:n]
    close(mixed_dot(at(u), at(other), n, like, 0.0), exact, np.float64, 1 + n)
    close(mixed_dot(at(u), at(v), n, like, like), exact, np.float64, 1 + n)


@given(SEEDS, KINDS, LENGTHS)
def test_vectors_that_are_written_end_where_they_should(seed, kind, n):
    x, row, out, copied = vectors(seed, kind, (n,), (n,), (n,), (n,))
    places = np.random.default_rng(seed).permutation(n).astype(np.int32)
    least = add(at(x), kind(-0.5), at(row), n, at(out), kind(0))
    close(out[:n], x[:n] - kind(0.5) * row[:n], kind)
    assert least == out[:n].min(initial=np.inf) and np.isnan(out[n:]).all()
    gather(at(x), at(places), n, at(out), kind(0))
    copy(at(row), at(copied), n, kind(0))
    assert (out[:n] == x[places]).all() and (copied[:n] == row[:n]).all() and np.isnan([out[n:], copied[n:]]).all()


@given(SEEDS, KINDS, LENGTHS, st.integers(0, 9))
def test_residuals_of_combinations_of_rows(seed, kind, n, s):
    y, A, x, r = vectors(seed, kind, (n,), (12, n), (s,), (n,))
    S = np.random.default_rng(seed).permutation(12)[:s].astype(np.int32)
    expected = y[:n] - x[:s] @ A[S, :n]
    rest = at(y), at(A), A.strides[0], at(S), at(x), s, n
    square = subtract(*rest, at(r), kind(0), kind(0))
    close(r[:n], expected, kind, 10)
    close(square, expected @ expected, kind, 10 * (1 + n))
    assert np.isnan(r[n:]).all()
    y, x, r = (each.astype(np.float64) for each in (y, x, r))
    expected = y[:n] - x[:s] @ A[S, :n].astype(np.float64)
    square = subtract(at(y), at(A), A.strides[0], at(S), at(x), s, n, at(r), kind(0), 0.0)
    close(r[:n], expected, np.float64, 10)
    close(square, expected @ expected, np.float64, 10 * (1 + n))


@given(SEEDS, KINDS, LENGTHS, st.integers(0, 9), st.integers(0, vector.WAVE - 1))
def test_signals_of_a_wave_read_what_is_theirs(seed, kind, n, s, p):
    y, A, row = vectors(seed, kind, (n,), (12, n), (12,))
    S = np.full((s + 1, vector.WAVE), -(10**6), np.int32)
    x = np.full((s + 1, vector.WAVE), NAN, kind)
    rng = np.random.default_rng(seed)
    S[:s, p], x[:s, p] = rng.permutation(12)[:s], rng.standard_normal(s)
    mine = at(S[:, p:]), at(x[:, p:])
    r = y[:n] - x[:s, p] @ A[S[:s, p], :n]
    close(remainder(at(y), at(A), A.strides[0], *mine, s, n, kind(0)), r @ r, kind, 10 * (1 + n))
    c = A[0, :n] @ y[:n] - x[:s, p] @ row[S[:s, p]]
    close(correlation(at(A), at(y), n, at(row), *mine, s, kind(0)), c, kind, 10 + n)


@given(SEEDS, KINDS, st.integers(1, 60))
def test_triangular_systems_and_factors_that_grow(seed, kind, s):
    rng, width = np.random.default_rng(seed), s + 3
    A = rng.standard_normal((2 * s + 5, s))
    H = A.T @ A
    F = np.full((3, width, width), NAN, kind)
    for i in range(s):
        F[0, i, : i + 1] = H[i, : i + 1]
        assert border(at(F), F.strides[1], i, kind(0))
    L, far = np.linalg.cholesky(H), 10 * np.linalg.cond(H)
    low = np.tril_indices(s)
    close(F[1][low], L[low], kind, far)
    close(F[2][low], np.linalg.inv(L)[low], kind, far)
    assert np.isnan(F[:, s:]).all() and np.isnan(F[1:, :s][:, ~np.tri(s, width, dtype=bool)]).all()
    b, x = rng.standard_normal(s).astype(kind), np.full(width, NAN, kind)
    x[:s] = b
    solve(at(F[1]), F.strides[1], at(x), s, kind(0))
    close(x[:s], np.linalg.solve(H, b), kind, far)
    assert np.isnan(x[s:]).all()
    x[:s], T = 1, np.tril(F[2, :s, :s])
    close(project(at(F[2]), F.strides[1], at(b), at(x), s, kind(0)), (T @ b) @ (T @ b), kind, far)
    close(x[:s], 1 + T.T @ (T @ b), kind, far)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_an_atom_that_depends_on_others_has_no_place_in_factors(kind):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((20, 5))
    for off in (0.0, np.finfo(kind).eps ** 0.5 / 4, 0.1):
        A[:, 4] = A[:, :4] @ [1, -2, 0.5, 3] + off * rng.standard_normal(20)
        F = np.zeros((3, 5, 5), kind)
        F[0] = A.astype(kind).T @ A.astype(kind)
        found = [border(at(F), F.strides[1], i, kind(0)) for i in range(5)]
        assert found == [True] * 4 + [off == 0.1]


@given(SEEDS, KINDS, st.integers(1, 150), st.booleans(), st.booleans(), st.integers(0, 3))
def test_the_best_atom_is_the_first_of_those_with_the_largest_key(seed, kind, n, signed, ols, ties):
    c, left, sizes = vectors(seed, kind, (n,), (n,), (n,))
    rng = np.random.default_rng(seed)
    left[:n], sizes[:n] = np.abs(left[:n]) - kind(0.1), np.abs(sizes[:n])
    for _ in range(ties):  # of the largest, and of others
        c[rng.integers(n)], left[:n], sizes[:n] = 5, 1, 1
    sizes[rng.permutation(n)[: n // 3]] = np.inf
    floor, least = kind(0.5), kind(0.25)
    key = c[:n] if signed else np.abs(c[:n])
    with np.errstate(invalid="ignore"):
        good = key > floor * sizes[:n]
    if ols:
        good &= left[:n] > least * sizes[:n] ** 2
        key = key * key / left[:n]
    expected = int(np.argmax(np.where(good, key, -1))) if good.any() else -1
    args = at(sizes), n, signed, floor, least, kind(0)
    assert best(at(c), at(left) if ols else None, *args) == expected


def test_no_atom_is_best_where_none_is_beyond_rounding():
    c, sizes = np.zeros(20), np.ones(20)
    assert best(at(c), None, at(sizes), 20, False, 0.0, 0.0, 0.0) == -1
    c[:], sizes[:] = 1, np.inf
    assert best(at(c), None, at(sizes), 20, False, 0.0, 0.0, 0.0) == -1


@given(SEEDS, KINDS, st.integers(0, 40), st.booleans())
def test_codes_are_written_in_increasing_order(seed, kind, s, shorter):
    rng, other = np.random.default_rng(seed), np.float32 if shorter else kind
    S, x = rng.permutation(100)[:s].astype(np.int32), rng.standard_normal(s).astype(kind)
    out_S, out_x = np.full(s + 1, -7, np.int32), np.full(s + 1, NAN, other)
    export(at(S), at(x), s, at(out_S), at(out_x), kind(0), other(0))
    assert (out_S[:s] == np.sort(S)).all() and (out_x[:s] == x[np.argsort(S)].astype(other)).all()
    assert out_S[s] == -7 and np.isnan(out_x[s])


def test_an_array_with_gaps_has_no_address():
    with pytest.raises(ValueError, match="copy it into C order"):
        rooms.addresses(np.zeros((3, 4))[:, :2])


@numba.njit
def nonnegative(F, V, atoms, free, width, depth, m, floor, eps, room, like):
    names, sizes = numbers(atoms, np.int32(0)), numbers(free, like)
    return small.nonnegative(F, V, names, sizes, width, depth, m, floor, eps, room, like)


@given(SEEDS, st.sampled_from([0.0, 1.0, 3.0]), st.booleans())
def test_non_negative_weights_are_best_also_where_atoms_leave_and_come_back(seed, shared, dependent):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(4, 9))
    m = int(rng.integers(3, d + 1))
    A = rng.standard_normal((d, m)) + shared * rng.standard_normal((d, 1)) * rng.choice([-1, 1], m)
    if dependent:  # a combination of the others, which are best, and of a little more
        A[:, -1] = A[:, :-1] @ rng.standard_normal(m - 1)
    before = rng.exponential(1, m - 1)
    Q = np.linalg.qr(A[:, :-1])[0]
    new = A[:, -1] - Q @ (Q.T @ A[:, -1])  # the best weights of the others are positive before the last atom comes
    y = A[:, :-1] @ before + rng.exponential(3) * (rng.standard_normal(d) if dependent else new)
    norms, names, width = np.linalg.norm(A, axis=0), 7 * np.arange(m)[::-1] + 2, m + 2
    F, V, free = np.full((3, width, width), NAN), np.zeros((3, width)), np.full(7 * m + 2, NAN)
    atoms = np.zeros(width, np.int32)
    F[0, :m, :m][np.tril_indices(m)] = (A.T @ A)[np.tril_indices(m)]
    V[:, :m], atoms[:m], free[names] = [np.append(before, 0), A.T @ y, norms], names, np.inf
    room = small.factors(width, np.float64)
    rest = width, F.strides[1], m, 1e-13 * np.linalg.norm(y), 2.0**-52, rooms.addresses(*room), 0.0
    s = nonnegative(at(F), at(V), at(atoms), at(free), *rest)
    x, expected = np.zeros(7 * m + 2), nnls(A, y)[0]
    x[atoms[:s]] = V[0, :s]
    found = x[names]
    assert (found >= 0).all() and (V[0, :s] > 0).all()
    least = np.linalg.norm(y - A @ expected)
    assert np.linalg.norm(y - A @ found) <= least + 1e-9 * np.linalg.norm(y)
    stays = found > 0
    assert np.isinf(free[names[stays]]).all() and (free[names[~stays]] == norms[~stays]).all()
    B = A[:, [list(names).index(j) for j in atoms[:s]]]
    close(V[1:, :s], [B.T @ y, np.linalg.norm(B, axis=0)], np.float64, 1e3)
    close(np.tril(F[1, :s, :s]) @ np.tril(F[1, :s, :s]).T, B.T @ B, np.float64, 1e4)
