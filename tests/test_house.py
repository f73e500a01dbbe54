"""Claims about the code itself: the map in docs/house.md, one short loop. Ruff limits parameters and branches."""

import ast
import sys
from pathlib import Path

import pytest

import pursuit as ps

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"
TEXT = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
MODULES = [p.name + "/" if p.is_dir() else p.stem for p in PACKAGE.iterdir() if p.is_dir() or p.suffix == ".py"]
SOURCES = [p.name for p in (PACKAGE / "native").iterdir() if p.suffix in (".h", ".cpp")]
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("name", sorted({*MODULES, *SOURCES} - {"__init__", "__main__", "__pycache__/"}))
def test_the_map_names_every_module_and_every_source_of_the_kernels(name):
    assert f"`{name}`" in TEXT


def nodes(file, *kinds):
    return [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


def lines_of_body(function):
    """The lines after the signature and the docstring."""
    first = function.body[1] if ast.get_docstring(function) else function.body[0]
    return function.end_lineno - first.lineno + 1


def test_the_loop_reads_like_the_paper_and_its_driver_fits_a_screen():
    functions = {function.name: function for function in nodes(PACKAGE / "solve.py", ast.FunctionDef)}
    assert lines_of_body(functions["iterate"]) <= 12
    assert lines_of_body(functions["minimize"]) <= 40


def test_states_are_made_by_one_loop_only():
    makers = [file for file in FILES for call in nodes(file, ast.Call) if getattr(call.func, "id", None) == "State"]
    assert makers == [PACKAGE / "solve.py"]


def traced(work):
    """The functions of the package that a call goes through, and their files."""
    seen = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)) and not code.co_name.endswith("comp>"):
            seen.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    seen = {(file, name) for file, name in seen if not name.endswith("<genexpr>")}
    return len(seen), len({file for file, _ in seen})


def test_a_call_of_omp_goes_through_few_functions_and_a_turn_of_its_loop_through_fewer(rng):
    D = rng.standard_normal((30, 80))
    f, domain, omp = ps.LeastSquares(D[:, [3, 7]] @ [1.0, -2.0]), ps.lin(ps.Dictionary(D)), ps.FullyCorrective()
    ps.minimize(f, domain, omp, stop=ps.Stop(atoms=2))  # imports what it needs
    functions, files = traced(lambda: ps.minimize(f, domain, omp, stop=ps.Stop(atoms=2)))
    assert functions <= 140 and files <= 28
    states = ps.iterate(f, domain, omp)
    next(states), next(states)
    assert traced(lambda: next(states))[0] <= 80
