"""`encode` for torch tensors and CuPy arrays on a CUDA device: codes as a CSR tensor or matrix there.

All methods without weights run on the device (`pursuit.gpu`). Everything else, and the few signals that rounding
decides, is coded on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from pursuit.arguments import describe
from pursuit.coding.request import Arguments, Rules
from pursuit.gpu.tensors import is_cupy_array, is_on_cuda, to_device, with_rows

OnHost = Callable[[Any, Any, Arguments], Any]
"""`encode` of arrays of the host."""


def is_on_device(a: Any) -> bool:
    """Whether this is an array or tensor on a CUDA device."""
    return is_on_cuda(a) or is_cupy_array(a)


def encode_on_device(on_host: OnHost, D: Any, Y: Any, arguments: Arguments) -> Any:
    """The codes of CUDA tensors; `on_host` codes arrays of the host."""
    if is_cupy_array(D) or is_cupy_array(Y):
        return _encode_cupy(on_host, D, Y, arguments)
    import torch

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
        coded = _encode_by_kernels(D, Y, rules)
    if coded is None:  # the host says which column is zero or not finite, or serves what the device does not
        return to_device(on_host(D.cpu(), Y.cpu(), arguments), D)
    codes, rest = coded
    if not len(rest):
        return codes
    rows = rest.cpu().numpy()
    values = {"atoms": rules.limits, "tol": rules.tols, "penalty": rules.penalties}
    each = {name: value[rows] for name, value in values.items() if np.ndim(getattr(arguments, name))}
    return with_rows(codes, rest, to_device(on_host(D.cpu(), Y[rest].cpu(), replace(arguments, **each)), D))


def _served(D: Any, Y: Any, arguments: Arguments) -> bool:
    """Whether the kernels of the device take these tensors and arguments, if they are valid."""
    import torch

    if any(value is not None for value in (arguments.gram, arguments.dtype, arguments.weights)) or arguments.gaps:
        return False
    matrices = D.ndim == Y.ndim == 2 and D.dtype == Y.dtype and D.dtype in (torch.float32, torch.float64)
    return matrices and D.shape[0] == Y.shape[1] and D.numel() * Y.numel() > 0


def _encode_by_kernels(D: Any, Y: Any, rules: Rules) -> tuple[Any, Any] | None:
    """The codes, and the signals that are left to the host; None where the dictionary is."""
    import torch

    try:
        from pursuit.gpu.pursuits import CONSTRAINED, Pursuit, encode_pursuits, serves
    except ImportError:
        raise ImportError(
            "encode of CUDA tensors needs Triton; pip install triton, or give D.cpu(), Y.cpu()."
        ) from None
    if not serves(D, rules.method):
        return None
    numbers = [(rules.limits, torch.int32), (rules.tols, D.dtype)]
    numbers += [(rules.penalties, torch.float64)] * (rules.method in CONSTRAINED)
    with torch.cuda.device(D.device) if D.is_cuda else nullcontext():  # Triton launches on the current device
        pursuit = Pursuit(D, rules.method, int(rules.limits.max()))
        return encode_pursuits(pursuit, Y, *(_per_signal(rule, len(Y), D.device, dtype) for rule, dtype in numbers))


def _per_signal(rule: Any, count: int, device: Any, dtype: Any) -> Any:
    """One number per signal on the device, from one or from all of them; -1 for minus infinity."""
    import torch

    if len(rule) == 1:
        return torch.full((count,), max(rule[0], -1.0), device=device, dtype=dtype)
    return torch.from_numpy(np.maximum(rule, -1.0)).to(device, dtype)
