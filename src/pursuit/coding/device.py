"""`encode` for torch tensors on a CUDA device: codes as a CSR tensor there.

The pursuits ``omp``, ``ols`` and ``mp`` run on the device (`pursuit.gpu`). Everything else, and the few signals that
rounding decides, is coded on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pursuit._arrays import told
from pursuit.coding.request import stopping_rules
from pursuit.gpu.tensors import is_on_cuda, moved, with_rows


def encode_on_device(on_host: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> Any:
    """The codes of CUDA tensors; `on_host` is `encode` for arrays of the host, `options` are its other arguments."""
    import torch

    if not (torch.is_grad_enabled() and any(getattr(a, "requires_grad", False) for a in (D, Y))):
        return _encode(on_host, D, Y, options)
    from pursuit.gpu.gradients import with_gradients

    if options["method"] == "mp" or options["weights"] is not None or options["gaps"]:
        raise ValueError("gradients go through codes of D and Y alone, and not through 'mp'; give detached tensors.")
    return with_gradients(_encode(on_host, D, Y, options), D, Y)


def _encode(on_host: Callable[..., Any], D: Any, Y: Any, options: dict[str, Any]) -> Any:
    import torch

    for name, given in (("D", D), ("Y", Y)):
        if not is_on_cuda(given) or given.device != D.device:
            where = f"on {given.device}" if isinstance(given, torch.Tensor) else told(given)
            raise TypeError(f"{name} is {where}; give D and Y as tensors on one CUDA device, or both on the host.")
    D, Y, method = D.detach(), Y.detach(), options["method"]
    used = {name for name, value in options.items() if value is not None and value is not False}
    served = D.ndim == Y.ndim == 2 and D.dtype == Y.dtype and D.dtype in (torch.float32, torch.float64)
    served = served and D.shape[0] == Y.shape[1] and D.numel() * Y.numel() > 0 and method in ("omp", "ols", "mp")
    served = served and used - {"atoms", "tol", "progress"} == {"method"}
    if served:
        try:
            from pursuit.gpu.pursuits import Pursuit, encode_pursuits, serves
        except ImportError:
            raise ImportError(
                "encode of CUDA tensors needs Triton; install pursuit[gpu], or give D.cpu(), Y.cpu()."
            ) from None
    found = None
    if served and serves(D, method):
        atoms, tol, B = options["atoms"], options["tol"], len(Y)
        one_rule = not np.ndim(atoms) and not np.ndim(tol)
        limits, tols = stopping_rules(atoms, tol, method, tuple(D.shape), 1 if one_rule else B)
        rules = _each(limits, B, D.device, torch.int32), _each(tols, B, D.device, D.dtype)
        found = encode_pursuits(Pursuit(D, method, int(limits.max())), Y, *rules)
    if found is None:  # the host says which column is zero or not finite, or serves what the device does not
        return moved(on_host(D.cpu(), Y.cpu(), **options), D)
    codes, left = found
    if not len(left):
        return codes
    places = np.zeros(len(left), int) if one_rule else left.cpu().numpy()
    rules_there = {"atoms": limits[places], "tol": None if tol is None else tols[places]}
    return with_rows(codes, left, moved(on_host(D.cpu(), Y[left].cpu(), **rules_there, method=method), D))


def _each(rule: Any, count: int, device: Any, dtype: Any) -> Any:
    """One number per signal on the device, from one or from all of them; -1 for minus infinity."""
    import torch

    if len(rule) == 1:
        return torch.full((count,), max(rule[0], -1.0), device=device, dtype=dtype)
    return torch.from_numpy(np.maximum(rule, -1.0)).to(device, dtype)
