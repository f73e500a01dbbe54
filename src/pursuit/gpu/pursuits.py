"""Codes of many signals, torch tensors on a CUDA device.

Orthogonal matching pursuit finds its atoms on the tensor cores, or as the other pursuits do: they update the products
of all atoms in full precision. Weights with constraints or a penalty are found in float64. What rounding decides is
left to the host. Memory alone limits signals, entries, columns and atoms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import numpy as np
import torch
import triton

from pursuit.gpu import kernels
from pursuit.gpu.tensors import csr_tensor
from pursuit.native import MP_STEPS

CONSTRAINED = ("nnomp", "lasso", "positive_lasso")
"""Methods, as the kernels of the host call them."""
SHORT = 256
"""Entries of a signal up to which a block of residuals stays in shared memory while all atoms pass by."""
PIECE, COLUMNS_AT_ONCE = 1024, 4096
"""Entries of a vector, and products with a dictionary, that one program reads at a time."""
EXACT: dict[str, Any] = {"enable_fp_fusion": False}
"""Kernels that decide fuse no product with a sum: it would be rounded in some threads only, which add in other orders.
Of two equal atoms, they could take both."""
FILLING = 64
"""Signals for each processor of a device that fill it."""
SQUARE, BYTES_OF_ROWS = 64, 2**14
"""Entries and columns of a dictionary that one program turns into rows, and bytes of a basis that one program holds."""
ROOM, MORE_ROOM = {True: 64, False: 128}, 4
"""Atoms for which a code has room, with constraints and without, where its rule is no number of atoms; and how many
times as much it has where that does not suffice."""
MIN_SHARE = 1e-6
"""The least share of the squared length of an atom that is orthogonal to others, for weights with constraints, which
lose at most six digits of sixteen."""
MAX_TILE_BYTES = 2**32
"""Memory of the signals that are coded at the same time; at most a quarter of the free memory."""
KEPT, MAX_KEPT_BYTES = 8, 2**27
"""How many shapes of small calls have their launches kept, and what memory a call needs that is small."""
PLAIN_RATE, TENSOR_RATE, CACHE_RATE, LAUNCH, TURN = 4e13, 3.5e14, 4e12, 6e-6, 4e-6
"""About what an H200 reaches: operations a second in float32 and on its tensor cores, bytes a second; and the seconds
of a launch, and of a turn of one signal. They choose between two right ways."""

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
    """Codes of some signals: up to k atoms each, their weights in units of the signal, and how many; -1: no code,
    -2: not enough room, -3: a signal that is not finite."""

    atoms: Tensor
    x: Tensor
    units: Tensor
    counts: Tensor


@dataclass(frozen=True)
class Solution:
    """What a call left on the device: codes with their places, how many atoms each has, the parts of a CSR tensor,
    which are longer than needed, and the smallest count and the number of all atoms; -4 where a column of the
    dictionary is zero or not finite."""

    pursuit: Pursuit
    rules: Sequence[Tensor]
    parts: list[tuple[Any, Codes]]
    counts: Tensor
    csr: tuple[Tensor, Tensor, Tensor]
    summary: Tensor

    @classmethod
    def of(cls, pursuit: Pursuit, Y: Tensor, rules: Sequence[Tensor], parts: list[Any], counts: Tensor) -> Solution:
        starts = torch.zeros(len(counts) + 1, device=Y.device, dtype=torch.int64)
        torch.cumsum(counts.clamp(min=0), 0, out=starts[1:])
        room = sum(codes.atoms.numel() for _, codes in parts)
        columns = torch.empty(room, device=Y.device, dtype=torch.int64)
        values = torch.empty(room, device=Y.device, dtype=Y.dtype)
        for which, codes in parts:
            pursuit.pack(codes, starts[which], columns, values)
        summary = torch.stack([torch.where(pursuit.sound, counts.min(), -4), starts[-1]])
        return cls(pursuit, rules, parts, counts, (starts, columns, values), summary)

    def with_more_room(self, Y: Tensor) -> Solution:
        """The same, with codes for which there was not enough room."""
        pursuit, counts, places = copy(self.pursuit), self.counts.clone(), torch.nonzero(self.counts == -2).ravel()
        rules = [rule[places] for rule in self.rules]
        pursuit.give_room(min(MORE_ROOM * pursuit.k, int(rules[0].max())))
        more, counts[places] = _solve(pursuit, Y[places], rules)
        parts = self.parts + [(places[which], codes) for which, codes in more]
        return Solution.of(pursuit, Y, self.rules, parts, counts)


Rule = tuple[np.ndarray[Any, Any], Any]
"""One number for each signal, or one for all, and the dtype that the kernels read."""


def encode_pursuits(D: Tensor, Y: Tensor, method: str, k: int, *rules: Rule) -> tuple[Tensor, Tensor] | None:
    """The codes of the rows of Y as a CSR tensor, and the places of signals that are left to the host; None where a
    column of the dictionary is zero or not finite. Codes have room for k atoms, and more where that does not suffice.
    The rules are limits on the atoms, tolerances (negative: none) and, with constraints, penalties. Two numbers come to
    the host after all launches."""
    Y = Y.contiguous()
    solution, kept = _launch(D, Y, method, k, rules)
    while (head := solution.summary.tolist())[0] == -2:
        solution, kept = solution.with_more_room(Y), False
    least, total = head
    if least == -4:
        return None
    if least == -3:
        raise ValueError("Y contains NaN or infinity; remove or impute those entries first.")
    starts, columns, values = solution.csr
    if kept or total < len(columns):
        starts, columns, values = starts.clone(), columns[:total].clone(), values[:total].clone()
    unsolved = torch.nonzero(solution.counts < 0).ravel() if least < 0 else starts[:0]
    return csr_tensor(starts, columns, values, (len(Y), D.shape[1])), unsolved


def _launch(D: Tensor, Y: Tensor, method: str, k: int, rules: Sequence[Rule]) -> tuple[Solution, bool]:
    """Launch all kernels of a call. From the second small call of one kind on, in one thread and stream, they are one
    CUDA graph, since the host takes longer to launch them than the device to run them: the solution is then kept, and
    valid until the next call."""
    rows = triton.next_power_of_2(max(k, 16))
    numbers = D.numel() + D.shape[1] ** 2 + len(Y) * (D.shape[0] + D.shape[1] + k * rows)
    if not D.is_cuda or numbers * D.element_size() > MAX_KEPT_BYTES or torch.cuda.is_current_stream_capturing():
        return _solution(D, Y, method, k, _per_signal(rules, Y)), False
    stream = torch.cuda.current_stream(D.device)
    key = (get_ident(), stream, D.dtype, D.shape, len(Y), method, k, *(rule.tobytes() for rule, _ in rules))
    graph = _KEPT.pop(key, None)
    while len(_KEPT) >= KEPT:
        _KEPT.pop(next(iter(_KEPT)), None)
    if isinstance(graph, Graph) or graph:
        _KEPT[key] = graph = graph if isinstance(graph, Graph) else Graph(D, Y, method, k, _per_signal(rules, Y))
        return graph.replay(D, Y), True
    _KEPT[key] = True
    return _solution(D, Y, method, k, _per_signal(rules, Y)), False


def _solution(D: Tensor, Y: Tensor, method: str, k: int, rules: Sequence[Tensor]) -> Solution:
    pursuit = Pursuit(D, method, k, len(Y))
    return Solution.of(pursuit, Y, rules, *_solve(pursuit, Y, rules))


def _per_signal(rules: Sequence[Rule], Y: Tensor) -> list[Tensor]:
    """One number per signal on the device, from one or from all of them; -1 for minus infinity."""
    numbers = [(np.maximum(rule, -1.0), dtype) for rule, dtype in rules]
    return [
        torch.full((len(Y),), rule[0], device=Y.device, dtype=dtype)
        if len(rule) == 1
        else torch.from_numpy(rule).to(Y.device, dtype)
        for rule, dtype in numbers
    ]


class Graph:
    """The launches of a call on tensors of its own, into which those of later calls are copied."""

    def __init__(self, D: Tensor, Y: Tensor, method: str, k: int, rules: Sequence[Tensor]) -> None:
        self.D, self.Y = (a.clone(memory_format=torch.contiguous_format) for a in (D, Y))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.solution = _solution(self.D, self.Y, method, k, rules)

    def replay(self, D: Tensor, Y: Tensor) -> Solution:
        """The solution, valid until the next call."""
        self.D.copy_(D)
        self.Y.copy_(Y)
        self.graph.replay()
        return self.solution


_KEPT: dict[Any, Any] = {}
"""Graphs of the last small calls, or that there was one."""


def _solve(pursuit: Pursuit, Y: Tensor, rules: Sequence[Tensor]) -> tuple[list[tuple[Any, Codes]], Tensor]:
    """Codes of the rows of Y, in tiles that fit into the memory, each with its places; and the count of all."""
    memory = MAX_TILE_BYTES
    if Y.is_cuda and len(Y) * pursuit.bytes > 2**28:
        memory = min(memory, _free(Y.device))
    tile = max(1, memory // pursuit.bytes)
    tiles = [slice(first, first + tile) for first in range(0, len(Y), tile)]
    parts = [(which, pursuit.solve(Y[which], *(rule[which] for rule in rules))) for which in tiles]
    counts = [codes.counts for _, codes in parts]
    return parts, torch.cat(counts) if len(counts) > 1 else counts[0]


def _free(device: Any) -> int:
    """A quarter of the bytes that are free; to ask takes a while."""
    return int(torch.cuda.mem_get_info(device)[0] // 4)


class Launches:
    """Launches of one kernel with the same tensors. Triton prepares the first; the others skip that, which would take
    longer than a small kernel. `constants` are in the order of the kernel's parameters."""

    def __init__(self, kernel: Any, grid: tuple[int, ...], constants: dict[str, int], **options: Any) -> None:
        self.kernel, self.grid, self.constants, self.options = kernel, grid, constants, options
        self.prepared: Any = None  # stays so in Triton's interpreter

    def __call__(self, *arguments: Any) -> None:
        if self.prepared is None:
            compiled = self.kernel[self.grid](*arguments, **self.constants, **self.options)
            self.prepared = compiled and compiled[(*self.grid, 1, 1)[:3]]
        else:
            self.prepared(*arguments, *self.constants.values())


