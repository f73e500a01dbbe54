"""The ways to find the codes of a tile, from the fastest to the most careful.

Each strategy codes the signals of a tile that have no code yet, as far as it can prove its choices; the next one takes
those that are left. The last one of a ladder leaves none.

========== ================================================== ===================================================
strategy   what it reads                                      where it is used
========== ================================================== ===================================================
`Fast`     Gram rows in 16 bits or float32                    OMP and OLS of many signals
`Careful`  Gram rows in full precision                        all methods; what `Fast` leaves; a Gram matrix given
`Alone`    an 8-bit copy of the dictionary                    OMP and OLS of few signals on a large dictionary
`Direct`   the dictionary                                     weights; few signals; a Gram matrix that is too large
`Rescaled` what its own strategies read                       OLS of atoms of very different norms
========== ================================================== ===================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import numpy as np

from pursuit import native
from pursuit.atoms.copies import MIN_SCREENED_ENTRIES
from pursuit.coding.request import Array, Request, check_columns, check_used_rows
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
LASSO_ROOM = 48
"""Atoms beside the active ones that the Lasso has room for."""
MIN_ALONE_ATOMS = 16
"""Fewer atoms are found before an 8-bit copy is made."""


class Strategy(Protocol):
    def solve(self, tile: Tile) -> None:
        """Code the signals of a tile that have no code yet, as far as possible."""


@dataclass(frozen=True)
class Ladder:
    """Strategies in the order in which they are tried, for a dictionary that was divided by 2^exponent."""

    strategies: list[Strategy]
    exponent: int
    bytes_per_signal: int
    at_once: bool = False
    """Whether all signals belong to one tile, as threads share the work on each of them."""

    def solve(self, tile: Tile) -> None:
        solve_in_turn(self.strategies, tile)


def solve_in_turn(strategies: list[Strategy], tile: Tile) -> None:
    """Each strategy codes what those before it left."""
    for strategy in strategies:
        strategy.solve(tile)
        if not len(tile.unsolved):
            return


class Fast:
    """OMP or OLS over a shared Gram matrix, several signals in step, atoms chosen in a cheap number type.

    The tables are made for the first tile in which more than `share` of the signals have no code yet.
    """

    def __init__(self, atoms: Any, kernels: Any, method: str, search: str, share: float = 0.0) -> None:
        core, self.search = native.core(), search
        self._arguments = atoms, core.Method[method], core.Search[search]
        self._make, self._share, self._lock = kernels.Fast, share, Lock()
        self._kernel: Any = None

    def solve(self, tile: Tile) -> None:
        if len(tile.unsolved) <= self._share * len(tile.y):
            return
        with self._lock:
            if self._kernel is None:
                self._kernel = self._make(*self._arguments)
        self._kernel.solve(tile.signals)


class Careful:
    """All methods over a shared Gram matrix, one signal at a time, every correlation in full precision.

    Where it was `given` and not looked at as a whole, the rows that were used are checked afterwards.
    """

    def __init__(self, D: Array, atoms: Any, kernels: Any, method: str, given: Array | None) -> None:
        self.D, self.atoms, self.kernels, self.method, self.given = D, atoms, kernels, method, given

    def solve(self, tile: Tile) -> None:
        products = product(tile.y[tile.unsolved], self.D)
        if self.given is not None and not np.isfinite(products).all():
            check_columns(self.D, self.D.dtype)
        self.kernels.one_by_one(self.atoms, native.core().Method[self.method], tile.signals, products)
        if self.given is not None:
            check_used_rows(self.D, self.given, np.unique(tile.codes.atoms[tile.codes.used]))


class Direct:
    """All methods from the residuals, the signals of a tile in step: one matrix product a turn."""

    def __init__(self, D: Array, atoms: Any, norms: Array, method: str, weighted: bool) -> None:
        self.D, self.atoms, self.norms, self.method = D, atoms, norms, method
        self.squared = np.square(D) if weighted else None

    def solve(self, tile: Tile) -> None:
        norms = self.norms[None] if self.squared is None else np.sqrt(tile.weights @ self.squared)
        kernels, method = native.kernels(self.D.dtype), native.core().Method[self.method]
        pursuits = kernels.Direct(self.atoms, method, tile.signals, norms)
        vectors = np.empty((2 * len(tile.y), len(self.D)), self.D.dtype)
        while going := pursuits.vectors(vectors):
            pursuits.advance(product(vectors[:going], self.D))


class Alone:
    """OMP or OLS of one signal at a time, through an 8-bit copy of the dictionary that all threads read together."""

    def __init__(self, screen: Any, method: str, threads: int) -> None:
        self.screen, self.method, self.threads = screen, method, threads

    def solve(self, tile: Tile) -> None:
        self.screen.alone(native.core().Method[self.method], tile.signals, self.threads)


class Rescaled:
    """Strategies for atoms that were divided by powers of two of their own, so that all have norms near 1."""

    def __init__(self, strategies: list[Strategy], exponents: Array) -> None:
        self.strategies, self.exponents = strategies, exponents

    def solve(self, tile: Tile) -> None:
        solve_in_turn(self.strategies, tile)
        codes, used = tile.codes, tile.codes.used
        codes.x[used] = np.ldexp(codes.x[used], -self.exponents[codes.atoms[used]])


def product(R: Array, D: Array) -> Array:
    """R D, by blocks of columns on several threads where R has few rows, so that it is D that takes time to read."""
    if len(R) >= MIN_SIGNALS_PER_PRODUCT:
        return np.asarray(R @ D)
    out = np.empty((len(R), D.shape[1]), D.dtype)

    def work(start: int, stop: int) -> None:
        np.matmul(R, D[:, start:stop], out=out[:, start:stop])

    in_parallel(work, D.shape[1], max(1, 2**20 // len(D)))
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


def ladder(request: Request) -> Ladder:
    """The strategies for a request."""
    inputs, method, exponent = request.inputs, request.method, request.exponent
    D = (inputs.D if exponent == 0 else np.ldexp(inputs.D, -exponent)).astype(inputs.dtype, copy=False)
    n, size = D.shape[1], D.itemsize + {"omp": 6, "ols": 4}.get(method, 0)  # copies: in float32, in 16 bits
    too_large = inputs.gram is None and (request.finds_few_atoms or n * n * size > MAX_GRAM_BYTES)
    if inputs.weights is not None or too_large:
        return from_residuals(request, D)
    return over_gram_matrix(request, D)


def from_residuals(request: Request, D: Array) -> Ladder:
    """`Direct`, after `Alone` for few signals on a large dictionary."""
    kernels, method, (d, n) = native.kernels(D.dtype), request.method, D.shape
    by_atoms = np.ascontiguousarray(D.T) if request.is_lasso else D.T  # its Gram entries are products of columns
    atoms, weighted = kernels.Atoms(by_atoms, request.norms), request.inputs.weights is not None
    direct = Direct(D, atoms, request.norms, method, weighted)
    width = int(request.limits.max(initial=1))
    room = width + LASSO_ROOM if request.is_lasso else width
    size = D.itemsize * (8 * n + (6 + width) * d + 3 * room * room + 8 * room)
    alone = len(request.inputs.Y) < MIN_SIGNALS_PER_PRODUCT and method in ("omp", "ols") and width >= MIN_ALONE_ATOMS
    if not alone or weighted or D.size < MIN_SCREENED_ENTRIES:
        return Ladder([direct], request.exponent, size)
    screen = kernels.Screen(atoms, request.threads)
    return Ladder([Alone(screen, method, request.threads), direct], request.exponent, size, at_once=True)


def over_gram_matrix(request: Request, D: Array) -> Ladder:
    """`Fast` for OMP and OLS of many signals, then `Careful`."""
    method, kernels, norms, given = request.method, native.kernels(D.dtype), request.norms, request.inputs.gram
    D, atom_exponents = D if request.finds_few_atoms else np.ascontiguousarray(D), np.zeros(D.shape[1], np.intc)
    if method == "ols" and not request.finds_few_atoms:  # for which the norms of atoms do not matter, but for rounding
        atom_exponents = np.rint(np.log2(norms)).astype(np.intc)
    if atom_exponents.any():
        D, norms = np.ldexp(D, -atom_exponents), np.ldexp(norms, -atom_exponents)
    if given is None:
        gram = gram_matrix(D)
    else:
        gram, scale = np.require(given, D.dtype, "C"), request.exponent + atom_exponents
        gram = np.ldexp(gram, -scale - scale[:, None]) if scale.any() else gram
    atoms = kernels.Atoms(D.T if request.finds_few_atoms else np.ascontiguousarray(D.T), norms, gram)
    strategies: list[Strategy] = [Careful(D, atoms, kernels, method, gram if request.finds_few_atoms else None)]
    if not request.finds_few_atoms and method in ("omp", "ols"):
        in_16_bits = method == "omp" and len(D) <= MAX_INT16_ENTRIES
        strategies.insert(0, Fast(atoms, kernels, method, "float32", MIN_UNSOLVED_SHARE if in_16_bits else 0.0))
        if in_16_bits:
            strategies.insert(0, Fast(atoms, kernels, method, "int16"))
    if atom_exponents.any():
        strategies = [Rescaled(strategies, atom_exponents)]
    width = int(request.limits.max(initial=1))
    return Ladder(strategies, request.exponent, D.itemsize * sum(D.shape) + (D.itemsize + 4) * width)
