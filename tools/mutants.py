"""Breaks the code on purpose, one place at a time, and checks that a test fails.

python tools/mutants.py                        every mutant of tools/mutants.txt
python tools/mutants.py --quick                those marked quick
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
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pursuit import native

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"
LIST = ROOT / "tools" / "mutants.txt"
SECONDS = 300
"""A mutant whose tests run longer than this is caught: it does not end."""

Operator = Callable[[ast.AST], ast.AST | None]
"""The node that replaces a node, or None where the operator does not apply."""

# ---------------------------------------------------------------------- operators

OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
}
OPPOSITE |= {other: one for one, other in OPPOSITE.items()}
INVERSE: dict[type[ast.AST], type[ast.AST]] = {ast.Add: ast.Sub, ast.Mult: ast.Div}
INVERSE |= {other: one for one, other in INVERSE.items()}
TWIN = {"min": "max", "minimum": "maximum", "argmin": "argmax", "any": "all", "lower": "upper", "floor": "ceil"}
TWIN |= {other: one for one, other in TWIN.items()}


def negate(node: ast.AST) -> ast.AST | None:
    """The first comparison of a chain becomes its opposite."""
    if not isinstance(node, ast.Compare):
        return None
    first, *others = node.ops
    return ast.Compare(node.left, [OPPOSITE[type(first)](), *others], node.comparators)  # type: ignore[list-item]


def swap(node: ast.AST) -> ast.AST | None:
    """min becomes max, any becomes all, lower becomes upper, and so on."""
    if isinstance(node, ast.Attribute) and node.attr in TWIN:
        return ast.Attribute(node.value, TWIN[node.attr], node.ctx)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TWIN:
        return ast.Call(ast.Name(TWIN[node.func.id], ast.Load()), node.args, node.keywords)
    return None


def left(node: ast.AST) -> ast.AST | None:
    """a + b, a * b, a and b, ... become a."""
    if isinstance(node, ast.BinOp):
        return node.left
    return node.values[0] if isinstance(node, ast.BoolOp) else None


def right(node: ast.AST) -> ast.AST | None:
    """a + b, a * b, a and b, ... become b."""
    if isinstance(node, ast.BinOp):
        return node.right
    return node.values[-1] if isinstance(node, ast.BoolOp) else None


def sign(node: ast.AST) -> ast.AST | None:
    """Sums become differences, products quotients, and the other way round; -a becomes a."""
    if isinstance(node, ast.BinOp) and type(node.op) in INVERSE:
        return ast.BinOp(node.left, INVERSE[type(node.op)](), node.right)  # type: ignore[arg-type]
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else None


def shift(node: ast.AST) -> ast.AST | None:
    """A number grows by 1."""
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return ast.Constant(node.value + 1) if is_number else None  # type: ignore[attr-defined]


def bare(node: ast.AST) -> ast.AST | None:
    """f(a, ...) becomes a."""
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        return node.args[0]
    return None


def _conditional(node: ast.AST, test: ast.expr) -> ast.AST:
    changed = copy.copy(node)
    changed.test = test  # type: ignore[attr-defined]
    return changed


def always(node: ast.AST) -> ast.AST | None:
    """The condition of an `if` holds: where it guards a return, the function returns early."""
    return _conditional(node, ast.Constant(True)) if isinstance(node, (ast.If, ast.IfExp)) else None


def never(node: ast.AST) -> ast.AST | None:
    """The condition of an `if` or a `while` fails."""
    return _conditional(node, ast.Constant(False)) if isinstance(node, (ast.If, ast.IfExp, ast.While)) else None


def skip(node: ast.AST) -> ast.AST | None:
    """A statement that changes something is left out."""
    changes = isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    stores = isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript))
    return ast.Pass() if changes or stores else None


OPERATORS: dict[str, Operator] = {
    operator.__name__: operator for operator in (negate, swap, left, right, sign, shift, bare, always, never, skip)
}

# ---------------------------------------------------------------------- mutants


class Missing(Exception):
    """A function, or a place in it, that is not there."""


class Mutant(NamedTuple):
    function: str
    operator: str
    place: int
    tests: str
    quick: bool = False

    def __str__(self) -> str:
        return f"{self.function} {self.operator} {self.place} {self.tests}" + " quick" * self.quick


class Change(ast.NodeTransformer):
    """Applies an operator at one site; messages of exceptions and types are left alone."""

    def __init__(self, operator: Operator, place: int) -> None:
        self.operator, self.left, self.told = operator, place, ""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Raise, ast.JoinedStr)):
            return node
        changed = self.operator(node)
        if changed is not None:
            self.left -= 1
            if self.left == -1:
                self.told = f"{first_line(node)}  ->  {first_line(changed)}"
                return changed
        return self.generic_visit(node)


def first_line(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()
    return text[0] + " ..." * (len(text) > 1)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions and methods of a module by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node


def source(module: str) -> Path:
    file = PACKAGE / (module.replace(".", "/") + ".py")
    return file if file.exists() else PACKAGE / module.replace(".", "/") / "__init__.py"


def elsewhere(name: str) -> str:
    """Where else a function of this name stands, as a hint."""
    files = sorted(PACKAGE.rglob("*.py"))
    found = [file for file in files if name in dict(functions(ast.parse(file.read_text())))]
    return f"; {name} stands in {', '.join(str(file.relative_to(ROOT)) for file in found)}" if found else ""


def mutate(mutant: Mutant) -> tuple[Path, str, str]:
    """The file that a mutant changes, what it becomes, and the change in words."""
    module, name = mutant.function.split(":")
    file = source(module)
    tree = ast.parse(file.read_text()) if file.exists() else ast.Module([], [])
    function = dict(functions(tree)).get(name)
    if function is None:
        raise Missing(f"mutants.txt names {mutant.function}, which is not in the package{elsewhere(name)}.")
    change = Change(OPERATORS[mutant.operator], mutant.place)
    function.body = [change.visit(statement) for statement in function.body]  # type: ignore[misc]
    if not change.told:
        raise Missing(f"mutants.txt names {mutant}, and {name} has no such place.")
    return file, ast.unparse(ast.fix_missing_locations(tree)), change.told


def run(mutant: Mutant) -> tuple[bool, str]:
    """Whether the tests notice, and a line that says so."""
    file, text, told = mutate(mutant)
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
        try:
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return True, f"caught    {mutant}: {told}  ({SECONDS} s)"
    if done.returncode > 1:  # below 0: the broken code ended the tests, which is noticed too
        return False, f"NO TEST   {mutant}: {told}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    verdict = "caught  " if done.returncode else "SURVIVED"
    return bool(done.returncode), f"{verdict}  {mutant}: {told}  ({time.monotonic() - begin:.0f} s)"


# ---------------------------------------------------------------------- the command


def stored() -> list[Mutant]:
    """The mutants of mutants.txt."""
    lines = (line.split("#")[0].split() for line in LIST.read_text().splitlines())
    return [
        Mutant(name, kind, int(place), tests, bool(quick)) for name, kind, place, tests, *quick in filter(None, lines)
    ]


def every(function: str, tests: str) -> Iterator[Mutant]:
    """The mutants of all places of a function."""
    for operator in OPERATORS:
        place = 0
        while is_there(mutant := Mutant(function, operator, place, tests)):
            yield mutant
            place += 1


def is_there(mutant: Mutant) -> bool:
    try:
        mutate(mutant)
    except Missing:
        return False
    return True


def missing(mutants: list[Mutant]) -> Iterator[str]:
    for mutant in mutants:
        try:
            mutate(mutant)
        except Missing as reason:
            yield str(reason)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--function", default="")
    parser.add_argument("--every", nargs=2, metavar=("FUNCTION", "TESTS"))
    given = parser.parse_args()
    mutants = list(every(*given.every)) if given.every else stored()
    if gone := sorted(set(missing(mutants))):
        sys.exit("\n".join(gone))
    chosen = [m for m in mutants if given.function in m.function and (m.quick or not given.quick)]
    if given.check or not chosen:
        sys.exit(0 if chosen else "no mutant has this name.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended."))
    caught = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for noticed, line in pool.map(run, chosen):
            print(line, flush=True)
            caught += noticed
    print(f"\n{caught} of {len(chosen)} mutants caught")
    sys.exit(caught < len(chosen))


if __name__ == "__main__":
    main()
