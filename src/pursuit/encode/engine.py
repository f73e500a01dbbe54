"""From a request to codes: signals in tiles, tiles on threads, codes as one sparse array.

Products with the dictionary are BLAS calls on one thread each; the kernels hold no lock; so Python threads are enough.
Dictionary and signals are multiplied by powers of two, which changes no digit, where squares could over- or underflow.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from pursuit._ranking import Trust
from pursuit._threads import calm, helped, spread
from pursuit._vector import PAIRS
from pursuit.atoms import screening
from pursuit.atoms.vectors import CACHED
from pursuit.encode import alone, careful, direct, fast, rooms, short
from pursuit.encode.inputs import METHODS, Array, Request, check_columns, check_rows
from pursuit.encode.small import MP, OLS
from pursuit.encode.team import OVER, Team, assist

WORKSPACE = 16 * 2**20
"""Bytes of working memory that a thread may fill with a tile of signals; one signal may always take what it needs."""
GRAM = 2**30
"""Bytes that the Gram matrix may take before the residuals are used instead."""
ALONE = 8
"""So many signals share one product; fewer go alone, or have the product on all threads."""
FEW = 32
"""For one of so many signals 16 bits may not be enough without it being worth a kernel in float32: it goes the careful
way."""
REFRESH = 64
"""Turns after which OLS computes correlations anew that it kept up to date till then."""
TILE = 2**22
"""Bytes of correlations in a tile, beyond those of 512 signals: enough for BLAS, few enough for the cache."""


@dataclass
class Tile:
    """Some signals, scaled: weights (None: all 1), squared norms, limits, tolerances, and the exponents to undo it."""

    y: Array
    w: Array | None
    squares: Array
    limits: Array
    tols: Array
    exponents: Array

    def some(self, which: Array) -> Tile:
        w = None if self.w is None else self.w[which]
        rest = self.squares, self.limits, self.tols, self.exponents
        return Tile(self.y[which], w, *(a[which] for a in rest))


@dataclass
class Codes:
    """Atoms and weights, one row per signal, of which the first `counts` entries count."""

    atoms: Array
    x: Array
    counts: Array

    @classmethod
    def empty(cls, limits: Array, dtype: Any) -> Codes:
        shape = len(limits), int(limits.max(initial=1))
        return cls(np.empty(shape, np.int32), np.empty(shape, dtype), np.zeros(len(limits), np.int64))

    def rows(self, lo: int, hi: int) -> Codes:
        return Codes(self.atoms[lo:hi], self.x[lo:hi], self.counts[lo:hi])

    def put(self, which: Array, codes: Codes) -> None:
        """Some rows, with codes that may be shorter."""
        width = codes.atoms.shape[1]
        self.atoms[which, :width], self.x[which, :width], self.counts[which] = codes.atoms, codes.x, codes.counts

    @property
    def full(self) -> bool:
        """Whether all entries count."""
        return int(self.counts.sum()) == self.x.size

    @property
    def used(self) -> Array:
        """Which entries count."""
        return np.arange(self.x.shape[1]) < self.counts[:, None]


class Engine(Protocol):
    """A way to pursue the signals of a tile."""

    def bytes_per_signal(self, width: int) -> int: ...

    def worker(self, size: int, width: int) -> Callable[[Tile, Codes], None]:
        """A function for one thread, with rooms of its own for tiles of `size` signals and codes of `width` atoms."""


class Shared:
    """Pursuits that share the Gram matrix of the dictionary; `few` do not, and read only the rows of their atoms.

    Each atom may have been divided by a power of two of its own.
    """

    def __init__(self, D: Array, norms: Array, gram: Array, method: str, few: bool, exponents: Array) -> None:
        self.D, self.A, self.norms, self.method = D, np.ascontiguousarray(D.T), norms, METHODS.index(method)
        self.exponents = exponents
        self.G, self.few, self.quick = gram, few, method == "omp" or (method == "ols" and not few)
        if self.quick and not few:
            self.S = fast.single(gram)
        if self.quick:
            self.rough = fast.doubt(D, norms, whole=few)
            self.mu, self.longest = (float(norms.max()) * (1 + 1e-6),) * 2 if few else fast.bounds(self.S, norms)
        in_short = PAIRS and method == "omp" and not few and len(D) <= short.DEEP
        self.kit = short.Kit.of(self.S, D, norms, self.longest) if in_short else None

    def bytes_per_signal(self, width: int) -> int:
        return self.D.itemsize * sum(self.D.shape) + (self.D.itemsize + 4) * width

    @functools.cached_property
    def D32(self) -> Array:
        return self.D.astype(np.float32, copy=False)

    def correlations(self, y: Array, out: Array) -> None:
        """D'y in float32, from a float32 copy of D or, for few signals, from D itself."""
        if not self.few:
            fast.correlations(y, self.D32, out)
            return
        out[:] = product(y, self.D)
        if not np.isfinite(out).all():
            check_columns(self.D, self.D.dtype)

    def worker(self, size: int, width: int) -> Callable[[Tile, Codes], None]:
        return Worker(self, size, width)


