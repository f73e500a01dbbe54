"""Dictionaries and signals on two worker processes of one core each, and more data than memory.

    python benchmarks/cluster.py [answers] [kills] [codes] [memory] [model]

Prints the figures of `benchmarks/CLUSTER.md`, all parts or those that are named. Times are medians of runs that take
turns. It takes 6 GB of memory, and 7 GB of disk in the folder of temporary files. Needs pursuit[cluster,files].
"""

from __future__ import annotations

import contextlib
import filecmp
import logging
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import pursuit as ps
from pursuit.cluster.workers import WorkerValues

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
ROUNDS = 5
FEATURES, ATOMS = 2000, 200_000


@contextlib.contextmanager
def cluster(**options: Any) -> Iterator[Client]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50} | options
    with LocalCluster(**options) as workers, Client(workers) as client:
        yield client


def columns(seed: int, d: int, n: int) -> np.ndarray[Any, Any]:
    """Columns of norm about 1 in float32, each contiguous."""
    return (np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32) / np.float32(d**0.5)).T


def shards(d: int, n: int, count: int) -> list[Callable[[], Any]]:
    return [partial(columns, seed, d, n // count) for seed in range(count)]


def target(d: int, n: int, count: int, k: int = 60) -> np.ndarray[Any, Any]:
    """A combination of k columns of the shards, with noise of a tenth of its norm."""
    rng, y = np.random.default_rng(99), np.zeros(d, np.float32)
    for load in shards(d, n, count):
        part = load()
        y += part[:, rng.choice(part.shape[1], k // count, replace=False)] @ rng.standard_normal(
            k // count, dtype=np.float32
        )
    noise = rng.standard_normal(d, dtype=np.float32)
    return y + np.float32(0.1) * np.linalg.norm(y) / np.linalg.norm(noise) * noise


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def cpu_seconds(client: Client, call: Callable[[], Any], spread: bool = True) -> float:
    """CPU seconds on the longest path of a call: of this process, which has the scheduler, and of the busier worker.

    An idle machine takes about that; elapsed time also measures what else the machine does.
    """
    before, began = client.run(time.process_time), time.process_time()
    call()
    mine, after = time.process_time() - began, client.run(time.process_time)
    return mine + (max(after[worker] - before[worker] for worker in after) if spread else 0.0)


def same(a: ps.Result, b: ps.Result) -> str:
    atoms = {z.source: w * z.coef for z, w in zip(a.atoms, a.weights, strict=True)}
    others = {z.source: w * z.coef for z, w in zip(b.atoms, b.weights, strict=True)}
    if set(atoms) != set(others):
        return f"{len(set(atoms) ^ set(others))} atoms differ"
    return f"same {len(atoms)} atoms, weights to {max(abs(atoms[j] - others[j]) for j in atoms):.0e}"


def answers() -> None:
    """OMP of 50 atoms and an L1 ball over 2000 x 200,000, in one process and on two workers."""
    f = ps.LeastSquares(target(FEATURES, ATOMS, 2))
    here = ps.Dictionary(np.concatenate([load().T for load in shards(FEATURES, ATOMS, 2)]).T)
    copied = here.screened()
    copied.lmo(f.y)
    print("| problem | calls | one process, s | two workers, s | times as fast | CPU s | CPU s | times | answer |")
    print("|---|---|---|---|---|---|---|---|---|")
    with cluster(memory_limit="4GB") as client:
        there = ps.Sharded(shards(FEATURES, ATOMS, 2), client=client)

        def measured(solve: Callable[[Any], ps.Result], A: Any) -> tuple[float, float, ps.Result]:
            found: list[Any] = []
            cpu = cpu_seconds(client, lambda: found.append(seconds(partial(solve, A))), A is there)
            return found[0][0], cpu, found[0][1]

        problems = {
            "OMP, 50 atoms": lambda A: ps.minimize(f, ps.lin(A), stop=ps.Stop(atoms=50)),
            "L1 ball": lambda A: ps.minimize(f, ps.conv(20.0 * A.symmetrised()), stop=ps.Stop(rgap=1e-4)),
            "L1 ball, one atom a call": lambda A: ps.minimize(
                f, ps.conv(20.0 * A.symmetrised()), ps.FullyCorrective(), stop=ps.Stop(rgap=1e-4)
            ),
        }
        for name, solve in problems.items():
            first = same(measured(solve, here)[2], measured(solve, there)[2])  # workers make their 8-bit copies
            pairs = [(measured(solve, copied), measured(solve, there)) for _ in range(ROUNDS)]
            wall, cpu = ([[side[k] for side in pair] for pair in pairs] for k in (0, 1))
            cells = [f"| {name} | {pairs[0][1][2].oracle_calls} "]
            for times in (wall, cpu):
                one, two = (statistics.median(column) for column in zip(*times, strict=True))
                cells.append(f"| {one:.2f} | {two:.2f} | {statistics.median(x / y for x, y in times):.2f} ")
            print(f"{''.join(cells)}| {first} |", flush=True)


def kills(runs: int = 20) -> None:
    """A random worker is killed at a random time of an OMP."""
    d, n, rng, survived = 300, 40_000, np.random.default_rng(0), 0
    f, stop = ps.LeastSquares(target(d, n, 2)), ps.Stop(atoms=60)
    whole = ps.Dictionary(np.concatenate([load() for load in shards(d, n, 2)], axis=1))
    here = ps.minimize(f, ps.lin(whole), stop=stop)
    times = []
    for _ in range(runs):
        with cluster() as client:
            pids = list(client.run(os.getpid).values())
            A = ps.Sharded(shards(d, n, 2), client=client)
            undisturbed = min(seconds(lambda A=A: ps.minimize(f, ps.lin(A), stop=stop))[0] for _ in range(2))
            timer = threading.Timer(rng.uniform(0, 0.8 * undisturbed), os.kill, (int(rng.choice(pids)), signal.SIGKILL))
            timer.start()
            elapsed, there = seconds(lambda A=A: ps.minimize(f, ps.lin(A), stop=stop))
            timer.join()
            times.append(elapsed - undisturbed)
            survived += [a.source for a in here.atoms] == [a.source for a in there.atoms]
    print(f"\n{survived} of {runs} runs gave the same atoms although a worker was killed;", end=" ")
    print(f"it cost {statistics.median(times):.1f} s (median; at most {max(times):.1f} s).", flush=True)


SIGNALS, BLOCK = 2_000_000, 50_000


def write_codes(folder: str, name: str) -> None:
    """Runs in a process of its own, with its own two workers of 1 GB."""
    import zarr

    with cluster(memory_limit="1GB") as client:
        Y = zarr.open_array(f"{folder}/signals", mode="r")
        elapsed, _ = seconds(
            lambda: ps.encode_to(f"{folder}/{name}", columns(5, 64, 256), Y, block=BLOCK, client=client, atoms=5)
        )
        peak = max(client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss).values()) / 1e6
        print(f"{elapsed:.1f} {peak:.2f}", flush=True)


def codes() -> None:
    """2,000,000 signals from Zarr to Zarr; a run that is killed and resumed has the bytes of one that is not."""
    import zarr

    with tempfile.TemporaryDirectory() as folder:
        Y = zarr.create_array(
            f"{folder}/signals", shape=(SIGNALS, 64), chunks=(BLOCK, 64), dtype="f4", compressors=None
        )
        for i, start in enumerate(range(0, SIGNALS, BLOCK)):
            Y[start : start + BLOCK] = np.random.default_rng(i).standard_normal((BLOCK, 64), dtype=np.float32)
        command = [sys.executable, __file__, "write_codes", folder]
        output = subprocess.run([*command, "whole"], capture_output=True, text=True, check=True).stdout
        elapsed, peak = map(float, output.split())
        deaths = 0
        for share in (0.35, 0.75):
            process = subprocess.Popen([*command, "killed"], start_new_session=True, stdout=subprocess.DEVNULL)
            while len(list(Path(folder, "killed").glob("0*"))) < share * SIGNALS / BLOCK and process.poll() is None:
                time.sleep(0.01)
            deaths += process.poll() is None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run([*command, "killed"], stdout=subprocess.DEVNULL, check=True)
        files = [file.relative_to(f"{folder}/whole") for file in Path(folder, "whole").rglob("*") if file.is_file()]
        others = [file for file in Path(folder, "killed").rglob("*") if file.is_file()]
        _, wrong, missing = filecmp.cmpfiles(f"{folder}/whole", f"{folder}/killed", files, shallow=False)
        equal = not wrong and not missing and len(files) == len(others)
        print(
            f"\n{SIGNALS:,} signals of 64 on 256 atoms, 5 a code, from Zarr to Zarr on two workers: {elapsed:.1f} s,",
            end=" ",
        )
        print(f"at most {peak:.2f} GB a worker; killed {deaths} times and resumed, {len(files)} files, bytes", end=" ")
        print("equal." if equal else "NOT equal.", flush=True)


MAPPED = (500_000, 2000)
ALLOWED = 1_000_000_000


def search_mapped(file: str) -> None:
    """Runs in a process of its own, whose own memory (all but mapped files) is limited."""
    resource.setrlimit(resource.RLIMIT_DATA, (ALLOWED, ALLOWED))
    D = np.memmap(file, np.float32, "r", shape=MAPPED).T
    try:
        np.array(D[:, : ALLOWED // 4 // MAPPED[1] + 1])
    except MemoryError:
        print("a copy of a quarter: MemoryError", file=sys.stderr)
    A = ps.Streamed(D)
    f = ps.LeastSquares(D[:, 7] - 2 * D[:, 400_000] + np.float32(0.5) * D[:, 100])
    r = ps.minimize(f, ps.lin(A), stop=ps.Stop(atoms=3))
    found = sorted(a.source for a in r.atoms) == [7, 100, 400_000]
    print(found, statistics.median(seconds(partial(A.lmo, f.y))[0] for _ in range(5)))


def memory() -> None:
    """A memory map four times as large as the memory that the process may use."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/atoms"
        D = np.memmap(file, np.float32, "w+", shape=MAPPED)
        for i in range(0, MAPPED[0], 10_000):
            D[i : i + 10_000] = np.random.default_rng(i).standard_normal((10_000, MAPPED[1]), dtype=np.float32)
        D.flush()
        size, buffer = D.nbytes, bytearray(1 << 26)
        del D
        speeds = []
        for _ in range(3):
            began = time.perf_counter()
            with open(file, "rb", buffering=0) as opened:
                while opened.readinto(buffer):
                    pass
            reading = time.perf_counter() - began
            output = subprocess.run(
                [sys.executable, __file__, "search_mapped", file], capture_output=True, text=True, check=True
            )
            found, question = output.stdout.split()
            assert found == "True"
            assert "MemoryError" in output.stderr
            speeds.append((size / float(question) / 1e9, size / reading / 1e9))
        ours, cache = (statistics.median(column) for column in zip(*speeds, strict=True))
        print(
            f"\nA memory-mapped dictionary of {size / 1e9:.0f} GB in a process that may use {ALLOWED / 1e9:.1f} GB:",
            end=" ",
        )
        print(
            f"{ours:.1f} GB/s a question, {ours / cache:.2f} of what read() gets from the cache ({cache:.1f} GB/s).",
            flush=True,
        )


def nothing(value: Any, g: Any) -> None:
    """A question whose only cost is to be asked."""


def model() -> None:
    """CPU seconds of a question = latency + bytes read / bandwidth + bytes sent / network, fitted and checked."""
    sizes = [
        (500, 20_000, 1),
        (500, 100_000, 1),
        (2000, 20_000, 1),
        (2000, 50_000, 1),
        (1000, 50_000, 2),
        (2000, 50_000, 2),
    ]
    last, bare = (FEATURES, ATOMS, 2), [(100_000, 0, 2), (1_000_000, 0, 1), (1_000_000, 0, 2)]
    rows = []
    with cluster(memory_limit="4GB") as client:
        for d, n, workers in [*sizes, *bare, last]:
            if n:
                A = ps.Sharded(shards(d, n, workers), client=client).screened()
                ask, first = A.lmo, sum(A.column(i * n // workers, -1.0).vector for i in range(workers))
            else:
                values = WorkerValues(client, [int] * workers)
                ask, first = partial(values.map, nothing, range(workers)), np.zeros(d, np.float32)
            rng, times = np.random.default_rng(0), []
            for _ in range(6):
                noise = np.float32(0.5 / d**0.5) * rng.standard_normal((10, d), dtype=np.float32)
                times.append(
                    cpu_seconds(client, lambda ask=ask, v=first, noise=noise: [ask(v + g) for g in noise]) / 10
                )
            sent = 4 * d * workers + (4 * d * workers if n else 0)  # g, and the best column of each worker
            rows.append((1, d * n / workers, sent, statistics.median(times[1:])))
        tasks, _ = seconds(lambda: client.gather(client.map(abs, range(1000), pure=False)))
    X, t = np.array(rows)[:, :3], np.array(rows)[:, 3]
    weights = 1 / t[:-1]  # relative errors count
    cost, *_ = np.linalg.lstsq(X[:-1] * weights[:, None], np.ones(len(weights)), rcond=None)
    print(f"\nLatency {1e3 * cost[0]:.1f} ms a question, reading {1e-9 / cost[1]:.2f} GB/s a worker,", end=" ")
    print(f"sending {1e-9 / cost[2]:.3f} GB/s; a task of dask {tasks:.2f} ms.\n")
    print("| entries of a column, columns, workers | measured, ms | model, ms |\n|---|---|---|")
    for (d, n, workers), measured, predicted in zip([*sizes, *bare, last], t, X @ cost, strict=True):
        held_out = " (not used in the fit)" if (d, n, workers) == last else ""
        print(f"| {d:,}, {n:,}, {workers}{held_out} | {1e3 * measured:.1f} | {1e3 * predicted:.1f} |")


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") != "1":  # one core for each process: this one and the workers
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | dict.fromkeys(THREADS, "1"))
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if sys.argv[1:2] and sys.argv[1] in ("write_codes", "search_mapped"):
        {"write_codes": write_codes, "search_mapped": search_mapped}[sys.argv[1]](*sys.argv[2:])
    else:
        parts = {"answers": answers, "kills": kills, "codes": codes, "memory": memory, "model": model}
        for part in sys.argv[1:] or parts:
            parts[part]()
