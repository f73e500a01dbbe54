"""Compiles and links the kernels for other systems with zig, and runs them on other processors under qemu.

python tools/cross.py                         every target of TARGETS, and the kernels of aarch64
python tools/cross.py --run s390x-linux-musl  only runs kernels, of any target of zig for which there is a qemu

A module is compiled, linked and looked at: is its format that of the system, does it import what it may, does it hold
no path of this machine? Nothing of it is run. The kernels alone are run: tools/kernel_runner.cpp, a program without
Python, solves a problem with every method, and its codes are compared with those of the module of this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "src" / "pursuit" / "native"
TARGETS = {  # and how their modules begin
    "x86_64-linux-gnu.2.28": b"\x7fELF\x02\x01",
    "aarch64-linux-gnu.2.28": b"\x7fELF\x02\x01",
    "x86_64-linux-musl": b"\x7fELF\x02\x01",
    "aarch64-linux-musl": b"\x7fELF\x02\x01",
    "x86_64-macos.11.0": b"\xcf\xfa\xed\xfe\x07\x00\x00\x01",
    "aarch64-macos.11.0": b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01",
    "x86_64-windows-gnu": b"MZ",
}
FLAGS = ["-O2", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-Wno-pass-failed"]
WINDOWS = """\
#pragma once
#include <basetsd.h>
#define MS_WINDOWS 1
#define MS_WIN32 1
#define MS_WIN64 1
#define HAVE_DECLSPEC_DLL 1
#define NT_THREADS 1
#define MS_COREDLL 1
#define Py_ENABLE_SHARED 1
#define Py_NO_LINK_LIB 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_TIME_T 8
#define SIZEOF_PID_T 4
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 16
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_STDDEF_H 1
#define HAVE_STDINT_H 1
#define HAVE_WCHAR_H 1
"""


def zig() -> str:
    import ziglang

    return str(Path(ziglang.__file__).with_name("zig.exe" if os.name == "nt" else "zig"))


# ------------------------------------------------------------------------------ modules


def headers(folder: Path, target: str) -> Path:
    """The headers of Python; for Windows, with the sizes that it has there."""
    here = Path(sysconfig.get_path("include"))
    if "windows" not in target:
        return here
    shutil.copytree(here, folder, ignore=shutil.ignore_patterns("pyconfig.h"))
    (folder / "pyconfig.h").write_text(WINDOWS)
    return folder


def python_library(folder: Path, nanobind: Path) -> Path:
    """The import library of Python on Windows, from the list of names that nanobind has for macOS."""
    names = [
        line.split()[1].removeprefix("_") for line in (nanobind / "darwin-ld-cpython.sym").read_text().splitlines()
    ]
    (folder / "python.def").write_text("\n".join(["LIBRARY python3.dll", "EXPORTS", *names]))
    library = folder / "python{}{}.lib".format(*sys.version_info)  # CMake reads the version in its name
    make = ["dlltool", "-m", "i386:x86-64", "-d", str(folder / "python.def"), "-l", str(library)]
    subprocess.run([zig(), *make], check=True)
    return library


def module(target: str, folder: Path, *settings: str) -> Path:
    """The module of another system."""
    import nanobind

    cmake = Path(nanobind.cmake_dir())
    folder.mkdir(parents=True, exist_ok=True)
    include = headers(folder / "include", target)
    given = {
        "CMAKE_BUILD_TYPE": "Quick",  # nanobind hardly optimised; the kernels as ever
        "CMAKE_CXX_FLAGS_QUICK": "-O1 -DNDEBUG",
        "CMAKE_MODULE_LINKER_FLAGS_QUICK": "-s",  # debug information names files of this machine
        "CMAKE_TOOLCHAIN_FILE": ROOT / "tools" / "zig.cmake",
        "CMAKE_COMPILE_WARNING_AS_ERROR": "ON",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": include,
        "nanobind_DIR": cmake,
    }
    if "windows" in target:
        library = python_library(folder, cmake)
        given |= {"Python_LIBRARY": library, "Python_SABI_LIBRARY": library}
    defined = [f"-D{name}={value}" for name, value in given.items()]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where pip puts cmake and ninja
    env = os.environ | {"PURSUIT_ZIG_PROGRAM": zig(), "PURSUIT_ZIG_TARGET": target, "PATH": path}
    build = folder / "build"
    for command in (
        ["cmake", "-S", str(NATIVE), "-B", str(build), "-G", "Ninja", *defined, *settings],
        ["cmake", "--build", str(build), "-j", "1"],
    ):
        told = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
        if told.returncode:
            sys.exit(f"{target}: {' '.join(command[:2])} failed\n{told.stdout[-4000:]}{told.stderr[-4000:]}")
    (made,) = (path for path in build.glob("_core*") if path.suffix in (".so", ".pyd", ".dll"))
    return made


def look_at(made: Path, target: str) -> None:
    """Format, and no path of this machine."""
    content = made.read_bytes()
    assert content.startswith(TARGETS[target]), f"{target}: the module begins with {content[:8]!r}"
    for path in (str(ROOT), str(Path.home() / ".cache"), sys.prefix):
        assert path.encode() not in content, f"{target}: the module holds the path {path}"


# ------------------------------------------------------------------------------ kernels


def problem(dtype: Any) -> dict[str, Any]:
    """Signals that are combinations of three atoms and noise, at sizes that no vector divides."""
    rng = np.random.default_rng(0)
    d, n, count, limit = 37, 83, 45, 6
    D = rng.standard_normal((n, d))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    Y = rng.standard_normal((count, 3)) @ D[:3] + 0.1 * rng.standard_normal((count, d))
    for k in range(count):
        Y[k] += D[rng.integers(n, size=3)].T @ rng.choice([-2.0, 2.0], 3)
    D, Y, W = (a.astype(dtype) for a in (D, Y, rng.uniform(0.5, 1.5, (count, d))))
    norms, gram = np.linalg.norm(D, axis=1), D @ D.T
    tols, penalties = np.full(count, -1.0, dtype), np.full(count, 0.5, dtype)
    arrays = {"D": D, "norms": norms, "gram": gram, "Y": Y, "W": W, "tols": tols, "penalties": penalties}
    return {
        "size": (d, n, count, d, limit),  # a Lasso may use d atoms
        "arrays": arrays,
    }


def expected(given: dict[str, Any]) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Codes of the module of this machine, in the order of kernel_runner.cpp."""
    from pursuit import native

    a, (_, _, count, width, limit) = given["arrays"], given["size"]
    dtype, core = a["D"].dtype, native.core()
    kernels, methods = native.kernels(dtype), ("omp", "mp", "ols", "nnomp", "lasso", "positive_lasso")
    atoms = kernels.Atoms(a["D"], a["norms"], a["gram"])

    def solved(name: str, solve: Any, weights: Any = None) -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
        found, x = np.zeros((count, width), np.int32), np.zeros((count, width), dtype)
        counts, limits = np.full(count, -1), np.full(count, limit)
        stop = np.zeros(1, np.int32)
        solve(kernels.Signals(a["Y"], weights, limits, a["tols"], a["penalties"], found, x, counts, stop))
        return name, found, x, counts

    for method, search in (("omp", "int16"), ("omp", "float32"), ("ols", "float32")):
        kernel = kernels.Fast(atoms, core.Method[method], core.Search[search])
        yield solved(f"{method} in {search}", kernel.solve)
    for method in methods:
        products = a["Y"] @ a["D"].T
        yield solved(method, lambda s, m=method, p=products: kernels.one_by_one(atoms, core.Method[m], s, p))
    for method in methods:
        yield solved(
            f"weighted {method}", lambda s, m=method: from_residuals(kernels, core.Method[m], s, given), a["W"]
        )
    yield solved("screened omp", lambda s: kernels.Screen(atoms, 1).alone(core.Method.omp, s, 2))


