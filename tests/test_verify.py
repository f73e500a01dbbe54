"""Proofs that a stranger can check: `pursuit.verify`, which imports nothing of ours, and the proofs of results."""

import contextlib
import decimal
import itertools
import json
import re
import subprocess
import sys
import zipfile
from array import array as numbers
from fractions import Fraction as Q
from pathlib import Path

import numpy as np
import pytest

import pursuit as ps
from pursuit import verify
from pursuit.run import statement

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import proofs


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return proofs.cases(str(tmp_path_factory.mktemp("proofs")))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Proofs of an earlier version, with their data: (proof, files) by name. `tools/proofs.py --write` made them."""
    folder = tmp_path_factory.mktemp("kept")
    with zipfile.ZipFile(Path(__file__).parent / "proofs.zip") as archive:
        archive.extractall(folder)
    return {path.name: (path / "proof.json", sorted(map(str, path.glob("*.np?")))) for path in sorted(folder.iterdir())}


# ---------------------------------------------------------------- what is proved


@pytest.mark.parametrize("library", ["numpy", "plain"])
def test_kept_proofs_prove_their_claims_and_no_more(library, kept, monkeypatch):
    monkeypatch.setattr(verify, "np", np if library == "numpy" else None)
    for name, (path, files) in kept.items():
        claim = json.loads(path.read_text())["claim"]
        holds, words = verify.check(str(path), files)
        proved, top = map(float, re.search(r"a value below (\S+); .* has at most (\S+)\.\n", words).groups())
        size = abs(claim["value"])
        assert holds and claim["lower"] <= proved <= claim["lower"] + 1e-14 * size, name
        assert claim["value"] - 1e-15 * size <= top <= claim["value"], name


def test_every_family_is_proved_as_sharply_as_its_run_claims(cases):
    for case in cases:
        allowed = 1.01 * case.result.gap + 1e-12 * abs(case.proof.value)
        assert case.proof.lower <= case.proof.value, case.name
        assert case.proof.gap <= max(allowed, 3e-12) or case.name == "trusted", case.name


def test_a_saved_proof_is_verified_from_the_files_of_the_user(cases):
    for case in cases:
        holds, words = verify.check(str(case.path), case.files)
        assert holds, case.name
        assert repr(case.proof.lower) in words and repr(case.proof.value) in words
        assert case.proof.verify(), case.name


def test_an_oracle_without_a_rule_is_said_to_be_trusted_in_the_first_line(cases):
    for case in cases:
        first = verify.check(str(case.path), case.files)[1].splitlines()[0]
        assert first.startswith("Taken on trust") == (case.name == "trusted"), case.name


def test_changed_proofs_with_false_claims_are_not_accepted(tmp_path):
    found = proofs.accepted(300, 1, str(tmp_path))
    assert {word for _, word in found} == {"not proved", "refused"}, found


def simplex_projection(y, radius):
    """The exact minimum of |x - y|^2 / 2 over x >= 0, sum x = radius."""
    best = None
    order = sorted(y, reverse=True)
    for k in range(1, len(y) + 1):
        level = (sum(order[:k]) - radius) / k
        if order[k - 1] > level:
            best = level
    return sum((max(v - best, Q(0)) - v) ** 2 for v in y) / 2


def box_projection(y, low, high):
    return sum((min(max(v, low), high) - v) ** 2 for v in y) / 2


def permutation_gap(y, n):
    """The least of <y, P> over permutations."""
    return min(sum(y[i][p[i]] for i in range(n)) for p in itertools.permutations(range(n)))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_lie_below_minima_in_rational_numbers(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 7)
    exact, f = [Q(v) for v in y.tolist()], ps.LeastSquares(y)
    radius = float(rng.uniform(0.1, 2) * np.abs(y).max())
    minima = {
        "simplex": (ps.conv(radius * ps.Simplex(n)), simplex_projection(exact, Q(radius))),
        "box": (
            ps.conv(ps.Box(np.full(n, -radius), np.full(n, radius / 2))),
            box_projection(exact, -Q(radius), Q(radius / 2)),
        ),
        "cube": (ps.conv(radius * ps.Ball(n, np.inf)), box_projection(exact, -Q(radius), Q(radius))),
    }
    if sum(map(abs, exact)) > Q(radius):
        minima["diamond"] = ps.conv(radius * ps.SignedBasis(n)), simplex_projection(list(map(abs, exact)), Q(radius))
    for name, (domain, least) in minima.items():
        proof = ps.minimize(f, domain, stop=ps.Stop(rgap=1e-12, iterations=200)).certificate
        assert Q(proof.lower) <= least <= Q(proof.value), name
        assert float(least) - proof.lower <= 1e-9 * float(sum(v * v for v in exact)), name


@pytest.mark.parametrize("seed", range(10))
def test_the_minimum_of_least_squares_over_a_span_is_enclosed(seed):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((6, 2))
    D[:, 1] = D[:, 0] + 10.0 ** rng.uniform(-14, 0) * D[:, 1]  # nearly dependent
    y = rng.standard_normal(6)
    a, b = ([Q(v) for v in column] for column in D.T.tolist())
    t = [Q(v) for v in y.tolist()]

    def dot(p, q):
        return sum(u * v for u, v in zip(p, q, strict=True))

    determinant = dot(a, a) * dot(b, b) - dot(a, b) ** 2
    w = (dot(b, b) * dot(a, t) - dot(a, b) * dot(b, t)) / determinant
    v = (dot(a, a) * dot(b, t) - dot(a, b) * dot(a, t)) / determinant
    least = sum((u - w * p - v * q) ** 2 for u, p, q in zip(t, a, b, strict=True)) / 2
    proof = ps.minimize(ps.LeastSquares(y), ps.lin(ps.Dictionary(D)), stop=ps.Stop(rgap=1e-12)).certificate
    assert Q(proof.lower) <= least <= Q(proof.value)
    assert least - Q(proof.lower) <= Q(1, 10**9) * least


# ---------------------------------------------------------------- the rules, one by one


def test_logarithms_exponentials_and_roots_are_bounded_to_many_digits():
    rng = np.random.default_rng(0)
    with decimal.localcontext(prec=120):

        def decimal_of(q):
            return decimal.Decimal(q.numerator) / q.denominator

        for bits in (1, 2, 5, 30, 60, 200, 900):
            for _ in range(20):
                n, d = (int(v) ** (bits // 30 + 1) + 1 for v in rng.integers(0, 1 << min(bits, 60), 2))
                q = Q(n - d, 1 << max(0, max(n, d).bit_length() - int(rng.integers(1, 8))))
                ratio, close = decimal_of(Q(n, d)), decimal.Decimal(10) ** -46
                assert ratio.sqrt() <= decimal_of(verify.root_up(Q(n, d))) <= ratio.sqrt() * (1 + close)
                entropy = ratio * ratio.ln()
                assert entropy <= decimal_of(verify.xlogx_up(Q(n, d))) <= entropy + (abs(entropy) + ratio) * close
                for each in (q, -q, Q(4999), Q(-4999)):
                    truth = decimal_of(each).exp()
                    assert truth <= decimal_of(verify.exp_up(each)) <= truth * (1 + close * max(1, abs(each.numerator)))
    assert 0 < verify.exp_up(Q(-100_000)) < Q(1, 10**2000)
    assert verify.xlogx_up(Q(0)) == verify.root_up(Q(0)) == 0
    with pytest.raises(verify.Refused, match="above 5000"):
        verify.exp_up(Q(5001))


def test_numbers_of_many_digits_are_enclosed_by_some_of_few():
    for q in (Q(1, 3), Q(-1, 3), Q(10**30 + 1, 7), Q(-(10**30), 7), Q(1, 3**900)):
        low, high = verify.around(q)
        assert low < q < high <= low + abs(q) / 2**150 and low.numerator.bit_length() < 200
    assert verify.around(Q(3, 8)) == (Q(3, 8), Q(3, 8)) and verify.around(Q(0)) == (0, 0)


@pytest.mark.parametrize("library", ["numpy", "plain"])
def test_eigenvalues_and_singular_values_are_bounded_and_sharp(library, monkeypatch):
    monkeypatch.setattr(verify, "np", np if library == "numpy" else None)
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12):
        for rank in (1, n):
            B = rng.integers(-50, 50, (n, rank)).astype(object)
            A = B @ B.T - 7 * np.eye(n, dtype=object).astype(int)
            least = float(np.linalg.eigvalsh(A.astype(float))[0])
            size = float(np.abs(A.astype(float)).max())
            for hint in (least, 0.0, 1e9, -1e9, float("nan")):
                found = verify.least_eigenvalue([[int(v) for v in row] for row in A], 1, hint)
                assert found <= Q(least) + Q(1e-12 * size)
                assert hint != least or found >= Q(least) - Q(1e-10 * size * n)
            V = rng.integers(-9, 9, (n, 3))
            sigma = float(np.linalg.norm(V, 2))
            bound = verify.largest_singular([[int(v) for v in row] for row in V], 1, sigma)
            assert sigma * (1 - 1e-12) <= bound <= sigma * (1 + 1e-6) + 1e-6


def test_long_numbers_are_cut_without_loss_of_the_bound():
    V = [[3 << 400, 1], [(1 << 400) + 12345, -(5 << 399)]]
    exact = float(np.linalg.norm(np.array([[3.0, 0.0], [1.0, -2.5]]), 2))
    assert exact * (1 - 1e-12) <= verify.largest_singular(V, 1 << 400, exact) <= exact * (1 + 1e-9)


def test_elimination_solves_and_sees_what_is_not_semidefinite():
    rng = np.random.default_rng(0)
    for rank in (1, 2, 3, 4):
        B = rng.integers(-5, 6, (4, rank))
        A, x = (B @ B.T).tolist(), rng.integers(-5, 6, 4)
        b = (np.array(A) @ x).tolist()
        w, d, definite = verify.eliminate(A, b)
        assert (np.array(A, dtype=object) @ np.array(w, dtype=object)).tolist() == [d * v for v in b]
        assert definite
    assert not verify.eliminate([[1, 2], [2, 1]], [0, 0])[2]
    assert not verify.eliminate([[0, 1], [1, 0]], [0, 0])[2]
    assert not verify.eliminate([[-1]], [0])[2]


@pytest.mark.parametrize("library", ["numpy", "plain"])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 1e-310])
def test_the_filter_of_columns_leaves_out_no_best_one(library, scale, monkeypatch):
    monkeypatch.setattr(verify, "np", np if library == "numpy" else None)
    rng = np.random.default_rng(0)
    for trial in range(20):
        X = rng.standard_normal((5, 30))
        X[:, 20:] = X[:, :10] * (1 + rng.integers(-2, 3, (5, 10)) * 2.0**-52)  # ties but for the last digits
        X *= scale
        u = verify.Vector.of((rng.standard_normal(5) * 10.0 ** rng.integers(-30, 30)).tolist())
        table = verify.Table((5, 30), np.ascontiguousarray(X).ravel())
        every = [table.product(j, u) for j in range(30)]
        assert min(a for _, a in table.candidates(u, False)) == min(every)
        assert max(abs(a) for _, a in table.candidates(u, True)) == max(map(abs, every))
        below = dict(table.candidates(u, False, 0.0))
        assert all(below[j] == a for j, a in enumerate(every) if a <= 0)
        assert (
            trial or scale != 1.0 or library == "plain" or len(table.candidates(u, True)) < 10
        )  # and most of the others


def test_numbers_are_rounded_to_the_side_that_is_asked():
    third = Q(1, 3)
    assert Q(verify.nearest(third, -np.inf)) < third < Q(verify.nearest(third, np.inf))
    assert verify.nearest(Q(10) ** 400, -np.inf) == sys.float_info.max
    assert verify.nearest(Q(10) ** 400, np.inf) == np.inf
    assert verify.nearest(-(Q(10) ** 400), np.inf) == -sys.float_info.max
    assert verify.nearest(Q(1, 2), np.inf) == 0.5 == verify.nearest(Q(1, 2), -np.inf)
    root = verify.root_up(Q(2))
    assert root * root >= 2 and float(root) == pytest.approx(2**0.5, rel=1e-15)
    assert verify.root_up(Q(0)) == 0 and verify.root_up(Q(1, 10**300)) ** 2 >= Q(1, 10**300)


def read_arrays(spec, name):
    a = np.asarray(spec, dtype=float)
    return a.shape, numbers("d", a.ravel().tolist())


LOSSES = {
    "least_squares": (ps.LeastSquares, [0.5, -1.0, 2.0, 0.0], {}),
    "huber": (lambda y, w: ps.Huber(y, 0.75, w), [0.5, -1.0, 2.0, 0.0], {"width": 0.75}),
    "logistic": (ps.Logistic, [1.0, -1.0, -1.0, 1.0], {}),
    "poisson": (ps.Poisson, [0.0, 3.0, 1.0, 0.0], {}),
    "multinomial": (ps.Multinomial, [[1.0, 0.0], [0.25, 0.75]], {}),
}


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("ridge", [0, 2])
def test_values_and_conjugates_of_losses_are_those_of_the_package_rounded_up(kind, ridge):
    make, y, more = LOSSES[kind]
    rng = np.random.default_rng(0)
    weights = np.array([0.5, 2.0, 1.5, 0.25])[: len(y)]
    f = make(np.array(y), weights)
    f = ps.Ridge(f, ridge) if ridge else f
    extra = ridge * (2 if kind == "multinomial" else 1)
    loss = verify.Loss({"kind": kind, "y": y, "weights": weights.tolist(), "ridge": extra, **more}, read_arrays)
    shape = f.space.shape
    for scale in (0.1, 1.0, 10.0):
        for _ in range(6):
            x = scale * rng.standard_normal(shape)
            value, u = f.value_and_grad(x)
            if kind == "multinomial":
                u[: len(y)] -= u[: len(y)].mean(axis=1, keepdims=True)
            assert float(loss.value_up(verify.Vector.of(x.ravel().tolist()))) == pytest.approx(value, rel=1e-12)
            vector = verify.Vector.of(u.ravel().tolist())
            repaired = loss.repair(vector)
            assert loss.share(repaired) == 1 and list(loss.repair(repaired)) == list(repaired)
            assert max(map(abs, repaired - vector)) <= Q(1, 10**14)
            conjugate = loss.conjugate_up(repaired)
            assert float(conjugate) == pytest.approx(float(np.vdot(u, x)) - value, rel=1e-11, abs=1e-11)
            far = 20.0 * rng.standard_normal(shape)
            if kind == "multinomial":
                far -= far.mean(axis=1, keepdims=True)
                far[: len(y)] = np.stack([far[: len(y), 0], -far[: len(y), 0]], axis=1)
            far, given = verify.Vector.of(far.ravel().tolist()), far
            share, inside = loss.share(far), loss.repair(far)
            assert loss.share(inside) == 1
            if f.dual_range is not None:
                with np.errstate(divide="ignore"):
                    low, high = (np.broadcast_to(end, shape) for end in f.dual_range)
                    ends = np.where(given > high, high / given, np.where(given < low, low / given, 1.0))
                assert float(share) == pytest.approx(float(ends.min()), rel=1e-12)
            if share < 1:
                assert loss.conjugate_up(far) is None
                assert loss.share(share * far) == 1


def test_the_metric_of_a_loss_is_symmetric_and_zero_at_the_end_of_the_range():
    for kind, (make, y, more) in LOSSES.items():
        f = make(np.array(y), None)
        loss = verify.Loss({"kind": kind, "y": y, "ridge": 1, **more}, read_arrays)
        n = loss.n
        u = f.value_and_grad(0.3 * np.arange(n).reshape(f.space.shape))[1].ravel().tolist()
        H = np.array(
            [loss.metric(verify.Vector.of([*u, 0.5]))([int(i == j) for j in range(n + 1)]) for i in range(n + 1)], float
        )
        assert (H == H.T).all() and np.linalg.eigvalsh(H)[0] >= -1e-9 * np.abs(H).max(), kind
        hessian = f.hessian(0.3 * np.arange(n).reshape(f.space.shape))
        true = np.stack([np.ravel(hessian(e.reshape(f.space.shape))) for e in np.eye(n)])
        if kind != "huber":
            top = H[:n, :n] / np.abs(H[:n, :n]).max() * np.abs(true).max()
            np.testing.assert_allclose(top, true, atol=1e-5 * np.abs(true).max())


def test_rows_of_a_multinomial_loss_are_distributions_and_their_duals_sum_to_0():
    with pytest.raises(verify.Refused, match="does not sum to 1"):
        verify.Loss({"kind": "multinomial", "y": [[1.0, 0.0], [0.5, 0.25]]}, read_arrays)
    loss = verify.Loss({"kind": "multinomial", "y": [[1.0, 0.0], [0.5, 0.5]]}, read_arrays)
    assert loss.share(verify.Vector.of([-0.5, 0.5, 0.25, 0.0])) == 0
    assert loss.share(verify.Vector.of([-0.5, 0.5, 0.25, -0.25])) == 1


def test_a_singular_quadratic_has_the_conjugate_of_its_range():
    spec = {"c": [1.0, 1.0, 2.0], "H": [[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 4.0]]}
    f = verify.Quadratic(spec, read_arrays)
    zero = verify.Vector.of([0.0, 0.0, 0.0])
    f.take(zero, 0.0)
    assert f.mu == 0 and f.conjugate_up(verify.Vector.of([2.0, 1.0, 2.0])) is None
    assert f.conjugate_up(verify.Vector.of([3.0, 3.0, 6.0])) == Q(1) + Q(2)  # 1/2 <u - c, H^+ (u - c)>
    assert f.conjugate_up(verify.Vector.of([1.0, 1.0, 2.0])) == 0
    indefinite = verify.Quadratic(spec | {"H": [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}, read_arrays)
    indefinite.take(zero, 1.0)
    assert indefinite.mu < 0 and indefinite.conjugate_up(verify.Vector.of([1.0, 1.0, 2.0])) is None
    curved = verify.Quadratic(spec | {"H": np.diag([4.0, 8.0, 16.0])}, read_arrays)
    for hint in (4.0, 0.0, 50.0, -3.0):
        curved.mu = None
        curved.take(verify.Vector.of([1.0, -1.0, 0.5]), hint)
        u = verify.Vector.of([2.0, 3.0, -1.0])
        truth = Q(1, 8) + Q(4, 16) + Q(9, 32)
        if curved.mu > 0:
            assert curved.mu <= 4 and curved.conjugate_up(u) >= truth
            away = Q(2 - 1 - 4) ** 2 + Q(3 - 1 + 8) ** 2 + Q(-1 - 2 - 8) ** 2
            bound = Q(2 - 3) - Q(1, 2) - curved.value_up(curved.z) + away / (2 * curved.mu)
            assert curved.conjugate_up(u) == bound


SHAPES = {
    "basis": ({"n": 5}, ps.Simplex(5)),
    "signed": ({"n": 5}, ps.SignedBasis(5)),
    "l2": ({"n": 5}, ps.Ball(5, 2)),
    "linf": ({"n": 5}, ps.Ball(5, np.inf)),
    "ksparse": ({"n": 5, "k": 2}, ps.KSparse(5, 2)),
    "ksupport": ({"n": 5, "k": 2}, ps.KSupport(5, 2)),
    "hypersimplex": ({"n": 5, "k": 2}, ps.Hypersimplex(5, 2)),
    "groups": (
        {"n": 5, "groups": [[0, 3], [1, 2, 4]], "weights": [0.5, 2.0]},
        ps.Groups([[0, 3], [1, 2, 4]], [0.5, 2.0]),
    ),
    "box": (
        {"n": 3, "lower": [-1.0, 0.5, -2.0], "upper": [0.5, 2.0, -1.0]},
        ps.Box([-1.0, 0.5, -2.0], [0.5, 2.0, -1.0]),
    ),
    "permutations": ({"size": 3}, ps.Permutations(3)),
    "transport": ({"a": [0.5, 0.5], "b": [0.25, 0.25, 0.5]}, ps.Transport([0.5, 0.5], [0.25, 0.25, 0.5])),
    "flows": (
        {"n": 4, "nodes": 3, "edges": [0, 1, 1, 2, 0, 2, 1, 2], "trips": [[0, 2, 2.0], [1, 2, 1.0]]},
        ps.Flows([(0, 1), (1, 2), (0, 2), (1, 2)], [[0, 0, 2.0], [0, 0, 1.0], [0, 0, 0]]),
    ),
    "polytope": (
        {
            "n": 2,
            "A": [[1.0, 2.0], [3.0, -1.0]],
            "b": [4.0, 6.0],
            "inequalities": 2,
            "lower": [0, 0],
            "upper": [None, 3],
        },
        ps.Polytope([[1.0, 2.0], [3.0, -1.0]], [4.0, 6.0], bounds=[(0, None), (0, 3)]),
    ),
    "rank_one": ({"shape": [3, 2]}, ps.RankOne((3, 2))),
    "symmetric_rank_one": ({"shape": [3, 3]}, ps.SymmetricRankOne(3)),
    "spectrahedron": ({"shape": [3, 3]}, ps.Spectrahedron(3)),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_minima_and_gauges_of_sets_are_those_of_the_package(kind):
    spec, A = SHAPES[kind]
    atoms = verify.Atoms({"kind": kind, **spec}, read_arrays)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        for _ in range(5):
            g = scale * rng.standard_normal(A.shape)
            least = float(np.vdot(A.lmo(g).vector, g))
            h = verify.Vector.of(g.ravel().tolist())
            hint = statement.hint(statement.Peeled.of(A), g.ravel())
            assert float(atoms.lowest(h, hint)) == pytest.approx(least, rel=1e-9)
            bad = {name: rng.standard_normal(np.size(values)) * scale for name, values in hint.items()}
            bad = {name: v.tolist() if isinstance(hint[name], list) else float(v[0]) for name, v in bad.items()}
            for other in (bad, {}):  # with a bad hint, or none, it is no better
                with contextlib.suppress(verify.Unproved):
                    assert atoms.lowest(h, other) <= Q(least) + Q(1e-12 * scale)
            vertex = A.lmo(g).vector.ravel()
            if atoms.gauged:
                x = np.abs(g) if kind in ("basis", "hypersimplex") else g
                x = np.ones(5) + 0.1 * x / scale if kind == "hypersimplex" else x
                assert float(atoms.gauge(verify.Vector.of(x.tolist()))) == pytest.approx(A.gauge(x), rel=1e-12)
            elif kind in verify.CONSTRAINED:
                assert atoms.moved(verify.Vector.of(vertex.tolist()))[1] <= Q(1, 10**15)
                for away in (5.0, -5.0):
                    other = np.append(vertex[:-1], vertex[-1] + away)
                    inside, missed = atoms.moved(verify.Vector.of(other.tolist()))
                    assert missed > Q(1, 5) or (kind == "box" and not atoms.moved(inside)[1])


# ---------------------------------------------------------------- files


def run(*arguments):
    """The checker alone, with Python's standard library: neither our package nor NumPy can be imported."""
    command = [sys.executable, "-I", "-S", verify.__file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_file_alone_checks_a_proof_with_the_standard_library(cases):
    case = next(case for case in cases if case.name == "rank one at entries")
    found = run(case.path, "--data", *case.files)
    assert found.returncode == 0 and "is proved" in found.stdout and not found.stderr


def test_with_and_without_numpy_the_same_is_proved(cases, monkeypatch):
    with_numpy = [verify.check(str(case.path), case.files) for case in cases]
    monkeypatch.setattr(verify, "np", None)
    for case, (holds, words) in zip(cases, with_numpy, strict=True):
        plain = verify.check(str(case.path), case.files)
        assert plain[0] == holds and plain[1].splitlines()[:2] == words.splitlines()[:2]


def test_a_claim_that_is_not_proved_has_exit_code_1(cases, tmp_path, capsys):
    case = cases[0]
    case.document["claim"]["lower"], kept = case.document["claim"]["value"] + 1.0, case.document["claim"]["lower"]
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(case.document))
    case.document["claim"]["lower"] = kept
    assert verify.main([str(path), "--data", *case.files]) == 1
    assert "NOT PROVED" in capsys.readouterr().out


