"""The suite with the lowest versions of packages that pyproject.toml promises, in an environment of its own.

python tools/oldest.py            everything
python tools/oldest.py --quick    a few files, for .ci/run

Its Python should be the oldest that is promised, too. The lower bounds are checked by pip's resolver: bounds that
contradict one another do not install. What pursuit needs at run time is at its lowest; the tools of the tests are new.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-oldest"
EXTRAS = ("estimators", "plot", "cli", "lp")
QUICK = [f"tests/test_{name}.py" for name in ("solve", "encode", "native", "linear_models", "plots", "stored")]


def lowest(requirement: str) -> str:
    """`numpy>=2.0` as `numpy==2.0.*`: the lowest, with its corrections."""
    name, bound = re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement).groups()  # type: ignore[union-attr]
    return f"{name}=={bound}.*"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(r for extra in EXTRAS for r in project["optional-dependencies"][extra])]
    least = sorted({lowest(requirement) for requirement in asked if not requirement.startswith("pursuit")})
    if not FOLDER.exists():
        venv.create(FOLDER, with_pip=True)
    python = FOLDER / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "pip>=25.1"], check=True)
    subprocess.run([*pip, *least, f"{ROOT}[{','.join(EXTRAS)}]", "--group", "test"], check=True, cwd=ROOT)
    print("with", ", ".join(least), "on Python", sys.version.partition(" ")[0], flush=True)
    tests = [name for name in QUICK if (ROOT / name).exists()] if "--quick" in sys.argv else ["tests"]
    ignored = ["-W", "ignore::DeprecationWarning"]  # of old packages about new ones, such as matplotlib about pyparsing
    run = [str(python), "-m", "pytest", "-n", "auto", "-p", "no:cacheprovider", *ignored, *tests]
    sys.exit(subprocess.run(run, cwd=ROOT, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, check=False).returncode)


if __name__ == "__main__":
    main()
