"""Pursuits on a CUDA device, beside the host's.

Without a device the kernels run in Triton's interpreter, on tensors of the host.
"""

import os
import re
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
CUDA = torch.cuda.is_available()
if not CUDA:
    os.environ["TRITON_INTERPRET"] = "1"  # read where kernels are defined, Triton's own ones too
pytest.importorskip("triton", reason="Triton is not installed.")

from torch.overrides import TorchFunctionMode

import pursuit as ps
from pursuit.gpu import gradients, pursuits, tensors

needs_cuda = pytest.mark.skipif(not CUDA, reason="there is no CUDA device.")
WHERE = "cuda" if CUDA else "cpu"


def tensor(a, dtype):
    return torch.from_numpy(np.asarray(a)).to(WHERE, dtype)


def coded(D, Y, limits, tols, dtype, method="omp"):
    """Dense codes, and the places that are left to the host."""
    rules = (np.asarray(limits), torch.int32), (np.asarray(tols), dtype)
    found, left = pursuits.encode_pursuits(tensor(D, dtype), tensor(Y, dtype), method, int(np.max(limits)), *rules)
    return found.to_dense().cpu().numpy(), left.cpu().numpy()


def compare(D, Y, limits, tols, dtype, method="omp"):
    codes, left = coded(D, Y, limits, tols, dtype, method)
    assert not len(left)
    D, Y = (tensor(a, dtype).double().cpu().numpy() for a in (D, Y))
    reference = ps.encode(D, Y, atoms=limits, tol=np.where(np.asarray(tols) < 0, 0.0, tols), method=method).toarray()
    rest = np.setdiff1d(np.arange(len(Y)), left)
    np.testing.assert_array_equal(codes[rest] != 0, reference[rest] != 0)
    np.testing.assert_allclose(
        codes[rest], reference[rest], atol=(2e-5 if dtype == torch.float32 else 1e-12) * np.abs(reference).max()
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("method", "d", "n", "k"), [
    ("omp", 16, 40, 4), ("omp", 20, 150, 5), ("omp", 1100, 30, 3), ("ols", 16, 40, 4), ("mp", 16, 40, 4),
])  # fmt: skip
def test_codes_are_those_of_the_host(method, d, n, k, dtype, rng):
    D, Y = rng.standard_normal((d, n)), rng.standard_normal((11, d))
    Y[3] = 0.0
    limits, tols = np.full(11, k), np.full(11, -1.0)
    limits[::5], tols[1::5] = 2, 0.8 * np.linalg.norm(Y[1::5], axis=1)
    compare(D, Y, limits, tols, dtype, method)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_signals_and_atoms_of_all_sizes(dtype, rng):
    D = rng.standard_normal((12, 30)) * 10.0 ** rng.uniform(-2, 2, 30)
    Y = rng.standard_normal((20, 12)) * 10.0 ** rng.uniform(-12, 12, (20, 1))
    codes, _ = coded(D, Y, np.full(20, 2), np.full(20, -1.0), dtype)
    for y, code in zip(Y, codes, strict=True):
        reference = ps.encode(D, y[None], atoms=2).toarray()[0]
        np.testing.assert_array_equal(code != 0, reference != 0)
        np.testing.assert_allclose(code, reference, atol=1e-4 * np.abs(reference).max())


def test_what_float16_cannot_tell_apart_is_found_in_full_precision(rng, monkeypatch):
    monkeypatch.setattr(pursuits.Pursuit, "_plan", lambda *_: WAYS["searches"])
    D = rng.standard_normal((16, 12))
    D = np.hstack([D, D + 1e-5 * rng.standard_normal(D.shape), D + 1e-5 * rng.standard_normal(D.shape)])
    Y = rng.standard_normal((6, 16))
    compare(D, Y, np.ones(6, int), np.full(6, -1.0), torch.float64)


