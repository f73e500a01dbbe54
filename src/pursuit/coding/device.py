"""`encode` for torch tensors on a CUDA device: codes as a CSR tensor there.

Orthogonal matching pursuit runs on the device (`pursuit.gpu`). Everything else, and the few signals that rounding
decides, is coded on the host.
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

    for name, given in (("D", D), ("Y", Y)):
        if not is_on_cuda(given) or given.device != D.device:
            where = f"on {given.device}" if isinstance(given, torch.Tensor) else told(given)
            raise TypeError(f"{name} is {where}; give D and Y as tensors on one CUDA device, or both on the host.")
    D, Y = D.detach(), Y.detach()
    used = {name for name, value in options.items() if value is not None and value is not False}
    served = D.ndim == Y.ndim == 2 and D.dtype == Y.dtype and D.dtype in (torch.float32, torch.float64)
    served = served and D.shape[0] == Y.shape[1] and Y.numel() > 0
    if not served or options["method"] != "omp" or used - {"atoms", "tol", "progress"} != {"method"}:
        return moved(on_host(D.cpu(), Y.cpu(), **options), D)
    try:
        from pursuit.gpu.omp import encode_omp
    except ImportError:
        raise ImportError(
            "encode of CUDA tensors needs Triton; install pursuit[gpu], or give D.cpu(), Y.cpu()."
        ) from None
    norms = torch.linalg.vector_norm(D, dim=0)
    if not bool(((norms > 0) & torch.isfinite(norms)).all()):  # which column it is, and scales beyond float32
        return moved(on_host(D.cpu(), Y.cpu(), **options), D)
    atoms, tol, B = options["atoms"], options["tol"], len(Y)
    one_rule = not np.ndim(atoms) and not np.ndim(tol)
    limits, tols = stopping_rules(atoms, tol, "omp", tuple(D.shape), 1 if one_rule else B)
    codes, left = encode_omp(D, Y, _each(limits, B, D.device, torch.int32), _each(tols, B, D.device, D.dtype))
    if not len(left):
        return codes
    places = np.zeros(len(left), int) if one_rule else left.cpu().numpy()
    rest = on_host(D.cpu(), Y[left].cpu(), atoms=limits[places], tol=None if tol is None else tols[places])
    return with_rows(codes, left, moved(rest, D))


def _each(rule: Any, count: int, device: Any, dtype: Any) -> Any:
    """One number per signal on the device, from one or from all of them; -1 for minus infinity."""
    import torch

    numbers = torch.from_numpy(np.maximum(rule, -1.0)).to(device, dtype)
    return numbers.expand(count).contiguous()