class Worker:
    """A thread's own rooms, and what it has learnt, for pursuits that share a Gram matrix."""

    def __init__(self, shared: Shared, size: int, width: int) -> None:
        (d, n), kind, G = shared.D.shape, shared.D.dtype, shared.G
        self.shared, self.size, self.width, self.noise = shared, size, width, rounding(shared.D)
        self.columns = rooms.padded(n) if shared.quick else n
        self.trust, self.enough = Trust(), Trust()  # a way of no use for most signals is not tried for the next tiles
        if shared.quick:
            self.rooms = rooms.workspace(self.columns, width, kind)
            self.S = rooms.aligned((width, self.columns), np.float32) if shared.few else shared.S
            self.G = self.S if kind == np.float32 and not shared.few else G
            self.ols = rooms.lefts(G, self.columns) if shared.method == OLS else None
            self.short = None if shared.kit is None else short.workspace(shared.kit, d, self.columns, width)

    @functools.cached_property
    def careful(self) -> careful.Rooms:
        """Most tiles have no use for it."""
        (d, n), kind = self.shared.D.shape, self.shared.D.dtype
        return careful.Rooms(d, n, self.width, kind, self.shared.method)

    @functools.cached_property
    def correlations(self) -> Array:
        """Room for those of a tile; in 16 bits, there is none."""
        kind = np.dtype(np.float32) if self.shared.quick else self.shared.D.dtype
        made = rooms.aligned((self.size, self.columns), kind, np.empty)
        made[:, self.shared.D.shape[1] :] = 0  # as in the padded rows
        return made

    def chase(self, tile: Tile, codes: Codes, kit: short.Kit | None) -> None:
        """The fast way, in 16 bits or in float32."""
        shared, here = self.shared, None if kit else self.correlations[: len(tile.y)]
        if here is not None:
            shared.correlations(tile.y, here[:, : shared.D.shape[1]])
        bounds, ends = (shared.mu, shared.longest, shared.rough), (tile.squares, tile.limits, tile.tols, self.noise)
        out = self.rooms, self.short, codes.atoms, codes.x, codes.counts
        fast.pursue(self.G, self.S, kit, shared.A, shared.norms, bounds, tile.y, here, self.ols, *ends, *out)

    def hurry(self, tile: Tile, codes: Codes) -> Array:
        """The fast ways, as far as they go; the signals that are left."""
        kit = self.shared.kit if self.enough.tries() else None
        self.chase(tile, codes, kit)
        left = np.flatnonzero(codes.counts == fast.UNSURE)
        if kit:
            self.enough.learn(2 * len(left) <= len(tile.y))
        if len(left) * FEW <= len(tile.y):
            codes.counts[left] = fast.GIVEN_UP
        else:
            again = Codes.empty(tile.limits[left], codes.x.dtype)
            self.chase(tile.some(left), again, None)
            codes.put(left, again)
        left = np.flatnonzero(codes.counts == fast.GIVEN_UP)
        self.trust.learn(2 * len(left) <= len(tile.y))
        return left

    def __call__(self, tile: Tile, codes: Codes) -> None:
        shared, out = self.shared, (codes.atoms, codes.x, codes.counts)
        matrices, rest = (shared.G, shared.A, shared.norms, tile.y), (tile.squares, tile.limits, tile.tols, self.noise)
        left = self.hurry(tile, codes) if shared.quick and self.trust.tries() else np.arange(len(tile.y))
        if len(left):
            kept = None if shared.quick else self.correlations[: len(tile.y)]
            here = np.empty((len(tile.y), len(shared.norms)), shared.D.dtype) if kept is None else kept
            here[left] = product(tile.y[left], shared.D)
            if shared.method == MP:
                careful.match(*matrices, here, *rest, self.careful, *out)
            else:
                careful.walk(*matrices, here, *rest, left, self.careful, *out)
        if shared.few:  # NaN and infinity do not get past `fast`
            used = np.unique(codes.atoms[codes.used])
            check_rows(shared.D, shared.G, used, shared.quick and not len(left))
        if shared.exponents.any():
            used = codes.used
            codes.x[used] = np.ldexp(codes.x[used], -shared.exponents[codes.atoms[used]])