def test_what_rounding_decides_is_left_to_the_host(rng):
    D = rng.standard_normal((8, 6))
    D = np.hstack([D, D])  # ties
    _, left = coded(D, rng.standard_normal((5, 8)), np.full(5, 2), np.full(5, -1.0), torch.float64)
    np.testing.assert_array_equal(left, np.arange(5))
    D = D[:, :5] / np.linalg.norm(D[:, :5], axis=0)
    _, left = coded(D, 3.0 * D.T, np.full(5, 2), np.full(5, -1.0), torch.float64)  # one atom leaves rounding only
    np.testing.assert_array_equal(left, np.arange(5))


@pytest.mark.parametrize("method", ["omp", "ols", "mp"])
def test_codes_get_more_room_where_they_need_it(method, rng):
    D, Y = rng.standard_normal((10, 20)), rng.standard_normal((6, 10))
    tols = np.where(np.arange(6) % 2, 0.05, 0.9) * np.linalg.norm(Y, axis=1)
    rules = (np.full(6, 10), torch.int32), (tols, torch.float64)
    codes, left = pursuits.encode_pursuits(tensor(D, torch.float64), tensor(Y, torch.float64), method, 2, *rules)
    reference = ps.encode(D, Y, tol=tols, method=method, atoms=10)
    assert not len(left) and np.diff(reference.indptr).max() > 2
    np.testing.assert_allclose(codes.to_dense().cpu().numpy(), reference.toarray(), atol=1e-12)


WAYS = {"searches": (True, True), "searches without a Gram matrix": (True, False), "updates": (False, True)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("count", "d", "n", "k"), [
    (1, 1, 1, 1), (1, 7, 5, 5), (2, 513, 5, 3), (5, 7, 129, 1), (65, 130, 9, 1), (3, 7, 64, 1), (2, 768, 130, 2),
    (1, 1025, 1207, 2), (1, 2304, 40, 3), (1, 5, 4097, 3), (2, 40, 30, 20), (1, 34, 40, 33),
])  # fmt: skip
def test_odd_shapes_have_the_codes_of_the_host(way, count, d, n, k, rng, monkeypatch):
    monkeypatch.setattr(pursuits.Pursuit, "_plan", lambda *_: WAYS[way])
    D, Y = rng.standard_normal((d, n)), rng.standard_normal((count, d))
    compare(D, Y, np.full(count, k), np.full(count, -1.0), torch.float64)
    if k < d and (CUDA or count < 65):
        compare(D, Y, np.full(count, min(k, 3)), np.full(count, -1.0), torch.float32)


def test_without_signals_there_are_no_codes(monkeypatch):
    for name in ("pursuit.coding.is_on_device", "pursuit.coding.device.is_on_cuda"):
        monkeypatch.setattr(name, torch.is_tensor)
    codes = ps.encode(torch.ones(3, 4), torch.ones(0, 3), atoms=2)
    assert codes.shape == (0, 4) and not codes.values().numel()


