"""All translates of some templates: spikes, heartbeats, stars, waves that may stand anywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pursuit import native
from pursuit.arguments import as_bool, as_int_or_nan, real_array, require
from pursuit.arrays import Array, Indices, Small, host, largest
from pursuit.atoms.base import Atoms
from pursuit.atoms.events import Events
from pursuit.atoms.frames import Atom, Source
from pursuit.atoms.sparse import SparseAtom
from pursuit.atoms.templates import Templates, read_templates
from pursuit.state import Fields

PIECE_BYTES = 1 << 25
"""The oracle correlates as many positions at once as fit into this much memory."""


class Convolutional(Atoms):
    r"""The atoms :math:`(T_p d_k)(t) = d_k(t - p)`: every template at every position where it fits into the signal.

    The oracle correlates the gradient with all templates, so its answer is exact and duality gaps are proved. Atoms are
    stored as the samples that they cover. `encode(A, recording, ...)` finds events in long recordings by local updates,
    thousands of times as fast as a correlation of everything for each atom.

    Parameters
    ----------
    templates : array, or list of arrays with `channels`
        (templates, samples) for a signal of one channel, (templates, channels, samples) for several; with a `shape`
        that they do not fill, (templates, rows, columns) for a picture and (templates, channels, rows, columns) for one
        of several channels. Channels come before rows, rows before samples.
    channels : list of integer arrays, optional
        The channels of each template, which is then an array (its channels, samples).
    rank : int or float, optional
        Replace each template by its best approximation of this rank, which is faster to correlate with; below 1: of
        the lowest rank at which it loses at most this fraction of its energy.
    stride : int
        Positions are multiples of it; in a picture in both directions.
    shape : tuple of int, optional
        Of the signal: (samples,), (channels, samples), (rows, columns) or (channels, rows, columns). `minimize` needs
        it, `encode` only for pictures and functions.
    signed : bool
        Whether :math:`-T_p d_k` are atoms, too. `lin` does not need it.
    memory : int
        Bytes that inner products of pairs of templates may take in `encode`; they are made when they are needed.

    Notes
    -----
    The source of an atom is (template, position), in a picture (template, row, column). Ties go to the first position,
    then to the first template: atom i of the list has position i // K and template i % K.

    Examples
    --------
    >>> import numpy as np, pursuit as ps
    >>> A = ps.Convolutional([[1.0, 2.0, 1.0], [2.0, 0.0, -2.0]], shape=(8,))
    >>> y = np.array([0.0, 3.0, 6.0, 3.0, 0.0, 4.0, 0.0, -4.0])
    >>> r = ps.minimize(ps.LeastSquares(y), ps.lin(A), stop=ps.Stop(atoms=2))
    >>> sorted(a.source for a in r.atoms), bool(r.value < 1e-20)
    ([(0, 1), (1, 5)], True)
    """

    def __init__(
        self,
        templates: Any,
        *,
        channels: Any = None,
        rank: Any = None,
        stride: int = 1,
        shape: Sequence[int] | None = None,
        signed: bool = False,
        memory: int = 1 << 30,
    ) -> None:
        self.shape = None if shape is None else _shape(shape)
        if channels is None:
            templates = np.asarray(real_array(templates, "templates"), dtype=np.float64)
        window: tuple[int, ...] = () if channels is not None else np.shape(templates)[1:]
        count = (self.shape or (0,))[0] if channels is not None and len(self.shape or ()) == 2 else None
        moving = self._moving_axes(window, channels is not None)
        self.templates, self.axes = read_templates(templates, channels, moving, count)
        if rank is not None:
            self.templates = self.templates.compressed(rank)
        require(as_int_or_nan(stride) >= 1, "stride", stride, "an integer of at least 1")
        require(as_int_or_nan(memory) >= 0, "memory", memory, "a number of bytes")
        self.stride, self.memory, self.symmetric = int(stride), int(memory), as_bool(signed, "signed")
        self._one_channel = self.templates.channels == 1 and len(window) == self.axes
        self.radius = math.sqrt(float(self.templates.squares.max()))
        self.diameter = 2.0 * self.radius
        if self.shape is not None:
            self._take_shape()

    def _moving_axes(self, window: tuple[int, ...], on_channels: bool) -> int | None:
        """The number of axes along which templates of this window move; None where the shape does not tell."""
        shape = self.shape or ()
        fills = len(window) == 2 and len(shape) == 2 and window[0] == shape[0]
        if self.shape is None or fills:
            return None
        return 1 if len(shape) == 1 or on_channels else 2

    def _take_shape(self) -> None:
        box, t = self._box(self.shape), self.templates
        fits = box[0] == t.channels and box[1] >= t.height and box[2] >= t.width
        require(fits, "shape", self.shape, f"the shape of a signal with room for templates of {self._window()}")
        self._grid = tuple(-(-(n - m + 1) // self.stride) for n, m in zip(box[1:], (t.height, t.width), strict=True))
        self.n = t.count * math.prod(self._grid)
        self.size = 2 * self.n if self.symmetric else self.n
        self.work = float(math.prod(self._grid) * self.stride**self.axes * t.samples.size)

    def _window(self) -> str:
        t = self.templates
        sizes = (*(() if self._one_channel else (t.channels,)), *((t.height,) if self.axes == 2 else ()), t.width)
        return " x ".join(map(str, sizes))

    def _box(self, shape: Sequence[int] | None) -> tuple[int, int, int]:
        """The channels, rows and columns of a signal."""
        axes = (1, *(shape or ())) if self._one_channel else tuple(shape or ())
        axes = (axes[0], 1, *axes[1:]) if self.axes == 1 else axes
        if len(axes) != 3:
            given = tuple(shape or ())
            raise ValueError(
                f"a signal has shape {given} where templates are {self._window()}; give one with an axis for channels "
                f"{'only where templates have one, ' if self._one_channel else 'before its samples, '}"
                "and as many others as templates move along."
            )
        return axes

    def boxed(self, y: Array) -> Array:
        """A signal as an array of channels x rows x columns, not copied."""
        return np.asarray(y).reshape(self._box(y.shape)) if y.ndim < 3 else y

    def on(self, shape: Sequence[int]) -> Convolutional:
        """The same templates on signals of another shape.

        >>> import pursuit as ps
        >>> ps.Convolutional([[1.0, 2.0]]).on((100,)).size
        99
        """
        other = self._with(shape=_shape(shape), _kernels=self._kernels)  # with the products of templates so far
        other._take_shape()
        return other

    def upsampled(self, times: int) -> Convolutional:
        """Templates between samples, for 1-D signals: number k * times + i is template k, i / times samples later.

        A template gets one sample more at its end; it is moved by its Fourier series.

        >>> import numpy as np, pursuit as ps
        >>> ps.Convolutional([np.hanning(9)]).upsampled(4).templates.samples.shape
        (4, 10)
        """
        require(as_int_or_nan(times) >= 1, "times", times, "an integer of at least 1")
        t = self.templates
        padded = np.pad(t.samples, ((0, 0), (0, t.width + 1)))
        wave = np.exp(-2j * np.pi * np.fft.rfftfreq(padded.shape[1]))
        moved = [np.fft.irfft(np.fft.rfft(padded) * wave ** (i / times), padded.shape[1]) for i in range(times)]
        stretches = np.stack([m[:, : t.width + 1] for m in moved])
        lists = [(t.part_channels[t.parts(k)], t.part_rows[t.parts(k)], stretches[i][t.parts(k)])
                 for k in range(t.count) for i in range(times)]  # fmt: skip
        finer = Templates.read(lists, (len(lists), t.channels, t.height), t.width + 1)
        other = self._with(templates=finer, radius=math.sqrt(float(finer.squares.max())), _kernels={})
        other.diameter = 2.0 * float(other.radius or 0.0)
        if self.shape is not None:
            other._take_shape()
        return other

    @cached_property
    def _kernels(self) -> Fields:
        return {}

    def kernel(self, dtype: Any) -> Any:
        """The templates as the kernels have them, with their products so far."""
        name = np.dtype(dtype).name
        if name not in self._kernels:
            self._kernels[name] = self.templates.native(dtype, self.memory)
        return self._kernels[name]

    def __getstate__(self) -> Fields:
        return {name: value for name, value in vars(self).items() if name != "_kernels"}

    # ------------------------------------------------------------------ the oracle

    def _pieces(self, g: Array) -> Iterator[tuple[int, Small]]:
        """(first column, correlations at columns from there on), over all columns, only those of the stride."""
        y = np.ascontiguousarray(self.boxed(host(g)))
        t, kernel = self.templates, self.kernel(np.float64) if native.is_built() else None
        rows, last = y.shape[1] - t.height + 1, y.shape[2] - t.width + 1
        step = self.stride * max(1, PIECE_BYTES // (8 * t.count * rows * self.stride))
        for first in range(0, last, step):
            c = t.correlate(y[:, :, first : first + step + t.width - 1], kernel)
            yield first // self.stride, c[:, :: self.stride if self.axes == 2 else 1, :: self.stride]

    def best(self, g: Array, several: int) -> Sequence[Atom]:
        self._check_shape(g)
        found = [self._best_of(first, c, several) for first, c in self._pieces(g)]
        k, row, column, c = (np.concatenate(values) for values in zip(*found, strict=True))
        merit = -np.abs(c) if self.symmetric else c
        order = np.lexsort((k, row * self._grid[1] + column, merit))[:several]
        signs = [-1.0 if self.symmetric and c[i] > 0 else 1.0 for i in order]
        return [
            self._column(int(k[i]), int(row[i]), int(column[i]), sign) for i, sign in zip(order, signs, strict=True)
        ]

    def _best_of(self, first: int, c: Small, several: int) -> tuple[Indices, Indices, Indices, Small]:
        """The best atoms at columns from the first on: templates, rows, columns and correlations."""
        merits = abs(c) if self.symmetric else -c
        merit = self._listed(merits)
        if several > 1:  # one for each event, not its neighbours
            from scipy.ndimage import maximum_filter  # slow to import

            window = [max(1, size // self.stride) for size in (self.templates.height, self.templates.width)]
            highest = maximum_filter(merits.max(axis=0), window)
            merit = np.where(merit == np.repeat(highest.ravel(), len(c)), merit, -math.inf)
        at = largest(merit, several)[0]
        at = at[merit[at] > -math.inf]
        row, column, k = np.unravel_index(at, (c.shape[1], c.shape[2], c.shape[0]))
        return k, row, column + first, self._listed(c)[at]

    def _check_shape(self, g: Array) -> None:
        if self.shape is None:
            raise ValueError(f"the set has no shape; give Convolutional(..., shape={tuple(g.shape)}).")

    @staticmethod
    def _listed(c: Small) -> Small:
        """Correlations in the order of the list: rows, columns, templates."""
        return np.ascontiguousarray(np.moveaxis(c, 0, -1)).ravel()

    def scores(self, g: Array) -> Small:
        self._check_shape(g)
        c = self._listed(np.concatenate([c for _, c in self._pieces(g)], axis=2))
        return np.concatenate([c, -c]) if self.symmetric else c

    def atom(self, i: int) -> Atom:
        place, k = divmod(i % self.n, self.templates.count)
        row, column = divmod(place, self._grid[1])
        return self._column(k, row, column, 1.0 if i < self.n else -1.0)

    def rebuild(self, a: Atom) -> Atom | None:
        if not self._names_atom(a.source):
            return None
        k, *place = a.source
        row, column = (0, *place) if self.axes == 1 else place
        sign = -1.0 if self.symmetric and a.coef < 0 else 1.0
        return self._column(k, row // self.stride, column // self.stride, sign)

    def _names_atom(self, source: Source) -> bool:
        if not (isinstance(source, tuple) and len(source) == 1 + self.axes):
            return False
        ends = (self.templates.count, *(n * self.stride for n in self._grid[2 - self.axes :]))
        whole = all(0 <= as_int_or_nan(i) < end for i, end in zip(source, ends, strict=True))
        return whole and not any(i % self.stride for i in source[1:])

    def _column(self, k: int, row: int, column: int, sign: float) -> Atom:
        """The atom of a template at a point of the grid of positions."""
        t, (_, rows, columns) = self.templates, self._box(self.shape)
        parts, row, column = t.parts(k), row * (self.stride if self.axes == 2 else 1), column * self.stride
        first = (t.part_channels[parts].astype(np.intp) * rows + t.part_rows[parts] + row) * columns + column
        order = np.argsort(first, kind="stable")
        positions = (first[order, None] + np.arange(t.width)).ravel()
        source = (k, column) if self.axes == 1 else (k, row, column)
        return SparseAtom.of(positions, sign * t.samples[parts][order].ravel(), self.shape or (), source, sign)

    # ------------------------------------------------------------------ combinations

    def coefficients(self, sources: Sequence[Source], values: Small) -> Events | None:
        if not all(self._names_atom(source) for source in sources):
            return None
        table = np.array(sources, dtype=np.int64).reshape(len(sources), 1 + self.axes)
        place = table[:, 1] if self.axes == 1 else table[:, 1:]
        return Events(table[:, 0], place, np.asarray(values, dtype=np.float64), np.full(len(table), np.nan))

    def synthesize(self, events: Events, start: int = 0, stop: int | None = None) -> Small:
        """The sum of events, or its columns from start to stop.

        >>> import pursuit as ps
        >>> A = ps.Convolutional([[1.0, 2.0]], shape=(5,))
        >>> A.synthesize(ps.Events(np.array([0]), np.array([2]), np.array([3.0]), np.array([0.0])))
        array([0., 0., 3., 6., 0.])
        """
        self._check_shape(np.empty(0))
        box = self._box(self.shape)
        stop = box[2] if stop is None else stop
        t = self.templates
        out = np.zeros((box[0], box[1], stop - start + 2 * t.width))  # with room for events across the ends
        time = events.time
        near = (time > start - t.width) & (time < stop)
        for k in np.unique(events.template[near]):
            own, parts = near & (events.template == k), t.parts(int(k))
            first = (events.row[own] * out.shape[2] + time[own] - start + t.width)[:, None, None]
            part = t.part_channels[parts].astype(np.int64) * box[1] + t.part_rows[parts]
            places = first + (part[:, None] * out.shape[2] + np.arange(t.width))
            np.add.at(out.reshape(-1), places, events.weight[own][:, None, None] * t.samples[parts])
        inside = out[:, :, t.width : t.width + stop - start]
        return inside.reshape(*(self.shape or ())[:-1], stop - start)

    def sample(self, rng: np.random.Generator) -> Atom:
        self._check_shape(np.empty(0))
        assert self.size is not None
        return self.atom(int(rng.integers(self.size)))

    def __repr__(self) -> str:
        where = "" if self.shape is None else f", shape={self.shape}"
        return f"Convolutional({self.templates.count} templates of {self._window()}{where})"


def _shape(shape: Sequence[int]) -> tuple[int, ...]:
    valid = isinstance(shape, Sequence) and len(shape) in (1, 2, 3) and all(as_int_or_nan(n) >= 1 for n in shape)
    require(valid, "shape", shape, "a tuple of positive integers, the shape of the signal")
    return tuple(map(int, shape))