def test_data_in_other_types_and_orders_are_the_same_data(tmp_path):
    X, y = np.arange(12.0).reshape(4, 3) - 5.0, np.array([1.0, 2.0, -3.0, 0.5])
    proof = ps.minimize(ps.LeastSquares(y), ps.conv(ps.Dictionary(X, signed=True))).certificate
    path = proof.save(tmp_path / "proof.json")
    np.save(tmp_path / "y.npy", y.astype(np.float32))
    for name, array in {"f4": X.astype(np.float32), "i1": X.astype(np.int8), "fortran": np.asfortranarray(X)}.items():
        np.save(tmp_path / f"{name}.npy", array)
        assert verify.main([str(path), "--data", str(tmp_path / f"{name}.npy"), str(tmp_path / "y.npy")]) == 0


WRONG = [  # a case, where in its proof, what is put there, and what is said of it
    ("hull", "format", "other", "is not a proof in the format"),
    ("hull", "version", 2, "is not a proof in the format"),
    ("hull", "f kind", "loss", "f is no known loss"),
    ("hull", "f weights", -1.0, "not positive"),
    ("hull", "f weights", [1.0, 2.0], "not positive"),
    ("hull", "f weights", [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0], "not positive"),
    ("hull", "domain 0 kind", "disc", "no hull, cone, span or penalty"),
    ("hull", "domain 0 price", 1.0, "price"),
    ("hull", "domain 0 scale", 0.0, "factor"),
    ("hull", "domain 0 rho", 1.0, "factor"),
    ("hull", "domain 0 set n", 11, "column for each entry"),
    ("hull", "domain 0 set kind", "disc", "not known"),
    ("hull", "domain 0 columns", 2, "column for each entry"),
    ("hull", "domain 0 below", 1.0, "differ in size"),
    ("hull", "domain 0 start", 1, "differ in size"),
    ("hull", "domain 0 map shape", [12, 8], "shape"),
    ("hull", "dual u", [1.0], "another length"),
    ("hull", "dual u 0", True, "not a finite float64"),
    ("hull", "dual u 0", 2**60 + 1, "not a finite float64"),
    ("hull", "dual u 0", 10**400, "not a finite float64"),
    ("hull", "claim lower", "x", "not a finite float64"),
    ("hull", "point 0 weights 0", 0.9, "sum to"),
    ("hull", "point 0 atoms 0 at 0", 12, "outside its set"),
    ("hull", "point 0 atoms 0 at 0", -1, "outside its set"),
    ("penalty", "domain 0 price", -0.3, "price"),
    ("cone", "domain 0 set", {"kind": "box", "n": 3, "lower": [0, 0, 0], "upper": [1, 1, 1]}, "Only the hull"),
    ("cone", "domain 0 set", {"kind": "hypersimplex", "n": 3, "k": 1}, "has no rule"),
    ("cone", "point 0 weights 0", -1.0, "negative"),
    ("cone", "dual v", [1.0], "another length"),
    ("huber", "f width", -1.0, "width"),
    ("poisson", "f kind", "logistic", "labels"),
    ("hull", "f kind", "poisson", "negative somewhere"),
    ("hull", "f kind", "logistic", "labels"),
    ("multinomial", "f y shape", [18], "shape"),
    ("quadratic", "f H shape", [64], "shape"),
    ("quadratic", "dual z", [1.0], "another length"),
    ("box", "domain 0 set lower 0", 9.0, "empty"),
    ("box", "domain 0 set lower", [0.0], "one bound for each entry"),
    ("groups", "domain 0 set groups 0 0", 1, "no partition"),
    ("groups", "domain 0 set weights 0", -1.0, "not positive"),
    ("k-support", "domain 0 set k", 0, "not known, or empty"),
    ("k-support", "domain 0 set k", 2, "more than k nonzeros"),
    ("hypersimplex", "point 0 atoms 0 values 0", 2.0, "outside"),
    ("rank one", "point 0 atoms 0 left", [1.0], "wrong length"),
    ("rank one at entries", "domain 0 set rows 0", 4, "outside the matrix"),
    ("rank one at entries", "domain 0 set columns 0", 1, "named twice"),
    ("symmetric rank one", "domain 0 set shape", [2, 8], "not square"),
    ("spectrahedron", "point 0 atoms 0 left 0", 0.123, "differ"),
    ("spectrahedron", "point 0 weights 0", -0.5, "negative"),
    ("transport", "dual hints 0 alpha", [1.0], "one number for each"),
    ("transport", "point 0 atoms 0 values 0", 0.7, "misses the constraints"),
    ("permutations", "point 0 atoms 0 at 0", 1, "misses the constraints"),
    ("polytope", "domain 0 set n", 2, "one bound for each entry"),
    ("polytope", "point 0 atoms 0 values", [9.0, 9.0, 9.0], "misses the constraints"),
    ("flows", "domain 0 set edges 0", 9, "no node"),
    ("flows", "domain 0 set trips 0 2", -1.0, "negative"),
    ("flows", "point 0 atoms 0 values 0", 3.5, "misses the constraints"),
]


