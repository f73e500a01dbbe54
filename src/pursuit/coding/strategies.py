"""The ways to find the codes of a tile, from the fastest to the most careful.

Each strategy codes the signals of a tile that have no code yet, as far as it can prove its choices; the next one takes
those that are left. The last one of a chain leaves none.

=============== ========================================= ========================================================
strategy        what it reads                             where it is used
=============== ========================================= ========================================================
`Fast`          Gram rows in 16 bits or float32           OMP and OLS of many signals
`FullPrecision` Gram rows in full precision               all methods; what `Fast` leaves; a Gram matrix given
`SingleSignal`  an 8-bit copy of the dictionary           OMP and OLS of few signals on a large dictionary
`FromResiduals` the dictionary                            weights; few signals; a Gram matrix that is too large
=============== ========================================= ========================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol

import numpy as np

from pursuit import native
from pursuit.atoms.copies import MIN_SCREENED_ENTRIES
from pursuit.coding.request import Array, Request, check_gram_rows, column_norms
from pursuit.coding.scale import Scale
from pursuit.coding.tiles import Tile
from pursuit.threads import in_parallel

MAX_GRAM_BYTES = 2**30
"""Beyond this, residuals are used instead of the Gram matrix."""
MIN_SIGNALS_PER_PRODUCT = 8
"""With fewer signals, reading the dictionary takes most of the time of a product, and threads share that."""
MAX_INT16_ENTRIES = 512
"""Entries of a signal beyond which 16 bits are not tried: their error grows, and correlations decrease, with the root
of the number of entries, until too many atoms are too close to one another."""
MIN_UNSOLVED_SHARE = 1 / 32
"""The share of a tile that 16 bits must leave before it is tried in float32."""
LASSO_CAPACITY = 48
"""Atoms beside the active ones that the Lasso has memory for."""
MIN_SCREENED_ATOMS = 16
"""Fewer atoms are found before an 8-bit copy is made."""


class Strategy(Protocol):
    def solve(self, tile: Tile) -> None:
        """Code the signals of a tile that have no code yet, as far as possible."""


@dataclass(frozen=True)
class SolverChain:
    """Strategies in the order in which they are tried, and the request with the scale of the atoms that they use."""

    request: Request
    strategies: list[Strategy]
    bytes_per_signal: int
    one_tile: bool = False
    """Whether all signals belong to one tile, as threads share the work on each of them."""

    def solve(self, tile: Tile) -> None:
        """Each strategy codes what those before it left."""
        for strategy in self.strategies:
            strategy.solve(tile)
            if not len(tile.unsolved):
                return


class Fast:
    """OMP or OLS over a shared Gram matrix, several signals in step, atoms chosen in a cheap number type.

    The tables are made for the first tile in which more than `share` of the signals have no code yet.
    """

    def __init__(self, atoms: Any, method: str, precision: str, dtype: Any, share: float = 0.0) -> None:
        core, self.precision = native.core(), precision
        self._arguments = atoms, core.Method[method], core.Search[precision]
        self._make, self._share, self._lock = native.kernels(dtype).Fast, share, Lock()
        self._kernel: Any = None

    def solve(self, tile: Tile) -> None:
        if len(tile.unsolved) <= self._share * len(tile.y):
            return
        with self._lock:
            if self._kernel is None:
                self._kernel = self._make(*self._arguments)
        self._kernel.solve(tile.signals)


class FullPrecision:
    """All methods over a shared Gram matrix, one signal at a time, every correlation in full precision.

    The rows that were used of a Gram matrix that is `unchecked` are checked afterwards.
    """

    def __init__(self, D: Array, atoms: Any, method: str, unchecked: Array | None) -> None:
        self.D, self.atoms, self.method, self.unchecked = D, atoms, method, unchecked

    def solve(self, tile: Tile) -> None:
        products = product(tile.y[tile.unsolved], self.D)
        if self.unchecked is not None and not np.isfinite(products).all():
            column_norms(self.D, self.D.dtype)
        kernels, method = native.kernels(self.D.dtype), native.core().Method[self.method]
        kernels.one_by_one(self.atoms, method, tile.signals, products)
        if self.unchecked is not None:
            check_gram_rows(self.D, self.unchecked, np.unique(tile.codes.atoms[tile.codes.used]))


class FromResiduals:
    """All methods from the residuals, the signals of a tile in step: one matrix product a turn."""

    def __init__(self, D: Array, atoms: Any, request: Request) -> None:
        self.D, self.atoms, self.norms, self.method = D, atoms, request.norms, request.rules.method
        self.squared = None if request.weights is None else np.square(D)

    def solve(self, tile: Tile) -> None:
        norms = self.norms[None] if self.squared is None else np.sqrt(tile.weights @ self.squared)
        kernels, method = native.kernels(self.D.dtype), native.core().Method[self.method]
        pursuits = kernels.Direct(self.atoms, method, tile.signals, norms)
        vectors = np.empty((2 * len(tile.y), len(self.D)), self.D.dtype)
        while going := pursuits.vectors(vectors):
            pursuits.advance(product(vectors[:going], self.D))


class SingleSignal:
    """OMP or OLS of one signal at a time, through an 8-bit copy of the dictionary that all threads read together."""

    def __init__(self, screen: Any, method: str, threads: int) -> None:
        self.screen, self.method, self.threads = screen, method, threads

    def solve(self, tile: Tile) -> None:
        self.screen.alone(native.core().Method[self.method], tile.signals, self.threads)


def product(R: Array, D: Array) -> Array:
    """R D, by blocks of columns on several threads where R has few rows, so that it is D that takes time to read."""
    columns = max(1, 2**20 // len(D))
    if len(R) >= MIN_SIGNALS_PER_PRODUCT or D.shape[1] <= columns:
        return np.asarray(R @ D)
    out = np.empty((len(R), D.shape[1]), D.dtype)

    def work(start: int, stop: int) -> None:
        np.matmul(R, D[:, start:stop], out=out[:, start:stop])

    in_parallel(work, D.shape[1], columns)
    return out


def gram_matrix(D: Array) -> Array:
    """D^T D by blocks of rows on several threads: from the diagonal on, and copied to where it is the same."""
    n, line = D.shape[1], 64 // D.itemsize
    memory = np.empty(n * n + line, D.dtype)
    start = -memory.ctypes.data % 64 // D.itemsize  # kernels read rows faster that begin at a cache line
    G = memory[start : start + n * n].reshape(n, n)

    def multiply(start: int, stop: int) -> None:
        rows, beyond = slice(start, stop), slice(stop, None)
        np.matmul(D.T[rows], D[:, start:], out=G[rows, start:])
        G[beyond, rows] = G[rows, beyond].T

    in_parallel(multiply, n, 128)
    return G


def solver_chain(request: Request) -> SolverChain:
    """The strategies for a request."""
    D, method = request.scale.atoms(request.D).astype(request.dtype, copy=False), request.rules.method
    n, size = D.shape[1], D.itemsize + {"omp": 6, "ols": 4}.get(method, 0)  # copies: in float32, in 16 bits
    too_large = request.gram is None and (request.finds_few_atoms or n * n * size > MAX_GRAM_BYTES)
    if request.weights is not None or too_large:
        return chain_from_residuals(request, D)
    return chain_over_gram_matrix(request, D)


def chain_from_residuals(request: Request, D: Array) -> SolverChain:
    """`FromResiduals`, after `SingleSignal` for few signals on a large dictionary."""
    kernels, rules, (d, n) = native.kernels(D.dtype), request.rules, D.shape
    by_atoms = np.ascontiguousarray(D.T) if rules.is_lasso else D.T  # its Gram entries are products of columns
    atoms = kernels.Atoms(by_atoms, request.norms)
    strategies: list[Strategy] = [FromResiduals(D, atoms, request)]
    capacity = rules.width + LASSO_CAPACITY if rules.is_lasso else rules.width
    size = D.itemsize * (8 * n + (6 + rules.width) * d + 3 * capacity * capacity + 8 * capacity)
    few = len(request.Y) < MIN_SIGNALS_PER_PRODUCT and request.weights is None
    long = rules.method in ("omp", "ols") and rules.width >= MIN_SCREENED_ATOMS
    one_tile = few and long and D.size >= MIN_SCREENED_ENTRIES
    if one_tile:
        strategies.insert(0, SingleSignal(kernels.Screen(atoms, request.threads), rules.method, request.threads))
    return SolverChain(request, strategies, size, one_tile)


def chain_over_gram_matrix(request: Request, D: Array) -> SolverChain:
    """`Fast` for OMP and OLS of many signals, then `FullPrecision`."""
    method, norms, few = request.rules.method, request.norms, request.finds_few_atoms
    D = D if few else np.ascontiguousarray(D)
    if method == "ols" and not few:  # for which the norms of atoms do not matter, but for rounding
        units = Scale(np.rint(np.log2(norms)).astype(np.intc))
        D, norms = units.atoms(D), units.atoms(norms)
        request = replace(request, norms=norms, scale=Scale(request.scale.atom + units.atom))
    gram = gram_matrix(D) if request.gram is None else request.scale.gram(np.require(request.gram, D.dtype, "C"))
    atoms = native.kernels(D.dtype).Atoms(D.T if few else np.ascontiguousarray(D.T), norms, gram)
    strategies: list[Strategy] = [FullPrecision(D, atoms, method, gram if few else None)]
    if not few and method in ("omp", "ols"):
        in_16_bits = method == "omp" and len(D) <= MAX_INT16_ENTRIES
        strategies.insert(0, Fast(atoms, method, "float32", D.dtype, MIN_UNSOLVED_SHARE if in_16_bits else 0.0))
        if in_16_bits:
            strategies.insert(0, Fast(atoms, method, "int16", D.dtype))
    return SolverChain(request, strategies, D.itemsize * sum(D.shape) + (D.itemsize + 4) * request.rules.width)