def from_residuals(kernels: Any, method: Any, signals: Any, given: dict[str, Any]) -> None:
    a, (d, _, count, _, _) = given["arrays"], given["size"]
    plain = kernels.Atoms(a["D"], a["norms"], a["gram"])
    pursuits = kernels.Direct(plain, method, signals, np.tile(a["norms"], (count, 1)))
    vectors = np.empty((2 * count, d), a["D"].dtype)
    while rows := pursuits.vectors(vectors):
        pursuits.advance(vectors[:rows] @ a["D"].T)


def run(target: str, folder: Path) -> None:
    """The kernels of another processor, under qemu, on both number types; their codes are ours."""
    name = target.partition("-")[0]
    order = ">" if name in ("s390x", "powerpc64", "powerpc") else "<"
    program, qemu = folder / f"runner-{target}", shutil.which(f"qemu-{ {'x86': 'i386'}.get(name, name) }")
    if qemu is None:
        print(f"{target}: no qemu-{name} here, so its kernels are not run (Debian: apt install qemu-user)", flush=True)
        return
    extra = ["-msse2", "-mfpmath=sse"] if name == "x86" else []
    sources = [str(ROOT / "tools" / "kernel_runner.cpp"), str(NATIVE / "level.cpp"), str(NATIVE / "parallel.cpp")]
    how = ["-std=c++20", *FLAGS, *extra, "-DLEVEL=generic", f"-I{NATIVE}", "-static", "-o", str(program)]
    subprocess.run([zig(), "c++", "-target", target, "-mcpu=baseline", *how, *sources], check=True)
    problems = [problem(dtype) for dtype in (np.float64, np.float32)]
    words = b"".join(
        np.asarray(part).astype(np.asarray(part).dtype.newbyteorder(order)).tobytes()
        for given in problems
        for part in (np.array(given["size"], np.int32), *given["arrays"].values())
    )
    out = subprocess.run([qemu, str(program)], input=words, check=True, capture_output=True, timeout=600).stdout
    for given in problems:
        dtype = given["arrays"]["D"].dtype
        for what, found, x, counts in expected(given):
            theirs = []
            for kind, shape in (
                (np.dtype(np.int32), found.shape),
                (dtype, x.shape),
                (np.dtype(np.int64), counts.shape),
            ):
                size = int(np.prod(shape)) * kind.itemsize
                theirs.append(np.frombuffer(out[:size], kind.newbyteorder(order)).reshape(shape))
                out = out[size:]
            compare(f"{target}, {dtype}, {what}", (found, x, counts), tuple(theirs))
    assert not out, f"{target}: {len(out)} bytes too many"
    print(f"{target}: the kernels agree under {Path(qemu).name}", flush=True)


