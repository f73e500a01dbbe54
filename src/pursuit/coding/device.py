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


def is_on_cuda(a: Any) -> bool:
    """Whether this is a torch tensor on a CUDA device."""
    return type(a).__module__.partition(".")[0] == "torch" and bool(getattr(a, "is_cuda", False))


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
    if used - {"atoms", "tol", "progress"} != {"method"} or options["method"] != "omp" or not served or not Y.numel():
        return moved(on_host(D.cpu(), Y.cpu(), **options), D)
    try:
        from pursuit.gpu import encode_omp
    except ImportError:
        raise ImportError(
            "encode of CUDA tensors needs Triton; install pursuit[gpu], or give D.cpu(), Y.cpu()."
        ) from None
    if D.shape[0] != Y.shape[1]:
        shapes = f"{tuple(Y.shape)} and D {tuple(D.shape)}"
        raise ValueError(f"Y has shape {shapes}; signals are rows of Y, as long as the columns of D.")
    norms = torch.linalg.vector_norm(D, dim=0)
    if not bool(((norms > 0) & torch.isfinite(norms)).all()):  # which column it is, and scales beyond float32
        return moved(on_host(D.cpu(), Y.cpu(), **options), D)
    limits, tols = stopping_rules(options["atoms"], options["tol"], "omp", tuple(D.shape), len(Y))
    codes, left = encode_omp(
        D, Y,
        torch.from_numpy(limits.astype(np.int32)).to(D.device),
        torch.from_numpy(np.maximum(tols, -1.0)).to(D.device, D.dtype),
    )  # fmt: skip
    if not len(left):
        return codes
    places = left.cpu().numpy()
    tol = tols[places] if options["tol"] is not None else None
    rest = moved(on_host(D.cpu(), Y[left].cpu(), atoms=limits[places], tol=tol), D)
    return with_rows(codes, left, rest)


def moved(found: Any, to: Any) -> Any:
    """Codes of the host, and gaps beside them, on the device of a tensor."""
    import torch

    if isinstance(found, tuple):
        return moved(found[0], to), torch.from_numpy(found[1]).to(to.device)
    arrays = (
        torch.from_numpy(a).to(to.device) for a in (found.indptr.astype(np.int64), found.indices.astype(np.int64))
    )
    values = torch.from_numpy(found.data).to(to.device)
    return torch.sparse_csr_tensor(*arrays, values, found.shape, check_invariants=False)


def with_rows(codes: Any, places: Any, rows: Any) -> Any:
    """A CSR tensor whose empty rows at these places are replaced."""
    import torch

    counts, more = codes.crow_indices().diff(), rows.crow_indices().diff()
    owners = [torch.repeat_interleave(torch.arange(len(counts), device=places.device), counts)]
    owners.append(torch.repeat_interleave(places, more))
    order = torch.argsort(torch.cat(owners), stable=True)
    starts = torch.nn.functional.pad(torch.cumsum(counts.index_copy(0, places, more), 0), (1, 0))
    columns = torch.cat([codes.col_indices(), rows.col_indices()])[order]
    values = torch.cat([codes.values(), rows.values()])[order]
    return torch.sparse_csr_tensor(starts, columns, values, codes.shape, check_invariants=False)
