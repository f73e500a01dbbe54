"""Our own rows of the suite beside those of another version: python benchmarks/against.py OTHER_PYTHON [case ...].

OTHER_PYTHON is the interpreter of an environment in which the other version is installed. Processes of both take turns,
three times each on one thread and on two; the table shows medians in milliseconds and their ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict

from run import HERE, VARIABLES

CASES = ["a50", "a200", "d", "toeplitz", "noise", "gram", "call", "heavy", "b", "c", "dct"]
ROUNDS = 3


def ours(threads: int, keys: list[str]) -> None:
    """Times of the contenders whose names begin with ours, as JSON."""
    import many_signals
    import one_signal
    from common import interleaved

    found = {}
    for key in keys:
        case = (one_signal.CASES | many_signals.CASES)[key](threads)
        calls = {each.name: each.run for each in case.contenders if each.name.startswith("pursuit")}
        found |= {f"{key}: {name}": seconds for name, seconds in interleaved(calls, budget=1.0).items()}
    print(json.dumps(found))


def main() -> None:
    versions, keys = {"other": sys.argv[1], "this": sys.executable}, sys.argv[2:] or CASES
    for threads in (1, 2):
        times: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in versions}
        env = os.environ | dict.fromkeys(VARIABLES, str(threads))
        for _ in range(ROUNDS):
            for name, python in versions.items():
                run = [python, str(HERE / "against.py"), "--ours", str(threads), *keys]
                out = subprocess.run(run, env=env, check=True, capture_output=True, text=True).stdout
                for row, seconds in json.loads(out.splitlines()[-1]).items():
                    times[name][row].append(seconds)
        for row in times["this"]:
            other, this = (statistics.median(times[name][row]) for name in versions)
            print(f"{threads} {row:48} {1e3 * other:9.2f} {1e3 * this:9.2f} {this / other:6.2f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--ours":
        ours(int(sys.argv[2]), sys.argv[3:])
    else:
        main()
