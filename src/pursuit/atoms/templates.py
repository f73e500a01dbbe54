"""Templates on some channels: what their translates need to be correlated with a signal, and among themselves.

Every template is a list of parts: a stretch of samples on one channel and, in pictures, one row. Parts of zeros are
left out, so that a template on 15 of 384 channels takes 15 parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from pursuit import native
from pursuit.arguments import as_int_or_nan, as_list, host_array, number, real_array, require
from pursuit.arrays import Small

Array = np.ndarray

OVERRUN = 128
"""Kernels write correlations to rows of a multiple of this many numbers (correlations.h)."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Templates of low rank: the parts of template k are mixing.T @ filters, over its own factors."""

    starts: Array
    mixing: Small
    filters: Small


@dataclass(frozen=True, eq=False)
class Templates:
    """The parts of template k are starts[k] to starts[k + 1] - 1: rows of `samples`, on a channel and a row."""

    channels: int
    height: int
    starts: Array
    part_channels: Array
    part_rows: Array
    samples: Small
    factors: Factors | None = None

    @classmethod
    def read(cls, templates: Any, axes: tuple[int, int, int], width: int) -> Templates:
        """Those of a list of (channels, rows, samples) for each template; axes are K, channels and height."""
        counts = [len(part_samples) for *_, part_samples in templates]
        columns = [np.concatenate([np.asarray(t[i], np.int32) for t in templates]) for i in (0, 1)]
        samples = np.concatenate([np.asarray(t[2], dtype=np.float64).reshape(-1, width) for t in templates])
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        return cls(axes[1], axes[2], starts, columns[0], columns[1], np.ascontiguousarray(samples))

    @property
    def count(self) -> int:
        """The number of templates."""
        return len(self.starts) - 1

    @property
    def width(self) -> int:
        """The samples of a part."""
        return int(self.samples.shape[1])

    @cached_property
    def squares(self) -> Small:
        """Squared norms."""
        return np.add.reduceat((self.samples**2).sum(axis=1), self.starts[:-1])

    def parts(self, k: int) -> slice:
        """The places of the parts of template k."""
        return slice(int(self.starts[k]), int(self.starts[k + 1]))

    def dense(self, k: int) -> Small:
        """Template k as an array of channels x height x width."""
        out = np.zeros((self.channels, self.height, self.width))
        parts = self.parts(k)
        out[self.part_channels[parts], self.part_rows[parts]] = self.samples[parts]
        return out

    def compressed(self, rank: Any) -> Templates:
        """Their best approximations by sums of `rank` products of a weight for each part and one stretch of samples.

        A rank below 1 is the fraction of its energy that a template may lose.
        """
        fits = as_int_or_nan(rank) >= 1 or 0 < number(rank) < 1
        require(fits, "rank", rank, "an integer of at least 1, or the fraction of its energy that a template may lose")
        samples, mixing, filters, ranks = self.samples.copy(), [], [], [0]
        for k in range(self.count):
            u, s, vt = np.linalg.svd(self.samples[self.parts(k)], full_matrices=False)
            lost = 1.0 - np.cumsum(s**2) / max(float(s @ s), 1e-300)
            r = min(int(rank) if rank >= 1 else 1 + int((lost > rank).sum()), len(s))
            u = u[:, :r] * s[:r]
            samples[self.parts(k)] = u @ vt[:r]
            mixing.append(u.T.ravel())
            filters.append(vt[:r])
            ranks.append(r)
        factors = Factors(np.cumsum(ranks).astype(np.int32), np.concatenate(mixing), np.concatenate(filters))
        return replace(self, samples=samples, factors=factors)

    def neighbours(self) -> tuple[Array, Array]:
        """For every template those that share a channel with it, itself among them: starts, and their numbers."""
        owner = np.repeat(np.arange(self.count), np.diff(self.starts))
        on = sp.csr_array((np.ones(len(owner), np.bool_), (owner, self.part_channels)), (self.count, self.channels))
        shared = sp.csr_array(on @ on.T)
        shared.setdiag(True)
        shared.sort_indices()
        return shared.indptr.astype(np.int64), shared.indices.astype(np.int32)

    def native(self, dtype: Any, memory: int) -> Any:
        """The kernels' form; products of templates take at most `memory` bytes."""
        factors = self.factors
        small = (
            None if factors is None else (factors.mixing.astype(dtype), np.ascontiguousarray(factors.filters, dtype))
        )
        return native.kernels(dtype).Templates(
            self.channels, self.height, self.starts, self.part_channels, self.part_rows, self.samples.astype(dtype),
            None if factors is None else factors.starts, None if small is None else small[0],
            None if small is None else small[1], self.squares, *self.neighbours(), int(memory),
        )  # fmt: skip

    def correlate(self, y: Array, kernel: Any = None) -> Array:
        """<y, a> for every translate of every template: an array of templates x rows x columns, for channels x rows x
        columns of y. `kernel` is what `native` gave; without it NumPy computes."""
        rows, columns = y.shape[1] - self.height + 1, y.shape[2] - self.width + 1
        if kernel is None:
            return self._correlate_plainly(y, rows, columns)
        out = np.empty((self.count, rows, -(-columns // OVERRUN) * OVERRUN), y.dtype)
        kernel.correlate(y, out)
        return out[:, :, :columns]

    def _correlate_plainly(self, y: Array, rows: int, columns: int) -> Array:
        out = np.zeros((self.count, rows, columns))
        for k, (first, last) in enumerate(pairwise(self.starts)):
            for p in range(first, last):
                for r in range(rows):
                    row = y[self.part_channels[p], r + self.part_rows[p]]
                    out[k, r] += np.correlate(row, self.samples[p], "valid")
        return out


def split_parts(template: Small) -> tuple[Array, Array, Small]:
    """The parts of an array of channels x height x width that are not zero."""
    channels, rows = np.nonzero(template.any(axis=2))
    return channels, rows, template[channels, rows]


def read_templates(templates: Any, channels: Any, spatial: int | None, count: int | None) -> tuple[Templates, int]:
    """The templates as the user gives them, and the number of their axes along which they move.

    spatial: 1 or 2, or None: 2 for pictures only where each has more than three axes. `count` is the number of channels
    of the recording, where it is known.
    """
    if channels is not None:
        return _on_channels(templates, channels, count), 1
    dense = templates
    require(dense.ndim in (2, 3, 4) and dense.size > 0, "templates", templates,
            "(templates, samples), (templates, channels, samples), or pictures with their rows")  # fmt: skip
    moving = (2 if dense.ndim == 4 else 1) if spatial is None else spatial
    if dense.ndim - 1 - moving not in (0, 1):
        raise ValueError(
            f"templates have shape {dense.shape}, for {moving} moving ax{'is' if moving == 1 else 'es'} of shape; give "
            "(templates, samples) with shape=(samples,), one more axis for channels, or (templates, rows, columns)."
        )
    pictures = dense.reshape(len(dense), -1 if dense.ndim - 1 > moving else 1, *((1,) if moving == 1 else ()),
                             *dense.shape[dense.ndim - moving :])  # fmt: skip
    check_sizes([float(np.abs(t).max()) for t in pictures])
    listed = [split_parts(t) for t in pictures]
    return Templates.read(listed, pictures.shape[:3], pictures.shape[-1]), moving


def _on_channels(templates: object, channels: object, count: int | None) -> Templates:
    waveforms = [np.asarray(real_array(t, "templates"), dtype=np.float64) for t in as_list(templates)]
    places = [host_array(c, "channels") for c in as_list(channels)]
    if len(places) != len(waveforms) or not waveforms:
        raise ValueError(f"channels has {len(places)} entries for {len(waveforms)} templates; give a list for each.")
    width = waveforms[0].shape[-1] if waveforms[0].ndim else 0
    for k, (w, c) in enumerate(zip(waveforms, places, strict=True)):
        _check_waveform(k, w, c, width)
    check_sizes([float(np.abs(w).max()) for w in waveforms])
    most = 1 + max(int(c.max()) for c in places)
    if count is not None and most > count:
        raise ValueError(f"channels name channel {most - 1}, the recording has {count}.")
    listed = [(c, np.zeros(len(c)), w) for c, w in zip(places, waveforms, strict=True)]
    return Templates.read(listed, (len(listed), count or most, 1), width)


def _check_waveform(k: int, w: Array, c: Array, width: int) -> None:
    """Refuse a template that is not (its channels, width), on different channels."""
    if w.ndim != 2 or w.shape[1] != width or not w.size:
        raise ValueError(f"template {k} has shape {w.shape}; give (its channels, {width or 'samples'}) for each.")
    numbers = c.shape == (len(w),) and c.dtype.kind in "iu"
    if not (numbers and len(np.unique(c)) == len(c) and (c >= 0).all()):
        raise ValueError(f"channels of template {k} must be {len(w)} different integers of at least 0.")


def check_sizes(sizes: list[float]) -> None:
    """Refuse a template of zeros, and one whose square is beyond the range of numbers."""
    if 0.0 in sizes:
        raise ValueError(f"template {sizes.index(0.0)} is zero; a zero atom has no direction, so remove it.")
    for k, size in enumerate(sizes):
        require(1e-140 < size < 1e140, f"the largest sample of template {k}", size, "templates of usual size")
