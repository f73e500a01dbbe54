"""OMP of many signals on a CUDA device, beside orthogonal-matching-pursuit-gpu (PyPI) and a loop of torch as users
write it, taking turns in one run; random shapes beside the loop in float64; codes with constraints beside the cores of
its host; and `minimize` beside the bare products.

    python benchmarks/gpu.py

Prints tables: median milliseconds of `encode` and of the others, how many times as fast ours is, the milliseconds of
the searches alone, how many signals (of the first 200) have the atoms that the loop finds in float64, and the memory
beside D and Y. Signals are combinations of k atoms, with noise of a twentieth of their norm.
"""

from __future__ import annotations

import math
import random as random_module
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

import pursuit as ps
from pursuit.gpu import kernels

try:
    from orthogonal_matching_pursuit_gpu import run_omp
except ImportError:
    run_omp = None

ROWS = [
    (1, 256, 1024, 20), (100, 256, 1024, 20), (5_000, 256, 1024, 32), (5_000, 512, 2048, 64), (1_200, 8064, 1207, 30),
    (200_000, 64, 256, 10), (200_000, 256, 1024, 20), (1_000_000, 256, 1024, 20), (8_192, 768, 8192, 32),
    (2_000, 2304, 16384, 32), (4_096, 4096, 32768, 32), (65_536, 128, 4096, 32),
]  # fmt: skip
MOST_NUMBERS = 4e10
"""Bytes of active atoms, or of correlations, up to which the others are tried."""


def problem(signals: int, d: int, n: int, k: int) -> tuple[Any, Any]:
    D = torch.nn.functional.normalize(torch.randn(d, n, device="cuda"), dim=0)
    parts = []
    for size in torch.arange(signals).split(max(1, 2**29 // n)):
        atoms = torch.rand(len(size), n, device="cuda").topk(k, 1).indices
        x = torch.randn(len(size), k, device="cuda")
        clean = torch.zeros(len(size), n, device="cuda").scatter_(1, atoms, x) @ D.T
        noise = torch.randn_like(clean) / d**0.5
        parts.append(clean + 0.05 * clean.norm(dim=1, keepdim=True) * noise)
    return D, torch.cat(parts)


def loop(D: Any, Y: Any, k: int) -> Any:
    """The atoms of each signal, as a few lines of torch find them."""
    R, atoms = Y, torch.empty(len(Y), 0, device=Y.device, dtype=torch.long)
    for _ in range(k):
        atoms = torch.cat([atoms, (R @ D).abs().argmax(1, keepdim=True)], 1)
        A = D.T[atoms]
        x = torch.cholesky_solve(A @ Y[:, :, None], torch.linalg.cholesky(A @ A.mT))
        R = Y - (A.mT @ x)[:, :, 0]
    return atoms


def same_atoms(D: Any, Y: Any, k: int) -> float:
    """The share of some signals whose atoms are those of the loop in float64."""
    found = ps.encode(D, Y[:200], atoms=k).col_indices().view(-1, k)
    return float((loop(D.double(), Y[:200].double(), k).sort(1)[0] == found).all(1).float().mean())


def searches_alone(D: Any, Y: Any, k: int) -> float:
    """Milliseconds of the kernels that search; NaN where none does."""
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        ps.encode(D, Y, atoms=k)
        torch.cuda.synchronize()
    names = (kernels.search.__name__, kernels.search_short.__name__)
    return sum(e.device_time_total for e in seen.key_averages() if e.key in names) / 1e3


def pursuit_rows() -> None:
    print("| signals, dictionary, atoms | dtype | ms | peer | loop | times | searches | same atoms | MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for signals, d, n, k in ROWS:
        torch.manual_seed(0)
        exact_D, exact_Y = problem(signals, d, n, k)
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            if dtype != torch.float32 and n * signals > 3e8:
                continue
            D, Y = exact_D.to(dtype), exact_Y.to(dtype)
            for _ in range(3):
                ps.encode(D, Y, atoms=k)
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            ps.encode(D, Y, atoms=k)
            megabytes = (torch.cuda.max_memory_allocated() - before) / 1e6
            calls: list[Callable[[], Any]] = [partial(ps.encode, D, Y, atoms=k)]
            if dtype != torch.bfloat16 and signals <= 500_000:
                if run_omp is not None:
                    calls.append(partial(run_omp, D, Y, k, normalize=False, fit_intercept=False))
                if signals * k * d * D.element_size() < MOST_NUMBERS:
                    calls.append(partial(loop, D, Y, k))
            torch.cuda.empty_cache()
            ours, *others = milliseconds(calls, 5 if signals * n < 3e7 else 3)
            beside = " | ".join([f"{other:.1f}" for other in others] + ["-"] * (2 - len(others)))
            times = f"{min(others) / ours:.1f}" if others else "-"
            same = same_atoms(*((a.float() if dtype == torch.bfloat16 else a) for a in (D, Y)), k)
            print(
                f"| {signals:,}, {d} x {n}, {k} | {str(dtype)[6:]} | {ours:.2f} | {beside} | {times} | "
                f"{searches_alone(D, Y, k):.2f} | {100 * same:.1f} % | {megabytes:.0f} |",
                flush=True,
            )
            torch.cuda.empty_cache()
    print()


def random_rows(count: int = 60) -> None:
    """Shapes drawn at random: whether the codes are those of the loop, and whether any signal went to the host."""
    random, wrong, worst = random_module.Random(1), [], 1.0
    for _ in range(count):
        d, n = (int(2 ** random.uniform(0, top)) for top in (12.5, 14.5))
        k = random.randint(1, max(1, min(d, n, 40) // 2))
        signals = int(2 ** random.uniform(0, min(16, 31 - math.log2(n))))
        dtype = random.choice([torch.float32, torch.float64])
        D, Y = (a.to(dtype) for a in problem(signals, d, n, k))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                share = same_atoms(D, Y, k) if d > 1 else 1.0
                ps.encode(D, Y, atoms=k)
            except Exception as problem_:
                wrong.append(f"{signals}, {d} x {n}, {k}, {dtype}: {type(problem_).__name__}: {str(problem_)[:100]}")
                continue
        worst = min(worst, share)
        if share < 0.97:
            wrong.append(f"{signals}, {d} x {n}, {k}, {dtype}: {share:.3f} of the signals")
    print(f"{count} random shapes: {count - len(wrong)} right (the least share of equal signals is {worst:.3f})")
    print("\n".join(wrong), "\n", flush=True)


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
    random_rows()
    pursuit_rows()
    minimize_rows()
    constrained_rows()


if __name__ == "__main__":
    main()
