"""What the tests of `encode` share: problems, the plain pursuit to compare with, and strategies one by one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from plain_codes import pursue

from pursuit.coding.request import Arguments, Request
from pursuit.coding.scheduling import assemble
from pursuit.coding.strategies import Fast, FromResiduals, FullPrecision, SingleSignal, solver_chain
from pursuit.coding.tiles import UNSOLVED, Codes, Tile

METHODS = ["omp", "mp", "ols", "nnomp"]
DTYPES = [np.float64, np.float32]


def problem(seed, signals, d, n, dtype=np.float64, spread=1.0):
    """Random signals, and atoms whose norms differ by up to a factor of about exp(3 spread)."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((d, n)) * np.exp(0.5 * spread * rng.standard_normal(n))
    return D.astype(dtype), rng.standard_normal((signals, d)).astype(dtype), rng


def unit_atoms(seed, signals, d, n, dtype=np.float64):
    D, Y, rng = problem(seed, signals, d, n, np.float64, spread=0.0)
    return (D / np.linalg.norm(D, axis=0)).astype(dtype), Y.astype(dtype), rng


def agree(codes, D, Y, atoms, tol=-1.0, method="omp", weights=None):
    """Asserts that every clear signal has the atoms and weights of the plain pursuit; returns how many are clear.

    A signal is clear where rounding in the type of D can change no decision and not all digits of the weights.
    """
    epsilon, clear = float(np.finfo(D.dtype).eps), 0
    atoms, tol = np.broadcast_to(atoms, len(Y)), np.broadcast_to(tol, len(Y))
    for i, y in enumerate(Y):
        w = None if weights is None else weights[i]
        code = pursue(D, y, int(atoms[i]), float(tol[i]), method, w)
        seen = D[:, code.active].astype(float) if w is None else np.sqrt(w.astype(float))[:, None] * D[:, code.active]
        norms = np.linalg.norm(seen, axis=0)
        condition = np.linalg.cond(seen / norms) if len(norms) else 1.0
        if code.lead < 100 * epsilon * condition or condition**2 * epsilon > 1e-4:
            continue
        clear += 1
        own = slice(codes.indptr[i], codes.indptr[i + 1])
        assert list(codes.indices[own]) == code.active
        x = code.x[code.active] * norms
        length = np.linalg.norm(y if w is None else np.sqrt(w) * np.where(w > 0, y, 0))
        tolerance = epsilon * condition**2 * (1e3 * np.abs(x).max(initial=0.0) + 4 * len(D) ** 0.5 * float(length))
        np.testing.assert_allclose(codes.data[own] * norms, x, rtol=0, atol=tolerance)
    return clear


NAMES = {FullPrecision: "full", FromResiduals: "residuals", SingleSignal: "single"}


class ChainRun:
    """The strategies of a request on one tile of all its signals, one after the other: `solved` has for each strategy
    by name the rows that it solved, `codes` all codes (those of the others are empty)."""

    def __init__(self, D, Y, atoms=None, tol=None, method="omp", gram=None, weights=None, only=None):
        arguments = Arguments(atoms=atoms, tol=tol, method=method, gram=gram, weights=weights, n_jobs=1)
        chain = solver_chain(Request.from_arguments(D, Y, arguments))
        request = chain.request
        tile = Tile(request, 0, Codes.empty(request.rules.limits, request.dtype))
        self.solved = {}
        for strategy in chain.strategies:
            name = strategy.precision if isinstance(strategy, Fast) else NAMES[type(strategy)]
            if only in (None, name):
                before = tile.unsolved
                strategy.solve(tile)
                self.solved[name] = np.setdiff1d(before, tile.unsolved)
        tile.codes.counts[tile.codes.counts == UNSOLVED] = 0
        self.codes = assemble([tile.pack()], (len(Y), D.shape[1]), request.dtype)

    @property
    def counts(self):
        return {name: len(rows) for name, rows in self.solved.items()}


def run_python(code, *arguments, **environment):
    """What a program prints in a process of its own that imports the same package; warnings are errors."""
    begin = "import conftest\n"  # finds the copy of the package that is tested
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    command = [sys.executable, "-W", "error", "-c", begin + code, *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
