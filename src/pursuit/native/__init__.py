"""The compiled kernels: C++, built when pursuit is installed, once for each level of the processor.

They are imported where they are used. What needs none of them works where they were not built.
"""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

MP_STEPS = 10
"""Most steps of matching pursuit for each atom that a code may have, as in pursuit.h."""


@cache
def core() -> Any:
    """The compiled module; its `level` is the name of the instruction set that it was given."""
    try:
        return importlib.import_module("pursuit.native._core")
    except ImportError as problem:
        raise ImportError(
            "the compiled kernels of pursuit, which encode and screened dictionaries need, cannot be loaded "
            f"({problem}); install again: pip install --force-reinstall pursuit (or its source folder)"
        ) from problem


@cache
def is_built() -> bool:
    """Whether the compiled kernels are there."""
    try:
        core()
    except ImportError:
        return False
    return True


@cache
def kernels(dtype: Any) -> ModuleType:
    """The kernels for numbers of one type, float32 or float64."""
    return getattr(core(), np.dtype(dtype).name)  # type: ignore[no-any-return]
