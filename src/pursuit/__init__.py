"""pursuit: smooth convex functions over the hull, cone or span of a set of atoms, with a certificate.

Matching pursuit and Frank-Wolfe are one loop here, `minimize(f, domain, update)`. The modules, in the order data flows:

| module | content |
|---|---|
| `linalg` | linear algebra that several modules share |
| `objectives`, `stochastic` | the functions to minimise |
| `atoms` | the sets of atoms |
| `active`, `weights` | the active set, and the small problems in its weights |
| `domains` | `conv`, `cone`, `lin`, `penalty`, their sums and products |
| `oracles` | the search for the next atom: exact, approximate, lazy, random |
| `steps`, `updates` | step lengths; the change of the weights |
| `refine` | the change of the atoms themselves |
| `certificates` | lower bounds on the minimum |
| `run` | what one run needs: method, first atoms, checks, states, stopping rules, results, files |
| `solve` | the loop, `minimize` |
| `paths` | `path`: one problem at several radii, penalties or sizes |
| `subsets` | `best`: the best few atoms, proved against all others |
| `derivatives` | `differentiate`: how a solution changes with its problem |
| `coding` | `encode`: many signals at once; `Coder`: one at a time; `encode_to`: from and to files |
| `cluster` | columns, samples and signals spread over the workers of a dask cluster |
| `dictionaries` | `learn`: dictionaries on which given signals have sparse codes |
| `geometry`, `rates`, `promises` | the theory, as functions |
| `estimators` | scikit-learn's estimators; needs scikit-learn, so import it by name |
| `models` | `load`: saved estimators |
| `plots`, `report` | figures; pages about results and models, in one HTML file each |
"""

import ast
import pathlib
from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def _imports(file: pathlib.Path) -> dict[str, str]:
    """The public names that a file imports, and the modules from which it does."""
    found: dict[str, str] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        for name in node.names if isinstance(node, ast.ImportFrom) else []:
            room = file.parent.joinpath(*(node.module or "").split("."), "__init__.py")
            names = _listed(room) if name.name == "*" else [name.name]
            found |= dict.fromkeys(names, f".{node.module or ''}")
    return found


def _listed(room: pathlib.Path) -> list[str]:
    """`__all__` of a room, which is not imported."""
    body = ast.parse(room.read_text(encoding="utf-8")).body
    lists = (n for n in body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__")
    return ast.literal_eval(next(lists).value)


_module_of = _imports(pathlib.Path(__file__).with_suffix(".pyi"))
__all__ = sorted(_module_of)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _module_of:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _module_of[name]
    value = import_module(f".{name}", __name__) if module == "." else getattr(import_module(module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
