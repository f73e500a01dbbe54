"""`pursuit doctor`: what pursuit finds on this machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from threadpoolctl import threadpool_info

import pursuit
from pursuit import native
from pursuit.cli.errors import AsJson, print_json, terminal_table
from pursuit.threads import processors

LEVELS = {"v2": "SSE4.2", "v3": "AVX2", "v4": "AVX-512", "generic": "the compiler's default"}
EXTRAS = {
    "plot": ("matplotlib", "figures"),
    "estimators": ("scikit-learn", "models for scikit-learn, and pursuit fit"),
    "cli": ("typer, rich, polars", "this command, and tables from CSV and Parquet"),
    "torch": ("torch", "arrays of PyTorch, on a GPU too"),
    "cluster": ("dask, distributed", "many machines"),
    "files": ("zarr, h5py", "codes in files, arrays on disk"),
    "index": ("faiss-cpu", "an index of very many atoms"),
    "lp": ("highspy", "faster oracles of linear programs"),
    "sindy": ("pysindy", "the best terms of a differential equation"),
    "gpu": ("torch, triton", "codes of many signals on a GPU"),
}
"""Extras for users: their packages, and what they add."""
REQUIRED = ("numpy", "scipy", "array-api-compat", "threadpoolctl", "tqdm")


def doctor(as_json: AsJson = False) -> None:
    """Show versions, the instructions and threads that the kernels use, the GPU, and what is not installed."""
    here = environment()
    if as_json:
        print_json(here)
        return
    from rich.console import Console
    from rich.table import Table

    console, table = Console(highlight=False, markup=False), Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_row("pursuit", here["pursuit"])
    table.add_row("Python", f"{here['python']} on {here['system']}")
    table.add_row("packages", ", ".join(f"{name} {number}" for name, number in here["packages"].items() if number))
    table.add_row("kernels", here["kernels"]["words"])
    table.add_row("threads", f"{here['threads']['kernels']} for kernels, {here['threads']['blas']} for BLAS")
    table.add_row("GPU", ", ".join(here["gpu"]) or "none that torch finds")
    extras = terminal_table(("extra", "left"), ("here", "left"), ("what it adds", "wrap"), ("to install", "left"))
    for name, extra in here["extras"].items():
        installed = extra["installed"]
        extras.add_row(name, "yes" if installed else "no", extra["adds"], "" if installed else extra["install"])
    console.print(table, "", extras, sep="\n")


def environment() -> dict[str, Any]:
    """Versions, kernels, threads, GPU and extras."""
    optional = [package for packages, _ in EXTRAS.values() for package in packages.split(", ")]
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return {
        "pursuit": pursuit.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in [*REQUIRED, *optional]},
        "kernels": _kernels(),
        "threads": {"kernels": processors(), "blas": max(blas, default=1)},
        "gpu": _gpus(),
        "extras": {
            name: {
                "installed": all(map(_version, packages.split(", "))),
                "adds": adds,
                "install": f"pip install {packages.replace(',', '')}",
            }
            for name, (packages, adds) in EXTRAS.items()
        },
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _kernels() -> dict[str, Any]:
    if not native.is_built():
        words = "not built: encode, learn and screened dictionaries do not work; pip install . in the source folder"
        return {"level": None, "words": words}
    level = native.core().level
    forced = f", forced by PURSUIT_LEVEL={os.environ['PURSUIT_LEVEL']}" if os.environ.get("PURSUIT_LEVEL") else ""
    return {"level": level, "words": f"level {level} ({LEVELS.get(level, level)}){forced}"}


def _gpus() -> list[str]:
    if _version("torch") is None:
        return []
    import torch

    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