def compare(what: str, ours: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...]) -> None:
    """Where both solved a signal: the same atoms, the same weights up to rounding. Almost all are solved."""
    (found, x, counts), (atoms, weights, solved) = ours, theirs
    both = (counts >= 0) & (solved >= 0)
    assert both.mean() > 0.9, f"{what}: {both.sum()} of {len(both)} signals are solved by both"
    used = np.arange(found.shape[1]) < counts[:, None]
    same = both & (counts == solved) & np.where(used, found == atoms, True).all(axis=1)
    assert same[both].mean() > 0.95, f"{what}: {(both & ~same).sum()} codes have other atoms"  # float32 may choose so
    error = np.abs(np.where(used, x - weights, 0))[same].max()
    assert error < 1e4 * np.finfo(x.dtype).eps, f"{what}: weights differ by {error}"


# ------------------------------------------------------------------------------ the command


def check(target: str, folder: Path) -> None:
    began = time.perf_counter()
    made = module(target, folder / target)
    look_at(made, target)
    print(f"{target}: {made.stat().st_size // 1024} KiB in {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", metavar="TARGET", help="only runs the kernels of this one, under qemu")
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.run:
            run(asked.run, folder)
            return
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for done in [pool.submit(check, target, folder) for target in asked.targets]:
                done.result()
        run("aarch64-linux-musl", folder)


if __name__ == "__main__":
    main()
