"""All signals of a request: in tiles, tiles on threads, codes as one sparse array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit.coding.request import NONNEGATIVE, Request
from pursuit.coding.strategies import ladder
from pursuit.coding.tiles import Codes, Tile
from pursuit.threads import in_parallel, single_threaded_blas

TILE_BYTES = 16 * 2**20
"""Working memory that a thread may fill with a tile of signals; one signal may always take what it needs."""
PRODUCT_BYTES = 2**22
"""Bytes of a tile's products with the dictionary, besides those of its first 512 signals: enough for BLAS, few enough
for the cache."""


def assemble(parts: list[Any], shape: tuple[int, int], dtype: Any) -> sp.csr_array:
    """One sparse array of the packed codes of all tiles."""
    counts, atoms, x = zip(*parts, strict=True) if parts else ((), (), ())
    ends = np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64)
    kind = np.int32 if ends[-1] < 2**31 else np.int64
    data = x[0] if len(x) == 1 else np.concatenate([np.empty(0, dtype), *x])
    indices = atoms[0] if len(x) == 1 else np.concatenate([np.empty(0, np.int32), *atoms])
    codes = sp.csr_array((data, indices.astype(kind, copy=False), ends.astype(kind)), shape=shape)
    codes.has_sorted_indices = True
    return codes


def solve_in_tiles(request: Request, progress: bool) -> sp.csr_array:
    """The codes of all signals of a request."""
    inputs, total = request.inputs, len(request.inputs.Y)
    kind, n = inputs.dtype, inputs.D.shape[1]
    bar = tqdm(total=total, disable=None if progress else True, desc="encode", unit=" signals", leave=False)
    with bar, single_threaded_blas:
        with np.errstate(all="ignore"):  # BLAS raises flags for numbers that it reads and does not use
            steps = ladder(request)
        size = total if steps.at_once else tile_size(request, steps.bytes_per_signal)
        parts: list[Any] = [None] * -(-total // max(size, 1))
        width = int(request.limits.max(initial=1))
        equal = int(request.limits.min(initial=width)) == width and not np.isfinite(request.tols).any()
        equal = equal and not request.is_lasso
        whole = Codes.empty(request.limits, kind) if equal else None  # codes that will have one length

        def solve(first: int, last: int) -> None:
            for number in range(first, last):
                start, stop = number * size, min((number + 1) * size, total)
                with np.errstate(all="ignore"):  # squares out of range are found and scaled away
                    codes = Codes.empty(request.limits[start:stop], kind) if whole is None else whole.rows(start, stop)
                    tile = Tile(request, start, codes)
                    steps.solve(tile)
                parts[number] = tile.packed(steps.exponent, request.method in NONNEGATIVE)
                bar.update(stop - start)

        in_parallel(solve, len(parts), 1)
    if whole is not None and int(whole.counts.sum()) == whole.x.size:
        parts = [(whole.counts, whole.atoms.ravel(), whole.x.ravel())]
    return assemble(parts, (total, n), kind)


def tile_size(request: Request, bytes_per_signal: int) -> int:
    """Signals of a tile: as many as fit, and some tiles for each thread, so that none is idle for long."""
    row = request.inputs.dtype.itemsize * request.inputs.D.shape[1]
    most: int = min(PRODUCT_BYTES // row + 512, TILE_BYTES // bytes_per_signal)
    portion = -(-len(request.inputs.Y) // request.threads)
    rounds = max(-(-portion // max(most, 1)), min(4, portion // 64), 1)
    return max(1, -(-portion // rounds))
