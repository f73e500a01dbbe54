"""Orthogonal matching pursuit of many signals, torch tensors on a CUDA device.

Two ways lead to a code, and each signal takes the first that proves its choices: atoms found on the tensor cores (for
signals of up to 1,024 entries), and the pursuit in full precision. What rounding decides there is left to the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton

from pursuit.gpu import kernels
from pursuit.gpu.tensors import csr_tensor

MAX_FAST_ENTRIES = 1024
"""Entries of a signal up to which a block of residuals fits beside a block of atoms."""
MAX_ATOMS = 128
"""Atoms of a code up to which the device finds it."""
MAX_TILE_BYTES = 2**32
"""Of what the signals that are coded at the same time need; and no more than a quarter of what is free."""

Tensor = Any


@dataclass(frozen=True)
class Precision:
    """What counts as rounding in a dtype: the residual, its square as a difference of squares, and the lead of an atom,
    relative to the signal; the squared distance of an atom to the span of others, relative to its square."""

    residual: float
    square: float
    lead: float
    distance: float


PRECISIONS = {torch.float32: Precision(1e-3, 1e-4, 0.0, 1e-4), torch.float64: Precision(1e-9, 1e-13, 1e-13, 1e-10)}
"""In float32 the better of two atoms is taken, however little better it is."""


@dataclass(frozen=True)
class Codes:
    """Codes of some signals: up to k atoms each, their weights in units of the signal, and how many; -1: no code."""

    atoms: Tensor
    x: Tensor
    units: Tensor
    counts: Tensor


def encode_omp(D: Tensor, Y: Tensor, limits: Tensor, tols: Tensor) -> tuple[Tensor, Tensor]:
    """The codes of the rows of Y as a CSR tensor, and the places of signals that are left to the host. `limits` and
    `tols` (negative: none) are one per signal, on the device."""
    pursuit, Y = Pursuit(D, min(int(limits.max()), MAX_ATOMS)), Y.contiguous()
    parts = [pursuit.solve(*part) for part in zip(*(a.split(pursuit.tile) for a in (Y, limits, tols)), strict=True)]
    counts = torch.cat([codes.counts for codes in parts])
    starts = torch.nn.functional.pad(torch.cumsum(counts.clamp(min=0), 0, dtype=torch.int64), (1, 0))
    columns = torch.empty(int(starts[-1]), device=Y.device, dtype=torch.int64)
    values = torch.empty(len(columns), device=Y.device, dtype=Y.dtype)
    first = 0
    for codes in parts:
        pursuit.pack(codes, starts[first:], columns, values)
        first += len(codes.counts)
    return csr_tensor(starts, columns, values, (len(Y), pursuit.n)), torch.nonzero(counts < 0).ravel()


class Pursuit:
    """A dictionary whose longest atom has a norm from 1/2 to 1, its Gram matrix, and codes of up to k atoms."""

    def __init__(self, D: Tensor, k: int) -> None:
        self.k, self.rows = k, triton.next_power_of_2(max(k, 16))
        self.scale = 2.0 ** -math.ceil(math.log2(float(torch.linalg.vector_norm(D, dim=0).max())))
        self.atoms = (D.T * self.scale).contiguous()
        self.gram = self.atoms @ self.atoms.T
        self.n, self.d = self.atoms.shape
        self.precision = PRECISIONS[D.dtype]
        on_cuda = D.is_cuda  # otherwise in Triton's interpreter
        self.processors = torch.cuda.get_device_properties(D.device).multi_processor_count if on_cuda else 1
        room = min(MAX_TILE_BYTES, torch.cuda.mem_get_info(D.device)[0] // 4 if on_cuda else MAX_TILE_BYTES)
        self.width = triton.next_power_of_2(max(self.d, 16))
        self.tile = max(1, room // (D.element_size() * (self.n + self.k * self.rows) + 2 * self.width))
        if self.d <= MAX_FAST_ENTRIES:
            self.columns = 128 if self.width <= 256 else 64
            self.padded = torch.nn.functional.pad(self.atoms, (0, self.width - self.d))
            self.half = torch.nn.functional.pad(self.padded, (0, 0, 0, -self.n % self.columns)).half()
            lost = torch.linalg.vector_norm(self.padded - self.half[: self.n].to(D.dtype), dim=1)
            self.lost = float(lost.max()) + (self.d / 16 + 16) * 2.0**-22

    def solve(self, Y: Tensor, limits: Tensor, tols: Tensor) -> Codes:
        """The codes of the rows of Y: the fast way, and in full precision what that leaves."""
        large = self.d > MAX_FAST_ENTRIES
        codes = self.exact(Y, limits, tols) if large else self.fast(Y, limits, tols)
        if int(codes.counts.min()) == -2:
            raise ValueError("Y contains NaN or infinity; remove or impute those entries first.")
        missing = torch.nonzero(codes.counts < 0).ravel()
        if len(missing) and not large:
            more = self.exact(Y[missing], limits[missing], tols[missing])
            for name in ("atoms", "x", "units", "counts"):
                getattr(codes, name)[missing] = getattr(more, name)
        return codes

    def fast(self, Y: Tensor, limits: Tensor, tols: Tensor) -> Codes:
        """Codes with atoms found on the tensor cores."""
        B, device, precision = len(Y), Y.device, self.precision
        side, few = 128 if self.width <= 256 else 64, 1 if self.rows <= 32 else 4
        blocks, columns = triton.cdiv(B, side), len(self.half)
        parts = max(1, min(4, columns // (2 * self.columns), 2 * self.processors // blocks))
        span = triton.cdiv(columns, parts * self.columns) * self.columns
        whole = {"device": device, "dtype": torch.int32}
        R16 = torch.empty(B, self.width, device=device, dtype=torch.float16)
        errors, tops = torch.empty(B, device=device), torch.empty(parts, B, 3, device=device)
        states, found = torch.empty(B, **whole), torch.empty(parts, B, 2, **whole)
        units, x = Y.new_empty(B), Y.new_empty(B, self.k)
        atoms, counts, M = torch.empty(B, self.k, **whole), torch.zeros(B, **whole), Y.new_empty(B, self.k, self.rows)
        kernels.begin[(B,)](Y, tols, limits, R16, units, errors, states, self.d, WIDTH=self.width, num_warps=1)
        for t in range(self.k):
            kernels.search[(blocks, parts)](
                R16, self.half, states, tops, found, B, columns, span,
                WIDTH=self.width, SIDE=side, COLUMNS=self.columns, num_warps=8, num_stages=2,
            )  # fmt: skip
            kernels.advance[(B,)](
                self.padded, self.gram, Y, R16, tols, limits, units, errors, states, tops, found, atoms, x, counts, M,
                t, B, self.n, self.d, self.lost, precision.residual, precision.lead, precision.distance,
                PARTS=parts, WIDTH=self.width, K=self.k, ROWS=self.rows, CHUNK=8, num_warps=few,
            )  # fmt: skip
        return Codes(atoms, x, units, torch.where(states == 0, counts, torch.where(states > 0, -1, states)))

    def exact(self, Y: Tensor, limits: Tensor, tols: Tensor) -> Codes:
        """Codes in full precision."""
        B, device, precision = len(Y), Y.device, self.precision
        atoms, counts = torch.empty(B, self.k, device=device, dtype=torch.int32), torch.empty_like(limits)
        x, M = torch.empty(B, self.k, device=device, dtype=Y.dtype), Y.new_empty(B, self.k, self.rows)
        units = torch.exp2(torch.floor(torch.log2(Y.abs().amax(1).clamp(min=torch.finfo(Y.dtype).tiny))))
        Y = Y / units[:, None]
        kernels.pursue[(B,)](
            Y @ self.atoms.T, self.gram, torch.linalg.vector_norm(Y, dim=1), tols / units, limits, atoms, x, counts, M,
            self.n, precision.square, precision.lead, precision.distance,
            WIDTH=triton.next_power_of_2(self.n), K=self.k, ROWS=self.rows, num_warps=4 if self.n <= 1024 else 8,
        )  # fmt: skip
        return Codes(atoms, x, units, counts)

    def pack(self, codes: Codes, starts: Tensor, columns: Tensor, values: Tensor) -> None:
        """Write codes to their places in a CSR matrix."""
        kernels.pack[(triton.cdiv(len(codes.counts), 64),)](
            codes.atoms, codes.x, codes.units * self.scale, starts, codes.counts, columns, values, len(codes.counts),
            K=self.k, SIDE=64, num_warps=2,
        )  # fmt: skip
