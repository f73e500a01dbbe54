"""Codes of many signals, torch tensors on a CUDA device.

Orthogonal matching pursuit of signals of up to 1,024 entries finds its atoms on the tensor cores; the other pursuits
update the products of all atoms in full precision. Weights with constraints or a penalty are found in float64. What
rounding decides is left to the host.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton

from pursuit.gpu import kernels
from pursuit.gpu.tensors import csr_tensor
from pursuit.native import MP_STEPS

MAX_FAST_ENTRIES = 1024
"""Entries of a signal up to which a block of residuals fits beside a block of atoms."""
MAX_COLUMNS = 8192
"""Atoms of a dictionary up to which their products with a signal fit into the registers of a block of threads."""
MAX_ATOMS, MAX_MEMBERS = 128, 64
"""Atoms of a code up to which the device finds it; the same with constraints or a penalty."""
CONSTRAINED = ("nnomp", "lasso", "positive_lasso")
"""Methods, as the kernels of the host call them."""
SIDE = COLUMNS = 64
"""Signals and atoms of a block of products on the tensor cores."""
CHUNK = 4
"""Atoms that one signal reads at once."""
MIN_SHARE = 1e-6
"""The least share of the squared length of an atom that is orthogonal to others, for weights with constraints, which
lose at most six digits of sixteen."""
MAX_TILE_BYTES = 2**32
"""Memory of the signals that are coded at the same time; at most a quarter of the free memory."""

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
"""Chosen by experiment, not proved. In float32 the better of two atoms is taken, however little better it is."""


@dataclass(frozen=True)
class Codes:
    """Codes of some signals: up to k atoms each, their weights in units of the signal, and how many; -1: no code, -2:
    a signal that is not finite."""

    atoms: Tensor
    x: Tensor
    units: Tensor
    counts: Tensor


def serves(D: Tensor, method: str) -> bool:
    """Whether the dictionary has a size that the kernels are made for."""
    fast = method == "omp" and D.shape[0] <= MAX_FAST_ENTRIES
    return bool(D.shape[1] <= MAX_COLUMNS * (4 if fast else 0.5 if method in CONSTRAINED else 1))


def encode_pursuits(pursuit: Pursuit, Y: Tensor, *rules: Tensor) -> tuple[Tensor, Tensor] | None:
    """The codes of the rows of Y as a CSR tensor, and the places of signals that are left to the host; None where a
    column of the dictionary is zero or not finite. The rules are limits on the atoms, tolerances (negative: none) and,
    with constraints, penalties, one per signal, on the device. Nothing comes to the host before all is done, so that it
    launches kernels while others run."""
    Y = Y.contiguous()
    memory = MAX_TILE_BYTES
    if Y.is_cuda and len(Y) * pursuit.bytes > 2**28:  # asking for what is free takes a while
        memory = min(memory, torch.cuda.mem_get_info(Y.device)[0] // 4)
    tile = max(1, memory // pursuit.bytes)
    parts = [pursuit.solve(*part) for part in zip(*(a.split(tile) for a in (Y, *rules)), strict=True)]
    counts = torch.cat([codes.counts for codes in parts]) if len(parts) > 1 else parts[0].counts
    starts = torch.nn.functional.pad(torch.cumsum(counts.clamp(min=0), 0, dtype=torch.int64), (1, 0))
    least, total = torch.stack([torch.where(pursuit.sound, counts.min(), -3), starts[-1]]).tolist()
    if least == -3:
        return None
    if least == -2:
        raise ValueError("Y contains NaN or infinity; remove or impute those entries first.")
    columns = torch.empty(total, device=Y.device, dtype=torch.int64)
    values = torch.empty(total, device=Y.device, dtype=Y.dtype)
    first = 0
    for codes in parts:
        pursuit.pack(codes, starts[first:], columns, values)
        first += len(codes.counts)
    unsolved = torch.nonzero(counts < 0).ravel() if least < 0 else counts[:0]
    return csr_tensor(starts, columns, values, (len(Y), pursuit.n)), unsolved


class Launches:
    """Launches of one kernel with the same tensors. Triton prepares the first; the others skip that, which would take
    longer than a small kernel. `constants` are in the order of the kernel's parameters."""

    def __init__(self, kernel: Any, grid: tuple[int, ...], constants: dict[str, int], **options: int) -> None:
        self.kernel, self.grid, self.constants, self.options = kernel, grid, constants, options
        self.prepared: Any = None  # stays so in Triton's interpreter

    def __call__(self, *arguments: Any) -> None:
        if self.prepared is None:
            compiled = self.kernel[self.grid](*arguments, **self.constants, **self.options)
            self.prepared = compiled and compiled[(*self.grid, 1, 1)[:3]]
        else:
            self.prepared(*arguments, *self.constants.values())