@pytest.mark.parametrize("dtypes", [("float16", "float16"), ("bfloat16", "bfloat16"), ("float16", "float32")])
def test_short_numbers_are_coded_in_float32(dtypes, rng, monkeypatch):
    for name in ("pursuit.coding.is_on_device", "pursuit.coding.device.is_on_cuda"):
        monkeypatch.setattr(name, torch.is_tensor)
    D, Y = (
        torch.from_numpy(rng.standard_normal(s)).to(getattr(torch, t))
        for s, t in zip(((8, 20), (9, 8)), dtypes, strict=True)
    )
    codes = ps.encode(D, Y, atoms=3)
    assert codes.dtype == torch.float32
    expected = ps.encode(D.double().numpy(), Y.double().numpy(), atoms=3).toarray()
    np.testing.assert_allclose(codes.to_dense().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("d", [12, 1100])
def test_signals_must_be_finite(d, rng):
    Y = rng.standard_normal((4, d))
    for bad in (np.nan, np.inf):
        Y[2, 5] = bad
        with pytest.raises(ValueError, match="Y contains NaN or infinity"):
            coded(rng.standard_normal((d, 5)), Y, np.full(4, 2), np.full(4, -1.0), torch.float32)


def test_rows_of_the_host_take_their_places(rng):
    dense = rng.standard_normal((6, 5)) * (rng.random((6, 5)) < 0.5)
    places = np.array([1, 4])
    without = dense.copy()
    without[places] = 0.0
    csr = [tensors.to_device(sp.csr_array(a), torch.zeros(0)) for a in (without, dense[places])]
    found = tensors.with_rows(csr[0], torch.from_numpy(places), csr[1])
    np.testing.assert_array_equal(found.to_dense().numpy(), dense)


@pytest.mark.parametrize("options", [{"atoms": 3}, {"method": "lasso", "penalty": 2.0}, {"tol": 1.5}])
def test_gradients_through_codes_are_those_of_differences(options, rng, monkeypatch):
    monkeypatch.setattr(gradients, "TILE", 30)  # two signals at a time
    D, Y, towards = rng.standard_normal((6, 12)), rng.standard_normal((5, 6)), rng.standard_normal((5, 12))
    D2, Y2 = 1e-6 * rng.standard_normal(D.shape), 1e-6 * rng.standard_normal(Y.shape)
    before, after = (ps.encode(D + c * D2, Y + c * Y2, **options).toarray() for c in (-0.5, 0.5))
    given = [tensor(a, torch.float64).requires_grad_() for a in (D, Y)]
    codes = gradients.with_gradients(tensors.to_device(ps.encode(D, Y, **options), given[0]), *given)
    (codes.to_dense() * tensor(towards, torch.float64)).sum().backward()
    slope = sum(float((a.grad * tensor(b, torch.float64)).sum()) for a, b in zip(given, (D2, Y2), strict=True))
    assert slope == pytest.approx(float(((after - before) * towards).sum()), rel=1e-6)


@needs_cuda
def test_gradients_reach_tensors_of_the_device(rng):
    D, Y = (tensor(rng.standard_normal(s), torch.float64).requires_grad_() for s in ((6, 12), (5, 6)))
    ps.encode(D, Y, atoms=3).values().sum().backward()
    assert D.grad.any() and Y.grad.any()
    with pytest.raises(ValueError, match="give detached tensors"):
        ps.encode(D, Y, atoms=3, method="mp")


@needs_cuda
@pytest.mark.parametrize("options", [
    {"atoms": 3}, {"tol": 2.0}, {"atoms": 3, "method": "ols"}, {"atoms": 3, "method": "mp"},
    {"method": "lasso", "penalty": 0.5},
    {"atoms": 3, "weights": np.ones((25, 12))},
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_encode_takes_tensors_of_the_device(options, dtype, rng):
    D, Y = rng.standard_normal((12, 30)), rng.standard_normal((25, 12))
    D[:, 7] = D[:, 8]
    given = tensor(D, dtype), tensor(Y, dtype)
    if "weights" in options:
        options = options | {"weights": options["weights"].astype(str(dtype)[6:])}
    codes = ps.encode(*given, **options)
    assert codes.is_cuda and codes.layout == torch.sparse_csr and codes.dtype == dtype
    reference = ps.encode(*(a.cpu().numpy() for a in given), **options).toarray()
    np.testing.assert_allclose(codes.to_dense().cpu().numpy(), reference, atol=1e-4)


@needs_cuda
def test_bad_input_on_the_device_is_named(rng):
    D, Y = tensor(rng.standard_normal((12, 30)), torch.float32), tensor(rng.standard_normal((25, 12)), torch.float32)
    with pytest.raises(TypeError, match="give D and Y as tensors on one CUDA device"):
        ps.encode(D, Y.cpu(), atoms=2)
    with pytest.raises(ValueError, match="signals are rows of Y"):
        ps.encode(D, Y[:, :5], atoms=2)
    D[:, 4] = 0.0
    with pytest.raises(ValueError, match="column 4 of D is zero"):
        ps.encode(D, Y, atoms=2)


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_a_dictionary_with_a_column_that_is_zero_or_not_finite_is_left_to_the_host(bad, rng):
    D, Y = rng.standard_normal((8, 20)), rng.standard_normal((5, 8))
    D[:, 3] = bad
    rules = (np.array([3]), torch.int32), (np.array([-np.inf]), torch.float64)
    with np.errstate(all="ignore"):  # of the interpreter
        assert pursuits.encode_pursuits(tensor(D, torch.float64), tensor(Y, torch.float64), "omp", 3, *rules) is None


CONSTRAINED = {
    "nnomp": {"method": "nnomp", "atoms": 6},
    "nnomp to a tolerance": {"method": "nnomp", "tol": 1.5},
    "lasso": {"method": "lasso", "penalty": 2.0},
    "positive lasso": {"method": "lasso", "penalty": 1.0, "positive": True},
    "nnls": {"method": "nnls"},
}


@pytest.mark.parametrize("rule", CONSTRAINED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(8, 16), (14, 6)])
def test_codes_with_constraints_are_those_of_the_host(rule, dtype, shape, rng):
    options = CONSTRAINED[rule]
    D, Y = rng.standard_normal(shape) * 10.0 ** rng.uniform(-1, 1, shape[1]), rng.standard_normal((5, shape[0]))
    Y[3] = 0.0
    D, Y = tensor(D, dtype), tensor(Y, dtype)
    host = ps.encode(D.double().cpu().numpy(), Y.double().cpu().numpy(), **options).toarray()
    kernel = {"nnls": "positive_lasso"}.get(options["method"], options["method"])
    kernel = "positive_lasso" if options.get("positive") else kernel
    k = options.get("atoms", min(shape))
    rules = (np.full(5, k), torch.int32), (np.array([options.get("tol", -1.0)]), dtype)
    penalty = np.array([options.get("penalty", 0.0)]), torch.float64
    codes, left = pursuits.encode_pursuits(D, Y, kernel, k, *rules, penalty)
    found, rest = codes.to_dense().cpu().numpy(), np.setdiff1d(np.arange(5), left.cpu().numpy())
    assert codes.dtype == dtype and len(rest) >= 4
    if rule == "nnls" and shape == (8, 16):  # many x have the residual 0
        D, Y = D.double().cpu().numpy(), Y.double().cpu().numpy()
        residuals = [np.linalg.norm(Y - x @ D.T, axis=1)[rest] for x in (found, host)]
        assert (residuals[0] <= residuals[1] + 1e3 * torch.finfo(dtype).eps * np.linalg.norm(Y, axis=1)[rest]).all()
        assert (found >= 0).all()
    else:
        np.testing.assert_allclose(
            found[rest], host[rest], atol=(2e-6 if dtype == torch.float32 else 1e-12) * np.abs(host).max()
        )


@pytest.mark.parametrize(("limit", "count"), [(2, -1), (3, -2)])
def test_a_code_at_its_limit_asks_for_the_host_and_one_that_fills_its_room_for_more(limit, count):
    D, Y = np.array([[0.0, 2.0, 0.0, -2.0], [1.0, 3.0, -2.0, -4.0]]), np.array([[-7.0, -4.0]])
    rules = [tensor([limit], torch.int32), tensor([-1.0], torch.float64), tensor([0.5], torch.float64)]
    found = pursuits._solution(tensor(D, torch.float64), tensor(Y, torch.float64), "lasso", 2, rules)
    assert found.counts.tolist() == [count]


def test_codes_that_exchange_atoms_at_their_limit_are_found_on_the_host(rng, monkeypatch):
    for name in ("pursuit.coding.is_on_device", "pursuit.coding.device.is_on_cuda"):
        monkeypatch.setattr(name, torch.is_tensor)
    D, Y = np.array([[0.0, 2.0, 0.0, -2.0], [1.0, 3.0, -2.0, -4.0]]), np.array([[-7.0, -4.0], [0.1, 0.1]])
    options = {"method": "lasso", "penalty": 0.5}
    with pytest.warns(UserWarning, match="rounding decides the atoms of 1 of 2 signals"):
        codes = ps.encode(torch.from_numpy(D), torch.from_numpy(Y), **options)
    np.testing.assert_allclose(codes.to_dense().numpy(), ps.encode(D, Y, **options).toarray(), atol=1e-12)


@needs_cuda
@pytest.mark.parametrize("options", [{"atoms": 5}, {"method": "lasso", "penalty": 0.5, "gaps": True}], ids=str)
def test_codes_of_cupy_arrays_are_cupy_matrices_on_the_device(options, rng):
    cupy = pytest.importorskip("cupy")
    D, Y = rng.standard_normal((16, 40)), rng.standard_normal((30, 16))
    found, expected = (ps.encode(xp.asarray(D), xp.asarray(Y), **options) for xp in (cupy, np))
    if options.get("gaps"):
        (found, gaps), (expected, _) = found, expected
        assert isinstance(gaps, cupy.ndarray) and float(gaps.max()) < 1e-9
    assert isinstance(found.data, cupy.ndarray) and found.shape == (30, 40)
    np.testing.assert_allclose(found.toarray().get(), expected.toarray(), atol=1e-12)


@needs_cuda
@pytest.mark.parametrize("rule", CONSTRAINED)
def test_encode_finds_codes_with_constraints_on_the_device(rule, rng):
    D, Y = rng.standard_normal((24, 60)), rng.standard_normal((500, 24))
    found = ps.encode(tensor(D, torch.float64), tensor(Y, torch.float64), **CONSTRAINED[rule])
    expected = ps.encode(D, Y, **CONSTRAINED[rule])
    fits = [np.linalg.norm(Y - codes @ D.T, axis=1) for codes in (found.to_dense().cpu().numpy(), expected)]
    np.testing.assert_allclose(*fits, atol=1e-10)


TRAPS = {
    "whole numbers": lambda D, rng: np.rint(2 * D) + (np.arange(len(D)) == 0)[:, None],
    "equal columns": lambda D, rng: D[:, np.arange(D.shape[1]) // 2],
    "nearly equal columns": lambda D, rng: D[:, np.arange(D.shape[1]) // 2] + 1e-6 * D,
    "lengths from 1e-4 to 1e4": lambda D, rng: D * 10.0 ** rng.uniform(-4, 4, D.shape[1]),
    "nearly the same direction": lambda D, rng: D + 20.0,
    "low rank": lambda D, rng: D[:, :5] @ rng.standard_normal((5, D.shape[1])),
}


@needs_cuda
@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("rule", CONSTRAINED)
@pytest.mark.parametrize("scale", [2.0**-20, 1.0, 2.0**20])  # so that ties of whole numbers remain ties
def test_hard_dictionaries_have_the_minima_of_the_host(trap, rule, scale, rng):
    D, Y = TRAPS[trap](rng.standard_normal((12, 30)), rng), scale * np.rint(3 * rng.standard_normal((300, 12)))
    options = dict(CONSTRAINED[rule])
    for name in {"penalty", "tol"} & set(options):  # one per signal, some of them 0
        options[name] = scale * options[name] * rng.integers(0, 3, 300) * np.linalg.norm(D, axis=0).mean()
    if "atoms" in options:
        options["atoms"] = rng.integers(1, 8, 300)
    found = ps.encode(tensor(D, torch.float64), tensor(Y, torch.float64), **options).to_dense().cpu().numpy()
    expected = ps.encode(D, Y, **options).toarray()
    objectives = [
        0.5 * np.square(Y - x @ D.T).sum(axis=1) + options.get("penalty", 0.0) * np.abs(x).sum(axis=1)
        for x in (found, expected)
    ]
    assert (np.abs(np.subtract(*objectives)) <= 1e-9 * np.square(Y).sum(axis=1)).all()
    assert rule == "lasso" or (found >= 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {"atoms": 3}, {"atoms": np.arange(1, 6)}, {"tol": 0.5}, {"atoms": 10}, {"atoms": 3, "method": "mp"},
        {"method": "lasso", "penalty": 1.0}, {"method": "lasso", "penalty": 1.0, "gaps": True},
        {"method": "lasso", "penalty": np.linspace(1, 2, 5), "positive": True},
        {"atoms": 3, "weights": np.ones((5, 10))},
    ],
    ids=str,
)  # fmt: skip
def test_what_the_device_does_not_serve_goes_to_the_host(options, rng, monkeypatch):
    """Tensors of the host stand for those of a device where there is none."""
    for name in ("pursuit.coding.is_on_device", "pursuit.coding.device.is_on_cuda"):
        monkeypatch.setattr(name, torch.is_tensor)
    D, Y = rng.standard_normal((10, 24)), rng.standard_normal((5, 10))
    no_kernel = {"gaps", "weights"} & set(options)
    with pytest.warns(UserWarning, match="no kernel") if no_kernel else nullcontext():
        codes = ps.encode(torch.from_numpy(D), torch.from_numpy(Y), **options)
    expected = ps.encode(D, Y, **options)
    if options.get("gaps"):
        (codes, gaps), (expected, _) = codes, expected
        assert torch.is_tensor(gaps) and float(gaps.max()) < 1e-9
    np.testing.assert_allclose(codes.to_dense().numpy(), expected.toarray(), atol=1e-12)


@pytest.mark.parametrize("options", [{"gaps": True}, {"positive": "no"}, {"penalty": 1.0}, {"positive": True}], ids=str)
def test_arguments_for_tensors_are_checked_as_those_for_arrays(options, rng, monkeypatch):
    for name in ("pursuit.coding.is_on_device", "pursuit.coding.device.is_on_cuda"):
        monkeypatch.setattr(name, torch.is_tensor)
    D, Y = rng.standard_normal((16, 40)), rng.standard_normal((12, 16))
    messages = []
    for make in (torch.from_numpy, np.asarray):
        with pytest.raises((ValueError, TypeError)) as refused:
            ps.encode(make(D), make(Y), atoms=3, **options)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


@pytest.fixture
def on_device(monkeypatch):
    """Tensors of the host stand for those of a device where there is none, and are coded on the host."""
    names = (
        "coding.is_on_device",
        "coding.device.is_on_cuda",
        "dictionaries.is_on_cuda",
        "dictionaries.signals.is_on_cuda",
    )
    for name in () if CUDA else names:
        monkeypatch.setattr(f"pursuit.{name}", torch.is_tensor)
    if not CUDA:
        monkeypatch.setattr("pursuit.coding.device._served", lambda *_: False)  # the interpreter takes a second a batch


LEARNED = {
    "omp": {"code": {"atoms": 2}},
    "random start, nonnegative": {"start": "random", "nonnegative": True},
    "lasso": {"code": {"method": "lasso", "penalty": 1.0}},
    "each its own": {"code": {"atoms": 1 + np.arange(90) % 3}},
    "rare atoms": {"code": {"atoms": 1}, "start": np.eye(6, 14) + 0.5, "forgetting": 0.0, "sweeps": 4},
}


@pytest.mark.filterwarnings("ignore:rounding decides")
@pytest.mark.parametrize("options", LEARNED, ids=str)
def test_tensors_of_the_device_are_learned_from_there(options, rng, on_device):
    Y = rng.standard_normal((90, 6)) ** 3
    options = {"update": "online", "batch": 40, "sweeps": 2} | LEARNED[options]
    found, expected = ps.learn(tensor(Y, torch.float64), 14, **options), ps.learn(Y, 14, **options)
    assert found.dictionary.device.type == WHERE and torch.is_tensor(found.statistics.XX)
    np.testing.assert_allclose(found.dictionary.cpu().numpy(), expected.dictionary, atol=1e-9)
    np.testing.assert_allclose(found.codes.to_dense().cpu().numpy(), expected.codes.toarray(), atol=1e-9)
    for name in ("objective", "error", "used"):
        np.testing.assert_allclose(getattr(found.trace, name), getattr(expected.trace, name), rtol=1e-9)


def test_batches_on_the_device_and_a_run_that_goes_on(rng, on_device):
    Y = rng.standard_normal((90, 6))
    parts = [[make(part) for part in np.split(Y, 3)] for make in (lambda a: tensor(a, torch.float64), np.asarray)]
    found, expected = (ps.learn(loader, 8, sweeps=2) for loader in parts)
    np.testing.assert_allclose(found.dictionary.cpu().numpy(), expected.dictionary, atol=1e-9)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(tensor(Y, torch.float64)), 30)
    again, whole = ps.learn(parts[0], 8, start=found, sweeps=1), ps.learn(loader, 8, sweeps=3)
    assert torch.equal(again.dictionary, whole.dictionary) and again.codes is None
    with pytest.raises(TypeError, match="give start=learned"):
        ps.learn(parts[0], 8, start=expected)


@pytest.mark.parametrize(("options", "message"), [
    ({"update": "ksvd"}, 'give "online"'), ({"weights": 1.0}, "Y.cpu()"), ({"batch": 0}, "batch is 0"),
])  # fmt: skip
def test_what_cannot_be_learned_on_the_device_is_named(options, message, rng, on_device):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        ps.learn(tensor(rng.standard_normal((20, 4)), torch.bfloat16), 3, **options)


def test_short_numbers_are_learned_from_in_float32(rng, on_device):
    learned = ps.learn(tensor(rng.standard_normal((20, 4)), torch.bfloat16), 3, sweeps=1)
    assert learned.dictionary.dtype == learned.codes.dtype == torch.float32


GRADIENTS = {"omp": {"atoms": 2}, "lasso": {"method": "lasso", "penalty": 0.3}}


@pytest.mark.parametrize("options", GRADIENTS.values(), ids=list(GRADIENTS))
def test_gradients_through_encode_pass_the_check_of_torch(options, rng, on_device):
    given = [tensor(rng.standard_normal(shape), torch.float64).requires_grad_() for shape in ((4, 6), (3, 4))]
    assert torch.autograd.gradcheck(lambda D, Y: ps.encode(D, Y, **options).to_dense(), given)
    with torch.no_grad():
        assert not ps.encode(*given, **options).values().requires_grad


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which the compiler asks for
def test_a_compiled_function_calls_encode_as_it_is(rng, on_device):
    D, Y = (tensor(rng.standard_normal(shape), torch.float64).requires_grad_() for shape in ((4, 6), (3, 4)))

    def loss(D, Y):
        return (Y.sin() - ps.encode(D, Y.sin(), atoms=2).to_dense() @ D.T).square().sum()

    slopes = []
    for function in (loss, torch.compile(loss, backend="eager")):
        function(D, Y).backward()
        slopes.append(torch.cat([D.grad.ravel(), Y.grad.ravel()]))
        D.grad = Y.grad = None
    assert slopes[0].any() and torch.equal(*slopes)


class Transfers(TorchFunctionMode):
    """Counts the calls that bring numbers of a tensor to the host."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        names = "__float__", "__int__", "__bool__", "__index__", "item", "tolist", "cpu"
        self.count += getattr(function, "__name__", "") in names
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(("hull", "update", "most"), [
    (True, ps.Plain(ps.LineSearch()), 7.5), (False, ps.FullyCorrective(), 8.0),
])  # fmt: skip
def test_an_iteration_brings_few_numbers_to_the_host(hull, update, most, rng):
    """The value, <g, x>, the place and value of the largest product, <g, a> twice, norms and slopes together, <d, d>,
    and whether an atom of equal source is equal; of OMP two rows of products instead of the last two."""
    f, A = ps.LeastSquares(tensor(rng.standard_normal(50), torch.float64)), rng.standard_normal((50, 200))
    A = ps.Dictionary(tensor(A, torch.float64), signed=True)
    counts, iterations = [], []
    for limit in (10, 30):
        with Transfers() as transfers:
            stop = ps.Stop(iterations=limit, rgap=1e-30)
            iterations.append(ps.minimize(f, ps.conv(3 * A) if hull else ps.lin(A), update, stop=stop).iterations)
        counts.append(transfers.count)
    assert counts[0] and (counts[1] - counts[0]) / (iterations[1] - iterations[0]) <= most
