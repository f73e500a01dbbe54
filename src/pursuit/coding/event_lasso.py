r"""The Lasso over all translates of templates, with a proved gap.

.. math:: \min_w \tfrac12 \|y - \sum_e w_e a_e\|^2 + \lambda \sum_e |w_e|

Blocks are solved one after the other, each with all events outside its reach fixed, until the gap of the whole is
small. With r the residual and c the correlations of all translates with it, :math:`u = r \min(1, \lambda / \max |c|)`
is a point of the dual, so the minimum is at least :math:`\langle y, u\rangle - \tfrac12\|u\|^2`: one pass over the
recording proves a gap.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pursuit.atoms.convolutional import Convolutional
from pursuit.atoms.events import Events
from pursuit.coding.events import Blocks

Array = np.ndarray[Any, np.dtype[Any]]

RELATIVE_GAP = 1e-10
"""Sweeps end at this gap, relative to the objective."""
MAX_SWEEPS = 100
EPS = 2.0**-52


def solve_lasso(blocks: Blocks) -> Events:
    """The events of the minimum, with the gap that is proved for them."""
    best = events = Events.empty(blocks.recording.A.axes)
    stalled = 0
    for _ in range(MAX_SWEEPS):
        for i in range(blocks.count):
            events = solve_block(blocks, i, events)
        value, gap = lasso_gap(blocks, events)
        stalled = 0 if gap < 0.5 * best.gap else stalled + 1
        if gap <= best.gap:
            best = replace(events, gap=gap)
        if gap <= RELATIVE_GAP * value or stalled == 3:
            break
    return best.sorted()


def solve_block(blocks: Blocks, i: int, events: Events) -> Events:
    """The events after a search in one block that begins with those within its reach."""
    _, _, first, last = blocks.ends(i)
    inside = (events.time >= first) & (events.time <= last - blocks.recording.A.templates.width)
    found = blocks.search(_residual(blocks, events, first, last), first, events[inside])
    return Events.joined([events[~inside], found])


def _residual(blocks: Blocks, events: Events, first: int, last: int) -> Array:
    source = blocks.recording
    return np.ascontiguousarray(source.read(first, last) - source.A.boxed(source.A.synthesize(events, first, last)))


def lasso_gap(blocks: Blocks, events: Events) -> tuple[float, float]:
    """The objective at some events, and a proved bound on how far it is above the minimum, rounding errors included."""
    source, penalty = blocks.recording, blocks.rules.penalty
    A, width = source.A, source.A.templates.width
    kernel, rounding = A.kernel(np.float64), _correlation_rounding(A)
    square = data = product = size_square = largest = 0.0
    sizes = replace(events, weight=np.abs(events.weight))
    magnitudes = A._with(templates=replace(A.templates, samples=np.abs(A.templates.samples)))
    for i in range(blocks.count):
        start, stop, *_ = blocks.ends(i)
        end = source.length if i == blocks.count - 1 else stop
        r = _residual(blocks, events, start, stop + width - 1)
        c = A.templates.correlate(r, kernel)[:, :: A.stride if A.axes == 2 else 1, :: A.stride]
        most = float(c.max() if blocks.rules.positive else np.abs(c).max())
        largest = max(largest, most + rounding * float(np.linalg.norm(r)))
        y, r = source.read(start, end), r[:, :, : end - start]
        square += float(np.vdot(r, r))
        data += float(np.vdot(y, y))
        product += float(np.vdot(y, r))
        size = np.abs(y) + A.boxed(magnitudes.synthesize(sizes, start, end))
        size_square += float(np.vdot(size, size))
    norm = float(np.abs(events.weight).sum())
    scale = min(1.0, penalty / largest) if largest > 0 else 1.0
    value, lower = 0.5 * square + penalty * norm, scale * product - 0.5 * scale**2 * square
    slip = (2.0 + _most_overlaps(events, width)) * EPS * math.sqrt(size_square)  # of r, as a vector
    sums = (math.prod(source.shape) + len(events) + 4.0) * EPS * (square + math.sqrt(data * square) + penalty * norm)
    return value, max(value - lower, 0.0) + 2.0 * (slip * (math.sqrt(square) + slip) + sums)


def _correlation_rounding(A: Convolutional) -> float:
    """The error of a correlation with r is at most this times ||r||."""
    t = A.templates
    parts = int(np.diff(t.starts).max())
    terms = parts * t.width if t.factors is None else (parts + t.width) * math.sqrt(min(parts, t.width))
    return 2.0 * (terms + 4.0) * EPS * math.sqrt(float(t.squares.max()))


def _most_overlaps(events: Events, width: int) -> int:
    """At most so many events overlap one sample."""
    time = np.sort(events.time)
    return int((np.searchsorted(time, time + width) - np.arange(len(time))).max(initial=0))