@pytest.mark.parametrize(("name", "where", "what", "sentence"), WRONG, ids=lambda v: str(v)[:30])
def test_what_is_wrong_is_refused_with_a_reason(name, where, what, sentence, kept, tmp_path, capsys):
    path, files = kept[name]
    document = json.loads(path.read_text())
    *way, last = (int(key) if key.isdigit() else key for key in where.split())
    place = document
    for key in way:
        place = place[key]
    place[last] = what
    (tmp_path / "proof.json").write_text(json.dumps(document))
    assert verify.main([str(tmp_path / "proof.json"), "--data", *files]) == 2
    words = capsys.readouterr().err
    assert sentence in words and words.startswith("refused: ") and words.count("\n") == 1


def test_a_set_of_a_span_with_rho_is_asked_for_both_signs():
    spec = {"f": {"kind": "least_squares", "y": [-5.0, 1.0]}, "domain": [
        {"kind": "span", "rho": 10.0, "set": {"kind": "basis", "n": 2}}
    ]}  # fmt: skip
    problem = verify.Problem(spec, verify.reader({}, []))
    assert verify.bound(problem, {"u": [5.0, -1.0]}) == -10 * 5 + 13  # one sign alone: -10 + 13, above the minimum 0
    assert verify.prove(problem, {"u": [5.0, -1.0]}) == 0