def _occupancy(vector: int, rows: int, whole: bool, fills: bool) -> tuple[dict[str, Any], int]:
    """How many warps serve one signal and the registers that each thread may have, and how many atoms a signal reads at
    once, for pieces of vectors of so many bytes. Where signals fill the device, more of them at a time hide the time
    that memory takes."""
    if vector <= 1024 and rows <= 32:
        return EXACT | {"num_warps": 1} | ({"maxnreg": 64} if fills else {}), 4
    if rows > 64:
        return EXACT | {"num_warps": 2 if rows <= 128 else 8}, 4
    short = vector <= 4096
    return EXACT | {"num_warps": 1 if whole and short else 2}, 8 if short else 4


class Pursuit:
    """A dictionary times a power of two, the `scale`, so that its longest atom has a norm from 1/2 to 1, and codes of
    up to k atoms of signals, for which each needs that many `bytes`. It is `sound` if no column is zero and all are
    finite. What depends on the numbers of D stays on the device."""

    def __init__(self, D: Tensor, method: str, k: int, signals: int) -> None:
        self.method = method
        D = D.double() if method in CONSTRAINED else D
        self.d, self.n = D.shape
        self.precision = PRECISIONS[D.dtype]
        on_cuda = D.is_cuda  # otherwise in Triton's interpreter
        self.processors = torch.cuda.get_device_properties(D.device).multi_processor_count if on_cuda else 1
        self.searches, self.uses_gram = self._plan(k, signals, D)
        self._prepare(D)
        self.gram = self.atoms @ self.atoms.T if self.uses_gram else self.atoms
        self.give_room(k)

    def _plan(self, k: int, signals: int, D: Tensor) -> tuple[bool, bool]:
        """Whether to find atoms by searches, and whether with the Gram matrix: whatever takes less time."""
        B, d, n, size = max(signals, 1), self.d, self.n, D.element_size()
        gram = 2.0 * n * n * d / PLAIN_RATE
        bytes_of_gram = size * n * n
        if D.is_cuda and bytes_of_gram > 2**28 and bytes_of_gram > _free(D.device):
            gram = math.inf
        pairs = 0.5 * B * k * k * size / CACHE_RATE  # to read all active atoms in all turns, for each of their entries
        search = k * (2.0 * LAUNCH + 2.0 * max(B, 64) * d * n / TENSOR_RATE) + pairs * d + min(gram, pairs * d)
        update = gram + 2.0 * B * d * n / PLAIN_RATE + pairs * n + k * TURN * math.ceil(B / (4 * self.processors))
        if self.method == "omp" and search < update:
            return True, gram < pairs * d
        if gram == math.inf:
            raise MemoryError(
                f"{self.method!r} needs the Gram matrix of D, {bytes_of_gram / 1e9:.0f} GB for {n} columns, which the "
                "device does not have; give fewer columns, or the tensors on the host."
            )
        return False, True

    def _prepare(self, D: Tensor) -> None:
        """The atoms as rows; for searches in float16 as well, in rows and columns that blocks of a search divide."""
        d, n = self.d, self.n
        self.short = d <= SHORT
        self.width = triton.next_power_of_2(max(d, 16)) if self.short else 64
        self.side, self.columns, self.warps = 128, 128, 4
        if self.short:
            self.side, self.columns, self.warps = (128, 128, 8) if d <= 128 else (64, 64, 4)
        self.stride, rows = d, n
        if self.searches:
            self.stride, rows = triton.cdiv(d, self.width) * self.width, triton.cdiv(n, self.columns) * self.columns
        norms = torch.linalg.vector_norm(D, dim=0)
        self.atoms, self.squares, self.scale = D.new_empty(n, d), torch.empty_like(norms), D.new_empty(())
        sound = torch.empty((), device=D.device, dtype=torch.uint8)
        self.half = (
            torch.empty(rows, self.stride, device=D.device, dtype=torch.float16) if self.searches else self.atoms
        )
        losses = torch.empty_like(norms)
        kernels.prepare[(triton.cdiv(rows, SQUARE),)](
            D, norms, *torch.aminmax(norms), self.scale, sound, self.atoms, self.squares, self.half, losses, d, n,
            *D.stride(), self.stride, WIDTH=SQUARE, COLUMNS=SQUARE, HALF=self.searches,
        )  # fmt: skip
        self.sound = sound.view(torch.bool)
        self.lost = losses.max() if self.searches else losses
        self.noise = (d / 16 + 16) * 2.0**-22

    def give_room(self, k: int) -> None:
        """Make codes of up to k atoms."""
        self.k, self.rows = k, triton.next_power_of_2(max(k, 16))
        self.part = max(1, min(self.rows, BYTES_OF_ROWS // (self.rows * self.atoms.element_size())))
        numbers = k * (self.rows + 2) + (2 * self.d if self.searches else 2 * self.n)
        self.bytes = self.atoms.element_size() * numbers

    def solve(self, Y: Tensor, *rules: Tensor) -> Codes:
        """The codes of the rows of Y."""
        return self.search(Y, *rules) if self.searches else self.update(Y, *rules)

    def search(self, Y: Tensor, limits: Tensor, tols: Tensor) -> Codes:
        """Codes with atoms found on the tensor cores."""
        B, device, precision = len(Y), Y.device, self.precision
        sides, blocks = triton.cdiv(B, self.side), len(self.half) // self.columns
        integers = {"device": device, "dtype": torch.int32}
        R, R16 = torch.empty_like(Y), torch.empty(B, self.stride, device=device, dtype=torch.float16)
        errors, (tops, seconds) = torch.empty(B, device=device), torch.empty(2, blocks, B, device=device)
        states, nearest = torch.empty(B, **integers), torch.empty(blocks, B, **integers)
        (units, lengths), x = Y.new_empty(2, B), Y.new_empty(B, self.k)
        atoms, counts = torch.empty(B, self.k, **integers), torch.empty(B, **integers)
        M = Y.new_empty(B, self.k, self.rows)
        piece = min(PIECE, triton.next_power_of_2(max(self.d, 16)))
        whole = self.uses_gram and self.d <= piece
        kernels.begin[(B,)](
            Y, tols, limits, R, R16, units, lengths, errors, states, counts, self.d, self.stride, WIDTH=piece,
            WHOLE=whole, num_warps=1, **EXACT,
        )  # fmt: skip
        found = (tops, seconds, nearest, B)
        sizes = {"WIDTH": self.width, "SIDE": self.side, "COLUMNS": self.columns}
        if self.short:
            span = triton.cdiv(blocks, max(1, min(blocks // 2, 4 * self.processors // sides))) * self.columns
            where: tuple[int, ...] = len(self.half), self.stride, span
            grid: tuple[int, ...] = sides, triton.cdiv(blocks * self.columns, span)
            search = Launches(kernels.search_short, grid, sizes, num_warps=self.warps, num_stages=2)
        else:
            grid, where = (sides * blocks,), (sides, blocks, self.stride)
            search = Launches(kernels.search, grid, sizes | {"GROUP": 8}, num_warps=self.warps, num_stages=3)
        at_once = min(1024, triton.next_power_of_2(blocks))
        sizes = {"COLUMNS": self.columns, "BLOCKS": at_once, "ROUNDS": triton.cdiv(blocks, at_once), "WIDTH": piece}
        options, chunk = _occupancy(piece * Y.element_size(), self.rows, whole, FILLING * self.processors < B)
        sizes |= {"ROWS": self.rows, "PART": self.part, "CHUNK": chunk, "GRAM": self.uses_gram, "WHOLE": whole}
        sizes["FULL"] = self.d % piece == 0
        advance = Launches(kernels.advance, (B,), sizes, **options)
        for t in range(self.k):
            search(R16, self.half, states, *found, *where)
            advance(
                self.atoms, self.gram, self.squares, Y, R, R16, tols, limits, units, lengths, errors, states, tops,
                seconds, nearest, atoms, x, counts, M, t, B, self.n, self.d, self.stride, self.k, blocks, self.lost,
                self.noise, precision.residual, precision.lead, precision.distance,
            )  # fmt: skip
        return Codes(atoms, x, units, counts)

    def update(self, Y: Tensor, limits: Tensor, tols: Tensor, penalties: Tensor | None = None) -> Codes:
        """Codes with products of all atoms, in full precision."""
        Y = Y.to(self.atoms.dtype)
        B, device, precision = len(Y), Y.device, self.precision
        atoms, counts = torch.empty(B, self.k, device=device, dtype=torch.int32), torch.empty_like(limits)
        x, M = torch.empty(B, self.k, device=device, dtype=Y.dtype), Y.new_empty(B, self.k, self.rows)
        peaks = Y.abs().amax(1).nan_to_num(1.0, 1.0).clamp(min=torch.finfo(Y.dtype).tiny)
        units = torch.exp2(torch.floor(torch.log2(peaks)))
        Y = Y / units[:, None]
        P = Y @ self.atoms.T
        rules = [torch.linalg.vector_norm(Y, dim=1), tols.to(Y.dtype) / units, limits]
        if penalties is not None:
            rules.append(penalties * self.scale / units)
        sizes = {"WIDTH": min(COLUMNS_AT_ONCE, triton.next_power_of_2(self.n)), "ROWS": self.rows}
        options = EXACT | sizes | {"num_warps": 4 if sizes["WIDTH"] <= 1024 else 8}
        if self.method == "mp":
            kernels.match[(B,)](
                P, self.gram, self.squares, *rules, atoms, x, counts, self.n, self.k, MP_STEPS, precision.square,
                precision.lead, **options,
            )  # fmt: skip
        elif self.method in CONSTRAINED:
            noise = 4.0 * self.d**0.5 * torch.finfo(Y.dtype).eps
            kernels.descend[(B,)](
                P, self.gram, self.squares, *rules, atoms, x, counts, M, self.n, self.k, noise, precision.residual,
                precision.square, precision.lead, MIN_SHARE, **options, PART=self.part,
                POSITIVE=self.method != "lasso", PURSUIT=self.method == "nnomp",
            )  # fmt: skip
        else:
            ols = self.method == "ols"
            distances = self.squares.repeat(B, 1) if ols else P
            kernels.pursue[(B,)](
                P, distances, self.gram, self.squares, *rules, atoms, x, counts, M, self.n, self.k, precision.square,
                precision.lead, precision.distance, **options, PART=self.part, OLS=ols,
            )  # fmt: skip
        return Codes(atoms, x, units, counts)

    def pack(self, codes: Codes, starts: Tensor, columns: Tensor, values: Tensor) -> None:
        """Write codes to their places in a CSR matrix."""
        k = codes.atoms.shape[1]
        kernels.pack[(len(codes.counts),)](
            codes.atoms, codes.x, codes.units, self.scale, starts, codes.counts, columns, values, k,
            ROWS=triton.next_power_of_2(max(k, 16)), num_warps=1,
        )  # fmt: skip
