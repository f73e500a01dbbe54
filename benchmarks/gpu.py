"""A CUDA device: OMP of many signals beside orthogonal-matching-pursuit-gpu (PyPI) and a loop of torch as users write,
taking turns; random shapes beside the host; dictionaries that are learned; `minimize` beside its products; training.

    python benchmarks/gpu.py          # OUT=folder: also writes folder/GPU.md, a row at a time
    python benchmarks/gpu.py --tiny   # small shapes; without a device in Triton's interpreter

Sections come in the order of their importance, each with a limit in seconds; a row that fails says why, and the others
follow. Kernels of all shapes are compiled beforehand, by as many processes as there are cores.
"""

from __future__ import annotations

import faulthandler
import math
import os
import random as random_module
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import autoencoder
import numpy as np
import torch

import pursuit as ps
import pursuit.coding.device
import pursuit.dictionaries.signals
from pursuit.native import is_built

try:
    from orthogonal_matching_pursuit_gpu import run_omp
except ImportError:
    run_omp = None

TINY, CUDA = "--tiny" in sys.argv, torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
if not CUDA:  # tensors of the host stand for those of a device
    os.environ["TRITON_INTERPRET"] = "1"  # read where kernels are defined
    pursuit.coding.is_on_device = torch.is_tensor  # type: ignore[assignment]
    for module in (pursuit.coding.device, pursuit.dictionaries, pursuit.dictionaries.signals):
        module.is_on_cuda = torch.is_tensor  # type: ignore[attr-defined]
PUBLISHED = [
    (5_000, 256, 1024, 32), (5_000, 512, 2048, 64), (1_200, 8064, 1207, 30), (200_000, 64, 256, 10),
    (200_000, 256, 1024, 20), (1_000_000, 256, 1024, 20),
]  # fmt: skip
LARGE = [(8_192, 768, 8192, 32), (2_000, 2304, 16384, 32), (4_096, 4096, 32768, 32), (65_536, 128, 4096, 32)]
SMALL = [(1, 256, 1024, 20), (100, 256, 1024, 20)]
LEARN, MINIMIZE, TRAIN = (1_000_000, 64, 256), ((4000, 200_000), (2000, 10_000)), (768, 8192, 32, 8192, 40)
RANDOM, TOPS = 60, (12.5, 14.5, 16)
if TINY:
    PUBLISHED, LARGE, SMALL, RANDOM, TOPS = [(3, 8, 20, 2)], [(2, 300, 10, 2)], [(1, 8, 20, 2)], 2, (4, 5, 2)
    LEARN, MINIMIZE, TRAIN = (20, 4, 6), ((20, 60), (20, 60)), (4, 8, 2, 3, 4)
MOST_NUMBERS = 4e10
"""Bytes of active atoms up to which the loop is tried."""
LIMIT = 235
"""Seconds of the whole run."""


