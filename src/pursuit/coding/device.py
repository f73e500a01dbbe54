"""`encode` for torch tensors and CuPy arrays on a CUDA device: codes as a CSR tensor or matrix there.

All methods without weights run on the device (`pursuit.gpu`). Everything else, and the few signals that rounding
decides, is coded on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from array_api_compat import is_cupy_array

from pursuit.arguments import as_bool, describe
from pursuit.coding.request import penalty_rule, stopping_rules
from pursuit.gpu.tensors import is_on_cuda, moved, with_rows


def is_on_device(a: Any) -> bool:
    """Whether this is an array or tensor on a CUDA device."""
    return is_on_cuda(a) or is_cupy_array(a)


def encode_on_device(on_host: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> Any:
    """The codes of CUDA tensors; `on_host` is `encode` for arrays of the host, `options` are its other arguments."""
    if is_cupy_array(D) or is_cupy_array(Y):
        return _encode_cupy(on_host, D, Y, options)
    import torch

    if not (torch.is_grad_enabled() and any(getattr(a, "requires_grad", False) for a in (D, Y))):
        return _encode(on_host, D, Y, options)
    from pursuit.gpu.gradients import with_gradients

    if options["method"] == "mp" or options["weights"] is not None or options["gaps"]:
        raise ValueError("gradients go through codes of D and Y alone, and not through 'mp'; give detached tensors.")
    return with_gradients(_encode(on_host, D, Y, options), D, Y)


def _encode_cupy(on_host: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> Any:
    """The codes of CuPy arrays as a CuPy CSR matrix, through tensors that share their memory."""
    try:
        from torch import from_dlpack
    except ImportError:
        raise ImportError(
            "encode of CuPy arrays needs torch; install pursuit[gpu], or give cupy.asnumpy(D), cupy.asnumpy(Y)."
        ) from None
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    D, Y = (from_dlpack(a) if is_cupy_array(a) else a for a in (D, Y))
    found = encode_on_device(on_host, D, Y, options)
    codes, *gaps = found if options["gaps"] else (found,)
    parts = (codes.values(), codes.col_indices(), codes.crow_indices())
    coded = csr_matrix(tuple(map(cupy.from_dlpack, parts)), shape=tuple(codes.shape))
    return (coded, *map(cupy.from_dlpack, gaps)) if gaps else coded


def _encode(on_host: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> Any:
    import torch

    for name, given in (("D", D), ("Y", Y)):
        if not is_on_cuda(given) or given.device != D.device:
            where = f"on {given.device}" if isinstance(given, torch.Tensor) else describe(given)
            raise TypeError(f"{name} is {where}; give D and Y as tensors on one CUDA device, or both on the host.")
    D, Y, method = D.detach(), Y.detach(), options["method"]
    used = {name for name, value in options.items() if value is not None and value is not False}
    served = D.ndim == Y.ndim == 2 and D.dtype == Y.dtype and D.dtype in (torch.float32, torch.float64)
    served = served and D.shape[0] == Y.shape[1] and D.numel() * Y.numel() > 0
    found, served = None, served and used <= {"atoms", "tol", "penalty", "positive", "method", "progress", "n_jobs"}
    if served:
        try:
            from pursuit.gpu.pursuits import CONSTRAINED, Pursuit, encode_pursuits, serves
        except ImportError:
            raise ImportError(
                "encode of CUDA tensors needs Triton; install pursuit[gpu], or give D.cpu(), Y.cpu()."
            ) from None
        given, B = {name: options[name] for name in ("atoms", "tol", "penalty")}, len(Y)
        count = B if any(map(np.ndim, given.values())) else 1
        limits, tols = stopping_rules(given["atoms"], given["tol"], method, tuple(D.shape), count)
        penalties, kernel = penalty_rule(given["penalty"], as_bool(options["positive"], "positive"), method, count)
        rules = [(limits, torch.int32), (tols, D.dtype), *([(penalties, torch.float64)] * (kernel in CONSTRAINED))]
        if serves(D, kernel):
            pursuit = Pursuit(D, kernel, int(limits.max()))
            found = encode_pursuits(pursuit, Y, *(_each(rule, B, D.device, dtype) for rule, dtype in rules))
    if found is None:  # the host says which column is zero or not finite, or serves what the device does not
        return moved(on_host(D.cpu(), Y.cpu(), **options), D)
    codes, left = found
    if not len(left):
        return codes
    each = zip(given, (limits, tols, penalties), strict=True)
    rest = {name: rule[left.cpu().numpy()] for name, rule in each if np.ndim(given[name])}
    return with_rows(codes, left, moved(on_host(D.cpu(), Y[left].cpu(), **options | rest), D))


def _each(rule: Any, count: int, device: Any, dtype: Any) -> Any:
    """One number per signal on the device, from one or from all of them; -1 for minus infinity."""
    import torch

    if len(rule) == 1:
        return torch.full((count,), max(rule[0], -1.0), device=device, dtype=dtype)
    return torch.from_numpy(np.maximum(rule, -1.0)).to(device, dtype)
