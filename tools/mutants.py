"""Breaks the code on purpose, one place at a time, and checks that a test fails.

python tools/mutants.py [--quick]              every mutant of tools/mutants.txt, or those marked quick
python tools/mutants.py --function rates       those of functions whose name contains a word
python tools/mutants.py --check                only whether every function and every place is there
python tools/mutants.py --every weights.problem:_longest_step test_weights.py    every place of one function

A line of mutants.txt is `module:function operator place tests [quick]`: the operator (see OPERATORS) is applied to the
syntax tree of the function, at its place-th site, counted from 0 in the order of the source. The package is copied to a
temporary folder, changed there, and the tests run on the copy; an interrupted run leaves the working tree as it is. A
mutant that survives is a missing test, or it changes nothing that can be observed and leaves the list.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import NamedTuple

from pursuit import native

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"
SECONDS = 300
"""A mutant whose tests run longer than this is caught: it does not end."""

Operator = Callable[[ast.AST], ast.AST | None]  # the node that replaces a node; None: the operator does not apply

# ---------------------------------------------------------------------- operators
OPPOSITE = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn}
INVERSE = {ast.Add: ast.Sub, ast.Mult: ast.Div}
TWIN = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "lower": "upper", "floor": "ceil"}
for table in (OPPOSITE, INVERSE, TWIN):
    table |= {other: one for one, other in table.items()}


def negate(node: ast.AST) -> ast.AST | None:
    """The first comparison of a chain becomes its opposite."""
    if not isinstance(node, ast.Compare):
        return None
    return ast.Compare(node.left, [OPPOSITE[type(node.ops[0])](), *node.ops[1:]], node.comparators)


def swap(node: ast.AST) -> ast.AST | None:
    """min becomes max, any becomes all, lower becomes upper, and so on."""
    if isinstance(node, ast.Attribute) and node.attr in TWIN:
        return ast.Attribute(node.value, TWIN[node.attr], node.ctx)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TWIN:
        return ast.Call(ast.Name(TWIN[node.func.id], ast.Load()), node.args, node.keywords)
    return None


def operand(index: int) -> Operator:
    """a + b, a * b, a and b, ... become a, or b."""

    def change(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.BinOp):
            return (node.left, node.right)[index]
        return node.values[index] if isinstance(node, ast.BoolOp) else None

    return change


def sign(node: ast.AST) -> ast.AST | None:
    """Sums become differences, products quotients, and the other way round; -a becomes a."""
    if isinstance(node, ast.BinOp) and type(node.op) in INVERSE:
        return ast.BinOp(node.left, INVERSE[type(node.op)](), node.right)  # type: ignore[arg-type]
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None


def shift(node: ast.AST) -> ast.AST | None:
    """A number grows by 1."""
    return ast.Constant(node.value + 1) if type(getattr(node, "value", None)) in (int, float) else None


def bare(node: ast.AST) -> ast.AST | None:
    """f(a, ...) becomes a."""
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        return node.args[0]
    return None


def condition(holds: bool) -> Operator:
    """The condition of an `if` holds, so that a guarded return comes early; or that of an `if` or a `while` fails."""

    def change(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, (ast.If, ast.IfExp) if holds else (ast.If, ast.IfExp, ast.While)):
            return None
        changed = copy.copy(node)
        changed.test = ast.Constant(holds)
        return changed

    return change


def skip(node: ast.AST) -> ast.AST | None:
    """A statement that changes something is left out."""
    changes = isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    stores = isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript))
    return ast.Pass() if changes or stores else None


OPERATORS = {"negate": negate, "swap": swap, "left": operand(0), "right": operand(-1), "sign": sign, "shift": shift}
OPERATORS |= {"bare": bare, "always": condition(True), "never": condition(False), "skip": skip}

# ---------------------------------------------------------------------- mutants


class Mutant(NamedTuple):
    function: str
    operator: str
    place: int
    tests: str
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.function} {self.operator} {self.place} {self.tests}"


class Change(ast.NodeTransformer):
    """Applies an operator at one site; messages of exceptions and types are left alone."""

    def __init__(self, operator: Operator, place: int) -> None:
        self.operator, self.places_left, self.words = operator, place, ""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Raise, ast.JoinedStr)):
            return node
        changed = self.operator(node)
        if changed is not None:
            self.places_left -= 1
            if self.places_left == -1:
                self.words = "  ->  ".join(ast.unparse(each).splitlines()[0] for each in (node, changed))
                return changed
        return self.generic_visit(node)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a module by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node


def mutate(mutant: Mutant) -> tuple[Path, str, str]:
    """The file that a mutant changes, what it becomes, and the change in words."""
    module, name = mutant.function.split(":")
    path = PACKAGE / module.replace(".", "/")
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
    function = dict(functions(tree)).get(name)
    if function is None:
        raise LookupError(f"mutants.txt names {mutant.function}, which is not in the package.")
    change = Change(OPERATORS[mutant.operator], mutant.place)
    function.body = [change.visit(statement) for statement in function.body]  # type: ignore[misc]
    if not change.words:
        raise LookupError(f"mutants.txt names {mutant}, and {name} has no such place.")
    return file, ast.unparse(ast.fix_missing_locations(tree)), change.words


def run(mutant: Mutant) -> tuple[bool, str]:
    """Whether the tests notice, and a line that says so."""
    file, text, words = mutate(mutant)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pursuit-mutant-") as folder:
        package = Path(folder) / "pursuit"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("_core*"))
        shutil.copy(native.core().__file__, package / "native")
        (package / file.relative_to(PACKAGE)).write_text(text)
        tests = [str(ROOT / "tests" / name) for name in mutant.tests.split(",")]
        options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
        env = os.environ | {"PURSUIT_FOLDER": folder, "OPENBLAS_NUM_THREADS": "1"}  # see tests/conftest.py
        command = [sys.executable, "-m", "pytest", *options, *tests]
        ways = {"cwd": folder, "env": env, "capture_output": True, "text": True, "timeout": SECONDS}
        try:
            done = subprocess.run(command, check=False, **ways)
        except subprocess.TimeoutExpired:
            return True, f"caught    {mutant}: {words}  ({SECONDS} s)"
    if done.returncode > 1:  # below 0: the broken code ended the tests, which is noticed too
        return False, f"NO TEST   {mutant}: {words}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    verdict = "caught  " if done.returncode else "SURVIVED"
    return bool(done.returncode), f"{verdict}  {mutant}: {words}  ({time.monotonic() - begin:.0f} s)"


# ---------------------------------------------------------------------- the command


def stored() -> list[Mutant]:
    """The mutants of mutants.txt."""
    lines = filter(
        None, (line.split("#")[0].split() for line in (ROOT / "tools" / "mutants.txt").read_text().splitlines())
    )
    return [Mutant(name, kind, int(place), tests, bool(quick)) for name, kind, place, tests, *quick in lines]


def every(function: str, tests: str) -> Iterator[Mutant]:
    """The mutants of all places of a function."""
    for operator in OPERATORS:
        for place in count():
            mutant = Mutant(function, operator, place, tests)
            if missing(mutant):
                break
            yield mutant


def missing(mutant: Mutant) -> str:
    """Why a mutant cannot be made; nothing where it can."""
    try:
        mutate(mutant)
    except LookupError as reason:
        return str(reason)
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--function", default="")
    parser.add_argument("--every", nargs=2, metavar=("FUNCTION", "TESTS"))
    options = parser.parse_args()
    mutants = list(every(*options.every)) if options.every else stored()
    if reasons := sorted(set(map(missing, mutants)) - {""}):
        sys.exit("\n".join(reasons))
    chosen = [m for m in mutants if options.function in m.function and (m.quick or not options.quick)]
    if options.check or not chosen:
        sys.exit(0 if chosen else "no mutant has this name.")
    caught = 0
    for noticed, line in ThreadPoolExecutor(os.cpu_count()).map(run, chosen):
        print(line, flush=True)
        caught += noticed
    print(f"\n{caught} of {len(chosen)} mutants caught")
    sys.exit(caught < len(chosen))


if __name__ == "__main__":
    main()