def problem(signals: int, d: int, n: int, k: int) -> tuple[Any, Any]:
    """Combinations of k atoms with noise of a twentieth of their norm."""
    D = torch.nn.functional.normalize(torch.randn(d, n, device=DEVICE), dim=0)
    parts = []
    for size in torch.arange(signals).split(max(1, 2**29 // n)):
        atoms = torch.rand(len(size), n, device=DEVICE).topk(k, 1).indices
        x = torch.randn(len(size), k, device=DEVICE)
        clean = torch.zeros(len(size), n, device=DEVICE).scatter_(1, atoms, x) @ D.T
        parts.append(clean + 0.05 / d**0.5 * clean.norm(dim=1, keepdim=True) * torch.randn_like(clean))
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


def same_atoms(D: Any, Y: Any, k: int, compared: int = 50) -> float:
    """The share of the first signals whose atoms are those of the host in float64, or of the loop without the host."""
    Y = Y[:compared]
    found = ps.encode(D, Y, atoms=k).col_indices().view(-1, k).cpu()
    if is_built():
        exact = ps.encode(D.double().cpu().numpy(), Y.double().cpu().numpy(), atoms=k, n_jobs=torch.get_num_threads())
        reference = torch.from_numpy(exact.indices.reshape(-1, k).astype(np.int64))
    else:
        reference = loop(D.double(), Y.double(), k).sort(1)[0].cpu()
    return float((reference == found).all(1).double().mean())


def synchronize() -> None:
    if CUDA:
        torch.cuda.synchronize()


def milliseconds(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Medians, the calls taking turns."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(repeats + 1):  # the first prepares
        for call, own in zip(calls, times, strict=True):
            synchronize()
            began = time.perf_counter()
            call()
            synchronize()
            if turn:
                own.append(1e3 * (time.perf_counter() - began))
    return [statistics.median(own) for own in times]


def searches_alone(call: Callable[[], Any]) -> str:
    """Milliseconds of the kernels that search."""
    if not CUDA:
        return "-"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        call()
        synchronize()
    from pursuit.gpu import kernels

    names = (kernels.search.__name__, kernels.search_short.__name__)
    return f"{sum(e.device_time_total for e in seen.key_averages() if e.key in names) / 1e3:.2f}"


def pursuit_row(shape: tuple[int, int, int, int], dtype: Any = torch.float32) -> str:
    torch.manual_seed(0)
    signals, d, n, k = shape
    D, Y = (a.to(dtype) for a in problem(*shape))
    ours = partial(ps.encode, D, Y, atoms=k)
    others: dict[str, Callable[[], Any]] = {}
    if dtype != torch.bfloat16 and signals <= 500_000:
        if run_omp is not None:
            others["peer"] = partial(run_omp, D, Y, k, normalize=False, fit_intercept=False)
        if signals * k * d * D.element_size() < MOST_NUMBERS:
            others["loop"] = partial(loop, D, Y, k)
    for _ in range(2):
        ours()
    megabytes = 0.0
    if CUDA:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        ours()
        megabytes = (torch.cuda.max_memory_allocated() - before) / 1e6
    ms, *slower = milliseconds([ours, *others.values()], 3 if signals * n > 3e7 else 7)
    beside = dict(zip(others, (f"{other:.1f}" for other in slower), strict=True))
    times = f"{min(slower) / ms:.1f}" if others else "-"
    same = same_atoms(*((a.float() if dtype == torch.bfloat16 else a) for a in (D, Y)), k)
    return (
        f"| {signals:,}, {d} x {n}, {k} | {str(dtype)[6:]} | {ms:.2f} | {beside.get('peer', '-')} | "
        f"{beside.get('loop', '-')} | {times} | {searches_alone(ours)} | {100 * same:.1f} % | {megabytes:.0f} |"
    )


def small_row(shape: tuple[int, int, int, int]) -> str:
    """A call after the other, and calls between those of the loop, which find nothing in the caches of the host."""
    torch.manual_seed(0)
    signals, d, n, k = shape
    D, Y = problem(*shape)
    ours, calls = partial(ps.encode, D, Y, atoms=k), 5 if TINY else 200
    [alone] = milliseconds([ours], calls)
    between, others = milliseconds([ours, partial(loop, D, Y, k)], calls // 5)
    same = 100 * same_atoms(D, Y, k)
    return f"| {signals:,}, {d} x {n}, {k} | {alone:.2f} | {between:.2f} | {others:.1f} | {same:.1f} % |"


def random_shape(i: int) -> tuple[tuple[int, int, int, int], Any]:
    random = random_module.Random(i)
    d, n = (int(2 ** random.uniform(1, top)) for top in TOPS[:2])  # of one entry, all atoms are equally good
    signals = int(2 ** random.uniform(0, min(TOPS[2], 30 - math.log2(n))))
    return (signals, d, n, random.randint(1, max(1, min(d, n, 40) // 2))), random.choice([torch.float32, torch.float64])


def random_row(i: int) -> str:
    """Whether the codes of a random shape are those of the host, and none was left to it."""
    (signals, d, n, k), dtype = random_shape(i)
    torch.manual_seed(i)
    torch.set_num_threads(1)
    D, Y = (a.to(dtype) for a in problem(signals, d, n, k))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            ps.encode(D, Y, atoms=k)
            share = same_atoms(D, Y, k, 20)
        except Exception as problem_:  # what happened is the row
            return f"| {signals:,}, {d} x {n}, {k} | {str(dtype)[6:]} | {type(problem_).__name__}: {problem_} |"
    return f"| {signals:,}, {d} x {n}, {k} | {str(dtype)[6:]} | {100 * share:.1f} % |"


def learn_rows(signals: int, d: int, n: int) -> Iterable[str]:
    """Dictionaries of random patches: of smooth noise, so that some directions matter more."""
    torch.manual_seed(0)
    Y = torch.cumsum(torch.randn(signals, d, device=DEVICE), 1)
    Y -= Y.mean(1, keepdim=True)
    host, code = Y.cpu().numpy(), {"atoms": max(1, d // 12)}
    ps.learn(Y[: signals // 4], n, code=code, sweeps=1)  # prepares
    tries = [(Y, None, 1), (Y, None, 10), (Y, 8192, 2)] + [(host, None, 1), (host, 65_536, 1)] * is_built()
    for given, batch, sweeps in tries:
        synchronize()
        began = time.perf_counter()
        learned = ps.learn(given, n, code=code, sweeps=sweeps, batch=batch, update="online")
        synchronize()
        spent = time.perf_counter() - began
        R = given - learned.codes @ learned.dictionary.T
        error = float((R**2).sum() / (given**2).sum()) ** 0.5
        where = f"{'host' if given is host else 'device'} | {batch or 'default'}"
        yield f"| {signals:,} x {d}, {n} atoms | {where} | {sweeps} | {spent:.2f} | {error:.4f} |"


def minimize_row(name: str, d: int, n: int, update: Any, stop: Any, hull: bool) -> str:
    torch.manual_seed(0)
    X = torch.randn(d, n, device=DEVICE)
    y = X[:, :20] @ torch.randn(20, device=DEVICE) + torch.randn(d, device=DEVICE)
    f, A = ps.LeastSquares(y), ps.Dictionary(X, signed=True)
    call = partial(ps.minimize, f, ps.conv(10 * A) if hull else ps.lin(A), update, stop=stop)
    count = call().iterations + 1
    ours, product = milliseconds([call, lambda: X.T @ y], 3)
    beyond = (ours - count * product) / count
    return f"| {name}, {d} x {n:,} | {count} | {ours:.1f} | {count * product:.1f} | {beyond:.2f} |"


def constrained_row(signals: int, d: int, n: int, options: dict[str, Any]) -> str:
    """Random signals of norm 1."""
    torch.manual_seed(0)
    D = torch.nn.functional.normalize(torch.randn(d, n, device=DEVICE, dtype=torch.float64), dim=0)
    Y = torch.nn.functional.normalize(torch.randn(signals, d, device=DEVICE, dtype=torch.float64), dim=1)
    calls = [partial(ps.encode, D, Y, **options)]
    calls += [partial(ps.encode, D.cpu().numpy(), Y.cpu().numpy(), **options)] * is_built()
    ms = " | ".join(f"{each:.1f}" for each in milliseconds(calls, 3))
    return f"| {signals:,}, {d} x {n} | {options} | {calls[0]().values().numel() / signals:.1f} | {ms} |"


class Report:
    """Lines on the screen and in a file, each as soon as it is known."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        folder = os.environ.get("OUT")
        self.file = None if folder is None else (Path(folder) / "GPU.md").open("w", encoding="utf-8")

    def write(self, line: str) -> None:
        print(line, flush=True)
        if self.file is not None:
            self.file.write(line + "\n")
            self.file.flush()

    def section(self, seconds: float, head: str, rows: Iterable[Callable[[], Any]]) -> None:
        """The rows that fit into the seconds."""
        began = time.perf_counter()
        self.write(f"\n{head}\n" + "|".join(["", *["---"] * (head.splitlines()[-1].count("|") - 1), ""]))
        for row in rows:
            spent = time.perf_counter() - began
            if spent > seconds or time.perf_counter() - self.began > LIMIT - 5:
                self.write(f"| out of time: {spent:.0f} s |")
                return
            try:
                found = row()
                for line in [found] if isinstance(found, str) else found:
                    self.write(line)
            except Exception as problem_:  # what happened is the row
                self.write(f"| {type(problem_).__name__}: {' '.join(str(problem_).split())[:200]} |")
            if CUDA:
                torch.cuda.empty_cache()


def compile_kernels(shape: tuple[int, int, int, int]) -> None:
    """Fill Triton's folder of compiled kernels; how atoms are found depends on the number of signals, too."""
    D, Y = problem(min(shape[0], 200_000), *shape[1:])
    for some in (Y, Y[:50]):
        ps.encode(D, some, atoms=shape[-1])
    if CUDA:
        torch.cuda.empty_cache()


def main() -> None:
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    report = Report()
    name = torch.cuda.get_device_name() if CUDA else "Triton's interpreter"
    report.write(f"{name}, torch {torch.__version__}, {os.cpu_count()} cores, kernels of the host: {is_built()}")
    omp = "| signals, dictionary, atoms | dtype | ms | peer | loop | times | searches | same atoms | MB |"
    shapes = [*PUBLISHED, *LARGE, *SMALL]
    pool = ProcessPoolExecutor(2 if TINY else min(14, os.cpu_count() or 1), mp_context=get_context("spawn"))
    problems = [done.exception() for done in [pool.submit(compile_kernels, shape) for shape in shapes]]
    spent = time.perf_counter() - report.began
    report.write(f"{len(shapes)} shapes compiled in {spent:.1f} s; {list(filter(None, problems)) or 'all of them'}")
    few = "| signals, dictionary, atoms | ms, call after call | ms, between calls of the loop | loop | same atoms |"
    report.section(15, few, [partial(small_row, shape) for shape in SMALL])  # before any profile, which slows launches
    report.section(35, omp, [partial(pursuit_row, shape) for shape in PUBLISHED])
    report.section(45, omp, [partial(pursuit_row, shape) for shape in LARGE])
    found = [pool.submit(random_row, i) for i in range(RANDOM)]
    report.section(60, "| random shape | dtype | signals with the atoms of the host |", [
        partial(each.result, timeout=20) for each in found
    ])  # fmt: skip
    pool.shutdown(wait=False, cancel_futures=True)
    report.section(30, "| learn | where | batch | sweeps | s | error |", [partial(learn_rows, *LEARN)])
    atoms, steps, hundred = ps.FullyCorrective(), ps.Plain(ps.LineSearch()), 3 if TINY else 100
    report.section(15, "| minimize, float32 | iterations | ms | products, ms | ms an iteration beyond its product |", [
        partial(minimize_row, f"OMP, {hundred} atoms", *MINIMIZE[0], atoms, ps.Stop(atoms=hundred), False),
        partial(minimize_row, "Frank-Wolfe", *MINIMIZE[1], steps, ps.Stop(iterations=2 * hundred), True),
        partial(minimize_row, "L1 ball", *MINIMIZE[0], None, ps.Stop(), True),
    ])  # fmt: skip
    report.section(15, "| autoencoder | batch, dictionary, atoms | ms a step | energy lost |", [
        partial(autoencoder.rows, *TRAIN, DEVICE)
    ])  # fmt: skip
    kinds = [(shape, dtype) for shape in [*PUBLISHED[:5], *SMALL] for dtype in (torch.float64, torch.bfloat16)]
    report.section(20, omp, [partial(pursuit_row, *kind) for kind in kinds])
    lasso: list[dict[str, Any]] = [{"method": "lasso", "penalty": 0.15}, {"method": "nnomp", "atoms": 10}]
    report.section(15, "| signals, dictionary, float64 | codes | atoms | device, ms | host, ms |", [
        partial(constrained_row, *(PUBLISHED[0][:3] if TINY else (200_000, 256, 1024)), options) for options in lasso
    ])  # fmt: skip
    report.write(f"\n{time.perf_counter() - report.began:.0f} s in all")


if __name__ == "__main__":
    main()