def test_entries_of_an_atom_are_named_once(kept):
    path, files = kept["k-support"]
    document = json.loads(path.read_text())
    document["point"] = [{"weights": [1.0], "atoms": [{"at": [0, 0], "values": [0.7, 0.7]}]}]
    data = {verify.digest(values): (file, shape, values) for file, shape, values in map(verify.load, files)}
    with pytest.raises(verify.Refused, match="one twice"):
        verify.value(verify.Problem(document, verify.reader(data, [])), document["point"])


def test_arrays_in_the_proof_itself_are_named_in_the_answer(kept, tmp_path):
    path, files = kept["simplex"]
    document = json.loads(path.read_text())
    document["f"]["y"] = np.load(files[0]).tolist()
    (tmp_path / "proof.json").write_text(json.dumps(document))
    assert "y is the list of 8 numbers in the proof itself." in verify.check(str(tmp_path / "proof.json"), [])[1]


def test_other_data_are_refused(cases, tmp_path, capsys):
    case = next(case for case in cases if case.name == "hull")
    X = np.load(next(file for file in case.files if file.endswith("map.npy")))
    X[3, 4] = np.nextafter(X[3, 4], 9.0)
    np.save(tmp_path / "X.npy", X)
    files = [str(tmp_path / "X.npy"), *(file for file in case.files if not file.endswith("map.npy"))]
    assert verify.main([str(case.path), "--data", *files]) == 2
    assert "other data" in capsys.readouterr().err


