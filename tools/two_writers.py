"""Pairs of processes on one target of `encode_to` and on one checkpoint, killed at random: nothing may be lost.

python tools/two_writers.py --pairs 20
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CODES = """
import sys, numpy as np, pursuit as ps
rng = np.random.default_rng(0)
D, Y = rng.standard_normal((16, 40)), rng.standard_normal((20_000, 16))
if sys.argv[2] == "write":
    ps.encode_to(sys.argv[1], D, Y, block=100, atoms=3)
else:
    assert abs(ps.StoredCodes(sys.argv[1]).matrix() - ps.encode(D, Y, atoms=3)).max() < 1e-12
"""

RUN = """
import sys, numpy as np, pursuit as ps
rng = np.random.default_rng(0)
f, A = ps.LeastSquares(rng.standard_normal(20)), 3 * ps.Dictionary(rng.standard_normal((20, 30)), signed=True)
domain = ps.conv(A)
end = 3000 if sys.argv[2] == "write" else 3010
options = {"stop": ps.Stop(rgap=0.0, gap=0.0, iterations=end), "checkpoint": sys.argv[1], "every": 0.0}
r = ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), **options)
if sys.argv[2] != "write":
    whole = ps.minimize(f, domain, ps.Plain(ps.OpenLoop()), stop=options["stop"])
    assert (r.x == whole.x).all() and r.iterations == whole.iterations == end
"""


def start(program: str, target: Path, word: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, str(target), word]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def trial(program: str, target: Path, chance: random.Random, longest: float) -> list[str]:
    """What went wrong with two writers that are killed and started again, and with the reader after them."""
    errors = []
    for kill in (True, True, False):
        pair = [start(program, target, "write") for _ in range(2)]
        if kill:
            for process in chance.sample(pair, 2):
                time.sleep(chance.uniform(0.0, longest))
                if process.poll() is None:
                    process.kill()
        for process in pair:
            words = process.communicate()[1]
            if process.returncode not in (0, -9):
                errors.append(words.strip().splitlines()[-1])
    reader = start(program, target, "read")
    words = reader.communicate()[1]
    return errors + ([words.strip().splitlines()[-1]] if reader.returncode else [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3.0, help="within which a process is killed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, failed = random.Random(options.seed), 0
    for number in range(options.pairs):
        with tempfile.TemporaryDirectory() as folder:
            for name, program in (("codes", CODES), ("run.npz", RUN)):
                errors = trial(program, Path(folder) / name, chance, options.seconds)
                failed += bool(errors)
                print(number, name, *(errors or ["whole"]), flush=True)
            left = [file.name for file in Path(folder).iterdir() if file.name.startswith(".")]
            print(number, "left behind:", left, flush=True) if left else None
    sys.exit(int(failed > 0))


if __name__ == "__main__":
    main()
