"""Install what the comparison suite compares with, one by one: what does not install is reported, and left out."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path


def main() -> None:
    groups = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["dependency-groups"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for requirement in groups["bench"]:
        if subprocess.run([*pip, requirement], check=False).returncode:
            print(f"{requirement} does not install here: it will be missing in the table", flush=True)


if __name__ == "__main__":
    main()
