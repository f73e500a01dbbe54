"""scikit-learn's own tests of the classes and functions that `pursuit.estimators` replaces, on ours.

The source comes from the installed wheel. Where it imports one of the names `REPLACED` from scikit-learn, the one of
`pursuit.estimators` is imported instead; nothing else is changed.
"""

import ast
import importlib.util
import types
from pathlib import Path

import pytest

from pursuit import estimators

pytestmark = pytest.mark.filterwarnings("default")  # they are written for warnings that are no errors

SUITES = {
    "omp": "sklearn.linear_model.tests.test_omp",
    "dictionaries": "sklearn.decomposition.tests.test_dict_learning",
}
REPLACED = {
    "DictionaryLearning",
    "MiniBatchDictionaryLearning",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "SparseCoder",
    "dict_learning",
    "dict_learning_online",
    "orthogonal_mp",
    "orthogonal_mp_gram",
    "sparse_encode",
}
LEFT_OUT = {"test_update_dict": "tests _update_dict, a private function of scikit-learn"}


def with_our_names(name):
    """A test module of scikit-learn that imports `REPLACED` from `pursuit.estimators`."""
    spec = importlib.util.find_spec(name)
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    body = []
    for node in tree.body:
        ours = [alias for alias in getattr(node, "names", []) if alias.name in REPLACED]
        body.append(node)
        if isinstance(node, ast.ImportFrom) and ours:
            body.append(ast.ImportFrom("pursuit.estimators", ours, 0))
    tree.body = body
    module = types.ModuleType(name)
    exec(compile(ast.fix_missing_locations(tree), spec.origin, "exec"), vars(module))
    return module


MODULES = {suite: with_our_names(name) for suite, name in SUITES.items()}
TESTS = {
    f"test_{suite}__{name.removeprefix('test_')}": test
    for suite, module in MODULES.items()
    for name, test in vars(module).items()
    if name.startswith("test_") and name not in LEFT_OUT
}
globals().update(TESTS)


def test_their_modules_use_our_names():
    used = {name: thing for module in MODULES.values() for name, thing in vars(module).items() if name in REPLACED}
    assert set(used) == REPLACED
    assert {name for name, thing in used.items() if thing is getattr(estimators, name, None)} == REPLACED


def test_what_is_left_out_exists_and_the_rest_is_run():
    known = {name for module in MODULES.values() for name in vars(module)}
    assert set(LEFT_OUT) <= known
    assert sum(name.startswith("test_omp__") for name in TESTS) >= 20
    assert sum(name.startswith("test_dictionaries__") for name in TESTS) >= 5
