"""scikit-build-core, with a C++ compiler from PyPI where the machine has none.

The package `ziglang` is clang with its libraries in one wheel. pip fetches it for the build alone, and only where there
is no compiler, so that Python and pip are all that an installation needs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scikit_build_core import build as cmake_build
from scikit_build_core.build import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

COMPILERS = ("c++", "g++", "clang++", "clang-cl")
HELP = (
    "pursuit: its C++ kernels could not be built (the reason stands above); install a C++20 compiler, such as g++ 12 "
    "or clang 15, and try again, or set PURSUIT_ZIG=1 to take one from PyPI."
)


def needs_zig() -> bool:
    """Whether there is no compiler, or PURSUIT_ZIG says to do as if there were none."""
    asked = os.environ.get("PURSUIT_ZIG", "") not in ("", "0")
    return asked or not (os.environ.get("CXX") or any(map(shutil.which, COMPILERS)))


def use_zig() -> None:
    """Point CMake to zig, by a toolchain: no script stands in between, which Windows could not run."""
    import ziglang

    program = "zig.exe" if os.name == "nt" else "zig"
    os.environ["PURSUIT_ZIG_PROGRAM"] = Path(ziglang.__file__).with_name(program).as_posix()
    os.environ["CMAKE_TOOLCHAIN_FILE"] = Path(__file__).with_name("zig.cmake").as_posix()
    os.environ.pop("CXX", None)


@contextmanager
def compiler() -> Iterator[None]:
    """There is one, and a build that fails says what to do."""
    if needs_zig():
        use_zig()
    try:
        yield
    except (Exception, SystemExit) as problem:
        raise SystemExit(f"{problem}\n{HELP}") from problem


def with_zig(requires: Callable[[Any], list[str]], settings: Any) -> list[str]:
    return [*requires(settings), *(["ziglang>=0.13"] if needs_zig() else [])]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return with_zig(cmake_build.get_requires_for_build_wheel, config_settings)


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return with_zig(cmake_build.get_requires_for_build_editable, config_settings)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    with compiler():
        return cmake_build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    with compiler():
        return cmake_build.build_editable(wheel_directory, config_settings, metadata_directory)
