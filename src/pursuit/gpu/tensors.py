"""Sparse codes as tensors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def is_on_cuda(a: Any) -> bool:
    """Whether this is a torch tensor on a CUDA device."""
    return type(a).__module__.partition(".")[0] == "torch" and bool(getattr(a, "is_cuda", False))


def is_cupy_array(a: Any) -> bool:
    """Whether this is an array of CuPy."""
    return type(a).__module__.partition(".")[0] == "cupy"


def csr_tensor(starts: Any, columns: Any, values: Any, shape: Any) -> Any:
    """A CSR tensor, without torch's remark that these are new."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(starts, columns, values, tuple(shape), check_invariants=False)


def to_device(codes: Any, tensor: Any) -> Any:
    """Codes of the host, and gaps beside them, on the device of a tensor."""
    import torch

    if isinstance(codes, tuple):
        return to_device(codes[0], tensor), torch.from_numpy(codes[1]).to(tensor.device)
    arrays = (codes.indptr.astype(np.int64), codes.indices.astype(np.int64), codes.data)
    starts, columns, values = (torch.from_numpy(a).to(tensor.device) for a in arrays)
    return csr_tensor(starts, columns, values, codes.shape)


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
    return csr_tensor(starts, columns, values, codes.shape)
