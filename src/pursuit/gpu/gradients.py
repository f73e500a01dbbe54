"""Gradients through sparse codes, for training: derivatives of the weights where the active atoms stay the same."""

from __future__ import annotations

from typing import Any

import torch

from pursuit.gpu.tensors import csr_tensor

TILE = 1 << 26
"""Numbers of the active atoms that are gathered at the same time."""

Tensor = Any


def with_gradients(codes: Tensor, D: Tensor, Y: Tensor) -> Tensor:
    r"""The codes, a CSR tensor whose values depend on D and Y.

    On its active atoms A, a code of ``omp``, ``ols``, ``nnomp``, ``lasso`` or ``nnls`` solves
    :math:`A^\top A x = A^\top y - \lambda s` with a constant s, so that

    .. math:: A^\top A\, dx = dA^\top (y - A x) + A^\top (dy - dA\, x).
    """
    starts, columns = codes.crow_indices(), codes.col_indices()
    return csr_tensor(starts, columns, _Values.apply(D, Y, starts, columns, codes.values()), codes.shape)


class _Values(torch.autograd.Function):  # type: ignore[misc]
    """The values of given codes."""

    @staticmethod
    def forward(ctx: Any, D: Tensor, Y: Tensor, starts: Tensor, columns: Tensor, values: Tensor) -> Tensor:
        ctx.save_for_backward(D, Y, starts, columns, values)
        return values.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, slopes: Tensor) -> tuple[Any, ...]:
        D, Y, starts, columns, values = ctx.saved_tensors
        to_atoms, to_signals = torch.zeros_like(D.T, memory_format=torch.contiguous_format), torch.zeros_like(Y)
        counts = starts.diff()
        k = int(counts.max()) if len(columns) else 0
        place = torch.arange(k, device=D.device)
        for some in torch.arange(len(Y), device=D.device).split(max(1, TILE // max(1, k * len(D)))):
            used = place < counts[some, None]  # codes have different lengths
            at = torch.where(used, starts[some, None] + place, 0)
            which = columns[at]
            A = torch.where(used[:, :, None], D.T[which], 0.0)
            x, slope = torch.where(used, values[at], 0.0), torch.where(used, slopes[at], 0.0)
            gram = A @ A.mT + torch.diag_embed((~used).to(D.dtype))
            dual = torch.linalg.solve(gram, slope[:, :, None]).squeeze(2)
            u = (dual[:, None, :] @ A).squeeze(1)
            r = Y[some] - (x[:, None, :] @ A).squeeze(1)
            to_signals[some] = u
            rows = dual[:, :, None] * r[:, None, :] - x[:, :, None] * u[:, None, :]
            to_atoms.index_add_(0, which[used], rows[used])
        return to_atoms.T, to_signals, None, None, None