class Direct:
    """Pursuits from the residuals, all signals of a tile in step: one matrix product a turn."""

    def __init__(self, D: Array, A: Array, norms: Array, method: str, weighted: bool) -> None:
        self.D, self.A, self.norms, self.method = D, A, norms, METHODS.index(method)
        self.squared = np.square(D) if weighted else None

    def bytes_per_signal(self, width: int) -> int:
        d, n = self.D.shape
        return self.D.itemsize * (8 * n + 6 * d + 3 * width * width + 6 * width)

    def worker(self, size: int, width: int) -> Callable[[Tile, Codes], None]:
        return self.solve

    def solve(self, tile: Tile, codes: Codes) -> None:
        (count, d), n, kind = tile.y.shape, len(self.norms), self.D.dtype
        ols, noise = self.method == OLS, rounding(self.D)
        width = codes.x.shape[1]
        W = np.ones((1, d), kind) if tile.w is None else tile.w
        N = self.norms[None] if self.squared is None else np.sqrt(W @ self.squared)
        memory = direct.Rooms(N, count, d, width, self.method)
        left = np.repeat(np.square(N), count // len(N), axis=0) if ols else np.empty((1, 0), kind)
        R, Q = tile.y.copy(), np.zeros_like(tile.y) if ols else np.empty((1, d), kind)
        state = memory.state
        C, turn, active = np.empty((0, n), kind), 0, np.flatnonzero(tile.squares > 0)
        while len(active):
            if not ols or turn % REFRESH == 0:
                C = product(R[active] * (W[active] if len(W) > 1 else W), self.D)
            before = R[active] if ols else R
            direct.advance(
                self.A, tile.y, W, N, C, left[active] if ols else left, active, tile.limits, tile.tols, noise,
                self.method, R, Q, memory,
            )  # fmt: skip
            stay = state[active, direct.OVER] == 0
            active, turn = active[stay], turn + 1
            if ols and (state[active, direct.SIZE] < tile.limits[active]).any():
                # what the last direction takes away from correlations and squared norms
                T = product(Q[active], self.D)
                C = C[stay] - np.einsum("ij,ij->i", Q[active], before[stay])[:, None] * T
                left[active] -= np.square(T)
        direct.finish(memory, codes.atoms, codes.x, codes.counts)


class Alone:
    """OMP or OLS of few signals on a large dictionary, each from its residual and an 8-bit copy of the dictionary.

    A single signal has all threads; several have one each. Those given up are left to the `Direct` way.
    """

    def __init__(self, direct: Direct, codes: screening.Codes, threads: int) -> None:
        self.direct, self.codes, self.threads = direct, codes, threads
        self.A, self.norms = direct.A, direct.norms.astype(np.float64)

    def bytes_per_signal(self, width: int) -> int:
        return 8 * (width * (width + self.A.shape[1]) + 8 * width + 16 * sum(self.A.shape))

    def worker(self, size: int, width: int) -> Callable[[Tile, Codes], None]:
        ols, noise = self.direct.method == OLS, float(rounding(self.direct.D))
        team = Team(self.A, self.norms, self.codes, self.threads, width, ols)

        def solve(tile: Tile, out: Codes) -> None:
            for p, y in enumerate(tile.y.astype(np.float64)):
                ends = int(tile.limits[p]), float(tile.tols[p]), noise
                out.counts[p] = alone.chase(team, y, *ends, out.atoms[p], out.x[p])
            left = np.flatnonzero(out.counts == fast.GIVEN_UP)
            if len(left):
                again = Codes.empty(tile.limits[left], out.x.dtype)
                self.direct.solve(tile.some(left), again)
                out.put(left, again)

        def helped_solve(tile: Tile, out: Codes) -> None:
            with helped(lambda: assist(team), lambda: team.board[OVER].fill(1)):
                solve(tile, out)

        return helped_solve if self.threads > 1 else solve


def product(R: Array, D: Array) -> Array:
    """R D, by blocks of columns on several threads where R has few rows, so that it is D that takes time to read."""
    if len(R) >= ALONE:
        return np.asarray(R @ D)
    out = np.empty((len(R), D.shape[1]), D.dtype)

    def work(start: int, stop: int) -> None:
        np.matmul(R, D[:, start:stop], out=out[:, start:stop])

    spread(work, D.shape[1], max(1, 2**20 // len(D)))
    return out


def rounding(D: Array) -> Any:
    """How far rounding moves a correlation, relative to the norms of its factors."""
    return D.dtype.type(4 * float(np.finfo(D.dtype).eps) * D.shape[0] ** 0.5)


def begin(request: Request) -> tuple[Engine, int]:
    """The engine for a request, and the exponent that its dictionary was scaled by."""
    exponent = request.exponent
    D, norms = request.D if exponent == 0 else np.ldexp(request.D, -exponent), request.norms
    n, size = D.shape[1], D.itemsize + {"omp": 6, "ols": 4}.get(request.method, 0)  # copies: in float32, in 16 bits
    dear = request.gram is None and (request.few or n * n * size > GRAM)
    if request.weights is not None or dear:
        long = len(request.Y) < ALONE and int(request.limits.max(initial=0)) >= 16 and D.size >= CACHED
        direct = Direct(D, np.ascontiguousarray(D.T), norms, request.method, request.weights is not None)
        screens = long and request.method in ("omp", "ols") and direct.squared is None
        codes = screening.copy(direct.A.T) if screens else None
        return direct if codes is None else Alone(direct, codes, request.jobs if len(request.Y) == 1 else 1), exponent
    D, own = D if request.few else np.ascontiguousarray(D), np.zeros(n, np.intc)
    if request.method == "ols" and not request.few:  # for which the norms of atoms do not matter, but for rounding
        own = np.rint(np.log2(norms)).astype(np.intc)
    if own.any():
        D, norms = np.ldexp(D, -own), np.ldexp(norms, -own)
    if request.gram is None:
        gram = gram_matrix(D)
    else:
        gram, scale = np.require(request.gram, D.dtype, ["C", "W"]), exponent + own
        gram = np.ldexp(gram, -scale - scale[:, None]) if scale.any() else gram
    return Shared(D, norms, gram, request.method, request.few, own), exponent


def prepare(request: Request, lo: int, hi: int, exponent: int) -> Tile:
    """Signals lo to hi, contiguous and of one dtype, scaled where their squares are out of range."""
    y, w, tols = request.Y[lo:hi], None, request.tols[lo:hi]
    if request.weights is not None:
        w = request.weights[lo:hi]
        y = np.where(w > 0, y, 0)
        even = np.frexp(w.max(axis=1))[1] // 2
        w = np.require(np.ldexp(w, -2 * even[:, None]), request.dtype, "C")
        tols = np.ldexp(tols, -even)
    y = np.require(y, request.dtype, ["C", "W"])
    squares = squared(y, w)
    exponents = np.zeros(hi - lo, np.intc)
    if not (squares.min() > 2.0**-80 and squares.max() < 2.0**80):  # NaN too
        peaks = np.abs(y).max(axis=1)
        if not np.isfinite(peaks).all():
            row = lo + int(np.flatnonzero(~np.isfinite(peaks))[0])
            raise ValueError(f"row {row} of Y contains NaN or infinity; give such entries weight 0 or impute them.")
        exponents = np.frexp(peaks)[1]
        y = np.ldexp(y, -exponents[:, None])
        squares = squared(y, w)
    tols = np.ldexp(tols, -exponents).astype(request.dtype)
    return Tile(y, w, squares, request.limits[lo:hi], tols, exponents - exponent)


def squared(y: Array, w: Array | None) -> Array:
    squares: Array = np.einsum("ij,ij->i", y, y) if w is None else np.einsum("ij,ij,ij->i", w, y, y)
    return squares


def pack(tile: Tile, codes: Codes, nonnegative: bool) -> tuple[Array, Array, Array]:
    """Counts, atoms and weights in one row after the other, scaled back."""
    which = slice(None) if codes.full else codes.used
    atoms, x = codes.atoms[which].ravel(), codes.x[which].ravel()
    if tile.exponents.any():
        np.ldexp(x, np.repeat(tile.exponents, codes.counts), out=x)
    return codes.counts, atoms, np.maximum(x, 0, out=x) if nonnegative else x


def share(count: int, begin: Callable[[], Callable[[int], None]]) -> None:
    """Hand the numbers below `count` to threads as they ask for them; each makes the function that it calls itself."""
    mine = threading.local()

    def work(start: int, stop: int) -> None:
        if not hasattr(mine, "handle"):
            mine.handle = begin()
        for number in range(start, stop):
            mine.handle(number)

    spread(work, count, 1)


def gram_matrix(D: Array) -> Array:
    """D^T D by blocks of rows on several threads: from the diagonal on, and copied to where it is the same."""
    n = D.shape[1]
    G = np.empty((n, n), D.dtype)

    def multiply(start: int, stop: int) -> None:
        rows, beyond = slice(start, stop), slice(stop, None)
        np.matmul(D.T[rows], D[:, start:], out=G[rows, start:])
        G[beyond, rows] = G[rows, beyond].T

    spread(multiply, n, 128)
    return G


def run(request: Request, progress: bool) -> sp.csr_array:
    """The codes of all signals of a request."""
    total, n = len(request.Y), request.D.shape[1]
    bar = tqdm(total=total, disable=None if progress else True, desc="encode", unit=" signals", leave=False)
    with bar, calm:
        with np.errstate(all="ignore"):  # BLAS raises flags for numbers that it reads and does not use
            engine, exponent = begin(request)
        width = int(request.limits.max(initial=1))
        size = min(TILE // request.dtype.itemsize // n + 512, WORKSPACE // engine.bytes_per_signal(width))
        portion = -(-total // request.jobs)  # some tiles, as many for each thread: none is idle for long
        rounds = max(-(-portion // max(size, 1)), min(4, portion // 64), 1)
        size = max(1, -(-portion // rounds))
        parts: list[Any] = [None] * -(-total // size)
        even = int(request.limits.min(initial=width)) == width and not np.isfinite(request.tols).any()
        whole = Codes.empty(request.limits, request.dtype) if even else None  # codes that will have one length

        def worker() -> Callable[[int], None]:
            solve = engine.worker(size, width)

            def code(number: int) -> None:
                lo, hi = number * size, min((number + 1) * size, total)
                with np.errstate(all="ignore"):  # and squares out of range are found and scaled away
                    tile = prepare(request, lo, hi, exponent)
                    codes = Codes.empty(tile.limits, request.dtype) if whole is None else whole.rows(lo, hi)
                    solve(tile, codes)
                parts[number] = pack(tile, codes, request.method == "nnomp")
                bar.update(len(tile.y))

            return code

        share(len(parts), worker)
    if whole is not None and whole.full:
        parts = [(whole.counts, whole.atoms.ravel(), whole.x.ravel())]
    return assemble(parts, (total, n), request.dtype)


def assemble(parts: list[Any], shape: tuple[int, int], dtype: Any) -> sp.csr_array:
    counts, atoms, x = zip(*parts, strict=True) if parts else ((), (), ())
    ends = np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64)
    kind = np.int32 if ends[-1] < 2**31 else np.int64
    data = x[0] if len(x) == 1 else np.concatenate([np.empty(0, dtype), *x])
    indices = atoms[0] if len(x) == 1 else np.concatenate([np.empty(0, np.int32), *atoms])
    codes = sp.csr_array((data, indices.astype(kind, copy=False), ends.astype(kind)), shape=shape)
    codes.has_sorted_indices = True
    return codes
