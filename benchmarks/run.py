"""The comparison suite: `make bench`, or `python benchmarks/run.py [case ...]` for some cases.

Every case runs in one process per number of threads (1 and 2, where there are two cores). It prints one table, writes
results.json and figures under out/bench/, and, where all cases ran, benchmarks/RESULTS.md.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "bench"
VARIABLES = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]


def worker(threads: int, path: Path, keys: list[str]) -> None:
    """Run the cases in this process and write what was found."""
    import hulls
    import many_signals
    import one_signal
    import small_problems
    from common import measure
    from first_calls import first_calls
    from growth import growth, memory
    from limits import facts, limits

    cases = one_signal.CASES | many_signals.CASES | hulls.CASES | small_problems.CASES
    unknown = set(keys) - set(cases)
    if unknown:
        sys.exit(f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(cases)}.")
    found: dict[str, Any] = {"facts": facts(), "limits": limits(), "titles": {}, "rows": [], "notes": {}, "work": {}}
    for key in keys or cases:
        began = time.perf_counter()
        try:
            case = cases[key](threads)
            rows = measure(case, threads)
            found["titles"][key], found["notes"][key] = case.title, case.notes
            found["rows"] += [asdict(row) for row in rows]
            if case.work is not None and rows[0].seconds:
                found["work"][key] = case.work(rows[0])
        except Exception as error:  # one case that breaks must not cost the others
            found["titles"][key] = f"{key}: failed, {error}"
        case = None
        gc.collect()
        print(f"  {threads} thread{'s' * (threads > 1)}, {key}: {time.perf_counter() - began:.0f} s", flush=True)
    if threads == 1 and not keys:
        found |= {"growth": growth(), "memory": memory(), "first_calls": first_calls()}
    path.write_text(json.dumps(found))


def gather(counts: list[int], keys: list[str]) -> dict[str, Any]:
    """One process per number of threads; what they found, together."""
    run: dict[str, Any] = {"threads": counts, "rows": [], "limits": {}, "growth": {}, "memory": {}, "first_calls": []}
    for threads in counts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "found.json"
            env = os.environ | dict.fromkeys(VARIABLES, str(threads))
            subprocess.run([sys.executable, __file__, "--worker", str(threads), str(path), *keys], env=env, check=True)
            found = json.loads(path.read_text())
        run["rows"] += found.pop("rows")
        run["limits"][str(threads)] = found.pop("limits")
        run = found | run | {name: found[name] for name in ("growth", "memory", "first_calls") if name in found}
    return run


def main() -> None:
    from common import Row
    from report import LEGEND, figures, results, table

    keys, began = sys.argv[1:], time.perf_counter()
    counts = [1, 2] if (os.cpu_count() or 1) > 1 else [1]
    run = gather(counts, keys)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(run, indent=1))
    run["rows"] = [Row(**row) for row in run["rows"]]
    print(f"\n{LEGEND}\n{table(run)}\n")
    figures(run, OUT)
    if not keys:
        (HERE / "RESULTS.md").write_text(results(run))
    print(f"{time.perf_counter() - began:.0f} s; results.json and figures are in {OUT.relative_to(HERE.parent)}/")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