def test_malformed_files_are_refused_in_one_sentence(cases, tmp_path, capsys):
    rng, path = np.random.default_rng(0), tmp_path / "proof.json"
    for i in range(100):
        case = cases[i % len(cases)]
        path.write_bytes(proofs.malformed(rng, case.path.read_bytes()))
        code = verify.main([str(path), "--data", *case.files])
        words = capsys.readouterr()
        assert code in (0, 1, 2)
        assert code != 2 or (len(words.err.splitlines()) == 1 and words.err.startswith("refused: "))


@pytest.mark.parametrize("damage", ["cut", "magic", "huge", "object", "nan", "missing", "npz"])
def test_damaged_data_are_refused_in_one_sentence(damage, cases, tmp_path, capsys):
    case, path = cases[0], tmp_path / "y.npy"
    np.save(path, np.arange(5.0))
    text = path.read_bytes()
    if damage == "object":
        text = text.replace(b"<f8", b"|O8")
    if damage == "huge":
        text = text.replace(b"(5,),", b"(9999999999999,),")
    path.write_bytes({"cut": text[:-3], "magic": b"x" + text}.get(damage, text))
    if damage == "nan":
        np.save(path, np.array([1.0, np.nan]))
    if damage == "missing":
        path.unlink()
    if damage == "npz":
        path = tmp_path / "y.npz"
        path.write_bytes(b"PK\3\4" + bytes(100))
    assert verify.main([str(case.path), "--data", str(path)]) == 2
    words = capsys.readouterr()
    assert not words.out and len(words.err.splitlines()) == 1 and words.err.startswith("refused: ")


