"""Builds the package once more, in another way, and runs the tests of the kernels on it.

python tools/rebuilt.py sanitize    addresses and undefined behaviour are checked at run time (g++); then
                                    tools/fuzz_kernels.py codes real data (SIGNALS=1000000 of them)
python tools/rebuilt.py other       the compiler that the installation did not use: clang++ if it is there, else zig
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pursuit import native

ROOT = Path(__file__).resolve().parent.parent
NAMES = "encode* screened matrices native subsets linear_models programs_and_graphs lockstep convolutional recordings"
TESTS = [f"test_{name}.py" for name in NAMES.split()]


def build(folder: Path, env: dict[str, str], *settings: str) -> Path:
    """The package, built into a folder."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    defined = [f"--config-settings={setting}" for setting in (f"build-dir={folder / 'build'}", *settings)]
    subprocess.run([*pip, "--wheel-dir", str(folder), *defined, str(ROOT)], env=env, check=True)
    shutil.unpack_archive(next(folder.glob("pursuit-*.whl")), folder / "site", "zip")
    return folder / "site"


def sanitized(env: dict[str, str]) -> dict[str, str]:
    """The runtime libraries of the sanitizers come first; what Python itself never frees is no leak of ours."""
    found = [
        subprocess.run(["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return env | {
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def main() -> None:
    os.chdir(ROOT)
    env, (way,) = dict(os.environ), sys.argv[1:]
    settings = []
    if way == "sanitize":
        env["CXX"] = "g++"
        level = native.core().level  # the only one that runs here
        settings += ["cmake.define.PURSUIT_SANITIZE=ON", f"cmake.define.PURSUIT_LEVELS={level}"]
    elif shutil.which("clang++"):
        env["CXX"] = "clang++"
    else:
        env["PURSUIT_ZIG"] = "1"
    with tempfile.TemporaryDirectory() as name:
        site = build(Path(name), env, *settings)
        env = sanitized(env) if way == "sanitize" else env
        found = {pattern: sorted(map(str, Path("tests").glob(pattern))) for pattern in TESTS}
        if not all(found.values()):
            sys.exit(f"no tests are named {[pattern for pattern in TESTS if not found[pattern]]}; mend NAMES.")
        tests = [path for paths in found.values() for path in paths]
        run = [sys.executable, "-m", "pytest", "-n", "auto", "-p", "no:cacheprovider", *tests]
        env |= {"PURSUIT_FOLDER": str(site), "OPENBLAS_NUM_THREADS": "1"}
        code = subprocess.run(run, env=env, check=False).returncode
        if way == "sanitize" and not code:
            fuzz = [sys.executable, "tools/fuzz_kernels.py", "--signals", os.environ.get("SIGNALS", "1000000")]
            code = subprocess.run(fuzz, env=env, check=False).returncode
        sys.exit(code)


if __name__ == "__main__":
    main()