class Pursuit:
    """A dictionary times a power of two, the `scale`, so that its longest atom has a norm from 1/2 to 1, its Gram
    matrix, and codes of up to k atoms, for which a signal needs that many `bytes`. It is `sound` if no column is zero
    and all are finite. What depends on the numbers of D stays on the device."""

    def __init__(self, D: Tensor, method: str, k: int) -> None:
        self.method, self.k = method, min(k, MAX_MEMBERS if method in CONSTRAINED else MAX_ATOMS)
        D = D.double() if method in CONSTRAINED else D
        self.rows = triton.next_power_of_2(max(self.k, 16))
        shortest, longest = torch.aminmax(torch.linalg.vector_norm(D, dim=0))
        self.sound = (shortest > 0) & (longest < math.inf)
        self.scale = torch.exp2(-torch.ceil(torch.log2(longest)))
        self.atoms = (D.T * self.scale).contiguous()
        self.gram = self.atoms @ self.atoms.T
        self.n, self.d = self.atoms.shape
        self.precision = PRECISIONS[D.dtype]
        on_cuda = D.is_cuda  # otherwise in Triton's interpreter
        self.processors = torch.cuda.get_device_properties(D.device).multi_processor_count if on_cuda else 1
        self.width = triton.next_power_of_2(max(self.d, 16))
        self.bytes = D.element_size() * (self.n + self.k * self.rows) + 2 * self.width
        self.searches = method == "omp" and self.d <= MAX_FAST_ENTRIES
        if self.searches:
            half = self.atoms.half()
            lost = torch.linalg.vector_norm(self.atoms - half.to(D.dtype), dim=1)
            self.lost = lost.max().float() + (self.d / 16 + 16) * 2.0**-22
            beside, below = self.width - self.d, -self.n % COLUMNS
            self.padded = torch.nn.functional.pad(self.atoms, (0, beside)) if beside else self.atoms
            self.half = torch.nn.functional.pad(half, (0, beside, 0, below)) if beside or below else half

    def solve(self, Y: Tensor, *rules: Tensor) -> Codes:
        """The codes of the rows of Y."""
        return self.search(Y, *rules) if self.searches else self.update(Y, *rules)

    def search(self, Y: Tensor, limits: Tensor, tols: Tensor) -> Codes:
        """Codes with atoms found on the tensor cores."""
        B, device, precision = len(Y), Y.device, self.precision
        sides, blocks = triton.cdiv(B, SIDE), len(self.half) // COLUMNS
        parts = max(1, min(blocks // 2, 4 * self.processors // sides))
        span = triton.cdiv(blocks, parts) * COLUMNS
        integers = {"device": device, "dtype": torch.int32}
        R16 = torch.empty(B, self.width, device=device, dtype=torch.float16)
        errors, (tops, seconds) = torch.empty(B, device=device), torch.empty(2, blocks, B, device=device)
        states, nearest = torch.empty(B, **integers), torch.empty(blocks, B, **integers)
        units, x = Y.new_empty(B), Y.new_empty(B, self.k)
        atoms, counts, M = (
            torch.empty(B, self.k, **integers),
            torch.zeros(B, **integers),
            Y.new_empty(B, self.k, self.rows),
        )
        kernels.begin[(B,)](Y, tols, limits, R16, units, errors, states, self.d, WIDTH=self.width, num_warps=1)
        search = Launches(
            kernels.search, (sides, parts), {"WIDTH": self.width, "SIDE": SIDE, "COLUMNS": COLUMNS},
            num_warps=4, num_stages=2,
        )  # fmt: skip
        sizes = {"COLUMNS": COLUMNS, "BLOCKS": triton.next_power_of_2(blocks), "WIDTH": self.width, "K": self.k}
        sizes |= {"ROWS": self.rows, "CHUNK": CHUNK}
        advance = Launches(kernels.advance, (B,), sizes, num_warps=1 if self.rows <= 32 else 2)
        for t in range(self.k):
            search(R16, self.half, states, tops, seconds, nearest, B, len(self.half), span)
            advance(
                self.padded, self.gram, Y, R16, tols, limits, units, errors, states, tops, seconds, nearest, atoms, x,
                counts, M, t, B, self.n, self.d, blocks, self.lost, precision.residual, precision.lead,
                precision.distance,
            )  # fmt: skip
        return Codes(atoms, x, units, torch.where(states == 0, counts, states.clamp(max=-1)))

    def update(self, Y: Tensor, limits: Tensor, tols: Tensor, penalties: Tensor | None = None) -> Codes:
        """Codes with products of all atoms, in full precision."""
        Y = Y.to(self.atoms.dtype)
        B, device, precision = len(Y), Y.device, self.precision
        atoms, counts = torch.empty(B, self.k, device=device, dtype=torch.int32), torch.empty_like(limits)
        x, M = torch.empty(B, self.k, device=device, dtype=Y.dtype), Y.new_empty(B, self.k, self.rows)
        units = torch.exp2(torch.floor(torch.log2(Y.abs().amax(1).clamp(min=torch.finfo(Y.dtype).tiny))))
        Y = Y / units[:, None]
        arguments = [Y @ self.atoms.T, self.gram, torch.linalg.vector_norm(Y, dim=1), tols.to(Y.dtype) / units, limits]
        if penalties is not None:
            arguments.append(penalties * self.scale / units)
        arguments += [atoms, x, counts, *([] if self.method == "mp" else [M]), self.n]
        sizes = {"WIDTH": triton.next_power_of_2(self.n), "K": self.k, "ROWS": self.rows}
        warps = 4 if self.n <= 1024 else 8
        if self.method == "mp":
            kernels.match[(B,)](*arguments, precision.square, precision.lead, **sizes, STEPS=MP_STEPS, num_warps=warps)
        elif self.method in CONSTRAINED:
            noise = 4.0 * self.d**0.5 * torch.finfo(Y.dtype).eps
            kernels.descend[(B,)](
                *arguments, noise, precision.residual, precision.square, precision.lead, MIN_SHARE, **sizes,
                TURNS=64 + 2 * self.k, POSITIVE=self.method != "lasso", PURSUIT=self.method == "nnomp", num_warps=warps,
            )  # fmt: skip
        else:
            kernels.pursue[(B,)](
                *arguments, precision.square, precision.lead, precision.distance, **sizes, OLS=self.method == "ols",
                num_warps=warps,
            )  # fmt: skip
        return Codes(atoms, x, units, counts)

    def pack(self, codes: Codes, starts: Tensor, columns: Tensor, values: Tensor) -> None:
        """Write codes to their places in a CSR matrix."""
        kernels.pack[(triton.cdiv(len(codes.counts), 64),)](
            codes.atoms, codes.x, codes.units * self.scale, starts, codes.counts, columns, values, len(codes.counts),
            K=self.k, SIDE=64, num_warps=2,
        )  # fmt: skip