def test_results_without_a_proof_say_why():
    f, y = ps.Smooth(lambda x: float(x @ x), lambda x: 2 * x, L=2.0), ps.LeastSquares(np.arange(6.0).reshape(2, 3))
    matrices = ps.RankOne((2, 3)), ps.NonnegativeRankOne((2, 3))
    domains = ps.cone(matrices[1]), ps.penalty(0.1 * matrices[1]), ps.cone(ps.Permutations(3))
    square = ps.LeastSquares(np.eye(3))
    for g, domain in [(f, ps.conv(ps.Simplex(3))), *zip((y, y, square), domains, strict=True)]:
        with pytest.raises(ValueError, match="rule"):
            _ = ps.minimize(g, domain, stop=ps.Stop(iterations=5)).certificate


def test_what_is_trusted_is_trusted_but_for_rounding():
    rng = np.random.default_rng(0)
    y = ps.LeastSquares(np.abs(rng.standard_normal((2, 3))))
    assert ps.minimize(y, ps.conv(ps.NonnegativeRankOne((2, 3))), stop=ps.Stop(iterations=3)).certificate.gap >= 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A = 100 * (ps.Dictionary(rng.standard_normal((4, 3)).astype(np.float32)) | ps.SignedBasis(4))
        f = ps.LeastSquares((1e5 * rng.standard_normal(4)).astype(np.float32))
        assert ps.minimize(f, ps.conv(A)).certificate.gap >= 0


