"""Breaks the code on purpose, one small change at a time, and sees whether the tests notice.

`make mutants` tries all changes, `tools/mutants.py --quick` a few of every kind. Either way the text that each change
replaces must stand in its file exactly once.

Each mutant is (what it breaks, file, old text, new text, tests that must fail). The package is copied to a temporary
folder and changed there; C++ is compiled, for one level of processors; and the named tests run against the copy. A
mutant that survives is a hole in the suite. The tests of kernels must pass on a copy that is compiled and not changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from pursuit import native

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    breaks: str
    file: str
    old: str
    new: str
    tests: str
    quick: bool = False

    @property
    def compiled(self) -> bool:
        return self.file.endswith((".h", ".cpp"))


MUTANTS = [
    # sets of solvers and graphs
    Mutant(
        "polytopes: dual variables of the wrong sign prove bounds",
        "atoms/programs.py",
        "y[: self._inequalities] = np.minimum(y[: self._inequalities], 0.0)",
        "pass",
        "test_sets_of_solvers.py",
        quick=True,
    ),
    Mutant(
        "polytopes: reduced costs count at one bound only",
        "atoms/programs.py",
        "np.minimum((r - e) * upper, (r + e) * upper))",
        "math.inf)",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "polytopes: the box ignores violated dual constraints and free entries",
        "atoms/programs.py",
        "total = (together + float(alone.sum())) / (1.0 - leaks)",
        "total = together / (1.0 - leaks)",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "polytopes: costs are not scaled",
        "atoms/programs.py",
        "costs = costs / scale",
        "scale = 1.0",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "integer programs: the origin of the gap is not moved back",
        "atoms/programs.py",
        "(bound - hidden) / factor + origin",
        "(bound - hidden) / factor",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "transport: points of the smaller side are not copied",
        "atoms/transport.py",
        "(max(n // m, 1), max(m // n, 1)) if uniform",
        "(1, 1) if uniform",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "flows: parallel edges are taken in any order",
        "atoms/graphs.py",
        "np.lexsort((costs, self._pair))[self._first]",
        "np.argsort(self._pair)[self._first]",
        "test_sets_of_solvers.py",
        quick=True,
    ),
    Mutant(
        "flows: ancestors move by one edge a round",
        "atoms/graphs.py",
        "ancestors = ancestors[ancestors]\n",
        "ancestors = np.full(size + 1, size)\n",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "spanning trees: costs instead of ranks",
        "atoms/graphs.py",
        "ranks = np.arange(1.0, len(order) + 1.0)",
        "ranks = np.arange(0.0, len(order))",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "matchings: edges that cost something are taken",
        "atoms/graphs.py",
        "[matrix[pairs] < 0.0]",
        "[matrix[pairs] <= 0.0]",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "ordered weights: ratios of sums without the weights",
        "atoms/norms.py",
        "np.cumsum(sizes[order] / top) / self._sums",
        "np.cumsum(sizes[order] / top)",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "ellipsoids: the gauge is that of the centred one",
        "atoms/norms.py",
        "slope, rest = float(np.linalg.norm(v)), float(v @ c), 1.0 - float(c @ c)",
        "slope, rest = float(np.linalg.norm(v)), 0.0, 1.0",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "Fantope: the largest eigenvalues",
        "atoms/matrices.py",
        "[1][:, : self.k]",
        "[1][:, self.n - self.k :]",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "assignments: loads do not go on",
        "native/routes.cpp",
        "through[tail[*node]] += through[*node];",
        "",
        "test_sets_of_solvers.py",
    ),
    Mutant(
        "assignments: the heap compares three of four children",
        "native/routes.cpp",
        "j < std::min(child + 4, size)",
        "j < std::min(child + 3, size)",
        "test_sets_of_solvers.py",
    ),
    # estimators and saved models
    Mutant(
        "estimators: rounding of a constant column is kept",
        "estimators/base.py",
        "rest[:, (X[0] == X).all(axis=0)] = 0",
        "pass",
        "test_estimators.py",
        quick=True,
    ),
    Mutant(
        "estimators: tol is a norm, not its square",
        "estimators/omp.py",
        "np.sqrt(np.maximum(tol, 0))",
        "np.maximum(tol, 0)",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: columns after a zero one have the wrong numbers",
        "estimators/omp.py",
        "columns[codes.indices]",
        "codes.indices",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: a Gram matrix has full rank",
        "estimators/omp.py",
        "tol=len(G) * eps * G.diagonal().max()",
        "tol=0.0",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: y beyond the span of X is forgotten",
        "estimators/omp.py",
        "np.square(Y).sum(axis=0) - decrease)",
        "0 * decrease + np.square(Y).sum(axis=0))",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: a path ends where the first target does",
        "estimators/omp.py",
        "max([1, *map(len, paths)])",
        "max(1, len(paths[0]))",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: the warning of a pursuit that ended early",
        "estimators/omp.py",
        "np.diff(codes.indptr) < limit",
        "np.diff(codes.indptr) < 0",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: intercept without the means of X",
        "estimators/pursuits.py",
        "- x_means @ model.coef_.T",
        "- 0 * x_means @ model.coef_.T",
        "test_estimators.py",
        quick=True,
    ),
    Mutant(
        "estimators: the size before the best",
        "estimators/pursuits.py",
        "1 + int(np.argmin(",
        "max(1, 1) * int(np.argmin(",
        "test_estimators.py",
    ),
    Mutant(
        "estimators: names for half of the split codes",
        "estimators/pursuits.py",
        "return self.n_components_ * (2 if self.split_sign else 1)",
        "return self.n_components_",
        "test_estimators.py",
    ),
    Mutant(
        "saved models: written in place",
        "_files.py",
        "temporary.replace(path)",
        "path.write_bytes(temporary.read_bytes())",
        "test_models.py",
    ),
    Mutant(
        "saved models: any version",
        "models.py",
        'found.get("version") != VERSION',
        'found.get("version") is None',
        "test_models.py",
        quick=True,
    ),
    Mutant(
        "saved models: any attribute",
        "models.py",
        'if unknown := [name for name in found["state"] if not _is_state(cls, name)]:',
        "if unknown := []:",
        "test_models.py",
    ),
    Mutant(
        "saved models: integers for booleans",
        "models.py",
        "value is None or isinstance(value, bool | str)",
        "value is None or isinstance(value, str)",
        "test_models.py",
    ),
    # the command line
    Mutant(
        "command line: wrong input looks like a failed run",
        "cli/manners.py",
        "WRONG, FAILED, INTERRUPTED = 2, 1, 130",
        "WRONG, FAILED, INTERRUPTED = 1, 1, 130",
        "test_cli.py",
    ),
    Mutant(
        "command line: an input may be overwritten",
        "cli/manners.py",
        "if whole in seen:",
        "if not path:",
        "test_cli.py",
    ),
    Mutant(
        "command line: a second Ctrl-C is the first again",
        "cli/manners.py",
        "if self.seen or not self.keeps:",
        "if not self.keeps:",
        "test_cli.py",
    ),
    Mutant(
        "command line: the certificate is rounded down",
        "cli/findings.py",
        "rounded(100 * self.gap, 2, up=True)",
        "rounded(100 * self.gap, 2, up=False)",
        "test_cli.py",
        quick=True,
    ),
    Mutant(
        "command line: missing numbers become the mean",
        "cli/encoding.py",
        "column.cast(pl.Float64).median()",
        "column.cast(pl.Float64).mean()",
        "test_cli.py",
    ),
    Mutant(
        "command line: categories that look like numbers are read as numbers",
        "cli/tables.py",
        "if raw.strip() in texts}",
        "if raw.strip() in ()}",
        "test_cli.py",
    ),
    # the rates
    Mutant(
        "linear rate: delta for delta squared",
        "rates/contraction.py",
        "1 - delta**2 * low",
        "1 - delta * low",
        "test_rates.py",
        quick=True,
    ),
    Mutant(
        "rate of pursuit: delta for its half",
        "rates/sublinear.py",
        "delta=quality(delta) / 2)",
        "delta=quality(delta))",
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
    # the rates of later methods
    Mutant(
        "later rates: away steps forget 1 + delta",
        "rates/later.py",
        "** 2 / (1 + quality(delta)) ** 2",
        "** 2",
        "test_rates_later.py",
        quick=True,
    ),
    Mutant(
        "later rates: width over diameter is not squared",
        "rates/later.py",
        "_slimness(width, diameter) ** 2\n    return linear_affine(good_pairwise",
        "_slimness(width, diameter)\n    return linear_affine(good_pairwise",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: all steps are good",
        "rates/later.py",
        "(update_counts(t) - spare) / 2)",
        "(update_counts(t) - spare))",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: the start spares no atom",
        "rates/later.py",
        "(update_counts(t) - spare) / 2)",
        "update_counts(t) / 2)",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: n! arrangements",
        "rates/later.py",
        "for r in range(n + 1))",
        "for r in range(n, n + 1))",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: cones without the radius",
        "rates/later.py",
        "matching_pursuit_sharp(t, L=L, radius=radius,",
        "matching_pursuit_sharp(t, L=L, radius=1.0,",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: lazy answers are exact", "rates/later.py", "return 1.0 / K", "return 1.0", "test_rates_later.py"
    ),
    Mutant(
        "later rates: backtracking ends at L",
        "rates/later.py",
        "max(_factor(grow) * upper",
        "max(upper",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: backtracking shrinks before the first step",
        "rates/later.py",
        "- (steps - 1) * math.log(shrink)",
        "- steps * math.log(shrink)",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: (t + 2)^2 for (t + 1)^2",
        "rates/later.py",
        "(update_counts(t) + 1) ** 2",
        "(update_counts(t) + 2) ** 2",
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: the distance is not squared",
        "rates/later.py",
        'upper("distance", distance, 0) ** 2',
        'upper("distance", distance, 0)',
        "test_rates_later.py",
    ),
    Mutant(
        "later rates: -x is compared with atoms as it is",
        "domains/parts.py",
        "Direction(-active.x / total, -gx / total, total, shrink)",
        "Direction(-active.x, -gx, 1.0, lambda gamma: shrink(gamma * total))",
        "test_rates_later.py",
    ),
    Mutant(
        "pyramidal width: facets for all faces",
        "geometry/faces.py",
        "while level and len(found) <= MAX_FACES:",
        "while False:",
        "test_faces.py",
    ),
    Mutant(
        "pyramidal width: 0 is never an atom",
        "geometry/faces.py",
        "np.zeros((1, shape.n))]) if origin else shape.atoms",
        "np.zeros((1, shape.n))]) if False else shape.atoms",
        "test_faces.py",
    ),
    Mutant(
        "pyramidal width: opposite facets of a cross-polytope only",
        "geometry/faces.py",
        "harmonic(w[:-1]) if len(w) > 1 else math.inf",
        "math.inf",
        "test_faces.py",
    ),
    Mutant(
        "pyramidal width: faces beyond the budget are left out",
        "geometry/faces.py",
        "if planes is None or faces is None:\n        return 0.0, 2.0",
        "if planes is None or faces is None:\n        return 2.0, 2.0",
        "test_faces.py",
    ),
    Mutant(
        "promises: steps that drop atoms count",
        "promises.py",
        "spare=self.spare)) if self.drops else self.t",
        "spare=self.spare)) if False else self.t",
        "test_promises.py",
        quick=True,
    ),
    Mutant(
        "promises: the atoms of the start are not spared",
        "promises.py",
        "rates.good_steps(self.t, spare=self.spare)",
        "rates.good_steps(self.t)",
        "test_promises.py",
    ),
    Mutant(
        "promises: any start has atoms of the set",
        "promises.py",
        "return self.spare == 0 and (self.over_cone or self.part.A.contains(self.x0) is True)",
        "return True",
        "test_promises.py",
    ),
    Mutant(
        "promises: lazy away steps are linear",
        "promises.py",
        "if not run.drops or run.lazy or not",
        "if not run.drops or not",
        "test_promises.py",
    ),
    Mutant(
        "promises: lazy answers are exact",
        "promises.py",
        "return rates.lazy_quality(oracle.K)",
        "return 1.0",
        "test_promises.py",
    ),
    Mutant(
        "promises: backtracking finds L",
        "promises.py",
        "grow=given.grow, first=1.001 * L",
        "grow=1.001, first=L",
        "test_promises.py",
    ),
    Mutant(
        "promises: a refinement keeps the atoms",
        "promises.py",
        "if not (run.drops and result.refine is not None):",
        "if True:",
        "test_promises.py",
    ),
    Mutant(
        "promises: the width of the hull for that of the cone",
        "promises.py",
        "origin=run.over_cone)",
        "origin=False)",
        "test_promises.py",
    ),
    Mutant(
        "promises: pairwise steps over a cone are as short as atoms",
        "promises.py",
        "if run.swaps else radius",
        "if False else radius",
        "test_promises.py",
    ),
    Mutant(
        "promises: the weights of a cone are as small as the gradient",
        "promises.py",
        "(x + 2 * grad / run.f.mu)",
        "(x + 0.1 * grad / run.f.mu)",
        "test_promises.py",
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
        "power / (move.delta * move.iteration + power)",
        "power / (move.iteration + power)",
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
    Mutant(
        "a model without a minimum is believed",
        "updates/newton.py",
        "q @ (new - w) < 0 and left <= 0.5 * _gap(domain, blocks, w, q)",
        "True",
        "test_robust.py",
    ),
    Mutant(
        "sums of weights are not corrected", "weights/passive.py", "4.0 * EPS * (E @", "4e9 * (E @", "test_robust.py"
    ),
    Mutant(
        "a run begins at an atom above 0",
        "start.py",
        "f.exact and f.value(active.x) > value",
        "f.L is None and f.value(active.x) > value",
        "test_robust.py",
    ),
    # the certificates
    Mutant(
        "bounds forget the quality of an answer",
        "domains/base.py",
        "(answer.dot - self.origin(gx)) / answer.delta",
        "(answer.dot - self.origin(gx))",
        "test_domains.py",
        quick=True,
    ),
    Mutant(
        "sets that are not exact certify",
        "atoms/base.py",
        "first.dot(space, g) if self.exact else -math.inf",
        "first.dot(space, g)",
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
        "0.0 if complete else max(beta, 1e-14 * scale)",
        "0.0 if self.exhausted else beta",
        "test_traps.py",
    ),
    Mutant(
        "the square of the width is lost",
        "domains/base.py",
        "spans * (spans / (2.0 * mu))",
        "spans / (2.0 * mu)",
        "test_domains.py",
    ),
    Mutant(
        "cones: slopes that are not negative by rounding prove a bound",
        "domains/parts.py",
        "if lower >= noise:",
        "if lower >= 0.0:",
        "test_duality.py",
    ),
    Mutant(
        "conjugates: a dual point that was moved may leave the duals of the cones",
        "duality.py",
        "(moved is u or self._in_cones(moved))",
        "True",
        "test_duality.py",
    ),
    Mutant(
        "conjugates: entries at a bound of 0 keep u from the boundary",
        "duality.py",
        "for _ in range(PIN_ROUNDS):",
        "for _ in range(0):",
        "test_duality.py",
    ),
    Mutant(
        "conjugates: a dual point on the boundary of the domain of f* proves a bound beside a span",
        "duality.py",
        "return (moved / self.smallest) * self._row_norms",
        "return 0.0 * self._row_norms",
        "test_duality.py",
        quick=True,
    ),
    Mutant(
        "defaults: factors of whole matrices are refined where they need not move",
        "defaults.py",
        "None if aligned else Factors()",
        "Factors()",
        "test_refine.py",
    ),
    Mutant(
        "dual: the minimum over a hull is that at the gradient",
        "duality.py",
        "bound_from(self._ask(u, active))",
        "bound_from([a.dot for a in answers])",
        "test_duality.py",
        quick=True,
    ),
    Mutant(
        "dual: u need not be orthogonal to spans",
        "duality.py",
        "u - HQ @ self.space.put(inverse @ host(Q.T @ u))",
        "u",
        "test_duality.py",
    ),
    Mutant(
        "dual: products with atoms of cones may be negative",
        "duality.py",
        "missing = self._cone_margin(u) - smallest",
        "missing = self._cone_margin(u)",
        "test_duality.py",
    ),
    Mutant(
        "dual: u may leave the domain of the conjugate",
        "objectives/losses.py",
        "        inside = self._in_range(u)\n",
        "        inside = u is not None\n",
        "test_duality.py",
    ),
    Mutant(
        "dual: extra calls are not counted",
        "solve.py",
        "ask.calls + certificate.calls",
        "ask.calls",
        "test_duality.py",
    ),
    Mutant(
        "contradictions of convexity are not seen",
        "certificates.py",
        "self.contradicted |= ",
        "self.contradicted = False and ",
        "test_duality.py",
    ),
    Mutant(
        "answers from memory are certified",
        "oracles.py",
        "atom], dot, 0.0, 0)",
        "atom], dot, 1.0, 0)",
        "test_beyond.py",
    ),
    # the machinery
    Mutant("the oracle maximises", "atoms/vectors.py", "else -c", "else c", "test_atoms.py", quick=True),
    Mutant(
        "no weight at zero comes back",
        "weights/problem.py",
        "i = self._entering(",
        "i = None and self._entering(",
        "test_weights.py",
        quick=True,
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
        "if not f.value(trial.x) + trial.cost <= ceiling:",
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
        "if not len(active):  # there is no point",
        "if False:  # there is no point",
        "test_solve.py",
    ),
    Mutant(
        "a check uses the random numbers of the run",
        "result.py",
        "begin(CHECK_SEED)",
        "begin()",
        "test_solve.py",
    ),
    Mutant(
        "an interrupted run returns an active set that is half changed",
        "solve.py",
        "        status, memory = Status.INTERRUPTED, _memory_of_interrupted(state, fields)\n",
        "        status, fields = Status.INTERRUPTED, result_fields(state)\n",
        "test_interruption.py",
    ),
    # runs that go on
    Mutant("a continued run forgets L", "steps.py", 'remembers = ("L",)', "remembers = ()", "test_runs.py", quick=True),
    Mutant(
        "a continued run forgets the bound of its oracle",
        "oracles.py",
        "WithMemory(ask, exact, memory)",
        "WithMemory(ask, exact)",
        "test_runs.py",
    ),
    Mutant(
        "a continued run adds up its atoms in another order",
        "active.py",
        'for i in memory["frames"]:',
        'for i in sorted(memory["frames"]):',
        "test_runs.py",
    ),
    Mutant(
        "a run with another dictionary is continued",
        "checkpoints.py",
        'print_._add(f"summand {b} of domain", A.scores(grad))',
        "pass",
        "test_runs.py",
    ),
    Mutant(
        "a run with another Hessian is continued",
        "checkpoints.py",
        'return "f at the last point"',
        "pass",
        "test_runs.py",
    ),
    Mutant(
        "the checkpoint before the last is not kept",
        "checkpoints.py",
        "path.replace(previous(path))",
        "pass",
        "test_runs.py",
    ),
    # derivatives
    Mutant(
        "the curvature of low-rank matrices is left out",
        "derivatives/faces.py",
        "Q = self.T @ self.at.curve(self.T).T + coordinates.curvature(self.at.grad, multipliers)",
        "Q = self.T @ self.at.curve(self.T).T",
        "test_derivatives.py",
        quick=True,
    ),
    Mutant(
        "the slopes of atoms that move are forgotten",
        "derivatives/faces.py",
        "self.T @ self.at.curve(x[None])[0] + moved @ self.at.grad, np",
        "self.T @ self.at.curve(x[None])[0], np",
        "test_derivatives.py",
    ),
    Mutant(
        "a face that another atom may enter counts as stable",
        "derivatives/faces.py",
        ".sum() > len(w):",
        ".sum() > 2 * len(w) + 9:",
        "test_derivatives.py",
    ),
    Mutant(
        "the minimum over a span moves along the chosen atoms only",
        "derivatives/faces.py",
        "if not part.nonnegative and np.abs(scores).max() <= STATIONARY * unit:",
        "if False:",
        "test_derivatives.py",
    ),
    Mutant(
        "a refinement does not look at the clock",
        "refine/factors.py",
        "remaining_decrease <= goal or self.deadline.passed",
        "remaining_decrease <= goal",
        "test_interruption.py",
    ),
    Mutant(
        "a correction does not look at the clock",
        "updates/corrective.py",
        "if step and active.deadline.passed:",
        "if False:",
        "test_interruption.py",
    ),
    # functions with a domain, blocks, faces, pivots
    Mutant(
        "a line search uses gradients beyond the domain of f",
        "line_search.py",
        "reached = math.isfinite(value) and value <= ceiling",
        "reached = True",
        "test_domain_of_f.py",
    ),
    Mutant(
        "a start that is finite by rounding is taken",
        "start.py",
        "last, most = min(last, 2 * question + 1), min(most, 4 * tried)",
        "last, most = question, tried",
        "test_domain_of_f.py",
    ),
    Mutant(
        "a gap is proved without convexity",
        "certificates.py",
        "        if not self.f.convex:",
        "        if False:",
        "test_domain_of_f.py",
    ),
    Mutant(
        "the learned Hessian forgets its second term",
        "updates/learned.py",
        "G - W @ np.linalg.solve(M, W.T)",
        "G",
        "test_learned.py",
    ),
    Mutant(
        "the log-adaptive open loop has the power 2",
        "steps.py",
        "2.0 + math.log1p(move.iteration)",
        "2.0",
        "test_steps.py",
    ),
    Mutant(
        "monotone steps are not halved",
        "steps.py",
        "0.5**halvings * float(run.share)",
        "float(run.share)",
        "test_steps.py",
    ),
    Mutant(
        "away steps leave the face",
        "oracles.py",
        "xp.where(at_low & ~at_high, price - grad",
        "xp.where(at_low & at_high, price - grad",
        "test_steps.py",
    ),
    Mutant(
        "a pivot moves x",
        "refine/pivot.py",
        "w -= w[out] / n[out] * n",
        "w -= 0.5 * w[out] / n[out] * n",
        "test_steps.py",
    ),
    Mutant(
        "blocks that are not asked prove a bound",
        "guards.py",
        "+ float(active.prices[b]), 0.0, 0)",
        "+ float(active.prices[b]), 1.0, 0)",
        "test_blocks.py",
    ),
    Mutant(
        "a block moves the others",
        "updates/blocks.py",
        "active.x, active.wanted = self.f.rest + own.x",
        "active.x, active.wanted = own.x",
        "test_blocks.py",
    ),
    Mutant(
        "an embedded set is at the wrong place",
        "atoms/embedded.py",
        "g[self.start : self.stop]",
        "g[: self.stop - self.start]",
        "test_blocks.py",
    ),
    Mutant(
        "a run never saves on its small problems",
        "updates/corrective.py",
        "self.problem.rounds > EXCHANGES_PER_ATOM * len(active)",
        "False",
        "test_beyond.py",
    ),
    # encode, in Python
    Mutant(
        "a tolerance forgets the scale of weights",
        "coding/tiles.py",
        "np.ldexp(tols, -halves)",
        "tols",
        "test_encode.py",
    ),
    Mutant(
        "weights are not scaled back to the norms of atoms",
        "coding/strategies.py",
        "np.ldexp(codes.x[used], -self.exponents",
        "np.ldexp(codes.x[used], 0 * self.exponents",
        "test_encode_hard.py",
        quick=True,
    ),
    Mutant(
        "float32 is tried for every signal that 16 bits leave",
        "coding/strategies.py",
        "MIN_UNSOLVED_SHARE if in_16_bits else 0.0",
        "0.0",
        "test_encode_strategies.py",
    ),
    Mutant(
        "rows of a given Gram matrix are not checked",
        "coding/strategies.py",
        "            check_used_rows(self.D, self.given, np.unique(tile.codes.atoms[tile.codes.used]))",
        "            pass",
        "test_encode_interface.py",
    ),
    Mutant(
        "an error stops nobody",
        "_threads.py",
        "        stop[0] = 1",
        "        pass",
        "test_threads.py",
    ),
    # clusters, files, indices
    Mutant(
        "scale: equal columns of two pieces, and the last one wins",
        "atoms/pieces.py",
        "winners = np.lexsort((numbers,",
        "winners = np.lexsort((-numbers,",
        "test_streamed.py",
        quick=True,
    ),
    Mutant(
        "scale: what rounding leaves in doubt is decided by the product of a piece",
        "atoms/pieces.py",
        "merit >= last - 2.0 * doubt",
        "merit >= last",
        "test_streamed.py",
    ),
    Mutant(
        "scale: a run forgets the columns that it has",
        "atoms/pieces.py",
        "missing = [j for j in wanted if j not in cache]",
        "missing = wanted",
        "test_streamed.py",
    ),
    Mutant(
        "scale: the margin of a copy on disk leaves out the rounding in 8 bits",
        "atoms/copies.py",
        "margin = error + ",
        "margin = 0.9 * error + ",
        "test_streamed.py",
        quick=True,
    ),
    Mutant(
        "scale: the margin of a copy on disk leaves out float32",
        "atoms/copies.py",
        "rounding(d, np.float32) *",
        "0 *",
        "test_streamed.py",
    ),
    Mutant(
        "scale: the copy of another dictionary is used",
        "atoms/copies.py",
        "bool((np.fromfile(path, fingerprint.dtype, offset=end) == fingerprint).all())",
        "True",
        "test_streamed.py",
    ),
    Mutant(
        "scale: blocks that are finished are coded again",
        "coding/files.py",
        "done = {int(each.name) for each in path.iterdir() if each.name.isdigit()}",
        "done = set()",
        "test_streamed.py",
        quick=True,
    ),
    Mutant(
        "scale: codes of another request are gone on with",
        "coding/files.py",
        'if request != attributes["request"]:',
        "if False:",
        "test_streamed.py",
    ),
    Mutant(
        "scale: the Hessian of a sum stays where it was",
        "cluster/sums.py",
        "if self.last is None or not np.array_equal(self.last[0], x):",
        "if self.last is None:",
        "test_cluster.py",
    ),
    Mutant(
        "scale: Ctrl-C leaves the cluster at work",
        "cluster/workers.py",
        "        client.cancel(futures)\n",
        "        pass\n",
        "test_cluster.py",
    ),
    Mutant(
        "scale: a worker that was killed is an error",
        "cluster/workers.py",
        "            except OSError:  # the worker is gone\n                return {}",
        "            except OSError:\n                raise",
        "test_cluster.py",
    ),
    Mutant(
        "scale: residuals of other signals replace atoms",
        "dictionaries/spread.py",
        "rows[owners == i] - starts[i] for i in blocks",
        "rows[owners == i] % 2 for i in blocks",
        "test_cluster.py",
    ),
    Mutant(
        "scale: an index proves what it finds",
        "oracles.py",
        "return Answer(atoms, dot, 0.0, 0)",
        "return Answer(atoms, dot, 1.0, 0)",
        "test_indexed.py",
        quick=True,
    ),
    # learn
    Mutant(
        "learn keeps no old code that is better",
        "dictionaries/learning.py",
        "np.flatnonzero(old.costs < new.costs)",
        "np.flatnonzero(old.costs < 0)",
        "test_learn.py",
        quick=True,
    ),
    Mutant(
        "learn keeps the code of a signal whose atom was exchanged",
        "dictionaries/learning.py",
        "np.where(lost, np.inf, fit.costs)",
        "fit.costs",
        "test_learn.py",
    ),
    Mutant(
        "learn exchanges atoms whether or not the objective falls",
        "dictionaries/learning.py",
        "return new if new.objective < fit.objective else None",
        "return new",
        "test_learn.py",
    ),
    Mutant(
        "learn exchanges no atoms",
        "dictionaries/learning.py",
        "return new if new.objective < fit.objective else None",
        "return None",
        "test_learn.py",
    ),
    Mutant(
        "learn replaces no unused atoms",
        "dictionaries/learning.py",
        "np.flatnonzero(uses(fit.X) == 0)",
        "np.flatnonzero(uses(fit.X) < 0)",
        "test_learn.py",
    ),
    Mutant(
        "learn replaces no rarely used atoms online",
        "dictionaries/learning.py",
        "if mean >= MIN_MEAN_USES:",
        "if False:",
        "test_learn.py",
    ),
    Mutant(
        "learn forgets nothing",
        "dictionaries/learning.py",
        "old * float(share**forgetting) + new",
        "old + new",
        "test_learn.py",
    ),
    Mutant(
        "learn draws replacements from missing entries, too",
        "dictionaries/learning.py",
        "np.where(signals.W[rows] > 0, R[rows], 0)",
        "R[rows]",
        "test_learn.py",
    ),
    Mutant(
        "learn forgets the factors of codes that were added before",
        "dictionaries/learning.py",
        "        statistics = statistics.rescaled(factors)\n",
        "",
        "test_learn.py",
    ),
    Mutant(
        "learn: K-SVD forgets the share of an atom in its own residuals",
        "dictionaries/updates.py",
        "d = step + old * (x @ x)",
        "d = step",
        "test_learn.py",
        quick=True,
    ),
    Mutant(
        "learn: K-SVD with weights forgets the share of an atom",
        "dictionaries/updates.py",
        "E + np.outer(x[part], old), out=change",
        "E, out=change",
        "test_learn.py",
    ),
    Mutant(
        "learn: K-SVD forgets the curvature of weights of entries",
        "dictionaries/updates.py",
        "W @ np.square(d))",
        "np.ones_like(x))",
        "test_learn.py",
    ),
    Mutant(
        "learn: missing entries are imputed by what Y holds",
        "dictionaries/updates.py",
        "signals.Y - R + signals.W * R / most, most",
        "signals.Y, most",
        "test_learn.py",
    ),
    Mutant(
        "learn: atoms grow although weights are penalised",
        "dictionaries/updates.py",
        "if penalised and (square := float(d @ d)) > 1:",
        "if penalised and (square := float(d @ d)) > 1e9:",
        "test_learn.py",
    ),
    Mutant(
        "learn: a non-negative dictionary has negative entries",
        "dictionaries/updates.py",
        "            if nonnegative:\n",
        "            if False:\n",
        "test_learn.py",
    ),
    Mutant(
        "learn: a resumed run counts its sweeps anew",
        "dictionaries/__init__.py",
        "past = int(trace.rows[-1][0]) if len(trace) else 0",
        "past = 0",
        "test_learn.py",
    ),
    # encode over a Gram matrix, several signals in step
    Mutant(
        "the best atom need not lead by its whole error",
        "native/fast.h",
        "lead[p] = INT16 ? T(int(bound[p])) : bound[p];",
        "lead[p] = INT16 ? T(int(bound[p] / 2)) : bound[p] / 2;",
        "test_encode_bounds.py",
        quick=True,
    ),
    Mutant(
        "atoms in 16 bits are believed",
        "native/fast.h",
        "* std::sqrt(rest) / t + off * size)",
        "* std::sqrt(rest) / t)",
        "test_encode_bounds.py",
    ),
    Mutant(
        "so are signals",
        "native/fast.h",
        "((tables.longest + off) * std::sqrt(rest) / t + off * size)",
        "(off * size)",
        "test_encode_bounds.py",
    ),
    Mutant("so are Gram rows", "native/fast.h", " + t * absolute_sum + 2 * m", " + 2 * m", "test_encode_bounds.py"),
    Mutant(
        "so are weights", "native/fast.h", "absolute_sum + 2 * m * rounded)", "absolute_sum)", "test_encode_bounds.py"
    ),
    Mutant("so are their products", "native/fast.h", "(T(s + 2) + T(1. / 16))", "T(2)", "test_encode_bounds.py"),
    Mutant(
        "weights out of the range of 16 bits are believed",
        "native/fast.h",
        "((t * largest_term <= T(SHORT_MAX)) & (bound <= T(MAX_LEAD)))",
        "(bound <= T(MAX_LEAD))",
        "test_encode_bounds.py",
    ),
    Mutant(
        "products leave 32 bits",
        "native/tables.h",
        "SIGNAL_NORM = 65000",
        "SIGNAL_NORM = 75000",
        "test_encode_bounds.py",
    ),
    Mutant(
        "the parts of a correlation in float32 are believed",
        "native/fast.h",
        "(s + 4) * (tables.longest * length + tables.mu * absolute_sum)",
        "(s + 4) * tables.longest * length",
        "test_encode_bounds.py",
    ),
    Mutant(
        "OLS believes its correlations in float32",
        "native/fast.h",
        "        error_c += magnitude(move) * (entry + tick) + tick * length;\n",
        "",
        "test_encode_bounds.py",
    ),
    Mutant(
        "of equal atoms, not the first is taken",
        "native/fast.h",
        "if (same_atom(D, close[e], int(found))) return close[e];",
        "if (same_atom(D, close[e], int(found))) continue;",
        "test_encode_hard.py",
    ),
    Mutant(
        "an atom enters as if the others were not there",
        "native/fast.h",
        "            pivot -= u * u;\n",
        "",
        "test_encode.py",
    ),
    Mutant(
        "digits lost over many pivots go unnoticed",
        "native/fast.h",
        " || !(largest_inverse[p] <= MAX_INVERSE)",
        "",
        "test_encode_hard.py",
    ),
    Mutant(
        "a signal that is stuck counts as done",
        "native/fast.h",
        "root[p] == 0 && only_rounding_left(p, s) ? s",
        "root[p] == 0 ? s",
        "test_encode_hard.py test_encode_strategies.py",
    ),
    Mutant(
        "and one that is done as stuck",
        "native/fast.h",
        "const bool ends = only_rounding_left(p, s);",
        "const bool ends = false;",
        "test_encode_strategies.py",
    ),
    Mutant(
        "a residual near tol is not formed",
        "native/fast.h",
        "residual_square[p] < goal - doubt || (residual_square[p] <= goal + doubt && residual_norm(p, s) <= tol)",
        "residual_square[p] <= goal",
        "test_encode_hard.py",
    ),
    Mutant(
        "the rest of a signal is left out of products",
        "native/simd.h",
        "    for (; i < count; ++i) sum += u[i] * v[i];\n",
        "",
        "test_encode.py",
    ),
    # one signal at a time
    Mutant(
        "dependent atoms enter",
        "native/pursuit.h",
        "4 * (i + 2) * EPS<T> * sum",
        "0.01 * EPS<T> * sum",
        "test_encode_hard.py",
    ),
    Mutant(
        "steps of NNLS are not cut",
        "native/pursuit.h",
        "step = x[i] > 0 ? x[i] / (x[i] - z[i]) : 0;",
        "step = 1;",
        "test_encode.py test_encode_hard.py",
        quick=True,
    ),
    Mutant(
        "atoms that residual_square stay away",
        "native/pursuit.h",
        "candidate_norms[atoms[i]] = norms[i];",
        ";",
        "test_encode_hard.py",
    ),
    Mutant(
        "OLS forgets what atoms lose to the active ones",
        "native/pursuit.h",
        "c[j] -= last_step * t[j], v[j] -= t[j] * t[j];",
        "c[j] -= last_step * t[j];",
        "test_encode.py",
    ),
    Mutant(
        "weights are not refined", "native/pursuit.h", "turn < 2 && method", "turn < 0 && method", "test_encode_hard.py"
    ),
    Mutant(
        "in full precision, of equal atoms not the first is taken",
        "native/pursuit.h",
        "if (same_atom(D, i, found, w)) return i;",
        "if (same_atom(D, i, found, w)) return found;",
        "test_encode_hard.py",
    ),
    Mutant(
        "an atom of the Lasso does not replace its combination",
        "native/lasso.h",
        "if (enter(found)) entered = j;",
        "if (enter(found)) entered = j; else if (s >= 0) barred[found] = true;",
        "test_encode_lasso.py",
        quick=True,
    ),
    Mutant(
        "atoms that enter the Lasso together have a wrong inverse",
        "native/lasso.h",
        "pivots[p][p] = inverse;",
        "pivots[p][p] = 1;",
        "test_encode_lasso.py",
    ),
    Mutant(
        "steps of the Lasso are not cut",
        "native/lasso.h",
        "step = x[i] > 0 ? -x[i] / z[i] : 0;",
        "step = 1;",
        "test_encode_lasso.py",
    ),
    Mutant(
        "gaps forget that a dual point must be feasible",
        "coding/gaps.py",
        "theta = np.where(most > penalties, penalties / most * (1 - 4 * EPS), 1.0)",
        "theta = np.ones(len(most))",
        "test_encode_lasso.py",
    ),
    Mutant(
        "gaps forget the penalty of the shifted point",
        "coding/gaps.py",
        "total(penalties[row] * weight - gain)",
        "total(-gain)",
        "test_encode_lasso.py",
    ),
    Mutant("matching pursuit ends early", "native/pursuit.h", "MP_STEPS = 10", "MP_STEPS = 9", "test_encode.py"),
    Mutant(
        "residuals forget weights", "native/direct.h", "weighted[i] *= P.w[i];", "weighted[i] *= 1;", "test_encode.py"
    ),
    Mutant(
        "OLS from residuals keeps old correlations",
        "native/direct.h",
        "P.remove_direction(products, correlations), products += D.n;",
        "products += D.n;",
        "test_encode.py",
    ),
    # one signal on a large dictionary, and the screened oracle
    Mutant(
        "too much is left of an atom",
        "native/alone.h",
        "            low[j] -= most * most;\n",
        "",
        "test_encode_strategies.py",
    ),
    Mutant(
        "old directions are not caught up with",
        "native/alone.h",
        "i = seen[j]; i < P.s",
        "i = larger(int(seen[j]), P.s - 1); i < P.s",
        "test_encode_strategies.py",
    ),
    Mutant(
        "lost digits of a signal alone",
        "native/alone.h",
        "            if (ols && P.ill_conditioned()) return;\n",
        "",
        "test_encode_hard.py",
    ),
    Mutant(
        "a column of each block is left out",
        "native/screen.h",
        "smaller((k + 1) * piece, count)",
        "smaller((k + 1) * piece - 1, count)",
        "test_encode_strategies.py",
    ),
    Mutant(
        "intervals are too narrow",
        "native/screen.h",
        "const double radius = (which",
        "const double radius = 0.5 * (which",
        "test_screened.py",
        quick=True,
    ),
    Mutant(
        "the vector in 16 bits is believed",
        "native/screen.h",
        " + norm[j[r]] * g.rest + 1e-3",
        " + 1e-3",
        "test_screened.py",
    ),
    Mutant(
        "the second code is subtracted",
        "native/screen.h",
        "(pass == 0 ? 1 : FINE);",
        "(pass == 0 ? 1 : -FINE);",
        "test_screened.py",
    ),
    Mutant(
        "sums of codes leave 32 bits",
        "native/screen.h",
        "(2147483647.0 / 127) / D.d)",
        "(2147483647.0 / 127) * 4 / D.d)",
        "test_screened.py",
    ),
    Mutant(
        "an order within rounding is believed",
        "atoms/screening.py",
        "doubt = 2.0 * rounding",
        "doubt = 0.0 * rounding",
        "test_screened.py",
    ),
    Mutant("a Gram matrix lacks its diagonal", "native/level.cpp", "b <= a; ++b", "b < a; ++b", "test_matrices.py"),
    # models: weights, intercepts, ridges, several outputs
    Mutant(
        "labels: the bounds on gradients keep their dtype",
        "objectives/base.py",
        "        other._set_constants()\n",
        "",
        "test_arrays.py",
    ),
    Mutant(
        "labels: a ridge keeps their dtype",
        "objectives/ridge.py",
        "self if inner is self.f else",
        "self if inner is not None else",
        "test_arrays.py",
    ),
    Mutant(
        "weights: the conjugate of the Poisson loss has none",
        "objectives/losses.py",
        "s * x_log_x(self.space.xp, rate / s)",
        "x_log_x(self.space.xp, rate)",
        "test_duality.py",
    ),
    Mutant(
        "weights: the smoothness of the logistic loss has none",
        "objectives/losses.py",
        "0.25 * self._largest_weight",
        "0.25",
        "test_objectives.py",
    ),
    Mutant(
        "an intercept counts as an atom",
        "active.py",
        "self.weights[self._counted[self.blocks]]",
        "self.weights",
        "test_path.py",
        quick=True,
    ),
    Mutant(
        "an intercept is not fitted first",
        "solve.py",
        "_fit_uncounted(f, domain, stop) if start is None else start",
        "start",
        "test_path.py",
    ),
    Mutant(
        "inner products of two frames in one triangle only",
        "active.py",
        "out[row, other[2]] = out[other[2], row] = other",
        "out[row, other[2]] = other",
        "test_lifted.py",
    ),
    Mutant(
        "ridge: the oracle does not see it",
        "atoms/combinations.py",
        "product = product + self._root * g[self.n :, ...]",
        "pass",
        "test_lifted.py",
    ),
    Mutant(
        "ridge: the Gram matrix does not have it",
        "atoms/frames.py",
        "which) + h * self._below[np.ix_(which, which)]",
        "which)",
        "test_lifted.py",
    ),
    Mutant(
        "greedy models: coefficients within groups are not refitted",
        "estimators/greedy.py",
        "refine=refine, stop",
        "refine=None, stop",
        "test_linear_models.py",
    ),
    Mutant(
        "models: columns are not brought to unit scale",
        "estimators/linear.py",
        "            X /= spread\n",
        "            spread = np.ones_like(spread)\n",
        "test_linear_models.py",
    ),
    Mutant(
        "models: scores of classes may drift together",
        "estimators/linear.py",
        "intercept - intercept.mean()",
        "intercept",
        "test_linear_models.py",
    ),
    # reports, plots, lines about a run
    Mutant(
        "reports: percentages rounded to the nearest",
        "report/words.py",
        "rounding=ROUND_CEILING if up else ROUND_FLOOR",
        'rounding="ROUND_HALF_EVEN"',
        "test_report.py::test_percentages_never_understate",
    ),
    Mutant(
        "reports: what is known without a run counts as proved",
        "report/words.py",
        "if not math.isfinite(gap) or value - gap <= infimum < value:",
        "if not math.isfinite(gap):",
        "test_report.py::test_the_certificate_in_words_is_true",
        quick=True,
    ),
    Mutant(
        "reports: names as HTML",
        "report/results.py",
        "name = escape(_name(result.atoms[i], None if result.blocks[i] else names))",
        "name = _name(result.atoms[i], None if result.blocks[i] else names)",
        "test_report.py::test_names_of_atoms_and_titles_are_escaped",
    ),
    Mutant(
        "reports: bounds that may fail are certain",
        "report/words.py",
        "own = 0.0 if A.exact else",
        "own = 0.0 if True else",
        "test_report.py::test_a_bound_that_holds_with_high_probability_says_so",
    ),
    Mutant(
        "plots: times below a second are a second",
        "plots.py",
        'x = np.maximum(x, 1.0) if against != "seconds" else x',
        "x = np.maximum(x, 1.0)",
        "test_plots.py::test_traces_of_several_runs_are_drawn_point_by_point",
    ),
    Mutant(
        "verbose: a line for every iteration",
        "solve.py",
        "if continued or state.iteration & (state.iteration - 1) == 0:",
        "if True:",
        "test_solve.py::test_verbose_writes_a_line_per_power_of_two_and_one_at_the_end",
    ),
    # models of low rank
    Mutant(
        "completion: the range of the values is not kept",
        "estimators/completion.py",
        "np.clip(entry, *self.range_) if self.clip else entry",
        "entry",
        "test_completion.py",
    ),
    Mutant(
        "completion: rows without observations have a part in the matrix",
        "estimators/completion.py",
        "np.where(both, entry, 0.0)",
        "entry",
        "test_completion.py",
    ),
    Mutant(
        "completion: rows are not scaled back",
        "estimators/completion.py",
        "self.scale[:, None] * found.U * found.s, found.V",
        "found.U * found.s, found.V",
        "test_completion.py",
        quick=True,
    ),
    Mutant(
        "entries: the weight of a repeated observation is that of one",
        "estimators/entries.py",
        "return cls(labels, places[:, first], low + rest, total)",
        "return cls(labels, places[:, first], low + rest, weights[first])",
        "test_completion.py",
    ),
    Mutant(
        "tensors: a new label has the factors of the last one",
        "estimators/tensors.py",
        "np.vstack([U, U.mean(axis=0)])[k]",
        "U[k]",
        "test_completion.py",
    ),
    Mutant(
        "components: codes forget the multiplier of the radius",
        "estimators/pca.py",
        "self._l2 + _multiplier(f, result) / matrix.s",
        "self._l2 + 0.0 * matrix.s",
        "test_completion.py",
        quick=True,
    ),
    Mutant(
        "components: the ridge is missing in the gradient",
        "estimators/pca.py",
        "grad + self.l2 * x",
        "grad",
        "test_completion.py",
    ),
]


class Compiler:
    """Compiles changed kernels in one folder, so that a change of a header costs the compilation of one level."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.build_folder, self.lock = folder / "tree", folder / "build", Lock()
        for name in ("src", "tools"):
            shutil.copytree(ROOT / name, self.tree / name, ignore=shutil.ignore_patterns("__pycache__", "_core*"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, self.tree)
        self.python = str(folder / "venv" / "bin" / "python")
        run([sys.executable, "-m", "venv", str(folder / "venv")])
        self.install(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
        self.install(self.backend("print(*build_backend.get_requires_for_build_wheel())").split())
        level = native.core().level
        self.settings = {
            "build-dir": str(self.build_folder),
            "cmake.define.PURSUIT_LEVELS": "v3" if level == "v4" else level,
        }

    def install(self, packages: list[str]) -> None:
        if packages:
            run([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])

    def backend(self, code: str) -> str:
        """What a program prints that has the build backend of the project."""
        path = {**os.environ, "PYTHONPATH": str(self.tree / "tools")}
        return run([self.python, "-c", f"import build_backend\n{code}"], cwd=self.tree, env=path)

    def compile(self, mutant: Mutant, package: Path) -> None:
        """The kernels, changed, into a copy of the package."""
        with self.lock:
            file = self.tree / "src" / "pursuit" / mutant.file
            before = file.read_text()
            file.write_text(before.replace(mutant.old, mutant.new) if mutant.old else before)
            wheels = self.build_folder.parent / "wheels"
            try:
                self.backend(f"build_backend.build_wheel({str(wheels)!r}, {self.settings!r})")
            finally:
                file.write_text(before)
            (wheel,) = wheels.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (name for name in archive.namelist() if Path(name).name.startswith("_core"))
                archive.extract(name, package.parent)
            wheel.unlink()


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed.\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def survives(mutant: Mutant, compiler: Compiler) -> bool:
    """Whether the named tests pass on the broken copy."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "src" / "pursuit"
        shutil.copytree(ROOT / "src" / "pursuit", package, ignore=shutil.ignore_patterns("__pycache__", "_core*"))
        if mutant.compiled:
            compiler.compile(mutant, package)
        else:
            shutil.copy(native.core().__file__, package / "native")
            target = package / mutant.file
            target.write_text(target.read_text().replace(mutant.old, mutant.new))
        tests = [str(ROOT / "tests" / name) for name in mutant.tests.split()]
        options = ["-x", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        copy = {**os.environ, "PURSUIT_FOLDER": str(package.parent)}  # see tests/conftest.py
        done = subprocess.run(command, cwd=folder, env=copy, capture_output=True, text=True, check=False)
        if done.returncode > 1:  # below 0: what it broke killed the tests, which is noticed too
            sys.exit(f"mutant '{mutant.breaks}': the tests did not run.\n{done.stdout}{done.stderr}")
        return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few mutants of every kind")
    parser.add_argument("words", nargs="*", help="only mutants whose description contains one of these")
    arguments = parser.parse_args()
    for mutant in MUTANTS:
        found = (ROOT / "src" / "pursuit" / mutant.file).read_text().count(mutant.old)
        if found != 1:
            sys.exit(f"mutant '{mutant.breaks}': its text stands {found} times in {mutant.file}, not once.")
    chosen = [mutant for mutant in MUTANTS if mutant.quick or not arguments.quick]
    if arguments.words:
        chosen = [mutant for mutant in chosen if any(word in mutant.breaks for word in arguments.words)]
    chosen.sort(key=lambda mutant: not mutant.compiled)  # compilers work while tests run
    kernel_tests = " ".join(sorted({name for mutant in chosen if mutant.compiled for name in mutant.tests.split()}))
    unchanged = [Mutant("nothing", "native/level.cpp", "", "", kernel_tests)] if kernel_tests else []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        compiler = Compiler(Path(folder))
        verdicts = list(pool.map(lambda mutant: survives(mutant, compiler), unchanged + chosen))
    if unchanged and not verdicts.pop(0):
        sys.exit(f"{kernel_tests} do not pass on kernels that are compiled and not changed.")
    for mutant, alive in zip(chosen, verdicts, strict=True):
        print(f"{'SURVIVED' if alive else 'caught':10}{mutant.breaks}")
    print(f"\n{len(chosen) - sum(verdicts)} of {len(chosen)} mutants caught")
    sys.exit(any(verdicts))


if __name__ == "__main__":
    main()
