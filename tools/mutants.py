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
    # the rates
    Mutant(
        "linear rate: delta for delta squared",
        "rates/contraction.py",
        "1 - delta**2 * low",
        "1 - delta * low",
        "test_rates.py",
    ),
    Mutant(
        "rate of pursuit: the factor 4 dropped",
        "rates/sublinear.py",
        "float_or_array(4 * (2 *",
        "float_or_array((2 *",
        "test_rates.py",
    ),
    Mutant(
        "rate of Frank-Wolfe: L is missing",
        "rates/sublinear.py",
        'C=upper("L", L, 0) * upper',
        "C=upper",
        "test_rates.py",
    ),
    Mutant("sharp rate: 8 becomes 4", "rates/sublinear.py", "first + 8 * C)", "first + 4 * C)", "test_rates.py"),
    Mutant(
        "lower bound: (2L - mu)/L for /mu",
        "rates/contraction.py",
        "low) - low) / low",
        "low) - low) / 1.0",
        "test_rates.py",
    ),
    Mutant(
        "limit of Frank-Wolfe: the factor 2 dropped",
        "rates/relations.py",
        "+ 2 * a * float",
        "+ a * float",
        "test_rates.py",
    ),
    # the geometry
    Mutant(
        "radius for diameter in the curvature",
        "geometry/constants.py",
        'shape.radius() if kind == "mp" else shape.diameter()',
        "shape.radius()",
        "test_geometry.py",
    ),
    Mutant("the sign of the width", "geometry/width.py", "oracle(A)(-unit)", "oracle(A)(unit)", "test_geometry.py"),
    # the steps
    Mutant(
        "open loop: 2/(t+2) for 2/(delta t+2)",
        "steps.py",
        "2.0 / (move.delta * move.iteration + 2.0)",
        "2.0 / (move.iteration + 2.0)",
        "test_errata.py",
    ),
    Mutant(
        "short step: a square is missing",
        "steps.py",
        "self.metric(d))",
        "self.metric(d)) ** 0.5",
        "test_equivalence.py",
    ),
    Mutant("curvature step: rho for rho squared", "steps.py", "self.rho * self.rho", "self.rho", "test_equivalence.py"),
    # the certificates
    Mutant(
        "bounds forget the quality of an answer",
        "domains/base.py",
        "(answer.dot - self.origin(gx)) / answer.delta",
        "(answer.dot - self.origin(gx))",
        "test_domains.py",
    ),
    Mutant(
        "sets that are not exact certify",
        "atoms/base.py",
        ".dot(Space.of(g), g) if self.exact else -math.inf",
        ".dot(Space.of(g), g)",
        "test_traps.py",
    ),
    Mutant(
        "lazy answers come from any summand",
        "oracles.py",
        "if f is not None and len(active) and",
        "if len(active) and",
        "test_traps.py",
    ),
    Mutant(
        "a tiny beta counts as none",
        "linalg/lanczos.py",
        "0.0 if whole else max(beta, 1e-14 * scale)",
        "0.0 if self.exhausted else beta",
        "test_traps.py",
    ),
    Mutant(
        "the square of the width is lost",
        "domains/base.py",
        "spans * spans / (2.0 * mu)",
        "spans / (2.0 * mu)",
        "test_domains.py",
    ),
    Mutant("answers from memory are certified", "oracles.py", "dot, 0.0, 0)", "dot, 1.0, 0)", "test_beyond.py"),
    # the machinery
    Mutant("the oracle maximises", "atoms/vectors.py", "else -c", "else c", "test_atoms.py"),
    Mutant(
        "no weight at zero comes back",
        "weights/problem.py",
        "i = self._entering(",
        "i = None and self._entering(",
        "test_weights.py",
    ),
    Mutant(
        "accelerated gradient never restarts",
        "linalg/accelerated.py",
        "new - x)) > 0:",
        "new - x)) > np.inf:",
        "test_linalg.py",
    ),
    Mutant("the level of a simplex is the first", "linalg/simplex.py", "above[-1]", "above[0]", "test_linalg.py"),
    Mutant(
        "an atom and its negative are two entries",
        "atoms/frames.py",
        "abs(self.coef) if signless else self.coef",
        "self.coef",
        "test_atoms.py",
    ),
    Mutant(
        "a refinement that raises f is obeyed",
        "refine/proposals.py",
        "if not f.value(trial.x) <= ceiling:",
        "if False:",
        "test_solve.py",
    ),
    Mutant(
        "the adversary is not the worst",
        "oracles.py",
        "scores[allowed].argmax()",
        "scores[allowed].argmin()",
        "test_laws.py",
    ),
    Mutant(
        "the first atom comes from the set, not from the oracle",
        "start.py",
        "ask.ask(b, grad, active, 0.0).atoms for b",
        "domain.parts[b].asked.best(grad, 1) for b",
        "test_solve.py",
    ),
    Mutant(
        "an approximate oracle begins outside the hull",
        "oracles.py",
        "if not len(active):",
        "if False:",
        "test_solve.py",
    ),
    Mutant(
        "a check uses the random numbers of the run",
        "result.py",
        "begin(CHECK_SEED)",
        "begin()",
        "test_solve.py",
    ),
    # the kernels
    Mutant(
        "selection in float32 is believed",
        "encode/fast.py",
        "if not first - second > margin:",
        "if False:",
        "test_encode.py",
    ),
    Mutant(
        "selection in 16 bits is believed",
        "encode/sift.py",
        "emit.load(leads, wave, 4 * WAVE))",
        "every(wave, 1))",
        "test_encode.py",
    ),
    Mutant(
        "rows in 16 bits are believed",
        "encode/sift.py",
        "emit.plus(b.fsub(number(SHORT), tall), t, mass)",
        "b.fsub(number(SHORT), tall)",
        "test_encode.py",
    ),
    Mutant("so are weights", "encode/sift.py", "b.fmul(number(2.0), off)", "number(0.0)", "test_encode.py"),
    Mutant(
        "and active atoms",
        "encode/sift.py",
        "emit.plus(b.fsub(number(SHORT), tall), t, mass)",
        "b.fmul(t, mass)",
        "test_encode.py",
    ),
    Mutant(
        "and atoms and signals",
        "encode/short.py",
        "emit.plus(change, off, length)",
        "change",
        "test_encode.py",
    ),
    Mutant("sums of products of 16 bits wrap", "encode/short.py", "65_000.0", "75_000.0", "test_encode.py"),
    Mutant(
        "weights out of range are believed",
        "encode/sift.py",
        "lead = b.select(fits,",
        "lead = b.select(b.or_(fits, b.not_(fits)),",
        "test_encode.py",
    ),
    Mutant(
        "the same for OLS",
        "encode/fast.py",
        "if not gain(c[j], v[j], -more[p], -less[p]) > second * (1 + 2 * TRUNCATED + ROUGHLY):",
        "if False:",
        "test_encode.py",
    ),
    Mutant(
        "OLS believes its squared norms",
        "encode/fast.py",
        "+= (2 * longest + entry) * entry + tick * longest",
        "+= 0",
        "test_encode.py",
    ),
    Mutant(
        "an atom enters as if it were alone",
        "encode/vector.py",
        "return [emit.minus(pivot, u, u),",
        "return [pivot,",
        "test_encode.py",
    ),
    Mutant(
        "the rest of a signal is left out of products",
        "encode/vector.py",
        "emit.loop(b.srem(length, lanes), [emit.totals(sums)]",
        "emit.loop(ir.Constant(I64, 0), [emit.totals(sums)]",
        "test_encode.py",
    ),
    Mutant(
        "a signal that is stuck counts as done",
        "encode/fast.py",
        "s if roots[p] == 0 and spent else",
        "s if roots[p] == 0 else",
        "test_encode.py",
    ),
    Mutant(
        "and one that is done as stuck",
        "encode/fast.py",
        "spent = math.sqrt(rest) <= noise *",
        "spent = math.sqrt(rest) <= 0 *",
        "test_encode.py",
    ),
    Mutant(
        "or as not sure",
        "encode/fast.py",
        "s if math.sqrt(rest) <= noise * mass else UNSURE",
        "UNSURE",
        "test_encode.py",
    ),
    Mutant(
        "digits lost over many pivots go unnoticed",
        "encode/fast.py",
        " or not worst[p] <= lost",
        "",
        "test_encode.py",
    ),
    Mutant("the same for a signal alone", "encode/alone.py", "> LOST[0]", "> np.inf", "test_encode.py"),
    Mutant(
        "OLS keeps old correlations", "encode/engine.py", "C = C[stay] - np", "C = C[stay] - 0 * np", "test_encode.py"
    ),
    # routines, and OLS of one signal
    Mutant("ties go to the last", "encode/lines.py", '"<", two[1], one[1]', '">", two[1], one[1]', "test_lines.py"),
    Mutant("a triangle one too small", "encode/lines.py", "length = emit.at(i, 1)", "length = i", "test_lines.py"),
    Mutant("dependent atoms enter", "encode/lines.py", "number, 4 * eps)", "number, 0.04 * eps)", "test_encode.py"),
    Mutant("who left does not come back", "encode/small.py", "if not inside[k] and", "if False and", "test_lines.py"),
    Mutant(
        "OLS, the careful way: atoms stay whole",
        "encode/careful.py",
        "v[k] -= t[k] * t[k]",
        "pass",
        "test_encode.py",
    ),
    Mutant(
        "OLS of one: too much is left of an atom", "encode/alone.py", "low[j] -= more * more", "pass", "test_encode.py"
    ),
    Mutant(
        "OLS of one: taken atoms are taken again",
        "encode/alone.py",
        "s, low[j], high[j] = s + 1, np.inf, np.inf",
        "s = s + 1",
        "test_encode.py",
    ),
    Mutant("a ticket is done at once", "encode/team.py", "[DONE:] = -1", "[DONE:] = 0", "test_encode.py"),
    Mutant(
        "a row of a block is left out", "encode/team.py", "first + NEAR, stop", "first + 63, stop", "test_encode.py"
    ),
    Mutant("intervals too narrow", "_kernels.py", "radius = error[j]", "radius = 0.5 * error[j]", "test_screened.py"),
    Mutant(
        "an error stops nobody",
        "_threads.py",
        "                stopped = True",
        "                pass",
        "test_threads.py",
    ),
]


def survives(mutant: Mutant) -> bool:
    """Whether the named tests pass on the broken copy."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__"))
        target = Path(folder) / "src" / "pursuit" / mutant.file
        target.write_text(target.read_text().replace(mutant.old, mutant.new))
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
        if run.returncode > 1:  # below 0: what it broke killed the tests, which is noticed too
            sys.exit(f"mutant '{mutant.breaks}': the tests did not run.\n{run.stdout}{run.stderr}")
        return run.returncode == 0


def main() -> None:
    for mutant in MUTANTS:
        found = (ROOT / "src" / "pursuit" / mutant.file).read_text().count(mutant.old)
        if found != 1:
            sys.exit(f"mutant '{mutant.breaks}': its text stands {found} times in {mutant.file}, not once.")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(survives, MUTANTS))
    for mutant, alive in zip(MUTANTS, verdicts, strict=True):
        print(f"{'SURVIVED' if alive else 'caught':10}{mutant.breaks}")
    print(f"\n{len(MUTANTS) - sum(verdicts)} of {len(MUTANTS)} mutants caught")
    sys.exit(any(verdicts))


if __name__ == "__main__":
    main()
