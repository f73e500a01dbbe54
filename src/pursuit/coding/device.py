"""`encode` for torch tensors and CuPy arrays on a CUDA device: codes as a CSR tensor or matrix there.

All methods without weights run on the device (`pursuit.gpu`). What does not, and the few signals that rounding decides,
is coded on the host; a warning says so where that costs time.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from pursuit.arguments import describe
from pursuit.coding.joint import encode_joint, is_joint
from pursuit.coding.request import Arguments, Rules
from pursuit.gpu.tensors import is_cupy_array, is_on_cuda, to_device, with_rows

OnHost = Callable[[Any, Any, Arguments], Any]
"""`encode` of arrays of the host."""
WARN_SHARE = 0.01
"""The share of the signals above which a warning says that they went to the host."""


def is_on_device(a: Any) -> bool:
    """Whether this is an array or tensor on a CUDA device."""
    return is_on_cuda(a) or is_cupy_array(a)


def encode_on_device(on_host: OnHost, D: Any, Y: Any, arguments: Arguments) -> Any:
    """The codes of CUDA tensors; `on_host` codes arrays of the host. `torch.compile` does not look inside."""
    if "torch" in sys.modules and (compiler := sys.modules["torch"].compiler).is_compiling():
        return compiler.disable(encode_on_device)(on_host, D, Y, arguments)
    if is_cupy_array(D) or is_cupy_array(Y):
        return _encode_cupy(on_host, D, Y, arguments)
    import torch

    if is_joint(D, Y, arguments):
        return to_device(encode_joint(D, Y, arguments), D)
    D, Y = _of_one_dtype(D, Y)
    if not (torch.is_grad_enabled() and any(getattr(a, "requires_grad", False) for a in (D, Y))):
        return _encode(on_host, D, Y, arguments)
    from pursuit.gpu.gradients import with_gradients

    if arguments.method == "mp" or arguments.weights is not None or arguments.gaps:
        raise ValueError("gradients go through codes of D and Y alone, and not through 'mp'; give detached tensors.")
    return with_gradients(_encode(on_host, D, Y, arguments), D, Y)


def _encode_cupy(on_host: OnHost, D: Any, Y: Any, arguments: Arguments) -> Any:
    """The codes of CuPy arrays as a CuPy CSR matrix, through tensors that share their memory."""
    try:
        from torch import from_dlpack
    except ImportError:
        raise ImportError(
            "encode of CuPy arrays needs torch; pip install torch, or give cupy.asnumpy(D), cupy.asnumpy(Y)."
        ) from None
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    D, Y = (from_dlpack(a) if is_cupy_array(a) else a for a in (D, Y))
    answer = encode_on_device(on_host, D, Y, arguments)
    codes, *gaps = answer if arguments.gaps else (answer,)
    parts = (codes.values(), codes.col_indices(), codes.crow_indices())
    matrix = csr_matrix(tuple(map(cupy.from_dlpack, parts)), shape=tuple(codes.shape))
    return (matrix, *map(cupy.from_dlpack, gaps)) if gaps else matrix


def _of_one_dtype(D: Any, Y: Any) -> tuple[Any, Any]:
    """Tensors of floating-point numbers in the dtype of the arithmetic: float64, or float32 for all shorter ones."""
    import torch

    if not all(isinstance(a, torch.Tensor) and a.is_floating_point() for a in (D, Y)):
        return D, Y
    dtype = torch.float64 if torch.float64 in (D.dtype, Y.dtype) else torch.float32
    return D.to(dtype), Y.to(dtype)


def _encode(on_host: OnHost, D: Any, Y: Any, arguments: Arguments) -> Any:
    """The codes of tensors, on their device as far as its kernels serve."""
    import torch

    for name, a in (("D", D), ("Y", Y)):
        if not is_on_cuda(a) or a.device != D.device:
            where = f"on {a.device}" if isinstance(a, torch.Tensor) else describe(a)
            raise TypeError(f"{name} is {where}; give D and Y as tensors on one CUDA device, or both on the host.")
    D, Y = D.detach(), Y.detach()
    count = len(Y) if any(map(np.ndim, (arguments.atoms, arguments.tol, arguments.penalty))) else 1
    coded = None
    if _served(D, Y, arguments):
        rules = Rules.from_arguments(arguments, tuple(D.shape), count)
        coded = _encode_by_kernels(D, Y, rules, arguments.atoms is not None)
    if coded is None:  # the host says which argument is wrong, or serves what the device does not
        codes = on_host(D.cpu(), Y.cpu(), arguments)
        for name in ("weights", "gram", "gaps", "dtype"):
            if getattr(arguments, name) is not None and getattr(arguments, name) is not False:
                _warn(
                    f"encode has no kernel for {name} on the device: D and Y were copied to the host and coded there."
                )
        return to_device(codes, D)
    codes, rest = coded
    if not len(rest):
        return codes
    if len(rest) > WARN_SHARE * len(Y):
        _warn(
            f"rounding decides the atoms of {len(rest)} of {len(Y)} signals: the host coded these, which takes longer."
        )
    rows = rest.cpu().numpy()
    values = {"atoms": rules.limits, "tol": rules.tols, "penalty": rules.penalties}
    each = {name: value[rows] for name, value in values.items() if np.ndim(getattr(arguments, name))}
    return with_rows(codes, rest, to_device(on_host(D.cpu(), Y[rest].cpu(), replace(arguments, **each)), D))


def _warn(sentence: str) -> None:
    warnings.warn(sentence, UserWarning, stacklevel=5)


def _served(D: Any, Y: Any, arguments: Arguments) -> bool:
    """Whether the kernels of the device take these tensors and arguments, if they are valid."""
    if any(value is not None for value in (arguments.gram, arguments.dtype, arguments.weights)) or arguments.gaps:
        return False
    matrices = D.ndim == Y.ndim == 2 and D.dtype == Y.dtype and D.is_floating_point()
    return bool(matrices and D.shape[0] == Y.shape[1] and D.numel() * Y.numel() > 0)


def _encode_by_kernels(D: Any, Y: Any, rules: Rules, by_atoms: bool) -> tuple[Any, Any] | None:
    """The codes, and the signals that are left to the host; None where the dictionary is. Without a number of atoms,
    codes have room for few at first."""
    import torch

    try:
        from pursuit.gpu.pursuits import CONSTRAINED, ROOM, encode_pursuits
    except ImportError:
        raise ImportError(
            "encode of CUDA tensors needs Triton; pip install triton, or give D.cpu(), Y.cpu()."
        ) from None
    constrained, most = rules.method in CONSTRAINED, int(rules.limits.max())
    numbers = [(rules.limits, torch.int32), (rules.tols, D.dtype)]
    numbers += [(rules.penalties, torch.float64)] * constrained
    with torch.cuda.device(D.device) if D.is_cuda else nullcontext():  # Triton launches on the current device
        room = most if by_atoms else min(most, ROOM[constrained])
        return encode_pursuits(D, Y, rules.method, room, *numbers)
