"""OMP of many signals on a CUDA device, beside orthogonal-matching-pursuit-gpu (PyPI), taking turns in one run; codes
with constraints beside the cores of its host; and `minimize` beside the bare products.

    python benchmarks/gpu.py

Prints a table: median milliseconds of `encode` and of the other package (where it is installed), how many times as fast
ours is, how many signals have the atoms that float64 in full precision chooses, the share that was left to the host,
and the memory beside D and Y. Signals are combinations of k atoms, with noise of a twentieth of their norm.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import pursuit as ps
from pursuit.gpu.pursuits import Pursuit, encode_pursuits

try:
    from orthogonal_matching_pursuit_gpu import run_omp
except ImportError:
    run_omp = None

ROWS = [
    (5_000, 256, 1024, 32), (5_000, 512, 2048, 64), (1_200, 8064, 1207, 30), (200_000, 64, 256, 10),
    (200_000, 256, 1024, 20), (1_000_000, 256, 1024, 20),
]  # fmt: skip
PEER_LIMIT = 500_000
"""Signals up to which the other package is tried: it needs the memory of all correlations."""


def problem(signals: int, d: int, n: int, k: int) -> tuple[Any, Any]:
    torch.manual_seed(0)
    D = torch.nn.functional.normalize(torch.randn(d, n, device="cuda", dtype=torch.float64), dim=0)
    parts = []
    for size in torch.arange(signals).split(50_000):
        atoms = torch.rand(len(size), n, device="cuda").topk(k, 1).indices
        x = torch.randn(len(size), k, device="cuda", dtype=torch.float64)
        clean = torch.zeros(len(size), n, device="cuda", dtype=torch.float64).scatter_(1, atoms, x) @ D.T
        noise = torch.randn_like(clean) / d**0.5
        parts.append(clean + 0.05 * clean.norm(dim=1, keepdim=True) * noise)
    return D, torch.cat(parts)


def milliseconds(calls: list[Callable[[], Any]], repeats: int = 7) -> list[float]:
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(repeats + 1):  # the first compiles
        for call, own in zip(calls, times, strict=True):
            torch.cuda.synchronize()
            began = time.perf_counter()
            call()
            torch.cuda.synchronize()
            if turn:
                own.append(1e3 * (time.perf_counter() - began))
    return [statistics.median(own) for own in times]


def constrained_rows() -> None:
    """Codes with constraints or a penalty, of random signals of norm 1, beside `encode` on all cores of the host."""
    print("| signals, dictionary, float64 | method | atoms | device, ms | host, ms | objectives differ by |")
    print("|---|---|---|---|---|---|")
    methods: list[dict[str, Any]] = [
        {"method": "lasso", "penalty": 0.15}, {"method": "lasso", "penalty": 0.15, "positive": True},
        {"method": "nnls"}, {"method": "nnomp", "atoms": 10},
    ]  # fmt: skip
    for signals, d, n in ((20_000, 64, 256), (200_000, 256, 1024)):
        torch.manual_seed(0)
        D = torch.nn.functional.normalize(torch.randn(d, n, device="cuda", dtype=torch.float64), dim=0)
        Y = torch.nn.functional.normalize(torch.randn(signals, d, device="cuda", dtype=torch.float64), dim=1)
        host_D, host_Y = D.cpu().numpy(), Y.cpu().numpy()
        for options in methods:
            if options["method"] == "nnls" and n > 256:
                continue  # codes have more atoms than the device serves: the host finds them
            codes = ps.encode(D, Y, **options)
            calls = [partial(ps.encode, D, Y, **options), partial(ps.encode, host_D, host_Y, **options)]
            ours, host = milliseconds(calls, 3)
            lam = options.get("penalty", 0.0)
            found, other = codes.to_dense()[:20_000], torch.from_numpy(calls[1]()[:20_000].toarray()).cuda()
            values = [0.5 * (Y[:20_000] - x @ D.T).square().sum(1) + lam * x.abs().sum(1) for x in (found, other)]
            name = " ".join(f"{key}={value}" for key, value in options.items() if key != "method")
            print(
                f"| {signals:,}, {d} x {n} | {options['method']} {name} | {codes.values().numel() / signals:.1f} | "
                f"{ours:.1f} | {host:.0f} | {float((values[0] - values[1]).abs().max()):.0e} |",
                flush=True,
            )
    print()


def minimize_rows() -> None:
    """`minimize` beside the products of the dictionary with a vector that it cannot do without."""
    print("| minimize, float32 | iterations | ms | products, ms | ms an iteration beyond its product |")
    print("|---|---|---|---|---|")
    for name, d, n in (("OMP, 100 atoms", 4000, 200_000), ("L1 ball", 4000, 200_000), ("Frank-Wolfe", 2000, 10_000)):
        torch.manual_seed(0)
        X = torch.randn(d, n, device="cuda")
        y = X[:, :20] @ torch.randn(20, device="cuda") + torch.randn(d, device="cuda")
        f, A = ps.LeastSquares(y), ps.Dictionary(X, signed=True)
        call = {
            "OMP, 100 atoms": lambda f=f, A=A: ps.minimize(f, ps.lin(A), ps.FullyCorrective(), stop=ps.Stop(atoms=100)),
            "L1 ball": lambda f=f, A=A: ps.minimize(f, ps.conv(10 * A)),
            "Frank-Wolfe": lambda f=f, A=A: ps.minimize(
                f, ps.conv(10 * A), ps.Plain(ps.LineSearch()), stop=ps.Stop(iterations=200)
            ),
        }[name]
        count = call().iterations + 1
        ours, product = milliseconds([call, lambda X=X, y=y: X.T @ y], 3)
        beyond = (ours - count * product) / count
        print(f"| {name}, {d} x {n:,} | {count} | {ours:.1f} | {count * product:.1f} | {beyond:.2f} |", flush=True)


def main() -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| signals, dictionary, atoms | dtype | pursuit, ms | other, ms | times as fast | same atoms | host | MB |")
    print("|---|---|---|---|---|---|---|---|")
    for signals, d, n, k in ROWS:
        exact_D, exact_Y = problem(signals, d, n, k)
        for dtype in (torch.float32, torch.float64):
            D, Y = exact_D.to(dtype), exact_Y.to(dtype)
            limits = torch.full((signals,), k, device="cuda", dtype=torch.int32)
            none = torch.full((signals,), -1.0, device="cuda", dtype=dtype)
            codes = ps.encode(D, Y, atoms=k)
            chosen, same = codes.col_indices().view(signals, k), []
            left = len(encode_pursuits(Pursuit(D, "omp", k), Y, limits, none)[1])
            reference = Pursuit(D.double(), "omp", k)
            for part in torch.arange(signals, device="cuda").split(50_000):
                found = reference.update(Y[part].double(), limits[part], none[part].double())
                same.append((found.atoms.sort(dim=1).values == chosen[part]).all(1) | (found.counts < 0))
            del codes, chosen, reference, found
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            ps.encode(D, Y, atoms=k)
            megabytes = (torch.cuda.max_memory_allocated() - before) / 1e6
            calls: list[Callable[[], Any]] = [lambda D=D, Y=Y, k=k: ps.encode(D, Y, atoms=k)]
            if run_omp is not None and signals <= PEER_LIMIT:
                calls.append(lambda D=D, Y=Y, k=k: run_omp(D, Y, k, normalize=False, fit_intercept=False))
            ours, *other = milliseconds(calls)
            beside = f"{other[0]:.1f} | {other[0] / ours:.1f}" if other else "- | -"
            share = float(torch.cat(same).float().mean())
            print(
                f"| {signals:,}, {d} x {n}, {k} | {str(dtype)[6:]} | {ours:.1f} | {beside} | "
                f"{100 * share:.4f} % | {left / signals:.1e} | {megabytes:.0f} |",
                flush=True,
            )
    print()
    constrained_rows()
    minimize_rows()


if __name__ == "__main__":
    main()