def test_a_cone_without_a_rule_is_refused_where_conjugates_prove_nothing():
    f = ps.Quadratic(np.diag([1.0, 0.0, 2.0]), [-1.0, 1e-3, -1.0])  # singular, over a set that lists no atoms
    r = ps.minimize(f, ps.cone(ps.Hypersimplex(3, 2)), stop=ps.Stop(iterations=3))
    with pytest.raises(ValueError, match="has no rule"):
        _ = r.certificate


@pytest.mark.parametrize("A", [5 * ps.RankOne((3, 2)), 5 * ps.SymmetricRankOne(2), ps.Spectrahedron(2)], ids=repr)
def test_matrices_seen_through_a_map_are_proved_by_their_factors(A, rng):
    K = rng.standard_normal((7, int(np.prod(A.shape))))
    f = ps.LeastSquares(3.0 * rng.standard_normal(7))
    r = ps.minimize(f, ps.conv(A.through(K)), stop=ps.Stop(iterations=30))
    assert r.certificate.verify() and r.certificate.lower <= r.value


def test_images_that_name_no_vertices_and_integers_are_proved_as_far_as_they_can_be(rng):
    """Atoms of a polytope have no source, so its image is taken on trust; integers are relaxed."""
    P, y = ps.Polytope([[1.0, 2.0, 1.0], [3.0, 1.0, 0.0]], [4.0, 6.0], bounds=(0, 3)), rng.standard_normal(5)
    image = ps.minimize(ps.LeastSquares(y), ps.conv(P.through(rng.standard_normal((5, 3))))).certificate
    assert image.trusted and image.verify() and image.gap < 1e-9
    whole = ps.Polytope([[5.0, 4.0, 3.0]], [8.0], bounds=(0, 1), integrality=1)
    r = ps.minimize(ps.LeastSquares([0.9, 0.8, 0.7]), ps.conv(whole))
    assert r.certificate.verify() and r.certificate.lower <= r.value
    with pytest.raises(ValueError, match="their programs have no prices of rows"):
        whole.prices(np.ones(3))


def test_a_product_that_was_rounded_below_a_semidefinite_matrix_is_told_what_to_do(rng, tmp_path):
    F = rng.standard_normal((30, 4))
    H = F @ F.T
    flat = ps.minimize(ps.Quadratic(H, rng.random(30)), ps.conv(ps.Simplex(30)))
    with pytest.raises(ValueError, match="H has an eigenvalue below 0, if only by rounding"):
        flat.certificate.save(tmp_path / "proof.json")
    raised = ps.minimize(ps.Quadratic(H + 1e-12 * np.eye(30), flat.f.c), ps.conv(ps.Simplex(30)))
    assert raised.certificate.gap < 1e-9
