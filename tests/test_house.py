"""Claims about the code itself: the map in docs/house.md, short lists of parameters, one short loop."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pursuit"
TEXT = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
MODULES = [p.name + "/" if p.is_dir() else p.stem for p in PACKAGE.iterdir() if p.is_dir() or p.suffix == ".py"]
SOURCES = [p.name for p in (PACKAGE / "native").iterdir() if p.suffix in (".h", ".cpp")]
TRITON_KERNELS = {"settle", "descend", "match", "begin", "search", "direction", "advance", "pursue", "pack"}
"""They take arrays one by one."""
FILES = sorted(PACKAGE.rglob("*.py"))

MAX_PARAMETERS = 8
MAX_STATEMENTS = 14
LONG_BY_DESIGN = {"minimize", "encode", "learn"}
COMMANDS = {"fit"}  # its parameters are the options of the command line
SKLEARN_SIGNATURES = {"__init__", "orthogonal_mp_gram", "sparse_encode", "dict_learning", "dict_learning_online"}


@pytest.mark.parametrize("name", sorted({*MODULES, *SOURCES} - {"__init__", "__main__", "__pycache__/"}))
def test_the_map_names_every_module_and_every_source_of_the_kernels(name):
    assert f"`{name}`" in TEXT


def nodes(file, *kinds):
    return [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, kinds)]


def parameters(function):
    a = function.args
    given = [each for each in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if each is not None]
    return [each.arg for each in given if each.arg not in ("self", "cls")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_function_has_more_than_eight_parameters(file):
    exceptions = SKLEARN_SIGNATURES if "estimators" in file.parts else LONG_BY_DESIGN
    exceptions = exceptions | COMMANDS if "cli" in file.parts else exceptions
    exceptions = exceptions | TRITON_KERNELS if "gpu" in file.parts else exceptions
    functions = [f for f in nodes(file, ast.FunctionDef, ast.AsyncFunctionDef) if f.name not in exceptions]
    assert [(f.name, parameters(f)) for f in functions if len(parameters(f)) > MAX_PARAMETERS] == []


def test_the_body_of_the_loop_has_at_most_fourteen_statements():
    iterate = next(f for f in nodes(PACKAGE / "solve.py", ast.FunctionDef) if f.name == "iterate")
    (loop,) = [node for node in ast.walk(iterate) if isinstance(node, ast.For | ast.While)]
    statements = [node for node in ast.walk(loop) if isinstance(node, ast.stmt) and node is not loop]
    assert 0 < len(statements) <= MAX_STATEMENTS


def test_states_are_made_by_one_loop_only():
    makers = [file for file in FILES for call in nodes(file, ast.Call) if getattr(call.func, "id", None) == "State"]
    assert makers == [PACKAGE / "solve.py"]
