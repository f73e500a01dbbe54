"""Rooms that the fast pursuit works in, for a wave of signals, and the names of what is where.

One number of each signal side by side makes a vector. Rooms come from outside the kernel, once for all tiles of a
thread, and so do the addresses that vector code is given.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pursuit.encode.search import BLOCK, LANES
from pursuit.encode.vector import WAVE

PRODUCT, LEAST, ROOT, STEP, LOSS, MASS, SPAN, WORST, PEAK = range(9)
"""Numbers of the atom that enters: see `enter`; and `spread`: sums of norms times weights, and times the row of T; the
largest entry on the diagonal of T^T T, for atoms of norm 1; the largest weight times norm."""


def aligned(shape: tuple[int, ...], dtype: Any, make: Any = np.zeros) -> Any:
    """Zeros (or what else is made) from a boundary of cache lines on: vectors that straddle two lines cost twice."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = make(size + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + size].view(dtype).reshape(shape)


def several(*kinds: tuple[tuple[int, ...], Any]) -> list[Any]:
    """Such arrays of zeros, of shapes and dtypes, in one room: who holds one of them holds all."""
    sizes = [-(-math.prod(shape) * np.dtype(dtype).itemsize // 64) * 64 for shape, dtype in kinds]
    raw = aligned((sum(sizes),), np.uint8)
    ends = np.cumsum(sizes)
    return [
        raw[end - size : end - size + math.prod(shape) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)
        for (shape, dtype), size, end in zip(kinds, sizes, ends, strict=True)
    ]


def addresses(*arrays: Any) -> tuple[int, ...]:
    """Of arrays whose entries lie one after the other, which is what kernels that are told no strides rely on."""
    for array in arrays:
        if not array.flags.c_contiguous:
            raise ValueError(f"an array of shape {array.shape} has strides {array.strides}; copy it into C order.")
    return tuple(array.ctypes.data for array in arrays)


def padded(n: int) -> int:
    """Columns of rows that `largest` reads."""
    return -(-n // BLOCK) * BLOCK


def workspace(columns: int, width: int, dtype: Any) -> tuple[Any, tuple[int, ...]]:
    """Room for a wave, with one number of each signal side by side: the part with the active atoms, and the addresses
    of all parts, of which there are: T; over active atoms, five vectors of floats, two of float32, two of indices, one
    of addresses; nine numbers, five integers, three float64 numbers; what `largest` finds; the correlations of one
    signal, with `columns` padded columns."""
    triangle = width * (width + 1) // 2
    T, vectors, singles, indices, lines, floats, doubles, whole, field, r = several(
        ((triangle, WAVE), dtype), ((5, width, WAVE), dtype), ((2, width, WAVE), np.float32),
        ((2, width, WAVE), np.int32), ((width, WAVE), np.int64), ((9, WAVE), dtype), ((3, WAVE), np.float64),
        ((5, WAVE), np.int64), ((LANES + 3 * WAVE,), np.int32), ((columns,), np.float32),
    )  # fmt: skip
    return indices[0], addresses(T, *vectors, *singles, *indices, lines, floats, *whole, doubles, field, r)


def lefts(G: Any, columns: int) -> tuple[Any, tuple[int, ...]]:
    """What OLS needs besides, for a wave: room for the squared norms of what is left of the atoms, and for four numbers
    of each signal; the addresses of both, and of the squared norms of the atoms (infinite where there is none).

    The numbers: see `largest_gain`; and in how many turns atoms had to be told apart.
    """
    left, numbers, squares = several(((WAVE, columns), np.float32), ((4, WAVE), np.float32), ((columns,), np.float32))
    squares[:] = np.inf
    squares[: len(G)] = G.diagonal()
    return (left, numbers), addresses(left, numbers, squares)
