"""Compiles and links the kernels for other systems with zig, and runs them on other processors under qemu.

python tools/cross.py                         every target of TARGETS, and the kernels of aarch64
python tools/cross.py --run s390x-linux-musl  only runs kernels, of any target of zig for which there is a qemu
python tools/cross.py --wheels dist           optimised modules, in wheels for Python 3.12 and later (run by such a one)

A module is compiled, linked and looked at: is its format that of the system, does it import what it may, does it hold
no path of this machine? Nothing of it is run, so it is not optimised, and except on Windows names of the C++ library
stay open: zig compiles that library for every target, for longer than the module; what else is open is an error. The
kernels alone are run: tools/kernel_runner.cpp, a program without Python, solves a problem with every method, and its
codes are compared with those of the module of this machine.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "src" / "pursuit" / "native"
ELF, MACH_O = b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe"
TARGETS = {  # how their modules begin, and the platform of their wheels; what takes longest is first
    "x86_64-windows-gnu": (b"MZ", "win_amd64"),
    "x86_64-linux-gnu.2.28": (ELF, "manylinux_2_28_x86_64"),
    "aarch64-linux-gnu.2.28": (ELF, "manylinux_2_28_aarch64"),
    "x86_64-linux-musl": (ELF, "musllinux_1_2_x86_64"),
    "aarch64-linux-musl": (ELF, "musllinux_1_2_aarch64"),
    "x86_64-macos.11.0": (MACH_O + b"\x07\x00\x00\x01", "macosx_11_0_x86_64"),
    "aarch64-macos.11.0": (MACH_O + b"\x0c\x00\x00\x01", "macosx_11_0_arm64"),
}
LIBRARIES = (  # that a module may name: those of the system, on Windows that of Python, itself
    rb"lib(c|m|pthread|dl|rt)\.so(\.\d)?|ld-linux[-\w]*\.so\.\d|libSystem\.B\.dylib"
    rb"|(kernel32|ntdll|python3|api-ms-win-crt-[-\w]+)\.dll|_core[-.\w]+"
)
CXX_NAMES = rb"_Z(T[VIS]|GV|Z)?N?K?(St|S[absiod]|n[wa]|d[la]|N?\d*(8nanobind|10__cxxabiv1))"
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


def module(target: str, folder: Path, whole: bool) -> Path:
    """The module of another system: whole, as in a wheel, or only what shows that it can be built."""
    import nanobind

    cmake = Path(nanobind.cmake_dir())
    folder.mkdir(parents=True, exist_ok=True)
    include = headers(folder / "include", target)
    given = {
        "CMAKE_MODULE_LINKER_FLAGS": "-s",  # debug information names files of this machine
        "CMAKE_TOOLCHAIN_FILE": ROOT / "tools" / "zig.cmake",
        "CMAKE_COMPILE_WARNING_AS_ERROR": "ON",
        "Python_EXECUTABLE": sys.executable,
        "Python_INCLUDE_DIR": include,
        "nanobind_DIR": cmake,
    }
    if "windows" in target:
        library = python_library(folder, cmake)
        given |= {"Python_LIBRARY": library, "Python_SABI_LIBRARY": library}
    elif not whole:
        given["CMAKE_MODULE_LINKER_FLAGS"] = "-s -nostdlib++"
    if whole:
        given["SKBUILD_SABI_COMPONENT"] = "Development.SABIModule"
    else:
        given |= {"CMAKE_BUILD_TYPE": "Quick", "CMAKE_CXX_FLAGS_QUICK": "-O1 -Xclang -O0 -DNDEBUG"}
        given |= {"CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "0"}
    defined = [f"-D{name}={value}" for name, value in given.items()]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where pip puts cmake and ninja
    env = os.environ | {"PURSUIT_ZIG_PROGRAM": zig(), "PURSUIT_ZIG_TARGET": target, "PATH": path}
    build = folder / "build"
    for command in (
        ["cmake", "-S", str(NATIVE), "-B", str(build), "-G", "Ninja", *defined],
        ["cmake", "--build", str(build), "-j", "1"],
    ):
        told = subprocess.run(command, env=env, check=False, capture_output=True, text=True)
        if told.returncode:
            sys.exit(f"{target}: {' '.join(command[:2])} failed\n{told.stdout[-4000:]}{told.stderr[-4000:]}")
    (made,) = (path for path in build.glob("_core*") if path.suffix in (".so", ".pyd", ".dll"))
    return made


def look_at(made: Path, target: str) -> None:
    """Format and imports, and no path of this machine."""
    content = made.read_bytes()
    assert content.startswith(TARGETS[target][0]), f"{target}: the module begins with {content[:8]!r}"
    for path in (str(ROOT), str(Path.home() / ".cache"), sys.prefix):
        assert path.encode() not in content, f"{target}: the module holds the path {path}"
    named = set(re.findall(rb"[A-Za-z_][-\w.]*\.(?:so(?:\.\d+)*|dylib|dll)(?=\0)", content))
    strange = [name for name in named if not re.fullmatch(LIBRARIES, name, re.IGNORECASE)]
    assert named and not strange, f"{target}: the module imports {strange or 'nothing'}"
    if content.startswith(ELF):  # of names in C++, only those of its library and of nanobind are seen outside
        ours = [name for name in re.findall(rb"\0(_Z\w+)(?=\0)", content) if not re.match(CXX_NAMES, name)]
        assert not ours, f"{target}: these names are open or exported: {ours[:9]}"


def wheel(made: Path, target: str, pure: Path, folder: Path) -> Path:
    """The wheel of a platform: the Python files and the module."""
    tag = f"cp312-abi3-{TARGETS[target][1]}"
    name = "pursuit/native/_core" + (".pyd" if "windows" in target else ".abi3.so")
    with zipfile.ZipFile(pure) as source:
        files = {each: source.read(each) for each in source.namelist()} | {name: made.read_bytes()}
    (about,) = (each for each in files if each.endswith(".dist-info/WHEEL"))
    lines = [line for line in files[about].decode().splitlines() if line and not line.startswith(("Tag:", "Root-Is"))]
    files[about] = "\n".join([*lines, "Root-Is-Purelib: false", f"Tag: {tag}", ""]).encode()
    record = about.replace("WHEEL", "RECORD")
    del files[record]
    hashes = {
        each: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        for each, data in files.items()
    }
    rows = [f"{each},sha256={hashes[each]},{len(data)}\n" for each, data in files.items()]
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    out = folder / f"{'-'.join(pure.name.split('-')[:2])}-{tag}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in files.items():
            archive.writestr(each, data)
    return out


def build_wheels(targets: list[str], folder: Path, place: Path) -> None:
    """A wheel for each target, checked by abi3audit."""
    if sys.version_info < (3, 12):
        sys.exit(
            "wheels for Python 3.12 and later are built by one of these: earlier ones have no stable ABI that serves."
        )
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--config-settings=wheel.cmake=false"]
    pip += ["--config-settings=wheel.py-api=py3"]
    subprocess.run([*pip, "--wheel-dir", str(place), str(ROOT)], check=True)
    (pure,) = place.glob("pursuit-*.whl")
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        made = module(target, place / target, whole=True)
        look_at(made, target)
        out = wheel(made, target, pure, folder)
        subprocess.run([sys.executable, "-m", "abi3audit", "--strict", str(out)], check=True)
        print(f"{out.name}: {out.stat().st_size // 1024} KiB", flush=True)


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
    made = module(target, folder / target, whole=False)
    look_at(made, target)
    print(f"{target}: {made.stat().st_size // 1024} KiB in {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", metavar="TARGET", help="only runs the kernels of this one, under qemu")
    parser.add_argument("--wheels", metavar="FOLDER", type=Path, help="writes wheels there")
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.run:
            run(asked.run, folder)
        elif asked.wheels:
            build_wheels(asked.targets, asked.wheels, folder)
        else:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                for done in [pool.submit(check, target, folder) for target in asked.targets]:
                    done.result()
            run("aarch64-linux-musl", folder)


if __name__ == "__main__":
    main()
