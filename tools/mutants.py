"""Breaks the code on purpose, one small change at a time, and sees whether the tests notice: `make mutants`.

Each mutant is (what it breaks, file, old text, new text, tests that must fail). The package is copied to a temporary
folder, changed there, and the named tests run against the copy. A mutant that survives is a hole in the suite.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    breaks: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "open loop: 2/(t+2) for 2/(delta t+2)",
        "steps.py",
        "2.0 / (move.delta * move.iteration + 2.0)",
        "2.0 / (move.iteration + 2.0)",
        "test_equivalence.py",
    ),
    Mutant(
        "certificate over a hull forgets delta",
        "domains.py",
        "value - (gx - gz) / delta",
        "value - (gx - gz)",
        "test_laws.py",
    ),
    Mutant(
        "certificate over a span forgets delta",
        "domains.py",
        "max(0.0, -gz) / delta",
        "max(0.0, -gz)",
        "test_laws.py test_domains.py",
    ),
    Mutant(
        "width certificate: the square of the width is lost",
        "domains.py",
        "ratio * ratio / (2.0 * mu)",
        "ratio * support / (2.0 * mu)",
        "test_laws.py test_domains.py",
    ),
    Mutant(
        "short step: L is missing",
        "steps.py",
        "gamma = _clip(-move.slope / (L * square), move.reach) if square > 0 else 0.0\n"
        "                return gamma, gamma * move.direction, gamma * move.slope\n\n"
        "            return bound.minimise(move.x, move.value, propose)\n\n"
        "        return length\n\n\n@dataclass(frozen=True)\nclass DiameterStep",
        "gamma = _clip(-move.slope / square, move.reach) if square > 0 else 0.0\n"
        "                return gamma, gamma * move.direction, gamma * move.slope\n\n"
        "            return bound.minimise(move.x, move.value, propose)\n\n"
        "        return length\n\n\n@dataclass(frozen=True)\nclass DiameterStep",
        "test_equivalence.py",
    ),
    Mutant(
        "curvature step: rho for rho squared",
        "steps.py",
        "self.rho * self.rho",
        "self.rho",
        "test_equivalence.py",
    ),
    Mutant(
        "the oracle maximises",
        "atoms/vectors.py",
        "return c, abs(c) if self.symmetric else -c",
        "return c, abs(c) if self.symmetric else c",
        "test_atoms.py",
    ),
    Mutant(
        "weights: an atom that left never comes back",
        "weights.py",
        "i = self._violated(q, w - start, lam, tried)",
        "i = None",
        "test_weights.py",
    ),
    Mutant(
        "an atom and its negative are two entries of a span",
        "atoms/frames.py",
        "abs(self.coef) if signless else self.coef",
        "self.coef",
        "test_atoms.py",
    ),
    Mutant(
        "a refinement that raises f is obeyed",
        "solve.py",
        "if not f.value(trial.x) <= f.value(active.x):",
        "if False:",
        "test_solve.py",
    ),
    Mutant(
        "the adversary is not the worst",
        "oracles.py",
        "allowed[scores[allowed].argmax()]",
        "allowed[scores[allowed].argmin()]",
        "test_laws.py",
    ),
]


def survives(mutant: Mutant) -> bool:
    """Whether the named tests pass on the broken copy."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__"))
        target = Path(folder) / "src" / "pursuit" / mutant.file
        text = target.read_text()
        if text.count(mutant.old) != 1:
            sys.exit(f"mutant '{mutant.breaks}': its text stands {text.count(mutant.old)} times in {mutant.file}.")
        target.write_text(text.replace(mutant.old, mutant.new))
        tests = [str(ROOT / "tests" / name) for name in mutant.tests.split()]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-c",
            str(ROOT / "pyproject.toml"),
        ]
        environment = {**os.environ, "PYTHONPATH": str(Path(folder) / "src")}
        run = subprocess.run(
            [*command, *tests], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if run.returncode not in (0, 1):
            sys.exit(f"mutant '{mutant.breaks}': the tests did not run.\n{run.stdout}{run.stderr}")
        return run.returncode == 0


def main() -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(survives, MUTANTS))
    for mutant, alive in zip(MUTANTS, verdicts, strict=True):
        print(f"{'SURVIVED' if alive else 'caught':10}{mutant.breaks}")
    print(f"\n{len(MUTANTS) - sum(verdicts)} of {len(MUTANTS)} mutants caught")
    sys.exit(any(verdicts))


if __name__ == "__main__":
    main()
