"""All signals of a request: in tiles, tiles on threads, codes as one sparse array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit.coding.request import Request
from pursuit.coding.strategies import solver_chain
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


def solve_in_tiles(request: Request) -> sp.csr_array:
    """The codes of all signals of a request."""
    rules, total = request.rules, len(request.Y)
    hidden = None if request.progress else True
    bar = tqdm(total=total, disable=hidden, desc="encode", unit=" signals", leave=False)
    with bar, single_threaded_blas:
        with np.errstate(all="ignore"):  # BLAS raises flags for numbers that it reads and does not use
            chain = solver_chain(request)
        size = total if chain.one_tile else tile_size(request, chain.bytes_per_signal)
        parts: list[Any] = [None] * -(-total // max(size, 1))
        full = int(rules.limits.min(initial=rules.width)) == rules.width and not np.isfinite(rules.tols).any()
        full = full and not rules.is_lasso
        shared = Codes.empty(rules.limits, request.dtype) if full else None  # codes that will have one length

        def solve(first: int, last: int) -> None:
            for number in range(first, last):
                start, stop = number * size, min((number + 1) * size, total)
                with np.errstate(all="ignore"):  # squares out of range are found and scaled away
                    limits = rules.limits[start:stop]
                    codes = Codes.empty(limits, request.dtype) if shared is None else shared.rows(start, stop)
                    tile = Tile(chain.request, start, codes)
                    chain.solve(tile)
                parts[number] = tile.pack()
                bar.update(stop - start)

        in_parallel(solve, len(parts), 1)
    if shared is not None and int(shared.counts.sum()) == shared.x.size:
        parts = [(shared.counts, shared.atoms.ravel(), shared.x.ravel())]
    return assemble(parts, (total, request.D.shape[1]), request.dtype)


def tile_size(request: Request, bytes_per_signal: int) -> int:
    """Signals of a tile: as many as fit, and some tiles for each thread, so that none is idle for long."""
    row = request.dtype.itemsize * request.D.shape[1]
    most: int = min(PRODUCT_BYTES // row + 512, TILE_BYTES // bytes_per_signal)
    portion = -(-len(request.Y) // request.threads)
    rounds = max(-(-portion // max(most, 1)), min(4, portion // 64), 1)
    return max(1, -(-portion // rounds))
