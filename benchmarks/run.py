"""The comparison suite: `make bench`, or `python benchmarks/run.py [case ...]` for some cases.

Every case runs in one process per number of threads (1 and 2, where there are two cores). It prints one table, writes
out/bench/results.json and, where all cases ran, benchmarks/RESULTS.md.
"""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from common import Row

HERE = Path(__file__).parent
OUT = HERE.parent / "out" / "bench"
WIDTH = 34
VARIABLES = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"]
PACKAGES = ["numpy", "scipy", "scikit-learn", "spams-bin", "celer", "skglm", "copt", "pylops"]

LEGEND = """\
ms     median time; on one thread that of the processor
ratio  that time divided by that of the case's first line: above 1, the first line is faster
calls  times the oracle was asked
atoms  active at the end, the mean over the signals
same   whether the atoms are those of the first line (SPAMS: of pursuit's ols), or the share of signals where they are
"""


def worker(threads: int, path: Path, keys: list[str]) -> None:
    """Run the cases in this process and write what was found."""
    import hulls
    import many_signals
    import one_signal
    from common import measure

    cases = one_signal.CASES | many_signals.CASES | hulls.CASES
    unknown = set(keys) - set(cases)
    if unknown:
        sys.exit(f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(cases)}.")
    found: dict[str, Any] = {"titles": {}, "rows": [], "notes": {}}
    for key in keys or cases:
        began = time.perf_counter()
        try:
            case = cases[key](threads)
            found["rows"] += [asdict(row) for row in measure(case, threads)]
            found["titles"][key], found["notes"][key] = case.title, case.notes
        except Exception as error:  # one case that breaks must not cost the others
            found["titles"][key] = f"{key}: failed, {error}"
        case = None
        gc.collect()
        print(f"  {threads} thread{'s' * (threads > 1)}, {key}: {time.perf_counter() - began:.0f} s", flush=True)
    path.write_text(json.dumps(found))


def gather(counts: list[int], keys: list[str]) -> dict[str, Any]:
    """One process per number of threads; what they found, together."""
    run: dict[str, Any] = {"threads": counts, "rows": []}
    for threads in counts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "found.json"
            env = os.environ | dict.fromkeys(VARIABLES, str(threads))
            subprocess.run([sys.executable, __file__, "--worker", str(threads), str(path), *keys], env=env, check=True)
            found = json.loads(path.read_text())
        run["rows"] += found.pop("rows")
        run = found | run
    return run


# ---------------------------------------------------------------------- the table


def table(run: dict[str, Any]) -> str:
    """One block of lines per case, one line per contender, all thread counts side by side."""
    threads, rows = run["threads"], run["rows"]
    over = " " * WIDTH + "".join(f"{f'{t} thread' + 's' * (t > 1):>19}" for t in threads)
    columns = "".join(f"{'ms':>11}{'ratio':>8}" for _ in threads)
    head = f"{'':{WIDTH}}{columns}{'calls':>7}{'atoms':>7}{'same':>7}"
    lines = [over, head]
    for key, title in run["titles"].items():
        lines += ["-" * len(head), title]
        mine = [row for row in rows if row.case == key]
        names = list(dict.fromkeys(row.contender for row in mine))
        first = {row.threads: row.seconds for row in mine if row.contender == names[0]} if names else {}
        lines += [line([r for r in mine if r.contender == name], threads, first) for name in names]
        for note in run["notes"].get(key, []):
            lines += textwrap.wrap(note, len(head), initial_indent="  * ", subsequent_indent="    ")
    return "\n".join(line.rstrip() for line in lines)


def line(rows: list[Row], threads: list[int], first: dict[int, float | None]) -> str:
    by_threads, text = {row.threads: row for row in rows}, f"  {rows[0].contender:{WIDTH - 2}}"
    for t in threads:
        row = by_threads.get(t)
        if row is None or row.seconds is None:
            note = "" if row is None else row.note
            return text + f"  {note}"
        base = first.get(t)
        text += f"{digits(1e3 * row.seconds):>11}{digits(row.seconds / base) if base else '-':>8}"
    last = rows[-1]
    calls = "-" if last.calls is None else str(last.calls)
    atoms = "-" if last.atoms is None else f"{last.atoms:.4g}"
    return text + f"{calls:>7}{atoms:>7}{same(rows):>7}"


def same(rows: list[Row]) -> str:
    shares = [row.same for row in rows if row.same is not None]
    if not shares:
        return "-"
    worst = min(shares)
    return "yes" if worst == 1.0 else "no" if worst == 0.0 else f"{math.floor(1000 * worst) / 10:.1f}%"


def digits(x: float) -> str:
    """Three digits, or all of those before the point."""
    places = next((places for least, places in ((100, 0), (10, 1), (0.1, 2)) if x >= least), None)
    return f"{x:.2g}" if places is None else f"{x:,.{places}f}"


# ---------------------------------------------------------------------- RESULTS.md


def results(run: dict[str, Any]) -> str:
    facts = "\n".join(f"| {name} | {value} |" for name, value in machine().items())
    return f"""\
# The last run of `make bench`

{time.strftime("%Y-%m-%d")}, commit {commit()}. What pages quote of it has a row in QUOTED.md.

Written by `benchmarks/run.py`; compare figures within this run only. Contenders took turns; a first, warming call is
not counted. One process per number of threads, which holds for BLAS and for the contenders alike.

```
{LEGEND}
{table(run)}
```

| the machine | |
|---|---|
{facts}
"""


def commit() -> str:
    """The commit that was measured; with a sign where files differ from it."""
    asked = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    return output(asked).strip() or "unknown"


def machine() -> dict[str, str]:
    """The processor and the versions."""
    listed = dict(re.findall(r"^\s*([^:\n]+):\s+(.+)$", output(["lscpu"]), flags=re.MULTILINE))
    vectors = [name for name in ("avx2", "avx512f") if name in listed.get("Flags", "")]
    model = listed.get("Model name", platform.processor() or platform.machine())
    return {
        "processor": f"{model} ({', '.join(vectors) or 'neither AVX2 nor AVX-512'})",
        "cores": str(os.cpu_count()),
        "load at the end": f"{os.getloadavg()[0]:.2f}",
        "Python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def main() -> None:
    keys, began = sys.argv[1:], time.perf_counter()
    counts = [1, 2] if (os.cpu_count() or 1) > 1 else [1]
    run = gather(counts, keys)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "results.json").write_text(json.dumps(run, indent=1))
    run["rows"] = [Row(**row) for row in run["rows"]]
    print(f"\n{LEGEND}\n{table(run)}\n")
    if not keys:
        (HERE / "RESULTS.md").write_text(results(run))
    print(f"{time.perf_counter() - began:.0f} s; {(OUT / 'results.json').relative_to(HERE.parent)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
    else:
        main()
