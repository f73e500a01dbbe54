"""Claims about the code itself: the map in docs/house.md, one short loop. Ruff limits parameters and branches."""

import ast
from pathlib import Path

import pytest

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
    assert lines_of_body(functions["minimize"]) <= 60


def test_states_are_made_by_one_loop_only():
    makers = [file for file in FILES for call in nodes(file, ast.Call) if getattr(call.func, "id", None) == "State"]
    assert makers == [PACKAGE / "solve.py"]
